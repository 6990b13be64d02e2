/* SPDX-License-Identifier: Apache-2.0 */
/* Packed data sets: what is refused, the order of an epoch, batches by any number of threads and ranks. */
#include "base/base.h"

#include <setjmp.h>

#include <cmocka.h>
#include <math.h>
#include <sys/stat.h>

#include "core/json_in.h"
#include "data/reader.h"
#include "wl_pack.h"

#define MUST_PASS(call, err)                                                                       \
    do {                                                                                           \
        if ((call) < 0) {                                                                          \
            fail_msg("%s: %s", #call, (err).msg);                                                  \
        }                                                                                          \
    } while (0)

static const struct hand_pack CLASSES = {
    .kind = SHARD_CLASSES, .n_samples = 50, .per_shard = 17, .n_classes = 7};
static const struct hand_pack SEGMENTS = {
    .kind = SHARD_SEGMENTS, .n_samples = 11, .per_shard = 4, .n_classes = 19};
static const struct hand_pack TOKENS = {
    .kind = SHARD_TOKENS, .n_samples = 10, .per_shard = 6, .sequence = 8, .predictions = 3};

/* ---- digests and JSON ---- */

/* Source: FIPS 180-2, appendix B, and NIST's example of the empty message. */
static void sha256_gives_the_standard_s_examples(void **state UNUSED)
{
    static const struct {
        const char *text;
        int repeat;
        const char *hex;
    } cases[] = {
        {"", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct sha256 sha;
        char hex[SHA256_HEX_LEN + 1];
        sha256_init(&sha);
        for (int j = 0; j < cases[i].repeat; j++) {
            sha256_add(&sha, cases[i].text, strlen(cases[i].text));
        }
        sha256_hex(&sha, hex);
        assert_string_equal(hex, cases[i].hex);
    }
    /* Cut anywhere, the same. */
    uint8_t bytes[300];
    char whole[SHA256_HEX_LEN + 1];
    struct sha256 sha;
    memset(bytes, 0x5a, sizeof(bytes));
    sha256_init(&sha);
    sha256_add(&sha, bytes, sizeof(bytes));
    sha256_hex(&sha, whole);
    for (size_t cut = 0; cut <= sizeof(bytes); cut++) {
        char hex[SHA256_HEX_LEN + 1];
        sha256_init(&sha);
        sha256_add(&sha, bytes, cut);
        sha256_add(&sha, bytes + cut, sizeof(bytes) - cut);
        sha256_hex(&sha, hex);
        assert_string_equal(hex, whole);
    }
}

static int skip_one(const char *text)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct json_in in = {.text = str_of(text)};
    struct err err = {0};
    return json_in_skip(&in, &arena, &err) < 0 ? -1 : json_in_end(&in, &err);
}

static void a_value_is_skipped_only_if_it_is_json(void **state UNUSED)
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
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        if (skip_one(good[i]) < 0) {
            fail_msg("refused: %s", good[i]);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (skip_one(bad[i]) == 0) {
            fail_msg("accepted: %s", bad[i]);
        }
    }
}

/* ---- the order ---- */

static void an_epoch_has_each_sample_once(void **state UNUSED)
{
    static const uint64_t sizes[] = {1000, 1009, 4096, 100003};
    for (uint64_t n = 1; n <= 300 + ARRAY_LEN(sizes); n++) {
        uint64_t size = n <= 300 ? n : sizes[n - 301];
        uint8_t *seen = xcalloc(size, 1);
        struct order order;
        order_init(&order, size, 42, n);
        for (uint64_t i = 0; i < size; i++) {
            uint64_t sample = order_at(&order, i);
            assert_true(sample < size);
            assert_int_equal(seen[sample], 0);
            seen[sample] = 1;
        }
        free(seen);
    }
}

/* Pearson's statistic lies within 5 standard deviations of its mean, (k - 1) +- 5 sqrt(2 (k - 1)): seeds are fixed, so this cannot
   flicker, and a wrong shuffle is off by orders of magnitude (the last case below). */
static double chi_excess(const int64_t *counts, int64_t n_cells, int64_t n_draws)
{
    double expected = (double)n_draws / (double)n_cells;
    double sum = 0.0;
    for (int64_t i = 0; i < n_cells; i++) {
        sum += ((double)counts[i] - expected) * ((double)counts[i] - expected) / expected;
    }
    double degrees = (double)n_cells - 1.0;
    return (sum - degrees) / sqrt(2.0 * degrees);
}

static int64_t permutation_number(const uint64_t *p, int n)
{
    int64_t number = 0;
    for (int i = 0; i < n; i++) {
        int64_t smaller = 0;
        for (int j = i + 1; j < n; j++) {
            smaller += p[j] < p[i] ? 1 : 0;
        }
        number = number * (n - i) + smaller;
    }
    return number;
}

static void every_permutation_of_five_is_as_likely(void **state UNUSED)
{
    int64_t by_epoch[120] = {0};
    int64_t by_seed[120] = {0};
    const int64_t n_draws = 24000;
    for (int64_t draw = 0; draw < n_draws; draw++) {
        for (int kind = 0; kind < 2; kind++) {
            struct order order;
            uint64_t p[5];
            order_init(&order, 5, kind == 0 ? 7 : (uint64_t)draw, kind == 0 ? (uint64_t)draw : 0);
            for (uint64_t i = 0; i < 5; i++) {
                p[i] = order_at(&order, i);
            }
            (kind == 0 ? by_epoch : by_seed)[permutation_number(p, 5)]++;
        }
    }
    assert_true(fabs(chi_excess(by_epoch, 120, n_draws)) < 5);
    assert_true(fabs(chi_excess(by_seed, 120, n_draws)) < 5);
}

#define N_POSITIONS 61

static void positions_and_neighbours_are_uniform(void **state UNUSED)
{
    static int64_t position[N_POSITIONS * N_POSITIONS];
    static int64_t step[N_POSITIONS - 1];
    static int64_t again[N_POSITIONS];
    static int64_t rotated[N_POSITIONS - 1];
    const int64_t n_epochs = 3000;
    struct order before;
    order_init(&before, N_POSITIONS, 1, 0);
    for (int64_t epoch = 1; epoch <= n_epochs; epoch++) {
        struct order order;
        order_init(&order, N_POSITIONS, 1, (uint64_t)epoch);
        for (uint64_t i = 0; i < N_POSITIONS; i++) {
            uint64_t sample = order_at(&order, i);
            uint64_t next = order_at(&order, (i + 1) % N_POSITIONS);
            uint64_t last_time = order_at(&before, i);
            position[i * N_POSITIONS + sample]++;
            step[(next + N_POSITIONS - sample) % N_POSITIONS - 1]++;
            again[(sample + N_POSITIONS - last_time) % N_POSITIONS]++;
            rotated[((i + 1 + (uint64_t)epoch) - (i + (uint64_t)epoch)) % N_POSITIONS - 1]++;
        }
        before = order;
    }
    /* Each sample is at each position as often; rows and columns sum to n_epochs, which takes 2n - 2 degrees away. */
    assert_true(fabs(chi_excess(position, N_POSITIONS * N_POSITIONS, n_epochs * N_POSITIONS)) < 5);
    assert_true(fabs(chi_excess(step, N_POSITIONS - 1, n_epochs * N_POSITIONS)) < 5);
    assert_true(fabs(chi_excess(again, N_POSITIONS, n_epochs * N_POSITIONS)) < 5);
    assert_true(chi_excess(rotated, N_POSITIONS - 1, n_epochs * N_POSITIONS) > 1000);
}

/* ---- opening ---- */

static void whole_folders_open(void **state)
{
    static const struct hand_pack *const packs[] = {&CLASSES, &SEGMENTS, &TOKENS};
    for (size_t i = 0; i < ARRAY_LEN(packs); i++) {
        CLEANUP(pack) struct pack pack;
        struct err err = {0};
        hand_write(packs[i], *state);
        MUST_PASS(pack_open(&pack, *state, &err), err);
        assert_int_equal(pack.n_samples, packs[i]->n_samples);
        assert_int_equal(pack.n_classes, packs[i]->n_classes);
        assert_string_equal(pack.dataset, "by-hand");
        assert_false(pack.is_synthetic);
        uint8_t *buf = aligned_alloc(64, (size_t)pack.sample_bytes_max);
        uint8_t *want = xmalloc((size_t)pack.sample_bytes_max);
        for (uint32_t s = 0; s < packs[i]->n_samples; s++) {
            struct pack_sample sample;
            MUST_PASS(pack_read(&pack, s, buf, &sample, &err), err);
            hand_sample(packs[i], s, want);
            assert_memory_equal(buf, want, hand_bytes(packs[i], s));
        }
        free(buf);
        free(want);
    }
}

static void refused(const char *folder, enum err_code code, const char *message)
{
    struct pack pack;
    struct err err = {0};
    if (pack_open(&pack, folder, &err) == 0) {
        fail_msg("opened; expected \"%s\"", message);
    }
    if (err.code != code || !strstr(err.msg, message)) {
        fail_msg("%s: \"%s\"; expected %s: \"%s\"", err_code_name(err.code), err.msg,
                 err_code_name(code), message);
    }
}

static void a_folder_that_is_not_whole_is_refused(void **state)
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

static void h_magic(struct shard_header *h, struct shard_entry *e UNUSED)
{
    h->magic[7] = '2';
}
static void h_kind(struct shard_header *h, struct shard_entry *e UNUSED)
{
    h->kind = SHARD_SEGMENTS;
}
static void h_samples(struct shard_header *h, struct shard_entry *e UNUSED)
{
    h->n_samples--;
}
static void h_first(struct shard_header *h, struct shard_entry *e UNUSED)
{
    h->first_sample++;
}
static void h_data(struct shard_header *h, struct shard_entry *e UNUSED)
{
    h->data_offset = UINT64_MAX - 4095;
}
static void h_total(struct shard_header *h, struct shard_entry *e UNUSED)
{
    h->total_bytes++;
}
static void h_sequence(struct shard_header *h, struct shard_entry *e UNUSED)
{
    h->sequence = 8;
}
static void e_offset(struct shard_header *h UNUSED, struct shard_entry *e)
{
    e[1].offset = e[0].offset;
}
static void e_far(struct shard_header *h, struct shard_entry *e)
{
    e[h->n_samples - 1].offset = UINT64_MAX;
}
static void e_bytes(struct shard_header *h UNUSED, struct shard_entry *e)
{
    e[1].bytes = UINT32_MAX;
}
static void e_height(struct shard_header *h UNUSED, struct shard_entry *e)
{
    e[1].height = 0;
    e[1].bytes = 0;
}
static void e_wide(struct shard_header *h UNUSED, struct shard_entry *e)
{
    e[1].width = UINT16_MAX;
    e[1].height = 1;
    e[1].bytes = 3 * UINT16_MAX;
}
static void e_channels(struct shard_header *h UNUSED, struct shard_entry *e)
{
    e[1].channels = 1;
}
static void e_reserved(struct shard_header *h UNUSED, struct shard_entry *e)
{
    e[1].reserved = 1;
}
static void e_zero(struct shard_header *h UNUSED, struct shard_entry *e)
{
    e[1].zero = 1;
}
static void e_label(struct shard_header *h UNUSED, struct shard_entry *e)
{
    e[1].label = 7;
}
static void e_negative(struct shard_header *h UNUSED, struct shard_entry *e)
{
    e[1].label = -1;
}

static void every_number_of_a_shard_is_checked(void **state)
{
    static const struct {
        void (*spoil)(struct shard_header *header, struct shard_entry *entries);
        bool keeps_crc;
        const char *message;
    } cases[] = {
        {h_magic, false, "does not start with RPSHARD1"},
        {h_first, true, "the header's CRC-32C"},
        {e_label, true, "the entries' CRC-32C"},
        {h_kind, false, "kind is 2, expected 1"},
        {h_samples, false, "n_samples is 15, expected 16"},
        {h_first, false, "first_sample is 35, expected 34"},
        {h_data, false, "data_offset is"},
        {h_total, false, "total_bytes is"},
        {h_sequence, false, "sequence 8"},
        {e_offset, false, "sample 1 (35 of the set): offset is"},
        {e_far, false, "sample 15 (49 of the set): offset is"},
        {e_bytes, false, "sample 1 (35 of the set): 4294967295 bytes"},
        {e_height, false, "0 bytes for 0 x"},
        {e_wide, false, "for 1 x 65535 x 3"},
        {e_channels, false, "x 1 of kind classes"},
        {e_reserved, false, "sample 1 (35 of the set)"},
        {e_zero, false, "sample 1 (35 of the set)"},
        {e_label, false, "label 7, expected 0 to 6"},
        {e_negative, false, "label -1, expected 0 to 6"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct hand_pack pack = CLASSES;
        pack.spoil_header = cases[i].spoil;
        pack.keeps_crc = cases[i].keeps_crc;
        hand_write(&pack, *state);
        refused(*state, ERR_INTEGRITY, cases[i].message);
        refused(*state, ERR_INTEGRITY, "00002.shard");
    }
}

/* pack.json with one stretch of text replaced. */
static void every_word_of_pack_json_is_checked(void **state)
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
         "is there twice"},
        {"\"dataset\"", "\"data\"", ERR_PARSE, "unknown key data"},
        {"\"by-hand\"", "\"\"", ERR_PARSE, "not empty"},
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
        {"00001.shard", "../00001.sh", ERR_PARSE, "shard 1 is ../00001.sh"},
        {"00001.shard", "00000.shard", ERR_PARSE, "shard 1 is 00000.shard"},
        {"]}\n", "]}\n{}", ERR_PARSE, "expected the end"},
        {"]}\n", "]", ERR_PARSE, "byte"},
        {"\"split\":\"train\"", "\"split\":\"tr\\u0000in\"", ERR_PARSE, "split"},
    };
    const char *path = fs_join(&scratch_arena, *state, PACK_NAME);
    hand_write(&CLASSES, *state);
    struct str text = scratch_read(path);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(strbuf) struct strbuf changed;
        int64_t at = str_find(text, str_of(cases[i].from));
        strbuf_init(&changed, 1 << 20);
        assert_true(at >= 0);
        strbuf_add_str(&changed, str_sub(text, 0, (size_t)at));
        strbuf_add_z(&changed, cases[i].to);
        strbuf_add_str(&changed, str_sub(text, (size_t)at + strlen(cases[i].from), text.len));
        scratch_write(path, strbuf_str(&changed));
        refused(*state, cases[i].code, cases[i].message);
    }
    /* Another pack's shard, whole in itself, is not this pack's. */
    struct hand_pack other = CLASSES;
    other.n_classes = 6;
    hand_write(&other, *state);
    scratch_write(path, text);
    refused(*state, ERR_INTEGRITY, "SHA-256 of header and entries");
}

/* ---- batches ---- */

struct opened {
    struct pack pack;
    struct augment_recipe recipe;
    struct reader_opts opts;
};

static void opened_init(struct opened *o, const struct hand_pack *hand, const char *folder)
{
    struct err err = {0};
    hand_write(hand, folder);
    MUST_PASS(pack_open(&o->pack, folder, &err), err);
    o->recipe = hand->kind == SHARD_SEGMENTS ? augment_segments : augment_classes;
    o->opts = (struct reader_opts){.pack = &o->pack,
                                   .recipe = &o->recipe,
                                   .batch = 4,
                                   .height = 6,
                                   .width = 7,
                                   .n_ranks = 1,
                                   .seed = 5,
                                   .n_steps = 30,
                                   .n_workers = 2};
}

/* All bytes of the steps of a reader, one digest a step. */
static void digests_of(const struct reader_opts *opts, char (*hex)[SHA256_HEX_LEN + 1])
{
    struct reader *reader = NULL;
    struct err err = {0};
    int64_t plane = opts->height * opts->width;
    bool is_dense = opts->pack->kind == SHARD_SEGMENTS;
    MUST_PASS(reader_open(&reader, opts, &err), err);
    for (int64_t i = 0; i < opts->n_steps; i++) {
        struct reader_batch batch;
        struct sha256 sha;
        MUST_PASS(reader_next(reader, NULL, &batch, &err), err);
        assert_int_equal(batch.step, opts->first_step + i);
        sha256_init(&sha);
        sha256_add(&sha, batch.samples, (size_t)batch.n_samples * 8);
        if (opts->pack->kind == SHARD_TOKENS) {
            const int64_t s = opts->pack->sequence;
            const int64_t p = opts->pack->predictions;
            const int64_t lengths[6] = {s, s, s, p, p, 1};
            for (int j = 0; j < 6; j++) {
                sha256_add(&sha, batch.tokens[j], (size_t)(batch.n_samples * lengths[j]) * 4);
            }
        } else {
            sha256_add(&sha, batch.input, (size_t)(batch.n_samples * 3 * plane) * 4);
            sha256_add(&sha, batch.labels, (size_t)(batch.n_samples * (is_dense ? plane : 1)) * 8);
        }
        sha256_hex(&sha, hex[i]);
    }
    reader_close(reader);
}

#define STEPS 30

static void batches_depend_on_nothing_but_the_step(void **state)
{
    static const struct hand_pack *const packs[] = {&CLASSES, &SEGMENTS, &TOKENS};
    static char want[STEPS][SHA256_HEX_LEN + 1];
    static char got[STEPS][SHA256_HEX_LEN + 1];
    static const int workers[] = {1, 3, 8};
    for (size_t i = 0; i < ARRAY_LEN(packs); i++) {
        struct opened o;
        opened_init(&o, packs[i], *state);
        o.opts.n_workers = 2;
        digests_of(&o.opts, want);
        for (int64_t a = 0; a < STEPS; a++) {
            for (int64_t b = 0; b < a && packs[i]->kind != SHARD_TOKENS; b++) {
                assert_string_not_equal(want[a], want[b]); /* every step is another */
            }
        }
        for (size_t w = 0; w < ARRAY_LEN(workers); w++) {
            o.opts.n_workers = workers[w];
            digests_of(&o.opts, got);
            assert_memory_equal(got, want, sizeof(want));
        }
        for (int64_t first = 1; first < STEPS; first += 7) { /* resumed */
            o.opts.first_step = first;
            o.opts.n_steps = STEPS - first;
            digests_of(&o.opts, got);
            assert_memory_equal(got, want[first], sizeof(want[0]) * (size_t)(STEPS - first));
        }
        pack_release(&o.pack);
    }
}

/* Samples of the first n_steps in global order, put together from all ranks. */
static void order_of(const struct opened *o, int64_t n_ranks, int64_t batch, int64_t n_steps,
                     int64_t *ret_samples)
{
    for (int64_t rank = 0; rank < n_ranks; rank++) {
        struct reader *reader = NULL;
        struct err err = {0};
        struct reader_opts opts = o->opts;
        opts.rank = rank;
        opts.n_ranks = n_ranks;
        opts.batch = batch;
        opts.n_steps = n_steps;
        MUST_PASS(reader_open(&reader, &opts, &err), err);
        for (int64_t i = 0; i < n_steps; i++) {
            struct reader_batch got;
            MUST_PASS(reader_next(reader, NULL, &got, &err), err);
            assert_int_equal(got.n_samples, batch);
            memcpy(ret_samples + (i * n_ranks + rank) * batch, got.samples, (size_t)batch * 8);
        }
        reader_close(reader);
    }
}

static void any_number_of_ranks_sees_the_same_epochs(void **state)
{
    static int64_t one[240];
    static int64_t many[240];
    struct opened o;
    opened_init(&o, &CLASSES, *state);
    order_of(&o, 1, 12, 20, one);
    for (int64_t n_ranks = 2; n_ranks <= 12; n_ranks++) {
        if (12 % n_ranks == 0) {
            order_of(&o, n_ranks, 12 / n_ranks, 20, many);
            assert_memory_equal(many, one, sizeof(one));
        }
    }
    /* 50 samples are 4 global batches of 12: each epoch has 48 different ones and leaves 2 out, not always the same. */
    uint64_t left_out = 0;
    for (int64_t epoch = 0; epoch < 5; epoch++) {
        uint64_t seen = 0;
        for (int64_t i = 0; i < 48; i++) {
            assert_true(one[epoch * 48 + i] < 50);
            seen |= UINT64_C(1) << one[epoch * 48 + i];
        }
        assert_int_equal(__builtin_popcountll(seen), 48);
        left_out |= ~seen & ((UINT64_C(1) << 50) - 1);
    }
    assert_true(__builtin_popcountll(left_out) > 2);
    /* Without a left-over the epoch's order is that of any batch size. */
    order_of(&o, 1, 5, 10, one);
    order_of(&o, 2, 1, 25, many);
    assert_memory_equal(many, one, 50 * sizeof(one[0]));
    pack_release(&o.pack);
}

static void tokens_and_labels_arrive_in_their_places(void **state)
{
    struct opened o;
    struct reader *reader = NULL;
    struct reader_batch batch;
    struct err err = {0};
    opened_init(&o, &TOKENS, *state);
    MUST_PASS(reader_open(&reader, &o.opts, &err), err);
    MUST_PASS(reader_next(reader, NULL, &batch, &err), err);
    const uint32_t lengths[6] = {8, 8, 8, 3, 3, 1};
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t at = 0;
        for (int array = 0; array < 6; array++) {
            for (uint32_t j = 0; j < lengths[array]; j++, at++) {
                assert_int_equal(batch.tokens[array][i * lengths[array] + j],
                                 hand_token(&TOKENS, (uint32_t)batch.samples[i], at));
            }
        }
    }
    reader_close(reader);
    pack_release(&o.pack);
    opened_init(&o, &CLASSES, *state);
    MUST_PASS(reader_open(&reader, &o.opts, &err), err);
    MUST_PASS(reader_next(reader, NULL, &batch, &err), err);
    for (int64_t i = 0; i < 4; i++) {
        assert_int_equal(batch.labels[i], batch.samples[i] % 7);
    }
    reader_close(reader);
    pack_release(&o.pack);
}

static void an_evaluation_reads_each_sample_once_in_order(void **state)
{
    struct opened o;
    opened_init(&o, &CLASSES, *state);
    o.recipe.kind = AUGMENT_CENTRE_CROP;
    o.opts.is_evaluation = true;
    o.opts.n_ranks = 3;
    o.opts.batch = 8;
    o.opts.n_steps = reader_steps_per_epoch(&o.opts);
    assert_int_equal(o.opts.n_steps, 3);
    uint64_t seen = 0;
    int64_t total = 0;
    for (int64_t rank = 0; rank < 3; rank++) {
        struct reader *reader = NULL;
        struct err err = {0};
        o.opts.rank = rank;
        MUST_PASS(reader_open(&reader, &o.opts, &err), err);
        for (int64_t i = 0; i < 3; i++) {
            struct reader_batch batch;
            MUST_PASS(reader_next(reader, NULL, &batch, &err), err);
            /* 50 = 2 * 24 + 2: the last step has two samples for rank 0 and none for the others. */
            assert_int_equal(batch.n_samples, i < 2 ? 8 : rank == 0 ? 2 : 0);
            for (int64_t j = 0; j < batch.n_samples; j++, total++) {
                assert_int_equal(batch.samples[j], i * 24 + rank * 8 + j);
                seen |= UINT64_C(1) << batch.samples[j];
            }
        }
        reader_close(reader);
    }
    assert_int_equal(total, 50);
    assert_int_equal(seen, (UINT64_C(1) << 50) - 1);
    o.opts.first_step = 1;
    struct reader *reader = NULL;
    struct err err = {0};
    assert_int_equal(reader_open(&reader, &o.opts, &err), -1);
    pack_release(&o.pack);
}

/* ---- errors and stopping ---- */

static void flip_byte(const char *path, int64_t at)
{
    struct str bytes = scratch_read(path);
    char *copy = arena_strndup(&scratch_arena, bytes.ptr, bytes.len);
    copy[at] = (char)(copy[at] ^ 1);
    scratch_write(path, (struct str){copy, bytes.len});
}

/* The step and place of a sample in the first epoch. */
static int64_t step_of(const struct reader_opts *opts, int64_t sample)
{
    struct order order;
    order_init(&order, (uint64_t)opts->pack->n_samples, opts->seed, 0);
    for (int64_t i = 0; i < opts->pack->n_samples; i++) {
        if (order_at(&order, (uint64_t)i) == (uint64_t)sample) {
            return i / opts->batch;
        }
    }
    return -1;
}

static void a_bad_sample_is_named_and_never_skipped(void **state)
{
    struct opened o;
    opened_init(&o, &CLASSES, *state);
    const struct pack_shard *shard = &o.pack.shards[1];
    o.opts.batch = 5;
    o.opts.n_steps = 10;
    /* Two bad ones: the earlier in the epoch's order is the error, whichever thread is faster. */
    int64_t step_a = step_of(&o.opts, 17 + 3);
    int64_t step_b = step_of(&o.opts, 17 + 9);
    int64_t step = step_a < step_b ? step_a : step_b;
    assert_true(step_a != step_b);
    flip_byte(fs_join(&scratch_arena, *state, shard->name),
              (int64_t)shard->entries[3].offset + 100);
    flip_byte(fs_join(&scratch_arena, *state, shard->name), (int64_t)shard->entries[9].offset);
    const char *message = step == step_a ? "00001.shard: sample 3 (20 of the set): CRC-32C is"
                                         : "00001.shard: sample 9 (26 of the set): CRC-32C is";
    for (int n_workers = 1; n_workers <= 6; n_workers++) {
        struct reader *reader = NULL;
        struct reader_batch batch;
        struct err err = {0};
        /* Opened anew: scratch_write made a new file of the same name, or cut the old one. */
        CLEANUP(pack) struct pack again;
        MUST_PASS(pack_open(&again, *state, &err), err);
        o.opts.pack = &again;
        o.opts.n_workers = n_workers;
        MUST_PASS(reader_open(&reader, &o.opts, &err), err);
        for (int64_t i = 0; i < step; i++) {
            MUST_PASS(reader_next(reader, NULL, &batch, &err), err);
        }
        for (int i = 0; i < 2; i++) { /* and it stays */
            struct err found = {0};
            assert_int_equal(reader_next(reader, NULL, &batch, &found), -1);
            assert_int_equal(found.code, ERR_INTEGRITY);
            assert_non_null(strstr(found.msg, message));
        }
        reader_close(reader);
    }
    pack_release(&o.pack);
}

static void a_shard_that_shrinks_is_an_error_not_a_crash(void **state)
{
    struct opened o;
    struct reader *reader = NULL;
    struct reader_batch batch;
    struct err err = {0};
    opened_init(&o, &CLASSES, *state);
    assert_int_equal(truncate(fs_join(&scratch_arena, *state, "00002.shard"), 9000), 0);
    MUST_PASS(reader_open(&reader, &o.opts, &err), err);
    int result = 0;
    for (int i = 0; i < 12 && result == 0; i++) {
        result = reader_next(reader, NULL, &batch, &err);
    }
    assert_int_equal(result, -1);
    assert_int_equal(err.code, ERR_INTEGRITY);
    assert_non_null(strstr(err.msg, "the file ends before byte"));
    reader_close(reader);
    pack_release(&o.pack);
}

static void a_label_past_the_classes_is_refused(void **state)
{
    struct opened o;
    struct pack_sample sample;
    struct err err = {0};
    opened_init(&o, &SEGMENTS, *state);
    uint8_t *buf = aligned_alloc(64, (size_t)o.pack.sample_bytes_max);
    MUST_PASS(pack_read(&o.pack, 0, buf, &sample, &err), err);
    o.pack.n_classes = 18; /* the file has 0 to 18 and 255 */
    assert_int_equal(pack_read(&o.pack, 0, buf, &sample, &err), -1);
    assert_non_null(strstr(err.msg, "a pixel's label is 18 to 254"));
    free(buf);
    pack_release(&o.pack);
}

static void what_cannot_be_read_is_refused(void **state)
{
    struct opened o;
    struct reader *reader = NULL;
    struct err err = {0};
    opened_init(&o, &CLASSES, *state);
    o.opts.batch = 17;
    o.opts.n_ranks = 3;
    assert_int_equal(reader_open(&reader, &o.opts, &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
    assert_non_null(strstr(err.msg, "50 samples are less than one batch of 17 on each of 3 ranks"));
    int64_t bytes = 0;
    err = (struct err){0};
    MUST_PASS(reader_bytes(&o.opts, &bytes, &err), err);
    assert_int_equal(bytes, 4 * 17 * (3 * 6 * 7 * 4 + 8 + 8));
    o.opts.height = INT64_MAX / 4;
    assert_int_equal(reader_bytes(&o.opts, &bytes, &err), -1);
    pack_release(&o.pack);
}

static void a_signal_and_a_close_end_it_at_any_time(void **state)
{
    struct opened o;
    struct reader_batch batch;
    opened_init(&o, &CLASSES, *state);
    o.opts.n_workers = 4;
    for (int taken = 0; taken < 12; taken++) {
        volatile sig_atomic_t stop = 0;
        struct reader *reader = NULL;
        struct err err = {0};
        MUST_PASS(reader_open(&reader, &o.opts, &err), err);
        for (int i = 0; i < taken; i++) {
            MUST_PASS(reader_next(reader, &stop, &batch, &err), err);
        }
        stop = 15;
        assert_int_equal(reader_next(reader, &stop, &batch, &err), -1);
        assert_int_equal(err.code, ERR_INTERRUPTED);
        reader_close(reader);
    }
    reader_close(NULL);
    pack_release(&o.pack);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_gives_the_standard_s_examples),
        cmocka_unit_test(a_value_is_skipped_only_if_it_is_json),
        cmocka_unit_test(an_epoch_has_each_sample_once),
        cmocka_unit_test(every_permutation_of_five_is_as_likely),
        cmocka_unit_test(positions_and_neighbours_are_uniform),
        cmocka_unit_test_setup_teardown(whole_folders_open, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(a_folder_that_is_not_whole_is_refused, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(every_number_of_a_shard_is_checked, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(every_word_of_pack_json_is_checked, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(batches_depend_on_nothing_but_the_step, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(any_number_of_ranks_sees_the_same_epochs, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(tokens_and_labels_arrive_in_their_places, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(an_evaluation_reads_each_sample_once_in_order, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(a_bad_sample_is_named_and_never_skipped, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(a_shard_that_shrinks_is_an_error_not_a_crash, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(a_label_past_the_classes_is_refused, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(what_cannot_be_read_is_refused, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(a_signal_and_a_close_end_it_at_any_time, scratch_make,
                                        scratch_remove),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, scratch_group_start, scratch_group_end);
}
