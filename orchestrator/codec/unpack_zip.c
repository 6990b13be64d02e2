/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/unpack_zip.h"

#include <sys/stat.h>

#include "base/map.h"
#include "base/strbuf.h"

#define DIRECTORY_MAX (512u << 20)
#define HEADER_BYTES  46
#define END_BYTES     22
#define END64_BYTES   56
#define LOCATOR_BYTES 20
#define SIG_HEADER    0x02014b50u
#define SIG_END       0x06054b50u
#define SIG_END64     0x06064b50u
#define SIG_LOCATOR   0x07064b50u
#define SKIPPED_MAX   24 /* the longest data descriptor, which libarchive may leave */
#define MADE_BY_UNIX  3
#define FLAG_CRYPTED  0x2041u /* encrypted, strongly encrypted, masked header */

void unpack_zip_release(struct unpack_zip *zip)
{
    VEC_RELEASE(&zip->entries);
}

uint32_t unpack_zip_hash(struct str name)
{
    uint64_t h = hash_bytes(name.ptr, name.len);
    return (uint32_t)(h ^ h >> 32);
}

static uint32_t le(struct str bytes, size_t at, size_t n)
{
    uint32_t value = 0;
    ASSERT(at + n <= bytes.len);
    for (size_t idx = 0; idx < n; idx++) {
        value |= (uint32_t)(uint8_t)bytes.ptr[at + idx] << (8 * idx);
    }
    return value;
}

static uint64_t le64(struct str bytes, size_t at)
{
    return le(bytes, at, 4) | (uint64_t)le(bytes, at + 4, 4) << 32;
}

static int read_rest(struct unpack_source *source, uint64_t from, struct strbuf *buf,
                     struct err *err)
{
    const void *ptr;
    size_t len;
    do {
        if (unpack_source_rest(source, &from, &ptr, &len, err) < 0) {
            return -1;
        }
        strbuf_add(buf, ptr, len);
    } while (len > 0 && !buf->is_full);
    return buf->is_full
               ? err_set(err, ERR_INTEGRITY, "its directory is larger than %u bytes", DIRECTORY_MAX)
               : 0;
}

struct record {
    uint64_t size_bytes, offset;
    uint32_t crc, mode;
    struct str name, extra;
};

/* Sizes of 2^32 - 1 are in the extra field 1, in this order: unpacked, packed, offset. */
static int read_zip64(struct record *record, uint32_t packed, struct err *err)
{
    struct str extra = record->extra;
    while (extra.len >= 4) {
        size_t len = le(extra, 2, 2), at = 0;
        struct str field = str_sub(extra, 4, len);
        if (field.len != len) {
            break;
        }
        if (le(extra, 0, 2) == 1) {
            uint64_t *const places[] = {&record->size_bytes, NULL, &record->offset};
            const bool wanted[] = {record->size_bytes == UINT32_MAX, packed == UINT32_MAX,
                                   record->offset == UINT32_MAX};
            for (size_t idx = 0; idx < ARRAY_LEN(wanted); idx++) {
                if (wanted[idx] && field.len - at < 8) {
                    return err_set(err, ERR_INTEGRITY, "the zip64 field of \"%.*s\" is short",
                                   STR_ARG(str_sub(record->name, 0, 200)));
                }
                if (wanted[idx] && places[idx]) {
                    *places[idx] = le64(field, at);
                }
                at += wanted[idx] ? 8 : 0;
            }
            return 0;
        }
        extra = str_sub(extra, 4 + len, extra.len);
    }
    return 0;
}

static struct unpack_zip_entry *find_entry(struct unpack_zip *zip, uint64_t offset)
{
    size_t low = 0, high = zip->entries.n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (zip->entries.items[mid].offset <= offset) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low > 0 ? &zip->entries.items[low - 1] : NULL;
}

static bool is_plain_ascii(struct str name)
{
    for (size_t at = 0; at < name.len; at++) {
        if ((uint8_t)name.ptr[at] >= 0x80 || name.ptr[at] == '\\') {
            return false;
        }
    }
    return true;
}

static int check_record(struct unpack_zip *zip, const struct record *record, struct err *err)
{
    struct unpack_zip_entry *entry = find_entry(zip, record->offset);
    struct str shown = str_sub(record->name, 0, 200);
    uint32_t kind = record->mode & S_IFMT;
    if (memchr(record->name.ptr, 0, record->name.len)) {
        return err_set(err, ERR_INTEGRITY, "entry \"%.*s\": its name has a NUL", STR_ARG(shown));
    }
    if (!entry || entry->is_seen || record->offset - entry->offset > SKIPPED_MAX) {
        return err_set(err, ERR_INTEGRITY,
                       "entry \"%.*s\": its directory says byte %" PRIu64
                       ", where it does not begin",
                       STR_ARG(shown), record->offset);
    }
    entry->is_seen = true;
    if (kind != 0 && kind != (entry->is_folder ? S_IFDIR : S_IFREG)) {
        return err_set(err, ERR_INTEGRITY,
                       "entry \"%.*s\": a %s; in a zip only files and folders are accepted",
                       STR_ARG(shown), kind == S_IFLNK ? "symlink" : "special file");
    }
    if (kind == S_IFREG && (record->mode & (S_ISUID | S_ISGID))) {
        return err_set(err, ERR_INTEGRITY, "entry \"%.*s\": a setuid or setgid file",
                       STR_ARG(shown));
    }
    if (is_plain_ascii(record->name) && unpack_zip_hash(record->name) != entry->name_hash) {
        return err_set(err, ERR_INTEGRITY,
                       "entry \"%.*s\" of its directory has another name inside", STR_ARG(shown));
    }
    if (!entry->is_folder && record->size_bytes != entry->size_bytes) {
        return err_set(err, ERR_INTEGRITY,
                       "entry \"%.*s\": its directory says %" PRIu64 " bytes, it has %" PRIu64,
                       STR_ARG(shown), record->size_bytes, entry->size_bytes);
    }
    if (!entry->is_folder && record->crc != entry->crc) {
        return err_set(err, ERR_INTEGRITY,
                       "entry \"%.*s\": its directory says CRC-32 %08x, it has %08x",
                       STR_ARG(shown), record->crc, entry->crc);
    }
    return 0;
}

/* One header of the directory; *at moves past it. */
static int read_record(struct unpack_zip *zip, struct str bytes, size_t *at, struct err *err)
{
    struct str head = str_sub(bytes, *at, HEADER_BYTES);
    struct record record = {0};
    size_t name_len, extra_len, comment_len;
    if (head.len < HEADER_BYTES) {
        return err_set(err, ERR_INTEGRITY, "its directory is truncated");
    }
    name_len = le(head, 28, 2);
    extra_len = le(head, 30, 2);
    comment_len = le(head, 32, 2);
    if (bytes.len - *at - HEADER_BYTES < name_len + extra_len + comment_len) {
        return err_set(err, ERR_INTEGRITY, "its directory is truncated");
    }
    record.name = str_sub(bytes, *at + HEADER_BYTES, name_len);
    record.extra = str_sub(bytes, *at + HEADER_BYTES + name_len, extra_len);
    record.crc = le(head, 16, 4);
    record.size_bytes = le(head, 24, 4);
    record.offset = le(head, 42, 4);
    record.mode = le(head, 5, 1) == MADE_BY_UNIX ? le(head, 40, 2) : 0;
    *at += HEADER_BYTES + name_len + extra_len + comment_len;
    if (le(head, 8, 2) & FLAG_CRYPTED) {
        return err_set(err, ERR_INTEGRITY, "entry \"%.*s\": it is encrypted",
                       STR_ARG(str_sub(record.name, 0, 200)));
    }
    if (read_zip64(&record, le(head, 20, 4), err) < 0) {
        return -1;
    }
    return check_record(zip, &record, err);
}

struct directory {
    uint64_t offset, bytes; /* in the file */
    size_t n;
    bool is_zip64; /* zip64's two records are between it and the end */
};

/* A reader that starts at the end finds the directory only by its offset and length: they must be these, on one disk. All bits set
   mean that zip64's end has the number, so they mean nothing if there is none. */
static int check_place(const struct directory *dir, struct str end, struct err *err)
{
    uint32_t n = le(end, 10, 2), bytes = le(end, 12, 4), offset = le(end, 16, 4);
    uint32_t disk = le(end, 4, 2) | le(end, 6, 2);
    if (n != dir->n && !(dir->is_zip64 && n == UINT16_MAX)) {
        return err_set(err, ERR_INTEGRITY, "its end says %u entries, its directory has %zu", n,
                       dir->n);
    }
    if ((bytes != dir->bytes && !(dir->is_zip64 && bytes == UINT32_MAX)) ||
        (offset != dir->offset && !(dir->is_zip64 && offset == UINT32_MAX))) {
        return err_set(err, ERR_INTEGRITY,
                       "its end says %u bytes of directory at byte %u, there are %" PRIu64
                       " at %" PRIu64,
                       bytes, offset, dir->bytes, dir->offset);
    }
    if ((disk && !(dir->is_zip64 && disk == UINT16_MAX)) || le(end, 8, 2) != n) {
        return err_set(err, ERR_INTEGRITY, "its end says that it spans several disks");
    }
    return 0;
}

/* Zip64's end and its locator, by which a reader that starts at the end finds it; *at moves past both. */
static int check_zip64(struct str bytes, size_t *at, const struct directory *dir, struct err *err)
{
    uint64_t len = le64(bytes, *at + 4);
    uint64_t here = dir->offset + dir->bytes;
    if (len < END64_BYTES - 12 || len > bytes.len - *at - LOCATOR_BYTES - 12 ||
        le64(bytes, *at + 16) != 0 || le64(bytes, *at + 24) != dir->n ||
        le64(bytes, *at + 32) != dir->n || le64(bytes, *at + 40) != dir->bytes ||
        le64(bytes, *at + 48) != dir->offset) {
        return err_set(err, ERR_INTEGRITY, "its zip64 end does not fit its directory");
    }
    *at += 12 + (size_t)len;
    if (le(bytes, *at, 4) != SIG_LOCATOR) {
        return err_set(err, ERR_INTEGRITY, "its zip64 end has no locator");
    }
    if (le64(bytes, *at + 8) != here) {
        return err_set(err, ERR_INTEGRITY,
                       "its zip64 locator says byte %" PRIu64 ", its zip64 end is at %" PRIu64,
                       le64(bytes, *at + 8), here);
    }
    if (le(bytes, *at + 4, 4) != 0 || le(bytes, *at + 16, 4) > 1) {
        return err_set(err, ERR_INTEGRITY, "its zip64 locator says that it spans several disks");
    }
    *at += LOCATOR_BYTES;
    return 0;
}

/* What follows the headers: perhaps zip64's two records, then the end with a comment, then nothing. Readers look for the end from the
   file's last byte backwards, and for the locator right before it: neither may be found anywhere else. */
static int check_end(struct str bytes, size_t at, struct directory *dir, struct err *err)
{
    struct str end;
    dir->is_zip64 = bytes.len - at >= END64_BYTES + LOCATOR_BYTES && le(bytes, at, 4) == SIG_END64;
    if (dir->is_zip64 && check_zip64(bytes, &at, dir, err) < 0) {
        return -1;
    }
    end = str_sub(bytes, at, END_BYTES);
    if (end.len < END_BYTES || le(end, 0, 4) != SIG_END) {
        return err_set(err, ERR_INTEGRITY, "its directory has no end: truncated or damaged");
    }
    if (!dir->is_zip64 && at >= LOCATOR_BYTES && le(bytes, at - LOCATOR_BYTES, 4) == SIG_LOCATOR) {
        return err_set(err, ERR_INTEGRITY, "a zip64 locator is inside its directory");
    }
    if (bytes.len - at - END_BYTES != le(end, 20, 2)) {
        return err_set(err, ERR_INTEGRITY,
                       "%zu bytes follow the end of its directory, its comment has %u",
                       bytes.len - at - END_BYTES, le(end, 20, 2));
    }
    for (size_t other = at + 1; other + END_BYTES <= bytes.len; other++) {
        if (le(bytes, other, 4) == SIG_END) {
            return err_set(err, ERR_INTEGRITY, "a second end is inside its comment");
        }
    }
    return check_place(dir, end, err);
}

int unpack_zip_check(struct unpack_zip *zip, struct unpack_source *source, uint64_t from,
                     struct err *err)
{
    CLEANUP(strbuf) struct strbuf buf = {0};
    struct str bytes;
    struct directory dir = {0};
    size_t at = 0, n = 0, begin;
    strbuf_init(&buf, DIRECTORY_MAX);
    if (read_rest(source, from, &buf, err) < 0) {
        return -1;
    }
    bytes = strbuf_str(&buf);
    while (at < SKIPPED_MAX && bytes.len - at >= 4 && le(bytes, at, 4) != SIG_HEADER &&
           le(bytes, at, 4) != SIG_END && le(bytes, at, 4) != SIG_END64) {
        at++;
    }
    begin = at;
    for (; bytes.len - at >= 4 && le(bytes, at, 4) == SIG_HEADER; n++) {
        if (read_record(zip, bytes, &at, err) < 0) {
            return -1;
        }
    }
    if (n != zip->entries.n) {
        return err_set(err, ERR_INTEGRITY, "its directory has %zu entries, %zu were read before it",
                       n, zip->entries.n);
    }
    dir.n = n;
    dir.bytes = at - begin;
    dir.offset = from + begin;
    return check_end(bytes, at, &dir, err);
}
