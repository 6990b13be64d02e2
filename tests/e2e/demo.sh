#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `make demo`: the main uses of reperf on this machine, offline. Ends with 0 only if every step did what is stated here.
set -eu
cd "$(dirname "$0")/../.."
B=${B:-build/release}
reperf="$B/reperf"
out=build/demo
rm -rf "$out"
mkdir -p "$out"
export REPERF_STATE="$out/state"
step=0
say() {
    step=$((step + 1))
    printf '\n== %d. %s\n' "$step" "$1"
}
shown() { # COMMAND...: prints it, then runs it
    printf '$'
    printf ' %q' "$@"
    printf '\n'
    "$@"
}
expect() { # STATUS COMMAND...: prints and runs it; another status ends the demo
    local want=$1 got=0
    shift
    shown "$@" || got=$?
    if [ "$got" -ne "$want" ]; then
        echo "demo: expected exit status $want, got $got" >&2
        exit 1
    fi
}

echo "A minute or two: two audits, six repeats of a training of 3 seconds, two pages. Everything is written to $out."

say "Do the published numbers follow from the published logs?"
printf '$ %s audit --all\n' "$reperf"
status=0
"$reperf" audit --all -v >"$out/audit.txt" || status=$?
awk '/^[a-z0-9-]+: / { id = $1 } / cells: / { printf "%-28s %s\n", id, $0 }' "$out/audit.txt"
if [ "$status" -ne 1 ]; then
    echo "demo: audit ended with $status; expected 1, because some published cells do not hold" >&2
    exit 1
fi
echo "Exit status 1: some do not hold. Every cell, the search for other rules, and the findings: $out/audit.txt"

say "What may an engineer not be able to repeat?"
printf '$ %s lint --all\n' "$reperf"
status=0
"$reperf" lint --all >"$out/lint.txt" || status=$?
if [ "$status" -ne 1 ]; then
    echo "demo: lint ended with $status; expected 1, because some commands cannot work as printed" >&2
    exit 1
fi
grep -E '^error ' "$out/lint.txt" | sort | uniq -c | sort -rn
echo "Exit status 1: these are errors. Warnings and notes too: $out/lint.txt"

say "Reproduce one case of a published report from its folder, on one core of this machine, and sign what came of it"
expect 0 "$reperf" keygen "$out/demo.key"
address=manifests/reports/cpu-2026/
echo "Nobody runs what others wrote without looking at it first. Status 2:"
expect 2 "$reperf" run "$address" --case 'resnet50/reperf/*'
verdicts=()
verdict() { # FOLDER OPTIONS...: runs the case; 1 is a verdict too: this machine has another speed than the report's
    local folder=$1 got=0
    shift
    shown "$reperf" run "$folder" --case 'resnet50/reperf/*' --repeats 3 --key "$out/demo.key" --trust "$(pin "$folder")" "$@" >"$out/run.txt" || got=$?
    cat "$out/run.txt"
    verdicts+=("$(awk '$1 ~ "^resnet50/" { print $NF; exit }' "$out/run.txt")")
    [ "$got" -le 1 ] || { echo "demo: expected exit status 0 or 1, got $got" >&2 && exit 1; }
}
pin() { "$reperf" run "$1" --case 'resnet50/reperf/*' 2>&1 | sed -n 's/.*then --trust //p'; }
verdict "$address" --run-id 20200101T000000.000Z-000000de
archive="$REPERF_STATE/runs/20200101T000000.000Z-000000de/20200101T000000.000Z-000000de.tar.zst"

say "Check its sealed evidence, and derive the numbers again from the raw logs"
expect 0 "$reperf" verify "$archive" --key "$out/demo.key.pub"

say "Publish it, audit what was published, and reproduce it from its folder, as anybody can from its repository"
expect 0 "$reperf" publish "$archive" -o "$out/published"
expect 0 "$reperf" audit "$out/published/"
verdict "$out/published/" --tolerance 20%

say "Pages for a browser"
expect 0 "$reperf" report --all --html "$out/reports.html"
expect 0 "$reperf" report last --html "$out/run.html"
printf '\nDone: against the number of cpu-2026, which another machine measured, this one is %s; its own number, published and run again, is %s.\n' "${verdicts[@]}"
printf 'Open\n  file://%s/%s/reports.html\n  file://%s/%s/run.html\n' "$PWD" "$out" "$PWD" "$out"
