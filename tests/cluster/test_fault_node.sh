#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: fleet
# Nodes that are down, have another host key, refuse our key, have a login shell that prints or sleeps, or a full disk; two orchestrators on the same nodes.
# shellcheck source=tests/cluster/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cluster/fault_lib.sh
. "$(dirname "$0")/fault_lib.sh"
cluster_reset || exit 1
N="$S/inventory-none.json"

# --- before a step: each on a node of its own, at once
node_new_key 1
node_refuse_key 2
node_shell 3 'echo welcome; echo to this node >&2'
node_disk 4 300k
node_disk_fill 4
names=([1]=host-key [2]=key-refused [3]=shell-prints [4]=disk-full)
for i in 1 2 3 4; do
    world "${names[i]}" ''
    begin "${names[i]}" "$ONE" "$N:node$i"
done
finish host-key 5 "a changed host key: status 5"
says host-key 'node1.*host key|host key.*node1' "and what is said names node and key"
no_success host-key
is "$(count host-key begun)" 0 "host-key: nothing was started there"
node_old_key 1
take_up host-key 0 "resume, with the key that is known"
whole host-key 1
finish key-refused 5 "a refused key: status 5"
says key-refused 'node2' "and the node is named"
no_success key-refused
node_accept_key 2
take_up key-refused 0 "resume, with the key accepted"
whole key-refused 1
finish shell-prints 0 "a login shell that prints does no harm"
whole shell-prints 1
node_shell_plain 3
finish disk-full 10 "a full disk: status 10"
says disk-full 'node4.*(No space|disk|full)|(No space|disk|full).*node4' "and which node is said"
no_success disk-full
node_disk_end 4
take_up disk-full 0 "resume, with room"
whole disk-full 1
nothing_left "before a step" 1 2 3 4

# --- a disk that fills while the workload writes; a shell that sleeps; two orchestrators; a node that is down
node_disk 1 24m
node_shell 2 'sleep 1'
world disk-fills fills
world shell-sleeps ''
world first waits
world second waits
begin disk-fills "$ONE" "$N:node1" --repeats 1
begin shell-sleeps "$ONE" "$N:node2" --repeats 1
begin first "$ONE" "$N:node3"
waits_for_ranks first 1
begin second "$ONE" "$N:node3"
is_told() { grep -q "is held by run" "$T/second/err"; }
wait_for 240 is_told
ok $? "a second orchestrator is told who has the node"
is "$(count second begun)" 0 "and does not measure beside the first"
go first
finish first 0 "the first of two orchestrators ends as if alone"
whole first 1
waits_for_ranks second 1
go second
finish second 0 "then the second has the node"
whole second 1
finish disk-fills 10 "a disk that fills while the workload writes: status 10"
no_success disk-fills
node_disk_end 1
finish shell-sleeps 0 "a login shell that sleeps"
whole shell-sleeps 1 1
node_shell_plain 2
node_off 4
world off waits
gives_up_soon begin off "$FOUR" "$N" --deadline 60
finish off 6 "a node that is down before a step of four: status 6"
says off 'node4' "and the node is named"
no_success off
is "$(count off begun)" 0 "off: no rank was started"
node_on 4
go off
take_up off 0 "resume, with the node back"
whole off 4

# --- during a step of four, and after: the node goes before its log is collected
world during waits
gives_up_soon begin during "$FOUR" "$N"
waits_for_ranks during 4
node_off 2
finish during 6 "a node that goes down during a step of four: status 6"
says during 'node2' "and the node is named"
says during 'lease of run [^ ]* may be left on node2: ' "and that its lease could not be given back"
no_success during
nothing_runs "during" 1 3 4
node_on 2
go during
take_up during 0 "resume, with the node back"
whole during 4
world after waits
gives_up_soon begin after "$FOUR" "$N"
waits_for_ranks after 4
node_cut 3
go after
have_ended() { [ "$(count after ended)" -ge 4 ]; }
wait_for 120 have_ended
node_off 3
finish after 6 "a node that goes down after its ranks have ended: status 6"
no_success after
node_on 3
take_up after 0 "resume, with the node back"
whole after 4
nothing_left "after" 1 2 3 4
cluster_reset
ok $? "all is whole again"
tap_done
