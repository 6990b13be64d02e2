#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs test programs and scripts that speak TAP, one after the other, and ends with the one line "N passed, N failed, N skipped".
# A program that dies, hangs past its limit, plans other than it runs, or says nothing at all counts as failed.
set -u
: "${B:=build/debug}"
export B CMOCKA_MESSAGE_OUTPUT=TAP
# Threads that wait must not spin: tests share the machine with other work.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1:allocator_may_return_null=1}"
limit_s="${TEST_LIMIT_S:-1200}"
passed=0 failed=0 skipped=0
out_dir="$B/tests"
mkdir -p "$out_dir"
skips=()

judge() { # NAME STATUS FILE
    local name=$1 status=$2 file=$3 counts ok bad skip planned
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
    passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
    printf '%-56s %4d passed %3d failed %3d skipped %4ds\n' "$name" "$ok" "$bad" "$skip" "$SECONDS"
    if [ "$bad" -gt 0 ]; then
        grep -vE '^ok' "$file" | tail -n 60 | sed 's/^/    /'
    fi
    while IFS= read -r line; do
        skips+=("$name: $line")
    done < <(grep -aiE "^(not )?ok.*# *skip" "$file")
}

for test in "$@"; do
    name=${test#build/}
    file="$out_dir/$(echo "$name" | tr '/ ' '__').tap"
    SECONDS=0
    args=()
    case "$test" in
    */replay/*) args=("tests/fuzz/corpus/${test##*/}") ;;
    esac
    timeout -k 10 "$limit_s" "$test" "${args[@]}" >"$file" 2>&1 </dev/null
    judge "$name" $? "$file"
done
for line in "${skips[@]+"${skips[@]}"}"; do
    echo "skipped: $line"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
