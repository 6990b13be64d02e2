#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: run
# Each file of a run's folder is in its journal by its digest: every leaf of every file is edited, one at a time, and nothing that was edited is signed.
# A run that was interrupted is not resumed from an edited file either.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2119
. "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/run_lib.sh disable=SC1091
. "$ROOT/tests/integration/run_lib.sh"
E=(/usr/bin/python3 "$ROOT/tests/integration/edit_leaves.py")
most=3
in_test_all "each leaf of them" && most=0
"$REPERF" keygen "$T/key" >/dev/null
exits 0 "a run" smoke --repeats 1 --key "$T/key"
R=$(run_folder)
files=$(jq -r '.files // {} | keys[]' "$R/journal.jsonl" | sort -u | tr '\n' ' ')
is "$files" "lock/lock.json logs/outcome/$CASE/repeat-1.json logs/raw/$CASE/repeat-1.log result.json series/$CASE/repeat-1.json " "its journal names each file that it wrote"
is "$(jq -r '.files[].name' "$R/evidence/lock/lock.json" | tr '\n' ' ')" "manifest/formats/reperf.json manifest/plan.json manifest/report.json environment/local.json " \
    "and its lock those that it froze"
"${E[@]}" "$most" "$R" "$REPERF" seal "$R/evidence" -o "$T/forged.tar.zst" --key "$T/key" --force >"$T/left"
ok $? "every leaf is tried"
like "$(tail -n 1 "$T/left")" '^[0-9]{2,} leaves of 10 files$' "and those of ten files"
is "$(head -n -1 "$T/left")" "" "none of $(tail -n 1 "$T/left"), each edited alone, is signed"
succeeds "and no archive is left" test ! -e "$T/forged.tar.zst"
exits 0 "without an edit it is sealed" "$REPERF" seal "$R/evidence" -o "$T/whole.tar.zst" --key "$T/key" --force
# The chain written anew by who owns the folder: what was signed before names the record of the result as it was.
exits 0 "its journal is the one that was signed" "$REPERF" verify last --key "$T/key.pub"
cp "$R/journal.jsonl" "$T/journal"
/usr/bin/python3 "$ROOT/tests/integration/rechain.py" "$R/journal.jsonl" '"attempt":1' '"attempt":1'
succeeds "the chain is written as the program writes it" cmp "$R/journal.jsonl" "$T/journal"
/usr/bin/python3 "$ROOT/tests/integration/rechain.py" "$R/journal.jsonl" '"time":"20' '"time":"19'
fails 5 'journal[.]jsonl: not the journal of what was sealed' "a journal whose chain was written anew" "$REPERF" verify last --key "$T/key.pub"
exits 5 "its archive, beside it" "$REPERF" verify "$R/${R##*/}.tar.zst" --key "$T/key.pub"
cp "$T/journal" "$R/journal.jsonl"
exits 0 "with the one that was signed it verifies" "$REPERF" verify "$R/${R##*/}.tar.zst" --key "$T/key.pub"

# Interrupted once its log was collected: what was frozen and collected is held against the journal before anything goes on.
forget_runs
exits 137 "a run that is killed once its log is collected" env REPERF_CRASH_AFTER=3 "$REPERF" run paddle-perf-2020 --case "$CASE" --profile smoke --repeats 1
R=$(run_folder)
cp -r "$R" "$T/interrupted"
fails 5 'the run is not over' "it is not sealed before it is over" "$REPERF" seal last
for edit in 's/"cpu": "[^"]*"/"cpu": "AMD EPYC 9999"/ evidence/environment/local.json' 's/samples_per_s/samples_per_t/ evidence/manifest/formats/reperf.json' \
    "s/8[.]0/80.0/ evidence/logs/raw/$CASE/repeat-1.log" 's/"runtime": "none"/"runtime": "docker"/ evidence/lock/lock.json' \
    "s/\"exit_status\": 0/\"exit_status\": 3/ evidence/logs/outcome/$CASE/repeat-1.json"; do
    rm -rf "$R" && cp -r "$T/interrupted" "$R"
    sed -i "${edit% *}" "$R/${edit##* }"
    ! cmp -s "$R/${edit##* }" "$T/interrupted/${edit##* }" || ok 1 "${edit##* } is edited"
    fails 5 "${edit##*/}" "${edit##* }: not resumed" "$REPERF" resume last --key "$T/key"
done
rm -rf "$R" && cp -r "$T/interrupted" "$R"
exits 0 "without an edit it is" "$REPERF" resume last --key "$T/key"
tap_done
