/* SPDX-License-Identifier: Apache-2.0 */
/* Many logs by one thread, two in turn: each is read as if alone, whatever the other is. */
#include "unit.h"

#include <sys/stat.h>

#include "base/fs.h"
#include "codec/digest.h"
#include "codec/unpack_filter.h"
#include "load/load.h"
#include "load/log_reader.h"
#include "load/measure.h"
#include "load/measure_many.h"
#include "scratch.h"

#define MANY_MAX 200
#define HEAD     "step,samples_per_second\n"

struct logs {
    struct measure_job jobs[MANY_MAX];
    size_t n;
};

static struct measure_job *add(struct logs *logs, const char *path)
{
    struct measure_job *job = &logs->jobs[logs->n++];
    ASSERT(logs->n <= MANY_MAX);
    *job = (struct measure_job){.path = path, .format = STR_LIT("csv")};
    return job;
}

/* A table of about so many bytes, and no two the same. */
static void add_log(struct logs *logs, size_t bytes)
{
    CLEANUP(free) char *text = xmalloc(bytes + 64);
    const char *path = scratch_path(arena_printf(&scratch_arena, "%zu-%zu.csv", logs->n, bytes));
    size_t len = 0;
    for (size_t step = 0; len < bytes; step++) {
        len += step ? (size_t)snprintf(text + len, 64, "%zu,%zu.5\n", step, 100 + logs->n)
                    : (size_t)snprintf(text + len, 64, HEAD);
    }
    scratch_write(path, (struct str){text, bytes < len ? bytes : len});
    add(logs, path);
}

static void measure_all(struct logs *logs)
{
    const struct measure_with with = {.root = "."};
    PASSES(measure_many(&scratch_arena, &with, logs->jobs, logs->n, ERR));
}

static void holds(const struct format *format, const struct measure_job *job)
{
    uint8_t sha256[SHA256_BYTES];
    char hex[SHA256_HEX_SIZE];
    struct measurement m;
    assert_non_null(job->measurement);
    PASSES(measure_file(&scratch_arena, &(struct reading){.format = format, .path = job->path}, &m,
                        NULL, ERR));
    assert_int_equal(job->measurement->n_lines, m.n_lines);
    assert_int_equal(job->measurement->n_series, m.n_series);
    for (size_t idx = 0; idx < m.n_series; idx++) {
        assert_int_equal(job->measurement->series[idx].n, m.series[idx].n);
        assert_memory_equal(job->measurement->series[idx].samples, m.series[idx].samples,
                            m.series[idx].n * sizeof(m.series[idx].samples[0]));
    }
    sha256_of(scratch_read(job->path), sha256);
    hex_encode(sha256, SHA256_BYTES, hex);
    assert_true(str_eq_z(job->sha256, hex));
}

/* Lengths around a block of SHA-256 and around the window in which logs are read, paired with longer and shorter
   ones. */
TEST(each_log_is_read_as_if_alone)
{
    static const size_t NEAR[] = {0, 1, 55, 56, 63, 64, 65, 127, 128, 1000};
    CLEANUP(free) struct logs *logs = xcalloc(1, sizeof(*logs));
    struct format_set formats = {0};
    PASSES(load_format(&scratch_arena, ".", "csv", &formats, ERR));
    for (size_t windows = 0; windows < 4; windows++) {
        for (size_t idx = 0; idx < sizeof(NEAR) / sizeof(NEAR[0]); idx++) {
            size_t bytes = windows * 65536 + NEAR[idx];
            add_log(logs, bytes);
            add_log(logs, 3 * bytes / 7);
        }
    }
    measure_all(logs);
    for (size_t idx = 0; idx < logs->n; idx++) {
        holds(formats.items[0], &logs->jobs[idx]);
    }
    format_set_release(&formats);
}

static void refused(const struct measure_job *job, enum err_code code, const char *why)
{
    assert_null(job->measurement);
    assert_null(job->sha256.ptr);
    assert_int_equal(job->err.code, code);
    assert_non_null(strstr(job->err.msg, why));
    assert_non_null(strstr(job->err.msg, job->path));
}

/* They have an error of their own, and the others are read. */
TEST(logs_that_cannot_be_read_leave_the_others_alone)
{
    CLEANUP(free) struct logs *logs = xcalloc(1, sizeof(*logs));
    CLEANUP(free) char *line = xmalloc(2u << 20);
    struct format_set formats = {0};
    memset(line, 'x', 2u << 20);
    PASSES(load_format(&scratch_arena, ".", "csv", &formats, ERR));
    assert_int_equal(mkfifo(scratch_path("pipe"), 0600), 0);
    scratch_write(scratch_path("line"), (struct str){line, 2u << 20});
    add(logs, scratch_path("absent"));
    add_log(logs, 300000);
    add(logs, scratch_folder);
    add(logs, scratch_path("pipe"));
    add(logs, scratch_path("line"));
    add_log(logs, 5000);
    add(logs, scratch_path("line"));
    measure_all(logs);
    refused(&logs->jobs[0], ERR_NOT_FOUND, "No such file");
    holds(formats.items[0], &logs->jobs[1]);
    refused(&logs->jobs[2], ERR_IO, "regular file");
    refused(&logs->jobs[3], ERR_IO, "regular file");
    refused(&logs->jobs[4], ERR_PARSE, "longer than");
    holds(formats.items[0], &logs->jobs[5]);
    refused(&logs->jobs[6], ERR_PARSE, "longer than");
    format_set_release(&formats);
}

TEST(logs_of_two_formats_go_beside_each_other)
{
    CLEANUP(free) struct logs *logs = xcalloc(1, sizeof(*logs));
    for (size_t idx = 0; idx < 6; idx++) {
        add(logs, "tests/integration/formats/timm.log")->format = STR_LIT("timm");
        add_log(logs, 1000);
    }
    measure_all(logs);
    for (size_t idx = 0; idx < logs->n; idx++) {
        const struct measurement *m = logs->jobs[idx].measurement;
        assert_non_null(m);
        assert_true(str_eq_z(m->format, idx % 2 ? "csv" : "timm"));
        assert_true(measurement_primary(m)->n > 0);
    }
}

/* A compressed log is read, and digested, as what it holds; a damaged one as its own bytes, which no format reads. */
TEST(compressed_logs)
{
    CLEANUP(format_set) struct format_set formats = {0};
    struct logs logs = {0};
    struct str packed;
    PASSES(load_formats(&scratch_arena, ".", &formats, ERR));
    add_log(&logs, 300000);
    const char *path = scratch_path("a.log.zst"), *cut = scratch_path("cut.log.zst");
    PASSES(pack_raw(logs.jobs[0].path, path, ERR));
    FAILS(pack_raw(scratch_path("none"), scratch_path("none.zst"), ERR), ERR_NOT_FOUND);
    PASSES(fs_read(&scratch_arena, path, 1 << 20, &packed, ERR));
    assert_true(packed.len < 100000);
    scratch_write(cut, str_sub(packed, 0, packed.len / 2));
    add(&logs, path);
    add(&logs, cut);
    measure_all(&logs);
    assert_true(str_eq(logs.jobs[1].sha256, logs.jobs[0].sha256));
    assert_int_equal(logs.jobs[1].measurement->n_lines, logs.jobs[0].measurement->n_lines);
    assert_false(str_eq(logs.jobs[2].sha256, logs.jobs[0].sha256));
    assert_true(log_is_compressed(cut) && !log_is_compressed(logs.jobs[0].path));
}

UNIT_MAIN(scratch_group_start, scratch_group_end)
