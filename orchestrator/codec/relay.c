/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/relay.h"

#include "base/vec.h"

#define FIRST_LINE  "reperf-relay 1"
#define LINE_PREFIX "reperf-relay: "
#define FRAME_MAGIC 0x4652u /* "RF" */
#define HMAC_BLOCK  64
#define PORT_MAX    65535

/* ---- reading the order ---- */

struct relay_reader {
    struct arena *arena;
    struct str rest;
    size_t line_no;
    bool has_token, has_part;
    struct relay_order order;
    VEC(struct relay_item) items;
    VEC(struct relay_file) files;
};

static int bad_line(const struct relay_reader *reader, const char *expected, struct err *err)
{
    return err_set(err, ERR_PARSE, "order, line %zu: expected %s", reader->line_no, expected);
}

bool relay_path_is_safe(struct str path)
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

static int read_token(struct relay_reader *reader, struct str rest, struct err *err)
{
    struct err ignored = {0};
    if (reader->has_token ||
        hex_decode(rest, RELAY_TOKEN_BYTES, reader->order.token, &ignored) < 0) {
        return bad_line(reader, "one token of 64 hex digits", err);
    }
    reader->has_token = true;
    return 0;
}

static int read_part(struct relay_reader *reader, struct str rest, struct err *err)
{
    uint64_t part, n_parts;
    if (reader->has_part || !read_u64(&rest, RELAY_HOPS_MAX, &part) ||
        !read_u64(&rest, RELAY_HOPS_MAX, &n_parts) || rest.ptr || part >= n_parts) {
        return bad_line(reader, "one \"part N OF\"", err);
    }
    reader->order.part = (uint32_t)part;
    reader->order.n_parts = (uint32_t)n_parts;
    reader->has_part = true;
    return 0;
}

static int read_item(struct relay_reader *reader, struct str rest, struct err *err)
{
    if (!is_absolute(rest) || reader->items.n >= RELAY_ITEMS_MAX) {
        return bad_line(reader, "an absolute folder and fewer items", err);
    }
    VEC_PUSH(&reader->items,
             (struct relay_item){.root = str_z(reader->arena, rest), .first = reader->files.n});
    return 0;
}

static int read_mark(struct relay_reader *reader, struct str rest, struct err *err)
{
    struct str name, hex;
    uint8_t bytes[RELAY_MARK_HEX / 2];
    struct err ignored = {0};
    struct relay_item *item = reader->items.n ? &reader->items.items[reader->items.n - 1] : NULL;
    if (!item || item->mark_name || !str_next(&rest, ' ', &name) || !str_next(&rest, ' ', &hex) ||
        !relay_path_is_safe(name) || str_find(name, STR_LIT("/")) >= 0 || !is_absolute(rest) ||
        hex_decode(hex, sizeof(bytes), bytes, &ignored) < 0) {
        return bad_line(reader, "one \"mark NAME HEX64 FOLDER\" of an item", err);
    }
    item->mark_name = str_z(reader->arena, name);
    item->mark_hex = str_z(reader->arena, hex);
    item->mark_folder = str_z(reader->arena, rest);
    return 0;
}

static int read_file(struct relay_reader *reader, struct str rest, struct err *err)
{
    struct relay_file file = {0};
    struct relay_item *item = reader->items.n ? &reader->items.items[reader->items.n - 1] : NULL;
    struct str mode, hex;
    struct err ignored = {0};
    if (!item || reader->files.n >= RELAY_FILES_MAX ||
        !read_u64(&rest, INT64_MAX, &file.size_bytes) || !str_next(&rest, ' ', &mode) ||
        !str_next(&rest, ' ', &hex) || !(str_eq_z(mode, "x") || str_eq_z(mode, "-")) ||
        hex_decode(hex, SHA256_BYTES, file.sha256, &ignored) < 0 || !relay_path_is_safe(rest)) {
        return bad_line(reader, "\"file SIZE MODE HEX64 PATH\" of an item", err);
    }
    file.path = str_z(reader->arena, rest);
    file.is_executable = str_eq_z(mode, "x");
    file.item = (uint32_t)(reader->items.n - 1);
    if (item->n && strcmp(reader->files.items[reader->files.n - 1].path, file.path) >= 0) {
        return bad_line(reader, "paths in their order, each once", err);
    }
    item->n++;
    VEC_PUSH(&reader->files, file);
    return 0;
}

static const struct {
    const char *word;
    int (*read)(struct relay_reader *reader, struct str rest, struct err *err);
} READERS[] = {{"file", read_file},
               {"item", read_item},
               {"mark", read_mark},
               {"token", read_token},
               {"part", read_part}};

static int read_line(struct relay_reader *reader, struct str line, struct err *err)
{
    struct str word;
    if (!str_next(&line, ' ', &word)) {
        return bad_line(reader, "a line", err);
    }
    for (size_t idx = 0; idx < ARRAY_LEN(READERS); idx++) {
        if (str_eq_z(word, READERS[idx].word)) {
            return READERS[idx].read(reader, line, err);
        }
    }
    return bad_line(reader, "token, part, item, mark, file or end", err);
}

static int read_order(struct relay_reader *reader, struct err *err)
{
    struct str line;
    if (reader->rest.len == 0 || reader->rest.ptr[reader->rest.len - 1] != '\n') {
        return err_set(err, ERR_PARSE, "order: cut off after %zu bytes", reader->rest.len);
    }
    reader->rest.len--;
    while (str_next(&reader->rest, '\n', &line)) {
        reader->line_no++;
        if (reader->line_no == 1 && !str_eq_z(line, FIRST_LINE)) {
            return bad_line(reader, FIRST_LINE, err);
        }
        if (reader->line_no == 1) {
            continue;
        }
        if (str_eq_z(line, "end") && !reader->rest.ptr && reader->has_token && reader->has_part &&
            reader->items.n) {
            return 0;
        }
        if (read_line(reader, line, err) < 0) {
            return -1;
        }
    }
    return err_set(err, ERR_PARSE, "order: no end, token, part or item");
}

int relay_order_parse(struct arena *arena, struct str text, struct relay_order *ret_order,
                      struct err *err)
{
    struct relay_reader reader = {.arena = arena, .rest = text};
    int result = text.len > RELAY_ORDER_MAX
                     ? err_set(err, ERR_PARSE, "order: longer than %u bytes", RELAY_ORDER_MAX)
                     : read_order(&reader, err);
    arena_adopt(arena, reader.items.items);
    arena_adopt(arena, reader.files.items);
    if (result < 0) {
        return -1;
    }
    reader.order.items = reader.items.items;
    reader.order.n_items = reader.items.n;
    reader.order.files = reader.files.items;
    reader.order.n_files = reader.files.n;
    *ret_order = reader.order;
    return 0;
}

/* ---- writing it ---- */

static int write_item(const struct relay_order *order, const struct relay_item *item,
                      struct strbuf *out, struct err *err)
{
    char hex[SHA256_HEX_SIZE];
    if (!is_absolute(str_of(item->root)) ||
        (item->mark_name && !is_absolute(str_of(item->mark_folder)))) {
        return err_set(err, ERR_USAGE, "%s: cannot be staged: expected an absolute, plain path",
                       item->mark_name ? item->mark_folder : item->root);
    }
    strbuf_printf(out, "item %s\n", item->root);
    if (item->mark_name) {
        strbuf_printf(out, "mark %s %s %s\n", item->mark_name, item->mark_hex, item->mark_folder);
    }
    for (size_t idx = item->first; idx < item->first + item->n; idx++) {
        const struct relay_file *file = &order->files[idx];
        if (!relay_path_is_safe(str_of(file->path))) {
            return err_set(err, ERR_USAGE, "%s: cannot be staged: a path with a control character",
                           file->path);
        }
        hex_encode(file->sha256, SHA256_BYTES, hex);
        strbuf_printf(out, "file %" PRIu64 " %s %s %s\n", file->size_bytes,
                      file->is_executable ? "x" : "-", hex, file->path);
    }
    return 0;
}

int relay_order_write(const struct relay_order *order, struct strbuf *out, struct err *err)
{
    char hex[2 * RELAY_TOKEN_BYTES + 1];
    hex_encode(order->token, RELAY_TOKEN_BYTES, hex);
    strbuf_printf(out, FIRST_LINE "\ntoken %s\npart %u %u\n", hex, order->part, order->n_parts);
    for (size_t idx = 0; idx < order->n_items; idx++) {
        if (write_item(order, &order->items[idx], out, err) < 0) {
            return -1;
        }
    }
    strbuf_add_z(out, "end\n");
    return out->is_full ? err_set(err, ERR_USAGE, "too many files to stage at once") : 0;
}

/* ---- the answers ---- */

static const char *const WORDS[RELAY_WORD_COUNT] = {
    "state", "missing", "partial", "shared", "ready", "taken",   "done",
    "bad",   "at",      "lost",    "full",   "fail",  "complete"};

bool relay_line_parse(struct str line, struct relay_line *ret_line)
{
    const struct str prefix = STR_LIT(LINE_PREFIX);
    struct relay_line parsed = {.word = RELAY_WORD_COUNT};
    struct str word;
    if (!str_starts(line, prefix)) {
        return false;
    }
    line = str_sub(line, prefix.len, line.len - prefix.len);
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
    strbuf_printf(out, LINE_PREFIX "%s %" PRIu64 " %" PRIu64, WORDS[line->word], line->a, line->b);
    if (line->text.len) {
        strbuf_printf(out, " %.*s", STR_ARG(line->text));
    }
    strbuf_add_char(out, '\n');
}

/* ---- frames ---- */

static void put_le(uint8_t *dst, uint64_t value, size_t n)
{
    for (size_t idx = 0; idx < n; idx++) {
        dst[idx] = (uint8_t)(value >> (8 * idx));
    }
}

static uint64_t get_le(const uint8_t *src, size_t n)
{
    uint64_t value = 0;
    for (size_t idx = n; idx > 0; idx--) {
        value = value << 8 | src[idx - 1];
    }
    return value;
}

/* Magic (2), kind (2), file (4), body's length (4), zero (4), offset (8); little endian. */
void relay_frame_encode(const struct relay_frame *frame, uint8_t *ret_header)
{
    put_le(ret_header, FRAME_MAGIC, 2);
    put_le(ret_header + 2, (uint64_t)frame->kind, 2);
    put_le(ret_header + 4, frame->file, 4);
    put_le(ret_header + 8, frame->len, 4);
    put_le(ret_header + 12, 0, 4);
    put_le(ret_header + 16, frame->offset, 8);
}

int relay_frame_decode(const uint8_t *header, struct relay_frame *ret_frame, struct err *err)
{
    uint64_t kind = get_le(header + 2, 2);
    struct relay_frame frame = {.kind = (enum relay_kind)kind,
                                .file = (uint32_t)get_le(header + 4, 4),
                                .len = (uint32_t)get_le(header + 8, 4),
                                .offset = get_le(header + 16, 8)};
    bool has_body = kind == RELAY_DATA || kind == RELAY_CHAIN;
    if (get_le(header, 2) != FRAME_MAGIC || kind < RELAY_CHAIN || kind > RELAY_END ||
        get_le(header + 12, 4) != 0) {
        return err_set(err, ERR_INTEGRITY, "stream: not a frame of a relay");
    }
    if (frame.len > RELAY_BLOCK_BYTES || (kind == RELAY_DATA && frame.len == 0) ||
        (!has_body && frame.len != 0) || frame.offset > INT64_MAX - RELAY_BLOCK_BYTES) {
        return err_set(err, ERR_INTEGRITY, "stream: a frame of %u bytes", frame.len);
    }
    *ret_frame = frame;
    return 0;
}

/* ---- hops ---- */

static bool is_address(struct str text)
{
    for (size_t idx = 0; idx < text.len; idx++) {
        if ((unsigned char)text.ptr[idx] <= 0x20 || (unsigned char)text.ptr[idx] >= 0x7f) {
            return false;
        }
    }
    return text.len > 0 && text.len < 256;
}

static bool read_hop(struct arena *arena, struct str line, struct relay_hop *ret_hop)
{
    struct relay_hop hop = {0};
    struct str address;
    uint64_t node, port;
    if (!read_u64(&line, UINT32_MAX, &node) || !read_u64(&line, PORT_MAX, &port) || port == 0) {
        return false;
    }
    for (size_t n = 0; line.ptr; n++) {
        if (n == ARRAY_LEN(hop.address) || !str_next(&line, ' ', &address) ||
            !is_address(address)) {
            return false;
        }
        hop.address[n] = str_z(arena, address);
    }
    hop.node = (uint32_t)node;
    hop.port = (uint16_t)port;
    *ret_hop = hop;
    return hop.address[0] != NULL;
}

int relay_hops_parse(struct arena *arena, struct str text, struct relay_hop **ret_hops,
                     size_t *ret_n, struct err *err)
{
    VEC(struct relay_hop) hops = {0};
    struct relay_hop hop;
    struct str line;
    bool is_right = text.len == 0 || text.ptr[text.len - 1] == '\n';
    while (is_right && text.len && str_next(&text, '\n', &line) && line.len) {
        is_right = hops.n < RELAY_HOPS_MAX && read_hop(arena, line, &hop);
        if (is_right) {
            VEC_PUSH(&hops, hop);
        }
    }
    arena_adopt(arena, hops.items);
    if (!is_right || text.len) {
        return err_set(err, ERR_INTEGRITY, "stream: invalid chain of hops");
    }
    *ret_hops = hops.items;
    *ret_n = hops.n;
    return 0;
}

void relay_hops_write(const struct relay_hop *hops, size_t n, struct strbuf *out)
{
    for (size_t idx = 0; idx < n; idx++) {
        strbuf_printf(out, "%u %u %s", hops[idx].node, hops[idx].port, hops[idx].address[0]);
        if (hops[idx].address[1]) {
            strbuf_printf(out, " %s", hops[idx].address[1]);
        }
        strbuf_add_char(out, '\n');
    }
}

/* ---- proofs: HMAC, RFC 2104, with a key shorter than a block ---- */

int relay_proof(const uint8_t *token, enum relay_role role, const uint8_t *server_nonce,
                const uint8_t *client_nonce, uint8_t *ret_proof, struct err *err)
{
    uint8_t inner[HMAC_BLOCK + 1 + 2 * RELAY_NONCE_BYTES];
    uint8_t outer[HMAC_BLOCK + SHA256_BYTES];
    for (size_t idx = 0; idx < HMAC_BLOCK; idx++) {
        uint8_t key = idx < RELAY_TOKEN_BYTES ? token[idx] : 0;
        inner[idx] = key ^ 0x36;
        outer[idx] = key ^ 0x5c;
    }
    inner[HMAC_BLOCK] = (uint8_t)role;
    memcpy(inner + HMAC_BLOCK + 1, server_nonce, RELAY_NONCE_BYTES);
    memcpy(inner + HMAC_BLOCK + 1 + RELAY_NONCE_BYTES, client_nonce, RELAY_NONCE_BYTES);
    if (sha256_of((struct str){(const char *)inner, sizeof(inner)}, outer + HMAC_BLOCK, err) < 0) {
        return -1;
    }
    return sha256_of((struct str){(const char *)outer, sizeof(outer)}, ret_proof, err);
}

bool relay_proof_is(const uint8_t *proof, const uint8_t *wanted)
{
    unsigned different = 0;
    for (size_t idx = 0; idx < RELAY_PROOF_BYTES; idx++) {
        different |= (unsigned)(proof[idx] ^ wanted[idx]);
    }
    return different == 0;
}
