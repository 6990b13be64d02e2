#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: cmd
# One meaning for each exit status: a name that does not exist is 2, for every command and kind of name. And the states of a cell's log:
# absent, unreadable, without a rule; the last two are never 0.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2153,SC2317
source "$(dirname "$0")/../tap_lib.sh"
mkdir "$T/empty"
echo text >"$T/file"

# COMMAND with @ for the missing thing. Each command of the program is in it (below).
while read -r line; do
    [ -n "$line" ] || continue
    read -ra words <<<"$line"
    exits 2 "reperf $line" "$REPERF" "${words[@]//@/nothing-there}"
    ok "$([ -s "$T/err" ] && ! grep -q 'internal error' "$T/err"; echo $?)" "and says so"
    echo "${words[0]}" >>"$T/seen"
done <<TABLE
attach @
status --follow @
audit @
audit /@.json
audit paddle-perf-2020 --logs /@
audit paddle-perf-2020 --case resnet50/* --case @
data bundle @ --output $T/bundle.tar
data bundle dataset:@ --dry-run
cancel @
compare @ last
compare /@.tar.zst last
completion @
explain @
data fetch @
data fetch image:@
data fetch dataset:@ --dry-run
data fetch cityscapes --locks /@ --dry-run
data fetch cityscapes --netrc /@
data fetch cityscapes --ca /@
data fetch cityscapes --mirror /@
history --report @
history --case @/*
data image load @
data import /@
keygen /@/key
lint @
lint /@.json
list @
list cases @
data lock @
data lock image:@
measure /@
measure $T/file --format @
measure $T/file --format mmseg --rule @
new mine --from /@
measure $T/empty --results /@
nodes @
nodes list /@.json
nodes doctor /@.json
nodes doctor local --report @
nodes doctor local --report paddle-perf-2020 --case resnet50/* --case @
nodes exec /@.json -- true
nodes copy local /@
nodes copy /@.json $T/file
nodes provision /@.json image:@
nodes clean /@.json
nodes clean local @
data pack @
plan @
plan paddle-perf-2020 --nodes /@.json
plan paddle-perf-2020 --case @/*
plan paddle-perf-2020 --case resnet50/* --case @
plan paddle-perf-2020 --data @
plan paddle-perf-2020 --data /@
data repair @
data repair image:@
publish @ -o $T/published
replay @
replay /@.tar.zst
report @
report @.tar.zst
report /@.json
report paddle-perf-2020 --case resnet50/* --case @
resume @
run @
run /@.json
run paddle-perf-2020 --case @/*
run paddle-perf-2020 --nodes /@.json
run paddle-perf-2020 --data /@
run paddle-perf-2020 --profile smoke --case resnet50/reperf/fp32/n1g1/bs96 --repeats 1 --key /@
seal @
seal /@
status @
store @
data drop dataset/@
data add /@
data tree /@
data tree $T/empty --list /@
data unpack /@ $T/unpacked
verify @
verify /@
verify /@.tar.zst
verify $T/empty --key /@
verify $T/empty --as @
verify /@ --as cityscapes
@
TABLE
is "$(sort -u "$T/seen" | grep -v -e @ -e attach -e replay -e store | xargs)" "$("$REPERF" --help | awk '/^  [a-z]/ { print $1 }' | sort | xargs)" "every command is in the table"
is "$(find "$REPERF_STATE/runs" -mindepth 1 2>/dev/null | wc -l)" 0 "none of them began a run"

# ---- absent, unreadable, no rule
report() { # SED-SCRIPT: a copy of a report in a data folder of its own
    rm -rf "$T/root" && mkdir -p "$T/root/manifests/reports"
    ln -s "$ROOT/manifests/formats" "$ROOT/manifests/vocabulary.json" "$T/root/manifests/"
    ln -s "$ROOT/images" "$ROOT/datasets" "$T/root/"
    cp -R "$ROOT/logs" "$T/root/logs"
    jq "$1" "$ROOT/manifests/reports/paddle-perf-deeplabv3p.json" >"$T/root/manifests/reports/paddle-perf-deeplabv3p.json"
}
audit() { REPERF_ROOT="$T/root" "$REPERF" audit paddle-perf-deeplabv3p "$@"; }
states() { jq -r '.reports[0].cells[] | .log_state' "$T/out" | sort -u | xargs; }
first='.cases[] |= if .id == "deeplabv3p/mmseg/fp32/n1g1/bs4" then '
report "$first .rule = \"mmseg/none-such\" else . end"
answers 1 '.reports[0].cells[] | select(.case == "deeplabv3p/mmseg/fp32/n1g1/bs4") | .log_state + "/" + .verdict' "no_rule/no_log" "a rule that does not exist: a log_state of its own" audit --json
is "$(jq -r '.reports[0].findings[] | select(.id == "rule-missing") | .level' "$T/out" | sort -u)" error "and an error"
prints 1 '<error message="there is no rule mmseg/none-such" type="audit"/>' "in JUnit, too" audit --junit
exits 1 "and in lint" env REPERF_ROOT="$T/root" "$REPERF" lint paddle-perf-deeplabv3p --json
is "$(jq -r '.reports[0].findings[] | select(.id == "rule-missing") | .level' "$T/out" | sort -u)" error "as an error with its place"
report "$first .format = \"no-such-format\" | .rule = \"no-such-format/x\" else . end"
prints 1 '<error message="there is no format no-such-format"' "a format that does not exist" audit --junit
prints 1 '<error message="there is no format no-such-format"' "of raw logs, too" audit --junit --logs "$T"
report .
mkdir -p "$T/logs"
leaves 1 states absent "raw logs that are not there are absent" audit --logs "$T/logs" --json
mapfile -t paths < <(jq -r '.reports[0].cells[].logs[].path' "$T/out" | sort -u)
for path in "${paths[@]}"; do
    mkdir -p "$T/logs/$(dirname "$path")" && head -c 3000 /dev/zero >"$T/logs/$path"
done
leaves 1 states unreadable "raw logs that are no text cannot be read" audit --logs "$T/logs" --json

# ---- a report of which nothing can be checked
round=mlperf-training-1.1
unread=$("$REPERF" audit $round --json | jq -r '.reports[0].cells[] | select(.verdict == "no_log") | .case')
is "$(wc -l <<<"$unread")" 1 "a round of which one cell has no log"
exits 0 "holds" "$REPERF" audit $round
exits 9 "that cell alone is not checked" "$REPERF" audit $round --case "$unread"
exits 9 "whatever the form" "$REPERF" audit $round --case "$unread" --junit
exits 0 "beside others it is one of them" "$REPERF" audit $round --case "$unread" --case 'bert/*'
mkdir -p "$T/none/manifests/reports" "$T/none/logs/published"
ln -s "$ROOT/manifests/formats" "$ROOT/manifests/vocabulary.json" "$T/none/manifests/"
ln -s "$ROOT/images" "$ROOT/datasets" "$T/none/"
ln -s "$ROOT/logs/published/mlperf-training-2.1" "$T/none/logs/published/"
cp "$ROOT/manifests/reports/mlperf-training-2.1.json" "$T/none/manifests/reports/"
"$B/servers/spell_out" "$ROOT" "$round" | jq '.cases[].logs = [] | del(.logs.series_sha256)' >"$T/none/manifests/reports/$round.json"
exits 9 "a report without a log" env REPERF_ROOT="$T/none" "$REPERF" audit $round --strict
exits 9 "and beside one that holds" env REPERF_ROOT="$T/none" "$REPERF" audit mlperf-training-2.1 $round
exits 0 "which alone does" env REPERF_ROOT="$T/none" "$REPERF" audit mlperf-training-2.1

# ---- a network that cannot be opened
install -m 644 /dev/null "$T/netrc"
fails 5 'bert-sample: .*/netrc holds secrets and has mode 0644' "two datasets with a netrc that others may read" "$REPERF" lock bert-sample bert-tfrecord-sample --netrc "$T/netrc"
# --- the level of messages ---
fails 2 'REPERF_LOG=loud: expected error, warning, info or debug' "an unknown level of messages" env REPERF_LOG=loud "$REPERF" list
suggest() { REPERF_LOG=$1 "$REPERF" measure "$ROOT/tests/integration/unknown/home-rate.log" --suggest "$T/mine.json"; }
fails 11 'mine.json: written' "at level info" suggest info
exits 11 "at level error" suggest error
is "$(cat "$T/err")" "" "nothing is"
tap_done
