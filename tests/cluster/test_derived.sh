#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: store
# What a stack installs is installed once: PaddleSeg's image is built on the report's by a node's engine while the package index is there. Without the index,
# the registry and the repositories its four nodes run two repeats, stopped and resumed; and a bundle, imported where nothing was fetched, runs offline.
# shellcheck source=tests/cluster/lib.sh disable=SC2016
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cluster/published_lib.sh
. "$(dirname "$0")/published_lib.sh"
cluster_reset || exit 1
if no_docker "an image built on a report's"; then tap_done; fi
if ! command -v skopeo >/dev/null; then
    skip "an image built on a report's" "skopeo is not installed"
    tap_done
fi
TUNNEL=
trap '[ -z "$TUNNEL" ] || kill "$TUNNEL"; published_down; rm -rf "$T"' EXIT
published_up && code_up && images_up && packages_up
ok $? "the published names are served, with images, repositories and packages under them"
# shellcheck source=tests/cluster/rehearse_lib.sh
. "$(dirname "$0")/rehearse_lib.sh"
R=paddle-perf-hrnetw18 ID=paddleseg-f3cec79 CASE='hrnetw18/paddle/fp32/n4g8/bs8'

# --- built once ---
# Node 1's engine, as a person's DOCKER_HOST would name it; upstream's commit is the stand-in's.
ssh -F "$S/ssh_config" -nNT -L "$T/docker.sock:/var/run/docker.sock" node1 &
TUNNEL=$!
wait_for 120 test -S "$T/docker.sock"
mkdir -p "$T/own" && cp -R "images/$ID" "$T/own/" && sed -i "s/^ARG PADDLESEG=.*/ARG PADDLESEG=$CODE/" "$T/own/$ID/Dockerfile"
exits 0 "an image is built on the report's" env DOCKER_HOST="unix://$T/docker.sock" BASE="$HEAD_IP:$REGISTRY_PORT/paddlepaddle/paddle-benchmark@${STANDIN#*@}" images/build.sh "$T/own/$ID" --store
built=$(cat "$T/out")
like "$built" "^reperf/$ID@sha256:[0-9a-f]{64}$" "and put into the store by its digest"
is "$(grep -c "^www.paddlepaddle.org.cn GET .*paddlepaddle_gpu-2.5.0.post112.*whl 200" "$P/asked.log")" 1 "its wheel was fetched, once"
exits 0 "the repository is fetched" published "$REPERF" fetch "source:https://github.com/PaddlePaddle/PaddleSeg.git@$CODE"
exits 0 "and the data made" "$REPERF" fetch cityscapes --synthetic

# --- without an index, a registry, a repository: two repeats, and a resume ---
# shellcheck disable=SC2086 # one word each
kill $PUBLISHED_PIDS
: >"$P/asked.log"
for i in $CLUSTER_NODES; do node_ssh "$i" 'docker image prune -af >/dev/null; docker builder prune -af >/dev/null 2>&1; true'; done
replaced $R
# Every node waits for a word of the head's, so that the run is stopped in its first repeat.
wait_line="until python3 -c 'import urllib.request as r; r.urlopen(\"http://$HEAD_IP/go\")' 2>/dev/null; do sleep 0.2; done"
before=$(jq -r '.stacks[] | select(.id == "paddle") | .full[0].before' manifests/reports/$R.json)
SETTINGS+=(-C "stacks[paddle].full[0].before=$(jq -n --arg a "$wait_line" --arg b "$before" '$a + "\n" + $b')")
rm -f "$S/http/go"
ask=(run "$R" --rehearse --offline --nodes "$T/nodes.json" --case "$CASE" "${SETTINGS[@]}" --deadline 900)
"$REPERF" "${ask[@]}" --repeats 2 --name derived >"$T/first" 2>"$T/first.err" &
run=$!
# shellcheck disable=SC2317 # called by wait_for
containers() { ! kill -0 "$run" 2>/dev/null || [ "$(for i in $CLUSTER_NODES; do node_ssh "$i" 'docker ps -q' 2>/dev/null; done | wc -l)" -ge 4 ]; }
succeeds "four containers of the first repeat are there" wait_for 600 containers
[ "$(for i in $CLUSTER_NODES; do node_ssh "$i" 'docker ps -q'; done | wc -l)" -ge 4 ] || sed 's/^/# /' "$T/first.err" | tail -n 20
kill -INT "$run"
wait "$run"
is $? 130 "the run is stopped"
touch "$S/http/go"
answers 0 '[.cells[] | .verdict, (.repeats | length)]' '["not_comparable",2]' "and resumed: both repeats ran" "$REPERF" resume derived --json
E=$(jq -r .folder "$T/out")/evidence
is "$(grep -l '^paddlepaddle-gpu==2.5.0.post112$' "$E/logs/raw/$CASE"/*.log | wc -l)" 8 "each container says that the wheel is there, by version"
is "$(jq -r '.steps[].image.digest // empty' "$E/manifest/plan.json" | sort -u)" "${built#*@}" "the plan has the image by its digest"
is "$(wc -l <"$P/asked.log")" 0 "nobody was asked for anything"

# --- carried to where nothing was fetched ---
exits 0 "a bundle" "$REPERF" data bundle "image:$ID" cityscapes.synthetic "source:https://github.com/PaddlePaddle/PaddleSeg.git@$CODE" -o "$T/bundle.tar"
for i in $CLUSTER_NODES; do node_ssh "$i" 'docker image prune -af >/dev/null'; done
# shellcheck disable=SC2317 # called by exits
away() { env -u REPERF_ROOT REPERF_STORE="$T/away/store" REPERF_STATE="$T/away/state" "$T/bundle/bin/reperf" "$@"; }
mkdir "$T/bundle" && tar -C "$T/bundle" -xf "$T/bundle.tar" bin share
exits 0 "is imported" away data import "$T/bundle.tar" --locks "$T/away/locks"
answers 0 '[.cells[] | .verdict, (.repeats | length)]' '["not_comparable",1]' "and its run needs nothing else: its repeat ran" away "${ask[@]}" --repeats 1 --json
[ "$(jq -r '.cells[0].verdict' "$T/out")" = not_comparable ] || jq -r '.cells[].why' "$T/out" | sed 's/^/# /'
rm -f "$S/http/go"
tap_done
