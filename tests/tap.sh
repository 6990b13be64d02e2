#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs test programs and scripts that speak TAP, and ends with the one line "N passed, N failed, N skipped". Programs, lint and the workloads'
# scripts, which compute, go one after the other; beside them, likewise, other scripts, and those on the cluster: they mostly wait. TAP_LANES=1: one row.
# A program that dies, hangs past its limit, plans other than it runs, or says nothing at all counts as failed.
set -u
: "${B:=build/debug}"
export B CMOCKA_MESSAGE_OUTPUT=TAP
# Threads that wait must not spin: tests share the machine with other work.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1:allocator_may_return_null=1}"
# The first test that needs the cluster brings it up for all of this run (tests/cluster/lib.sh).
export TAP_OWNER=$$
sums=$(mktemp -d) || exit 1
counts_to=$sums/counts
lanes=()
finish() {
    local pid
    for pid in "${lanes[@]+"${lanes[@]}"}"; do
        kill "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
    done
    tests/cluster/down.sh --owned-by $$
    rm -rf "$sums"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP
limit_s="${TEST_LIMIT_S:-1200}"
out_dir="$B/tests"
mkdir -p "$out_dir"

file_of() { # TEST
    local name=${1#build/}
    echo "$out_dir/${name//[\/ ]/_}.tap"
}

judge() { # TEST STATUS FILE
    local name=${1#build/} status=$2 file=$3 counts ok bad skip planned
    counts=$(awk '
        /^[ \t]*#/ { next }
        /^not ok/ { if ($0 ~ /# *(TODO|SKIP)/) skip++; else bad++; next } # cmocka writes a skip as "not ok N # SKIP"
        /^ok/ { if ($0 ~ /# *[Ss][Kk][Ii][Pp]/) skip++; else ok++; next }
        /^1\.\.[0-9]+/ { split($0, p, /\.\./); planned += p[2] + 0; has_plan = 1 }
        END { print ok + 0, bad + 0, skip + 0, has_plan ? planned : -1 }' "$file")
    read -r ok bad skip planned <<<"$counts"
    if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
        bad=1
        echo "not ok $name ended with status $status" >>"$file"
    elif [ "$planned" -ge 0 ] && [ "$planned" -ne $((ok + bad + skip)) ]; then
        bad=$((bad + 1))
        echo "not ok $name planned $planned tests and ran $((ok + bad + skip - 1))" >>"$file"
    elif [ $((ok + bad + skip)) -eq 0 ]; then
        bad=1
        echo "not ok $name ran no test" >>"$file"
    fi
    echo "$ok $bad $skip $1" >>"$counts_to"
    { # in one piece: another lane prints too
        printf '%-56s %4d passed %3d failed %3d skipped %4ds\n' "$name" "$ok" "$bad" "$skip" "$SECONDS"
        [ "$bad" -eq 0 ] || grep -vE '^ok' "$file" | tail -n 60 | sed 's/^/    /'
    } >"$file.said"
    cat "$file.said"
    rm -f "$file.said"
}

run() { # TEST...
    local test file args child=
    trap '[ -z "$child" ] || kill "$child"; exit 143' INT TERM HUP
    for test in "$@"; do
        file=$(file_of "$test")
        SECONDS=0
        args=()
        case "$test" in
        */replay/*) args=("tests/fuzz/corpus/${test##*/}") ;;
        esac
        timeout -k 10 "$limit_s" "$test" "${args[@]}" >"$file" 2>&1 </dev/null &
        child=$!
        wait "$child"
        judge "$test" $? "$file"
    done
    echo ended >>"$sums/lanes"
}

computing=() waiting=() on_cluster=()
for test in "$@"; do
    case "$test" in
    tests/integration/test_wl_torch*) waiting+=("$test") ;; # the rows then end at about the same time
    build/* | tests/lint/* | tests/integration/test_wl_*) computing+=("$test") ;;
    tests/cluster/*) on_cluster+=("$test") ;;
    *) waiting+=("$test") ;;
    esac
done
n_lanes=0
lane() { # TEST...
    [ $# -gt 0 ] || return 0
    n_lanes=$((n_lanes + 1))
    run "$@" &
    lanes+=($!)
}
if [ "${TAP_LANES:-3}" = 1 ]; then
    lane "$@"
else
    lane "${computing[@]+"${computing[@]}"}"
    lane "${waiting[@]+"${waiting[@]}"}"
    lane "${on_cluster[@]+"${on_cluster[@]}"}"
fi
wait
lanes=()
touch "$sums/counts" "$sums/lanes"
complete=1
if [ "$(wc -l <"$sums/lanes")" -ne $n_lanes ] || [ "$(wc -l <"$sums/counts")" -ne $# ]; then
    complete=0
fi

# TEST_AGAIN=N: what failed runs once more, alone, on a new cluster, unless more than N did. Both runs are shown, and what passes only then is named.
mapfile -t bad < <(awk '$2 > 0 { print $4 }' "$sums/counts")
if [ $complete = 1 ] && [ ${#bad[@]} -gt 0 ] && [ ${#bad[@]} -le "${TEST_AGAIN:-0}" ]; then
    echo "once more, one at a time: ${bad[*]#build/}"
    counts_to=$sums/again
    for test in "${bad[@]}"; do
        tests/cluster/down.sh --owned-by $$
        mv "$(file_of "$test")" "$(file_of "$test").first"
        run "$test" &
        lanes=($!)
        wait
        lanes=()
    done
    awk 'NR == FNR { again[$4] = $0; n++; next }
        $4 in again { was = $2; $0 = again[$4]; if ($2 == 0) printf "unsteady: %s: %d failed in its first run, none in its second\n", $4, was }
        { print >out }' out="$sums/merged" "$sums/again" "$sums/counts"
    mv "$sums/merged" "$sums/counts"
    [ "$(wc -l <"$sums/again")" -eq ${#bad[@]} ] || complete=0
fi

for test in "$@"; do
    grep -aiE "^(not )?ok.*# *skip" "$(file_of "$test")" | sed "s|^|skipped: ${test#build/}: |"
done
read -r n_tests passed failed skipped < <(awk '{ p += $1; f += $2; s += $3 } END { print NR, p + 0, f + 0, s + 0 }' "$sums/counts")
if [ $complete = 0 ] || [ "$n_tests" -ne $# ]; then
    echo "not ok $# tests were to run, $n_tests were judged"
    failed=$((failed + 1))
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
