/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs on a node by reperf-node, which is put there once and then spoken to over one channel. Whatever keeps it from running leaves the
   work to the scripts; whatever ends it under an operation lets it be run again, and the operation be asked again, which is the same
   as asking once. */
#include "base/base.h"

#include "fleet/remote_ssh_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fs.h"

#define ENDS_MAX    3 /* of one operation */
#define SAID_MAX    (NODE_HEADER_BYTES + NODE_TEXT_MAX + 2 * (size_t)SAID_SLACK)
#define SAID_SLACK  65536
#define SCRIPT_MAX  65536
#define SEQ_AT      4 /* in a frame's header */
#define OFF_WORD    "none"
#define SELF_BYTES  4096
#define PUT_SPAN_NS (300 * NS_PER_S)

#if defined(__x86_64__)
#define MACHINE "x86_64"
#elif defined(__aarch64__)
#define MACHINE "aarch64"
#else
#define MACHINE "unknown"
#endif

void remote_node_init(struct remote_ssh *r)
{
    r->node = (struct remote_node){.put_fd = -1};
    strbuf_init(&r->node.script, SCRIPT_MAX);
    strbuf_init(&r->node.feed, 2 * NODE_FRAME_MAX);
    strbuf_init(&r->node.said, SAID_MAX);
}

void remote_node_release(struct remote_ssh *r)
{
    strbuf_release(&r->node.script);
    strbuf_release(&r->node.feed);
    strbuf_release(&r->node.said);
    fd_cleanup(&r->node.put_fd);
    free(r->node.program);
    r->node.program = NULL;
}

void remote_node_lost(struct remote_ssh *r)
{
    r->node.is_open = r->node.is_asked = false;
    if (r->node.state == NODE_UP) {
        r->node.state = NODE_LAUNCH;
    }
}

void remote_node_close(struct remote_ssh *r)
{
    if (r->node.is_open && r->ssh) {
        ssh_abort(r->ssh);
    }
    remote_node_lost(r);
}

bool remote_node_abort(struct remote_ssh *r)
{
    struct remote_node *node = &r->node;
    fd_cleanup(&node->put_fd);
    node->is_asked = false;
    if (node->is_open && node->state == NODE_UP) {
        ssh_pause(r->ssh); /* its answer will be one to a number that nobody waits for */
        return true;
    }
    node->is_open = false;
    return false;
}

void remote_node_request(struct remote_ssh *r, enum node_op op, const struct str *fields,
                         size_t n_fields)
{
    if (!r->op.request.len) {
        node_request_write(&r->op.request, &(struct node_request){
                                               .op = op, .fields = fields, .n_fields = n_fields});
        r->op.may_put = op == NODE_START;
        r->op.is_by_scripts = r->op.request.is_full;
    }
}

static void never(struct remote_ssh *r, const char *what, struct str why)
{
    struct str rest = str_trim(why);
    struct str line = STR_EMPTY;
    remote_node_close(r);
    (void)str_next(&rest, '\n', &line);
    r->node.state = NODE_NEVER;
    snprintf(r->node.why, sizeof(r->node.why), "%s%s%.*s", what, what[0] && line.len ? ": " : "",
             (int)(line.len < 160 ? line.len : 160), line.len ? line.ptr : "");
    for (char *c = r->node.why; *c; c++) {
        *c = (unsigned char)*c < ' ' ? ' ' : *c;
    }
}

/* ---- here ---- */

/* $REPERF_NODE, else reperf-node beside this program. */
static char *find_program(void)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *named = getenv("REPERF_NODE");
    char self[SELF_BYTES];
    ssize_t len;
    if (named && named[0]) {
        return xstrdup(named);
    }
    len = readlink("/proc/self/exe", self, sizeof(self));
    while (len > 0 && self[len - 1] != '/') {
        len--;
    }
    return xstrdup(arena_printf(&arena, "%.*sreperf-node", len > 0 ? (int)len : 0, self));
}

int remote_node_program(struct arena *arena, const char **ret_path, char *ret_sha256,
                        struct err *err)
{
    CLEANUP(free) char *program = find_program();
    struct digest_value value;
    struct err why = {0};
    if (strcmp(program, OFF_WORD) == 0) {
        return err_set(err, ERR_NODE, "switched off: REPERF_NODE=" OFF_WORD);
    }
    if (digest_file(program, DIGEST_SHA256, &value, &why) < 0) {
        return err_set(err, ERR_NODE, "reperf-node cannot be read here: %s", why.msg);
    }
    hex_encode(value.sha256, SHA256_BYTES, ret_sha256);
    *ret_path = arena_printf(arena, "%s", program);
    return 0;
}

const char *remote_node_path(struct arena *arena, const char *work_folder, const char *sha256)
{
    return arena_printf(arena, "%s/bin/reperf-node-%s", work_folder, sha256);
}

static void prepare(struct remote_ssh *r)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct remote_node *node = &r->node;
    const char *program;
    struct err err = {0};
    if (remote_node_program(&arena, &program, node->sha256, &err) < 0) {
        never(r, "", str_of(err.msg));
        return;
    }
    free(node->program);
    node->program = xstrdup(program);
    node->state = NODE_LAUNCH;
}

/* ---- the channel ---- */

/* One turn of it. STEP_DONE: what ran there has ended, with that status. */
static enum step turn(struct remote_ssh *r, int *ret_status, bool *ret_again, struct err *err)
{
    struct remote_node *node = &r->node;
    const char *const args[] = {r->work_wanted, node->sha256, MACHINE, NULL};
    const struct ssh_script script = {.text = node->script.ptr,
                                      .args = args,
                                      .input_fd = -1,
                                      .feed = &node->feed,
                                      .on_output = remote_ssh_collect,
                                      .output_ctx = &node->said,
                                      .deadline_ns = REMOTE_OWN_DEADLINE_NS};
    const struct run_opts opts = {&script, true, r->op.what};
    enum step step = remote_ssh_run(r, &opts, ret_status, ret_again, err);
    if (step == STEP_AGAIN && r->is_up) {
        node->is_open = true;
    } else if (step == STEP_DONE) {
        remote_node_lost(r); /* the channel is closed */
    }
    return step;
}

/* It is gone, or is not to be trusted: once more, or no more. */
static void is_over(struct remote_ssh *r, const char *what, struct str why)
{
    if (++r->op.n_ends >= ENDS_MAX) {
        never(r, what, why);
        return;
    }
    remote_node_close(r);
    r->node.state = NODE_LAUNCH;
}

static void has_ended(struct remote_ssh *r, int status)
{
    char text[32];
    snprintf(text, sizeof(text), "status %d", status);
    is_over(r, "reperf-node ended there", str_of(text));
}

static enum step launch(struct remote_ssh *r, struct err *err)
{
    struct remote_node *node = &r->node;
    struct str said;
    int status = 0;
    bool is_again;
    enum step step;
    if (!node->is_open) {
        strbuf_clear(&node->script);
        strbuf_add_z(&node->script, REMOTE_PRELUDE);
        strbuf_add_z(&node->script, REMOTE_NODE_LAUNCH);
        strbuf_clear(&node->feed);
        strbuf_clear(&node->said);
    }
    step = turn(r, &status, &is_again, err);
    if (step == STEP_FAIL || is_again) {
        return step;
    }
    said = strbuf_str(&node->said);
    if (step == STEP_DONE && status == REMOTE_NODE_ABSENT && !node->was_put) {
        node->state = NODE_ABSENT;
    } else if (step == STEP_DONE && str_starts(said, STR_LIT(NODE_HELLO))) {
        has_ended(r, status);
    } else if (step == STEP_DONE && status == REMOTE_NODE_ABSENT) {
        never(r, "reperf-node was put there and is gone, or is another", said);
    } else if (step == STEP_DONE) {
        never(r, "reperf-node does not run there", said);
    } else if (said.len >= sizeof(NODE_HELLO) - 1) {
        if (str_starts(said, STR_LIT(NODE_HELLO))) {
            strbuf_clear(&node->said); /* it says nothing more unasked */
            node->state = NODE_UP;
            node->is_asked = node->was_put = false;
        } else if (str_find(said, STR_LIT("\n")) >= 0) {
            never(r, "reperf-node does not run there", said);
        }
    }
    return node->state == NODE_LAUNCH ? step : STEP_DONE;
}

static enum step put(struct remote_ssh *r, struct err *err)
{
    struct remote_node *node = &r->node;
    const char *const args[] = {r->work_wanted, node->sha256, r->op.nonce, NULL};
    int status = 0;
    bool is_again;
    enum step step;
    if (node->put_fd < 0) {
        node->put_fd = open(node->program, O_RDONLY | O_CLOEXEC);
        if (node->put_fd < 0) {
            never(r, node->program, str_of(err_errno_text(errno)));
            return STEP_DONE;
        }
        strbuf_clear(&node->script);
        strbuf_add_z(&node->script, REMOTE_PRELUDE);
        strbuf_add_z(&node->script, REMOTE_NODE_PUT);
        strbuf_clear(&node->said);
    }
    const struct ssh_script script = {.text = node->script.ptr,
                                      .args = args,
                                      .input_fd = node->put_fd,
                                      .on_output = remote_ssh_collect,
                                      .output_ctx = &node->said,
                                      .deadline_ns = PUT_SPAN_NS};
    const struct run_opts opts = {&script, true, r->op.what};
    step = remote_ssh_run(r, &opts, &status, &is_again, err);
    if (is_again) {
        strbuf_clear(&node->said);
    }
    if (step == STEP_AGAIN) {
        return step;
    }
    fd_cleanup(&node->put_fd);
    if (step == STEP_FAIL && r->has_script_failed && err->code == ERR_TIMEOUT) {
        never(r, "reperf-node could not be put there", str_of(err->msg));
        *err = (struct err){0};
        return STEP_DONE;
    }
    if (step == STEP_FAIL) {
        return step;
    }
    if (status != 0) {
        never(r, "reperf-node could not be put there", strbuf_str(&node->said));
    } else {
        node->was_put = true;
        node->state = NODE_LAUNCH;
    }
    return STEP_DONE;
}

/* ---- one operation ---- */

/* 1: the answer was there and is taken; 0: not yet; -1: what came is none. */
static int take_answer(struct remote_ssh *r, int *ret_exit_status, struct err *err)
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

static void send_request(struct remote_ssh *r)
{
    struct remote_node *node = &r->node;
    uint32_t seq = ++node->seq;
    for (size_t idx = 0; idx < 4; idx++) {
        r->op.request.ptr[SEQ_AT + idx] = (char)(uint8_t)(seq >> (8 * idx));
    }
    strbuf_add_str(&node->feed, strbuf_str(&r->op.request));
    node->is_asked = true;
    ssh_go_on(r->ssh, REMOTE_OWN_DEADLINE_NS);
}

/* *ret_is_done: it is answered; else, with STEP_DONE, the state is another. */
static enum step ask(struct remote_ssh *r, int *ret_exit_status, bool *ret_is_done, struct err *err)
{
    struct remote_node *node = &r->node;
    struct err cause = {0};
    int status = 0, rc;
    bool is_again;
    enum step step;
    if (!node->is_asked) {
        send_request(r);
    }
    step = turn(r, &status, &is_again, err);
    if (is_again || (step == STEP_FAIL && !(r->has_script_failed && err->code == ERR_NODE))) {
        return step;
    }
    if (step == STEP_FAIL) {
        cause = *err;
        *err = (struct err){0};
        is_over(r, "reperf-node ended there", str_of(cause.msg));
        return STEP_DONE;
    }
    bool was_asked = node->is_asked;
    node->is_asked = true; /* also where it ended with its answer */
    rc = take_answer(r, ret_exit_status, &cause);
    node->is_asked = was_asked && rc == 0;
    if (rc > 0) {
        r->down_since_ns = r->retry_at_ns = 0;
        *ret_is_done = true;
        if (node->is_open) {
            ssh_pause(r->ssh);
        }
        return STEP_DONE;
    }
    if (rc < 0) {
        is_over(r, "reperf-node there gave no answer", str_of(cause.msg));
        return STEP_DONE;
    }
    if (step == STEP_DONE) {
        has_ended(r, status);
    }
    return step;
}

enum step remote_node_serve(struct remote_ssh *r, int *ret_exit_status, struct err *err)
{
    enum step step = STEP_DONE;
    bool is_done = false;
    while (step == STEP_DONE && !is_done && !r->op.is_by_scripts) {
        switch (r->node.state) {
        case NODE_UNKNOWN:
            prepare(r);
            break;
        case NODE_LAUNCH:
            step = launch(r, err);
            break;
        case NODE_ABSENT:
            r->op.is_by_scripts = !r->op.may_put;
            r->node.state = r->op.may_put ? NODE_PUT : NODE_ABSENT;
            break;
        case NODE_PUT:
            step = put(r, err);
            break;
        case NODE_UP:
            step = ask(r, ret_exit_status, &is_done, err);
            break;
        case NODE_NEVER:
        default:
            r->op.is_by_scripts = true;
            break;
        }
    }
    return step;
}
