/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/image.h"

#include "report/report_decode.h"

#define NULLABLE_FIELD (JSON_REQUIRED | JSON_NULLABLE)

struct image_text { /* as it stands in the file */
    struct image image;
    struct str name, tag, digest, fallback;
    int64_t version;
};

static int decode_fields(const struct json *root, struct arena *arena, struct image_text *text,
                         struct err *err)
{
    static const struct json_field FIELDS[] = {
        {"schema_version", JSON_I64, JSON_REQUIRED, offsetof(struct image_text, version), 1, 1},
        {"id", JSON_STR, JSON_REQUIRED, offsetof(struct image_text, image.id), 0, 0},
        {"name", JSON_STR, JSON_REQUIRED, offsetof(struct image_text, name), 0, 0},
        {"tag", JSON_STR, NULLABLE_FIELD, offsetof(struct image_text, tag), 0, 0},
        {"digest", JSON_STR, NULLABLE_FIELD, offsetof(struct image_text, digest), 0, 0},
        {"used_for", JSON_ANY, JSON_REQUIRED, 0, 0, 0},
        {"versions", JSON_ANY, JSON_REQUIRED, 0, 0, 0},
        {"base", JSON_STR, NULLABLE_FIELD, offsetof(struct image_text, image.base), 0, 0},
        {"fallback", JSON_STR, NULLABLE_FIELD, offsetof(struct image_text, fallback), 0, 0},
        {"replacement", JSON_STR, NULLABLE_FIELD, offsetof(struct image_text, image.replacement), 0,
         0},
        {"dockerfile", JSON_BOOL, JSON_REQUIRED, offsetof(struct image_text, image.has_dockerfile),
         0, 0},
        {"status", JSON_STR, JSON_REQUIRED, offsetof(struct image_text, image.status), 0, 0},
        {"source", JSON_ANY, NULLABLE_FIELD, 0, 0, 0},
    };
    if (json_decode(root, arena, FIELDS, ARRAY_LEN(FIELDS), text, err) < 0 ||
        check_slug(root, "id", text->image.id, err) < 0 ||
        check_line(root, "base", text->image.base, err) < 0 ||
        check_line(root, "replacement", text->image.replacement, err) < 0 ||
        check_line(root, "status", text->image.status, err) < 0) {
        return -1;
    }
    return 0;
}

static int read_ref(const struct json *root, const char *key, struct arena *arena, const char *text,
                    struct oci_ref *ret_ref, struct err *err)
{
    struct err why = {0};
    if (oci_ref_parse(arena, str_of(text), ret_ref, &why) < 0) {
        return json_fail(root, err, "%s: %s", key, why.msg);
    }
    return 0;
}

int image_decode(const struct json *root, struct arena *arena, struct image *ret_image,
                 struct err *err)
{
    struct image_text text = {0};
    struct image *image = &text.image;
    if (decode_fields(root, arena, &text, err) < 0) {
        return -1;
    }
    if (read_ref(root, "name", arena,
                 arena_printf(arena, "%s%s%.*s%s%.*s", text.name.ptr, text.tag.ptr ? ":" : "",
                              STR_ARG(text.tag), text.digest.ptr ? "@" : "", STR_ARG(text.digest)),
                 &image->ref, err) < 0) {
        return -1;
    }
    image->is_local = !text.tag.ptr && !text.digest.ptr;
    image->has_fallback = text.fallback.ptr != NULL;
    if (image->has_fallback &&
        read_ref(root, "fallback", arena, text.fallback.ptr, &image->fallback, err) < 0) {
        return -1;
    }
    if (image->has_fallback && !image->fallback.tag.ptr && !image->fallback.has_digest) {
        return json_fail(root, err, "fallback: expected a tag or a digest");
    }
    *ret_image = *image;
    return 0;
}
