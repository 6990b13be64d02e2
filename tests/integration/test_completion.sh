#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: cmd
# Drives the shells' real completion: bash through COMP_WORDS and COMPREPLY, fish through `complete -C`.
. "$(dirname "$0")/../tap_lib.sh"

# answers WORD...: what bash offers for the last word of this command line, sorted, on one line.
answers() {
    bash --norc -c '
        eval "$("$1" completion bash)"
        spec=$(complete -p reperf) || exit 1
        [[ $spec == *"-F _reperf reperf" ]] || exit 1
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
        _reperf
        printf "%s\n" "${COMPREPLY[@]}" | sort -u | xargs' - "$@"
}
commands=$("$REPERF" --help | awk '/^  [a-z]/ { print $1 }' | sort | xargs)
is "$(answers "$REPERF" "" | tr ' ' '\n' | grep -v '^--' | xargs)" "$commands" "bash: every command"
is "$(answers "$REPERF" comple)" completion "bash: the rest of a command"
missing=
for command in $commands; do
    verbs=$("$REPERF" "$command" --help | awk '/^  [a-z]/ { print $1 }')
    want=$({ "$REPERF" "$command" --help; for verb in $verbs; do "$REPERF" "$command" "$verb" --help; done } | grep -oE '^  +(-., )?--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+' | sort -u | xargs)
    [ "$(answers "$REPERF" "$command" --)" = "$want" ] || missing="$missing $command"
done
is "$missing" "" "bash: every option of every command"
is "$(answers "$REPERF" list da)" datasets "bash: a literal word of the synopsis"
is "$(answers "$REPERF" list cases paddle-perf-h)" paddle-perf-hrnetw18 "bash: a report's id"
is "$(answers "$REPERF" completion "")" "bash fish zsh" "bash: the shells"
is "$(answers "$REPERF" measure x --format paddlese)" paddleseg "bash: a format after its option"
is "$(answers "$REPERF" measure x --format = paddlese)" paddleseg "bash: a format after --format="
is "$(answers "$REPERF" fetch bert-h)" bert-hdf5-sample "bash: a dataset's id"
is "$(answers "$REPERF" bundle ngc-m)" ngc-mxnet-19.07 "bash: an image's id"
is "$(answers "$REPERF" lock paddle-perf-h)" paddle-perf-hrnetw18 "bash: a report's id as a name"
is "$(answers "$REPERF" image load ngc-m)" ngc-mxnet-19.07 "bash: an image's id after the image's verb"
is "$(answers "$REPERF" nodes list v1)" v100-4x8 "bash: an inventory after the verb of nodes"
is "$(answers "$REPERF" nodes list --)" "--help --json" "bash: the options of a verb alone"
is "$(answers "$REPERF" help comple)" completion "bash: a command after help"
mkdir -p "$T/state/names" "$T/state/runs/20260101T000000.000Z-00000000" && ln -s 20260101T000000.000Z-00000000 "$T/state/names/mine"
is "$(REPERF_STATE="$T/state" answers "$REPERF" report mi)" mine "bash: a run by its name"
mkdir -p "$T/some folder" && : >"$T/a.log"
is "$(answers "$REPERF" measure "$T/a")" "$T/a.log" "bash: a file"

# The same through readline: an interactive bash, a typed Tab.
# shellcheck disable=SC2016
typed=$(printf 'PS1="> "; eval "$(reperf completion bash)"\nreperf complet\tzsh | head -n 1\nexit\n' |
    PATH="$B:$PATH" TERM=dumb timeout 200 bash --norc --noprofile -i 2>&1)
like "$typed" '^#compdef reperf' "bash: a typed Tab finishes the word"
for shell in zsh fish; do
    if command -v "$shell" >/dev/null; then
        "$REPERF" completion "$shell" >"$T/script.$shell"
        succeeds "$shell: the script parses" "$shell" -n "$T/script.$shell"
    else
        skip "$shell: the script parses" "$shell is not installed"
    fi
done
if command -v fish >/dev/null; then
    fish_answers() {
        HOME="$T" PATH="$B:$PATH" fish --no-config -c "source $T/script.fish; complete -C '$1'" | cut -f1 | xargs
    }
    is "$(fish_answers 'reperf comple')" completion "fish: the rest of a command"
    is "$(fish_answers 'reperf list cases paddle-perf-h')" paddle-perf-hrnetw18 "fish: a report's id"
    is "$(fish_answers 'reperf nodes list v1')" v100-4x8 "fish: an inventory after the verb of nodes"
else
    skip "fish: answers" "fish is not installed"
fi
exits 2 "no shell named" "$REPERF" completion
exits 2 "an unknown shell" "$REPERF" completion tcsh
tap_done
