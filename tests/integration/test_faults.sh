#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: run
# Every open, write, fsync, rename and mkdir of run, resume, seal, unpack, fetch, bundle and import below their folders fails once, in turn, with ENOSPC,
# EIO or EMFILE (tests/faults). The command then fails with a status of its own, or its result is right anyway; another try repairs
# everything. make test takes a sample, make test-all each call, and with the sanitizers a larger sample.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2317,SC2119,SC2015,SC2010,SC2012
. "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/fault_commands_lib.sh
. "$(dirname "$0")/fault_commands_lib.sh"
trap 'chmod -R u+w "$T"; rm -rf "$T"' EXIT
export REPERF_STATE="$W/state" REPERF_STORE="$W/store"
in_test_all "each call of each command fails once" && SAMPLES=0
if [ -d "$T/sanitizer" ]; then
    export ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0"
    SAMPLES=$((SAMPLES ? SAMPLES : 6))
fi

# --- the commands ------------------------------------------------------------------------------
tiny_dataset 4
few_manifests

one_run() { smoke --repeats 1; }
seal_before() { one_run && mkdir "$W/sealed" && mv "$(run_folder)/evidence" "$W/evidence"; }
seal() { "$REPERF" seal "$W/evidence" -o "$W/sealed/a.tar.zst" --force; }
unpack_again() { if [ -e "$W/out" ]; then same_tree "$W/out/tree" || rm -rf "$W/out"; fi; [ -e "$W/out" ] || unpack; }
bundle_right() { # it can be imported into a store that nothing else is in
    REPERF_STORE="$T/there" "$REPERF" import "$W/b" --locks "$T/locks" &&
        REPERF_STORE="$T/there" "$REPERF" fetch tiny --offline && same_tree "$T/there/trees/tiny/tree"
    local status=$?
    chmod -R u+w "$T/there" && rm -rf "$T/there" "$T/locks"
    return "$status"
}

# --- the sweep ----------------------------------------------------------------------------------------
set_up() { # COMMAND: what NAME_before leaves
    chmod -R u+w "$W" "$T/carried" 2>/dev/null
    rm -rf "$W" "$T/before" "$T/carried"
    mkdir -p "$W"
    "$1_before" >"$T/log" 2>&1
    mv "$W" "$T/before"
}
fresh() { # as NAME_before left it
    chmod -R u+w "$W" 2>/dev/null
    rm -rf "$W" "$T/mark"
    cp -a "$T/before" "$W"
}
faulty() { REPERF_FAULT_AT="$2" REPERF_FAULT_ERRNO="$3" at_calls "$1" "$4"; } # CALL AT ERRNO COMMAND
counted() { # CALL COMMAND: how often it comes to it
    fresh
    at_calls "$1" "$2" >"$T/log" 2>&1 || return 1
    stat -c %s "$T/mark" 2>/dev/null || echo 0
}
ERRNOS=(ENOSPC EIO EMFILE)
try() { # COMMAND CALL AT ERRNO
    local status what="$1: $2 number $3 says $4" again="$1"
    fresh
    faulty "$2" "$3" "$4" "$1" >"$T/log" 2>&1
    status=$?
    [ -e "$T/mark" ] || return 0 # not so many calls this time
    n_tried=$((n_tried + 1))
    if [ "$status" -ge 64 ] && [ "$status" != 130 ]; then bad "$what: status $status"; fi
    if [ "$status" -eq 0 ] && ! "$1_right" >>"$T/log" 2>&1; then bad "$what: success, and it is not right"; fi
    declare -F "$1_again" >/dev/null && again=$1_again
    if ! "$again" >>"$T/log" 2>&1; then bad "$what: another try fails ($?)"; return; fi
    if ! "$1_right" >>"$T/log" 2>&1; then bad "$what: another try does not heal"; fi
}
sweep() { # COMMAND
    local call n step at n_tried=0 n_bad=0 turn=0
    set_up "$1"
    fresh
    "$1" >"$T/log" 2>&1 && "$1_right" >>"$T/log" 2>&1
    ok $? "$1: without a fault it is right" || tail -n 5 "$T/log" | sed 's/^/# /'
    for call in open write fsync rename mkdir; do
        n=$(counted "$call" "$1") || { bad "$1: cannot be counted"; continue; }
        step=$(stride "$n")
        for ((at = 1 + turn % (step ? step : 1); at <= n; at += step)); do
            try "$1" "$call" "$at" "${ERRNOS[turn++ % 3]}"
        done
    done
    ok $((n_bad != 0 || n_tried == 0)) "$1: $n_tried faults, each healed by another try, none of them a false success"
}
for command in ${FAULTS_ONLY:-run resume seal unpack fetch bundle import}; do sweep "$command"; done

# --- one fault after another ------------------------------------------------------------------------------
# A command that is killed, whose repair meets a full disk, and whose repair is killed in turn: the next one heals all of it.
repair_before() { fetch && chmod -R u+w "$REPERF_STORE/trees/tiny" && echo damaged >"$REPERF_STORE/trees/tiny/tree/a/1.bin"; }
repair() { "$REPERF" repair tiny --offline --mirror "$T/www"; }
repair_right() { fetch_right; }
dies() { REPERF_FAULT_AT="$2" REPERF_FAULT_SIGNAL=9 at_calls "$1" "$3"; } # CALL AT COMMAND
chain() { # COMMAND
    local n at again=$1 call n_tried=0 n_bad=0
    set_up "$1"
    declare -F "$1_again" >/dev/null && again=$1_again
    for call in write rename; do
        n=$(counted "$call" "$1") || { bad "$1: cannot be counted"; continue; }
        for at in $((n / 2)) 1 $((n - 1)); do
            [ "$at" -gt 0 ] && { [ "$at" -eq $((n / 2)) ] || [ "$SAMPLES" -eq 0 ]; } || continue
            fresh
            dies "$call" "$at" "$1" >"$T/log" 2>&1
            rm -f "$T/mark"
            faulty write $((1 + at % 3)) ENOSPC "$again" >>"$T/log" 2>&1
            rm -f "$T/mark"
            dies rename 1 "$again" >>"$T/log" 2>&1
            n_tried=$((n_tried + 1))
            "$again" >>"$T/log" 2>&1 && "$1_right" >>"$T/log" 2>&1 || bad "$1: killed at $call $at, then a full disk, then killed: not healed"
        done
    done
    ok $((n_bad != 0 || n_tried == 0)) "$1: $n_tried chains of a kill, a full disk in its repair and a kill in that: nothing is lost"
}
for command in ${FAULTS_ONLY:-run resume seal unpack fetch repair bundle import}; do chain "$command"; done 2>"$T/said" # bash says "Killed"
tap_done
