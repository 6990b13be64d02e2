/* SPDX-License-Identifier: Apache-2.0 */
/* Sending: rounds, each one stream through a chain of the nodes that lack something. A stream begins with the first file, in the
   order's sequence, that any of them lacks; a node that has it only passes it on. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "fleet/stage_impl.h"
#include "sys/relay_net.h"

#define BURST_BYTES (16u << 20) /* sent before the nodes are looked after again */
#define CUT_NS      (NS_PER_S)  /* for the members of a stream that was cut to say what they have */
#define ROUNDS_MAX  16          /* besides four for each node */

/* ---- the members ---- */

static bool is_settled(const struct staging_node *node)
{
    return node->phase == PHASE_OVER || node->mode == MODE_FEED ||
           (node->phase == PHASE_RELAY && node->is_ready);
}

static bool lacks(const struct staging_node *node)
{
    return node->phase == PHASE_RELAY && node->is_ready && node->n_missing > 0;
}

/* All that can be chained, else one that must be served alone. */
static void choose(struct staging *staging)
{
    struct chain *chain = &staging->chain;
    chain->n_members = 0;
    for (size_t idx = 0; idx < staging->fleet->n_nodes; idx++) {
        if (lacks(&staging->nodes[idx]) && staging->nodes[idx].mode == MODE_CHAIN) {
            chain->members[chain->n_members++] = idx;
        }
    }
    for (size_t idx = 0; idx < staging->fleet->n_nodes && chain->n_members == 0; idx++) {
        if (lacks(&staging->nodes[idx]) && staging->nodes[idx].mode == MODE_DIRECT) {
            chain->members[chain->n_members++] = idx;
        }
    }
}

static void hop_of(struct staging *staging, size_t idx, struct relay_hop *ret_hop)
{
    const struct inventory_node *spec = staging->fleet->nodes[idx].spec;
    struct str fast = inventory_fast_address(spec);
    *ret_hop = (struct relay_hop){.node = (uint32_t)idx, .port = staging->nodes[idx].port};
    ret_hop->address[0] = str_z(staging->arena, fast);
    if (!str_eq(fast, spec->address)) {
        ret_hop->address[1] = str_z(staging->arena, spec->address);
    }
}

/* ---- where a file begins ---- */

static uint64_t first_lacking(const struct staging *staging, size_t file, bool *ret_is_wanted)
{
    const struct chain *chain = &staging->chain;
    uint64_t from = UINT64_MAX;
    for (size_t idx = 0; idx < chain->n_members; idx++) {
        const struct staging_node *node = &staging->nodes[chain->members[idx]];
        uint64_t have = 0;
        if (!node->is_missing[file]) {
            continue;
        }
        for (size_t at = 0; at < node->partials.n; at++) {
            if (node->partials.items[at].file == file) {
                have = node->partials.items[at].bytes;
            }
        }
        from = have < from ? have : from;
    }
    *ret_is_wanted = from != UINT64_MAX;
    return from;
}

static void fail_all(struct staging *staging, const struct err *err)
{
    if (staging->fatal.code == ERR_NONE) {
        staging->fatal = *err;
    }
}

/* The next file that a member lacks, from chain->file on; false at the end. */
static bool next_file(struct staging *staging)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct chain *chain = &staging->chain;
    const char *path;
    bool is_wanted = false;
    for (; chain->file < staging->order.n_files; chain->file++) {
        chain->offset = first_lacking(staging, chain->file, &is_wanted);
        if (is_wanted && staging->order.files[chain->file].size_bytes > 0) {
            break;
        }
    }
    if (chain->file == staging->order.n_files) {
        return false;
    }
    path = stage_source_path(staging, &arena, chain->file);
    chain->file_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (chain->file_fd < 0) {
        struct err err = {0};
        (void)!err_set(&err, err_code_of_errno(errno), "open %s: %s", path, err_errno_text(errno));
        fail_all(staging, &err);
        return false;
    }
    (void)posix_fadvise(chain->file_fd, (off_t)chain->offset, 0, POSIX_FADV_SEQUENTIAL);
    return true;
}

/* ---- the connection ---- */

static int connect_job(void *arg, const atomic_bool *is_cancelled UNUSED, struct err *err)
{
    struct chain *chain = arg;
    return relay_connect(&chain->hop, net_find, chain->token, &chain->connected_fd, err);
}

static void begin_round(struct staging *staging)
{
    struct chain *chain = &staging->chain;
    struct relay_hop *hops = arena_array(staging->arena, struct relay_hop, chain->n_members + 1);
    struct strbuf body;
    chain->n_rounds++;
    for (size_t idx = 0; idx < chain->n_members; idx++) {
        struct staging_node *node = &staging->nodes[chain->members[idx]];
        hop_of(staging, chain->members[idx], &hops[idx]);
        node->in_chain = true;
        node->report->way = node->mode == MODE_CHAIN ? STAGE_CHAIN : STAGE_DIRECT;
    }
    strbuf_init(&body, RELAY_BLOCK_BYTES);
    relay_hops_write(hops + 1, chain->n_members - 1, &body);
    relay_frame_encode(&(struct relay_frame){.kind = RELAY_CHAIN, .len = (uint32_t)body.len},
                       chain->header);
    strbuf_clear(&chain->hops);
    strbuf_add(&chain->hops, chain->header, RELAY_HEADER_BYTES);
    strbuf_add(&chain->hops, body.ptr, body.len);
    strbuf_release(&body);
    chain->hops_sent = 0;
    chain->header_len = chain->header_sent = 0;
    chain->body_left = 0;
    chain->file = 0;
    chain->hop = hops[0];
    memcpy(chain->token, staging->order.token, RELAY_TOKEN_BYTES);
    chain->connected_fd = -1;
    chain->job = (struct pool_job){.fn = connect_job, .arg = chain};
    pool_submit(staging->pool, &chain->job);
    chain->state = CHAIN_CONNECTING;
}

static void on_ready(void *ctx UNUSED, int fd UNUSED, short events UNUSED)
{
    /* It ends the wait; the next step sends. */
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

static void close_stream(struct staging *staging)
{
    watch(staging, false);
    fd_close(&staging->chain.fd);
    fd_close(&staging->chain.file_fd);
}

/* From here on the members report what they have now. */
static void drain(struct staging *staging, bool was_cut)
{
    struct chain *chain = &staging->chain;
    close_stream(staging);
    chain->was_cut = was_cut;
    chain->state = CHAIN_DRAINING;
    chain->moved_ns = loop_now_ns(staging->fleet->loop);
}

void stage_cut(struct staging *staging)
{
    struct chain *chain = &staging->chain;
    if (chain->state == CHAIN_SENDING) {
        drain(staging, true);
    } else if (chain->state == CHAIN_DRAINING) {
        chain->was_cut = true; /* all was sent, but not all of it has come to the last */
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
        for (size_t idx = 0; idx < chain->n_members; idx++) {
            staging->nodes[chain->members[idx]].in_chain = false;
        }
        stage_demote(staging, chain->members[0], why.msg);
        chain->state = CHAIN_IDLE;
        return;
    }
    chain->fd = chain->connected_fd;
    chain->connected_fd = -1;
    for (size_t idx = 0; idx < chain->n_members; idx++) {
        staging->nodes[chain->members[idx]].is_ready = false;
        staging->nodes[chain->members[idx]].has_taken = false;
    }
    chain->moved_ns = loop_now_ns(staging->fleet->loop);
    chain->state = CHAIN_SENDING;
}

/* ---- bytes ---- */

/* 1: all of it, 0: not now, -1: the connection is broken. */
static int send_text(struct staging *staging, const void *ptr, size_t len, size_t *sent, int flags)
{
    while (*sent < len) {
        ssize_t n = send(staging->chain.fd, (const char *)ptr + *sent, len - *sent,
                         MSG_NOSIGNAL | MSG_DONTWAIT | flags);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            return 0;
        }
        if (n < 0) {
            return -1;
        }
        *sent += (size_t)n;
    }
    return 1;
}

static int send_body(struct staging *staging, uint64_t *burst)
{
    struct chain *chain = &staging->chain;
    while (chain->body_left > 0) {
        off_t at = (off_t)chain->offset;
        ssize_t n = sendfile(chain->fd, chain->file_fd, &at, (size_t)chain->body_left);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            return 0;
        }
        if (n == 0 || (n < 0 && errno == EIO)) {
            struct err err = {0};
            (void)!err_set(&err, n == 0 ? ERR_INTEGRITY : ERR_IO, "%s: %s",
                           staging->order.files[chain->file].path,
                           n == 0 ? "it became shorter while it was sent" : err_errno_text(errno));
            fail_all(staging, &err);
            return -1;
        }
        if (n < 0) {
            return -1;
        }
        chain->offset += (uint64_t)n;
        chain->body_left -= (uint64_t)n;
        staging->report.head_bytes += (uint64_t)n;
        *burst += (uint64_t)n;
        chain->moved_ns = loop_now_ns(staging->fleet->loop);
    }
    return 1;
}

/* The next frame's header; its end where nothing is left. */
static void next_header(struct staging *staging)
{
    struct chain *chain = &staging->chain;
    struct relay_frame frame = {.kind = RELAY_END};
    if (chain->file_fd >= 0 && chain->offset == staging->order.files[chain->file].size_bytes) {
        fd_close(&chain->file_fd);
        chain->file++;
    }
    if (chain->file_fd >= 0 || next_file(staging)) {
        uint64_t left = staging->order.files[chain->file].size_bytes - chain->offset;
        frame.kind = RELAY_DATA;
        frame.file = (uint32_t)chain->file;
        frame.offset = chain->offset;
        frame.len = left < RELAY_BLOCK_BYTES ? (uint32_t)left : RELAY_BLOCK_BYTES;
    }
    relay_frame_encode(&frame, chain->header);
    chain->header_len = RELAY_HEADER_BYTES;
    chain->header_sent = 0;
    chain->body_left = frame.len;
}

/* 1: the end was sent, 0: not yet, -1: broken. */
static int send_some(struct staging *staging)
{
    struct chain *chain = &staging->chain;
    uint64_t burst = 0;
    int result = send_text(staging, chain->hops.ptr, chain->hops.len, &chain->hops_sent, 0);
    while (result > 0 && burst < BURST_BYTES && staging->fatal.code == ERR_NONE) {
        bool is_end;
        if (chain->header_sent == chain->header_len && chain->body_left == 0) {
            next_header(staging);
        }
        is_end = chain->file == staging->order.n_files;
        result = send_text(staging, chain->header, chain->header_len, &chain->header_sent,
                           is_end ? 0 : MSG_MORE);
        if (result > 0 && is_end) {
            return 1;
        }
        if (result > 0) {
            result = send_body(staging, &burst);
        }
    }
    return result < 0 ? -1 : 0;
}

/* ---- rounds ---- */

static void step_sending(struct staging *staging)
{
    struct chain *chain = &staging->chain;
    size_t first = chain->members[0];
    int result = send_some(staging);
    if (result == 0) {
        watch(staging, true);
        if (loop_now_ns(staging->fleet->loop) - chain->moved_ns > STAGE_STALL_NS) {
            stage_demote(staging, first, "it no longer accepts data");
            drain(staging, true);
        }
        return;
    }
    if (result < 0 && staging->fatal.code == ERR_NONE &&
        staging->nodes[first].phase == PHASE_RELAY) {
        stage_demote(staging, first, err_errno_text(errno));
    }
    drain(staging, result < 0);
}

/* Waits until each member has reported what it has now, is over, or is silent for long. One that never saw a broken stream has
   nothing to report: its last report is valid, and its next stream replaces the one that it still waits for. */
static void step_draining(struct staging *staging)
{
    struct chain *chain = &staging->chain;
    int64_t now_ns = loop_now_ns(staging->fleet->loop);
    bool all_said = true;
    size_t n_working = 0;
    for (size_t idx = 0; idx < chain->n_members; idx++) {
        struct staging_node *node = &staging->nodes[chain->members[idx]];
        bool has_said = node->phase != PHASE_RELAY || node->is_ready || node->is_complete ||
                        node->port == 0; /* its relay is being started again */
        chain->moved_ns = node->moved_ns > chain->moved_ns ? node->moved_ns : chain->moved_ns;
        all_said = all_said && has_said;
        n_working += !has_said && (node->has_taken || !chain->was_cut);
    }
    if (!all_said && now_ns - chain->moved_ns <= (n_working ? STAGE_STALL_NS : CUT_NS)) {
        return;
    }
    for (size_t idx = 0; idx < chain->n_members; idx++) {
        struct staging_node *node = &staging->nodes[chain->members[idx]];
        node->in_chain = false;
        if (node->phase == PHASE_RELAY && !node->is_ready && !node->is_complete && node->port) {
            if (node->has_taken || !chain->was_cut) {
                stage_demote(staging, chain->members[idx], "it did not end");
            }
            node->is_ready = true;
        }
    }
    chain->n_members = 0;
    chain->state = CHAIN_IDLE;
}

static void step_idle(struct staging *staging)
{
    struct chain *chain = &staging->chain;
    for (size_t idx = 0; idx < staging->fleet->n_nodes; idx++) {
        if (!is_settled(&staging->nodes[idx])) {
            return;
        }
    }
    choose(staging);
    if (chain->n_members == 0) {
        return;
    }
    if (chain->n_rounds >= ROUNDS_MAX + 4 * staging->fleet->n_nodes) {
        for (size_t idx = 0; idx < chain->n_members; idx++) {
            stage_demote(staging, chain->members[idx], "streams to it end early again and again");
        }
        return;
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
                                          : node->report->bytes_there + node->at_bytes;
    }
    staging->opts->on_progress(staging->opts->progress_ctx, done,
                               staging->report.total_bytes * staging->fleet->n_nodes);
}

void stage_send(struct staging *staging)
{
    if (staging->fatal.code != ERR_NONE && staging->chain.state == CHAIN_SENDING) {
        drain(staging, true);
    }
    show_progress(staging);
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
    case CHAIN_DRAINING:
        step_draining(staging);
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
    close_stream(staging);
    strbuf_release(&chain->hops);
}
