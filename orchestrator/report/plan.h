/* SPDX-License-Identifier: Apache-2.0 */
/* What a run will do, decided in advance: one step for each case, with its argv as data, what it needs, and, if the step
   cannot be run here, why. Frozen as manifest/plan.json of the run; a resumed run follows the frozen plan. Everything lives
   in the arena it was made or decoded into. */
#pragma once

#include "codec/json_override.h"
#include "codec/json_table.h"
#include "report/container.h"
#include "report/inventory.h"
#include "report/plan_needs.h"
#include "report/report.h"

#define PLAN_STEPS_MAX      CASES_MAX
#define PLAN_ARGV_MAX       256
#define PLAN_ENV_MAX        192                        /* a stack's, a recipe's, a site's */
#define PLAN_CONDITIONS_MAX (CONDITION_NAMES_MAX + 64) /* a report's, and what a plan adds */
#define PLAN_PINS_MAX       1024
#define PLAN_NEEDS_MAX      256
#define STEP_NEEDS_MAX      (RECIPE_MOUNTS_MAX + 16)
#define PLAN_GLOBS_MAX      64
#define PLAN_OVERRIDES_MAX  64
#define REPEATS_RUN_MAX     1000
#define DEADLINE_S_MAX      2592000 /* 30 days */
/* A command that names this variable runs as many training steps as it says. */
#define PLAN_STEPS_ENV       "REPERF_STEPS"
#define PLAN_STEPS_AS_LOGGED "as-logged"

enum profile { PROFILE_FULL, PROFILE_SMOKE };

/* Of a source of which only some paths are mounted. */
struct plan_part {
    /* The git tree of only these files; NULL: the whole commit, or it was not here when this was planned. */
    struct str tree;
    int64_t n_files, n_left_out;
};

/* A folder that the step's container sees, read-only. */
struct plan_mount {
    enum recipe_mount_kind kind;
    struct str name; /* as in struct recipe_mount; of a synthetic dataset: ID.synthetic */
    /* A source's pin (report/source.h), else hex: SHA-256 of the files' list; NULL: not here. */
    struct str version;
    struct str folder; /* here; NULL for a source: it is checked out when needed */
    struct str inside; /* absolute */
    struct plan_part part;
    const struct plan_need *stored; /* what the store has of it; not kept */
};

struct format;
struct rule;
struct step_bound { /* what its names stand for (judge/bind.h); NULL: nothing */
    const struct report_case *of_case, *baseline;
    const struct format *format;
    const struct rule *rule;
    const struct rule **also; /* one for each of beside.also */
    const char *key, *why;    /* what its format lacks, "also[1]", and in words; NULL: nothing */
};

struct plan_step {
    struct str case_id;
    struct str baseline; /* case whose published throughput it is checked against, or NULL */
    struct str format;
    struct str rule;
    struct extras beside;
    struct str node;     /* where: "local", or the nodes of the inventory, folded */
    enum err_code cause; /* ERR_NONE: it will be run; else not_run, with the status of this code */
    struct str why;      /* if there is a cause; else NULL */
    struct step_need *needs; /* the first is cause and why; decoded: what, cause and command */
    size_t n_needs;
    struct str recipe; /* its title, or NULL: as in the report */
    bool is_per_node;  /* argv starts all ranks of its node itself; else it is one rank */
    struct plan_mount *mounts;
    size_t n_mounts;
    /* argv[0]: "reperf-train" is the program next to reperf, else a path or a name in PATH. */
    struct str *argv;
    size_t n_argv;
    struct condition *env; /* added to what a child inherits */
    size_t n_env;
    /* Those under which it will be measured; value NULL: there is none (no GPU). */
    struct condition *conditions;
    size_t n_conditions;
    int64_t n_ranks;
    int64_t n_nodes;         /* over which it is spread evenly; 0 in old plans, meaning 1 */
    int64_t gpus_per_node;   /* that each of them must have; 0: none is needed */
    struct str image;        /* id; NULL: runtime none */
    struct str image_name;   /* repository, as an engine names it */
    struct str image_digest; /* "sha256:...", of its manifest */
    struct str image_id;     /* "sha256:...", of its config, or NULL: not known yet */
    struct str image_cuda;   /* as its description or the report states it, or NULL; not kept */
    struct container_flags flags;
    int64_t n_steps;      /* training steps; 0: not known */
    int64_t estimate_s;   /* of one repeat, by the published rate; 0: not known */
    int64_t deadline_s;   /* of one repeat; 0: the plan's */
    int64_t memory_bytes; /* of the program, estimated; 0: not known */
    int64_t log_bytes;    /* of one repeat, estimated; 0: not known */
    struct step_bound bound;
};

struct
    plan_data { /* of `--data`: packed shards that the bundled workload reads; folder NULL: none */
    struct str dataset; /* id */
    bool is_synthetic;  /* the synthetic dataset */
    struct str split;
    struct str folder;
    struct str pack_sha256;   /* hex, of pack.json, which names every shard's digest */
    struct str source_sha256; /* hex, of the list of the tree it was packed from */
    int64_t n_samples;
};

/* `also_why_not` of a step that is not evaluated because of `--data`. */
#define PLAN_DATA_WHY_NOT                                                                          \
    "not evaluated: with --data the workload gets the training split alone, and no data that it "  \
    "does not train on"

struct plan {
    struct str report, address; /* id; the pin of a report from elsewhere, or NULL */
    struct str report_sha256;   /* hex, of the frozen file */
    enum profile profile;
    bool is_rehearsal; /* full, on synthetic data: nothing in it is checked against a number */
    int64_t repeats, repeats_max; /* repeats_max: with within, until it holds; 0: no more */
    double within, tolerance;     /* parts of a mean, of the published number; 0: not asked */
    bool is_each_node;            /* its cases are the report's on each node (report/each_node.h) */
    bool takes_turns;             /* the frameworks of a row take turns, one at a time: A B, A B */
    int64_t deadline_s;           /* of one repeat, where its step has none of its own */
    struct str
        asked_steps;      /* --steps: PLAN_STEPS_AS_LOGGED or a number; NULL: as the report says */
    struct str inventory; /* "local", else the id of manifest/inventory.json */
    enum runtime_kind runtime;
    enum launcher_kind launcher;
    struct str *globs; /* as asked; empty: all cases */
    size_t n_globs;
    struct plan_step *steps;
    size_t n_steps;
    struct missing_pin *pins;
    size_t n_pins;
    struct plan_data data;
    struct plan_need *needs;
    size_t n_needs;
    struct json_override *overrides; /* -C: where the frozen report.json differs from its file */
    size_t n_overrides;
};

/* How a verdict names the data: "cityscapes", "synthetic twin of cityscapes". */
char *plan_data_name(struct arena *arena, const struct plan_data *data);

/* A condition of the step, in place of another of that name. */
void plan_set_condition(struct plan_step *step, const char *name, struct str value);
/* 0: the condition is absent or no number. */
int64_t plan_condition_number(const struct plan_step *step, const char *name);
/* A case's conditions as the report's data has them for it, over what it has for the stack. Names are of a closed list. */
void plan_case_conditions(struct arena *arena, const struct report_case *c, struct plan_step *step);
/* What a recipe adds, then the site; of the plan its profile and whether it is a rehearsal. */
void plan_recipe_conditions(struct arena *arena, const struct plan *plan,
                            const struct inventory *inventory, const struct recipe *recipe,
                            struct plan_step *step);
/* The member "data" of a document about a plan: an object, or null if there is none. */
extern const struct json_field PLAN_DATA_ROWS[1];
extern const char *const PROFILE_NAMES[2];
/* For people: "rehearsal" of one, which is not to be taken for a run of its profile. */
const char *plan_kind_name(enum profile profile, bool is_rehearsal);
/* NULL: it was not given, and the profile stays. */
MUST_CHECK int profile_of_option(const char *given, enum profile *ret_profile, struct err *err);
/* A smoke run or a rehearsal: it shows that the way works, and its numbers are held against none. */
bool plan_claims_none(const struct plan *plan);

/* The document of `reperf plan --json` and of manifest/plan.json. */
void plan_encode(const struct plan *plan, struct strbuf *out);
#define PLAN_N 24
extern const struct json_field PLAN_ROWS[PLAN_N];
extern const struct json_document PLAN_DOCUMENT;
MUST_CHECK int plan_decode(const struct json *root, struct arena *arena, struct plan *ret_plan,
                           struct err *err);

/* Bytes of disk that the whole plan will need: all repeats' logs twice (where the job runs, and collected), and slack. */
int64_t plan_disk_bytes(const struct plan *plan);
size_t plan_runnable(const struct plan *plan);      /* steps that will be run */
int64_t plan_most_repeats(const struct plan *plan); /* of a case */
#define SMOKE_RANKS_MAX 4                           /* of a case under the smoke profile */
int64_t plan_smoke_ranks(const struct report_case *c);
int64_t plan_full_ranks(const struct report_case *c); /* one a GPU; without GPUs one a node */
int64_t plan_step_nodes(const struct plan_step *step);
/* Its environment and argv for a shell, each word behind a blank. */
void plan_step_command(const struct plan_step *step, struct strbuf *out);
int64_t plan_step_deadline_s(const struct plan *plan, const struct plan_step *step);
/* What --steps asks of a case; 0: nothing, as its published log does not say. */
int64_t plan_asked_steps(struct str asked, const struct report_case *c);
/* PLAN_STEPS_ENV as the step's command gets it; NULL: it does not. */
struct str plan_step_steps(const struct plan_step *step);
/* Whether a node has what each node of the step needs, and is one of those that its case is fixed to. */
bool plan_step_fits(const struct plan_step *step, const struct inventory_node *node);

/* fnmatch without FNM_PATHNAME: `*` crosses `/`. True if globs is empty. */
bool plan_selects(const struct str *globs, size_t n_globs, struct str case_id);
/* The first that selects none of the ids; ptr NULL: each selects one. */
struct str plan_idle_glob(const struct str *globs, size_t n_globs, const struct str *ids,
                          size_t n_ids);
/* A case id becomes folders: only letters, digits and ._+-, no part that is empty, "." or "..". */
bool plan_case_id_is_safe(struct str case_id);
