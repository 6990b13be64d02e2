#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A file of 1 GB from the head to four nodes of the test cluster, each and the head on a link of 1 Gbit, against sending it once: curl on
# one node from the head's web server. Every node has the file, by its SHA-256, before ours ends; curl checks nothing. Ours may take a quarter
# longer than one copy. Needs root.
. "$(dirname "$0")/../cluster/lib.sh"
# shellcheck source=tests/bench/bench_lib.sh
. tests/bench/bench_lib.sh
: "${MB:=1000}" "${RATE:=1gbit}"
link_rate() { # COMMAND...: of tc, where the link's end is
    "$@" tc qdisc replace dev "$LINK" root tbf rate "$RATE" burst 1m latency 50ms
}
for node in $CLUSTER_NODES; do
    LINK="v$node" link_rate in_switch && LINK=eth0 link_rate node_do "$node" && node_disk "$node" $((MB + 200))m || exit 1
done
LINK="head" link_rate in_switch && LINK=$HEAD_LINK link_rate || exit 1
mkdir -p "$S/http/bench"
trap 'tc qdisc del dev "$HEAD_LINK" root; in_switch tc qdisc del dev head root; rm -rf "$S/http/bench" "$T"; for node in $CLUSTER_NODES; do node_no_rate "$node"; node_disk_end "$node"; done' EXIT
head -c "${MB}000000" /dev/zero | openssl enc -aes-128-ctr -nosalt -K 00112233445566778899aabbccddeeff -iv 00000000000000000000000000000000 >"$S/http/bench/file"
sum=$(sha256sum <"$S/http/bench/file")
all="'$REPERF' nodes exec '$S/inventory-none.json' --"
pair "$MB MB to four nodes : to one by curl, $RATE" 1.25 \
    "$all rm -rf /var/lib/reperf/files/file /var/lib/reperf/once && '$REPERF' nodes copy --json '$S/inventory-none.json' '$S/http/bench/file' >'$T/report'" \
    "$all rm -rf /var/lib/reperf/files/file /var/lib/reperf/once && ssh -F '$S/ssh_config' node1 curl -sSf -o /var/lib/reperf/once http://$HEAD_IP/bench/file"
"$REPERF" nodes exec "$S/inventory-none.json" -- rm -rf /var/lib/reperf/once && "$REPERF" nodes copy "$S/inventory-none.json" "$S/http/bench/file" >/dev/null || exit 1
for node in $CLUSTER_NODES; do
    [ "$(node_ssh "$node" 'sha256sum </var/lib/reperf/files/file')" = "$sum" ] || { echo "bench: node$node has another file" >&2; exit 1; }
done
echo "sent by the head: $(jq .head_bytes "$T/report") bytes for $(jq .total_bytes "$T/report"), ways: $(jq -r '[.nodes[].way] | join(" ")' "$T/report")"
