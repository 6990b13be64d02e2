#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: judge
# reperf measure of logs that no format reads: the recurring numbers, the proposal, the format that is written, and what is not assumed.
# shellcheck source=tests/tap_lib.sh disable=SC1091
source "$(dirname "$0")/../tap_lib.sh"
L=tests/integration/unknown
V=(/usr/bin/python3 tests/integration/validate.py)

suggested() { # LOG WANTED(value unit records quantity) [ARGS...]
    local log=$1 wanted=$2 got
    shift 2
    rm -f "$T/f.json"
    "$REPERF" measure "$L/$log.log" --json >"$T/before.json" 2>"$T/err"
    case $log in
        keras* | yolo | deepspeed | fairseq | detectron2) ;; # a format reads them; what is suggested does as well
        *) is "$? $(jq -r '"\(.format) \(.verdict) \(.recurring | length > 0)"' "$T/before.json")" "9 null no_metric true" "$log: no format reads it, and its numbers are listed" ;;
    esac
    exits 11 "$log: a format is written, and measured by" "$REPERF" measure "$L/$log.log" --suggest "$T/f.json" "$@" --json
    got=$(jq -r '"\(.value * 10000 | round / 10000) \(.unit) \(.records) \(.quantity)"' "$T/out")
    is "$got" "$wanted" "$log: $wanted"
    is "$("$REPERF" measure "$L/$log.log" --format "$T/f.json" --json | jq -c '[.value, .unit, .records]')" "$(jq -c '[.value, .unit, .records]' "$T/out")" "$log: --format reads the same by the file"
    is "$("$REPERF" measure - --format "$T/f.json" --json <"$L/$log.log" | jq .value)" "$(jq .value "$T/out")" "$log: and from standard input"
    cp "$T/f.json" "$T/$log.json"
    formats+=("$T/$log.json")
}
formats=()
suggested keras2 '0.004 s 3 step_time'
suggested keras3 '0.005 s 3 step_time'
suggested tqdm '10 steps/s 2 rate'
suggested yolo '2 steps/s 3 rate'
suggested deepspeed '39.9604 samples/s 12 rate'
suggested fairseq '24332.5401 words/s 12 rate'
suggested flax '4.5337 steps/s 12 rate'
suggested home-rate '1217.5921 images/s 11 rate'
suggested home-grouped '12364.9913 tokens/s 12 rate'
suggested home-time '54000 tokens/s 12 rate'
suggested home-took '0.3103 s 29 step_time'
suggested detectron2 '0.3543 s 29 step_time' --unit s
suggested train-time '0.4403 s 12 step_time' --unit s
suggested home-speed '101.9804 images/s 15 rate' --unit images/s
exits 0 "the formats are valid against the schema" "${V[@]}" manifests/schema/format.json "${formats[@]}"
is "${#formats[@]}" 14 "all of them"
exits 0 "steps a second, by batch and GPUs" "$REPERF" measure "$L/tqdm.log" --format "$T/tqdm.json" --rule samples --batch 8 --gpus 4 --json
is "$(jq -r '"\(.value) \(.unit)"' "$T/out")" "320 samples/s" "are samples a second"
exits 11 "moments of steps, by batch and GPUs" "$REPERF" measure "$L/clock.log" --suggest "$T/clock.json" --batch 6 --gpus 1 --json
is "$(jq -r '"\(.value) \(.unit)"' "$T/out")" "10 samples/s" "are samples a second: 100 steps of 6 in a minute"

# What the log does not say is not assumed
not_written() { # LOG TEXT ARGS...
    local log=$1 text=$2
    shift 2
    rm -f "$T/no.json"
    exits 9 "$log: nothing is measured" "$REPERF" measure "$L/$log.log" --suggest "$T/no.json" "$@"
    like "$(cat "$T/out" "$T/err")" "$text" "$log: and why"
    [ ! -e "$T/no.json" ]
    ok $? "$log: no format is written"
}
not_written home-speed 'does not say in what "speed" is'
not_written train-time 'does not say in what'
not_written xgboost 'None of them is a rate'
not_written fastai 'spans of time alone'
exits 2 "a unit for what has one" "$REPERF" measure "$L/home-rate.log" --unit s
exits 2 "an invalid unit" "$REPERF" measure "$L/home-speed.log" --unit furlongs
exits 2 "a unit together with a format" "$REPERF" measure "$L/home-rate.log" --unit s --format timm
exits 2 "a suggestion for two logs" "$REPERF" measure "$L/home-rate.log" "$L/tqdm.log" --suggest "$T/x.json"

# The time since the beginning is no step time, whatever its name; the mean of a step next to it is.
for i in $(seq 12); do echo "step:$i/12 train_loss:2.$i train_time:$((214 * i))ms step_avg:213.$((10 + i))ms"; done >"$T/since.log"
exits 11 "a log with the time since its beginning" "$REPERF" measure "$T/since.log" --suggest "$T/since.json" --json
is "$(jq -r '"\(.unit) \(.value * 10000 | round)"' "$T/out")" "s 2132" "is read by its steps"

# Bars of two loops that look alike but for their length: the longer one's, and not the mean of both.
for i in 1 2 3 4 5; do
    printf '  0%%|          | 0/310 [00:00<?, ?it/s]\r100%%|##########| 310/310 [00:32<00:00,  9.5%sit/s]\n' "$i"
    printf '  0%%|          | 0/20 [00:00<?, ?it/s]\r100%%|##########| 20/20 [00:00<00:00, 224.9%sit/s]\n' "$i"
done >"$T/two-bars.log"
exits 11 "bars of training and of evaluation, without a word" "$REPERF" measure "$T/two-bars.log" --suggest "$T/two-bars.json" --json
is "$(jq -r '"\(.records) \(.value * 100 | round) \(.unit)"' "$T/out")" "5 953 steps/s" "are not mixed"

# What stands around a number is not always its own: lines as programs print them, and what is proposed.
while IFS='|' read -r name line wanted; do
    for i in $(seq 12); do echo "${line//@/$i}"; done >"$T/around.log"
    is "$("$REPERF" measure "$T/around.log" --json 2>"$T/err" | jq -r '"\(.proposed.unit) \(.recurring[0] // {} | "\(.min) \(.says)")"')" "$wanted" "$name"
done <<'END'
a unit that is the next number's key|step @/40 loss=2.9 dt=250.@ tok/sec=65,40@|tokens/s 65401 a rate
a unit that names the next number|step @ loss 2.9@ tok/s 6540@ mfu 30|tokens/s 65401 a rate
a unit that may be either's|step @ speed 2.9@ tok/s 6540@ mfu 30|null 2.91 a rate of unknown items: --unit
a unit before a colon|step @ speed 25@ img/s: fine|images/s 251 a rate
the time of an epoch|Run epoch time: 1234@.5 ms, per step time: 6.@ ms|s 6.1 time of a step
a time in its name|iteration @/99 - train_step_timing in s: 1.5@|s 1.51 time of a step
a decimal comma|step @ throughput: 25@,7 images/s|null null null
a decimal comma after four digits|step @ throughput: 1234,567 images/s|null null null
thousands|iteration: @ - tokens_per_sec: 43@K|tokens/s 431000 a rate
a prefix before the unit|step @ 1.2@K tok/s|tokens/s 1210 a rate
billions|iteration: @ - tokens_per_sec: 43@G|null 431 in billions or more: not read
a comma after a whole number|Step: @, Tokens per Sec: 900@, Lr: 0.1|tokens/s 9001 a rate
a unit in words|[0] step @ throughput: 11@.5 sample per second [0]|samples/s 111.5 a rate
operations of a model|summary: 11@.4 GFLOPs, step @|null 111.4 
a time of nothing that is counted|trace time: 14@.5 ms|null 141.5 a span of time; its content is unknown
a download|Fetched █ 35/350 [00:00<00:00, 26.@MB/s]|null 26.1 of what comes before the steps
a download whose line was cut|Downloading (x)o.json: 100%   26.@MB/s|null 26.1 of what comes before the steps
a prompt and what follows it|Statistics: prefill: 123@.5 tok/s, decode: 9@.5 tok/s|tokens/s 91.5 a rate
a table of a game|total_timesteps: @ fps: 17@|null 171 a rate of unknown items: --unit
a rate of one GPU|Step @ - tokens_per_second_per_gpu:120@.5|tokens/s 1201.5 a rate of one device
a rate of one GPU in words|step @ 12@.5 samples/s per GPU|samples/s 121.5 a rate of one device
a rate of one core after a logger's time|I1126 10:00:00.5 7 u.py:300] [@] img/sec/core = 41@.5|images/s 411.5 a rate of one device
a rate of a device and of all|Train throughput/samples_per_sec: 11@.5|samples/s 111.5 a rate
a time in other words|step @ sec_per_step: 0.4@ loss 2|s 0.41 time of a step
the time of a line that counts epochs|Epoch [0@/30] TrainLoss=0.5 Time=45@.2s|null 451.2 a span of time; its content is unknown
the time of a training|step @0 loss 0.5, train time: 15@.5 s|null 151.5 a span of time; its content is unknown
a time over an iteration|[step: @0] loss: 1e-1, time/iteration: 2.3@e+01 ms|s 23.1 time of a step
an iteration's number before its time|iter @: 12.5 ms|s 12.5 time of a step
words that belong to the number before|on:train @0it/400it rate:1.2@it/s|steps/s 1.21 a rate
END
# A prefix that changes from line to line, a value below 0, the last step of a count from 0, a second run, figures beside a bar.
for i in $(seq 12); do echo "Step: $i | Loss: 2.5 | Tokens/s: $([ $((i % 2)) = 1 ] && echo "900.5" || echo "1.5K")"; done >"$T/prefix.log"
exits 11 "a rate with and without a prefix" "$REPERF" measure "$T/prefix.log" --suggest "$T/prefix.json" --rule mean --json
is "$(jq -r '"\(.value) \(.records)"' "$T/out")" "1200.25 12" "is read on all lines"
for i in $(seq 12); do echo "Finished it $i/12 of epoch 0, -1.00 ms/it, loss 0.5"; done >"$T/below.log"
exits 9 "a time below 0" "$REPERF" measure "$T/below.log" --suggest "$T/below.json" --json
is "$(jq -r '"\(.verdict) \(.value)"' "$T/out")" "nan null" "is none over it"
for i in $(seq 0 11); do echo "epoch 0, iteration $i/11 | step time: 5.5 s"; done >"$T/zero.log"
exits 11 "steps from 0 to the number beside them" "$REPERF" measure "$T/zero.log" --suggest "$T/zero.json" --json
is "$(jq -r '"\(.verdict) \(.value) \(.records)"' "$T/out")" "proposed 5.5 12" "are not beyond it"
for run in 1 2; do for i in $(seq 6); do echo "Speed ${run}00.$i samples/sec Epoch: 0 Step: $((i * 50))"; done; done >"$T/runs.log"
exits 9 "two runs in one file" "$REPERF" measure "$T/runs.log" --suggest "$T/runs.json" --json
is "$(jq -r '"\(.verdict) \(.value)"' "$T/out")" "ambiguous null" "have no common rate"
for i in $(seq 12); do printf 'Epoch 0:  %s%%|#   | %s/12 [00:0%s<00:10, loss=2.5, step_timing in s=%s.5]\r' "$i" "$i" "$((i % 10))" "$i"; done >"$T/beside.log"
exits 11 "a step's time beside a bar" "$REPERF" measure "$T/beside.log" --suggest "$T/beside.json" --rule mean --json
is "$(jq -r '"\(.value) \(.records)"' "$T/out")" "7 12" "is read at each step"
for i in 1 2 3; do
    printf 'train: Scanning labels: 100%% 128/128 [00:00<00:00, 1709.36it/s]\n  %s/3 4.7G 0.04: 100%% 8/8 [00:02<00:00, 3.7%sit/s]\n' "$i" "$i"
done >"$T/no-bar.log"
exits 11 "bars without a bar" "$REPERF" measure "$T/no-bar.log" --suggest "$T/no-bar.json" --json
is "$(jq -r '"\(.value) \(.records)"' "$T/out")" "3.719982078809879 3" "are told apart as others are"
printf 'train: Scanning labels of 3 parts: 100%% 128/128 [00:00<00:00, 1709.36it/s]\n' >"$T/no-bar.log"
exits 9 "one of what comes before the steps" "$REPERF" measure "$T/no-bar.log" --suggest "$T/no-bar2.json"

for i in $(seq 12); do echo "Step $i - tokens_per_second_per_gpu:1200"; done >"$T/around.log"
exits 11 "a rate of one device, times their number" "$REPERF" measure "$T/around.log" --suggest "$T/around.json" --rule job --gpus 8 --json
is "$(jq -r '"\(.value) \(.unit)"' "$T/out")" "9600 tokens/s" "is the job's"

for i in $(seq 12); do for r in 0 1 2; do echo "$r: TRAIN [0][$i/12] Time 0.5 (0.5) Tok/s 33$((i + 10)) (3300)"; done; done >"$T/ranks.log"
exits 11 "a rate that every rank prints" "$REPERF" measure "$T/ranks.log" --suggest "$T/ranks.json" --json
is "$(jq -r '"\(.unit) \(.series[0].scope)"' "$T/out")" "tokens/s rank" "is not the job's"
printf '%s\n' "[I] Duration: 3s (+ 200ms warm up)" "[I] Best: 12 units" >"$T/once.log"
for i in $(seq 12); do for r in 0 1; do echo "rank $r | step $i | 120.5 img/s"; done; echo "[val] step $i | 300.5 img/s"; done >"$T/whose.log"
exits 11 "ranks named in words, and an evaluation's lines" "$REPERF" measure "$T/whose.log" --suggest "$T/whose.json" --json
is "$(jq -r '"\(.value) \(.unit) \(.series[0].scope) \(.records)"' "$T/out")" "120.5 images/s rank 24" "are told apart"
{ cat "$T/whose.log" && printf 'x %.0s' {1..40000} && echo "img/s"; } >"$T/whose-long.log"
exits 0 "and a long line takes nothing from them" "$REPERF" measure "$T/whose-long.log" --format "$T/whose.json"
exits 9 "a duration that stands there once" "$REPERF" measure "$T/once.log" --suggest "$T/once.json"
printf 'Loading weights:  46%%|####  | 325/713 [00:00<00:00, 3240.06it/s]\rLoading weights: 100%%|#####| 713/713 [00:00<00:00, 5864.19it/s]\nMap: 100%%|##| 900/900 [00:01<00:00, 900.5 examples/s]\n' >"$T/loading.log"
exits 9 "bars of what comes before the steps" "$REPERF" measure "$T/loading.log" --suggest "$T/loading.json"
like "$(cat "$T/out")" "of what comes before the steps" "are named as such"
printf '  0%%|          | 0/310 [00:00<?, ?it/s]\r100%%|##########| 310/310 [00:32<00:00,  9.50it/s]\n' >>"$T/loading.log"
exits 11 "and a bar of steps after them" "$REPERF" measure "$T/loading.log" --suggest "$T/loading.json" --json
is "$(jq -r '"\(.records) \(.value) \(.unit)"' "$T/out")" "1 9.5 steps/s" "is what is read"

printf 'prompt eval count: 26\nprompt eval rate:     200.00 tokens/s\neval rate:            72.50 tokens/s\n' >"$T/words.log"
exits 11 "a key that ends another" "$REPERF" measure "$T/words.log" --suggest "$T/words.json" --json
is "$(jq -r '"\(.value) \(.records)"' "$T/out")" "72.5 1" "is read alone"

# Lines of several processes that name no rank: whose they are is not known, and no proposal says that they are the job's.
unsaid() { # WHAT VALUE [ARGS...] < log
    local what=$1 value=$2
    shift 2
    cat >"$T/unsaid.log"
    exits 11 "$what" "$REPERF" measure "$T/unsaid.log" --suggest "$T/unsaid.json" "$@" --json
    is "$(jq -r '"\(.verdict) \(.value * 100 | round) \(.series[0].scope)"' "$T/out")" "proposed $value null" "$what: read, and its scope is not known"
    like "$(jq -r '.notes | last' "$T/out")" "whether it is of one process or of the job is not known" "$what: which is said"
}
eight() { # LINE: one of each of eight processes; @ is the process
    for rank in 1 2 3 4 5 6 7 8; do echo "${1//@/$rank}"; done
}
unsaid "eight processes, step by step" 3435 < <(for step in 10 20 30; do eight "step $step speed 3@ img/s"; done)
unsaid "the same without a unit, which is given" 3435 --unit img/s < <(for step in 10 20 30; do eight "step $step speed 3@"; done)
ssd() { # as many lines of a benchmark's end as there are processes, each of which has said the same before
    eight "Using seed = 12@4"
    eight "DLL 2024-05-02 05:29:02.69@ - () avg_img/sec : 670@.5 images/s med_img/sec : 675@.5 images/s max_img/sec : 690@.5 images/s"
    echo "Training performance = 54136.5 FPS"
}
unsaid "eight results at the end" 670500 < <(ssd)
unsaid "a result that stands there once" 670150 < <(ssd | sed '/DLL.*691/!{/DLL/d}')
unsaid "a step that is made again" 10050 < <(for step in 1 2 3 4 4 5 6 7 8; do echo "step $step | 100.5 img/s"; done)
unsaid "steps that begin again with each epoch" 10050 < <(for epoch in 1 2 3; do for step in 1 2; do echo "epoch $epoch step $step | 100.5 img/s"; done; done)
for rank in 0 1; do for step in 1 2 3 4; do echo "step $step/4 | 100.5 img/s"; done | sed "s/^/[1,$rank]<stdout>:/"; done >"$T/job.log"
exits 9 "two ranks that print one after the other" "$REPERF" measure "$T/job.log" --suggest "$T/job.json" --json
is "$(jq -r '"\(.verdict) \(.value)"' "$T/out")" "ambiguous null" "are not averaged"

# A format made of a log's lines is no kinder than one that knows them, nor than its own lines: what is wrong with the log is not lost, and the status is 9.
while IFS='|' read -r file edit verdict why; do
    sed "$edit" "$file" >"$T/wrong.log"
    exits 9 "$file, $edit" "$REPERF" measure "$T/wrong.log" --suggest "$T/wrong.json" --json
    is "$(jq -r '"\(.verdict) \(.why)"' "$T/out")" "$verdict $why" "$file: $verdict"
done <<END
$L/deepspeed.log|6s/12:01:00/12:00:00/|ambiguous|the clock goes back at step 60
tests/integration/formats/mindspore.log|3s/loss is .*/loss is nan/|nan|by format mindspore line 3: the loss is not a finite number
tests/integration/formats/timm.log|/Train: 0 .   0/d|incomplete|by format timm the log begins at step 10: 1 line is missing
$L/home-rate.log|s,step *\\([0-9]*\\),step \\1/950,|ambiguous|step 1000 is beyond the last of the run, 950
END
for i in 1 2 3 4 5 6; do echo "2024-01-01 10:00:0$((i == 4 ? 1 : i)) step $i/6 100.5 img/s"; done >"$T/clock-back.log"
exits 9 "a clock that goes back, in lines that no format knows" "$REPERF" measure "$T/clock-back.log" --suggest "$T/clock-back.json" --json
is "$(jq -r '"\(.verdict) \(.why)"' "$T/out")" "ambiguous the clock goes back at step 4" "is seen"
sed 's/10:00:01 step 4/10:00:04 step 4/' "$T/clock-back.log" >"$T/clock-on.log"
exits 0 "one that does not" "$REPERF" measure "$T/clock-on.log" --format "$T/clock-back.json"
sed 's/^2024-[^s]*//' "$T/clock-on.log" >"$T/no-clock.log"
exits 0 "and lines without one are read by the same format" "$REPERF" measure "$T/no-clock.log" --format "$T/clock-back.json"

# A loss that is no number, and lines that are missing, count as with a format that is known.
while IFS='|' read -r name edit wanted; do
    for i in $(seq 12); do echo "step $((i * 10)) | train_loss=0.5$i | 100.$i img/s"; done | sed "$edit" >"$T/lacks.log"
    "$REPERF" measure "$T/lacks.log" --suggest "$T/lacks.json" --json >"$T/out" 2>"$T/err"
    is "$? $(jq -r '"\(.verdict) \(.why)"' "$T/out")" "$wanted" "$name"
    exits "$([ "${wanted%% *}" = 11 ]; echo $((9 * $?)))" "$name: by the file as well" "$REPERF" measure "$T/lacks.log" --format "$T/lacks.json"
done <<'END'
a log of which nothing is wrong||11 proposed the format is a proposal, and nothing confirms what it reads
a loss that is NaN on all lines|s/loss=[0-9.]*/loss=nan/|9 nan line 1: the loss is not a finite number
and on one line|5s/loss=[0-9.]*/loss: -inf/|9 nan line 5: the loss is not a finite number
on a line of its own|7s/^/Loss NaN\n/|9 nan line 7: the loss is not a finite number
of an evaluation|7s/^/[val] loss: nan\n/;8s/^/val_loss: nan\n/|11 proposed the format is a proposal, and nothing confirms what it reads
a step that is missing|5d|9 incomplete 1 line is missing before step 60
the first two steps|1,2d|9 incomplete the log begins at step 30: 2 lines are missing
END
exits 11 "an incomplete log that is allowed is still read by a proposal" "$REPERF" measure "$T/lacks.log" --suggest "$T/lacks.json" --allow-incomplete

# A proposed format stays one wherever it is found, until it is named or its file no longer says so.
mkdir -p "$T/found/formats"
exits 11 "a format among the others" "$REPERF" measure "$L/home-rate.log" --suggest "$T/found/formats/home-rate.json"
measured() { REPERF_MANIFESTS="$T/found" "$REPERF" measure "$L/home-rate.log" --json "$@" 2>"$T/err" | jq -r '"\(.format) \(.verdict)"'; }
is "$(measured)" "home-rate proposed" "a proposed format that is found is no more than that"
is "$(measured --format home-rate)" "home-rate ok" "one that the user names is accepted"
sed -i '/"proposed": true,/d' "$T/found/formats/home-rate.json"
is "$(measured)" "home-rate ok" "so is one whose file does not say that it is proposed"

# What is of no training, or of several: nothing is measured, and it is said why. A \r redraws a bar, @ is the number of the line.
while IFS='|' read -r name line wanted; do
    for i in 1 2 3 4 5 6; do printf '%b\n' "${line//@/$i}"; done | sed 's/!/|/g' >"$T/none.log"
    exits 9 "$name" "$REPERF" measure "$T/none.log" --suggest "$T/none.json"
    like "$(cat "$T/out")" "$wanted" "$name: and why"
done <<'END'
pip's bar|   ━━━━━━━━━━━━━━━━━━━━ 61@.9/619.9 MB 2.1 MB/s eta 0:00:00|of what comes before the steps
pip's older bar|  !████████████████████████████████! 831.4 MB 2.@ kB/s eta 0:00:01|of what comes before the steps
pip's oldest bar|    100% !████████████████████████████████! 1.2MB 25.@MB/s|of what comes before the steps
pip's bar of another terminal|   ---------------------------------------- 12.6/12.6 MB 90.@ MB/s eta 0:00:00|of what comes before the steps
git's objects|Receiving objects: 100% (12@/123), 1.2 MB, 3.@ MB/s, done.|of what comes before the steps
data that is prepared|Preparing data:  10%!###   ! 100/1000 [00:01<00:05, 10.50it/s]\rPreparing data: 100%!####! 1000/1000 [00:10<00:00, 9@.5it/s]|of what comes before the steps
a map of a data set|Applying template: 100%!####! 100/100 [00:01<00:00, 10@.5 examples/s]|of what comes before the steps
a count without a length|@00it [00:0@, 9@.50it/s]|of what comes before the steps
files that are copied|Copying file @ of 9, 12@.5 items/s|does not say in what
batches of several sizes|batch_size: @6 latency: 3.5 speed: 25@.5 images/s|A table: no one number follows
END
for model in a b c; do for i in 1 2 3; do echo "{\"model\": \"$model\", \"dtype\": \"fp16\", \"images_per_sec\": 12$i.5}"; done; done >"$T/settings.jsonl"
printf "%s\n" bs,images/s,gpus 1,100.5,8 2,200.5,8 4,400.5,8 >"$T/settings.csv"
for kind in jsonl csv; do
    exits 9 "records of several settings: $kind" "$REPERF" measure "$T/settings.$kind" --json
    is "$(jq -r '"\(.format) \(.verdict) \(.value) \(.records > 2)"' "$T/out")" "$kind ambiguous null true" "have no common rate"
done
exits 9 "and no format is made for them" "$REPERF" measure "$T/settings.jsonl" --suggest "$T/settings.json"
like "$(cat "$T/out")" 'A table: no one number follows' "because they are a table"
for model in a a; do for i in 1 2 3; do echo "{\"model\": \"$model\", \"dtype\": \"fp16\", \"images_per_sec\": 12$i.5}"; done; done >"$T/settings.jsonl"
exits 0 "records of one setting" "$REPERF" measure "$T/settings.jsonl"

# Steps that begin again: an epoch if a line between says so, else a second run.
steps() { for i in 1 2 3 4 5 6; do echo "step $i/6 loss 2.$i speed $1.$i samples/sec"; done; }
while IFS='|' read -r name before between wanted; do
    { printf '%b' "$before" && steps 100 && printf '%b' "$between" && steps 110; } >"$T/again.log"
    "$REPERF" measure "$T/again.log" --suggest "$T/again.json" --json >"$T/out" 2>"$T/err"
    is "$? $(jq -r '"\(.verdict) \(.records)"' "$T/out")" "$wanted" "$name"
done <<'END'
steps that begin again||\n|9 ambiguous 12
below a new epoch|Epoch 1/2\n|Epoch 2/2\n|11 proposed 12
below the same epoch|Epoch 1/2\n|Epoch 1/2\n|9 ambiguous 12
below a word for one|a new epoch begins\n|next epoch\n|11 proposed 12
END

# Other forms of a log, and what stands in it beside a figure.
form() { # NAME WANTED(status verdict value scope) FILE [ARGS...]
    local name=$1 wanted=$2 file=$3 status
    shift 3
    rm -f "$T/form.json"
    "$REPERF" measure "$file" "$@" --json >"$T/out" 2>"$T/err"
    status=$?
    is "$status $(jq -r '"\(.verdict) \(.value) \(.series[0].scope)"' "$T/out")" "$wanted" "$name"
}
serving() { # FIGURE: of 2000 output tokens in 50 s
    printf '%s\n' "============ Serving Benchmark Result ============" "Successful requests:                     100" "Benchmark duration (s):                  50.00" "Total input tokens:                      9000" "Total generated tokens:                  2000" "Output token throughput (tok/s):         $1" "Peak output token throughput (tok/s):    95.00" "Total Token throughput (tok/s):          220.00"
}
serving 40.00 >"$T/serving.log"
form "a figure that its count over its time confirms" "0 ok 40 job" "$T/serving.log"
like "$(jq -r '.notes[]' "$T/out")" 'confirmed: 2000 output tokens .line 5. in 50 s .line 3.' "is said to be confirmed"
serving 400.00 >"$T/wrong.log"
form "one that they refute" "9 contradicts_itself null job" "$T/wrong.log"
like "$(jq -r .why "$T/out")" '2000 output tokens .line 5. in 50 s .line 3. are 40 a second, and line 6 says 400' "with both numbers and lines"
sed 's/^/INFO  bench.py:12 /' "$T/serving.log" >"$T/prefix.log"
form "lines behind a logger's prefix" "0 ok 40 job" "$T/prefix.log"
gzip -c "$T/serving.log" >"$T/serving.log.gz"
form "a log that is compressed" "0 ok 40 job" "$T/serving.log.gz"
zstd -q "$T/serving.log" -o "$T/serving.log.zst"
form "and in another way" "0 ok 40 job" "$T/serving.log.zst"
echo '{"run": {"train_throughput_mean_samples_per_second": 812.5, "hosts": [1, 2]}, "name": "x"}' >"$T/one.json"
form "one JSON document" "11 proposed 812.5 null" "$T/one.json" --suggest "$T/form.json"
printf 'step,note,images/s\n1,"a\nb",100\n2,"c",100\n' >"$T/quoted.csv"
form "a CSV whose fields hold line breaks" "0 ok 100 job" "$T/quoted.csv"
printf 'case,images/s\n64,100\n128,200\n' >"$T/cases.csv"
form "a CSV of cases" "9 ambiguous null job" "$T/cases.csv"
for size in 1 2 4 8; do echo "Size = ${size}000 bytes, Bandwidth = $size.5 GB/s"; done >"$T/sizes.log"
form "figures by size" "9 ambiguous null null" "$T/sizes.log"
is "$(jq -c '[.table[].value]' "$T/out")" '[1.5,2.5,4.5,8.5]' "are a table"
printf '# Size      Bandwidth (MB/s)\n1           1.25\n2           2.50\n4           5.00\n' >"$T/head.log"
form "a table whose head has the unit" "9 ambiguous null null" "$T/head.log"
is "$(jq -c '[.table[] | [.value, .unit]]' "$T/out")" '[[1.25,"MB/s"],[2.5,"MB/s"],[5,"MB/s"]]' "has it in each cell"
printf '\r  1%%|1         | 60/6000 [01:00<99:00,  9.50it/s]\n' >"$T/bar.log"
form "a bar that stops early, at another rate than its own count" "9 contradicts_itself null job" "$T/bar.log" --suggest "$T/form.json"
for i in 1 2 3 4; do echo "Now evaluating on dev"; echo "done in 2.5s, throughput=50$i.5 samples/s"; done >"$T/dev.log"
form "an evaluation's figures" "9 no_metric null null" "$T/dev.log" --suggest "$T/form.json"
for i in 1 2 3 4; do echo "[$i] throughput: 10$i.5 sample per second"; done >"$T/own.log"
form "figures of several writers" "11 proposed 102.98786316242041 rank" "$T/own.log" --suggest "$T/form.json"

for i in $(seq 30); do echo "step $i: 0.5 s per step" | sed '/^step \(10\|20\):/s/0.5/6.5/'; done >"$T/aside.log"
form "times of which a few hold something else" "11 proposed 0.9 job" "$T/aside.log" --suggest "$T/form.json"
like "$(jq -r '.notes[]' "$T/out")" 'the median of the same lines is 0.5 s: a few weigh much' "are said to"

# Two values under one name are none.
for i in 1 2 3; do echo "{\"step\": $i, \"images_per_sec\": 100.0, \"images_per_sec\": 900.0}"; done >"$T/twice.jsonl"
printf 'step,images/s,images/s\n1,100,900\n2,100,900\n' >"$T/twice.csv"
exits 9 "a key twice in a record" "$REPERF" measure "$T/twice.jsonl"
exits 9 "a column twice in a table" "$REPERF" measure "$T/twice.csv"

# A text that no line can hold is not looked for.
mkdir -p "$T/own/formats"
jq '.id = "two-lines" | .series[0] |= (.literal = "ksteps" | .pattern = "ksteps aaaa\nzqjx (?<value>[\\d.]+)")' "$T/home-rate.json" >"$T/own/formats/two-lines.json"
printf 'ksteps aaaa\nzqjx 100\n' >"$T/two-lines.log"
REPERF_MANIFESTS="$T/own" exits 9 "a format whose pattern holds a line break reads nothing, and ends" timeout 300 "$REPERF" measure "$T/two-lines.log"

# A pattern of one's own
exits 0 "--pattern and --unit" "$REPERF" measure - --pattern 'step +(?<step>\d+) .* (?<value>\d+) img/s' --unit img/s --json <"$L/home-rate.log"
is "$(jq -r '"\(.value | round) \(.unit) \(.records)"' "$T/out")" "1218 images/s 11" "reads standard input"
exits 0 "a pattern in milliseconds" "$REPERF" measure "$L/home-time.log" --pattern 'dt (?<value>[\d.]+)ms' --unit ms --json
is "$(jq -r '"\(.unit) \(.series[-1].value)"' "$T/out")" "s 0.3" "is shown in seconds"
for loss in "loss nan" "Loss: -inf" "{'loss': NaN}"; do
    for i in 1 2 3 4 5 6; do echo "step $i 63$i.5 samples/s, $([ "$i" -lt 4 ] && echo "loss 2.$i" || echo "$loss")"; done >"$T/nan.log"
    exits 9 "$loss, of which neither pattern nor format speaks" "$REPERF" measure "$T/nan.log" --pattern '(?<value>[\d.]+) samples/s' --unit samples/s
    like "$(cat "$T/err")" 'line 4: the loss is not a finite number$' "is no training, whatever its rate"
    sed 's/, .*l/\n&/I' "$T/nan.log" >"$T/apart.log"
    exits 9 "and on a line of its own" "$REPERF" measure "$T/apart.log" --pattern '(?<value>[\d.]+) samples/s' --unit samples/s
done
sed 's/loss/val_loss/I' "$T/nan.log" >"$T/val.log"
exits 0 "an evaluation's says nothing of the training" "$REPERF" measure "$T/val.log" --pattern '(?<value>[\d.]+) samples/s' --unit samples/s
exits 2 "a pattern without a unit" "$REPERF" measure "$L/home-rate.log" --pattern '(?<value>\d+)'
exits 2 "a pattern without a value" "$REPERF" measure "$L/home-rate.log" --pattern '\d+' --unit s
exits 2 "an invalid pattern" "$REPERF" measure "$L/home-rate.log" --pattern '(?<value>[' --unit s
exits 2 "standard input twice" "$REPERF" measure - -
exits 3 "an invalid format file" "$REPERF" measure "$L/home-rate.log" --format "$L/tqdm.log"
exits 2 "a format file that is not there" "$REPERF" measure "$L/home-rate.log" --format "$T/absent.json"

# Files of other kinds: what to do with them.
while IFS='|' read -r bytes said; do
    printf '%b' "$bytes" >"$T/other"
    exits 9 "no log: $bytes" "$REPERF" measure "$T/other"
    like "$(cat "$T/err")" "$said" "says $said"
done <<'END'
PK\x03\x04abc|ZIP archive.*export the sheet as CSV
\x1f\x8b\x08x|gzip -dc FILE . reperf measure -
%PDF-1.4|PDF
:W&B\x00|W&B's binary file
|it is empty
END
mkdir "$T/no-logs"
exits 2 "a folder without a log" "$REPERF" measure "$T/no-logs"
like "$(cat "$T/err")" 'a log is named by its file' "says how a log is named"

# A table: its columns go by their heads, and the format reads rows only below that head.
{
    echo "training begins"
    echo "step | images/s | loss"
    for ((i = 1; i <= 14; i++)); do echo "$((i * 10)) | $((1200 + i % 3)).5 | 1.$i"; done
} >"$T/table.log"
exits 9 "a table of numbers" "$REPERF" measure "$T/table.log"
like "$(cat "$T/out")" 'column images/s +1200.5 +1202.5 +a rate, images/s' "its column goes by its head"
exits 11 "its format" "$REPERF" measure "$T/table.log" --suggest "$T/table.json"
is "$(jq -c '.series[0].after' "$T/table.json")" '{"literal":"images/s","pattern":"step\\s+\\|\\s+images/s\\s+\\|\\s+loss"}' "begins below the head"
exits 0 "which reads it" "$REPERF" measure "$T/table.log" --format "$T/table.json" --json
is "$(jq -r '"\(.records) \(.value * 100 | round) \(.unit)"' "$T/out")" "14 120157 images/s" "all rows of that column"
grep -v images/s "$T/table.log" >"$T/headless.log"
exits 9 "without its head" "$REPERF" measure "$T/headless.log" --format "$T/table.json"

# Bounds
head -c 1000000 /dev/zero | tr '\0' '9' >"$T/long.log"
echo >>"$T/long.log"
cat "$L/home-rate.log" >>"$T/long.log"
exits 11 "a line of 1 MB" "$REPERF" measure "$T/long.log" --suggest "$T/long.json" --json
is "$(jq -r .records "$T/out")" 11 "takes nothing from the others"
seq 1 3000 | sed 's/.*/key& = &/' >"$T/many.log"
"$REPERF" measure "$T/many.log" >"$T/out" 2>&1
like "$(cat "$T/out")" '2488 numbers after the first 512 kinds' "more kinds of numbers than are kept are counted"
printf 'a\033]0;x\007 \x01loss: 0.5 \xc2\x9b31m speed: 3\n%.0s' 1 2 3 4 >"$T/hostile.log"
"$REPERF" measure "$T/hostile.log" >"$T/out" 2>&1
LC_ALL=C grep -q '[^ -~]' "$T/out"
is "$?" 1 "no control byte of a log reaches the terminal"

# Lines that have a moment and the same count each time are no steps; a figure that recurs is asked for before one that stands there once; the
# bandwidth of a tool that no format knows.
for i in $(seq 10 40); do echo "2025-11-01 20:09:$i | INFO | loader: | Training batches: 2502"; done >"$T/chat.log"
exits 9 "a log without figures" "$REPERF" measure "$T/chat.log" --suggest "$T/chat.json"
[ ! -e "$T/chat.json" ]
ok $? "and gives no format"
{ echo "name: GTX TITAN X memoryClockRate (GHz) 1.076" && for i in 0 10 20 30 40; do echo "2016-04-25 13:48:1$((i / 10)).5: step $i, duration = 0.545"; done; } >"$T/tf.log"
"$REPERF" measure "$T/tf.log" >"$T/out" 2>&1
like "$(cat "$T/out")" 'measure .*tf.log --unit s --suggest FILE.json$' "the time of a step is asked for, not a clock of the card"
for i in 1 2 3 4 5 6; do echo "pass $i: copied 1024 blocks, bandwidth: $((100 + i)).5 MB/s"; done >"$T/copy.log"
exits 11 "a bandwidth" "$REPERF" measure "$T/copy.log" --suggest "$T/copy.json"
is "$("$REPERF" measure "$T/copy.log" --format "$T/copy.json" --json 2>"$T/err" | jq -r '[.verdict, .value, .unit] | map(tostring) | join(" ")')" "ok 103.9719495946927 MB/s" "in its own unit"
exits 0 "and by a pattern" "$REPERF" measure "$T/copy.log" --pattern 'copied (?<value>\d+) blocks' --unit IOPS

# Lines of one shape, as programs print them, and what follows: status, verdict, value in four digits, unit, scope.
shapes() { # NAME WANTED [known]: the log is $T/shape.log
    local args=(--suggest "$T/shape.json")
    [ $# -eq 2 ] || args=()
    "$REPERF" measure "$T/shape.log" "${args[@]}" --json >"$T/out" 2>"$T/err"
    set -- "$?" "$@"
    is "$1 $(jq -r '"\(.verdict) \(.value) \(.unit) \(.series[0].scope)"' "$T/out" | awk '{ if ($2 != "null") $2 = sprintf("%.4g", $2); print }')" "$3" "$2"
}
steps() { # FORMAT of the step and a digit
    # shellcheck disable=SC2059
    for i in $(seq 12); do printf "$1\n" "$i" $((i % 3)); done >"$T/shape.log"
}
# A unit between two numbers: the name of the one behind it, where labels and numbers take turns; else it is not decided.
while IFS='|' read -r line wanted; do
    steps "$line"
    shapes "$line" "$wanted"
done <<'END'
step %d loss 2.1%d samples/s 640.5|11 proposed 640.5 samples/s null
step %d loss 2.1%d img/s 640.5|11 proposed 640.5 images/s null
step %d/12 loss 2.1%d samples/sec 640.5|11 proposed 640.5 samples/s null
step %d objective 2.1%d samples per second 640.5 lr 0.1|11 proposed 640.5 samples/s null
step %d loss 2.1%d samples/s 640.5 tok/s 65400|11 proposed 640.5 samples/s null
step %d loss 2.1%d 640.5 samples/s|11 proposed 640.5 samples/s null
END
for line in 'step %d speed 2.1%d samples/s 640.5' 'step %d resnet50 2.1%d samples/s 640.5'; do
    steps "$line"
    shapes "$line" "9 no_metric null  null"
    "$REPERF" measure "$T/shape.log" >"$T/out" 2>&1
    like "$(cat "$T/out")" '^not decided: 12 units stand between two numbers' "and it is said"
done
{
    for i in 10 20 30; do printf '%d%%|#  | %d/60 [00:%d<00:30,  1.03s/it]\r' $((i * 100 / 60)) "$i" "$i"; done
    printf '100%%|####| 60/60 [00:58<00:00,  1.03it/s]\n'
} >"$T/shape.log"
shapes "a bar that changes from s/it to it/s" "11 proposed 1.03 steps/s job"
{
    printf '%s\n' '***** Running Evaluation *****' '  Num examples = 800'
    printf '100%%|####| 100/100 [00:20<00:00,  5.00it/s]\n'
    echo "{'eval_loss': 0.5, 'eval_runtime': 20.0, 'eval_steps_per_second': 5.0}"
} >"$T/shape.log"
shapes "the bar above an evaluation's figures" "9 no_metric null  null"
steps '[Epoch %d / Train]: throughput=8.%d sample_per_sec, 7.5 Tflops'
shapes "a unit in words" "11 proposed 8.099 samples/s null"
steps 'step %d 64%d.0 Samples/Sec'
shapes "a unit in capitals" "11 proposed 641 samples/s null"
steps 'step %d: 0,12%d s/step'
shapes "a decimal comma after a zero" "9 no_metric null  null"
steps 'step %d rate 12 34%d.0 tokens/s'
shapes "thousands apart" "9 no_metric null  null"
steps "step %d rate 12'34%d.0 tokens/s"
shapes "thousands by an apostrophe" "9 no_metric null  null"
steps 'step %d speed 64%d.0 (641.0) samples/s'
shapes "the mean beside the last" "11 proposed 641 samples/s null"
echo "Result: 1234.5 ± 12.3 images/sec" >"$T/shape.log"
shapes "one result with its spread" "11 proposed 1234 images/s null"
for m in 1024 2048 4096 8192; do echo "M=$m N=$m K=$m: $((m / 100)).5 TFLOPS"; done >"$T/shape.log"
shapes "a size in a name of one letter" "9 ambiguous null  null"
for m in 128 256 512 1024; do echo "seq_len $m: $((2000000 / m)).5 tokens/s"; done >"$T/shape.log"
shapes "a size in a name of two words" "9 ambiguous null  null"
echo '$ train --target-throughput 1000 samples/s' >"$T/shape.log"
shapes "a command" "9 no_metric null  null"
printf '%s\n' "Tokens processed: 1000000" "Duration (s): 50.0" "Throughput (tok/s): 2000.0" >"$T/shape.log"
shapes "tokens over time" "9 contradicts_itself null tokens/s null"
for m in 1 2 4 8; do echo "{\"batch\": $m, \"images_per_sec\": $((m * 30)).5}"; done >"$T/shape.log"
shapes "records of several cases" "9 ambiguous null images/s null"
printf '{"total_time_s": 10.0, "num_samples": 1000, "samples_per_second": 1000.0}' >"$T/shape.log"
shapes "a document whose last line does not end" "9 contradicts_itself null samples/s null"
for e in 1 2 3; do
    printf '%s\n' "        $e/3      4.1G      1.1      0.9      1.2        33        640: 100% ━━━━━━━━━━━━ 78/78 3.${e}it/s 26.1s" \
        "                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): 100% ━━━━━━━━━━━━ 10/10 5.2it/s 1.9s"
done >"$T/shape.log"
shapes "a bar of Ultralytics without brackets" "0 ok 3.3 steps/s job" known
for e in 1 2 3; do printf '%s\n' "Epoch $e/3" "60000/60000 [==============================] - 5s 80us/sample - loss: 0.3$e"; done >"$T/shape.log"
shapes "Keras by the sample" "0 ok 1.25e+04 samples/s job" known
for i in $(seq 3 20); do echo "[2023-07-25 21:03:$((i + 10)),269] [INFO] [timer.py:215:stop] epoch=0/micro_step=$i/global_step=$i, RunningAvgSamplesPerSec=7.8, CurrSamplesPerSec=7.$i, MemAllocated=59.65GB"; done >"$T/shape.log"
shapes "DeepSpeed from its third step on" "0 ok 7.315 samples/s job" known
printf '%s\n' "Baseline throughput: 100.0 samples/s" "Optimized throughput: 150.0 samples/s" >"$T/shape.log"
shapes "two results that could be meant" "9 ambiguous null  null"
echo "Output generated in 10.00 seconds (20.00 tokens/s, 200 tokens, context 100)" >"$T/shape.log"
shapes "one answer of a model" "11 proposed 20 tokens/s null"
steps 'step %d took 25%d.0us'
shapes "what a step took" "11 proposed 0.000251 s job"
tap_done
