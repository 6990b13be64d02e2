/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs of reperf-node, and their logs. */
#include "base/base.h"

#include "fleet/remote_node_impl.h"

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
    fields[n++] = str_of(arena_printf(arena, "%zu", n_argv));
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
    struct err ignored = {0};
    size_t n = 0;
    int64_t status = 0;
    int64_t size = -1;
    while (n < ARRAY_LEN(words) && str_next(&rest, ' ', &words[n])) {
        n++;
    }
    bool has_status = str_eq_z(words[0], "ended");
    bool is_good = (n == (has_status ? 3u : 2u) || (has_status && n == 4)) &&
                   str_to_i64(words[has_status ? 2 : 1], 0, INT64_MAX, &size, &ignored) == 0 &&
                   (!has_status || str_to_i64(words[1], 0, 255, &status, &ignored) == 0);
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

enum step remote_job_start(struct remote *remote, const struct remote_job *job, struct err *err)
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

enum step remote_job_poll(struct remote *remote, const char *id, struct job_report *ret_report,
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

enum step remote_job_read_log(struct remote *remote, const char *id, struct log_part *part,
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

enum step remote_job_digest(struct remote *remote, const char *id, char *ret_hex, struct err *err)
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

enum step remote_job_signal(struct remote *remote, const char *id, int signal_no, struct err *err)
{
    struct served *r = (struct served *)remote;
    char number[16];
    snprintf(number, sizeof(number), "%d", signal_no);
    enum step step =
        ask_job(r, "a signal to a job", NODE_SIGNAL, (const char *const[3]){id, number}, err);
    return step == STEP_DONE ? end_op(r, 0) : step;
}

enum step remote_job_reap(struct remote *remote, const char *id, uint64_t offset, char *ret_hex,
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

enum step remote_job_forget(struct remote *remote, const char *id, struct err *err)
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

enum step remote_job_folder(struct remote *remote, const char **ret_path, struct err *err)
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

enum step remote_ask(struct remote *remote, const struct remote_ask *ask, struct err *err)
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
