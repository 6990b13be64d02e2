#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: node
# `nodes clean`: what dead runs leave on this machine and on nodes over real sshds is listed, ended, removed; what is in use is not.
. "$(dirname "$0")/../tap_lib.sh"
. tests/integration/nodes_lib.sh
. tests/integration/run_lib.sh
items() { jq -c '[.nodes[] | .node as $n | .items[] | [$n, .kind, .name, .state, .action, .done]]' "$T/out"; }
gone() { # PID: no process of that session is left
    [ -z "$(ps -o stat= -s "$1" | awk '!/^Z/')" ]
}
await() { waiting_for 120 "$@"; } # COMMAND...
end_jobs() { # what a test that failed has left
    for ended in ${job-} ${p1-} ${p2-} ${p3-} ${p4-} ${p5-}; do
        kill -9 -- "-$ended" 2>/dev/null
    done
}
trap 'end_jobs; rm -rf "$T"' EXIT

# --- this machine -----------------------------------------------------------------------------------
leaves 0 output "no job, container, lease or unfinished file of a dead run is there; what runs brought (programs, files, images) is kept" "nothing is left where nothing was: said" "$REPERF" nodes clean local
mode hangs
"$REPERF" run paddle-perf-2020 --case "$CASE" --profile smoke >"$T/run.out" 2>"$T/run.err" &
run_pid=$!
job_pid() { cut -d' ' -f1 "$REPERF_STATE"/runs/2*/jobs/*/*/*/*/*/repeat-1/attempt-1/pid 2>/dev/null; }
has_job() { [ -n "$(job_pid)" ]; }
succeeds "a run has a job" await has_job
job=$(job_pid)
prints 0 "keep: process $run_pid works on the run" "while its orchestrator lives" "$REPERF" nodes clean local
succeeds "the job runs on" kill -0 "$job"
kill -9 $run_pid
wait $run_pid 2>/dev/null
prints 0 'repeat-1/attempt-1 +running +end$' "once that is dead: --dry-run" "$REPERF" nodes clean local --dry-run
like "$(cat "$T/out")" '^would end or remove 1, keep 0$' "and says what would be done"
succeeds "and does nothing" kill -0 "$job"
documents nodes-clean-output 0 "without" "$REPERF" nodes clean local --json
is "$(jq -c '[.nodes[0].items[] | [.kind, .state, .action, .done]]' "$T/out")" '[["job","running","end",true]]' "the job is ended"
succeeds "its processes are gone" await gone "$job"
leaves 0 output "no job, container, lease or unfinished file of a dead run is there; what runs brought (programs, files, images) is kept" "and again: nothing is left" "$REPERF" nodes clean local
mode ''
exits 0 "the run itself can be resumed" "$REPERF" resume last
exits 2 "an unknown run" "$REPERF" nodes clean local nosuchrun

# --- nodes over SSH ---------------------------------------------------------------------------------
if have_sshd "nodes clean over SSH"; then
    mkdir -p "$T/bin"
    nodes_start || exit 1
    trap 'stop_sshds; end_jobs; rm -rf "$T"' EXIT
    run1=20261121T100000.000Z-00000001 run2=20261121T100000.000Z-00000002
    start_job() { # NODE RUN CASE: a job that never ends, with a cleanup that says so
        "$B/servers/remote_one" "work=$T/work-$1" "port=${ssh_port[$1]}" "cleanup=touch $T/cleaned-$1-${3%%/*}" 127.0.0.1 start "$2/$3/repeat-1/attempt-1" /bin/sh -c "trap '' TERM; sleep 600 & wait; sleep 600" 2>"$T/err" || cat "$T/err"
    }
    pid_of() { cut -d' ' -f1 "$T/work-$1/jobs/$2/$3/repeat-1/attempt-1/pid"; }
    start_job n1 $run1 a/one
    start_job n2 $run1 a/one
    start_job n2 $run2 b/two
    p1=$(pid_of n1 $run1 a/one) p2=$(pid_of n2 $run1 a/one) p3=$(pid_of n2 $run2 b/two)
    mkdir -p "$T/work-n3/jobs/$run1/c/repeat-1/attempt-1/claim"
    echo "1 2 not-this-boot" >"$T/work-n3/jobs/$run1/c/repeat-1/attempt-1/pid"
    mkdir -p "$T/work-n3/jobs/other/claim" # not ours
    mkdir -p "$T/work-n1/data/reperf-tmp-Abc123"
    echo "$run2 $(date +%s)" >"$T/work-n2/lease"
    echo "$run1 1000000000" >"$T/work-n1/lease"
    touch "$T/work-n1/data/reperf-tmp-Abc123/new"
    touch -d '2 hours ago' "$T/work-n1/data/reperf-tmp-Abc123/old" "$T/work-n1/data/kept"
    documents nodes-clean-output 0 "everything is listed" "$REPERF" nodes clean "$INV" --dry-run --json
    sed 's/"[0-9]* s old"/"old"/' "$T/out" >"$T/out2" && mv "$T/out2" "$T/out"
    is "$(items)" "$(jq -c . <<JSON
[["n1","job","a/one/repeat-1/attempt-1","running","end",false],
 ["n1","lease","$run1","old","remove",false],
 ["n1","partial","data/reperf-tmp-Abc123/old",null,"remove",false],
 ["n2","job","a/one/repeat-1/attempt-1","running","end",false],
 ["n2","job","b/two/repeat-1/attempt-1","running","keep",false],
 ["n2","lease","$run2","old","keep",false],
 ["n3","job","c/repeat-1/attempt-1","lost","remove",false],
 ["n3","job","other","running","keep",false]]
JSON
)" "with what is to become of it"
    like "$(jq -r '.nodes[1].items[] | .why // ""' "$T/out")" '^another machine renewed its lease [0-9]+ s ago$' "what another machine works on is kept"
    succeeds "and nothing is done" kill -0 "$p1" "$p2" "$p3"
    start_job n1 $run1 a/one/repeat-1/attempt-1/monitor # a job inside of another's folder
    p5=$(pid_of n1 $run1 a/one/repeat-1/attempt-1/monitor)
    prints 0 '^ended 2, removed 1, kept 0$' "one run on one node" "$REPERF" nodes clean "$INV" $run1 --nodes n1
    succeeds "the job that ignores TERM is killed" await gone "$p1"
    succeeds "and the one inside of its folder" await gone "$p5"
    succeeds "its cleanup was run" test -e "$T/cleaned-n1-a"
    is "$(find "$T/work-n1/jobs"/* "$T/work-n1/lease" 2>/dev/null)" "" "its folder and its lease are gone"
    succeeds "those of the other nodes run on" kill -0 "$p2" "$p3"
    echo "$run2 $(date +%s)" >"$T/work-n2/lease" # renewed again, as it would be: however long the above took
    prints 6 '^ended 1, removed 2, kept 3$' "all, and a node that nobody answers for" "$REPERF" nodes clean "$INV4"
    like "$(cat "$T/err")" 'error: n4: ' "and it is named"
    succeeds "the other node's job is gone" await gone "$p2"
    succeeds "what another machine works on runs on" kill -0 "$p3"
    is "$(cd "$T/work-n1/data" && find . -type f | sort | xargs)" "./kept ./reperf-tmp-Abc123/new" "half-written files that are old went, others did not"
    echo "$run2 1000000000" >"$T/work-n2/lease"
    exits 0 "once its lease is old" "$REPERF" nodes clean "$INV"
    succeeds "it goes too" await gone "$p3"
    start_job n3 $run1 d
    p4=$(pid_of n3 $run1 d)
    has_program() { [ "$(ps -o pid= -s "$1" | wc -l)" -ge 2 ]; } # the wrapper writes its pid before it begins
    await has_program "$p4"
    kill -9 "$p4"
    exits 0 "a job whose wrapper was killed" "$REPERF" nodes clean "$INV" --json
    like "$(items)" '"d/repeat-1/attempt-1","orphaned","end",true' "is an orphan"
    succeeds "and its program is ended" await gone "$p4"
    leaves 0 output "no job, container, lease or unfinished file of a dead run is there; what runs brought (programs, files, images) is kept" "and then: nothing is left" "$REPERF" nodes clean "$INV:n[1-2]"

    # The head is killed in mid-removal, and the node with it: at each removal in turn, and the next call does the rest.
    left_there() { # a job with a monitor, a lease, half a file; all old
        local dir="$T/work-n3/jobs/$run1/e/repeat-1/attempt-1"
        mkdir -p "$dir/claim" "$dir/monitor/claim" "$T/work-n3/data/reperf-tmp-Abc123"
        echo "1 2 not-this-boot" | tee "$dir/pid" "$dir/monitor/pid" >"$dir/log"
        echo "touch $T/cleaned-n3-e" >"$dir/cleanup"
        echo "$run1 1000000000" >"$T/work-n3/lease"
        touch -d '2 hours ago' "$dir/claim" "$dir/monitor/claim" "$T/work-n3/data/reperf-tmp-Abc123/old"
    }
    n_left() { find "$T/work-n3/jobs/$run1" "$T/work-n3/lease" "$T/work-n3/data/reperf-tmp-Abc123" -type f 2>/dev/null | wc -l; }
    is_cut() { [ -s "$T/work-n3/stopped" ] || ! kill -0 "$cleaning" 2>/dev/null; }
    export REPERF_NODE="$B/servers/faulty_node"
    at=0 n_bad=0 was_cut=1
    while [ -n "$was_cut" ]; do
        left_there
        echo $((at += 1)) >"$T/work-n3/cut"
        "$REPERF" nodes clean "$INV:n3" >"$T/cut.out" 2>"$T/cut.err" &
        cleaning=$!
        await is_cut
        was_cut=$(cat "$T/work-n3/stopped" 2>/dev/null)
        # shellcheck disable=SC2086
        [ -z "$was_cut" ] || kill -9 "$cleaning" $was_cut
        wait "$cleaning" 2>/dev/null
        rm -f "$T/work-n3/stopped" "$T/work-n3/cut"
        [ -z "$was_cut" ] || "$REPERF" nodes clean "$INV:n3" >"$T/out" 2>"$T/err" || n_bad=$((n_bad + 1))
        [ "$(n_left)" -eq 0 ] || { n_bad=$((n_bad + 1)); echo "# cut $at leaves $(cd "$T/work-n3" && find jobs lease data/reperf-tmp-Abc123 -type f | tr "\n" " ")"; }
    done 2>"$T/said" # bash says "Killed"
    ok $((n_bad != 0 || at < 10)) "$((at - 1)) cuts in clean, one at each removal: the next call removes the rest"
    unset REPERF_NODE

    # A real run on a node: its orchestrator is killed, what it left is cleaned up, and it is resumed.
    sed "s#^mode=.*#mode=; [ -e '$T/go' ] || mode=hangs#" "$ROOT/tests/integration/fake_train.sh" >"$T/fake/waits.sh"
    chmod +x "$T/fake/waits.sh"
    REPERF_TRAIN="$T/fake/waits.sh" "$REPERF" run paddle-perf-2020 --case "$CASE" --profile smoke --repeats 1 --nodes "$INV:n1" >"$T/run.out" 2>"$T/run.err" &
    run_pid=$!
    remote_pid() { cut -d' ' -f1 "$T"/work-n1/jobs/2*/*/*/*/*/*/repeat-1/attempt-1/pid 2>/dev/null; }
    has_remote() { [ -n "$(remote_pid)" ]; }
    succeeds "a run has a job on a node" await has_remote
    p1=$(remote_pid)
    answers 0 '[.nodes[].items[] | [.kind, .action]] | unique' '[["job","keep"],["lease","keep"]]' "while its orchestrator lives: its jobs and its lease are kept" "$REPERF" nodes clean "$INV:n1" --json
    kill -9 $run_pid
    wait $run_pid 2>/dev/null
    answers 0 '[.nodes[].items[] | [.kind, .action, .done]] | unique' '[["job","end",true],["lease","remove",true]]' "once that is dead: they go, however fresh the lease is" "$REPERF" nodes clean "$INV:n1" --json
    succeeds "the job is ended" await gone "$p1"
    touch "$T/go"
    exits 0 "the run is resumed" env REPERF_TRAIN="$T/fake/waits.sh" "$REPERF" resume last
    leaves 0 output "no job, container, lease or unfinished file of a dead run is there; what runs brought (programs, files, images) is kept" "and after it: nothing is left" "$REPERF" nodes clean "$INV:n1"

    # A node whose answer is invalid: nothing is reported as clean, healthy or copied.
    {
        # shellcheck disable=SC2016
        printf '#!/bin/sh\n[ "$1" = --version ] && exit 0\nprintf "reperf-node 6 %%s\\n" "$0"; head -c 16 >/dev/null\n'
        printf '%s\n' "printf 'RPN<\\1\\0\\0\\0\\0\\0\\0\\0\\6\\0\\0\\0fine 1\\n'; exec cat"
    } >"$T/wordy"
    chmod +x "$T/wordy"
    REPERF_NODE="$T/wordy" exits 6 "clean on a node that lies" "$REPERF" nodes clean "$INV:n1"
    like "$(cat "$T/err")" 'n1: its answer was not understood: "fine 1"' "says so"
    REPERF_NODE="$T/wordy" exits 6 "doctor on it" "$REPERF" nodes doctor "$INV:n1" --json
    like "$(jq -r '.nodes[0].error' "$T/out")" '^(asked for the time|reperf-node there gave no answer): ' "does not reach it"
    REPERF_NODE="$T/wordy" exits 6 "a copy to it" "$REPERF" nodes copy "$INV:n1" "$T/bin" --json
    like "$(jq -r '.nodes[0].error.message' "$T/out")" 'its work folder has no absolute path: "fine 1"' "is none"

    # A fake container engine: its calls are in $T/docker.log.
    cat >"$T/bin/docker" <<'SH'
#!/bin/sh
echo "$*" >>"$FAKE/docker.log"
for id; do :; done
case $1 in
ps) [ ! -e "$FAKE/dead" ] || { echo "Cannot connect to the Docker daemon" >&2; exit 1; }
    cat "$FAKE/containers" ;;
inspect) grep -qx "$id" "$FAKE/containers" || exit 1
    [ "$2" != -f ] || printf 'container\trunning\t%s\t%s\t/reperf-1\n' "$id" "$RUN1" ;;
rm) : >"$FAKE/containers"
    [ ! -e "$FAKE/gone" ] || { echo "Error: no container with name or ID $id found: no such container" >&2; exit 1; } ;;
esac
SH
    chmod +x "$T/bin/docker"
    echo deadbeef >"$T/containers"
    start_sshd n5 "SetEnv PATH=$T/bin:$PATH FAKE=$T RUN1=$run1 HOME=$T/home"
    nodes_inventory n5 | sed 's/"runtime": "none"/"runtime": "docker"/' >"$T/docker.json"
    documents nodes-clean-output 0 "a container with a run's label" "$REPERF" nodes clean "$T/docker.json" --json
    is "$(items)" '[["n5","container","/reperf-1","running","end",true]]' "is removed"
    like "$(cat "$T/docker.log")" '^rm -f -v deadbeef$' "by its id"
    echo deadbeef >"$T/containers"
    touch "$T/gone"
    exits 0 "one that ends meanwhile" "$REPERF" nodes clean "$T/docker.json"
    touch "$T/dead"
    fails 7 'n5: the container engine does not answer: .*Cannot connect' "an engine that does not answer" "$REPERF" nodes clean "$T/docker.json"

    # A fake Slurm on this machine.
    cat >"$T/bin/squeue" <<SH
#!/bin/sh
[ ! -e "$T/slurm-dead" ] || { echo "Unable to contact slurm controller" >&2; exit 1; }
cat "$T/queue"
SH
    printf '#!/bin/sh\necho "$*" >>"%s/cancelled"\n' "$T" >"$T/bin/scancel"
    chmod +x "$T/bin/squeue" "$T/bin/scancel"
    known=$("$REPERF" list runs --ids | tail -n 1)
    printf '7 RUNNING reperf-%s-0123abcd\n8 PENDING reperf-%s-0123abce\n9 RUNNING other\n' "$run1" "$known" >"$T/queue"
    nodes_inventory n1 n2 | sed 's/"nodes"/"launcher": "slurm", "nodes"/' >"$T/slurm.json"
    documents nodes-clean-output 0 "jobs of Slurm" env PATH="$T/bin:$PATH" "$REPERF" nodes clean "$T/slurm.json" --json
    is "$(items)" "[[\"n1\",\"batch\",\"reperf-$run1-0123abcd\",\"RUNNING\",\"keep\",false],[\"n1\",\"batch\",\"reperf-$known-0123abce\",\"PENDING\",\"end\",true]]" \
        "those of runs that this machine knows are ended"
    is "$(cat "$T/cancelled")" 8 "by their number"
    exits 0 "and one of a run that is named" env PATH="$T/bin:$PATH" "$REPERF" nodes clean "$T/slurm.json" $run1
    is "$(tail -n 1 "$T/cancelled")" 7 "too"
    touch "$T/slurm-dead"
    fails 6 'n1: Slurm does not answer: .*Unable to contact' "a Slurm that does not answer" env PATH="$T/bin:$PATH" "$REPERF" nodes clean "$T/slurm.json"
fi
tap_done
