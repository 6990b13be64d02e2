#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The kernels that a GPU would run, as nvcc made them: their PTX on a machine for it (tests/ptx), with race and bounds checks, against the CPU
# backend. `make test`: every operation, as of sm_90. `make test-all`: whole networks, recorded steps, optimisers, what only several ranks
# call, for sm_70 (by clang), sm_80 and sm_90, two orders of threads each; every kernel has run then. Faults are planted in copies of the PTX.
. "$(dirname "$0")/../tap_lib.sh"
clang_sm70=${CLANG_SM70:-clang-22}
if [ ! -x "$B/ptx/test_device" ]; then
    skip "the kernels' PTX" "built without the CUDA toolkit and cuDNN's headers"
    tap_done
fi
export REPERF_CUDNN_DIR="$B/fake" REPERF_CUBLAS_DIR="$B/fake" CMOCKA_MESSAGE_OUTPUT=TAP
unset REPERF_TEST_PLANS REPERF_EMU_FAULT

# ARCH: its PTX is made, and looked for in $folder.
ptx_of() {
    folder="build/cuda/sm_$1/workloads/backend_cuda"
    make -s "ptx-$1" CLANG_SM70="$clang_sm70" >"$T/make" 2>&1
    local status=$?
    ok "$status" "PTX of sm_$1 is made"
    [ "$status" -eq 0 ] || sed 's/^/# /' "$T/make" | head -n 20
}

# NAME PROGRAM [ARGUMENT]...: all of it holds, and the machine has found nothing.
holds() {
    local name=$1 program=$2 status
    shift 2
    REPERF_PTX="$folder" REPERF_PTX_REPORT="$T/report" "$B/ptx/$program" "$@" >"$T/out" 2>"$T/err"
    status=$?
    ok "$status" "$name"
    [ "$status" -eq 0 ] || { grep -hv '^ok' "$T/out" "$T/err" | head -n 10 | cut -c1-400 | sed 's/^/# /'; }
}

# What has run, by kernel, and what was found; the names of kernels that have not run go to $T/missing.
coverage() { # ARCH
    awk -v arch="$1" -v missing="$T/missing" '
        $1 == "kernel" { runs[$2 " " $3] += $4; insns += $5; launches += $4 }
        $1 == "finding" { $1 = ""; print "# sm_" arch ": found:" $0; n_findings++ }
        END {
            for (k in runs) { n++; ran += runs[k] > 0; if (runs[k] == 0) print k >missing }
            printf "# sm_%s: %d of %d kernels run, %d launches, %d million instructions, %d findings\n", arch, ran, n, launches, insns / 1e6, n_findings
        }' "$T/report"
}

# ---- planted faults ----
# FILE KERNEL LINES WHAT REPLACEMENT: a copy of all PTX in which WHAT is something else in those lines of the kernels of that name.
planted() {
    rm -rf "$T/planted"
    cp -r "$folder" "$T/planted"
    awk -v kernel="$2" -v lines="$3" -v what="$4" -v replacement="$5" '
        /\.entry/ { is_in = index($0, kernel) > 0 }
        is_in && $0 ~ lines { n += sub(what, replacement) }
        { print }
        END { exit n == 0 }' "$folder/$1.cu.ptx" >"$T/planted/$1.cu.ptx"
    ok $? "$2: there is a place for a fault"
}
# NAME OPERATION PATTERN: it is noticed, for that reason.
noticed() {
    local seen=0
    REPERF_PTX="$T/planted" "$B/ptx/test_device" "$2" >"$T/out" 2>&1 && seen=1
    ok $seen "$1 is noticed"
    like "$(cut -c1-400 "$T/out")" "$3" "for what it is"
}
plants() {
    planted batch_norm _Z10bn_momentsIf 'bar[.]sync' 'bar.*;' ';'
    noticed "that barriers are missing" bn_fwd 'ptx: race: .*bn_moments'
    planted loss loss_pixels_fwdIf 'membar[.]gl' 'membar.*;' ';'
    noticed "that fences are missing" loss_fwd 'ptx: race: .*loss_pixels_fwd'
    planted attention_half attend_halfILi64 'bar[.]warp[.]sync' 'bar.*;' ';'
    noticed "that a warp's barriers are missing" attention_fwd 'ptx: race: .*attend_half'
    planted elementwise elem_fwdIf 'setp[.]ge' 'setp.ge' 'setp.gt'
    noticed "an index that is one too large" add_fwd 'ptx: global memory out of bounds: .*elem_fwd'
    planted elementwise elem_fwdIf 'st[.]global[.]v4.*%rd[0-9]+[]]' '[]]' '+4]'
    noticed "a vector that is not aligned" add_fwd 'ptx: misaligned: .*elem_fwd'
    planted curves curveIf4gelu 'mul[.]f32' 'mul' 'add'
    noticed "a sum in the place of a product" gelu_fwd 'is off by'
    export REPERF_EMU_FAULT=no_opt_in
    rm -rf "$T/planted" && cp -r "$folder" "$T/planted"
    noticed "that an opt-in to shared memory is missing" attention_fwd 'cudaErrorInvalidConfiguration'
    unset REPERF_EMU_FAULT
}

# ---- each kernel ----
whole() { # ARCH SEED
    export REPERF_EMU_SEED=$2
    case $1 in 70) export REPERF_EMU_CC=7.0 REPERF_FAKE_CUDNN=91002 ;; 80) export REPERF_EMU_CC=8.0 ;; *) export REPERF_EMU_CC=9.0 ;; esac
    local test
    local whole=(models steps)
    [ "$1 $2" = "70 2" ] || [ "$1 $2" = "80 2" ] && whole=()
    for test in device "${whole[@]}" emu_augment emu_depthwise emu_image emu_images emu_loss emu_norm emu_optim emu_sums; do
        holds "sm_$1, seed $2: test_$test" "test_$test"
    done
    unset REPERF_EMU_SEED REPERF_EMU_CC REPERF_FAKE_CUDNN
}

if in_test_all "every kernel's PTX for sm_70, sm_80 and sm_90, whole networks and what several ranks call, two orders of threads"; then
    for arch in 70 80 90; do
        if [ "$arch" = 70 ] && ! command -v "$clang_sm70" >/dev/null; then
            skip "PTX of sm_70" "no $clang_sm70"
            continue
        fi
        rm -f "$T/report" "$T/missing"
        ptx_of "$arch"
        whole "$arch" 1
        whole "$arch" 2
        coverage "$arch"
        is "$(cat "$T/missing" 2>/dev/null)" "" "sm_$arch: every kernel has run"
    done
else
    ptx_of 90
    holds "sm_90: every operation but attention_bwd, whose cases are long" test_device -attention_bwd
    coverage 90
    sed 's/^/# not run here: /' "$T/missing"
fi
ptx_of 90
plants
tap_done
