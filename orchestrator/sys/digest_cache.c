/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "sys/digest_cache.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/crc32c.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/vec.h"

#define DAY_NS (INT64_C(86400) * NS_PER_S)
/* FAT keeps times in steps of 2 s, ext3 of 1 s, all others finer. */
#define LOCAL_SLACK_NS  (2 * NS_PER_S)
#define REMOTE_SLACK_NS (120 * NS_PER_S)
#define MAGIC_BYTES     (sizeof(DIGEST_CACHE_MAGIC) - 1)
#define OTHER_BYTES     (MAGIC_BYTES + DIGEST_CACHE_CRC_BYTES)
#define DIGEST_CACHE_BYTES_MAX                                                                     \
    (DIGEST_CACHE_RECORDS_MAX * sizeof(struct digest_record) + OTHER_BYTES)

struct digest_records {
    struct digest_record *items;
    size_t n, n_max;
};

struct digest_cache {
    char *path; /* owned */
    struct clock_src clock;
    struct arena arena;    /* holds what was in the file */
    struct str saved;      /* its records */
    atomic_flag is_adding; /* held for the length of one VEC_PUSH */
    struct digest_records pending;
};

/* ---- the file ---- */

/* NULL, or why it cannot be used. */
static const char *check_text(struct str text)
{
    uint32_t crc;
    if (text.len < OTHER_BYTES || memcmp(text.ptr, DIGEST_CACHE_MAGIC, MAGIC_BYTES) != 0 ||
        (text.len - OTHER_BYTES) % sizeof(struct digest_record) != 0) {
        return "it is not a cache of this version";
    }
    memcpy(&crc, text.ptr + text.len - sizeof(crc), sizeof(crc));
    return crc == crc32c(0, text.ptr, text.len - sizeof(crc)) ? NULL : "its checksum is wrong";
}

/* An absent file is nothing; one that cannot be used only costs time. */
static void read_saved(struct digest_cache *cache)
{
    struct err err = {0};
    struct str text;
    const char *why;
    arena_release(&cache->arena);
    cache->saved = STR_EMPTY;
    if (fs_read(&cache->arena, cache->path, DIGEST_CACHE_BYTES_MAX, &text, &err) < 0) {
        why = err.code == ERR_NOT_FOUND ? NULL : err.msg;
    } else if (!(why = check_text(text))) {
        cache->saved = str_sub(text, MAGIC_BYTES, text.len - OTHER_BYTES);
    }
    if (why) {
        log_line(LOG_WARN, "digest cache %s: %s; it is dropped, all files are read again",
                 cache->path, why);
    }
}

/* ---- life ---- */

struct digest_cache *digest_cache_open(const char *path, struct clock_src clock)
{
    struct digest_cache *cache = xcalloc(1, sizeof(*cache));
    cache->path = xstrdup(path);
    cache->clock = clock;
    read_saved(cache);
    return cache;
}

void digest_cache_free(struct digest_cache *cache)
{
    if (!cache) {
        return;
    }
    arena_release(&cache->arena);
    VEC_RELEASE(&cache->pending);
    free(cache->path);
    free(cache);
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

static int64_t today(const struct digest_cache *cache)
{
    return cache->clock.wall_ns(cache->clock.ctx) / DAY_NS;
}

static struct digest_record record_of(const struct digest_key *key, unsigned kind)
{
    return (struct digest_record){.id = {key->device, key->inode, kind},
                                  .size_bytes = key->size_bytes,
                                  .mtime_ns = key->mtime_ns,
                                  .ctime_ns = key->ctime_ns};
}

static int by_id(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct digest_id));
}

bool digest_cache_find(const struct digest_cache *cache, const struct digest_key *key,
                       unsigned kinds, struct digest_value *ret_value)
{
    const size_t n = cache->saved.len / sizeof(struct digest_record);
    struct digest_value value = {.size_bytes = key->size_bytes};
    for (unsigned kind = DIGEST_MD5; kind <= DIGEST_SHA256; kind <<= 1) {
        const struct digest_record wanted = record_of(key, kind);
        struct digest_record found;
        if (!(kinds & kind)) {
            continue;
        }
        const void *at = n ? bsearch(&wanted, cache->saved.ptr, n, sizeof(found), by_id) : NULL;
        if (!at) {
            return false;
        }
        memcpy(&found, at, sizeof(found)); /* the text may lie anywhere */
        if (memcmp(&wanted, &found, offsetof(struct digest_record, day)) != 0 ||
            found.day < today(cache) - DIGEST_CACHE_DAYS) {
            return false;
        }
        memcpy(kind == DIGEST_MD5 ? value.md5 : value.sha256, found.digest,
               kind == DIGEST_MD5 ? MD5_BYTES : SHA256_BYTES);
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
        struct digest_record record = record_of(key, kind);
        if (!(kinds & kind)) {
            continue;
        }
        record.day = today(cache);
        memcpy(record.digest, kind == DIGEST_MD5 ? value->md5 : value->sha256,
               kind == DIGEST_MD5 ? MD5_BYTES : SHA256_BYTES);
        while (atomic_flag_test_and_set(&cache->is_adding)) {
            continue;
        }
        VEC_PUSH(&cache->pending, record);
        atomic_flag_clear(&cache->is_adding);
    }
}

/* By file, and where two are of one file the latest comes last. */
static int by_age(const void *a, const void *b)
{
    const struct digest_record *left = a, *right = b;
    int order = by_id(a, b);
    return order ? order
           : left->ctime_ns != right->ctime_ns
               ? (left->ctime_ns > right->ctime_ns ? 1 : -1)
               : (left->day > right->day) - (left->day < right->day);
}

static int lock(const struct digest_cache *cache, int *ret_fd, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    return fs_lock(arena_printf(&arena, "%s.lock", cache->path), ret_fd, err);
}

/* The latest of each file, unless nobody may use it any more. */
static size_t keep_latest(const struct digest_cache *cache, struct digest_record *records, size_t n)
{
    size_t n_kept = 0;
    qsort(records, n, sizeof(*records), by_age);
    for (size_t idx = 0; idx < n; idx++) {
        bool is_latest = idx + 1 == n || by_id(&records[idx], &records[idx + 1]) != 0;
        if (is_latest && records[idx].day >= today(cache) - DIGEST_CACHE_DAYS) {
            records[n_kept++] = records[idx];
        }
    }
    return n_kept;
}

/* What is on the disk now may be newer than what was read. */
static int save_locked(struct digest_cache *cache, struct err *err)
{
    const struct digest_records *pending = &cache->pending;
    CLEANUP(free) char *text = NULL;
    read_saved(cache);
    size_t n_saved = cache->saved.len / sizeof(struct digest_record);
    if (n_saved + pending->n > DIGEST_CACHE_RECORDS_MAX) {
        log_line(LOG_INFO, "digest cache %s: full; begun anew", cache->path);
        n_saved = 0;
    }
    text = xmalloc(OTHER_BYTES + (n_saved + pending->n) * sizeof(struct digest_record));
    struct digest_record *records = (struct digest_record *)(void *)(text + MAGIC_BYTES);
    memcpy(text, DIGEST_CACHE_MAGIC, MAGIC_BYTES);
    if (n_saved) {
        memcpy(records, cache->saved.ptr, n_saved * sizeof(*records));
    }
    memcpy(records + n_saved, pending->items, pending->n * sizeof(*records));
    size_t len = MAGIC_BYTES + keep_latest(cache, records, n_saved + pending->n) * sizeof(*records);
    const uint32_t crc = crc32c(0, text, len);
    memcpy(text + len, &crc, sizeof(crc));
    if (fs_replace(cache->path, (struct str){text, len + sizeof(crc)}, err) < 0) {
        return -1;
    }
    cache->pending.n = 0;
    read_saved(cache);
    return 0;
}

bool digest_cache_save(struct digest_cache *cache)
{
    CLEANUP(fd) int fd = -1;
    struct err err = {0};
    if (!cache || cache->pending.n == 0) {
        return true;
    }
    ASSERT(cache->pending.n <= DIGEST_CACHE_RECORDS_MAX);
    bool is_saved = lock(cache, &fd, &err) == 0 && save_locked(cache, &err) == 0;
    if (!is_saved) {
        log_line(LOG_WARN, "digest cache: %s", err.msg);
    }
    return is_saved;
}
