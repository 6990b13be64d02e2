#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: run
# The orchestrator is killed with -9 after journal records of a run on four nodes (each of them in test-all), and resumed: the same cells and verdicts, every repeat counted once,
# nothing left on the nodes. Then while the ranks run: they go on, and are found again.
# shellcheck source=tests/cluster/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cluster/fault_lib.sh
. "$(dirname "$0")/fault_lib.sh"
world kill ''
begin kill "$FOUR" "$N"
ends_well kill 4 "an undisturbed run on four nodes"
cp "$(run_dir kill)/evidence/result.json" "$T/want.json"
records=$(wc -l <"$(run_dir kill)/journal.jsonl")
ok "$([ "$records" -ge 8 ]; echo $?)" "it writes $records journal records"
# Before the first repeat, in it, between both, at the end; tests/integration/test_crash_nodes.sh goes through each of them without the cluster.
at=(1 4 "$((records / 2 + 1))" "$((records - 1))")
! in_test_all "an orchestrator on the cluster killed after each journal record" || mapfile -t at < <(seq 1 "$records")
for n in "${at[@]}"; do
    world kill ''
    REPERF_CRASH_AFTER=$n begin kill "$FOUR" "$N"
    finish kill 137 "killed after record $n"
    take_up kill 0 "record $n: resume"
    succeeds "record $n: the same result.json" cmp -s "$(run_dir kill)/evidence/result.json" "$T/want.json"
    is "$(count kill begun)" 8 "record $n: each rank ran twice, not more"
    nothing_left "record $n" 1 2 3 4
done
world kill waits
begin kill "$FOUR" "$N"
waits_for_ranks kill 4
kill_run kill
is "$(for i in 1 2 3 4; do node_do "$i" pgrep -fc 'bin/.*/reperf-train'; done | grep -cv '^0')" 4 "the ranks outlive it"
go kill
heals kill 4 "resume while they run"
is "$(count kill begun)" 8 "they were found again, not started again"
nothing_left "the end" 1 2 3 4

# --- TERM while nodes are still being reached
world term ''
node_cut 4
begin term "$FOUR" "$N"
has_journal() { [ -s "$(run_dir term)/journal.jsonl" ]; }
wait_for 120 has_journal
have_leases() { for i in 1 2 3; do [ -n "$(node_do "$i" /bin/cat /var/lib/reperf/lease 2>/dev/null)" ] || return 1; done; }
succeeds "term: the nodes that can be reached are" wait_for 120 have_leases
kill "$(cat "$T/term/pid")"
finish term 143 "TERM while nodes are being reached: status 143"
is "$(tail -n 1 "$(run_dir term)/journal.jsonl" | jq -r .state)" interrupted "and the journal says so"
nothing_runs "term" 1 2 3
node_restore 4
heals term 4 "resume"
succeeds "all is whole again" cluster_reset
tap_done
