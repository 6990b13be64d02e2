/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by `run`, `plan` and `resume`: their options, and printing the end of a run. */
#ifndef CMD_RUN_ARGS_H
#define CMD_RUN_ARGS_H

#include "cmd/net_args.h"
#include "judge/audit.h"
#include "run/run.h"

struct run_args {
    struct net_args net; /* first: NET_ARGS_OPTS of run */
    struct opt_list cases;
    struct opt_list images;
    struct opt_list overrides;
    const char *profile;
    const char *nodes;
    const char *key;
    const char *run_id;
    const char *name;
    const char *data;
    const char *gate, *limits;
    const char *steps;
    const char *format; /* of `run -- COMMAND` */
    const char *trust;  /* a commit; NULL: none */
    int64_t repeats, repeats_max;
    double within, tolerance; /* 0: not asked */
    bool is_rehearsal;
    bool is_each_node;
    bool takes_turns, is_packed;
    int64_t deadline_s;
    bool is_dry_run;
    bool want_json;
    bool is_verbose, is_checklist;
};

static inline void run_args_cleanup(struct run_args *args)
{
    net_args_cleanup(&args->net);
    opt_list_cleanup(&args->cases);
    opt_list_cleanup(&args->images);
    opt_list_cleanup(&args->overrides);
}

/* Rows of the option tables. */
#define RUN_OPT_CASE                                                                               \
    {                                                                                              \
        .name = "case", .kind = OPT_LIST, .value = "GLOB",                                         \
        .help = "only cases that match; may be repeated; * also matches /",                        \
        .offset = offsetof(struct run_args, cases)                                                 \
    }
#define RUN_OPT_PROFILE                                                                            \
    {                                                                                              \
        .name = "profile", .kind = OPT_TEXT, .value = "full|smoke",                                \
        .help = "full (as the report says; default) or smoke (small, on the CPU)",                 \
        .offset = offsetof(struct run_args, profile)                                               \
    }
#define RUN_OPT_REHEARSE                                                                           \
    {                                                                                              \
        .name = "rehearse", .kind = OPT_FLAG,                                                      \
        .help = "the full profile on synthetic data: no number is claimed",                        \
        .offset = offsetof(struct run_args, is_rehearsal)                                          \
    }
#define RUN_OPT_NODES                                                                              \
    {                                                                                              \
        .name = "nodes", .kind = OPT_TEXT, .value = "INVENTORY",                                   \
        .help = "where: an inventory, INVENTORY:NODESET, host1,host2, slurm (default: local)",     \
        .offset = offsetof(struct run_args, nodes)                                                 \
    }
#define RUN_OPT_EACH_NODE                                                                          \
    {                                                                                              \
        .name = "each-node", .kind = OPT_FLAG,                                                     \
        .help = "each case on every node, or every pair of neighbours, and compare the nodes",     \
        .offset = offsetof(struct run_args, is_each_node)                                          \
    }
#define RUN_OPT_IMAGE                                                                              \
    {                                                                                              \
        .name = "image", .kind = OPT_LIST, .value = "ID=NAME@DIGEST",                              \
        .help = "use this image for images/ID; may be repeated",                                   \
        .offset = offsetof(struct run_args, images)                                                \
    }
#define RUN_OPT_SET                                                                                \
    {                                                                                              \
        .name = "set", .letter = 'C', .kind = OPT_LIST, .value = "PATH=VALUE",                     \
        .help = "override a value of the report for this run; may be repeated",                    \
        .offset = offsetof(struct run_args, overrides)                                             \
    }
#define RUN_OPT_REPEATS                                                                            \
    {                                                                                              \
        .name = "repeats", .kind = OPT_I64, .value = "N", .help = "processes a case (3)",          \
        .offset = offsetof(struct run_args, repeats), .min = 1, .max = REPEATS_RUN_MAX             \
    }
#define RUN_OPT_TURNS                                                                              \
    {                                                                                              \
        .name = "columns", .kind = OPT_FLAG,                                                       \
        .help = "run one case at a time, those of a row in turns (default: where it has several)", \
        .offset = offsetof(struct run_args, takes_turns)                                           \
    }
#define RUN_OPT_STEPS                                                                              \
    {                                                                                              \
        .name = "steps", .kind = OPT_TEXT, .value = "as-logged|N",                                 \
        .help = "training steps where a command takes a number: the published log's, or N",        \
        .offset = offsetof(struct run_args, steps)                                                 \
    }
#define RUN_OPT_PACKED                                                                             \
    {                                                                                              \
        .name = "no-columns", .kind = OPT_FLAG,                                                    \
        .help = "run cases at the same time wherever nodes are free: no ratios",                   \
        .offset = offsetof(struct run_args, is_packed)                                             \
    }
#define RUN_OPT_DEADLINE                                                                           \
    {                                                                                              \
        .name = "deadline", .kind = OPT_I64, .value = "SECONDS",                                   \
        .help = "of one repeat (smoke 600; full 86400, or 3 x the estimate)",                      \
        .offset = offsetof(struct run_args, deadline_s), .min = 1, .max = DEADLINE_S_MAX           \
    }
#define RUN_OPT_DATA                                                                               \
    {                                                                                              \
        .name = "data", .kind = OPT_TEXT, .value = "synthetic|NAME|PATH",                          \
        .help = "packed dataset for the bundled workload; NAME: in the store",                     \
        .offset = offsetof(struct run_args, data)                                                  \
    }
#define RUN_OPT_OFFLINE                                                                            \
    {                                                                                              \
        .name = "offline", .kind = OPT_FLAG,                                                       \
        .help = "do not run a case whose image, data or code the store lacks (status 4)",          \
        .offset = offsetof(struct run_args, net.is_offline)                                        \
    }
#define RUN_OPT_KEY                                                                                \
    {                                                                                              \
        .name = "key", .kind = OPT_TEXT, .value = "KEY",                                           \
        .help = "sign the archive with this private key (without: unsigned)",                      \
        .offset = offsetof(struct run_args, key)                                                   \
    }
#define RUN_OPT_JSON                                                                               \
    {                                                                                              \
        .name = "json", .kind = OPT_FLAG, .help = "print one JSON document",                       \
        .offset = offsetof(struct run_args, want_json)                                             \
    }

#define RUN_OPT_CHECKLIST                                                                          \
    {                                                                                              \
        .name = "checklist", .kind = OPT_FLAG,                                                     \
        .help = "what must hold on the nodes, in the order in which to see to it",                 \
        .offset = offsetof(struct run_args, is_checklist)                                          \
    }
#define RUN_OPT_VERBOSE                                                                            \
    {                                                                                              \
        .name = "verbose", .letter = 'v', .kind = OPT_FLAG,                                        \
        .help = "also each case's recipe, folders, command and deadline",                          \
        .offset = offsetof(struct run_args, is_verbose)                                            \
    }

/* From the command line to the engine's options. */
MUST_CHECK int run_args_opts(const struct cmd_ctx *ctx, const struct run_args *args,
                             const char *report, struct run_opts *ret_opts, struct err *err);

/* The plan as text or as its JSON document. */
MUST_CHECK int run_print_plan(const struct run_prepared *prepared, const struct run_args *args,
                              struct err *err);

/* What the published logs give by today's report, formats and series, which belong together; those that the run froze need not fit today's
   series. The audit borrows the formats. */
MUST_CHECK int run_audit_today(struct arena *arena, const char *root, const struct frozen *frozen,
                               struct format_set *formats, const struct report_audit **ret_audit,
                               struct err *err);
/* Whether a run of this kind can bear out what the report claims: no smoke run does. */
bool run_may_claim(const struct frozen *frozen);

/* A plan of which nothing can be run: its cells and why, and no run is kept; returns the exit status, or -1. */
MUST_CHECK int run_nothing_and_print(const struct run_opts *opts,
                                     const struct run_prepared *prepared, bool want_json,
                                     struct err *err);

/* Executes the run and prints the result; returns the exit status, or -1. */
MUST_CHECK int run_and_print(const struct run_opts *opts, const struct rundir *dir, bool want_json,
                             struct err *err);

#endif
