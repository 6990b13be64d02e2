/* SPDX-License-Identifier: Apache-2.0 */
/* What the options of launchers, training programs and their override words mean, however they are spelled: `-np 8`,
   `--nproc_per_node=8`, `-o DATALOADER.TRAIN.sampler.batch_size=32`. The spellings are a table. Pure. */
#pragma once

#include "report/shell_script.h"

enum meaning {
    MEANS_RANKS,          /* processes of the job */
    MEANS_RANKS_PER_NODE, /* processes per node */
    MEANS_NODES,
    MEANS_HOSTS,   /* a list, one item per node: "a:8,b:8" */
    MEANS_DEVICES, /* a list of GPUs by index: "0,1,2" */
    MEANS_DEVICE,  /* one GPU by index: "3", "cuda:3" */
    MEANS_GPUS,    /* a count of GPUs, or a list of them */
    MEANS_NODE_RANK,
    MEANS_NODE_ADDRESS,
    MEANS_BATCH, /* per GPU, node or job: names do not tell */
    MEANS_ITERATIONS,
    MEANS_LOG_INTERVAL,
    MEANS_WORKERS,
    MEANS_SEED,
    MEANS_IMAGES,
    MEANS_HALF,      /* a claim: half or mixed precision */
    MEANS_PRECISION, /* by name */
    MEANS_CONFIG,    /* a configuration file, or its name */
    MEANS_N
};

/* Whether it is a program whose words hold another program's, and whose options these are. */
bool launcher_of(struct str program, unsigned *ret_of);

struct option_found {
    enum meaning means;
    struct str spelled; /* as in the command, without its value */
    struct str value;   /* with $NAME replaced; NULL: a flag alone */
};

/* The next option of the run that the table knows; *at: initially 0. */
bool option_next(struct arena *arena, const struct shell_run *run, size_t *at,
                 struct option_found *ret_option);
/* NAME=VALUE; means: of the option of that name, if it places a job, else MEANS_N. */
bool option_of_set(struct str word, struct option_found *ret_option);
/* Whether the run is a launcher's: what it starts is a run of its own. */
bool option_is_launcher(const struct shell_run *run);
/* Whether the run may train: it is neither a launcher nor a program known for other things. */
bool option_is_training(const struct shell_run *run);
