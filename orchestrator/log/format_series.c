/* SPDX-License-Identifier: Apache-2.0 */
/* The series of a format. */
#include "base/base.h"

#include "log/format_decode.h"

#include "report/vocabulary.h"

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
    struct str name, literal, pattern, unit, scope, quantity, like, until;
    bool primary, repeats, after, stands_in, is_on_grid, is_grouped;
    int64_t step_from, epoch_from, first_by;
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
    {"stands_in", JSON_BOOL, 0, RS(stands_in), 0, 0},
    {"grid", JSON_BOOL, 0, RS(is_on_grid), 0, 0},
    {"grouped", JSON_BOOL, 0, RS(is_grouped), 0, 0},
    {"step_from", JSON_I64, 0, RS(step_from), 0, 1},
    {"epoch_from", JSON_I64, 0, RS(epoch_from), 0, 1},
    {"first_by", JSON_I64, 0, RS(first_by), 0, INT32_MAX},
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
                         "expected quantity rate, running_mean, step_time, summary, clock, "
                         "score or progress, found \"%.40s\"",
                         raw->quantity.ptr);
    }
    if (!is_unit_of(vocabulary_of(at), raw->unit, s->quantity)) {
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
        format_probe(d, at, "after", &s->after, err) < 0 ||
        format_pattern(at, raw.pattern, &s->line.pattern, err) < 0 ||
        decode_groups(at, s, err) < 0) {
        return -1;
    }
    s->line.bit = NO_LITERAL;
    s->line.literal = raw.literal;
    s->is_bare = raw.literal.len && str_find(raw.pattern, STR_LIT("oss")) < 0;
    if (raw.literal.len && format_add_literal(at, d->format, &s->line, err) < 0) {
        return -1;
    }
    if (raw.like.ptr && !raw.literal.len) {
        return json_fail(at, err, "\"like\" is for lines that hold the literal, but there is none");
    }
    if (raw.like.ptr && format_pattern(at, raw.like, &s->like, err) < 0) {
        return -1;
    }
    if (raw.until.ptr && !s->after.pattern) {
        return json_fail(at, err,
                         "\"until\" closes what \"after\" opens, but there is no \"after\"");
    }
    return raw.until.ptr ? format_pattern(at, raw.until, &s->until, err) : 0;
}

int format_series(const struct decoder *d, const struct json *root, struct err *err)
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
