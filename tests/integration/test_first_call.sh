#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: workloads
# The rehearsal of `make first-gpu`, `test-gpu` and `bench-gpu` without a GPU: fake programs that pass, fail, hang and overrun, with a clock that
# a hanging program advances. Order, limits, the tar after each part, what the summary says; nothing here has run on a GPU.
. "$(dirname "$0")/../tap_lib.sh"
python=/usr/bin/python3
made="$T/made"
mkdir -p "$made/cuda/bin" "$made/cuda/include" "$made/lib" "$made/b/gpu" "$made/bin"
touch "$made/cuda/include/"{cuda_runtime_api.h,cudnn_graph.h,cublasLt.h} "$made/lib/"{libcuda.so.1,libcudnn.so.9,libcublasLt.so.13}
# Each program first notes what the tar holds by then.
export TARS="$T/tars" ORDER="$T/order"
program() { # FILE: its lines are on standard input
    { printf '#!/bin/bash\n' && cat; } >"$1"
    chmod +x "$1"
}
noting() { # FILE: the same, and it notes its name and the tar
    # shellcheck disable=SC2016
    { echo 'tar -tf "$RESULTS/$WHAT.tar" >"$TARS/${0##*/}.$(wc -l <"$ORDER")" 2>&1 || touch "$TARS/broken"; echo "${0##*/} $*" >>"$ORDER"' && cat; } | program "$1"
}
# shellcheck disable=SC2016
program "$made/cuda/bin/nvcc" <<<'[ "$1" = --version ] && echo "Cuda compilation tools, release 13.0, V13.0.88"; [ "$1" = --list-gpu-arch ] && echo compute_90; exit 0'
echo '#define CUDNN_MAJOR 9' >"$made/cuda/include/cudnn_version.h"
# A clock that advances only where something hangs, by all the time it is given: the machine's load changes nothing.
export CLOCK="$T/clock"
# shellcheck disable=SC2016
program "$made/bin/date" <<<'[ "$*" = +%s%3N ] && exec cat "$CLOCK"; exec /usr/bin/date "$@"'
# shellcheck disable=SC2016
program "$made/bin/hang" <<<'[ "$1" = deaf ] && trap "" TERM; echo $$ >>"$CLOCK.pids"; echo "$1" >"$CLOCK.hang"; mv "$CLOCK.hang" "$CLOCK.hangs.$WAITER"; exec sleep 300'
program "$made/bin/timeout" <<'END' # [-k SECONDS] SECONDS COMMAND...: leads a group
[ -n "$IS_LEADER" ] || IS_LEADER=1 exec setsid "$0" "$@"
unset IS_LEADER
grace=0
[ "$1" = -k ] && grace=$2 && shift 2
limit=$1
shift
export WAITER=$$
pass() { echo $(($(cat "$CLOCK") + 1000 * $1)) >"$CLOCK.next" && mv "$CLOCK.next" "$CLOCK"; }
"$@" <&0 &
child=$!
trap 'trap "" TERM; kill -TERM 0; exit 143' TERM INT
until [ -e "$CLOCK.hangs.$WAITER" ]; do
    kill -0 "$child" 2>/dev/null || { wait "$child"; exit; }
    sleep 0.02
done
pass "$limit"
trap '' TERM
kill -TERM 0
[ "$(cat "$CLOCK.hangs.$WAITER")" = deaf ] || { wait "$child"; exit 124; }
sleep 0.2
kill -0 "$child" 2>/dev/null || exit 124
pass "$grace"
kill -KILL 0
END
program "$made/bin/nvidia-smi" <<<'echo "9.0, 580.00.00, NVIDIA \"made\" up"'
well='echo "ok 1 - a"; echo "ok 2 - b"; echo 1..2'
fresh() {
    rm -rf "$TARS" "$T/results"
    mkdir -p "$TARS"
    : >"$ORDER"
    echo 1000000 >"$CLOCK"
    noting "$made/bin/make" <<<'echo "made $*"'
    local name
    for name in device steps models forms nccl; do noting "$made/b/gpu/test_$name" <<<"$well"; done
    noting "$made/b/reperf-train" <<'END'
for i in $(seq 12); do echo "{\"event\":\"step\",\"step\":$i,\"loss\":$((20 - i)),\"x\":1}"; done; echo '{"event":"run_stop"}'
END
    program "$made/b/gpu/plant" <<<'exit 0'
    # shellcheck disable=SC2016
    noting "$made/b/reperf-bench" <<'END'
command=$1
mkdir -p "$XDG_CACHE_HOME/reperf/plans"; echo plan >"$XDG_CACHE_HOME/reperf/plans/$RANDOM.json"
while [ $# -gt 0 ]; do case $1 in --model) model=$2 ;; --out) out=$2 ;; esac; shift; done
case " $FAILS " in *" $model "*) echo "reperf-bench: torch-eager: out of \"memory\"" >&2; [ "$command" = kernels ] || mkdir -p "$out/bench-$model-amp-1"; [ "$command" = kernels ] || echo '{}' >"$out/bench-$model-amp-1/result.json"; exit 8 ;; esac
case " $HANGS " in *" $model "*) exec hang deaf ;; esac
[ "$command" = kernels ] && echo "$model: its kernels" && exit
mkdir -p "$out/bench-$model-amp-1/logs/raw"; echo '{}' >"$out/bench-$model-amp-1/result.json"; echo "$model: 1 samples/s"
END
}
call() { # SCRIPT SECONDS [NAME=VALUE]...
    local script=$1 limit=$2
    shift 2
    $CALL env CUDA_HOME="$made/cuda" LD_LIBRARY_PATH="$made/lib" PATH="$made/bin:$PATH" B="$made/b" RESULTS="$T/results" LIMIT_S="$limit" "$@" "$script"
}
# about WHAT EXPRESSION NAME: of summary.json in the tar, as it is unpacked
about() {
    rm -rf "$T/unpacked"
    mkdir "$T/unpacked"
    tar -C "$T/unpacked" -xf "$T/results/$1.tar" || return 1
    "$python" - "$T/unpacked/$1/summary.json" "$2" <<'END'
import json, sys
run = json.load(open(sys.argv[1]))
state = {p["name"]: p["state"] for p in run["parts"]}
said = {p["name"]: p["said"] for p in run["parts"]}
value = eval(sys.argv[2])
print(value if isinstance(value, str) else json.dumps(value))
END
}
states() { about "$1" '" ".join("%s=%s" % (p["name"], p["state"]) for p in run["parts"])'; }

# ---- the first call: all is well ----
fresh
exits 0 "first-gpu: all is well" call tests/cuda/first_call.sh 590
is "$(states first-gpu)" "build=passed smoke=passed device=passed models=passed nccl=passed kernels-resnet50=passed kernels-bert_base=passed kernels-hrnet_w18=passed kernels-deeplabv3p=passed ranks=skipped resnet50=passed bert=passed hrnet=passed deeplab=passed steps=passed sanitizer=skipped" \
    "every part, in its order"
is "$(cut -d' ' -f1,2 "$ORDER" | grep -v 'reperf-train' | tr '\n' ' ')" "make -s test_device  test_models  test_nccl  reperf-bench kernels reperf-bench kernels reperf-bench kernels reperf-bench kernels reperf-bench models reperf-bench models reperf-bench models reperf-bench models test_steps  " "the most telling first"
is "$(about first-gpu 'sum(p["limit_s"] for p in run["parts"]) <= 590')" true "the limits add up to no more than the whole"
like "$(grep -m 1 'models --model resnet50' "$ORDER")" "--rivals eager,compile --tune-seconds 20$" "tuned, beside eager and compiled PyTorch"
! [ -e "$TARS/broken" ]
ok $? "the tar is whole as each part begins"
grep -q 'first-gpu/device.log$' "$TARS"/test_models.* && ! grep -q 'first-gpu/models.log$' "$TARS"/test_models.*
ok $? "with what ended before"
listing=$(tar -tf "$T/results/first-gpu.tar")
is "$(grep -c 'bench-.*\.tar$' <<<"$listing")" 4 "each model's run is in it as a tar of its own"
like "$listing" "first-gpu/plans.tar" "and the plans"
[ "$(grep -c . <<<"$listing")" -lt 50 ] && ! grep -q '/.*/.*/' <<<"$listing"
ok $? "few files, at most two folders deep"
about first-gpu 'run["next"]' >"$T/next"
like "$(cat "$T/next")" "sanitizer was skipped, .*tests/bench/seal_gpu.sh bench-bert_base" "what is next: the skipped one, and what to seal"
is "$(about first-gpu 'run["gpu"]')" 'NVIDIA "made" up' "the GPU is named"
like "$(cat "$T/unpacked/first-gpu/summary.txt")" "resnet50: 1 samples/s" "the summary has the tables"
like "$(tail -n 1 "$T/out")" "^3[0-9] passed, 0 failed, [0-9]+ skipped$" "and is counted"

in_test_all "first-gpu, test-gpu and bench-gpu whose parts hang, fail and overrun" || tap_done

# ---- one hangs and cannot be told to end, one fails, one overruns ----
fresh
noting "$made/b/gpu/test_models" <<<"echo 'ok 1 - a'; exec hang deaf"
noting "$made/b/gpu/test_nccl" <<<'echo "ok 1 - a"; echo "not ok 2 - b # off by 3"; echo 1..2; exit 1'
exits 1 "first-gpu: parts that hang, fail, overrun" call tests/cuda/first_call.sh 590 FAILS=bert_base HANGS=hrnet_w18
is "$(states first-gpu)" "build=passed smoke=passed device=passed models=out_of_time nccl=failed kernels-resnet50=passed kernels-bert_base=failed kernels-hrnet_w18=out_of_time kernels-deeplabv3p=passed ranks=skipped resnet50=passed bert=failed hrnet=out_of_time deeplab=passed steps=passed sanitizer=skipped" \
    "the others run"
is "$(about first-gpu 'run["elapsed_s"] <= run["limit_s"]')" true "within the time for all ($(about first-gpu 'run["elapsed_s"]') s)"
like "$(about first-gpu 'said["nccl"]')" "off by 3; .*1 passed, 1 failed" "what failed is said"
like "$(about first-gpu 'said["bert"]')" 'out of "memory"' "with its quotes"
like "$(about first-gpu 'run["next"]')" "mend bert .*hrnet was not done in [0-9]+ s.*LIMIT_S=1180 PARTS=hrnet tests/cuda/first_call.sh" "and what to do next"
like "$listing" "bench-bert_base-amp-1.tar" "a run that failed is brought back, too"
! [ -e "$TARS/broken" ]
ok $? "the tar is whole all the while"

# ---- there is less time than all would take ----
fresh
noting "$made/b/gpu/test_device" <<<"echo 'ok 1 - a'; exec hang"
exits 1 "first-gpu in less time" call tests/cuda/first_call.sh 100 HANGS="resnet50 bert_base"
like "$(states first-gpu)" "^build=passed smoke=passed device=out_of_time .*hrnet=not_reached deeplab=not_reached steps=not_reached sanitizer=not_reached$" "what there is no time for is named"
like "$(about first-gpu '"%d of %d: %s" % (run["elapsed_s"], run["limit_s"], " ".join("%s %d of %d" % (p["name"], p["elapsed_s"], p["limit_s"]) for p in run["parts"] if p["state"] == "out_of_time"))')" \
    "^10[03] of 100: device 16 of 20 kernels-resnet50 1[36] of 13 kernels-bert_base 1[36] of 13 resnet50 5[0-9] of 5[0-9]$" "and the limit is kept, but for the seconds that one gets to end in"
like "$(about first-gpu 'run["next"]')" "not reached: PARTS=hrnet tests/cuda/first_call.sh" "how to do it is said"
fresh
exits 0 "one part alone" call tests/cuda/first_call.sh 590 PARTS=nccl
is "$(states first-gpu)" "build=passed nccl=passed" "with the build"
fresh
noting "$made/bin/make" <<<'echo "error: no such thing"; exit 2'
exits 1 "a build that fails" call tests/cuda/first_call.sh 590
like "$(states first-gpu)" "^build=failed smoke=not_reached device=not_reached .*sanitizer=not_reached$" "is the end"
like "$(cat "$T/out")" "error: no such thing" "is shown"
like "$(tail -n 1 "$T/out")" "^0 passed, 1 failed, 0 skipped$" "and nothing has passed"

# By its command: a pid may have been reused, and a killed process exists until its parent reaps it.
none_left() {
    local pid
    while read -r pid; do ! grep -aq '^sleep' "/proc/$pid/cmdline" 2>/dev/null || return 1; done <"$CLOCK.pids"
}
[ "$(wc -l <"$CLOCK.pids")" -ge 4 ] && waiting_for 120 none_left
ok $? "nothing that hung is left, however deaf"

# ---- cut off ----
fresh
noting "$made/b/gpu/test_models" <<<'exec sleep 300'
{ CALL="exec" call tests/cuda/first_call.sh 590 & } >"$T/out" 2>&1
pid=$!
served "$pid" "test_models" grep -q test_models "$ORDER"
kill -TERM "$pid"
wait "$pid"
is "$?" 143 "cut off by a signal"
like "$(states first-gpu)" "^build=passed smoke=passed device=passed models=out_of_time nccl=not_reached" "what was known is in the tar"
is "$(about first-gpu 'said["models"]')" "ended from outside" "and who ended it"

# ---- test-gpu and bench-gpu likewise ----
fresh
noting "$made/b/gpu/test_steps" <<<'echo "ok 1 - a"; echo "not ok 2 - b # off by 3"; echo 1..2; exit 1'
exits 1 "test-gpu: one that fails" call tests/cuda/gpu.sh 520
like "$(cat "$T/out")" 'NVIDIA "made" up, compute capability 90, driver 580.00.00; nvcc 13.0' "says what it runs on"
like "$(states test-gpu)" "^build=passed device=passed steps=failed models=passed train=failed nccl=passed ranks=(skipped|failed) forms=passed sanitizer=skipped timed=passed$" "its parts"
like "$(cat "$T/out")" "off by 3" "what failed"
is "$(grep -c '^ok' "$T/unpacked/test-gpu/all.tap")" "$(grep -ac '^ok' "$T/results/test-gpu/all.tap")" "what each program said is in the tar"
fresh
exits 1 "bench-gpu: one of two models fails" call tests/bench/gpu.sh 600 MODEL="resnet50 bert_base" FAILS=bert_base
is "$(states bench-gpu)" "build=passed resnet50=passed resnet50-kernels=passed bert_base=failed bert_base-kernels=failed" "its parts"
like "$(tar -tf "$T/results/bench-gpu.tar")" "bench-resnet50-amp-1.tar" "the run is in the tar"
tap_done
