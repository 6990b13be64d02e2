/* SPDX-License-Identifier: Apache-2.0 */
/* What the logs of a run say while it is under way: each time read again, by the frozen formats and rules. */
#include "base/base.h"

#include "run/runs.h"

#include <math.h>

#include "judge/number.h"
#include "load/measure.h"
#include "run/run_impl.h"

#define JOBS_MAX 64 /* nodes of one attempt whose logs are looked at */

struct live {
    struct arena *arena;
    struct run_info *info;
    struct runner r; /* of it only the plan's units */
    int64_t now_ns;
};

static void measure_log(struct live *live, const struct plan_step *step, const char *path,
                        struct run_repeat *at)
{
    const struct frozen *frozen = &live->r.frozen;
    const struct format *format = step->bound.format;
    struct rule_case of = result_rule_case(frozen, step);
    struct measurement m;
    struct made_number number;
    struct str why = STR_EMPTY;
    struct err ignored = {0}; /* a log that has nothing yet has no number */
    if ((!format && result_choose_format(live->arena, frozen, path, &format, &why, &ignored) < 0) ||
        !format ||
        measure_file(live->arena, &(struct reading){.format = format, .path = path}, &m, NULL,
                     &ignored) < 0) {
        return;
    }
    at->step = m.last_step;
    at->n_steps = m.total_steps;
    if (number_of_log(format, &m, step->bound.rule, &of, &number, &ignored) == 0) {
        at->value = number.made.value;
        at->n_samples = number.made.n_used;
        at->unit = number.unit;
    }
}

/* The steps that are left at the pace of those that are done, start-up among them. */
static void guess_left(const struct live *live, struct run_repeat *at)
{
    double elapsed_s = (double)(live->now_ns - run_wall_of(at->since)) / (double)NS_PER_S;
    if (at->step > 0 && at->n_steps >= at->step && elapsed_s >= 0) {
        at->left_s = elapsed_s * (double)(at->n_steps - at->step) / (double)at->step;
    }
}

static void look_at(struct live *live, size_t unit_idx, struct run_repeat *at)
{
    const struct unit *unit = &live->r.units[unit_idx];
    const struct rundir *dir = &live->info->dir;
    const char *kept = fs_join(live->arena, dir->evidence,
                               rundir_of_repeat(live->arena, RUNDIR_LOG, at->case_id, at->repeat));
    if (fs_exists(kept)) {
        measure_log(live, unit->step, kept, at);
        return;
    }
    for (size_t job = 0; job < JOBS_MAX && at->step < 0 && !isfinite(at->value); job++) {
        const char *part =
            arena_printf(live->arena, "%s/" RUN_PART_NAME, dir->folder, unit_idx, job);
        if (!fs_exists(part)) {
            break;
        }
        measure_log(live, unit->step, part, at);
    }
    guess_left(live, at);
}

int run_info_measure(struct arena *arena, struct clock_src clock, struct run_info *info,
                     struct err *err)
{
    struct live live = {.arena = arena, .info = info, .now_ns = clock.wall_ns(clock.ctx)};
    live.r.arena = arena;
    if (frozen_load(arena, info->dir.evidence, &live.r.frozen, err) < 0) {
        frozen_release(&live.r.frozen);
        return -1;
    }
    run_make_units(&live.r);
    for (size_t idx = 0; idx < info->n_total; idx++) {
        struct run_repeat *at = &info->repeats[idx];
        for (size_t unit = 0; unit < live.r.n_units && strcmp(at->state, "waiting") != 0; unit++) {
            if (live.r.units[unit].repeat == at->repeat &&
                str_eq(live.r.units[unit].step->case_id, at->case_id)) {
                look_at(&live, unit, at);
            }
        }
    }
    frozen_release(&live.r.frozen);
    return 0;
}
