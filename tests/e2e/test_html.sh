#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: view
# The page as a real browser renders it: its content, how it fits a desk and a phone, light and dark, and that it makes no
# request. page_probe.html inspects it from inside the browser.
. "$(dirname "$0")/../tap_lib.sh"

browser() { # ARGUMENT...
    timeout 600 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$T/profile" "$@" 2>"$T/chromium.err"
}
probe() { # PAGE OUT [ARGUMENT...]; what=structure: for what it holds alone
    browser --allow-file-access-from-files --disable-web-security --virtual-time-budget=60000 "${@:3}" --dump-dom \
        "file://$ROOT/tests/e2e/page_probe.html#${what-}file://$1" |
        sed -n '/<pre id="out">/,/^end/p' | sed 's/^.*<pre id="out">//' >"$2"
    tail -n 1 "$2" | grep -q '^end'
}
said() { # FILE NAME
    awk -v name="$2" '$1 == name { print substr($0, length(name) + 2); exit }' "$1"
}
# "cell|verdict|published" of each cell, from the JSON of audit.
json_cells() {
    /usr/bin/python3 -c '
import json, sys
for report in json.load(sys.stdin)["reports"]:
    for c in report["cells"]:
        print(c["cell"], c["verdict"], sep="|")'
}

if ! command -v chromium >/dev/null; then
    skip "the page in a browser" "chromium is not installed"
    tap_done
fi
exits 0 "a page of all reports is written" "$REPERF" report --all --html "$T/all.html"
exits 0 "a page of one report" "$REPERF" report paddle-perf-2020 --html "$T/one.html"
if in_test_all "how a page of all reports is laid out, light and dark"; then
    in_layout=all
    succeeds "the browser loads it" probe "$T/all.html" "$T/light"
else
    # A page of one report is a twentieth of that of all, by the same rules.
    in_layout=one
    what=structure: succeeds "the browser loads it" probe "$T/all.html" "$T/light"
    succeeds "and that of one" probe "$T/one.html" "$T/layout"
    grep -E '^(cut|width|too-wide|contrast)-' "$T/layout" >>"$T/light"
fi
"$REPERF" audit --all --json >"$T/audit.json" 2>/dev/null
json_cells <"$T/audit.json" | sort >"$T/want"
sed -n 's/^cell //p' "$T/light" | cut -d'|' -f1,2 | sort >"$T/got"
[ -s "$T/want" ] && cmp -s "$T/want" "$T/got"
ok $? "every cell of audit --json is a row with its verdict, and no other"
is "$(said "$T/light" cells)" "$(wc -l <"$T/want")" "as many rows as cells"
is "$(sed -n 's/^cell //p' "$T/light" | cut -d'|' -f3 | sort | xargs)" \
    "$("$REPERF" audit --all --csv - 2>/dev/null | /usr/bin/python3 -c '
import csv, sys
csv.field_size_limit(1 << 24)
for row in csv.DictReader(sys.stdin):
    if row["verdict"] not in ("not_printed", "finding"): print(row["printed"])' | sort | xargs)" "published numbers stand as they are printed"
is "$(said "$T/light" findings)" "$(/usr/bin/python3 -c '
import json, sys
print(sum(len(r["findings"]) for path in sys.argv[1:] for r in json.load(open(path))["reports"]))' "$T/audit.json")" \
    "every finding of audit and of lint is listed"
for none in scripts handlers requests external duplicate-ids dead-links tables-without-caption th-without-scope \
    boxes-without-focus heading-steps too-wide-1280 too-wide-390; do
    is "$(said "$T/light" $none)" 0 "no $none"
done
is "$(said "$T/light" h1)" 1 "one h1"
is "$(said "$T/light" lang)" en "a language"
succeeds "at least ten tables" test "$(said "$T/light" tables)" -ge 10
like "$(said "$T/light" headline)" "^Of $(wc -l <"$T/want") published numbers in [0-9]+ reports, [0-9]+ follow from the published logs, [0-9]+ from other published numbers, [0-9]+ differ and [0-9]+ cannot be checked\.$" \
    "one sentence says what all of it comes to"
is "$(said "$T/light" headline | sed 's/.*logs, \([0-9]*\) from other.*/\1/')" \
    "$(jq '[.reports[].cells[] | select((.rule // "" | startswith("derived:")) and (.verdict == "exact" or .verdict == "match"))] | length' "$T/audit.json")" \
    "what is a ratio or a mean of printed numbers is not said to follow from a log"
is "$(said "$T/light" hows)" "$(jq '[.reports[].cells[] | select(.logs | length > 0)] | length' "$T/audit.json")" "each cell with a log opens to how its number follows"
succeeds "and has its log's address" test "$(said "$T/light" log-links)" -ge "$(said "$T/light" hows)"
is "$(said "$T/light" cut-390)" "" "on a phone no table is cut"
runs=(logs/verified/*/*.tar.zst)
exits 0 "a page of a run" "$REPERF" report "${runs[0]}" --html "$T/run.html"
probe "$T/run.html" "$T/run"
is "$(said "$T/run" cut-390)" "" "which is not cut either"
if in_test_all "a run's page on paper"; then
    browser --no-pdf-header-footer --print-to-pdf="$T/run.pdf" "file://$T/run.html"
    pages=$(grep -ac '/Type /Page$' "$T/run.pdf")
    ok $((!(pages >= 2 && pages <= 20))) "on paper a run has $pages pages: what was recorded of each machine stays in the archive"
fi
# What is printed as the difference follows from the two numbers beside it.
sed -n 's/^cell //p' "$T/light" | /usr/bin/python3 -c '
import sys
for line in sys.stdin:
    cell, verdict, published, found, said = line.rstrip("\n").split("|")
    if found != "-" and said != "-" and abs((float(found) / float(published) - 1) * 100 - float(said.replace(" %", ""))) > 0.0051:
        print(line)' >"$T/odd"
is "$(cat "$T/odd")" "" "each printed difference follows from the printed numbers"
for width in 1280 390; do
    succeeds "at $width px nothing scrolls sideways but tables" test "$(said "$T/light" "width-$width")" -le $width
    is "$(said "$T/light" "contrast-$width")" enough "light, $width px: every text has a contrast of 4.5"
done
probe "$T/$in_layout.html" "$T/dark" --blink-settings=preferredColorScheme=0
is "$(said "$T/light" scheme) $(said "$T/dark" scheme)" "light dark" "both schemes were looked at"
for width in 1280 390; do
    is "$(said "$T/dark" "contrast-$width")" enough "dark, $width px: every text has a contrast of 4.5"
done

# Pictures: light and dark are not the same page.
if in_test_all "pictures of a page, light and dark"; then
    browser --screenshot="$T/light.png" --window-size=1280,2000 "file://$T/one.html" >/dev/null
    browser --screenshot="$T/dark.png" --window-size=1280,2000 --blink-settings=preferredColorScheme=0 "file://$T/one.html" >/dev/null
    [ -s "$T/light.png" ] && [ -s "$T/dark.png" ] && ! cmp -s "$T/light.png" "$T/dark.png"
    ok $? "light and dark look different"
fi

# Equal data, equal bytes; a log more or less is another page.
"$REPERF" report --all --html "$T/again.html"
succeeds "the same data give the same bytes" cmp -s "$T/all.html" "$T/again.html"

# The probe can fail: a page with what it looks for.
sed -e 's#</main>#<script>1</script><p style="color:\#999">faint</p><div style="width:2000px">wide</div><a href="https://example.org/">x</a>&#' \
    "$T/one.html" >"$T/bad.html"
probe "$T/bad.html" "$T/bad"
is "$(said "$T/bad" scripts) $(said "$T/bad" external) $(said "$T/bad" contrast-1280 | cut -d' ' -f1)" "1 1 low" "the probe sees a script, a link outside, faint text"
succeeds "the probe sees what is too wide" test "$(said "$T/bad" too-wide-390)" -gt 0

# Outside text stays text, wherever it stands.
mkdir -p "$T/root/logs"
cp -R manifests "$T/root/" && ln -s "$ROOT/logs/published" "$T/root/logs/published"
report="$T/root/manifests/reports/paddle-perf-deeplabv3p.json"
/usr/bin/python3 - "$report" <<'END'
import json, sys
EVIL = '<script>document.title="x"</script>"><img src=x onerror=alert(1)>&amp;\''
with open(sys.argv[1]) as f:
    report = json.load(f)
report["title"] += EVIL
for stack in report["stacks"]:
    stack["label"] += EVIL
for env in report["environments"]:
    env["conditions"]["gpu"] = EVIL
with open(sys.argv[1], "w") as f:
    json.dump(report, f)
END
REPERF_ROOT="$T/root" exits 0 "a report with markup in its texts" "$REPERF" report paddle-perf-deeplabv3p --html "$T/evil.html"
probe "$T/evil.html" "$T/evil"
is "$(said "$T/evil" scripts) $(said "$T/evil" handlers) $(said "$T/evil" requests)" "0 0 0" "none of it becomes markup"
is "$(said "$T/evil" cells)" 12 "and its cells are all there"
REPERF_ROOT="$T/root" exits 0 "a picture with markup in its texts" "$REPERF" report paddle-perf-deeplabv3p --svg "$T/evil.svg"
xmllint --noout "$T/evil.svg" 2>/dev/null
ok $? "is well-formed XML"
grep -q '<script\|<img' "$T/evil.svg"
[ $? -eq 1 ]
ok $? "without that markup"

exits 0 "--html and --svg together" "$REPERF" report paddle-perf-deeplabv3p --html "$T/c" --svg "$T/d"
[ -s "$T/c" ] && [ -s "$T/d" ]
ok $? "give both"
exits 2 "no report named" "$REPERF" report --html "$T/a"
exits 2 "two reports in one picture" "$REPERF" report paddle-perf-deeplabv3p paddle-perf-hrnetw18 --svg "$T/b"
[ ! -e "$T/a" ] && [ ! -e "$T/b" ]
ok $? "nothing is written on an error"
if [ -e /dev/full ]; then
    exits 10 "a full disk is an error" "$REPERF" report paddle-perf-deeplabv3p --html /dev/full/x.html
fi
tap_done
