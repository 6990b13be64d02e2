#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The host's work for a packed image on its way to a GPU (no GPU is needed): laying out the crops of the reader's threads, against copying the
# rectangle that the GPU then crops itself. CPU time a sample of the one thread that feeds the device, and of all; in turns. For information.
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${B:=build/release}" "${ROUNDS:=5}" "${SAMPLES:=400}" "${BATCH:=32}"
. tests/bench/bench_lib.sh
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
make -s "$B/reperf-train" "$B/reperf-pack" MODE="${B##*/}" >&2 || exit 1
"${CC:-gcc}" -std=gnu17 -D_GNU_SOURCE -O2 -Iorchestrator -Iworkloads tests/bench/feed_rates.c "$B/wl.a" "$B/base.a" -lm -lpthread -o "$T/rates" || exit 1
packed_imagenet "$SAMPLES"
for ((round = 0; round < ROUNDS; round++)); do
    "$T/rates" "$T/pack" 2 "$BATCH" $((SAMPLES / BATCH)) >"$T/out" || exit 1
    paste -s -d ' ' "$T/out"
done | awk '{ own[NR] = $2; all[NR] = $3; kb = $4; own2[NR] = $6; all2[NR] = $7; kb2 = $8; r[NR] = $2 / $6; s[NR] = $3 / $7 }
    function median(v, k,   i, j, t) { for (i = 2; i <= k; i++) for (j = i; j > 1 && v[j] < v[j - 1]; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t } return v[int((k + 1) / 2)] }
    END { if (NR == 0) exit 1
        printf "laid out on the host: %.3f ms of one thread, %.3f ms of all, %.0f KB to the GPU\n", median(own, NR), median(all, NR), kb / 1000
        printf "cut out on the GPU:   %.3f ms of one thread, %.3f ms of all, %.0f KB to the GPU\n", median(own2, NR), median(all2, NR), kb2 / 1000
        printf "ratios: one thread %.1f, all threads %.1f (medians of %d)\n", median(r, NR), median(s, NR), NR }'
