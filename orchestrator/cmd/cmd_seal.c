/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/fs.h"
#include "base/stop.h"
#include "cmd/cmd.h"
#include "cmd/document_text.h"
#include "codec/json_document.h"
#include "evidence/rundir.h"
#include "evidence/seal.h"
#include "run/journal_check.h"

struct args {
    const char *key;
    const char *output;
    bool is_bytes_only;
    bool may_replace;
    bool want_json;
};

static const struct opt OPTS[] = {
    OPT(struct args, key, "key", "sign with this private key (without: an unsigned archive)",
        .value = "KEY"),
    OPT(struct args, output, "output", "the archive (without: FOLDER.tar.zst)", .letter = 'o',
        .value = "FILE"),
    OPT(struct args, is_bytes_only, "bytes-only",
        "derive nothing, for a folder that no run made; verify needs it too"),
    OPT(struct args, may_replace, "force", "replace an existing archive"),
    OPT(struct args, want_json, "json", "print one JSON document"),
    OPT_END,
};

static void print_seal(struct strbuf *buf, bool want_json, const char *archive,
                       const struct seal_info *info, const struct sign_key *key)
{
    struct json_out out;
    jw_document(&out, buf);
    jw_z(&out, "archive", archive);
    jw_str(&out, "run_id", info->run_id);
    jw_z(&out, "result", EVIDENCE_OUTCOME_NAMES[info->outcome]);
    jw_i64(&out, "files", (int64_t)info->n_files);
    jw_i64(&out, "file_bytes", (int64_t)info->file_bytes);
    jw_i64(&out, "archive_bytes", (int64_t)info->archive_bytes);
    jw_z(&out, "frame_sha256", info->sha256);
    jw_bool(&out, "is_signed", key != NULL);
    jw_z(&out, "key_id", key ? key->id : NULL);
    jw_end_object(&out);
    if (!want_json) {
        document_to_text(buf, SIZE_MAX);
    }
}

/* The evidence of a run is sealed next to it, under the run's id; NULL: it is a folder of another kind. */
static const char *of_run(struct arena *arena, struct str folder)
{
    static const struct str END = {"/evidence", 9};
    struct str run = str_sub(folder, 0, folder.len - (str_ends(folder, END) ? END.len : 0));
    size_t from = run.len > RUN_ID_SIZE - 1 ? run.len - (RUN_ID_SIZE - 1) : 0;
    struct str id = str_sub(run, from, SIZE_MAX);
    return str_ends(folder, END) && run_id_is_valid(id)
               ? arena_printf(arena, "%.*s/%.*s.tar.zst", STR_ARG(run), STR_ARG(id))
               : NULL;
}

/* FOLDER/ and FOLDER give FOLDER.tar.zst; "." needs its name. */
static int archive_of(struct arena *arena, const char *folder, const char **ret_archive,
                      struct err *err)
{
    char *whole = realpath(folder, NULL);
    if (!whole || !fs_is_dir(folder)) {
        free(whole);
        return err_set(err, ERR_NOT_FOUND, "%s: no such folder", folder);
    }
    *ret_archive = of_run(arena, str_of(whole));
    if (!*ret_archive) {
        *ret_archive = arena_printf(arena, "%s.tar.zst", whole);
    }
    free(whole);
    return 0;
}

static int seal_it(const struct cmd_ctx *ctx, struct arena *arena, const char *folder,
                   const struct args *args, struct strbuf *buf, struct err *err)
{
    CLEANUP(sign_key) struct sign_key key = SIGN_KEY_EMPTY;
    struct seal_info info;
    struct seal_opts opts = {
        .folder = folder,
        .archive = args->output,
        .key = args->key ? &key : NULL,
        .is_bytes_only = args->is_bytes_only,
        .may_replace = args->may_replace,
        .wants_progress = true,
        .clock = ctx->clock,
    };
    if (!fs_is_dir(folder)) {
        return err_set(err, ERR_USAGE, "seal %s: expected a run or the folder of one", folder);
    }
    if (args->is_bytes_only && (fs_exists(fs_join(arena, folder, "manifest/report.json")) ||
                                fs_exists(fs_join(arena, folder, "manifest/plan.json")))) {
        return err_set(err, ERR_USAGE,
                       "seal %s: a run's numbers are derived, --bytes-only is for "
                       "folders that no run made",
                       folder);
    }
    if ((args->key && sign_load_private(args->key, &key, err) < 0) ||
        (!opts.archive && archive_of(arena, folder, &opts.archive, err) < 0)) {
        return -1;
    }
    if (run_check_folder(folder, err) < 0 ||
        run_journal_result(arena, folder, &opts.journal, err) < 0 ||
        seal_folder(arena, &opts, &info, err) < 0 ||
        run_note_sealed(opts.archive, info.sha256, opts.key != NULL, ctx->clock, err) < 0) {
        return -1;
    }
    print_seal(buf, args->want_json, opts.archive, &info, opts.key);
    return 0;
}

static int run_seal(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    struct args *args = call->args;
    const char *folder = NULL;
    stop_hold();
    return rundir_evidence_of(call->arena, ctx->state, call->operands.items[0], false, &folder,
                              err) < 0
               ? -1
               : seal_it(ctx, call->arena, folder, args, call->out, err);
}

const struct cmd CMD_SEAL =
    CMD("seal", "RUN|FOLDER", "put a finished run into one archive that verify can check", OPTS,
        run_seal, CMD_ARGS(struct args),
        CMD_OPERANDS(1, 1, "seal: expected one RUN, or FOLDER of a finished run"));
