#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: cmd
# Conveniences of the command line: the nearest name for a mistyped one, help by name, --json before the command, a page on
# standard output; and what could not be checked is not reported as clean.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2317
source "$(dirname "$0")/../tap_lib.sh"

while IFS='|' read -r words nearest; do
    read -ra argv <<<"$words"
    fails 2 "\(did you mean $nearest\?\)" "reperf $words" "$REPERF" "${argv[@]}"
done <<'TABLE'
veryfi x|verify
adudit --all|audit
audit --jsno|--json
run x --profil smoke|--profile
audit paddle-perf-2021|paddle-perf-2020
lint padle-perf-2020|paddle-perf-2020
fetch cityscape|cityscapes
fetch dataset:cityscaeps|cityscapes
fetch image:mmseg-0.11|mmseg-0.11.0
list dataset|datasets
explain cell-diffres|cell-differs
nodes claen x|clean
plan paddle-perf-2020 --case resnet50/reperf/fp32/n1g1/bs69|resnet50/reperf/fp32/n1g1/bs96
TABLE
omits 2 'did you mean' "what is near to nothing has no such hint" "$REPERF" xyzzy
warns 0 "taken for a host \(did you mean v100-4x8\?\)" "an inventory that is nearly one" "$REPERF" nodes list v100-4x9
exits 0 "one that is one" "$REPERF" nodes list v100-4x8
is "$(cat "$T/err")" "" "is not"

leaves 0 output "$("$REPERF" verify --help)" "help COMMAND is COMMAND --help" "$REPERF" help verify
leaves 0 output "$("$REPERF" nodes clean --help)" "help nodes VERB, likewise" "$REPERF" help nodes clean
exits 2 "help of no command" "$REPERF" help verfiy
leaves 0 output "$("$REPERF" --version)" "-V is --version" "$REPERF" -V
leaves 0 output "$("$REPERF" list datasets --json)" "--json before the command is the command's" "$REPERF" --json list datasets
# shellcheck disable=SC2016
exits 10 "a reader that closes its end" bash -c '"$1" list cases | head -c 1 >/dev/null; exit "${PIPESTATUS[0]}"' _ "$REPERF"
is "$(cat "$T/err")" "" "and is told nothing"
exits 0 "--html -" "$REPERF" report paddle-perf-deeplabv3p --html -
"$REPERF" report paddle-perf-deeplabv3p --html "$T/page.html" 2>/dev/null
succeeds "is the page on standard output" cmp -s "$T/out" "$T/page.html"
ok "$([ ! -e ./- ]; echo $?)" "and no file of that name"

prints 6 'unreachable: 1 of 1 nodes; what is left there is not known' "nodes clean of what cannot be reached" "$REPERF" nodes clean nowhere.invalid
is "$(grep -c 'nothing is left' "$T/out")" 0 "and not that nothing is left"
echo "iter: 1" >"$T/some.log"
fails 2 "did you mean timm\?" "an unknown format" "$REPERF" measure "$T/some.log" --format timmm
fails 2 "did you mean deeplabv3p/paddle/fp32/n1g8/bs4\?" "an unknown case" "$REPERF" explain deeplabv3p/paddle/fp32/n1g8/bs5
exits 2 "what is no folder cannot be sealed" "$REPERF" seal "$T/some.log"
tap_done
