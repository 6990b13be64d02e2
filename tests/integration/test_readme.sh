#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: cmd
# The README is true: its commands are run and print what it shows, its picture is what the command next to it makes, its links lead somewhere.
# shellcheck disable=SC2016
. "$(dirname "$0")/../tap_lib.sh"
command=$(grep -oE '`reperf audit [^`]*--svg [^`]*`' README.md | tr -d '`' | head -n 1)
like "$command" '^reperf audit [a-z0-9-]+ --svg orchestrator/man/report.svg$' "the README names the command of its picture"
read -r _ _ report _ picture <<<"$command"
like "$(cat README.md)" "!\[[^]]+\]\($picture\)" "and shows that picture"
exits 1 "the command works: the report does not hold" "$REPERF" audit "$report" --svg "$T/report.svg"
succeeds "the picture is the one it makes" cmp "$T/report.svg" "$picture"
succeeds "and well-formed" xmllint --noout "$picture"
missing=
while IFS= read -r link; do
    [ -e "$link" ] || missing="$missing $link"
done < <(grep -oE '\]\([^)#:]+\)' README.md | sed 's/^](//; s/)$//')
is "$missing" "" "every link leads to a file"
is "$(awk 'length > 130' README.md)" "" "no line is wide" # bytes; a sign may have three

# --- what it shows is what is printed: the lines shown, in their order, … any text, others between them ------
reperf() { "$REPERF" "$@"; }
mkdir "$T/here" && ln -s "$PWD/tests" "$T/here/tests"
# shown COMMAND FILE: its lines are among what the command prints.
shown() {
    (cd "$T/here" && eval "$1") >"$T/said" 2>&1
    is "$(awk '
        function fits(line, pattern, part, n, i, at) { # its parts between … stand in the line, in their order
            n = split(pattern, part, "…")
            if (n == 1) return line == pattern
            if (index(line, part[1]) != (part[1] != "")) return 0
            line = substr(line, length(part[1]) + 1)
            for (i = 2; i < n; i++) {
                if (!(at = index(line, part[i])) && part[i] != "") return 0
                line = substr(line, at + length(part[i]))
            }
            return length(line) >= length(part[n]) && substr(line, length(line) - length(part[n]) + 1) == part[n]
        }
        NR == FNR { want[++n] = $0; next }
        done < n && fits($0, want[done + 1]) { done++ }
        END { while (done < n) print want[++done] }' "$2" "$T/said")" "" "$1"
}
n=0
while IFS= read -r line; do
    case $line in
    '$ '*)
        n=$((n + 1))
        echo "${line#\$ }" >"$T/command.$n"
        : >"$T/lines.$n"
        ;;
    *) echo "$line" >>"$T/lines.$n" ;;
    esac
done < <(sed -n '/^```console/,/^```$/p' README.md | grep -v '^```')
for i in $(seq "$n"); do
    succeeds "something is shown of $(cat "$T/command.$i")" test -s "$T/lines.$i"
    shown "$(cat "$T/command.$i")" "$T/lines.$i"
done
succeeds "commands with their output: $n" test "$n" -ge 10
# --- what a stranger has is enough: no skip names a folder beside the repository, and what sets up is quick and says how long it takes ---
skipped=$(export SHARED="$T/nowhere" && need_shared "the raw logs")
like "$skipped" "# SKIP the published logs are not here: 'reperf data fetch logs:[a-z0-9-]+' fetches" "a skip says how to come by what is not here"
exits 0 "which works" "$REPERF" data fetch "$(grep -oE 'logs:[a-z0-9-]+' <<<"$skipped" | head -n 1)" --dry-run
is "$(grep -rnE 'skip "[^"]*" "[^"]*\.\./|# SKIP [^"]*\.\./' tests/*.sh tests/*/*.sh | grep -v 'test_readme.sh')" "" "none names a folder that only its authors have"
part() { awk -v head="## $1" '$0 == head { inside = 1; next } /^## / { inside = 0 } inside' README.md; }
is "$(part Install | grep -c 'make test')" 0 "to install is not to test"
is "$(part Contributing | grep -oE '`make [a-z]+[^`]*`' | head -n 3 | xargs)" '`make check` `make check ROOM=judge` `make test`' "a contributor reads of the quick tests first"
for target in check test; do
    like "$(part Contributing | tr '\n' ' ')" "\`make $target\`[^.]* (minutes|hour)" "make $target: how long it takes"
done

unknown=
while IFS= read -r name; do
    "$REPERF" "$name" --help >"$T/help" 2>&1 || unknown="$unknown $name"
done < <(sed -n '/^```sh/,/^```$/p' README.md ./*/README.md ./*/*/README.md | grep -oE '^(\$ )?(build/release/)?reperf +[a-z]+' | awk '{ print $NF }' | sort -u)
is "$unknown" "" "every command of a shell block, here and in the folders, exists"
folders=
for folder in orchestrator workloads manifests images datasets logs tests; do
    [ -s "$folder/README.md" ] || folders="$folders $folder"
done
is "$folders" "" "every folder says what belongs there"
tap_done
