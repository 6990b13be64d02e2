/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/fs.h"
#include "base/progress.h"
#include "base/stop.h"
#include "cmd/cmd.h"
#include "codec/document_text.h"
#include "codec/json.h"
#include "codec/json_document.h"
#include "store/unpack_tree.h"

#define SHOWN_MAX 20 /* differences in text; --json has all */

struct args {
    const char *sha256, *md5, *list, *write_list;
    int64_t max_bytes;
    bool is_nested, want_json;
};

static const struct opt OPTS[] = {
    OPT(struct args, sha256, "sha256", "the archive's SHA-256; another is refused", .value = "HEX"),
    OPT(struct args, md5, "md5", "the archive's MD5; another is refused", .value = "HEX"),
    OPT(struct args, list, "list", "the expected files, as sha256sum or md5sum writes them",
        .value = "FILE"),
    OPT(struct args, write_list, "write-list", "write the SHA-256 of each file, for sha256sum -c",
        .value = "FILE"),
    OPT(struct args, is_nested, "nested", "also unpack each entry NAME.tar, into NAME/"),
    OPT(struct args, max_bytes, "max-bytes", "refuse an archive whose files add up to more bytes",
        .value = "N", .min = 1, .max = INT64_MAX),
    OPT(struct args, want_json, "json", "print one JSON document, also on failure"),
    OPT_END,
};

/* One command: what is known of it, for its document. */
struct unpack_run {
    const char *archive, *folder;
    struct arena arena;
    struct progress progress;
    struct unpack_tree_result result;
    uint8_t tree_sha256[SHA256_BYTES];
    bool holds, has_md5;
};

static const struct json_field RUN_ROWS[] = {
    ROW("archive", struct unpack_run, archive, 0),
    ROW("folder", struct unpack_run, folder, JSON_NULLABLE),
    ROW("holds", struct unpack_run, holds, 0),
    ROW("format", struct unpack_run, result.format, JSON_NULLABLE),
    ROW_HEX("sha256", struct unpack_run, result.archive.sha256, holds, JSON_NULLABLE),
    ROW_HEX("md5", struct unpack_run, result.archive.md5, has_md5, JSON_NULLABLE),
    ROW("size_bytes", struct unpack_run, result.archive.size_bytes, 0),
    ROW("files", struct unpack_run, result.list.n, 0),
    ROW("folders", struct unpack_run, result.n_folders, 0),
    ROW("links", struct unpack_run, result.n_links, 0),
    ROW("file_bytes", struct unpack_run, result.file_bytes, 0),
    ROW_HEX("tree_sha256", struct unpack_run, tree_sha256, holds, JSON_NULLABLE),
    ROW_LIST("differences", struct unpack_run, result.differences.items, result.differences.n,
             TREE_DIFFERENCE_ROWS, 0),
};

static void print(struct strbuf *buf, struct unpack_run *u, const struct err *err)
{
    struct json_out out;
    u->holds = err->code == ERR_NONE;
    u->has_md5 = u->holds && (u->result.kinds & DIGEST_MD5);
    if (!u->holds) {
        u->folder = NULL;
    }
    jw_document(&out, buf);
    json_encode(&out, RUN_ROWS, ARRAY_LEN(RUN_ROWS), u);
    jw_err(&out, "error", err);
    jw_end_object(&out);
}

static int read_hex(const char *text, const char *option, size_t n, uint8_t *ret_bytes,
                    struct err *err)
{
    if (text && hex_decode(str_of(text), n, ret_bytes, ERR_IGNORED) < 0) {
        return err_set(err, ERR_USAGE, "unpack: --%s: expected %zu lower-case hex digits", option,
                       2 * n);
    }
    return 0;
}

static int unpack_it(const struct cmd_ctx *ctx, struct unpack_run *u, const struct args *args,
                     struct err *err)
{
    uint8_t sha256[SHA256_BYTES], md5[MD5_BYTES];
    struct tree_list list;
    struct unpack_tree_opts opts = {
        .archive = u->archive,
        .new_folder = u->folder,
        .unpack = {.is_nested = args->is_nested, .limits = {.bytes = (uint64_t)args->max_bytes}},
        .md5 = args->md5 ? md5 : NULL,
        .sha256 = args->sha256 ? sha256 : NULL,
        .size_bytes = -1,
        .list = args->list ? &list : NULL,
        .on_progress = progress_show,
        .ctx = &u->progress,
    };
    int result;
    if (read_hex(args->sha256, "sha256", SHA256_BYTES, sha256, err) < 0 ||
        read_hex(args->md5, "md5", MD5_BYTES, md5, err) < 0 ||
        (args->list && tree_sums_read(&u->arena, args->list, &list, err) < 0) ||
        (args->write_list && fs_check_target(args->write_list, err) < 0)) {
        return -1;
    }
    progress_start(&u->progress, ctx->clock, "unpack", "bytes", 0);
    result = unpack_tree(&u->arena, &opts, &u->result, err);
    progress_end(&u->progress);
    if (result < 0) {
        return -1;
    }
    tree_list_sha256(&u->result.list, u->tree_sha256);
    return args->write_list ? tree_list_write(&u->result.list, args->write_list, NULL, err) : 0;
}

static int run_unpack(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    struct args *args = call->args;
    struct unpack_run u = {0};
    u.archive = call->operands.items[0];
    u.folder = call->operands.items[1];
    stop_hold();
    int result = unpack_it(ctx, &u, args, err);
    call->is_said = args->want_json || u.result.differences.n;
    print(call->out, &u, err);
    if (!args->want_json) {
        document_to_text(call->out, SHOWN_MAX);
    }
    arena_release(&u.arena);
    return result;
}

const struct cmd CMD_UNPACK =
    CMD("unpack", "ARCHIVE FOLDER", "unpack and check an archive in one pass; refuse a hostile one",
        OPTS, run_unpack, CMD_ARGS(struct args),
        CMD_OPERANDS(2, 2, "unpack: expected an ARCHIVE and a new FOLDER"));
