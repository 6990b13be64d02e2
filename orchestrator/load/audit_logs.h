/* SPDX-License-Identifier: Apache-2.0 */
/* The audit from files: the logs of a report's cells, raw (a folder) or as the series kept in logs/published; then
   audit_judge. Everything lives in the arena given. */
#pragma once

#include "base/lanes.h"
#include "base/progress.h"
#include "judge/audit.h"

struct audit_opts {
    const char *logs_folder; /* NULL: the series in logs/published below root */
    const char *root;        /* folder that holds manifests/ and logs/ */
    /* With logs_folder: the series of REPORT are written to here/REPORT; or NULL. */
    const char *series_folder;
    /* The repository that logs_folder was read from; NULL: it is as it was named. */
    const char *clone;
    struct progress *progress; /* counts logs; or NULL */
    const struct lanes *lanes; /* threads for raw logs; NULL: none */
    /* Adds findings that need no log (lint/lint.h); NULL: none are added. */
    void (*lint)(struct arena *arena, const struct report *report, struct findings *findings);
    bool keeps_lines; /* of raw logs: on which line each sample stands, and the file */
};

/* How many logs (times formats) audit_report will read: for progress. */
size_t audit_count_logs(const struct report *report);

/* An error only if nothing can be read at all; a missing or broken log is a finding. */
MUST_CHECK int audit_report(struct arena *arena, const struct report *report,
                            const struct format_set *formats, const struct audit_opts *opts,
                            struct report_audit *ret_audit, struct err *err);
