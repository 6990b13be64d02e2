#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Layout, headers that compile alone, sizes, licence lines, and (slow, only on files that changed since the last good run) clang-tidy.
cd "$(dirname "$0")/../.." || exit 1
mapfile -t files < <(git ls-files 'orchestrator/*.[ch]' 'workloads/*.[ch]' 'tests/*.[ch]')
bad=0 n=0
report() { # STATUS NAME
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else
        echo "not ok $n - $2"
        bad=1
    fi
}
clang-format --dry-run -Werror "${files[@]}" 2>&1 | grep -E 'error|warning' | head -n 20 | sed 's/^/# /'
report "${PIPESTATUS[0]}" "clang-format"
make -s hdr-check 2>&1 | tail -n 20 | sed 's/^/# /'
report "${PIPESTATUS[0]}" "each header compiles alone"
long=$(wc -l "${files[@]}" | awk '$2 != "total" && (($2 ~ /\.h$/ && $1 > 200) || $1 > 600)')
[ -z "$long" ]
report $? "files of at most 600 lines, headers of 200 ${long:+: $long}"
unlicensed=$(grep -L 'SPDX-License-Identifier: Apache-2.0' $(git ls-files '*.c' '*.h' '*.sh' '*.py' Makefile .ci/run))
[ -z "$unlicensed" ]
report $? "an SPDX line in each source file ${unlicensed:+: $unlicensed}"
top=$(git ls-files | sed 's#/.*##' | sort -u | tr '\n' ' ')
[ "$top" = ".ci .clang-format .gitignore CHANGELOG.md LICENSE Makefile README.md STYLE.md datasets images logs manifests orchestrator tests workloads " ]
report $? "the top level holds what it may: $top"
shellcheck -x -e SC1091 $(git ls-files '*.sh' .ci/run) | head -n 40 | sed 's/^/# /'
report "${PIPESTATUS[0]}" "shellcheck"
mandoc -T lint -W warning orchestrator/man/reperf.1 2>&1 | head -n 20 | sed 's/^/# /'
report "${PIPESTATUS[0]}" "mandoc"
checks='-*,bugprone-*,clang-analyzer-*,cert-err34-c,readability-braces-around-statements,readability-function-size,readability-function-cognitive-complexity'
checks="$checks,-bugprone-easily-swappable-parameters,-bugprone-reserved-identifier,-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling"
checks="$checks,-bugprone-macro-parentheses,-bugprone-sizeof-expression,-clang-analyzer-optin.performance.Padding"
config='{CheckOptions: [{key: readability-function-size.LineThreshold, value: 70},{key: readability-function-cognitive-complexity.Threshold, value: 25},{key: readability-function-cognitive-complexity.IgnoreMacros, value: true}]}'
mkdir -p build/tidy
tidy_one() {
    local file=$1 sum stamp
    # A file is read again when it, any header, or this script has changed.
    sum=$({ cat "$file" tests/lint/c_checks.sh; cat orchestrator/*/*.h workloads/*/*.h 2>/dev/null; } | cksum | tr ' ' '-')
    stamp="build/tidy/$(echo "$file" | tr / _).$sum"
    [ -e "$stamp" ] && return 0
    if clang-tidy --quiet --warnings-as-errors='*' --checks="$checks" --config="$config" "$file" -- -std=gnu17 -D_GNU_SOURCE \
        -Iorchestrator -Iworkloads -I. -DREPERF_HAVE_DNNL=1 >"$stamp.log" 2>&1; then
        mv "$stamp.log" "$stamp"
    else
        grep -E 'error|note' "$stamp.log" | head -n 10 | sed 's/^/# /'
        return 1
    fi
}
export -f tidy_one
export checks config
printf '%s\n' "${files[@]}" | grep -E '^(orchestrator|workloads)/.*\.c$' | xargs -P 2 -I{} bash -c 'tidy_one {}'
report $? "clang-tidy"
echo "1..$n"
exit $bad
