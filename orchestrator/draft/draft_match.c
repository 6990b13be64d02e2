/* SPDX-License-Identifier: Apache-2.0 */
/* Which log gives a printed number, by which rule. */
#include "base/base.h"

#include "draft/draft.h"

#include "base/map.h"
#include "judge/identity.h"
#include "log/logtime.h"
#include "report/shell_script.h"

#include <math.h>

#define MODEL_BYTES_MIN 3
#define PER_NODE_MAX    1024 /* as a report's */
#define NODES_MAX       65536

static void fill(struct draft_attrs *into, const struct draft_attrs *from)
{
    into->nodes = into->nodes || into->gpus ? into->nodes : from->nodes;
    into->gpus = into->gpus ? into->gpus : from->gpus;
    into->batch = into->batch ? into->batch : from->batch;
    into->precision = into->precision.ptr ? into->precision : from->precision;
    into->framework = into->framework.ptr ? into->framework : from->framework;
    into->model = into->model.ptr ? into->model : from->model;
}

static bool is_half(struct str precision)
{
    return str_eq_z(precision, "amp") || str_eq_z(precision, "fp16");
}

static bool differ(struct str a, struct str b)
{
    return a.ptr && b.ptr && !str_eq(a, b);
}

static bool agrees(const struct draft_attrs *a, const struct draft_attrs *b)
{
    return !(a->gpus && b->gpus && a->gpus != b->gpus) &&
           !(a->batch && b->batch && a->batch != b->batch) &&
           !(differ(a->precision, b->precision) &&
             !(is_half(a->precision) && is_half(b->precision))) &&
           !differ(a->framework, b->framework) && !differ(a->hardware, b->hardware) &&
           !(a->purpose && b->purpose && a->purpose != b->purpose);
}

/* How many folders from the root on the two paths share. */
static int64_t shared_folders(struct str a, struct str b)
{
    int64_t n = 0;
    for (size_t idx = 0; idx < a.len && idx < b.len && a.ptr[idx] == b.ptr[idx]; idx++) {
        n += a.ptr[idx] == '/';
    }
    return n;
}

/* ---- links ---- */

struct str draft_link_path(struct arena *arena, struct str document, struct str link)
{
    static const char *const PLACES[] = {"/blob/", "/tree/", "/raw/"};
    struct str ignored;
    for (size_t idx = 0; idx < link.len; idx++) {
        link.len = strchr("?#\" ", link.ptr[idx]) ? idx : link.len;
    }
    for (size_t idx = 0; idx < ARRAY_LEN(PLACES) && str_find(link, STR_LIT("://")) >= 0; idx++) {
        int64_t at = str_find(link, str_of(PLACES[idx]));
        if (at >= 0) {
            link = str_sub(link, (size_t)at + strlen(PLACES[idx]), link.len);
            (void)str_next(&link, '/', &ignored); /* the branch */
            link = str_printf(arena, "/%.*s", STR_ARG(link));
        }
    }
    if (!link.len || str_find(link, STR_LIT(":")) >= 0) {
        return STR_EMPTY;
    }
    document.len -= path_base(document).len;
    struct str path = path_resolve(arena, document, link);
    return str_sub(path, 1, path.len);
}

/* Whether it is that file, or lies in that folder. */
static bool draft_is_below(struct str path, struct str link_path)
{
    return link_path.len > 0 && str_starts(path, link_path) &&
           (path.len == link_path.len || path.ptr[link_path.len] == '/');
}

/* ---- the logs of a row ---- */

static bool is_linked(const struct draft_number *number, const struct draft_log *log)
{
    return number->link_path.len && draft_is_below(log->path, number->link_path);
}

struct known { /* of the logs that name a number's model, or of all if none does */
    struct str model;
    bool names, cards; /* some of them do; some of them state their card */
};

static bool names_model(const struct known *known, const struct draft_log *log)
{
    return known->model.len >= MODEL_BYTES_MIN && str_find(log->words, known->model) >= 0;
}

static struct known known_of(struct arena *arena, const struct draft_logs *logs,
                             const struct draft_number *number)
{
    struct known known = {.model = draft_bare(arena, number->attrs.model)};
    bool cards[2] = {false, false};
    for (size_t idx = 0; idx < logs->n; idx++) {
        bool names = names_model(&known, &logs->items[idx]);
        known.names |= names;
        cards[names] |= logs->items[idx].attrs.hardware.ptr != NULL;
    }
    known.cards = cards[known.names];
    return known;
}

/* How much both state, more for a log that the table links to; 0: it is not the row's. A log of a row says how many GPUs and
   something else that the row has, and nothing against it; where others state their card or the row its machine, it states
   that. */
static int64_t score_of(const struct draft_number *number, const struct draft_log *log,
                        const struct known *known)
{
    const struct draft_attrs *a = &number->attrs;
    const struct draft_attrs *b = &log->attrs;
    const struct identity_machine_words machine = {a->machine, a->model, a->framework};
    bool names = names_model(known, log);
    bool has_card = a->hardware.ptr && b->hardware.ptr;
    int64_t score = (a->batch && a->batch == b->batch ? 4 : 0) +
                    (a->precision.ptr && b->precision.ptr ? 4 : 0) + (names ? 8 : 0) +
                    (has_card ? 4 : 0);
    if (is_linked(number, log)) {
        return INT16_MAX;
    }
    if (!agrees(a, b) || (known->names && !names) || !a->gpus || a->gpus != b->gpus || !score ||
        (known->cards && a->hardware.ptr && !has_card) ||
        (a->machine.ptr && identity_machine(&machine, log->path) != ID_PROVEN) ||
        (log->model.len && a->model.ptr && !a->is_model_a_guess &&
         !identity_is_model(a->model, log->model))) {
        return 0;
    }
    return score + 4 * shared_folders(number->document, log->path) +
           (a->framework.ptr && b->framework.ptr ? 2 : 0);
}

/* ---- the number by a rule ---- */

/* What makes a value of the rule one of the number's unit: images and sequences are samples, and a time is one quantity in
   whatever unit; 0: they are of two quantities. */
static double unit_ratio(const struct draft_log *log, struct str unit, struct str wanted)
{
    bool is_a = str_eq_z(unit, "samples/s");
    bool is_b = str_eq_z(wanted, "samples/s");
    struct str other = is_a ? wanted : unit;
    bool is_same =
        str_eq(unit, wanted) ||
        ((is_a || is_b) && (str_eq_z(other, "images/s") || str_eq_z(other, "sequences/s")));
    return is_same ? 1 : unit_time_ratio(log->format->vocabulary, unit, wanted);
}

enum given { GIVES_NOTHING, GIVES_ANOTHER, GIVES_IT };

/* What the log gives by the rule: nothing of the number's unit, the printed number as audit sees it, or another. */
static enum given given_by(const struct draft_number *n, const struct draft_log *log,
                           const struct rule *rule)
{
    const struct series *series = measurement_series(log->m, rule->series);
    double ratio =
        series && series->n > 0 ? unit_ratio(log, rule_unit(rule, series->unit), n->unit) : 0;
    const struct rule_case of = {.gpus = n->attrs.gpus ? n->attrs.gpus : log->attrs.gpus,
                                 .nodes = n->attrs.nodes,
                                 .batch_per_gpu =
                                     n->attrs.batch ? n->attrs.batch : log->attrs.batch};
    struct rule_value value;
    double printed;
    if (!(ratio > 0) || rule_apply(rule, log->m, &of, &value, ERR_IGNORED) < 0 ||
        !isfinite(value.value) || lognumber_parse(n->printed, &printed) != NUMBER_OK) {
        return GIVES_NOTHING;
    }
    enum audit_verdict verdict =
        verdict_audit(value.value * ratio, printed, str_decimals(n->printed), rule->rounding);
    return verdict == AUDIT_EXACT || verdict == AUDIT_MATCH ? GIVES_IT : GIVES_ANOTHER;
}

/* The best of all rules of its format; *ret_rule is the first of them. */
static enum given best_given(const struct draft_number *n, const struct draft_log *log,
                             const struct rule **ret_rule)
{
    enum given best = GIVES_NOTHING;
    for (size_t idx = 0; idx < log->format->n_rules && best < GIVES_IT; idx++) {
        enum given given = given_by(n, log, &log->format->rules[idx]);
        *ret_rule = given > best ? &log->format->rules[idx] : *ret_rule;
        best = given > best ? given : best;
    }
    return best;
}

/* The log that has most in common with the row; of several the one that gives the number. A link to a log that belongs to another
   row, as both state, counts only if the log gives the number. */
static void find_log(struct arena *arena, const struct draft_logs *logs,
                     struct draft_number *number)
{
    const struct known known = known_of(arena, logs, number);
    int64_t best = 0;
    enum given best_by = GIVES_NOTHING;
    number->state = DRAFT_NO_LOG;
    for (size_t idx = 0; idx < logs->n; idx++) {
        const struct draft_log *log = &logs->items[idx];
        const struct rule *rule = NULL;
        int64_t score = score_of(number, log, &known);
        if (score < best || score == 0) {
            continue;
        }
        enum given given = best_given(number, log, &rule);
        bool is_of_another = given == GIVES_ANOTHER && !agrees(&number->attrs, &log->attrs);
        if (given != GIVES_NOTHING && !is_of_another && (score > best || given > best_by)) {
            best = score;
            best_by = given;
            number->log = log;
            number->rule = rule;
        }
    }
}

/* ---- one rule for a table ---- */

static bool is_alike(const struct draft_number *a, const struct draft_number *b)
{
    return a->log && b->log && a->log->format == b->log->format && a->line == b->line &&
           str_eq(a->document, b->document) && str_eq(a->metric, b->metric) &&
           str_eq(a->unit, b->unit);
}

/* A table is made by one rule: the one that gives most of its numbers whose logs are there; of several, the one that its format
   names first, as `measure` uses it. What it does not give differs. */
static void settle_table(struct draft *draft, size_t first)
{
    const struct draft_number *like = &draft->items[first];
    const struct format *format = like->log->format;
    const struct rule *best = like->rule;
    size_t n_best = 0;
    for (size_t at = 0; at < format->n_rules; at++) {
        size_t n = 0;
        for (size_t idx = first; idx < draft->n; idx++) {
            n +=
                is_alike(like, &draft->items[idx]) &&
                given_by(&draft->items[idx], draft->items[idx].log, &format->rules[at]) == GIVES_IT;
        }
        best = n > n_best ? &format->rules[at] : best;
        n_best = n > n_best ? n : n_best;
    }
    for (size_t idx = first; idx < draft->n; idx++) {
        struct draft_number *n = &draft->items[idx];
        if (!is_alike(like, n)) {
            continue;
        }
        enum given given = given_by(n, n->log, best);
        n->rule = given == GIVES_NOTHING ? n->rule : best;
        n->state = given_by(n, n->log, n->rule) == GIVES_IT ? DRAFT_FITS : DRAFT_DIFFERS;
    }
}

/* What is not stated appears so in the row: "unstated", n0g0, bs0. */
static void name_missing(struct arena *arena, struct draft_number *n)
{
    struct draft_attrs *a = &n->attrs;
    const char *text = arena_printf(
        arena, "%s%s%s%s%s", a->model.ptr ? "" : " model", a->framework.ptr ? "" : " framework",
        a->precision.ptr ? "" : " precision", a->gpus ? "" : " GPUs", a->batch ? "" : " batch");
    n->missing = str_of(text[0] ? text + 1 : text);
    if (!a->model.ptr && !draft_says_row(a)) {
        n->state = DRAFT_UNPLACED;
    }
    a->model = a->model.ptr ? a->model : STR_LIT("unstated");
    a->framework = a->framework.ptr ? a->framework : STR_LIT("unstated");
    a->precision = a->precision.ptr ? a->precision : STR_LIT("unstated");
}

/* The number of nodes if it is not stated: one, or as many as the GPUs need. */
static void make_grid(const struct draft_attrs *given, struct draft_attrs *a)
{
    int64_t each = given->gpus_per_node;
    if (!a->gpus) {
        a->nodes = 0;
    } else if (a->nodes <= 0 || a->gpus % a->nodes != 0 || a->gpus / a->nodes > PER_NODE_MAX) {
        a->nodes = a->gpus > each && a->gpus % each == 0 ? a->gpus / each : 1;
    }
    if ((a->gpus > PER_NODE_MAX && a->nodes == 1) || a->nodes > NODES_MAX) {
        a->nodes = a->gpus = 0;
    }
}

/* The case's id; for a second number of the same row, one with its place in the table. */
static void make_id(struct arena *arena, struct map *ids, struct draft_number *n)
{
    const struct draft_attrs *a = &n->attrs;
    n->grid =
        str_printf(arena, "n%" PRId64 "g%" PRId64, a->nodes, a->nodes ? a->gpus / a->nodes : 0);
    struct str row =
        str_printf(arena, "%.*s/%.*s/%.*s/%.*s/bs%" PRId64, STR_ARG(a->model),
                   STR_ARG(a->framework), STR_ARG(a->precision), STR_ARG(n->grid), a->batch);
    n->id = row;
    for (size_t again = 1; !map_add(ids, n->id, n); again++) {
        const struct draft_number *other = map_get(ids, n->id);
        n->is_repeated = !n->missing.len && str_eq(other->printed, n->printed) &&
                         str_eq(other->metric, n->metric);
        if (n->is_repeated) {
            return;
        }
        n->id = str_printf(arena,
                           again > 1 ? "%.*s/line-%" PRId64 "-row%zu-col%zu.%zu"
                                     : "%.*s/line-%" PRId64 "-row%zu-col%zu",
                           STR_ARG(row), n->line, n->row, n->column, again);
    }
}

/* A folder's name does not contradict a log. */
static void take_model(struct arena *arena, struct draft_attrs *a, struct str stated)
{
    if (stated.len &&
        (!a->model.ptr || (a->is_model_a_guess && !identity_is_model(a->model, stated)))) {
        a->model = draft_slug(arena, stated);
    }
}

void draft_match(struct arena *arena, const struct draft_logs *logs,
                 const struct draft_attrs *given, struct draft *draft)
{
    CLEANUP(map) struct map ids = {0};
    for (size_t idx = 0; idx < draft->n; idx++) {
        fill(&draft->items[idx].attrs, given);
        find_log(arena, logs, &draft->items[idx]);
    }
    for (size_t idx = 0; idx < draft->n; idx++) {
        if (draft->items[idx].log && draft->items[idx].state == DRAFT_NO_LOG) {
            settle_table(draft, idx);
        }
    }
    for (size_t idx = 0; idx < draft->n; idx++) {
        struct draft_number *n = &draft->items[idx];
        if (n->log) {
            fill(&n->attrs, &n->log->attrs);
            take_model(arena, &n->attrs, n->log->model);
        }
        name_missing(arena, n);
        if (n->state != DRAFT_UNPLACED) {
            make_grid(given, &n->attrs);
            make_id(arena, &ids, n);
        }
    }
}
