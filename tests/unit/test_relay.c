/* SPDX-License-Identifier: Apache-2.0 */
/* The relays' messages as bytes: what is written is read again, and what no relay writes is refused. */
#include "base/base.h"

#include <setjmp.h>

#include <cmocka.h>

#include "codec/relay.h"
#include "scratch.h"

#define TOKEN "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define HEX   "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define HEAD  "reperf-relay 1\ntoken " TOKEN "\npart 1 4\n"
#define ORDER                                                                                      \
    HEAD "item /disk/data\nmark .m " HEX " /home/u/a b\nfile 5 x " HEX " a\nfile 0 - " HEX         \
         " b/c d\nitem /disk/bin\nfile 7 - " HEX " tool\nend\n"

static void orders_are_read_as_written(void **state UNUSED)
{
    struct relay_order order;
    struct strbuf out;
    struct err err = {0};
    strbuf_init(&out, 1u << 16);
    assert_int_equal(relay_order_parse(&scratch_arena, STR_LIT(ORDER), &order, &err), 0);
    assert_int_equal(order.n_items, 2);
    assert_int_equal(order.n_files, 3);
    assert_int_equal(order.part, 1);
    assert_int_equal(order.n_parts, 4);
    assert_string_equal(order.items[0].mark_folder, "/home/u/a b");
    assert_null(order.items[1].mark_name);
    assert_int_equal(order.items[1].first, 2);
    assert_true(order.files[0].is_executable);
    assert_string_equal(order.files[1].path, "b/c d");
    assert_int_equal(order.files[2].item, 1);
    assert_int_equal(relay_order_write(&order, &out, &err), 0);
    assert_string_equal(out.ptr, ORDER);
    strbuf_release(&out);
}

static void hostile_orders_are_refused(void **state UNUSED)
{
    static const char *const BAD[] = {
        "",
        "reperf-relay 2\n",
        HEAD "item /w\nfile 1 - " HEX " a\n",                          /* no end */
        HEAD "item /w\nfile 1 - " HEX " a\nend\nfile 1 - " HEX " b\n", /* after the end */
        HEAD "item /w\nfile 1 - " HEX " ../a\nend\n",
        HEAD "item /w\nfile 1 - " HEX " a/../../b\nend\n",
        HEAD "item /w\nfile 1 - " HEX " /etc/passwd\nend\n",
        HEAD "item /w\nfile 1 - " HEX " a//b\nend\n",
        HEAD "item /w\nfile 1 - " HEX " a/\nend\n",
        HEAD "item /w\nfile 1 - " HEX " .\nend\n",
        HEAD "item /w\nfile 1 - " HEX " \nend\n",
        HEAD "item /w\nfile 1 - " HEX " b\nfile 1 - " HEX " a\nend\n", /* out of order */
        HEAD "item /w\nfile 1 - " HEX " a\nfile 1 - " HEX " a\nend\n", /* twice */
        HEAD "item w\nfile 1 - " HEX " a\nend\n",                      /* not absolute */
        HEAD "item /w/../x\nend\n",
        HEAD "item /\nend\n",
        HEAD "file 1 - " HEX " a\nend\n", /* of no item */
        HEAD "item /w\nfile -1 - " HEX " a\nend\n",
        HEAD "item /w\nfile 9223372036854775808 - " HEX " a\nend\n",
        HEAD "item /w\nfile 1 w " HEX " a\nend\n",
        HEAD "item /w\nfile 1 - 00 a\nend\n",
        HEAD "item /w\nmark a/b " HEX " /w\nend\n",
        HEAD "item /w\nmark .. " HEX " /w\nend\n",
        HEAD "part 0 1\nitem /w\nend\n", /* two parts */
        HEAD "end\n",
        HEAD "item /w\nhello\nend\n",
        "reperf-relay 1\npart 0 1\nitem /w\nend\n", /* no token */
        "reperf-relay 1\ntoken " TOKEN "\npart 4 4\nitem /w\nend\n",
        "reperf-relay 1\ntoken " TOKEN "\nitem /w\nend\n",
    };
    for (size_t idx = 0; idx < ARRAY_LEN(BAD); idx++) {
        struct relay_order order;
        struct err err = {0};
        if (relay_order_parse(&scratch_arena, str_of(BAD[idx]), &order, &err) == 0) {
            fail_msg("accepted: %s", BAD[idx]);
        }
        assert_int_equal(err.code, ERR_PARSE);
    }
}

static void names_that_cannot_be_sent_are_refused_here(void **state UNUSED)
{
    struct relay_file file = {.path = "a\nend", .size_bytes = 1};
    struct relay_item item = {.root = "/w", .n = 1};
    struct relay_order order = {
        .n_parts = 1, .items = &item, .n_items = 1, .files = &file, .n_files = 1};
    struct strbuf out;
    struct err err = {0};
    strbuf_init(&out, 1u << 16);
    assert_int_equal(relay_order_write(&order, &out, &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
    strbuf_release(&out);
}

static void lines_are_told_from_noise(void **state UNUSED)
{
    static const char *const NOISE[] = {"",
                                        "Last login: today",
                                        "reperf-relay: ready",
                                        "reperf-relay: ready 1",
                                        "reperf-relay: ready x 0",
                                        "reperf-relay: ready -1 0",
                                        "reperf-relay: hello 1 0",
                                        " reperf-relay: ready 1 0"};
    struct relay_line line = {.word = RELAY_LOST, .a = 3, .b = 0, .text = STR_LIT("no route")};
    struct relay_line again;
    struct strbuf out;
    strbuf_init(&out, RELAY_LINE_MAX);
    for (int word = 0; word < RELAY_WORD_COUNT; word++) {
        line.word = (enum relay_word)word;
        strbuf_clear(&out);
        relay_line_write(&line, &out);
        assert_true(relay_line_parse(str_sub(strbuf_str(&out), 0, out.len - 1), &again));
        assert_int_equal(again.word, word);
        assert_true(again.a == 3 && again.b == 0 && str_eq_z(again.text, "no route"));
    }
    for (size_t idx = 0; idx < ARRAY_LEN(NOISE); idx++) {
        assert_false(relay_line_parse(str_of(NOISE[idx]), &again));
    }
    strbuf_release(&out);
}

static void frames_have_one_form(void **state UNUSED)
{
    struct relay_frame frame = {RELAY_DATA, 77, RELAY_BLOCK_BYTES, 1ULL << 40};
    struct relay_frame again;
    uint8_t header[RELAY_HEADER_BYTES];
    struct err err = {0};
    relay_frame_encode(&frame, header);
    assert_int_equal(relay_frame_decode(header, &again, &err), 0);
    assert_true(again.kind == RELAY_DATA && again.file == 77 && again.len == RELAY_BLOCK_BYTES &&
                again.offset == 1ULL << 40);
    const struct relay_frame bad[] = {{RELAY_DATA, 0, RELAY_BLOCK_BYTES + 1, 0},
                                      {RELAY_DATA, 0, UINT32_MAX, 0},
                                      {RELAY_DATA, 0, 0, 0},
                                      {RELAY_DATA, 0, 1, UINT64_MAX},
                                      {RELAY_END, 0, 1, 0},
                                      {(enum relay_kind)0, 0, 0, 0},
                                      {(enum relay_kind)4, 0, 0, 0}};
    for (size_t idx = 0; idx < ARRAY_LEN(bad); idx++) {
        struct err why = {0};
        relay_frame_encode(&bad[idx], header);
        assert_int_equal(relay_frame_decode(header, &again, &why), -1);
        assert_int_equal(why.code, ERR_INTEGRITY);
    }
    relay_frame_encode(&frame, header);
    for (size_t at = 0; at < 4; at++) {
        struct err why = {0};
        header[at] ^= 0x80;
        assert_int_equal(relay_frame_decode(header, &again, &why), -1);
        header[at] ^= 0x80;
    }
}

static void chains_are_read_as_written(void **state UNUSED)
{
    static const char *const BAD[] = {"1 2\n",       "1 0 host\n", "1 65536 host\n",   "1 2 host",
                                      "1 2 a b c\n", "x 2 a\n",    "1 2 a\n\n1 2 b\n", "1 2 \x01\n",
                                      "1 2  a\n"};
    const struct relay_hop hops[] = {{3, 4000, {"10.0.0.1", "node3"}},
                                     {4, 4001, {"fe80::1", NULL}}};
    struct relay_hop *again;
    struct strbuf out;
    struct err err = {0};
    size_t n;
    strbuf_init(&out, 4096);
    relay_hops_write(hops, 2, &out);
    assert_int_equal(relay_hops_parse(&scratch_arena, strbuf_str(&out), &again, &n, &err), 0);
    assert_int_equal(n, 2);
    assert_int_equal(again[0].node, 3);
    assert_int_equal(again[1].port, 4001);
    assert_string_equal(again[0].address[1], "node3");
    assert_null(again[1].address[1]);
    assert_int_equal(relay_hops_parse(&scratch_arena, STR_LIT(""), &again, &n, &err), 0);
    assert_int_equal(n, 0);
    for (size_t idx = 0; idx < ARRAY_LEN(BAD); idx++) {
        struct err why = {0};
        if (relay_hops_parse(&scratch_arena, str_of(BAD[idx]), &again, &n, &why) == 0) {
            fail_msg("accepted: %s", BAD[idx]);
        }
        assert_int_equal(why.code, ERR_INTEGRITY);
    }
    strbuf_release(&out);
}

/* Compared with another implementation: printf 'c' and the two nonces | openssl dgst -sha256 -mac HMAC -macopt
   hexkey:TOKEN */
static void proofs_are_hmac(void **state UNUSED)
{
    uint8_t token[RELAY_TOKEN_BYTES], server[RELAY_NONCE_BYTES], client[RELAY_NONCE_BYTES];
    uint8_t proof[RELAY_PROOF_BYTES], other[RELAY_PROOF_BYTES];
    char hex[SHA256_HEX_SIZE];
    struct err err = {0};
    assert_int_equal(hex_decode(STR_LIT(TOKEN), sizeof(token), token, &err), 0);
    memset(server, 'S', sizeof(server));
    memset(client, 'C', sizeof(client));
    assert_int_equal(relay_proof(token, RELAY_CLIENT, server, client, proof, &err), 0);
    hex_encode(proof, sizeof(proof), hex);
    assert_string_equal(hex, "55fa4b4228a32994dc71ac17433d61d88ad846dfe6f34ac767b10b682059d6c2");
    assert_int_equal(relay_proof(token, RELAY_SERVER, server, client, other, &err), 0);
    assert_false(relay_proof_is(proof, other));
    assert_true(relay_proof_is(proof, proof));
    token[31] ^= 1;
    assert_int_equal(relay_proof(token, RELAY_CLIENT, server, client, other, &err), 0);
    assert_false(relay_proof_is(proof, other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_are_read_as_written),
        cmocka_unit_test(hostile_orders_are_refused),
        cmocka_unit_test(names_that_cannot_be_sent_are_refused_here),
        cmocka_unit_test(lines_are_told_from_noise),
        cmocka_unit_test(frames_have_one_form),
        cmocka_unit_test(chains_are_read_as_written),
        cmocka_unit_test(proofs_are_hmac),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("relay", tests, scratch_group_start, scratch_group_end);
}
