#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: run
# Repeats that failed are made again by the run itself: every attempt is kept, and the last one counts. A run that was sealed stays as it was.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2119
. "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/run_lib.sh disable=SC1091
. "$ROOT/tests/integration/run_lib.sh"
outcome() { jq -r "$1" "$R/evidence/logs/outcome/$CASE/repeat-1.json"; } # EXPRESSION
fail_until() { # N: the first N times it fails
    cp "$ROOT/tests/integration/fake_train.sh" "$T/fake/train.sh"
    sed -i "s/^start() {/[ \"\$(wc -l <\"\$dir\/count\")\" -gt $1 ] || mode=fails\n&/" "$T/fake/train.sh"
}
fail_until 2
exits 0 "run --retry-failed 2, and the third attempt is whole" smoke --repeats 1 --retry-failed 2
R=$(run_folder)
is "$(times_run) $(outcome .attempt) $(outcome .replaces)" '3 3 null' "the third counts; no archive had one of them"
is "$(find "$R/evidence/logs/lost" -name '*.log' | wc -l)" 2 "both that failed are kept"
exits 0 "which verifies" "$REPERF" verify last --unsigned
forget_runs
fail_until 2
exits 8 "run --retry-failed 1" smoke --repeats 1 --retry-failed 1
R=$(run_folder)
is "$(times_run) $(outcome .attempt) $(outcome .exit_status)" '2 2 3' "the last attempt counts, as it is"
exits 8 "and resume says the same" "$REPERF" resume last
tap_done
