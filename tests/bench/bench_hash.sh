#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Digests of many files. Data: 10,000 files of 60 to 160 kB (1.1 GB) in memory, so that no disk is measured; all programs get the
# same number of processes or threads. Then 1.3 million empty files against their list: time and peak memory.
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/bench/bench_lib.sh
. tests/bench/bench_lib.sh
: "${B:=build/release}"
: "${FILES:=10000}"
: "${MANY:=1300000}" # 0: leave them out
reperf="$PWD/$B/reperf"
dir=$(mktemp -d /dev/shm/reperf-bench.XXXXXX) || exit 1
trap 'rm -rf "$dir"' EXIT
export REPERF_STORE="$dir/store"
cores=$(nproc)
[ "$cores" -le 4 ] || cores=4 # as many threads as reperf's pool has

tree="$dir/tree"
mkdir -p "$tree"
head -c 4194304 /dev/zero | openssl enc -aes-128-ctr -nosalt -K 00112233445566778899aabbccddeeff -iv 00000000000000000000000000000000 >"$dir/noise"
# split gives pieces of one size: several sizes from 60 to 160 kB, each piece at another offset of the noise.
n=0
while [ "$n" -lt "$FILES" ]; do
    size=$((60000 + (n * 7919) % 100001))
    mkdir -p "$tree/d$((n / 1000))"
    (cd "$tree/d$((n / 1000))" && tail -c +$((1 + n % 4096)) "$dir/noise" | split -b "$size" -a 3 - "f$n.")
    n=$((n + 4194304 / size))
done
find "$tree" -type f | sort | tail -n +$((FILES + 1)) | tr '\n' '\0' | xargs -0 -r rm
echo "data: $(find "$tree" -type f | wc -l) files, $(du -sb --apparent-size "$tree" | cut -f1) bytes; $cores threads"

each() { echo "find '$tree' -type f -print0 | xargs -0 -P$cores -n 250 $*"; }
ours="'$reperf' tree '$tree'"
pair "SHA-256 : openssl dgst -sha256" 0.85 "$ours" "$(each openssl dgst -sha256)"
pair "SHA-256 : sha256sum" 0.4 "$ours" "$(each sha256sum)"
pair "MD5 : md5sum" 0.333 "$ours --md5" "$(each md5sum)"
pair "MD5 : openssl dgst -md5" 0.333 "$ours --md5" "$(each openssl dgst -md5)"
if command -v rhash >/dev/null; then
    pair "MD5 : rhash, as many processes" 0.333 "$ours --md5" "$(each rhash --md5)"
fi

# An unchanged tree again: the best of some, since other work on the machine should not count.
sleep 2.1 # younger files are not recorded
"$reperf" tree --quick "$tree" >"$dir/list" 2>/dev/null || exit 1
best=
for ((round = 0; round < 4 * ROUNDS; round++)); do
    time_once "$reperf" tree --quick --list "$dir/list" "$tree" || exit 1
    best=$(awk -v a="$wall $cpu" -v b="${best:-9999 9999}" 'BEGIN { print a + 0 < b + 0 ? a : b }')
done
awk -v best="$best" -v n="$FILES" 'BEGIN { split(best, s, " "); us = s[1] / n * 1e6
    printf "unchanged tree again: %.2f us a file (cpu %.2f us), the program'"'"'s start included  wanted <= 3: %s\n", us, s[2] / n * 1e6, us <= 3 ? "yes" : "NO" }'

if [ "$MANY" -gt 0 ]; then
    if ! [ -x /usr/bin/time ]; then
        echo "SKIP: peak memory of $MANY files: the package time is not here"
        exit 0
    fi
    rm -rf "$tree" && mkdir "$tree"
    (cd "$tree" && seq -f 'n%03.0f' 0 999 | xargs mkdir && seq 0 $((MANY - 1)) |
        awk '{ printf "n%03d/n%03d_%08d.JPEG\n", $1 % 1000, $1 % 1000, $1 }' | xargs touch)
    sleep 2.1
    for what in "first, recording" "again"; do
        /usr/bin/time -f '%e %U %S %M' -o "$dir/time" "$reperf" tree --quick "$tree" >"$dir/list" 2>/dev/null || exit 1
        awk -v what="$what" -v n="$MANY" '{ printf "%d files, %s: %.1f s, cpu %.2f us a file, peak %.0f MB\n", n, what, $1, ($2 + $3) / n * 1e6, $4 / 1e3 }' "$dir/time"
    done
    /usr/bin/time -f '%e %U %S %M' -o "$dir/time" "$reperf" tree --quick --list "$dir/list" "$tree" >/dev/null 2>&1 || exit 1
    awk -v n="$MANY" '{ printf "%d files against their list, quick: %.1f s, cpu %.2f us a file, peak %.0f MB  wanted <= 300: %s\n", n, $1, ($2 + $3) / n * 1e6, $4 / 1e3, $4 <= 3e5 ? "yes" : "NO" }' "$dir/time"
fi
