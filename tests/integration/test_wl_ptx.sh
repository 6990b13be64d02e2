#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The kernels' PTX on a machine for it: every operation as of sm_90, and faults planted in copies of the PTX. Whole networks and the other
# architectures: test_wl_ptx_70.sh and its like.
# shellcheck source=tests/integration/ptx_lib.sh
. "$(dirname "$0")/ptx_lib.sh"
# ---- planted faults ----
# FILE KERNEL LINES WHAT REPLACEMENT: a copy of all PTX in which WHAT is something else in those lines of the kernels of that name.
planted() {
    rm -rf "$T/planted"
    cp -r "${folder:?}" "$T/planted"
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

ptx_of 90
holds "sm_90: every operation but attention_bwd, whose cases are long" test_device -attention_bwd
coverage 90
sed 's/^/# not run here: /' "$T/missing"
plants
tap_done
