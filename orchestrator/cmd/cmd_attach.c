/* SPDX-License-Identifier: Apache-2.0 */
/* Follows a run that another process executes: a line for each change of a repeat, then the result. */
#include "base/base.h"

#include <time.h>

#include "base/log.h"
#include "cmd/run_args.h"
#include "cmd/run_repeats.h"

#define OUTPUT_MAX (64u << 20)
#define TICK_NS    (250 * NS_PER_MS)

static const struct opt OPTS[] = {OPT_END};

/* What has changed since the last look: states live as long as the program, so pointers tell them apart by text. */
static void tell_changes(const struct run_info *before, const struct run_info *now)
{
    for (size_t idx = 0; idx < now->n_total; idx++) {
        const struct run_repeat *at = &now->repeats[idx];
        const struct run_repeat *was = before ? &before->repeats[idx] : NULL;
        bool is_same = was && strcmp(was->state, at->state) == 0 && was->attempt == at->attempt;
        if (is_same || (!was && strcmp(at->state, "waiting") == 0)) {
            continue;
        }
        log_line(LOG_INFO, "%.*s %.*s repeat %lld: %s%s%.*s%s%.*s", STR_ARG(at->since),
                 STR_ARG(at->case_id), (long long)at->repeat, at->state,
                 at->nodes.len ? " on " : "", STR_ARG(at->nodes), at->why.len ? ": " : "",
                 STR_ARG(at->why));
    }
}

static int print_end(const struct run_info *info, struct err *err)
{
    CLEANUP(strbuf) struct strbuf buf;
    strbuf_init(&buf, OUTPUT_MAX);
    run_repeats_table(&buf, info);
    for (size_t idx = 0; idx < info->n_cells; idx++) {
        strbuf_printf(&buf, "%.*s: %.*s\n", STR_ARG(info->cells[idx].case_id),
                      STR_ARG(info->cells[idx].verdict));
    }
    if (info->exit_status >= 0) {
        strbuf_printf(&buf, "archive %s\n", info->dir.archive);
    }
    return cmd_print(strbuf_str(&buf), err);
}

static int end_status(const struct run_info *info, struct err *err)
{
    if (print_end(info, err) < 0) {
        return -1;
    }
    if (strcmp(info->state, "sealed") == 0) {
        return (int)info->exit_status;
    }
    if (!run_can_resume(info)) {
        return err_set(err, ERR_INTERRUPTED, "run %s: %s", info->dir.id.ptr, info->state);
    }
    return err_set(
        err, ERR_INTERRUPTED, "run %s: %s; reperf resume %s continues it", info->dir.id.ptr,
        strcmp(info->state, "died") == 0 ? "its orchestrator died" : info->state, info->dir.id.ptr);
}

static int follow(const struct rundir *dir, struct err *err)
{
    struct arena arenas[2] = {ARENA_EMPTY, ARENA_EMPTY};
    struct run_info infos[2];
    size_t at = 0;
    bool has_before = false;
    int status = 0;
    do {
        const struct timespec tick = {0, TICK_NS};
        arena_release(&arenas[at]);
        arenas[at] = ARENA_EMPTY;
        status = run_info_load(&arenas[at], dir, &infos[at], err);
        if (status == 0) {
            tell_changes(has_before ? &infos[1 - at] : NULL, &infos[at]);
            has_before = true;
            at = 1 - at;
        }
        if (status == 0 && strcmp(infos[1 - at].state, "running") == 0) {
            (void)nanosleep(&tick, NULL); /* a signal ends this command, not the run */
        }
    } while (status == 0 && strcmp(infos[1 - at].state, "running") == 0);
    if (status == 0) {
        status = end_status(&infos[1 - at], err);
    }
    arena_release(&arenas[0]);
    arena_release(&arenas[1]);
    return status;
}

int run_follow(const struct cmd_ctx *ctx, const struct opt_list *operands, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct rundir dir;
    if (operands->n != 1) {
        return err_set(err, ERR_USAGE, "expected one run");
    }
    return rundir_find(&arena, ctx->state, operands->items[0], &dir, err) < 0 ? -1
                                                                              : follow(&dir, err);
}

static int run(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    CLEANUP(opt_list) struct opt_list operands = {0};
    char none = 0;
    return opt_parse(OPTS, argc, argv, &none, &operands, err) < 0 ? -1
                                                                  : run_follow(ctx, &operands, err);
}

const struct cmd CMD_ATTACH = {"attach", "RUN", "follow a run of another process to its end", OPTS,
                               run};
