/* SPDX-License-Identifier: Apache-2.0 */
/* reperf-node on a node: installed once, its digest checked each time before it runs, and used over one channel. If it ends during an
   operation it is started again and the request repeated, which is idempotent; if it cannot run, or sends an invalid answer, the
   operation fails (ERR_NODE) with advice. */
#include "base/base.h"

#include "fleet/remote_node_impl.h"

#include <unistd.h>

#define ENDS_MAX   3 /* of one operation */
#define SAID_MAX   (NODE_HEADER_BYTES + NODE_TEXT_MAX + 2 * (size_t)SAID_SLACK)
#define SAID_SLACK 65536
#define SEQ_AT     4 /* in a frame's header */
#define SELF_BYTES 4096
#define WHY_MAX    240

void served_init(struct served *r, struct loop *loop, const struct node_way *way)
{
    r->loop = loop;
    r->way = way;
    r->known_size = -1;
    strbuf_init(&r->ahead, READ_AHEAD_MAX);
    strbuf_init(&r->node.feed, 2 * NODE_FRAME_MAX);
    strbuf_init(&r->node.said, SAID_MAX);
}

void served_release(struct served *r)
{
    served_end(r);
    strbuf_release(&r->ahead);
    strbuf_release(&r->node.feed);
    strbuf_release(&r->node.said);
    free(r->node.program);
    free(r->node.there);
    free(r->work_folder);
}

void served_end(struct served *r)
{
    if (r->op.is_active) {
        strbuf_release(&r->op.output);
        strbuf_release(&r->op.request);
    }
    r->op = (struct operation){0};
}

void served_begin(struct served *r, const char *what)
{
    ASSERT(!r->op.is_active);
    r->op = (struct operation){.is_active = true, .what = what, .span_ns = ASK_SPAN_NS};
    strbuf_init(&r->op.output, OP_OUTPUT_MAX);
    strbuf_init(&r->op.request, NODE_FRAME_MAX);
}

void remote_collect(void *ctx, const char *ptr, size_t len)
{
    strbuf_add(ctx, ptr, len);
}

void remote_node_lost(struct served *r)
{
    r->node.is_open = r->node.is_asked = false;
    if (r->node.state == NODE_UP) {
        r->node.state = NODE_LAUNCH;
    }
}

void remote_node_close(struct served *r)
{
    if (r->node.is_open) {
        r->way->close(r);
    }
    remote_node_lost(r);
}

bool remote_node_abort(struct served *r)
{
    struct remote_node *node = &r->node;
    node->is_asked = false;
    if (node->is_open && node->state == NODE_UP) {
        r->way->pause(r); /* its answer will be for a request that is no longer waited for */
        return true;
    }
    node->is_open = false;
    return false;
}

void remote_node_request(struct served *r, enum node_op op, const struct str *fields,
                         size_t n_fields)
{
    if (!r->op.request.len) {
        node_request_write(&r->op.request, &(struct node_request){
                                               .op = op, .fields = fields, .n_fields = n_fields});
    }
}

/* Of what the node says the first line, as one for people. */
static int fails(struct served *r, const char *what, struct str said, struct err *err)
{
    static const char *const FULL[] = {"No space left on device", "Disk quota exceeded",
                                       "Read-only file system", "File too large"};
    struct str rest = str_trim(said);
    struct str line = STR_EMPTY;
    char text[WHY_MAX];
    const char *label = r->op.is_own_word ? "" : r->way->label(r); /* the fleet names the node */
    enum err_code code = ERR_NODE;
    for (size_t idx = 0; idx < ARRAY_LEN(FULL); idx++) {
        code = str_find(rest, str_of(FULL[idx])) >= 0 ? ERR_DISK : code;
    }
    (void)str_next(&rest, '\n', &line);
    snprintf(text, sizeof(text), "%.*s", STR_ARG(line));
    for (char *c = text; *c; c++) {
        *c = (unsigned char)*c < ' ' ? ' ' : *c;
    }
    return err_set(err, code, "%s%s%s%s%s", label, label[0] ? ": " : "", what,
                   what[0] && text[0] ? ": " : "", text);
}

enum step remote_node_never(struct served *r, const char *what, struct str said, struct err *err)
{
    remote_node_close(r);
    r->node.state = NODE_UNKNOWN;
    r->node.was_put = false;
    return step_fail(fails(r, what, said, err));
}

/* ---- here ---- */

char *remote_node_file(void)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *named = getenv("REPERF_NODE");
    char self[SELF_BYTES];
    if (named && named[0]) {
        return xstrdup(named);
    }
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self));
    while (len > 0 && self[len - 1] != '/') {
        len--;
    }
    return xstrdup(arena_printf(&arena, "%.*sreperf-node", len > 0 ? (int)len : 0, self));
}

/* ---- the channel ---- */

/* It is gone, or cannot be trusted: try again, or give up. */
static enum step is_over(struct served *r, const char *what, struct str why, struct err *err)
{
    if (++r->op.n_ends >= ENDS_MAX) {
        return remote_node_never(r, what, why, err);
    }
    remote_node_close(r);
    r->node.state = NODE_LAUNCH;
    return STEP_DONE;
}

static enum step has_ended(struct served *r, int status, struct err *err)
{
    char text[32];
    snprintf(text, sizeof(text), "status %d", status);
    return is_over(r, "reperf-node ended there", str_of(text), err);
}

/* "reperf-node VERSION PATH" and a line break. 1: it is up; 0: more is to come; -1: it says something else. */
static int take_hello(struct remote_node *node)
{
    struct str said = strbuf_str(&node->said);
    struct str hello = STR_LIT(NODE_HELLO);
    ptrdiff_t end = str_find(said, STR_LIT("\n"));
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    if (end < 0) {
        return said.len <= SAID_SLACK &&
                       str_starts(said.len < hello.len ? hello : said,
                                  str_sub(said.len < hello.len ? said : hello, 0, hello.len))
                   ? 0
                   : -1;
    }
    if (!str_starts(said, hello) || (size_t)end == hello.len || said.ptr[hello.len] != '/') {
        return -1;
    }
    free(node->there);
    node->there = xstrdup(str_z(&arena, str_sub(said, hello.len, (size_t)end - hello.len)));
    strbuf_clear(&node->said); /* it says nothing more unasked */
    node->state = NODE_UP;
    node->is_asked = node->was_put = false;
    return 1;
}

static enum step launch(struct served *r, struct err *err)
{
    struct remote_node *node = &r->node;
    int status = 0;
    bool is_again;
    enum step step = r->way->turn(r, &status, &is_again, err);
    if (step == STEP_FAIL || is_again) {
        return step;
    }
    if (step == STEP_DONE && status == NODE_ABSENT && r->way->put && !node->was_put) {
        node->state = NODE_PUT;
        return STEP_DONE;
    }
    if (step == STEP_DONE && status == NODE_ABSENT && r->way->put) {
        return remote_node_never(r, "reperf-node was installed there, but is gone or was changed",
                                 STR_EMPTY, err);
    }
    int hello = take_hello(node);
    if (step == STEP_DONE && hello > 0) {
        return has_ended(r, status, err);
    }
    if (step == STEP_DONE || hello < 0) {
        return remote_node_never(r, "reperf-node does not run there", strbuf_str(&node->said), err);
    }
    return hello > 0 ? STEP_DONE : step;
}

/* ---- one operation ---- */

/* 1: the answer was received; 0: not yet; -1: an invalid answer. */
static int take_answer(struct served *r, int *ret_exit_status, struct err *err)
{
    struct remote_node *node = &r->node;
    struct node_answer answer;
    size_t len = 0;
    int rc;
    while ((rc = node_answer_read(strbuf_str(&node->said), &answer, &len, err)) > 0) {
        bool is_ours = node->is_asked && answer.seq == node->seq;
        if (is_ours) {
            strbuf_clear(&r->op.output);
            strbuf_add_str(&r->op.output, answer.text);
            *ret_exit_status = answer.status;
        }
        memmove(node->said.ptr, node->said.ptr + len, node->said.len - len + 1);
        node->said.len -= len;
        if (is_ours) {
            return 1;
        }
    }
    if (rc == 0 && node->said.is_full) {
        rc = err_set(err, ERR_PARSE, "more than %zu bytes", node->said.cap_bytes);
    }
    return rc;
}

static void send_request(struct served *r)
{
    struct remote_node *node = &r->node;
    uint32_t seq = ++node->seq;
    for (size_t idx = 0; idx < 4; idx++) {
        r->op.request.ptr[SEQ_AT + idx] = (char)(uint8_t)(seq >> (8 * idx));
    }
    strbuf_add_str(&node->feed, strbuf_str(&r->op.request));
    node->is_asked = true;
    r->way->go_on(r);
}

/* *ret_is_done: it was answered; else, with STEP_DONE, the state has changed. */
static enum step ask(struct served *r, int *ret_exit_status, bool *ret_is_done, struct err *err)
{
    struct remote_node *node = &r->node;
    struct err cause = {0};
    int status = 0;
    bool is_again;
    if (!node->is_asked) {
        send_request(r);
    }
    enum step step = r->way->turn(r, &status, &is_again, err);
    if (is_again || (step == STEP_FAIL && !(node->has_turn_failed && err->code == ERR_NODE))) {
        return step;
    }
    if (step == STEP_FAIL) {
        cause = *err;
        *err = (struct err){0};
        return is_over(r, "reperf-node ended there", str_of(cause.msg), err);
    }
    bool was_asked = node->is_asked;
    node->is_asked = true; /* also where it ended with its answer */
    int rc = take_answer(r, ret_exit_status, &cause);
    node->is_asked = was_asked && rc == 0;
    if (rc > 0) {
        *ret_is_done = true;
        r->way->pause(r);
        return STEP_DONE;
    }
    if (rc < 0) {
        return is_over(r, "reperf-node there gave no answer", str_of(cause.msg), err);
    }
    return step == STEP_DONE ? has_ended(r, status, err) : step;
}

/* Steps until it is up and, if is_question, has answered. */
static enum step serve(struct served *r, bool is_question, int *ret_status, struct err *err)
{
    enum step step = STEP_DONE;
    bool is_done = false;
    while (step == STEP_DONE && !is_done) {
        switch (r->node.state) {
        case NODE_UNKNOWN:
            step = r->way->prepare(r, err) < 0 ? STEP_FAIL : STEP_DONE;
            r->node.state = step == STEP_DONE ? NODE_LAUNCH : NODE_UNKNOWN;
            break;
        case NODE_LAUNCH:
            step = launch(r, err);
            break;
        case NODE_PUT:
            step = r->way->put(r, err);
            break;
        case NODE_UP:
        default:
            is_done = !is_question;
            step = is_question ? ask(r, ret_status, &is_done, err) : STEP_DONE;
            break;
        }
    }
    return step;
}

/* The node's own reason. */
static int has_refused(struct served *r, int status, struct err *err)
{
    char what[128] = "";
    if (!r->op.is_own_word) {
        snprintf(what, sizeof(what), "%s failed (%d)", r->op.what, status);
    }
    (void)fails(r, what, strbuf_str(&r->op.output), err);
    err->code = status == NODE_FULL ? ERR_DISK : status == NODE_ENGINE ? ERR_CONTAINER : err->code;
    return -1;
}

enum step remote_node_ask(struct served *r, struct err *err)
{
    int status = 0;
    enum step step = serve(r, true, &status, err);
    if (step == STEP_DONE && status != 0) {
        (void)has_refused(r, status, err);
        step = STEP_FAIL;
    }
    if (step == STEP_FAIL) {
        served_end(r);
    }
    return step;
}

enum step remote_node_there(struct remote *remote, const char **ret_path, struct err *err)
{
    struct served *r = (struct served *)remote;
    enum step step = STEP_DONE;
    int unused;
    if (!r->node.there) {
        if (!r->op.is_active) {
            served_begin(r, "the start of reperf-node");
        }
        step = serve(r, false, &unused, err);
        if (step == STEP_DONE) {
            r->way->pause(r);
        }
        if (step != STEP_AGAIN) {
            served_end(r);
        }
    }
    if (step == STEP_DONE) {
        *ret_path = r->node.there;
    }
    return step;
}
