/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler that runs beside a workload on each node; its log is read by judge/monitor. It is /bin/sh with
   what tools are there, takes a sample every 2 s, less often the longer the job runs, and ends by itself: when the job
   has ended or is gone, or after MONITOR_SAMPLES_MAX. */
#ifndef FLEET_SAMPLER_H
#define FLEET_SAMPLER_H

#include "base/strbuf.h"

#define MONITOR_INTERVAL_S  2
#define MONITOR_DELAY_S     1    /* after the job's start */
#define MONITOR_STRETCH_N   1000 /* samples after which the interval doubles: a day has about 5500 */
#define MONITOR_SAMPLES_MAX 20000

/* For struct remote_job's beside: $1 is the job's folder. In the arena. */
const char *monitor_script(struct arena *arena);

#endif
