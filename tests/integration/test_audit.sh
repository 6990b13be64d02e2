#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: judge
# audit: every published cell judged, from raw logs and from the kept series alike; faults planted in numbers, logs and series are found; the output
# passes independent validators.
# shellcheck source=tests/tap_lib.sh disable=SC1091
source "$(dirname "$0")/../tap_lib.sh"
O=(/usr/bin/python3 tests/integration/check_output.py)
S=manifests/schema
export REPERF_ROOT="$ROOT"

documents audit-output 1 "audit --all from the kept series: status 1, some cells do not hold" "$REPERF" audit --all --json
cp "$T/out" "$T/kept.json"
head -n 3 "$T/out" | sed 's/^/# /'
sed 's/"verdict": "exact"/"verdict": "perfect"/' "$T/kept.json" >"$T/planted.json"
exits 1 "a verdict of another word is refused" validates $S/audit-output.json "$T/planted.json"
exits 0 "a report whose cells all hold: status 0" "$REPERF" audit dlperf-tf2-resnet50 --json
exits 1 "the text form has the same status" "$REPERF" audit paddle-perf-hrnetw18 --like-for-like
exits 2 "neither a report nor --all" "$REPERF" audit
exits 2 "two forms at once" "$REPERF" audit --all --json --junit
exits 2 "a report that is not there" "$REPERF" audit nobody
exits 2 "a logs folder that is not there" "$REPERF" audit --all --logs "$T/nowhere"

# --- of some cases, less and more ------------------------------------------------------------------------
exits 2 "both" "$REPERF" audit paddle-perf-deeplabv3p -q -v
answers 1 '[.reports[] | .not_printed | length]' '[7,15]' "as JSON: seven dashes and fifteen" "$REPERF" audit paddle-perf-2020 airank-mmseg-deeplabv3plus --json
is "$(jq -c '[.reports[].cells[] | select(.printed == "-")] | length' "$T/out")" 0 "none of them a cell"
is "$(jq '[.reports[].cells[] | select(.footnote)] | length' "$T/out")" 11 "eleven footnotes"
exits 0 "in three other forms" "$REPERF" report paddle-perf-2020 --csv "$T/dash.csv" --markdown "$T/dash.md" --html "$T/dash.html"
is "$(grep -c ",'-,.*not_printed" "$T/dash.csv")" 7 "CSV, where a spreadsheet takes it for no formula"
is "$(grep -c 'printed as "-"' "$T/dash.md")" 7 "Markdown"
is "$(grep -c 'printed as &quot;-&quot;' "$T/dash.html")" 7 "the page"
is "$(grep -c '^<p>\* ' "$T/dash.html")" 11 "with the footnotes"
answers 1 '[.reports[0].cells[].cell]' '["deeplabv3p/mmseg/fp32/n4g8/bs4#throughput"]' "--case of one that differs: that cell" "$REPERF" audit paddle-perf-deeplabv3p --case 'deeplabv3p/mmseg/fp32/n4g8/*' --json
is "$(jq -c '[.reports[0].findings[].where | select(test("c32_fp32|/n4g8/|^DeepLabV3P/[A-Za-z/]*README.md($|: )") | not)]' "$T/out")" '[]' "and no finding of a log of another"
is "$(jq -c '.reports[0].cells[0]' "$T/out")" "$(jq -c '.reports[] | select(.report == "paddle-perf-deeplabv3p").cells[] | select(.cell == "deeplabv3p/mmseg/fp32/n4g8/bs4#throughput")' "$T/kept.json")" "judged as it is without --case"
exits 0 "--case of those that hold, of a report with others" "$REPERF" audit paddle-perf-2020 --case 'resnet50/paddle/fp32/n1g8/*' -q
fails 2 "did you mean deeplabv3p/mmseg/fp32/n4g8/bs4" "--case of none" "$REPERF" audit paddle-perf-deeplabv3p --case 'deeplabv3p/mmseg/fp32/n4g9/*'
exits 0 "report in five forms at once" "$REPERF" report --all --html "$T/r.html" --csv "$T/r.csv" --markdown "$T/r.md" --json
is "$(cmp -s "$T/out" "$T/kept.json"; echo $?)" 0 "its JSON is the audit's"
is "$(/usr/bin/python3 -c 'import csv,json,sys
rows = [r for r in csv.DictReader(open(sys.argv[1], newline="", encoding="utf-8"), strict=True) if r["verdict"] not in ("not_printed", "finding")]
cells = [(r["report"], c) for r in json.load(open(sys.argv[2]))["reports"] for c in r["cells"]]
same = [a["report"] == r and a["cell"] == c["cell"] and a["printed"] == c["printed"] and a["verdict"] == c["verdict"] and
    (float(a["recomputed"]) if a["recomputed"] else None) == c["recomputed"] for a, (r, c) in zip(rows, cells)]
print(len(rows) == len(cells), all(same))' "$T/r.csv" "$T/kept.json")" "True True" "its CSV, read by another, has every cell of the audit"
is "$(awk -F' \\| ' '/^\| / && NF == 14' "$T/r.md" | grep -cvE '^\| (model|---) \|')" "$(jq '[.reports[].cells[]] | length' "$T/kept.json")" "its Markdown a row each"
is "$(awk -F' \\| ' '/^\| / { print NF }' "$T/r.md" | sort -u | xargs)" "14 8" "of as many columns, and those of like for like"
"$REPERF" audit paddle-perf-deeplabv3p --markdown "$T/one.md" --csv "$T/one.csv" 2>/dev/null
is "$( ("$REPERF" audit paddle-perf-deeplabv3p -q; "$REPERF" report paddle-perf-deeplabv3p --svg -; sed '/^### How the numbers that differ/,/^### Findings/d' "$T/one.md") 2>/dev/null | grep -ohE '\b174(\.[0-9]+)?\b' | sort -u)" 174.74 "a number has one spelling in text, picture and Markdown, but where it is worked out"
is "$(/usr/bin/python3 -c 'import csv,json,sys
rows = list(csv.DictReader(open(sys.argv[1], newline="", encoding="utf-8"), strict=True))
report = [r for r in json.load(open(sys.argv[2]))["reports"] if r["report"] == "paddle-perf-deeplabv3p"][0]
found = [(r["note"], r["logs"]) for r in rows if r["verdict"] == "finding"]
print(found == [("%s %s: %s" % (f["level"], f["id"], f["message"]), f["where"]) for f in report["findings"]],
    *[r["note"] for r in rows if r["printed"] == "60.95" and r["verdict"] == "differs"])' "$T/one.csv" "$T/kept.json")" \
    "True it is printed as 243 in DeepLabV3P/OtherReports/PyTorch/README.md; the log is of another row: the row's batch per GPU is 4, but the log says 8; 0 of 120 other rules give it" "CSV: each finding is a row, and a note says why"
is "$(/usr/bin/python3 -c 'import csv,sys
print(*[(r["not_proven"], r["contradicted"]) for r in csv.DictReader(open(sys.argv[1], newline="", encoding="utf-8"), strict=True) if r["printed"] == "60.95"])' "$T/one.csv")" \
    "('gpus nodes', 'batch')" "and apart what the log contradicts and what it does not prove"
is "$(grep -c "<li>batch *contradicted: the row&#39;s batch per GPU is 4, but the log says 8" "$T/r.html")" 1 "as the page does"
# --- a ratio of rows that are not alike says so, wherever it is shown ------------------------------------
jq -c '[.reports[].like_for_like[] | select(.note != "")]' "$T/kept.json" >"$T/unlike.json"
is "$(jq length "$T/unlike.json")" "$(jq '[.reports[].like_for_like[] | select(.note | startswith("not alike: "))] | length' "$T/kept.json")" "in JSON"
is "$(grep -c '<td data-h="still differs">not alike: ' "$T/r.html") $(grep -c '<td data-h="still differs">' "$T/r.html")" "$(jq length "$T/unlike.json") $(jq '[.reports[].like_for_like[]] | length' "$T/kept.json")" "in the page"
"$REPERF" report paddle-perf-deeplabv3p --svg "$T/r.svg"
is "$(grep -c 'class="is"' "$T/r.svg") $(grep -c '>not alike: ' "$T/r.svg")" "6 6" "in the picture"
jq '(.cases[] | select(.id | test("n1g1")).conditions) |= (.parameters = "1" | .macs_per_sample = "1" | .layout = "NCHW")' manifests/reports/paddle-perf-deeplabv3p.json >"$T/paddle-perf-deeplabv3p.json"
"$REPERF" report "$T/paddle-perf-deeplabv3p.json" --svg "$T/alike.svg"
is "$(grep -c 'class="is"' "$T/alike.svg") $(grep -c '>not alike: ' "$T/alike.svg")" "6 4" "rows that are alike say nothing"
exits 2 "two for standard output" "$REPERF" report paddle-perf-deeplabv3p --csv - --markdown -
exits 1 "SARIF" "$REPERF" audit --all --sarif
cp "$T/out" "$T/audit.sarif"
exits 0 "fits the classes made from the SARIF 2.1.0 schema" "${O[@]}" sarif "$T/audit.sarif"
head -n 3 "$T/out" | sed 's/^/# /'
sed 's/"ruleId"/"ruleid"/' "$T/audit.sarif" >"$T/planted.sarif"
exits 1 "which refuse a wrong property" "${O[@]}" sarif "$T/planted.sarif"
is "$(jq '[.runs[0].results[].locations[0].physicalLocation.artifactLocation.uriBaseId] | unique | join(" ")' -r "$T/audit.sarif")" %SRCROOT% "its places lie in the checkout"
sed 's/"uriBaseId": "%SRCROOT%"/"uriBaseId": "ROOT"/' "$T/audit.sarif" >"$T/planted.sarif"
exits 1 "a base that is not named is seen" "${O[@]}" sarif "$T/planted.sarif"
sed '0,/"startLine": [0-9]*/s//"startLine": 2/' "$T/audit.sarif" >"$T/planted.sarif"
exits 1 "a line of another case is seen" "${O[@]}" sarif "$T/planted.sarif"
sed '0,/"fullDescription"/s//"name": "x", "description"/' "$T/audit.sarif" >"$T/planted.sarif"
exits 1 "a rule without what code scanning needs is seen" "${O[@]}" sarif "$T/planted.sarif"
(cd "$T" && "$REPERF" audit paddle-perf-deeplabv3p --sarif >"$T/away.sarif" 2>/dev/null)
is "$(jq '[.runs[0].results[].locations[0].physicalLocation.artifactLocation | .uriBaseId + " " + .uri] | unique | join(",")' -r "$T/away.sarif")" \
    "%REPERF% manifests/reports/paddle-perf-deeplabv3p.json" "elsewhere they are of the program, and no path of this machine"
is "$(jq -c '[.runs[0].results[].partialFingerprints]' "$T/away.sarif")" \
    "$(jq -c '[.runs[0].results[] | select(.locations[0].physicalLocation.artifactLocation.uri | endswith("/paddle-perf-deeplabv3p.json")) | .partialFingerprints]' "$T/audit.sarif")" "their fingerprints are the same"
exits 1 "JUnit" "$REPERF" audit --all --junit
cp "$T/out" "$T/audit.xml"
exits 0 "is valid against junit.rng" xmllint --noout --relaxng tests/integration/junit.rng "$T/audit.xml"
exits 0 "is read by junitparser, with the counts of its cases" "${O[@]}" junit "$T/audit.xml"
sed 's/<skipped/<sleeping/' "$T/audit.xml" >"$T/planted.xml"
exits 3 "junit.rng refuses another outcome" xmllint --noout --relaxng tests/integration/junit.rng "$T/planted.xml"

# --- planted: numbers, series --------------------------------------------------------------------------
new_root() {
    rm -rf "$T/root"
    mkdir -p "$T/root/manifests" "$T/root/logs" && cp -R manifests/formats manifests/reports "$T/root/manifests/" && cp -R logs/published "$T/root/logs/"
    export REPERF_ROOT="$T/root"
}
cell() { # FILE CELL KEY
    /usr/bin/python3 -c 'import json,sys
for r in json.load(open(sys.argv[1]))["reports"]:
    for c in r["cells"]:
        if c["cell"] == sys.argv[2]: print(c[sys.argv[3]])' "$@"
}
new_root
TF2=resnet50/tf2/fp32/n4g8/bs128
sed -i 's/"9418.44"/"9418.45"/' "$T/root/manifests/reports/dlperf-tf2-resnet50.json"
exits 0 "the last digit of a printed number changed: within 0.05 %" "$REPERF" audit dlperf-tf2-resnet50 --json
is "$(cell "$T/out" "$TF2#throughput" verdict)" match "a millionth off: match, and the explanation is searched"
is "$(cell "$T/out" "$TF2#speedup" verdict)" exact "the speed-up still follows at its digits"
new_root
sed -i 's/"9418.44"/"9518.44"/' "$T/root/manifests/reports/dlperf-tf2-resnet50.json"
exits 1 "a digit that matters" "$REPERF" audit dlperf-tf2-resnet50 --json
is "$(cell "$T/out" "$TF2#throughput" verdict) $(cell "$T/out" "$TF2#speedup" verdict)" "differs differs" "differs, and so does the speed-up next to it"
like "$(cat "$T/out")" '"id": "cell-differs"' "found as such"
like "$(cat "$T/out")" '"id": "speedup-mismatch"' "and the speed-up as such"
new_root
kept=$T/root/logs/published/dlperf-tf2-resnet50/series.json
repin() { # what is kept now
    sed -i "s/\"series_sha256\": \"[0-9a-f]*\"/\"series_sha256\": \"$(sha256sum <"$kept" | cut -d' ' -f1)\"/" "$T/root/manifests/reports/dlperf-tf2-resnet50.json"
}
sed -i '/1n1g.rn50_b128_fp32_3/d' "$kept" && repin
exits 1 "a series removed: status 1, never silence" "$REPERF" audit dlperf-tf2-resnet50 --json
is "$(cell "$T/out" resnet50/tf2/fp32/n1g1/bs128#throughput verdict)" no_log "its cell is not judged"
like "$(cat "$T/out")" '"id": "log-missing"' "and the log is named as missing"
new_root
rm "$kept"
answers 1 '[.reports[].findings[] | select(.id == "log-missing")] | length' 30 "all of them removed: status 1, and each log is named as missing" "$REPERF" audit dlperf-tf2-resnet50 --json
new_root
sed -i '/1n1g.rn50_b128_fp32_3/s/"value":\[[0-9.]*,/"value":[/' "$kept" && repin
fails 3 'logs\[[0-9]+\].series\[0\].step: expected [0-9]+ values' "a series with a value less is refused" "$REPERF" audit dlperf-tf2-resnet50
new_root
sed -i 's/1n1g.rn50_b128_fp32_3/1n2g\/rn50_b128_fp32_3/' "$kept" && repin
fails 3 'is there twice' "the series of another log in its place is refused" "$REPERF" audit dlperf-tf2-resnet50
new_root
sed -i '/"source"/,/}/s/"commit": "[0-9a-f]*"/"commit": "0000000000000000000000000000000000000000"/' "$kept" && repin
exits 3 "the series of another commit are refused" "$REPERF" audit dlperf-tf2-resnet50

# --- bad manifests -----------------------------------------------------------------------------------------
R="$ROOT/manifests/reports/paddle-perf-hrnetw18.json"
bad() { # NAME PATTERN: $T/bad.json
    fails 3 "$2" "$1: status 3" "$REPERF" audit "$T/bad.json"
    [ -s "$T/out" ] && ok 1 "nothing on stdout"
}
head -c 3000 "$R" >"$T/bad.json" && bad "a truncated manifest" 'bad.json:[0-9]+:[0-9]+: '
sed '1s/"title"/"id": "x", "title"/' "$R" >"$T/bad.json" && bad "a key twice" 'bad.json:\$.*duplicate key "id"'
sed 's/"unit": "samples\/s"/"unit": "samples per s"/' "$R" >"$T/bad.json" && bad "a wrong unit" 'cases\[0\].cells\[0\]: unit: "samples per s"'
sed 's/"nodes": 4, "gpus_per_node": 8/"nodes": 0, "gpus_per_node": 8/' "$R" >"$T/bad.json" && bad "a count out of range" 'environments\[1\].nodes: expected 1 to'
sed 's/"printed": "19.428"/"printed": "0"/' "$R" >"$T/bad.json" && bad "a rate of nothing" 'cells\[0\]: printed: expected more than 0'
echo '{"schema_version": 1' >"$T/bad.json" && bad "half a document" 'bad.json:2:1'
: >"$T/bad.json" && bad "an empty file" 'bad.json'
head -c 100000000 /dev/zero | tr '\0' ' ' >"$T/bad.json" && bad "100 MB" 'bad.json'
awk 'BEGIN { for (i = 0; i < 100000; i++) printf "[" }' >"$T/bad.json" && bad "100,000 brackets" 'bad.json:1:'
printf '\377\376{}' >"$T/bad.json" && bad "bytes that are not UTF-8" 'bad.json:1:'
exits 3 "lint refuses the same" "$REPERF" lint "$T/bad.json"
rm -f "$T/bad.json"

# --- the published logs themselves -------------------------------------------------------------------------
export REPERF_ROOT="$ROOT"
if need_shared "raw logs and kept series give one document; every row of numbers.csv is judged"; then
    # The logs of MLPerf's rounds are gigabytes, and not among them: test_mlperf.sh.
    mapfile -t here < <("$REPERF" list --ids | grep -v '^mlperf-training-')
    "$REPERF" audit "${here[@]}" --json >"$T/kept.json"
    exits 1 "audit from the raw logs: status 1" "$REPERF" audit "${here[@]}" --logs "$SHARED/published/logs" --json
    cp "$T/out" "$T/raw.json"
    exits 0 "the same document as from the kept series, byte for byte" cmp "$T/raw.json" "$T/kept.json"
    prints 0 '^106 rows, 16 differ$' "every row of numbers.csv is judged, and those of differs.txt differ" "${O[@]}" numbers "$T/raw.json" "$SHARED/published/numbers.csv" tests/integration/differs.txt
    head -n 5 "$T/out" | sed 's/^/# /'
    exits 1 "the series are written again" "$REPERF" audit "${here[@]}" --logs "$SHARED/published/logs" --write-series "$T/series" --json
    exits 0 "and are what the repository keeps" diff -r "$T/series" logs/published --exclude=README.md --exclude='mlperf-training-*'
    P=DeepLabV3P/logs/paddle
    mkdir -p "$T/logs" && cp -R "$SHARED/published/logs/paddle-perf-e7a07c4" "$T/logs/" && chmod -R u+w "$T/logs"
    exits 1 "a copy of the logs" "$REPERF" audit paddle-perf-deeplabv3p --logs "$T/logs" --json
    is "$(cell "$T/out" deeplabv3p/paddle/fp32/n1g1/bs4#throughput verdict)" exact "holds as they do"
    D="$T/logs/paddle-perf-e7a07c4/$P"
    mv "$D/Deeplabv3_FP32_BS4-N1.log" "$D/x" && mv "$D/Deeplabv3_FP16_BS4-N1.log" "$D/Deeplabv3_FP32_BS4-N1.log" && mv "$D/x" "$D/Deeplabv3_FP16_BS4-N1.log"
    exits 1 "two logs swapped" "$REPERF" audit paddle-perf-deeplabv3p --logs "$T/logs" --json
    is "$(cell "$T/out" deeplabv3p/paddle/fp32/n1g1/bs4#throughput verdict) $(cell "$T/out" deeplabv3p/paddle/amp/n1g1/bs4#throughput verdict)" \
        "differs differs" "both cells differ"
    rm "$D/Deeplabv3_FP32_BS4-N1.log"
    exits 1 "a log removed" "$REPERF" audit paddle-perf-deeplabv3p --logs "$T/logs" --json
    is "$(cell "$T/out" deeplabv3p/paddle/fp32/n1g1/bs4#throughput verdict)" no_log "is no_log"
    like "$(cat "$T/out")" '"id": "log-missing"' "with a finding of level error"
fi

# audit writes the forms of report itself, and judges as ever.
exits 1 "audit in five forms" "$REPERF" audit paddle-perf-deeplabv3p --html "$T/a.html" --svg "$T/a.svg" --csv "$T/a.csv" --markdown "$T/a.md" --json
"$REPERF" report paddle-perf-deeplabv3p --html "$T/b.html" --svg "$T/b.svg" --csv "$T/b.csv" --markdown "$T/b.md" --json >"$T/b.json"
for form in html svg csv md; do
    exits 0 "its $form is report's" cmp "$T/a.$form" "$T/b.$form"
done
"$REPERF" audit paddle-perf-deeplabv3p --json >"$T/a.json"
exits 0 "its JSON, too" cmp "$T/a.json" "$T/b.json"
exits 1 "a picture on standard output" "$REPERF" audit paddle-perf-deeplabv3p --svg -
like "$(head -c 100 "$T/out")" "^<svg" "and nothing before it"
exits 1 "JUnit beside a page" "$REPERF" audit paddle-perf-deeplabv3p --junit --html "$T/c.html"
like "$(head -n 2 "$T/out")" "<testsuites" "JUnit for standard output"
exits 0 "is both" cmp "$T/b.html" "$T/c.html"
fails 2 "two forms for standard output" "two forms for standard output" "$REPERF" audit paddle-perf-deeplabv3p --sarif --csv -
fails 2 "svg is for one report, found 2" "a picture of two reports" "$REPERF" audit paddle-perf-deeplabv3p paddle-perf-hrnetw18 --svg "$T/d.svg"
tap_done
