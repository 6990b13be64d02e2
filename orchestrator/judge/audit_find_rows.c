/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about what connects a cell to its log: the row that the log belongs to, and the rule that reads it. */
#include "base/base.h"

#include "judge/audit_parts.h"

static void find_other_row(struct audit *audit, const struct cell_audit *a)
{
    for (size_t fact = 0; fact < IDENTITY_FACTS; fact++) {
        const struct identity_item *item = &a->identity.items[fact];
        if (item->state == ID_CONTRADICTED) {
            finding_add(audit->found, "row-differs",
                        log_spot(audit, a, item->line ? a->identity_log : 0, item->line),
                        "%s: %.*s", a->cell->id.ptr, STR_ARG(item->why));
        }
    }
}

/* Whether it picks one sample of many, in whatever way. A tool's own figure is not a sample. */
static bool picks_sample(const struct rule *rule, const struct cell_audit *a,
                         const struct series *series)
{
    bool is_extreme = rule->statistic == STAT_MIN || rule->statistic == STAT_MAX;
    return series->n > 1 && series->quantity != QTY_SUMMARY &&
           (is_extreme || (a->n_used == 1 && a->verdict != AUDIT_NO_LOG));
}

static bool fits_scope(const struct rule *rule, const struct series *series)
{
    bool is_time = str_eq_z(series->unit, "s") && series->quantity != QTY_STEP_TIME;
    bool is_whole = rule->statistic == STAT_TIMESTAMPS || series->quantity == QTY_SCORE || is_time;
    return series->scope == SCOPE_UNKNOWN ||
           rule->scale == (is_whole ? SCALE_NONE : audit_scale_of(series));
}

/* A rule that the report states is its own affair; one that somebody found to fit must not pick a sample or use a wrong
   product. */
static void find_rule(struct audit *audit, const struct cell_audit *a)
{
    const struct rule *rule = a->by;
    const struct measurement *m = a->n_logs ? a->measurements[0] : NULL;
    const struct series *series = rule && m ? measurement_series(m, rule->series) : NULL;
    if (!series || str_eq_z(rule->origin, "stated")) {
        return;
    }
    if (picks_sample(rule, a, series)) {
        finding_add(audit->found, "rule-picks-sample", cell_spot(audit, a),
                    "%s: %.*s takes one of %zu samples, but the report does not say so",
                    a->cell->id.ptr, STR_ARG(rule->id), series->n);
    }
    if (!fits_scope(rule, series)) {
        finding_add(audit->found, "rule-scale-differs", cell_spot(audit, a),
                    "%s: %.*s scales by %s, but a value of %.*s is per %s", a->cell->id.ptr,
                    STR_ARG(rule->id), SCALE_NAMES[rule->scale], STR_ARG(series->name),
                    SCOPE_NAMES[series->scope]);
    }
}

void audit_find_rows(struct audit *audit)
{
    for (size_t idx = 0; idx < audit->out->n_cells; idx++) {
        const struct cell_audit *a = &audit->out->cells[idx];
        if (a->cell->derive == DERIVE_NONE) {
            find_other_row(audit, a);
            find_rule(audit, a);
        }
    }
}
