/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/table.h"
#include "cmd/cmd.h"
#include "codec/json.h"
#include "engine/runs.h"

#define OUTPUT_MAX (64u << 20)

struct status_args {
    bool want_json;
};

static const struct opt OPTS[] = {
    {.name = "json",
     .kind = OPT_FLAG,
     .help = "print one JSON document",
     .offset = offsetof(struct status_args, want_json)},
    OPT_END,
};

static void add_json(struct json_out *out, const struct run_info *info)
{
    jw_object(out, NULL);
    jw_str(out, "run", info->dir.id);
    jw_z(out, "time", info->time);
    jw_str(out, "report", info->report);
    jw_z(out, "profile", profile_name(info->profile));
    jw_z(out, "state", info->state);
    jw_i64(out, "repeats_done", (int64_t)info->n_done);
    jw_i64(out, "repeats", (int64_t)info->n_total);
    jw_i64(out, "attempts_lost", (int64_t)info->n_lost);
    if (info->exit_status >= 0) {
        jw_i64(out, "exit_status", info->exit_status);
    } else {
        jw_null(out, "exit_status");
    }
    jw_z(out, "folder", info->dir.folder);
    jw_z(out, "archive", info->exit_status >= 0 ? info->dir.archive : NULL);
    jw_end_object(out);
}

static void add_row(struct table *table, const struct run_info *info)
{
    table_add(table, info->dir.id);
    table_add(table, info->report);
    table_add(table, str_of(profile_name(info->profile)));
    table_add(table, str_of(info->state));
    table_addf(table, "%zu/%zu", info->n_done, info->n_total);
    if (info->exit_status >= 0) {
        table_addf(table, "%lld", (long long)info->exit_status);
    } else {
        table_add(table, STR_LIT("-"));
    }
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
        if (rundir_find(arena, ctx->state, name, &dir, err) < 0 ||
            run_info_load(arena, &dir, &infos[idx], err) < 0) {
            return -1;
        }
    }
    *ret_infos = infos;
    *ret_n = n;
    return 0;
}

static int run(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    static const struct table_column COLUMNS[] = {
        {"run", false},   {"report", false}, {"profile", false},
        {"state", false}, {"repeats", true}, {"exit status", true},
    };
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(opt_list) struct opt_list operands = {0};
    CLEANUP(table) struct table table = {0};
    CLEANUP(strbuf) struct strbuf buf;
    struct status_args args = {0};
    struct json_out out;
    struct run_info *infos = NULL;
    size_t n = 0;
    strbuf_init(&buf, OUTPUT_MAX);
    if (opt_parse(OPTS, argc, argv, &args, &operands, err) < 0 ||
        load_runs(&arena, ctx, &operands, &infos, &n, err) < 0) {
        return -1;
    }
    table_init(&table, COLUMNS, ARRAY_LEN(COLUMNS));
    jw_begin(&out, &buf, false);
    if (args.want_json) {
        jw_object(&out, NULL);
        jw_i64(&out, "schema_version", 1);
        jw_array(&out, "runs");
    }
    for (size_t idx = 0; idx < n; idx++) {
        if (args.want_json) {
            add_json(&out, &infos[idx]);
        } else {
            add_row(&table, &infos[idx]);
        }
    }
    if (args.want_json) {
        jw_end_array(&out);
        jw_end_object(&out);
    } else {
        table_render(&table, &buf);
    }
    return cmd_print(strbuf_str(&buf), err);
}

const struct cmd CMD_STATUS = {
    .name = "status",
    .operands = "[RUN...]",
    .summary = "how far the runs on this machine are",
    .opts = OPTS,
    .run = run,
};
