/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "judge/audit.h"
#include "report/plan.h"

struct selection {
    const struct report *report;
    const struct str *globs;
    size_t n_globs;
};

static bool is_selected(const struct selection *s, const struct report_case *c)
{
    return plan_selects(s->globs, s->n_globs, c->id);
}

/* Logs are named below the folder of the report's logs. */
static bool has_log(const struct report *report, const struct report_case *c, struct str log)
{
    size_t folder = report->logs_source.path.ptr ? report->logs_source.path.len + 1 : 0;
    return str_is_in(str_sub(log, folder, SIZE_MAX), c->logs, c->n_logs);
}

/* A finding about cases, none of which is selected. */
static bool is_of_others(const struct selection *s, const struct finding *finding)
{
    const struct spot *at = &finding->at;
    size_t n_of = 0;
    for (size_t idx = 0; idx < s->report->n_cases; idx++) {
        const struct report_case *c = &s->report->cases[idx];
        if (c == at->of_case || (at->stack && c->stack == at->stack) ||
            (at->log.ptr && has_log(s->report, c, at->log))) {
            if (is_selected(s, c)) {
                return false;
            }
            n_of++;
        }
    }
    return n_of > 0;
}

static void select_findings(const struct selection *s, struct report_audit *audit)
{
    struct findings *list = &audit->findings;
    size_t n_from_logs = 0;
    size_t n = 0;
    for (size_t idx = 0; idx < list->n; idx++) {
        if (is_of_others(s, &list->items[idx])) {
            audit->n_left_out++;
            continue;
        }
        n_from_logs += idx < audit->n_from_logs;
        list->items[n++] = list->items[idx];
    }
    audit->n_from_logs = n_from_logs;
    list->n = n;
}

void audit_select(struct arena *arena, struct report_audit *audit, const struct str *globs,
                  size_t n_globs)
{
    const struct selection s = {audit->report, globs, n_globs};
    struct cell_audit *cells = arena_array(arena, struct cell_audit, audit->n_cells + 1);
    struct like_row *rows = arena_array(arena, struct like_row, audit->n_rows + 1);
    size_t n_cells = 0;
    size_t n_rows = 0;
    if (n_globs == 0) {
        return;
    }
    for (size_t idx = 0; idx < audit->n_cells; idx++) {
        if (is_selected(&s, audit->cells[idx].of_case)) {
            cells[n_cells++] = audit->cells[idx];
        }
    }
    for (size_t idx = 0; idx < audit->n_rows; idx++) {
        if (is_selected(&s, audit->rows[idx].a->of_case) &&
            is_selected(&s, audit->rows[idx].b->of_case)) {
            rows[n_rows++] = audit->rows[idx]; /* these borrow the cells as they were */
        }
    }
    audit->cells = cells;
    audit->n_cells = n_cells;
    audit->rows = rows;
    audit->n_rows = n_rows;
    select_findings(&s, audit);
}
