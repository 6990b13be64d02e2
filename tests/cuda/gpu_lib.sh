# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What `make first-gpu`, `make test-gpu` and `make bench-gpu` have in common: finding GPU, toolkit and libraries, building, a clock.
# Sourced by a script that has set WHAT (its name in messages) and is in the root of the repository.
NO_GPU=2 # exit status: this machine cannot do what was asked

give_up() { # TEXT
    echo "$WHAT: $1" >&2
    exit "$NO_GPU"
}

# Folders of Python's packages that hold NVIDIA's libraries and headers (site-packages/nvidia/*), one a line.
python_nvidia() {
    local python=${PYTHON:-python3} folder
    command -v "$python" >/dev/null 2>&1 || return 0
    "$python" -c 'import site, sys
for folder in dict.fromkeys(sys.path + site.getsitepackages() + [site.getusersitepackages()]):
    print(folder)' 2>/dev/null | while IFS= read -r folder; do
        [ -n "$folder" ] && [ -d "$folder/nvidia" ] && printf '%s\n' "$folder"/nvidia/*/
    done
}

# Sets SMI, GPU_NAME, GPU_CAPABILITY (90), GPU_DRIVER.
find_gpu() {
    local candidate line
    SMI=
    for candidate in nvidia-smi /usr/local/nvidia/bin/nvidia-smi /usr/lib/wsl/lib/nvidia-smi; do
        command -v "$candidate" >/dev/null 2>&1 && SMI=$candidate && break
    done
    [ -n "$SMI" ] || give_up "no GPU: there is no nvidia-smi, so no driver"
    line=$(timeout 30 "$SMI" --query-gpu=compute_cap,driver_version,name --format=csv,noheader 2>&1 | head -n 1)
    IFS=, read -r GPU_CAPABILITY GPU_DRIVER GPU_NAME <<<"$line"
    GPU_CAPABILITY=${GPU_CAPABILITY//[. ]/} GPU_DRIVER=${GPU_DRIVER# } GPU_NAME=${GPU_NAME# }
    [[ "$GPU_CAPABILITY" =~ ^[0-9]{2,3}$ ]] || give_up "no GPU: $SMI says: $line"
    case "$SMI" in */*) PATH=$PATH:${SMI%/*} ;; esac # reperf-bench asks it for clocks
}

# Sets CUDA_HOME, NVCC_VERSION. One that is named is the one that is used.
find_cuda() {
    local candidates=() folder
    if [ -n "${CUDA_HOME:-}" ]; then
        candidates=("$CUDA_HOME")
    else
        command -v nvcc >/dev/null 2>&1 && candidates+=("$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")")
        candidates+=(/usr/local/cuda /opt/cuda)
        while IFS= read -r folder; do candidates+=("${folder%/}"); done < <(python_nvidia)
    fi
    for folder in "${candidates[@]}"; do
        if [ -x "$folder/bin/nvcc" ] && [ -e "$folder/include/cuda_runtime_api.h" ]; then
            export CUDA_HOME=$folder
            NVCC_VERSION=$("$CUDA_HOME/bin/nvcc" --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
            return
        fi
    done
    give_up "no nvcc: looked in ${candidates[*]} (CUDA_HOME=... names it)"
}

# NAME: the folder that holds this library, or nothing; the loader's own places first.
folder_of() {
    local folder
    folder=$(ldconfig -p 2>/dev/null | sed -n "s#.*=> \(.*\)/$1\$#\1#p" | head -n 1)
    [ -n "$folder" ] && echo "$folder" && return
    while IFS= read -r folder; do
        [ -e "$folder/$1" ] && echo "${folder%/}" && return
    done < <(
        tr ':' '\n' <<<"${LD_LIBRARY_PATH:-}"
        printf '%s\n' "$CUDA_HOME/lib64" "$CUDA_HOME/lib" "$CUDA_HOME"/targets/*/lib /usr/local/nvidia/lib64
        python_nvidia | sed 's#$#lib#'
    )
}

# NAME: the folder that holds this header, or nothing.
include_of() {
    local folder
    while IFS= read -r folder; do
        [ -e "$folder/$1" ] && echo "$folder" && return
    done < <(
        printf '%s\n' "$CUDA_HOME/include" /usr/include /usr/include/x86_64-linux-gnu /usr/local/include
        python_nvidia | sed 's#$#include#'
    )
}

# Sets CUDNN_INC, CUBLAS_INC and NCCL_INC for make, and LD_LIBRARY_PATH, so that what the backend opens at run time is found.
find_libraries() {
    local name folder major where="next to CUDA, in the system's folders, in Python's packages"
    CUDNN_INC=$(include_of cudnn_graph.h) CUBLAS_INC=$(include_of cublasLt.h) NCCL_INC=$(include_of nccl.h)
    [ -n "$CUDNN_INC" ] || give_up "no cuDNN: cudnn_graph.h is nowhere ($where)"
    [ -n "$CUBLAS_INC" ] || give_up "no cuBLASLt: cublasLt.h is nowhere ($where)"
    major=$(sed -n 's/^.define CUDNN_MAJOR  *\([0-9]*\).*/\1/p' "$CUDNN_INC"/cudnn_version*.h | head -n 1)
    for name in libcuda.so.1 "libcudnn.so.${major:-9}" "libcublasLt.so.${NVCC_VERSION%%.*}" libnccl.so.2; do
        folder=$(folder_of "$name")
        echo "  $name: ${folder:-not found}"
        if [ -n "$folder" ]; then
            case ":${LD_LIBRARY_PATH:-}:" in
            *":$folder:"*) ;;
            *) LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder" ;;
            esac
        elif [ "$name" != libnccl.so.2 ]; then
            give_up "$name is not found (in the loader's places, next to CUDA, in Python's packages)"
        fi
    done
    export LD_LIBRARY_PATH CUDNN_INC CUBLAS_INC NCCL_INC
}

# The clock for limits: date's, as timeout's are, so that a rehearsal can advance both.
export CLOCK_BEGIN_MS=${CLOCK_BEGIN_MS:-$(date +%s%3N)}
elapsed() { echo $((($(date +%s%3N) - CLOCK_BEGIN_MS) / 1000)); }

# Seconds of the whole that are left, at most MOST.
left() { # MOST
    local rest=$((LIMIT_S - $(elapsed)))
    [ "$rest" -lt "$1" ] && echo "$rest" || echo "$1"
}

# TARGET...: by nvcc for this GPU alone, as many at a time as there are processors.
build() {
    make -s -j"$(nproc)" MODE=release WERROR= CUDA_HOME="$CUDA_HOME" CUDNN_INC="$CUDNN_INC" CUBLAS_INC="$CUBLAS_INC" NCCL_INC="$NCCL_INC" CUDA_ARCHS="$GPU_CAPABILITY" "$@"
}

find_all() {
    find_gpu
    find_cuda
    echo "$WHAT: $GPU_NAME, compute capability $GPU_CAPABILITY, driver $GPU_DRIVER; nvcc $NVCC_VERSION in $CUDA_HOME"
    find_libraries
    "$CUDA_HOME/bin/nvcc" --list-gpu-arch | grep -qx "compute_$GPU_CAPABILITY" ||
        give_up "nvcc $NVCC_VERSION makes no code for compute capability $GPU_CAPABILITY, which $GPU_NAME has (7.0 needs CUDA 12)"
    export GPU_NAME GPU_CAPABILITY GPU_DRIVER NVCC_VERSION
}
