#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make test-gpu: the CUDA backend on this machine's GPU, the most important checks first. Needs nvcc, a C compiler, make, cuDNN and cuBLASLt; ends
# with "N passed, N failed, N skipped" and status 0 or 1; 2 where there is no GPU or no nvcc. RESULTS=FOLDER (build/gpu) gets
# test-gpu.tar while it runs; PARTS="NAME..." runs those alone.
SELF="tests/cuda/gpu.sh"
cd "$(dirname "$0")/../.." || exit 1
WHAT="test-gpu"
LIMIT_S=${LIMIT_S:-520}
RESULTS=$(realpath -m "${RESULTS:-build/gpu}")
export B=${B:-build/release} LIMIT_S
export REPERF_TEST_ANY_ORDER=1 # sums that a real GPU fuses: test_models
# shellcheck source=tests/cuda/gpu_lib.sh
. tests/cuda/gpu_lib.sh
# shellcheck source=tests/cuda/gpu_parts.sh
. tests/cuda/gpu_parts.sh
find_all
results_open
# shellcheck disable=SC2016
{
    announce build "build" 240 'build gpu-programs'
    announce device "each operation against the CPU, planted faults" 120 'tap_part "$B/gpu/test_device"'
    announce steps "ten losses, recorded steps bit for bit, a stop in between" 120 'tap_part "$B/gpu/test_steps"'
    announce models "whole models, as they are and fused on four streams" 100 'tap_part "$B/gpu/test_models"'
    announce train "reperf-train: report sizes, checkpoints, bad input" 150 'tap_part tests/cuda/gpu_train.sh'
    announce nccl "NCCL with one rank: opened, recorded, aborted" 30 'tap_part "$B/gpu/test_nccl"'
    announce ranks "two ranks on two GPUs, with NCCL" 60 'tap_part tests/cuda/gpu_ranks.sh'
    announce forms "fused or plain, by time" 40 'REPERF_TEST_PLANS=$PLANS tap_part "$B/gpu/test_forms"'
    announce sanitizer "compute-sanitizer" 120 'tap_part tests/cuda/gpu_sanitizer.sh'
    # All the time that is left, half for each precision; choices beyond that stay untimed.
    announce timed "each operation with plans chosen by timing" "$LIMIT_S" \
        'REPERF_TEST_PLANS=$PLANS REPERF_TEST_TUNE_S=$((PART_LIMIT_S / 3)) tap_part "$B/gpu/test_device"'
}
run_parts
