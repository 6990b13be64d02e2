#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A small image with a shell, reperf-train and reperf, made without any engine or network and pushed to the cluster's registry: image.sh STATE
# [NAME [PROGRAM...]]. Prints NAME@sha256:DIGEST. The same programs give the same digest. Needs the head's network: run it by shell.sh, or from
# a test. B is the build folder; EXTRA: a folder that is laid over the root.
set -eu
# shellcheck source=tests/cluster/env.sh
. "$(dirname "$0")/env.sh"
# State is not used but asked for, so that nobody pushes to a registry that is not the cluster's.
S=$1 name=${2:-reperf/cpu}
cluster_is_up "$S" || {
    echo "no cluster is up in $S" >&2
    exit 1
}
shift $(($# < 2 ? $# : 2))
B=${B:-$CLUSTER_DIR/../../build/release}
[ $# -gt 0 ] || set -- "$B/reperf-train" "$B/reperf"
command -v busybox >/dev/null || {
    echo "busybox is not installed" >&2
    exit 1
}
sha() { sha256sum "$@" | cut -d' ' -f1; }
size() { stat -Lc %s "$1"; }
libraries() { ldd "$@" 2>/dev/null | sed '/:$/d; s/ (0x[0-9a-f]*)//' || :; } # PROGRAM...
key=$({
    sha256sum "$0" "$(command -v busybox)" "$@" | sed 's, .*/, ,'
    libraries "$@"
    libraries "$@" | awk '$2 == "=>" { print $3 }' | sort -u | xargs -r sha256sum
    [ -z "${EXTRA:-}" ] || (cd "$EXTRA" && find . -type f -exec sha256sum {} + -o -type l -printf '%p %l\n' | LC_ALL=C sort)
} | sha)
layout="$B/tests/image-$key"
make_layout() { # FOLDER
    local out=$1 root=$1/root layer config manifest program
    shift
    mkdir -p "$root"/{bin,usr/bin,tmp,etc,dev,proc,sys,root,lib64}
    chmod 1777 "$root/tmp"
    echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
    cp "$(command -v busybox)" "$root/bin/busybox"
    # What scripts here and in the workload's wrapper use.
    for program in sh cat echo sleep ls grep sed awk cut head tail wc mkdir rm cp mv ln env id hostname date df mount ulimit stat sha256sum dd tr sort uniq seq true false kill ps test printf expr find chmod touch nproc ip dirname; do
        ln -sf busybox "$root/bin/$program"
    done
    for program in "$@"; do
        install -m 755 "$program" "$root/usr/bin/${program##*/}"
    done
    # Each library at the path that the loader looks for it, and the loader itself.
    libraries "$@" | awk '$2 == "=>" { print $3 } $1 ~ /^\// { print $1 }' | sort -u | while IFS= read -r program; do
        [ -f "$program" ] && [ ! -e "$root$program" ] && install -D "$(readlink -f "$program")" "$root$program"
    done
    [ -z "${EXTRA:-}" ] || cp -a "$EXTRA/." "$root/"
    mkdir -p "$out/blobs"
    tar -C "$root" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --format=gnu -cf "$out/layer" .
    rm -rf "$root"
    layer=$(sha "$out/layer")
    printf '{"architecture":"amd64","os":"linux","created":"1970-01-01T00:00:00Z","config":{"Env":["PATH=/usr/bin:/bin"],"Cmd":["/bin/sh"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]},"history":[{"created_by":"tests/cluster/image.sh"}]}' \
        "$layer" >"$out/config"
    config=$(sha "$out/config")
    printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:%s","size":%s},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"sha256:%s","size":%s}]}' \
        "$config" "$(size "$out/config")" "$layer" "$(size "$out/layer")" >"$out/manifest"
    manifest=$(sha "$out/manifest")
    echo "$layer $config $manifest" >"$out/digests"
}
if [ ! -e "$layout/digests" ]; then
    mkdir -p "$B/tests"
    # Of what was made before, the newest few are kept.
    find "$B/tests" -maxdepth 1 -name 'image-*' -printf '%T@ %p\n' | sort -rn | tail -n +9 | cut -d' ' -f2- | xargs -r -d '\n' rm -rf
    make_layout "$layout.new.$$" "$@"
    mv -T "$layout.new.$$" "$layout" 2>/dev/null || rm -rf "$layout.new.$$"
fi
read -r layer config manifest <"$layout/digests"
url="http://$HEAD_IP:$REGISTRY_PORT/v2/$name"
web() { curl -sSf --noproxy '*' --max-time 60 "$@"; }
push() { # DIGEST FILE
    local place
    web -o /dev/null -I "$url/blobs/sha256:$1" 2>/dev/null && return 0
    place=$(web -o /dev/null -D - -X POST "$url/blobs/uploads/" | tr -d '\r' | sed -n 's/^[Ll]ocation: //p')
    web -o /dev/null -X PUT -H 'Content-Type: application/octet-stream' -T "$2" "$place&digest=sha256:$1"
}
push "$layer" "$layout/layer"
push "$config" "$layout/config"
web -o /dev/null -X PUT -H 'Content-Type: application/vnd.oci.image.manifest.v1+json' --data-binary "@$layout/manifest" "$url/manifests/sha256:$manifest"
web -o /dev/null -X PUT -H 'Content-Type: application/vnd.oci.image.manifest.v1+json' --data-binary "@$layout/manifest" "$url/manifests/latest"
echo "$name@sha256:$manifest"
