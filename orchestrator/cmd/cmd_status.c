/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <time.h>
#include <unistd.h>

#include "base/table.h"
#include "cmd/run_repeats.h"
#include "codec/json.h"

#define OUTPUT_MAX (64u << 20)

struct status_args {
    bool want_json;
    bool is_watched;
    bool is_followed;
};

static const struct opt OPTS[] = {
    OPT(struct status_args, is_watched, "watch", "print again each second while a run is running",
        .letter = 'w'),
    OPT(struct status_args, is_followed, "follow",
        "print each change of one run until it ends, then its result", .letter = 'f'),
    OPT(struct status_args, want_json, "json", "print one JSON document"),
    OPT_END,
};

static void add_repeats_json(struct json_out *out, const struct run_info *info)
{
    jw_array(out, "repeat_states");
    for (size_t idx = 0; idx < info->n_total; idx++) {
        const struct run_repeat *at = &info->repeats[idx];
        jw_object(out, NULL);
        jw_str(out, "case", at->case_id);
        jw_i64(out, "repeat", at->repeat);
        jw_i64(out, "attempt", at->attempt);
        jw_i64(out, "attempts_lost", (int64_t)at->n_lost);
        jw_z(out, "state", at->state);
        jw_str(out, "nodes", at->nodes);
        jw_str(out, "since", at->since);
        jw_str(out, "why", at->why);
        jw_f64(out, "value", at->value);
        jw_str(out, "unit", at->unit);
        jw_i64(out, "samples", (int64_t)at->n_samples);
        jw_known(out, "step", at->step);
        jw_known(out, "steps", at->n_steps);
        jw_f64(out, "seconds_left", at->left_s);
        jw_end_object(out);
    }
    jw_end_array(out);
}

static void add_json(struct json_out *out, const struct run_info *info)
{
    jw_object(out, NULL);
    jw_str(out, "run", info->dir.id);
    jw_z(out, "name", info->name);
    jw_z(out, "time", info->time);
    jw_str(out, "report", info->report);
    jw_z(out, "profile", info->report.ptr ? profile_name(info->profile) : NULL);
    if (info->is_rehearsal) {
        jw_bool(out, "rehearsal", true);
    }
    jw_z(out, "state", info->state);
    jw_i64(out, "repeats_done", (int64_t)info->n_done);
    jw_i64(out, "repeats", (int64_t)info->n_total);
    jw_i64(out, "attempts_lost", (int64_t)info->n_lost);
    jw_known(out, "exit_status", info->exit_status);
    jw_z(out, "folder", info->dir.folder);
    jw_z(out, "archive", info->exit_status >= 0 ? info->dir.archive : NULL);
    jw_str(out, "why", info->why);
    add_repeats_json(out, info);
    jw_end_object(out);
}

static void add_row(struct table *table, const struct run_info *info)
{
    if (info->name) {
        table_addf(table, "%s (%s)", info->dir.id.ptr, info->name);
    } else {
        table_add(table, info->dir.id);
    }
    table_add_or_dash(table, info->report);
    table_add(table,
              str_of(info->report.ptr ? plan_kind_name(info->profile, info->is_rehearsal) : "-"));
    table_add(table, str_of(info->state));
    table_addf(table, "%zu/%zu", info->n_done, info->n_total);
    table_addf_if(table, info->exit_status >= 0, "%lld", (long long)info->exit_status);
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
    static const struct table_column COLUMNS[] = {
        {"run", false},   {"report", false}, {"profile", false},
        {"state", false}, {"repeats", true}, {"exit status", true},
    };
    CLEANUP(table) struct table table;
    table_init(&table, COLUMNS, ARRAY_LEN(COLUMNS));
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
        run_repeats_table(buf, &infos[idx]);
    }
}

static void print_json(struct strbuf *buf, const struct run_info *infos, size_t n)
{
    struct json_out out;
    jw_document(&out, buf);
    jw_array(&out, "runs");
    for (size_t idx = 0; idx < n; idx++) {
        add_json(&out, &infos[idx]);
    }
    jw_end_array(&out);
    jw_end_object(&out);
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

static int print_once(const struct cmd_ctx *ctx, const struct opt_list *names, bool want_json,
                      bool *ret_is_running, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf buf;
    struct run_info *infos = NULL;
    size_t n = 0;
    strbuf_init(&buf, OUTPUT_MAX);
    if (load_runs(&arena, ctx, names, &infos, &n, err) < 0) {
        return -1;
    }
    *ret_is_running = false;
    for (size_t idx = 0; idx < n; idx++) {
        *ret_is_running = *ret_is_running || strcmp(infos[idx].state, "running") == 0;
    }
    if (want_json) {
        print_json(&buf, infos, n);
    } else {
        print_text(&buf, infos, n, names->n > 0);
    }
    return cmd_print(strbuf_str(&buf), err) < 0 ? -1 : names->n ? refuse_damaged(infos, n, err) : 0;
}

static int run(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    CLEANUP(opt_list) struct opt_list operands = {0};
    struct status_args args = {0};
    bool is_running = true;
    if (opt_parse(OPTS, argc, argv, &args, &operands, err) < 0) {
        return -1;
    }
    if (args.is_watched && args.want_json) {
        return err_set(err, ERR_USAGE, "--watch and --json: one document is printed once");
    }
    if (args.is_followed && (args.is_watched || args.want_json)) {
        return err_set(err, ERR_USAGE, "--follow excludes --watch and --json");
    }
    if (args.is_followed) {
        return run_follow(ctx, &operands, err);
    }
    while (is_running) {
        const struct timespec tick = {1, 0};
        if (args.is_watched && isatty(STDOUT_FILENO)) {
            (void)fputs("\033[H\033[2J", stdout); /* home, and nothing below */
        }
        if (print_once(ctx, &operands, args.want_json, &is_running, err) < 0) {
            return -1;
        }
        is_running = is_running && args.is_watched;
        if (is_running) {
            (void)nanosleep(&tick, NULL); /* a signal ends the command itself */
        }
    }
    return 0;
}

const struct cmd CMD_STATUS = {
    "status", "[RUN...]",
    "progress of the runs on this machine, and of each repeat of the named ones", OPTS, run};
