/* SPDX-License-Identifier: Apache-2.0 */
/* Which log gives a printed number, by which rule. */
#include "base/base.h"

#include "judge/draft.h"

#include "base/map.h"
#include "judge/logtime.h"

#include <math.h>

#define MATCH_SHARE 0.0005 /* as audit's verdict match */

static void fill(struct draft_attrs *into, const struct draft_attrs *from)
{
    into->nodes = into->nodes || into->gpus ? into->nodes : from->nodes;
    into->gpus = into->gpus ? into->gpus : from->gpus;
    into->batch = into->batch ? into->batch : from->batch;
    into->precision = into->precision.ptr ? into->precision : from->precision;
    into->framework = into->framework.ptr ? into->framework : from->framework;
    into->model = into->model.ptr ? into->model : from->model;
}

static bool agrees(const struct draft_attrs *a, const struct draft_attrs *b)
{
    return !(a->gpus && b->gpus && a->gpus != b->gpus) &&
           !(a->batch && b->batch && a->batch != b->batch) &&
           !(a->precision.ptr && b->precision.ptr && !str_eq(a->precision, b->precision) &&
             !((str_eq_z(a->precision, "amp") || str_eq_z(a->precision, "fp16")) &&
               (str_eq_z(b->precision, "amp") || str_eq_z(b->precision, "fp16")))) &&
           !(a->framework.ptr && b->framework.ptr && !str_eq(a->framework, b->framework));
}

/* How many folders of the path both have from the root on. */
static int64_t shared_folders(struct str a, struct str b)
{
    int64_t n = 0;
    for (size_t idx = 0; idx < a.len && idx < b.len && a.ptr[idx] == b.ptr[idx]; idx++) {
        n += a.ptr[idx] == '/';
    }
    return n;
}

static bool is_linked(const struct draft_number *number, const struct draft_log *log)
{
    struct str link = number->link;
    if (str_starts(link, STR_LIT("./"))) {
        link = str_sub(link, 2, link.len);
    }
    return link.len > 3 && str_ends(log->path, link);
}

static int64_t score_of(const struct draft_number *number, const struct draft_log *log)
{
    const struct draft_attrs *a = &number->attrs;
    const struct draft_attrs *b = &log->attrs;
    int64_t shared = shared_folders(number->document, log->path);
    bool is_flat = !memchr(number->document.ptr, '/', number->document.len);
    if (is_linked(number, log)) {
        return 1000;
    }
    if ((shared == 0 && !is_flat) || !agrees(a, b)) {
        return -1;
    }
    shared *= 4;
    shared += a->gpus && a->gpus == b->gpus ? 8 : 0;
    shared += a->batch && a->batch == b->batch ? 4 : 0;
    shared += a->precision.ptr && b->precision.ptr ? 4 : 0;
    shared += a->framework.ptr && b->framework.ptr ? 2 : 0;
    return shared;
}

/* The number by a rule of the log's format: whether it is the printed one. */
static bool try_rule(const struct draft_number *number, const struct draft_log *log,
                     const struct rule *rule, double *ret)
{
    struct rule_case of = {.gpus = number->attrs.gpus ? number->attrs.gpus : log->attrs.gpus,
                           .nodes = number->attrs.nodes,
                           .batch_per_gpu =
                               number->attrs.batch ? number->attrs.batch : log->attrs.batch};
    const struct series *series = measurement_series(log->m, rule->series);
    struct rule_value value;
    struct err ignored = {0};
    double printed;
    int decimals = str_decimals(number->printed);
    if (!series || series->n == 0 || !str_eq(rule_unit(rule, series->unit), number->unit) ||
        rule_apply(rule, log->m, &of, &value, &ignored) < 0 ||
        lognumber_parse(number->printed, &printed) != NUMBER_OK) {
        return false;
    }
    *ret = value.value;
    return fabs(rule_round(rule->rounding, value.value, decimals) - printed) <
               0.01 * pow(10, -decimals) ||
           fabs(value.value - printed) <= MATCH_SHARE * printed;
}

/* Units of one dimension are taken for each other in tables: images are samples. */
static const struct rule *first_rule(const struct draft_number *number, const struct draft_log *log,
                                     bool *ret_fits, double *ret_value)
{
    const struct rule *rules;
    const struct rule *first = NULL;
    size_t n = format_rules(log->format, &rules);
    *ret_fits = false;
    for (size_t idx = 0; idx < n; idx++) {
        double value = (double)NAN;
        bool fits = try_rule(number, log, &rules[idx], &value);
        if (isfinite(value) && (!first || fits)) {
            first = &rules[idx];
            *ret_value = value;
            *ret_fits = fits;
        }
        if (fits) {
            break;
        }
    }
    return first;
}

static void find_log(const struct draft_logs *logs, struct draft_number *number)
{
    int64_t best = -1;
    bool best_fits = false;
    for (size_t idx = 0; idx < logs->n; idx++) {
        const struct draft_log *log = &logs->items[idx];
        int64_t score = score_of(number, log);
        bool fits = false;
        double value = 0;
        const struct rule *rule = score < 0 ? NULL : first_rule(number, log, &fits, &value);
        if (rule && (fits > best_fits || (fits == best_fits && score > best))) {
            best = score;
            best_fits = fits;
            number->log = log;
            number->rule = rule;
            number->value = value;
        }
    }
    /* Of another number only a log that is of the row by its GPUs and precision is its log. */
    if (number->log && !best_fits && best < 1000 &&
        !(number->attrs.gpus && number->attrs.gpus == number->log->attrs.gpus &&
          number->attrs.precision.ptr && number->log->attrs.precision.ptr)) {
        number->log = NULL;
        number->rule = NULL;
    }
    number->state = !number->log ? DRAFT_NO_LOG : best_fits ? DRAFT_FITS : DRAFT_DIFFERS;
}

static void name_missing(struct arena *arena, struct draft_number *n)
{
    const struct draft_attrs *a = &n->attrs;
    const char *text = arena_printf(
        arena, "%s%s%s%s%s", a->model.ptr ? "" : " model", a->framework.ptr ? "" : " framework",
        a->precision.ptr ? "" : " precision", a->gpus ? "" : " GPUs", a->batch ? "" : " batch");
    n->missing = str_of(text[0] ? text + 1 : text);
    if (n->missing.len) {
        n->state = DRAFT_UNPLACED;
    }
}

/* Nodes that nobody states: one, or as many as hold the GPUs. */
static void make_grid(const struct draft_attrs *given, struct draft_attrs *a)
{
    int64_t each = given->gpus_per_node;
    if (a->nodes <= 0 || a->gpus % a->nodes != 0) {
        a->nodes = a->gpus > each && a->gpus % each == 0 ? a->gpus / each : 1;
    }
}

/* The case's id; of a second number for the same row, one with its place in the table. */
static void make_id(struct arena *arena, struct map *ids, struct draft_number *n)
{
    const struct draft_attrs *a = &n->attrs;
    struct draft_number *other;
    n->grid = str_of(arena_printf(arena, "n%" PRId64 "g%" PRId64, a->nodes, a->gpus / a->nodes));
    n->id = str_of(arena_printf(arena, "%.*s/%.*s/%.*s/%.*s/bs%" PRId64, STR_ARG(a->model),
                                STR_ARG(a->framework), STR_ARG(a->precision), STR_ARG(n->grid),
                                a->batch));
    other = map_get(ids, n->id);
    if (other && str_eq(other->printed, n->printed)) {
        n->is_repeated = true;
        return;
    }
    if (other) {
        n->id = str_of(arena_printf(arena, "%.*s/line-%" PRId64 "-row%zu-col%zu", STR_ARG(n->id),
                                    n->line, n->row, n->column));
    }
    n->is_repeated = !map_add(ids, n->id, n);
}

void draft_match(struct arena *arena, const struct draft_logs *logs,
                 const struct draft_attrs *given, struct draft *draft)
{
    CLEANUP(map) struct map ids = {0};
    for (size_t idx = 0; idx < draft->n; idx++) {
        struct draft_number *n = &draft->items[idx];
        fill(&n->attrs, given);
        find_log(logs, n);
        if (n->log) {
            fill(&n->attrs, &n->log->attrs);
        }
        name_missing(arena, n);
        if (n->state != DRAFT_UNPLACED) {
            make_grid(given, &n->attrs);
            make_id(arena, &ids, n);
        }
    }
}
