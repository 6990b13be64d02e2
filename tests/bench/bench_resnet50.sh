#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ResNet-50, forward + backward + update, 64x64, batch 4: seconds a step of each backend of this build, wanted under 2 s on two cores.
# After 2 warm-up steps, 15 steps each, the backends in turn; the median, 5th and 95th percentile of all steps.
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${B:=build/release}" "${ROUNDS:=3}"
train="$B/reperf-train"
file=$(mktemp)
trap 'rm -f "$file"' EXIT
backends=(plain)
"$train" --model resnet50 --backend onednn --describe --image 32 >/dev/null 2>&1 && backends+=(onednn)
for ((round = 0; round < ROUNDS; round++)); do
    for backend in "${backends[@]}"; do
        "$train" --model resnet50 --backend "$backend" --image 64 --batch 4 --steps 7 --threads "${THREADS:-2}" |
            sed -n 's/^{"event":"step","step":\([0-9]*\),.*"step_time_ns":\([0-9]*\),.*/\1 \2/p' |
            awk -v b="$backend" '$1 > 2 { print b, $2 / 1e9 }' >>"$file" || exit 1
    done
done
for backend in "${backends[@]}"; do
    awk -v b="$backend" '$1 == b { print $2 }' "$file" | sort -g | awk -v b="$backend" '
        { v[NR] = $1 }
        function at(q) { return v[int(q * (NR - 1) + 1.5)] }
        END {
            if (NR == 0) { print "no step of " b; exit 1 }
            printf "resnet50 fp32 64x64 batch 4, %-7s %8.3f s a step (p5 %.3f, p95 %.3f, n=%d)  wanted <= 2: %s\n", b, at(0.5), at(0.05), at(0.95), NR, at(0.5) <= 2 ? "yes" : "NO"
        }' || exit 1
done
