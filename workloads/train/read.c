/* SPDX-License-Identifier: Apache-2.0 */
/* --data-only: the reader alone, to see whether it or the network is slower. */
#include "base/base.h"

#include "train/feed.h"

#include "base/fs.h"
#include "core/json_writer.h"

#define DOCUMENT_BYTES_MAX 4096

static void put_document(struct json_out *out, const struct feed *feed, int64_t elapsed_ns)
{
    const struct train_opts *opts = feed->opts;
    int64_t samples = opts->steps * opts->rule.n_micro * opts->batch;
    json_out_open(out, '{');
    json_out_put_i64(out, "schema_version", 1);
    json_out_put_text(out, "data", feed->name);
    json_out_put_text(out, "pack_sha256", feed->pack.sha256);
    if (feed->pack.kind != SHARD_TOKENS) {
        json_out_put_text(out, "augment", augment_name(feed->recipe.kind));
    }
    json_out_put_i64(out, "batch", opts->batch);
    mlog_put_size(out, &opts->size);
    json_out_put_i64(out, "workers", opts->n_workers);
    json_out_put_i64(out, "steps", opts->steps);
    json_out_put_i64(out, "samples", samples);
    json_out_put_i64(out, "first_batch_ns", feed->first_batch_ns);
    json_out_put_i64(out, "elapsed_ns", elapsed_ns);
    json_out_put_f64(out, "samples_per_s",
                     (double)samples * (double)NS_PER_S /
                         (double)(elapsed_ns > 0 ? elapsed_ns : 1));
    json_out_close(out, '}');
}

int train_read(const struct train_opts *opts, struct clock_src clock, int fd, const stop_flag *stop,
               struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(cpu) struct cpu cpu = {0};
    CLEANUP(net) struct net net = {0};
    CLEANUP(feed) struct feed feed = {0};
    CLEANUP(strbuf) struct strbuf text;
    struct backend backend;
    struct json_out out = {.buf = &text};
    strbuf_init(&text, DOCUMENT_BYTES_MAX);
    if (cpu_init(&cpu, opts->flavour, (int)opts->n_threads, &backend, err) < 0 ||
        train_plan(opts, &arena, &backend, NULL, &net, err) < 0 ||
        feed_open(&feed, opts, net.graph, clock, err) < 0) {
        return -1;
    }
    int64_t start_ns = clock.mono_ns(clock.ctx);
    if (feed_start(&feed, err) < 0) {
        return -1;
    }
    for (int64_t i = 0; i < opts->steps * opts->rule.n_micro; i++) {
        struct mlog_step step = {.step = i / opts->rule.n_micro + 1};
        if (feed_next(&feed, NULL, i % opts->rule.n_micro, stop, &step, err) < 0) {
            return err_wrap(err, "step %" PRId64, step.step);
        }
    }
    put_document(&out, &feed, clock.mono_ns(clock.ctx) - start_ns);
    strbuf_add_char(&text, '\n');
    ASSERT(!text.is_full);
    return fs_write_all(fd, text.ptr, text.len, "standard output", err);
}
