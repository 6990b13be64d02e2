/* SPDX-License-Identifier: Apache-2.0 */
/* An image in the store: its manifests as blobs, and refs/image/NAME.json, which keeps all its blobs from the gc. */
#include "base/base.h"

#include "store/image_impl.h"

#define REF_TEXT_MAX (1u << 20)
#define BLOBS_MAX    (OCI_LAYERS_MAX + 4)

#define NAMED_ROWS                                                                                 \
    ROW("reference", struct image_info, reference, JSON_REQUIRED),                                 \
        ROW("platform", struct image_info, platform, JSON_REQUIRED),                               \
        ROW("digest", struct image_info, digest, JSON_REQUIRED),                                   \
        ROW("manifest", struct image_info, manifest_digest, JSON_REQUIRED),                        \
        ROW("config", struct image_info, config, JSON_REQUIRED)
#define ORIGIN_ROWS                                                                                \
    ROW("bytes", struct image_info, bytes, JSON_REQUIRED, .max = 1LL << 53),                       \
        ROW("from", struct image_info, from, JSON_REQUIRED),                                       \
        ROW("date", struct image_info, date, JSON_REQUIRED)
const struct json_field IMAGE_INFO_ROWS[IMAGE_INFO_ROWS_N] = {
    NAMED_ROWS, ROW("layers", struct image_info, manifest.n_layers, 0), ORIGIN_ROWS};
static const struct json_field REF_ROWS[] = {
    ROW_NUMBER("schema_version", 1),
    ROW("name", struct image_info, title, JSON_REQUIRED),
    NAMED_ROWS,
    ORIGIN_ROWS,
    ROW_STRS("blobs", struct image_info, blobs, n_blobs, JSON_REQUIRED, .max = BLOBS_MAX),
};

static struct str add_blob(struct arena *arena, struct image_info *info, const uint8_t *sha256)
{
    struct str digest = str_printf(arena, "%s", oci_digest_of(sha256).text);
    return info->blobs[info->n_blobs++] = digest;
}

int image_keep(struct arena *arena, struct store *store, struct image_info *info,
               struct clock_src clock, struct err *err)
{
    CLEANUP(strbuf) struct strbuf buf = STRBUF(REF_TEXT_MAX);
    uint8_t ignored[SHA256_BYTES];
    if (store_add_text(store, info->text, ignored, err) < 0 ||
        (info->list.ptr && store_add_text(store, info->list, ignored, err) < 0)) {
        return -1;
    }
    info->title = str_of(info->name);
    info->platform = STR_LIT(OCI_PLATFORM);
    info->date = clock_text(arena, clock);
    info->bytes = (int64_t)(oci_manifest_bytes(&info->manifest) + info->text.len + info->list.len);
    info->blobs = arena_array(arena, struct str, BLOBS_MAX);
    info->n_blobs = 0;
    info->manifest_digest = add_blob(arena, info, info->pins.manifest);
    info->digest =
        info->list.ptr ? add_blob(arena, info, info->pins.digest) : info->manifest_digest;
    info->config = add_blob(arena, info, info->pins.config);
    for (size_t idx = 0; idx < info->manifest.n_layers; idx++) {
        add_blob(arena, info, info->manifest.layers[idx].sha256);
    }
    json_encode_document(&buf, REF_ROWS, ARRAY_LEN(REF_ROWS), info);
    ASSERT(!buf.is_full);
    return store_ref_put(store, IMAGE_KIND, info->name, strbuf_str(&buf), err);
}

bool image_has_blob(const struct store *store, const struct oci_descriptor *blob)
{
    uint64_t size_bytes;
    return store_has(store, blob->sha256, &size_bytes) && size_bytes == blob->size_bytes;
}

static int read_ref(struct arena *arena, const struct store *store, struct image_info *info,
                    struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct str text;
    if (store_ref_get(store, IMAGE_KIND, info->name, &text, err) < 0 ||
        json_parse(text, info->name, &doc, err) < 0 ||
        json_decode(&doc.root, arena, REF_ROWS, ARRAY_LEN(REF_ROWS), info, err) < 0 ||
        oci_digest_parse(info->digest, info->pins.digest, err) < 0 ||
        oci_digest_parse(info->manifest_digest, info->pins.manifest, err) < 0 ||
        oci_digest_parse(info->config, info->pins.config, err) < 0) {
        return -1;
    }
    return str_eq_z(info->title, info->name)
               ? 0
               : err_set(err, ERR_INTEGRITY, "expected the reference of image %s, found that of %s",
                         info->name, info->title.ptr);
}

int image_open(struct arena *arena, const struct store *store, const char *name,
               struct image_info *ret_info, struct err *err)
{
    struct image_info info = {.name = name, .pins = {true, true, true, {0}, {0}, {0}}};
    struct store here = *store;
    uint8_t found[SHA256_BYTES];
    here.arena = arena;
    if (read_ref(arena, &here, &info, err) < 0) {
        return err_wrap(err, "image %s in the store", name);
    }
    if (fs_read(arena, store_blob_path(&here, info.pins.manifest), OCI_MANIFEST_BYTES_MAX,
                &info.text, err) < 0) {
        err->code = err->code == ERR_NOT_FOUND ? ERR_INTEGRITY : err->code;
        return err_wrap(err, "image %s: its manifest", name);
    }
    sha256_of(info.text, found);
    if (memcmp(found, info.pins.manifest, SHA256_BYTES) != 0) {
        return err_set(err, ERR_INTEGRITY, "image %s: its manifest in the store is corrupt", name);
    }
    if (oci_manifest_parse(arena, info.text, name, &info.manifest, err) < 0) {
        return -1;
    }
    if (info.manifest.is_index ||
        memcmp(info.manifest.config.sha256, info.pins.config, SHA256_BYTES) != 0) {
        return err_set(err, ERR_INTEGRITY, "image %s: its manifest is that of another", name);
    }
    *ret_info = info;
    return 0;
}
