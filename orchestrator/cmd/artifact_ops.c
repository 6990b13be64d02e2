/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/artifact_ops.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/stop.h"
#include "codec/document_text.h"
#include "codec/json_document.h"

#define OUTPUT_MAX (1u << 30)
#define SHOWN_MAX  20

static const artifact_fn *const OPS[ARTIFACT_KINDS] = {
    [ARTIFACT_DATASET] = DATASET_OPS, [ARTIFACT_IMAGE] = IMAGE_OPS, [ARTIFACT_SOURCE] = SOURCE_OPS};

static const char *const VERBS[] = {
    [VERB_FETCH] = "fetch",   [VERB_VERIFY] = "verify",         [VERB_LOCK] = "lock",
    [VERB_REPAIR] = "repair", [VERB_FORESEE] = "fetch-dry-run",
};

/* True where the command should go on with the next name. */
static bool run_one(struct artifact_job *job, enum artifact_verb verb,
                    const struct artifact *artifact, struct json_out *out, struct err *first)
{
    struct err err = {0};
    const char *name = artifact_text(job->arena, artifact);
    artifact_fn fn = OPS[artifact->kind][verb];
    jw_object(out, NULL);
    jw_z(out, "noun", name);
    int result = fn ? fn(job, artifact, out, &err)
                    : err_set(&err, ERR_USAGE, "%s: this version cannot %s a %s", name, VERBS[verb],
                              ARTIFACT_KIND_NAMES[artifact->kind]);
    jw_err(out, "error", &err);
    jw_end_object(out);
    if (result == 0) {
        return true;
    }
    if (first->code == ERR_NONE) {
        *first = err;
    } else {
        log_line(LOG_ERROR, "%s", err.msg);
    }
    return err.code != ERR_INTERRUPTED;
}

/* The failure stands, whether or not its document could be written. */
static int end(const struct artifact_job *job, const struct strbuf *out, const struct err *first,
               struct err *err)
{
    struct err why = {0};
    int result = job->is_aside  ? 0
                 : out->is_full ? err_set(&why, ERR_INTERNAL, "more than %u bytes", OUTPUT_MAX)
                                : cmd_print(strbuf_str(out), &why);
    *err = first->code == ERR_NONE ? why : *first;
    return first->code == ERR_NONE ? result : -1;
}

int artifact_ops_run(struct artifact_job *job, enum artifact_verb verb,
                     const struct opt_list *names, bool is_synthetic, bool want_json,
                     struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(store) struct store store = STORE_EMPTY;
    CLEANUP(net) struct net net;
    CLEANUP(strbuf) struct strbuf document = STRBUF(OUTPUT_MAX);
    struct json_out out;
    struct artifacts artifacts = {0};
    struct err first = {0};
    net_init(&net, job->net_opts);
    job->arena = &arena;
    job->store = &store;
    job->net = &net;
    if (verb != VERB_LOCK && job->locks && !fs_is_dir(job->locks)) {
        return err_set(err, ERR_NOT_FOUND, "--locks %s: no such folder", job->locks);
    }
    if (artifacts_of(&arena, job->ctx->root, names, is_synthetic, &artifacts, err) < 0 ||
        store_open(&arena, job->ctx->store, &store, err) < 0) {
        return -1;
    }
    stop_hold();
    jw_document(&out, &document);
    jw_z(&out, "command", VERBS[verb]);
    jw_array(&out, "items");
    for (size_t idx = 0; idx < artifacts.n; idx++) {
        if (!run_one(job, verb, &artifacts.items[idx], &out, &first)) {
            break;
        }
    }
    jw_end_array(&out);
    jw_end_object(&out);
    if (!want_json) {
        document_to_text(&document, SHOWN_MAX);
    }
    return end(job, &document, &first, err);
}

int artifact_check_as(struct arena *arena, const struct cmd_ctx *ctx, const char *verb,
                      const char *as, const struct opt_list *operands, struct err *err)
{
    struct artifact artifact;
    if (operands->n != 1) {
        return err_set(err, ERR_USAGE, "%s --as %.100s: expected one PATH", verb, as);
    }
    if (artifact_resolve(arena, ctx->root, as, &artifact, err) < 0) {
        return -1;
    }
    if (artifact.kind != ARTIFACT_DATASET) {
        return err_set(err, ERR_USAGE, "%s --as %.100s: that is %s, expected a dataset", verb, as,
                       ARTIFACT_KIND_NAMES[artifact.kind]);
    }
    return fs_exists(operands->items[0])
               ? 0
               : err_set(err, ERR_NOT_FOUND, "%s: %s: no such file or folder", verb,
                         operands->items[0]);
}
