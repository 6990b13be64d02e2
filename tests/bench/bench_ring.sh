#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# All-reduce of 100 MB of floats over 2 and 4 ranks of this machine: our TCP ring against Open MPI's all-reduce held to TCP as well, and, for information,
# with its shared memory (one copy less; what a machine of one node would use). Only the operation is timed, in turn; each run checks its sums.
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${B:=build/release}" "${ROUNDS:=3}" "${MEGABYTES:=100}" "${REPEATS:=5}"
T=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; rm -rf "$T"' EXIT
flags=(-std=gnu17 -D_GNU_SOURCE -O2 -Iorchestrator -Iworkloads)
make -s "$B/reperf-train" MODE="${B##*/}" >&2 || exit 1
"${CC:-gcc}" "${flags[@]}" tests/bench/ring_sum.c "$B/wl.a" "$B/base.a" -lm -lpthread -o "$T/ours" || exit 1
if command -v mpicc >/dev/null && command -v mpirun >/dev/null; then
    mpicc "${flags[@]}" -DWITH_MPI tests/bench/ring_sum.c "$B/base.a" -lm -o "$T/mpi" || exit 1
else
    echo "Open MPI (libopenmpi-dev, openmpi-bin) is not here: nothing to compare with"
    exit 1
fi
ours() { # RANKS: seconds of one operation
    local r port=$((20000 + RANDOM % 9000)) status=0
    pids=()
    for ((r = 1; r < $1; r++)); do
        RANK=$r WORLD_SIZE=$1 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port "$T/ours" "$MEGABYTES" "$REPEATS" >&2 &
        pids+=($!)
    done
    RANK=0 WORLD_SIZE=$1 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port "$T/ours" "$MEGABYTES" "$REPEATS" || status=1
    for r in "${pids[@]}"; do wait "$r" || status=1; done
    pids=()
    return $status
}
mpi() { # RANKS BTL
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe --mca pml ob1 --mca btl "$2,self" --mca btl_tcp_if_include lo -np "$1" \
        "$T/mpi" "$MEGABYTES" "$REPEATS" 2>"$T/err" || { head -c 600 "$T/err" >&2; return 1; }
}
for n in 2 4; do
    for btl in tcp vader; do
        for ((round = 0; round < ROUNDS; round++)); do
            a=$(ours $n) && b=$(mpi $n $btl) || exit 1
            echo "$a $b"
        done | awk -v n=$n -v btl=$btl -v mb="$MEGABYTES" '{ a[NR] = $1; b[NR] = $2; r[NR] = $1 / $2 }
            function median(v, k,   i, j, t) { for (i = 2; i <= k; i++) for (j = i; j > 1 && v[j] < v[j - 1]; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t } return v[int((k + 1) / 2)] }
            END { if (NR == 0) exit 1; printf "all-reduce, %d MB, %d ranks: ours %.3f s (each rank sends %.2f GB/s), Open MPI over %s %.3f s, ratio %.2f (n=%d)\n",
                mb, n, median(a, NR), 2 * (n - 1) / n * mb / 1000 / median(a, NR), btl == "tcp" ? "TCP" : "shared memory", median(b, NR), median(r, NR), NR }' || exit 1
    done
done
