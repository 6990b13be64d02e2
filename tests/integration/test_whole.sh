#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: judge
# Every line that looks like a metric is accounted for: each way in which a log is damaged has its cause, its count and no "ok".
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2016
source "$(dirname "$0")/../tap_lib.sh"
export REPERF_ROOT="$ROOT"

told() { # FORMAT [OPTIONS] < log: status, verdict, value, the counts that are not 0
    cat >"$T/made.log"
    "$REPERF" measure "$T/made.log" --format "$@" --json >"$T/out" 2>"$T/err"
    local status=$?
    echo "$status $(command jq -r '[.verdict, (.value | tostring), (.counts | to_entries | map(select(.value != 0 and .key != "lines" and .key != "read") | "\(.key)=\(.value)") | join(","))] | join(" ")' "$T/out")"
}
seg() { # [SED]: eight lines of PaddleSeg, 10 samples/s
    for step in 10 20 30 40 50 60 70 80; do
        echo "2023-07-27 12:51:$((step % 60 / 10))$((step / 10)) [INFO]	[TRAIN] epoch: 1, iter: $step/80, loss: 1.5, lr: 0.01, batch_cost: 0.8, reader_cost: 0.1, ips: 10.0000 samples/sec | ETA 00:00:01"
    done | sed 's/12:51:[0-9]*/12:51:00/' | sed -E "${1:-}"
}
is "$(seg | told paddleseg)" "0 ok 10 " "a whole log"
is "$(jq -c '.counts | [.lines, .read]' "$T/out")" "[8,8]" "its lines and what was read of them"
n=0
for number in 12,5 1_335 12.5x 3,105.25 1.2.3 12,500.5e 0x10; do
    is "$(seg "3s#ips: 10.0000#ips: $number#" | told paddleseg)" "9 nan null unreadable=1" "$number is no number, and no line is lost"
    n=$((n + 1))
done
like "$(cat "$T/out")" 'line 3: .*0x10.* where a finite number over 0' "the line is named"
is "$(seg '3s#iter: 30/80#iter: 3o/80#' | told paddleseg)" "9 nan null unreadable=1,gaps=1" "an invalid step"
is "$(seg '3s#ips: 10.0000 samples/sec#ips:  samples/sec#' | told paddleseg)" "9 nan null unreadable=1,gaps=1" "a number that is not there"
is "$(seg 4p | told paddleseg)" "9 ambiguous null duplicates=1" "a step twice"
is "$(seg 4,5d | told paddleseg)" "9 incomplete 10 gaps=2" "two lines missing in the grid of ten steps"
is "$(jq -r .why "$T/out")" "2 lines are missing before step 60" "and where"
is "$(seg 3,7d | told paddleseg)" "9 incomplete 10 gaps=5" "three lines are left: the longer of their intervals is a multiple of the shorter"
is "$(seg '4,$d;s#/80,#/25,#;3s#iter: 30#iter: 25#' | told paddleseg)" "0 ok 10 " "three lines, the last at the run's end, which need not be on the grid"
is "$(seg '4,$d;s#/80,#/35,#;3s#iter: 30#iter: 25#' | told paddleseg | cut -d, -f1)" "9 incomplete 10 short=1" "but not where the run goes on"
is "$(seg 1,5d | told paddleseg)" "9 incomplete 10 begin=5" "three lines, the last, show their interval and that the others are missing"
epochs() { # DELETED: two epochs of five lines
    for epoch in 0 1; do
        for step in 19 39 59 79 99; do
            echo "DLL 2023-07-31 06:25:0$epoch.3573$step - Epoch: $epoch Iteration: $step  train.loss : 7.1  train.ips : 100 images/s train.lr : 0.007 "
        done
    done | sed "$1"
}
is "$(epochs '' | told mxnet-dllogger --rule mean | sed 's/,*no_end=1//')" "9 incomplete 100 " "two epochs without their summary"
is "$(epochs 6d | told mxnet-dllogger --rule mean | sed 's/no_end=1,*//')" "9 incomplete 100 gaps=1" "the first line of the second epoch is missing"
is "$(seg '6s#iter: 60/80#iter: 6O/80#' | told paddleseg)" "9 nan null unreadable=1,gaps=1" "an invalid step, where the loss on its line is read"
is "$(seg '5s#12:51:00#12:49:00#' | told paddleseg)" "9 ambiguous null clock=1" "the clock goes back"
is "$(seg '8s#iter: 80/80#iter: 90/80#;7s#iter: 70#iter: 80#' | told paddleseg | sed 's/gaps=[0-9]*//;s/,$//')" "9 ambiguous null beyond=1" "a step beyond the total"
is "$(seg '6s#loss: 1.5#loss: nan#' | told paddleseg)" "9 nan null nan_loss=1" "a loss that is NaN on a sample's line"
is "$(seg '6s#loss: 1.5#loss: inf#' | told paddleseg)" "9 nan null nan_loss=1" "or infinite"
is "$(seg '6a Traceback (most recent call last):' | told paddleseg)" "9 incomplete 10 crash=1" "a traceback in the middle of a log"
is "$(seg '6a RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB' | told paddleseg)" "9 incomplete 10 crash=1" "out of memory in the middle of a log"
for text in 'RuntimeError: CUDA error: device-side assert triggered' 'RuntimeError: NCCL error in: x.cpp:1269' 'slurmstepd: error: *** JOB 12 ON node1 CANCELLED AT 2023-01-01T00:00:00 DUE TO TIME LIMIT ***' \
    'run.sh: line 3: 12345 Killed                  python train.py' Killed 'Aborted (core dumped)' 'mpirun noticed that process rank 3 with PID 12 on node node1 exited on signal 9'; do
    is "$(seg "6a $text" | told paddleseg)" "9 incomplete 10 crash=1" "in the middle of a log: $text"
done
is "$(seg '6a no process was Killed-off' | told paddleseg)" "0 ok 10 " "a word that only begins so is not one"
is "$(seg '8a Traceback (most recent call last):' | told paddleseg)" "0 ok 10 " "not after the last step"
is "$(seg '1i Traceback (most recent call last):' | told paddleseg)" "0 ok 10 " "nor before the first"
is "$(seg 7,8d | told paddleseg)" "9 incomplete 10 short=1" "cut at a line's end, where the run states its length"
is "$(seg 7,8d | told paddleseg --allow-incomplete)" "0 incomplete 10 short=1" "--allow-incomplete: the same, status 0"
is "$(seg 1,3d | told paddleseg)" "9 incomplete 10 begin=3" "the first three of eight lines are missing"
is "$(jq -r .why "$T/out")" "the log begins at step 40: 3 lines are missing" "and which"
is "$(seg 1,3d | told paddleseg --allow-incomplete)" "0 incomplete 10 begin=3" "--allow-incomplete: the same, status 0"
resume='2023-07-27 12:50:59 [INFO]	Resume model from output/iter_30'
is "$( (echo "$resume" && seg 1,3d) | told paddleseg)" "0 ok 10 " "not where the log says that the run was taken up"
is "$( (seg && echo "$resume" && seg 1,3d) | told paddleseg)" "9 ambiguous null runs=2" "nor in the second of two"
is "$( (echo "$resume" && seg 1,3d && seg 1,3d) | told paddleseg | sed 's/.*\(begin\)/\1/')" "begin=3" "but each run says it for itself"
is "$( (echo 'python tools/train.py --log_iters 10' && seg 1,6d) | told paddleseg)" "9 incomplete 10 begin=6" "two lines show no interval; one that is stated does"
is "$(jq -r '.id as $i | select((.begin // null) == null and (([.series[] | select(.primary)] + .series)[0] as $p | any(($p, .series[]); (. == $p or .quantity == "progress") and (.pattern | test("\\(\\?<step>"))) | not)) | $i' manifests/formats/*.json)" "" "each format reads steps, has a line to begin with, or says why a log does not show its beginning"

job() { # RANK STEP
    echo '{"event":"step","step":'"$2"',"steps":3,"rank":'"$1"',"loss":7.5,"step_time_ns":500000000,"samples_per_s":8.0,"lr":0.01}'
}
stop='{"event":"run_stop","steps":3,"warmup_steps":0,"rank":0,"elapsed_ns":8000000000,"samples_per_s":8,"loss_first":7.5,"loss_last":7.5}'
start='{"event":"run_start","ranks":1,"precision":"fp32","batch":4,"steps":3}'
is "$( (echo "$start" && for s in 1 2 3; do job 0 $s; done && echo "$stop") | told reperf)" "0 ok 8 " "one rank that prints for the job"
is "$( (for s in 1 2 3; do job 0 $s; done && echo "$stop") | told reperf)" "9 incomplete 8 begin=1" "without the line with which each run begins"
is "$(jq -r .why "$T/out")" "the line with which a run begins is missing" "which is said"
is "$( (echo "$start" && for s in 1 2 3; do job 0 $s && job 1 $s; done && echo "$stop") | told reperf)" "9 ambiguous null writers=2" "two are too many"
is "$( (echo "$start" && for s in 1 2 3; do job 0 $s; done && echo "$stop") | sed '3s/:8.0,/:12,5,/' | told reperf)" "9 nan null unreadable=1" "a number with a comma in JSON lines"
is "$(for s in 1 2 3; do echo "DLL 2020-12-16 07:19:2$s.497140 - (0, $s) total_ips : 3,105.25"; done | told dllogger-tf | sed 's/,no_end.*//')" "9 nan null unreadable=3" "3,105.25 at a line's end is not read as 3"

# mmsegmentation writes its checkpoint after the last line.
mm() {
    for step in 50 100 150; do
        echo "2021-03-29 17:51:$((10 + step / 50)),600 - mmseg - INFO - Iter [$step/$1]	lr: 1.0e-02, eta: 0:00:10, time: 0.500, data_time: 0.010, memory: 100, loss: 1.0"
    done
}
is "$(mm 200 | told mmseg)" "9 incomplete 0.5 short=1" "mmsegmentation, 150 of 200 steps"
is "$( (mm 200 && echo '2021-03-29 17:53:00,600 - mmseg - INFO - Saving checkpoint at 200 iterations') | told mmseg)" "0 ok 0.5 " "that say 200 are made"

# A loss counts wherever it stands: on a line without a rate, and where no word names it.
F=tests/integration/formats
while IFS='|' read -r file args edit; do
    read -ra args <<<"$args"
    is "$(told "${args[@]}" <"$F/$file" | cut -d' ' -f2)" ok "$file: as it is"
    is "$(sed -E "$edit" "$F/$file" | told "${args[@]}" | cut -d' ' -f1-4)" "9 nan null nan_loss=1" "$file: with a loss that is no number, where no rate is"
done <<'END'
mindspore.log|mindspore --rule mean --gpus 1 --batch 32|3s/loss is .*/loss is nan/
olmo.log|olmo --rule last --gpus 1|7s/=.*/=inf/
tf-estimator.log|tf-estimator|5s/loss = [0-9.]+/loss = NaN/
deepspeed-chat.log|deepspeed|5s/act_loss: [0-9.]+/act_loss: nan/
tf-cnn-benchmarks.log|tf-cnn-benchmarks|s, .synthetic.,,;12s/7[.0-9]+$/nan/
END

# timm prints its first batch, 0: a log that begins at the next line has lost it, in one epoch of two as in the only line.
is "$(told timm <"$F/timm.log")" "0 ok 113.08219095133785 " "timm's log is whole"
is "$(sed '/Train: 0 \[   0/d' "$F/timm.log" | told timm)" "9 incomplete 113.35756734172266 begin=1" "without its first line it is not"
is "$(jq -r .why "$T/out")" "the log begins at step 10: 1 line is missing" "which is said"
is "$(grep -e 'Train: 0 \[  10' -e 'Scheduled' "$F/timm.log" | told timm | sed 's/.*\(begin=1\).*/\1/')" "begin=1" "nor is a line alone that is not of the first"
is "$(sed '/Train: 1 \[   0/d' "$F/timm.log" | told timm | cut -d' ' -f2,4)" "incomplete gaps=1" "and of the second epoch it is a gap"

# MLPerf logging: a throughput without a step is no run; tracked_stats is another series.
ml() { # KEY VALUE METADATA MS
    echo ':::MLLOG {"namespace": "", "time_ms": 160000000'"$4"', "event_type": "POINT_IN_TIME", "key": "'"$1"'", "value": '"$2"', "metadata": {"file": "x.py", "lineno": 1'"$3"'}}'
}
ml run_start null "" 1000 >"$T/ml"
for i in 1001 1002 1003 1004; do
    ml throughput 50$((i % 10)).0 "" $i
    ml tracked_stats '{"throughput": 900.0}' ', "step": '$((i - 1000)) $i
done >>"$T/ml"
mlstop=$(ml run_stop null ', "status": "success"' 1009)
echo "$mlstop" >>"$T/ml"
is "$(told mlperf <"$T/ml" | cut -d' ' -f2-)" "ok 502.4975124299297 " "throughput without a step: one run"
is "$(jq -c '[.runs, .name, .records]' "$T/out")" '[1,"throughput",4]' "and one series"
is "$(told mlperf --rule tracked-stats <"$T/ml" | cut -d' ' -f3)" 900 "tracked_stats is another"
is "$(grep -E 'tracked|run_st' "$T/ml" | told mlperf | cut -d' ' -f2-)" "ok 900 " "and takes the place of the first where that is absent"
is "$(jq -r .name "$T/out")" tracked_stats "by its own name"
(ml run_start null "" 1000 && for i in 1001 1002; do ml throughput 500.0 ', "step": '$((i - 1000)) $i; done && ml throughput 500.0 "" 1003 && ml throughput 500.0 ', "step": 3' 1004 && echo "$mlstop") >"$T/mixed"
is "$(told mlperf <"$T/mixed" | cut -d' ' -f2-)" "ok 500 " "one line without a step among others begins no run"

sed 's/x\.py/engine.py/; s/{"throughput": 900/{"imgs_sec": 90/' "$T/ml" | told mlperf >"$T/one"
is "$(cut -d' ' -f2- "$T/one") $(jq -r '"\(.unit) \(.series[0].scope)"' "$T/out")" "ok 90  images/s rank" "RetinaNet's throughput is one rank's, and said to be"
is "$(sed 's,x\.py,./ml_perf/logger.py,' "$T/ml" | told mlperf | cut -d' ' -f2-) $(jq -r '"\(.name) \(.unit)"' "$T/out")" "ok 0.009  run s" "Minigo's is in iterations: its time is the result"

# A run and an audit judge by the same causes.
cp tests/integration/fake_train.sh "$T/train.sh"
printf '%s\n' '#!/bin/sh' '"${0%/*}/train.sh" "$@" | sed "/\"step\":9,/d"' >"$T/gap.sh" && chmod +x "$T/gap.sh"
exits 9 "a run whose log lacks a step does not count" env REPERF_TRAIN="$T/gap.sh" REPERF_STATE="$T/gap" "$REPERF" run paddle-perf-2020 --profile smoke --case 'resnet50/reperf/fp32/n1g1/*' --repeats 1
is "$(jq -c '.cells[0].repeats[0].counts' "$T"/gap/runs/2*/evidence/result.json)" false "as its result says"
like "$(cat "$T"/gap/runs/2*/evidence/result.json)" '1 line is missing before step 10' "with the cause"
mkdir -p "$T/logs/made"
audited() { # SED: verdict and log_state of a cell on such a log
    (printf 'GPUs used: 8\nbatch_size: 8\n' && seg "$1") >"$T/logs/made/x.log"
    /usr/bin/python3 tests/integration/forge.py manifests/reports/paddle-perf-hrnetw18.json "$T/forged.json" hrnetw18/paddle/fp32/n1g8/bs8 folder=made log=x.log format=paddleseg rule=paddleseg/skip1 printed=80.0
    "$REPERF" audit "$T/forged.json" --logs "$T/logs" --json >"$T/out" 2>/dev/null
    jq -r '.reports[0].cells[0] | [.verdict, .log_state] | join(" ")' "$T/out"
}
is "$(audited)" "exact whole" "an audited cell on a whole log"
is "$(audited 4,5d)" "exact incomplete" "on one with gaps it keeps its verdict, and the state is said"
is "$(audited 7,8d)" "exact incomplete" "so on one that is cut"
is "$(audited 1,3d)" "exact incomplete" "at either end"
is "$(audited 4p)" "exact incomplete" "and on one with a step twice"
like "$(cat "$T/out")" '"id": "log-incomplete"' "which is found"
is "$(audited '6s#loss: 1.5#loss: nan#')" "exact unreadable" "and on one with an invalid loss"
tap_done
