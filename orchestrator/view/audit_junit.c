/* SPDX-License-Identifier: Apache-2.0 */
/* `audit --junit`: what CI servers read. A suite a report, a case a cell. */
#include "base/base.h"

#include "view/audit_out.h"
#include "view/html.h"

enum outcome { OUTCOME_PASSED, OUTCOME_FAILED, OUTCOME_ERROR, OUTCOME_SKIPPED };

/* A cell that a proposed format confirms is not known to hold. One whose named logs are missing or unreadable is an error, and
   so is one without a rule; one without any log was not judged. */
static enum outcome outcome_of(const struct cell_audit *a)
{
    switch (a->verdict) {
    case AUDIT_EXACT:
    case AUDIT_MATCH:
        return a->is_proposed ? OUTCOME_SKIPPED : OUTCOME_PASSED;
    case AUDIT_DIFFERS:
        return OUTCOME_FAILED;
    case AUDIT_NO_LOG:
        break;
    }
    if (a->log_state == LOG_NO_RULE || a->log_state == LOG_UNREADABLE) {
        return OUTCOME_ERROR;
    }
    for (size_t idx = 0; idx < a->n_logs; idx++) {
        if (!cell_measurement(a, idx)) {
            return OUTCOME_ERROR;
        }
    }
    return OUTCOME_SKIPPED;
}

static size_t count(const struct report_audit *audit, enum outcome outcome)
{
    size_t n = 0;
    for (size_t idx = 0; idx < audit->n_cells; idx++) {
        n += outcome_of(&audit->cells[idx]) == outcome;
    }
    return n;
}

static void write_case(const struct report_audit *audit, const struct cell_audit *a,
                       struct strbuf *out)
{
    static const char *const ELEMENTS[] = {
        [OUTCOME_FAILED] = "failure", [OUTCOME_ERROR] = "error", [OUTCOME_SKIPPED] = "skipped"};
    enum outcome outcome = outcome_of(a);
    strbuf_add_z(out, "    <testcase classname=\"");
    html_text(out, audit->report->id);
    strbuf_add_z(out, "\" name=\"");
    html_text(out, a->cell->id);
    strbuf_add_z(out, "\" time=\"0\"");
    if (outcome == OUTCOME_PASSED) {
        strbuf_add_z(out, "/>\n");
        return;
    }
    strbuf_printf(out, ">\n      <%s message=\"", ELEMENTS[outcome]);
    if (outcome == OUTCOME_FAILED) {
        CLEANUP(strbuf) struct strbuf text = STRBUF(512);
        strbuf_printf(&text, "published %s %s, recomputed ", a->cell->printed.ptr,
                      a->cell->unit.ptr);
        strbuf_add_f64(&text, a->recomputed);
        strbuf_printf(&text, " by %s", a->rule.ptr);
        html_text(out, strbuf_str(&text));
    } else {
        html_text(out, a->is_proposed ? str_of(cell_verdict_words(a)) : a->note);
    }
    strbuf_printf(out, "\"%s/>\n    </testcase>\n",
                  outcome == OUTCOME_SKIPPED ? "" : " type=\"audit\"");
}

void audit_out_junit(const struct audit_set *set, struct strbuf *out)
{
    size_t n[OUTCOME_SKIPPED + 1] = {0};
    size_t total = 0;
    for (size_t idx = 0; idx < set->n; idx++) {
        total += set->items[idx].n_cells;
        for (int outcome = OUTCOME_PASSED; outcome <= OUTCOME_SKIPPED; outcome++) {
            n[outcome] += count(&set->items[idx], (enum outcome)outcome);
        }
    }
    strbuf_add_z(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    strbuf_printf(out,
                  "<testsuites name=\"reperf audit\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" "
                  "skipped=\"%zu\" time=\"0\">\n",
                  total, n[OUTCOME_FAILED], n[OUTCOME_ERROR], n[OUTCOME_SKIPPED]);
    for (size_t idx = 0; idx < set->n; idx++) {
        const struct report_audit *audit = &set->items[idx];
        strbuf_add_z(out, "  <testsuite name=\"");
        html_text(out, audit->report->id);
        strbuf_printf(
            out, "\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"0\">\n",
            audit->n_cells, count(audit, OUTCOME_FAILED), count(audit, OUTCOME_ERROR),
            count(audit, OUTCOME_SKIPPED));
        for (size_t cell = 0; cell < audit->n_cells; cell++) {
            write_case(audit, &audit->cells[cell], out);
        }
        strbuf_add_z(out, "  </testsuite>\n");
    }
    strbuf_add_z(out, "</testsuites>\n");
}
