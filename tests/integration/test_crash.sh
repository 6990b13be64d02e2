#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: run
# A run is killed at every journal record, interrupted, left without disk space, resumed twice at once, tampered with: it
# resumes to the same result, byte for byte, with every repeat counted once, or reports what is wrong.
# shellcheck source=tests/tap_lib.sh
. "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/run_lib.sh
. "$(dirname "$0")/run_lib.sh"
ID=20261121T000000.000Z-00000001 # given, so that results can be compared whole
F=$(run_folder $ID)
SMOKE=("$REPERF" run paddle-perf-2020 --case "$CASE" --profile smoke) # in the background: $! is then reperf itself
records() { if [ -e "$F/journal.jsonl" ]; then wc -l <"$F/journal.jsonl"; else echo 0; fi; }
# shellcheck disable=SC2317
job_runs() { ls "$F"/jobs/"$CASE"/repeat-*/attempt-*/pid >/dev/null 2>&1; }
# shellcheck disable=SC2317
job_speaks() { find "$F"/jobs/"$CASE" -name log -size +0 2>/dev/null | grep -q .; }
# shellcheck disable=SC2317
no_job() { ! pgrep -f "$T/fake/train.sh" >/dev/null; }
# /proc/PID/stat of a wrapper whose job runs: first word of its pid file
job_pid() { cut -d' ' -f1 "$F"/jobs/"$CASE"/repeat-1/attempt-"$1"/pid; }

begun() { # MODE REPEATS: in the background; its process is $pid
    forget_runs
    mode "$1"
    { "${SMOKE[@]}" --repeats "$2" --run-id $ID & } >/dev/null 2>"$T/err"
    pid=$!
}

# --- the result that all others must have ---
exits 0 "an undisturbed run" smoke --repeats 2 --run-id $ID
cp "$F/evidence/result.json" "$T/want.json"
cp -r "$F/evidence/series" "$T/want-series"
N=$(records)
is "$N" 10 "it writes this many journal records"
same_end() { # NAME
    cmp -s "$F/evidence/result.json" "$T/want.json" && diff -r "$F/evidence/series" "$T/want-series" >/dev/null
    ok $? "$1: the same result.json and series"
    is "$(find "$F/evidence/logs/raw" -type f | wc -l)" 2 "$1: every repeat once"
}

# --- kill -9 at every journal record ---
every=2 syncs=(1 3 $((N - 1)))
in_test_all "killed after every record of the journal, and more syncs of it that fail" && every=1 syncs=(1 2 3 5 $((N - 1)))
for n in $(seq 1 "$every" "$N"); do
    forget_runs
    exits 137 "killed after record $n" env REPERF_CRASH_AFTER="$n" "${SMOKE[@]}" --repeats 2 --run-id $ID
    exits 0 "record $n: resume" "$REPERF" resume $ID
    same_end "record $n"
    leaves 0 times_run 2 "record $n: the archive holds, and the workload ran twice, not more" "$REPERF" verify "$F/$ID.tar.zst" --unsigned
done
# and again while resuming
forget_runs
REPERF_CRASH_AFTER=3 smoke --repeats 2 --run-id $ID >/dev/null 2>&1
for n in 4 5 7 8 10; do REPERF_CRASH_AFTER=$n "$REPERF" resume $ID >/dev/null 2>&1; done
exits 0 "killed six times: resume" "$REPERF" resume $ID
same_end "killed six times"
answers 0 '.cells[0].value' 8 "a sealed run resumes to what it is, and prints its cells" "$REPERF" resume $ID --json

# --- a journal truncated in the middle of its last record, at each byte of it ---
forget_runs
REPERF_CRASH_AFTER=5 smoke --repeats 2 --run-id $ID >/dev/null 2>&1
cp -r "$F" "$T/at5"
last=$(tail -n 1 "$F/journal.jsonl" | wc -c)
size=$(wc -c <"$F/journal.jsonl")
for cut in 1 2 $((last / 2)) $((last - 1)); do
    rm -rf "$F" && cp -r "$T/at5" "$F"
    truncate -s $((size - cut)) "$F/journal.jsonl"
    exits 0 "last record cut by $cut bytes: resume" "$REPERF" resume $ID
    same_end "cut by $cut"
done
rm -rf "$F" && cp -r "$T/at5" "$F"
sed -i '3s/"exit_status":0/"exit_status":1/' "$F/journal.jsonl"
exits 5 "a changed record is refused" "$REPERF" resume $ID
rm -rf "$F" && cp -r "$T/at5" "$F"
sed -i 2d "$F/journal.jsonl"
exits 5 "a record taken away is noticed" "$REPERF" resume $ID
rm -rf "$F" && cp -r "$T/at5" "$F"
truncate -s 700 "$F/evidence/logs/raw/$CASE/repeat-1.log"
fails 5 "repeat-1.log: changed since the run wrote it" "a collected log that was cut by hand is noticed" "$REPERF" resume $ID
rm -rf "$T/at5"

# --- a sync or a write of the journal fails once: no record follows the failed one, and the run resumes to the same result ---
if strace -o /dev/null true 2>/dev/null; then
    # shellcheck disable=SC2317
    traced() { ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0" strace -P "$F/journal.jsonl" "$@"; } # LeakSanitizer works under no tracer
    for fault in "${syncs[@]/#/fsync:error=EIO:when=}" fsync:error=ENOSPC:when=2 write:error=ENOSPC:when=2; do
        forget_runs
        exits 10 "$fault: run" traced -o "$T/strace" -e trace=fsync,write -e inject="$fault" "${SMOKE[@]}" --repeats 2 --run-id $ID
        succeeds "$fault: it was the journal that failed" grep -q INJECTED "$T/strace"
        exits 0 "$fault: resume" "$REPERF" resume $ID
        same_end "$fault"
    done
    # all from one on, so that it cannot be taken back either; and again in the resume
    forget_runs
    exits 10 "no sync works: run" traced -o /dev/null -e trace=fsync -e inject=fsync:error=EIO:when=3+ "${SMOKE[@]}" --repeats 2 --run-id $ID
    exits 10 "no sync works: resume" traced -o /dev/null -e trace=fsync -e inject=fsync:error=EIO:when=2+ "$REPERF" resume $ID
    exits 0 "they work again: resume" "$REPERF" resume $ID
    same_end "no sync worked"
else
    skip "a journal that cannot be synced" "strace cannot trace here"
fi

# --- the orchestrator dies while the job runs: the job goes on, resume finds it ---
begun waits 1
succeeds "a job runs" waiting_for 120 job_runs
kill -9 $pid && wait $pid 2>/dev/null
succeeds "it outlives its orchestrator" kill -0 "$(job_pid 1)"
{ "$REPERF" resume $ID & } >/dev/null 2>"$T/err"
pid=$!
# shellcheck disable=SC2317
is_attached() { grep -qs '"event":"job_attached"' "$F/events.jsonl"; }
succeeds "resume while it runs attaches to it, and says so" waiting_for 120 is_attached
touch "$T/fake/go"
wait $pid
is $? 0 "and ends with it"
is "$(times_run)" 1 "it was not started again"
is "$(value "$F/evidence/result.json" 'd["cells"][0]["repeats"][0]["samples_used"]')" 16 "the value comes from the whole log"

# --- the job is killed with its wrapper: no status, no value from the cut log, a new attempt ---
begun waits 1
waiting_for 120 job_speaks
kill -9 -- "-$(job_pid 1)"
touch "$T/fake/go"
wait $pid
is $? 0 "a lost attempt is made again"
is "$(times_run)" 2 "two processes"
succeeds "the journal says which attempt was lost" grep -q '"state":"lost"' "$F/journal.jsonl"
is "$(find "$F/evidence/logs/raw" -type f | wc -l)" 1 "one repeat counts"
succeeds "the lost one's log is kept apart" test -s "$F/evidence/logs/lost/$CASE/repeat-1.attempt-1.log"

# --- ^C and TERM ---
for sig in INT TERM; do
    forget_runs
    mode waits
    env --default-signal=INT,TERM "${SMOKE[@]}" --repeats 1 --run-id $ID >/dev/null 2>&1 & # this shell's own background ignores ^C
    pid=$!
    waiting_for 120 job_runs
    kill -$sig $pid
    wait $pid
    is $? "$([ $sig = INT ] && echo 130 || echo 143)" "SIG$sig: exit status 128+n"
    succeeds "SIG$sig: its job is stopped" waiting_for 120 no_job
    [ ! -e "$F/evidence/result.json" ] && [ ! -e "$F/$ID.tar.zst" ]
    ok $? "SIG$sig: no result"
    is "$("$REPERF" status | grep -c ' interrupted ')" 1 "SIG$sig: status says interrupted"
    mode ""
    exits 0 "SIG$sig: resume" "$REPERF" resume $ID
done

# --- two orchestrators, cancel ---
begun waits 2
waiting_for 120 job_runs
fails 2 "process $pid is working on it" "a second orchestrator is refused" "$REPERF" resume $ID
is "$("$REPERF" status | grep -c running)" 1 "status says running"
exits 0 "cancel" "$REPERF" cancel $ID
wait $pid
is $? 143 "the orchestrator ended"
succeeds "and its job" waiting_for 120 no_job
exits 2 "a cancelled run is not resumed" "$REPERF" resume $ID
begun waits 1
waiting_for 120 job_runs
kill -9 $pid && wait $pid 2>/dev/null
exits 0 "cancel of a run whose orchestrator died" "$REPERF" cancel $ID
succeeds "its job is stopped" waiting_for 120 no_job

# --- it dies while it stops its job: after it wrote that the attempt is lost, before the job is gone ---
dies_while_it_stops() { # the third record is the lost one
    REPERF_CRASH_AFTER=3 begun hangs 1
    waiting_for 120 job_speaks
}
dies_while_it_stops
exits 0 "cancel of a run that dies of it" "$REPERF" cancel $ID
is "$(grep -c '"state":"lost"' "$F/journal.jsonl") $(tail -n 1 "$F/journal.jsonl" | grep -c '"state":"cancelled"')" "1 1" "is written down nevertheless"
succeeds "and ends its job" waiting_for 120 no_job
dies_while_it_stops
kill -TERM $pid
wait $pid 2>/dev/null
is "$? $(tail -n 1 "$F/journal.jsonl" | grep -c '"state":"lost"')" "137 1" "TERM: it died when it had noted the loss"
ok "$([ "$(pgrep -f "$T/fake/train.sh" | wc -l)" -gt 0 ]; echo $?)" "its job runs on"
mode ""
exits 0 "resume makes the repeat again" "$REPERF" resume $ID
is "$(find "$F/evidence/logs/raw" -type f | wc -l)" 1 "which counts once"
succeeds "and has ended the job of the first attempt" waiting_for 120 no_job

# --- programs that change between two halves of a run ---
forget_runs
REPERF_CRASH_AFTER=5 smoke --repeats 2 --run-id $ID >/dev/null 2>&1
cp "$T/fake/train.sh" "$T/fake/kept.sh" && echo '# changed' >>"$T/fake/train.sh"
exits 5 "a workload that is not the pinned one is refused" "$REPERF" resume $ID
cp "$T/fake/kept.sh" "$T/fake/train.sh"
exits 0 "with the pinned one it resumes" "$REPERF" resume $ID

# --- disk ---
if [ "$(id -u)" -eq 0 ] && mkdir -p "$T/small" && mount -t tmpfs -o size=4m tmpfs "$T/small" 2>/dev/null; then
    trap 'umount "$T/small" 2>/dev/null; rm -rf "$T"' EXIT
    forget_runs
    export REPERF_STATE="$T/small/state"
    F=$(run_folder $ID)
    cp -r "$T/fake" "$T/small/fake"
    export REPERF_TRAIN="$T/small/fake/train.sh"
    echo full >"$T/small/fake/mode"
    exits 10 "a disk that fills up while the workload writes" smoke --repeats 1 --run-id $ID
    succeeds "no result" test ! -e "$F/evidence/result.json"
    exits 10 "resume while it is full" "$REPERF" resume $ID
    rm -f "$T/small/fake/fill" "$T/small/fake/mode"
    exits 0 "resume with room again" "$REPERF" resume $ID
    is "$(value "$F/evidence/result.json" 'd["cells"][0]["repeats"][0]["samples_used"]')" 16 "with a whole log"
    forget_runs
    REPERF_CRASH_AFTER=1 smoke --repeats 1 --run-id $ID >/dev/null 2>&1
    mount -o "remount,nr_inodes=$(($(df --output=iused "$T/small" | tail -n 1)))" "$T/small"
    fails 10 'create .*/collect-0-0\.part: No space left on device' "a disk that takes no more files: resume" "$REPERF" resume $ID
    is "$(grep -cE '"state":"(started|lost)"' "$F/journal.jsonl") $(tail -n 1 "$F/journal.jsonl" | grep -c '"state":"interrupted"')" "0 1" "no attempt was begun"
    mount -o remount,nr_inodes=10000 "$T/small"
    exits 0 "resume once it takes files" "$REPERF" resume $ID
    mount -o remount,ro "$T/small"
    exits 10 "a read-only folder: run" smoke --repeats 1
    exits 0 "a read-only folder: status" "$REPERF" status
    exits 0 "a read-only folder: replay" "$REPERF" replay $ID
    umount "$T/small"
else
    skip "a full disk" "needs root and tmpfs"
    skip "a read-only folder" "needs root and tmpfs"
fi
tap_done
