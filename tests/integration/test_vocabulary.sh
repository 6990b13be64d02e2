#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: report
# Units, metrics, precisions and condition names are data: manifests/vocabulary.json. An unlisted word is refused; a new word needs no C.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2016
. "$(dirname "$0")/../tap_lib.sh"
V=manifests/vocabulary.json
R=manifests/reports/dlperf-tf2-resnet50.json

valid vocabulary "it is valid by its schema" $V
is "$(jq -r '[.units, .metrics, .precisions][] | [.[] | .name, .aliases[]] | group_by(.) | .[] | select(length > 1) | .[0]' $V)" "" "no word of a list stands for two things"
is "$(jq -r '.dimensions as $d | (.units + .metrics)[] | select(.dimension as $x | $d | index($x) | not) | .name' $V)" "" "each dimension is there"
for word in images/s img/s samples/s tokens/s words/s s ms % W ppl BLEU GiB; do
    is "$(jq --arg w "$word" '[.units[] | select(.name == $w or (.aliases | index($w)))] | length' $V)" 1 "a unit: $word"
done
for word in throughput latency step_time memory efficiency mfu power perplexity bleu accuracy; do
    is "$(jq --arg w "$word" '[.metrics[] | select(.name == $w)] | length' $V)" 1 "a metric: $word"
done
for word in bf16 tf32 fp8 int8; do
    is "$(jq --arg w "$word" '[.precisions[] | select(.name == $w)] | length' $V)" 1 "a precision: $word"
done
is "$(jq -c '.conditions | . == sort' $V)" true "conditions are in order"
is "$(jq -r '[.. | objects | .conditions?.propertyNames?.enum? // empty] | first[]' manifests/schema/report.json | sort | diff - <(jq -r '.conditions[]' $V) | grep -c '^<')" 0 "the schema of reports knows no other condition"
words() { jq -c "[.units[] | select($1) | .name, .aliases[] | select(. != \"\")] | sort" $V; } # FILTER of units; a cell of a report has one
is "$(command jq -c '[.. | objects | .unit? | .enum? // empty | select(length > 20)] | first | sort' manifests/schema/report.json)" "$(words true)" "the schema of reports knows these units"
for metric in throughput run_throughput; do
    is "$(jq -c --arg m $metric '[.. | objects | select(.if?.properties?.metric?.const? == $m).then.properties.unit.enum] | first | sort' manifests/schema/report.json)" "$(words '.dimension == "rate"')" "and these of $metric"
done
is "$(command jq -c '[.. | objects | .unit? | .enum? // empty | select(length > 20)] | first | sort' manifests/schema/audit-output.json)" "$(words true)" "the schema of an audit knows them"
is "$(command jq -c '[.. | objects | .unit? | .enum? // empty | select(index("samples/s"))] | first | sort' manifests/schema/measure-output.json)" "$(jq -c '[.units[].name] | sort' $V)" "the schema of what measure prints knows the canonical ones"

mkdir -p "$T/root/manifests/reports"
cp -R manifests/formats $V "$T/root/manifests/"
export REPERF_ROOT="$T/root"
made() { # JQ: the report changed, linted; status in $status, message in $T/err
    jq "$1" $R >"$T/root/manifests/reports/dlperf-tf2-resnet50.json"
    "$REPERF" lint dlperf-tf2-resnet50 >"$T/out" 2>"$T/err"
    status=$?
}
refused() { # NAME JQ MESSAGE
    made "$2"
    is "$status" 3 "$1: refused"
    like "$(cat "$T/err")" "$3" "with its reason"
}
made .
succeeds "the report as it is loads" test "$status" -lt 2
refused "a unit of another dimension" '.cases[0].cells[0].unit = "s"' '\$\.cases\[0\]\.cells\[0\]: unit: "s" is not a unit of throughput, whose dimension is rate'
refused "a unit that is not there" '.cases[0].cells[0].unit = "furlongs/s"' '"furlongs/s" is not a unit of throughput'
refused "a rate of steps for one of items" '.cases[0].cells[0].unit = "it/s"' '"it/s" is not a unit of throughput'
refused "a metric that is not there" '.cases[0].cells[0].metric = "speediness"' 'metric: "speediness" is not one of the words'
refused "a condition that is not there" '.cases[0].conditions = {"mood": "good"}' '"mood" is not one of the conditions'
made '.cases[0].cells[0].unit = "images/second"'
succeeds "an alias is a unit" test "$status" -lt 2
made '(.cases[0].cells[0] | .metric, .unit, .cell) |= . | .cases[0].cells += [.cases[0].cells[0] | .metric = "memory" | .unit = "GiB" | .cell |= sub("#.*"; "#memory") | .rule = null | .derive = null]'
succeeds "a cell of memory in GiB" test "$status" -lt 2
refused "memory in seconds" '.cases[0].cells += [.cases[0].cells[0] | .metric = "memory" | .unit = "ms" | .cell |= sub("#.*"; "#memory") | .rule = null]' '"ms" is not a unit of memory, whose dimension is bytes'

# A new unit: one line of JSON.
jq '.units += [{"name": "molecules/s", "dimension": "rate", "kind": "molecules", "aliases": ["mol/s"]}] | .conditions += ["mood"]' $V >"$T/root/manifests/vocabulary.json"
made '.cases[0].cells[0].unit = "mol/s" | .cases[0].conditions.mood = "good"'
succeeds "a unit and a condition added to the data are known" test "$status" -lt 2
jq '.series[0].unit = "molecules/s"' manifests/formats/timm.json >"$T/root/manifests/formats/timm.json"
is "$("$REPERF" measure --json tests/integration/formats/timm.log 2>"$T/err" | jq -r .unit)" molecules/s "to formats too"
jq '.series[0] += {unit: "W", quantity: "rate"}' manifests/formats/timm.json >"$T/root/manifests/formats/timm.json"
fails 3 'timm.json:\$\.series\[0\].*unit "W" does not fit quantity rate' "a rate in watts is refused" "$REPERF" measure tests/integration/formats/timm.log
cp manifests/formats/timm.json "$T/root/manifests/formats/"
jq '.units[0].dimension = "mood"' $V >"$T/root/manifests/vocabulary.json"
made .
is "$status" 3 "a unit without a dimension that is listed: refused"
jq '.units[1].aliases += ["samples/s"]' $V >"$T/root/manifests/vocabulary.json"
made .
is "$status" 3 "a word that stands for two units: refused"
tap_done
