#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: workloads
# Only: @emu/reperf-train @reperf-pack datasets
# reperf-train --device cuda, whole, on the emulated device (tests/cuda_emu; cuDNN and cuBLASLt are stand-ins): a step that is
# recorded and replayed gives exactly the bits of one that is launched call by call, on one stream or several, however far the host is
# ahead; fused steps give the same except for rounding; statuses and messages of failures.
. "$(dirname "$0")/../tap_lib.sh"
EMU="$B/emu/reperf-train"
[ -x "$EMU" ] || {
    skip "the CUDA backend on the emulated device (unit/test_emu_*, too)" "built without the CUDA toolkit and cuDNN's headers"
    tap_done
}
bert=("$EMU" --device cuda --model bert_nano --sequence 8 --predictions 2 --batch 2 --lr 0.001 --warmup-lr-steps 0)
plainly=(--no-graph --streams 1 --ahead 0)

export XDG_CACHE_HOME="$T/cache"

losses() { grep -o '"event":"step".*"loss":[^,]*' "$1" | grep -o '"loss":[^,]*'; }
# trains NAME OPTIONS...: into $T/NAME.out, and its checkpoint
trains() {
    local name=$1
    shift
    "$@" --save "$T/$name" >"$T/$name.out" 2>"$T/$name.err" || { sed 's/^/# /' "$T/$name.err"; }
}
# The parameters' and the optimiser's bits: the checkpoint has them and nothing of how they were made.
same() { # NAME NAME WHAT
    [ -n "$(losses "$T/$1.out")" ] && [ "$(losses "$T/$1.out")" = "$(losses "$T/$2.out")" ] && cmp -s "$T/$1" "$T/$2"
    ok $? "$3"
}

# --- replay, streams, running ahead ---
for precision in fp32 amp; do
    more=(--precision "$precision" --steps 3) # the third is the first one that is played back
    case $precision in
    fp32) more+=(--data synthetic-fresh) ahead=3 ;; # a batch is copied while the device computes the previous one
    amp) more+=(--loss-scale 1024) ahead=2 ;;
    esac
    REPERF_EMU_SEED=1 trains eager "${bert[@]}" "${more[@]}" "${plainly[@]}"
    REPERF_EMU_SEED=2 trains replay "${bert[@]}" "${more[@]}" --ahead "$ahead"
    same eager replay "bert_nano, $precision: played back on four streams, $ahead ahead, is launched on one and waited for, bit for bit"
    [ "$precision" != fp32 ] || {
        succeeds "another batch in each step, whenever it comes" test "$(losses "$T/replay.out" | sort -u | wc -l)" = 3
    }
    is "$(grep -o '"skipped":true' "$T/replay.out" | wc -l)" 0 "its steps are no empty ones"
done
trains micro "${bert[@]}" "${more[@]}" --accumulate 2 "${plainly[@]}"
trains micros "${bert[@]}" "${more[@]}" --accumulate 2 --ahead 7
same micro micros "the same with two micro-batches a step"
like "$(head -n 1 "$T/replay.out")" '"gpu":"[^"]+","gpu_memory_bytes":[0-9]+,"driver":"[^"]+","cuda":"[0-9.]+","libraries":"[^"]*","tf32":false,"fused":\{.*\},"streams":4,"graph":true,"tuned":true,"untimed":0,"ahead":2\}$' \
    "run_start names GPU, driver, libraries and how they are used"
like "$(head -n 1 "$T/eager.out")" '"streams":1,"graph":false,"tuned":true,"untimed":0,"ahead":0\}$' "and what is switched off"
like "$(tail -n 1 "$T/replay.out")" '"event":"run_stop".*"peak_memory_bytes":[1-9][0-9]*\}$' "run_stop says how much memory was held"

# So small an image leaves batch norms a few values a channel, whose gradients are large: with a large loss scale every step would be skipped.
replays() { # NAME COMMAND...
    local name=$1
    shift
    trains eager "$@" "${plainly[@]}"
    trains replay "$@"
    same eager replay "$name, amp, fused: played back on four streams is launched on one, bit for bit"
    is "$(grep -o '"skipped":false' "$T/replay.out" | wc -l):$(losses "$T/replay.out" | sort -u | wc -l)" 3:3 "$name: three steps that all change something"
}
if in_test_all "networks of images played back, amp, fused; plans kept"; then
    images=("$EMU" --device cuda --precision amp --steps 3 --no-tune --nondeterministic)
    hrnet=("${images[@]}" --model hrnet_w18 --image 32 --batch 4 --lr 0.001 --loss-scale 1)
    replays resnet50 "${images[@]}" --model resnet50 --image 32 --batch 4 --lr 0.001 --loss-scale 1
    replays deeplabv3p "${images[@]}" --model deeplabv3p --image 16 --batch 2 --lr 0.0001 --loss-scale 0.0625
    replays hrnet_w18 "${hrnet[@]}" # what follows looks at this one
    like "$(head -n 1 "$T/replay.out")" '"conv_stats":[1-9][0-9]*,"norm_conv":[1-9][0-9]*,"conv_bn_bwd":[1-9]' "convolutions and batch norms are fused"
    trains plain "${hrnet[@]}" --no-fuse --steps 1
    like "$(head -n 1 "$T/plain.out")" '"fused":\{"upsample_loss":0,"bn_add":0,"mask":0,"conv_stats":0,"norm_conv":0,"conv_bn_bwd":0,"bn_pair":0,"drop_add_norm":0\}' "--no-fuse fuses nothing"
    # Half precision rounds to 2^-11; a first loss is one forward pass.
    paste -d: <(losses "$T/replay.out") <(losses "$T/plain.out") | head -n 1 |
        awk -F: '{ d = $2 - $4; exit !(NF == 4 && d < 2e-3 * $4 && d > -2e-3 * $4) }'
    ok $? "and its first loss is the fused one's within 2e-3"

    describe=("$EMU" --device cuda --model hrnet_w18 --image 32 --batch 2 --precision amp --describe --plan-cache "$T/plans")
    exits 0 "fused or plain by time" "${describe[@]}"
    cp "$T/out" "$T/first"
    n_plans=$(find "$T/plans" -name '*.json' | wc -l)
    succeeds "is kept in the folder of --plan-cache ($n_plans)" test "$n_plans" -gt 20
    (cd "$T/plans" && sha256sum -- *.json) >"$T/before"
    exits 0 "and once more" "${describe[@]}"
    cmp -s "$T/first" "$T/out" && (cd "$T/plans" && sha256sum -- *.json) | cmp -s - "$T/before"
    ok $? "is the same choice, not made again"
fi

# --- packed data ---
if [ -x "$B/reperf-pack" ]; then
    dataset="$ROOT/datasets/bert-hdf5-sample/dataset.json"
    mkdir "$T/tree"
    { "$B/reperf-pack" synth --dataset "$dataset" --out "$T/bert" --samples train=6 && tar xf "$T"/bert/*.tar* -C "$T/tree" &&
        "$B/reperf-pack" pack --dataset "$dataset" --tree "$T/tree" --synthetic --split train --out "$T/tokens"; } >"$T/out" 2>&1
    ok $? "a packed synthetic BERT sample"
    packed=("$EMU" --device cuda --model bert_tiny --batch 1 --data "$T/tokens" --lr 0.001 --warmup-lr-steps 0)
    trains eager "${packed[@]}" --steps 3 "${plainly[@]}"
    trains replay "${packed[@]}" --steps 3
    same eager replay "packed data: the same bits"
    like "$(grep '"event":"step"' "$T/replay.out" | tail -n 1)" '"data_wait_ns":[0-9]+,"epoch":0,"position":2' "a step says where its batch is from"
    size=$(stat -c %s "$T"/tokens/00000.shard)
    exits 0 "rates alone need no device" "$EMU" --model bert_tiny --batch 1 --data "$T/tokens" --data-only --steps 2
    printf x | dd of="$T/tokens/00000.shard" bs=1 seek=$((size - 100)) conv=notrunc 2>"$T/err"
    omits 5 run_stop "a damaged shard is not trained on" "${packed[@]}" --steps 4

    if in_test_all "packed images on a device"; then
        dataset="$ROOT/datasets/cityscapes/dataset.json"
        mkdir "$T/streets"
        { "$B/reperf-pack" synth --dataset "$dataset" --out "$T/cityscapes" --samples train=4 --samples val=3 && tar xf "$T/cityscapes/cityscapes.tar" -C "$T/streets" &&
            "$B/reperf-pack" pack --dataset "$dataset" --tree "$T/streets" --synthetic --split train --out "$T/segments"; } >"$T/out" 2>&1
        ok $? "packed synthetic Cityscapes"
        # With two samples batch norms of two values turn a rounding of either into 3e-4 of the loss; four leave 2e-6 of it.
        packed=("$EMU" --device cuda --model hrnet_w18 --image 32 --batch 4 --lr 0.001 --no-tune --data "$T/segments")
        # What is played back writes no images: they are brought beside it.
        REPERF_EMU_SEED=5 trains eager "${packed[@]}" --steps 3 "${plainly[@]}" --workers 1
        REPERF_EMU_SEED=6 trains replay "${packed[@]}" --steps 3
        same eager replay "packed images: the same bits, played back"
        REPERF_EMU_SEED=5 trains eager "${packed[@]}" --steps 1 "${plainly[@]}" --workers 1
        REPERF_EMU_SEED=6 trains replay "${packed[@]}" --steps 1
        same eager replay "packed images, made ready on the device: the same bits for any number of threads, streams and however far ahead"
        like "$(head -n 1 "$T/replay.out")" '"augment":"scale-crop","augment_on":"device",' "run_start says that they are"
        trains host "$EMU" --model hrnet_w18 --image 32 --batch 4 --lr 0.001 --data "$T/segments" --steps 1
        like "$(head -n 1 "$T/host.out")" '"augment":"scale-crop","augment_on":"host",' "on a CPU the host does it"
        paste -d: <(losses "$T/replay.out") <(losses "$T/host.out") | head -n 1 |
            awk -F: '{ d = $2 - $4; exit !(NF == 4 && d < 1e-4 * $4 && d > -1e-4 * $4) }'
        ok $? "and its first loss is the device's within 1e-4"
    fi
else
    skip "packed data on a device" "reperf-pack is not built"
fi

# --- checkpoints ---
trains whole "${bert[@]}" --steps 3 --schedule-steps 3
trains half "${bert[@]}" --steps 2 --schedule-steps 3 --save-every 1
is "$(grep -c '"event":"checkpoint"' "$T/half.out")" 2 "--save-every 1 of two steps"
trains rest "${bert[@]}" --steps 1 --schedule-steps 3 --load "$T/half"
[ "$(losses "$T/whole.out")" = "$(losses "$T/half.out"; losses "$T/rest.out")" ] && cmp -s "$T/whole" "$T/rest"
ok $? "saved in the middle, loaded and resumed: exactly the bits of an uninterrupted run"
half=("${bert[@]}" --precision amp --loss-scale 1024 --schedule-steps 2)
trains whole_amp "${half[@]}" --steps 2
trains half_amp "${half[@]}" --steps 1
trains rest_amp "${half[@]}" --steps 1 --load "$T/half_amp"
[ "$(losses "$T/whole_amp.out")" = "$(losses "$T/half_amp.out"; losses "$T/rest_amp.out")" ] && cmp -s "$T/whole_amp" "$T/rest_amp"
ok $? "the same with half precision, whose masters are what is kept"

# --- failures ---
exits 8 "a loss that is not finite" "${bert[@]}" --lr 1e300 --optimizer sgd --steps 5
like "$(tail -n 1 "$T/out")" '^\{"event":"fatal","rank":0,"device":"cuda".*"what":"(loss is |a gradient is )' "ends in a fatal line"
leaves 8 output "" "a batch that does not fit is reported before any line" env REPERF_EMU_MEMORY=80000000 "${bert[@]}" --no-tune --batch 2000
like "$(cat "$T/err")" 'needs [0-9]+ bytes .* [0-9]+ are available; the largest --batch that fits is [0-9]+' "with both numbers and the batch that fits"
like "$(cat "$T/err")" 'bytes of the GPU .*of the host' "each where it counts"
largest=$(sed -n 's/.*the largest --batch that fits is //p' "$T/err")
exits 0 "which does" env REPERF_EMU_MEMORY=80000000 "${bert[@]}" --no-tune --batch "${largest:-0}" --describe
for fault in memcpy:20 launch:200; do
    exits 8 "a device that fails ($fault)" env REPERF_EMU_FAULT="$fault" "${bert[@]}" --steps 4
    like "$(tail -n 1 "$T/out")" '^\{"event":"fatal","rank":0,"device":"cuda"' "ends in a fatal line"
    is "$(grep -c run_stop "$T/out")" 0 "and without run_stop"
done
for option in --no-fuse --no-graph --no-tune "--tune-seconds 3" --compile-plans "--streams 2" "--ahead 1" "--plan-cache none"; do
    # shellcheck disable=SC2086
    exits 2 "$option without a GPU" "$EMU" --model bert_nano $option
done
tap_done
