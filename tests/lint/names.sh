#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Names of the orchestrator: nothing public that only tests use, no struct of one name in two files, no function of too many parameters, no look-up by name
# after binding, no second judgement of a log, no second way to write a document, no second derivation.
cd "${LINT_ROOT:-$(dirname "$0")/../..}" || exit 1
n=0 bad=0
report() { # WHAT IS WRONG, NAME
    n=$((n + 1))
    if [ -z "$1" ]; then echo "ok $n - $2"; else
        printf '# %s\n' "$1"
        echo "not ok $n - $2"
        bad=1
    fi
}
mapfile -t product < <(git ls-files 'orchestrator/*.[ch]' 'workloads/*.[ch]' 'workloads/*.cu' 'workloads/*.cuh')
mapfile -t ours < <(git ls-files 'orchestrator/*.[ch]')
code() { # FILE...: "FILE<tab>text" of each line, without comments and words of text
    awk '
        FNR == 1 { inside = 0 }
        {
            line = $0
            gsub(/\\["\\]/, "", line)
            gsub(/"[^"]*"/, "\"\"", line)
            out = ""
            while (line != "") {
                if (inside) {
                    at = index(line, "*/")
                    if (!at) break
                    line = substr(line, at + 2)
                    inside = 0
                } else {
                    at = index(line, "/*")
                    if (!at) { out = out line; break }
                    out = out substr(line, 1, at - 1) " "
                    line = substr(line, at + 2)
                    inside = 1
                }
            }
            sub(/\/\/.*/, "", out)
            print FILENAME "\t" out
        }' "$@"
}
text=$(mktemp) || exit 1
trap 'rm -f "$text"' EXIT
code "${product[@]}" >"$text"

# Declared in a header of ours and defined, and nothing else of the product has the name.
lonely=$(awk -F'\t' '
    { rest = $2
      while (match(rest, /[A-Za-z_][A-Za-z0-9_]*/)) {
          word = substr(rest, RSTART, RLENGTH)
          rest = substr(rest, RSTART + RLENGTH)
          seen[word]++
          if (rest ~ /^\(/ && $1 ~ /^orchestrator\/.*\.h$/ && $2 ~ /^[A-Za-z]/ && $2 !~ /^(static|#)/ && word !~ /^[A-Z_]+$|_cleanup$/) declared[word] = $1
      } }
    END { for (word in declared) if (seen[word] <= 2) printf "%s (%s) ", word, declared[word] }' "$text")
report "$lonely" "no public function that only tests use"

# But for the options of a command (args).
twice=$(awk -F'\t' '$1 ~ /^orchestrator\/[^\/]*\// && match($2, /^struct [a-z0-9_]+ \{/) {
    name = substr($2, 8, RLENGTH - 9)
    if (!(name in where)) where[name] = $1
    else if (name != "args") printf "%s (%s and %s) ", name, where[name], $1
}' "$text")
report "$twice" "no name of a struct in two files"

# With err, which each function that can fail has, and what it gives back.
wide=$(code "${ours[@]}" | awk -F'\t' -v most=6 '
    $1 != file { file = $1; head = "" }
    head == "" && $2 ~ /^[A-Za-z].*[A-Za-z0-9_]\(/ && $2 !~ /[;=]/ { head = $2 }
    head != "" && $2 !~ /^[A-Za-z].*[A-Za-z0-9_]\(/ { head = head " " $2 }
    head != "" && $2 ~ /;/ { head = "" }
    head != "" && $2 ~ /^\{/ {
        sub(/^[^(]*[^A-Za-z0-9_(]/, "", head)
        args = head
        sub(/^[^(]*\(/, "", args)
        while (gsub(/\([^()]*\)/, "", args)) { }
        sub(/\).*/, "", args)
        count = gsub(/,/, ",", args) + 1
        if (count > most) printf "%s:%s has %d ", $1, substr(head, 1, index(head, "(") - 1), count
        head = ""
    }')
report "$wide" "functions of at most 6 parameters"

# The first law of orchestrator/README: what was found is a pointer. A name is looked up where it is read (load, bind), where a user gives it (explain,
# measure --rule), and where the function itself is.
named=$(awk -F'\t' '
    $1 ~ /^orchestrator\/(load\/|judge\/bind\.[ch]|cmd\/explain_names\.c|log\/format\.[ch]|judge\/rule\.[ch]|report\/report\.[ch])/ { next }
    $1 ~ /^orchestrator\// && match($2, /(^|[^A-Za-z0-9_])(format_find|format_rule|report_case_find|cell_format|cell_rule)\(/) {
        printf "%s: %s) ", $1, substr($2, RSTART, RLENGTH)
    }' "$text")
report "$named" "look-ups by name only in load, bind and explain"

# The second law: whether a log may give a number is decided in one place.
decided=$(awk -F'\t' '
    $1 ~ /^orchestrator\// && $1 !~ /^orchestrator\/(log\/|judge\/judgement\.c)/ && match($2, /(^|[^A-Za-z0-9_])PARSE_(OK|NO_METRIC|INCOMPLETE|NAN|AMBIGUOUS|TRUNCATED|PROPOSED)/) {
        printf "%s: %s ", $1, substr($2, RSTART, RLENGTH)
    }' "$text")
report "$decided" "verdicts on logs are known to log and judgement alone"

# The third law: a document is one table, which reads it and writes it. In a file that has a table only what a row cannot say is written by hand, by a
# function called put.
twice_written=$(awk -F'\t' '
    $1 != file { file = $1; name = "" }
    $2 ~ /^[A-Za-z].*[A-Za-z0-9_]\(/ && $2 !~ /[;=]/ { name = $2; sub(/\(.*/, "", name); sub(/.*[^A-Za-z0-9_]/, "", name) }
    $1 ~ /^orchestrator\// && $2 ~ /struct json_field [A-Z_]+\[/ { has_table[$1] = 1 }
    $1 ~ /^orchestrator\// && name !~ /(^|_)put(_|$)/ && $2 ~ /(^|[^A-Za-z0-9_])jw_(str|z|i64|f64|bool|null)\(/ { written[$1] = name }
    END {
        for (file in has_table) if (file in written) printf "%s: %s ", file, written[file]
    }' "$text")
report "$twice_written" "a document that has a table is written by it"

# What vouches is durable after what it vouches for: one helper syncs and names.
synced=$(awk -F'\t' '
    $1 !~ /^orchestrator\/base\/publish\.c$/ && match($2, /(^|[^A-Za-z0-9_])(fsync|fdatasync|syncfs|sync)\(/) {
        printf "%s: %s) ", $1, substr($2, RSTART, RLENGTH)
    }' "$text")
report "$synced" "only base/publish syncs"

# What a killed process leaves has a name that the next one knows.
named=$(awk -F'\t' '
    $1 ~ /^orchestrator\// && match($2, /(^|[^A-Za-z0-9_])(mkdtemp|mkstemp|mkostemp|tmpfile)(64)?\(/) {
        printf "%s: %s) ", $1, substr($2, RSTART, RLENGTH)
    }' "$text")
report "$named" "only base/temp makes temporary names"

# The fifth law: nothing that is judged chooses how strictly. Neither a number of the rules in force is kept, nor are there rules for what is old.
chosen=$(awk -F'\t' '
    $1 ~ /^orchestrator\// && match($2, /(^|[^A-Za-z0-9_])(DERIVATION_[A-Z_]+|(->|\.)derivation([^A-Za-z0-9_]|$))/) {
        printf "%s: %s ", $1, substr($2, RSTART, RLENGTH)
    }' "$text")
report "$chosen" "one derivation for everything that is judged"
echo "1..$n"
exit $bad
