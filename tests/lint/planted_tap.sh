#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/tap.sh notices programs that die, hang, stop in the middle or print nothing, and counts a skip as a skip.
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root" || exit 1
tree=$(mktemp -d "${TMPDIR:-/tmp}/reperf-planted.XXXXXX") || exit 1
trap 'rm -rf "$tree"' EXIT
n=0 bad=0
export XDG_CACHE_HOME="$tree/cache" TAP_RETRIES=0
mkdir -p "$tree/emu"
check() { # NAME SUMMARY STATUS [LINE OF ITS OUTPUT]: a program, its text on standard input, alone in a run
    local output status good=0
    { echo '#!/bin/bash' && cat; } >"$tree/$1"
    chmod +x "$tree/$1"
    output=$(B="$tree/b" TEST_LIMIT_S="${limit:-60}" TIER="${tier:-everyday}" tests/tap.sh "$tree/$1" 2>&1)
    status=$?
    [ "$(tail -n 1 <<<"$output")" = "$2" ] && [ "$status" -eq "$3" ] && grep -qE -- "${4:-passed}" <<<"$output" || good=1
    n=$((n + 1))
    if [ "$good" -eq 0 ]; then echo "ok $n - $1: $2"; else
        echo "not ok $n - $1: $2"
        printf '# status %s: %s\n' "$status" "${output//$'\n'/$'\n'# }"
        bad=1
    fi
}
# Before its limit it must have said something: that is long, and passes beside all that follows.
(limit=8 check hangs "1 passed, 1 failed, 0 skipped" 1 'status 124: 8 s is its limit' <<<'echo ok 1 - a; exec sleep 60' && exit "$bad") >"$tree/hangs.said" &
hangs=$!
check passes "2 passed, 0 failed, 0 skipped" 0 <<<'printf "ok 1 - a\nok 2 - b\n1..2\n"'
check fails "1 passed, 1 failed, 0 skipped" 1 'not ok 2 - b' <<<'printf "ok 1 - a\nnot ok 2 - b\n1..2\n"; exit 1'
check fails_with_0 "1 passed, 1 failed, 0 skipped" 1 <<<'printf "ok 1 - a\nnot ok 2 - b\n1..2\n"'
check dies "1 passed, 1 failed, 0 skipped" 1 'ended with status 137' <<<'echo ok 1 - a; kill -9 $$'
check ends_badly "2 passed, 1 failed, 0 skipped" 1 'ended with status 3' <<<'printf "ok 1 - a\nok 2 - b\n1..2\n"; exit 3'
check stops_early "1 passed, 1 failed, 0 skipped" 1 'planned 2 tests and ran 1' <<<'printf "1..2\nok 1 - a\n"'
check runs_more "2 passed, 1 failed, 0 skipped" 1 'planned 1 tests and ran 2' <<<'printf "1..1\nok 1 - a\nok 2 - b\n"'
check no_plan "1 passed, 1 failed, 0 skipped" 1 'has no plan' <<<'echo ok 1 - a'
check says_nothing "0 passed, 1 failed, 0 skipped" 1 'has no plan' <<<':'
check plans_nothing "0 passed, 1 failed, 0 skipped" 1 'ran no test' <<<'echo 1..0'
# shellcheck disable=SC2016
check sanitizer_reports "1 passed, 1 failed, 0 skipped" 1 'not ok 2 - the sanitizers found nothing' \
    <<<'B=${0%/*}/asan; mkdir "$B"; . tests/tap_lib.sh; ok 0 a; echo leak >"${ASAN_OPTIONS##*log_path=}.7"; tap_done'
check is_not_there "0 passed, 1 failed, 0 skipped" 1 'status 12[67]' <<<'exec /nowhere'
# Nothing passed: no run is green for what it left out.
check skips_all "0 passed, 0 failed, 1 skipped" 1 'skipped: .*skips_all: 1..0 # SKIP no such device' <<<'echo "1..0 # SKIP no such device"'
check skips_all_and_dies "0 passed, 1 failed, 1 skipped" 1 'ended with status 4' <<<'echo "1..0 # SKIP no such device"; exit 4'
check skips_one "1 passed, 0 failed, 1 skipped" 0 'skipped: .*skips_one: ok 2 - b # skip no GPU' <<<'printf "ok 1 - a\nok 2 - b # skip no GPU\n1..2\n"'
check skips_as_cmocka "1 passed, 0 failed, 1 skipped" 0 'skipped: .*not ok 2 # SKIP b' <<<'printf "1..2\nok 1 - a\nnot ok 2 # SKIP b\n"'
check todo "1 passed, 0 failed, 1 skipped" 0 'skipped: .*not ok 2 - b # TODO issue 4' <<<'printf "ok 1 - a\nnot ok 2 - b # TODO issue 4\n1..2\n"'
check leaves_to_all "1 passed, 0 failed, 0 skipped" 0 'only in make test-all: .*leaves_to_all: the whole network' <<<'printf "ok 1 - a\n# test-all: the whole network\n1..1\n"'
check leaves_to_frameworks "1 passed, 0 failed, 0 skipped" 0 'only in make test-frameworks: .*leaves_to_frameworks: every column' <<<'printf "ok 1 - a\n# test-frameworks: every column\n1..1\n"'
# shellcheck disable=SC2016
long='. tests/tap_lib.sh; in_test_all "the whole network" && ok 0 "the whole network"; ok 0 "a"; tap_done'
mkdir -p "$tree/b"
check everyday "1 passed, 0 failed, 0 skipped" 0 'only in make test-all: .*: the whole network$' <<<"$long"
tier=all check in_all "2 passed, 0 failed, 0 skipped" 0 '^[^ ]*in_all +2 passed' <<<"$long"
tier=some check no_such_tier "TIER=some: expected everyday or all" 2 expected <<<"$long"
# What passed is remembered for the same program, and for no other.
check emu/test_good "1 passed, 0 failed, 0 skipped" 0 'computing [0-9.]+ s$' <<<"echo >>'$tree/begun'; printf 'ok 1 - a\n1..1\n'"
check emu/test_good "1 passed, 0 failed, 0 skipped" 0 ', remembered$' <<<"echo >>'$tree/begun'; printf 'ok 1 - a\n1..1\n'"
TAP_AGAIN=1 check emu/test_good "1 passed, 0 failed, 0 skipped" 0 'computing [0-9.]+ s$' <<<"echo >>'$tree/begun'; printf 'ok 1 - a\n1..1\n'"
tier=all check emu/test_good "1 passed, 0 failed, 0 skipped" 0 'computing [0-9.]+ s$' <<<"echo >>'$tree/begun'; printf 'ok 1 - a\n1..1\n'"
REPERF_X=1 check emu/test_good "1 passed, 0 failed, 0 skipped" 0 'computing [0-9.]+ s$' <<<"echo >>'$tree/begun'; printf 'ok 1 - a\n1..1\n'"
check emu/test_good "1 passed, 1 failed, 0 skipped" 1 <<<"echo >>'$tree/begun'; printf 'ok 1 - a\nnot ok 2 - b\n1..2\n'"
check emu/test_good "1 passed, 1 failed, 0 skipped" 1 <<<"echo >>'$tree/begun'; printf 'ok 1 - a\nnot ok 2 - b\n1..2\n'"
check begun_as_often_as_it_had_to "1 passed, 0 failed, 0 skipped" 0 <<<"[ \$(wc -l <'$tree/begun') = 6 ] && printf 'ok 1 - a\n1..1\n'"
# What failed beside others is asked once more where retries are allowed, and named; what fails again has failed.
steady='printf "ok 1 - a\nok 2 - b\n1..2\n"'
# shellcheck disable=SC2016
unsteady='[ -e "$0.was" ] && '"$steady"' && exit; : >"$0.was"; printf "ok 1 - a\nnot ok 2 - b\n1..2\n"'
TAP_RETRIES=1 check unsteady "2 passed, 0 failed, 0 skipped" 0 'unsteady: .*/unsteady: 1 failed beside others and none alone' <<<"$unsteady"
rm "$tree/unsteady.was"
TAP_RETRIES=0 check unsteady "1 passed, 1 failed, 0 skipped" 1 'not ok 2 - b' <<<"$unsteady"
TAP_RETRIES=1 check fails_twice "1 passed, 1 failed, 0 skipped" 1 'once more, alone: .*fails_twice' <<<'printf "ok 1 - a\nnot ok 2 - b\n1..2\n"; exit 1'
wait "$hangs" || bad=1
n=$((n + 1))
sed "s/ok 1 - /ok $n - /" "$tree/hangs.said"
echo "1..$n"
exit $bad
