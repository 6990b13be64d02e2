#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: run
# Repeats that failed are made again, by the run itself or by resume: every attempt is kept, the last one counts, and what was sealed stays as it was.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2119
. "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/run_lib.sh disable=SC1091
. "$ROOT/tests/integration/run_lib.sh"
outcome() { jq -r "$1" "$R/evidence/logs/outcome/$CASE/repeat-1.json"; } # EXPRESSION
"$REPERF" keygen "$T/key" >/dev/null 2>&1

mode killed
exits 8 "a rank that is killed from outside" smoke --repeats 2 --key "$T/key"
R=$(run_folder) ID=$(basename "$(run_folder)")
is "$(jq -r '.cells[0].why' "$R/evidence/result.json")" 'repeat 1 of 2: ended by signal 9' "is failed, with its cause"
cp "$R/$ID.tar.zst" "$T/first.tar.zst"
cp -r "$R" "$T/sealed"
mode ''
leaves 8 times_run 2 "resume alone leaves it as it is, and runs nothing" "$REPERF" resume "$ID" --json
leaves 0 times_run 4 "resume --rerun-failed makes both again" "$REPERF" resume "$ID" --rerun-failed --key "$T/key"
is "$(jq -c '[.cells[0].value, (.cells[0].repeats[] | .exit_status)]' "$R/evidence/result.json")" '[8,0,0]' "the last attempt counts"
is "$(sha256sum <"$R/$ID.tar.zst")" "$(sha256sum <"$T/first.tar.zst")" "the archive that was sealed is as it was"
first=$(jq -r 'select(.state == "sealed") | .note' "$R/journal.jsonl" | head -n 1)
is "$(outcome .replaces) $(outcome .attempt)" "$first 2" "the new one names it by digest"
is "$(jq -r '.cells[0].repeats[1].replaces' "$R/evidence/result.json")" "$first" "in the result too"
for file in repeat-1.attempt-1.log repeat-2.attempt-1.log repeat-1.attempt-1.json; do
    ok "$([ -s "$R/evidence/logs/lost/$CASE/$file" ]; echo $?)" "and keeps $file"
done
is "$(jq -r .exit_status "$R/evidence/logs/lost/$CASE/repeat-1.attempt-1.json")" 137 "with how it ended"
for archive in "$R/$ID.tar.zst" "$R/$ID.2.tar.zst" "$ID"; do
    exits 0 "verifies: $(basename "$archive")" "$REPERF" verify "$archive" --key "$T/key.pub"
done
answers 0 '.runs[0] | [.state, .exit_status] | join(" ")' "sealed 0" "its status is that of a run that holds" "$REPERF" status "$ID" --json
exits 0 "where nothing failed nothing is made again" "$REPERF" resume "$ID" --rerun-failed --key "$T/key"
is "$(times_run) $(find "$R" -name '*.tar.zst' | wc -l)" "4 2" "and nothing sealed"

# Killed after each of its records: the next resume makes what is left, and loses nothing.
records=$(jq -r 'select(.state == "sealed") | .seq' "$R/journal.jsonl" | sed -n 1p)
for after in 1 2 4 5 9; do
    rm -rf "$R" && cp -r "$T/sealed" "$R"
    REPERF_CRASH_AFTER=$((records + after)) "$REPERF" resume "$ID" --rerun-failed >/dev/null 2>&1
    "$REPERF" resume "$ID" --rerun-failed >/dev/null 2>"$T/err"
    is "$? $(jq -c '[.cells[0].value, (.cells[0].repeats | length)]' "$R/evidence/result.json")" '0 [8,2]' "killed after record $after, and resumed"
    "$REPERF" verify "$ID" --unsigned >/dev/null 2>&1 && cmp -s "$T/first.tar.zst" "$R/$ID.tar.zst" && [ -s "$R/evidence/logs/lost/$CASE/repeat-2.attempt-1.log" ]
    ok $? "what was sealed and what failed are there"
done

# By the run itself.
forget_runs
fail_until() { # N: the first N times it fails
    cp "$ROOT/tests/integration/fake_train.sh" "$T/fake/train.sh"
    sed -i "s/^start() {/[ \"\$(wc -l <\"\$dir\/count\")\" -gt $1 ] || mode=fails\n&/" "$T/fake/train.sh"
}
fail_until 2
exits 0 "run --retry-failed 2, and the third attempt is whole" smoke --repeats 1 --retry-failed 2
R=$(run_folder)
is "$(times_run) $(outcome .attempt) $(outcome .replaces)" '3 3 null' "the third counts; no archive had one of them"
is "$(find "$R/evidence/logs/lost" -name '*.log' | wc -l)" 2 "both that failed are kept"
exits 0 "which verifies" "$REPERF" verify last --unsigned
forget_runs
fail_until 2
exits 8 "run --retry-failed 1" smoke --repeats 1 --retry-failed 1
R=$(run_folder)
is "$(times_run) $(outcome .attempt) $(outcome .exit_status)" '2 2 3' "the last attempt counts, as it is"
exits 8 "and resume says the same" "$REPERF" resume last
tap_done
