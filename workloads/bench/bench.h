/* SPDX-License-Identifier: Apache-2.0 */
/* reperf-bench: its options and its results. */
#pragma once

#include "bench/agree.h"
#include "bench/floor.h"
#include "bench/peaks.h"
#include "bench/rival.h"
#include "core/json_writer.h"
#include "models/model.h"

#define BENCH_RIVALS_MAX  8
#define BENCH_STEPS_LEAST 50 /* timed ones: with fewer it is a trial without a verdict */
#define BENCH_PATH_MAX    4096

struct bench_opts {
    const struct model *model;
    const char *precision; /* "fp32", "amp" */
    const char *device;    /* "cpu", "cuda" */
    bool has_tf32;
    int64_t batch, height, width, sequence, predictions;
    int64_t turn_steps, n_turns; /* the first turn of each is warm-up */
    int64_t deadline_s;
    int64_t seed;
    const char *rivals; /* "eager,compile,jax" */
    const char *python, *train, *competitors;
    const char *out;              /* the run's folder is made in it */
    const char *gpu;              /* floor: by the table's name */
    bool is_fused;                /* kernels: everything that can be fused is */
    int64_t tune_s;               /* cuda: for choosing our plans by timing */
    bool allows_compiled;         /* cuda: as reperf-train --compile-plans */
    bool allows_nondeterministic; /* cuda: as reperf-train --nondeterministic */
};

/* How a program's loss and gradient compare with ours; only where has_agreement. */
struct bench_program {
    struct rival rival;
    bool is_ours;
    bool has_agreement;
    struct agreement agreement;
    int64_t peak_memory_bytes; /* 0: not known */
};

struct bench {
    const struct bench_opts *opts;
    struct arena *arena;
    struct rival_world world;
    char run_id[128];
    const char *folder;                                  /* OUT/RUN_ID */
    const char *scratch;                                 /* in it, removed at the end */
    struct bench_program programs[BENCH_RIVALS_MAX + 1]; /* ours first */
    int n_programs;
    bool has_our_check;
    double our_loss; /* of --check, where there is one */
    bool has_dropout;
    struct floor_count floor;
    const struct peak *peak;            /* NULL: not a GPU of the table */
    struct str gpu;                     /* ptr NULL: none */
    struct str driver, cuda, libraries; /* as our program names them; ptr NULL: it does not */
    bool knows_clocks;
};

/* The step times after the warm-up, sorted, in the arena. */
struct bench_times {
    int64_t *ns;
    int n;
};
struct bench_times bench_times_of(struct arena *arena, const struct bench *bench,
                                  const struct rival *rival);
/* The value below which the share q lies; n above 0. */
double bench_quantile(const struct bench_times *times, double q);
/* Sorts them; n above 0. */
double bench_median(double *values, int64_t n);

/* ---- the verbs of reperf-bench ---- */

/* Programs in turn on one device: a table on stdout, the run's folder in opts->out. ERR_WORKLOAD where one failed. */
MUST_CHECK int bench_models(const struct bench_opts *opts, struct clock_src clock,
                            const volatile sig_atomic_t *stop, struct err *err);

/* What the rivals compute from our parameters, compared with what we compute, without timing: a table on stdout. ERR_WORKLOAD
   where one computes something else. */
MUST_CHECK int bench_agree(const struct bench_opts *opts, struct clock_src clock,
                           const volatile sig_atomic_t *stop, struct err *err);

/* Each kind of call of one step alone, on this program's own backend: time, bytes, operations, and their share of the GPU's peaks. One JSON
   document in opts->out if set, a table on stdout. */
MUST_CHECK int bench_kernels(const struct bench_opts *opts, struct clock_src clock,
                             const volatile sig_atomic_t *stop, struct err *err);

/* The floor of one step on a GPU of the table; one JSON document on stdout. */
MUST_CHECK int bench_floor(const struct bench_opts *opts, struct err *err);

/* ---- parts of it ---- */

/* The graph of opts with the types of the device: f32, or half precision with AMP. */
MUST_CHECK int bench_graph(struct arena *arena, const struct bench_opts *opts,
                           struct graph **ret_graph, struct err *err);

/* Optimiser states of each parameter. */
int bench_moments(const struct bench_opts *opts);

/* Ours and the rivals', ready to start. */
MUST_CHECK int bench_make_programs(struct bench *bench, struct err *err);
MUST_CHECK int bench_make_folders(struct bench *bench, struct err *err);

/* The output of nvidia-smi, into environment/WHEN.log; without nvidia-smi that fact. */
MUST_CHECK int bench_note_gpu(struct bench *bench, const char *when, struct err *err);

/* The parameters that all start from, and what we compute from them; if that fails, so has our program, and rivals go
   unchecked. */
MUST_CHECK int bench_make_start(struct bench *bench, struct err *err);
MUST_CHECK int bench_check_ours(struct bench *bench, struct err *err);

/* A rival that computes something else fails. */
MUST_CHECK int bench_judge(struct bench *bench, struct bench_program *program, struct err *err);

/* The peak rate of operations that applies to opts' precision. */
double bench_peak_flops(const struct bench_opts *opts, const struct peak *peak);

/* result.json's "machine": kernel, GPU, driver, libraries, and what nvidia-smi said before, while and after. */
void bench_put_machine(struct json_out *out, const struct bench *bench);

MUST_CHECK int bench_print_agreement(const struct bench *bench, struct err *err);

/* manifest/bench.json; result.json so far, replacing the previous one; the table. */
MUST_CHECK int bench_write_asked(const struct bench *bench, struct err *err);
MUST_CHECK int bench_write_result(const struct bench *bench, struct err *err);
MUST_CHECK int bench_print_table(const struct bench *bench, struct err *err);

const char *bench_verdict(const struct bench *bench, const struct bench_program *program);
