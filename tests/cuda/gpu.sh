#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make test-gpu: the CUDA backend on this machine's GPU, the most telling checks first. Needs nvcc, a C compiler, make, cuDNN and cuBLASLt; ends
# with "N passed, N failed, N skipped" and status 0 or 1; 2 where there is no GPU or no nvcc. RESULTS=FOLDER (build/gpu) gets what it
# says while it runs, so that a run that is cut off leaves what it knew.
cd "$(dirname "$0")/../.." || exit 1
WHAT="test-gpu"
LIMIT_S=${LIMIT_S:-520} BUILD_LIMIT_S=240
RESULTS=$(realpath -m "${RESULTS:-build/gpu}")
mkdir -p "$RESULTS" || exit 1
# shellcheck source=tests/cuda/gpu_lib.sh
. tests/cuda/gpu_lib.sh
export B=${B:-build/release}
passed=0 failed=0 skipped=0

# LIMIT_S NAME PROGRAM: one program or script that speaks TAP, by tests/tap.sh. What there is no time for has failed.
part() {
    local limit said counts
    limit=$(left "$1")
    echo "== $2 (at most $limit s; $SECONDS s have passed)"
    if [ "$limit" -lt 5 ]; then
        echo "not run: the time is up"
        failed=$((failed + 1))
        return
    fi
    said=$(TAP_LANES=1 TEST_LIMIT_S=$limit tests/tap.sh "$3" 2>&1)
    echo "$said"
    cat "$B"/tests/*"${3##*/}".tap >>"$RESULTS/test-gpu.tap" 2>/dev/null
    counts=$(grep -E "^[0-9]+ passed, " <<<"$said" | tail -n 1)
    if [[ "$counts" =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
        passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2])) skipped=$((skipped + BASH_REMATCH[3]))
    else
        failed=$((failed + 1))
    fi
}

all() {
    find_all
    if ! build gpu-programs; then
        echo "0 passed, 1 failed, 0 skipped"
        return 1
    fi
    echo "built in $SECONDS s"
    : >"$RESULTS/test-gpu.tap"
    rm -f "$B"/tests/*.tap
    part 120 "each operation against the CPU, planted faults" "$B/gpu/test_device"
    part 120 "ten losses, recorded steps bit for bit, a stop in between" "$B/gpu/test_steps"
    part 100 "whole models, as they are and fused on four streams" "$B/gpu/test_models"
    part 150 "reperf-train: report sizes, checkpoints, bad input" tests/cuda/gpu_train.sh
    part 60 "two ranks on two GPUs, with NCCL" tests/cuda/gpu_ranks.sh
    export REPERF_TEST_PLANS=$RESULTS/plans
    mkdir -p "$REPERF_TEST_PLANS"
    part 40 "fused or plain, by time" "$B/gpu/test_forms"
    part 60 "each operation with plans chosen by timing" "$B/gpu/test_device"
    unset REPERF_TEST_PLANS
    part 120 "compute-sanitizer" tests/cuda/gpu_sanitizer.sh
    echo "$SECONDS s in all"
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}

all 2>&1 | tee "$RESULTS/test-gpu.log"
exit "${PIPESTATUS[0]}"
