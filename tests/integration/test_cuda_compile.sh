#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: workloads
# The CUDA kernels without a GPU: each compiles for every compute capability of this build (make test-all: for every supported one), none spills registers into memory or
# needs more than a multiprocessor has, and the program that trains contains them.
. "$(dirname "$0")/../tap_lib.sh"
cuda_home=${CUDA_HOME:-/usr/local/cuda}
clang_sm70=${CLANG_SM70:-clang-22}
mapfile -t sources < <(git ls-files 'workloads/backend_cuda/*.cu')
succeeds "there are kernels" test "${#sources[@]}" -gt 0

if [ ! -x "$cuda_home/bin/nvcc" ]; then
    for what in "kernels compile for sm_75, sm_80 and sm_90" "no kernel spills registers or exceeds the limits" \
        "kernels compile for sm_70" "reperf-train holds the CUDA backend"; do
        skip "$what" "no nvcc in $cuda_home"
    done
    tap_done
fi

# --- sm_75, sm_80, sm_90: what ptxas said when the objects were made -------------------------------------
mapfile -t objects < <(printf 'build/cuda/%s.o\n' "${sources[@]}")
make -s "${objects[@]}" >"$T/make" 2>&1
ok $? "every .cu compiles by nvcc"
sed 's/^/# /' "$T/make" | head -n 20

# FILE: lines of ARCH KERNEL REGISTERS STACK SPILLED SHARED
kernels_of() {
    awk '
        /Compiling entry function/ { split($0, q, "\047"); kernel = q[2]; arch = q[4]; stack = spilled = -1 }
        /bytes stack frame/ { stack = $1; spilled = $5 + $9 }
        /Used [0-9]+ registers/ {
            shared = 0
            for (i = 2; i <= NF; i++) if ($i ~ /^smem/) shared = $(i - 2)
            for (i = 2; i <= NF; i++) if ($i == "registers,") registers = $(i - 1)
            print arch, kernel, registers, stack, spilled, shared
        }' "$1"
}
for source in "${sources[@]}"; do
    kernels_of "build/cuda/$source.o.log" | sed "s#^#$source #"
done >"$T/kernels"
mapfile -t archs < <(grep -o 'code=sm_[0-9]*' build/cuda/flags | cut -d= -f2)
[ "${#archs[@]}" -ge 3 ] || ! in_test_all "kernels compile for sm_75, sm_80 and sm_90, where this build is for ${archs[*]}"
ok $? "this build is for ${archs[*]}"
for arch in "${archs[@]}"; do
    awk -v arch="$arch" '$2 == arch { print $1, $3 }' "$T/kernels" | sort >"$T/$arch"
done
for arch in "${archs[@]}"; do
    n=$(cut -d' ' -f1 "$T/$arch" | sort -u | grep -c .)
    is "$n" "${#sources[@]}" "each .cu has kernels for $arch ($(grep -c . "$T/$arch") kernels)"
    diff "$T/sm_90" "$T/$arch" | sed 's/^/# /' | head -n 10
    ok "${PIPESTATUS[0]}" "$arch has the kernels that sm_90 has"
done

# --- limits: 255 registers a thread, 65536 a block (so threads times registers), 48 KiB of static shared memory ------------
awk '$4 > 255 || $7 > 49152 || $5 < 0' "$T/kernels" >"$T/over"
[ -s "$T/kernels" ] && [ ! -s "$T/over" ]
ok $? "no kernel has more than 255 registers or 48 KiB of shared memory of its own"
sed 's/^/# /' "$T/over" | head -n 10
# Bytes stored and loaded again, together. A few registers are noise of the compiler; more means a kernel that keeps too much.
spill_max=32
spill_max_turing=64 # no report's GPU, and its attention has half the shared memory
awk -v most=$spill_max -v turing=$spill_max_turing '$6 > ($2 == "sm_75" ? turing : most)' "$T/kernels" >"$T/spills"
succeeds "no kernel spills more than $spill_max bytes, on sm_75 $spill_max_turing" test ! -s "$T/spills"
sed 's/^/# /' "$T/spills" | head -n 10
sort -k4,4nr "$T/kernels" | awk 'NR <= 3 { print "# most registers:", $1, $2, $3, $4 }'

# --- sm_70 by clang ---------------------------------------------------------------------------------------
if ! in_test_all "kernels compile for sm_70 by clang"; then
    :
elif ! command -v "$clang_sm70" >/dev/null; then
    skip "kernels compile for sm_70" "no $clang_sm70"
else
    make -s cuda-sm70 CLANG_SM70="$clang_sm70" >"$T/make70" 2>&1
    ok $? "every .cu compiles by clang for sm_70"
    sed 's/^/# /' "$T/make70" | head -n 20
    bad=0
    for source in "${sources[@]}"; do
        ptx=build/cuda/sm_70/$source.ptx
        grep -qs '^\.target sm_70' "$ptx" || {
            echo "# $ptx: not for sm_70"
            bad=1
        }
        # The two compilers mark a kernel that is local to its file differently.
        grep -oE '\.entry [A-Za-z0-9_$]+' "$ptx" 2>/dev/null | sed 's/^.entry //; s/^_ZL/_Z/' | sort >"$T/entries"
        awk -v of="$source" '$1 == of { print $2 }' "$T/sm_90" | sed 's/^_ZL/_Z/' | sort | diff - "$T/entries" >"$T/diff" || {
            echo "# $source: other kernels than for sm_90"
            head -n 6 "$T/diff" | sed 's/^/# /'
            bad=1
        }
    done
    ok $bad "the PTX for sm_70 holds each kernel that sm_90 has"
fi

# --- the program ------------------------------------------------------------------------------------------
make -s "${B#"$ROOT/"}/reperf-train" >"$T/link" 2>&1
ok $? "reperf-train links"
nm "$B/reperf-train" 2>/dev/null | awk '{ print $NF }' | sort -u >"$T/symbols"
if grep -q cuda_init workloads/train/*.c; then
    missing=
    for symbol in cuda_init cuda_fill_kernels cuda_depthwise_fwd cuda_bn_fwd; do
        grep -qx "$symbol" "$T/symbols" || missing="$missing $symbol"
    done
    is "$missing" "" "reperf-train holds the CUDA backend"
fi
tap_done
