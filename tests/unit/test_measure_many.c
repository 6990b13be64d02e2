/* SPDX-License-Identifier: Apache-2.0 */
/* Many logs: each is read as if alone, or has an error of its own. */
#include "unit.h"

#include <sys/stat.h>

#include "base/fs.h"
#include "codec/digest.h"
#include "codec/unpack_filter.h"
#include "load/log_reader.h"
#include "load/measure_many.h"
#include "scratch.h"

#define JOB(log, of)                                                                               \
    {                                                                                              \
        .path = (log), .format = STR_LIT(of)                                                       \
    }
#define TABLE "step,samples_per_second\n1,100.5\n2,101.5\n"

/* A file of the test's folder. */
static const char *log_of(const char *name, struct str text)
{
    const char *path = scratch_path(name);
    scratch_write(path, text);
    return path;
}

static void measure_all(struct measure_job *jobs, size_t n)
{
    const struct measure_with with = {.root = "."};
    PASSES(measure_many(&scratch_arena, &with, jobs, n, ERR));
}

static void holds(const struct measure_job *job, const char *format, const char *sha256_of_path)
{
    assert_non_null(job->measurement);
    assert_true(str_eq_z(job->measurement->format, format));
    assert_true(measurement_primary(job->measurement)->n > 0);
    assert_true(
        str_eq_z(job->sha256, digest_text_hex(&scratch_arena, scratch_read(sha256_of_path)).ptr));
}

static void refused(const struct measure_job *job, enum err_code code, const char *why)
{
    assert_null(job->measurement);
    assert_null(job->sha256.ptr);
    assert_int_equal(job->err.code, code);
    assert_non_null(strstr(job->err.msg, why));
    assert_non_null(strstr(job->err.msg, job->path));
}

TEST(logs_that_cannot_be_read_leave_the_others_alone)
{
    static const char TIMM[] = "tests/integration/formats/timm.log";
    CLEANUP(free) char *line = xmalloc(2u << 20);
    memset(line, 'x', 2u << 20);
    const char *table = log_of("table.csv", STR_LIT(TABLE));
    const char *one_line = log_of("line", (struct str){line, 2u << 20});
    assert_int_equal(mkfifo(scratch_path("pipe"), 0600), 0);
    struct measure_job jobs[] = {JOB(scratch_path("absent"), "csv"),
                                 JOB(table, "csv"),
                                 JOB(scratch_folder, "csv"),
                                 JOB(TIMM, "timm"),
                                 JOB(scratch_path("pipe"), "csv"),
                                 JOB(one_line, "csv"),
                                 JOB(table, "csv")};
    measure_all(jobs, ARRAY_LEN(jobs));
    refused(&jobs[0], ERR_NOT_FOUND, "No such file");
    refused(&jobs[2], ERR_IO, "regular file");
    refused(&jobs[4], ERR_IO, "regular file");
    refused(&jobs[5], ERR_PARSE, "longer than");
    holds(&jobs[1], "csv", table);
    holds(&jobs[3], "timm", TIMM);
    holds(&jobs[6], "csv", table);
}

/* A compressed log is read, and digested, as what it holds; a damaged one as its own bytes, which no format reads. */
TEST(compressed_logs)
{
    struct str packed;
    const char *plain = log_of("a.log", STR_LIT(TABLE));
    const char *path = scratch_path("a.log.zst");
    PASSES(pack_raw(plain, path, ERR));
    FAILS(pack_raw(scratch_path("none"), scratch_path("none.zst"), ERR), ERR_NOT_FOUND);
    PASSES(fs_read(&scratch_arena, path, 1 << 20, &packed, ERR));
    const char *cut = log_of("cut.log.zst", str_sub(packed, 0, packed.len / 2));
    struct measure_job jobs[] = {JOB(path, "csv"), JOB(cut, "csv")};
    measure_all(jobs, ARRAY_LEN(jobs));
    holds(&jobs[0], "csv", plain);
    assert_int_equal(measurement_primary(jobs[1].measurement)->n, 0);
    assert_true(log_is_compressed(cut) && !log_is_compressed(plain));
}

UNIT_MAIN(scratch_group_start, scratch_group_end)
