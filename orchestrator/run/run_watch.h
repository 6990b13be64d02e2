/* SPDX-License-Identifier: Apache-2.0 */
/* The monitor of a job of an attempt (run/run_watch.c). */
#ifndef RUN_RUN_WATCH_H
#define RUN_RUN_WATCH_H

#include "base/strbuf.h"
#include "sys/loop.h"

struct attempt;
struct journal_file;
struct rank_job;
struct outcome_node;
struct runner;

struct watch {         /* of a job's monitor */
    const char *id;    /* NULL: not asked for yet */
    struct strbuf log; /* cap_bytes 0: nothing read yet */
    bool is_over;
};

/* Whether jobs have monitors. The step of a job never fails. */
bool run_watches(const struct runner *r);
enum step rank_job_unwatch(struct attempt *a, struct rank_job *m, struct err *err);
void watch_release(struct watch *watch);
/* Its log becomes evidence, and the node's record says where. */
MUST_CHECK int watch_keep(struct attempt *a, const struct rank_job *m, struct outcome_node *node,
                          struct journal_file *ret_file, struct err *err);

#endif
