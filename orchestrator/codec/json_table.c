/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/json_table.h"

#include "codec/pattern.h"

#include <limits.h>
#include <math.h>

#include "codec/digest.h"

#define I64_EXACT_MAX (1LL << 53)
#define WORD_SHOWN    80

const struct json_form JSON_FILLED = {.is_filled = true};
const struct json_form JSON_SHA256 = {.pattern = "^[0-9a-f]{64}$"};
const struct json_form JSON_IMAGE_DIGEST = {.pattern = "^sha256:[0-9a-f]{64}$"};
const struct json_form JSON_COMMIT = {.pattern = "^[0-9a-f]{40}$"};

/* Of rows by position, those of ROW_HERE counted in place. */
struct json_members {
    struct json items[JSON_FIELDS_MAX]; /* node NULL: absent */
    size_t n, at;                       /* at: the next that is decoded */
    bool takes_others;
};

static void list_keys(const struct json *at, const struct json_field *rows, size_t n_rows,
                      struct json_members *members)
{
    for (size_t idx = 0; idx < n_rows; idx++) {
        members->takes_others |= (rows[idx].flags & JSON_OTHERS) != 0;
        if (rows[idx].kind == JSON_HERE) {
            list_keys(at, rows[idx].rows, rows[idx].n_rows, members);
        } else {
            ASSERT(members->n < JSON_FIELDS_MAX);
            members->items[members->n++] =
                (struct json){.name = at->name, .parent = at, .key = rows[idx].key};
        }
    }
}

static int find_members(const struct json *at, struct json_members *members, struct err *err)
{
    struct json child;
    for (bool more = json_first(at, &child); more; more = json_next(&child)) {
        size_t idx = 0;
        while (idx < members->n && (members->items[idx].key[0] != child.key[0] ||
                                    strcmp(members->items[idx].key, child.key) != 0)) {
            idx++;
        }
        if (idx < members->n) {
            members->items[idx].node = child.node;
        } else if (!members->takes_others) {
            return json_fail(at, err, "unknown key \"%.100s\"", child.key);
        }
    }
    return 0;
}

/* ---- reading ---- */

static void *target_of(const struct json_field *row, void *out)
{
    return (char *)out + row->offset;
}

static size_t *count_of(const struct json_field *row, void *out)
{
    return (size_t *)(void *)((char *)out + row->n_offset);
}

static int decode_number(const struct json *at, const struct json_field *row, void *out,
                         struct err *err)
{
    int64_t value;
    bool is_any = row->min == 0 && row->max == 0;
    int64_t max = row->kind == JSON_INT && (is_any || row->max > INT_MAX) ? INT_MAX
                  : is_any || row->max < row->min                         ? I64_EXACT_MAX
                                                                          : row->max;
    if (json_i64(at, row->min, max, &value, err) < 0) {
        return -1;
    }
    if (row->kind == JSON_I64) {
        *(int64_t *)target_of(row, out) = value;
    } else if (row->kind == JSON_SIZE) {
        *(size_t *)target_of(row, out) = (size_t)value;
    } else {
        *(int *)target_of(row, out) = (int)value;
    }
    return 0;
}

static void add_names(struct strbuf *text, const struct json_field *row)
{
    for (size_t idx = 0; idx < row->n_names; idx++) {
        if (row->names[idx]) {
            strbuf_printf(text, "%s%s", text->len ? ", " : "", row->names[idx]);
        }
    }
}

static int fail_word(const struct json *at, const struct json_field *row, struct str word,
                     struct err *err)
{
    CLEANUP(strbuf) struct strbuf known = STRBUF(240);
    add_names(&known, row);
    return json_fail(at, err, "expected one of %s, found \"%.60s\"", known.ptr, word.ptr);
}

static bool find_word(const struct json_field *row, struct str word, size_t *ret_idx)
{
    for (size_t idx = 0; idx < row->n_names; idx++) {
        if (row->names[idx] && str_eq_z(word, row->names[idx])) {
            *ret_idx = idx;
            return true;
        }
    }
    return false;
}

static int decode_word(const struct json *at, struct arena *arena, const struct json_field *row,
                       void *out, struct err *err)
{
    struct str word;
    size_t idx;
    if (json_str(at, arena, &word, err) < 0) {
        return -1;
    }
    if (!find_word(row, word, &idx)) {
        return fail_word(at, row, word, err);
    }
    if (row->item_size == sizeof(bool)) {
        *(bool *)target_of(row, out) = idx != 0;
    } else {
        *(unsigned *)target_of(row, out) = (unsigned)idx;
    }
    return 0;
}

static int check_const(const struct json *at, struct arena *arena, const struct json_field *row,
                       struct err *err)
{
    int64_t ignored;
    struct str text;
    if (!row->is) {
        return json_i64(at, row->min, row->min, &ignored, err);
    }
    if (json_str(at, arena, &text, err) < 0) {
        return -1;
    }
    return str_eq_z(text, row->is)
               ? 0
               : json_fail(at, err, "expected \"%s\", found \"%.100s\"", row->is, text.ptr);
}

static bool has_form(const struct json *at, const struct json_form *form, struct str value)
{
    return (!form->max || value.len <= form->max) &&
           (!form->pattern || /* whose $ is also in front of a line break at the end */
            (!str_ends(value, STR_LIT("\n")) &&
             patterns_find(json_patterns(at), form->pattern, value, NULL, 0))) &&
           (!form->is_valid || form->is_valid(value));
}

/* What is wrong with a member is said of its object, with its key; with an item, of the item. */
static int check_form(const struct json *at, const struct json_field *row, struct str value,
                      struct err *err)
{
    const struct json_form *form = row->form;
    const struct json *of = row->kind == JSON_STRS ? at : at->parent;
    size_t ignored;
    if (row->names && !find_word(row, value, &ignored)) {
        return fail_word(at, row, value, err);
    }
    if (form && form->is_filled && !value.len) {
        return json_fail(at, err, "expected text, found none");
    }
    if (form && form->check && form->check(of, row->key, value, err) < 0) {
        return -1;
    }
    return form && form->what && !has_form(at, form, value)
               ? json_fail(at, err, "expected %s, found \"%.*s\"", form->what,
                           (int)(value.len < WORD_SHOWN ? value.len : WORD_SHOWN), value.ptr)
               : 0;
}

static int decode_object(const struct json *at, struct arena *arena, const struct json_field *row,
                         void *out, struct err *err)
{
    if (json_decode(at, arena, row->rows, row->n_rows, out, err) < 0) {
        return -1;
    }
    return row->check ? row->check(at, arena, out, err) : 0;
}

/* A list that is left out when it is empty is never there and empty. */
int64_t json_items_min(const struct json_field *row)
{
    return row->min == 0 && row->flags & JSON_OMIT ? 1 : row->min;
}

static int check_least(const struct json *at, const struct json_field *row, size_t n,
                       struct err *err)
{
    int64_t least = json_items_min(row);
    return (int64_t)n >= least
               ? 0
               : json_fail(at, err, "expected at least %" PRId64 " items, found %zu", least, n);
}

static int decode_text(const struct json *at, struct arena *arena, const struct json_field *row,
                       void *out, struct err *err)
{
    struct str *text = out;
    return json_str(at, arena, text, err) < 0 ? -1 : check_form(at, row, *text, err);
}

static int check_unique(const struct json *at, const struct json_field *row, const char *items,
                        size_t n, struct err *err)
{
    size_t offset = row->kind == JSON_LIST ? row->rows[0].offset : 0;
    struct str name = *(const struct str *)(const void *)(items + row->item_size * n + offset);
    return row->flags & JSON_UNIQUE && str_named(items, n, row->item_size, offset, name)
               ? json_fail(at, err, "\"%.160s\" is there twice", name.ptr)
               : 0;
}

static int decode_list(const struct json *at, struct arena *arena, const struct json_field *row,
                       void *out, struct err *err)
{
    struct json item;
    size_t max = row->max ? (size_t)row->max : JSON_LIST_MAX;
    size_t n = 0;
    if (json_expect_array(at, max, &n, err) < 0 || check_least(at, row, n, err) < 0) {
        return -1;
    }
    char *items = arena_alloc_array(arena, row->item_size, n + 1, alignof(max_align_t));
    *(void **)target_of(row, out) = items;
    *count_of(row, out) = 0;
    for (bool more = json_first(at, &item); more; more = json_next(&item)) {
        size_t idx = (*count_of(row, out))++;
        void *to = items + row->item_size * idx;
        if (row->blank) {
            memcpy(to, row->blank, row->item_size);
        }
        if ((row->kind == JSON_LIST ? decode_object : decode_text)(&item, arena, row, to, err) <
                0 ||
            check_unique(&item, row, items, idx, err) < 0) {
            return -1;
        }
    }
    return row->get ? row->get(at, arena, out, err) : 0;
}

static int decode_pairs(const struct json *at, struct arena *arena, const struct json_field *row,
                        void *out, struct err *err)
{
    struct json item;
    size_t max = row->max ? (size_t)row->max : JSON_LIST_MAX;
    size_t n = 0;
    if (!json_is_object(at)) {
        return json_fail(at, err, "expected an object of names and texts");
    }
    for (bool more = json_first(at, &item); more; more = json_next(&item)) {
        n++;
    }
    if (n > max) {
        return json_fail(at, err, "expected at most %zu names, found %zu", max, n);
    }
    struct str *pairs = arena_array(arena, struct str, 2 * n + 2);
    *(void **)target_of(row, out) = pairs;
    *count_of(row, out) = n;
    for (bool more = json_first(at, &item); more; more = json_next(&item), pairs += 2) {
        pairs[0] = str_dup(arena, str_of(item.key));
        if (!(json_is_null(&item) && (row->flags & JSON_NULLABLE)) &&
            decode_text(&item, arena, row, &pairs[1], err) < 0) {
            return -1;
        }
    }
    return row->get ? row->get(at, arena, target_of(row, out), err) : 0;
}

static int decode_hex(const struct json *at, struct arena *arena, const struct json_field *row,
                      void *out, struct err *err)
{
    struct str hex;
    size_t n = (size_t)row->max;
    if (json_str(at, arena, &hex, err) < 0) {
        return -1;
    }
    if (hex_decode(hex, n, target_of(row, out), ERR_IGNORED) < 0) {
        return json_fail(at->parent, err,
                         "%s: expected %zu lower-case hex digits, found \"%.100s\"", row->key,
                         2 * n, hex.ptr);
    }
    *((bool *)out + row->n_offset) = true;
    return 0;
}

static int decode_value(const struct json *at, struct arena *arena, const struct json_field *row,
                        void *out, struct err *err)
{
    switch (row->kind) {
    case JSON_ANY:
        return row->get ? row->get(at, arena, target_of(row, out), err) : 0;
    case JSON_STR:
        return decode_text(at, arena, row, target_of(row, out), err);
    case JSON_I64:
    case JSON_SIZE:
    case JSON_INT:
        return decode_number(at, row, out, err);
    case JSON_F64:
        return json_f64(at, target_of(row, out), err);
    case JSON_BOOL:
        return json_bool(at, target_of(row, out), err);
    case JSON_WORD:
        return decode_word(at, arena, row, out, err);
    case JSON_CONST:
        return check_const(at, arena, row, err);
    case JSON_HEX:
        return decode_hex(at, arena, row, out, err);
    case JSON_OBJECT:
        return decode_object(at, arena, row, target_of(row, out), err);
    case JSON_LIST:
    case JSON_STRS:
        return decode_list(at, arena, row, out, err);
    case JSON_PAIRS:
        return decode_pairs(at, arena, row, out, err);
    case JSON_Z:
    case JSON_ZS:
    case JSON_HERE:
        break;
    }
    ASSERT(!"a kind that can be read");
    return -1;
}

static void set_none(const struct json_field *row, void *out)
{
    if (row->kind == JSON_I64 && (row->flags & JSON_MINUS)) {
        *(int64_t *)target_of(row, out) = -1;
    }
    /* Where null is a statement; else it is the first word. */
    bool is_stated = row->kind == JSON_WORD && row->flags & JSON_REQUIRED;
    for (size_t idx = 0; is_stated && idx < row->n_names; idx++) {
        if (!row->names[idx]) {
            *(unsigned *)target_of(row, out) = (unsigned)idx;
        }
    }
}

static int decode_row(const struct json *at, struct arena *arena, const struct json_field *row,
                      void *out, struct err *err)
{
    if (!at->node) {
        set_none(row, out);
        return row->flags & JSON_REQUIRED
                   ? json_fail(at->parent, err, "expected a member \"%s\", found none", row->key)
                   : 0;
    }
    if (row->flags & JSON_UNREAD) {
        return 0;
    }
    if (json_is_null(at) && row->kind != JSON_PAIRS) {
        set_none(row, out);
        return row->flags & JSON_NULLABLE ? 0 : json_fail(at, err, "may not be null");
    }
    return decode_value(at, arena, row, out, err);
}

static int decode_rows(struct json_members *members, struct arena *arena,
                       const struct json_field *rows, size_t n_rows, void *out, struct err *err)
{
    for (size_t idx = 0; idx < n_rows; idx++) {
        const struct json_field *row = &rows[idx];
        if (row->kind == JSON_HERE
                ? decode_rows(members, arena, row->rows, row->n_rows, target_of(row, out), err) < 0
                : decode_row(&members->items[members->at++], arena, row, out, err) < 0) {
            return -1;
        }
    }
    return 0;
}

int json_decode(const struct json *at, struct arena *arena, const struct json_field *rows,
                size_t n_rows, void *out, struct err *err)
{
    struct json_members members = {.n = 0};
    if (!json_is_object(at)) {
        return json_fail(at, err, "expected an object, found %s", json_kind_name(at));
    }
    list_keys(at, rows, n_rows, &members);
    if (find_members(at, &members, err) < 0) {
        return -1;
    }
    return decode_rows(&members, arena, rows, n_rows, out, err);
}

/* ---- writing ---- */

/* The struct that the row is of, through its pointers; NULL: one of them is. */
static const void *struct_of(const struct json_field *row, const void *of)
{
    for (size_t idx = 0; idx < ARRAY_LEN(row->via) && row->via[idx] && of; idx++) {
        of = *(const void *const *)(const void *)((const char *)of + row->via[idx] - 1);
    }
    return of;
}

static const void *value_of(const struct json_field *row, const void *of)
{
    return (const char *)of + row->offset;
}

static size_t number_of_items(const struct json_field *row, const void *of)
{
    return *(const size_t *)(const void *)((const char *)of + row->n_offset);
}

static int64_t number_of(const struct json_field *row, const void *of)
{
    const void *at = value_of(row, of);
    return row->kind == JSON_I64            ? *(const int64_t *)at
           : row->kind == JSON_SIZE         ? (int64_t) * (const size_t *)at
           : row->kind == JSON_INT          ? *(const int *)at
           : row->item_size == sizeof(bool) ? *(const bool *)at
                                            : (int64_t) * (const unsigned *)at;
}

/* Invariant 2; is_omit: 0 and false count as none too. */
static bool is_none(const struct json_field *row, const void *of, bool is_omit)
{
    const void *at = value_of(row, of);
    switch (row->kind) {
    case JSON_STR:
        return !((const struct str *)at)->ptr ||
               ((row->flags & JSON_BLANK) && !((const struct str *)at)->len);
    case JSON_Z:
        return !*(const char *const *)at;
    case JSON_I64:
    case JSON_SIZE:
    case JSON_INT:
        return row->flags & JSON_MINUS                      ? number_of(row, of) < 0
               : row->flags & JSON_NULLABLE && row->min > 0 ? number_of(row, of) < row->min
                                                            : is_omit && !number_of(row, of);
    case JSON_WORD:
        return !row->names[number_of(row, of)] || (row->flags & JSON_OMIT && !number_of(row, of));
    case JSON_F64:
        return !isfinite(*(const double *)at) || (is_omit && *(const double *)at == 0);
    case JSON_BOOL:
        return is_omit && !*(const bool *)at;
    case JSON_HEX:
        return !*((const bool *)of + row->n_offset);
    case JSON_OBJECT:
        return row->flags & (JSON_NULLABLE | JSON_OMIT) && is_none(&row->rows[0], at, true);
    case JSON_LIST:
    case JSON_STRS:
    case JSON_PAIRS:
        return is_omit && !number_of_items(row, of);
    case JSON_ZS:
        return is_omit && !*(const void *const *)at;
    case JSON_HERE:
        return is_none(&row->rows[0], at, is_omit);
    case JSON_ANY:
    case JSON_CONST:
        break;
    }
    return false;
}

static void encode_items(struct json_out *out, const struct json_field *row, const void *of)
{
    const char *item = *(const void *const *)value_of(row, of);
    jw_array(out, row->key);
    for (size_t n = number_of_items(row, of); n; n--, item += row->item_size) {
        if (row->kind == JSON_STRS) {
            jw_str(out, NULL, *(const struct str *)(const void *)item);
        } else {
            json_encode_object(out, NULL, row->rows, row->n_rows, item);
        }
    }
    jw_end_array(out);
}

static void encode_words(struct json_out *out, const char *key, const char *const *words)
{
    jw_array(out, key);
    for (; words && *words; words++) {
        jw_z(out, NULL, *words);
    }
    jw_end_array(out);
}

static void encode_pairs(struct json_out *out, const struct json_field *row, const void *of)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const struct str *pair = *(const void *const *)value_of(row, of);
    jw_object(out, row->key);
    for (size_t n = number_of_items(row, of); n; n--, pair += 2) {
        jw_str(out, str_z(&arena, pair[0]), pair[1]);
    }
    jw_end_object(out);
}

static void encode_hex(struct json_out *out, const struct json_field *row, const void *of)
{
    char hex[SHA256_HEX_SIZE];
    ASSERT(2 * (size_t)row->max < sizeof(hex));
    hex_encode(value_of(row, of), (size_t)row->max, hex);
    jw_z(out, row->key, hex);
}

static void encode_value(struct json_out *out, const struct json_field *row, const void *of)
{
    const void *at = value_of(row, of);
    switch (row->kind) {
    case JSON_STR:
        jw_str(out, row->key, *(const struct str *)at);
        return;
    case JSON_Z:
        jw_z(out, row->key, *(const char *const *)at);
        return;
    case JSON_I64:
    case JSON_SIZE:
    case JSON_INT:
        jw_i64(out, row->key, number_of(row, of));
        return;
    case JSON_F64:
        jw_f64(out, row->key, *(const double *)at);
        return;
    case JSON_BOOL:
        jw_bool(out, row->key, *(const bool *)at);
        return;
    case JSON_WORD:
        ASSERT((size_t)number_of(row, of) < row->n_names);
        jw_z(out, row->key, row->names[number_of(row, of)]);
        return;
    case JSON_CONST:
        if (row->is) {
            jw_z(out, row->key, row->is);
        } else {
            jw_i64(out, row->key, row->min);
        }
        return;
    case JSON_HEX:
        encode_hex(out, row, of);
        return;
    case JSON_OBJECT:
        json_encode_object(out, row->key, row->rows, row->n_rows, at);
        return;
    case JSON_HERE:
        json_encode(out, row->rows, row->n_rows, at);
        return;
    case JSON_LIST:
    case JSON_STRS:
        encode_items(out, row, of);
        return;
    case JSON_PAIRS:
        encode_pairs(out, row, of);
        return;
    case JSON_ZS:
        encode_words(out, row->key, *(const char *const *const *)at);
        return;
    case JSON_ANY:
        break;
    }
    ASSERT(!"a kind that can be written");
}

void json_encode(struct json_out *out, const struct json_field *rows, size_t n_rows, const void *of)
{
    for (size_t idx = 0; idx < n_rows; idx++) {
        const struct json_field *row = &rows[idx];
        const void *in = struct_of(row, of);
        if (row->put) {
            row->put(out, row->key, of);
        } else if (in && (row->kind == JSON_HERE || !is_none(row, in, row->flags & JSON_OMIT))) {
            encode_value(out, row, in);
        } else if (row->flags & JSON_TEXT) {
            jw_z(out, row->key, "");
        } else if (!(row->flags & JSON_OMIT)) {
            jw_null(out, row->key);
        }
    }
}

void json_encode_object(struct json_out *out, const char *key, const struct json_field *rows,
                        size_t n_rows, const void *of)
{
    jw_object(out, key);
    json_encode(out, rows, n_rows, of);
    jw_end_object(out);
}

void json_encode_document(struct strbuf *buf, const struct json_field *rows, size_t n_rows,
                          const void *of)
{
    struct json_out out;
    jw_begin(&out, buf, false);
    json_encode_object(&out, NULL, rows, n_rows, of);
}
