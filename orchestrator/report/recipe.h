/* SPDX-License-Identifier: Apache-2.0 */
/* How the cases of a stack are carried out under a profile (manifests/reports/README.md): decoded with their report, and living
   as long. A struct str with ptr NULL is a null. */
#pragma once

#include "report/extras.h"
#include "report/vocabulary.h"

#define RECIPES_MAX       8 /* a profile */
#define RECIPE_MOUNTS_MAX 16

/* Name from the closed list in manifests/vocabulary.json; value as text, NULL if not stated. */
struct condition {
    struct str name;
    struct str value;
};

/* Empty where there is none of that name. */
static inline struct str condition_value(const struct condition *items, size_t n, struct str name)
{
    const struct condition *found = STR_NAMED(items, n, name, name);
    return found ? found->value : STR_EMPTY;
}

struct conditions {
    struct condition *items; /* sorted by name */
    size_t n;
};

struct command {
    struct str purpose;  /* "pull", "build", "container", "code", "data", "install", "run", "log" */
    int64_t nodes, gpus; /* of the cases it is for; GPUs on all nodes together; 0: all */
    int64_t batch;       /* per GPU, likewise */
    struct str precision; /* or NULL: all */
    struct str per; /* "node" (run on each), "rank" (for "run": one process each), "head" (once) */
    struct str printed; /* as the report prints it; NULL if it prints none */
    struct str works;   /* as it must be to work; NULL if the printed one works */
};

enum recipe_mount_kind { MOUNT_OVERLAY, MOUNT_SOURCE, MOUNT_DATASET };

/* A folder that its container sees, read-only. */
struct recipe_mount {
    enum recipe_mount_kind kind;
    /* A folder of ours, below workloads/competitors or overlays/ of one's own manifests; a repository of the stack's sources;
       a dataset. */
    struct str name;
    struct str commit; /* of a source, any repository's; NULL: the one that the stack pins */
    struct str paths;  /* of a source: the part that is mounted, as in report/source.h; NULL: all */
    bool is_synthetic; /* of a dataset: the synthetic one */
    bool is_original;  /* of a dataset: of a rehearsal, too, such as pretrained weights */
    struct str inside; /* absolute path there */
};

/* If it has no commands, the stack's own apply. */
struct recipe {
    struct str title;        /* one line for people: what runs */
    struct str why_not;      /* one line: why nothing can; else NULL */
    struct str else_why_not; /* one line: why not the cases that no command of it is for; or NULL */
    struct str image; /* folder under images/; NULL: on the node itself, which has runtime none */
    /* "docker run ..." whose flags apply; NULL: under full the report's own, under smoke the host's network. */
    struct str container;
    struct str rule; /* of smoke: FORMAT/NAME that reads its log instead of the case's; or NULL */
    struct extras beside; /* its target: of smoke */
    struct str before;    /* shell lines that run in the container first, once per node; or NULL */
    struct recipe_mount *mounts;
    size_t n_mounts;
    struct condition *env; /* after the stack's own; value NULL: without the stack's of that name */
    size_t n_env;
    struct conditions conditions; /* how it differs from the case; also device and precision */
    struct command *commands;     /* all "run"; at most one per case */
    size_t n_commands;
};

/* For one profile, in order of preference: the first that has everything it needs is used. */
struct recipes {
    struct recipe *items;
    size_t n;
};

extern const char *const RECIPE_MOUNT_KIND_NAMES[MOUNT_DATASET + 2]; /* ended by NULL */
