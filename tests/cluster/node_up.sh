#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Switches a node on, run inside the cluster: node_up.sh STATE NUMBER. Its disk (STATE/nodeN) is kept from one time to the next.
set -eu
# shellcheck source=tests/cluster/env.sh
. "$(dirname "$0")/env.sh"
S=$1 i=$2
N="$S/node$i" ns="$S/ns/node$i"
! recorded_alive "$N/pid" >/dev/null || exit 0
in_switch() { nsenter --net="$S/ns/switch" "$@"; }
in_switch ip link del "v$i" 2>/dev/null || :
! mountpoint -q "$ns" || umount "$ns"
: >"$ns"
unshare --net="$ns" true
in_switch ip link add "v$i" type veth peer name eth0 address "02:11:00:00:00:0$((i + 1))" netns "$ns"
in_switch ip link set "v$i" master br0 up
in_node() { nsenter --net="$ns" "$@"; }
in_node ip link set lo up
in_node ip addr add "$(node_ip "$i")/24" dev eth0
in_node ip link set eth0 up
in_node ip route add default via "$HEAD_IP"
# Its own control groups, of which it sees nothing but the inside.
group=$(cat "$S/group")/node$i
for hierarchy in "$S"/cgroup/*; do
    [ -d "$hierarchy" ] || continue
    own=$(cgroup_own "$hierarchy")
    mkdir -p "$own/$group"
    if [ -e "$own/$group/cpuset.cpus" ] && [ ! -e "$own/$group/cgroup.controllers" ]; then
        for part in "$own/${group%/*}" "$own/$group"; do
            cat "$own/cpuset.cpus" >"$part/cpuset.cpus"
            cat "$own/cpuset.mems" >"$part/cpuset.mems"
        done
    fi
    if [ -e "$own/cgroup.controllers" ]; then
        # Version 2 allows a group processes or controllers for groups below, not both.
        for part in "$own" "$own/${group%/*}" "$own/$group"; do
            read -ra controllers <"$part/cgroup.controllers"
            for controller in "${controllers[@]}"; do
                echo "+$controller" >"$part/cgroup.subtree_control" 2>/dev/null || :
            done
        done
        mkdir -p "$own/$group/init"
        echo $$ >"$own/$group/init/cgroup.procs"
    else
        echo $$ >"$own/$group/cgroup.procs"
    fi
done
setsid nsenter --net="$ns" unshare --mount --uts --ipc --pid --cgroup --propagation unchanged --fork --kill-child=KILL \
    "$CLUSTER_DIR/node_init.sh" "$S" "$i" </dev/null >>"$S/log/node$i.log" 2>&1 &
record_process "$N/pid" $!
