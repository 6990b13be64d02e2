#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: fleet
# `reperf nodes bench` over four real nodes, one of them slowed as the kernel can: its link by a token bucket, its processors by a quota, its disk by a limit of
# what it writes, its memory by other processes. TRIES=10 for more than one try of each, then also that no other node is named, and as many tries of four equal
# nodes: only a machine that has nothing else to do shows that.
# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
cluster_reset || exit 1
: "${TRIES:=1}"
I="$S/inventory-none.json"
jq '.nodes[].gpus = 0' "$I" >"$T/four.json"
# One try of each is a quick test of a busy machine, whose figures are far apart; ten are judged as users' nodes are.
jq '.deviations = 2 | .measures[].share |= (if . == null then null else 0.5 end)' manifests/node-bench.json >"$T/limits.json"
LIMITS=()
[ "$TRIES" -gt 1 ] || LIMITS=(--confirm 0 --limits "$T/limits.json")
# shellcheck disable=SC2317 # by exits
bench() { "$REPERF" nodes bench "$T/four.json" --fanout 1 --json "${LIMITS[@]}" "$@"; }
found() { # FAULT ERE OPTION...: the node that has the fault is named with the figure that gives it away
    exits 1 "try $try: node$node with $1" bench "${@:3}"
    like "$(jq -r '.outliers[] | select(startswith("'"node$node"'"))' "$T/out")" "^node$node: $2 [0-9]+ % of its group's median \\(" "is named with the figure that gives it away"
    [ "$TRIES" = 1 ] || is "$(jq -r '[.nodes[] | select(any(.figures[]; .verdict == "outlier")) | .node] | join(" ")' "$T/out")" "node$node" "and no other node"
}
for ((try = 1; try <= TRIES; try++)); do
    node=$((1 + try % 4))
    # All of them so slow that they stand out among neighbours whose figures a busy machine spreads by a factor of two.
    node_rate "$node" 60mbit
    found "a link of 60 Mbit/s" "(send|receive)" --only net --sample-ms 20 --repeats 3
    node_no_rate "$node"
    if node_cpu "$node" 8; then
        found "a twelfth of a processor" "FP(32|64) (core|all)" --only flops --sample-ms 10 --repeats 3
        node_cpu "$node" 0
    else
        skip "try $try: a node with a twelfth of a processor" "the nodes have no control group of their own"
    fi
    if node_disk_rate "$node" 2000000; then
        found "a disk that writes 2 MB/s" "disk write" --only disk --disk-mib 2 --repeats 3
        node_disk_rate "$node" 0
    else
        skip "try $try: a node with a slow disk" "the nodes' disk cannot be slowed: no block device, or no control group of its own"
    fi
    node_hog "$node"
    found "another's processes in its memory" "memory" --only memory --memory-mib 48 --repeats 21
    node_hog_end "$node"
done
for ((try = 1; try <= TRIES && TRIES > 1; try++)); do
    exits 0 "try $try: four equal nodes have no outlier" bench --only flops --only net --only memory --memory-mib 192
done
tap_done
