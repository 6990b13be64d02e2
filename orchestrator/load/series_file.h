/* SPDX-License-Identifier: Apache-2.0 */
/* Measurement series as files: logs/published/REPORT/NAME.json, one for each published log and format. They hold what a format
   read from the log, exactly, so that an audit from them equals an audit from the raw log. Compact: columns are runs of
   arithmetic progressions (start, increment, count), times are whole microseconds. */
#ifndef LOAD_SERIES_FILE_H
#define LOAD_SERIES_FILE_H

#include "log/series.h"
#include "report/report.h"

struct series_file {
    struct str report; /* id */
    struct str log;    /* below logs_source.path */
    struct str sha256; /* of the raw log, hex */
    struct source_ref source;
    struct measurement measurement;
    struct str own_sha256; /* of the file as it was read, hex */
};

/* "ResNet50V1.5/logs/x.txt" read as "f" is "ResNet50V1.5--logs--x.txt.f.json". In the arena. */
const char *series_file_name(struct arena *arena, struct str log, struct str format);

MUST_CHECK int series_file_write(const char *path, const struct series_file *file, struct err *err);

/* ERR_NOT_FOUND where there is none; ERR_MANIFEST where it is not such a file. */
MUST_CHECK int series_file_read(struct arena *arena, const char *path, struct series_file *ret_file,
                                struct err *err);

#endif
