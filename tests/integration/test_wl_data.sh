#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: workloads
# reperf-train on what reperf-pack made from synthetic datasets: classes, segments and tokens, resumed, refused, damaged, interrupted.
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
exits 0 "measure reads such a log" "$REPERF" measure whole --format reperf --json
like "$(cat out)" '"verdict":"ok".*"seed","value":"0".*"dataset","value":"imagenet-2012.synthetic"' "finds it whole, and on synthetic data"

losses() { sed -n 's/^{"event":"step".*"loss":\([^,]*\),.*/\1/p' "$1"; } # FILE
still=("${run[@]}" --lr 0 --weight-decay 0)
exits 0 "without learning, a loss depends on its batch alone" "${still[@]}" --steps 6
cp out all
exits 0 "resumed at step 3 with another number of threads" "${still[@]}" --steps 3 --start-step 3 --workers 1
is "$(losses out)" "$(losses all | tail -n 3)" "resumes with the same batches"
exits 0 "another --data-seed" "${still[@]}" --steps 1 --data-seed 1
[ "$(losses out)" != "$(losses all | head -n 1)" ]
ok $? "gives another order"

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
cmp six rest
ok $? "and so is the checkpoint, bit by bit"
head=$(head -c 99 six | tail -c 64)
is "$( (head -c 35 six; printf "%064d" 0; tail -c +100 six) | sha256sum | cut -d' ' -f1)" "$head" "its digest is what sha256sum makes of it, with zeros in that place"
exits 2 "--load with --start-step" "${learn[@]}" --load four --start-step 4
exits 9 "another order of the data" "${learn[@]}" --load four --data-seed 9
like "$(cat err)" 'data_seed is [0-9]+, this run.s is 9' "is named"
exits 9 "made data instead" "$TRAIN" --model resnet50 --image 64 --batch 5 --load four
head -c 100000 six >cut-short
exits 5 "a checkpoint that is cut" "${learn[@]}" --load cut-short
is "$(wc -c <out)" 0 "trains nothing"
like "$(cat err)" 'cut-short: damaged or truncated' "and says what it is"
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
if [ -x "$B/emu/reperf-train" ]; then
    exits 0 "so does an emulated device" env XDG_CACHE_HOME="$T/cache" "$B/emu/reperf-train" --device cuda --model bert_tiny --batch 1 --data tokens --lr 0.001 --warmup-lr-steps 0 --steps 3
    cp out emulated
    exits 0 "measure reads such a log" "$REPERF" measure emulated --format reperf --json
    like "$(cat out)" '"verdict":"ok"' "and finds it whole"
else
    skip "an emulated device trains on tokens" "built without the CUDA toolkit and cuDNN's headers"
fi
exits 0 "--data-only" "$TRAIN" --model bert_tiny --batch 4 --steps 3 --data tokens --data-only
like "$(cat out)" '"batch":4,"sequence":128,"predictions":20,"workers":4,"steps":3,"samples":12,' "reads tokens too"
exits 2 "a sequence that the set does not have" "$TRAIN" --model bert_base --sequence 64 --data tokens --describe
like "$(cat err)" 'sequences of 128 with 20 predictions, but --sequence 64 --predictions 20' "is refused"

# --- refused, before any line ---
refuses() { # STATUS PATTERN NAME ARGS...
    local status=$1 pattern=$2 name=$3
    shift 3
    exits "$status" "$name" "$TRAIN" --model resnet50 --image 32 --batch 4 --steps 1 "$@"
    like "$(cat err)" "$pattern" "and says why"
    is "$(wc -c <out)" 0 "before any line"
}
refuses 2 'no such folder' "a folder that is not there" --data nowhere
refuses 2 'kind segments, but resnet50 trains on classes' "segments for a classifier" --data segments
refuses 2 '24 samples are less than one batch of 25' "a batch larger than the set" --data classes --batch 25
refuses 2 'go with --data FOLDER only' "options of a folder without one" --start-step 3
mkdir empty
refuses 5 'not whole: pack.json' "a folder without pack.json" --data empty

# --- damaged ---
damaged() { rm -rf bad && cp -r classes bad; }
damaged
rm bad/pack.json
refuses 5 'not whole' "shards without pack.json" --data bad
damaged
printf x | dd of=bad/00001.shard bs=1 seek=4100 conv=notrunc status=none
refuses 5 "00001\.shard: the entries' CRC-32C" "a byte of the entries" --data bad
damaged
truncate -s -1 bad/00001.shard
refuses 5 '00001\.shard: its size is' "a cut shard" --data bad
damaged
sed -i 's/"n_samples": *24/"n_samples": 23/' bad/pack.json
refuses 9 'n_samples is 23' "pack.json that does not add up" --data bad
damaged
printf xyz | dd of=bad/00000.shard bs=1 seek=5000 conv=notrunc status=none
printf xyz | dd of=bad/00000.shard bs=1 seek=70000 conv=notrunc status=none
exits 5 "bytes of a sample" "$TRAIN" --model resnet50 --image 32 --batch 4 --steps 8 --data bad --threads 1
like "$(cat err)" '00000\.shard: sample [0-9]+ \([0-9]+ of the set\): CRC-32C is' "name it"
like "$(tail -n 1 out)" '^\{"event":"fatal","rank":0,.*00000.shard: sample' "and end in a fatal line"

# --- stopped ---
{ "${run[@]}" --steps 100000 & } >out 2>err
pid=$!
served "$pid" "a first step" grep -q '"event":"step"' out
kill -TERM "$pid"
wait "$pid"
is $? 143 "SIGTERM ends it"
like "$(tail -n 1 out)" '^\{"event":"step",.*\}$' "after a whole line"
tap_done
