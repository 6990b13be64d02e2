/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/tarball.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/bytes.h"
#include "base/fs.h"

/* One of zstd's sixteen skippable magics; RFC 8878 section 3.1.2. */
#define CLOSING_MAGIC      0x184D2A5Du
#define FLUSH_STEP_BYTES   (8u << 20)
#define DASHES_64          "----------------------------------------------------------------"
#define SEEN_BYTES_MAX     (64u << 20) /* of the tar, before the next header */
#define TAR_BLOCK          512ULL
#define CLOSING_SIGNED_LEN (17 + 72) /* the lines that the signature covers */

/* --- writing ---------------------------------------------------------------------------------- */

static int set_parameters(ZSTD_CCtx *zstd, struct err *err)
{
    const struct {
        ZSTD_cParameter what;
        int value;
    } rows[] = {
        {ZSTD_c_compressionLevel, TARBALL_LEVEL},
        {ZSTD_c_windowLog, TARBALL_WINDOW_LOG},
        {ZSTD_c_checksumFlag, 1},
        {ZSTD_c_nbWorkers, TARBALL_WORKERS},
    };
    for (size_t idx = 0; idx < ARRAY_LEN(rows); idx++) {
        size_t code = ZSTD_CCtx_setParameter(zstd, rows[idx].what, rows[idx].value);
        if (ZSTD_isError(code)) {
            return err_set(err, ERR_INTERNAL, "libzstd %s: parameter %d: %s", ZSTD_versionString(),
                           (int)rows[idx].what, ZSTD_getErrorName(code));
        }
    }
    return 0;
}

static int write_out(struct tarball_writer *w, size_t len, struct err *err)
{
    if (len == 0) {
        return 0;
    }
    digest_update(&w->container, w->out, len);
    if (fs_write_all(w->fd, w->out, len, w->name, err) < 0) {
        return -1;
    }
    w->written_bytes += len;
    if (w->written_bytes - w->flushed_bytes >= FLUSH_STEP_BYTES) {
        /* A hint: the disk may start; fsync at the end is what counts, and its errors are seen there. */
        (void)sync_file_range(w->fd, (off_t)w->flushed_bytes,
                              (off_t)(w->written_bytes - w->flushed_bytes), SYNC_FILE_RANGE_WRITE);
        w->flushed_bytes = w->written_bytes;
    }
    return 0;
}

static int compress(struct tarball_writer *w, const void *ptr, size_t len, ZSTD_EndDirective end,
                    struct err *err)
{
    ZSTD_inBuffer in = {ptr, len, 0};
    for (;;) {
        ZSTD_outBuffer out = {w->out, w->out_bytes, 0};
        size_t left = ZSTD_compressStream2(w->zstd, &out, &in, end);
        if (ZSTD_isError(left)) {
            return err_set(err, ERR_INTERNAL, "%s: zstd: %s", w->name, ZSTD_getErrorName(left));
        }
        if (write_out(w, out.pos, err) < 0) {
            return -1;
        }
        if (end == ZSTD_e_end ? left == 0 : in.pos == in.size) {
            return 0;
        }
    }
}

static int take_tar(void *ctx, const void *ptr, size_t len, struct err *err)
{
    return compress(ctx, ptr, len, ZSTD_e_continue, err);
}

int tarball_writer_init(struct tarball_writer *w, int fd, const char *name, struct err *err)
{
    *w = (struct tarball_writer){.name = name, .fd = fd, .tar = TAR_MAKER_EMPTY};
    w->zstd = ZSTD_createCCtx();
    w->out_bytes = ZSTD_CStreamOutSize();
    w->out = xmalloc(w->out_bytes);
    if (!w->zstd) {
        return err_set(err, ERR_INTERNAL, "libzstd cannot make a context");
    }
    if (set_parameters(w->zstd, err) < 0) {
        return -1;
    }
    digest_start(&w->container, DIGEST_SHA256);
    return tar_make_open_to(&w->tar, take_tar, w, err);
}

void tarball_writer_release(struct tarball_writer *w)
{
    tar_maker_cleanup(&w->tar);
    ZSTD_freeCCtx(w->zstd);
    free(w->out);
    digest_release(&w->container);
    ustar_names_release(&w->names);
    *w = TARBALL_WRITER_EMPTY;
}

int tarball_begin(struct tarball_writer *w, struct str name, uint64_t size_bytes, struct err *err)
{
    return ustar_names_add(&w->names, name, size_bytes, err) < 0
               ? -1
               : tar_make_begin(&w->tar, w->names.last.ptr, size_bytes, err);
}

int tarball_data(struct tarball_writer *w, const void *ptr, size_t len, struct err *err)
{
    return tar_make_data(&w->tar, ptr, len, err) < 0 ? err_wrap(err, "%.*s", STR_ARG(w->names.last))
                                                     : 0;
}

int tarball_end(struct tarball_writer *w, struct err *err)
{
    return tar_make_end(&w->tar, err) < 0 ? err_wrap(err, "%.*s", STR_ARG(w->names.last)) : 0;
}

/* The closing's text; NUL-terminated. */
static void closing_text(const struct tarball_closing *closing,
                         char ret_text[TARBALL_CLOSING_TEXT_BYTES + 1])
{
    char key[2 * SIGN_PUBLIC_BYTES + 1] = DASHES_64;
    char signature[2 * SIGN_BYTES + 1] = DASHES_64 DASHES_64;
    if (closing->is_signed) {
        hex_encode(closing->public_raw, SIGN_PUBLIC_BYTES, key);
        hex_encode(closing->signature, SIGN_BYTES, signature);
    }
    int len = snprintf(ret_text, TARBALL_CLOSING_TEXT_BYTES + 1,
                       "reperf-closing 1\nsha256 %s\nkey %s\nsignature %s\n",
                       sha256_hex_of(closing->sha256).text, key, signature);
    ASSERT(len == TARBALL_CLOSING_TEXT_BYTES);
}

static int write_closing(struct tarball_writer *w, const struct sign_key *key, struct err *err)
{
    struct tarball_closing closing = {.is_signed = key != NULL};
    char text[TARBALL_CLOSING_TEXT_BYTES + 1];
    uint8_t bytes[TARBALL_CLOSING_BYTES];
    memcpy(closing.sha256, digest_finish(&w->container).sha256, SHA256_BYTES);
    memcpy(w->container_sha256, closing.sha256, SHA256_BYTES);
    if (key) {
        memcpy(closing.public_raw, key->public_raw, SIGN_PUBLIC_BYTES);
        closing_text(&closing, text);
        if (sign_message(key, (struct str){text, CLOSING_SIGNED_LEN}, closing.signature, err) < 0) {
            return -1;
        }
    }
    closing_text(&closing, text);
    put_le32(bytes, CLOSING_MAGIC);
    put_le32(bytes + 4, TARBALL_CLOSING_TEXT_BYTES);
    memcpy(bytes + 8, text, TARBALL_CLOSING_TEXT_BYTES);
    return fs_write_all(w->fd, bytes, sizeof(bytes), w->name, err);
}

int tarball_finish(struct tarball_writer *w, const struct sign_key *key, struct err *err)
{
    struct digest_value ignored;
    return tar_make_close(&w->tar, &ignored, err) < 0 || compress(w, NULL, 0, ZSTD_e_end, err) < 0
               ? -1
               : write_closing(w, key, err);
}

/* --- reading ---------------------------------------------------------------------------------- */

static int parse_closing(const uint8_t *bytes, struct tarball_closing *ret_closing, struct err *err)
{
    struct tarball_closing closing = {0};
    char found[TARBALL_CLOSING_TEXT_BYTES];
    char wanted[TARBALL_CLOSING_TEXT_BYTES + 1];
    if (get_le32(bytes) != CLOSING_MAGIC || get_le32(bytes + 4) != TARBALL_CLOSING_TEXT_BYTES) {
        return err_set(
            err, ERR_INTEGRITY,
            "no closing in the last %d bytes: cut short, appended to, packed again, or not an "
            "archive of reperf; what tar unpacks of one that was packed again can be verified as "
            "a folder",
            TARBALL_CLOSING_BYTES);
    }
    memcpy(found, bytes + 8, sizeof(found));
    closing.is_signed = found[17 + 72 + 4] != '-';
    struct str text = {found, sizeof(found)};
    bool is_hex = hex_decode(str_sub(text, 17 + 7, SHA256_HEX_SIZE - 1), SHA256_BYTES,
                             closing.sha256, ERR_IGNORED) == 0 &&
                  (!closing.is_signed ||
                   (hex_decode(str_sub(text, 17 + 72 + 4, (size_t)2 * SIGN_PUBLIC_BYTES),
                               SIGN_PUBLIC_BYTES, closing.public_raw, ERR_IGNORED) == 0 &&
                    hex_decode(str_sub(text, 17 + 72 + 69 + 10, (size_t)2 * SIGN_BYTES), SIGN_BYTES,
                               closing.signature, ERR_IGNORED) == 0));
    closing_text(&closing, wanted);
    if (!is_hex || memcmp(found, wanted, sizeof(found)) != 0) {
        return err_set(err, ERR_INTEGRITY, "closing: not the text that reperf writes there");
    }
    *ret_closing = closing;
    return 0;
}

static int check_closing_signature(const struct tarball_closing *closing, struct err *err)
{
    CLEANUP(sign_key) struct sign_key key = SIGN_KEY_EMPTY;
    char text[TARBALL_CLOSING_TEXT_BYTES + 1];
    if (!closing->is_signed) {
        return 0;
    }
    closing_text(closing, text);
    if (sign_from_raw(closing->public_raw, &key, err) < 0 ||
        sign_check(&key, (struct str){text, CLOSING_SIGNED_LEN}, closing->signature, err) < 0) {
        err->code = ERR_INTEGRITY;
        return err_wrap(err, "closing");
    }
    return 0;
}

static int open_file(const char *path, struct tarball_source *source, struct err *err)
{
    off_t size;
    source->name = path;
    source->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (source->fd < 0) {
        return err_set(err, err_code_of_errno(errno), "open: %s", err_errno_text(errno));
    }
    size = lseek(source->fd, 0, SEEK_END);
    if (size < 0) {
        return err_set(err, ERR_IO, "expected a regular file");
    }
    if (size < TARBALL_CLOSING_BYTES + 9) {
        return err_set(err, ERR_INTEGRITY, "%lld bytes are too short for an archive",
                       (long long)size);
    }
    source->container_bytes = (uint64_t)size - TARBALL_CLOSING_BYTES;
    return 0;
}

/* The container's bytes, each once. */
static int read_container(void *ctx, const void **ret_ptr, size_t *ret_len, struct err *err)
{
    struct tarball_source *source = ctx;
    uint64_t left = source->container_bytes - source->read_bytes;
    *ret_ptr = source->in;
    *ret_len = left < TARBALL_CHUNK_BYTES ? (size_t)left : TARBALL_CHUNK_BYTES;
    if (*ret_len &&
        fs_read_at(source->fd, source->in, *ret_len, source->read_bytes, "the archive", err) < 0) {
        return -1;
    }
    digest_update(&source->container, source->in, *ret_len);
    source->read_bytes += *ret_len;
    return 0;
}

static int open_closing(const char *path, struct tarball_source *source, struct err *err)
{
    uint8_t closing[TARBALL_CLOSING_BYTES];
    if (open_file(path, source, err) < 0 ||
        fs_read_at(source->fd, closing, sizeof(closing), source->container_bytes, "the archive",
                   err) < 0 ||
        parse_closing(closing, &source->closing, err) < 0 ||
        check_closing_signature(&source->closing, err) < 0) {
        return err_wrap(err, "%s", path);
    }
    source->in = xmalloc(TARBALL_CHUNK_BYTES);
    digest_start(&source->container, DIGEST_SHA256);
    return 0;
}

/* ---- one reading of the tar ----

   Each member has one header, of which every tar makes the same: ustar's own, at the place where the member before it ends, with
   zeros between them and two empty blocks at the end. So what is unpacked of an archive is what was read of it here. */

/* Of the tar's bytes those from the block before the next header on. */
static int take_unpacked(void *ctx, const void *ptr, size_t len, struct err *err)
{
    struct tarball_source *source = ctx;
    struct strbuf *seen = &source->seen;
    const uint64_t from = source->tar_at > TAR_BLOCK ? source->tar_at - TAR_BLOCK : 0;
    strbuf_add(seen, ptr, len);
    if (seen->is_full) {
        return err_set(err, ERR_INTEGRITY, "a header of over %u bytes", SEEN_BYTES_MAX);
    }
    if (from > source->seen_from) {
        const uint64_t old = from - source->seen_from;
        const size_t n = old < seen->len ? (size_t)old : seen->len;
        memmove(seen->ptr, seen->ptr + n, seen->len - n);
        seen->len -= n;
        source->seen_from += n;
    }
    return 0;
}

/* So many of the tar's bytes; fewer where it has fewer. */
static struct str seen_at(const struct tarball_source *source, uint64_t from, size_t len)
{
    struct str seen = strbuf_str(&source->seen);
    return from < source->seen_from ? STR_EMPTY
                                    : str_sub(seen, (size_t)(from - source->seen_from), len);
}

static bool is_number(struct str field, uint64_t value)
{
    size_t n = str_span(field, 0, "01234567");
    uint64_t found = 0;
    for (size_t idx = 0; idx < n; idx++) {
        found = found * 8 + (uint64_t)(field.ptr[idx] - '0');
    }
    while (n < field.len && (field.ptr[n] == ' ' || field.ptr[n] == '\0')) {
        n++;
    }
    return n == field.len && found == value;
}

/* The text before the first zero, if only zeros follow it. */
static bool is_padded(struct str field, struct str *ret_text)
{
    *ret_text = str_sub(field, 0, strnlen(field.ptr, field.len));
    for (size_t idx = ret_text->len; idx < field.len; idx++) {
        if (field.ptr[idx] != '\0') {
            return false;
        }
    }
    return true;
}

static bool is_zero(struct str field)
{
    struct str text;
    return is_padded(field, &text) && text.len == 0;
}

/* Source: POSIX.1-2017, pax, "ustar Interchange Format". */
static bool is_plain_header(struct str header, struct str name, uint64_t size_bytes)
{
    const struct {
        size_t at, len;
        uint64_t value;
    } numbers[] = {{100, 8, TAR_MAKE_MODE},   {108, 8, 0}, {116, 8, 0}, {124, 12, size_bytes},
                   {136, 12, TAR_MAKE_MTIME}, {329, 8, 0}, {337, 8, 0}};
    struct str prefix, base;
    for (size_t idx = 0; idx < ARRAY_LEN(numbers); idx++) {
        if (!is_number(str_sub(header, numbers[idx].at, numbers[idx].len), numbers[idx].value)) {
            return false;
        }
    }
    return str_eq(str_sub(header, 257, 8), (struct str){"ustar\0"
                                                        "00",
                                                        8}) &&
           header.ptr[156] == '0' && is_zero(str_sub(header, 157, 100)) &&
           is_zero(str_sub(header, 265, 64)) && is_zero(str_sub(header, 500, 12)) &&
           is_padded(str_sub(header, 0, 100), &base) &&
           is_padded(str_sub(header, 345, 155), &prefix) &&
           (prefix.len ? name.len == prefix.len + 1 + base.len && str_starts(name, prefix) &&
                             name.ptr[prefix.len] == '/' && str_ends(name, base)
                       : str_eq(name, base));
}

static int check_header(struct tarball_source *source, const struct unpack_entry *member,
                        struct err *err)
{
    const uint64_t end = source->tar_at + TAR_BLOCK + member->size_bytes;
    const size_t gap = (size_t)(source->tar_at - source->data_end);
    struct str header = seen_at(source, source->tar_at, TAR_BLOCK);
    if (member->type != UNPACK_FILE || header.len < TAR_BLOCK ||
        !is_zero(seen_at(source, source->data_end, gap)) ||
        !is_plain_header(header, member->path, member->size_bytes)) {
        return err_set(err, ERR_INTEGRITY, "%.*s: its header is not one that reperf writes",
                       STR_ARG(member->path));
    }
    source->data_end = end;
    source->tar_at = (end + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
    return 0;
}

static int check_end(const struct tarball_source *source, struct err *err)
{
    struct str rest = seen_at(source, source->data_end, SIZE_MAX);
    return rest.len == source->tar_at - source->data_end + 2 * TAR_BLOCK && is_zero(rest)
               ? 0
               : err_set(err, ERR_INTEGRITY,
                         "the end of its tar is not the one that reperf writes");
}

/* What people print in a loop packs beyond every ratio; the total is bounded instead. */
int tarball_open(const char *path, struct tarball_source *ret_source, struct err *err)
{
    const struct unpack_opts opts = {.limits = {.files = (uint64_t)2 * USTAR_FILES_MAX,
                                                .bytes = USTAR_TOTAL_MAX,
                                                .ratio = UINT64_MAX},
                                     .on_tar = take_unpacked};
    *ret_source = TARBALL_SOURCE_EMPTY;
    strbuf_init(&ret_source->seen, SEEN_BYTES_MAX);
    if (open_closing(path, ret_source, err) < 0 ||
        unpack_new(&opts, read_container, ret_source, path, &ret_source->unpack, err) < 0) {
        tarball_source_release(ret_source);
        return -1;
    }
    if (strcmp(unpack_format(ret_source->unpack), "tar.zst") != 0) {
        (void)!err_set(err, ERR_INTEGRITY, "%s: it is %s, expected tar.zst", path,
                       unpack_format(ret_source->unpack));
        tarball_source_release(ret_source);
        return -1;
    }
    return 0;
}

void tarball_source_release(struct tarball_source *source)
{
    unpack_free(source->unpack);
    strbuf_release(&source->seen);
    fd_close(&source->fd);
    free(source->in);
    digest_release(&source->container);
    *source = TARBALL_SOURCE_EMPTY;
}

int tarball_container(const char *path, uint8_t ret_sha256[SHA256_BYTES], struct err *err)
{
    CLEANUP(tarball_source) struct tarball_source source = TARBALL_SOURCE_EMPTY;
    const void *ptr;
    size_t len = 1;
    if (open_closing(path, &source, err) < 0) {
        return -1;
    }
    while (len > 0) {
        if (read_container(&source, &ptr, &len, err) < 0) {
            return err_wrap(err, "%s", path);
        }
    }
    memcpy(ret_sha256, digest_finish(&source.container).sha256, SHA256_BYTES);
    return 0;
}

int tarball_next(struct tarball_source *source, struct unpack_entry *ret_member, bool *ret_has,
                 struct err *err)
{
    bool is_above = true; /* a folder of the next member, not a member */
    while (is_above) {
        if (unpack_next(source->unpack, ret_member, ret_has, err) < 0) {
            return -1;
        }
        is_above = *ret_has && ret_member->type == UNPACK_FOLDER;
    }
    if ((*ret_has ? check_header(source, ret_member, err) : check_end(source, err)) < 0) {
        return err_wrap(err, "%s", source->name);
    }
    return !*ret_has && memcmp(digest_finish(&source->container).sha256, source->closing.sha256,
                               SHA256_BYTES) != 0
               ? err_set(err, ERR_INTEGRITY,
                         "%s: the SHA-256 of the first %" PRIu64
                         " bytes is not that of the closing",
                         source->name, source->container_bytes)
               : 0;
}
