#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: evidence
# `report` and `compare` on runs: by id, folder and archive; what differs, the most important first; tampered runs are refused.
. "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/run_lib.sh
. "$ROOT/tests/integration/run_lib.sh"
export TMPDIR="$T/tmp" # what is left there is no other script's
mkdir "$TMPDIR"
exits 0 "a run to look at" smoke --repeats 1 --run-id 20260101T000000.000Z-00000001
run="$REPERF_STATE/runs/20260101T000000.000Z-00000001"
for name in last 20260101T000000 "$run" "$run/evidence" "$run/20260101T000000.000Z-00000001.tar.zst"; do
    prints 0 'resnet50/reperf/fp32/n1g1/bs96 .*not_comparable' "report $(basename "$name") ..." "$REPERF" report "$name"
done
"$REPERF" report last --json >"$T/json"
succeeds "report --json of a run is its result.json" cmp -s "$T/json" "$run/evidence/result.json"
exits 0 "a page of a run" "$REPERF" report last --html "$T/run.html"
is "$(sed 's/<wbr>//g' "$T/run.html" | grep -c '<th scope="row">resnet50/reperf/fp32/n1g1/bs96</th>')" 3 "the page has the cell, what was read beside it and its repeat"
like "$(grep -o 'class="headline">[^<]*' "$T/run.html")" 'A smoke run, small and on the CPU: .*claims nothing' "one sentence says what ran and what it does not claim"
is "$(grep -c '<td data-h="remarks">it counts' "$T/run.html")" 1 "where each repeat ran"

prints 0 '\+0\.00 %' "a run against itself" "$REPERF" compare last "$run/20260101T000000.000Z-00000001.tar.zst"
like "$(cat "$T/out")" 'no difference of machine, software or plan' "and no difference"
is "$(ls -A "$TMPDIR")" "" "what was unpacked is gone"

# Another machine: facts that do not enter the result may differ, and are ranked.
cp -R "$run/evidence" "$T/other"
sed -i 's/"kernel": "[^"]*"/"kernel": "Linux 1.2.3"/; s/"cpu_governor": [^,]*/"cpu_governor": "powersave"/; s/"collected_at": "[^"]*"/"collected_at": "2020-01-01T00:00:00.000Z"/' \
    "$T/other/environment/local.json"
fails 5 'environment/local.json: expected SHA-256 [0-9a-f]* .lock/lock.json., found' "another environment than the run froze" "$REPERF" compare last "$T/other"
old=$(sha256sum <"$run/evidence/environment/local.json") new=$(sha256sum <"$T/other/environment/local.json")
sed -i "s/${old%% *}/${new%% *}/" "$T/other/lock/lock.json"
exits 0 "two machines" "$REPERF" compare -v last "$T/other"
is "$(awk '$1 ~ /^(likely|possible|incidental)$/ { print $1, $2 }' "$T/out" | xargs)" \
    "likely machine.cpu_governor possible machine.kernel incidental collected_at" "what matters comes first"
exits 0 "as JSON" "$REPERF" compare --json last "$T/other"
/usr/bin/python3 - "$T/out" <<'END'
import json, sys
d = json.load(open(sys.argv[1]))
assert d["schema_version"] == 1 and d["a"]["run_id"] == d["b"]["run_id"]
(cell,) = d["cells"]
assert cell["rel_diff"] == 0 and cell["exceeds_spread"] is False and cell["a"] == cell["b"] and cell["a"]["value"] > 0
assert [(x["name"], x["matters"]) for x in d["differences"]] == [
    ("machine.cpu_governor", "likely"), ("machine.kernel", "possible"), ("collected_at", "incidental")]
END
ok $? "one document with the same"
valid compare-output "of the form that the schema has" "$T/out"

# A value that does not follow from the logs is not shown, but what does.
cp -R "$run/evidence" "$T/forged"
sed -i 's/"value": [0-9.e+-][0-9.e+-]*/"value": 9383/' "$T/forged/result.json"
exits 0 "report of a forged result" "$REPERF" report "$T/forged"
is "$(grep -c 9383 "$T/out") $(grep -c "values differ from what today's rules derive, which is shown" "$T/err")" "0 1" "shows what is derived, and says so"
prints 0 '\+0\.00 %' "compare with a forged result" "$REPERF" compare last "$T/forged"
cp "$run/20260101T000000.000Z-00000001.tar.zst" "$T/flipped.tar.zst"
printf 'damaged!' | dd of="$T/flipped.tar.zst" bs=1 seek=1000 conv=notrunc status=none
exits 5 "compare with a damaged archive" "$REPERF" compare last "$T/flipped.tar.zst"
exits 2 "compare one run" "$REPERF" compare last
exits 2 "compare with no such run" "$REPERF" compare last 20990101T000000.000Z-00000000
exits 2 "a run and a report together" "$REPERF" report last paddle-perf-hrnetw18
tap_done
