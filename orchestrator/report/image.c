/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/image.h"

#include "codec/json_table.h"
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
        ROW("schema_version", struct image_text, version, JSON_REQUIRED, .min = 1, .max = 1),
        ROW("id", struct image_text, image.id, JSON_REQUIRED),
        ROW("name", struct image_text, name, JSON_REQUIRED),
        ROW("tag", struct image_text, tag, NULLABLE_FIELD),
        ROW("digest", struct image_text, digest, NULLABLE_FIELD),
        ROW_ANY("used_for", JSON_REQUIRED),
        ROW_ANY("versions", JSON_REQUIRED),
        ROW("base", struct image_text, image.base, NULLABLE_FIELD),
        ROW("fallback", struct image_text, fallback, NULLABLE_FIELD),
        ROW("replacement", struct image_text, image.replacement, NULLABLE_FIELD),
        ROW("dockerfile", struct image_text, image.has_dockerfile, JSON_REQUIRED),
        ROW("status", struct image_text, image.status, JSON_REQUIRED),
        ROW_ANY("source", NULLABLE_FIELD),
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
