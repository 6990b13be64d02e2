#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: cmd
# manifests/reports/cpu-2026, a report of our own as `publish` wrote it, and its reproduction in logs/verified: the numbers follow from the logs, both
# archives are whole, and the second run reproduced what the folder says.
# shellcheck source=tests/tap_lib.sh disable=SC1091
source "$(dirname "$0")/../tap_lib.sh"
R=manifests/reports/cpu-2026
V=$(echo logs/verified/cpu-2026-*)
exits 0 "audit" "$REPERF" audit "$R/" --json
is "$(jq -r '.reports[0].cells[] | "\(.verdict) \(.log_state)"' "$T/out" | sort | uniq -c | xargs)" "4 exact whole" "every number follows from its raw logs"
like "$(jq -r '.reports[0].cells[].note' "$T/out" | head -n 1)$(jq -r '.reports[0].cells[].proof' "$T/out" | sort -u)" 'partial' "a process on a CPU is not proven to be no GPU"
"$REPERF" lint "$R/manifests/reports/cpu-2026.json" >"$T/out" 2>&1
is "$(grep -c '^error' "$T/out")" 0 "lint finds no error"
is "$(cmp "$R/manifests/overlays/torch-cpu/nets_torch.py" workloads/competitors/nets_torch.py && echo same)" same "PyTorch's networks are those that the tests hold against ours"
exits 0 "the published run's archive, by its key" "$REPERF" verify "$(find "$R/archives" -name '*.tar.zst')" --key "$V/cpu-2026.key.pub"
like "$(tr -d '\n' <"$R/README.md")" "fingerprint +$(openssl pkey -pubin -in "$V/cpu-2026.key.pub" -outform DER | sha256sum | cut -c1-64)" "whose fingerprint the README prints"

A=$(find "$V" -name '*.tar.zst')
exits 0 "the reproduction's archive, by its key" "$REPERF" verify "$A" --key "$V/again.key.pub"
mkdir "$T/again" && tar --zstd -xf "$A" -C "$T/again"
is "$(jq -r '.cells[].verdict' "$T/again/result.json" | sort | uniq -c | xargs)" "4 reproduced" "reproduced each number"
is "$(jq -r .address "$T/again/manifest/plan.json")" "$("$REPERF" run "$R/" 2>&1 | sed -n 's/.*then --trust //p')" "of exactly this folder"
exits 0 "report RUN" "$REPERF" report "$A"
is "$(grep -c 'claim holds' "$T/out")" 2 "and both claims hold: the ratios of PyTorch's rates to ours"
exits 0 "compare with the published run" "$REPERF" compare "$(find "$R/archives" -name '*.tar.zst')" "$A"
is "$(grep -c '^[a-z0-9/-]* against reperf .*no claim: the report prints no number for both  *holds: published' "$T/out")" 2 "says what each run says of the claims"
exits 0 "compare as JSON" "$REPERF" compare "$A" "$A" --json
is "$(jq -r '[.a, .b][].rows[].columns[].claim | values | .verdict' "$T/out" | xargs)" "holds holds holds holds" "has the claims of both runs"
cp "$T/out" "$T/compare.json"
valid compare-output "which is valid" "$T/compare.json"
"$REPERF" compare "$A" "$A" --markdown "$T/compare.md" >/dev/null
is "$(grep -c '| *holds: published' "$T/compare.md")" 2 "and a Markdown document"

# The other way round: logs of eight processes are not of this row.
cp -R "$R" "$T/eight"
find "$T/eight/logs" -name '*.log' -exec sed -i 's/"ranks":1/"ranks":8/' {} +
exits 1 "logs of another number of processes" "$REPERF" audit "$T/eight/" --json
is "$(jq -r '.reports[0].cells[].proof' "$T/out" | sort -u)" contradicted "are of another row"
tap_done
