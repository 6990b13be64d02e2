/* SPDX-License-Identifier: Apache-2.0 */
/* `replay`, the name of an earlier release for what `verify` derives: a run's series and result again from its raw logs, whoever signed it. */
#include "base/base.h"

#include "base/fs.h"
#include "cmd/cmd.h"
#include "codec/json_document.h"
#include "codec/json_table.h"
#include "evidence/derive.h"
#include "evidence/rundir.h"
#include "evidence/verify_archive.h"
#include "run/journal_check.h"

struct args {
    bool want_json;
};

static const struct opt OPTS[] = {OPT(struct args, want_json, "json", "print one JSON document"),
                                  OPT_END};

#define DIFFERS_STATUS 1 /* a value is not what today's rules derive */

struct replayed {
    const char *path;
    struct str run_id;
    size_t n_logs, n_files; /* files that were derived and compared */
    bool is_same;
    struct discrepancies discrepancies;
};

static const struct json_field REPLAYED_ROWS[] = {
    ROW("path", struct replayed, path, 0),       ROW("run_id", struct replayed, run_id, 0),
    ROW("logs", struct replayed, n_logs, 0),     ROW("files", struct replayed, n_files, 0),
    ROW("is_same", struct replayed, is_same, 0),
};

static int print(const struct replayed *r, bool want_json, struct strbuf *buf)
{
    struct json_out out;
    if (want_json) {
        jw_document(&out, buf);
        json_encode(&out, REPLAYED_ROWS, ARRAY_LEN(REPLAYED_ROWS), r);
        discrepancies_encode(&out, &r->discrepancies);
        jw_end_object(&out);
    } else {
        strbuf_printf(buf,
                      "%s\n  run %.*s: from %zu raw log%s and the frozen rules, %zu files derived "
                      "again%s\n",
                      r->path, STR_ARG(r->run_id), r->n_logs, plural_s(r->n_logs), r->n_files,
                      r->discrepancies.n ? "" : ", the same byte for byte");
        discrepancies_print(buf, &r->discrepancies);
    }
    return r->is_same ? 0 : DIFFERS_STATUS;
}

/* A folder's logs are read where they lie; an archive is checked for form and bytes, too. */
static int replay(struct arena *arena, const struct cmd_ctx *ctx, struct derived *derived,
                  struct replayed *r, struct err *err)
{
    const char *inner = fs_join(arena, r->path, "evidence");
    const char *folder = fs_is_dir(inner) ? inner : r->path;
    struct verify_info info = {0};
    const struct verify_opts opts = {
        .path = r->path, .allows_unsigned = true, .wants_progress = true, .clock = ctx->clock};
    bool is_folder = fs_is_dir(r->path);
    if (is_folder ? derive_folder(arena, folder, derived, err) < 0
                  : verify_archive(arena, &opts, &info, err) < 0) {
        return -1;
    }
    r->run_id = is_folder ? derived->frozen.run_id : info.run_id;
    r->n_logs = is_folder ? derived->n_logs : info.n_logs;
    r->n_files = r->n_logs + 1;
    r->discrepancies = is_folder ? derived->discrepancies : info.discrepancies;
    r->is_same = r->discrepancies.n_values == 0;
    return run_check(r->path, &(struct run_claim){.run_id = r->run_id}, err) < 0
               ? -1
               : run_check_folder(folder, err);
}

static int run(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    CLEANUP(derived) struct derived derived = {0};
    struct args *args = call->args;
    struct rundir dir;
    struct replayed r = {.path = call->operands.items[0]};
    if (!fs_exists(r.path)) {
        if (rundir_find(call->arena, ctx->state, r.path, &dir, err) < 0) {
            return -1;
        }
        r.path = fs_exists(dir.archive) ? dir.archive : dir.folder;
    }
    return replay(call->arena, ctx, &derived, &r, err) < 0 ? err_wrap(err, "%s", r.path)
                                                           : print(&r, args->want_json, call->out);
}

const struct cmd CMD_REPLAY =
    CMD("replay", "ARCHIVE|FOLDER|RUN",
        "derive a run's series and result again with its frozen rules, and compare", OPTS, run,
        CMD_ARGS(struct args), CMD_OPERANDS(1, 1, "expected one archive, folder or run"));
