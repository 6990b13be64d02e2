#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# How often a verdict is right: a short case is measured and published, with half its interval; then it is reproduced with --tolerance at twice that,
# N times as it is (wanted: `slower` in at most 1 of 20), and N times by a copy that is slower by three times the tolerance (wanted: in 19 of 20).
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${B:=build/release}" "${N:=20}" "${REPEATS:=5}"
REPERF=$(cd "$B" && pwd)/reperf
T=$(mktemp -d "${TMPDIR:-/tmp}/reperf-tolerance.XXXXXX") || exit 1
trap 'rm -rf "$T"' EXIT
export HOME="$T" REPERF_STATE="$T/state" REPERF_STORE="$T/store"
unset XDG_DATA_HOME REPERF_MANIFESTS REPERF_ROOT
mkdir "$T/case" && cd "$T/case" || exit 1
cat >burn.py <<'PY'
# A fixed amount of work a step, for a second or two. Its session asks for a greater share of the processors, where it may.
import os, time
try:
    open("/proc/self/autogroup", "w").write("-14")
except OSError:
    pass
work = int(float(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "work")).read()))
for step in range(1, 41):
    begin, x = time.perf_counter(), 1
    for _ in range(work):
        x = x * 69069 % 4294967291
    print("step %d/40: loss %.3f, %.3f samples/s" % (step, 3 - step / 20, 1 / (time.perf_counter() - begin)))
PY
echo 400000 >work
python3 burn.py >one.log && "$REPERF" measure one.log --suggest ../mine.json >/dev/null 2>&1
"$REPERF" run --repeats "$REPEATS" --name base --format ../mine.json -- python3 burn.py >../out 2>../err || { cat ../err; exit 1; }
tolerance=$("$REPERF" report base --csv - | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } NR == 2 { printf "%.4f", 200 * $at["ci95"] / $at["value"] }') # %
slower=$(awk -v t="$tolerance" 'BEGIN { printf "%.6f", 1 + 3 * t / 100 }')
"$REPERF" publish base -o ../equal --files . 2>/dev/null && cp -R ../equal ../slow
awk -v s="$slower" '{ printf "%d\n", $1 * s }' work >../slow/manifests/overlays/code/work
cd "$T" || exit 1
printf 'half of the interval %.2f %%, tolerance %.2f %%, planted %.2f %%; %s repeats a run\n' \
    "$(awk -v t="$tolerance" 'BEGIN { print t / 2 }')" "$tolerance" "$(awk -v s="$slower" 'BEGIN { print 100 * (s - 1) }')" "$REPEATS"
declare -A PIN
for which in equal slow; do PIN[$which]=$("$REPERF" run "./$which" 2>&1 | sed -n 's/.*then --trust //p'); done
for ((n = 1; n <= N; n++)); do # in turns, since the machine drifts
    for which in equal slow; do
        verdict=$("$REPERF" run "./$which" --trust "${PIN[$which]}" --repeats "$REPEATS" --tolerance "$tolerance%" --json 2>/dev/null | jq -r '.cells[0].verdict')
        echo "$which $verdict" >>verdicts
    done
    echo "# $n: $(tail -n 2 verdicts | xargs)" >&2
done
sort verdicts | uniq -c
