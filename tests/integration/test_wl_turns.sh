#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: workloads
# Only: @reperf-train
# reperf-train --turn, which lets programs take turns, and --make-check, which lets them start from the same numbers.
. "$(dirname "$0")/../tap_lib.sh"
small=(--model bert_nano --batch 2 --sequence 8 --predictions 2 --seed 5)
losses() { sed -n 's/^{"event":"step",.*"loss":\([^,]*\),.*/\1/p' "$1"; }

printf '\n\n\n' >"$T/lines"
"$TRAIN" "${small[@]}" --steps 5 --turn 2 <"$T/lines" >"$T/turns"
is $? 0 "five steps in turns of two, for three lines"
"$TRAIN" "${small[@]}" --steps 5 </dev/null >"$T/straight"
is $? 0 "without --turn standard input is not read"
is "$(losses "$T/turns")" "$(losses "$T/straight")" "the same losses either way"
is "$(losses "$T/turns" | wc -l)" 5 "five of them"
printf '\nx' >"$T/lines"
fails 2 "standard input ended before step 3 of 4" "one turn's line for two turns" "$TRAIN" "${small[@]}" --steps 4 --turn 2 <"$T/lines"
is "$(losses "$T/out" | wc -l) $(grep -c run_stop "$T/out")" "2 0" "the first turn's steps and no run_stop"

mkfifo "$T/fifo"
{ "$TRAIN" "${small[@]}" --steps 4 --turn 2 <"$T/fifo" & } >"$T/waiting"
pid=$!
exec 3>"$T/fifo"
echo >&3
two_steps() { [ "$(losses "$T/waiting" | wc -l)" -eq 2 ]; }
served "$pid" "the first turn" two_steps
sleep 0.3
is "$(losses "$T/waiting" | wc -l)" 2 "it waits for the second turn"
kill -TERM "$pid"
wait "$pid"
is $? 143 "a signal ends the waiting"
exec 3>&-
is "$(grep -c run_stop "$T/waiting")" 0 "without a run_stop"

exits 0 "--make-check writes where a run starts" "$TRAIN" "${small[@]}" --make-check "$T/in.st"
exits 0 "which --check takes" "$TRAIN" --model bert_nano --check "$T/in.st" --out "$T/out.st"
exits 0 "again" "$TRAIN" "${small[@]}" --make-check "$T/in2.st"
cmp -s "$T/in.st" "$T/in2.st"
is $? 0 "the same bytes for the same seed"
exits 0 "with another seed" "$TRAIN" "${small[@]}" --seed 6 --make-check "$T/in3.st"
cmp -s "$T/in.st" "$T/in3.st"
is $? 1 "others"
exits 2 "--make-check and --describe" "$TRAIN" "${small[@]}" --describe --make-check "$T/in4.st"
exits 2 "--make-check and --check" "$TRAIN" --model bert_nano --check "$T/in.st" --out "$T/o" --make-check "$T/in4.st"

"$TRAIN" --model resnet50 --image 32 --batch 2 --backend plain --steps 1 >"$T/run" &&
    "$TRAIN" --model resnet50 --image 32 --batch 2 --make-check "$T/in5.st" &&
    "$TRAIN" --model resnet50 --check "$T/in5.st" --out "$T/out5.st"
# The loss is the last tensor's neighbour in the file: its place stands in the header.
at=$(head -c 200000 "$T/out5.st" | tr -d '\0' | grep -ao '"loss":{[^}]*}' | sed 's/.*\[\([0-9]*\),.*/\1/')
header=$(od -An -tu8 -N8 "$T/out5.st" | tr -d ' ')
checked=$(od -An -tfF -j $((8 + header + at)) -N4 "$T/out5.st" | tr -d ' ')
is "$(printf '%.4f' "$(losses "$T/run")")" "$(printf '%.4f' "$checked")" "a run's first loss is --check's of the same seed"
tap_done
