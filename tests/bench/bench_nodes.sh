#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What `reperf nodes bench` measures of disk and network, by reperf-node itself, against fio and iperf3: in turns, the median of the
# ratios pair by pair, with the interval that has it in 98 of 100 cases (order statistics: 3rd lowest to 3rd highest of 13).
cd "$(dirname "$0")/../.." || exit 1
: "${B:=build/release}"
: "${NODE_ROUNDS:=13}"
T=$(mktemp -d "${BENCH_DISK:-${TMPDIR:-/tmp}}/reperf-bench.XXXXXX") || exit 1
trap 'rm -rf "$T"' EXIT
node="$PWD/$B/reperf-node"
compare() { # NAME FILE: lines "OURS PEER", both rates
    awk '{ printf "%.6f %.6g %.6g\n", $1 / $2, $1, $2 }' "$2" | sort -g | awk -v name="$1" '
        { v[NR] = $1; a[NR] = $2; b[NR] = $3 }
        END { low = NR >= 13 ? 3 : 1
              m = v[int((NR + 1) / 2)]
              printf "%-34s ratio %.3f  interval %.3f to %.3f  (n=%d; around %.4g and %.4g MB/s)  wanted 0.9 to 1.1: %s\n", name, m, v[low], v[NR + 1 - low], NR,
                  a[int((NR + 1) / 2)] / 1e6, b[int((NR + 1) / 2)] / 1e6, (m >= 0.9 && m <= 1.1 ? "yes" : "NO") }'
}
rate() { jq -r --arg m "$1" --argjson s "$2" '.series[] | select(.measure == $m and .size_bytes == $s) | .work / ((.ns | sort | .[length / 2 | floor]) / 1e9)'; } # MEASURE SIZE
BYTES=$((256 << 20))
if command -v fio >/dev/null; then
    peer() { # read|write: past the page cache, one request at a time; what is written goes to a new file, and is safe on the disk at the end
        [ "$1" = read ] || rm -f "$T/peer"
        fio --name=peer --filename="$T/peer" --rw="$1" --bs=1M --size=$BYTES --direct=1 --ioengine=psync --end_fsync=1 --fallocate=none --output-format=json >"$T/fio" || exit 1
        jq -r --arg w "$1" '.jobs[0] | .[$w].io_bytes / ((if $w == "write" then .job_runtime else .read.runtime end) / 1000)' "$T/fio"
    }
    for ((round = 0; round < NODE_ROUNDS; round++)); do
        "$node" bench 120 disk "$T" $BYTES 1 >"$T/ours" || exit 1
        echo "$(rate disk.write 0 <"$T/ours") $(peer write)" >>"$T/write"
        echo "$(rate disk.read 0 <"$T/ours") $(peer read)" >>"$T/read"
    done
    compare "disk, write : fio" "$T/write"
    compare "disk, read : fio" "$T/read"
else
    echo "skipped: disk: fio is not here"
fi
if command -v iperf3 >/dev/null; then
    port=$((20000 + RANDOM % 10000))
    REPERF_BENCH_TOKEN=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
    export REPERF_BENCH_TOKEN
    ours() {
        "$node" bench 60 listen 127.0.0.1 "$port" &
        "$node" bench 60 link 127.0.0.1 "$port" 300 3 >"$T/ours" || exit 1
        wait $!
    }
    peer() { # [-R]: what arrived, by messages of the same size
        iperf3 -s -1 -B 127.0.0.1 -p $((port + 1)) >/dev/null &
        local server=$!
        until ss -Hltn "sport = :$((port + 1))" | grep -q .; do sleep 0.05; done
        iperf3 -c 127.0.0.1 -p $((port + 1)) -l 1M -t 1 -J "$@" >"$T/iperf" || exit 1
        wait $server
        jq -r '.end.sum_received.bits_per_second / 8' "$T/iperf"
    }
    for ((round = 0; round < NODE_ROUNDS; round++)); do
        ours
        echo "$(rate net.send 1048576 <"$T/ours") $(peer)" >>"$T/send"
        echo "$(rate net.receive 1048576 <"$T/ours") $(peer -R)" >>"$T/receive"
    done
    compare "network, send : iperf3" "$T/send"
    compare "network, receive : iperf3" "$T/receive"
else
    echo "skipped: network: iperf3 is not here"
fi
