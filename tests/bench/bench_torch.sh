#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Training steps on one core beside PyTorch's eager ones, from the same parameters, in turns: PYTHON=python3 with a torch that has oneDNN or MKL.
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${B:=build/release}" "${PYTHON:=python3}" "${TURNS:=8}"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"$PYTHON" -c 'import torch; print("PyTorch", torch.__version__, "MKL" if torch.backends.mkl.is_available() else "without MKL: its products are slow")' 2>/dev/null ||
    { echo "skipped: $PYTHON has no PyTorch"; exit 0; }
while read -r model turn shape; do
    # shellcheck disable=SC2086
    OMP_NUM_THREADS=1 "$B/reperf-bench" models --model "$model" --device cpu --rivals eager --python "$PYTHON" --turns "$TURNS" --turn "$turn" $shape --out "$out" \
        2>"$out/err" || { cat "$out/err"; exit 1; }
done <<'SHAPES'
resnet50 4 --batch 8 --image 64
bert_tiny 10 --batch 4
bert_base 1 --batch 2
SHAPES
