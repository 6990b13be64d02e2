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
ours_disk() { "$node" bench 120 disk "$T" $BYTES 1 >"$T/ours"; }
peer_disk() { # write|read: past the page cache, one request at a time; what is written goes to a new file, and is safe on the disk at the end
    [ "$1" = read ] || rm -f "$T/peer"
    fio --name=peer --filename="$T/peer" --rw="$1" --bs=1M --size=$BYTES --direct=1 --ioengine=psync --end_fsync=1 --fallocate=none --output-format=json >"$T/fio" || exit 1
    jq -r --arg w "$1" '.jobs[0] | .[$w].io_bytes / ((if $w == "write" then .job_runtime else .read.runtime end) / 1000)' "$T/fio"
}
port=$((20000 + RANDOM % 10000))
REPERF_BENCH_TOKEN=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
export REPERF_BENCH_TOKEN
ours_network() {
    "$node" bench 60 listen 127.0.0.1 "$port" &
    "$node" bench 60 link 127.0.0.1 "$port" 300 3 >"$T/ours" && wait $!
}
peer_network() { # send|receive: what arrived, by messages of the same size
    iperf3 -s -1 -B 127.0.0.1 -p $((port + 1)) >/dev/null &
    local server=$! way=()
    [ "$1" = send ] || way=(-R)
    until ss -Hltn "sport = :$((port + 1))" | grep -q .; do sleep 0.05; done
    iperf3 -c 127.0.0.1 -p $((port + 1)) -l 1M -t 1 -J "${way[@]}" >"$T/iperf" || exit 1
    wait $server
    jq -r '.end.sum_received.bits_per_second / 8' "$T/iperf"
}
in_turns() { # WHAT TOOL SERIES SIZE WORD...
    local what=$1 tool=$2 series=$3 size=$4 round word
    shift 4
    command -v "$tool" >/dev/null || { echo "skipped: $what: $tool is not here"; return; }
    for ((round = 0; round < NODE_ROUNDS; round++)); do
        "ours_$what" || exit 1
        for word; do echo "$(rate "$series.$word" "$size" <"$T/ours") $("peer_$what" "$word")" >>"$T/$word"; done
    done
    for word; do compare "$what, $word : $tool" "$T/$word"; done
}
in_turns disk fio disk 0 write read
in_turns network iperf3 net 1048576 send receive
