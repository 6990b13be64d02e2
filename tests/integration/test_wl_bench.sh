#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: workloads
# reperf-bench without a GPU: a small complete run with PyTorch (and JAX if installed), then rivals that fail in every way, then
# its run sealed and verified.
. "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/faults/lib.sh disable=SC1091
. "$ROOT/tests/faults/lib.sh"
BENCH="$B/reperf-bench"
# Its clock stands but for a nanosecond a look, and where a rival moves it: no time that this machine takes is held against a program's own, or against a deadline.
export CLOCK="$T/clock"
CLOCK_TICK_NS=1
bench() { rm -f "$CLOCK" && at_clock "${whose:-reperf-bench}" "$BENCH" "$@"; }
python=/usr/bin/python3
export OMP_WAIT_POLICY=passive
tiny=(--model bert_nano --device cpu --batch 2 --sequence 8 --predictions 2 --turns 3 --turn 2 --train "$TRAIN" --out "$T/runs")
result() { cat "$T"/runs/bench-*/result.json; }
fresh() { rm -rf "$T/runs"; }
# key NAME PROGRAM: a text or number of one of result.json's programs
key() { result | "$python" -c '
import json, sys
program = next(p for p in json.load(sys.stdin)["programs"] if p["name"] == sys.argv[2])
print(program.get(sys.argv[1], "none"))' "$1" "$2"; }

# ---- a complete run ----
if "$python" -c 'import torch, numpy' 2>/dev/null; then
    began=$(cut -d' ' -f1 /proc/uptime)
    exits 0 "our program and its rivals in turn" bench models "${tiny[@]}" --python "$python"
    ended=$(cut -d' ' -f1 /proc/uptime)
    is "$(key state reperf) $(key state torch-eager)" "measured measured" "both were measured"
    is "$(key timed_steps reperf) $(key timed_steps torch-eager)" "4 4" "the first turn's steps are not counted"
    like "$(key why torch-compile)" "has no torch.compile|none" "torch.compile: measured or named as missing"
    "$python" -c 'import jax' 2>/dev/null || like "$(key why jax)" "JAX is not installed" "JAX: named as missing"
    result | "$python" -c '
import json, sys
run = json.load(sys.stdin)
own_ns = 0
assert run["trial"] and run["machine"]["gpu"] is None and run["batch"] == 2
assert [c["verdict"] for c in run["cells"]][:2] == ["not_comparable"] * 2, run["cells"]
for p in run["programs"]:
    steps = [ns for turn in p["turns"] for ns in turn["step_ns"]]
    if p["state"] != "measured":
        assert p["state"] == "skipped" and p["why"] and "median_step_ns" not in p, p
        continue
    assert len(steps) == len(p["losses"]) == 6 and min(steps) > 0
    timed = sorted(steps[2:])
    assert abs(p["median_step_ns"] - (timed[1] + timed[2]) / 2) < 1, p
    assert abs(p["samples_per_s"] - 2e9 / p["median_step_ns"]) < 1e-6 * p["samples_per_s"]
    own_ns += sum(steps)
assert own_ns / 1e9 <= float(sys.argv[2]) - float(sys.argv[1]) + 0.02, own_ns # in turns, so not one beside another
eager = run["programs"][1]
check = eager["check"]
assert check["gradient_elements"] == 824564
assert abs(check["loss"] / check["our_loss"] - 1) < 1e-5 and check["gradient_distance"] < 1e-4, check
ours = run["programs"][0]["median_step_ns"]
assert abs(eager["reperf_over_this"] - eager["median_step_ns"] / ours) < 1e-9
' "$began" "$ended"
    is $? 0 "result.json: every step, medians, ratios, the same loss and gradient"
    like "$(cat "$T"/runs/*/logs/raw/torch-eager.log)" '"event":"run_stop"' "a rival's lines are kept"
    exits 0 "which measure reads as ours" "$REPERF" measure "$T"/runs/bench-*/logs/raw/torch-eager.log --format reperf
    is "$(find "$T/runs" -name '*.safetensors')" "" "the tensors are gone"
    folder=$(echo "$T"/runs/bench-*)
    valid bench "result.json is as its schema says" "$folder/result.json"
    for fault in 's/"timed_steps":[0-9]*,//' 's/"trial":true/"trial":false/' 's/"verdict":"not_comparable"/"verdict":"reproduced"/' \
        's/"gpu":null,"driver":null/"gpu":null/' 's/"state":"measured"/"state":"failed"/' 's/"framework":"pytorch",//' 's/"check":\{[^}]*\},//'; do
        sed -E "$fault" "$folder/result.json" >"$T/planted.json"
        cmp -s "$folder/result.json" "$T/planted.json" && ok 1 "the fault was planted: $fault"
        exits 1 "and a result.json without that is refused: $fault" "$python" tests/integration/validate.py manifests/schema/bench.json "$T/planted.json"
    done
    tar -C "$T/runs" -cf "$T/${folder##*/}.tar" "${folder##*/}"
    REPERF="$REPERF" exits 2 "what is brought back from a CPU is no evidence" tests/bench/seal_gpu.sh "$T/${folder##*/}.tar"
    REPERF="$REPERF" exits 0 "but can be sealed elsewhere, and verified, by one command" tests/bench/seal_gpu.sh "$T/${folder##*/}.tar" "" "$T/sealed"
    exits 5 "what no run made is not sealed as a run's" "$REPERF" seal "$folder" -o "$T/run.tar.zst"
    exits 0 "the folder is sealed" "$REPERF" seal "$folder" --bytes-only -o "$T/run.tar.zst"
    exits 5 "which is no run's evidence" "$REPERF" verify "$T/run.tar.zst" --unsigned
    exits 0 "and verified" "$REPERF" verify "$T/run.tar.zst" --bytes-only --unsigned

    # A network that differs has no number: the second loss left out, or one layer norm's epsilon in the wrong place.
    mkdir -p "$T/other"
    cp workloads/competitors/*.py "$T/other/"
    sed -i 's/return words, loss + F.cross_entropy(following/return words, loss + 0 * F.cross_entropy(following/' "$T/other/nets_torch.py"
    fresh
    exits 8 "a rival without one of the losses" bench models "${tiny[@]}" --rivals eager --python "$python" --competitors "$T/other"
    like "$(key why torch-eager)" "computes another loss or gradient" "is found out"
    is "$(key median_step_ns torch-eager) $(key state reperf)" "none measured" "and has no number"
    cp workloads/competitors/nets_torch.py "$T/other/"
    sed -i 's/self.attention.output$/self.attention.output\n        dropout = 0.5/' "$T/other/nets_torch.py"
    fresh
    exits 8 "a rival whose dropout is not off" bench models "${tiny[@]}" --rivals eager --python "$python" --competitors "$T/other"
    like "$(key why torch-eager)" "computes another loss or gradient" "is found out, too"
else
    skip "reperf-bench with PyTorch" "python3-torch is not installed"
fi

# ---- rivals that fail ----
mkdir -p "$T/fake" "$T/kept"
# Ours, whose tensors to start from and to be compared with are the same each time: those are kept, by the words and the tensors that were given.
cat >"$T/ours" <<'END'
#!/bin/bash
words=() given='' made=''
for ((i = 1; i <= $#; i++)); do
    case ${!i} in
    --make-check | --out) i=$((i + 1)) && made=${!i} ;;
    --check) i=$((i + 1)) && given=${!i} ;;
    *) words+=("${!i}") ;;
    esac
done
[ -n "$made" ] || exec "$TRAIN" "$@"
kept=$KEPT/$({ printf '%s\n' "${given:+check}" "${words[@]}" && [ -z "$given" ] || cat "$given"; } | md5sum | cut -c1-32)
[ -e "$kept" ] || "$TRAIN" "$@" || exit
[ -e "$kept" ] && cp "$kept" "$made" || cp "$made" "$kept"
END
chmod +x "$T/ours"
export KEPT="$T/kept"
fake() { # NAME STATUS WHY: the rival's program is on standard input
    cat >"$T/fake/peer_torch.py"
    fresh
    exits "$2" "$1" bench models "${tiny[@]}" --train "$T/ours" --rivals eager --python /bin/bash --competitors "$T/fake" --deadline 3600
    like "$(key why torch-eager)" "$3" "$1: said so"
    is "$(key median_step_ns torch-eager)" none "$1: no number of it"
}
# shellcheck disable=SC2016
prelude='while [ $# -gt 0 ]; do case $1 in --out) out=$2;; --check) check=$2;; esac; shift; done
[ -e "$T_CHECKED" ] || "$TRAIN" --model bert_nano --check "$check" --out "$T_CHECKED"; cp "$T_CHECKED" "$out"; '
export TRAIN T_CHECKED="$T/checked.st" # what is asked is the same each time
started='echo "{\"event\":\"run_start\"}"; '
step() { echo "echo '{\"event\":\"step\",\"step\":$1,\"loss\":${2:-1},\"step_time_ns\":${3:-1000000}}';"; }
clock() { echo "echo $1 >\"\$CLOCK\"; "; } # SECONDS: on the clock that bench has
turns_of() { # NANOSECONDS: what it says of each step; after the first turn each takes a second of that clock
    echo "read -r; $(clock 300)$(step 1 1 "$1")$(step 2 1 "$1")read -r; $(clock 301)$(step 3 1 "$1")$(step 4 1 "$1")read -r; $(clock 302)$(step 5 1 "$1")$(step 6 1 "$1")"
}
turns=$(turns_of 260000000)

fake "not installed" 0 "no such framework" <<<'echo "peer: no such framework" >&2; exit 77'
is "$(result | grep -o '"verdict":"not_run"' | wc -l)" 1 "not installed: not run"
# By the machine's clock, on which ours may be doubted: but no steps take longer than their turn.
whose=nobody fake "dies at once" 8 "ended before its first step with status 3: out of memory" <<<'echo "out of memory" >&2; exit 3'
result | "$python" -c '
import json, sys
turns = json.load(sys.stdin)["programs"][0]["turns"]
assert len(turns) == 3 and all(0 < sum(t["step_ns"]) <= t["wall_ns"] * 1.01 for t in turns), turns'
ok $? "the steps of a turn take no longer than it does"
fake "killed" 8 "ended before its first step with signal 9" <<<'kill -9 $$'
fake "no file" 8 "its check: " <<<"$started read -r"
fake "another line" 8 "printed a line that is no metric line: Epoch 1" <<<'echo Epoch 1'
fake "no start" 8 "another line where run_start was expected" <<<"$(step 1)"
fake "fatal" 8 "fatal: NaN" <<<"$prelude $started read -r; echo '{\"event\":\"fatal\",\"what\":\"NaN\"}'"
fake "dies in its turn" 8 "ended in its turn with status 4" <<<"$prelude $started read -r; $(step 1) exit 4"
fake "a step twice" 8 "another line where the next step was expected" <<<"$prelude $started read -r; $(step 1)$(step 1) read -r"
fake "no loss" 8 "no metric line" <<<"$prelude $started read -r; $(step 1 nan) read -r"
fake "no stop" 8 "ended before run_stop" <<<"$prelude $started $turns"
fake "a bad end" 8 "did not end with 0" <<<"$prelude $started $turns read -r; echo '{\"event\":\"run_stop\"}'; exit 1"
fake "times that did not pass" 8 "less than half of the time" <<<"$prelude $started $(turns_of 240000000) read -r; echo '{\"event\":\"run_stop\"}'"
two_turns="read -r; $(step 1)$(step 2)read -r; $(step 3 1 90000000000)$(step 4 1 110000000000)"
fake "hangs in its second turn" 8 "only the warm-up turn was finished, so there is no number" <<<"$prelude $started ${two_turns%read*} read -r; $(clock 4000) sleep 600"
fake "prepares for too long" 8 "was not done in time" <<<"$(clock 2500) sleep 600" # of the hour it has 36 minutes
is "$(key state reperf)" measured "and leaves the others their time"
# The deadline in the middle of turns: what was finished counts, and says how much it is. The third turn's one step has been read by then.
named='echo "{\"event\":\"run_start\",\"framework\":\"f\",\"version\":\"1\",\"mode\":\"m\"}"; '
is_read="until grep -qs '\"step\":5' $T/runs/*/logs/raw/torch-eager.log; do sleep 0.02; done; "
echo "$prelude $named $two_turns read -r; $(step 5) $is_read $(clock 4000) sleep 600" >"$T/fake/peer_torch.py"
fresh
exits 124 "the deadline comes in the third turn" bench models "${tiny[@]}" --train "$T/ours" --rivals eager --python /bin/bash --competitors "$T/fake" --deadline 3600
is "$(key state torch-eager) $(key finished_turns torch-eager) $(key timed_steps torch-eager) $(key median_step_ns torch-eager)" \
    "late 2 2 100000000000" "the median is of the two turns that were finished, without the first"
like "$(key why torch-eager)" "was not done in time: 2 turns were finished, 1 of them count" "and says so"
like "$(cat "$T/out")" "torch-eager .* 2 .*not_comparable: was not done in time: 2 turns" "in the table, too"
is "$(key state reperf) $(key finished_turns reperf) $(key timed_steps reperf)" "late 3 4" "ours has its three"
valid bench "late: result.json is as its schema says" "$T"/runs/bench-*/result.json
for fault in 's/"finished_turns":[0-9]*,//' 's/"state":"late"/"state":"failed"/'; do
    sed -E "$fault" "$T"/runs/bench-*/result.json >"$T/planted.json"
    exits 1 "late: and one without that is refused: $fault" "$python" tests/integration/validate.py manifests/schema/bench.json "$T/planted.json"
done

echo "$prelude $started $turns read -r; echo '{\"event\":\"run_stop\"}'" >"$T/fake/peer_torch.py"
fresh
exits 0 "a rival that is right, and makes its data in its first turn" bench models "${tiny[@]}" --train "$T/ours" --rivals eager --python /bin/bash --competitors "$T/fake"
is "$(key state torch-eager)" measured "is measured: the failures above are not for another reason, nor is it doubted for that turn"

# ---- where our own program fails, the rivals' numbers stay ----
as_schema() { # NAME
    valid bench "$1: result.json is as its schema says" "$T"/runs/bench-*/result.json
}
if in_test_all "rivals beside a program of ours that fails, and agreement alone"; then
    ours_fails() { # NAME PATTERN: where our program's arguments hold it
        printf '#!/bin/bash\ncase " $* " in *"%s"*) echo "out of order" >&2; exit 3 ;; esac\nexec "%s" "$@"\n' "$2" "$T/ours" >"$T/train"
        chmod +x "$T/train"
        fresh
        exits 8 "$1" bench models "${tiny[@]}" --train "$T/train" --rivals eager --python /bin/bash --competitors "$T/fake"
        like "$(key state reperf): $(key why reperf)" "^failed: .*status 3: out of order" "$1: ours failed, and why"
        is "$(key state torch-eager) $(key reperf_over_this torch-eager)" "measured none" "$1: the rival was measured"
        like "$(key median_step_ns torch-eager)" '^2\.?6' "$1: it has its number"
        like "$(result)" '"verdict":"failed"\},\{"cell":"[^"]*/torch-eager","verdict":"not_comparable"' "$1: compared with none"
    }
    sed -i 's/"event\\":\\"run_start\\"/&,\\"framework\\":\\"f\\",\\"version\\":\\"1\\",\\"mode\\":\\"m\\"/' "$T/fake/peer_torch.py"
    ours_fails "ours does not start" " --turn "
    like "$(key check torch-eager)" our_loss "the rival was held against our check"
    as_schema "ours does not start"
    ours_fails "our check fails" " --check "
    is "$(key check torch-eager)" None "the rival went unchecked"
    as_schema "our check fails"
    sed 's/"state":"failed"/"state":"measured"/' "$T"/runs/bench-*/result.json >"$T/planted.json"
    exits 1 "and one measured with an unchecked rival is refused" "$python" tests/integration/validate.py manifests/schema/bench.json "$T/planted.json"

    # ---- agreement alone ----
    echo "$prelude" >"$T/fake/peer_torch.py"
    fresh
    prints 0 "^torch-eager  [0-9.]+ +0 .* agrees$" "agree: a rival that computes the same" bench agree "${tiny[@]}" --train "$T/ours" --rivals eager --python /bin/bash --competitors "$T/fake"
    is "$(find "$T/runs" -name '*.safetensors' -o -name result.json)" "" "and leaves neither tensors nor a result"
    # shellcheck disable=SC2016
    echo "${prelude/'[ -e "$T_CHECKED" ]'/'"$TRAIN" --model bert_nano --check "$T_OTHER" --out "$out"; exit; [ 1 ]'}" >"$T/fake/peer_torch.py"
    "$TRAIN" --model bert_nano --batch 2 --sequence 8 --predictions 2 --seed 9 --make-check "$T/other.st"
    fresh
    export T_OTHER="$T/other.st"
    prints 8 "^torch-eager .* differs$" "agree: one that computes something else" bench agree "${tiny[@]}" --train "$T/ours" --rivals eager --python /bin/bash --competitors "$T/fake"
    echo 'echo "no such framework" >&2; exit 77' >"$T/fake/peer_torch.py"
    fresh
    prints 0 "^torch-eager +- .* skipped: no such framework$" "agree: one that is not here, named as missing" bench agree "${tiny[@]}" --train "$T/ours" --rivals eager --python /bin/bash --competitors "$T/fake"
    echo 'exit 3' >"$T/fake/peer_torch.py"
    fresh
    exits 8 "agree: one that dies" bench agree "${tiny[@]}" --train "$T/ours" --rivals eager --python /bin/bash --competitors "$T/fake"
fi

# ---- kernels by themselves ----
prints 0 "^linear_fwd +12 " "each call of a step by itself" "$BENCH" kernels "${tiny[@]:0:10}" --turns 2 --turn 1 --out "$T/kernels"
like "$(cat "$T/out")" "these times mean nothing" "which on a CPU is a trial"
"$python" - "$T/kernels/kernels-bert_nano-fp32.json" <<'PYTHON'
import json, sys
run = json.load(open(sys.argv[1]))
calls = run["calls"]
for kind in run["kernels"]:
    own = [c for c in calls if c["kernel"] == kind["kernel"]]
    assert kind["kernel"] == "update" or kind["calls"] == len(own)
    assert kind["kernel"] == "update" or abs(kind["bytes"] - sum(c["bytes"] for c in own)) < 1 and abs(kind["flops"] - sum(c["flops"] for c in own)) < 1
assert all(c["ns"] > 0 and c["bytes"] > 0 for c in calls), [c for c in calls if not (c["ns"] > 0 and c["bytes"] > 0)]
# The queries, keys and values of 16 tokens, 128 wide: 3 matrices in one product.
first = next(c for c in calls if c["kernel"] == "linear_fwd")
assert first["flops"] == 2 * 16 * 128 * 384, first
assert first["bytes"] == 4 * (16 * 128 + 128 * 384 + 384 + 16 * 384), first
# SGD or AdamW on 824,564 float parameters: gradient, parameter and two moments read, all but the gradient written.
update = next(k for k in run["kernels"] if k["kernel"] == "update")
assert update["bytes"] == 824564 * 4 * 7, update
PYTHON
is $? 0 "bytes and operations as counted by hand, and their sums"
kernels="$T/kernels/kernels-bert_nano-fp32.json"
valid bench-kernels "it is as its schema says" "$kernels"
for fault in 's/"ns":[0-9.e+]*/"ns":0/' 's/"kernels":\[{"kernel"/"kernels":[{"name"/' 's/"gpu":"",//' 's/"adds":0,/"adds":0,"share_of_bytes":0.5,/'; do
    sed "$fault" "$kernels" >"$T/planted.json"
    exits 1 "and what is not is refused: $fault" "$python" tests/integration/validate.py manifests/schema/bench-kernels.json "$T/planted.json"
done

# ---- what it refuses ----
exits 2 "no command" "$BENCH"
exits 2 "no model" "$BENCH" models --out "$T/runs"
exits 2 "another model" "$BENCH" models --model vgg --out "$T/runs"
exits 2 "another rival" bench models "${tiny[@]}" --rivals mxnet
exits 2 "no folder" "$BENCH" models --model resnet50
exits 2 "TF32 with half precision" "$BENCH" models --model resnet50 --tf32 --out "$T/runs"
exits 2 "a GPU that is not in the table" "$BENCH" floor --model resnet50 --gpu "NVIDIA 3dfx"
prints 0 '"batch":256,.*"samples_per_s":[0-9]{5}' "a floor" "$BENCH" floor --model resnet50 --gpu "NVIDIA H100 80GB HBM3"
if ! nvidia-smi >/dev/null 2>&1; then
    fails 2 "reperf-bench: .*(CUDA|driver|GPU)" "no GPU: refused, not left out" "$BENCH" models --model bert_nano --batch 2 --sequence 8 --predictions 2 --out "$T/gpu" --train "$TRAIN"
    is "$(find "$T/gpu" -name result.json)" "" "without a result"
fi
echo "$prelude $started read -r; sleep 600 & echo \$! >$T/child; wait" >"$T/fake/peer_torch.py"
fresh
{ "$BENCH" models "${tiny[@]}" --rivals eager --python /bin/bash --competitors "$T/fake" & } 2>"$T/err"
pid=$!
served "$pid" "the rival" test -s "$T/child"
kill -TERM "$pid"
wait "$pid"
is $? 143 "a signal ends it"
is "$(key state reperf) $(key state torch-eager)" "ready ready" "what was known until then is there"
as_schema "a run that was broken off"
cut=$(basename "$T"/runs/bench-*)
tar -C "$T/runs" -cf "$T/$cut.tar" "$cut"
REPERF="$REPERF" exits 2 "and is not sealed" tests/bench/seal_gpu.sh "$T/$cut.tar" "" "$T/cut"
like "$(cat "$T/err")" "it was cut off" "with the cause"
lives() { # PID: is there and no zombie that nobody has reaped yet
    [ -e "/proc/$1/stat" ] && ! grep -q ') Z ' "/proc/$1/stat"
}
child=$(cat "$T/child")
has_ended() { ! lives "$child"; }
succeeds "and what its rivals started" waiting_for 60 has_ended
tap_done
