/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/fs.h"
#include "base/stop.h"
#include "cmd/cmd.h"
#include "codec/document_text.h"
#include "codec/json_table.h"
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

struct sealed {
    const char *archive;
    struct seal_info info;
    const char *sha256, *key_id; /* key_id is NULL of an unsigned archive */
    bool is_signed;
};

static const struct json_field SEALED_ROWS[] = {
    ROW_NUMBER("schema_version", 1),
    ROW("archive", struct sealed, archive, 0),
    ROW("run_id", struct sealed, info.run_id, 0),
    ROW_WORD("result", struct sealed, info.outcome, EVIDENCE_OUTCOME_NAMES, 0),
    ROW("files", struct sealed, info.n_files, 0),
    ROW("file_bytes", struct sealed, info.file_bytes, 0),
    ROW("archive_bytes", struct sealed, info.archive_bytes, 0),
    ROW("frame_sha256", struct sealed, sha256, 0),
    ROW("is_signed", struct sealed, is_signed, 0),
    ROW("key_id", struct sealed, key_id, JSON_NULLABLE),
};

static int seal_it(const struct cmd_ctx *ctx, struct arena *arena, const char *folder,
                   const struct args *args, struct strbuf *buf, struct err *err)
{
    CLEANUP(sign_key) struct sign_key key = SIGN_KEY_EMPTY;
    struct sealed sealed = {0};
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
        (!opts.archive && rundir_archive_of(arena, folder, &opts.archive, err) < 0)) {
        return -1;
    }
    if (run_check_folder(folder, err) < 0 ||
        run_journal_result(arena, folder, &opts.journal, err) < 0 ||
        seal_folder(arena, &opts, &sealed.info, err) < 0 ||
        run_note_sealed(opts.archive, sealed.info.sha256, opts.key != NULL, ctx->clock, err) < 0) {
        return -1;
    }
    sealed.archive = opts.archive;
    sealed.sha256 = sealed.info.sha256;
    sealed.is_signed = opts.key != NULL;
    sealed.key_id = opts.key ? opts.key->id : NULL;
    json_encode_document(buf, SEALED_ROWS, ARRAY_LEN(SEALED_ROWS), &sealed);
    if (!args->want_json) {
        document_to_text(buf, SIZE_MAX);
    }
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
