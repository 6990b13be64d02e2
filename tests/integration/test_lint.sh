#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: lint
# lint and the findings of audit, in both directions: a made report without a fault yields none; each planted fault yields its own; every defect listed
# as found in manifests/reports/DEFECTS.md is found in the report named there.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2016
source "$(dirname "$0")/../tap_lib.sh"
O=(/usr/bin/python3 tests/integration/check_output.py)
export REPERF_ROOT="$ROOT"

documents lint-output 1 "lint --all: status 1, there are errors" "$REPERF" lint --all --json
cp "$T/out" "$T/lint.json"
exits 1 "SARIF" "$REPERF" lint --all --sarif
cp "$T/out" "$T/lint.sarif"
exits 0 "fits the classes made from the SARIF 2.1.0 schema" "${O[@]}" sarif "$T/lint.sarif"
head -n 3 "$T/out" | sed 's/^/# /'
exits 1 "text" "$REPERF" lint --all
like "$(tail -n 1 "$T/out")" '^[0-9]+ errors, [0-9]+ warnings, [0-9]+ notes$' "ends with the counts"
exits 2 "two forms at once" "$REPERF" lint --all --json --sarif
"$REPERF" audit --all --json >"$T/audit.json" 2>/dev/null
exits 0 "each defect of the list fires on the report that it names" "${O[@]}" defects manifests/reports/DEFECTS.md "$T/lint.json" "$T/audit.json"
head -n 40 "$T/out" | sed 's/^/# /'
sed '/\*\*E.5\*\*/,/^- \*\*E.6/s/`number-conflict`/`url-not-cloneable`/' manifests/reports/DEFECTS.md >"$T/readme.md"
exits 1 "which the check can fail" "${O[@]}" defects "$T/readme.md" "$T/lint.json" "$T/audit.json"

# --- the place of a finding is one that a reader of the report can open: a page, a row, a log; what was only added in order to run it, in the manifest ---
is "$(jq -s -c '[.[].reports[].findings[].where | select(test("\\$|\\.json: ") and (test("^manifests/reports/[a-z0-9.-]+\\.json: (stack [a-z0-9-]+ \\.(smoke|full)\\[|\\$$|stack [a-z0-9-]+ [^ ]+\\.works$)") | not))]' "$T/lint.json" "$T/audit.json")" '[]' "no place is one inside the manifest of a published report"
place() { # ID REPORT WHERE
    is "$(jq -s -r --arg id "$1" --arg report "$2" '[.[].reports[] | select(.report == $report).findings[] | select(.id == $id).where] | .[0]' "$T/lint.json" "$T/audit.json")" "$3" "$1: $3"
}
place tar-wrong-filter paddle-perf-deeplabv3p "DeepLabV3P/README.md: Paddle"
place number-conflict paddle-perf-deeplabv3p "DeepLabV3P/OtherReports/PyTorch/README.md"
place network-differs paddle-perf-deeplabv3p "DeepLabV3P/README.md"
place batch-differs paddle-perf-deeplabv3p "deeplabv3p/paddle/fp32/n1g1/bs4"
place log-not-published dlperf-paddle-resnet50 "PaddlePaddle/resnet50v1.5/Readme.md: Paddle"
is "$(jq -r '[.reports[] | select(.report | startswith("mlperf")).findings[].where | select(test("LICENSE"))] | length' "$T/lint.json")" 0 "and none is MLPerf's licence"

# --- a clean report ------------------------------------------------------------------------------------------
G=tests/integration/clean/report.json
new_log() { # FILE GPUS RATE: 20 intervals of 10 steps that vary a little around the rate of one GPU, first one slow
    mkdir -p "$T/logs/made-up/logs"
    awk -v rate="$3" 'BEGIN {
        print "NVCC: Build cuda_12.1.r12.1/compiler.1"; print "cudnn: 8.9"; print "batch_size: 8"; print "iters: 200"; print "python tools/train.py --repeats 1 --seed 7"
        for (i = 1; i <= 20; i++) {
            r = i == 1 ? rate / 3 : (i % 2 ? rate + 0.5 : rate - 0.5); if (i == 20) r = rate
            printf "2026-01-02 10:%02d:00 [INFO]\t[TRAIN] epoch: 1, iter: %d/200, loss: 1.0, lr: 0.1, batch_cost: 0.1, reader_cost: 0.0, ips: %.4f samples/sec | ETA 00:00:00\n", i, i * 10, r
        } }' >"$T/logs/made-up/logs/$1_$2_fp32.log"
}
new_logs() {
    rm -rf "$T/logs"
    new_log alpha 1 100 && new_log beta 1 80 && new_log alpha 8 93.75 && new_log beta 8 75
}
new_logs
valid report "the written report is valid" $G
leaves 0 output "0 errors, 0 warnings, 0 notes" "lint finds nothing at all in it" "$REPERF" lint $G
exits 0 "audit: all its cells hold" "$REPERF" audit $G --logs "$T/logs" --json
is "$("${O[@]}" findings "$T/out")" "" "and audit finds nothing"
is "$(grep -c '"verdict": "exact"' "$T/out")" 6 "six cells exact"

# --- SARIF in one's own checkout: places in it, fingerprints that stay while lines move and cases come -------------
mkdir -p "$T/checkout/reports" "$T/checkout/deep" && git init -q "$T/checkout"
sed '0,/"image_digest": "[^"]*"/s//"image_digest": null/; s/{1\.\.3}/{2..3}/' $G >"$T/checkout/reports/a b.json"
sarif_of() { (cd "$T/checkout/$1" && "$REPERF" lint "$2" --sarif 2>/dev/null) | jq -c "[.runs[0].results[] | $3]"; }
is "$(sarif_of . "reports/a b.json" '[.ruleId, (.locations[0].physicalLocation | .artifactLocation.uriBaseId, .artifactLocation.uri)]')" \
    '[["image-tag-mutable","%SRCROOT%","reports/a%20b.json"],["repeats-differ","%SRCROOT%","reports/a%20b.json"],["repeats-differ","%SRCROOT%","reports/a%20b.json"]]' "its places lie below the checkout"
is "$(sarif_of deep "../reports/a b.json" .locations)" "$(sarif_of . "$T/checkout/reports/a b.json" .locations)" "from whatever folder, by whatever path"
sarif_of . "reports/a b.json" .partialFingerprints >"$T/before"
sarif_of . "reports/a b.json" '.locations[0].physicalLocation.region.startLine' >"$T/lines"
sed -i '1s/^/\n\n\n/; s/"stacks": \[/&\n/' "$T/checkout/reports/a b.json"
is "$(sarif_of . "reports/a b.json" .partialFingerprints)" "$(cat "$T/before")" "fingerprints stay where lines move"
is "$(sarif_of . "reports/a b.json" '.locations[0].physicalLocation.region.startLine')" "$(jq -c 'map(. + 4)' "$T/lines")" "which they have"
jq '.stacks |= [.[1], .[0]] + .[2:]' "$T/checkout/reports/a b.json" >"$T/checkout/reports/c.json"
mv "$T/checkout/reports/c.json" "$T/checkout/reports/a b.json"
is "$(sarif_of . "reports/a b.json" .partialFingerprints | command jq -S 'sort')" "$(command jq -S 'sort' "$T/before")" "and where stacks change places"
is "$(cd "$T/checkout" && "$REPERF" lint "$ROOT/$G" --sarif 2>/dev/null | jq -r '.runs[0].results | length')" 0 "a clean report has no results"

# --- planted in the manifest: lint must say exactly these ids --------------------------------
wanted=() reports=()
while IFS= read -r row; do
    reports+=("$T/planted-${#wanted[@]}.json") wanted+=("${row%% :: *}")
    sed -E "${row#* :: }" $G >"${reports[-1]}"
    ! cmp -s $G "${reports[-1]}" || ok 1 "${wanted[-1]}: the fault was planted"
done < <(grep '^[a-z].* :: ' tests/integration/lint_planted)
"$REPERF" lint "${reports[@]}" --json >"$T/out" 2>"$T/err"
mapfile -t found < <(jq -r '.reports[] | [.findings[].id] | unique | join(" ")' "$T/out")
for idx in "${!wanted[@]}"; do is "${found[idx]-}" "${wanted[idx]}" "lint: ${wanted[idx]}"; done
is "${#found[@]}" "${#wanted[@]}" "${#wanted[@]} faults"
# What runs is held against what its result would state, in recipes and in the stack's working commands.
of_recipe() { # REPORT JQ MESSAGE
    jq "$2" "manifests/reports/$1.json" >"$T/report.json"
    "$REPERF" lint "$T/report.json" --json >"$T/out" 2>"$T/err"
    like "$(jq -r '.. | objects | select(.id? == "condition-contradicts-command") | .where + " " + .message' "$T/out")" "$3" "lint: $3"
}
of_recipe paddle-perf-hrnetw18 '.stacks[0].commands[11].works |= sub("amp_level=O1"; "amp_level=O2")' '[.]commands.11..works --amp_level is O2 in the command, and precision_mode is stated as O1'
of_recipe paddle-perf-hrnetw18 '.stacks[0].full[0].conditions.iterations = "200"' '[.]commands.6..works --iters is 400 in the command, and iterations is stated as 200'
of_recipe paddle-perf-2020 '(.stacks[1].commands[] | .printed | strings) |= gsub("--use_xla"; "--use_xla --use_dali") | del(.stacks[1].full[0].conditions.data_loader)' '[.]full.0..commands.0..works data_loader is stated as dali, and the command has no --use_dali'

# --- the same defects in other spellings, and innocent near misses: lint_spellings.txt ---------------------------
exits 0 "other spellings of its defects are found, innocent ones are not" /usr/bin/python3 tests/integration/lint_spellings.py "$REPERF" $G tests/integration/lint_spellings.txt "$T"
sed 's/^/# /' "$T/out"

# --- planted in the logs: audit must say these ids -------------------------------------------------------------
audited() { # IDS: of the report and logs as they are now
    "$REPERF" audit "${2:-$G}" --logs "$T/logs" --json >"$T/out" 2>"$T/err"
    is "$("${O[@]}" findings "$T/out" 2>&1)" "$1" "audit: $1"
    head -c 300 "$T/err" | sed 's/^/# /'
    new_logs
}
L="$T/logs/made-up/logs"
sed -i 's/batch_size: 8/batch_size: 16/' "$L/alpha_1_fp32.log" && audited "batch-differs cell-differs row-differs speedup-mismatch"
sed -i 's/cuda_12.1/cuda_11.0/' "$L/alpha_8_fp32.log" && audited "log-contradicts-condition software-differs"
sed -i '$d' "$L/beta_1_fp32.log" && audited log-incomplete
sed -i 's/2026-01-02 /2025-01-02 /' "$L/alpha_8_fp32.log" "$L/beta_8_fp32.log" && audited log-older
sed -i 's/--repeats 1 /--repeats 500 /' "$L/alpha_1_fp32.log" && sed 's/"dataset_repeats": "1"/"dataset_repeats": null/' $G >"$T/report.json" && audited "data-repeated not-stated" "$T/report.json"
rm "$L/alpha_1_fp32.log" && audited log-missing
sed 's/"750.00"/"760.00"/' $G >"$T/report.json" && audited "cell-differs speedup-mismatch" "$T/report.json"
sed '0,/skip1/s//skip2-trim5/' $G >"$T/report.json" && audited "cell-differs rule-differs-within-table trimming-differs" "$T/report.json"
tap_done
