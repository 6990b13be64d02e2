# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# A Slurm of two nodes on this machine, of the test's own: munged, slurmctld, two slurmd; everything in $T/slurm, ended by pid at exit.
slurm_missing() { # says what is missing; false where nothing is
    [ "$(id -u)" = 0 ] || { echo "needs root"; return 0; }
    local command
    for command in slurmctld slurmd sbatch srun munged setpriv python3; do
        command -v "$command" >/dev/null || { echo "$command is not installed"; return 0; }
    done
    awk '$2 ~ "^/sys/fs/cgroup" { found = 1 } END { exit !found }' /proc/mounts || { echo "slurmd wants a cgroup file system at /sys/fs/cgroup"; return 0; }
    return 1
}
slurm_down() {
    local file pid
    for file in "$SL"/slurmd-*.pid "$SL/ctld.pid" "$SL/munge/run/pid"; do
        [ -s "$file" ] && pid=$(cat "$file") && kill -9 "$pid" 2>/dev/null
    done
    # Their steps' managers, which name this folder's configuration by their node's spool.
    for pid in $(pgrep -f "^slurmstepd: " || true); do
        grep -qzF "SLURM_CONF=$SL/slurm.conf" "/proc/$pid/environ" 2>/dev/null && kill -9 "$pid"
    done
}
slurmd_start() { SLURM_CONF="$SL/slurm.conf" setsid slurmd -N "$1" </dev/null >/dev/null 2>&1; }
are_idle() { [ "$(sinfo -h -N -o '%N %T' 2>/dev/null | grep -c ' idle$')" = 2 ]; }
slurm_up() {
    local host ports
    SL="$T/slurm" host=$(hostname -s)
    ports=("$(free_port)" "$(free_port)" "$(free_port)")
    mkdir -p "$SL"/{munge/run,state,spool,log}
    dd if=/dev/urandom of="$SL/munge/key" bs=128 count=1 status=none
    chmod 600 "$SL/munge/key"
    chown -R munge: "$SL/munge"
    chmod 755 "$T" "$SL" "$SL/munge"
    trap 'slurm_down; rm -rf "$T"' EXIT
    setpriv --reuid munge --regid munge --clear-groups "$(command -v munged)" --force --key-file="$SL/munge/key" --socket="$SL/munge/socket" \
        --pid-file="$SL/munge/run/pid" --log-file="$SL/munge/run/log" --seed-file="$SL/munge/run/seed" || return 1
    cat >"$SL/slurm.conf" <<CONF
ClusterName=reperftest
SlurmctldHost=$host(127.0.0.1)
AuthInfo=socket=$SL/munge/socket
StateSaveLocation=$SL/state
SlurmdSpoolDir=$SL/spool/%n
SlurmctldPidFile=$SL/ctld.pid
SlurmdPidFile=$SL/slurmd-%n.pid
SlurmctldLogFile=$SL/log/ctld
SlurmdLogFile=$SL/log/%n
SlurmctldPort=${ports[0]}
MinJobAge=300
MessageTimeout=100
TCPTimeout=60
BatchStartTimeout=600
NodeName=node1 NodeAddr=127.0.0.1 NodeHostname=$host Port=${ports[1]} CPUs=8 RealMemory=2000 State=UNKNOWN
NodeName=node2 NodeAddr=127.0.0.1 NodeHostname=$host Port=${ports[2]} CPUs=8 RealMemory=2000 State=UNKNOWN
$(slurm_common)
CONF
    export SLURM_CONF="$SL/slurm.conf"
    setsid slurmctld -c </dev/null >/dev/null 2>&1
    slurmd_start node1
    slurmd_start node2
    waiting_for 120 are_idle
}
