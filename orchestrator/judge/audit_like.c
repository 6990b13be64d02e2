/* SPDX-License-Identifier: Apache-2.0 */
/* Like for like: each row of two frameworks under one rule: items over time, the same number of first steps left out on both
   sides, nothing trimmed, no last interval that holds a checkpoint. Running means are converted to the times between their
   lines. If a log holds only a tool's own figure, that figure is used, and the row says so. */
#include "base/base.h"

#include <math.h>

#include "judge/audit_parts.h"

#define WARMUP_SHARE 0.1 /* of the shorter run's steps */
/* A last interval this much slower than the slowest of the others contains more than its steps. */
#define CHECKPOINT_FACTOR 1.15
#define REASON_BYTES      300
#define NOT_ALIKE         "not alike: "

/* --- one log as intervals --------------------------------------------------------------------------- */

static bool is_pace(const struct series *s)
{
    return s->n > 0 && (s->quantity == QTY_RATE || s->quantity == QTY_RUNNING_MEAN ||
                        s->quantity == QTY_STEP_TIME);
}

/* The series that the cell's rule reads if it gives the speed of each interval; else the primary one if that does. */
static const struct series *pace_series(const struct rule *rule, const struct measurement *m)
{
    const struct series *own = measurement_series(m, rule->series);
    const struct series *primary = measurement_primary(m);
    if (own && is_pace(own)) {
        return own;
    }
    if (rule->match_gpus) { /* a table over several GPU counts: the lines before it are of several jobs */
        return NULL;
    }
    return primary && is_pace(primary) ? primary : NULL;
}

static double job_factor(const struct series *s, const struct report_case *c)
{
    return s->scope == SCOPE_RANK ? (double)c->gpus : s->scope == SCOPE_NODE ? (double)c->nodes : 1;
}

/* Seconds a step. The batch cancels out when items are counted again. */
static double mean_time(const struct series *s, const struct report_case *c, double value)
{
    return s->quantity == QTY_STEP_TIME
               ? value
               : (double)c->gpus * (double)c->batch_per_gpu / (value * job_factor(s, c));
}

/* The batch that ran, to turn step times into rates: the log takes precedence over the table. */
static int64_t batch_of(const struct cell_audit *a, const struct series *s)
{
    const struct measurement *m = cell_measurement(a, 0);
    const struct fact *fact =
        s->quantity == QTY_STEP_TIME
            ? measurement_fact(m, STR_LIT("batch_per_gpu"), a->by ? rule_run(a->by, m) : -1)
            : NULL;
    int64_t batch = a->of_case->batch_per_gpu;
    return fact && str_to_i64(fact->value, 1, INT32_MAX, &batch, ERR_IGNORED) < 0
               ? a->of_case->batch_per_gpu
               : batch;
}

/* Seconds from line to line. A running mean's total is steps so far times mean so far. */
static void add_interval(const struct series *s, const struct report_case *c, struct pace *pace,
                         const struct sample *at, double *before_total_s, int64_t first_step)
{
    struct interval *i = &pace->items[pace->n];
    int64_t before = pace->n ? pace->items[pace->n - 1].step : first_step - 1;
    i->step = at->step;
    i->n_steps = at->step > before ? at->step - before : 1;
    i->seconds = mean_time(s, c, at->value) * (double)i->n_steps;
    if (s->quantity == QTY_RUNNING_MEAN) {
        double total_s = mean_time(s, c, at->value) * (double)(at->step - first_step + 1);
        i->seconds = total_s - *before_total_s;
        *before_total_s = total_s;
    }
    pace->n++;
}

bool audit_pace(struct audit *audit, const struct cell_audit *a, struct pace *ret)
{
    const struct rule *rule = a->by;
    const struct measurement *m = cell_measurement(a, 0);
    const struct series *s = rule && m ? pace_series(rule, m) : NULL;
    double total_s = 0;
    int64_t first_step = 0;
    if (!s) {
        return false;
    }
    int run = rule_run_of(rule, s);
    *ret = (struct pace){.items = arena_array(audit->arena, struct interval, s->n), .series = s};
    for (size_t idx = 0; idx < s->n; idx++) {
        const struct sample *at = &s->samples[idx];
        if (at->run != run || at->rank != s->samples[0].rank || !isfinite(at->value) ||
            at->value <= 0) {
            continue;
        }
        if (ret->n == 0) {
            /* Intervals are equally long: the run began that many steps before the first line. */
            first_step = s->quantity == QTY_RUNNING_MEAN || at->step < 1 ? at->step : 1;
        }
        add_interval(s, a->of_case, ret, at, &total_s, first_step);
    }
    if (ret->n > 1 && s->quantity != QTY_RUNNING_MEAN) { /* numbering need not begin at 1 */
        ret->items[0].n_steps = ret->items[1].n_steps;
        ret->items[0].seconds =
            mean_time(s, a->of_case, s->samples[0].value) * (double)ret->items[0].n_steps;
    }
    return ret->n > 0;
}

/* How much slower the last interval's steps are than the slowest of the others after `from`; 0 if there are too few. */
double pace_last_over_slowest(const struct pace *pace, size_t from)
{
    double slowest = 0;
    const struct interval *last = &pace->items[pace->n - 1];
    for (size_t idx = from; idx + 1 < pace->n; idx++) {
        double step_s = pace->items[idx].seconds / (double)pace->items[idx].n_steps;
        slowest = step_s > slowest ? step_s : slowest;
    }
    return slowest > 0 ? last->seconds / (double)last->n_steps / slowest : 0;
}

/* --- a row ---------------------------------------------------------------------------------------- */

struct side {
    const struct cell_audit *cell;
    struct pace pace;
    bool has_pace, drops_last;
    int64_t batch; /* of a GPU */
    int64_t n_steps;
};

static void read_side(struct audit *audit, const struct cell_audit *a, struct side *side)
{
    side->cell = a;
    side->has_pace = audit_pace(audit, a, &side->pace);
    side->batch = side->has_pace ? batch_of(a, side->pace.series) : a->of_case->batch_per_gpu;
    for (size_t idx = 0; side->has_pace && idx < side->pace.n; idx++) {
        side->n_steps += side->pace.items[idx].n_steps;
    }
}

/* Items per second after the first `skip` steps; NAN if nothing is left. */
static double side_rate(struct side *side, int64_t skip)
{
    const struct report_case *c = side->cell->of_case;
    int64_t done = 0;
    int64_t n_steps = 0;
    double seconds = 0;
    size_t from = 0;
    size_t to = side->pace.n;
    while (from < to && done < skip) {
        done += side->pace.items[from++].n_steps;
    }
    if (to - from > 1 && side->pace.series->quantity == QTY_STEP_TIME &&
        pace_last_over_slowest(&side->pace, from) > CHECKPOINT_FACTOR) {
        side->drops_last = true;
        to--;
    }
    for (size_t idx = from; idx < to; idx++) {
        n_steps += side->pace.items[idx].n_steps;
        seconds += side->pace.items[idx].seconds;
    }
    return n_steps > 0 ? (double)n_steps * (double)c->gpus * (double)side->batch / seconds
                       : (double)NAN;
}

/* Differences that a common rule cannot remove. */
static void list_reasons(const struct side *a, const struct side *b, struct strbuf *out)
{
    static const char *const NAMES[] = {
        "parameters", "macs_per_sample", "optimizer", "precision_mode", "grad_accumulation",
        "dataset",    "dataset_repeats", "cuda",      "layout"};
    const struct report_case *x = a->cell->of_case;
    const struct report_case *y = b->cell->of_case;
    if (a->batch != b->batch) {
        strbuf_printf(out, NOT_ALIKE "batch %" PRId64 " / %" PRId64, a->batch, b->batch);
    }
    for (size_t idx = 0; idx < ARRAY_LEN(NAMES); idx++) {
        struct str of_x = STR_EMPTY;
        struct str of_y = STR_EMPTY;
        if (case_condition(x, NAMES[idx], &of_x) && of_x.ptr &&
            case_condition(y, NAMES[idx], &of_y) && of_y.ptr && !str_eq(of_x, of_y)) {
            strbuf_printf(out, "%s%s %s / %s", out->len ? "; " : NOT_ALIKE, NAMES[idx], of_x.ptr,
                          of_y.ptr);
        }
    }
    if (!a->has_pace || !b->has_pace) {
        strbuf_printf(out, "%sa tool's figure for its whole run stands for its log",
                      out->len ? "; " : NOT_ALIKE);
    }
}

/* The log's own figure if it has nothing else: the number that its rule gives. */
static double fallback_rate(const struct side *side)
{
    return side->cell->n_logs ? side->cell->recomputed : (double)NAN;
}

static void fill_row(struct audit *audit, struct like_row *row)
{
    CLEANUP(strbuf) struct strbuf reasons = STRBUF(REASON_BYTES);
    struct side a = {0};
    struct side b = {0};
    int64_t skip = 0;
    read_side(audit, row->a, &a);
    read_side(audit, row->b, &b);
    if (a.has_pace && b.has_pace) {
        double share = ceil(WARMUP_SHARE * (double)(a.n_steps < b.n_steps ? a.n_steps : b.n_steps));
        skip = (int64_t)share;
        skip = a.pace.items[0].n_steps > skip ? a.pace.items[0].n_steps : skip;
        skip = b.pace.items[0].n_steps > skip ? b.pace.items[0].n_steps : skip;
    }
    row->value_a = a.has_pace ? side_rate(&a, skip) : fallback_rate(&a);
    row->value_b = b.has_pace ? side_rate(&b, skip) : fallback_rate(&b);
    row->ratio = row->value_a / row->value_b;
    row->published_ratio = row->a->cell->published / row->b->cell->published;
    row->rule = a.has_pace && b.has_pace
                    ? str_printf(audit->arena,
                                 "items over time without the first %" PRId64 " steps%s", skip,
                                 a.drops_last || b.drops_last
                                     ? " and the last interval, which holds a checkpoint"
                                     : "")
                    : STR_LIT("items over time of the whole run, warm-up included");
    list_reasons(&a, &b, &reasons);
    row->note = str_dup(audit->arena, strbuf_str(&reasons));
}

static bool is_rate_cell(const struct cell_audit *a)
{
    return a->cell->metric == METRIC_THROUGHPUT && cell_measurement(a, 0);
}

/* How many cells of the same stack and place have a smaller batch: frameworks use other batches for what is one row of a table,
   so rows pair their n-th batches. */
static size_t batch_rank(const struct report_audit *out, const struct cell_audit *a)
{
    size_t n = 0;
    for (size_t idx = 0; idx < out->n_cells; idx++) {
        const struct cell_audit *b = &out->cells[idx];
        n += b->cell->metric == METRIC_THROUGHPUT && b->of_case->stack == a->of_case->stack &&
             report_same_row(a->of_case, b->of_case) &&
             b->of_case->batch_per_gpu < a->of_case->batch_per_gpu;
    }
    return n;
}

/* The framework that a model's table begins with is the report's own. */
static const struct stack *own_stack(const struct report *report, const struct report_case *c)
{
    for (size_t idx = 0; idx < report->n_cases; idx++) {
        if (report->cases[idx].n_cells && str_eq(report->cases[idx].model, c->model)) {
            return report->cases[idx].stack;
        }
    }
    return NULL;
}

void audit_like_for_like(struct audit *audit)
{
    struct report_audit *out = audit->out;
    out->rows = arena_array(audit->arena, struct like_row, out->n_cells + 1);
    for (size_t i = 0; i < out->n_cells; i++) {
        const struct cell_audit *a = &out->cells[i];
        if (!is_rate_cell(a) || a->of_case->stack != own_stack(audit->report, a->of_case)) {
            continue;
        }
        for (size_t j = 0; j < out->n_cells && out->n_rows < out->n_cells; j++) {
            const struct cell_audit *b = &out->cells[j];
            if (is_rate_cell(b) && a->of_case->stack != b->of_case->stack &&
                report_same_row(a->of_case, b->of_case) &&
                batch_rank(out, a) == batch_rank(out, b)) {
                out->rows[out->n_rows].a = a;
                out->rows[out->n_rows].b = b;
                fill_row(audit, &out->rows[out->n_rows++]);
            }
        }
    }
}
