/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "core/mlog.h"

#include "base/fs.h"
#include "base/strbuf.h"
#include "core/json_writer.h"

#include <math.h>
#include <unistd.h>

#define LINE_BYTES_MAX 4096 /* PIPE_BUF on Linux: one write of it to a pipe is not split */

static int put_line(const struct mlog *log, struct strbuf *line, struct err *err)
{
    strbuf_add_z(line, "}\n");
    ASSERT(!line->is_full);
    return fs_write_all(log->fd, line->ptr, line->len, "metric line", err);
}

static struct json_out start_line(struct strbuf *line, const char *event)
{
    strbuf_init(line, LINE_BYTES_MAX);
    struct json_out out = {.buf = line};
    json_out_open(&out, '{');
    json_out_put_text(&out, "event", event);
    return out;
}

void mlog_put_size(struct json_out *out, const struct sample_size *size)
{
    if (size->sequence > 0) {
        json_out_put_i64(out, "sequence", size->sequence);
        json_out_put_i64(out, "predictions", size->predictions);
        return;
    }
    json_out_key(out, "image");
    json_out_open(out, '[');
    json_out_i64(out, size->height);
    json_out_i64(out, size->width);
    json_out_close(out, ']');
}

static void put_three(struct json_out *out, const char *key, const double values[3])
{
    json_out_key(out, key);
    json_out_open(out, '[');
    for (int i = 0; i < 3; i++) {
        json_out_f64(out, values[i]);
    }
    json_out_close(out, ']');
}

static void put_data(struct json_out *out, const struct mlog_data *data)
{
    json_out_put_text(out, "split", data->split);
    json_out_put_i64(out, "n_samples", data->n_samples);
    json_out_put_text(out, "pack_sha256", data->pack_sha256);
    json_out_put_i64(out, "data_seed", (int64_t)data->seed);
    json_out_put_i64(out, "workers", data->n_workers);
    json_out_put_i64(out, "start_step", data->start_step);
    json_out_put_i64(out, "steps_per_epoch", data->steps_per_epoch);
    json_out_put_i64(out, "epoch", data->epoch);
    if (data->augment) {
        json_out_put_text(out, "augment", data->augment);
        json_out_put_text(out, "augment_on", data->augment_on);
        put_three(out, "mean", data->mean);
        put_three(out, "std", data->std);
    }
}

static void put_known(struct json_out *out, const char *key, double value)
{
    if (!isnan(value)) {
        json_out_put_f64(out, key, value);
    }
}

static void put_schedule(struct json_out *out, const struct mlog_training *training)
{
    json_out_put_text(out, "schedule", training->schedule);
    if (training->schedule_steps > 0) {
        json_out_put_i64(out, "schedule_steps", training->schedule_steps);
    }
    put_known(out, "lr_end", training->lr_end);
    put_known(out, "lr_power", training->lr_power);
    if (!isnan(training->lr_factor)) {
        json_out_key(out, "lr_drops");
        json_out_open(out, '[');
        for (int i = 0; i < training->n_lr_drops; i++) {
            json_out_i64(out, training->lr_drops[i]);
        }
        json_out_close(out, ']');
        json_out_put_f64(out, "lr_factor", training->lr_factor);
    }
    json_out_put_i64(out, "warmup_lr_steps", training->warmup_lr_steps);
    json_out_put_f64(out, "warmup_lr_start", training->warmup_lr_start);
    if (training->covers_warmup) {
        json_out_key(out, "schedule_covers_warmup");
        json_out_bool(out, true);
    }
}

static void put_training(struct json_out *out, const struct mlog_training *training)
{
    json_out_put_text(out, "recipe", training->recipe);
    json_out_put_text(out, "optimizer", training->optimizer);
    put_known(out, "beta1", training->beta1);
    put_known(out, "beta2", training->beta2);
    put_known(out, "eps", training->eps);
    json_out_put_text(out, "decay", training->decay);
    put_schedule(out, training);
    json_out_put_i64(out, "accumulate", training->accumulate);
    json_out_put_text(out, "loss_scaling", training->loss_scaling);
    if (training->loss_scale_window > 0) {
        json_out_put_i64(out, "loss_scale_window", training->loss_scale_window);
    }
    json_out_put_f64(out, "loss_scale", training->loss_scale);
    json_out_put_i64(out, "first_step", training->start_step + 1);
    if (training->loaded_sha256) {
        json_out_put_text(out, "loaded_sha256", training->loaded_sha256);
    }
}

static void put_bool(struct json_out *out, const char *key, bool value)
{
    json_out_key(out, key);
    json_out_bool(out, value);
}

static void put_eval(struct json_out *out, const struct mlog_eval_setup *eval)
{
    json_out_put_text(out, "eval_metric", eval->metric);
    json_out_put_i64(out, "eval_every", eval->every);
    if (eval->has_target) {
        json_out_put_f64(out, "target", eval->target);
    }
    json_out_put_text(out, "eval_data", eval->data);
    if (eval->pack_sha256) {
        json_out_put_text(out, "eval_split", eval->split);
        json_out_put_text(out, "eval_pack_sha256", eval->pack_sha256);
    } else {
        json_out_put_i64(out, "eval_seed", (int64_t)eval->seed);
    }
    json_out_key(out, "eval_size");
    json_out_open(out, '{');
    mlog_put_size(out, &eval->size);
    json_out_close(out, '}');
}

static void put_gpu(struct json_out *out, const struct mlog_gpu *gpu)
{
    json_out_put_text(out, "gpu", gpu->name);
    json_out_put_i64(out, "gpu_memory_bytes", gpu->memory_bytes);
    json_out_put_text(out, "driver", gpu->driver);
    json_out_put_text(out, "cuda", gpu->runtime);
    json_out_put_text(out, "libraries", gpu->libraries);
    put_bool(out, "tf32", gpu->has_tf32);
    json_out_key(out, "fused");
    json_out_open(out, '{');
    for (int i = 0; i < gpu->n_fusions; i++) {
        json_out_put_i64(out, gpu->fusions[i].name, gpu->fusions[i].n);
    }
    json_out_close(out, '}');
    json_out_put_i64(out, "streams", gpu->n_streams);
    put_bool(out, "graph", gpu->has_programs);
    put_bool(out, "tuned", gpu->is_tuned);
    json_out_put_i64(out, "untimed", gpu->n_late);
    json_out_put_i64(out, "ahead", gpu->ahead);
}

int mlog_run_start(const struct mlog *log, const struct mlog_start *start, struct err *err)
{
    CLEANUP(strbuf) struct strbuf line;
    struct json_out out = start_line(&line, "run_start");
    json_out_put_text(&out, "version", REPERF_VERSION);
    json_out_put_text(&out, "model", start->model);
    json_out_put_text(&out, "device", start->device);
    json_out_put_text(&out, "backend", start->backend);
    json_out_put_text(&out, "precision", start->precision);
    json_out_put_text(&out, "dtype", dtype_name(start->dtype));
    json_out_put_i64(&out, "batch", start->batch);
    mlog_put_size(&out, &start->size);
    json_out_put_i64(&out, "steps", start->steps);
    json_out_put_i64(&out, "warmup_steps", start->warmup_steps);
    json_out_put_i64(&out, "ranks", start->n_ranks);
    json_out_put_i64(&out, "rank", log->rank);
    json_out_put_i64(&out, "global_batch", start->global_batch);
    json_out_put_text(&out, "comm", start->comm);
    json_out_key(&out, "sync_bn");
    json_out_bool(&out, start->has_sync_bn);
    json_out_put_i64(&out, "gradient_bytes", start->gradient_bytes);
    json_out_put_i64(&out, "threads", start->n_threads);
    json_out_put_i64(&out, "seed", (int64_t)start->seed);
    json_out_put_i64(&out, "parameters", start->parameters);
    json_out_put_text(&out, "data", start->data);
    json_out_put_f64(&out, "lr", start->lr);
    json_out_put_f64(&out, "momentum", start->momentum);
    json_out_put_f64(&out, "weight_decay", start->weight_decay);
    json_out_put_f64(&out, "label_smoothing", start->label_smoothing);
    json_out_key(&out, "synthetic");
    json_out_bool(&out, start->is_synthetic);
    if (start->packed) {
        put_data(&out, start->packed);
    }
    put_training(&out, &start->training);
    if (start->eval) {
        put_eval(&out, start->eval);
    }
    if (start->gpu) {
        put_gpu(&out, start->gpu);
    }
    return put_line(log, &line, err);
}

int mlog_step(const struct mlog *log, const struct mlog_step *step, struct err *err)
{
    CLEANUP(strbuf) struct strbuf line;
    struct json_out out = start_line(&line, "step");
    json_out_put_i64(&out, "step", step->step);
    json_out_put_i64(&out, "steps", step->steps);
    json_out_put_i64(&out, "rank", log->rank);
    json_out_put_f64(&out, "loss", step->loss);
    json_out_put_i64(&out, "step_time_ns", step->step_time_ns);
    json_out_put_f64(&out, "samples_per_s", step->samples_per_s);
    json_out_put_f64(&out, "lr", step->lr);
    if (step->is_packed) {
        json_out_put_i64(&out, "data_wait_ns", step->data_wait_ns);
        json_out_put_i64(&out, "epoch", step->epoch);
        json_out_put_i64(&out, "position", step->position);
    }
    if (step->is_scaled) {
        json_out_put_f64(&out, "loss_scale", step->loss_scale);
        json_out_key(&out, "skipped");
        json_out_bool(&out, step->is_skipped);
    }
    return put_line(log, &line, err);
}

int mlog_run_stop(const struct mlog *log, const struct mlog_stop *stop, struct err *err)
{
    CLEANUP(strbuf) struct strbuf line;
    struct json_out out = start_line(&line, "run_stop");
    json_out_put_i64(&out, "steps", stop->steps);
    json_out_put_i64(&out, "warmup_steps", stop->warmup_steps);
    json_out_put_i64(&out, "rank", log->rank);
    json_out_put_i64(&out, "elapsed_ns", stop->elapsed_ns);
    json_out_put_f64(&out, "samples_per_s", stop->samples_per_s);
    json_out_put_f64(&out, "loss_first", stop->loss_first);
    json_out_put_f64(&out, "loss_last", stop->loss_last);
    if (stop->is_packed) {
        json_out_put_i64(&out, "data_wait_ns", stop->data_wait_ns);
        json_out_put_i64(&out, "first_batch_ns", stop->first_batch_ns);
        json_out_put_i64(&out, "next_step", stop->next_step);
    }
    if (stop->peak_memory_bytes > 0) {
        json_out_put_i64(&out, "peak_memory_bytes", stop->peak_memory_bytes);
    }
    return put_line(log, &line, err);
}

int mlog_checkpoint(const struct mlog *log, const struct mlog_checkpoint *checkpoint,
                    struct err *err)
{
    CLEANUP(strbuf) struct strbuf line;
    struct json_out out = start_line(&line, "checkpoint");
    json_out_put_i64(&out, "rank", log->rank);
    json_out_put_i64(&out, "done_steps", checkpoint->step);
    json_out_put_text(&out, "sha256", checkpoint->sha256);
    json_out_put_i64(&out, "tensor_bytes", checkpoint->n_bytes);
    json_out_put_i64(&out, "elapsed_ns", checkpoint->elapsed_ns);
    return put_line(log, &line, err);
}

int mlog_eval(const struct mlog *log, const struct mlog_eval *eval, struct err *err)
{
    CLEANUP(strbuf) struct strbuf line;
    struct json_out out = start_line(&line, "eval");
    json_out_put_i64(&out, "step", eval->step);
    json_out_put_i64(&out, "rank", log->rank);
    json_out_put_text(&out, "metric", eval->metric);
    json_out_put_f64(&out, "value", eval->value);
    json_out_put_i64(&out, "samples", eval->n_samples);
    json_out_put_i64(&out, "counted", eval->n_counted);
    json_out_put_i64(&out, "unanswered", eval->n_unanswered);
    json_out_put_i64(&out, "eval_time_ns", eval->eval_time_ns);
    json_out_put_i64(&out, "elapsed_ns", eval->elapsed_ns);
    return put_line(log, &line, err);
}

int mlog_time_to_train(const struct mlog *log, const struct mlog_time_to_train *end,
                       struct err *err)
{
    CLEANUP(strbuf) struct strbuf line;
    struct json_out out = start_line(&line, "time_to_train");
    json_out_put_i64(&out, "step", end->step);
    json_out_put_i64(&out, "rank", log->rank);
    json_out_put_text(&out, "metric", end->metric);
    json_out_put_f64(&out, "target", end->target);
    put_bool(&out, "reached", end->is_reached);
    json_out_put_f64(&out, "value", end->value);
    json_out_put_i64(&out, "samples", end->n_samples);
    json_out_put_i64(&out, "elapsed_ns", end->elapsed_ns);
    return put_line(log, &line, err);
}

int mlog_fatal(const struct mlog *log, const char *device, const char *where, const char *what,
               struct err *err)
{
    CLEANUP(strbuf) struct strbuf line;
    struct json_out out = start_line(&line, "fatal");
    json_out_put_i64(&out, "rank", log->rank);
    json_out_put_text(&out, "device", device);
    json_out_put_text(&out, "where", where);
    json_out_put_text(&out, "what", what);
    return put_line(log, &line, err);
}

void fatal_stop(int rank, const char *device, const char *where, const char *what)
{
    const struct mlog log = {.fd = STDOUT_FILENO, .rank = rank};
    struct err err = {0};
    if (mlog_fatal(&log, device, where, what, &err) < 0) {
        fprintf(stderr, "reperf-train: %s: %s (%s)\n", where, what, err.msg);
    }
    _exit(70);
}
