#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: cmd
# Data of one's own: described, in the store, verified in place, repaired, locked, packed, bundled; and a file that was renamed.
. "$(dirname "$0")/../tap_lib.sh"
export REPERF_STORE="$T/store" REPERF_STATE="$T/state"
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
exits 2 "a licence is asked for" "$REPERF" data new birds birds
like "$(cat err)" 'licence unstated' "and how to say that nobody states one"
exits 0 "a folder becomes a dataset" "$REPERF" data new birds birds --licence CC0
like "$(cat out)" 'birds: 32 files' "with its files"
is "$(/usr/bin/python3 -c '
import json
d = json.load(open("manifests/datasets/birds/dataset.json"))
print(d["licence"], [(s["name"], s["samples"], s["classes"]) for s in d["splits"]],
      [(g["glob"], g["files"], g["folders"], g["format"]) for g in d["groups"]], d["pack"]["kind"], d["pack"]["classes"])')" \
    "CC0 [('train', 24, 4), ('val', 8, 4)] [('train/*/*.png', 24, 4, 'png'), ('val/*/*.png', 8, 4, 'png')] classes 4" "splits, classes and counts are read off it"
ok "$(cmp -s manifests/datasets/birds/tree.sha256 <(cd birds && find . -type f -printf '%P\n' | LC_ALL=C sort | xargs sha256sum); echo $?)" "a digest for each file"
exits 2 "a name is described once" "$REPERF" data new birds birds --licence CC0

exits 0 "it verifies in the store, although a folder has its name" "$REPERF" data verify birds
like "$(cat out)" 'verdict +holds$' "and holds whole"
exits 0 "and in place" "$REPERF" data verify birds --as birds
rm store/trees/birds/train/class1/3.png
exits 5 "a file less is seen" "$REPERF" data verify birds
like "$(cat err)" 'does not hold: 1 missing, 1 wrong counts; reperf data repair birds' "and counted, with what repairs it"
exits 0 "and repaired" "$REPERF" data repair birds
exits 0 "it holds again" "$REPERF" data verify birds
rm "$(grep -l '' store/blobs/sha256/* | head -1)"
exits 5 "an archive that the store has lost" "$REPERF" data verify
exits 0 "is made again of the tree" "$REPERF" data repair birds
like "$(cat out)" 'bad archives +1$' "which is said"
exits 0 "and the store is whole" "$REPERF" data verify
mv birds/train/class1/3.png birds/train/class1/three.png
exits 5 "a renamed file is seen" "$REPERF" data verify birds --as birds
cp birds/train/class2/1.png "$T/1.png" && echo no picture >birds/train/class2/extra.png && rm birds/train/class2/1.png
exits 5 "a file too many stays, and is named" "$REPERF" data repair birds --as birds
like "$(cat err)" '2 extra, .*--remove-extra' "by their number"
exits 0 "it can be removed" "$REPERF" data repair birds --as birds --remove-extra
like "$(cat err)" 'removed .*train/class2/extra.png' "which is said"
mkdir -p odd/train/a odd/train/b && for n in 1 2 3; do echo "$n" >odd/train/a/$n.jpg && echo "b$n" >odd/train/b/$n.jpg; done
exits 0 "files that are not what their names say" "$REPERF" data new odd odd --licence CC0
like "$(cat err)" 'train/a/1.jpg: .*; files of train-images are taken for plain files' "are plain files"
is "$(jq -r '"\(.groups[0].format) \(.pack)"' manifests/datasets/odd/dataset.json)" "any null" "by their description"
exits 0 "which holds" "$REPERF" data verify odd
exits 0 "a reference is dropped by its name" "$REPERF" data drop odd
exits 2 "but not by a digest" "$REPERF" data drop sha256:0000000000000000000000000000000000000000000000000000000000000000
exits 0 "it is locked" "$REPERF" data lock birds
ok "$([ -s manifests/locks/dataset/birds.json ]; echo $?)" "next to its own description"
exits 0 "it is packed" "$REPERF" data pack birds
like "$(cat err)" 'birds, split train: 24 samples, 0.0 MB as packed' "and says before how much it writes"
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
exits 0 "the store's tree from a second copy" "$REPERF" data repair birds --from copy --offline
like "$(cat out)" 'train/class1/3.png' "is mended by what it lacks"
exits 0 "and holds" "$REPERF" data verify birds
rm copy/train/class1/3.png && echo spoilt >copy/train/class2/1.png && mv copy/train/class3/0.png copy/train/class3/zero.png && echo note >copy/notes.txt
exits 5 "a folder that does not hold" "$REPERF" data verify copy --as birds
like "$(cat err)" 'copy does not hold: .*; reperf data repair copy --as birds' "names what repairs it"
exits 4 "a copy that is damaged the same way does not help" "$REPERF" data repair copy --as birds --from copy --offline
ok "$([ -e copy/train/class1/3.png ]; [ $? = 1 ]; echo $?)" "and puts no wrong file there"
exits 5 "from a whole copy" "$REPERF" data repair copy --as birds --from store/trees/birds
like "$(cat out)" 'train/class1/3.png' "what is missing or damaged"
like "$(cat err)" '2 extra, 1 wrong counts; --remove-extra removes files that are not part of it' "what is not part of it stays unless asked"
exits 0 "which it is" "$REPERF" data repair copy --as birds --remove-extra
exits 0 "the folder holds" "$REPERF" data verify copy --as birds
is "$(diff -r copy birds && find copy store/tmp -name '*repair*' | wc -l)" 0 "as the first does, and nothing is left beside it"
exits 0 "the archive comes back" "$REPERF" data add "$(mkdir -p made && tar cf made/x.tar birds && echo made/x.tar)"
exits 0 "described anew it is the same" env REPERF_MANIFESTS="$T/anew" sh -c "mkdir -p anew && '$REPERF' data new birds birds --licence CC0"
rm copy/val/class0/1.png
exits 0 "a folder from the store's archives" "$REPERF" data repair copy --as birds
like "$(cat out)" 'val/class0/1.png' "one file of them"
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
