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

/* Written once an operation; what is too long leaves op.request.is_full. */
static void remote_node_request(struct served *r, enum node_op op, const struct str *fields,
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

/* Serves the current operation by reperf-node, which is installed first if necessary: its answer is in op.output until
   served_end; STEP_FAIL has ended it. */
static enum step remote_node_ask(struct served *r, struct err *err)
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

#define POLL_WAIT_MS    "1000"
#define READ_AHEAD_TEXT "4194304" /* READ_AHEAD_MAX */

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

static struct str make_cleanup(struct arena *arena, const char *prefix,
                               const struct remote_job *job)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(NODE_BODY_MAX);
    strbuf_add_z(&text, job->cleanup ? prefix : "");
    for (size_t idx = 0; job->cleanup && job->cleanup[idx]; idx++) {
        shq_append(&text, str_of(job->cleanup[idx]));
        strbuf_add_char(&text, ' ');
    }
    return (struct str){arena_strndup(arena, text.ptr, text.len), text.len};
}

struct str *remote_job_fields(struct arena *arena, const struct remote_job *job,
                              const char *cleanup_prefix, size_t n_before, size_t *ret_n)
{
    size_t n_argv = 0, n_env = 0, n = n_before;
    while (job->argv[n_argv]) {
        n_argv++;
    }
    while (job->env && job->env[n_env]) {
        n_env++;
    }
    struct str *fields = arena_array(arena, struct str, n_before + 4 + n_argv + n_env);
    fields[n++] = STR_LIT(READ_AHEAD_TEXT);
    fields[n++] = make_cleanup(arena, cleanup_prefix, job);
    fields[n++] = job->is_watched ? STR_LIT("1") : STR_LIT("0");
    fields[n++] = str_printf(arena, "%zu", n_argv);
    for (size_t idx = 0; idx < n_argv; idx++) {
        fields[n++] = str_of(job->argv[idx]);
    }
    for (size_t idx = 0; idx < n_env; idx++) {
        fields[n++] = str_of(job->env[idx]);
    }
    *ret_n = n;
    return fields;
}

/* A request about a job, with at most two words more. STEP_DONE: its answer is in op.output until end_op. */
static enum step ask_job(struct served *r, const char *what, enum node_op op,
                         const char *const words[3], struct err *err)
{
    const struct str fields[] = {str_of(words[0]), str_of(words[1]), str_of(words[2])};
    if (!r->op.is_active) {
        if (check_id(words[0], err) < 0) {
            return STEP_FAIL;
        }
        served_begin(r, what);
    }
    remote_node_request(r, op, fields, words[2] ? 3 : words[1] ? 2 : 1);
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

/* What is known from now on is about that job's log. */
static void know_log(struct served *r, const char *id)
{
    snprintf(r->ahead_id, sizeof(r->ahead_id), "%s", id);
}

static void forget_log(struct served *r)
{
    strbuf_clear(&r->ahead);
    r->ahead_used = 0;
    r->ahead_id[0] = '\0';
    r->known_size = -1;
    r->has_early = r->has_early_end = false;
}

static int read_report(struct served *r, struct str said, struct job_report *report,
                       struct err *err)
{
    struct str rest = str_trim(said);
    struct str words[4] = {STR_EMPTY, STR_EMPTY, STR_EMPTY, STR_EMPTY};
    size_t n = 0;
    int64_t status = 0;
    int64_t size = -1;
    while (n < ARRAY_LEN(words) && str_next(&rest, ' ', &words[n])) {
        n++;
    }
    bool has_status = str_eq_z(words[0], "ended");
    bool is_good = (n == (has_status ? 3u : 2u) || (has_status && n == 4)) &&
                   str_to_i64(words[has_status ? 2 : 1], 0, INT64_MAX, &size, ERR_IGNORED) == 0 &&
                   (!has_status || str_to_i64(words[1], 0, 255, &status, ERR_IGNORED) == 0);
    if (is_good && has_status) {
        *report = (struct job_report){.state = JOB_ENDED, .exit_status = (int)status};
        snprintf(report->left, sizeof(report->left), "%.*s", STR_ARG(words[3]));
    } else if (is_good && str_eq_z(words[0], "running")) {
        *report = (struct job_report){.state = JOB_RUNNING};
    } else if (is_good && str_eq_z(words[0], "lost")) {
        *report = (struct job_report){.state = JOB_LOST};
    } else if (is_good && str_eq_z(words[0], "absent")) {
        *report = (struct job_report){.state = JOB_ABSENT};
    } else {
        return cannot_read(r, "a job's state cannot be read", said, err);
    }
    r->known_size = size;
    return 0;
}

/* "HEX LOG_BYTES" and a line break, then the log. */
static int take_reaped(struct served *r, struct str said, const char *id, uint64_t offset,
                       char *ret_hex, struct err *err)
{
    struct str rest = said;
    struct str line = STR_EMPTY;
    struct str hex = STR_EMPTY;
    uint8_t sha256[SHA256_BYTES];
    int64_t size = -1;
    bool has_line = str_next(&rest, '\n', &line) && str_next(&line, ' ', &hex);
    if (!has_line || str_to_i64(line, 0, INT64_MAX, &size, err) < 0 ||
        (!str_eq_z(hex, "-") && hex_decode(hex, SHA256_BYTES, sha256, err) < 0)) {
        return cannot_read(r, "the end of a job cannot be read", said, err);
    }
    forget_log(r);
    know_log(r, id);
    r->known_size = size;
    strbuf_add_str(&r->ahead, rest);
    r->ahead_at = offset;
    snprintf(ret_hex, SHA256_HEX_SIZE, "%.*s", str_eq_z(hex, "-") ? 0 : (int)hex.len, hex.ptr);
    return 0;
}

/* The state after its first second is what the next poll would return, and the next reap if it has ended. */
static int take_early(struct served *r, const char *id, struct err *err)
{
    struct str rest = strbuf_str(&r->op.output);
    struct str line = STR_EMPTY;
    struct job_report report;
    forget_log(r);
    (void)str_next(&rest, '\n', &line);
    if (read_report(r, line, &report, err) < 0) {
        return -1;
    }
    bool has_end = report.state == JOB_ENDED;
    if (has_end && take_reaped(r, rest, id, 0, r->early_hex, err) < 0) {
        return -1;
    }
    know_log(r, id);
    r->early = report;
    r->has_early = true;
    r->has_early_end = has_end;
    return 0;
}

static enum step job_start(struct remote *remote, const struct remote_job *job, struct err *err)
{
    struct served *r = (struct served *)remote;
    if (!r->op.is_active) {
        CLEANUP(arena) struct arena arena = ARENA_EMPTY;
        size_t n;
        struct str *fields = remote_job_fields(&arena, job, "", 1, &n);
        if (check_id(job->id, err) < 0) {
            return STEP_FAIL;
        }
        fields[0] = str_of(job->id);
        served_begin(r, "the start of a job");
        remote_node_request(r, NODE_START, fields, n);
    }
    if (r->op.request.is_full) {
        served_end(r);
        return step_fail(err_set(err, ERR_USAGE,
                                 "a job's command and environment of more than %u bytes",
                                 NODE_BODY_MAX));
    }
    enum step step = remote_node_ask(r, err);
    return step == STEP_DONE ? end_op(r, take_early(r, job->id, err)) : step;
}

static enum step job_poll(struct remote *remote, const char *id, struct job_report *ret_report,
                          struct err *err)
{
    struct served *r = (struct served *)remote;
    if (r->has_early && !r->op.is_active && strcmp(r->ahead_id, id) == 0) {
        r->has_early = false;
        *ret_report = r->early;
        return STEP_DONE;
    }
    enum step step =
        ask_job(r, "a look at a job", NODE_POLL, (const char *const[3]){id, POLL_WAIT_MS}, err);
    if (step != STEP_DONE) {
        return step;
    }
    if (strcmp(r->ahead_id, id) != 0) {
        forget_log(r);
        know_log(r, id);
    }
    return end_op(r, read_report(r, strbuf_str(&r->op.output), ret_report, err));
}

/* From what was read ahead. Returns false where that has nothing for this offset. */
static bool serve_ahead(struct served *r, const char *id, struct log_part *part)
{
    size_t left = r->ahead.len - r->ahead_used;
    if (strcmp(r->ahead_id, id) != 0 || left == 0 || part->offset != r->ahead_at + r->ahead_used) {
        return false;
    }
    part->len = left < part->size ? left : part->size;
    memcpy(part->dst, r->ahead.ptr + r->ahead_used, part->len);
    r->ahead_used += part->len;
    if (r->ahead_used == r->ahead.len) {
        strbuf_release(&r->ahead); /* megabytes a node otherwise */
        strbuf_init(&r->ahead, READ_AHEAD_MAX);
        r->ahead_used = 0;
    }
    return true;
}

static enum step job_read_log(struct remote *remote, const char *id, struct log_part *part,
                              struct err *err)
{
    struct served *r = (struct served *)remote;
    char from[24];
    part->len = 0;
    if (!r->op.is_active) {
        if (serve_ahead(r, id, part)) {
            return STEP_DONE;
        }
        if (strcmp(r->ahead_id, id) == 0 && r->known_size >= 0 &&
            (uint64_t)r->known_size <= part->offset) {
            r->known_size = -1; /* once: the next call looks */
            return STEP_DONE;
        }
    }
    snprintf(from, sizeof(from), "%" PRIu64, part->offset);
    enum step step = ask_job(r, "the reading of a job's log", NODE_READ,
                             (const char *const[3]){id, from, READ_AHEAD_TEXT}, err);
    if (step != STEP_DONE) {
        return step;
    }
    int64_t known_size = strcmp(r->ahead_id, id) == 0 ? r->known_size : -1;
    forget_log(r);
    know_log(r, id);
    r->known_size = known_size;
    strbuf_add_str(&r->ahead, strbuf_str(&r->op.output));
    r->ahead_at = part->offset;
    (void)serve_ahead(r, id, part);
    return end_op(r, 0);
}

static enum step job_digest(struct remote *remote, const char *id, char *ret_hex, struct err *err)
{
    struct served *r = (struct served *)remote;
    uint8_t sha256[SHA256_BYTES];
    enum step step =
        ask_job(r, "the digest of a job's log", NODE_DIGEST, (const char *const[3]){id}, err);
    if (step != STEP_DONE) {
        return step;
    }
    struct str hex = str_trim(strbuf_str(&r->op.output));
    if (hex.len && hex_decode(hex, SHA256_BYTES, sha256, err) < 0) {
        return end_op(r, cannot_read(r, "the digest of a log cannot be read", hex, err));
    }
    snprintf(ret_hex, SHA256_HEX_SIZE, "%.*s", STR_ARG(hex));
    return end_op(r, 0);
}

static enum step job_signal(struct remote *remote, const char *id, int signal_no, struct err *err)
{
    struct served *r = (struct served *)remote;
    char number[16];
    snprintf(number, sizeof(number), "%d", signal_no);
    enum step step =
        ask_job(r, "a signal to a job", NODE_SIGNAL, (const char *const[3]){id, number}, err);
    return step == STEP_DONE ? end_op(r, 0) : step;
}

static enum step job_reap(struct remote *remote, const char *id, uint64_t offset, char *ret_hex,
                          struct err *err)
{
    struct served *r = (struct served *)remote;
    char from[24];
    if (r->has_early_end && !r->op.is_active && strcmp(r->ahead_id, id) == 0 && offset == 0) {
        r->has_early_end = false;
        snprintf(ret_hex, SHA256_HEX_SIZE, "%s", r->early_hex);
        return STEP_DONE;
    }
    snprintf(from, sizeof(from), "%" PRIu64, offset);
    enum step step = ask_job(r, "the end of a job", NODE_REAP,
                             (const char *const[3]){id, from, READ_AHEAD_TEXT}, err);
    return step == STEP_DONE
               ? end_op(r, take_reaped(r, strbuf_str(&r->op.output), id, offset, ret_hex, err))
               : step;
}

static enum step job_forget(struct remote *remote, const char *id, struct err *err)
{
    struct served *r = (struct served *)remote;
    enum step step =
        ask_job(r, "the removal of a job's folder", NODE_FORGET, (const char *const[3]){id}, err);
    if (step != STEP_DONE) {
        return step;
    }
    forget_log(r);
    return end_op(r, 0);
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
    if (r->op.request.is_full) {
        served_end(r);
        return step_fail(
            err_set(err, ERR_USAGE, "%s: more than %u bytes", ask->what, NODE_BODY_MAX));
    }
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
    ops.log_digest = job_digest;
    ops.signal = job_signal;
    ops.reap = job_reap;
    ops.forget = job_forget;
    ops.work_folder = job_folder;
    ops.program = remote_node_there;
    r->ops = ops;
    r->remote.ops = &r->ops;
    r->loop = loop;
    r->way = way;
    r->known_size = -1;
    strbuf_init(&r->ahead, READ_AHEAD_MAX);
    strbuf_init(&r->node.feed, 2 * NODE_FRAME_MAX);
    strbuf_init(&r->node.said, SAID_MAX);
}
