#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: run
# `reperf run` end to end: a successful run, and every way in which a workload can lie or die.
. "$(dirname "$0")/../tap_lib.sh"
. "$(dirname "$0")/run_lib.sh"
# shellcheck source=tests/faults/lib.sh disable=SC1091
. "$ROOT/tests/faults/lib.sh"
export TMPDIR="$T/tmp" # what is left there is no other script's
mkdir "$TMPDIR"

# --- plan does nothing, nor does a dry run, which is the same ---
documents plan 0 "plan" "$REPERF" plan paddle-perf-2020 --case "$CASE" --profile smoke --json
exits 0 "run --dry-run" smoke --dry-run --json
succeeds "prints what plan prints" cmp "$T/out" "$T/document"
exits 0 "plan as text" "$REPERF" plan paddle-perf-2020 --profile smoke
cp "$T/out" "$T/plan.txt"
exits 0 "run --dry-run as text" "$REPERF" run paddle-perf-2020 --profile smoke --dry-run
succeeds "prints it, too" cmp "$T/out" "$T/plan.txt"
exits 7 "where no case can run, plan has the first one's status" "$REPERF" plan paddle-perf-hrnetw18 --profile smoke --case 'hrnetw18/paddle/fp32/n1g1/*'
exits 7 "and so has run --dry-run" "$REPERF" run paddle-perf-hrnetw18 --profile smoke --case 'hrnetw18/paddle/fp32/n1g1/*' --dry-run
like "$(cat "$T/plan.txt")" "container \(exit status 7\): several ranks need Horovod" "plan says why a case cannot be run"
is "$(grep -c 'has no command for so many GPUs' "$T/plan.txt")" 0 "by what is missing, not by the recipe"
like "$("$REPERF" plan paddle-perf-hrnetw18 --profile smoke --case 'hrnetw18/paddle/fp32/n1g1/*' 2>&1)" 'runtime none .*--nodes local-docker' "and where a framework would run"
like "$("$REPERF" plan paddle-perf-hrnetw18 --profile smoke --case 'hrnetw18/paddle/fp32/n1g1/*' --nodes local-docker 2>&1)" 'images/build.sh paddle-cpu --store' "there only what is missing is asked for"
like "$("$REPERF" plan paddle-perf-2020 --profile smoke -v 2>&1)" "not pinned by its authors" "plan lists missing pins"
succeeds "nothing was written" test ! -e "$REPERF_STATE"
is "$(times_run)" 0 "nothing was run"

# --- a good run ---
documents run-output 0 "run" smoke --json
cp "$T/out" "$T/run.json"
F=$(run_folder)
A=$(value "$T/run.json" 'd["archive"]')
succeeds "the archive is where the document says" test -s "$A"
is "$(times_run)" 3 "three repeats, three processes"
is "$(value "$T/run.json" 'd["cells"][0]["verdict"]')" not_comparable "smoke claims no number"
is "$(value "$T/run.json" 'd["cells"][0]["value"]')" 8 "the value is the workload's"
is "$(value "$T/run.json" 'd["cells"][0]["rel_diff"]')" None "and is held against nothing"
names=$(value "$T/run.json" '" ".join(sorted(x["name"] for x in d["cells"][0]["differs"]))')
for name in batch_per_gpu device gpu gpus image_size framework; do
    like " $names " " $name " "differs: $name"
done
valid result "result.json validates" "$F/evidence/result.json"
split -l 1 -d -a 4 --additional-suffix=.json "$F/events.jsonl" "$T/event-"
ok "$([ -e "$T/event-0005.json" ]; echo $?)" "it writes events"
valid event "each of which validates" "$T"/event-*.json
mapfile -t events < <(jq -r .event "$F/events.jsonl" | sort -u)
exits 0 "and is explained" "$REPERF" explain "${events[@]}"
for n in 1 2 3; do
    "$T/fake/train.sh" x >"$T/expected.log"
    succeeds "raw log $n is byte for byte what was printed" cmp -s "$T/expected.log" "$F/evidence/logs/raw/$CASE/repeat-$n.log"
    is "$(sha256sum <"$F/evidence/logs/raw/$CASE/repeat-$n.log" | cut -d' ' -f1)" \
        "$(value "$T/run.json" "d['cells'][0]['repeats'][$n - 1]['log']['sha256']")" "and its digest is in the result"
done
env_names=$(value "$F/evidence/environment/local.json" '" ".join(d["variables"])')
[[ " $env_names " != *" HOME "* && " $env_names " != *SECRET* ]]
ok $? "only allow-listed variables are recorded: $env_names"
SECRET_TOKEN=hunter2 OMP_NUM_THREADS=1 smoke >/dev/null 2>&1
grep -rq hunter2 "$(run_folder)"
is $? 1 "a secret of the caller's environment is nowhere in the run"
succeeds "OMP_NUM_THREADS is recorded" grep -q '"OMP_NUM_THREADS": "1"' "$(run_folder)/evidence/environment/local.json"

# The fourth law: a log is parsed once, and read once more into the archive, where its digest is held against the journal's.
if command -v strace >/dev/null && strace -o "$T/probe" true 2>/dev/null; then
    REPERF_STATE=$T/traced strace -f -e trace=open,openat -o "$T/trace" "$REPERF" run paddle-perf-2020 --case "$CASE" --profile smoke --repeats 2 >/dev/null 2>&1
    is "$(grep -oE 'logs/raw/[^"]*[.]log", O_RD[A-Z]*' "$T/trace" | sort | uniq -c | awk '{ print $1, $2, $3 }')" \
        "2 logs/raw/$CASE/repeat-1.log\", O_RDONLY
2 logs/raw/$CASE/repeat-2.log\", O_RDONLY" "each log is opened twice: to be parsed and to be sealed"
    is "$(grep -cE 'series/[^"]*[.]json[.][^"]*", O_RDWR' "$T/trace")" 2 "each series is written once"
else
    skip "opens of a log are counted" "strace is not here, or may not trace"
fi

# --- verify, replay, sha256sum ---
exits 5 "verify without --unsigned says that the signer is not known" "$REPERF" verify "$A"
exits 0 "verify --unsigned" "$REPERF" verify "$A" --unsigned
exits 0 "replay of the archive" "$REPERF" replay "$A"
answers 0 .is_same true "replay of the run: replay --json" "$REPERF" replay "$(basename "$F")" --json
mkdir "$T/unpacked" && tar --zstd -xf "$A" -C "$T/unpacked"
(cd "$T/unpacked" && sha256sum --quiet -c SHA256SUMS)
ok $? "sha256sum -c confirms it alone"
exits 0 "replay of an unpacked archive" "$REPERF" replay "$T/unpacked"
cp -r "$T/unpacked" "$T/changed"
sed -i 's/"value": 8,/"value": 9,/' "$T/changed/result.json"
exits 1 "replay of a changed result" "$REPERF" replay "$T/changed"
rm -r "$T/changed" && cp -r "$T/unpacked" "$T/changed"
head -c 900 "$T/unpacked/logs/raw/$CASE/repeat-2.log" >"$T/changed/logs/raw/$CASE/repeat-2.log"
fails 5 "repeat-2.log" "replay of a cut log" "$REPERF" replay "$T/changed"
rm -r "$T/changed" && cp -r "$T/unpacked" "$T/changed"
cp "$T/unpacked/series/$CASE/repeat-1.json" "$T/changed/series/$CASE/repeat-9.json"
exits 5 "replay with a series too many" "$REPERF" replay "$T/changed"
rm -r "$T/changed" && cp -r "$T/unpacked" "$T/changed"
rm "$T/changed/logs/outcome/$CASE/repeat-3.json"
exits 5 "replay with an outcome missing" "$REPERF" replay "$T/changed"
is "$(ls -A "$TMPDIR")" "" "replay leaves nothing behind"

# --- signed ---
"$REPERF" keygen "$T/key" >/dev/null 2>&1 || "$REPERF" keygen --output "$T/key" >/dev/null 2>&1
if [ -s "$T/key" ]; then
    exits 0 "run --key" smoke --key "$T/key" --repeats 1
    exits 0 "verify --key" "$REPERF" verify "$(run_folder)/$(basename "$(run_folder)").tar.zst" --key "$T/key.pub"
fi

# --- workloads that lie or die: failed, its cause's status, kept and shown ---
fails_as() { # MODE STATUS CAUSE PATTERN [DEADLINE_S]
    forget_runs
    mode "$1"
    exits "$2" "$1: exit status $2" smoke --repeats 2 --deadline "${5:-600}" --json
    cp "$T/out" "$T/bad.json"
    cp "$T/err" "$T/bad.err"
    is "$(value "$T/bad.json" 'd["cells"][0]["verdict"]')" failed "$1: failed"
    is "$(value "$T/bad.json" 'd["cells"][0]["cause"]')" "$3" "$1: cause $3"
    is "$(value "$T/bad.json" 'd["cells"][0]["value"]')" None "$1: no value"
    like "$(value "$T/bad.json" 'd["cells"][0]["why"]')" "$4" "$1: why"
    log=$(grep -oE 'its log: .*' "$T/bad.err" | head -n 1 | cut -c10-)
    succeeds "$1: the warning says where its log is" test -f "$log"
    exits 0 "$1: its archive replays" "$REPERF" replay last
}
fails_as silent 9 parse no_metric
fails_as nan 9 parse nan
fails_as short 9 parse incomplete
fails_as 'other "batch":4=>"batch":8' 9 parse "not of this case: .*batch per GPU is 4, but the log says 8"
fails_as 'other "ranks":1=>"ranks":2' 9 parse "not of this case: .*number of GPUs is 1, but the log says 2"
fails_as 'other "precision":"fp32"=>"precision":"amp"' 9 parse "not of this case: .*precision is fp32, but the log says amp"
fails_as 'other "model":"resnet50"=>"model":"hrnet_w18"' 9 parse "not of this case: .*model is resnet50, but the log says hrnet_w18"
fails_as fails 8 workload "exit status 3"
fails_as killed 8 workload "signal 9"
fails_as hangs 124 timeout "deadline of 3 s" 3

# A speed that changes for good is no failure of a run that claims no number: the case ran, and the doubt stands beside it.
forget_runs
mode levels
prints 0 "repeat 1 is tainted: log: two_levels: two levels: " "a smoke run on a machine whose load changes" smoke --repeats 1
is "$("$REPERF" report last --json | jq -c '.cells[0] | [.verdict, .value > 0, .repeats[0].counts, (.repeats[0].taints[0] | contains("two_levels"))]')" \
    '["not_comparable",true,true,true]' "it ran, and claims nothing"
exits 0 "and its archive replays" "$REPERF" replay last

none_runs() { ! pgrep -f "$T/fake/train.sh" >/dev/null; }
succeeds "nothing of a stopped job is left, though it ignores TERM" waiting_for 120 none_runs

# The deadline, an hour, comes as the job is at work; then the clock stands, and at four seconds more the job still has one to write in.
forget_runs
mode saves
{ CLOCK="$T/fake/clock" at_clock reperf "$REPERF" run paddle-perf-2020 --case "$CASE" --profile smoke --repeats 1 --deadline 3600 & } >"$T/out" 2>"$T/err"
pid=$!
at_work() { grep -qs '"step":5' "$REPERF_STATE"/runs/2*/jobs/"$CASE"/repeat-1/attempt-1/log; }
served "$pid" "a job that is at work" at_work
echo 3600 >"$T/fake/clock"
wait "$pid"
is $? 124 "a job past its deadline"
is "$(cat "$T/fake/checkpoint" 2>&1)" whole "has its grace to write a checkpoint, as over SSH"

# --- what cannot be run here is always reported ---
forget_runs
answers 7 '.cells[0] | "\(.verdict) \(.cause)"' "not_run container" "other frameworks are not run, with their cause and its status" "$REPERF" run paddle-perf-2020 --case 'resnet50/paddle/fp32/n1g1/bs96' --profile smoke --json
if [ ! -e /proc/driver/nvidia/gpus ]; then
    exits 6 "the full profile needs a GPU" "$REPERF" run paddle-perf-2020 --case "$CASE"
else
    skip "the full profile without a GPU" "this machine has one"
fi
is "$(times_run)" 0 "no workload was started for these"

# --- usage ---
exits 2 "no case matches" "$REPERF" run paddle-perf-2020 --case 'nothing/*'
exits 2 "an unknown profile" "$REPERF" run paddle-perf-2020 --profile tiny
exits 2 "no report" "$REPERF" run
exits 2 "an unknown report" "$REPERF" run no-such-report
exits 2 "an unknown inventory" "$REPERF" run paddle-perf-2020 --case "$CASE" --nodes no-such:node1
fails 2 "without a digest it is unknown what will run" "an image without a digest" smoke --image reperf-cpu=localhost:5000/reperf/cpu:latest
fails 2 "reperf-cqu: no case of paddle-perf-2020 runs in that image" "an image that no case runs in" smoke --nodes local-docker --image "reperf-cqu=localhost:5000/reperf/cpu@sha256:$(printf '%064d' 0)"
fails 2 "runtime none" "an image where nothing runs in one" smoke --image "reperf-cpu=localhost:5000/reperf/cpu@sha256:$(printf '%064d' 0)"
exits 2 "a run id of another shape" smoke --run-id ../../x
forget_runs
mkdir -p "$T/gone"
printf '{"schema_version":1,"id":"gone","title":"nobody is there","remote":"ssh","runtime":"none","source":null,"nodes":[%s]}\n' \
    '{"name":"gone","address":"127.0.0.1","port":1,"user":"nobody","gpus":0,"fast_address":null,"work_folder":null,"groups":[]}' >"$T/gone/i.json"
printf 'Host *\n  ConnectTimeout 1\n' >"$T/gone/config"
gone() { REPERF_SSH_CONFIG="$T/gone/config" REPERF_OUTAGE=$1 "$REPERF" run paddle-perf-2020 --case "$CASE" --profile smoke --nodes "$T/gone/i.json"; } # SECONDS
fails 2 "REPERF_OUTAGE: expected 1 to 86400, found 0" "a node is waited for no time at all" gone 0
fails 6 "unreachable for ([2-9]|[1-9][0-9]+)[. ]" "a node that cannot be reached" gone 2
like "$(cat "$T/err")" "nothing is sealed: reperf resume" "what can be done is said"
prints 0 "interrupted: .*(unreachable|nodes)" "its status" "$REPERF" status last
exits 2 "resume of no run" "$REPERF" resume 20990101T000000.000Z-00000000

# --- status, history ---
forget_runs
smoke --repeats 1 >/dev/null 2>&1
mode fails
smoke --repeats 1 >/dev/null 2>&1
documents status 0 "status" "$REPERF" status --json
is "$(value "$T/out" '[(r["state"], r["exit_status"]) for r in d["runs"]]')" "[('sealed', 0), ('sealed', 8)]" "both runs, oldest first"
documents history 0 "history" "$REPERF" history --case "$CASE" --json
is "$(value "$T/out" '[(c["verdict"], c["value"]) for c in d["cells"]]')" "[('not_comparable', 8), ('failed', None)]" "one cell over time"
exits 0 "explain" "$REPERF" explain 8 124 130 not_comparable run_sealed
exits 2 "explain of nothing known" "$REPERF" explain 77

tap_done
