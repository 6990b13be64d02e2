#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Replaces nvidia-smi in tests of the doctor and the monitor: prints what the real one prints (R535; formats of `nvidia-smi -h`, --help-query-gpu and
# NVIDIA's manual page) for V100s. Copied into a node's own folder of programs; the file "gpus" beside it says how many (2), "set" has lines FIELD VALUE
# (or FIELD.INDEX VALUE) that differ, "old" makes it a driver that does not know newer fields, "broken" one that does not answer.
exec awk -v here="${0%/*}" -v args="$*" '
function there(name, line) { return (getline line <(here "/" name)) >= 0 } # also where the file is empty
function value(field, index_of) { # "" where the field is not known
    if (field in set) return set[field]
    if ((field "." index_of) in set) return set[field "." index_of]
    if (field == "index") return index_of
    if (field == "pci.bus_id") return "00000000:1" index_of ":00.0"
    if (field in fixed) return fixed[field]
    if (field ~ /^ecc\.errors\./) return 0
    if (field ~ /^pcie\.link\.gen\./) return 3
    if (field ~ /^pcie\.link\.width\./) return 16
    return ""
}
function unit(field) {
    return field ~ /^(memory\.total|memory\.used|used_memory|used_gpu_memory)$/ ? " [MiB]" : field ~ /^clocks\./ ? " [MHz]" : field ~ /^power\./ ? " [W]" : field == "utilization.gpu" ? " [%]" : ""
}
function known(field) { # newer fields are not known to an old driver
    if (field == "clocks_event_reasons.active") return 0
    if (field ~ /^(compute_cap|mig\.mode\.current)$/) return !there("old")
    return value(field, 0) != ""
}
function fields(line) { # FIELD=VALUE;...
    n_lines = split(line, lines, ";")
    for (i = 1; i <= n_lines; i++) { at = index(lines[i], "="); fixed[substr(lines[i], 1, at - 1)] = substr(lines[i], at + 1) }
}
BEGIN {
    if (there("broken")) { print "Failed to initialize NVML: Driver/library version mismatch"; exit 18 }
    n = 2
    getline n <(here "/gpus")
    while ((getline line <(here "/set")) > 0) { at = index(line, " "); if (!(substr(line, 1, at - 1) in set)) set[substr(line, 1, at - 1)] = substr(line, at + 1) }
    fields("name=Tesla V100-SXM2-16GB;memory.total=16160 MiB;memory.used=0 MiB;driver_version=450.80.02;compute_cap=7.0;clocks.current.sm=1530 MHz;clocks.sm=1530 MHz")
    fields("clocks.max.sm=1530 MHz;clocks.applications.graphics=1530 MHz;clocks.current.memory=877 MHz;clocks.mem=877 MHz;clocks.max.memory=877 MHz")
    fields("clocks.applications.memory=877 MHz;ecc.mode.current=Enabled;persistence_mode=Enabled;power.draw=252.10 W;power.limit=300.00 W;power.default_limit=300.00 W")
    fields("power.max_limit=300.00 W;temperature.gpu=56;compute_mode=Default;pstate=P0;utilization.gpu=97 %;mig.mode.current=[N/A];clocks_throttle_reasons.active=0x0000000000000000")
    has_head = 1
    n_args = split(args, arg, " ")
    for (i = 1; i <= n_args; i++) {
        if (arg[i] ~ /^--query-gpu=/) query = substr(arg[i], 13)
        if (arg[i] ~ /^--query-compute-apps=/) apps = 1
        if (arg[i] ~ /^--format=.*noheader/) has_head = 0
        if (arg[i] == "topo") topo = 1
    }
    if (topo) {
        print "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV1\t0-19\nGPU1\tNV1\t X \t0-19"
    } else if (apps) {
        while ((getline line <(here "/apps")) > 0) print line
    } else if (query != "") {
        n_fields = split(query, field, ",")
        for (f = 1; f <= n_fields; f++) {
            if (!known(field[f])) { printf "Field \"%s\" is not a valid field to query.\n", field[f]; exit 2 }
            head = head ", " field[f] unit(field[f])
        }
        if (has_head) print substr(head, 3)
        for (gpu = 0; gpu < n; gpu++) {
            line = ""
            for (f = 1; f <= n_fields; f++) line = line ", " value(field[f], gpu)
            print substr(line, 3)
        }
    } else {
        driver = value("driver_version", 0)
        print "+-----------------------------------------------------------------------------+"
        print "| NVIDIA-SMI " driver "    Driver Version: " driver "    CUDA Version: 11.0     |"
    }
}'
