#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: report
# Every manifest is valid against its JSON Schema by an independent validator (python3-jsonschema), which refuses planted faults; what reports name is there;
# every published number of ../shared/published/numbers.csv is a cell.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2016
source "$(dirname "$0")/../tap_lib.sh"
C=(/usr/bin/python3 tests/integration/check_reports.py)
S=manifests/schema

valid() { # SCHEMA FILE...
    local schema=$1
    shift
    exits 0 "$# documents are valid against $schema" validates "$S/$schema.json" "$@"
    head -n 5 "$T/out" | sed 's/^/# /'
}
refused() { # SCHEMA GOOD NAME SED-SCRIPT: GOOD changed by the script is refused, and differs from GOOD
    local planted="$T/planted-${#names[@]}.json"
    sed -E "$4" "$2" >"$planted"
    if cmp -s "$2" "$planted"; then
        ok 1 "$1: $3: the fault was planted"
    else
        names+=("$1: refused: $3")
        printf '%s\t%s\n' "$S/$1.json" "$planted" >>"$T/each"
    fi
}
names=()
judged() { # all of them, by one process
    local got idx
    mapfile -t got < <(/usr/bin/python3 tests/integration/validate.py --each <"$T/each")
    for idx in "${!names[@]}"; do is "${got[idx]:-none}" 1 "${names[idx]}"; done
}

echo '[]' >"$T/empty.json"
for f in "$S"/*.json; do
    names+=("${f##*/} is a JSON Schema 2020-12, and refuses an empty list")
    printf '%s\t%s\n' "$f" "$T/empty.json" >>"$T/each"
done
mapfile -t tables < <(grep -l '"schema_version": 2' manifests/reports/*.json)
mapfile -t spelled < <(grep -L '"schema_version": 2' manifests/reports/*.json)
valid report-2 "${tables[@]}"
for f in "${tables[@]}"; do
    "$B/servers/spell_out" . "$f" >"$T/${f##*/}" && spelled+=("$T/${f##*/}")
done
valid report "${spelled[@]}"
valid format manifests/formats/*.json
valid image images/*/image.json
valid dataset datasets/*/dataset.json
valid inventory manifests/inventories/*.json

R=manifests/reports/paddle-perf-hrnetw18.json
refused report $R "an unknown key" '1s/"title"/"colour": "red", "title"/'
refused report $R "a key that is missing" '1s/"id": "[^"]*", //'
refused report $R "a key twice" '1s/"schema_version": 1/"schema_version": 1, "schema_version": 1/'
refused report $R "another schema version" '1s/"schema_version": 1/"schema_version": 2/'
refused report $R "something after the document" '$s/$/ {}/'
refused report $R "a truncated document" '$d'
refused report $R "NaN" 's/"gpus": 8,/"gpus": NaN,/'
refused report $R "a condition that is not in the list" 's/"cpu_cores"/"cpu_cares"/'
refused report $R "a condition that is a number" 's/"cpu_cores": "80"/"cpu_cores": 80/'
refused report $R "a printed value that is a number" 's/"printed": "19.428"/"printed": 19.428/'
refused report $R "a printed value with a unit in it" 's/"printed": "19.428"/"printed": "19.428 img"/'
refused report $R "a unit of another metric" 's/"unit": "samples\/s"/"unit": "%"/'
refused report $R "a case id without its batch" 's/"id": "hrnetw18\/paddle\/fp32\/n1g1\/bs8"/"id": "hrnetw18\/paddle\/fp32\/n1g1"/'
refused report $R "a cell whose id says another metric" 's/n1g1\/bs8#throughput/n1g1\/bs8#accuracy/'
refused report $R "logs without a rule" 's/"rule": "paddleseg\/skip2-trim5"/"rule": null/'
refused report $R "a log path that leaves its folder" 's/"logs": \["HRNetW18/"logs": ["..\/HRNetW18/'
refused report $R "a short commit" 's/"commit": "bca2114df6[0-9a-f]*"/"commit": "bca2114df6"/'
refused report $R "a purpose that is not in the list" 's/"purpose": "pull"/"purpose": "push"/'
refused report $R "a command that is neither printed nor works" 's/"printed": "pip install -r requirements.txt", "works": null/"printed": null, "works": null/'
refused report $R "an invalid digest" 's/"image_digest": null/"image_digest": "sha256:12"/'
refused report $R "a reperf case with an environment" 's/("stack": "reperf", "environment": )null/\1"single"/'
F=manifests/formats/mmseg.json
refused format $F "an unknown statistic" 's/"statistic": "mean"/"statistic": "mode"/'
refused format $F "a rate in seconds" 's/"quantity": "step_time"/"quantity": "rate"/'
refused format $F "a pattern without its value" 's/\(\?<value>/(?:/'
refused format $F "a window that starts before the log" 's/"skip": 5/"skip": -5/'
refused format $F "a rule of unknown origin" 's/"origin": "inferred"/"origin": "hearsay"/'
refused image images/reperf-cuda12/image.json "an invalid digest" 's/"digest": null/"digest": "md5:00"/'
refused image images/reperf-cuda12/image.json "an unknown key" 's/"base"/"bass"/'
refused dataset datasets/cityscapes/dataset.json "an MD5 of 31 digits" 's/"md5": "3/"md5": "/'
refused dataset datasets/cityscapes/dataset.json "a file name with a slash" 's/"name": "cityscapes.tar"/"name": "a\/cityscapes.tar"/'
refused dataset datasets/cityscapes/dataset.json "a glob that leaves the tree" 's/"glob": "cityscapes\/left/"glob": "..\/left/'
refused dataset datasets/cityscapes/dataset.json "an unknown format" 's/"format": "png"/"format": "gif"/'
refused dataset datasets/imagenet-2012/dataset.json "a range of one number" 's/\[732, 1300\]/[732]/'
refused dataset datasets/cityscapes/dataset.json "a synthetic dataset without a seed" 's/"seed": 20160601,//'
refused inventory manifests/inventories/v100-4x8.json "port 0" 's/"port": 22/"port": 0/'
refused inventory manifests/inventories/v100-4x8.json "an unknown runtime" 's/"docker"/"rocket"/'
refused inventory manifests/inventories/v100-4x8.json "a name that is a command" 's/"node\[1-4\]"/"$(reboot)"/'
refused inventory manifests/inventories/v100-4x8.json "a set with an operator" 's/"node\[1-4\]"/"node[1-5]!node5"/'
refused inventory manifests/inventories/test-4.json "a registry without its port" 's/10.11.0.1:5000/10.11.0.1/'
refused inventory manifests/inventories/test-4.json "an unknown launcher" 's/"launcher": "ssh"/"launcher": "pbs"/'

judged

exits 0 "what reports name is there, and ids are unique" "${C[@]}" references .
head -n 5 "$T/out" | sed 's/^/# /'
mkdir -p "$T/root/manifests/reports" && cp -R manifests/formats "$T/root/manifests/" && cp -R images datasets "$T/root/"
sed -E 's/"stack": "mmseg"/"stack": "mmsag"/' $R >"$T/root/manifests/reports/${R##*/}"
prints 1 'stack mmsag is not there' "a stack that is not there is found" "${C[@]}" references "$T/root"
if need_shared "every row of numbers.csv is a cell of its report with its log"; then
    exits 0 "every row of numbers.csv is a cell of its report with its log" "${C[@]}" numbers . "$SHARED/published/numbers.csv"
    is "$(tail -n 1 "$T/out")" "106 rows, 0 wrong" "all 106 of them"
    sed 's/,117.205,/,117.206,/' "$SHARED/published/numbers.csv" >"$T/numbers.csv"
    exits 1 "a number that is not in the report is found" "${C[@]}" numbers . "$T/numbers.csv"
    is "$(tail -n 1 "$T/out")" "106 rows, 1 wrong" "one of them"
fi
tap_done
