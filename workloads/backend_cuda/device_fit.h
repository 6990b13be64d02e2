/* SPDX-License-Identifier: Apache-2.0 */
/* Can this build run on that device? Pure: the facts found go in, one clear message comes out. */
#pragma once

#include "base/err.h"

#define DEVICE_CAPABILITY_MIN 70 /* Volta: the first with tensor cores */

/* Versions as the CUDA runtime counts them: 13020 is 13.2. */
struct device_facts {
    int driver_version;  /* newest CUDA that the driver knows; 0: there is no driver */
    int runtime_version; /* that this build was made with */
    int n_devices;       /* visible */
    int wanted;          /* which of them, from 0 */
    const char *name;    /* of that one */
    int major, minor;    /* its compute capability */
    const char *archs;   /* "75_80_90": what the kernels were compiled for */
};

/* Judges only the driver and the number of devices: the other facts are not known before. */
MUST_CHECK int device_judge_driver(const struct device_facts *facts, struct err *err);
MUST_CHECK int device_judge(const struct device_facts *facts, struct err *err);

/* The driver's version in the text of /proc/driver/nvidia/version, "580.95.05": the first word of digits with a dot between. Empty where
   there is none. */
void device_driver_version(const char *text, char *ret_version, size_t size);

/* Code for 8.0 runs on 8.6, but not on 9.0 and not on 7.5. */
bool device_runs(const char *archs, int major, int minor);
