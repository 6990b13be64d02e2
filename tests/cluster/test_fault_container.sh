#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: fleet
# Containers and images that fail: engine dead, digest missing, layer corrupt, registry down or silent, out of memory, no metric, NaN, a metric and then failure,
# and one of four real ranks that dies.
# shellcheck source=tests/cluster/lib.sh disable=SC2016,SC2317
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cluster/fault_lib.sh
. "$(dirname "$0")/fault_lib.sh"
if no_docker "containers and images that fail"; then tap_done; fi
N="$S/inventory.json"
image_of() { # NAME: an image whose workload does what that world's mode says
    mkdir -p "$T/$1/image"
    cp "$T/$1/bin/reperf-train" "$T/$1/image/"
    cp "$(control "$1")/mode" "$T/$1/image/mode"
    sed -i "s|^dir=.*|dir=/usr/bin|" "$T/$1/image/reperf-train"
    echo "reperf-cpu=$HEAD_IP:$REGISTRY_PORT/$(cluster_image "test/$1" "$T/$1/image/reperf-train" "$T/$1/image/mode")"
}
trial() { # NAME MODE NODE OPTION...: one repeat in a container on that node
    local name=$1 node=$3
    world "$name" "$2"
    shift 3
    begin "$name" "$ONE" "$N:node$node" --repeats 1 --image "$(image_of "$name")" "$@"
}

# --- what the workload does inside: four at a time
trial good '' 1
good=$(image_of good)
trial silent silent 2
trial nan nan 3
trial fails fails 4
ends_well good 1 "a container that trains" 1
finish silent 9 "exits 0 without a metric: status 9"
finish nan 9 "prints NaN: status 9"
breaks fails 8 'exit status 3' "prints a metric and then fails: status 8"
for name in silent nan; do no_success "$name"; done
nothing_left "inside" 1 2 3 4
node_memory 1 48m
trial oom eats 1
world dead ''
node_docker_stop 2
begin dead "$ONE" "$N:node2" --repeats 1 --image "$good"
world missing ''
begin missing "$ONE" "$N:node3" --repeats 1 --image "reperf-cpu=$HEAD_IP:$REGISTRY_PORT/test/good@sha256:$(printf 'ab%.0s' $(seq 32))"
world corrupt 'silent'
echo corrupt >>"$(control corrupt)/mode"
corrupt=$(image_of corrupt)
registry_corrupt "${corrupt#*"$REGISTRY_PORT"/}"
begin corrupt "$ONE" "$N:node4" --repeats 1 --image "$corrupt"
breaks oom 7 'out of memory' "killed for memory: status 7"
node_memory 1 0
breaks dead 7 'node2' "a dead engine: status 7"
breaks missing 7 'not found|manifest|unknown' "a digest that is not there: status 7"
wait "$(cat "$T/corrupt/pid")"
status=$?
ok "$([ "$status" = 5 ] || [ "$status" = 7 ]; echo $?)" "a corrupt layer: status $status is the image's or integrity's"
[ "$status" = 5 ] || [ "$status" = 7 ] || tail -n 5 "$T/corrupt/err" | sed 's/^/# /'
no_success corrupt
node_docker_start 2
heals dead 1 "resume, with the engine back" 1
registry_mend
for i in 1 2 3 4; do node_ssh "$i" 'docker image prune -af >/dev/null'; done
registry stop
world down ''
begin down "$ONE" "$N:node1" --repeats 1 --image "$good"
finish down 7 "a registry that is down: status 7"
no_success down
registry start
heals down 1 "resume, with the registry back" 1
for i in 1 2; do node_ssh "$i" 'docker image prune -af >/dev/null'; done
registry pause
world mute ''
begin mute "$ONE" "$N:node2" --repeats 1 --image "$good" --deadline 20
wait "$(cat "$T/mute/pid")"
status=$?
case $status in 4 | 7 | 124) ok 0 "a registry that is silent: status $status is fetch's, the image's or the deadline's" ;; *) is "$status" "4, 7 or 124" "a registry that is silent" ;; esac
no_success mute
registry resume
heals mute 1 "resume, with the registry answering" 1
nothing_left "images" 1 2 3 4

# --- the engine dies in mid-job: that says nothing of the workload
world engine naps
begin engine "$ONE" "$N:node4" --repeats 1 --image "$(image_of engine)"
runs_on_4() { [ -n "$(node_ssh 4 docker ps -q 2>/dev/null)" ]; }
succeeds "a container runs" wait_for 240 runs_on_4
node_docker_stop 4
finish engine 6 "the engine is killed in mid-job: the repeat stays open"
says engine 'container reperf[^ ]* may be left there' "and the container is named"
is "$(jq -r 'select(.state == "finished") | .seq' "$(run_dir engine)/journal.jsonl")" "" "nothing is final"
node_docker_start 4
take_up engine 0 "resume, with the engine back"
nothing_left "the engine's death" 1 2 3 4

# --- orphans: the orchestrator is gone for good, its container is not
world orphan waits
begin orphan "$ONE" "$N:node3" --repeats 1 --image "$(image_of orphan)"
has_container() { [ -n "$(node_ssh 3 docker ps -q 2>/dev/null)" ]; }
succeeds "a container runs" wait_for 240 has_container
kill_run orphan
succeeds "it outlives its orchestrator" has_container
export REPERF_STATE="$T/orphan/state"
prints 0 'node3' "nodes clean --dry-run" "$REPERF" nodes clean "$N" --dry-run
succeeds "and ends nothing" has_container
exits 0 "nodes clean" "$REPERF" nodes clean "$N"
nothing_left "nodes clean" 1 2 3 4
succeeds "all is whole again" cluster_reset
tap_done
