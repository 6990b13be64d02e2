/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/json_document.h"
#include "view/address.h"
#include "view/explain_out.h"

static void write_source(struct arena *arena, const char *key, const struct source_ref *source,
                         struct str path, struct json_out *out)
{
    struct str url = path.ptr ? address_file(arena, source, path, 0) : STR_EMPTY;
    jw_object(out, key);
    jw_str(out, "repository", source->repository);
    jw_str(out, "commit", source->commit);
    jw_str(out, "path", path);
    jw_str(out, "url", url.len ? url : STR_EMPTY);
    jw_end_object(out);
}

static void write_steps(const struct trace_steps *steps, struct json_out *out)
{
    jw_array(out, "steps");
    for (size_t idx = 0; idx < steps->n; idx++) {
        jw_object(out, NULL);
        jw_str(out, "words", steps->items[idx].words);
        jw_f64(out, "value", steps->items[idx].value);
        jw_end_object(out);
    }
    jw_end_array(out);
}

static void write_samples(const struct explain_cell *of, size_t log, struct json_out *out)
{
    const struct trace_log *how = &of->how.logs[log];
    jw_array(out, "samples");
    for (size_t idx = 0; how->uses && idx < how->series->n; idx++) {
        const struct sample *s = &how->series->samples[idx];
        jw_object(out, NULL);
        jw_i64_if(out, "line", how->series->lines,
                  how->series->lines ? how->series->lines[idx] : 0);
        jw_i64(out, "step", s->step);
        jw_i64(out, "rank", s->rank);
        jw_i64(out, "run", s->run);
        jw_f64(out, "value", s->value);
        jw_f64(out, "time_s", s->time_s);
        jw_z(out, "use", SAMPLE_USE_NAMES[how->uses[idx]]);
        if (of->texts && of->texts[log]) {
            jw_str(out, "text", of->texts[log][idx]);
        }
        jw_end_object(out);
    }
    jw_end_array(out);
}

static void write_log(struct arena *arena, const struct explain_cell *of, size_t log,
                      struct json_out *out)
{
    const struct cell_audit *a = of->cell;
    const struct trace_log *how = &of->how.logs[log];
    const struct measurement *m = cell_measurement(a, log);
    jw_object(out, NULL);
    write_source(arena, "address", &of->report->logs_source,
                 report_log_path(of->report, a->logs[log].path), out);
    jw_str(out, "sha256", a->logs[log].sha256);
    jw_z(out, "read_from", !m ? NULL : a->logs[log].file.ptr ? "log" : "kept_series");
    jw_str(out, "format", m ? m->format : STR_EMPTY);
    jw_z(out, "parse_verdict", m ? PARSE_VERDICT_NAMES[m->verdict] : NULL);
    measurement_encode_facts(out, m);
    jw_str(out, "series", how->series ? how->series->name : STR_EMPTY);
    jw_str(out, "unit", how->series ? how->series->unit : STR_EMPTY);
    write_samples(of, log, out);
    write_steps(&how->steps, out);
    jw_f64(out, "value", how->value);
    jw_bool(out, "is_left_out", how->is_dropped);
    jw_str(out, "why", how->why);
    jw_end_object(out);
}

static void write_proof(const struct cell_audit *a, struct json_out *out)
{
    static const char *const STATES[] = {
        [ID_PROVEN] = "proven", [ID_UNPROVEN] = "unproven", [ID_CONTRADICTED] = "contradicted"};
    jw_array(out, "row");
    for (size_t fact = 0; fact < IDENTITY_FACTS; fact++) {
        const struct identity_item *item = &a->identity.items[fact];
        jw_object(out, NULL);
        jw_z(out, "fact", IDENTITY_NAMES[(enum identity_fact)fact]);
        jw_z(out, "state", STATES[item->state]);
        jw_str(out, "why", item->why);
        jw_end_object(out);
    }
    jw_end_array(out);
}

void explain_cell_json(struct arena *arena, const struct explain_cell *of, struct json_out *out)
{
    const struct cell_audit *a = of->cell;
    const struct source_ref source = report_row_source(of->report, a->of_case);
    jw_object(out, NULL);
    jw_z(out, "kind", "cell");
    jw_str(out, "report", of->report->id);
    jw_str(out, "cell", a->cell->id);
    jw_str(out, "case", a->of_case->id);
    jw_str(out, "metric", a->cell->metric_name);
    jw_str(out, "table", a->cell->table);
    jw_str(out, "printed", a->cell->printed);
    jw_str(out, "unit", a->cell->unit);
    write_source(arena, "address", &source, source.path, out);
    jw_f64(out, "recomputed", a->recomputed);
    jw_f64(out, "rel_diff", a->rel_diff);
    jw_z(out, "verdict", AUDIT_VERDICT_NAMES[a->verdict]);
    if (a->is_proposed) {
        jw_bool(out, "proposed", true);
    }
    jw_str(out, "digits", a->digits);
    jw_z(out, "proof", PROOF_NAMES[a->proof]);
    write_proof(a, out);
    jw_z(out, "log_state", LOG_STATE_NAMES[a->log_state]);
    jw_str(out, "rule", a->rule);
    jw_str(out, "note", a->note);
    jw_array(out, "derived_from");
    for (size_t idx = 0; idx < a->cell->n_of; idx++) {
        jw_str(out, NULL, a->cell->of[idx]);
    }
    jw_end_array(out);
    jw_array(out, "logs");
    for (size_t log = 0; log < a->n_logs; log++) {
        write_log(arena, of, log, out);
    }
    jw_end_array(out);
    write_steps(&of->how.steps, out);
    jw_end_object(out);
}
