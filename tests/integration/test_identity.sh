#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: judge
# A number holds only for the row that its log belongs to: rows paired with the logs of others, with the number changed to fit, never hold.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2016
source "$(dirname "$0")/../tap_lib.sh"
export REPERF_ROOT="$ROOT"
M=manifests/reports

forge() { # REPORT CASE KEY=VALUE...: $T/forged.json
    local report=$1
    shift
    /usr/bin/python3 tests/integration/forge.py "$report" "$T/forged.json" "$@"
}
told() { # the one cell: verdict, proof, what is contradicted
    jq -r '.reports[0].cells[0] | [.verdict, .proof, (.contradicted | map(.fact) | join("+"))] | join(" ")' "$T/out"
}
caught() { # NAME LOGS PRINTED WHAT: whatever is printed, and whatever number the log gives with the row's counts
    local printed
    for printed in $3; do
        jq --arg p "$printed" '.cases[0].cells[0].printed = $p' "$T/forged.json" >"$T/report.json"
        leaves 1 told "differs contradicted $4" "$1, $printed printed: it differs, and $4 is said to" "$REPERF" audit "$T/report.json" --logs "$2" --json
        like "$(cat "$T/out")" '"id": "row-differs"' "as a finding"
    done
}

# --- made logs -----------------------------------------------------------------------------------------------
mkdir -p "$T/logs/made"
seg() { # GPUS BATCH TYPE EXTRA: a small log of PaddleSeg, 10 samples/s a GPU
    printf '%s\n' "GPUs used: $1" "batch_size: $2" "    type: $3"
    [ -n "$4" ] && echo "$4"
    for step in 10 20 30 40; do
        echo "2023-07-27 12:51:$step [INFO]	[TRAIN] epoch: 1, iter: $step/40, loss: 1.5, lr: 0.01, batch_cost: 0.8, reader_cost: 0.1, ips: 10.0000 samples/sec | ETA 00:00:01"
    done
}
ROW=(hrnetw18/paddle/fp32/n1g8/bs8 folder=made format=paddleseg rule=paddleseg/skip1 printed=80.0)
H=$M/paddle-perf-hrnetw18.json
seg 8 8 HRNet_W18 "LAUNCH INFO x nnodes: 1
python tools/train.py --precision=fp32" >"$T/logs/made/own.log"
seg 1 8 HRNet_W18 "" >"$T/logs/made/gpus.log"
seg 8 4 HRNet_W18 "" >"$T/logs/made/batch.log"
seg 8 8 HRNet_W48 "" >"$T/logs/made/model.log"
seg 8 8 HRNet_W18 "--precision=fp16" >"$T/logs/made/precision.log"
seg 8 8 HRNet_W18 "LAUNCH INFO x nnodes: 2" >"$T/logs/made/nodes.log"
seg 8 8 HRNet_W18 "" >"$T/logs/made/part.log"
forge "$H" "${ROW[@]}" log=own.log
leaves 1 told "exact full " "its own log proves it in full" "$REPERF" audit "$T/forged.json" --logs "$T/logs" --json
cp "$T/out" "$T/own.json"
valid audit-output "the document is valid" "$T/own.json"
for fact in gpus batch model precision nodes; do
    forge "$H" "${ROW[@]}" log=$fact.log
    caught "a log of other $fact" "$T/logs" "80.0 10.0" $fact
done
forge "$H" "${ROW[@]}" log=part.log
exits 1 "a log that lacks precision and nodes" "$REPERF" audit "$T/forged.json" --logs "$T/logs" --json
is "$(told) $(jq -r '.reports[0].cells[0].unproven | map(.fact) | join("+")' "$T/out")" "exact partial  nodes+precision" "proves it in part, and what is not proven is listed"
"$REPERF" audit "$T/forged.json" --logs "$T/logs" >"$T/out" 2>/dev/null
like "$(cat "$T/out")" 'exact +partial +whole' "in the table"
like "$(cat "$T/out")" 'nodes of 1 cell: the log does not state how many nodes' "with the reason"
like "$(cat "$T/out")" '1 exact, .*0 are proven in full, 1 in part' "and counted"

# A manifest whose only fault is one that --strict counts.
new_root() {
    rm -rf "$T/root"
    mkdir -p "$T/root/manifests" "$T/root/logs" && cp -R manifests/formats manifests/reports "$T/root/manifests/" && cp -R logs/published "$T/root/logs/" && chmod -R u+w "$T/root"
    export REPERF_ROOT="$T/root"
}
new_root
answers 0 '[.reports[].cells[].proof] | unique | join(" ")' full "a report whose cells hold: each proven in full" "$REPERF" audit dlperf-tf2-resnet50 --json
exits 0 "--strict asks no more of it" "$REPERF" audit dlperf-tf2-resnet50 --strict
jq '.facts |= map(select(.name != "precision"))' manifests/formats/tf2-timehistory.json >"$T/root/manifests/formats/tf2-timehistory.json"
kept=$T/root/logs/published/dlperf-tf2-resnet50/series.json
sed -i 's/{"name":"precision","value":"fp32","line":[0-9]*},//' "$kept"
sum=$(sha256sum "$kept" | cut -c1-64)
sed -i "s/\"series_sha256\": \"[0-9a-f]*\"/\"series_sha256\": \"$sum\"/" "$T/root/manifests/reports/dlperf-tf2-resnet50.json"
answers 0 '[.reports[].cells[] | .verdict, .proof] | unique | join(" ")' "exact partial" "logs that do not state the precision: it still holds, in part" "$REPERF" audit dlperf-tf2-resnet50 --json
exits 1 "--strict: that is not enough" "$REPERF" audit dlperf-tf2-resnet50 --strict

# --- units -------------------------------------------------------------------------------------------------
new_root
cat >"$T/root/manifests/formats/words.json" <<'EOF'
{"schema_version": 1, "id": "words", "title": "words", "framework": "any", "source": "made up", "prefixes": [],
 "series": [{"name": "tok", "literal": "tokens/s", "pattern": "step (?<step>\\d+): (?<value>[\\d.]+) tokens/s", "unit": "tokens/s", "scope": "job",
             "quantity": "rate", "primary": true}],
 "run_start": null, "end": null, "facts": [],
 "rules": [{"name": "mean", "series": "tok", "statistic": "mean", "origin": "own", "source": "plain mean"},
           {"name": "times-gpus", "series": "tok", "statistic": "mean", "scale": "gpus", "origin": "own", "source": "wrong"},
           {"name": "best", "series": "tok", "statistic": "max", "origin": "inferred", "source": "wrong"},
           {"name": "one-step", "series": "tok", "steps": [2, 2], "statistic": "mean", "origin": "inferred", "source": "wrong"},
           {"name": "last", "series": "tok", "statistic": "last", "origin": "stated", "source": "the report says so"}]}
EOF
printf 'step 1: 70.0 tokens/s\nstep 2: 80.0 tokens/s\nstep 3: 90.0 tokens/s\n' >"$T/logs/made/words.log"
ROW=(hrnetw18/paddle/fp32/n1g8/bs8 folder=made log=words.log format=words printed=80.0)
for unit in img/s samples/s seq/s; do
    forge "$H" "${ROW[@]}" rule=words/mean unit=$unit
    caught "a cell in $unit on a log in tokens/s" "$T/logs" 80.0 unit
done

# --- rules that nobody stated ------------------------------------------------------------------------------
sed -i 's#tokens/s", "scope"#samples/s", "scope"#' "$T/root/manifests/formats/words.json"
rule() { # RULE PRINTED: the findings about it
    forge "$H" "${ROW[@]}" rule="words/$1" printed="$2"
    "$REPERF" audit "$T/forged.json" --logs "$T/logs" --json >"$T/out" 2>/dev/null
    jq -r '[.reports[0].findings[] | select(.id | startswith("rule-")) | .id + " " + .level] | join(",")' "$T/out"
}
is "$(rule mean 80.0)" "" "a mean over a window is a rule"
is "$(rule times-gpus 640.0)" "rule-scale-differs error" "a job's rate times the GPUs is an error"
is "$(rule best 90.0)" "rule-picks-sample error" "so is the best sample"
is "$(rule one-step 80.0)" "rule-picks-sample error" "and that of one step"
is "$(rule last 90.0)" "" "but not where the report states it"
export REPERF_ROOT="$ROOT"

# --- steps of several batches ------------------------------------------------------------------------------
added() { # LOG'S PRINTED STEPS: proof and why of a row that makes a step of one batch
    seg 8 8 HRNet_W18 "LAUNCH INFO x nnodes: 1
python tools/train.py --precision=fp32
$1" >"$T/logs/made/sum.log"
    jq '.cases[0].conditions.grad_accumulation = "1"' "$T/forged.json" >"$T/report.json"
    "$REPERF" audit "$T/report.json" --logs "$T/logs" --json >"$T/out" 2>/dev/null
    jq -r '.reports[0].cells[0] | [.verdict, .proof, (.unproven | map(.fact + ": " + .why) | join("+"))] | join(" ")' "$T/out"
}
new_root
jq '.facts += [{"name": "grad_accumulation", "literal": "accumulate: ", "pattern": "accumulate: (?<value>\\d+)"}]' manifests/formats/paddleseg.json >"$T/root/manifests/formats/paddleseg.json"
forge "$H" hrnetw18/paddle/fp32/n1g8/bs8 folder=made format=paddleseg rule=paddleseg/skip1 printed=80.0 log=sum.log
is "$(added "accumulate: 1")" "exact full " "a log of steps of one batch, as the row's"
is "$(added "accumulate: 4")" "exact partial batch: how many batches a step adds up is 1 in the row, and 4 by what the log states" "of four: it proves the row in part"
export REPERF_ROOT="$ROOT"

# --- a group of one, a slip --------------------------------------------------------------------------------
seg 8 8 HRNet_W18 "" | sed 's/iter: 40.*ips: 10.0000/&1/; s/ips: 10.00001/ips: 14.6506/; s/iter: 30\(.*\)10.0000/iter: 30\114.6507/; s/iter: 20\(.*\)10.0000/iter: 20\114.6506/' >"$T/logs/made/slip.log"
forge "$H" hrnetw18/paddle/fp32/n1g8/bs8 folder=made log=slip.log format=paddleseg rule=paddleseg/skip1 printed=117.205
"$REPERF" audit "$T/forged.json" --logs "$T/logs" --json >"$T/out" 2>/dev/null
is "$(told)" "exact partial " "the number that follows"
slip() { # PRINTED: verdict, digits
    jq --arg p "$1" '.cases[0].cells[0].printed = $p' "$T/forged.json" >"$T/report.json"
    "$REPERF" audit "$T/report.json" --logs "$T/logs" --json >"$T/out" 2>/dev/null
    jq -r '.reports[0].cells[0] | [.verdict, .digits] | join(": ")' "$T/out"
}
is "$(slip 117.206)" "match: 117.206 printed for 117.205" "the last digit: near, and both are shown"
is "$(slip 117.197)" "match: 117.197 printed for 117.205" "several digits: another rule may make them"
is "$(slip 117.255)" "differs: 117.255 printed for 117.205" "one digit before the last is a slip of a hand"
is "$(jq -c '.reports[0].cells[0].explanation | [.group, .is_explanation]' "$T/out")" '[1,false]' "and a group of one explains nothing"
slip 117.202 >/dev/null
is "$(jq -c '.reports[0].cells[0].explanation.is_explanation' "$T/out")" false "not even where a candidate gives it"
"$REPERF" audit "$T/report.json" --logs "$T/logs" >"$T/out" 2>/dev/null
like "$(cat "$T/out")" '117.202 printed for 117.205' "the table form shows the digits"

# --- series with digests -----------------------------------------------------------------------------------
new_root
sed -i '/1n1g.rn50_b128_fp32_3/s/"value":\[\([0-9]*\)/"value":[1\1/' "$kept"
fails 5 'series.json: expected sha256 [0-9a-f]{64} as .*dlperf-tf2-resnet50.json holds it, found' "one value of a kept series edited: status 5" "$REPERF" audit dlperf-tf2-resnet50 --json
sed -i 's/, "series_sha256": "[0-9a-f]*"//' "$T/root/manifests/reports/dlperf-tf2-resnet50.json"
exits 3 "a manifest without the digest of its series: status 3" "$REPERF" audit dlperf-tf2-resnet50
export REPERF_ROOT="$ROOT"

# --- measure -----------------------------------------------------------------------------------------------
exits 9 "several logs: the others still count" "$REPERF" measure --rule skip1 --gpus 8 --json "$T/logs/made/gpus.log" "$T/logs/made/own.log"
is "$(jq -c '[.files[] | .value // .error] | [(.[0] | test("states 1")), .[1]]' "$T/out")" '[true,80]' "each with its own answer"

# --- what formats read or declare --------------------------------------------------------------------------
undeclared=$(for f in manifests/formats/*.json; do
    jq -r '.id as $id | [.facts[].name] as $n
        | [(if ($n | any(. == "gpus")) then empty else "gpus" end), (if ($n | any(. == "nodes" or . == "gpus_per_node")) then empty else "nodes" end),
           (if ($n | any(. == "precision")) then empty else "precision" end), (if ($n | any(. == "model")) then empty else "model" end),
           (if ($n | any(. == "batch_per_gpu" or . == "global_batch")) then empty else "batch" end)] | .[] | $id + " " + .' "$f"
done)
is "$undeclared" "" "each format reads GPUs, nodes, precision, batch and model, or says why no log of it states them"

is "$(jq -r '.id as $id | .facts | group_by(tojson) | .[] | select(length > 1) | $id + " " + .[0].name' manifests/formats/*.json)" "" "and none reads a fact twice in the same way"

# --- the published logs ------------------------------------------------------------------------------------
if need_shared "published logs as proof of other rows; no published log states what its format declares absent"; then
    L=$SHARED/published/logs
    P=HRNetW18/logs/paddle/PaddleSeg_fcn_hrnetw18_bs8
    forge "$H" hrnetw18/paddle/fp32/n1g8/bs8 log=${P}_fp32_DP_N1C1_log
    caught "HRNet-W18's row of 8 GPUs on the log of one" "$L" "117.205 155.425 19.428" gpus
    forge "$H" hrnetw18/paddle/fp32/n1g8/bs8 log=${P}_fp16_DP_N1C8_log
    caught "its fp32 row on the fp16 log" "$L" "117.205 115.468" precision
    D=$M/paddle-perf-2020.json
    N=ResNet50V1.5/OtherReports
    forge $D resnet50/ngc-pytorch/fp32/n1g1/bs128 log=$N/PyTorch/logs/pytorch_gpu1_amp_bs128.txt
    caught "NGC PyTorch's fp32 row on the amp log" "$L" "364.2 828.7" precision
    forge $D resnet50/ngc-tf/fp32/n1g8/bs128 log=$N/TensorFlow/logs/tf_gpu1_fp32_bs128.txt
    caught "NGC TensorFlow's row of 8 GPUs on the log of one" "$L" "3105.3 408.3" gpus
    forge $D resnet50/paddle/fp32/n1g8/bs96 log=ResNet50V1.5/logs/paddle_gpu1_amp_bs128.txt
    caught "ResNet-50's fp32 row of 8 GPUs and batch 96 on the amp log of one and 128" "$L" "2753.3 10681.0 1335.1" precision+batch
    forge $M/paddle-perf-deeplabv3p.json deeplabv3p/mmseg/fp32/n4g8/bs4
    caught "mmsegmentation's row of 32 GPUs and batch 4, whose log ran 8" "$L" "60.95 68.23 136.46" batch

    # The form in which a line of any framework states it. Words of other things (gpus of a resource list) are left out.
    declare -A SHAPE=(
        [gpus]='world.?size["'"'"' :=]+[0-9]|nranks: [0-9]|GPUs used: [0-9]|Num GPUs|TRAINERS_NUM +[0-9]|horovod.{0,9}size.{0,4}[0-9]|-np [0-9]'
        [nodes]='nnodes[ =:]+[0-9]|num_nodes|number_of_nodes|--nodes[ =][0-9]|SLURM_NNODES|num_hosts|worker_hosts.: .[0-9]'
        [precision]='fp16|fp32|float16|bf16|precision'
        [batch_per_gpu]='batch.?size'
        [model]='arch|model'
    )
    declare -A LINES=([airank]='AI-Rank-log ') # such lines stand within another framework's log, which has its own format
    found=$(for f in manifests/formats/*.json; do
        id=${f##*/} id=${id%.json}
        mapfile -t logs < <(jq -r --arg f "$id" '.logs.path as $p | .cases[] | select(.format == $f or any(.cells[]; .format == $f)) | .logs[] | $p + "/" + .' $M/*.json | sort -u)
        [ ${#logs[@]} -gt 0 ] || continue
        [ -d "$L/${logs[0]%%/*}" ] || continue # MLPerf's are in no such folder
        for fact in $(jq -r '.facts[] | select(.absent) | .name' "$f"); do
            (cd "$L" && grep -ahE -- "${LINES[$id]:-.}" "${logs[@]}") | grep -aoEm1 -- "${SHAPE[$fact]}" | sed "s/^/$id $fact: /"
        done
    done)
    is "$found" "" "no published log states what its format declares absent"
fi
tap_done
