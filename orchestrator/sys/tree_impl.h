/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of sys/tree*.c share. */
#ifndef SYS_TREE_IMPL_H
#define SYS_TREE_IMPL_H

#include <stdatomic.h>

#include "sys/digest_cache.h"
#include "sys/tree.h"

/* ---- tree_run.c: the owner's side of hashing a row of files on the pool ---- */

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

/* ---- tree_worker.c: one thread's side ---- */

struct tree_worker {
    struct tree_run *run;
    const atomic_bool *is_stopped; /* it ends early, with what it has; borrowed */
    size_t at, end;                /* of its part of the files */
};
MUST_CHECK int tree_work(struct tree_worker *worker, struct err *err);

struct tree_open { /* a file that is being read */
    int fd;
    size_t idx;
    struct digest_key key;
    bool is_settled; /* its digest may be cached */
};
/* The next file that must be read; files that are cached, not wanted or cannot be opened are handled on the way. 1: *ret_open
   is open; 0: there is none (for this job). */
MUST_CHECK int tree_next(struct tree_worker *worker, struct tree_open *ret_open, struct err *err);
/* Fills buf unless the file ends. 0, or 1: it cannot be read, which is noted, and the file is closed. */
MUST_CHECK int tree_fill(struct tree_worker *worker, struct tree_open *open, uint8_t *buf,
                         size_t size, size_t *ret_len, struct err *err);
void tree_done(struct tree_worker *worker, struct tree_open *open,
               const struct digest_value *value);
/* All of an open file by OpenSSL. */
MUST_CHECK int tree_digest(struct tree_worker *worker, struct tree_open *open,
                           struct digest *digest, uint8_t *buf, struct err *err);
#define TREE_READ_BYTES (128u << 10)

#endif
