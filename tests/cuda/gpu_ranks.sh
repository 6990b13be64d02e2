#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# reperf-train as two ranks with NCCL (part of tests/cuda/gpu.sh): the losses of one rank with the whole batch, a rank that dies, two ranks on one
# GPU. On a machine with one GPU both ranks share it, each a host of its own to NCCL, and talk by its sockets.
. "$(dirname "$0")/../tap_lib.sh"
export OMP_WAIT_POLICY=passive
n_gpus=$("${SMI:-nvidia-smi}" -L 2>/dev/null | grep -c '^GPU ')
if [ "$n_gpus" -eq 0 ]; then
    skip "two ranks" "this machine has no GPU"
    tap_done
fi
second=1 shared=
if [ "$n_gpus" -eq 1 ]; then
    second=0 shared=1
    export NCCL_SOCKET_IFNAME=${NCCL_SOCKET_IFNAME:-lo}
fi
port=$((20000 + RANDOM % 9000))
job() { # LOCAL_RANK_OF_1 ARGUMENTS...: statuses in $statuses
    local other=$1 r pids=()
    shift
    port=$((port + 1))
    for r in 0 1; do
        { env ${shared:+REPERF_NCCL_ONE_GPU=1} RANK=$r WORLD_SIZE=2 LOCAL_RANK=$((r * other)) MASTER_ADDR=127.0.0.1 MASTER_PORT=$port timeout -k 5 60 "$TRAIN" --device cuda "$@" & } >"$T/out.$r" 2>"$T/err.$r"
        pids[r]=$!
    done
    [ -z "${KILL_AT:-}" ] || {
        for _ in $(seq 600); do
            grep -q "$KILL_AT" "$T/out.0" && break
            sleep 0.05
        done
        pkill -9 -P "${pids[1]}"
    }
    wait "${pids[0]}"
    statuses=$?
    wait "${pids[1]}"
    statuses="$statuses $?"
}
losses() { grep -o '"loss":[^,]*' "$1" | cut -d: -f2 | tr '\n' ' '; }
close() { awk -v a="$1" -v b="$2" -v t="$3" 'BEGIN { n = split(a, x, " "); m = split(b, y, " "); bad = n != m || n == 0
    for (i = 1; i <= n; i++) { d = x[i] - y[i]; d = d < 0 ? -d : d; if (!(d <= t * y[i])) bad = 1 } exit bad }'; }
while read -r name tolerance arguments; do
    # shellcheck disable=SC2086
    set -- $arguments --data synthetic-fresh
    exits 0 "$name: one rank" timeout -k 5 60 "$TRAIN" --device cuda "$@" --batch 8
    job "$second" "$@" --batch 4
    is "$statuses" "0 0" "$name: two ranks end well"
    succeeds "$name: the losses are those of one rank: $(losses "$T/out.0")and $(losses "$T/out")" close "$(losses "$T/out.0")" "$(losses "$T/out")" "$tolerance"
done <<'LIST'
BERT-fp32 1e-4 --model bert_tiny --steps 6 --lr 1e-3
BERT-amp 2e-3 --model bert_tiny --steps 6 --lr 1e-3 --precision amp --loss-scale dynamic
ResNet-50-sync-bn 1e-5 --model resnet50 --image 64 --steps 1 --sync-bn
ResNet-50-sync-bn-amp 2e-3 --model resnet50 --image 64 --steps 1 --sync-bn --precision amp
LIST
was=$shared shared=
job 0 --model bert_tiny --batch 4 --steps 2
shared=$was
is "$statuses" "2 2" "two ranks on one GPU are refused"
like "$(cat "$T/out.1")" 'are on the same GPU' "in words"
KILL_AT='"step":4,'
job "$second" --model bert_tiny --batch 4 --steps 1000000 --comm-timeout 20
is "${statuses%% *}" 70 "a rank is killed: the other ends"
like "$(tail -n 1 "$T/out.0")" '"event":"fatal".*"what":"rank 1 died' "and names it"
tap_done
