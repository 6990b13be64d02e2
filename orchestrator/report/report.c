/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/report.h"

#include "base/map.h"
#include "base/str.h"
#include "codec/digest.h"
#include "codec/json_table.h"
#include "codec/pattern.h"
#include "report/report_decode.h"

#define OF_MAX            64
#define ALSO_MAX          16
#define FRAMEWORK_OWN     "reperf"
#define PRINTED_BYTES_MAX 22
#define ENVIRONMENTS_MAX  1024
#define STACKS_MAX        256

static const char *const METRIC_NAMES[] = {"throughput", "run_throughput", "speedup",
                                           "time_to_train", "accuracy"};

const char *metric_name(enum metric metric)
{
    ASSERT((size_t)metric < ARRAY_LEN(METRIC_NAMES));
    return METRIC_NAMES[metric];
}

const struct report_case *report_case_find(const struct report *report, struct str id)
{
    return STR_NAMED(report->cases, report->n_cases, id, id);
}

bool conditions_find(const struct conditions *list, const char *name, struct str *ret_value)
{
    const struct condition *found = STR_NAMED(list->items, list->n, name, str_of(name));
    if (found) {
        *ret_value = found->value;
    }
    return found;
}

bool report_same_row(const struct report_case *a, const struct report_case *b)
{
    return str_eq(a->model, b->model) && str_eq(a->precision, b->precision) &&
           a->nodes == b->nodes && a->gpus == b->gpus && a->variant.len == b->variant.len &&
           (!a->variant.len || str_eq(a->variant, b->variant));
}

bool case_condition(const struct report_case *c, const char *name, struct str *ret_value)
{
    return conditions_find(&c->conditions, name, ret_value) ||
           conditions_find(&c->stack->conditions, name, ret_value) ||
           (c->environment && conditions_find(&c->environment->conditions, name, ret_value));
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

struct ids { /* of the whole report */
    struct map *cases, *cells;
};

static int note_ids(const struct json *at, struct report_case *c, struct ids *ids, struct err *err)
{
    if (!map_add(ids->cases, c->id, c)) {
        return json_fail(at, err, "id: duplicate case \"%.160s\"", c->id.ptr);
    }
    for (size_t idx = 0; idx < c->n_cells; idx++) {
        if (!map_add(ids->cells, c->cells[idx].id, &c->cells[idx])) {
            return json_fail(at, err, "cells[%zu].cell: duplicate cell \"%.160s\"", idx,
                             c->cells[idx].id.ptr);
        }
    }
    return 0;
}

/* ---- a case ---- */

#define SLUG "[a-z0-9]+(?:[.-][a-z0-9]+)*"
#define CASE_ID                                                                                    \
    "^(" SLUG ")/(" SLUG ")/([a-z0-9]+)/(?:n([1-9][0-9]*)g(0|[1-9][0-9]*)|n0g0)/"                  \
    "bs(0|[1-9][0-9]*)(?:/(" SLUG "))?"
#define CASE_ID_MAX 192
#define CASE_FORM   "model/framework/precision/nNgG/bsB[/VARIANT]"

/* A group of digits, or none. */
static bool count_of(struct str digits, int64_t max, int64_t *ret)
{
    return !digits.ptr || str_to_i64(digits, 0, max, ret, ERR_IGNORED) == 0;
}

static int parse_id(const struct json *at, struct report_case *c, struct err *err)
{
    static const char PATTERN[] = CASE_ID "$";
    struct str g[8];
    bool is_one = c->id.len <= CASE_ID_MAX &&
                  patterns_find(json_patterns(at), PATTERN, c->id, g, 8) &&
                  count_of(g[4], NODES_MAX, &c->nodes) &&
                  count_of(g[5], GPUS_PER_NODE_MAX, &c->gpus_per_node) &&
                  count_of(g[6], BATCH_MAX, &c->batch_per_gpu) && g[1].len <= SLUG_BYTES_MAX &&
                  g[2].len <= SLUG_BYTES_MAX && g[7].len <= SLUG_BYTES_MAX;
    if (!is_one) {
        return json_fail(at, err, "id: expected " CASE_FORM ", found \"%.160s\"", c->id.ptr);
    }
    c->model = g[1];
    c->framework = g[2];
    c->precision = g[3];
    c->variant = g[7];
    c->gpus = c->nodes * c->gpus_per_node;
    return check_precision(at, "id, its precision", c->precision, err);
}

static int get_id(const struct json *at, struct arena *arena, void *out, struct err *err)
{
    struct report_case *c = out;
    return json_str(at, arena, &c->id, err) < 0 ? -1 : parse_id(at->parent, c, err);
}

static void put_id(struct json_out *out, const char *key, const void *of)
{
    jw_str(out, key, ((const struct report_case *)of)->id);
}

/* The metric's word, and its index among those that the program treats specially. */
static int check_metric(const struct json *at, struct str name, struct cell *cell, struct err *err)
{
    const struct vocabulary *v = vocabulary_of(at);
    const struct word *metric = words_find(&v->metrics, name);
    const struct word *unit = words_find(&v->units, cell->unit);
    if (words_check(at, "metric", &v->metrics, name, err) < 0) {
        return -1;
    }
    if (!unit || !str_eq(unit->dimension, metric->dimension)) {
        return json_fail(at, err, "unit: \"%.*s\" is not a unit of %s, whose dimension is %s",
                         (int)(cell->unit.len < 100 ? cell->unit.len : 100), cell->unit.ptr,
                         metric->name.ptr, metric->dimension.ptr);
    }
    while (cell->metric < METRIC_OTHER && !str_eq_z(name, METRIC_NAMES[cell->metric])) {
        cell->metric++;
    }
    cell->metric_name = metric->name;
    if (str_to_f64(cell->printed, &cell->published, ERR_IGNORED) < 0 || cell->published <= 0 ||
        cell->published > metric->max) {
        return json_fail(at, err, "printed: expected more than 0 and at most %g, found %s",
                         metric->max, cell->printed.ptr);
    }
    cell->decimals = str_decimals(cell->printed);
    return 0;
}

/* "FORMAT/NAME" of the format in force. */
static int check_rule(const struct json *at, struct str rule, struct str format, struct err *err)
{
    bool is_one = !rule.ptr || (format.ptr && str_starts(rule, format) &&
                                rule.len >= format.len + 2 && rule.ptr[format.len] == '/');
    return is_one ? 0
                  : json_fail(at, err, "rule: expected one of format %s, found \"%.100s\"",
                              format.ptr ? format.ptr : "null", rule.ptr);
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

static const char *const DERIVE_NAMES[] = {
    [DERIVE_RATIO] = "ratio", [DERIVE_MEAN] = "mean", [DERIVE_MEDIAN] = "median"};

static const struct json_form CASE = {.pattern = CASE_ID "$", .max = CASE_ID_MAX};
static const struct json_form CELL = {.pattern = CASE_ID "#[a-z_]+(\\.[1-9][0-9]*)?$", .max = 224};
static const struct json_form PRINTED = {.pattern = "^[0-9]{1,12}(\\.[0-9]{1,20})?$",
                                         .max = PRINTED_BYTES_MAX,
                                         .what = "a plain decimal number"};
static const struct json_form RULE = {.pattern = "^[a-z0-9-]+/[a-z0-9-]+$", .max = 128};
static const struct json_form SHA256 = {.pattern = "^[0-9a-f]{64}$",
                                        .what = "64 lower-case hex digits"};

static const struct json_field DERIVE_ROWS[] = {
    ROW_WORD("kind", struct cell, derive, DERIVE_NAMES, JSON_REQUIRED),
    ROW_STRS("of", struct cell, of, n_of, JSON_REQUIRED, .min = 1, .max = OF_MAX, .form = &CELL),
};
#define DERIVE_RULES                                                                               \
    "\"if\": {\"properties\": {\"kind\": {\"const\": \"ratio\"}}}, \"then\": {\"properties\": "    \
    "{\"of\": "                                                                                    \
    "{\"minItems\": 2, \"maxItems\": 2}}}"

static int check_derive(const struct json *at, struct arena *arena UNUSED, void *out,
                        struct err *err)
{
    const struct cell *cell = out;
    return cell->derive != DERIVE_RATIO || cell->n_of == 2
               ? 0
               : json_fail(at, err, "of: expected numerator and denominator, found %zu cells",
                           cell->n_of);
}

static const struct json_field ALSO_ROWS[] = {
    ROW("printed", struct also_printed, printed, JSON_REQUIRED, .form = &PRINTED),
    ROW_OBJECT("source", struct also_printed, source, SOURCE_ROWS, JSON_REQUIRED),
};
static const struct json_field CELL_ROWS[] = {
    ROW("cell", struct cell, id, JSON_REQUIRED, .form = &CELL),
    ROW("metric", struct cell, metric_name, JSON_REQUIRED, .vocabulary = "metrics"),
    ROW("printed", struct cell, printed, JSON_REQUIRED, .form = &PRINTED),
    ROW("unit", struct cell, unit, JSON_REQUIRED, .vocabulary = "units"),
    ROW("table", struct cell, table, JSON_REQUIRED, .form = &FORM_LINE),
    ROW_INSIDE("derive", DERIVE_ROWS, JSON_NULLABLE, .check = check_derive, .rules = DERIVE_RULES),
    ROW("rule", struct cell, rule, JSON_NULLABLE, .form = &RULE),
    ROW("format", struct cell, format, JSON_NULLABLE, .form = &FORM_SLUG),
    ROW_LIST("also_printed", struct cell, also, n_also, ALSO_ROWS, 0, .max = ALSO_MAX),
    ROW("footnote", struct cell, footnote, JSON_OMIT, .form = &FORM_LINE,
        .about = "what the report says of this number beside it"),
};
const struct json_field NOT_PRINTED_ROWS[5] = {
    ROW("table", struct not_printed, table, JSON_REQUIRED, .form = &FORM_LINE),
    ROW("row", struct not_printed, row, JSON_REQUIRED, .form = &FORM_LINE),
    ROW("column", struct not_printed, column, JSON_REQUIRED, .form = &FORM_LINE),
    ROW("printed", struct not_printed, printed, JSON_REQUIRED, .form = &FORM_LINE),
    ROW("line", struct not_printed, line, JSON_REQUIRED, .min = 1,
        .about = "of the report's source"),
};

static int check_cell(const struct json *at, struct arena *arena UNUSED, void *out, struct err *err)
{
    struct cell *cell = out;
    if (check_metric(at, cell->metric_name, cell, err) < 0) {
        return -1;
    }
    return cell->derive != DERIVE_NONE && cell->rule.ptr
               ? json_fail(at, err,
                           "a derived cell has no rule: it is judged by the cells that it is "
                           "derived from")
               : 0;
}

/* The format is the rule's, where it is not named. */
static void set_format(struct report_case *c, struct arena *arena)
{
    int64_t slash = c->rule.ptr ? str_find(c->rule, STR_LIT("/")) : -1;
    if (!c->format.ptr && slash > 0) {
        c->format = str_of(str_z(arena, str_sub(c->rule, 0, (size_t)slash)));
    }
}

/* The case's id, format and rule are read already: their rows come before. */
static int check_cells(const struct json *at, struct arena *arena, void *out, struct err *err)
{
    struct report_case *c = out;
    set_format(c, arena);
    struct json item;
    size_t idx = 0;
    for (bool more = json_first(at, &item); more; more = json_next(&item)) {
        const struct cell *cell = &c->cells[idx++];
        if (check_cell_id(&item, c, cell, err) < 0 ||
            check_rule(&item, cell->rule, cell->format.ptr ? cell->format : c->format, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- a case ---- */

static const struct json_field FACTOR_ROWS[] = {
    ROW("value", struct factor, value, JSON_REQUIRED, .schema = "\"exclusiveMinimum\": 0"),
    ROW("path", struct factor, path, JSON_REQUIRED, .form = &FORM_FILE_PATH),
    ROW("sha256", struct factor, sha256, JSON_REQUIRED, .form = &SHA256),
};

static int check_factor(const struct json *at, struct arena *arena UNUSED, void *out,
                        struct err *err)
{
    const struct factor *factor = out;
    return factor->value > 0 ? 0 : json_fail(at, err, "value: expected a number over 0");
}

static const struct json_field CASE_ROWS[] = {
    ROW_ANY("id", JSON_REQUIRED, .get = get_id, .put = put_id,
            .schema = "\"type\": \"string\", \"maxLength\": 192, \"pattern\": \"" CASE_ID "$\""),
    ROW("stack", struct report_case, stack_id, JSON_REQUIRED, .form = &FORM_SLUG),
    ROW("environment", struct report_case, environment_id, JSON_NULLABLE, .form = &FORM_SLUG),
    ROW("group", struct report_case, group, 0, .form = &FORM_SLUG),
    ROW("format", struct report_case, format, JSON_NULLABLE, .form = &FORM_SLUG),
    ROW("rule", struct report_case, rule, JSON_NULLABLE, .form = &RULE),
    ROW("baseline", struct report_case, baseline, JSON_NULLABLE, .form = &CASE),
    ROW_STRS("logs", struct report_case, logs, n_logs, 0, .max = LOGS_MAX, .form = &FORM_FILE_PATH),
    ROW("logged_steps", struct report_case, logged_steps, JSON_OMIT, .min = 1, .max = INT32_MAX,
        .about = "training steps that the published log ran, for run --steps as-logged"),
    ROW_CONDITIONS(struct report_case),
    ROW_LIST("cells", struct report_case, cells, n_cells, CELL_ROWS, 0, .max = CELLS_MAX,
             .check = check_cell, .get = check_cells, .vocabulary = "cells"),
    ROW_OBJECT("factor", struct report_case, factor, FACTOR_ROWS, JSON_OMIT, .check = check_factor),
    ROW("matched", struct report_case, matched, JSON_OMIT, .form = &FORM_TEXT),
};
/* A case with logs has what reads them. */
#define CASE_RULES                                                                                 \
    "\"if\": {\"properties\": {\"logs\": {\"minItems\": 1}}}, \"then\": {\"properties\": "         \
    "{\"format\": {\"type\": \"string\"}, \"rule\": {\"type\": \"string\"}}}"

static int check_case(const struct json *at, struct arena *arena, void *out, struct err *err)
{
    struct report_case *c = out;
    set_format(c, arena);
    if (!c->group.ptr) {
        c->group = str_dup(arena, c->model);
    }
    if (c->n_logs && (!c->format.ptr || !c->rule.ptr)) {
        return json_fail(at, err, "a case with logs needs a format and a rule, found null");
    }
    return check_rule(at, c->rule, c->format, err);
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
static int link_case(const struct json *at, const struct report *report, struct report_case *c,
                     struct err *err)
{
    struct str stack = c->stack_id;
    struct str environment = c->environment_id;
    bool is_own = str_eq_z(c->framework, FRAMEWORK_OWN);
    c->stack = STR_NAMED(report->stacks, report->n_stacks, id, stack);
    c->environment = STR_NAMED(report->environments, report->n_environments, id, environment);
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
    if ((is_own || report->is_unpublished) && c->nodes == 0) {
        return json_fail(at, err, "framework %.*s: expected the numbers of nodes and GPUs",
                         STR_ARG(c->framework));
    }
    if (report->is_unpublished) {
        return c->environment || c->n_cells || c->n_logs || c->baseline.ptr
                   ? json_fail(at, err,
                               "a case of an unpublished report: expected environment and baseline "
                               "null, no logs and no cells")
                   : 0;
    }
    if (is_own && !c->n_cells) { /* nobody published it; with cells somebody has */
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

/* An empty report would pass every check; an unpublished one says that it is for `run` alone. */
static int check_has_cells(const struct json *list, const struct report *report, struct err *err)
{
    if (report->is_unpublished && report->n_cases) {
        return 0;
    }
    for (size_t idx = 0; idx < report->n_cases; idx++) {
        if (report->cases[idx].n_cells) {
            return 0;
        }
    }
    return json_fail(list, err, "expected at least one published cell, found none");
}

/* What a case points to within the report. */
static int check_references(const struct json *at, struct report_case *c, const struct ids *ids,
                            struct err *err)
{
    c->rated = c->baseline.ptr ? map_get(ids->cases, c->baseline) : c;
    if (c->baseline.ptr && (str_eq(c->baseline, c->id) || !map_get(ids->cases, c->baseline))) {
        return json_fail(at, err, "baseline: expected another case's id, found \"%.160s\"",
                         c->baseline.ptr);
    }
    for (size_t idx = 0; idx < c->n_cells; idx++) {
        const struct cell *cell = &c->cells[idx];
        for (size_t of = 0; of < cell->n_of; of++) {
            if (!map_get(ids->cells, cell->of[of])) {
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

static int link_cases(const struct json *list, struct report *report, struct ids *ids,
                      struct err *err)
{
    struct json item;
    size_t idx = 0;
    for (bool more = json_first(list, &item); more; more = json_next(&item)) {
        struct report_case *c = &report->cases[idx++];
        if (link_case(&item, report, c, err) < 0 || note_ids(&item, c, ids, err) < 0) {
            return -1;
        }
        if (c->n_logs && !report->logs_source.path.ptr && !report->own_logs.ptr) {
            return json_fail(&item, err, "logs: the report says null for $.logs");
        }
    }
    idx = 0;
    for (bool more = json_first(list, &item); more; more = json_next(&item)) {
        if (check_references(&item, &report->cases[idx++], ids, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int link_report(const struct json *root, struct report *report, struct err *err)
{
    CLEANUP(map) struct map cases = {0};
    CLEANUP(map) struct map cells = {0};
    struct ids ids = {&cases, &cells};
    struct json list;
    /* Only what is published was read somewhere. */
    if (!report->is_unpublished && !report->own_logs.ptr && !report->source.repository.ptr) {
        return json_fail(root, err, "source: may not be null");
    }
    if (json_member(root, "cases", &list, err) < 0 || link_cases(&list, report, &ids, err) < 0 ||
        check_derivations(root, report, err) < 0) {
        return -1;
    }
    return check_has_cells(&list, report, err);
}

static const struct json_field LOGS_ROWS[] = {
    ROW_HERE(struct report, logs_source, SOURCE_ROWS),
    ROW("series_sha256", struct report, series_sha256, JSON_OMIT, .form = &SHA256),
};
/* What an unpublished report may not have; and of a published one, cases of framework reperf, which
   nobody published. */
#define REPORT_RULES                                                                               \
    "\"if\": {\"required\": [\"unpublished\"], \"properties\": {\"unpublished\": {\"const"         \
    "\": true}}}, \"then\": {\"properties\": {\"cases\": {\"items\": {\"properties\": {\""         \
    "environment\": {\"type\": \"null\"}, \"baseline\": {\"type\": \"null\"}, \"logs\": {"         \
    "\"maxItems\": 0}, \"cells\": {\"maxItems\": 0}}}}}}, \"else\": {\"properties\": {\"cases\": " \
    "{\"items\": {\"if\": {\"properties\": {"                                                      \
    "\"id\": {\"pattern\": \"^[^/]+/reperf/\"}, \"cells\": {\"maxItems\": 0}}}, \"then\": "        \
    "{\"properties\": {\"stack\": "                                                                \
    "{\"pattern\": \"^reperf(-[a-z0-9-]+)?$\"}, \"environment\": {\"type\": \"null\"}, \""         \
    "format\": {\"const\": \"reperf\"}, \"rule\": {\"const\": \"reperf/mean-after-warmup"          \
    "\"}, \"baseline\": {\"type\": \"string\"}, \"logs\": {\"maxItems\": 0}, \"cells\": {"         \
    "\"maxItems\": 0}}}, \"else\": {\"properties\": {\"environment\": {\"type\": \"string"         \
    "\"}, \"baseline\": {\"type\": \"null\"}, \"cells\": {\"minItems\": 1}}}}}}}"
static const struct json_field ROWS[] = {
    ROW_NUMBER("schema_version", 1),
    ROW("id", struct report, id, JSON_REQUIRED, .form = &FORM_SLUG),
    ROW("title", struct report, title, JSON_REQUIRED, .form = &FORM_LINE),
    ROW("unpublished", struct report, is_unpublished, JSON_OMIT),
    ROW_OBJECT("source", struct report, source, SOURCE_ROWS, JSON_NULLABLE),
    ROW_INSIDE("logs", LOGS_ROWS, JSON_NULLABLE),
    ROW("own_logs", struct report, own_logs, JSON_OMIT, .form = &FORM_PATH,
        .about =
            "the folder beside manifests/ with the raw logs; then source and logs may be null"),
    ROW("rules_inferred", struct report, rules_inferred, JSON_OMIT,
        .about = "nobody stated the rules: each was chosen because it gives numbers of its table"),
    ROW_LIST("not_printed", struct report, not_printed, n_not_printed, NOT_PRINTED_ROWS, JSON_OMIT,
             .about = "where a table has no number"),
    ROW_LIST("environments", struct report, environments, n_environments, ENVIRONMENT_ROWS,
             JSON_UNIQUE, .max = ENVIRONMENTS_MAX, .check = check_environment),
    ROW_LIST("stacks", struct report, stacks, n_stacks, STACK_ROWS, JSON_REQUIRED | JSON_UNIQUE,
             .min = 1, .max = STACKS_MAX, .check = check_stack),
    ROW_LIST("cases", struct report, cases, n_cases, CASE_ROWS, JSON_REQUIRED, .min = 1,
             .max = CASES_MAX, .check = check_case, .rules = CASE_RULES),
};
const struct json_document REPORT_DOCUMENT = {
    JSON_DOCUMENT("report.json", "a published report", ROWS),
    .about = "manifests/reports/ID.json; the meaning of each key is in manifests/reports/README.md",
    .rules = REPORT_RULES};

int report_decode(const struct json *root, struct arena *arena, struct report *ret_report,
                  struct err *err)
{
    struct report report = {.path = str_dup(arena, str_of(root->name))};
    if (json_decode(root, arena, ROWS, ARRAY_LEN(ROWS), &report, err) < 0 ||
        link_report(root, &report, err) < 0) {
        return -1;
    }
    *ret_report = report;
    return 0;
}

/* ---- where it is published ---- */

struct str report_log_path(const struct report *report, struct str path)
{
    struct str folder = report->logs_source.path;
    bool is_below = folder.len && str_starts(path, folder) && path.len > folder.len &&
                    path.ptr[folder.len] == '/';
    return is_below ? str_sub(path, folder.len + 1, SIZE_MAX) : path;
}

struct source_ref report_row_source(const struct report *report, const struct report_case *c)
{
    struct source_ref source = report->logs_source;
    if (!c->matched.ptr || c->n_logs == 0 || !source.repository.ptr) {
        return report->source;
    }
    source.path = report_log_path(report, c->logs[0]);
    const char *slash = memrchr(source.path.ptr, '/', source.path.len);
    source.path.len = slash ? (size_t)(slash - source.path.ptr) : source.path.len;
    return source;
}
