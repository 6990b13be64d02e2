/* SPDX-License-Identifier: Apache-2.0 */
/* The programs of a bench: their command lines, the folders of the run, and what they compute from the same parameters. */
#include "base/base.h"

#include "bench/bench.h"

#include "base/fs.h"

#include <math.h>

/* The same for all: a constant rate, so that no step differs from another. `own` is what only our program needs. */
struct alike {
    const char *shared[9], *own[9];
    int n_moments;
};
static const struct alike IMAGES = {.shared = {"--optimizer", "sgd", "--lr", "0.01",
                                               "--weight-decay", "0.0001", "--momentum", "0.9"},
                                    .own = {"--decay", "all"},
                                    .n_moments = 1};
static const struct alike TOKENS = {
    .shared = {"--optimizer", "adamw", "--lr", "0.0001", "--weight-decay", "0.01"},
    .own = {"--decay", "matrices", "--beta1", "0.9", "--beta2", "0.999", "--eps", "1e-6"},
    .n_moments = 2};
#define WARMUP "3" /* a rival's own steps before it is ready: compiling, choosing algorithms */

static const struct alike *recipe_of(const struct bench_opts *opts)
{
    return opts->model->kind == MODEL_TOKENS ? &TOKENS : &IMAGES;
}

int bench_moments(const struct bench_opts *opts)
{
    return recipe_of(opts)->n_moments;
}

int bench_graph(struct arena *arena, const struct bench_opts *opts, struct graph **ret_graph,
                struct err *err)
{
    bool is_amp = strcmp(opts->precision, "amp") == 0;
    struct graph_types types = {is_amp ? DT_F16 : DT_F32, DT_F32, DT_F32};
    struct graph *graph = graph_new_typed(arena, &types);
    opts->model->build(graph, &(struct model_opts){.batch = opts->batch,
                                                   .height = opts->height,
                                                   .width = opts->width,
                                                   .sequence = opts->sequence,
                                                   .predictions = opts->predictions,
                                                   .has_dropout = true});
    *ret_graph = graph;
    return graph_finish(graph, err);
}

/* ---- the programs' command lines ---- */

static const char *text_of(const struct bench *bench, int64_t number)
{
    return arena_printf(bench->arena, "%" PRId64, number);
}

static void add_args(struct rival *rival, const char *const *args)
{
    for (size_t i = 0; args[i]; i++) {
        rival_arg(rival, args[i]);
    }
}

static void add_size(const struct bench *bench, struct rival *rival)
{
    const struct bench_opts *o = bench->opts;
    const char *batch[] = {"--batch", text_of(bench, o->batch), NULL};
    add_args(rival, batch);
    if (o->model->kind == MODEL_TOKENS) {
        const char *args[] = {"--sequence", text_of(bench, o->sequence), "--predictions",
                              text_of(bench, o->predictions), NULL};
        add_args(rival, args);
    } else {
        const char *args[] = {
            "--image", arena_printf(bench->arena, "%" PRId64 "x%" PRId64, o->height, o->width),
            NULL};
        add_args(rival, args);
    }
}

static void add_device(const struct bench *bench, struct rival *rival)
{
    const char *args[] = {"--device", bench->opts->device, "--precision", bench->opts->precision,
                          NULL};
    add_args(rival, args);
    if (bench->opts->has_tf32) {
        rival_arg(rival, "--tf32");
    }
}

/* Ours alone: the check and the timed run get half of the time each; the second reuses the first one's choices. */
static void add_tuning(const struct bench *bench, struct rival *rival)
{
    const struct bench_opts *o = bench->opts;
    if (strcmp(o->device, "cuda") != 0) {
        return;
    }
    const char *args[] = {"--tune-seconds", text_of(bench, o->tune_s / 2), NULL};
    add_args(rival, args);
    if (o->allows_compiled) {
        rival_arg(rival, "--compile-plans");
    }
    if (o->allows_nondeterministic) {
        rival_arg(rival, "--nondeterministic");
    }
}

static void add_turns(const struct bench *bench, struct rival *rival)
{
    const struct bench_opts *o = bench->opts;
    const char *args[] = {"--steps", text_of(bench, o->turn_steps * o->n_turns), "--turn",
                          text_of(bench, o->turn_steps), NULL};
    add_args(rival, args);
}

static void start_ours(const struct bench *bench, struct rival *rival, const char *name)
{
    rival_init(rival, name);
    const char *args[] = {bench->opts->train, "--model", bench->opts->model->name, NULL};
    add_args(rival, args);
}

static void ours(struct bench *bench)
{
    struct bench_program *program = &bench->programs[bench->n_programs++];
    struct rival *rival = &program->rival;
    program->is_ours = true;
    start_ours(bench, rival, "reperf");
    add_size(bench, rival);
    add_device(bench, rival);
    add_tuning(bench, rival);
    add_args(rival, recipe_of(bench->opts)->shared);
    add_args(rival, recipe_of(bench->opts)->own);
    add_turns(bench, rival);
    const char *args[] = {"--data",
                          "synthetic",
                          "--schedule",
                          "constant",
                          "--warmup-lr-steps",
                          "0",
                          "--seed",
                          text_of(bench, bench->opts->seed),
                          "--label-smoothing",
                          "0",
                          NULL};
    add_args(rival, args);
}

static const char *in_scratch(const struct bench *bench, const char *name)
{
    return arena_printf(bench->arena, "%s/%s.safetensors", bench->scratch, name);
}

/* What competitors/ has. */
static const struct {
    const char *which, *name, *program, *mode;
} RIVALS[] = {{"eager", "torch-eager", "peer_torch.py", "eager"},
              {"compile", "torch-compile", "peer_torch.py", "compile"},
              {"jax", "jax", "peer_jax.py", "jit"},
              {"paddleseg", "paddleseg", "peer_original.py", "paddleseg"},
              {"mmseg", "mmseg", "peer_original.py", "mmseg"},
              {"torchvision", "torchvision", "peer_original.py", "torchvision"}};

static int add_rival(struct bench *bench, struct str which, struct err *err)
{
    const struct bench_opts *o = bench->opts;
    size_t idx = 0;
    while (idx < ARRAY_LEN(RIVALS) && !str_eq_z(which, RIVALS[idx].which)) {
        idx++;
    }
    if (idx == ARRAY_LEN(RIVALS)) {
        return err_set(err, ERR_USAGE,
                       "--rivals: %.*s: expected eager, compile, jax, paddleseg, mmseg or "
                       "torchvision",
                       STR_ARG(which));
    }
    if (bench->n_programs > BENCH_RIVALS_MAX) {
        return err_set(err, ERR_USAGE, "--rivals: at most %d", BENCH_RIVALS_MAX);
    }
    struct rival *rival = &bench->programs[bench->n_programs++].rival;
    rival_init(rival, RIVALS[idx].name);
    const char *args[] = {o->python,  fs_join(bench->arena, o->competitors, RIVALS[idx].program),
                          "--model",  o->model->name,
                          "--mode",   RIVALS[idx].mode,
                          "--check",  in_scratch(bench, "start"),
                          "--out",    in_scratch(bench, rival->name),
                          "--warmup", WARMUP,
                          NULL};
    add_args(rival, args);
    add_device(bench, rival);
    add_args(rival, recipe_of(o)->shared);
    add_turns(bench, rival);
    return 0;
}

int bench_make_programs(struct bench *bench, struct err *err)
{
    struct str rest = str_of(bench->opts->rivals);
    struct str which;
    ours(bench);
    while (rest.len > 0 && str_next(&rest, ',', &which)) {
        if (add_rival(bench, which, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- folders and the machine ---- */

int bench_make_folders(struct bench *bench, struct err *err)
{
    static const char *const parts[] = {"manifest", "logs/raw", "environment", "scratch"};
    char now[RFC3339_MAX];
    char stamp[RFC3339_MAX] = "";
    size_t n = 0;
    clock_rfc3339(bench->world.clock.wall_ns(bench->world.clock.ctx), now);
    for (const char *c = now; *c != '\0' && *c != '.'; c++) {
        if (*c != '-' && *c != ':') {
            stamp[n++] = *c;
        }
    }
    snprintf(bench->run_id, sizeof(bench->run_id), "%s-%s-%s-%sZ",
             bench->opts->n_turns > 0 ? "bench" : "agree", bench->opts->model->name,
             bench->opts->precision, stamp);
    bench->folder = fs_join(bench->arena, bench->opts->out, bench->run_id);
    bench->scratch = fs_join(bench->arena, bench->folder, "scratch");
    if (fs_exists(bench->folder)) {
        return err_set(err, ERR_USAGE, "%s exists already", bench->folder);
    }
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (fs_mkdir_p(fs_join(bench->arena, bench->folder, parts[i]), err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* The output of nvidia-smi (clocks, temperature, power), unchanged into the run's folder; without nvidia-smi that fact. */
int bench_note_gpu(struct bench *bench, const char *when, struct err *err)
{
    struct rival tool;
    int status = 0;
    if (strcmp(bench->opts->device, "cuda") != 0) {
        return 0;
    }
    rival_init(&tool, when);
    const char *args[] = {"nvidia-smi",
                          "--query-gpu=timestamp,name,driver_version,clocks.sm,clocks.mem,clocks."
                          "max.sm,temperature.gpu,power.draw,power.limit,clocks_throttle_reasons."
                          "active,memory.used,memory.total",
                          "--format=csv", NULL};
    add_args(&tool, args);
    int result = rival_run(&tool, &bench->world,
                           fs_join(bench->arena, bench->folder, "environment"), &status, err);
    rival_release(&tool);
    bench->knows_clocks = status == 0;
    return result;
}

/* ---- the same from the same ---- */

/* Runs our program once for one of its modes without turns. */
static int run_ours(struct bench *bench, struct rival *tool, struct err *err)
{
    int status = 0;
    const char *folder = fs_join(bench->arena, bench->folder, "logs/raw");
    if (rival_run(tool, &bench->world, folder, &status, err) < 0) {
        return -1;
    }
    if (status != 0) {
        struct str text = STR_EMPTY;
        struct err unsaid = {0};
        bool is_said = fs_read(bench->arena, tool->err_path, 1u << 20, &text, &unsaid) == 0;
        struct str said = str_trim(is_said ? text : STR_EMPTY);
        /* What this machine or build cannot do stays a usage error. */
        return err_set(err, status == 2 ? ERR_USAGE : ERR_WORKLOAD, "%s: status %d: %.*s",
                       tool->name, status, (int)(said.len > 400 ? 400 : said.len), said.ptr);
    }
    return 0;
}

int bench_make_start(struct bench *bench, struct err *err)
{
    struct rival tool;
    start_ours(bench, &tool, "make-check");
    add_size(bench, &tool);
    const char *args[] = {"--seed", text_of(bench, bench->opts->seed), "--make-check",
                          in_scratch(bench, "start"), NULL};
    add_args(&tool, args);
    int result = run_ours(bench, &tool, err);
    rival_release(&tool);
    return result;
}

static int read_loss(struct bench *bench, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct st_file file;
    return st_read(&arena, in_scratch(bench, "reperf"), &file, err) < 0
               ? -1
               : agree_loss(&file, &bench->our_loss, err);
}

int bench_check_ours(struct bench *bench, struct err *err)
{
    struct rival tool;
    struct err why = {0};
    start_ours(bench, &tool, "check");
    const char *args[] = {"--check", in_scratch(bench, "start"), "--out",
                          in_scratch(bench, "reperf"), NULL};
    add_args(&tool, args);
    if (strcmp(bench->opts->device, "cpu") != 0) {
        add_device(bench, &tool);
        add_tuning(bench, &tool);
    }
    int result = run_ours(bench, &tool, &why);
    rival_release(&tool);
    bench->has_our_check = result == 0 && read_loss(bench, &why) == 0;
    if (bench->has_our_check) {
        return 0;
    }
    if (why.code == ERR_USAGE || why.code == ERR_INTERRUPTED) {
        *err = why;
        return -1;
    }
    rival_fail(&bench->programs[0].rival, why.msg);
    return 0;
}

static const char *disagreement(struct arena *arena, const struct agreement *a,
                                const struct agree_limits *limits)
{
    if (a->statistics_difference > limits->statistics) {
        return arena_printf(arena, "keeps other running statistics: off by %g, at most %g",
                            a->statistics_difference, limits->statistics);
    }
    if (a->logits_difference > limits->logits) {
        return arena_printf(arena, "computes other logits: off by %g, at most %g",
                            a->logits_difference, limits->logits);
    }
    return arena_printf(arena,
                        "computes another loss or gradient: %.9g and norm %.9g, expected %.9g and "
                        "%.9g within %g and %g",
                        a->loss, a->norm, a->our_loss, a->our_norm, limits->loss,
                        limits->gradient_norm);
}

/* A rival that computes something else has no number. */
int bench_judge(struct bench *bench, struct bench_program *program, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct st_file mine;
    struct st_file theirs;
    struct err wrong = {0};
    const struct agree_limits limits = agree_limits_of(bench->opts->precision, bench->opts->device);
    struct rival *rival = &program->rival;
    if (program->is_ours || !bench->has_our_check ||
        (rival->state != RIVAL_READY && rival->state != RIVAL_DONE)) {
        return 0;
    }
    if (st_read(&arena, in_scratch(bench, "reperf"), &mine, err) < 0) {
        return -1;
    }
    if (st_read(&arena, in_scratch(bench, rival->name), &theirs, &wrong) < 0 ||
        agree(&mine, &theirs, &limits, &program->agreement, &wrong) < 0) {
        rival_fail(rival, arena_printf(bench->arena, "its check: %s", wrong.msg));
        return 0;
    }
    program->has_agreement = true;
    if (!program->agreement.holds) {
        rival_fail(rival, disagreement(bench->arena, &program->agreement, &limits));
    }
    return 0;
}
