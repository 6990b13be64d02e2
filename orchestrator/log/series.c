/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/json_document.h"
#include "log/series.h"

const char *const SCOPE_NAMES[] = {
    [SCOPE_RANK] = "rank", [SCOPE_NODE] = "node", [SCOPE_JOB] = "job", [SCOPE_UNKNOWN] = NULL};
const char *const QUANTITY_NAMES[] = {
    [QTY_RATE] = "rate",           [QTY_RUNNING_MEAN] = "running_mean",
    [QTY_STEP_TIME] = "step_time", [QTY_SUMMARY] = "summary",
    [QTY_CLOCK] = "clock",         [QTY_SCORE] = "score",
    [QTY_PROGRESS] = "progress"};
const char *const PARSE_VERDICT_NAMES[] = {[PARSE_OK] = "ok",
                                           [PARSE_NO_METRIC] = "no_metric",
                                           [PARSE_INCOMPLETE] = "incomplete",
                                           [PARSE_NAN] = "nan",
                                           [PARSE_AMBIGUOUS] = "ambiguous",
                                           [PARSE_TRUNCATED] = "truncated",
                                           [PARSE_TWO_LEVELS] = "two_levels",
                                           [PARSE_CONTRADICTS_ITSELF] = "contradicts_itself",
                                           [PARSE_PROPOSED] = "proposed"};

const struct series *measurement_series(const struct measurement *m, struct str name)
{
    return STR_NAMED(m->series, m->n_series, name, name);
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

const struct fact *measurement_fact(const struct measurement *m, struct str name, int32_t run)
{
    for (size_t idx = 0; idx < m->n_facts; idx++) {
        if (str_eq(m->facts[idx].name, name) && fact_is_of(&m->facts[idx], run)) {
            return &m->facts[idx];
        }
    }
    return NULL;
}

const struct json_field SERIES_HEAD_ROWS[] = {
    ROW("name", struct series, name, JSON_REQUIRED),
    ROW("unit", struct series, unit, JSON_REQUIRED),
    ROW_WORD("scope", struct series, scope, SCOPE_NAMES, JSON_REQUIRED | JSON_NULLABLE),
    ROW_WORD("quantity", struct series, quantity, QUANTITY_NAMES, JSON_REQUIRED),
    ROW("primary", struct series, is_primary, JSON_REQUIRED),
};
const struct json_field FACT_ROWS[] = {
    ROW("name", struct fact, name, JSON_REQUIRED),
    ROW("value", struct fact, value, JSON_REQUIRED),
    ROW("line", struct fact, line, JSON_REQUIRED, .max = INT32_MAX),
};

void series_put_sample(struct json_out *out, const struct series *series, size_t idx,
                       unsigned members)
{
    const struct sample *sample = &series->samples[idx];
    jw_object(out, NULL);
    jw_i64(out, "step", sample->step);
    jw_f64(out, "value", sample->value);
    if (members & SAMPLE_SCOPE) {
        jw_z(out, "scope", SCOPE_NAMES[series->scope]);
    }
    jw_known(out, "rank", sample->rank);
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
    static const struct json_field ROWS[] = {
        ROW_LIST("facts", struct measurement, facts, n_facts, FACT_ROWS, JSON_REQUIRED)};
    static const struct measurement NONE = {.n_facts = 0};
    json_encode(out, ROWS, ARRAY_LEN(ROWS), m ? m : &NONE);
}

bool fact_is_of_row(struct str name)
{
    static const char *const FACTS[] = {"gpus",      "nodes", "gpus_per_node",
                                        "precision", "model", NULL};
    return str_eq_any(name, FACTS);
}

bool fact_is_of_identity(struct str name)
{
    static const char *const COUNTS[] = {"batch_per_gpu", "global_batch", "grad_accumulation",
                                         NULL};
    return str_eq_any(name, COUNTS) || fact_is_of_row(name);
}
