/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "codec/file_header.h"
#include "codec/proto.h"
#include "prep/hdf5.h"
#include "prep/tfrecord.h"
#include "prep/tree_source.h"
#include "scratch.h"

static const struct tokens_shape SHAPE = {32, 5};
#define ROW_LEN (3 * 32 + 2 * 5 + 1)
#define N_ROWS  7

TEST(tokens_are_held_to_their_range)
{
    int32_t row[ROW_LEN];
    assert_int_equal(tokens_len(&SHAPE), ROW_LEN);
    for (uint64_t seed = 0; seed < 50; seed++) {
        tokens_draw(seed, &SHAPE, row);
        PASSES(tokens_check(&SHAPE, row, ERR));
    }
    static const struct {
        enum tokens_part part;
        int32_t value;
    } wrong[] = {{TOKENS_INPUT, -1},     {TOKENS_INPUT, TOKENS_VOCABULARY_MAX},
                 {TOKENS_SEGMENT, 2},    {TOKENS_MASK, -1},
                 {TOKENS_POSITIONS, 32}, {TOKENS_IDS, -5},
                 {TOKENS_NEXT, 2}};
    for (size_t idx = 0; idx < ARRAY_LEN(wrong); idx++) {
        tokens_draw(1, &SHAPE, row);
        row[tokens_part_at(&SHAPE, wrong[idx].part)] = wrong[idx].value;
        FAILS(tokens_check(&SHAPE, row, ERR), ERR_INTEGRITY);
        SAYS(tokens_part_name(wrong[idx].part));
    }
}

/* One framed message: Example { features { feature { key, value } ... } }, where the tokens are packed numbers. */
TEST(tfrecords_hold_the_tokens)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(1u << 20);
    struct proto_field features = {0}, entry = {0}, key, value, list, numbers;
    struct file_header header;
    int32_t row[ROW_LEN];
    tokens_draw(3, &SHAPE, row);
    tfrecord_append(&text, &SHAPE, row);
    PASSES(file_header_tfrecord((const uint8_t *)text.ptr, text.len, true, &header, ERR));
    assert_int_equal(header.n_records, 1);
    struct str rest = {text.ptr + RECORD_HEAD_BYTES,
                       text.len - RECORD_HEAD_BYTES - RECORD_CRC_BYTES};
    PASSES(proto_next(&rest, &features, ERR));
    assert_int_equal(rest.len, 0);
    for (enum tokens_part part = TOKENS_INPUT; part < TOKENS_PARTS; part++) {
        PASSES(proto_next(&features.bytes, &entry, ERR));
        PASSES(proto_next(&entry.bytes, &key, ERR));
        PASSES(proto_next(&entry.bytes, &value, ERR));
        PASSES(proto_next(&value.bytes, &list, ERR));
        PASSES(proto_next(&list.bytes, &numbers, ERR));
        assert_true(str_eq_z(key.bytes, tokens_part_name(part)));
        for (size_t idx = 0; idx < tokens_part_len(&SHAPE, part); idx++) {
            uint64_t number = 0;
            PASSES(proto_varint(&numbers.bytes, &number, ERR));
            assert_int_equal(number, row[tokens_part_at(&SHAPE, part) + idx]);
        }
        assert_int_equal(numbers.bytes.len, 0);
    }
    PASSES(proto_next(&features.bytes, &entry, ERR));
    PASSES(proto_next(&entry.bytes, &key, ERR));
    assert_true(str_eq_z(key.bytes, "masked_lm_weights"));
    assert_int_equal(features.bytes.len, 0);
}

TEST(hdf5_comes_back)
{
    static int32_t rows[N_ROWS * ROW_LEN], again[N_ROWS * ROW_LEN];
    uint8_t *bytes = NULL, *second = NULL;
    size_t len = 0, second_len = 0;
    struct err err = {0};
    const char *path = scratch_path("rows.hdf5");
    for (size_t idx = 0; idx < N_ROWS; idx++) {
        tokens_draw(idx, &SHAPE, rows + idx * ROW_LEN);
    }
    PASSES(hdf5_make(rows, N_ROWS, &SHAPE, &bytes, &len, ERR));
    PASSES(hdf5_make(rows, N_ROWS, &SHAPE, &second, &second_len, ERR));
    assert_int_equal(len, second_len); /* no time in it */
    assert_memory_equal(bytes, second, len);
    scratch_write(path, (struct str){(const char *)bytes, len});
    CLEANUP(hdf5) struct hdf5_file *file = NULL;
    PASSES(hdf5_open(path, &SHAPE, &file, ERR));
    assert_int_equal(hdf5_n_rows(file), N_ROWS);
    PASSES(hdf5_read(file, 0, 3, again, ERR));
    PASSES(hdf5_read(file, 3, N_ROWS - 3, again + (size_t)3 * ROW_LEN, ERR));
    assert_memory_equal(rows, again, sizeof(rows));
    static const struct tokens_shape others[] = {{31, 5}, {32, 4}, {64, 5}};
    for (EACH(row, others)) {
        CLEANUP(hdf5) struct hdf5_file *other = NULL;
        err = (struct err){0};
        FAILS(hdf5_open(path, row, &other, ERR), ERR_INTEGRITY);
    }
    for (size_t cut = 0; cut < len; cut += len / 7) {
        CLEANUP(hdf5) struct hdf5_file *other = NULL;
        err = (struct err){0};
        /* Under a new name: the library takes an open file of the same inode for the same. */
        path = scratch_path("cut.hdf5");
        scratch_write(path, (struct str){(const char *)bytes, cut});
        if (hdf5_open(path, &SHAPE, &other, &err) == 0) {
            fail_msg("%zu of %zu bytes are enough", cut, len);
        }
        assert_int_equal(err.code, ERR_INTEGRITY);
    }
    free(bytes);
    free(second);
}

#define HEX_A "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

TEST(lists_are_strict)
{
    static const struct {
        const char *text;
        bool is_good;
    } cases[] = {{HEX_A "  a\n", true},
                 {HEX_A "  a\n" HEX_A "  a/b\n" HEX_A "  b\n", true},
                 {HEX_A "  b\n" HEX_A "  a\n", false},
                 {HEX_A "  a\n" HEX_A "  a\n", false},
                 {HEX_A "  a", false},
                 {HEX_A " a\n", false},
                 {HEX_A "  \n", false},
                 {"E3" HEX_A "  a\n", false},
                 {"\n", false},
                 {"", false}};
    const char *path = scratch_path("list");
    for (EACH(row, cases)) {
        struct tree_source source = {0};
        struct err err = {0};
        scratch_write(path, str_of(row->text));
        assert_int_equal(tree_source_list(&scratch_arena, path, &source, &err),
                         row->is_good ? 0 : -1);
        assert_int_equal(err.code, row->is_good ? ERR_NONE : ERR_INTEGRITY);
        if (row->is_good) {
            assert_non_null(tree_list_find(source.list, "a"));
            assert_null(tree_list_find(source.list, "c"));
            assert_null(tree_list_find(source.list, ""));
        }
    }
}

UNIT_MAIN(scratch_group_start, scratch_group_end)
