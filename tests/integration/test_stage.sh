#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: fleet
# `nodes copy` over real sshds: passed on, damaged, interrupted; a relay against a peer without the token.
# shellcheck disable=SC2317
# In a network of its own where possible: there a line can be made slow (tc on lo).
if [ -z "${STAGE_NETWORK-}" ] && [ "$(id -u)" = 0 ] && unshare -n tc qdisc show >/dev/null 2>&1; then
    STAGE_NETWORK=own exec unshare -n "$0" "$@"
fi
. "$(dirname "$0")/../tap_lib.sh"
. tests/integration/nodes_lib.sh
have_sshd "staging onto nodes" || tap_done
[ -z "${STAGE_NETWORK-}" ] || ip link set lo up
nodes_start && start_sshd n4 || exit 1
nodes_inventory n1 n2 n3 n4 >"$INV4"
copy() { "$REPERF" nodes copy "$INV4" --json "$@"; }
value() { jq -r "$1" "$T/out"; }
same() { # NAME: the tree is on all nodes, byte for byte
    local node bad=0
    for node in n1 n2 n3 n4; do diff -r "$T/tree" "$T/work-$node/files/tree" >&2 || bad=1; done
    ok "$bad" "$1"
}
left() { find "$T"/work-*/files -name 'reperf-tmp-*' | wc -l; }

mkdir -p "$T/tree/a/b"
head -c 30000000 /dev/urandom >"$T/tree/a/big"
for i in {1..200}; do head -c $((i * 37)) /dev/urandom >"$T/tree/a/b/f $i"; done
: >"$T/tree/empty"
printf '#!/bin/sh\necho runs\n' >"$T/tree/tool"
chmod +x "$T/tree/tool"

documents nodes-copy-output 0 "a folder onto four nodes" copy "$T/tree"
same "is there on all of them"
is "$(value '[.nodes[].way] | unique | join(" ")')" chain "each was served by the chain"
is "$(value '.head_bytes == .total_bytes')" true "this machine sent it once"
is "$(stat -c %a "$T/work-n4/files/tree/tool" "$T/work-n4/files/tree/empty" | xargs)" "755 644" "with its modes"
is "$(left)" 0 "and nothing else lies there"
exits 0 "again" copy "$T/tree"
is "$(value '[.head_bytes, (.nodes[] | .way, .bytes_sent, .bytes_there == 0)] | map(tostring) | unique | join(" ")')" "0 false nothing" "nothing is sent"
printf 'damaged!' | dd of="$T/work-n3/files/tree/a/big" bs=1 seek=20000000 conv=notrunc status=none
rm "$T/work-n2/files/tree/a/b/f 9"
exits 0 "after damage on two nodes" copy "$T/tree"
same "all is right again"
is "$(value '[.nodes[].way] | join(" ")')" "nothing chain chain nothing" "only those two got anything"
is "$(value .head_bytes)" $((30000000 + 9 * 37)) "and only what they lacked"
prints 0 '^n1 +passed on ' "for people" "$REPERF" nodes copy "$INV4" "$T/tree/tool" --to "$T/elsewhere"
is "$("$T/elsewhere/tool")" runs "an absolute folder"
# All four nodes are this machine: their relays meet in one folder, as on a file system that nobody knew to be shared.
met=0
for i in {1..8}; do
    if ! "$REPERF" nodes copy "$INV4" "$T/tree/a/b" --to "$T/met-$i" >"$T/meet" 2>&1 || ! diff -r "$T/tree/a/b" "$T/met-$i/b" >>"$T/meet"; then
        met=1
        sed 's/^/# /' "$T/meet"
    fi
done
ok "$met" "relays that meet in one folder do not get into each other's way"
is "$(find "$T"/met-* -name 'reperf-tmp-*' | wc -l)" 0 "and leave nothing"

# --- failures ---------------------------------------------------------------------------------------
exits 2 "a folder with .." "$REPERF" nodes copy "$INV4:n[1-2]" "$T/tree" --to "$T/none/../x"
exits 2 "no files" "$REPERF" nodes copy "$INV4"
exits 2 "an invalid name" "$REPERF" nodes copy "$INV4" "$T/tree/.."
ssh_port_saved=${ssh_port[n2]} && kill_sshd n2
exits 6 "one node is down" copy "$T/tree/a/big" --to files/down
is "$(value '[.nodes[] | .way // .error.code] | join(" ")')" "chain node chain chain" "the others have it, and that one is named"
succeeds "byte for byte" cmp "$T/tree/a/big" "$T/work-n4/files/down/big"
ssh_port[n2]=$ssh_port_saved
start_sshd n2
if [ "$(id -u)" = 0 ] && mounted="$T/work-n3/small" && mkdir -p "$mounted" && mount -t tmpfs -o size=8m none "$mounted" 2>/dev/null; then
    exits 10 "no room on one node" copy "$T/tree/a/big" --to small
    is "$(value '[.nodes[] | .way // .error.code] | join(" ")')" "chain chain disk chain" "the others have it"
    like "$(value '.nodes[2].error.message')" 'work-n3/small needs 30000000 bytes more on its disk, and 8[0-9]+ are free' "what is needed and what is free"
    umount "$mounted"
else
    skip "no room on one node" "a small file system needs root and mount(8)"
fi
mounted=

# --- streams that are broken ------------------------------------------------------------------------
# 48 MB through a chain of four, all of it through this lo: 192 MB, at first at 5 MB/s, so that nothing is over before the fault; then as fast as it goes.
line() { tc qdisc replace dev lo root tbf rate "$1" burst 1m latency 100ms 2>/dev/null; } # RATE
slow_file() { head -c 48000000 /dev/zero | tr '\0' "$1" >"$T/slow"; }
relays() { pgrep -f "^$T/work-$1/bin/reperf-node-[0-9a-f]* relay "; }
has_part() { [ -n "$(find "$T/work-$1/files" -path '*reperf-tmp-*' -type f -size +2M 2>/dev/null)" ]; }
gone() { ! relays "$1" >/dev/null; }
begin_slow() { # LETTER NODE: a copy that has come to that node, and is not over: $pid
    slow_file "$1"
    line 40mbit
    { "$REPERF" nodes copy "$INV4" --json "$T/slow" & } >"$T/out" 2>"$T/err"
    pid=$!
    served "$pid" "something comes to $2" has_part "$2"
}
if [ -n "${STAGE_NETWORK-}" ] && line 40mbit; then
    begin_slow a n4
    kill -9 "$(relays n2)"
    line 5gbit
    wait "$pid"
    is "$?" 6 "a relay killed in the middle of the chain"
    is "$(value '[.nodes[] | .way // .error.code] | join(" ")')" "chain node ssh ssh" "is reported, and those behind it get the rest by SSH"
    cmp "$T/slow" "$T/work-n4/files/slow" && cmp "$T/slow" "$T/work-n3/files/slow"
    ok $? "byte for byte"
    leaves 0 left 0 "the next time it gets it, too, and what the relay that was killed had begun is gone" copy "$T/slow"
    begin_slow b n4
    kill -9 "$pid"
    wait "$pid" 2>/dev/null
    line 5gbit
    waiting_for 120 gone n1 && waiting_for 120 gone n4
    ok $? "an orchestrator that was killed leaves no relay behind"
    exits 0 "the same again" copy "$T/slow"
    cmp "$T/slow" "$T/work-n1/files/slow" && cmp "$T/slow" "$T/work-n4/files/slow"
    ok $? "is all there"
    begin_slow c n3
    kill -TERM "$pid" # what ^C is, too; bash keeps INT from its background jobs
    wait "$pid"
    is "$?" 143 "TERM"
    line 5gbit
    waiting_for 120 gone n1 && waiting_for 120 gone n3
    ok $? "ends the relays"
    begin_slow d n4
    pkill -9 -P "${ssh_pid[n2]}"
    line 5gbit
    wait "$pid"
    is "$?" 0 "a broken connection to a node is restored"
    succeeds "and all is there" cmp "$T/slow" "$T/work-n2/files/slow"
    is "$(left)" 0 "and nothing else lies on any node"
    tc qdisc del dev lo root
else
    skip "streams that are broken" "a slow line needs root, unshare and tc with tbf"
fi

# --- nodes with faults -----------------------------------------------------------
# A work folder that does not allow execution: reperf-node goes elsewhere, and the result is as on the others.
mounted="$T/work-n1"
if [ "$(id -u)" = 0 ] && mv "$mounted" "$T/work-n1.was" && mkdir "$mounted" && mount -t tmpfs -o noexec none "$mounted" 2>/dev/null; then
    exits 0 "a node whose work folder lets nothing run" copy "$T/tree/tool" --to files/plain
    is "$(value '[.nodes[] | .way] | join(" ")')" "chain chain chain chain" "is served like the others"
    succeeds "and rightly" cmp "$T/tree/tool" "$T/work-n1/files/plain/tool"
    umount "$mounted"
else
    skip "a node whose work folder lets nothing run" "a file system without programs needs root and mount(8)"
fi
mounted=
kill_sshd n1
mkdir "$T/tools"
for tool in sh cat mkdir chmod mv rm; do ln -s "$(command -v $tool)" "$T/tools/"; done
# shellcheck disable=SC2016
printf '#!/bin/sh\nPATH=%s exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n' "$T/tools" >"$T/shell"
chmod +x "$T/shell"
start_sshd n1 "ForceCommand $T/shell"
exits 6 "a node that can hash nothing" copy "$T/tree/tool" --to files/unchecked
like "$(value '.nodes[0].error.message')" 'nothing that computes SHA-256' "is refused"
ok "$([ ! -e "$T/work-n1/files/unchecked" ]; echo $?)" "and gets nothing"

# --- nodes provision: the same for what runs need ---------------------------------------------------
kill_sshd n1
start_sshd n1
provision() { "$REPERF" nodes provision --json "$INV4:n[2-4]" "$@"; }
mkdir -p "$T/packed"
head -c 3000000 /dev/urandom >"$T/packed/00000.shard"
printf '{"schema_version":1,"dataset":"cityscapes","synthetic":true,"kind":"segments","split":"train","n_samples":4,"source_sha256":"%s","shards":[]}' \
    "$(printf '%064d' 5)" >"$T/packed/pack.json"
documents provision-output 0 "data" provision --data "$T/packed/"
exits 0 "again" provision --data "$T/packed/"
is "$(value '[.files.nodes[] | .paths[0]] | unique | join(" ")')" "$T/packed" "on a file system that is shared it is used where it is"
is "$(find "$T/packed" -name '.*' -type f | wc -l)" 0 "no mark is left"
printf X | dd of="$T/packed/pack.json" bs=1 seek=20 conv=notrunc status=none
exits 2 "nothing" provision

# --- a relay alone: peers without the token, hostile orders and streams -----------------------------------------
token=$(printf '%064d' 7)
hex=$(sha256sum "$T/tree/tool" | cut -c1-64)
size=$(stat -c %s "$T/tree/tool")
printf '%s\n' "$token" 0 1 1 1 "$T/hostile" '' 1 "$size" - "$hex" tool >"$T/fields"
tr '\n' '\0' <"$T/fields" >"$T/order"
order() { printf 'reperf-relay 3 %012d\n' "$(stat -c %s "$1")" && cat "$1"; } # FILE
relay() { "$B/reperf-node" relay "$T/work-relay"; }
mkfifo "$T/answers" "$T/questions"
exec 7<>"$T/answers" 9<>"$T/questions"
"$B/reperf-node" relay "$T/work-relay" <"$T/questions" >"$T/answers" 2>/dev/null &
relay=$!
order "$T/order" >&9
echo last >&9
port=
while IFS= read -r -t 120 line <&7; do
    [[ $line =~ ^ready\ ([0-9]+) ]] && port=${BASH_REMATCH[1]} && break
done
ok "$([ -n "$port" ]; echo $?)" "a relay listens"
for talk in "$(printf '%0200d' 0)" 'GET / HTTP/1.0' "$(head -c 96 /dev/urandom | base64)"; do
    exec 8<>"/dev/tcp/127.0.0.1/$port"
    (printf "%s\n" "$talk" >&8) 2>/dev/null
    is "$(timeout 120 cat <&8 2>/dev/null | head -c 4096 | wc -c)" 0 "a peer that does not know the token is turned away without a word"
    exec 8>&-
done
succeeds "the relay lives" kill -0 "$relay"
is "$(find "$T/hostile" -type f 2>/dev/null | wc -l)" 0 "and has written nothing"
kill "$relay"
wait "$relay" 2>/dev/null
for bad in 's/^tool$/..\/tool/' 's/^tool$/\/etc\/x/' "s/^$size\$/99999999999999999999/" '1s/.*/00/' '6,7d'; do
    sed "$bad" "$T/fields" | tr '\n' '\0' >"$T/bad-order"
    order "$T/bad-order" >"$T/bad-input"
    exits 9 "an order with $bad" relay <"$T/bad-input"
done
number() { printf '%b' "$(printf '\\x%02x\\0\\0\\0\\0\\0\\0\\0' "$1")"; } # N, below 256: of the order
end() { printf '\377\377\377\377\377\377\377\377'; }
stream() { order "$T/order" && echo stream && "$@"; } >"$T/input"
whole() { number 0 && cat "$T/tree/tool" && end; }
unordered() { number 1 && cat "$T/tree/tool" && end; }
cut_off() { whole | head -c -1; }
goes_on() { whole && echo more; }
empty() { end; }
damaged() { number 0 && tr r R <"$T/tree/tool" && end; }
for bad in unordered cut_off empty damaged; do
    stream "$bad"
    exits "$([ "$bad" = damaged ] && echo 5 || echo 4)" "a stream that is $bad" relay <"$T/input"
    [ "$bad" = cut_off ] || is "$(find "$T/hostile" -type f 2>/dev/null | wc -l)" 0 "leaves nothing"
    rm -rf "$T/hostile"
done
stream goes_on
exits 4 "a stream that goes on after its end" relay <"$T/input"
rm -rf "$T/hostile"
stream whole
exits 0 "a whole stream" relay <"$T/input"
succeeds "is the file" cmp "$T/tree/tool" "$T/hostile/tool"
tap_done
