/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "draft/measure_folder.h"

#include <math.h>

#include "base/fs.h"
#include "base/table.h"
#include "codec/json.h"
#include "draft/round.h"
#include "judge/judgement.h"
#include "load/load.h"
#include "sys/pool_lanes.h"

#define TEXT_BYTES_MAX (1u << 20)
#define STATUS_FAILED  9                             /* parse */
#define CHECKS_MAX     ((size_t)LOGS_MAX * LOGS_MAX) /* pairs of seeds, and five of each log */

struct folder_check { /* that failed, or could not be checked */
    const char *rule;
    bool has_failed;
    struct str why;
};

struct folder {
    struct arena *arena;
    const struct submission *s;
    const struct rule *rule;
    struct rule_repeat repeats[LOGS_MAX];
    bool has_repeat[LOGS_MAX];
    size_t fastest, slowest;
    bool has_dropped;
    struct folder_check checks[CHECKS_MAX];
    size_t n_checks;
};

static void add_check(struct folder *f, const char *rule, bool has_failed, const char *why)
{
    ASSERT(f->n_checks < CHECKS_MAX);
    f->checks[f->n_checks++] = (struct folder_check){rule, has_failed, str_of(why)};
}

static const struct fact *fact_of(const struct measurement *m, const char *name)
{
    for (size_t idx = 0; m && idx < m->n_facts; idx++) {
        if (str_eq_z(m->facts[idx].name, name)) {
            return &m->facts[idx];
        }
    }
    return NULL;
}

static const char *name_of(const struct folder *f, size_t log)
{
    const char *slash = strrchr(f->s->logs[log].path.ptr, '/');
    return slash ? slash + 1 : f->s->logs[log].path.ptr;
}

/* ---- what the rules say ---- */

static void check_clock(struct folder *f, size_t log)
{
    const struct measurement *m = f->s->logs[log].measurement;
    const struct series *run = measurement_series(m, STR_LIT("run"));
    const struct judgement j = judgement_of(f->arena, m, f->rule, DEMAND_WHOLE);
    if (!j.gives) {
        add_check(f, "log-whole", true,
                  arena_printf(f->arena, "%s: %.*s", name_of(f, log), STR_ARG(j.why)));
    }
    if (!run || run->n != 2 || !(run->samples[0].time_s < run->samples[1].time_s)) {
        add_check(
            f, "start-before-stop", true,
            arena_printf(f->arena,
                         "%s: expected one run_start and, later, one run_stop; found %zu lines",
                         name_of(f, log), run ? run->n : 0));
    }
}

/* The last evaluation against the target that the rule holds for this benchmark. */
static void check_target(struct folder *f, size_t log)
{
    const struct measurement *m = f->s->logs[log].measurement;
    const struct series *eval = measurement_series(m, STR_LIT("eval_accuracy"));
    const struct fact *model = fact_of(m, "model");
    const struct rule_target *target = model ? rule_target_for(f->rule, model->value) : NULL;
    double last;
    if (isinf(f->repeats[log].value)) {
        return; /* a run that did not succeed need not */
    }
    if (!target || !eval || eval->n == 0) {
        add_check(f, "target-reached", false,
                  arena_printf(f->arena, "%s: not checked: %s", name_of(f, log),
                               target ? "its evaluations are no plain numbers"
                                      : "no target is held for its benchmark"));
        return;
    }
    last = eval->samples[eval->n - 1].value;
    if (!(target->is_most ? last <= target->value : last >= target->value)) {
        add_check(f, "target-reached", true,
                  arena_printf(f->arena, "%s: its last evaluation is %g, and the target is %s %g",
                               name_of(f, log), last, target->is_most ? "at most" : "at least",
                               target->value));
    }
}

static void check_seeds(struct folder *f)
{
    for (size_t idx = 0; idx < f->s->n_logs; idx++) {
        const struct fact *seed = fact_of(f->s->logs[idx].measurement, "seed");
        if (!seed) {
            add_check(
                f, "seeds-differ", false,
                arena_printf(f->arena, "%s: not checked: it states no seed", name_of(f, idx)));
        }
        for (size_t before = 0; seed && before < idx; before++) {
            const struct fact *other = fact_of(f->s->logs[before].measurement, "seed");
            if (other && str_eq(seed->value, other->value)) {
                add_check(f, "seeds-differ", true,
                          arena_printf(f->arena, "%s and %s: both have seed %.*s",
                                       name_of(f, before), name_of(f, idx), STR_ARG(seed->value)));
            }
        }
    }
}

static void check_count(struct folder *f)
{
    const struct fact *first = fact_of(f->s->logs[0].measurement, "model");
    int64_t required =
        f->s->logs[0].measurement ? rule_required_for(f->rule, f->s->logs[0].measurement) : 0;
    for (size_t idx = 1; idx < f->s->n_logs; idx++) {
        const struct fact *model = fact_of(f->s->logs[idx].measurement, "model");
        if (!first || !model || !str_eq(first->value, model->value)) {
            add_check(f, "one-benchmark", true,
                      arena_printf(f->arena, "%s: another benchmark than %s", name_of(f, idx),
                                   name_of(f, 0)));
        }
    }
    if (required != (int64_t)f->s->n_logs) {
        add_check(f, "required-runs", required > 0,
                  required > 0
                      ? arena_printf(f->arena, "%.*s asks for %" PRId64 " runs, and there are %zu",
                                     STR_ARG(first->value), required, f->s->n_logs)
                      : "not checked: how many runs the benchmark asks for is not known");
    }
}

static void look(struct folder *f)
{
    const struct rule_case of = {0};
    size_t n = 0;
    for (size_t idx = 0; idx < f->s->n_logs; idx++) {
        const struct round_log *log = &f->s->logs[idx];
        struct err err = {0};
        if (!log->measurement) {
            add_check(f, "log-whole", true, log->why.ptr);
            continue;
        }
        f->has_repeat[idx] =
            rule_repeat(f->rule, log->measurement, &of, f->arena, &f->repeats[idx], &err) == 0;
        n += f->has_repeat[idx];
        check_clock(f, idx);
        check_target(f, idx);
    }
    f->has_dropped = n == f->s->n_logs && n >= 3;
    if (f->has_dropped) {
        rule_dropped(f->repeats, n, &f->fastest, &f->slowest);
    }
    check_seeds(f);
    check_count(f);
}

/* ---- what is said ---- */

static const char *dropped_as(const struct folder *f, size_t log)
{
    return !f->has_dropped                ? NULL
           : log == f->fastest            ? "fastest"
           : log != f->slowest            ? NULL
           : isinf(f->repeats[log].value) ? "unsuccessful"
                                          : "slowest";
}

static size_t count_failed(const struct folder *f)
{
    size_t n = 0;
    for (size_t idx = 0; idx < f->n_checks; idx++) {
        n += f->checks[idx].has_failed;
    }
    return n;
}

static void write_json(const struct folder *f, const char *path, struct strbuf *text)
{
    struct json_out out;
    jw_begin(&out, text, true);
    jw_object(&out, NULL);
    jw_i64(&out, "schema_version", 1);
    jw_z(&out, "folder", path);
    jw_str(&out, "rule", f->rule->id);
    jw_f64(&out, "value", f->s->minutes);
    jw_z(&out, "unit", "min");
    jw_f64(&out, "factor", f->s->factor.value > 0 ? f->s->factor.value : 1);
    jw_str(&out, "why", f->s->why.ptr ? f->s->why : STR_LIT(""));
    jw_array(&out, "runs");
    for (size_t idx = 0; idx < f->s->n_logs; idx++) {
        jw_object(&out, NULL);
        jw_z(&out, "file", name_of(f, idx));
        jw_f64(&out, "minutes", f->has_repeat[idx] ? f->repeats[idx].value : (double)NAN);
        jw_z(&out, "dropped", dropped_as(f, idx));
        jw_str(&out, "why", f->repeats[idx].why.ptr ? f->repeats[idx].why : STR_LIT(""));
        jw_end_object(&out);
    }
    jw_end_array(&out);
    jw_array(&out, "checks");
    for (size_t idx = 0; idx < f->n_checks; idx++) {
        jw_object(&out, NULL);
        jw_z(&out, "rule", f->checks[idx].rule);
        jw_bool(&out, "failed", f->checks[idx].has_failed);
        jw_str(&out, "why", f->checks[idx].why);
        jw_end_object(&out);
    }
    jw_end_array(&out);
    jw_end_object(&out);
    strbuf_add_char(text, '\n');
}

static void write_text(const struct folder *f, struct strbuf *text)
{
    static const struct table_column COLUMNS[] = {
        {"run", false}, {"min", true}, {"dropped", false}};
    CLEANUP(table) struct table table;
    table_init(&table, COLUMNS, ARRAY_LEN(COLUMNS));
    for (size_t idx = 0; idx < f->s->n_logs; idx++) {
        const char *dropped = dropped_as(f, idx);
        table_add(&table, str_of(name_of(f, idx)));
        if (f->has_repeat[idx] && isfinite(f->repeats[idx].value)) {
            table_addf(&table, "%.4f", f->repeats[idx].value);
        } else {
            table_add(&table, STR_LIT("-"));
        }
        table_addf(&table, "%s%s%s", dropped ? dropped : "", f->repeats[idx].why.len ? ": " : "",
                   f->repeats[idx].why.ptr ? f->repeats[idx].why.ptr : "");
    }
    table_render(&table, text);
    if (isfinite(f->s->minutes)) {
        strbuf_printf(text, "\nscore: %.10g min", f->s->minutes);
        if (f->s->factor.value > 0) {
            strbuf_printf(text, ", with the factor %.10g of scaling.json", f->s->factor.value);
        }
    } else {
        strbuf_printf(text, "\nno score: %.*s", STR_ARG(f->s->why));
    }
    strbuf_printf(text, "\n%zu of the rules that a log can show do not hold\n", count_failed(f));
    for (size_t idx = 0; idx < f->n_checks; idx++) {
        strbuf_printf(text, "  %-17s %.*s\n", f->checks[idx].rule, STR_ARG(f->checks[idx].why));
    }
}

int measure_folder(const struct cmd_ctx *ctx, const char *folder, bool want_json, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(format_set) struct format_set formats = {0};
    CLEANUP(strbuf) struct strbuf text;
    const struct lanes lanes = pool_lanes();
    struct submission s = {0};
    struct folder *f = arena_new(&arena, struct folder);
    strbuf_init(&text, TEXT_BYTES_MAX);
    if (load_rule(&arena, ctx->root, STR_LIT(ROUND_RULE), &formats, &f->rule, err) < 0 ||
        submission_read(&arena, ctx->root, folder, &lanes, &s, err) < 0) {
        return -1;
    }
    f->arena = &arena;
    f->s = &s;
    look(f);
    if (want_json) {
        write_json(f, folder, &text);
    } else {
        write_text(f, &text);
    }
    return cmd_print(strbuf_str(&text), err) < 0         ? -1
           : isfinite(s.minutes) && count_failed(f) == 0 ? 0
                                                         : STATUS_FAILED;
}
