# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# A program that gets a signal at a call of its own (fault_calls.c): where it is by then follows from what it does, and not from how fast this machine is.
# Source it after tap_lib.sh.
# LD_PRELOAD takes names apart at blanks, which the tree's own folder may have.
FAULT_CALLS="$T/fault_calls.so"
ln -sf "$B/faults/fault_calls.so" "$FAULT_CALLS"
# at_call SIGNAL CALL NUMBER PATH COMMAND...: the signal comes as it makes that call (open, write, fsync, rename, mkdir) for that time on such a path: BEGIN, or
# BEGIN*END. The command is a program: no function, no builtin.
at_call() {
    local signal call=$2 number=$3 begin=${4%%\**} end=''
    signal=$(kill -l "$1")
    case $4 in *\**) end=${4#*\*} ;; esac
    shift 4
    rm -f "$T/at_call"
    ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0" \
        env --default-signal=INT,TERM,HUP LD_PRELOAD="$FAULT_CALLS" REPERF_FAULT_BELOW="$begin" REPERF_FAULT_END="$end" REPERF_FAULT_CALL="$call" \
        REPERF_FAULT_AT="$number" REPERF_FAULT_SIGNAL="$signal" REPERF_FAULT_DONE="$T/at_call" "$@"
}
# at_clock PROGRAM COMMAND...: that program's monotonic clock, in whatever the command starts, is the test's (clock_calls.c): by $CLOCK, a file, and $CLOCK_TICK_NS,
# of which one may be unset.
CLOCK_CALLS="$T/clock_calls.so"
ln -sf "$B/faults/clock_calls.so" "$CLOCK_CALLS"
at_clock() {
    local program=$1
    shift
    env LD_PRELOAD="$CLOCK_CALLS" REPERF_CLOCK_OF="$program" ${CLOCK:+REPERF_CLOCK="$CLOCK"} ${CLOCK_TICK_NS:+REPERF_CLOCK_TICK_NS="$CLOCK_TICK_NS"} "$@"
}
