/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "load/series_file.h"

#include <math.h>

#include "base/fs.h"
#include "codec/digest.h"
#include "codec/json_table.h"
#include "load/series_parts.h"
#include "log/format.h"

#define SCHEMA_VERSION 1
#define FILE_BYTES_MAX JSON_TEXT_MAX
#define US_PER_S       1e6
#define HEAD_FIELDS    5                  /* of a series whose samples stand elsewhere */
#define RUN_NUMBERS    3                  /* start, increment, count */
#define TIME_US_MAX    4102444800000000LL /* the year 2100 */

const char *series_file_name(struct arena *arena, struct str log, struct str format)
{
    CLEANUP(strbuf) struct strbuf name;
    strbuf_init(&name, 4096);
    for (size_t idx = 0; idx < log.len; idx++) {
        if (log.ptr[idx] == '/') {
            strbuf_add_z(&name, "--");
        } else {
            strbuf_add_char(&name, log.ptr[idx]);
        }
    }
    strbuf_printf(&name, ".%.*s.json", STR_ARG(format));
    ASSERT(!name.is_full);
    return arena_strndup(arena, name.ptr, name.len);
}

/* --- writing ------------------------------------------------------------------------------------- */

/* Whole microseconds that read back as the same double, for all samples that have a time? */
static bool time_us(double time_s, int64_t *ret_us)
{
    double us = nearbyint(time_s * US_PER_S);
    if (!(us >= 0 && us <= (double)TIME_US_MAX) || us / US_PER_S != time_s) {
        return false;
    }
    *ret_us = (int64_t)us;
    return true;
}

enum column { COLUMN_STEP, COLUMN_RANK, COLUMN_RUN, COLUMN_GPUS };

static int64_t column_of(const struct sample *s, enum column column)
{
    switch (column) {
    case COLUMN_STEP:
        return s->step;
    case COLUMN_RANK:
        return s->rank;
    case COLUMN_RUN:
        return s->run;
    case COLUMN_GPUS:
        return s->gpus;
    }
    ASSERT(!"column");
    return 0;
}

static void write_column(struct json_out *out, const char *key, const struct series *s,
                         enum column column)
{
    size_t idx = 0;
    jw_array(out, key);
    while (idx < s->n) {
        int64_t start = column_of(&s->samples[idx], column);
        int64_t by = idx + 1 < s->n ? column_of(&s->samples[idx + 1], column) - start : 0;
        size_t end = idx + 1;
        while (end < s->n &&
               column_of(&s->samples[end], column) == start + by * (int64_t)(end - idx)) {
            end++;
        }
        jw_i64(out, NULL, start);
        jw_i64(out, NULL, by);
        jw_i64(out, NULL, (int64_t)(end - idx));
        idx = end;
    }
    jw_end_array(out);
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

/* {"unit_us": U, "at": [first, then differences]} in units; a list of seconds where microseconds do not hold them; null where
   no sample has a time. A sample without a time among others that have one is null in the list of seconds. */
static void write_times(struct json_out *out, const struct series *s)
{
    int64_t unit = 0;
    int64_t before = 0;
    int64_t us = 0;
    bool is_whole = true;
    bool has_any = false;
    for (size_t idx = 0; idx < s->n; idx++) {
        has_any = has_any || !isnan(s->samples[idx].time_s);
        is_whole = is_whole && time_us(s->samples[idx].time_s, &us);
        unit = is_whole ? gcd(unit, us) : unit;
    }
    if (!has_any) {
        jw_null(out, "time");
        return;
    }
    if (!is_whole || unit == 0) {
        jw_array(out, "time");
        for (size_t idx = 0; idx < s->n; idx++) {
            jw_f64(out, NULL, s->samples[idx].time_s);
        }
        jw_end_array(out);
        return;
    }
    jw_object(out, "time");
    jw_i64(out, "unit_us", unit);
    jw_array(out, "at");
    for (size_t idx = 0; idx < s->n; idx++) {
        bool has_us = time_us(s->samples[idx].time_s, &us);
        ASSERT(has_us);
        jw_i64(out, NULL, (us - before) / unit);
        before = us;
    }
    jw_end_array(out);
    jw_end_object(out);
}

void series_write_samples(struct json_out *out, const struct series *s)
{
    write_column(out, "step", s, COLUMN_STEP);
    write_column(out, "rank", s, COLUMN_RANK);
    write_column(out, "run", s, COLUMN_RUN);
    write_column(out, "gpus", s, COLUMN_GPUS);
    write_times(out, s);
    jw_array(out, "value");
    for (size_t idx = 0; idx < s->n; idx++) {
        jw_f64(out, NULL, s->samples[idx].value);
    }
    jw_end_array(out);
}

static void write_series(struct json_out *out, const struct series *s)
{
    jw_object(out, NULL);
    series_encode_head(out, s);
    jw_i64(out, "n", (int64_t)s->n);
    series_write_samples(out, s);
    jw_end_object(out);
}

static void write_measurement(struct json_out *out, const struct measurement *m)
{
    jw_str(out, "format", m->format);
    jw_z(out, "verdict", parse_verdict_name(m->verdict));
    jw_str(out, "why", m->why.ptr ? m->why : STR_LIT(""));
    jw_i64(out, "bytes", (int64_t)m->n_bytes);
    jw_i64(out, "lines", (int64_t)m->n_lines);
    jw_i64(out, "runs", m->n_runs);
    jw_z(out, "first_run", parse_verdict_name(m->first_run));
    jw_z(out, "last_run", parse_verdict_name(m->last_run));
    jw_i64(out, "warmup_steps", m->warmup_steps);
    jw_i64(out, "last_step", m->last_step);
    jw_i64(out, "total_steps", m->total_steps);
    series_write_facts(out, m);
    jw_array(out, "series");
    for (size_t idx = 0; idx < m->n_series; idx++) {
        write_series(out, &m->series[idx]);
    }
    jw_end_array(out);
}

int series_file_write(const char *path, const struct series_file *file, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text;
    struct json_out out;
    strbuf_init(&text, FILE_BYTES_MAX);
    jw_begin(&out, &text, true);
    jw_object(&out, NULL);
    jw_i64(&out, "schema_version", SCHEMA_VERSION);
    jw_str(&out, "report", file->report);
    jw_object(&out, "source");
    jw_str(&out, "repository", file->source.repository);
    jw_str(&out, "commit", file->source.commit);
    jw_str(&out, "path", file->source.path);
    jw_str(&out, "date", file->source.date);
    jw_end_object(&out);
    jw_str(&out, "log", file->log);
    jw_str(&out, "sha256", file->sha256);
    write_measurement(&out, &file->measurement);
    jw_end_object(&out);
    strbuf_add_char(&text, '\n');
    if (text.is_full) {
        return err_set(err, ERR_DISK, "%s: series of more than %u bytes", path, FILE_BYTES_MAX);
    }
    return fs_write_atomic(path, strbuf_str(&text), err);
}

/* --- reading ------------------------------------------------------------------------------------- */

static void set_column(struct sample *s, enum column column, int64_t value)
{
    switch (column) {
    case COLUMN_STEP:
        s->step = value;
        return;
    case COLUMN_RANK:
        s->rank = (int32_t)value;
        return;
    case COLUMN_RUN:
        s->run = (int16_t)value;
        return;
    case COLUMN_GPUS:
        s->gpus = (int16_t)value;
        return;
    }
    ASSERT(!"column");
}

/* False where a value of the run (start, increment, count) is beyond the limit. */
static bool fill_run(struct sample *samples, enum column column, const int64_t *numbers,
                     int64_t limit)
{
    for (int64_t k = 0; k < numbers[2]; k++) {
        int64_t value = numbers[0];
        int64_t offset;
        if (__builtin_mul_overflow(numbers[1], k, &offset) ||
            __builtin_add_overflow(value, offset, &value) || value > limit || value < -limit) {
            return false;
        }
        set_column(&samples[k], column, value);
    }
    return true;
}

static int read_column(const struct json *at, const char *key, enum column column, struct series *s,
                       struct err *err)
{
    int64_t limit = column == COLUMN_STEP   ? 1LL << 52
                    : column == COLUMN_RANK ? INT32_MAX
                                            : INT16_MAX;
    struct json list;
    struct json item;
    size_t n = 0;
    size_t idx = 0;
    bool more;
    if (json_member(at, key, &list, err) < 0 ||
        json_expect_array(&list, (size_t)RUN_NUMBERS * FORMAT_SAMPLES_MAX, &n, err) < 0) {
        return -1;
    }
    more = json_first(&list, &item);
    while (more) {
        int64_t numbers[RUN_NUMBERS] = {0};
        for (size_t part = 0; part < RUN_NUMBERS; part++) {
            if (!more || json_i64(&item, -limit, limit, &numbers[part], err) < 0) {
                return more ? -1 : json_fail(&list, err, "expected start, increment, count");
            }
            more = json_next(&item);
        }
        if (numbers[2] < 1 || (size_t)numbers[2] > s->n - idx) {
            return json_fail(&list, err, "expected %zu values in all", s->n);
        }
        if (!fill_run(&s->samples[idx], column, numbers, limit)) {
            return json_fail(&list, err, "a value out of range");
        }
        idx += (size_t)numbers[2];
    }
    return idx == s->n ? 0
                       : json_fail(&list, err, "expected %zu values in all, found %zu", s->n, idx);
}

static int read_time_list(const struct json *list, struct series *s, struct err *err)
{
    struct json item;
    size_t n = 0;
    size_t idx = 0;
    if (json_expect_array(list, s->n, &n, err) < 0) {
        return -1;
    }
    if (n != s->n) {
        return json_fail(list, err, "expected %zu values, found %zu", s->n, n);
    }
    for (bool more = json_first(list, &item); more; more = json_next(&item)) {
        double *time_s = &s->samples[idx++].time_s;
        if (!json_is_null(&item) && json_f64(&item, time_s, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int read_times(const struct json *at, struct series *s, struct err *err)
{
    static const struct json_field FIELDS[] = {
        ROW_ALONE("unit_us", JSON_I64, JSON_REQUIRED, .min = 1, .max = TIME_US_MAX),
        ROW_ANY("at", JSON_REQUIRED),
    };
    struct json time;
    struct json list;
    struct json item;
    int64_t unit = 1;
    int64_t sum = 0;
    size_t n = 0;
    size_t idx = 0;
    if (json_member(at, "time", &time, err) < 0 || json_is_null(&time)) {
        return err->code == ERR_NONE ? 0 : -1;
    }
    if (json_is_array(&time)) {
        return read_time_list(&time, s, err);
    }
    if (json_decode(&time, NULL, FIELDS, ARRAY_LEN(FIELDS), &unit, err) < 0 ||
        json_member(&time, "at", &list, err) < 0 || json_expect_array(&list, s->n, &n, err) < 0) {
        return -1;
    }
    if (n != s->n) {
        return json_fail(&list, err, "expected %zu values, found %zu", s->n, n);
    }
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        int64_t delta;
        int64_t delta_us;
        if (json_i64(&item, -TIME_US_MAX, TIME_US_MAX, &delta, err) < 0) {
            return -1;
        }
        if (__builtin_mul_overflow(delta, unit, &delta_us) ||
            __builtin_add_overflow(sum, delta_us, &sum)) {
            return json_fail(&item, err, "a time out of range");
        }
        s->samples[idx++].time_s = (double)sum / US_PER_S;
    }
    return 0;
}

static int read_values(const struct json *list, struct series *s, struct err *err)
{
    struct json item;
    size_t idx = 0;
    for (bool more = json_first(list, &item); more; more = json_next(&item)) {
        double *value = &s->samples[idx++].value;
        *value = (double)NAN;
        if (!json_is_null(&item) && json_f64(&item, value, err) < 0) {
            return -1;
        }
    }
    return 0;
}

int series_read_samples(const struct json *at, struct arena *arena, size_t n, struct series *s,
                        struct err *err)
{
    struct json values;
    size_t n_values = 0;
    if (json_member(at, "value", &values, err) < 0 ||
        json_expect_array(&values, n, &n_values, err) < 0) {
        return -1;
    }
    if (n_values != n) { /* before memory is taken for them */
        return json_fail(&values, err, "expected %zu values, found %zu", n, n_values);
    }
    s->n = n;
    s->samples = arena_array(arena, struct sample, s->n + 1);
    for (size_t idx = 0; idx < s->n; idx++) {
        s->samples[idx].time_s = (double)NAN;
    }
    return read_column(at, "step", COLUMN_STEP, s, err) < 0 ||
                   read_column(at, "rank", COLUMN_RANK, s, err) < 0 ||
                   read_column(at, "run", COLUMN_RUN, s, err) < 0 ||
                   read_column(at, "gpus", COLUMN_GPUS, s, err) < 0 || read_times(at, s, err) < 0 ||
                   read_values(&values, s, err) < 0
               ? -1
               : 0;
}

int series_read_head(const struct json *at, struct arena *arena, struct series *ret, size_t *ret_n,
                     struct err *err)
{
    struct raw {
        struct series s;
        struct str scope, quantity;
        int64_t n;
    } raw = {0};
    static const struct json_field FIELDS[] = {
        ROW("name", struct raw, s.name, JSON_REQUIRED),
        ROW("unit", struct raw, s.unit, JSON_REQUIRED),
        ROW("scope", struct raw, scope, JSON_REQUIRED | JSON_NULLABLE),
        ROW("quantity", struct raw, quantity, JSON_REQUIRED),
        ROW("primary", struct raw, s.is_primary, JSON_REQUIRED),
        ROW("n", struct raw, n, JSON_REQUIRED, .max = FORMAT_SAMPLES_MAX),
        ROW_ANY("step", JSON_REQUIRED),
        ROW_ANY("rank", JSON_REQUIRED),
        ROW_ANY("run", JSON_REQUIRED),
        ROW_ANY("gpus", JSON_REQUIRED),
        ROW_ANY("time", JSON_REQUIRED | JSON_NULLABLE),
        ROW_ANY("value", JSON_REQUIRED),
    };
    struct series *s = &raw.s;
    if (json_decode(at, arena, FIELDS, ret_n ? ARRAY_LEN(FIELDS) : HEAD_FIELDS, &raw, err) < 0) {
        return -1;
    }
    s->scope = SCOPE_UNKNOWN;
    if ((raw.scope.ptr && !scope_of_name(raw.scope, &s->scope)) ||
        !quantity_of_name(raw.quantity, &s->quantity)) {
        return json_fail(at, err, "scope, quantity: unknown word");
    }
    if (ret_n) {
        *ret_n = (size_t)raw.n;
    }
    *ret = *s;
    return 0;
}

static int read_series(const struct json *at, struct arena *arena, struct series *ret,
                       struct err *err)
{
    size_t n = 0;
    return series_read_head(at, arena, ret, &n, err) < 0
               ? -1
               : series_read_samples(at, arena, n, ret, err);
}

static int read_lists(const struct json *root, struct arena *arena, struct measurement *m,
                      struct err *err)
{
    struct json list;
    struct json item;
    size_t idx = 0;
    if (json_member(root, "facts", &list, err) < 0 || series_read_facts(&list, arena, m, err) < 0 ||
        json_member(root, "series", &list, err) < 0 ||
        json_expect_array(&list, SERIES_MAX, &m->n_series, err) < 0) {
        return -1;
    }
    m->series = arena_array(arena, struct series, m->n_series + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (read_series(&item, arena, &m->series[idx++], err) < 0) {
            return -1;
        }
    }
    return 0;
}

struct raw_file {
    struct series_file file;
    struct str verdict, first_run, last_run;
    int64_t version, bytes, lines, runs;
};

static int read_file(const struct json *root, struct arena *arena, struct series_file *ret_file,
                     struct err *err)
{
    static const struct json_field FIELDS[] = {
        ROW("schema_version", struct raw_file, version, JSON_REQUIRED, .min = SCHEMA_VERSION,
            .max = SCHEMA_VERSION),
        ROW("report", struct raw_file, file.report, JSON_REQUIRED),
        ROW_ANY("source", JSON_REQUIRED),
        ROW("log", struct raw_file, file.log, JSON_REQUIRED),
        ROW("sha256", struct raw_file, file.sha256, JSON_REQUIRED),
        ROW("format", struct raw_file, file.measurement.format, JSON_REQUIRED),
        ROW("verdict", struct raw_file, verdict, JSON_REQUIRED),
        ROW("why", struct raw_file, file.measurement.why, JSON_REQUIRED),
        ROW("bytes", struct raw_file, bytes, JSON_REQUIRED, .max = 1LL << 50),
        ROW("lines", struct raw_file, lines, JSON_REQUIRED, .max = 1LL << 50),
        ROW("runs", struct raw_file, runs, JSON_REQUIRED, .max = INT32_MAX),
        ROW("first_run", struct raw_file, first_run, JSON_REQUIRED),
        ROW("last_run", struct raw_file, last_run, JSON_REQUIRED),
        ROW("warmup_steps", struct raw_file, file.measurement.warmup_steps, JSON_REQUIRED,
            .min = -1, .max = 1LL << 52),
        ROW("last_step", struct raw_file, file.measurement.last_step, JSON_REQUIRED, .min = -1,
            .max = 1LL << 52),
        ROW("total_steps", struct raw_file, file.measurement.total_steps, JSON_REQUIRED, .min = -1,
            .max = 1LL << 52),
        ROW_ANY("facts", JSON_REQUIRED),
        ROW_ANY("series", JSON_REQUIRED),
    };
    static const struct json_field SOURCE[] = {
        ROW("repository", struct source_ref, repository, JSON_REQUIRED),
        ROW("commit", struct source_ref, commit, JSON_REQUIRED),
        ROW("path", struct source_ref, path, JSON_REQUIRED),
        ROW("date", struct source_ref, date, JSON_REQUIRED),
    };
    struct raw_file raw = {0};
    struct measurement *m = &raw.file.measurement;
    struct json source;
    if (json_decode(root, arena, FIELDS, ARRAY_LEN(FIELDS), &raw, err) < 0 ||
        json_member(root, "source", &source, err) < 0 ||
        json_decode(&source, arena, SOURCE, ARRAY_LEN(SOURCE), &raw.file.source, err) < 0) {
        return -1;
    }
    if (!parse_verdict_of_name(raw.verdict, &m->verdict) ||
        !parse_verdict_of_name(raw.first_run, &m->first_run) ||
        !parse_verdict_of_name(raw.last_run, &m->last_run)) {
        return json_fail(root, err, "verdict, first_run, last_run: unknown word");
    }
    m->n_bytes = (uint64_t)raw.bytes;
    m->n_lines = (uint64_t)raw.lines;
    m->n_runs = (int32_t)raw.runs;
    if (read_lists(root, arena, m, err) < 0) {
        return -1;
    }
    *ret_file = raw.file;
    return 0;
}

int series_file_read(struct arena *arena, const char *path, struct series_file *ret_file,
                     struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct str text;
    struct json root;
    if (fs_read(arena, path, FILE_BYTES_MAX, &text, err) < 0 ||
        json_parse(text, path, &doc, err) < 0) {
        return -1;
    }
    root = json_root(&doc);
    if (read_file(&root, arena, ret_file, err) < 0) {
        return -1;
    }
    ret_file->own_sha256 = digest_text_hex(arena, text);
    return 0;
}
