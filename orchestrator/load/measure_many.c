/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "load/measure_many.h"

#include <stdatomic.h>

#include "load/load.h"
#include "load/measure.h"

struct lane { /* of one thread alone: compiled patterns hold what they match in */
    struct arena arena;
    struct format_set formats;
};

struct many {
    const struct measure_with *with;
    struct measure_job *jobs;
    size_t n;
    struct lane *each;
    atomic_size_t next;
};

static int find_format(struct many *many, struct lane *lane, struct str id,
                       const struct format **ret_format, struct err *err)
{
    const struct measure_with *with = many->with;
    *ret_format = format_find(with->lanes || !with->formats ? &lane->formats : with->formats, id);
    if (*ret_format) {
        return 0;
    }
    format_set_release(&lane->formats); /* logs of one format stand together */
    if (load_format(&lane->arena, with->root, str_z(&lane->arena, id), &lane->formats, err) < 0) {
        return -1;
    }
    *ret_format = format_find(&lane->formats, id);
    return *ret_format
               ? 0
               : err_set(err, ERR_MANIFEST, "no format \"%.*s\" in manifests/formats", STR_ARG(id));
}

static int work(void *arg, size_t lane_idx, struct err *err)
{
    struct many *many = arg;
    struct lane *lane = &many->each[lane_idx];
    size_t idx;
    if (lane_idx == 0 && many->with->first && many->with->first(many->with->ctx, err) < 0) {
        return -1;
    }
    while ((idx = atomic_fetch_add(&many->next, 1)) < many->n) {
        struct measure_job *job = &many->jobs[idx];
        struct measurement *m = arena_new(&lane->arena, struct measurement);
        struct reading how = {.path = job->path, .keeps_lines = job->keeps_lines};
        if (find_format(many, lane, job->format, &how.format, err) < 0) {
            return -1;
        }
        if (measure_file(&lane->arena, &how, m, &job->sha256, &job->err) == 0) {
            job->measurement = m;
        }
    }
    return 0;
}

int measure_many(struct arena *arena, const struct measure_with *with, struct measure_job *jobs,
                 size_t n, struct err *err)
{
    const struct lanes *lanes = with->lanes;
    size_t n_lanes = lanes ? lanes->n : 1;
    CLEANUP(free) struct lane *each = xcalloc(n_lanes, sizeof(*each));
    struct many many = {.with = with, .jobs = jobs, .n = n, .each = each};
    int result = lanes ? lanes->run(lanes->ctx, n_lanes, work, &many, err) : work(&many, 0, err);
    for (size_t idx = 0; idx < n_lanes; idx++) {
        format_set_release(&each[idx].formats);
        arena_join(arena, &each[idx].arena);
    }
    return result;
}
