/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "log/format_impl.h"

#include "codec/json_table.h"
#include "report/report.h"
#include "report/vocabulary.h"

/* The state of decoding one format. */
struct decoder {
    struct format *format;
    struct arena *arena;
};

static int find_literal(const struct format *format, struct str literal)
{
    for (size_t idx = 0; idx < format->n_literals; idx++) {
        if (str_eq(format->literals[idx], literal)) {
            return (int)idx;
        }
    }
    return -1;
}

static int add_literal(const struct json *at, struct format *format, struct probe *probe,
                       struct err *err)
{
    int idx = find_literal(format, probe->literal);
    if (probe->literal.len < LITERAL_LEN_MIN) {
        return json_fail(at, err, "expected a literal of at least %d bytes, found \"%s\"",
                         LITERAL_LEN_MIN, probe->literal.ptr);
    }
    if (memchr(probe->literal.ptr, '\n', probe->literal.len) ||
        memchr(probe->literal.ptr, '\r', probe->literal.len)) {
        return json_fail(at, err, "a literal holds no line break");
    }
    if (idx < 0) {
        if (format->n_literals == LITERALS_MAX) {
            return json_fail(at, err, "more than %d different literals", LITERALS_MAX);
        }
        idx = (int)format->n_literals++;
        format->literals[idx] = probe->literal;
    }
    probe->bit = (uint8_t)idx;
    return 0;
}

static int read_pattern(const struct json *at, struct str source, struct pattern **ret_pattern,
                        struct err *err)
{
    struct err why = {0};
    if (pattern_new(source, ret_pattern, &why) < 0) {
        return json_fail(at, err, "%s", why.msg);
    }
    return 0;
}

/* {"literal": S, "pattern": S} as a member that may be null. */
static int read_probe(const struct decoder *d, const struct json *at, const char *key,
                      struct probe *ret_probe, struct err *err)
{
    struct raw_probe {
        struct str literal, pattern;
        bool required;
    } raw = {0};
    const struct json_field fields[] = {
        ROW("literal", struct raw_probe, literal, JSON_REQUIRED),
        ROW("pattern", struct raw_probe, pattern, JSON_REQUIRED),
        ROW("required", struct raw_probe, required, 0),
    };
    struct json member;
    bool is_end = strcmp(key, "end") == 0;
    ret_probe->bit = NO_LITERAL;
    if (!json_find(at, key, &member) || json_is_null(&member)) {
        return 0;
    }
    if (json_decode(&member, d->arena, fields, is_end ? 3 : 2, &raw, err) < 0) {
        return -1;
    }
    ret_probe->literal = raw.literal;
    if (is_end) {
        d->format->needs_end = raw.required;
    }
    if (add_literal(&member, d->format, ret_probe, err) < 0) {
        return -1;
    }
    return read_pattern(&member, raw.pattern, &ret_probe->pattern, err);
}

struct raw_fact {
    struct str name, literal, pattern, says, why;
    bool is_list, is_last, is_grouped, is_in_sample, is_absent;
};

static const struct json_field FACT_FIELDS[] = {
    ROW("name", struct raw_fact, name, JSON_REQUIRED),
    ROW("literal", struct raw_fact, literal, 0),
    ROW("pattern", struct raw_fact, pattern, 0),
    ROW("says", struct raw_fact, says, 0),
    ROW("list", struct raw_fact, is_list, 0),
    ROW("last", struct raw_fact, is_last, 0),
    ROW("grouped", struct raw_fact, is_grouped, 0),
    ROW("in_sample", struct raw_fact, is_in_sample, 0),
    ROW("absent", struct raw_fact, is_absent, 0),
    ROW("why", struct raw_fact, why, 0),
};

static int add_absent(const struct json *at, struct format *f, const struct raw_fact *raw,
                      struct err *err)
{
    if (raw->literal.ptr || raw->pattern.ptr || raw->says.ptr || raw->is_list || raw->is_last ||
        raw->is_grouped || raw->is_in_sample || !raw->why.len) {
        return json_fail(at, err, "an absent fact has a name and \"why\" only");
    }
    f->absent[f->n_absent++] = (struct absent_fact){raw->name, raw->why};
    return 0;
}

static int decode_fact(const struct decoder *d, const struct json *at, struct err *err)
{
    struct format *f = d->format;
    struct raw_fact raw = {0};
    struct fact_spec *fact;
    if (json_decode(at, d->arena, FACT_FIELDS, ARRAY_LEN(FACT_FIELDS), &raw, err) < 0) {
        return -1;
    }
    if (!vocabulary_has_condition(vocabulary_of(at), raw.name) && !fact_is_of_row(raw.name)) {
        return json_fail(at, err, "\"%.60s\" is not in the list of conditions", raw.name.ptr);
    }
    if (raw.is_absent) {
        return add_absent(at, f, &raw, err);
    }
    if (raw.why.ptr || !raw.literal.ptr || !raw.pattern.ptr) {
        return json_fail(at, err, "a fact has a literal and a pattern, or is absent");
    }
    fact = &f->facts[f->n_facts++];
    fact->name = raw.name;
    fact->says = raw.says;
    fact->is_list = raw.is_list;
    fact->is_last = raw.is_last;
    fact->is_grouped = raw.is_grouped;
    fact->is_in_sample = raw.is_in_sample;
    fact->line.literal = raw.literal;
    if (add_literal(at, f, &fact->line, err) < 0 ||
        read_pattern(at, raw.pattern, &fact->line.pattern, err) < 0) {
        return -1;
    }
    f->fact_mask[raw.is_in_sample] |= UINT64_C(1) << fact->line.bit;
    fact->value = pattern_group(fact->line.pattern, "value");
    if ((fact->value < 0) != (raw.says.len > 0)) {
        return json_fail(at, err, "expected a group \"value\" in the fact's pattern, or \"says\"");
    }
    return 0;
}

static int decode_facts(const struct decoder *d, const struct json *root, struct err *err)
{
    struct format *f = d->format;
    struct json list;
    struct json item;
    size_t n = 0;
    if (json_member(root, "facts", &list, err) < 0 ||
        json_expect_array(&list, FORMAT_FACTS_MAX, &n, err) < 0) {
        return -1;
    }
    f->facts = arena_array(d->arena, struct fact_spec, n ? n : 1);
    f->absent = arena_array(d->arena, struct absent_fact, n ? n : 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (decode_fact(d, &item, err) < 0) {
            return -1;
        }
    }
    for (size_t idx = 0; idx < f->n_absent; idx++) {
        if (format_reads(f, f->absent[idx].name.ptr)) {
            return json_fail(&list, err, "fact \"%.60s\" is both read and absent",
                             f->absent[idx].name.ptr);
        }
    }
    return 0;
}

static int decode_prefixes(const struct decoder *d, const struct json *root, struct err *err)
{
    struct json list;
    struct str *names;
    size_t n;
    if (json_member(root, "prefixes", &list, err) < 0 ||
        json_str_list(&list, d->arena, 8, &names, &n, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < n; idx++) {
        if (str_eq_z(names[idx], "mpirun")) {
            d->format->strips_mpirun = true;
        } else if (str_eq_z(names[idx], "srun")) {
            d->format->strips_srun = true;
        } else {
            return json_fail(&list, err, "expected mpirun or srun, found \"%.40s\"",
                             names[idx].ptr);
        }
    }
    return 0;
}

struct raw_format {
    struct str id, title, framework, source, total_from, epochs_from, role, records;
    int64_t schema_version;
    bool any, is_proposed;
};

static const struct json_field FORMAT_FIELDS[] = {
    ROW("schema_version", struct raw_format, schema_version, JSON_REQUIRED, .min = 1, .max = 1),
    ROW("id", struct raw_format, id, JSON_REQUIRED),
    ROW("title", struct raw_format, title, JSON_REQUIRED),
    ROW("framework", struct raw_format, framework, JSON_REQUIRED),
    ROW("source", struct raw_format, source, JSON_REQUIRED),
    ROW_ANY("prefixes", JSON_REQUIRED),
    ROW_ANY("series", JSON_REQUIRED),
    ROW_ANY("run_start", JSON_NULLABLE),
    ROW_ANY("begin", JSON_NULLABLE),
    ROW_ANY("resumed", JSON_NULLABLE),
    ROW_ANY("end", JSON_NULLABLE),
    ROW_ANY("fatal", JSON_NULLABLE),
    ROW_ANY("done", JSON_NULLABLE),
    ROW("total_from", struct raw_format, total_from, JSON_NULLABLE),
    ROW("epochs_from", struct raw_format, epochs_from, JSON_NULLABLE),
    ROW("role", struct raw_format, role, 0),
    ROW("records", struct raw_format, records, 0),
    ROW("proposed", struct raw_format, is_proposed, 0),
    ROW_ANY("facts", JSON_REQUIRED),
    ROW_ANY("rules", JSON_REQUIRED),
};

/* "done": a line that says how many steps are made. */
static int decode_done(const struct decoder *d, const struct json *root, struct err *err)
{
    struct format *f = d->format;
    if (read_probe(d, root, "done", &f->done, err) < 0) {
        return -1;
    }
    f->done_step = f->done.pattern ? pattern_group(f->done.pattern, "step") : -1;
    return f->done.pattern && f->done_step < 0
               ? json_fail(root, err, "done: its pattern has a group \"step\"")
               : 0;
}

/* "begin": a line that precedes the samples of every run; or why no log of the format shows whether its beginning is there. */
static int decode_begin(const struct decoder *d, const struct json *root, struct err *err)
{
    struct raw_begin {
        struct str why;
        bool is_unknown;
    } raw = {0};
    static const struct json_field FIELDS[] = {
        ROW("why", struct raw_begin, why, JSON_REQUIRED),
        ROW("unknown", struct raw_begin, is_unknown, JSON_REQUIRED),
    };
    struct json member;
    struct json unknown;
    d->format->begin.bit = NO_LITERAL;
    if (!json_find(root, "begin", &member) || json_is_null(&member)) {
        return 0;
    }
    if (!json_find(&member, "unknown", &unknown)) {
        return read_probe(d, root, "begin", &d->format->begin, err);
    }
    if (json_decode(&member, d->arena, FIELDS, ARRAY_LEN(FIELDS), &raw, err) < 0) {
        return -1;
    }
    if (!raw.is_unknown || !raw.why.len) {
        return json_fail(&member, err, "expected \"unknown\" true and a \"why\"");
    }
    d->format->begin_why = raw.why;
    return 0;
}

/* Messages with which any Python or CUDA program breaks off, or with which the kernel, Slurm or mpirun ends it. TensorFlow's
   allocator says "ran out of memory" without failing. */
static int add_crashes(const struct json *root, struct format *f, struct err *err)
{
    static const struct {
        const char *text;
        size_t mask; /* member of struct format */
    } CRASHES[] = {{"Traceback (most recent call last)", offsetof(struct format, crash_mask)},
                   {"CUDA out of memory", offsetof(struct format, crash_mask)},
                   {"OutOfMemoryError", offsetof(struct format, crash_mask)},
                   {"ResourceExhaustedError", offsetof(struct format, crash_mask)},
                   {"RESOURCE_EXHAUSTED", offsetof(struct format, crash_mask)},
                   {"Segmentation fault", offsetof(struct format, crash_mask)},
                   {"RuntimeError: ", offsetof(struct format, crash_mask)},
                   {"CUDA error", offsetof(struct format, crash_mask)},
                   {"NCCL error", offsetof(struct format, crash_mask)},
                   {"core dumped", offsetof(struct format, crash_mask)},
                   {"terminate called ", offsetof(struct format, crash_mask)},
                   {"Fatal Python error", offsetof(struct format, crash_mask)},
                   {"Watchdog caught collective", offsetof(struct format, crash_mask)},
                   {"ChildFailedError", offsetof(struct format, crash_mask)},
                   {"slurmstepd: error: ", offsetof(struct format, crash_mask)},
                   {"oom-kill", offsetof(struct format, crash_mask)},
                   {"mpirun noticed that process", offsetof(struct format, crash_mask)},
                   {"FAIL ]", offsetof(struct format, failed_mask)},
                   {"FAILED", offsetof(struct format, failed_mask)},
                   {"failed to meet", offsetof(struct format, failed_mask)},
                   {"Killed", offsetof(struct format, killed_mask)}};
    for (size_t idx = 0; idx < ARRAY_LEN(CRASHES); idx++) {
        struct probe probe = {.literal = str_of(CRASHES[idx].text)};
        if (add_literal(root, f, &probe, err) < 0) {
            return -1;
        }
        *(uint64_t *)(void *)((char *)f + CRASHES[idx].mask) |= 1ull << probe.bit;
    }
    return 0;
}

/* "total_from" and "epochs_from" name facts. */
static int check_from(const struct format *f, const struct json *root, const char *key,
                      struct str name, struct err *err)
{
    return !name.ptr || format_reads(f, name.ptr)
               ? 0
               : json_fail(root, err, "%s: there is no fact \"%.40s\"", key, name.ptr);
}

static int decode_role(const struct json *root, struct str name, enum format_role *ret_role,
                       struct err *err)
{
    static const char *const ROLES[] = {[FORMAT_FIRST] = "first",
                                        [FORMAT_OWN] = "own",
                                        [FORMAT_SIDECAR] = "beside",
                                        [FORMAT_GENERIC] = "generic",
                                        [FORMAT_NAMED] = "named"};
    for (size_t idx = 0; idx < ARRAY_LEN(ROLES); idx++) {
        if (str_eq_z(name, ROLES[idx])) {
            *ret_role = (enum format_role)idx;
            return 0;
        }
    }
    return json_fail(
        root, err, "expected role first, own, beside, generic or named, found \"%.40s\"", name.ptr);
}

/* ---- its series ---- */

/* Series are kept in base units: seconds, and rates of items or of steps. */
static bool is_unit_of(const struct vocabulary *v, struct str unit, enum quantity quantity)
{
    const struct word *word = words_find(&v->units, unit);
    bool is_base = word && str_eq(word->name, unit);
    bool is_rate = is_base && word_is_rate(word);
    switch (quantity) {
    case QTY_RATE:
    case QTY_RUNNING_MEAN:
        return is_rate;
    case QTY_STEP_TIME:
        return str_eq_z(unit, "s");
    case QTY_SUMMARY:
        return is_rate || str_eq_z(unit, "s");
    case QTY_CLOCK:
    case QTY_PROGRESS:
        return unit.len == 0;
    case QTY_SCORE:
        return is_base && !unit_is(v, unit, "rate") && !unit_is(v, unit, "step_rate") &&
               !unit_is(v, unit, "time");
    }
    return false;
}

static int decode_groups(const struct json *at, struct series_spec *s, struct err *err)
{
    const struct {
        const char *name;
        int *ret;
    } groups[] = {{"value", &s->value},     {"step", &s->step},     {"total", &s->total},
                  {"epoch", &s->epoch},     {"epochs", &s->epochs}, {"rank", &s->rank},
                  {"inverse", &s->inverse}, {"gpus", &s->gpus},     {"time", &s->time},
                  {"kilo", &s->kilo},       {"mega", &s->mega},     {"milli", &s->milli},
                  {"micro", &s->micro}};
    const char *name;
    for (size_t idx = 0; idx < ARRAY_LEN(groups); idx++) {
        *groups[idx].ret = pattern_group(s->line.pattern, groups[idx].name);
    }
    for (size_t at_name = 0; (name = pattern_group_name(s->line.pattern, at_name)); at_name++) {
        bool is_known = false;
        for (size_t idx = 0; idx < ARRAY_LEN(groups); idx++) {
            is_known = is_known || strcmp(name, groups[idx].name) == 0;
        }
        if (!is_known) {
            return json_fail(at, err, "unknown group \"%s\" in the pattern", name);
        }
    }
    bool is_bare = s->quantity == QTY_CLOCK || s->quantity == QTY_PROGRESS;
    if (is_bare != (s->value < 0)) {
        return json_fail(
            at, err, "a pattern has a group \"value\" unless its quantity is clock or progress");
    }
    if (s->quantity == QTY_PROGRESS && s->step < 0) {
        return json_fail(at, err, "expected a group \"step\" in the pattern of a progress");
    }
    if (s->epoch_from >= 0 && (s->epoch < 0 || s->step < 0)) {
        return json_fail(at, err, "\"epoch_from\" needs groups epoch and step");
    }
    if (s->quantity == QTY_CLOCK && s->time < 0) {
        return json_fail(at, err, "expected a group \"time\" in a clock's pattern");
    }
    return 0;
}

struct raw_series {
    struct str name, literal, pattern, unit, like, until;
    enum scope scope;
    enum quantity quantity;
    bool primary, repeats, after, stands_in, is_on_grid, is_grouped;
    int64_t step_from, epoch_from, first_by;
    double factor;
};

static const struct json_field SERIES_FIELDS[] = {
    ROW("name", struct raw_series, name, JSON_REQUIRED),
    ROW("literal", struct raw_series, literal, JSON_NULLABLE),
    ROW("pattern", struct raw_series, pattern, JSON_REQUIRED),
    ROW("unit", struct raw_series, unit, JSON_REQUIRED),
    ROW_WORD("scope", struct raw_series, scope, SCOPE_NAMES, JSON_REQUIRED | JSON_NULLABLE),
    ROW_WORD("quantity", struct raw_series, quantity, QUANTITY_NAMES, JSON_REQUIRED),
    ROW("primary", struct raw_series, primary, JSON_REQUIRED),
    ROW("repeats", struct raw_series, repeats, 0),
    ROW("stands_in", struct raw_series, stands_in, 0),
    ROW("grid", struct raw_series, is_on_grid, 0),
    ROW("grouped", struct raw_series, is_grouped, 0),
    ROW("step_from", struct raw_series, step_from, 0, .max = 1),
    ROW("epoch_from", struct raw_series, epoch_from, 0, .max = 1),
    ROW("first_by", struct raw_series, first_by, 0, .max = INT32_MAX),
    ROW("factor", struct raw_series, factor, 0),
    ROW_ANY("after", JSON_NULLABLE),
    ROW("like", struct raw_series, like, JSON_NULLABLE),
    ROW("until", struct raw_series, until, JSON_NULLABLE),
};

static int decode_series_names(const struct json *at, const struct raw_series *raw,
                               struct series_spec *s, struct err *err)
{
    s->scope = raw->scope;
    s->quantity = raw->quantity;
    if (!is_unit_of(vocabulary_of(at), raw->unit, s->quantity)) {
        return json_fail(at, err, "unit \"%.40s\" does not fit quantity %s", raw->unit.ptr,
                         quantity_name(s->quantity));
    }
    if (!(raw->factor > 0)) {
        return json_fail(at, err, "expected a factor over 0");
    }
    s->name = raw->name;
    s->unit = raw->unit;
    s->is_primary = raw->primary;
    s->repeats = raw->repeats;
    s->stands_in = raw->stands_in;
    s->is_off_grid = !raw->is_on_grid;
    s->is_grouped = raw->is_grouped;
    s->step_from = raw->step_from;
    s->epoch_from = raw->epoch_from;
    s->first_by = raw->first_by;
    s->factor = raw->factor;
    return 0;
}

static int decode_one_series(const struct decoder *d, const struct json *at, struct series_spec *s,
                             struct err *err)
{
    struct raw_series raw = {
        .factor = 1, .is_on_grid = true, .step_from = 1, .epoch_from = -1, .first_by = -1};
    if (json_decode(at, d->arena, SERIES_FIELDS, ARRAY_LEN(SERIES_FIELDS), &raw, err) < 0 ||
        decode_series_names(at, &raw, s, err) < 0 ||
        read_probe(d, at, "after", &s->after, err) < 0 ||
        read_pattern(at, raw.pattern, &s->line.pattern, err) < 0 || decode_groups(at, s, err) < 0) {
        return -1;
    }
    s->line.bit = NO_LITERAL;
    s->line.literal = raw.literal;
    s->is_bare = raw.literal.len && str_find(raw.pattern, STR_LIT("oss")) < 0;
    if (raw.literal.len && add_literal(at, d->format, &s->line, err) < 0) {
        return -1;
    }
    if (raw.like.ptr && !raw.literal.len) {
        return json_fail(at, err, "\"like\" is for lines that hold the literal, but there is none");
    }
    if (raw.like.ptr && read_pattern(at, raw.like, &s->like, err) < 0) {
        return -1;
    }
    if (raw.until.ptr && !s->after.pattern) {
        return json_fail(at, err,
                         "\"until\" closes what \"after\" opens, but there is no \"after\"");
    }
    return raw.until.ptr ? read_pattern(at, raw.until, &s->until, err) : 0;
}

static int decode_series(const struct decoder *d, const struct json *root, struct err *err)
{
    struct format *f = d->format;
    struct json list;
    struct json item;
    size_t n = 0;
    size_t n_primary = 0;
    if (json_member(root, "series", &list, err) < 0 ||
        json_expect_array(&list, FORMAT_SERIES_MAX, &n, err) < 0) {
        return -1;
    }
    f->series = arena_array(d->arena, struct series_spec, n ? n : 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        struct series_spec *s =
            &f->series[f->n_series++]; /* counted first: format_release sees it */
        if (decode_one_series(d, &item, s, err) < 0) {
            return -1;
        }
        for (size_t idx = 0; idx + 1 < f->n_series; idx++) {
            if (str_eq(f->series[idx].name, s->name)) {
                return json_fail(&item, err, "two series named \"%.60s\"", s->name.ptr);
            }
        }
        n_primary += s->is_primary;
    }
    if (n_primary != 1) {
        return json_fail(&list, err, "expected one primary series, found %zu", n_primary);
    }
    return 0;
}

int format_decode(const struct json *root, struct arena *arena, struct format **ret_format,
                  struct err *err)
{
    struct raw_format raw = {.role = STR_LIT("own")};
    struct format *f = arena_new(arena, struct format);
    struct decoder d = {f, arena};
    f->search = arena_new(arena, struct literals *);
    if (json_decode(root, arena, FORMAT_FIELDS, ARRAY_LEN(FORMAT_FIELDS), &raw, err) < 0) {
        return -1;
    }
    f->id = raw.id;
    f->title = raw.title;
    f->framework = raw.framework;
    f->source = raw.source;
    f->is_proposed = raw.is_proposed;
    f->vocabulary = vocabulary_of(root);
    f->records = str_eq_z(raw.records, "csv") ? RECORD_CSV
                 : raw.records.ptr            ? RECORD_JSONL
                                              : RECORD_NONE;
    if (raw.records.ptr && f->records == RECORD_JSONL && !str_eq_z(raw.records, "jsonl")) {
        return json_fail(root, err, "expected records csv or jsonl, found \"%.40s\"",
                         raw.records.ptr);
    }
    f->total_from = raw.total_from;
    f->epochs_from = raw.epochs_from;
    if (decode_role(root, raw.role, &f->role, err) < 0 || decode_prefixes(&d, root, err) < 0 ||
        decode_series(&d, root, err) < 0 ||
        read_probe(&d, root, "run_start", &f->run_start, err) < 0 ||
        decode_begin(&d, root, err) < 0 || read_probe(&d, root, "resumed", &f->resumed, err) < 0 ||
        read_probe(&d, root, "end", &f->end, err) < 0 ||
        read_probe(&d, root, "fatal", &f->fatal, err) < 0 || decode_done(&d, root, err) < 0 ||
        decode_facts(&d, root, err) < 0 || add_crashes(root, f, err) < 0) {
        format_release(f);
        return -1;
    }
    if (check_from(f, root, "total_from", f->total_from, err) < 0 ||
        check_from(f, root, "epochs_from", f->epochs_from, err) < 0) {
        format_release(f);
        return -1;
    }
    *ret_format = f;
    return 0;
}

void format_release(struct format *format)
{
    if (!format) {
        return;
    }
    for (size_t idx = 0; idx < format->n_series; idx++) {
        pattern_free(format->series[idx].line.pattern);
        pattern_free(format->series[idx].after.pattern);
        pattern_free(format->series[idx].until);
        pattern_free(format->series[idx].like);
    }
    for (size_t idx = 0; idx < format->n_facts; idx++) {
        pattern_free(format->facts[idx].line.pattern);
    }
    pattern_free(format->run_start.pattern);
    pattern_free(format->begin.pattern);
    pattern_free(format->resumed.pattern);
    pattern_free(format->end.pattern);
    pattern_free(format->fatal.pattern);
    pattern_free(format->done.pattern);
    if (format->search) {
        literals_free(*format->search);
    }
    *format = (struct format){0};
}

struct str format_id(const struct format *format)
{
    return format->id;
}

struct str format_title(const struct format *format)
{
    return format->title;
}

struct str format_framework(const struct format *format)
{
    return format->framework;
}

bool format_has_series(const struct format *format, struct str name)
{
    for (size_t idx = 0; idx < format->n_series; idx++) {
        if (str_eq(format->series[idx].name, name)) {
            return true;
        }
    }
    return false;
}

bool format_is_proposed(const struct format *format)
{
    return format->is_proposed;
}

enum format_role format_role(const struct format *format)
{
    return format->role;
}

const struct vocabulary *format_vocabulary(const struct format *format)
{
    return format->vocabulary;
}

void format_set_rules(struct format *format, const struct rule *rules, size_t n)
{
    format->rules = rules;
    format->n_rules = n;
}

size_t format_rules(const struct format *format, const struct rule **ret_rules)
{
    *ret_rules = format->rules;
    return format->n_rules;
}

bool format_reads(const struct format *format, const char *fact)
{
    for (size_t idx = 0; idx < format->n_facts; idx++) {
        if (str_eq_z(format->facts[idx].name, fact)) {
            return true;
        }
    }
    return false;
}

struct str format_absent(const struct format *format, const char *fact)
{
    for (size_t idx = 0; idx < format->n_absent; idx++) {
        if (str_eq_z(format->absent[idx].name, fact)) {
            return format->absent[idx].why;
        }
    }
    return STR_EMPTY;
}

const struct format *format_find(const struct format_set *set, struct str id)
{
    for (size_t idx = 0; idx < set->n; idx++) {
        if (str_eq(set->items[idx]->id, id)) {
            return set->items[idx];
        }
    }
    return NULL;
}
