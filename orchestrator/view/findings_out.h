/* SPDX-License-Identifier: Apache-2.0 */
/* Findings as text, JSON and SARIF. Writers append to `out`. */
#pragma once

#include "base/strbuf.h"
#include "codec/json_table.h"
#include "judge/finding.h"
#include "load/load.h"
#include "view/page.h"

extern const struct json_field FINDING_ROWS[4]; /* the same in audit and lint */
extern const struct json_document LINT_DOCUMENT;

/* `lint --json` (manifests/schema/lint-output.json): one list a report. */
void lint_out_json(const struct report_set *reports, const struct findings *lists,
                   struct strbuf *out);

/* Worst first; one fold a rule, a line a place. */
void findings_out(struct page *page, const struct findings *list);
/* "1 error, 0 warnings, 3 notes" */
void findings_out_counts(const struct findings *list, struct strbuf *out);
void findings_out_levels(const size_t n_of[], struct strbuf *out);
/* And the counts. */
void findings_out_text(const struct findings *list, bool is_colored, struct strbuf *out);

size_t findings_count(const struct findings *list, enum finding_level level);

/* SARIF 2.1.0, for code hosts and editors (sarif.c): each at a line of its report's manifest, below %SRCROOT% where the
   manifest is in the checkout that the command was run in; what a log shows is related, by its address on the web. */
struct sarif_report {
    const struct report *report;
    struct findings findings; /* borrowed */
};

/* root: folder that holds the program's manifests/. */
void sarif_write(struct arena *arena, const char *root, const struct sarif_report *reports,
                 size_t n, struct strbuf *out);
