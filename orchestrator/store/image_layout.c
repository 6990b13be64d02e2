/* SPDX-License-Identifier: Apache-2.0 */
/* An image from what the user has kept: an OCI layout, as a folder or in a tar, or a tar that `docker save` wrote, which
   skopeo reads. docker packs the layers anew, so that the manifest is another one: an image whose config is the pinned one is
   the same image, since its config contains the digests of its layers. */
#include "base/base.h"

#include "store/image_impl.h"

#include "base/temp.h"
#include "store/skopeo.h"
#include "store/unpack_tree.h"

struct layout {
    struct arena *arena;
    struct store *store;
    const struct image_spec *spec;
    const char *folder;
    struct image_place place; /* its name is what the user named */
};

/* The pins decide; without any, the name in the layout, or its only image. */
static bool is_wanted(const struct layout *layout, struct str name, const struct image_info *info,
                      bool is_only)
{
    const struct image_spec *spec = layout->spec;
    const struct image_pins *pins = &spec->pins;
    if (pins->has_config || pins->has_digest || pins->has_manifest) {
        return image_check_pins(pins, &info->pins, layout->place.name, ERR_IGNORED) == 0;
    }
    return is_only || str_eq_z(name, spec->name) ||
           (spec->ref.tag.ptr && str_eq(name, spec->ref.tag)) ||
           str_eq_z(name, oci_ref_text(layout->arena, &spec->ref));
}

/* Adds a blob to the store under the digest that it claims. */
static int take_blob(struct layout *layout, const struct oci_descriptor *blob, struct err *err)
{
    struct digest_value value;
    const char *path =
        fs_join(layout->arena, layout->place.blob_folder, sha256_hex_of(blob->sha256).text);
    if (image_has_blob(layout->store, blob)) {
        return 0;
    }
    if (store_add_file(layout->store, path, NULL, &value, err) < 0) {
        return err_wrap(err, "%s", layout->place.name);
    }
    return memcmp(value.sha256, blob->sha256, SHA256_BYTES) == 0 &&
                   value.size_bytes == blob->size_bytes
               ? 0
               : err_set(err, ERR_INTEGRITY, "%s: other bytes than its name says", path);
}

static int from_oci(struct layout *layout, struct image_info *ret_info, struct err *err)
{
    const char *path = fs_join(layout->arena, layout->folder, "index.json");
    struct oci_manifest index;
    struct str text;
    layout->place.blob_folder = fs_join(layout->arena, layout->folder, "blobs/sha256");
    if (fs_read(layout->arena, path, OCI_MANIFEST_BYTES_MAX, &text, err) < 0 ||
        oci_manifest_parse(layout->arena, text, path, &index, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < index.n_manifests; idx++) {
        const struct oci_descriptor *entry = &index.manifests[idx];
        struct err why = {0};
        if (image_read(layout->arena, &layout->place, entry->sha256, ret_info, &why) < 0) {
            if (why.code == ERR_INTEGRITY || index.n_manifests == 1) {
                return err_pass(err, &why);
            }
            continue; /* another's: no image, or of another platform */
        }
        if (is_wanted(layout, entry->ref_name, ret_info, index.n_manifests == 1)) {
            return 0;
        }
    }
    return err_set(err, ERR_NOT_FOUND, "%s: none of its %zu images is the wanted one",
                   layout->place.name, index.n_manifests);
}

/* The image of the wanted name, or the only one, into a folder of skopeo's own form "dir": manifest.json, and each blob under
   its digest. Layers are packed, because the manifest says so whatever an archive has. */
static int from_save(struct layout *layout, struct image_info *ret_info, struct err *err)
{
    struct arena *arena = layout->arena;
    const struct registry here = {.clock = clock_system(),
                                  .tmp_folder = store_path(layout->store, "tmp")};
    const char *archive = arena_printf(arena, "docker-archive:%s", layout->place.name);
    const char *named =
        arena_printf(arena, "%s:%s", archive, oci_ref_text(arena, &layout->spec->ref));
    layout->place.blob_folder = fs_join(arena, layout->folder, "dir");
    const char *to = arena_printf(arena, "dir:%s", layout->place.blob_folder);
    const struct skopeo_call calls[] = {
        {.args = SKOPEO_ARGS("copy", "--quiet", "--dest-compress", named, to)},
        {.args = SKOPEO_ARGS("copy", "--quiet", "--dest-compress", archive, to)}};
    if (strchr(layout->place.name, ':')) {
        return err_set(err, ERR_USAGE, "%s: skopeo reads no path with a colon", layout->place.name);
    }
    if (((!layout->spec->ref.tag.ptr || skopeo_run(arena, &here, &calls[0], ERR_IGNORED) < 0) &&
         skopeo_run(arena, &here, &calls[1], err) < 0) ||
        image_read(arena, &layout->place, NULL, ret_info, err) < 0) {
        return -1;
    }
    return is_wanted(layout, STR_EMPTY, ret_info, true)
               ? 0
               : err_set(err, ERR_NOT_FOUND, "%s: its image has the id %s, which no lock pins",
                         layout->place.name, oci_digest_of(ret_info->pins.config).text);
}

static int from_layout(struct layout *layout, bool is_tar, struct image_info *ret_info,
                       struct err *err)
{
    if (fs_exists(fs_join(layout->arena, layout->folder, "oci-layout"))) {
        return from_oci(layout, ret_info, err);
    }
    return is_tar && fs_exists(fs_join(layout->arena, layout->folder, "manifest.json"))
               ? from_save(layout, ret_info, err)
               : err_set(err, ERR_USAGE,
                         "%s: neither an OCI layout (oci-layout) nor a tar that docker save wrote "
                         "(manifest.json)",
                         layout->place.name);
}

int image_from_layout(struct arena *arena, struct store *store, const struct image_spec *spec,
                      const char *path, struct image_info *ret_info, struct err *err)
{
    CLEANUP(temp) struct temp *unpacked = NULL;
    struct layout layout = {
        .arena = arena, .store = store, .spec = spec, .folder = path, .place = {.name = path}};
    if (!fs_exists(path)) {
        return err_set(err, ERR_USAGE, "%s: no such folder or file", path);
    }
    if (!fs_is_dir(path)) {
        struct unpack_tree_result result;
        if (temp_folder(store_path(store, "tmp/"), &unpacked, err) < 0) {
            return -1;
        }
        const struct unpack_tree_opts opts = {
            .archive = path, .into = unpacked->path, .size_bytes = -1};
        if (unpack_tree(arena, &opts, &result, err) < 0) {
            return -1;
        }
        layout.folder = unpacked->path;
    }
    int result = from_layout(&layout, unpacked, ret_info, err);
    result = result < 0 ? -1 : take_blob(&layout, &ret_info->manifest.config, err);
    for (size_t idx = 0; result == 0 && idx < ret_info->manifest.n_layers; idx++) {
        result = take_blob(&layout, &ret_info->manifest.layers[idx], err);
    }
    if (result < 0 && (err->code == ERR_MANIFEST || err->code == ERR_PARSE)) {
        err->code = ERR_FETCH;
    }
    return result;
}
