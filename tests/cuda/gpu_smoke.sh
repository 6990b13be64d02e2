#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The first thing to know about a GPU (part of tests/cuda/first_call.sh): does each network train on it at all? Small inputs, the libraries' first
# plans, AMP and FP32, steps recorded as they are by default.
. "$(dirname "$0")/../tap_lib.sh"
STEP_LIMIT_S=${STEP_LIMIT_S:-20}
export OMP_WAIT_POLICY=passive
losses() { sed -n 's/^{"event":"step",.*"loss":\([^,]*\),.*/\1/p' "$1"; }
# A constant rate from the first step on: within twelve steps on one batch the loss falls, dropout and skipped updates or not.
while read -r model arguments; do
    for precision in amp fp32; do
        # shellcheck disable=SC2086
        timeout -k 5 "$STEP_LIMIT_S" "$TRAIN" --model "$model" --device cuda --precision "$precision" $arguments --steps 12 --no-tune --schedule constant --warmup-lr-steps 0 </dev/null >"$T/out" 2>"$T/err"
        status=$?
        is "$status $(grep -c '"event":"step"' "$T/out") $(grep -c run_stop "$T/out")" "0 12 1" "$model $precision: twelve steps"
        [ "$status" -eq 0 ] || { head -c 600 "$T/err"; grep fatal "$T/out"; } | sed 's/^/# /'
        losses "$T/out" | awk 'NR == 1 { first = $1 } NR > 9 { late += $1 / 3 } END { exit !(NR == 12 && late < first) }'
        ok $? "$model $precision: the loss falls on a fixed batch ($(losses "$T/out" | tr '\n' ' '))"
    done
done <<'LIST'
resnet50 --image 64 --batch 8 --lr 0.01
hrnet_w18 --image 64x128 --batch 4 --lr 0.01
deeplabv3p --image 64x128 --batch 4 --lr 0.01
bert_tiny --batch 8 --sequence 32 --lr 1e-4
LIST
tap_done
