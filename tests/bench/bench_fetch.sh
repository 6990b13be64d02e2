#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A verified download of 1.1 GB in memory (SHA-256 on both sides, 8 connections) against aria2c: from nginx as fast as it goes; from nginx
# with limit_rate 50 MB/s (which counts anew, and lets a second's worth pass at once, with each request); from a server of ours that gives
# each connection 50 MB/s, whatever the request. Then memory, and what one corrupt piece costs.
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/bench/bench_lib.sh
. tests/bench/bench_lib.sh
# shellcheck source=tests/server_lib.sh
. tests/server_lib.sh
. tests/integration/nginx_conf_lib.sh
: "${B:=build/release}"
: "${MB:=1100}"
one="$PWD/$B/servers/fetch_one"
T=$(mktemp -d /dev/shm/reperf-bench.XXXXXX) || exit 1
trap 'rm -rf "$T"' EXIT
size=$((MB * 1000000))
mkdir "$T/www"
head -c $size /dev/zero | openssl enc -aes-128-ctr -nosalt -K 00112233445566778899aabbccddeeff -iv 00000000000000000000000000000000 >"$T/www/file"
sha=$(openssl dgst -sha256 -r "$T/www/file" | cut -d' ' -f1)
start_nginx "$T/nginx" 1 <<EOF || exit 1
access_log off; sendfile on; tcp_nopush on; root $T/www;
server { listen 127.0.0.1:@P1@; location /slow/ { alias $T/www/; limit_rate 50m; } }
EOF
tests/servers/fault_http.py "$T/www/file" >"$T/port" &
server_pid=$!
trap 'kill "$nginx_pid" "$server_pid"; wait; rm -rf "$T"' EXIT
while [ ! -s "$T/port" ]; do sleep 0.02; done
fault="http://127.0.0.1:$(cat "$T/port")"

against_aria2() { # NAME LIMIT URL
    pair "$1" "$2" "rm -rf '$T/ours'; '$one' folder='$T/ours' proxy= sha256=$sha url='$3' >'$T/out'" \
        "rm -rf '$T/peer'; aria2c -q --no-conf --no-proxy='*' -x8 -s8 --checksum=sha-256=$sha -d '$T/peer' -o file '$3'"
}
value() { awk -v key="$1" '$1 == key { print $2 }' "$T/out"; }
against_aria2 "fetch : aria2c -x8" 1.05 "http://127.0.0.1:${ports[0]}/file"
echo "memory: $(value rss_kib) KiB at most (wanted < 65536), $(value again) bytes twice"
against_aria2 "fetch : aria2c -x8, limit_rate 50m" 1.05 "http://127.0.0.1:${ports[0]}/slow/file"
against_aria2 "fetch : aria2c -x8, 50 MB/s a connection" 1.05 "$fault/rate/50000000/file"
rm -rf "$T/ours" "$T/peer"
piece_bytes=$((8 << 20))
split -b $piece_bytes --filter='openssl dgst -sha256 -r | cut -d" " -f1' "$T/www/file" >"$T/pieces"
"$one" folder="$T/ours" proxy= sha256="$sha" pieces="$T/pieces" piece_bytes=$piece_bytes url="$fault/corrupt/123456789/file" >"$T/out" || exit 1
echo "one corrupt piece: $(($(value received) - size)) bytes more than the file ($(value bad_pieces) piece of $piece_bytes bytes)"
