#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: store
# The whole way of a synthetic dataset through the store: fetch, verify, pack, verify the shards, train on them; and what stops it.
. "$(dirname "$0")/../tap_lib.sh"
PACK="$B/reperf-pack"
if [ ! -x "$PACK" ] || [ ! -x "$TRAIN" ]; then
    skip "pack in the store" "reperf-pack or reperf-train is not built"
    tap_done
fi
packed="$REPERF_STORE/packed"

fails 4 'reperf data fetch imagenet-2012 --synthetic first' "pack before fetch" "$REPERF" pack imagenet-2012 --synthetic
exits 0 "its archives alone" "$REPERF" fetch imagenet-2012 --synthetic --no-unpack
for command in pack verify; do
    fails 4 'is in the store .*, but has no tree yet: reperf data fetch imagenet-2012 --synthetic first' "$command of what is not unpacked" "$REPERF" "$command" imagenet-2012 --synthetic
done
exits 0 "fetch a synthetic dataset" "$REPERF" fetch imagenet-2012 --synthetic
exits 0 "verify it" "$REPERF" verify imagenet-2012.synthetic --deep
documents pack-output 0 "pack it" "$REPERF" pack imagenet-2012 --synthetic --json
valid pack "each pack.json is valid" "$packed"/imagenet-2012.synthetic/*/pack.json
is "$(grep -c '"synthetic": true' "$T/document" "$packed"/imagenet-2012.synthetic/*/pack.json | cut -d: -f2 | xargs)" "3 1 1" "all say that they are synthetic"
is "$(grep -ho '"source_sha256": "[0-9a-f]*"' "$packed"/imagenet-2012.synthetic/*/pack.json | sort -u | cut -d'"' -f4)" \
    "$(sha256sum <"$REPERF_STORE/trees/imagenet-2012.synthetic/tree.sha256" | cut -d' ' -f1)" "and of which tree"
for split in train val; do
    exits 0 "the shards of $split hold" "$PACK" verify "$packed/imagenet-2012.synthetic/$split"
done
exits 0 "train on them" "$TRAIN" --model resnet50 --device cpu --data "$packed/imagenet-2012.synthetic/train" --image 32 --batch 4 --steps 2
like "$(head -n 1 "$T/out")" '"synthetic":true' "run_start says so too"
prints 0 '"shards_kept": 1' "packing again" "$REPERF" pack imagenet-2012.synthetic --split val --json

exits 0 "and once more, for people" "$REPERF" pack imagenet-2012.synthetic --split val
like "$(tr -d '\n' <"$T/out")" 'samples +20 +shards +1 +shards kept +1 +bytes' "says how much there is"

exits 2 "an unknown split" "$REPERF" pack imagenet-2012 --synthetic --split test
exits 2 "a split that leads out" "$REPERF" pack imagenet-2012 --synthetic --split ../x
exits 2 "a report is no dataset" "$REPERF" pack report:paddle-perf-2020
exits 2 "no name" "$REPERF" pack
tree="$REPERF_STORE/trees/imagenet-2012.synthetic"
victim=$(cd "$tree" && find train -name '*.JPEG' | LC_ALL=C sort | sed -n 5p)
chmod u+w "$tree/$victim"
cp -p "$tree/$victim" "$T/kept"
printf 'damaged!' | dd of="$tree/$victim" bs=1 seek=5000 conv=notrunc status=none
fails 5 "$victim: SHA-256" "a file that was changed" "$REPERF" pack imagenet-2012 --synthetic --split train --shard-bytes 1000000 --force
cp -p "$T/kept" "$tree/$victim"
cp "$tree/tree.sha256" "$T/list"
chmod u+w "$tree/tree.sha256"
sed -i '$d' "$tree/tree.sha256"
fails 5 'not the list that tree.json names' "a list that was changed" "$REPERF" pack imagenet-2012 --synthetic
cp "$T/list" "$tree/tree.sha256"
exits 0 "and all is well again" "$REPERF" pack imagenet-2012 --synthetic --shard-bytes 1000000 --force

bert="bert-hdf5-sample"
exits 0 "fetch $bert" "$REPERF" fetch "$bert" bert-tfrecord-sample --synthetic
exits 0 "pack it" "$REPERF" pack "$bert" --synthetic
exits 0 "the shards hold" "$PACK" verify "$packed/$bert.synthetic/train"
valid pack "pack.json is valid" "$packed/$bert.synthetic/train/pack.json"
fails 3 "out of HDF5 files alone" "TFRecords are not packed" "$REPERF" pack bert-tfrecord-sample --synthetic
resnet=(paddle-perf-2020 --profile smoke --case 'resnet50/reperf/fp32/n1g1/bs96')
prints 8 'workload \(exit status 8\): .*kind tokens, but resnet50 trains on classes' "plan with it" "$REPERF" plan "${resnet[@]}" --data bert-hdf5-sample.synthetic
shard=$(find "$packed/imagenet-2012.synthetic/train" -type f ! -name pack.json | LC_ALL=C sort | head -n 1)
chmod u+w "$shard" && truncate -s -1 "$shard"
prints 5 'integrity \(exit status 5\)' "plan with a truncated shard" "$REPERF" plan "${resnet[@]}" --data imagenet-2012.synthetic

# --- garbage collection ---
exits 0 "gc drops no tree and no shards of a dataset that is referred to" "$REPERF" store gc --grace 0 --json
is "$(find "$REPERF_STORE/trees" "$packed" -mindepth 1 -maxdepth 1 | wc -l)" 6 "three trees, three folders of packs"
exits 0 "drop a dataset" "$REPERF" store drop dataset/imagenet-2012.synthetic
exits 0 "its tree and shards are young at first" "$REPERF" store gc
is "$(find "$REPERF_STORE/trees" "$packed" -mindepth 1 -maxdepth 1 | wc -l)" 6 "and stay"
documents store-output 0 "gc --grace 0" "$REPERF" store gc --grace 0 --json
like "$(cat "$T/document")" '"name": "trees/imagenet-2012.synthetic"' "names the tree"
is "$(find "$REPERF_STORE/trees" "$packed" -mindepth 1 -maxdepth 1 -name 'imagenet*' | wc -l)" 0 "tree and shards are gone"
is "$(find "$REPERF_STORE/trees" "$packed" -mindepth 1 -maxdepth 1 | wc -l)" 4 "those of others are there"
tap_done
