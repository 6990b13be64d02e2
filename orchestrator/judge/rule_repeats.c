/* SPDX-License-Identifier: Apache-2.0 */
/* One number from several logs: which of them succeeded, how many there must be, which an olympic mean drops. */
#include "base/base.h"

#include "judge/rule_impl.h"

#include <math.h>

#define REQUIRED_MAX  64
#define LOGS_REQUIRED 1000000
#define S_PER_MIN     60.0
#define S_PER_H       3600.0

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
        {"fact", JSON_STR, JSON_REQUIRED, offsetof(struct rule_success, fact), 0, 0},
        {"value", JSON_STR, JSON_REQUIRED, offsetof(struct rule_success, value), 0, 0},
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
        {"fact", JSON_STR, JSON_REQUIRED, offsetof(struct rule_required, fact), 0, 0},
        {"logs", JSON_ANY, JSON_REQUIRED, 0, 0, 0},
        {"source", JSON_STR, 0, offsetof(struct rule_required, source), 0, 0},
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
        {"at_least", JSON_ANY, JSON_REQUIRED, 0, 0, 0},
        {"at_most", JSON_ANY, JSON_REQUIRED, 0, 0, 0},
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

int rule_decode_repeats(const struct json *at, struct arena *arena, struct rule *rule,
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
