#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: workloads
# Only: @emu/reperf-train
# reperf-train as several ranks on devices: real processes, each with an emulated device, and a fake NCCL between them. The same numbers as one
# rank, eagerly and replayed, and what ends a job. No GPU and no real NCCL: tests/cuda/gpu_ranks.sh is for those.
. "$(dirname "$0")/../tap_lib.sh"
export XDG_CACHE_HOME="$T/cache" # choices of plans are not kept for this user
# shellcheck source=tests/integration/ranks_lib.sh disable=SC1091
. "$(dirname "$0")/ranks_lib.sh"
TRAIN="$B/emu/reperf-train"
[ -x "$TRAIN" ] || {
    skip "several ranks on emulated devices" "built without the CUDA toolkit and cuDNN's headers"
    tap_done
}
export REPERF_EMU_DEVICES=3 REPERF_FAKE_NCCL_DIR="$T"
REPERF_NCCL_DIR="$(cd "$B/fake" && pwd)"
export REPERF_NCCL_DIR
unset REPERF_EMU_SEED REPERF_FAKE_NCCL

start() { # RANK N ARGUMENTS...
    local rank=$1 n=$2
    shift 2
    { env REPERF_EMU_SEED=$((rank + 1)) RANK="$rank" WORLD_SIZE="$n" LOCAL_RANK="$rank" MASTER_ADDR=127.0.0.1 MASTER_PORT="$port" "${with[@]}" \
        "$TRAIN" --device cuda "${@//%RANK/$rank}" & } >"$T/out.$rank" 2>"$T/err.$rank"
    pids[rank]=$!
}
of() { grep -o "\"$1\":[^,}]*" "$2" | cut -d: -f2 | tr '\n' ' '; } # KEY FILE

# --- N ranks x B are one rank x N*B ----------------------------------------------------------------
same_as_one() { # NAME RANKS BATCH TOLERANCE ARGUMENTS...
    local name=$1 n=$2 batch=$3 tolerance=$4 one state
    shift 4
    set -- "$@" --no-tune # which plans are taken, and whose, is seen below
    exits 0 "$name: one rank" "$TRAIN" --device cuda "$@" --batch "$batch"
    one=$(of loss "$T/out")
    state="$(of loss_scale "$T/out")$(of skipped "$T/out")"
    job "$n" "$@" --batch $((batch / n))
    is "$statuses" "$(yes 0 | head -n "$n" | tr '\n' ' ' | sed 's/ $//')" "$name: $n ranks end well"
    succeeds "$name: the losses are those of one rank: $(of loss "$T/out.0")and $one" close "$(of loss "$T/out.0")" "$one" "$tolerance"
    is "$(of loss_scale "$T/out.0")$(of skipped "$T/out.0")" "$state" "$name: and so is what became of the loss scale"
    is "$(cat "$T/out.1" "$T/err.1")" "" "$name: rank 1 says nothing"
}
words=(--model bert_nano --sequence 8 --predictions 2 --lr 1e-3 --data synthetic-fresh)
# The first two steps are eager, the third is replayed.
same_as_one "BERT, fp32" 2 2 1e-5 "${words[@]}" --steps 3
words_losses=$(of loss "$T/out.0")
like "$(head -n 1 "$T/out.0")" '"ranks":2,"rank":0,"global_batch":2,"comm":"nccl",.*"gradient_bytes":[1-9]' "run_start says what the job is"
# The loss scale is decided on each device from sums that are the same everywhere. Issue 5: 2e-3 in FP16.
same_as_one "BERT, amp" 2 2 2e-3 "${words[@]}" --steps 3 --precision amp --loss-scale dynamic
# The sums of two micro-batches are sent once.
same_as_one "BERT, two micro-batches a step" 2 2 1e-5 "${words[@]}" --steps 3 --accumulate 2
like "$(head -n 1 "$T/out.0")" '"global_batch":4,.*"accumulate":2' "each of as many samples"
# Batch norm over all ranks, with the calls of fused networks and with plain ones: a mean over ranks is joined from other numbers than a
# sum over one batch, and the first loss shows it before rounding is multiplied by an update. One step of each, and half precision as above.
# DeepLabV3+ at 16 pixels has so few values a channel that rounding comes to 7e-6 and, on one seed of seven, over 1e-5; at 32 to 3e-6.
if in_test_all "networks of images as two ranks with batch norm over both"; then # its sums over ranks: test_emu_nccl; as processes: test_wl_dist.sh
    streets=(--lr 1e-4 --data synthetic-fresh --sync-bn --steps 1)
    same_as_one "ResNet-50, batch norm over the ranks" 2 4 1e-5 --model resnet50 --image 40 "${streets[@]}"
    same_as_one "HRNet-W18, batch norm over the ranks, amp" 2 4 2e-3 --model hrnet_w18 --image 32 --precision amp --loss-scale 1 "${streets[@]}"
    same_as_one "DeepLabV3+, batch norm over the ranks" 2 4 1e-5 --model deeplabv3p --image 32 "${streets[@]}"
    same_as_one "HRNet-W18, batch norm over the ranks" 2 4 1e-5 --model hrnet_w18 --image 32 "${streets[@]}"
    synced=$(of loss "$T/out.0")
    job 2 --model hrnet_w18 --image 32 "${streets[@]:0:4}" --steps 1 --batch 2
    ! close "$(of loss "$T/out.0")" "$synced" 1e-4
    ok $? "which is not what each rank's own batch norm gives: $(of loss "$T/out.0")"
fi

# --- whose plans they take --------------------------------------------------------------------------
# Timing takes seconds here, more than the rendezvous may: rank 1, which has plans of its own, joins before and takes rank 0's.
n_kept() { find "$T/plans.$1" -name '*.json' 2>/dev/null | wc -l; }
planned=("${words[@]}" --precision amp --steps 1 --batch 1 --plan-cache "$T/plans.%RANK")
begin_s=$SECONDS
job 2 "${planned[@]}"
is "$statuses" "0 0" "plans are chosen by timing"
limit_s=$((2 + (SECONDS - begin_s) / 2)) # less than that took, and as long as this machine is slow
succeeds "by rank 0 ($(n_kept 0) kept)" test "$(n_kept 0)" -gt 10
is "$(n_kept 1)" 0 "and by no other"
succeeds "they are kept with device, driver and libraries" grep -hq '"key":"CUDA emulator; driver CUDA [0-9.]*; cudnn [0-9.]*, cublaslt [0-9.]*; linear_fwd f16 ' "$T"/plans.0/*.json
mv "$T/plans.0" "$T/plans.1"
begin_s=$SECONDS
job 2 "${planned[@]}" --rendezvous-timeout "$limit_s"
is "$statuses" "0 0" "a rank that has plans waits for one that times: $((SECONDS - begin_s)) s, with $limit_s s for the rendezvous"
like "$(head -n 1 "$T/out.0")" '"tuned":true,"untimed":0,' "nothing was left untimed"
if in_test_all "ranks with two kinds of device"; then
    rm -rf "$T"/plans.*
    port=$(free_port)
    start 0 2 "${planned[@]}"
    with=(REPERF_FAKE_CUDNN=91001)
    start 1 2 "${planned[@]}"
    with=()
    all_of 2
    is "$statuses" "0 0" "two kinds of device: another cuDNN makes one"
    [ "$(n_kept 0)" -gt 10 ] && [ "$(n_kept 1)" -gt 10 ]
    ok $? "the first rank of each times its own ($(n_kept 0), $(n_kept 1))"
fi
job 2 "${planned[@]}" --tune-seconds 301 --comm-timeout 30
is "$statuses" "2 2" "time for that which the others would not wait"
like "$(cat "$T/err.1")" '--tune-seconds 301: the other ranks wait .* --comm-timeout 30 it may take 300 s at most' "is refused"

# --- what ends a job ------------------------------------------------------------------------------
# Which libraries and devices are refused is in unit/test_emu_nccl.c; what else ends a job, in test_wl_dist.sh.
short=("${words[@]}" --steps 2 --batch 1)
with=(LOCAL_RANK=0 REPERF_NCCL_ONE_GPU=1)
job 2 "${words[@]}" --steps 3 --batch 1
is "$statuses" "0 0" "two ranks on one GPU, as a test may: each is a host of its own to NCCL"
is "$(of loss "$T/out.0")" "$words_losses" "with the same losses"
like "$(cat "$T/err.1")" 'REPERF_NCCL_ONE_GPU: ranks may share a GPU' "and a warning"
port=$(free_port)
with=(REPERF_NCCL_DIR="$T")
start 1 2 "${short[@]}"
with=()
start 0 2 "${short[@]}"
all_of 2
is "$statuses" "2 2" "one rank of two without NCCL"
like "$(cat "$T/err.0")" 'rank 1 has no NCCL that it can use' "which the other hears of"
job 2 "${words[@]}" --steps 4 --batch 1 --lr 1e300
is "$statuses" "8 8" "a loss that is not finite ends both alike"

long=("${words[@]}" --steps 100000 --batch 1 --comm-timeout 360) # a third of it for NCCL's abort
port=$(free_port)
start 0 2 "${long[@]}"
start 1 2 "${long[@]}"
succeeds "two ranks are on their way, replaying" waiting_for 300 grep -qs '"step":3,' "$T/out.0"
kill -9 "${pids[1]}"
all_of 2
is "$statuses" "70 137" "rank 1 is killed: rank 0 ends"
is "$(grep -c '"event":"fatal","rank":0,.*"what":"rank 1 died' "$T/out.0")" 1 "it names rank 1, once"
! grep -q 'cannot be aborted' "$T/err.0"
ok $? "NCCL is aborted, whose operations the recorded step has"
like "$(tail -n 1 "$T/out.0")" '"event":"fatal"' "and says nothing after that"
tap_done
