#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: cmd
# Names of earlier releases: the same output and status as under today's name, and one line on standard error that says it.
. "$(dirname "$0")/../tap_lib.sh"
mkdir -p "$T/folder"
echo one >"$T/folder/a"

n=0
while IFS='|' read -r old new; do
    n=$((n + 1))
    # shellcheck disable=SC2086 # the words of a command
    "$REPERF" $old >"$T/old.out" 2>"$T/old.err" && was=0 || was=$?
    # shellcheck disable=SC2086
    "$REPERF" $new >"$T/new.out" 2>"$T/new.err" && is=0 || is=$?
    is "$was" "$is" "$old: the status of $new"
    ok "$(cmp -s "$T/old.out" "$T/new.out"; echo $?)" "$old: the same output"
    is "$(sed 1d "$T/old.err")" "$(cat "$T/new.err")" "$old: the same messages but for the first"
    like "$(head -n 1 "$T/old.err")" "^reperf: \"${old%% *}\" is now \"" "$old: what it is called now"
done <<TABLE
store ls --json|data ls --json
store add $T/folder/a|data add $T/folder/a
store verify --json|data verify --json
store gc -n --json|data gc -n --json
store drop no/such|data drop no/such
fetch imagenet-2012 --dry-run --json|data fetch imagenet-2012 --dry-run --json
repair imagenet-2012 --json|data repair imagenet-2012 --json
lock none-such|data lock none-such
pack imagenet-2012|data pack imagenet-2012
tree $T/folder|data tree $T/folder
unpack $T/folder/a $T/new|data unpack $T/folder/a $T/new
bundle paddle-perf-2020 --dry-run --json|data bundle paddle-perf-2020 --dry-run --json
import $T/folder|data import $T/folder
image ls --json|data image ls --json
attach no-such-run|status --follow no-such-run
TABLE
is "$n" 15 "every old name was tried"

# `data verify NAME` means what is in the store, whatever lies in the folder of the caller.
mkdir "$T/imagenet-2012"
program=$(realpath "$REPERF")
exits 4 "a folder does not take the name away" sh -c "cd '$T' && '$program' data verify imagenet-2012"
like "$("$REPERF" data verif 2>&1)" 'did you mean verify' "an unknown verb"
like "$("$REPERF" --help)" '^Names of earlier releases' "the help says which names are old"
tap_done
