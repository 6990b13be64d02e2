/* SPDX-License-Identifier: Apache-2.0 */
/* Our program and its rivals on one device, in turns; or only what they compute. */
#include "base/base.h"

#include "bench/bench.h"

#include "base/fs.h"
#include "bench/event.h"

#include <math.h>

/* ---- turns ---- */

/* One that compiles for too long is left out, so that it does not use up the others' time. */
#define PREPARE_SHARE 0.6 /* of the time that is left */
static struct rival_world preparing(const struct bench *bench)
{
    struct rival_world world = bench->world;
    int64_t now_ns = world.clock.mono_ns(world.clock.ctx);
    double left_ns = (double)(world.deadline_ns - now_ns);
    world.deadline_ns = now_ns + (int64_t)(PREPARE_SHARE * left_ns);
    return world;
}

static int find_gpu(struct bench *bench, struct err *err)
{
    struct event event = {0};
    for (int i = 0; i < bench->n_programs && !event.gpu.ptr; i++) {
        struct str start = bench->programs[i].rival.start;
        if (start.ptr && event_read(bench->arena, start, &event, err) < 0) {
            return -1;
        }
    }
    bench->gpu = event.gpu;
    bench->driver = event.driver;
    bench->cuda = event.cuda;
    bench->libraries = event.libraries;
    bench->peak = event.gpu.ptr ? peak_find(event.gpu) : NULL;
    return 0;
}

static int start_all(struct bench *bench, struct err *err)
{
    const char *folder = fs_join(bench->arena, bench->folder, "logs/raw");
    for (int i = 0; i < bench->n_programs; i++) {
        struct bench_program *program = &bench->programs[i];
        if (program->rival.state == RIVAL_FAILED) {
            fprintf(stderr, "bench: %s: failed: %s\n", program->rival.name, program->rival.why);
            continue;
        }
        fprintf(stderr, "bench: %s: preparing\n", program->rival.name);
        const struct rival_world world = preparing(bench);
        if (rival_start(&program->rival, &world, folder, err) < 0 ||
            bench_judge(bench, program, err) < 0) {
            return -1;
        }
        if (program->rival.state != RIVAL_READY) {
            fprintf(stderr, "bench: %s: %s: %s\n", program->rival.name,
                    rival_state_name(program->rival.state), program->rival.why);
        }
        if (find_gpu(bench, err) < 0 || bench_write_result(bench, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Each round begins with another program, so that none always follows the same one. */
static int take_turns(struct bench *bench, struct err *err)
{
    for (int64_t turn = 0; turn < bench->opts->n_turns; turn++) {
        for (int i = 0; i < bench->n_programs; i++) {
            int who = (int)((turn + i) % bench->n_programs);
            if (rival_turn(&bench->programs[who].rival, &bench->world, (int)bench->opts->turn_steps,
                           err) < 0) {
                return -1;
            }
        }
        if (bench_write_result(bench, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* A program whose own times add up to much less than the wall time timed something else. The first turn is left out: data may be
   made in it. */
#define CLOCK_SHARE_LEAST 0.5
static void doubt_times(struct rival *rival, int64_t turn_steps)
{
    int64_t own = 0;
    int64_t seen = 0;
    for (int64_t i = turn_steps; i < rival->n_turns * turn_steps && i < rival->n_steps; i++) {
        own += rival->step_ns[i];
    }
    for (int i = 1; i < rival->n_turns; i++) {
        seen += rival->turn_ns[i];
    }
    if (rival_is_timed(rival) && turn_steps > 1 && (double)own < CLOCK_SHARE_LEAST * (double)seen) {
        rival_fail(rival, "its step times are less than half of the time that passed");
    }
}

/* What was timed must be what was checked: without dropout, the first step starts from the same numbers. */
static void hold_first_loss(struct bench *bench, struct bench_program *program)
{
    const struct agree_limits limits = agree_limits_of(bench->opts->precision, bench->opts->device);
    struct rival *rival = &program->rival;
    if (!program->is_ours || !rival_is_timed(rival) || bench->has_dropout) {
        return;
    }
    double difference = fabs(rival->losses[0] - bench->our_loss);
    if (!(difference <= limits.loss * fabs(bench->our_loss))) {
        rival_fail(rival, arena_printf(bench->arena, "its first loss is %.9g, --check's %.9g",
                                       rival->losses[0], bench->our_loss));
    }
}

static int finish_all(struct bench *bench, struct err *err)
{
    for (int i = 0; i < bench->n_programs; i++) {
        struct bench_program *program = &bench->programs[i];
        struct rival *rival = &program->rival;
        struct event event;
        if (rival_finish(rival, &bench->world, err) < 0) {
            return -1;
        }
        doubt_times(rival, bench->opts->turn_steps);
        hold_first_loss(bench, program);
        if (rival->stop.ptr && event_read(bench->arena, rival->stop, &event, err) < 0) {
            return -1;
        }
        program->peak_memory_bytes = rival->stop.ptr ? event.peak_memory_bytes : 0;
    }
    return 0;
}

/* Of a GPU that is not known yet, as one that fuses batch norms. */
static void find_floor(struct bench *bench, const struct graph *graph)
{
    floor_of_graph(bench->arena, graph, bench_moments(bench->opts),
                   !bench->peak || peak_fuses_norms(bench->peak), &bench->floor);
}

static int measure(struct bench *bench, struct err *err)
{
    struct graph *graph;
    if (bench_graph(bench->arena, bench->opts, &graph, err) < 0) {
        return -1;
    }
    bench->has_dropout = graph_find(graph, "step") != NO_VALUE;
    find_floor(bench, graph);
    if (bench_make_folders(bench, err) < 0 || bench_make_programs(bench, err) < 0 ||
        bench_write_asked(bench, err) < 0 || bench_note_gpu(bench, "gpu-before", err) < 0 ||
        bench_make_start(bench, err) < 0 || bench_check_ours(bench, err) < 0 ||
        start_all(bench, err) < 0 || bench_note_gpu(bench, "gpu-ready", err) < 0) {
        return -1;
    }
    find_floor(bench, graph);
    if (take_turns(bench, err) < 0 || bench_note_gpu(bench, "gpu-after", err) < 0 ||
        finish_all(bench, err) < 0 || fs_remove_tree(bench->scratch, err) < 0) {
        return -1;
    }
    return bench_write_result(bench, err) < 0 ? -1 : bench_print_table(bench, err);
}

static int worst_of(const struct bench *bench, struct err *err)
{
    for (int i = 0; i < bench->n_programs; i++) {
        const struct rival *rival = &bench->programs[i].rival;
        if (rival->state == RIVAL_FAILED) {
            return err_set(err, ERR_WORKLOAD, "%s: %s", rival->name, rival->why);
        }
    }
    for (int i = 0; i < bench->n_programs; i++) {
        const struct rival *rival = &bench->programs[i].rival;
        if (rival->state == RIVAL_LATE) {
            return err_set(err, ERR_TIMEOUT, "%s: %s", rival->name, rival->why);
        }
    }
    return 0;
}

/* ---- agreement alone ---- */

static int agree_all(struct bench *bench, struct err *err)
{
    if (bench_make_folders(bench, err) < 0 || bench_make_programs(bench, err) < 0 ||
        bench_make_start(bench, err) < 0 || bench_check_ours(bench, err) < 0) {
        return -1;
    }
    if (!bench->has_our_check) {
        return err_set(err, ERR_WORKLOAD, "%s", bench->programs[0].rival.why);
    }
    bench->programs[0].rival.state = RIVAL_DONE;
    const char *folder = fs_join(bench->arena, bench->folder, "logs/raw");
    for (int i = 1; i < bench->n_programs; i++) {
        struct bench_program *program = &bench->programs[i];
        fprintf(stderr, "bench: %s: its loss and gradients\n", program->rival.name);
        const struct rival_world world = preparing(bench);
        if (rival_try(&program->rival, &world, folder, err) < 0 ||
            bench_judge(bench, program, err) < 0) {
            return -1;
        }
    }
    return fs_remove_tree(bench->scratch, err) < 0 ? -1 : bench_print_agreement(bench, err);
}

/* ---- both ---- */

static int run(const struct bench_opts *opts, struct clock_src clock,
               const volatile sig_atomic_t *stop, int (*body)(struct bench *bench, struct err *err),
               struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct bench bench = {.opts = opts, .arena = &arena};
    bench.world =
        (struct rival_world){.arena = &arena,
                             .clock = clock,
                             .deadline_ns = clock.mono_ns(clock.ctx) + opts->deadline_s * NS_PER_S,
                             .stop = stop};
    int result = body(&bench, err);
    if (result == 0) {
        result = worst_of(&bench, err);
    } else if (bench.scratch) {
        struct err unsaid = {0};
        if (fs_remove_tree(bench.scratch, &unsaid) < 0) {
            fprintf(stderr, "bench: %s\n", unsaid.msg);
        }
    }
    for (int i = 0; i < bench.n_programs; i++) {
        rival_release(&bench.programs[i].rival);
    }
    return result;
}

int bench_models(const struct bench_opts *opts, struct clock_src clock,
                 const volatile sig_atomic_t *stop, struct err *err)
{
    return run(opts, clock, stop, measure, err);
}

int bench_agree(const struct bench_opts *opts, struct clock_src clock,
                const volatile sig_atomic_t *stop, struct err *err)
{
    struct bench_opts own = *opts;
    own.n_turns = 0;
    return run(&own, clock, stop, agree_all, err);
}
