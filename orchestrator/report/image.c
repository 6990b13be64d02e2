/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/image.h"

#include "codec/json_table.h"
#include "report/report_decode.h"

#define NULLABLE_FIELD (JSON_REQUIRED | JSON_NULLABLE)

struct image_text { /* as it stands in the file */
    struct image image;
    struct str name, tag, digest, fallback;
};

#define NAME    "[a-z0-9.-]+(:[0-9]{1,5})?(/[a-z0-9._-]+)*"
#define VERSION JSON_REQUIRED | JSON_NULLABLE | JSON_UNREAD, .form = &FORM_LINE
static const struct json_form IMAGE_NAME = {.pattern = "^" NAME "$", .max = 200};
static const struct json_form TAG = {.pattern = "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$"};
static const struct json_form BASE = {.pattern =
                                          "^" NAME "(:[A-Za-z0-9_.-]+)?(@sha256:[0-9a-f]{64})?$",
                                      .max = 255,
                                      .what = "an image's name, with its tag or digest"};
/* Who needs the image and what is in it is for people. */
static const struct json_field USE_ROWS[] = {
    ROW_ALONE("report", JSON_STR, JSON_REQUIRED, .form = &FORM_SLUG),
    ROW_ALONE("stack", JSON_STR, JSON_REQUIRED, .form = &FORM_SLUG),
};
static const struct json_field VERSION_ROWS[] = {
    ROW_ALONE("os", JSON_STR, VERSION),
    ROW_ALONE("python", JSON_STR, VERSION),
    ROW("cuda", struct image_text, image.cuda, NULLABLE_FIELD, .form = &FORM_LINE),
    ROW_ALONE("cudnn", JSON_STR, VERSION),
    ROW_ALONE("nccl", JSON_STR, VERSION),
    ROW_ALONE("framework", JSON_STR, VERSION),
    ROW_ALONE("library", JSON_STR, VERSION),
};
static const struct json_field ROWS[] = {
    ROW_NUMBER("schema_version", 1),
    ROW("id", struct image_text, image.id, JSON_REQUIRED, .form = &FORM_SLUG),
    ROW("name", struct image_text, name, JSON_REQUIRED, .form = &IMAGE_NAME),
    ROW("tag", struct image_text, tag, NULLABLE_FIELD, .form = &TAG),
    ROW("digest", struct image_text, digest, NULLABLE_FIELD, .form = &JSON_IMAGE_DIGEST),
    {.key = "used_for",
     .kind = JSON_LIST,
     .flags = JSON_REQUIRED | JSON_UNREAD | JSON_UNIQUE,
     .max = 64,
     ROW_ROWS(USE_ROWS)},
    ROW_INSIDE("versions", VERSION_ROWS, JSON_REQUIRED),
    ROW_STRS("instead", struct image_text, image.instead, image.n_instead, JSON_OMIT | JSON_UNIQUE,
             .max = 8, .form = &FORM_SLUG),
    ROW("base", struct image_text, image.base, NULLABLE_FIELD, .form = &BASE),
    ROW("fallback", struct image_text, fallback, NULLABLE_FIELD, .form = &BASE),
    ROW("replacement", struct image_text, image.replacement, NULLABLE_FIELD, .form = &FORM_LINE),
    ROW("dockerfile", struct image_text, image.has_dockerfile, JSON_REQUIRED),
    ROW("status", struct image_text, image.status, JSON_REQUIRED, .form = &FORM_LINE),
    ROW_INSIDE("source", SOURCE_ROWS, NULLABLE_FIELD | JSON_UNREAD),
};
const struct json_document IMAGE_DOCUMENT = {
    JSON_DOCUMENT("image.json", "a container image", ROWS),
    .about = "images/NAME/image.json; the meaning of each key is in images/README.md"};

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
    if (json_decode(root, arena, ROWS, ARRAY_LEN(ROWS), &text, err) < 0) {
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
