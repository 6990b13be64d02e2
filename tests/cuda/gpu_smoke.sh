#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The first thing to know about a GPU (part of tests/cuda/first_call.sh): does each network train on it at all? Small inputs, the libraries' first
# plans, AMP and FP32, steps recorded as they are by default.
. "$(dirname "$0")/../tap_lib.sh"
STEP_LIMIT_S=${STEP_LIMIT_S:-20}
# shellcheck source=tests/cuda/gpu_train_lib.sh
. tests/cuda/gpu_train_lib.sh
while read -r model arguments; do
    # shellcheck disable=SC2086
    trains "$model" "" $arguments
done <<'LIST'
resnet50 --image 64 --batch 8 --lr 0.01
hrnet_w18 --image 64x128 --batch 4 --lr 0.01
deeplabv3p --image 64x128 --batch 4 --lr 0.01
bert_tiny --batch 8 --sequence 32 --lr 1e-4
LIST
tap_done
