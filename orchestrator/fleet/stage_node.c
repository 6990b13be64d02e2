/* SPDX-License-Identifier: Apache-2.0 */
/* One node during a staging: its work folder, its relay, its relay's reports, and the meaning of its end. */
#include "base/base.h"

#include "base/log.h"
#include "fleet/stage_impl.h"

#define HEAR_MS STR_LIT("1000")

/* ---- what a relay says ---- */

static void forget_state(struct staging *staging, struct staging_node *node)
{
    memset(node->is_missing, 0, staging->order.n_files);
    node->n_missing = 0;
    node->partials.n = 0;
    node->is_ready = false;
}

static void take_missing(struct staging *staging, struct staging_node *node, uint64_t first,
                         uint64_t last)
{
    for (uint64_t idx = first; idx <= last && idx < staging->order.n_files; idx++) {
        node->n_missing += !node->is_missing[idx];
        node->is_missing[idx] = 1;
    }
}

/* Of a file that there is, and no more than it has: the rest is sent from there on. */
static void take_partial(struct staging *staging, struct staging_node *node, uint64_t idx,
                         uint64_t bytes)
{
    if (idx < staging->order.n_files && bytes <= staging->order.files[idx].size_bytes &&
        node->partials.n < staging->order.n_files) {
        VEC_PUSH(&node->partials, (struct stage_partial){(size_t)idx, bytes});
    }
}

static void drop_missing(struct staging *staging, struct staging_node *node, uint64_t idx)
{
    if (idx < staging->order.n_files && node->is_missing[idx]) {
        node->is_missing[idx] = 0;
        node->n_missing--;
        node->report->bytes_sent += staging->order.files[idx].size_bytes;
    }
}

/* Once is a broken transfer, and the file is sent again; the same twice is not chance. */
static void take_bad(struct staging *staging, struct staging_node *node, uint64_t idx)
{
    if (idx >= staging->order.n_files) {
        return;
    }
    for (size_t at = 0; at < node->partials.n; at++) {
        if (node->partials.items[at].file == idx) {
            node->partials.items[at].bytes = 0;
        }
    }
    log_line(LOG_WARN, "%s arrived damaged", staging->order.files[idx].path);
    if (node->was_bad[idx] && node->failure.code == ERR_NONE) {
        (void)!err_set(&node->failure, ERR_INTEGRITY,
                       "%s arrived twice with another SHA-256 than it has here",
                       staging->order.files[idx].path);
    }
    node->was_bad[idx] = 1;
}

static void take_lost(struct staging *staging, const struct relay_line *line)
{
    char why[128];
    struct chain *chain = &staging->chain;
    size_t lost = (size_t)line->a;
    snprintf(why, sizeof(why), "the node before it: %.*s", STR_ARG(line->text));
    if (lost >= staging->fleet->n_nodes || !staging->nodes[lost].in_chain ||
        staging->nodes[lost].phase != PHASE_RELAY || staging->nodes[lost].is_complete) {
        return;
    }
    stage_demote(staging, lost, why);
    /* The nodes after it receive nothing any more. */
    if (chain->n_members && chain->members[chain->n_members - 1] != lost) {
        stage_cut(staging);
    }
}

static void take_fail(struct staging_node *node, const struct relay_line *line)
{
    enum err_code code =
        line->a > ERR_NONE && line->a < ERR_CODE_COUNT ? (enum err_code)line->a : ERR_NODE;
    if (node->failure.code == ERR_NONE) {
        (void)!err_set(&node->failure, code, "%.*s", STR_ARG(line->text));
    }
}

static void take_full(struct staging_node *node, const struct relay_line *line)
{
    if (node->failure.code == ERR_NONE) {
        (void)!err_set(&node->failure, ERR_DISK, "%.*s: %.3f GB needed, %.3f GB free",
                       STR_ARG(line->text), (double)line->a / 1e9, (double)line->b / 1e9);
    }
}

static void take_line(struct staging *staging, struct staging_node *node, struct str text)
{
    struct relay_line line;
    if (!relay_line_parse(text, &line)) {
        snprintf(node->tail, sizeof(node->tail), "%.*s", STR_ARG(str_trim(text)));
        return;
    }
    node->has_spoken = true;
    switch (line.word) {
    case RELAY_STATE:
        forget_state(staging, node);
        break;
    case RELAY_MISSING:
        take_missing(staging, node, line.a, line.b);
        break;
    case RELAY_PARTIAL:
        take_partial(staging, node, line.a, line.b);
        break;
    case RELAY_SHARED:
        if (line.a < staging->order.n_items) {
            node->item_is_shared[line.a] = true;
        }
        break;
    case RELAY_READY:
        node->port = (uint16_t)line.a;
        node->report->bytes_there = line.b;
        node->is_ready = true;
        stage_feed_again(node);
        break;
    case RELAY_TAKEN:
        node->has_taken = true;
        node->is_ready = false;
        break;
    case RELAY_DONE:
        drop_missing(staging, node, line.a);
        break;
    case RELAY_BAD:
        take_bad(staging, node, line.a);
        break;
    case RELAY_AT:
        node->moved_ns = line.a > node->at_bytes ? node->heard_ns : node->moved_ns;
        node->at_bytes = line.a;
        break;
    case RELAY_LOST:
        take_lost(staging, &line);
        break;
    case RELAY_FULL:
        take_full(node, &line);
        break;
    case RELAY_FAIL:
        take_fail(node, &line);
        break;
    case RELAY_COMPLETE:
        node->is_complete = true;
        node->report->bytes_there = line.b;
        break;
    case RELAY_WORD_COUNT:
        break;
    }
}

static void take_output(void *ctx, const char *ptr, size_t len)
{
    struct staging_node *node = ctx;
    node->heard_ns = len ? loop_now_ns(node->staging->fleet->loop) : node->heard_ns;
    for (size_t idx = 0; idx < len; idx++) {
        if (ptr[idx] == '\n') {
            take_line(node->staging, node, strbuf_str(&node->line));
            strbuf_clear(&node->line);
        } else {
            strbuf_add_char(&node->line, ptr[idx]); /* a longer line is cut */
        }
    }
}

/* ---- the end of a relay ---- */

void stage_demote(struct staging *staging, size_t idx, const char *why)
{
    struct staging_node *node = &staging->nodes[idx];
    const char *name = str_z(staging->arena, staging->fleet->nodes[idx].spec->name);
    if (node->mode == MODE_FEED || node->phase == PHASE_OVER) {
        return;
    }
    node->mode = node->mode == MODE_CHAIN ? MODE_DIRECT : MODE_FEED;
    node->report->why = arena_strndup(staging->arena, why, strlen(why));
    log_line(LOG_WARN, "%s: %s; it is served %s", name, why,
             node->mode == MODE_DIRECT ? "alone" : "by SSH");
}

/* A connection that broke without another fault: existing data stays, and the relay is started again. */
static bool may_run_again(struct staging_node *node, const struct err *err)
{
    return (err->code == ERR_NODE || err->code == ERR_NET || err->code == ERR_TIMEOUT) &&
           node->has_spoken && ++node->n_runs < STAGE_RUNS_MAX;
}

static void restart(struct staging *staging, struct staging_node *node)
{
    forget_state(staging, node);
    node->port = 0;
    if (node->in_chain) {
        node->in_chain = false;
        stage_cut(staging);
    }
    memset(node->item_is_shared, 0, sizeof(node->item_is_shared));
    node->is_complete = node->is_feeding = node->is_hearing = false;
    strbuf_clear(&node->line);
    strbuf_clear(&node->answer);
    stage_feed_again(node);
    node->phase = PHASE_ORDER;
    node->order_at = 0;
}

/* A stream that it could not go on with is sent to another. */
static enum step relay_has_ended(struct staging *staging, struct staging_node *node, int status,
                                 struct err *err)
{
    if (node->failure.code == ERR_NET && may_run_again(node, &node->failure)) {
        node->failure = (struct err){0};
        restart(staging, node);
        return STEP_AGAIN;
    }
    if (node->failure.code != ERR_NONE) {
        *err = node->failure;
        return STEP_FAIL;
    }
    if (status == 0 && node->is_complete) {
        node->phase = PHASE_OVER;
        return STEP_DONE;
    }
    return step_fail(err_set(err, ERR_NODE, "its relay ended with status %d%s%s", status,
                             node->tail[0] ? ": " : "", node->tail));
}

/* What became of a request. */
static enum step try_again(struct staging *staging, struct staging_node *node, enum step step,
                           struct err *err)
{
    if (step == STEP_FAIL && staging->fatal.code == ERR_NONE && may_run_again(node, err)) {
        *err = (struct err){0};
        restart(staging, node);
        return STEP_AGAIN;
    }
    return step;
}

/* "running", "ended STATUS" or "absent", then lines of the relay's. */
static enum step take_heard(struct staging *staging, struct staging_node *node, struct err *err)
{
    struct str rest = strbuf_str(&node->answer);
    struct str line = STR_EMPTY, word = STR_EMPTY;
    struct err bad = {0};
    int64_t status = -1;
    (void)str_next(&rest, '\n', &line);
    take_output(node, rest.ptr ? rest.ptr : "", rest.len);
    if (str_eq_z(line, "running")) {
        return STEP_AGAIN;
    }
    if (str_next(&line, ' ', &word) && str_eq_z(word, "ended") &&
        str_to_i64(line, 0, 255, &status, &bad) == 0) {
        return relay_has_ended(staging, node, (int)status, err);
    }
    if (str_eq_z(word, "absent") && ++node->n_runs < STAGE_RUNS_MAX) { /* reperf-node was lost */
        restart(staging, node);
        return STEP_AGAIN;
    }
    return step_fail(err_set(err, ERR_NODE, "unexpected answer of its relay: \"%.*s\"",
                             STR_ARG(str_sub(word, 0, 100))));
}

static enum step hear(struct staging *staging, struct staging_node *node, struct remote *remote,
                      struct err *err)
{
    const struct str wait = HEAR_MS;
    const struct remote_ask ask = {.what = "a relay's state",
                                   .op = NODE_HEAR,
                                   .fields = &wait,
                                   .n_fields = 1,
                                   .output = &node->answer};
    enum step step = try_again(staging, node, remote->ops->ask(remote, &ask, err), err);
    if (step == STEP_DONE) {
        step = take_heard(staging, node, err);
        strbuf_clear(&node->answer);
        /* The next request is sent at once: nothing would wake the loop for it. */
        return step == STEP_AGAIN && node->phase == PHASE_RELAY ? STEP_DONE : step;
    }
    return step;
}

/* STEP_DONE: on with the next request. */
static enum step ask_relay(struct staging *staging, struct staging_node *node,
                           struct remote *remote, struct err *err)
{
    enum step step;
    bool may_feed = node->mode == MODE_FEED && node->is_ready && node->n_missing > 0 &&
                    !node->in_chain && !node->is_fed;
    if (!node->is_feeding && !(may_feed && !node->is_hearing)) {
        node->is_hearing = true;
        step = hear(staging, node, remote, err);
        node->is_hearing = step == STEP_AGAIN && node->phase == PHASE_RELAY;
        return step;
    }
    node->is_feeding = true;
    step = try_again(staging, node, stage_feed(staging, node, remote, err), err);
    node->is_feeding = step == STEP_AGAIN && node->phase == PHASE_RELAY;
    if (step == STEP_DONE) {
        node->heard_ns = loop_now_ns(staging->fleet->loop);
        node->report->way = STAGE_SSH;
    }
    return step;
}

static enum step step_relay(struct staging *staging, struct staging_node *node,
                            struct remote *remote, struct err *err)
{
    enum step step;
    do {
        int64_t now_ns = loop_now_ns(staging->fleet->loop);
        if (node->failure.code == ERR_INTEGRITY) {
            remote->ops->abort(remote);
            *err = node->failure;
            return STEP_FAIL;
        }
        if (node->has_spoken && !node->is_feeding && now_ns - node->heard_ns > STAGE_SILENCE_NS) {
            remote->ops->abort(remote);
            return step_fail(err_set(err, ERR_NODE, "its relay has said nothing for %d s",
                                     (int)(STAGE_SILENCE_NS / NS_PER_S)));
        }
        step = ask_relay(staging, node, remote, err);
    } while (step == STEP_DONE && node->phase == PHASE_RELAY);
    return step;
}

/* ---- the order ---- */

static enum step step_order(struct staging *staging, struct staging_node *node,
                            struct remote *remote, struct err *err)
{
    enum step step = STEP_DONE;
    while (step == STEP_DONE && node->order_at < node->order.len) {
        CLEANUP(arena) struct arena arena = ARENA_EMPTY;
        struct str part = str_sub(strbuf_str(&node->order), node->order_at, STAGE_ORDER_BYTES);
        bool is_last = node->order_at + part.len == node->order.len;
        const struct str fields[] = {str_of(arena_printf(&arena, "%zu", node->order_at)),
                                     is_last ? STR_LIT("1") : STR_LIT("0"), part};
        const struct remote_ask ask = {.what = "a relay's order",
                                       .op = NODE_RELAY,
                                       .fields = fields,
                                       .n_fields = ARRAY_LEN(fields),
                                       .output = &node->answer,
                                       .deadline_ns = STAGE_FEED_NS};
        step = remote->ops->ask(remote, &ask, err);
        if (step == STEP_DONE) {
            node->order_at += part.len;
        }
    }
    if (step == STEP_FAIL && node->order_at > 0 && ++node->n_runs < STAGE_RUNS_MAX) {
        *err = (struct err){0}; /* reperf-node was lost, and the order's beginning with it */
        node->order_at = 0;
        return STEP_AGAIN;
    }
    if (step != STEP_DONE) {
        return step;
    }
    node->heard_ns = loop_now_ns(staging->fleet->loop);
    node->phase = PHASE_RELAY;
    return STEP_AGAIN;
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

static enum step step_folder(struct staging *staging, struct staging_node *node,
                             struct remote *remote, struct err *err)
{
    const char *work;
    enum step step = remote->ops->work_folder(remote, &work, err);
    if (step != STEP_DONE) {
        return step;
    }
    node->work = arena_strndup(staging->arena, work, strlen(work));
    node->phase = PHASE_ORDER;
    return write_order(staging, node, err) < 0 ? STEP_FAIL : STEP_AGAIN;
}

static enum step step_phase(struct staging *staging, struct staging_node *node,
                            struct remote *remote, struct err *err)
{
    switch (node->phase) {
    case PHASE_FOLDER:
        return step_folder(staging, node, remote, err);
    case PHASE_ORDER:
        return step_order(staging, node, remote, err);
    case PHASE_RELAY:
        return step_relay(staging, node, remote, err);
    case PHASE_OVER:
        break;
    }
    return STEP_DONE;
}

enum step stage_step_node(void *ctx, struct fleet_node *fleet_node, size_t idx, struct err *err)
{
    struct staging *staging = ctx;
    struct staging_node *node = &staging->nodes[idx];
    enum stage_phase before = node->phase;
    enum step step;
    if (staging->fatal.code != ERR_NONE) {
        fleet_node->remote->ops->abort(fleet_node->remote);
        *err = staging->fatal;
        step = STEP_FAIL;
    } else {
        step = step_phase(staging, node, fleet_node->remote, err);
        /* The next phase begins at once: nothing would wake the loop for it. */
        while (step == STEP_AGAIN && node->phase != before && node->phase != PHASE_OVER) {
            before = node->phase;
            step = step_phase(staging, node, fleet_node->remote, err);
        }
    }
    if (step != STEP_AGAIN) {
        node->phase = PHASE_OVER;
        node->is_ready = false;
        if (step == STEP_FAIL && node->in_chain) {
            stage_cut(staging);
        }
    }
    stage_send(staging);
    return step;
}
