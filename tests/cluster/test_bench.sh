#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `reperf nodes bench` over four real nodes, one of them slowed as the kernel can: its link by a token bucket, its processors by a quota. TRIES=10 for more
# than one try of each, then also that no other node is named, and as many tries of four equal nodes: only a machine that has nothing else to do shows that.
# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
cluster_reset || exit 1
: "${TRIES:=1}"
I="$S/inventory-none.json"
jq '.nodes[].gpus = 0' "$I" >"$T/four.json"
# shellcheck disable=SC2317 # by exits
bench() { "$REPERF" nodes bench "$T/four.json" --fanout 1 --json "$@"; }
named() { jq -r '.outliers[] | select(startswith("'"$1"'"))' "$T/out"; } # NODE
for ((try = 1; try <= TRIES; try++)); do
    node=$((1 + try % 4))
    # So slow that it stands out among neighbours whose rates a busy machine spreads by a factor of two.
    node_rate "$node" 60mbit
    exits 1 "try $try: node$node with a link of 60 Mbit/s" bench --only net --sample-ms 20 --repeats 3
    like "$(named "node$node")" "^node$node: (send|receive) [0-9]+ % of its group's median \(" "is named with the figure that gives it away"
    [ "$TRIES" = 1 ] || is "$(jq -r '[.nodes[] | select(any(.figures[]; .verdict == "outlier")) | .node] | join(" ")' "$T/out")" "node$node" "and no other node"
    node_no_rate "$node"
    if ! node_cpu "$node" 8; then
        skip "try $try: a node with a twelfth of a processor" "the nodes have no control group of their own"
        continue
    fi
    exits 1 "try $try: node$node with a twelfth of a processor" bench --only flops --sample-ms 30 --repeats 5
    like "$(named "node$node")" "^node$node: FP(32|64) (core|all) [0-9]+ % of its group's median \(" "is named with the figure that gives it away"
    node_cpu "$node" 0
done
for ((try = 1; try <= TRIES && TRIES > 1; try++)); do
    exits 0 "try $try: four equal nodes have no outlier" bench --only flops --only net --only memory --memory-mib 192
done
tap_done
