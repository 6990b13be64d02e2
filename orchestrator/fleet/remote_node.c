/* SPDX-License-Identifier: Apache-2.0 */
/* reperf-node on a node: installed once, its digest checked each time before it runs, and used over one channel. If it ends
   during an operation it is started again and the request repeated, which is idempotent; if it cannot run, or sends an
   invalid answer, the operation fails (ERR_NODE) with advice. */
#include "base/base.h"

#include "fleet/remote_node_impl.h"

#include <unistd.h>

#include "load/places.h"

#define ENDS_MAX   3 /* in one operation */
#define SAID_MAX   (NODE_HEADER_BYTES + NODE_TEXT_MAX + 2 * (size_t)SAID_SLACK)
#define SAID_SLACK 65536
#define SEQ_AT     4 /* in a frame's header */
#define SELF_BYTES 4096
#define WHY_MAX    240

void served_release(struct served *r)
{
    served_end(r);
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

/* Written once an operation; what is too long leaves op.request.is_full. */
static void remote_node_request(struct served *r, enum node_op op, const struct str *fields,
                                size_t n_fields)
{
    if (!r->op.request.len) {
        node_request_write(&r->op.request, &(struct node_request){
                                               .op = op, .fields = fields, .n_fields = n_fields});
    }
}

/* The first line of what the node says, for people. */
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
    char self[SELF_BYTES] = "";
    (void)!readlink("/proc/self/exe", self, sizeof(self) - 1);
    return xstrdup(places_program(&arena, getenv("REPERF_NODE"), self, "reperf-node"));
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

/* Serves the current operation by reperf-node, which is installed first if necessary: its answer is in op.output until
   served_end; STEP_FAIL has ended it. */
static enum step remote_node_ask(struct served *r, struct err *err)
{
    int status = 0;
    if (r->op.request.is_full) {
        (void)!err_set(err, ERR_USAGE, "%s: more than %u bytes", r->op.what, NODE_BODY_MAX);
        served_end(r);
        return STEP_FAIL;
    }
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

/* Where it lies there. */
static enum step remote_node_there(struct remote *remote, const char **ret_path, struct err *err)
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

/* ---- jobs, and their logs ---- */

#define POLL_WAIT_MS "1000"
#define JOB_SPAN_NS  (150 * NS_PER_S) /* Slurm's controller is given a minute to answer */
/* The containers of all nodes. */
#define CLEANUP_BY_SRUN "srun --overlap --mpi=none --ntasks-per-node=1 --export=ALL "

static int check_id(const char *id, struct err *err)
{
    struct str rest = str_of(id);
    struct str part;
    if (rest.len >= JOB_ID_MAX || !rest.len) {
        return err_set(err, ERR_INTERNAL, "job id of %zu bytes", rest.len);
    }
    while (str_next(&rest, '/', &part)) {
        if (!part.len || str_eq_z(part, ".") || str_eq_z(part, "..")) {
            return err_set(err, ERR_INTERNAL, "job id %s is not a plain relative path", id);
        }
    }
    return 0;
}

static struct str make_cleanup(struct arena *arena, const struct remote_job *job)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(NODE_BODY_MAX);
    strbuf_add_z(&text, job->cleanup && job->batch ? CLEANUP_BY_SRUN : "");
    for (size_t idx = 0; job->cleanup && job->cleanup[idx]; idx++) {
        shq_append(&text, str_of(job->cleanup[idx]));
        strbuf_add_char(&text, ' ');
    }
    return str_dup(arena, strbuf_str(&text));
}

/* The options of sbatch, each with a line break. */
static struct str make_options(struct arena *arena, const struct remote_batch *batch)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(NODE_BODY_MAX);
    if (batch) {
        strbuf_printf(&text, "--nodes=%" PRId64 "\n--ntasks-per-node=%" PRId64 "\n", batch->n_nodes,
                      batch->tasks_per_node);
    }
    if (batch && batch->gpus_per_node) {
        strbuf_printf(&text, "--gpus-per-node=%" PRId64 "\n", batch->gpus_per_node);
    }
    if (batch && batch->limit_s) {
        strbuf_printf(&text, "--time=%" PRId64 "\n", (batch->limit_s + 59) / 60);
    }
    if (batch && batch->nodelist) {
        strbuf_printf(&text, "--nodelist=%s\n", batch->nodelist);
    }
    return str_dup(arena, strbuf_str(&text));
}

/* A request about a job. STEP_DONE: its answer is in op.output until end_op. */
static enum step ask_job(struct served *r, const char *what, enum node_op op,
                         const struct str *fields, size_t n_fields, struct err *err)
{
    if (!r->op.is_active) {
        if (check_id(fields[0].ptr, err) < 0) {
            return STEP_FAIL;
        }
        served_begin(r, what);
        r->op.span_ns = JOB_SPAN_NS;
    }
    remote_node_request(r, op, fields, n_fields);
    return remote_node_ask(r, err);
}

static enum step end_op(struct served *r, int result)
{
    served_end(r);
    return result < 0 ? STEP_FAIL : STEP_DONE;
}

static int cannot_read(const struct served *r, const char *what, struct str said, struct err *err)
{
    *err = (struct err){0};
    return err_set(err, ERR_NODE, "%s: %s: \"%.*s\"", r->way->label(r), what,
                   STR_ARG(str_trim(str_sub(said, 0, 200))));
}

static enum step job_start(struct remote *remote, const struct remote_job *job, struct err *err)
{
    struct served *r = (struct served *)remote;
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct str *fields = NULL;
    size_t n_argv = 0, n_env = 0, n = 0;
    while (job->argv[n_argv]) {
        n_argv++;
    }
    while (job->env && job->env[n_env]) {
        n_env++;
    }
    if (!r->op.request.len) { /* written once */
        fields = arena_array(&arena, struct str, 5 + n_argv + n_env);
        fields[n++] = str_of(job->id);
        fields[n++] = make_options(&arena, job->batch);
        fields[n++] = make_cleanup(&arena, job);
        fields[n++] = job->is_watched ? STR_LIT("1") : STR_LIT("0");
        fields[n++] = str_printf(&arena, "%zu", n_argv);
        for (size_t idx = 0; idx < n_argv; idx++) {
            fields[n++] = str_of(job->argv[idx]);
        }
        for (size_t idx = 0; idx < n_env; idx++) {
            fields[n++] = str_of(job->env[idx]);
        }
    }
    enum step step = ask_job(r, "the start of a job", NODE_START, fields, n, err);
    return step == STEP_DONE ? end_op(r, 0) : step;
}

static enum step job_poll(struct remote *remote, const char *id, struct job_report *ret_report,
                          struct err *err)
{
    struct served *r = (struct served *)remote;
    const struct str fields[] = {str_of(id), STR_LIT(POLL_WAIT_MS)};
    enum step step = ask_job(r, "a look at a job", NODE_POLL, fields, ARRAY_LEN(fields), err);
    if (step != STEP_DONE) {
        return step;
    }
    struct str said = strbuf_str(&r->op.output);
    return end_op(r, node_report_read(said, ret_report)
                         ? 0
                         : cannot_read(r, "a job's state cannot be read", said, err));
}

static enum step job_read_log(struct remote *remote, const char *id, struct log_part *part,
                              struct err *err)
{
    struct served *r = (struct served *)remote;
    char from[24], most[24];
    const struct str fields[] = {
        str_of(id),
        {from, (size_t)snprintf(from, sizeof(from), "%" PRIu64, part->offset)},
        {most, (size_t)snprintf(most, sizeof(most), "%zu", part->size)}};
    part->len = 0;
    enum step step =
        ask_job(r, "the reading of a job's log", NODE_READ, fields, ARRAY_LEN(fields), err);
    if (step != STEP_DONE) {
        return step;
    }
    struct str text = strbuf_str(&r->op.output);
    if (text.len > part->size) {
        return end_op(r, cannot_read(r, "more of a log than was asked for", text, err));
    }
    memcpy(part->dst, text.ptr, text.len);
    part->len = text.len;
    return end_op(r, 0);
}

static enum step job_signal(struct remote *remote, const char *id, int signal_no, struct err *err)
{
    struct served *r = (struct served *)remote;
    char number[16];
    const struct str fields[] = {
        str_of(id), {number, (size_t)snprintf(number, sizeof(number), "%d", signal_no)}};
    enum step step = ask_job(r, "a signal to a job", NODE_SIGNAL, fields, ARRAY_LEN(fields), err);
    return step == STEP_DONE ? end_op(r, 0) : step;
}

static enum step job_reap(struct remote *remote, const char *id, char *ret_hex, struct err *err)
{
    struct served *r = (struct served *)remote;
    const struct str field = str_of(id);
    uint8_t sha256[SHA256_BYTES];
    enum step step = ask_job(r, "the end of a job", NODE_REAP, &field, 1, err);
    if (step != STEP_DONE) {
        return step;
    }
    struct str hex = str_trim(strbuf_str(&r->op.output));
    if (hex_decode(hex, SHA256_BYTES, sha256, err) < 0) {
        return end_op(r, cannot_read(r, "the end of a job cannot be read", hex, err));
    }
    snprintf(ret_hex, SHA256_HEX_SIZE, "%.*s", STR_ARG(hex));
    return end_op(r, 0);
}

static enum step job_forget(struct remote *remote, const char *id, struct err *err)
{
    struct served *r = (struct served *)remote;
    const struct str field = str_of(id);
    enum step step = ask_job(r, "the removal of a job's folder", NODE_FORGET, &field, 1, err);
    return step == STEP_DONE ? end_op(r, 0) : step;
}

static enum step job_folder(struct remote *remote, const char **ret_path, struct err *err)
{
    struct served *r = (struct served *)remote;
    if (r->work_folder) {
        *ret_path = r->work_folder;
        return STEP_DONE;
    }
    if (!r->op.is_active) {
        served_begin(r, "the work folder");
    }
    remote_node_request(r, NODE_FOLDER, NULL, 0);
    enum step step = remote_node_ask(r, err);
    if (step != STEP_DONE) {
        return step;
    }
    struct str path = str_trim(strbuf_str(&r->op.output));
    if (!str_starts(path, STR_LIT("/"))) {
        return end_op(r, cannot_read(r, "its work folder has no absolute path", path, err));
    }
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    r->work_folder = xstrdup(str_z(&arena, path));
    *ret_path = r->work_folder;
    return end_op(r, 0);
}

static enum step job_ask(struct remote *remote, const struct remote_ask *ask, struct err *err)
{
    struct served *r = (struct served *)remote;
    if (!r->op.is_active) {
        served_begin(r, ask->what);
        r->op.is_own_word = true;
        r->op.span_ns = ask->deadline_ns ? ask->deadline_ns : ASK_SPAN_NS;
    }
    remote_node_request(r, ask->op, ask->fields, ask->n_fields);
    enum step step = remote_node_ask(r, err);
    if (step != STEP_DONE) {
        return step;
    }
    strbuf_add_str(ask->output, strbuf_str(&r->op.output));
    return end_op(r, ask->output->is_full
                         ? err_set(err, ERR_NODE, "%s: %s: more than %zu bytes", r->way->label(r),
                                   ask->what, ask->output->cap_bytes)
                         : 0);
}

/* ---- all of it ---- */

void served_init(struct served *r, struct loop *loop, const struct node_way *way,
                 struct remote_ops ops)
{
    ops.ask = job_ask;
    ops.start = job_start;
    ops.poll = job_poll;
    ops.read_log = job_read_log;
    ops.signal = job_signal;
    ops.reap = job_reap;
    ops.forget = job_forget;
    ops.work_folder = job_folder;
    ops.program = remote_node_there;
    r->ops = ops;
    r->remote.ops = &r->ops;
    r->loop = loop;
    r->way = way;
    strbuf_init(&r->node.feed, 2 * NODE_FRAME_MAX);
    strbuf_init(&r->node.said, SAID_MAX);
}
