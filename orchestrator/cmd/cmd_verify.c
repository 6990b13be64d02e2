/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/fs.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/stop.h"
#include "engine/verify_archive.h"

#define OUTPUT_MAX (64u << 10)

struct verify_args {
    const char *key;
    bool allows_unsigned;
    bool wants_rebuild;
    bool want_json;
};

static const struct opt OPTS[] = {
    {.name = "key",
     .kind = OPT_TEXT,
     .value = "PUB",
     .help = "the signer's public key; a signature by another is refused",
     .offset = offsetof(struct verify_args, key)},
    {.name = "unsigned",
     .kind = OPT_FLAG,
     .help = "be content with an unverified signer",
     .offset = offsetof(struct verify_args, allows_unsigned)},
    {.name = "rebuild",
     .kind = OPT_FLAG,
     .help = "also compress again and compare: shows that this libzstd makes the same bytes",
     .offset = offsetof(struct verify_args, wants_rebuild)},
    {.name = "json",
     .kind = OPT_FLAG,
     .help = "print one JSON document, also on failure",
     .offset = offsetof(struct verify_args, want_json)},
    OPT_END,
};

static const char *const SIGNERS[] = {
    [VERIFY_SIGNER_NONE] = "none",
    [VERIFY_SIGNER_UNVERIFIED] = "unverified",
    [VERIFY_SIGNER_VERIFIED] = "verified",
};

static void print_json(struct strbuf *buf, const char *path, const struct verify_info *info,
                       const struct err *err)
{
    struct json_out out;
    jw_begin(&out, buf, false);
    jw_object(&out, NULL);
    jw_i64(&out, "schema_version", 1);
    jw_z(&out, "path", path);
    jw_z(&out, "kind", info->is_folder ? "folder" : "archive");
    jw_bool(&out, "holds", err->code == ERR_NONE);
    jw_bool(&out, "rebuilt", info->is_rebuilt);
    jw_str(&out, "run_id", info->run_id);
    jw_z(&out, "result", info->run_id.ptr ? evidence_outcome_name(info->outcome) : NULL);
    jw_i64(&out, "files", (int64_t)info->n_files);
    jw_i64(&out, "file_bytes", (int64_t)info->file_bytes);
    jw_z(&out, "signer", SIGNERS[info->signer]);
    jw_z(&out, "key_id", info->key_id[0] ? info->key_id : NULL);
    if (err->code == ERR_NONE) {
        jw_null(&out, "error");
    } else {
        jw_object(&out, "error");
        jw_z(&out, "code", err_code_name(err->code));
        jw_z(&out, "message", err->msg);
        jw_end_object(&out);
    }
    jw_end_object(&out);
}

static void print_text(struct strbuf *buf, const char *path, const struct verify_info *info)
{
    strbuf_printf(buf, "%s\n  run     %.*s: %s\n", path, STR_ARG(info->run_id),
                  evidence_outcome_name(info->outcome));
    strbuf_printf(buf,
                  "  files   %zu, %" PRIu64 " bytes: %s, SHA256SUMS and both statements hold\n",
                  info->n_files, info->file_bytes,
                  info->is_folder ? "every file" : "every byte of the archive");
    if (info->is_rebuilt) {
        strbuf_add_z(buf, "  rebuilt compressing again gives the same bytes\n");
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
}

static int verify_it(const struct cmd_ctx *ctx, struct arena *arena, const char *path,
                     const struct verify_args *args, struct verify_info *info, struct err *err)
{
    CLEANUP(sign_key) struct sign_key key = SIGN_KEY_EMPTY;
    const struct verify_opts opts = {
        .path = path,
        .key = args->key ? &key : NULL,
        .allows_unsigned = args->allows_unsigned,
        .wants_rebuild = args->wants_rebuild,
        .wants_progress = true,
        .clock = ctx->clock,
        .should_stop = stop_is_asked,
    };
    if (!fs_exists(path)) {
        return err_set(err, ERR_NOT_FOUND, "verify: %s: no such archive or folder", path);
    }
    if (args->wants_rebuild && fs_is_dir(path)) {
        return err_set(err, ERR_USAGE, "verify: --rebuild is for archives, %s is a folder", path);
    }
    if (args->key && sign_load_public(args->key, &key, err) < 0) {
        return -1;
    }
    return verify_archive(arena, &opts, info, err);
}

static int run_verify(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    CLEANUP(opt_list) struct opt_list operands = {0};
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf buf = {0};
    struct verify_args args = {0};
    struct verify_info info = {0};
    struct err print_err = {0};
    int result;
    strbuf_init(&buf, OUTPUT_MAX);
    if (opt_parse(OPTS, argc, argv, &args, &operands, err) < 0) {
        return -1;
    }
    if (operands.n != 1) {
        return err_set(err, ERR_USAGE, "verify: expected one PATH of an archive or its folder");
    }
    if (args.key && args.allows_unsigned) {
        return err_set(err, ERR_USAGE, "verify: --key and --unsigned exclude each other");
    }
    stop_hold();
    result = verify_it(ctx, &arena, operands.items[0], &args, &info, err);
    if (args.want_json) {
        print_json(&buf, operands.items[0], &info, err);
    } else if (result == 0) {
        print_text(&buf, operands.items[0], &info);
    }
    if (result == 0) {
        return cmd_print(strbuf_str(&buf), err);
    }
    /* The failure stands, whether or not its document could be written. */
    if (args.want_json && cmd_print(strbuf_str(&buf), &print_err) < 0) {
        log_line(LOG_DEBUG, "%s", print_err.msg);
    }
    if (err->code == ERR_INTERRUPTED && stop_is_asked()) {
        log_line(LOG_ERROR, "%s", err->msg);
        return stop_status();
    }
    return -1;
}

const struct cmd CMD_VERIFY = {"verify", "PATH",
                               "check an archive, or its unpacked folder, and who signed it", OPTS,
                               run_verify};
