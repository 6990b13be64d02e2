#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: workloads
# Only: @reperf-train tests/workloads /usr/lib/python3/dist-packages/torch/version.py /usr/lib/python3/dist-packages/numpy/version.py
# The engine against PyTorch (Debian's python3-torch), by `reperf-train --check`: every network, every optimiser of the reports.
. "$(dirname "$0")/../tap_lib.sh"
python=/usr/bin/python3
if ! "$python" -c 'import importlib.util as u, sys; sys.exit(not all(u.find_spec(m) for m in ("torch", "numpy")))'; then
    skip "engine against PyTorch" "python3-torch is not installed"
    tap_done
fi
export OMP_WAIT_POLICY=passive # this machine may have other work
"$python" tests/workloads/check_torch.py "$TRAIN" "$T"
