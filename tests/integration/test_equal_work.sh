#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: workloads
# The bundled workload does the work of the framework that it is compared with: each command of the reports' stacks is run small, and what its
# run_start and its network say is held against the stack's conditions, the table of what was checked (manifests/reports/README.md).
. "$(dirname "$0")/../tap_lib.sh"
unset RANK WORLD_SIZE LOCAL_RANK REPERF_EMU_SEED
export OMP_NUM_THREADS=1
jq -r 'select(.unpublished | not) | .id as $report | .stacks[] | select(.framework == "reperf") | .id as $stack | .commands[] | select(.purpose == "run")
    | [$report, $stack, .precision, .works] | @tsv' "$ROOT"/manifests/reports/*.json >"$T/all"
[ -s "$T/all" ] || ok 1 "there are stacks of the bundled workload"

# Commands that differ in batch, precision and rate alone are one.
awk -F'\t' '{ key = $1 $2 $4; gsub(/--(batch|precision|lr) [^ ]+/, "", key); if (!seen[key]++) print }' "$T/all" >"$T/commands"

told() { jq -r --arg report "$1" --arg stack "$2" --arg name "$3" 'select(.id == $report) | .stacks[] | select(.id == $stack) | .conditions[$name] // "?"' "$ROOT"/manifests/reports/*.json; }
small() { # COMMAND: the same on small samples; on a CPU, in FP32
    local text=${1#reperf-train }
    text=$(sed -E 's/--device cuda/--device cpu/; s/--precision [a-z0-9]+/--precision fp32/; s/--batch [0-9]+/--batch 2/; s/--image [0-9x]+//; s/--steps [0-9]+/--steps 1/; s/--warmup [0-9]+//' <<<"$text")
    case "$text" in
    *bert*) echo "${text/bert_base/bert_tiny} --sequence 8 --predictions 2" ;; # of the same recipe
    *resnet*) echo "$text --image 32" ;;
    *) echo "$text --image 64" ;;
    esac
}
number() { awk -v x="$1" 'BEGIN { print x + 0 }'; } # 1e-2 and 0.01 are one
while IFS=$'\t' read -r report stack _ command; do
    name="$report $stack"
    IFS=' ' read -ra words <<<"$(small "$command")"
    exits 0 "$name: $command" "$B/reperf-train" "${words[@]}" --describe
    jq '.' "$T/out" >"$T/network"
    "$B/reperf-train" "${words[@]}" 2>"$T/err" | head -n 1 >"$T/start"
    said() { jq -r "$1" "$T/start"; }
    is "$(said '.recipe != null and .event == "run_start"')" true "$name: it begins"
    is "$(said 'if .sync_bn then "yes" else "no" end')" "$(told "$report" "$stack" sync_bn)" "$name: batch norm over all GPUs"
    is "$(said .label_smoothing)" "$(number "$(told "$report" "$stack" label_smoothing)")" "$name: label smoothing"
    is "$(number "$(said .weight_decay)")" "$(number "$(told "$report" "$stack" weight_decay)")" "$name: weight decay"
    is "$(said .decay)" "$(told "$report" "$stack" weight_decay_on)" "$name: of what"
    is "$(said .accumulate)" "$(told "$report" "$stack" grad_accumulation)" "$name: micro-batches a step"
    is "$(said .schedule)" "$(told "$report" "$stack" lr_schedule)" "$name: schedule of the rate"
    warm=$(said .warmup_lr_steps)
    case "$(told "$report" "$stack" lr_warmup)" in
    0) is "$warm" 0 "$name: no warm-up" ;;
    *epoch)
        [ "$warm" -gt 100000 ]
        ok $? "$name: an epoch's warm-up, $warm steps of two images"
        ;;
    *) is "$warm steps" "$(told "$report" "$stack" lr_warmup)" "$name: warm-up" ;;
    esac
    optimizer=$(told "$report" "$stack" optimizer)
    case "$optimizer" in
    momentum\ *) is "$(said .optimizer) $(said .momentum)" "sgd ${optimizer#* }" "$name: optimiser" ;;
    momentum) is "$(said .optimizer) $(said .momentum)" "sgd 0.9" "$name: optimiser" ;;
    *) is "$(said .optimizer)" "$(tr '[:upper:]' '[:lower:]' <<<"$optimizer")" "$name: optimiser" ;;
    esac
    dropout=$(jq '[.ops[].op | select(startswith("dropout"))] | length' "$T/network")
    auxiliary=$(jq '[.ops[].name | select(startswith("auxiliary"))] | length' "$T/network")
    is "$([ "$dropout" -gt 0 ] && echo some || echo none)" "$([ "$(told "$report" "$stack" dropout)" = 0 ] && echo none || echo some)" "$name: dropout"
    is "$([ "$auxiliary" -gt 0 ] && echo some || echo none)" "$([ "$(told "$report" "$stack" auxiliary_loss)" = 0 ] && echo none || echo some)" "$name: auxiliary head"
    is "$(told "$report" "$stack" loss_precision)" fp32 "$name: the loss is computed in float"
done <"$T/commands"

# The loss scale belongs to AMP: on the emulated device.
if [ ! -x "$B/emu/reperf-train" ]; then
    skip "loss scales" "built without the CUDA toolkit and cuDNN's headers"
    tap_done
fi
awk -F'\t' '$3 != "fp32" { key = $1 $2; if (!seen[key]++) print }' "$T/all" >"$T/amp"
while IFS=$'\t' read -r report stack _ command; do
    IFS=' ' read -ra words <<<"$(small "$command" | sed 's/--device cpu/--device cuda/; s/--precision fp32/--precision amp/')"
    "$B/emu/reperf-train" "${words[@]}" --no-tune 2>"$T/err" | head -n 1 >"$T/start"
    is "$(jq -r '"\(.loss_scale), \(.loss_scaling)"' "$T/start")" "$(told "$report" "$stack" loss_scale)" "$report $stack: loss scale"
done <"$T/amp"
tap_done
