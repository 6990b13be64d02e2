#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The data reader alone (reading, CRC-32C, crop to 224x224, mirror, normalise) on packed synthetic ImageNet: samples a second by number of
# threads, page cache warm and cold, CPU time a sample, and `cat` of the same shards as the floor of the I/O. For information.
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${B:=build/release}" "${ROUNDS:=3}" "${SAMPLES:=800}"
. tests/bench/bench_lib.sh
B=$(cd "$B" && pwd)
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
export GOMP_SPINCOUNT=500
packed_imagenet "$SAMPLES"
steps=$((2 * SAMPLES / 32))
bytes=$(du -cb "$T"/pack/*.shard | tail -n 1 | cut -f1)
read_it() { echo "'$B/reperf-train' --model resnet50 --batch 32 --steps $1 --data $T/pack --data-only --workers $2"; } # STEPS WORKERS
for workers in 1 2 4; do
    for ((round = 0; round < ROUNDS; round++)); do
        time_once bash -c "$(read_it "$steps" "$workers") >$T/out" || exit 1
        sed -n "s/.*\"samples_per_s\":\([0-9.]*\).*/\1 $cpu/p" "$T/out"
    done | sort -g | awk -v w="$workers" -v n="$((steps * 32))" '{ r[NR] = $1; c[NR] = 1000 * $2 / n } END {
        m = int((NR + 1) / 2); printf "reader, %d threads, warm %8.0f samples/s  %.3f ms CPU a sample (median of %d)\n", w, r[m], c[m], NR }'
done
for ((round = 0; round < ROUNDS; round++)); do
    for shard in "$T"/pack/*.shard; do dd if="$shard" iflag=nocache count=0 status=none; done
    bash -c "$(read_it "$((SAMPLES / 32))" 2)" | sed -n 's/.*"samples_per_s":\([0-9.]*\).*/\1/p'
done | sort -g | awk '{ r[NR] = $1 } END { printf "reader, 2 threads, cold %8.0f samples/s (median of %d)\n", r[int((NR + 1) / 2)], NR }'
echo "one epoch is $bytes bytes"
pair "one epoch, 2 threads, against cat" "" "$(read_it "$((SAMPLES / 32))" 2)" "cat $T/pack/*.shard"
