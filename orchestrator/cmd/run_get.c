/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/run_args.h"

#include <signal.h>

#include "base/log.h"
#include "cmd/artifact_ops.h"

struct wanted_case {
    VEC(struct step_need) items; /* one each artifact and verb */
    size_t n_tried;
};

static void wanted_cleanup(struct wanted_case *wanted)
{
    VEC_RELEASE(&wanted->items);
}

static void want(struct wanted_case *wanted, const struct step_need *need)
{
    for (size_t idx = 0; idx < wanted->items.n; idx++) {
        const struct step_need *known = &wanted->items.items[idx];
        if (str_eq(known->artifact, need->artifact) && known->is_lock == need->is_lock) {
            return;
        }
    }
    VEC_PUSH(&wanted->items, *need);
}

/* Needs of the cases that could otherwise run; offline those that the store itself meets, such as a dataset out of a bundle. */
static void collect(const struct plan *plan, bool is_offline, struct wanted_case *wanted)
{
    for (size_t idx = 0; idx < plan->n_steps; idx++) {
        const struct plan_step *step = &plan->steps[idx];
        for (size_t at = 0; at < step->n_needs && plan_can_get(step); at++) {
            if (!is_offline || step->needs[at].is_here) {
                want(wanted, &step->needs[at]);
            }
        }
    }
}

/* All of them at once, before anything is asked for. */
static int check_logins(struct arena *arena, const struct wanted_case *wanted,
                        const struct net_opts *net, struct err *err)
{
    const char *names = NULL;
    for (size_t idx = 0; idx < wanted->items.n; idx++) {
        const struct step_need *need = &wanted->items.items[idx];
        if (need->needs_login) {
            names = arena_printf(arena, "%s%s%.*s", names ? names : "", names ? ", " : "",
                                 STR_ARG(need->artifact));
        }
    }
    return !names || net_has_login(net) || net->mirror
               ? 0
               : err_set(err, ERR_FETCH,
                         "for registered users only: %s; name a login by --netrc or --cookies, or "
                         "a --mirror that has it",
                         names);
}

static int get(const struct cmd_ctx *ctx, const struct net_opts *net, const struct step_need *need,
               struct err *err)
{
    CLEANUP(opt_list) struct opt_list names = {0};
    struct artifact_job job = {.ctx = ctx, .net_opts = net, .wants_tree = true, .is_aside = true};
    VEC_PUSH(&names, need->artifact.ptr);
    log_line(LOG_INFO, "getting %.*s", STR_ARG(need->artifact));
    return artifact_ops_run(&job, need->is_lock ? VERB_LOCK : VERB_FETCH, &names, false, false,
                            err);
}

/* What could not be fetched is not requested again. Returns a signal's status if one came. */
static int get_new(const struct cmd_ctx *ctx, const struct net_opts *net, struct arena *arena,
                   struct wanted_case *wanted, struct err *err)
{
    if (check_logins(arena, wanted, net, err) < 0) {
        return -1;
    }
    for (; wanted->n_tried < wanted->items.n; wanted->n_tried++) {
        struct err why = {0};
        int status = get(ctx, net, &wanted->items.items[wanted->n_tried], &why);
        if (status > 0) {
            return status;
        }
        if (status < 0) {
            log_line(LOG_WARN, "%s", why.msg);
        }
    }
    return 0;
}

int run_get(const struct cmd_ctx *ctx, const struct run_args *args, const struct run_opts *opts,
            const struct run_prepared *prepared, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(wanted) struct wanted_case wanted = {0};
    struct run_prepared looked = *prepared;
    struct run_opts asked = *opts;
    struct net_opts net;
    sigset_t before;
    int status = 0;
    asked.plan.counts_gettable = true;
    if (net_args_opts(ctx, &args->net, &net, err) < 0) {
        return -1;
    }
    sigprocmask(SIG_BLOCK, NULL, &before);
    /* Twice: an image that gets its lock may then have to be fetched. */
    for (int pass = 0; pass < 2 && status == 0; pass++) {
        if (run_plan(&arena, &asked, &looked, err) < 0) {
            return -1;
        }
        collect(&looked.plan, net.is_offline, &wanted);
        status = get_new(ctx, &net, &arena, &wanted, err);
    }
    if (status <= 0) { /* else the signal is still held back, and we end */
        sigprocmask(SIG_SETMASK, &before, NULL);
    }
    return status;
}
