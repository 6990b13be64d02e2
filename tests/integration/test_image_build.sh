#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: store
# images/build.sh: what it refuses, and in make test-all that the same inputs give the same image.
# shellcheck source=tests/tap_lib.sh
. "$(dirname "$0")/../tap_lib.sh"
export REPERF_IMAGES="$T/one"
exits 2 "no name" images/build.sh
fails 2 'no such image' "an image without a description" images/build.sh none-such
exits 2 "an unknown option" images/build.sh paddle-cpu --fast
fails 2 'reperf data fetch image:ngc-pytorch-20.06' "an image that is pulled" images/build.sh ngc-pytorch-20.06
for image in images/*/system.in; do
    name=$(basename "$(dirname "$image")")
    fails 4 "images/build.sh $name" "$name was not made yet" images/build.sh "$name" --cached
    is "$(wc -l <"images/$name/system.lock")" "$(grep -cE '^[a-z0-9.+-]+ [^ ]+$' "images/$name/system.lock")" "$name: each package is locked to a version"
    [ ! -e "images/$name/requirements.in" ] || is "$(wc -l <"images/$name/requirements.lock")" \
        "$(grep -cE '^[^ ]+==[^ ]+ --hash=sha256:[0-9a-f]{64}$' "images/$name/requirements.lock")" "$name: each file of the index is locked to a digest"
done
# If only another Python is missing, the message says that.
mkdir -p "$REPERF_IMAGES"
: >"$REPERF_IMAGES/system-$({ echo "1 bookworm 3.11" && cat images/tf1-cpu/system.{in,lock}; } | sha256sum | cut -d' ' -f1).tar.gz"
fails 4 'needs a Python 3[.]7, and none answers on PATH' "a Python that this machine lacks" env PATH=/usr/bin:/bin images/build.sh tf1-cpu

# A registry that speaks HTTP alone is spoken to so, without an option; the engine is made up.
mkdir -p "$T/bin" "$T/www/v2"
printf '#!/bin/sh\nexit 1\n' >"$T/bin/docker" && chmod +x "$T/bin/docker"
/usr/bin/python3 -u -m http.server --bind 127.0.0.1 --directory "$T/www" 0 >"$T/served" 2>&1 &
server=$!
trap 'kill $server; rm -rf "$T"' EXIT
served "$server" "the registry" grep -q 'port [0-9]' "$T/served"
port=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' "$T/served")
fails 7 "127.0.0.1:$port speaks plain HTTP alone" "a push to a registry without TLS" env PATH="$T/bin:$PATH" images/build.sh mmseg-0.30.0 --push "127.0.0.1:$port/mmseg"
omits 7 'plain HTTP' "a push to where nobody answers says nothing of it" env PATH="$T/bin:$PATH" images/build.sh mmseg-0.30.0 --push "127.0.0.1:1/mmseg"

# What a stack installs is an image on top of the report's: that one by the digest of its lock, and the site's proxy and index reach pip.
printf '#!/bin/sh\nprintf "%%s\\n" "$*" >>"%s"\n' "$T/notes" >"$T/bin/docker"
# shellcheck disable=SC2030,SC2031,SC2317 # called by exits
derive() { (cd "$T" && PATH="$T/bin:$PATH" XDG_DATA_HOME="$T/data" "$@" "$ROOT/images/build.sh" paddleseg-f3cec79); }
warns 0 'is taken by its tag, which may move; reperf data lock image:paddle-benchmark-2.5.0 pins it' "a base without a lock" derive env
is "$(grep -c -- --build-arg "$T/notes")" 0 "and nothing is given to the build"
mkdir -p "$T/manifests/locks/image"
hex=$(printf 'b%.0s' {1..64})
printf '{"items": [{"name": "digest", "sha256": "0"},\n {"name": "manifest", "bytes": 1,\n "sha256": "%s"}, {"name": "config", "sha256": "1"}]}' "$hex" >"$T/manifests/locks/image/paddle-benchmark-2.5.0.json"
exits 0 "a base with a lock" derive env https_proxy=http://proxy:3128 PIP_INDEX_URL=https://index.example/simple
like "$(tail -n 2 "$T/notes")" "--build-arg BASE=docker.io/paddlepaddle/paddle-benchmark@sha256:$hex --build-arg https_proxy --build-arg PIP_INDEX_URL -f" "is taken by its digest, and proxy and index are those of the environment"
exits 0 "another base" derive env BASE=example.org/base@sha256:0
like "$(tail -n 2 "$T/notes")" '--build-arg BASE=example.org/base@sha256:0' "is the user's choice"

in_test_all "an image built twice" || tap_done
if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
    skip "an image built twice" "debootstrap and root are needed"
    tap_done
fi
mkdir -p "$T/images/tiny" && cp images/build.sh "$T/images/"
echo python3-minimal >"$T/images/tiny/system.in"
echo six==1.16.0 >"$T/images/tiny/requirements.in"
build() { "$T/images/build.sh" tiny "$@"; }
digest() { jq -r '.manifests[0].digest' "$(cat "$T/out")/index.json"; }
if ! build --relock >"$T/out" 2>"$T/err" && grep -q 'debootstrap:\|not on the Python index' "$T/err"; then
    skip "an image built twice" "the distribution's mirror or the Python index is not within reach"
    tap_done
fi
first=$(digest)
like "$first" '^sha256:[0-9a-f]{64}$' "is built, and locked"
leaves 0 digest "$first" "again from what was kept is that image" build --cached
export REPERF_IMAGES="$T/two"
leaves 0 digest "$first" "from nothing is that image, byte for byte" build
layers() { local layout && layout=$(cat "$T/out") && jq -r '.layers[].digest' "$layout/blobs/sha256/$(jq -r '.manifests[0].digest[7:]' "$layout/index.json")"; }
below=$(layers)
mkdir "$T/images/more" && echo tiny >"$T/images/more/from.in" && echo idna==3.6 >"$T/images/more/requirements.in"
exits 0 "an image on top of it" "$T/images/build.sh" more --relock
is "$(layers | head -n 2) $(layers | wc -l)" "$below 3" "has its layers, and one more"
sed -i 's/^python3-minimal .*/python3-minimal 3.0/' "$T/images/tiny/system.lock"
fails 5 '^< python3-minimal 3.0' "another version of a package than the locked one" build
exits 0 "taken on purpose" build --relock
sed -i 's/sha256:0/sha256:X/; s/sha256:[^X]/sha256:0/; s/sha256:X/sha256:1/' "$T/images/tiny/requirements.lock"
fails 4 'requirements.lock' "another file of the index than the locked one" build
tap_done
