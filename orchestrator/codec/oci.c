/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/oci.h"

#include "codec/json_table.h"

#define TYPE_BYTES_MAX 255

enum type_kind { TYPE_OTHER, TYPE_MANIFEST, TYPE_INDEX, TYPE_SCHEMA1 };

static enum type_kind kind_of(struct str type)
{
    static const struct {
        const char *type;
        enum type_kind kind;
    } ROWS[] = {
        {OCI_TYPE_MANIFEST, TYPE_MANIFEST},
        {DOCKER_TYPE_MANIFEST, TYPE_MANIFEST},
        {OCI_TYPE_INDEX, TYPE_INDEX},
        {DOCKER_TYPE_INDEX, TYPE_INDEX},
        {"application/vnd.docker.distribution.manifest.v1+json", TYPE_SCHEMA1},
        {"application/vnd.docker.distribution.manifest.v1+prettyjws", TYPE_SCHEMA1},
    };
    const typeof(ROWS[0]) *found = Z_NAMED(ROWS, ARRAY_LEN(ROWS), type, type);
    return found ? found->kind : TYPE_OTHER;
}

/* Layers that can be kept and loaded. Windows layers that must not be redistributed (foreign, nondistributable) are not among
   them. */
static bool packing_of(struct str type, enum oci_packing *ret_packing)
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
    const typeof(ROWS[0]) *found = Z_NAMED(ROWS, ARRAY_LEN(ROWS), type, type);
    *ret_packing = found ? found->packing : *ret_packing;
    return found;
}

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

static int check_descriptor(const struct json *at, const struct oci_descriptor *descriptor,
                            uint64_t max_bytes, struct err *err)
{
    size_t len = descriptor->media_type.len;
    if (len == 0 || len > TYPE_BYTES_MAX) {
        return json_fail(at, err, "mediaType: expected 1 to %d bytes", TYPE_BYTES_MAX);
    }
    return descriptor->size_bytes <= max_bytes
               ? 0
               : json_fail(at, err, "size: expected at most %" PRIu64 ", found %" PRIu64, max_bytes,
                           descriptor->size_bytes);
}

static int check_config(const struct json *at, struct arena *arena UNUSED, void *out,
                        struct err *err)
{
    const struct oci_descriptor *config = out;
    if (check_descriptor(at, config, OCI_CONFIG_BYTES_MAX, err) < 0) {
        return -1;
    }
    return str_eq_z(config->media_type, OCI_TYPE_CONFIG) ||
                   str_eq_z(config->media_type, "application/vnd.docker.container.image.v1+json")
               ? 0
               : json_fail(at, err, "is not a container image: its config is of type \"%.*s\"",
                           STR_ARG(str_sub(config->media_type, 0, 100)));
}

static int check_layer(const struct json *at, struct arena *arena UNUSED, void *out,
                       struct err *err)
{
    struct oci_descriptor *layer = out;
    if (check_descriptor(at, layer, OCI_LAYER_BYTES_MAX, err) < 0) {
        return -1;
    }
    return packing_of(layer->media_type, &layer->packing)
               ? 0
               : json_fail(at, err,
                           "layers of type \"%.*s\" are not supported: expected a tar, packed "
                           "with gzip, zstd or not at all",
                           STR_ARG(str_sub(layer->media_type, 0, 100)));
}

static int check_entry(const struct json *at, struct arena *arena UNUSED, void *out,
                       struct err *err)
{
    return check_descriptor(at, out, OCI_MANIFEST_BYTES_MAX, err);
}

/* ---- manifests ---- */

static const struct json_field HEAD_ROWS[] = {
    ROW("schemaVersion", struct oci_manifest, schema, JSON_REQUIRED, .min = 1, .max = 2),
    ROW("mediaType", struct oci_manifest, media_type, JSON_NULLABLE),
    ROW_OTHERS,
};
static const struct json_field IMAGE_ROWS[] = {
    ROW("schemaVersion", struct oci_manifest, schema, JSON_REQUIRED, .min = 2, .max = 2),
    ROW("mediaType", struct oci_manifest, media_type, JSON_NULLABLE),
    ROW_OBJECT("config", struct oci_manifest, config, DESCRIPTOR_ROWS, JSON_REQUIRED,
               .check = check_config),
    ROW_LIST("layers", struct oci_manifest, layers, n_layers, DESCRIPTOR_ROWS, JSON_REQUIRED,
             .max = OCI_LAYERS_MAX, .check = check_layer),
    ROW_OTHERS,
};
static const struct json_field INDEX_ROWS[] = {
    ROW_LIST("manifests", struct oci_manifest, manifests, n_manifests, DESCRIPTOR_ROWS,
             JSON_REQUIRED, .max = OCI_PLATFORMS_MAX, .check = check_entry),
    ROW_OTHERS,
};

/* The part before a ";" (charset and the like). */
static struct str bare_type(struct str type)
{
    int64_t semicolon = str_find(type, STR_LIT(";"));
    return str_trim(semicolon >= 0 ? str_sub(type, 0, (size_t)semicolon) : type);
}

/* The kind must be unambiguous: a document that could be read both ways has two meanings under one digest
   (CVE-2021-41190). */
static int decide_kind(const struct json *root, struct str said, struct oci_manifest *out,
                       struct err *err)
{
    struct json member;
    bool has_layers = json_find(root, "layers", &member) || json_find(root, "config", &member);
    bool has_manifests = json_find(root, "manifests", &member);
    if (out->schema == 1 || kind_of(said) == TYPE_SCHEMA1) {
        return json_fail(
            root, err,
            "is a Docker manifest of schema 1, which is not supported: its digest does not cover "
            "the image's config; push the image again with a tool from after 2017");
    }
    if (has_layers && has_manifests) {
        return json_fail(root, err, "has layers and manifests: it would mean two things");
    }
    if (out->media_type.len == 0) {
        out->media_type = kind_of(said) != TYPE_OTHER ? said
                          : has_manifests             ? STR_LIT(OCI_TYPE_INDEX)
                                                      : STR_LIT(OCI_TYPE_MANIFEST);
    }
    enum type_kind kind = kind_of(out->media_type);
    if (kind == TYPE_OTHER) {
        return json_fail(root, err, "is of type \"%.*s\", which is not an image",
                         STR_ARG(str_sub(out->media_type, 0, 100)));
    }
    if (kind_of(said) != TYPE_OTHER && kind_of(said) != kind) {
        return json_fail(root, err, "the server says type \"%.*s\", the document says \"%.*s\"",
                         STR_ARG(str_sub(said, 0, 100)), STR_ARG(out->media_type));
    }
    out->is_index = kind == TYPE_INDEX;
    return 0;
}

static int parse_manifest(struct arena *arena, struct str text, struct str content_type,
                          const char *name, struct oci_manifest *ret_manifest, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct oci_manifest out = {0};
    if (text.len > OCI_MANIFEST_BYTES_MAX) {
        return err_set(err, ERR_PARSE, "%s: %zu bytes, a manifest may have at most %u", name,
                       text.len, OCI_MANIFEST_BYTES_MAX);
    }
    if (json_parse(text, name, &doc, err) < 0) {
        return -1;
    }
    struct json root = json_root(&doc);
    if (json_decode(&root, arena, HEAD_ROWS, ARRAY_LEN(HEAD_ROWS), &out, err) < 0 ||
        decide_kind(&root, str_dup(arena, bare_type(content_type)), &out, err) < 0) {
        return -1;
    }
    struct str type = out.media_type;
    if ((out.is_index
             ? json_decode(&root, arena, INDEX_ROWS, ARRAY_LEN(INDEX_ROWS), &out, err)
             : json_decode(&root, arena, IMAGE_ROWS, ARRAY_LEN(IMAGE_ROWS), &out, err)) < 0) {
        return -1;
    }
    out.media_type = type; /* which the document may leave to the server */
    *ret_manifest = out;
    return 0;
}

/* codec/json's errors say "manifest" and mean reperf's own; these documents are somebody else's. */
static int as_parse(struct err *err)
{
    if (err->code == ERR_MANIFEST) {
        err->code = ERR_PARSE;
    }
    return -1;
}

int oci_manifest_parse(struct arena *arena, struct str text, struct str content_type,
                       const char *name, struct oci_manifest *ret_manifest, struct err *err)
{
    return parse_manifest(arena, text, content_type, name, ret_manifest, err) < 0 ? as_parse(err)
                                                                                  : 0;
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

struct config_text {
    struct oci_platform platform;
    struct str *diff_ids;
    size_t n;
};

/* docker writes null for an image without layers. */
static const struct json_field ROOTFS_ROWS[] = {
    ROW_SAYS("type", "layers"),
    ROW_STRS("diff_ids", struct config_text, diff_ids, n, JSON_REQUIRED | JSON_NULLABLE,
             .max = OCI_LAYERS_MAX),
    ROW_OTHERS,
};
static const struct json_field CONFIG_ROWS[] = {
    ROW("os", struct config_text, platform.os, JSON_REQUIRED),
    ROW("architecture", struct config_text, platform.architecture, JSON_REQUIRED),
    ROW("variant", struct config_text, platform.variant, JSON_NULLABLE),
    ROW_INSIDE("rootfs", ROOTFS_ROWS, JSON_REQUIRED),
    ROW_OTHERS,
};

static int parse_config(struct arena *arena, struct str text, size_t n_layers, const char *name,
                        struct oci_config *ret_config, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct config_text read = {0};
    if (text.len > OCI_CONFIG_BYTES_MAX) {
        return err_set(err, ERR_PARSE, "%s: %zu bytes, a config may have at most %u", name,
                       text.len, OCI_CONFIG_BYTES_MAX);
    }
    if (json_parse(text, name, &doc, err) < 0) {
        return -1;
    }
    struct json root = json_root(&doc);
    if (json_decode(&root, arena, CONFIG_ROWS, ARRAY_LEN(CONFIG_ROWS), &read, err) < 0) {
        return -1;
    }
    if (read.n != n_layers) {
        return err_set(err, ERR_PARSE, "%s: the config has %zu diff_ids, the manifest %zu layers",
                       name, read.n, n_layers);
    }
    *ret_config = (struct oci_config){
        read.platform, arena_alloc_array(arena, SHA256_BYTES, read.n + 1, 1), read.n};
    for (size_t idx = 0; idx < read.n; idx++) {
        if (oci_digest_parse(read.diff_ids[idx], ret_config->diff_ids[idx], err) < 0) {
            return err_wrap(err, "%s: diff_ids[%zu]", name, idx);
        }
    }
    return 0;
}

int oci_config_parse(struct arena *arena, struct str text, size_t n_layers, const char *name,
                     struct oci_config *ret_config, struct err *err)
{
    return parse_config(arena, text, n_layers, name, ret_config, err) < 0 ? as_parse(err) : 0;
}

/* ---- platforms ---- */

struct oci_platform oci_platform_default(void)
{
    return (struct oci_platform){STR_LIT("linux"), STR_LIT("amd64"), STR_EMPTY};
}

char *oci_platform_text(struct arena *arena, const struct oci_platform *platform)
{
    return arena_printf(arena, "%.*s/%.*s%s%.*s", STR_ARG(platform->os),
                        STR_ARG(platform->architecture), platform->variant.len ? "/" : "",
                        STR_ARG(platform->variant));
}

static bool is_of(const struct oci_descriptor *entry, const struct oci_platform *want)
{
    return str_eq(entry->platform.os, want->os) &&
           str_eq(entry->platform.architecture, want->architecture) &&
           (!want->variant.ptr || str_eq(entry->platform.variant, want->variant));
}

static int no_platform(const struct oci_manifest *list, const struct oci_platform *want,
                       const char *name, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf there = STRBUF(200);
    for (size_t idx = 0; idx < list->n_manifests; idx++) {
        const struct oci_descriptor *entry = &list->manifests[idx];
        if (entry->platform.os.len && !str_eq_z(entry->platform.os, "unknown")) {
            strbuf_printf(&there, "%s%s", there.len ? ", " : "",
                          oci_platform_text(&arena, &entry->platform));
        }
    }
    return err_set(err, ERR_NOT_FOUND, "%s: not made for %s; there is %s", name,
                   oci_platform_text(&arena, want), there.len ? there.ptr : "no platform");
}

int oci_choose_platform(const struct oci_manifest *list, const struct oci_platform *want,
                        const char *name, const struct oci_descriptor **ret_entry, struct err *err)
{
    const struct oci_descriptor *best = NULL;
    for (size_t idx = 0; idx < list->n_manifests; idx++) {
        const struct oci_descriptor *entry = &list->manifests[idx];
        /* No variant sorts first, and "v1" before "v2". */
        if (is_of(entry, want) &&
            (!best || str_cmp(entry->platform.variant, best->platform.variant) < 0)) {
            best = entry;
        }
    }
    if (!best) {
        return no_platform(list, want, name, err);
    }
    *ret_entry = best;
    return 0;
}
