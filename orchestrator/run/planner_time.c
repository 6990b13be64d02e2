/* SPDX-License-Identifier: Apache-2.0 */
/* How long a repeat will take if it runs at the published rate, and how many training steps it has. */
#include "base/base.h"

#include "report/launch_options.h"
#include "run/planner_impl.h"

#define DEADLINE_ESTIMATES 3 /* how many estimates long the default deadline is */

/* Samples per second, as published for the case or, for the bundled workload, for its baseline; 0: none was. */
static double published_rate(const struct report_case *of)
{
    const struct report_case *c = of->rated;
    for (size_t idx = 0; c && idx < c->n_cells; idx++) {
        if (c->cells[idx].metric == METRIC_THROUGHPUT) {
            return c->cells[idx].published;
        }
    }
    return 0;
}

/* As the options of the training program say, where no condition does; 0: neither says. */
static int64_t steps_of_command(struct arena *arena, const struct plan_step *step)
{
    struct shell_script script;
    int64_t n = 0;
    shell_script_read(arena, step->argv[step->n_argv - 1], &script);
    for (size_t idx = 0; idx < script.n; idx++) {
        struct option_found option;
        for (size_t at = 0; option_next(arena, &script.runs[idx], &at, &option);) {
            if (option.means == MEANS_ITERATIONS && option_is_training(&script.runs[idx])) {
                n = str_to_i64(option.value, 1, INT32_MAX, &n, &(struct err){0}) == 0 ? n : 0;
            }
        }
    }
    return n;
}

/* That a repeat trains on; 0: not known. Where both are said, an epoch has so many iterations. */
static double samples_of(struct arena *arena, const struct plan_step *step)
{
    int64_t n_steps = step->n_steps;
    double epochs = (double)plan_condition_number(step, "epochs");
    double parts = (double)plan_condition_number(step, "grad_accumulation");
    double batch = (double)plan_condition_number(step, "batch_per_gpu") * (double)step->n_ranks *
                   (parts > 0 ? parts : 1);
    if (n_steps == 0 && epochs <= 0) {
        n_steps = steps_of_command(arena, step);
    }
    return n_steps ? (double)n_steps * batch * (epochs > 0 ? epochs : 1)
                   : epochs * (double)plan_condition_number(step, "dataset_images");
}

void plan_ask_steps(struct planner *p, const struct report_case *c, struct plan_step *step)
{
    const int64_t n = plan_asked_steps(p->opts->asked_steps, c);
    bool takes_it = false;
    for (size_t idx = 0; idx < step->n_argv; idx++) {
        takes_it = takes_it || str_find(step->argv[idx], STR_LIT(PLAN_STEPS_ENV)) >= 0;
    }
    if (n && takes_it) {
        ASSERT(step->n_env < PLAN_ENV_MAX);
        step->env[step->n_env++] =
            (struct condition){STR_LIT(PLAN_STEPS_ENV), plan_number(p->arena, n)};
        plan_set_condition(step, "iterations", plan_number(p->arena, n));
        step->n_steps = n;
    }
}

void plan_estimate(struct planner *p, struct plan_step *step)
{
    double rate = published_rate(step->bound.of_case);
    double seconds = rate > 0 ? samples_of(p->arena, step) / rate : 0;
    if (p->opts->profile == PROFILE_SMOKE || p->opts->is_rehearsal || seconds <= 0) {
        return;
    }
    step->estimate_s = seconds < DEADLINE_S_MAX ? (int64_t)seconds + 1 : DEADLINE_S_MAX;
    int64_t deadline_s = step->estimate_s * DEADLINE_ESTIMATES;
    if (!p->opts->deadline_s && deadline_s > DEADLINE_FULL_S) {
        step->deadline_s = deadline_s < DEADLINE_S_MAX ? deadline_s : DEADLINE_S_MAX;
    }
}
