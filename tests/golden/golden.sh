#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# golden.sh [--write]: what reperf prints of the shipped reports, of all logs under tests/ and of sealed archives, compared with what is kept in
# tests/golden/today. NAME.facts holds numbers, statuses, verdicts and names, NAME.words sentences (split.py). --write keeps today's
# words; facts that changed are named and stay, unless FACTS names them (FACTS="audit measure", FACTS=all): each is a decision.
# Nothing in them depends on time, place, version or the machine: the store is empty, the inventory and the width are fixed.
# shellcheck source=tests/tap_lib.sh disable=SC1091
. "$(dirname "$0")/../tap_lib.sh"
kept=tests/golden/today
export HOME=$T/home REPERF_TRAIN=$ROOT/tests/integration/fake_train.sh COLUMNS=100 LC_ALL=C.UTF-8 NO_COLOR=1 TERM=dumb
unset REPERF_MANIFESTS REPERF_ROOT XDG_CONFIG_HOME XDG_STATE_HOME XDG_CACHE_HOME
mkdir -p "$T/home" "$T/printed" "$T/today"
version=$("$REPERF" --version | sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p')
names=() status_of='' by_core=''
# reperf-core, the program without lint and draft: what it prints is what reperf prints, but for the command lint, lint's findings (their counts, too) and
# proposals for logs that no format reads.
compare_core() { # NAME STATUS STATUS-OF-CORE: their outputs are in $T/out and $T/core
    local name=$1 status=$2 core=$3 extra
    case $name in
    lint*) extra=$([ "$core" -eq 2 ] && [ ! -s "$T/core" ] || echo "status $core") status=$core ;;
    measure) extra=$(diff <(sed 's/{"file":/\n&/g' "$T/out" | grep '"format":"') <(sed 's/{"file":/\n&/g' "$T/core" | grep '"format":"')) ;;
    audit* | report-* | page-report) extra=$(diff "$T/out" "$T/core" | grep '^>' | grep -v indings) ;;
    *) extra=$(cmp "$T/out" "$T/core" 2>&1) ;;
    esac
    [ "$core" -eq "$status" ] && [ -z "$extra" ] || by_core+=" $name: $core, ${extra:0:300}"
}
printed() { # KIND NAME COMMAND...: its output, its status and what it says on standard error
    local kind=$1 name=$2 status core=''
    shift 2
    case $name in *-smoke | *-full | *-local | page-twenty | measure-text | explain) ;; *)
        "${REPERF%/*}/reperf-core" "${@:2}" >"$T/core" 2>/dev/null &
        core=$!
        ;;
    esac
    "$@" >"$T/out" 2>"$T/err"
    status=$?
    if [ -n "$core" ]; then
        wait "$core"
        compare_core "$name" "$status" $?
    fi
    sed -i "s|$ROOT|ROOT|g; s|$T|SCRATCH|g; s|reperf $version|reperf VERSION|g" "$T/out" "$T/err"
    case $name in
    # Digests of files that change for other reasons than the program.
    plan-*) sed -i -E '/"(report_sha256|version)":/s/[0-9a-f]{64}/DIGEST/' "$T/out" ;;
    page-*) sed -i -E 's/></>\n</g; s/[0-9a-f]{64}/DIGEST/g' "$T/out" ;;
    esac
    mv "$T/out" "$T/printed/$name.$kind"
    status_of+="$name $status"$'\n'
    sed -E '/\[[#.]{10,}\]|^[a-z ]+  [0-9.]+ [A-Za-z]+, .*\/s/d; s|^|standard error: |' "$T/err" >"$T/printed/$name.err" # a slow machine shows progress
    names+=("$name")
}
each_status() { # NAME: the statuses since the last call, a fact like others
    printf '%s' "$status_of" >"$T/today/$1.facts"
    : >"$T/today/$1.words"
    names+=("$1")
}
printed json audit "$REPERF" audit --all --json
printed text audit-text "$REPERF" audit paddle-perf-hrnetw18 dlperf-tf2-resnet50 --like-for-like
# What each option and form shows of a report: all numbers follow, some do not, some are not printed.
printed text audit-all "$REPERF" audit --all
printed text audit-case "$REPERF" audit paddle-perf-deeplabv3p --case 'deeplabv3p/mmseg/fp32/n4g8/*'
printed text audit-quiet "$REPERF" audit paddle-perf-deeplabv3p -q
printed text audit-verbose "$REPERF" audit paddle-perf-deeplabv3p -v
printed text audit-dashes "$REPERF" audit paddle-perf-2020
for form in csv markdown svg; do printed text "report-$form" "$REPERF" report paddle-perf-deeplabv3p "--$form" -; done
printed text report-dashes "$REPERF" report paddle-perf-2020 --csv -
printed json lint "$REPERF" lint --all --json
printed text lint-text "$REPERF" lint airank-mmseg-deeplabv3plus
for report in manifests/reports/*.json; do
    report=$(basename "$report" .json)
    printed json "plan-$report-smoke" "$REPERF" plan "$report" --json --profile smoke --nodes local
    printed json "plan-$report-full" "$REPERF" plan "$report" --json --profile full --nodes v100-4x8
done
printed text plan-text "$REPERF" plan paddle-perf-hrnetw18 --profile smoke --nodes local
mapfile -t logs < <(find tests/integration/{clean,formats,logs,real,unknown} -type f ! -name README.md ! -name '*.tsv' ! -name '*.want' | LC_ALL=C sort)
printed json measure "$REPERF" measure --json "${logs[@]}"
printed text measure-text "$REPERF" measure "${logs[@]}"
for archive in tests/golden/*.tar.zst logs/verified/2*/*.tar.zst; do
    name=$(basename "$archive" .tar.zst)
    key=logs/verified/reperf.key.pub
    case $archive in tests/*) key=tests/golden/signer.pub ;; *) [ ! -e "${archive%.tar.zst}.key.pub" ] || key=${archive%.tar.zst}.key.pub ;; esac
    printed json "verify-$name" "$REPERF" verify "$archive" --key "$key" --json
    printed json "replay-$name" "$REPERF" replay "$archive" --json
done
mapfile -t cells < <(tr ' ' '\n' <tests/golden/cells)
printed json explain "$REPERF" explain --json "${cells[@]}"
printed text explain-text "$REPERF" explain "${cells[@]}"
printed text page-report "$REPERF" report --html - paddle-perf-hrnetw18
printed text page-twenty "$REPERF" report --html - airank-mmseg-deeplabv3plus
printed text page-run "$REPERF" report --html - tests/golden/cluster.tar.zst
each_status statuses
succeeds "all of it can be split" /usr/bin/python3 "${0%/*}/split.py" "$T/printed" "$T/today"

if [ "${1-}" = --write ]; then
    mkdir -p "$kept"
    changed=''
    for name in "${names[@]}"; do
        cp "$T/today/$name.words" "$kept/"
        cmp -s "$T/today/$name.facts" "$kept/$name.facts" && continue
        case " ${FACTS-} " in
        *" all "* | *" $name "*) cp "$T/today/$name.facts" "$kept/" ;;
        *) [ ! -e "$kept/$name.facts" ] && cp "$T/today/$name.facts" "$kept/" || changed+=" $name" ;;
        esac
    done
    for file in "$kept"/*; do [ -e "$T/today/${file##*/}" ] || rm "$file"; done
    find "$kept" -empty -delete
    git --no-pager diff --stat -- "$kept" | tail -n 1
    [ -z "$changed" ] || echo "facts that changed and were not written (make golden-write FACTS=\"...\"):$changed" >&2
    [ -z "$changed" ]
    exit
fi
for name in "${names[@]}"; do
    for part in facts words; do
        difference=$(diff -u "$kept/$name.$part" "$T/today/$name.$part" 2>&1)
        [ -e "$kept/$name.$part" ] || [ -s "$T/today/$name.$part" ] || difference=''
        ok "$([ -z "$difference" ] && echo 0 || echo 1)" "$name: $part"
        [ -z "$difference" ] || head -n 40 <<<"$difference" | sed 's/^/#   /'
    done
done
is "$(cd "$kept" && printf '%s\n' ./*.facts ./*.words | sed 's|^./||; s|\.[a-z]*$||' | sort -u | tr '\n' ' ')" "$(printf '%s\n' "${names[@]}" | sort -u | tr '\n' ' ')" "nothing else is kept"
is "$by_core" "" "reperf-core prints the same, but for what lint and draft add"
tap_done
