#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: net
# Jobs on a node over SSH, and what happens to them and to scripts when the connection, the sshd, the node or its disk fails.
# Text that nodes expand is in single quotes.
# shellcheck disable=SC2016,SC1003
. "$(dirname "$0")/../tap_lib.sh"
. tests/integration/ssh_lib.sh
# shellcheck source=tests/faults/lib.sh disable=SC1091
. tests/faults/lib.sh
have_sshd "jobs over SSH" || tap_done
ssh_keys
start_sshd a || exit 1
node=a
work="$T/work"
one() { "$B/servers/remote_one" config="$T/ssh/config" port="${ssh_port[$node]}" work="$work" outage_ms=120000 "$@"; }

none_sleeps() { ! pgrep -xf "sleep 600.$$" >/dev/null; }

# Silence for longer than a node that says nothing at all is given, 30 s, by a clock that goes on each time it has been asked whether it is there; libssh2 asks again after
# two seconds. Beside all that follows. BatchMode must not change how long that is, though Debian's ssh waits 300 s under it before it asks.
start_sshd lives 'LogLevel DEBUG1' || exit 1
cat - "$T/ssh/config" >"$T/ssh/lives" <<<'BatchMode yes
ServerAliveCountMax 3'
{ CLOCK="$T/silence" at_clock remote_one "$B/servers/remote_one" config="$T/ssh/lives" port="${ssh_port[lives]}" 127.0.0.1 exec ": >'$T/silent'; $(held late); echo late" & } >"$T/late.out" 2>&1
late_pid=$!
was_asked() { [ "$(grep -c 'rtype keepalive@libssh2.org' "$T/sshd-lives/log")" -ge "$1" ]; } # TIMES
# An answer that is heard only after the next step of the clock puts the question off until the step after that: so the clock goes on until it has been asked.
be_silent() {
    local step=0 times
    wait_for test -e "$T/silent"
    for times in 1 2 3 4; do
        until [ $((step += 1)) -gt 40 ]; do
            echo $((11 * step)) >"$T/silence"
            ! waiting_for 10 was_asked $times || break
        done
        sleep 2.1
    done
    go late
}
be_silent &
silent_pid=$!

# ---- a job's life ----
is "$(one 127.0.0.1 folder 2>&1)" "$work" "the work folder is made and named"
chmod 0777 "$work"
gives 6 'belongs to user [0-9]*, mode 0777: expected a folder of your own' "one that everybody may write to is refused" 127.0.0.1 folder
chmod 0755 "$work"
is "$(cd / && one work= 127.0.0.1 folder 2>&1)" "$T/home/.local/state/reperf" "its default is below the node's home"
gives 0 '^absent ' "a job that never was" 127.0.0.1 poll run/none
exits 0 "a job starts" one env='A=it'"'"'s $HOME' env='N=two
lines' 127.0.0.1 start run/case/1 sh -c 'printf "%s|%s|" "$A" "$N" "$@"; echo err >&2; '"$(held case)"'; echo end; exit 5' sh 'a  b'
exits 0 "starting it again starts nothing" one 127.0.0.1 start run/case/1 sh -c 'echo twice'
gives 0 '^running ' "it runs" limit_ms=120000 127.0.0.1 poll run/case/1
go case
gives 0 '^ended 5 ' "it ended with its status" 127.0.0.1 wait run/case/1
is "$(one 127.0.0.1 log run/case/1 2>"$T/err")" "it's \$HOME|two
lines|a  b||err
end" "its log, both streams; argv and environment as given"
is "$(one 127.0.0.1 reap run/case/1 2>"$T/err")" "$(sha256sum <"$work/jobs/run/case/1/log" | cut -c1-64)" "its log's digest"
is "$(ls "$work/jobs/run/case/1")" "claim
log
pid
status" "its command and environment are not left there"
exits 0 "it is forgotten" one 127.0.0.1 forget run/case/1
is "$(ls "$work/jobs")" "" "and nothing of it is left"
exits 70 "an id that leaves its folder" one 127.0.0.1 start ../x true
one 127.0.0.1 start run/big sh -c 'cat "$1"' sh "$B/reperf" 2>"$T/err"
one 127.0.0.1 wait run/big >"$T/out" 2>"$T/err"
one 127.0.0.1 log run/big >"$T/got" 2>"$T/err"
succeeds "a binary log of $(wc -c <"$B/reperf") bytes" cmp -s "$T/got" "$B/reperf"
exits 0 "a program that is not there" one 127.0.0.1 start run/no /no/such/program
gives 0 '^ended 127 ' "has the shell's status for it" 127.0.0.1 poll run/no

# ---- a signal (others, clean-up, what is lost: unit/test_proc.c and test_node.sh) ----
one cleanup="echo cleaned >'$T/cleaned'" 127.0.0.1 start run/kill sh -c 'sleep "600.$1" & sleep "600.$1"' sh $$ 2>"$T/err"
exits 0 "SIGTERM" one 127.0.0.1 15 run/kill
gives 0 '^ended 143 ' "it ended by it" 127.0.0.1 poll run/kill
wait_for none_sleeps
is "$? $(cat "$T/cleaned")" "0 cleaned" "with all of its session, and was cleaned up after"

# ---- the connection is lost ----
{ one 127.0.0.1 exec "touch '$T/in'; $(held killed); echo survived" & } >"$T/got" 2>"$T/err"
pid=$!
wait_for test -e "$T/in"
kill_sshd a
wait "$pid"
is "$?" 6 "a script whose sshd is killed"
go killed
like "$(cat "$T/err")" 'connection lost while a script was running' "is not run twice, and that is said"
start_sshd a || exit 1
one 127.0.0.1 start run/on sh -c "echo 1; echo 2; $(held on); echo 3; echo 4; echo 5; exit 7" 2>"$T/err"
read -r wrapper _ <"$work/jobs/run/on/pid"
serves() { pgrep -f "^$work/bin/reperf-node-[0-9a-f]* $work\$" | grep -qvx "$wrapper"; }
serves_nobody() { ! serves; }
wait_for serves_nobody # what served the start has ended, too
{ one outage_ms=120000 127.0.0.1 wait run/on & } >"$T/got" 2>"$T/err"
pid=$!
wait_for serves
kill_sshd a
go on
succeeds "a job ends while its node has no sshd" wait_for test -s "$work/jobs/run/on/status"
start_sshd a || exit 1
wait "$pid"
like "$? $(cat "$T/got")" '^0 ended 7 ' "a job continues without its sshd, and is attached to again"
is "$(one 127.0.0.1 log run/on 2>"$T/err" | tr '\n' ' ')" "1 2 3 4 5 " "and its log is whole"
kill_sshd a
gives 6 'unreachable for .* s \([0-9]+ attempts\).*[Cc]onnection refused' "a node that is gone" outage_ms=1000 127.0.0.1 exec true
start_sshd a || exit 1

# ---- silence ----
kill -STOP "${ssh_pid[a]}"
gives 6 'there was no SSH handshake within 0.5 s' "a server that accepts and says nothing" connect_ms=500 outage_ms=600 127.0.0.1 exec true
kill -CONT "${ssh_pid[a]}"
# shellcheck disable=SC2016
/usr/bin/python3 -c '
import socket
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
guest = server.accept()[0]
try:
    while True: guest.sendall(b"welcome\n" * 1000)
except OSError: pass' >"$T/flood.port" &
pid=$!
wait_for test -s "$T/flood.port"
gives 6 'there was no SSH handshake within 0.5 s' "a server that greets for ever" connect_ms=500 outage_ms=100 port="$(cat "$T/flood.port")" 127.0.0.1 exec true
kill "$pid" 2>/dev/null
cat - "$T/ssh/config" >"$T/ssh/alive" <<<'ServerAliveInterval 2
ServerAliveCountMax 4'
rm -f "$T/in"
{ one config="$T/ssh/alive" outage_ms=500 127.0.0.1 exec "touch '$T/in'; $(held frozen)" & } >"$T/got" 2>"$T/err"
pid=$!
wait_for test -e "$T/in"
frozen="${ssh_pid[a]} $(children_of "${ssh_pid[a]}" | tr '\n' ' ')"
# shellcheck disable=SC2086
kill -STOP $frozen
wait "$pid"
is "$?" 6 "a node that freezes under a script"
like "$(cat "$T/err")" 'nothing was heard for' "is heard of by its silence"
# shellcheck disable=SC2086
kill -CONT $frozen
go frozen

# ---- servers with low limits ----
start_sshd single 'MaxSessions 1' || exit 1
node=single
one 127.0.0.1 start run/sleep sh -c "$(held abort)" 2>"$T/err"
is "$(one 127.0.0.1 abort run/sleep 'echo next' 2>&1 | head -1)" next "MaxSessions 1: a look that was given up makes room"
go abort
start_sshd crowded 'MaxStartups 1:100:1' || exit 1
for i in 0 1 2 3 4 5; do printf 'Host c%s\n    HostName 127.0.0.1\n    HostKeyAlias [127.0.0.1]:%s\n' "$i" "${ssh_port[crowded]}"; done >"$T/ssh/many"
cat "$T/ssh/config" >>"$T/ssh/many"
node=crowded
exits 0 "MaxStartups 1: six at once get in one after the other" one config="$T/ssh/many" outage_ms=120000 c many 6 1 'echo x'
node=a

# ---- tools that a node may lack ----
mkdir "$T/bin"
for tool in sh mkdir mv rm cat chmod find id uname sha256sum sleep; do ln -s "$(command -v $tool)" "$T/bin/$tool"; done
start_sshd bare "SetEnv HOME=$T/home PATH=$T/bin" || exit 1
node=bare
exits 0 "a node with ten tools" one 127.0.0.1 start run/bare sh -c 'sleep 0.5; exit 9'
gives 0 '^ended 9 ' "its jobs" 127.0.0.1 wait run/bare
is "$(one 127.0.0.1 reap run/bare 2>"$T/err")" "$(sha256sum </dev/null | cut -c1-64)" "their digests"
node=a

# ---- a full disk ----
mkdir "$T/small"
if mount -t tmpfs -o size=$(($(stat -c %s "$B/reperf-node") / 1024 + 128))k none "$T/small" 2>"$T/err"; then
    mounted="$T/small"
    work="$T/small/work"
    exits 0 "a small disk" one 127.0.0.1 folder
    one 127.0.0.1 start run/fill sh -c "$(held fill)"'; cat /dev/zero >'"'$T/small/fill'"'; echo "metric 1"; exit 0' 2>"$T/err"
    go fill
    gives 10 'disk: .*No space left on device' "a job that ends on a full disk is not taken for a good one" 127.0.0.1 wait run/fill
    gives 10 'disk: .*No space left on device' "nothing starts there" 127.0.0.1 start run/more true
    gives 10 'disk: .*No space left on device' "nor is it a work folder" 127.0.0.1 folder
    rm "$T/small/fill"
    exits 0 "once there is space, it starts" one 127.0.0.1 start run/more true
else
    skip "a full disk" "no tmpfs can be mounted here: $(head -1 "$T/err")"
fi
wait "$silent_pid" "$late_pid"
is "$? $(cat "$T/late.out")" "0 late
status 0" "a script that is long silent on a node that lives"
succeeds "which was asked four times meanwhile" was_asked 4
tap_done
