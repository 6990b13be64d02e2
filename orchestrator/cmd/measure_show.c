/* SPDX-License-Identifier: Apache-2.0 */
/* How `measure` shows what it found in a log. */
#include "base/base.h"

#include <math.h>

#include "cmd/measure_parts.h"

#include "base/log.h"
#include "base/nearest.h"
#include "cmd/guests.h"
#include "codec/json_document.h"
#include "log/whole.h"

#define NOTES_BYTES 4096

int measure_flush(struct strbuf *buf, size_t over, struct err *err)
{
    if (buf->len <= over) {
        return 0;
    }
    ASSERT(!buf->is_full);
    if (cmd_print(strbuf_str(buf), err) < 0) {
        return -1;
    }
    strbuf_clear(buf);
    return 0;
}

int measure_name_formats(const struct format_set *set, const char *asked, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct nearest nearest = nearest_to(asked);
    char text[NEAREST_TEXT_MAX];
    for (size_t idx = 0; idx < set->n; idx++) {
        nearest_offer(&nearest, str_z(&arena, format_id(set->items[idx])));
    }
    return err_set(err, ERR_USAGE,
                   "no format \"%.60s\"%s; there are auto and %zu by name: `reperf list formats`",
                   asked, nearest_text(&nearest, text), set->n);
}

int measure_name_rules(const struct format *format, const char *asked, struct err *err)
{
    const struct rule *rules;
    size_t n = format_rules(format, &rules);
    char known[400] = "";
    size_t len = 0;
    for (size_t idx = 0; idx < n && len < sizeof(known); idx++) {
        len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%.*s", idx ? ", " : "",
                                STR_ARG(rules[idx].id));
    }
    return err_set(err, ERR_USAGE, "no rule \"%.60s\" for this format; there are %s", asked, known);
}

/* A line each. */
static void add_notes(struct strbuf *text, const struct finding_of_log *f)
{
    const struct figure *by = &f->figure;
    size_t n = f->series ? f->series->n : 0;
    if (f->has_value && !f->rule && by->has_value) {
        strbuf_printf(text, "value: %s of %.*s\n", FIGURE_BY_NAMES[by->by],
                      STR_ARG(f->series->name));
        if (by->n_skipped) {
            strbuf_printf(text, "skip %zu of %zu: slow start\n", by->n_skipped, n);
        }
        if (by->n_dropped) {
            strbuf_printf(text, "without the last of %zu: a part of an interval\n", n);
        }
        if (by->plain > 0) {
            strbuf_printf(text, "the plain mean of the same lines is %.6g %.*s: they differ much\n",
                          by->plain, STR_ARG(f->unit));
        } else if (by->median > 0) {
            strbuf_printf(text, "the median of the same lines is %.6g %.*s: a few weigh much\n",
                          by->median, STR_ARG(f->unit));
        }
    }
    if (f->arithmetic.state != ARITHMETIC_SILENT) {
        strbuf_printf(text, "%s: %.*s\n",
                      f->arithmetic.state == ARITHMETIC_CONFIRMS ? "confirmed" : "contradicted",
                      STR_ARG(f->arithmetic.said));
    }
    if (f->m.causes.n_synthetic) {
        strbuf_printf(text,
                      "the loss is no number on %" PRId64 " lines, and the data are synthetic\n",
                      f->m.causes.n_synthetic);
    }
    if (f->has_value && f->series && f->series->scope == SCOPE_UNKNOWN) {
        strbuf_add_z(text, "whether it is of one process or of the job is not known\n");
    }
}

static int put_samples(struct json_out *out, const struct finding_of_log *f, struct err *err)
{
    size_t n = f->series ? f->series->n : 0;
    unsigned members = SAMPLE_SCOPE | SAMPLE_GPUS | (f->m.n_runs > 1 ? SAMPLE_RUN : 0);
    jw_array(out, "series");
    for (size_t idx = 0; idx < n; idx++) {
        series_put_sample(out, f->series, idx, members);
        if (measure_flush(out->buf, FLUSH_BYTES, err) < 0) {
            return -1;
        }
    }
    jw_end_array(out);
    return 0;
}

/* Every line that looks like the metric, and what is the matter with those that are not samples of one whole run. */
static void put_counts(struct json_out *out, const struct finding_of_log *f)
{
    jw_object(out, "counts");
    jw_i64(out, "lines", (int64_t)f->m.n_lines);
    jw_i64(out, "read", f->series ? (int64_t)f->series->n : 0);
    for (int cause = 0; cause < CAUSES; cause++) {
        jw_i64(out, cause_name((enum cause)cause), f->m.causes.n[cause]);
    }
    jw_end_object(out);
}

/* How the engine made the number, and what it left out. */
static void put_notes(struct json_out *out, const struct finding_of_log *f)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(NOTES_BYTES);
    struct str note;
    add_notes(&text, f);
    struct str rest = strbuf_str(&text);
    jw_array(out, "notes");
    while (str_next(&rest, '\n', &note)) {
        if (note.len) {
            jw_str(out, NULL, note);
        }
    }
    jw_end_array(out);
}

static void put_more(struct json_out *out, const struct finding_of_log *f)
{
    size_t n = f->series ? f->series->n : 0;
    jw_str(out, "why", f->why.len ? f->why : STR_EMPTY);
    jw_str(out, "rule", f->rule ? f->rule->id : STR_EMPTY);
    jw_known(out, "n_used", f->has_value ? (int64_t)f->value.n_used : -1);
    put_notes(out, f);
    jw_str(out, "name", f->series ? f->series->name : STR_EMPTY);
    jw_z(out, "quantity", f->series ? QUANTITY_NAMES[f->series->quantity] : NULL);
    jw_object(out, "window");
    jw_i64_if(out, "first_step", n > 0, n ? f->series->samples[0].step : 0);
    jw_i64_if(out, "last_step", n > 0, n ? f->series->samples[n - 1].step : 0);
    jw_end_object(out);
    jw_i64(out, "runs", f->m.n_runs);
    jw_z(out, "end", f->m.states_end ? "stated" : "unknown");
    jw_i64(out, "lines", (int64_t)f->m.n_lines);
    jw_i64(out, "bytes", (int64_t)f->m.n_bytes);
    put_counts(out, f);
    measurement_encode_facts(out, &f->m);
}

/* Only where there are any: other documents stay as they were. */
static void put_sidecars(struct json_out *out, const struct finding_of_log *f)
{
    if (f->n_sidecars == 0) {
        return;
    }
    jw_array(out, "beside");
    for (size_t idx = 0; idx < f->n_sidecars; idx++) {
        const struct sidecar *b = &f->sidecars[idx];
        jw_object(out, NULL);
        jw_str(out, "format", format_id(b->format));
        jw_str(out, "name", b->series->name);
        jw_i64(out, "records", (int64_t)b->series->n);
        jw_z(out, "verdict", PARSE_VERDICT_NAMES[b->verdict]);
        jw_f64(out, "value", b->has_value ? b->value : (double)NAN);
        jw_str(out, "unit", b->series->unit);
        jw_end_object(out);
    }
    jw_end_array(out);
}

int measure_put_log(struct json_out *out, const struct finding_of_log *f, struct err *err)
{
    jw_z(out, "file", f->file);
    jw_str(out, "format", f->format);
    jw_i64(out, "records", f->series ? (int64_t)f->series->n : 0);
    jw_z(out, "verdict", PARSE_VERDICT_NAMES[f->verdict]);
    jw_f64(out, "value", f->has_value ? f->value.value : (double)NAN);
    jw_str(out, "unit", f->unit.ptr ? f->unit : STR_LIT(""));
    if (put_samples(out, f, err) < 0) {
        return -1;
    }
    put_more(out, f);
    put_sidecars(out, f);
    if (f->proposal) {
        GUESTS.proposer->put(out, f->proposal);
    }
    return 0;
}

void measure_add_row(struct table *table, const struct finding_of_log *f)
{
    const struct series *s = f->series;
    size_t n = s ? s->n : 0;
    const struct str none = STR_LIT("-");
    TABLE_ADD(table, str_of(f->file), table_or_dash(f->format), table_text(table, "%zu", n),
              n > 0 ? table_text(table, "%" PRId64 "-%" PRId64, s->samples[0].step,
                                 s->samples[n - 1].step)
                    : none,
              s && s->scope != SCOPE_UNKNOWN ? str_of(SCOPE_NAMES[s->scope]) : none,
              table_text_if(table, f->has_value, "%.6g", f->value.value), table_or_dash(f->unit),
              table_text_if(table, f->has_value, "%zu", f->value.n_used),
              str_of(PARSE_VERDICT_NAMES[f->verdict]));
}

static void add_sidecar(struct strbuf *text, const struct sidecar *b)
{
    struct str id = format_id(b->format);
    strbuf_printf(text, "in the same log, %.*s, %.*s: %s", STR_ARG(id), STR_ARG(b->series->name),
                  PARSE_VERDICT_NAMES[b->verdict]);
    if (b->has_value) {
        strbuf_printf(text, ", %.6g %.*s", b->value, STR_ARG(b->series->unit));
    }
    strbuf_add_z(text, "\n");
}

/* It seems whole, but may still be only a part. */
#define NO_END "the log says neither how many steps its run makes nor that it is over"
static bool lacks_end(const struct finding_of_log *f)
{
    return judgement_is_ok(f->verdict) && !f->m.states_end;
}

void measure_add_details(struct strbuf *text, const struct finding_of_log *f, bool is_only)
{
    if (!is_only) { /* rows of several stand alone */
        if (lacks_end(f)) {
            log_line(LOG_INFO, "%s: end not known: " NO_END, f->file);
        }
        return;
    }
    if (f->proposal) {
        GUESTS.proposer->add(text, f->file, f->proposal);
    }
    if (f->has_value) {
        strbuf_add_z(text, f->rule ? "\nvalue: " : "\n");
        if (f->rule) {
            rule_describe(f->rule, text);
            strbuf_add_z(text, "\n");
        }
        add_notes(text, f);
    }
    if (lacks_end(f)) {
        strbuf_add_z(text, "end not known: " NO_END "\n");
    }
    for (size_t idx = 0; idx < f->n_sidecars; idx++) {
        add_sidecar(text, &f->sidecars[idx]);
    }
    if (f->m.n_facts) {
        strbuf_add_z(text, "the log states:\n");
    }
    for (size_t idx = 0; idx < f->m.n_facts; idx++) {
        strbuf_printf(text, "  %-18.*s %.*s\n", STR_ARG(f->m.facts[idx].name),
                      STR_ARG(f->m.facts[idx].value));
    }
}
