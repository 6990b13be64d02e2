/* SPDX-License-Identifier: Apache-2.0 */
/* An image in the store: its manifests as blobs, refs/image/NAME.json, which keeps all its blobs from the gc, and an entry of
   index.json, by which other tools find it (skopeo inspect oci:STORE:NAME). */
#include "base/base.h"

#include "store/image_impl.h"

#include "codec/json_table.h"

#define REF_TEXT_MAX (1u << 20)

static struct str oci_layer_type(enum oci_packing packing)
{
    switch (packing) {
    case OCI_TAR_GZIP:
        return STR_LIT(OCI_TYPE_LAYER "+gzip");
    case OCI_TAR_ZSTD:
        return STR_LIT(OCI_TYPE_LAYER "+zstd");
    case OCI_TAR:
        break;
    }
    return STR_LIT(OCI_TYPE_LAYER);
}

static struct oci_descriptor retyped(const struct oci_descriptor *blob, struct str type)
{
    struct oci_descriptor made = {.media_type = type, .size_bytes = blob->size_bytes};
    memcpy(made.sha256, blob->sha256, SHA256_BYTES);
    return made;
}

struct layout_manifest image_layout_manifest(struct arena *arena,
                                             const struct oci_manifest *manifest,
                                             const struct oci_descriptor *own)
{
    CLEANUP(strbuf) struct strbuf buf = STRBUF(OCI_MANIFEST_BYTES_MAX);
    struct layout_manifest layout = {.descriptor = retyped(own, STR_LIT(OCI_TYPE_MANIFEST))};
    struct oci_manifest made = {
        .schema = 2,
        .media_type = STR_LIT(OCI_TYPE_MANIFEST),
        .config = retyped(&manifest->config, STR_LIT(OCI_TYPE_CONFIG)),
        .layers = arena_array(arena, struct oci_descriptor, manifest->n_layers + 1),
        .n_layers = manifest->n_layers};
    layout.is_made = !str_eq_z(manifest->media_type, OCI_TYPE_MANIFEST);
    if (!layout.is_made) {
        return layout;
    }
    for (size_t idx = 0; idx < made.n_layers; idx++) {
        const struct oci_descriptor *layer = &manifest->layers[idx];
        made.layers[idx] = retyped(layer, oci_layer_type(layer->packing));
    }
    oci_image_write(&buf, &made);
    ASSERT(!buf.is_full);
    layout.text = str_dup(arena, strbuf_str(&buf));
    layout.descriptor.size_bytes = layout.text.len;
    sha256_of(layout.text, layout.descriptor.sha256);
    return layout;
}

/* ---- index.json ---- */

static bool is_named(const struct json *entry, struct arena *arena, const char *name)
{
    struct json annotations, ref_name;
    struct err no = {0};
    struct str text;
    return json_is_object(entry) && json_find(entry, "annotations", &annotations) &&
           json_is_object(&annotations) && json_find(&annotations, OCI_REF_NAME, &ref_name) &&
           json_is_str(&ref_name) && json_str(&ref_name, arena, &text, &no) == 0 &&
           str_eq_z(text, name);
}

/* The entries of others, in their order. */
static int copy_entries(struct json_out *out, const struct json *root, struct arena *arena,
                        const char *name, struct err *err)
{
    struct json list, item;
    size_t n;
    if (json_member(root, "manifests", &list, err) < 0 ||
        json_expect_array(&list, SIZE_MAX, &n, err) < 0) {
        return -1;
    }
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (!is_named(&item, arena, name)) {
            jw_json(out, NULL, &item);
        }
    }
    return 0;
}

/* entry NULL: it goes. */
static int change_index(struct store *store, const char *name, const struct oci_descriptor *entry,
                        struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(json_doc) struct json_doc doc = {0};
    CLEANUP(strbuf) struct strbuf buf = STRBUF(IMAGE_INDEX_MAX);
    CLEANUP(fd) int lock_fd = -1;
    const char *path = store_path(store, "index.json");
    struct json_out out;
    struct str text;
    if (store_index_lock(store, &lock_fd, err) < 0 ||
        fs_read(&arena, path, IMAGE_INDEX_MAX, &text, err) < 0 ||
        json_parse(text, path, &doc, err) < 0) {
        return -1;
    }
    struct json root = json_root(&doc);
    jw_begin(&out, &buf, false);
    jw_object(&out, NULL);
    jw_i64(&out, "schemaVersion", 2);
    jw_z(&out, "mediaType", OCI_TYPE_INDEX);
    jw_array(&out, "manifests");
    if (copy_entries(&out, &root, &arena, name, err) < 0) {
        return -1;
    }
    if (entry) {
        oci_descriptor_write(&out, entry);
    }
    jw_end_array(&out);
    jw_end_object(&out);
    if (buf.is_full) {
        return err_set(err, ERR_IO, "%s: would be longer than %u bytes", path, IMAGE_INDEX_MAX);
    }
    return fs_write_atomic(path, strbuf_str(&buf), err);
}

/* Always in OCI's types. */
static int list_entry(struct store *store, const char *name, const struct layout_manifest *layout,
                      const struct oci_platform *platform, struct err *err)
{
    struct oci_descriptor entry = layout->descriptor;
    entry.ref_name = str_of(name);
    entry.platform =
        (struct oci_platform){.os = platform->os, .architecture = platform->architecture};
    return change_index(store, name, &entry, err);
}

/* ---- the reference ---- */

static uint64_t all_bytes(const struct image_docs *docs)
{
    return oci_manifest_bytes(&docs->manifest) + docs->doc.text.len +
           (docs->is_list ? docs->top.text.len : 0);
}

struct ref_text {
    int64_t version, bytes;
    struct str name, reference, platform, digest, manifest, config, from, date;
    struct str *blobs;
    size_t n_blobs;
};

#define REF_BLOBS_MAX (OCI_LAYERS_MAX + 4)
static const struct json_field REF_ROWS[] = {
    ROW("schema_version", struct ref_text, version, JSON_REQUIRED, .min = 1, .max = 1),
    ROW("name", struct ref_text, name, JSON_REQUIRED),
    ROW("reference", struct ref_text, reference, JSON_REQUIRED),
    ROW("platform", struct ref_text, platform, JSON_REQUIRED),
    ROW("digest", struct ref_text, digest, JSON_REQUIRED),
    ROW("manifest", struct ref_text, manifest, JSON_REQUIRED),
    ROW("config", struct ref_text, config, JSON_REQUIRED),
    ROW("bytes", struct ref_text, bytes, JSON_REQUIRED, .max = 1LL << 53),
    ROW("from", struct ref_text, from, JSON_REQUIRED),
    ROW("date", struct ref_text, date, JSON_REQUIRED),
    ROW_STRS("blobs", struct ref_text, blobs, n_blobs, JSON_REQUIRED, .max = REF_BLOBS_MAX),
};

static struct str digest_text(struct arena *arena, const uint8_t *sha256)
{
    return str_printf(arena, "sha256:%s", sha256_hex_of(sha256).text);
}

static void list_blobs(struct arena *arena, const struct image_docs *docs,
                       const struct layout_manifest *layout_manifest, struct ref_text *ref)
{
    ref->blobs = arena_array(arena, struct str, REF_BLOBS_MAX);
    if (docs->is_list) {
        ref->blobs[ref->n_blobs++] = digest_text(arena, docs->top.sha256);
    }
    ref->blobs[ref->n_blobs++] = digest_text(arena, docs->doc.sha256);
    if (layout_manifest->is_made) {
        ref->blobs[ref->n_blobs++] = digest_text(arena, layout_manifest->descriptor.sha256);
    }
    ref->blobs[ref->n_blobs++] = digest_text(arena, docs->manifest.config.sha256);
    for (size_t idx = 0; idx < docs->manifest.n_layers; idx++) {
        ref->blobs[ref->n_blobs++] = digest_text(arena, docs->manifest.layers[idx].sha256);
    }
}

static int add_doc(struct store *store, const struct registry_doc *doc, struct err *err)
{
    uint8_t sha256[SHA256_BYTES];
    if (store_add_text(store, doc->text, sha256, err) < 0) {
        return -1;
    }
    ASSERT(memcmp(sha256, doc->sha256, SHA256_BYTES) == 0);
    return 0;
}

int image_keep(struct store *store, const struct image_spec *spec, const struct image_docs *docs,
               const char *from, struct clock_src clock, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf buf = STRBUF(REF_TEXT_MAX);
    struct oci_descriptor own = {.size_bytes = docs->doc.text.len};
    char date[RFC3339_MAX];
    memcpy(own.sha256, docs->doc.sha256, SHA256_BYTES);
    struct layout_manifest layout = image_layout_manifest(&arena, &docs->manifest, &own);
    if ((layout.is_made && store_add_text(store, layout.text, layout.descriptor.sha256, err) < 0) ||
        add_doc(store, &docs->doc, err) < 0 ||
        (docs->is_list && add_doc(store, &docs->top, err) < 0)) {
        return -1;
    }
    clock_rfc3339(clock.wall_ns(clock.ctx), date);
    struct ref_text ref = {.version = 1,
                           .name = str_of(spec->name),
                           .reference = str_of(oci_ref_text(&arena, &spec->ref)),
                           .platform = str_of(oci_platform_text(&arena, &spec->platform)),
                           .digest = digest_text(&arena, docs->top.sha256),
                           .manifest = digest_text(&arena, docs->doc.sha256),
                           .config = digest_text(&arena, docs->manifest.config.sha256),
                           .bytes = (int64_t)all_bytes(docs),
                           .from = str_of(from),
                           .date = str_of(date)};
    list_blobs(&arena, docs, &layout, &ref);
    json_encode_document(&buf, REF_ROWS, ARRAY_LEN(REF_ROWS), &ref);
    ASSERT(!buf.is_full);
    /* The reference first: an entry of index.json whose blobs nothing keeps would lie. */
    if (store_ref_put(store, IMAGE_KIND, spec->name, strbuf_str(&buf), err) < 0) {
        return -1;
    }
    return list_entry(store, spec->name, &layout, &spec->platform, err);
}

int image_remove(struct store *store, const char *name, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct str text;
    struct store here = *store;
    here.arena = &arena;
    if (store_ref_get(&here, IMAGE_KIND, name, &text, err) < 0) {
        return err_wrap(err, "image %s", name);
    }
    if (change_index(store, name, NULL, err) < 0) {
        return -1;
    }
    return store_ref_drop(store, IMAGE_KIND, name, err);
}

int image_names(const struct store *store, struct fs_names *ret_names, struct err *err)
{
    return store_ref_list(store, IMAGE_KIND, ret_names, err);
}

/* ---- reading it back ---- */

static int read_ref(struct arena *arena, struct str text, const char *name, struct ref_text *ret,
                    struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    if (json_parse(text, name, &doc, err) < 0) {
        return -1;
    }
    struct json root = json_root(&doc);
    return json_decode(&root, arena, REF_ROWS, ARRAY_LEN(REF_ROWS), ret, err);
}

int image_ref_check(struct str text, const char *name, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct ref_text ref = {0};
    uint8_t sha256[SHA256_BYTES];
    if (read_ref(&arena, text, name, &ref, err) < 0 ||
        oci_digest_parse(ref.digest, sha256, err) < 0 ||
        oci_digest_parse(ref.manifest, sha256, err) < 0 ||
        oci_digest_parse(ref.config, sha256, err) < 0) {
        return -1;
    }
    return str_eq_z(ref.name, name)
               ? 0
               : err_set(err, ERR_INTEGRITY, "expected the reference of image %s, found that of %s",
                         name, ref.name.ptr);
}

int image_open(struct arena *arena, const struct store *store, const char *name,
               struct image_info *ret_info, struct err *err)
{
    struct image_info info = {.name = name};
    struct ref_text ref = {0};
    struct store here = *store;
    struct str text;
    uint8_t found[SHA256_BYTES];
    here.arena = arena;
    if (store_ref_get(&here, IMAGE_KIND, name, &text, err) < 0 ||
        read_ref(arena, text, name, &ref, err) < 0 ||
        oci_digest_parse(ref.digest, info.pins.digest, err) < 0 ||
        oci_digest_parse(ref.manifest, info.pins.manifest, err) < 0 ||
        oci_digest_parse(ref.config, info.pins.config, err) < 0) {
        return err_wrap(err, "image %s in the store", name);
    }
    if (fs_read(arena, store_blob_path(&here, info.pins.manifest), OCI_MANIFEST_BYTES_MAX, &text,
                err) < 0) {
        err->code = err->code == ERR_NOT_FOUND ? ERR_INTEGRITY : err->code;
        return err_wrap(err, "image %s: its manifest", name);
    }
    sha256_of(text, found);
    if (memcmp(found, info.pins.manifest, SHA256_BYTES) != 0) {
        return err_set(err, ERR_INTEGRITY, "image %s: its manifest in the store is corrupt", name);
    }
    if (oci_manifest_parse(arena, text, STR_EMPTY, name, &info.manifest, err) < 0) {
        return -1;
    }
    if (info.manifest.is_index) {
        return err_set(err, ERR_INTEGRITY, "image %s: its manifest is a list", name);
    }
    info.pins.has_digest = info.pins.has_manifest = info.pins.has_config = true;
    info.is_list = memcmp(info.pins.digest, info.pins.manifest, SHA256_BYTES) != 0;
    info.reference = ref.reference;
    info.platform = ref.platform;
    info.from = ref.from;
    info.date = ref.date;
    info.bytes = (uint64_t)ref.bytes;
    info.descriptor =
        (struct oci_descriptor){.media_type = info.manifest.media_type, .size_bytes = text.len};
    memcpy(info.descriptor.sha256, info.pins.manifest, SHA256_BYTES);
    *ret_info = info;
    return 0;
}

int image_list_again(struct store *store, const char *name, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct image_info info;
    struct oci_platform platform;
    if (image_open(&arena, store, name, &info, err) < 0 ||
        oci_platform_parse(&arena, info.platform, &platform, err) < 0) {
        return -1;
    }
    struct layout_manifest layout = image_layout_manifest(&arena, &info.manifest, &info.descriptor);
    return list_entry(store, name, &layout, &platform, err);
}
