#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: run
# A run leases the nodes that have work: the others stay free, and a node that another run has is not waited for while others do.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2154,SC2317
source "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/nodes_lib.sh disable=SC1091
source "$ROOT/tests/integration/nodes_lib.sh"
# shellcheck source=tests/integration/run_lib.sh disable=SC1091
source "$ROOT/tests/integration/run_lib.sh"
have_sshd "runs beside each other" || tap_done
nodes_start
sed -i "s,^dir=.*,dir=$T/fake," "$T/fake/train.sh" # its mode is one for all nodes
ONE='resnet50/reperf/fp32/n1g1/bs96'
one() { "$REPERF" run paddle-perf-2020 --case "$ONE" --profile smoke --nodes "$INV" "$@"; }
within_60_s() { # COMMAND
    for _ in $(seq 600); do "$@" && return; sleep 0.1; done
    return 1
}
leases() { find "$T"/work-n*/lease -type f 2>/dev/null | sed 's,.*/work-\(n[0-9]\)/lease,\1,' | sort -u | xargs; }

warns 0 'left to other runs: n\[2-3\]' "one repeat of one node's case on three nodes" one --repeats 1 --run-id 20261121T000000.000Z-0000000a
is "$(cd "$(run_folder 20261121T000000.000Z-0000000a)/evidence/environment" && echo *.json)" "local.json n1.json" "and asks no other what it is"
is "$(leases)" "" "no lease is left"

# What the site adds is frozen, and verified with the rest.
jq '.env = {"MY_SITE": "yes"} | .proxy = "http://proxy.example:3128"' "$INV" >"$T/site.json"
exits 0 "a run on a site with an environment and a proxy" "$REPERF" run paddle-perf-2020 --case "$ONE" --profile smoke --nodes "$T/site.json" --repeats 1 --run-id 20261121T000000.000Z-0000000f
exits 0 "its archive verifies" "$REPERF" verify --unsigned "$(run_folder 20261121T000000.000Z-0000000f)"/*.tar.zst
folder=$(run_folder 20261121T000000.000Z-0000000f)/evidence
is "$(jq -c '.steps[0].conditions | [.site_env, .site_proxy]' "$folder/manifest/plan.json")" '["MY_SITE=yes","http://proxy.example:3128"]' "with both as conditions"

mode waits
one --repeats 2 --run-id 20261121T000000.000Z-0000000b >"$T/first" 2>&1 &
first=$!
two_held() { [ "$(leases)" = "n1 n2" ]; }
succeeds "two repeats take two nodes" within_60_s two_held
one --repeats 1 --run-id 20261121T000000.000Z-0000000c >"$T/second" 2>&1 &
second=$!
three_held() { [ "$(leases)" = "n1 n2 n3" ]; }
succeeds "another run beside it takes the third, without waiting" within_60_s three_held
is "$(grep -c 'is held by run' "$T/second")" 0 "it says of no node that it waits for it"
one --repeats 1 --run-id 20261121T000000.000Z-0000000d >"$T/third" 2>&1 &
third=$!
is_told() { grep -q 'is held by run' "$T/third"; }
succeeds "where none is free it waits" within_60_s is_told
touch "$T/fake/go"
for pid in $first $second $third; do
    wait "$pid"
    is "$?" 0 "and each ends well"
done
is "$(leases)" "" "no lease is left"
tap_done
