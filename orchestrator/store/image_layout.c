/* SPDX-License-Identifier: Apache-2.0 */
/* An image from what the user has kept: an OCI layout, as a folder or in a tar, or a tar that `docker save` wrote, which skopeo
   reads. Of the latter the manifest is lost, because docker repacks the layers: the image is then identified by the digest of its
   config, which contains the digests of its layers. */
#include "base/base.h"

#include "store/image_impl.h"

#include <fcntl.h>
#include <unistd.h>

#include "store/skopeo.h"
#include "store/unpack_tree.h"

#define IMAGES_MAX    512
#define MANIFEST_JSON "manifest.json"
#define LAYOUT_FILE   "oci-layout"

struct layout {
    struct arena *arena;
    struct store *store;
    const struct image_spec *spec;
    const struct image_places *places;
    const char *folder;
    const char *blob_folder;
    const char *shown; /* what the user named */
};

/* ---- OCI layout ---- */

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

static bool has_pins(const struct image_pins *pins)
{
    return pins->has_digest || pins->has_manifest || pins->has_config;
}

/* With pins only they decide; otherwise the name in the layout, or its only image. */
static bool is_wanted(const struct layout *layout, const struct oci_descriptor *entry,
                      const struct image_docs *docs, bool is_only)
{
    const struct image_spec *spec = layout->spec;
    struct err ignored = {0};
    if (has_pins(&spec->pins)) {
        return image_check_pins(&spec->pins, docs, layout->shown, &ignored) == 0;
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
    if (take_blob(layout, &manifest->config, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < manifest->n_layers; idx++) {
        if (take_blob(layout, &manifest->layers[idx], err) < 0) {
            return -1;
        }
    }
    return 0;
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

/* ---- docker save ---- */

/* skopeo, with the archive: selector "", ":REF" or ":@N" says which of its images. */
static int skopeo(struct layout *layout, const char *const *args, struct strbuf *out,
                  struct err *err)
{
    const struct skopeo skopeo = {.arena = layout->arena,
                                  .clock = layout->places->clock,
                                  .tmp_folder = store_path(layout->store, "tmp")};
    if (strchr(layout->shown, ':')) {
        return err_set(err, ERR_USAGE, "%s: skopeo reads no path with a colon", layout->shown);
    }
    return skopeo_run(&skopeo, &(struct skopeo_call){.args = args, .out = out}, NULL, err) < 0
               ? err_wrap(err, "%s", layout->shown)
               : 0;
}

/* By the id, which is the config's digest; without pins by the name, or the only image. */
static int select_image(struct layout *layout, const char **ret_address, struct err *err)
{
    const struct image_spec *spec = layout->spec;
    for (size_t idx = 0; spec->pins.has_config && idx < IMAGES_MAX; idx++) {
        CLEANUP(strbuf) struct strbuf config = STRBUF(OCI_CONFIG_BYTES_MAX);
        uint8_t sha256[SHA256_BYTES];
        struct err why = {0};
        *ret_address = arena_printf(layout->arena, "docker-archive:%s:@%zu", layout->shown, idx);
        if (skopeo(layout, SKOPEO_ARGS("inspect", "--config", "--raw", *ret_address), &config,
                   &why) < 0) {
            return err_set(err, idx ? ERR_NOT_FOUND : ERR_FETCH,
                           "%s: none of its %zu images is the wanted one (%.200s)", layout->shown,
                           idx, why.msg);
        }
        sha256_of(strbuf_str(&config), sha256);
        if (memcmp(sha256, spec->pins.config, SHA256_BYTES) == 0) {
            return 0;
        }
    }
    *ret_address = arena_printf(layout->arena, "docker-archive:%s", layout->shown);
    if (spec->ref.tag.ptr) {
        CLEANUP(strbuf) struct strbuf tags = STRBUF(OCI_CONFIG_BYTES_MAX);
        const char *name = oci_ref_text(layout->arena, &spec->ref);
        if (skopeo(layout, SKOPEO_ARGS("list-tags", *ret_address), &tags, err) < 0) {
            return -1;
        }
        if (str_find(strbuf_str(&tags), str_printf(layout->arena, "\"%s\"", name)) >= 0) {
            *ret_address = arena_printf(layout->arena, "%s:%s", *ret_address, name);
        }
    }
    return 0;
}

/* By its first bytes: what skopeo's manifest says of the layers of an archive is not so. */
static enum oci_packing packing_of(const struct layout *layout, const uint8_t *sha256)
{
    uint8_t head[4] = {0};
    CLEANUP(fd) int fd = open(store_blob_path(layout->store, sha256), O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, head, sizeof(head)) < (ssize_t)sizeof(head)) {
        return OCI_TAR;
    }
    return memcmp(head, "\x1f\x8b", 2) == 0           ? OCI_TAR_GZIP
           : memcmp(head, "\x28\xb5\x2f\xfd", 4) == 0 ? OCI_TAR_ZSTD
                                                      : OCI_TAR;
}

/* Of the blobs that are in the store. */
static int make_docs(struct layout *layout, struct oci_manifest *made, struct image_docs *ret_docs,
                     struct err *err)
{
    struct image_docs docs = {.top.content_type = STR_LIT(OCI_TYPE_MANIFEST)};
    for (size_t idx = 0; idx < made->n_layers; idx++) {
        made->layers[idx].packing = packing_of(layout, made->layers[idx].sha256);
    }
    struct layout_manifest layout_manifest =
        image_layout_manifest(layout->arena, made, &made->config);
    docs.top.text = layout_manifest.text;
    memcpy(docs.top.sha256, layout_manifest.descriptor.sha256, SHA256_BYTES);
    if (!layout_manifest.is_made) {
        return err_set(err, ERR_FETCH, "%s: skopeo made another manifest than docker's",
                       layout->shown);
    }
    if (oci_manifest_parse(layout->arena, docs.top.text, STR_EMPTY, layout->shown, &docs.manifest,
                           err) < 0) {
        return -1;
    }
    docs.doc = docs.top;
    *ret_docs = docs;
    return 0;
}

/* Into a folder of skopeo's own form "dir": manifest.json, and each blob under its digest. */
static int from_save(struct layout *layout, struct image_docs *ret_docs, struct err *err)
{
    struct oci_manifest manifest;
    struct str text;
    const char *address = NULL;
    if (has_pins(&layout->spec->pins) && !layout->spec->pins.has_config) {
        return err_set(err, ERR_FETCH,
                       "%s: what docker save wrote has another digest than the image had in its "
                       "registry, and the lock does not know the image's id",
                       layout->shown);
    }
    layout->blob_folder = fs_join(layout->arena, layout->folder, "dir");
    if (select_image(layout, &address, err) < 0 ||
        skopeo(layout,
               SKOPEO_ARGS("copy", "--quiet", address,
                           arena_printf(layout->arena, "dir:%s", layout->blob_folder)),
               NULL, err) < 0 ||
        fs_read(layout->arena, fs_join(layout->arena, layout->blob_folder, MANIFEST_JSON),
                OCI_MANIFEST_BYTES_MAX, &text, err) < 0 ||
        oci_manifest_parse(layout->arena, text, STR_EMPTY, layout->shown, &manifest, err) < 0 ||
        take_blobs(layout, &manifest, err) < 0) {
        return -1;
    }
    return make_docs(layout, &manifest, ret_docs, err);
}

/* ---- which of them ---- */

static int from_folder(struct layout *layout, struct image_docs *ret_docs, struct err *err)
{
    int result;
    layout->blob_folder = fs_join(layout->arena, layout->folder, "blobs/sha256");
    if (fs_exists(fs_join(layout->arena, layout->folder, LAYOUT_FILE))) {
        result = from_oci(layout, ret_docs, err);
    } else if (layout->folder != layout->shown &&
               fs_exists(fs_join(layout->arena, layout->folder, MANIFEST_JSON))) {
        result = from_save(layout, ret_docs, err);
    } else {
        return err_set(err, ERR_USAGE,
                       "%s: neither an OCI layout (" LAYOUT_FILE
                       ") nor a tar that docker save wrote "
                       "(" MANIFEST_JSON ")",
                       layout->shown);
    }
    if (result < 0 && (err->code == ERR_MANIFEST || err->code == ERR_PARSE)) {
        err->code = ERR_FETCH;
    }
    return result;
}

int image_from_layout(struct arena *arena, struct store *store, const struct layout_from *from,
                      struct image_docs *ret_docs, struct err *err)
{
    const struct image_places *places = from->places;
    const char *path = from->path;
    struct layout layout = {.arena = arena,
                            .store = store,
                            .spec = from->spec,
                            .places = places,
                            .folder = path,
                            .shown = path};
    struct unpack_tree_opts opts = {.archive = path, .unpack.format = "tar", .size_bytes = -1};
    struct unpack_tree_result unpacked;
    struct err ignored = {0};
    if (!fs_exists(path)) {
        return err_set(err, ERR_USAGE, "%s: no such folder or file", path);
    }
    if (fs_is_dir(path)) {
        return from_folder(&layout, ret_docs, err);
    }
    opts.new_folder = store_path(store, arena_printf(arena, "tmp/layout.%ld", (long)getpid()));
    if (unpack_tree(arena, &opts, &unpacked, err) < 0) {
        return -1;
    }
    layout.folder = opts.new_folder;
    int result = from_folder(&layout, ret_docs, err);
    if (fs_remove_tree(opts.new_folder, &ignored) < 0 && result == 0) {
        *err = ignored;
        return -1;
    }
    return result;
}
