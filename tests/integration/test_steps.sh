#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: judge
# The time that a log may take is bounded by its length: a log whose lines cost more is unreadable, with that cause, whoever reads it.
# shellcheck source=tests/tap_lib.sh
. "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/run_lib.sh
. "$(dirname "$0")/run_lib.sh"
cd "$T" || exit 1
/usr/bin/python3 - "$ROOT" <<'EOF'
import glob, json, os, sys

own = {"schema_version": 1, "id": "own", "title": "own", "framework": "own", "source": "this test", "prefixes": [], "facts": [], "rules": [],
       "series": [{"name": "speed", "unit": "samples/s", "scope": "job", "quantity": "rate", "primary": True,
                   "literal": "ips: ", "pattern": "ips: (?<value>[0-9.]+) img.*last"}]}
json.dump(own, open("own.json", "w"))
again = "ips: 1 img tsa " * 1000
with open("costly.log", "w") as log:
    log.write("ips: 7 img last\n" * 3 + (again + "\n") * 2000)
open("one.log", "w").write("ips: 1 img tsa " * 69000 + "\n")
open("cut.log", "w").write("ips: 1 img tsa " * 69000)
with open("long.log", "w") as log:  # as long, and not costly
    log.write("ips: 7 img last\n" * 3 + ("ips: 1 img tsa " + "." * 15000 + "\n") * 2000)
# The literals of each shipped format, repeated, in lines of 16 KiB.
for path in glob.glob(sys.argv[1] + "/manifests/formats/*.json"):
    text = json.load(open(path))
    if "records" in text:
        continue
    with open(os.path.basename(path)[:-5] + ".again", "w") as log:
        for series in text["series"]:
            for literal in {series.get("literal"), (series.get("after") or {}).get("literal")} - {None}:
                for joint in ("", " ", "0", " 0.5 "):
                    log.write(((literal + joint) * (16384 // len(literal + joint)) + "\n") * 4)
EOF
fails 9 'costly.log: line [0-9]+: pattern "ips: .*last" .*matching steps' "a log of costly lines" "$REPERF" measure costly.log --format ./own.json
is "$(cat out)" "" "and gives no number"
is "$("$REPERF" measure costly.log --format ./own.json --json 2>&1 | grep -c '"ok"')" 0 "nor a verdict of ok"
fails 9 'matching steps' "one line of a megabyte" "$REPERF" measure one.log --format ./own.json
fails 9 'matching steps' "one without an end" "$REPERF" measure cut.log --format ./own.json
exits 0 "as long a log of cheap lines" "$REPERF" measure long.log --format ./own.json
bad="" n=0
for log in *.again; do
    "$REPERF" measure "$log" --format "${log%.again}" --json >out 2>err
    status=$? n=$((n + 1))
    [ "$status" -eq 9 ] && ! grep -q '"verdict": *"ok"' out || bad="$bad $log:$status"
done
is "$n" "$(grep -L '"records"' "$ROOT"/manifests/formats/*.json | wc -l)" "a hostile log of each shipped format of lines"
is "$bad" "" "each shipped format against what it looks for, over and over: an end, and never ok"

# In an audit and in a run: two formats that also have that series.
mkdir -p root/manifests raw && cp -R "$ROOT"/manifests/{formats,reports,vocabulary.json} root/manifests/
ln -s "$ROOT"/{images,datasets,logs,workloads} root/
for format in mmseg reperf; do
    jq --slurpfile own own.json '.series += [$own[0].series[0] | .primary = false]' "$ROOT/manifests/formats/$format.json" >"root/manifests/formats/$format.json"
done
export REPERF_ROOT="$T/root"
"$REPERF" audit paddle-perf-deeplabv3p --logs raw --json >out 2>err
jq -r '.reports[0].cells[].logs[].path' out | sort -u | while read -r path; do
    mkdir -p "raw/$(dirname "$path")" && cp costly.log "raw/$path"
done
exits 1 "an audit of such logs" "$REPERF" audit paddle-perf-deeplabv3p --logs raw --json
is "$(jq -r '.reports[0].cells[].log_state' out | sort -u)" unreadable "each is unreadable"
like "$(jq -r '.reports[0].findings[].message' out)" 'matching steps' "and the finding says why"
mode 'costly'
exits 9 "a run whose workload prints one" smoke --repeats 1 --json
like "$(jq -r '.cells[0] | tostring' out)" 'matching steps' "does not count it, and says why"
is "$(jq -r '.cells[0].verdict' out)" failed "its verdict"
tap_done
