# shellcheck shell=bash disable=SC2016
# SPDX-License-Identifier: Apache-2.0
# For tests on the cluster: source it first. It attaches to $REPERF_CLUSTER, or to the cluster that the run of tests/tap.sh has brought up already, or
# brings one up itself, which ends with its owner; the test then goes on in the network of the head. Where there can be no cluster, the whole script is
# one named skip. After that: tap_lib.sh, $S (the cluster's folder), the commands below that make faults, all of which cluster_reset undoes.
# shellcheck source=tests/cluster/env.sh
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
: "${TAP_OWNER:=$$}"
export TAP_OWNER
if [ -z "${REPERF_CLUSTER_INSIDE:-}" ]; then
    if [ -z "${REPERF_CLUSTER:-}" ]; then
        while IFS= read -r S; do
            [ "$(cat "$S/owner" 2>/dev/null)" != "$TAP_OWNER" ] || ! cluster_is_up "$S" || REPERF_CLUSTER=$S
        done < <([ ! -d "$CLUSTER_LIST" ] || cluster_list)
    fi
    if [ -z "${REPERF_CLUSTER:-}" ]; then
        if ! S=$("$CLUSTER_DIR/up.sh" --private --owner "$TAP_OWNER" 2>"${TMPDIR:-/tmp}/reperf-up.$$"); then
            why=$(tr '\n' ' ' <"${TMPDIR:-/tmp}/reperf-up.$$")
            rm -f "${TMPDIR:-/tmp}/reperf-up.$$"
            case $why in
            "no test cluster here: "*) echo "ok 1 - ${0##*/} # SKIP ${why% }" ;;
            *) echo "not ok 1 - the cluster comes up: $why" ;;
            esac
            echo 1..1
            case $why in "no test cluster here: "*) exit 0 ;; *) exit 1 ;; esac
        fi
        rm -f "${TMPDIR:-/tmp}/reperf-up.$$"
        REPERF_CLUSTER=$S
    fi
    export REPERF_CLUSTER REPERF_CLUSTER_INSIDE=1
    exec "$CLUSTER_DIR/shell.sh" "$REPERF_CLUSTER" "$0" "$@"
fi
S=$REPERF_CLUSTER
# shellcheck source=tests/tap_lib.sh
. "$CLUSTER_DIR/../tap_lib.sh"
export no_proxy='*' NO_PROXY='*'
export REPERF_SSH_CONFIG="$S/ssh_config"

# --- places ------------------------------------------------------------------------------------------
in_switch() { cluster_do "$S" nsenter --net="$S/ns/switch" "$@"; }
node_init_pid() { # NUMBER: process 1 of the node, as the cluster sees it
    cluster_do "$S" bash -c '. "$1/env.sh"; pid=$(recorded_alive "$2/pid") && child=$(cat "/proc/$pid/task/$pid/children") && echo "${child%% *}"' bash "$CLUSTER_DIR" "$S/node$1"
}
node_do() { # NUMBER COMMAND...: inside, whatever its network and sshd do
    local pid
    pid=$(node_init_pid "$1") && [ -n "$pid" ] || return 1
    shift
    cluster_do "$S" nsenter --target "$pid" --mount --uts --ipc --net --pid --cgroup --root --wdns=/ "$@"
}
node_ssh() { # NUMBER COMMAND...
    local node=$1
    shift
    ssh -F "$S/ssh_config" "node$node" "$@"
}
# A name is kept so that no test can mean another's: NAME of a node for messages.
no_docker() { # NAME: a named skip where no container engine runs on the nodes
    [ -s "$S/no-docker" ] || return 1
    skip "$1" "$(cat "$S/no-docker")"
}
cluster_image() { (cd "$ROOT" && B=$B tests/cluster/image.sh "$S" "$@"); } # [NAME [PROGRAM...]]: its NAME@DIGEST

# --- faults --------------------------------------------------------------------------------------------
node_cut() { in_switch ip link set "v$1" down; }
node_restore() { in_switch ip link set "v$1" up; }
node_off() { # as when its power goes: nothing is said on the network
    local pid
    node_cut "$1" 2>/dev/null
    cluster_do "$S" bash -c '. "$1/env.sh"; pid=$(recorded_alive "$2/pid") && kill -9 "$pid" && is_gone() { ! recorded_alive "$2/pid" >/dev/null; } && wait_for 120 is_gone x "$2"' \
        bash "$CLUSTER_DIR" "$S/node$1" || return 0
}
node_on() { cluster_do "$S" "$CLUSTER_DIR/node_up.sh" "$S" "$1" && cluster_do "$S" "$CLUSTER_DIR/node_wait.sh" "$S" "$1"; }
node_reboot() { node_off "$1" && node_on "$1"; }
# From inside, to all but process 1 and the sender.
node_freeze() { node_do "$1" /bin/bash -c 'kill -STOP -1'; }
node_thaw() { node_do "$1" /bin/bash -c 'kill -CONT -1'; }
# sshd makes itself anew at HUP, and for a moment nobody listens.
sshd_shows() { ssh-keyscan -T 10 -t ed25519 "$(node_ip "$1")" 2>/dev/null | grep -qF "$(ssh-keygen -y -f "$2" | cut -d' ' -f2)"; } # NUMBER KEY
node_give_key() { # NUMBER KEY
    node_do "$1" /bin/bash -c 'cat >/etc/ssh/ssh_host_ed25519_key && kill -HUP "$(cat /run/sshd.pid)"' <"$2" && wait_for 120 sshd_shows "$1" "$2"
}
node_new_key() { # another host key than known_hosts has
    rm -f "$S/new_key" "$S/new_key.pub"
    ssh-keygen -q -t ed25519 -N '' -f "$S/new_key"
    node_give_key "$1" "$S/new_key"
}
node_old_key() { node_give_key "$1" "$S/node$1/host_key"; }
node_refuse_key() { node_do "$1" mv /root/.ssh/authorized_keys /root/.ssh/authorized_keys.away; }
node_accept_key() { node_do "$1" mv /root/.ssh/authorized_keys.away /root/.ssh/authorized_keys; }
node_shell() { printf '%s\n' "$2" | node_do "$1" /bin/bash -c 'cat >/root/.bashrc'; } # NUMBER LINES: what its login shell runs first
node_shell_plain() { node_do "$1" rm -f /root/.bashrc; }
node_loss() { # NUMBER PERCENT: of the packets to it
    node_do "$1" iptables -A INPUT -i eth0 -m statistic --mode random --probability "$(awk "BEGIN { print $2 / 100 }")" -j DROP
}
node_no_loss() { node_do "$1" iptables -F INPUT; }
node_rate() { # NUMBER RATE (10mbit): to it and from it
    in_switch tc qdisc replace dev "v$1" root tbf rate "$2" burst 64k latency 200ms &&
        node_do "$1" tc qdisc replace dev eth0 root tbf rate "$2" burst 64k latency 200ms
}
node_no_rate() {
    in_switch tc qdisc del dev "v$1" root 2>/dev/null
    node_do "$1" tc qdisc del dev eth0 root 2>/dev/null
    return 0
}
node_disk() { node_do "$1" /bin/bash -c 'mkdir -p /var/lib/reperf && mount -t tmpfs -o "size=$1" none /var/lib/reperf' bash "$2"; } # NUMBER SIZE: a small one below its work folder
node_disk_fill() { node_do "$1" /bin/bash -c 'dd if=/dev/zero of=/var/lib/reperf/.fill bs=64k 2>/dev/null; true'; }
node_disk_end() { node_do "$1" umount -l /var/lib/reperf; }
node_memory() { # NUMBER BYTES (48m; 0: no limit): what all its containers may have together
    node_do "$1" /bin/bash -c 'cd /sys/fs/cgroup/memory/docker 2>/dev/null && { [ "$1" != 0 ] || set -- -1; echo "$1" >memory.limit_in_bytes; exit; }
        cd /sys/fs/cgroup/docker && { [ "$1" != 0 ] || set -- max; echo "$1" >memory.max; }' bash "$2"
}
node_docker_stop() { node_do "$1" /bin/bash -c 'pkill -9 -x dockerd; pkill -9 -x containerd; while pidof dockerd >/dev/null; do sleep 0.05; done'; }
node_docker_start() {
    node_do "$1" /bin/bash -c 'rm -f /run/docker.pid /run/docker/containerd/containerd.pid; setsid dockerd </dev/null >>/var/log/dockerd.log 2>&1 & echo $! >/run/docker.begun'
    cluster_do "$S" "$CLUSTER_DIR/node_wait.sh" "$S" "$1"
}
node_sshd_stop() { node_do "$1" /bin/bash -c 'pkill -9 -x sshd; while pidof sshd >/dev/null; do sleep 0.05; done'; } # with all sessions
node_sshd_start() { node_do "$1" /bin/bash -c 'pidof -s sshd >/dev/null || setsid /usr/sbin/sshd -D -e </dev/null >>/var/log/sshd.log 2>&1 & sleep 0.1'; }
registry() { cluster_do "$S" "$CLUSTER_DIR/service.sh" "$S" "$1" registry; } # stop|start|pause|resume
registry_corrupt() { # NAME@sha256:HEX: one byte of its first layer, of the same length
    local hex=${1#*@sha256:} blobs=$S/registry/docker/registry/v2/blobs/sha256 layer file
    layer=$(jq -r '.layers[0].digest' "$blobs/${hex:0:2}/$hex/data")
    layer=${layer#sha256:}
    file="$blobs/${layer:0:2}/$layer/data"
    cp "$file" "$S/layer.good"
    echo "$file" >"$S/layer.place"
    printf 'damaged!' | dd of="$file" bs=1 seek=700 conv=notrunc status=none
}
registry_mend() {
    [ ! -e "$S/layer.place" ] || { mv "$S/layer.good" "$(cat "$S/layer.place")" && rm -f "$S/layer.place"; }
}

# --- everything whole again ------------------------------------------------------------------------------
# The first bound is that of an answer; the second that of work: a framework's image of some gigabytes takes a busy machine a minute to remove.
node_is_well() {
    timeout 30 ssh -F "$S/ssh_config" "node$1" true 2>/dev/null || return 1
    timeout 300 ssh -F "$S/ssh_config" "node$1" 'rm -rf /var/lib/reperf; [ -z "$(docker ps -aq 2>/dev/null)" ] || docker rm -f $(docker ps -aq) >/dev/null
        [ ! -d /var/lib/containers/storage ] || podman rm -af >/dev/null
        mountpoint -q /var/lib/reperf && exit 1; docker image prune -af >/dev/null 2>&1' 2>/dev/null || { [ $? = 1 ] && [ -s "$S/no-docker" ]; }
}
node_reset() {
    node_restore "$1"
    node_thaw "$1" 2>/dev/null
    node_no_rate "$1"
    node_memory "$1" 0 2>/dev/null
    node_no_loss "$1" 2>/dev/null
    node_do "$1" /bin/bash -c 'rm -f /root/.bashrc; [ ! -e /root/.ssh/authorized_keys.away ] || mv /root/.ssh/authorized_keys.away /root/.ssh/authorized_keys
        while mountpoint -q /var/lib/reperf; do umount -l /var/lib/reperf; done
        cmp -s /etc/ssh/ssh_host_ed25519_key - || exit 1' <"$S/node$1/host_key" 2>/dev/null && node_is_well "$1" && return
    node_reboot "$1" && node_is_well "$1" && return
    echo "# node$1 cannot be made whole" >&2
    return 1
}
cluster_reset() { # all nodes at a time
    local i resets=() failed=0
    registry resume 2>/dev/null
    registry start
    registry_mend
    for i in $CLUSTER_NODES; do
        node_reset "$i" &
        resets+=($!)
    done
    for i in "${resets[@]}"; do wait "$i" || failed=1; done
    return $failed
}
slurm_is_up() { # NAME: over the four nodes; false, and a named skip, where there is no Slurm
    local why status
    why=$(tests/cluster/slurm_up.sh "$S" 2>&1)
    status=$?
    [ "$status" -ne 77 ] || { skip "$1" "$why" && return 1; }
    ok "$status" "$1: Slurm comes up $why"
    export SLURM_CONF="$S/slurm/slurm.conf"
}
