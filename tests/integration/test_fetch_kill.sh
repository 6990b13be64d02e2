#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: net
# One fetch, killed with SIGKILL 20 times (50 in test-all), each time at a random one of its writes: it ends in the right bytes, and at most 5 % of them were sent twice, as the
# server counts them over all processes. What a killed process had not read is sent again, too, and on a busy machine that would be as much as the sockets
# hold: here that is 16 KiB a connection, with what reperf itself had of a block, also where the process was stopped for long before it was killed.
. "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/faults/lib.sh disable=SC1091
. "$ROOT/tests/faults/lib.sh"
one="$B/servers/fetch_one"
size=100000000
head -c $size /dev/zero | openssl enc -aes-128-ctr -nosalt -K 00112233445566778899aabbccddeeff -iv 00000000000000000000000000000001 >"$T/file"
sha=$(openssl dgst -sha256 -r "$T/file" | cut -d' ' -f1)
tests/servers/fault_http.py "$T/file" >"$T/port" &
server=$!
trap 'kill "$server"; rm -rf "$T"' EXIT
served "$server" "the server says its port" test -s "$T/port"
base="http://127.0.0.1:$(cat "$T/port")"
sent() { curl -s --noproxy '*' "$base/stats" | cut -d' ' -f2; }

RANDOM=20261121
killed=0 times=20 writes=500 connections=8
! in_test_all "a fetch that is killed 50 times" || times=50 writes=200 connections=4
export REPERF_FAULT_RECEIVE=4096
for _ in $(seq $times); do # a write is of 2 to 4 KiB
    { at_call KILL write $((writes / 2 + RANDOM % writes)) "$T/f/" "$one" folder="$T/f" proxy= connections=$connections sha256="$sha" url="$base/rate/1400000/f" >"$T/out" 2>"$T/err"; } 2>"$T/said"
    [ $? -ne 137 ] || killed=$((killed + 1))
done
is $killed $times "$times processes are killed in the middle"
sent_killed=$(sent)
succeeds "a good part of the file came in those ($sent_killed bytes)" test "$sent_killed" -gt $((size / 8))
LD_PRELOAD="$FAULT_CALLS" "$one" folder="$T/f" proxy= sha256="$sha" url="$base/ok/0/f" >"$T/out" 2>"$T/err"
is $? 0 "the next one ends well"
succeeds "in the right bytes" cmp -s "$T/file" "$T/f/data"
twice=$(($(sent) - size))
succeeds "at most 5 % was sent twice ($twice of $size bytes)" test "$twice" -le $((size / 20))
tap_done
