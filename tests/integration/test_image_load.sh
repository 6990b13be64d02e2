#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: store
# An image out of the store: exported the same each time, read by skopeo, loaded into a real dockerd and podman of the test's own; verified, with
# faults planted into the store.
# shellcheck source=tests/tap_lib.sh disable=SC1091
source "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/image_lib.sh disable=SC1091
source "$ROOT/tests/integration/image_lib.sh"
needs "images out of the store" skopeo gcc zstd
make_layer one 300000
make_layer two 20000
L="$T/layout"
gz=$(add_manifest "$L" amd64 oci gzip one two one)
zst=$(add_manifest "$L" amd64 oci zstd one two)
plain=$(add_manifest "$L" amd64 oci tar two)
# A config whose diff_ids are another layer's.
sed "s/sha256:$(sha "$T/two.tar")/sha256:$(sha "$T/one.tar")/" "$L/blobs/sha256/$(cut -d' ' -f4 <<<"$plain")" >"$T/config"
size=$(bytes "$T/config")
hex=$(blob "$L" "$T/config")
sed -E "s/(config.v1.json\",\"digest\":\"sha256:)[0-9a-f]*/\1$hex/" "$L/blobs/sha256/${plain%% *}" >"$T/manifest"
msize=$(bytes "$T/manifest")
liar="$(blob "$L" "$T/manifest") $msize application/vnd.oci.image.manifest.v1+json"
REFS=(gz zst plain liar)
write_index "$L/index.json" "$gz" "$zst" "$plain" "$liar"
finish_layout "$L"
config=$(cut -d' ' -f4 <<<"$gz")
name() { echo "example.org/team/img@sha256:${1%% *}"; }         # MANIFEST-LINE
for what in "$gz" "$zst" "$plain" "$liar"; do
    exits 0 "in the store" img fetch "$(name "$what")" --offline --layout "$L"
done
GZ=$(name "$gz")
first_layer() { /usr/bin/python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["layers"][0]["digest"][7:])' "$L/blobs/sha256/${gz%% *}"; }

# --- verify -----------------------------------------------------------------------------------------
exits 0 "gzip layers: every digest holds" img verify "$GZ"
exits 0 "zstd layers: every digest holds" img verify "$(name "$zst")"
exits 0 "unpacked layers: every digest holds" img verify "$(name "$plain")"
exits 5 "a layer that is not what the config says" img verify "$(name "$liar")"
like "$(cat "$T/out" "$T/err")" "unpacks to sha256:$(sha "$T/two.tar"), the config says sha256:$(sha "$T/one.tar")" "names both"

# --- export ------------------------------------------------------------------------------------------
exits 0 "to a tar" "$REPERF" image export "$GZ" --output "$T/a.tar"
exits 0 "again" "$REPERF" image export "$GZ" -o "$T/b.tar" --json
is "$(sha "$T/a.tar")" "$(sha "$T/b.tar")" "gives the same bytes"
valid image-output
exits 0 "to a folder" "$REPERF" image export "$GZ" --output "$T/folder"
exits 2 "which must not be there" "$REPERF" image export "$GZ" --output "$T/folder"
for from in "oci:$T/folder" "docker-archive:$T/a.tar"; do
    is "$(skopeo inspect --config --raw "$from" | sha256sum | cut -d' ' -f1)" "$config" "skopeo reads ${from%%:*}:, and finds the image's config"
done
is "$(skopeo inspect --raw "oci:$T/folder" | sha256sum | cut -d' ' -f1)" "${gz%% *}" "in the folder it has its own manifest"
exits 0 "so that it can be fetched back" env REPERF_STORE="$T/back" "$REPERF" fetch --locks "$LOCKS" "image:$GZ" --offline --layout "$T/folder"
exits 0 "layers packed by zstd, which docker's archive cannot hold" "$REPERF" image export "$(name "$zst")" --output "$T/z.tar"
is "$(skopeo inspect --raw "oci-archive:$T/z.tar" | sha256sum | cut -d' ' -f1)" "${zst%% *}" "are an OCI layout in a tar"
exits 2 "a path with a colon" "$REPERF" image export "$GZ" --output "$T/a:b.tar"

# --- engines -----------------------------------------------------------------------------------------
exits 7 "an engine that is not there" env PATH="$T/empty" "$REPERF" image load "$GZ" --engine podman
exits 7 "a daemon that is not there" env DOCKER_HOST="unix://$T/none.sock" "$REPERF" image load "$GZ"
exits 2 "an unknown engine" "$REPERF" image load "$GZ" --engine rocket
mkdir -p "$T/d"
dockerd=$(command -v /usr/sbin/dockerd dockerd | head -n 1)
if [ -n "$dockerd" ] && [ "$(id -u)" = 0 ]; then
    "$dockerd" --data-root "$T/d/data" --exec-root "$T/d/exec" -H "unix://$T/d/sock" -p "$T/d/pid" --iptables=false --ip-masq=false --bridge=none \
        --storage-driver vfs >"$T/d/log" 2>&1 &
    dpid=$!
    PIDS+=("$dpid")
    while kill -0 "$dpid" 2>/dev/null && ! docker -H "unix://$T/d/sock" version >/dev/null 2>&1; do sleep 0.2; done
fi
if [ -n "$dockerd" ] && [ -n "${dpid-}" ] && kill -0 "$dpid" 2>/dev/null; then
    exits 7 "docker refuses layers that the config does not have" env DOCKER_HOST="unix://$T/d/sock" "$REPERF" image load "$(name "$liar")"
    answers 0 '"\(.engine) \(.id) \(.was_there)"' "docker sha256:$config false" "into docker: its id is the config's digest" env DOCKER_HOST="unix://$T/d/sock" "$REPERF" image load "$GZ" --json
    name=$(value "$T/out" "d['engine_name']")
    valid image-output
    is "$(docker -H "unix://$T/d/sock" image inspect --format '{{.Id}} {{len .RootFS.Layers}}' "$name")" "sha256:$config 3" \
        "docker has all its layers under our name"
    answers 0 .was_there true "again: it was there" env DOCKER_HOST="unix://$T/d/sock" "$REPERF" image load "$GZ" --json
    exits 0 "unpacked layers" env DOCKER_HOST="unix://$T/d/sock" "$REPERF" image load "$(name "$plain")"
    # An image saved by docker itself comes back, known by the lock's image id.
    docker -H "unix://$T/d/sock" save -o "$T/saved.tar" "sha256:$config"
    answers 0 '.items[0].config' "sha256:$config" "what docker save wrote is the same image" env REPERF_STORE="$T/saved" "$REPERF" fetch --locks "$LOCKS" "image:example.org/team/saved:1" --offline --layout "$T/saved.tar" --json
    exits 0 "and holds" env REPERF_STORE="$T/saved" "$REPERF" verify --locks "$LOCKS" "image:example.org/team/saved:1"
    cp -R "$REPERF_STORE" "$T/damaged"
    layer="$T/damaged/blobs/sha256/$(first_layer)"
    chmod u+w "$layer"
    printf 'damaged!' | dd of="$layer" bs=1 seek=5000 conv=notrunc 2>/dev/null
    docker -H "unix://$T/d/sock" image rm -f "sha256:$config" >/dev/null
    exits 5 "a store that is corrupt is not loaded" env DOCKER_HOST="unix://$T/d/sock" REPERF_STORE="$T/damaged" "$REPERF" image load "$GZ"
    is "$(docker -H "unix://$T/d/sock" image ls -q --no-trunc | grep -c "$config")" 0 "and docker has nothing of it"
else
    skip "into docker" "no dockerd can be started here: $(tail -n 1 "$T/d/log" 2>/dev/null | cut -c1-100)"
fi
mkdir -p "$T/bin" "$T/p"
cat >"$T/bin/podman" <<EOF
#!/bin/sh
exec /usr/bin/podman --root "$T/p/root" --runroot "$T/p/run" --tmpdir "$T/p/tmp" --storage-driver vfs --cgroup-manager cgroupfs --events-backend none "\$@"
EOF
chmod +x "$T/bin/podman"
# Whether podman can load anything here is tried with an image that we did not make: where / is no mount point, it cannot.
podman_works() {
    [ -x /usr/bin/podman ] && skopeo copy --quiet "oci:$L:plain" "docker-archive:$T/probe.tar:example.org/probe:1" &&
        "$T/bin/podman" load --input "$T/probe.tar" && "$T/bin/podman" image rm --force example.org/probe:1
}
if podman_works >"$T/podman.out" 2>&1; then
    answers 0 '"\(.engine) \(.id)"' "podman sha256:$config" "into podman: its id is the config's digest" env PATH="$T/bin:$PATH" "$REPERF" image load "$GZ" --engine podman --json
    exits 0 "zstd layers" env PATH="$T/bin:$PATH" "$REPERF" image load "$(name "$zst")" --engine podman
else
    skip "into podman" "podman loads nothing here: $(grep -m1 -i -E "error|fatal" "$T/podman.out" | cut -c1-160)"
fi
# An engine that reports success and has another image: its name is not trusted.
cat >"$T/bin/docker" <<'EOF'
#!/bin/sh
case "$1" in
version) exit 0 ;;
load) cat >/dev/null; echo "Loaded image: whatever" ;;
image) echo "sha256:0000000000000000000000000000000000000000000000000000000000000000" ;;
esac
EOF
chmod +x "$T/bin/docker"
exits 5 "an engine that has another image afterwards" env PATH="$T/bin:$PATH" "$REPERF" image load "$GZ"

# --- faults in the store -----------------------------------------------------------------------------
layer=$(first_layer)
chmod u+w "$REPERF_STORE/blobs/sha256/$layer"
cp "$REPERF_STORE/blobs/sha256/$layer" "$T/good"
printf 'damaged!' | dd of="$REPERF_STORE/blobs/sha256/$layer" bs=1 seek=5000 conv=notrunc 2>/dev/null
prints 5 "layer 1 of 3 sha256:$layer: corrupt" "a flipped byte in a layer" img verify "$GZ" --json
exits 5 "and is not exported" "$REPERF" image export "$GZ" --output "$T/c.tar"
is "$(find "$T" -maxdepth 1 -name 'c.tar*')" "" "nothing is left of that"
head -c 6000 "$T/good" >"$REPERF_STORE/blobs/sha256/$layer"
prints 5 "layer 1 of 3 .*expected $(bytes "$T/good") bytes, found 6000" "a layer that is cut" img verify "$GZ"
exits 0 "fetch notices, and takes it again" img fetch "$GZ" --offline --layout "$L"
exits 0 "so that it holds" img verify "$GZ"
rm -f "$REPERF_STORE/blobs/sha256/$layer" "$REPERF_STORE/blobs/sha256/$config"
prints 5 "config sha256:$config: missing" "a layer and the config are missing" img verify "$GZ"
like "$(cat "$T/out")" "layer 1 of 3 sha256:$layer: missing" "are named"
exits 0 "fetch brings them back" img fetch "$GZ" --offline --layout "$L"
exits 0 "and all is well" img verify "$GZ"
exits 0 "rm" "$REPERF" image rm "$GZ"
exits 2 "it is gone from the list" "$REPERF" image rm "$GZ"
answers 0 '.images | length' 3 "ls as a document: three are left" "$REPERF" image ls --json
valid image-output
tap_done
