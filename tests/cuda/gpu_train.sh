#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# reperf-train on a GPU (part of tests/cuda/gpu.sh): the reports' sizes, losses compared with the CPU's, checkpoints, bad input.
. "$(dirname "$0")/../tap_lib.sh"
STEP_LIMIT_S=${STEP_LIMIT_S:-45}
# shellcheck source=tests/cuda/gpu_train_lib.sh
. tests/cuda/gpu_train_lib.sh
# Plans are chosen once: another choice would sum in another order.
train() {
    timeout -k 5 "$STEP_LIMIT_S" "$TRAIN" "$@" --plan-cache "$T/plans" </dev/null
}
host() { timeout -k 5 "$STEP_LIMIT_S" "$TRAIN" "$@" --device cpu </dev/null; }
mkdir "$T/plans"

# ---- does it train at all, at the sizes of the reports? ----
while read -r model batch lr; do
    trains "$model" ", batch $batch" --batch "$batch" --lr "$lr"
    for precision in amp fp32; do
        sed -n 's/.*"event":"run_stop".*"samples_per_s":\([0-9.]*\).*/# '"$model $precision"': \1 samples a second (twelve steps, no measurement)/p' "$T/$model.$precision"
    done
done <<'LIST'
resnet50 256 0.01
hrnet_w18 8 0.01
deeplabv3p 4 0.01
bert_base 96 1e-4
LIST

# ---- the same losses as the CPU's ----
# furthest A B: the largest relative difference of two lists of ten losses; 9 where one is not whole
furthest() {
    paste <(losses "$1") <(losses "$2") |
        awk 'BEGIN { most = 0 } NF != 2 { bad = 1 } { d = ($1 - $2) / $2; d = d < 0 ? -d : d; if (d > most) most = d } END { print (NR == 10 && !bad) ? most : 9 }'
}
while read -r model size; do
    # shellcheck disable=SC2086
    set -- --model "$model" $size --steps 10 --seed 3
    host "$@" >"$T/cpu"
    is "$?" 0 "$model: ten losses of the CPU"
    for precision in fp32 amp; do
        train "$@" --device cuda --precision "$precision" >"$T/cuda" 2>"$T/err"
        is "$?" 0 "$model $precision: ten losses of the GPU"
        allowed=$([ "$precision" = amp ] && echo 2e-2 || echo 1e-3)
        off=$(furthest "$T/cuda" "$T/cpu")
        succeeds "$model $precision: off by $off at most, allowed $allowed" awk -v off="$off" -v allowed="$allowed" 'BEGIN { exit !(off <= allowed) }'
    done
done <<'LIST'
resnet50 --image 64 --batch 8 --lr 0.01
hrnet_w18 --image 64x128 --batch 4
deeplabv3p --image 64x128 --batch 4
bert_tiny --batch 8 --sequence 32
LIST

# ---- save, reload, continue: bit for bit ----
for precision in fp32 amp; do
    for model in bert_tiny hrnet_w18; do
        set -- --model "$model" --device cuda --precision "$precision" --batch 4 --seed 3
        [ "$model" = hrnet_w18 ] && set -- "$@" --image 64x128
        train "$@" --steps 10 --schedule constant --save "$T/straight.st" >"$T/straight" 2>"$T/err"
        is "$?" 0 "$model $precision: ten steps"
        train "$@" --steps 5 --schedule constant --save "$T/half.st" >"$T/half" 2>"$T/err" &&
            train "$@" --steps 5 --schedule constant --load "$T/half.st" --save "$T/rest.st" >"$T/rest" 2>"$T/err"
        is "$?" 0 "$model $precision: five, and five more"
        is "$(losses "$T/half")$(losses "$T/rest")" "$(losses "$T/straight" | head -n 5)$(losses "$T/straight" | tail -n 5)" "$model $precision: the same losses"
        succeeds "$model $precision: and the same checkpoint" cmp -s "$T/rest.st" "$T/straight.st"
        for option in --no-graph "--ahead 1" "--streams 1" --no-fuse --no-tune; do
            # shellcheck disable=SC2086
            train "$@" --steps 10 --schedule constant $option >"$T/other" 2>"$T/err"
            is "$?" 0 "$model $precision $option"
            # Fusion and other plans sum in another order; a graph, and how far the host is ahead, does not.
            if [ "$option" = --no-graph ] || [ "$option" = "--ahead 1" ]; then
                is "$(losses "$T/other")" "$(losses "$T/straight")" "$model $precision $option: the same losses bit for bit"
            else
                off=$(furthest "$T/other" "$T/straight")
                succeeds "$model $precision $option: off by $off" awk -v off="$off" -v amp="$precision" 'BEGIN { exit !(off <= (amp == "amp" ? 2e-2 : 1e-3)) }'
            fi
        done
    done
done

# ---- bad input ----
train --model deeplabv3p --device cuda --precision amp --batch 60000 --steps 1 >"$T/out" 2>"$T/err"
status=$?
ok $((!(status != 0 && status < 124))) "a batch that does not fit is refused (status $status)"
like "$(cat "$T/out" "$T/err")" "needs [0-9]+ bytes.*--batch.* fits" "with its bytes and the batch that would"
is "$(steps_of "$T/out")" 0 "before any step"
head -c 100 /dev/urandom >"$T/corrupt.st"
exits 9 "a checkpoint that is none" train --model bert_tiny --device cuda --steps 1 --load "$T/corrupt.st"
tap_done
