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

declare -A told # [REPORT STACK CONDITION]
while IFS=$'\t' read -r report stack condition value; do told["$report $stack $condition"]=$value; done < <(
    jq -r 'select(.unpublished | not) | .id as $report | .stacks[] | select(.framework == "reperf") | .id as $stack | .conditions | to_entries[] | [$report, $stack, .key, .value] | @tsv' "$ROOT"/manifests/reports/*.json)
told() { echo "${told["$report $stack $1"]:-?}"; } # CONDITION
small() { # COMMAND: the same on small samples; on a CPU, in FP32
    local text=${1#reperf-train }
    text=$(sed -E 's/--device cuda/--device cpu/; s/--precision [a-z0-9]+/--precision fp32/; s/--batch [0-9]+/--batch 2/; s/--image [0-9x]+//; s/--steps [0-9]+/--steps 1/; s/--warmup [0-9]+//' <<<"$text")
    case "$text" in
    *bert*) echo "${text/bert_base/bert_nano} --sequence 8 --predictions 2" ;; # of the same recipe
    *resnet*) echo "$text --image 32" ;;
    *) echo "$text --image 64" ;;
    esac
}
starts() { # COMMAND...: its first line, for which no step has to be computed, into $T/start
    local line
    exec 3< <(exec "$@" 2>"$T/err")
    IFS= read -r line <&3
    kill -9 $! 2>/dev/null
    wait $! 2>/dev/null
    exec 3<&-
    echo "$line" >"$T/start"
}
number() { awk -v x="$1" 'BEGIN { print x + 0 }'; } # 1e-2 and 0.01 are one
while IFS=$'\t' read -r report stack _ command; do
    name="$report $stack"
    IFS=' ' read -ra words <<<"$(small "$command")"
    exits 0 "$name: $command" "$B/reperf-train" "${words[@]}" --describe
    jq '.' "$T/out" >"$T/network"
    starts "$B/reperf-train" "${words[@]}"
    said() { jq -r "$1" "$T/start"; }
    is "$(said '.recipe != null and .event == "run_start"')" true "$name: it begins"
    is "$(said 'if .sync_bn then "yes" else "no" end')" "$(told sync_bn)" "$name: batch norm over all GPUs"
    is "$(said .label_smoothing)" "$(number "$(told label_smoothing)")" "$name: label smoothing"
    is "$(number "$(said .weight_decay)")" "$(number "$(told weight_decay)")" "$name: weight decay"
    is "$(said .decay)" "$(told weight_decay_on)" "$name: of what"
    is "$(said .accumulate)" "$(told grad_accumulation)" "$name: micro-batches a step"
    is "$(said .schedule)" "$(told lr_schedule)" "$name: schedule of the rate"
    warm=$(said .warmup_lr_steps)
    case "$(told lr_warmup)" in
    0) is "$warm" 0 "$name: no warm-up" ;;
    *epoch)
        succeeds "$name: an epoch's warm-up, $warm steps of two images" test "$warm" -gt 100000
        ;;
    *) is "$warm steps" "$(told lr_warmup)" "$name: warm-up" ;;
    esac
    optimizer=$(told optimizer)
    case "$optimizer" in
    momentum\ *) is "$(said .optimizer) $(said .momentum)" "sgd ${optimizer#* }" "$name: optimiser" ;;
    momentum) is "$(said .optimizer) $(said .momentum)" "sgd 0.9" "$name: optimiser" ;;
    *) is "$(said .optimizer)" "$(tr '[:upper:]' '[:lower:]' <<<"$optimizer")" "$name: optimiser" ;;
    esac
    dropout=$(jq '[.ops[].op | select(startswith("dropout"))] | length' "$T/network")
    auxiliary=$(jq '[.ops[].name | select(startswith("auxiliary"))] | length' "$T/network")
    is "$([ "$dropout" -gt 0 ] && echo some || echo none)" "$([ "$(told dropout)" = 0 ] && echo none || echo some)" "$name: dropout"
    is "$([ "$auxiliary" -gt 0 ] && echo some || echo none)" "$([ "$(told auxiliary_loss)" = 0 ] && echo none || echo some)" "$name: auxiliary head"
    is "$(told loss_precision)" fp32 "$name: the loss is computed in float"
done <"$T/commands"

# The loss scale belongs to AMP: on the emulated device.
if [ ! -x "$B/emu/reperf-train" ]; then
    skip "loss scales" "built without the CUDA toolkit and cuDNN's headers"
    tap_done
fi
awk -F'\t' '$3 != "fp32" { key = $1 $2; if (!seen[key]++) print }' "$T/all" >"$T/amp"
while IFS=$'\t' read -r report stack _ command; do
    IFS=' ' read -ra words <<<"$(small "$command" | sed 's/--device cpu/--device cuda/; s/--precision fp32/--precision amp/')"
    starts "$B/emu/reperf-train" "${words[@]}" --no-tune
    is "$(jq -r '"\(.loss_scale), \(.loss_scaling)"' "$T/start")" "$(told loss_scale)" "$report $stack: loss scale"
done <"$T/amp"
tap_done
