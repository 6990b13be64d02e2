#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A command in an image that images/build.sh has made, on this machine, without an engine: images/run.sh NAME [--bind FOLDER]... COMMAND...
# It sees the image's files, /proc, /sys and /dev, this repository (read-only) and each --bind FOLDER under its own path, and starts in the folder that this was called in, else in /; nothing of it stays but what it
# writes there. Ends with the command's status. Needs root. The files are unpacked once, next to the layers in ${REPERF_IMAGES:-~/.cache/reperf-images}.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
name=${1:?expected the NAME of an image}
shift
binds=()
while [ "${1:-}" = --bind ]; do
    binds+=("$(realpath -e "${2:?--bind: expected a folder}")")
    shift 2
done
[ $# -gt 0 ] || { echo "run.sh: expected a command" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "run.sh: only root can enter an image" >&2; exit 7; }
layout=$("$here/build.sh" "$name" --cached)
root=$(dirname "$layout")/root-$(basename "$layout")
blob() { echo "$layout/blobs/sha256/${1#sha256:}"; }
unpack() {
    local manifest layer work
    manifest=$(blob "$(jq -r '.manifests[0].digest' "$layout/index.json")")
    work=$(mktemp -d "$root.XXXXXX")
    for layer in $(jq -r '.layers[].digest' "$manifest"); do tar -C "$work" -xzf "$(blob "$layer")"; done
    mkdir -p "$work"/{proc,sys,dev,tmp,work}
    mv "$work" "$root"
}
exec 9>"$root.lock"
flock 9
[ -d "$root" ] || unpack
exec 9>&-
# An overlay in memory takes what the command writes.
# shellcheck disable=SC2016
exec unshare --mount --pid --fork --kill-child bash -euc '
    root=$1 own=$2 where=$3 n=$4
    shift 4
    at=$root/work
    mount -t tmpfs none "$at" && mkdir "$at/upper" "$at/work" "$at/all"
    mount -t overlay overlay -o "lowerdir=$root,upperdir=$at/upper,workdir=$at/work" "$at/all"
    mount -t proc none "$at/all/proc" && mount --rbind /sys "$at/all/sys" && mount --rbind /dev "$at/all/dev"
    mkdir -p "$at/all$own" && mount --bind -o ro "$own" "$at/all$own"
    while [ "$n" -gt 0 ]; do
        mkdir -p "$at/all$1" && mount --bind "$1" "$at/all$1"
        shift && n=$((n - 1))
    done
    [ -d "$at/all$where" ] || where=/
    exec chroot "$at/all" /usr/bin/env -C "$where" -i PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 HOME=/root PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 "$@"
' run.sh "$root" "$(dirname "$here")" "$PWD" "${#binds[@]}" "${binds[@]}" "$@"
