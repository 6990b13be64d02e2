#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: store
# shellcheck disable=SC2094,SC2317
# bundle and import: fetched artifacts, carried to a place without a network, and everything that can go wrong on the way. The other place
# is a network namespace without a single interface up, where root may make one.
# shellcheck source=tests/tap_lib.sh disable=SC1091
source "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/image_lib.sh disable=SC1091
source "$ROOT/tests/integration/image_lib.sh"
# shellcheck source=tests/faults/lib.sh disable=SC1091
source "$ROOT/tests/faults/lib.sh"
HERE="$T/store" THERE="$T/there"
away() { REPERF_STORE="$THERE" "$@"; }
if unshare -n true 2>/dev/null; then
    away() { REPERF_STORE="$THERE" unshare -n "$@"; }
else
    skip "the other place has no network" "a network namespace cannot be made here"
fi
changed() { # a copy of what is in the bundle to spoil, in $T/bad; without the programs and data that nobody uses there
    rm -rf "$T/bad" "$THERE"
    cp -R "$T/small" "$T/bad"
}
spoilt() { tar -C "$T/bad" -cf "$T/bad.tar" .; }
redo_sums() { (cd "$T/bad" && find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs -d '\n' sha256sum >SHA256SUMS); }
refused() { # NAME PATTERN: the spoilt bundle is refused, and nothing came into the store
    spoilt
    fails 5 "$2" "$1: refused" away "$REPERF" import "$T/bad.tar" --locks "$T/locks.there"
    is "$(find "$THERE/blobs" "$THERE/refs" -type f 2>/dev/null | wc -l)" 0 "$1: nothing came in"
}

# --- what is carried: a synthetic dataset, and an image ---
exits 0 "fetch a synthetic dataset" "$REPERF" fetch cityscapes-300 --synthetic --samples train=2
make_layer one 300000
L="$T/layout"
entry=$(add_manifest "$L" amd64 oci gzip one)
REFS=(one)
write_index "$L/index.json" "$entry"
finish_layout "$L"
IMAGE=
if command -v docker-registry >/dev/null && command -v skopeo >/dev/null && start_registry reg; then
    skopeo copy --quiet --dest-tls-verify=false "oci:$L:one" "docker://127.0.0.1:$PORT/team/one:v1"
    IMAGE="127.0.0.1:$PORT/team/one@sha256:${entry%% *}"
    exits 0 "fetch an image" "$REPERF" fetch "image:$IMAGE"
    end_servers
else
    skip "an image in the bundle" "docker-registry or skopeo is not here"
fi

git init -q "$T/code"
git -C "$T/code" commit -q --allow-empty -m one
echo 'int main(void) { return 0; }' >"$T/code/main.c"
git -C "$T/code" add main.c
git -C "$T/code" commit -q -m two
SOURCE="source:file://$T/code@$(git -C "$T/code" rev-parse HEAD)"
mkdir -p "$T/mono"/{a,b} && git init -q "$T/mono" && touch "$T/mono/a/1" && echo large >"$T/mono/b/2"
git -C "$T/mono" add . && git -C "$T/mono" commit -q -m one
PART="source:file://$T/mono@$(git -C "$T/mono" rev-parse HEAD):a"
exits 0 "fetch a source, and of another a part" "$REPERF" fetch "$SOURCE" "$PART"

# --- the good way ---
exits 2 "bundle needs --output" "$REPERF" bundle cityscapes-300
exits 2 "and a name" "$REPERF" bundle --output "$T/b.tar"
fails 4 "imagenet-2012.synthetic: not in the store" "what the store lacks is said" "$REPERF" bundle cityscapes-300 imagenet-2012 --synthetic --output "$T/b.tar"
succeeds "and there is no bundle" test ! -e "$T/b.tar"
documents bundle-output 0 "bundle" "$REPERF" bundle cityscapes-300.synthetic "$SOURCE" "$PART" ${IMAGE:+"image:$IMAGE"} --output "$T/b.tar" --json
cp "$T/out" "$T/doc.json"
is "$(value "$T/doc.json" 'd["synthetic"], d["missing"]')" "(True, [])" "it says that it is synthetic, and that nothing is missing"
is "$(value "$T/doc.json" 'len(d["parts"])')" "$([ -n "$IMAGE" ] && echo 4 || echo 3)" "it names its parts"
exits 0 "its document is of a tar that tar unpacks" tar -C "$(mkdir "$T/b" && echo "$T/b")" -xf "$(value "$T/doc.json" 'd["bundle"]')"
(cd "$T/b" && sha256sum --quiet -c SHA256SUMS)
ok $? "sha256sum -c confirms it alone"
is "$(find "$T/b" -type f | wc -l)" "$(($(wc -l <"$T/b/SHA256SUMS") + 1))" "every file is in SHA256SUMS"
is "$(find "$T/b" -type d -empty; find "$T/b/bin" -type f ! -perm 0755; find "$T/b/blobs" -type f ! -perm 0644)" "" "programs alone may be run"
exits 2 "a file that is there is not replaced" "$REPERF" bundle cityscapes-300.synthetic --output "$T/b.tar"
exits 0 "the same again" "$REPERF" bundle cityscapes-300.synthetic "$SOURCE" "$PART" ${IMAGE:+"image:$IMAGE"} --output "$T/b-again.tar"
is "$(tar -tf "$T/b.tar" | sha256sum; tar -xOf "$T/b.tar" --exclude bundle.json --exclude SHA256SUMS | sha256sum)" \
    "$(tar -tf "$T/b-again.tar" | sha256sum; tar -xOf "$T/b-again.tar" --exclude bundle.json --exclude SHA256SUMS | sha256sum)" "gives the same bytes, but for its date"
rm "$T/b-again.tar"
documents bundle-output 0 "import by the bundle's own program" away "$T/b/bin/reperf" import "$T/b.tar" --json
exits 0 "fetch --offline has all it needs" away "$T/b/bin/reperf" fetch cityscapes-300 --synthetic --samples train=2 --offline
rm -rf "$T/code" "$T/mono"
exits 0 "the source holds, and the part" away "$REPERF" verify "$SOURCE" "$PART" --deep
exits 0 "the tree holds" away "$T/b/bin/reperf" verify cityscapes-300 --synthetic
succeeds "and is the same tree" cmp -s "$HERE/trees/cityscapes-300.synthetic/tree.sha256" "$THERE/trees/cityscapes-300.synthetic/tree.sha256"
exits 0 "store verify" away "$REPERF" store verify
if [ -n "$IMAGE" ]; then
    exits 0 "the image holds" away "$REPERF" verify "image:$IMAGE"
fi
exits 0 "import again changes nothing" away "$REPERF" import "$T/b.tar"
exits 4 "what is not in the bundle cannot be fetched offline" away "$T/b/bin/reperf" fetch imagenet-2012 --offline

# --- run --offline, there ---
exits 4 "a case whose data is not there is not run" away "$T/b/bin/reperf" run paddle-perf-hrnetw18 --profile smoke --offline \
    --case 'hrnetw18/paddle/fp32/n1g1/*' --json
is "$(value "$T/out" '[(c["verdict"], c["cause"]) for c in d["cells"]]')" "[('not_run', 'fetch')]" "not_run, because of fetch"
like "$(value "$T/out" 'd["cells"][0]["why"]')" "store lacks dataset cityscapes.synthetic" "which names what is missing"
exits 6 "without --offline it is for want of a node" "$REPERF" run paddle-perf-hrnetw18 --case 'hrnetw18/paddle/fp32/n1g1/*'
exits 0 "packs there" away "$T/b/bin/reperf" pack cityscapes-300 --synthetic
exits 0 "and trains there, on the synthetic dataset" away "$T/b/bin/reperf" run paddle-perf-2020 --profile smoke --offline --repeats 1 --json \
    --case 'resnet50/reperf/fp32/n1g1/bs96' "${SHORT[@]}"
like "$(away "$T/b/bin/reperf" plan paddle-perf-hrnetw18 --profile smoke --offline --data cityscapes-300.synthetic \
    --case 'hrnetw18/reperf/fp32/n1g1/*')" "1 of 1 case can be run.*" "the packed synthetic dataset is found there"
is "$(away "$T/b/bin/reperf" plan paddle-perf-hrnetw18 --profile smoke --offline --data cityscapes-300.synthetic --case 'hrnetw18/reperf/fp32/n1g1/*' --json |
    jq -c '.steps[0] | [(.argv | index("--eval-every")), .also]')" '[null,["reperf/miou-last"]]' "of which the workload has no part to evaluate on, so the log will lack what is asked"

# --- a bundle without something ---
answers 0 '[.missing[].part]' '["dataset imagenet-2012"]' "--allow-missing lists what is not in it" "$REPERF" bundle cityscapes-300.synthetic imagenet-2012 --allow-missing --output "$T/less.tar" --json
like "$("$REPERF" import "$T/less.tar")" "dataset imagenet-2012 +not in the store" "import says it, too"

# --- a bundle that does not hold ---
cp -R "$T/b" "$T/bad" && for program in "$T"/bad/bin/*; do echo "${program##*/}" >"$program"; done
find "$T/bad/share" -type f ! -name reperf.json -delete
redo_sums && mv "$T/bad" "$T/small"
blob_file=$(find "$T/b/blobs/sha256" -type f -size +100k -printf '%P\n' | head -n 1)
changed
printf 'damaged!' | dd of="$T/bad/blobs/sha256/$blob_file" bs=1 seek=1000 conv=notrunc status=none
refused "a byte changed" "corrupt blobs/sha256/$blob_file"
redo_sums
refused "a byte changed, and the sums made again" "blob sha256:$blob_file"
changed
rm "$T/bad/bin/reperf"
refused "a file missing" "missing bin/reperf"
changed
echo x >"$T/bad/share/more"
refused "a file too many" "extra share/more"
changed
rm "$T/bad/blobs/sha256/$blob_file"
redo_sums
refused "a blob missing that a reference names" "the bundle does not have sha256:$blob_file"
changed
mkdir -p "$T/bad/sources/x.git/hooks"
echo 'touch /tmp/owned' >"$T/bad/sources/x.git/hooks/post-checkout"
redo_sums
refused "a repository with a hook" "not a file that a bundle may contain"
changed
ln -s /etc/passwd "$T/bad/share/passwd"
refused "a symlink that leads outside" "share/passwd"
changed
ln -s reperf "$T/bad/bin/other"
(cd "$T/bad" && sha256sum bin/other >>SHA256SUMS && LC_ALL=C sort -k2 -o SHA256SUMS SHA256SUMS)
refused "a symlink within" "a link is in it"
changed
rm "$T/bad/SHA256SUMS"
spoilt
exits 2 "a tar without sums is no bundle" away "$REPERF" import "$T/bad.tar"
changed
spoilt
truncate -s -300K "$T/bad.tar"
exits 5 "a bundle that is cut short" away "$REPERF" import "$T/bad.tar"
is "$(find "$THERE/blobs" "$THERE/refs" "$THERE/tmp" -type f | wc -l)" 0 "nothing came in"
exits 2 "no file" "$REPERF" import "$T/nothing"

# --- a bundle whose words are wrong, though each byte has its digest ---
REF=refs/dataset/cityscapes-300.synthetic.json
changed
mkdir "$T/bad/refs/Data"
cp "$T/bad/$REF" "$T/bad/refs/Data/x.json"
redo_sums
refused "a reference of an unknown kind" "not a kind of reference"
changed
echo '{"blobs": []}' >"$T/bad/$REF"
redo_sums
refused "an invalid reference" "reference dataset cityscapes-300.synthetic"
changed
mkdir -p "$T/bad/refs/image"
echo '{"blobs": []}' >"$T/bad/refs/image/x.json"
redo_sums
refused "a reference to no image" "reference image x"
changed
mv "$T/bad/$REF" "$T/bad/refs/dataset/cityscapes-300.json"
redo_sums
refused "a synthetic dataset under the original's name" "expected the reference of dataset cityscapes-300, found that of cityscapes-300.synthetic"
changed
sed -i 's/"md5": "[0-9a-f]*"/"md5": "11111111111111111111111111111111"/' "$T/bad/$REF"
redo_sums
spoilt
fails 5 "do not have the MD5 that the reference says" "an MD5 that the archive has not: refused" away "$REPERF" import "$T/bad.tar" --locks "$T/locks.there"
is "$(find "$THERE/refs" -type f | wc -l)" 0 "and the name means nothing there"

# --- what is here already decides ---
lock() { # SHA256
    echo '{"schema_version": 1, "kind": "dataset", "id": "x", "items": [], "list_sha256": "'"$1"'", "files": 1, "file_bytes": 1}'
}
A64=$(printf 'a%.0s' {1..64}) B64=$(printf 'b%.0s' {1..64})
changed
mkdir -p "$T/bad/share/reperf/manifests/locks/dataset" "$T/locks.there/dataset"
lock "$A64" >"$T/bad/share/reperf/manifests/locks/dataset/x.json"
redo_sums
lock "$B64" >"$T/locks.there/dataset/x.json"
refused "another lock than ours" "locks.there/dataset/x.json"
rm "$T/locks.there/dataset/x.json"
exits 0 "a lock that we lack" away "$REPERF" import "$T/bad.tar" --locks "$T/locks.there"
is "$(cat "$T/locks.there/dataset/x.json")" "$(lock "$A64")" "is taken over"
mv "$T/bad/share/reperf/manifests/locks/dataset/x.json" "$T/bad/share/reperf/manifests/locks/dataset/y.json"
redo_sums
rm -rf "$THERE"
refused "a lock under another's name" "is the lock of dataset x"
echo garbage >"$T/bad/share/reperf/manifests/locks/dataset/y.json"
redo_sums
refused "an invalid lock" "y.json"
changed
mkdir -p "$T/other"
REPERF_STORE="$T/other" "$REPERF" fetch cityscapes-300 --synthetic --samples train=4 >/dev/null 2>&1
spoilt
REPERF_STORE="$T/other" exits 5 "a name that means another thing here" "$REPERF" import "$T/bad.tar"
like "$(cat "$T/err")" "nothing was imported" "says so"

# --- a blob that has rotted here ---
changed
spoilt
exits 0 "import" away "$REPERF" import "$T/bad.tar"
chmod u+w "$THERE/blobs/sha256/$blob_file"
printf 'damaged!' | dd of="$THERE/blobs/sha256/$blob_file" bs=1 seek=1000 conv=notrunc status=none
exits 0 "import over a rotten blob" away "$REPERF" import "$T/bad.tar"
is "$(sha256sum <"$THERE/blobs/sha256/$blob_file" | cut -c1-64)" "$blob_file" "repairs it"
printf 'damaged!' | dd of="$THERE/blobs/sha256/$blob_file" bs=1 seek=1000 conv=notrunc status=none
exits 0 "store add of the right file" away "$REPERF" store add "$T/b/blobs/sha256/$blob_file"
is "$(sha256sum <"$THERE/blobs/sha256/$blob_file" | cut -c1-64)" "$blob_file" "repairs it, too"

# --- a corrupt store, and a death in the middle ---
chmod u+w "$HERE/blobs/sha256/$blob_file"
printf 'damaged!' | dd of="$HERE/blobs/sha256/$blob_file" bs=1 seek=1000 conv=notrunc status=none
exits 5 "a corrupt blob of the store does not travel" "$REPERF" bundle cityscapes-300.synthetic "$SOURCE" ${IMAGE:+"image:$IMAGE"} --output "$T/b2.tar"
succeeds "and nothing is left" test -z "$(find "$T" -maxdepth 1 -name 'b2*')"
rm -rf "$THERE"
REPERF_STORE="$THERE" exits 137 "an import is killed in the middle" at_call KILL rename 2 "$THERE/" "$REPERF" import "$T/bad.tar"
exits 0 "an import that was killed is done again" away "$REPERF" import "$T/bad.tar"
exits 0 "and the store holds" away "$REPERF" store verify
tap_done
