#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: fleet
# `nodes provision` on four nodes: pulled by each from the site's registry, or handed on from the head's store; and what goes wrong.
# shellcheck source=tests/cluster/lib.sh disable=SC2016,SC2317
. "$(dirname "$0")/lib.sh"
no_docker "images on four nodes" && tap_done
printf '#!/bin/sh\necho probe\n' >"$T/probe"
head -c 3000000 /dev/urandom >"$T/ballast" # so that a copy of it shows in bytes
pin=$(cluster_image test/images "$T/probe" "$T/ballast")
IMAGE="$HEAD_IP:$REGISTRY_PORT/$pin"
id="sha256:$(jq -r .config.digest "$S/registry/docker/registry/v2/blobs/sha256/$(cut -c1-2 <<<"${pin#*@sha256:}")/${pin#*@sha256:}/data" | cut -d: -f2)"
jq --arg r "$HEAD_IP:$REGISTRY_PORT" '.registry = $r | .runtime = "docker"' "$S/inventory.json" >"$T/registry.json"
jq '.registry = null | .runtime = "docker"' "$S/inventory.json" >"$T/store.json"
provision() { timeout 300 "$REPERF" nodes provision "$T/$1.json" --image "$IMAGE" --json; } # INVENTORY
ways() { jq -r '.images[0].nodes | map("\(.node) \(.way // "failed")") | join(" ")' "$T/out"; }
forget() { for i in $CLUSTER_NODES; do node_ssh "$i" "docker rmi -f $id >/dev/null 2>&1; true"; done; }
all() { echo "node1 $1 node2 $1 node3 $1 node4 $1"; }

# --- from the registry -----------------------------------------------------------------------------
leaves 0 ways "$(all pulled)" "an image for four nodes: each pulled it" provision registry
is "$(jq -r '.images[0].id' "$T/out")" "$id" "and has it by its id"
leaves 0 ways "$(all there)" "again: it is there" provision registry
node_ssh 2 "docker rmi -f $id" >/dev/null 2>&1
registry stop
leaves 4 ways "node1 there node2 failed node3 there node4 there" "one node lacks it, and the registry is down: that node's failure" provision registry
like "$(cat "$T/err")" "node2: .*connection refused" "with its name and cause"
registry start
forget
registry_corrupt "$pin"
leaves 5 ways "$(all failed)" "a corrupt layer is taken by none" provision registry
registry_mend
node_docker_stop 3
leaves 7 ways "node1 pulled node2 pulled node3 failed node4 pulled" "a node whose dockerd is dead does not keep the others from it" provision registry
like "$(cat "$T/err")" "node3: .*aemon" "and is named"
node_docker_start 3

# --- handed on from the store ------------------------------------------------------------------------
forget
exits 2 "no registry, and not in the store" provision store
exits 0 "fetched once" "$REPERF" fetch "image:$IMAGE" --insecure-registry "$HEAD_IP:$REGISTRY_PORT"
registry stop
leaves 0 ways "$(all loaded)" "an image for four nodes without a registry: each loaded it" provision store
is "$(jq -r '.images[0].id' "$T/out")" "$id" "as the same image"
like "$(jq '.images[0] | .head_bytes < 2 * .tar_bytes and .head_bytes >= .tar_bytes' "$T/out")" true \
    "the head sent it about once: $(jq -c '.images[0] | [.head_bytes, .tar_bytes]' "$T/out")"
# shellcheck disable=SC2016
is "$(for i in $CLUSTER_NODES; do node_ssh "$i" 'ls "${XDG_STATE_HOME:-$HOME/.local/state}"/reperf/images /var/lib/reperf/images 2>/dev/null' | grep -c tar; done | sort -u | xargs)" 0 \
    "no tar is left on a node"
is "$(find "$REPERF_STORE/tmp" -name 'image-*' | wc -l)" 0 "nor here"
leaves 0 ways "$(all there)" "again: it is there" provision store
node_ssh 2 "docker rmi -f $id" >/dev/null 2>&1
node_ssh 4 "docker rmi -f $id" >/dev/null 2>&1
leaves 0 ways "node1 there node2 loaded node3 there node4 loaded" "two nodes lack it: only they are given it" provision store
node_ssh 2 "docker rmi -f $id" >/dev/null 2>&1
node_docker_stop 4
leaves 7 ways "node1 there node2 loaded node3 there node4 failed" "a dead dockerd does not keep the others from it" provision store
registry start
node_docker_start 4
forget
cluster_reset
tap_done
