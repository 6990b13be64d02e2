#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: store
# Images by the ids that reports use: locked, planned, fetched; the other place of image.json, a mirror that is a folder, and what to do where
# one is gone. The data folder is a copy whose one image lies in a registry of the test's own.
# shellcheck source=tests/tap_lib.sh disable=SC1091
source "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/image_lib.sh disable=SC1091
source "$ROOT/tests/integration/image_lib.sh"
needs "images by id" docker-registry skopeo gcc
one_image
hex=${one%% *}
start_registry origin
R=127.0.0.1:$PORT ORIGIN=$PID
start_registry other
M=127.0.0.1:$PORT OTHER=$PID
push "$L:one" "$R/paddlepaddle/bench:v1"
push "$L:one" "$M/elsewhere/bench:v1"
ID=ngc-mxnet-19.07
mkdir -p "$T/root"
cp -R manifests images datasets "$T/root/"
mkdir "$T/root/workloads" && cp -R workloads/competitors "$T/root/workloads/"
export REPERF_ROOT="$T/root"
sed -E "s#\"name\": .*#\"name\": \"$R/paddlepaddle/bench\",#; s#\"tag\": .*#\"tag\": \"v1\",#" "images/$ID/image.json" >"$T/root/images/$ID/image.json"
valid image "a registry of one's own has a port" "$T/root/images/$ID/image.json"
plan() { "$REPERF" plan paddle-perf-2020 --case '*/ngc-mxnet/*' --json >"$T/plan.json" 2>"$T/err"; }
need() { value "$T/plan.json" "[(n['state'], n['download_bytes'], n['unpinned_files']) for n in d['needs'] if n['kind'] == 'image']"; }
pins() { value "$T/plan.json" "[p['stack'] for p in d['missing_pins'] if p['what'] == 'image digest']"; }

plan
is "$(need) $(pins)" "[('absent', None, 1)] ['resnet50-ngc-mxnet']" "a plan says that the image is not pinned, and that its size is not known"
valid plan "a plan is valid" "$T/plan.json"
exits 0 "lock" "$REPERF" lock "$ID"
is "$(value "$T/root/manifests/locks/image/$ID.json" "[i['name'] for i in d['items']], d['items'][0]['sha256']")" "(['digest', 'manifest', 'config', 'layers'], '$hex')" \
    "into manifests/locks/image"
valid lock "which is valid" "$T/root/manifests/locks/image/$ID.json"
plan
all=$(($(cat "$L"/blobs/sha256/* | wc -c) - $(bytes "$L/blobs/sha256/$hex")))
is "$(need) $(pins)" "[('absent', $all, 0)] []" "now the plan knows its size, and misses no pin"
exits 0 "fetch" "$REPERF" fetch "$ID"
plan
is "$(need)" "[('ready', 0, 0)]" "and that it is there"
exits 0 "verify" "$REPERF" verify "image:$ID"

# --- other places ---------------------------------------------------------------------------------------
fresh() { rm -rf "$REPERF_STORE"; }
sed -i -E "s#\"fallback\": .*#\"fallback\": \"$M/elsewhere/bench:v1\",#" "$T/root/images/$ID/image.json"
stop_server "$ORIGIN"
fresh
answers 0 '.items[0].from' "$M/elsewhere/bench@sha256:$hex" "the origin is dead, image.json's other place is not: it comes from there, by digest" "$REPERF" fetch "$ID" --json
like "$(cat "$T/err")" "warning: .*unreachable|warning: .*127.0.0.1" "and what the origin did is reported"
stop_server "$OTHER"
fresh
mkdir "$T/mirror"
skopeo copy --quiet "oci:$L:one" "oci-archive:$T/mirror/$ID.tar"
exits 0 "a folder of mirrors" "$REPERF" fetch "$ID" --mirror "$T/mirror" --offline
fresh
PORT_WANTED=${R##*:} start_registry origin
curl -s -X DELETE "http://$R/v2/paddlepaddle/bench/manifests/sha256:$hex" -o "$T/curl.out"
sed -i -E 's#"fallback": .*#"fallback": null,#' "$T/root/images/$ID/image.json"
fails 4 "is gone: .*what then: no other registry" "gone" "$REPERF" fetch "$ID"
exits 2 "not in the store" "$REPERF" verify "image:$ID"

# --- lock and description ---------------------------------------------------------------------------------
sed -E 's#"digest": .*#"digest": "sha256:0000000000000000000000000000000000000000000000000000000000000000",#' "$T/root/images/$ID/image.json" >"$T/changed.json"
cp "$T/changed.json" "$T/root/images/$ID/image.json"
exits 3 "a lock that contradicts its description" "$REPERF" fetch "$ID"
sed -E 's#"digest": .*#"digest": "sha512:00",#' "$T/root/images/$ID/image.json" >"$T/changed.json"
cp "$T/changed.json" "$T/root/images/$ID/image.json"
fails 3 'sha512' "a description with another kind of digest" "$REPERF" fetch "$ID"
exits 3 "our own images have no tag to lock" "$REPERF" lock reperf-cpu
tap_done
