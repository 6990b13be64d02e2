#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# runc for a root without CAP_SYS_RESOURCE: the capability is taken out of the bundle and limits are cut down to the hard limits in force, which
# is what the container then sees.
bundle=.
wanted=
for word in "$@"; do
    case $word in
    --bundle=*) bundle=${word#*=} ;;
    esac
    [ "$wanted" != bundle ] || bundle=$word
    wanted=
    case $word in --bundle | -b) wanted=bundle ;; esac
done
config="$bundle/config.json"
case " $* " in
*" create "* | *" run "*)
    hard() { # LETTER UNIT
        local limit
        limit=$(ulimit -H"$1")
        [ "$limit" = unlimited ] && echo 9000000000000000000 || echo $((limit * $2))
    }
    new=$(jq -c --argjson files "$(hard n 1)" --argjson locked "$(hard l 1024)" --argjson processes "$(hard u 1)" --argjson stack "$(hard s 1024)" '
        {RLIMIT_NOFILE: $files, RLIMIT_MEMLOCK: $locked, RLIMIT_NPROC: $processes, RLIMIT_STACK: $stack} as $most
        | if .process.capabilities then .process.capabilities |= map_values(map(select(. != "CAP_SYS_RESOURCE"))) else . end
        | if .process.rlimits then .process.rlimits |= map(($most[.type] // 9000000000000000000) as $m
            | .hard = ([.hard, $m] | min) | .soft = ([.soft, $m] | min)) else . end' "$config") && printf '%s\n' "$new" >"$config"
    ;;
esac
exec runc "$@"
