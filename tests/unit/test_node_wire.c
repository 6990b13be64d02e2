/* SPDX-License-Identifier: Apache-2.0 */
/* Frames between the orchestrator and reperf-node; SHA-256 without the processor's instructions, which reperf-node may have to
   use. */
#include "unit.h"

#include "codec/node_wire.h"

static const struct str FIELDS[] = {{"run/1", 5}, {"", 0}, {"a b\nc", 5}};

static void write_request(struct strbuf *out)
{
    strbuf_init(out, NODE_FRAME_MAX);
    node_request_write(out, &(struct node_request){7, NODE_SIGNAL, FIELDS, ARRAY_LEN(FIELDS)});
    assert_false(out->is_full);
}

TEST(requests_come_byte_by_byte)
{
    CLEANUP(strbuf) struct strbuf out;
    struct node_request request;
    size_t len = 0;
    write_request(&out);
    assert_int_equal(out.ptr[out.len - 1], '\n');
    for (size_t n = 0; n < out.len; n++) {
        PASSES(node_request_read(ARENA, str_sub(strbuf_str(&out), 0, n), &request, &len, ERR));
    }
    strbuf_add_z(&out, "RPN>"); /* of the next one */
    assert_int_equal(node_request_read(ARENA, strbuf_str(&out), &request, &len, ERR), 1);
    assert_int_equal(len, out.len - 4);
    assert_int_equal(request.seq, 7);
    assert_int_equal(request.op, NODE_SIGNAL);
    assert_int_equal(request.n_fields, 3);
    for (size_t idx = 0; idx < ARRAY_LEN(FIELDS); idx++) {
        assert_true(str_eq(request.fields[idx], FIELDS[idx]));
        assert_int_equal(request.fields[idx].ptr[request.fields[idx].len], 0);
    }
}

static void refuses_request(const char *bytes, size_t n, const char *why)
{
    struct node_request request;
    size_t len;
    FAILS(node_request_read(ARENA, (struct str){bytes, n}, &request, &len, ERR), ERR_PARSE);
    SAYS(why);
}

TEST(what_is_no_request_is_refused)
{
    CLEANUP(strbuf) struct strbuf out;
    write_request(&out);
    refuses_request("x", 1, "begins with byte 0x78");
    refuses_request("RPN<", 4, "begins with byte 0x3c");
    out.ptr[out.len - 1] = ' ';
    refuses_request(out.ptr, out.len, "line break");
    out.ptr[out.len - 1] = '\n';
    out.ptr[8] = 99;
    refuses_request(out.ptr, out.len, "unknown operation 99");
    out.ptr[8] = NODE_SIGNAL;
    out.ptr[NODE_HEADER_BYTES] = 100;
    refuses_request(out.ptr, out.len, "is truncated");
    out.ptr[NODE_HEADER_BYTES] = 5;
    out.ptr[NODE_HEADER_BYTES + 4] = '\0';
    refuses_request(out.ptr, out.len, "holds a NUL");
    out.ptr[15] = 127;
    refuses_request(out.ptr, NODE_HEADER_BYTES, "at most");
}

TEST(answers_are_read_as_written)
{
    CLEANUP(strbuf) struct strbuf out = STRBUF(NODE_FRAME_MAX);
    struct node_answer answer = {.seq = 0xfffffffe, .status = 74, .text = STR_LIT("why\n")};
    struct node_answer got;
    size_t len = 0;
    node_answer_write(&out, &answer);
    node_answer_write(&out, &(struct node_answer){.seq = 1});
    assert_int_equal(node_answer_read(strbuf_str(&out), &got, &len, ERR), 1);
    assert_int_equal(got.seq, answer.seq);
    assert_int_equal(got.status, 74);
    assert_true(str_eq(got.text, answer.text));
    assert_int_equal(node_answer_read(str_sub(strbuf_str(&out), len, out.len), &got, &len, ERR), 1);
    assert_int_equal(got.text.len, 0);
    out.ptr[9] = 1; /* status 330 */
    FAILS(node_answer_read(strbuf_str(&out), &got, &len, ERR), ERR_PARSE);
}

TEST(reports_are_read_as_written)
{
    CLEANUP(strbuf) struct strbuf out = STRBUF(NODE_FRAME_MAX);
    static const char *const BAD[] = {"",
                                      "ended\t0",
                                      "gone\t0\t0\t0\t\t",
                                      "ended\t256\t0\t0\t\t",
                                      "ended\t0\t2\t0\t\t",
                                      "ended\t0\t0\t99\t\t"};
    const struct job_report report = {.state = JOB_ENDED,
                                      .exit_status = 143,
                                      .cause = ERR_TIMEOUT,
                                      .why = "Slurm job 12: TIMEOUT (TimeLimit)",
                                      .left = "sleep,cat"};
    struct job_report got;
    node_report_write(&out, &report);
    assert_true(node_report_read(strbuf_str(&out), &got));
    assert_int_equal(got.state, JOB_ENDED);
    assert_int_equal(got.exit_status, 143);
    assert_int_equal(got.cause, ERR_TIMEOUT);
    assert_string_equal(got.why, report.why);
    assert_string_equal(got.left, report.left);
    for (EACH(row, BAD)) {
        assert_false(node_report_read(str_of(*row), &got));
    }
}

TEST(what_is_too_long_is_not_written)
{
    CLEANUP(strbuf) struct strbuf out = STRBUF(2 * NODE_FRAME_MAX);
    static char big[NODE_BODY_MAX];
    const struct str field = {big, sizeof(big)};
    node_request_write(&out, &(struct node_request){1, NODE_START, &field, 1});
    assert_true(out.is_full);
    strbuf_clear(&out);
    node_answer_write(&out, &(struct node_answer){.text = {big, (size_t)NODE_TEXT_MAX + 1}});
    assert_true(out.is_full);
}
