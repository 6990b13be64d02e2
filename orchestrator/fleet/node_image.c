/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "fleet/node_image.h"

#include "base/embed.h"
#include "base/said.h"
#include "fleet/node_image_impl.h"

#define OUTPUT_MAX    (64u << 10)
#define STATUS_ABSENT 3

EMBED(provide_image_sh, "orchestrator/fleet/provide_image.sh");
EMBED(find_image_sh, "orchestrator/fleet/find_image.sh");

const char *const NODE_IMAGE_WAY_NAMES[] = {
    [NODE_IMAGE_THERE] = "there", [NODE_IMAGE_PULLED] = "pulled", [NODE_IMAGE_LOADED] = "loaded"};

/* Source of the words: docker 20.10 and podman 4.3 against registries with each fault (tests/integration/test_node_image.sh). */
static enum err_code node_image_cause(struct str output)
{
    static const struct {
        const char *words;
        enum err_code code;
    } CAUSES[] = {
        {"layer verification failed", ERR_INTEGRITY},
        {"manifest verification failed", ERR_INTEGRITY},
        {"igest did not match", ERR_INTEGRITY},
        {"does not match provided manifest digest", ERR_INTEGRITY},
        {"does not match config's digest", ERR_INTEGRITY},
        {"unexpected commit digest", ERR_INTEGRITY},
        {"failed size validation", ERR_INTEGRITY},
        {"manifest unknown", ERR_CONTAINER},
        {"not found on this node", ERR_CONTAINER},
        {"docker daemon", ERR_CONTAINER},
        {"Docker daemon", ERR_CONTAINER},
        {"unauthorized", ERR_AUTH},
        {"authentication required", ERR_AUTH},
        {"access denied", ERR_AUTH},
        {"no space left", ERR_DISK},
        {"quota exceeded", ERR_DISK},
        {"connection refused", ERR_NET},
        {"imeout", ERR_NET},
        {"deadline exceeded", ERR_NET},
        {"imed out", ERR_NET},
        {"connection reset", ERR_NET},
        {"no route to host", ERR_NET},
        {"unreachable", ERR_NET},
        {"no such host", ERR_NET},
        {"EOF", ERR_NET},
    };
    for (size_t idx = 0; idx < ARRAY_LEN(CAUSES); idx++) {
        if (str_find(output, str_of(CAUSES[idx].words)) >= 0) {
            return CAUSES[idx].code;
        }
    }
    return ERR_CONTAINER;
}

static int fail_output(const char *what, struct str output, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct str line = said_last(output);
    return err_set(err, node_image_cause(output), "%s: %s", what,
                   line.len ? said_shown(&arena, line) : "it says nothing");
}

static bool is_pinned_id(const struct provide *provide, struct str id)
{
    return (provide->config[0] && str_eq_z(id, provide->config)) ||
           (provide->manifest[0] && str_eq_z(id, provide->manifest));
}

int node_image_take(struct provide *provide, size_t node_idx, int exit_status, struct str output,
                    enum node_image_way way, struct err *err)
{
    struct node_image_node *node = &provide->report.nodes[node_idx];
    struct str rest = output, line, said = STR_EMPTY, id = STR_EMPTY;
    uint8_t sha256[SHA256_BYTES];
    struct err ignored = {0};
    if (exit_status != 0) {
        return fail_output(RUNTIME_KIND_NAMES[provide->kind], output, err);
    }
    while (str_next(&rest, '\n', &line)) {
        struct str parts = str_trim(line), first;
        if (str_next(&parts, ' ', &first) && parts.ptr &&
            oci_digest_parse(parts, sha256, &ignored) == 0) {
            said = first;
            id = parts;
        }
        ignored = (struct err){0};
    }
    if (!id.ptr) {
        return fail_output("the node gave no image id", output, err);
    }
    /* If only the digest is known, the engine has checked manifest and config against it. */
    if (!provide->files && (provide->config[0] || provide->manifest[0]) &&
        !is_pinned_id(provide, id)) {
        return err_set(err, ERR_INTEGRITY, "the engine has %.*s, the pin is %s", STR_ARG(id),
                       provide->config[0] ? provide->config : provide->manifest);
    }
    node->id = str_dup(provide->arena, id);
    node->way = str_eq_z(said, "there") ? NODE_IMAGE_THERE : way;
    return 0;
}

/* REGISTRY/NAME@sha256:..., or "" without a registry. */
static const char *registry_ref(struct provide *provide)
{
    const struct image_pins *pins = &provide->spec->pins;
    char digest[OCI_DIGEST_SIZE];
    if (!provide->fleet->inventory->registry.ptr) {
        return "";
    }
    oci_digest_text(pins->has_manifest ? pins->manifest : pins->digest, digest);
    return arena_printf(provide->arena, "%.*s/%.*s@%s",
                        STR_ARG(provide->fleet->inventory->registry),
                        STR_ARG(provide->spec->ref.path), digest);
}

/* A failed node keeps its error; those that have no image yet have no id either. */
static int take_all(struct provide *provide, const struct fleet_result *results)
{
    int n_failed = 0;
    for (size_t idx = 0; idx < provide->fleet->n_nodes; idx++) {
        struct fleet_node *node = &provide->fleet->nodes[idx];
        if (node->is_left_out) {
            continue;
        }
        if (node->err.code == ERR_NONE && results[idx].exit_status != STATUS_ABSENT) {
            (void)!node_image_take(provide, idx, results[idx].exit_status,
                                   strbuf_str(&results[idx].output), NODE_IMAGE_PULLED, &node->err);
        }
        n_failed += node->err.code != ERR_NONE;
    }
    return n_failed;
}

struct ask {
    struct provide *provide;
    const char *ref, *tries;
    struct fleet_result *results;
    bool *has_file; /* the node's folder is known */
};

/* Of apptainer and enroot: where the image's file is. */
static enum step find_file(const struct ask *ask, struct fleet_node *node, size_t node_idx,
                           struct err *err)
{
    struct provide *provide = ask->provide;
    const char *work = NULL;
    enum step step = STEP_DONE;
    if (!ask->has_file[node_idx] && provide->files) {
        step = node->remote->ops->work_folder(node->remote, &work, err);
        if (step == STEP_DONE) {
            provide->files[node_idx] =
                arena_printf(provide->arena, "%s/images/%s%s", work,
                             provide->report.image.digest.ptr + strlen("sha256:"),
                             provide->kind == RUNTIME_ENROOT ? ".sqsh" : ".sif");
        }
    }
    ask->has_file[node_idx] = step == STEP_DONE;
    return step;
}

static enum step step_ask(void *ctx, struct fleet_node *node, size_t node_idx, struct err *err)
{
    const struct ask *ask = ctx;
    const struct provide *provide = ask->provide;
    enum step step = find_file(ask, node, node_idx, err);
    if (step != STEP_DONE) {
        return step;
    }
    const char *const args[] = {RUNTIME_KIND_NAMES[provide->kind],
                                provide->config,
                                provide->manifest,
                                ask->ref,
                                ask->tries,
                                provide->files ? provide->files[node_idx] : "",
                                provide->report.image.digest.ptr,
                                NULL};
    const struct remote_exec exec = {.script = provide->files
                                                   ? embedded_body(EMBEDDED(find_image_sh)).ptr
                                                   : embedded_body(EMBEDDED(provide_image_sh)).ptr,
                                     .args = args,
                                     .output = &ask->results[node_idx].output,
                                     .deadline_ns = provide->deadline_ns};
    return node->remote->ops->exec(node->remote, &exec, &ask->results[node_idx].exit_status, err);
}

static int ask_or_pull(struct provide *provide, struct err *err)
{
    size_t n_nodes = provide->fleet->n_nodes;
    struct ask ask = {.provide = provide,
                      .ref = registry_ref(provide),
                      .tries = arena_printf(provide->arena, "%d", provide->n_tries),
                      .results = arena_array(provide->arena, struct fleet_result, n_nodes + 1),
                      .has_file = arena_array(provide->arena, bool, n_nodes + 1)};
    for (size_t idx = 0; idx < n_nodes; idx++) {
        ask.results[idx].exit_status = -1;
        strbuf_init(&ask.results[idx].output, OUTPUT_MAX);
    }
    int result = fleet_each(provide->fleet, 0, step_ask, &ask, err);
    if (result >= 0) {
        result = take_all(provide, ask.results);
    }
    for (size_t idx = 0; idx < n_nodes; idx++) {
        strbuf_release(&ask.results[idx].output);
    }
    return result;
}

static int choose_file(struct provide *provide, struct err *err)
{
    const char *file = NULL;
    for (size_t idx = 0; idx < provide->fleet->n_nodes; idx++) {
        const char *here = provide->report.nodes[idx].id.ptr ? provide->files[idx] : NULL;
        if (file && here && strcmp(file, here) != 0) {
            return err_set(err, ERR_CONTAINER,
                           "image %s: its file is %s on one node and %s on another: with runtime "
                           "%s all need the same work folder",
                           provide->spec->name, file, here, RUNTIME_KIND_NAMES[provide->kind]);
        }
        file = here ? here : file;
    }
    provide->report.image.file = str_of(file);
    return 0;
}

/* One name for all nodes: the plan and its journal say it once. */
static int choose_id(struct provide *provide, struct err *err)
{
    struct str id = STR_EMPTY;
    for (size_t idx = 0; idx < provide->fleet->n_nodes; idx++) {
        struct str here = provide->report.nodes[idx].id;
        if (!here.ptr) {
            continue; /* a failed node */
        }
        if (id.ptr && !str_eq(id, here)) {
            return err_set(err, ERR_CONTAINER,
                           "image %s: the nodes' engines name it differently: %.*s and %.*s",
                           provide->spec->name, STR_ARG(id), STR_ARG(here));
        }
        id = here;
    }
    provide->report.image.id = id;
    return provide->files ? choose_file(provide, err) : 0;
}

bool node_image_is_pinned(const struct image_pins *want, const struct image_pins *have)
{
    return (!want->has_digest || memcmp(want->digest, have->digest, SHA256_BYTES) == 0) &&
           (!want->has_manifest || memcmp(want->manifest, have->manifest, SHA256_BYTES) == 0) &&
           (!want->has_config || memcmp(want->config, have->config, SHA256_BYTES) == 0);
}

/* A digest alone does not tell the engine's id of the image; the store's manifest does. */
static void learn_ids(struct provide *provide)
{
    struct image_info info;
    struct err ignored = {0};
    if (provide->store &&
        image_open(provide->arena, provide->store, provide->spec->name, &info, &ignored) == 0 &&
        node_image_is_pinned(&provide->spec->pins, &info.pins)) {
        oci_digest_text(info.pins.config, provide->config);
        oci_digest_text(info.pins.manifest, provide->manifest);
    }
}

static int fail_unpinned(struct provide *provide, struct err *err)
{
    const char *name = provide->spec->name;
    struct str registry = provide->fleet->inventory->registry;
    const char *to = registry.ptr
                         ? arena_printf(provide->arena, "--push %.*s/%s", STR_ARG(registry), name)
                         : "--store";
    return provide->spec->is_local
               ? err_set(err, ERR_CONTAINER,
                         "image %s is built, not pulled: images/build.sh %s %s prints what "
                         "--image %s= takes",
                         name, name, to, name)
               : err_set(
                     err, ERR_CONTAINER,
                     "image %s is not pinned: no digest is known (reperf data lock image:%s, or "
                     "name it as NAME@sha256:HEX)",
                     name, name);
}

static int prepare(struct provide *provide, struct err *err)
{
    const struct image_pins *pins = &provide->spec->pins;
    char digest[OCI_DIGEST_SIZE];
    if (provide->kind == RUNTIME_NONE) {
        return err_set(err, ERR_CONTAINER, "runtime none has no images");
    }
    if (provide->kind == RUNTIME_APPTAINER || provide->kind == RUNTIME_ENROOT) {
        provide->files = arena_array(provide->arena, const char *, provide->fleet->n_nodes + 1);
    }
    if (!pins->has_digest && !pins->has_manifest) {
        return fail_unpinned(provide, err);
    }
    if (pins->has_config) {
        oci_digest_text(pins->config, provide->config);
    }
    if (pins->has_manifest) {
        oci_digest_text(pins->manifest, provide->manifest);
    }
    oci_digest_text(pins->has_manifest ? pins->manifest : pins->digest, digest);
    learn_ids(provide);
    provide->report.image = (struct runtime_image){
        .name = str_dup(provide->arena, provide->spec->ref.path),
        .digest = str_of(arena_strndup(provide->arena, digest, strlen(digest)))};
    provide->report.nodes =
        arena_array(provide->arena, struct node_image_node, provide->fleet->n_nodes + 1);
    return 0;
}

int node_images_provide(struct arena *arena, struct fleet *fleet, const struct image_spec *spec,
                        const struct node_image_opts *opts, struct node_image_report *ret_report,
                        struct err *err)
{
    struct provide provide = {.arena = arena,
                              .fleet = fleet,
                              .store = opts->store,
                              .kind = opts->kind,
                              .spec = spec,
                              .deadline_ns =
                                  opts->deadline_ns ? opts->deadline_ns : NODE_IMAGE_DEADLINE_NS,
                              .n_tries = opts->n_tries ? opts->n_tries : NODE_IMAGE_TRIES};
    if (prepare(&provide, err) < 0) {
        return -1;
    }
    int n_failed = ask_or_pull(&provide, err);
    if (n_failed >= 0 && !fleet->inventory->registry.ptr) {
        n_failed = node_image_load(&provide, err);
    }
    if (n_failed < 0 || choose_id(&provide, err) < 0) {
        return -1;
    }
    *ret_report = provide.report;
    return n_failed;
}
