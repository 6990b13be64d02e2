#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: evidence
# Evidence and documents of an earlier version (tests/golden): archives verify and replay with the same values, documents keep their keys.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2016
source "$(dirname "$0")/../tap_lib.sh"
G=tests/golden
S=manifests/schema
C=(/usr/bin/python3 tests/integration/check_golden.py)

cells() { # ARCHIVE: case, verdict and value of each cell that verified bytes hold
    tar --zstd -xOf "$1" --wildcards '*result.json' | jq -r '.cells[] | [.case, .verdict, .value // "-", [.repeats[].counts]] | map(tostring) | join(" ")'
}
for archive in "$G"/*.tar.zst; do
    name=${archive##*/}
    exits 0 "$name: verified, signer known" "$REPERF" verify "$archive" --key "$G/signer.pub"
    tells 0 '20261122T000000.000Z-0000000[14]' "$name: replayed with the same values, as that run" "$REPERF" replay "$archive"
done
is "$(cells "$G/cluster.tar.zst")" "$(cat "$G/cluster.cells")" "cluster.tar.zst: its cells"
is "$(cells "$G/local.tar.zst")" "$(cat "$G/local.cells")" "local.tar.zst: its cells"

# A forged value is refused by replay, so that the above can fail.
mkdir "$T/forged"
tar --zstd -xf "$G/local.tar.zst" -C "$T/forged"
forged=$(dirname "$(find "$T/forged" -name result.json)")
exits 0 "unpacked, it replays" "$REPERF" replay "$forged"
cp -r "$forged" "$T/old"
sed -i 's/"value":8,/"value":9,/; s/"value": 8,/"value": 9,/' "$forged/result.json"
prints 1 'value +result.json:[$].cells.1..*: kept 9, today.s rules derive 8' "with another value in result.json it does not" "$REPERF" replay "$forged"

# What was started on the nodes is held against what was pinned and locked.
rm -rf "$T/started" && mkdir "$T/started" && tar -C "$T/started" --zstd -xf tests/golden/cluster.tar.zst
commands=$(find "$T/started/logs/commands" -path '*/n4g8/*' -name repeat-1.json)
cp "$commands" "$T/commands.json"
started() { # JQ-EDIT of the commands' words: what the replay says of taints
    jq --indent 2 ".jobs[1].argv |= map($1)" "$T/commands.json" >"$commands"
    cmp -s "$commands" "$T/commands.json" && echo "no edit"
    "$REPERF" replay "$T/started" --json 2>"$T/err" | jq -r '.differences[].text' | grep taints
}
"$REPERF" report "$T/started" --html "$T/started.html" >"$T/out" 2>&1
like "$(tr -d '\n' <"$T/started.html")" "by the nodes(.|&#39;) own word alone: [^.]*cpu[^.]*image" "what the nodes alone say is marked, the engines' image among it"
started 'if startswith("sha256:") then "sha256:" + "7" * 64 else . end' >"$T/said"
like "$(cat "$T/said")" 'taints' "another image on one node is a doubt"
"$REPERF" report "$T/started" >"$T/out" 2>&1
like "$(cat "$T/out")" 'its commands name two images' "which says so"
started 'if . == "reperf-train" then "/srv/reperf/bin/" + "0" * 64 + "/reperf-train" else . end' >"$T/said"
"$REPERF" report "$T/started" >"$T/out" 2>&1
like "$(cat "$T/out")" 'its command names a reperf-train of SHA-256 0{64}, locked was' "so is another program"

# Another wording, and a key that was added since, differ and are no failure. A number of rules, as archives of old have it, means nothing.
sed -i 's/claims no number/claims nothing/' "$T/old/result.json"
jq --indent 2 '{derivation: 4} + del(.files)' "$T/old/lock/lock.json" >"$T/lock.json" && cp "$T/lock.json" "$T/old/lock/lock.json"
answers 0 '[.differences[].kind] | unique' '["wording"]' "another wording and other keys are no failure: they are listed" "$REPERF" replay "$T/old" --json
is "$(jq -r '.differences[].text' "$T/out" | cut -d: -f2 | sort -u | tr '\n' ' ')" '$.cells[1].why $.derivation $.files ' "each with its place"
jq --indent 2 '.note = "trust me"' "$T/old/lock/lock.json" >"$T/lock.json" && cp "$T/lock.json" "$T/old/lock/lock.json"
exits 5 "a key that nobody writes is one" "$REPERF" replay "$T/old"

# Two ranks that both print the figure of the whole job: such a log does not count, whatever the run's folder says of the rules.
mkdir "$T/ranks"
cp tests/integration/fake_train.sh "$T/ranks/train.sh"
echo ranks >"$T/ranks/mode"
exits 9 "a run of two ranks that both print for the job does not count" env REPERF_TRAIN="$T/ranks/train.sh" REPERF_STATE="$T/ranks" "$REPERF" run paddle-perf-2020 --profile smoke \
    --case 'resnet50/reperf/fp32/n1g1/*' --repeats 1
E=$(echo "$T"/ranks/runs/2*/evidence)
is "$(jq '[.cells[0].value, .cells[0].repeats[0].counts]' -c "$E/result.json")" '[null,false]' "and has no value"
exits 0 "and replays" "$REPERF" replay "$E"
is "$(jq -r '"\(.program_version) \(.files | length)"' "$E/lock/lock.json")" "$("$REPERF" --version | sed -n '1s/reperf //p') $(($(find "$E/manifest" -type f | wc -l) + 1))" "its lock names the program's version and each frozen file"
is "$(jq -r '.files[] | "\(.sha256)  \(.name)"' "$E/lock/lock.json" | (cd "$E" && sha256sum -c --quiet 2>&1))" "" "by its digest, the rules among them"

today() { # NAME STATUS COMMAND...: its document of today against its schema and the keys that it had
    local name=$1 status=$2 schema=$1
    shift 2
    case $name in list-*) schema=list-output ;; esac
    exits "$status" "$name: today's document" "$REPERF" "$@" --json
    cp "$T/out" "$T/today.json"
    exits 0 "$name: it is valid" validates "$S/$schema.json" "$T/today.json"
    sed 's/^/# /' "$T/out"
    exits 0 "$name: it has all keys that it had" "${C[@]}" "$name" "$T/today.json"
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
exits 0 "a run of today replays" "$REPERF" replay "$(ls -d "$REPERF_STATE"/runs/2*)"
today list-runs 0 list runs

# The check can fail.
"$REPERF" audit paddle-perf-hrnetw18 --json >"$T/audit.json"
for edit in 'del(.reports[0].cells[0].verdict)' '.reports[0].cells[0].published = "19.4"' 'del(.reports)' '.schema_version = 2'; do
    jq "$edit" "$T/audit.json" >"$T/less.json"
    exits 1 "a document with $edit is seen" "${C[@]}" audit-output "$T/less.json"
done
tap_done
