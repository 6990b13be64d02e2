/* SPDX-License-Identifier: Apache-2.0 */
/* What a node did while a workload ran on it: the log of node/job_watch.c, read and judged. A taint is a reason to doubt
   a repeat's number; it never changes the number. Pure; everything lives in the arena.

   The log, between "reperf-monitor 1 begin SECONDS" and "reperf-monitor 1 end WHY", a line a reading:
       t UPTIME IDLE BEGAN  a sample begins (/proc/uptime); when the machine began, by its clock
       h HEAD               the head of nvidia-smi's CSV
       g ROW                one GPU, under that head
       p BUS-ID, PID        a process on a GPU
       c cpu ...            /proc/stat
       l ...                load (m and f are earlier versions')
       n IF 8 COUNTERS      rx, then tx: bytes, packets, errors, drops (/proc/net/dev)
       i PORT 4 COUNTERS    symbol_error, link_error_recovery, link_downed, port_rcv_errors of InfiniBand
       ? WHAT WHY           not known here */
#pragma once

#include "base/str.h"

#define MONITOR_TEXT_MAX   (64u << 20)
#define MONITOR_GPUS_MAX   64
#define MONITOR_PORTS_MAX  256
#define MONITOR_TAINTS_MAX (6 * MONITOR_GPUS_MAX + 2 * MONITOR_PORTS_MAX + 2)

/* A GPU counts as busy from this utilisation on. Our choice: below it clocks drop by themselves. */
#define MONITOR_BUSY_PERCENT 50
/* A share of the highest clock, for the median of the busy samples. Our choice: cards with the same power cap differ by a few
   percent. */
#define MONITOR_CLOCK_MIN_PERCENT 90
/* A share of CPU time, which the hypervisor gave to others. Our choice. */
#define MONITOR_STEAL_MAX_PERCENT 2
/* How far the wall clock was set, in one step or several. Our choice: a leap second is none, and slewing does not count. */
#define MONITOR_SET_MAX_S 1.5
/* A share of the packets. Our choice: a healthy switch drops none, a few are unwanted multicast. */
#define MONITOR_DROPS_MAX_PERMILLE 1
#define MONITOR_DROPS_MIN          100

struct taint {
    /* gpu-thermal, gpu-power, gpu-clock, gpu-ecc, gpu-shared, nic-errors, nic-drops, infiniband, cpu-steal or clock-set. */
    const char *id;
    struct str text;
};

struct monitor_gpu {
    int64_t index;
    struct str bus_id;
    size_t n_samples, n_busy;
    double clock_median_mhz;  /* the busy samples'; 0: none, or not known */
    double clock_max_mhz;     /* the card's; 0: not known */
    double temperature_max_c; /* -1: not known */
};

struct monitor_report {
    size_t n_samples;
    bool is_whole; /* its last line is present */
    struct monitor_gpu *gpus;
    size_t n_gpus;
    struct taint *taints;
    size_t n_taints;
};

/* ERR_PARSE for a text that is not such a log. A truncated one is judged as far as it goes (is_whole false). */
MUST_CHECK int monitor_judge(struct arena *arena, struct str text,
                             struct monitor_report *ret_report, struct err *err);
