/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of many files, on the pool. */
#ifndef STORE_DATASET_HEADERS_H
#define STORE_DATASET_HEADERS_H

#include "base/clock.h"
#include "report/dataset.h"
#include "sys/pool.h"

struct header_check {                  /* of one file */
    const char *path;                  /* below the folder */
    const struct dataset_group *group; /* NULL or FILE_ANY: not looked at */
    char *why;                         /* owned by the heap: what is wrong; NULL: nothing */
    int64_t n_records;                 /* of a TFRecord, lines of a text; -1: none */
    bool is_seen;
};

struct headers_opts {
    const char *folder;
    bool is_deep;
    bool
        ignores_lines; /* of a synthetic dataset: the description's number of lines is the original's */
    struct pool *pool;
    size_t n_threads;
    bool (*should_stop)(void);
    struct clock_src clock;
};

MUST_CHECK int dataset_headers(const struct headers_opts *opts, struct header_check *checks,
                               size_t n, struct err *err);

#endif
