#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Replaces nvidia-smi in tests of the doctor and the monitor: prints what the real one prints (R535; formats of `nvidia-smi -h`, --help-query-gpu and
# NVIDIA's manual page) for V100s. Copied into a node's own folder of programs; the file "gpus" beside it says how many (2), "set" has lines FIELD VALUE
# (or FIELD.INDEX VALUE) that differ, "old" makes it a driver that does not know newer fields, "broken" one that does not answer.
here=${0%/*}
n=2
[ ! -f "$here/gpus" ] || n=$(cat "$here/gpus")
if [ -f "$here/broken" ]; then
    echo 'Failed to initialize NVML: Driver/library version mismatch'
    exit 18
fi
value() { # FIELD INDEX
    if [ -f "$here/set" ]; then
        v=$(awk -v a="$1" -v b="$1.$2" '$1 == a || $1 == b { $1 = ""; print substr($0, 2); exit }' "$here/set")
        if [ -n "$v" ]; then
            echo "$v"
            return
        fi
    fi
    case $1 in
    index) echo "$2" ;;
    name) echo 'Tesla V100-SXM2-16GB' ;;
    pci.bus_id) echo "00000000:1${2}:00.0" ;;
    memory.total) echo '16160 MiB' ;;
    memory.used) echo '0 MiB' ;;
    driver_version) echo 450.80.02 ;;
    compute_cap) echo 7.0 ;;
    clocks.current.sm | clocks.sm) echo '1530 MHz' ;;
    clocks.max.sm | clocks.applications.graphics) echo '1530 MHz' ;;
    clocks.current.memory | clocks.mem | clocks.max.memory | clocks.applications.memory) echo '877 MHz' ;;
    ecc.mode.current | persistence_mode) echo Enabled ;;
    ecc.errors.*) echo 0 ;;
    power.draw) echo '252.10 W' ;;
    power.limit | power.default_limit | power.max_limit) echo '300.00 W' ;;
    temperature.gpu) echo 56 ;;
    compute_mode) echo Default ;;
    pstate) echo P0 ;;
    utilization.gpu) echo '97 %' ;;
    mig.mode.current) echo '[N/A]' ;;
    pcie.link.gen.*) echo 3 ;;
    pcie.link.width.*) echo 16 ;;
    clocks_throttle_reasons.active) echo 0x0000000000000000 ;;
    *) return 1 ;;
    esac
}
unit() {
    case $1 in
    memory.total | memory.used | used_memory | used_gpu_memory) echo ' [MiB]' ;;
    clocks.*) echo ' [MHz]' ;;
    power.*) echo ' [W]' ;;
    utilization.gpu) echo ' [%]' ;;
    esac
}
known() { # newer fields are not known to an old driver
    case $1 in
    compute_cap | mig.mode.current | clocks_event_reasons.active) [ ! -f "$here/old" ] && [ "$1" != clocks_event_reasons.active ] ;;
    *) value "$1" 0 >/dev/null ;;
    esac
}
head=1 query='' apps=''
for arg; do
    case $arg in
    --query-gpu=*) query=${arg#*=} ;;
    --query-compute-apps=*) apps=1 ;;
    --format=*noheader*) head=0 ;;
    topo) topo=1 ;;
    esac
done
if [ -n "${topo-}" ]; then
    printf '\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV1\t0-19\nGPU1\tNV1\t X \t0-19\n'
elif [ -n "$apps" ]; then
    [ ! -f "$here/apps" ] || cat "$here/apps"
elif [ -n "$query" ]; then
    fields=$(echo "$query" | tr ',' ' ')
    line=
    for f in $fields; do
        known "$f" || {
            echo "Field \"$f\" is not a valid field to query."
            exit 2
        }
        line="$line, $f$(unit "$f")"
    done
    [ $head = 0 ] || echo "${line#, }"
    i=0
    while [ $i -lt "$n" ]; do
        line=
        for f in $fields; do line="$line, $(value "$f" $i)"; done
        echo "${line#, }"
        i=$((i + 1))
    done
else
    printf '%s\n' '+-----------------------------------------------------------------------------+' \
        "| NVIDIA-SMI $(value driver_version 0)    Driver Version: $(value driver_version 0)    CUDA Version: 11.0     |"
fi
