/* SPDX-License-Identifier: Apache-2.0 */
/* Which images a run's cases may use: those that are pinned, by `--image`, by a lock or by their description. */
#include "base/base.h"

#include "run/run_images.h"

#include "base/fs.h"
#include "store/image_spec.h"
#include "store/lock_file.h"

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
                       "--image %.100s: without a digest nobody knows what will run; expected "
                       "ID=NAME@sha256:DIGEST",
                       text);
    }
    *ret_image =
        (struct plan_image){.id = str_dup(arena, (struct str){text, (size_t)(equals - text)}),
                            .name = str_of(oci_ref_name(arena, &ref)),
                            .digest = digest_text(arena, ref.sha256)};
    return 0;
}

static bool has_image(const struct plan_image *images, size_t n, struct str id)
{
    for (size_t idx = 0; idx < n; idx++) {
        if (str_eq(images[idx].id, id)) {
            return true;
        }
    }
    return false;
}

/* False where it is not pinned, or not described here. */
static int read_pinned(struct arena *arena, const char *root, struct str id,
                       struct plan_image *ret_image, bool *ret_is_pinned, struct err *err)
{
    struct image_spec spec;
    bool is_locked = false;
    const char *path = arena_printf(arena, "%s/images/%s/image.json", root, id.ptr);
    *ret_is_pinned = false;
    if (!fs_exists(path)) {
        return 0;
    }
    if (image_spec_load(arena, root, lock_folder(arena, root, NULL), id.ptr, &spec, &is_locked,
                        err) < 0) {
        return -1;
    }
    if (spec.pins.has_manifest || spec.pins.has_digest) {
        *ret_image = (struct plan_image){
            .id = id,
            .name = str_of(oci_ref_name(arena, &spec.ref)),
            .digest =
                digest_text(arena, spec.pins.has_manifest ? spec.pins.manifest : spec.pins.digest),
            .config = spec.pins.has_config ? digest_text(arena, spec.pins.config) : STR_EMPTY};
        *ret_is_pinned = true;
    }
    return 0;
}

/* One that no case could use was meant for another. */
static int check_known(const struct report *report, struct str id, struct err *err)
{
    if (str_eq_z(id, RUN_IMAGE_SMOKE)) {
        return 0;
    }
    for (size_t idx = 0; idx < report->n_stacks; idx++) {
        if (report->stacks[idx].image.ptr && str_eq(report->stacks[idx].image, id)) {
            return 0;
        }
    }
    return err_set(err, ERR_USAGE,
                   "--image %.*s: no case of %.*s runs in that image; under the smoke profile all "
                   "run in %s",
                   STR_ARG(str_sub(id, 0, 100)), STR_ARG(report->id), RUN_IMAGE_SMOKE);
}

int run_images(struct arena *arena, const char *root, const struct report *report,
               const char *const *given, size_t n_given, struct plan_image **ret_images,
               size_t *ret_n, struct err *err)
{
    struct plan_image *images =
        arena_array(arena, struct plan_image, n_given + report->n_stacks + 1);
    size_t n = 0;
    for (size_t idx = 0; idx < n_given; idx++) {
        if (read_given(arena, given[idx], &images[n], err) < 0) {
            return -1;
        }
        if (has_image(images, n, images[n].id)) {
            return err_set(err, ERR_USAGE, "--image: %s is named twice", images[n].id.ptr);
        }
        if (check_known(report, images[n].id, err) < 0) {
            return -1;
        }
        n++;
    }
    for (size_t idx = 0; idx <= report->n_stacks; idx++) {
        struct str id =
            idx < report->n_stacks ? report->stacks[idx].image : STR_LIT(RUN_IMAGE_SMOKE);
        bool is_pinned = false;
        if (!id.ptr || has_image(images, n, id)) {
            continue;
        }
        if (read_pinned(arena, root, id, &images[n], &is_pinned, err) < 0) {
            return -1;
        }
        n += is_pinned;
    }
    *ret_images = images;
    *ret_n = n;
    return 0;
}
