#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: judge
# Two runs in one log: what one of them states of itself proves nothing of the other's samples.
# shellcheck source=tests/tap_lib.sh disable=SC1091
source "$(dirname "$0")/../tap_lib.sh"
mkdir -p "$T/root/manifests" "$T/root/logs" "$T/logs/made"
cp -R manifests/formats manifests/reports "$T/root/manifests/" && chmod -R u+w "$T/root"
export REPERF_ROOT="$T/root"
F=$T/root/manifests/formats

# The same lines in three formats: no mark between runs, one by which they begin, one without a step.
jq '.rules += [{"name": "first-run", "series": "ips", "run": "first", "statistic": "mean", "scale": "gpus", "origin": "own", "source": "made up"},
    {"name": "last-run", "series": "ips", "run": "last", "statistic": "mean", "scale": "gpus", "origin": "own", "source": "made up"},
    {"name": "last", "series": "ips", "run": "last", "statistic": "last", "scale": "gpus", "origin": "stated", "source": "made up"}]' manifests/formats/paddleseg.json >"$F/paddleseg.json"
jq '.id = "marked" | .role = "named" | .run_start = {"literal": "=== begin", "pattern": "^=== begin"}' "$F/paddleseg.json" >"$F/marked.json"
jq '.id = "stepless" | .role = "named" | .series |= map(.pattern |= sub("\\?<step>"; "?:") | .pattern |= sub("\\?<total>"; "?:") | .pattern |= sub("\\?<epoch>"; "?:"))' "$F/paddleseg.json" >"$F/stepless.json"

head_of() { # GPUS BATCH PRECISION MODEL
    printf '%s\n' "GPUs used: $1" "LAUNCH INFO x nnodes: 1" "batch_size: $2" "python tools/train.py --precision=$3" "    type: $4"
}
steps() { # STEP...
    for step in "$@"; do
        echo "2023-07-27 12:51:00 [INFO]	[TRAIN] epoch: 1, iter: $step/80, loss: 1.5, lr: 0.01, batch_cost: 0.8, reader_cost: 0.1, ips: 10.0000 samples/sec | ETA 00:00:01"
    done
}
run() { # GPUS BATCH PRECISION MODEL, or nothing: a run without a header
    [ $# -eq 0 ] || head_of "$@"
    steps 10 20 30 40 50 60 70 80
}
own=(8 8 fp32 HRNet_W18)
declare -A OTHER=([gpus]="1 8 fp32 HRNet_W18" [batch]="8 4 fp32 HRNet_W18" [precision]="8 8 fp16 HRNet_W18" [model]="8 8 fp32 HRNet_W48")
judged() { # FORMAT RULE < log: verdict, proof, what contradicts, what is unproven
    cat >"$T/logs/made/x.log"
    /usr/bin/python3 tests/integration/forge.py manifests/reports/paddle-perf-hrnetw18.json "$T/forged.json" hrnetw18/paddle/fp32/n1g8/bs8 folder=made log=x.log format="$1" rule="$1/$2" printed="${PRINTED:-80.0}"
    "$REPERF" audit "$T/forged.json" --logs "$T/logs" --json >"$T/out" 2>"$T/err"
    jq -r '.reports[0].cells[0] | [.verdict, .proof, (.contradicted | map(.fact) | join("+")), (.unproven | map(.fact) | join("+"))] | join(" ")' "$T/out"
}
mark() { # FORMAT: what stands before a run
    [ "$1" != marked ] || echo "=== begin"
}
for f in paddleseg marked; do
    two() { # FORMAT "HEAD" "HEAD": two runs
        for head in "$2" "$3"; do
            mark "$1"
            # shellcheck disable=SC2086
            run $head
        done
    }
    is "$(two $f "${own[*]}" "${own[*]}" | judged $f last-run)" "exact full  " "$f: two runs of the row prove it"
    for fact in gpus batch precision model; do
        is "$(PRINTED=80.0 && two $f "${own[*]}" "${OTHER[$fact]}" | judged $f first-run)" "exact full  " "$f: the first of two proves its row, whatever the $fact of the second"
        for printed in 80.0 10.0; do
            is "$(two $f "${own[*]}" "${OTHER[$fact]}" | PRINTED=$printed judged $f last-run)" "differs contradicted $fact " "$f: other $fact in the second, $printed printed: its samples are not the row's"
            is "$(two $f "${own[*]}" "${OTHER[$fact]}" | PRINTED=$printed judged $f last)" "differs contradicted $fact " "$f: nor is its last one"
        done
        is "$(two $f "${OTHER[$fact]}" "${own[*]}" | judged $f first-run)" "differs contradicted $fact " "$f: other $fact in the first"
        is "$(two $f "${OTHER[$fact]}" "${own[*]}" | judged $f last-run)" "exact full  " "$f: and the second is the row's"
    done
    is "$(two $f "${own[*]}" "" | judged $f last-run)" "exact partial  gpus+nodes+precision+batch+model" "$f: a run without a header is not proven by the other's"
    is "$(two $f "" "${own[*]}" | judged $f first-run)" "exact partial  gpus+nodes+precision+batch+model" "$f: not by the one after it"
    is "$(two $f "" "${own[*]}" | judged $f last-run)" "exact full  " "$f: which proves its own"
done
like "$(two paddleseg "${own[*]}" "" | judged paddleseg last-run >/dev/null && jq -r '.reports[0].cells[0].unproven[0].why' "$T/out")" 'the log states how many GPUs there are, but not for this run' "and it is said why"
is "$( (head_of "${own[@]}" && mark marked && steps 10 20 30 40 50 60 70 80 && head_of 1 8 fp32 HRNet_W18 && mark marked && run) | judged marked last-run)" "differs contradicted gpus " "a header before the mark is of the run that the mark begins"

# A second header and no sign of a second run: named, and no proof in full.
again() { # HEAD...: steps go on after it
    head_of "${own[@]}"
    steps 10 20 30 40
    head_of "$@"
    steps 50 60 70 80
}
is "$(again "${own[@]}" | judged paddleseg skip1)" "exact full  " "a header that is printed again and says the same"
for fact in gpus batch precision model; do
    # shellcheck disable=SC2086
    is "$(again ${OTHER[$fact]} | judged paddleseg skip1)" "exact partial  $fact" "one that states other $fact while the steps go on"
    # shellcheck disable=SC2086
    is "$( (run "${own[@]}" && run ${OTHER[$fact]}) | judged stepless skip1)" "exact partial  $fact" "a second run that lines without steps do not show, with other $fact"
    # shellcheck disable=SC2086
    is "$( (run "${own[@]}" && head_of ${OTHER[$fact]}) | judged paddleseg skip1)" "exact partial  $fact" "one after the last step"
done
like "$(again 1 8 fp32 HRNet_W18 | judged paddleseg skip1 >/dev/null && cat "$T/out")" "the row's number of GPUs is 8, but the log says 8 and 1" "with both numbers"
less() { # a header that does not state the precision
    head_of "${own[@]}" | grep -v precision
}
is "$( (less && steps 10 20 30 40 50 60 70 80 && head_of "${own[@]}") | judged paddleseg skip1)" "exact partial  precision" "what only a second header states proves nothing of the steps before it"

# measure scales by the run that the rule takes.
(run "${own[@]}" && run 1 8 fp32 HRNet_W18) >"$T/two.log"
value() { # RULE
    "$REPERF" measure "$T/two.log" --format paddleseg --rule "$1" --json --allow-incomplete 2>/dev/null | jq -c .value
}
is "$(value first-run) $(value last-run)" "80 10" "each run's rate by its own GPUs"

# Kept series state which run a fact belongs to; one of no run proves nothing.
(run "${own[@]}" && run 1 8 fp32 HRNet_W18) | judged paddleseg first-run >/dev/null
"$REPERF" audit "$T/forged.json" --logs "$T/logs" --write-series "$T/kept" >/dev/null 2>&1
mkdir -p "$T/root/logs/published" && cp -R "$T/kept/"* "$T/root/logs/published/"
kept_judged() { # RULE
    jq --arg r "paddleseg/$1" --arg s "$(sha256sum "$T"/root/logs/published/*/series.json | cut -c1-64)" '.logs.series_sha256 = $s | .cases[0].rule = $r' "$T/forged.json" >"$T/root/manifests/reports/paddle-perf-hrnetw18.json"
    "$REPERF" audit paddle-perf-hrnetw18 --json >"$T/out" 2>"$T/err"
    jq -r '.reports[0].cells[0] | [.verdict, .proof, (.contradicted | map(.fact) | join("+")), (.unproven | map(.fact) | join("+"))] | join(" ")' "$T/out"
}
is "$(kept_judged first-run)" "exact full  " "a kept series: the first run is the row's"
is "$(kept_judged last-run)" "differs contradicted gpus " "the second is not"
one=$(echo "$T"/root/logs/published/*/series.json)
jq -c '.logs[].facts[] |= (.first_run = 1 | .last_run = 0)' "$one" >"$T/none.json" && cp "$T/none.json" "$one"
is "$(kept_judged first-run)" "exact partial  gpus+nodes+precision+batch+model" "where no run states the facts"
tap_done
