#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Takes clusters down, and says nothing where there is none: down.sh [STATE | --owned-by PID]; without: $REPERF_CLUSTER, else the one whose head is
# this machine, and whatever dead ones have left.
# shellcheck disable=SC2317
set -u
# shellcheck source=tests/cluster/env.sh
. "$(dirname "$0")/env.sh"
take_down() { # STATE
    local pid
    [ -e "$1/alive" ] || return 0
    pid=$(recorded_alive "$1/watch.pid") && kill -TERM "$pid" 2>/dev/null
    is_gone() { [ ! -e "$1/alive" ]; }
    if ! wait_for 15 is_gone "$1"; then
        for pid in watch init reap; do
            pid=$(recorded_alive "$1/$pid.pid") && kill -9 "$pid" 2>/dev/null
        done
        is_dead() { is_gone "$1" || flock --nonblock "$1/alive" true 2>/dev/null; }
        wait_for 120 is_dead "$1"
        cluster_clean "$1"
    fi
    [ ! -e "$1/alive" ] || {
        echo "$1 could not be removed" >&2
        return 1
    }
}
status=0
if [ "${1:-}" = --owned-by ]; then
    while IFS= read -r state; do
        [ "$(cat "$state/owner" 2>/dev/null)" != "$2" ] || take_down "$state" || status=1
    done < <(cluster_list)
    exit "$status"
fi
state=${1:-${REPERF_CLUSTER:-}}
if [ -n "$state" ]; then
    take_down "$state" || status=1
else
    ! state=$(cluster_shared) || take_down "$state" || status=1
    # The kernel takes links down in its own time.
    link_is_gone() { ! ip link show "$HEAD_LINK" >/dev/null 2>&1; }
    wait_for 120 link_is_gone || status=1
fi
[ "$(id -u)" -ne 0 ] || cluster_sweep
exit "$status"
