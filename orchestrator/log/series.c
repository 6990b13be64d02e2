/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "log/series.h"

#include "codec/json.h"

static const char *const SCOPE_NAMES[] = {
    [SCOPE_RANK] = "rank", [SCOPE_NODE] = "node", [SCOPE_JOB] = "job", [SCOPE_UNKNOWN] = NULL};
static const char *const QUANTITY_NAMES[] = {
    [QTY_RATE] = "rate",           [QTY_RUNNING_MEAN] = "running_mean",
    [QTY_STEP_TIME] = "step_time", [QTY_SUMMARY] = "summary",
    [QTY_CLOCK] = "clock",         [QTY_SCORE] = "score",
    [QTY_PROGRESS] = "progress"};
static const char *const VERDICT_NAMES[] = {[PARSE_OK] = "ok",
                                            [PARSE_NO_METRIC] = "no_metric",
                                            [PARSE_INCOMPLETE] = "incomplete",
                                            [PARSE_NAN] = "nan",
                                            [PARSE_AMBIGUOUS] = "ambiguous",
                                            [PARSE_TRUNCATED] = "truncated",
                                            [PARSE_TWO_LEVELS] = "two_levels",
                                            [PARSE_CONTRADICTS_ITSELF] = "contradicts_itself",
                                            [PARSE_PROPOSED] = "proposed"};

const char *scope_name(enum scope scope)
{
    return SCOPE_NAMES[scope];
}

const char *quantity_name(enum quantity quantity)
{
    return QUANTITY_NAMES[quantity];
}

const char *parse_verdict_name(enum parse_verdict verdict)
{
    return VERDICT_NAMES[verdict];
}

bool parse_verdict_of_name(struct str name, enum parse_verdict *ret_verdict)
{
    for (int v = PARSE_OK; v <= PARSE_TRUNCATED; v++) {
        if (str_eq_z(name, parse_verdict_name((enum parse_verdict)v))) {
            *ret_verdict = (enum parse_verdict)v;
            return true;
        }
    }
    return false;
}

bool measurement_is_sound(const struct measurement *m)
{
    return m->n_runs == 1 && m->verdict == PARSE_OK && m->first_run == PARSE_OK &&
           m->last_run == PARSE_OK;
}

bool scope_of_name(struct str name, enum scope *ret_scope)
{
    for (size_t idx = 0; idx < SCOPE_UNKNOWN; idx++) {
        if (str_eq_z(name, SCOPE_NAMES[idx])) {
            *ret_scope = (enum scope)idx;
            return true;
        }
    }
    return false;
}

bool quantity_of_name(struct str name, enum quantity *ret_quantity)
{
    for (size_t idx = 0; idx < ARRAY_LEN(QUANTITY_NAMES); idx++) {
        if (str_eq_z(name, QUANTITY_NAMES[idx])) {
            *ret_quantity = (enum quantity)idx;
            return true;
        }
    }
    return false;
}

const struct series *measurement_series(const struct measurement *m, struct str name)
{
    for (size_t idx = 0; idx < m->n_series; idx++) {
        if (str_eq(m->series[idx].name, name)) {
            return &m->series[idx];
        }
    }
    return NULL;
}

const struct series *measurement_primary(const struct measurement *m)
{
    for (size_t idx = 0; idx < m->n_series; idx++) {
        if (m->series[idx].is_primary) {
            return &m->series[idx];
        }
    }
    return NULL;
}

void series_encode_head(struct json_out *out, const struct series *series)
{
    jw_str(out, "name", series->name);
    jw_str(out, "unit", series->unit);
    jw_z(out, "scope", scope_name(series->scope));
    jw_z(out, "quantity", quantity_name(series->quantity));
    jw_bool(out, "primary", series->is_primary);
}

void series_encode_sample(struct json_out *out, const struct series *series, size_t idx,
                          unsigned members)
{
    const struct sample *sample = &series->samples[idx];
    jw_object(out, NULL);
    jw_i64(out, "step", sample->step);
    jw_f64(out, "value", sample->value);
    if (members & SAMPLE_SCOPE) {
        jw_z(out, "scope", scope_name(series->scope));
    }
    if (sample->rank >= 0) {
        jw_i64(out, "rank", sample->rank);
    } else {
        jw_null(out, "rank");
    }
    if ((members & SAMPLE_GPUS) && sample->gpus >= 0) {
        jw_i64(out, "gpus", sample->gpus);
    }
    if (members & SAMPLE_RUN) {
        jw_i64(out, "run", sample->run);
    }
    jw_end_object(out);
}

void measurement_encode_facts(struct json_out *out, const struct measurement *m)
{
    jw_array(out, "facts");
    for (size_t idx = 0; m && idx < m->n_facts; idx++) {
        jw_object(out, NULL);
        jw_str(out, "name", m->facts[idx].name);
        jw_str(out, "value", m->facts[idx].value);
        jw_i64(out, "line", m->facts[idx].line);
        jw_end_object(out);
    }
    jw_end_array(out);
}

bool fact_is_of_row(struct str name)
{
    static const char *const FACTS[] = {"gpus", "nodes", "gpus_per_node", "precision", "model"};
    for (size_t idx = 0; idx < ARRAY_LEN(FACTS); idx++) {
        if (str_eq_z(name, FACTS[idx])) {
            return true;
        }
    }
    return false;
}

bool fact_is_of_identity(struct str name)
{
    static const char *const COUNTS[] = {"batch_per_gpu", "global_batch", "grad_accumulation"};
    for (size_t idx = 0; idx < ARRAY_LEN(COUNTS); idx++) {
        if (str_eq_z(name, COUNTS[idx])) {
            return true;
        }
    }
    return fact_is_of_row(name);
}
