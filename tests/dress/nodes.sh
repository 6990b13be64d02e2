#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# nodes.sh COMMAND...: runs a command beside four nodes as a site has them: each with a name that resolves to 127.0.1.1, a docker0 of one address on all, a second
# network that comes first, and the inventory's network last. DRESS_NODES names their processes. All of it lies in namespaces of its own and is gone with it.
set -eu
if [ -z "${DRESS_INSIDE:-}" ]; then
    DRESS_INSIDE=1 exec unshare -n -m --propagation private --kill-child -f -p --mount-proc "$0" "$@"
fi
ip link set lo up
ip link add plane type bridge && ip link set plane up
ip link add second type bridge && ip link set second up
pids=''
for n in 1 2 3 4; do
    unshare -n -m -u --propagation private sleep infinity &
    pid=$!
    until [ "$(readlink "/proc/$pid/ns/uts")" != "$(readlink /proc/self/ns/uts)" ] && [ "$(tr '\0' ' ' <"/proc/$pid/cmdline")" = 'sleep infinity ' ]; do sleep 0.01; done
    in_node() { nsenter -t "$pid" -n -u -- "$@"; }
    in_node hostname "node$n"
    in_node ip link set lo up
    in_node ip link add docker0 type bridge
    in_node ip addr add 172.17.0.1/16 dev docker0
    in_node ip link set docker0 up
    ip link add "s$n" type veth peer name eth0 netns "$pid"
    ip link set "s$n" master second up
    in_node ip addr add "192.168.77.$n/24" dev eth0
    in_node ip link set eth0 up
    ip link add "p$n" type veth peer name ib0 netns "$pid"
    ip link set "p$n" master plane up
    in_node ip addr add "10.11.0.$((n + 1))/24" dev ib0
    in_node ip link set ib0 up
    pids="$pids $pid"
done
status=0
DRESS_NODES="${pids# }" "$@" || status=$?
exit "$status"
