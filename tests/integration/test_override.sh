#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: report
# -C PATH=VALUE: planned from, frozen, sealed, replayed and listed; published values cannot be changed.
# shellcheck source=tests/tap_lib.sh
. "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/run_lib.sh
. "$(dirname "$0")/run_lib.sh"
SETTINGS=(-C 'stacks[reperf].env.FLAGS_test=7' --set "\$.stacks[reperf].conditions.optimizer=none at all")
plan() { "$REPERF" plan paddle-perf-2020 --case "$CASE" --profile smoke -v "$@"; }

prints 0 '^set +stacks\[reperf\]\.env\.FLAGS_test: "7", in the report absent$' "a plan with settings" plan "${SETTINGS[@]}"
like "$(cat "$T/out")" '^set +stacks\[reperf\]\.conditions\.optimizer: "none at all", in the report "' "and what was there before"
like "$(cat "$T/out")" "FLAGS_test='?7" "the step has it"
plan --json >"$T/plain.json"
plan --json "${SETTINGS[@]}" >"$T/set.json"
is "$(value "$T/plain.json" "'overrides' in d")" False "a plan without settings has no word of them"
is "$(value "$T/set.json" "[o['path'] for o in d['overrides']]")" "['stacks[reperf].env.FLAGS_test', 'stacks[reperf].conditions.optimizer']" "in the order given"
succeeds "it is another report than the published one" test "$(value "$T/set.json" "d['report_sha256']")" != "$(value "$T/plain.json" "d['report_sha256']")"
/usr/bin/python3 -c 'import json, sys, jsonschema
jsonschema.Draft202012Validator(json.load(open("manifests/schema/plan.json"))).validate(json.load(open(sys.argv[1])))' "$T/set.json"
ok $? "the plan holds against its schema"

refused() { # STATUS PATTERN NAME SETTING
    fails "$1" "$2" "$3, and says why" plan -C "$4"
}
refused 2 'nothing there \(at "nosuch", part 2\)' "a member that is not there" 'stacks[nosuch].env.A=1'
refused 2 'expected PATH=VALUE' "no setting at all" 'stacks'
refused 3 'unknown key "nosuch"' "a key that a report does not have" 'stacks[reperf].nosuch=1'
refused 3 'expected' "a value of another type" 'environments[0].nodes=many'
for key in 'cases[0].cells[0].printed=1' 'id=other' 'stacks[reperf].id=x' 'source.commit=x'; do
    refused 2 'is what was published' "what was published: $key" "$key"
done

prints 0 '^  stacks\[reperf\]\.env\.FLAGS_test: "7" here, absent published' "a run with settings" smoke --repeats 1 "${SETTINGS[@]}"
F=$(run_folder "")
is "$(sha256sum "$F/evidence/manifest/report.json" | cut -d' ' -f1)" "$(value "$T/set.json" "d['report_sha256']")" "the frozen report is the one that was planned from"
diff <(tr ',' '\n' <manifests/reports/paddle-perf-2020.json) <(tr ',' '\n' <"$F/evidence/manifest/report.json") | grep -c '^>' >"$T/n"
succeeds "and differs from the published one there alone" test "$(cat "$T/n")" -le 3
is "$(value "$F/evidence/result.json" "[x['name'] for x in d['cells'][0]['differs'] if '[' in x['name']]")" \
    "['stacks[reperf].env.FLAGS_test', 'stacks[reperf].conditions.optimizer']" "result.json has both"
archive=$(find "$F" -maxdepth 1 -name '*.tar.zst')
exits 0 "its archive replays to the same result" "$REPERF" replay "$archive"
# Settings are kept for others to read: they must not be secret.
for setting in HF_TOKEN=hush PGPASSWORD=hush AWS_SECRET_ACCESS_KEY=hush SOME_KEY=hush https_proxy=http://me:hush@proxy; do
    exits 2 "-C of ${setting%%=*}" "$REPERF" run paddle-perf-2020 --profile smoke -C "stacks[reperf].env.$setting"
    is "$(cat "$T/err" "$T/out" | grep -c hush)" 0 "shows no value"
done
omits 2 hush "a password in the name of a reference is not shown" "$REPERF" store drop "source:https://me:hush@host/x.git"
tap_done
