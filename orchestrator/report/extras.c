/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/extras.h"

#include "codec/json_table.h"
#include "report/report_decode.h"

/* ---- rule ids ---- */

struct str rule_id_format(struct str id)
{
    struct str format = STR_EMPTY;
    return str_next(&id, '/', &format) && id.ptr ? format : STR_EMPTY;
}

/* ---- as JSON ---- */

static const struct json_form RULE_ID = {.pattern = "^[^/\\x00-\\x1f\\x7f]+/[^\\x00-\\x1f\\x7f]+$",
                                         .what = "FORMAT/NAME"};
static const struct json_field TARGET_ROWS[] = {
    ROW("series", struct loss_target, series, JSON_REQUIRED),
    ROW("at_most", struct loss_target, at_most, JSON_REQUIRED),
    ROW("mean_of", struct loss_target, mean_of, JSON_REQUIRED, .min = 1, .max = TARGET_MEAN_MAX),
};
const struct json_field EXTRAS_ROWS[EXTRAS_N] = {
    ROW_OBJECT("target", struct extras, target, TARGET_ROWS, JSON_OMIT),
    ROW_STRS("also", struct extras, also, n_also, JSON_OMIT | JSON_UNIQUE, .max = ALSO_RULES_MAX,
             .form = &RULE_ID),
    ROW("also_why_not", struct extras, why_not, JSON_OMIT, .form = &FORM_LINE),
};

/* ---- compare ---- */

static bool is_same_target(const struct loss_target *a, const struct loss_target *b)
{
    return str_eq(a->series, b->series) && !a->series.ptr == !b->series.ptr &&
           !(a->at_most < b->at_most) && !(a->at_most > b->at_most) && a->mean_of == b->mean_of;
}

bool extras_is_same(const struct extras *a, const struct extras *b)
{
    bool is_same = is_same_target(&a->target, &b->target) && a->n_also == b->n_also &&
                   str_eq(a->why_not, b->why_not) && !a->why_not.ptr == !b->why_not.ptr;
    for (size_t idx = 0; is_same && idx < a->n_also; idx++) {
        is_same = str_eq(a->also[idx], b->also[idx]);
    }
    return is_same;
}
