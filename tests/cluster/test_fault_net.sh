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
nothing_lost cut-1s "a link cut for a second: nothing is lost"
nothing_lost cut-longer "a link cut until its connection was given up: nothing is lost"
ends_well reboot 1 "a node that reboots: the repeat is made again"
is "$(count reboot begun)" 3 "reboot: one attempt was lost"
is "$(find "$(run_dir reboot)/evidence/logs/lost" -type f 2>/dev/null | wc -l)" 1 "reboot: its log is kept apart"
breaks cut-for-good 6 'node3' "a link cut for good: status 6"
node_restore 3
go cut-for-good
heals cut-for-good 1 "resume, with the link mended"
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
nothing_lost sshd-dead "sshd killed with all its sessions, and started again: nothing is lost"
ends_well slow-link 1 "a link of 10 Mbit"
nothing_lost loss "30 % of the packets lost"
breaks frozen 6 'node4' "a node frozen until past the deadline, so that nothing there can be ended: status 6"
node_thaw 4
go frozen
heals frozen 1 "resume, with the node thawed"
node_no_loss 2
node_no_rate 3
nothing_left "sshd, loss, slow, frozen" 1 2 3 4
succeeds "all is whole again" cluster_reset
tap_done
