/* SPDX-License-Identifier: Apache-2.0 */
/* {"schema_version": 1, "report", "source", "format", "facts": [names], "series": [{name, unit, scope, quantity, primary}], "logs": [LOG]}.
   A LOG: [path, sha256, bytes, lines, last step, STATE, [fact's index, value, line, ...], [{step, rank, run, gpus, time, value}, ...]].
   A STATE: null for one whole run that states no warm-up and no total, else an object; where that has "fact_runs": true, the first and the
   last run of each fact follow its line. */
#include "base/base.h"

#include "load/series_bundle.h"

#include "base/fs.h"
#include "codec/digest.h"
#include "codec/json_table.h"
#include "load/series_parts.h"
#include "log/format.h"

#define SCHEMA_VERSION 1
#define FILE_BYTES_MAX JSON_TEXT_MAX
#define LOGS_MAX_ALL   65536
#define NAMES_MAX      4096
#define STEPS_MAX      (1LL << 52)
#define BYTES_MAX      (1LL << 50)

void series_bundle_release(struct series_bundle *bundle)
{
    map_release(&bundle->logs);
}

/* --- writing ------------------------------------------------------------------------------------- */

/* The names of all facts, in the order in which they are met. */
struct bundle_names {
    VEC(struct str) list;
};

static size_t name_idx(struct bundle_names *names, struct str name)
{
    size_t idx = 0;
    while (idx < names->list.n && !str_eq(names->list.items[idx], name)) {
        idx++;
    }
    if (idx == names->list.n) {
        VEC_PUSH(&names->list, name);
    }
    return idx;
}

static bool is_plain(const struct measurement *m)
{
    return measurement_is_sound(m) && m->warmup_steps == -1 && m->total_steps == -1 &&
           !series_facts_have_runs(m);
}

static void write_state(struct json_out *out, const struct measurement *m)
{
    if (is_plain(m)) {
        jw_null(out, NULL);
        return;
    }
    jw_object(out, NULL);
    jw_z(out, "verdict", parse_verdict_name(m->verdict));
    jw_str(out, "why", m->why.ptr ? m->why : STR_LIT(""));
    jw_i64(out, "runs", m->n_runs);
    jw_z(out, "first_run", parse_verdict_name(m->first_run));
    jw_z(out, "last_run", parse_verdict_name(m->last_run));
    jw_i64(out, "warmup_steps", m->warmup_steps);
    jw_i64(out, "total_steps", m->total_steps);
    if (series_facts_have_runs(m)) {
        jw_bool(out, "fact_runs", true);
    }
    jw_end_object(out);
}

static void write_log(struct json_out *out, const struct series_file *file,
                      struct bundle_names *names)
{
    const struct measurement *m = &file->measurement;
    bool have_runs = series_facts_have_runs(m);
    jw_array(out, NULL);
    jw_str(out, NULL, file->log);
    jw_str(out, NULL, file->sha256);
    jw_i64(out, NULL, (int64_t)m->n_bytes);
    jw_i64(out, NULL, (int64_t)m->n_lines);
    jw_i64(out, NULL, m->last_step);
    write_state(out, m);
    jw_array(out, NULL);
    for (size_t idx = 0; idx < m->n_facts; idx++) {
        jw_i64(out, NULL, (int64_t)name_idx(names, m->facts[idx].name));
        jw_str(out, NULL, m->facts[idx].value);
        jw_i64(out, NULL, m->facts[idx].line);
        if (have_runs) {
            jw_i64(out, NULL, m->facts[idx].first_run);
            jw_i64(out, NULL, m->facts[idx].last_run);
        }
    }
    jw_end_array(out);
    jw_array(out, NULL);
    for (size_t idx = 0; idx < m->n_series; idx++) {
        jw_object(out, NULL);
        series_write_samples(out, &m->series[idx]);
        jw_end_object(out);
    }
    jw_end_array(out);
    jw_end_array(out);
}

static void write_head(struct json_out *out, const struct series_file *file,
                       const struct bundle_names *names)
{
    const struct measurement *m = &file->measurement;
    jw_i64(out, "schema_version", SCHEMA_VERSION);
    jw_str(out, "report", file->report);
    jw_object(out, "source");
    jw_str(out, "repository", file->source.repository);
    jw_str(out, "commit", file->source.commit);
    jw_str(out, "path", file->source.path);
    jw_str(out, "date", file->source.date);
    jw_end_object(out);
    jw_str(out, "format", m->format);
    jw_array(out, "facts");
    for (size_t idx = 0; idx < names->list.n; idx++) {
        jw_str(out, NULL, names->list.items[idx]);
    }
    jw_end_array(out);
    jw_array(out, "series");
    for (size_t idx = 0; idx < m->n_series; idx++) {
        jw_object(out, NULL);
        series_encode_head(out, &m->series[idx]);
        jw_end_object(out);
    }
    jw_end_array(out);
}

/* A log a line, so that a difference of two versions shows which. */
static void write_logs(struct strbuf *text, const struct series_file *const *files, size_t n,
                       struct bundle_names *names)
{
    for (size_t idx = 0; idx < n; idx++) {
        struct json_out out;
        jw_begin(&out, text, true);
        write_log(&out, files[idx], names);
        strbuf_add_z(text, idx + 1 < n ? ",\n" : "\n");
    }
}

int series_bundle_write(const char *path, const struct series_file *const *files, size_t n,
                        struct err *err)
{
    CLEANUP(strbuf) struct strbuf logs;
    CLEANUP(strbuf) struct strbuf text;
    struct bundle_names names = {0};
    struct json_out out;
    ASSERT(n > 0);
    strbuf_init(&logs, FILE_BYTES_MAX);
    strbuf_init(&text, FILE_BYTES_MAX);
    strbuf_add_z(&logs, "[\n");
    write_logs(&logs, files, n, &names);
    strbuf_add_char(&logs, ']');
    jw_begin(&out, &text, true);
    jw_object(&out, NULL);
    write_head(&out, files[0], &names);
    jw_raw(&out, "logs", strbuf_str(&logs));
    jw_end_object(&out);
    strbuf_add_char(&text, '\n');
    VEC_RELEASE(&names.list);
    if (text.is_full || logs.is_full) {
        return err_set(err, ERR_DISK, "%s: series of more than %u bytes", path, FILE_BYTES_MAX);
    }
    return fs_write_atomic(path, strbuf_str(&text), err);
}

/* --- reading ------------------------------------------------------------------------------------- */

struct bundle_shape { /* what all logs of the file have in common */
    struct series_file file;
    struct str *facts;
    size_t n_facts;
    int64_t version;
};

static int read_shape(const struct json *root, struct arena *arena, struct bundle_shape *shape,
                      struct err *err)
{
    static const struct json_field SOURCE[] = {
        ROW("repository", struct source_ref, repository, JSON_REQUIRED),
        ROW("commit", struct source_ref, commit, JSON_REQUIRED),
        ROW("path", struct source_ref, path, JSON_REQUIRED),
        ROW("date", struct source_ref, date, JSON_REQUIRED),
    };
    struct measurement *m = &shape->file.measurement;
    struct json member;
    struct json item;
    size_t idx = 0;
    if (json_member(root, "source", &member, err) < 0 ||
        json_decode(&member, arena, SOURCE, ARRAY_LEN(SOURCE), &shape->file.source, err) < 0 ||
        json_member(root, "facts", &member, err) < 0 ||
        json_str_list(&member, arena, NAMES_MAX, &shape->facts, &shape->n_facts, err) < 0 ||
        json_member(root, "series", &member, err) < 0 ||
        json_expect_array(&member, SERIES_MAX, &m->n_series, err) < 0) {
        return -1;
    }
    m->series = arena_array(arena, struct series, m->n_series + 1);
    for (bool more = json_first(&member, &item); more; more = json_next(&item)) {
        if (series_read_head(&item, arena, &m->series[idx++], NULL, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int read_state(const struct json *at, struct arena *arena, struct measurement *m,
                      bool *ret_fact_runs, struct err *err)
{
    struct raw {
        struct str verdict, first_run, last_run, why;
        int64_t runs, warmup_steps, total_steps;
        bool fact_runs;
    } raw = {STR_LIT("ok"), STR_LIT("ok"), STR_LIT("ok"), STR_LIT(""), 1, -1, -1, false};
    static const struct json_field FIELDS[] = {
        ROW("verdict", struct raw, verdict, JSON_REQUIRED),
        ROW("why", struct raw, why, JSON_REQUIRED),
        ROW("runs", struct raw, runs, JSON_REQUIRED, .max = INT32_MAX),
        ROW("first_run", struct raw, first_run, JSON_REQUIRED),
        ROW("last_run", struct raw, last_run, JSON_REQUIRED),
        ROW("warmup_steps", struct raw, warmup_steps, JSON_REQUIRED, .min = -1, .max = STEPS_MAX),
        ROW("total_steps", struct raw, total_steps, JSON_REQUIRED, .min = -1, .max = STEPS_MAX),
        ROW("fact_runs", struct raw, fact_runs, 0),
    };
    if (!json_is_null(at) && json_decode(at, arena, FIELDS, ARRAY_LEN(FIELDS), &raw, err) < 0) {
        return -1;
    }
    if (!parse_verdict_of_name(raw.verdict, &m->verdict) ||
        !parse_verdict_of_name(raw.first_run, &m->first_run) ||
        !parse_verdict_of_name(raw.last_run, &m->last_run)) {
        return json_fail(at, err, "verdict, first_run, last_run: unknown word");
    }
    m->why = raw.why;
    m->n_runs = (int32_t)raw.runs;
    m->warmup_steps = raw.warmup_steps;
    m->total_steps = raw.total_steps;
    *ret_fact_runs = raw.fact_runs;
    return 0;
}

/* One number or text of a fact. */
static int read_fact_part(const struct json *at, size_t part, struct arena *arena,
                          const struct bundle_shape *shape, struct fact *fact, struct err *err)
{
    int64_t number = 0;
    if (part == 1) {
        return json_str(at, arena, &fact->value, err);
    }
    if (json_i64(at, 0,
                 part == 0   ? (int64_t)shape->n_facts - 1
                 : part == 2 ? INT32_MAX
                             : RUNS_MAX,
                 &number, err) < 0) {
        return -1;
    }
    switch (part) {
    case 0:
        fact->name = shape->facts[number];
        break;
    case 2:
        fact->line = number;
        break;
    default:
        *(part == 3 ? &fact->first_run : &fact->last_run) = (int32_t)number;
    }
    return 0;
}

static int read_facts(const struct json *list, struct arena *arena,
                      const struct bundle_shape *shape, struct measurement *m, size_t n_parts,
                      struct err *err)
{
    struct json item;
    size_t n = 0;
    size_t idx = 0;
    if (json_expect_array(list, n_parts * (size_t)FACTS_MAX, &n, err) < 0) {
        return -1;
    }
    if (n % n_parts != 0) {
        return json_fail(list, err, "expected %zu parts of each fact", n_parts);
    }
    m->n_facts = n / n_parts;
    m->facts = arena_array(arena, struct fact, m->n_facts + 1);
    for (bool more = json_first(list, &item); more; more = json_next(&item), idx++) {
        struct fact *fact = &m->facts[idx / n_parts];
        if (idx % n_parts == 0) {
            series_fact_runs_unsaid(m, fact);
        }
        if (read_fact_part(&item, idx % n_parts, arena, shape, fact, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int read_samples(const struct json *list, struct arena *arena,
                        const struct bundle_shape *shape, struct measurement *m, struct err *err)
{
    const struct measurement *like = &shape->file.measurement;
    struct json item;
    struct json values;
    size_t n = 0;
    size_t idx = 0;
    if (json_expect_array(list, like->n_series, &n, err) < 0) {
        return -1;
    }
    if (n != like->n_series) {
        return json_fail(list, err, "expected %zu series, found %zu", like->n_series, n);
    }
    m->n_series = n;
    m->series = arena_array(arena, struct series, n + 1);
    for (bool more = json_first(list, &item); more; more = json_next(&item)) {
        struct series *s = &m->series[idx];
        *s = like->series[idx++];
        if (json_member(&item, "value", &values, err) < 0 ||
            json_expect_array(&values, FORMAT_SAMPLES_MAX, &n, err) < 0 ||
            series_read_samples(&item, arena, n, s, err) < 0) {
            return -1;
        }
    }
    return 0;
}

struct reading { /* one log */
    struct series_file *file;
    bool has_fact_runs;
};

enum part { PATH, SHA256, BYTES, LINES, LAST_STEP, STATE, FACTS, SAMPLES, PARTS };

static int read_part(const struct json *at, enum part part, struct arena *arena,
                     const struct bundle_shape *shape, struct reading *in, struct err *err)
{
    struct series_file *file = in->file;
    struct measurement *m = &file->measurement;
    int64_t number = 0;
    switch (part) {
    case PATH:
        return json_str(at, arena, &file->log, err);
    case SHA256:
        return json_str(at, arena, &file->sha256, err);
    case BYTES:
    case LINES:
        if (json_i64(at, 0, BYTES_MAX, &number, err) < 0) {
            return -1;
        }
        *(part == BYTES ? &m->n_bytes : &m->n_lines) = (uint64_t)number;
        return 0;
    case LAST_STEP:
        return json_i64(at, -1, STEPS_MAX, &m->last_step, err);
    case STATE:
        return read_state(at, arena, m, &in->has_fact_runs, err);
    case FACTS:
        return read_facts(at, arena, shape, m, in->has_fact_runs ? 5 : 3, err);
    case SAMPLES:
        return read_samples(at, arena, shape, m, err);
    case PARTS:
        break;
    }
    ASSERT(!"part");
    return -1;
}

static int read_log(const struct json *at, struct arena *arena, const struct bundle_shape *shape,
                    struct series_bundle *bundle, struct err *err)
{
    struct series_file *file = arena_new(arena, struct series_file);
    struct reading in = {file, false};
    struct json item;
    size_t n = 0;
    int part = PATH;
    *file = shape->file;
    if (json_expect_array(at, PARTS, &n, err) < 0) {
        return -1;
    }
    if (n != PARTS) {
        return json_fail(at, err, "expected %d parts, found %zu", PARTS, n);
    }
    for (bool more = json_first(at, &item); more; more = json_next(&item)) {
        if (read_part(&item, (enum part)part++, arena, shape, &in, err) < 0) {
            return -1;
        }
    }
    return map_add(&bundle->logs, file->log, file)
               ? 0
               : json_fail(at, err, "\"%.200s\" occurs twice", file->log.ptr);
}

static int read_all(const struct json *root, struct arena *arena, struct bundle_shape *shape,
                    struct series_bundle *bundle, struct err *err)
{
    static const struct json_field FIELDS[] = {
        ROW("schema_version", struct bundle_shape, version, JSON_REQUIRED, .min = SCHEMA_VERSION,
            .max = SCHEMA_VERSION),
        ROW("report", struct bundle_shape, file.report, JSON_REQUIRED),
        ROW_ANY("source", JSON_REQUIRED),
        ROW("format", struct bundle_shape, file.measurement.format, JSON_REQUIRED),
        ROW_ANY("facts", JSON_REQUIRED),
        ROW_ANY("series", JSON_REQUIRED),
        ROW_ANY("logs", JSON_REQUIRED),
    };
    struct json list;
    struct json item;
    size_t n = 0;
    if (json_decode(root, arena, FIELDS, ARRAY_LEN(FIELDS), shape, err) < 0 ||
        read_shape(root, arena, shape, err) < 0 || json_member(root, "logs", &list, err) < 0 ||
        json_expect_array(&list, LOGS_MAX_ALL, &n, err) < 0) {
        return -1;
    }
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (read_log(&item, arena, shape, bundle, err) < 0) {
            return -1;
        }
    }
    return 0;
}

int series_bundle_read(struct arena *arena, const char *path, struct series_bundle *ret_bundle,
                       struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct bundle_shape shape = {0};
    struct str text;
    struct json root;
    if (fs_read(arena, path, FILE_BYTES_MAX, &text, err) < 0 ||
        json_parse(text, path, &doc, err) < 0) {
        return -1;
    }
    shape.file.own_sha256 = digest_text_hex(arena, text);
    root = json_root(&doc);
    return read_all(&root, arena, &shape, ret_bundle, err);
}
