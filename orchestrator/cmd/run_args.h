/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by `run`, `plan` and `resume`: their options, and printing the end of a run. */
#pragma once

#include "cmd/net_args.h"
#include "judge/audit.h"
#include "run/run.h"
#include "run/run_address.h"
#include "view/run_health.h"

struct run_args {
    struct net_args net; /* first: NET_ARGS_OPTS of run */
    struct run_opts opts;
    const char *profile;
    const char *name;
    const char *gate;
    const char *steps;
    const char *format; /* of `run -- COMMAND` */
    const char *trust;  /* a commit; NULL: none */
    bool is_dry_run;
    bool want_json;
    bool is_verbose, is_checklist;
};

/* Rows of the option tables: of `run` and `plan`; of some commands each. */
#define RUN_ARGS_PLAN_OPTS                                                                         \
    OPT(struct run_args, opts.plan.globs, "case",                                                  \
        "only cases that match; may be repeated; * also matches /", .value = "GLOB"),              \
        OPT(struct run_args, profile, "profile",                                                   \
            "full (as the report says; default) or smoke (small, on the CPU)",                     \
            .value = "full|smoke"),                                                                \
        OPT(struct run_args, opts.plan.asked.is_rehearsal, "rehearse",                             \
            "the full profile on synthetic data: no number is claimed"),                           \
        OPT(struct run_args, opts.nodes, "nodes",                                                  \
            "where: an inventory, INVENTORY:NODESET, host1,host2, slurm (default: local)",         \
            .value = "INVENTORY"),                                                                 \
        OPT(struct run_args, opts.plan.asked.is_each_node, "each-node",                            \
            "each case on every node, or every pair of neighbours, and compare the nodes"),        \
        OPT(struct run_args, opts.images, "image",                                                 \
            "use this image for images/ID; may be repeated", .value = "ID=NAME@DIGEST"),           \
        OPT(struct run_args, opts.overrides, "set",                                                \
            "override a value of the report for this run; may be repeated", .letter = 'C',         \
            .value = "PATH=VALUE"),                                                                \
        OPT(struct run_args, opts.plan.asked.repeats, "repeats", "processes a case (3)",           \
            .value = "N", .min = 1, .max = REPEATS_RUN_MAX),                                       \
        OPT(struct run_args, opts.plan.asked.takes_turns, "columns",                               \
            "run one case at a time, those of a row in turns (default: where it has several)"),    \
        OPT(struct run_args, steps, "steps",                                                       \
            "training steps where a command takes a number: the published log's, or N",            \
            .value = "as-logged|N"),                                                               \
        OPT(struct run_args, opts.plan.is_packed, "no-columns",                                    \
            "run cases at the same time wherever nodes are free: no ratios"),                      \
        OPT(struct run_args, opts.plan.asked.deadline_s, "deadline",                               \
            "of one repeat (smoke 600; full 86400, or 3 x the estimate)", .value = "SECONDS",      \
            .min = 1, .max = DEADLINE_S_MAX),                                                      \
        OPT(struct run_args, opts.data, "data",                                                    \
            "packed dataset for the bundled workload; NAME: in the store",                         \
            .value = "synthetic|NAME|PATH")
#define RUN_OPT_OFFLINE                                                                            \
    OPT(struct run_args, net.opts.is_offline, "offline",                                           \
        "do not run a case whose image, data or code the store lacks (status 4)")
#define RUN_OPT_KEY                                                                                \
    OPT(struct run_args, opts.key_path, "key",                                                     \
        "sign the archive with this private key (without: unsigned)", .value = "KEY")
#define RUN_OPT_RETRY                                                                              \
    OPT(struct run_args, opts.retries, "retry-failed",                                             \
        "make a repeat that fails again, at most N times; the last attempt counts", .value = "N",  \
        .min = 0, .max = 100)
#define RUN_OPT_JSON OPT(struct run_args, want_json, "json", "print one JSON document")

/* From the command line to the engine's options, but for the report, which is opened once they are known to be right. */
MUST_CHECK int run_args_opts(const struct cmd_ctx *ctx, const struct run_args *args,
                             struct run_opts *ret_opts, struct err *err);

/* The plan as text or as its JSON document. */
MUST_CHECK int run_print_plan(const struct run_prepared *prepared, const struct run_args *args,
                              const struct cmd_call *call, struct err *err);

/* What the published logs give by today's report, formats and series, which belong together; those that the run froze need not
   fit today's series. The audit borrows the formats. */
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

/* Gets what a run's cases lack before they are planned, as far as reperf can: sources and datasets fetched, images locked. For
   each case the preferred recipe. What could not be fetched is logged, and the plan made afterwards has another recipe, or the
   reason not to run. ERR_FETCH before anything is fetched if something is for registered users only and no login was named: all
   of it in one message. Returns 128 + n after a signal. */
MUST_CHECK int run_get(const struct cmd_ctx *ctx, const struct run_args *args,
                       const struct run_opts *opts, const struct run_prepared *prepared,
                       struct err *err);

/* A report that was named by its address runs what its authors wrote. It is shown, and ERR_USAGE, unless `--trust` names
   exactly its commit. The plan says what would run. */
MUST_CHECK int run_trust(const struct run_args *args, const struct address *address,
                         const struct plan *plan, struct err *err);

/* `run -- COMMAND`: the command as a report of one case that nobody has published. From here on it is planned, run, judged
   and sealed like any other; the report's text is frozen with the run. words: of the command. The text and paths live in
   the arena. */
MUST_CHECK int run_command_report(struct arena *arena, const struct run_args *args,
                                  const char *root, const struct opt_list *words,
                                  struct run_command *ret, struct err *err);
