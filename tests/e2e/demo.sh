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

say "Run the bundled ResNet-50 here, on the CPU: a smoke run, which claims no published number"
expect 0 "$reperf" run paddle-perf-2020 --case 'resnet50/reperf/fp32/n1g1/*' --profile smoke --repeats 2 --run-id 20200101T000000.000Z-000000de
archive="$REPERF_STATE/runs/20200101T000000.000Z-000000de/20200101T000000.000Z-000000de.tar.zst"

say "Check its sealed evidence, then derive the numbers again from the raw logs"
expect 5 "$reperf" verify "$archive"
echo "Exit status 5: nobody signed this run, and verify does not pass that over in silence."
expect 0 "$reperf" verify --unsigned "$archive"
expect 0 "$reperf" replay "$archive"

say "Pages for a browser"
expect 0 "$reperf" report --all --html "$out/reports.html"
expect 0 "$reperf" report last --html "$out/run.html"
printf '\nDone. Open\n  file://%s/%s/reports.html\n  file://%s/%s/run.html\n' "$PWD" "$out" "$PWD" "$out"
