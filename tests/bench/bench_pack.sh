#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Packing JPEGs against libjpeg-turbo that decodes the same files and does nothing else (tests/bench/decode_jpeg.c), one process a core.
# Pictures: synthetic ImageNet, N of them, in memory (/dev/shm), page cache warm. Ours reads all headers, decodes, computes CRC-32C,
# writes the shards and syncs them; with --list it also checks each file's SHA-256; with short_side it scales it down.
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/bench/bench_lib.sh
. tests/bench/bench_lib.sh
: "${B:=build/release}"
: "${N:=1500}"
cores=$(nproc)
dir=$(mktemp -d /dev/shm/reperf-bench.XXXXXX) || exit 1
trap 'rm -rf "$dir"' EXIT
"${CC:-gcc}" -std=gnu17 -D_GNU_SOURCE -O2 -Iorchestrator tests/bench/decode_jpeg.c "$B/base.a" -ljpeg -lm -o "$dir/yardstick" || exit 1
"$B/reperf-pack" synth --dataset datasets/imagenet-2012/dataset.json --out "$dir/in" --samples "train=$N" >/dev/null 2>&1 || exit 1
mkdir -p "$dir/tree/train"
tar xf "$dir/in/ILSVRC2012_img_train.tar" -C "$dir/tree/train"
for inner in "$dir"/tree/train/*.tar; do
    mkdir "${inner%.tar}" && tar xf "$inner" -C "${inner%.tar}" && rm "$inner"
done
rm -r "$dir/in"
find "$dir/tree" -name '*.JPEG' | LC_ALL=C sort >"$dir/files"
(cd "$dir/tree" && find . -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum) >"$dir/list"
sed 's/"short_side": 256/"short_side": null/' datasets/imagenet-2012/dataset.json >"$dir/dataset.json"
echo "data: $N JPEGs, $(du -sb --apparent-size "$dir/tree" | cut -f1) bytes; $cores cores"
peer="" writer=""
for ((core = 0; core < cores; core++)); do
    peer+="'$dir/yardstick' '$dir/files' $core $cores & "
    writer+="rm -f '$dir/pixels$core'; '$dir/yardstick' '$dir/files' $core $cores '$dir/pixels$core' & "
done
peer+="wait"
writer+="wait"
ours() { echo "rm -rf '$dir/out'; '$B/reperf-pack' pack --dataset '$1' --tree '$dir/tree' --split train --synthetic --threads $cores --out '$dir/out' $2"; } # DATASET OPTIONS
pair "pack : decode alone" 1.1 "$(ours "$dir/dataset.json" "")" "$peer"
pair "pack : decode and write the pixels" 1.1 "$(ours "$dir/dataset.json" "")" "$writer"
rm -f "$dir"/pixels*
pair "pack --list : decode alone" "" "$(ours "$dir/dataset.json" "--list '$dir/list'")" "$peer"
pair "pack, short side 256 : decode alone" "" "$(ours datasets/imagenet-2012/dataset.json "")" "$peer"
