/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "core/optim.h"

_Static_assert(sizeof(struct opt_state) % sizeof(int64_t) == 0, "moved as whole numbers");
_Static_assert(offsetof(struct opt_state, loss_scale) == 0, "where kernel_args.loss_scale points");

static const char *const METHODS[OPT_METHOD_COUNT] = {[OPT_SGD] = "sgd", [OPT_ADAMW] = "adamw"};

const char *opt_method_name(enum opt_method method)
{
    return METHODS[method];
}

bool opt_method_find(const char *name, enum opt_method *ret_method)
{
    for (int i = 0; i < OPT_METHOD_COUNT; i++) {
        if (strcmp(METHODS[i], name) == 0) {
            *ret_method = (enum opt_method)i;
            return true;
        }
    }
    return false;
}

const char *opt_scaling_name(enum opt_scaling scaling)
{
    static const char *const names[] = {
        [OPT_SCALE_NONE] = "none", [OPT_SCALE_STATIC] = "static", [OPT_SCALE_DYNAMIC] = "dynamic"};
    return names[scaling];
}

struct opt_state opt_state_start(const struct opt_rule *rule)
{
    bool is_scaled = rule->scaling != OPT_SCALE_NONE;
    return (struct opt_state){.loss_scale = is_scaled ? rule->loss_scale : 1.0F};
}

static void skip(struct opt_state *state, const struct opt_rule *rule)
{
    state->n_skipped++;
    state->n_good = 0;
    if (rule->scaling == OPT_SCALE_DYNAMIC) {
        float half = state->loss_scale * 0.5F;
        state->loss_scale = half > OPT_SCALE_MIN ? half : OPT_SCALE_MIN;
    }
}

void opt_state_advance(struct opt_state *state, const struct opt_rule *rule, bool found_inf,
                       double grad_norm)
{
    state->found_inf = found_inf;
    state->grad_norm = grad_norm;
    if (found_inf) {
        skip(state, rule);
        return;
    }
    state->n_updates++;
    state->n_good++;
    if (rule->scaling == OPT_SCALE_DYNAMIC && state->n_good >= rule->scale_window) {
        float twice = state->loss_scale * 2.0F;
        state->loss_scale = twice < OPT_SCALE_MAX ? twice : OPT_SCALE_MAX;
        state->n_good = 0;
    }
}
