#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: judge
# reperf measure beyond what tests/logs holds: documents, options, folders, size, a format of ten lines, the published logs against independent counts.
. "$(dirname "$0")/../tap_lib.sh"

field() { # JSON KEY: a plain member before "series"
    sed -nE "s/^.*\"$2\":(\"[^\"]*\"|[^,]*),.*$/\1/p" <<<"${1%%\"series\":*}" | tr -d '"'
}
measure() { # ARGS...: JSON into $out, status into $status
    out=$("$REPERF" measure --json "$@" 2>"$T/err")
    status=$?
}

whole() { cat tests/logs/four.log; }

whole >"$T/whole.log"
measure "$T/whole.log" --format paddleseg
is "$(grep -o '"series":\[{[^}]*}' <<<"$out")" '"series":[{"step":1,"value":10,"scope":"rank","rank":null}' "a sample has step, value, scope and rank, in this order"
is "$(grep -oE '^\{"schema_version":1,"file":"[^"]*","format":"paddleseg","records":4,"verdict":"ok","value":19.2,"unit":"samples/s","series":\[' <<<"$out" | wc -l)" 1 "the document's members stand in the documented order"
fails 2 'paddleseg/skip2-trim5' "an unknown rule is a usage error" "$REPERF" measure "$T/whole.log" --rule nonsense
fails 2 'reperf list formats' "an unknown format is a usage error" "$REPERF" measure "$T/whole.log" --format nonsense
exits 2 "no file is a usage error" "$REPERF" measure --format auto
leaves 2 output "" "a log that is not there prints no half document" "$REPERF" measure "$T/absent.log"
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
valid format "and is valid" "$T/mine.json"

# several files: one document; one that cannot be read is an entry, the others count
measure "$T/whole.log" "$T/absent.log" tests/logs/workload.log
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
ok $((!(peak > 0 && peak < 65536))) "in under 64 MB ($peak kB)"
rm "$T/sparse.log"
for n in 1 2 3; do echo "$n $((1700000000 + 30 * n)).5 perf/samples_per_sec 320"; done | /usr/bin/python3 tests/integration/make_events.py "$T/events"
exits 0 "an event file from standard input" "$REPERF" measure - <"$T/events"
"$REPERF" measure "$T/whole.log" --json >/dev/full 2>"$T/err"
is $? 10 "a full disk is an error"

for step in 1 2 3 4; do echo " $step: 825.5, 680.2 avg loss, 0.001 rate, 2.0 seconds, $((64 * step)) images"; done >"$T/darknet.log"
fails 2 '--batch 12 is not used: a number without a rule takes no batch' "a batch for a time" "$REPERF" measure "$T/darknet.log" --batch 12 --gpus 1
for step in $(seq 0 40); do echo "{\"step\": $step, \"samples_per_sec\": $((step ? 15000 : 900))}"; done >"$T/warm.jsonl"
prints 0 ' 15000 +samples/s +40 +ok' "a slow first record" "$REPERF" measure "$T/warm.jsonl"
like "$(cat "$T/out")" '^skip 1 of 41: slow start$' "which is said"

# --- the published logs ---------------------------------------------------------------------------------
if ! need_shared "measure: published logs, counts"; then tap_done; fi
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
    ok $((!(bad == 0 && n > 0))) "$format: $n logs, as many records as grep counts lines"
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
tap_done
