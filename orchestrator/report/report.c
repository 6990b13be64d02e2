/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/report.h"

#include "base/map.h"
#include "codec/digest.h"
#include "codec/json_table.h"
#include "report/report_decode.h"

struct case_names { /* what a case may name: struct environment by id, struct stack by id */
    const struct map *environments;
    const struct map *stacks;
};

#define OF_MAX            64
#define ALSO_MAX          16
#define FRAMEWORK_OWN     "reperf"
#define PRINTED_BYTES_MAX 22
#define ENVIRONMENTS_MAX  1024
#define STACKS_MAX        256
#define SCHEMA_VERSION    1

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

/* ---- a case ---- */

/* Digits, and at most one point with digits after it: what a table prints. */
static int read_printed(const struct json *at, struct str printed, double *ret, struct err *err)
{
    struct err reason = {0};
    for (size_t idx = 0; idx < printed.len; idx++) {
        char c = printed.ptr[idx];
        if (!((c >= '0' && c <= '9') || (c == '.' && idx > 0 && idx + 1 < printed.len))) {
            return json_fail(at, err, "printed: expected a plain decimal number, found \"%.100s\"",
                             printed.ptr);
        }
    }
    if (printed.len > PRINTED_BYTES_MAX || str_to_f64(printed, ret, &reason) < 0) {
        return json_fail(at, err, "printed: expected a plain decimal number, found \"%.100s\"",
                         printed.ptr);
    }
    return 0;
}

/* "bs8" with prefix "bs" is 8. */
static int number_after(const struct json *at, struct str part, const char *prefix, int64_t max,
                        int64_t *ret, struct err *err)
{
    struct err reason = {0};
    struct str digits = str_sub(part, strlen(prefix), SIZE_MAX);
    if (!str_starts(part, str_of(prefix)) || str_to_i64(digits, 0, max, ret, &reason) < 0 ||
        (digits.ptr[0] == '0' && digits.len > 1)) {
        return json_fail(at, err, "id: expected %sN with N from 0 to %" PRId64 ", found \"%.*s\"",
                         prefix, max, STR_ARG(part));
    }
    return 0;
}

static int parse_counts(const struct json *at, struct str part, struct report_case *c,
                        struct err *err)
{
    int64_t g = str_find(part, STR_LIT("g"));
    if (g < 0) {
        return json_fail(at, err, "id: expected nNgG, found \"%.*s\"", STR_ARG(part));
    }
    if (number_after(at, str_sub(part, 0, (size_t)g), "n", NODES_MAX, &c->nodes, err) < 0 ||
        number_after(at, str_sub(part, (size_t)g, SIZE_MAX), "g", GPUS_PER_NODE_MAX,
                     &c->gpus_per_node, err) < 0) {
        return -1;
    }
    if (c->nodes == 0 && c->gpus_per_node != 0) {
        return json_fail(at, err,
                         "id: n0 goes with g0 only (the number is not printed), found \"%.*s\"",
                         STR_ARG(part));
    }
    c->gpus = c->nodes * c->gpus_per_node;
    return 0;
}

/* model/framework/precision/nNgG/bsB[/VARIANT] */
static int parse_id(const struct json *at, struct report_case *c, struct err *err)
{
    enum { MODEL, FRAMEWORK, PRECISION, COUNTS, BATCH, VARIANT, PARTS };
    struct str parts[PARTS] = {{0}};
    struct str rest = c->id;
    struct str part;
    size_t n = 0;
    while (str_next(&rest, '/', &part)) {
        if (n == PARTS) {
            return json_fail(at, err, "id: expected at most %d parts, found \"%.160s\"", PARTS,
                             c->id.ptr);
        }
        parts[n++] = part;
    }
    if (n < VARIANT) {
        return json_fail(at, err,
                         "id: expected model/framework/precision/nNgG/bsB, found \"%.160s\"",
                         c->id.ptr);
    }
    c->model = parts[MODEL];
    c->framework = parts[FRAMEWORK];
    c->precision = parts[PRECISION];
    c->variant = parts[VARIANT];
    if (check_slug(at, "id, its model", c->model, err) < 0 ||
        check_slug(at, "id, its framework", c->framework, err) < 0 ||
        check_precision(at, "id, its precision", c->precision, err) < 0 ||
        check_slug(at, "id, its variant", c->variant, err) < 0 ||
        parse_counts(at, parts[COUNTS], c, err) < 0) {
        return -1;
    }
    return number_after(at, parts[BATCH], "bs", BATCH_MAX, &c->batch_per_gpu, err);
}

static int decode_derive(const struct json *at, struct arena *arena, struct cell *cell,
                         struct err *err)
{
    static const char *const KINDS[] = {"ratio", "mean", "median", NULL};
    static const enum derive_kind VALUES[] = {DERIVE_RATIO, DERIVE_MEAN, DERIVE_MEDIAN};
    static const struct json_field FIELDS[] = {
        ROW_ALONE("kind", JSON_STR, JSON_REQUIRED),
        ROW_ANY("of", JSON_REQUIRED),
    };
    struct str kind = STR_EMPTY;
    struct json of;
    if (json_decode(at, arena, FIELDS, ARRAY_LEN(FIELDS), &kind, err) < 0 ||
        check_word(at, "kind", kind, KINDS, err) < 0 || json_member(at, "of", &of, err) < 0 ||
        json_str_list(&of, arena, OF_MAX, &cell->of, &cell->n_of, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; KINDS[idx]; idx++) {
        cell->derive = str_eq_z(kind, KINDS[idx]) ? VALUES[idx] : cell->derive;
    }
    if (cell->derive == DERIVE_RATIO ? cell->n_of != 2 : cell->n_of == 0) {
        return json_fail(&of, err, "expected %s, found %zu cells",
                         cell->derive == DERIVE_RATIO ? "numerator and denominator"
                                                      : "at least one cell",
                         cell->n_of);
    }
    return 0;
}

static int decode_also(const struct json *list, struct arena *arena, struct cell *cell,
                       struct err *err)
{
    static const struct json_field FIELDS[] = {
        ROW("printed", struct also_printed, printed, JSON_REQUIRED),
        ROW_ANY("source", JSON_REQUIRED),
    };
    struct json item;
    struct json source;
    size_t idx = 0;
    if (json_expect_array(list, ALSO_MAX, &cell->n_also, err) < 0) {
        return -1;
    }
    cell->also = arena_array(arena, struct also_printed, cell->n_also + 1);
    for (bool more = json_first(list, &item); more; more = json_next(&item)) {
        struct also_printed *also = &cell->also[idx++];
        double value;
        if (json_decode(&item, arena, FIELDS, ARRAY_LEN(FIELDS), also, err) < 0 ||
            json_member(&item, "source", &source, err) < 0 ||
            decode_source(&source, arena, &also->source, err) < 0 ||
            read_printed(&item, also->printed, &value, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* The metric's word, and its index among those that the program treats specially. */
static int check_metric(const struct json *at, struct str name, struct cell *cell, struct err *err)
{
    const struct vocabulary *v = vocabulary_of(at);
    const struct word *metric = words_find(&v->metrics, name);
    const struct word *unit = words_find(&v->units, cell->unit);
    if (!metric || !str_eq(metric->name, name)) {
        return json_fail(at, err, "metric: \"%.*s\" is not one of the words for it (%s, %s, ...)",
                         (int)(name.len < 100 ? name.len : 100), name.ptr,
                         v->metrics.items[0].name.ptr, v->metrics.items[1].name.ptr);
    }
    if (!unit || !str_eq(unit->dimension, metric->dimension)) {
        return json_fail(at, err, "unit: \"%.*s\" is not a unit of %s, whose dimension is %s",
                         (int)(cell->unit.len < 100 ? cell->unit.len : 100), cell->unit.ptr,
                         metric->name.ptr, metric->dimension.ptr);
    }
    cell->metric = metric_of_name(name);
    cell->metric_name = metric->name;
    if (read_printed(at, cell->printed, &cell->published, err) < 0) {
        return -1;
    }
    if (cell->published <= 0 || cell->published > metric->max) {
        return json_fail(at, err, "printed: expected more than 0 and at most %g, found %s",
                         metric->max, cell->printed.ptr);
    }
    cell->decimals = str_decimals(cell->printed);
    return 0;
}

/* "FORMAT/NAME" of the format in force. */
static int check_rule(const struct json *at, struct str rule, struct str format, struct err *err)
{
    if (!rule.ptr) {
        return 0;
    }
    if (!format.ptr || !str_starts(rule, format) || rule.len < format.len + 2 ||
        rule.ptr[format.len] != '/') {
        return json_fail(at, err, "rule: expected one of format %s, found \"%.100s\"",
                         format.ptr ? format.ptr : "null", rule.ptr);
    }
    return 0;
}

static int check_cell_id(const struct json *at, const struct report_case *c,
                         const struct cell *cell, struct err *err)
{
    const char *metric = cell->metric_name.ptr;
    struct str rest = str_sub(cell->id, c->id.len, SIZE_MAX);
    size_t head = 1 + strlen(metric);
    if (!str_starts(cell->id, c->id) || rest.len < head || rest.ptr[0] != '#' ||
        memcmp(rest.ptr + 1, metric, head - 1) != 0 || (rest.len > head && rest.ptr[head] != '.')) {
        return json_fail(at, err, "cell: expected the case id, # and \"%s\", found \"%.160s\"",
                         metric, cell->id.ptr);
    }
    return 0;
}

static int decode_cell(const struct json *at, struct arena *arena, const struct report_case *c,
                       struct cell *ret, struct err *err)
{
    struct raw {
        struct cell cell;
        struct str metric;
    } raw = {0};
    static const struct json_field FIELDS[] = {
        ROW("cell", struct raw, cell.id, JSON_REQUIRED),
        ROW("metric", struct raw, metric, JSON_REQUIRED),
        ROW("printed", struct raw, cell.printed, JSON_REQUIRED),
        ROW("unit", struct raw, cell.unit, JSON_REQUIRED),
        ROW("table", struct raw, cell.table, JSON_REQUIRED),
        ROW_ANY("derive", JSON_REQUIRED | JSON_NULLABLE),
        ROW("rule", struct raw, cell.rule, JSON_REQUIRED | JSON_NULLABLE),
        ROW("format", struct raw, cell.format, JSON_REQUIRED | JSON_NULLABLE),
        ROW_ANY("also_printed", JSON_REQUIRED),
    };
    struct cell *cell = &raw.cell;
    struct json member;
    if (json_decode(at, arena, FIELDS, ARRAY_LEN(FIELDS), &raw, err) < 0 ||
        check_line(at, "table", cell->table, err) < 0 ||
        check_metric(at, raw.metric, cell, err) < 0 || check_cell_id(at, c, cell, err) < 0 ||
        check_slug(at, "format", cell->format, err) < 0 ||
        check_rule(at, cell->rule, cell->format.ptr ? cell->format : c->format, err) < 0 ||
        json_member(at, "also_printed", &member, err) < 0 ||
        decode_also(&member, arena, cell, err) < 0 || json_member(at, "derive", &member, err) < 0) {
        return -1;
    }
    if (!json_is_null(&member) && decode_derive(&member, arena, cell, err) < 0) {
        return -1;
    }
    if (cell->derive != DERIVE_NONE && cell->rule.ptr) {
        return json_fail(
            at, err,
            "a derived cell has no rule: it is judged by the cells that it is derived from");
    }
    *ret = *cell;
    return 0;
}

static int decode_factor(const struct json *at, struct arena *arena, struct report_case *c,
                         struct err *err)
{
    static const struct json_field FIELDS[] = {
        ROW("value", struct factor, value, JSON_REQUIRED),
        ROW("path", struct factor, path, JSON_REQUIRED),
        ROW("sha256", struct factor, sha256, JSON_REQUIRED),
    };
    struct json member;
    uint8_t ignored[SHA256_BYTES];
    bool has_digest;
    if (!json_find(at, "factor", &member)) {
        return 0;
    }
    if (json_decode(&member, arena, FIELDS, ARRAY_LEN(FIELDS), &c->factor, err) < 0 ||
        check_file_path(&member, "path", c->factor.path, err) < 0 ||
        json_hex(&member, "sha256", c->factor.sha256,
                 (struct json_bytes){ignored, SHA256_BYTES, &has_digest}, err) < 0) {
        return -1;
    }
    return c->factor.value > 0 ? 0 : json_fail(&member, err, "value: expected a number over 0");
}

static int decode_case_lists(const struct json *at, struct arena *arena, struct report_case *c,
                             struct err *err)
{
    struct json list;
    struct json item;
    size_t idx = 0;
    if (json_member(at, "logs", &list, err) < 0 ||
        json_str_list(&list, arena, LOGS_MAX, &c->logs, &c->n_logs, err) < 0) {
        return -1;
    }
    for (size_t log = 0; log < c->n_logs; log++) {
        if (check_file_path(&list, "logs", c->logs[log], err) < 0) {
            return -1;
        }
    }
    if (c->n_logs && (!c->format.ptr || !c->rule.ptr)) {
        return json_fail(at, err, "a case with logs needs a format and a rule, found null");
    }
    if (json_member(at, "cells", &list, err) < 0 ||
        json_expect_array(&list, CELLS_MAX, &c->n_cells, err) < 0) {
        return -1;
    }
    c->cells = arena_array(arena, struct cell, c->n_cells + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (decode_cell(&item, arena, c, &c->cells[idx++], err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* With two ways to start a case, it would be open to which of them its number belongs. */
static int check_run_command(const struct json *at, const struct report_case *c,
                             const struct command *commands, size_t n, struct err *err)
{
    size_t n_runs = 0;
    for (size_t idx = 0; idx < n; idx++) {
        n_runs += str_eq_z(commands[idx].purpose, "run") && command_is_for(&commands[idx], c);
    }
    return n_runs <= 1
               ? 0
               : json_fail(at, err,
                           "stack \"%.100s\": expected at most one run command for this case, "
                           "found %zu",
                           c->stack->id.ptr, n_runs);
}

static int check_run_commands(const struct json *at, const struct report_case *c, struct err *err)
{
    const struct stack *stack = c->stack;
    const struct recipes *lists[] = {&stack->smoke, &stack->full};
    if (check_run_command(at, c, stack->commands, stack->n_commands, err) < 0) {
        return -1;
    }
    for (size_t list = 0; list < ARRAY_LEN(lists); list++) {
        for (size_t idx = 0; idx < lists[list]->n; idx++) {
            const struct recipe *recipe = &lists[list]->items[idx];
            if (check_run_command(at, c, recipe->commands, recipe->n_commands, err) < 0) {
                return -1;
            }
        }
    }
    return 0;
}

/* Finds the case's stack and environment by name and checks its counts against them. */
static int link_case(const struct json *at, const struct case_names *names, struct str stack,
                     struct str environment, struct report_case *c, struct err *err)
{
    bool is_own = str_eq_z(c->framework, FRAMEWORK_OWN);
    c->stack = map_get(names->stacks, stack);
    c->environment = environment.ptr ? map_get(names->environments, environment) : NULL;
    if (!c->stack) {
        return json_fail(at, err, "stack: no stack \"%.100s\" in this report", stack.ptr);
    }
    if (!str_eq(c->stack->framework, c->framework)) {
        return json_fail(at, err, "id: framework \"%.*s\", but stack \"%.100s\" is \"%.100s\"",
                         STR_ARG(c->framework), stack.ptr, c->stack->framework.ptr);
    }
    if (check_run_commands(at, c, err) < 0) {
        return -1;
    }
    if (environment.ptr && !c->environment) {
        return json_fail(at, err, "environment: no environment \"%.100s\" in this report",
                         environment.ptr);
    }
    if (is_own && c->nodes == 0) {
        return json_fail(at, err, "framework %s: expected the numbers of nodes and GPUs",
                         FRAMEWORK_OWN);
    }
    if (is_own) {
        return c->environment || c->n_cells || c->n_logs || !c->baseline.ptr
                   ? json_fail(at, err,
                               "framework %s: expected environment null, a baseline, no logs and "
                               "no cells",
                               FRAMEWORK_OWN)
                   : 0;
    }
    if (!c->environment || c->n_cells == 0 || c->baseline.ptr) {
        return json_fail(at, err, "expected an environment, at least one cell, and baseline null");
    }
    if (c->environment &&
        (c->nodes > c->environment->nodes || c->gpus_per_node > c->environment->gpus_per_node)) {
        return json_fail(at, err,
                         "id: %" PRId64 " nodes of %" PRId64 " GPUs, but environment \"%.100s\" "
                         "has %" PRId64 " of %" PRId64,
                         c->nodes, c->gpus_per_node, environment.ptr, c->environment->nodes,
                         c->environment->gpus_per_node);
    }
    return 0;
}

static int decode_case(const struct json *at, struct arena *arena, const struct case_names *names,
                       struct report_case *ret, struct err *err)
{
    struct raw {
        struct report_case c;
        struct str stack, environment;
    } raw = {0};
    static const struct json_field FIELDS[] = {
        ROW("id", struct raw, c.id, JSON_REQUIRED),
        ROW("stack", struct raw, stack, JSON_REQUIRED),
        ROW("environment", struct raw, environment, JSON_REQUIRED | JSON_NULLABLE),
        ROW("group", struct raw, c.group, JSON_REQUIRED),
        ROW("format", struct raw, c.format, JSON_REQUIRED | JSON_NULLABLE),
        ROW("rule", struct raw, c.rule, JSON_REQUIRED | JSON_NULLABLE),
        ROW("baseline", struct raw, c.baseline, JSON_REQUIRED | JSON_NULLABLE),
        ROW_ANY("logs", JSON_REQUIRED),
        ROW_ANY("conditions", JSON_REQUIRED),
        ROW_ANY("cells", JSON_REQUIRED),
        ROW_ANY("factor", 0),
        ROW("matched", struct raw, c.matched, 0),
    };
    struct report_case *c = &raw.c;
    struct json member;
    if (json_decode(at, arena, FIELDS, ARRAY_LEN(FIELDS), &raw, err) < 0 ||
        parse_id(at, c, err) < 0 || check_slug(at, "group", c->group, err) < 0 ||
        check_slug(at, "format", c->format, err) < 0 ||
        check_rule(at, c->rule, c->format, err) < 0 || decode_factor(at, arena, c, err) < 0 ||
        check_text(at, "matched", c->matched, err) < 0 ||
        json_member(at, "conditions", &member, err) < 0 ||
        decode_conditions(&member, arena, &c->conditions, err) < 0 ||
        decode_case_lists(at, arena, c, err) < 0 ||
        link_case(at, names, raw.stack, raw.environment, c, err) < 0) {
        return -1;
    }
    *ret = *c;
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
        ROW("schema_version", struct top, version, JSON_REQUIRED, .min = SCHEMA_VERSION,
            .max = SCHEMA_VERSION),
        ROW("id", struct top, id, JSON_REQUIRED),
        ROW("title", struct top, title, JSON_REQUIRED),
        ROW_ANY("source", JSON_REQUIRED),
        ROW_ANY("logs", JSON_REQUIRED | JSON_NULLABLE),
        ROW_ANY("environments", JSON_REQUIRED),
        ROW_ANY("stacks", JSON_REQUIRED),
        ROW_ANY("cases", JSON_REQUIRED),
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
