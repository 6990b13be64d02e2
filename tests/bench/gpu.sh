#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make bench-gpu: our steps and PyTorch's (eager, and torch.compile max-autotune with CUDA graphs) and JAX's on this machine's GPU, in
# turns in one run of reperf-bench for each model. MODEL=NAME (all four), PRECISION=amp|fp32, BATCH=N, RIVALS=eager,compile,jax, PYTHON=,
# TUNE_S=N (a quarter of the time). Each model has MODEL_LIMIT_S (530) seconds, compiling included; with all four that is not one call of nine
# minutes, so name one where that counts. RESULTS=FOLDER (build/gpu) gets bench-gpu.tar, and in it each run as RUN.tar: that is what
# tests/bench/seal_gpu.sh takes on a machine that has `reperf`. Status: 0, 1 where something failed, 2 where there is no GPU or no nvcc.
SELF="tests/bench/gpu.sh"
cd "$(dirname "$0")/../.." || exit 1
WHAT="bench-gpu"
read -ra models <<<"${MODEL:-resnet50 hrnet_w18 deeplabv3p bert_base}"
MODEL_LIMIT_S=${MODEL_LIMIT_S:-530}
LIMIT_S=${LIMIT_S:-$((MODEL_LIMIT_S * ${#models[@]}))}
RESULTS=$(realpath -m "${RESULTS:-build/gpu}")
export B=${B:-build/release} LIMIT_S
# shellcheck source=tests/cuda/gpu_lib.sh
. tests/cuda/gpu_lib.sh
# shellcheck source=tests/cuda/gpu_parts.sh
. tests/cuda/gpu_parts.sh
find_all
results_open
export ASKED="--precision ${PRECISION:-amp}${BATCH:+ --batch $BATCH}"
export TURNS="--rivals ${RIVALS-eager,compile,jax} --turns ${TURNS:-13} --turn ${TURN:-5}${TUNE_S:+ --tune-seconds $TUNE_S}"
# shellcheck disable=SC2016
announce build "build" 200 'build "$B/reperf-train" "$B/reperf-bench"'
for model in "${models[@]}"; do
    announce "$model" "$model and its rivals" $((MODEL_LIMIT_S - 60)) "bench_part $model $model \$ASKED \$TURNS"
    announce "$model-kernels" "$model: each of its kernels by itself" 60 \
        "\"\$B/reperf-bench\" kernels --model $model \$ASKED --tune-seconds 20 --turns 4 --turn 5 --out \"\$OUT\""
done
run_parts
