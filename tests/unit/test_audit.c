/* SPDX-License-Identifier: Apache-2.0 */
/* Kept series: they read back bit for bit, and a changed file is refused. */
#include "unit.h"

#include <math.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/rng.h"
#include "load/kept_series.h"

#define N_SAMPLES 500

static char *scratch_path(struct arena *arena)
{
    const char *folder = getenv("TMPDIR");
    return arena_printf(arena, "%s/reperf-series-%ld.json", folder ? folder : "/tmp",
                        (long)getpid());
}

/* Steps with jumps and repeats, several ranks, times in whole seconds or not, some values missing. */
static struct series make_series(struct arena *arena, struct rng *rng, bool is_whole)
{
    struct series s = {.name = STR_LIT("ips"),
                       .unit = STR_LIT("samples/s"),
                       .scope = SCOPE_RANK,
                       .quantity = QTY_RATE,
                       .is_primary = true};
    int64_t step = 0;
    s.samples = arena_array(arena, struct sample, N_SAMPLES);
    for (s.n = 0; s.n < N_SAMPLES; s.n++) {
        struct sample *at = &s.samples[s.n];
        step += (int64_t)rng_below(rng, 4);
        at->step = step;
        at->rank = (int32_t)rng_below(rng, 3) - 1;
        at->run = (int16_t)(s.n > 300);
        at->gpus = -1;
        at->value = s.n == 7 ? (double)NAN : 1000 * rng_f64(rng);
        at->time_s = is_whole ? 1608114758.0 + (double)s.n : rng_f64(rng) * 1e9;
        if (!is_whole && s.n % 50 == 3) {
            at->time_s = (double)NAN;
        }
    }
    return s;
}

static bool same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof(a)) == 0 || (isnan(a) && isnan(b));
}

static void assert_same_series(const struct series *a, const struct series *b)
{
    assert_true(str_eq(a->name, b->name) && str_eq(a->unit, b->unit));
    assert_true(a->scope == b->scope && a->quantity == b->quantity &&
                a->is_primary == b->is_primary);
    assert_int_equal(a->n, b->n);
    for (size_t idx = 0; idx < a->n; idx++) {
        const struct sample *x = &a->samples[idx];
        const struct sample *y = &b->samples[idx];
        assert_true(x->step == y->step && x->rank == y->rank && x->run == y->run &&
                    x->gpus == y->gpus);
        assert_true(same_bits(x->value, y->value) && same_bits(x->time_s, y->time_s));
    }
}

static void assert_same_facts(const struct measurement *a, const struct measurement *b)
{
    assert_int_equal(a->n_facts, b->n_facts);
    for (size_t idx = 0; idx < a->n_facts; idx++) {
        const struct fact *x = &a->facts[idx];
        const struct fact *y = &b->facts[idx];
        assert_true(str_eq(x->name, y->name) && str_eq(x->value, y->value) && x->line == y->line);
        assert_true(x->first_run == y->first_run && x->last_run == y->last_run);
    }
}

static struct kept_log make_log(struct series *series, size_t n)
{
    static struct fact facts[] = {{{"cuda", 4}, {"11.2 \"x\"", 8}, 12, 0, 1},
                                  {{"gpus", 4}, {"8", 1}, 13, 1, 1},
                                  {{"gpus", 4}, {"16", 2}, 14, FACT_OF_NONE}};
    return (struct kept_log){.path = STR_LIT("a/b.log"),
                             .sha256 = STR_LIT("00"),
                             .measurement = {.format = STR_LIT("f"),
                                             .verdict = PARSE_INCOMPLETE,
                                             .why = STR_LIT("it ends"),
                                             .series = series,
                                             .n_series = n,
                                             .facts = facts,
                                             .n_facts = ARRAY_LEN(facts),
                                             .n_runs = 2,
                                             .first_run = PARSE_OK,
                                             .last_run = PARSE_INCOMPLETE,
                                             .warmup_steps = -1,
                                             .last_step = 77,
                                             .total_steps = -1,
                                             .n_bytes = 123,
                                             .n_lines = 9}};
}

static struct kept_series make_kept(struct kept_log *logs, size_t n)
{
    return (struct kept_series){.report = STR_LIT("r"),
                                .source = {STR_LIT("https://example.org/r"),
                                           STR_LIT("0123456789012345678901234567890123456789"),
                                           STR_LIT("logs"), STR_LIT("2020-01-02")},
                                .logs = logs,
                                .n_logs = n};
}

/* Two logs of one name, by two formats: one of several runs, one of a single one. */
TEST(kept_series_read_back_bit_by_bit)
{
    CLEANUP(kept_series) struct kept_series back = {.n_logs = 0};
    struct rng rng;
    struct series series[3];
    struct fact fact = {STR_LIT("gpus"), STR_LIT("8"), 3, 0, 0};
    struct str sha256[2];
    char *path = scratch_path(ARENA);
    rng_init(&rng, 7);
    series[0] = make_series(ARENA, &rng, true);
    series[1] = make_series(ARENA, &rng, false);
    series[2] = (struct series){.name = STR_LIT("none"),
                                .unit = STR_LIT(""),
                                .scope = SCOPE_UNKNOWN,
                                .quantity = QTY_SCORE};
    struct kept_log logs[] = {make_log(series, ARRAY_LEN(series)), make_log(&series[2], 1)};
    struct measurement *one = &logs[1].measurement;
    one->format = STR_LIT("g");
    one->verdict = one->last_run = PARSE_OK;
    one->why = STR_EMPTY;
    one->n_runs = 1;
    one->facts = &fact;
    one->n_facts = 1;
    const struct kept_series kept = make_kept(logs, ARRAY_LEN(logs));
    PASSES(kept_series_write(ARENA, path, &kept, &sha256[0], ERR));
    PASSES(kept_series_read(ARENA, path, &back, &sha256[1], ERR));
    assert_true(str_eq(sha256[0], sha256[1]) && sha256[0].len == 64);
    assert_true(str_eq_z(back.report, "r") && str_eq(back.source.commit, kept.source.commit));
    assert_int_equal(back.n_logs, 2);
    assert_null(kept_series_find(&back, STR_LIT("a/b.log"), STR_LIT("h")));
    for (size_t at = 0; at < ARRAY_LEN(logs); at++) {
        const struct measurement *m = &logs[at].measurement;
        const struct kept_log *found = kept_series_find(&back, STR_LIT("a/b.log"), m->format);
        assert_ptr_equal(found, &back.logs[at]);
        assert_true(str_eq_z(found->path, "a/b.log") && str_eq_z(found->sha256, "00"));
        const struct measurement *read = &found->measurement;
        assert_int_equal(read->n_series, m->n_series);
        for (size_t idx = 0; idx < m->n_series; idx++) {
            assert_same_series(&m->series[idx], &read->series[idx]);
        }
        assert_true(read->verdict == m->verdict && read->first_run == m->first_run &&
                    read->last_run == m->last_run);
        assert_true(str_eq(read->why, m->why));
        assert_true(read->n_runs == m->n_runs && read->last_step == 77 && read->total_steps == -1 &&
                    read->warmup_steps == -1);
        assert_true(read->n_bytes == 123 && read->n_lines == 9);
        assert_same_facts(read, m);
    }
    unlink(path);
}

TEST(a_changed_file_is_refused)
{
    static const struct {
        const char *from, *to, *says;
    } FAULTS[] = {
        {"\"step\":[1,1,3]", "\"step\":[1,1,2]", "step: expected 3 values in all"},
        {"\"step\":[1,1,3]", "\"step\":[1,1,4]", "step: expected 3 values in all"},
        {"\"step\":[1,1,3]", "\"step\":[1,1]", "expected start, increment, count"},
        {"\"step\":[1,1,3]", "\"step\":[4503599627370496,4503599627370496,3]", "out of range"},
        {"\"step\":[1,1,3],", "", "expected a member \"step\""},
        {"\"value\":[1,2,3]", "\"value\":[1,2]", "step: expected 2 values"},
        {"\"value\":[1,2,3]", "\"value\":[1,2,\"x\"]", "expected a number"},
        {"\"time_us\":[5000000,1000000,1000000]", "\"time_us\":[5,1]",
         "time_us: expected 3 values"},
        {"\"time_us\":[5000000", "\"time_us\":[-5000000", "a time out of range"},
        {"\"time_us\":[5000000", "\"time_us\":[5000000.5", "a time out of range"},
        {"\"scope\":\"rank\"", "\"scope\":\"world\"", "expected one of rank, node, job"},
        {"\"verdict\":\"incomplete\"", "\"verdict\":\"fine\"", "expected one of ok, no_metric"},
        {"\"verdict\":\"incomplete\"", "\"verdict\":\"proposed\"", "expected one of ok, no_metric"},
        {"\"report\": \"r\"", "\"report\": \"r\", \"x\": 1", "unknown key"},
        {"\"schema_version\": 2", "\"schema_version\": 1", "schema_version: expected 2"},
        {"\"last_run\":1}", "\"last_run\":40000}", "32767"},
    };
    struct sample samples[3] = {{.step = 1, .value = 1, .time_s = 5, .gpus = -1},
                                {.step = 2, .value = 2, .time_s = 6, .gpus = -1},
                                {.step = 3, .value = 3, .time_s = 7, .gpus = -1}};
    struct series series = {.name = STR_LIT("s"), .unit = STR_LIT(""), .samples = samples, .n = 3};
    struct kept_log log = make_log(&series, 1);
    const struct kept_series kept = make_kept(&log, 1);
    struct kept_series back;
    struct str text;
    struct str sha256;
    char *path = scratch_path(ARENA);
    PASSES(kept_series_write(ARENA, path, &kept, &sha256, ERR));
    PASSES(fs_read(ARENA, path, 1 << 20, &text, ERR));
    for (EACH(row, FAULTS)) {
        PASSES(fs_write_atomic(path, str_of(replaced(text.ptr, row->from, row->to)), ERR));
        FAILS_WITH(kept_series_read(ARENA, path, &back, &sha256, ERR), ERR_ANY, row->says);
    }
    unlink(path);
}
