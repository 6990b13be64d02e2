#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Waits until the last process of a cluster has gone, then removes its groups and its folder: reap.sh STATE
# shellcheck source=tests/cluster/env.sh
. "$(dirname "$0")/env.sh"
exec 7<"$1/alive" || exit 0
cd / || exit 1
flock 7
cluster_clean "$1"
