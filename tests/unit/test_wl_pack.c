/* SPDX-License-Identifier: Apache-2.0 */
/* Packed datasets: what is checked when they are opened. */
#include "unit.h"

#include <sys/stat.h>

#include "core/json_in.h"
#include "data/pack.h"
#include "wl_pack.h"

/* ---- JSON ---- */

static int skip_one(const char *text, struct err *err)
{
    struct json_in in = {.text = str_of(text)};
    return json_in_skip(&in, ARENA, err) < 0 ? -1 : json_in_end(&in, err);
}

TEST(a_value_is_skipped_only_if_it_is_json)
{
    static const char *const good[] = {"1",
                                       "-0.5e+3",
                                       "\"a\"",
                                       "true",
                                       "null",
                                       " [ ] ",
                                       "{}",
                                       "[1,[2,{\"a\":[]}],false]",
                                       "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]",
                                       "{\"a\":1,\"b\":\"\\u00e9\"}"};
    static const char *const bad[] = {"",        "-",
                                      "+1",      "01",
                                      "1.",      ".5",
                                      "1e",      "nul",
                                      "nulls",   "truex",
                                      "[1,]",    "[1 2]",
                                      "[",       "{",
                                      "{\"a\"}", "{a:1}",
                                      "[}",      "{\"a\":1,}",
                                      "\"a",     "1 2",
                                      "NaN",     "[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]",
                                      "-01",     "Infinity",
                                      "1-2",     "[1]]"};
    for (EACH(row, good)) {
        PASSES(skip_one(*row, ERR));
    }
    for (EACH(row, bad)) {
        FAILS(skip_one(*row, ERR), ERR_ANY);
    }
}

/* ---- opening ---- */

TEST_IN_SCRATCH(whole_folders_open)
{
    static const struct hand_pack *const packs[] = {&CLASSES, &SEGMENTS, &TOKENS};
    for (size_t i = 0; i < ARRAY_LEN(packs); i++) {
        CLEANUP(pack) struct pack pack;
        hand_write(packs[i], *state);
        PASSES(pack_open(&pack, *state, ERR));
        assert_int_equal(pack.n_samples, packs[i]->n_samples);
        assert_int_equal(pack.n_classes, packs[i]->n_classes);
        assert_string_equal(pack.dataset, "by-hand");
        assert_false(pack.is_synthetic);
        uint8_t *buf = aligned_alloc(64, (size_t)pack.sample_bytes_max);
        CLEANUP(free) uint8_t *want = xmalloc((size_t)pack.sample_bytes_max);
        for (uint32_t s = 0; s < packs[i]->n_samples; s++) {
            struct pack_sample sample;
            PASSES(pack_read(&pack, s, buf, &sample, ERR));
            hand_sample(packs[i], s, want);
            assert_memory_equal(buf, want, hand_bytes(packs[i], s));
        }
        free(buf);
    }
}

static void refused(const char *folder, enum err_code code, const char *message)
{
    struct pack pack;
    FAILS_WITH(pack_open(&pack, folder, ERR), code, message);
}

TEST_IN_SCRATCH(a_folder_that_is_not_whole_is_refused)
{
    const char *json = fs_join(&scratch_arena, *state, PACK_NAME);
    const char *shard = fs_join(&scratch_arena, *state, "00001.shard");
    refused(fs_join(&scratch_arena, *state, "absent"), ERR_USAGE, "no such folder");
    hand_write(&CLASSES, *state);
    struct str text = scratch_read(json);
    struct str bytes = scratch_read(shard);
    unlink(json);
    refused(*state, ERR_INTEGRITY, "not whole: pack.json, which is written last, is missing");
    scratch_write(json, text);
    unlink(shard);
    refused(*state, ERR_INTEGRITY, "00001.shard: No such file");
    scratch_write(shard, str_sub(bytes, 0, bytes.len - 1));
    refused(*state, ERR_INTEGRITY, "00001.shard: its size is");
    scratch_write(shard, scratch_read(fs_join(&scratch_arena, *state, "00000.shard")));
    refused(*state, ERR_INTEGRITY, "00001.shard: ");
    unlink(shard);
    assert_int_equal(symlink("/dev/zero", shard), 0);
    refused(*state, ERR_INTEGRITY, "not a regular file");
    unlink(shard);
    assert_int_equal(mkfifo(shard, 0600), 0);
    refused(*state, ERR_INTEGRITY, "not a regular file");
}

/* The last shard has the samples 34 to 49. */
TEST_IN_SCRATCH(every_number_of_a_shard_is_checked)
{
    static const struct {
        const char *message;
        bool keeps_crc;
        struct hand_fault faults[2];
    } cases[] = {
        {"does not start with RPSHARD1", false, {IN_HEADER(magic[7], '2')}},
        {"the header's CRC-32C", true, {IN_HEADER(first_sample, 35)}},
        {"the entries' CRC-32C", true, {IN_ENTRY(1, label, 7)}},
        {"kind is 2, expected 1", false, {IN_HEADER(kind, SHARD_SEGMENTS)}},
        {"n_samples is 15, expected 16", false, {IN_HEADER(n_samples, 15)}},
        {"first_sample is 35, expected 34", false, {IN_HEADER(first_sample, 35)}},
        {"data_offset is", false, {IN_HEADER(data_offset, UINT64_MAX - 4095)}},
        {"total_bytes is", false, {IN_HEADER(total_bytes, 8193)}},
        {"sequence 8", false, {IN_HEADER(sequence, 8)}},
        {"sample 1 (35 of the set): offset is", false, {IN_ENTRY(1, offset, 2 * SHARD_ALIGN)}},
        {"sample 15 (49 of the set): offset is", false, {IN_ENTRY(15, offset, UINT64_MAX)}},
        {"sample 1 (35 of the set): 4294967295 bytes", false, {IN_ENTRY(1, bytes, UINT32_MAX)}},
        {"0 bytes for 0 x", false, {IN_ENTRY(1, height, 0), IN_ENTRY(1, bytes, 0)}},
        {"for 1 x 65535 x 3", false, {IN_ENTRY(1, width, 65535), IN_ENTRY(1, height, 1)}},
        {"x 1 of kind classes", false, {IN_ENTRY(1, channels, 1)}},
        {"sample 1 (35 of the set)", false, {IN_ENTRY(1, reserved, 1)}},
        {"sample 1 (35 of the set)", false, {IN_ENTRY(1, zero, 1)}},
        {"label 7, expected 0 to 6", false, {IN_ENTRY(1, label, 7)}},
        {"label -1, expected 0 to 6", false, {IN_ENTRY(1, label, -1)}},
    };
    for (EACH(row, cases)) {
        struct hand_pack pack = CLASSES;
        pack.faults = row->faults;
        pack.keeps_crc = row->keeps_crc;
        hand_write(&pack, *state);
        refused(*state, ERR_INTEGRITY, row->message);
        refused(*state, ERR_INTEGRITY, "00002.shard");
    }
}

/* pack.json with one stretch of text replaced. */
TEST_IN_SCRATCH(every_word_of_pack_json_is_checked)
{
    static const struct {
        const char *from, *to;
        enum err_code code;
        const char *message;
    } cases[] = {
        {"{\"schema_version\":1,", "", ERR_PARSE, "expected '{'"},
        {"\"schema_version\":1", "\"schema_version\":2", ERR_PARSE, "schema_version 2"},
        {"\"schema_version\":1,", "", ERR_PARSE, "schema_version is missing"},
        {"\"schema_version\":1,", "\"schema_version\":1,\"schema_version\":1,", ERR_PARSE,
         "occurs twice"},
        {"\"dataset\"", "\"data\"", ERR_PARSE, "unknown key data"},
        {"\"by-hand\"", "\"\"", ERR_PARSE, "expected a name"},
        {"\"by-hand\"", "\"by hand\"", ERR_PARSE, "expected a name"},
        {"\"by-hand\"", "7", ERR_PARSE, "dataset: byte"},
        {"false", "0", ERR_PARSE, "true or false"},
        {"\"classes\"", "\"images\"", ERR_PARSE, "expected classes, segments or tokens"},
        {"\"classes\"", "\"segments\"", ERR_INTEGRITY, "kind is 1, expected 2"},
        {"\"n_samples\":50", "\"n_samples\":51", ERR_PARSE, "the shards have 50"},
        {"\"n_samples\":50", "\"n_samples\":5e1", ERR_PARSE, "whole number"},
        {"\"n_samples\":50", "\"n_samples\":99999999999999999999", ERR_PARSE, "n_samples"},
        {"\"n_classes\":7", "\"n_classes\":0", ERR_PARSE, "n_classes is 0"},
        {"\"n_classes\":7", "\"n_classes\":null", ERR_PARSE, "n_classes is 0"},
        {"\"n_classes\":7", "\"n_classes\":5", ERR_INTEGRITY, "label 5, expected 0 to 4"},
        {"\"source_sha256\":null", "\"source_sha256\":\"00\"", ERR_PARSE, "64 hexadecimal"},
        {"\"recipe\":{", "\"recipe\":{[", ERR_PARSE, "recipe"},
        {"\"samples\":17", "\"samples\":18", ERR_PARSE, "the shards have"},
        {"\"samples\":16", "\"samples\":16,\"x\":1", ERR_PARSE, "unknown key x"},
        {"00001.shard", "../00001.sh", ERR_PARSE, "expected a name"},
        {"00001.shard", "00000.shard", ERR_PARSE, "shard 1 is 00000.shard"},
        {"]}\n", "]}\n{}", ERR_PARSE, "expected the end"},
        {"]}\n", "]", ERR_PARSE, "byte"},
        {"\"split\":\"train\"", "\"split\":\"tr\\u0000in\"", ERR_PARSE, "split"},
    };
    const char *path = fs_join(&scratch_arena, *state, PACK_NAME);
    hand_write(&CLASSES, *state);
    struct str text = scratch_read(path);
    for (EACH(row, cases)) {
        scratch_write(path, str_of(replaced(text.ptr, row->from, row->to)));
        refused(*state, row->code, row->message);
    }
    /* Another pack's shard, whole in itself, is not this pack's. */
    struct hand_pack other = CLASSES;
    other.n_classes = 6;
    hand_write(&other, *state);
    scratch_write(path, text);
    refused(*state, ERR_INTEGRITY, "SHA-256 of header and entries");
}

UNIT_MAIN(scratch_group_start, scratch_group_end)
