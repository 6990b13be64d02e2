/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/oci.h"

#include "codec/json_table.h"

/* ---- descriptors ---- */

static int get_digest(const struct json *at, struct arena *arena, void *out, struct err *err)
{
    struct err why = {0};
    struct str text;
    if (json_str(at, arena, &text, err) < 0) {
        return -1;
    }
    return oci_digest_parse(text, out, &why) < 0 ? json_fail(at, err, "%s", why.msg) : 0;
}

static const struct json_field PLATFORM_ROWS[] = {
    ROW("architecture", struct oci_platform, architecture, JSON_NULLABLE),
    ROW("os", struct oci_platform, os, JSON_NULLABLE),
    ROW("variant", struct oci_platform, variant, JSON_NULLABLE | JSON_BLANK),
    ROW_OTHERS,
};
static const struct json_field ANNOTATION_ROWS[] = {
    ROW(OCI_REF_NAME, struct oci_descriptor, ref_name, JSON_NULLABLE),
    ROW_OTHERS,
};
static const struct json_field DESCRIPTOR_ROWS[] = {
    ROW("mediaType", struct oci_descriptor, media_type, JSON_REQUIRED),
    ROW_GET("digest", struct oci_descriptor, sha256, get_digest, JSON_REQUIRED),
    ROW("size", struct oci_descriptor, size_bytes, JSON_REQUIRED, .max = OCI_LAYER_BYTES_MAX),
    ROW_INSIDE("annotations", ANNOTATION_ROWS, JSON_NULLABLE),
    ROW_OBJECT("platform", struct oci_descriptor, platform, PLATFORM_ROWS, JSON_NULLABLE),
    ROW_OTHERS,
};

static int check_config(const struct json *at, struct arena *arena UNUSED, void *out,
                        struct err *err)
{
    static const char *const TYPES[] = {OCI_TYPE_CONFIG,
                                        "application/vnd.docker.container.image.v1+json", NULL};
    const struct oci_descriptor *config = out;
    return str_eq_any(config->media_type, TYPES)
               ? 0
               : json_fail(at, err, "is not a container image: its config is of type \"%.*s\"",
                           STR_ARG(str_sub(config->media_type, 0, 100)));
}

/* Layers that can be kept and loaded. Windows layers that must not be redistributed (foreign, nondistributable) are not among
   them. */
static int check_layer(const struct json *at, struct arena *arena UNUSED, void *out,
                       struct err *err)
{
    static const struct {
        const char *type;
        enum oci_packing packing;
    } ROWS[] = {
        {OCI_TYPE_LAYER, OCI_TAR},
        {OCI_TYPE_LAYER "+gzip", OCI_TAR_GZIP},
        {OCI_TYPE_LAYER "+zstd", OCI_TAR_ZSTD},
        {"application/vnd.docker.image.rootfs.diff.tar", OCI_TAR},
        {"application/vnd.docker.image.rootfs.diff.tar.gzip", OCI_TAR_GZIP},
        {"application/vnd.docker.image.rootfs.diff.tar.zstd", OCI_TAR_ZSTD},
    };
    struct oci_descriptor *layer = out;
    const typeof(ROWS[0]) *found = Z_NAMED(ROWS, ARRAY_LEN(ROWS), type, layer->media_type);
    if (!found) {
        return json_fail(at, err,
                         "layers of type \"%.*s\" are not supported: expected a tar, packed "
                         "with gzip, zstd or not at all",
                         STR_ARG(str_sub(layer->media_type, 0, 100)));
    }
    layer->packing = found->packing;
    return 0;
}

/* ---- manifests ---- */

static const struct json_field HEAD_ROWS[] = {
    ROW("schemaVersion", struct oci_manifest, schema, JSON_REQUIRED, .min = 1, .max = 2),
    ROW("mediaType", struct oci_manifest, media_type, JSON_NULLABLE),
    ROW_OTHERS,
};
static const struct json_field IMAGE_ROWS[] = {
    ROW_OBJECT("config", struct oci_manifest, config, DESCRIPTOR_ROWS, JSON_REQUIRED,
               .check = check_config),
    ROW_LIST("layers", struct oci_manifest, layers, n_layers, DESCRIPTOR_ROWS, JSON_REQUIRED,
             .max = OCI_LAYERS_MAX, .check = check_layer),
    ROW_OTHERS,
};
static const struct json_field INDEX_ROWS[] = {
    ROW_LIST("manifests", struct oci_manifest, manifests, n_manifests, DESCRIPTOR_ROWS,
             JSON_REQUIRED, .max = OCI_PLATFORMS_MAX),
    ROW_OTHERS,
};

/* The kind must be unambiguous: a document that could be read both ways has two meanings under one digest
   (CVE-2021-41190). */
static int decide_kind(const struct json *root, struct oci_manifest *out, struct err *err)
{
    static const char *const IMAGES[] = {OCI_TYPE_MANIFEST, DOCKER_TYPE_MANIFEST, NULL};
    static const char *const LISTS[] = {OCI_TYPE_INDEX, DOCKER_TYPE_INDEX, NULL};
    struct json member;
    bool has_layers = json_find(root, "layers", &member) || json_find(root, "config", &member);
    bool has_manifests = json_find(root, "manifests", &member);
    if (out->schema == 1) {
        return json_fail(
            root, err,
            "is a Docker manifest of schema 1, which is not supported: its digest does not cover "
            "the image's config; push the image again with a tool from after 2017");
    }
    if (has_layers && has_manifests) {
        return json_fail(root, err, "has layers and manifests: it would mean two things");
    }
    if (out->media_type.len == 0) {
        out->media_type = has_manifests ? STR_LIT(OCI_TYPE_INDEX) : STR_LIT(OCI_TYPE_MANIFEST);
    }
    out->is_index = str_eq_any(out->media_type, LISTS);
    return out->is_index || str_eq_any(out->media_type, IMAGES)
               ? 0
               : json_fail(root, err, "is of type \"%.*s\", which is not an image",
                           STR_ARG(str_sub(out->media_type, 0, 100)));
}

/* codec/json's errors say "manifest" and mean reperf's own; these documents are somebody else's. */
static int as_parse(struct err *err)
{
    err->code = err->code == ERR_MANIFEST ? ERR_PARSE : err->code;
    return -1;
}

int oci_manifest_parse(struct arena *arena, struct str text, const char *name,
                       struct oci_manifest *ret_manifest, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct oci_manifest out = {0};
    if (text.len > OCI_MANIFEST_BYTES_MAX) {
        return err_set(err, ERR_PARSE, "%s: %zu bytes, a manifest may have at most %u", name,
                       text.len, OCI_MANIFEST_BYTES_MAX);
    }
    if (json_parse(text, name, &doc, err) < 0 ||
        json_decode(&doc.root, arena, HEAD_ROWS, ARRAY_LEN(HEAD_ROWS), &out, err) < 0 ||
        decide_kind(&doc.root, &out, err) < 0 ||
        json_decode(&doc.root, arena, out.is_index ? INDEX_ROWS : IMAGE_ROWS,
                    out.is_index ? ARRAY_LEN(INDEX_ROWS) : ARRAY_LEN(IMAGE_ROWS), &out, err) < 0) {
        return as_parse(err);
    }
    *ret_manifest = out;
    return 0;
}

uint64_t oci_manifest_bytes(const struct oci_manifest *manifest)
{
    uint64_t bytes = manifest->config.size_bytes;
    for (size_t idx = 0; idx < manifest->n_layers; idx++) {
        bytes += manifest->layers[idx].size_bytes;
    }
    return bytes;
}

/* ---- config ---- */

struct rootfs {
    struct str *diff_ids;
    size_t n;
};

/* docker writes null for an image without layers. */
static const struct json_field ROOTFS_ROWS[] = {
    ROW_SAYS("type", "layers"),
    ROW_STRS("diff_ids", struct rootfs, diff_ids, n, JSON_REQUIRED | JSON_NULLABLE,
             .max = OCI_LAYERS_MAX),
    ROW_OTHERS,
};
static const struct json_field CONFIG_ROWS[] = {
    ROW_INSIDE("rootfs", ROOTFS_ROWS, JSON_REQUIRED),
    ROW_OTHERS,
};

int oci_config_parse(struct arena *arena, struct str text, size_t n_layers, const char *name,
                     uint8_t (**ret_diff_ids)[SHA256_BYTES], struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct rootfs rootfs = {0};
    if (json_parse(text, name, &doc, err) < 0 ||
        json_decode(&doc.root, arena, CONFIG_ROWS, ARRAY_LEN(CONFIG_ROWS), &rootfs, err) < 0) {
        return as_parse(err);
    }
    if (rootfs.n != n_layers) {
        return err_set(err, ERR_PARSE, "%s: the config has %zu diff_ids, the manifest %zu layers",
                       name, rootfs.n, n_layers);
    }
    uint8_t(*diff_ids)[SHA256_BYTES] = arena_alloc_array(arena, SHA256_BYTES, n_layers + 1, 1);
    for (size_t idx = 0; idx < n_layers; idx++) {
        if (oci_digest_parse(rootfs.diff_ids[idx], diff_ids[idx], err) < 0) {
            return err_wrap(err, "%s: diff_ids[%zu]", name, idx);
        }
    }
    *ret_diff_ids = diff_ids;
    return 0;
}

/* ---- platforms ---- */

static int no_platform(const struct oci_manifest *list, const char *name, struct err *err)
{
    CLEANUP(strbuf) struct strbuf there = STRBUF(200);
    for (size_t idx = 0; idx < list->n_manifests; idx++) {
        const struct oci_platform *platform = &list->manifests[idx].platform;
        if (platform->os.len && !str_eq_z(platform->os, "unknown")) {
            strbuf_printf(&there, "%s%.*s/%.*s%s%.*s", there.len ? ", " : "", STR_ARG(platform->os),
                          STR_ARG(platform->architecture), platform->variant.len ? "/" : "",
                          STR_ARG(platform->variant));
        }
    }
    return err_set(err, ERR_NOT_FOUND, "%s: not made for " OCI_PLATFORM "; there is %s", name,
                   there.len ? there.ptr : "no platform");
}

int oci_choose_platform(const struct oci_manifest *list, const char *name,
                        const struct oci_descriptor **ret_entry, struct err *err)
{
    const struct oci_descriptor *best = NULL;
    for (size_t idx = 0; idx < list->n_manifests; idx++) {
        const struct oci_descriptor *entry = &list->manifests[idx];
        /* No variant sorts first, and "v1" before "v2". */
        if (str_eq_z(entry->platform.os, OCI_OS) &&
            str_eq_z(entry->platform.architecture, OCI_ARCHITECTURE) &&
            (!best || str_cmp(entry->platform.variant, best->platform.variant) < 0)) {
            best = entry;
        }
    }
    if (!best) {
        return no_platform(list, name, err);
    }
    *ret_entry = best;
    return 0;
}
