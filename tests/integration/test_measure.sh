#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: judge
# reperf measure: published logs against independent counts and the published cells, made logs with every trap, exit statuses.
. "$(dirname "$0")/../tap_lib.sh"

field() { # JSON KEY: a plain member before "series"
    sed -nE "s/^.*\"$2\":(\"[^\"]*\"|[^,]*),.*$/\1/p" <<<"${1%%\"series\":*}" | tr -d '"'
}
measure() { # ARGS...: JSON into $out, status into $status
    out=$("$REPERF" measure --json "$@" 2>"$T/err")
    status=$?
}

# --- made logs ---------------------------------------------------------------------------------------
seg() { # STEP TOTAL IPS
    printf '2023-07-27 12:48:42 [INFO]\t[TRAIN] epoch: 1, iter: %s/%s, loss: 1.6502, lr: 0.009345, batch_cost: 0.4109, reader_cost: 0.00346, ips: %s samples/sec | ETA 00:02:32\n' "$@"
}
V=(/usr/bin/python3 tests/integration/validate.py)
whole() { for i in 1 2 3 4; do seg "$i" 4 "$((10 * i))"; done; }

whole >"$T/whole.log"
measure "$T/whole.log" --format paddleseg
is "$status $(field "$out" verdict) $(field "$out" value) $(field "$out" unit) $(field "$out" records)" "0 ok 19.2 samples/s 4" "a whole log: mean, unit, records"
is "$(grep -o '"series":\[{[^}]*}' <<<"$out")" '"series":[{"step":1,"value":10,"scope":"rank","rank":null}' "a sample has step, value, scope and rank, in this order"
is "$(grep -oE '^\{"schema_version":1,"file":"[^"]*","format":"paddleseg","records":4,"verdict":"ok","value":19.2,"unit":"samples/s","series":\[' <<<"$out" | wc -l)" 1 "the document's members stand in the documented order"
measure "$T/whole.log"
is "$(field "$out" format)" paddleseg "without --format the format is found"
measure "$T/whole.log" --format auto --rule skip1 --gpus 8
is "$status $(field "$out" value)" "0 240" "a rule with its scale"
measure "$T/whole.log" --rule paddleseg/skip1
is "$status $(field "$out" value) $(grep -c 'number of GPUs' <<<"$out")" "9 null 1" "a rule that must know the GPUs and does not: no value, and why"
exits 2 "an unknown rule is a usage error" "$REPERF" measure "$T/whole.log" --rule nonsense
like "$(cat "$T/err")" 'paddleseg/skip2-trim5' "and the rules that there are are named"
exits 2 "an unknown format is a usage error" "$REPERF" measure "$T/whole.log" --format nonsense
like "$(cat "$T/err")" 'reperf list formats' "and where the formats are named"
exits 2 "no file is a usage error" "$REPERF" measure --format auto
exits 2 "a log that is not there" "$REPERF" measure "$T/absent.log"
is "$(wc -c <"$T/out")" 0 "prints no half document"
# A folder of logs is each of its logs: by their names, at any depth, from several folders and with files.
mkdir -p "$T/both/run1/logs" "$T/both/.git" "$T/more" "$T/none"
whole >"$T/both/run1/train.log"
gzip -c "$T/whole.log" >"$T/both/run1/logs/node0.txt.gz"
whole >"$T/both/.git/hidden.log"
echo "print(1)" >"$T/both/run1/train.py"
whole >"$T/more/only.txt"
exits 0 "folders and a file" "$REPERF" measure "$T/both" "$T/whole.log" "$T/more" --json
is "$(jq -r '.files[] | "\(.file | ltrimstr($t)) \(.value)"' --arg t "$T/" "$T/out" | tr '\n' ' ')" "both/run1/logs/node0.txt.gz 19.2 both/run1/train.log 19.2 whole.log 19.2 more/only.txt 19.2 " "are all of their logs"
exits 9 "a log that no format reads is one of them" "$REPERF" measure "$T/both" --format airank --json
exits 2 "a folder without one" "$REPERF" measure "$T/none"
exits 2 "a round's table with other logs" "$REPERF" measure "$T/both" --results x.csv

# --- a format of ten lines ------------------------------------------------------------------------------
# shellcheck disable=SC2016 # the fence of a block
sed -n '/^```json$/,/^```$/{/^```/d;p}' manifests/formats/README.md >"$T/mine.json"
for s in 10 20 30 40; do echo "step $s/40 speed 250.5 img/s"; done >"$T/mine.log"
is "$(wc -l <"$T/mine.json")" 10 "the smallest format is of ten lines"
exits 0 "it reads a log" "$REPERF" measure "$T/mine.log" --format "$T/mine.json" --json
is "$(jq -r '"\(.format) \(.verdict) \(.value) \(.unit) \(.quantity) \(.series[0].scope)"' "$T/out")" "mine ok 250.5 images/s rate null" "a rate by its unit, of nobody knows whom"
exits 0 "and is valid" "${V[@]}" manifests/schema/format.json "$T/mine.json"

# --- an epoch that goes through a part of the dataset ---------------------------------------------------
epochs() { # STEPS: every hundredth of them
    echo "=> creating model 'resnet18'"
    for ((s = 0; s < $1; s += $1 / 10)); do echo "Epoch: [0][$s/$1] Time 0.250 (0.251) Loss 6.9$s (6.95)"; done
    echo "Epoch: [0][$(($1 - 1))/$1] Time 0.250 (0.251) Loss 6.5 (6.6)"
}
epochs 60 >"$T/part.log"
epochs 5004 >"$T/all.log"
whole_set=(--gpus 8 --batch 32 --dataset imagenet-2012)
exits 9 "60 steps of ImageNet" "$REPERF" measure "$T/part.log" "${whole_set[@]}" --json
is "$(jq -r '"\(.verdict) \(.value) \(.why)"' "$T/out")" "contradicts_itself null an epoch of 60 steps of 256 samples is of 15360, and imagenet-2012 has 1281167" "are a part of it"
exits 0 "5004 steps" "$REPERF" measure "$T/all.log" "${whole_set[@]}" --json
is "$(jq -r '"\(.verdict) \(.value)"' "$T/out")" "ok 0.25" "are all of it"
exits 2 "without a batch it is not used" "$REPERF" measure "$T/all.log" --gpus 8 --dataset imagenet-2012
exits 2 "nor for a log without epochs" "$REPERF" measure "$T/whole.log" --batch 32 --gpus 8 --dataset imagenet-2012
exits 3 "a dataset that is none" "$REPERF" measure "$T/all.log" --gpus 8 --batch 32 --dataset imagenet

# --- what the frameworks themselves wrote (logs/README.md) ---------------------------------------------
real() { # FILE FORMAT/RULE GPUS VALUE RECORDS
    measure "tests/integration/logs/$1" --format "${2%/*}" --rule "${2#*/}" --gpus "$3"
    is "$status $(field "$out" verdict) $(field "$out" value) $(field "$out" records)" "0 ok $4 $5" "$1"
}
real tf2-resnet50.log tf2-timehistory/skip1 1 0.77 6 # of 0.79 0.79 0.71 0.76 0.80
is "$(jq -c '[.facts[] | select(.name == "batch_per_gpu" or .name == "dataset_images") | .value]' <<<"$out")" '["2","60"]' "of two configurations that it prints, the later one holds"
real dle-resnet50.log dllogger-pytorch/skip1 1 0.41944444444444445 19
real mxnet-resnet50.log mxnet/table 2 4.018 1
real bert-tf.log ngc-tf-bert/last20 1 0.3562222222222222 9
real bert-torch.log ngc-pytorch-bert/tool 2 0.3645967685731278 1

verdict() { # NAME WANTED-VERDICT [ARGS...] < log
    local name=$1 wanted=$2
    shift 2
    cat >"$T/made.log"
    measure "$T/made.log" --format paddleseg "$@"
    is "$status $(field "$out" verdict) $(field "$out" value)" "9 $wanted null" "$name: verdict $wanted, exit 9, no value"
}
verdict "zero bytes" no_metric </dev/null
verdict "another text" no_metric < <(printf 'ips: 127.0.0.1\nips: None\n')
verdict "a rate that is NaN" nan < <(whole; seg 4 4 nan)
verdict "an infinite rate" nan < <(whole; seg 4 4 inf)
verdict "a rate of zero" nan < <(whole; seg 4 4 0.0000)
part() { # NAME WANTED-VERDICT VALUE < log: the number is given, and the status says that it is not of a whole log
    cat >"$T/made.log"
    measure "$T/made.log" --format paddleseg
    is "$status $(field "$out" verdict) $(field "$out" value)" "9 $2 $3" "$1: verdict $2, exit 9, its value"
    measure "$T/made.log" --format paddleseg --allow-incomplete
    is "$status $(field "$out" verdict)" "0 $2" "$1: --allow-incomplete: exit 0, the same verdict"
}
part "a log cut in its last line" truncated 24 < <(whole | head -c -60)
part "a log cut between lines" incomplete 20 < <(whole | head -n 2)
verdict "two runs" ambiguous < <(whole; whole)
measure "$T/whole.log" --format airank
is "$status $(field "$out" verdict)" "9 no_metric" "a log of another format: no_metric"
{ whole; printf 'AI-Rank-log 1558631910.424 avg_ips:4.7images/sec\nAI-Rank-log 1558631910.424 test_finish\n'; } >"$T/both.log"
measure "$T/both.log"
is "$status $(field "$out" verdict) $(field "$out" format)" "0 ok paddleseg" "AI-Rank lines in a log are read in addition to its own"
{ whole; printf '2022-02-10 06:18:09,760 - mmseg - INFO - Iter [1/1]\tlr: 4.579e-04, eta: 0:00:00, time: 1.224, data_time: 0.019, memory: 19187\n'; } >"$T/both.log"
measure "$T/both.log"
is "$status $(field "$out" verdict) $(field "$out" format)" "9 ambiguous null" "two formats fit: ambiguous"
like "$out" 'several formats fit[^"]*mmseg, paddleseg' "and both are named"
printf 'no log at all\n' >"$T/text"
measure "$T/text"
is "$status $(field "$out" verdict) $(field "$out" format)" "9 no_metric null" "no format fits: no_metric"

# NUL, ESC, CR bars, mpirun tags
{
    printf 'Iteration:  10%%|#| 1/9\r'
    printf '\033[32m'
    seg 1 2 10
    printf 'Thu Dec 17 15:05:20 2020[1,0]<stdout>:'
    seg 2 2 20 | sed 's/ips/i\x00p\x00s/'
    printf '\0\0\0'
} >"$T/traps.log"
measure "$T/traps.log" --format auto
is "$status $(field "$out" records) $(field "$out" value)" "0 2 15" "NUL, ESC, CR bars and mpirun tags are taken off"

# MLPerf: a run that says it failed has no value; a score can be asked for where no rate is printed
ml() { printf ':::MLLOG {"namespace": "", "time_ms": 1613150138000, "event_type": "X", "key": "%s", "value": %s, "metadata": {"lineno": 1, %s}}\n' "$@"; }
{ ml run_start null '"step": 0'; ml eval_accuracy 0.7591 '"epoch_num": 4'; ml run_stop null '"status": "success"'; } >"$T/ml.log"
measure "$T/ml.log" --format mlperf --rule accuracy-last
is "$status $(field "$out" value)" "0 0.7591" "a score without a rate"
measure "$T/ml.log" --format mlperf
is "$status $(field "$out" verdict) $(field "$out" value)" "9 ok null" "and without the rule its time, of which here none passes"
{ ml run_start null '"step": 0'; ml tracked_stats '{"throughput": 1234.5}' '"step": 4'; ml run_stop null '"status": "aborted"'; } >"$T/ml.log"
measure "$T/ml.log"
is "$status $(field "$out" format) $(field "$out" verdict)" "9 mlperf incomplete" "a run that says it was aborted is incomplete"
# the bundled workloads
{
    echo '{"event":"run_start","version":"0.1.0","model":"resnet50","device":"cpu","backend":"cpu","precision":"fp32","dtype":"f32","batch":4,"image":[64,64],"steps":4,"warmup_steps":2,"ranks":2,"rank":0,"threads":2,"seed":0,"parameters":25557032,"data":"synthetic","lr":0.01,"momentum":0.9,"weight_decay":0.0001,"label_smoothing":0}'
    for step in 1 2 3 4; do
        echo "{\"event\":\"step\",\"step\":$step,\"steps\":4,\"rank\":0,\"loss\":2.5,\"step_time_ns\":2000000000,\"samples_per_s\":$step,\"lr\":0.01}"
    done
} >"$T/wl.log"
stop='{"event":"run_stop","steps":4,"warmup_steps":2,"rank":0,"elapsed_ns":4000000000,"samples_per_s":3.5,"loss_first":2.5,"loss_last":2.5}'
measure "$T/wl.log"
is "$status $(field "$out" format) $(field "$out" verdict)" "9 reperf incomplete" "a workload's log without its run_stop is incomplete"
echo "$stop" >>"$T/wl.log"
measure "$T/wl.log" --rule median-after-warmup --gpus 2
is "$status $(field "$out" value)" "0 3.5" "a workload's log of two ranks: what rank 0 prints is the job's, and not taken twice"
echo '{"event":"fatal","rank":1,"device":"cpu","where":"x.c:1","what":"broken"}' >>"$T/wl.log"
measure "$T/wl.log"
is "$status $(field "$out" verdict)" "9 incomplete" "one rank's fatal line: the run is not whole"

# The steps that a run is to make, stated by a fact only (total_from).
{
    echo "training_script_args: ['--max_steps', '60', '--logging_steps', '20']"
    for step in 20 40 60; do echo "global step $step, epoch: 0, batch: $((step - 1)), loss: 9.5, speed: 4.00 step/s, ips: 128.00 sequences/s"; done
} >"$T/bert.log"
measure "$T/bert.log" --format paddlenlp
is "$status $(field "$out" verdict) $(field "$out" value)" "0 ok 128" "the stated number of steps is reached"
head -n 3 "$T/bert.log" >"$T/bert-cut.log"
measure "$T/bert-cut.log" --format paddlenlp
is "$status $(field "$out" verdict) $(field "$out" value)" "9 incomplete 128" "a log that ends before the steps its arguments state"

# several files: one document; one that cannot be read is an entry, the others count
measure "$T/whole.log" "$T/absent.log" "$T/traps.log"
is "$status $(grep -o '"verdict":"ok"' <<<"$out" | wc -l) $(grep -o '"error":' <<<"$out" | wc -l)" "2 2 1" "several files: one document, errors as entries, first failure as status"
if command -v python3 >/dev/null; then
    /usr/bin/python3 -c 'import json,sys; d = json.load(sys.stdin); assert len(d["files"]) == 3' <<<"$out"
    ok $? "it is valid JSON with three entries"
fi

# --- size ---------------------------------------------------------------------------------------------
size=256M
in_test_all "a log of 4 GiB" && size=4G
truncate -s $size "$T/sparse.log"
peak_kb() { # COMMAND...: its resident set at most; its output and status in $T/peak.out and $T/peak.status
    /usr/bin/time -q -f %M -o "$T/peak" "$@" >"$T/peak.out" 2>/dev/null
    echo $? >"$T/peak.status"
    cat "$T/peak"
}
peak=$(peak_kb "$REPERF" measure --json "$T/sparse.log" --format paddleseg)
is "$(cat "$T/peak.status") $(field "$(cat "$T/peak.out")" verdict)" "9 no_metric" "NULs, $size: no_metric"
[ "$peak" -gt 0 ] && [ "$peak" -lt 65536 ]
ok $? "in under 64 MB ($peak kB)"
rm "$T/sparse.log"
{ whole; head -c 3000000 /dev/zero | tr '\0' 'x'; } >"$T/endless.log"
exits 9 "one endless line is a parse error" "$REPERF" measure "$T/endless.log" --format paddleseg
like "$(cat "$T/err")" "line at byte $(whole | wc -c) is longer than 1048576 bytes" "that names the byte"
exits 9 "also where the format is to be found" "$REPERF" measure "$T/endless.log"
"$REPERF" measure "$T/whole.log" --json >/dev/full 2>"$T/err"
is $? 10 "a full disk is an error"

# --- what a log holds against itself ---------------------------------------------------------------------
# A contradiction takes ok away on every way in: a rule that somebody names is one.
for n in $(seq 20); do printf ' [2024-04-06 10:%02d:00] iteration %d/ 20 | consumed samples: 4 | elapsed time per iteration (ms): 1381.0 | learning rate: 1.0E-4 | global batch size: 4 | lm loss: 9.9E+00 |\n' "$n" "$n"; done >"$T/clock.log"
for n in $(seq 20); do printf ' iteration %d/ 20 | consumed samples: 4 | elapsed time per iteration (ms): %s.0 | learning rate: 1.0E-4 | global batch size: 4 | lm loss: 9.9E+00 |\n' "$n" $((n < 12 ? 1381 : 2500)); done >"$T/levels.log"
for rule in "" megatron/samples megatron/median; do
    measure "$T/clock.log" ${rule:+--rule "$rule"}
    is "$status $(field "$out" verdict) $(field "$out" value)" "9 contradicts_itself null" "a clock that contradicts the times, rule ${rule:-none}"
    measure "$T/levels.log" ${rule:+--rule "$rule"}
    is "$status $(field "$out" verdict) $(field "$out" value)" "9 two_levels null" "two levels, rule ${rule:-none}"
done
printf 'Num examples = 8000\n  Num Epochs = 1\n{"train_runtime": 100.0, "train_samples_per_second": 800.0, "train_steps_per_second": 10.0}\n' | sed "s/\"/'/g" >"$T/trainer.log"
for rule in "" "$("$REPERF" measure "$T/trainer.log" --rule none 2>&1 | grep -o 'hf-trainer/[a-z]*' | head -1)"; do
    measure "$T/trainer.log" ${rule:+--rule "$rule"}
    is "$status $(field "$out" verdict)" "9 contradicts_itself" "items and time that contradict the rate, rule ${rule:-none}"
done

# --- the published logs ---------------------------------------------------------------------------------
if ! need_shared "measure: published logs, counts and cells"; then tap_done; fi
logs="$SHARED/published/logs"
count() { # FORMAT PATTERN(ERE) FILE...: lines by grep against records by measure
    local format=$1 pattern=$2 bad=0 n=0 file wanted got
    shift 2
    mapfile -t got < <("$REPERF" measure "$@" --format "$format" --json 2>/dev/null | jq '(.files // [.])[].records')
    for file in "$@"; do
        wanted=$(tr '\r' '\n' <"$file" | tr -d '\0' | grep -acE -- "$pattern")
        if [ "$wanted" != "${got[n]-}" ] || [ "${got[n]}" -eq 0 ]; then
            bad=$((bad + 1))
            echo "# $file: grep $wanted, measure ${got[n]-}"
        fi
        n=$((n + 1))
    done
    [ "$bad" -eq 0 ] && [ "$n" -gt 0 ]
    ok $? "$format: $n logs, as many records as grep counts lines"
}
perf=$logs/paddle-perf-8903782 seg=$logs/paddle-perf-e7a07c4
count paddleclas-static 'train step:.* ips: [0-9.]+ images/sec' "$perf"/ResNet50V1.5/logs/*.txt
count dllogger-pytorch 'Iteration: [0-9]+ .*train\.total_ips : [0-9.]+ img/s' "$perf"/ResNet50V1.5/OtherReports/PyTorch/logs/*.txt
count dllogger-tf '\(0, [0-9]+\) total_ips : [0-9.]+' "$perf"/ResNet50V1.5/OtherReports/TensorFlow/logs/*.txt
count paddlenlp 'global step.*ips ?: ?[0-9.]+ sequences/s' "$perf"/Bert/logs/*.log
count ngc-tf-bert 'Iteration: [0-9]+ +throughput_train : [0-9.]+ seq/s' "$perf"/Bert/OtherReports/TensorFlow/logs/*.log
count ngc-pytorch-bert 'training_sequences_per_second : [0-9.]+' "$perf"/Bert/OtherReports/PyTorch/logs/*.log
count paddleseg '\[TRAIN\].* ips: [0-9.]+ samples/sec' "$seg"/*/logs/paddle/*
count mmseg 'Iter \[[0-9]+/[0-9]+\].* time: [0-9.]+' "$seg"/*/OtherReports/PyTorch/logs/hrnet* "$seg"/*/OtherReports/PyTorch/logs/pytorch/* "$logs"/airank-*/*/log/*.log
count tf2-timehistory 'TimeHistory: .* examples/second between steps' "$logs"/dlperf-*/logs/tensorflow/resnet50/*/*.log
count mxnet '^ +[0-9]+ +\| +(387\.07|2998\.1|1380\.6|9218\.9|1447\.6|9765\.6) +\|' "$perf"/ResNet50V1.5/OtherReports/MxNet/logs/*.txt

# --format auto finds each log's format; only the log that holds two formats' lines is ambiguous
find "$logs" -type f | sort >"$T/all"
mapfile -t all <"$T/all"
"$REPERF" measure "${all[@]}" >"$T/table" 2>/dev/null
is "$(awk 'NR > 2 { print $2 }' "$T/table" | sort | uniq -c | awk '{ printf "%s %s ", $2, $1 }')" \
    "dllogger-pytorch 10 dllogger-tf 9 mmseg 14 mxnet 3 ngc-pytorch-bert 13 ngc-tf-bert 16 paddleclas-static 9 paddlenlp 12 paddleseg 16 tf2-timehistory 30 " "auto finds the format of every published log"
is "$(awk 'NR > 2 && $NF != "ok" { n = split($1, p, "/"); print p[n], $2, $NF }' "$T/table" | sort | tr '\n' ';')" \
    "GPUx1.log mmseg incomplete;GPUx8.log mmseg incomplete;base_bs32_fp32_gpu32.log paddlenlp incomplete;mxnet_gpu1_gpu8_amp_bs128.txt mxnet ambiguous;mxnet_gpu1_gpu8_amp_bs192.txt mxnet ambiguous;mxnet_gpu1_gpu8_fp32_bs96.txt mxnet ambiguous;paddle_gpu32_amp_bs128.txt paddleclas-static incomplete;paddle_gpu32_amp_bs208.txt paddleclas-static incomplete;paddle_gpu32_fp32_bs96.txt paddleclas-static incomplete;tf_bert_pretraining_lamb_base_fp16_bs64_gpu32.log ngc-tf-bert incomplete;tf_bert_pretraining_lamb_base_fp16_bs96_gpu32.log ngc-tf-bert incomplete;tf_bert_pretraining_lamb_base_fp32_bs32_gpu32.log ngc-tf-bert incomplete;tf_bert_pretraining_lamb_base_fp32_bs48_gpu32.log ngc-tf-bert incomplete;tf_bert_pretraining_lamb_base_without_gradacc_fp16_bs64_gpu32.log ngc-tf-bert incomplete;tf_bert_pretraining_lamb_base_without_gradacc_fp16_bs96_gpu32.log ngc-tf-bert incomplete;tf_bert_pretraining_lamb_base_without_gradacc_fp32_bs32_gpu32.log ngc-tf-bert incomplete;tf_bert_pretraining_lamb_base_without_gradacc_fp32_bs48_gpu32.log ngc-tf-bert incomplete;tf_gpu32_amp_bs128.txt dllogger-tf ambiguous;" "and only logs that are so are incomplete or ambiguous"

# The published cells: LOG FORMAT RULE GPUS BATCH PRINTED, by the rule that was found for the whole group (research/log-formats.md).
cell() { # PRINTED FORMAT RULE NODES GPUS BATCH LOG [HOW]: the value at the printed digits; truncated; or within 0.05 % (match)
    local printed=$1 value decimals batch=(--batch "$6")
    jq -e --arg rule "$3" '.rules[] | select(.name == $rule) | .statistic == "timestamps" or ((.scale // "") | startswith("global_batch"))' "manifests/formats/$2.json" >"$T/takes" || batch=()
    value=$("$REPERF" measure "$logs/$7" --format "$2" --rule "$3" --nodes "$4" --gpus "$5" "${batch[@]}" --json 2>/dev/null | sed -E 's/.*"verdict":"[a-z_]*","value":([^,]*),.*/\1/')
    decimals=${printed#*.}
    [ "$decimals" = "$printed" ] && decimals= # none
    awk -v v="$value" -v p="$printed" -v d="${#decimals}" -v how="${8:-nearest}" 'BEGIN {
        m = 10 ^ d; r = how == "truncate" ? int(v * m + 1e-6) / m : sprintf("%.*f", d, v)
        if (how == "match") exit !(v + 0 > 0 && (v - p) ^ 2 < (0.0005 * p) ^ 2)
        exit !(v + 0 > 0 && (r - p) ^ 2 < (0.5 / m) ^ 2 / 4) }'
    ok $? "cell $printed = $3 of ${7##*/} ($value)"
}
pc=paddle-perf-8903782/ResNet50V1.5
cell 383.0 paddleclas-static skip10 1 1 96 $pc/logs/paddle_gpu1_fp32_bs96.txt
cell 1400.1 paddleclas-static skip10 1 1 208 $pc/logs/paddle_gpu1_amp_bs208.txt
cell 2753.3 paddleclas-static skip10 1 8 96 $pc/logs/paddle_gpu8_fp32_bs96.txt
cell 8322.9 paddleclas-static skip10 1 8 128 $pc/logs/paddle_gpu8_amp_bs128.txt
cell 408.3 dllogger-tf steps200-499 1 1 128 $pc/OtherReports/TensorFlow/logs/tf_gpu1_fp32_bs128.txt
cell 21826.6 dllogger-tf steps200-499 4 32 128 $pc/OtherReports/TensorFlow/logs/tf_gpu32_amp_bs128.txt
cell 23280.9 dllogger-tf step202 4 32 256 $pc/OtherReports/TensorFlow/logs/tf_gpu32_amp_bs256.txt
cell 6014.7 dllogger-pytorch summary 1 8 128 $pc/OtherReports/PyTorch/logs/pytorch_gpu8_amp_bs128.txt
cell 17940.7 dllogger-pytorch skip11 4 32 128 $pc/OtherReports/PyTorch/logs/pytorch_gpu32_amp_bs128.txt
cell 387.1 mxnet table 1 1 96 $pc/OtherReports/MxNet/logs/mxnet_gpu1_gpu8_fp32_bs96.txt
cell 2998.1 mxnet table 1 8 96 $pc/OtherReports/MxNet/logs/mxnet_gpu1_gpu8_fp32_bs96.txt
bert=paddle-perf-8903782/Bert
cell 147.14 paddlenlp skip5 1 1 32 $bert/logs/base_bs32_fp32_gpu1.log match
cell 4202.70 paddlenlp skip1 1 8 96 $bert/logs/base_bs96_fp16_gpu8.log match
measure "$logs/$bert/logs/base_bs32_fp32_gpu32.log" --format paddlenlp --rule skip5 --gpus 32 --batch 32
like "$status $out" "^9 .*\"verdict\":\"incomplete\",\"value\":[0-9.]+,.*\"why\":\"the log ends at step 400 of 500\"" "a published log that ends before its run does"
cell 142.67 ngc-tf-bert last20 1 1 32 $bert/OtherReports/TensorFlow/logs/tf_bert_pretraining_lamb_base_fp32_bs32_gpu1.log
cell 15941.1 ngc-pytorch-bert tool 4 32 64 $bert/OtherReports/PyTorch/logs/bert_base_lamb_pretraining.pyt_bert_pretraining_phase1_fp16_bs64_gpu32.log
hr=paddle-perf-e7a07c4/HRNetW18
for row in "19.428 1 fp32_DP_N1C1" "117.205 8 fp32_DP_N1C8" "22.115 1 fp16_DP_N1C1" "115.468 8 fp16_DP_N1C8"; do
    read -r printed gpus name <<<"$row"
    cell "$printed" paddleseg skip2-trim5 1 "$gpus" 8 "$hr/logs/paddle/PaddleSeg_fcn_hrnetw18_bs8_${name}_log"
done
cell 15.49 mmseg skip5 1 1 8 $hr/OtherReports/PyTorch/logs/hrnet_torch_bs8_fp32_gpu1
cell 60.299 mmseg skip5 1 8 8 $hr/OtherReports/PyTorch/logs/hrnet_torch_bs8_fp32_gpu8
dl=paddle-perf-e7a07c4/DeepLabV3P
cell 6.13 paddleseg skip5 1 1 4 $dl/logs/paddle/Deeplabv3_FP32_BS4-N1.log truncate
cell 96.03 paddleseg skip5 1 8 4 $dl/logs/paddle/Deeplabv3_FP16_BS4-N8.log truncate
cell 25.65 mmseg skip2 1 8 4 $dl/OtherReports/PyTorch/logs/pytorch/deeplabv3p_c8_fp32.log
cell 44338.456 airank time-to-train 1 8 4 airank-34c7743/deeplabv3plus/log/GPUx8.log
# median of five runs
for run in 1 2 3 4 5; do
    measure "$logs/dlperf-e36df2e/logs/tensorflow/resnet50/4n8g/rn50_b128_fp32_$run.log" --rule tf2-timehistory/lines2-6
    field "$out" value
done | sort -n | sed -n 3p >"$T/median"
is "$(printf '%.2f' "$(cat "$T/median")")" 9418.44 "cell 9418.44 = median of five runs' mean of lines 2 to 6"

# Facts that the reports do not say, or say otherwise (research/report-facts.md, E1 and E10).
# Logs without the line that ends a run: their value, and status 9, whatever the rule (audit judges their cells and says so).
for log in $pc/logs/paddle_gpu32_fp32_bs96.txt $bert/OtherReports/TensorFlow/logs/tf_bert_pretraining_lamb_base_fp16_bs96_gpu32.log; do
    measure "$logs/$log" --gpus 32
    like "$status $out" "^9 .*\"verdict\":\"incomplete\",\"value\":[0-9.]+,.*\"why\":\"the line that ends a run is missing\"" "${log##*/} was cut before its end"
done

states() { # FILE NAME VALUE
    measure "$logs/$1"
    like "$out" "\"name\":\"$2\",\"value\":\"$3\"" "${1##*/} states $2 $3"
}
states $dl/OtherReports/PyTorch/logs/pytorch/deeplabv3p_c32_fp32.log batch_per_gpu 8
states $dl/logs/paddle/Deeplabv3_FP32_BS4-N8.log cuda 11.2
states $hr/logs/paddle/Hrnet_FP32_BS8-N32.log log_date 2021-05-31
states $hr/logs/paddle/Hrnet_FP32_BS8-N32.log cuda 10.1
grep -qE '"name":"(parameters|dataset)"' <<<"$out"
is $? 1 "a count with running statistics is no number of parameters, and a folder called cityscapes does not say what is in it"
states $hr/OtherReports/PyTorch/logs/hrnet_torch_bs8_fp16_gpu8 code_version '0\.30\.0\+a00a3b6'
states $hr/logs/paddle/PaddleSeg_fcn_hrnetw18_bs8_fp32_DP_N1C8_log dataset_repeats 500
grep -q '"code_version"' <<<"$out"
is $? 1 "what PaddleSeg prints where it was never installed, 0.0.0.dev0, is no version"
states $pc/OtherReports/MxNet/logs/mxnet_gpu1_gpu8_fp32_bs96.txt nccl 2.4.7
# What launchers and NCCL say of the whole job.
network() { # NCCL-LINE...: a collective's log of two hosts
    echo '# nThread 1 nGpus 1 minBytes 8388608 maxBytes 8388608 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0'
    for host in n1 n2; do printf "$host:41:52 [0] NCCL INFO %s\n" "$@"; done
    printf '#  Rank  %s Group  0 Pid  4%s on  n%s device  0 [0x07] Some Card\n' 0 1 1 1 2 2
    printf '#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n'
    printf '     8388608       2097152     float     sum      -1   4311.2    1.95    1.95      0   4301.7    1.95    1.95      0\n'
    printf '# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1.95\n#\n'
}
while IFS='|' read -r name verdict lines; do
    IFS=';' read -ra said <<<"$lines"
    network "${said[@]}" >"$T/net.log"
    measure "$T/net.log"
    is "$(field "$out" verdict)" "$verdict" "NCCL: $name"
done <<'END'
no device, and sockets between hosts|contradicts_itself|NET/IB : No device found.;NET/Socket : Using [0]docker0:172.17.0.1<0>;Using network Socket
a device that is not used|contradicts_itself|NET/IB : Using [0]mlx5_0:1/IB;Channel 00/0 : 1[1] -> 0[0] [receive] via NET/Socket/0
InfiniBand|ok|NET/IB : Using [0]mlx5_0:1/IB;Channel 00/0 : 1[1] -> 0[0] [receive] via NET/IB/0
sockets that were asked for|ok|NCCL_IB_DISABLE set by environment to 1.;NET/Socket : Using [0]eth0:10.0.0.1<0>;Using network Socket
END
network 'NET/IB : No device found.' 'Using network Socket' | grep -v '^n2' >"$T/net.log"
measure "$T/net.log"
is "$(field "$out" verdict)" ok "NCCL: one host needs no network"
tf() { # DEVICES: the settings of a benchmark of one process, whose batch is of so many
    printf 'Model:       resnet50\nBatch size:  %s global\n             32 per device\nNum batches: 40\n' $((32 * $1))
    printf "Devices:     ['horovod/gpu:0']\nData format: NCHW\n"
    for n in 1 10 20 30 40; do printf '%s\timages/sec: 301.5 +/- 0.1 (jitter = 0.2)\t7.5\n' "$n"; done
    printf -- '----\ntotal images/sec: 301.51\n----\n'
}
tf 1 >"$T/tf.log"
measure "$T/tf.log"
is "$status $(jq -r '.facts[] | select(.name == "gpus") | .value' <<<"$out")" "0 1" "a batch of one device, and one device"
tf 4 >"$T/tf.log"
measure "$T/tf.log"
is "$status $(field "$out" verdict)" "9 contradicts_itself" "a batch of four, and one device"
like "$(jq -r .why <<<"$out")" 'a batch of 128 \(line 2\) over 32 of one device \(line 3\) is of 4 devices, and line 5 states 1' "with the lines"
{ echo '$ mpirun -np 16 -H a:8,b:8 python tf_cnn_benchmarks.py'; tf 1; } >"$T/tf.log"
measure "$T/tf.log"
is "$(jq -r '[.facts[] | select(.name == "gpus")] | length' <<<"$out")" 0 "the devices of one of 16 processes are not the job's"
# Not every comma is a CSV; the unit says what a rate counts, as the name would.
for t in 30.2 0.5 0.5 0.5 0.5 0.5 0.5 0.5; do echo "step $((n += 1)) took $t s, $(awk "BEGIN { print 8192 / $t }").0 tokens/s"; done >"$T/commas.log"
measure "$T/commas.log"
is "$(jq -r .format <<<"$out")" null "a log's first line with a comma is no head of a table"
printf 'Total samples: 10000\nElapsed time: 50.0 s\nThroughput: %s.0 samples/s\n' 2000 >"$T/sum.log"
"$REPERF" measure "$T/sum.log" --suggest "$T/sum.json" --json >"$T/out" 2>"$T/err"
is "$? $(jq -r .verdict "$T/out")" "9 contradicts_itself" "samples and seconds refute a throughput in samples/s"
printf 'Total samples: 10000\nElapsed time: 50.0 s\nThroughput: %s.0 samples/s\n' 200 >"$T/sum.log"
"$REPERF" measure "$T/sum.log" --suggest "$T/sum.json" --json >"$T/out" 2>"$T/err"
is "$? $(jq -r .verdict "$T/out")" "0 ok" "and confirm one that is theirs"
# A known format leaves a slow start out as an unknown one does, and says so; a batch that no number takes is refused.
for step in $(seq 0 40); do echo "{\"step\": $step, \"samples_per_sec\": $((step ? 15000 : 900))}"; done >"$T/warm.jsonl"
exits 0 "a slow first record" "$REPERF" measure "$T/warm.jsonl"
like "$(cat "$T/out")" ' 15000 +samples/s +40 +ok' "is not in the number"
like "$(cat "$T/out")" '^skip 1 of 41: slow start$' "which is said"
for step in $(seq 10 10 50); do echo "iter $step: loss 2.3, time 98.5ms, mfu 20.00%"; done >"$T/nano.log"
exits 2 "a batch for a time" "$REPERF" measure "$T/nano.log" --batch 12 --gpus 1
like "$(cat "$T/err")" '--batch 12 is not used: a number without a rule takes no batch' "is not taken silently"
tap_done
