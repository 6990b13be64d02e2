/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "fleet/node_image.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/embed.h"
#include "base/str.h"
#include "fleet/stage.h"
#include "store/image_store.h"

#define OUTPUT_MAX    (64u << 10)
#define STATUS_ABSENT 3
#define RM_NS         (60 * NS_PER_S)
#define ARGS_MAX      6
#define PULL_TRIES    "3" /* where the network broke it */

struct provide {
    struct arena *arena;
    struct fleet *fleet;
    const struct store *store;
    enum runtime_kind kind;
    const struct image_spec *spec;
    int64_t deadline_ns;
    char config[OCI_DIGEST_SIZE], manifest[OCI_DIGEST_SIZE]; /* "" where not known */
    struct image_info info; /* the store's, where it is loaded from there */
    struct node_image_report report;
};

EMBED(provide_image_sh, "orchestrator/fleet/provide_image.sh");

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
    struct str line = quote_last_line(output);
    return err_set(err, node_image_cause(output), "%s: %s", what,
                   line.len ? quote_shown(&arena, line) : "it says nothing");
}

static bool is_pinned_id(const struct provide *provide, struct str id)
{
    return (provide->config[0] && str_eq_z(id, provide->config)) ||
           (provide->manifest[0] && str_eq_z(id, provide->manifest));
}

/* The answer of a script to what it was asked: its id into the report. way is what the script did if it did anything. */
static int take_answer(struct provide *provide, size_t node_idx, int exit_status, struct str output,
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
    if ((provide->config[0] || provide->manifest[0]) && !is_pinned_id(provide, id)) {
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

/* ---- the same script on each node ---- */

struct image_round {
    struct provide *provide;
    const char *script;
    const char *args[ARGS_MAX]; /* ended by NULL */
    size_t file_at;             /* which of them is each node's own */
    const char **files;         /* NULL: it has none */
    int64_t deadline_ns;
    int *statuses;
    struct strbuf *outputs;
};

static enum step step_round(void *ctx, struct fleet_node *node, size_t node_idx, struct err *err)
{
    const struct image_round *round = ctx;
    const char *args[ARGS_MAX];
    memcpy(args, round->args, sizeof(args));
    if (round->files) {
        args[round->file_at] = round->files[node_idx];
    }
    const struct remote_exec exec = {.script = round->script,
                                     .args = args,
                                     .output = &round->outputs[node_idx],
                                     .deadline_ns = round->deadline_ns};
    return node->remote->ops->exec(node->remote, &exec, &round->statuses[node_idx], err);
}

/* A node that fails has its error; one that does not have the image, and was not given it, has no id either. */
static int run_round(struct image_round *round, enum node_image_way way, struct err *err)
{
    struct provide *provide = round->provide;
    size_t n = provide->fleet->n_nodes;
    round->statuses = arena_array(provide->arena, int, n + 1);
    round->outputs = arena_array(provide->arena, struct strbuf, n + 1);
    for (size_t idx = 0; idx < n; idx++) {
        strbuf_init(&round->outputs[idx], OUTPUT_MAX);
    }
    int result = fleet_each(provide->fleet, 0, step_round, round, err);
    for (size_t idx = 0; idx < n; idx++) {
        struct fleet_node *node = &provide->fleet->nodes[idx];
        if (result >= 0 && !node->is_left_out && node->err.code == ERR_NONE &&
            round->statuses[idx] != STATUS_ABSENT) {
            (void)!take_answer(provide, idx, round->statuses[idx], strbuf_str(&round->outputs[idx]),
                               way, &node->err);
        }
        strbuf_release(&round->outputs[idx]);
    }
    return result < 0 ? -1 : 0;
}

static int ask_or_pull(struct provide *provide, struct err *err)
{
    struct image_round round = {.provide = provide,
                                .script = embedded_body(EMBEDDED(provide_image_sh)).ptr,
                                .args = {RUNTIME_KIND_NAMES[provide->kind], provide->config,
                                         provide->manifest, registry_ref(provide), PULL_TRIES},
                                .deadline_ns = provide->deadline_ns};
    return run_round(&round, NODE_IMAGE_PULLED, err);
}

/* ---- from the store: one tar, passed on by fleet/stage, given to each node's engine ---- */

/* $1 engine, $2 tar, $3 and $4 the ids that it may be known by afterwards. */
static const char LOAD[] =
    "out=$(\"$1\" load --input \"$2\" 2>&1) || { printf '%s\\n' \"$out\" | tail -n 3; exit 1; }\n"
    "for name in \"$3\" \"$4\"; do\n"
    "  [ -n \"$name\" ] || continue\n"
    "  id=$(\"$1\" image inspect --format '{{.Id}}' \"$name\" 2>/dev/null) || continue\n"
    "  case $id in sha256:*) echo \"loaded $id\" ;; *) echo \"loaded sha256:$id\" ;; esac\n"
    "  exit 0\n"
    "done\n"
    "echo \"the image was loaded and is not known by its id: manifest verification failed\"\n"
    "exit 1\n";

static bool is_pinned(const struct image_pins *want, const struct image_pins *have)
{
    return (!want->has_digest || memcmp(want->digest, have->digest, SHA256_BYTES) == 0) &&
           (!want->has_manifest || memcmp(want->manifest, have->manifest, SHA256_BYTES) == 0) &&
           (!want->has_config || memcmp(want->config, have->config, SHA256_BYTES) == 0);
}

static int open_image(struct provide *provide, struct err *err)
{
    const struct image_pins *have = &provide->info.pins;
    if (!provide->store) {
        return err_set(err, ERR_NOT_FOUND, "image %s: no registry and no store to take it from",
                       provide->spec->name);
    }
    if (image_open(provide->arena, provide->store, provide->spec->name, &provide->info, err) < 0) {
        return err_wrap(err, "the nodes lack image %s (reperf data fetch image:%s gets it here)",
                        provide->spec->name, provide->spec->name);
    }
    if (!is_pinned(&provide->spec->pins, have)) {
        return err_set(err, ERR_INTEGRITY, "image %s: the store has another than the pinned one",
                       provide->spec->name);
    }
    oci_digest_text(have->config, provide->config);
    oci_digest_text(have->manifest, provide->manifest);
    return 0;
}

/* Those that failed or have the image are left out of what follows. Returns how many are not. */
static size_t leave_out(struct provide *provide)
{
    size_t n = 0;
    for (size_t idx = 0; idx < provide->fleet->n_nodes; idx++) {
        struct fleet_node *node = &provide->fleet->nodes[idx];
        node->is_left_out |= node->err.code != ERR_NONE || provide->report.nodes[idx].id.ptr;
        n += !node->is_left_out;
    }
    return n;
}

/* The tar's path on each node. */
static int stage_tar(struct provide *provide, const char *path, const char **tars, struct err *err)
{
    struct digest_value value;
    struct stage_report report;
    struct stat info;
    if (image_export(provide->arena, provide->store, &provide->info, path, err) < 0 ||
        digest_file(path, DIGEST_SHA256, &value, err) < 0) {
        return -1;
    }
    if (stat(path, &info) < 0) {
        return err_set(err, ERR_IO, "%s: gone", path);
    }
    const struct hex hex = sha256_hex_of(value.sha256);
    const struct stage_item item = {.kind = STAGE_FILE,
                                    .source = path,
                                    .target =
                                        arena_printf(provide->arena, "images/%s.tar", hex.text),
                                    .sha256_hex = str_printf(provide->arena, "%s", hex.text)};
    const struct stage_opts opts = {.clock = provide->fleet->loop->clock};
    if (stage_items(provide->arena, provide->fleet, &opts, (struct stage_list){&item, 1}, &report,
                    err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < provide->fleet->n_nodes; idx++) {
        tars[idx] = report.nodes[idx].paths[0];
    }
    provide->report.tar_bytes = (uint64_t)info.st_size;
    provide->report.head_bytes = report.head_bytes;
    return 0;
}

/* The tars are removed last, for all nodes: in a shared work folder the first node must not remove it from the others. */
static int load_nodes(struct provide *provide, const char *path, struct err *err)
{
    struct fleet_node *nodes = provide->fleet->nodes;
    size_t n = provide->fleet->n_nodes;
    const char **tars = arena_array(provide->arena, const char *, n + 1);
    struct err *errs = arena_array(provide->arena, struct err, n + 1);
    if (stage_tar(provide, path, tars, err) < 0) {
        return -1;
    }
    if (leave_out(provide) == 0) {
        return 0;
    }
    struct image_round load = {
        .provide = provide,
        .script = LOAD,
        .args = {RUNTIME_KIND_NAMES[provide->kind], "", provide->config, provide->manifest},
        .file_at = 1,
        .files = tars,
        .deadline_ns = provide->deadline_ns};
    struct image_round remove = {.provide = provide,
                                 .script = "rm -f \"$1\"; exit 3", /* STATUS_ABSENT: no answer */
                                 .args = {""},
                                 .files = tars,
                                 .deadline_ns = RM_NS};
    if (run_round(&load, NODE_IMAGE_LOADED, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < n; idx++) {
        errs[idx] = nodes[idx].err;
    }
    int result = run_round(&remove, NODE_IMAGE_LOADED, err);
    for (size_t idx = 0; idx < n; idx++) {
        nodes[idx].err = errs[idx];
    }
    return result;
}

static int load_all(struct provide *provide, struct err *err)
{
    struct fleet *fleet = provide->fleet;
    bool *was_left_out = arena_array(provide->arena, bool, fleet->n_nodes + 1);
    int result = 0;
    for (size_t idx = 0; idx < fleet->n_nodes; idx++) {
        was_left_out[idx] = fleet->nodes[idx].is_left_out;
    }
    if (leave_out(provide) > 0) {
        const char *tar =
            arena_printf(provide->arena, "%s/image-%ld.tar",
                         provide->store ? store_path(provide->store, "tmp") : "", (long)getpid());
        result = open_image(provide, err) < 0 ? -1 : load_nodes(provide, tar, err);
        (void)unlink(tar);
    }
    for (size_t idx = 0; idx < fleet->n_nodes; idx++) {
        fleet->nodes[idx].is_left_out = was_left_out[idx];
    }
    return result;
}

/* ---- the whole ---- */

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
    return 0;
}

/* A digest alone does not tell the engine's id of the image; the store's manifest does. */
static void learn_ids(struct provide *provide)
{
    struct image_info info;
    if (provide->store &&
        image_open(provide->arena, provide->store, provide->spec->name, &info, ERR_IGNORED) == 0 &&
        is_pinned(&provide->spec->pins, &info.pins)) {
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
        return err_set(err, ERR_CONTAINER, "runtime %s is untried: reperf brings it no images",
                       RUNTIME_KIND_NAMES[provide->kind]);
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
                                  opts->deadline_ns ? opts->deadline_ns : NODE_IMAGE_DEADLINE_NS};
    int n_failed = 0;
    if (prepare(&provide, err) < 0) {
        return -1;
    }
    if (ask_or_pull(&provide, err) < 0 ||
        (!fleet->inventory->registry.ptr && load_all(&provide, err) < 0) ||
        choose_id(&provide, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < fleet->n_nodes; idx++) {
        n_failed += !fleet->nodes[idx].is_left_out && fleet->nodes[idx].err.code != ERR_NONE;
    }
    *ret_report = provide.report;
    return n_failed;
}
