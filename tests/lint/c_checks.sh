#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Layout, headers that compile alone, sizes, licence lines, and (slow, only on files that changed since the last good run) clang-tidy.
# tests/lint/planted.sh sees each of these fail.
cd "${LINT_ROOT:-$(dirname "$0")/../..}" || exit 1
mapfile -t files < <(git ls-files 'orchestrator/*.[ch]' 'workloads/*.[ch]' 'workloads/*.cu' 'workloads/*.cuh' 'tests/*.[ch]' 'tests/*.cpp')
mapfile -t scripts < <(git ls-files '*.sh' .ci/run)
mapfile -t sources < <(git ls-files '*.c' '*.h' '*.cu' '*.cuh' '*.cpp' '*.sh' '*.py' Makefile .ci/run)
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
unlicensed=$(grep -L 'SPDX-License-Identifier: Apache-2.0' "${sources[@]}")
[ -z "$unlicensed" ]
report $? "an SPDX line in each source file ${unlicensed:+: $unlicensed}"
top=$(git ls-files | sed 's#/.*##' | sort -u | tr '\n' ' ')
[ "$top" = ".ci .clang-format .gitignore CHANGELOG.md LICENSE Makefile README.md STYLE.md datasets images logs manifests orchestrator tests workloads " ]
report $? "the top level holds what it may: $top"
# No compiler looks there: what CLEANUP() frees must have a value before the function can be left.
loose=$(awk '
    function has(word) { return $0 ~ ("(^|[^A-Za-z0-9_])(" word ")([^A-Za-z0-9_]|$)") }
    FNR == 1 || /^}/ { n = 0 }
    n { for (i = 1; i <= n; i++) {
            if (name[i] == "") continue
            if (has(name[i])) name[i] = ""
            else if (has("return|goto")) { printf "%s:%d: %s ", FILENAME, FNR, name[i]; name[i] = "" }
        } }
    /^ +CLEANUP\([a-z0-9_]+\) [^=]*;$/ { n_parts = split($0, part, /[,;]/)
        for (i = 1; i < n_parts; i++) { sub(/^.*[ *]/, "", part[i]); name[++n] = part[i] } }
' "${files[@]}")
[ -z "$loose" ]
report $? "what CLEANUP frees has a value before any return ${loose:+: $loose}"
shellcheck -x -e SC1091 "${scripts[@]}" 2>&1 | head -n 40 | sed 's/^/# /'
report "${PIPESTATUS[0]}" "shellcheck"
mandoc -T lint -W warning orchestrator/man/*.1 2>&1 | head -n 20 | sed 's/^/# /'
report "${PIPESTATUS[0]}" "mandoc"

# clang-tidy: no path-sensitive analyser (it does not know cleanup attributes, and the sanitizers run everything); gcc's
# -Wconversion sees narrowing better.
checks='-*,bugprone-*,cert-err34-c,readability-braces-around-statements,readability-function-size,readability-function-cognitive-complexity'
checks="$checks,-bugprone-easily-swappable-parameters,-bugprone-reserved-identifier,-bugprone-narrowing-conversions"
checks="$checks,-bugprone-macro-parentheses,-bugprone-sizeof-expression"
config='{CheckOptions: [{key: readability-function-size.LineThreshold, value: 70},{key: readability-function-cognitive-complexity.Threshold, value: 25},{key: readability-function-cognitive-complexity.IgnoreMacros, value: true}]}'
flags='-std=gnu17 -D_GNU_SOURCE -Iorchestrator -Iworkloads -I. -isystem /usr/include/hdf5/serial -DREPERF_HAVE_DNNL=1'
cuda="${CUDA_HOME:-/usr/local/cuda}/include"
no_cuda='^$'
if [ -e "$cuda/cuda_runtime_api.h" ]; then flags="$flags -DREPERF_HAVE_CUDA=1 -isystem $cuda"; else no_cuda='^workloads/(backend_cuda/|dist/nccl)'; fi
mkdir -p build/tidy
# shellcheck disable=SC2086,SC2317
tidy_one() { # FILE: read again when it, a header it includes, or what is checked has changed
    local file=$1 sum stamp
    sum=$({
        gcc -MM $flags "$file" | tr ' ' '\n' | grep -E '\.[ch]$' | xargs cat
        echo "$checks $config $flags"
    } | cksum | tr ' ' '-')
    stamp="build/tidy/$(echo "$file" | tr / _).$sum"
    [ -e "$stamp" ] && return 0
    if clang-tidy --quiet --warnings-as-errors='*' --checks="$checks" --config="$config" "$file" -- $flags >"$stamp.log" 2>&1; then
        mv "$stamp.log" "$stamp"
    else
        grep -E 'error' "$stamp.log" | head -n 10 | sed 's/^/# /'
        return 1
    fi
}
export -f tidy_one
export checks config flags
printf '%s\n' "${files[@]}" | grep -E '^(orchestrator|workloads)/.*\.c$' | grep -vE "$no_cuda" | xargs -P "$(nproc)" -I{} bash -c 'tidy_one {}'
report $? "clang-tidy"
if [ "$no_cuda" = '^$' ]; then :; else echo "ok $((n += 1)) - clang-tidy of what needs CUDA # SKIP no CUDA headers in $cuda"; fi
echo "1..$n"
exit $bad
