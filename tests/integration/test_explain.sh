#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: judge
# explain of cells and rules: every cell of every report is computed again from its explanation; lines are those of the raw log.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2119
source "$(dirname "$0")/../tap_lib.sh"
C=(/usr/bin/python3 tests/integration/check_explain.py)
S=manifests/schema/explain-output.json
export HOME="$T" GIT_CONFIG_NOSYSTEM=1
export TMPDIR="$T/tmp" # what is left there is no other script's
mkdir "$TMPDIR"
unset REPERF_MANIFESTS

CELL=deeplabv3p/mmseg/fp32/n1g8/bs4

# --- every cell ----------------------------------------------------------------------------------------
"$REPERF" audit --all --json >"$T/audit.json" 2>/dev/null
"${C[@]}" cells "$T/audit.json" >"$T/cells"
mapfile -t words < <(tr ' ' '\n' <"$T/cells")
exits 0 "explain of every cell" "$REPERF" explain --json "${words[@]}"
cp "$T/out" "$T/explained.json"
mapfile -t ids < <("$REPERF" list rules --ids)
exits 0 "explain of every rule" "$REPERF" explain --json "${ids[@]}"
cp "$T/out" "$T/rules.json"
exits 0 "rules are valid against the schema" validates "$S" "$T/rules.json"
exits 0 "each cell follows again from its samples, by its rule" "${C[@]}" again "$T/audit.json" "$T/explained.json" "$T/rules.json"
head -n 3 "$T/out" | sed 's/^/# /'
"$REPERF" explain --json "$CELL#throughput" | sed '0,/"use": "counted"/s//"use": "skipped"/' >"$T/planted.json"
exits 1 "a sample less does not give it" "${C[@]}" again "$T/audit.json" "$T/planted.json" "$T/rules.json"
sed '0,/"proof": "partial"/s//"proof": "full"/' "$T/explained.json" >"$T/planted.json"
exits 1 "another proof is not the audit's" "${C[@]}" again "$T/audit.json" "$T/planted.json" "$T/rules.json"
exits 0 "explain of all words" "$REPERF" explain --json
# Each word that a schema lists under one of these keys is one that it knows.
is "$(/usr/bin/python3 - "$T/out" <<'PY'
import glob, json, sys
known = {word["name"] for word in json.load(open(sys.argv[1]))["items"]}
KEYS = {"verdict", "proof", "log_state", "state", "claim", "outcome", "scope", "origin", "level", "matters", "use", "cause", "quantity", "profile"}
found = set()
def walk(node, key, root):
    if isinstance(node, list):
        for item in node:
            walk(item, None, root)
    if not isinstance(node, dict):
        return
    while "$ref" in node:
        at = root
        for part in node["$ref"].lstrip("#/").split("/"):
            at = at[part]
        node = at
    if key in KEYS:
        found.update(w for n in [node, *node.get("anyOf", [])] for w in n.get("enum", []) if isinstance(w, str))
    for name, item in node.items():
        walk(item, name, root)
for path in glob.glob("manifests/schema/*.json"):
    if not path.endswith("/bench.json"): # of reperf-bench
        root = json.load(open(path))
        walk(root, None, root)
assert len(found) > 50, found
print(*sorted(found - known))
PY
)" "" "and there is one for each word that a column of verdicts, proofs, states, levels, causes or uses can have"
cp "$T/out" "$T/words.json"
# So is each that a status, an archive's check or an audit prints, and those of the audit's own legend.
for word in lost waiting collected PASSED WARNED FAILED exit proof alike 'not alike' 'like for like' like-for-like 'proof full' 'not proven' inferred group; do
    exits 0 "explain $word" "$REPERF" explain "$word"
done
exits 0 "explain of a few cells" "$REPERF" explain --json "$CELL#throughput" dlperf-tf2-resnet50 'resnet50/tf2/fp32/n4g8/bs128#speedup' exact
cp "$T/out" "$T/few.json"
exits 0 "all are valid against the schema" validates "$S" "$T/words.json" "$T/few.json"
sed 's/"use": "counted"/"use": "taken"/' "$T/few.json" >"$T/planted.json"
exits 1 "which refuses another use" validates "$S" "$T/planted.json"

# --- names ---------------------------------------------------------------------------------------------
"$REPERF" explain "$CELL#throughput" >"$T/want"
like "$(cat "$T/want")" "recomputed  25\.648, .* exact; proof partial" "a cell, for people"
like "$(cat "$T/want")" "3\.743 / 3: .* = 1\.24766667" "with its arithmetic"
like "$(cat "$T/want")" "32 samples a step \(8 GPUs x 4\) / 1\.24766667 = 25\.647876" "its scale"
like "$(cat "$T/want")" "blob/e7a07c4d39e04de5e24652daaf02d204f0209acb/DeepLabV3P/OtherReports" "its address"
like "$(cat "$T/want")" "nodes +not proven: the program counts GPUs, not nodes" "what is not proven"
like "$(cat "$T/want")" "the published series has no sample lines; --logs CLONE reads them" "and what the kept series does not hold"
for name in "paddle-perf-deeplabv3p/$CELL#throughput" "manifests/reports/paddle-perf-deeplabv3p.json:$CELL#throughput" "$CELL"; do
    exits 0 "explain $name" "$REPERF" explain "$name"
    ok "$(cmp -s "$T/out" "$T/want"; echo $?)" "is the same"
done
exits 0 "REPORT CELL" "$REPERF" explain paddle-perf-deeplabv3p "$CELL#throughput"
ok "$(cmp -s "$T/out" "$T/want"; echo $?)" "is the same"
fails 2 "name a cell of it" "a report alone" "$REPERF" explain paddle-perf-deeplabv3p
fails 2 "is a case of 2 cells: resnet50/tf2/fp32/n4g8/bs128#throughput, " "a case of two cells" "$REPERF" explain resnet50/tf2/fp32/n4g8/bs128
both=$(cut -d' ' -f2 "$T/cells" | sort | uniq -d | head -n 1)
fails 2 "is a cell of 2 reports \(.*\): put one before it" "a cell of two reports: $both" "$REPERF" explain "$both"
fails 2 "did you mean deeplabv3p/mmseg/fp32/n1g8/bs4#throughput" "a cell that is nearly one" "$REPERF" explain deeplabv3p/mmseg/fp32/n1g8/bs5#throughput
fails 2 "did you mean paddle-perf-deeplabv3p/deeplabv3p/mmseg/fp32/n1g8/bs4#throughput" "likewise behind its report" "$REPERF" explain paddle-perf-deeplabv3p deeplabv3p/mmseg/fp32/n1g8/bs4#thruoghput
fails 2 "did you mean mmseg/skip2" "a rule that is nearly one" "$REPERF" explain mmseg/skpi2
prints 0 "mean of ips, without the first 5, times the GPUs, truncated" "a rule" "$REPERF" explain paddleseg/skip5
like "$(cat "$T/out")" "origin +inferred$" "with its origin"
like "$(cat "$T/out")" "source +Perf@109ff87" "and its source"
like "$(cat "$T/out")" "paddle-perf-deeplabv3p +deeplabv3p/paddle/fp32/n4g8/bs4#throughput" "and whose it is"
fails 2 "mmseg is a format: its file formats/mmseg.json" "a format" "$REPERF" explain mmseg

# --- lines of a raw log --------------------------------------------------------------------------------
# shellcheck source=tests/integration/own_report_lib.sh disable=SC1091
source "$ROOT/tests/integration/own_report_lib.sh"
own_logs < <(
    echo "a heading"
    for step in 10 20 30 40; do printf 'step %s/40 | loss 0.5 | %s img/s \033[31m\n\n' "$step" "$((1000 + step))"; done
)
own_report
mine=$("$REPERF" audit my-report --logs "$T/made" --json 2>/dev/null | jq -r '.reports[0].cells[0].cell')
exits 0 "a cell of one's own report, from a clone: $mine" "$REPERF" explain my-report "$mine" --logs "$T/made" --json
cp "$T/out" "$T/mine.json"
exits 0 "its samples stand on the lines that are named" "${C[@]}" lines "$T/mine.json" "$T/made"
is "$(jq -c '[.items[0].logs[0].samples[].line]' "$T/mine.json")" "[2,4,6,8]" "of the file as it is"
sed -i 's/"line": 4/"line": 6/' "$T/mine.json"
exits 1 "and of no other" "${C[@]}" lines "$T/mine.json" "$T/made"
prints 0 "lines 2 to 8 count: runs/a/train.log:2" "for people" "$REPERF" explain my-report "$mine" --logs "$T/made"
like "$(cat "$T/out")" " 4 +20 +- +1020 +counted +step 20/40" "the line next to its sample"
is "$(grep -c $'\033' "$T/out")" 0 "and nothing of it reaches the terminal raw"
is "$(ls -A "$TMPDIR")" "" "nothing is left behind"
unset REPERF_MANIFESTS
if need_shared "lines of the published logs"; then
    "$REPERF" explain --json "$CELL#throughput" --logs "$SHARED/published/logs" >"$T/mine.json" 2>"$T/err"
    is "$(jq -c '[.items[0].logs[0].samples[].line]' "$T/mine.json")" "[570,571,572,573,575]" "of a published log"
    exits 0 "each is its line" "${C[@]}" lines "$T/mine.json" "$SHARED/published/logs/paddle-perf-e7a07c4"
fi
exits 0 "a pattern" "$REPERF" explain 'deeplabv3p/mmseg/fp32/*'
is "$(grep -c '^paddle-perf-deeplabv3p deeplabv3p/mmseg/fp32/.*(cell)$' "$T/out")" 3 "explains each cell that it matches"
exits 2 "one that matches none" "$REPERF" explain 'deeplabv4p/*'
tap_done
