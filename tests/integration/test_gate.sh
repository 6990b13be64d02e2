#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: evidence
# compare --fail-slower: the gate of a user's CI.
# shellcheck source=tests/tap_lib.sh disable=SC1091
source "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/run_lib.sh disable=SC1091
source "$(dirname "$0")/run_lib.sh"

at_rate() { sed "s/8\.0/$1/" "$ROOT/tests/integration/fake_train.sh" >"$T/fake/train.sh"; } # RATE
A=20260101T000000.000Z-0000000a B_SLOW=20260101T000001.000Z-0000000b B_NEAR=20260101T000002.000Z-0000000c NONE=20260101T000003.000Z-0000000d
smoke --repeats 2 --run-id "$A" >"$T/out" 2>&1
at_rate 7.0
smoke --repeats 2 --run-id "$B_SLOW" >"$T/out" 2>&1
at_rate 7.9
smoke --repeats 1 --run-id "$B_NEAR" >"$T/out" 2>&1
mode silent
smoke --repeats 1 --run-id "$NONE" >"$T/out" 2>&1

exits 0 "without the gate a slower run is no failure" "$REPERF" compare "$A" "$B_SLOW"
fails 1 "$CASE: slower: slower by 12.50 %, tolerance 5 %" "slower by 12.5 %" "$REPERF" compare "$A" "$B_SLOW" --fail-slower 5%
like "$(tail -n 1 "$T/err")" '0 cells within, 1 slower, 0 undecided, 0 missing' "and counted last"
exits 0 "within the tolerance" "$REPERF" compare "$A" "$B_SLOW" --fail-slower 13
exits 1 "slower by 1.25 %, and one repeat cannot tell" "$REPERF" compare "$A" "$B_NEAR" --fail-slower 5%
warns 0 "$CASE: undecided: .*; too few repeats to tell" "which one may allow" "$REPERF" compare "$A" "$B_NEAR" --fail-slower 5% --allow-undecided
exits 1 "but not beyond the tolerance" "$REPERF" compare "$A" "$B_NEAR" --fail-slower 0% --allow-undecided
exits 2 "which is the gate's" "$REPERF" compare "$A" "$B_NEAR" --allow-undecided
exits 0 "faster" "$REPERF" compare "$B_SLOW" "$A" --fail-slower 0
fails 1 'missing: a value in A, none in B' "a run without a value is no success" "$REPERF" compare "$A" "$NONE" --fail-slower 50%
fails 1 'undecided: no value in A' "nothing to compare with" "$REPERF" compare "$NONE" "$A" --fail-slower 50%
exits 1 "nothing at all, whatever is allowed" "$REPERF" compare "$NONE" "$A" --fail-slower 50% --allow-undecided
answers 1 '.cells[0].rel_diff * 1000 | round' "-125" "still one JSON document, with the difference" "$REPERF" compare --json "$A" "$B_SLOW" --fail-slower 5%
is "$(jq -c '[(.gate | .tolerance, .outcome, length), .cells[0].gate]' "$T/out")" '[0.05,"slower",2,"slower"]' "and the outcome"
cp "$T/out" "$T/gate.json"
valid compare-output "which is valid" "$T/gate.json"
fails 2 "expected a share" "an invalid share" "$REPERF" compare "$A" "$B_SLOW" --fail-slower much
fails 2 "may be read as 5% or as 0.05%" "5 % or 0.05 %" "$REPERF" compare "$A" "$B_SLOW" --fail-slower 0.05

# --- the interval from the repeats, and outliers among them -------------------------------------------
"$REPERF" compare "$A" "$B_NEAR" --fail-slower 5% >"$T/out" 2>"$T/err"
like "$(cat "$T/err")" "$CASE: undecided: slower by 1.25 %, tolerance 5 % \(2 and 1 repeats give no interval: each run needs two that count\)" "too few repeats: plainly none"
like "$(grep "$CASE" "$T/out")" "too few repeats" "in the table as well"
rm -f "$T/fake/mode"
THREE=20260101T000004.000Z-0000000e LESS=20260101T000005.000Z-0000000f ODD=20260101T000006.000Z-0000000a
at_rates 10 10.2 9.8
smoke --repeats 3 --run-id "$THREE" >"$T/out" 2>&1
at_rates 9 9.3 8.7
smoke --repeats 3 --run-id "$LESS" >"$T/out" 2>&1
at_rates 10 10.01 7.5 9.99
smoke --repeats 4 --run-id "$ODD" >"$T/out" 2>&1
# By hand: u = (0.2/10)^2/3, v = (0.3/9)^2/3, df = (u+v)^2/(u^2/2+v^2/2) = 3.27, t = 3.182, half = t 0.9 sqrt(u+v) = 6.43 %.
fails 1 "slower: slower by 10.00 %, tolerance 2 % \(95 % interval -16.43 % to -3.57 %, from 3 and 3 repeats\)" "slower by 10 %, three repeats each" "$REPERF" compare "$THREE" "$LESS" --fail-slower 2%
is "$(grep -c 'too few repeats to tell' "$T/err")" 0 "which leaves no doubt"
fails 1 "$CASE: undecided: .*too few repeats to tell" "more than the tolerance" "$REPERF" compare "$THREE" "$LESS" --fail-slower 5%
exits 1 "which may not be allowed" "$REPERF" compare "$THREE" "$LESS" --fail-slower 5% --allow-undecided
fails 1 "$CASE: undecided: .*too few repeats to tell" "less than the tolerance" "$REPERF" compare "$THREE" "$LESS" --fail-slower 12%
exits 0 "which may be allowed" "$REPERF" compare "$THREE" "$LESS" --fail-slower 12% --allow-undecided
# By hand: u = v = (0.2/10)^2/3, df = 4, t = 2.776, half = t sqrt(2u) = 4.53 %.
warns 0 "$CASE: within: .*95 % interval -4.53 % to \+4.53 %" "a run and itself: the interval is within" "$REPERF" compare "$THREE" "$THREE" --fail-slower 5%
exits 1 "and not within less" "$REPERF" compare "$THREE" "$THREE" --fail-slower 4%
prints 1 "of B these repeats stand out: [0-9] \(7.5\)" "a run with a repeat that stands out" "$REPERF" compare "$THREE" "$ODD" --fail-slower 5%
is "$(grep -c 'of A these' "$T/out")" 0 "the other has none"

# --- several forms at once -----------------------------------------------------------------------------
documents compare-output 0 "Markdown together with JSON" "$REPERF" compare "$THREE" "$ODD" --markdown "$T/c.md" --json
is "$(jq -c '.cells[0].b.outliers | length' "$T/document")" 1 "with the repeat that stands out"
is "$(grep -c "^| $CASE |" "$T/c.md")" 1 "the Markdown"
exits 2 "two for standard output" "$REPERF" compare "$THREE" "$ODD" --markdown - --json
exits 2 "two for one file" "$REPERF" report "$THREE" --csv "$T/x" --markdown "$T/x"
exits 0 "a run as CSV" "$REPERF" report "$THREE" --csv - --markdown "$T/r.md"
like "$(tr -d '\r' <"$T/out" | tail -n 1)" "^$THREE,paddle-perf-2020,smoke,$CASE,3,10,0\.19999999+[0-9]*,0\.4968[0-9]+,9\.80*[0-9]*,10\.(2|19+[0-9]*),samples/s," "with its interval, by t of two degrees of freedom"
is "$(grep -c $'\r$' "$T/out") $(wc -l <"$T/out")" "2 2" "whose lines end as RFC 4180 has it"
leaves 0 output "run $THREE: 1 cell: 1 not_comparable" "a run's text with -q is the summary" "$REPERF" report "$THREE" -q
exits 2 "a run's case that is not there" "$REPERF" report "$THREE" --case 'no/*'
exits 2 "beside one that is" "$REPERF" report "$THREE" --case "$CASE" --case 'no/*'
exits 2 "a run's page is whole" "$REPERF" report "$THREE" --case "$CASE" --html "$T/x.html"
exits 0 "history -q" "$REPERF" history -q
like "$(tail -n 1 "$T/out")" "^7 runs, 7 cells: 6 not_comparable, 1 failed$" "ends with the summary"
is "$(grep -c not_comparable "$T/out") $(grep -c "  failed$" "$T/out")" "1 1" "and shows what failed"
prints 0 "$REPERF_STATE/runs/$THREE" "history -v" "$REPERF" history -v --case "$CASE"

# --- a rehearsal compared with a run ----------------------------------------------------------------------------
# On this machine's own GPU, as far as /proc tells; its log is one of the full profile.
REHEARSED=20260101T000007.000Z-0000000b
sed 's/"steps":20/"steps":500/g; s/"warmup_steps":4/"warmup_steps":100/; s/"batch":4/"batch":96/; s/\[64,64\]/[224,224]/; s/"device":"cpu"/"device":"cuda"/; s/steps 6 20/steps 6 500/' "$ROOT/tests/integration/fake_train.sh" >"$T/fake/train.sh"
rm -f "$T/fake/mode"
if unshare -m mount -t tmpfs none /proc/driver 2>/dev/null; then
    # shellcheck disable=SC2016
    exits 0 "a rehearsal on this machine" unshare -m sh -c 'mount -t tmpfs none /proc/driver && mkdir -p /proc/driver/nvidia/gpus/0 && exec "$@"' sh \
        "$REPERF" run paddle-perf-2020 --case "$CASE" --rehearse --repeats 2 --run-id "$REHEARSED" --json
    is "$(jq -c '[.rehearsal, .cells[0].verdict, .cells[0].value, .cells[0].rel_diff]' "$T/out")" '[true,"not_comparable",8,null]' "has a number that claims nothing"
    exits 1 "which no gate takes" "$REPERF" compare "$THREE" "$REHEARSED" --fail-slower 50% --allow-undecided --json
    is "$(jq -c '[.b.rehearsal, .gate.outcome, .cells[0].a.value > 0, .cells[0].b.value > 0, .cells[0].rel_diff]' "$T/out")" '[true,"missing",true,true,null]' "beside which a run's is not set"
    like "$(cat "$T/err")" 'one of the runs is a rehearsal' "and it is said why"
    answers 0 '[.cells[] | select(.rehearsal) | .run]' "[\"$REHEARSED\"]" "in a list: it is marked" "$REPERF" history --json
    cp "$T/out" "$T/h.json"
    valid history "which is valid" "$T/h.json"
    exits 0 "as CSV" "$REPERF" report "$REHEARSED" --csv -
    like "$(tail -n 1 "$T/out")" "^$REHEARSED,paddle-perf-2020,rehearsal," "too"
    answers 0 '[.runs[] | select(.rehearsal) | .run]' "[\"$REHEARSED\"]" "among the runs as well" "$REPERF" status --json
else
    skip "a rehearsal compared with a run" "a mount namespace of one's own needs root"
fi
tap_done
