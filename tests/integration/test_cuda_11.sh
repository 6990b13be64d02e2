#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: workloads
# The CUDA backend with the headers of CUDA 11.8, cuDNN 9.10 and NCCL 2.21, from which images/reperf-cuda11 builds it: each C file by gcc, gcc 11 where it is, as
# the image has; each kernel for V100 by clang, and its PTX by 11.8's own ptxas. The headers are looked for in $CUDA11_WHEELS, what
#   pip install --no-deps --target "$CUDA11_WHEELS" nvidia-cuda-runtime-cu11==11.8.89 nvidia-cuda-nvcc-cu11==11.8.89 nvidia-cublas-cu11==11.11.3.6 \
#       nvidia-cudnn-cu11==9.10.2.21 nvidia-nccl-cu11==2.21.5
# makes (0.9 GB, for a few headers), and among the packages of the python3 on PATH. And what the C files call of the runtime must be there with the reports' driver,
# 450.80.02, which knows CUDA 11.0: newer calls fail there, though they link.
# shellcheck source=tests/tap_lib.sh disable=SC1091
. "$(dirname "$0")/../tap_lib.sh"
wheels=${CUDA11_WHEELS:-$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))' 2>/dev/null)}
for header in cuda_runtime/include/cuda_runtime_api.h cuda_nvcc/include/crt/host_config.h cublas/include/cublasLt.h cudnn/include/cudnn_graph.h nccl/include/nccl.h; do
    [ -e "$wheels/nvidia/$header" ] && grep -q '^#define CUDART_VERSION *11080' "$wheels/nvidia/cuda_runtime/include/cuda_runtime_api.h" && continue
    skip "the backend with CUDA 11.8's headers" "$header of CUDA 11.8 is not in CUDA11_WHEELS, nor among python3's packages"
    tap_done
done
mkdir -p "$T/home/include" "$T/home/bin" "$T/home/lib64"
cp -R "$wheels"/nvidia/cuda_runtime/include/. "$wheels"/nvidia/cuda_nvcc/include/. "$T/home/include"
ln -s "$wheels/nvidia/cuda_nvcc/nvvm" "$T/home/nvvm"
ptxas=$wheels/nvidia/cuda_nvcc/bin/ptxas

compiler=$(command -v gcc-11 || command -v gcc)
# shellcheck disable=SC2046 # each flag is a word
as_c() { # FILE
    "$compiler" $(sed 's/ | .*//; s/^[^-]*//; s/"//g' "$B/flags") -Iworkloads -I. -fopenmp -DREPERF_HAVE_NCCL=1 -DREPERF_HAVE_CUDA=1 -DREPERF_CUDA_ARCHS=70_75_80_90 \
        -isystem "$T/home/include" -isystem "$wheels/nvidia/cublas/include" -isystem "$wheels/nvidia/cudnn/include" -isystem "$wheels/nvidia/nccl/include" -c "$1" -o "$T/o" &&
        nm -u "$T/o" | sed -n 's/^ *U cuda\([A-Z][A-Za-z]*\)$/\1/p' >>"$T/calls"
}
for source in workloads/{backend_cuda,train,bench}/*.c workloads/dist/nccl*.c tests/cuda/*.c; do
    as_c "$source" >"$T/out" 2>&1 || { echo "# $source" && head -n 5 "$T/out" | sed 's/^/# /'; } >>"$T/bad"
done
succeeds "the C files compile by $(basename "$compiler") with the headers of CUDA 11.8" test ! -e "$T/bad"
cat "$T/bad" 2>/dev/null

# "PFN_cuGraphLaunch_v10000": since when the driver has a call. What has none of the runtime's name is as old as the runtime.
while read -r call; do
    since=$(sed -n "s/^#define PFN_cu$call  *PFN_cu${call}_v\([0-9]*\).*/\1/p" "$T/home/include/cudaTypedefs.h" | head -n 1)
    [ "${since:-0}" -le 11000 ] || echo "# cuda$call needs a driver for $since"
done < <(sort -u "$T/calls") >"$T/newer"
[ "$(sort -u "$T/calls" | wc -l)" -gt 30 ] && [ ! -s "$T/newer" ]
ok $? "each of the $(sort -u "$T/calls" | wc -l) calls of the runtime is one that a driver for CUDA 11.0 has"
cat "$T/newer"

clang=${CLANG_SM70:-clang-22}
if ! command -v "$clang" >/dev/null; then
    skip "the kernels with CUDA 11.8's headers" "no $clang"
    tap_done
fi
for source in workloads/backend_cuda/*.cu; do
    { "$clang" -x cuda --cuda-path="$T/home" --cuda-gpu-arch=sm_70 --cuda-device-only -S -std=c++17 -O3 -Iworkloads -Iorchestrator -Wall -Wextra -Werror -Wno-unknown-cuda-version \
        -Wno-pass-failed "$source" -o "$T/ptx" && "$ptxas" -arch=sm_70 "$T/ptx" -o /dev/null; } >"$T/out" 2>&1 ||
        { echo "# $source" && head -n 5 "$T/out" | sed 's/^/# /'; } >>"$T/bad_kernels"
done
succeeds "the kernels compile by $clang for V100 with them, and ptxas 11.8 takes the PTX" test ! -e "$T/bad_kernels"
cat "$T/bad_kernels" 2>/dev/null
tap_done
