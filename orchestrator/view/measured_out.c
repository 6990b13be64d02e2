/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "view/measured_out.h"

#include <math.h>

#include "codec/json_document.h"

#define NOTES_BYTES 4096

/* A line each. */
static void add_notes(struct strbuf *text, const struct measured *f)
{
    const struct figure *by = &f->number.figure;
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
                          by->plain, STR_ARG(f->number.unit));
        } else if (by->median > 0) {
            strbuf_printf(text, "the median of the same lines is %.6g %.*s: a few weigh much\n",
                          by->median, STR_ARG(f->number.unit));
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

/* ---- the document ---- */

static void put_samples(struct json_out *out, const struct measured *f)
{
    unsigned members = SAMPLE_SCOPE | SAMPLE_GPUS | (f->m.n_runs > 1 ? SAMPLE_RUN : 0);
    jw_array(out, "series");
    for (size_t idx = 0; f->series && idx < f->series->n; idx++) {
        series_put_sample(out, f->series, idx, members);
    }
    jw_end_array(out);
}

/* Every line that looks like the metric, and what is the matter with those that are not samples of one whole run. */
static void put_counts(struct json_out *out, const struct measured *f)
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
static void put_notes(struct json_out *out, const struct measured *f)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(NOTES_BYTES);
    struct str note;
    add_notes(&text, f);
    struct str rest = strbuf_str(&text);
    jw_array(out, "notes");
    while (str_next(&rest, '\n', &note) && note.len) {
        jw_str(out, NULL, note);
    }
    jw_end_array(out);
}

static void put_number(struct json_out *out, const struct measured *f)
{
    jw_i64(out, "records", f->series ? (int64_t)f->series->n : 0);
    jw_z(out, "verdict", PARSE_VERDICT_NAMES[f->verdict]);
    jw_f64(out, "value", f->has_value ? f->number.made.value : (double)NAN);
    jw_str(out, "unit", f->number.unit.ptr ? f->number.unit : STR_LIT(""));
}

/* Only where there are any: other documents stay as they were. */
static void put_beside(struct json_out *out, const struct measured *f)
{
    if (f->n_beside == 0) {
        return;
    }
    jw_array(out, "beside");
    for (size_t idx = 0; idx < f->n_beside; idx++) {
        jw_object(out, NULL);
        jw_str(out, "format", f->beside[idx].format->id);
        jw_str(out, "name", f->beside[idx].series->name);
        put_number(out, &f->beside[idx]);
        jw_end_object(out);
    }
    jw_end_array(out);
}

void measured_encode(const struct measured *f, struct json_out *out)
{
    size_t n = f->series ? f->series->n : 0;
    jw_z(out, "file", f->file);
    jw_str(out, "format", f->format ? f->format->id : STR_EMPTY);
    put_number(out, f);
    put_samples(out, f);
    jw_str(out, "why", f->why.len ? f->why : STR_EMPTY);
    jw_str(out, "rule", f->rule ? f->rule->id : STR_EMPTY);
    jw_known(out, "n_used", f->has_value ? (int64_t)f->number.made.n_used : -1);
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
    put_beside(out, f);
}

/* ---- text ---- */

void measured_add_row(struct table *table, const struct measured *f)
{
    const struct series *s = f->series;
    size_t n = s ? s->n : 0;
    const struct str none = STR_LIT("-");
    TABLE_ADD(table, str_of(f->file), f->format ? f->format->id : none, table_text(table, "%zu", n),
              n > 0 ? table_text(table, "%" PRId64 "-%" PRId64, s->samples[0].step,
                                 s->samples[n - 1].step)
                    : none,
              s && s->scope != SCOPE_UNKNOWN ? str_of(SCOPE_NAMES[s->scope]) : none,
              table_text_if(table, f->has_value, "%.6g", f->number.made.value),
              table_or_dash(f->number.unit),
              table_text_if(table, f->has_value, "%zu", f->number.made.n_used),
              str_of(PARSE_VERDICT_NAMES[f->verdict]));
}

const char *measured_lacks_end(const struct measured *f)
{
    return judgement_is_ok(f->verdict) && !f->m.states_end
               ? "end not known: the log says neither how many steps its run makes nor that it is "
                 "over"
               : NULL;
}

void measured_text(const struct measured *f, struct strbuf *out)
{
    if (f->has_value) {
        strbuf_add_z(out, f->rule ? "\nvalue: " : "\n");
        if (f->rule) {
            rule_describe(f->rule, out);
            strbuf_add_z(out, "\n");
        }
        add_notes(out, f);
    }
    if (measured_lacks_end(f)) {
        strbuf_printf(out, "%s\n", measured_lacks_end(f));
    }
    for (size_t idx = 0; idx < f->n_beside; idx++) {
        const struct measured *b = &f->beside[idx];
        strbuf_printf(out, "in the same log, %.*s, %.*s: %s", STR_ARG(b->format->id),
                      STR_ARG(b->series->name), PARSE_VERDICT_NAMES[b->verdict]);
        if (b->has_value) {
            strbuf_printf(out, ", %.6g %.*s", b->number.made.value, STR_ARG(b->number.unit));
        }
        strbuf_add_z(out, "\n");
    }
    strbuf_add_z(out, f->m.n_facts ? "the log states:\n" : "");
    for (size_t idx = 0; idx < f->m.n_facts; idx++) {
        strbuf_printf(out, "  %-18.*s %.*s\n", STR_ARG(f->m.facts[idx].name),
                      STR_ARG(f->m.facts[idx].value));
    }
}
