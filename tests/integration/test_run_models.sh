#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every bundled model trains for real in a case of its own report: run by `reperf run` under the smoke profile, judged, sealed,
# verified; the loss of a fixed batch falls.
. "$(dirname "$0")/../tap_lib.sh"
export REPERF_STATE="$T/state" REPERF_STORE="$T/store"

falls() { # LOG: the last loss is below the first
    jq -se '[.[] | select(.event == "step") | .loss] | length == 20 and .[-1] < .[0]' "$1" >/dev/null
}
try() { # MODEL REPORT CASE
    exits 0 "$1 is run" "$REPERF" run "$2" --case "$3" --profile smoke --repeats 1 --json
    cp "$T/out" "$T/run.json"
    is "$(jq -r '[.cells[].verdict] | unique | join(" ")' "$T/run.json")" not_comparable "and judged: smoke claims no number"
    is "$(jq -r '[.cells[] | .value > 0] | unique | join(" ")' "$T/run.json")" true "with a value"
    is "$(jq -r '[.cells[].repeats[].samples_used] | join(" ")' "$T/run.json")" 16 "of the 16 steps after warm-up"
    exits 0 "its archive is verified" "$REPERF" verify --unsigned "$(jq -r .archive "$T/run.json")"
    exits 0 "and replays" "$REPERF" replay last
    log=$(find "$T/state" -path "*$3*" -name '*.log' | head -n 1)
    falls "$log"
    ok $? "its loss falls"
    like "$(head -n 1 "$log")" "\"model\":\"$1\"" "it was that model"
    rm -rf "$T/state"
}
# What a plan says of memory is the program's own sum, with the two moments that this report's AdamW keeps.
exits 0 "BERT-base is planned" "$REPERF" plan paddle-perf-2020 --case bert-base/reperf/fp32/n1g1/bs32 --profile smoke --json
planned=$(jq -r '.steps[0].memory_bytes' "$T/out")
mapfile -t args < <(jq -r '.steps[0].argv[1:][]' "$T/out")
is "$planned" "$("$TRAIN" "${args[@]}" --describe | jq .total_bytes)" "its memory is what the program says"
ok $((planned > 16 * 110106428 ? 0 : 1)) "parameters, gradients and two moments are in it"

try resnet50 paddle-perf-2020 resnet50/reperf/fp32/n1g1/bs96
try bert_base paddle-perf-2020 bert-base/reperf/fp32/n1g1/bs32
try hrnet_w18 paddle-perf-hrnetw18 hrnetw18/reperf/amp/n1g1/bs8
try deeplabv3p paddle-perf-deeplabv3p deeplabv3p/reperf/fp32/n1g1/bs4
try deeplabv3p_mmseg airank-mmseg-deeplabv3plus deeplabv3plus-mmseg/reperf/fp16/n1g1/bs4
tap_done
