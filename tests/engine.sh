#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Whether the engine is as it was when its own tests passed (ENGINE in the Makefile). tests/engine_good names, a line each, a commit at which all of them did,
# and the digest of the compilers and the C library that they were built with. True, and that commit, where nothing that the engine and its tests are made of
# has changed since and these are the same; where that commit is not here, false. (Three of the scripts also measure and seal a log: others test that.)
# --write: HEAD is such a commit (make engine-good, which has just run them).
cd "$(dirname "$0")/.." || exit 1
# What its programs and reperf-pack are made of, what the scripts read, and the runner.
on=(Makefile datasets workloads orchestrator/{base,codec,prep,report,sys} tests/{bench,cuda,cuda_emu,cuda_fake,faults,nccl_fake,ptx,workloads} 'tests/unit/test_wl_*.c'
    'tests/unit/test_emu_*.c' 'tests/unit/*.h' ':(glob)tests/*.sh' tests/integration/{ptx_lib,ranks_lib}.sh 'tests/integration/test_wl_*.sh'
    tests/integration/test_{agree_originals,cuda_11,cuda_compile,cuda_libraries,first_call,gpu_targets}.sh)
nvcc="${CUDA_HOME:-/usr/local/cuda}/bin/nvcc"
digest=$({ gcc --version && g++ --version && "$nvcc" --version && getconf GNU_LIBC_VERSION && uname -m; } 2>&1 | sha256sum | cut -c1-32)
if [ "${1-}" = --write ]; then
    [ -x "$nvcc" ] || { echo "tests/engine.sh: without nvcc most of the engine's tests are not there" >&2 && exit 1; }
    git diff --quiet HEAD -- "${on[@]}" || { echo "tests/engine.sh: commit first: the engine differs from HEAD" >&2 && exit 1; }
    { echo "$(git rev-parse HEAD) $digest" && grep -v " $digest$" tests/engine_good; } 2>/dev/null >tests/engine_good.new
    mv tests/engine_good.new tests/engine_good
    exit
fi
commit=$(awk -v digest="$digest" '$2 == digest { print $1; exit }' tests/engine_good 2>/dev/null)
[ -n "$commit" ] && git diff --quiet "$commit" -- "${on[@]}" 2>/dev/null && echo "$commit"
