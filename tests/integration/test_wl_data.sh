#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: workloads
# reperf-train on what reperf-pack made from synthetic datasets: classes, segments and tokens, and checkpoints in between. What is refused, and what is
# damaged, is in unit/test_wl_pack.c and unit/test_wl_feed.c.
. "$(dirname "$0")/../tap_lib.sh"
PACK="$B/reperf-pack"
if [ ! -x "$PACK" ]; then
    skip "packed data" "reperf-pack is not built"
    tap_done
fi
imagenet="$ROOT/datasets/imagenet-2012/dataset.json"
cityscapes="$ROOT/datasets/cityscapes/dataset.json"
cd "$T" || exit 1
exits 0 "synthetic ImageNet" "$PACK" synth --dataset "$imagenet" --out in --samples train=24 --samples val=10
mkdir -p tree/train tree/val
tar xf in/ILSVRC2012_img_train.tar -C tree/train
tar xf in/ILSVRC2012_img_val.tar -C tree/val
tar xf in/ILSVRC2012_devkit_t12.tar.gz -C tree
for inner in tree/train/*.tar; do
    mkdir "${inner%.tar}" && tar xf "$inner" -C "${inner%.tar}" && rm "$inner"
done
exits 0 "packed" "$PACK" pack --dataset "$imagenet" --tree tree --synthetic --split train --out classes --shard-bytes 1000000
exits 0 "synthetic Cityscapes" "$PACK" synth --dataset "$cityscapes" --out cs --samples train=4 --samples val=3
mkdir cstree
tar xf cs/cityscapes.tar -C cstree
exits 0 "packed" "$PACK" pack --dataset "$cityscapes" --tree cstree --synthetic --split train --out segments
run=("$TRAIN" --model resnet50 --image 32 --batch 5 --data classes --threads 1)

exits 0 "trains on classes over the end of an epoch" "${run[@]}" --steps 6 --warmup 1 --workers 2
cp out whole
/usr/bin/python3 - whole classes/pack.json <<'PY'
import hashlib, json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert [l["event"] for l in lines] == ["run_start"] + ["step"] * 6 + ["run_stop"]
start, stop, steps = lines[0], lines[-1], lines[1:-1]
pack = json.load(open(sys.argv[2]))
assert start["data"] == pack["dataset"] + ".synthetic" == "imagenet-2012.synthetic" and start["synthetic"] is True
assert start["pack_sha256"] == hashlib.sha256(open(sys.argv[2], "rb").read()).hexdigest()
assert (start["split"], start["n_samples"], start["steps_per_epoch"], start["workers"]) == ("train", 24, 4, 2), start
assert start["augment"] == "resized-crop" and start["mean"] == [0.485, 0.456, 0.406]
assert [(s["epoch"], s["position"]) for s in steps] == [(0, 0), (0, 5), (0, 10), (0, 15), (1, 0), (1, 5)]
for s in steps:
    assert 0 <= s["data_wait_ns"] < s["step_time_ns"]
    assert abs(s["samples_per_s"] - 5e9 / s["step_time_ns"]) < 1e-6 * s["samples_per_s"]
assert stop["data_wait_ns"] == sum(s["data_wait_ns"] for s in steps[1:]) and stop["next_step"] == 6
assert stop["first_batch_ns"] >= steps[0]["data_wait_ns"]
PY
ok $? "its lines say which data, where in the epoch, and what was waited for"
prints 0 '"verdict":"ok".*"seed","value":"0".*"dataset","value":"imagenet-2012.synthetic"' "measure reads such a log" "$REPERF" measure whole --format reperf --json

losses() { sed -n 's/^{"event":"step".*"loss":\([^,]*\),.*/\1/p' "$1"; } # FILE

# --- checkpoints: the data goes on, too ---
learn=("${run[@]}" --lr 1e-3)
exits 0 "six steps that learn" "${learn[@]}" --steps 6 --save six --save-every 2
cp out all
is "$(grep -c '"event":"checkpoint","rank":0,"done_steps":[246],"sha256":"[0-9a-f]\{64\}"' out)" 3 "a checkpoint every two steps"
exits 0 "four of them" "${learn[@]}" --steps 4 --save four
is "$(losses out)" "$(losses all | head -n 4)" "are the same"
exits 0 "the other two, with another number of threads" "${learn[@]}" --steps 2 --load four --save rest --workers 1
is "$(losses out)" "$(losses all | tail -n 2)" "are the same"
like "$(head -n 1 out)" '"start_step":4,.*"first_step":5,"loaded_sha256":"[0-9a-f]{64}"\}$' "and say where they come from"
succeeds "and so is the checkpoint, bit by bit" cmp six rest
head=$(head -c 99 six | tail -c 64)
is "$( (head -c 35 six; printf "%064d" 0; tail -c +100 six) | sha256sum | cut -d' ' -f1)" "$head" "its digest is what sha256sum makes of it, with zeros in that place"
exits 0 "--data-only" "$TRAIN" --model resnet50 --batch 6 --steps 9 --data classes --data-only
like "$(cat out)" '^\{"schema_version":1,"data":"imagenet-2012.synthetic",.*"image":\[224,224\],"workers":4,"steps":9,"samples":54,.*"samples_per_s":[0-9.]+\}$' "reads and says how fast"
exits 0 "trains on segments" "$TRAIN" --model hrnet_w18 --image 64x128 --batch 2 --steps 2 --data segments --threads 1
like "$(head -n 1 out)" '"data":"cityscapes.synthetic",.*"augment":"scale-crop","augment_on":"host","mean":\[0.5,0.5,0.5\]' "with PaddleSeg's numbers"

# --- tokens: nothing is cropped, and no line mentions crops ---
bert="$ROOT/datasets/bert-hdf5-sample/dataset.json"
exits 0 "a synthetic sample for BERT" "$PACK" synth --dataset "$bert" --out bert --samples train=12
mkdir berttree && tar xf bert/*.tar* -C berttree
exits 0 "packed" "$PACK" pack --dataset "$bert" --tree berttree --synthetic --split train --out tokens
exits 0 "trains on tokens" "$TRAIN" --model bert_tiny --batch 4 --steps 4 --data tokens --threads 1
like "$(head -n 1 out)" '"batch":4,"sequence":128,"predictions":20,.*"data":"bert-hdf5-sample.synthetic",.*"epoch":0,"recipe":"paddle","optimizer":"adamw",' "and says which"
is "$(losses out | wc -l)" 4 "over the end of an epoch"
if [ ! -x "$B/emu/reperf-train" ]; then
    skip "an emulated device trains on tokens" "built without the CUDA toolkit and cuDNN's headers"
elif in_test_all "an emulated device trains on tokens"; then # in make test: test_wl_cuda.sh
    exits 0 "so does an emulated device" env XDG_CACHE_HOME="$T/cache" "$B/emu/reperf-train" --device cuda --model bert_tiny --batch 1 --data tokens --lr 0.001 --warmup-lr-steps 0 --steps 3
    cp out emulated
    prints 0 '"verdict":"ok"' "measure reads such a log" "$REPERF" measure emulated --format reperf --json
fi
prints 0 '"batch":4,"sequence":128,"predictions":20,"workers":4,"steps":3,"samples":12,' "--data-only" "$TRAIN" --model bert_tiny --batch 4 --steps 3 --data tokens --data-only
fails 2 'sequences of 128 with 20 predictions, but --sequence 64 --predictions 20' "a sequence that the set does not have" "$TRAIN" --model bert_base --sequence 64 --data tokens --describe
tap_done
