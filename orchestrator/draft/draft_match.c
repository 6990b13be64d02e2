/* SPDX-License-Identifier: Apache-2.0 */
/* Which log gives a printed number, by which rule. */
#include "base/base.h"

#include "draft/draft.h"

#include "base/map.h"
#include "judge/identity.h"
#include "log/logtime.h"
#include "report/shell_script.h"

#include <math.h>

#define CHANCE_MAX     0.02
#define CHANCE_SPREAD  2.3 /* ln 10 */
#define NAME_BYTES     96
#define DRAFT_PATH_MAX 1024
#define PER_NODE_MAX   1024 /* as a report's */
#define NODES_MAX      65536

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

bool draft_has_row_like(const struct draft *draft, const struct draft_attrs *log)
{
    for (size_t idx = 0; idx < draft->n + draft->n_others; idx++) {
        const struct draft_number *n =
            idx < draft->n ? &draft->items[idx] : &draft->others[idx - draft->n];
        if (agrees(&n->attrs, log)) {
            return true;
        }
    }
    return false;
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

/* ---- how near a log is to a number's row ---- */

enum nearness {
    NEAR_NOT,    /* contradicts the row */
    NEAR_MAYBE,  /* says nothing against it */
    NEAR_ROW,    /* belongs to the row by GPUs, precision, and batch or model */
    NEAR_LINKED, /* the table names it */
};

/* Only letters and digits. */
static size_t bare(struct str text, char *out, size_t size)
{
    size_t len = 0;
    for (size_t idx = 0; idx < text.len && len < size; idx++) {
        char c = text.ptr[idx];
        c = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
            out[len++] = c;
        }
    }
    return len;
}

static bool names_model(const struct draft_number *number, const struct draft_log *log)
{
    char model[NAME_BYTES];
    char path[DRAFT_PATH_MAX];
    size_t n_model = bare(number->attrs.model, model, sizeof(model));
    size_t n_path = bare(log->path, path, sizeof(path));
    return n_model >= 3 && memmem(path, n_path, model, n_model) != NULL;
}

struct known {  /* of the logs that name a number's model, or of all if none does */
    bool names; /* this log does */
    bool cards; /* some of them state their card */
};

static enum nearness nearness_of(const struct draft_number *number, const struct draft_log *log,
                                 const struct known *known)
{
    const struct draft_attrs *a = &number->attrs;
    const struct draft_attrs *b = &log->attrs;
    enum identity_state machine =
        a->machine.ptr
            ? identity_machine(&(struct identity_machine_words){a->machine, a->model, a->framework},
                               log->path)
            : ID_PROVEN;
    if (number->link_path.len && draft_is_below(log->path, number->link_path)) {
        return NEAR_LINKED;
    }
    if (!agrees(a, b) || machine == ID_CONTRADICTED ||
        (log->model.len && a->model.ptr && !a->is_model_a_guess &&
         !identity_is_model(a->model, log->model))) {
        return NEAR_NOT;
    }
    /* If others state their card, one that does not may be from any; and so may one that does not state the row's machine. */
    return machine == ID_PROVEN && a->gpus && a->gpus == b->gpus && a->precision.ptr &&
                   b->precision.ptr && ((a->batch && a->batch == b->batch) || known->names) &&
                   !(known->cards && a->hardware.ptr && !b->hardware.ptr)
               ? NEAR_ROW
               : NEAR_MAYBE;
}

static int64_t score_of(const struct draft_number *number, const struct draft_log *log, bool names)
{
    const struct draft_attrs *a = &number->attrs;
    const struct draft_attrs *b = &log->attrs;
    return 4 * shared_folders(number->document, log->path) +
           (a->gpus && a->gpus == b->gpus ? 8 : 0) + (a->batch && a->batch == b->batch ? 4 : 0) +
           (a->precision.ptr && b->precision.ptr ? 4 : 0) +
           (a->framework.ptr && b->framework.ptr ? 2 : 0) +
           (a->hardware.ptr && b->hardware.ptr ? 4 : 0) + (names ? 8 : 0);
}

/* ---- the number by a rule ---- */

/* What makes a value of the rule one of the number's unit: images and sequences are samples, and a time is one quantity in whatever unit;
   0: they are of two quantities. */
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

/* False if the rule gives nothing for the log. */
static bool value_of(const struct draft_number *number, const struct draft_log *log,
                     size_t rule_idx, double *ret)
{
    struct rule_case of = {.gpus = number->attrs.gpus ? number->attrs.gpus : log->attrs.gpus,
                           .nodes = number->attrs.nodes,
                           .batch_per_gpu =
                               number->attrs.batch ? number->attrs.batch : log->attrs.batch};
    struct rule_value value;
    struct draft_value *kept = &log->values[rule_idx];
    const struct rule *rules = log->format->rules;
    if (kept->is_known && (kept->is_of_log || (kept->gpus == of.gpus && kept->nodes == of.nodes &&
                                               kept->batch == of.batch_per_gpu))) {
        *ret = kept->value;
        return isfinite(kept->value);
    }
    *kept = (struct draft_value){.value = (double)NAN,
                                 .gpus = of.gpus,
                                 .nodes = of.nodes,
                                 .batch = of.batch_per_gpu,
                                 .is_known = true,
                                 .is_of_log = rules[rule_idx].scale == SCALE_NONE &&
                                              !rules[rule_idx].match_gpus &&
                                              rules[rule_idx].statistic != STAT_TIMESTAMPS};
    if (rule_apply(&rules[rule_idx], log->m, &of, &value, ERR_IGNORED) == 0) {
        kept->value = value.value;
    }
    *ret = kept->value;
    return isfinite(kept->value);
}

bool draft_log_gives(const struct draft_log *log, const struct rule **ret_rule, double *ret_value)
{
    static const struct draft_number OF_ITSELF = {0};
    const struct rule *rules = log->format->rules;
    size_t n = log->format->n_rules;
    for (size_t idx = 0; idx < n; idx++) {
        const struct series *series = measurement_series(log->m, rules[idx].series);
        if (series && series->n > 0 && rule_unit(&rules[idx], series->unit).len > 0 &&
            value_of(&OF_ITSELF, log, idx, ret_value)) {
            *ret_rule = &rules[idx];
            return true;
        }
    }
    return false;
}

/* NaN where the rule gives the number nothing. */
static double by_rule(const struct draft_number *n, const struct draft_log *log,
                      const struct rule *rule)
{
    const struct series *series = measurement_series(log->m, rule->series);
    double ratio =
        series && series->n > 0 ? unit_ratio(log, rule_unit(rule, series->unit), n->unit) : 0;
    double value;
    const struct rule *rules = log->format->rules;
    return ratio > 0 && value_of(n, log, (size_t)(rule - rules), &value) ? value * ratio
                                                                         : (double)NAN;
}

/* How far a value may be from the printed one and still match, as in audit. NaN: it does not match. */
static double width_of(const struct draft_number *number, const struct rule *rule, double value)
{
    double printed;
    int decimals = str_decimals(number->printed);
    if (lognumber_parse(number->printed, &printed) != NUMBER_OK || printed <= 0) {
        return (double)NAN;
    }
    switch (verdict_audit(value, printed, decimals, rule->rounding)) {
    case AUDIT_EXACT:
        return pow(10, -decimals) / printed;
    case AUDIT_MATCH:
        return 2 * MATCH_REL_MAX;
    case AUDIT_DIFFERS:
    case AUDIT_NO_LOG:
        break;
    }
    return (double)NAN;
}

/* ---- the log of a number ---- */

struct candidate {
    const struct draft_log *log;
    const struct rule *rule;
    double value, width; /* NaN: it does not fit */
    enum nearness nearness;
    int64_t score;
};

static bool is_better(const struct candidate *a, const struct candidate *b)
{
    bool fits = isfinite(a->width);
    if (!b->log || a->nearness != b->nearness) {
        /* A log of the row that does not fit is stronger evidence than one of any row that fits. */
        return !b->log || a->nearness > b->nearness;
    }
    if (fits != isfinite(b->width)) {
        return fits;
    }
    return a->score != b->score ? a->score > b->score : fits && a->width < b->width;
}

struct tries {
    size_t n[NEAR_LINKED + 1]; /* values that were compared, by nearness */
};

static void try_log(const struct draft_number *number, const struct draft_log *log,
                    const struct known *known, struct candidate *best, struct tries *tries)
{
    const struct rule *rules = log->format->rules;
    size_t n = log->format->n_rules;
    struct candidate c = {.log = log,
                          .nearness = nearness_of(number, log, known),
                          .score = score_of(number, log, known->names)};
    for (size_t idx = 0; idx < n && c.nearness > NEAR_NOT; idx++) {
        c.value = by_rule(number, log, &rules[idx]);
        if (!isfinite(c.value)) {
            continue;
        }
        tries->n[c.nearness]++;
        c.rule = &rules[idx];
        c.width = width_of(number, c.rule, c.value);
        /* A link to a log that belongs to another row, as both state, counts only if the log gives the number. */
        if (c.nearness == NEAR_LINKED && !isfinite(c.width) &&
            !agrees(&number->attrs, &log->attrs)) {
            continue;
        }
        if (is_better(&c, best)) {
            *best = c;
        }
    }
}

/* So many values were compared that one would match any printed number: rates lie anywhere within a factor of ten. */
static bool may_be_chance(const struct candidate *c, const struct tries *tries)
{
    return c->nearness == NEAR_MAYBE &&
           c->width * (double)tries->n[NEAR_MAYBE] / CHANCE_SPREAD > CHANCE_MAX;
}

static void find_log(const struct draft_logs *logs, struct draft_number *number)
{
    struct candidate best = {0};
    struct tries tries = {{0}};
    struct known known = {0};
    bool some_name = false;
    bool some_card = false;
    for (size_t idx = 0; idx < logs->n; idx++) {
        bool names = names_model(number, &logs->items[idx]);
        some_name |= names;
        some_card |= logs->items[idx].attrs.hardware.ptr != NULL;
        known.cards |= names && logs->items[idx].attrs.hardware.ptr != NULL;
    }
    known.cards = some_name ? known.cards : some_card;
    for (size_t idx = 0; idx < logs->n; idx++) {
        const struct draft_log *log = &logs->items[idx];
        bool is_linked = number->link_path.len && draft_is_below(log->path, number->link_path);
        known.names = some_name && names_model(number, log);
        if (known.names || !some_name || is_linked) {
            try_log(number, log, &known, &best, &tries);
        }
    }
    number->state = DRAFT_NO_LOG;
    number->is_by_chance = best.log && isfinite(best.width) && may_be_chance(&best, &tries);
    if (!best.log || number->is_by_chance || (!isfinite(best.width) && best.nearness < NEAR_ROW)) {
        return;
    }
    logs->items[best.log - logs->items].is_taken = true;
    number->log = best.log;
    number->rule = best.rule;
    number->state = isfinite(best.width) ? DRAFT_FITS : DRAFT_DIFFERS;
}

/* ---- one rule for a table ---- */

static bool same_table(const struct draft_number *a, const struct draft_number *b)
{
    return a->line == b->line && str_eq(a->document, b->document) && str_eq(a->metric, b->metric) &&
           str_eq(a->unit, b->unit);
}

static bool gives(const struct draft_number *n, const struct draft_log *log,
                  const struct rule *rule)
{
    return isfinite(width_of(n, rule, by_rule(n, log, rule)));
}

/* The numbers of the table of draft->items[first] whose log is of this format. */
static size_t count_given(const struct draft *draft, size_t first, const struct format *format,
                          const struct rule *rule)
{
    size_t n_given = 0;
    for (size_t idx = first; idx < draft->n; idx++) {
        const struct draft_number *n = &draft->items[idx];
        n_given += n->log && n->log->format == format && same_table(n, &draft->items[first]) &&
                   gives(n, n->log, rule);
    }
    return n_given;
}

/* The one log that no number has, that this rule reads, and that says how many GPUs the row has and nothing against it: it is the
   row's, whatever it gives. NULL: none, or several. */
static const struct draft_log *log_left(const struct draft_logs *logs, const struct draft_number *n,
                                        const struct draft_log *like, const struct rule *rule)
{
    const struct draft_log *left = NULL;
    for (size_t idx = 0; idx < logs->n; idx++) {
        const struct draft_log *log = &logs->items[idx];
        const struct known known = {.names = names_model(n, log)};
        if (log->is_taken || log->format != like->format ||
            shared_folders(log->path, like->path) != shared_folders(like->path, like->path) ||
            !n->attrs.gpus || log->attrs.gpus != n->attrs.gpus ||
            nearness_of(n, log, &known) == NEAR_NOT || !isfinite(by_rule(n, log, rule))) {
            continue;
        }
        if (left) {
            return NULL;
        }
        left = log;
    }
    return left;
}

static void take_log(struct draft_number *n, const struct draft_logs *logs,
                     const struct draft_log *log, const struct rule *rule)
{
    logs->items[log - logs->items].is_taken = true;
    n->log = log;
    n->rule = rule;
    n->state = gives(n, log, rule) ? DRAFT_FITS : DRAFT_DIFFERS;
}

/* A table is made by one rule: the one that gives most of its numbers whose logs are there; of several, the one that its format names
   first, as `measure` uses it. What it does not give differs. */
static void settle_table(const struct draft_logs *logs, struct draft *draft, size_t first)
{
    const struct draft_log *like = draft->items[first].log;
    const struct rule *best = draft->items[first].rule;
    size_t n_best = 0;
    for (size_t idx = first; idx < draft->n; idx++) {
        const struct draft_number *n = &draft->items[idx];
        size_t n_given =
            n->log && n->log->format == like->format && same_table(n, &draft->items[first])
                ? count_given(draft, first, like->format, n->rule)
                : 0;
        if (n_given > n_best || (n_given && n_given == n_best && n->rule < best)) {
            n_best = n_given;
            best = n->rule;
        }
    }
    for (size_t idx = first; idx < draft->n; idx++) {
        struct draft_number *n = &draft->items[idx];
        if (!same_table(n, &draft->items[first])) {
            continue;
        }
        if (n->log && n->log->format == like->format && isfinite(by_rule(n, n->log, best))) {
            take_log(n, logs, n->log, best);
        } else if (!n->log && n_best > 1) {
            const struct draft_log *left = log_left(logs, n, like, best);
            if (left) {
                take_log(n, logs, left, best);
            }
        }
    }
}

static void settle_tables(const struct draft_logs *logs, struct draft *draft)
{
    for (size_t idx = 0; idx < draft->n; idx++) {
        const struct draft_number *n = &draft->items[idx];
        bool is_first = n->log != NULL;
        for (size_t before = 0; is_first && before < idx; before++) {
            const struct draft_number *b = &draft->items[before];
            is_first = !(b->log && b->log->format == n->log->format && same_table(b, n));
        }
        if (is_first) {
            settle_table(logs, draft, idx);
        }
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

/* The same number of the same row: all that a row is stated, or the same place of the same table in another document. */
static bool is_again(const struct draft_number *a, const struct draft_number *b)
{
    return str_eq(a->printed, b->printed) && str_eq(a->metric, b->metric) &&
           (!b->missing.len || (a->line == b->line && a->row == b->row && a->column == b->column &&
                                !str_eq(a->document, b->document)));
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
    const struct draft_number *other = map_get(ids, n->id);
    for (size_t again = 1; other && !is_again(other, n); again++) {
        n->id = str_printf(arena,
                           again > 1 ? "%.*s/line-%" PRId64 "-row%zu-col%zu.%zu"
                                     : "%.*s/line-%" PRId64 "-row%zu-col%zu",
                           STR_ARG(row), n->line, n->row, n->column, again);
        other = map_get(ids, n->id);
    }
    n->is_repeated = other || !map_add(ids, n->id, n);
}

/* A folder's name does not contradict a log. */
static void take_model(struct arena *arena, struct draft_attrs *a, struct str stated)
{
    if (stated.len &&
        (!a->model.ptr || (a->is_model_a_guess && !identity_is_model(a->model, stated)))) {
        a->model = draft_slug(arena, stated);
    }
}

static void make_values(struct arena *arena, const struct draft_logs *logs)
{
    for (size_t idx = 0; idx < logs->n; idx++) {
        logs->items[idx].values =
            arena_array(arena, struct draft_value, logs->items[idx].format->n_rules + 1);
        logs->items[idx].model = identity_model(logs->items[idx].m);
    }
}

void draft_match(struct arena *arena, const struct draft_logs *logs,
                 const struct draft_attrs *given, struct draft *draft)
{
    CLEANUP(map) struct map ids = {0};
    make_values(arena, logs);
    for (size_t idx = 0; idx < draft->n_others; idx++) {
        if (draft->n == DRAFT_NUMBERS_MAX) {
            draft->n_left_out++;
        } else {
            draft->items[draft->n++] = draft->others[idx];
        }
    }
    for (size_t idx = 0; idx < draft->n; idx++) {
        struct draft_number *n = &draft->items[idx];
        fill(&n->attrs, given);
        n->link_path = draft_link_path(arena, n->document, n->link);
        find_log(logs, n);
    }
    settle_tables(logs, draft);
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
