/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/relay.h"

#define FIRST_WORDS "reperf-relay 2 "
#define SIZE_DIGITS 12 /* of the first line */
#define PORT_MAX    65535

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
static bool relay_path_is_safe(struct str path)
{
    struct str part;
    if (path.len == 0 || path.len >= RELAY_PATH_MAX) {
        return false;
    }
    for (size_t idx = 0; idx < path.len; idx++) {
        if ((unsigned char)path.ptr[idx] < 0x20 || path.ptr[idx] == 0x7f) {
            return false;
        }
    }
    if (path.ptr[path.len - 1] == '/') {
        return false;
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
    return path.len > 1 && path.ptr[0] == '/' && relay_path_is_safe(str_sub(path, 1, path.len - 1));
}

static bool read_u64(struct str *rest, uint64_t max, uint64_t *ret_value)
{
    struct err ignored = {0};
    struct str part;
    int64_t value;
    if (!str_next(rest, ' ', &part) || max > INT64_MAX ||
        str_to_i64(part, 0, (int64_t)max, &value, &ignored) < 0) {
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
    return next(reader, &field) && read_u64(&field, max, ret_value) && !field.ptr;
}

static bool next_hex(struct relay_reader *reader, size_t n, uint8_t *ret_bytes)
{
    struct err ignored = {0};
    struct str field;
    return next(reader, &field) && hex_decode(field, n, ret_bytes, &ignored) == 0;
}

/* Name, digits and folder; or three empty fields. */
static int read_mark(struct relay_reader *reader, struct relay_item *item, struct err *err)
{
    struct str name, hex, folder;
    uint8_t bytes[RELAY_MARK_HEX / 2];
    struct err ignored = {0};
    if (!next(reader, &name) || !next(reader, &hex) || !next(reader, &folder)) {
        return bad_field(reader, "a mark", err);
    }
    if (!name.len && !hex.len && !folder.len) {
        return 0;
    }
    if (!relay_path_is_safe(name) || str_find(name, STR_LIT("/")) >= 0 || !is_absolute(folder) ||
        hex_decode(hex, sizeof(bytes), bytes, &ignored) < 0) {
        return bad_field(reader, "a mark's name, 64 digits and absolute folder", err);
    }
    item->mark_name = name.ptr;
    item->mark_hex = hex.ptr;
    item->mark_folder = folder.ptr;
    return 0;
}

static int read_file(struct relay_reader *reader, struct relay_file *file, struct err *err)
{
    struct str mode, path;
    if (!next_u64(reader, INT64_MAX, &file->size_bytes) || !next(reader, &mode) ||
        !(str_eq_z(mode, "x") || str_eq_z(mode, "-")) ||
        !next_hex(reader, SHA256_BYTES, file->sha256) || !next(reader, &path) ||
        !relay_path_is_safe(path)) {
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
    struct str root;
    uint64_t n_files;
    if (!next(reader, &root) || !is_absolute(root)) {
        return bad_field(reader, "an absolute folder", err);
    }
    *item = (struct relay_item){.root = root.ptr, .first = idx ? item[-1].first + item[-1].n : 0};
    if (read_mark(reader, item, err) < 0) {
        return -1;
    }
    if (!next_u64(reader, order->n_files - item->first, &n_files)) {
        return bad_field(reader, "a number of files", err);
    }
    for (item->n = 0; item->n < n_files; item->n++) {
        struct relay_file *file = &order->files[item->first + item->n];
        file->item = (uint32_t)idx;
        if (read_file(reader, file, err) < 0) {
            return -1;
        }
        if (item->n && strcmp(file[-1].path, file->path) >= 0) {
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
    uint64_t part, n_parts, n_items, n_files;
    if (!next_hex(&reader, RELAY_TOKEN_BYTES, order->token) ||
        !next_u64(&reader, RELAY_NODES_MAX, &part) ||
        !next_u64(&reader, RELAY_NODES_MAX, &n_parts) || part >= n_parts ||
        !next_u64(&reader, RELAY_ITEMS_MAX, &n_items) || n_items == 0 ||
        !next_u64(&reader, RELAY_FILES_MAX, &n_files) || n_files > text.len) {
        return bad_field(&reader, "a token, a part of parts, numbers of items and of files", err);
    }
    order->part = (uint32_t)part;
    order->n_parts = (uint32_t)n_parts;
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
    if (!str_starts(line, words) || line.len != words.len + SIZE_DIGITS + 1 ||
        line.ptr[line.len - 1] != '\n') {
        return false;
    }
    line = str_sub(line, words.len, SIZE_DIGITS);
    return read_u64(&line, RELAY_ORDER_MAX, ret_bytes) && *ret_bytes > 0;
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
    add(out, item->mark_name ? item->mark_name : "");
    add(out, item->mark_name ? item->mark_hex : "");
    add(out, item->mark_name ? item->mark_folder : "");
    add_u64(out, item->n);
    if (!is_absolute(str_of(item->root)) ||
        (item->mark_name && !is_absolute(str_of(item->mark_folder)))) {
        return err_set(err, ERR_USAGE, "%s: cannot be staged: expected an absolute, plain path",
                       item->mark_name ? item->mark_folder : item->root);
    }
    for (size_t idx = item->first; idx < item->first + item->n; idx++) {
        const struct relay_file *file = &order->files[idx];
        if (!relay_path_is_safe(str_of(file->path))) {
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
    char hex[2 * RELAY_TOKEN_BYTES + 1];
    char size[SIZE_DIGITS + 1];
    size_t head = sizeof(FIRST_WORDS) - 1;
    ASSERT(out->len == 0);
    strbuf_printf(out, FIRST_WORDS "%0*d\n", SIZE_DIGITS, 0);
    hex_encode(order->token, RELAY_TOKEN_BYTES, hex);
    add(out, hex);
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

static const char *const WORDS[RELAY_WORD_COUNT] = {
    "missing", "partial", "shared", "ready", "taken", "bad", "at", "lost", "fail", "complete"};

bool relay_line_parse(struct str line, struct relay_line *ret_line)
{
    struct relay_line parsed = {.word = RELAY_WORD_COUNT};
    struct str word;
    if (!str_next(&line, ' ', &word) || !read_u64(&line, INT64_MAX, &parsed.a) ||
        !read_u64(&line, INT64_MAX, &parsed.b)) {
        return false;
    }
    for (int idx = 0; idx < RELAY_WORD_COUNT; idx++) {
        if (str_eq_z(word, WORDS[idx])) {
            parsed.word = (enum relay_word)idx;
        }
    }
    parsed.text = line;
    if (parsed.word == RELAY_WORD_COUNT) {
        return false;
    }
    *ret_line = parsed;
    return true;
}

void relay_line_write(const struct relay_line *line, struct strbuf *out)
{
    strbuf_printf(out, "%s %" PRIu64 " %" PRIu64, WORDS[line->word], line->a, line->b);
    if (line->text.len) {
        strbuf_printf(out, " %.*s", STR_ARG(line->text));
    }
    strbuf_add_char(out, '\n');
}

/* ---- the next relay ---- */

static bool is_address(struct str text)
{
    for (size_t idx = 0; idx < text.len; idx++) {
        if ((unsigned char)text.ptr[idx] <= 0x20 || (unsigned char)text.ptr[idx] >= 0x7f) {
            return false;
        }
    }
    return text.len > 0 && text.len < 256;
}

bool relay_hop_parse(struct arena *arena, struct str text, struct relay_hop *ret_hop)
{
    struct relay_hop hop = {0};
    struct str address;
    uint64_t port;
    if (!read_u64(&text, PORT_MAX, &port) || port == 0) {
        return false;
    }
    for (size_t n = 0; text.ptr; n++) {
        if (n == ARRAY_LEN(hop.address) || !str_next(&text, ' ', &address) ||
            !is_address(address)) {
            return false;
        }
        hop.address[n] = str_z(arena, address);
    }
    hop.port = (uint16_t)port;
    *ret_hop = hop;
    return hop.address[0] != NULL;
}

void relay_hop_write(const struct relay_hop *hop, struct strbuf *out)
{
    strbuf_printf(out, "%u %s", hop->port, hop->address[0]);
    if (hop->address[1]) {
        strbuf_printf(out, " %s", hop->address[1]);
    }
}

#define NAME_MAX_BYTES 48 /* two numbers of 63 bits and the '@' */

static struct str name_of(const struct relay_member *member, char text[NAME_MAX_BYTES])
{
    int len = snprintf(text, NAME_MAX_BYTES, "%" PRIu64 "@%" PRIu64, member->file, member->offset);
    return (struct str){text, (size_t)len};
}

void relay_member_write(const struct relay_member *member, uint8_t ret_block[USTAR_BLOCK])
{
    char text[NAME_MAX_BYTES];
    struct err never = {0};
    int result = ustar_header(name_of(member, text), member->size_bytes, ret_block, &never);
    ASSERT(result == 0);
}

static int begin(void *ctx, struct str name, uint64_t size_bytes, struct err *err)
{
    const struct relay_sink *sink = ctx;
    struct relay_member member = {.size_bytes = size_bytes};
    struct str rest = name, file, offset;
    char text[NAME_MAX_BYTES];
    int64_t numbers[2];
    struct err ignored = {0};
    /* One spelling alone: no sign, no zeros in front. */
    if (!str_next(&rest, '@', &file) || !str_next(&rest, '@', &offset) ||
        str_to_i64(file, 0, INT64_MAX, &numbers[0], &ignored) < 0 ||
        str_to_i64(offset, 0, INT64_MAX, &numbers[1], &ignored) < 0) {
        return err_set(err, ERR_INTEGRITY, "stream: not a member of a staging");
    }
    member.file = (uint64_t)numbers[0];
    member.offset = (uint64_t)numbers[1];
    if (!str_eq(name_of(&member, text), name) || size_bytes > RELAY_MEMBER_MAX) {
        return err_set(err, ERR_INTEGRITY, "stream: not a member as it is sent");
    }
    return sink->begin(sink->ctx, &member, err);
}

static int data(void *ctx, const void *ptr, size_t len, struct err *err)
{
    const struct relay_sink *sink = ctx;
    return sink->data(sink->ctx, ptr, len, err);
}

static int end(void *ctx, struct err *err)
{
    const struct relay_sink *sink = ctx;
    return sink->end(sink->ctx, err);
}

int relay_tar_take(struct relay_tar *tar, const struct relay_sink *sink, const uint8_t *bytes,
                   size_t len, struct err *err)
{
    struct relay_sink own = *sink;
    tar->reader.sink = (struct ustar_sink){&own, begin, data, end};
    tar->reader.takes_any_order = true;
    if (ustar_feed(&tar->reader, bytes, len, err) < 0) {
        return -1;
    }
    tar->is_over = tar->reader.state == USTAR_DONE;
    return 0;
}
