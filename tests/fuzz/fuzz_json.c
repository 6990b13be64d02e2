/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes: refused with a message, or a document that our writer gives back as a document that parses again. */
#include "codec/json.h"
#include "codec/json_override.h"
#include "tests/fuzz/fuzz.h"

/* Depth is capped by the parser. */
static void copy_out(struct json_out *out, const char *key, const struct json *at,
                     struct arena *arena)
{
    struct json item;
    struct err err = {0};
    struct str text;
    double number;
    bool is_on;
    if (json_is_object(at) || json_is_array(at)) {
        (json_is_object(at) ? jw_object : jw_array)(out, key);
        for (bool more = json_first(at, &item); more; more = json_next(&item)) {
            copy_out(out, item.key, &item, arena);
        }
        (json_is_object(at) ? jw_end_object : jw_end_array)(out);
    } else if (json_is_str(at)) {
        ASSERT(json_str(at, arena, &text, &err) == 0);
        jw_str(out, key, text);
    } else if (json_is_null(at)) {
        jw_null(out, key);
    } else if (json_f64(at, &number, &err) == 0) {
        jw_f64(out, key, number);
    } else {
        err = (struct err){0};
        ASSERT(json_bool(at, &is_on, &err) == 0);
        jw_bool(out, key, is_on);
    }
}

static void check_region(struct str text, struct str place, int64_t n_lines)
{
    struct json_region at = json_region_of(text, place);
    ASSERT(at.line >= 1 && at.line <= at.end_line && at.end_line <= n_lines);
    ASSERT(at.column >= 1 && (at.line < at.end_line || at.column <= at.end_column));
}

/* Whatever the text and the place: a part of the text. */
static void check_regions(struct str text)
{
    static const char *const PLACES[] = {"$",  "$.a", "$.a[1].b", "$[0][0]", "$.cases[3].cells[0]",
                                         "a]["};
    int64_t n = 1;
    for (size_t idx = 0; idx < text.len; idx++) {
        n += text.ptr[idx] == '\n';
    }
    for (size_t idx = 0; idx < ARRAY_LEN(PLACES); idx++) {
        check_region(text, str_of(PLACES[idx]), n);
    }
    check_region(text, text, n);
}

FUZZ(arena, text)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    CLEANUP(json_doc) struct json_doc again = {0};
    CLEANUP(strbuf) struct strbuf buf;
    struct json_out out;
    struct json root;
    struct err err = {0};
    strbuf_init(&buf, 1 << 26);
    check_regions(text);
    if (json_parse(text, "fuzz", &doc, &err) < 0) {
        ASSERT(err.code == ERR_MANIFEST && err.msg[0]);
        return;
    }
    root = doc.root;
    jw_begin(&out, &buf, text.len % 2 == 0);
    copy_out(&out, NULL, &root, arena);
    ASSERT(!buf.is_full);
    ASSERT(json_parse(strbuf_str(&buf), "again", &again, &err) == 0);
}
