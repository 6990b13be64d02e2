#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: codec
# reperf measure of TensorBoard's event files: scalars alone, both ways to write them, by step and time; files that are damaged or cut.
# shellcheck source=tests/tap_lib.sh disable=SC1091
source "$(dirname "$0")/../tap_lib.sh"
M=(/usr/bin/python3 tests/integration/make_events.py)

scalars() { # LOSS: of 12 steps
    for n in $(seq 12); do echo "$((10 * n)) $((1700000000 + 30 * n)).5 train/loss $1"; done
    for n in $(seq 12); do echo "$((10 * n)) $((1700000000 + 30 * n)).5 perf/samples_per_sec $((n == 1 ? 10 : 320))"; done
}
scalars 2.5 | sort -n -s -k1,1 | "${M[@]}" "$T/events.out.tfevents.1700000000.host"
exits 0 "an event file" "$REPERF" measure "$T/events.out.tfevents.1700000000.host" --json
is "$(jq -r '[.verdict, .value, .unit, .records, .window.last_step] | join(" ")' "$T/out")" "ok 320 samples/s 12 120" "its rate, by the step"
is "$(jq -c .notes "$T/out")" '["value: items over time of samples","skip 1 of 12: slow start"]' "without the slow start"
scalars 2.5 | "${M[@]}" "$T/apart"
exits 0 "each tag for itself" "$REPERF" measure "$T/apart" --json
is "$(jq -r '[.verdict, .value, .records] | join(" ")' "$T/out")" "ok 320 12" "is the same"
gzip -c "$T/apart" >"$T/apart.gz"
exits 0 "compressed" "$REPERF" measure "$T/apart.gz"
exits 0 "and from standard input" "$REPERF" measure - <"$T/apart"
scalars nan | "${M[@]}" "$T/nan"
exits 9 "a loss that is no number" "$REPERF" measure "$T/nan" --json
is "$(jq -r '[.verdict, .value] | map(tostring) | join(" ")' "$T/out")" "nan null" "takes the rate away"
scalars 2.5 | "${M[@]}" "$T/damaged" damaged
exits 5 "a byte that its checksum does not know" "$REPERF" measure "$T/damaged"
like "$(cat "$T/err")" 'damaged: record 49, byte [0-9]+: its checksum is wrong' "is named"
head -c -8 "$T/apart" >"$T/cut"
exits 9 "a file that ends in the midst of a record" "$REPERF" measure "$T/cut" --json
is "$(jq -r '[.verdict, .value] | map(tostring) | join(" ")' "$T/out")" "truncated 320" "is cut off, and its part is given"
for n in $(seq 12); do echo "$n 1700000000 train/loss 2.5"; done | "${M[@]}" "$T/loss"
exits 9 "one without a rate" "$REPERF" measure "$T/loss"
"${M[@]}" "$T/none" </dev/null
exits 9 "one without a scalar" "$REPERF" measure "$T/none"
tap_done
