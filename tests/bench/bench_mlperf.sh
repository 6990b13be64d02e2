#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A round of MLPerf Training judged from its raw logs, each with its digest, against `grep -c run_stop` over all of the round's logs on
# as many cores. MLPERF=DIR holds a clone of training_results_v2.0.
# shellcheck source=tests/bench/bench_lib.sh
. tests/bench/bench_lib.sh
if [ ! -d "${MLPERF:-}/training_results_v2.0" ]; then
    echo "not measured: MLPERF=DIR names no folder with training_results_v2.0"
    exit 0
fi
list=$(mktemp)
trap 'rm -f "$list"' EXIT
find "$MLPERF/training_results_v2.0" -path '*/results/*' -name 'result_*.txt' -print0 >"$list"
echo "$(tr -cd '\0' <"$list" | wc -c) logs, $(($(xargs -0 stat -L -c %s <"$list" | awk '{ n += $1 } END { print n }') / 1000000)) MB"
pair "MLPerf 2.0 from raw logs : grep -c run_stop" 1.5 \
    "'$B/reperf' audit mlperf-training-2.0 --logs '$MLPERF' --json" \
    "xargs -0 -P $(nproc) -n 200 grep -c run_stop <'$list'"
