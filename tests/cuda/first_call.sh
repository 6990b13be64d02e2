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
# shellcheck source=tests/cuda/gpu_lib.sh
. tests/cuda/gpu_lib.sh
# shellcheck source=tests/cuda/gpu_parts.sh
. tests/cuda/gpu_parts.sh
find_all
results_open
# Without tuning: the libraries' first plans. 60 timed steps each, ten more than a verdict needs.
export HOW="--precision amp --turns 7 --turn 10"
export PLAIN="$HOW --rivals eager --tune-seconds 0"
# shellcheck disable=SC2016
{
    announce build "build" 240 'build gpu-programs "$B/reperf-bench"'
    announce device "each operation against the CPU, planted faults" 60 'tap_part "$B/gpu/test_device"'
    announce models "one step of each network in AMP against the CPU" 60 'REPERF_TEST_PRECISION=amp tap_part "$B/gpu/test_models"'
    announce resnet50 "ResNet-50 with eager PyTorch, untuned" 75 'bench_part resnet50 resnet50 $PLAIN'
    announce bert "BERT-base with eager PyTorch, untuned" 75 'bench_part bert bert_base $PLAIN'
    announce nccl "NCCL with one rank: opened, recorded, aborted" 20 'tap_part "$B/gpu/test_nccl"'
    announce resnet50-tuned "ResNet-50, tuned for at most 40 s" 100 'bench_part resnet50-tuned resnet50 $HOW --rivals eager --tune-seconds 40'
    announce bert-tuned "BERT-base, tuned for at most 30 s" 90 'bench_part bert-tuned bert_base $HOW --rivals eager --tune-seconds 30'
    announce hrnet "HRNet-W18 with eager PyTorch, untuned" 90 'bench_part hrnet hrnet_w18 $PLAIN'
    announce deeplab "DeepLabV3+ with eager PyTorch, untuned" 75 'bench_part deeplab deeplabv3p $PLAIN'
    announce sanitizer "compute-sanitizer on the smallest" 40 'SANITIZER_LIMIT_S=10 RACE_LIMIT_S=15 RUN_LIMIT_S=15 tap_part tests/cuda/gpu_sanitizer.sh'
    announce jax "ResNet-50 with JAX and torch.compile, with the earlier plans" 200 'bench_part jax resnet50 $HOW --rivals jax,compile --tune-seconds 20'
}
run_parts
