# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# Sourced by root.sh: in $root/dress/bin, the programs of a published image by their names. Python is this machine's, Open MPI is the real one; what an image
# has besides is stood in for.
# shellcheck disable=SC2154 # $root is root.sh's
program() { # NAME LINE...
    name=$1
    shift
    { echo '#!/bin/sh' && printf '%s\n' "$@"; } >"$root/dress/bin/$name"
    chmod +x "$root/dress/bin/$name"
}
for name in python python3 python3.7; do ln -s /usr/bin/python3 "$root/dress/bin/$name"; done
# shellcheck disable=SC2016 # for the programs
{
    for name in pip pip3 pip3.7; do program "$name" 'exec python3 -m pip "$@"'; done
    program fleetrun 'exec python3 -m paddle.distributed.launch "$@"'
    # There are fewer sockets and processors here than in the report's nodes: ranks are not bound.
    for name in mpiexec mpirun; do
        program "$name" 'for word; do
    shift
    if [ "$word" = --bind-to ]; then skip=1; elif [ -n "${skip:-}" ]; then skip=; else set -- "$@" "$word"; fi
done
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_rmaps_base_oversubscribe=1
exec /usr/bin/mpiexec "$@"'
    done
    program horovodrun '[ "$1" = -np ] || exit 2
n=$2
shift 2
exec mpiexec --allow-run-as-root -np "$n" "$@"'
    program git 'echo "git $*"'
}
