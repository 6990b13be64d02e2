/* SPDX-License-Identifier: Apache-2.0 */
/* Sending. The same tar stream goes over a chain of the nodes that lack something, from one to the next, or to one node by SSH; it
   holds what any of its members lacks, and a member that has a file already only passes it on.

     idle --all nodes wait or are over--> connecting --> sending --its end was sent, or it broke--> idle

   A round is one stream over a chain. Who is told of a round is in_chain until its relay ends, which it does after one stream, or
   when it is told that no stream can reach it. Each round ends with all files there, with a node that is served by SSH from then
   on (stage_demote), or with a relay that ended: those are counted, so the rounds come to an end. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "codec/relay.h"
#include "fleet/stage_impl.h"
#include "sys/relay_net.h"

#define BURST_BYTES (16 << 20) /* sent before the nodes are looked after again */
#define READ_BYTES  (256u << 10)

/* ---- the stream ---- */

void stage_stream_begin(struct stage_stream *stream, const size_t *members, size_t n_members)
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

int stage_stream_fill(struct staging *staging, struct stage_stream *stream, struct strbuf *out,
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

/* ---- the chain's members ---- */

static bool is_settled(const struct staging_node *node)
{
    return node->phase == PHASE_OVER || node->by_ssh ||
           (node->relay.is_ready && !node->relay.in_chain);
}

void stage_release(struct staging *staging, struct relay_state *relay, int64_t gone_ns)
{
    if (relay->in_chain && !relay->has_taken && !relay->down_gone_ns) {
        strbuf_add_z(&relay->feed, "again\n");
        relay->down_gone_ns = gone_ns;
        staging->chain.was_cut = true;
    }
}

/* A member whose connection did not come, since what is before it in the chain is gone. */
static void release_members(struct staging *staging)
{
    struct chain *chain = &staging->chain;
    int64_t gone_ns = chain->gone_ns;
    int64_t now_ns = loop_now_ns(staging->fleet->loop);
    for (size_t at = 0; at < chain->n_members; at++) {
        struct relay_state *relay = &staging->nodes[chain->members[at]].relay;
        if (gone_ns && now_ns - gone_ns > STAGE_CUT_NS) {
            stage_release(staging, relay, gone_ns);
        }
        gone_ns = relay->down_gone_ns;
    }
}

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
static void begin_round(struct staging *staging)
{
    struct chain *chain = &staging->chain;
    size_t n_members = 0;
    for (size_t idx = 0; idx < staging->fleet->n_nodes; idx++) {
        if (staging->nodes[idx].phase != PHASE_OVER && !staging->nodes[idx].by_ssh) {
            chain->members[n_members++] = idx;
        }
    }
    chain->n_members = n_members;
    if (n_members == 0) {
        return;
    }
    for (size_t at = 0; at < chain->n_members; at++) {
        struct relay_state *relay = &staging->nodes[chain->members[at]].relay;
        struct relay_hop next;
        relay->in_chain = true;
        relay->down_gone_ns = 0;
        if (at + 1 == chain->n_members) {
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
    chain->gone_ns = 0;
    chain->was_cut = false;
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
    chain->gone_ns = why ? loop_now_ns(staging->fleet->loop) : 0;
    chain->state = CHAIN_IDLE;
    if (why && staging->fatal.code == ERR_NONE) {
        stage_demote(staging, chain->members[0], why);
    }
}

void stage_cut(struct staging *staging)
{
    staging->chain.was_cut = true;
    if (staging->chain.state == CHAIN_SENDING) {
        end_stream(staging, NULL);
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
    stage_stream_begin(&chain->stream, chain->members, chain->n_members);
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
        if (stage_stream_fill(staging, &chain->stream, &chain->out, READ_BYTES) < 0) {
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

static void step_idle(struct staging *staging)
{
    for (size_t idx = 0; idx < staging->fleet->n_nodes; idx++) {
        if (!is_settled(&staging->nodes[idx])) {
            return;
        }
    }
    begin_round(staging);
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

void stage_send(struct staging *staging)
{
    show_progress(staging);
    release_members(staging);
    switch (staging->chain.state) {
    case CHAIN_IDLE:
        step_idle(staging);
        break;
    case CHAIN_CONNECTING:
        take_connection(staging);
        break;
    case CHAIN_SENDING:
        step_sending(staging);
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
