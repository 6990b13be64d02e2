# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Paired timings: two commands in turn, A B A B ..., after one warm-up of each; prints the median of the ratios pair by pair, because
# the machine's speed drifts and single times mean little. Wall and CPU (user + system of the whole process tree) seconds.
: "${ROUNDS:=5}"

# Runs "$@" once; leaves wall and CPU seconds in $wall and $cpu.
time_once() {
    local TIMEFORMAT='%R %U %S' report r u s
    report=$({ time "$@" >/dev/null 2>"${BENCH_ERR:-/dev/null}"; } 2>&1) || {
        echo "bench: command failed: $*" >&2
        return 1
    }
    read -r r u s <<<"$report"
    wall=$r
    cpu=$(awk -v u="$u" -v s="$s" 'BEGIN { print u + s }')
}

# pair NAME LIMIT A B: A and B are words for `bash -c`; LIMIT is what the median wall ratio A/B ought to be at most ("" for none).
pair() {
    local name=$1 limit=$2 a=$3 b=$4 round file
    file=$(mktemp)
    time_once bash -c "$a" && time_once bash -c "$b" || return 1
    for ((round = 0; round < ROUNDS; round++)); do
        time_once bash -c "$a" || return 1
        local wall_a=$wall cpu_a=$cpu
        time_once bash -c "$b" || return 1
        echo "$wall_a $wall $cpu_a $cpu" >>"$file"
    done
    awk -v name="$name" -v limit="$limit" '
        function median(v, n,   i, j, t) {
            for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j] < v[j - 1]; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
            return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
        }
        { n++; wa[n] = $1; wb[n] = $2; ca[n] = $3; cb[n] = $4
          rw[n] = $2 > 0 ? $1 / $2 : 0; rc[n] = $4 > 0 ? $3 / $4 : 0 }
        END {
            r = median(rw, n)
            printf "%-44s ours %8.3f s  peer %8.3f s  wall ratio %6.3f  cpu ratio %6.3f  (n=%d)", name, median(wa, n), median(wb, n), r, median(rc, n), n
            if (limit != "") printf "  wanted <= %s: %s", limit, r <= limit + 0 ? "yes" : "NO"
            print ""
        }' "$file"
    rm -f "$file"
}

packed_imagenet() { # SAMPLES: synthetic ones, packed, in $T/pack
    local dataset=datasets/imagenet-2012/dataset.json inner
    mkdir -p "$T/tree/train"
    "$B/reperf-pack" synth --dataset "$dataset" --out "$T/in" --samples "train=$1" --samples val=10 >/dev/null 2>"$T/err" || { cat "$T/err"; exit 1; }
    tar xf "$T/in/ILSVRC2012_img_train.tar" -C "$T/tree/train"
    for inner in "$T"/tree/train/*.tar; do
        mkdir "${inner%.tar}" && tar xf "$inner" -C "${inner%.tar}" && rm "$inner"
    done
    "$B/reperf-pack" pack --dataset "$dataset" --tree "$T/tree" --synthetic --split train --out "$T/pack" >/dev/null 2>"$T/err" || { cat "$T/err"; exit 1; }
    rm -rf "$T/in" "$T/tree"
}
