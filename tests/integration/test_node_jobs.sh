#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_ssh_jobs.sh once more, whole, with reperf-node doing what the scripts do there.
cd "$(dirname "$0")/../.." || exit 1
export REPERF_NODE="${B:-build/release}/reperf-node"
exec tests/integration/test_ssh_jobs.sh
