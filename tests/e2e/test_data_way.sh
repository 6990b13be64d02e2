#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: store
# All steps of data preparation, on a fresh machine: synthetic datasets made, unpacked, verified, packed, trained on, and
# called synthetic in every verdict on the way.
# shellcheck source=tests/tap_lib.sh disable=SC1091
source "$(dirname "$0")/../tap_lib.sh"
trap 'chmod -R u+w "$T"; rm -rf "$T"' EXIT

# ---- Cityscapes: segmentation
documents noun-output 0 "fetch cityscapes --synthetic" "$REPERF" fetch cityscapes --synthetic --samples train=3 --samples val=3 --json
"$REPERF" fetch cityscapes.synthetic --synthetic --samples train=3 --samples val=3 >"$T/out" 2>"$T/err"
like "$(cat "$T/out")" '^ +from +store$' "again: nothing is made twice"
like "$(cat "$T/out")" '^  synthetic +yes$' "and it is still called synthetic"
valid tree "its tree's record is valid" "$REPERF_STORE/trees/cityscapes.synthetic/tree.json"
like "$(cat "$REPERF_STORE/trees/cityscapes.synthetic/tree.json")" '"synthetic": true' "and says synthetic"
is "$(cd "$REPERF_STORE/trees/cityscapes.synthetic" && sha256sum --quiet -c tree.sha256 && wc -l <tree.sha256)" 12 "sha256sum checks its 12 files"
prints 0 '^  synthetic +yes$' "verify cityscapes --synthetic" "$REPERF" verify cityscapes --synthetic --deep
exits 4 "the real one is not there because the synthetic one is" "$REPERF" verify cityscapes
exits 0 "pack cityscapes --synthetic" "$REPERF" pack cityscapes --synthetic
exits 0 "reperf-pack verify" "$B/reperf-pack" verify "$REPERF_STORE/packed/cityscapes.synthetic/train"
fails 2 'Its synthetic version is there: --data cityscapes.synthetic' "a run on the real data is refused" "$REPERF" run paddle-perf-hrnetw18 --profile smoke --data cityscapes
exits 0 "reperf-train on the shards" "$TRAIN" --model hrnet_w18 --image 64x128 --batch 2 --steps 2 --data "$REPERF_STORE/packed/cityscapes.synthetic/train"
like "$(head -n 1 "$T/out")" '"data":"cityscapes.synthetic".*"synthetic":true' "its first line says synthetic"
image=$(find "$REPERF_STORE/trees/cityscapes.synthetic/cityscapes/leftImg8bit/val" -name '*.png' | sort | head -n 1)
printf '\\x%02x' $(($(od -An -tu1 -j 5000 -N 1 "$image") ^ 1)) >"$T/byte"
printf '%b' "$(cat "$T/byte")" | dd of="$image" bs=1 seek=5000 conv=notrunc status=none
prints 5 "${image##*/} +its digest differs" "a bad byte in the tree is found" "$REPERF" verify cityscapes --synthetic
rm -rf "$REPERF_STORE/packed/cityscapes.synthetic/val"
exits 5 "and it is not packed" "$REPERF" pack cityscapes --synthetic --split val

# ---- ImageNet: a tar a class, a run of the report
exits 0 "fetch imagenet-2012 --synthetic" "$REPERF" fetch imagenet-2012 --synthetic --samples train=40 --samples val=4
exits 0 "verify it" "$REPERF" verify imagenet-2012.synthetic --json
like "$(tr -d '\n' <"$T/out")" '"name": "train-images", *"files": 40, *"expected_files": 40, *"folders": 10' "40 images of 10 classes"
exits 0 "pack its training part" "$REPERF" pack imagenet-2012 --synthetic --split train
exits 0 "run the report's case on it" "$REPERF" run paddle-perf-2020 --profile smoke --repeats 1 --case 'resnet50/reperf/fp32/n1g1/*' \
    --data imagenet-2012.synthetic "${SHORT[@]}"
like "$(cat "$T/out")" '^  dataset: synthetic twin of imagenet-2012 here, imagenet-2012 published' "the verdict says what it was trained on"
archive=$(sed -n 's/^archive \([^ ]*\).*/\1/p' "$T/out")
mkdir "$T/evidence" && tar --zstd -xf "$archive" -C "$T/evidence"
like "$(tr -d '\n' <"$(find "$T/evidence" -path '*lock/lock.json')")" '"data": \{ *"dataset": "imagenet-2012", *"synthetic": true' "the run's lock names it"
like "$(cat "$(find "$T/evidence" -path '*lock/lock.json')")" "$(sha256sum <"$REPERF_STORE/packed/imagenet-2012.synthetic/train/pack.json" | cut -c1-64)" "by the digest of its pack.json"
exits 0 "replay gives the same result" "$REPERF" replay "$archive"

# ---- the others: BERT's inputs in HDF5 and TFRecord (which frameworks read as it is), the subsets
for synthetic in bert-sample=16 bert-hdf5-sample=16 bert-tfrecord-sample=32 imagenet-54289=8 cityscapes-300=2; do
    id=${synthetic%=*}
    exits 0 "fetch $id --synthetic" "$REPERF" fetch "$id" --synthetic --samples "train=${synthetic#*=}"
    exits 0 "verify $id" "$REPERF" verify "$id" --synthetic --deep
    [ "$id" = bert-tfrecord-sample ] || exits 0 "pack $id" "$REPERF" pack "$id" --synthetic
done
prints 0 'cityscapes +absent +tree' "what is in the store" "$REPERF" list datasets
tap_done
