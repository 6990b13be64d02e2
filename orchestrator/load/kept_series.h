/* SPDX-License-Identifier: Apache-2.0 */
/* The series that are kept of a report's published logs: logs/published/REPORT/series.json, one item for each log and format. It
   holds what a format read from the log, exactly, so that an audit from it equals an audit from the raw logs. The report's
   manifest has its digest (logs.series_sha256), so that an edited series is found without the raw log. */
#pragma once

#include "base/map.h"
#include "log/series.h"
#include "report/report.h"

#define KEPT_SERIES_NAME "series.json"

struct kept_log {
    struct str path;   /* below logs_source.path */
    struct str sha256; /* of the raw log, hex */
    struct measurement measurement;
};

struct kept_series {
    struct str report; /* id */
    struct source_ref source;
    struct kept_log *logs;
    size_t n_logs;
    struct map by_name; /* set by reading: of kept_series_find */
};
void kept_series_release(struct kept_series *kept);
CLEANUP_BY(kept_series, struct kept_series, kept_series_release);

/* ret_sha256: of the file, hex, in the arena. */
MUST_CHECK int kept_series_write(struct arena *arena, const char *path,
                                 const struct kept_series *kept, struct str *ret_sha256,
                                 struct err *err);
/* ERR_NOT_FOUND where there is none; ERR_MANIFEST where it is not such a file. On failure there is nothing to release. */
MUST_CHECK int kept_series_read(struct arena *arena, const char *path, struct kept_series *ret_kept,
                                struct str *ret_sha256, struct err *err);
/* NULL: none of this log, as this format reads it. */
const struct kept_log *kept_series_find(const struct kept_series *kept, struct str path,
                                        struct str format);
