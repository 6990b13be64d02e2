#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: fleet
# `nodes provision` on this machine as the one node: a real dockerd, a real podman and a real registry, and what goes wrong with each.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2317
source "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/engines_lib.sh disable=SC1091
source "$ROOT/tests/integration/engines_lib.sh"
needs "images on nodes" skopeo gcc docker-registry jq
make_layer one 300000
make_layer two 20000
L="$T/layout"
good=$(add_manifest "$L" amd64 oci gzip one two)
REFS=(good)
write_index "$L/index.json" "$good"
finish_layout "$L"
config=sha256:$(cut -d' ' -f4 <<<"$good")
digest=sha256:${good%% *}
layer=$(jq -r '.layers[0].digest' "$L/blobs/sha256/${good%% *}")
IMAGE="example.org/team/img@$digest"
start_registry main
MAIN=$PORT
MAIN_PID=$PID
push "$L:good" "127.0.0.1:$MAIN/team/img:1"

inventory() { # NAME ENGINE REGISTRY: $T/NAME.json, this machine
    jq --arg id "$1" --arg runtime "$2" --arg registry "$3" '.id = $id | .runtime = $runtime | if $registry == "" then . else .registry = $registry end' \
        manifests/inventories/local.json >"$T/$1.json"
}
# shellcheck disable=SC2317 # run by exits
provision() { "$REPERF" nodes provision --locks "$LOCKS" "$T/$1.json" --image "${2:-$IMAGE}" "${@:3}"; } # INVENTORY [IMAGE OPTION...]
way() { value "$T/out" "d['images'][0]['nodes'][0]['way'], d['images'][0]['id']"; }
forget() { "$T/bin/$1" rmi -f "$config" >/dev/null 2>&1; } # ENGINE
blob_path() { echo "$T/main/data/docker/registry/v2/blobs/sha256/${1:7:2}/${1#sha256:}/data"; }

# --- what needs no engine --------------------------------------------------------------------------
inventory docker docker "127.0.0.1:$MAIN"
inventory none none ""
exits 2 "nothing to bring" "$REPERF" nodes provision "$T/docker.json"
exits 2 "a runtime that takes no images" provision none
exits 2 "an unknown engine" provision docker "$IMAGE" --runtime rocket
fails 7 "is not pinned.*reperf data lock" "an image without a digest" provision docker example.org/team/img:1
inventory apptainer apptainer "127.0.0.1:$MAIN"
fails 7 "runtime apptainer is untried" "an engine that gets no images" provision apptainer
mkdir -p "$T/none"
ln -sf "$(command -v sh)" "$T/none/sh"
fails 7 "docker: not found on this node" "no engine" env PATH="$T/none" "$REPERF" nodes provision --locks "$LOCKS" "$T/docker.json" --image "$IMAGE"

from_registry() { # ENGINE
    local e=$1 saved
    inventory "$e" "$e" "127.0.0.1:$MAIN"
    # Before the first pull: dockerd may keep a manifest that it once received whole, and then requests it no more.
    saved=$(blob_path "$digest")
    cp "$saved" "$T/good"
    sed -i 's/"size":/"size": /' "$saved"
    exits 5 "$e: a tampered manifest" provision "$e"
    is "$("$T/bin/$e" image inspect "$config" 2>/dev/null | jq length)" 0 "$e: leaves no image"
    cp "$T/good" "$saved"
    leaves 0 way "('pulled', '$config')" "$e: pulled by digest, and its id is the config's digest" provision "$e" "$IMAGE" --json
    valid provision-output
    leaves 0 way "('there', '$config')" "$e: again: it was there" provision "$e" "$IMAGE" --json
    exits 7 "$e: a digest that the registry does not have" provision "$e" "example.org/team/img@sha256:$(printf '1%.0s' {1..64})" --json
    cp "$T/err" "$T/why.err"
    valid provision-output
    like "$(cat "$T/why.err")" "manifest unknown" "$e: in the engine's own words"
    forget "$e"
    inventory down "$e" "127.0.0.1:$(free_port)"
    fails 4 "connection refused" "$e: a registry that is down" provision down
    saved=$(blob_path "$layer")
    cp "$saved" "$T/good"
    printf 'damaged!' | dd of="$saved" bs=1 seek=5000 conv=notrunc 2>/dev/null
    exits 5 "$e: a corrupt layer" provision "$e"
    is "$("$T/bin/$e" image inspect "$config" 2>/dev/null | jq length)" 0 "$e: leaves no image"
    cp "$T/good" "$saved"
    prints 0 "pulled +$config" "$e: mended" provision "$e"
}

from_store() { # ENGINE
    local e=$1
    forget "$e"
    inventory "store-$e" "$e" ""
    rm -rf "$REPERF_STORE"
    fails 2 "reperf data fetch image:" "$e: without registry and not in the store" provision "store-$e"
    exits 0 "$e: in the store" img fetch "$IMAGE" --offline --layout "$L"
    leaves 0 way "('loaded', '$config')" "$e: loaded from there as the same image" provision "store-$e" "$IMAGE" --json
    valid provision-output
    leaves 0 way "('there', '$config')" "$e: again: it was there" provision "store-$e" "$IMAGE" --json
}

if start_docker; then
    PATH="$T/bin:$PATH"
    from_registry docker
    from_store docker
    forget docker
    kill -STOP "$MAIN_PID"
    exits 4 "docker: a registry that is silent" provision docker
    kill -CONT "$MAIN_PID"
    kill "$DOCKERD_PID"
    wait "$DOCKERD_PID" 2>/dev/null
    fails 7 "aemon" "docker: a daemon that is not there" provision docker
else
    skip "docker" "no dockerd can be started here: $(cat "$T/why")"
fi
if start_podman; then
    PATH="$T/bin:$PATH"
    from_registry podman
    from_store podman
else
    skip "podman" "podman runs nothing here: $(cat "$T/why")"
fi
# An engine that says it has the image, by another id.
cat >"$T/bin/docker" <<'EOF2'
#!/bin/sh
case "$1 $2" in
"image inspect") echo "sha256:0000000000000000000000000000000000000000000000000000000000000000" ;;
esac
EOF2
chmod +x "$T/bin/docker"
exits 0 "a tag that a lock pins" "$REPERF" lock --locks "$LOCKS" "image:127.0.0.1:$MAIN/team/img:1"
PATH="$T/bin:$PATH"
fails 5 "the engine has sha256:0000.*, the pin is $config" "an engine that has another image by that name" provision docker "127.0.0.1:$MAIN/team/img:1"
tap_done
