# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Parts, one after the other, each within its limit and all within LIMIT_S, and their results: `make first-gpu`, `make test-gpu` and
# `make bench-gpu`. Sourced behind gpu_lib.sh, and again by each part's own shell.
PART_LEAST_S=5 # less is not worth a try
# OUT, a folder in RESULTS, gets a log of each part, summary.txt and summary.json; all of it is RESULTS/WHAT.tar, which is written anew as each
# part ends and is whole at any time. Choices of plans go into it as one file.
results_open() {
    export OUT=$RESULTS/$WHAT PLANS=$RESULTS/cache/reperf/plans XDG_CACHE_HOME=$RESULTS/cache RESULTS WHAT
    rm -rf "$OUT"
    mkdir -p "$OUT" "$PLANS" || exit 1
    PART_NAMES=() PART_TEXTS=() PART_STATES=() PART_SAID=() PART_TIMES=() PART_LIMITS=() PART_STATUSES=() PART_COUNTS=() PART_COMMANDS=()
    passed=0 failed=0 skipped=0 running='' child=''
    trap 'cut_off 130' INT
    trap 'cut_off 143' TERM HUP
}

# STATUS: ended from outside.
cut_off() {
    trap '' INT TERM HUP
    if [ -n "$running" ]; then
        kill "$child" 2>/dev/null
        PART_STATES[running]=out_of_time PART_SAID[running]="ended from outside"
    fi
    results_write
    exit "$1"
}

# TEXT: as JSON; what is no printable ASCII is left out.
json_text() {
    local LC_ALL=C text=${1//[^[:print:]]/}
    text=${text//\\/\\\\}
    printf '"%s"' "${text//\"/\\\"}"
}

write_json() {
    local i comma=
    printf '{"schema_version":1,"what":"%s","gpu":%s,"compute_capability":"%s","driver":%s,"nvcc":%s,"limit_s":%d,"elapsed_s":%d,"passed":%d,"failed":%d,"skipped":%d,"parts":[' \
        "$WHAT" "$(json_text "${GPU_NAME:-}")" "${GPU_CAPABILITY:-}" "$(json_text "${GPU_DRIVER:-}")" "$(json_text "${NVCC_VERSION:-}")" "$LIMIT_S" "$(elapsed)" "$passed" "$failed" "$skipped"
    for i in "${!PART_NAMES[@]}"; do
        printf '%s\n{"name":"%s","does":%s,"state":"%s","status":%s,"limit_s":%d,"elapsed_s":%d,"counts":%s,"said":%s,"command":%s}' "$comma" "${PART_NAMES[i]}" "$(json_text "${PART_TEXTS[i]}")" \
            "${PART_STATES[i]}" "${PART_STATUSES[i]}" "${PART_LIMITS[i]}" "${PART_TIMES[i]}" "${PART_COUNTS[i]}" "$(json_text "${PART_SAID[i]}")" "$(json_text "${PART_COMMANDS[i]}")"
        comma=,
    done
    printf '],\n"next":['
    comma=
    while IFS= read -r line; do
        printf '%s%s' "$comma" "$(json_text "$line")"
        comma=,
    done < <(what_next)
    printf ']}\n'
}

# What is to be done after this, in the order of the parts, a line each. A part by itself: PARTS="NAME...".
what_next() {
    local i n_open=0 again
    for i in "${!PART_NAMES[@]}"; do
        again="PARTS=${PART_NAMES[i]} $SELF"
        case ${PART_STATES[i]} in
        failed) echo "mend ${PART_NAMES[i]} (${PART_NAMES[i]}.log), then: $again" ;;
        out_of_time) echo "${PART_NAMES[i]} was not done in ${PART_LIMITS[i]} s: look at ${PART_NAMES[i]}.log, or give it more: LIMIT_S=$((2 * LIMIT_S)) $again" ;;
        not_reached) echo "not reached: $again" ;;
        skipped) echo "${PART_NAMES[i]} was skipped, ${PART_SAID[i]}" ;;
        *) continue ;;
        esac
        n_open=$((n_open + 1))
    done
    [ "$n_open" -gt 0 ] || echo "nothing: all parts have passed"
    for i in "$OUT"/bench-*.tar; do
        [ -e "$i" ] && echo "where reperf is built: tests/bench/seal_gpu.sh ${i##*/}"
    done
}

write_text() {
    local i
    echo "$WHAT: ${GPU_NAME:-}, compute capability ${GPU_CAPABILITY:-}, driver ${GPU_DRIVER:-}, nvcc ${NVCC_VERSION:-}; $(elapsed) of $LIMIT_S s"
    for i in "${!PART_NAMES[@]}"; do
        printf '%-12s %4d s  %-22s %s\n' "${PART_STATES[i]}" "${PART_TIMES[i]}" "${PART_NAMES[i]}" "${PART_SAID[i]}"
    done
    for i in "$OUT"/*.table; do
        [ -s "$i" ] && echo && cat "$i"
    done
    printf '\nWhat to do next:\n'
    what_next
}

results_write() {
    write_text >"$OUT/summary.txt"
    write_json >"$OUT/summary.json"
    [ -z "$(ls -A "$PLANS")" ] || tar -C "$PLANS" -cf "$OUT/plans.tar" .
    tar -C "$RESULTS" -cf "$RESULTS/.$WHAT.tar.part" "$WHAT" && mv "$RESULTS/.$WHAT.tar.part" "$RESULTS/$WHAT.tar"
}

# NAME TEXT LIMIT_S COMMAND: a part that is to come; with PARTS set, if it is named there. The command is a line of shell.
announce() {
    case " ${PARTS:-$1} build " in *" $1 "*) ;; *) return ;; esac
    PART_NAMES+=("$1") PART_TEXTS+=("$2") PART_LIMITS+=("$3") PART_COMMANDS+=("$4")
    PART_STATES+=(not_reached) PART_SAID+=("not reached") PART_TIMES+=(0) PART_STATUSES+=(null) PART_COUNTS+=(null)
}

# A part's last lines, or its counts if it prints TAP.
judge_part() { # INDEX STATUS LOG
    local i=$1 status=$2 log=$3 counts
    PART_STATUSES[i]=$status
    PART_SAID[i]=$(grep -av '^ *$' "$log" | tail -n 1 | cut -c1-300)
    counts=$(grep -aE '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1)
    if [[ "$counts" =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
        passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2])) skipped=$((skipped + BASH_REMATCH[3]))
        PART_COUNTS[i]="{\"passed\":${BASH_REMATCH[1]},\"failed\":${BASH_REMATCH[2]},\"skipped\":${BASH_REMATCH[3]}}"
        [ "$status" -eq 0 ] || PART_SAID[i]="$(grep -aE '^ *not ok' "$log" | head -n 1 | sed 's/^ *//' | cut -c1-200); $counts"
        if [ "${BASH_REMATCH[1]}${BASH_REMATCH[2]}" = 00 ] && [ "${BASH_REMATCH[3]}" -gt 0 ]; then
            PART_STATES[i]=skipped
            PART_SAID[i]=$(grep -a '^skipped: ' "$log" | head -n 1 | cut -c1-300)
            return
        fi
    elif [ "$status" -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
    grep -aqE 'ended with status (124|137): .* is its limit$' "$log" && status=124
    case $status in
    0) PART_STATES[i]=passed ;;
    124 | 137) PART_STATES[i]=out_of_time ;;
    *) PART_STATES[i]=failed ;;
    esac
}

# INDEX: runs what was announced, within its limit and what is left.
run_part() {
    local i=$1 limit begin status log=$OUT/${PART_NAMES[$1]}.log
    limit=$(left "${PART_LIMITS[i]}")
    if [ "$limit" -lt "$PART_LEAST_S" ]; then
        failed=$((failed + 1))
        PART_SAID[i]="not reached: the time is up"
        echo "== ${PART_NAMES[i]}: ${PART_SAID[i]}"
        return
    fi
    begin=$(elapsed)
    PART_LIMITS[i]=$limit
    echo "== ${PART_NAMES[i]}: ${PART_TEXTS[i]} (at most $limit s; $begin s have passed)"
    PART_LIMIT_S=$limit timeout -k 3 "$limit" bash -c ". tests/cuda/gpu_lib.sh; . tests/cuda/gpu_parts.sh; ${PART_COMMANDS[i]}" </dev/null >"$log" 2>&1 &
    child=$! running=$i
    wait "$child"
    status=$?
    # timeout leads their group, and ends with the shell; a program that ignored its TERM would hold the GPU.
    kill -KILL -- "-$child" 2>/dev/null
    judge_part "$i" "$status" "$log"
    running=''
    PART_TIMES[i]=$(($(elapsed) - begin))
    tail -n 40 "$log"
}

# All that was announced. Without a build nothing can be run.
run_parts() {
    local i
    results_write
    for i in "${!PART_NAMES[@]}"; do
        run_part "$i"
        [ "${PART_STATES[i]}" = not_reached ] || results_write
        if [ "${PART_NAMES[i]}" = build ] && [ "${PART_STATES[i]}" != passed ]; then
            failed=1
            break
        fi
    done
    results_write
    cat "$OUT/summary.txt"
    echo "$RESULTS/$WHAT.tar"
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}

# ---- in a part's own shell ----

# PROGRAM: one that prints TAP, within the part's limit.
tap_part() {
    local status
    # shellcheck disable=SC2153
    TAP_LANES=1 TEST_LIMIT_S=$((PART_LIMIT_S > 8 ? PART_LIMIT_S - 4 : PART_LIMIT_S)) TEST_KILL_S=2 tests/tap.sh "$1"
    status=$?
    cat "$B"/tests/*"${1##*/}".tap >>"$OUT/all.tap" 2>/dev/null
    return $status
}

# NAME MODEL [OPTION]...: one run of reperf-bench; its folder is OUT/RUN.tar, its table OUT/NAME.table.
bench_part() {
    local name=$1 model=$2 run status
    shift 2
    "$B/reperf-bench" models --model "$model" --python "${PYTHON:-python3}" --deadline $((PART_LIMIT_S > 30 ? PART_LIMIT_S - 8 : PART_LIMIT_S)) --out "$RESULTS/runs/$name" "$@" >"$OUT/$name.table"
    status=$?
    cat "$OUT/$name.table"
    run=$(find "$RESULTS/runs/$name" -maxdepth 1 -name "bench-$model-*" -type d 2>/dev/null | sort | tail -n 1)
    if [ -n "$run" ] && [ -e "$run/result.json" ]; then
        tar -C "${run%/*}" --exclude=scratch -cf "$OUT/${run##*/}.tar" "${run##*/}"
    else
        echo "$name: no result" >&2
        [ "$status" -ne 0 ] || status=1
    fi
    return $status
}

# MODEL [OPTION]...: the table of its kernels is OUT/kernels-MODEL.txt, the numbers lie beside it.
kernels_part() {
    local model=$1 status
    shift
    "$B/reperf-bench" kernels --model "$model" "$@" --out "$OUT" >"$OUT/kernels-$model.txt"
    status=$?
    cat "$OUT/kernels-$model.txt"
    return $status
}
