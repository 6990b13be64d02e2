/* SPDX-License-Identifier: Apache-2.0 */
/* The monitor of each job of an attempt on remote nodes: its log is fetched once the job's is here. It never causes an
   attempt to be lost: its failure is logged, and the repeat then counts as not watched. */
#include "base/base.h"

#include "run/run_attempt.h"

#include "base/log.h"

#define WATCH_LOG_MAX (16u << 20)

/* Runs of the inventory "local" have no monitors. */
bool run_watches(const struct runner *r)
{
    return !r->fleet.inventory->is_local && r->frozen.plan.launcher != LAUNCHER_SLURM;
}

/* STEP_FAIL becomes STEP_DONE without a monitor, and the job goes on. */
static enum step go_on(struct attempt *a, struct rank_job *m, enum step step, struct err *err)
{
    if (step == STEP_FAIL) {
        log_line(LOG_DEBUG, "%.*s: its monitor: %s", STR_ARG(a->r->fleet.nodes[m->node].spec->name),
                 err->msg);
        m->watch.is_over = true;
        *err = (struct err){0};
        return STEP_DONE;
    }
    return step;
}

/* The job is over, so the log is complete. */
enum step rank_job_unwatch(struct attempt *a, struct rank_job *m, struct err *err)
{
    struct watch *watch = &m->watch;
    if (!watch->id) {
        watch->id = arena_printf(a->r->arena, "%s/monitor", m->job.job.id);
        strbuf_init(&watch->log, WATCH_LOG_MAX);
    }
    if (watch->is_over) {
        return STEP_DONE;
    }
    struct log_part part = {.offset = watch->log.len, .dst = a->r->chunk, .size = RUN_CHUNK_BYTES};
    enum step step = m->remote->ops->read_log(m->remote, watch->id, &part, err);
    if (step != STEP_DONE) {
        return go_on(a, m, step, err);
    }
    strbuf_add(&watch->log, a->r->chunk, part.len);
    watch->is_over = part.len < RUN_CHUNK_BYTES || watch->log.is_full;
    return watch->is_over ? STEP_DONE : STEP_AGAIN;
}

void watch_release(struct watch *watch)
{
    if (watch->log.cap_bytes) {
        strbuf_release(&watch->log);
    }
}

int watch_keep(struct attempt *a, const struct rank_job *m, struct outcome_node *node,
               struct journal_file *ret_file, struct err *err)
{
    struct runner *r = a->r;
    const struct unit *unit = a->unit;
    const char *name;
    if (!m->watch.log.len) {
        return 0;
    }
    name = rundir_name(r->arena, RUNDIR_MONITOR,
                       (struct rundir_of){unit->step->case_id, unit->repeat, .name = node->name});
    if (run_put_file(r, name, strbuf_str(&m->watch.log), ret_file, err) < 0) {
        return -1;
    }
    node->monitor = str_of(name);
    return 0;
}
