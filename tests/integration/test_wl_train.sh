#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: workloads
# reperf-train as a user runs it: statuses, one JSON object a line, a signal, a reader that goes away, the network's size.
. "$(dirname "$0")/../tap_lib.sh"
run=("$TRAIN" --model resnet50)

exits 0 "trains 10 steps" "${run[@]}" --device cpu --image 32 --batch 4 --steps 10 --lr 0.003
/usr/bin/python3 - "$T/out" <<'PY'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
events = [line["event"] for line in lines]
steps = [line for line in lines if line["event"] == "step"]
assert events == ["run_start"] + ["step"] * 10 + ["run_stop"], events
assert [s["step"] for s in steps] == list(range(1, 11))
assert lines[0]["backend"] in ("cpu-plain", "cpu-onednn") and lines[0]["image"] == [32, 32]
# 7.3 nats at the start; the fixed batch is learnt by heart.
assert steps[0]["loss"] > 5 and steps[-1]["loss"] < 0.5, (steps[0]["loss"], steps[-1]["loss"])
for s in steps:
    assert abs(s["samples_per_s"] - 4e9 / s["step_time_ns"]) < 1e-6 * s["samples_per_s"]
stop = lines[-1]
assert stop["elapsed_ns"] == sum(s["step_time_ns"] for s in steps)
assert abs(stop["samples_per_s"] - 40e9 / stop["elapsed_ns"]) < 1e-6 * stop["samples_per_s"]
PY
ok $? "its lines are whole JSON, in order, agree with each other, and the loss falls"

# On a machine with a GPU it is hidden; a machine without one reports what it lacks; a build without CUDA says so.
fails 2 'no CUDA backend|no NVIDIA driver|driver knows CUDA up to|no GPU that this process may see' "cuda without a GPU is refused, not replaced" env CUDA_VISIBLE_DEVICES= "${run[@]}" --device cuda
is "$(wc -c <"$T/out")" 0 "before any line"
exits 2 "amp there likewise" env CUDA_VISIBLE_DEVICES= "${run[@]}" --device cuda --precision amp
exits 2 "an unknown device is refused" "${run[@]}" --device tpu
exits 2 "amp on cpu is refused" "${run[@]}" --precision amp
exits 2 "an unknown model is refused" "$TRAIN" --model alexnet
exits 2 "an unknown option is refused" "${run[@]}" --frobnicate
exits 8 "what does not fit is refused" "${run[@]}" --backend plain --image 2000 --batch 4000
is "$(wc -c <"$T/out")" 0 "before any line"
like "$(cat "$T/err")" 'needs [0-9]+ bytes .* [0-9]+ are available; (the largest --batch that fits is [0-9]+|no smaller --batch fits either)' "with both numbers"
largest=$(sed -n 's/.*the largest --batch that fits is //p' "$T/err")
if [ -n "$largest" ]; then
    exits 0 "the batch that it names is planned" "${run[@]}" --backend plain --image 2000 --batch "$largest" --describe
    needed=$(grep -o '"total_bytes":[0-9]*' "$T/out" | cut -d: -f2)
    exits 0 "and the next one" "${run[@]}" --backend plain --image 2000 --batch $((largest + 1)) --describe
    more=$(grep -o '"total_bytes":[0-9]*' "$T/out" | cut -d: -f2)
    # Other programs allocate and free memory meanwhile: a difference of half is no error.
    free=$(($(awk '/MemAvailable/ { print $2 }' /proc/meminfo) * 1024))
    [ "$needed" -le $((free * 2)) ] && [ "$more" -gt "$needed" ]
    ok $? "it needs no more than there is"
fi
# --- evaluation and a target --------------------------------------------------------------------------
# Eight classes of a thousand: to answer one of them always is right one time in eight, and a network that knows nothing one in a thousand.
learn=("${run[@]}" --image 32 --batch 8 --lr 0.02 --data synthetic-learnable --eval-every 6)
exits 0 "a target that is reached ends the run" "${learn[@]}" --steps 40 --until 0.05
cp "$T/out" "$T/reached.jsonl"
/usr/bin/python3 - "$T/out" <<'PY'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
start, stop, end = lines[0], lines[-1], lines[-2]
evals = [l for l in lines if l["event"] == "eval"]
steps = [l for l in lines if l["event"] == "step"]
assert end["event"] == "time_to_train" and stop["event"] == "run_stop", (end, stop)
assert (start["eval_metric"], start["eval_every"], start["target"], start["eval_seed"]) == ("top1", 6, 0.05, 1), start
assert 6 <= len(steps) < 40 and len(steps) == 6 * len(evals) == stop["steps"] == end["step"] == evals[-1]["step"]
assert all(e["samples"] == e["counted"] == 64 and e["unanswered"] == 0 for e in evals) and all(e["value"] < 0.05 for e in evals[:-1])
assert end["reached"] is True and end["value"] == evals[-1]["value"] >= 0.05 and end["samples"] == 8 * len(steps)
assert end["elapsed_ns"] == evals[-1]["elapsed_ns"] >= stop["elapsed_ns"] + sum(e["eval_time_ns"] for e in evals)
assert stop["elapsed_ns"] == sum(s["step_time_ns"] for s in steps)
PY
ok $? "its lines say when, and evaluations have no part in the steps' time"
measured() { # FILE RULE: value, unit and verdict
    "$REPERF" measure "$1" --format reperf --rule "reperf/$2" --json | /usr/bin/python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["value"], d["unit"], d["verdict"])'
}
of_event() { # FILE EVENT KEY: of the last line of an event
    /usr/bin/python3 -c 'import json, sys; print([l for l in map(json.loads, open(sys.argv[1])) if l["event"] == sys.argv[2]][-1][sys.argv[3]])' "$@"
}
is "$(measured "$T/reached.jsonl" accuracy-last)" "$(of_event "$T/reached.jsonl" eval value)  ok" "measure reads the last accuracy"
like "$(measured "$T/reached.jsonl" time-to-train)" '^[0-9.]+ s ok$' "and the time to train"
is "$(measured "$T/reached.jsonl" run-stop)" "$(of_event "$T/reached.jsonl" run_stop samples_per_s) samples/s ok" "a run that its target ended is whole"
fails 8 'top1 is .* after the last of 8 steps, the target was not reached' "a target that is not reached" "${learn[@]}" --steps 8 --until 1
is "$(grep -c '"event":"eval"' "$T/out") $(of_event "$T/out" time_to_train reached) $(of_event "$T/out" run_stop steps)" "2 False 8" "after every 6th step and the last"
is "$(measured "$T/out" time-to-train)" "None s no_metric" "and has no time to train"
exits 2 "evaluation on a GPU is refused, not left out" env CUDA_VISIBLE_DEVICES= "${run[@]}" --device cuda --eval-every 5
is "$(wc -c <"$T/out")" 0 "before any line"

exits 8 "a loss that is not finite" "${run[@]}" --image 32 --batch 2 --lr 1e300 --steps 5
like "$(tail -n 1 "$T/out")" '^\{"event":"fatal","rank":0,.*"what":"loss is ' "ends in a fatal line"
exits 0 "help" "$TRAIN" --help
: >"$T/empty"
exits 9 "a check file of no bytes" "${run[@]}" --check "$T/empty" --out "$T/x"
[ ! -e "$T/x" ]
ok $? "and leaves nothing"
if [ -e /dev/full ]; then
    "${run[@]}" --image 32 --batch 2 --steps 2 >/dev/full 2>"$T/err"
    is $? 10 "a full disk under stdout"
fi

{ "${run[@]}" --image 64 --batch 4 --steps 100000 & } >"$T/out" 2>"$T/err"
pid=$!
served "$pid" "a first step" grep -q '"event":"step"' "$T/out"
kill -INT "$pid"
wait "$pid"
is $? 130 "an interrupt ends it"
grep -q run_stop "$T/out"
is $? 1 "without run_stop"
is "$(tail -c 1 "$T/out" | od -An -tx1 | tr -d ' ')" 0a "and with a whole last line"

# --- checkpoints ---
small=("$TRAIN" --model bert_tiny --sequence 8 --batch 2)
exits 0 "saves" "${small[@]}" --steps 2 --save "$T/saved"
exits 2 "a folder that is not there" "${small[@]}" --steps 2 --save "$T/none/saved"
is "$(wc -c <"$T/out")" 0 "is found before the first step"
exits 0 "a last step that saves over the file" "${small[@]}" --steps 1 --load "$T/saved" --save "$T/saved"
is "$(ls "$T"/saved*)" "$T/saved" "no other file stays"
if [ -e /proc/self/limits ]; then
    # A file size limit stands for a full disk: the metric lines before it fit.
    (ulimit -f 1000; trap '' XFSZ; "${small[@]}" --steps 3 --save "$T/large") >"$T/out" 2>"$T/err"
    is $? 10 "a checkpoint that does not fit on the disk"
    like "$(tail -n 1 "$T/out")" '^\{"event":"fatal",.*large' "ends in a fatal line"
    is "$(grep -c run_stop "$T/out")$(ls "$T"/large* 2>/dev/null)" 0 "without run_stop, and without a part of it"
fi
{ "${small[@]}" --steps 100000 --save "$T/saved" --save-every 3 --load "$T/saved" & } >"$T/out" 2>"$T/err"
pid=$!
served "$pid" "a first checkpoint" grep -q '"event":"checkpoint"' "$T/out"
kill -TERM "$pid"
wait "$pid"
is $? 143 "a run that is ended"
for turn in $(seq 12); do # in the midst of another kernel each time
    { "${small[@]}" --steps 100000 & } >"$T/out" 2>"$T/err"
    pid=$!
    served "$pid" "a first step" test -s "$T/out"
    sleep "0.0$((RANDOM % 10))"
    kill -TERM "$pid"
    status=0
    wait "$pid" || status=$?
    [ "$status" = 143 ] || break
done
is "$turn $status" "12 143" "wherever the signal meets it"
exits 0 "resumes from its last checkpoint" "${small[@]}" --steps 1 --load "$T/saved"
like "$(head -n 1 "$T/out")" '"first_step":[0-9]+,"loaded_sha256"' "and says so"

exits 0 "describe" "${run[@]}" --describe --batch 2
/usr/bin/python3 - "$T/out" "$SHARED/research/layers/resnet50_v1.5_224.csv" <<'PY'
import csv, json, os, sys
d = json.load(open(sys.argv[1]))
assert (d["parameters"], d["running_statistics"], d["macs_per_sample"]) == (25557032, 53120, 4089184256), d
assert sum(op["parameters"] for op in d["ops"]) == d["parameters"]
assert sum(op["macs_per_sample"] for op in d["ops"]) == d["macs_per_sample"]
assert d["activation_bytes"] > 0 and d["workspace_bytes"] > 0
if os.path.exists(sys.argv[2]):  # the layer table made for the project from other sources
    rows = [r for r in csv.DictReader(open(sys.argv[2])) if r["op"] == "conv"]
    want = {r["name"].replace("short", "downsample.0"): (int(r["macs"]), int(r["hout"])) for r in rows}
    got = {o["name"]: (o["macs_per_sample"], o["output"][2]) for o in d["ops"] if o["op"] == "conv"}
    assert got == {n: want[n] for n in got} and len(got) == len(rows), set(want) ^ set(got)
PY
ok $? "the network has its published size, and each convolution its published cost"
total=$(jq .total_bytes "$T/out")
exits 0 "describe a run that evaluates" "${run[@]}" --describe --batch 2 --eval-every 5
is "$(jq -c --argjson of "$total" '[.evaluation_bytes > 2 * 3 * 224 * 224 * 4, .total_bytes - .evaluation_bytes == $of]' "$T/out")" "[true,true]" "its memory is the training's and the evaluation's"

exits 0 "describe HRNet-W18" "$TRAIN" --model hrnet_w18 --describe --batch 2
/usr/bin/python3 - "$T/out" "$SHARED/research/layers/fcn_hrnetw18_paddle_512x1024.csv" <<'PY'
import csv, json, os, re, sys
d = json.load(open(sys.argv[1]))
assert d["image"] == [512, 1024]
assert (d["parameters"], d["running_statistics"], d["macs_per_sample"]) == (9640830, 34476, 36850262016), d
assert sum(op["parameters"] for op in d["ops"]) == d["parameters"]
assert sum(op["macs_per_sample"] for op in d["ops"]) == d["macs_per_sample"]
def plain(name):  # PaddleSeg's name to the table's
    name = re.sub(r"\._conv$", "", name.removeprefix("backbone."))
    for pattern, to in [
        (r"conv_layer1_(\d)", r"stem.\1"),
        (r"head\.conv_1", "head.conv1"),
        (r"la1\.bb_layer2_(\d)\.(conv\d)", lambda m: f"layer1.{int(m[1]) - 1}.{m[2]}"),
        (r"la1\.bb_layer2_1\.conv_down", "layer1.0.short"),
        (r"tr\d\.transition_tr(\d)_layer_(\d)", lambda m: f"tr{m[1]}.{int(m[2]) - 1}"),
        (r"st\d\.stage_st(\d)_(\d)\.branches_func\.\w+_layer_(\d)_(\d)\.(conv\d)",
         lambda m: f"stage{m[1]}.m{int(m[2]) - 1}.b{int(m[3]) - 1}.{int(m[4]) - 1}.{m[5]}"),
        (r"st\d\.stage_st(\d)_(\d)\.fuse_func\.\w+_layer_(\d)_(\d)(?:_(\d))?",
         lambda m: f"stage{m[1]}.m{int(m[2]) - 1}.fuse{int(m[3]) - 1}{int(m[4]) - 1}" + (f".{int(m[5]) - 1}" if m[5] else "")),
    ]:
        hit = re.fullmatch(pattern, name)
        if hit:
            return hit.expand(to) if isinstance(to, str) else to(hit)
    return name
if os.path.exists(sys.argv[2]):
    rows = list(csv.DictReader(open(sys.argv[2])))
    want = {r["name"]: (int(r["macs"]), int(r["hout"]), int(r["wout"])) for r in rows if r["op"] == "conv"}
    got = {plain(o["name"]): (o["macs_per_sample"], *o["output"][2:]) for o in d["ops"] if o["op"] == "conv"}
    assert got == want and len(got) == 307, sorted(set(want.items()) ^ set(got.items()))[:8]
    n_up = sum(r["op"].startswith("bilinear") for r in rows)
    assert n_up == sum(o["op"] == "upsample" for o in d["ops"]), n_up
PY
ok $? "it has its published size, and each convolution its published cost"

exits 0 "describe DeepLabV3+" "$TRAIN" --model deeplabv3p --describe --batch 2
/usr/bin/python3 - "$T/out" "$SHARED/research/layers/deeplabv3p_r50vd_os8_paddle_512x1024.csv" <<'PY'
import csv, json, os, sys
d = json.load(open(sys.argv[1]))
assert (d["parameters"], d["running_statistics"], d["macs_per_sample"]) == (26723395, 70848, 227585032192), d
if os.path.exists(sys.argv[2]):
    rows = [r for r in csv.DictReader(open(sys.argv[2]))]
    cost = lambda ops: sorted(ops)  # the table's names are its own: the costs and sizes have to be the same, one by one
    want = cost((int(r["macs"]), int(r["cout"]), int(r["hout"]), int(r["wout"])) for r in rows if r["op"] == "conv")
    got = cost((o["macs_per_sample"], *o["output"][1:]) for o in d["ops"] if o["op"] == "conv")
    assert got == want and len(got) == 70, set(want) ^ set(got)
PY
ok $? "it has its published size, and its convolutions their published costs"

exits 0 "describe mmsegmentation's DeepLabV3+" "$TRAIN" --model deeplabv3p_mmseg --describe --batch 2
log="$SHARED/published/logs/paddle-perf-e7a07c4/DeepLabV3P/OtherReports/PyTorch/logs/pytorch/deeplabv3p_c1_fp16.log"
if [ -e "$log" ]; then
    /usr/bin/python3 - "$T/out" "$log" "$SHARED/research/layers/deeplabv3plus_r50-d8_mmseg_512x1024.csv" <<'PY'
import csv, json, re, sys
d = json.load(open(sys.argv[1]))
assert (d["parameters"], d["macs_per_sample"]) == (43589878, 371682967552), d
rows = [r for r in csv.DictReader(open(sys.argv[3])) if r["op"] == "conv"]
want = sorted((int(r["macs"]), int(r["cout"]), int(r["hout"]), int(r["wout"])) for r in rows)
assert want == sorted((o["macs_per_sample"], *o["output"][1:]) for o in d["ops"] if o["op"] == "conv")
# The network as the framework printed it: a module a line, two more spaces a level.
path, printed = [], {}
for line in open(sys.argv[2]):
    hit = re.match(r"( +)\((\w+)\): (\w+)\((\d+)?(?:, (\d+))?", line)
    if hit:
        path[len(hit[1]) // 2 - 1:] = [hit[2]]
        if hit[3] in ("Conv2d", "BatchNorm2d"):
            printed[".".join(path)] = int(hit[5] if hit[3] == "Conv2d" else hit[4])
ours = {o["name"]: o["output"][1] for o in d["ops"] if o["op"] in ("conv", "bn")}
assert ours == printed and len(ours) > 140, sorted(set(ours.items()) ^ set(printed.items()))[:8]
PY
    ok $? "its layers have the names and widths that the published log prints, and their published costs"
else
    skip "mmsegmentation's layers" "the published logs are not here"
fi

exits 0 "HRNet-W18 takes three steps on labelled pixels" "$TRAIN" --model hrnet_w18 --image 64x96 --batch 2 --steps 3 --seed 4
/usr/bin/python3 - "$T/out" <<'PY'
import json, sys
losses = [line["loss"] for line in map(json.loads, open(sys.argv[1])) if line["event"] == "step"]
assert abs(losses[0] - 2.944) < 0.1 and losses[0] > losses[1] > losses[2], losses
PY
ok $? "and the loss falls from that of 19 classes alike"
tap_done
