/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "judge/format_impl.h"

#include "judge/identity.h"
#include "report/report.h"

/* Where the decoding of one format stands. */
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

static int decode_pattern(const struct json *at, struct str source, struct pattern **ret_pattern,
                          struct err *err)
{
    struct err why = {0};
    if (pattern_new(source, ret_pattern, &why) < 0) {
        return json_fail(at, err, "%s", why.msg);
    }
    return 0;
}

/* {"literal": S, "pattern": S} as a member that may be null. */
static int decode_probe(const struct decoder *d, const struct json *at, const char *key,
                        struct probe *ret_probe, struct err *err)
{
    struct {
        struct str literal, pattern;
        bool required;
    } raw = {0};
    const struct json_field fields[] = {
        {"literal", JSON_STR, JSON_REQUIRED, 0, 0, 0},
        {"pattern", JSON_STR, JSON_REQUIRED, sizeof(struct str), 0, 0},
        {"required", JSON_BOOL, 0, 2 * sizeof(struct str), 0, 0},
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
    return decode_pattern(&member, raw.pattern, &ret_probe->pattern, err);
}

static bool is_unit_of(struct str unit, enum quantity quantity)
{
    static const char *const RATES[] = {"samples/s", "images/s", "sequences/s", "tokens/s"};
    bool is_rate = false;
    for (size_t idx = 0; idx < ARRAY_LEN(RATES); idx++) {
        is_rate = is_rate || str_eq_z(unit, RATES[idx]);
    }
    switch (quantity) {
    case QTY_RATE:
    case QTY_RUNNING_MEAN:
        return is_rate;
    case QTY_STEP_TIME:
        return str_eq_z(unit, "s");
    case QTY_SUMMARY:
        return is_rate || str_eq_z(unit, "s");
    case QTY_CLOCK:
        return unit.len == 0;
    case QTY_SCORE:
        return unit.len == 0 || str_eq_z(unit, "%");
    }
    return false;
}

static int decode_groups(const struct json *at, struct series_spec *s, struct err *err)
{
    const struct {
        const char *name;
        int *ret;
    } groups[] = {{"value", &s->value}, {"step", &s->step}, {"total", &s->total},
                  {"epoch", &s->epoch}, {"rank", &s->rank}, {"gpus", &s->gpus},
                  {"time", &s->time}};
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
    if ((s->quantity == QTY_CLOCK) != (s->value < 0)) {
        return json_fail(at, err, "a pattern has a group \"value\" unless its quantity is clock");
    }
    if (s->quantity == QTY_CLOCK && s->time < 0) {
        return json_fail(at, err, "a clock's pattern has a group \"time\"");
    }
    return 0;
}

struct raw_series {
    struct str name, literal, pattern, unit, scope, quantity, like, until;
    bool primary, repeats, after;
    double factor;
};

#define RS(member) offsetof(struct raw_series, member)
static const struct json_field SERIES_FIELDS[] = {
    {"name", JSON_STR, JSON_REQUIRED, RS(name), 0, 0},
    {"literal", JSON_STR, JSON_NULLABLE, RS(literal), 0, 0},
    {"pattern", JSON_STR, JSON_REQUIRED, RS(pattern), 0, 0},
    {"unit", JSON_STR, JSON_REQUIRED, RS(unit), 0, 0},
    {"scope", JSON_STR, JSON_REQUIRED, RS(scope), 0, 0},
    {"quantity", JSON_STR, JSON_REQUIRED, RS(quantity), 0, 0},
    {"primary", JSON_BOOL, JSON_REQUIRED, RS(primary), 0, 0},
    {"repeats", JSON_BOOL, 0, RS(repeats), 0, 0},
    {"factor", JSON_F64, 0, RS(factor), 0, 0},
    {"after", JSON_ANY, JSON_NULLABLE, RS(after), 0, 0},
    {"like", JSON_STR, JSON_NULLABLE, RS(like), 0, 0},
    {"until", JSON_STR, JSON_NULLABLE, RS(until), 0, 0},
};

static int decode_series_names(const struct json *at, const struct raw_series *raw,
                               struct series_spec *s, struct err *err)
{
    if (!scope_of_name(raw->scope, &s->scope)) {
        return json_fail(at, err, "expected scope rank, node or job, found \"%.40s\"",
                         raw->scope.ptr);
    }
    if (!quantity_of_name(raw->quantity, &s->quantity)) {
        return json_fail(at, err,
                         "expected quantity rate, running_mean, step_time, summary, clock or "
                         "score, found \"%.40s\"",
                         raw->quantity.ptr);
    }
    if (!is_unit_of(raw->unit, s->quantity)) {
        return json_fail(at, err, "unit \"%.40s\" does not fit quantity %.*s", raw->unit.ptr,
                         STR_ARG(raw->quantity));
    }
    if (!(raw->factor > 0)) {
        return json_fail(at, err, "expected a factor over 0");
    }
    s->name = raw->name;
    s->unit = raw->unit;
    s->is_primary = raw->primary;
    s->repeats = raw->repeats;
    s->factor = raw->factor;
    return 0;
}

static int decode_one_series(const struct decoder *d, const struct json *at, struct series_spec *s,
                             struct err *err)
{
    struct raw_series raw = {.factor = 1};
    if (json_decode(at, d->arena, SERIES_FIELDS, ARRAY_LEN(SERIES_FIELDS), &raw, err) < 0 ||
        decode_series_names(at, &raw, s, err) < 0 ||
        decode_probe(d, at, "after", &s->after, err) < 0 ||
        decode_pattern(at, raw.pattern, &s->line.pattern, err) < 0 ||
        decode_groups(at, s, err) < 0) {
        return -1;
    }
    s->line.bit = NO_LITERAL;
    s->line.literal = raw.literal;
    if (raw.literal.len && add_literal(at, d->format, &s->line, err) < 0) {
        return -1;
    }
    if (!raw.literal.len && !s->after.pattern) {
        return json_fail(at, err, "a series has a literal, or \"after\" opens its table");
    }
    if (raw.like.ptr && !raw.literal.len) {
        return json_fail(at, err, "\"like\" is for lines that hold the literal, and there is none");
    }
    if (raw.like.ptr && decode_pattern(at, raw.like, &s->like, err) < 0) {
        return -1;
    }
    if (raw.until.ptr && !s->after.pattern) {
        return json_fail(at, err, "\"until\" closes what \"after\" opens, and there is none");
    }
    return raw.until.ptr ? decode_pattern(at, raw.until, &s->until, err) : 0;
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

struct raw_fact {
    struct str name, literal, pattern, says, why;
    bool is_list, is_last, is_absent;
};

#define RFA(member) offsetof(struct raw_fact, member)
static const struct json_field FACT_FIELDS[] = {
    {"name", JSON_STR, JSON_REQUIRED, RFA(name), 0, 0},
    {"literal", JSON_STR, 0, RFA(literal), 0, 0},
    {"pattern", JSON_STR, 0, RFA(pattern), 0, 0},
    {"says", JSON_STR, 0, RFA(says), 0, 0},
    {"list", JSON_BOOL, 0, RFA(is_list), 0, 0},
    {"last", JSON_BOOL, 0, RFA(is_last), 0, 0},
    {"absent", JSON_BOOL, 0, RFA(is_absent), 0, 0},
    {"why", JSON_STR, 0, RFA(why), 0, 0},
};

static int add_absent(const struct json *at, struct format *f, const struct raw_fact *raw,
                      struct err *err)
{
    if (raw->literal.ptr || raw->pattern.ptr || raw->says.ptr || raw->is_list || raw->is_last ||
        !raw->why.len) {
        return json_fail(at, err, "an absent fact has a name and \"why\", and nothing else");
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
    if (!condition_is_known(raw.name) && !identity_is_known(raw.name)) {
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
    fact->line.literal = raw.literal;
    if (add_literal(at, f, &fact->line, err) < 0 ||
        decode_pattern(at, raw.pattern, &fact->line.pattern, err) < 0) {
        return -1;
    }
    fact->value = pattern_group(fact->line.pattern, "value");
    if ((fact->value < 0) != (raw.says.len > 0)) {
        return json_fail(at, err,
                         "a fact's pattern has a group \"value\", or the fact \"says\" it");
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
            return json_fail(&list, err, "fact \"%.60s\" is read and absent",
                             f->absent[idx].name.ptr);
        }
    }
    return 0;
}

static int decode_rules(const struct decoder *d, const struct json *root, struct err *err)
{
    struct format *f = d->format;
    struct json list;
    struct json item;
    size_t n = 0;
    if (json_member(root, "rules", &list, err) < 0 ||
        json_expect_array(&list, FORMAT_RULES_MAX, &n, err) < 0) {
        return -1;
    }
    f->rules = arena_array(d->arena, struct rule, n ? n : 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        struct rule rule;
        bool is_known = false;
        if (rule_decode(&item, d->arena, f->id, &rule, err) < 0) {
            return -1;
        }
        if (format_rule(f, rule.id)) {
            return json_fail(&item, err, "two rules \"%.*s\"", STR_ARG(rule.id));
        }
        for (size_t idx = 0; idx < f->n_series; idx++) {
            is_known = is_known || str_eq(f->series[idx].name, rule.series);
        }
        if (!is_known) {
            return json_fail(&item, err, "the format has no series \"%.60s\"", rule.series.ptr);
        }
        f->rules[f->n_rules++] = rule;
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
    struct str id, title, framework, source, total_from;
    int64_t schema_version;
    bool any;
};

#define RF(member) offsetof(struct raw_format, member)
static const struct json_field FORMAT_FIELDS[] = {
    {"schema_version", JSON_I64, JSON_REQUIRED, RF(schema_version), 1, 1},
    {"id", JSON_STR, JSON_REQUIRED, RF(id), 0, 0},
    {"title", JSON_STR, JSON_REQUIRED, RF(title), 0, 0},
    {"framework", JSON_STR, JSON_REQUIRED, RF(framework), 0, 0},
    {"source", JSON_STR, JSON_REQUIRED, RF(source), 0, 0},
    {"prefixes", JSON_ANY, JSON_REQUIRED, RF(any), 0, 0},
    {"series", JSON_ANY, JSON_REQUIRED, RF(any), 0, 0},
    {"run_start", JSON_ANY, JSON_NULLABLE, RF(any), 0, 0},
    {"end", JSON_ANY, JSON_NULLABLE, RF(any), 0, 0},
    {"fatal", JSON_ANY, JSON_NULLABLE, RF(any), 0, 0},
    {"done", JSON_ANY, JSON_NULLABLE, RF(any), 0, 0},
    {"total_from", JSON_STR, JSON_NULLABLE, RF(total_from), 0, 0},
    {"facts", JSON_ANY, JSON_REQUIRED, RF(any), 0, 0},
    {"rules", JSON_ANY, JSON_REQUIRED, RF(any), 0, 0},
};

/* "done": a line that says how many steps are made. */
static int decode_done(const struct decoder *d, const struct json *root, struct err *err)
{
    struct format *f = d->format;
    if (decode_probe(d, root, "done", &f->done, err) < 0) {
        return -1;
    }
    f->done_step = f->done.pattern ? pattern_group(f->done.pattern, "step") : -1;
    return f->done.pattern && f->done_step < 0
               ? json_fail(root, err, "done: its pattern has a group \"step\"")
               : 0;
}

/* By which a Python or CUDA program breaks off, whatever it trains. That TensorFlow's allocator "ran out of memory" is said to be no
   failure. */
static int add_crashes(const struct json *root, struct format *f, struct err *err)
{
    static const char *const CRASHES[] = {"Traceback (most recent call last)",
                                          "CUDA out of memory",
                                          "OutOfMemoryError",
                                          "ResourceExhaustedError",
                                          "RESOURCE_EXHAUSTED",
                                          "Segmentation fault"};
    for (size_t idx = 0; idx < ARRAY_LEN(CRASHES); idx++) {
        struct probe probe = {.literal = str_of(CRASHES[idx])};
        if (add_literal(root, f, &probe, err) < 0) {
            return -1;
        }
        f->crash_mask |= 1ull << probe.bit;
    }
    return 0;
}

static int check_total_from(const struct format *f, const struct json *root, struct err *err)
{
    for (size_t idx = 0; f->total_from.ptr && idx < f->n_facts; idx++) {
        if (str_eq(f->facts[idx].name, f->total_from)) {
            return 0;
        }
    }
    return f->total_from.ptr
               ? json_fail(root, err, "total_from: there is no fact \"%.40s\"", f->total_from.ptr)
               : 0;
}

int format_decode(const struct json *root, struct arena *arena, struct format **ret_format,
                  struct err *err)
{
    struct raw_format raw = {0};
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
    f->total_from = raw.total_from;
    if (decode_prefixes(&d, root, err) < 0 || decode_series(&d, root, err) < 0 ||
        decode_probe(&d, root, "run_start", &f->run_start, err) < 0 ||
        decode_probe(&d, root, "end", &f->end, err) < 0 ||
        decode_probe(&d, root, "fatal", &f->fatal, err) < 0 || decode_done(&d, root, err) < 0 ||
        decode_facts(&d, root, err) < 0 || add_crashes(root, f, err) < 0 ||
        decode_rules(&d, root, err) < 0) {
        format_release(f);
        return -1;
    }
    if (check_total_from(f, root, err) < 0) {
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

size_t format_rules(const struct format *format, const struct rule **ret_rules)
{
    *ret_rules = format->rules;
    return format->n_rules;
}

const struct rule *format_rule(const struct format *format, struct str id)
{
    for (size_t idx = 0; idx < format->n_rules; idx++) {
        struct str full = format->rules[idx].id;
        if (str_eq(full, id) || str_eq(str_sub(full, format->id.len + 1, full.len), id)) {
            return &format->rules[idx];
        }
    }
    return NULL;
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
