/* SPDX-License-Identifier: Apache-2.0 */
/* A log is one line, so that a difference of two versions shows which. Steps, ranks, runs and GPUs are columns: runs of
   arithmetic progressions [start, increment, count, ...]. A column in which no sample says anything is left out. Times are whole
   microseconds, the first one and then differences, or a list of seconds where microseconds do not hold them exactly. */
#include "base/base.h"

#include "load/kept_series.h"

#include <math.h>

#include "base/fs.h"
#include "codec/digest.h"
#include "codec/json_table.h"
#include "log/format.h"

#define FILE_BYTES_MAX JSON_TEXT_MAX
#define US_PER_S       1e6
#define TIME_US_MAX    4102444800000000LL /* the year 2100 */
#define STEPS_MAX      (1LL << 52)
#define PROGRESSION    3 /* start, increment, count */
#define SERIES_MAX     64
#define FACTS_MAX      65536
#define LOGS_MAX_ALL   65536
#define LOG_NAME_MAX   8192

/* --- columns --------------------------------------------------------------------------------------- */

struct sample_column {
    const char *key;
    size_t offset, size; /* in struct sample */
    int64_t none, limit;
    bool is_optional; /* left out where no sample has another value than none */
};

static const struct sample_column COLUMNS[] = {
    {"step", offsetof(struct sample, step), sizeof(int64_t), 0, STEPS_MAX, false},
    {"rank", offsetof(struct sample, rank), sizeof(int32_t), -1, INT32_MAX, true},
    {"run", offsetof(struct sample, run), sizeof(int16_t), 0, INT16_MAX, true},
    {"gpus", offsetof(struct sample, gpus), sizeof(int16_t), -1, INT16_MAX, true},
};

static const struct sample_column *column_of(const char *key)
{
    size_t idx = 0;
    while (strcmp(COLUMNS[idx].key, key) != 0) {
        idx++;
        ASSERT(idx < ARRAY_LEN(COLUMNS));
    }
    return &COLUMNS[idx];
}

static int64_t column_get(const struct sample_column *column, const struct sample *s)
{
    const void *at = (const char *)s + column->offset;
    return column->size == sizeof(int64_t)   ? *(const int64_t *)at
           : column->size == sizeof(int32_t) ? *(const int32_t *)at
                                             : *(const int16_t *)at;
}

static void column_set(const struct sample_column *column, struct sample *s, int64_t value)
{
    void *at = (char *)s + column->offset;
    if (column->size == sizeof(int64_t)) {
        *(int64_t *)at = value;
    } else if (column->size == sizeof(int32_t)) {
        *(int32_t *)at = (int32_t)value;
    } else {
        *(int16_t *)at = (int16_t)value;
    }
}

/* How many samples from the first on are in arithmetic progression. */
static size_t progression(const struct sample_column *column, const struct sample *s, size_t n,
                          int64_t *ret_by)
{
    int64_t start = column_get(column, s);
    size_t end = 1;
    *ret_by = n > 1 ? column_get(column, &s[1]) - start : 0;
    while (end < n && column_get(column, &s[end]) == start + *ret_by * (int64_t)end) {
        end++;
    }
    return end;
}

static void put_column(struct json_out *out, const char *key, const void *of)
{
    const struct series *s = of;
    const struct sample_column *column = column_of(key);
    int64_t by = 0;
    if (column->is_optional &&
        (s->n == 0 || (progression(column, s->samples, s->n, &by) == s->n && by == 0 &&
                       column_get(column, s->samples) == column->none))) {
        return;
    }
    jw_array(out, key);
    for (size_t idx = 0, n = 0; idx < s->n; idx += n) {
        n = progression(column, &s->samples[idx], s->n - idx, &by);
        jw_i64(out, NULL, column_get(column, &s->samples[idx]));
        jw_i64(out, NULL, by);
        jw_i64(out, NULL, (int64_t)n);
    }
    jw_end_array(out);
}

/* False where a value of the progression is beyond the limit. */
static bool fill(struct sample *samples, const struct sample_column *column, const int64_t *numbers)
{
    for (int64_t k = 0; k < numbers[2]; k++) {
        int64_t value = numbers[0];
        int64_t offset;
        if (__builtin_mul_overflow(numbers[1], k, &offset) ||
            __builtin_add_overflow(value, offset, &value) || value > column->limit ||
            value < -column->limit) {
            return false;
        }
        column_set(column, &samples[k], value);
    }
    return true;
}

static int get_column(const struct json *list, struct arena *arena UNUSED, void *out,
                      struct err *err)
{
    struct series *s = out;
    const struct sample_column *column = column_of(list->key);
    struct json item;
    size_t n = 0;
    size_t idx = 0;
    if (json_expect_array(list, (size_t)PROGRESSION * FORMAT_SAMPLES_MAX, &n, err) < 0) {
        return -1;
    }
    for (bool more = json_first(list, &item); more;) {
        int64_t numbers[PROGRESSION] = {0};
        for (size_t part = 0; part < PROGRESSION; part++, more = json_next(&item)) {
            if (!more || json_i64(&item, -column->limit, column->limit, &numbers[part], err) < 0) {
                return more ? -1 : json_fail(list, err, "expected start, increment, count");
            }
        }
        if (numbers[2] < 1 || (size_t)numbers[2] > s->n - idx) {
            return json_fail(list, err, "expected %zu values in all", s->n);
        }
        if (!fill(&s->samples[idx], column, numbers)) {
            return json_fail(list, err, "a value out of range");
        }
        idx += (size_t)numbers[2];
    }
    return idx == s->n ? 0
                       : json_fail(list, err, "expected %zu values in all, found %zu", s->n, idx);
}

/* --- times and values ------------------------------------------------------------------------------ */

static void put_numbers(struct json_out *out, const char *key, const struct series *s,
                        size_t offset)
{
    jw_array(out, key);
    for (size_t idx = 0; idx < s->n; idx++) {
        jw_f64(out, NULL, *(const double *)(const void *)((const char *)&s->samples[idx] + offset));
    }
    jw_end_array(out);
}

/* One number, or null for NAN, a sample. */
static int get_numbers(const struct json *list, struct series *s, size_t offset, struct err *err)
{
    struct json item;
    size_t n = 0;
    size_t idx = 0;
    if (json_expect_array(list, FORMAT_SAMPLES_MAX, &n, err) < 0) {
        return -1;
    }
    if (n != s->n) {
        return json_fail(list, err, "expected %zu values, found %zu", s->n, n);
    }
    for (bool more = json_first(list, &item); more; more = json_next(&item)) {
        double *to = (void *)((char *)&s->samples[idx++] + offset);
        if (!json_is_null(&item) && json_f64(&item, to, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static void put_values(struct json_out *out, const char *key, const void *of)
{
    put_numbers(out, key, of, offsetof(struct sample, value));
}

/* The values are there first: there are as many samples, which say nothing else yet. */
static int get_values(const struct json *list, struct arena *arena, void *out, struct err *err)
{
    struct series *s = out;
    if (json_expect_array(list, FORMAT_SAMPLES_MAX, &s->n, err) < 0) {
        return -1;
    }
    s->samples = arena_array(arena, struct sample, s->n + 1);
    for (size_t idx = 0; idx < s->n; idx++) {
        s->samples[idx] =
            (struct sample){.value = (double)NAN, .time_s = (double)NAN, .rank = -1, .gpus = -1};
    }
    return get_numbers(list, s, offsetof(struct sample, value), err);
}

/* Whole microseconds that read back as the same double. */
static bool time_us(double time_s, int64_t *ret_us)
{
    double us = nearbyint(time_s * US_PER_S);
    if (!(us >= 0 && us <= (double)TIME_US_MAX) || us / US_PER_S != time_s) {
        return false;
    }
    *ret_us = (int64_t)us;
    return true;
}

static bool has_whole_times(const struct series *s, bool *ret_has_any)
{
    bool is_whole = true;
    int64_t ignored;
    *ret_has_any = false;
    for (size_t idx = 0; idx < s->n; idx++) {
        *ret_has_any = *ret_has_any || !isnan(s->samples[idx].time_s);
        is_whole = is_whole && time_us(s->samples[idx].time_s, &ignored);
    }
    return is_whole;
}

static void put_times_us(struct json_out *out, const char *key, const void *of)
{
    const struct series *s = of;
    bool has_any;
    int64_t before = 0;
    if (!has_whole_times(s, &has_any) || !has_any) {
        return;
    }
    jw_array(out, key);
    for (size_t idx = 0; idx < s->n; idx++) {
        int64_t us;
        bool has_us = time_us(s->samples[idx].time_s, &us);
        ASSERT(has_us);
        jw_i64(out, NULL, us - before);
        before = us;
    }
    jw_end_array(out);
}

static void put_times_s(struct json_out *out, const char *key, const void *of)
{
    bool has_any;
    if (!has_whole_times(of, &has_any) && has_any) {
        put_numbers(out, key, of, offsetof(struct sample, time_s));
    }
}

static int get_times_us(const struct json *list, struct arena *arena UNUSED, void *out,
                        struct err *err)
{
    struct series *s = out;
    double sum = 0; /* exact: below 2^53 */
    if (get_numbers(list, s, offsetof(struct sample, time_s), err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < s->n; idx++) {
        sum += s->samples[idx].time_s;
        if (!(sum >= 0 && sum <= (double)TIME_US_MAX) || sum != floor(sum)) {
            return json_fail(list, err, "a time out of range");
        }
        s->samples[idx].time_s = sum / US_PER_S;
    }
    return 0;
}

static int get_times_s(const struct json *list, struct arena *arena UNUSED, void *out,
                       struct err *err)
{
    return get_numbers(list, out, offsetof(struct sample, time_s), err);
}

/* --- the file -------------------------------------------------------------------------------------- */

#define ROW_COLUMN(name, from, to, ...)                                                            \
    {                                                                                              \
        .key = (name), .kind = JSON_ANY, .get = (from), .put = (to), .flags = __VA_ARGS__          \
    }
static const struct json_field SERIES_ROWS[] = {
    {.kind = JSON_HERE, ROW_ROWS(SERIES_HEAD_ROWS)},
    ROW_COLUMN("value", get_values, put_values, JSON_REQUIRED),
    ROW_COLUMN("step", get_column, put_column, JSON_REQUIRED),
    ROW_COLUMN("rank", get_column, put_column, 0),
    ROW_COLUMN("run", get_column, put_column, 0),
    ROW_COLUMN("gpus", get_column, put_column, 0),
    ROW_COLUMN("time_us", get_times_us, put_times_us, 0),
    ROW_COLUMN("time_s", get_times_s, put_times_s, 0),
};
static const struct json_field KEPT_FACT_ROWS[] = {
    {.kind = JSON_HERE, ROW_ROWS(FACT_ROWS)},
    ROW("first_run", struct fact, first_run, JSON_OMIT, .max = RUNS_MAX),
    ROW("last_run", struct fact, last_run, JSON_OMIT, .max = RUNS_MAX),
};
#define ROW_VERDICT(name, member)                                                                  \
    {                                                                                              \
        ROW_AT(name, JSON_WORD, struct kept_log, measurement.member),                              \
            .item_size = sizeof(enum parse_verdict), .names = PARSE_VERDICT_NAMES,                 \
            .n_names = ARRAY_LEN(PARSE_VERDICT_NAMES) - 1 /* no proposal */, .flags = JSON_OMIT    \
    }
static const struct json_field LOG_ROWS[] = {
    ROW("log", struct kept_log, path, JSON_REQUIRED),
    ROW("sha256", struct kept_log, sha256, JSON_REQUIRED),
    ROW("format", struct kept_log, measurement.format, JSON_REQUIRED),
    ROW("bytes", struct kept_log, measurement.n_bytes, JSON_REQUIRED),
    ROW("lines", struct kept_log, measurement.n_lines, JSON_REQUIRED),
    ROW_VERDICT("verdict", verdict),
    ROW("why", struct kept_log, measurement.why, JSON_OMIT | JSON_BLANK),
    ROW("runs", struct kept_log, measurement.n_runs, JSON_REQUIRED),
    ROW_VERDICT("first_run", first_run),
    ROW_VERDICT("last_run", last_run),
    ROW("warmup_steps", struct kept_log, measurement.warmup_steps, JSON_OMIT | JSON_MINUS,
        .max = STEPS_MAX),
    ROW("last_step", struct kept_log, measurement.last_step, JSON_OMIT | JSON_MINUS,
        .max = STEPS_MAX),
    ROW("total_steps", struct kept_log, measurement.total_steps, JSON_OMIT | JSON_MINUS,
        .max = STEPS_MAX),
    ROW_LIST("facts", struct kept_log, measurement.facts, measurement.n_facts, KEPT_FACT_ROWS, 0,
             .max = FACTS_MAX),
    ROW_LIST("series", struct kept_log, measurement.series, measurement.n_series, SERIES_ROWS,
             JSON_REQUIRED, .max = SERIES_MAX),
};

static void put_logs(struct json_out *out, const char *key, const void *of)
{
    const struct kept_series *kept = of;
    jw_array(out, key);
    for (size_t idx = 0; idx < kept->n_logs; idx++) {
        jw_object(out, NULL);
        out->is_compact = true;
        json_encode(out, LOG_ROWS, ARRAY_LEN(LOG_ROWS), &kept->logs[idx]);
        jw_end_object(out);
        out->is_compact = false;
    }
    jw_end_array(out);
}

static const struct json_field ROWS[] = {
    ROW_NUMBER("schema_version", 2),
    ROW("report", struct kept_series, report, JSON_REQUIRED),
    ROW_OBJECT("source", struct kept_series, source, SOURCE_ROWS, JSON_REQUIRED),
    ROW_LIST("logs", struct kept_series, logs, n_logs, LOG_ROWS, JSON_REQUIRED, .max = LOGS_MAX_ALL,
             .put = put_logs),
};

int kept_series_write(struct arena *arena, const char *path, const struct kept_series *kept,
                      struct str *ret_sha256, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(FILE_BYTES_MAX);
    json_encode_document(&text, ROWS, ARRAY_LEN(ROWS), kept);
    if (text.is_full) {
        return err_set(err, ERR_DISK, "%s: series of more than %u bytes", path, FILE_BYTES_MAX);
    }
    *ret_sha256 = digest_text_hex(arena, strbuf_str(&text));
    return fs_write_atomic(path, strbuf_str(&text), err);
}

static struct str name_of(char name[LOG_NAME_MAX], struct str path, struct str format)
{
    snprintf(name, LOG_NAME_MAX, "%.*s %.*s", STR_ARG(format), STR_ARG(path));
    return str_of(name);
}

const struct kept_log *kept_series_find(const struct kept_series *kept, struct str path,
                                        struct str format)
{
    char name[LOG_NAME_MAX];
    return map_get(&kept->by_name, name_of(name, path, format));
}

void kept_series_release(struct kept_series *kept)
{
    map_release(&kept->by_name);
}

int kept_series_read(struct arena *arena, const char *path, struct kept_series *ret_kept,
                     struct str *ret_sha256, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    CLEANUP(kept_series) struct kept_series kept = {.n_logs = 0};
    struct str text;
    if (fs_read(arena, path, FILE_BYTES_MAX, &text, err) < 0 ||
        json_parse(text, path, &doc, err) < 0 ||
        json_decode(&doc.root, arena, ROWS, ARRAY_LEN(ROWS), &kept, err) < 0) {
        return -1;
    }
    *ret_sha256 = digest_text_hex(arena, text);
    for (size_t idx = 0; idx < kept.n_logs; idx++) {
        struct kept_log *log = &kept.logs[idx];
        char name[LOG_NAME_MAX];
        struct str key = name_of(name, log->path, log->measurement.format);
        if (!map_add(&kept.by_name, str_dup(arena, key), log)) {
            return json_fail(&doc.root, err, "\"%.200s\" is there twice", name);
        }
    }
    *ret_kept = kept;
    kept.by_name = (struct map){0};
    return 0;
}
