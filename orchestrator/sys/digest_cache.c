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
#define LOCAL_SLACK_NS                                                                             \
    (2 * NS_PER_S) /* FAT keeps times in steps of 2 s, ext3 of 1 s, all others finer */
#define REMOTE_SLACK_NS        (120 * NS_PER_S)
#define DIGEST_CACHE_BYTES_MAX (DIGEST_CACHE_RECORDS_MAX * (size_t)DIGEST_CACHE_LINE_BYTES + 64)
#define CRC_CHARS              9 /* with the line end */

/* Where the columns of a line begin or end; ctime and day are the age of what it says. */
enum { ID_END = 35, AGE_AT = 70, KEY_END = 86, DAY_AT = 87, AGE_END = 91, DIGEST_AT = 92 };

struct digest_line {
    char text[DIGEST_CACHE_LINE_BYTES];
};

struct digest_lines { /* what the file held; zeros: nothing */
    struct arena arena;
    const struct digest_line *items;
    size_t n;
};

struct digest_cache {
    char *path; /* owned */
    struct clock_src clock;
    struct digest_lines saved;
    atomic_flag is_adding; /* held for the length of one VEC_PUSH */
    struct {
        struct digest_line *items;
        size_t n;
        size_t n_max;
    } pending;
};

/* ---- lines ---- */

/* The columns up to KEY_END; a NUL follows. */
static void put_key(const struct digest_key *key, unsigned kind, char ret_text[KEY_END + 1])
{
    snprintf(ret_text, KEY_END + 1,
             "%016" PRIx64 " %016" PRIx64 " %x %016" PRIx64 " %016" PRIx64 " %016" PRIx64,
             key->device, key->inode, kind & 0xf, key->size_bytes, (uint64_t)key->mtime_ns,
             (uint64_t)key->ctime_ns);
}

static void put_crc(uint32_t crc, char ret_text[CRC_CHARS + 1])
{
    snprintf(ret_text, CRC_CHARS + 1, "%08" PRIx32 "\n", crc);
}

/* NULL, or why it cannot be used. */
static const char *check_text(struct str text, struct digest_lines *lines)
{
    const size_t head = sizeof(DIGEST_CACHE_MAGIC) - 1;
    char crc[CRC_CHARS + 1];
    if (text.len < head + CRC_CHARS || memcmp(text.ptr, DIGEST_CACHE_MAGIC, head) != 0) {
        return "it is not a cache of this version";
    }
    put_crc(crc32c(0, text.ptr, text.len - CRC_CHARS), crc);
    if (memcmp(text.ptr + text.len - CRC_CHARS, crc, CRC_CHARS) != 0) {
        return "its checksum is wrong";
    }
    lines->items = (const struct digest_line *)(text.ptr + head);
    lines->n = (text.len - head - CRC_CHARS) / sizeof(struct digest_line);
    return NULL;
}

/* An absent file is nothing; one that cannot be used only costs time. */
static void read_lines(struct digest_cache *cache)
{
    struct digest_lines *saved = &cache->saved;
    struct err err = {0};
    struct str text;
    const char *why;
    arena_release(&saved->arena);
    *saved = (struct digest_lines){0};
    if (fs_read(&saved->arena, cache->path, DIGEST_CACHE_BYTES_MAX, &text, &err) < 0) {
        why = err.code == ERR_NOT_FOUND ? NULL : err.msg;
    } else {
        why = check_text(text, saved);
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
    read_lines(cache);
    return cache;
}

void digest_cache_free(struct digest_cache *cache)
{
    if (!cache) {
        return;
    }
    arena_release(&cache->saved.arena);
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

static uint16_t today(const struct digest_cache *cache)
{
    return (uint16_t)(cache->clock.wall_ns(cache->clock.ctx) / DAY_NS);
}

static uint16_t min_day(const struct digest_cache *cache)
{
    uint16_t day = today(cache);
    return day > DIGEST_CACHE_DAYS ? (uint16_t)(day - DIGEST_CACHE_DAYS) : 0;
}

static void put_day(uint16_t day, char ret_text[5])
{
    snprintf(ret_text, 5, "%04" PRIx16, day);
}

static const struct digest_line *find_line(const struct digest_lines *saved, const char *key)
{
    size_t from = 0;
    size_t end = saved->n;
    while (from < end) {
        size_t middle = from + (end - from) / 2;
        const struct digest_line *line = &saved->items[middle];
        int order = memcmp(line->text, key, ID_END);
        if (order == 0) {
            return memcmp(line->text, key, KEY_END) == 0 ? line : NULL;
        }
        if (order < 0) {
            from = middle + 1;
        } else {
            end = middle;
        }
    }
    return NULL;
}

bool digest_cache_find(const struct digest_cache *cache, const struct digest_key *key,
                       unsigned kinds, struct digest_value *ret_value)
{
    struct digest_value value = {.size_bytes = key->size_bytes};
    char oldest[5];
    put_day(min_day(cache), oldest);
    for (unsigned kind = DIGEST_MD5; kind <= DIGEST_SHA256; kind <<= 1) {
        size_t n = kind == DIGEST_MD5 ? MD5_BYTES : SHA256_BYTES;
        char text[KEY_END + 1];
        struct err ignored = {0};
        if (!(kinds & kind)) {
            continue;
        }
        put_key(key, kind, text);
        const struct digest_line *line = find_line(&cache->saved, text);
        if (!line || memcmp(line->text + DAY_AT, oldest, sizeof(oldest) - 1) < 0 ||
            hex_decode((struct str){line->text + DIGEST_AT, 2 * n}, n,
                       kind == DIGEST_MD5 ? value.md5 : value.sha256, &ignored) < 0) {
            return false;
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
    char text[DIGEST_CACHE_LINE_BYTES + 1];
    char day[5];
    char digest[SHA256_HEX_SIZE];
    put_day(today(cache), day);
    for (unsigned kind = DIGEST_MD5; kind <= DIGEST_SHA256; kind <<= 1) {
        struct digest_line line;
        if (!(kinds & kind)) {
            continue;
        }
        hex_encode(kind == DIGEST_MD5 ? value->md5 : value->sha256,
                   kind == DIGEST_MD5 ? MD5_BYTES : SHA256_BYTES, digest);
        put_key(key, kind, text);
        snprintf(text + KEY_END, sizeof(text) - KEY_END, " %s %-64s\n", day, digest);
        memcpy(line.text, text, sizeof(line.text));
        while (atomic_flag_test_and_set(&cache->is_adding)) {
            continue;
        }
        VEC_PUSH(&cache->pending, line);
        atomic_flag_clear(&cache->is_adding);
    }
}

/* Of what is said of one file, the latest comes last. */
static int by_age(const void *a, const void *b)
{
    const struct digest_line *left = a, *right = b;
    int order = memcmp(left->text, right->text, ID_END);
    return order ? order : memcmp(left->text + AGE_AT, right->text + AGE_AT, AGE_END - AGE_AT);
}

static int lock(const struct digest_cache *cache, int *ret_fd, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    return fs_lock(arena_printf(&arena, "%s.lock", cache->path), ret_fd, err);
}

/* The latest of each file, unless nobody may use it any more. */
static size_t keep_latest(const struct digest_cache *cache, struct digest_line *lines, size_t n)
{
    char oldest[5];
    size_t n_kept = 0;
    put_day(min_day(cache), oldest);
    qsort(lines, n, sizeof(*lines), by_age);
    for (size_t idx = 0; idx < n; idx++) {
        bool is_latest = idx + 1 == n || memcmp(lines[idx].text, lines[idx + 1].text, ID_END) != 0;
        if (is_latest && memcmp(lines[idx].text + DAY_AT, oldest, sizeof(oldest) - 1) >= 0) {
            lines[n_kept++] = lines[idx];
        }
    }
    return n_kept;
}

/* What is on the disk now may be newer than what was read. */
static int save_locked(struct digest_cache *cache, struct err *err)
{
    const size_t head = sizeof(DIGEST_CACHE_MAGIC) - 1;
    struct digest_lines *saved = &cache->saved;
    CLEANUP(free) char *text = NULL;
    struct digest_line *lines;
    read_lines(cache);
    if (saved->n + cache->pending.n > DIGEST_CACHE_RECORDS_MAX) {
        log_line(LOG_INFO, "digest cache %s: full; begun anew", cache->path);
        saved->n = 0;
    }
    text = xmalloc(head + (saved->n + cache->pending.n) * sizeof(*lines) + CRC_CHARS + 1);
    lines = (struct digest_line *)(text + head);
    memcpy(text, DIGEST_CACHE_MAGIC, head);
    if (saved->n) {
        memcpy(lines, saved->items, saved->n * sizeof(*lines));
    }
    memcpy(lines + saved->n, cache->pending.items, cache->pending.n * sizeof(*lines));
    size_t len = head + keep_latest(cache, lines, saved->n + cache->pending.n) * sizeof(*lines);
    put_crc(crc32c(0, text, len), text + len);
    if (fs_replace(cache->path, (struct str){text, len + CRC_CHARS}, err) < 0) {
        return -1;
    }
    cache->pending.n = 0;
    read_lines(cache);
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
