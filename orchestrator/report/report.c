/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/report.h"

#include "base/map.h"
#include "codec/digest.h"
#include "report/report_decode.h"

#define ENVIRONMENTS_MAX 1024
#define STACKS_MAX       256
#define SCHEMA_VERSION   1

static const char *const METRIC_NAMES[] = {"throughput", "run_throughput", "speedup",
                                           "time_to_train", "accuracy"};

enum metric metric_of_name(struct str name)
{
    for (size_t idx = 0; idx < ARRAY_LEN(METRIC_NAMES); idx++) {
        if (str_eq_z(name, METRIC_NAMES[idx])) {
            return (enum metric)idx;
        }
    }
    return METRIC_OTHER;
}

const char *metric_name(enum metric metric)
{
    ASSERT((size_t)metric < ARRAY_LEN(METRIC_NAMES));
    return METRIC_NAMES[metric];
}

const struct report_case *report_case_find(const struct report *report, struct str id)
{
    for (size_t idx = 0; idx < report->n_cases; idx++) {
        if (str_eq(report->cases[idx].id, id)) {
            return &report->cases[idx];
        }
    }
    return NULL;
}

const struct cell *report_cell_find(const struct report *report, struct str id,
                                    const struct report_case **ret_case)
{
    for (size_t idx = 0; idx < report->n_cases; idx++) {
        const struct report_case *c = &report->cases[idx];
        for (size_t cell = 0; cell < c->n_cells; cell++) {
            if (str_eq(c->cells[cell].id, id)) {
                if (ret_case) {
                    *ret_case = c;
                }
                return &c->cells[cell];
            }
        }
    }
    return NULL;
}

static bool find_condition(const struct conditions *list, const char *name, struct str *ret_value)
{
    for (size_t idx = 0; idx < list->n; idx++) {
        if (str_eq_z(list->items[idx].name, name)) {
            *ret_value = list->items[idx].value;
            return true;
        }
    }
    return false;
}

bool case_condition(const struct report_case *c, const char *name, struct str *ret_value)
{
    return find_condition(&c->conditions, name, ret_value) ||
           find_condition(&c->stack->conditions, name, ret_value) ||
           (c->environment && find_condition(&c->environment->conditions, name, ret_value));
}

bool command_is_for(const struct command *command, const struct report_case *c)
{
    return (!command->nodes || command->nodes == c->nodes) &&
           (!command->gpus || command->gpus == c->gpus) &&
           (!command->batch || command->batch == c->batch_per_gpu) &&
           (!command->precision.ptr || str_eq(command->precision, c->precision));
}

const struct command *run_command_for(const struct command *commands, size_t n,
                                      const struct report_case *c)
{
    for (size_t idx = 0; idx < n; idx++) {
        if (str_eq_z(commands[idx].purpose, "run") && command_is_for(&commands[idx], c)) {
            return &commands[idx];
        }
    }
    return NULL;
}

static int decode_environments(const struct json *list, struct arena *arena, struct map *seen,
                               struct report *report, struct err *err)
{
    struct json item;
    size_t idx = 0;
    if (json_expect_array(list, ENVIRONMENTS_MAX, &report->n_environments, err) < 0) {
        return -1;
    }
    report->environments = arena_array(arena, struct environment, report->n_environments + 1);
    for (bool more = json_first(list, &item); more; more = json_next(&item)) {
        struct environment *e = &report->environments[idx++];
        if (decode_environment(&item, arena, e, err) < 0) {
            return -1;
        }
        if (!map_add(seen, e->id, e)) {
            return json_fail(&item, err, "id: duplicate environment \"%.100s\"", e->id.ptr);
        }
    }
    return 0;
}

static int decode_stacks(const struct json *list, struct arena *arena, struct map *seen,
                         struct report *report, struct err *err)
{
    struct json item;
    size_t idx = 0;
    if (json_expect_array(list, STACKS_MAX, &report->n_stacks, err) < 0) {
        return -1;
    }
    report->stacks = arena_array(arena, struct stack, report->n_stacks + 1);
    for (bool more = json_first(list, &item); more; more = json_next(&item)) {
        struct stack *s = &report->stacks[idx++];
        if (decode_stack(&item, arena, s, err) < 0) {
            return -1;
        }
        if (!map_add(seen, s->id, s)) {
            return json_fail(&item, err, "id: duplicate stack \"%.100s\"", s->id.ptr);
        }
    }
    return 0;
}

struct ids { /* of the whole report */
    struct map cases, cells;
};

static int note_ids(const struct json *at, struct report_case *c, struct ids *ids, struct err *err)
{
    if (!map_add(&ids->cases, c->id, c)) {
        return json_fail(at, err, "id: duplicate case \"%.160s\"", c->id.ptr);
    }
    for (size_t idx = 0; idx < c->n_cells; idx++) {
        if (!map_add(&ids->cells, c->cells[idx].id, &c->cells[idx])) {
            return json_fail(at, err, "cells[%zu].cell: duplicate cell \"%.160s\"", idx,
                             c->cells[idx].id.ptr);
        }
    }
    return 0;
}

static int decode_cases(const struct json *list, struct arena *arena,
                        const struct case_names *names, struct ids *ids, struct report *report,
                        struct err *err)
{
    struct json item;
    size_t idx = 0;
    if (json_expect_array(list, CASES_MAX, &report->n_cases, err) < 0) {
        return -1;
    }
    report->cases = arena_array(arena, struct report_case, report->n_cases + 1);
    for (bool more = json_first(list, &item); more; more = json_next(&item)) {
        struct report_case *c = &report->cases[idx++];
        if (decode_case(&item, arena, names, c, err) < 0 || note_ids(&item, c, ids, err) < 0) {
            return -1;
        }
        if (c->n_logs && !report->logs_source.path.ptr) {
            return json_fail(&item, err, "logs: the report says null for $.logs");
        }
    }
    return 0;
}

/* An empty report would pass every check. */
static int check_has_cells(const struct json *list, const struct report *report, struct err *err)
{
    for (size_t idx = 0; idx < report->n_cases; idx++) {
        if (report->cases[idx].n_cells) {
            return 0;
        }
    }
    return json_fail(list, err, "expected at least one published cell, found none");
}

/* What a case points to within the report. */
static int check_references(const struct json *at, const struct report_case *c,
                            const struct ids *ids, struct err *err)
{
    if (c->baseline.ptr && (str_eq(c->baseline, c->id) || !map_get(&ids->cases, c->baseline))) {
        return json_fail(at, err, "baseline: expected another case's id, found \"%.160s\"",
                         c->baseline.ptr);
    }
    for (size_t idx = 0; idx < c->n_cells; idx++) {
        const struct cell *cell = &c->cells[idx];
        for (size_t of = 0; of < cell->n_of; of++) {
            if (!map_get(&ids->cells, cell->of[of])) {
                return json_fail(at, err,
                                 "cells[%zu].derive.of[%zu]: no cell \"%.160s\" in this report",
                                 idx, of, cell->of[of].ptr);
            }
        }
    }
    return 0;
}

/* True when all the cells that this one is derived from are in `done`. */
static bool is_grounded(const struct cell *cell, const struct map *done)
{
    for (size_t of = 0; of < cell->n_of; of++) {
        if (!map_get(done, cell->of[of])) {
            return false;
        }
    }
    return true;
}

/* Derived cells must end at cells that are not derived, in few steps. Each pass settles one more level. */
static int check_derivations(const struct json *root, struct report *report, struct err *err)
{
    CLEANUP(map) struct map done = {0};
    struct str open = STR_EMPTY;
    for (int pass = 0; pass <= DERIVE_DEPTH_MAX; pass++) {
        open = STR_EMPTY;
        for (size_t idx = 0; idx < report->n_cases; idx++) {
            struct report_case *c = &report->cases[idx];
            for (size_t cell = 0; cell < c->n_cells; cell++) {
                if (is_grounded(&c->cells[cell], &done)) {
                    map_add(&done, c->cells[cell].id, &c->cells[cell]);
                } else {
                    open = c->cells[cell].id;
                }
            }
        }
        if (!open.ptr) {
            return 0;
        }
    }
    return json_fail(root, err,
                     "derive of cell \"%.160s\": it is circular, or over more than %d cells deep",
                     open.ptr, DERIVE_DEPTH_MAX);
}

static int decode_body(const struct json *root, struct arena *arena, struct report *report,
                       struct err *err)
{
    CLEANUP(map) struct map environments = {0};
    CLEANUP(map) struct map stacks = {0};
    struct case_names names = {&environments, &stacks};
    struct ids ids = {{0}, {0}};
    struct json list;
    struct json item;
    size_t idx = 0;
    int rc = -1;
    if (json_member(root, "environments", &list, err) < 0 ||
        decode_environments(&list, arena, &environments, report, err) < 0 ||
        json_member(root, "stacks", &list, err) < 0 ||
        decode_stacks(&list, arena, &stacks, report, err) < 0 ||
        json_member(root, "cases", &list, err) < 0) {
        return -1;
    }
    if (decode_cases(&list, arena, &names, &ids, report, err) == 0) {
        rc = 0;
        for (bool more = json_first(&list, &item); more && rc == 0; more = json_next(&item)) {
            rc = check_references(&item, &report->cases[idx++], &ids, err);
        }
        rc = rc == 0 ? check_derivations(root, report, err) : rc;
        rc = rc == 0 ? check_has_cells(&list, report, err) : rc;
    }
    map_release(&ids.cases);
    map_release(&ids.cells);
    return rc;
}

int report_decode(const struct json *root, struct arena *arena, struct report *ret_report,
                  struct err *err)
{
    struct top {
        int64_t version;
        struct str id, title;
    } top = {0};
    static const struct json_field FIELDS[] = {
        {"schema_version", JSON_I64, JSON_REQUIRED, offsetof(struct top, version), SCHEMA_VERSION,
         SCHEMA_VERSION},
        {"id", JSON_STR, JSON_REQUIRED, offsetof(struct top, id), 0, 0},
        {"title", JSON_STR, JSON_REQUIRED, offsetof(struct top, title), 0, 0},
        {"source", JSON_ANY, JSON_REQUIRED, 0, 0, 0},
        {"logs", JSON_ANY, JSON_REQUIRED | JSON_NULLABLE, 0, 0, 0},
        {"environments", JSON_ANY, JSON_REQUIRED, 0, 0, 0},
        {"stacks", JSON_ANY, JSON_REQUIRED, 0, 0, 0},
        {"cases", JSON_ANY, JSON_REQUIRED, 0, 0, 0},
    };
    struct report report = {0};
    struct json member;
    if (json_decode(root, arena, FIELDS, ARRAY_LEN(FIELDS), &top, err) < 0 ||
        check_slug(root, "id", top.id, err) < 0 || check_line(root, "title", top.title, err) < 0 ||
        json_member(root, "source", &member, err) < 0 ||
        decode_source(&member, arena, &report.source, err) < 0 ||
        json_member(root, "logs", &member, err) < 0) {
        return -1;
    }
    if (!json_is_null(&member)) {
        if (decode_logs(&member, arena, &report, err) < 0) {
            return -1;
        }
    }
    report.id = top.id;
    report.title = top.title;
    report.path = str_dup(arena, str_of(root->name));
    if (decode_body(root, arena, &report, err) < 0) {
        return -1;
    }
    *ret_report = report;
    return 0;
}
