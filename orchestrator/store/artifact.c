/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/artifact.h"

#include "base/fs.h"
#include "base/nearest.h"
#include "codec/oci_ref.h"
#include "load/load.h"
#include "load/places.h"
#include "report/dataset.h"
#include "report/source.h"

#define NAMES_MAX   4096
#define LOGS_PREFIX "logs:"

const char *const ARTIFACT_KIND_NAMES[] = {
    [ARTIFACT_DATASET] = "dataset",
    [ARTIFACT_IMAGE] = "image",
    [ARTIFACT_SOURCE] = "source",
    [ARTIFACT_REPORT] = "report",
};

char *artifact_text(struct arena *arena, const struct artifact *artifact)
{
    return arena_printf(arena, "%s:%.*s%s", ARTIFACT_KIND_NAMES[artifact->kind],
                        STR_ARG(artifact->name),
                        artifact->is_synthetic ? DATASET_SYNTHETIC_SUFFIX : "");
}

/* The program's and the user's. */
static const struct placed_list *reports_of(struct arena *arena, const char *root)
{
    struct placed_list *list = arena_new(arena, struct placed_list);
    if (places_list(arena, root, "reports", REPORTS_MAX, list, ERR_IGNORED) < 0) {
        *list = (struct placed_list){0}; /* load_report says why */
    }
    return list;
}

/* Where the user's and the program's lie, and what each folder has. */
static const char *const PLACES[ARTIFACT_KINDS][2] = {
    [ARTIFACT_DATASET] = {"datasets", "dataset.json"}, [ARTIFACT_IMAGE] = {"images", "image.json"}};

static bool is_there(struct arena *arena, const char *root, enum artifact_kind kind,
                     struct str name)
{
    return is_slug(name) &&
           (PLACES[kind][0]
                ? fs_exists(
                      places_path(arena, root, PLACES[kind][0],
                                  arena_printf(arena, "%.*s/%s", STR_ARG(name), PLACES[kind][1])))
                : kind == ARTIFACT_REPORT && placed_find(reports_of(arena, root), name));
}

/* False if there is none of that kind. */
static bool find_kind(struct arena *arena, const char *root, enum artifact_kind kind,
                      struct str name, struct artifact *ret_artifact)
{
    struct str stem = name;
    bool is_synthetic =
        kind == ARTIFACT_DATASET && str_ends(name, STR_LIT(DATASET_SYNTHETIC_SUFFIX));
    if (is_synthetic) {
        stem = str_sub(name, 0, name.len - (sizeof(DATASET_SYNTHETIC_SUFFIX) - 1));
    }
    if (!is_there(arena, root, kind, stem)) {
        return false;
    }
    *ret_artifact = (struct artifact){kind, str_dup(arena, stem), is_synthetic};
    return true;
}

static int resolve_source(struct arena *arena, struct str name, struct artifact *ret_artifact,
                          struct err *err)
{
    struct source_name parts;
    if (source_parse_name(arena, name, &parts, err) < 0) {
        return -1;
    }
    const char *pin = parts.commit ? parts.commit : parts.ref;
    *ret_artifact =
        (struct artifact){ARTIFACT_SOURCE,
                          str_printf(arena, "%s@%s%s%s", parts.url, pin, parts.paths ? ":" : "",
                                     parts.paths ? parts.paths : ""),
                          false};
    return 0;
}

/* logs:REPORT: the repository of its logs, at its commit. */
static int resolve_logs(struct arena *arena, const char *root, struct str report,
                        struct artifact *ret_artifact, struct err *err)
{
    struct report r = {0};
    const struct source_ref *logs = &r.logs_source;
    if (load_report(arena, root, str_z(arena, report), &r, err) < 0) {
        return -1;
    }
    if (!logs->repository.len || !logs->commit.len) {
        return err_set(err, ERR_MANIFEST, "%.*s names no repository and commit for its logs",
                       STR_ARG(r.id));
    }
    return resolve_source(
        arena, str_printf(arena, "%.*s@%.*s", STR_ARG(logs->repository), STR_ARG(logs->commit)),
        ret_artifact, err);
}

/* image:HOST/NAME@sha256:HEX: an image that no image.json describes. */
static int resolve_reference(struct arena *arena, struct str name, struct artifact *ret_artifact,
                             struct err *err)
{
    struct oci_ref ref;
    if (oci_ref_parse(arena, name, &ref, err) < 0) {
        return -1;
    }
    if (!ref.tag.ptr && !ref.has_digest) {
        return err_set(err, ERR_USAGE,
                       "image:%.*s: expected the id of an image, or NAME@sha256:HEX, or NAME:TAG",
                       (int)(name.len < 200 ? name.len : 200), name.ptr);
    }
    *ret_artifact = (struct artifact){ARTIFACT_IMAGE, str_of(oci_ref_text(arena, &ref)), false};
    return 0;
}

/* Names that are like it, of that kind or, with ARTIFACT_KINDS, of any. */
static const char *near_text(struct arena *arena, const char *root, enum artifact_kind kind,
                             const char *name)
{
    struct nearest nearest = nearest_to(name);
    const struct placed_list *reports = reports_of(arena, root);
    for (size_t idx = 0; (kind == ARTIFACT_KINDS || kind == ARTIFACT_REPORT) && idx < reports->n;
         idx++) {
        nearest_offer(&nearest, reports->items[idx].stem);
    }
    for (size_t idx = 0; idx < ARTIFACT_KINDS; idx++) {
        struct fs_names names = {0};
        if (!PLACES[idx][0] || (kind != ARTIFACT_KINDS && kind != idx) ||
            places_names(arena, root, PLACES[idx][0], &names, ERR_IGNORED) < 0) {
            continue;
        }
        for (size_t at = 0; at < names.n; at++) {
            nearest_offer(&nearest, names.items[at]);
        }
    }
    return nearest_text(&nearest, arena_array(arena, char, NEAREST_TEXT_MAX));
}

int artifact_resolve(struct arena *arena, const char *root, const char *name,
                     struct artifact *ret_artifact, struct err *err)
{
    static const enum artifact_kind ORDER[] = {ARTIFACT_DATASET, ARTIFACT_IMAGE, ARTIFACT_REPORT};
    struct artifact found = {0};
    size_t n_found = 0;
    if (str_starts(str_of(name), STR_LIT(LOGS_PREFIX))) {
        return resolve_logs(arena, root, str_sub(str_of(name), sizeof(LOGS_PREFIX) - 1, SIZE_MAX),
                            ret_artifact, err);
    }
    for (size_t kind = 0; kind < ARTIFACT_KINDS; kind++) {
        struct str prefix = str_printf(arena, "%s:", ARTIFACT_KIND_NAMES[kind]);
        struct str rest = str_sub(str_of(name), prefix.len, SIZE_MAX);
        if (!str_starts(str_of(name), prefix)) {
            continue;
        }
        if (kind == ARTIFACT_SOURCE) {
            return resolve_source(arena, rest, ret_artifact, err);
        }
        if (kind == ARTIFACT_IMAGE && !is_slug(rest)) {
            return resolve_reference(arena, rest, ret_artifact, err);
        }
        return find_kind(arena, root, (enum artifact_kind)kind, rest, ret_artifact)
                   ? 0
                   : err_set(err, ERR_USAGE, "no %s \"%.*s\"%s; reperf list %ss names them",
                             ARTIFACT_KIND_NAMES[kind], (int)(rest.len < 200 ? rest.len : 200),
                             rest.ptr, near_text(arena, root, (enum artifact_kind)kind, rest.ptr),
                             ARTIFACT_KIND_NAMES[kind]);
    }
    for (size_t idx = 0; idx < ARRAY_LEN(ORDER); idx++) {
        struct artifact artifact;
        if (find_kind(arena, root, ORDER[idx], str_of(name), &artifact)) {
            if (n_found++ > 0) {
                return err_set(err, ERR_USAGE,
                               "\"%.100s\" is a %s and a %s: say %s:%.100s or %s:%.100s", name,
                               ARTIFACT_KIND_NAMES[found.kind], ARTIFACT_KIND_NAMES[artifact.kind],
                               ARTIFACT_KIND_NAMES[found.kind], name,
                               ARTIFACT_KIND_NAMES[artifact.kind], name);
            }
            found = artifact;
        }
    }
    if (n_found == 0) {
        return err_set(err, ERR_USAGE,
                       "\"%.200s\" is not a dataset, image or report (reperf list names them), nor "
                       "logs:REPORT or source:URL@COMMIT%s",
                       name, near_text(arena, root, ARTIFACT_KINDS, name));
    }
    *ret_artifact = found;
    return 0;
}

/* ---- what a report needs ---- */

static int compare_artifacts(const void *a, const void *b)
{
    const struct artifact *one = a;
    const struct artifact *other = b;
    return one->kind != other->kind ? (int)one->kind - (int)other->kind
                                    : str_cmp(one->name, other->name);
}

static int add_once(struct artifacts *artifacts, struct artifact artifact, struct err *err)
{
    for (size_t idx = 0; idx < artifacts->n; idx++) {
        if (compare_artifacts(&artifacts->items[idx], &artifact) == 0 &&
            artifacts->items[idx].is_synthetic == artifact.is_synthetic) {
            return 0;
        }
    }
    if (artifacts->n == NAMES_MAX) {
        return err_set(err, ERR_USAGE, "more than %d datasets, images and sources at once",
                       NAMES_MAX);
    }
    artifacts->items[artifacts->n++] = artifact;
    return 0;
}

static int add_source(struct arena *arena, struct artifacts *artifacts, struct str repository,
                      struct str pin, struct err *err)
{
    const char *name = arena_printf(arena, "%.*s@%.*s", STR_ARG(repository), STR_ARG(pin));
    return add_once(artifacts, (struct artifact){.kind = ARTIFACT_SOURCE, .name = str_of(name)},
                    err);
}

/* In addition to the stack's own: sources that its recipes name by commit. */
static int add_recipes(struct arena *arena, struct artifacts *artifacts,
                       const struct recipes *recipes, struct err *err)
{
    for (size_t idx = 0; idx < recipes->n; idx++) {
        const struct recipe *recipe = &recipes->items[idx];
        for (size_t at = 0; at < recipe->n_mounts; at++) {
            const struct recipe_mount *mount = &recipe->mounts[at];
            struct str pin = mount->commit;
            if (mount->paths.ptr) {
                pin = str_printf(arena, "%.*s:%.*s", STR_ARG(pin), STR_ARG(mount->paths));
            }
            if (mount->commit.ptr && add_source(arena, artifacts, mount->name, pin, err) < 0) {
                return -1;
            }
        }
    }
    return 0;
}

/* Those that its full recipes mount: what they are made from is fetched with them. */
static int add_data(struct artifacts *artifacts, const struct recipes *recipes, bool is_synthetic,
                    struct err *err)
{
    for (size_t idx = 0; idx < recipes->n; idx++) {
        const struct recipe *recipe = &recipes->items[idx];
        for (size_t at = 0; at < recipe->n_mounts; at++) {
            const struct recipe_mount *mount = &recipe->mounts[at];
            if (mount->kind == MOUNT_DATASET &&
                add_once(artifacts,
                         (struct artifact){ARTIFACT_DATASET, mount->name,
                                           is_synthetic && !mount->is_original},
                         err) < 0) {
                return -1;
            }
        }
    }
    return 0;
}

/* Those that its full recipes run in; without one, the report's own. */
static int add_images(struct artifacts *artifacts, const struct stack *stack, struct err *err)
{
    size_t n = 0;
    for (size_t idx = 0; idx < stack->full.n; idx++) {
        struct str image = stack->full.items[idx].image;
        if (image.ptr &&
            add_once(artifacts, (struct artifact){.kind = ARTIFACT_IMAGE, .name = image}, err) <
                0) {
            return -1;
        }
        n += image.ptr != NULL;
    }
    return n || !stack->image.ptr
               ? 0
               : add_once(artifacts,
                          (struct artifact){.kind = ARTIFACT_IMAGE, .name = stack->image}, err);
}

static int add_report(struct arena *arena, const char *root, struct str report, bool is_synthetic,
                      struct artifacts *artifacts, struct err *err)
{
    const size_t first = artifacts->n;
    struct report r = {0};
    if (load_report(arena, root, str_z(arena, report), &r, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < r.n_stacks; idx++) {
        const struct stack *stack = &r.stacks[idx];
        if (stack->dataset.ptr && !str_eq_z(stack->dataset, "synthetic") &&
            add_once(artifacts, (struct artifact){ARTIFACT_DATASET, stack->dataset, is_synthetic},
                     err) < 0) {
            return -1;
        }
        if (add_images(artifacts, stack, err) < 0) {
            return -1;
        }
        for (size_t src = 0; src < stack->n_sources; src++) {
            const struct pin_source *source = &stack->sources[src];
            struct str pin = source->commit.ptr ? source->commit : source->ref;
            if (pin.ptr && add_source(arena, artifacts, source->repository, pin, err) < 0) {
                return -1;
            }
        }
        if (add_recipes(arena, artifacts, &stack->smoke, err) < 0 ||
            add_recipes(arena, artifacts, &stack->full, err) < 0 ||
            add_data(artifacts, &stack->full, is_synthetic, err) < 0) {
            return -1;
        }
    }
    qsort(artifacts->items + first, artifacts->n - first, sizeof(artifacts->items[0]),
          compare_artifacts);
    return 0;
}

int artifacts_of(struct arena *arena, const char *root, const struct opt_list *names,
                 bool is_synthetic, struct artifacts *ret_artifacts, struct err *err)
{
    struct artifacts all = {arena_array(arena, struct artifact, NAMES_MAX), 0};
    for (size_t idx = 0; idx < names->n; idx++) {
        struct artifact one;
        if (artifact_resolve(arena, root, names->items[idx], &one, err) < 0) {
            return -1;
        }
        if (one.kind == ARTIFACT_REPORT) {
            if (add_report(arena, root, one.name, is_synthetic, &all, err) < 0) {
                return -1;
            }
            continue;
        }
        if (is_synthetic && one.kind != ARTIFACT_DATASET) {
            return err_set(err, ERR_USAGE,
                           "--synthetic: only datasets have a synthetic version, and %s is %s",
                           names->items[idx], ARTIFACT_KIND_NAMES[one.kind]);
        }
        one.is_synthetic |= is_synthetic;
        if (add_once(&all, one, err) < 0) {
            return -1;
        }
    }
    *ret_artifacts = all;
    return 0;
}
