/* SPDX-License-Identifier: Apache-2.0 */
/* One node during a staging: its work folder, its relay, its relay's reports, and the meaning of its end. A relay takes one stream;
   one that ends without having everything, because a connection broke or a file came damaged, is followed by another, which
   continues what there is. */
#include "base/base.h"

#include "base/log.h"
#include "fleet/stage_impl.h"

/* $1: reperf-node there, $2: the work folder. */
static const char RELAY[] = "exec \"$1\" relay \"$2\" 2>/dev/null\n";

void stage_demote(struct staging *staging, size_t idx, const char *why)
{
    struct staging_node *node = &staging->nodes[idx];
    const char *name = str_z(staging->arena, staging->fleet->nodes[idx].spec->name);
    if (node->by_ssh || node->phase == PHASE_OVER || node->relay.is_complete) {
        return;
    }
    node->by_ssh = true;
    node->report->why = arena_strndup(staging->arena, why, strlen(why));
    log_line(LOG_WARN, "%s: %s; it is served by SSH", name, why);
    stage_release(staging, &node->relay, loop_now_ns(staging->fleet->loop));
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

/* The next in the chain gets nothing more from this node. */
static void take_lost(struct staging *staging, struct staging_node *node, struct str text)
{
    const struct chain *chain = &staging->chain;
    char why[128];
    snprintf(why, sizeof(why), "the node before it: %.*s", STR_ARG(text));
    for (size_t at = 0; at + 1 < chain->n_members; at++) {
        if (chain->members[at] == node->idx) {
            stage_demote(staging, chain->members[at + 1], why);
            if (at + 2 < chain->n_members) {
                stage_cut(staging);
            }
        }
    }
    node->relay.down_gone_ns = node->relay.heard_ns;
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
        take_lost(staging, node, line.text);
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
        stage_stream_begin(&relay->stream, &node->idx, 1);
    }
    if (relay->is_streaming &&
        stage_stream_fill(staging, &relay->stream, &relay->feed, STAGE_FEED_BYTES) < 0) {
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
    relay->heard_ns = relay->down_gone_ns = loop_now_ns(staging->fleet->loop);
    strbuf_clear(&relay->feed);
    stage_stream_end(&relay->stream);
    strbuf_clear(&node->line);
    node->failure = (struct err){0};
}

/* A connection that broke, or a stream that did not bring everything: the next relay continues, at last by SSH. A round that was cut
   counts against nobody. */
static bool may_run_again(struct staging *staging, struct staging_node *node, const struct err *err)
{
    bool is_broken = err->code == ERR_NODE || err->code == ERR_NET || err->code == ERR_TIMEOUT;
    bool was_cut = node->relay.in_chain && staging->chain.was_cut && err->code == ERR_NET;
    if (!is_broken || (!node->relay.has_spoken && err->code != ERR_NET) ||
        staging->fatal.code != ERR_NONE) {
        return false;
    }
    node->n_runs += !was_cut;
    if (node->n_runs + 1 >= STAGE_RUNS_MAX) {
        stage_demote(staging, node->idx, err->msg);
    }
    return node->n_runs < (size_t)2 * STAGE_RUNS_MAX;
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
            return STEP_FAIL;
        }
        if (node->relay.has_spoken && now_ns - node->relay.heard_ns > STAGE_SILENCE_NS) {
            remote->ops->abort(remote);
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
        node->relay.in_chain = node->relay.is_ready = false;
        node->relay.down_gone_ns = loop_now_ns(staging->fleet->loop);
    }
    stage_send(staging);
    return step;
}
