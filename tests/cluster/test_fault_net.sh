#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: fleet
# Links that are cut for a second, for longer than a connection lives, and for good; a dead sshd, packet loss, a slow link, a frozen node, a reboot, all while a run's workload is on the
# node: a run each, four at a time, each on a node of its own.
# shellcheck source=tests/cluster/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cluster/fault_lib.sh
. "$(dirname "$0")/fault_lib.sh"
# shellcheck source=tests/faults/lib.sh
. tests/faults/lib.sh
cluster_reset || exit 1
N="$S/inventory-none.json"

# --- links
names=([1]=cut-1s [2]=cut-longer [3]=cut-for-good [4]=reboot)
for i in 1 2 3 4; do world "${names[i]}" waits; done
# A node that comes back is waited for, however long this machine takes for it.
export REPERF_OUTAGE=200
begin cut-1s "$ONE" "$N:node1"
ssh_notices 2 begin cut-longer "$ONE" "$N:node2"
gives_up_soon begin cut-for-good "$ONE" "$N:node3"
begin reboot "$ONE" "$N:node4"
for i in 1 2 3 4; do waits_for_ranks "${names[i]}" 1; done
node_cut 1
node_cut 2
node_cut 3
node_reboot 4 &
reboot=$!
sleep 1
node_restore 1
go cut-1s
sleep 6
node_restore 2
go cut-longer
wait "$reboot"
go reboot
finish cut-1s 0 "a link cut for a second: nothing is lost"
whole cut-1s 1
is "$(count cut-1s begun)" 2 "cut-1s: no repeat is made twice"
finish cut-longer 0 "a link cut until its connection was given up: nothing is lost"
whole cut-longer 1
is "$(count cut-longer begun)" 2 "cut-longer: no repeat is made twice"
finish reboot 0 "a node that reboots: the repeat is made again"
whole reboot 1
is "$(count reboot begun)" 3 "reboot: one attempt was lost"
is "$(find "$(run_dir reboot)/evidence/logs/lost" -type f 2>/dev/null | wc -l)" 1 "reboot: its log is kept apart"
finish cut-for-good 6 "a link cut for good: status 6"
says cut-for-good 'node3' "and the node is named"
no_success cut-for-good
node_restore 3
go cut-for-good
take_up cut-for-good 0 "resume, with the link mended"
whole cut-for-good 1
nothing_left "links" 1 2 3 4

# --- sshd, loss, a slow link, a frozen node
names=([1]=sshd-dead [2]=loss [3]=slow-link [4]=frozen)
# First the one that is frozen, before its deadline, an hour by a clock that then goes on; what happens after it is another fault.
world frozen waits
LD_PRELOAD="$CLOCK_CALLS" REPERF_CLOCK_OF=reperf REPERF_CLOCK="$T/clock" REPERF_OUTAGE=3 ssh_notices 3 begin frozen "$ONE" "$N:node4" --deadline 3600
waits_for_ranks frozen 1
node_freeze 4
echo 3600+ >"$T/clock"
node_loss 2 30
node_rate 3 10mbit
for i in 1 2 3; do
    world "${names[i]}" waits
    begin "${names[i]}" "$ONE" "$N:node$i"
done
for i in 1 3 2; do waits_for_ranks "${names[i]}" 1; done
node_sshd_stop 1
go sshd-dead
go loss
go slow-link
sleep 1
node_sshd_start 1
finish sshd-dead 0 "sshd killed with all its sessions, and started again: nothing is lost"
whole sshd-dead 1
is "$(count sshd-dead begun)" 2 "sshd-dead: no repeat is made twice"
finish slow-link 0 "a link of 10 Mbit"
whole slow-link 1
finish loss 0 "30 % of the packets lost"
whole loss 1
is "$(count loss begun)" 2 "loss: no repeat is made twice"
finish frozen 6 "a node frozen until past the deadline, so that nothing there can be ended: status 6"
says frozen 'node4' "and the node is named"
no_success frozen
node_thaw 4
go frozen
take_up frozen 0 "resume, with the node thawed"
whole frozen 1
node_no_loss 2
node_no_rate 3
nothing_left "sshd, loss, slow, frozen" 1 2 3 4
cluster_reset
ok $? "all is whole again"
tap_done
