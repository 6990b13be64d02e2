#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The include order of the rooms (README of orchestrator/): reads the includes and fails on one that points up or sideways, on a room's private
# header outside that room, on lint or draft anywhere but in cmd/guests.h, on a third-party header outside its one home, on a room without a README, on
# two product .c files of one name, and on a test script that names no room.
cd "${LINT_ROOT:-$(dirname "$0")/../..}" || exit 1
# A room of reperf includes itself and the rooms before it; report, log and judge, which compute, and load, which reads files for them, never wait, so they do not include sys.
ORDER=$(sed -n 's/^ROOMS *:= *//p' Makefile)
declare -A may=(
    [prep]="prep report sys codec base data" [node]="node sys codec base"
    [core]="core base" [backend_cpu]="backend_cpu core graph base" [backend_cuda]="backend_cuda core graph base"
    [graph]="graph core base" [models]="models graph core base" [data]="data core base" [dist]="dist core base" [train]="train bench models data dist graph backend_cpu backend_cuda core base"
    [bench]="bench models data dist graph backend_cpu backend_cuda core base"
)
below=
for room in $ORDER; do
    below="$below $room"
    may[$room]=$below
done
for room in report log judge load; do
    may[$room]=${may[$room]/ sys/}
done
declare -A home=(
    [cjson/cJSON.h]="orchestrator/codec/json" [archive.h]="orchestrator/codec/libarchive" [archive_entry.h]="orchestrator/codec/libarchive"
    [zlib.h]="orchestrator/codec/file_header" [openssl/]="orchestrator/codec/@(digest|sign)" [pcre2.h]="orchestrator/codec/pattern" [curl/curl.h]="orchestrator/net/http" [libssh2.h]="orchestrator/net/ssh"
    [jpeglib.h]="orchestrator/prep/jpeg" [spng.h]="orchestrator/prep/png" [hdf5.h]="orchestrator/prep/hdf5"
    [cuda_runtime.h]="workloads/backend_cuda/" [cuda_runtime_api.h]="workloads/backend_cuda/" [cuda_fp16.h]="workloads/backend_cuda/" [mma.h]="workloads/backend_cuda/"
    [cudnn.h]="workloads/backend_cuda/" [cudnn_graph.h]="workloads/backend_cuda/" [cublasLt.h]="workloads/backend_cuda/" [nccl.h]="workloads/dist/nccl_api"
    [cudnn_graph.h]="workloads/backend_cuda/dnn" [cudnn_ops.h]="workloads/backend_cuda/dnn" [cudnn_cnn.h]="workloads/backend_cuda/dnn" [cudnn.h]="workloads/backend_cuda/dnn"
    [cublasLt.h]="workloads/backend_cuda/lt"
    [zstd.h]="orchestrator/codec/tarball" [dnnl.h]="workloads/backend_cpu/onednn" [oneapi/dnnl/dnnl.h]="workloads/backend_cpu/onednn"
)
bad=0
check_ours() { # FILE ROOM INCLUDED
    local file=$1 room=$2 inc=$3 target=${3%%/*}
    # Of the workloads, data preparation sees the packed format alone.
    [ "$room" = prep ] && [ "$target" = data ] && [ "$inc" != data/shard.h ] && target=none
    # The statically linked program sees only what needs no third-party library.
    if [ "$room" = node ] && [ "$target" != node ] && [ "$target" != base ]; then
        case $inc in codec/node_wire.h | codec/digest.h | codec/relay.h | sys/tree.h | sys/digest_cache.h | sys/pool.h | sys/relay_net.h) ;; *) target=none ;; esac
    fi
    case $inc in
    */*_impl.h | */*_parts.h | */*_decode.h)
        if [ "$target" != "$room" ]; then
            echo "# $file: \"$inc\" is private to $target"
            bad=$((bad + 1))
        fi
        ;;
    esac
    # Guests: the program can be linked without them.
    case $file:$target in orchestrator/cmd/guests.h:*) ;; orchestrator/cmd/*:lint | orchestrator/cmd/*:draft) target=guest ;; esac
    case " ${may[$room]-} " in
    *" $target "*) ;;
    *)
        echo "# $file: room $room may not include \"$inc\""
        bad=$((bad + 1))
        ;;
    esac
}
check_others() { # FILE INCLUDED
    local file=$1 inc=$2 at
    at=${home[$inc]-${home[${inc%%/*}/]-}}
    if [ -n "$at" ] && [[ "$file" != $at* ]]; then
        echo "# $file: <$inc> belongs to $at.c"
        bad=$((bad + 1))
    fi
}
shopt -s nullglob
files=(orchestrator/*/*.[ch] workloads/*/*.[ch] workloads/*/*.cu workloads/*/*.cuh)
n=0
for file in "${files[@]}"; do
    room=${file#*/}
    room=${room%%/*}
    if [ -z "${may[$room]-}" ]; then
        echo "# $file: $room is not a room"
        bad=$((bad + 1))
        continue
    fi
    n=$((n + 1))
done
while IFS= read -r line; do # FILE:"INCLUDED or FILE:<INCLUDED
    file=${line%%:*}
    room=${file#*/}
    room=${room%%/*}
    [ -n "${may[$room]-}" ] || continue
    case ${line#*:} in
    \"*) check_ours "$file" "$room" "${line#*:\"}" ;;
    *) check_others "$file" "${line#*:<}" ;;
    esac
done < <(grep -oE '^[[:blank:]]*#[[:blank:]]*include[[:blank:]]*("[^"]*|<[^>]*)' /dev/null "${files[@]}" | sed -E 's/:[^"<]*/:/')
while IFS= read -r name; do
    echo "# two product files are called $name"
    bad=$((bad + 1))
done < <(find orchestrator workloads -name '*.c' -printf '%f\n' | sort | uniq -d)
for folder in orchestrator/*/; do
    [ -n "$(find "$folder" -maxdepth 1 -name '*.[ch]' -print -quit)" ] || continue
    if [ ! -s "$folder/README.md" ]; then
        echo "# $folder has no README.md"
        bad=$((bad + 1))
    fi
done
# `make check ROOM=...` runs the scripts that name the room.
for script in tests/integration/test_*.sh tests/e2e/test_*.sh tests/cluster/test_*.sh; do
    room=$(sed -n '3s/^# Room: //p' "$script")
    [ -n "${may[${room:-none}]-}" ] || [ "$room" = workloads ] || {
        echo "# $script: the third line names no room (# Room: NAME)"
        bad=$((bad + 1))
    }
done
echo "# $n files read"
echo "1..1"
if [ "$n" -gt 0 ] && [ "$bad" -eq 0 ]; then
    echo "ok 1 - layers"
else
    echo "not ok 1 - layers"
    exit 1
fi
