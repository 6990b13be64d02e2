#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: judge
# MLPerf Training: a small generated round made into a report, audited and forged; the five published rounds from their kept series, and from
# the raw logs where MLPERF=DIR holds clones of training_results_vN.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2016,SC2317
source "$(dirname "$0")/../tap_lib.sh"
ID=mlperf-training-9.9
new_root() { # the made-up round, in a data folder of its own
    rm -rf "$T/root" "$T/made"
    mkdir -p "$T/root/manifests/reports" "$T/root/logs/published"
    cp -r "$ROOT/manifests/formats" "$ROOT/manifests/vocabulary.json" "$T/root/manifests/"
    /usr/bin/python3 tests/integration/make_round.py "$T/made"
}
# As manifests/tools/README.md has it: measured, made into a report, its series written from the raw logs and pinned.
make_report() { # [CHECKOUT RESULTS]
    local checkout=${1:-$T/made/training_results_v9.9} results=${2:-$T/made/results.csv}
    "$REPERF" measure "$checkout" --results "$results" --json >"$T/round.json" || [ $? = 1 ] || return
    "$ROOT/manifests/tools/mlperf_report.py" "$checkout" "$results" <"$T/round.json" >"$R" || return
    "$REPERF" audit "$ID" --logs "$T/made" --write-series "$T/root/logs/published" >/dev/null || [ $? = 1 ] || return
    jq --arg sum "$(sha256sum <"$S/series.json" | cut -d' ' -f1)" '.logs.series_sha256 = $sum' "$R" >"$T/pinned.json" && mv "$T/pinned.json" "$R"
}
cells() { jq -r '.reports[0].cells[] | [.verdict, .proof, .log_state, .recomputed // "-"] | join(" ")' "$T/out"; }
export REPERF_ROOT="$T/root" REPERF_STORE="$T/store"

R="$T/root/manifests/reports/$ID.json" S="$T/root/logs/published/$ID"
new_root
MADE=$T/made/training_results_v9.9
exits 0 "a checkout: every result at or below it" "$REPERF" measure "$MADE"
is "$(grep -c "^$MADE/" "$T/out") $(grep -c 'results/b1/bert  *10  *30.5625$' "$T/out")" "7 1" "each with its score"
like "$(cat "$T/out")" 'a16s/ssd  *5  *27.5' "a factor counts"
prints 1 '6 of 9 results of the table are the score of their folder' "the same beside its table" "$REPERF" measure "$MADE" --results "$T/made/results.csv"
documents measure-folder-output 1 "and as a document" "$REPERF" measure "$MADE" --results "$T/made/results.csv" --json
cp "$T/out" "$T/round.json"
is "$(jq -r '[.rows[] | .holds] | map(if . then 1 else 0 end) | join(" ")' "$T/round.json")" "1 1 1 1 1 1 0 0 0" "six hold"
is "$(jq -r '[.results[] | select(.checks | any(.failed)) | .folder] | join(" ")' "$T/round.json")" "" "no rule is broken"
answers 0 '[.results[].value]' "[12,30.5625,40.5625]" "two folders in one command are three results" "$REPERF" measure "$MADE/Acme/results/a 8x/resnet" "$MADE/Bolt_Co/results" --json
exits 2 "a table belongs to one checkout" "$REPERF" measure "$MADE" "$T/made" --results "$T/made/results.csv"
exits 2 "and to no log" "$REPERF" measure "$MADE/LICENSE.md" --results "$T/made/results.csv"
exits 0 "a report of a round" make_report
valid report-2 "the report is valid" "$R"
like "$(jq -r '.cases[3].logs[0] + " " + .cases[4].logs[0]' "$R")" '^Bolt_Co/results/b2/.* Bolt_Co/results/b1/' "of two folders of one name the score decides, in whatever order they stand"
like "$(jq -r '.cases[5].matched' "$R")" 'a4/resnet.*the system has another name there' "a system under another name is found by its score"
like "$(jq -r '.cases[6].matched' "$R")" 'a2/resnet.*its score is another' "a row whose folder has another score says so"
like "$(jq -r '.cases[7].matched' "$R")" '5 of its 5 logs are absent' "and one whose logs are not there that"
like "$(jq -r '.cases[8].matched' "$R")" '^no folder has this score' "and one of nobody that"
is "$(jq -c '.cases[2].factor | [.value, .path]' "$R")" '[1.25,"Acme/results/a16s/ssd/scaling.json"]' "a factor is read from where it was published"
is "$(cd "$T/made/training_results_v9.9" && jq -r '.logs[] | .sha256 + "  " + .log' "$S/series.json" | sha256sum -c --quiet 2>&1)" "" "every log by its digest"
cp "$R" "$T/first.json"
make_report >/dev/null 2>&1
exits 0 "made again it is the same" cmp "$R" "$T/first.json"
(cd "$MADE" && rm "$R" && make_report . ../results.csv) >/dev/null 2>&1
exits 0 "and named from where it stands, too" cmp "$R" "$T/first.json"

exits 1 "audit: status 1, one row differs" "$REPERF" audit "$ID" --json
is "$(cells)" "exact partial whole 12
exact partial whole 6.5
exact partial whole 27.5
exact partial whole 40.5625
exact partial whole 30.5625
exact partial whole 52
differs partial whole 92
no_log partial absent -
no_log partial absent -" "each row by the olympic mean; a failed run is the slowest, a factor counts"
cp "$T/out" "$T/kept.json"
valid audit-output "its JSON is valid" "$T/kept.json"
exits 1 "audit from the raw logs" "$REPERF" audit "$ID" --logs "$T/made" --json
cp "$T/out" "$T/raw.json"
exits 0 "is the same, byte for byte" cmp "$T/raw.json" "$T/kept.json"
"$REPERF" audit "$ID" --logs "$T/made" --write-series "$T/series" >/dev/null 2>&1
exits 0 "and so are the series written from them" diff -r "$T/series/$ID" "$S"

# --- forged ------------------------------------------------------------------------------------------------
L="$T/made/training_results_v9.9/Acme/results/a 8x/resnet"
first() { jq -r '.reports[0].cells[0] | [.verdict, .proof, (.contradicted | map(.fact) | join("+"))] | join(" ")' "$T/out"; }
raw() { "$REPERF" audit "$ID" --logs "$T/made" --json; }
forged() { # NAME SED WHAT FINDING: of the first row's third log
    cp "$L/result_2.txt" "$T/keep.txt"
    sed -i "$2" "$L/result_2.txt"
    cmp -s "$L/result_2.txt" "$T/keep.txt" && ok 1 "$1: planted"
    leaves 1 first "$3" "$1: $3" raw
    like "$(jq -r '.reports[0].findings[] | .id + " " + .where' "$T/out")" "$4" "$1: a finding"
    cp "$T/keep.txt" "$L/result_2.txt"
}
forged "a run_stop that was edited" '/run_stop/s/"time_ms": 16500007/"time_ms": 16500006/' "differs partial " '^log-[a-z-]+ .*result_2'
forged "a log of another benchmark" 's/"resnet"/"ssd"/' "differs contradicted model" '^row-differs .*result_2'
forged "a log of another number of nodes" 's/"1xAcme/"3xAcme/' "differs contradicted nodes" '^row-differs .*result_2'
forged "a run that failed" 's/"success"/"aborted"/' "differs partial " '^log-[a-z-]+ .*result_2'
mv "$L/result_2.txt" "$T/keep.txt"
leaves 1 first "no_log partial " "a log that is missing: the row is not judged" raw
like "$(cat "$T/out")" '"id": "log-missing"' "and the log is named as missing"
mv "$T/keep.txt" "$L/result_2.txt"
jq 'del(.cases[0].logs[4])' "$R" >"$T/four.json" && cp "$T/four.json" "$R"
leaves 1 first "differs contradicted runs" "a run left out of the row: the benchmark asks for five" "$REPERF" audit "$ID" --json
jq '.cases[0].gpus_per_node = 9' "$T/first.json" >"$R"
fails 3 "1 nodes of 9 GPUs, but environment \"acme-acme-8\" has 1 of 8" "another accelerator count than the system's" "$REPERF" audit "$ID"
cp "$T/first.json" "$R"
sed -i 's/"success"/"successes"/' "$S/series.json"
exits 5 "an edited series is found without the raw log" "$REPERF" audit "$ID"
new_root
sed -i '2s/,8,A1/,16,A1/' "$T/made/results.csv"
exits 0 "a table with another accelerator count" make_report
is "$("$REPERF" audit "$ID" --json | jq -c '.reports[0].cells[0].case | sub(".*/n"; "n")') $(jq -c '.environments[0] | [.nodes, .gpus_per_node]' "$R")" '"n1g16/bs0/acme-acme-8" [1,16]' "the row's count stands, on one node"

# --- a user's submission -------------------------------------------------------------------------------
A=$T/made/training_results_v9.9/Acme/results
runs() { jq -r '[.runs[] | .dropped // "-"] | join(" ")' "$T/out"; }
documents measure-folder-output 0 "measure of a folder" "$REPERF" measure "$A/a16/resnet" --json
is "$(jq .value "$T/out") $(runs)" "6.5 - unsuccessful - fastest -" "its score; the run that failed is dropped, and the fastest"
documents measure-folder-output 0 "with a factor" "$REPERF" measure "$A/a16s/ssd" --json
is "$(jq -c '[.value, .factor, [.checks[] | select(.failed)], .checks[0].rule]' "$T/out")" '[27.5,1.25,[],"target-reached"]' "it counts; what was not checked is said"
spoil() { # NAME SED FILE RULE: of the first row's folder
    cp -r "$L" "$T/own"
    sed -i "$2" "$T/own/$3"
    documents measure-folder-output 9 "$1: status 9" "$REPERF" measure "$T/own" --json
    is "$(jq -r '[.checks[] | select(.failed) | .rule] | unique | join(" ")' "$T/out")" "$4" "$1: $4"
    rm -r "$T/own"
}
spoil "two seeds that are one" '/"seed"/s/103/100/' result_3.txt "seeds-differ"
spoil "an evaluation below the target" 's/0.76/0.758/' result_1.txt "target-reached"
spoil "a stop before its start" '/run_start/s/16500000/16600000/' result_1.txt "log-whole start-before-stop"
spoil "no stop" '/run_stop/d' result_1.txt "log-whole start-before-stop"
spoil "another benchmark" 's/"resnet"/"bert"/' result_1.txt "one-benchmark"
cp -r "$L" "$T/own" && rm "$T/own/result_4.txt"
prints 9 'required-runs +resnet asks for 5 runs, and there are 4' "four runs of five" "$REPERF" measure "$T/own"
rm "$T/own/"*.txt
exits 2 "a folder without a log is no submission" "$REPERF" measure "$T/own"
for factor in -1 0 0.5; do
    rm -rf "$T/own" && cp -R "$A/a16s/ssd" "$T/own" && chmod -R u+w "$T/own"
    echo "{\"scaling_factor\": $factor}" >"$T/own/scaling.json"
    exits 3 "a factor of $factor" "$REPERF" measure "$T/own"
done
like "$(cat "$T/err")" 'scaling_factor 0.5: expected 1 or more' "is refused: it would make a time shorter"
rm -rf "$T/own" && cp -R "$A/a16/resnet" "$T/own" && chmod -R u+w "$T/own"
last=$(printf '%s\n' "$T"/own/result_*.txt | tail -n 1)
grep -a -n run_stop "$last" | tail -n 1 | cut -d: -f1 | xargs -I{} head -n {} "$last" | head -c -10 >"$T/cut.txt" && cp "$T/cut.txt" "$last"
answers 9 '[.checks[].rule] | index("log-whole") != null' true "a log whose run_stop is cut is not whole" "$REPERF" measure "$T/own" --json

# --- bad input ---------------------------------------------------------------------------------------------
exits 2 "new needs a clone" "$REPERF" new
bad_table() { # NAME SED PATTERN
    sed "$2" "$T/made/results.csv" >"$T/bad.csv"
    fails 3 "$3" "$1" "$REPERF" measure "$MADE" --results "$T/bad.csv"
}
bad_table "a column less" '1s/,submitter//' 'bad.csv:1: expected a column "submitter"'
bad_table "a field less" '3s/9.9,//' 'bad.csv:3: expected 10 fields, found 9'
bad_table "an invalid result" '2s/12.0/12,5/' 'bad.csv:2: expected 10 fields'
bad_table "a quote that is not closed" '2s/G 2"/G 2/' 'a quote is not closed|expected'
bad_table "another round" 's/^9.9/9.8/' 'no result of round 9.9'

# --- the published rounds ------------------------------------------------------------------------------------
export REPERF_ROOT="$ROOT"
count() { jq -r '.reports[] | [.report, (.cells | length), ([.cells[].verdict] | group_by(.) | map("\(.[0]) \(length)") | join(" "))] | map(tostring) | join(" ")' "$T/out"; }
ROUNDS="mlperf-training-1.0 131 exact 122 no_log 9
mlperf-training-1.1 108 exact 107 no_log 1
mlperf-training-2.0 234 exact 234
mlperf-training-2.1 144 exact 144
mlperf-training-3.0 214 exact 214"
IDS=(mlperf-training-{1.0,1.1,2.0,2.1,3.0})
leaves 0 count "$ROUNDS" "the five rounds hold: 821 of 831 results follow from their logs" "$REPERF" audit "${IDS[@]}" --json
is "$(jq '[.reports[].cells[] | select(.verdict == "no_log") | .matched | contains("absent from the stored copy")] | all' "$T/out")" true "the others' logs are absent, and they say so"
exits 0 "the rounds as one page" "$REPERF" report "${IDS[@]}" --html "$T/page.html"
is "$(grep -c '>how</span>' "$T/page.html") $(grep -ci '<script' "$T/page.html")" "821 0" "how each result that has its logs follows from its runs, and no script"
is "$(find manifests/reports logs/published -path '*mlperf-*' -size +5000k)" "" "no file over 5 MB"
if [ -n "${MLPERF:-}" ]; then
    cp "$T/out" "$T/kept.json"
    exits 0 "and from the raw logs" "$REPERF" audit "${IDS[@]}" --logs "$MLPERF" --json
    cp "$T/out" "$T/raw.json"
    exits 0 "byte for byte the same" cmp "$T/raw.json" "$T/kept.json"
else
    skip "the five rounds from the raw logs" "MLPERF=DIR, of clones of training_results_vN, is not given"
fi
tap_done
