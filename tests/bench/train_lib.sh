# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Seconds a training step of each backend of this build: forward + backward + update.
: "${B:=build/release}" "${ROUNDS:=3}"

# bench_steps MODEL HxW WANTED: batch 4; after 2 warm-up steps, 5 steps each, the backends in turn; the median, 5th and 95th percentile.
bench_steps() {
    local model=$1 image=$2 wanted=$3 train="$B/reperf-train" file backend round
    local backends=(plain)
    file=$(mktemp)
    "$train" --model "$model" --backend onednn --describe --image "$image" >/dev/null 2>&1 && backends+=(onednn)
    for ((round = 0; round < ROUNDS; round++)); do
        for backend in "${backends[@]}"; do
            "$train" --model "$model" --backend "$backend" --image "$image" --batch 4 --steps 7 --threads "${THREADS:-2}" |
                sed -n 's/^{"event":"step","step":\([0-9]*\),.*"step_time_ns":\([0-9]*\),.*/\1 \2/p' |
                awk -v b="$backend" '$1 > 2 { print b, $2 / 1e9 }' >>"$file"
        done
    done
    for backend in "${backends[@]}"; do
        awk -v b="$backend" '$1 == b { print $2 }' "$file" | sort -g | awk -v b="$backend" -v title="$model fp32 $image" -v wanted="$wanted" '
            { v[NR] = $1 }
            function at(q) { return v[int(q * (NR - 1) + 1.5)] }
            END {
                if (NR == 0) { print "no step of " b; exit 1 }
                printf "%s batch 4, %-7s %8.3f s a step (p5 %.3f, p95 %.3f, n=%d)  wanted <= %s: %s\n", title, b, at(0.5), at(0.05), at(0.95), NR, wanted, at(0.5) <= wanted + 0 ? "yes" : "NO"
            }' || { rm -f "$file"; return 1; }
    done
    rm -f "$file"
}
