/* SPDX-License-Identifier: Apache-2.0 */
/* An image from what the user has kept: an OCI layout, as a folder or in a tar, or a tar that `docker save` wrote, which skopeo
   reads. docker packs the layers anew, so that the manifest is another one: an image whose config is the pinned one is the same image,
   since its config contains the digests of its layers. */
#include "base/base.h"

#include "store/image_impl.h"

#include "base/temp.h"
#include "store/skopeo.h"
#include "store/unpack_tree.h"

struct layout {
    struct arena *arena;
    struct store *store;
    const struct image_spec *spec;
    const char *folder, *blob_folder;
    const char *shown; /* what the user named */
};

static char *blob_path(struct layout *layout, const uint8_t *sha256)
{
    return fs_join(layout->arena, layout->blob_folder, sha256_hex_of(sha256).text);
}

static int read_doc(void *ctx, const struct oci_descriptor *entry, struct registry_doc *ret_doc,
                    struct err *err)
{
    struct layout *layout = ctx;
    struct registry_doc doc = {.content_type = entry->media_type};
    const char *path = blob_path(layout, entry->sha256);
    if (fs_read(layout->arena, path, OCI_MANIFEST_BYTES_MAX, &doc.text, err) < 0) {
        return -1;
    }
    sha256_of(doc.text, doc.sha256);
    if (memcmp(doc.sha256, entry->sha256, SHA256_BYTES) != 0 || doc.text.len != entry->size_bytes) {
        return err_set(err, ERR_INTEGRITY, "%s: other bytes than its name says", path);
    }
    *ret_doc = doc;
    return 0;
}

/* With pins only they decide, the config's before the manifest's; otherwise the name in the layout, or its only image. */
static bool is_wanted(const struct layout *layout, const struct oci_descriptor *entry,
                      const struct image_docs *docs, bool is_only)
{
    const struct image_spec *spec = layout->spec;
    const struct image_pins *pins = &spec->pins;
    struct err ignored = {0};
    if (pins->has_config) {
        return memcmp(pins->config, docs->manifest.config.sha256, SHA256_BYTES) == 0;
    }
    if (pins->has_digest || pins->has_manifest) {
        return image_check_pins(pins, docs, layout->shown, &ignored) == 0;
    }
    return is_only || str_eq_z(entry->ref_name, spec->name) ||
           (spec->ref.tag.ptr && str_eq(entry->ref_name, spec->ref.tag)) ||
           str_eq_z(entry->ref_name, oci_ref_text(layout->arena, &spec->ref));
}

/* Adds a blob to the store under the digest that it claims. */
static int take_blob(struct layout *layout, const struct oci_descriptor *blob, struct err *err)
{
    struct digest_value value;
    const char *path = blob_path(layout, blob->sha256);
    uint64_t size_bytes;
    if (store_has(layout->store, blob->sha256, &size_bytes) && size_bytes == blob->size_bytes) {
        return 0;
    }
    if (store_add_file(layout->store, path, NULL, &value, err) < 0) {
        return err_wrap(err, "%s", layout->shown);
    }
    if (memcmp(value.sha256, blob->sha256, SHA256_BYTES) != 0 ||
        value.size_bytes != blob->size_bytes) {
        return err_set(err, ERR_INTEGRITY, "%s: other bytes than its name says", path);
    }
    return 0;
}

static int take_blobs(struct layout *layout, const struct oci_manifest *manifest, struct err *err)
{
    int result = take_blob(layout, &manifest->config, err);
    for (size_t idx = 0; result == 0 && idx < manifest->n_layers; idx++) {
        result = take_blob(layout, &manifest->layers[idx], err);
    }
    return result;
}

static int from_oci(struct layout *layout, struct image_docs *ret_docs, struct err *err)
{
    const char *path = fs_join(layout->arena, layout->folder, "index.json");
    const struct image_docs_from from = {read_doc, layout, layout->shown, &layout->spec->platform};
    struct oci_manifest index;
    struct str text;
    if (fs_read(layout->arena, path, OCI_MANIFEST_BYTES_MAX, &text, err) < 0 ||
        oci_manifest_parse(layout->arena, text, STR_LIT(OCI_TYPE_INDEX), path, &index, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < index.n_manifests; idx++) {
        struct image_docs docs;
        struct err why = {0};
        if (image_docs_read(layout->arena, &from, &index.manifests[idx], &docs, &why) < 0) {
            if (why.code == ERR_INTEGRITY || index.n_manifests == 1) {
                *err = why;
                return -1;
            }
            continue; /* another's: no image, or of another platform */
        }
        if (is_wanted(layout, &index.manifests[idx], &docs, index.n_manifests == 1)) {
            *ret_docs = docs;
            return take_blobs(layout, &docs.manifest, err);
        }
    }
    return err_set(err, ERR_NOT_FOUND, "%s: none of its %zu images is the wanted one",
                   layout->shown, index.n_manifests);
}

/* The image of the wanted name, or the only one, into a folder of skopeo's own form "dir": manifest.json, and each blob under its digest.
   Layers are packed, because the manifest says so whatever an archive has. */
static int from_save(struct layout *layout, struct image_docs *ret_docs, struct err *err)
{
    struct arena *arena = layout->arena;
    const struct skopeo skopeo = {
        .arena = arena, .clock = clock_system(), .tmp_folder = store_path(layout->store, "tmp")};
    const char *archive = arena_printf(arena, "docker-archive:%s", layout->shown);
    const char *name = oci_ref_text(arena, &layout->spec->ref);
    const char *named = arena_printf(arena, "%s:%s", archive, name);
    struct image_docs docs = {0};
    struct err why = {0};
    layout->blob_folder = fs_join(arena, layout->folder, "dir");
    const char *to = arena_printf(arena, "dir:%s", layout->blob_folder);
    const struct skopeo_call calls[] = {
        {.args = SKOPEO_ARGS("copy", "--quiet", "--dest-compress", named, to)},
        {.args = SKOPEO_ARGS("copy", "--quiet", "--dest-compress", archive, to)}};
    if (strchr(layout->shown, ':')) {
        return err_set(err, ERR_USAGE, "%s: skopeo reads no path with a colon", layout->shown);
    }
    if ((!layout->spec->ref.tag.ptr || skopeo_run(&skopeo, &calls[0], NULL, &why) < 0) &&
        skopeo_run(&skopeo, &calls[1], NULL, err) < 0) {
        return -1;
    }
    if (fs_read(arena, fs_join(arena, layout->blob_folder, "manifest.json"), OCI_MANIFEST_BYTES_MAX,
                &docs.doc.text, err) < 0 ||
        oci_manifest_parse(arena, docs.doc.text, STR_EMPTY, layout->shown, &docs.manifest, err) <
            0) {
        return -1;
    }
    sha256_of(docs.doc.text, docs.doc.sha256);
    docs.top = docs.doc;
    if (!is_wanted(layout, &docs.manifest.config, &docs, true)) {
        return err_set(err, ERR_NOT_FOUND, "%s: its image has the id %s, which no lock pins",
                       layout->shown, oci_digest_of(docs.manifest.config.sha256).text);
    }
    *ret_docs = docs;
    return take_blobs(layout, &docs.manifest, err);
}

int image_from_layout(struct arena *arena, struct store *store, const struct image_spec *spec,
                      const char *path, struct image_docs *ret_docs, struct err *err)
{
    CLEANUP(temp) struct temp *unpacked = NULL;
    struct layout layout = {
        .arena = arena, .store = store, .spec = spec, .folder = path, .shown = path};
    if (!fs_exists(path)) {
        return err_set(err, ERR_USAGE, "%s: no such folder or file", path);
    }
    if (!fs_is_dir(path)) {
        struct unpack_tree_result result;
        if (temp_folder(store_path(store, "tmp/"), &unpacked, err) < 0) {
            return -1;
        }
        const struct unpack_tree_opts opts = {
            .archive = path, .into = unpacked->path, .unpack.format = "tar", .size_bytes = -1};
        if (unpack_tree(arena, &opts, &result, err) < 0) {
            return -1;
        }
        layout.folder = unpacked->path;
    }
    layout.blob_folder = fs_join(arena, layout.folder, "blobs/sha256");
    bool is_oci = fs_exists(fs_join(arena, layout.folder, "oci-layout"));
    if (!is_oci && (!unpacked || !fs_exists(fs_join(arena, layout.folder, "manifest.json")))) {
        return err_set(err, ERR_USAGE,
                       "%s: neither an OCI layout (oci-layout) nor a tar that docker save wrote "
                       "(manifest.json)",
                       path);
    }
    if ((is_oci ? from_oci(&layout, ret_docs, err) : from_save(&layout, ret_docs, err)) < 0) {
        err->code = err->code == ERR_MANIFEST || err->code == ERR_PARSE ? ERR_FETCH : err->code;
        return -1;
    }
    return 0;
}
