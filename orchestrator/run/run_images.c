/* SPDX-License-Identifier: Apache-2.0 */
/* The images that a run's cases name, and what pins them: `--image`, a lock or their description. */
#include "base/base.h"

#include "run/run_prepare.h"

#include "base/fs.h"
#include "load/places.h"
#include "store/image_store.h"

static struct str digest_text(struct arena *arena, const uint8_t *sha256)
{
    char text[OCI_DIGEST_SIZE];
    oci_digest_text(sha256, text);
    return str_dup(arena, str_of(text));
}

/* ID=NAME@sha256:HEX */
static int read_given(struct arena *arena, const char *text, struct plan_image *ret_image,
                      struct err *err)
{
    struct oci_ref ref;
    const char *equals = strchr(text, '=');
    if (!equals || equals == text) {
        return err_set(err, ERR_USAGE, "--image %.100s: expected ID=NAME@sha256:DIGEST", text);
    }
    if (oci_ref_parse(arena, str_of(equals + 1), &ref, err) < 0) {
        return err_wrap(err, "--image");
    }
    if (!ref.has_digest) {
        return err_set(err, ERR_USAGE,
                       "--image %.100s: without a digest it is unknown what will run; expected "
                       "ID=NAME@sha256:DIGEST",
                       text);
    }
    *ret_image =
        (struct plan_image){.id = str_dup(arena, (struct str){text, (size_t)(equals - text)}),
                            .name = str_of(oci_ref_name(arena, &ref)),
                            .digest = digest_text(arena, ref.sha256),
                            .is_given = true};
    return 0;
}

static bool has_image(const struct plan_image *images, size_t n, struct str id)
{
    return STR_NAMED(images, n, id, id) != NULL;
}

/* False where it is not described here. */
static int read_described(struct arena *arena, const char *root, struct str id,
                          struct plan_image *ret_image, bool *ret_is_described, struct err *err)
{
    struct image_spec spec;
    const char *name = arena_printf(arena, "%s/image.json", id.ptr);
    *ret_is_described = false;
    if (!fs_exists(places_path(arena, root, "images", name))) {
        return 0;
    }
    if (image_spec_load(arena, root, NULL, id.ptr, &spec, err) < 0) {
        return -1;
    }
    const char *folder = places_path(arena, root, "images", id.ptr);
    const char *own = arena_printf(arena, "%s/images/%s", root, id.ptr);
    const char *source = strcmp(folder, own) == 0 ? id.ptr : folder;
    *ret_image = (struct plan_image){.id = id,
                                     .name = str_of(oci_ref_name(arena, &spec.ref)),
                                     .is_built = spec.is_local,
                                     .cuda = spec.cuda,
                                     .instead = spec.instead,
                                     .n_instead = spec.n_instead,
                                     .source = str_of(source)};
    if (spec.pins.has_manifest || spec.pins.has_digest) {
        ret_image->digest =
            digest_text(arena, spec.pins.has_manifest ? spec.pins.manifest : spec.pins.digest);
        ret_image->config = spec.pins.has_config ? digest_text(arena, spec.pins.config) : STR_EMPTY;
    }
    *ret_is_described = true;
    return 0;
}

struct image_ids {
    struct str *items;
    size_t n;
};

static void add_id(struct image_ids *ids, struct str id)
{
    for (size_t idx = 0; idx < ids->n; idx++) {
        if (str_eq(ids->items[idx], id)) {
            return;
        }
    }
    if (id.ptr) {
        ids->items[ids->n++] = id;
    }
}

#define INSTEAD_MAX 8 /* as the reader of image.json takes */

/* What may stand instead, each described like the image itself. */
static int add_instead(struct arena *arena, const char *root, struct image_ids *ids,
                       struct err *err)
{
    for (size_t idx = 0, n = ids->n; idx < n; idx++) {
        struct plan_image image = {0};
        bool is_described = false;
        if (read_described(arena, root, ids->items[idx], &image, &is_described, err) < 0) {
            return -1;
        }
        for (size_t at = 0; at < image.n_instead; at++) {
            add_id(ids, image.instead[at]);
        }
    }
    return 0;
}

static void add_recipes(struct image_ids *ids, const struct recipes *recipes)
{
    for (size_t idx = 0; idx < recipes->n; idx++) {
        add_id(ids, recipes->items[idx].image);
    }
}

/* All that its stacks name, each once. */
static struct image_ids ids_of(struct arena *arena, const struct report *report)
{
    size_t n_max = 1;
    struct image_ids ids = {0};
    for (size_t idx = 0; idx < report->n_stacks; idx++) {
        n_max += 1 + report->stacks[idx].smoke.n + report->stacks[idx].full.n;
    }
    ids.items = arena_array(arena, struct str, n_max * (1 + INSTEAD_MAX));
    for (size_t idx = 0; idx < report->n_stacks; idx++) {
        add_id(&ids, report->stacks[idx].image);
        add_recipes(&ids, &report->stacks[idx].smoke);
        add_recipes(&ids, &report->stacks[idx].full);
    }
    return ids;
}

/* One that no case could use was meant for another. */
static int check_known(struct arena *arena, const struct report *report,
                       const struct image_ids *ids, struct str id, struct err *err)
{
    const char *known = "";
    for (size_t idx = 0; idx < ids->n; idx++) {
        if (str_eq(ids->items[idx], id)) {
            return 0;
        }
        known = arena_printf(arena, "%s%s%.*s", known, idx ? ", " : "", STR_ARG(ids->items[idx]));
    }
    return err_set(err, ERR_USAGE,
                   "--image %.*s: no case of %.*s runs in that image; its images are %s",
                   STR_ARG(str_sub(id, 0, 100)), STR_ARG(report->id), known);
}

int run_images(struct arena *arena, const struct run_opts *opts, const struct report *report,
               struct planner_opts *ret_plan, struct err *err)
{
    struct image_ids ids = ids_of(arena, report);
    if (add_instead(arena, opts->root, &ids, err) < 0) {
        return -1;
    }
    struct plan_image *images = arena_array(arena, struct plan_image, opts->n_images + ids.n + 1);
    size_t n = 0;
    for (size_t idx = 0; idx < opts->n_images; idx++) {
        if (read_given(arena, opts->images[idx], &images[n], err) < 0) {
            return -1;
        }
        if (has_image(images, n, images[n].id)) {
            return err_set(err, ERR_USAGE, "--image: %s is named twice", images[n].id.ptr);
        }
        if (check_known(arena, report, &ids, images[n].id, err) < 0) {
            return -1;
        }
        n++;
    }
    for (size_t idx = 0; idx < ids.n; idx++) {
        bool is_described = false;
        if (has_image(images, n, ids.items[idx])) {
            continue;
        }
        if (read_described(arena, opts->root, ids.items[idx], &images[n], &is_described, err) < 0) {
            return -1;
        }
        n += is_described;
    }
    ret_plan->images = images;
    ret_plan->n_images = n;
    return 0;
}
