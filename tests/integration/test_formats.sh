#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: judge
# Every format on a log of its own (tests/integration/formats): recognised among all, its number, with tags and other line ends, and not `ok` where the log is damaged.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2016,SC2317
. "$(dirname "$0")/../tap_lib.sh"
F=tests/integration/formats

TOLD='(.files // [.])[] | [.format, .verdict, .value, .unit, .records] | map(tostring) | join(" ")'
told() { # FILE... ARGS...: format, verdict, value, unit, samples; a line each
    "$REPERF" measure --json "$@" 2>"$T/err" | jq -r "$TOLD"
}
options() { # of the current row: $args
    args=()
    [ "$opts" = - ] || read -ra args <<<"$opts"
}
rows() { # COMMAND: once for each row, with its columns as variables
    local file format rule opts value unit records lines
    while IFS=$'\t' read -r file format rule opts value unit records lines <&3; do
        options
        "$@"
    done 3<"$F/expected.tsv"
}

one() {
    "$REPERF" measure --json "$F/$file" --rule "$rule" "${args[@]}" >>"$T/ones" 2>"$T/err"
    wanted+=("$format ok $value $unit $records") names+=("$file: found, whole, its number by $rule")
}
wanted=() names=()
rows one
mapfile -t got < <(jq -r "$TOLD" "$T/ones")
for idx in "${!wanted[@]}"; do is "${got[idx]-}" "${wanted[idx]}" "${names[idx]}"; done

# --- no log is another format's ------------------------------------------------------------------------
"$REPERF" list formats --ids >"$T/ids"
mapfile -t files < <(cut -f1 "$F/expected.tsv" | sed "s,^,$F/," | sort -u)
while read -r id; do
    "$REPERF" measure --json --format "$id" "${files[@]}" 2>"$T/err" | jq -r --arg id "$id" '.files[] | select(.verdict != "no_metric" or .records != 0) | "\(.file | sub(".*/"; ""))\t\($id)"'
done <"$T/ids" | sort >"$T/taken"
while read -r file format; do
    taken=$(awk -F'\t' -v file="$file" -v own="$format" '$1 == file && $2 != own { printf " %s", $2 }' "$T/taken")
    case $file in airank-in-*) taken=${taken/ airank/} ;; mlperf-*) taken=${taken/ mlperf-training/} ;; tf-cnn-* | gluon-lm.log) taken=${taken/ csv/} ;; nvidia-ssd-dllogger.log) taken=${taken/ nvidia-ssd/} ;; esac # asked for by name alone; a table's head; the newer one counts, and is read first
    is "$taken" "" "$file: no other format reads anything in it"
    grep -q "^$file$(printf '\t')$format\$" "$T/taken"
    ok $? "$file: its own does"
done < <(cut -f1,2 "$F/expected.tsv" | sort -u)
known=$(cut -f2 "$F/expected.tsv" | sort -u | tr '\n' ' ')
for id in paddleclas paddlenlp-transformer mxnet-dllogger dle-transformer paddlerec mmengine hf-trainer hf-trainer-state torchvision pytorch-imagenet timm lightning nanogpt megatron; do
    like " $known" " $id " "$id has a log of its own"
done

# --- line ends and tags -------------------------------------------------------------------------------------------
dressed() {
    local want="$format ok $value $unit $records" got
    case $file in hf-trainer-state.json) return ;; esac
    sed 's/$/\r/' "$F/$file" >"$T/dos.log"
    sed $'s/^/\033[32m/; s/$/\033[0m/' "$F/$file" >"$T/colour.log"
    tr '\r' '\n' <"$F/$file" | sed 's/^/[1,0]<stdout>:/' >"$T/tag.log"
    mapfile -t got < <(told "$T/dos.log" "$T/colour.log" "$T/tag.log" --rule "$rule" "${args[@]}")
    is "${got[0]-}" "$want" "$file: with the line ends of another system"
    is "${got[1]-}" "$want" "$file: coloured"
    is "${got[2]-}" "$want" "$file: with mpirun's tags"
}
rows dressed

# --- damaged -------------------------------------------------------------------------------------------
bad() { # WHAT: $T/bad.log is not ok, as is seen by all_bad
    whats+=("$1")
    mv "$T/bad.log" "$T/bad${#whats[@]}.log"
}
all_bad() { # those of one row, by one program
    local got idx
    [ ${#whats[@]} -gt 0 ] || return
    mapfile -t got < <(told "${bad_logs[@]:0:${#whats[@]}}" --format "$format" --rule "$rule" "${args[@]}" | cut -d' ' -f2)
    for idx in "${!whats[@]}"; do
        [ "${got[idx]-}" != ok ] && [ -n "${got[idx]-}" ]
        ok $? "$file: ${whats[idx]}: ${got[idx]:-nothing}"
    done
}
bad_logs=("$T"/bad{1..9}.log)
begin_unknown=" $(jq -r 'select(.begin.unknown == true) | .id' manifests/formats/*.json | tr '\n' ' ')"
damaged() {
    local whats=()
    damages
    all_bad
}
damages() {
    local at middle
    case $file in lightning* | mlperf-run.log | airank*) return ;; esac
    mapfile -t at < <(grep -anE "$lines" "$F/$file" | cut -d: -f1)
    middle=${at[records > 3 ? 2 : 0]}
    head -n "${at[-1]}" "$F/$file" | head -c -9 >"$T/bad.log"
    case $file in paddlenlp-transformer.log | paddlerec.log | paddlenlp-tobal.log | dlperf-*) bad "cut within its last number" ;; esac
    { head -n "$middle" "$F/$file"; printf 'Traceback (most recent call last):\n'; } >"$T/bad.log"
    case $format in hf-trainer | horovod-benchmark | tf-cnn-benchmarks) ;; *) bad "cut in its midst by an error" ;; esac
    [ "$records" -gt 3 ] || return
    case $file in deepspeed-chat.log | tf-estimator* | stable-baselines3.log | olmo.log | modded-nanogpt.log | mindspore.log) # their figures stand without a step, or at any
        sed -E 's/([lL]oss[^0-9]{0,4} ?)[0-9.]+/\1nan/' "$F/$file" >"$T/bad.log"
        cmp -s "$T/bad.log" "$F/$file" || bad "losses on other lines that are no numbers"
        return
        ;;
    esac
    sed "${at[0]}d" "$F/$file" >"$T/bad.log"
    case $file in ngc-tf-bert.log | pytorch-imagenet.log | fairseq-json.log | paddle-reprod.log) ;; # theirs may be of a later step, as where the format says so
    *) [[ $begin_unknown == *" $format "* ]] || bad "its first line missing" ;; esac
    sed "${middle}{p}" "$F/$file" >"$T/bad.log"
    [ "$format" = ngc-tf-bert ] || bad "a line twice" # loss scaling repeats an iteration
    sed "${middle}d" "$F/$file" >"$T/bad.log"
    bad "a line missing"
    sed -E "${middle}s/((^|[^_])(lm |total_|train.)?loss[^0-9]{0,4} ?)[0-9.]+/\1nan/" "$F/$file" >"$T/bad.log"
    cmp -s "$T/bad.log" "$F/$file" || bad "a loss that is no number"
}
rows damaged

broken() { # FILE FORMAT RULE OPTIONS SED: its number is none
    local file=$1 format=$2 rule=$3
    read -ra args <<<"$4"
    sed -E "$5" "$F/$file" >"$T/bad.log"
    is "$(cmp -s "$T/bad.log" "$F/$file" && echo same; told "$T/bad.log" --format "$format" --rule "$rule" "${args[@]}" | cut -d' ' -f2,3)" "nan null" "$file: a number that cannot be read"
}
broken timm.log timm mean "" '8s#, +[0-9.]+/s  \(#,  11x/s  (#'
broken torchvision.log torchvision mean "" '5s#img/s: [0-9.]+#img/s: 3,105.25#'
broken megatron.log megatron samples "" '8s#500.0 #nan #'
broken nanogpt.log nanogpt tokens "" '11s#time [0-9.]+ms#time infms#'
broken mmengine-iter.log mmengine mean "" '9s# time: 0.5 # time: 0,5 #'
broken paddlenlp-transformer.log paddlenlp-transformer mean "--gpus 2" '7s#ips: [0-9.]+ #ips: -1 #'
broken hf-trainer.log hf-trainer tool "" "s#'train_samples_per_second': 81.25#'train_samples_per_second': nan#"
broken hf-trainer-state.json hf-trainer-state tool "" 's#"train_samples_per_second": 64.5#"train_samples_per_second": NaN#'
broken lightning-rich.log lightning rich-last "--gpus 1 --batch 2" '3s#21.00it/s#1_3it/s#'

# The length that a run states, and logs that stop before it.
short() { # FILE FORMAT RULE OPTIONS LINES: only its first lines
    read -ra args <<<"$4"
    head -n "$5" "$F/$1" >"$T/bad.log"
    is "$(told "$T/bad.log" --format "$2" --rule "$3" "${args[@]}" | cut -d' ' -f2)" incomplete "$1: ends between two lines, before its run does"
}
for each in "paddleclas-dynamic.log paddleclas mean 8" "paddleclas-static.log paddleclas static-mean 6" "paddlenlp-transformer.log paddlenlp-transformer mean 7" "mxnet-dllogger.log mxnet-dllogger mean 7" \
    "mmengine-iter.log mmengine mean 9" "mmengine-epoch.log mmengine epoch-mean 11" "torchvision.log torchvision mean 9" "timm.log timm mean 9" "nanogpt.log nanogpt tokens 11" \
    "megatron.log megatron samples 8" "hf-trainer.log hf-trainer steps 11" "mlperf-run.log mlperf accuracy-last 6" "lightning-rich.log lightning rich-last 3"; do
    read -r file format rule n <<<"$each"
    case $format in paddleclas | paddlenlp-transformer) extra="--gpus 4" ;; lightning) extra="--gpus 1 --batch 2" ;; *) extra="" ;; esac
    case $file in hf-trainer.log) continue ;; paddleclas-static.log) extra="--gpus 8" ;; esac
    short "$file" "$format" "$rule" "$extra" "$n"
done
head -n 11 "$F/hf-trainer.log" >"$T/bad.log"
is "$(told "$T/bad.log" --format hf-trainer | cut -d' ' -f2)" no_metric "hf-trainer.log: a run that did not reach its end has no figure"
head -n -3 "$F/hf-trainer-state.json" >"$T/bad.log"
is "$(told "$T/bad.log" --format hf-trainer-state --rule tool | cut -d' ' -f2)" incomplete "hf-trainer-state.json: cut before the end of its document"
sed 's/"max_steps": 50/"max_steps": 500/' "$F/hf-trainer-state.json" >"$T/bad.log"
is "$(told "$T/bad.log" --format hf-trainer-state --rule tool | cut -d' ' -f2)" incomplete "hf-trainer-state.json: before the stated number of steps"
sed '/"step": 30$/d' "$F/hf-trainer-state.json" >"$T/bad.log"
is "$(told "$T/bad.log" --format hf-trainer-state --rule tool | cut -d' ' -f2)" incomplete "hf-trainer-state.json: a record missing"

short caffe.log caffe mean "--gpus 1 --batch 1" 5
short gluon.log gluon mean "" 12 # in the last of its epochs
sed 's,\[1/1\],[1/500],' "$F/paddleocr.log" >"$T/bad.log"
is "$(told "$T/bad.log" | cut -d' ' -f2)" incomplete "paddleocr: the first epoch of 500"
sed 's, samples/s,,' "$F/paddleocr.log" >"$T/old.log"
is "$(told "$T/old.log")" "$(told "$F/paddleocr.log")" "paddleocr: releases before 2.5 print no unit after ips"

# --- whether the log shows the end of its run -----------------------------------------------------------------
ends() { # FILE [LINE ADDED]: verdict, and whether its end is stated
    { cat "$1"; [ $# -lt 2 ] || printf '%s\n' "$2"; } >"$T/end.log"
    "$REPERF" measure --json "$T/end.log" 2>"$T/err" | jq -r '[.verdict, .end] | join(" ")'
}
while IFS='#' read -r file line; do
    is "$(ends "$F/$file")" "ok unknown" "$file: nothing in it says that its run is over"
    is "$(ends "$F/$file" "$line")" "ok stated" "$file: its program's last line does"
done <<'EOF'
ultralytics.log#3 epochs completed in 0.012 hours.
fairseq.log#2024-01-05 10:00:10 | INFO | fairseq_cli.train | done training in 90.5 seconds
dle-transformer.log#| done training in 372.2 seconds
tf-estimator.log#INFO:tensorflow:Loss for final step: 1.25.
transformer-xl.log#End of training | test loss  9.15
detectron2-old.log#[11/20 10:01:50 d2.engine.hooks]: Total training time: 0:01:50 (0:00:00 on hooks)
EOF
for file in timm torchvision nanogpt megatron vllm lightning caffe; do
    is "$(ends "$F/$file.log")" "ok stated" "$file.log: its length or its last line is in it"
done
like "$("$REPERF" measure "$F/table.csv")" 'end not known: the log says neither how many steps its run makes nor that it is over' "said below the table"
is "$("$REPERF" measure "$F/table.csv" "$F/keras.log" "$F/timm.log" 2>&1 >"$T/out" | grep -c ': end not known: ')" 2 "and of each of several, next to their rows"
is "$("$REPERF" measure "$F/timm.log" | grep -c 'end not known')" 0 "but of no log that states it"

# --- particular formats --------------------------------------------------------------------------------
grep 'val_' "$F/keras.log" | tail -n 1 >"$T/one.log"
is "$(told "$T/one.log" --gpus 1 --batch 32 --rule single-epoch)" "keras ok 4571.428571428572 samples/s 1" "keras: one epoch has no line of its own, and a bar with validation is of training"
grep -v 'val_\|Epoch' "$F/keras.log" | tail -n 1 >"$T/one.log"
is "$(told "$T/one.log" | cut -d' ' -f2)" no_metric "keras: one without may be of evaluate"
sed 's/PASSED/FAILED/' "$F/hpl.log" >"$T/wrong.log"
is "$(told "$T/wrong.log" | cut -d' ' -f2)" incomplete "hpl: a wrong solution"
sed 's/: 0 OK/: 12 FAILED/' "$F/nccl-tests.log" >"$T/wrong.log"
is "$(told "$T/wrong.log" | cut -d' ' -f2)" incomplete "nccl-tests: sums that are wrong"
sed 's/err= 0/err= 5/' "$F/fio.log" >"$T/wrong.log"
is "$(told "$T/wrong.log" | cut -d' ' -f2)" incomplete "fio: a job that failed"
sed 's/Gbits/Kbits/' "$F/iperf3.log" >"$T/slow.log"
is "$(told "$T/slow.log" | cut -d' ' -f3,4)" "0.0195 Mbit/s" "iperf3: in the unit that the line has"
sed 's/^Successful requests.*/&\nFailed requests:                         0/' "$F/vllm.log" >"$T/all.log"
is "$(told "$T/all.log" | cut -d' ' -f2)" ok "vllm: no request failed"
sed 's/requests:                         0$/requests:                         3/' "$T/all.log" >"$T/some.log"
is "$(told "$T/some.log" | cut -d' ' -f2)" incomplete "vllm: some did"
sed 's/1,150/309/; s,/1150,/309,g' "$F/hf-trainer.log" >"$T/one.log" # as many steps as go with its rate and its time
sed 's/accumulation) = 64/accumulation) = 256/; s/Accumulation steps = 1/Accumulation steps = 4/' "$T/one.log" >"$T/acc.log"
is "$(told "$T/one.log" --rule steps | cut -d' ' -f3) $(told "$T/acc.log" --rule steps | cut -d' ' -f3)" "160 640" "hf-trainer: a step of the optimizer has all batches that it adds up"
is "$(told "$F/hf-trainer-state.json" --rule steps | cut -d' ' -f4)" steps/s "hf-trainer-state: how many, it does not say"

# --- what a log states of its job -------------------------------------------------------------------------
states() { # FILE: its facts
    "$REPERF" measure --json "$1" 2>"$T/err" | jq -r '[.facts[] | select(.name != "log_date") | "\(.name)=\(.value)"] | sort | join(" ")'
}
sed 's/num_machines=1/num_machines=2/' "$F/yolox.log" >"$T/two.log"
is "$(states "$T/two.log")" "global_batch=64 gpus_per_node=8 model=yolox-s nodes=2 precision=amp" "yolox: its devices are those of one machine"
{ echo "Namespace(backend='vllm', tensor_parallel_size=4, pipeline_parallel_size=2, data_parallel_size=1)"; cat "$F/vllm-offline.log"; } >"$T/pp.log"
is "$(states "$T/pp.log")" "" "vllm: ranks of tensor parallelism are not all where a pipeline has stages"
sed -i 's/pipeline_parallel_size=2/pipeline_parallel_size=1/' "$T/pp.log"
is "$(states "$T/pp.log")" "gpus=4" "vllm: and are where it has one"
{ echo "Num_devices: 4, shape (1, 4, 1, 1)"; cat "$F/maxtext.log"; } >"$T/devices.log"
is "$(states "$T/devices.log")" "gpus=4" "maxtext: its devices"
sed 's/1-D device mesh with .*/2-D device mesh with ["dp_shard", "tp"], [4, 2]/; s/global batch size 64/global batch size 32/' "$F/torchtitan.log" >"$T/tp.log"
is "$(told "$T/tp.log" --rule mean | cut -d' ' -f3)" "null" "torchtitan: the batches of data parallelism do not count the GPUs"
{ printf 'Config param %s\n' "per_device_batch_size: 8.0" "gradient_accumulation_steps: 2" "global_batch_size_to_train_on: 64"; cat "$F/maxtext.log"; } >"$T/acc.log"
is "$(told "$T/acc.log" --rule skip2 | cut -d' ' -f3)" 8000 "maxtext: nor do those that are accumulated"
{ echo '[2023-05-01 10:00:00,123] [    INFO] -   Gradient Accumulation steps = 4'; grep -v 'Gradient Accumulation' "$F/paddlenlp-trainer.log"; } >"$T/acc.log"
is "$(told "$T/acc.log" --rule steps-mean | cut -d' ' -f3,4)" "2 steps/s" "paddlenlp-trainer: steps are of all that is accumulated, and stay steps"
{ echo "2020-01-01 10:00:00.123456: I tensorflow/core/grappler/optimizers/auto_mixed_precision.cc:1816] Converted 1345/10897 nodes to float16 precision"; cat "$F/tf-estimator.log"; } >"$T/amp.log"
is "$(states "$T/amp.log")" "precision=amp" "tf-estimator: mixed precision"

# --- what a log does not state, though it looks so ---------------------------------------------------------
# A dataset's usual folder holds the original or its synthetic twin; a count with running statistics is no number of parameters.
about_data() { "$REPERF" measure --json --format "$1" "$T/data.log" 2>"$T/err" | jq -rc '[.facts[] | select(.name == "dataset" or .name == "parameters") | "\(.name)=\(.value)"]'; } # FORMAT
{ printf '%s\n' '  dataset_root: data/cityscapes' 'Total Params: 9675306' && cat "$F/airank-in-paddleseg.log"; } >"$T/data.log"
is "$(about_data paddleseg)" '[]' "paddleseg: neither the data nor the network"
sed -i 's,data/cityscapes$,data/cityscapes_300imgs,' "$T/data.log"
is "$(about_data paddleseg)" '["dataset=cityscapes_300imgs"]' "a folder of another name is stated"
echo "data_root = 'data/cityscapes/'" >"$T/data.log"
is "$(about_data mmseg)" '[]' "mmseg: nor there"
sed -i 's,data/cityscapes/,data/few/,' "$T/data.log"
is "$(about_data mmseg)" '["dataset=few"]' "but that"

# --- what NCCL spoke over ----------------------------------------------------------------------------------
mapfile -t used < <(jq -r '.cases[].format // empty' manifests/reports/{paddle-perf-,dlperf-,airank-}*.json | sort -u)
is "$(for format in "${used[@]}"; do jq -r '[.facts[] | select(.name == "nccl_transport")] | length' "manifests/formats/$format.json"; done | sort -u)" 1 \
    "every format of a case that is launched reads NCCL's transport"
{ echo 'node1:41:40 [0] NCCL INFO Channel 00 : 0[0] -> 8[0] [send] via NET/Socket/0' && cat "$F/airank-in-paddleseg.log"; } >"$T/nccl.log"
like "$("$REPERF" measure "$T/nccl.log" --format paddleseg 2>/dev/null)" 'nccl_transport +Socket' "and measure shows it"

# --- a protocol's lines within a program's log -----------------------------------------------------------
"$REPERF" measure --json "$F/airank-in-paddleseg.log" >"$T/doc.json" 2>"$T/err"
is "$(jq -rc '[.format, .value, (.beside[] | [.format, .name, .records, .verdict, .value, .unit, length])]' "$T/doc.json")" '["paddleseg",19.2,["airank","avg_ips",1,"ok",24.5,"images/s",6]]' "AI-Rank lines: the program's own are the log's, and both are read"
exits 0 "the document is valid" /usr/bin/python3 tests/integration/validate.py manifests/schema/measure-output.json "$T/doc.json"
"$REPERF" measure "$F/airank-in-paddleseg.log" >"$T/out" 2>"$T/err"
like "$(cat "$T/out")" 'in the same log, airank, avg_ips: ok, 24.5 images/s' "as text too"
cat "$F/mlperf-run.log" "$F/torchvision.log" >"$T/both.log"
is "$("$REPERF" measure --json "$T/both.log" 2>"$T/err" | jq -rc '[.format, .value, [.beside[].format]]')" '["mlperf",240.5,["torchvision"]]' "MLPerf's: the result is that of its lines, and the program's are beside it"
cat "$F/timm.log" "$F/torchvision.log" >"$T/both.log"
is "$(told "$T/both.log" | cut -d' ' -f1,2)" "null ambiguous" "two programs in one log are ambiguous"
tap_done
