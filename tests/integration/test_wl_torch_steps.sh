#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Three steps of each optimiser against PyTorch (Debian's python3-torch), by `reperf-train --check --steps 3`.
. "$(dirname "$0")/../tap_lib.sh"
python=/usr/bin/python3
release="$ROOT/build/release/reperf-train"
[ -x "$release" ] && TRAIN="$release" # the same code, faster
if ! "$python" -c 'import torch, numpy' 2>/dev/null; then
    skip "optimisers against PyTorch" "python3-torch is not installed"
    tap_done
fi
export OMP_WAIT_POLICY=passive # this machine may have other work
# The reports' optimisers; what takes longer (F32 of the networks with convolutions, DeepLabV3+, BERT-base) is run by hand with the same program.
"$python" tests/workloads/check_torch_steps.py "$TRAIN" "$T" bert_tiny:adamw:f32 bert_tiny:lamb resnet50:sgd hrnet_w18:sgd
