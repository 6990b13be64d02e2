#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A command (or a shell) on the head of a cluster that runs: shell.sh STATE [COMMAND...]. There, ssh -F STATE/ssh_config node1 works.
# shellcheck source=tests/cluster/env.sh
. "$(dirname "$0")/env.sh"
state=${1:?folder of a cluster}
shift
init=$(recorded_alive "$state/init.pid") || {
    echo "no cluster is up in $state" >&2
    exit 1
}
[ $# -gt 0 ] || set -- "${SHELL:-/bin/sh}"
export REPERF_CLUSTER=$state REPERF_SSH_CONFIG=$state/ssh_config
exec nsenter --target "$init" --net "$@"
