#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# compare --fail-slower: the gate of somebody's own CI.
# shellcheck source=tests/tap_lib.sh disable=SC1091
source "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/run_lib.sh disable=SC1091
source "$(dirname "$0")/run_lib.sh"

at_rate() { sed "s/8\.0/$1/" "$ROOT/tests/integration/fake_train.sh" >"$T/fake/train.sh"; } # RATE
A=20260101T000000.000Z-0000000a B_SLOW=20260101T000001.000Z-0000000b B_NEAR=20260101T000002.000Z-0000000c NONE=20260101T000003.000Z-0000000d
smoke --repeats 2 --run-id "$A" >"$T/out" 2>&1
at_rate 7.0
smoke --repeats 2 --run-id "$B_SLOW" >"$T/out" 2>&1
at_rate 7.9
smoke --repeats 1 --run-id "$B_NEAR" >"$T/out" 2>&1
mode silent
smoke --repeats 1 --run-id "$NONE" >"$T/out" 2>&1

exits 0 "without the gate a slower run is no failure" "$REPERF" compare "$A" "$B_SLOW"
exits 1 "slower by 12.5 %" "$REPERF" compare "$A" "$B_SLOW" --fail-slower 5%
like "$(cat "$T/err")" "$CASE: slower by 12.50 %, more than 5 %" "is named"
like "$(tail -n 1 "$T/err")" '1 cells compared, 1 slower' "and counted last"
exits 0 "within the tolerance" "$REPERF" compare "$A" "$B_SLOW" --fail-slower 13
exits 0 "slower by 1.25 %" "$REPERF" compare "$A" "$B_NEAR" --fail-slower 5%
exits 1 "and no tolerance" "$REPERF" compare "$A" "$B_NEAR" --fail-slower 0%
exits 0 "faster" "$REPERF" compare "$B_SLOW" "$A" --fail-slower 0
exits 1 "a run without a value is no success" "$REPERF" compare "$A" "$NONE" --fail-slower 50%
like "$(cat "$T/err")" 'a value in A and none in B' "and why"
exits 1 "nothing to compare with" "$REPERF" compare "$NONE" "$A" --fail-slower 50%
exits 1 "one JSON document all the same" "$REPERF" compare --json "$A" "$B_SLOW" --fail-slower 5%
is "$(jq -r '.cells[0].rel_diff * 1000 | round' "$T/out")" "-125" "with the difference"
exits 2 "a share that is none" "$REPERF" compare "$A" "$B_SLOW" --fail-slower much
tap_done
