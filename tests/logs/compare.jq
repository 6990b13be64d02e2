# SPDX-License-Identifier: Apache-2.0
# Eight lines a case (tests/integration/test_logs.sh) against its facts: bad, name, place, today's facts, what differs, between tabs.
def told: # of a document
    {format, verdict, value, unit, records, quantity, runs, name, end, why, proposed: .proposed.unit, lines: .counts.lines, read: .counts.read, scope: .series[0].scope, last: .series[-1].value,
     window: (.window | "\(.first_step)-\(.last_step)"), notes: ((.notes // []) | join("; ")),
     counts: ([.counts // {} | to_entries[] | select(.value != 0 and .key != "lines" and .key != "read") | "\(.key)=\(.value)"] | sort | join(",")),
     facts: ([.facts[]? | select(.name != "log_date") | "\(.name)=\(.value)"] | sort | join(" ")),
     recurring: ((.recurring // [])[0] // {} | "\(.min) \(.says)"), table: ([.table[]? | "\(.value) \(.unit)"] | join(",")),
     beside: ([.beside[]? | "\(.format) \(.name) \(.records) \(.verdict) \(.value) \(.unit)"] | join("; "))};
def known: {} | told | keys + ["status", "error", "reads"] | join("|");
def facts: # of "key=value key~ERE"
    [gsub(" (?<key>" + known + ")(?<how>[=~])"; "\n\(.key)\(.how)") | split("\n")[]
     | capture("^(?<key>" + known + ")(?<how>[=~])(?<value>.*)$") // error("no fact: " + .)];
[inputs] as $all | range(0; $all | length; 8) as $at | $all[$at:$at + 8]
| . as [$place, $name, $wanted, $status, $out, $again, $err, $same]
| if $wanted == "skip" then ["skip", $name, $place, "", ""] else
    ($out | fromjson? // {}) as $doc | ($again | fromjson? // {}) as $reads
    | (($doc | told) + {status: $status, error: ($doc.error // $err), reads: $reads.value} | map_values(tostring)) as $got
    | (try ($wanted | facts) catch []) as $facts
    | [(if ($facts | length) == 0 then "no fact is named, or one that is none: \($wanted) \($err)" else empty end),
       (if $same == "true" then "the edit changes nothing" else empty end),
       ($facts[] | . as $fact | $got[.key] as $has | select(if .how == "=" then $has != .value else $has | test($fact.value) | not end) | "\(.key): \($has), and not \(.value)"),
       (if $again == "null" then empty elif $doc.verdict == "no_metric" then "a format is written for no number"
        elif $doc.verdict != "proposed" or any($facts[]; .key == "reads") then empty
        elif $reads.value != $doc.value or $reads.unit != $doc.unit or $reads.records != $doc.records then "the format that is written reads \($reads.value) \($reads.unit) of \($reads.records), and not \($doc.value) \($doc.unit) of \($doc.records)"
        else empty end)] as $why
    | [(if $why == [] then "0" else "1" end), $name, $place,
       ($facts | map(if .how == "~" then "\(.key)~\(.value)" else . as $f | "\(.key)=\($got[$f.key])" end) | join(" ")), ($why | join("; "))]
  end | map(gsub("[\t\n]"; " ")) | join("\u001f")
