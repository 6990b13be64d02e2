#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: run
# `reperf run node-health --each-node` over four real nodes with the real fio, iperf3 and likwid-bench, one of them slowed as the kernel can: its link by a token
# bucket. WHOLE=1: every case of the report, twice. What equal nodes of one busy machine measure is far apart, so the limits here are wide, and no test requires
# that another node is quiet: tests/unit/test_health.c does, with seeded noise.
# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
cluster_reset || exit 1
if no_docker "node-health on four nodes in containers"; then tap_done; fi
PROGRAMS=()
# The last three are what likwid-bench looks for before it begins.
for program in fio iperf3 likwid-bench timeout bash likwid-accessD; do
    PROGRAMS+=("$(command -v "$program")") || { skip "node-health on four nodes" "$program is not installed"; tap_done; }
done
mkdir -p "$T/extra/var/tmp" "$T/extra/usr/bin"
# shellcheck disable=SC2016 # the image's shell expands it
printf '#!/bin/sh\ncommand -v "$1"\n' >"$T/extra/usr/bin/which"
chmod 755 "$T/extra/usr/bin/which"
image=$HEAD_IP:$REGISTRY_PORT/$(EXTRA="$T/extra" cluster_image test/node-health "${PROGRAMS[@]}" "$B/reperf-train")
jq '.nodes[].gpus = 0' "$S/inventory.json" >"$T/four.json"
# Disks and memory of one machine are whatever the other nodes leave of them: only the slowed link is to be found.
jq '.deviations = 2 | .limits |= map(.share = if .cases == "network*" then 0.6 else 0.98 end)' manifests/node-health.json >"$T/limits.json"
CASES=(--case 'disk-write/*' --case 'memory/*' --case 'network/*' --repeats 1)
[ -z "${WHOLE:-}" ] || CASES=(--repeats 2)
# shellcheck disable=SC2317 # by exits
health() { # OPTION...: one unit at a time, because the nodes are one machine
    "$REPERF" run node-health --profile smoke --nodes "$T/four.json" --each-node --columns --offline --image "node-health=$image" "${CASES[@]}" --limits "$T/limits.json" "$@"
}
findings() { jq -r '.health.findings[]' "$T/out"; }

# ---- a slow link ----
node_rate 3 40mbit
exits 1 "a node whose link has 40 Mbit/s" health --name slow --json
node_no_rate 3
cp "$T/out" "$T/slow.json"
valid run-output "the document is as its schema says" "$T/slow.json"
cp "$T/slow.json" "$T/out"
like "$(findings)" '^node3: network/iperf3/unstated/n2g0/bs0: [0-9.]+ % of the median of its kind \(' "is named with the figure that gives it away"
is "$(jq -r '[.cells[].case | select(startswith("network/")) | split("/")[-1]] | join(" ")' "$T/out")" "node1+node2 node2+node3 node3+node4 node1+node4" "each pair of neighbours is a case"
is "$(jq -r '[.cells[] | select(.case | startswith("memory/")) | .case | split("/")[-1]] | join(" ")' "$T/out")" "node1 node2 node3 node4" "each node is one"
is "$(jq -r '[.cells[] | select(.value == null) | .case] | length' "$T/out")" 0 "everything was measured"
archive=$(jq -r .archive "$T/out")
exits 0 "its archive holds" "$REPERF" verify "$archive" --unsigned
exits 0 "and replays" "$REPERF" replay "$archive"
documents compare-output 1 "compare shows the nodes of the one run" "$REPERF" compare slow --limits "$T/limits.json" --json
prints 1 '^node3: network/iperf3/unstated/n2g0/bs0: [0-9.]+ %' "and of its archive, for people" "$REPERF" compare "$archive" --limits "$T/limits.json"

# ---- the gate ----
exits 6 "a run does not begin on nodes of which one is sick" "$REPERF" run paddle-perf-2020 --profile smoke --case 'resnet50/reperf/fp32/n1g1/*' --nodes "$T/four.json" \
    --gate "$archive" --limits "$T/limits.json" --image "reperf-cpu=$image"
like "$(cat "$T/err")" 'gate .*: node3: network/' "and says which"

tap_done
