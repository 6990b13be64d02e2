#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each libFuzzer target for SECS seconds, starting from its corpus. New inputs go to build/fuzz/new-TARGET, crashes to build/fuzz.
cd "$(dirname "$0")/../.." || exit 1
n=0 bad=0
for target in build/fuzz/fuzz_*; do
    name=${target##*/fuzz_}
    mkdir -p "build/fuzz/new-$name"
    n=$((n + 1))
    if "$target" -max_total_time="${SECS:-10}" -rss_limit_mb=2048 -verbosity=0 -artifact_prefix=build/fuzz/ "build/fuzz/new-$name" "tests/fuzz/corpus/$name" \
        >"build/fuzz/$name.log" 2>&1; then
        echo "ok $n - $name"
    else
        echo "not ok $n - $name"
        tail -n 40 "build/fuzz/$name.log" | sed 's/^/# /'
        bad=1
    fi
done
echo "1..$n"
exit $bad
