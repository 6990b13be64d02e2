/* SPDX-License-Identifier: Apache-2.0 */
/* Between sys/tree_run.c and tree_hash.c: hashing a row of files on the pool. */
#pragma once

#include <stdatomic.h>

#include "sys/digest_cache.h"
#include "sys/tree.h"

struct tree_run {
    const struct tree_opts *opts;
    unsigned kinds;
    const struct tree_file *files; /* their paths */
    size_t n;
    const uint8_t *is_wanted; /* parallel to files; NULL: all are */
    /* From the pool's threads, each idx once. on_unreadable NULL: the first such file ends the run. */
    void (*on_value)(void *ctx, size_t idx, const struct digest_value *value);
    void (*on_unreadable)(void *ctx, size_t idx);
    void *ctx;
    /* The run's own. */
    int root_fd;
    int64_t slack_ns; /* digest_cache_slack_ns of the root */
    size_t chunk;
    atomic_size_t next_idx;
    atomic_size_t n_done, n_cached;
    atomic_uint_fast64_t bytes_read;
};

MUST_CHECK int tree_run(struct tree_run *run, struct err *err);
