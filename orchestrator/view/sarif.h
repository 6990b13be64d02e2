/* SPDX-License-Identifier: Apache-2.0 */
/* Findings as SARIF 2.1.0, for code hosts and editors: each at a line of its report's manifest, below %SRCROOT% where the manifest is in the
   checkout that the command was run in; what a log shows is related, by its address on the web. */
#ifndef VIEW_SARIF_H
#define VIEW_SARIF_H

#include "base/strbuf.h"
#include "judge/finding.h"
#include "report/report.h"

struct sarif_report {
    const struct report *report;
    struct findings findings; /* borrowed */
};

/* root: folder that holds the program's manifests/. */
void sarif_write(struct arena *arena, const char *root, const struct sarif_report *reports,
                 size_t n, struct strbuf *out);

#endif
