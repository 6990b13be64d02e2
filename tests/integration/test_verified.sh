#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: evidence
# logs/verified: the sealed smoke runs of every framework that runs here, verified, replayed, and their real logs read again by `measure`. They stay byte
# for byte as they were sealed: verified.txt lists what today's rules derive otherwise.
# shellcheck source=tests/tap_lib.sh
. "$(dirname "$0")/../tap_lib.sh"
V=logs/verified
for archive in "$V"/2*/*.tar.zst; do
    run=$(basename "$archive" .tar.zst)
    key=$V/$run/$run.key.pub
    [ -e "$key" ] || key=$V/reperf.key.pub
    grep "^$run " tests/integration/verified.txt | cut -d' ' -f2- >"$T/expected"
    differs=$([ ! -s "$T/expected" ] || echo 1)
    exits "${differs:-0}" "$run: every byte, and who signed" "$REPERF" verify "$archive" --key "$key" --json
    is "$(jq -c '[.signer, .holds, .error]' "$T/out")" "$([ -n "$differs" ] && echo '["verified",false,null]' || echo '["verified",true,null]')" "$run: whose bytes are whole, and that it holds only where nothing differs"
    is "$(jq -r '.differences[] | select(.kind == "value").text' "$T/out")" "$(cat "$T/expected")" "$run: by today's rules its numbers follow from its logs, but for those listed"
    is "$(jq -r '.differences[] | select(.kind == "wording").text' "$T/out" | grep -Ev '^(lock/lock|result)\.json:\$\.(program_version|files|derivation): |[.]why: kept|[.](by_node|taints): a key that today.s rules add$')" "" \
        "$run: its words are those of today, but for keys that came and went"
    exits "${differs:-0}" "$run: replay says the same" "$REPERF" replay "$archive"
    mkdir "$T/$run" && tar --zstd -xf "$archive" -C "$T/$run"
    R=$T/$run
    is "$(jq -r .run_id "$R/result.json")" "$run" "$run: is in its own folder"
    is "$(jq -c '[.cells[] | select(.verdict != "not_comparable" or .value == null)]' "$R/result.json")" "[]" "$run: each case has a number, and claims nothing"
    jq -r '.report as $report | .steps[] | select(.recipe) | "\($report)\t\(.recipe)"' "$R/manifest/plan.json" >>"$T/sealed"
    # Every real log of a framework, by the format that the reader detects.
    while read -r log format; do
        got=$("$REPERF" measure --json "$R/$log" 2>"$T/err" | jq -r '"\(.format) \(.verdict)"')
        [ "$got" = "$format ok" ] || echo "$run $got ${log#logs/raw/}" >>"$T/unread"
    done < <(jq -r --slurpfile plan "$R/manifest/plan.json" '.cells[] | .case as $case | ($plan[0].steps[] | select(.case == $case) | .format) as $format
        | .repeats[] | "\(.log.path) \($format)"' "$R/result.json")
done
is "$(sort "$T/unread" 2>/dev/null)" "" "every log is found and read as what it is"

# What ran on a GPU: objects that no run of ours made, so their bytes are what is verified.
for run in first-gpu-20261128T031032Z bench-resnet50-amp-20261128T035721Z; do
    exits 0 "$run: every byte, and who signed" "$REPERF" verify "$V/$run/$run.tar.zst" --bytes-only --key "$V/$run/$run.key.pub"
    mkdir "$T/$run" && tar --zstd -xf "$V/$run/$run.tar.zst" -C "$T/$run"
done
is "$(find "$V" -mindepth 1 -maxdepth 1 -type d -name "[a-z]*" ! -name "cpu-2026-*" | wc -l)" 2 "and there is no other, but for test_cpu_2026.sh's"
G=$T/bench-resnet50-amp-20261128T035721Z
is "$(jq -s '[.[] | select(.event == "step" and .step > 10) | .step_time_ns] | sort | 256e9 / ((.[29] + .[30]) / 2) | floor' "$G/logs/raw/reperf.log")" 7993 \
    "the rate that the READMEs print is that of the log's 60 timed steps"
is "$(jq -r '[.programs[] | "\(.name) \(.state)"] | join(", ")' "$G/result.json")" "reperf measured, torch-eager failed" "no rival was ready, and it says so"
K=$T/first-gpu-20261128T031032Z/logs/raw
is "$(jq -r '[.parts[] | "\(.name) \(.state)"] | join(", ")' "$K/call1/summary.json")" \
    "build passed, smoke passed, device failed, models failed, nccl passed, kernels-resnet50 passed, kernels-bert_base passed, kernels-hrnet_w18 passed, kernels-deeplabv3p passed" \
    "what failed on the first call is in it"

# A page shows side by side what was printed, what the published log gives and what was measured.
exits 0 "a run's page" "$REPERF" report "$V"/20261126T030232.917Z-9731c20a/*.zst --html "$T/page.html"
like "$(tr -d '\n' <"$T/page.html" | sed 's/<wbr>//g; s/<[^>]*>/|/g')" '[|]hrnetw18/paddle/fp32/n1g1/bs8[|]+1[|]+0[.]740[0-9]*[|].*[|]19[.]428[|].*[|]19[.]428, exact[|]' "published, audited and measured side by side"
exits 0 "the page of a run from before the kept series changed" "$REPERF" report "$V"/20261123T151601.441Z-49ab5fb7/*.zst --html "$T/old.html"
is "$(grep -i 'warning\|error' "$T/err" | sed 's/.*tar.zst: //')" "1 values differ from what today's rules derive, which is shown; verify lists them" "warns of the doubt that it lacks, and of nothing else"
like "$(tr -d '\n' <"$T/old.html" | sed 's/<wbr>//g; s/<[^>]*>/|/g')" '[|]hrnetw18/paddle/fp32/n1g1/bs8[|].*[|]19[.]428[|].*[|]19[.]428, exact[|]' "is audited by today's"
like "$(cat "$T/old.html")" "today, sha256 $(sha256sum <logs/published/paddle-perf-hrnetw18/series.json | cut -d' ' -f1); when this run began it was $(jq -r .logs.series_sha256 "$T"/20261123T151601.441Z-49ab5fb7/manifest/report.json)[.]" "and says so, by both digests"
mkdir -p "$T/root/logs/published/paddle-perf-hrnetw18"
ln -s "$PWD"/{manifests,images,datasets,workloads} "$T/root"
sed 's/"value":\[1/"value":[2/' logs/published/paddle-perf-hrnetw18/series.json >"$T/root/logs/published/paddle-perf-hrnetw18/series.json"
REPERF_ROOT=$T/root "$REPERF" report "$V"/20261123T151601.441Z-49ab5fb7/*.zst --html "$T/edited.html" 2>"$T/err"
is "$? $(grep -c 'Not audited: .*series.json: expected sha256' "$T/edited.html")" "0 1" "where the kept series are not the report's, the page says why there is no audit"

like "$(cat "$T/sealed")" "PaddleSeg's tools/train.py at the report's commit" "PaddleSeg's own program ran at its commit"
like "$(cat "$T/sealed")" "tools/train.py of the report's fork of mmsegmentation" "and the report's fork of mmsegmentation"
hrnet=$(dirname "$(grep -l "report's fork" "$T"/*/manifest/plan.json)")
hrnet=${hrnet%/manifest}
is "$(jq -r '[.steps[].mounts[]? | select(.kind == "source" and .part) | "\(.version[:8]) \(.part.files) \(.part.left_out)"] | unique | join("; ")' "$hrnet/manifest/plan.json")" \
    "a00a3b65 905 220; f3cec798 626 1960" "of both it is said how much was left out"
is "$(jq -r '[.cells[].case | split("/")[1]] | group_by(.) | map("\(.[0]) \(length)") | join(", ")' "$hrnet/result.json")" "mmseg 6, paddle 6, reperf 6" "in one run with ours, every case of the report"
is "$(jq -r '[.cells[] | select(.case | contains("/paddle/")) | .differs[] | select(.name == "code_version")] | length' "$hrnet/result.json")" 0 "what ran at the pinned commit is not said to be other code"

like "$(cat "$T/sealed")" "PaddlePaddle/models' train.py at release 1.8" "DLPerf's Paddle 1.8 ran"
like "$(cat "$T/sealed")" "DeepLearningExamples' main.py for TensorFlow 1 at the report's commit" "TensorFlow 1.15 ran"
like "$(cat "$T/sealed")" "PaddleNLP's run_pretrain_single.py at the report's commit" "Paddle's BERT ran"
like "$(cat "$T/sealed")" "OneFlow's models, their ResNet-50 by OneFlow 0.9.0" "OneFlow ran"

# No stack of a published report that the manifests say runs is without evidence: of one of its recipes. Those of node-health, which compares nodes and claims no
# number, run in tests/cluster/test_node_health.sh.
jq -r 'select(.unpublished | not) | .id as $report | .stacks[] | select(any(.smoke[]?; .image)) | .id as $stack | .smoke[] | "\($report)\t\(.title)\t\($report) \($stack)"' manifests/reports/*.json >"$T/recipes"
awk -F '\t' 'NR == FNR { sealed[$1 "\t" $2] = 1; next } { has[$3] += sealed[$1 "\t" $2] } END { for (stack in has) if (!has[stack]) print stack }' \
    "$T/sealed" "$T/recipes" | LC_ALL=C sort >"$T/missing"
is "$(cat "$T/missing")" "" "every stack with a smoke recipe has one of them here"
tap_done
