#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: node
# What a job leaves running, in sessions of its own too, is ended with it, named, and a reason to doubt that repeat.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2119
. "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/run_lib.sh disable=SC1091
. "$ROOT/tests/integration/run_lib.sh"
# Arguments that no other process has.
NAP="987$$"
naps() { pgrep -fc "^sleep $NAP"; }
leave() { # SHELL: what the workload does first
    sed "2i [ -z \"\$REPERF_JOB\" ] || { $1 }" "$ROOT/tests/integration/fake_train.sh" >"$T/fake/train.sh"
}
leave "(setsid sleep $NAP >/dev/null 2>\\&1 </dev/null \\&);"
leaves 0 naps 0 "a run whose job leaves a daemon: nothing of it runs any more" smoke --repeats 1
like "$(cat "$T/err")" 'repeat 1: processes outlived the job and were ended: local: sleep' "it says so"
R=$(run_folder)
is "$(jq -r .left "$R/evidence/logs/outcome/$CASE/repeat-1.json")" 'local: sleep' "the record of the outcome has its name"
is "$(jq -r '.cells[0].repeats[0].taints[0]' "$R/evidence/result.json")" 'outlived the job and were ended: local: sleep' "and the repeat a taint"
exits 0 "which is part of what verifies" "$REPERF" verify last --unsigned
leave "(setsid sh -c 'sleep $NAP \\& sleep $NAP' >/dev/null 2>\\&1 </dev/null \\&) ; (sleep 0.2 \\&);"
leaves 0 naps 0 "a tree of them, and one that ends by itself: all are ended" smoke --repeats 1
is "$(jq -r '.left | split(": ")[1] | split(",") | unique | join(",")' "$(run_folder)/evidence/logs/outcome/$CASE/repeat-1.json")" 'sh,sleep' "and named"
leave "sleep 0.1 \\&"
exits 0 "what ends by itself" smoke --repeats 1
is "$(jq -r '.left' "$(run_folder)/evidence/logs/outcome/$CASE/repeat-1.json") $(jq -c '.cells[0].repeats[0].taints' "$(run_folder)/evidence/result.json")" 'null null' "is no leftover"

# The wrapper is killed: what is in no session of the job is known by the job's variables.
leave "(setsid sleep $NAP >/dev/null 2>\\&1 </dev/null \\&); sleep 3600;"
smoke --repeats 1 >"$T/killed.out" 2>&1 &
run=$!
served "$run" "the job" test -n "$(until pgrep -f "^sleep $NAP" || ! kill -0 "$run" 2>/dev/null; do sleep 0.1; done)"
wrapper=$(cut -d' ' -f1 "$(find "$(run_folder)/jobs" -name pid | head -n 1)")
cp "$ROOT/tests/integration/fake_train.sh" "$T/fake/train.sh" # the next attempt's
kill -9 "$wrapper"
wait "$run"
is $? 0 "the run goes on"
is "$(naps)" 0 "a killed wrapper: nothing of its job runs any more"
tap_done
