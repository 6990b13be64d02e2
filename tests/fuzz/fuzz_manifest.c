/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a report: refused with the place, or a report whose parts agree and that lint reads without harm. */
#include "lint/lint.h"
#include "report/report.h"
#include "report/report_tables.h"
#include "tests/fuzz/fuzz.h"

static void check_case(const struct report *report, const struct report_case *c)
{
    struct str value;
    ASSERT(c->stack && c->gpus == c->nodes * c->gpus_per_node && c->batch_per_gpu > 0);
    ASSERT(report_case_find(report, c->id));
    (void)case_condition(c, "cuda", &value);
    for (size_t idx = 0; idx < c->n_cells; idx++) {
        const struct cell *cell = &c->cells[idx];
        ASSERT(cell->published > 0);
    }
}

FUZZ(arena, text)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct json root;
    struct report report = {0};
    struct findings findings = {.arena = arena};
    struct spelled spelled;
    struct err err = {0};
    if (report_spell_out(arena, text, "fuzz", &spelled, &err) < 0 ||
        json_parse(spelled.text, "fuzz", &doc, &err) < 0) {
        ASSERT(err.code == ERR_MANIFEST && err.msg[0]);
        return;
    }
    doc.root.context = vocabulary_builtin(arena);
    root = doc.root;
    if (report_decode(&root, arena, &report, &err) < 0) {
        ASSERT(err.code == ERR_MANIFEST && strstr(err.msg, "fuzz:$"));
        ASSERT(report_fail_there(&spelled, &err) < 0 && strstr(err.msg, "fuzz:$"));
        return;
    }
    for (size_t idx = 0; idx < report.n_cases; idx++) {
        check_case(&report, &report.cases[idx]);
    }
    lint_report(arena, &report, &findings);
}
