#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: run
# Bundled models train for real in a case of their own reports, in test-all (ResNet-50 every day: test_readme.sh; HRNet-W18: tests/e2e/test_data_way.sh):
# run by `reperf run` under the smoke profile, judged, sealed, verified; its loss falls, and reaches a target in a measured time. Each can be planned.
. "$(dirname "$0")/../tap_lib.sh"

falls() { # LOG: the last loss is below the first
    jq -se '[.[] | select(.event == "step") | .loss] | length == 20 and .[-1] < .[0]' "$1" >/dev/null
}
to_target() { # LOG LOSS: [step, microseconds], by the sum of the step times up to the first step at which the mean of five losses is no more
    jq -sc --argjson at_most "$2" '[.[] | select(.event == "step")] as $all | [range(5; 21) | select(([$all[. - 5:.][].loss] | add / 5) <= $at_most)][0]
        | [., ([$all[:.][].step_time_ns] | add / 1000 | round)]' "$1"
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
    [ "$1" != resnet50 ] || is "$(jq -c '.cells[0].time_to_target | [.step, (1e6 * .value | round)]' "$T/run.json")" "$(to_target "$log" 5.5)" "the time to its target is what its steps took, up to the first with a low mean of losses"
    succeeds "its loss falls" falls "$log"
    like "$(head -n 1 "$log")" "\"model\":\"$1\"" "it was that model"
    rm -rf "$T/state"
}
planned() { # MODEL REPORT CASE: what the plan says of memory is the program's own sum
    local args
    exits 0 "$1 is planned" "$REPERF" plan "$2" --case "$3" --profile smoke --json
    mapfile -t args < <(jq -r '.steps[0].argv[1:][]' "$T/out")
    is "$(jq -r '.steps[0].memory_bytes' "$T/out")" "$("$TRAIN" "${args[@]}" --describe | jq .total_bytes)" "its memory is what the program says"
}
models=(resnet50 bert_base hrnet_w18 deeplabv3p deeplabv3p_mmseg)
declare -A where=(
    [resnet50]="paddle-perf-2020 resnet50/reperf/fp32/n1g1/bs96"
    [bert_base]="paddle-perf-2020 bert-base/reperf/fp32/n1g1/bs32"
    [hrnet_w18]="paddle-perf-hrnetw18 hrnetw18/reperf/amp/n1g1/bs8"
    [deeplabv3p]="paddle-perf-deeplabv3p deeplabv3p/reperf/fp32/n1g1/bs4"
    [deeplabv3p_mmseg]="airank-mmseg-deeplabv3plus deeplabv3plus-mmseg/reperf/fp16/n1g1/bs4"
)
# shellcheck disable=SC2086
for model in "${models[@]}"; do
    planned "$model" ${where[$model]}
    [ "$model" != bert_base ] ||
        ok $(($(jq -r '.steps[0].memory_bytes' "$T/out") > 16 * 110106428 ? 0 : 1)) "parameters, gradients and this report's two moments of AdamW are in it"
done
if in_test_all "every bundled model trained for 20 steps in a case of its report"; then
    # shellcheck disable=SC2086
    for model in "${models[@]}"; do try "$model" ${where[$model]}; done
fi
tap_done
