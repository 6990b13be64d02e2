#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: node
# reperf-node: put on a node once, checked each time, served over one channel; killed; prevented from
# running. Text that nodes expand is in single quotes.
# shellcheck disable=SC2016,SC2119,SC2028
. "$(dirname "$0")/../tap_lib.sh"
. tests/integration/nodes_lib.sh
. tests/integration/run_lib.sh
have_sshd "reperf-node" || tap_done
ssh_keys
start_sshd a || exit 1
node=a
work="$T/work"
program="$B/reperf-node"
sum=$(sha256sum "$program" | cut -c1-64)
there() { echo "$work/bin/reperf-node-$sum"; }
one() { REPERF_NODE="${by-$program}" "$B/servers/remote_one" config="$T/ssh/config" port="${ssh_port[$node]}" work="$work" outage_ms=60000 "$@"; }
sleeps() { pgrep -xf "sleep 600.$$" >/dev/null; }
none_sleeps() { ! sleeps; }
servers() { pgrep -xf "$(there) $work"; } # the processes that serve a channel, and the wrappers made by them
in_sessions() { ps -o sid= -p "$1" | tr -d ' '; }

# ---- put and checked ----
is "$("$program" --version)" "reperf-node $("$REPERF" --version | cut -d' ' -f2)" "it is of this version"
exits 2 "it does nothing without a folder" "$program"
if command -v readelf >/dev/null && ! nm -D "$program" 2>/dev/null | grep -q __asan; then
    is "$(readelf -d "$program" | grep -c NEEDED)" 0 "it needs no library of the node"
fi
exits 0 "a script" one 127.0.0.1 exec true
succeeds "puts nothing there" test ! -e "$work"
gives 0 'started' "a start does" 127.0.0.1 start run/1 sh -c 'echo it; exit 4'
is "$(sha256sum <"$(there)" | cut -c1-64) $(stat -c %a "$(there)")" "$sum 700" "whole, under its digest, for its owner alone"
is "$(ls -A "$work/bin")" "reperf-node-$sum" "and no half of it is left"
gives 0 '^ended 4 ' "the job" 127.0.0.1 poll run/1
before=$(stat -c '%i %Y' "$(there)")
exits 0 "another connection" one 127.0.0.1 start run/2 true
is "$(stat -c '%i %Y' "$(there)")" "$before" "finds it, and puts nothing again"
printf '#!/bin/sh\necho ran >>%s/evil\nexec %s "$@"\n' "$T" "$program" >"$(there)"
chmod 700 "$(there)"
exits 0 "a program that somebody changed there" one 127.0.0.1 start run/3 true
succeeds "is never run" test ! -e "$T/evil"
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

# ---- two at once, and none ----
for round in 1 2 3 4 5 6; do # both at once: one of them runs it
    { one 127.0.0.1 start "race/$round" sh -c "echo x >>'$T/race.$round'" & } 2>"$T/err.1"
    one_pid=$!
    one 127.0.0.1 start "race/$round" sh -c "echo x >>'$T/race.$round'" 2>"$T/err.2"
    wait "$one_pid"
    one 127.0.0.1 wait "race/$round" >"$T/out" 2>"$T/err"
done
is "$(cat "$T"/race.? | wc -l)" 6 "six jobs that two start at one moment run once each"
gives 0 '^absent ' "a job that is not there" 127.0.0.1 poll no/such
exits 0 "hears no signal" one 127.0.0.1 9 no/such
exits 0 "and is forgotten" one 127.0.0.1 forget no/such

# ---- leftovers that stay ----
touch -d '2 hours ago' "$work/bin/.reperf-node-cut" "$work/bin/reperf-node-recent"
touch -d '31 days ago' "$work/bin/reperf-node-old" "$work/bin/somebody-elses"
touch "$work/bin/.reperf-node-under-way"
rm "$(there)"
one 127.0.0.1 poll no/such >"$T/got" 2>"$T/err"
is "$(cd "$work/bin" && for f in .reperf-node-cut reperf-node-recent reperf-node-old somebody-elses .reperf-node-under-way; do [ ! -e $f ] || echo $f; done | xargs)" \
    "reperf-node-recent somebody-elses .reperf-node-under-way" "parts of puts go after an hour, versions after a month, and nothing else does"
rm "$work/bin/reperf-node-recent" "$work/bin/somebody-elses" "$work/bin/.reperf-node-under-way"

# ---- killed ----
one 127.0.0.1 start kill/1 sh -c "$(held 3); echo whole; exit 8" 2>"$T/err"
read -r wrapper _ <"$work/jobs/kill/1/pid"
serves() { servers | grep -qvx "$wrapper"; }
serves_nobody() { ! serves; }
wait_for serves_nobody # what served the start has ended, too
{ one 127.0.0.1 wait kill/1 & } >"$T/got" 2>"$T/err"
pid=$!
succeeds "a look is served" wait_for serves
servers | grep -vx "$wrapper" | xargs kill -9
go 3
wait "$pid"
is "$? $(cut -d' ' -f1,2 "$T/got")" "0 ended 8" "reperf-node killed under it: it is begun again, and the job's end is seen"
is "$(one 127.0.0.1 log kill/1 2>"$T/err")" whole "the job did not notice"
one 127.0.0.1 start kill/2 sleep 600.$$ 2>"$T/err"
read -r wrapper _ <"$work/jobs/kill/2/pid"
is "$(in_sessions "$wrapper")" "$wrapper" "a wrapper has a session of its own"
kill -TERM "$wrapper"
kill -HUP "$wrapper"
heard_both() { grep -q '^ShdPnd:.0*$' "/proc/$wrapper/status"; } # no signal of the process is left to deliver
wait_for heard_both && kill -0 "$wrapper"
ok $? "which it outlives the TERM and HUP of"
wait_for serves_nobody
{ one 127.0.0.1 wait kill/2 & } >"$T/got" 2>"$T/err"
pid=$!
wait_for serves
kill -9 "$wrapper"
wait "$pid"
like "$(cat "$T/got")" '^lost 0 ' "a wrapper that is killed is reported at once, and not taken for an end"
exits 0 "what it left is ended" one 127.0.0.1 9 kill/2
succeeds "all of it" wait_for none_sleeps
cp "$(there)" "$T/keep"
# ---- a node that lies: always status 6, never a job's state ----
liar() { # NAME: stdin, what it does once it is asked; as a program that says hello
    { printf '#!/bin/sh\n[ "$1" = --version ] && exit 0\n'; cat; } >"$T/$1"
    chmod 755 "$T/$1"
}
hello='printf "reperf-node 6 %s\n" "$0"'
echo "$hello; exit 9" | liar dead
echo "$hello; head -c 20 >/dev/null; echo no answer at all" | liar mad
echo "$hello; head -c 20 >/dev/null; exec cat /dev/zero" | liar endless
echo "exec cat /dev/zero" | liar loud
echo 'echo "reperf-node 1"; exec cat' | liar old
echo "$hello; head -c 16 >/dev/null; printf 'RPN<\\1\\0\\0\\0\\0\\0\\0\\0\\377\\377\\377\\177'; exec cat" | liar huge
echo "$hello; head -c 16 >/dev/null; printf 'RPN<\\1\\0\\0\\0\\0\\0\\0\\0\\6\\0\\0\\0fine 1\\n'; exec cat" | liar wordy
by="$T/dead" gives 6 'reperf-node ended there: status 9$' "one that always ends" 127.0.0.1 start bad/1 true
by="$T/mad" gives 6 'reperf-node there gave no answer: a frame begins' "one that talks nonsense" 127.0.0.1 start bad/2 true
by="$T/endless" gives 6 'reperf-node there gave no answer: a frame begins' "one that does not stop" 127.0.0.1 start bad/3 true
by="$T/loud" gives 6 'reperf-node does not run there' "one that never says hello" 127.0.0.1 start bad/4 true
by="$T/old" gives 6 'reperf-node does not run there: reperf-node 1$' "one of another language" 127.0.0.1 start bad/5 true
by="$T/huge" gives 6 'reperf-node there gave no answer: a frame of 2147483647 bytes' "one that says too much" 127.0.0.1 poll bad/6
by="$T/wordy" gives 6 "a job's state cannot be read: \"fine 1\"" "an invalid state" 127.0.0.1 poll bad/7
by="$T/wordy" gives 6 'the end of a job cannot be read' "an invalid end" 127.0.0.1 reap bad/7
by="$T/wordy" gives 6 'its work folder has no absolute path' "an invalid folder" 127.0.0.1 folder
succeeds "none of them ran anything" test ! -e "$work/jobs/bad"

# ---- prevented from running ----
by=/no/such gives 6 'reperf-node cannot be read here: .*No such file' "not there" 127.0.0.1 start no/2 true
mkdir "$T/shim"
printf '#!/bin/sh\necho riscv64\n' >"$T/shim/uname"
chmod 755 "$T/shim/uname"
start_sshd other "SetEnv HOME=$T/home PATH=$T/shim:/usr/bin:/bin" || exit 1
node=other
gives 6 'reperf-node does not run there: the node is a riscv64, reperf-node is for x86_64: name one for it' "a node of another architecture" 127.0.0.1 start no/3 sh -c 'exit 3'
mkdir "$T/few"
for tool in sh mkdir mv rm cat chmod find id uname; do ln -s "$(command -v $tool)" "$T/few/$tool"; done
start_sshd few "SetEnv HOME=$T/home PATH=$T/few" || exit 1
node=few
rm -f "$(there)"
gives 6 'reperf-node could not be put there: the node has nothing that computes SHA-256 .*install' "a node that cannot check it" 127.0.0.1 start no/4 true
succeeds "has none" test ! -e "$(there)"
is "$(find "$work/bin" -name ".reperf-node-*" | wc -l)" 0 "and no half of it is left"
cp "$program" "$(there)"
chmod 700 "$(there)"
gives 6 'nothing that computes SHA-256' "and does not run one unchecked" 127.0.0.1 start no/5 true
node=a
succeeds "nothing was run there" test ! -e "$work/jobs/no"
mkdir "$T/small"
if mount -t tmpfs -o size=600k,noexec none "$T/small" 2>"$T/err"; then
    mounted="$T/small"
    old=$work work="$T/small/work"
    gives 10 'reperf-node could not be put there: .*No space left on device' "no space for it" 127.0.0.1 start no/6 sh -c 'exit 5'
    is "$(find "$work/bin" -type f | wc -l)" 0 "no half of it is left"
    mount -o remount,size=64m,noexec "$T/small"
    gives 0 'started' "a work folder mounted noexec" 127.0.0.1 start no/7 sh -c 'exit 6'
    gives 0 '^ended 6 ' "its job" 127.0.0.1 poll no/7
    is "$(ls -A "$work/bin") $(stat -c %a "$T/home/.cache/reperf" "$T/home/.cache/reperf/reperf-node-$sum" | xargs)" " 700 700" "the program lies below the node's home then, for its owner alone"
    mkdir "$T/nowhere" "$T/small/home"
    printf '#!/bin/sh\ncase $* in */var/tmp/* | */dev/shm/*) exit 1 ;; esac\nexec /bin/mkdir "$@"\n' >"$T/nowhere/mkdir"
    chmod 755 "$T/nowhere/mkdir"
    start_sshd nowhere "SetEnv HOME=$T/small/home PATH=$T/nowhere:/usr/bin:/bin" || exit 1
    node=nowhere
    gives 6 'no folder lets it run there \(tried .*/work/bin .*/home/.cache/reperf .*\): name a work folder that is not mounted noexec' "nowhere" 127.0.0.1 start no/8 true
    is "$(find "$T/small" -name '*reperf-node-*' | wc -l)" 0 "and no half of it is left"
    rm -r "$T/home/.cache"
    node=a work=$old
else
    skip "no space, noexec" "no tmpfs can be mounted here: $(head -1 "$T/err")"
fi

# ---- a run ----
stop_sshds
rm -r "$T/ssh"
if nodes_start; then
    mode ''
    exits 0 "a run" env REPERF_NODE="$program" "$REPERF" run paddle-perf-2020 --case "$CASE" --profile smoke --repeats 2 --nodes "$INV:n1"
    succeeds "it did the work" test -e "$T/work-n1/bin/reperf-node-$sum"
    fails 6 'reperf-node: .no.such: No such file' "a run without" env REPERF_NODE=/no/such "$REPERF" run paddle-perf-2020 --case "$CASE" --profile smoke --repeats 2 --nodes "$INV:n2"
    exits 0 "nodes clean, after both" "$REPERF" nodes clean "$INV:n[1-2]"
    is "$(cat "$T/out")" "no job, container, lease or unfinished file of a dead run is there; what runs brought (programs, files, images) is kept" "finds nothing of either"
fi
tap_done
