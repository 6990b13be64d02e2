# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# TAP for shell tests: source it, call ok / skip / is / exits / fails, end with tap_done. Each script gets its own folder $T, removed at the end.
: "${B:=build/release}"
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT" || exit 1
B=$(cd "$B" && pwd) || exit 1
# shellcheck disable=SC2034
REPERF="$B/reperf"
# shellcheck disable=SC2034
TRAIN="$B/reperf-train"
SHARED="${REPERF_SHARED:-$ROOT/../shared}"
T=$(mktemp -d "${TMPDIR:-/tmp}/reperf-test.XXXXXX") || exit 1
export REPERF_STATE="$T/state" REPERF_STORE="$T/store" XDG_DATA_HOME="$T/data" # no manifests but those of the test
# Who commits, where a machine has nobody's name.
export GIT_AUTHOR_NAME=test GIT_AUTHOR_EMAIL=test@example.invalid GIT_COMMITTER_NAME=test GIT_COMMITTER_EMAIL=test@example.invalid
# Six steps in the place of twenty, on less: for a run of paddle-perf-2020's ResNet-50 under the smoke profile where the run is tested and not the training.
smoke_of_it='stacks[reperf].smoke[0]'
# shellcheck disable=SC2034
SHORT=(-C "$smoke_of_it.conditions.batch_per_gpu=2" -C "$smoke_of_it.conditions.iterations=6" -C "$smoke_of_it.conditions.image_size=32"
    -C "$smoke_of_it.commands[0].works=reperf-train --model resnet50 --device cpu --batch 2 --image 32 --steps 6 --eval-every 6 --warmup 4 --data synthetic-learnable --recipe paddle --lr 0.001 --warmup-lr-steps 0")
tap_n=0 tap_bad=0
# A sanitizer's report counts in any process: also in a child whose status is not checked.
case $B in */asan)
    mkdir "$T/sanitizer"
    export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}log_path=$T/sanitizer/report" UBSAN_OPTIONS=print_stacktrace=1
    ;;
esac
trap 'rm -rf "$T"' EXIT
# jq compiles its own library each time that it starts, for eleven times gojq's whole run. gojq sorts the keys of objects: where their order counts, `command jq`.
! command -v gojq >/dev/null || jq() { gojq "$@"; }

ok() { # STATUS NAME: 0 passes
    tap_n=$((tap_n + 1))
    if [ "$1" -eq 0 ]; then echo "ok $tap_n - $2"; else
        echo "not ok $tap_n - $2"
        tap_bad=$((tap_bad + 1))
    fi
}
is() { # GOT WANTED NAME
    local same=1
    [ "$1" = "$2" ] && same=0
    ok "$same" "$3"
    [ "$same" -eq 0 ] || printf '#      got: %s\n#   wanted: %s\n' "$1" "$2"
}
like() { # TEXT ERE NAME
    local hit=1
    grep -qE -- "$2" <<<"$1" && hit=0
    ok "$hit" "$3"
    [ "$hit" -eq 0 ] || printf '#      got: %s\n#  pattern: %s\n' "$1" "$2"
}
exits() { # STATUS NAME COMMAND...: output into $T/out and $T/err
    local want=$1 name=$2 got
    shift 2
    "$@" >"$T/out" 2>"$T/err"
    got=$?
    is "$got" "$want" "$name"
    [ "$got" = "$want" ] || { head -c 600 "$T/err" | sed 's/^/# /'; }
}
succeeds() { # NAME COMMAND...: it ends well; its output stays where it is
    "${@:2}"
    ok $? "$1"
}
# The same, and one of the two says so: `fails 2 'no such case' NAME COMMAND...`.
fails() { exits_saying err "$@"; }  # STATUS ERE NAME COMMAND...
warns() { exits_saying err "$@"; }  # 0 ERE NAME COMMAND...
prints() { exits_saying out "$@"; } # STATUS ERE NAME COMMAND...
tells() { exits_saying both "$@"; } # STATUS ERE NAME COMMAND...: either of them
exits_saying() { # FILE STATUS ERE NAME COMMAND...
    local said_in=$1 want=$2 said=$3 name=$4 got hit=1
    shift 4
    "$@" >"$T/out" 2>"$T/err"
    got=$?
    [ "$said_in" != both ] || cat "$T/out" "$T/err" >"$T/both"
    grep -qE -- "$said" <<<"$(cat "$T/$said_in")" && hit=0
    ok $((got != want || hit)) "$name"
    [ "$got" = "$want" ] || { printf '#      got: %s\n#   wanted: %s\n' "$got" "$want" && head -c 600 "$T/err" | sed 's/^/# /'; }
    [ "$hit" -eq 0 ] || printf '#      got: %s\n#  pattern: %s\n' "$(cat "$T/$said_in")" "$said"
}
# leaves STATUS READER WANTED NAME COMMAND...: how it ends, and what READER, a function, prints then
leaves() {
    local want=$1 reader=$2 text=$3 name=$4 got
    shift 4
    "$@" >"$T/out" 2>"$T/err"
    got=$?
    is "$got: $("$reader")" "$want: $text" "$name"
    [ "$got" = "$want" ] || { head -c 600 "$T/err" | sed 's/^/# /'; }
}
# shellcheck disable=SC2317
{
    output() { cat "$T/out"; }
    filtered() { jq -cr "$filter" "$T/out"; }
    forbidden() { grep -hE -- "$filter" "$T/out" "$T/err"; }
}
answers() { # STATUS FILTER WANTED NAME COMMAND...: how it ends, and what jq's FILTER makes of its document
    local filter=$2
    leaves "$1" filtered "${@:3}"
}
omits() { # STATUS ERE NAME COMMAND...: how it ends, and neither output has such a line
    local filter=$2
    leaves "$1" forbidden "" "${@:3}"
}
documents() { # SCHEMA STATUS NAME COMMAND...: how it ends, and what it prints is a document by that schema; it is $T/document, too
    exits "${@:2}"
    valid "$1" "$3: its document is valid"
}
valid() { # SCHEMA [NAME [FILE...]]: those files, or what the last command printed
    local status=0 schema=$1 name=${2:-its document is valid}
    shift $(($# < 2 ? $# : 2))
    [ $# -gt 0 ] || { cp "$T/out" "$T/document" && set -- "$T/document"; }
    validates "$ROOT/manifests/schema/$schema.json" "$@" || status=1
    ok "$status" "$name"
    [ "$status" -eq 0 ] || /usr/bin/python3 "$ROOT/tests/integration/validate.py" "$ROOT/manifests/schema/$schema.json" "$@" 2>&1 | head -n 5 | sed 's/^/# /'
}
validates() { # SCHEMA FILE...: by that file's schema, with validate.py's status: one process for all of a script, which takes longer to start than to judge
    local status='' path line=''
    if [ "$BASH_SUBSHELL" -gt 0 ]; then
        /usr/bin/python3 "$ROOT/tests/integration/validate.py" "$@" >/dev/null 2>&1
        return
    fi
    if [ -z "${VALIDATOR_PID-}" ]; then
        coproc VALIDATOR { exec /usr/bin/python3 "$ROOT/tests/integration/validate.py" --each 2>/dev/null; }
        disown "$VALIDATOR_PID"
    fi
    for path; do
        case $path in /*) ;; *) path=$PWD/$path ;; esac
        line+=${line:+$'\t'}$path
    done
    echo "$line" >&"${VALIDATOR[1]}"
    read -r -t 120 status <&"${VALIDATOR[0]}"
    return "${status:-2}"
}
value() { # FILE PYTHON-EXPRESSION over d
    /usr/bin/python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"
}
skip() { # NAME REASON
    tap_n=$((tap_n + 1))
    echo "ok $tap_n - $1 # SKIP $2"
}
needs() { # NAME PROGRAM...: where one is not here, NAME is skipped, and the script ends
    local name=$1 program
    shift
    for program; do
        command -v "$program" >/dev/null || [ -x "/usr/sbin/$program" ] || { skip "$name" "$program is not installed" && tap_done; }
    done
}
in_test_all() { # WHAT: true in make test-all; otherwise false, and named at the end of make test
    [ "${TIER:-everyday}" = all ] && return 0
    echo "# test-all: $1"
    return 1
}
# shellcheck source=tests/server_lib.sh
. "${BASH_SOURCE[0]%/*}/server_lib.sh"
served() { # PID WHAT COMMAND...: waits until it holds; where that process has ended before, or after two minutes, the script ends here, and says so
    local pid=$1 what=$2 tries
    shift 2
    for ((tries = 0; tries < 2400; tries++)); do
        "$@" && return 0
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.05
    done
    "$@" && return 0
    ok 1 "$what: $(kill -0 "$pid" 2>/dev/null && echo 'not after two minutes' || echo 'its process has ended')"
    tap_done
}
need_shared() { # NAME: false, and a named skip, where the published logs are absent
    [ -d "$SHARED/published/logs" ] && return 0
    skip "$1" "the published logs are not here: 'reperf data fetch logs:paddle-perf-deeplabv3p' fetches a report's, 'reperf audit --logs store' reads them"
    return 1
}
tap_done() {
    if [ -d "$T/sanitizer" ]; then
        is "$(cat "$T"/sanitizer/* 2>/dev/null | head -n 40)" "" "the sanitizers found nothing"
    fi
    echo "1..$tap_n"
    [ "$tap_bad" -eq 0 ]
    exit $?
}
