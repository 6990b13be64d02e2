#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The starter of a node's ranks under each /bin/sh that a node may have: numbers, statuses, one that fails, signals, and nothing left
# behind. mpirun for real, with this machine as two nodes' worth of slots.
# shellcheck source=tests/tap_lib.sh
. "$(dirname "$0")/../tap_lib.sh"
ARGV="$B/servers/launch_argv"
words() { # LAUNCHER NODES RANKS NODE [NAME=VALUE...] -- ARGV: into ENV_WORDS and ARGV_WORDS
    local all word seen=0
    mapfile -d '' all < <("$ARGV" "$@")
    ENV_WORDS=() ARGV_WORDS=()
    for word in "${all[@]}"; do
        if [ -z "$word" ] && [ $seen = 0 ]; then seen=1
        elif [ $seen = 0 ]; then ENV_WORDS+=("$word")
        else ARGV_WORDS+=("$word"); fi
    done
}
start() { # as `words`: what runs in place of this shell, as the wrapper of a job would start it, under $AS
    words "$@"
    exec env -i PATH="$PATH" HOME="$T" TMPDIR="$T" "${ENV_WORDS[@]}" "${AS[@]}" "${ARGV_WORDS[@]:1}" </dev/null
}

# A rank that says who it is, and does what the file "do-RANK" tells it.
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

shells=(dash bash) deaf_pid=()
command -v busybox >/dev/null && shells+=(busybox)
as() { # SHELL: what runs a script in it
    case $1 in
    bash) AS=("$(command -v bash)" --posix) ;;
    busybox) AS=("$(command -v busybox)" sh) ;;
    *) AS=("$(command -v "$1")") ;;
    esac
}
# Those that do not listen are killed after seconds: all shells' at one time, each in a folder of its own.
deaf_ranks() { # SHELL
    as "$1"
    T="$T/deaf-$1"
    mkdir "$T"
    cp "$T/../rank.sh" "$T/"
    echo "until [ -e $T/ready-0 ] && [ -e $T/ready-1 ]; do sleep 0.05; done; kill -9 \$\$" >"$T/do-2"
    echo "$deaf" | tee "$T/do-0" >"$T/do-1"
    (ranks 3 0) >"$T/log" 2>&1
    echo $? >"$T/status"
}
for name in "${shells[@]}"; do
    (deaf_ranks "$name") &
    deaf_pid[${#deaf_pid[@]}]=$!
done
for name in "${shells[@]}"; do
    as "$name"
    fresh
    (ranks 3 1) >"$T/log" 2>&1
    is $? 0 "$name: three ranks that end well"
    threads=$(($(nproc) / 3))
    [ $threads -gt 0 ] || threads=1
    is "$(grep -c . "$T/log")" 6 "$name: nothing but their own lines"
    for r in 3 4 5; do
        is "$(grep -c "^rank $r local $((r - 3)) of 6/3 at node1:29500 threads $threads passive run 20261121T000000.000Z-00000001 job 20261121T000000.000Z-00000001/a/case/repeat-1/attempt-1 args 2:a  b:new\$" "$T/log")" 1 \
            "$name: rank $r knows its place"
    done
    fresh
    echo "until [ -e $T/ready-0 ] && [ -e $T/ready-2 ]; do sleep 0.05; done; exit 7" >"$T/do-1"
    echo "$stays" | tee "$T/do-0" >"$T/do-2"
    (ranks 3 0) >"$T/log" 2>&1
    is $? 7 "$name: one that fails gives its status"
    is "$(grep -c '^{"event":"fatal","rank":1,"device":"","where":"launcher","what":"ended with status 7"}$' "$T/log")" 1 "$name: and is named"
    is "$(cat "$T"/asked-* | grep -c asked)" 2 "$name: the others were asked to end"
    gone 0 1 2
    ok $? "$name: and have"
    fresh
    echo "$stays" | tee "$T/do-0" >"$T/do-1"
    (ranks 2 0) >"$T/log" 2>&1 &
    job=$!
    waiting_for 20 all_ready 0 1
    kill -TERM $job
    wait $job
    is $? 143 "$name: TERM is passed on and is the status"
    is "$(cat "$T"/asked-* | grep -c asked)" 2 "$name: to each rank"
    gone 0 1
    ok $? "$name: none is left"
    is "$(grep -c fatal "$T/log")" 0 "$name: a stop from outside is no rank's failure"
    fresh
    (start 0 1 2 0 "T=$T" OMP_NUM_THREADS=11 -- "$T/rank.sh") >"$T/log" 2>&1
    is "$(grep -c 'threads 11 ' "$T/log")" 2 "$name: the step's own number of threads is kept"
    (start 0 1 2 0 -- "$T/absent") >"$T/log" 2>&1
    is $? 127 "$name: a program that is not there"
done

wait "${deaf_pid[@]}"
for name in "${shells[@]}"; do
    is "$(cat "$T/deaf-$name/status")" 137 "$name: one that is killed, with others that do not listen"
    is "$(grep -c '"rank":2,.*status 137' "$T/deaf-$name/log")" 1 "$name: it is named"
    D="$T/deaf-$name" gone 0 1 2
    ok $? "$name: the others are killed too"
done

# --- mpirun ---
if ! command -v mpirun >/dev/null; then
    skip "mpirun" "openmpi-bin is not installed"
    tap_done
fi
AS=(/bin/sh)
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
waiting_for 10 gone 0 1
ok $? "mpirun: and takes the other down"
fresh
echo "$stays" | tee "$T/do-0" >"$T/do-1"
(mpi 2) >"$T/log" 2>&1 &
job=$!
waiting_for 20 all_ready 0 1
kill -TERM $job
wait $job
status=$?
[ $status -ne 0 ]
ok $? "mpirun: TERM ends it, and not as a success: $status"
waiting_for 10 gone 0 1
ok $? "mpirun: none is left"
is "$(find "$T" -maxdepth 1 -name 'reperf-hosts.*' | wc -l)" 0 "mpirun: its hostfile is gone"
tap_done
