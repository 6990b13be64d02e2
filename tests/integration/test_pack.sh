#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: prep
# reperf-pack as a user runs it: synthetic datasets as archives, unpacked by tar, packed, verified; faults of every kind; a killed packing resumes.
. "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/faults/lib.sh disable=SC1091
. "$ROOT/tests/faults/lib.sh"
PACK="$B/reperf-pack"
if [ ! -x "$PACK" ]; then
    skip "pack" "reperf-pack is not built"
    tap_done
fi
imagenet="$ROOT/datasets/imagenet-2012/dataset.json"
cityscapes="$ROOT/datasets/cityscapes/dataset.json"
cd "$T" || exit 1

list() { (cd "$1" && find . -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum); } # FOLDER
same() { diff -r "$1" "$2" >/dev/null; }
unpack_imagenet() { # ARCHIVES TREE
    mkdir -p "$2/train" "$2/val"
    tar xf "$1/ILSVRC2012_img_train.tar" -C "$2/train"
    tar xf "$1/ILSVRC2012_img_val.tar" -C "$2/val"
    tar xf "$1/ILSVRC2012_devkit_t12.tar.gz" -C "$2"
    local inner
    for inner in "$2"/train/*.tar; do
        mkdir "${inner%.tar}" && tar xf "$inner" -C "${inner%.tar}" && rm "$inner"
    done
}

# --- synthetic datasets ---
exits 0 "synthetic ImageNet" "$PACK" synth --dataset "$imagenet" --out in1 --threads 1
cp out in1.json
exits 0 "again, with three threads" "$PACK" synth --dataset "$imagenet" --out in3 --threads 3
succeeds "is the same, byte for byte" same in1 in3
/usr/bin/python3 - in1.json in1 <<'PY'
import hashlib, json, os, sys
doc = json.load(open(sys.argv[1]))
assert doc["schema_version"] == 1 and doc["dataset"] == "imagenet-2012" and doc["synthetic"] is True
assert sorted(f["name"] for f in doc["files"]) == sorted(os.listdir(sys.argv[2])), doc
for f in doc["files"]:
    data = open(os.path.join(sys.argv[2], f["name"]), "rb").read()
    assert f["bytes"] == len(data)
    assert f["md5"] == hashlib.md5(data).hexdigest() and f["sha256"] == hashlib.sha256(data).hexdigest()
PY
ok $? "sizes and digests are those of the files"
exits 0 "another seed" "$PACK" synth --dataset "$imagenet" --out other --seed 1
cmp -s in1/ILSVRC2012_img_train.tar other/ILSVRC2012_img_train.tar
is $? 1 "makes other pictures"
exits 2 "an unknown split" "$PACK" synth --dataset "$imagenet" --out x --samples test=3
exits 2 "fewer samples than classes" "$PACK" synth --dataset "$imagenet" --out x --samples train=3
exits 2 "no dataset" "$PACK" synth --out x
exits 3 "a dataset without a synthetic version" "$PACK" synth --dataset "$ROOT/datasets/synthetic/dataset.json" --out x

# --- packing ---
unpack_imagenet in1 tree
is "$(find tree/train -name '*.JPEG' | wc -l) $(find tree/train -mindepth 1 -type d | wc -l) $(find tree/val -name '*.JPEG' | wc -l)" "60 10 20" "the layout of the original"
list tree >tree.sha256
pack=("$PACK" pack --dataset "$imagenet" --tree tree --synthetic)
exits 0 "pack, held against the list" "${pack[@]}" --list tree.sha256 --split train --out p1 --threads 1 --shard-bytes 1000000 --json
is "$(sed -n 's/.*"source_sha256": "\(.*\)",/\1/p' p1/pack.json)" "$(sha256sum tree.sha256 | cut -d' ' -f1)" "pack.json names the list's digest"
exits 0 "pack with four threads" "${pack[@]}" --list tree.sha256 --split train --out p4 --threads 4 --shard-bytes 1000000
succeeds "is the same, byte for byte" same p1 p4
succeeds "in several shards" test "$(find p1 -name '*.shard' | wc -l)" -gt 5
exits 0 "verify" "$PACK" verify p1
prints 0 '"n_faults": 0' "its document" "$PACK" verify p1 --json
exits 0 "the flat split, by the development kit's list" "${pack[@]}" --split val --out val
/usr/bin/python3 - p1 val tree <<'PY'
import hashlib, json, os, struct, sys
train, val, tree = sys.argv[1:4]
def entries(folder):
    pack = json.load(open(folder + "/pack.json"))
    rows = []
    for shard in pack["shards"]:
        data = open(folder + "/" + shard["name"], "rb").read()
        magic, kind, n, first, at, total, seq, pred = struct.unpack_from("<8sIIQQQII", data)
        assert magic == b"RPSHARD1" and kind == 1 and n == shard["samples"] and first == len(rows)
        assert total == len(data) == shard["bytes"] and at % 4096 == 0 and seq == pred == 0
        assert shard["sha256"] == hashlib.sha256(data[:56] + data[4096:4096 + 32 * n]).hexdigest()
        for i in range(n):
            offset, size, crc, h, w, c, zero, label, zero2 = struct.unpack_from("<QIIHHHHiI", data, 4096 + 32 * i)
            assert offset % 64 == 0 and size == h * w * 3 and c == 3 and zero == zero2 == 0
            assert min(h, w) <= 256
            rows.append(label)
    assert len(rows) == pack["n_samples"] and pack["synthetic"] is True and pack["n_classes"] == 1000
    return pack, rows
pack, labels = entries(train)
paths = sorted(os.path.join(d, f)[len(tree) + 1:] for d, _, fs in os.walk(tree + "/train") for f in fs)
folders = sorted({os.path.dirname(p) for p in paths})
assert labels == [folders.index(os.path.dirname(p)) for p in paths]
assert pack["sample_order_sha256"] == hashlib.sha256("".join(p + "\n" for p in paths).encode()).hexdigest()
images = pack["recipe"]["images"]
assert images["grey"] == 2 and images["cmyk"] == 1, images
pack, labels = entries(val)
assert pack["source_sha256"] is None
# The synthetic dataset's development kit numbers its ten classes from the last to the first; image i is of class i modulo ten.
assert labels == [i % 10 for i in range(20)], labels
PY
ok $? "shards, classes and order, read by another program"

# --- resumed ---
prints 0 '"shards_kept": 20' "packing what is packed" "${pack[@]}" --list tree.sha256 --split train --out p4 --shard-bytes 1000000 --json
exits 2 "another recipe is refused" "${pack[@]}" --split train --out p4 --shard-bytes 2000000
succeeds "and changes nothing" same p1 p4
cp -r p1 broken
printf x | dd of=broken/00003.shard bs=1 seek=90000 conv=notrunc status=none
rm broken/00001.shard
prints 0 '"shards_kept": 1[0-9]' "a shard that is broken and one that is missing" "${pack[@]}" --list tree.sha256 --split train --out broken --shard-bytes 1000000 --json
succeeds "and all is as it was" same p1 broken
exits 0 "--force" "${pack[@]}" --split train --out broken --shard-bytes 2000000 --force
exits 0 "makes shards of the new recipe" "$PACK" verify broken

# --- faults ---
fault() { # NAME PATTERN: what was done to bad/ is found
    prints 5 "$2" "verify: $1" "$PACK" verify bad
    rm -rf bad
    cp -r p1 bad
}
cp -r p1 bad
printf x | dd of=bad/00002.shard bs=1 seek=20 conv=notrunc status=none
fault "a byte of a header" '^ *00002\.shard: the CRC-32C of the header'
printf x | dd of=bad/00002.shard bs=1 seek=4100 conv=notrunc status=none
fault "a byte of the entries" '^ *00002\.shard: the CRC-32C of the entries'
printf xyz | dd of=bad/00000.shard bs=1 seek=70000 conv=notrunc status=none
printf xyz | dd of=bad/00004.shard bs=1 seek=70000 conv=notrunc status=none
exits 5 "verify: bytes of two samples" "$PACK" verify bad
is "$(grep -c 'sample .: the CRC-32C of its data' out)" 2 "both are named"
fault "again" 'n faults +2'
printf x | dd of=bad/00000.shard bs=1 seek=1000 conv=notrunc status=none
fault "a byte between" '^ *00000\.shard: byte 1000 is not zero'
truncate -s -1 bad/00001.shard
fault "a cut shard" '^ *00001\.shard: [0-9]+ bytes, its header says'
rm bad/00001.shard
fault "a missing shard" '^ *00001\.shard: No such file'
cp bad/00001.shard bad/00002.shard
fault "a shard in the place of another" '^ *00002\.shard: its header is not the one'
touch bad/notes
fault "a file too many" '^ *notes: pack.json does not name it'
rm bad/pack.json
fault "no pack.json" 'pack.json: No such file'
sed -i 's/"n_samples": 60/"n_samples": 61/' bad/pack.json
fault "pack.json that does not add up" 'n_samples says 61'

# --- broken sources ---
victim=$(find tree/train -name '*.JPEG' | LC_ALL=C sort | sed -n 7p)
cp "$victim" whole
broken() { # NAME PATTERN
    fails 5 "$2" "pack: $1" "${pack[@]}" --split train --out b
    succeeds "and there is no pack.json" test ! -e b/pack.json
    cp whole "$victim"
    rm -rf b
}
truncate -s -3000 "$victim"
broken "a cut image" "${victim#tree/}: JPEG: "
echo text >"$victim"
broken "a text named .JPEG" "${victim#tree/}: neither JPEG nor PNG"
: >"$victim"
broken "an empty file" "${victim#tree/}: neither JPEG nor PNG"
truncate -s -3000 "$victim"
cp whole "$victim"
printf '\x00' | dd of="$victim" bs=1 seek=$(($(stat -c %s whole) - 1)) conv=notrunc status=none
fails 5 "${victim#tree/}: SHA-256 .* list says" "pack: a file of another digest" "${pack[@]}" --list tree.sha256 --split train --out b
cp whole "$victim"
rm -rf b
cp whole tree/train/n01440764/extra.JPEG
fails 5 'extra.JPEG: not in the tree' "pack: a file that the list has not" "${pack[@]}" --list tree.sha256 --split train --out b
rm tree/train/n01440764/extra.JPEG
sed -i '$d' tree/ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt
fails 5 '19 lines for 20 images' "pack: a class too few" "${pack[@]}" --split val --out b
fails 5 '60 files, expected 1281167' "pack: fewer images than the original has" "$PACK" pack --dataset "$imagenet" --tree tree --split train --out b

rm -rf b

# --- segmentation ---
exits 0 "synthetic Cityscapes" "$PACK" synth --dataset "$cityscapes" --out cs --samples train=4 --samples val=3
mkdir cstree
tar xf cs/cityscapes.tar -C cstree
cspack=("$PACK" pack --dataset "$cityscapes" --tree cstree --synthetic)
exits 0 "pack it" "${cspack[@]}" --split train --out cs1 --shard-bytes 20000000
exits 0 "verify" "$PACK" verify cs1
/usr/bin/python3 - cs1 <<'PY'
import collections, json, struct, sys
pack = json.load(open(sys.argv[1] + "/pack.json"))
seen = collections.Counter()
for shard in pack["shards"]:
    data = open(sys.argv[1] + "/" + shard["name"], "rb").read()
    for i in range(shard["samples"]):
        offset, size, crc, h, w = struct.unpack_from("<QIIHH", data, 4096 + 32 * i)
        assert (w, h, size) == (2048, 1024, 2048 * 1024 * 4)
        seen.update(data[offset + w * h * 3:offset + size])
assert set(seen) <= set(range(19)) | {255} and len(seen) > 10 and seen[255] > 0, seen
PY
ok $? "label maps hold train ids and 255"
label=$(find cstree/cityscapes/gtFine/val -name '*.png' | LC_ALL=C sort | head -n 1)
mv "$label" kept.png
fails 5 "open ${label#cstree/}: No such file" "pack: a missing label map" "${cspack[@]}" --split val --out b
cp "$(find cstree/cityscapes/leftImg8bit/val -name '*.png' | head -n 1)" "$label"
fails 5 "${label#cstree/}: a label map is a PNG of 8 bits" "pack: a picture in its place" "${cspack[@]}" --split val --out b
head -c 3000 kept.png >"$label"
fails 5 "${label#cstree/}: PNG: " "pack: a cut label map" "${cspack[@]}" --split val --out b
mv kept.png "$label"
cp "$label" "${label%/*}/lonely_gtFine_labelTrainIds.png"
exits 5 "pack: a label map without an image" "${cspack[@]}" --split val --out b

# --- killed ---
exits 0 "a larger synthetic dataset" "$PACK" synth --dataset "$imagenet" --out big --samples train=200
unpack_imagenet big bigtree
bigpack=("$PACK" pack --dataset "$imagenet" --tree bigtree --synthetic --split train --shard-bytes 3000000)
exits 0 "in one go" "${bigpack[@]}" --out go
for call in "write 9" "rename 3" "fsync 3" "write 5"; do # of its own calls, each time further on
    read -r what at <<<"$call"
    exits 137 "killed at its call $call" at_call KILL "$what" "$at" "$T/killed/" "${bigpack[@]}" --out "$T/killed"
done
exits 0 "after four kills" "${bigpack[@]}" --out killed
succeeds "the same shards, and nothing else" same go killed
# Killed as it wrote its own files: before a rename, after a rename and before the next step.
cp killed/pack.json killed/pack.json.reperf-tmp-aB3xYz
cp killed/pack.json killed/packing.part
echo >killed/packing.part.reperf-tmp-Zz09aA
echo >killed/pack.json.notes
exits 0 "after kills between shards" "${bigpack[@]}" --out killed
is "$(diff -r go killed)" "Only in killed: pack.json.notes" "nothing else is left, but for what is not ours"
rm killed/pack.json.notes
exits 130 "^C" at_call INT write 9 "$T/stopped/" "${bigpack[@]}" --out "$T/stopped"
succeeds "ends it before it is done" test ! -e stopped/pack.json
exits 0 "and on" "${bigpack[@]}" --out stopped
succeeds "to the same shards" same go stopped

# --- usage ---
exits 2 "no verb" "$PACK"
exits 2 "an unknown verb" "$PACK" crunch
exits 2 "an unknown split" "${pack[@]}" --split test --out b
exits 0 "help" "$PACK" pack --help
if [ -e /dev/full ]; then
    "$PACK" verify p1 >/dev/full 2>/dev/null
    is $? 10 "a full disk under stdout"
fi
tap_done
