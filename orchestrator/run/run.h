/* SPDX-License-Identifier: Apache-2.0 */
/* A run, from its plan to its sealed archive: made, executed, resumed. One orchestrator works on a run (a lock) and journals each
   action in advance, so that it may die at any moment and resume gives the same cells, every repeat counted once. Jobs are
   detached and outlive it. */
#pragma once

#include "base/command.h"
#include "evidence/code.h"
#include "evidence/result.h"
#include "evidence/rundir.h"
#include "run/planner.h"

/* What `run -- COMMAND` runs: a report of one case that no file holds; all NULL: the report is a file. */
struct run_command {
    struct str report_text;
    const char *format_path; /* --format FILE: the format that the report names */
    struct code_opts code;   /* whose commit is a condition */
};

struct run_opts {
    const struct cmd_ctx *ctx;
    struct run_command command;
    const char *report; /* id or path */
    /* run_plan fills report_sha256, train_path, inventory, images and clock. */
    struct planner_opts plan;
    const char *nodes;         /* --nodes: NULL: this machine */
    struct opt_list images;    /* --image: "ID=NAME@sha256:DIGEST" */
    struct opt_list overrides; /* -C: PATH=VALUE on the report */
    const char *limits;        /* --limits: of --each-node; NULL: the program's */
    const char *run_id;        /* NULL: made from clock and machine's random bits */
    const char *key_path;      /* NULL: the archive is unsigned */
    int64_t retries;  /* run --retry-failed: of a repeat that does not count, by this process */
    const char *data; /* --data: NULL or "synthetic": none */
};

struct run_prepared {
    struct str report_text;          /* the file's bytes, as they are frozen */
    struct str report_sha256;        /* hex */
    struct json_override *overrides; /* n_overrides of the options */
    struct report report;
    struct inventory inventory;
    struct plan_data data;
    struct plan plan;
};

/* Reads everything requested: the report with its overrides, the inventory, the packed data. */
MUST_CHECK int run_read(struct arena *arena, const struct run_opts *opts,
                        struct run_prepared *ret_prepared, struct err *err);
/* Plans the cases; changes nothing. May be called again when more is in the store or locked. */
MUST_CHECK int run_plan(struct arena *arena, const struct run_opts *opts,
                        struct run_prepared *prepared, struct err *err);

/* Freezes the plan into a new run folder. The folder appears complete, in one step. */
MUST_CHECK int run_create(struct arena *arena, const struct run_opts *opts,
                          const struct run_prepared *prepared, struct rundir *ret_dir,
                          struct err *err);

struct run_end {
    int stopped_by; /* a signal: the run is not over and can be resumed, unless is_cancelled; then there is no result */
    bool is_cancelled;
    struct frozen frozen; /* the result borrows from it: frozen_release */
    struct run_result result;
    bool is_signed;
};

/* The result of a plan with no step that can be run: its cells, each with its cause. Nothing is written. */
MUST_CHECK int run_nothing(struct arena *arena, const struct run_prepared *prepared,
                           struct run_end *ret_end, struct err *err);

/* Executes a run from its current state. Of opts: ctx and key_path. On an error the job is stopped and the run
   can be resumed. */
MUST_CHECK int run_execute(struct arena *arena, const struct run_opts *opts,
                           const struct rundir *dir, struct run_end *ret_end, struct err *err);

/* Cancels a run: asks its orchestrator to stop, or stops the job that a dead one left. */
MUST_CHECK int run_cancel(struct arena *arena, const struct run_opts *opts,
                          const struct rundir *dir, struct err *err);
