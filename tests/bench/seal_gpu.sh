#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/bench/seal_gpu.sh RUN.tar [KEY [OUT]]: the result of `make bench-gpu` on a machine with a GPU becomes OUT/RUN.tar.zst, sealed
# (signed where there is a KEY of `reperf keygen`) and verified; OUT is logs/verified/RUN. A run without a GPU and its clocks in it, or that is
# no more than a trial, is refused there: logs/verified is for evidence.
cd "$(dirname "$0")/../.." || exit 1
set -eu
[ $# -ge 1 ] || { sed -n '3,5s/^# //p' "$0" >&2; exit 2; }
tar=$1 key=${2:-} reperf=${REPERF:-build/release/reperf}
run=$(basename "$tar" .tar)
out=${3:-logs/verified/$run}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -C "$work" --no-same-owner -xf "$tar"
[ -e "$work/$run/result.json" ] || { echo "$tar: there is no $run/result.json in it" >&2; exit 2; }
if grep -q '"state":"\(idle\|ready\)"' "$work/$run/result.json"; then
    echo "$run: it was cut off; its result.json is of a run that is not over" >&2
    exit 2
fi
case "$out" in
logs/verified/*)
    if grep -q '"trial":true' "$work/$run/result.json" || ! grep -q '"gpu":"[^"]' "$work/$run/result.json" ||
        grep -q '"gpu_states":\[\]' "$work/$run/result.json"; then
        echo "$run: a trial, or without a GPU and its clocks: not for logs/verified" >&2
        exit 2
    fi
    ;;
esac
mkdir -p "$out"
if [ -n "$key" ]; then
    "$reperf" seal "$work/$run" --bytes-only -o "$out/$run.tar.zst" --key "$key"
    "$reperf" verify "$out/$run.tar.zst" --bytes-only --key "$key.pub"
else
    "$reperf" seal "$work/$run" --bytes-only -o "$out/$run.tar.zst"
    "$reperf" verify "$out/$run.tar.zst" --bytes-only --unsigned
fi
echo "$out/$run.tar.zst"
