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
leaves 8 output "" "what does not fit is refused before any line" "${run[@]}" --backend plain --image 2000 --batch 4000
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
learn=("${run[@]}" --image 32 --batch 8 --lr 0.02 --data synthetic-learnable --eval-every)
exits 0 "a target that is reached ends the run" "${learn[@]}" 6 --steps 40 --until 0.05
cp "$T/out" "$T/reached.jsonl"
measured() { # FILE RULE: value, unit and verdict
    "$REPERF" measure "$1" --format reperf --rule "reperf/$2" --json | /usr/bin/python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["value"], d["unit"], d["verdict"])'
}
of_event() { # FILE EVENT KEY: of the last line of an event
    /usr/bin/python3 -c 'import json, sys; print([l for l in map(json.loads, open(sys.argv[1])) if l["event"] == sys.argv[2]][-1][sys.argv[3]])' "$@"
}
is "$(measured "$T/reached.jsonl" accuracy-last)" "$(of_event "$T/reached.jsonl" eval value)  ok" "measure reads the last accuracy"
like "$(measured "$T/reached.jsonl" time-to-train)" '^[0-9.]+ s ok$' "and the time to train"
is "$(measured "$T/reached.jsonl" run-stop)" "$(of_event "$T/reached.jsonl" run_stop samples_per_s) samples/s ok" "a run that its target ended is whole"
fails 8 'top1 is .* after the last of 3 steps, the target was not reached' "a target that is not reached" "${learn[@]}" 2 --steps 3 --until 1
is "$(grep -c '"event":"eval"' "$T/out") $(of_event "$T/out" time_to_train reached) $(of_event "$T/out" run_stop steps)" "2 False 3" "after every other step and the last"
is "$(measured "$T/out" time-to-train)" "None s no_metric" "and has no time to train"

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
small=("$TRAIN" --model bert_nano --sequence 8 --batch 2)
exits 0 "saves" "${small[@]}" --steps 2 --save "$T/saved"
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
is "$(jq -c '[.parameters, .running_statistics, .macs_per_sample, ([.ops[].parameters] | add), ([.ops[].macs_per_sample] | add), .activation_bytes > 0, .workspace_bytes > 0]' "$T/out")" \
    '[25557032,53120,4089184256,25557032,4089184256,true,true]' "the network has its published size, and its operations add up to it"
total=$(jq .total_bytes "$T/out")
exits 0 "describe a run that evaluates" "${run[@]}" --describe --batch 2 --eval-every 5
is "$(jq -c --argjson of "$total" '[.evaluation_bytes > 2 * 3 * 224 * 224 * 4, .total_bytes - .evaluation_bytes == $of]' "$T/out")" "[true,true]" "its memory is the training's and the evaluation's"

exits 0 "describe mmsegmentation's DeepLabV3+" "$TRAIN" --model deeplabv3p_mmseg --describe --batch 2
log="$SHARED/published/logs/paddle-perf-e7a07c4/DeepLabV3P/OtherReports/PyTorch/logs/pytorch/deeplabv3p_c1_fp16.log"
if [ -e "$log" ]; then
    /usr/bin/python3 - "$T/out" "$log" <<'PY'
import json, re, sys
d = json.load(open(sys.argv[1]))
assert (d["parameters"], d["macs_per_sample"]) == (43589878, 371682967552), d
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
    ok $? "its layers have the names and widths that the published log prints"
else
    skip "mmsegmentation's layers" "the published logs are not here"
fi
tap_done
