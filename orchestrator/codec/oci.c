/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/oci.h"

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
    for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
        if (str_eq_z(type, ROWS[idx].type)) {
            return ROWS[idx].kind;
        }
    }
    return TYPE_OTHER;
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
    for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
        if (str_eq_z(type, ROWS[idx].type)) {
            *ret_packing = ROWS[idx].packing;
            return true;
        }
    }
    return false;
}

/* ---- members that may be absent or null ---- */

static int optional_str(const struct json *at, const char *key, struct arena *arena,
                        struct str *ret_value, struct err *err)
{
    struct json member;
    *ret_value = STR_EMPTY;
    if (!json_find(at, key, &member) || json_is_null(&member)) {
        return 0;
    }
    return json_str(&member, arena, ret_value, err);
}

static int read_digest(const struct json *at, struct arena *arena, uint8_t *ret_sha256,
                       struct err *err)
{
    struct err why = {0};
    struct str text;
    if (json_str(at, arena, &text, err) < 0) {
        return -1;
    }
    if (oci_digest_parse(text, ret_sha256, &why) < 0) {
        return json_fail(at, err, "%s", why.msg);
    }
    return 0;
}

/* ---- descriptors ---- */

static int read_platform(const struct json *at, struct arena *arena, struct oci_descriptor *out,
                         struct err *err)
{
    struct json platform;
    if (!json_find(at, "platform", &platform) || json_is_null(&platform)) {
        return 0;
    }
    if (optional_str(&platform, "os", arena, &out->platform.os, err) < 0 ||
        optional_str(&platform, "architecture", arena, &out->platform.architecture, err) < 0 ||
        optional_str(&platform, "variant", arena, &out->platform.variant, err) < 0) {
        return -1;
    }
    if (out->platform.variant.len == 0) {
        out->platform.variant = STR_EMPTY;
    }
    out->has_platform = out->platform.os.len > 0 && out->platform.architecture.len > 0;
    return 0;
}

static int read_ref_name(const struct json *at, struct arena *arena, struct oci_descriptor *out,
                         struct err *err)
{
    struct json annotations;
    if (!json_find(at, "annotations", &annotations) || json_is_null(&annotations)) {
        return 0;
    }
    return optional_str(&annotations, OCI_REF_NAME, arena, &out->ref_name, err);
}

static int read_descriptor(const struct json *at, struct arena *arena, uint64_t max_bytes,
                           struct oci_descriptor *ret_descriptor, struct err *err)
{
    struct oci_descriptor out = {0};
    struct json type, digest, size;
    int64_t size_bytes;
    if (json_member(at, "mediaType", &type, err) < 0 ||
        json_str(&type, arena, &out.media_type, err) < 0 ||
        json_member(at, "digest", &digest, err) < 0 ||
        read_digest(&digest, arena, out.sha256, err) < 0 ||
        json_member(at, "size", &size, err) < 0 ||
        json_i64(&size, 0, (int64_t)max_bytes, &size_bytes, err) < 0) {
        return -1;
    }
    if (out.media_type.len == 0 || out.media_type.len > TYPE_BYTES_MAX) {
        return json_fail(&type, err, "expected a media type of 1 to %d bytes", TYPE_BYTES_MAX);
    }
    out.size_bytes = (uint64_t)size_bytes;
    if (read_platform(at, arena, &out, err) < 0 || read_ref_name(at, arena, &out, err) < 0) {
        return -1;
    }
    *ret_descriptor = out;
    return 0;
}

/* ---- manifests ---- */

static int read_layers(const struct json *root, struct arena *arena, struct oci_manifest *out,
                       struct err *err)
{
    struct json list, item;
    uint64_t total_bytes = 0;
    if (json_member(root, "layers", &list, err) < 0 ||
        json_expect_array(&list, OCI_LAYERS_MAX, &out->n_layers, err) < 0) {
        return -1;
    }
    out->layers = arena_array(arena, struct oci_descriptor, out->n_layers);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        struct oci_descriptor *layer = &out->layers[item.idx];
        if (read_descriptor(&item, arena, OCI_LAYER_BYTES_MAX, layer, err) < 0) {
            return -1;
        }
        if (!packing_of(layer->media_type, &layer->packing)) {
            return json_fail(&item, err,
                             "layers of type \"%.*s\" are not supported: expected a tar, packed "
                             "with gzip, zstd or not at all",
                             STR_ARG(str_sub(layer->media_type, 0, 100)));
        }
        total_bytes += layer->size_bytes; /* 2^9 times 2^40 at most */
    }
    ASSERT(total_bytes <= OCI_LAYERS_MAX * OCI_LAYER_BYTES_MAX);
    return 0;
}

static int read_image(const struct json *root, struct arena *arena, struct oci_manifest *out,
                      struct err *err)
{
    struct json config;
    if (json_member(root, "config", &config, err) < 0 ||
        read_descriptor(&config, arena, OCI_CONFIG_BYTES_MAX, &out->config, err) < 0) {
        return -1;
    }
    if (!str_eq_z(out->config.media_type, OCI_TYPE_CONFIG) &&
        !str_eq_z(out->config.media_type, "application/vnd.docker.container.image.v1+json")) {
        return json_fail(&config, err, "is not a container image: its config is of type \"%.*s\"",
                         STR_ARG(str_sub(out->config.media_type, 0, 100)));
    }
    return read_layers(root, arena, out, err);
}

static int read_index(const struct json *root, struct arena *arena, struct oci_manifest *out,
                      struct err *err)
{
    struct json list, item;
    if (json_member(root, "manifests", &list, err) < 0 ||
        json_expect_array(&list, OCI_PLATFORMS_MAX, &out->n_manifests, err) < 0) {
        return -1;
    }
    out->manifests = arena_array(arena, struct oci_descriptor, out->n_manifests);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (read_descriptor(&item, arena, OCI_MANIFEST_BYTES_MAX, &out->manifests[item.idx], err) <
            0) {
            return -1;
        }
    }
    return 0;
}

/* The part before a ";" (charset and the like). */
static struct str bare_type(struct str type)
{
    int64_t semicolon = str_find(type, STR_LIT(";"));
    return str_trim(semicolon >= 0 ? str_sub(type, 0, (size_t)semicolon) : type);
}

/* The kind must be unambiguous: a document that could be read both ways has two meanings under one digest
   (CVE-2021-41190). */
static int decide_kind(const struct json *root, struct arena *arena, struct str content_type,
                       struct oci_manifest *out, struct err *err)
{
    struct json member;
    bool has_layers = json_find(root, "layers", &member) || json_find(root, "config", &member);
    bool has_manifests = json_find(root, "manifests", &member);
    struct str said = bare_type(content_type);
    enum type_kind kind;
    if (optional_str(root, "mediaType", arena, &out->media_type, err) < 0) {
        return -1;
    }
    if (has_layers && has_manifests) {
        return json_fail(root, err, "has layers and manifests: it would mean two things");
    }
    if (out->media_type.len == 0) {
        out->media_type = kind_of(said) != TYPE_OTHER ? str_dup(arena, said)
                          : has_manifests             ? STR_LIT(OCI_TYPE_INDEX)
                                                      : STR_LIT(OCI_TYPE_MANIFEST);
    }
    kind = kind_of(out->media_type);
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

static int check_schema(const struct json *root, struct str content_type, struct err *err)
{
    struct json version;
    int64_t schema;
    if (json_member(root, "schemaVersion", &version, err) < 0 ||
        json_i64(&version, 1, 2, &schema, err) < 0) {
        return -1;
    }
    if (schema == 1 || kind_of(bare_type(content_type)) == TYPE_SCHEMA1) {
        return json_fail(
            root, err,
            "is a Docker manifest of schema 1, which is not supported: its digest does not cover "
            "the image's config; push the image again with a tool from after 2017");
    }
    return 0;
}

static int parse_manifest(struct arena *arena, struct str text, struct str content_type,
                          const char *name, struct oci_manifest *ret_manifest, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct oci_manifest out = {0};
    struct json root;
    if (text.len > OCI_MANIFEST_BYTES_MAX) {
        return err_set(err, ERR_PARSE, "%s: %zu bytes, a manifest may have at most %u", name,
                       text.len, OCI_MANIFEST_BYTES_MAX);
    }
    if (json_parse(text, name, &doc, err) < 0) {
        return -1;
    }
    root = json_root(&doc);
    if (!json_is_object(&root)) {
        return json_fail(&root, err, "expected an object");
    }
    if (check_schema(&root, content_type, err) < 0 ||
        decide_kind(&root, arena, content_type, &out, err) < 0) {
        return -1;
    }
    if ((out.is_index ? read_index : read_image)(&root, arena, &out, err) < 0) {
        return -1;
    }
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

static int read_diff_ids(const struct json *root, struct arena *arena, struct oci_config *out,
                         struct err *err)
{
    struct json rootfs, type, list, item;
    struct str text;
    if (json_member(root, "rootfs", &rootfs, err) < 0 ||
        json_member(&rootfs, "type", &type, err) < 0 || json_str(&type, arena, &text, err) < 0) {
        return -1;
    }
    if (!str_eq_z(text, "layers")) {
        return json_fail(&type, err, "expected \"layers\", found \"%.*s\"",
                         STR_ARG(str_sub(text, 0, 80)));
    }
    if (json_find(&rootfs, "diff_ids", &list) && json_is_null(&list)) {
        return 0; /* docker writes this for an image without layers */
    }
    if (json_member(&rootfs, "diff_ids", &list, err) < 0 ||
        json_expect_array(&list, OCI_LAYERS_MAX, &out->n_diff_ids, err) < 0) {
        return -1;
    }
    out->diff_ids = arena_alloc_array(arena, SHA256_BYTES, out->n_diff_ids, 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (read_digest(&item, arena, out->diff_ids[item.idx], err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int parse_config(struct arena *arena, struct str text, size_t n_layers, const char *name,
                        struct oci_config *ret_config, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct oci_config out = {0};
    struct json root, os, architecture;
    if (text.len > OCI_CONFIG_BYTES_MAX) {
        return err_set(err, ERR_PARSE, "%s: %zu bytes, a config may have at most %u", name,
                       text.len, OCI_CONFIG_BYTES_MAX);
    }
    if (json_parse(text, name, &doc, err) < 0) {
        return -1;
    }
    root = json_root(&doc);
    if (!json_is_object(&root)) {
        return json_fail(&root, err, "expected an object");
    }
    if (json_member(&root, "os", &os, err) < 0 || json_str(&os, arena, &out.platform.os, err) < 0 ||
        json_member(&root, "architecture", &architecture, err) < 0 ||
        json_str(&architecture, arena, &out.platform.architecture, err) < 0 ||
        optional_str(&root, "variant", arena, &out.platform.variant, err) < 0 ||
        read_diff_ids(&root, arena, &out, err) < 0) {
        return -1;
    }
    if (out.n_diff_ids != n_layers) {
        return err_set(err, ERR_PARSE, "%s: the config has %zu diff_ids, the manifest %zu layers",
                       name, out.n_diff_ids, n_layers);
    }
    *ret_config = out;
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

int oci_platform_parse(struct arena *arena, struct str text, struct oci_platform *ret_platform,
                       struct err *err)
{
    struct str rest = text;
    struct str parts[3] = {STR_EMPTY, STR_EMPTY, STR_EMPTY};
    struct str part;
    size_t n = 0;
    while (str_next(&rest, '/', &part)) {
        if (n == ARRAY_LEN(parts) || part.len == 0 || part.len > 32) {
            n = 0;
            break;
        }
        parts[n++] = str_dup(arena, part);
    }
    if (n < 2) {
        return err_set(err, ERR_USAGE,
                       "platform \"%.*s\": expected OS/ARCHITECTURE, for example linux/amd64",
                       STR_ARG(str_sub(text, 0, 100)));
    }
    *ret_platform = (struct oci_platform){parts[0], parts[1], parts[2]};
    return 0;
}

char *oci_platform_text(struct arena *arena, const struct oci_platform *platform)
{
    return arena_printf(arena, "%.*s/%.*s%s%.*s", STR_ARG(platform->os),
                        STR_ARG(platform->architecture), platform->variant.ptr ? "/" : "",
                        STR_ARG(platform->variant));
}

static bool is_of(const struct oci_descriptor *entry, const struct oci_platform *want)
{
    return entry->has_platform && str_eq(entry->platform.os, want->os) &&
           str_eq(entry->platform.architecture, want->architecture) &&
           (!want->variant.ptr || str_eq(entry->platform.variant, want->variant));
}

static int no_platform(const struct oci_manifest *list, const struct oci_platform *want,
                       const char *name, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf there;
    strbuf_init(&there, 200);
    for (size_t idx = 0; idx < list->n_manifests; idx++) {
        const struct oci_descriptor *entry = &list->manifests[idx];
        if (entry->has_platform && !str_eq_z(entry->platform.os, "unknown")) {
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
