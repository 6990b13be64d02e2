/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "sys/digest_cache_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/fs.h"

#define WRITE_RECORDS 8192

_Static_assert(sizeof(struct dc_header) == 48, "no padding in the file");
_Static_assert(sizeof(struct dc_record) == 80, "no padding in the file");

/* The finaliser of SplitMix64, twice: neighbours in the inode table must not be neighbours here. */
static uint64_t mix(uint64_t value)
{
    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}

uint64_t dc_hash(uint64_t device, uint64_t inode, unsigned kind)
{
    return mix(mix(device * 4 + kind) + inode);
}

static uint64_t hash_of(const struct dc_record *record)
{
    return dc_hash(record->key.device, record->key.inode, record->kind);
}

static int order_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

int dc_order(const struct dc_record *a, const struct dc_record *b)
{
    int order = order_u64(hash_of(a), hash_of(b));
    order = order ? order : order_u64(a->key.device, b->key.device);
    order = order ? order : order_u64(a->key.inode, b->key.inode);
    return order ? order : (int)a->kind - (int)b->kind;
}

uint32_t dc_record_crc(const struct dc_record *record)
{
    return crc32c(0, record, offsetof(struct dc_record, crc));
}

/* ---- reading ---- */

static size_t table_bytes(unsigned bits)
{
    /* Records begin at a multiple of 8: the table's last entry is followed by four bytes of nothing. */
    return ((size_t)1 << bits) * sizeof(uint32_t) + 2 * sizeof(uint32_t);
}

const char *dc_map_check(const void *base, size_t bytes, struct dc_map *ret_map)
{
    struct dc_header header;
    const uint8_t *start = base;
    if (bytes < sizeof(header)) {
        return "it is shorter than its header";
    }
    memcpy(&header, base, sizeof(header));
    if (memcmp(header.magic, DC_MAGIC, sizeof(header.magic)) != 0 ||
        header.record_bytes != sizeof(struct dc_record)) {
        return "it is not a cache of this version and machine";
    }
    if (header.header_crc != crc32c(0, &header, offsetof(struct dc_header, header_crc))) {
        return "the header's checksum is wrong";
    }
    if (header.bits < DC_BITS_MIN || header.bits > DC_BITS_MAX ||
        header.n > DIGEST_CACHE_RECORDS_MAX || header.file_bytes != bytes ||
        bytes != sizeof(header) + table_bytes(header.bits) + header.n * sizeof(struct dc_record)) {
        return "it is truncated";
    }
    if (header.table_crc != crc32c(0, start + sizeof(header), table_bytes(header.bits))) {
        return "the table's checksum is wrong";
    }
    /* Both are aligned: the map is, the header has 48 bytes, the table a multiple of 8. */
    *ret_map = (struct dc_map){
        .table = (const uint32_t *)(const void *)(start + sizeof(header)),
        .records = (const struct dc_record *)(const void *)(start + sizeof(header) +
                                                            table_bytes(header.bits)),
        .n = header.n,
        .bits = header.bits,
    };
    return NULL;
}

int dc_map_open(const char *path, struct dc_map *ret_map, const char **ret_why, struct err *err)
{
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct dc_map map = {0};
    struct stat info;
    void *base;
    if (fd < 0 && errno == ENOENT) {
        *ret_map = map;
        return 0;
    }
    if (fd < 0 || fstat(fd, &info) < 0) {
        return err_set(err, err_code_of_errno(errno), "open %s: %s", path, err_errno_text(errno));
    }
    if (!S_ISREG(info.st_mode) || info.st_size == 0) {
        *ret_why = "it is not a file with anything in it";
        return 1;
    }
    base = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) {
        return err_set(err, err_code_of_errno(errno), "map %s: %s", path, err_errno_text(errno));
    }
    *ret_why = dc_map_check(base, (size_t)info.st_size, &map);
    map.base = base;
    map.bytes = (size_t)info.st_size;
    if (*ret_why) {
        dc_map_close(&map);
        return 1;
    }
    *ret_map = map;
    return 0;
}

void dc_map_close(struct dc_map *map)
{
    if (map->base) {
        munmap(map->base, map->bytes);
    }
    *map = (struct dc_map){0};
}

/* ---- writing ---- */

struct cache_writer {
    int fd;
    const char *name;
    struct dc_record *buf; /* WRITE_RECORDS */
    size_t n_buf;
    uint32_t *table;
    unsigned bits;
    size_t n;
    size_t next_bucket; /* the first whose start is not known yet */
};

static int flush(struct cache_writer *writer, struct err *err)
{
    size_t n = writer->n_buf;
    writer->n_buf = 0;
    return fs_write_all(writer->fd, writer->buf, n * sizeof(*writer->buf), writer->name, err);
}

static int put(struct cache_writer *writer, const struct dc_record *record, struct err *err)
{
    size_t bucket = (size_t)(hash_of(record) >> (64 - writer->bits));
    while (writer->next_bucket <= bucket) {
        writer->table[writer->next_bucket++] = (uint32_t)writer->n;
    }
    writer->buf[writer->n_buf++] = *record;
    writer->n++;
    return writer->n_buf == WRITE_RECORDS ? flush(writer, err) : 0;
}

/* 1: an old record is damaged, or not where the order wants it. */
static int merge(struct cache_writer *writer, const struct dc_map *old,
                 const struct dc_record *fresh, size_t n_fresh, uint16_t min_day, struct err *err)
{
    size_t at = 0, bt = 0;
    int result = 0;
    while (result == 0 && (at < old->n || bt < n_fresh)) {
        int order = at == old->n ? 1 : bt == n_fresh ? -1 : dc_order(&old->records[at], &fresh[bt]);
        if (order <= 0) {
            const struct dc_record *record = &old->records[at++];
            if (record->crc != dc_record_crc(record) ||
                (at > 1 && dc_order(record - 1, record) >= 0)) {
                return 1;
            }
            if (order < 0 && record->day >= min_day) {
                result = put(writer, record, err);
            }
        }
        if (order >= 0) {
            result = put(writer, &fresh[bt++], err);
        }
    }
    while (result == 0 && writer->next_bucket <= (size_t)1 << writer->bits) {
        writer->table[writer->next_bucket++] = (uint32_t)writer->n;
    }
    return result == 0 ? flush(writer, err) : result;
}

MUST_CHECK static int write_fail(const struct cache_writer *writer, struct err *err)
{
    return err_set(err, err_code_of_errno(errno), "write %s: %s", writer->name,
                   err_errno_text(errno));
}

static int write_head(struct cache_writer *writer, struct err *err)
{
    size_t bytes = table_bytes(writer->bits);
    struct dc_header header = {
        .magic = DC_MAGIC,
        .record_bytes = sizeof(struct dc_record),
        .bits = writer->bits,
        .n = writer->n,
        .file_bytes = sizeof(header) + bytes + writer->n * sizeof(struct dc_record),
        .table_crc = crc32c(0, writer->table, bytes),
    };
    header.header_crc = crc32c(0, &header, offsetof(struct dc_header, header_crc));
    if (lseek(writer->fd, 0, SEEK_SET) < 0) {
        return write_fail(writer, err);
    }
    if (fs_write_all(writer->fd, &header, sizeof(header), writer->name, err) < 0 ||
        fs_write_all(writer->fd, writer->table, bytes, writer->name, err) < 0) {
        return -1;
    }
    return 0;
}

static int write_all(struct cache_writer *writer, const struct dc_map *old,
                     const struct dc_record *fresh, size_t n_fresh, uint16_t min_day,
                     struct err *err)
{
    size_t head_bytes = sizeof(struct dc_header) + table_bytes(writer->bits);
    int result;
    if (lseek(writer->fd, (off_t)head_bytes, SEEK_SET) < 0) {
        return write_fail(writer, err);
    }
    result = merge(writer, old, fresh, n_fresh, min_day, err);
    if (result != 0) {
        return result;
    }
    if (write_head(writer, err) < 0) {
        return -1;
    }
    return fsync(writer->fd) < 0 ? write_fail(writer, err) : 0;
}

int dc_write(const char *path, const struct dc_map *old, const struct dc_record *fresh,
             size_t n_fresh, uint16_t min_day, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(free) struct dc_record *buf = xmalloc(WRITE_RECORDS * sizeof(*buf));
    CLEANUP(free) uint32_t *table = NULL;
    const char *temp = arena_printf(&arena, "%s.new", path);
    const char *slash = strrchr(path, '/');
    const char *folder = slash ? arena_strndup(&arena, path, (size_t)(slash - path) + 1) : ".";
    CLEANUP(fd) int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    struct cache_writer writer = {.fd = fd, .name = temp, .buf = buf, .bits = DC_BITS_MIN};
    int result;
    if (fd < 0) {
        return write_fail(&writer, err);
    }
    while (writer.bits < DC_BITS_MAX && ((size_t)DC_PER_BUCKET << writer.bits) < old->n + n_fresh) {
        writer.bits++;
    }
    table = xcalloc(1, table_bytes(writer.bits));
    writer.table = table;
    result = write_all(&writer, old, fresh, n_fresh, min_day, err);
    if (result == 0 && rename(temp, path) < 0) {
        result = write_fail(&writer, err);
    }
    if (result != 0) {
        unlink(temp);
        return result;
    }
    return fs_sync_dir(folder, err);
}
