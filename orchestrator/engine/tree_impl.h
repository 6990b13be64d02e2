/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of engine/tree*.c share. */
#ifndef ENGINE_TREE_IMPL_H
#define ENGINE_TREE_IMPL_H

#include <stdatomic.h>

#include "engine/tree.h"

/* ---- tree_walk.c ---- */

/* Each file below the folder, in the order of the whole paths' bytes; path is valid during the call. */
typedef int (*tree_visit_fn)(void *ctx, const char *path, size_t len, struct err *err);
MUST_CHECK int tree_walk(const char *folder, bool (*should_stop)(void), tree_visit_fn visit,
                         void *ctx, struct err *err);

/* ---- tree_run.c, tree_worker.c: the hashing of a row of files on the pool ---- */

struct tree_run {
    const struct tree_opts *opts;
    unsigned kinds;
    const struct tree_file *files; /* their paths */
    size_t n;
    const uint8_t *is_wanted; /* beside files; NULL: all are */
    /* From the pool's threads, each idx once. on_unreadable NULL: the first such file ends the run. */
    void (*on_value)(void *ctx, size_t idx, const struct digest_value *value);
    void (*on_unreadable)(void *ctx, size_t idx);
    void *ctx;
    /* The run's own. */
    int root_fd;
    size_t chunk;
    atomic_size_t next_idx;
    atomic_size_t n_done, n_cached;
    atomic_uint_fast64_t bytes_read;
    atomic_bool must_stop;
};

MUST_CHECK int tree_run(struct tree_run *run, struct err *err);

struct tree_worker { /* one job's */
    struct tree_run *run;
    struct pool_job job;
    size_t err_idx; /* of the file that err is about */
};
int tree_work(void *arg, const atomic_bool *is_cancelled, struct err *err);

#endif
