#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: judge
# reperf new --from: tables of a generated repository (Markdown, HTML, CSV) and its logs, of a known kind and of none; numbers that fit, that
# do not, without a log and without a row; the draft is linted and audited at once.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2016
source "$(dirname "$0")/../tap_lib.sh"
export HOME="$T/home" GIT_CONFIG_NOSYSTEM=1
export TMPDIR="$T/tmp" # what is left there is no other script's
mkdir "$TMPDIR"
unset XDG_DATA_HOME REPERF_MANIFESTS REPERF_ROOT
mkdir -p "$T/home" "$T/repo/resnet50/logs/a100" "$T/repo/bert/logs" "$T/repo/docs"
git() { command git -c init.defaultBranch=main "$@"; }

loop() { # FILE RATE: a home-made loop's log whose mean rate is RATE
    for i in 1 2 3 4; do printf 'step %d/40 | loss 0.5 | %s img/s\n' "$((10 * i))" "$(awk -v r="$2" -v i="$i" 'BEGIN {print r + (i % 2 ? 1 : -1)}')"; done >"$1"
}
seg() { # FILE RATE: PaddleSeg's, of one GPU
    for i in 1 2 3; do
        printf '2023-07-27 12:48:42 [INFO]\t[TRAIN] epoch: 1, iter: %s/3, loss: 1.6502, lr: 0.009345, batch_cost: 0.4109, reader_cost: 0.00346, ips: %s samples/sec | ETA 00:02:32\n' "$i" "$2"
    done >"$1"
}
loop "$T/repo/resnet50/logs/a100/fp32_bs64_gpu1.log" 1234
loop "$T/repo/resnet50/logs/a100/amp_bs64_gpu1.log" 2500
loop "$T/repo/resnet50/logs/a100/amp_bs64_gpu8.log" 19000
seg "$T/repo/bert/logs/run_bs8_fp32_gpu1.txt" 19.428
cat >"$T/repo/resnet50/README.md" <<'END'
# ResNet-50 of PyTorch

## Training throughput (images/s), batch size 64

| GPUs | FP32 | AMP | Accuracy |
|:----:|-----:|----:|---------:|
| 1    | **1,234** | [2,500.0](logs/a100/amp_bs64_gpu1.log) | 76.1 |
| 8    | 9,000 | 18,000 | 76.2 |

## Versions

| name | version |
|---|---|
| cuda | 11.2 |

## Datasets for the speed in samples/second

| Number of identities | Author | Classes |
|---|---|---|
| 125000 | a | 7(s) |
| 250000 | b | 41(s) |
END
cat >"$T/repo/bert/README.md" <<'END'
<h2>Speed of Paddle, FP32</h2>
<table><tr><th>GPUs</th><th>Batch size</th><th>samples/sec</th></tr>
<tr><td>1</td><td rowspan="2">8</td><td>19.428</td></tr>
<tr><td>8</td><td>117.2</td></tr></table>
END
printf 'model,train_samples_per_sec,train_batch_size,param_count,"a note,\nof two lines ""quoted"""\nvit,512.5,128,86.6,\n' >"$T/repo/docs/results.csv"
git -C "$T/repo" init -q && git -C "$T/repo" add . && git -C "$T/repo" commit -qm one
git clone -q --bare "$T/repo" "$T/bare"

cd "$T" || exit 1
exits 11 "a draft" "$REPERF" new mine --from "$T/bare" --repository https://example.org/mine.git
cp out said
R="$T/manifests/reports/mine.json"
cell() { jq -r --arg id "$1" '.cases[] | select(.id == $id) | "\(.cells[0].printed) \(.cells[0].unit) \(.rule) \(.logs | join(","))"' "$R"; }
is "$(cell resnet50/pytorch/fp32/n1g1/bs64)" "1234 images/s mine-1/window resnet50/logs/a100/fp32_bs64_gpu1.log" "a number with a thousands separator, a log of no known kind"
is "$(cell resnet50/pytorch/amp/n1g1/bs64)" "2500.0 images/s mine-1/window resnet50/logs/a100/amp_bs64_gpu1.log" "a cell that links its log"
is "$(cell resnet50/pytorch/amp/n1g8/bs64)" "18000 images/s mine-1/window resnet50/logs/a100/amp_bs64_gpu8.log" "a number that its log does not give"
is "$(cell resnet50/pytorch/fp32/n1g8/bs64)" "9000 images/s null " "a number without log"
is "$(cell bert/paddle/fp32/n1g1/bs8 | cut -d' ' -f1,2,4)" "19.428 samples/s bert/logs/run_bs8_fp32_gpu1.txt" "an HTML table, a log of a known kind"
is "$(cell bert/paddle/fp32/n1g8/bs8)" "117.2 samples/s null " "a cell that reaches over two rows"
is "$(jq '.cases | length' "$R")" 9 "accuracies too, and no versions"
is "$(jq -r '[.cases[].cells[0] | select(.metric == "accuracy") | "\(.printed) \(.unit)"] | join(" ")' "$R")" "76.1 % 76.2 %" "with their metric"
like "$(cat said)" 'no log +docs/results.csv:1 +512.5 samples/s +vit/unstated/unstated/n0g0/bs128 \(not said: framework precision GPUs\)' "what a CSV does not say is named, and stands there as not said"
like "$(cat said)" '^3 numbers fit, 1 differ, 5 without log, 0 without a row' "what fits, what does not, what was not found"
like "$(cat said)" '^of those that fit 2 stand on a proposed format, which nothing confirms' "and what is only proposed"
like "$(cat said)" 'fits .* 2500.0 images/s .* by mine-1/window \(proposed\) of' "beside each number"
is "$(jq .proposed "$T/manifests/formats/mine-1.json")" true "its format says so itself"
is "$(jq -r '.source | "\(.repository) \(.commit)"' "$R")" "https://example.org/mine.git $(git -C "$T/repo" rev-parse HEAD)" "repository and commit"
valid report "the draft is valid against its schema" "$R"
"$REPERF" lint mine >out 2>err
like "$?" '^[01]$' "it is linted"
prints 1 '9 cells: 3 exact, 0 match, 1 differ, 5 without log' "it can be audited at once, by the series next to it" "$REPERF" audit mine
like "$(cat out)" '2500\.0 .* exact, proposed +partial' "beside each number that is proposed"
like "$(cat out)" 'proven in full, [0-9] in part; 2 stand on a proposed format' "and in sum"
exits 11 "cells that hold by a proposed format are not known to hold" "$REPERF" audit mine --case 'resnet50/pytorch/*/n1g1/*'
prints 11 '<testsuites .*tests="3" failures="0" errors="0" skipped="3".*' "as JUnit" "$REPERF" audit mine --case 'resnet50/pytorch/*/n1g1/*' --junit
"$REPERF" audit mine --json >mine.audit
is "$(jq -c '[.reports[].cells[] | select(.proposed) | .verdict]' mine.audit)" '["exact","exact","differs"]' "as JSON"
valid audit-output "valid" mine.audit
"$REPERF" report mine --html page.html --svg page.svg --csv page.csv --markdown page.md
is "$(grep -c '>exact, proposed</td>' page.html) $(grep -c '2 of them by a proposed format' page.svg) $(grep -c ',"exact, proposed",' page.csv) $(grep -c '| exact, proposed |' page.md)" "2 1 2 2" "and in every view"
like "$("$REPERF" explain resnet50/pytorch/fp32/n1g1/bs64)" 'recomputed .*: exact, proposed; proof partial' "and explained"
exits 9 "cells without a log are not checked" "$REPERF" audit mine --case 'vit/*'
prints 1 '9 cells: 3 exact, 0 match, 1 differ, 5 without log' "and from the clone" "$REPERF" audit mine --logs "$T/bare"
exits 2 "a report that is there is not overwritten" "$REPERF" new mine --from "$T/bare"
exits 0 "what the tables do not say can be said" "$REPERF" new other --from "$T/repo" --below docs --framework pytorch --precision amp --gpus 8 --manifests "$T/manifests"
is "$(jq -r '.cases[].id' "$T/manifests/reports/other.json")" vit/pytorch/amp/n1g8/bs128 "and makes a row"
like "$(cat err)" 'names no https remote' "an unknown address is stated as unknown"
exits 1 "nothing below a folder" "$REPERF" new none --from "$T/repo" --below nowhere
succeeds "and nothing is written" test ! -e "$T/manifests/reports/none.json"
exits 11 "a repository by its URL" "$REPERF" new by-url --from "file://$T/bare" --manifests "$T/manifests"
is "$(jq '.cases | length' "$T/manifests/reports/by-url.json")" 9 "gives the same rows"
mkdir "$T/many"
yes $'|x|\n|-|\n\n' | head -n 40000 >"$T/many/many.md"
git -C "$T/many" init -q && git -C "$T/many" add . && git -C "$T/many" commit -qm one
case $B in */asan) limit=unlimited ;; *) limit=1000000 ;; esac # a sanitizer's shadow is all of the address space
exits 1 "ten thousand empty tables take no memory each" bash -c "ulimit -v $limit"' && exec "$@"' - "$REPERF" new many --from "$T/many"
printf '# BERT\n\nPyTorch, FP16, batch size 32\n\n| Nodes | GPUs/node | sequences/s |\n|---|---|---|\n| 2449029 | 8 | 99.5 |\n| 2 | 8 | 98.5 |\n' >"$T/many/README.md"
git -C "$T/many" add . && git -C "$T/many" commit -qm two
exits 0 "a row of more nodes than a report has" "$REPERF" new many --from "$T/many"
is "$(jq -c '[.cases[].id | split("/")[3]]' "$T/manifests/reports/many.json")" '["n0g0","n2g8"]' "is one whose GPUs are not known, and the others are there"
is "$(ls -A "$TMPDIR")" "" "nothing is left behind"

# Tables as other projects print them: two rows of heads, a row for a section, rates of one GPU, numbers that are none, a file that is only
# linked; logs that are near a number by chance, of another card, or of another model; documents that are not read.
mkdir -p "$T/two/logs" "$T/two/runs"
loop "$T/two/runs/a100.txt" 812.5
loop "$T/two/logs/resnet50_v100_fp32_bs32_gpu1.log" 400
loop "$T/two/logs/resnet50_a100_fp32_bs32_gpu1.log" 812.5
loop "$T/two/logs/vgg16_a100_fp32_bs32_gpu8.log" 6100
for i in $(seq 30); do loop "$T/two/logs/other-$i.log" "$((500 + 20 * i))"; done
cat >"$T/two/README.md" <<'END'
# Speed of PyTorch

## ResNet50

- Training speed (images/s), FP32, batch size 32

<table><tr><td></td><td colspan=2>A100</td><td colspan=2>V100</td></tr>
<tr><td></td><td>v1</td><td>FP16</td><td>v1</td><td>FP16</td></tr>
<tr><td>1 GPU</td><td>812.5</td><td>1,500</td><td>401</td><td>800</td></tr>
<tr><td>8 GPUs</td><td>6100</td><td>-</td><td>-</td><td>-</td></tr></table>

## Others

| date | GPUs | model | images/s | images/s/GPU | step | time (ms) | log |
|---|---|---|---|---|---|---|---|
| **A100, FP32, bs=32** |||||||
| 20201208 | 1 | x | 812.5 | 7 | 3 | 31.5 | [log](runs/a100.txt) |
|          | 4 |   | 640 (see below) | 7 | 3 | 0 | none |
| **V100, FP16** |||||||
| 20201209 |   | resnet50 | 333 | 7 | 3 | 0 | none |
END
echo x | tee "$T/two/bench.rst" >"$T/two/run.ipynb"
printf 'name_gpu,num_gpu,resnet50\nRTX 3090,2.0,905.0\n' >"$T/two/train-throughput-fp16.csv"
git -C "$T/two" init -q && git -C "$T/two" add . && git -C "$T/two" commit -qm one
exits 11 "another" "$REPERF" new two --from "$T/two" --repository https://example.org/pytorch-two.git --unit images/s
cp out said
R="$T/manifests/reports/two.json"
is "$(jq -r '[.cases[].cells[0] | "\(.printed) \(.metric)"] | join(", ")' "$R")" \
    "812.5 throughput, 1500 throughput, 401 throughput, 800 throughput, 6100 throughput, 812.5 throughput, 31.5 step_time, 640 throughput, 333 throughput, 905.0 throughput" \
    "the rates of both documents' tables, a time, and neither dates, steps, zeros nor rates of one GPU"
is "$(cell resnet50/pytorch/fp32/n1g1/bs32 | cut -d' ' -f1,2,4)" "812.5 images/s logs/resnet50_a100_fp32_bs32_gpu1.log" "a table with two rows of heads, and the log of its card"
like "$(cat said)" 'differs .* 401 images/s .*400[.0-9]* by [a-z0-9/-]+ \(proposed\) of logs/resnet50_v100' "a number of another card differs from that card's log, and not from the first one's"
is "$(jq -r '.cases[] | select(.cells[0].printed == "6100") | .logs | length' "$R")" 0 "a log of another model gives the number, and is not its log"
is "$(jq -r '.cases[] | select(.model == "x" or (.id | startswith("x/"))) | select(.cells[0].printed == "812.5") | .logs[0]' "$R")" runs/a100.txt "a file that only a link tells from any other is read as a log"
is "$(jq -r '.cases[] | select(.cells[0].printed == "640") | "\(.id) \(.logs | length)"' "$R")" "x/pytorch/fp32/n1g4/bs32 0" "the section's row, the model of the row above; a number that one of thirty logs would give is none's"
like "$(cat said)" 'left out: 3 rates of one GPU of several' "what is left out is said"
like "$(cat said)" 'not read: 2 spreadsheets, notebooks and reStructuredText' "and what is not read"
is "$(jq -r '.cases[] | select(.cells[0].printed == "905.0") | .id' "$R")" resnet50/pytorch/fp16/n1g2/bs0 "a CSV whose name says what it holds, once --unit says in what"
valid report "it is valid" "$R"
"$REPERF" lint two >out 2>err
like "$?" '^[01]$' "linted"
prints 1 '10 cells: 2 exact, 0 match, 1 differ, 7 without log' "and audited" "$REPERF" audit two
like "$("$REPERF" audit two --case 'resnet50/*' | grep 905.0)" '^resnet50 +pytorch +2 +- +throughput' "a batch that is not printed is left open"
like "$("$REPERF" audit mine --case 'vit/*' | grep 512.5)" '^vit +unstated +- +128 +throughput' "and so is a number of GPUs"
exits 0 "its page" "$REPERF" report two --html page.html
exits 7 "a plan says of each row why it cannot be run" "$REPERF" plan two --profile smoke
exits 3 "also of one whose GPUs are not printed" "$REPERF" plan two --profile smoke --case 'resnet50/pytorch/fp16/n0g0/*'
exits 0 "a bundle finds a report of the user's own" "$REPERF" bundle two --dry-run -o "$T/bundle"
# One judge: new's verdict on a number is audit's. A log of another purpose, or one without a card where others state it, contradicts no number; an
# unknown unit is not replaced by --unit.
mkdir -p "$T/judged/logs/train" "$T/judged/logs/infer"
cp "$ROOT/tests/integration/formats/timm.log" "$T/judged/logs/timm.log"
printf 'PK\3\4' >"$T/judged/speed.xlsx"
loop "$T/judged/logs/infer/resnet50_a100_fp16_bs64_gpu1_inference.log" 9000
loop "$T/judged/logs/train/resnet50_a100_fp16_bs64_gpu8.log" 700
loop "$T/judged/logs/train/resnet50_mycard_fp16_bs64_gpu4.log" 100
cat >"$T/judged/README.md" <<'END'
# ResNet50 of PyTorch

## Training, batch size 64, A100

| GPUs | FP16 images/s | Throughput (T/s) | Throughput (q/s) |
|---|---|---|---|
| 1 | 800 | 81234 | 5 |
| 4 | 3000 | 81234 | 5 |
| 8 | 5600 | 81234 | 5 |

## Another

| GPUs | FP32 samples/s |
|---|---|
| 8 | [112.9](logs/timm.log) |

## Short

| GPUs | Throughput (tokens/s) | Ktokens/sec | On M40 (img/s) |
|---|---|---|---|
| 8 | 25.4k | 25.4 | 1.2 M img/s |

## Bare

| Experiment | Throughput | Speed up |
|---|---|---|
| pipeline-2 | 35.502/s | 1.2x |

## Odd

| Model | images/s | tokens/s |
|---|---|---|
| a-name-that-is-longer-than-any-name-in-a-report-may-be-by-some-letters-more | 41 | 99999999999999999999 |
END
git -C "$T/judged" init -q && git -C "$T/judged" add . && git -C "$T/judged" commit -qm one
exits 11 "a draft whose logs nearly fit" "$REPERF" new judged --from "$T/judged" --unit samples/s
cp out said
"$REPERF" audit judged --json >audit.json
is "$(sed -n 's/^\([0-9]*\) numbers fit, \([0-9]*\) differ, \([0-9]*\) without log.*/\1 \2 \3/p' said)" \
    "$(jq -r '[.reports[0].cells[].verdict] | [map(select(. == "exact" or . == "match")), map(select(. == "differs")), map(select(. == "no_log"))] | map(length) | join(" ")' audit.json)" \
    "new counts what audit counts"
like "$(cat said)" '^differs .*112.9 samples/s .*timm.log, which is of another row' "a log that gives the number and states another precision does not fit"
like "$(cat said)" '^no log .* 800 images/s' "a log of inference does not accuse a number of training"
like "$(cat said)" '^no log .* 3000 images/s' "nor does one that does not say its card, where others do"
like "$(cat said)" '^differs .* 5600 images/s .*700[.0-9]* by .*gpu8' "one of the row does"
like "$(cat said)" 'no log .* 81234 tokens/s' "tokens in short"
like "$(cat said)" 'left out: 3 numbers whose unit is not known, the first "Throughput \(q/s\)"' "an unknown unit is not a unit, whatever --unit says"
like "$(cat said)" 'left out: 3 rates in thousands or millions, the first "25.4k"' "thousands are not read as ones"
like "$(cat said)" 'no log .* 35.502 samples/s' "a rate of what --unit says"
like "$(cat said)" 'not read: 1 spreadsheets, .*export their tables as CSV' "a spreadsheet is named, with what to do"
like "$(cat said)" 'no log .* 41 images/s +a-name-that-is-longer-than-any-name-in-a-report-may-be-by-some-l/' "a long name is cut"
is "$(grep -c 99999999999999999999 said)" 1 "a number that is not a rate is not taken for one"
like "$(grep 99999999999999999999 said)" '^left out: 1 numbers that are .*, the first "9+" of README.md:' "and is counted"
exits 11 "names as people write them" "$REPERF" new named --from "$T/judged" --model "My Net!"
exits 1 "make a report" "$REPERF" audit named --case 'my-net/*' -q
# A log whose losses are no numbers, and one that lacks lines.
mkdir -p "$T/lacks/logs"
for i in $(seq 50); do echo "step $i/50 | loss nan | 640.5 img/s"; done >"$T/lacks/logs/resnet50_a100_fp16_bs64_gpu8.log"
for i in $(seq 50); do echo "step $i/50 | loss 0.5 | 320.5 img/s"; done | sed 20,25d >"$T/lacks/logs/resnet50_a100_fp16_bs64_gpu4.log"
printf '# ResNet50 of PyTorch\n\n## Training, batch size 64, A100\n\n| GPUs | FP16 images/s |\n|---|---|\n| 4 | 320.5 |\n| 8 | 640.5 |\n' >"$T/lacks/README.md"
git -C "$T/lacks" init -q && git -C "$T/lacks" add . && git -C "$T/lacks" commit -qm one
prints 11 'fits .* 640.5 .*gpu8.log, which is unreadable' "a draft of logs that are not whole" "$REPERF" new lacks --from "$T/lacks"
answers 11 '[.reports[].cells[] | [.printed, .verdict, .log_state]]' '[["320.5","exact","incomplete"],["640.5","exact","unreadable"]]' "and so does its audit, beside the numbers" "$REPERF" audit lacks --json
# `new` and `measure` read one log by one rule: of two rules that give equally many numbers of a table, the one without the slow start. What the log
# states of its row is read; titles are the document's.
mkdir -p "$T/slow/logs"
slow() { # GPUS RATE
    for i in $(seq 30); do
        echo "step $((i * 10))/300 | model=vit_s16 gpus=$1 batch_per_gpu=64 | loss 0.5 | $(awk -v i="$i" -v r="$2" 'BEGIN { print i <= 2 ? r * (0.5 + i * 0.05) : r + (i % 2 ? 0.5 : -0.5) }') images/s"
    done >"$T/slow/logs/run-$1.log"
}
slow 8 3107 && slow 1 412
printf '# A vision transformer #\n\n## Speed in bf16 & more\n\n| GPUs | Batch | images/s |\n|---|---|---|\n| 8 | 64 | 3019.0 |\n| 1 | 64 | 412 |\n' >"$T/slow/README.md"
git -C "$T/slow" init -q && git -C "$T/slow" add . && git -C "$T/slow" commit -qm one
exits 11 "logs that begin slowly" "$REPERF" new slow --from "$T/slow" --repository https://example.org/slow.git
cp out said
is "$(awk '$1 == "fits" || $1 == "differs" { print $1, $3, $NF }' said | sed 's/ .*logs/ logs/' | xargs)" "fits logs/run-1.log differs logs/run-8.log" "the number of the window fits, that of the plain mean does not"
for gpus in 1 8; do
    is "$(grep "run-$gpus.log" said | grep -oE '[0-9.]+ by' | cut -d' ' -f1)" "$("$REPERF" measure "$T/slow/logs/run-$gpus.log" --suggest "$T/slow.json" --json 2>err | jq -r ".value * 10 | round / 10 | if $gpus == 8 then \"\\(.).0\" else . end")" "run-$gpus.log: new reads what measure reads"
done
R="$T/manifests/reports/slow.json"
is "$(jq -r '.title, (.cases[0].cells[0].table)' "$R" | paste -sd'|')" "A vision transformer: draft from README.md of slow|Speed in bf16 & more" "titles that the document has"
is "$(jq -r '[.cases[].id] | sort | join(" ")' "$R")" "vit-s16/unstated/bf16/n1g1/bs64 vit-s16/unstated/bf16/n1g8/bs64" "the model that the logs state"
"$REPERF" audit slow >out 2>err
is "$(sed -n '/^not proven by/,/^$/p' out | grep -c 'of 1 cell')" 1 "which prove that they are the rows'"
like "$(sed -n '/^not proven by/,/^$/p' out)" 'precision of 1 cell' "but for the precision"
like "$(cat said)" '^1 document; 2 logs: 2 read, 0 by no format' "one document, and not documents"
is "$(jq -r '[.cases[].cells[0].table] | unique | join("|")' "$T/manifests/reports/mine.json")" "Speed of Paddle, FP32|Training throughput (images/s), batch size 64|docs/results.csv:1" "a table without a heading is named by its place"
# A row of figures right below the header is no header; names of columns; a unit in the heading above the heading.
mkdir "$T/heads"
cat >"$T/heads/README.md" <<'END'
# A comparison of cards

## Networks

| Mode | gpu | precision | resnet50 | vgg16 |
|---|---|---|---|---|
| Training | TITAN V | single | 56.17 ms | 72.85 ms |
| Training | TITAN V | half | 29.08 ms | 36.03 ms |

## Output throughput (tokens/s)

### Large

| Framework | Model | Median | P99 |
|---|---|---|---|
| groq | llama-70b | 185 | 208 |

### By size

| GPU | 8B Q4 | 8B F16 |
|---|---|---|
| A100 | 138.31 | 54.56 |

## Streaming

| decoding | chunk size | latency |
|---|---|---|
| greedy | 320 ms | 41 ms |
END
git -C "$T/heads" init -q && git -C "$T/heads" add . && git -C "$T/heads" commit -qm one
exits 0 "tables of three more kinds" "$REPERF" new heads --from "$T/heads"
is "$(jq -r '[.cases[] | (.id | split("/") | "\(.[0])/\(.[2])") + " \(.cells[0].printed) \(.cells[0].unit)"] | join("; ")' "$T/manifests/reports/heads.json")" \
    "resnet50/fp32 56.17 ms; vgg16/fp32 72.85 ms; resnet50/fp16 29.08 ms; vgg16/fp16 36.03 ms; llama-70b/unstated 185 tokens/s; llama-70b/unstated 208 tokens/s; 8b-q4/unstated 138.31 tokens/s; 8b-f16/unstated 54.56 tokens/s; streaming/unstated 41 ms" \
    "each number is of its own row and column"
# Numbers that no rate, time or accuracy can be are counted, and one is named; so are rows of nothing else, also right below the header.
mkdir "$T/nones"
cat >"$T/nones/README.md" <<'END'
# Speed of PyTorch, FP32, batch size 32

| GPUs | images/s | time (ms) | Accuracy |
|---|---|---|---|
| 1 | nan | NaN | -1 |
| 2 | -800.5 | 0 | nan |
| 4 | 0 | 0.0 ms | 0 |
| 8 | 6100 | 5.2 | 76.1 |
| 16 | inf | -3.5 s | 1234567890123456 |
| 32 | 1,23 img/s | - | n/a |

## Others

| GPUs | date | tokens/s | images/s/GPU | speed up |
|---|---|---|---|---|
| 1 | 2020-12-08 | − | 0 | -1 |
| 2 | 0 | −12 tokens/s | 7 | nan |

| images/s | samples/s |
|---|---|
| nan | nan |
| 5 | 6 |

| GPUs | time to train | time (ms) |
|---|---|---|
| 64 | 5h9min | 1463. |
| 128 | 45 min | 9 |
END
git -C "$T/nones" init -q && git -C "$T/nones" add . && git -C "$T/nones" commit -qm one
exits 0 "a draft of tables with NaN, zero and below" "$REPERF" new nones --from "$T/nones"
cp out said
is "$(jq -r '[.cases[].cells[0] | "\(.printed) \(.unit)"] | sort | join(", ")' "$T/manifests/reports/nones.json")" "1463 ms, 45 min, 5 images/s, 5.2 ms, 6 samples/s, 6100 images/s, 76.1 %, 9 ms" "what can be one is taken"
like "$(cat said)" 'left out: 18 numbers that are NaN, infinite, not over 0, over 1e\+12, in two units or malformed, the first "nan" of README.md:3' "the others are counted"
sed -i '/6100\|^| 5 \|^| 64 \|^| 128 /d' "$T/nones/README.md" && git -C "$T/nones" commit -qam two
fails 1 'no number has a unit and a row: nothing is written' "where there is nothing else" "$REPERF" new nothing --from "$T/nones"
# --- whose log it is: words of the machine, one rule for a table, units of time, one table in many documents -----
mega() { # FILE GPUS TIMES_MS...
    local n=0 file=$1 gpus=$2 && shift 2
    echo "using world size: $gpus, data-parallel-size: 1, tensor-model-parallel size: 4, pipeline-model-parallel size: $((gpus / 4))" >"$file"
    for ms; do printf ' iteration %d/ %d | consumed samples: %d | elapsed time per iteration (ms): %s | learning rate: 1.0E-4 | global batch size: 4 | lm loss: 9.9E+00 |\n' "$((n += 1))" 5 "$((4 * n))" "$ms"; done >>"$file"
}
W=$T/whose && mkdir -p "$W/results/alpha_H100_80GB_v2/resnet50" "$W/meg" "$W/ops/a" "$W/ops/b"
seg "$W/results/alpha_H100_80GB_v2/resnet50/bs8_fp32_gpu1.log" 2790.65
printf 'machine,num_gpu,resnet50\nAlpha H100 80GB,1,2791.0\nBeta H100 80GB,1,2790.0\nBeta 8x RTX 4090,1,1300.0\n' >"$W/train-throughput-fp32.csv"
mega "$W/meg/n4.out" 16 1381.0 1381.0 1381.0 1500.0 1381.0
mega "$W/meg/n8.out" 32 1618.0 1618.0 1618.0 1900.0 1618.0
mega "$W/meg/n16.out" 64 2741.0 2741.0 2741.0 3000.0 2741.0
printf '# gpt2\n\n| GPUs | Mic-BS | Speed |\n|--|--|--|\n| 16 | 1 | 1.381s |\n| 32 | 1 | 1.618s |\n| 64 | 1 | 2.738s |\n' >"$W/meg/README.md"
for op in a b c d; do mkdir -p "$W/ops/$op" && printf '# %s\n\n| card | latency (ms) |\n|--|--|\n| V100 | 12.5 |\n| V100 | 13.5 |\n' "$op" >"$W/ops/$op/README.md"; done
git -C "$W" init -q && git -C "$W" add . && git -C "$W" commit -qm one
exits 0 "rows of several machines" "$REPERF" new whose --from "$W" --unit samples/s --below train
is "$(grep -c '^no log' out)" 3 "without their logs"
exits 0 "with them" "$REPERF" new whose2 --from "$W" --unit samples/s
cp out said
like "$(cat said)" 'fits +train-throughput-fp32.csv:1 +2791.0 ' "a log of the row's own machine"
like "$(cat said)" 'no log +train-throughput-fp32.csv:1 +2790.0 ' "which proves nothing for a row of another, though it is near"
like "$(cat said)" 'fits +meg/README.md:3 +1.381 s.*1.381 by megatron/median' "one rule for a table; a time is one quantity in s and ms"
like "$(cat said)" 'differs +meg/README.md:3 +2.738 s.*2.741 by megatron/median of meg/n16.out' "what that rule does not give differs, though another would"
is "$(grep -c ' ops/[abcd]/README.md' said)" 2 "the same table in many documents is one"
"$REPERF" audit whose2 --json >whose2.json 2>err
is "$(jq -c '[.reports[].cells[] | select(.metric == "step_time" and .inferred) | .inferred] | unique' whose2.json)" '[{"gives":2,"of":3}]' "the rule is called inferred, with how much it gives"
valid audit-output "the audit is valid" whose2.json
"$REPERF" audit whose2 >out 2>err
like "$(cat out)" 'megatron/median \(inferred: gives 2 of 3\)' "in the table"
like "$(cat out)" 'rules inferred from the numbers give 3 of 4' "and in the headline"
"$REPERF" report whose2 --svg page.svg --markdown page.md --html page.html >out 2>err
is "$(grep -c 'rules inferred from the numbers give 3 of 4' page.svg page.md | cut -d: -f2 | xargs) $(grep -c 'by rules inferred from 4 numbers' page.html | sed 's/[1-9].*/some/')" "1 1 some" "in the picture, in Markdown, on the page"
D="$T/manifests/reports"
jq --arg rule "$(jq -r '.cases[] | select(.cells[0].printed == "2791.0") | .rule' "$D/whose2.json")" '.id = "whose3" | .logs |= del(.series_sha256) | (.cases[] | select(.cells[0].printed == "2790.0")) |= (.logs = ["results/alpha_H100_80GB_v2/resnet50/bs8_fp32_gpu1.log"] | .format = "paddleseg" | .rule = $rule | .cells[0].rule = null)' "$D/whose2.json" >"$D/whose3.json"
mkdir -p logs3 && cp -r "$W" logs3/whose2
"$REPERF" audit whose3 --logs logs3 --json >out 2>err
is "$(jq -r '.reports[].cells[] | select(.printed == "2790.0") | [.verdict, .proof, .contradicted[].fact] | join(" ")' out)" "differs contradicted machine" "a row that somebody gave the log of another machine is not its row"
# A log whose moments contradict the times of its steps has no number, whatever its rule; one of two levels has, and it is said.
for n in $(seq 30); do printf ' [2024-04-06 10:%02d:00] iteration %d/ 30 | consumed samples: 4 | elapsed time per iteration (ms): 1381.0 | learning rate: 1.0E-4 | global batch size: 4 | lm loss: 9.9E+00 |\n' "$n" "$n"; done |
    sed "1i $(head -1 "$W/meg/n4.out")" >logs3/whose2/meg/n4.out
for n in $(seq 30); do printf ' iteration %d/ 30 | consumed samples: 4 | elapsed time per iteration (ms): %s | learning rate: 1.0E-4 | global batch size: 4 | lm loss: 9.9E+00 |\n' "$n" $((n < 18 ? 1618 : 2600)); done |
    sed "1i $(head -1 "$W/meg/n8.out")" >logs3/whose2/meg/n8.out
"$REPERF" audit whose3 --logs logs3 --json >out 2>err
is "$(jq -r '.reports[].cells[] | select(.printed == "1.381" or .printed == "1.618") | [.printed, .verdict, .log_state, .recomputed] | map(tostring) | join(" ")' out | xargs)" "1.381 no_log unreadable null 1.618 exact whole 1.618" "a log that contradicts itself, and one of two levels"
is "$(jq -r '.reports[].findings[] | select(.id == "log-contradicts-itself" or .id == "two-levels") | [.id, .level, .where] | join(" ")' out | xargs)" "log-contradicts-itself error whose2/meg/n4.out two-levels warning whose2/meg/n8.out" "are found"
exits 2 "an invalid precision" "$REPERF" new none --from "$T/judged" --precision foo
exits 2 "an invalid name" "$REPERF" new none --from "$T/judged" --model '!'
exits 2 "an invalid unit" "$REPERF" new three --from "$T/two" --unit furlongs
exits 2 "a folder that is no repository" "$REPERF" new x --from "$T/home"
exits 2 "no name" "$REPERF" new --from "$T/repo"
exits 2 "an invalid name" "$REPERF" new '../x' --from "$T/repo"
tap_done
