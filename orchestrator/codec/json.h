/* SPDX-License-Identifier: Apache-2.0 */
/* Strict JSON: RFC 8259 and nothing more, keys case-sensitive, a duplicate or unknown key is an error, nothing after the
   document, whole numbers only up to 2^53. Errors read "file:$.path: expected ..., found ...". Output keys keep the order in
   which they were written: equal data, equal bytes. A struct json is a place in a document; it borrows from the document
   and from the cursor it was reached from, so a child must not outlive its parent cursor. */
#pragma once

#include "base/strbuf.h"

#define JSON_TEXT_MAX  (16u << 20)
#define JSON_DEPTH_MAX 64

struct patterns;
struct json {
    const char *name; /* borrowed: the file's name for messages */
    const void *node;
    const struct json *parent;
    const char *key; /* in an object */
    size_t idx;      /* in an array */
    /* Of the root only. */
    const void *context; /* borrowed; passed to decoders of this document, set after json_parse */
    struct patterns *patterns; /* of forms that its texts have; in the document's arena */
};

struct json_doc {
    struct json root; /* must stay where it is while there are cursors */
    struct arena arena;
};

/* ERR_MANIFEST with line:column for bad grammar, with the path for a duplicate key. */
MUST_CHECK int json_parse(struct str text, const char *name, struct json_doc *ret_doc,
                          struct err *err);
/* Where a value in a text ends that begins there, or after blanks; the text's end where it is none. */
size_t json_end_of(struct str text, size_t at);
/* A document's bytes; whatever is wrong with the file is ERR_MANIFEST. */
MUST_CHECK int json_read_text(struct arena *arena, const char *path, struct str *ret_text,
                              struct err *err);
MUST_CHECK int json_read_file(const char *path, struct json_doc *ret_doc,
                              struct err *err); /* at most JSON_TEXT_MAX */
void json_doc_release(struct json_doc *doc);
CLEANUP_BY(json_doc, struct json_doc, json_doc_release);
/* The document's context, from any place in it. */
const void *json_context(const struct json *at);
struct patterns *json_patterns(const struct json *at);

/* "file:$.a[3].b: message". Always ERR_MANIFEST; returns -1. */
MUST_CHECK int json_fail(const struct json *at, struct err *err, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* "an array", "null": for messages. */
const char *json_kind_name(const struct json *at);
bool json_is_null(const struct json *at);
bool json_is_object(const struct json *at);
bool json_is_array(const struct json *at);
bool json_is_str(const struct json *at);

/* Values; strings are copied into the arena, NUL-terminated there. */
MUST_CHECK int json_str(const struct json *at, struct arena *arena, struct str *ret_value,
                        struct err *err);
MUST_CHECK int json_i64(const struct json *at, int64_t min, int64_t max, int64_t *ret_value,
                        struct err *err);
MUST_CHECK int json_f64(const struct json *at, double *ret_value, struct err *err);
MUST_CHECK int json_bool(const struct json *at, bool *ret_value, struct err *err);

/* Members. json_find is false when absent (a member that is null is there). */
bool json_find(const struct json *at, const char *key, struct json *ret_member);
MUST_CHECK int json_member(const struct json *at, const char *key, struct json *ret_member,
                           struct err *err);

/* Walks an array or the members of an object, in order:
   for (bool more = json_first(&list, &item); more; more = json_next(&item)) ... */
MUST_CHECK int json_expect_array(const struct json *at, size_t max, size_t *ret_n, struct err *err);
bool json_first(const struct json *at, struct json *ret_item);
bool json_next(struct json *item);

/* An array of strings into the arena. */
MUST_CHECK int json_str_list(const struct json *at, struct arena *arena, size_t max,
                             struct str **ret_items, size_t *ret_n, struct err *err);

/* Writing, into a strbuf. key is NULL inside arrays and for the document itself. */
struct json_out {
    struct strbuf *buf; /* borrowed */
    int depth;
    bool has_item[JSON_DEPTH_MAX + 8]; /* what was parsed may be written somewhat deeper */
    bool is_compact;                   /* no line breaks */
};
void jw_begin(struct json_out *out, struct strbuf *buf, bool is_compact);
void jw_object(struct json_out *out, const char *key);
void jw_array(struct json_out *out, const char *key);
void jw_end_object(struct json_out *out);
void jw_end_array(struct json_out *out);
void jw_str(struct json_out *out, const char *key,
            struct str value); /* ptr NULL writes null; bad UTF-8 becomes U+FFFD */
void jw_z(struct json_out *out, const char *key, const char *value); /* NULL writes null */
void jw_words(struct json_out *out, const char *key, const char *const *words, size_t n);
void jw_i64(struct json_out *out, const char *key, int64_t value); /* beyond 2^53: as a string */
void jw_f64(struct json_out *out, const char *key, double value);  /* NaN and infinity write null */
void jw_bool(struct json_out *out, const char *key, bool value);
void jw_null(struct json_out *out, const char *key);
/* Text that is JSON already. */
void jw_raw(struct json_out *out, const char *key, struct str json);
/* A part of a foreign document, as it stands there but with ' for ": members of what is open, or items. Each ? is the next
   argument as a text (ptr NULL: null), each # the next as JSON already. What it opens and does not end stays open, and what was
   open before may be ended: jw_fill(out, "'hasPart': [", NULL); ... JW(out, "], 'mainEntity': {'@id': ?}", id). */
void jw_fill(struct json_out *out, const char *text, const struct str *args);
#define JW(out, text, ...) jw_fill(out, text, (const struct str[]){__VA_ARGS__})
/* Anything that was parsed; its depth is at most JSON_DEPTH_MAX (json_parse). */
void jw_json(struct json_out *out, const char *key, const struct json *at);
