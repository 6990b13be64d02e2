#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# BERT against PyTorch (Debian's python3-torch), by `reperf-train --check`.
. "$(dirname "$0")/../tap_lib.sh"
python=/usr/bin/python3
release="$ROOT/build/release/reperf-train"
[ -x "$release" ] && TRAIN="$release" # the same code, faster
if ! "$python" -c 'import torch, numpy' 2>/dev/null; then
    skip "BERT against PyTorch" "python3-torch is not installed"
    tap_done
fi
export OMP_WAIT_POLICY=passive # this machine may have other work
"$python" tests/workloads/check_torch_bert.py "$TRAIN" "$T" bert_tiny
