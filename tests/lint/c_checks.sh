#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Layout, headers that compile alone, sizes, width of Markdown, licence lines, and (slow, and so only of what is not known to be good)
# clang-format, shellcheck and clang-tidy. tests/lint/planted.sh sees each of these fail. --write: every file, and where all hold a line more of tests/lint/baseline names the
# commit and the digest of the checks and of their programs; --digest prints that digest. With CUDA's headers it is another one than without (CUDA_HOME=/nowhere).
write=$1
cd "${LINT_ROOT:-$(dirname "$0")/../..}" || exit 1
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
digest=$({ clang-tidy --version | grep version && clang-format --version && shellcheck --version && cat .clang-format && echo "$checks $config $flags"; } | sha256sum | cut -c1-32)
[ "$write" != --digest ] || { echo "$digest" && exit; }
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
make -s hdr-check 2>&1 | tail -n 20 | sed 's/^/# /'
report "${PIPESTATUS[0]}" "each header compiles alone"
long=$(wc -l "${files[@]}" | awk '$2 != "total" && (($2 ~ /\.h$/ && $1 > 200) || $1 > 900)')
[ -z "$long" ]
report $? "files of at most 900 lines, headers of 200 ${long:+: $long}"
mapfile -t documents < <(git ls-files '*.md')
wide=$(LC_ALL=C.UTF-8 grep -HnE '^.{121,}' "${documents[@]}" /dev/null | cut -d: -f1,2 | tr '\n' ' ')
[ -z "$wide" ]
report $? "lines of at most 120 columns in READMEs and other Markdown ${wide:+: $wide}"
unlicensed=$(grep -L 'SPDX-License-Identifier: Apache-2.0' "${sources[@]}")
[ -z "$unlicensed" ]
report $? "an SPDX line in each source file ${unlicensed:+: $unlicensed}"
top=$(git ls-files | sed 's#/.*##' | sort -u | tr '\n' ' ')
[ "$top" = ".ci .clang-format .gitignore CHANGELOG.md LICENSE Makefile README.md STYLE.md datasets images logs manifests orchestrator tests workloads " ]
report $? "the top level holds what it may: $top"
# No compiler checks that: a variable with CLEANUP() must have a value before the function can return.
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
# The child of `job >FILE &` opens the file itself, some time later: who waits for a line of it finds an earlier job's. `{ job & } >FILE` opens it before.
# shellcheck disable=SC2016
late=$(grep -HnE '>("?\$T/)?(out|err|got)(["$.].*)? (.*[^&])?&( #.*)?$' "${scripts[@]}" /dev/null | cut -d: -f1,2 | tr '\n' ' ')
[ -z "$late" ]
report $? "no background job opens a file that another wrote ${late:+: $late}"

# tests/lint/baseline names, a line each, a commit of which every file was good by the same checks and programs. What has not changed since, nor anything that it includes or
# sources, at any depth, is not looked at again; where that commit is not here, everything is.
declare -A touched=()
since=
if [ "${TIER:-everyday}$write" = everyday ] && commit=$(awk -v digest="$digest" '$2 == digest { print $1; exit }' tests/lint/baseline 2>/dev/null) && [ -n "$commit" ] && changed=$(git diff --name-only "$commit" 2>/dev/null); then
    since=$commit
    while read -r file; do touched[$file]=1; done < <(awk '
        function base(path) { sub(/.*\//, "", path); return path }
        NR == FNR { is_changed[$0] = 1; next }
        FNR == 1 && !(FILENAME in n) { n[FILENAME] = 0; if (FILENAME in is_changed) { touched[FILENAME] = 1; anew[base(FILENAME)] = 1 } }
        /^[ \t]*#[ \t]*include[ \t]*"/ { split($0, part, "\""); of[FILENAME, ++n[FILENAME]] = base(part[2]) }
        FILENAME ~ /(\.sh|run)$/ && /source|^[ \t]*\. / { rest = $0; while (match(rest, /[A-Za-z0-9_]+\.sh/)) { of[FILENAME, ++n[FILENAME]] = substr(rest, RSTART, RLENGTH); rest = substr(rest, RSTART + RLENGTH) } }
        END {
            for (path in is_changed) anew[base(path)] = 1 # and what was taken away
            do {
                more = 0
                for (file in n) if (!(file in touched)) for (i = 1; i <= n[file]; i++) if (of[file, i] in anew) { touched[file] = 1; anew[base(file)] = more = 1 }
            } while (more)
            for (file in touched) print file
        }' <(printf '%s\n' "$changed") "${files[@]}" "${scripts[@]}")
    echo "# $((${#files[@]} + ${#scripts[@]} - ${#touched[@]})) of $((${#files[@]} + ${#scripts[@]})) files are as at $commit, where all of them were good (tests/lint/baseline)"
fi
is_as_then() { [ -n "$since" ] && [ -z "${touched[$1]-}" ]; } # FILE
left() { # FILE...: the others, a line each
    local file
    for file in "$@"; do is_as_then "$file" || echo "$file"; done
}
# A file that passed is not checked again, in any clone, until it, its includes, the checks or the checking program change: a file named by the
# digest of all of these records that. make test-all (TIER=all) checks everything.
known="${XDG_CACHE_HOME:-$HOME/.cache}/reperf-lint"
work=$(mktemp -d "${TMPDIR:-/tmp}/reperf-lint.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
mkdir -p "$known" "$work/made_of" && find "$known" -type f -mtime +30 -delete
unknown() { # "KEY FILE" a line on standard input: KEY and FILE, a line each, of what is to be looked at; KEY is - where there is none
    local key file
    while read -r key file; do
        [ "${TIER:-everyday}" != all ] && [ -e "$known/$key" ] || printf '%s\n%s\n' "$key" "$file"
    done
}
# shellcheck disable=SC2317
pass_or_say() { # KEY FILE PATTERN COMMAND...: FILE is known if COMMAND passes, otherwise what matches PATTERN is shown
    local key=$1 log="$work/${2//\//%}.log" pattern=$3
    shift 3
    if "$@" >"$log" 2>&1; then
        [ "$key" = - ] || : >"$known/$key"
    else
        grep -E "$pattern" "$log" | head -n 10 | sed 's/^/# /'
        return 1
    fi
}
export -f pass_or_say
export known work
# Layout: a file's content, the rules and the program's version tell all.
salt=$({ clang-format --version && cat .clang-format; } | sha256sum | cut -c1-32)
left "${files[@]}" | xargs -r -d '\n' sha256sum | sed "s/^/format-$salt-/" | unknown >"$work/new"
mapfile -t unformatted < <(sed -n 'n;p' "$work/new")
said=0
if [ ${#unformatted[@]} -gt 0 ]; then
    clang-format --dry-run -Werror "${unformatted[@]}" 2>&1 | grep -E 'error|warning' | head -n 20 | sed 's/^/# /'
    said=${PIPESTATUS[0]}
    [ "$said" -ne 0 ] || sed -n 'p;n' "$work/new" | (cd "$known" && xargs -d '\n' touch)
fi
report "$said" "clang-format"
# Any script may include any that is no test.
shell_salt=$({ shellcheck --version && printf '%s\n' "${scripts[@]}" | grep -vE '/test_[^/]*$' | xargs -d '\n' cat; } | sha256sum)
for script in "${scripts[@]}"; do
    is_as_then "$script" || echo "$({ echo "shellcheck $shell_salt $script" && cat "$script"; } | sha256sum | cut -c1-64) $script"
done | unknown >"$work/new"
echo "# shellcheck: ${#scripts[@]} scripts, $(($(wc -l <"$work/new") / 2)) of them not known to be good"
# shellcheck disable=SC2016
xargs -r -d '\n' -P "$(nproc)" -n 2 bash -c 'pass_or_say "$1" "$2" . shellcheck -x -e SC1091 "$2"' bash <"$work/new"
report $? "shellcheck"
mandoc -T lint -W warning orchestrator/man/*.1 2>&1 | head -n 20 | sed 's/^/# /'
report "${PIPESTATUS[0]}" "mandoc"

keys() { # FILE...: "KEY FILE" a line; KEY is the digest of the digests of all that the file is made of, - where that cannot be told
    local file
    # shellcheck disable=SC2016
    printf '%s\0' "$@" | xargs -0 -P "$(nproc)" -n 32 bash -c 'gcc -M $flags "$@" >"$work/rules.$$"' bash 2>/dev/null
    awk '{ sub(/^[^ ]+: /, ": "); gsub(/\\$/, ""); gsub(/ +/, "\n"); print }' "$work"/rules.* | grep . >"$work/parts"
    grep -vx : "$work/parts" | sort -u | xargs -d '\n' sha256sum >"$work/digests"
    { clang-tidy --version && echo "clang-tidy $checks $config $flags"; } >"$work/how"
    awk -v salt="$(sha256sum <"$work/how")" -v to="$work/made_of/" '
        NR == FNR { digest[substr($0, 67)] = $1; next }
        $0 == ":" { if (out) close(out); out = ""; next }
        out == "" { out = $0; gsub("/", "%", out); out = to out; print salt >out }
        { print digest[$0] >out }' "$work/digests" "$work/parts"
    for file in "$@"; do [ -s "$work/made_of/${file//\//%}" ] || echo "- $file"; done
    (cd "$work/made_of" && find . -type f -printf '%f\0' | xargs -0 -r sha256sum | sed 's/  / /; s#%#/#g')
}
# shellcheck disable=SC2086,SC2317
tidy() { clang-tidy --quiet --warnings-as-errors='*' --checks="$checks" --config="$config" "$@" -- $flags; }
# shellcheck disable=SC2317
tidy_some() { # KEY FILE...: one process for all of them; where it finds something, one for each
    local pair files=() keys=() bad=0
    for ((pair = 1; pair < $#; pair += 2)); do
        keys+=("${!pair}")
        files+=("${@:pair+1:1}")
    done
    if [ ${#files[@]} -gt 1 ] && tidy "${files[@]}" >/dev/null 2>&1; then
        (cd "$known" && printf '%s\n' "${keys[@]}" | grep -vx -e - | xargs -r touch)
        return
    fi
    for pair in "${!files[@]}"; do pass_or_say "${keys[pair]}" "${files[pair]}" error tidy "${files[pair]}" || bad=1; done
    return "$bad"
}
export -f tidy tidy_some
export checks config flags
mapfile -t tidied < <(printf '%s\n' "${files[@]}" | grep -E '^(orchestrator|workloads)/.*\.c$' | grep -vE "$no_cuda")
mapfile -t parsed < <(left "${tidied[@]}")
: >"$work/new"
[ ${#parsed[@]} -eq 0 ] || keys "${parsed[@]}" | unknown >"$work/new"
echo "# clang-tidy: ${#tidied[@]} files, $(($(wc -l <"$work/new") / 2)) of them not known to be good"
xargs -r -d '\n' -P "$(nproc)" -n 32 bash -c 'tidy_some "$@"' bash <"$work/new"
report $? "clang-tidy"
if [ "$no_cuda" = '^$' ]; then :; else echo "ok $((n += 1)) - clang-tidy of what needs CUDA # SKIP no CUDA headers in $cuda"; fi
echo "1..$n"
if [ "$write" = --write ] && [ $bad -eq 0 ]; then
    git diff --quiet HEAD -- . ':!tests/lint/baseline' || { echo "not committed: nothing is written down" && exit 1; }
    { grep -vs " $digest\$" tests/lint/baseline; echo "$(git rev-parse HEAD) $digest"; } >"$work/baseline" && cp "$work/baseline" tests/lint/baseline
fi
exit $bad
