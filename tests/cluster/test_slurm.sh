#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: fleet
# Slurm across the four nodes: jobs land on each, from the head and from a node, also in containers.
# shellcheck source=tests/cluster/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
slurm_is_up "Slurm across four nodes" || tap_done
is "$(srun -N4 --chdir=/ hostname | sort | tr '\n' ' ')" "node1 node2 node3 node4 " "srun runs on all four"
is "$(node_ssh 2 "SLURM_CONF=$SLURM_CONF srun -N4 --chdir=/ -l cat /etc/hostname" | sort | tr '\n' ' ')" "0: node1 1: node2 2: node3 3: node4 " "from a node too"
printf '#!/bin/sh\n#SBATCH -N2\nsrun hostname\n' >"$T/job"
id=$(sbatch --parsable --chdir=/ --output="$S/shared/job.out" "$T/job")
is_over() { [ -z "$(squeue -h -j "$1" 2>/dev/null)" ]; }
wait_for 120 is_over "$id"
is "$(sort "$S/shared/job.out" | tr '\n' ' ')" "node1 node2 " "sbatch writes to the shared folder"
is "$(srun -N1 --chdir=/ sh -c 'exit 7' 2>/dev/null; echo $?)" 7 "the exit status comes back"
if ! no_docker "containers by Slurm"; then
    printf '#!/bin/sh\necho probe\n' >"$T/probe"
    pin="$HEAD_IP:$REGISTRY_PORT/$(cluster_image test/probe "$T/probe")"
    is "$(srun -N4 --chdir=/ docker run --rm --net=host "$pin" hostname 2>/dev/null | sort | tr '\n' ' ')" "node1 node2 node3 node4 " "containers by srun"
fi
rm -f "$S/shared/job.out"
tap_done
