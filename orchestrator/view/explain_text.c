/* SPDX-License-Identifier: Apache-2.0 */
/* A cell for people: where it is printed, its logs, their samples, the arithmetic, what is proven. */
#include "base/base.h"

#include <math.h>

#include "base/table.h"
#include "view/address.h"
#include "view/explain_out.h"

#define SAMPLES_HEAD    12 /* shown of a series of more than both */
#define SAMPLES_TAIL    4
#define SAMPLES_IN_LINE 8 /* of a page */
#define TEXT_COLUMNS    160

static void add_source(struct arena *arena, const char *what, const struct source_ref *source,
                       struct strbuf *out)
{
    struct str url = source->path.ptr ? address_file(arena, source, source->path, 0) : STR_EMPTY;
    strbuf_printf(out, "%s", what);
    if (url.len) {
        strbuf_add_str(out, url);
    } else {
        strbuf_printf(out, "%.*s, commit %.*s, %.*s", STR_ARG(source->repository),
                      STR_ARG(source->commit), STR_ARG(source->path));
    }
    strbuf_add_char(out, '\n');
}

static void add_head(struct arena *arena, const struct explain_cell *of, struct strbuf *out)
{
    const struct cell_audit *a = of->cell;
    const struct source_ref source = report_row_source(of->report, a->of_case);
    strbuf_printf(out, "  printed     %.*s %.*s, under \"%.*s\"\n", STR_ARG(a->cell->printed),
                  STR_ARG(a->cell->unit), STR_ARG(a->cell->table));
    add_source(arena, "              ", &source, out);
    if (isfinite(a->recomputed)) {
        strbuf_printf(out, "  recomputed  %.*s, %.*s: %s%s", STR_ARG(cell_number_words(arena, a)),
                      STR_ARG(cell_diff_words(arena, a)), cell_verdict_words(a), cell_cut_words(a));
    } else {
        strbuf_printf(out, "  recomputed  nothing: %s", cell_verdict_words(a));
    }
    strbuf_printf(out, "; proof %s; log %s\n", PROOF_NAMES[a->proof],
                  LOG_STATE_NAMES[a->log_state]);
    if (a->note.len) {
        strbuf_printf(out, "              %.*s\n", STR_ARG(a->note));
    }
    if (of->how.rule) {
        CLEANUP(strbuf) struct strbuf words = STRBUF(4096);
        rule_describe(of->how.rule, &words);
        strbuf_printf(out, "  rule        %.*s: %s (%.*s: %.*s)\n", STR_ARG(a->rule), words.ptr,
                      STR_ARG(of->how.rule->origin), STR_ARG(of->how.rule->source));
    } else {
        strbuf_printf(out, "  rule        %.*s\n",
                      STR_ARG(a->rule.ptr ? a->rule : STR_LIT("none")));
    }
    if (a->of_case->matched.ptr) {
        strbuf_printf(out, "  log found   %.*s\n", STR_ARG(a->of_case->matched));
    }
}

static void add_steps(const struct trace_steps *steps, struct strbuf *out)
{
    for (size_t idx = 0; idx < steps->n; idx++) {
        strbuf_printf(out, "    %.*s = %.9g\n", STR_ARG(steps->items[idx].words),
                      steps->items[idx].value);
    }
}

/* ---- samples ---- */

static void add_sample(struct arena *arena, struct table *table, const struct explain_cell *of,
                       size_t log, size_t idx)
{
    const struct trace_log *how = &of->how.logs[log];
    const struct sample *s = &how->series->samples[idx];
    TABLE_ADD(table,
              table_text_if(table, how->series->lines, "%" PRId64,
                            how->series->lines ? how->series->lines[idx] : 0),
              table_text(table, "%" PRId64, s->step),
              table_text_if(table, s->rank >= 0, "%d", s->rank));
    if (isfinite(s->value)) {
        table_addf(table, "%.9g", s->value);
    } else {
        table_add(table, table_text_if(table, isfinite(s->time_s), "at %.6f s", s->time_s));
    }
    table_add(table, trace_use_words(arena, of->how.rule, how->uses[idx]));
    if (of->texts && of->texts[log]) {
        struct str text = str_trim(of->texts[log][idx]);
        table_addf(table, "%.*s%s", STR_ARG(str_sub(text, 0, TEXT_COLUMNS)),
                   text.len > TEXT_COLUMNS ? "..." : "");
    }
}

/* A few of those that count, in a line. */
static void add_counted(const struct trace_log *how, struct strbuf *out)
{
    size_t n = 0;
    for (size_t idx = 0; idx < how->series->n && n < SAMPLES_IN_LINE; idx++) {
        if (how->uses[idx] == USE_COUNTED && isfinite(how->series->samples[idx].value)) {
            strbuf_printf(out, "%s%.9g", n++ ? ", " : "    counted are ",
                          how->series->samples[idx].value);
        }
    }
    strbuf_add_z(out, n == SAMPLES_IN_LINE ? ", ...\n" : n ? "\n" : "");
}

static void add_samples(struct arena *arena, const struct explain_cell *of, size_t log,
                        const struct explain_opts *opts, struct strbuf *out)
{
    const struct trace_log *how = &of->how.logs[log];
    size_t n = how->series->n;
    bool is_long = !opts->is_verbose && n > SAMPLES_HEAD + SAMPLES_TAIL;
    CLEANUP(table)
    struct table table = table_of(of->texts && of->texts[log] ? ">line|>step|>rank|>sample|use|text"
                                                              : ">line|>step|>rank|>sample|use");
    CLEANUP(strbuf) struct strbuf text = STRBUF(out->cap_bytes);
    struct str line;
    strbuf_printf(out, "    %.*s\n", STR_ARG(trace_samples_words(arena, of->how.rule, how)));
    if (opts->is_page) {
        add_counted(how, out);
        return;
    }
    for (size_t idx = 0; idx < n; idx++) {
        if (!is_long || idx < SAMPLES_HEAD || idx + SAMPLES_TAIL >= n) {
            add_sample(arena, &table, of, log, idx);
        }
    }
    table_render(&table, &text);
    struct str rest = str_sub(strbuf_str(&text), 0, text.len - 1); /* the last line break */
    while (str_next(&rest, '\n', &line)) {
        strbuf_printf(out, "      %.*s\n", STR_ARG(line));
    }
    if (is_long) {
        strbuf_printf(out, "    %zu samples between them are not shown; -v shows all\n",
                      n - SAMPLES_HEAD - SAMPLES_TAIL);
    }
    if (!how->series->lines) {
        strbuf_add_z(out,
                     "    the published series has no sample lines; --logs CLONE reads them\n");
    }
}

/* ---- what the log states ---- */

static bool is_of_row(struct str name)
{
    return fact_is_of_row(name) || str_eq_z(name, "batch_per_gpu") ||
           str_eq_z(name, "global_batch") || str_eq_z(name, "grad_accumulation");
}

static void add_facts(struct arena *arena, const struct explain_cell *of, size_t log,
                      const struct explain_opts *opts, struct strbuf *out)
{
    const struct measurement *m = cell_measurement(of->cell, log);
    struct str path = report_log_path(of->report, of->cell->logs[log].path);
    size_t n_others = 0;
    for (size_t idx = 0; m && idx < m->n_facts; idx++) {
        const struct fact *fact = &m->facts[idx];
        struct str url = opts->is_verbose
                             ? address_file(arena, &of->report->logs_source, path, fact->line)
                             : STR_EMPTY;
        if (opts->is_verbose || is_of_row(fact->name)) {
            strbuf_printf(out, "    it states %.*s %.*s, line %" PRId64 "%s%.*s\n",
                          STR_ARG(fact->name), STR_ARG(fact->value), fact->line,
                          url.len ? ": " : "", STR_ARG(url));
        } else {
            n_others++;
        }
    }
    if (n_others && !opts->is_page) {
        strbuf_printf(out,
                      "    %zu facts that do not concern the row are not shown; -v shows all\n",
                      n_others);
    }
}

/* First and last line that counts, where lines are known. */
static void add_address(struct arena *arena, const struct explain_cell *of, size_t log,
                        struct strbuf *out)
{
    const struct trace_log *how = &of->how.logs[log];
    struct str path = report_log_path(of->report, of->cell->logs[log].path);
    int64_t first = 0;
    int64_t last = 0;
    for (size_t idx = 0; how->uses && how->series->lines && idx < how->series->n; idx++) {
        if (how->uses[idx] == USE_COUNTED) {
            first = first ? first : how->series->lines[idx];
            last = how->series->lines[idx];
        }
    }
    struct str url = address_file(arena, &of->report->logs_source, path, first);
    if (first) {
        strbuf_printf(out, "    lines %" PRId64 " to %" PRId64 " count: %.*s:%" PRId64 "\n", first,
                      last, STR_ARG(path), first);
    }
    if (url.len) {
        strbuf_printf(out, "    %.*s\n", STR_ARG(url));
    } else {
        strbuf_printf(out, "    %.*s, commit %.*s\n", STR_ARG(of->report->logs_source.repository),
                      STR_ARG(of->report->logs_source.commit));
    }
}

static void add_log(struct arena *arena, const struct explain_cell *of, size_t log,
                    const struct explain_opts *opts, struct strbuf *out)
{
    const struct cell_audit *a = of->cell;
    const struct trace_log *how = &of->how.logs[log];
    const struct measurement *m = cell_measurement(a, log);
    strbuf_printf(out, "\n  log %zu of %zu: %.*s\n", log + 1, a->n_logs,
                  STR_ARG(report_log_path(of->report, a->logs[log].path)));
    add_address(arena, of, log, out);
    if (a->logs[log].sha256.ptr) {
        strbuf_printf(out, "    sha256 %.*s\n", STR_ARG(a->logs[log].sha256));
    }
    if (m) {
        strbuf_printf(out, "    read by format %.*s: %" PRIu64 " lines, %s%s%.*s\n",
                      STR_ARG(m->format), m->n_lines, PARSE_VERDICT_NAMES[m->verdict],
                      m->why.len ? ": " : "", STR_ARG(m->why));
        add_facts(arena, of, log, opts, out);
    }
    if (how->uses) {
        add_samples(arena, of, log, opts, out);
    }
    add_steps(&how->steps, out);
    if (how->why.len) {
        strbuf_printf(out, "    %s: %.*s\n",
                      isinf(how->value) ? "it does not count as a success" : "no number",
                      STR_ARG(how->why));
    }
    if (how->is_dropped) {
        strbuf_add_z(out, "    left out of the logs' mean: it is the fastest or the slowest\n");
    }
}

static void add_proof(const struct cell_audit *a, struct strbuf *out)
{
    static const char *const STATES[] = {
        [ID_PROVEN] = "proven", [ID_UNPROVEN] = "not proven", [ID_CONTRADICTED] = "contradicted"};
    strbuf_printf(out, "\n  proof %s: what its logs show of the row\n", PROOF_NAMES[a->proof]);
    for (size_t fact = 0; fact < IDENTITY_FACTS; fact++) {
        const struct identity_item *item = &a->identity.items[fact];
        strbuf_printf(out, "    %-10s %s%s%.*s", IDENTITY_NAMES[(enum identity_fact)fact],
                      STATES[item->state], item->why.len ? ": " : "", STR_ARG(item->why));
        if (item->line) {
            strbuf_printf(out, " (line %" PRId64 ")", item->line);
        }
        strbuf_add_char(out, '\n');
    }
}

void explain_cell_text(struct arena *arena, const struct explain_cell *of,
                       const struct explain_opts *opts, struct strbuf *out)
{
    const struct cell_audit *a = of->cell;
    if (!opts->is_page) {
        strbuf_printf(out, "%.*s %.*s (cell)\n", STR_ARG(of->report->id), STR_ARG(a->cell->id));
    }
    add_head(arena, of, out);
    for (size_t log = 0; log < a->n_logs; log++) {
        add_log(arena, of, log, opts, out);
    }
    strbuf_add_z(out, "\n  arithmetic\n");
    if (of->how.steps.n == 0) {
        strbuf_add_z(out, "    none: there is no number\n");
    }
    for (size_t log = 0; a->n_logs > 1 && log < a->n_logs && of->how.steps.n; log++) {
        strbuf_printf(out, "    log %zu = %.9g%s\n", log + 1, of->how.logs[log].value,
                      of->how.logs[log].is_dropped ? ", left out" : "");
    }
    add_steps(&of->how.steps, out);
    if (of->how.steps.n) {
        strbuf_printf(out, "    printed %.*s: %s%s%s%.*s\n", STR_ARG(a->cell->printed),
                      cell_verdict_words(a), cell_cut_words(a), a->digits.ptr ? ", " : "",
                      STR_ARG(a->digits));
    }
    add_proof(a, out);
}
