#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the orchestrator adds to the work itself, on the four nodes of the test cluster. First a plan of 20 steps, each a job on all four nodes that
# takes SLEEP seconds, against the same 20 by pdsh over ssh; then a whole run in containers, everything cached, whose workload takes a known time. Each
# figure is that of the whole command, from its start to the sealed archive. Needs root.
. "$(dirname "$0")/../cluster/lib.sh"
# shellcheck source=tests/bench/bench_lib.sh
. tests/bench/bench_lib.sh
# shellcheck source=tests/cluster/fault_lib.sh
. tests/cluster/fault_lib.sh
: "${SLEEP:=0}" "${STEPS:=20}" "${WORK:=5}"
work() { # FILE SECONDS: the fixed workload, which takes so long
    sed "s|FOLDER|$(control bench)|" "$CLUSTER_DIR/fake_rank.sh" >"$1"
    sed -i "s|^steps 1 20\$|steps 1 19; sleep $2; steps 20 20|" "$1"
    echo 'exit 0' >>"$1" # in a container nobody listens to it
    chmod +x "$1"
}
world bench well
mkdir -p "$T/plan" "$T/whole"
work "$T/plan/reperf-train" "$SLEEP"
work "$T/whole/reperf-train" "$WORK"
ours="REPERF_STATE='$T/bench/state' REPERF_TRAIN='$T/plan/reperf-train' '$REPERF' run paddle-perf-2020 --case '$FOUR' --profile smoke --nodes '$S/inventory-none.json'"
for node in $CLUSTER_NODES; do node_ssh "$node" 'mkdir -p /var/lib/reperf/bench && cat >/var/lib/reperf/bench/train && chmod +x /var/lib/reperf/bench/train' <"$T/plan/reperf-train"; done
export PDSH_SSH_ARGS_APPEND="-F $S/ssh_config"
ROUNDS=${ROUNDS_PDSH:-3}
pair "$STEPS steps on 4 nodes : pdsh" 0.125 "$ours --repeats $STEPS" \
    "for i in \$(seq $STEPS); do pdsh -R ssh -w 'node[1-4]' RANK=0 WORLD_SIZE=4 /var/lib/reperf/bench/train || exit 1; done"
over() { # NAME LIMIT OWN COMMAND: wall seconds beyond the work's own, median of 5
    local round
    time_once bash -c "$4" || return 1
    for round in 1 2 3 4 5; do
        time_once bash -c "$4" && awk -v w="$wall" -v own="$3" 'BEGIN { print w - own }'
    done | sort -n | awk -v name="$1" -v limit="$2" '{ v[NR] = $1 } END { m = v[int((NR + 1) / 2)]; printf "%-44s %6.3f s beyond the work (%.3f to %.3f)  wanted <= %s: %s\n", name, m, v[1], v[NR], limit, m <= limit ? "yes" : "NO" }'
}
over "$STEPS steps on 4 nodes" 1.5 "$(awk -v n="$STEPS" -v s="$SLEEP" 'BEGIN { print n * s }')" "$ours --repeats $STEPS"
if no_docker "a whole run in containers"; then exit 0; fi
image=$(cluster_image bench/cpu "$T/whole/reperf-train" "$REPERF") || exit 1
over "a whole run in containers, all cached" 2 "$WORK" \
    "REPERF_STATE='$T/bench/state' REPERF_TRAIN='$T/whole/reperf-train' '$REPERF' run paddle-perf-2020 --case '$FOUR' --profile smoke --repeats 1 --nodes '$S/inventory.json' --image 'reperf-cpu=$HEAD_IP:$REGISTRY_PORT/$image'"
