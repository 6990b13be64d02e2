/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/image_store.h"

#include "load/places.h"
#include "report/wants.h"
#include "store/lock_file.h"

static int read_image(struct arena *arena, const char *root, const char *name,
                      struct image_spec *spec, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    const char *path =
        places_path(arena, root, "images", arena_printf(arena, "%s/image.json", name));
    struct image image;
    if (json_read_file(path, &doc, err) < 0 || image_decode(&doc.root, arena, &image, err) < 0) {
        return -1;
    }
    if (!str_eq_z(image.id, name)) {
        return err_set(err, ERR_MANIFEST,
                       "%s:$.id: expected \"%s\" as the folder is named, found "
                       "\"%s\"",
                       path, name, image.id.ptr);
    }
    spec->ref = image.ref;
    spec->has_fallback = image.has_fallback;
    spec->fallback = image.fallback;
    spec->replacement = image.replacement;
    spec->is_local = image.is_local;
    spec->cuda = image.cuda;
    spec->instead = image.instead;
    spec->n_instead = image.n_instead;
    return 0;
}

static int pin(const struct lock *lock, const char *item_name, bool *has, uint8_t *sha256,
               struct err *err)
{
    const struct lock_item *item = lock_find(lock, str_of(item_name));
    if (!item || !item->has_sha256) {
        return 0;
    }
    if (*has && memcmp(sha256, item->sha256, SHA256_BYTES) != 0) {
        return err_set(err, ERR_MANIFEST, "image %s: its lock has another %s than its description",
                       lock->id.ptr, item_name);
    }
    *has = true;
    memcpy(sha256, item->sha256, SHA256_BYTES);
    return 0;
}

int image_spec_load(struct arena *arena, const char *root, const char *locks, const char *name,
                    struct image_spec *ret_spec, struct err *err)
{
    struct image_spec spec = {.name = name, .bytes = -1};
    struct lock lock;
    bool is_id = !strpbrk(name, "/:@");
    if ((is_id ? read_image(arena, root, name, &spec, err)
               : oci_ref_parse(arena, str_of(name), &spec.ref, err)) < 0) {
        return -1;
    }
    spec.pins.has_digest = spec.ref.has_digest;
    memcpy(spec.pins.digest, spec.ref.sha256, SHA256_BYTES);
    locks = lock_folder(arena, root, locks, LOCK_IMAGE, name);
    if (lock_read(arena, locks, LOCK_IMAGE, name, &lock, err) < 0 ||
        pin(&lock, IMAGE_LOCK_DIGEST, &spec.pins.has_digest, spec.pins.digest, err) < 0 ||
        pin(&lock, IMAGE_LOCK_MANIFEST, &spec.pins.has_manifest, spec.pins.manifest, err) < 0 ||
        pin(&lock, IMAGE_LOCK_CONFIG, &spec.pins.has_config, spec.pins.config, err) < 0) {
        return -1;
    }
    const struct lock_item *layers = lock_find(&lock, STR_LIT(IMAGE_LOCK_LAYERS));
    spec.is_locked = lock.id.ptr;
    spec.bytes = layers ? layers->size_bytes : -1;
    *ret_spec = spec;
    return 0;
}

int image_spec_for_driver(struct arena *arena, const char *root, const char *name,
                          struct str driver, struct image_spec *ret_spec, struct err *err)
{
    struct image_spec spec;
    struct image_spec other;
    if (image_spec_load(arena, root, NULL, name, &spec, err) < 0) {
        return -1;
    }
    *ret_spec = spec;
    for (size_t idx = 0; !driver_runs_cuda(driver, ret_spec->cuda) && idx < spec.n_instead; idx++) {
        if (image_spec_load(arena, root, NULL, str_z(arena, spec.instead[idx]), &other, err) < 0) {
            return -1;
        }
        *ret_spec = driver_runs_cuda(driver, other.cuda) ? other : *ret_spec;
    }
    return 0;
}
