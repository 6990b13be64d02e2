/* SPDX-License-Identifier: Apache-2.0 */
/* Sending. One stream goes over a chain of the nodes that lack something, from one to the next; it holds what any of its members
   lacks, and a member that has a file already only passes it on. A thread of the pool sends it to the first.

     waiting --all nodes wait or are over--> sending --its end was sent, or it broke--> over

   A relay takes one stream. One that ends without having everything, because a connection broke or a file came damaged, is
   followed by another, which continues what there is; once the chain has begun, that one gets its stream from here by SSH, and
   so does each member behind a broken link. A relay that ends there by itself and gives no reason was killed, by a person or for
   its memory: it is not started again (has_died). */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "fleet/stage_impl.h"
#include "sys/relay_net.h"

#define TICK_MS 500

/* $1: reperf-node there, $2: the work folder. */
static const char RELAY[] = "exec \"$1\" relay \"$2\" 2>/dev/null\n";

/* ---- the stream ---- */

void stage_stream_end(struct staging *staging, struct stage_stream *stream)
{
    staging->report.head_bytes += stream->sent_bytes;
    fd_close(&stream->fd);
    *stream = (struct stage_stream){.fd = -1};
}

static int begin_file(const struct staging *staging, struct stage_stream *stream,
                      struct strbuf *out, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    while (stream->file < staging->order.n_files && !stream->is_wanted[stream->file]) {
        stream->file++;
    }
    stream->is_over = stream->file == staging->order.n_files;
    uint64_t number = stream->is_over ? RELAY_END : stream->file;
    for (size_t idx = 0; idx < RELAY_HEAD_BYTES; idx++) {
        strbuf_add_char(out, (char)(number >> (8 * idx)));
    }
    if (stream->is_over) {
        return 0;
    }
    const char *path = stage_source_path(staging, &arena, stream->file);
    stream->left_bytes = staging->order.files[stream->file].size_bytes;
    stream->fd = open(path, O_RDONLY | O_CLOEXEC);
    return stream->fd < 0 ? err_errno(err, "open", path) : 0;
}

static int add_piece(const struct staging *staging, struct stage_stream *stream, struct strbuf *out,
                     struct err *err)
{
    char bytes[STAGE_FEED_BYTES];
    if (stream->fd < 0 && begin_file(staging, stream, out, err) < 0) {
        return -1;
    }
    size_t most = stream->left_bytes < sizeof(bytes) ? (size_t)stream->left_bytes : sizeof(bytes);
    size_t len = 0;
    if (stream->is_over) {
        return 0;
    }
    const char *path = staging->order.files[stream->file].path;
    if (fs_fill(stream->fd, bytes, most, path, &len, err) < 0) {
        return -1;
    }
    if (len < most) {
        return err_set(err, ERR_INTEGRITY, "%s: it became shorter while it was sent", path);
    }
    strbuf_add(out, bytes, len);
    stream->left_bytes -= len;
    stream->sent_bytes += len;
    if (stream->left_bytes == 0) {
        fd_close(&stream->fd);
        stream->file++;
    }
    return 0;
}

/* Appends what comes next until out has enough, or the stream is over. It fails where a file here has a fault. */
static int stream_fill(const struct staging *staging, struct stage_stream *stream,
                       struct strbuf *out, struct err *err)
{
    int result = 0;
    while (result == 0 && !stream->is_over && out->len < STAGE_FEED_BYTES) {
        result = add_piece(staging, stream, out, err);
    }
    return result;
}

/* ---- a link that broke ---- */

static void serve_by_ssh(struct staging_node *node, const char *why)
{
    struct staging *staging = node->staging;
    if (!node->by_ssh) {
        node->by_ssh = true;
        node->told->why = arena_strndup(staging->arena, why, strlen(why));
        log_line(LOG_WARN, "%.*s: %s; it is served by SSH",
                 STR_ARG(staging->fleet->nodes[node->idx].spec->name), why);
    }
}

/* No stream comes to these members of the chain any more: each that has none yet gets one from here. */
static void break_chain(struct staging *staging, size_t first, const char *why)
{
    for (size_t idx = first; staging->chain.state != CHAIN_WAITING && idx < staging->fleet->n_nodes;
         idx++) {
        struct staging_node *node = &staging->nodes[idx];
        if (node->phase == PHASE_RELAY && node->relay.is_ready && !node->relay.has_taken) {
            serve_by_ssh(node, why);
        }
    }
}

/* ---- the chain ---- */

/* On the pool; 0: it is all sent. */
static int send_all(int fd, struct str bytes, const atomic_bool *is_cancelled, struct err *err)
{
    int64_t waited_ms = 0;
    while (bytes.len) {
        ssize_t n = send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN && waited_ms < RELAY_STALL_NS / NS_PER_MS) {
            struct pollfd wait = {.fd = fd, .events = POLLOUT};
            waited_ms += poll(&wait, 1, TICK_MS) > 0 ? 0 : TICK_MS;
        } else if (n < 0 && errno != EINTR) {
            return err_set(err, ERR_NET, "%s",
                           errno == EAGAIN ? "it no longer accepts data" : err_errno_text(errno));
        }
        if (atomic_load(is_cancelled)) {
            return err_set(err, ERR_INTERRUPTED, "stopped by a signal");
        }
        waited_ms = n > 0 ? 0 : waited_ms;
        bytes = str_sub(bytes, n > 0 ? (size_t)n : 0, bytes.len);
    }
    return 0;
}

static int send_chain(void *arg, const atomic_bool *is_cancelled, struct err *err)
{
    struct staging *staging = arg;
    struct chain *chain = &staging->chain;
    CLEANUP(strbuf) struct strbuf out = STRBUF(STAGE_BUFFER_MAX);
    CLEANUP(fd) int fd = -1;
    if (relay_connect(str_of(chain->hop), net_find, staging->order.token, &fd, err) < 0) {
        return -1;
    }
    while (!chain->stream.is_over) {
        strbuf_clear(&out);
        if (stream_fill(staging, &chain->stream, &out, err) < 0) {
            chain->is_fault_here = true;
            return -1;
        }
        if (send_all(fd, strbuf_str(&out), is_cancelled, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* "PORT ADDRESS", and the other address, where it has two. */
static const char *hop_of(const struct staging *staging, size_t idx)
{
    const struct inventory_node *spec = staging->fleet->nodes[idx].spec;
    struct str fast = inventory_fast_address(spec);
    struct str other = str_eq(fast, spec->address) ? STR_EMPTY : spec->address;
    return arena_printf(staging->arena, "%u %.*s%s%.*s", staging->nodes[idx].relay.port,
                        STR_ARG(fast), other.len ? " " : "", STR_ARG(other));
}

/* Once all nodes wait or are over. Each member is told where it passes the stream on to; then the first is connected to. */
static void begin_chain(struct staging *staging)
{
    struct chain *chain = &staging->chain;
    for (size_t idx = 0; idx < staging->fleet->n_nodes; idx++) {
        if (staging->nodes[idx].phase != PHASE_OVER && !staging->nodes[idx].relay.is_ready) {
            return;
        }
    }
    uint8_t *is_wanted = arena_array(staging->arena, uint8_t, staging->order.n_files + 1);
    for (size_t idx = staging->fleet->n_nodes; idx-- > 0;) {
        struct staging_node *node = &staging->nodes[idx];
        if (node->phase == PHASE_OVER) {
            continue;
        }
        strbuf_printf(&node->feed, "%s%s\n", chain->hop ? "next " : "last",
                      chain->hop ? chain->hop : "");
        chain->hop = hop_of(staging, idx);
        for (size_t file = 0; file < staging->order.n_files; file++) {
            is_wanted[file] |= node->is_missing[file];
        }
    }
    chain->state = CHAIN_OVER;
    if (chain->hop) {
        chain->stream = (struct stage_stream){.is_wanted = is_wanted, .fd = -1};
        chain->job = (struct pool_job){.fn = send_chain, .arg = staging};
        pool_submit(staging->pool, &chain->job);
        chain->state = CHAIN_SENDING;
    }
}

static void look_at_chain(struct staging *staging)
{
    struct chain *chain = &staging->chain;
    struct err why = {0};
    if (chain->state == CHAIN_WAITING) {
        begin_chain(staging);
    } else if (chain->state == CHAIN_SENDING && pool_is_done(staging->pool, &chain->job)) {
        chain->state = CHAIN_OVER;
        if (pool_wait(staging->pool, &chain->job, &why) < 0) {
            if (chain->is_fault_here) {
                staging->fatal = why;
            } else {
                break_chain(staging, 0, why.msg);
            }
        }
    }
}

static void show_progress(const struct staging *staging)
{
    uint64_t done = 0;
    if (!staging->opts->on_progress) {
        return;
    }
    for (size_t idx = 0; idx < staging->fleet->n_nodes; idx++) {
        const struct staging_node *node = &staging->nodes[idx];
        done += node->phase == PHASE_OVER ? staging->report.total_bytes
                                          : node->told->bytes_there + node->relay.at_bytes;
    }
    staging->opts->on_progress(staging->opts->progress_ctx, done,
                               staging->report.total_bytes * staging->fleet->n_nodes);
}

/* ---- what a relay says ---- */

/* How much the node's first relay found. */
static void take_there(struct staging_node *node, uint64_t bytes)
{
    if (!node->is_counted) {
        node->is_counted = true;
        node->told->bytes_there = bytes;
    }
}

static void take_line(struct staging *staging, struct staging_node *node, struct str text)
{
    struct relay_state *relay = &node->relay;
    struct relay_line line;
    char why[128];
    if (!relay_line_parse(text, &line)) {
        return; /* a login shell's, or of a program that it starts */
    }
    relay->has_spoken = true;
    switch (line.word) {
    case RELAY_MISSING:
        for (uint64_t idx = line.a; idx <= line.b && idx < staging->order.n_files; idx++) {
            node->is_missing[idx] = 1;
        }
        break;
    case RELAY_SHARED:
        if (line.a < staging->order.n_items) {
            relay->item_is_shared[line.a] = true;
        }
        break;
    case RELAY_READY:
        relay->port = (uint16_t)line.a;
        relay->is_ready = true;
        take_there(node, line.b);
        break;
    case RELAY_TAKEN:
        relay->has_taken = true;
        node->told->way = relay->is_streaming ? STAGE_SSH : STAGE_CHAIN;
        break;
    case RELAY_AT:
        relay->at_bytes = line.a;
        break;
    case RELAY_LOST:
        snprintf(why, sizeof(why), "the node before it: %.*s", STR_ARG(line.text));
        break_chain(staging, node->idx + 1, why);
        break;
    case RELAY_FAIL:
        if (relay->failure.code == ERR_NONE) {
            (void)!err_set(&relay->failure,
                           line.a > ERR_NONE && line.a < ERR_CODE_COUNT ? (enum err_code)line.a
                                                                        : ERR_NODE,
                           "%.*s", STR_ARG(line.text));
        }
        break;
    case RELAY_COMPLETE:
        relay->is_complete = true;
        take_there(node, line.b);
        break;
    case RELAY_WORD_COUNT:
        break;
    }
}

static void take_output(void *ctx, const char *ptr, size_t len)
{
    struct staging_node *node = ctx;
    node->relay.heard_ns = loop_now_ns(node->staging->fleet->loop);
    for (size_t idx = 0; idx < len; idx++) {
        if (ptr[idx] == '\n') {
            take_line(node->staging, node, strbuf_str(&node->line));
            strbuf_clear(&node->line);
        } else {
            strbuf_add_char(&node->line, ptr[idx]); /* a longer line is cut */
        }
    }
}

/* ---- what it is told ---- */

/* The order; then, of a node that is served by SSH, the stream. False: there is no more for now. */
static bool feed(struct staging *staging, struct staging_node *node)
{
    struct relay_state *relay = &node->relay;
    if (node->feed.len >= STAGE_FEED_BYTES) {
        return true;
    }
    if (relay->order_at < node->order.len) {
        struct str part = str_sub(strbuf_str(&node->order), relay->order_at, STAGE_FEED_BYTES);
        strbuf_add_str(&node->feed, part);
        relay->order_at += part.len;
        return true;
    }
    if (node->by_ssh && relay->is_ready && !relay->has_taken && !relay->is_streaming) {
        relay->is_streaming = true;
        relay->stream = (struct stage_stream){.is_wanted = node->is_missing, .fd = -1};
        strbuf_add_z(&node->feed, "stream\n");
    }
    if (!relay->is_streaming || relay->stream.is_over) {
        return false;
    }
    return stream_fill(staging, &relay->stream, &node->feed, &staging->fatal) == 0;
}

/* ---- its end ---- */

static void begin_relay(struct staging *staging, struct staging_node *node)
{
    stage_stream_end(staging, &node->relay.stream);
    node->relay =
        (struct relay_state){.heard_ns = loop_now_ns(staging->fleet->loop), .stream.fd = -1};
    memset(node->is_missing, 0, staging->order.n_files);
    strbuf_clear(&node->feed);
    strbuf_clear(&node->line);
}

/* After a connection that broke, or a stream that did not bring everything, the next relay continues, by SSH once the chain has
   begun. What comes damaged twice is no chance. */
static bool may_run_again(struct staging *staging, struct staging_node *node, const struct err *err)
{
    bool is_damaged = err->code == ERR_INTEGRITY && !node->was_damaged;
    bool is_broken = err->code == ERR_NODE || err->code == ERR_NET || err->code == ERR_TIMEOUT;
    if (!(is_broken || is_damaged) || (!node->relay.has_spoken && err->code != ERR_NET) ||
        staging->fatal.code != ERR_NONE || ++node->n_runs >= STAGE_RUNS_MAX) {
        return false;
    }
    node->was_damaged |= is_damaged;
    if (staging->chain.state != CHAIN_WAITING) {
        serve_by_ssh(node, err->msg);
    }
    return true;
}

static enum step relay_has_ended(struct staging_node *node, int status, struct err *err)
{
    if (status == 0 && node->relay.is_complete) {
        node->told->bytes_sent = node->staging->report.total_bytes - node->told->bytes_there;
        return STEP_DONE;
    }
    if (node->relay.failure.code != ERR_NONE) {
        return step_fail(err_pass(err, &node->relay.failure));
    }
    return step_fail(err_set(err, ERR_NODE, "its relay ended with status %d", status));
}

static enum step step_relay(struct staging *staging, struct staging_node *node,
                            struct remote *remote, struct err *err)
{
    const char *const args[] = {node->program, node->work, NULL};
    const struct remote_exec exec = {.script = RELAY,
                                     .args = args,
                                     .feed = &node->feed,
                                     .on_output = take_output,
                                     .output_ctx = node,
                                     .deadline_ns = STAGE_LIMIT_NS};
    enum step step;
    int status = -1;
    bool has_more, has_died = false;
    do {
        if (node->relay.has_spoken &&
            loop_now_ns(staging->fleet->loop) - node->relay.heard_ns > STAGE_SILENCE_NS) {
            remote->ops->abort(remote);
            break_chain(staging, node->idx + 1, "the node before it is silent");
            return step_fail(err_set(err, ERR_NODE, "its relay has said nothing for %d s",
                                     (int)(STAGE_SILENCE_NS / NS_PER_S)));
        }
        has_more = feed(staging, node);
        step = remote->ops->exec(remote, &exec, &status, err);
    } while (step == STEP_AGAIN && node->feed.len == 0 && has_more);
    if (step == STEP_DONE) {
        step = relay_has_ended(node, status, err);
        has_died = node->relay.failure.code == ERR_NONE;
    }
    if (step == STEP_FAIL) {
        break_chain(staging, node->idx + 1, "the node before it failed");
    }
    if (step == STEP_FAIL && !has_died && may_run_again(staging, node, err)) {
        *err = (struct err){0};
        begin_relay(staging, node);
        return STEP_AGAIN;
    }
    return step;
}

/* ---- the beginning ---- */

static int write_order(struct staging *staging, struct staging_node *node, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct relay_order order = staging->order;
    order.items = arena_array(&arena, struct relay_item, order.n_items);
    memcpy(order.items, staging->order.items, order.n_items * sizeof(*order.items));
    order.part = node->part;
    for (size_t idx = 0; idx < order.n_items; idx++) {
        char *root = stage_item_path(staging, &arena, node->work, idx);
        if (staging->items[idx].kind == STAGE_FILE) {
            *strrchr(root, '/') = '\0';
        }
        order.items[idx].root = root;
    }
    if (relay_order_write(&order, &node->order, err) < 0) {
        return -1;
    }
    staging->orders_bytes += node->order.len;
    return staging->orders_bytes > STAGE_ORDERS_MAX
               ? err_set(err, ERR_USAGE, "too many files for so many nodes: pack them first")
               : 0;
}

static enum step step_prepare(struct staging *staging, struct staging_node *node,
                              struct remote *remote, struct err *err)
{
    const char *path;
    enum step step = STEP_DONE;
    if (!node->work) {
        step = remote->ops->work_folder(remote, &path, err);
        node->work = step == STEP_DONE ? arena_strndup(staging->arena, path, strlen(path)) : NULL;
    }
    if (step == STEP_DONE) {
        step = remote->ops->program(remote, &path, err);
    }
    if (step != STEP_DONE) {
        return step;
    }
    node->program = arena_strndup(staging->arena, path, strlen(path));
    begin_relay(staging, node);
    node->phase = PHASE_RELAY;
    return write_order(staging, node, err) < 0 ? STEP_FAIL : STEP_AGAIN;
}

enum step stage_step_node(void *ctx, struct fleet_node *fleet_node, size_t idx, struct err *err)
{
    struct staging *staging = ctx;
    struct staging_node *node = &staging->nodes[idx];
    struct remote *remote = fleet_node->remote;
    enum step step = STEP_AGAIN;
    if (staging->fatal.code != ERR_NONE) {
        remote->ops->abort(remote);
        *err = staging->fatal;
        step = STEP_FAIL;
    }
    if (step == STEP_AGAIN && node->phase == PHASE_PREPARE) {
        step = step_prepare(staging, node, remote, err);
    }
    if (step == STEP_AGAIN && node->phase == PHASE_RELAY) {
        step = step_relay(staging, node, remote, err);
    }
    if (step != STEP_AGAIN) {
        node->phase = PHASE_OVER;
    }
    look_at_chain(staging);
    show_progress(staging);
    return step;
}
