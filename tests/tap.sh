#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs test programs and scripts that print TAP, and ends with the one line "N passed, N failed, N skipped". Three queues run side by side: what computes
# (programs, lint, the workloads' scripts) in as many lanes as there are processors and behind all others; what mostly waits (other scripts) in six; what
# runs on a cluster in two, each with a cluster of its own. In each queue those that took longest the last time begin first, so that no lane is left alone
# with a long one. TAP_LANES=1: all in one lane, in the order given. A program that dies,
# hangs past its limit, plans other tests than it runs, or none at all, counts as failed. One that plans none and says why ("1..0 # SKIP why") is one skip.
# SCRIPT@MODE is a script with the programs of build/MODE. TIER=all has tests do what is long, too; otherwise they name it ("# test-all: what"), and it is
# listed, as are the programs that TAP_LATER names, those that TAP_OMITTED does (they passed at ENGINE_AS_AT), and what only make test-frameworks does
# ("# test-frameworks: what"). What it found good it remembers where a result depends on the program alone
# (key_of), and does not run that again, but for TIER=all and TAP_AGAIN=1. TAP_RETRIES=N: where at most N tests failed, each is run once more when all others
# have ended; what passes then counts, and is named as unsteady, with what it printed first.
set -u
: "${B:=build/release}"
: "${TIER:=everyday}"
: "${TAP_AGAIN:=}"
: "${TAP_RETRIES:=0}"
export B TIER CMOCKA_MESSAGE_OUTPUT=TAP
case $TIER in everyday | all) ;; *)
    echo "TIER=$TIER: expected everyday or all" >&2
    exit 2
    ;;
esac
# Threads that wait must not spin: tests share the machine with other work.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1:allocator_may_return_null=1}"
# A make that a test starts is independent of this one, and so is a runner.
unset MAKEFLAGS MFLAGS MAKELEVEL
export -n TAP_RETRIES
export TAP_OWNER=$$
sums=$(mktemp -d) || exit 1
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
[ "$TIER" = everyday ] && limit_s=2400 || limit_s=10800
limit_s="${TEST_LIMIT_S:-$limit_s}"
out_dir="$B/tests"
good="${XDG_CACHE_HOME:-$HOME/.cache}/reperf-tests"
mkdir -p "$out_dir" "$good" && touch "$good/seconds"
find "$good" -type f -mtime +30 -delete

file_of() { # TEST
    local name=${1#build/}
    echo "$out_dir/${name//[\/ ]/_}.tap"
}

# ok, failed, skipped, left to test-all, planned or -1. A TODO that fails is a skip, and cmocka writes a skip as "not ok N # SKIP".
count() { # FILE
    awk '
        { low = tolower($0) }
        /^# test-(all|frameworks): / { later++ }
        /^not ok/ { if (low ~ /# *(todo|skip)/) skip++; else bad++ }
        /^ok/ { if (low ~ /# *skip/) skip++; else ok++ }
        /^1\.\.[0-9]+/ { split($0, p, /\.\./); planned += p[2] + 0; has_plan = 1; none = low ~ /^1\.\.0 *# *skip/ }
        END {
            if (none && planned + ok + bad + skip == 0) skip = planned = 1
            print ok + 0, bad + 0, skip + 0, later + 0, has_plan ? planned : -1
        }' "$1"
}

# What the output of a test depends on, as a digest; nothing where that is more than files, the processor and REPERF_*: of programs of the engine and of the
# emulated device, which compute long, and of scripts that name in a line "# Only: FILE..." all that they use of $B and of the tree, besides other scripts.
key_of() { # TEST
    local only
    [ "$TIER$TAP_AGAIN" = everyday ] || return
    case $1 in
    */unit/test_wl_cuda_*) return ;; # the real libraries' versions
    */emu/test_* | */unit/test_emu_* | */unit/test_wl_*) only=("$1" "${1%/*/*}/fake") ;;
    tests/integration/*.sh)
        read -ra only < <(sed -n 's/^# Only: //p' "$1")
        [ "${#only[@]}" -gt 0 ] || return
        only=("$1" tests/*.sh tests/{integration,faults}/*lib.sh "$B/fake" "${only[@]/#@/$B/}")
        ;;
    *) return ;;
    esac
    {
        find "${only[@]}" -type f -print0 2>/dev/null | sort -z | xargs -r0 cat
        find "${only[@]}" -type f -perm -u+x -print0 2>/dev/null | xargs -r0 ldd 2>/dev/null | awk '$2 == "=>" { print $3 }' | sort -u | xargs -r stat -Lc '%n %s %Y'
        grep -E '^(model name|flags)' /proc/cpuinfo | sort -u
        env | grep '^REPERF_' | sort
    } | sha256sum | cut -d' ' -f1
}

judge() { # TEST STATUS FILE: whether it is good
    local name=${1#build/} status=$2 file=$3 ok bad skip later planned
    read -r ok bad skip later planned < <(count "$file")
    if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
        bad=1
        if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
            echo "not ok $name ended with status $status: $limit_s s is its limit" >>"$file"
        else
            echo "not ok $name ended with status $status" >>"$file"
        fi
    elif [ "$planned" -lt 0 ]; then
        bad=$((bad + 1))
        echo "not ok $name has no plan" >>"$file"
    elif [ "$planned" -ne $((ok + bad + skip)) ]; then
        bad=$((bad + 1))
        echo "not ok $name planned $planned tests and ran $((ok + bad + skip - 1))" >>"$file"
    elif [ $((ok + bad + skip + later)) -eq 0 ]; then
        bad=1
        echo "not ok $name ran no test" >>"$file"
    fi
    echo "$ok $bad $skip $1" >>"$sums/counts"
    [ -n "$known" ] || echo "$SECONDS $1" >>"$sums/seconds"
    { # in one piece: another lane prints too
        printf '%-56s %4d passed %3d failed %3d skipped %4d s, computing %s s%s\n' "$name" "$ok" "$bad" "$skip" "$SECONDS" "$(cpu_s)" "${known:+, remembered}"
        [ "$bad" -eq 0 ] || grep -avE '^ok' "$file" | tail -n 60 | sed 's/^/    /'
    } >"$file.said"
    cat "$file.said"
    rm -f "$file.said"
    [ "$bad" -eq 0 ]
}

# CPU time of the lane's programs since the last call, from two lines of the shell's own (`times`): this shell, and what it has waited for.
cpu_s() {
    awk -v was="$(cat "$cpu_file.was" 2>/dev/null)" 'NR == 2 {
        split($1, user, /[ms]/)
        split($2, sys, /[ms]/)
        now = 60 * (user[1] + sys[1]) + user[2] + sys[2]
        printf "%.1f", now - was
        printf "%f", now >(FILENAME ".was")
    }' "$cpu_file"
}

run() { # QUEUE TEST...: those of the queue that no other lane has taken
    local queue=$1 n=0 test file args mode status key known child='' cpu_file="$sums/cpu.$BASHPID"
    shift
    # A cluster belongs to the lane, and its first test brings it up (tests/cluster/lib.sh).
    [ "$queue" != cluster ] || export TAP_OWNER=$BASHPID
    # Queues that wait for answers in time come first.
    [ "$queue" != computing ] || renice -n 5 -p "$BASHPID" >/dev/null 2>&1
    trap '[ -z "$child" ] || kill "$child"; exit 143' INT TERM HUP
    for test in "$@"; do
        mkdir "$sums/$queue.$((n += 1))" 2>/dev/null || continue
        file=$(file_of "$test")
        SECONDS=0
        key=$(key_of "$test") known=
        if [ -n "$key" ] && cp "$good/$key" "$file" 2>/dev/null; then
            known=1
            times >"$cpu_file"
            judge "$test" 0 "$file"
            continue
        fi
        args=()
        case "$test" in
        */replay/*) args=("tests/fuzz/corpus/${test##*/}") ;;
        esac
        mode=$B
        [ "$test" = "${test%@*}" ] || mode=build/${test##*@}
        B=$mode timeout -k "${TEST_KILL_S:-10}" "$limit_s" "${test%@*}" "${args[@]}" >"$file" 2>&1 </dev/null &
        child=$!
        wait "$child"
        status=$?
        times >"$cpu_file"
        ! judge "$test" "$status" "$file" || [ -z "$key" ] || grep -qi '# *skip' "$file" || { cp "$file" "$good/$key.$$" && mv "$good/$key.$$" "$good/$key"; }
    done
    [ "$queue" != cluster ] || tests/cluster/down.sh --owned-by "$BASHPID"
    echo ended >>"$sums/lanes"
}

computing=() waiting=() on_cluster=()
# By the seconds that each took here the last time; where that is not known, those that are long anywhere begin.
mapfile -t in_order < <(printf '%s\n' "$@" | grep . | awk '
    is_last { took[$2] = $1; next }
    /c_checks|test_wl_(torch|cuda|dist|nccl|ptx|bench|data|train|net)|\/emu\/test_/ { is_long = 1 }
    /test_(main_job|rehearsal|frameworks|fault_[a-z]*|html|data_way|bundle|faults|forgery|power_cut|stage|formats|plan_full|run|source)\.sh/ { is_long = 1 }
    { print ($0 in took) ? took[$0] : is_long ? 100 : 10, NR, $0; is_long = 0 }' is_last=1 "$good/seconds" is_last=0 - | sort -k1,1rn -k2,2n | cut -d' ' -f3-)
for test in "${in_order[@]+"${in_order[@]}"}"; do
    case "$test" in
    build/* | tests/lint/* | tests/integration/test_wl_* | tests/fuzz/*) computing+=("$test") ;;
    tests/cluster/*) on_cluster+=("$test") ;;
    *) waiting+=("$test") ;;
    esac
done
n_lanes=0
lane() { # QUEUE TEST...
    [ $# -gt 1 ] || return 0
    export TAP_LANE=$((n_lanes += 1)) # which ports its scripts take (server_lib.sh)
    run "$@" &
    lanes+=($!)
}
if [ "${TAP_LANES:-}" = 1 ]; then
    lane all "$@"
else
    for _ in 1 2 3 4 5 6; do lane waiting "${waiting[@]+"${waiting[@]}"}"; done
    for _ in 1 2; do lane cluster "${on_cluster[@]+"${on_cluster[@]}"}"; done
    n_processors=$(nproc)
    for ((i = 0; i < (n_processors < 4 ? n_processors : 4); i++)); do
        lane computing "${computing[@]+"${computing[@]}"}"
    done
fi
wait
touch "$sums/counts" "$sums/lanes" "$sums/seconds"
mapfile -t bad < <(awk '$2 > 0 { print $4 }' "$sums/counts")
if [ "${#bad[@]}" -gt 0 ] && [ "${#bad[@]}" -le "$TAP_RETRIES" ]; then
    echo "once more, alone: ${bad[*]#build/}"
    for test in "${bad[@]}"; do
        cp "$(file_of "$test")" "$(file_of "$test").first"
        awk -v test="$test" '$4 == test { print test, $2 >>(FILENAME ".first"); next } { print }' "$sums/counts" >"$sums/counts.rest" && mv "$sums/counts.rest" "$sums/counts"
    done
    lane again "${bad[@]}"
    wait
fi
lanes=()
awk '{ took[$2] = $1 } END { for (test in took) print took[test], test }' "$good/seconds" "$sums/seconds" >"$good/seconds.$$" && mv "$good/seconds.$$" "$good/seconds"
complete=1
if [ "$(wc -l <"$sums/lanes")" -ne $n_lanes ] || [ "$(wc -l <"$sums/counts")" -ne $# ]; then
    complete=0
fi

for test in "$@"; do
    grep -aiE '^(not ok.*# *(skip|todo)|ok.*# *skip|1\.\.0 *# *skip)' "$(file_of "$test")" | sed "s|^|skipped: ${test#build/}: |"
done
# No skips: this machine could run them.
only_in() { # TARGET TEST...
    local target=$1 test
    shift
    for test in "$@"; do sed -n "s|^# $target: |only in make $target: ${test#build/}: |p" "$(file_of "$test")" | sort -u; done
}
only_in test-frameworks "$@"
read -ra later_run <<<"${TAP_LATER:-}"
later=$(printf '%s\n' "${later_run[@]+"${later_run[@]#build/}"}" | grep . | sed 's/^/only in make test-all: /'; only_in test-all "$@")
read -ra omitted <<<"${TAP_OMITTED:-}"
[ "${#omitted[@]}" -eq 0 ] || printf "not run, as the engine is as it was at ${ENGINE_AS_AT:0:12}, where this passed: %s\n" "${omitted[@]#build/*/}"
[ -z "$later" ] || printf '%s\n%s\n' "$later" "make test-all runs these as well; it is run before an issue is closed"
while read -r test n_bad; do
    awk -v test="$test" '$4 == test && $2 == 0 { good = 1 } END { exit !good }' "$sums/counts" || continue
    echo "unsteady: ${test#build/}: $n_bad failed beside others and none alone: $(file_of "$test").first"
done < <(cat "$sums/counts.first" 2>/dev/null)
read -r n_tests passed failed skipped < <(awk '{ p += $1; f += $2; s += $3 } END { print NR, p + 0, f + 0, s + 0 }' "$sums/counts")
if [ $complete = 0 ] || [ "$n_tests" -ne $# ]; then
    echo "not ok $# tests were to run, $n_tests were judged"
    failed=$((failed + 1))
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
