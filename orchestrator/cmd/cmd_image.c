/* SPDX-License-Identifier: Apache-2.0 */
/* Images of the store: listed, given to an engine, written out, dropped. */
#include "base/base.h"

#include "base/stop.h"
#include "cmd/artifact_ops.h"
#include "codec/document_text.h"
#include "codec/json_document.h"
#include "store/image_store.h"

struct args {
    const char *engine;
    const char *host;
    const char *output;
    bool want_json;
};

static const struct opt OPTS[] = {
    OPT(struct args, engine, "engine", "load: docker or podman; default docker", .value = "ENGINE"),
    OPT(struct args, host, "host", "load: address of docker's daemon, as in DOCKER_HOST",
        .value = "URL"),
    OPT(struct args, output, "output",
        "export: NAME.tar for docker load, or a new folder for an OCI layout", .letter = 'o',
        .value = "PATH"),
    OPT(struct args, want_json, "json", "print one JSON document"),
    OPT_END,
};

struct image_job {
    const struct cmd_ctx *ctx;
    const struct args *args;
    const char *name; /* NULL: ls */
    struct arena *arena;
    struct store *store;
    struct json_out *out; /* inside the document */
};

/* ---- ls ---- */

static int list(struct image_job *job, struct err *err)
{
    struct image_info info;
    struct fs_names names;
    if (store_ref_list(job->store, IMAGE_KIND, &names, err) < 0) {
        return -1;
    }
    jw_array(job->out, "images");
    for (size_t idx = 0; idx < names.n; idx++) {
        if (image_open(job->arena, job->store, names.items[idx], &info, err) < 0) {
            return -1;
        }
        jw_object(job->out, NULL);
        jw_z(job->out, "name", info.name);
        json_encode(job->out, IMAGE_INFO_ROWS, IMAGE_INFO_ROWS_N, &info);
        jw_end_object(job->out);
    }
    jw_end_array(job->out);
    return 0;
}

/* ---- load, export, rm ---- */

static int choose_engine(const struct args *args, enum image_engine *ret_engine, struct err *err)
{
    for (int engine = IMAGE_DOCKER; engine <= IMAGE_PODMAN; engine++) {
        const char *program = IMAGE_ENGINE_PROGRAMS[engine];
        if (strcmp(args->engine ? args->engine : "docker", program) == 0) {
            *ret_engine = (enum image_engine)engine;
            return 0;
        }
    }
    return err_set(err, ERR_USAGE, "--engine %.60s: expected docker or podman", args->engine);
}

static int load(struct image_job *job, struct err *err)
{
    enum image_engine engine = IMAGE_DOCKER;
    struct image_loaded loaded;
    struct image_info info;
    if (choose_engine(job->args, &engine, err) < 0 ||
        image_open(job->arena, job->store, job->name, &info, err) < 0 ||
        image_load(job->arena, job->store, &info,
                   &(struct image_load_opts){.engine = engine, .engine_host = job->args->host},
                   &loaded, err) < 0) {
        return -1;
    }
    jw_z(job->out, "name", job->name);
    jw_z(job->out, "engine", IMAGE_ENGINE_PROGRAMS[engine]);
    jw_str(job->out, "id", loaded.id);
    jw_str(job->out, "engine_name", loaded.name);
    jw_bool(job->out, "was_there", loaded.was_there);
    return 0;
}

static int export_it(struct image_job *job, struct err *err)
{
    struct image_info info;
    if (!job->args->output) {
        return err_set(err, ERR_USAGE, "image export: expected --output PATH");
    }
    if (image_open(job->arena, job->store, job->name, &info, err) < 0 ||
        image_export(job->arena, job->store, &info, job->args->output, err) < 0) {
        return -1;
    }
    jw_z(job->out, "name", job->name);
    jw_z(job->out, "path", job->args->output);
    jw_i64(job->out, "bytes", info.bytes);
    return 0;
}

static int drop(struct image_job *job, struct err *err)
{
    if (store_ref_drop(job->store, IMAGE_KIND, job->name, err) < 0) {
        return -1;
    }
    jw_z(job->out, "name", job->name);
    return 0;
}

/* ---- which ---- */

static const struct {
    const char *verb;
    bool has_name;
    int (*run)(struct image_job *job, struct err *err);
} VERBS[] = {
    {"ls", false, list}, {"load", true, load}, {"export", true, export_it}, {"rm", true, drop}};

/* The store keeps references by their whole name: "debian:12" is docker.io/library/debian:12. */
static const char *store_name(struct arena *arena, const char *name)
{
    struct oci_ref ref;
    if (strncmp(name, "image:", 6) == 0) {
        name += 6;
    }
    return strpbrk(name, "/:@") && oci_ref_parse(arena, str_of(name), &ref, ERR_IGNORED) == 0
               ? oci_ref_text(arena, &ref)
               : name;
}

static int find_verb(const struct opt_list *operands, size_t *ret_verb, struct err *err)
{
    for (size_t idx = 0; operands->n > 0 && idx < ARRAY_LEN(VERBS); idx++) {
        if (strcmp(operands->items[0], VERBS[idx].verb) == 0) {
            *ret_verb = idx;
            return operands->n == (VERBS[idx].has_name ? 2U : 1U)
                       ? 0
                       : err_set(err, ERR_USAGE, "image %s: expected %s", VERBS[idx].verb,
                                 VERBS[idx].has_name ? "one image" : "no operand");
        }
    }
    return err_set(err, ERR_USAGE, "image: expected ls, load, export or rm");
}

static int run_verb(struct image_job *job, size_t verb, struct strbuf *text, struct err *err)
{
    CLEANUP(store) struct store store = STORE_EMPTY;
    struct json_out out;
    if (store_open(job->arena, job->ctx->store, &store, err) < 0) {
        return -1;
    }
    job->store = &store;
    job->out = &out;
    jw_document(&out, text);
    jw_z(&out, "command", VERBS[verb].verb);
    int result = VERBS[verb].run(job, err);
    jw_end_object(&out);
    if (!job->args->want_json) {
        document_to_text(text, SIZE_MAX);
    }
    return result;
}

static int run(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    struct image_job job = {.ctx = ctx, .args = call->args, .arena = call->arena};
    size_t verb = 0;
    if (find_verb(&call->operands, &verb, err) < 0) {
        return -1;
    }
    job.name = call->operands.n > 1 ? store_name(call->arena, call->operands.items[1]) : NULL;
    stop_hold();
    return run_verb(&job, verb, call->out, err);
}

const struct cmd CMD_IMAGE = CMD("image", "ls|load|export|rm [IMAGE]",
                                 "container images of the store: list, load into an engine, export",
                                 OPTS, run, CMD_ARGS(struct args));
