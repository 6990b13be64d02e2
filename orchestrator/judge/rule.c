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

const char *const STATISTIC_NAMES[STAT_COUNT] = {[STAT_MEAN] = "mean",
                                                 [STAT_MEDIAN] = "median",
                                                 [STAT_TRIMMED_MEAN] = "trimmed_mean",
                                                 [STAT_OLYMPIC_MEAN] = "olympic_mean",
                                                 [STAT_HARMONIC_MEAN] = "harmonic_mean",
                                                 [STAT_TIME_WEIGHTED_MEAN] = "time_weighted_mean",
                                                 [STAT_MIN] = "min",
                                                 [STAT_MAX] = "max",
                                                 [STAT_FIRST] = "first",
                                                 [STAT_LAST] = "last",
                                                 [STAT_TIMESTAMPS] = "timestamps",
                                                 [STAT_TOOL] = "tool",
                                                 [STAT_ELAPSED] = "elapsed",
                                                 [STAT_ENGINE] = "engine"};
const char *const SCALE_NAMES[] = {[SCALE_NONE] = "none",
                                   [SCALE_GPUS] = "gpus",
                                   [SCALE_NODES] = "nodes",
                                   [SCALE_GLOBAL_BATCH_OVER] = "global_batch_over",
                                   [SCALE_GLOBAL_BATCH] = "global_batch",
                                   [SCALE_FACT_OVER] = "fact_over",
                                   [SCALE_FACT] = "fact"};
const char *const ROUNDING_NAMES[] = {[ROUND_NEAREST] = "nearest", [ROUND_TRUNCATE] = "truncate"};
const char *const RUN_CHOICE_NAMES[] = {
    [RUN_ONLY] = "only", [RUN_FIRST] = "first", [RUN_LAST] = "last"};
const char *const REPEATS_NAMES[] = {[REPEATS_SINGLE] = "single",
                                     [REPEATS_MEAN] = "mean",
                                     [REPEATS_MEDIAN] = "median",
                                     [REPEATS_OLYMPIC] = "olympic"};
static const char *const ORIGIN_NAMES[] = {"stated", "inferred", "own"};

bool rule_is_by_fact(const struct rule *rule)
{
    return rule->scale == SCALE_FACT_OVER || rule->scale == SCALE_FACT;
}

static int get_steps(const struct json *list, struct arena *arena UNUSED, void *out,
                     struct err *err)
{
    struct window *window = out;
    struct json item;
    size_t n;
    if (json_expect_array(list, 2, &n, err) < 0) {
        return -1;
    }
    if (n != 2) {
        return json_fail(list, err, "expected [first, last], found %zu numbers", n);
    }
    if (!json_first(list, &item) || json_i64(&item, 0, INT64_MAX, &window->step_from, err) < 0 ||
        !json_next(&item) || json_i64(&item, 0, INT64_MAX, &window->step_to, err) < 0) {
        return -1;
    }
    window->has_steps = true;
    return window->step_to < window->step_from
               ? json_fail(list, err, "expected the first step before the last")
               : 0;
}

static int check_trim(const struct json *at, struct arena *arena UNUSED, void *out, struct err *err)
{
    const struct rule *rule = out;
    if (!(rule->trim_share >= 0 && rule->trim_share < 0.5)) {
        return json_fail(at, err, "expected a share from 0 to under 0.5");
    }
    return rule->trim_count == 0 && rule->trim_share == 0
               ? json_fail(at, err, "expected a count or a share over 0")
               : 0;
}

/* ---- from several logs to one number ---- */

double rule_unit_s(struct str unit)
{
    return str_eq_z(unit, "s")     ? 1
           : str_eq_z(unit, "min") ? S_PER_MIN
           : str_eq_z(unit, "h")   ? S_PER_H
                                   : 0;
}

/* An object of numbers by any names: how many there are. */
static int count_members(const struct json *at, size_t *ret_n, struct err *err)
{
    struct json item;
    *ret_n = 0;
    if (!json_is_object(at)) {
        return json_fail(at, err, "expected an object: numbers by name");
    }
    for (bool more = json_first(at, &item); more; more = json_next(&item)) {
        ++*ret_n;
    }
    return *ret_n <= REQUIRED_MAX ? 0
                                  : json_fail(at, err, "expected at most %d members", REQUIRED_MAX);
}

static int get_counts(const struct json *at, struct arena *arena, void *out, struct err *err)
{
    struct rule_required *required = out;
    struct json item;
    size_t n;
    if (count_members(at, &n, err) < 0) {
        return -1;
    }
    required->items = arena_array(arena, struct rule_count, n + 1);
    for (bool more = json_first(at, &item); more; more = json_next(&item)) {
        struct rule_count *count = &required->items[required->n++];
        count->value = str_dup(arena, str_of(item.key));
        if (json_i64(&item, 1, LOGS_REQUIRED, &count->n, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* at_least stands before at_most. */
static int get_targets(const struct json *at, struct arena *arena, void *out, struct err *err)
{
    struct rule *rule = out;
    struct json item;
    size_t n;
    bool is_most = strcmp(at->key, "at_most") == 0;
    if (count_members(at, &n, err) < 0) {
        return -1;
    }
    if (!rule->targets) {
        rule->targets = arena_array(arena, struct rule_target, (size_t)2 * REQUIRED_MAX);
    }
    for (bool more = json_first(at, &item); more; more = json_next(&item)) {
        struct rule_target *target = &rule->targets[rule->n_targets++];
        *target = (struct rule_target){str_dup(arena, str_of(item.key)), 0, is_most};
        if (json_f64(&item, &target->value, err) < 0) {
            return -1;
        }
    }
    return 0;
}

const struct rule_target *rule_target_for(const struct rule *rule, struct str model)
{
    return STR_NAMED(rule->targets, rule->n_targets, model, model);
}

const struct fact *rule_one_fact(const struct measurement *m, struct str name, int32_t run)
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
        const struct fact *fact = rule_one_fact(m, success->fact, rule_run(rule, m));
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

void rule_dropped(const double *values, size_t n, size_t *ret_fastest, size_t *ret_slowest)
{
    size_t fastest = 0;
    size_t slowest = 0;
    ASSERT(n >= 2);
    for (size_t idx = 1; idx < n; idx++) {
        fastest = values[idx] < values[fastest] ? idx : fastest;
        slowest = values[idx] >= values[slowest] ? idx : slowest;
    }
    *ret_fastest = fastest;
    *ret_slowest = slowest;
}

int64_t rule_required_for(const struct rule *rule, const struct measurement *m)
{
    const struct rule_required *required = &rule->required;
    const struct fact *fact =
        required->fact.ptr ? rule_one_fact(m, required->fact, rule_run(rule, m)) : NULL;
    for (size_t idx = 0; fact && idx < required->n; idx++) {
        if (str_eq(required->items[idx].value, fact->value)) {
            return required->items[idx].n;
        }
    }
    return 0;
}

static int check_scale(const struct json *at, const struct rule *rule, struct err *err)
{
    bool is_by_fact = rule_is_by_fact(rule);
    bool is_elapsed = rule->statistic == STAT_ELAPSED;
    if ((rule->statistic == STAT_TIMESTAMPS || is_elapsed) && rule->scale != SCALE_NONE) {
        return json_fail(at, err, "statistic %s is for the whole job: expected scale none",
                         STATISTIC_NAMES[rule->statistic]);
    }
    if (is_by_fact != (rule->fact.len > 0) || is_by_fact != (rule->unit.len > 0 && !is_elapsed)) {
        return json_fail(at, err, "\"fact\" and \"unit\" belong to scales fact and fact_over only");
    }
    return is_elapsed && rule->unit.len > 0 && rule_unit_s(rule->unit) == 0
               ? json_fail(at, err, "unit: expected s, min or h, found \"%.40s\"", rule->unit.ptr)
               : 0;
}

static int check_rule(const struct json *at, const struct rule *rule, struct err *err)
{
    if ((rule->trim_count || rule->trim_share != 0) != (rule->statistic == STAT_TRIMMED_MEAN)) {
        return json_fail(at, err, "\"trim\" belongs to statistic trimmed_mean only");
    }
    if (rule->success.fact.ptr && rule->repeats != REPEATS_OLYMPIC) {
        return json_fail(at, err, "\"success\" belongs to repeats olympic only");
    }
    return check_scale(at, rule, err);
}

static const struct json_field TRIM_ROWS[] = {
    ROW("count", struct rule, trim_count, 0, .max = COUNT_MAX),
    ROW("share", struct rule, trim_share, 0),
};
static const struct json_field SUCCESS_ROWS[] = {
    ROW("fact", struct rule_success, fact, JSON_REQUIRED),
    ROW("value", struct rule_success, value, JSON_REQUIRED),
};
static const struct json_field REQUIRED_ROWS[] = {
    ROW("fact", struct rule_required, fact, JSON_REQUIRED),
    ROW_ANY("logs", JSON_REQUIRED, .get = get_counts),
    ROW("source", struct rule_required, source, 0),
};
static const struct json_field TARGETS_ROWS[] = {
    ROW_ANY("at_least", JSON_REQUIRED, .get = get_targets),
    ROW_ANY("at_most", JSON_REQUIRED, .get = get_targets),
};
static const struct json_form NAME = {.pattern = "^[a-z0-9-]+$",
                                      .what = "a name of a-z, 0-9 and -"};
static const struct json_field RULE_ROWS[] = {
    ROW("name", struct rule, id, JSON_REQUIRED, .form = &NAME),
    ROW("series", struct rule, series, JSON_REQUIRED),
    ROW_WORD("run", struct rule, run, RUN_CHOICE_NAMES, 0),
    ROW("match_gpus", struct rule, match_gpus, 0),
    ROW("warmup", struct rule, window.skips_warmup, 0),
    ROW("skip", struct rule, window.skip, 0, .max = COUNT_MAX),
    ROW("drop_last", struct rule, window.drop_last, 0, .max = COUNT_MAX),
    ROW("last", struct rule, window.last, 0, .max = COUNT_MAX),
    ROW_GET("steps", struct rule, window, get_steps, JSON_NULLABLE),
    ROW_INSIDE("trim", TRIM_ROWS, JSON_NULLABLE, .check = check_trim),
    ROW_WORD("statistic", struct rule, statistic, STATISTIC_NAMES, JSON_REQUIRED),
    ROW_WORD("scale", struct rule, scale, SCALE_NAMES, 0),
    ROW("fact", struct rule, fact, 0),
    ROW("unit", struct rule, unit, 0),
    ROW("default", struct rule, is_default, 0),
    ROW_WORD("rounding", struct rule, rounding, ROUNDING_NAMES, 0),
    ROW_WORD("repeats", struct rule, repeats, REPEATS_NAMES, 0),
    ROW_OBJECT("success", struct rule, success, SUCCESS_ROWS, 0),
    ROW_OBJECT("required", struct rule, required, REQUIRED_ROWS, 0),
    ROW_INSIDE("targets", TARGETS_ROWS, 0),
    ROW("origin", struct rule, origin, JSON_REQUIRED, .names = ORIGIN_NAMES,
        .n_names = ARRAY_LEN(ORIGIN_NAMES)),
    ROW("source", struct rule, source, JSON_REQUIRED),
};

int rule_decode(const struct json *at, struct arena *arena, struct str format_id, struct rule *rule,
                struct err *err)
{
    *rule = (struct rule){.n_targets = 0};
    if (json_decode(at, arena, RULE_ROWS, ARRAY_LEN(RULE_ROWS), rule, err) < 0 ||
        check_rule(at, rule, err) < 0) {
        return -1;
    }
    rule->id = str_printf(arena, "%.*s/%.*s", STR_ARG(format_id), STR_ARG(rule->id));
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
        strbuf_printf(out, ", without the first %" PRId64, w->skip);
    }
    if (w->drop_last) {
        strbuf_printf(out, ", without the last %" PRId64, w->drop_last);
    }
    if (w->last) {
        strbuf_printf(out, ", only the last %" PRId64, w->last);
    }
}

void rule_describe(const struct rule *rule, struct strbuf *out)
{
    static const char *const SCALES[] = {[SCALE_NONE] = "",
                                         [SCALE_GPUS] = ", times the GPUs",
                                         [SCALE_NODES] = ", times the nodes",
                                         [SCALE_GLOBAL_BATCH_OVER] = "global batch / ",
                                         [SCALE_GLOBAL_BATCH] = ", times the global batch",
                                         [SCALE_FACT_OVER] = "a step's items / ",
                                         [SCALE_FACT] = ", times a step's items"};
    bool is_over = rule->scale == SCALE_GLOBAL_BATCH_OVER || rule->scale == SCALE_FACT_OVER;
    char words[32];
    strbuf_add_z(out, is_over ? SCALES[rule->scale] : "");
    snprintf(words, sizeof(words), "%s", STATISTIC_NAMES[rule->statistic]);
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
        strbuf_printf(out, ", %s run", RUN_CHOICE_NAMES[rule->run]);
    }
    strbuf_add_z(out, is_over ? "" : SCALES[rule->scale]);
    if (rule->rounding == ROUND_TRUNCATE) {
        strbuf_add_z(out, ", truncated");
    }
    if (rule->repeats != REPEATS_SINGLE) {
        strbuf_printf(out, ", %s over the repeats", REPEATS_NAMES[rule->repeats]);
    }
}

const char *const SAMPLE_USE_NAMES[] = {
    [USE_COUNTED] = "counted",       [USE_TRIMMED] = "trimmed",
    [USE_BETWEEN] = "between",       [USE_OTHER_RUN] = "other_run",
    [USE_OTHER_GPUS] = "other_gpus", [USE_OUTSIDE_STEPS] = "outside_steps",
    [USE_WARMUP] = "warmup",         [USE_SKIPPED] = "skipped",
    [USE_DROPPED] = "dropped",       [USE_BEFORE_LAST] = "before_last"};

/* ---- the rules of a format ---- */

static int decode_rules(const struct json *root, struct arena *arena, struct format *format,
                        struct err *err)
{
    struct json list;
    struct json item;
    struct rule *rules;
    size_t n = 0;
    size_t n_max = 0;
    if (!json_find(root, "rules", &list)) {
        return 0;
    }
    if (json_expect_array(&list, FORMAT_RULES_MAX, &n_max, err) < 0) {
        return -1;
    }
    rules = arena_array(arena, struct rule, n_max ? n_max : 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        struct rule *rule = &rules[n];
        if (rule_decode(&item, arena, format->id, rule, err) < 0) {
            return -1;
        }
        if (format_rule(format, rule->id)) {
            return json_fail(&item, err, "two rules \"%.*s\"", STR_ARG(rule->id));
        }
        if (!format_has_series(format, rule->series)) {
            return json_fail(&item, err, "the format has no series \"%.60s\"", rule->series.ptr);
        }
        format->rules = rules;
        format->n_rules = ++n;
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
    const struct rule *rules = format->rules;
    size_t n = format->n_rules;
    for (size_t idx = 0; idx < n; idx++) {
        struct str full = rules[idx].id;
        if (str_eq(full, id) || str_eq(str_sub(full, format->id.len + 1, full.len), id)) {
            return &rules[idx];
        }
    }
    return NULL;
}

const struct rule *format_rule_of(const struct format *format, struct str series)
{
    const struct rule *rules = format->rules;
    size_t n = format->n_rules;
    for (size_t idx = 0; idx < n; idx++) {
        if (rules[idx].is_default && str_eq(rules[idx].series, series)) {
            return &rules[idx];
        }
    }
    return NULL;
}
