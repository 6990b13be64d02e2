#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Starting up: CPU of `reperf --help` and of `reperf lint` over all manifests, against `curl --version`. One start is shorter than the clock's
# tick, so N starts are timed together, in turn with N of the peer's, and divided.
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${B:=build/release}" "${N:=40}" "${ROUNDS:=7}"
export REPERF_ROOT="$PWD"

cpu_ms() { # COMMAND...: CPU of one start, in milliseconds, as the mean of N
    local TIMEFORMAT='%U %S' times n
    times=$({ time for ((n = 0; n < N; n++)); do "$@" >/dev/null 2>&1; done; } 2>&1)
    awk -v n="$N" '{ printf "%.3f", 1000 * ($1 + $2) / n }' <<<"$times"
}
median() { sort -g | awk '{ v[NR] = $1 } END { printf "%.2f", NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

for ((round = 0; round < ROUNDS; round++)); do
    curl=$(cpu_ms curl --version)
    help=$(cpu_ms "$B/reperf" --help)
    lint=$(cpu_ms "$B/reperf" lint --all)
    echo "$curl $help $lint"
done >"${TMPDIR:-/tmp}/reperf-startup.$$"
in="${TMPDIR:-/tmp}/reperf-startup.$$"
curl=$(cut -d' ' -f1 "$in" | median)
help=$(awk '{ print $2 / $1 }' "$in" | median)
extra=$(awk '{ print $3 - $1 }' "$in" | median)
printf 'curl --version %s ms CPU; reperf --help %s ms, ratio %s (wanted <= 1.1: %s)\n' "$curl" "$(cut -d' ' -f2 "$in" | median)" "$help" \
    "$(awk -v r="$help" 'BEGIN { print r <= 1.1 ? "yes" : "NO" }')"
printf 'reperf lint --all %s ms CPU, %s ms more than curl (wanted <= 10: %s); n=%s rounds of %s\n' "$(cut -d' ' -f3 "$in" | median)" "$extra" \
    "$(awk -v r="$extra" 'BEGIN { print r <= 10 ? "yes" : "NO" }')" "$ROUNDS" "$N"
rm -f "$in"
