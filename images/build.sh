#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes one of our images from the distribution, the Python index and our own programs alone, without a registry; or, where there is a Dockerfile and no
# system.in, on top of the image that it names:
#   images/build.sh NAME|FOLDER [--push REGISTRY/REPOSITORY [--plain-http] | --store] [--relock | --cached]
# Prints REPOSITORY@sha256:DIGEST (what --image NAME= takes) where it pushed, or with --store, which needs no registry, put the image into reperf's store, where
# a run finds it by its NAME and gives it to the nodes; else the folder of the OCI layout. Each layer is kept under a key of what
# it is made from in ${REPERF_IMAGES:-${XDG_CACHE_HOME:-~/.cache}/reperf-images}; the same inputs give the same bytes. images/NAME has
#   system.in         packages of the distribution; system.lock: every package and version that they stood for when --relock was last given
#   from.in           instead of system.in: another of our images, of which all layers are taken
#   requirements.in   of the Python index, with --no-deps where its first line says so; requirements.lock: each file by its digest; may be absent
#   programs.in       of this project, as they lie in ${B:-build/release}; may be absent
#   python.in         another Python than the distribution's, as 3.7: the one of that version on PATH is a layer of its own; may be absent
# A build that gets other versions fails and names them. --cached builds nothing: status 4 if the image was not built before. Needs root, debootstrap and pip; skopeo to push.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
suite=bookworm python=3.11 interpreter=/usr/bin/python3 packages=dist-packages
method=1 # of how layers are made below: another number, where the same inputs would give other bytes
die() {
    echo "build.sh: $1" >&2
    exit "${2:-7}"
}
lacks() { command -v "$1" >/dev/null || die "$1 is not installed"; }
name='' push='' store='' tls=true relock='' cached=''
while [ $# -gt 0 ]; do
    case $1 in
        --push) push=${2:?--push: expected REGISTRY/REPOSITORY} && shift ;;
        --plain-http) tls=false ;;
        --store) store=1 ;;
        --relock) relock=1 ;;
        --cached) cached=1 ;;
        -*) die "unknown option $1" 2 ;;
        *) name=$1 ;;
    esac
    shift
done
# An OCI layout into the store of reperf, under the name that image.json gives it.
to_store() { # FOLDER
    local program=${B:-$here/../build/release}/reperf reference one
    reference=$(sed -n 's/^ *"name": "\([^"]*\)".*/\1/p' "$own/image.json")@$(sed 's/.*"digest":"\(sha256:[0-9a-f]*\)".*/\1/' "$1/index.json")
    [ -x "$program" ] || program=$(command -v reperf) || die "reperf is not built: make"
    "$program" data drop "image/$name" >/dev/null 2>&1 || : # an earlier one
    for one in "$reference" "$name"; do
        "$program" fetch "image:$one" --layout "$1" --offline >&2 || die "images/$name does not get into the store" 5
    done
    echo "$reference"
}
# The image that a Dockerfile starts from, by the digest that its lock has; nothing where it is in no folder of images/, or not locked.
locked_base() {
    local base id file folder digest
    base=$(sed -n 's/^ARG BASE=//p' "$own/Dockerfile")
    while IFS= read -r file; do
        grep -qFx "  \"tag\": \"${base##*:}\"," "$file" || continue
        id=$(basename "${file%/image.json}")
        for folder in ${REPERF_ROOT:+"$REPERF_ROOT/manifests"} manifests "${XDG_DATA_HOME:-$HOME/.local/share}/reperf/manifests" "$here/../manifests"; do
            [ -e "$folder/locks/image/$id.json" ] || continue
            digest=$(tr -d ' \n' <"$folder/locks/image/$id.json" | sed -n 's/.*"name":"manifest"[^}]*"sha256":"\([0-9a-f]*\)".*/\1/p')
            echo "${base%:*}@sha256:$digest"
            return
        done
    done < <(grep -lFx "  \"name\": \"${base%:*}\"," "$here"/*/image.json)
    echo "build.sh: $base is taken by its tag, which may move${id:+; reperf data lock image:$id pins it}" >&2
}
# On top of another image, by this machine's engine or that of DOCKER_HOST, which must reach that image's registry. BASE: another image to start from. What
# the environment says of proxies and of the Python index holds for the build, and is not kept in the image.
from_dockerfile() {
    local engine what=${push:-reperf/$name}:latest word context=$own given=()
    : "${BASE=$(locked_base)}"
    for word in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY PIP_INDEX_URL PIP_TRUSTED_HOST; do
        [ -z "${!word:-}" ] || given+=(--build-arg "$word")
    done
    [ -z "$relock$cached" ] || die "images/$name is made from its Dockerfile: it has no --relock and no --cached" 2
    engine=$(command -v docker || command -v podman) || die "images/$name is made from its Dockerfile: neither docker nor podman is installed"
    ! grep -q '^COPY' "$own/Dockerfile" || context=$here/..
    "$engine" build ${BASE:+--build-arg BASE="$BASE"} "${given[@]}" -f "$own/Dockerfile" -t "$what" "$context" >&2 || die "images/$name: its Dockerfile cannot be built here"
    if [ -n "$store" ]; then
        lacks skopeo
        work=$(mktemp -d)
        trap 'rm -rf "$work"' EXIT
        "$engine" save -o "$work/saved.tar" "$what" >&2 || die "images/$name cannot be saved"
        skopeo copy -q "docker-archive:$work/saved.tar" "oci:$work/layout" >&2 || die "images/$name: what was saved cannot be read" 5
        to_store "$work/layout"
        return
    fi
    if [ -z "$push" ]; then
        "$engine" image inspect --format '{{.Id}}' "$what"
        return
    fi
    "$engine" push "$what" >&2 || die "push to $push failed" 4
    "$engine" image inspect --format '{{range .RepoDigests}}{{println .}}{{end}}' "$what" | grep -F "$push@sha256:" || die "the engine names no digest of $push" 5
}
# A registry that speaks HTTP alone, as a site's own often does: asked once, so that a command of `reperf plan` works as it is printed.
speaks_http_alone() { # HOST:PORT
    local status=0
    curl -s -o /dev/null -m 10 "https://$1/v2/" || status=$?
    [ $status -eq 35 ] && curl -s -o /dev/null -m 10 "http://$1/v2/" # 35: no TLS there
}
if [ -n "$push" ] && $tls && command -v curl >/dev/null && speaks_http_alone "${push%%/*}"; then
    echo "build.sh: ${push%%/*} speaks plain HTTP alone" >&2
    tls=false
fi
[ -z "$store" ] || [ -z "$push" ] || die "--push and --store: one of them" 2
[ -n "$name" ] || die "expected the NAME of a folder of images/ with a system.in or a Dockerfile" 2
own=$here/$name
case $name in */*) own=$(cd "$name" && pwd) && name=${own##*/} ;; esac # beside one's own manifests
if [ ! -e "$own/system.in" ] && [ ! -e "$own/from.in" ]; then
    [ -d "$own" ] || die "images/$name: no such image" 2
    [ -e "$own/Dockerfile" ] || die "images/$name is pulled as it is: reperf data fetch image:$name" 2
    from_dockerfile
    exit
fi
cache=${REPERF_IMAGES:-${XDG_CACHE_HOME:-$HOME/.cache}/reperf-images}
mkdir -p "$cache"
work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
sha() { sha256sum "$@" | cut -d' ' -f1; }
words() { sed 's/#.*//' "$1" | xargs; }
# Both layers' times, owners and order are fixed, so that their bytes depend only on their content.
pack() { # ROOT LAYER
    tar -C "$1" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --format=posix \
        --pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime -cf "$2.tar" .
    gzip -n6 <"$2.tar" >"$2.tar.gz"
    sha256sum "$2.tar" | cut -d" " -f1 >"$2.diff_id"
    rm "$2.tar"
}

# ---- system ----

bootstrap() { # ROOT
    local root=$1 mirror sources=/etc/apt/sources.list
    lacks debootstrap
    [ "$(id -u)" = 0 ] || die "only root can make a root file system"
    mirror=$({ cat "$sources" "$sources".d/* 2>/dev/null || :; } | awk '!found && ($1 == "URIs:" || $1 == "deb") { print $2; found = 1 }')
    debootstrap --variant=minbase --include="$(words "$own/system.in" | tr ' ' ,)" "$suite" "$root" "$mirror" >"$work/debootstrap.log" 2>&1 ||
        die "debootstrap: $(tail -n 3 "$work/debootstrap.log")" 4
    chroot "$root" dpkg-query -W | sed 's/:amd64//; s/\t/ /' | LC_ALL=C sort >"$work/system.lock"
    # Removes what differs from build to build, and where it was fetched from.
    rm -rf "${root:?}"/{var/{cache/{apt,ldconfig,debconf,fontconfig},lib/{apt/lists,systemd},log},usr/share/{doc,man,locale,info,lintian},dev,tmp,run}/* \
        "$root"/var/lib/dpkg/*-old "$root"/etc/{resolv.conf,hostname,machine-id,apt/sources.list,{passwd,group,shadow,gshadow,subuid,subgid}-}
    find "$root" -name __pycache__ -type d -prune -exec rm -rf {} +
    sed -i -E 's/^([^:]*:[^:]*:)[0-9]+:/\119000:/' "$root/etc/shadow"
}
keep() { # ROOT LAYER: packed, under the layer's name
    pack "$1" "$work/layer"
    mv "$work/layer.diff_id" "$2.diff_id" && mv "$work/layer.tar.gz" "$2.tar.gz"
}
key() { { echo "$method $suite $python" && cat "$@"; } | sha; }
# Of the folder of an image.
system_layer() { echo "$cache/system-$(key "$1/system.in" "$1/system.lock")"; }
framework_layer() { echo "$cache/framework-$(key "$1/requirements.lock")"; }
is_here() { # LAYER: false where it is to be made
    [ -e "$1.tar.gz" ] || { [ -z "$cached" ] || die "images/$name was not made yet: images/build.sh $name" 4; false; }
}
make_system() {
    bootstrap "$work/root"
    if [ -n "$relock" ]; then
        cp "$work/system.lock" "$own/system.lock"
    elif ! diff "$own/system.lock" "$work/system.lock" >"$work/diff"; then
        die "images/$name/system.lock: the distribution has other versions now (< locked, > now; --relock takes them):
$(grep '^[<>]' "$work/diff" | head -n 20)" 5
    fi
    keep "$work/root" "$(system_layer "$own")"
}
if [ -e "$own/from.in" ]; then
    base=$here/$(words "$own/from.in")
    "$here/build.sh" "${base##*/}" ${cached:+--cached} >/dev/null
    layers=("$(system_layer "$base")" "$(framework_layer "$base")")
else
    touch -a "$own/system.lock"
    if [ -n "$relock" ] || ! is_here "$(system_layer "$own")"; then make_system; fi
    layers=("$(system_layer "$own")")
fi

# ---- another Python ----

version_of() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null; }
# Without its tests, its packages and what was compiled. Of the libraries that it needs, those that the system's layer lacks go along.
make_python() { # LAYER
    local root=$work/python at lib file
    at=$("$interpreter" -c 'import sys; print(sys.base_prefix)')
    lib=$root/usr/local/lib/python$python
    mkdir -p "$root/usr/local/bin" "$root/usr/lib/x86_64-linux-gnu" "$lib"
    tar -C "$at/lib/python$python" --exclude=./test --exclude=./idlelib --exclude=./tkinter --exclude=./ensurepip --exclude=./lib2to3 --exclude=./site-packages \
        --exclude=./dist-packages --exclude='./config-*' --exclude=__pycache__ --exclude='./lib-dynload/_tkinter*' --exclude='./lib-dynload/_test*' -cf - . | tar -C "$lib" -xf -
    mkdir -p "$lib/site-packages"
    install -m 755 "$("$interpreter" -c 'import os, sys; print(os.path.realpath(sys.executable))')" "$root/usr/local/bin/python$python"
    for file in python python3; do ln -s "python$python" "$root/usr/local/bin/$file"; done
    tar -tzf "$1" >"$work/has"
    ldd "$root/usr/local/bin/python$python" "$lib"/lib-dynload/*.so | awk '$2 == "=>" { print $3 }' | LC_ALL=C sort -u | while IFS= read -r file; do
        grep -q "/${file##*/}\$" "$work/has" || install -m 644 "$(realpath "$file")" "$root/usr/lib/x86_64-linux-gnu/${file##*/}"
    done
    keep "$root" "$2"
}
if [ -e "$own/python.in" ]; then
    python=$(words "$own/python.in") packages=site-packages
    interpreter=$(command -v "python$python" || :)
    [ "$(version_of "$interpreter")" = "$python" ] ||
        die "images/$name needs a Python $python, and none answers on PATH (with pyenv: PYENV_VERSION=$python.N)" 4
    layer=$cache/python-$({ echo "$method $suite" && "$interpreter" -VV && cat "$own/system.lock"; } | sha)
    is_here "$layer" || make_python "${layers[0]}.tar.gz" "$layer"
    layers+=("$layer")
fi

# ---- framework ----

pip() {
    [ "$(version_of "$interpreter")" = "$python" ] || die "$interpreter is not Python $python"
    # What pip says of root and of newer versions of itself is not for people.
    PIP_ROOT_USER_ACTION=ignore SOURCE_DATE_EPOCH=315532800 "$interpreter" -m pip --disable-pip-version-check --no-input --quiet "$@" >&2
}
wheels=$cache/wheels
mkdir -p "$wheels"
relock_requirements() { # each file of the index that a build takes, by its digest: a wheel, or where there is none the source
    local file no_deps=()
    ! head -n 1 "$own/requirements.in" | grep -q -- --no-deps || no_deps=(--no-deps)
    pip download "${no_deps[@]}" --no-build-isolation --dest "$work/wheels" --find-links "$wheels" -r "$own/requirements.in" || die "requirements.in is not on the Python index" 4
    for file in "$work/wheels"/*; do
        echo "$(basename "$file" | sed -E 's/\.tar\.gz$|\.zip$//; s/^([^-]*(-[^-0-9][^-]*)*)-([^-]*).*/\1==\3/') --hash=sha256:$(sha "$file")"
    done | LC_ALL=C sort >"$own/requirements.lock"
    cp -n "$work/wheels"/* "$wheels/"
}
make_framework() { # LAYER
    local site=usr/local/lib/python$python/$packages
    mkdir -p "$work/own/$site"
    pip download --no-deps --require-hashes --no-build-isolation --dest "$wheels" -r "$own/requirements.lock" ||
        die "what images/$name/requirements.lock names is not on the Python index as it was" 4
    pip install --no-deps --require-hashes --no-index --find-links "$wheels" --no-build-isolation --no-compile --no-warn-script-location \
        --target "$work/own/$site" -r "$own/requirements.lock" || die "pip could not install images/$name/requirements.lock" 5
    rm -rf "$work/own/$site/bin"
    # pip writes here when and by what it was installed.
    find "$work/own/$site" -path '*.dist-info/*' \( -name INSTALLER -o -name REQUESTED -o -name direct_url.json \) -delete
    sed -i -E '/\.dist-info\/(INSTALLER|REQUESTED|direct_url\.json),|^\.\.\/|^bin\/|__pycache__/d' "$work/own/$site"/*.dist-info/RECORD
    find "$work/own/$site" -name __pycache__ -type d -prune -exec rm -rf {} +
    keep "$work/own" "$1"
}
if [ -e "$own/requirements.in" ]; then
    [ -z "$relock" ] || relock_requirements
    layer=$(framework_layer "$own")
    is_here "$layer" || make_framework "$layer"
    layers+=("$layer")
fi

# ---- programs ----

make_programs() { # LAYER FILE...
    local layer=$1
    shift
    mkdir -p "$work/programs/usr/local/bin"
    install -m 755 "$@" "$work/programs/usr/local/bin/"
    keep "$work/programs" "$layer"
}
if [ -e "$own/programs.in" ]; then
    files=()
    for program in $(words "$own/programs.in"); do
        files+=("${B:-$here/../build/release}/$program")
        [ -x "${files[-1]}" ] || die "${files[-1]} is not built: make"
    done
    layer=$cache/programs-$(key "${files[@]}")
    [ -e "$layer.tar.gz" ] || make_programs "$layer" "${files[@]}"
    layers+=("$layer")
fi

# ---- image ----

layout=$cache/$name-$(printf '%s\n' "${layers[@]##*/}" | sha)
blob() { # FILE: prints its digest and size
    local digest
    digest=$(sha "$1")
    ln -f "$1" "$work/layout/blobs/sha256/$digest" 2>/dev/null || cp "$1" "$work/layout/blobs/sha256/$digest"
    echo "$digest $(stat -c %s "$1")"
}
make_layout() {
    local parts='' diffs='' history='' layer what digest size config
    mkdir -p "$work/layout/blobs/sha256"
    for layer in "${layers[@]}"; do
        read -r digest size < <(blob "$layer.tar.gz")
        parts+="${parts:+,}{\"mediaType\":\"application/vnd.oci.image.layer.v1.tar+gzip\",\"digest\":\"sha256:$digest\",\"size\":$size}"
        diffs+="${diffs:+,}\"sha256:$(cat "$layer.diff_id")\""
        what=${layer##*/}
        history+="${history:+,}{\"created_by\":\"images/build.sh: ${what%%-*}\"}"
    done
    printf '{"architecture":"amd64","os":"linux","created":"1970-01-01T00:00:00Z","config":{"Env":["PATH=/usr/local/bin:/usr/bin:/bin","LANG=C.UTF-8","PYTHONUNBUFFERED=1","PYTHONDONTWRITEBYTECODE=1"],"Cmd":["/bin/sh"]},"rootfs":{"type":"layers","diff_ids":[%s]},"history":[%s]}' \
        "$diffs" "$history" >"$work/config"
    read -r digest size < <(blob "$work/config")
    config="{\"mediaType\":\"application/vnd.oci.image.config.v1+json\",\"digest\":\"sha256:$digest\",\"size\":$size}"
    printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":%s,"layers":[%s]}' "$config" "$parts" >"$work/manifest"
    read -r digest size < <(blob "$work/manifest")
    printf '{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:%s","size":%s,"platform":{"architecture":"amd64","os":"linux"}}]}' \
        "$digest" "$size" >"$work/layout/index.json"
    echo '{"imageLayoutVersion":"1.0.0"}' >"$work/layout/oci-layout"
    rm -rf "$layout"
    mv "$work/layout" "$layout"
}
[ -e "$layout/index.json" ] || make_layout
if [ -n "$store" ]; then
    to_store "$layout"
    exit
fi
if [ -z "$push" ]; then
    echo "$layout"
    exit
fi
lacks skopeo
skopeo copy -q --preserve-digests --dest-tls-verify="$tls" "oci:$layout" "docker://$push:latest" >&2 || die "push to $push failed" 4
echo "$push@$(sed 's/.*"digest":"\(sha256:[0-9a-f]*\)".*/\1/' "$layout/index.json")"
