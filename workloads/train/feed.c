/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "train/feed.h"

#include "models/tokens.h"

#include <sys/resource.h>

/* A shard keeps one file open; the soft limit is often 1024 where the hard one is far higher. */
static void allow_many_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit); /* if it stays, opening a shard reports it */
    }
}

/* The network's number of tokens and predictions a sample; the tokens themselves are checked as they are read. */
static int check_tokens(const struct feed *feed, struct err *err)
{
    const struct pack *pack = &feed->pack;
    const struct train_opts *opts = feed->opts;
    if (pack->kind != SHARD_TOKENS) {
        return err_set(err, ERR_USAGE, "kind %s, but %s trains on %s", shard_kind_name(pack->kind),
                       opts->model->name, shard_kind_name(SHARD_TOKENS));
    }
    if (pack->sequence != opts->size.sequence || pack->predictions != opts->size.predictions) {
        return err_set(err, ERR_USAGE,
                       "sequences of %" PRId64 " with %" PRId64
                       " predictions, but --sequence %" PRId64 " --predictions %" PRId64,
                       pack->sequence, pack->predictions, opts->size.sequence,
                       opts->size.predictions);
    }
    return 0;
}

/* The kind of labels, their number and the ignored one must be the model's. */
static int check_model(const struct feed *feed, const struct graph *graph, struct err *err)
{
    const struct pack *pack = &feed->pack;
    const struct model *model = feed->opts->model;
    if (model->kind == MODEL_TOKENS) {
        return check_tokens(feed, err);
    }
    bool is_dense = graph->values[graph_find(graph, "labels")].shape.n_dims == 3;
    enum shard_kind wanted = is_dense ? SHARD_SEGMENTS : SHARD_CLASSES;
    if (pack->kind != wanted) {
        return err_set(err, ERR_USAGE, "kind %s, but %s trains on %s", shard_kind_name(pack->kind),
                       model->name, shard_kind_name(wanted));
    }
    if (pack->n_classes > model->n_classes) {
        return err_set(err, ERR_USAGE, "%" PRId64 " classes, but %s has %" PRId64, pack->n_classes,
                       model->name, model->n_classes);
    }
    if (is_dense && model->ignore_label != PACK_IGNORED) {
        return err_set(err, ERR_USAGE, "pixels of label %d are ignored, but not by %s",
                       PACK_IGNORED, model->name);
    }
    return 0;
}

/* As in the configuration that the model comes from. */
static void choose_recipe(struct feed *feed)
{
    const struct train_opts *opts = feed->opts;
    struct str model = str_of(opts->model->name);
    if (opts->model->kind == MODEL_TOKENS) {
        return; /* tokens are not augmented */
    }
    feed->recipe = feed->pack.kind == SHARD_CLASSES     ? augment_classes
                   : str_ends(model, STR_LIT("_mmseg")) ? augment_segments_mmseg
                                                        : augment_segments;
    if (opts->has_mean) {
        memcpy(feed->recipe.mean, opts->mean, sizeof(opts->mean));
    }
    if (opts->has_std) {
        memcpy(feed->recipe.std, opts->std, sizeof(opts->std));
    }
    if (opts->is_inference) {
        feed->recipe.kind = AUGMENT_CENTRE_CROP;
    }
}

static int open_packed(struct feed *feed, const struct graph *graph, struct err *err)
{
    const struct train_opts *opts = feed->opts;
    allow_many_files();
    if (pack_open(&feed->pack, opts->data_path, err) < 0) {
        return -1;
    }
    feed->is_packed = true;
    feed->name = arena_printf(&feed->pack.arena, "%s%s", feed->pack.dataset,
                              feed->pack.is_synthetic ? ".synthetic" : "");
    choose_recipe(feed);
    feed->reader_opts = (struct reader_opts){.pack = &feed->pack,
                                             .recipe = &feed->recipe,
                                             .batch = opts->batch,
                                             .height = opts->size.height,
                                             .width = opts->size.width,
                                             .rank = opts->ranks.rank,
                                             .n_ranks = opts->ranks.n_ranks,
                                             .seed = (uint64_t)opts->data_seed,
                                             .first_step = opts->start_step * opts->rule.n_micro,
                                             .n_steps = opts->steps * opts->rule.n_micro,
                                             .n_workers = (int)opts->n_workers,
                                             .is_raw = opts->is_augmented_on_device,
                                             .is_evaluation = opts->is_inference};
    if (check_model(feed, graph, err) < 0) {
        return err_wrap(err, "%s %s", opts->is_inference ? "--eval-data" : "--data",
                        opts->data_path);
    }
    if (opts->is_inference) {
        feed->reader_opts.n_steps = reader_steps_per_epoch(&feed->reader_opts);
    }
    if (reader_bytes(&feed->reader_opts, &feed->bytes, err) < 0) {
        return -1;
    }
    if (opts->is_augmented_on_device) {
        feed->cuts = xcalloc((size_t)opts->batch, sizeof(*feed->cuts));
        feed->bytes += opts->batch * (int64_t)sizeof(*feed->cuts);
    }
    if (opts->dtype == DT_F64 && opts->model->kind == MODEL_IMAGES) {
        int64_t count = opts->batch * 3 * opts->size.height *
                        opts->size.width; /* reader_bytes checked that it fits */
        feed->wide = xcalloc((size_t)count, sizeof(*feed->wide));
        feed->bytes += count * (int64_t)sizeof(*feed->wide);
    }
    return 0;
}

int feed_open(struct feed *feed, const struct train_opts *opts, const struct graph *graph,
              struct clock_src clock, struct err *err)
{
    *feed = (struct feed){.opts = opts, .clock = clock, .open_ns = clock.mono_ns(clock.ctx)};
    feed->name = synthetic_name(opts);
    return opts->data_path ? open_packed(feed, graph, err) : 0;
}

int feed_plan(const struct feed *feed, struct net *net, struct err *err)
{
    if (!feed->cuts) {
        return 0;
    }
    ASSERT(net_takes_images(net));
    return net_open_images(net, feed->pack.sample_bytes_max, err);
}

int feed_start(struct feed *feed, struct err *err)
{
    return feed->is_packed ? reader_open(&feed->reader, &feed->reader_opts, err) : 0;
}

void feed_stop(struct feed *feed)
{
    reader_close(feed->reader);
    feed->reader = NULL;
}

/* A shard's 32-bit values are 64-bit in the network. A token for which the network has no row is an error of the sample. */
static int write_tokens(const struct feed *feed, struct net *net, const struct reader_batch *batch,
                        struct err *err)
{
    const struct train_opts *opts = feed->opts;
    const struct token_form form = {opts->size.sequence, opts->size.predictions,
                                    opts->model->n_classes};
    for (enum token_part part = TOKENS_IDS; part < TOKEN_PARTS; part++) {
        int64_t each = token_part_count(&form, part);
        CLEANUP(free) int64_t *wide = xcalloc((size_t)(opts->batch * each), sizeof(*wide));
        for (int64_t i = 0; i < batch->n_samples * each; i++) {
            wide[i] = batch->tokens[part][i];
        }
        for (int64_t n = 0; n < batch->n_samples; n++) {
            if (tokens_within(&form, part, wide + n * each, each, err) < 0) {
                return err_wrap(err, "%s, sample %" PRId64, opts->data_path, batch->samples[n]);
            }
        }
        net_write(net, graph_find(net->graph, token_part_name(part)), wide);
    }
    return 0;
}

static struct image_cut cut_of(const struct reader_image *image)
{
    const struct augment_plan *plan = &image->plan;
    return (struct image_cut){.pixels = image->pixels,
                              .labels = image->labels,
                              .height = image->size.height,
                              .width = image->size.width,
                              .src_y = plan->src_y,
                              .src_x = plan->src_x,
                              .src_h = plan->src_h,
                              .src_w = plan->src_w,
                              .res_h = plan->res_h,
                              .res_w = plan->res_w,
                              .off_y = plan->off_y,
                              .off_x = plan->off_x,
                              .is_flipped = plan->is_flipped,
                              .is_antialiased = plan->is_antialiased};
}

static void write_images(struct feed *feed, struct net *net, const struct reader_batch *batch)
{
    const struct reader_opts *opts = &feed->reader_opts;
    int labels = graph_find(net->graph, "labels");
    bool is_dense = feed->pack.kind == SHARD_SEGMENTS;
    struct image_batch images = {.images = feed->cuts,
                                 .n = opts->batch,
                                 .height = opts->height,
                                 .width = opts->width,
                                 .ignored = PACK_IGNORED};
    memcpy(images.mean, feed->recipe.mean, sizeof(images.mean));
    memcpy(images.std, feed->recipe.std, sizeof(images.std));
    for (int64_t i = 0; i < opts->batch; i++) {
        feed->cuts[i] = cut_of(&batch->images[i]);
    }
    net_write_images(net, graph_find(net->graph, "input"), is_dense ? labels : NO_VALUE, &images);
    if (!is_dense) {
        net_write(net, labels, batch->labels);
    }
}

static void write_batch(struct feed *feed, struct net *net, const struct reader_batch *batch)
{
    int input = graph_find(net->graph, "input");
    int64_t count = shape_count(&net->graph->values[input].shape);
    if (feed->wide) {
        for (int64_t i = 0; i < count; i++) {
            feed->wide[i] = (double)batch->input[i];
        }
    }
    net_write(net, input, feed->wide ? (const void *)feed->wide : batch->input);
    net_write(net, graph_find(net->graph, "labels"), batch->labels);
}

/* The same batch stays in place; several batches of one step have to be made again in each step. */
bool feed_makes(const struct feed *feed, int64_t step)
{
    const struct train_opts *opts = feed->opts;
    return !feed->is_packed && (step == 1 || opts->is_fresh_data || opts->rule.n_micro > 1);
}

static void make_batch(const struct feed *feed, struct net *net, int64_t step, int64_t micro)
{
    const struct train_opts *opts = feed->opts;
    if (feed_makes(feed, step)) {
        int64_t idx = opts->is_fresh_data ? opts->start_step + step - 1 : 0;
        const struct synthetic what = {.seed = (uint64_t)opts->seed,
                                       .idx = idx,
                                       .micro = micro,
                                       .n_micro = opts->rule.n_micro,
                                       .is_learnable = opts->is_learnable};
        synthetic_micro(net, opts->model, &what);
    }
}

int feed_next(struct feed *feed, struct net *net, int64_t micro, const stop_flag *stop,
              struct mlog_step *ret_step, struct err *err)
{
    struct reader_batch batch;
    feed->n_samples = feed->opts->batch;
    if (!feed->is_packed) {
        make_batch(feed, net, ret_step->step, micro);
        return 0;
    }
    int64_t start_ns = feed->clock.mono_ns(feed->clock.ctx);
    if (reader_next(feed->reader, stop, &batch, err) < 0) {
        return -1;
    }
    int64_t end_ns = feed->clock.mono_ns(feed->clock.ctx);
    feed->n_samples = batch.n_samples;
    if (feed->first_batch_ns == 0) {
        feed->first_batch_ns = end_ns - feed->open_ns;
    }
    if (net && feed->opts->model->kind == MODEL_TOKENS) {
        if (write_tokens(feed, net, &batch, err) < 0) {
            return -1;
        }
    } else if (net && feed->cuts) {
        write_images(feed, net, &batch);
    } else if (net) {
        write_batch(feed, net, &batch);
    }
    ret_step->is_packed = true;
    ret_step->data_wait_ns += end_ns - start_ns;
    if (micro == 0) {
        ret_step->epoch = batch.place.epoch;
        ret_step->position = batch.place.position;
    }
    return 0;
}

struct mlog_data feed_facts(const struct feed *feed)
{
    const struct reader_opts *opts = &feed->reader_opts;
    int64_t per_epoch = reader_steps_per_epoch(opts);
    struct mlog_data facts = {
        .split = feed->pack.split,
        .n_samples = feed->pack.n_samples,
        .pack_sha256 = feed->pack.sha256,
        .seed = opts->seed,
        .n_workers = opts->n_workers,
        .start_step = feed->opts->start_step,
        .steps_per_epoch = per_epoch / feed->opts->rule.n_micro,
        .epoch = opts->first_step / per_epoch,
        .augment = feed->pack.kind == SHARD_TOKENS ? NULL : augment_name(feed->recipe.kind),
        .augment_on = feed->cuts ? "device" : "host",
    };
    memcpy(facts.mean, feed->recipe.mean, sizeof(facts.mean));
    memcpy(facts.std, feed->recipe.std, sizeof(facts.std));
    return facts;
}

void feed_release(struct feed *feed)
{
    reader_close(feed->reader);
    free(feed->wide);
    free(feed->cuts);
    if (feed->is_packed) {
        pack_release(&feed->pack);
    }
    *feed = (struct feed){0};
}
