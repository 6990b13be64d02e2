#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: cmd
# Hostile and unlucky input against the built programs: manifests, logs, tensors, archives, the command line, and false success: an
# audit, a measurement or a check that would hold without having checked. What other scripts attack in depth is not repeated here.
# The programs under test are started by other shells, with their own $1.
# shellcheck disable=SC2016,SC2317
# shellcheck source=tests/tap_lib.sh
. "$(dirname "$0")/../tap_lib.sh"
cd "$T" || exit 1
export OMP_NUM_THREADS=2

# A data folder of our own, with one report of one model.
ID=airank-mmseg-deeplabv3plus
D="$T/data"
mkdir -p "$D/logs" "$D/manifests"
cp -R "$ROOT"/manifests/{reports,formats} "$D/manifests/"
cp -R "$ROOT"/datasets "$ROOT"/images "$D/"
mkdir "$D/workloads" && cp -R "$ROOT/workloads/competitors" "$D/workloads/"
ln -s "$ROOT/logs/published" "$D/logs/published"
M="$D/manifests/reports/$ID.json"
F="$D/manifests/formats/mmseg.json"
cp "$M" report.json
cp "$F" format.json
export REPERF_ROOT="$D"
back() {
    rm -rf "$M" "$F"
    cp report.json "$M"
    cp format.json "$F"
}
as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
edit() { # PYTHON over d: the report, changed
    /usr/bin/python3 -c 'import json,sys; d=json.load(open("report.json")); exec(sys.argv[1]); json.dump(d,open(sys.argv[2],"w"))' "$1" "$M"
}
edit_format() {
    /usr/bin/python3 -c 'import json,sys; d=json.load(open("format.json")); exec(sys.argv[1]); json.dump(d,open(sys.argv[2],"w"))' "$1" "$F"
}
refuses() { # NAME PLACE: lint exits 3, names the place, prints nothing
    "$REPERF" lint $ID >out 2>err
    is "$? $(wc -c <out) $(grep -cE -- "$2" err)" "3 0 1" "manifest, $1: exit 3 with the place"
    back
}

# --- manifests ---------------------------------------------------------------------------------------
bad=0
size=$(stat -c %s report.json)
for ((at = 0; at < size - 1; at += 450)); do
    head -c "$at" report.json >"$M"
    "$REPERF" lint $ID >out 2>err
    [ "$?" = 3 ] && [ ! -s out ] && grep -q ":[0-9]*:[0-9]*: " err || bad=$((bad + 1))
done
is "$bad" 0 "manifest cut at every 450th byte: exit 3 with line and column"
{ printf '\xef\xbb\xbf'; cat report.json; } >"$M"; refuses "byte order mark" ":1:1: "
sed '0,/"title": "/s//"title": "\xff/' report.json >"$M"; refuses "bad UTF-8" ":[0-9]+:[0-9]+: bad UTF-8"
sed '0,/"title": "/s//"title": "\\u0000/' report.json >"$M"; refuses "U+0000" "U\+0000"
sed '0,/"title": "/s//"title": "\\u001b[31m/' report.json >"$M"; refuses "ESC in a title" "without a control character"
sed '0,/"id"/s//"id": "x", "id"/' report.json >"$M"; refuses "duplicate key" 'duplicate key "id"'
{ cat report.json; echo '{}'; } >"$M"; refuses "a second document" "nothing after the document"
head -c 300000 /dev/zero | tr '\0' '[' >"$M"; refuses "deep nesting" "nested too deeply"
truncate -s 100M "$M"; refuses "100 MB" "104857600 bytes, expected at most"
rm "$M" && mkdir "$M"; refuses "a folder in its place" "regular file"
rm "$M" && mkfifo "$M"; refuses "a FIFO" "regular file"
rm "$M" && ln -s "$ID.json" "$M"; refuses "a link to itself" "symbolic links"
edit 'd["cases"]=[]'; refuses "no cases" '\$\.cases: expected at least 1 items'
edit 'd["id"]="other"'; refuses "another id than the file's name" "as the file is named"
edit 'd["cases"][0]["cells"][0]["unit"]="furlongs"'; refuses "wrong unit" '\$\.cases\[0\]\.cells\[0\].*unit'
edit 'd["cases"][0]["cells"][0]["printed"]="1e3"'; refuses "a number that is not plain" "plain decimal"
edit 'd["cases"] *= 600'; refuses "ten thousand cases" '\$\.cases: '
edit 'd["cases"] *= 2'; refuses "every case twice" '\$\.cases\[[0-9]+\]'
for path in ../../../../etc/passwd /etc/passwd 'a/../../x' $'a\nb'; do
    edit "[c for c in d['cases'] if c['logs']][0]['logs']=['''$path''']"
    "$REPERF" audit $ID --logs /tmp >out 2>err
    is "$? $(wc -c <out)" "3 0" "a log outside its folder is refused: ${path@Q}"
done
back
# Formats that the report does not name are read, too.
N="$D/manifests/formats/timm.json"
refused() { # NAME PLACE
    for command in lint audit; do
        "$REPERF" $command $ID >out 2>err
        is "$? $(wc -c <out) $(grep -cE -- "$2" err)" "3 0 1" "$command: $1"
    done
}
cp "$N" other.json
sed -i 's/"scope": "/&any/' "$N"; refused "a format that no report names" 'timm\.json:\$\.series\[0\]'
cp other.json "$N"
cp "$N" "$D/manifests/formats/tim.json"; refused "a shipped format under another name" 'expected id "tim" as the file is named'
rm "$D/manifests/formats/tim.json"
jq '.conditions -= ["sequence_length"]' "$ROOT/manifests/vocabulary.json" >"$D/manifests/vocabulary.json"
refused "a shipped format with words that it does not know" '"sequence_length" is not in the list of conditions'
rm "$D/manifests/vocabulary.json"
edit_format 'd["series"][0]["pattern"]="(((("'
"$REPERF" measure /dev/null >out 2>err
is "$? $(grep -c 'mmseg.json:\$\.series\[0\]: pattern: character 5' err)" "3 1" "a pattern that does not compile: exit 3 with the place"
edit_format 'd["series"][0]["pattern"]="time: [0-9.]+"'
"$REPERF" measure /dev/null >out 2>err
is "$? $(grep -c 'mmseg.json:\$\.series\[0\]' err)" "3 1" "a pattern without a value group: exit 3 with the place"
back
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    chmod 755 "$T" && chmod 600 "$M"
    exits 3 "a manifest that may not be read" as_nobody "$REPERF" lint $ID
    chmod 644 "$M"
else
    skip "a manifest that may not be read" "this is not root, or setpriv is missing"
fi
mkdir -p none/manifests/{reports,formats}
for command in lint audit report; do
    exits 3 "$command --all of no reports does not hold" env REPERF_ROOT="$T/none" "$REPERF" "$command" --all
done

# --- logs ----------------------------------------------------------------------------------------------
verdict() { /usr/bin/python3 -c 'import json; d=json.load(open("out")); print(d["verdict"], d["value"])'; }
measures() { # STATUS "VERDICT VALUE" NAME FILE FORMAT
    "$REPERF" measure "$4" --format "$5" --json >out 2>err
    is "$? $(verdict)" "$1 $2" "log, $3"
}
: >zero.log; measures 9 "no_metric None" "zero bytes" zero.log mmseg
measures 9 "no_metric None" "/dev/null" /dev/null auto
head -c 3000000 /dev/zero | tr '\0' x >long.log
leaves 9 output "" "log, an endless line: nothing half on standard output" "$REPERF" measure long.log --format mmseg --json
like "$(cat "$T/err")" "line at byte 0 is longer" "it says where"
exits 9 "log, a folder of logs none of which is one" "$REPERF" measure . --json
mkdir -p nothing
exits 2 "log, a folder without one" "$REPERF" measure nothing --json
exits 2 "log, not there" "$REPERF" measure nowhere.log --json
truncate -s 300M sparse.log; measures 9 "no_metric None" "a sparse file" sparse.log mmseg
stop='{"event":"run_stop","steps":3,"warmup_steps":0,"rank":0,"elapsed_ns":3,"samples_per_s":4,"loss_first":1,"loss_last":1}'
start='{"event":"run_start","ranks":1,"precision":"fp32","batch":4,"steps":3}'
{
    echo "$start"
    printf '{"event":"step","step":%s,"steps":3,"rank":0,"loss":1,"step_time_ns":1,"samples_per_s":4,"lr":0.1}\n' 1 2 3
    echo "$stop"
} >good.log; measures 0 "ok 4" "a whole one" good.log reperf
size=$(stat -c %s good.log) bad=0
for ((cut = 2; cut < size; cut += 9)); do
    head -c $((size - cut)) good.log >cut.log
    "$REPERF" measure cut.log --format reperf --json >out 2>err
    [ "$?" = 9 ] || bad=$((bad + 1))
done
is "$bad" 0 "log, cut at every 9th byte: never a value"
# --- audits that did not look ------------------------------------------------------------------------
logs_id() { /usr/bin/python3 -c 'import json,sys; d=json.load(open("out")); print(*sorted({f["id"] for r in d["reports"] for f in r["findings"]} & set(sys.argv[1:])))' "$@"; }
leaves 2 output "" "audit, a logs folder that is not there: nothing half on standard output" "$REPERF" audit $ID --logs "$T/nowhere" --json
if need_shared "audit of changed logs"; then
    TF=dlperf-tf2-resnet50
    mkdir logs && cp -R "$SHARED/published/logs/dlperf-e36df2e" logs/ && chmod -R u+w logs
    one=$(find logs -name 'rn50_b128_fp32_1.log' | head -n1)
    cp "$one" one.log
    "$REPERF" audit $TF --logs logs --json >out 2>err
    is "$(logs_id log-changed log-without-number log-missing)" "" "the published logs are those that are recorded"
    sed '1s/^/ /' one.log >"$one"
    "$REPERF" audit $TF --logs logs --json >out 2>err
    is "$? $(logs_id log-changed log-without-number log-missing)" "1 log-changed" "one byte more in a log: log-changed"
    : >"$one"
    "$REPERF" audit $TF --logs logs --json >out 2>err
    is "$? $(logs_id log-changed log-without-number log-missing)" "1 log-changed log-without-number" "an empty log: its cells were not checked"
    rm "$one" && ln -s /etc/passwd "$one"
    "$REPERF" audit $TF --logs logs --json >out 2>err
    is "$? $(logs_id log-changed log-without-number log-missing)" "1 log-changed log-without-number" "a link to another file is seen by its digest"
    rm "$one"
    "$REPERF" audit $TF --logs logs --json >out 2>err
    is "$? $(logs_id log-changed log-without-number log-missing)" "1 log-missing" "a log that is gone"
    mkfifo "$one"
    exits 10 "a FIFO among the logs does not hang" timeout 300 "$REPERF" audit $TF --logs logs
fi

# --- tensors and training ------------------------------------------------------------------------------
tensors() { # HEADER DATA_BYTES: what else is refused of them is in unit/test_wl_safetensors.c
    { printf '%b' "\\x$(printf %x "${#1}")\\0\\0\\0\\0\\0\\0\\0" && printf %s "$1" && head -c "$2" /dev/zero; } >in.st
}
rejects() { # NAME TEXT
    "$TRAIN" --model resnet50 --check in.st --out out.st >out 2>err
    is "$? $(grep -cE -- "$2" err) $(find . -name 'out.st*' | wc -l)" "9 1 0" "tensors, $1: exit 9, said why, nothing written"
}
if [ -x "$TRAIN" ]; then
    tensors '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}' 4; rejects "cut" "in 4 bytes of data"
    tensors '{"input":{"dtype":"F32","shape":[0,3,32,32],"data_offsets":[0,0]}}' 0; rejects "batch 0" "tensor input"
    for option in "--batch 0" "--batch -1" "--batch 1000000000" "--image 0" "--steps 0" "--lr nan" "--lr inf" "--momentum 1" "--device cuda" "--model none" "--data x"; do
        # shellcheck disable=SC2086
        exits 2 "reperf-train $option" "$TRAIN" --model resnet50 --image 32 --batch 2 --steps 1 $option
    done
    exits 10 "reperf-train into a full disk" bash -c '"$1" --model bert_nano --batch 2 --steps 1 >/dev/full' _ "$TRAIN"
    exits 10 "reperf-train with standard output closed" bash -c '"$1" --model bert_nano --batch 2 --steps 1 >&-' _ "$TRAIN"
else
    skip "tensors and training" "reperf-train is not built"
fi

# --- evidence --------------------------------------------------------------------------------------------
for file in /etc/passwd /dev/null /dev/zero "$D"; do
    exits 5 "verify $file" timeout 300 "$REPERF" verify "${file/#$D/$T/none}" --unsigned
done
exits 5 "replay of no archive" "$REPERF" replay /etc/passwd

# --- the command line ------------------------------------------------------------------------------------
commands=$("$REPERF" --help | awk '/^  [a-z]/ { print $1 }')
bad_help='' bad_option=''
for command in $commands; do
    "$REPERF" "$command" --help >out 2>err || bad_help+=" $command"
    "$REPERF" "$command" --no-such-option >out 2>err
    [ "$?" = 2 ] && [ ! -s out ] || bad_option+=" $command"
done
is "$bad_help" "" "--help of every command exits 0"
is "$bad_option" "" "an unknown option of every command exits 2"
for args in "list" "list --json" "lint --all --json" "history" "plan paddle-perf-2020 --json" "--help" "--version"; do
    exits 10 "standard output closed: $args" bash -c "\"\$1\" $args >&-" _ "$REPERF"
    exits 10 "standard output full: $args" bash -c "\"\$1\" $args >/dev/full" _ "$REPERF"
done
exits 1 "standard error closed" bash -c '"$1" lint '$ID' >out 2>&-' _ "$REPERF"
exits 10 "state is a file" env REPERF_STATE="$T/report.json" "$REPERF" run paddle-perf-2020 --case 'resnet50/reperf/fp32/n1g1/*' --profile smoke
exits 10 "history of a state that is a file" env REPERF_STATE="$T/report.json" "$REPERF" history
exits 2 "ESC in an operand" "$REPERF" audit "$(printf 'x\033[2Jy')"
like "$(cat -v "$T/err")" '"x\?\[2Jy"' "does not reach the terminal"
mkfifo pipe
timeout 600 cat pipe >page.html &
reader=$!
exits 0 "a page goes through a pipe" timeout 600 "$REPERF" report $ID --html pipe
wait "$reader"
like "$(head -c 100 page.html)" "<!doctype html>" "whole"
succeeds "the pipe is still there" test -p pipe
exits 0 "no home, no terminal" env -i "$REPERF" history
exits 0 "the folder is gone" bash -c 'mkdir gone && cd gone && rmdir ../gone && "$1" list' _ "$REPERF"
exits 2 "a command of 100,000 letters" "$REPERF" "$(head -c 100000 /dev/zero | tr '\0' a)"
exits 2 "a report of 100,000 letters" "$REPERF" audit "$(head -c 100000 /dev/zero | tr '\0' a)"
# --- inventories -------------------------------------------------------------------------------------
V="$ROOT/manifests/inventories/v100-4x8.json"
bad=0
for ((at = 0; at < $(stat -c %s "$V") - 2; at += 25)); do
    head -c "$at" "$V" >inventory.json
    "$REPERF" nodes list ./inventory.json >out 2>err
    [ "$?" = 3 ] && [ ! -s out ] && grep -q "inventory.json:[0-9]*:[0-9]*: " err || bad=$((bad + 1))
done
is "$bad" 0 "inventory cut at every 25th byte: exit 3 with line and column"
inventory() { # NAME JQ PLACE
    jq "$2" "$V" >inventory.json
    "$REPERF" nodes exec ./inventory.json -- true >out 2>err
    is "$? $(wc -c <out) $(grep -cE -- "$3" err)" "3 0 1" "inventory, $1: exit 3 with the place"
}
inventory "a name that is a command" '.nodes[0].name = "$(touch hit)"' '\$\.nodes\[0\]: name: '
inventory "a name with a line break" '.nodes[0].name = "a\nrm x;"' '\$\.nodes\[0\]: name: '
inventory "a name that leaves its folder" '.nodes[0].name = "../x"' '\$\.nodes\[0\]: name: '
inventory "an address that is an option" '.nodes[0].address = "-oProxyCommand=touch hit"' '\$\.nodes\[0\]: address: '
inventory "a work folder that leads upwards" '.nodes[0].work_folder = "/scratch/../etc"' '\$\.nodes\[0\]\.work_folder: '
inventory "a registry with a user" '.registry = "user:secret@h:5000"' '\$\.registry: '
inventory "five thousand nodes" '.nodes = [range(5000) | {name: "n\(.)", address: "a", port: null, user: null, gpus: 0, fast_address: null, work_folder: null, groups: []}]' '\$\.nodes: '
succeeds "nothing of it was run" test ! -e hit
# --- lists end with an error that names the limit, never without a word ---
awk 'BEGIN { for (run = 1; run <= 4200; run++) { printf "{\"event\":\"run_start\",\"version\":\"v%d\"}\n", run
    for (step = 1; step <= 2; step++) printf "{\"event\":\"step\",\"step\":%d,\"steps\":2,\"rank\":0,\"loss\":1,\"samples_per_s\":8}\n", step } }' >facts.log
"$REPERF" measure --format reperf facts.log >out 2>err
is "$? $(grep -c 'more than 4096 different facts in one log' err)" "9 1" "more facts than a log may state: exit 9"
mapfile -t names < <(printf 'source:https://h/r@%040d\n' {1..4097})
"$REPERF" verify "${names[@]}" >out 2>err
is "$? $(grep -c 'more than 4096 datasets, images and sources at once' err)" "2 1" "more names than one command takes: exit 2"
for set in 'a;touch hit' '$(touch hit)' '-oProxyCommand=touch' 'n[1-99999999999]' 'a[1-4096]b[1-4096]' "$(printf 'a[1],%.0s' {1..9000})" 'root@host'; do
    "$REPERF" nodes exec -- "$set" true >out 2>err
    is "$? $(wc -c <out) $(grep -cE "no list of hosts: " err)" "2 0 1" "hosts \"${set:0:24}\": exit 2, and why"
done
tap_done
