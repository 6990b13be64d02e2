# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What all scripts of the test cluster share: names and addresses, whether this machine can run one, how a dead one is swept away.
# A cluster is one PID namespace: when its init goes, the kernel ends every process in it, and with them go its mounts, bridge, veths and
# network namespaces, which no other process holds. What may outlast it are its folder and control groups; cluster_clean removes them.
CLUSTER_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC2034
{
    HEAD_IP=10.11.0.1 HEAD_LINK=rp-head
    CLUSTER_NODES="1 2 3 4"
    REGISTRY_PORT=5000 GIT_PORT=9418 HTTP_PORT=80
    # What the nodes share, read-only, as podman's additional store of images: kept from one cluster to the next, beside the layers of images/build.sh.
    CLUSTER_IMAGES=${REPERF_IMAGES:-${XDG_CACHE_HOME:-$HOME/.cache}/reperf-images}/shared
}
CLUSTER_LIST=/run/reperf-cluster # one file for each cluster, up or dead: its content is its folder
node_ip() { echo "10.11.0.$(($1 + 1))"; }

# --- can there be one here? ------------------------------------------------------------------------
has_capability() { # BIT, of the effective set
    local caps
    caps=$(sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status)
    [ $(((0x$caps >> $1) & 1)) -eq 1 ]
}
cluster_needs() { # prints what is missing and fails
    local command missing=()
    if [ "$(id -u)" -ne 0 ]; then
        echo "it needs root"
        return 1
    fi
    for command in ip unshare nsenter setpriv flock iptables tc sshd ssh ssh-keygen docker-registry nginx fcgiwrap git curl jq mountpoint; do
        command -v "$command" >/dev/null || missing+=("$command")
    done
    if [ ${#missing[@]} -gt 0 ]; then
        echo "these programs are missing: ${missing[*]}"
        return 1
    fi
    if ! unshare --mount --propagation unchanged --pid --net --uts --ipc --fork true 2>/dev/null; then
        echo "this root may not make namespaces (CAP_SYS_ADMIN, CAP_NET_ADMIN)"
        return 1
    fi
    # shellcheck disable=SC2016
    if ! unshare --mount --propagation unchanged sh -c 'd=$(mktemp -d) && trap "umount \"$d\" 2>/dev/null; rm -rf \"$d\"" EXIT && mount -t tmpfs none "$d" &&
        mkdir "$d/l" "$d/u" "$d/w" "$d/m" && mount -t overlay none -o "lowerdir=$d/l,upperdir=$d/u,workdir=$d/w" "$d/m" && umount "$d/m"' 2>/dev/null; then
        echo "overlay file systems cannot be mounted here"
        return 1
    fi
}

# --- processes by id and start time: an id alone may have been given to another since ---------------
read_start() { # PID: START, in clock ticks since boot; fails where there is none
    local stat
    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
    stat=${stat##*) }
    # shellcheck disable=SC2086
    set -- $stat
    [ "$1" != Z ] && START=${20}
}
start_time() { read_start "$1" && echo "$START"; }                               # PID
is_same_process() { [ -n "$1" ] && read_start "$1" && [ "$START" = "$2" ]; } # PID START
record_process() { echo "$2 $(start_time "$2")" >"$1"; }               # FILE PID
recorded_alive() { # FILE: prints the pid
    local pid start
    { read -r pid start <"$1"; } 2>/dev/null || return 1
    is_same_process "$pid" "$start" && echo "$pid"
}
pause() { # SECONDS; what waits asks twenty times a second, and `sleep` is a program: into this pipe nobody writes
    [ -n "${NOBODY-}" ] || exec {NOBODY}<> <(:)
    read -rt "$1" -u "$NOBODY" || :
}
wait_for() { # SECONDS COMMAND...: until it succeeds
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        pause 0.05
    done
}

# --- control groups ----------------------------------------------------------------------------------
# All hierarchies of this machine, mounted below a folder in a mount namespace of our own: v1 one folder each, v2 the folder "unified".
cgroup_mount() { # FOLDER
    local line id names
    mkdir -p "$1"
    while IFS= read -r line; do
        id=${line%%:*} names=${line#*:} names=${names%%:*}
        if [ "$id" = 0 ]; then
            mkdir -p "$1/unified"
            mount -t cgroup2 cgroup2 "$1/unified" 2>/dev/null || rmdir "$1/unified"
        else
            mkdir -p "$1/${names#name=}"
            mount -t cgroup -o "$([ "$names" = "${names#name=}" ] && echo "$names" || echo "none,$names")" cgroup "$1/${names#name=}" 2>/dev/null ||
                rmdir "$1/${names#name=}"
        fi
    done </proc/self/cgroup
    [ -n "$(ls -A "$1")" ]
}
cgroup_own() { # FOLDER-OF-HIERARCHY: this process's group in it; the root's where v2 forbids groups below one with processes
    local name=${1##*/} line path
    if [ "$name" = unified ]; then
        echo "$1"
        return
    fi
    while IFS= read -r line; do
        path=${line#*:} path=${path%%:*}
        if [ "${path#name=}" = "$name" ]; then
            path=$1${line#*:*:}
            [ -d "$path" ] && echo "${path%/}" || echo "$1"
            return
        fi
    done </proc/self/cgroup
}
# Run inside a mount namespace of its own.
cgroup_remove() { # STATE
    local mounts groups group
    group=$(cat "$1/group" 2>/dev/null) && [ -n "$group" ] || return 0
    mounts=$(mktemp -d) || return 1
    mount -t tmpfs none "$mounts" && cgroup_mount "$mounts"
    for _ in $(seq 100); do
        mapfile -t groups < <(find "$mounts" -depth -type d \( -path "*/$group" -o -path "*/$group/*" \) 2>/dev/null)
        [ ${#groups[@]} -gt 0 ] || break
        rmdir "${groups[@]}" 2>/dev/null || sleep 0.05
    done
    umount -R "$mounts" && rmdir "$mounts"
    [ ${#groups[@]} -eq 0 ]
}

# --- clusters that there are, and were -------------------------------------------------------------
cluster_is_up() { [ -e "$1/alive" ] && ! flock --nonblock "$1/alive" true; } # STATE
cluster_clean() { # STATE, of a dead one: its groups, its folder, its entry in the list
    local state=$1 entry
    [ -n "$state" ] && [ -e "$state/alive" ] || return 0
    # shellcheck disable=SC2016
    unshare --mount --propagation unchanged bash -c '. "$1/env.sh"; mount --make-rprivate / 2>/dev/null; cgroup_remove "$2"' bash "$CLUSTER_DIR" "$state" ||
        echo "control groups of $state are left" >&2
    for entry in "$CLUSTER_LIST"/*; do
        [ -f "$entry" ] && [ "$(cat "$entry")" = "$state" ] && rm -f "$entry"
    done
    # Two may be at it at once; what one takes away under the other's hands is no error. "alive" goes last, so that a cleaning cut short is done again.
    for _ in 1 2 3; do
        find "$state" -mindepth 1 -maxdepth 1 ! -name alive -exec rm -rf --one-file-system {} + 2>/dev/null
        rm -rf --one-file-system "$state" 2>/dev/null && break
        sleep 0.2
    done
    rmdir "$CLUSTER_LIST" 2>/dev/null || :
}
cluster_list() { # the folders of all that are listed
    local entry
    for entry in "$CLUSTER_LIST"/*; do
        [ -f "$entry" ] && cat "$entry"
    done
}
cluster_shared() { # the folder of the one whose head is this machine: others may be up in networks of their own
    local state pid
    while IFS= read -r state; do
        if [ "$(cat "$state/net" 2>/dev/null)" = shared ] && pid=$(recorded_alive "$state/watch.pid") && [ "/proc/$pid/ns/net" -ef /proc/self/ns/net ]; then
            echo "$state"
            return 0
        fi
    done < <(cluster_list)
    return 1
}
cluster_sweep() { # removes what dead ones left
    local state
    while IFS= read -r state; do
        if [ ! -e "$state/alive" ]; then
            grep -lxF "$state" "$CLUSTER_LIST"/* 2>/dev/null | xargs -r rm -f
        elif ! cluster_is_up "$state"; then
            cluster_clean "$state"
        fi
    done < <(cluster_list)
}
# A command inside the cluster's own process, mount and (head's) network namespaces; pids in the cluster's files are seen from there.
cluster_do() { # STATE COMMAND...
    local init
    init=$(recorded_alive "$1/init.pid") || {
        echo "the cluster of $1 is not up" >&2
        return 1
    }
    shift
    nsenter --target "$init" --pid --mount --net --root --wdns="$PWD" "$@"
}
