#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Sessions to sshds on the loopback. 256 at once (connect, authenticate, exec, 200 kB back): the client's own CPU a node, and memory. Then
# 20 steps on 4 nodes against pdsh over ssh. The servers, on the same machine, take most of the wall time of both.
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/bench/bench_lib.sh
. tests/bench/bench_lib.sh
# shellcheck source=tests/server_lib.sh
. tests/server_lib.sh
# shellcheck source=tests/integration/ssh_lib.sh
. tests/integration/ssh_lib.sh
: "${B:=build/release}"
: "${NODES:=256}"
one="$PWD/$B/servers/remote_one"
T=$(mktemp -d "${TMPDIR:-/tmp}/reperf-bench.XXXXXX") || exit 1
trap 'stop_sshds; rm -rf "$T"' EXIT
skip() {
    echo "skipped: $1: $2"
    exit 0
}
have_sshd "SSH sessions"
ssh_keys
for node in 0 1 2 3; do
    start_sshd "$node" || exit 1
done
{
    for node in 0 1 2 3; do
        printf 'Host n%s\n    Port %s\n    HostKeyAlias [127.0.0.1]:%s\n' "$node" "${ssh_port[$node]}" "${ssh_port[$node]}"
    done
    printf 'Host m*\n    Port %s\n    HostKeyAlias [127.0.0.1]:%s\nHost *\n    HostName 127.0.0.1\n    LogLevel ERROR\n' "${ssh_port[0]}" "${ssh_port[0]}"
    cat "$T/ssh/config"
} >"$T/ssh/bench"

echo "== $NODES sessions at once: connect, authenticate, exec, 200 kB back"
for round in 1 2 3 4 5; do
    "$one" config="$T/ssh/bench" connect_ms=60000 outage_ms=60000 m many "$NODES" 1 'head -c 200000 /dev/zero' >"$T/out" || exit 1
    [ "$(awk '$1 == "bytes" { print $2 }' "$T/out")" = $((NODES * 200000)) ] || {
        echo "bench: not all bytes came" >&2
        exit 1
    }
    awk -v n="$NODES" '$1 == "cpu_ms" { print $2 / n } $1 == "rss_kib" { print $2 / 1024 > "/dev/stderr" }' "$T/out" >>"$T/cpu" 2>>"$T/rss"
done
sort -n "$T/cpu" | awk '{ v[NR] = $1 } END { m = v[int((NR + 1) / 2)]; printf "client CPU %.3f ms a node (median of %d; %.3f to %.3f)  wanted <= 1.5: %s\n", m, NR, v[1], v[NR], m <= 1.5 ? "yes" : "NO" }'
sort -n "$T/rss" | awk '{ v = $1 } END { printf "memory %.1f MiB at most  wanted <= 30.5 (32 MB): %s\n", v, v <= 30.5 ? "yes" : "NO" }'

if ! command -v pdsh >/dev/null; then
    echo "skipped: 20 steps on 4 nodes: pdsh is not here"
    exit 0
fi
export PDSH_SSH_ARGS_APPEND="-F $T/ssh/bench"
ROUNDS=${ROUNDS_PDSH:-3}
pair "20 steps on 4 nodes : pdsh -R ssh" 0.125 "'$one' config='$T/ssh/bench' n many 4 20 'echo x'" \
    "for i in {1..20}; do pdsh -R ssh -w 'n[0-3]' 'echo x' || exit 1; done"
