/* SPDX-License-Identifier: Apache-2.0 */
/* A log as one side of a comparison: a result of one cell, whose "repeats" are means of batches of its steps. Steps that follow each other
   are not independent, so their own spread would give an interval that is too narrow; means of long batches nearly are. */
#include "base/base.h"

#include "cmd/compare_parts.h"

#include <math.h>

#include "base/fs.h"
#include "codec/digest.h"
#include "judge/judgement.h"
#include "judge/number.h"
#include "judge/stats.h"
#include "load/load.h"
#include "load/measure.h"

#define ZSTD_MAGIC    "\x28\xb5\x2f\xfd"
#define LOG_NODE      "log" /* what a log says is listed as of a node of that name */
#define FACTS_OF_LOGS 4096

bool compare_is_log(const char *name)
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

/* ---- the number ---- */

static int find_format(const struct format_set *set, const char *path, const char *named,
                       const struct format **ret, struct err *err)
{
    CLEANUP(guesser) struct guesser *guesser = guesser_new(set);
    CLEANUP(log_head) struct log_head head = {0};
    struct guess guess;
    *ret = set->items[0];
    if (named) {
        return 0;
    }
    if (measure_choose(guesser, set, path, &head, &guess, err) < 0) {
        return -1;
    }
    *ret = guess.n == 1 ? guess.formats[0] : NULL;
    return guess.n == 1 ? 0
                        : err_set(err, ERR_PARSE,
                                  guess.n ? "%s: several formats fit; --format names one"
                                          : "%s: no known format reads it; reperf measure %s "
                                            "--suggest FILE.json makes one, and --format takes it",
                                  path, path);
}

struct log_figure { /* a log's number, and what it was made of */
    const struct measurement *m;
    const struct series *series;
    const struct rule *rule; /* NULL: the engine */
    struct rule_case of;
    struct made_number number;
};

static bool is_used(const struct log_figure *made, const enum sample_use *uses, size_t idx)
{
    const struct figure *figure = &made->number.figure;
    int32_t n_ranks = 1;
    if (made->rule) {
        return use_is_in_window(uses[idx]);
    }
    for (size_t at = 0; figure->n_skipped && at < made->series->n; at++) {
        int32_t rank = made->series->samples[at].rank;
        n_ranks = rank >= n_ranks ? rank + 1 : n_ranks;
    }
    return idx >= figure->n_skipped * (size_t)n_ranks && idx + figure->n_dropped < made->series->n;
}

/* Of rates and times of steps; a running mean or a summary is one number. */
static int find_batches(struct arena *arena, const struct log_figure *made, struct summary *ret,
                        struct err *err)
{
    const struct series *series = made->series;
    double value = made->number.made.value;
    enum sample_use *uses = arena_array(arena, enum sample_use, series->n + 1);
    double *values = arena_array(arena, double, series->n + 1);
    double means[STATS_BATCHES];
    size_t n = 0;
    *ret = (struct summary){1, value, value, (double)NAN, value, value};
    if (series->quantity != QTY_RATE && series->quantity != QTY_STEP_TIME) {
        return 0;
    }
    if (made->rule && rule_uses(made->rule, made->m, &made->of, uses, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < series->n; idx++) {
        if (is_used(made, uses, idx)) {
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

static int measure(struct arena *arena, const struct format *format, struct compare_log *log,
                   struct measurement *m, struct cell_result *cell, struct err *err)
{
    const struct reading how = {.format = format, .path = log->path, .is_of_rates = true};
    struct log_figure made = {.m = m, .of = {.gpus = 1, .nodes = 1}};
    if (measure_file(arena, &how, m, NULL, err) < 0 ||
        digest_file_hex(arena, log->path, &log->sha256, err) < 0) {
        return -1;
    }
    made.series = measurement_primary(m);
    const struct judgement j = judgement_of(arena, m, NULL, DEMAND_PART);
    if (!j.gives || !judgement_is_ok(j.verdict)) {
        return err_set(err, ERR_PARSE, "%s: %s: %.*s", log->path, PARSE_VERDICT_NAMES[j.verdict],
                       STR_ARG(j.why));
    }
    if (number_of_log(format, m, NULL, &made.of, &made.number, err) < 0) {
        return err_wrap(err, "%s", log->path);
    }
    made.rule = number_rule(format, made.series, &made.of);
    log->n_steps = made.number.made.n_used;
    cell->value = made.number.made.value;
    cell->unit = made.number.unit;
    return find_batches(arena, &made, &cell->summary, err);
}

/* ---- as a run ---- */

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
        bool is_new = true;
        for (size_t before = 0; before < idx; before++) {
            is_new = is_new && !str_eq(facts[before].name, facts[idx].name);
        }
        if (is_new) {
            all[at++] = (struct setting){STR_LIT(LOG_NODE), facts[idx].name, facts[idx].value};
        }
    }
    view->settings = all;
    view->n_settings = at;
    run_view_sort(view);
}

static int load_set(const struct compare_logs *logs, struct err *err)
{
    const char *named = logs->format;
    if (logs->set->n) {
        return 0;
    }
    if (!named) {
        return load_formats(logs->arena, logs->root, logs->set, err);
    }
    return load_format_named(logs->arena, logs->root, named, logs->set, err);
}

int compare_open_log(const struct compare_logs *logs, const char *path, struct compare_side *ret,
                     struct err *err)
{
    struct arena *arena = logs->arena;
    struct compare_log *log = arena_new(arena, struct compare_log);
    struct measurement *m = arena_new(arena, struct measurement);
    struct report_case *of_case = arena_new(arena, struct report_case);
    struct plan_step *step = arena_new(arena, struct plan_step);
    struct cell_result *cell = arena_new(arena, struct cell_result);
    const struct format *format;
    log->path = path;
    *cell = (struct cell_result){
        .step = step, .of_case = of_case, .rel_diff = (double)NAN, .verdict = RUN_NOT_COMPARABLE};
    if (load_set(logs, err) < 0 || find_format(logs->set, path, logs->format, &format, err) < 0 ||
        measure(arena, format, log, m, cell, err) < 0) {
        return -1;
    }
    log->format = format_id(format);
    of_case->id = step->case_id = log->format;
    step->bound.of_case = of_case;
    ret->log = log;
    ret->view.frozen.run_id = str_of(path);
    ret->view.result = (struct run_result){.cells = cell, .n_cells = 1};
    add_facts(arena, &ret->view, m->facts, m->n_facts, log->format);
    return load_vocabulary(arena, logs->root, &ret->view.frozen.vocabulary, err);
}

int compare_match_log(struct arena *arena, struct compare_side *log, struct compare_side *other,
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
