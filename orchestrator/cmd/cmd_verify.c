/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/fs.h"
#include "base/stop.h"
#include "cmd/artifact_ops.h"
#include "cmd/cmd.h"
#include "codec/document_text.h"
#include "codec/json_document.h"
#include "codec/json_table.h"
#include "evidence/rundir.h"
#include "evidence/verify_archive.h"
#include "run/journal_check.h"
#include "view/run_view.h"

#define DIFFERS_STATUS 1 /* a value is not what today's rules derive */

struct args {
    const char *key;
    bool allows_unsigned;
    bool is_bytes_only;
    bool want_json;
    const char *as;
    const char *locks; /* from here on: of what is in the store */
    bool is_quick, is_deep, is_synthetic;
};

#define N_ARCHIVE_OPTS 3 /* the first of these; `data verify` has the others */

static const struct opt OPTS[] = {
    OPT(struct args, key, "key", "the signer's public key; a signature by another is refused",
        .value = "PUB"),
    OPT(struct args, allows_unsigned, "unsigned", "accept an unverified signer"),
    OPT(struct args, is_bytes_only, "bytes-only",
        "derive nothing: do not check whether the numbers follow from the logs"),
    OPT(struct args, as, "as", "PATH has data of that dataset: its archives, its tree or both",
        .value = "DATASET"),
    OPT(struct args, is_quick, "quick",
        "of a NAME: what is unchanged since it was read is not read, headers not at all"),
    OPT(struct args, is_deep, "deep",
        "of a NAME: read every byte, and every checksum within the files"),
    OPT(struct args, is_synthetic, "synthetic", "of a NAME: the synthetic dataset"),
    OPT(struct args, locks, "locks",
        "for a NAME: check against these locks (default manifests/locks)", .value = "DIR"),
    OPT(struct args, want_json, "json", "print one JSON document, also on failure"),
    OPT_END,
};

static const char *const SIGNERS[] = {
    [VERIFY_SIGNER_NONE] = "none",
    [VERIFY_SIGNER_UNVERIFIED] = "unverified",
    [VERIFY_SIGNER_VERIFIED] = "verified",
};

static void put_json(struct strbuf *buf, const char *path, const struct verify_info *info,
                     const struct err *err)
{
    struct json_out out;
    jw_document(&out, buf);
    jw_z(&out, "path", path);
    jw_z(&out, "kind", info->is_folder ? "folder" : "archive");
    jw_bool(&out, "holds", err->code == ERR_NONE && info->discrepancies.n_values == 0);
    jw_bool(&out, "derived", info->is_derived);
    if (info->is_derived) {
        jw_str(&out, "program_version", info->version);
        discrepancies_encode(&out, &info->discrepancies);
    }
    jw_str(&out, "run_id", info->run_id);
    jw_z(&out, "result", info->run_id.ptr ? EVIDENCE_OUTCOME_NAMES[info->outcome] : NULL);
    jw_i64(&out, "files", (int64_t)info->n_files);
    jw_i64(&out, "file_bytes", (int64_t)info->file_bytes);
    jw_z(&out, "signer", SIGNERS[info->signer]);
    jw_z(&out, "key_id", info->key_id[0] ? info->key_id : NULL);
    jw_err(&out, "error", err);
    jw_end_object(&out);
}

static void print_text(struct strbuf *buf, const char *path, const struct verify_info *info)
{
    strbuf_printf(buf, "%s\n  run     %.*s: %s%s%s%s\n", path, STR_ARG(info->run_id),
                  EVIDENCE_OUTCOME_NAMES[info->outcome], *info->counts ? ": " : "", info->counts,
                  info->is_derived ? "" : "; as it states itself: not derived");
    strbuf_printf(buf,
                  "  files   %zu, %" PRIu64 " bytes: %s, SHA256SUMS and both statements hold\n",
                  info->n_files, info->file_bytes,
                  info->is_folder ? "every file" : "every byte of the archive");
    if (info->is_derived) {
        strbuf_printf(
            buf,
            "  derived from %zu raw log%s and the frozen rules, as today's program judges: "
            "the series and the result are %swhat follows\n",
            info->n_logs, plural_s(info->n_logs), info->discrepancies.n_values ? "not " : "");
        discrepancies_print(buf, &info->discrepancies);
    } else {
        strbuf_add_z(buf, "  derived nothing (--bytes-only): whether the result follows from the "
                          "logs was not checked\n");
    }
    switch (info->signer) {
    case VERIFY_SIGNER_VERIFIED:
        strbuf_printf(buf, "  signer  verified: key %s\n", info->key_id);
        break;
    case VERIFY_SIGNER_UNVERIFIED:
        strbuf_printf(buf, "  signer  unverified: %s key %s, and no --key was given\n",
                      info->is_folder ? "it names" : "signed by", info->key_id);
        break;
    case VERIFY_SIGNER_NONE:
        strbuf_add_z(buf, "  signer  unverified: not signed\n");
        break;
    }
    if (info->signer != VERIFY_SIGNER_VERIFIED) {
        strbuf_add_z(buf, "          only a trusted key tells a measurement from a raw log that "
                          "was edited and derived again\n");
    }
}

static int verify_it(const struct cmd_ctx *ctx, struct arena *arena, const char *path,
                     const struct args *args, struct verify_info *info, struct err *err)
{
    CLEANUP(sign_key) struct sign_key key = SIGN_KEY_EMPTY;
    const struct verify_opts opts = {
        .path = path,
        .key = args->key ? &key : NULL,
        .allows_unsigned = args->allows_unsigned,
        .is_bytes_only = args->is_bytes_only,
        .wants_progress = true,
        .clock = ctx->clock,
    };
    if (!fs_exists(path)) {
        return err_set(err, ERR_NOT_FOUND, "verify: %s: no such archive or folder", path);
    }
    if (args->key && sign_load_public(args->key, &key, err) < 0) {
        return -1;
    }
    if (verify_archive(arena, &opts, info, err) < 0 ||
        (info->run_id.ptr &&
         run_check(path, &(struct run_claim){info->run_id, info->journal, NULL}, err) < 0)) {
        return -1;
    }
    return info->is_folder && !args->is_bytes_only ? run_check_folder(path, err) : 0;
}

/* Content of the store by name; with a folder, the dataset in it. */
static int verify_names(const struct cmd_ctx *ctx, const struct args *args,
                        const struct opt_list *names, const char *folder, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const struct net_opts net = {.is_offline = true, .wants_progress = true, .clock = ctx->clock};
    struct artifact_job job = {.ctx = ctx,
                               .net_opts = &net,
                               .locks = args->locks,
                               .folder = folder,
                               .depth = args->is_quick  ? DEPTH_QUICK
                                        : args->is_deep ? DEPTH_DEEP
                                                        : DEPTH_NORMAL};
    if (args->key || args->allows_unsigned || args->is_bytes_only) {
        return err_set(
            err, ERR_USAGE,
            "verify %s: no such run, archive or folder; --key, --unsigned and --bytes-only are "
            "for these",
            names->items[0]);
    }
    if (args->is_quick && args->is_deep) {
        return err_set(err, ERR_USAGE, "verify: --quick and --deep exclude each other");
    }
    return artifact_ops_run(&job, VERB_VERIFY, names, args->is_synthetic, args->want_json, err);
}

static int verify_as(const struct cmd_ctx *ctx, const struct args *args,
                     const struct opt_list *operands, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const struct opt_list names = {.items = (const char *[]){args->as}, .n = 1};
    if (artifact_check_as(&arena, ctx, "verify", args->as, operands, err) < 0) {
        return -1;
    }
    return verify_names(ctx, args, &names, operands->items[0], err);
}

static int verify_path(const struct cmd_ctx *ctx, struct cmd_call *call, const char *path,
                       struct err *err)
{
    const struct args *args = call->args;
    struct verify_info info = {0};
    if (args->is_quick || args->is_deep || args->is_synthetic || args->locks) {
        return err_set(err, ERR_USAGE,
                       "verify %s: --quick, --deep, --synthetic and --locks are for names of what "
                       "is in the store, and this is a file or folder",
                       path);
    }
    if (args->key && args->allows_unsigned) {
        return err_set(err, ERR_USAGE, "verify: --key and --unsigned exclude each other");
    }
    stop_hold();
    int result = verify_it(ctx, call->arena, path, args, &info, err);
    call->is_said = args->want_json;
    if (args->want_json) {
        put_json(call->out, path, &info, err);
    } else if (result == 0 || info.lacks_signer) { /* all else holds */
        print_text(call->out, path, &info);
    }
    return result < 0 ? -1 : info.discrepancies.n_values > 0 ? DIFFERS_STATUS : 0;
}

/* A path with a slash, or an existing one, is an archive; then a run's id or name; anything else names something in the store. */
static int run_verify(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    struct args *args = call->args;
    if (args->as) {
        return verify_as(ctx, args, &call->operands, err);
    }
    const char *path = call->operands.items[0];
    bool is_there = fs_exists(path);
    bool is_path =
        is_there || path[0] == '/' || path[0] == '.' || str_ends(str_of(path), STR_LIT(".tar.zst"));
    if (call->operands.n != 1 || (!is_path && !run_view_is_run(call->arena, ctx->state, path))) {
        return verify_names(ctx, args, &call->operands, NULL, err);
    }
    return (is_there || !is_path) &&
                   rundir_evidence_of(call->arena, ctx->state, path, true, &path, err) < 0
               ? -1
               : verify_path(ctx, call, path, err);
}

/* A name is one of the store here, whatever file or folder is called the same. */
static int run_data_verify(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    struct args *args = call->args;
    if (args->as) {
        return verify_as(ctx, args, &call->operands, err);
    }
    if (call->operands.n > 0) {
        return verify_names(ctx, args, &call->operands, NULL, err);
    }
    if (args->is_deep || args->is_synthetic || args->locks) {
        return err_set(err, ERR_USAGE,
                       "data verify: --deep, --synthetic and --locks are for a NAME; without one "
                       "every blob of the store is checked");
    }
    return store_verify_all(ctx, call, args->is_quick, args->want_json, err);
}

const struct cmd DATA_VERIFY = CMD("verify", "[NAME... | PATH --as DATASET]",
                                   "check what is in the store, or data in place, against its "
                                   "description; without a NAME, every byte of the store",
                                   OPTS + N_ARCHIVE_OPTS, run_data_verify, CMD_ARGS(struct args));

const struct cmd CMD_VERIFY =
    CMD("verify", "PATH | RUN | PATH --as DATASET | NAME...",
        "check an archive and who signed it, or what is in the store against its description", OPTS,
        run_verify, CMD_ARGS(struct args),
        CMD_OPERANDS(1, SIZE_MAX,
                     "verify: expected a RUN, the PATH of an archive or its folder, or the NAME of "
                     "what is in the store"));

/* ---- `replay`, the name of an earlier release for what `verify` derives: a run's series and result again from its raw logs,
   whoever signed it ---- */

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

/* A folder's logs are read where they lie; an archive is checked for form and bytes, too. */
static int replay(const struct cmd_ctx *ctx, struct arena *arena, struct derived *derived,
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

static int run_replay(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    CLEANUP(derived) struct derived derived = {0};
    const struct args *args = call->args;
    struct rundir dir;
    struct replayed r = {.path = call->operands.items[0]};
    struct json_out out;
    if (!fs_exists(r.path)) {
        if (rundir_find(call->arena, ctx->state, r.path, &dir, err) < 0) {
            return -1;
        }
        r.path = fs_exists(dir.archive) ? dir.archive : dir.folder;
    }
    if (replay(ctx, call->arena, &derived, &r, err) < 0) {
        return err_wrap(err, "%s", r.path);
    }
    jw_document(&out, call->out);
    json_encode(&out, REPLAYED_ROWS, ARRAY_LEN(REPLAYED_ROWS), &r);
    discrepancies_encode(&out, &r.discrepancies);
    jw_end_object(&out);
    if (!args->want_json) {
        document_to_text(call->out, DISCREPANCIES_MAX);
    }
    return r.is_same ? 0 : DIFFERS_STATUS;
}

const struct cmd CMD_REPLAY =
    CMD("replay", "ARCHIVE|FOLDER|RUN",
        "derive a run's series and result again with its frozen rules, and compare",
        OPTS + ARRAY_LEN(OPTS) - 2, run_replay, CMD_ARGS(struct args),
        CMD_OPERANDS(1, 1, "expected one archive, folder or run"));
