#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: store
# Datasets that are made from another one, once: what the records hold, read by a reader of the formats that is not ours; what is found, repaired, locked and bundled.
# shellcheck source=tests/tap_lib.sh disable=SC1091
source "$(dirname "$0")/../tap_lib.sh"
export REPERF_STORE="$T/store" XDG_DATA_HOME="$T/data" REPERF_MANIFESTS="$T/manifests"
tree_of() { echo "$REPERF_STORE/trees/$1"; }

# --- a dataset of our own, whose images hold what RecordIO must take apart ---
mkdir -p "$T/manifests/datasets"/{own,own-tfrecord,own-recordio} "$T/images/train"/{n02,n01}
exits 0 "a store" "$REPERF" data gc
/usr/bin/python3 - "$T/images/train" <<'PYTHON'
import sys
magic = bytes.fromhex("0a23d7ce")
for name, data in (("n01/a", b"abc"), ("n01/b", magic + b"after" + magic + magic), ("n02/c", b"1234" + magic), ("n02/d", b"123" + magic + b"not at a multiple"), ("n02/e", b"x" * 70000)):
    open("%s/%s.JPEG" % (sys.argv[1], name), "wb").write(data)
PYTHON
tar -C "$T/images" -cf "$REPERF_STORE/incoming/own.tar" train
group='{split: "train", folders: null, folder_files: null, width: null, height: null, channels: null, pair: null}'
jq '.id = "own" | .login = false | .twin = null | .splits = [{name: "train", samples: 5, classes: 2}] | .files = [.files[0] + {name: "own.tar", urls: [], bytes: null, md5: null, nested: false, into: null}]
    | .groups = ['"$group"' + {name: "images", role: "image", glob: "train/*/*.JPEG", files: 5, format: "any"}] | .pack.classes = 2' datasets/imagenet-2012/dataset.json >"$T/manifests/datasets/own/dataset.json"
made() { # NAME RECIPE GROUPS
    jq --argjson groups "$(jq -n "$3")" '.id = "'"$1"'" | .files = [] | .pack = null | .made_from = {dataset: "own", recipe: "'"$2"'"} | .groups = $groups' "$T/manifests/datasets/own/dataset.json" >"$T/manifests/datasets/$1/dataset.json"
}
made own-tfrecord tfrecord '['"$group"' + {name: "records", role: "records", glob: "train-*", files: 2, format: "tfrecord"}]'
made own-recordio recordio '['"$group"' + {name: "index", role: "records", glob: "train.idx", files: 1, format: "text"}, '"$group"' + {name: "records", split: null, role: "other", glob: "train.rec", files: 1, format: "any"}]'
cat >"$T/read.py" <<'PYTHON'
"""read.py IMAGES FOLDER: what TFRecords or RecordIO of FOLDER hold is what is below IMAGES, each with its class."""
import glob, os, struct, sys
images, folder = sys.argv[1:]

def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value, at, shift = value | (byte & 127) << shift, at + 1, shift + 7
        if byte < 128:
            return value, at

def fields(data):
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        assert tag & 7 == 2, tag
        size, at = varint(data, at)
        yield tag >> 3, data[at:at + size]
        at += size

def tfrecords(path):
    data, at = open(path, "rb").read(), 0
    while at < len(data):
        size, = struct.unpack_from("<Q", data, at)
        features = dict(fields(data[at + 12:at + 12 + size]))[1]
        found = {}
        for _, entry in fields(features):
            parts = dict(fields(entry))
            (kind, values), = fields(parts[2])
            (_, value), = fields(values)
            found[parts[1].decode()] = value if kind == 1 else varint(value, 0)[0]
        yield found["image/encoded"], found["image/class/label"] - 1
        at += 12 + size + 4

def recordio(path):
    data = open(path, "rb").read()
    for line in open(path[:-3] + "idx"):
        number, at = map(int, line.split())
        whole, kind = b"", None
        while kind not in (0, 3):
            magic, size = struct.unpack_from("<II", data, at)
            assert magic == 0xced7230a, hex(magic)
            if kind is not None:
                whole += struct.pack("<I", magic)
            kind, size = size >> 29, size & (1 << 29) - 1
            whole += data[at + 8:at + 8 + size]
            at += 8 + (size + 3 & ~3)
        flag, label, of, _ = struct.unpack_from("<IfQQ", whole)
        assert (flag, of) == (0, number), (flag, of, number)
        yield whole[24:], int(label)

found = []
for path in sorted(glob.glob(folder + "/train*")):
    if not path.endswith(".idx"):
        found += recordio(path) if path.endswith(".rec") else tfrecords(path)
classes = sorted(os.listdir(images))
wanted = [(open(path, "rb").read(), classes.index(path.split("/")[-2])) for path in glob.glob(images + "/*/*")]
print("%d records, %s" % (len(found), "as the images" if sorted(found) == sorted(wanted) else "NOT as the images"))
PYTHON
for kind in tfrecord recordio; do
    exits 0 "$kind: its dataset is made, and what it is made from is unpacked" "$REPERF" data fetch "own-$kind"
    made=$(stat -c %i "$(tree_of "own-$kind")")
    exits 0 "$kind: a second time" "$REPERF" data fetch "own-$kind"
    is "$(stat -c %i "$(tree_of "own-$kind")")" "$made" "it is not made again"
    is "$(/usr/bin/python3 "$T/read.py" "$T/images/train" "$(tree_of "own-$kind")")" "5 records, as the images" "each image once, its own bytes, its class"
    prints 0 "made here with the tree on .*, and no lock or description has its digest" "$kind: it holds" "$REPERF" data verify "own-$kind"
done
is "$(cd "$(tree_of own-tfrecord)" && echo train*)" "train-00000-of-00002 train-00001-of-00002" "the files' names are those that are looked for"
exits 0 "what was made is locked" "$REPERF" data lock own-recordio
lock="$T/manifests/locks/dataset/own-recordio.json"
is "$(jq -r '.list_sha256 // .list.sha256' "$lock")" "$(sha256sum <"$(tree_of own-recordio)/tree.sha256" | cut -d' ' -f1)" "by the digest of its list"

# --- what is found, and mended ---
list=$(cat "$(tree_of own-recordio)/tree.sha256")
printf Z | dd of="$(tree_of own-recordio)/train.rec" bs=1 seek=1 conv=notrunc 2>/dev/null
prints 5 "train.rec +its digest differs" "a changed byte is found" "$REPERF" data verify own-recordio
exits 0 "and mended" "$REPERF" data repair own-recordio
is "$(cat "$(tree_of own-recordio)/tree.sha256")" "$list" "by making it again: the same bytes"
rm -r "$(tree_of own-recordio)"
echo y >>"$(tree_of own)/train/n01/a.JPEG"
fails 5 "n01/a.JPEG: SHA-256 .*, the tree's list says" "nothing is made of an image that is not as listed" "$REPERF" data fetch own-recordio
exits 0 "once that is repaired" "$REPERF" data repair own
exits 0 "it is made" "$REPERF" data fetch own-recordio
rm -r "$(tree_of own)"
made=$(stat -c %i "$(tree_of own-recordio)")
exits 0 "what was made does not need the other one any more" "$REPERF" data fetch own-recordio
is "$(stat -c %i "$(tree_of own-recordio)")" "$made" "and is not made again"

jq '.made_from.dataset = "own-tfrecord"' "$T/manifests/datasets/own-recordio/dataset.json" >"$T/changed.json" && mkdir -p "$T/other/datasets/own-recordio" && cp "$T/changed.json" "$T/other/datasets/own-recordio/dataset.json"
fails 3 "own-recordio: made_from: expected a dataset that is fetched" "nothing is made from what is made itself" env REPERF_MANIFESTS="$T/other:$T/manifests" "$REPERF" data fetch own-recordio

# --- without a network ---
answers 0 .parts '["dataset own","dataset own-recordio"]' "a bundle of what is made has what it is made from" "$REPERF" data bundle own-recordio -o "$T/bundle.tar" --json
(
    export REPERF_STORE="$T/there"
    "$REPERF" data import "$T/bundle.tar" && "$REPERF" list datasets --json >"$T/list.json" && "$REPERF" data fetch own-recordio --offline
) >"$T/out" 2>"$T/err"
ok $? "and is made there, offline"
is "$(jq -r '.datasets[] | select(.id == "own-recordio") | .store' "$T/list.json")" archives "which is known before"
is "$(cat "$T/there/trees/own-recordio/tree.sha256")" "$list" "with the same bytes"

# --- the program's own ---
exits 0 "ImageNet's records, synthetic" "$REPERF" data fetch imagenet-2012-tfrecord imagenet-2012-recordio --synthetic
for kind in tfrecord recordio; do
    exits 0 "$kind: hold" "$REPERF" data verify "imagenet-2012-$kind" --synthetic
    is "$(/usr/bin/python3 "$T/read.py" "$(tree_of imagenet-2012.synthetic)/train" "$(tree_of "imagenet-2012-$kind.synthetic")")" "60 records, as the images" "$kind: the images of its training set"
done
exits 3 "what a rehearsal of a report takes, of which some is not pinned" "$REPERF" data fetch paddle-perf-deeplabv3p --synthetic --dry-run --json
is "$(jq -r '[.items[] | .noun | select(startswith("dataset:"))] | sort | join(" ")' "$T/out")" "dataset:cityscapes.synthetic dataset:resnet50-v1c dataset:resnet50-vd-ssld-v2" "synthetic data, and the original weights"
tap_done
