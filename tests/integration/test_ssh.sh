#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: net
# fleet/remote_ssh against real sshds on the loopback: scripts, keys, known_hosts, login shells, jumps. Jobs and lost connections are in
# test_ssh_jobs.sh.
# Text that nodes expand is in single quotes.
# shellcheck disable=SC2016,SC1003
. "$(dirname "$0")/../tap_lib.sh"
. tests/integration/ssh_lib.sh
# shellcheck source=tests/faults/lib.sh disable=SC1091
. tests/faults/lib.sh
have_sshd "nodes over SSH" || tap_done
ssh_keys
trap 'stop_sshds; [ -z "${agent_pid-}" ] || kill -KILL "$agent_pid"; rm -rf "$T"' EXIT
start_sshd a || exit 1
start_sshd b 'Banner none' || exit 1
config="$T/ssh/config"
one() { "$B/servers/remote_one" config="$config" port="${ssh_port[a]}" work="$T/work" outage_ms=60000 "$@"; }
with() { # LINE...: a config of its own, in front of the common one
    printf '%s\n' "$@" >"$T/ssh/other"
    cat "$T/ssh/config" >>"$T/ssh/other"
    config="$T/ssh/other"
}
common() { config="$T/ssh/config"; }

# ---- deadlines ----
# Of ten minutes, by a clock that goes on for so long once all have begun, and the rest is done: what they had to print has come by then.
waits="while [ -d '$T' ]; do sleep 0.2; done"
mkdir "$T/dozing" && echo "echo dozing; : >'$T/dozing/begun'; $waits" >"$T/dozing/.bashrc"
start_sshd dozing "SetEnv HOME=$T/dozing" || exit 1
late() { CLOCK="$T/late" at_clock remote_one "$B/servers/remote_one" config="$config" port="${ssh_port[a]}" work="$T/work" outage_ms=60000 "$@"; }
{ late deadline_ms=600000 127.0.0.1 exec ": >'$T/begun'; $waits" & } >"$T/script.out" 2>"$T/script.err"
script_pid=$!
{ late port="${ssh_port[dozing]}" deadline_ms=600000 127.0.0.1 exec 'echo x' & } >"$T/shell.out" 2>"$T/shell.err"
shell_pid=$!

# ---- scripts ----
one 127.0.0.1 exec 'printf "%s|" "$@"; echo err >&2; exit 3' "a  b" "it's" '$HOME' '' $'two\nlines' '!x\n' >"$T/out" 2>"$T/err"
is "$? $(cat "$T/err")" "0 status 3" "the script's status is not the operation's"
is "$(cat "$T/out")" "a  b|it's|\$HOME||two
lines|!x\\n|err" "arguments come as they are; stderr is in the one stream"
head -c 20000000 /dev/zero | openssl enc -aes-128-ctr -nosalt -K 00112233445566778899aabbccddeeff -iv 00000000000000000000000000000000 >"$T/file"
is "$(one input="$T/file" 127.0.0.1 exec 'head -c 20000000 | sha256sum | cut -c1-64' 2>"$T/err")" "$(sha256sum <"$T/file" | cut -c1-64)" "20 MB of input"
head -c 10000000 "$T/file" >"$T/ten"
one 127.0.0.1 exec 'cat "$1"' "$T/ten" >"$T/got" 2>"$T/err"
succeeds "10 MB of output, byte for byte" cmp -s "$T/got" "$T/ten"
one input="$T/ten" 127.0.0.1 exec 'head -c 10000000' >"$T/got" 2>"$T/err"
succeeds "10 MB through both ways at once" cmp -s "$T/got" "$T/ten"
warns 0 '^status 4$' "input that the script does not read" one input="$T/file" 127.0.0.1 exec 'exit 4'
is "$(one 127.0.0.1 exec 'echo a; exec sh -c "echo b"' 2>&1)" "a
b
status 0" "a script may become another program"
like "$(one 127.0.0.1 exec 'kill -9 $(exec sh -c "echo \$PPID")' 2>&1)" '^status 137$' "a script that a signal ends"
gives 6 'the shell of a script was ended from outside \(signal KILL\)' "its shell is killed" 127.0.0.1 exec 'kill -9 $$; sleep 1'
exits 0 "what a script leaves behind is not waited for" one deadline_ms=300000 127.0.0.1 exec 'sleep 600 & echo $!; echo done'
kill "$(head -n 1 "$T/out")"
gives 6 'a script printed more than' "output past its cap" collected=1 127.0.0.1 exec 'head -c 80000000 /dev/zero'
one 127.0.0.1 steps 20 'echo x' >"$T/out" 2>"$T/err"
is "$(grep -c x "$T/out") $(grep -c 'status 0' "$T/err")" "20 20" "twenty scripts on one connection"

# ---- keys ----
ssh-keygen -q -t ecdsa -N '' -f "$T/ssh/ec"
ssh-keygen -q -t rsa -b 2048 -N '' -f "$T/ssh/rsa"
ssh-keygen -q -t ed25519 -N 'open sesame' -C locked -f "$T/ssh/locked"
ssh-keygen -q -t ed25519 -N '' -f "$T/ssh/stranger"
cat "$T/ssh/ec.pub" "$T/ssh/rsa.pub" "$T/ssh/locked.pub" >>"$T/ssh/authorized_keys"
key_config() { sed "s|^    IdentityFile .*|    IdentityFile $1|" "$T/ssh/config" >"$T/ssh/other" && config="$T/ssh/other"; }
key_config "$T/ssh/ec"
exits 0 "an ecdsa key" one 127.0.0.1 exec true
ssh-keygen -q -t ecdsa -m PEM -N '' -f "$T/ssh/pem" && cat "$T/ssh/pem.pub" >>"$T/ssh/authorized_keys"
key_config "$T/ssh/pem"
exits 0 "an ecdsa key in PEM" one 127.0.0.1 exec true
key_config "$T/ssh/stranger"
gives 5 'not let in: .*/stranger: refused by the server' "a key that the server refuses" 127.0.0.1 exec true
key_config "$T/ssh/rsa"
one 127.0.0.1 exec true >"$T/out" 2>"$T/err"
case "$?" in
0) ok 0 "an RSA key, with a libssh2 that has SHA-2 for it" ;;
*) like "$(cat "$T/err")" '^auth: .*/rsa: an RSA key, .*SHA-1.*1\.11.*ed25519' "an RSA key is reported by name" ;;
esac
key_config "$T/ssh/nothing"
gives 5 '/nothing: not there' "a key file that is not there" 127.0.0.1 exec true
cp "$T/ssh/id" "$T/ssh/open" && chmod 644 "$T/ssh/open"
key_config "$T/ssh/open"
gives 5 'its mode is 644' "a key that others may read" 127.0.0.1 exec true
echo nonsense >"$T/ssh/junk" && chmod 600 "$T/ssh/junk"
key_config "$T/ssh/junk"
gives 5 'junk: not a private key' "a file that is no key" 127.0.0.1 exec true
key_config "$T/ssh/locked"
gives 5 'locked: encrypted: add it to an agent' "an encrypted key without an agent" 127.0.0.1 exec true
eval "$(ssh-agent -s -a "$T/ssh/agent")" >"$T/out"
agent_pid=$SSH_AGENT_PID
export SSH_AUTH_SOCK
printf '#!/bin/sh\necho open sesame\n' >"$T/passphrase" && chmod 700 "$T/passphrase"
SSH_ASKPASS="$T/passphrase" SSH_ASKPASS_REQUIRE=force ssh-add -q "$T/ssh/locked" >"$T/out" 2>&1
sed "s|IdentityAgent none|IdentityFile $T/ssh/locked|" "$T/ssh/config" | sed "0,/IdentityFile/{/IdentityFile.*id$/d}" >"$T/ssh/other"
config="$T/ssh/other"
exits 0 "an encrypted key that the agent holds" one 127.0.0.1 exec true
with 'IdentitiesOnly yes' "IdentityFile $T/ssh/stranger"
sed -i '/IdentityAgent none/d; /ssh\/id$/d' "$T/ssh/other"
gives 5 'stranger: refused' "IdentitiesOnly keeps the agent's others out" 127.0.0.1 exec true
kill -STOP "$agent_pid"
cp "$T/ssh/other" "$T/ssh/agents"
config="$T/ssh/agents"
{ late connect_ms=600000 outage_ms=100 127.0.0.1 exec true & } >"$T/agent.out" 2>"$T/agent.err"
silent_pid=$!
unset SSH_AUTH_SOCK
common

# ---- host keys ----
gives 5 'its host key is not in .*ssh-keyscan' "a host that is not known" port="${ssh_port[b]}" localhost exec true
cp "$T/ssh/known_hosts" "$T/ssh/known"
known() { sed "s|known_hosts$|known|" "$T/ssh/config" >"$T/ssh/other" && config="$T/ssh/other"; }
known
echo "[127.0.0.1]:${ssh_port[a]} $(cut -d' ' -f1,2 "$T/ssh/stranger.pub")" >"$T/ssh/known"
gives 5 "host key has CHANGED.*/ssh/known:1 " "a host key that changed stops everything" 127.0.0.1 exec true
ssh-keygen -q -t ecdsa -N '' -f "$T/ssh/otherhost"
echo "[127.0.0.1]:${ssh_port[a]} $(cut -d' ' -f1,2 "$T/ssh/otherhost.pub")" >"$T/ssh/known"
gives 5 "host key has CHANGED" "so does one of another type" 127.0.0.1 exec true
echo "[127.0.0.1]:${ssh_port[a]} $(cut -d' ' -f1,2 "$T/ssh/rsa.pub")" >"$T/ssh/known"
one 127.0.0.1 exec true >"$T/out" 2>"$T/err"
like "$? $(cat "$T/err")" '^5 (auth.*only an RSA host key|integrity.*CHANGED)' "an RSA host key alone"
echo "127.0.0.1 $(cut -d' ' -f1,2 "$T/sshd-a/host.pub")" >"$T/ssh/known"
exits 0 "an entry without the port, of the same key" one 127.0.0.1 exec true
echo "127.0.0.1 $(cut -d' ' -f1,2 "$T/ssh/stranger.pub")" >"$T/ssh/known"
gives 5 'is not in' "an entry without the port, of another key, says nothing" 127.0.0.1 exec true
cp "$T/ssh/known_hosts" "$T/ssh/known" && ssh-keygen -q -H -f "$T/ssh/known" >"$T/out" 2>&1
like "$(cat "$T/ssh/known")" '^\|1\|' "hashed names"
exits 0 "a hashed known_hosts" one 127.0.0.1 exec true
echo "@revoked * $(cut -d' ' -f1,2 "$T/sshd-a/host.pub")" >>"$T/ssh/known"
gives 5 'is revoked by .*known:' "a revoked host key" 127.0.0.1 exec true
rm "$T/ssh/known"
with 'StrictHostKeyChecking accept-new' "UserKnownHostsFile $T/ssh/sub/known"
exits 0 "accept-new takes an unknown host" one 127.0.0.1 exec true
is "$(cut -d' ' -f1 "$T/ssh/sub/known")" "[127.0.0.1]:${ssh_port[a]}" "and writes it down"
exits 0 "and knows it then" one 127.0.0.1 exec true
is "$(wc -l <"$T/ssh/sub/known")" 1 "without writing it twice"
cp "$T/ssh/other" "$T/ssh/hashing" && sed -i '1i HashKnownHosts yes' "$T/ssh/hashing" && sed -i "s|sub/known|sub/hashed|" "$T/ssh/hashing"
exits 0 "accept-new with HashKnownHosts" "$B/servers/remote_one" config="$T/ssh/hashing" port="${ssh_port[a]}" 127.0.0.1 exec true
like "$(cat "$T/ssh/sub/hashed")" '^\|1\|' "the name is hashed"
is "$(ssh-keygen -F "[127.0.0.1]:${ssh_port[a]}" -f "$T/ssh/sub/hashed" | grep -c ed25519)" 1 "as ssh itself finds it"
sed -i "s|ssh-ed25519 .*|$(cut -d' ' -f1,2 "$T/ssh/stranger.pub")|" "$T/ssh/sub/known"
gives 5 'CHANGED' "accept-new does not take a changed one" 127.0.0.1 exec true
ssh-keygen -q -t ecdsa -N '' -f "$T/sshd-two-ec"
start_sshd two "HostKey $T/sshd-two-ec" || exit 1
known
echo "[127.0.0.1]:${ssh_port[two]} $(cut -d' ' -f1,2 "$T/sshd-two-ec.pub")" >"$T/ssh/known"
exits 0 "the key that is known is asked for" one port="${ssh_port[two]}" 127.0.0.1 exec true
common

# ---- config ----
with 'Host node1' 'HostName 127.0.0.1' "Port ${ssh_port[b]}"
exits 0 "a name of the config" "$B/servers/remote_one" config="$config" node1 exec true
REPERF_SSH_CONFIG="$config" "$B/servers/remote_one" node1 exec true 2>"$T/err"
ok $? "REPERF_SSH_CONFIG"
with 'Match originalhost node2 exec "true"' 'HostName 127.0.0.1' "Port ${ssh_port[b]}"
exits 0 "what a Match exec says" "$B/servers/remote_one" config="$config" node2 exec true
cp "$T/ssh/id" "$T/ssh/$ssh_user-127.0.0.1" # the name of a key file comes as it is written
key_config "$T/ssh/%u-%h"
exits 0 "a key file that is named by tokens" one 127.0.0.1 exec true
key_config "$T/ssh/%Z"
gives 3 'identityfile: .*%Z: what stands before' "an unknown token" 127.0.0.1 exec true
with 'Nonsense 1'
gives 3 'other: line 1: Bad configuration option: nonsense' "ssh's own words about a config that it cannot read" 127.0.0.1 exec true
with 'ProxyCommand nc %h %p'
gives 3 'proxycommand: "nc %h %p" is not supported; use ProxyJump' "what cannot be honoured is reported" 127.0.0.1 exec true
with 'StrictHostKeyChecking no'
gives 3 'StrictHostKeyChecking no is refused' "a host that is not to be checked" 127.0.0.1 exec true
with 'UserKnownHostsFile "/a b"'
gives 3 'known_hosts file "/a b": expected absolute paths without blanks' "a known_hosts file with a blank in its name" 127.0.0.1 exec true
common
gives 2 'neither a host nor a user begins with' "a host that ssh would take for an option" -oProxyCommand=true exec true
mkdir "$T/nossh" "$T/badssh"
PATH="$T/nossh" exits 6 "no ssh" one 127.0.0.1 exec true
like "$(cat "$T/err")" 'ssh is not here.*install openssh-client' "no ssh: the package is named"
printf '#!/bin/sh\nexec yes hostname\n' >"$T/badssh/ssh" && chmod 700 "$T/badssh/ssh"
PATH="$T/badssh:$PATH" gives 3 'ssh -G printed more than' "an ssh that does not end its answer" 127.0.0.1 exec true
printf '#!/bin/sh\n: >"%s/asked"\nexec sleep 600\n' "$T" >"$T/badssh/ssh"
{ PATH="$T/badssh:$PATH" CLOCK="$T/later" at_clock remote_one "$B/servers/remote_one" config="$config" 127.0.0.1 exec true & } >"$T/out" 2>"$T/err"
asking_pid=$!
waiting_for 120 test -e "$T/asked"
echo 61+ >"$T/later"
wait $asking_pid
is $? 6 "an ssh that does not answer"
like "$(cat "$T/err")" 'ssh -G did not end within 60 s' "an ssh that does not answer: is said"
common
gives 6 'nowhere\.invalid.*name: ' "an unknown name" outage_ms=1000 nowhere.invalid exec true

# ---- jumps ----
start_sshd gone || exit 1
kill_sshd gone
with 'Host inner' 'HostName 127.0.0.1' "Port ${ssh_port[a]}" 'ProxyJump middle' \
    'Host middle' 'HostName 127.0.0.1' "Port ${ssh_port[b]}" 'ProxyJump outer' \
    'Host outer' 'HostName 127.0.0.1' "Port ${ssh_port[two]}" \
    'Host lone' 'HostName 127.0.0.1' "Port ${ssh_port[gone]}" 'ProxyJump outer' \
    'Host round' 'ProxyJump back' 'Host back' 'ProxyJump round'
inner() { "$B/servers/remote_one" config="$config" outage_ms=1000 "$@"; } # of attempts, which have five minutes each
: >"$T/sshd-b/log"
inner inner exec 'cat "$1"' "$T/ten" >"$T/got" 2>"$T/err"
succeeds "10 MB from a node behind two jumps" cmp -s "$T/got" "$T/ten"
is "$(grep -c 'Accepted publickey' "$T/sshd-b/log")" 1 "which went through them"
is "$(inner input="$T/ten" inner exec 'head -c 10000000 | sha256sum | cut -c1-64' 2>"$T/err")" "$(sha256sum <"$T/ten" | cut -c1-64)" "10 MB to it"
fails 6 ":${ssh_port[gone]}: by way of outer: .*[Cc]onnection refused" "a node that its jump host cannot reach" inner lone exec true
exits 2 "a jump that goes in a circle" inner round exec true
sed "s|known_hosts$|known|" "$config" >"$T/ssh/other2"
grep -v ":${ssh_port[b]}\]* " "$T/ssh/known_hosts" >"$T/ssh/known"
echo "[127.0.0.1]:${ssh_port[b]} $(cut -d' ' -f1,2 "$T/ssh/stranger.pub")" >>"$T/ssh/known"
config="$T/ssh/other2"
exits 5 "a jump host whose key changed" inner inner exec true
common

# ---- login shells ----
printf 'echo "welcome to the node"; printf "no line end"; echo oops >&2\n' >"$T/home/.bashrc"
is "$(one 127.0.0.1 exec 'echo clean' 2>&1)" "clean
status 0" "a login shell that prints: of that nothing is output"
# The server reads stdout and stderr in an order of its own: what a login shell writes to the latter may come when the script has begun.
echo '(until [ -e "$HOME/begun" ]; do sleep 0.02; done; echo "late noise" >&2; : >"$HOME/noisy") &' >"$T/home/.bashrc"
is "$(one 127.0.0.1 exec ': >"$HOME/begun"; until [ -e "$HOME/noisy" ]; do sleep 0.02; done; sleep 0.5; echo clean' 2>&1)" "clean
status 0" "noise of a login shell that comes late"
echo 'echo bye; exit 0' >"$T/home/.bashrc"
gives 6 'login shell ended \(status 0\) before the script began.*it printed: bye' "a login shell that exits well" 127.0.0.1 exec 'echo x'
rm "$T/home/.bashrc"
for weak in 'KexAlgorithms diffie-hellman-group1-sha1,diffie-hellman-group14-sha1,diffie-hellman-group-exchange-sha1' \
    'MACs hmac-md5,hmac-md5-96,hmac-sha1-96' 'Ciphers 3des-cbc,aes128-cbc'; do
    kind=${weak%% *}
    start_sshd "$kind" "$weak" || exit 1
    gives 6 'nothing in common with the server: expected a key exchange with SHA-2' "a server with $weak is refused" port="${ssh_port[$kind]}" 127.0.0.1 exec true
    kill_sshd "$kind"
done
echo 'A long banner for all who enter' >"$T/banner"
for shell in fish zsh dash csh; do
    if ! command -v "$shell" >/dev/null; then
        skip "login shell $shell" "$shell is not here"
        continue
    fi
    # shellcheck disable=SC2016
    start_sshd "$shell" "ForceCommand exec $(command -v "$shell") -c \"\$SSH_ORIGINAL_COMMAND\"" "Banner $T/banner" || exit 1
    is "$(one port="${ssh_port[$shell]}" 127.0.0.1 exec 'printf "%s|" "$@" | cat' 'a!b\' "it's \$1 \\n" 2>&1)" 'a!b\|it'"'"'s $1 \n|status 0' "login shell $shell, and a banner"
done

# ---- what the deadlines did ----
served "$script_pid" "a script" test -e "$T/begun"
served "$shell_pid" "a login shell" test -e "$T/dozing/begun"
ahead=0 n_asked=1 # the socket that listens; each attempt at the agent adds one that it does not take
while kill -0 "$silent_pid" 2>/dev/null; do
    if [ "$(grep -c " $T/ssh/agent\$" /proc/net/unix)" -gt "$n_asked" ]; then
        n_asked=$((n_asked + 1)) ahead=$((ahead + 600))
        echo $ahead+ >"$T/late"
    fi
    sleep 0.3
done
wait "$script_pid"
is $? 124 "a script's deadline"
like "$(cat "$T/script.err")" 'a script did not end within 600 s' "is said"
wait "$shell_pid"
is $? 124 "that of a login shell that sleeps"
like "$(cat "$T/shell.err")" 'login shell did not begin the script within 600 s.*dozing' "is said, with what it printed"
wait "$silent_pid"
is $? 6 "an agent that does not answer"
like "$(cat "$T/agent.err")" 'the agent gave no answer within 600 s' "is reported"
tap_done
