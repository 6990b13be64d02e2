/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "view/compare.h"

#include <math.h>

#include "base/fs.h"
#include "base/log.h"
#include "codec/digest.h"
#include "judge/stats.h"
#include "load/measured.h"
#include "report/hostlist.h"

#define ZSTD_MAGIC    "\x28\xb5\x2f\xfd"
#define LOG_NODE      "log" /* what a log says is listed as of a node of that name */
#define FACTS_OF_LOGS 4096

void compare_cleanup(struct compare *compare)
{
    run_view_close(&compare->a.view);
    run_view_close(&compare->b.view);
    format_set_release(&compare->formats);
    VEC_RELEASE(&compare->changes);
}

/* ---- a log as a side. Steps that follow each other are not independent, so their own spread would give an interval that is
   too narrow; means of long batches nearly are. ---- */

/* A file that is not an archive. */
static bool is_log(const char *name)
{
    char magic[4] = "";
    struct str text = str_of(name);
    FILE *file = fs_is_dir(name) || str_ends(text, STR_LIT(".tar.zst")) ? NULL : fopen(name, "re");
    size_t len = file ? fread(magic, 1, sizeof(magic), file) : 0;
    if (file) {
        (void)fclose(file);
    }
    bool is_zstd = len == sizeof(magic) && memcmp(magic, ZSTD_MAGIC, sizeof(magic)) == 0;
    return file && (!is_zstd || str_ends(text, STR_LIT(".log.zst")));
}

static bool is_used(const struct measured *f, const enum sample_use *uses, size_t idx)
{
    const struct figure *figure = &f->number.figure;
    int32_t n_ranks = 1;
    if (f->rule) {
        return use_is_in_window(uses[idx]);
    }
    for (size_t at = 0; figure->n_skipped && at < f->series->n; at++) {
        int32_t rank = f->series->samples[at].rank;
        n_ranks = rank >= n_ranks ? rank + 1 : n_ranks;
    }
    return idx >= figure->n_skipped * (size_t)n_ranks && idx + figure->n_dropped < f->series->n;
}

/* Only rates and times of steps have batches; a running mean or a summary is one number. */
static int find_batches(struct arena *arena, const struct measured *f, struct summary *ret,
                        struct err *err)
{
    const struct series *series = f->series;
    double value = f->number.made.value;
    enum sample_use *uses = arena_array(arena, enum sample_use, series->n + 1);
    double *values = arena_array(arena, double, series->n + 1);
    double means[STATS_BATCHES];
    size_t n = 0;
    *ret = (struct summary){1, value, value, (double)NAN, value, value};
    if (series->quantity != QTY_RATE && series->quantity != QTY_STEP_TIME) {
        return 0;
    }
    if (f->rule && rule_uses(f->rule, &f->m, &f->of, uses, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < series->n; idx++) {
        if (is_used(f, uses, idx)) {
            values[n++] = series->samples[idx].value;
        }
    }
    if (!stats_batch_means(values, n, means)) {
        return 0;
    }
    double scale = value / stats_mean(means, STATS_BATCHES);
    for (size_t idx = 0; idx < STATS_BATCHES; idx++) {
        means[idx] *= scale;
    }
    stats_sort(means, STATS_BATCHES);
    *ret = (struct summary){STATS_BATCHES,
                            value,
                            stats_sorted_median(means, STATS_BATCHES),
                            stats_std(means, STATS_BATCHES),
                            means[0],
                            means[STATS_BATCHES - 1]};
    return 0;
}

static int measure(struct compare *c, const char *root, struct measured *f, struct err *err)
{
    const char *named = c->opts.format;
    CLEANUP(log_forms) struct log_forms forms = {.arena = c->arena};
    CLEANUP(guesser) struct guesser *guesser = NULL;
    if (c->formats.n == 0 && (named ? load_format_named(c->arena, root, named, &c->formats, err)
                                    : load_formats(c->arena, root, &c->formats, err)) < 0) {
        return -1;
    }
    guesser = named ? NULL : guesser_new(&c->formats);
    const struct measure_ask ask = {.set = &c->formats, .guesser = guesser, .gpus = 1, .nodes = 1};
    if (measured_log(c->arena, &ask, &forms, f, err) < 0) {
        return -1;
    }
    return f->has_value && judgement_is_ok(f->verdict)
               ? 0
               : err_set(err, ERR_PARSE, "%s: %s: %.*s%s", f->file, PARSE_VERDICT_NAMES[f->verdict],
                         STR_ARG(f->why),
                         f->format || f->fits_several
                             ? ""
                             : "; reperf measure LOG --suggest FILE.json makes a format, and "
                               "--format takes it");
}

static void add_facts(struct arena *arena, struct run_view *view, const struct fact *facts,
                      size_t n, struct str format)
{
    struct setting *all = arena_array(arena, struct setting, view->n_settings + n + 1);
    size_t at = 0;
    for (; at < view->n_settings; at++) {
        all[at] = view->settings[at];
    }
    if (format.ptr) {
        all[at++] = (struct setting){STR_LIT(LOG_NODE), STR_LIT("format"), format};
    }
    for (size_t idx = 0; idx < n && idx < FACTS_OF_LOGS; idx++) {
        if (STR_NAMED(facts, n, name, facts[idx].name) == &facts[idx]) { /* the first of it */
            all[at++] = (struct setting){STR_LIT(LOG_NODE), facts[idx].name, facts[idx].value};
        }
    }
    view->settings = all;
    view->n_settings = at;
    run_view_sort(view);
}

static int open_log(struct compare *c, const char *root, const char *path, struct compare_side *ret,
                    struct err *err)
{
    struct compare_log *log = arena_new(c->arena, struct compare_log);
    struct measured *f = arena_new(c->arena, struct measured);
    struct report_case *of_case = arena_new(c->arena, struct report_case);
    struct plan_step *step = arena_new(c->arena, struct plan_step);
    struct cell_result *cell = arena_new(c->arena, struct cell_result);
    *f = (struct measured){.file = path};
    log->path = path;
    *cell = (struct cell_result){
        .step = step, .of_case = of_case, .rel_diff = (double)NAN, .verdict = RUN_NOT_COMPARABLE};
    if (measure(c, root, f, err) < 0 || find_batches(c->arena, f, &cell->summary, err) < 0 ||
        digest_file_hex(c->arena, path, &log->sha256, err) < 0) {
        return -1;
    }
    cell->value = f->number.made.value;
    cell->unit = f->number.unit;
    log->n_steps = f->number.made.n_used;
    log->format = of_case->id = step->case_id = f->format->id;
    step->bound.of_case = of_case;
    ret->log = log;
    ret->view.frozen.run_id = str_of(path);
    ret->view.result = (struct run_result){.cells = cell, .n_cells = 1};
    add_facts(c->arena, &ret->view, f->m.facts, f->m.n_facts, log->format);
    return load_vocabulary(c->arena, root, &ret->view.frozen.vocabulary, err);
}

int compare_open(struct compare *c, const struct cmd_ctx *ctx, const char *name,
                 struct compare_side *ret, struct err *err)
{
    return is_log(name) ? open_log(c, ctx->root, name, ret, err)
                        : run_view_open(c->arena, ctx->clock, ctx->state, name, &ret->view, err);
}

/* Gives a log's cell the case of the run or log beside it. */
static int match_log(struct arena *arena, struct compare_side *log, struct compare_side *other,
                     struct err *err)
{
    struct run_result *result = &other->view.result;
    struct report_case *of_case = arena_new(arena, struct report_case);
    if (other->log) { /* of two logs it is one row, whichever formats read them */
        *of_case = *log->view.result.cells[0].of_case;
        if (!str_eq(log->log->format, other->log->format)) {
            of_case->id = STR_LIT("log");
        }
        log->view.result.cells[0].of_case = result->cells[0].of_case = of_case;
        return 0;
    }
    if (result->n_cells != 1) {
        return err_set(err, ERR_USAGE,
                       "%s is a log, and the run beside it has %zu cases: with which of them is it "
                       "to be compared?",
                       log->log->path, result->n_cells);
    }
    log->view.result.cells[0].of_case = result->cells[0].of_case;
    for (size_t idx = 0; idx < result->cells[0].n_repeats; idx++) {
        const struct repeat_result *repeat = &result->cells[0].repeats[idx];
        if (repeat->counts) {
            add_facts(arena, &other->view, repeat->facts, repeat->n_facts,
                      result->cells[0].step->format);
            break;
        }
    }
    return 0;
}

/* ---- what differs ---- */

/* Names by their beginnings, first match. */
static const struct {
    const char *prefix;
    enum weight weight;
} WEIGHTS[] = {
    {"conditions.driver", WEIGHT_LIKELY},
    {"conditions.gpu", WEIGHT_LIKELY},
    {"machine.gpus", WEIGHT_LIKELY},
    {"conditions.cpu", WEIGHT_LIKELY},
    {"machine.cpus_online", WEIGHT_LIKELY},
    {"machine.cpu_governor", WEIGHT_LIKELY},
    {"machine.cpu_max_khz", WEIGHT_LIKELY},
    {"machine.cpu_flags", WEIGHT_LIKELY},
    {"software.programs.reperf-train", WEIGHT_LIKELY},
    {"image", WEIGHT_LIKELY},
    {"nodes", WEIGHT_LIKELY},
    {"runtime", WEIGHT_LIKELY},
    {"variables.", WEIGHT_LIKELY},
    {"plan.", WEIGHT_LIKELY},
    {"software.commit", WEIGHT_POSSIBLE},
    {"software.is_changed", WEIGHT_POSSIBLE},
    {"software.compiler", WEIGHT_POSSIBLE},
    {"software.libc", WEIGHT_POSSIBLE},
    {"machine.kernel", WEIGHT_POSSIBLE},
    {"machine.architecture", WEIGHT_LIKELY},
    {"machine.load_before", WEIGHT_POSSIBLE},
    {"machine.memory", WEIGHT_POSSIBLE},
    {"conditions.", WEIGHT_POSSIBLE},
};

static enum weight weight_of(struct str name)
{
    for (size_t idx = 0; idx < ARRAY_LEN(WEIGHTS); idx++) {
        if (str_starts(name, str_of(WEIGHTS[idx].prefix))) {
            return WEIGHTS[idx].weight;
        }
    }
    return WEIGHT_INCIDENTAL;
}

static void add_change(struct compare *c, struct str name, enum weight weight, struct str a,
                       struct str b)
{
    bool is_same = (!a.ptr && !b.ptr) || (a.ptr && b.ptr && str_eq(a, b));
    if (!is_same) {
        VEC_PUSH(&c->changes, (struct change){name, a, b, weight});
    }
}

static bool has_node(const struct run_view *view, struct str node)
{
    return STR_NAMED(view->settings, view->n_settings, node, node) != NULL;
}

/* A node that only one of the runs had is not compared value by value. */
static void compare_setting(struct compare *c, const struct setting *left,
                            const struct setting *right)
{
    const struct setting *any = left ? left : right;
    ASSERT(any);
    if ((!left || !right) &&
        !(has_node(&c->a.view, any->node) && has_node(&c->b.view, any->node))) {
        return;
    }
    add_change(c,
               str_eq_z(any->node, "local")
                   ? any->name
                   : str_printf(c->arena, "%.*s: %.*s", STR_ARG(any->node), STR_ARG(any->name)),
               str_eq_z(any->node, LOG_NODE) ? WEIGHT_LIKELY : weight_of(any->name),
               left ? left->value : STR_EMPTY, right ? right->value : STR_EMPTY);
}

static struct str fold_nodes(struct arena *arena, const struct run_view *view)
{
    struct str *names = arena_array(arena, struct str, view->n_settings + 1);
    size_t n = 0;
    for (size_t idx = 0; idx < view->n_settings; idx++) {
        struct str node = view->settings[idx].node;
        bool is_node = !str_eq_z(node, "local") && !str_eq_z(node, LOG_NODE);
        if (is_node && (n == 0 || !str_eq(names[n - 1], node))) {
            names[n++] = node;
        }
    }
    return n ? hostlist_fold(arena, names, n) : STR_LIT("local");
}

/* Both lists are sorted by setting_cmp. */
static void compare_settings(struct compare *c)
{
    const struct run_view *a = &c->a.view, *b = &c->b.view;
    size_t at_a = 0;
    size_t at_b = 0;
    while (at_a < a->n_settings || at_b < b->n_settings) {
        int order = at_a == a->n_settings   ? 1
                    : at_b == b->n_settings ? -1
                                            : setting_cmp(&a->settings[at_a], &b->settings[at_b]);
        const struct setting *left = order <= 0 ? &a->settings[at_a++] : NULL;
        const struct setting *right = order >= 0 ? &b->settings[at_b++] : NULL;
        compare_setting(c, left, right);
    }
    add_change(c, STR_LIT("nodes"), WEIGHT_LIKELY, fold_nodes(c->arena, a),
               fold_nodes(c->arena, b));
}

/* Conditions that the two plans set for one case; the machine's own are among the settings. */
static void compare_steps(struct compare *c, const struct plan_step *a, const struct plan_step *b)
{
    for (size_t idx = 0; idx < a->n_conditions + a->n_env; idx++) {
        bool is_env = idx >= a->n_conditions;
        const typeof(a->env[0]) *of = is_env ? &a->env[idx - a->n_conditions] : &a->conditions[idx];
        add_change(c,
                   str_printf(c->arena, "plan.%.*s.%s%.*s", STR_ARG(a->case_id),
                              is_env ? "env." : "", STR_ARG(of->name)),
                   WEIGHT_LIKELY, of->value,
                   is_env ? condition_value(b->env, b->n_env, of->name)
                          : condition_value(b->conditions, b->n_conditions, of->name));
    }
}

/* NULL where the run has no such case. */
static const struct cell_result *find_cell(const struct compare_side *side, struct str case_id)
{
    for (size_t idx = 0; idx < side->view.result.n_cells; idx++) {
        if (str_eq(side->view.result.cells[idx].of_case->id, case_id)) {
            return &side->view.result.cells[idx];
        }
    }
    return NULL;
}

static void compare_plans(struct compare *c)
{
    const struct frozen *a = &c->a.view.frozen, *b = &c->b.view.frozen;
    const struct {
        struct str name, a, b;
    } parts[] = {
        {STR_LIT("plan.report"), a->plan.report, b->plan.report},
        {STR_LIT("plan.report_sha256"), a->report_sha256, b->report_sha256},
        {STR_LIT("plan.profile"), str_of(PROFILE_NAMES[a->plan.profile]),
         str_of(PROFILE_NAMES[b->plan.profile])},
        {STR_LIT("plan.rehearsal"), str_of(a->plan.is_rehearsal ? "yes" : NULL),
         str_of(b->plan.is_rehearsal ? "yes" : NULL)},
    };
    for (size_t idx = 0; idx < ARRAY_LEN(parts); idx++) {
        add_change(c, parts[idx].name, WEIGHT_LIKELY, parts[idx].a, parts[idx].b);
    }
    for (size_t idx = 0; idx < c->a.view.result.n_cells; idx++) {
        const struct cell_result *cell = &c->a.view.result.cells[idx];
        const struct cell_result *other = find_cell(&c->b, cell->of_case->id);
        if (other) {
            compare_steps(c, cell->step, other->step);
        }
    }
}

static int by_weight(const void *a, const void *b)
{
    const struct change *x = a;
    const struct change *y = b;
    return x->weight != y->weight ? (x->weight < y->weight ? -1 : 1) : str_cmp(x->name, y->name);
}

/* ---- the cells ---- */

const char *const GATE_NAMES[] = {NULL, "within", "undecided", "slower", "missing"};

/* Only one of the runs is a rehearsal: their numbers are of different work. */
static bool is_apart(const struct compare *c)
{
    return c->a.view.frozen.plan.is_rehearsal != c->b.view.frozen.plan.is_rehearsal;
}

static void compare_cells(const struct compare *c, struct compare_row *row)
{
    const struct cell_result *a = row->a, *b = row->b;
    double half = 0;
    row->change = row->low = row->high = (double)NAN;
    if (is_apart(c) || !a || !b || !isfinite(a->value) || !isfinite(b->value) ||
        !str_eq(a->unit, b->unit)) {
        return;
    }
    const struct stats_sample of_a = {a->summary.n, a->summary.mean, a->summary.std};
    const struct stats_sample of_b = {b->summary.n, b->summary.mean, b->summary.std};
    row->change = rel_diff(b->value, a->value);
    row->exceeds_spread = of_a.n > 0 && of_b.n > 0 &&
                          (a->summary.max < b->summary.min || b->summary.max < a->summary.min);
    row->has_interval = stats_change_ci95(&of_a, &of_b, &half);
    row->low = row->has_interval ? row->change - half : (double)NAN;
    row->high = row->has_interval ? row->change + half : (double)NAN;
    bool is_time = unit_is(c->a.view.frozen.vocabulary, a->unit, "time");
    row->speed = is_time ? 1 / (1 + row->change) - 1 : row->change;
    row->speed_low = is_time ? 1 / (1 + row->high) - 1 : row->low;
    row->speed_high = is_time ? 1 / (1 + row->low) - 1 : row->high;
}

static enum gate gate_of(const struct compare_row *row, double share)
{
    if (!row->a || !isfinite(row->a->value)) {
        return GATE_UNDECIDED;
    }
    if (!isfinite(row->change)) {
        return GATE_MISSING;
    }
    if (!row->has_interval || (row->speed_low < -share && row->speed_high >= -share)) {
        return GATE_UNDECIDED;
    }
    return row->speed_high < -share ? GATE_SLOWER : GATE_WITHIN;
}

static void find_rows(struct compare *c)
{
    const struct run_result *a = &c->a.view.result, *b = &c->b.view.result;
    c->rows = arena_array(c->arena, struct compare_row, a->n_cells + b->n_cells + 1);
    c->outcome = a->n_cells + b->n_cells ? GATE_WITHIN : GATE_UNDECIDED;
    for (size_t at = 0; at < a->n_cells + b->n_cells; at++) {
        bool is_of_a = at < a->n_cells;
        struct compare_row row = {
            .case_id = (is_of_a ? &a->cells[at] : &b->cells[at - a->n_cells])->of_case->id};
        row.a = find_cell(&c->a, row.case_id);
        row.b = find_cell(&c->b, row.case_id);
        compare_cells(c, &row);
        row.gate = c->opts.has_gate ? gate_of(&row, c->opts.tolerance) : GATE_NONE;
        if (is_of_a || !row.a) {
            c->rows[c->n_rows++] = row;
            c->outcome = row.gate > c->outcome ? row.gate : c->outcome;
        }
    }
}

int compare_sides(struct compare *c, struct err *err)
{
    struct compare_side *const sides[] = {&c->a, &c->b};
    if ((c->a.log || c->b.log) &&
        match_log(c->arena, c->a.log ? &c->a : &c->b, c->a.log ? &c->b : &c->a, err) < 0) {
        return -1;
    }
    if (!c->a.log && !c->b.log) {
        compare_plans(c);
    }
    compare_settings(c);
    VEC_SORT(&c->changes, by_weight);
    for (size_t idx = 0; idx < ARRAY_LEN(sides); idx++) {
        const struct run_view *view = &sides[idx]->view;
        if (!sides[idx]->log) {
            columns_of(c->arena, &view->frozen, &view->result, view->audit, &sides[idx]->columns);
        }
    }
    find_rows(c);
    return 0;
}

bool compare_is_outlier(const struct cell_result *cell, size_t repeat_idx)
{
    CLEANUP(free) double *values = xcalloc(cell->n_repeats + 1, sizeof(*values));
    size_t n = 0;
    size_t own = 0;
    for (size_t idx = 0; idx < cell->n_repeats; idx++) {
        if (cell->repeats[idx].counts) {
            own = idx == repeat_idx ? n : own;
            values[n++] = cell->repeats[idx].value;
        }
    }
    return cell->repeats[repeat_idx].counts && stats_is_outlier(values, n, own);
}

/* ---- the gate ---- */

/* "95 % interval -13.10 % to -11.90 %, from 3 and 3 repeats", or that there is none, and why. */
static void add_interval(const struct compare_row *row, struct strbuf *out)
{
    const struct cell_result *a = row->a, *b = row->b;
    /* A log has no repeats, but batches of steps. */
    bool is_of_runs = a->n_repeats && b->n_repeats;
    const char *what = is_of_runs                       ? "repeats"
                       : !a->n_repeats && !b->n_repeats ? "batches of steps"
                                                        : "repeats or batches of steps";
    if (row->has_interval) {
        strbuf_printf(out, "95 %% interval %+.2f %% to %+.2f %%, from %zu and %zu %s",
                      100 * row->speed_low, 100 * row->speed_high, a->summary.n, b->summary.n,
                      what);
    } else {
        strbuf_printf(out, "%zu and %zu %s give no interval: each %s", a->summary.n, b->summary.n,
                      what,
                      is_of_runs ? "run needs two that count"
                                 : "run needs two repeats that count, each log 20 steps");
    }
}

static bool passes(const struct compare_opts *opts, const struct compare_row *row)
{
    bool is_beyond = isfinite(row->change) && row->speed < -opts->tolerance;
    return row->gate == GATE_WITHIN ||
           (row->gate == GATE_UNDECIDED && opts->allows_undecided && !is_beyond);
}

static void say(const struct compare *c, const struct compare_row *row)
{
    CLEANUP(strbuf) struct strbuf interval = STRBUF(512);
    enum gate gate = row->gate;
    enum log_level level = !passes(&c->opts, row)   ? LOG_ERROR
                           : gate == GATE_UNDECIDED ? LOG_WARN
                                                    : LOG_INFO;
    if (!isfinite(row->change)) {
        log_line(level, "%.*s: %s: %s", STR_ARG(row->case_id), GATE_NAMES[gate],
                 is_apart(c)            ? "only one of the runs is a rehearsal"
                 : gate == GATE_MISSING ? "a value in A, none in B with that unit"
                                        : "no value in A to compare with");
        return;
    }
    add_interval(row, &interval);
    log_line(level, "%.*s: %s: %s by %.2f %%, tolerance %.4g %% (%s)%s", STR_ARG(row->case_id),
             GATE_NAMES[gate], row->speed < 0 ? "slower" : "faster", 100 * fabs(row->speed),
             100 * c->opts.tolerance, interval.ptr,
             gate == GATE_UNDECIDED ? "; too few repeats to tell" : "");
}

int compare_gate(const struct compare *c)
{
    size_t n[GATE_MISSING + 1] = {0};
    size_t n_values = 0;
    bool is_passed = true;
    for (size_t idx = 0; idx < c->n_rows; idx++) {
        const struct compare_row *row = &c->rows[idx];
        say(c, row);
        n[row->gate]++;
        n_values += isfinite(row->change);
        is_passed = is_passed && passes(&c->opts, row);
    }
    if (is_apart(c)) {
        log_line(LOG_ERROR, "one of the runs is a rehearsal: its numbers are of other work, and "
                            "nothing was compared");
    } else if (n_values == 0) {
        log_line(LOG_ERROR, "no cell has a value in both runs: nothing was compared");
    }
    log_line(is_passed && n_values ? LOG_INFO : LOG_ERROR,
             "tolerance %.4g %%: %zu cells within, %zu slower, %zu undecided, %zu missing in B",
             100 * c->opts.tolerance, n[GATE_WITHIN], n[GATE_SLOWER], n[GATE_UNDECIDED],
             n[GATE_MISSING]);
    return !is_passed || n_values == 0;
}
