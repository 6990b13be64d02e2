#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: run
# The main job: the bundled ResNet-50 of a report, in FP32 with 4 ranks (in test-all all nine cases, with 1, 2 and 4), on four nodes over SSH, in containers
# pulled by digest from the registry, whose ranks train together; logs collected, judged, sealed, verified, replayed. Afterwards the nodes are as before.
# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cluster/fault_lib.sh
. "$(dirname "$0")/fault_lib.sh"
if no_docker "the main job on four nodes in containers"; then tap_done; fi
for i in $CLUSTER_NODES; do node_ssh "$i" 'docker image prune -af >/dev/null'; done
image=$(cluster_image reperf/cpu)
like "$image" '^reperf/cpu@sha256:[0-9a-f]{64}$' "the image of the built programs is in the registry"
pin="$HEAD_IP:$REGISTRY_PORT/$image"
ID=$(runs_id main)
cases='resnet50/reperf/fp32/n4g8/*' n_cases=1 last=6
! in_test_all "the main job in every precision, with one rank and two" || { cases='resnet50/reperf/*' n_cases=9 last=20 SHORT=(); }
RUN=("$REPERF" run paddle-perf-2020 --case "$cases" --profile smoke --nodes "$S/inventory.json" --image "reperf-cpu=$pin" --repeats 1 "${SHORT[@]}")
exits 0 "it can be planned" "${RUN[@]}" --dry-run
like "$(head -n 1 "$T/out")" " $n_cases of $n_cases cases?" "all $n_cases cases"
before=$(wc -l <"$S/log/registry.log")
exits 0 "the main job" "${RUN[@]}" --run-id "$ID" --json
cp "$T/out" "$T/run.json"
F="$REPERF_STATE/runs/$ID"
is "$(jq -r '.cells | length' "$T/run.json")" $n_cases "a cell each"
is "$(jq -r '.cells[] | select(.verdict != "not_comparable" or (.value | type) != "number" or .value <= 0) | .case' "$T/run.json")" "" "each with a value, which claims nothing"
ranks() { # CASE: the size of the world that its rank 0 trained in, and how many nodes' logs there are
    find "$F/evidence/logs/raw/$1" -type f -exec cat {} + | jq -rR 'fromjson? | select(.event == "run_start") | .ranks' | sort -u | tr '\n' ' '
    find "$F/evidence/logs/raw/$1" -type f | wc -l
}
[ $n_cases -eq 1 ] || is "$(ranks resnet50/reperf/fp32/n1g1/bs96) $(ranks resnet50/reperf/fp32/n1g8/bs96)" "1 1 2 1" "one rank, and two of one node"
is "$(ranks resnet50/reperf/fp32/n4g8/bs96)" "4 4" "four ranks of four nodes"
losses=$(find "$F/evidence/logs/raw/resnet50/reperf/fp32/n4g8/bs96" -type f -exec cat {} + | jq -rR "fromjson? | select(.event == \"step\" and .step == $last) | .loss" | sort -u | wc -l)
ok "$([ "$losses" -ge 1 ]; echo $?)" "their loss is in the logs"
is "$(for i in $CLUSTER_NODES; do node_ssh "$i" "docker images --digests --format '{{.Digest}}'"; done | sort | uniq -c | awk '{ print $1, $2 }')" "4 ${image#*@}" "each node has the image of that digest, and no other"
pulls=$(tail -n +$((before + 1)) "$S/log/registry.log" | grep -c '"GET /v2/reperf/cpu/blobs/')
ok "$([ "$pulls" -le 8 ]; echo $?)" "the registry sent each layer and config at most once a node ($pulls)"
exits 0 "the archive holds" "$REPERF" verify "$F/$ID.tar.zst" --unsigned
exits 0 "it replays to the same result" "$REPERF" replay "$F/$ID.tar.zst"
is "$(find "$F/evidence/environment" -type f -name '*node[1-4]*' | grep -oE 'node[1-4]' | sort -u | tr '\n' ' ')" "node1 node2 node3 node4 " "the environment of each node is in it"
exits 0 "a page of it" "$REPERF" report "$ID" --html "$T/run.html"
sed 's/<wbr>//g' "$T/run.html" >"$T/whole.html"
row=$(grep -E '^<tr>.*n4g8/bs96<.*data-h="repeat" class="n">1<' "$T/whole.html")
like "$row" 'data-h="nodes">node\[1-4\]<' "and where each repeat ran"
cp -R "$F/evidence" "$T/other"
sed -i 's/"kernel": "[^"]*"/"kernel": "Linux 1.2.3"/' "$T/other/environment/node3.json"
prints 0 'possible +node3: machine.kernel' "compare with a run on another kernel" "$REPERF" compare "$ID" "$T/other"
nothing_left "afterwards" 1 2 3 4
exits 0 "resume of what is sealed" "$REPERF" resume "$ID"
exits 0 "status" "$REPERF" status
tap_done
