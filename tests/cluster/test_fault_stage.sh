#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: fleet
# `nodes copy` to four nodes over slow links: a link between two nodes that breaks, a node that goes, a disk that fills up, wrong bytes on a
# disk, an orchestrator that is killed.
# shellcheck source=tests/cluster/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
cluster_reset || exit 1
N="$S/inventory-none.json"
copy() { timeout 400 "$REPERF" nodes copy "$N" --json "$@" >"$T/out" 2>"$T/err"; }
ways() { jq -r '[.nodes[] | .way // .error.code] | join(" ")' "$T/out"; }
file() { head -c 20000000 /dev/urandom >"$T/$1"; }
have() { # FILE NODE...: these have it, byte for byte
    local node bad=0 name=$1 sum
    sum=$(sha256sum <"$T/$name")
    shift
    for node in "$@"; do [ "$(node_ssh "$node" "sha256sum </var/lib/reperf/files/$name")" = "$sum" ] || bad=1; done
    ok "$bad" "$name is on node $* as it is here"
}
has_part() { node_do "$1" find /var/lib/reperf/files -path '*reperf-tmp-*' -type f -size +2M 2>/dev/null | grep -q .; } # NODE
begin() { # NAME NODE: a copy of a new file that has come to that node, and is not over: $pid
    file "$1"
    { "$REPERF" nodes copy "$N" --json "$T/$1" & } >"$T/out" 2>"$T/err"
    pid=$!
    served "$pid" "$1: something comes to node$2" has_part "$2"
}
end() { # STATUS WAYS TEXT
    wait "$pid"
    is "$?" "$1" "$3"
    is "$(ways)" "$2" "the nodes"
}
for i in $CLUSTER_NODES; do node_rate "$i" 40mbit; done

# Either silence takes the nodes a minute to notice.
if in_test_all "a link between two nodes that breaks"; then
    begin link 4
    node_do 2 iptables -A INPUT -s "$(node_ip 1)" -j DROP
    end 0 "chain ssh ssh ssh" "a link between two nodes breaks: from there on they are served by SSH"
    node_no_loss 2
    have link 1 2 3 4
fi

begin node 4
node_off 3
end 6 "chain chain node ssh" "a node goes: the others get everything"
have node 1 2 4
node_on 3
node_rate 3 40mbit
exits 0 "back, it gets it, too" copy "$T/node"
have node 3

node_disk 2 40m
begin disk 4
node_disk_fill 2
end 10 "chain disk ssh ssh" "a disk fills up meanwhile: status 10"
have disk 1 3 4
node_disk_end 2

node_do 3 /bin/bash -c 'printf damaged | dd of=/var/lib/reperf/files/disk bs=1 seek=15000000 conv=notrunc status=none'
leaves 0 ways "nothing chain chain nothing" "wrong bytes on a disk, and a node that lacks the file: seen, and sent again" copy "$T/disk"
have disk 1 2 3 4

begin head 4
kill -9 "$pid"
wait "$pid" 2>/dev/null
exits 0 "the orchestrator was killed: the same again" copy "$T/head"
have head 1 2 3 4
for i in $CLUSTER_NODES; do is "$(node_do "$i" find /var/lib/reperf/files -name 'reperf-tmp-*' | wc -l)" 0 "nothing else is left on node$i"; node_no_rate "$i"; done
tap_done
