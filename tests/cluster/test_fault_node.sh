#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: fleet
# Nodes that are down, have another host key, refuse our key, have a login shell that prints or sleeps, or a full disk; two orchestrators on the same nodes.
# shellcheck source=tests/cluster/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cluster/fault_lib.sh
. "$(dirname "$0")/fault_lib.sh"

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
breaks host-key 5 'node1.*host key|host key.*node1' "a changed host key: status 5"
is "$(count host-key begun)" 0 "host-key: nothing was started there"
node_old_key 1
heals host-key 1 "resume, with the key that is known"
breaks key-refused 5 'node2' "a refused key: status 5"
node_accept_key 2
heals key-refused 1 "resume, with the key accepted"
ends_well shell-prints 1 "a login shell that prints does no harm"
node_shell_plain 3
breaks disk-full 10 'node4.*(No space|disk|full)|(No space|disk|full).*node4' "a full disk: status 10"
node_disk_end 4
heals disk-full 1 "resume, with room"
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
succeeds "a second orchestrator is told who has the node" wait_for 240 is_told
is "$(count second begun)" 0 "and does not measure beside the first"
go first
ends_well first 1 "the first of two orchestrators ends as if alone"
waits_for_ranks second 1
go second
ends_well second 1 "then the second has the node"
finish disk-fills 10 "a disk that fills while the workload writes: status 10"
no_success disk-fills
node_disk_end 1
ends_well shell-sleeps 1 "a login shell that sleeps" 1
node_shell_plain 2
node_off 4
world off waits
gives_up_soon begin off "$FOUR" "$N" --deadline 60
breaks off 6 'node4' "a node that is down before a step of four: status 6"
is "$(count off begun)" 0 "off: no rank was started"
node_on 4
go off
heals off 4 "resume, with the node back"

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
heals during 4 "resume, with the node back"
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
heals after 4 "resume, with the node back"
nothing_left "after" 1 2 3 4
succeeds "all is whole again" cluster_reset
tap_done
