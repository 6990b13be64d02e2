#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Slurm over the four nodes of a cluster that is up: slurm_up.sh STATE. slurmctld on the head, slurmd in each node, munge with one key; then
# SLURM_CONF=STATE/slurm/slurm.conf for sbatch, srun and squeue on the head and on the nodes. They end with the cluster. 77: not installed.
# shellcheck disable=SC2016
set -eu
# shellcheck source=tests/cluster/env.sh
. "$(dirname "$0")/env.sh"
# shellcheck source=tests/server_lib.sh
. "$CLUSTER_DIR/../server_lib.sh"
S=$1
for command in slurmctld slurmd srun munged; do
    command -v "$command" >/dev/null || {
        echo "no Slurm here: $command is not installed" >&2
        exit 77
    }
done
export SLURM_CONF="$S/slurm/slurm.conf"
are_idle() { [ "$(sinfo -h -N -o '%N %T' 2>/dev/null | grep -c ' idle$')" = 4 ]; }
if [ -e "$S/slurm/ready" ]; then # a node that was off since then has no slurmd any more
    are_idle && exit 0
    rm -f "$S/slurm/ready"
fi
mkdir -p "$S/slurm"/{state,log} "$S/munge"
[ -s "$S/munge/key" ] || dd if=/dev/urandom of="$S/munge/key" bs=128 count=1 status=none
chmod 600 "$S/munge/key"
cat >"$S/slurm/slurm.conf" <<CONF
ClusterName=reperf
SlurmctldHost=head($HEAD_IP)
AuthInfo=socket=$S/munge/socket
StateSaveLocation=$S/slurm/state
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldPidFile=$S/slurm/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=$S/slurm/log/slurmctld.log
SlurmdLogFile=/var/log/slurmd.log
SlurmctldPort=6817
SlurmdPort=6818
MinJobAge=30
KillWait=5
SlurmdTimeout=30
$(for i in $CLUSTER_NODES; do echo "NodeName=node$i NodeAddr=$(node_ip "$i") CPUs=8 RealMemory=2000 State=UNKNOWN"; done)
$(slurm_common)
CONF
start_munge='
    dir=$1
    chown -R munge: "$dir"
    mkdir -p "$dir/run" && chown munge: "$dir/run"
    chmod 755 "$dir"
    exec setpriv --reuid munge --regid munge --clear-groups /usr/sbin/munged --force --key-file="$dir/key" --socket="$dir/socket" --pid-file="$dir/run/pid" \
        --log-file="$dir/run/log" --seed-file="$dir/run/seed"'
[ -S "$S/munge/socket" ] || cluster_do "$S" bash -c "$start_munge" bash "$S/munge"
# slurmctld takes the host name for the head's own; that is a name of its own namespace here.
cluster_do "$S" pidof slurmctld >/dev/null || cluster_do "$S" unshare --uts bash -c 'hostname head; export SLURM_CONF=$1; exec setsid slurmctld -c </dev/null >/dev/null 2>&1' bash "$S/slurm/slurm.conf"
for i in $CLUSTER_NODES; do
    tar -C "$S" -cf - munge/key slurm/slurm.conf | ssh -F "$S/ssh_config" "node$i" "! pidof slurmd >/dev/null || exit 0; mkdir -p '$S' && tar -C '$S' -xf - && chmod 755 '$S' && mkdir -p /var/spool/slurmd &&
        bash -c $(printf %q "$start_munge") bash '$S/munge' && SLURM_CONF='$S/slurm/slurm.conf' setsid slurmd -N node$i </dev/null >/dev/null 2>&1"
done
if ! wait_for 240 are_idle; then
    {
        sinfo -N -l
        tail -n 20 "$S/slurm/log/slurmctld.log"
    } >&2
    exit 1
fi
: >"$S/slurm/ready"
