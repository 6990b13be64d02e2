/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/ustar.h"

#define NAME_BYTES   100
#define PREFIX_BYTES 155

/* Source: POSIX.1-2017, pax, "ustar Interchange Format". */
struct ustar_raw {
    char name[NAME_BYTES];
    char mode[8];
    char uid[8];
    char gid[8];
    char size[12];
    char mtime[12];
    char checksum[8];
    char type;
    char link[100];
    char magic[6];
    char version[2];
    char user[32];
    char group[32];
    char dev_major[8];
    char dev_minor[8];
    char prefix[PREFIX_BYTES];
    char unused[12];
};
_Static_assert(sizeof(struct ustar_raw) == USTAR_BLOCK, "a header is one block");

static const char *const CLOSING[] = {USTAR_SUMS, USTAR_PROVENANCE, USTAR_STATEMENT};

int ustar_closing_rank(struct str name)
{
    for (size_t idx = 0; idx < ARRAY_LEN(CLOSING); idx++) {
        if (str_eq_z(name, CLOSING[idx])) {
            return (int)idx + 1;
        }
    }
    return 0;
}

int ustar_order(struct str a, struct str b)
{
    int rank = ustar_closing_rank(a) - ustar_closing_rank(b);
    return rank ? rank : str_cmp(a, b);
}

/* What unpack_path_clean accepts and leaves as it is, and short enough. Else ERR_INTEGRITY. */
static int check_name(struct str name, struct err *err)
{
    struct str clean = STR_EMPTY;
    if (name.len > USTAR_NAME_MAX) {
        return err_set(err, ERR_INTEGRITY, "name of %zu bytes, expected 1 to %d: %.80s", name.len,
                       USTAR_NAME_MAX, name.ptr);
    }
    if (unpack_path_clean(name, &clean, err) < 0) {
        return -1;
    }
    return clean.len == name.len
               ? 0
               : err_set(err, ERR_INTEGRITY, "its name begins with \"./\" or ends with \"/\"");
}

/* Length of the prefix: 0 if the name fits alone, -1 if there is no slash at which both parts fit. */
static int64_t split_at(struct str name)
{
    if (name.len <= NAME_BYTES) {
        return 0;
    }
    for (size_t idx = name.len - NAME_BYTES - 1; idx < name.len && idx <= PREFIX_BYTES; idx++) {
        if (name.ptr[idx] == '/') {
            return (int64_t)idx;
        }
    }
    return -1;
}

static void put_octal(char *field, size_t size, uint64_t value)
{
    for (size_t idx = size - 1; idx > 0; idx--) {
        field[idx - 1] = (char)('0' + (value & 7));
        value >>= 3;
    }
    field[size - 1] = '\0';
}

static uint32_t checksum_of(const uint8_t *block)
{
    size_t from = offsetof(struct ustar_raw, checksum);
    uint32_t sum = 0;
    for (size_t idx = 0; idx < USTAR_BLOCK; idx++) {
        sum += idx >= from && idx < from + 8 ? ' ' : block[idx];
    }
    return sum;
}

int ustar_header(struct str name, uint64_t size_bytes, uint8_t ret_block[USTAR_BLOCK],
                 struct err *err)
{
    struct ustar_raw raw = {.type = '0', .magic = "ustar", .version = {'0', '0'}};
    if (check_name(name, err) < 0) {
        return -1;
    }
    if (size_bytes > USTAR_FILE_MAX) {
        return err_set(err, ERR_INTEGRITY, "%.*s: %" PRIu64 " bytes, expected at most %lld",
                       STR_ARG(name), size_bytes, USTAR_FILE_MAX);
    }
    int64_t split = split_at(name);
    if (split < 0) {
        return err_set(err, ERR_INTEGRITY,
                       "%.*s: no slash divides the name into at most %d and %d bytes",
                       STR_ARG(name), PREFIX_BYTES, NAME_BYTES);
    }
    if (split > 0) {
        memcpy(raw.prefix, name.ptr, (size_t)split);
        name = str_sub(name, (size_t)split + 1, name.len);
    }
    memcpy(raw.name, name.ptr, name.len);
    put_octal(raw.mode, sizeof(raw.mode), 0644);
    put_octal(raw.uid, sizeof(raw.uid), 0);
    put_octal(raw.gid, sizeof(raw.gid), 0);
    put_octal(raw.size, sizeof(raw.size), size_bytes);
    put_octal(raw.mtime, sizeof(raw.mtime), USTAR_MTIME);
    put_octal(raw.dev_major, sizeof(raw.dev_major), 0);
    put_octal(raw.dev_minor, sizeof(raw.dev_minor), 0);
    memcpy(ret_block, &raw, USTAR_BLOCK);
    put_octal(raw.checksum, 7, checksum_of(ret_block));
    raw.checksum[7] = ' ';
    memcpy(ret_block, &raw, USTAR_BLOCK);
    return 0;
}

void ustar_names_release(struct ustar_names *names)
{
    unpack_names_release(&names->names);
    *names = (struct ustar_names){0};
}

static int check_order(const struct ustar_names *names, struct str name, struct err *err)
{
    int order = names->last.ptr ? ustar_order(names->last, name) : -1;
    if (order == 0) {
        return err_set(err, ERR_INTEGRITY, "%.*s: the name occurs twice", STR_ARG(name));
    }
    if (order > 0) {
        return err_set(err, ERR_INTEGRITY, "%.*s: not sorted, comes after %.*s", STR_ARG(name),
                       STR_ARG(names->last));
    }
    return 0;
}

static int check_caps(const struct ustar_names *names, struct str name, uint64_t size_bytes,
                      struct err *err)
{
    if (names->n_files >= USTAR_FILES_MAX) {
        return err_set(err, ERR_INTEGRITY, "more than %d files", USTAR_FILES_MAX);
    }
    if (size_bytes > USTAR_TOTAL_MAX || names->total_bytes > USTAR_TOTAL_MAX - size_bytes) {
        return err_set(err, ERR_INTEGRITY, "%.*s: more than %lld bytes in all", STR_ARG(name),
                       USTAR_TOTAL_MAX);
    }
    return 0;
}

int ustar_names_add(struct ustar_names *names, struct str name, uint64_t size_bytes,
                    struct err *err)
{
    bool is_new;
    if (check_name(name, err) < 0 || check_order(names, name, err) < 0 ||
        check_caps(names, name, size_bytes, err) < 0) {
        return -1;
    }
    names->names.n_max = UNPACK_FILES_MAX; /* with the folders: more than these names can have */
    if (unpack_names_add(&names->names, name, UNPACK_FILE, STR_EMPTY, &is_new, err) < 0) {
        return err_wrap(err, "%.*s", STR_ARG(name));
    }
    names->last = str_dup(&names->names.arena, name);
    names->n_files++;
    names->total_bytes += size_bytes;
    return 0;
}

void ustar_reader_init(struct ustar_reader *reader, struct ustar_sink sink)
{
    *reader = (struct ustar_reader){.sink = sink, .state = USTAR_HEADER};
}

void ustar_reader_release(struct ustar_reader *reader)
{
    ustar_names_release(&reader->names);
}

static struct str field_text(const char *field, size_t size)
{
    return (struct str){field, strnlen(field, size)};
}

/* The size as written; the whole header is compared with the canonical one afterwards. */
static uint64_t read_size(const struct ustar_raw *raw)
{
    uint64_t size_bytes = 0;
    for (size_t idx = 0; idx + 1 < sizeof(raw->size); idx++) {
        size_bytes = size_bytes << 3 | (uint64_t)(raw->size[idx] & 7);
    }
    return size_bytes;
}

static const char *type_name(char type)
{
    static const char *const NAMES[] = {"a hard link", "a symbolic link", "a device",
                                        "a device",    "a folder",        "a FIFO"};
    return type >= '1' && type <= '6'   ? NAMES[type - '1']
           : type == 'x' || type == 'g' ? "a pax header"
           : type == 'L' || type == 'K' ? "a GNU long name"
                                        : "of an unknown type";
}

static int compare_header(const uint8_t *found, const uint8_t *wanted, struct err *err)
{
    for (size_t idx = 0; idx < USTAR_BLOCK; idx++) {
        if (found[idx] != wanted[idx]) {
            return err_set(err, ERR_INTEGRITY,
                           "header byte %zu is 0x%02x, expected 0x%02x (canonical form)", idx,
                           found[idx], wanted[idx]);
        }
    }
    return 0;
}

static int read_header(struct ustar_reader *reader, struct err *err)
{
    uint8_t wanted[USTAR_BLOCK] = {0};
    struct ustar_raw raw;
    struct str prefix, name;
    memcpy(&raw, reader->block, sizeof(raw));
    prefix = field_text(raw.prefix, sizeof(raw.prefix));
    name = field_text(raw.name, sizeof(raw.name));
    int len = snprintf(reader->path, sizeof(reader->path), "%.*s%s%.*s", STR_ARG(prefix),
                       prefix.len ? "/" : "", STR_ARG(name));
    name = (struct str){reader->path, (size_t)len};
    uint64_t size_bytes = read_size(&raw);
    if (check_name(name, err) < 0) {
        return -1;
    }
    if (raw.type != '0') {
        return err_set(err, ERR_INTEGRITY, "%.*s is %s, expected a regular file", STR_ARG(name),
                       type_name(raw.type));
    }
    if (ustar_header(name, size_bytes, wanted, err) < 0) {
        return -1;
    }
    if (compare_header(reader->block, wanted, err) < 0) {
        return err_wrap(err, "%.*s", STR_ARG(name));
    }
    if (ustar_names_add(&reader->names, name, size_bytes, err) < 0) {
        return -1;
    }
    reader->name = reader->names.last;
    reader->left_bytes = size_bytes;
    reader->pad_bytes = ustar_padding(size_bytes);
    reader->state = USTAR_DATA;
    return reader->sink.begin(reader->sink.ctx, reader->name, size_bytes, err);
}

static bool is_zero(const uint8_t *ptr, size_t len)
{
    for (size_t idx = 0; idx < len; idx++) {
        if (ptr[idx]) {
            return false;
        }
    }
    return true;
}

/* A whole block in reader->block. */
static int take_block(struct ustar_reader *reader, struct err *err)
{
    bool is_end = is_zero(reader->block, USTAR_BLOCK);
    if (reader->state == USTAR_LAST) {
        reader->state = USTAR_DONE;
        return is_end ? 0 : err_set(err, ERR_INTEGRITY, "expected the second of two zero blocks");
    }
    if (is_end) {
        reader->state = USTAR_LAST;
        return 0;
    }
    return read_header(reader, err);
}

static int end_member(struct ustar_reader *reader, struct err *err)
{
    reader->state = USTAR_PAD;
    reader->left_bytes = reader->pad_bytes;
    return reader->sink.end(reader->sink.ctx, err);
}

/* Consumes some bytes (at least one, or changes state) and returns how many. */
static int feed_some(struct ustar_reader *reader, const uint8_t *ptr, size_t len, size_t *ret_used,
                     struct err *err)
{
    size_t n = len < reader->left_bytes ? len : (size_t)reader->left_bytes;
    switch (reader->state) {
    case USTAR_HEADER:
    case USTAR_LAST:
        n = USTAR_BLOCK - reader->n_block < len ? USTAR_BLOCK - reader->n_block : len;
        memcpy(reader->block + reader->n_block, ptr, n);
        reader->n_block = (reader->n_block + n) % USTAR_BLOCK;
        *ret_used = n;
        return reader->n_block == 0 ? take_block(reader, err) : 0;
    case USTAR_DATA:
        *ret_used = n;
        if (n && reader->sink.data(reader->sink.ctx, ptr, n, err) < 0) {
            return -1;
        }
        reader->left_bytes -= n;
        return reader->left_bytes == 0 ? end_member(reader, err) : 0;
    case USTAR_PAD:
        *ret_used = n;
        if (!is_zero(ptr, n)) {
            return err_set(err, ERR_INTEGRITY, "%.*s: the padding is not zero",
                           STR_ARG(reader->name));
        }
        reader->left_bytes -= n;
        reader->state = reader->left_bytes == 0 ? USTAR_HEADER : USTAR_PAD;
        return 0;
    case USTAR_DONE:
        return err_set(err, ERR_INTEGRITY, "bytes after the end of the archive");
    }
    ASSERT(!"state");
    return -1;
}

int ustar_feed(struct ustar_reader *reader, const void *ptr, size_t len, struct err *err)
{
    const uint8_t *bytes = ptr;
    /* An empty file, or one without padding, ends without a further byte. */
    while (len || ((reader->state == USTAR_DATA || reader->state == USTAR_PAD) &&
                   reader->left_bytes == 0)) {
        size_t used = 0;
        if (feed_some(reader, bytes, len, &used, err) < 0) {
            return err_wrap(err, "tar offset %" PRIu64, reader->offset_bytes);
        }
        bytes += used;
        len -= used;
        reader->offset_bytes += used;
    }
    return 0;
}

int ustar_finish(const struct ustar_reader *reader, struct err *err)
{
    if (reader->state != USTAR_DONE) {
        return err_set(err, ERR_INTEGRITY, "the archive ends early, at tar offset %" PRIu64,
                       reader->offset_bytes);
    }
    return 0;
}
