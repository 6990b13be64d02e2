# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Does a network train on this GPU at all? Sourced behind tap_lib.sh by gpu_smoke.sh and gpu_train.sh.
export OMP_WAIT_POLICY=passive
losses() { sed -n 's/^{"event":"step",.*"loss":\([^,]*\),.*/\1/p' "$1"; }
steps_of() { grep -c '"event":"step"' "$1"; }
# A constant rate from the first step on: within twelve steps on one batch the loss falls, dropout and skipped updates or not. In AMP and FP32; what was
# printed is in $T/MODEL.PRECISION.
trains() { # MODEL NAME OPTION...
    local model=$1 name=$2 precision out status
    shift 2
    for precision in amp fp32; do
        out=$T/$model.$precision
        timeout -k 5 "$STEP_LIMIT_S" "$TRAIN" --model "$model" --device cuda --precision "$precision" "$@" --steps 12 --no-tune --schedule constant --warmup-lr-steps 0 </dev/null >"$out" 2>"$T/err"
        status=$?
        is "$status $(steps_of "$out") $(grep -c run_stop "$out")" "0 12 1" "$model $precision$name: twelve steps"
        [ "$status" -eq 0 ] || { head -c 600 "$T/err"; grep fatal "$out"; } | sed 's/^/# /'
        losses "$out" | awk 'NR == 1 { first = $1 } NR > 9 { late += $1 / 3 } END { exit !(NR == 12 && late < first) }'
        ok $? "$model $precision: the loss falls on a fixed batch ($(losses "$out" | tr '\n' ' '))"
    done
}
