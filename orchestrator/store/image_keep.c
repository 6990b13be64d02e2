/* SPDX-License-Identifier: Apache-2.0 */
/* An image in the store: its manifests as blobs, and refs/image/NAME.json, which keeps all its blobs from the gc. */
#include "base/base.h"

#include "store/image_impl.h"

#include "codec/json_table.h"

#define REF_TEXT_MAX (1u << 20)

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

static void list_blobs(struct arena *arena, const struct image_docs *docs, struct ref_text *ref)
{
    ref->blobs = arena_array(arena, struct str, REF_BLOBS_MAX);
    if (docs->is_list) {
        ref->blobs[ref->n_blobs++] = digest_text(arena, docs->top.sha256);
    }
    ref->blobs[ref->n_blobs++] = digest_text(arena, docs->doc.sha256);
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
    char date[RFC3339_MAX];
    if (add_doc(store, &docs->doc, err) < 0 ||
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
    list_blobs(&arena, docs, &ref);
    json_encode_document(&buf, REF_ROWS, ARRAY_LEN(REF_ROWS), &ref);
    ASSERT(!buf.is_full);
    return store_ref_put(store, IMAGE_KIND, spec->name, strbuf_str(&buf), err);
}

int image_remove(struct store *store, const char *name, struct err *err)
{
    return store_ref_drop(store, IMAGE_KIND, name, err) < 0 ? err_wrap(err, "image %s", name) : 0;
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
