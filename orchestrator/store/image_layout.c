/* SPDX-License-Identifier: Apache-2.0 */
/* An image from a folder or a tar file that the user has kept: an OCI layout, or what `docker save` writes. Of the latter the
   manifest is lost, because docker repacks the layers: the image is then identified by the digest of its config, which
   contains the digests of its layers. */
#include "base/base.h"

#include "store/image_impl.h"

#include <fcntl.h>
#include <unistd.h>

#include "store/unpack_tree.h"

#define MEMBERS_MAX   512
#define MANIFEST_JSON "manifest.json"
#define LAYOUT_FILE   "oci-layout"

struct layout {
    struct arena *arena;
    struct store *store;
    const struct image_spec *spec;
    const char *folder;
    const char *shown; /* what the user named */
};

/* ---- OCI layout ---- */

static char *blob_path(struct layout *layout, const uint8_t *sha256)
{
    return arena_printf(layout->arena, "%s/blobs/sha256/%s", layout->folder,
                        sha256_hex_of(sha256).text);
}

static int read_doc(struct layout *layout, const struct oci_descriptor *entry,
                    struct registry_doc *ret_doc, struct err *err)
{
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

/* One entry of index.json, its list followed. */
static int read_docs(struct layout *layout, const struct oci_descriptor *entry,
                     struct image_docs *ret_docs, struct err *err)
{
    struct image_docs docs = {0};
    const struct oci_descriptor *below;
    if (read_doc(layout, entry, &docs.top, err) < 0 ||
        oci_manifest_parse(layout->arena, docs.top.text, docs.top.content_type, layout->shown,
                           &docs.manifest, err) < 0) {
        return -1;
    }
    docs.doc = docs.top;
    if (docs.manifest.is_index) {
        docs.is_list = true;
        if (oci_choose_platform(&docs.manifest, &layout->spec->platform, layout->shown, &below,
                                err) < 0 ||
            read_doc(layout, below, &docs.doc, err) < 0 ||
            oci_manifest_parse(layout->arena, docs.doc.text, docs.doc.content_type, layout->shown,
                               &docs.manifest, err) < 0) {
            return -1;
        }
    }
    if (docs.manifest.is_index) {
        return err_set(err, ERR_FETCH, "%s: a list of lists is not supported", layout->shown);
    }
    *ret_docs = docs;
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
    struct oci_manifest index;
    struct str text;
    if (fs_read(layout->arena, path, OCI_MANIFEST_BYTES_MAX, &text, err) < 0 ||
        oci_manifest_parse(layout->arena, text, STR_LIT(OCI_TYPE_INDEX), path, &index, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < index.n_manifests; idx++) {
        struct image_docs docs;
        struct err why = {0};
        if (read_docs(layout, &index.manifests[idx], &docs, &why) < 0) {
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

static bool is_safe(struct str path)
{
    struct str rest = path;
    struct str part;
    while (str_next(&rest, '/', &part)) {
        if (part.len == 0 || str_eq_z(part, ".") || str_eq_z(part, "..")) {
            return false;
        }
    }
    return path.len > 0;
}

static int take_member(struct layout *layout, struct str name, struct digest_value *ret_value,
                       struct err *err)
{
    if (!is_safe(name)) {
        return err_set(err, ERR_INTEGRITY, "%s: " MANIFEST_JSON " names \"%.*s\", which leaves it",
                       layout->shown, STR_ARG(str_sub(name, 0, 200)));
    }
    return store_add_file(layout->store, fs_join(layout->arena, layout->folder, name.ptr), NULL,
                          ret_value, err);
}

/* By its first bytes. */
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

static int describe(struct layout *layout, struct str name, struct oci_descriptor *ret,
                    struct err *err)
{
    struct digest_value value;
    if (take_member(layout, name, &value, err) < 0) {
        return -1;
    }
    *ret = (struct oci_descriptor){.size_bytes = value.size_bytes,
                                   .packing = packing_of(layout, value.sha256)};
    memcpy(ret->sha256, value.sha256, SHA256_BYTES);
    return 0;
}

/* One member of manifest.json. */
struct save {
    bool
        is_it; /* the config is the pinned one, or nothing is pinned and it is the only one or has the name */
    struct str config;
    struct str *layers;
    size_t n_layers;
};

static int read_save(struct layout *layout, const struct json *entry, bool is_only,
                     struct save *ret_save, struct err *err)
{
    const struct image_pins *pins = &layout->spec->pins;
    struct digest_value value;
    struct json member;
    struct str *tags = NULL;
    size_t n_tags = 0;
    if (json_member(entry, "Config", &member, err) < 0 ||
        json_str(&member, layout->arena, &ret_save->config, err) < 0 ||
        json_member(entry, "Layers", &member, err) < 0 ||
        json_str_list(&member, layout->arena, OCI_LAYERS_MAX, &ret_save->layers,
                      &ret_save->n_layers, err) < 0) {
        return -1;
    }
    if (json_find(entry, "RepoTags", &member) && !json_is_null(&member) &&
        json_str_list(&member, layout->arena, MEMBERS_MAX, &tags, &n_tags, err) < 0) {
        return -1;
    }
    ret_save->is_it = is_only && !has_pins(pins);
    for (size_t idx = 0; idx < n_tags && !has_pins(pins); idx++) {
        struct oci_ref ref;
        struct err no = {0};
        ret_save->is_it =
            ret_save->is_it ||
            (oci_ref_parse(layout->arena, tags[idx], &ref, &no) == 0 &&
             str_eq(ref.host, layout->spec->ref.host) && str_eq(ref.path, layout->spec->ref.path) &&
             str_eq(ref.tag, layout->spec->ref.tag));
    }
    if (pins->has_config && is_safe(ret_save->config)) {
        if (digest_file(fs_join(layout->arena, layout->folder, ret_save->config.ptr), DIGEST_SHA256,
                        &value, err) < 0) {
            return -1;
        }
        ret_save->is_it = memcmp(value.sha256, pins->config, SHA256_BYTES) == 0;
    }
    return 0;
}

static int make_docs(struct layout *layout, const struct save *save, struct image_docs *ret_docs,
                     struct err *err)
{
    struct image_docs docs = {.top.content_type = STR_LIT(OCI_TYPE_MANIFEST)};
    struct oci_manifest made = {
        .layers = arena_array(layout->arena, struct oci_descriptor, save->n_layers + 1),
        .n_layers = save->n_layers};
    bool is_made;
    if (describe(layout, save->config, &made.config, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < save->n_layers; idx++) {
        if (describe(layout, save->layers[idx], &made.layers[idx], err) < 0) {
            return -1;
        }
    }
    image_layout_manifest(layout->arena, &made, &is_made, &docs.top.text, docs.top.sha256);
    ASSERT(is_made);
    if (oci_manifest_parse(layout->arena, docs.top.text, STR_EMPTY, layout->shown, &docs.manifest,
                           err) < 0) {
        return -1;
    }
    docs.doc = docs.top;
    *ret_docs = docs;
    return 0;
}

static int from_save(struct layout *layout, struct image_docs *ret_docs, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    const char *path = fs_join(layout->arena, layout->folder, MANIFEST_JSON);
    struct json root, item;
    size_t n;
    if (has_pins(&layout->spec->pins) && !layout->spec->pins.has_config) {
        return err_set(err, ERR_FETCH,
                       "%s: what docker save wrote has another digest than the image had in its "
                       "registry, and the lock does not know the image's id",
                       layout->shown);
    }
    if (json_read_file(path, &doc, err) < 0) {
        return -1;
    }
    root = json_root(&doc);
    if (json_expect_array(&root, MEMBERS_MAX, &n, err) < 0) {
        return -1;
    }
    for (bool more = json_first(&root, &item); more; more = json_next(&item)) {
        struct save save;
        if (read_save(layout, &item, n == 1, &save, err) < 0) {
            return -1;
        }
        if (save.is_it) {
            return make_docs(layout, &save, ret_docs, err);
        }
    }
    return err_set(err, ERR_NOT_FOUND, "%s: none of its %zu images is the wanted one",
                   layout->shown, n);
}

/* ---- which of them ---- */

static int from_folder(struct layout *layout, struct image_docs *ret_docs, struct err *err)
{
    int result;
    if (fs_exists(fs_join(layout->arena, layout->folder, LAYOUT_FILE))) {
        result = from_oci(layout, ret_docs, err);
    } else if (fs_exists(fs_join(layout->arena, layout->folder, MANIFEST_JSON))) {
        result = from_save(layout, ret_docs, err);
    } else {
        return err_set(err, ERR_USAGE,
                       "%s: neither an OCI layout (" LAYOUT_FILE ") nor what docker save writes "
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
    struct layout layout = {
        .arena = arena, .store = store, .spec = from->spec, .folder = path, .shown = path};
    struct unpack_tree_opts opts = {.archive = path,
                                    .unpack.format = "tar",
                                    .size_bytes = -1,
                                    .pool = places->pool,
                                    .should_stop = places->should_stop};
    struct unpack_tree_result unpacked;
    struct err ignored = {0};
    int result;
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
    result = from_folder(&layout, ret_docs, err);
    if (fs_remove_tree(opts.new_folder, &ignored) < 0 && result == 0) {
        *err = ignored;
        return -1;
    }
    return result;
}
