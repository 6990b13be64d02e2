#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The first process of a cluster: cluster_init.sh STATE. It makes bridge and head, starts the head's servers and the four nodes, writes what
# clients need (ssh_config, known_hosts, inventories), says "ready", and stays.
set -eu
# shellcheck source=tests/cluster/env.sh
. "$(dirname "$0")/env.sh"
S=$1
mount --make-rprivate / 2>/dev/null || echo "the root is no mount point (a chroot): mounts keep their propagation"
mount -t proc proc /proc
ip link set lo up
mkdir -p "$S"/{ns,log,cgroup,ssh,registry,http,git,shared,run}
chmod 1777 "$S/shared"
mkdir -p "$CLUSTER_IMAGES"/overlay-{images,layers} "$CLUSTER_IMAGES/overlay"
touch "$CLUSTER_IMAGES"/overlay-images/images.lock "$CLUSTER_IMAGES"/overlay-layers/layers.lock
mount -t tmpfs -o mode=755 none "$S/cgroup"
cgroup_mount "$S/cgroup" || echo "no control groups can be mounted"

# The bridge has a network namespace of its own, so that no firewall of this machine sees its packets.
: >"$S/ns/switch"
unshare --net="$S/ns/switch" true
in_switch() { nsenter --net="$S/ns/switch" "$@"; }
in_switch sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1 2>/dev/null || :
in_switch sysctl -qw net.bridge.bridge-nf-call-iptables=0 2>/dev/null || :
in_switch ip link add br0 type bridge
in_switch ip link set br0 up
ip link add "$HEAD_LINK" address 02:11:00:00:00:01 type veth peer name head netns "$S/ns/switch"
in_switch ip link set head master br0 up
ip addr add "$HEAD_IP/24" dev "$HEAD_LINK"
ip link set "$HEAD_LINK" up

# Keys: one of the caller, and one host key a node, so that known_hosts is right from the start.
ssh-keygen -q -t ed25519 -N '' -C cluster -f "$S/ssh/key"
for i in $CLUSTER_NODES; do
    mkdir -p "$S/node$i"
    ssh-keygen -q -t ed25519 -N '' -C "node$i" -f "$S/node$i/host_key"
    echo "node$i,$(node_ip "$i") $(cut -d' ' -f1,2 "$S/node$i/host_key.pub")"
done >"$S/ssh/known_hosts"
{
    for i in $CLUSTER_NODES; do
        printf 'Host node%s %s\n  HostName %s\n' "$i" "$(node_ip "$i")" "$(node_ip "$i")"
    done
    cat <<CONFIG
Host node* 10.11.0.*
  User root
  IdentityFile $S/ssh/key
  IdentitiesOnly yes
  BatchMode yes
  StrictHostKeyChecking yes
  UserKnownHostsFile $S/ssh/known_hosts
  GlobalKnownHostsFile /dev/null
  ConnectTimeout 5
CONFIG
} >"$S/ssh_config"
inventory() { # ID TITLE RUNTIME
    local i comma=
    printf '{\n  "schema_version": 1,\n  "id": "%s",\n  "title": "%s",\n  "remote": "ssh",\n  "runtime": "%s",\n' "$1" "$2" "$3"
    printf '  "registry": "%s",\n  "head_address": "%s",\n  "nodes": [\n' "$HEAD_IP:$REGISTRY_PORT" "$HEAD_IP"
    for i in $CLUSTER_NODES; do
        printf '%s    {"name": "node%s", "address": "%s", "port": 22, "user": "root", "gpus": 8, "fast_address": null, "work_folder": "/var/lib/reperf", "groups": ["all"]}' \
            "$comma" "$i" "$(node_ip "$i")"
        comma=$',\n'
    done
    printf '\n  ],\n  "source": null\n}\n'
}
inventory cluster "four nodes on one machine, containers" docker >"$S/inventory.json"
inventory cluster-bare "four nodes on one machine, no containers" none >"$S/inventory-none.json"

for service in registry http git; do
    "$CLUSTER_DIR/service.sh" "$S" start "$service"
done
for i in $CLUSTER_NODES; do
    "$CLUSTER_DIR/node_up.sh" "$S" "$i"
done
for i in $CLUSTER_NODES; do
    "$CLUSTER_DIR/node_wait.sh" "$S" "$i"
done
: >"$S/ready"
# Child processes of dead ones end up here; bash collects them while it waits.
while :; do
    sleep 3600 &
    wait $! || :
done
