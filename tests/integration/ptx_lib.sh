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

# ARCH [NAME...]: its PTX is made, or that of those files, and looked for in $folder.
ptx_of() {
    folder="build/cuda/sm_$1/workloads/backend_cuda"
    local what=("ptx-$1")
    if [ $# -gt 1 ]; then
        what=("${@:2}")
        what=("${what[@]/#/$folder/}")
        what=("${what[@]/%/.cu.ptx}")
    fi
    make -s "${what[@]}" CLANG_SM70="$clang_sm70" >"$T/make" 2>&1
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
# FILE KERNEL SED: a copy of all PTX in which the kernels of that name are rewritten.
planted() {
    rm -rf "$T/planted"
    cp -r "${folder:?}" "$T/planted"
    sed -i -E "/[.]entry.*$2/,/^}/{$3}" "$T/planted/$1.cu.ptx"
    ! cmp -s "$folder/$1.cu.ptx" "$T/planted/$1.cu.ptx"
    ok $? "$2: there is a place for a fault"
}
# NAME PATTERN PROGRAM [ARGUMENT]...: it is noticed, for that reason.
noticed() {
    local name=$1 pattern=$2 program=$3 seen=0
    shift 3
    REPERF_PTX="$T/planted" "$B/ptx/$program" "$@" >"$T/out" 2>&1 && seen=1
    ok $seen "$name is noticed"
    like "$(grep -E -- "$pattern" "$T/out" | cut -c1-1000)" "$pattern" "for what it is"
}

# Halves as they leave a kernel: a tenth too large, or truncated instead of rounded. A whole step in AMP is what must notice.
half='cvt[.]rn[.]f16[.]f32 (%[a-z0-9]+), (%f[0-9]+);'
tenth="s/$half/mul.f32 \\2, \\2, 0f3F8CCCCD; &/"
cut="s/$half/and.b32 \\2, \\2, -8192; &/"
plants_amp() { # FILE KERNEL FAULT NAME CALL
    planted "$1" "$2" "$3"
    REPERF_TEST_PRECISION=amp noticed "AMP: $2 $4" "^not ok .*; the first that is beyond: out.* of $5" test_models bert_nano
}
all_plants_amp() {
    export REPERF_EMU_CC=9.0
    plants_amp embed _Z5embedI6__half "$tenth" "a tenth too large" embed_fwd
    plants_amp layer_norm norm_fwdI6__half "$cut" "cut off" layer_norm_fwd
    plants_amp layer_norm norm_bwdI6__half "$tenth" "a tenth too large" layer_norm_bwd
    plants_amp curves curveI6__half4gelu "$cut" "cut off" gelu_
    plants_amp elementwise elem_fwdI6__half "$cut" "cut off" add_fwd
    plants_amp dropout dropout_flatI6__half "$tenth" "a tenth too large" dropout_
    plants_amp row_loss row_lossI6__half "$tenth" "a tenth too large" row_loss
    plants_amp attention_half attend_halfILi64 "$tenth" "a tenth too large" attention_fwd
    plants_amp attention_half attend_half_bwdILi64 "$tenth" "a tenth too large" attention_bwd
    unset REPERF_EMU_CC
}

# ---- each kernel ----
device_of() { # ARCH SEED
    export REPERF_EMU_SEED=$2
    case $1 in 70) export REPERF_EMU_CC=7.0 REPERF_FAKE_CUDNN=91002 ;; 80) export REPERF_EMU_CC=8.0 ;; *) export REPERF_EMU_CC=9.0 ;; esac
}
operations() { # ARCH SEED
    device_of "$1" "$2"
    local test
    for test in device emu_augment emu_calls emu_images emu_optim; do
        holds "sm_$1, seed $2: test_$test" "test_$test"
    done
}
# Whole networks take minutes each: all of them once; where another architecture's PTX is all that is new, the two that have every kind of call.
networks() { # ARCH SEED
    local model models=(deeplabv3p bert_nano)
    device_of "$1" "$2"
    [ "$1" = 90 ] && models+=(resnet50 hrnet_w18)
    for model in "${models[@]}"; do
        holds "sm_$1, seed $2: test_models $model" test_models "$model"
    done
    holds "sm_$1, seed $2: test_steps bert_nano" test_steps bert_nano # the others take hours; what is recorded and kept is the emulator's to show
}

all_of() { # ARCH
    if [ "$1" = 70 ] && ! command -v "$clang_sm70" >/dev/null; then
        skip "PTX of sm_70" "no $clang_sm70"
        return
    fi
    ptx_of "$1"
    operations "$1" 1
    operations "$1" 2
    networks "$1" 1
    unset REPERF_EMU_SEED REPERF_EMU_CC REPERF_FAKE_CUDNN
    coverage "$1"
    # What needs several ranks: on the emulated device alone (test_emu_nccl).
    local alone='loss_of_ranks|loss_scale_of_ranks|row_count_of_ranks|bn_join_ranks'
    grep -E "$alone" "$T/missing" 2>/dev/null | sed 's/^/# not run here: /'
    is "$(grep -vE "$alone" "$T/missing" 2>/dev/null)" "" "sm_$1: every other kernel has run"
    if [ "$1" = 90 ]; then
        all_plants_amp
    fi
}
