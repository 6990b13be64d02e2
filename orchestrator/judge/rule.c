/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "judge/rule.h"

#include <math.h>

#include "base/strbuf.h"
#include "codec/json_table.h"
#include "judge/rule_impl.h"

#define REQUIRED_MAX  64
#define LOGS_REQUIRED 1000000
#define S_PER_MIN     60.0
#define S_PER_H       3600.0
#define COUNT_MAX     1000000000

static const char *const STATISTIC_NAMES[STAT_COUNT] = {[STAT_MEAN] = "mean",
                                                        [STAT_MEDIAN] = "median",
                                                        [STAT_TRIMMED_MEAN] = "trimmed_mean",
                                                        [STAT_OLYMPIC_MEAN] = "olympic_mean",
                                                        [STAT_HARMONIC_MEAN] = "harmonic_mean",
                                                        [STAT_TIME_WEIGHTED_MEAN] =
                                                            "time_weighted_mean",
                                                        [STAT_MIN] = "min",
                                                        [STAT_MAX] = "max",
                                                        [STAT_FIRST] = "first",
                                                        [STAT_LAST] = "last",
                                                        [STAT_TIMESTAMPS] = "timestamps",
                                                        [STAT_TOOL] = "tool",
                                                        [STAT_ELAPSED] = "elapsed",
                                                        [STAT_ENGINE] = "engine"};
static const char *const SCALE_NAMES[] = {[SCALE_NONE] = "none",
                                          [SCALE_GPUS] = "gpus",
                                          [SCALE_NODES] = "nodes",
                                          [SCALE_GLOBAL_BATCH_OVER] = "global_batch_over",
                                          [SCALE_GLOBAL_BATCH] = "global_batch",
                                          [SCALE_FACT_OVER] = "fact_over",
                                          [SCALE_FACT] = "fact"};
static const char *const ROUNDING_NAMES[] = {
    [ROUND_NEAREST] = "nearest", [ROUND_TRUNCATE] = "truncate"};
static const char *const RUN_NAMES[] = {
    [RUN_ONLY] = "only", [RUN_FIRST] = "first", [RUN_LAST] = "last"};
static const char *const REPEATS_NAMES[] = {[REPEATS_SINGLE] = "single",
                                            [REPEATS_MEAN] = "mean",
                                            [REPEATS_MEDIAN] = "median",
                                            [REPEATS_OLYMPIC] = "olympic"};
static const char *const ORIGIN_NAMES[] = {"stated", "inferred", "own"};

const char *statistic_name(enum statistic statistic)
{
    ASSERT((unsigned)statistic < STAT_COUNT);
    return STATISTIC_NAMES[statistic];
}

const char *scale_name(enum scale scale)
{
    return SCALE_NAMES[scale];
}

const char *rounding_name(enum rounding rounding)
{
    return ROUNDING_NAMES[rounding];
}

const char *repeats_name(enum repeats repeats)
{
    return REPEATS_NAMES[repeats];
}

const char *run_choice_name(enum run_choice run)
{
    return RUN_NAMES[run];
}

/* Index of name, or -1. */
static int find_name(struct str name, const char *const *names, size_t n)
{
    for (size_t idx = 0; idx < n; idx++) {
        if (str_eq_z(name, names[idx])) {
            return (int)idx;
        }
    }
    return -1;
}

struct choices {
    const char *const *names;
    size_t n;
};

/* The index of the name in member `key` of at; *ret_idx stays if the member is absent. */
static int decode_choice(const struct json *at, const char *key, struct str value,
                         const struct choices *of, int *ret_idx, struct err *err)
{
    struct json member;
    int idx = find_name(value, of->names, of->n);
    if (!value.ptr) {
        return 0;
    }
    if (idx < 0) {
        char known[200] = "";
        size_t len = 0;
        for (size_t each = 0; each < of->n && len < sizeof(known); each++) {
            len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s", each ? ", " : "",
                                    of->names[each]);
        }
        if (json_member(at, key, &member, err) < 0) {
            return -1;
        }
        return json_fail(&member, err, "expected one of %s, found \"%.60s\"", known, value.ptr);
    }
    *ret_idx = idx;
    return 0;
}
#define CHOICE(at, key, value, names, ret, err)                                                    \
    decode_choice(at, key, value, &(struct choices){names, ARRAY_LEN(names)}, ret, err)

/* Filled by json_decode; the rest of the rule is derived from it. */
struct raw {
    struct str name, series, run, statistic, scale, rounding, repeats, origin, source, fact, unit;
    int64_t skip, drop_last, last;
    bool match_gpus, skips_warmup, is_default;
    bool steps, trim, success, required, targets; /* only there for the table: read by hand */
};

static const struct json_field RAW_FIELDS[] = {
    ROW("name", struct raw, name, JSON_REQUIRED),
    ROW("series", struct raw, series, JSON_REQUIRED),
    ROW("run", struct raw, run, 0),
    ROW("match_gpus", struct raw, match_gpus, 0),
    ROW("warmup", struct raw, skips_warmup, 0),
    ROW("skip", struct raw, skip, 0, .max = COUNT_MAX),
    ROW("drop_last", struct raw, drop_last, 0, .max = COUNT_MAX),
    ROW("last", struct raw, last, 0, .max = COUNT_MAX),
    ROW_ANY("steps", JSON_NULLABLE),
    ROW_ANY("trim", JSON_NULLABLE),
    ROW("statistic", struct raw, statistic, JSON_REQUIRED),
    ROW("scale", struct raw, scale, 0),
    ROW("fact", struct raw, fact, 0),
    ROW("unit", struct raw, unit, 0),
    ROW("default", struct raw, is_default, 0),
    ROW("rounding", struct raw, rounding, 0),
    ROW("repeats", struct raw, repeats, 0),
    ROW_ANY("success", 0),
    ROW_ANY("required", 0),
    ROW_ANY("targets", 0),
    ROW("origin", struct raw, origin, JSON_REQUIRED),
    ROW("source", struct raw, source, JSON_REQUIRED),
};

static int decode_steps(const struct json *at, struct window *window, struct err *err)
{
    struct json list;
    struct json item;
    size_t n;
    if (!json_find(at, "steps", &list) || json_is_null(&list)) {
        return 0;
    }
    if (json_expect_array(&list, 2, &n, err) < 0) {
        return -1;
    }
    if (n != 2) {
        return json_fail(&list, err, "expected [first, last], found %zu numbers", n);
    }
    if (!json_first(&list, &item) || json_i64(&item, 0, INT64_MAX, &window->step_from, err) < 0 ||
        !json_next(&item) || json_i64(&item, 0, INT64_MAX, &window->step_to, err) < 0) {
        return -1;
    }
    if (window->step_to < window->step_from) {
        return json_fail(&list, err, "expected the first step before the last");
    }
    window->has_steps = true;
    return 0;
}

static int decode_trim(const struct json *at, struct rule *rule, struct err *err)
{
    static const struct json_field FIELDS[] = {
        ROW("count", struct rule, trim_count, 0, .max = COUNT_MAX),
        ROW("share", struct rule, trim_share, 0),
    };
    struct json trim;
    bool is_there = json_find(at, "trim", &trim) && !json_is_null(&trim);
    if (is_there != (rule->statistic == STAT_TRIMMED_MEAN)) {
        return json_fail(at, err, "\"trim\" belongs to statistic trimmed_mean only");
    }
    if (!is_there) {
        return 0;
    }
    if (json_decode(&trim, NULL, FIELDS, ARRAY_LEN(FIELDS), rule, err) < 0) {
        return -1;
    }
    if (!(rule->trim_share >= 0 && rule->trim_share < 0.5)) {
        return json_fail(&trim, err, "expected a share from 0 to under 0.5");
    }
    if (rule->trim_count == 0 && rule->trim_share == 0) {
        return json_fail(&trim, err, "expected a count or a share over 0");
    }
    return 0;
}

static int decode_choices(const struct json *at, const struct raw *raw, struct rule *rule,
                          struct err *err)
{
    int run = RUN_ONLY;
    int statistic = STAT_MEAN;
    int scale = SCALE_NONE;
    int rounding = ROUND_NEAREST;
    int repeats = REPEATS_SINGLE;
    int origin = 0;
    if (CHOICE(at, "run", raw->run, RUN_NAMES, &run, err) < 0 ||
        CHOICE(at, "statistic", raw->statistic, STATISTIC_NAMES, &statistic, err) < 0 ||
        CHOICE(at, "scale", raw->scale, SCALE_NAMES, &scale, err) < 0 ||
        CHOICE(at, "rounding", raw->rounding, ROUNDING_NAMES, &rounding, err) < 0 ||
        CHOICE(at, "repeats", raw->repeats, REPEATS_NAMES, &repeats, err) < 0 ||
        CHOICE(at, "origin", raw->origin, ORIGIN_NAMES, &origin, err) < 0) {
        return -1;
    }
    rule->run = (enum run_choice)run;
    rule->statistic = (enum statistic)statistic;
    rule->scale = (enum scale)scale;
    rule->rounding = (enum rounding)rounding;
    rule->repeats = (enum repeats)repeats;
    rule->origin = raw->origin;
    return 0;
}

static bool is_slug(struct str s)
{
    for (size_t idx = 0; idx < s.len; idx++) {
        char c = s.ptr[idx];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-')) {
            return false;
        }
    }
    return s.len > 0;
}

/* ---- from several logs to one number ---- */

double rule_unit_s(struct str unit)
{
    return str_eq_z(unit, "s")     ? 1
           : str_eq_z(unit, "min") ? S_PER_MIN
           : str_eq_z(unit, "h")   ? S_PER_H
                                   : 0;
}

static int decode_success(const struct json *at, struct arena *arena, struct rule *rule,
                          struct err *err)
{
    static const struct json_field FIELDS[] = {
        ROW("fact", struct rule_success, fact, JSON_REQUIRED),
        ROW("value", struct rule_success, value, JSON_REQUIRED),
    };
    struct json member;
    if (!json_find(at, "success", &member)) {
        return 0;
    }
    if (rule->repeats != REPEATS_OLYMPIC) {
        return json_fail(&member, err, "\"success\" belongs to repeats olympic only");
    }
    return json_decode(&member, arena, FIELDS, ARRAY_LEN(FIELDS), &rule->success, err);
}

static int decode_required(const struct json *at, struct arena *arena, struct rule *rule,
                           struct err *err)
{
    static const struct json_field FIELDS[] = {
        ROW("fact", struct rule_required, fact, JSON_REQUIRED),
        ROW_ANY("logs", JSON_REQUIRED),
        ROW("source", struct rule_required, source, 0),
    };
    struct rule_required *required = &rule->required;
    struct json member;
    struct json list;
    struct json item;
    if (!json_find(at, "required", &member)) {
        return 0;
    }
    if (json_decode(&member, arena, FIELDS, ARRAY_LEN(FIELDS), required, err) < 0 ||
        json_member(&member, "logs", &list, err) < 0) {
        return -1;
    }
    if (!json_is_object(&list)) {
        return json_fail(&list, err, "expected an object: numbers of logs by the fact's value");
    }
    required->items = arena_array(arena, struct rule_count, REQUIRED_MAX);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        struct rule_count *count = &required->items[required->n];
        if (required->n == REQUIRED_MAX) {
            return json_fail(&list, err, "expected at most %d members", REQUIRED_MAX);
        }
        if (json_i64(&item, 1, LOGS_REQUIRED, &count->n, err) < 0) {
            return -1;
        }
        count->value = str_dup(arena, str_of(item.key));
        required->n++;
    }
    return 0;
}

static int add_targets(const struct json *list, struct arena *arena, bool is_most,
                       struct rule *rule, struct err *err)
{
    struct json item;
    for (bool more = json_first(list, &item); more; more = json_next(&item)) {
        struct rule_target *target = &rule->targets[rule->n_targets];
        if (rule->n_targets == REQUIRED_MAX) {
            return json_fail(list, err, "expected at most %d members", REQUIRED_MAX);
        }
        if (json_f64(&item, &target->value, err) < 0) {
            return -1;
        }
        target->model = str_dup(arena, str_of(item.key));
        target->is_most = is_most;
        rule->n_targets++;
    }
    return 0;
}

static int decode_targets(const struct json *at, struct arena *arena, struct rule *rule,
                          struct err *err)
{
    static const struct json_field FIELDS[] = {
        ROW_ANY("at_least", JSON_REQUIRED),
        ROW_ANY("at_most", JSON_REQUIRED),
    };
    struct json member;
    struct json least;
    struct json most;
    if (!json_find(at, "targets", &member)) {
        return 0;
    }
    if (json_decode(&member, arena, FIELDS, ARRAY_LEN(FIELDS), rule, err) < 0 ||
        json_member(&member, "at_least", &least, err) < 0 ||
        json_member(&member, "at_most", &most, err) < 0) {
        return -1;
    }
    if (!json_is_object(&least) || !json_is_object(&most)) {
        return json_fail(&member, err, "expected objects: a number by the model's name");
    }
    rule->targets = arena_array(arena, struct rule_target, REQUIRED_MAX);
    return add_targets(&least, arena, false, rule, err) < 0
               ? -1
               : add_targets(&most, arena, true, rule, err);
}

const struct rule_target *rule_target_for(const struct rule *rule, struct str model)
{
    for (size_t idx = 0; idx < rule->n_targets; idx++) {
        if (str_eq(rule->targets[idx].model, model)) {
            return &rule->targets[idx];
        }
    }
    return NULL;
}

static int decode_repeats(const struct json *at, struct arena *arena, struct rule *rule,
                          struct err *err)
{
    return decode_success(at, arena, rule, err) < 0 || decode_required(at, arena, rule, err) < 0
               ? -1
               : decode_targets(at, arena, rule, err);
}

/* NULL if the run states none, or several that differ. */
static const struct fact *one_fact(const struct measurement *m, struct str name, int32_t run)
{
    const struct fact *found = NULL;
    for (size_t idx = 0; idx < m->n_facts; idx++) {
        if (!str_eq(m->facts[idx].name, name) || !fact_is_of(&m->facts[idx], run)) {
            continue;
        }
        if (found) {
            return NULL;
        }
        found = &m->facts[idx];
    }
    return found;
}

int rule_repeat(const struct rule *rule, const struct measurement *m, const struct rule_case *of,
                struct arena *arena, struct rule_repeat *ret_repeat, struct err *err)
{
    const struct rule_success *success = &rule->success;
    struct rule_value value = {0};
    if (success->fact.ptr) {
        const struct fact *fact = one_fact(m, success->fact, rule_run(rule, m));
        if (!fact || !str_eq(fact->value, success->value)) {
            *ret_repeat = (struct rule_repeat){
                .value = (double)INFINITY,
                .why = str_of(fact ? arena_printf(arena, "its %.*s is %.*s", STR_ARG(success->fact),
                                                  STR_ARG(fact->value))
                                   : arena_printf(arena, "it does not state its %.*s once",
                                                  STR_ARG(success->fact)))};
            return 0;
        }
    }
    if (rule_apply(rule, m, of, &value, err) < 0) {
        return -1;
    }
    *ret_repeat = (struct rule_repeat){value.value, STR_EMPTY, value};
    return 0;
}

void rule_dropped(const struct rule_repeat *repeats, size_t n, size_t *ret_fastest,
                  size_t *ret_slowest)
{
    size_t fastest = 0;
    size_t slowest = 0;
    ASSERT(n >= 2);
    for (size_t idx = 1; idx < n; idx++) {
        fastest = repeats[idx].value < repeats[fastest].value ? idx : fastest;
        slowest = repeats[idx].value >= repeats[slowest].value ? idx : slowest;
    }
    *ret_fastest = fastest;
    *ret_slowest = slowest;
}

int64_t rule_required_for(const struct rule *rule, const struct measurement *m)
{
    const struct rule_required *required = &rule->required;
    const struct fact *fact =
        required->fact.ptr ? one_fact(m, required->fact, rule_run(rule, m)) : NULL;
    for (size_t idx = 0; fact && idx < required->n; idx++) {
        if (str_eq(required->items[idx].value, fact->value)) {
            return required->items[idx].n;
        }
    }
    return 0;
}

int rule_decode(const struct json *at, struct arena *arena, struct str format_id,
                struct rule *ret_rule, struct err *err)
{
    struct raw raw = {0};
    struct rule rule = {0};
    if (json_decode(at, arena, RAW_FIELDS, ARRAY_LEN(RAW_FIELDS), &raw, err) < 0) {
        return -1;
    }
    if (!is_slug(raw.name)) {
        return json_fail(at, err, "expected a name of a-z, 0-9 and -, found \"%.60s\"",
                         raw.name.ptr);
    }
    rule.id = str_of(arena_printf(arena, "%.*s/%.*s", STR_ARG(format_id), STR_ARG(raw.name)));
    rule.series = raw.series;
    rule.match_gpus = raw.match_gpus;
    rule.source = raw.source;
    rule.window.skip = raw.skip;
    rule.window.drop_last = raw.drop_last;
    rule.window.last = raw.last;
    rule.window.skips_warmup = raw.skips_warmup;
    rule.fact = raw.fact;
    rule.unit = raw.unit;
    rule.is_default = raw.is_default;
    if (decode_choices(at, &raw, &rule, err) < 0 || decode_steps(at, &rule.window, err) < 0 ||
        decode_trim(at, &rule, err) < 0 || decode_repeats(at, arena, &rule, err) < 0) {
        return -1;
    }
    if ((rule.statistic == STAT_TIMESTAMPS || rule.statistic == STAT_ELAPSED) &&
        rule.scale != SCALE_NONE) {
        return json_fail(at, err, "statistic %s is for the whole job: expected scale none",
                         statistic_name(rule.statistic));
    }
    if (rule_is_by_fact(&rule) != (rule.fact.len > 0) ||
        rule_is_by_fact(&rule) != (rule.unit.len > 0 && rule.statistic != STAT_ELAPSED)) {
        return json_fail(at, err, "\"fact\" and \"unit\" belong to scales fact and fact_over only");
    }
    if (rule.statistic == STAT_ELAPSED && rule.unit.len > 0 && rule_unit_s(rule.unit) == 0) {
        return json_fail(at, err, "unit: expected s, min or h, found \"%.40s\"", rule.unit.ptr);
    }
    *ret_rule = rule;
    return 0;
}

static void describe_window(const struct window *w, struct strbuf *out)
{
    if (w->has_steps) {
        strbuf_printf(out, ", steps %" PRId64 " to %" PRId64, w->step_from, w->step_to);
    }
    if (w->skips_warmup) {
        strbuf_add_z(out, ", after the warm-up");
    }
    if (w->skip) {
        strbuf_printf(out, ", skip %" PRId64, w->skip);
    }
    if (w->drop_last) {
        strbuf_printf(out, ", drop the last %" PRId64, w->drop_last);
    }
    if (w->last) {
        strbuf_printf(out, ", the last %" PRId64, w->last);
    }
}

void rule_describe(const struct rule *rule, struct strbuf *out)
{
    static const char *const SCALES[] = {[SCALE_NONE] = "",
                                         [SCALE_GPUS] = ", x GPUs",
                                         [SCALE_NODES] = ", x nodes",
                                         [SCALE_GLOBAL_BATCH_OVER] = ", global batch over it",
                                         [SCALE_GLOBAL_BATCH] = ", x global batch",
                                         [SCALE_FACT_OVER] = ", a step's items over it",
                                         [SCALE_FACT] = ", x a step's items"};
    char words[32];
    snprintf(words, sizeof(words), "%s", statistic_name(rule->statistic));
    for (char *c = words; *c; c++) {
        if (*c == '_') {
            *c = ' ';
        }
    }
    if (rule->statistic == STAT_TOOL) {
        strbuf_printf(out, "the tool's own %.*s", STR_ARG(rule->series));
    } else if (rule->statistic == STAT_ELAPSED) {
        struct str unit = rule->unit.len ? rule->unit : STR_LIT("seconds");
        strbuf_printf(out, "%.*s between the first and the last %.*s", STR_ARG(unit),
                      STR_ARG(rule->series));
    } else if (rule->statistic == STAT_TIMESTAMPS) {
        strbuf_printf(out, "items between the timestamps of %.*s", STR_ARG(rule->series));
    } else {
        strbuf_printf(out, "%s of %.*s", words, STR_ARG(rule->series));
    }
    describe_window(&rule->window, out);
    if (rule->trim_count || rule->trim_share > 0) {
        strbuf_printf(out, ", trim %" PRId64 "+%" PRId64, rule->trim_count, rule->trim_count);
        if (rule->trim_share > 0) {
            strbuf_printf(out, " or %g %% each if that is more", 100 * rule->trim_share);
        }
    }
    if (rule->match_gpus) {
        strbuf_add_z(out, ", row of the GPU count");
    }
    if (rule->run != RUN_ONLY) {
        strbuf_printf(out, ", %s run", RUN_NAMES[rule->run]);
    }
    strbuf_add_z(out, SCALES[rule->scale]);
    if (rule->rounding == ROUND_TRUNCATE) {
        strbuf_add_z(out, ", truncated");
    }
    if (rule->repeats != REPEATS_SINGLE) {
        strbuf_printf(out, ", %s over the repeats", REPEATS_NAMES[rule->repeats]);
    }
}

const char *sample_use_name(enum sample_use use)
{
    static const char *const NAMES[] = {
        [USE_COUNTED] = "counted",       [USE_TRIMMED] = "trimmed",
        [USE_BETWEEN] = "between",       [USE_OTHER_RUN] = "other_run",
        [USE_OTHER_GPUS] = "other_gpus", [USE_OUTSIDE_STEPS] = "outside_steps",
        [USE_WARMUP] = "warmup",         [USE_SKIPPED] = "skipped",
        [USE_DROPPED] = "dropped",       [USE_BEFORE_LAST] = "before_last"};
    return NAMES[use];
}

/* ---- the rules of a format ---- */

static int decode_rules(const struct json *root, struct arena *arena, struct format *format,
                        struct err *err)
{
    struct json list;
    struct json item;
    struct rule *rules;
    size_t n = 0;
    size_t n_max = 0;
    if (json_member(root, "rules", &list, err) < 0 ||
        json_expect_array(&list, FORMAT_RULES_MAX, &n_max, err) < 0) {
        return -1;
    }
    rules = arena_array(arena, struct rule, n_max ? n_max : 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        struct rule *rule = &rules[n];
        if (rule_decode(&item, arena, format_id(format), rule, err) < 0) {
            return -1;
        }
        if (format_rule(format, rule->id)) {
            return json_fail(&item, err, "two rules \"%.*s\"", STR_ARG(rule->id));
        }
        if (!format_has_series(format, rule->series)) {
            return json_fail(&item, err, "the format has no series \"%.60s\"", rule->series.ptr);
        }
        format_set_rules(format, rules, ++n);
    }
    return 0;
}

int format_read(const struct json *root, struct arena *arena, struct format **ret_format,
                struct err *err)
{
    struct format *format;
    if (format_decode(root, arena, &format, err) < 0) {
        return -1;
    }
    if (decode_rules(root, arena, format, err) < 0) {
        format_release(format);
        return -1;
    }
    *ret_format = format;
    return 0;
}

const struct rule *format_rule(const struct format *format, struct str id)
{
    const struct rule *rules;
    size_t n = format_rules(format, &rules);
    for (size_t idx = 0; idx < n; idx++) {
        struct str full = rules[idx].id;
        if (str_eq(full, id) || str_eq(str_sub(full, format_id(format).len + 1, full.len), id)) {
            return &rules[idx];
        }
    }
    return NULL;
}

const struct rule *format_rule_of(const struct format *format, struct str series)
{
    const struct rule *rules;
    size_t n = format_rules(format, &rules);
    for (size_t idx = 0; idx < n; idx++) {
        if (rules[idx].is_default && str_eq(rules[idx].series, series)) {
            return &rules[idx];
        }
    }
    return NULL;
}
