#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: workloads
# Only: @reperf-train @reperf-pack datasets
# reperf-train as several ranks: real processes on this machine. The same numbers as one rank, and what ends a job. What the rendezvous refuses or outlives
# is in unit/test_wl_job.c, what launchers say in unit/test_wl_dist.c.
. "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/ranks_lib.sh disable=SC1091
. "$(dirname "$0")/ranks_lib.sh"
port=$(free_port)

start() { # RANK N COMMAND...
    local rank=$1 n=$2
    shift 2
    { env RANK="$rank" WORLD_SIZE="$n" LOCAL_RANK="$rank" LOCAL_WORLD_SIZE="$n" MASTER_ADDR="${addr:-127.0.0.1}" MASTER_PORT="$port" "${with[@]}" \
        "$@" & } >"$T/out.$rank" 2>"$T/err.$rank"
    pids[rank]=$!
}
losses() { grep -o '"loss":[^,]*' "$1" | cut -d: -f2 | tr '\n' ' '; }
wait_for() { waiting_for 300 grep -qs "$1" "$2"; } # PATTERN FILE

# --- what runs beside all that follows -------------------------------------------------------------
long=("$TRAIN" --model bert_nano --sequence 8 --predictions 2 --backend plain --batch 1 --steps 100000)
begin() { # NAME
    port=$(free_port)
    for r in 0 1 2; do start $r 3 "${long[@]}" --comm-timeout 120; done
    succeeds "$1" wait_for '"step":2,' "$T/out.0"
}
# A rank that is frozen is silent for a minute. What ends long before it is asked for writes its status down: by then another process can have its number.
beside() { # RANK
    (
        T="$T/frozen" start "$1" 3 "${long[@]}" --comm-timeout 60
        echo "${pids[$1]}" >"$T/frozen/pid.$1"
        wait "${pids[$1]}"
        echo $? >"$T/frozen/status.$1"
    ) &
    wait_for . "$T/frozen/pid.$1"
}
trap 'kill -9 "${pids[@]}" $([ -e "$T/frozen/status.2" ] || cat "$T/frozen/pid.2") 2>/dev/null; rm -rf "$T"' EXIT
mkdir "$T/frozen"
port=$(free_port)
for r in 0 1 2; do beside $r; done
succeeds "three ranks, beside" wait_for '"step":2,' "$T/frozen/out.0"
kill -STOP "$(cat "$T/frozen/pid.2")"
quick=("$TRAIN" --model bert_nano --sequence 8 --predictions 2 --backend plain --steps 1 --rendezvous-timeout 120)
pids=()

# --- N ranks x B are one rank x N*B ----------------------------------------------------------------
# In f32 a step amplifies differences from rounding: after two updates of ResNet-50 one rank is off by 5e-4 from f64 itself. So
# HRNet goes three steps, the others two.
same_as_one() { # NAME STEPS BATCH TOLERANCE RANKS COMMAND...
    local name=$1 steps=$2 batch=$3 tolerance=$4 n=$5 one zeros
    shift 5
    exits 0 "$name: one rank" "$@" --steps "$steps" --batch "$batch"
    one=$(losses "$T/out")
    job "$n" "$@" --steps "$steps" --batch $((batch / n))
    zeros=$(yes 0 | head -n "$n" | tr '\n' ' ')
    is "$statuses" "${zeros% }" "$name: $n ranks end well"
    succeeds "$name: the losses are those of one rank: $(losses "$T/out.0")and $one" close "$(losses "$T/out.0")" "$one" "$tolerance"
    is "$(cat "$T/out.1" "$T/err.1")" "" "$name: rank 1 says nothing"
}
same=("$TRAIN" --backend plain --sync-bn --data synthetic-fresh --image 64 --lr 1e-4 --model)
same_as_one "HRNet, f64" 2 4 1e-9 2 "${same[@]}" hrnet_w18 --image 32 --dtype f64
same_as_one "HRNet, f32" 3 4 1e-5 4 "${same[@]}" hrnet_w18 --image 32 --seed 2
like "$(head -n 1 "$T/out.0")" '"batch":1,.*"ranks":4,"rank":0,"global_batch":4,"comm":"tcp_ring","sync_bn":true,"gradient_bytes":[1-9][0-9]*,' "run_start says what the job is"
/usr/bin/python3 - "$T/out.0" <<'PY'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert [l["event"] for l in lines] == ["run_start"] + ["step"] * 3 + ["run_stop"]
for s in lines[1:-1]:
    assert abs(s["samples_per_s"] - 4e9 / s["step_time_ns"]) < 1e-6 * s["samples_per_s"], s
stop = lines[-1]
assert abs(stop["samples_per_s"] - 12e9 / stop["elapsed_ns"]) < 1e-6 * stop["samples_per_s"], stop
PY
ok $? "rank 0 counts the samples of all ranks"
first=$(losses "$T/out.0")
job 4 "${same[@]}" hrnet_w18 --image 32 --seed 2 --steps 2 --batch 1
is "$(losses "$T/out.0")" "$(cut -d ' ' -f 1,2 <<<"$first") " "and again the same bits"

# --- each rank evaluates its share -------------------------------------------------------------------
# In f64 no answer lies so near another that rounding decides.
evals() { grep '"event":"eval"' "$1" | grep -o '"value":[^,]*,"samples":[^,]*,"counted":[^,]*,"unanswered":[^,]*' | tr '\n' ' '; }
shared=("$TRAIN" --backend plain --sync-bn --data synthetic-learnable --model hrnet_w18 --dtype f64 --image 32 --steps 2 --eval-every 1 --until 1)
exits 8 "evaluation: one rank" "${shared[@]}" --batch 4
one=$(evals "$T/out")
like "$one" '^"value":0\.[0-9]+,"samples":32,"counted":[1-9][0-9]*,"unanswered":0 "value":0\.[0-9]+,"samples":32,"counted":[1-9][0-9]*,"unanswered":0 $' "evaluation: of 32 images, twice"
job 2 "${shared[@]}" --batch 2
is "$statuses" "8 8" "evaluation: 2 ranks miss the target alike"
is "$(evals "$T/out.0")" "$one" "evaluation: counts and value are those of one rank"
like "$(cat "$T/err.1")" 'the target was not reached' "evaluation: rank 1 ends by the same words"
job 2 "${shared[@]}" --batch 2 --until 1e-4
is "$statuses $(grep -c '"event":"step"' "$T/out.0") $(grep -c '"reached":true' "$T/out.0")" "0 0 1 1" "evaluation: 2 ranks end at the target alike"

# --- several batches in one step: two ranks of two are one rank of four ------------------------------
micro=("$TRAIN" --backend plain --model resnet50 --image 32 --dtype f64 --data synthetic-fresh --lr 1e-3 --steps 2 --batch 2)
exits 0 "one rank, four batches a step" "${micro[@]}" --accumulate 4
one=$(losses "$T/out")
like "$(head -n 1 "$T/out")" '"global_batch":8,.*"accumulate":4,' "run_start says how many"
job 2 "${micro[@]}" --accumulate 2
is "$statuses" "0 0" "two ranks, two batches a step"
succeeds "the same losses: $(losses "$T/out.0")and $one" close "$(losses "$T/out.0")" "$one" 1e-10

# --- a checkpoint of two ranks ----------------------------------------------------------------------
going=("$TRAIN" --backend plain --model bert_nano --sequence 8 --predictions 2 --data synthetic-fresh --batch 2 --recipe paddle --schedule-steps 9)
job 2 "${going[@]}" --steps 3 --save "$T/three"
whole=$(losses "$T/out.0")
job 2 "${going[@]}" --steps 2 --save "$T/two"
part=$(losses "$T/out.0")
job 2 "${going[@]}" --steps 1 --load "$T/two" --save "$T/rest"
is "$statuses" "0 0" "two ranks go on"
is "$part$(losses "$T/out.0")" "$whole" "with exactly the same losses"
succeeds "and leave exactly the same file" cmp "$T/three" "$T/rest"
is "$(cat "$T/out.1" "$T/err.1")" "" "rank 1 says nothing"
head -c 1000 "$T/two" >"$T/cut"
job 2 "${going[@]}" --steps 1 --load "$T/cut"
is "$statuses" "5 70" "a damaged one ends both"
like "$(cat "$T/err.0")" 'cut: damaged' "rank 0 says why"

# --- --check: two ranks write what one does -----------------------------------------------------------
"$TRAIN" --model hrnet_w18 --image 32x48 --batch 4 --make-check "$T/narrow" >"$T/out" 2>"$T/err"
cat >"$T/tensors.py" <<'PY'
import array, json, math, sys
def read(path):
    data = open(path, "rb").read()
    begin = 8 + int.from_bytes(data[:8], "little")
    head = json.loads(data[8:begin])
    head.pop("__metadata__", None)
    return {name: (t, data[begin + t["data_offsets"][0] : begin + t["data_offsets"][1]]) for name, t in head.items()}
def norm(a, b):
    return math.dist(array.array("d", a), array.array("d", b))
first, second = read(sys.argv[1]), sys.argv[2]
if sys.argv[3:]: # to doubles, into a file
    head, data = {}, bytearray() # += on bytes would copy all of it for each tensor
    for name, (tensor, old) in first.items():
        new = array.array("d", array.array("f", old)).tobytes() if tensor["dtype"] == "F32" else old
        head[name] = {"dtype": "F64" if tensor["dtype"] == "F32" else "I64", "shape": tensor["shape"], "data_offsets": [len(data), len(data) + len(new)]}
        data += new
    text = json.dumps(head).encode()
    open(second, "wb").write(len(text).to_bytes(8, "little") + text + data)
else:
    second = read(second)
    assert first.keys() == second.keys() >= {"logits", "loss"} and all(first[n][0]["shape"] == second[n][0]["shape"] for n in first)
    norms = {name: norm(data, bytes(len(data))) for name, (_, data) in first.items()}
    floor = 1e-9 * math.hypot(*norms.values())
    apart = {name: norm(first[name][1], second[name][1]) / max(norms[name], floor) for name in first}
    assert max(apart.values()) < 1e-10, max(apart.items(), key=lambda item: item[1])
PY
/usr/bin/python3 "$T/tensors.py" "$T/narrow" "$T/wide" double
exits 0 "--check: one rank" "$TRAIN" --model hrnet_w18 --check "$T/wide" --out "$T/one"
job 2 "$TRAIN" --model hrnet_w18 --sync-bn --check "$T/wide" --out "$T/both"
is "$statuses" "0 0" "--check: 2 ranks"
exits 0 "--check: logits, loss, gradients and statistics are those of one rank" /usr/bin/python3 "$T/tensors.py" "$T/one" "$T/both"

# --- packed data -----------------------------------------------------------------------------------
if [ -x "$B/reperf-pack" ]; then
    bert=datasets/bert-hdf5-sample/dataset.json
    mkdir "$T/tree"
    if ! { "$B/reperf-pack" synth --dataset $bert --out "$T/in" --samples train=12 >/dev/null 2>"$T/err" && tar xf "$T"/in/*.tar* -C "$T/tree" &&
        "$B/reperf-pack" pack --dataset $bert --tree "$T/tree" --synthetic --split train --out "$T/pack" >/dev/null 2>"$T/err"; }; then
        head -c 600 "$T/err"
    fi
    cp -r "$T/pack" "$T/other" && echo >>"$T/other/pack.json"
    packed=("$TRAIN" --model bert_tiny --backend plain --lr 1e-5 --workers 1 --data "$T/pack")
    same_as_one "the small BERT on packed data" 2 4 1e-5 2 "${packed[@]}"
    like "$(tail -n 2 "$T/out.0" | head -n 1)" '"epoch":0,"position":4}' "the global batch counts"
    port=$(free_port)
    start 0 2 "${packed[@]}" --batch 2 --steps 1
    start 1 2 "${packed[@]}" --batch 2 --steps 1 --data "$T/other"
    all_of 2
    is "$statuses" "2 2" "ranks with different datasets end"
    like "$(cat "$T/err.0")" '--data: rank 1 has another dataset' "and say so"
else
    skip "packed data" "reperf-pack is not built"
fi

# --- what ends a job -------------------------------------------------------------------------------
no_metric_after_fatal() { ! sed -n '/"event":"fatal"/,$p' "$T/out.$1" | tail -n +2 | grep -q .; }
begin "three ranks are on their way"
kill -9 "${pids[1]}"
all_of 3
is "$statuses" "70 137 70" "rank 1 is killed: the others end"
for r in 0 2; do
    is "$(grep -c '"event":"fatal","rank":'$r',.*"what":"rank 1 died' "$T/out.$r")" 1 "rank $r names it"
    succeeds "and says nothing after that" no_metric_after_fatal $r
done
is "$(grep -c run_stop "$T/out.0")" 0 "no run_stop"

begin "three more"
kill -9 "${pids[0]}"
all_of 3
is "$statuses" "137 70 70" "rank 0 is killed: the others end"
like "$(cat "$T/out.1")" '^\{"event":"fatal","rank":1,.*"what":"rank 0 died' "rank 1 names it"
like "$(cat "$T/out.2")" '^\{"event":"fatal","rank":2,.*"what":"rank 0 died' "rank 2 names it"

begin "three more"
kill -TERM "${pids[1]}"
all_of 3
is "$statuses" "70 143 70" "rank 1 is told to stop: the others end"
like "$(tail -n 1 "$T/out.0")" '"event":"fatal".*"what":"rank 1 failed: signal 15' "and say why"
is "$(cat "$T/out.1")" "" "rank 1 itself prints no fatal line"

job 2 "$TRAIN" --model hrnet_w18 --image 32 --backend plain --batch 2 --steps 5 --lr 1e300
is "$statuses" "8 8" "a loss that is not finite ends all"
like "$(tail -n 1 "$T/out.0")" '"event":"fatal".*"what":"loss is ' "in a fatal line"

# --- the rendezvous --------------------------------------------------------------------------------
port=$(free_port)
start 0 2 "${quick[@]}" --batch 1
start 1 2 "${quick[@]}" --batch 2
all_of 2
is "$statuses" "2 2" "ranks that disagree end"
for r in 0 1; do
    like "$(cat "$T/out.$r")" '"event":"fatal","rank":'$r',.*"where":"rendezvous","what":".*rank 1 has batch=2, rank 0 batch=1"' "rank $r says about what"
done

addr=::1
if [ -e /proc/net/if_inet6 ] && grep -q '^0\{31\}1 ' /proc/net/if_inet6; then
    job 2 "${quick[@]}" --batch 1
    is "$statuses" "0 0" "over IPv6"
else
    skip "over IPv6" "this machine has no ::1"
fi
addr=localhost
job 2 "${quick[@]}" --batch 1
is "$statuses" "0 0" "by name"
unset addr

exits 0 "--describe answers for one rank and waits for none" env WORLD_SIZE=4 "$TRAIN" --model hrnet_w18 --image 64 --batch 1 --describe

# --- what ran beside -------------------------------------------------------------------------------
ended() { # RANK STATUS NAME
    wait_for . "$T/frozen/status.$1"
    is "$(cat "$T/frozen/status.$1")" "$2" "$3"
}
ended 0 70 "rank 2 is frozen: rank 0 ends"
ended 1 70 "and rank 1"
for r in 0 1; do like "$(tail -n 1 "$T/frozen/out.$r")" '"event":"fatal".*"what":"rank 2 is silent' "rank $r names it"; done
kill -CONT "$(cat "$T/frozen/pid.2")"
ended 2 70 "and when it wakes up it ends too"
like "$(cat "$T/frozen/out.2")" '"event":"fatal","rank":2,' "with a fatal line"
tap_done
