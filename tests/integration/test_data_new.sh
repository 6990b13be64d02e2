#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: cmd
# Data of one's own: described, in the store, verified in place, repaired, locked, packed, bundled; and a file that was renamed.
. "$(dirname "$0")/../tap_lib.sh"
REPERF=$(realpath "$REPERF")
cd "$T" || exit 1
mkdir -p manifests

# --- images by class: SPLIT/CLASS/FILE ---
/usr/bin/python3 - <<'PY'
import os, struct, zlib
def png(path, seed):
    raw = b"".join(b"\0" + bytes((seed * 31 + x * 7 + y) % 256 for x in range(24)) for y in range(8))
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0))
                   + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))
seed = 0
for split, count in (("train", 6), ("val", 2)):
    for kind in range(4):
        os.makedirs(f"birds/{split}/class{kind}")
        for idx in range(count):
            png(f"birds/{split}/class{kind}/{idx}.png", seed)
            seed += 1
PY
fails 2 'licence unstated' "a licence is asked for" "$REPERF" data new birds birds
prints 0 'birds: 32 files' "a folder becomes a dataset" "$REPERF" data new birds birds --licence CC0
is "$(/usr/bin/python3 -c '
import json
d = json.load(open("manifests/datasets/birds/dataset.json"))
print(d["licence"], [(s["name"], s["samples"], s["classes"]) for s in d["splits"]],
      [(g["glob"], g["files"], g["folders"], g["format"]) for g in d["groups"]], d["pack"]["kind"], d["pack"]["classes"])')" \
    "CC0 [('train', 24, 4), ('val', 8, 4)] [('train/*/*.png', 24, 4, 'png'), ('val/*/*.png', 8, 4, 'png')] classes 4" "splits, classes and counts are read off it"
ok "$(cmp -s manifests/datasets/birds/tree.sha256 <(cd birds && find . -type f -printf '%P\n' | LC_ALL=C sort | xargs sha256sum); echo $?)" "a digest for each file"
exits 2 "a name is described once" "$REPERF" data new birds birds --licence CC0

prints 0 'verdict +holds$' "it verifies in the store, although a folder has its name" "$REPERF" data verify birds
exits 0 "and in place" "$REPERF" data verify birds --as birds
rm store/trees/birds/train/class1/3.png
fails 5 'does not hold: 1 missing, 1 wrong counts; reperf data repair birds' "a file less is seen" "$REPERF" data verify birds
exits 0 "and repaired" "$REPERF" data repair birds
exits 0 "it holds again" "$REPERF" data verify birds
rm "$(grep -l '' store/blobs/sha256/* | head -1)"
exits 5 "an archive that the store has lost" "$REPERF" data verify
prints 0 'bad archives +1$' "is made again of the tree" "$REPERF" data repair birds
exits 0 "and the store is whole" "$REPERF" data verify
mv birds/train/class1/3.png birds/train/class1/three.png
prints 5 'train/class1/three.png +it is the missing train/class1/3.png under another name' "a renamed file is seen" "$REPERF" data verify birds --as birds
cp birds/train/class2/1.png "$T/1.png" && echo no picture >birds/train/class2/extra.png && rm birds/train/class2/1.png
fails 5 '2 extra, .*--remove-extra' "a file too many stays, and is named" "$REPERF" data repair birds --as birds
warns 0 'removed .*train/class2/extra.png' "it can be removed" "$REPERF" data repair birds --as birds --remove-extra
mkdir -p odd/train/a odd/train/b && for n in 1 2 3; do echo "$n" >odd/train/a/$n.jpg && echo "b$n" >odd/train/b/$n.jpg; done
warns 0 'train/a/1.jpg: .*; files of train-images are taken for plain files' "files that are not what their names say" "$REPERF" data new odd odd --licence CC0
is "$(jq -r '"\(.groups[0].format) \(.pack)"' manifests/datasets/odd/dataset.json)" "any null" "by their description"
exits 0 "which holds" "$REPERF" data verify odd
exits 0 "a reference is dropped by its name" "$REPERF" data drop odd
exits 2 "but not by a digest" "$REPERF" data drop sha256:0000000000000000000000000000000000000000000000000000000000000000
exits 0 "it is locked" "$REPERF" data lock birds
ok "$([ -s manifests/locks/dataset/birds.json ]; echo $?)" "next to its own description"
warns 0 'birds, split train: 24 samples, 0.0 MB as packed' "it is packed" "$REPERF" data pack birds
exits 0 "and bundled" "$REPERF" data bundle dataset:birds -o bundle.tar
mkdir -p "$T/colleague/manifests" && cd "$T/colleague" || exit 1
export REPERF_STORE="$T/other"
warns 0 'dataset birds is described in .*/datasets/birds' "and imported elsewhere, by one who does not know it" "$REPERF" data import "$T/bundle.tar" --locks "$T/locks"
ok "$(diff -r manifests/locks "$T/manifests/locks" >/dev/null && diff -r manifests/datasets/birds "$T/manifests/datasets/birds" >/dev/null; echo $?)" "as at home, with its lock"
exits 0 "where it unpacks without a network" "$REPERF" data fetch birds --offline
exits 0 "and verifies" "$REPERF" data verify birds
exits 0 "again" "$REPERF" data import "$T/bundle.tar" --locks "$T/locks"
sed -i 's/CC0/CC1/' manifests/datasets/birds/dataset.json
fails 5 'datasets/birds/dataset.json: that of the bundle differs' "not over another dataset of that name" "$REPERF" data import "$T/bundle.tar" --locks "$T/locks"
export REPERF_STORE="$T/store"
cd "$T" || exit 1
ok "$(cmp -s store/trees/birds/tree.sha256 other/trees/birds/tree.sha256; echo $?)" "to the same files"

# --- the same files give the same archive; an archive and anything else ---
touch birds/train/class1/3.png
exits 0 "again, under another name" "$REPERF" data new birds2 birds --licence CC0
is "$(grep -h -m1 '"sha256"' manifests/datasets/birds2/dataset.json)" "$(grep -h -m1 '"sha256"' manifests/datasets/birds/dataset.json)" "the same bytes"
mkdir -p flat/deep/er && echo text >flat/notes.txt && echo x >flat/deep/er/a.bin && echo y >flat/a-plain
tar czf flat.tar.gz -C flat .
exits 0 "an archive as it is" "$REPERF" data new flat flat.tar.gz --licence unstated
exits 0 "holds" "$REPERF" data verify flat
is "$(/usr/bin/python3 -c 'import json; print(sorted((g["glob"], g["files"]) for g in json.load(open("manifests/datasets/flat/dataset.json"))["groups"]))')" \
    "[('**/*', 3)]" "one group of files"
# --- repair from a second copy, of the store's tree and of a folder ---
cp -R birds copy
rm store/trees/birds/train/class1/3.png && echo spoilt >store/trees/birds/train/class2/1.png
rm -rf store/blobs && mkdir -p store/blobs/sha256 # no archive is there
prints 0 'train/class1/3.png' "the store's tree from a second copy" "$REPERF" data repair birds --from copy --offline
exits 0 "and holds" "$REPERF" data verify birds
rm copy/train/class1/3.png && echo spoilt >copy/train/class2/1.png && mv copy/train/class3/0.png copy/train/class3/zero.png && echo note >copy/notes.txt
fails 5 'copy does not hold: .*; reperf data repair copy --as birds' "a folder that does not hold" "$REPERF" data verify copy --as birds
exits 4 "a copy that is damaged the same way does not help" "$REPERF" data repair copy --as birds --from copy --offline
ok "$([ -e copy/train/class1/3.png ]; [ $? = 1 ]; echo $?)" "and puts no wrong file there"
prints 5 'train/class1/3.png' "from a whole copy" "$REPERF" data repair copy --as birds --from store/trees/birds
like "$(cat err)" '2 extra, 1 wrong counts; --remove-extra removes files that are not part of it' "what is not part of it stays unless asked"
exits 0 "which it is" "$REPERF" data repair copy --as birds --remove-extra
exits 0 "the folder holds" "$REPERF" data verify copy --as birds
is "$(diff -r copy birds && find copy store/tmp -name '*repair*' | wc -l)" 0 "as the first does, and nothing is left beside it"
exits 0 "the archive comes back" "$REPERF" data add "$(mkdir -p made && tar cf made/x.tar birds && echo made/x.tar)"
exits 0 "described anew it is the same" env REPERF_MANIFESTS="$T/anew" sh -c "mkdir -p anew && '$REPERF' data new birds birds --licence CC0"
rm copy/val/class0/1.png
prints 0 'val/class0/1.png' "a folder from the store's archives" "$REPERF" data repair copy --as birds
exits 2 "an image is no folder of files" "$REPERF" data repair copy --as paddle-cpu
exits 2 "a second copy that is not there" "$REPERF" data repair birds --from nowhere

# --- where nothing of one's own is yet ---
mkdir bare && cp -R flat bare/ && cd bare || exit 1
exits 0 "without ./manifests and home" env HOME="$T/nobody" "$REPERF" data new plain ./flat --licence CC0
is "$(find manifests -name dataset.json)" manifests/datasets/plain/dataset.json "it is described in ./manifests"
exits 0 "and found there" env HOME="$T/nobody" "$REPERF" data verify flat --as plain
mkdir -p "$T/nobody/.local/share/reperf/manifests"
exits 0 "not in a folder that nobody sees" env HOME="$T/nobody" "$REPERF" data new plainer ./flat --licence CC0
ok "$([ -e manifests/datasets/plainer/dataset.json ]; echo $?)" "that is there"
cd "$T" || exit 1
exits 2 "an empty folder is no dataset" sh -c "mkdir empty && '$REPERF' data new empty empty --licence CC0"
ok "$([ ! -e manifests/datasets/empty ]; echo $?)" "and leaves no description"
exits 2 "a name that is none" "$REPERF" data new 'Not a name' flat --licence CC0
tap_done
