#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make first-gpu: the first facts about this project on a GPU, in one call of ten minutes on a bare machine with nvcc, PyTorch and JAX: whether it
# builds, whether it computes the right thing, how fast it is; the most important first. RESULTS=FOLDER (build/gpu) gets first-gpu.tar, whole after
# each part: logs, runs of reperf-bench, plans, and a summary with what to do next. PARTS="NAME..." runs those alone. Status: 0 where all parts
# have passed, 1 where one has not or was not reached, 2 where there is no GPU, nvcc or library.
SELF="tests/cuda/first_call.sh"
cd "$(dirname "$0")/../.." || exit 1
WHAT="first-gpu"
LIMIT_S=${LIMIT_S:-590}
RESULTS=$(realpath -m "${RESULTS:-build/gpu}")
export B=${B:-build/release} LIMIT_S
export REPERF_TEST_ANY_ORDER=1 # sums that a real GPU fuses: test_models
# shellcheck source=tests/cuda/gpu_lib.sh
. tests/cuda/gpu_lib.sh
# shellcheck source=tests/cuda/gpu_parts.sh
. tests/cuda/gpu_parts.sh
find_all
results_open
# Turns of ten steps each: the first of a program is warm-up, 60 are timed.
export HOW="--precision amp --turns 7 --turn 10" RIVALS=${RIVALS:-eager,compile}
# The limits add up to LIMIT_S. Seen on an H200 with 16 cores: build 9 s, smoke 18, device 12, models 47, nccl 3, kernels 6 to 10 each.
# shellcheck disable=SC2016
{
    announce build "build" 30 'build gpu-programs "$B/reperf-bench"'
    announce smoke "each network trains, small, in AMP and FP32" 30 'tap_part tests/cuda/gpu_smoke.sh'
    announce device "each operation against the CPU, planted faults" 20 'tap_part "$B/gpu/test_device"'
    announce models "one step of each network in AMP against the CPU" 60 'REPERF_TEST_PRECISION=amp tap_part "$B/gpu/test_models"'
    announce nccl "NCCL with one rank: opened, recorded, aborted" 10 'tap_part "$B/gpu/test_nccl"'
    for model in resnet50 bert_base hrnet_w18 deeplabv3p; do
        announce "kernels-$model" "$model: each kernel's time, bytes and share of the peaks" 13 "kernels_part $model --precision amp --fuse --nondeterministic --tune-seconds 6 --turns 4 --turn 5"
    done
    announce ranks "two ranks with NCCL, on two GPUs or on one" 60 'tap_part tests/cuda/gpu_ranks.sh'
    announce resnet50 "ResNet-50 with PyTorch, eager and compiled, tuned" 83 'bench_part resnet50 resnet50 $HOW --rivals $RIVALS --tune-seconds 20'
    announce bert "BERT-base likewise" 70 'bench_part bert bert_base $HOW --rivals $RIVALS --tune-seconds 10'
    announce hrnet "HRNet-W18 with eager PyTorch, tuned" 45 'bench_part hrnet hrnet_w18 $HOW --rivals eager --tune-seconds 16'
    announce deeplab "DeepLabV3+ with eager PyTorch, tuned" 40 'bench_part deeplab deeplabv3p $HOW --rivals eager --tune-seconds 12'
    announce steps "ten losses, recorded steps bit for bit, a stop in between" 60 'tap_part "$B/gpu/test_steps"'
    announce sanitizer "compute-sanitizer on the smallest" 30 'SANITIZER_LIMIT_S=8 RACE_LIMIT_S=12 RUN_LIMIT_S=12 tap_part tests/cuda/gpu_sanitizer.sh'
}
run_parts
