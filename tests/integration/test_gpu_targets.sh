#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: workloads
# workloads/ builds alone, with a C compiler, make and (where it is) nvcc, from a folder that holds nothing else of the project; and
# `make first-gpu`, `test-gpu` and `bench-gpu` end with status 2 and the cause where there is no GPU or no nvcc.
. "$(dirname "$0")/../tap_lib.sh"
alone="$T/alone"
mkdir -p "$alone/orchestrator" "$alone/tests"
cp -a Makefile workloads "$alone/"
cp -a orchestrator/base "$alone/orchestrator/"
cp -a tests/cuda tests/bench tests/tap.sh tests/tap_lib.sh "$alone/tests/"

# The programs of a machine with a GPU, and nothing of ours: no clang, no pkg-config, no python unless linked here.
mkdir "$T/bin"
for program in gcc g++ cc cc1 as ld ar make bash sh sed grep awk tr cat head tail cksum cut sort find mkdir mktemp rm cp mv ln touch printf echo dirname \
    basename realpath readlink nproc timeout tee uname date ldconfig env chmod cmp nm wc ls expr git; do
    path=$(command -v "$program") && ln -s "$path" "$T/bin/$program"
done
# Through the compiler's cache, which checks every file that a compilation reads, so a missing one is still noticed.
kept=() seen=$T/bin
if command -v ccache >/dev/null; then
    kept=(CCACHE="$(command -v ccache)") CCACHE_DIR=$(ccache -k cache_dir)
    export CCACHE_DIR
fi
hidden() { env -i HOME="$T" PATH="$seen" TMPDIR="$T" ${CCACHE_DIR:+CCACHE_DIR="$CCACHE_DIR"} "$@"; }
# The distribution's libraries that workloads/ must do without are not found: their headers are in another folder.
makes() { hidden make -s -C "$alone" -j2 MODE=debug OPT.debug=-O0 WL_OPT=-O0 HAVE_DNNL= "${kept[@]}" "$@"; }

# ---- alone ----
exits 0 "workloads/ builds alone, without CUDA" makes CUDA_HOME=/none build/debug/reperf-train build/debug/reperf-bench
sed 's/^/# /' "$T/err" | head -n 10
prints 0 '"event":"run_stop"' "and its program trains" "$alone/build/debug/reperf-train" --model bert_nano --batch 1 --sequence 8 --predictions 2 --steps 1
needed=$(ldd "$alone/build/debug/reperf-train" | awk '{ print $1 }' | grep -vE '^(linux-vdso|libc\.|libm\.|libgomp|libdl|libpthread|librt|libgcc_s|libstdc\+\+|/lib)' | tr '\n' ' ')
is "$needed" "" "which needs the C library, libm and OpenMP"
exits 2 "without CUDA --device cuda is refused" "$alone/build/debug/reperf-train" --model bert_nano --device cuda --steps 1
cuda_home=${CUDA_HOME:-/usr/local/cuda}
if ! in_test_all "what test-gpu runs built alone, with nvcc"; then
    :
elif [ -x "$cuda_home/bin/nvcc" ]; then
    # The kernels come from this tree if they are built already: the C code is built again, and linked with them.
    # shellcheck disable=SC2046
    make -s $(printf 'build/cuda/%s.o ' workloads/backend_cuda/*.cu tests/cuda/*.cu) >"$T/make" 2>&1
    archs=$(grep -o 'code=sm_[0-9]*' build/cuda/flags | sed 's/.*_//' | tr '\n' ' ')
    mkdir -p "$alone/build"
    cp -a build/cuda "$alone/build/"
    prints 0 "CC debug workloads/backend_cuda/cuda.c" "with nvcc: what test-gpu runs is built and linked" makes CUDA_HOME="$cuda_home" CUDA_ARCHS="${archs% }" gpu-programs
    is "$(grep -c NVCC "$T/out")" 0 "from the kernels of this tree"
else
    skip "with nvcc: what test-gpu runs is built and linked" "no nvcc in $cuda_home"
fi

# ---- a toolkit of only nvcc and cudart, everything else in Python's packages ----
if [ -x "$cuda_home/bin/nvcc" ]; then
    bare="$T/bare" packages="$T/python/lib/python3.11/site-packages/nvidia"
    mkdir -p "$bare/include" "$T/python/bin" "$packages"/{cudnn,cublas,nccl}/include
    ln -s "$cuda_home"/{bin,lib64} "$bare/"
    for header in "$cuda_home"/include/*; do
        case ${header##*/} in
        cudnn*) ln -s "$header" "$packages/cudnn/include/" ;;
        cublas*) ln -s "$header" "$packages/cublas/include/" ;;
        nccl*) ln -s "$header" "$packages/nccl/include/" ;;
        *) ln -s "$header" "$bare/include/" ;;
        esac
    done
    printf '#!/bin/sh\nexit 1\n' >"$T/python/bin/python3"
    chmod +x "$T/python/bin/python3"
    if [ -e "$packages/nccl/include/nccl.h" ] && [ -e "$packages/cudnn/include/cudnn_graph.h" ]; then
        in_packages() { makes CUDA_HOME="$bare" SYSTEM_INC=/nowhere "$@"; }
        seen=$T/python/bin:$T/bin
        rm -f "$alone"/build/debug/workloads/backend_cuda/lt_api.c.o "$alone"/build/debug/workloads/backend_cuda/dnn_api.c.o
        exits 0 "headers of cuDNN, cuBLASLt and NCCL are found in Python's packages" in_packages build/debug/workloads/backend_cuda/{lt_api,dnn_api}.c.o build/debug/workloads/dist/nccl_api.c.o
        sed 's/^/# /' "$T/err" | head -n 10
        rm -r "$packages/cublas"
        in_packages doctor >"$T/out" 2>&1
        like "$(cat "$T/out")" 'CUDA +not built: there is no cublasLt.h' "one that is nowhere is named"
        seen=$T/bin
    else
        skip "headers of cuDNN, cuBLASLt and NCCL are found in Python's packages" "they are not all in $cuda_home/include here"
    fi
fi

# ---- no GPU, no nvcc ----
targets() { hidden make -s -C "$alone" "$@" RESULTS="$T/results"; }
declare -A script=([first-gpu]=tests/cuda/first_call.sh [test-gpu]=tests/cuda/gpu.sh [bench-gpu]=tests/bench/gpu.sh)
for target in first-gpu test-gpu bench-gpu; do
    hidden bash -c "cd '$alone' && RESULTS='$T/results' ${script[$target]}" >"$T/out" 2>&1
    is $? 2 "$target without a GPU: status 2"
    like "$(cat "$T/out")" "^$target: no GPU: there is no nvidia-smi" "and says so"
    targets "$target" >"$T/out" 2>&1
    is $? 2 "make $target: the same"
    # A driver whose GPU is gone; then a GPU without a toolkit, one that nvcc does not know, and one without cuDNN's library.
    printf '#!/bin/sh\necho "NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver."; exit 9\n' >"$T/bin/nvidia-smi"
    chmod +x "$T/bin/nvidia-smi"
    targets "$target" >"$T/out" 2>&1
    is $? 2 "$target with a driver that sees nothing"
    like "$(cat "$T/out")" "no GPU: nvidia-smi says: NVIDIA-SMI has failed" "and says so"
    printf '#!/bin/sh\necho "9.0, 580.00.00, NVIDIA made up"\n' >"$T/bin/nvidia-smi"
    targets "$target" CUDA_HOME=/none >"$T/out" 2>&1
    is $? 2 "$target without nvcc"
    like "$(cat "$T/out")" "^$target: no nvcc: looked in /none" "and says where it looked"
    if [ -x "$cuda_home/bin/nvcc" ]; then
        targets "$target" CUDA_HOME="$cuda_home" >"$T/out" 2>&1
        is $? 2 "$target without the libraries it needs"
        like "$(cat "$T/out")" "^$target: (libcuda.so.1|libcudnn.so.9|libcublasLt.so.[0-9]+) is not found|no cuDNN" "and names one"
        # With fakes of them, for a GPU that nvcc has no code for.
        mkdir -p "$T/lib"
        touch "$T/lib/libcuda.so.1" "$T/lib/libcudnn.so.9" "$T/lib/libcublasLt.so.13" "$T/lib/libcublasLt.so.12"
        printf '#!/bin/sh\necho "3.5, 470.00, NVIDIA very old"\n' >"$T/bin/nvidia-smi"
        hidden env LD_LIBRARY_PATH="$T/lib" make -s -C "$alone" "$target" CUDA_HOME="$cuda_home" RESULTS="$T/results" >"$T/out" 2>&1
        is $? 2 "$target on a GPU that nvcc makes no code for"
        like "$(cat "$T/out")" "makes no code for compute capability 35" "and says which"
    fi
    is "$(grep -c passed "$T/out")" 0 "$target: nothing is said to have passed"
    rm -f "$T/bin/nvidia-smi"
done
tap_done
