# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The kernels that a GPU would run, as nvcc or clang made them: their PTX on a machine for it (tests/ptx), with race and bounds checks, against
# the CPU backend. Sourced by test_wl_ptx*.sh.
# shellcheck source=tests/tap_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../tap_lib.sh"
clang_sm70=${CLANG_SM70:-clang-22}
if [ ! -x "$B/ptx/test_device" ]; then
    skip "the kernels' PTX" "built without the CUDA toolkit and cuDNN's headers"
    tap_done
fi
export REPERF_CUDNN_DIR="$B/fake" REPERF_CUBLAS_DIR="$B/fake" CMOCKA_MESSAGE_OUTPUT=TAP
unset REPERF_TEST_PLANS REPERF_EMU_FAULT
folder=

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

# ---- each kernel ----
whole() { # ARCH SEED
    export REPERF_EMU_SEED=$2
    case $1 in 70) export REPERF_EMU_CC=7.0 REPERF_FAKE_CUDNN=91002 ;; 80) export REPERF_EMU_CC=8.0 ;; *) export REPERF_EMU_CC=9.0 ;; esac
    local test
    for test in device models steps emu_augment emu_depthwise emu_image emu_images emu_loss emu_norm emu_optim emu_sums; do
        holds "sm_$1, seed $2: test_$test" "test_$test"
    done
    unset REPERF_EMU_SEED REPERF_EMU_CC REPERF_FAKE_CUDNN
}

all_of() { # ARCH
    in_test_all "every kernel's PTX for sm_$1, whole networks, two orders of threads" || return
    if [ "$1" = 70 ] && ! command -v "$clang_sm70" >/dev/null; then
        skip "PTX of sm_70" "no $clang_sm70"
        return
    fi
    ptx_of "$1"
    whole "$1" 1
    whole "$1" 2
    coverage "$1"
    # What needs several ranks: on the emulated device alone (test_emu_nccl).
    local alone='loss_of_ranks|loss_scale_of_ranks|row_count_of_ranks|bn_join_ranks'
    grep -E "$alone" "$T/missing" 2>/dev/null | sed 's/^/# not run here: /'
    is "$(grep -vE "$alone" "$T/missing" 2>/dev/null)" "" "sm_$1: every other kernel has run"
}
