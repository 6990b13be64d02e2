#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: fleet
# A run on four nodes over SSH is killed at every journal record: resume ends with the same result, each rank ran once, and nothing is
# left on the nodes: no lease, no job's folder, no process.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2119,SC2317,SC2154
source "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/nodes_lib.sh disable=SC1091
source "$ROOT/tests/integration/nodes_lib.sh"
# shellcheck source=tests/integration/run_lib.sh disable=SC1091
source "$ROOT/tests/integration/run_lib.sh"
have_sshd "a run on nodes that is killed" || tap_done
ssh_keys
for name in n1 n2 n3 n4; do start_sshd "$name"; done
nodes_inventory n1 n2 n3 n4 | sed 's/"gpus": 0/"gpus": 8/g' >"$T/four.json"
CASE='resnet50/reperf/fp32/n4g8/bs96'
on_four() { # RUN
    "$REPERF" run paddle-perf-2020 --case "$CASE" --profile smoke --nodes "$T/four.json" --repeats 1 --run-id "$1"
}
ranks_run() { find "$T" -path '*/bin/*/count' -exec cat {} + | wc -l; }
left() { find "$T"/work-n*/lease "$T"/work-n*/jobs/* 2>/dev/null | wc -l; }
forget_ranks() { find "$T" -path '*/bin/*/count' -delete; }
result_of() { sed 's/"run_id": "[^"]*"//' "$(run_folder "$1")/evidence/result.json"; }

id=20261121T000000.000Z-00000000
exits 0 "an undisturbed run on four nodes" on_four $id
N=$(wc -l <"$(run_folder "$id")/journal.jsonl")
result_of "$id" >"$T/want"
is "$(ranks_run)" 4 "four ranks"
is "$(left)" 0 "nothing is left on the nodes"
for n in $(seq 1 "${N:-1}"); do
    forget_ranks
    id=20261121T000000.000Z-0000000$n
    exits 137 "killed after record $n" env REPERF_CRASH_AFTER="$n" "$REPERF" run paddle-perf-2020 --case "$CASE" --profile smoke \
        --nodes "$T/four.json" --repeats 1 --run-id "$id"
    exits 0 "record $n: resume" "$REPERF" resume "$id"
    is "$(result_of "$id")" "$(cat "$T/want")" "record $n: the same result"
    is "$(ranks_run)" 4 "record $n: each rank ran once"
    is "$(left)" 0 "record $n: nothing is left on the nodes"
    exits 0 "record $n: the archive holds" "$REPERF" verify "$(run_folder "$id")/$id.tar.zst" --unsigned
done
none_runs() { ! pgrep -f "$T/work-n" >/dev/null; }
succeeds "no process runs on" waiting_for 120 none_runs

# --- what is kept of other ranks is evidence too: replay holds it against the outcome, and the outcome against the case ---
F=$(run_folder "$id")/evidence
cp -r "$F" "$T/kept"
echo x >>"$F/logs/raw/$CASE/repeat-1.n3.log"
fails 5 "repeat-1.n3.log: not the log that was collected" "another rank's log that was changed" "$REPERF" replay "$F"
rm -rf "$F" && cp -r "$T/kept" "$F"
sed -i '/"nodes"/,$ s/"exit_status": 0/"exit_status": 9/' "$F/logs/outcome/$CASE/repeat-1.json"
exits 5 "failed ranks of a repeat that did not fail" "$REPERF" replay "$F"
rm -rf "$F" && cp -r "$T/kept" "$F"
exits 0 "as it was, it holds" "$REPERF" replay "$F"
tap_done
