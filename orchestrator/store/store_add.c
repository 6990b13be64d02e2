/* SPDX-License-Identifier: Apache-2.0 */
/* How a file becomes a blob. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/publish.h"
#include "store/store_impl.h"

#define COPY_BYTES (1u << 20)
#define BLOB_MODE  0444

int store_place_blob(struct store *store, const char *path, const uint8_t *sha256, struct err *err)
{
    const char *place = store_blob_path(store, sha256);
    if (chmod(path, BLOB_MODE) < 0) {
        return STORE_FAIL(err, "chmod", path);
    }
    /* One that is there already is replaced: it may be damaged, and these bytes are known to be correct. Another process may
       place the same bytes now: the second rename replaces the first. The rename makes the ctime now, so that a gc of another
       process keeps it until there is a reference. */
    return publish_name(path, place, err);
}

static int record_md5(struct store *store, const struct digest_value *value, struct err *err)
{
    static const uint8_t NONE[MD5_BYTES];
    char hex[SHA256_HEX_SIZE];
    char md5_hex[MD5_HEX_SIZE];
    uint8_t known[SHA256_BYTES];
    struct err ignored = {0};
    if (memcmp(value->md5, NONE, MD5_BYTES) == 0) {
        return 0;
    }
    hex_encode(value->sha256, SHA256_BYTES, hex);
    hex_encode(value->md5, MD5_BYTES, md5_hex);
    if (store_find_md5(store, value->md5, known, &ignored) == 0) {
        char known_hex[SHA256_HEX_SIZE];
        if (memcmp(known, value->sha256, SHA256_BYTES) == 0) {
            return 0;
        }
        hex_encode(known, SHA256_BYTES, known_hex);
        return err_set(err, ERR_INTEGRITY,
                       "two different files have MD5 %s: sha256:%s and sha256:%s; one is forged",
                       md5_hex, known_hex, hex);
    }
    hex[SHA256_HEX_SIZE - 1] = '\n';
    return store_write(store, arena_printf(store->arena, "%s/md5/%s", store->folder, md5_hex),
                       (struct str){hex, SHA256_HEX_SIZE}, err);
}

/* A file that has another name could be changed from outside after it was adopted. */
static int check_adoptable(const char *path, uint64_t size_bytes, struct err *err)
{
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0) {
        return STORE_FAIL(err, "open", path);
    }
    if (!S_ISREG(info.st_mode) || info.st_nlink != 1) {
        return err_set(err, ERR_IO, "%s: expected a regular file with one name", path);
    }
    if ((uint64_t)info.st_size != size_bytes) {
        return err_set(err, ERR_INTEGRITY, "%s: expected %llu bytes, found %lld", path,
                       (unsigned long long)size_bytes, (long long)info.st_size);
    }
    return publish_data(fd, path, err);
}

int store_adopt(struct store *store, const char *path, const struct digest_value *value,
                struct err *err)
{
    ASSERT(store->lock_fd >= 0);
    if (check_adoptable(path, value->size_bytes, err) < 0 ||
        store_place_blob(store, path, value->sha256, err) < 0) {
        return -1;
    }
    return record_md5(store, value, err);
}

/* ---- copies ---- */

static int check_space(const struct store *store, uint64_t size_bytes, struct err *err)
{
    struct statvfs info;
    uint64_t free_bytes;
    if (statvfs(store->folder, &info) < 0) {
        return STORE_FAIL(err, "free space of", store->folder);
    }
    free_bytes = (uint64_t)info.f_bavail * info.f_frsize;
    if (free_bytes < size_bytes) {
        return err_set(err, ERR_DISK, "store %s: %llu bytes free, %llu needed", store->folder,
                       (unsigned long long)free_bytes, (unsigned long long)size_bytes);
    }
    return 0;
}

struct copy {
    int from_fd;
    int to_fd;
    const char *name;
    uint64_t total_bytes;
    const struct store_hooks *hooks;
};

static int copy_and_digest(const struct copy *copy, struct digest_value *ret_value, struct err *err)
{
    CLEANUP(digest) struct digest digest = DIGEST_EMPTY;
    CLEANUP(free) uint8_t *buf = xmalloc(COPY_BYTES);
    if (digest_start(&digest, DIGEST_MD5 | DIGEST_SHA256, err) < 0) {
        return -1;
    }
    for (;;) {
        ssize_t got = read(copy->from_fd, buf, COPY_BYTES);
        if (got == 0) {
            return digest_finish(&digest, ret_value, err);
        }
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return STORE_FAIL(err, "read", copy->name);
        }
        if (copy->hooks && copy->hooks->should_stop && copy->hooks->should_stop()) {
            return err_set(err, ERR_INTERRUPTED, "%s: interrupted", copy->name);
        }
        if (digest_update(&digest, buf, (size_t)got, err) < 0 ||
            fs_write_all(copy->to_fd, buf, (size_t)got, copy->name, err) < 0) {
            return -1;
        }
        if (copy->hooks && copy->hooks->on_progress) {
            copy->hooks->on_progress(copy->hooks->progress_ctx, digest.size_bytes,
                                     copy->total_bytes);
        }
    }
}

static bool is_same_file_state(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
           a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

int store_add_file(struct store *store, const char *path, const struct store_hooks *hooks,
                   struct digest_value *ret_value, struct err *err)
{
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    CLEANUP(store_temp) struct store_temp temp = {.fd = -1};
    struct stat before, after;
    struct digest_value value = {0};
    ASSERT(store->lock_fd >= 0);
    if (fd < 0 || fstat(fd, &before) < 0) {
        return STORE_FAIL(err, "open", path);
    }
    if (!S_ISREG(before.st_mode)) {
        return err_set(err, ERR_IO, "open %s: expected a regular file", path);
    }
    if (check_space(store, (uint64_t)before.st_size, err) < 0 ||
        store_temp_new(store, &temp, err) < 0) {
        return -1;
    }
    struct copy copy = {fd, temp.fd, path, (uint64_t)before.st_size, hooks};
    if (copy_and_digest(&copy, &value, err) < 0) {
        return -1;
    }
    if (fstat(fd, &after) < 0 || !is_same_file_state(&before, &after) ||
        value.size_bytes != (uint64_t)after.st_size) {
        return err_set(err, ERR_IO, "%s: changed while it was copied", path);
    }
    if (store_adopt(store, temp.path, &value, err) < 0) {
        return -1;
    }
    temp.path[0] = '\0';
    *ret_value = value;
    return 0;
}

int store_add_text(struct store *store, struct str text, uint8_t *ret_sha256, struct err *err)
{
    CLEANUP(store_temp) struct store_temp temp = {.fd = -1};
    struct digest_value value = {.size_bytes = text.len};
    ASSERT(store->lock_fd >= 0);
    if (sha256_of(text, value.sha256, err) < 0 || store_temp_new(store, &temp, err) < 0 ||
        fs_write_all(temp.fd, text.ptr, text.len, temp.path, err) < 0 ||
        store_adopt(store, temp.path, &value, err) < 0) {
        return -1;
    }
    temp.path[0] = '\0';
    memcpy(ret_sha256, value.sha256, SHA256_BYTES);
    return 0;
}
