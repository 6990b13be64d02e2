#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: judge
# What makes a log not whole (tests/logs/whole.want) counts in a run and in an audit as in measure.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2016
source "$(dirname "$0")/../tap_lib.sh"

is "$(jq -r '.id as $i | select((.begin // null) == null and (([.series[] | select(.primary)] + .series)[0] as $p | any(($p, .series[]); (. == $p or .quantity == "progress") and (.pattern | test("\\(\\?<step>"))) | not)) | $i' manifests/formats/*.json)" "" "each format reads steps, has a line to begin with, or says why a log does not show its beginning"

# A run and an audit judge by the same causes.
cp tests/integration/fake_train.sh "$T/train.sh"
printf '%s\n' '#!/bin/sh' '"${0%/*}/train.sh" "$@" | sed "/\"step\":9,/d"' >"$T/gap.sh" && chmod +x "$T/gap.sh"
exits 9 "a run whose log lacks a step does not count" env REPERF_TRAIN="$T/gap.sh" REPERF_STATE="$T/gap" "$REPERF" run paddle-perf-2020 --profile smoke --case 'resnet50/reperf/fp32/n1g1/*' --repeats 1
is "$(jq -c '.cells[0].repeats[0].counts' "$T"/gap/runs/2*/evidence/result.json)" false "as its result says"
like "$(cat "$T"/gap/runs/2*/evidence/result.json)" '1 line is missing before step 10' "with the cause"
mkdir -p "$T/logs/made"
audited() { # SED: verdict and log_state of a cell on such a log
    (printf 'GPUs used: 8\nbatch_size: 8\n' && sed -E "${1:-}" tests/logs/seg.log) >"$T/logs/made/x.log"
    /usr/bin/python3 tests/integration/forge.py manifests/reports/paddle-perf-hrnetw18.json "$T/forged.json" hrnetw18/paddle/fp32/n1g8/bs8 folder=made log=x.log format=paddleseg rule=paddleseg/skip1 printed=80.0
    "$REPERF" audit "$T/forged.json" --logs "$T/logs" --json >"$T/out" 2>/dev/null
    jq -r '.reports[0].cells[0] | [.verdict, .log_state] | join(" ")' "$T/out"
}
is "$(audited)" "exact whole" "an audited cell on a whole log"
is "$(audited 4,5d)" "exact incomplete" "on one with gaps it keeps its verdict, and the state is said"
is "$(audited 7,8d)" "exact incomplete" "so on one that is cut"
is "$(audited 1,3d)" "exact incomplete" "at either end"
is "$(audited 4p)" "exact incomplete" "and on one with a step twice"
like "$(cat "$T/out")" '"id": "log-incomplete"' "which is found"
is "$(audited '6s#loss: 1.5#loss: nan#')" "exact unreadable" "and on one with an invalid loss"
tap_done
