#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a cluster's init and ends it when its owner ends, when up.sh dies before it is up, or on SIGTERM: watch.sh STATE shared|private OWNER
# OWNER-START STARTER STARTER-START. Killed itself, it takes the init with it (the parent's death signal), and its reaper, a process of
# another session, removes what is left. So each of these may be killed with -9, and nothing stays. Descriptor 8 has the lock of STATE/alive, which
# the init's processes keep.
# shellcheck source=tests/cluster/env.sh
. "$(dirname "$0")/env.sh"
state=$1 net=$2 owner=$3 owner_start=$4 starter=$5 starter_start=$6
record_process "$state/watch.pid" $$
# shellcheck disable=SC2094
setsid "$CLUSTER_DIR/reap.sh" "$state" 8>&- </dev/null >/dev/null 2>&1 &
record_process "$state/reap.pid" $!
own_net=()
[ "$net" = shared ] || own_net=(--net)
setpriv --pdeathsig KILL unshare "${own_net[@]}" --mount --propagation unchanged --pid --fork --kill-child=KILL \
    "$CLUSTER_DIR/cluster_init.sh" "$state" >"$state/init.log" 2>&1 &
init_parent=$!
exec 8>&-
find_init() { # of unshare: its only child
    local child
    child=$(cat "/proc/$init_parent/task/$init_parent/children" 2>/dev/null) && [ -n "$child" ] && [ -n "$(start_time "${child%% *}")" ] &&
        record_process "$state/init.pid" "${child%% *}"
}
ending=
trap 'ending=1' TERM INT HUP
wait_for 240 find_init
while [ -z "$ending" ] && kill -0 "$init_parent" 2>/dev/null; do
    [ "$owner" = 0 ] || is_same_process "$owner" "$owner_start" || break
    [ ! -e "$state/starting" ] || is_same_process "$starter" "$starter_start" || [ -e "$state/ready" ] || break
    pause 0.2
done
kill -9 "$init_parent" 2>/dev/null
wait 2>/dev/null "$init_parent"
reaper=$(recorded_alive "$state/reap.pid") || {
    wait_for 120 flock --nonblock "$state/alive" true
    cluster_clean "$state"
    exit
}
wait "$reaper"
