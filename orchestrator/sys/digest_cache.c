/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "sys/digest_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "sys/digest_cache_file.h"

#define DAY_NS (INT64_C(86400) * NS_PER_S)
#define LOCAL_SLACK_NS                                                                             \
    (2 * NS_PER_S) /* FAT keeps times in steps of 2 s, ext3 of 1 s, all others finer */
#define REMOTE_SLACK_NS (120 * NS_PER_S)

struct digest_cache {
    char *path;      /* owned */
    char *lock_path; /* owned */
    struct clock_src clock;
    struct dc_map map;
    atomic_bool is_damaged; /* an error was found: the map is no longer trusted */
    struct {
        struct dc_record *items;
        size_t n;
        size_t n_max;
    } pending;
};

static void note_damage(const char *path, const char *why)
{
    log_line(LOG_WARN, "digest cache %s: %s; it is dropped, all files are read again", path, why);
}

int digest_cache_open(const char *path, struct clock_src clock, struct digest_cache **ret_cache,
                      struct err *err)
{
    struct dc_map map = {0};
    const char *why = NULL;
    int result = dc_map_open(path, &map, &why, err);
    struct digest_cache *cache;
    if (result < 0) {
        return err_wrap(err, "digest cache");
    }
    cache = xcalloc(1, sizeof(*cache));
    cache->path = xstrdup(path);
    cache->lock_path = xmalloc(strlen(path) + sizeof(".lock"));
    memcpy(cache->lock_path, path, strlen(path));
    memcpy(cache->lock_path + strlen(path), ".lock", sizeof(".lock"));
    cache->clock = clock;
    cache->map = map;
    if (result == 1) {
        note_damage(path, why);
        atomic_store(&cache->is_damaged, true);
    }
    *ret_cache = cache;
    return 0;
}

void digest_cache_free(struct digest_cache *cache)
{
    if (!cache) {
        return;
    }
    dc_map_close(&cache->map);
    VEC_RELEASE(&cache->pending);
    free(cache->path);
    free(cache->lock_path);
    free(cache);
}

size_t digest_cache_n_pending(const struct digest_cache *cache)
{
    return cache->pending.n;
}

void digest_cache_forget_pending(struct digest_cache *cache)
{
    cache->pending.n = 0;
}

static int64_t timespec_ns(const struct timespec *time)
{
    return (int64_t)time->tv_sec * NS_PER_S + time->tv_nsec;
}

void digest_key_of(const struct stat *info, struct digest_key *ret_key)
{
    *ret_key = (struct digest_key){.device = info->st_dev,
                                   .inode = info->st_ino,
                                   .size_bytes = (uint64_t)info->st_size,
                                   .mtime_ns = timespec_ns(&info->st_mtim),
                                   .ctime_ns = timespec_ns(&info->st_ctim)};
}

/* ---- looking ---- */

static uint16_t today(const struct digest_cache *cache)
{
    return (uint16_t)(cache->clock.wall_ns(cache->clock.ctx) / DAY_NS);
}

static uint16_t min_day(const struct digest_cache *cache)
{
    uint16_t day = today(cache);
    return day > DIGEST_CACHE_DAYS ? (uint16_t)(day - DIGEST_CACHE_DAYS) : 0;
}

static const struct dc_record *find_record(const struct digest_cache *cache,
                                           const struct digest_key *key, unsigned kind)
{
    const struct dc_map *map = &cache->map;
    size_t bucket = (size_t)(dc_hash(key->device, key->inode, kind) >> (64 - map->bits));
    size_t end = map->table[bucket + 1];
    /* The table's checksum is right, but a forged one can be too: no index is taken on trust. */
    for (size_t idx = map->table[bucket]; idx < end && idx < map->n; idx++) {
        const struct dc_record *record = &map->records[idx];
        if (memcmp(&record->key, key, sizeof(*key)) == 0 && record->kind == kind) {
            return record;
        }
    }
    return NULL;
}

bool digest_cache_find(const struct digest_cache *cache, const struct digest_key *key,
                       unsigned kinds, struct digest_value *ret_value)
{
    struct digest_value value = {.size_bytes = key->size_bytes};
    if (!cache->map.base || atomic_load_explicit(&cache->is_damaged, memory_order_relaxed)) {
        return false;
    }
    for (unsigned kind = DIGEST_MD5; kind <= DIGEST_SHA256; kind <<= 1) {
        const struct dc_record *record;
        if (!(kinds & kind)) {
            continue;
        }
        record = find_record(cache, key, kind);
        if (!record || record->day < min_day(cache)) {
            return false;
        }
        if (record->crc != dc_record_crc(record)) {
            /* Only the flag changes, for all threads; the map stays until no thread reads it. */
            struct digest_cache *mine = (struct digest_cache *)(uintptr_t)cache;
            if (!atomic_exchange(&mine->is_damaged, true)) {
                note_damage(cache->path, "a record's checksum is wrong");
            }
            return false;
        }
        if (kind == DIGEST_MD5) {
            memcpy(value.md5, record->digest, MD5_BYTES);
        } else {
            memcpy(value.sha256, record->digest, SHA256_BYTES);
        }
    }
    *ret_value = value;
    return true;
}

bool digest_cache_is_settled(const struct digest_cache *cache, const struct digest_key *key,
                             int64_t slack_ns)
{
    int64_t now_ns = cache->clock.wall_ns(cache->clock.ctx);
    return key->mtime_ns < now_ns - slack_ns && key->ctime_ns < now_ns - slack_ns;
}

/* Source: statfs(2), the magic numbers of file systems that this kernel itself keeps. */
int64_t digest_cache_slack_ns(int fd)
{
    static const uint32_t LOCAL[] = {
        0xef53 /* ext2, 3, 4 */, 0x58465342 /* XFS */,      0x9123683e /* btrfs */,
        0x01021994 /* tmpfs */,  0xf2f52010 /* F2FS */,     0x794c7630 /* overlay */,
        0x2fc12fc1 /* ZFS */,    0xca451a4e /* bcachefs */,
    };
    struct statfs info;
    if (fstatfs(fd, &info) == 0) {
        for (size_t idx = 0; idx < ARRAY_LEN(LOCAL); idx++) {
            if ((uint32_t)info.f_type == LOCAL[idx]) {
                return LOCAL_SLACK_NS;
            }
        }
    }
    return REMOTE_SLACK_NS;
}

/* ---- adding ---- */

void digest_cache_add(struct digest_cache *cache, const struct digest_key *key, unsigned kinds,
                      const struct digest_value *value)
{
    for (unsigned kind = DIGEST_MD5; kind <= DIGEST_SHA256; kind <<= 1) {
        struct dc_record record = {.key = *key, .kind = (uint16_t)kind, .day = today(cache)};
        if (!(kinds & kind)) {
            continue;
        }
        if (kind == DIGEST_MD5) {
            memcpy(record.digest, value->md5, MD5_BYTES);
        } else {
            memcpy(record.digest, value->sha256, SHA256_BYTES);
        }
        record.crc = dc_record_crc(&record);
        VEC_PUSH(&cache->pending, record);
    }
}

/* A file with two names was added twice; of the same times, the digests are the same. Later times come last. */
static int by_order(const void *a, const void *b)
{
    const struct dc_record *left = a, *right = b;
    int order = dc_order(left, right);
    if (order) {
        return order;
    }
    return (left->key.ctime_ns > right->key.ctime_ns) - (left->key.ctime_ns < right->key.ctime_ns);
}

static void sort_pending(struct digest_cache *cache)
{
    struct dc_record *items = cache->pending.items;
    size_t n = 0;
    qsort(items, cache->pending.n, sizeof(*items), by_order);
    for (size_t idx = 0; idx < cache->pending.n; idx++) {
        if (n && dc_order(&items[n - 1], &items[idx]) == 0) {
            n--;
        }
        items[n++] = items[idx];
    }
    cache->pending.n = n;
}

static int lock(const struct digest_cache *cache, int *ret_fd, struct err *err)
{
    CLEANUP(fd) int fd = open(cache->lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    int result = fd < 0 ? -1 : flock(fd, LOCK_EX);
    while (fd >= 0 && result < 0 && errno == EINTR) {
        result = flock(fd, LOCK_EX);
    }
    if (result < 0) {
        return err_set(err, err_code_of_errno(errno), "lock %s: %s", cache->lock_path,
                       err_errno_text(errno));
    }
    *ret_fd = take_fd(&fd);
    return 0;
}

/* What is on the disk now may be newer than what is mapped. */
static int save_locked(struct digest_cache *cache, struct err *err)
{
    const struct dc_map none = {0};
    const char *why = NULL;
    bool was_damaged = atomic_load(&cache->is_damaged);
    int result;
    dc_map_close(&cache->map);
    result = was_damaged ? 0 : dc_map_open(cache->path, &cache->map, &why, err);
    if (result == 1) {
        note_damage(cache->path, why);
    }
    if (result < 0) {
        return -1;
    }
    if (cache->map.n + cache->pending.n > DIGEST_CACHE_RECORDS_MAX) {
        log_line(LOG_INFO, "digest cache %s: full; begun anew", cache->path);
        dc_map_close(&cache->map);
    }
    result = dc_write(cache->path, &cache->map, cache->pending.items, cache->pending.n,
                      min_day(cache), err);
    if (result == 1) {
        note_damage(cache->path, "a record's checksum is wrong");
        result = dc_write(cache->path, &none, cache->pending.items, cache->pending.n,
                          min_day(cache), err);
        ASSERT(result != 1);
    }
    dc_map_close(&cache->map);
    if (result < 0) {
        return -1;
    }
    cache->pending.n = 0;
    result = dc_map_open(cache->path, &cache->map, &why, err);
    atomic_store(&cache->is_damaged, result == 1);
    return result < 0 ? -1 : 0;
}

int digest_cache_save(struct digest_cache *cache, struct err *err)
{
    CLEANUP(fd) int fd = -1;
    if (cache->pending.n == 0 && !atomic_load(&cache->is_damaged)) {
        return 0;
    }
    ASSERT(cache->pending.n <= DIGEST_CACHE_RECORDS_MAX);
    if (cache->pending.n) {
        sort_pending(cache);
    }
    if (lock(cache, &fd, err) < 0 || save_locked(cache, err) < 0) {
        return err_wrap(err, "digest cache");
    }
    return 0;
}
