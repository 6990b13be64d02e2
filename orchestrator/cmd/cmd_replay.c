/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/fs.h"
#include "cmd/cmd.h"
#include "codec/json.h"
#include "evidence/replay.h"
#include "evidence/rundir.h"
#include "run/journal_check.h"

struct replay_args {
    bool want_json;
};

static const struct opt OPTS[] = {
    OPT(struct replay_args, want_json, "json", "print one JSON document"),
    OPT_END,
};

#define OUTPUT_MAX     (256u << 10)
#define DIFFERS_STATUS 1 /* a value is not what today's rules derive */

static int print(const char *path, const struct replay_info *info, bool want_json, struct err *err)
{
    CLEANUP(strbuf) struct strbuf buf;
    struct json_out out;
    const struct discrepancies *discrepancies = &info->discrepancies;
    strbuf_init(&buf, OUTPUT_MAX);
    if (want_json) {
        jw_begin(&out, &buf, false);
        jw_object(&out, NULL);
        jw_i64(&out, "schema_version", 1);
        jw_z(&out, "path", path);
        jw_z(&out, "run_id", info->run_id);
        jw_i64(&out, "logs", (int64_t)info->n_logs);
        jw_i64(&out, "files", (int64_t)info->n_files);
        jw_bool(&out, "is_same", discrepancies->n_values == 0);
        discrepancies_encode(&out, discrepancies);
        jw_end_object(&out);
    } else {
        strbuf_printf(&buf,
                      "%s\n  run %s: from %zu raw logs and the frozen rules, %zu files derived "
                      "again%s\n",
                      path, info->run_id, info->n_logs, info->n_files,
                      discrepancies->n ? "" : ", the same byte for byte");
        discrepancies_print(&buf, discrepancies);
    }
    return cmd_print(strbuf_str(&buf), err) < 0 ? -1
           : discrepancies->n_values > 0        ? DIFFERS_STATUS
                                                : 0;
}

static int run(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(opt_list) struct opt_list operands = {0};
    struct replay_args args = {0};
    struct replay_info info = {0};
    struct rundir dir;
    const char *inner;
    if (opt_parse(OPTS, argc, argv, &args, &operands, err) < 0) {
        return -1;
    }
    if (operands.n != 1) {
        return err_set(err, ERR_USAGE, "expected one archive, folder or run");
    }
    struct replay_opts opts = {.path = operands.items[0], .clock = ctx->clock};
    if (!fs_exists(opts.path)) {
        if (rundir_find(&arena, ctx->state, operands.items[0], &dir, err) < 0) {
            return -1;
        }
        opts.path = fs_exists(dir.archive) ? dir.archive : dir.folder;
    }
    inner = fs_join(&arena, opts.path, "evidence");
    if (replay(&arena, &opts, &info, err) < 0 ||
        run_check(opts.path, &(struct run_claim){.run_id = str_of(info.run_id)}, err) < 0 ||
        run_check_folder(fs_is_dir(inner) ? inner : opts.path, err) < 0) {
        return err_wrap(err, "%s", opts.path);
    }
    return print(opts.path, &info, args.want_json, err);
}

const struct cmd CMD_REPLAY = {
    .name = "replay",
    .operands = "ARCHIVE|FOLDER|RUN",
    .summary = "derive a run's series and result again with its frozen rules, and compare",
    .opts = OPTS,
    .run = run,
};
