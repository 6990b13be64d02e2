#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: workloads
# Only: @ptx build/cuda/sm_90
# Kernels' PTX on a machine for it, as of sm_90: operations of six files, and faults planted in copies of them. Every operation, whole networks
# and the other architectures: test_wl_ptx_70.sh and its like.
# shellcheck source=tests/integration/ptx_lib.sh
. "$(dirname "$0")/ptx_lib.sh"
# ---- planted faults ----
plants() {
    planted batch_norm _Z10bn_momentsIf '/bar[.]sync/s/bar.*;/;/'
    noticed "that barriers are missing" 'ptx: race: .*bn_moments' test_device bn_fwd
    planted loss loss_pixels_fwdIf 's/membar[.]gl;/;/'
    noticed "that fences are missing" 'ptx: race: .*loss_pixels_fwd' test_device loss_fwd
    planted attention_half attend_halfILi64 '/bar[.]warp[.]sync/s/bar.*;/;/'
    export REPERF_TEST_PRECISION=amp
    noticed "that a warp's barriers are missing" 'ptx: race: .*attend_half' test_device attention_fwd
    unset REPERF_TEST_PRECISION
    planted elementwise elem_fwdIf 's/setp[.]ge/setp.gt/'
    noticed "an index that is one too large" 'ptx: global memory out of bounds: .*elem_fwd' test_device add_fwd
    planted elementwise elem_fwdIf '/st[.]global[.]v4.*%rd[0-9]+[]]/s/[]]/+4]/'
    noticed "a vector that is not aligned" 'ptx: misaligned: .*elem_fwd' test_device add_fwd
    planted curves curveIf4gelu 's/mul[.]f32/add.f32/'
    noticed "a sum in the place of a product" 'is off by' test_device gelu_fwd
    export REPERF_EMU_FAULT=no_opt_in REPERF_TEST_PRECISION=amp
    rm -rf "$T/planted" && cp -r "$folder" "$T/planted"
    noticed "that an opt-in to shared memory is missing" 'cudaErrorInvalidConfiguration' test_device attention_fwd
    unset REPERF_EMU_FAULT REPERF_TEST_PRECISION
}

ptx_of 90 batch_norm loss attention attention_half elementwise curves
for operation in bn_fwd loss_fwd add_fwd gelu_fwd; do holds "sm_90: $operation" test_device $operation; done
REPERF_TEST_PRECISION=amp holds "sm_90: attention_fwd in AMP" test_device attention_fwd
in_test_all "every operation as the PTX of sm_90" || true # test_wl_ptx_90.sh
plants
tap_done
