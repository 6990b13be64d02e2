/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

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

/* One framed record, read as the packer reads it. */
static int read_record(const uint8_t *bytes, size_t len, int32_t *row, struct err *err)
{
    uint64_t data_len = 0;
    if (tfrecord_header(bytes, &data_len, err) < 0) {
        return -1;
    }
    if (data_len + TFRECORD_FRAME_BYTES != len) {
        return err_set(err, ERR_INTEGRITY, "length");
    }
    bytes += RECORD_HEAD_BYTES;
    return tfrecord_check(bytes, (size_t)data_len, err) < 0
               ? -1
               : tfrecord_example((struct str){(const char *)bytes, (size_t)data_len}, &SHAPE, row,
                                  err);
}

TEST(tfrecords_come_back)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        CLEANUP(strbuf) struct strbuf text = STRBUF(1u << 20);
        int32_t row[ROW_LEN], again[ROW_LEN];
        tokens_draw(seed, &SHAPE, row);
        tfrecord_append(&text, &SHAPE, row);
        PASSES(read_record((const uint8_t *)text.ptr, text.len, again, ERR));
        assert_memory_equal(row, again, sizeof(row));
    }
}

TEST(a_changed_byte_is_seen)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(1u << 20);
    int32_t row[ROW_LEN];
    tokens_draw(3, &SHAPE, row);
    tfrecord_append(&text, &SHAPE, row);
    for (size_t idx = 0; idx < text.len; idx++) {
        text.ptr[idx] ^= 0x10;
        FAILS(read_record((const uint8_t *)text.ptr, text.len, row, ERR), ERR_INTEGRITY);
        text.ptr[idx] ^= 0x10;
    }
}

/* Messages in valid frames: their content is checked too. */
TEST(examples_are_strict)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *message;
    } cases[] = {
        {"", 0, "truncated"},
        {"\x0a\x00", 2, "input_ids is missing"},
        {"\x0a\x00\x00", 3, "bytes after"},
        {"\x0a\x05", 2, "truncated"},
        {"\x12\x00", 2, "expected the message 1"},
        {"\x08\x01", 2, "expected the message 1"},
        {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 11, "more than 64 bits"},
        {"\x0b\x00", 2, "wire type 3"},
        /* features { feature { key "x" value { int64_list { value: 1 } } } } */
        {"\x0a\x0c\x0a\x0a\x0a\x01x\x12\x05\x1a\x03\x0a\x01\x01", 14, "not one of BERT's"},
        /* next_sentence_labels of two numbers */
        {"\x0a\x21\x0a\x1f\x0a\x14next_sentence_labels\x12\x07\x1a\x05\x0a\x03\x01\x01\x01", 35,
         "more than the expected 1"},
        /* of 2^32 */
        {"\x0a\x23\x0a\x21\x0a\x14next_sentence_labels\x12\x09\x1a\x07\x0a\x05\x80\x80\x80\x80\x10",
         37, "does not fit"},
        /* of floats */
        {"\x0a\x22\x0a\x20\x0a\x14next_sentence_labels\x12\x08\x12\x06\x0a\x04\x00\x00\x80\x3f", 36,
         "expected the message 3"},
    };
    int32_t row[ROW_LEN];
    for (size_t idx = 0; idx < ARRAY_LEN(cases); idx++) {
        struct str data = {cases[idx].bytes, cases[idx].len};
        FAILS(tfrecord_example(data, &SHAPE, row, ERR), ERR_INTEGRITY);
        if (!strstr(ERR->msg, cases[idx].message)) {
            fail_msg("case %zu: %s", idx, ERR->msg);
        }
    }
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
