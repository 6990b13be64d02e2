#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: fleet
# One of four real ranks that train together dies: the job ends in seconds, with a message that names it, and nothing of it is left anywhere. Then the same with
# a rank whose link is cut.
# shellcheck source=tests/cluster/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cluster/fault_lib.sh
. "$(dirname "$0")/fault_lib.sh"
mkdir -p "$T/dies"
REPERF_STATE="$T/dies/state" "$REPERF" run paddle-perf-2020 --case "$FOUR" --profile smoke --nodes "$N" --run-id "$(runs_id dies)" --repeats 1 \
    >"$T/dies/out" 2>"$T/dies/err" &
echo $! >"$T/dies/pid"
# Its program is staged, so that its name there ends in reperf-train.
steps_on() { # NODE
    node_do "$1" /bin/bash -c 'find /var/lib/reperf/jobs -name "log*" -type f -exec cat {} + 2>/dev/null' | grep -q '"event":"step"'
}
succeeds "four ranks train" wait_for 300 steps_on 1
succeeds "one is killed" node_do 3 pkill -9 -x reperf-train
started=$SECONDS
finish dies 8 "one rank of four dies: status 8"
says dies 'node3|rank 2' "and it is named"
echo "# $((SECONDS - started)) s until all had ended"
no_success dies
nothing_left "dies" 1 2 3 4
tap_done
