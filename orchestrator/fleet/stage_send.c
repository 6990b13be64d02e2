/* SPDX-License-Identifier: Apache-2.0 */
/* Sending. One tar stream goes over a chain of the nodes that lack something, from one to the next; it holds what any of its members
   lacks, and a member that has a file already only passes it on.

     waiting --all nodes wait or are over--> connecting --> sending --its end was sent, or it broke--> over

   A relay takes one stream. One that ends without having everything, because a connection broke or a file came damaged, is followed
   by another, which continues what there is; once the chain has begun, that one gets its stream from here by SSH, and so does each
   member behind a broken link. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "codec/relay_tar.h"
#include "fleet/stage_impl.h"
#include "sys/relay_net.h"

#define BURST_BYTES (16 << 20) /* sent before the nodes are looked after again */
#define READ_BYTES  (256u << 10)

/* $1: reperf-node there, $2: the work folder. */
static const char RELAY[] = "exec \"$1\" relay \"$2\" 2>/dev/null\n";

/* ---- the stream ---- */

static void stream_begin(struct stage_stream *stream, const size_t *members, size_t n_members)
{
    *stream = (struct stage_stream){.members = members, .n_members = n_members, .fd = -1};
}

void stage_stream_end(struct stage_stream *stream)
{
    if (stream->members) {
        fd_close(&stream->fd);
    }
    *stream = (struct stage_stream){.fd = -1};
}

/* The first byte of a file that a member lacks; UINT64_MAX: none lacks it. */
static uint64_t first_lacking(const struct staging *staging, const struct stage_stream *stream)
{
    uint64_t from = UINT64_MAX;
    for (size_t idx = 0; idx < stream->n_members; idx++) {
        const struct relay_state *relay = &staging->nodes[stream->members[idx]].relay;
        uint64_t have = 0;
        for (size_t at = 0; at < relay->partials.n; at++) {
            if (relay->partials.items[at].file == stream->file) {
                have = relay->partials.items[at].bytes;
            }
        }
        from = relay->is_missing[stream->file] && have < from ? have : from;
    }
    return from;
}

static int fail_all(struct staging *staging, enum err_code code, const char *path, const char *why)
{
    return err_set(&staging->fatal, code, "%s: %s", path, why);
}

/* Opens the next file that is lacking; false at the end. */
static int next_file(struct staging *staging, struct stage_stream *stream)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    size_t n_files = staging->order.n_files;
    while (stream->file < n_files &&
           (stream->offset = first_lacking(staging, stream)) == UINT64_MAX) {
        stream->file++;
    }
    if (stream->file == n_files) {
        return 0;
    }
    const char *path = stage_source_path(staging, &arena, stream->file);
    stream->fd = open(path, O_RDONLY | O_CLOEXEC);
    return stream->fd < 0 ? fail_all(staging, err_code_of_errno(errno), path, err_errno_text(errno))
                          : 0;
}

static void add_zeros(struct strbuf *out, size_t n)
{
    static const char ZEROS[RELAY_END_BYTES];
    ASSERT(n <= sizeof(ZEROS));
    strbuf_add(out, ZEROS, n);
}

static int add_member(struct staging *staging, struct stage_stream *stream, struct strbuf *out)
{
    uint8_t block[USTAR_BLOCK];
    if (stream->fd < 0 && next_file(staging, stream) < 0) {
        return -1;
    }
    if (stream->file == staging->order.n_files) {
        add_zeros(out, RELAY_END_BYTES);
        stream->is_over = true;
        return 0;
    }
    uint64_t left = staging->order.files[stream->file].size_bytes - stream->offset;
    stream->member_bytes = left < RELAY_MEMBER_MAX ? left : RELAY_MEMBER_MAX;
    relay_member_write(&(struct relay_member){stream->file, stream->offset, stream->member_bytes},
                       block);
    strbuf_add(out, block, sizeof(block));
    stream->member_left = stream->member_bytes;
    stream->in_member = true;
    return 0;
}

static int add_data(struct staging *staging, struct stage_stream *stream, struct strbuf *out)
{
    char bytes[READ_BYTES];
    size_t most = stream->member_left < sizeof(bytes) ? (size_t)stream->member_left : sizeof(bytes);
    ssize_t n = pread(stream->fd, bytes, most, (off_t)stream->offset);
    if (n <= 0) {
        return fail_all(staging, n == 0 ? ERR_INTEGRITY : ERR_IO,
                        staging->order.files[stream->file].path,
                        n == 0 ? "it became shorter while it was sent" : err_errno_text(errno));
    }
    strbuf_add(out, bytes, (size_t)n);
    stream->offset += (uint64_t)n;
    stream->member_left -= (uint64_t)n;
    staging->report.head_bytes += (uint64_t)n;
    return 0;
}

static int end_member(const struct staging *staging, struct stage_stream *stream,
                      struct strbuf *out)
{
    add_zeros(out, ustar_padding(stream->member_bytes));
    stream->in_member = false;
    if (stream->offset == staging->order.files[stream->file].size_bytes) {
        fd_close(&stream->fd);
        stream->file++;
    }
    return 0;
}

/* Appends what comes next until out has that many bytes, or the stream is over. A fault of a file here is staging->fatal. */
static int stream_fill(struct staging *staging, struct stage_stream *stream, struct strbuf *out,
                       size_t bytes)
{
    int result = 0;
    while (result == 0 && !stream->is_over && out->len < bytes) {
        result = stream->member_left ? add_data(staging, stream, out)
                 : stream->in_member ? end_member(staging, stream, out)
                                     : add_member(staging, stream, out);
    }
    return result;
}

/* ---- a link that broke ---- */

static void serve_by_ssh(struct staging_node *node, const char *why)
{
    struct staging *staging = node->staging;
    if (!node->by_ssh) {
        node->by_ssh = true;
        node->report->why = arena_strndup(staging->arena, why, strlen(why));
        log_line(LOG_WARN, "%.*s: %s; it is served by SSH",
                 STR_ARG(staging->fleet->nodes[node->idx].spec->name), why);
    }
}

/* No stream comes to these members of the chain any more: each that has none yet is told to end. */
static void break_chain(struct staging *staging, size_t first, const char *why)
{
    for (size_t idx = first; idx < staging->fleet->n_nodes; idx++) {
        struct staging_node *node = &staging->nodes[idx];
        if (node->relay.in_chain && !node->relay.has_taken && !node->by_ssh) {
            serve_by_ssh(node, why);
            strbuf_add_z(&node->relay.feed, "again\n");
        }
    }
}

/* ---- the chain ---- */

static void hop_of(struct staging *staging, size_t idx, struct relay_hop *ret_hop)
{
    const struct inventory_node *spec = staging->fleet->nodes[idx].spec;
    struct str fast = inventory_fast_address(spec);
    *ret_hop = (struct relay_hop){.port = staging->nodes[idx].relay.port};
    ret_hop->address[0] = str_z(staging->arena, fast);
    if (!str_eq(fast, spec->address)) {
        ret_hop->address[1] = str_z(staging->arena, spec->address);
    }
}

static int connect_first(void *arg, const atomic_bool *is_cancelled UNUSED, struct err *err)
{
    struct chain *chain = arg;
    return relay_connect(&chain->hop, net_find, chain->token, &chain->connected_fd, err);
}

/* Each member is told where it passes the stream on to; then the first is connected to. */
static void begin_chain(struct staging *staging)
{
    struct chain *chain = &staging->chain;
    size_t n_members = 0;
    for (size_t idx = 0; idx < staging->fleet->n_nodes; idx++) {
        if (staging->nodes[idx].phase != PHASE_OVER) {
            chain->members[n_members++] = idx;
        }
    }
    chain->n_members = n_members;
    if (n_members == 0) {
        chain->state = CHAIN_OVER;
        return;
    }
    for (size_t at = 0; at < n_members; at++) {
        struct relay_state *relay = &staging->nodes[chain->members[at]].relay;
        struct relay_hop next;
        relay->in_chain = true;
        if (at + 1 == n_members) {
            strbuf_add_z(&relay->feed, "last\n");
        } else {
            hop_of(staging, chain->members[at + 1], &next);
            strbuf_add_z(&relay->feed, "next ");
            relay_hop_write(&next, &relay->feed);
            strbuf_add_char(&relay->feed, '\n');
        }
    }
    hop_of(staging, chain->members[0], &chain->hop);
    memcpy(chain->token, staging->order.token, sizeof(chain->token));
    chain->connected_fd = -1;
    chain->job = (struct pool_job){.fn = connect_first, .arg = chain};
    pool_submit(staging->pool, &chain->job);
    chain->state = CHAIN_CONNECTING;
}

/* ---- its connection ---- */

static void on_ready(void *ctx UNUSED, int fd UNUSED, short events UNUSED)
{
    /* Only ends the wait; the next step sends. */
}

static void watch(struct staging *staging, bool is_wanted)
{
    struct chain *chain = &staging->chain;
    struct err err = {0};
    if (chain->is_watched == is_wanted || chain->fd < 0) {
        return;
    }
    if (!is_wanted) {
        loop_unwatch(staging->fleet->loop, chain->fd);
    } else if (loop_watch(staging->fleet->loop, chain->fd, POLLOUT, on_ready, staging, &err) < 0) {
        log_line(LOG_DEBUG, "%s", err.msg); /* the loop's tick steps it then */
        return;
    }
    chain->is_watched = is_wanted;
}

/* why NULL: all was sent. */
static void end_stream(struct staging *staging, const char *why)
{
    struct chain *chain = &staging->chain;
    watch(staging, false);
    fd_close(&chain->fd);
    stage_stream_end(&chain->stream);
    strbuf_clear(&chain->out);
    chain->sent = 0;
    chain->state = CHAIN_OVER;
    if (why && staging->fatal.code == ERR_NONE) {
        break_chain(staging, 0, why);
    }
}

static void take_connection(struct staging *staging)
{
    struct chain *chain = &staging->chain;
    struct err why = {0};
    if (!pool_is_done(staging->pool, &chain->job)) {
        return;
    }
    if (pool_wait(staging->pool, &chain->job, &why) < 0) {
        end_stream(staging, why.msg);
        return;
    }
    chain->fd = take_fd(&chain->connected_fd);
    (void)fcntl(chain->fd, F_SETFL, O_NONBLOCK);
    stream_begin(&chain->stream, chain->members, chain->n_members);
    chain->moved_ns = loop_now_ns(staging->fleet->loop);
    chain->state = CHAIN_SENDING;
}

/* The number of bytes that went, or -1 with errno set or staging->fatal. */
static ssize_t send_some(struct staging *staging)
{
    struct chain *chain = &staging->chain;
    if (chain->sent == chain->out.len) {
        strbuf_clear(&chain->out);
        chain->sent = 0;
        if (stream_fill(staging, &chain->stream, &chain->out, READ_BYTES) < 0) {
            return -1;
        }
    }
    ssize_t n =
        send(chain->fd, chain->out.ptr + chain->sent, chain->out.len - chain->sent, MSG_NOSIGNAL);
    chain->sent += n > 0 ? (size_t)n : 0;
    return n;
}

static void step_sending(struct staging *staging)
{
    struct chain *chain = &staging->chain;
    int64_t now_ns = loop_now_ns(staging->fleet->loop);
    ssize_t burst = 0;
    while (burst < BURST_BYTES && staging->fatal.code == ERR_NONE) {
        if (chain->stream.is_over && chain->sent == chain->out.len) {
            end_stream(staging, NULL);
            return;
        }
        ssize_t n = send_some(staging);
        if (n < 0 && errno == EAGAIN && now_ns - chain->moved_ns <= STAGE_STALL_NS) {
            break;
        }
        if (n < 0 && errno != EINTR) {
            end_stream(staging,
                       errno == EAGAIN ? "it no longer accepts data" : err_errno_text(errno));
            return;
        }
        burst += n > 0 ? n : 0;
        chain->moved_ns = now_ns;
    }
    watch(staging, true);
}

/* ---- the whole ---- */

static void step_waiting(struct staging *staging)
{
    for (size_t idx = 0; idx < staging->fleet->n_nodes; idx++) {
        if (staging->nodes[idx].phase != PHASE_OVER && !staging->nodes[idx].relay.is_ready) {
            return;
        }
    }
    begin_chain(staging);
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
                                          : node->report->bytes_there + node->relay.at_bytes;
    }
    staging->opts->on_progress(staging->opts->progress_ctx, done,
                               staging->report.total_bytes * staging->fleet->n_nodes);
}

static void send_on(struct staging *staging)
{
    show_progress(staging);
    switch (staging->chain.state) {
    case CHAIN_WAITING:
        step_waiting(staging);
        break;
    case CHAIN_CONNECTING:
        take_connection(staging);
        break;
    case CHAIN_SENDING:
        step_sending(staging);
        break;
    case CHAIN_OVER:
        break;
    }
}

void stage_chain_release(struct staging *staging)
{
    struct chain *chain = &staging->chain;
    struct err ignored = {0};
    if (chain->state == CHAIN_CONNECTING && pool_wait(staging->pool, &chain->job, &ignored) == 0) {
        fd_close(&chain->connected_fd);
    }
    watch(staging, false);
    fd_close(&chain->fd);
    stage_stream_end(&chain->stream);
    strbuf_release(&chain->out);
}

/* ---- what a relay says ---- */

/* Of a file that there is, and no more than it has: the rest is sent from there on. */
static void take_partial(const struct staging *staging, struct relay_state *relay, uint64_t idx,
                         uint64_t bytes)
{
    if (idx < staging->order.n_files && bytes <= staging->order.files[idx].size_bytes &&
        relay->partials.n < staging->order.n_files) {
        VEC_PUSH(&relay->partials, (struct stage_partial){(size_t)idx, bytes});
    }
}

/* Once is a broken transfer, and the file is sent again; the same twice is not chance. */
static void take_bad(struct staging *staging, struct staging_node *node, uint64_t idx)
{
    if (idx >= staging->order.n_files) {
        return;
    }
    log_line(LOG_WARN, "%s arrived damaged", staging->order.files[idx].path);
    if (node->was_bad[idx] && node->failure.code == ERR_NONE) {
        (void)!err_set(&node->failure, ERR_INTEGRITY,
                       "%s arrived twice with another SHA-256 than it has here",
                       staging->order.files[idx].path);
    }
    node->was_bad[idx] = 1;
}

/* That it has this much of what it is to have. */
static void take_there(struct staging_node *node, uint64_t bytes)
{
    if (node->first_bytes == UINT64_MAX) {
        node->first_bytes = node->report->bytes_there = bytes;
    }
}

static void take_line(struct staging *staging, struct staging_node *node, struct str text)
{
    struct relay_state *relay = &node->relay;
    struct relay_line line;
    char why[128];
    if (!relay_line_parse(text, &line)) {
        return; /* of a login shell, or of what is linked to it */
    }
    relay->has_spoken = true;
    switch (line.word) {
    case RELAY_MISSING:
        for (uint64_t idx = line.a; idx <= line.b && idx < staging->order.n_files; idx++) {
            relay->is_missing[idx] = 1;
        }
        break;
    case RELAY_PARTIAL:
        take_partial(staging, relay, line.a, line.b);
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
        node->report->way = node->relay.is_streaming ? STAGE_SSH : STAGE_CHAIN;
        break;
    case RELAY_BAD:
        take_bad(staging, node, line.a);
        break;
    case RELAY_AT:
        relay->at_bytes = line.a;
        break;
    case RELAY_LOST:
        snprintf(why, sizeof(why), "the node before it: %.*s", STR_ARG(line.text));
        break_chain(staging, node->idx + 1, why);
        break;
    case RELAY_FAIL:
        if (node->failure.code == ERR_NONE) {
            (void)!err_set(&node->failure,
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

static void feed(struct staging *staging, struct staging_node *node)
{
    struct relay_state *relay = &node->relay;
    if (relay->order_at < node->order.len) {
        size_t room = relay->feed.len < STAGE_FEED_BYTES ? STAGE_FEED_BYTES - relay->feed.len : 0;
        struct str part = str_sub(strbuf_str(&node->order), relay->order_at, room);
        strbuf_add_str(&relay->feed, part);
        relay->order_at += part.len;
        return;
    }
    if (node->by_ssh && relay->is_ready && !relay->in_chain && !relay->is_streaming) {
        relay->is_streaming = true;
        strbuf_add_z(&relay->feed, "stream\n");
        stream_begin(&relay->stream, &node->idx, 1);
    }
    if (relay->is_streaming &&
        stream_fill(staging, &relay->stream, &relay->feed, STAGE_FEED_BYTES) < 0) {
        stage_stream_end(&relay->stream); /* staging->fatal says why */
        relay->stream.is_over = true;
    }
}

static bool has_more(const struct staging_node *node)
{
    return node->relay.order_at < node->order.len ||
           (node->relay.is_streaming && !node->relay.stream.is_over);
}

/* ---- its end ---- */

static void begin_relay(struct staging *staging, struct staging_node *node)
{
    struct relay_state *relay = &node->relay;
    memset(relay->is_missing, 0, staging->order.n_files);
    memset(relay->item_is_shared, 0, sizeof(relay->item_is_shared));
    relay->partials.n = 0;
    relay->has_spoken = relay->is_ready = relay->has_taken = relay->is_complete = false;
    relay->in_chain = relay->is_streaming = false;
    relay->at_bytes = relay->order_at = 0;
    relay->port = 0;
    relay->heard_ns = loop_now_ns(staging->fleet->loop);
    strbuf_clear(&relay->feed);
    stage_stream_end(&relay->stream);
    strbuf_clear(&node->line);
    node->failure = (struct err){0};
}

/* A connection that broke, or a stream that did not bring everything: the next relay continues, after the chain began by SSH. */
static bool may_run_again(struct staging *staging, struct staging_node *node, const struct err *err)
{
    bool is_broken = err->code == ERR_NODE || err->code == ERR_NET || err->code == ERR_TIMEOUT;
    if (!is_broken || (!node->relay.has_spoken && err->code != ERR_NET) ||
        staging->fatal.code != ERR_NONE || ++node->n_runs >= STAGE_RUNS_MAX) {
        return false;
    }
    if (staging->chain.state != CHAIN_WAITING) {
        serve_by_ssh(node, err->msg);
    }
    return true;
}

static enum step relay_has_ended(struct staging_node *node, int status, struct err *err)
{
    if (status == 0 && node->relay.is_complete) {
        node->report->bytes_sent = node->staging->report.total_bytes - node->first_bytes;
        return STEP_DONE;
    }
    if (node->failure.code != ERR_NONE) {
        *err = node->failure;
        return STEP_FAIL;
    }
    return step_fail(err_set(err, ERR_NODE, "its relay ended with status %d", status));
}

static enum step step_relay(struct staging *staging, struct staging_node *node,
                            struct remote *remote, struct err *err)
{
    const char *const args[] = {node->program, node->work, NULL};
    const struct remote_exec exec = {.script = RELAY,
                                     .args = args,
                                     .feed = &node->relay.feed,
                                     .on_output = take_output,
                                     .output_ctx = node,
                                     .deadline_ns = STAGE_LIMIT_NS};
    enum step step;
    int status = -1;
    bool has_died = false;
    do {
        int64_t now_ns = loop_now_ns(staging->fleet->loop);
        if (node->failure.code == ERR_INTEGRITY) {
            remote->ops->abort(remote);
            *err = node->failure;
            break_chain(staging, node->idx + 1, "the node before it failed");
            return STEP_FAIL;
        }
        if (node->relay.has_spoken && now_ns - node->relay.heard_ns > STAGE_SILENCE_NS) {
            remote->ops->abort(remote);
            break_chain(staging, node->idx + 1, "the node before it is silent");
            return step_fail(err_set(err, ERR_NODE, "its relay has said nothing for %d s",
                                     (int)(STAGE_SILENCE_NS / NS_PER_S)));
        }
        feed(staging, node);
        step = remote->ops->exec(remote, &exec, &status, err);
    } while (step == STEP_AGAIN && node->relay.feed.len == 0 && has_more(node));
    if (step == STEP_DONE) {
        step = relay_has_ended(node, status, err);
        has_died = node->failure.code == ERR_NONE;
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
        order.items[idx].root = stage_item_root(staging, &arena, node->work, idx);
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
        node->relay.in_chain = false;
    }
    send_on(staging);
    return step;
}
