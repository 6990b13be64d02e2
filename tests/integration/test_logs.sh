#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: judge
# test_logs.sh [NAME... | --write NAME]: what reperf measures of each log in tests/logs/NAME.want (their form: tests/logs/README.md). --write keeps what it
# measures today, of the facts that each case names.
# The functions are called by the cases.
# shellcheck disable=SC2317
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2016
. "$(dirname "$0")/../tap_lib.sh"
W=$ROOT/tests/logs
mkdir "$T/written"

lines() { # N TEXT...: each text N times, with the number of the time for @
    local n=$1 i text
    shift
    for ((i = 1; i <= n; i++)); do for text; do printf '%b\n' "${text//@/$i}"; done; done
}
mllog() { # "KEY|VALUE|METADATA"...: lines of MLPerf
    local each key value metadata
    for each; do
        IFS="|" read -r key value metadata <<<"$each"
        echo ":::MLLOG {\"namespace\": \"\", \"time_ms\": 1613150138000, \"event_type\": \"X\", \"key\": \"$key\", \"value\": $value, \"metadata\": {\"lineno\": 1, $metadata}}"
    done
}
said() { # LINE...: for the line of NCCL that holds @, of each host
    local text each
    while IFS= read -r text; do case $text in *@*) for each; do echo "${text/@/$each}"; done ;; *) echo "$text" ;; esac done
}
scalars() { # LOSS: an event file's, of 12 steps, the first of them slow
    local n
    for ((n = 1; n <= 12; n++)); do echo "$((10 * n)) $((1700000000 + 30 * n)).5 train/loss $1"; done
    for ((n = 1; n <= 12; n++)); do echo "$((10 * n)) $((1700000000 + 30 * n)).5 perf/samples_per_sec $((n == 1 ? 10 : 320))"; done
}
events() { /usr/bin/python3 tests/integration/make_events.py /dev/stdout "$@"; }
again() { # what the format that was written reads of the same log on standard input, by the same arguments; nothing where there is none
    local rest=() idx
    [ -e "$dir/made.json" ] || { echo null && return; }
    cp "$dir/made.json" "$T/written/$base-$line.json"
    for ((idx = 0; idx < ${#args[@]}; idx++)); do
        case ${args[idx]} in --suggest) ;; --unit) idx=$((idx + 1)) ;; *) rest+=("${args[idx]}") ;; esac
    done
    "$REPERF" measure - --format "$dir/made.json" "${rest[@]}" --json <"$path" 2>/dev/null || :
}
one() { # NAME EDIT FACTS: its eight lines for compare.jq
    local path=$log same=false status said reads=null
    rm -f "$dir/made.json"
    if [ -n "$2" ]; then
        path=$dir/${made:-${log##*/}}
        (eval "$2") <"${log:-/dev/null}" >"$path"
        [ -z "$log" ] || ! cmp -s "$log" "$path" || same=true
    fi
    "$REPERF" measure "$path" "${args[@]/#--suggest/--suggest=$dir/made.json}" --json >"$dir/out" 2>"$dir/err"
    status=$?
    said=$(<"$dir/err")
    case " ${args[*]}" in *' --suggest'*) reads=$(again) ;; esac
    printf '%s\n' "$base $line" "${path##*/}: $1" "$3" "$status" "$(<"$dir/out")" "${reads:-null}" "${said//$'\n'/ }" "$same"
}
cases() { # NAME: of NAME.want
    local base=$1 line=0 log='' made='' args=() text name edit facts dir=$T/$1
    mkdir -p "$dir"
    while IFS= read -r text || [ -n "$text" ]; do
        line=$((line + 1))
        case $text in
        '' | '#'*) ;;
        'log: '*) log=${text#log: } log=${log/#shared/$SHARED} made='' ;;
        'made: '*) log='' made=${text#made: } ;;
        'args:'*) read -ra args <<<"${text#args:}" ;;
        *' :: '*' :: '* | *' :: :: '*)
            name=${text%% :: *} facts=${text##*:: } edit=${text#"$name" ::} edit=${edit%:: "$facts"} edit=${edit# } edit=${edit% }
            if [[ $log == "$SHARED"/* && ! -e $log ]]; then printf '%s\n' "$base $line" "$name" skip 0 null null '' false; else one "$name" "$edit" "$facts"; fi
            ;;
        *) printf '%s\n' "$base $line" "$text" "" 0 null null "neither 'log: FILE', 'made: NAME', 'args: ...' nor 'NAME :: EDIT :: FACTS'" false ;;
        esac
    done <"$W/$base.want" >"$T/$base.cases"
}
write=false
[ "${1-}" != --write ] || { write=true && shift; }
names=("$@")
[ $# -gt 0 ] || { mapfile -t names < <(cd "$W" && printf '%s\n' *.want | sed 's/\.want$//'); }
for name in "${names[@]}"; do
    while [ "$(jobs -rp | wc -l)" -gt 2 ]; do wait -n; done
    cases "$name" &
done
wait
for name in "${names[@]}"; do cat "$T/$name.cases"; done >"$T/all"
jq -Rnr -f "$W/compare.jq" "$T/all" >"$T/compared"
if $write; then
    while IFS=$'\x1f' read -r _ _ at facts _; do [ -z "$facts" ] || facts=$facts perl -i -pe 's/^(.*) :: .*$/$1 :: $ENV{facts}/ if $. == '"${at#* }" "$W/${at% *}.want"; done <"$T/compared"
fi
while IFS=$'\x1f' read -r bad name _ _ why; do
    [ "$bad" != skip ] || { skip "$name" "the log is not part of the repository: REPERF_SHARED=DIR names its folder" && continue; }
    ok "$bad" "$name"
    [ -z "$why" ] || echo "#   $why"
done <"$T/compared"
is "$(wc -l <"$T/compared")$(for name in "${names[@]}"; do [ -s "$T/$name.cases" ] || echo " $name"; done)" "$(($(wc -l <"$T/all") / 8))" "no case is lost, and each file has some"
# Facts that do not hold, that are none or that no case names, and an edit that changes nothing: each is seen.
is "$(printf '%s\n' place name verdict=ok 0 '{"verdict":"nan"}' null '' false place name speed=1 0 '{}' null '' false place name '' 0 '{}' null '' false place name verdict=ok 0 '{"verdict":"ok"}' null '' true \
    place name verdict=ok 0 '{"verdict":"ok"}' null '' false | jq -Rnr -f "$W/compare.jq" | cut -c1 | xargs)" "1 1 1 1 0" "what does not hold is seen"
made=("$T"/written/*.json)
[ ! -e "${made[0]}" ] || valid format "the formats that were written, ${#made[@]}, are valid" "${made[@]}"
tap_done
