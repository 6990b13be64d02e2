#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: judge
# reperf measure of logs that no format reads, beyond what tests/logs/suggest.want holds: the written format on other logs, patterns, texts, options.
# shellcheck source=tests/tap_lib.sh disable=SC1091
source "$(dirname "$0")/../tap_lib.sh"
L=tests/integration/unknown

lines() { # N TEXT...: each text N times, with the number of the time for @
    local n=$1 i text
    shift
    for ((i = 1; i <= n; i++)); do for text; do echo "${text//@/$i}"; done; done
}
made() { # LOG [ARGS...]: $T/made.json
    local log=$1
    shift
    exits 11 "$log: a format is written" "$REPERF" measure "$log" --suggest "$T/made.json" "$@"
}
made $L/tqdm.log
answers 0 '"\(.value) \(.unit)"' "320 samples/s" "steps a second are samples a second, by batch and GPUs" "$REPERF" measure "$L/tqdm.log" --format "$T/made.json" --rule samples --batch 8 --gpus 4 --json
lines 12 'rank 0 | step @ | 120.5 img/s' '[val] step @ | 300.5 img/s' >"$T/whose.log"
made "$T/whose.log"
{ cat "$T/whose.log" && printf 'x %.0s' {1..40000} && echo "img/s"; } >"$T/whose-long.log"
exits 0 "a long line takes nothing from them" "$REPERF" measure "$T/whose-long.log" --format "$T/made.json"
lines 6 '2024-01-01 10:00:0@ step @/6 100.5 img/s' >"$T/clock.log"
made "$T/clock.log"
sed 's/^2024-[^s]*//' "$T/clock.log" >"$T/no-clock.log"
exits 0 "lines without a clock are read by the same format" "$REPERF" measure "$T/no-clock.log" --format "$T/made.json"
exits 0 "as those with one" "$REPERF" measure "$T/clock.log" --format "$T/made.json"
sed -i 's/10:00:04 step/10:00:01 step/' "$T/clock.log"
exits 9 "but not where it goes back" "$REPERF" measure "$T/clock.log" --format "$T/made.json"
lines 12 'step @0 | train_loss=0.5@ | 100.@ img/s' >"$T/lacks.log"
made "$T/lacks.log"
sed -i 5d "$T/lacks.log"
exits 9 "a step is missing, by the file as well" "$REPERF" measure "$T/lacks.log" --format "$T/made.json"
sed -i '5s/loss=[0-9.]*/loss=nan/' "$T/lacks.log"
exits 9 "so a loss that is no number" "$REPERF" measure "$T/lacks.log" --format "$T/made.json"

# What the log does not say is not assumed, and is asked for.
while IFS='|' read -r log text; do
    tells 9 "$text" "$log: nothing is measured, and why" "$REPERF" measure "$L/$log.log" --suggest "$T/no.json"
    ok "$([ ! -e "$T/no.json" ]; echo $?)" "$log: no format is written"
done <<'END'
home-speed|does not say in what "speed" is
train-time|does not say in what
xgboost|None of them is a rate
fastai|spans of time alone
END
exits 2 "a unit for what has one" "$REPERF" measure "$L/home-rate.log" --unit s
exits 2 "an invalid unit" "$REPERF" measure "$L/home-speed.log" --unit furlongs
exits 2 "a unit together with a format" "$REPERF" measure "$L/home-rate.log" --unit s --format timm
exits 2 "a suggestion for two logs" "$REPERF" measure "$L/home-rate.log" "$L/tqdm.log" --suggest "$T/x.json"

{ echo "name: GTX TITAN X memoryClockRate (GHz) 1.076" && for i in 0 10 20 30 40; do echo "2016-04-25 13:48:1$((i / 10)).5: step $i, duration = 0.545"; done; } >"$T/tf.log"
"$REPERF" measure "$T/tf.log" >"$T/out" 2>&1
like "$(cat "$T/out")" 'measure .*tf.log --unit s --suggest FILE.json$' "the time of a step is asked for, not a clock of the card"
for line in 'step @ speed 2.1@ samples/s 640.5' 'step @ resnet50 2.1@ samples/s 640.5'; do
    lines 12 "$line" >"$T/shape.log"
    "$REPERF" measure "$T/shape.log" >"$T/out" 2>&1
    like "$(cat "$T/out")" '^not decided: 12 units stand between two numbers' "$line: not decided, and it is said"
done
lines 6 'batch_size: @6 latency: 3.5 speed: 25@.5 images/s' >"$T/sizes.log"
prints 9 'A table: no one number follows' "batches of several sizes" "$REPERF" measure "$T/sizes.log" --suggest "$T/no.json"
lines 6 'pass @: copied 1024 blocks, bandwidth: 10@.5 MB/s' >"$T/copy.log"
exits 0 "operations, by a pattern" "$REPERF" measure "$T/copy.log" --pattern 'copied (?<value>\d+) blocks' --unit IOPS

# A proposed format stays one wherever it is found, until it is named or its file no longer says so.
mkdir -p "$T/found/formats"
exits 11 "a format among the others" "$REPERF" measure "$L/home-rate.log" --suggest "$T/found/formats/home-rate.json"
measured() { REPERF_MANIFESTS="$T/found" "$REPERF" measure "$L/home-rate.log" --json "$@" 2>"$T/err" | jq -r '"\(.format) \(.verdict)"'; }
is "$(measured)" "home-rate proposed" "a proposed format that is found is no more than that"
is "$(measured --format home-rate)" "home-rate ok" "one that the user names is accepted"
sed -i '/"proposed": true,/d' "$T/found/formats/home-rate.json"
is "$(measured)" "home-rate ok" "so is one whose file does not say that it is proposed"

# A text that no line can hold is not looked for.
mkdir -p "$T/own/formats"
jq '.id = "two-lines" | .series[0] |= (.literal = "ksteps" | .pattern = "ksteps aaaa\nzqjx (?<value>[\\d.]+)")' "$T/found/formats/home-rate.json" >"$T/own/formats/two-lines.json"
printf 'ksteps aaaa\nzqjx 100\n' >"$T/two-lines.log"
REPERF_MANIFESTS="$T/own" exits 9 "a format whose pattern holds a line break reads nothing, and ends" timeout 300 "$REPERF" measure "$T/two-lines.log"

# A pattern of one's own
exits 0 "--pattern and --unit" "$REPERF" measure - --pattern 'step +(?<step>\d+) .* (?<value>\d+) img/s' --unit img/s --json <"$L/home-rate.log"
is "$(jq -r '"\(.value | round) \(.unit) \(.records)"' "$T/out")" "1218 images/s 11" "reads standard input"
answers 0 '"\(.unit) \(.series[-1].value)"' "s 0.3" "a pattern in milliseconds is shown in seconds" "$REPERF" measure "$L/home-time.log" --pattern 'dt (?<value>[\d.]+)ms' --unit ms --json
for loss in "loss nan" "Loss: -inf" "{'loss': NaN}"; do
    for i in 1 2 3 4 5 6; do echo "step $i 63$i.5 samples/s, $([ "$i" -lt 4 ] && echo "loss 2.$i" || echo "$loss")"; done >"$T/nan.log"
    fails 9 'line 4: the loss is not a finite number$' "$loss, of which neither pattern nor format speaks" "$REPERF" measure "$T/nan.log" --pattern '(?<value>[\d.]+) samples/s' --unit samples/s
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
    fails 9 "$said" "no log: $bytes" "$REPERF" measure "$T/other"
done <<'END'
PK\x03\x04abc|ZIP archive.*export the sheet as CSV
\x1f\x8b\x08x|gzip -dc FILE . reperf measure -
%PDF-1.4|PDF
:W&B\x00|W&B's binary file
|it is empty
END
mkdir "$T/no-logs"
fails 2 'a log is named by its file' "a folder without a log" "$REPERF" measure "$T/no-logs"

# A table: its columns go by their heads, and the format reads rows only below that head.
{
    echo "training begins"
    echo "step | images/s | loss"
    for ((i = 1; i <= 14; i++)); do echo "$((i * 10)) | $((1200 + i % 3)).5 | 1.$i"; done
} >"$T/table.log"
prints 9 'column images/s +1200.5 +1202.5 +a rate, images/s' "a table of numbers" "$REPERF" measure "$T/table.log"
exits 11 "its format" "$REPERF" measure "$T/table.log" --suggest "$T/table.json"
is "$(jq -c '.series[0].after' "$T/table.json")" '{"literal":"images/s","pattern":"step\\s+\\|\\s+images/s\\s+\\|\\s+loss"}' "begins below the head"
answers 0 '"\(.records) \(.value * 100 | round) \(.unit)"' "14 120157 images/s" "which reads it: all rows of that column" "$REPERF" measure "$T/table.log" --format "$T/table.json" --json
grep -v images/s "$T/table.log" >"$T/headless.log"
exits 9 "without its head" "$REPERF" measure "$T/headless.log" --format "$T/table.json"

# Bounds
seq 1 3000 | sed 's/.*/key& = &/' >"$T/many.log"
"$REPERF" measure "$T/many.log" >"$T/out" 2>&1
like "$(cat "$T/out")" '2488 numbers after the first 512 kinds' "more kinds of numbers than are kept are counted"
printf 'a\033]0;x\007 \x01loss: 0.5 \xc2\x9b31m speed: 3\n%.0s' 1 2 3 4 >"$T/hostile.log"
"$REPERF" measure "$T/hostile.log" >"$T/out" 2>&1
LC_ALL=C grep -q '[^ -~]' "$T/out"
is "$?" 1 "no control byte of a log reaches the terminal"
tap_done
