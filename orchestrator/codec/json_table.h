/* SPDX-License-Identifier: Apache-2.0 */
/* A document is written once, as a table: a row for each member of an object says its key, its type, where the value is in a
   struct, and what may stand there. json_decode reads a document by the table, json_encode writes it, and json_schema
   says as JSON Schema what json_decode accepts. Tables are constant; any thread may use them.

   Theory of operation. A row is made by a ROW macro, which takes the kind from the member's C type; flags come next, then any
   other member of struct json_field by its name:

       static const struct json_field NEED_ROWS[] = {
           ROW("what", struct need, what, JSON_REQUIRED),
           ROW("bytes", struct need, size_bytes, JSON_REQUIRED | JSON_NULLABLE | JSON_MINUS),
           ROW_STRS("hosts", struct need, hosts, n_hosts, JSON_OMIT, .max = 8),
       };
       ... ROW_LIST("needs", struct plan, needs, n_needs, NEED_ROWS, JSON_REQUIRED) ...

   The invariants:
   1. Rows are in the order in which members are written; equal structs give equal bytes.
   2. Each type has a value that stands for "none": a text without ptr, a number that is NaN or, with JSON_MINUS, -1 or,
      nullable, below its min, a word whose name is NULL, an empty list, an object whose first row holds none. With JSON_OMIT
      "none" is written as nothing at all, with JSON_NULLABLE as null; a list without JSON_OMIT is written as []. 0, false and the
      first word are "none" too where JSON_OMIT asks.
   3. Reading absent or null gives "none", so that decode(encode(x)) is x for every x that decode can give.
   4. A row without JSON_REQUIRED and JSON_OMIT is always written and may be absent: documents from before it was added.
   5. A ROW_OUT row is for readers of the document: what stands there is not read back.
   6. What rows cannot say is a function: `check` after an object's rows, `form` for a text, `get` and `put` for a value. What
      such a function demands beyond the type is written beside it as the words of a schema. */
#pragma once

#include "codec/json.h"

#define JSON_FIELDS_MAX 64 /* of an object, those of ROW_HERE included */
#define JSON_LIST_MAX   (1 << 20)

enum json_kind {
    JSON_ANY,    /* by get and put; without get anything is accepted */
    JSON_STR,    /* struct str; one of `names`, if it has some */
    JSON_Z,      /* const char *, only written */
    JSON_I64,    /* int64_t, from min to max; if both are 0: from 0 to 2^53 */
    JSON_SIZE,   /* size_t, likewise */
    JSON_INT,    /* int, likewise */
    JSON_F64,    /* double */
    JSON_BOOL,   /* bool */
    JSON_WORD,   /* an enum or a bool by its names */
    JSON_CONST,  /* the whole number min, or the text `is` if there is one; it is in no struct */
    JSON_HEX,    /* max bytes as lower-case hex, and a bool at n_offset: they are there */
    JSON_OBJECT, /* a struct within the struct, or the struct itself, by rows */
    JSON_HERE,   /* likewise, its members among those of this object */
    JSON_LIST,   /* a pointer to structs and a size_t at n_offset, by rows; min to max items */
    JSON_STRS,   /* a pointer to struct str, likewise */
    JSON_ZS,     /* const char *const *, ended by NULL; NULL is an empty list; only written */
    JSON_PAIRS   /* an object of any names: a pointer to pairs of struct str, likewise */
};

enum {
    JSON_REQUIRED = 1,
    JSON_NULLABLE = 2, /* of JSON_PAIRS: their values may be null */
    JSON_OMIT = 4,
    JSON_MINUS = 8,   /* -1 is "none" */
    JSON_BLANK = 16,  /* empty text is "none" too */
    JSON_TEXT = 32,   /* "none" is written as "" */
    JSON_UNREAD = 64, /* ROW_OUT */
    JSON_UNIQUE =
        128, /* of JSON_STRS: no text is there twice; of JSON_LIST: no text of the first row */
    JSON_OTHERS = 256 /* ROW_OTHERS */
};

/* A form of text. Without `what`, pattern and max are what the writer keeps to, and readers may rely on. */
struct json_form {
    const char *pattern; /* ECMA 262, as JSON Schema has it; or NULL */
    size_t max;          /* characters; 0: as many as there are */
    bool is_filled;      /* not empty */
    bool (*is_valid)(struct str value);
    const char *what; /* is expected where pattern, max or is_valid says no */
    /* at is the object or list, key the row's. */
    int (*check)(const struct json *at, const char *key, struct str value, struct err *err);
};

extern const struct json_form JSON_FILLED, JSON_SHA256, JSON_IMAGE_DIGEST, JSON_COMMIT;

struct json_field {
    const char *key;
    enum json_kind kind;
    unsigned flags;
    size_t offset;
    size_t n_offset;
    /* 1 + offset of pointers to follow first, only when writing; NULL there is "none". */
    size_t via[2];
    int64_t min, max;
    const struct json_field *rows;
    size_t n_rows, item_size;
    const void *blank;        /* of a list: what an item is before it is read; NULL: zero */
    const char *const *names; /* NULL among them: no word */
    size_t n_names;
    const char *is;
    const struct json_form *form; /* of JSON_STR, JSON_STRS, values of JSON_PAIRS */
    /* Of an object or an item, after its rows: out is the struct. */
    int (*check)(const struct json *at, struct arena *arena, void *out, struct err *err);
    /* Of a list, once read: the struct that the row is of; of JSON_ANY, and of pairs once read, what is at the row's offset. */
    int (*get)(const struct json *at, struct arena *arena, void *out, struct err *err);
    void (*put)(struct json_out *out, const char *key, const void *of);
    /* The list of words that may stand there; of names; of a list: rules of its items. */
    const char *vocabulary;
    const char *about;  /* description in the schema */
    const char *schema; /* its further members in the schema, as JSON: "\"minimum\": 1" */
    const char *rules;  /* the same of an item, or of a value that is not null */
};

/* clang-format off */
#define JSON_KIND(expr)                                                                            \
    _Generic((expr), struct str: JSON_STR, const char *: JSON_Z, const char *const *: JSON_ZS,     \
             int64_t: JSON_I64, size_t: JSON_SIZE, int: JSON_INT, double: JSON_F64,                \
             bool: JSON_BOOL)
#define JSON_MEMBER(T, member) (((T *)NULL)->member)
#define ROW_AT(name, of_kind, T, member)                                                           \
    .key = (name), .kind = (of_kind), .offset = offsetof(T, member)
#define ROW_MANY(name, of_kind, T, items, n)                                                       \
    ROW_AT(name, of_kind, T, items), .n_offset = offsetof(T, n),                                   \
                                     .item_size = sizeof(*JSON_MEMBER(T, items))
#define ROW_ROWS(of) .rows = (of), .n_rows = ARRAY_LEN(of)
/* ROW(KEY, STRUCT, MEMBER, FLAGS[, .MEMBER_OF_FIELD = VALUE]...) */
#define ROW(name, T, member, ...)                                                                  \
    {ROW_AT(name, JSON_KIND(JSON_MEMBER(T, member)), T, member), .flags = __VA_ARGS__}
/* A member of the struct that `ptr` points to; only written. */
#define ROW_VIA(name, T, ptr, member, ...)                                                         \
    {ROW_AT(name, JSON_KIND(JSON_MEMBER(T, ptr)->member), typeof(*JSON_MEMBER(T, ptr)), member),   \
     .via = {1 + offsetof(T, ptr)}, .flags = __VA_ARGS__}
#define ROW_WORD(name, T, member, words, ...)                                                      \
    {ROW_AT(name, JSON_WORD, T, member), .item_size = sizeof(JSON_MEMBER(T, member)),              \
     .names = (words), .n_names = ARRAY_LEN(words), .flags = __VA_ARGS__}
#define ROW_HEX(name, T, bytes, has, ...)                                                          \
    {ROW_AT(name, JSON_HEX, T, bytes), .n_offset = offsetof(T, has),                               \
     .max = sizeof(JSON_MEMBER(T, bytes)), .flags = __VA_ARGS__}
#define ROW_OBJECT(name, T, member, of, ...)                                                       \
    {ROW_AT(name, JSON_OBJECT, T, member), ROW_ROWS(of), .flags = __VA_ARGS__}
/* The struct that a member points to, as an object; only written. */
#define ROW_BEHIND(name, T, ptr, of, ...)                                                          \
    {.key = (name), .kind = JSON_OBJECT, .via = {1 + offsetof(T, ptr)}, ROW_ROWS(of), .flags = __VA_ARGS__}
/* An object whose members lie in the same struct. */
#define ROW_INSIDE(name, of, ...)                                                                  \
    {.key = (name), .kind = JSON_OBJECT, ROW_ROWS(of), .flags = __VA_ARGS__}
#define ROW_HERE(T, member, of) {ROW_AT(NULL, JSON_HERE, T, member), ROW_ROWS(of)}
/* The object may have members that no row names: a document of another program. */
#define ROW_OTHERS {.kind = JSON_HERE, .flags = JSON_OTHERS}
/* Those of the struct that a member points to; only written. */
#define ROW_THERE(T, ptr, of) {.kind = JSON_HERE, .via = {1 + offsetof(T, ptr)}, ROW_ROWS(of)}
#define ROW_LIST(name, T, items, n, of, ...)                                                       \
    {ROW_MANY(name, JSON_LIST, T, items, n), ROW_ROWS(of), .flags = __VA_ARGS__}
#define ROW_STRS(name, T, items, n, ...)                                                           \
    {ROW_MANY(name, JSON_STRS, T, items, n), .flags = __VA_ARGS__}
#define ROW_PAIRS(name, T, items, n, ...)                                                          \
    {ROW_MANY(name, JSON_PAIRS, T, items, n), .flags = __VA_ARGS__}
#define ROW_ANY(name, ...)                                                                         \
    {.key = (name), .kind = JSON_ANY, .flags = __VA_ARGS__}
#define ROW_GET(name, T, member, by, ...)                                                          \
    {ROW_AT(name, JSON_ANY, T, member), .get = (by), .flags = __VA_ARGS__}
/* The struct is the value itself: a struct str, int64_t, ... */
#define ROW_ALONE(name, of_kind, ...)                                                              \
    {.key = (name), .kind = (of_kind), .flags = __VA_ARGS__}
#define ROW_NUMBER(name, one)                                                                      \
    {.key = (name), .kind = JSON_CONST, .flags = JSON_REQUIRED, .min = (one)}
#define ROW_SAYS(name, text)                                                                       \
    {.key = (name), .kind = JSON_CONST, .flags = JSON_REQUIRED, .is = (text)}
/* A value by a function; the kind is for the schema. */
#define ROW_OUT(name, of_kind, by, ...)                                                            \
    {.key = (name), .kind = (of_kind), .put = (by), .flags = JSON_UNREAD | __VA_ARGS__}
/* clang-format on */

/* Checks that `at` is an object with only these keys and all required ones, and fills out. On failure out is undefined. */
MUST_CHECK int json_decode(const struct json *at, struct arena *arena,
                           const struct json_field *rows, size_t n_rows, void *out,
                           struct err *err);
/* Its members, into an object that is open. */
void json_encode(struct json_out *out, const struct json_field *rows, size_t n_rows,
                 const void *of);
/* The object; key NULL: an element of a list, or all there is. */
void json_encode_object(struct json_out *out, const char *key, const struct json_field *rows,
                        size_t n_rows, const void *of);

/* The least number of items of a list. */
int64_t json_items_min(const struct json_field *row);

/* A document with a schema of its own, manifests/schema/FILE. */
struct json_document {
    const char *file, *title, *about;
    const struct json_field *rows;
    size_t n_rows;
    const char *rules; /* further members of the schema, as JSON; or NULL */
};
#define JSON_DOCUMENT(name, says, of)                                                              \
    .file = (name), .title = (says), .rows = (of), .n_rows = ARRAY_LEN(of)
/* The whole document with its line end. */
void json_encode_document(struct strbuf *buf, const struct json_field *rows, size_t n_rows,
                          const void *of);
/* Lists of words that are data themselves: put writes the items of the one of that name. */
struct json_vocabulary {
    void (*put)(struct json_out *out, const char *list, const void *context);
    const void *context;
};
void json_schema(struct strbuf *buf, const struct json_document *document,
                 const struct json_vocabulary *vocabulary);
