#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: store
# Images from a real registry (docker-registry, on 127.0.0.1): lists and single manifests, locks, drift, images that are gone and where else
# they may be, with skopeo as an independent check of the fetched image.
# shellcheck source=tests/tap_lib.sh disable=SC1091
source "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/image_lib.sh disable=SC1091
source "$ROOT/tests/integration/image_lib.sh"
needs "images from a registry" docker-registry skopeo gcc

# An image of two layers for two platforms, and one with one layer in docker's own types.
make_layer one 3000000
make_layer two 20000
L="$T/layout"
amd=$(add_manifest "$L" amd64 oci gzip one two)
arm=$(add_manifest "$L" arm64 oci gzip two)
small=$(add_manifest "$L" amd64 oci gzip two)
ARCHES=(amd64 arm64)
write_index "$T/list" "$amd" "$arm"
size=$(bytes "$T/list")
list=$(blob "$L" "$T/list")
ARCHES=(arm64)
write_index "$T/list" "$arm"
arm_size=$(bytes "$T/list")
arm_list=$(blob "$L" "$T/list")
ARCHES=()
IT=application/vnd.oci.image.index.v1+json
REFS=(both small arm)
write_index "$L/index.json" "$list $size $IT" "$small" "$arm_list $arm_size $IT"
finish_layout "$L"
read -r amd_hex _ _ amd_config <<<"$amd"
start_registry reg || { cat "$T/reg/log"; }
R=127.0.0.1:$PORT REG_PID=$PID
push "$L:both" "$R/team/img:v1"
skopeo copy --quiet --format v2s2 --dest-tls-verify=false "oci:$L:small" "docker://$R/team/img:docker"
push "$L:arm" "$R/team/img:arm"
is "$(curl -s "http://$R/v2/team/img/tags/list" | /usr/bin/python3 -c 'import json, sys; print(sorted(json.load(sys.stdin)["tags"]))')" \
    "['arm', 'docker', 'v1']" "the registry has what the test pushed"


# --- a proxy ---------------------------------------------------------------------------------------
HTTPS_PROXY=http://127.0.0.1:1 exits 4 "a registry behind a proxy that is not there" img fetch registry.example.invalid/team/img:v1 --retries 1 --proxy http://127.0.0.1:2
like "$(cat "$T/err")" '127\.0\.0\.1:2' "and the proxy that was asked is the named one, not that of the environment"

# --- by tag, by digest -------------------------------------------------------------------------
prints 0 'locked +no' "by tag, a list followed to linux/amd64" img fetch "$R/team/img:v1"
exits 0 "again" img fetch "$R/team/img:v1" --json
is "$(value "$T/out" "d['items'][0]['was_there'], d['items'][0]['fetched_bytes'], d['items'][0]['digest'], d['items'][0]['config']")" \
    "(True, 0, 'sha256:$list', 'sha256:$amd_config')" "nothing is fetched twice"
valid noun-output
exits 0 "docker's types" img fetch "$R/team/img:docker" --json
is "$(value "$T/out" "d['items'][0]['manifest']")" "$(skopeo inspect --tls-verify=false --format '{{.Digest}}' "docker://$R/team/img:docker")" "skopeo finds the same"
like "$(cat "$REPERF_STORE/blobs/sha256/$(value "$T/out" "d['items'][0]['manifest'][7:]")")" "docker.distribution.manifest.v2" "and it is docker's"
config=$(value "$T/out" "d['items'][0]['config'][7:]")
exits 0 "it holds" img verify "$R/team/img:docker"
exits 0 "it is exported" "$REPERF" image export "$R/team/img:docker" -o "$T/docker-types.tar"
exits 0 "also as a folder" "$REPERF" image export "$R/team/img:docker" -o "$T/docker-types"
for from in "oci:$T/docker-types" "docker-archive:$T/docker-types.tar"; do
    is "$(skopeo inspect --config --raw "$from" | sha256sum | cut -d' ' -f1)" "$config" "and skopeo reads that as ${from%%:*}"
done
answers 0 '.items[0] | "\(.manifest) \(.fetched_bytes)"' "sha256:$amd_hex 0" "by digest: its layers were in the store" img fetch "$R/team/img@sha256:$amd_hex" --json
fails 4 'not made for linux/amd64; there is linux/arm64' "an image for other machines only" img fetch "$R/team/img:arm"
exits 2 "neither tag nor digest" img fetch "$R/team/img"
exits 2 "an invalid name" img fetch "$R/Team/img:v1"
exits 0 "each image is listed" "$REPERF" image ls
is "$(grep -c "^  $R/team/img" "$T/out")" 3 "all three"
exits 0 "gc keeps them" "$REPERF" store gc
documents noun-output 0 "and they hold" img verify "$R/team/img:v1" --json

# --- locks and drift -----------------------------------------------------------------------------
prints 0 "new +yes" "lock" img lock "$R/team/img:v1"
valid lock "the lock is valid against its schema" "$LOCKS"/image/*.json
documents noun-output 0 "lock again, as a document" img lock "$R/team/img:v1" --json
prints 0 "new +no" "lock again" img lock "$R/team/img:v1"
push "$L:small" "$R/team/img:v1"
read -r small_hex _ <<<"$small"
fails 5 "locked as sha256:$list and is now sha256:$small_hex" "the tag has moved: lock refuses" img lock "$R/team/img:v1"
exits 0 "what is in the store is still what was locked" img fetch "$R/team/img:v1"
export REPERF_STORE="$T/store2"
fails 5 "has moved" "a fetch into an empty store refuses" img fetch "$R/team/img:v1"
# The tag is gone, the digest is there.
curl -s -X DELETE "http://$R/v2/team/img/manifests/sha256:$small_hex" -o "$T/curl.out"
exits 0 "a tag that is gone, a digest that is there" img fetch "$R/team/img:v1"
rm -rf "$T/store2"

# --- gone, and where else --------------------------------------------------------------------------
start_registry mirror
M=127.0.0.1:$PORT
push "$L:both" "$M/copies/team/img:v1"
skopeo copy --quiet "oci:$L:both" "oci-archive:$T/oci.tar:v1"
skopeo copy --quiet "oci:$L:both" "docker-archive:$T/docker.tar:$R/team/img:v1"
for hex in "$list" "$amd_hex"; do curl -s -X DELETE "http://$R/v2/team/img/manifests/sha256:$hex" -o "$T/curl.out"; done
documents noun-output 4 "gone at its origin, as a document" img fetch "$R/team/img:v1" --json
fails 4 "is gone" "gone at its origin" img fetch "$R/team/img:v1"
answers 0 '.items[0] | "\(.from) \(.digest)"' "$M/copies/team/img@sha256:$list sha256:$list" "gone at its origin, and at a mirror: it comes from there, as it was locked" img fetch "$R/team/img:v1" --mirror "http://$M/copies" --json
rm -rf "$T/store2"
exits 0 "a folder that holds a layout" img fetch "$R/team/img:v1" --mirror "http://$M/wrong" --layout "$L"
rm -rf "$T/store2"
exits 0 "a tar of a layout" img fetch "$R/team/img:v1" --layout "$T/oci.tar"
rm -rf "$T/store2"
answers 0 '.items[0].config' "sha256:$amd_config" "what docker save writes, known by the image's id, which is the locked one" img fetch "$R/team/img:v1" --layout "$T/docker.tar" --json
exits 0 "verify confirms it" img verify "$R/team/img:v1"
rm -rf "$T/store2"
exits 0 "offline, from a layout" img fetch "$R/team/img:v1" --offline --layout "$L"
rm -rf "$T/store2"
exits 4 "offline, from nowhere" img fetch "$R/team/img:v1" --offline
fails 4 "none of its" "a layout of another image" img fetch "$R/team/img@sha256:$small_hex" --layout "$T/oci.tar"
cp -R "$L" "$T/bad"
layer=$(find "$T/bad/blobs/sha256" -size +1000k)
printf 'damaged!' | dd of="$layer" bs=1 seek=5000 conv=notrunc 2>/dev/null
exits 5 "a layout with a corrupt layer" img fetch "$R/team/img:v1" --layout "$T/bad"
exits 4 "nothing was kept of it" img fetch "$R/team/img:v1" --offline
stop_server "$REG_PID"
fails 4 "unreachable" "a registry that is dead" img fetch "$R/team/img:v1"
exits 0 "and the mirror has it" img fetch "$R/team/img:v1" --mirror "http://$M/copies"
tap_done
