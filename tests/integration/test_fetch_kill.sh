#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One fetch, killed with SIGKILL 20 times (50 in test-all) at random moments: it ends in the right bytes, and at most 5 % of them were sent twice, as the
# server counts them over all processes.
. "$(dirname "$0")/../tap_lib.sh"
one="$B/servers/fetch_one"
size=100000000
head -c $size /dev/zero | openssl enc -aes-128-ctr -nosalt -K 00112233445566778899aabbccddeeff -iv 00000000000000000000000000000001 >"$T/file"
sha=$(openssl dgst -sha256 -r "$T/file" | cut -d' ' -f1)
"$B/servers/fault_http" "$T/file" >"$T/port" &
server=$!
trap 'kill "$server"; rm -rf "$T"' EXIT
while [ ! -s "$T/port" ]; do sleep 0.02; done
base="http://127.0.0.1:$(cat "$T/port")"
sent() { curl -s --noproxy '*' "$base/stats" | cut -d' ' -f2; }

RANDOM=20261121
killed=0 times=20 rate=1400000
! in_test_all "a fetch that is killed 50 times" || times=50 rate=700000
for _ in $(seq $times); do
    "$one" folder="$T/f" proxy= sha256="$sha" url="$base/rate/$rate/f" >"$T/out" 2>"$T/err" &
    pid=$!
    sleep "0.$((10 + RANDOM % 40))"
    kill -KILL $pid 2>/dev/null && killed=$((killed + 1))
    wait $pid 2>/dev/null
done
is $killed $times "$times processes are killed in the middle"
sent_killed=$(sent)
[ "$sent_killed" -gt $((size / 5)) ]
ok $? "a good part of the file came in those ($sent_killed bytes)"
"$one" folder="$T/f" proxy= sha256="$sha" url="$base/ok/0/f" >"$T/out" 2>"$T/err"
is $? 0 "the next one ends well"
cmp -s "$T/file" "$T/f/data"
ok $? "in the right bytes"
twice=$(($(sent) - size))
[ "$twice" -le $((size / 20)) ]
ok $? "at most 5 % was sent twice ($twice of $size bytes)"
tap_done
