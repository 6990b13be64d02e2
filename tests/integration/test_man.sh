#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: cmd
# The man page against the program, both ways: commands, options with their letters and values, exit statuses, variables.
. "$(dirname "$0")/../tap_lib.sh"
page=${MAN_PAGE:-orchestrator/man/reperf.1}

# Commands, and the verbs of those that have verbs with options of their own.
program_commands() {
    local command
    for command in $("$REPERF" --help | awk '/^  [a-z]/ { print $1 }'); do
        "$REPERF" "$command" --help | awk -v command="$command" '/^  [a-z]/ { print command, $1 } END { print command }'
    done
}
# "command --option/letter/VALUE" of every option the program has, and of every one the page has.
program_options() {
    local command
    program_commands | while read -r command; do
        # shellcheck disable=SC2086 # "data fetch" are two words
        "$REPERF" $command --help | awk -v command="${command%% *}" '
            /^ +(-., )?--/ {
                letter = "-"
                at = 1
                if ($1 ~ /^-.,$/) { letter = substr($1, 2, 1); at = 2 }
                # What follows within the first column is the name of the value.
                left = substr($0, 1, 33)
                sub(/^ +(-., )?--[a-z0-9-]+/, "", left)
                split(left, words, " ")
                if ($at != "--help") print command, $at "/" letter "/" words[1]
            }'
    done
}
page_options() {
    awk '
        /^\.Sh / { inside = ($2 == "COMMANDS") }
        /^\.Ss / { command = $2 }
        inside && /^\.It Fl / {
            letter = "-"
            rest = $0
            sub(/^\.It /, "", rest)
            if (rest ~ /^Fl [a-zA-Z] , /) { letter = substr(rest, 4, 1); sub(/^Fl [a-zA-Z] , /, "", rest) }
            split(rest, words, " ")
            print command, "--" words[3] "/" letter "/" (words[4] == "Ar" ? words[5] : "")
        }' "$page"
}
differ() { # A B: lines of one and not of the other
    comm -3 <(sort "$1") <(sort "$2") | tr '\t' '>' | xargs
}
program_options >"$T/program"
page_options >"$T/page"
ok "$([ "$(wc -l <"$T/program")" -ge 30 ]; echo $?)" "the program has options ($(wc -l <"$T/program"))"
is "$(differ "$T/program" "$T/page")" "" "every option with its letter and value, and no other"
is "$(sed -n 's/^\.Ss //p' "$page" | xargs)" "$(program_commands | grep -v -e '^nodes ' -e '^data$' | LC_ALL=C sort | xargs)" "every command, in order"
is "$({ grep -rhoE 'getenv\("[A-Z_]+"\)' orchestrator && sed -n '/define ENGINE_ENV/,/[^\\]$/p' orchestrator/base/engine_env.h; } | grep -oE '"[A-Z_]{2,}"' | tr -d '"' | sort -u | xargs)" \
    "$(sed -n '/^\.Sh ENVIRONMENT/,/^\.Sh FILES/s/^\.It Ev //p' "$page" | sort -u | xargs)" "every environment variable"
is "$(sed -n '/STATUSES\[ERR_CODE_COUNT\]/,/^};/p' orchestrator/base/err.c | grep -o '= [0-9]*' | tr -d '= ' | { echo 0 && cat && sed -n 's/^#define STATUS_[A-Z_]* *\([0-9]*\) .*/\1/p' orchestrator/base/command.h; } | sort -nu | grep -v '^130$' | xargs)" \
    "$(sed -n '/^\.Sh EXIT/,/^\.Sh EXAMPLES/s/^\.It \([0-9]*\)$/\1/p' "$page" | grep -v '^1$' | sort -nu | xargs)" "every exit status (1 is no error; 130 is 128+n)"
is "$(mandoc -T lint -W warning "$page" 2>&1)" "" "mandoc has nothing to say"
rendered=$(mandoc -T utf8 "$page" | col -b)
like "$rendered" 'reproduce and audit published' "it renders"

# The check can fail: an option less, an option more.
if [ -z "${MAN_PAGE-}" ]; then
    sed '0,/^\.It Fl Fl sarif/s//.It Fl Fl saris/' "$page" >"$T/bad.1"
    B="$B" MAN_PAGE="$T/bad.1" "$0" >"$T/bad.out" 2>/dev/null
    like "$(cat "$T/bad.out")" '^not ok 2 ' "a misspelt option is seen"
fi
tap_done
