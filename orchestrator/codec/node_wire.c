/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/bytes.h"
#include "codec/node_wire.h"

#define MARK_REQUEST 0x3e4e5052u /* "RPN>" */
#define MARK_ANSWER  0x3c4e5052u /* "RPN<" */
#define STATUS_MAX   255

const char *const NODE_JOB_STATES[] = {"absent", "running", "ended", "lost"};

struct header {
    uint32_t mark, seq, what, len;
};

static void add_header(struct strbuf *out, const struct header *header)
{
    strbuf_add_le32(out, header->mark);
    strbuf_add_le32(out, header->seq);
    strbuf_add_le32(out, header->what);
    strbuf_add_le32(out, header->len);
}

void node_request_write(struct strbuf *out, const struct node_request *request)
{
    size_t len = 0;
    for (size_t idx = 0; idx < request->n_fields && len <= NODE_BODY_MAX; idx++) {
        len += 4 + request->fields[idx].len;
    }
    if (len > NODE_BODY_MAX || request->n_fields > NODE_FIELDS_MAX) {
        out->is_full = true;
        return;
    }
    add_header(out, &(struct header){MARK_REQUEST, request->seq, request->op, (uint32_t)len});
    for (size_t idx = 0; idx < request->n_fields; idx++) {
        strbuf_add_le32(out, (uint32_t)request->fields[idx].len);
        strbuf_add_str(out, request->fields[idx]);
    }
    strbuf_add_char(out, '\n');
}

void node_answer_write(struct strbuf *out, const struct node_answer *answer)
{
    if (answer->text.len > NODE_TEXT_MAX) {
        out->is_full = true;
        return;
    }
    add_header(out, &(struct header){MARK_ANSWER, answer->seq, (uint32_t)answer->status,
                                     (uint32_t)answer->text.len});
    strbuf_add_str(out, answer->text);
    strbuf_add_char(out, '\n');
}

/* 1: the frame is complete; 0: more to come; -1: error. A wrong mark is noticed at its first byte. */
static int read_frame(struct str bytes, uint32_t mark, uint32_t len_max, struct header *ret_header,
                      struct str *ret_body, struct err *err)
{
    uint8_t want[4];
    struct header header;
    put_le32(want, mark);
    for (size_t idx = 0; idx < sizeof(want) && idx < bytes.len; idx++) {
        if ((uint8_t)bytes.ptr[idx] != want[idx]) {
            return err_set(err, ERR_PARSE, "a frame begins with byte 0x%02x, expected 0x%02x",
                           (uint8_t)bytes.ptr[idx], want[idx]);
        }
    }
    if (bytes.len < NODE_HEADER_BYTES) {
        return 0;
    }
    header = (struct header){mark, get_le32(bytes.ptr + 4), get_le32(bytes.ptr + 8),
                             get_le32(bytes.ptr + 12)};
    if (header.len > len_max) {
        return err_set(err, ERR_PARSE, "a frame of %u bytes, expected at most %u", header.len,
                       len_max);
    }
    if (bytes.len < NODE_HEADER_BYTES + (size_t)header.len + 1) {
        return 0;
    }
    if (bytes.ptr[NODE_HEADER_BYTES + header.len] != '\n') {
        return err_set(err, ERR_PARSE, "a frame does not end with a line break");
    }
    *ret_header = header;
    *ret_body = str_sub(bytes, NODE_HEADER_BYTES, header.len);
    return 1;
}

static int read_fields(struct arena *arena, struct str body, struct node_request *request,
                       struct err *err)
{
    size_t n = 0;
    for (size_t at = 0; at < body.len; n++) {
        uint32_t len = body.len - at >= 4 ? get_le32(body.ptr + at) : UINT32_MAX;
        if (body.len - at < 4 || len > body.len - at - 4 || n == NODE_FIELDS_MAX) {
            return err_set(err, ERR_PARSE, "field %zu of a request is truncated, or one too many",
                           n);
        }
        if (len && memchr(body.ptr + at + 4, '\0', len)) {
            return err_set(err, ERR_PARSE, "field %zu of a request holds a NUL", n);
        }
        at += 4 + (size_t)len;
    }
    struct str *fields = arena_array(arena, struct str, n + 1);
    for (size_t at = 0, idx = 0; at < body.len; idx++) {
        uint32_t len = get_le32(body.ptr + at);
        fields[idx] = (struct str){arena_strndup(arena, body.ptr + at + 4, len), len};
        at += 4 + (size_t)len;
    }
    request->fields = fields;
    request->n_fields = n;
    return 0;
}

int node_request_read(struct arena *arena, struct str bytes, struct node_request *ret_request,
                      size_t *ret_len, struct err *err)
{
    struct header header;
    struct str body;
    int rc = read_frame(bytes, MARK_REQUEST, NODE_BODY_MAX, &header, &body, err);
    if (rc <= 0) {
        return rc;
    }
    if (header.what < NODE_START || header.what >= NODE_OP_END) {
        return err_set(err, ERR_PARSE, "unknown operation %u", header.what);
    }
    struct node_request request = {.seq = header.seq, .op = (enum node_op)header.what};
    if (read_fields(arena, body, &request, err) < 0) {
        return -1;
    }
    *ret_request = request;
    *ret_len = NODE_HEADER_BYTES + body.len + 1;
    return 1;
}

int node_answer_read(struct str bytes, struct node_answer *ret_answer, size_t *ret_len,
                     struct err *err)
{
    struct header header;
    struct str body;
    int rc = read_frame(bytes, MARK_ANSWER, NODE_TEXT_MAX, &header, &body, err);
    if (rc <= 0) {
        return rc;
    }
    if (header.what > STATUS_MAX) {
        return err_set(err, ERR_PARSE, "an answer's status is %u", header.what);
    }
    *ret_answer = (struct node_answer){.seq = header.seq, .status = (int)header.what, .text = body};
    *ret_len = NODE_HEADER_BYTES + body.len + 1;
    return 1;
}

/* ---- what is said of a job ---- */

void node_report_write(struct strbuf *out, const struct job_report *report)
{
    strbuf_printf(out, "%s\t%d\t%d\t%d\t%s\t%s\n", NODE_JOB_STATES[report->state],
                  report->exit_status, report->is_waiting, (int)report->cause, report->left,
                  report->why);
}

bool node_report_read(struct str text, struct job_report *ret_report)
{
    struct str words[6] = {STR_EMPTY};
    int64_t status, is_waiting, cause;
    size_t n = 0, state = 0;
    while (n < ARRAY_LEN(words) && str_next(&text, '\t', &words[n])) {
        n++;
    }
    while (state < ARRAY_LEN(NODE_JOB_STATES) && !str_eq_z(words[0], NODE_JOB_STATES[state])) {
        state++;
    }
    if (n < ARRAY_LEN(words) || state == ARRAY_LEN(NODE_JOB_STATES) ||
        str_to_i64(words[1], 0, 255, &status, ERR_IGNORED) < 0 ||
        str_to_i64(words[2], 0, 1, &is_waiting, ERR_IGNORED) < 0 ||
        str_to_i64(words[3], 0, ERR_CODE_COUNT - 1, &cause, ERR_IGNORED) < 0) {
        return false;
    }
    *ret_report = (struct job_report){.state = (enum job_state)state,
                                      .exit_status = (int)status,
                                      .is_waiting = is_waiting != 0,
                                      .cause = (enum err_code)cause};
    snprintf(ret_report->left, sizeof(ret_report->left), "%.*s", STR_ARG(words[4]));
    snprintf(ret_report->why, sizeof(ret_report->why), "%.*s", STR_ARG(str_trim(words[5])));
    return true;
}
