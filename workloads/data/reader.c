/* SPDX-License-Identifier: Apache-2.0 */
/* The work is cut by samples: tasks are numbered step by step, sample by sample, and handed out in that order, each to
   the thread that asks next. A batch is ready when all its samples are. One mutex guards the counters; what a task writes
   is its own part of its batch. */
#include "base/base.h"

#include "data/reader.h"

#include "base/clock.h"
#include "data/resample.h"

#include <errno.h>
#include <pthread.h>

#define BUF_ALIGN      64
#define STOP_LOOK_NS   (100 * NS_PER_MS)
#define ADVISE_AHEAD   64 /* samples announced to the kernel before they are read */
#define N_TOKEN_ARRAYS 6

struct slot {
    float *input;
    uint8_t *raw; /* (batch, sample_bytes_max) */
    struct reader_image *images;
    int64_t *labels;
    int32_t *tokens;
    int64_t *samples;
    int64_t n_samples, n_done;
    struct err err; /* of the first bad sample in order */
    int64_t err_at;
};

struct epoch {
    int64_t number;
    struct order order;
};

struct worker {
    struct reader *reader; /* borrowed */
    pthread_t thread;
    uint8_t *buf; /* one sample as stored in the shard */
    struct resample scratch;
    struct epoch epoch;
};

struct reader {
    struct reader_opts opts;
    int64_t steps_per_epoch;
    struct slot slots[READER_BATCHES]; /* step s is in slot (s - first_step) % READER_BATCHES */
    struct worker *workers;
    int n_started;
    pthread_mutex_t lock; /* guards all below, and the counters of the slots */
    pthread_cond_t has_task, is_ready;
    int64_t task_step; /* from 0 = first_step: the next task to hand out */
    int64_t task_item;
    int64_t taken; /* steps given to the caller; the last one is still in use */
    bool is_stopping;
};

/* ---- what a step holds ---- */

int64_t reader_steps_per_epoch(const struct reader_opts *opts)
{
    int64_t global = opts->batch * opts->n_ranks;
    int64_t left = opts->is_evaluation ? global - 1 : 0;
    return (opts->pack->n_samples + left) / global;
}

/* Samples of this rank in a step: the whole batch, except at the end of an evaluation. */
static int64_t samples_of_step(const struct reader *reader, struct order_place place)
{
    const struct reader_opts *opts = &reader->opts;
    int64_t left = opts->pack->n_samples - place.position - opts->rank * opts->batch;
    return left < 0 ? 0 : left < opts->batch ? left : opts->batch;
}

static struct order_place place_of(const struct reader *reader, int64_t step)
{
    return order_place(reader->opts.first_step + step, reader->steps_per_epoch,
                       reader->opts.batch * reader->opts.n_ranks);
}

/* The sample of an item of a step, by an order that the caller keeps for the epoch it is in. */
static int64_t sample_at(const struct reader *reader, struct epoch *epoch, int64_t step,
                         int64_t item)
{
    const struct reader_opts *opts = &reader->opts;
    struct order_place place = place_of(reader, step);
    int64_t position = place.position + opts->rank * opts->batch + item;
    if (opts->is_evaluation) {
        return position;
    }
    if (epoch->number != place.epoch) {
        order_init(&epoch->order, (uint64_t)opts->pack->n_samples, opts->seed,
                   (uint64_t)place.epoch);
        epoch->number = place.epoch;
    }
    return (int64_t)order_at(&epoch->order, (uint64_t)position);
}

/* ---- a worker ---- */

static void copy_tokens(const struct reader_opts *opts, const struct pack_sample *sample,
                        int64_t item, int32_t *out)
{
    int64_t s = opts->pack->sequence;
    int64_t p = opts->pack->predictions;
    const int64_t lengths[N_TOKEN_ARRAYS] = {s, s, s, p, p, 1};
    const int32_t *from = sample->tokens;
    for (int i = 0; i < N_TOKEN_ARRAYS; i++) {
        memcpy(out + item * lengths[i], from, (size_t)lengths[i] * sizeof(*out));
        out += opts->batch * lengths[i];
        from += lengths[i];
    }
}

static void make_image(struct worker *worker, struct slot *slot, const struct pack_sample *sample,
                       int64_t item, uint64_t key)
{
    const struct reader_opts *opts = &worker->reader->opts;
    const struct augment_recipe *recipe = opts->recipe;
    int64_t plane = opts->height * opts->width;
    struct augment_size image = {sample->height, sample->width};
    struct augment_size out = {opts->height, opts->width};
    struct augment_plan plan = augment_plan(recipe, image, out, key);
    if (!sample->labels) {
        slot->labels[item] = sample->label;
    }
    if (opts->is_raw) {
        slot->images[item] = (struct reader_image){plan, image, sample->pixels, sample->labels};
        return;
    }
    struct resample_job job = {.plan = &plan, .image = image, .out = out};
    memcpy(job.mean, recipe->mean, sizeof(job.mean));
    memcpy(job.std, recipe->std, sizeof(job.std));
    resample_pixels(&worker->scratch, &job, sample->pixels, slot->input + item * 3 * plane);
    if (sample->labels) {
        resample_labels(&worker->scratch, &job, sample->labels, PACK_IGNORED,
                        slot->labels + item * plane);
    }
}

static int make_sample(struct worker *worker, struct slot *slot, int64_t step, int64_t item,
                       struct err *err)
{
    const struct reader *reader = worker->reader;
    const struct reader_opts *opts = &reader->opts;
    struct pack_sample sample;
    int64_t number = sample_at(reader, &worker->epoch, step, item);
    slot->samples[item] = number;
    uint8_t *buf = opts->is_raw ? slot->raw + item * opts->pack->sample_bytes_max : worker->buf;
    if (pack_read(opts->pack, number, buf, &sample, err) < 0) {
        return -1;
    }
    if (opts->pack->kind == SHARD_TOKENS) {
        copy_tokens(opts, &sample, item, slot->tokens);
        return 0;
    }
    uint64_t epoch = (uint64_t)place_of(reader, step).epoch;
    /* + 1: stream 0 of an epoch is its order's. */
    make_image(worker, slot, &sample, item, order_hash(opts->seed, epoch, (uint64_t)number + 1));
    return 0;
}

/* With the lock held. A step's slot is free when the caller is done with the step that used it before. */
static bool has_task(const struct reader *reader)
{
    int64_t oldest = reader->taken > 0 ? reader->taken - 1 : 0;
    return reader->task_step < reader->opts.n_steps && reader->task_step < oldest + READER_BATCHES;
}

/* With the lock held. */
static void advance_task(struct reader *reader)
{
    struct slot *slot = &reader->slots[reader->task_step % READER_BATCHES];
    if (++reader->task_item < slot->n_samples) {
        return;
    }
    reader->task_item = 0;
    reader->task_step++;
}

/* With the lock held, before a step's first task: a batch without samples is ready at once. */
static void begin_step(struct reader *reader)
{
    struct slot *slot = &reader->slots[reader->task_step % READER_BATCHES];
    slot->n_samples = samples_of_step(reader, place_of(reader, reader->task_step));
    slot->n_done = 0;
    slot->err = (struct err){0};
    slot->err_at = INT64_MAX;
}

/* Waits for a task. False: the reader is being closed, or every step is handed out. */
static bool take_task(struct reader *reader, int64_t *ret_step, int64_t *ret_item)
{
    bool has_one = false;
    pthread_mutex_lock(&reader->lock);
    while (!reader->is_stopping && reader->task_step < reader->opts.n_steps && !has_one) {
        if (!has_task(reader)) {
            pthread_cond_wait(&reader->has_task, &reader->lock);
            continue;
        }
        if (reader->task_item == 0) {
            begin_step(reader);
        }
        const struct slot *slot = &reader->slots[reader->task_step % READER_BATCHES];
        has_one = slot->n_samples > 0;
        *ret_step = reader->task_step;
        *ret_item = reader->task_item;
        advance_task(reader);
        if (!has_one) {
            pthread_cond_signal(&reader->is_ready);
        }
    }
    pthread_mutex_unlock(&reader->lock);
    return has_one;
}

static void finish_task(struct reader *reader, int64_t step, int64_t item, const struct err *err)
{
    struct slot *slot = &reader->slots[step % READER_BATCHES];
    pthread_mutex_lock(&reader->lock);
    if (err->code != ERR_NONE && item < slot->err_at) {
        slot->err = *err;
        slot->err_at = item;
    }
    if (++slot->n_done == slot->n_samples) {
        pthread_cond_signal(&reader->is_ready);
    }
    pthread_mutex_unlock(&reader->lock);
}

/* Tells the kernel of a sample some tasks ahead, whichever thread will read it. */
static void advise(struct worker *worker, struct epoch *ahead, int64_t step, int64_t item)
{
    const struct reader *reader = worker->reader;
    int64_t far = item + ADVISE_AHEAD;
    int64_t far_step = step + far / reader->opts.batch;
    int64_t far_item = far % reader->opts.batch;
    if (far_step < reader->opts.n_steps &&
        far_item < samples_of_step(reader, place_of(reader, far_step))) {
        pack_advise(reader->opts.pack, sample_at(reader, ahead, far_step, far_item));
    }
}

static void *run_worker(void *arg)
{
    struct worker *worker = arg;
    struct epoch ahead = {.number = -1};
    int64_t step;
    int64_t item;
    while (take_task(worker->reader, &step, &item)) {
        struct err err = {0};
        struct slot *slot = &worker->reader->slots[step % READER_BATCHES];
        advise(worker, &ahead, step, item);
        (void)!make_sample(worker, slot, step, item, &err);
        finish_task(worker->reader, step, item, &err);
    }
    return NULL;
}

/* ---- the caller's side ---- */

static int count_product(const int64_t *factors, int n, int64_t *ret_bytes, struct err *err)
{
    int64_t bytes = 1;
    for (int i = 0; i < n; i++) {
        if (__builtin_mul_overflow(bytes, factors[i], &bytes)) {
            return err_set(err, ERR_USAGE, "a batch is too large for any machine");
        }
    }
    *ret_bytes = bytes;
    return 0;
}

struct slot_bytes {
    int64_t input, labels, tokens, raw;
};

static int slot_bytes(const struct reader_opts *opts, struct slot_bytes *ret_bytes, struct err *err)
{
    struct slot_bytes bytes = {0};
    const struct pack *pack = opts->pack;
    bool is_dense = pack->kind == SHARD_SEGMENTS;
    int64_t per_sample = 3 * pack->sequence + 2 * pack->predictions + 1;
    const int64_t input[] = {opts->batch, 3, opts->height, opts->width, sizeof(float)};
    const int64_t labels[] = {opts->batch, is_dense ? opts->height : 1, is_dense ? opts->width : 1,
                              sizeof(int64_t)};
    const int64_t tokens[] = {opts->batch, per_sample, sizeof(int32_t)};
    const int64_t raw[] = {opts->batch, pack->sample_bytes_max};
    bool has_labels = !opts->is_raw || !is_dense;
    int result = pack->kind == SHARD_TOKENS ? count_product(tokens, 3, &bytes.tokens, err)
                 : opts->is_raw             ? count_product(raw, 2, &bytes.raw, err)
                                            : count_product(input, 5, &bytes.input, err);
    if (result == 0 && pack->kind != SHARD_TOKENS && has_labels) {
        result = count_product(labels, 4, &bytes.labels, err);
    }
    if (result == 0) {
        *ret_bytes = bytes;
    }
    return result;
}

int reader_bytes(const struct reader_opts *opts, int64_t *ret_bytes, struct err *err)
{
    struct slot_bytes bytes;
    if (slot_bytes(opts, &bytes, err) < 0) {
        return -1;
    }
    int64_t each = 0;
    int64_t per_item =
        (int64_t)sizeof(int64_t) + (opts->is_raw ? (int64_t)sizeof(struct reader_image) : 0);
    const int64_t indices[] = {opts->batch, per_item};
    int64_t index_bytes = 0;
    if (count_product(indices, 2, &index_bytes, err) < 0 ||
        __builtin_add_overflow(bytes.input, bytes.labels, &each) ||
        __builtin_add_overflow(each, bytes.raw, &each) ||
        __builtin_add_overflow(each, bytes.tokens + index_bytes, &each) ||
        __builtin_mul_overflow(each, READER_BATCHES, &each)) {
        return err->code != ERR_NONE ? -1 : err_set(err, ERR_USAGE, "batches are too large");
    }
    *ret_bytes = each;
    return 0;
}

static int check_opts(const struct reader_opts *opts, struct err *err)
{
    const struct pack *pack = opts->pack;
    ASSERT(opts->batch > 0 && opts->n_ranks > 0 && opts->rank >= 0 && opts->rank < opts->n_ranks);
    ASSERT(opts->n_steps > 0 && opts->first_step >= 0);
    ASSERT(opts->n_workers > 0 && opts->n_workers <= READER_WORKERS_MAX);
    ASSERT(!opts->is_raw || pack->kind != SHARD_TOKENS);
    ASSERT(pack->kind == SHARD_TOKENS || (opts->recipe && opts->height > 0 && opts->width > 0));
    int64_t global = 0;
    if (__builtin_mul_overflow(opts->batch, opts->n_ranks, &global) || global > PACK_SAMPLES_MAX ||
        (!opts->is_evaluation && reader_steps_per_epoch(opts) == 0)) {
        return err_set(err, ERR_USAGE,
                       "%s: %" PRId64 " samples are less than one batch of %" PRId64
                       " on each of %" PRId64 " ranks",
                       pack->path, pack->n_samples, opts->batch, opts->n_ranks);
    }
    if (opts->first_step > INT64_MAX / global - opts->n_steps ||
        (opts->is_evaluation && opts->first_step + opts->n_steps > reader_steps_per_epoch(opts))) {
        return err_set(err, ERR_USAGE, "step %" PRId64 " and %" PRId64 " more are past the end",
                       opts->first_step, opts->n_steps);
    }
    return 0;
}

static void *room(int64_t bytes)
{
    void *ptr = bytes > 0 ? aligned_alloc(BUF_ALIGN,
                                          ((size_t)bytes + BUF_ALIGN - 1) / BUF_ALIGN * BUF_ALIGN)
                          : NULL;
    ASSERT(ptr || bytes == 0); /* out of memory ends the process; the sizes were checked */
    return ptr;
}

static int take_memory(struct reader *reader, struct err *err)
{
    struct slot_bytes bytes;
    if (slot_bytes(&reader->opts, &bytes, err) < 0) {
        return -1;
    }
    for (int i = 0; i < READER_BATCHES; i++) {
        struct slot *slot = &reader->slots[i];
        slot->input = room(bytes.input);
        slot->labels = room(bytes.labels);
        slot->tokens = room(bytes.tokens);
        slot->raw = room(bytes.raw);
        slot->images =
            reader->opts.is_raw ? xcalloc((size_t)reader->opts.batch, sizeof(*slot->images)) : NULL;
        slot->samples = xcalloc((size_t)reader->opts.batch, sizeof(int64_t));
        if (reader->opts.is_evaluation &&
            slot->input) { /* a short batch ends in zeros, or in old samples */
            memset(slot->input, 0, (size_t)bytes.input);
        }
        if (reader->opts.is_evaluation && slot->labels) {
            memset(slot->labels, 0, (size_t)bytes.labels);
        }
    }
    return 0;
}

static void init_sync(struct reader *reader)
{
    pthread_condattr_t attr;
    pthread_mutex_init(&reader->lock, NULL);
    pthread_cond_init(&reader->has_task, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&reader->is_ready, &attr);
    pthread_condattr_destroy(&attr);
}

/* Signals are the caller's: the threads start with all of them blocked. */
static int start_workers(struct reader *reader, struct err *err)
{
    sigset_t all;
    sigset_t before;
    int status = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int i = 0; i < reader->opts.n_workers && status == 0; i++) {
        struct worker *worker = &reader->workers[i];
        worker->reader = reader;
        worker->epoch.number = -1;
        worker->buf = room(reader->opts.pack->sample_bytes_max);
        status = pthread_create(&worker->thread, NULL, run_worker, worker);
        reader->n_started += status == 0 ? 1 : 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status == 0
               ? 0
               : err_set(err, ERR_WORKLOAD, "reader thread %d of %d: %s", reader->n_started + 1,
                         reader->opts.n_workers, err_errno_text(status));
}

int reader_open(struct reader **ret_reader, const struct reader_opts *opts, struct err *err)
{
    if (check_opts(opts, err) < 0) {
        return -1;
    }
    struct reader *reader = xcalloc(1, sizeof(*reader));
    reader->opts = *opts;
    reader->steps_per_epoch = reader_steps_per_epoch(opts);
    reader->workers = xcalloc((size_t)opts->n_workers, sizeof(*reader->workers));
    init_sync(reader);
    if (take_memory(reader, err) < 0 || start_workers(reader, err) < 0) {
        reader_close(reader);
        return -1;
    }
    *ret_reader = reader;
    return 0;
}

/* With the lock held: waits until the stop flag is due to be checked again. */
static void wait_a_little(struct reader *reader)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + STOP_LOOK_NS;
    until.tv_sec += ns / NS_PER_S;
    until.tv_nsec = ns % NS_PER_S;
    (void)pthread_cond_timedwait(&reader->is_ready, &reader->lock, &until);
}

static void describe_batch(const struct reader *reader, const struct slot *slot, int64_t step,
                           struct reader_batch *ret_batch)
{
    const struct reader_opts *opts = &reader->opts;
    int64_t s = opts->pack->sequence;
    int64_t p = opts->pack->predictions;
    const int64_t lengths[N_TOKEN_ARRAYS] = {s, s, s, p, p, 1};
    const int32_t *tokens = slot->tokens;
    *ret_batch = (struct reader_batch){.step = opts->first_step + step,
                                       .place = place_of(reader, step),
                                       .n_samples = slot->n_samples,
                                       .samples = slot->samples,
                                       .input = slot->input,
                                       .labels = slot->labels,
                                       .images = slot->images};
    for (int i = 0; tokens && i < N_TOKEN_ARRAYS; i++) {
        ret_batch->tokens[i] = tokens;
        tokens += opts->batch * lengths[i];
    }
}

int reader_next(struct reader *reader, const volatile sig_atomic_t *stop,
                struct reader_batch *ret_batch, struct err *err)
{
    int64_t step = reader->taken; /* only this thread changes it */
    struct slot *slot = &reader->slots[step % READER_BATCHES];
    ASSERT(step < reader->opts.n_steps);
    pthread_mutex_lock(&reader->lock);
    /* The previous batch becomes a free slot only when this one is complete: an error leaves everything as it is. */
    bool is_stopped = stop && *stop != 0;
    while (!is_stopped && !(reader->task_step > step && slot->n_done == slot->n_samples)) {
        wait_a_little(reader);
        is_stopped = stop && *stop != 0;
    }
    struct err found = is_stopped ? (struct err){0} : slot->err;
    if (!is_stopped && found.code == ERR_NONE) {
        reader->taken++;
        pthread_cond_broadcast(&reader->has_task);
    }
    pthread_mutex_unlock(&reader->lock);
    if (is_stopped) {
        return err_set(err, ERR_INTERRUPTED, "signal %d while waiting for data", (int)*stop);
    }
    if (found.code != ERR_NONE) {
        return err_set(err, found.code, "%s", found.msg);
    }
    describe_batch(reader, slot, step, ret_batch);
    return 0;
}

void reader_close(struct reader *reader)
{
    if (!reader) {
        return;
    }
    pthread_mutex_lock(&reader->lock);
    reader->is_stopping = true;
    pthread_cond_broadcast(&reader->has_task);
    pthread_mutex_unlock(&reader->lock);
    for (int i = 0; i < reader->n_started; i++) {
        pthread_join(reader->workers[i].thread, NULL);
    }
    for (int i = 0; i < reader->opts.n_workers; i++) {
        free(reader->workers[i].buf);
        resample_release(&reader->workers[i].scratch);
    }
    for (int i = 0; i < READER_BATCHES; i++) {
        free(reader->slots[i].input);
        free(reader->slots[i].labels);
        free(reader->slots[i].tokens);
        free(reader->slots[i].raw);
        free(reader->slots[i].images);
        free(reader->slots[i].samples);
    }
    pthread_cond_destroy(&reader->is_ready);
    pthread_cond_destroy(&reader->has_task);
    pthread_mutex_destroy(&reader->lock);
    free(reader->workers);
    free(reader);
}
