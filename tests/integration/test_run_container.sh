#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: fleet
# A case in a container on this machine, by a real dockerd and registry: a recipe's code at its commit, overlay and data, what runs first, and its log.
# The engine is the one that DOCKER_HOST or docker's context names.
# shellcheck source=tests/tap_lib.sh disable=SC1091
source "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/engines_lib.sh disable=SC1091
source "$ROOT/tests/integration/engines_lib.sh"
needs "a case in a container here" docker-registry busybox jq git
start_docker || { skip "a case in a container here" "$(cat "$T/why")"; tap_done; }
DOCKER=unix://$T/d/sock
start_registry main
import_image docker example.org/made:1 >/dev/null
"$T/bin/docker" tag example.org/made:1 "127.0.0.1:$PORT/made:1" && "$T/bin/docker" push -q "127.0.0.1:$PORT/made:1" >/dev/null
image=$("$T/bin/docker" image inspect --format '{{index .RepoDigests 0}}' "127.0.0.1:$PORT/made:1")
jq --arg registry "127.0.0.1:$PORT" '.id = "here" | .runtime = "docker" | .registry = $registry' manifests/inventories/local.json >"$T/here.json"

git init -q "$T/code"
echo "the code" >"$T/code/file"
git -C "$T/code" add file && git -C "$T/code" commit -q -m 1
commit=$(git -C "$T/code" rev-parse HEAD)
recipe='"image":"mmseg-cpu","env":{"LD_LIBRARY_PATH":null,"GIVEN":"a  b"},"before":"cd /tmp\ncat /reperf/source/file >own\necho installed",'
recipe+="\"mounts\":[{\"kind\":\"source\",\"name\":\"file://$T/code\",\"commit\":\"$commit\",\"inside\":\"/reperf/source\"},{\"kind\":\"overlay\",\"name\":\"mmseg\",\"inside\":\"/reperf/overlay\"},"
recipe+='{"kind":"dataset","name":"bert-sample","synthetic":true,"inside":"/reperf/data"}],'
# shellcheck disable=SC2016 # for the container's shell
recipe+='"commands":[{"purpose":"run","nodes":0,"gpus":0,"precision":null,"per":"node","printed":null,"works":"cat own; echo \"$GIVEN\" $LD_LIBRARY_PATH $NNODES; cat /reperf/overlay/smoke.py | head -n 1; ls /reperf/data; touch /reperf/source/x || true"}]'
ask=(paddle-perf-hrnetw18 --profile smoke --case '*/mmseg/fp32/n1g1/*' --nodes "$T/here.json" --image "mmseg-cpu=$image" --repeats 1 -C "stacks[mmseg].smoke=[{\"title\":\"made up\",$recipe}]")
exits 4 "without code and data nothing runs" env DOCKER_HOST="$DOCKER" "$REPERF" run "${ask[@]}" --offline
"$REPERF" fetch "source:file://$T/code@$commit" >/dev/null 2>&1 && "$REPERF" fetch bert-sample --synthetic >/dev/null 2>&1
rm -rf "$REPERF_STATE"
# It prints no rate, so its cell fails; only its log is checked.
exits 9 "a case in a container of this machine, whose log has no rate" env DOCKER_HOST="$DOCKER" "$REPERF" run "${ask[@]}" --offline --json
log=$(find "$REPERF_STATE" -name 'repeat-1.log')
own() { grep -v '^{"event"' "$1" | sort; } # FILE: in what order its two streams come is the engine's
is "$(own "$log")" "$(printf '%s\n' installed "the code" "a  b 1" "$(head -n 1 workloads/competitors/mmseg/smoke.py)" bert-sample tree.json tree.sha256 \
    "touch: /reperf/source/x: Read-only file system" | sort)" "what runs first, the code, its environment, overlay and data, which it cannot write to"
like "$(cat "$log")" '"event":"container","holds":true' "and what the container gives"
is "$("$T/bin/docker" ps -aq | wc -l)" 0 "no container is left"

# --- which engine ---
# Docker's own client decides; an engine reached over a network cannot see what a run mounts.
export DOCKER_CONFIG="$T/config"
docker context create here --docker "host=$DOCKER" >/dev/null 2>&1
docker context create far --docker host=ssh://who@far.invalid >/dev/null 2>&1
prints 0 'there ' "an engine of docker's context" env DOCKER_CONTEXT=here "$REPERF" nodes provision "$T/here.json" --image "$image"
fails 7 "tcp://127.0.0.1:1 .DOCKER_HOST. would look for this run's folders on its own machine" "none at another address" env DOCKER_HOST=tcp://127.0.0.1:1 "$REPERF" run "${ask[@]}" --offline
fails 7 "ssh://who@far.invalid .docker's context. would look" "none by a context of another machine" env DOCKER_CONTEXT=far "$REPERF" run "${ask[@]}" --offline
if command -v podman >/dev/null; then
    fails 7 "ssh://who@far.invalid/sock .CONTAINER_HOST. would look" "nor podman's" env CONTAINER_HOST=ssh://who@far.invalid/sock "$REPERF" nodes provision "$T/here.json" --runtime podman --image "$image"
else
    skip "nor podman's" "podman is not installed"
fi
tap_done
