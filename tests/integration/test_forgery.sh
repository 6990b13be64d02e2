#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: evidence
# Forged evidence (the table: tests/integration/forgeries): edited before it is sealed, next to its journal, and as an archive written by hand and signed with
# the forger's own key. None is sealed, none is verified, none stops a listing.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2317,SC2119,SC2015,SC2010,SC2012,SC2016,SC2034
. "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/run_lib.sh disable=SC1091
. "$ROOT/tests/integration/run_lib.sh"
export TMPDIR=$T
F=(/usr/bin/python3 "$ROOT/tests/integration/forge_evidence.py")
"$REPERF" keygen "$T/honest" >/dev/null
"$REPERF" keygen "$T/forger" >/dev/null
exits 0 "a run of two repeats" smoke --repeats 2 --key "$T/honest"
R=$(run_folder)
cp -r "$R" "$T/run"
cp -r "$R/evidence" "$T/sealed"
"${F[@]}" --repack "$T/sealed" "$T/copy.tar.zst" "$T/forger"
exits 0 "an archive that is written by hand and not edited holds, under the forger's key" "$REPERF" verify "$T/copy.tar.zst" --key "$T/forger.pub"
exits 5 "and not under the honest one" "$REPERF" verify "$T/copy.tar.zst" --key "$T/honest.pub"
cp -r "$T/sealed" "$T/plain" && rm "$T/plain"/{SHA256SUMS,*.dsse.json,ro-crate-metadata.json}
exits 0 "evidence that is not edited is sealed" "$REPERF" seal "$T/plain" -o "$T/plain.tar.zst"

by_hand=
refused() { # NAME COMMAND...: status 5, and no signal
    local name=$1
    shift
    "$@" >"$T/out" 2>"$T/err"
    local got=$?
    [ "${differs-}$got" != yes1 ] || ! grep -q '^ *value ' "$T/out" || got=5 # what is derived is another value, and said
    is "$got" 5 "$name"
    [ "$got" = 5 ] || head -c 400 "$T/err" | sed 's/^/# /'
}
# --- the words of the table
zeros=$(printf '0%.0s' {1..64})
log=$(cd "$T/sealed" && find logs/raw -name repeat-1.log) log2=${log%1.log}2.log
outcome=${log/raw/outcome} outcome=${outcome%.log}.json outcome2=${outcome%1.json}2.json
series=${log/logs\/raw/series} series=${series%.log}.json series2=${series%1.json}2.json
sub() { sed -zE "s#$2#$3#${4-}" "$1" >"$T/edited" && cp "$T/edited" "$1"; } # FILE ERE NEW [g]: the first, or each
edit() { command jq "${@:2}" "$1" >"$T/edited" && cp "$T/edited" "$1"; }  # FILE JQ
crate() { edit ro-crate-metadata.json 'def entity($id): .["@graph"][] | select(.["@id"] == $id); '"$1"; }
faster() { sub "$1" '"samples_per_s": ?8(\.0)?' '"samples_per_s":80.0' g; }
swap() { mv "$1" "$T/swapped" && mv "$2" "$1" && mv "$T/swapped" "$2"; }
redigest() { # the log's digest made good in its outcome record, its series and result.json
    sed -i "s/$(jq -r .log_sha256 "$outcome")/$(sha256sum <"$log" | cut -c1-64)/; s/: $(jq .log_bytes "$outcome")\b/: $(stat -c %s "$log")/" "$outcome" "$series" result.json
}
payload() { # FILE ERE NEW: in what a statement says
    jq -j .payload "$1" | base64 -d >"$T/payload" && sub "$T/payload" "$2" "$3" && edit "$1" -c --arg payload "$(base64 -w0 "$T/payload")" '.payload = $payload'
}
journal() { # JQ of the list of records
    command jq -cs 'def zeros: "0" * 64; def at($state): map(.state) | index($state); def of_file($state; $part): .[at($state)].files |= with_entries(if .key | contains($part) then .value = zeros else . end);
        '"$1 | .[]" ../journal.jsonl >"$T/edited" && cp "$T/edited" ../journal.jsonl && /usr/bin/python3 "$ROOT/tests/integration/rechain.py" ../journal.jsonl
}
forge() { # FROM EVIDENCE COPY: EVIDENCE, a folder of a copy of FROM at COPY, is edited
    rm -rf "$3" && cp -r "$1" "$3" && (cd "$2" && eval "$edits") && ! diff -rq --no-dereference "$1" "$3" >/dev/null 2>&1 || ok 1 "$name: cannot be forged"
}
in_test_all "each of them also as an archive, written by hand" && by_hand=1
while IFS= read -r row; do
    name=${row%% :: *} edits=${row#* :: } where=${edits%% :: *} edits=${edits#* :: }
    case $where in
    folder)
        forge "$T/plain" "$T/forged" "$T/forged"
        rm -f "$T/forged.tar.zst"
        refused "$name: not sealed" "$REPERF" seal "$T/forged" -o "$T/forged.tar.zst" --key "$T/forger"
        [ ! -e "$T/forged.tar.zst" ] || ok 1 "$name: leaves an archive"
        [ -n "$by_hand" ] || continue
        forge "$T/sealed" "$T/forged" "$T/forged"
        [ -z "$(find "$T/forged" -not -type f -not -type d)" ] || continue # such an archive cannot be
        "${F[@]}" --repack "$T/forged" "$T/forged.tar.zst" "$T/forger" 2>"$T/err" && [ -z "$(find "$T/forged" -empty -type d)" ] &&
            differs=yes refused "$name: not verified, by its signer's own key" "$REPERF" verify "$T/forged.tar.zst" --key "$T/forger.pub"
        ;;
    archive)
        forge "$T/sealed" "$T/forged" "$T/forged"
        "${F[@]}" --repack "$T/forged" "$T/forged.tar.zst" "$T/forger"
        refused "$name: not verified, by its signer's own key" "$REPERF" verify "$T/forged.tar.zst" --key "$T/forger.pub"
        refused "$name: nor its bytes alone" "$REPERF" verify "$T/forged.tar.zst" --key "$T/forger.pub" --bytes-only
        ;;
    journal)
        rm -rf "$REPERF_STATE/runs" && mkdir "$REPERF_STATE/runs"
        forge "$T/run" "$R/evidence" "$R"
        top=$(echo "$REPERF_STATE"/runs/*)
        refused "$name: not sealed" "$REPERF" seal "$top/evidence" -o "$T/journal.tar.zst" --force
        refused "$name: not verified" "$REPERF" verify "$top/evidence" --key "$T/honest.pub"
        refused "$name: not reported" "$REPERF" report "$top"
        refused "$name: not replayed" "$REPERF" replay "$top/evidence"
        if [ -s "$top/journal.jsonl" ] && grep -q '"state":"sealed"\|garbage' "$top/journal.jsonl"; then
            refused "$name: status says so" "$REPERF" status last
            prints 0 "damaged" "$name: a listing goes on" "$REPERF" status
        fi
        answers 0 '.cells | length' 0 "$name: so does the history, which has no verdict of it" "$REPERF" history --json
        ;;
    esac
done < <(grep ' :: ' tests/integration/forgeries | grep -v '^#')

# What no folder has: members, frames and closings as reperf writes none, with the forger's own closing.
while read -r name; do
    rm -rf "$T/forged" && cp -r "$T/sealed" "$T/forged" && "${F[@]}" --container "$name" "$T/forged" "$T/forged.tar.zst" "$T/forger" || ok 1 "$name: cannot be forged"
    refused "$name: not verified, by its signer's own key" "$REPERF" verify "$T/forged.tar.zst" --key "$T/forger.pub"
    refused "$name: nor its bytes alone" "$REPERF" verify "$T/forged.tar.zst" --key "$T/forger.pub" --bytes-only
done < <("${F[@]}" --list-containers)

# The same for status, history and replay of an edited result next to an untouched journal, and of a journal without its evidence's run.
rm -rf "$REPERF_STATE/runs" && mkdir "$REPERF_STATE/runs" && cp -r "$T/run" "$R"
cp -r "$T/run" "$REPERF_STATE/runs/20200101T000000.000Z-00000000"
answers 0 '[.runs[].state] | join(" ")' "damaged sealed" "a listing of a run and of its copy under another name: the copy is damaged, the run is not" "$REPERF" status --json
answers 0 '[(.cells | length), (.damaged | length)]' "[1,1]" "the history has the cells of one, and names the other" "$REPERF" history --json
C=20200101T000000.000Z-00000000
mv "$REPERF_STATE/runs/$C/"*.tar.zst "$REPERF_STATE/runs/$C/$C.tar.zst"
for command in "report $C" "compare $C $C" "replay $C" "verify $C --key $T/honest.pub" "status $C" "resume $C" \
    "verify $REPERF_STATE/runs/$C/$C.tar.zst --key $T/honest.pub" "report $REPERF_STATE/runs/$C/$C.tar.zst" "report $REPERF_STATE/runs/$C"; do
    # shellcheck disable=SC2086
    refused "a run of another name than its folder, archive and all: ${command%% *}" "$REPERF" $command
done
rm -rf "$REPERF_STATE/runs/20200101T000000.000Z-00000000"
linked() { # WHAT
    answers 0 '[.runs[].state] | join(" ")' "damaged sealed" "a listing of a run and of $1: that is damaged, and the run is not" "$REPERF" status --json
    for command in "status $C" "report $C" "replay $C" "verify $C --key $T/honest.pub" "seal $C -o $T/linked.tar.zst"; do
        # shellcheck disable=SC2086
        refused "$1: ${command%% *}" "$REPERF" $command
    done
    rm -rf "${REPERF_STATE:?}/runs/$C"
}
ln -s "$(basename "$R")" "$REPERF_STATE/runs/$C"
linked "a link to it by another name"
mkdir "$REPERF_STATE/runs/$C" && cp "$R/journal.jsonl" "$REPERF_STATE/runs/$C/" && ln -s "$R/evidence" "$REPERF_STATE/runs/$C/evidence"
linked "a folder by another name whose evidence is a link to its"
answers 0 '.archive | length > 0' true "resuming a sealed run does nothing, and names its archive" "$REPERF" resume last --json
rm -rf "$T/forged" && cp -r "$T/sealed" "$T/forged" && sed -i 's/"value": 8,/"value": 9,/' "$T/forged/result.json"
"${F[@]}" --repack "$T/forged" "$T/forged.tar.zst" "$T/forger"
answers 0 '.cells[0].value' 8 "a forged archive alone: what is printed of it as JSON, too, is what was derived" "$REPERF" report "$T/forged.tar.zst" --json
cp "$T/forged.tar.zst" "$(echo "$R"/*.tar.zst)"
every_reader=("status last" "report last" "compare last last" "resume last" "replay last" "verify last --key $T/forger.pub" "replay $R" "report $R/evidence")
for command in "${every_reader[@]}"; do
    # shellcheck disable=SC2086
    refused "a forged archive in the run's folder: ${command}" "$REPERF" $command
done
# A valid archive that is not the one sealed there.
exits 0 "the evidence by another key" "$REPERF" seal "$R/evidence" -o "$T/other.tar.zst" --key "$T/forger" --force
cp "$T/other.tar.zst" "$(echo "$R"/*.tar.zst)"
for command in "${every_reader[@]}"; do
    # shellcheck disable=SC2086
    refused "another archive that holds in the run's folder: ${command}" "$REPERF" $command
done
prints 0 "damaged" "a listing goes on" "$REPERF" status
answers 0 '[(.cells | length), (.damaged | length)]' "[0,1]" "history goes on, without its numbers" "$REPERF" history --json
exits 0 "sealing it again is written down" "$REPERF" seal last --force --key "$T/honest"
for command in "status last" "report last" "resume last" "replay last" "verify last --key $T/honest.pub"; do
    # shellcheck disable=SC2086
    exits 0 "and repairs it: ${command%% *}" "$REPERF" $command
done
rm "$R"/*.tar.zst
refused "an archive that is gone: resume" "$REPERF" resume last
sed -i 's/"value": 8,/"value": 9,/' "$R/evidence/result.json"
for command in "status last" "resume last" "compare last last" "report last" "replay $R/evidence" "verify $R/evidence --key $T/honest.pub" "seal $R/evidence -o $T/x.tar.zst"; do
    # shellcheck disable=SC2086
    refused "an edited result: ${command%% *}" "$REPERF" $command
done

# What the archive alone cannot show: if somebody measures something else, or edits a log and derives everything from it, the signed result derives.
forget_runs
sed 's/8\.0/80/; s/500000000/50000000/' "$ROOT/tests/integration/fake_train.sh" >"$T/fake/train.sh"
exits 0 "another chain of tools, another key" smoke --repeats 1 --key "$T/forger"
is "$(jq ".cells[0].value | round" "$(run_folder)/evidence/result.json")" 80 "and a number ten times as high"
A=$(echo "$(run_folder)"/*.tar.zst)
exits 0 "its archive derives" "$REPERF" verify "$A" --key "$T/forger.pub"
exits 5 "but not under the key that is trusted" "$REPERF" verify "$A" --key "$T/honest.pub"
prints 0 "only a trusted key tells a measurement from a raw log that was edited" "and without a key" "$REPERF" verify "$A" --unsigned
prints 0 "as it states itself: not derived" "bytes alone" "$REPERF" verify "$A" --unsigned --bytes-only
answers 0 .derived false "and says so in its document" "$REPERF" verify "$A" --unsigned --bytes-only --json
exits 2 "--bytes-only is for archives" "$REPERF" verify cityscapes --bytes-only

# An interrupted run is not made to be judged by other rules: what its lock says of them means nothing.
forget_runs
cp "$ROOT/tests/integration/fake_train.sh" "$T/fake/train.sh"
mode 'other "model":"resnet50"=>"model":"bert-base"'
exits 137 "a run of another model than its case's, killed at its plan" env REPERF_CRASH_AFTER=1 "$REPERF" run paddle-perf-2020 --case "$CASE" --profile smoke --repeats 1
cp "$(run_folder)/evidence/lock/lock.json" "$T/lock.json"
sed -i 's/^{$/{\n  "derivation": 4,/' "$(run_folder)/evidence/lock/lock.json"
is "$(jq .derivation "$(run_folder)/evidence/lock/lock.json")" 4 "whose lock asks for the rules of old"
refused "it is not resumed" "$REPERF" resume last --key "$T/forger"
like "$(cat "$T/err")" 'lock/lock.json: changed since the run wrote it' "which is said"
cp "$T/lock.json" "$(run_folder)/evidence/lock/lock.json"
exits 9 "resumed as it was, it does not count" "$REPERF" resume last --key "$T/forger"
answers 0 '[.result, .differences]' '["FAILED",[]]' "it verifies as what it is, failed" "$REPERF" verify last --key "$T/forger.pub" --json
rm -rf "$T/forged" && cp -r "$(run_folder)/evidence" "$T/forged"
sed -i 's/^{$/{\n  "derivation": 4,/' "$T/forged/lock/lock.json"
answers 0 '.differences[].text' 'lock/lock.json:$.derivation: a key of earlier programs, without a meaning today' "where no journal is, the key means nothing, and is listed" "$REPERF" replay "$T/forged" --json
tap_done
