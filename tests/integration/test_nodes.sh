#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: fleet
# `nodes exec` on this machine and over real sshds: output, statuses, nodes that fail, ^C.
. "$(dirname "$0")/../tap_lib.sh"
. tests/integration/nodes_lib.sh
# shellcheck source=tests/faults/lib.sh disable=SC1091
. tests/faults/lib.sh

# --- this machine -----------------------------------------------------------------------------------
exits 0 "one word is a line for the shell" "$REPERF" nodes exec local -- 'echo a; echo b >&2; printf c'
is "$(cat "$T/out")" $'local: a\nlocal: b\nlocal: c' "stdout and stderr, each line with the node's name, the last without its break too"
leaves 0 output "local: a  b|\$HOME|;|" "more words are taken as they are: unexpanded" "$REPERF" nodes exec local -- printf '%s|' 'a  b' "\$HOME" ';'
fails 3 'warning: local: exit status 3$' "the command's status is the status" "$REPERF" nodes exec local -- 'exit 3'
exits 124 "a command that takes too long" "$REPERF" nodes exec local --timeout 1 -- sleep 60
exits 2 "no command" "$REPERF" nodes exec local
exits 2 "a node that is not there" "$REPERF" nodes exec local --nodes n9 -- true
exits 2 "--gather and --json" "$REPERF" nodes exec local --gather --json -- true
is "$(SLURM_JOB_NODELIST='gpu[02,01]' "$REPERF" nodes list slurm --json | jq -r '.nodes[].name' | xargs)" "gpu02 gpu01" "slurm is SLURM_JOB_NODELIST, in its order"
exits 2 "slurm outside of an allocation" env -u SLURM_JOB_NODELIST "$REPERF" nodes list slurm
fails 2 'node set "@v100!node3", byte 1: "@" is not understood: expected names and ranges' "a set with ClusterShell's algebra" "$REPERF" nodes list 'v100-4x8:@v100!node3'
"$REPERF" nodes exec local -- 'seq 100000' >/dev/full 2>"$T/err"
is "$?" 10 "a full disk"
"$REPERF" nodes exec local -- 'seq 200000' >"$T/long"
is "$(sed 's/^local: //' "$T/long" | sha256sum)" "$(seq 200000 | sha256sum)" "200000 lines, all and in order"
exits 0 "a line of 100 kB" "$REPERF" nodes exec local -- 'head -c 100000 /dev/zero | tr "\0" x'
is "$(wc -c <"$T/out") $(wc -l <"$T/out")" "100016 2" "in two parts"
# shellcheck disable=SC2016
documents nodes-exec-output 0 "as JSON" "$REPERF" nodes exec local --json -- sh -c 'echo "$0"; exit 0' 'a "b"'
is "$(jq -r '.nodes[0].output, .argv[-1]' "$T/out")" $'a "b"\n\na "b"' "with its output and its words"
{ "$REPERF" nodes exec local -- 'echo begun; sleep 60' & } >"$T/out" 2>"$T/err"
pid=$!
served "$pid" "the command" grep -q begun "$T/out"
kill -TERM "$pid"
wait "$pid"
is "$?" 143 "TERM ends it with 128 + 15"
like "$(cat "$T/out")" '^local: begun$' "a line is there as soon as it is whole"

# --- nodes over SSH ---------------------------------------------------------------------------------
if have_sshd "nodes over SSH"; then
    nodes_start || exit 1
    # Its time is over, by a clock that then goes on, once what it prints is there.
    port2=${ssh_port[n2]}
    { CLOCK="$T/clock" at_clock reperf "$REPERF" nodes exec "$INV:n[1-2]" --timeout 600 -- \
        "set -- \$SSH_CONNECTION; echo here; [ \$4 != $port2 ] || until [ -e '$T/go' ]; do sleep 0.1; done" & } >"$T/long.out" 2>"$T/long.err"
    long_pid=$!
    both_here() { [ "$(grep -c here "$T/long.out")" = 2 ]; }
    served "$long_pid" "the command on both" both_here
    echo 600 >"$T/clock"
    wait "$long_pid"
    is "$?" 124 "too long for one of them"
    is "$(sort "$T/long.out" | xargs)" "n1: here n2: here" "what it had printed is there"
    touch "$T/go"
    exits 0 "three nodes" "$REPERF" nodes exec "$INV" -- 'echo x; echo y'
    is "$(sort "$T/out" | xargs)" "n1: x n1: y n2: x n2: y n3: x n3: y" "each line of each"
    exits 0 "some of them" "$REPERF" nodes exec "$INV" -w 'n[1,3]' -- true
    leaves 0 output "n3: z" "or by the inventory's name: that node alone" "$REPERF" nodes exec "$INV:n3" -- 'echo z'
    leaves 0 output $'n[1,3]: same\nn2: same\nn2: other' "gathered: nodes that print the same are one" "$REPERF" nodes exec "$INV" -b -- "set -- \$SSH_CONNECTION; echo same; [ \$4 != $port2 ] || echo other"
    exits 7 "the highest status counts" "$REPERF" nodes exec "$INV" -- "set -- \$SSH_CONNECTION; [ \$4 != $port2 ] || exit 7; exit 3"
    is "$(sed 's/.*: \(n.*\)/\1/' "$T/err" | sort | xargs)" "n2: exit status 7 n[1,3]: exit status 3" "and which nodes had it is said"
    exits 6 "a node that does not answer" "$REPERF" nodes exec "$INV4" --timeout 300 -- 'echo here; exit 9'
    is "$(sort "$T/out" | xargs)" "n1: here n2: here n3: here" "does not keep the others from it"
    like "$(cat "$T/err")" 'error: n4: .*(refused|reach)' "and is named with the reason"
    documents nodes-exec-output 6 "the same as JSON" "$REPERF" nodes exec "$INV4" --json -- 'echo here; exit 9'
    is "$(jq -c '[.exit_status, (.nodes[] | [.node, .exit_status, .error.code])]' "$T/out")" \
        '[6,["n1",9,null],["n2",9,null],["n3",9,null],["n4",null,"node"]]' "every node is in the account"
    sed -i "s/^\[127.0.0.1\]:${ssh_port[n3]} .*/[127.0.0.1]:${ssh_port[n3]} $(cut -d' ' -f1,2 "$T/sshd-n1/host.pub" | sed 's/[&/]/\\&/g')/" "$T/ssh/known_hosts"
    exits 5 "a changed host key" "$REPERF" nodes exec "$INV" -- 'echo here'
    is "$(sort "$T/out" | xargs)" "n1: here n2: here" "the others answer"
    like "$(cat "$T/err")" 'error: n3: .*host key' "and it is said"
    exits 0 "one node at a time" "$REPERF" nodes exec "$INV:n[1-2]" --fanout 1 -- 'echo here'
    { "$REPERF" nodes exec "$INV:n1" -- 'echo begun; sleep 60' & } >"$T/out" 2>"$T/err"
    pid=$!
    served "$pid" "the command there" grep -q begun "$T/out"
    is "$(cat "$T/out")" "n1: begun" "a line is there as soon as it is whole"
    kill -TERM "$pid"
    wait "$pid"
    is "$?" 143 "TERM ends it"
fi
tap_done
