#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Brings a cluster of four nodes up and prints its folder: up.sh [--private] [--owner PID]
#   --private    the head is a network namespace of its own, not this machine: it can clash with nothing; enter it with shell.sh
#   --owner PID  the cluster is taken down when this process ends; otherwise it stays until down.sh
# The folder is $REPERF_CLUSTER, or a new one; where this machine is the head of one already, it is that one's. Nothing else goes to stdout. Ends with 77 and says why where there can be no cluster.
set -eu
# shellcheck source=tests/cluster/env.sh
. "$(dirname "$0")/env.sh"
net=shared owner=0
while [ $# -gt 0 ]; do
    case $1 in
    --private) net=private ;;
    --owner)
        owner=$2
        shift
        ;;
    *)
        echo "usage: up.sh [--private] [--owner PID]" >&2
        exit 2
        ;;
    esac
    shift
done
if ! why=$(cluster_needs); then
    echo "no test cluster here: $why" >&2
    exit 77
fi
cluster_sweep
no_docker_said() { [ ! -s "$1/no-docker" ] || echo "no containers in this cluster: $(cat "$1/no-docker")" >&2; } # STATE
if [ "$net" = shared ] && state=$(cluster_shared); then
    if [ "$owner" != 0 ] || [ "${REPERF_CLUSTER:-$state}" != "$state" ]; then
        echo "a cluster is up already: $state; down.sh takes it down" >&2
        exit 1
    fi
    # shellcheck disable=SC2317
    is_settled() { [ -e "$state/ready" ] || ! cluster_is_up "$state"; }
    if ! wait_for 240 is_settled || [ ! -e "$state/ready" ]; then
        echo "the cluster in $state did not come up" >&2
        exit 1
    fi
    no_docker_said "$state"
    echo "$state"
    exit 0
fi
if [ "$net" = shared ] && ip link show "$HEAD_LINK" >/dev/null 2>&1; then
    echo "$HEAD_LINK is a link of this machine, but of no cluster that is up" >&2
    exit 1
fi
if [ "$net" = shared ] && ip -4 route get "$(node_ip 1)" 2>/dev/null | grep -qvE ' via | dev lo |cache'; then
    echo "10.11.0.0/24 is a network of this machine: use --private" >&2
    exit 1
fi
owner_start=0
if [ "$owner" != 0 ]; then
    owner_start=$(start_time "$owner") || {
        echo "there is no process $owner" >&2
        exit 2
    }
fi
if [ -n "${REPERF_CLUSTER:-}" ]; then
    state=$REPERF_CLUSTER
    if [ -e "$state" ]; then
        echo "$state exists" >&2
        exit 1
    fi
    mkdir -p "$state"
else
    state=$(mktemp -d "${TMPDIR:-/tmp}/reperf-cluster.XXXXXX")
fi
state=$(cd "$state" && pwd)
chmod 755 "$state"
# Locked before it is listed: a cluster that begins beside this one would take it for a dead one. The watcher has the lock from here.
exec 8>"$state/alive"
flock 8
# Whoever removes the last entry removes the list.
until mkdir -p "$CLUSTER_LIST" && echo "$state" 2>/dev/null >"$CLUSTER_LIST/${state##*/}"; do sleep 0.05; done
: >"$state/starting"
echo "$net" >"$state/net"
echo "$owner" >"$state/owner"
echo "reperf-cluster.$$.$RANDOM" >"$state/group"
setsid "$CLUSTER_DIR/watch.sh" "$state" "$net" "$owner" "$owner_start" $$ "$(start_time $$)" </dev/null >"$state/watch.log" 2>&1 &
watcher=$!
exec 8>&-
has_started() { [ -e "$state/ready" ] || ! kill -0 "$watcher" 2>/dev/null; }
if ! wait_for 240 has_started || [ ! -e "$state/ready" ]; then
    echo "the cluster did not come up:" >&2
    tail -n 20 "$state"/*.log >&2 2>/dev/null || :
    kill "$watcher" 2>/dev/null || :
    exit 1
fi
rm -f "$state/starting"
no_docker_said "$state"
echo "$state"
