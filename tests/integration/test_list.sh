#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: cmd
# `list`: every kind as table, ids and JSON, and that they say the same as the files.
. "$(dirname "$0")/../tap_lib.sh"
for kind in reports cases datasets images formats rules findings inventories runs; do
    exits 0 "list $kind" "$REPERF" list "$kind"
    lines=$(($(wc -l <"$T/out") - 2))
    "$REPERF" list "$kind" --ids >"$T/ids"
    is "$lines" "$(wc -l <"$T/ids")" "a line for each of $kind ($lines)"
    "$REPERF" list "$kind" --json >"$T/$kind.json"
    valid list-output "list $kind --json has the form of its schema" "$T/$kind.json"
    is "$(/usr/bin/python3 -c 'import json, sys; print(*(x["id"] for x in json.load(open(sys.argv[1]))[sys.argv[2]]), sep="\n")' "$T/$kind.json" "$kind")" \
        "$(cat "$T/ids")" "with the same ids"
done
is "$("$REPERF" list --ids)" "$(cd manifests/reports && printf '%s\n' *.json | sed 's/\.json$//' | LC_ALL=C sort)" "reports are the files of manifests/reports"
is "$("$REPERF" list formats --ids)" "$(cd manifests/formats && printf '%s\n' *.json | sed 's/\.json$//' | LC_ALL=C sort)" "formats are those of manifests/formats"
is "$("$REPERF" list images --ids)" "$(for f in images/*/image.json; do basename "$(dirname "$f")"; done | LC_ALL=C sort)" "images are those of images/"
is "$("$REPERF" list datasets --ids)" "$(for f in datasets/*/dataset.json; do basename "$(dirname "$f")"; done | LC_ALL=C sort)" "datasets are those of datasets/"
is "$("$REPERF" list cases paddle-perf-hrnetw18 --ids | wc -l)" "$(grep -cE '^ +(\{)?"id": "hrnetw18/' manifests/reports/paddle-perf-hrnetw18.json)" \
    "cases of one report"
is "$("$REPERF" list runs --ids)" "" "no run yet"
exits 2 "an unknown kind" "$REPERF" list nothing
exits 2 "an operand too many" "$REPERF" list reports paddle-perf-hrnetw18
exits 2 "--ids and --json" "$REPERF" list --ids --json
exits 2 "cases of a report that is not there" "$REPERF" list cases no-such-report
is "$("$REPERF" list reports --json | jq -c '[.reports[].title | select(test("[0-9a-f]{40}"))]')" '[]' "no title has a digest"
tap_done
