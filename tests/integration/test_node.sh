#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# reperf-node: put on a node once, checked each time, served over one channel; mixed with the scripts on one job; killed; kept from running.
# What nodes are to expand stands in single quotes.
# shellcheck disable=SC2016,SC2119
. "$(dirname "$0")/../tap_lib.sh"
. tests/integration/ssh_lib.sh
. tests/integration/nodes_lib.sh
. tests/integration/run_lib.sh
have_sshd "reperf-node" || tap_done
mounted=
trap 'stop_sshds; [ -z "$mounted" ] || umount "$mounted"; rm -rf "$T"' EXIT
unset SSH_AUTH_SOCK
ssh_keys
start_sshd a || exit 1
node=a
work="$T/work"
program="$B/reperf-node"
sum=$(sha256sum "$program" | cut -c1-64)
there() { echo "$work/bin/reperf-node-$sum"; }
one() { REPERF_NODE="${by-$program}" "$B/servers/remote_one" config="$T/ssh/config" port="${ssh_port[$node]}" work="$work" outage_ms=8000 "$@"; }
scripts() { by=none one "$@"; }
gives() { # STATUS ERE NAME ARG...
    local want=$1 pattern=$2 what=$3
    shift 3
    exits "$want" "$what" one "$@"
    like "$(cat "$T/err")" "$pattern" "$what: is said"
}
wait_for() { # COMMAND...: up to 10 s
    local tries
    for ((tries = 0; tries < 200; tries++)); do
        "$@" && return 0
        sleep 0.05
    done
    return 1
}
held() { echo "until [ -e '$T/go-$1' ]; do sleep 0.05; done"; } # NAME: what a job does until `go NAME`
go() { : >"$T/go-$1"; }
servers() { pgrep -xf "$(there) $work"; } # the processes that serve a channel, and the wrappers made by them
in_sessions() { ps -o sid= -p "$1" | tr -d ' '; }

# ---- put and checked ----
is "$("$program" --version)" "reperf-node $("$REPERF" --version | cut -d' ' -f2)" "it is of this version"
exits 2 "it does nothing without a folder" "$program"
if command -v readelf >/dev/null && ! nm -D "$program" 2>/dev/null | grep -q __asan; then
    is "$(readelf -d "$program" | grep -c NEEDED)" 0 "it needs no library of the node"
fi
gives 0 'state absent' "a look puts nothing there" 127.0.0.1 poll run/none
[ ! -e "$work/bin" ]
ok $? "its folder is not even made"
gives 0 'started' "a start does" 127.0.0.1 start run/1 sh -c 'echo it; exit 4'
is "$(sha256sum <"$(there)" | cut -c1-64) $(stat -c %a "$(there)")" "$sum 700" "whole, under its digest, for its owner alone"
is "$(grep -c scripts "$T/err")" 0 "no script did the work"
is "$(ls -A "$work/bin")" "reperf-node-$sum" "and no half of it is left"
gives 0 'state ended 4' "the job" 127.0.0.1 poll run/1
before=$(stat -c '%i %Y' "$(there)")
exits 0 "another connection" one 127.0.0.1 start run/2 true
is "$(stat -c '%i %Y' "$(there)")" "$before" "finds it, and puts nothing again"
printf '#!/bin/sh\necho ran >>%s/evil\nexec %s "$@"\n' "$T" "$program" >"$(there)"
chmod 700 "$(there)"
gives 0 'state absent' "a program that somebody changed there: a look" 127.0.0.1 poll run/none
exits 0 "a start" one 127.0.0.1 start run/3 true
[ ! -e "$T/evil" ]
ok $? "it is never run"
is "$(sha256sum <"$(there)" | cut -c1-64)" "$sum" "and replaced by what it should be"
dd if=/dev/zero of="$(there)" bs=1 seek=9000 count=1 conv=notrunc status=none
exits 0 "one byte of it flipped" one 127.0.0.1 start run/4 true
is "$(sha256sum <"$(there)" | cut -c1-64)" "$sum" "is seen too"

# ---- one channel for many operations ----
sessions() { grep -c 'Starting session' "$T/sshd-loud/log"; }
start_sshd loud 'LogLevel VERBOSE' || exit 1
node=loud
exits 0 "five jobs on one connection" one 127.0.0.1 jobs m/1 m/2 m/3 m/4 m/5
is "$(tr '\n' ' ' <"$T/out")" "m/1 m/2 m/3 m/4 m/5 " "each with its log"
is "$(sessions)" 1 "20 operations over one channel"
exits 0 "with scripts between them" one text='echo between' 127.0.0.1 jobs m/1 m/2
is "$(tr '\n' ' ' <"$T/out")" "m/1 between m/2 between " "both are served"
start_sshd single 'MaxSessions 1' || exit 1
node=single
exits 0 "MaxSessions 1: likewise" one text='echo between' 127.0.0.1 jobs m/1 m/2
is "$(tr '\n' ' ' <"$T/out")" "m/1 between m/2 between " "its channel makes room for a script"
node=a

# ---- mixed with the scripts ----
one 127.0.0.1 start mix/1 sh -c "$(held 1); echo finished; exit 6" 2>"$T/err"
exits 0 "a job that reperf-node started" scripts 127.0.0.1 start mix/1 sh -c 'echo twice'
go 1
exits 0 "is waited for by scripts" scripts 127.0.0.1 wait mix/1
like "$(cat "$T/err")" 'state 2 6 after' "to its end"
is "$(scripts 127.0.0.1 log mix/1 2>"$T/err") $(scripts 127.0.0.1 digest mix/1 2>"$T/err")" "finished $(echo finished | sha256sum | cut -c1-64)" "log and digest by scripts"
exits 0 "and forgotten by them" scripts 127.0.0.1 forget mix/1
scripts cleanup="echo cleaned >>'$T/cleaned'" 127.0.0.1 start mix/2 sh -c "$(held 2); echo finished; exit 7" 2>"$T/err"
exits 0 "a job that scripts started" one 127.0.0.1 start mix/2 sh -c 'echo twice'
go 2
gives 0 'state 2 7 after' "is waited for by reperf-node" 127.0.0.1 wait mix/2
is "$(one 127.0.0.1 log mix/2 2>"$T/err") $(one 127.0.0.1 digest mix/2 2>"$T/err")" "finished $(echo finished | sha256sum | cut -c1-64)" "log and digest by it"
is "$(sort -u "$T/cleaned")" cleaned "cleaned up after"
rm "$T/cleaned"
is "$(cd "$work/jobs/mix/2" && echo *)" "claim cleanup log pid status" "the same files"
exits 0 "and forgotten by it" one 127.0.0.1 forget mix/2
[ ! -e "$work/jobs/mix/2" ]
ok $? "nothing of it is left"
one cleanup="echo cleaned >>'$T/cleaned'" 127.0.0.1 start mix/3 sleep 300.$$ 2>"$T/err"
exits 0 "scripts kill what reperf-node started" scripts 127.0.0.1 signal mix/3 9
is "$(pgrep -xcf "sleep 300.$$") $(sort -u "$T/cleaned")" "0 cleaned" "all of it, and clean up"
scripts 127.0.0.1 start mix/4 sleep 300.$$ 2>"$T/err"
exits 0 "reperf-node ends what scripts started" one 127.0.0.1 signal mix/4 15
gives 0 'state 2 143' "and sees how" 127.0.0.1 wait mix/4
for round in 1 2 3 4 5 6; do # both at once: one of them runs it
    one 127.0.0.1 start "race/$round" sh -c "echo x >>'$T/race.$round'" 2>"$T/err.1" &
    one_pid=$!
    scripts 127.0.0.1 start "race/$round" sh -c "echo x >>'$T/race.$round'" 2>"$T/err.2"
    wait "$one_pid"
    one 127.0.0.1 wait "race/$round" 2>"$T/err"
done
is "$(cat "$T"/race.? | wc -l)" 6 "six jobs that both start at one moment run once each"
# The same words where the scripts have words.
for what in 'digest no/such' 'log no/such' 'signal no/such 9' 'forget no/such' 'poll no/such'; do
    # shellcheck disable=SC2086
    { one 127.0.0.1 $what >"$T/a" 2>&1; echo $? >>"$T/a"; scripts 127.0.0.1 $what 2>&1 | grep -v '^by scripts' >"$T/b"; echo "${PIPESTATUS[0]}" >>"$T/b"; }
    is "$(cat "$T/a")" "$(cat "$T/b")" "$what: as the scripts say it"
done
one 127.0.0.1 start same/a sh -c 'env; pwd; umask; ulimit -c; trap' 2>"$T/err"
scripts 127.0.0.1 start same/b sh -c 'env; pwd; umask; ulimit -c; trap' 2>"$T/err"
is "$(one 127.0.0.1 log same/a 2>"$T/err")" "$(scripts 127.0.0.1 log same/b 2>"$T/err")" "a job's environment, folder, mask, limits and signals are the same"

# ---- killed ----
one 127.0.0.1 start kill/1 sh -c "$(held 3); echo whole; exit 8" 2>"$T/err"
one 127.0.0.1 wait kill/1 >"$T/got" 2>"$T/err" &
pid=$!
read -r wrapper _ <"$work/jobs/kill/1/pid"
serves() { servers | grep -qvx "$wrapper"; }
wait_for serves
ok $? "a look is served"
servers | grep -vx "$wrapper" | xargs kill -9
go 3
wait "$pid"
is "$? $(grep -c 'state 2 8 after' "$T/err")" "0 1" "reperf-node killed under it: it is begun again, and the job's end is seen"
is "$(one 127.0.0.1 log kill/1 2>"$T/err")" whole "the job did not notice"
one 127.0.0.1 start kill/2 sleep 300.$$ 2>"$T/err"
read -r wrapper _ <"$work/jobs/kill/2/pid"
is "$(in_sessions "$wrapper")" "$wrapper" "a wrapper has a session of its own"
kill -TERM "$wrapper"
kill -HUP "$wrapper"
sleep 0.1
kill -0 "$wrapper"
ok $? "which it outlives the TERM and HUP of"
one 127.0.0.1 wait kill/2 >"$T/got" 2>"$T/err" &
pid=$!
sleep 0.3
kill -9 "$wrapper"
wait "$pid"
like "$(cat "$T/err")" 'state 3 0 after' "a wrapper that is killed is told at once, and not taken for an end"
exits 0 "what it left is ended" one 127.0.0.1 signal kill/2 9
is "$(pgrep -xcf "sleep 300.$$")" 0 "all of it"
cp "$(there)" "$T/keep"
printf '#!/bin/sh\nprintf "reperf-node 1\\n"; head -c 20 >/dev/null; echo no answer at all\n' >"$T/mad"
printf '#!/bin/sh\nprintf "reperf-node 1\\n"; exit 9\n' >"$T/dead"
chmod 755 "$T/mad" "$T/dead"
by="$T/dead" gives 0 'by scripts: reperf-node ended there: status 9$' "one that always ends" 127.0.0.1 start bad/1 true
by="$T/mad" gives 0 'by scripts: reperf-node there gave no answer: a frame begins' "one that talks nonsense" 127.0.0.1 start bad/2 true
gives 0 'state ended 0' "their jobs ran all the same" 127.0.0.1 poll bad/1

# ---- kept from running ----
gives 0 'started' "(to compare)" 127.0.0.1 start ok/1 true
is "$(grep -c 'by scripts' "$T/err")" 0 "nothing is said where it runs"
by=none gives 0 'by scripts: switched off: REPERF_NODE=none' "switched off" 127.0.0.1 start no/1 true
by=/no/such gives 0 'by scripts: reperf-node cannot be read here: .*No such file' "not there" 127.0.0.1 start no/2 true
mkdir "$T/shim"
printf '#!/bin/sh\necho riscv64\n' >"$T/shim/uname"
chmod 755 "$T/shim/uname"
start_sshd other "SetEnv HOME=$T/home PATH=$T/shim:/usr/bin:/bin" || exit 1
node=other
gives 0 'by scripts: reperf-node does not run there: the node is a riscv64, reperf-node is for x86_64' "a node of another make" 127.0.0.1 start no/3 sh -c 'exit 3'
gives 0 'state ended 3' "its job" 127.0.0.1 poll no/3
mkdir "$T/few"
for tool in sh mkdir rmdir mv rm cat wc dd sleep head tail find env ls sync setsid uname chmod; do ln -s "$(command -v $tool)" "$T/few/$tool"; done
start_sshd few "SetEnv HOME=$T/home PATH=$T/few" || exit 1
node=few
rm -f "$(there)"
gives 0 'by scripts: reperf-node could not be put there: it did not come whole|by scripts: reperf-node does not run there: the node has no tool' "a node that cannot check it" 127.0.0.1 start no/4 true
[ ! -e "$(there)" ]
ok $? "has none"
cp "$T/keep" "$(there)"
chmod 700 "$(there)"
gives 0 'by scripts: reperf-node does not run there: the node has no tool for SHA-256' "and does not run one unchecked" 127.0.0.1 start no/5 true
node=a
mkdir "$T/small"
if mount -t tmpfs -o size=600k,noexec none "$T/small" 2>"$T/err"; then
    mounted="$T/small"
    old=$work work="$T/small/work"
    gives 0 'by scripts: reperf-node could not be put there: .*No space left on device' "no space for it" 127.0.0.1 start no/6 sh -c 'exit 5'
    gives 0 'state ended 5' "its job" 127.0.0.1 poll no/6
    is "$(find "$work/bin" -type f | wc -l)" 0 "no half of it is left"
    mount -o remount,size=8m,noexec "$T/small"
    gives 0 'by scripts: reperf-node does not run there: .*[Pp]ermission denied' "a work folder mounted noexec" 127.0.0.1 start no/7 sh -c 'exit 6'
    gives 0 'state ended 6' "its job" 127.0.0.1 poll no/7
    work=$old
else
    skip "no space, noexec" "no tmpfs can be mounted here: $(head -1 "$T/err")"
fi

# ---- a run says it, once for each node ----
stop_sshds
rm -r "$T/ssh"
if nodes_start; then
    mode ''
    exits 0 "a run" env REPERF_NODE="$program" "$REPERF" run paddle-perf-2020 --case "$CASE" --profile smoke --repeats 2 --nodes "$INV:n1"
    is "$(grep -c jobs_by_scripts "$(run_folder)/events.jsonl")" 0 "with reperf-node says nothing of scripts"
    [ -e "$T/work-n1/bin/reperf-node-$sum" ]
    ok $? "it did the work"
    exits 0 "a run without" env REPERF_NODE=none "$REPERF" run paddle-perf-2020 --case "$CASE" --profile smoke --repeats 2 --nodes "$INV:n2"
    is "$(jq -r 'select(.event == "jobs_by_scripts") | "\(.node) \(.level) \(.fields.detail)"' "$(run_folder)/events.jsonl")" "n2 warning switched off: REPERF_NODE=none" "says it once for its node"
    is "$(grep -c 'n2: jobs by shell scripts, which take longer: switched off' "$T/err")" 1 "and to people"
    exits 0 "nodes clean, after both" "$REPERF" nodes clean "$INV:n[1-2]"
    is "$(cat "$T/out")" "nothing is left there" "finds nothing of either"
fi
tap_done
