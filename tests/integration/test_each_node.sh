#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: run
# run --each-node over four real sshds on this machine, with a workload of fixed rates: each node is a unit of its own, a slow one is found, and the gate of another
# run refuses it. The real programs of node-health run in tests/cluster/test_node_health.sh.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2016,SC2317
source "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/nodes_lib.sh disable=SC1091
source "$ROOT/tests/integration/nodes_lib.sh"
have_sshd "run --each-node" || tap_done
ssh_keys
for n in n1 n2 n3 n4; do start_sshd "$n" || exit 1; done
nodes_inventory n1 n2 n3 n4 >"$T/four.json"
mkdir "$T/fake"
# Its rate is that of the node whose work folder it lies in.
sed -e "s/8\.0/\"\$rate\"/" -e "3i case \$0 in *work-n1*) rate=8.0 ;; *work-n2*) rate=8.5 ;; *work-n3*) rate=\$(cat $T/rate) ;; *) rate=7.5 ;; esac" \
    tests/integration/fake_train.sh >"$T/fake/train.sh"
chmod 755 "$T/fake/train.sh"
export REPERF_TRAIN="$T/fake/train.sh"
CASE='resnet50/reperf/fp32/n1g0/bs4'
each() { "$REPERF" run node-health --profile smoke --nodes "$T/four.json" --each-node --case "$CASE/*" --repeats 2 --offline "$@"; }
q() { jq -r "$1" "$T/out"; }

# ---- the plan ----
valid node-health "the limits are as their schema says" manifests/node-health.json
warns 0 'what these need, and they are left out: gpu-memory/.*allreduce/' "a plan on each node" "$REPERF" plan node-health --profile smoke --nodes "$T/four.json" --each-node --json
valid plan "is as its schema says"
is "$(q '[.steps[] | select(.case | startswith("memory/")) | "\(.case | split("/")[-1]) \(.node)"] | join(", ")')" "n1 n1, n2 n2, n3 n3, n4 n4" "a case of one node is one for each node"
is "$(q '[.steps[] | select(.case | startswith("network/")) | "\(.case | split("/")[-1]) \(.node)"] | join(", ")')" \
    "n1+n2 n[1-2], n2+n3 n[2-3], n3+n4 n[3-4], n1+n4 n[1,4]" "a case of two nodes is one for each pair of neighbours, round the ring"
is "$(q '[.steps[].case | select(contains("g1/") or contains("g8/"))] | length')" 0 "so it is not in the plan"
jq '.nodes[1].gpus = 2' "$T/four.json" >"$T/gpus.json"
exits 7 "with GPUs on one node" "$REPERF" plan node-health --nodes "$T/gpus.json" --each-node --case 'allreduce/*' --json
is "$(q '[.steps[].case] | join(" ")')" "allreduce/nccl-tests/fp32/n1g2/bs0/n2" "that node alone has their case"
nodes_inventory n1 n2 >"$T/two.json"
exits 7 "of two nodes" "$REPERF" plan node-health --nodes "$T/two.json" --each-node --case 'network/*' --json
is "$(q '[.steps[].case | split("/")[-1]] | join(" ")')" "n1+n2" "there is one pair"
exits 2 "of one node there is none" "$REPERF" plan node-health --nodes "$T/two.json:n1" --each-node --case 'network/*'
exits 2 "on each of which nodes" "$REPERF" run node-health --each-node
exits 2 "this machine alone" "$REPERF" run node-health --each-node --nodes local
exits 2 "limits of nothing" "$REPERF" run node-health --limits manifests/node-health.json

# ---- a sick node ----
echo 4.0 >"$T/rate"
documents run-output 1 "a node of half the rate" each --name sick --json
is "$(q '.health.findings | join("; ")')" "n3: $CASE: 52 % of the median of its kind (4 of 7.75 samples/s)" "is the only one that is named"
is "$(q '[.health.figures[] | "\(.nodes[0]) \(.verdict)"] | join(" ")')" "n1 within n2 within n3 outlier n4 within" "beside the others"
is "$(q '[.cells[] | "\(.case | split("/")[-1]) \(.value) \(.verdict)"] | join(" ")')" "n1 8 not_comparable n2 8.5 not_comparable n3 4 not_comparable n4 7.5 not_comparable" "each node is a cell"
is "$(q .exit_status)" 1 "the document has the command's status"
sick=$(q .archive)
exits 0 "its archive holds" "$REPERF" verify "$sick" --unsigned
exits 0 "and replays" "$REPERF" replay "$sick"
prints 1 "^n3: $CASE: 52 %" "its nodes again, from the archive" "$REPERF" compare "$sick"
documents compare-output 1 "as a document" "$REPERF" compare sick --json
jq '.limits[].share = 0.6' manifests/node-health.json >"$T/wide.json"
exits 0 "other limits let it pass" "$REPERF" compare sick --limits "$T/wide.json"
sed 's/"share": 0.1,/"share": 2,/' manifests/node-health.json >"$T/bad.json"
fails 3 'bad.json:\$.limits\[0\]' "invalid limits" "$REPERF" compare sick --limits "$T/bad.json"

# ---- without containers: what the README says to an operator who has nothing but nodes ----
jq '.limits[].share = 0.98' manifests/node-health.json >"$T/busy.json" # the nodes are one busy machine
exits 0 "node-quick" "$REPERF" run node-quick --profile smoke --nodes "$T/four.json" --each-node --columns --repeats 1 --limits "$T/busy.json" --json
is "$(q '[.cells[] | select(.value > 0) | .case | split("/") | .[0] + " " + .[-1]] | sort | join(", ")')" \
    "disk-write n1, disk-write n2, disk-write n3, disk-write n4, memory n1, memory n2, memory n3, memory n4, processor n1, processor n2, processor n3, processor n4" \
    "measures each node's disk, memory and processor by dd"
is "$(q '[.health.figures[].verdict] | unique | join(" ")')" within "and compares all of them"

# ---- the links between nodes on the page: a row for each node from which, a column for each to which ----
cat >"$T/link.sh" <<'SH'
[ "$NODE_RANK" = 0 ] || exit 0
case $REPERF_JOB in *n1+n2*) rate=100 ;; *n2+n3*) rate=50 ;; *) rate=80 ;; esac
echo "1000 bytes copied, 1 s, $rate MB/s"
SH
jq --rawfile works "$T/link.sh" '.id = "links" | .stacks = [.stacks[0] | .smoke[0].commands[0].works = $works] |
    .cases = [.cases[0] | .id = "network/dd/unstated/n2g0/bs0"]' manifests/reports/node-quick.json >"$T/links.json"
exits 1 "a slow link" "$REPERF" run "$T/links.json" --profile smoke --nodes "$T/four.json" --each-node --columns --repeats 1 --name links --json

# ---- the checklist's commands work as they are printed ----
mkdir "$T/bin" "$T/site" && ln -s "$(realpath "$REPERF")" "$T/bin/reperf" && cd "$T/site" && jq '.id = "elsewhere"' "$T/four.json" >mine.json || exit 1
exits 0 "a checklist" "$REPERF" plan node-health --profile smoke --nodes mine.json --each-node --case "$CASE/*" --repeats 1 --offline --checklist
cp "$T/out" "$T/checklist"
like "$(cat "$T/checklist")" '^1. nodes: 4 of the 4 of elsewhere, 0 GPUs each$' "of --each-node all nodes"
is "$(grep -c 'NVIDIA' "$T/checklist")" 0 "without GPUs no toolkit for them"
is "$(sed -n 's/.*[$] //p' "$T/checklist")" "reperf nodes doctor mine.json --report node-health --profile smoke --case $CASE
reperf keygen reperf.key
reperf run node-health --profile smoke --nodes mine.json --each-node --case '$CASE/*' --repeats 1 --offline --key reperf.key" "its commands have what was asked of plan"
sed -n 's/.*[$] //p' "$T/checklist" >commands.sh
PATH="$T/bin:$PATH" sh "$T/site/commands.sh" >"$T/out" 2>"$T/err"
ok $(($? > 1)) "and work as printed"
like "$(cat "$T/out")" '4 of 4 ran' "to the end"
is "$(cut -c1-40 <(grep -E '^reperf: error' "$T/err"))" "" "without an error"
cd "$ROOT" || exit 1

# ---- a command on all nodes: its number is one node's ----
(
    cd "$T" || exit 1
    cat >rank.sh <<'SH'
for step in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "step $step/12: loss 1.5, $((NODE_RANK * ${APART:-1000} + 130 + step % 2)).0 samples/s"; done
SH
    NODE_RANK=0 sh rank.sh >rank.log
    "$REPERF" measure rank.log --suggest rank.json >/dev/null 2>&1
)
cd "$T" || exit 1
prints 0 'the number is of the log of n1; 3 other logs are kept' "a command on four nodes" "$REPERF" run --nodes "$T/four.json" --name ranks --repeats 1 --format rank.json -- sh rank.sh
like "$(cat "$T/out")" "repeat 1 is tainted: n2's log gives 1130[.0-9]* samples/s, n1's 130[.0-9]*; 2 more logs differ so: the number is not all nodes'" "and what the others give"
exits 0 "its archive derives" "$REPERF" verify --unsigned ranks
sed -i 's/1000/1/' rank.sh
exits 0 "nodes that agree" "$REPERF" run --nodes "$T/four.json" --repeats 1 --format rank.json --json -- sh rank.sh
is "$(jq -c '.cells[0] | [.why, (.repeats[0].taints // [])]' "$T/out")" '["the number is of the log of n1; 3 other logs are kept",[]]' "are no doubt"
cd "$ROOT" || exit 1

# ---- a run that fails on one node ----
echo fails >"$T/fake/mode"
sed -i "s,^mode=.*,case \$0 in *work-n2*) mode=fails ;; esac," "$T/fake/train.sh"
exits 8 "a workload that fails on one node" each --json
like "$(q '.health.findings | join("; ")')" "n2: $CASE: not measured: repeat 1 of 2: .*; n3: $CASE: 53 %" "is a finding, too"
sed -i 's,^case $0 in .work-n2.) mode=fails.*,mode=,' "$T/fake/train.sh"

# ---- a lease that is a link ----
rm -rf "$T/work-n1/lease"
ln -s "$T" "$T/work-n1/lease"
timeout 600 "$REPERF" run node-health --profile smoke --nodes "$T/four.json" --case "$CASE" --offline --repeats 1 >"$T/out" 2>"$T/err"
succeeds "a lease that is a link to a folder is not waited for" test $? -ne 124
like "$(cat "$T/err")" 'work-n1/lease: expected a file, found a link' "and is named"
rm "$T/work-n1/lease"

# ---- sound nodes, and the gate ----
echo 8.0 >"$T/rate"
exits 0 "equal nodes" each --name sound --json
is "$(q '.health.findings | length')" 0 "have no outlier"
prints 0 "^A: n3: $CASE: 52 %" "two runs side by side" "$REPERF" compare sick sound
gated() { each --json --gate "$@"; }
warns 0 "gate sound: 4 nodes measured, .*; measured 20[-0-9]*T[0-9:.]*Z, 0 hours ago; limits: reperf's" "the gate of a sound run opens" gated sound
fails 6 "gate .*: n3: $CASE: 52 %" "that of a sick node does not" gated "$sick"
warns 0 'limits: .*wide[.]json' "but for other limits" gated sick --limits "$T/wide.json"
# Limits that came along with what is judged, a figure made good beside its log, a date of long ago: each was tried to get a sick node through.
forge_gate() { # NAME EXPECTED EDIT...: an archive of the sick run, edited and signed by its forger
    local name=$1 expected=$2
    shift 2
    rm -rf "$T/forged" && mkdir "$T/forged" && tar -C "$T/forged" --zstd -xf "$sick"
    "$@"
    TMPDIR=$T /usr/bin/python3 tests/integration/forge_evidence.py --repack "$T/forged" "$T/forged.tar.zst" "$T/forger"
    exits "$expected" "$name: the gate" gated "$T/forged.tar.zst"
    exits 5 "$name: verify, under the forger's own key" "$REPERF" verify "$T/forged.tar.zst" --key "$T/forger.pub"
}
"$REPERF" keygen "$T/forger" >"$T/out"
forge_gate "limits of its own" 5 cp "$T/wide.json" "$T/forged/manifest/node-health.json"
forge_gate "a key for them in its plan" 5 sed -i '0,/{/s//{"limits": [], /' "$T/forged/manifest/plan.json"
forge_gate "rates made equal in the result alone" 5 sed -i 's/"value": 4\b/"value": 8/' "$T/forged/result.json"
exits 0 "a run that says it is of 1999" each --run-id 19990101T000000.000Z-0000000a
exits 0 "opens the gate" gated 19990101T000000.000Z-0000000a
like "$(grep 'gate 1999' "$T/err")" 'warn.*measured 1999-01-01T00:00:00.000Z, [0-9]{6,} hours ago' "with a warning of its age"
two() { "$REPERF" run node-health --profile smoke --nodes "$T/two.json" --each-node --case "$CASE/*" --repeats 1 --offline "$@"; }
exits 0 "a run of two nodes, of which none can be told to be sick" two --name both
fails 6 "gate both: no figure of these nodes could be compared with others'" "opens no gate" two --gate both
echo nan >"$T/rate"
exits 9 "a run that did not measure a node" each --name unmeasured
prints 1 "^n3: $CASE: not measured: " "is not sound by its table either" "$REPERF" compare unmeasured
fails 6 "gate unmeasured: n3: not measured" "and opens no gate" gated unmeasured
echo 8.0 >"$T/rate"
fails 6 'it measured the nodes of test, not of' "nor for other nodes" "$REPERF" run node-health --profile smoke --nodes "$T/two.json:n1" --case "$CASE" --offline --gate sound
exits 0 "a run without --each-node" "$REPERF" run node-health --profile smoke --nodes "$T/four.json" --case "$CASE" --offline --repeats 1 --name plain
exits 6 "measured no node" gated plain
exits 2 "and has no nodes to show" "$REPERF" compare plain

# ---- a report that nobody published ----
R=manifests/reports/node-health.json
exits 0 "its cases need no number" "$REPERF" lint "$R"
jq 'del(.unpublished)' "$R" >"$T/published.json"
exits 3 "but only where the report says so" "$REPERF" lint "$T/published.json"
jq '.cases[0].baseline = .cases[1].id' "$R" >"$T/baseline.json"
fails 3 'a case of an unpublished report: expected environment and baseline null' "and then there is nothing to compare with" "$REPERF" lint "$T/baseline.json"

# ---- evidence of the former nodes bench ----
mkdir -p "$T/former/manifest" && echo '{}' >"$T/former/manifest/nodes-bench.json"
echo '{"schema_version": 1, "run_id": "2026-11-26 of four", "report": "nodes bench", "cells": [{"cell": "node1", "verdict": "reproduced"}]}' >"$T/former/result.json"
exits 0 "an archive of it" "$REPERF" seal "$T/former" --bytes-only -o "$T/former.tar.zst"
fails 2 'kind manifest/nodes-bench.json, which is no run and is no longer derived' "is not derived" "$REPERF" verify "$T/former.tar.zst" --unsigned
exits 0 "its bytes are checked" "$REPERF" verify "$T/former.tar.zst" --unsigned --bytes-only
tap_done
