#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `make repro-check`: HEAD, built in two folders of different names at different times, gives the same programs byte for byte.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/reperf-repro.XXXXXX")
trap 'rm -rf "$work"' EXIT
first="$work/a" second="$work/another folder with a longer name"
for folder in "$first" "$second"; do
    mkdir -p "$folder"
    git -C "$root" archive HEAD | tar -x -C "$folder"
    find "$folder" -name '*.c' -exec touch {} +
    make -s -C "$folder" -j"$(nproc)" MODE=release >"$work/log" 2>&1 || {
        tail -n 20 "$work/log" >&2
        exit 1
    }
done
bad=0
for program in "$first"/build/release/reperf*; do
    name=$(basename "$program")
    if cmp "$program" "$second/build/release/$name"; then
        echo "same      $name $(sha256sum <"$program" | cut -c1-64)"
    else
        echo "DIFFERENT $name" >&2
        bad=1
    fi
done
exit $bad
