/* SPDX-License-Identifier: Apache-2.0 */
/* The conditions under which a run measures, as found on the machine: environment/NODE.json. Environment variables are taken
   by an allow-list; host names, users and paths outside the program's own are left out. */
#ifndef EVIDENCE_ENVIRONMENT_H
#define EVIDENCE_ENVIRONMENT_H

#include "base/clock.h"
#include "codec/json.h"
#include "evidence/code.h"

struct environment_opts {
    const char *root;           /* of the source tree, for its commit */
    const struct code *command; /* of somebody's own command; or NULL */
    const char *self;           /* reperf */
    const char *train_path;     /* reperf-train, or NULL */
    struct clock_src clock;
};

/* Writes the document into out. */
MUST_CHECK int environment_collect(const struct environment_opts *opts, struct strbuf *out,
                                   struct err *err);

/* What a machine is: a NULL str, or 0, is not known. */
struct environment_machine {
    struct str gpu, cpu, os, driver;
    struct str kernel, architecture, cpu_flags, cpu_mhz, cpu_governor, cpu_max_khz, load;
    int64_t cpu_threads, cpus_online, memory_bytes, gpus;
};
/* The members "conditions" (what others compare: the closed list of condition names) and "machine". */
void environment_put_machine(struct json_out *out, struct arena *arena,
                             const struct environment_machine *machine);

/* GPUs that the NVIDIA driver of this machine shows. */
int64_t environment_gpus(void);

#endif
