#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The README says what is so: its picture is what the command beside it makes, its links lead somewhere, its commands exist.
. "$(dirname "$0")/../tap_lib.sh"
# shellcheck disable=SC2016
command=$(grep -oE '`build/release/reperf report [^`]*--svg [^`]*`' README.md | tr -d '`' | head -n 1)
like "$command" '^build/release/reperf report [a-z0-9-]+ --svg orchestrator/man/report.svg$' "the README names the command of its picture"
read -r _ _ report _ picture <<<"$command"
like "$(cat README.md)" "!\[[^]]+\]\($picture\)" "and shows that picture"
exits 0 "the command works" "$REPERF" report "$report" --svg "$T/report.svg"
cmp "$T/report.svg" "$picture"
ok $? "the picture is the one it makes"
xmllint --noout "$picture"
ok $? "and well-formed"
missing=
while IFS= read -r link; do
    [ -e "$link" ] || missing="$missing $link"
done < <(grep -oE '\]\([^)#:]+\)' README.md | sed 's/^](//; s/)$//')
is "$missing" "" "every link leads to a file"
unknown=
while IFS= read -r name; do
    "$REPERF" "$name" --help >"$T/help" 2>&1 || unknown="$unknown $name"
done < <(grep -oE '^(\$ )?build/release/reperf +[a-z]+' README.md | awk '{ print $NF }' | sort -u)
is "$unknown" "" "every command exists"
"$REPERF" audit paddle-perf-deeplabv3p >"$T/audit"
wrong=
while IFS= read -r line; do
    grep -qF -- "$line" "$T/audit" || wrong="$wrong|$line"
done < <(sed -n '/^\$ build.*audit paddle-perf-deeplabv3p/,/^```/p' README.md | grep -E 'deeplabv3p |cells:' | grep -v '^\$')
is "$wrong" "" "the table shown is what audit prints"
folders=
for folder in orchestrator workloads manifests images datasets logs tests; do
    [ -s "$folder/README.md" ] || folders="$folders $folder"
done
is "$folders" "" "every folder says what belongs there"
tap_done
