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

/* The number after `start`, as in "$.cases[N]..."; false for every other place. */
static bool number_of_place(struct str place, const char *start, size_t n, size_t *ret_idx)
{
    struct str rest = str_sub(place, strlen(start), SIZE_MAX);
    int64_t end = str_find(rest, STR_LIT("]"));
    int64_t idx = 0;
    struct err ignored = {0};
    if (!str_starts(place, str_of(start)) || end < 0 || n == 0 ||
        str_to_i64(str_sub(rest, 0, (size_t)end), 0, (int64_t)n - 1, &idx, &ignored) < 0) {
        return false;
    }
    *ret_idx = (size_t)idx;
    return true;
}

/* "logs_source/PATH" or "logs_source/PATH:LINE". */
static bool is_log_of(const struct report *report, const struct report_case *c, struct str where)
{
    struct str folder = report->logs_source.path;
    if (!folder.ptr || !str_starts(where, folder) || where.len <= folder.len ||
        where.ptr[folder.len] != '/') {
        return false;
    }
    where = str_sub(where, folder.len + 1, SIZE_MAX);
    for (size_t idx = 0; idx < c->n_logs; idx++) {
        struct str log = c->logs[idx];
        if (str_starts(where, log) && (where.len == log.len || where.ptr[log.len] == ':')) {
            return true;
        }
    }
    return false;
}

static bool is_cell_of(const struct report_case *c, struct str place)
{
    for (size_t idx = 0; idx < c->n_cells; idx++) {
        if (str_eq(c->cells[idx].id, place)) {
            return true;
        }
    }
    return false;
}

/* A finding about cases, none of which is selected. */
static bool is_of_others(const struct selection *s, const struct finding *finding)
{
    const struct report *report = s->report;
    struct str where = finding->where;
    struct str place = STR_EMPTY;
    size_t n_of = 0;
    size_t case_idx = 0;
    size_t stack_idx = 0;
    if (str_starts(where, report->path) && where.len > report->path.len) {
        place = str_sub(where, report->path.len + 1, SIZE_MAX);
    }
    bool is_case = number_of_place(place, "$.cases[", report->n_cases, &case_idx);
    bool is_stack = number_of_place(place, "$.stacks[", report->n_stacks, &stack_idx);
    for (size_t idx = 0; idx < report->n_cases; idx++) {
        const struct report_case *c = &report->cases[idx];
        if ((is_case && idx == case_idx) || (is_stack && c->stack == &report->stacks[stack_idx]) ||
            is_log_of(report, c, where) || is_cell_of(c, place)) {
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
