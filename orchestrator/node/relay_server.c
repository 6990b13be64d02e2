/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "node/relay_server.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "node/relay_impl.h"

#define THREADS_MIN 2 /* one hashes, one writes */
#define THREADS_MAX 8

int64_t relay_now_ns(const struct relay *relay)
{
    return relay->opts->clock.mono_ns(relay->opts->clock.ctx);
}

int relay_say(const struct relay *relay, const struct relay_line *line, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text;
    strbuf_init(&text, RELAY_LINE_MAX);
    relay_line_write(line, &text);
    return fs_write_all(relay->opts->out_fd, text.ptr, text.len, "the orchestrator", err);
}

int relay_beat(struct relay *relay, struct err *err)
{
    int64_t now_ns = relay_now_ns(relay);
    if (now_ns - relay->beat_ns < RELAY_BEAT_NS) {
        return 0;
    }
    relay->beat_ns = now_ns;
    return relay_say(relay, &(struct relay_line){.word = RELAY_AT, .a = relay->received_bytes},
                     err);
}

static int read_order(struct relay *relay, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text;
    char chunk[65536];
    ssize_t got;
    strbuf_init(&text, RELAY_ORDER_MAX);
    while ((got = read(relay->opts->in_fd, chunk, sizeof(chunk))) != 0) {
        if (got < 0 && errno != EINTR) {
            return err_set(err, ERR_IO, "read the order: %s", err_errno_text(errno));
        }
        strbuf_add(&text, chunk, got > 0 ? (size_t)got : 0);
        if (text.is_full) {
            return err_set(err, ERR_PARSE, "order: longer than %u bytes", RELAY_ORDER_MAX);
        }
    }
    return relay_order_parse(&relay->arena, strbuf_str(&text), &relay->order, err);
}

static int start(struct relay *relay, struct err *err)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int feed_fd = relay->opts->feed_fd;
    if (feed_fd >= 0 && fcntl(feed_fd, F_SETFL, O_NONBLOCK) < 0) {
        return err_set(err, ERR_INTERNAL, "fcntl: %s", err_errno_text(errno));
    }
    if (read_order(relay, err) < 0) {
        return -1;
    }
    relay->is_right = arena_array(&relay->arena, uint8_t, relay->order.n_files + 1);
    relay->root_fds = arena_array(&relay->arena, int, relay->order.n_items);
    for (size_t idx = 0; idx < relay->order.n_items; idx++) {
        relay->root_fds[idx] = -1;
    }
    relay->n_threads = cores < THREADS_MIN   ? THREADS_MIN
                       : cores > THREADS_MAX ? THREADS_MAX
                                             : (size_t)cores;
    if (pool_new(relay->n_threads, &relay->pool, err) < 0) {
        return -1;
    }
    return relay->opts->cache_path
               ? digest_cache_open(relay->opts->cache_path, relay->opts->clock, &relay->cache, err)
               : 0;
}

static int make_empty_files(struct relay *relay, struct err *err)
{
    for (size_t idx = 0; idx < relay->order.n_files; idx++) {
        if (!relay->is_right[idx] && relay->order.files[idx].size_bytes == 0 &&
            relay_make_empty(relay, idx, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int serve(struct relay *relay, struct err *err)
{
    struct relay_line complete = {.word = RELAY_COMPLETE};
    if (start(relay, err) < 0 || relay_look(relay, err) < 0 || relay_check_disk(relay, err) < 0 ||
        make_empty_files(relay, err) < 0) {
        return -1;
    }
    if (relay->n_right < relay->order.n_files && relay_take_streams(relay, err) < 0) {
        return -1;
    }
    if (relay_sync(relay, err) < 0) {
        return -1;
    }
    complete.b = relay->there_bytes;
    return relay_say(relay, &complete, err);
}

static void release(struct relay *relay)
{
    struct err ignored = {0};
    pool_free(relay->pool);
    fd_close(&relay->next_fd);
    /* A loss costs time at the next start, nothing else. */
    if (relay->cache && digest_cache_save(relay->cache, &ignored) < 0) {
        log_line(LOG_WARN, "%s", ignored.msg);
    }
    digest_cache_free(relay->cache);
    for (size_t idx = 0; relay->root_fds && idx < relay->order.n_items; idx++) {
        if (relay->root_fds[idx] >= 0) {
            (void)unlinkat(relay->root_fds[idx], RELAY_FOLDER, AT_REMOVEDIR); /* if it is empty */
            fd_close(&relay->root_fds[idx]);
        }
    }
    arena_release(&relay->arena);
}

int relay_serve(const struct relay_opts *opts, struct err *err)
{
    struct relay relay = {.opts = opts, .next_fd = -1};
    struct err unheard = {0};
    int result = serve(&relay, err);
    if (result < 0 && err->code != ERR_DISK) {
        struct relay_line fail = {
            .word = RELAY_FAIL, .a = (uint64_t)err->code, .text = str_of(err->msg)};
        if (relay_say(&relay, &fail, &unheard) < 0) {
            log_line(LOG_DEBUG, "%s", unheard.msg);
        }
    }
    release(&relay);
    return result;
}
