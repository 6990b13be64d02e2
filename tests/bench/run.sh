#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# All benchmarks, one after the other, in one run: BENCH=NAME for one of them. Ratios against the peers, never a limit of `make test`.
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${B:=build/release}"
export B
status=0
echo "machine: $(nproc) cores, $(awk -F: '/model name/ { print $2; exit }' /proc/cpuinfo), $(uname -sr)"
for bench in tests/bench/bench_*.sh; do
    name=${bench##*/bench_}
    name=${name%.sh}
    [ "$name" = lib ] && continue
    [ -z "${BENCH-}" ] || [ "$BENCH" = "$name" ] || continue
    echo "== $name"
    bash "$bench" || status=1
done
exit $status
