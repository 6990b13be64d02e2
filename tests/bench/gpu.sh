#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make bench-gpu: our steps beside PyTorch's (eager, and torch.compile max-autotune with CUDA graphs) and JAX's on this machine's GPU, in
# turns in one run of reperf-bench for each model. MODEL=NAME (all four), PRECISION=amp|fp32, BATCH=N, RIVALS=eager,compile,jax, PYTHON=. Each
# model has LIMIT_S (530) seconds, compiling included; with all four that is not one call of nine minutes, so name one where that counts.
# Each run's folder is also kept as RESULTS/RUN.tar (RESULTS: build/gpu): that is what tests/bench/seal_gpu.sh takes on a machine that has
# `reperf`. Status: 0, 1 where something failed, 2 where there is no GPU or no nvcc.
cd "$(dirname "$0")/../.." || exit 1
WHAT="bench-gpu"
each_s=${LIMIT_S:-530} BUILD_LIMIT_S=200
LIMIT_S=$each_s
RESULTS=$(realpath -m "${RESULTS:-build/gpu}")
mkdir -p "$RESULTS" || exit 1
export XDG_CACHE_HOME=$RESULTS/cache # of plans chosen by timing
# shellcheck source=tests/cuda/gpu_lib.sh
. tests/cuda/gpu_lib.sh
read -ra models <<<"${MODEL:-resnet50 hrnet_w18 deeplabv3p bert_base}"
bench=build/release/reperf-bench
bad=0

# MODEL: its run, and each of its kernels by itself with the time that is left.
one() {
    local model=$1 run options=(--model "$1" --precision "${PRECISION:-amp}" --python "${PYTHON:-python3}")
    [ -n "${BATCH:-}" ] && options+=(--batch "$BATCH")
    # Steps in smaller turns where one takes long: 60 timed ones each way.
    timeout -k 10 "$(left "$each_s")" "$bench" models "${options[@]}" --rivals "${RIVALS-eager,compile,jax}" --turns "${TURNS:-13}" --turn "${TURN:-5}" \
        --deadline "$(($(left "$each_s") - 15))" --out "$RESULTS/runs" || bad=1
    run=$(find "$RESULTS/runs" -maxdepth 1 -name "bench-$model-*" -type d 2>/dev/null | sort | tail -n 1)
    if [ -n "$run" ] && [ -e "$run/result.json" ]; then
        tar -C "$RESULTS/runs" -cf "$RESULTS/${run##*/}.tar" "${run##*/}" && echo "$RESULTS/${run##*/}.tar"
    else
        echo "$WHAT: $model: no result" >&2
        bad=1
    fi
    [ "$(left 30)" -lt 30 ] && return
    timeout -k 10 "$(left 60)" "$bench" kernels "${options[@]:0:4}" ${BATCH:+--batch "$BATCH"} --turns 4 --turn 5 --out "$RESULTS" ||
        echo "$WHAT: $model: its kernels by themselves: not measured" >&2
}

all() {
    find_all
    build build/release/reperf-train build/release/reperf-bench || return 1
    echo "built in $SECONDS s"
    mkdir -p "$RESULTS/runs"
    for model in "${models[@]}"; do
        LIMIT_S=$((model_begin + each_s))
        echo "== $model (at most $((LIMIT_S - SECONDS)) s)"
        one "$model"
        model_begin=$SECONDS
    done
    return $bad
}

model_begin=0
all 2>&1 | tee "$RESULTS/bench-gpu.log"
exit "${PIPESTATUS[0]}"
