# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For the tests of runs: the fixed workload in a folder of its own, one small smoke run, and where its parts lie.
CASE='resnet50/reperf/fp32/n1g1/bs96'
mkdir -p "$T/fake"
cp "$ROOT/tests/integration/fake_train.sh" "$T/fake/train.sh"
export REPERF_TRAIN="$T/fake/train.sh"
mode() { echo "$1" >"$T/fake/mode"; }
smoke() { "$REPERF" run paddle-perf-2020 --case "$CASE" --profile smoke "$@"; } # OPTION...
run_folder() { # RUN: its folder; without: the newest
    local id=${1:-}
    [ -n "$id" ] || id=$(find "$REPERF_STATE/runs" -mindepth 1 -maxdepth 1 -name '2*' -printf '%f\n' | sort | tail -n 1)
    echo "$REPERF_STATE/runs/$id"
}
forget_runs() { rm -rf "$REPERF_STATE" "$T/fake/count" "$T/fake/mode" "$T/fake/go"; }
times_run() { if [ -e "$T/fake/count" ]; then wc -l <"$T/fake/count"; else echo 0; fi; }
at_rates() { # RATE...: of one run after another
    printf '%s\n' "$@" >"$T/fake/rates"
    rm -f "$T/fake/count"
    # shellcheck disable=SC2016
    sed 's#8\.0#"$(sed -n "$(wc -l <"$dir/count")p" "$dir/rates")"#' "$ROOT/tests/integration/fake_train.sh" >"$T/fake/train.sh"
}
