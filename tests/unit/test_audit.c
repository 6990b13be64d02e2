/* SPDX-License-Identifier: Apache-2.0 */
/* Series kept in files: they read back bit for bit, and a changed file is refused. */
#include "unit.h"

#include <math.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/rng.h"
#include "load/series_bundle.h"
#include "load/series_file.h"

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

static struct series_file make_file(struct arena *arena, struct series *series, size_t n)
{
    static struct fact facts[] = {{{"cuda", 4}, {"11.2 \"x\"", 8}, 12, 0, 1},
                                  {{"gpus", 4}, {"8", 1}, 13, 1, 1},
                                  {{"gpus", 4}, {"16", 2}, 14, FACT_OF_NONE}};
    struct series_file file = {
        .report = STR_LIT("r"), .log = STR_LIT("a/b.log"), .sha256 = STR_LIT("00")};
    (void)arena;
    file.source = (struct source_ref){STR_LIT("https://example.org/r"), STR_LIT("c0"),
                                      STR_LIT("logs"), STR_LIT("2020-01-02")};
    file.measurement = (struct measurement){.format = STR_LIT("f"),
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
                                            .n_lines = 9};
    return file;
}

TEST(a_series_reads_back_bit_by_bit)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct rng rng;
    struct err err = {0};
    struct series series[3];
    struct series_file back = {0};
    char *path = scratch_path(&arena);
    rng_init(&rng, 7);
    series[0] = make_series(&arena, &rng, true);
    series[1] = make_series(&arena, &rng, false);
    series[2] = (struct series){.name = STR_LIT("none"), .unit = STR_LIT("")};
    struct series_file file = make_file(&arena, series, ARRAY_LEN(series));
    assert_int_equal(series_file_write(path, &file, &err), 0);
    assert_int_equal(series_file_read(&arena, path, &back, &err), 0);
    assert_int_equal(back.measurement.n_series, 3);
    for (size_t idx = 0; idx < 3; idx++) {
        assert_same_series(&series[idx], &back.measurement.series[idx]);
    }
    assert_true(back.measurement.verdict == PARSE_INCOMPLETE &&
                back.measurement.last_run == PARSE_INCOMPLETE);
    assert_true(str_eq(back.measurement.why, file.measurement.why));
    assert_true(back.measurement.n_runs == 2 && back.measurement.last_step == 77 &&
                back.measurement.total_steps == -1 && back.measurement.warmup_steps == -1);
    assert_true(back.measurement.n_bytes == 123 && back.measurement.n_lines == 9);
    assert_same_facts(&back.measurement, &file.measurement);
    assert_true(str_eq_z(back.log, "a/b.log") && str_eq_z(back.source.commit, "c0"));
    unlink(path);
}

/* Of several runs with facts of each, and of one, whose facts are written without runs. */
TEST(a_bundle_says_of_which_run_a_fact_is)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(series_bundle) struct series_bundle bundle = {0};
    struct err err = {0};
    struct series series = {.name = STR_LIT("none"), .unit = STR_LIT("")};
    struct series_file several = make_file(&arena, &series, 1);
    struct series_file one = several;
    struct fact fact = {STR_LIT("gpus"), STR_LIT("8"), 3, 0, 0};
    const struct series_file *files[] = {&several, &one};
    struct str text;
    char *path = scratch_path(&arena);
    one.log = STR_LIT("one.log");
    one.measurement.n_runs = 1;
    one.measurement.facts = &fact;
    one.measurement.n_facts = 1;
    assert_int_equal(series_bundle_write(path, files, ARRAY_LEN(files), &err), 0);
    assert_int_equal(series_bundle_read(&arena, path, &bundle, &err), 0);
    for (size_t idx = 0; idx < ARRAY_LEN(files); idx++) {
        const struct series_file *back = map_get(&bundle.logs, files[idx]->log);
        assert_non_null(back);
        assert_same_facts(&back->measurement, &files[idx]->measurement);
    }
    assert_int_equal(fs_read(&arena, path, 1 << 20, &text, &err), 0);
    assert_non_null(strstr(text.ptr, "[1,\"8\",3]")); /* as before runs were told apart */
    unlink(path);
}

struct fault {
    const char *from, *to, *says;
};

TEST(a_changed_file_is_refused)
{
    static const struct fault FAULTS[] = {
        {"\"step\":[1,1,3]", "\"step\":[1,1,2]", "step: expected 3 values in all"},
        {"\"step\":[1,1,3]", "\"step\":[1,1,4]", "step: expected 3 values in all"},
        {"\"step\":[1,1,3]", "\"step\":[1,1]", "expected start, increment, count"},
        {"\"step\":[1,1,3]", "\"step\":[4503599627370496,4503599627370496,3]", "out of range"},
        {"\"n\":3", "\"n\":16777216", "value: expected 16777216 values"},
        {"\"value\":[1,2,3]", "\"value\":[1,2]", "value: expected 3 values"},
        {"\"value\":[1,2,3]", "\"value\":[1,2,\"x\"]", "expected a number"},
        {"\"at\":[5,1,1]", "\"at\":[5,1]", "time.at: expected 3 values"},
        {"\"unit_us\":1000000", "\"unit_us\":0", "unit_us"},
        {"\"scope\":\"rank\"", "\"scope\":\"world\"", "unknown word"},
        {"\"verdict\":\"incomplete\"", "\"verdict\":\"fine\"", "unknown word"},
        {"\"report\":\"r\"", "\"report\":\"r\",\"x\":1", "unknown key"},
        {"\"8\",13,1,1]", "\"8\",13,1]", "expected name, value, line, and both runs or none"},
        {"\"8\",13,1,1]", "\"8\",13,1,40000]", "32767"},
    };
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct err err = {0};
    struct sample samples[3] = {{.step = 1, .value = 1, .time_s = 5, .gpus = -1},
                                {.step = 2, .value = 2, .time_s = 6, .gpus = -1},
                                {.step = 3, .value = 3, .time_s = 7, .gpus = -1}};
    struct series series = {.name = STR_LIT("s"), .unit = STR_LIT(""), .samples = samples, .n = 3};
    struct series_file file = make_file(&arena, &series, 1);
    struct series_file back = {0};
    struct str text;
    char *path = scratch_path(&arena);
    assert_int_equal(series_file_write(path, &file, &err), 0);
    assert_int_equal(fs_read(&arena, path, 1 << 20, &text, &err), 0);
    for (size_t idx = 0; idx < ARRAY_LEN(FAULTS); idx++) {
        struct err what = {0};
        const char *at = strstr(text.ptr, FAULTS[idx].from);
        char *changed;
        assert_non_null(at);
        changed = arena_printf(&arena, "%.*s%s%s", (int)(at - text.ptr), text.ptr, FAULTS[idx].to,
                               at + strlen(FAULTS[idx].from));
        assert_int_equal(fs_write_atomic(path, str_of(changed), &err), 0);
        assert_int_equal(series_file_read(&arena, path, &back, &what), -1);
        if (!strstr(what.msg, FAULTS[idx].says)) {
            fail_msg("\"%s\" does not say \"%s\"", what.msg, FAULTS[idx].says);
        }
    }
    unlink(path);
}

TEST(names_tell_logs_and_formats_apart)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    assert_string_equal(series_file_name(&arena, str_of("a/b/c.log"), str_of("f")),
                        "a--b--c.log.f.json");
}

UNIT_MAIN(NULL, NULL)
