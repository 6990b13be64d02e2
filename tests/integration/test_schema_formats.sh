#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: judge
# What `measure --json` prints is valid against its schema by an independent validator, which refuses planted faults; a fact has a name
# of the closed list of conditions.
# shellcheck source=tests/tap_lib.sh disable=SC1091
. "$(dirname "$0")/../tap_lib.sh"
S=manifests/schema/measure-output.json

line() { printf 'global step %s, epoch: 0, batch: 1, loss: 9.2, speed: 4.5 step/s, ips: %s sequences/s\n' "$@"; }
{ line 20 100; line 40 110; } >"$T/ok.log"
{ line 20 100; line 40 nan; } >"$T/nan.log"
{ line 20 100; line 10 100; } >"$T/two.log"
line 20 100 | head -c 60 >"$T/cut.log"
: >"$T/empty.log"
n=0
for log in ok nan two cut empty; do
    for args in "--format paddlenlp" "" "--rule paddlenlp/mean --gpus 8 --format paddlenlp"; do
        n=$((n + 1))
        # shellcheck disable=SC2086
        "$REPERF" measure "$T/$log.log" $args --json >"$T/$n.json" 2>/dev/null
    done
done
"$REPERF" measure "$T/ok.log" "$T/absent.log" "$T/two.log" --json >"$T/several.json" 2>/dev/null
exits 0 "$n documents about one log and one about several are valid" validates "$S" "$T"/[0-9]*.json "$T/several.json"
head -n 5 "$T/out" | sed 's/^/# /'
refused() { # NAME SED-SCRIPT
    sed -E "$2" "$T/1.json" >"$T/planted.json"
    if cmp -s "$T/1.json" "$T/planted.json"; then ok 1 "$1: the fault was planted"; else
        exits 1 "refused: $1" validates "$S" "$T/planted.json"
    fi
}
refused "an unknown verdict" 's/"verdict":"ok"/"verdict":"fine"/'
refused "a value without a good verdict" 's/"verdict":"ok"/"verdict":"nan"/'
refused "an unknown member" 's/"records"/"speed":1,"records"/'
refused "a member that is missing" 's/"unit":"[^"]*",//'
refused "a sample without its scope" 's/"scope":"rank",//'
refused "an unknown unit" 's/sequences\/s/seq/'

if in_test_all "measure's output on every published log against its schema" && need_shared "measure's output on every published log"; then
    find "$SHARED/published/logs" -type f | sort >"$T/all"
    mapfile -t all <"$T/all"
    "$REPERF" measure "${all[@]}" --json >"$T/all.json" 2>/dev/null
    exits 0 "what it prints about ${#all[@]} published logs is valid" validates "$S" "$T/all.json"
    head -n 5 "$T/out" | sed 's/^/# /'
fi

# A fact under a name that reports do not use could never be compared with a report.
cp -r manifests "$T/root" && mkdir "$T/data" && mv "$T/root" "$T/data/manifests"
sed -i '0,/"name": "cuda"/s//"name": "cuba"/' "$T/data/manifests/formats/paddleseg.json"
fails 3 'paddleseg.json:\$\.facts\[[0-9]+\].*cuba' "a fact whose name is not in the list of conditions is refused" env REPERF_ROOT="$T/data" "$REPERF" measure "$T/ok.log"
tap_done
