/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <math.h>

#include "base/log.h"
#include "base/table.h"
#include "cmd/cmd.h"
#include "codec/json_table.h"
#include "run/runs.h"

#define OUTPUT_MAX (64u << 20)
#define WHY_MAX    60
#define TICK_NS    (250 * NS_PER_MS)

struct args {
    bool want_json;
    bool is_followed;
};

static const struct opt OPTS[] = {
    OPT(struct args, is_followed, "follow",
        "print each change of one run until it ends, then its result", .letter = 'f'),
    OPT(struct args, want_json, "json", "print one JSON document"),
    OPT_END,
};

static const struct opt ATTACH_OPTS[] = {OPT_END};

static void put_profile(struct json_out *out, const char *key, const void *of)
{
    const struct run_info *info = of;
    jw_z(out, key, info->report.ptr ? PROFILE_NAMES[info->profile] : NULL);
}

static void put_archive(struct json_out *out, const char *key, const void *of)
{
    const struct run_info *info = of;
    jw_z(out, key, info->exit_status >= 0 ? info->dir.archive : NULL);
}

#define REPEAT  struct run_repeat
#define INFO    struct run_info
#define UNKNOWN JSON_NULLABLE | JSON_MINUS
static const struct json_field REPEAT_ROWS[] = {
    ROW("case", REPEAT, case_id, 0),        ROW("repeat", REPEAT, repeat, 0),
    ROW("attempt", REPEAT, attempt, 0),     ROW("attempts_lost", REPEAT, n_lost, 0),
    ROW("state", REPEAT, state, 0),         ROW("nodes", REPEAT, nodes, 0),
    ROW("since", REPEAT, since, 0),         ROW("why", REPEAT, why, 0),
    ROW("value", REPEAT, value, 0),         ROW("unit", REPEAT, unit, 0),
    ROW("samples", REPEAT, n_samples, 0),   ROW("step", REPEAT, step, UNKNOWN),
    ROW("steps", REPEAT, n_steps, UNKNOWN), ROW("seconds_left", REPEAT, left_s, 0),
};
static const struct json_field INFO_ROWS[] = {
    ROW("run", INFO, dir.id, 0),
    ROW("name", INFO, name, 0),
    ROW("time", INFO, time, 0),
    ROW("report", INFO, report, 0),
    ROW_OUT("profile", JSON_STR, put_profile, 0),
    ROW("rehearsal", INFO, is_rehearsal, JSON_OMIT),
    ROW("state", INFO, state, 0),
    ROW("repeats_done", INFO, n_done, 0),
    ROW("repeats", INFO, n_total, 0),
    ROW("attempts_lost", INFO, n_lost, 0),
    ROW("exit_status", INFO, exit_status, UNKNOWN),
    ROW("folder", INFO, dir.folder, 0),
    ROW_OUT("archive", JSON_STR, put_archive, 0),
    ROW("why", INFO, why, 0),
    ROW_LIST("repeat_states", INFO, repeats, n_total, REPEAT_ROWS, 0),
};
struct infos {
    struct run_info *items;
    size_t n;
};
static const struct json_field STATUS_ROWS[] = {
    ROW_NUMBER("schema_version", 1),
    ROW_LIST("runs", struct infos, items, n, INFO_ROWS, 0),
};

static void print_repeats(struct strbuf *buf, const struct run_info *info)
{
    CLEANUP(table)
    struct table table = table_of("case|>repeat|state|nodes|>lost|>so far|>step|>left|since|why");
    if (info->n_total == 0) {
        strbuf_add_z(buf, "no repeat: none of its cases could run\n");
        return;
    }
    for (size_t idx = 0; idx < info->n_total; idx++) {
        const struct run_repeat *at = &info->repeats[idx];
        bool is_soon = at->left_s < 90;
        TABLE_ADD(
            &table, at->case_id, table_text(&table, "%lld", (long long)at->repeat),
            str_of(at->state), table_or_dash(at->nodes), table_text(&table, "%zu", at->n_lost),
            table_text_if(&table, isfinite(at->value), "%.5g %.*s", at->value, STR_ARG(at->unit)),
            at->step >= 0 && at->n_steps >= 0
                ? table_text(&table, "%" PRId64 "/%" PRId64, at->step, at->n_steps)
                : table_text_if(&table, at->step >= 0, "%" PRId64, at->step),
            table_text_if(&table, isfinite(at->left_s), is_soon ? "%.0f s" : "%.0f min",
                          is_soon ? at->left_s : at->left_s / 60),
            table_or_dash(at->since), at->why.ptr ? str_sub(at->why, 0, WHY_MAX) : STR_EMPTY);
    }
    table_render(&table, buf);
}

static void add_row(struct table *table, const struct run_info *info)
{
    TABLE_ADD(table,
              info->name ? table_text(table, "%s (%s)", info->dir.id.ptr, info->name)
                         : info->dir.id,
              table_or_dash(info->report),
              str_of(info->report.ptr ? plan_kind_name(info->profile, info->is_rehearsal) : "-"),
              str_of(info->state), table_text(table, "%zu/%zu", info->n_done, info->n_total),
              table_text_if(table, info->exit_status >= 0, "%lld", (long long)info->exit_status));
}

static int load_runs(struct arena *arena, const struct cmd_ctx *ctx, const struct opt_list *names,
                     struct run_info **ret_infos, size_t *ret_n, struct err *err)
{
    struct fs_names ids = {0};
    size_t n = names->n;
    if (n == 0) {
        if (rundir_list(arena, ctx->state, &ids, err) < 0) {
            return -1;
        }
        n = ids.n;
    }
    struct run_info *infos = arena_array(arena, struct run_info, n + 1);
    for (size_t idx = 0; idx < n; idx++) {
        struct rundir dir;
        const char *name = names->n ? names->items[idx] : ids.items[idx];
        if (rundir_find(arena, ctx->state, name, &dir, err) < 0) {
            return -1;
        }
        run_info_look(arena, &dir, &infos[idx]);
        infos[idx].name = rundir_name_of(arena, ctx->state, dir.id);
        if (names->n && strcmp(infos[idx].state, RUN_DAMAGED) != 0 &&
            run_info_measure(arena, ctx->clock, &infos[idx], err) < 0) {
            return -1;
        }
    }
    *ret_infos = infos;
    *ret_n = n;
    return 0;
}

static void print_text(struct strbuf *buf, const struct run_info *infos, size_t n, bool is_named)
{
    CLEANUP(table) struct table table = table_of("run|report|profile|state|>repeats|>exit status");
    for (size_t idx = 0; idx < n; idx++) {
        add_row(&table, &infos[idx]);
    }
    table_render(&table, buf);
    for (size_t idx = 0; idx < n; idx++) {
        if (run_can_resume(&infos[idx])) {
            strbuf_printf(buf, "%s: reperf resume %s continues it\n", infos[idx].state,
                          infos[idx].dir.id.ptr);
        }
    }
    for (size_t idx = 0; is_named && idx < n; idx++) {
        strbuf_add_char(buf, '\n');
        if (infos[idx].why.ptr) {
            strbuf_printf(buf, "%s: %.*s\n\n", infos[idx].state, STR_ARG(infos[idx].why));
        }
        print_repeats(buf, &infos[idx]);
    }
}

/* A listing continues past a damaged run; naming one is an error. */
static int refuse_damaged(const struct run_info *infos, size_t n, struct err *err)
{
    for (size_t idx = 0; idx < n; idx++) {
        if (strcmp(infos[idx].state, RUN_DAMAGED) == 0) {
            return err_set(err, ERR_INTEGRITY, "run %.*s is damaged: %.*s",
                           STR_ARG(infos[idx].dir.id), STR_ARG(infos[idx].why));
        }
    }
    return 0;
}

static int print_status(const struct cmd_ctx *ctx, struct cmd_call *call, bool want_json,
                        struct err *err)
{
    const struct opt_list *names = &call->operands;
    struct run_info *infos = NULL;
    size_t n = 0;
    if (load_runs(call->arena, ctx, names, &infos, &n, err) < 0) {
        return -1;
    }
    if (want_json) {
        json_encode_document(call->out, STATUS_ROWS, ARRAY_LEN(STATUS_ROWS),
                             &(struct infos){infos, n});
    } else {
        print_text(call->out, infos, n, names->n > 0);
    }
    call->is_said = true; /* the sound ones beside the damaged */
    return names->n ? refuse_damaged(infos, n, err) : 0;
}

/* ---- follow: a line for each change of a repeat of a run of another process, then the result ---- */

struct seen { /* of a repeat */
    char state[32];
    int64_t attempt;
};

/* What has changed since the last look. */
static void tell_changes(const struct run_info *info, struct seen *seen)
{
    for (size_t idx = 0; idx < info->n_total; idx++) {
        const struct run_repeat *at = &info->repeats[idx];
        const char *was = seen[idx].state[0] ? seen[idx].state : "waiting";
        bool is_same = strcmp(was, at->state) == 0 &&
                       (!seen[idx].state[0] || seen[idx].attempt == at->attempt);
        seen[idx].attempt = at->attempt;
        (void)snprintf(seen[idx].state, sizeof(seen[idx].state), "%s", at->state);
        if (!is_same) {
            log_line(LOG_INFO, "%.*s %.*s repeat %lld: %s%s%.*s%s%.*s", STR_ARG(at->since),
                     STR_ARG(at->case_id), (long long)at->repeat, at->state,
                     at->nodes.len ? " on " : "", STR_ARG(at->nodes), at->why.len ? ": " : "",
                     STR_ARG(at->why));
        }
    }
}

static int print_end(const struct run_info *info, struct err *err)
{
    CLEANUP(strbuf) struct strbuf buf = STRBUF(OUTPUT_MAX);
    print_repeats(&buf, info);
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
    CLEANUP(free) struct seen *seen = NULL;
    const struct timespec tick = {0, TICK_NS};
    for (;;) {
        CLEANUP(arena) struct arena arena = ARENA_EMPTY;
        struct run_info info;
        run_info_look(&arena, dir, &info);
        if (strcmp(info.state, RUN_DAMAGED) == 0) {
            return err_set(err, ERR_INTEGRITY, "run %s: %.*s", dir->id.ptr, STR_ARG(info.why));
        }
        seen = seen ? seen : xcalloc(info.n_total + 1, sizeof(*seen));
        tell_changes(&info, seen);
        if (strcmp(info.state, "running") != 0) {
            return end_status(&info, err);
        }
        (void)nanosleep(&tick, NULL); /* a signal ends this command, not the run */
    }
}

static int run_attach(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    struct rundir dir;
    return rundir_find(call->arena, ctx->state, call->operands.items[0], &dir, err) < 0
               ? -1
               : follow(&dir, err);
}

static int run(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    struct args *args = call->args;
    if (args->is_followed && args->want_json) {
        return err_set(err, ERR_USAGE, "--follow excludes --json");
    }
    if (args->is_followed && call->operands.n != 1) {
        return err_set(err, ERR_USAGE, "expected one run; reperf status lists them");
    }
    return args->is_followed ? run_attach(ctx, call, err)
                             : print_status(ctx, call, args->want_json, err);
}

const struct cmd CMD_STATUS =
    CMD("status", "[RUN...]",
        "progress of the runs on this machine, and of each repeat of the named ones", OPTS, run,
        CMD_ARGS(struct args));

const struct cmd CMD_ATTACH = CMD("attach", "RUN", "follow a run of another process to its end",
                                  ATTACH_OPTS, run_attach, CMD_OPERANDS(1, 1, "expected one run"));
