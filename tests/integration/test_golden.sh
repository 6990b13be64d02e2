#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: evidence
# Evidence and documents of an earlier version (tests/golden): archives verify and replay byte for byte, documents keep their keys.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2016
source "$(dirname "$0")/../tap_lib.sh"
G=tests/golden
S=manifests/schema
V=(/usr/bin/python3 tests/integration/validate.py)
C=(/usr/bin/python3 tests/integration/check_golden.py)

cells() { # ARCHIVE: case, verdict and value of each cell that verified bytes hold
    tar --zstd -xOf "$1" --wildcards '*result.json' | jq -r '.cells[] | [.case, .verdict, .value // "-", [.repeats[].counts]] | map(tostring) | join(" ")'
}
for archive in "$G"/*.tar.zst; do
    name=${archive##*/}
    exits 0 "$name: verified, signer known" "$REPERF" verify "$archive" --key "$G/signer.pub"
    like "$(cat "$T/out")" "by derivation 1, an earlier one than today's" "$name: whose derivation is said"
    exits 0 "$name: replayed byte for byte" "$REPERF" replay "$archive"
    like "$(cat "$T/out" "$T/err")" '20261122T000000.000Z-0000000[14]' "$name: it is that run"
done
is "$(cells "$G/cluster.tar.zst")" "$(cat "$G/cluster.cells")" "cluster.tar.zst: its cells"
is "$(cells "$G/local.tar.zst")" "$(cat "$G/local.cells")" "local.tar.zst: its cells"

# A forged value is refused by replay, so that the above can fail.
mkdir "$T/forged"
tar --zstd -xf "$G/local.tar.zst" -C "$T/forged"
forged=$(dirname "$(find "$T/forged" -name result.json)")
exits 0 "unpacked, it replays" "$REPERF" replay "$forged"
sed -i 's/"value":8,/"value":9,/; s/"value": 8,/"value": 9,/' "$forged/result.json"
exits 5 "with another value in result.json it does not" "$REPERF" replay "$forged"

jq '.derivation = 99' "$forged/lock/lock.json" >"$T/lock.json" && cp "$T/lock.json" "$forged/lock/lock.json"
exits 5 "nor by a derivation that this program does not know" "$REPERF" replay "$forged"
like "$(cat "$T/err")" 'derivation' "which is said"

# Two ranks that both print the figure of the whole job. Since derivation 4 (log/series.h: the causes) such a log does not count; before,
# it did, and its values by 2 and 3 are checked by tests/unit/test_rule.c. A run does not replay by another derivation than its own.
mkdir "$T/ranks"
cp tests/integration/fake_train.sh "$T/ranks/train.sh"
echo ranks >"$T/ranks/mode"
exits 9 "a run of two ranks that both print for the job does not count" env REPERF_TRAIN="$T/ranks/train.sh" REPERF_STATE="$T/ranks" "$REPERF" run paddle-perf-2020 --profile smoke \
    --case 'resnet50/reperf/fp32/n1g1/*' --repeats 1
E=$(echo "$T"/ranks/runs/2*/evidence)
is "$(jq '[.derivation, .cells[0].value, .cells[0].repeats[0].counts]' -c "$E/result.json")" '[9,null,false]' "and has no value"
exits 0 "and replays" "$REPERF" replay "$E"
jq '.derivation = 3' "$E/lock/lock.json" >"$T/lock.json" && cp "$T/lock.json" "$E/lock/lock.json"
sed -i 's/\("derivation": *\)9/\13/' "$E/result.json"
exits 5 "it does not by the derivation before, by which it would count" "$REPERF" replay "$E"

today() { # NAME STATUS COMMAND...: its document of today against the kept one and the schema of both
    local name=$1 status=$2 schema=$1
    shift 2
    case $name in list-*) schema=list-output ;; esac
    exits "$status" "$name: today's document" "$REPERF" "$@" --json
    cp "$T/out" "$T/today.json"
    exits 0 "$name: it and the kept one are valid" "${V[@]}" "$S/$schema.json" "$G/$name.json" "$T/today.json"
    sed 's/^/# /' "$T/out"
    exits 0 "$name: it has all keys of the kept one" "${C[@]}" "$G/$name.json" "$T/today.json"
    grep -v ' 0 changed$' "$T/out" | sed 's/^/# /'
}
cp tests/integration/fake_train.sh "$T/train.sh"
"$T/train.sh" >"$T/steps.log"
today measure-output 0 measure "$T/steps.log"
today audit-output 1 audit paddle-perf-hrnetw18
today plan 0 plan paddle-perf-2020 --profile smoke --case 'resnet50/*/fp32/n1g1/*'
for kind in reports datasets images formats rules inventories findings; do
    today "list-$kind" 0 list "$kind"
done
today list-cases 0 list cases paddle-perf-hrnetw18
printf '%s\n' '#!/bin/sh' 'case " $* " in *" --describe "*) ;; *) echo run >>"$0.n" ;; esac' \
    'case $(wc -l <"$0.n") in 3) echo nan ;; 4) echo fails ;; 5) echo short ;; esac >"${0%/*}/mode"' 'exec "${0%/*}/train.sh" "$@"' >"$T/turns.sh"
chmod +x "$T/turns.sh"
: >"$T/turns.sh.n"
REPERF_TRAIN="$T/turns.sh" today run-output 7 run paddle-perf-2020 --case 'resnet50/reperf/fp32/*' --case 'resnet50/paddle/fp32/n1g1/*' \
    --profile smoke --repeats 2 -C 'stacks[reperf].env.OMP_NUM_THREADS=2'
is "$(cat "$REPERF_STATE"/runs/2*/evidence/result.json | jq .derivation)" "$(cat "$REPERF_STATE"/runs/2*/evidence/lock/lock.json | jq .derivation)" "a run of today states the derivation that its lock froze"
exits 0 "and replays" "$REPERF" replay "$(ls -d "$REPERF_STATE"/runs/2*)"
today list-runs 0 list runs

jq 'del(.reports[0].cells[0].verdict)' "$G/audit-output.json" >"$T/less.json"
exits 1 "a key that went is seen" "${C[@]}" "$G/audit-output.json" "$T/less.json"
jq '.reports[0].cells[0].published = "19.4"' "$G/audit-output.json" >"$T/less.json"
exits 1 "a number that became text is seen" "${C[@]}" "$G/audit-output.json" "$T/less.json"
tap_done
