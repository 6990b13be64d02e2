#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ResNet-50 at the smoke profile's size: seconds a step of each backend of this build, wanted under 2 s on two cores.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/bench/train_lib.sh
bench_steps resnet50 64x64 2
