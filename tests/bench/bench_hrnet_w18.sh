#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# HRNet-W18 at the smoke profile's size: seconds a step of each backend of this build, wanted under 1 s on two cores.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/bench/train_lib.sh
bench_steps hrnet_w18 64x128 1
