/* SPDX-License-Identifier: Apache-2.0 */
/* Packed datasets: the order of an epoch, batches by any number of threads and ranks, errors. */
#include "unit.h"

#include <math.h>
#include <sys/stat.h>

#include "data/reader.h"
#include "wl_pack.h"

/* ---- the order ---- */

TEST(an_epoch_has_each_sample_once)
{
    static const uint64_t sizes[] = {1000, 1009, 4096, 100003};
    for (uint64_t n = 1; n <= 300 + ARRAY_LEN(sizes); n++) {
        uint64_t size = n <= 300 ? n : sizes[n - 301];
        CLEANUP(free) uint8_t *seen = xcalloc(size, 1);
        struct order order;
        order_init(&order, size, 42, n);
        for (uint64_t i = 0; i < size; i++) {
            uint64_t sample = order_at(&order, i);
            assert_true(sample < size);
            assert_int_equal(seen[sample], 0);
            seen[sample] = 1;
        }
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

TEST(every_permutation_of_five_is_as_likely)
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

TEST(positions_and_neighbours_are_uniform)
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
    /* Each sample is at each position equally often; rows and columns sum to n_epochs, which takes 2n - 2 degrees
       away. */
    assert_true(fabs(chi_excess(position, N_POSITIONS * N_POSITIONS, n_epochs * N_POSITIONS)) < 5);
    assert_true(fabs(chi_excess(step, N_POSITIONS - 1, n_epochs * N_POSITIONS)) < 5);
    assert_true(fabs(chi_excess(again, N_POSITIONS, n_epochs * N_POSITIONS)) < 5);
    assert_true(chi_excess(rotated, N_POSITIONS - 1, n_epochs * N_POSITIONS) > 1000);
}

/* ---- batches ---- */

struct opened {
    struct pack pack;
    struct augment_recipe recipe;
    struct reader_opts opts;
};

static void opened_init(struct opened *o, const struct hand_pack *hand, const char *folder)
{
    hand_write(hand, folder);
    PASSES(pack_open(&o->pack, folder, ERR));
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
    int64_t plane = opts->height * opts->width;
    bool is_dense = opts->pack->kind == SHARD_SEGMENTS;
    PASSES(reader_open(&reader, opts, ERR));
    for (int64_t i = 0; i < opts->n_steps; i++) {
        struct reader_batch batch;
        struct sha256 sha;
        PASSES(reader_next(reader, NULL, &batch, ERR));
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

TEST_IN_SCRATCH(batches_depend_on_nothing_but_the_step)
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

/* Samples of the first n_steps in global order, collected from all ranks. */
static void order_of(const struct opened *o, int64_t n_ranks, int64_t batch, int64_t n_steps,
                     int64_t *ret_samples)
{
    for (int64_t rank = 0; rank < n_ranks; rank++) {
        struct reader *reader = NULL;
        struct reader_opts opts = o->opts;
        opts.rank = rank;
        opts.n_ranks = n_ranks;
        opts.batch = batch;
        opts.n_steps = n_steps;
        PASSES(reader_open(&reader, &opts, ERR));
        for (int64_t i = 0; i < n_steps; i++) {
            struct reader_batch got;
            PASSES(reader_next(reader, NULL, &got, ERR));
            assert_int_equal(got.n_samples, batch);
            memcpy(ret_samples + (i * n_ranks + rank) * batch, got.samples, (size_t)batch * 8);
        }
        reader_close(reader);
    }
}

TEST_IN_SCRATCH(any_number_of_ranks_sees_the_same_epochs)
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
    /* 50 samples are 4 global batches of 12: each epoch has 48 different ones and drops 2, not always the same. */
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
    /* Without dropped samples the epoch's order is that of any batch size. */
    order_of(&o, 1, 5, 10, one);
    order_of(&o, 2, 1, 25, many);
    assert_memory_equal(many, one, 50 * sizeof(one[0]));
    pack_release(&o.pack);
}

TEST_IN_SCRATCH(tokens_and_labels_arrive_in_their_places)
{
    struct opened o;
    struct reader *reader = NULL;
    struct reader_batch batch;
    opened_init(&o, &TOKENS, *state);
    PASSES(reader_open(&reader, &o.opts, ERR));
    PASSES(reader_next(reader, NULL, &batch, ERR));
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
    PASSES(reader_open(&reader, &o.opts, ERR));
    PASSES(reader_next(reader, NULL, &batch, ERR));
    for (int64_t i = 0; i < 4; i++) {
        assert_int_equal(batch.labels[i], batch.samples[i] % 7);
    }
    reader_close(reader);
    pack_release(&o.pack);
}

TEST_IN_SCRATCH(an_evaluation_reads_each_sample_once_in_order)
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
        o.opts.rank = rank;
        PASSES(reader_open(&reader, &o.opts, ERR));
        for (int64_t i = 0; i < 3; i++) {
            struct reader_batch batch;
            PASSES(reader_next(reader, NULL, &batch, ERR));
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
    FAILS(reader_open(&reader, &o.opts, ERR), ERR_ANY);
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

TEST_IN_SCRATCH(a_bad_sample_is_named_and_never_skipped)
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
        /* Opened again: scratch_write made a new file of the same name, or truncated the old one. */
        CLEANUP(pack) struct pack again;
        PASSES(pack_open(&again, *state, ERR));
        o.opts.pack = &again;
        o.opts.n_workers = n_workers;
        PASSES(reader_open(&reader, &o.opts, ERR));
        for (int64_t i = 0; i < step; i++) {
            PASSES(reader_next(reader, NULL, &batch, ERR));
        }
        for (int i = 0; i < 2; i++) { /* and it stays */
            FAILS_WITH(reader_next(reader, NULL, &batch, ERR), ERR_INTEGRITY, message);
        }
        reader_close(reader);
    }
    pack_release(&o.pack);
}

TEST_IN_SCRATCH(a_shard_that_shrinks_is_an_error_not_a_crash)
{
    struct opened o;
    struct reader *reader = NULL;
    struct reader_batch batch;
    opened_init(&o, &CLASSES, *state);
    assert_int_equal(truncate(fs_join(&scratch_arena, *state, "00002.shard"), 9000), 0);
    PASSES(reader_open(&reader, &o.opts, ERR));
    int result = 0;
    for (int i = 0; i < 12 && result == 0; i++) {
        result = reader_next(reader, NULL, &batch, ERR);
    }
    assert_int_equal(result, -1);
    assert_int_equal(ERR->code, ERR_INTEGRITY);
    SAYS("the file ends before byte");
    reader_close(reader);
    pack_release(&o.pack);
}

TEST_IN_SCRATCH(a_label_past_the_classes_is_refused)
{
    struct opened o;
    struct pack_sample sample;
    opened_init(&o, &SEGMENTS, *state);
    uint8_t *buf = aligned_alloc(64, (size_t)o.pack.sample_bytes_max);
    PASSES(pack_read(&o.pack, 0, buf, &sample, ERR));
    o.pack.n_classes = 18; /* the file has 0 to 18 and 255 */
    FAILS_WITH(pack_read(&o.pack, 0, buf, &sample, ERR), ERR_ANY, "a pixel's label is 18 to 254");
    free(buf);
    pack_release(&o.pack);
}

TEST_IN_SCRATCH(what_cannot_be_read_is_refused)
{
    struct opened o;
    struct reader *reader = NULL;
    opened_init(&o, &CLASSES, *state);
    o.opts.batch = 17;
    o.opts.n_ranks = 3;
    FAILS(reader_open(&reader, &o.opts, ERR), ERR_USAGE);
    SAYS("50 samples are less than one batch of 17 on each of 3 ranks");
    int64_t bytes = 0;
    PASSES(reader_bytes(&o.opts, &bytes, ERR));
    assert_int_equal(bytes, 4 * 17 * (3 * 6 * 7 * 4 + 8 + 8));
    o.opts.height = INT64_MAX / 4;
    FAILS(reader_bytes(&o.opts, &bytes, ERR), ERR_ANY);
    pack_release(&o.pack);
}

TEST_IN_SCRATCH(a_signal_and_a_close_end_it_at_any_time)
{
    struct opened o;
    struct reader_batch batch;
    opened_init(&o, &CLASSES, *state);
    o.opts.n_workers = 4;
    for (int taken = 0; taken < 12; taken++) {
        volatile sig_atomic_t stop = 0;
        struct reader *reader = NULL;
        PASSES(reader_open(&reader, &o.opts, ERR));
        for (int i = 0; i < taken; i++) {
            PASSES(reader_next(reader, &stop, &batch, ERR));
        }
        stop = 15;
        FAILS(reader_next(reader, &stop, &batch, ERR), ERR_INTERRUPTED);
        reader_close(reader);
    }
    reader_close(NULL);
    pack_release(&o.pack);
}

UNIT_MAIN(scratch_group_start, scratch_group_end)
