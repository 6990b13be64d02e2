#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: fleet
# reperf-node as what starts a node's ranks: numbers, statuses, one that fails, signals, and nothing left behind.
# shellcheck source=tests/tap_lib.sh
. "$(dirname "$0")/../tap_lib.sh"
ARGV="$B/servers/launch_argv"
NODE=$(realpath "$B/reperf-node")
words() { # LAUNCHER NODES RANKS NODE [NAME=VALUE...] -- ARGV: into ENV_WORDS and ARGV_WORDS
    local all word seen=0
    mapfile -d '' all < <("$ARGV" "$@")
    ENV_WORDS=() ARGV_WORDS=()
    for word in "${all[@]}"; do
        word=${word//'/@reperf-node@'/$NODE} # as the wrapper of a job puts it there
        if [ -z "$word" ] && [ $seen = 0 ]; then seen=1
        elif [ $seen = 0 ]; then ENV_WORDS+=("$word")
        else ARGV_WORDS+=("$word"); fi
    done
    # From TERM to KILL ranks have five seconds: here more, but where those are to pass.
    [ "${ARGV_WORDS[*]:1:1} ${ARGV_WORDS[*]:4:1}" != "ranks 5" ] || ARGV_WORDS[4]=${grace:-120}
}
start() { # as `words`: what runs in place of this shell, as the wrapper of a job would start it
    words "$@"
    exec env -i PATH="$PATH" HOME="$T" TMPDIR="$T" "${ENV_WORDS[@]}" "${ARGV_WORDS[@]}" </dev/null
}

# A rank that prints its identity, and does what the file "do-RANK" says.
cat >"$T/rank.sh" <<'EOF'
#!/bin/bash
echo "rank $RANK local $LOCAL_RANK of $WORLD_SIZE/$LOCAL_WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT threads $OMP_NUM_THREADS $OMP_WAIT_POLICY run $REPERF_RUN_ID job $REPERF_JOB args $#:$1:$2"
echo $$ >"$T/pid-$RANK"
[ ! -e "$T/do-$RANK" ] || . "$T/do-$RANK"
exit 0
EOF
chmod +x "$T/rank.sh"
export T
fresh() { rm -f "$T"/do-* "$T"/pid-* "$T"/asked-* "$T"/ready-*; }
# shellcheck disable=SC2016 # for the rank to expand
stays='sleep 300 & child=$!; trap "echo asked >\$T/asked-\$RANK; kill \$child; exit 143" TERM; echo >$T/ready-$RANK; wait'
# shellcheck disable=SC2016
deaf='trap "" TERM; echo >$T/ready-$RANK; while :; do sleep 0.2; done'
ranks() { start 0 2 "$1" "$2" "T=$T" -- "$T/rank.sh" 'a  b' $'new\nline'; } # RANKS NODE
# shellcheck disable=SC2317
all_ready() { for r in "$@"; do [ -e "$T/ready-$r" ] || return 1; done; }
gone() { # RANK...: none of them runs, of those in the folder $D
    local r
    for r in "$@"; do ! kill -0 "$(cat "${D:-$T}/pid-$r")" 2>/dev/null || return 1; done
}

# Ranks that ignore TERM are killed after seconds: meanwhile the rest, in another folder.
mkdir "$T/deaf"
cp "$T/rank.sh" "$T/deaf/"
deaf_ranks() {
    local T="$T/deaf"
    echo "until [ -e $T/ready-0 ] && [ -e $T/ready-1 ]; do sleep 0.05; done; kill -9 \$\$" >"$T/do-2"
    echo "$deaf" | tee "$T/do-0" >"$T/do-1"
    (grace=5 ranks 3 0) >"$T/log" 2>&1
    echo $? >"$T/status"
}
deaf_ranks &
deaf_pid=$!
fresh
(ranks 3 1) >"$T/log" 2>&1
is $? 0 "three ranks that end well"
threads=$(($(nproc) / 3))
[ $threads -gt 0 ] || threads=1
is "$(grep -c . "$T/log")" 6 "nothing but their own lines"
for r in 3 4 5; do
    is "$(grep -c "^rank $r local $((r - 3)) of 6/3 at node1:29500 threads $threads passive run 20261121T000000.000Z-00000001 job 20261121T000000.000Z-00000001/a/case/repeat-1/attempt-1 args 2:a  b:new\$" "$T/log")" 1 \
        "rank $r knows its place"
done
fresh
echo "until [ -e $T/ready-0 ] && [ -e $T/ready-2 ]; do sleep 0.05; done; exit 7" >"$T/do-1"
echo "$stays" | tee "$T/do-0" >"$T/do-2"
(ranks 3 0) >"$T/log" 2>&1
is $? 7 "one that fails gives its status"
is "$(grep -c '^{"event":"fatal","rank":1,"device":"","where":"launcher","what":"ended with status 7"}$' "$T/log")" 1 "and is named"
is "$(cat "$T"/asked-* | grep -c asked)" 2 "the others were asked to end"
succeeds "and have" gone 0 1 2
fresh
echo "$stays" | tee "$T/do-0" >"$T/do-1"
(ranks 2 0) >"$T/log" 2>&1 &
job=$!
waiting_for 120 all_ready 0 1
kill -TERM $job
wait $job
is $? 143 "TERM is passed on and is the status"
is "$(cat "$T"/asked-* | grep -c asked)" 2 "to each rank"
succeeds "none is left" gone 0 1
is "$(grep -c fatal "$T/log")" 0 "a stop from outside is no rank's failure"
fresh
(start 0 1 2 0 "T=$T" OMP_NUM_THREADS=11 -- "$T/rank.sh") >"$T/log" 2>&1
is "$(grep -c 'threads 11 ' "$T/log")" 2 "the step's own number of threads is kept"
(start 0 1 2 0 -- "$T/absent") >"$T/log" 2>&1
is $? 127 "a program that is not there"
wait "$deaf_pid"
is "$(cat "$T/deaf/status")" 137 "one that is killed, with others that do not listen"
is "$(grep -c '"rank":2,.*status 137' "$T/deaf/log")" 1 "it is named"
D="$T/deaf" gone 0 1 2
ok $? "the others are killed too"
# A rank that loses its peer ends first, and the one ended by a signal is the cause. The launcher, held meanwhile, hears of both at once.
fresh
echo "until [ -e $T/ready-0 ]; do sleep 0.02; done; kill -STOP \$PPID; echo >$T/ready-1; exit 5" >"$T/do-1"
echo "echo >$T/ready-0; until [ -e $T/ready-1 ]; do sleep 0.02; done; kill -9 \$\$" >"$T/do-0"
(ranks 2 0) >"$T/log" 2>&1 &
job=$!
# shellcheck disable=SC2317
both_dead() { [ "$(cat "/proc/$(cat "$T/pid-0")/stat" "/proc/$(cat "$T/pid-1")/stat" | grep -c ') Z ')" = 2 ]; } 2>/dev/null
waiting_for 120 all_ready 0 1
waiting_for 120 both_dead
kill -CONT $job
wait $job
is "$? $(grep -c '"rank":0,.*status 137' "$T/log")" "137 1" "of two that fail at once the one that was killed is named"
(exec "$NODE" ranks "" 2 5 "$T/rank.sh") >"$T/log" 2>&1
is "$? $(cat "$T/log")" "70 reperf-node: REPERF_NODE_RANK: it is not set to a number" "without a number nothing is started"
(exec "$NODE" task 2 "$T/rank.sh") >"$T/log" 2>&1
is "$? $(cat "$T/log")" "70 reperf-node: task: neither mpirun nor srun says which rank this is" "nor without a launcher"

# --- mpirun ---
if ! command -v mpirun >/dev/null; then
    skip "mpirun" "openmpi-bin is not installed"
    tap_done
fi
export LAUNCH_ADDRESSES=localhost
mpi() { start 1 1 "$1" 0 "T=$T" "ODD=a 'b' \"c\" \$HOME; d,e"$'\n'"f" -- "$T/rank.sh" 'a  b' $'new\nline'; } # RANKS
fresh
# shellcheck disable=SC2016
echo 'echo "odd $RANK: $ODD"' | tee "$T/do-0" >"$T/do-1"
(mpi 2) >"$T/log" 2>&1
is $? 0 "mpirun: two ranks that end well"
is "$(grep -c "^rank [01] local [01] of 2/2 at localhost:29500 threads $(($(nproc) > 1 ? $(nproc) / 2 : 1)) passive run .*args 2:a  b:new\$" "$T/log")" 2 "mpirun: both know their place"
is "$(grep -c "^odd [01]: a 'b' \"c\" \$HOME; d,e\$" "$T/log")" 2 "mpirun: values arrive as they are"
fresh
echo "until [ -e $T/ready-0 ]; do sleep 0.05; done; exit 7" >"$T/do-1"
echo "$stays" >"$T/do-0"
(mpi 2) >"$T/log" 2>&1
is $? 7 "mpirun: one that fails gives its status"
succeeds "mpirun: and takes the other down" waiting_for 120 gone 0 1
fresh
echo "$stays" | tee "$T/do-0" >"$T/do-1"
(mpi 2) >"$T/log" 2>&1 &
job=$!
waiting_for 120 all_ready 0 1
kill -TERM $job
wait $job
status=$?
succeeds "mpirun: TERM ends it, and not as a success: $status" test $status -ne 0
succeeds "mpirun: none is left" waiting_for 120 gone 0 1
tap_done
