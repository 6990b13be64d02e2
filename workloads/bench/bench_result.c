/* SPDX-License-Identifier: Apache-2.0 */
/* Results of a bench: result.json with every step's time, manifest/bench.json with the options, a table for people. */
#include "base/base.h"

#include "bench/bench.h"

#include "base/fs.h"
#include "base/table.h"

#include <unistd.h>

#define DOCUMENT_BYTES_MAX (64 << 20)

static int by_value(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

struct bench_times bench_times_of(struct arena *arena, const struct bench *bench,
                                  const struct rival *rival)
{
    int warmup = (int)bench->opts->turn_steps;
    int whole = rival->n_turns * warmup; /* not the steps of a turn that the deadline cut off */
    int n_steps = rival->n_steps < whole ? rival->n_steps : whole;
    struct bench_times times = {.n = n_steps > warmup ? n_steps - warmup : 0};
    times.ns = arena_array(arena, int64_t, (size_t)times.n + 1);
    memcpy(times.ns, rival->step_ns + warmup, (size_t)times.n * sizeof(*times.ns));
    qsort(times.ns, (size_t)times.n, sizeof(*times.ns), by_value);
    return times;
}

double bench_quantile(const struct bench_times *times, double q)
{
    double at = q * (double)(times->n - 1);
    int below = (int)at;
    int above = below + 1 < times->n ? below + 1 : below;
    double share = at - (double)below;
    return (double)times->ns[below] * (1.0 - share) + (double)times->ns[above] * share;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, int64_t n)
{
    qsort(values, (size_t)n, sizeof(*values), ascending);
    return (values[(n - 1) / 2] + values[n / 2]) / 2.0;
}

/* 0 if it has no number. */
static double median_of(const struct bench *bench, const struct bench_program *program)
{
    struct bench_times times = bench_times_of(bench->arena, bench, &program->rival);
    return rival_is_timed(&program->rival) && times.n > 0 ? bench_quantile(&times, 0.5) : 0.0;
}

static double floor_now(const struct bench *bench)
{
    const struct peak *peak = bench->peak;
    if (!peak) {
        return 0.0;
    }
    return floor_seconds(&bench->floor, bench_peak_flops(bench->opts, peak), peak->bytes_per_s);
}

static bool is_trial(const struct bench *bench)
{
    return strcmp(bench->opts->device, "cuda") != 0 || !bench->knows_clocks || !bench->gpu.ptr ||
           bench->opts->turn_steps * (bench->opts->n_turns - 1) < BENCH_STEPS_LEAST;
}

/* In the words of orchestrator/evidence/evidence.h. */
const char *bench_verdict(const struct bench *bench, const struct bench_program *program)
{
    if (program->rival.state == RIVAL_SKIPPED) {
        return "not_run";
    }
    if (!rival_is_timed(&program->rival)) {
        return "failed";
    }
    if (is_trial(bench) || program->rival.state == RIVAL_LATE ||
        bench->programs[0].rival.state == RIVAL_LATE) {
        return "not_comparable";
    }
    double ours = median_of(bench, &bench->programs[0]);
    if (ours <= 0.0) {
        return "not_comparable";
    }
    return ours <= median_of(bench, program) ? "reproduced" : "slower";
}

/* ---- result.json ---- */

static void put_agreement(struct json_out *out, const struct bench_program *program)
{
    const struct agreement *a = &program->agreement;
    json_out_key(out, "check");
    json_out_open(out, '{');
    json_out_put_f64(out, "loss", a->loss);
    json_out_put_f64(out, "our_loss", a->our_loss);
    json_out_put_f64(out, "gradient_norm", a->norm);
    json_out_put_f64(out, "our_gradient_norm", a->our_norm);
    json_out_put_f64(out, "gradient_distance", a->distance);
    json_out_put_i64(out, "gradient_elements", a->n_elements);
    json_out_close(out, '}');
}

static void put_turns(struct json_out *out, const struct rival *rival, int64_t turn_steps)
{
    json_out_key(out, "turns");
    json_out_open(out, '[');
    for (int turn = 0; turn < rival->n_turns; turn++) {
        json_out_open(out, '{');
        json_out_put_i64(out, "wall_ns", rival->turn_ns[turn]);
        json_out_key(out, "step_ns");
        json_out_open(out, '[');
        for (int64_t i = turn * turn_steps; i < (turn + 1) * turn_steps && i < rival->n_steps;
             i++) {
            json_out_i64(out, rival->step_ns[i]);
        }
        json_out_close(out, ']');
        json_out_close(out, '}');
    }
    json_out_close(out, ']');
}

static void put_losses(struct json_out *out, const struct rival *rival)
{
    json_out_key(out, "losses");
    json_out_open(out, '[');
    for (int i = 0; i < rival->n_steps; i++) {
        json_out_f64(out, rival->losses[i]);
    }
    json_out_close(out, ']');
}

/* A line that event_read has checked. */
static void put_checked(struct json_out *out, const char *key, struct str line)
{
    json_out_key(out, key);
    if (line.ptr) {
        strbuf_add_str(out->buf, line);
        out->needs_comma = true;
    } else {
        strbuf_add_z(out->buf, "null");
        out->needs_comma = true;
    }
}

static void put_numbers(struct json_out *out, const struct bench *bench,
                        const struct bench_program *program)
{
    struct bench_times times = bench_times_of(bench->arena, bench, &program->rival);
    double median = median_of(bench, program);
    double ours = median_of(bench, &bench->programs[0]);
    if (median <= 0.0) {
        return;
    }
    if (program->rival.state == RIVAL_LATE) {
        json_out_put_i64(out, "finished_turns", program->rival.n_turns);
    }
    json_out_put_i64(out, "timed_steps", times.n);
    json_out_put_f64(out, "median_step_ns", median);
    json_out_put_f64(out, "p5_step_ns", bench_quantile(&times, 0.05));
    json_out_put_f64(out, "p95_step_ns", bench_quantile(&times, 0.95));
    json_out_put_f64(out, "samples_per_s", (double)bench->opts->batch * (double)NS_PER_S / median);
    if (!program->is_ours && ours > 0.0) {
        json_out_put_f64(out, "reperf_over_this", median / ours);
    }
    if (bench->peak) {
        json_out_put_f64(out, "share_of_floor", floor_now(bench) * (double)NS_PER_S / median);
    }
}

static void put_program(struct json_out *out, const struct bench *bench,
                        const struct bench_program *program)
{
    const struct rival *rival = &program->rival;
    json_out_open(out, '{');
    json_out_put_text(out, "name", rival->name);
    json_out_put_text(out, "state", rival_state_name(rival->state));
    if (rival->why[0]) {
        json_out_put_text(out, "why", rival->why);
    }
    put_numbers(out, bench, program);
    if (program->peak_memory_bytes > 0) {
        json_out_put_i64(out, "peak_memory_bytes", program->peak_memory_bytes);
    }
    json_out_put_i64(out, "prepare_ns", rival->prepare_ns);
    if (program->has_agreement) {
        put_agreement(out, program);
    } else if (!program->is_ours && !bench->has_our_check) {
        put_checked(out, "check", STR_EMPTY);
    }
    json_out_key(out, "argv");
    json_out_open(out, '[');
    for (size_t i = 0; rival->argv[i]; i++) {
        json_out_text(out, str_of(rival->argv[i]));
    }
    json_out_close(out, ']');
    put_checked(out, "run_start", rival->start);
    put_checked(out, "run_stop", rival->stop);
    put_turns(out, rival, bench->opts->turn_steps);
    put_losses(out, rival);
    json_out_close(out, '}');
}

static void put_asked(struct json_out *out, const struct bench *bench)
{
    const struct bench_opts *o = bench->opts;
    json_out_put_text(out, "model", o->model->name);
    json_out_put_text(out, "precision", o->precision);
    json_out_key(out, "tf32");
    json_out_bool(out, o->has_tf32);
    json_out_put_text(out, "device", o->device);
    json_out_put_i64(out, "batch", o->batch);
    if (o->model->kind == MODEL_TOKENS) {
        json_out_put_i64(out, "sequence", o->sequence);
        json_out_put_i64(out, "predictions", o->predictions);
    } else {
        json_out_key(out, "image");
        json_out_open(out, '[');
        json_out_i64(out, o->height);
        json_out_i64(out, o->width);
        json_out_close(out, ']');
    }
    json_out_put_i64(out, "turns", o->n_turns);
    json_out_put_i64(out, "turn_steps", o->turn_steps);
    json_out_put_i64(out, "warmup_turns", 1);
    json_out_put_i64(out, "seed", o->seed);
}

static void put_floor(struct json_out *out, const struct bench *bench)
{
    const struct peak *peak = bench->peak;
    json_out_key(out, "floor");
    json_out_open(out, '{');
    json_out_put_f64(out, "flops_a_step", bench->floor.flops);
    json_out_put_f64(out, "bytes_a_step", bench->floor.bytes);
    if (peak) {
        json_out_put_text(out, "gpu", peak->name);
        json_out_put_f64(out, "half_flops_per_s", peak->half_flops_per_s);
        json_out_put_f64(out, "tf32_flops_per_s", peak->tf32_flops_per_s);
        json_out_put_f64(out, "float_flops_per_s", peak->float_flops_per_s);
        json_out_put_f64(out, "bytes_per_s", peak->bytes_per_s);
        json_out_put_text(out, "source", peak->source);
        json_out_put_f64(out, "step_ns", floor_now(bench) * (double)NS_PER_S);
    }
    json_out_close(out, '}');
}

static void put_cells(struct json_out *out, const struct bench *bench)
{
    json_out_key(out, "cells");
    json_out_open(out, '[');
    for (int i = 0; i < bench->n_programs; i++) {
        const struct bench_program *program = &bench->programs[i];
        json_out_open(out, '{');
        json_out_put_text(out, "cell",
                          arena_printf(bench->arena, "%s/%s/b%" PRId64 "/%s",
                                       bench->opts->model->name, bench->opts->precision,
                                       bench->opts->batch, program->rival.name));
        json_out_put_text(out, "verdict", bench_verdict(bench, program));
        json_out_close(out, '}');
    }
    json_out_close(out, ']');
}

int bench_write_result(const struct bench *bench, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text;
    char now[RFC3339_MAX];
    strbuf_init(&text, DOCUMENT_BYTES_MAX);
    struct json_out out = {.buf = &text};
    clock_rfc3339(bench->world.clock.wall_ns(bench->world.clock.ctx), now);
    json_out_open(&out, '{');
    json_out_put_i64(&out, "schema_version", 1);
    json_out_put_text(&out, "run_id", bench->run_id);
    json_out_put_text(&out, "report", "bench-gpu");
    json_out_put_text(&out, "finished_at", now);
    json_out_put_text(&out, "version", REPERF_VERSION);
    put_asked(&out, bench);
    json_out_key(&out, "trial");
    json_out_bool(&out, is_trial(bench));
    bench_put_machine(&out, bench);
    put_floor(&out, bench);
    put_cells(&out, bench);
    json_out_key(&out, "programs");
    json_out_open(&out, '[');
    for (int i = 0; i < bench->n_programs; i++) {
        put_program(&out, bench, &bench->programs[i]);
    }
    json_out_close(&out, ']');
    json_out_close(&out, '}');
    strbuf_add_char(&text, '\n');
    ASSERT(!text.is_full);
    return fs_write_atomic(fs_join(bench->arena, bench->folder, "result.json"), strbuf_str(&text),
                           err);
}

int bench_write_asked(const struct bench *bench, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text;
    strbuf_init(&text, DOCUMENT_BYTES_MAX);
    struct json_out out = {.buf = &text};
    json_out_open(&out, '{');
    json_out_put_i64(&out, "schema_version", 1);
    put_asked(&out, bench);
    json_out_put_text(&out, "rivals", bench->opts->rivals);
    json_out_put_i64(&out, "deadline_s", bench->opts->deadline_s);
    json_out_close(&out, '}');
    strbuf_add_char(&text, '\n');
    ASSERT(!text.is_full);
    return fs_write_atomic(fs_join(bench->arena, bench->folder, "manifest/bench.json"),
                           strbuf_str(&text), err);
}

/* ---- the table ---- */

static void add_number(struct table *table, bool is_there, int decimals, double value)
{
    char text[64];
    const char *shown = "-";
    if (is_there) {
        snprintf(text, sizeof(text), "%.*f", decimals, value);
        shown = text;
    }
    table_add(table, str_of(shown));
}

static void add_row(struct table *table, const struct bench *bench,
                    const struct bench_program *program)
{
    struct bench_times times = bench_times_of(bench->arena, bench, &program->rival);
    double median = median_of(bench, program);
    double ours = median_of(bench, &bench->programs[0]);
    bool is_there = median > 0.0;
    table_add(table, str_of(program->rival.name));
    add_number(table, is_there, 1,
               is_there ? (double)bench->opts->batch * (double)NS_PER_S / median : 0.0);
    add_number(table, is_there, 3, median / (double)NS_PER_MS);
    add_number(table, is_there, 3,
               is_there ? bench_quantile(&times, 0.05) / (double)NS_PER_MS : 0.0);
    add_number(table, is_there, 3,
               is_there ? bench_quantile(&times, 0.95) / (double)NS_PER_MS : 0.0);
    add_number(table, is_there, 0, (double)times.n);
    add_number(table, is_there && ours > 0.0 && !program->is_ours, 2,
               is_there ? median / ours : 0.0);
    add_number(table, is_there && bench->peak, 2,
               is_there ? floor_now(bench) * (double)NS_PER_S / median : 0.0);
    add_number(table, program->peak_memory_bytes > 0, 2,
               (double)program->peak_memory_bytes / (double)(1 << 30));
    table_addf(table, "%s%s%s", bench_verdict(bench, program), program->rival.why[0] ? ": " : "",
               program->rival.why);
}

int bench_print_table(const struct bench *bench, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text;
    CLEANUP(table) struct table table;
    strbuf_init(&text, 1 << 20);
    table = table_of(
        "program|>samples/s|>median ms|>p5|>p95|>steps|>reperf is x|>of floor|>GiB|verdict");
    for (int i = 0; i < bench->n_programs; i++) {
        add_row(&table, bench, &bench->programs[i]);
    }
    strbuf_printf(&text, "%s, %s, batch %" PRId64 ", %s%s\n", bench->opts->model->name,
                  bench->opts->precision, bench->opts->batch, bench->opts->device,
                  is_trial(bench) ? ": a trial of the bench, these times mean nothing" : "");
    table_render(&table, &text);
    strbuf_printf(&text, "%s\n", bench->folder);
    return fs_write_all(STDOUT_FILENO, text.ptr, text.len, "standard output", err);
}
