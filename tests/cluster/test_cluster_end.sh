#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: fleet
# A cluster leaves nothing behind: taken down, its owner gone, up.sh killed half-way, its watcher killed with -9, its watcher and its reaper both. Runs in
# a network namespace of its own, as this machine would be, so that links and addresses can be compared too.
if [ -z "${REPERF_OWN_NET:-}" ] && [ "$(id -u)" -eq 0 ] && unshare --net true 2>/dev/null; then
    REPERF_OWN_NET=1 exec unshare --net "$0" "$@"
fi
# shellcheck source=tests/tap_lib.sh
. "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/cluster/env.sh
. "$ROOT/tests/cluster/env.sh"
# shellcheck disable=SC2317
{
    unset REPERF_CLUSTER
    if ! why=$(cluster_needs); then
        skip "a cluster leaves nothing behind" "$why"
        tap_done
    fi
    ip link set lo up
    export TMPDIR="$T"
    C="$ROOT/tests/cluster"
    machine() { # what a cluster could leave on it: links, addresses, rules, mounts, named namespaces, what is listed, groups
        ip -o link | sed 's/^[0-9]*: //' | cut -d' ' -f1
        ip -o -4 addr
        iptables -S
        grep -F "$T" /proc/self/mounts
        ls /run/netns 2>/dev/null
        [ ! -d "$CLUSTER_LIST" ] || grep -rF "$T" "$CLUSTER_LIST"
        ls "$T"
    }
    processes() { # NAME-OF-GROUP STATE: those that are of a cluster, wherever they are
        echo "$2" >"$T.state"
        {
            grep -lsF "$1" /proc/[0-9]*/cgroup
            grep -lsaF -f "$T.state" /proc/[0-9]*/cmdline
        } | cut -d/ -f3 | sort -u | grep -cvx "$$"
    }
    groups() { find /sys/fs/cgroup -type d -name "$1" 2>/dev/null | wc -l; }
    before=$(machine)
    up() { # OPTION...
        S=$("$C/up.sh" "$@" 2>"$T.err") || return 1
        group=$(cat "$S/group")
        read -r watcher _ <"$S/watch.pid"
        read -r reaper _ <"$S/reap.pid"
    }
    is_swept() { [ ! -e "$S" ] && [ "$(processes "$group" "$S")" -eq 0 ] && [ "$(machine)" = "$before" ]; }
    nothing_left() { # NAME
        wait_for 120 is_swept
        is "$(machine)" "$before" "$1: the machine is as before"
        is "$(processes "$group" "$S") processes, $(groups "$group") groups" "0 processes, 0 groups" "$1: nothing runs on"
    }
    up
    ok $? "a cluster comes up $(cat "$T.err")"
    ok "$([ "$(processes "$group" "$S")" -gt 20 ]; echo $?)" "with processes that this test can see"
    ssh -F "$S/ssh_config" node4 hostname >"$T.out" 2>&1
    is "$(cat "$T.out")" node4 "which answers on this machine's network"
    leaves 0 output "$S" "a second call is no error, and prints the folder of the one that is up" "$C/up.sh"
    REPERF_CLUSTER="$T/other" exits 1 "a second one in another folder is refused" "$C/up.sh"
    like "$(cat "$T/err")" "is up already: $S; down.sh" "and the first is named"
    rm -f "$T/out" "$T/err"
    unshare --net "$C/down.sh"
    ok "$([ -e "$S/ready" ] && cluster_is_up "$S"; echo $?)" "down.sh in another network leaves it alone"
    succeeds "it is taken down" "$C/down.sh"
    nothing_left "down.sh"
    succeeds "taking down what is down is no error" "$C/down.sh"
    ip link add rp-head type veth peer name rp-other
    fails 1 '^rp-head is a link of this machine, but of no cluster that is up' "a link of the head's name that is no cluster's is an error" "$C/up.sh"
    ip link del rp-head
    rm -f "$T/out" "$T/err"

    sleep 3600 &
    owner=$!
    up --owner "$owner"
    kill -9 "$owner"
    wait "$owner" 2>/dev/null
    nothing_left "its owner killed"

    setsid "$C/up.sh" >"$T.out" 2>&1 &
    starter=$!
    has_nodes() { grep -qlF "$T" "$CLUSTER_LIST"/* 2>/dev/null && S=$(grep -hF "$T" "$CLUSTER_LIST"/*) && [ -s "$S/node2/pid" ]; }
    wait_for 120 has_nodes
    group=$(cat "$S/group")
    kill -9 "$starter"
    wait "$starter" 2>/dev/null
    nothing_left "up.sh killed half-way"

    up
    kill -9 "$watcher"
    nothing_left "its watcher killed"

    up
    kill -9 "$reaper" "$watcher"
    is_dead() { ! cluster_is_up "$S" && [ "$(processes "$group" "$S")" -eq 0 ]; }
    succeeds "watcher and reaper killed: the processes are gone nevertheless" wait_for 120 is_dead
    ok "$([ -d "$S" ]; echo $?)" "and its folder is left"
    old=$S
    wait_for 120 eval '! ip link show rp-head >/dev/null 2>&1'
    succeeds "another comes up" up
    ok "$([ ! -e "$old" ]; echo $?)" "and has removed it"
    "$C/down.sh"
    nothing_left "after that"
    rm -f "$T.err" "$T.out" "$T.state"
}
tap_done
