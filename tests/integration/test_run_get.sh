#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: run
# What a case lacks: plan lists it with the command that provides it, and run fetches it itself.
# shellcheck source=tests/tap_lib.sh disable=SC1091
source "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/run_lib.sh disable=SC1091
source "$(dirname "$0")/run_lib.sh"
CASE='resnet50/reperf/fp32/n1g1/bs96'
with() { echo "stacks[reperf].smoke[0].mounts=[$1]"; } # MOUNT[,MOUNT]: the bundled workload's recipe sees them
mount() { echo "{\"kind\":\"dataset\",\"name\":\"$1\",\"synthetic\":$2,\"inside\":\"/data/$1\"}"; } # ID SYNTHETIC
synthetic=$(with "$(mount bert-sample true)")
ask=(paddle-perf-2020 --profile smoke --case "$CASE")

prints 4 'dataset bert-sample.synthetic' "a plan of which nothing can be run" "$REPERF" plan "${ask[@]}" -C "$synthetic"
command=$(sed -n 's/^ *[0-9]* *\$ //p' "$T/out" | head -n 1)
is "$command" "reperf data fetch bert-sample --synthetic" "and the command that brings it"
"$REPERF" plan "${ask[@]}" -C "$synthetic" --json >"$T/plan.json" 2>"$T/err"
is "$? $(jq -r '.steps[0].needs[] | [.cause, .what, .command] | join("|")' "$T/plan.json")" "4 fetch|dataset bert-sample.synthetic|$command" "so does the document"
exits 4 "offline nothing is fetched" "$REPERF" run "${ask[@]}" -C "$synthetic" --offline --repeats 1
answers 0 '.cells[] | .verdict' "not_comparable" "a run gets it itself, runs the case, and prints one document" "$REPERF" run "${ask[@]}" -C "$synthetic" --repeats 1 --json
like "$(cat "$T/err")" "getting dataset:bert-sample.synthetic" "having said what it gets"
exits 0 "then a plan finds it" "$REPERF" plan "${ask[@]}" -C "$synthetic"
omits 0 getting "and so does a run, which gets nothing" "$REPERF" run "${ask[@]}" -C "$synthetic" --repeats 1
rm -rf "$T/store"
PATH="$(dirname "$REPERF"):$PATH" sh -c "$command" >"$T/out" 2>&1
is "$?" 0 "the command, typed as it is printed"
exits 0 "brings it" "$REPERF" plan "${ask[@]}" -C "$synthetic"

# What only registered users get, listed all at once, before anything is requested or begun.
n_before=$(find "$T/state/runs" -mindepth 1 -maxdepth 1 | wc -l)
exits 4 "without the logins" "$REPERF" run "${ask[@]}" -C "$(with "$(mount imagenet-2012 false),$(mount imagenet-54289 false)")"
like "$(cat "$T/err")" "for registered users only: dataset:imagenet-2012, dataset:imagenet-54289; name a login" "they are listed together"
is "$(grep -c getting "$T/err")" 0 "and nothing is asked for"
is "$(find "$T/state/runs" -mindepth 1 -maxdepth 1 | wc -l)" "$n_before" "and no run is begun"
exits 2 "a netrc that is not there" "$REPERF" run "${ask[@]}" --netrc "$T/none"

# What cannot be fetched is reported, and is the case's own cause.
mkdir "$T/empty"
exits 4 "a mirror that lacks the data" "$REPERF" run "${ask[@]}" -C "$(with "$(mount cityscapes false)")" --mirror "$T/empty" --proxy http://127.0.0.1:9 --repeats 1 --json
is "$(jq -r '.cells[] | .verdict + " " + .cause' "$T/out")" "not_run fetch" "the case is not run, because of fetch"

# A recipe may be read by another rule of the case's format, under smoke alone.
rule() { # RULE
    jq -c --arg rule "$1" '.stacks[] | select(.id == "reperf") | "stacks[reperf].smoke=" + (.smoke | .[0].rule = $rule | tojson)' -r manifests/reports/paddle-perf-2020.json
}
"$REPERF" plan "${ask[@]}" -C "$(rule reperf/run-stop)" --json >"$T/plan.json" 2>"$T/err"
is "$? $(jq -r '.steps[0].rule' "$T/plan.json")" "0 reperf/run-stop" "a recipe's own rule is the plan's"
answers 0 '.cells[] | .rule + " " + .verdict' "reperf/run-stop not_comparable" "and the run's, which says so" "$REPERF" run "${ask[@]}" -C "$(rule reperf/run-stop)" --repeats 1 --json
fails 3 "there is no rule mlperf/none-such" "an unknown rule" "$REPERF" plan "${ask[@]}" -C "$(rule mlperf/none-such)"
fails 3 'rule: expected FORMAT/NAME, found "throughput"' "a rule without its format" "$REPERF" plan "${ask[@]}" -C "$(rule throughput)"
full='stacks[reperf].full=[{"title":"x","image":"reperf-cuda12","rule":"reperf/run-stop"}]'
fails 3 "a full run is judged by that of its case" "a rule of a full recipe" "$REPERF" plan "${ask[@]}" -C "$full"
tap_done
