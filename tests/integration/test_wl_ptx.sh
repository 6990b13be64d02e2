#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: workloads
# Only: @ptx build/cuda/sm_90
# The kernels' PTX on a machine for it: every operation in AMP as of sm_90, and faults planted in copies of the PTX. Whole networks and the other
# architectures: test_wl_ptx_70.sh and its like.
# shellcheck source=tests/integration/ptx_lib.sh
. "$(dirname "$0")/ptx_lib.sh"
# ---- planted faults ----
plants() {
    planted batch_norm _Z10bn_momentsIf '/bar[.]sync/s/bar.*;/;/'
    noticed "that barriers are missing" 'ptx: race: .*bn_moments' test_device bn_fwd
    planted loss loss_pixels_fwdIf 's/membar[.]gl;/;/'
    noticed "that fences are missing" 'ptx: race: .*loss_pixels_fwd' test_device loss_fwd
    planted attention_half attend_halfILi64 '/bar[.]warp[.]sync/s/bar.*;/;/'
    noticed "that a warp's barriers are missing" 'ptx: race: .*attend_half' test_device attention_fwd
    planted elementwise elem_fwdIf 's/setp[.]ge/setp.gt/'
    noticed "an index that is one too large" 'ptx: global memory out of bounds: .*elem_fwd' test_device add_fwd
    planted elementwise elem_fwdIf '/st[.]global[.]v4.*%rd[0-9]+[]]/s/[]]/+4]/'
    noticed "a vector that is not aligned" 'ptx: misaligned: .*elem_fwd' test_device add_fwd
    planted curves curveIf4gelu 's/mul[.]f32/add.f32/'
    noticed "a sum in the place of a product" 'is off by' test_device gelu_fwd
    export REPERF_EMU_FAULT=no_opt_in
    rm -rf "$T/planted" && cp -r "$folder" "$T/planted"
    noticed "that an opt-in to shared memory is missing" 'cudaErrorInvalidConfiguration' test_device attention_fwd
    unset REPERF_EMU_FAULT
}

ptx_of 90
# AMP has kernels of both types.
REPERF_TEST_PRECISION=amp holds "sm_90: every operation in AMP but attention_bwd, whose cases are long" test_device -attention_bwd
coverage 90
sed 's/^/# not run here: /' "$T/missing"
plants
tap_done
