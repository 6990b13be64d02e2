#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# compute-sanitizer on the kernels (part of tests/cuda/gpu.sh): accesses outside memory, and races in shared memory on a small set. It
# must first find faults that were planted, and nothing where there is none.
. "$(dirname "$0")/../tap_lib.sh"
RUN_LIMIT_S=${RUN_LIMIT_S:-40}
FOUND=99 # exit status where it has found something
SANITIZER=
for candidate in compute-sanitizer "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer" "${CUDA_HOME:-/usr/local/cuda}/compute-sanitizer/compute-sanitizer"; do
    command -v "$candidate" >/dev/null 2>&1 && SANITIZER=$candidate && break
done
if [ -z "$SANITIZER" ]; then
    skip "compute-sanitizer" "it is neither on PATH nor in ${CUDA_HOME:-/usr/local/cuda}"
    tap_done
fi

# TOOL PROGRAM...: its output in $T/out
sanitize() {
    local tool=$1
    shift
    timeout -k 5 "$RUN_LIMIT_S" "$SANITIZER" --tool "$tool" --error-exitcode $FOUND "$@" >"$T/out" 2>&1
}
clean() { # TOOL NAME PROGRAM...
    local tool=$1 name=$2 status
    shift 2
    sanitize "$tool" "$@"
    status=$?
    if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
        skip "$tool: $name" "it was not done in $RUN_LIMIT_S s"
        return
    fi
    is "$status" 0 "$tool: $name"
    [ "$status" -eq 0 ] || grep -E '^=========|^not ok|^# |Bail' "$T/out" | head -n 20 | sed 's/^/# /'
}

sanitize memcheck "$B/gpu/plant" none
status=$?
if [ "$status" -ne 0 ]; then
    if grep -qiE 'not supported|failed to initialize|unable to' "$T/out"; then
        skip "compute-sanitizer" "it does not work on this machine: $(grep -iE 'not supported|failed to initialize|unable to' "$T/out" | head -n 1 | tr -d '#')"
    else
        is "$status" 0 "a kernel without a fault is clean"
        head -n 20 "$T/out" | sed 's/^/# /'
    fi
    tap_done
fi
ok 0 "a kernel without a fault is clean"
sanitize memcheck "$B/gpu/plant" memory
is $? $FOUND "memcheck finds a write past the end"
sanitize racecheck "$B/gpu/plant" race
is $? $FOUND "racecheck finds a missing barrier"

for kernel in bn_fwd bn_bwd bn_add_bwd upsample_loss_fwd upsample_loss_bwd attention_fwd attention_bwd layer_norm_bwd drop_add_norm_bwd embed_bwd row_loss maxpool_bwd; do
    clean memcheck "$kernel" "$B/gpu/test_device" "$kernel"
    [ "$SECONDS" -gt "${SANITIZER_LIMIT_S:-70}" ] && break
done
clean memcheck "ten steps of bert_nano" "$B/gpu/test_steps" bert_nano
for kernel in bn_fwd layer_norm_bwd attention_fwd upsample_loss_fwd; do
    [ "$SECONDS" -gt "${RACE_LIMIT_S:-100}" ] && skip "racecheck: $kernel" "the time is up" && continue
    clean racecheck "$kernel" "$B/gpu/test_device" "$kernel"
done
tap_done
