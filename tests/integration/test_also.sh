#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: judge
# What a recipe has read from its log also (`also`): the accuracy of PaddleSeg's and mmsegmentation's evaluations, from logs that they wrote, printed by a
# workload that stands in for them. Planned, run, judged, shown, sealed; forged, it is refused; a rule that does not exist is, too.
# shellcheck source=tests/tap_lib.sh disable=SC1091
. "$(dirname "$0")/../tap_lib.sh"
export REPERF_STATE="$T/state" REPERF_TRAIN="$T/train.sh" TMPDIR=$T
R=paddle-perf-hrnetw18 CASE=hrnetw18/reperf/fp32/n1g1/bs8
report() { # RULE ALSO...: the report, whose recipe has the workload's log read by these
    jq --arg rule "$1" '(.stacks[] | select(.id == "reperf").smoke[0]) |= (.rule = $rule | .also = $ARGS.positional)' manifests/reports/$R.json --args "${@:2}" >"$T/$R.json"
}
cat >"$T/train.sh" <<'END'
#!/bin/sh
case " $* " in *" --describe "*) echo '{"model": "hrnet_w18", "parameters": 9640830}' ;; *) cat "${0%/*}/log" ;; esac
END
chmod +x "$T/train.sh"
run() { # LOG RULE ALSO...: a run of a workload that prints it
    cp "$1" "$T/log"
    report "${@:2}"
    exits 0 "${1##*/} is run" "$REPERF" run "$T/$R.json" --case $CASE --profile smoke --repeats 1 --json
    cp "$T/out" "$T/run.json"
    E=$(jq -r .folder "$T/run.json")/evidence
    is "$(jq -r '.cells[] | "\(.verdict) \(.value > 0) \(.why)"' "$T/run.json")" "not_comparable true the smoke profile shows that the way works; it claims no number" "${1##*/}: its rate is there, and nothing is claimed"
    is "$(jq -c '.cells[0].also' "$T/run.json") $(jq -c '.cells[0].repeats[0].also' "$T/run.json")" "$(jq -c '.cells[0] | .also, .also' "$E/result.json" | paste -sd ' ')" "${1##*/}: the same in result.json, for the case and its repeat"
}
also() { jq -c '[.cells[0].also[] | [.rule, .series, .value, .unit, .why]]' "$T/run.json"; }
shown() { # as a page, and as text
    exits 0 "it is a page" "$REPERF" report last --html "$T/page.html"
    exits 0 "and text" "$REPERF" report last
}
held() { # NAME
    exits 0 "$1: verified" "$REPERF" verify --unsigned "$(jq -r .archive "$T/run.json")"
    exits 0 "$1: replayed" "$REPERF" replay last
}

# --- PaddleSeg and mmsegmentation, with an evaluation ---
L=tests/integration/logs
run $L/paddleseg-eval.log paddleseg/skip1 paddleseg/miou-last paddleseg/miou-max
is "$(also)" '[["paddleseg/miou-last","miou",0.009,"",null],["paddleseg/miou-max","miou",0.009,"",null]]' "PaddleSeg: the mIoU of its last evaluation, and the best"
held PaddleSeg
shown
like "$(cat "$T/out")" "$CASE +paddleseg/miou-last +0.009" "PaddleSeg: in the text"
like "$(cat "$T/out")" "After a few steps on synthetic data an accuracy shows that the evaluation works, .*compared with nothing" "and what it is worth"
like "$(sed 's/<wbr>//g' "$T/page.html")" '<td data-h="rule">paddleseg/miou-last</td><td data-h="value" class="n">0.009' "on the page"
like "$(cat "$T/page.html")" "compared with nothing" "and what it is worth, too"

# Forged: another value in result.json, alone and in an archive that is in order otherwise (1); a reason, and a key that is not there (listed); another
# question in the plan (5).
forged() { # NAME FILE EDIT [STATUS]
    rm -rf "$T/forged" && cp -r "$E" "$T/forged"
    jq "$3" "$E/$2" >"$T/forged/$2"
    ! cmp -s "$E/$2" "$T/forged/$2" || ok 1 "$1: cannot be forged"
    exits "${4:-5}" "$1: replayed with what differs" "$REPERF" replay "$T/forged"
    [ "${4:-5}" = 5 ] || like "$(cat "$T/out")" " today's rules (derive|add)" "$1: which is listed"
}
"$REPERF" keygen "$T/forger" >/dev/null
forged "a better mIoU" result.json '.cells[0].also[0].value = 0.8 | .cells[0].repeats[0].also[0].value = 0.8' 1
/usr/bin/python3 tests/integration/forge_evidence.py --repack "$T/forged" "$T/forged.tar.zst" "$T/forger"
exits 5 "a better mIoU: not verified, by its signer's own key" "$REPERF" verify "$T/forged.tar.zst" --key "$T/forger.pub"
forged "none in the result" result.json 'del(.cells[0].also)' 0
forged "none in the plan" manifest/plan.json 'del(.steps[0].also)'
like "$(cat "$T/err")" "target or also does not follow from report.json" "which is said"

run $L/mmseg-eval.log mmseg/skip1 mmseg/miou-last
is "$(also)" '[["mmseg/miou-last","miou",0.0121,"",null]]' "mmsegmentation: the mIoU of its evaluation"
held mmsegmentation

# --- the accuracies of other frameworks, from logs that they wrote ---
accuracy() { # LOG RULE VALUE
    is "$("$REPERF" measure "$1" --rule "$2" --json 2>/dev/null | command jq -c '[.value, .verdict]')" "[$3,\"ok\"]" "${1##*/}: $2"
}
while read -r log rules value; do
    for rule in ${rules//,/ }; do accuracy "$L/$log" "$rule" "$value"; done
done <<'END'
paddleclas-eval.log paddleclas-static/top1-last,paddleclas-static/top1-max 0.1
mmcls-eval.log mmseg/top1-last,mmseg/top1-max 0.1
dle-eval.log dllogger-pytorch/top1-last,dllogger-pytorch/top1-max 0.1
paddle18-eval.log dlperf-paddle18/top1-last,dlperf-paddle18/top1-max 0.5
mxnet-eval.log mxnet/top1-last,mxnet/top1-max 0.1
tf2-eval.log tf2-timehistory/top1-last 0.25
bert-tf.log ngc-tf-bert/train-masked-lm-accuracy-last 0
END

# A published run of 80000 steps, of which 64000 are there: its last evaluation is not its best.
if need_shared "the published log with evaluations"; then
    for rule in last=0.7641 max=0.7725; do
        "$REPERF" measure "$SHARED/published/logs/airank-34c7743/deeplabv3plus/log/GPUx8.log" --rule "mmseg/miou-${rule%=*}" --json >"$T/out" 2>/dev/null
        is "$(jq -c '[.value, .verdict]' "$T/out")" "[${rule#*=},\"incomplete\"]" "miou-${rule%=*} of AI-Rank's eight GPUs"
    done
    accuracy "$SHARED/published/logs/paddle-perf-8903782/Bert/OtherReports/TensorFlow/logs/tf_bert_pretraining_lamb_base_fp32_bs48_gpu1.log" ngc-tf-bert/masked-lm-accuracy-last 6.776905e-05
fi

# --- logs without one ---
grep -v 'Iter(val)' $L/mmseg-eval.log >"$T/without.log"
run "$T/without.log" mmseg/skip1 mmseg/miou-last mmseg/skip2
is "$(also | jq -c '.[0]')" '["mmseg/miou-last","miou",null,"","the log has no series \"miou\""]' "a log without an evaluation: none, and why"
is "$(jq -c '.cells[0].also[1] | [.rule, .value > 0, .unit, .why]' "$T/run.json")" '["mmseg/skip2",true,"samples/s",null]' "what else is asked is there"
held "a log without an evaluation"
shown
like "$(cat "$T/out")" "$CASE +mmseg/miou-last +- " "in the text"
like "$(cat "$T/out")" "$CASE: mmseg/miou-last: the log has no series" "with its reason"
like "$(cat "$T/page.html")" "$CASE: mmseg/miou-last: the log has no series" "on the page"

# --- none at all, and why ---
is "$(jq -r 'select(.unpublished | not) | .id as $id | .stacks[] | .id as $stack | .smoke[]? | select(.image and (.also // []) == [] and .also_why_not == null) | "\($id) \($stack): \(.title)"' manifests/reports/*.json)" "" "each recipe that runs has something read from its log beside the rate, or says why not"
WHY='the program counts nothing'
report mmseg/skip1
jq --arg why "$WHY" '(.stacks[] | select(.id == "reperf").smoke[0]) |= (del(.also) | .also_why_not = $why)' "$T/$R.json" >"$T/none.json"
cp "$T/without.log" "$T/log"
exits 0 "a recipe that says why there is none" "$REPERF" run "$T/none.json" --case $CASE --profile smoke --repeats 1 --json
cp "$T/out" "$T/run.json"
E=$(jq -r .folder "$T/run.json")/evidence
is "$(jq -c '[.cells[0] | has("also"), .also_why_not]' "$T/run.json") $(jq -c '.cells[0].also_why_not' "$E/result.json") $(jq -c '.steps[0].also_why_not' "$E/manifest/plan.json")" "[false,\"$WHY\"] \"$WHY\" \"$WHY\"" "its row says so, in what is printed, sealed and planned"
valid run-output "valid against its schema" "$T/run.json"
valid result "so is result.json" "$E/result.json"
valid report "and the report" "$T/none.json"
held "a recipe that says why"
shown
like "$(cat "$T/out")" "$CASE: no accuracy: $WHY" "in the text"
like "$(cat "$T/page.html")" "$CASE: no accuracy: $WHY" "on the page"
forged "another reason in the result" result.json '.cells[0].also_why_not = "nobody asked"' 0
forged "none in the plan" manifest/plan.json 'del(.steps[0].also_why_not)'
forged "another in the plan" manifest/plan.json '.steps[0].also_why_not = "nobody asked"'
jq '(.stacks[] | select(.id == "reperf").smoke[0]).also = ["mmseg/miou-last"]' "$T/none.json" >"$T/both.json"
fails 3 'smoke\[0\]: expected also or also_why_not, found both' "a rule and a reason why there is none" "$REPERF" plan "$T/both.json" --profile smoke

# On given data the bundled workload is not evaluated: the row says why, and the log's lack is not taken for the cause.
mkdir "$T/pack"
jq -n '{dataset: "made-up", split: "train", synthetic: true, n_samples: 40, source_sha256: ("ab" * 32)}' >"$T/pack/pack.json"
cp tests/integration/fake_train.sh "$T/fixed.sh"
"$T/fixed.sh" | sed 's/"model":"resnet50"/"model":"hrnet_w18"/; s/"image":\[64,64\]/"image":[64,128]/; s/"batch":4/"batch":2/' >"$T/log"
exits 0 "a run on packed data" "$REPERF" run $R --case $CASE --profile smoke --repeats 1 --data "$T/pack/" --json
cp "$T/out" "$T/run.json"
E=$(jq -r .folder "$T/run.json")/evidence
is "$(jq '[.steps[0].argv | index("--data", "--eval-every")] | map(type) | join(" ")' "$E/manifest/plan.json")" '"number null"' "trains on it, without an evaluation"
is "$(jq -r '.cells[0] | .also_why_not == .also[0].why, .also[0].value, .also_why_not' "$T/run.json" | paste -sd ' ')" \
    "true null not evaluated: with --data the workload gets the training split alone, and no data that it does not train on" "and its row says why"
held "a run on packed data"
prints 0 "$CASE: reperf/miou-last: not evaluated: with --data" "it is text" "$REPERF" report last
forged "the reason of --data in a run without" manifest/plan.json '.data = null'
exits 0 "a run without" "$REPERF" run $R --case $CASE --profile smoke --repeats 1 --json
is "$(jq -r '.cells[0] | [has("also_why_not"), (.also[0].why | startswith("the log has no series"))] | join(" ")' "$T/out")" "false true" "is asked for it, and a log that lacks it is said to"

# --- what does not exist ---
for row in 'mmseg/miou-lst|there is no rule mmseg/miou-lst' 'paddleseg/miou-last|paddleseg/miou-last is no rule of format mmseg, which reads the log'; do
    report mmseg/skip1 mmseg/miou-last "${row%|*}"
    fails 3 "case $CASE: recipe \"the bundled workload on the CPU\": also\\[1\\]: ${row#*|}" "${row%|*} is refused before anything runs" "$REPERF" plan "$T/$R.json" --case $CASE --profile smoke
done
report reperf/mean-after-warmup reperf/none-such
exits 1 "lint finds it" "$REPERF" lint "$T/$R.json" --json
is "$(jq -r '.reports[].findings[] | select(.id == "recipe-rule-missing") | "\(.level) \(.message) \(.where | sub("^.*:"; ""))"' "$T/out")" \
    "error the bundled workload on the CPU: there is no rule reperf/none-such  stack reperf .smoke[0].also[0]" "with its place in the report"
report reperf/mean-after-warmup miou
fails 3 'smoke\[0\]\.also\[0\]: expected FORMAT/NAME, found "miou"' "what is no rule's name is refused" "$REPERF" plan "$T/$R.json" --profile smoke
tap_done
