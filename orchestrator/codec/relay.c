/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/relay.h"

#define FIRST_WORDS "reperf-relay 3 "
#define SIZE_DIGITS 12 /* of the first line */

/* ---- reading the order ---- */

struct relay_reader {
    struct str rest;
    size_t n_fields;
    struct relay_order order;
};

static int bad_field(const struct relay_reader *reader, const char *expected, struct err *err)
{
    return err_set(err, ERR_PARSE, "order, field %zu: expected %s", reader->n_fields, expected);
}

/* Relative, no empty part, no "." and "..", no control bytes. */
static bool is_safe(struct str path)
{
    struct str part;
    if (path.len == 0 || path.len >= RELAY_PATH_MAX || path.ptr[path.len - 1] == '/') {
        return false;
    }
    for (size_t idx = 0; idx < path.len; idx++) {
        if ((unsigned char)path.ptr[idx] < 0x20 || path.ptr[idx] == 0x7f) {
            return false;
        }
    }
    while (str_next(&path, '/', &part)) {
        if (part.len == 0 || str_eq_z(part, ".") || str_eq_z(part, "..")) {
            return false;
        }
    }
    return true;
}

static bool is_absolute(struct str path)
{
    return path.len > 1 && path.ptr[0] == '/' && is_safe(str_sub(path, 1, path.len - 1));
}

static bool read_u64(struct str text, uint64_t max, uint64_t *ret_value)
{
    struct err ignored = {0};
    int64_t value;
    if (max > INT64_MAX || str_to_i64(text, 0, (int64_t)max, &value, &ignored) < 0) {
        return false;
    }
    *ret_value = (uint64_t)value;
    return true;
}

/* A field, which is a string where it lies; false: there is none. */
static bool next(struct relay_reader *reader, struct str *ret_field)
{
    const char *end = reader->rest.len ? memchr(reader->rest.ptr, '\0', reader->rest.len) : NULL;
    size_t len = end ? (size_t)(end - reader->rest.ptr) : 0;
    *ret_field = str_sub(reader->rest, 0, len);
    reader->rest = str_sub(reader->rest, len + 1, reader->rest.len);
    reader->n_fields++;
    return end != NULL;
}

static bool next_u64(struct relay_reader *reader, uint64_t max, uint64_t *ret_value)
{
    struct str field;
    return next(reader, &field) && read_u64(field, max, ret_value);
}

static bool next_hex(struct relay_reader *reader, size_t n, uint8_t *ret_bytes)
{
    struct err ignored = {0};
    struct str field;
    return next(reader, &field) && hex_decode(field, n, ret_bytes, &ignored) == 0;
}

static int read_file(struct relay_reader *reader, struct relay_file *file, struct err *err)
{
    struct str mode, path;
    if (!next_u64(reader, INT64_MAX, &file->size_bytes) || !next(reader, &mode) ||
        !(str_eq_z(mode, "x") || str_eq_z(mode, "-")) ||
        !next_hex(reader, SHA256_BYTES, file->sha256) || !next(reader, &path) || !is_safe(path)) {
        return bad_field(reader, "a file's size, mode, SHA-256 and path", err);
    }
    file->path = path.ptr;
    file->is_executable = str_eq_z(mode, "x");
    return 0;
}

static int read_item(struct relay_reader *reader, size_t idx, struct err *err)
{
    struct relay_order *order = &reader->order;
    struct relay_item *item = &order->items[idx];
    size_t first = idx ? item[-1].first + item[-1].n : 0;
    struct str root, mark;
    uint64_t n_files;
    if (!next(reader, &root) || !is_absolute(root) || !next(reader, &mark) ||
        (mark.len && !is_absolute(mark)) || !next_u64(reader, order->n_files - first, &n_files)) {
        return bad_field(reader, "an absolute folder, a mark and a number of files", err);
    }
    *item = (struct relay_item){.root = root.ptr, .mark = mark.ptr, .first = first, .n = n_files};
    for (size_t at = 0; at < n_files; at++) {
        struct relay_file *file = &order->files[first + at];
        file->item = (uint32_t)idx;
        if (read_file(reader, file, err) < 0) {
            return -1;
        }
        if (at && strcmp(file[-1].path, file->path) >= 0) {
            return bad_field(reader, "paths in their order, each once", err);
        }
    }
    return 0;
}

int relay_order_parse(struct arena *arena, struct str text, struct relay_order *ret_order,
                      struct err *err)
{
    struct relay_reader reader = {.rest = text};
    struct relay_order *order = &reader.order;
    uint64_t n_items, n_files;
    if (!next_hex(&reader, RELAY_TOKEN_BYTES, order->token) ||
        !next_u64(&reader, RELAY_NODES_MAX, &order->part) ||
        !next_u64(&reader, RELAY_NODES_MAX, &order->n_parts) || order->part >= order->n_parts ||
        !next_u64(&reader, RELAY_ITEMS_MAX, &n_items) || n_items == 0 ||
        !next_u64(&reader, RELAY_FILES_MAX, &n_files) || n_files > text.len) {
        return bad_field(&reader, "a token, a part of parts, numbers of items and of files", err);
    }
    order->n_items = n_items;
    order->n_files = n_files;
    order->items = arena_array(arena, struct relay_item, n_items);
    order->files = arena_array(arena, struct relay_file, n_files + 1);
    for (size_t idx = 0; idx < n_items; idx++) {
        if (read_item(&reader, idx, err) < 0) {
            return -1;
        }
    }
    if (reader.rest.len ||
        order->items[n_items - 1].first + order->items[n_items - 1].n != n_files) {
        return bad_field(&reader, "the end, after all files", err);
    }
    *ret_order = reader.order;
    return 0;
}

bool relay_order_head(struct str line, uint64_t *ret_bytes)
{
    struct str words = STR_LIT(FIRST_WORDS);
    return str_starts(line, words) && line.len == words.len + SIZE_DIGITS + 1 &&
           line.ptr[line.len - 1] == '\n' &&
           read_u64(str_sub(line, words.len, SIZE_DIGITS), RELAY_ORDER_MAX, ret_bytes) &&
           *ret_bytes > 0;
}

/* ---- writing it ---- */

static void add(struct strbuf *out, const char *text)
{
    strbuf_add(out, text, strlen(text) + 1);
}

static void add_u64(struct strbuf *out, uint64_t value)
{
    strbuf_printf(out, "%" PRIu64, value);
    strbuf_add_char(out, '\0');
}

static int write_item(const struct relay_order *order, const struct relay_item *item,
                      struct strbuf *out, struct err *err)
{
    add(out, item->root);
    add(out, item->mark);
    add_u64(out, item->n);
    if (!is_absolute(str_of(item->root)) || (item->mark[0] && !is_absolute(str_of(item->mark)))) {
        return err_set(err, ERR_USAGE, "%s: cannot be staged: expected an absolute, plain path",
                       item->root);
    }
    for (size_t idx = item->first; idx < item->first + item->n; idx++) {
        const struct relay_file *file = &order->files[idx];
        if (!is_safe(str_of(file->path))) {
            return err_set(err, ERR_USAGE, "%s: cannot be staged: a path with a control character",
                           file->path);
        }
        add_u64(out, file->size_bytes);
        add(out, file->is_executable ? "x" : "-");
        add(out, sha256_hex_of(file->sha256).text);
        add(out, file->path);
    }
    return 0;
}

int relay_order_write(const struct relay_order *order, struct strbuf *out, struct err *err)
{
    char size[SIZE_DIGITS + 1];
    size_t head = sizeof(FIRST_WORDS) - 1;
    ASSERT(out->len == 0);
    strbuf_printf(out, FIRST_WORDS "%0*d\n", SIZE_DIGITS, 0);
    add(out, hex_of(order->token, RELAY_TOKEN_BYTES).text);
    add_u64(out, order->part);
    add_u64(out, order->n_parts);
    add_u64(out, order->n_items);
    add_u64(out, order->n_files);
    for (size_t idx = 0; idx < order->n_items; idx++) {
        if (write_item(order, &order->items[idx], out, err) < 0) {
            return -1;
        }
    }
    if (out->is_full || out->len > RELAY_ORDER_MAX) {
        return err_set(err, ERR_USAGE, "too many files to stage at once");
    }
    snprintf(size, sizeof(size), "%0*zu", SIZE_DIGITS, out->len - head - SIZE_DIGITS - 1);
    memcpy(out->ptr + head, size, SIZE_DIGITS);
    return 0;
}

/* ---- the answers ---- */

static const char *const WORDS[RELAY_WORD_COUNT] = {"missing", "shared", "ready", "taken",
                                                    "at",      "lost",   "fail",  "complete"};

bool relay_line_parse(struct str line, struct relay_line *ret_line)
{
    struct relay_line parsed = {.word = 0};
    struct str word, a, b;
    if (!str_next(&line, ' ', &word) || !str_next(&line, ' ', &a) || !str_next(&line, ' ', &b) ||
        !read_u64(a, INT64_MAX, &parsed.a) || !read_u64(b, INT64_MAX, &parsed.b)) {
        return false;
    }
    while (parsed.word < RELAY_WORD_COUNT && !str_eq_z(word, WORDS[parsed.word])) {
        parsed.word++;
    }
    parsed.text = line;
    *ret_line = parsed;
    return parsed.word < RELAY_WORD_COUNT;
}

void relay_line_write(const struct relay_line *line, struct strbuf *out)
{
    strbuf_printf(out, "%s %" PRIu64 " %" PRIu64, WORDS[line->word], line->a, line->b);
    if (line->text.len) {
        strbuf_printf(out, " %.*s", STR_ARG(line->text));
    }
    strbuf_add_char(out, '\n');
}
