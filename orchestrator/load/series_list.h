/* SPDX-License-Identifier: Apache-2.0 */
/* The digests of a report's kept series: logs/published/REPORT/series.sha256, as sha256sum writes and checks it. The report's manifest
   holds the digest of that file (logs.series_sha256), so that an edited series is found without the raw log. */
#ifndef LOAD_SERIES_LIST_H
#define LOAD_SERIES_LIST_H

#include "base/map.h"
#include "report/report.h"

struct series_list {
    struct map digests; /* file name to struct str, hex; both in the arena given */
};
void series_list_release(struct series_list *list);
static inline void series_list_cleanup(struct series_list *list)
{
    series_list_release(list);
}

/* ERR_INTEGRITY where the list is not the one of the manifest, ERR_MANIFEST where the manifest holds no digest of it. */
MUST_CHECK int series_list_read(struct arena *arena, const struct report *report,
                                const char *folder, struct series_list *ret_list, struct err *err);
/* ERR_INTEGRITY where the list has another digest for the file at path, or none. */
MUST_CHECK int series_list_check(const struct series_list *list, const char *path,
                                 struct str sha256, struct err *err);
/* Of the series files that the folder holds. ret_sha256: of the list itself, for the manifest. */
MUST_CHECK int series_list_write(struct arena *arena, const char *folder, struct str *ret_sha256,
                                 struct err *err);

#endif
