/* SPDX-License-Identifier: Apache-2.0 */
/* bundle and import: what reports need, carried to a site without a network. */
#include "base/base.h"

#include "base/stop.h"
#include "cmd/cmd.h"
#include "codec/document_text.h"
#include "codec/json.h"
#include "codec/json_document.h"
#include "load/places.h"
#include "report/dataset.h"
#include "store/artifact.h"
#include "store/bundle.h"
#include "store/dataset_store.h"

struct args {
    const char *output;
    const char *locks;
    bool is_synthetic;
    bool allows_missing;
    bool is_dry;
    bool want_json;
};

static const struct opt BUNDLE_OPTS[] = {
    OPT(struct args, output, "output", "the new file, a tar", .letter = 'o', .value = "FILE"),
    OPT(struct args, is_synthetic, "synthetic", "the synthetic datasets"),
    OPT(struct args, allows_missing, "allow-missing",
        "make it without what the store lacks, and list that"),
    OPT(struct args, is_dry, "dry-run", "print its size and what the store lacks; write nothing"),
    OPT(struct args, want_json, "json", "print one JSON document"),
    OPT_END,
};

static const struct opt IMPORT_OPTS[] = {
    OPT(struct args, locks, "locks", "folder for the bundle's locks (default manifests/locks)",
        .value = "DIR"),
    OPT(struct args, want_json, "json", "print one JSON document"),
    OPT_END,
};

/* ---- output ---- */

/* path NULL: of bundle --dry-run. */
static int print(const struct cmd_call *call, const char *command, const char *path,
                 const struct bundle_info *info)
{
    const struct args *args = call->args;
    struct json_out out;
    jw_document(&out, call->out);
    jw_z(&out, "command", command);
    jw_z(&out, "bundle", path);
    jw_bool(&out, "synthetic", info->is_synthetic);
    jw_i64(&out, "files", (int64_t)info->n_files);
    if (!path) {
        jw_i64(&out, "bytes", (int64_t)info->file_bytes);
    }
    jw_i64(&out, "blobs", (int64_t)info->n_blobs);
    jw_i64(&out, "blob_bytes", (int64_t)info->blob_bytes);
    json_encode(&out, BUNDLE_LISTS, BUNDLE_LISTS_N, info);
    jw_end_object(&out);
    if (!args->want_json) {
        document_to_text(call->out, SIZE_MAX);
    }
    return 0;
}

/* ---- parts ---- */

struct bundle_parts {
    struct bundle_part *items;
    size_t n, n_max;
};
CLEANUP_BY(parts, struct bundle_parts, VEC_RELEASE);

/* own: its description, of a dataset; that of the program goes along anyway. */
static void add_part(const struct cmd_ctx *ctx, struct arena *arena,
                     const struct artifact *artifact, const struct dataset_here *own,
                     struct bundle_parts *parts)
{
    const char *kind = ARTIFACT_KIND_NAMES[artifact->kind];
    const char *name = arena_printf(arena, "%.*s%s", STR_ARG(artifact->name),
                                    artifact->is_synthetic ? DATASET_SYNTHETIC_SUFFIX : "");
    for (size_t idx = 0; idx < parts->n; idx++) {
        if (strcmp(parts->items[idx].kind, kind) == 0 &&
            strcmp(parts->items[idx].name, name) == 0) {
            return;
        }
    }
    const char *ours = fs_join(arena, ctx->root, "datasets");
    bool is_ours = own && str_starts(str_of(own->folder), str_of(ours));
    VEC_PUSH(parts, ((struct bundle_part){kind, name, arena_printf(arena, "%s %s", kind, name),
                                          is_ours ? NULL : own}));
}

/* What is made from another dataset is made again of that one's archives. */
static int add_artifact(const struct cmd_ctx *ctx, struct arena *arena,
                        const struct artifact *artifact, struct bundle_parts *parts,
                        struct err *err)
{
    struct dataset_here *here = NULL;
    if (artifact->kind == ARTIFACT_DATASET) {
        here = arena_new(arena, struct dataset_here);
        const struct dataset_which which = {ctx->root, NULL, str_z(arena, artifact->name),
                                            artifact->is_synthetic};
        if (dataset_load(arena, &which, here, err) < 0) {
            return -1;
        }
    }
    if (here && here->from) {
        add_part(
            ctx, arena,
            &(struct artifact){ARTIFACT_DATASET, here->from->dataset.id, artifact->is_synthetic},
            here->from, parts);
    }
    add_part(ctx, arena, artifact, here, parts);
    return 0;
}

/* ---- commands ---- */

static int run_bundle(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    CLEANUP(parts) struct bundle_parts parts = {0};
    CLEANUP(store) struct store store = STORE_EMPTY;
    struct args *args = call->args;
    struct artifacts needs;
    struct bundle_info info;
    if (call->operands.n == 0 || (!args->output && !args->is_dry)) {
        return err_set(err, ERR_USAGE, "bundle: expected NAME... and --output FILE or --dry-run");
    }
    if (artifacts_of(call->arena, ctx->root, &call->operands, args->is_synthetic, &needs, err) <
        0) {
        return -1;
    }
    for (size_t idx = 0; idx < needs.n; idx++) {
        if (add_artifact(ctx, call->arena, &needs.items[idx], &parts, err) < 0) {
            return -1;
        }
    }
    stop_hold();
    if (store_open(call->arena, ctx->store, &store, err) < 0) {
        return -1;
    }
    const struct net_opts net = {.is_offline = true, .clock = ctx->clock};
    struct bundle_opts opts = {.store = &store,
                               .net = &net,
                               .root = ctx->root,
                               .self = ctx->self,
                               .parts = parts.items,
                               .n_parts = parts.n,
                               .allows_missing = args->allows_missing,
                               .path = args->output,
                               .clock = ctx->clock};
    if (bundle_make(call->arena, &opts, args->is_dry, &info, err) < 0) {
        return -1;
    }
    return args->is_dry ? print(call, "bundle-dry-run", NULL, &info)
                        : print(call, "bundle", args->output, &info);
}

static int run_import(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    CLEANUP(store) struct store store = STORE_EMPTY;
    struct args *args = call->args;
    struct bundle_info info;
    stop_hold();
    if (store_open(call->arena, ctx->store, &store, err) < 0) {
        return -1;
    }
    const struct net_opts net = {.is_offline = true, .clock = ctx->clock};
    const struct import_opts opts = {
        .store = &store,
        .ctx = ctx,
        .path = call->operands.items[0],
        .locks = args->locks ? args->locks : fs_join(call->arena, ctx->root, "manifests/locks"),
        .net = &net};
    if (bundle_import(call->arena, &opts, &info, err) < 0) {
        return -1;
    }
    return print(call, "import", call->operands.items[0], &info);
}

const struct cmd CMD_BUNDLE =
    CMD("bundle", "NAME...",
        "put everything that reports, datasets, images or sources need into one file", BUNDLE_OPTS,
        run_bundle, CMD_ARGS(struct args));
const struct cmd CMD_IMPORT = CMD(
    "import", "FILE", "import a bundle into the store, after checking every byte", IMPORT_OPTS,
    run_import, CMD_ARGS(struct args), CMD_OPERANDS(1, 1, "import: expected one FILE of a bundle"));
