#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# seal + verify (every byte; nothing is derived, as no run made this) of 1 GB against `tar | zstd -T2`, then sha256sum of the archive
# (what would find a changed byte) or of all files (what would say which). Data: 480 rank logs, each the published logs in turn until
# it has 2 MB or is the last (900 MB in all),
# and 100 MB that do not compress (a keystream), as profiler traces are. Without the published logs: lines of the bundled workload.
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/bench/bench_lib.sh
. tests/bench/bench_lib.sh
: "${B:=build/release}"
: "${MB:=1000}" # of the run
shared="${REPERF_SHARED:-../shared}/published/logs"
dir=$(mktemp -d "${TMPDIR:-/tmp}/reperf-bench.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
run="$dir/run"
mkdir -p "$run"/{manifest,lock,environment,logs/raw,series}
echo '{}' >"$run/manifest/bench.json"
echo '{"run_id":"bench","report":"bench","cells":[{"case":"a","verdict":"not_run"}]}' >"$run/result.json"

pool="$dir/pool"
if [ -d "$shared" ]; then
    find "$shared" -type f -print0 | sort -z | xargs -0 cat >"$pool"
    source="published logs"
else
    awk 'BEGIN { srand(1); for (i = 1; i <= 150000; i++)
        printf "{\"event\":\"step\",\"step\":%d,\"loss_nats\":%.6f,\"samples_per_s\":%.3f,\"rank\":%d}\n", i, 7 * exp(-i / 5e4) + rand() / 10, 117 + rand(), i % 8 }' >"$pool"
    source="made metric lines"
fi
pool_bytes=$(stat -c %s "$pool")
n_logs=$((MB * 48 / 100))
log_bytes=$((MB * 900000 / n_logs))
for ((i = 0; i < n_logs; i++)); do
    offset=$((i * 1000003 % pool_bytes))
    { tail -c +$((offset + 1)) "$pool" && cat "$pool"; } 2>/dev/null | head -c "$log_bytes" >"$run/logs/raw/rank$(printf %04d "$i").log"
done
head -c $((MB * 100000)) /dev/zero | openssl enc -aes-128-ctr -nosalt -K 00112233445566778899aabbccddeeff -iv 00000000000000000000000000000000 >"$run/logs/raw/trace.bin"
rm "$pool"
echo "data: $(du -sb --apparent-size "$run/logs" | cut -f1) bytes in $n_logs logs ($source) and one file that does not compress"

ours="'$B/reperf' seal '$run' --bytes-only --force -o '$dir/a.tar.zst' && '$B/reperf' verify '$dir/a.tar.zst' --unsigned --bytes-only"
peer="tar -c -C '$dir' run | zstd -q -T2 -f -o '$dir/b.tar.zst'"
pair "seal + verify : tar | zstd, sha256sum archive" 1.0 "$ours" "$peer && sha256sum '$dir/b.tar.zst'"
pair "seal + verify : tar | zstd, sha256sum files" 1.0 "$ours" "$peer && find '$run' -type f -print0 | xargs -0 sha256sum"
echo "size: ours $(stat -c %s "$dir/a.tar.zst") bytes, tar | zstd $(stat -c %s "$dir/b.tar.zst") bytes"
