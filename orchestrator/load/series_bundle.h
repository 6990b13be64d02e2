/* SPDX-License-Identifier: Apache-2.0 */
/* The kept series of a report of very many logs of one format, in one file: logs/published/REPORT/series.json. The same content as
   series_file.h gives, without what is the same for all of them. */
#ifndef LOAD_SERIES_BUNDLE_H
#define LOAD_SERIES_BUNDLE_H

#include "base/map.h"
#include "load/series_file.h"

#define SERIES_BUNDLE_NAME "series.json"

struct series_bundle {
    struct map logs; /* path to struct series_file; both in the arena given */
};
void series_bundle_release(struct series_bundle *bundle);
static inline void series_bundle_cleanup(struct series_bundle *bundle)
{
    series_bundle_release(bundle);
}

/* files: of one report, source and format, with the same series each. */
MUST_CHECK int series_bundle_write(const char *path, const struct series_file *const *files,
                                   size_t n, struct err *err);
/* ERR_NOT_FOUND where there is none; ERR_MANIFEST where it is not such a file. own_sha256 of each is that of the whole. */
MUST_CHECK int series_bundle_read(struct arena *arena, const char *path,
                                  struct series_bundle *ret_bundle, struct err *err);

#endif
