#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: run
# A run has a name besides its id; every command that takes a run accepts what `run` printed; a run that could do nothing leaves
# nothing behind.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2119
. "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/run_lib.sh disable=SC1091
. "$(dirname "$0")/run_lib.sh"
export TMPDIR="$T/tmp" # what is left there is no other script's
mkdir "$TMPDIR"

exits 0 "a named run" smoke --name first.one --repeats 1 --json
cp "$T/out" "$T/run.json"
id=$(jq -r .run "$T/run.json")
archive=$(jq -r .archive "$T/run.json")
folder=$(jq -r .folder "$T/run.json")
answers 0 '.runs[0] | .run + " " + .name' "$id first.one" "status by name says id and name" "$REPERF" status first.one --json
cp "$T/out" "$T/status.json"
valid status "which validates" "$T/status.json"
prints 0 "$id \(first.one\)" "status of all" "$REPERF" status
prints 0 "$id \(first.one\)" "history, likewise" "$REPERF" history
exits 2 "a name that is taken" smoke --name first.one --repeats 1
is "$(find "$REPERF_STATE/runs" -mindepth 1 -maxdepth 1 | wc -l)" 1 "begins no run"
for name in last 2026 -x 'a/b' ''; do
    exits 2 "\"$name\" is no name" smoke "--name=$name" --repeats 1
done
exits 0 "another run" smoke --name second --repeats 1
for of in second last "$id" first.one "${id:0:20}"; do
    exits 0 "attach $of" "$REPERF" attach "$of"
    exits 0 "report $of" "$REPERF" report "$of"
    exits 0 "replay $of" "$REPERF" replay "$of"
    exits 0 "resume $of" "$REPERF" resume "$of"
    exits 0 "compare $of" "$REPERF" compare "$of" first.one
    exits 0 "verify $of" "$REPERF" verify "$of" --unsigned
    exits 0 "seal $of" "$REPERF" seal "$of" -o "$T/again.tar.zst" --force
done
for of in "$archive" "$folder"; do
    exits 0 "verify of the printed $(basename "$of")" "$REPERF" verify "$of" --unsigned
    exits 0 "report of it" "$REPERF" report "$of"
    exits 0 "replay of it" "$REPERF" replay "$of"
done
answers 0 .archive "$archive" "seal of the printed folder is the run's archive again" "$REPERF" seal "$folder" --force --json
exits 0 "nodes clean takes a name" "$REPERF" nodes clean local first.one --dry-run
rm -rf "$folder"
exits 2 "the name of a run that is gone" "$REPERF" status first.one
exits 0 "is free again" smoke --name first.one --repeats 1

# --- how far a run is ---
mode waits
smoke --name slow --repeats 1 >"$T/slow.out" 2>"$T/slow.err" &
pid=$!
# shellcheck disable=SC2317
is_at_5() { "$REPERF" status slow --json >"$T/out" 2>/dev/null && [ "$(jq -r '.runs[0].repeat_states[0].step // 0' "$T/out")" -ge 5 ]; }
served "$pid" "step 5" is_at_5
cp "$T/out" "$T/slow.json"
is "$(jq -c '.runs[0].repeat_states[0] | [.state, .step, .steps]' "$T/slow.json")" '["running",5,20]' "status says how far a repeat is that runs"
is "$(jq -c '.runs[0].repeat_states[0] | [.value, .unit, .samples]' "$T/slow.json")" '[8,"samples/s",1]' "what its log gives so far, by its rule: one sample after the warm-up"
ok "$(jq -e '.runs[0].repeat_states[0].seconds_left >= 0' "$T/slow.json" >/dev/null; echo $?)" "and what is left at that pace"
valid status "which validates" "$T/slow.json"
prints 0 'running +local +0 +8 samples/s +5/20 +[0-9]+ (s|min)' "as text" "$REPERF" status slow
touch "$T/fake/go"
wait "$pid"
is "$?" 0 "it ends"
answers 0 '.runs[0].repeat_states[0] | [.state, .value, .samples, .seconds_left]' '["ok",8,16,null]' "status of it then has the whole log's number" "$REPERF" status slow --json
mode good

# --- a run that could do nothing ---
before=$(find "$REPERF_STATE" | sort | sha256sum)
documents run-output 7 "a run of what cannot be run" "$REPERF" run paddle-perf-2020 --case 'resnet50/paddle/fp32/n1g1/bs96' --profile smoke --name third --json
is "$(jq -r '[.run, .folder, .archive, .cells[0].verdict, .cells[0].cause] | tostring' "$T/document")" '[null,null,null,"not_run","container"]' \
    "it has the cell and its cause, and no archive"
is "$(find "$REPERF_STATE" | sort | sha256sum)" "$before" "no run, name or archive was made"
prints 7 'nothing could run: no run was started' "as text" "$REPERF" run paddle-perf-2020 --case 'resnet50/paddle/fp32/n1g1/bs96' --profile smoke
like "$(head -n 1 "$T/out")" '^0 of 1 ran; 1 could not run: resnet50/paddle/fp32/n1g1/bs96$' "and begins with which case did not"
omits 0 not_run "history knows nothing of it" "$REPERF" history
like "$("$REPERF" status last)" 'slow' "last is the last that did something"
is "$(ls -A "$TMPDIR")" "" "and no scratch is left"
tap_done
