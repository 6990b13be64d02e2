#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: fleet
# `reperf nodes` over four real nodes: list, exec, doctor, and what each says when a node fails.
# shellcheck source=tests/cluster/lib.sh disable=SC2016,SC2317
. "$(dirname "$0")/lib.sh"
cluster_reset || exit 1
I="$S/inventory.json"
valid inventory "the cluster's inventory is valid" "$I"
valid inventory "and the one without containers" "$S/inventory-none.json"
exits 0 "list" "$REPERF" nodes list "$I" --json
is "$(jq -r '.nodes[] | "\(.name) \(.address) \(.gpus)"' "$T/out" | tr '\n' ',')" "node1 10.11.0.2 8,node2 10.11.0.3 8,node3 10.11.0.4 8,node4 10.11.0.5 8," "all four"

# --- exec
exits 0 "exec on all" "$REPERF" nodes exec "$I" --json -- hostname
is "$(jq -r '.nodes[] | "\(.node) \(.exit_status) \(.output)"' "$T/out" | tr '\n' ',')" "node1 0 node1,,node2 0 node2,,node3 0 node3,,node4 0 node4,," "each answers for itself"
exits 0 "a node set" "$REPERF" nodes exec -w 'node[2-3]' "$I" --json -- cat /etc/hostname
is "$(jq -r '.nodes[].output' "$T/out" | tr -d '\n')" node2node3 "only those"
answers 0 '.nodes[0].output' "a b|it's|\$HOME|*||" "words are passed as they are: no shell eats them" "$REPERF" nodes exec -w node1 "$I" --json -- printf '%s|' 'a b' "it's" '$HOME' '*' ''
"$REPERF" nodes exec -b "$I" -- sh -c 'echo same' >"$T/out" 2>"$T/err"
like "$(cat "$T/out")" '^node\[1-4\]: same$' "equal output is one block"
"$REPERF" nodes exec "$I" -- sh -c '[ "$(hostname)" != node3 ] || exit 4' >"$T/out" 2>"$T/err"
is $? 4 "a command that fails on one node gives its status"
like "$(cat "$T/err")" 'node3.*status 4' "and the node is named"
head -c 3000000 /dev/urandom >"$S/shared/blob"
want=$(sha256sum <"$S/shared/blob" | cut -c1-64)
exits 0 "exec of much output" "$REPERF" nodes exec -w node2 "$I" -- sh -c "base64 <'$S/shared/blob'"
is "$(sed 's/^node2: //' "$T/out" | base64 -d | sha256sum | cut -c1-64)" "$want" "3 MB arrive whole"
rm -f "$S/shared/blob"

# --- nodes that fail
node_off 4
node_new_key 3
exits 0 "the others do not suffer" "$REPERF" nodes exec -w 'node[1-2]' "$I" -- true
fails 5 'node3.*host key' "a changed host key is named" "$REPERF" nodes exec -w node3 "$I" -- true
node_old_key 3
node_refuse_key 2
exits 5 "a refused key: status 5" "$REPERF" nodes exec -w node2 "$I" -- true
node_accept_key 2
# The one that is off is given a second to answer; so are no others.
{ printf 'Host node4 %s\n  ConnectTimeout 1\n' "$(node_ip 4)" && cat "$S/ssh_config"; } >"$T/ssh_config"
export REPERF_SSH_CONFIG="$T/ssh_config"
exits 6 "a node that is off: status 6" "$REPERF" nodes exec "$I" --json -- hostname
is "$(jq -r '.nodes[] | "\(.node) \(.exit_status) \(.error == null)"' "$T/out" | tr '\n' ',')" "node1 0 true,node2 0 true,node3 0 true,node4 null false," "only that one, and the others' output is there"

# --- doctor
tells 6 'node4' "doctor with a node that is off, which is named" "$REPERF" nodes doctor "$I" --json
export REPERF_SSH_CONFIG="$S/ssh_config"
node_on 4
"$REPERF" nodes doctor "$I" --json >"$T/doctor.json" 2>"$T/err"
is $? 6 "doctor: the GPUs that the inventory claims are not there"
is "$(jq -r '[.nodes[].node? // .nodes[].name] | join(" ")' "$T/doctor.json")" "node1 node2 node3 node4" "of all four nodes"
jq '.nodes[].gpus = 0' "$I" >"$T/no-gpus.json"
exits 0 "doctor without GPUs asked for" "$REPERF" nodes doctor "$T/no-gpus.json"
if ! no_docker "doctor sees a dead engine"; then
    node_docker_stop 2
    prints 6 'FAILS.*node2' "a dead engine, which is named" "$REPERF" nodes doctor "$T/no-gpus.json"
    node_docker_start 2
fi
# --- provision
if ! no_docker "provision"; then
    printf '#!/bin/sh\necho provisioned\n' >"$T/probe"
    image=$(cluster_image test/provision "$T/probe")
    pin="$HEAD_IP:$REGISTRY_PORT/$image"
    exits 0 "provision brings an image to all nodes" "$REPERF" nodes provision "$I" --image "$pin" --json
    is "$(for i in $CLUSTER_NODES; do node_ssh "$i" "docker run --rm --pull=never $pin probe"; done | sort | uniq -c | awk '{ print $1, $2 }')" "4 provisioned" "each can run it"
    exits 0 "again" "$REPERF" nodes provision "$I" --image "$pin"
    gone="$HEAD_IP:$REGISTRY_PORT/test/provision@sha256:$(printf 'ab%.0s' $(seq 32))"
    exits 7 "a digest that is not there: status 7" "$REPERF" nodes provision "$I" --image "$gone"
    registry stop
    for i in $CLUSTER_NODES; do node_ssh "$i" 'docker image prune -af >/dev/null'; done
    exits 4 "a registry that is down: status 4" "$REPERF" nodes provision "$I" --image "$pin"
    registry start
fi
node_shell 1 'echo noise'
exits 0 "a login shell that prints does doctor no harm" "$REPERF" nodes doctor "$T/no-gpus.json"
node_shell_plain 1
succeeds "all is whole again" cluster_reset
tap_done
