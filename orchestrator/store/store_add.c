/* SPDX-License-Identifier: Apache-2.0 */
/* How a file becomes a blob. */
#include "base/base.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/publish.h"
#include "store/store_impl.h"

#define BLOB_MODE 0444

/* path becomes the read-only blob. */
static int place_blob(struct store *store, const char *path, const uint8_t *sha256, struct err *err)
{
    const char *place = store_blob_path(store, sha256);
    if (chmod(path, BLOB_MODE) < 0) {
        return err_errno(err, "chmod", path);
    }
    /* One that is there already is replaced: it may be damaged, and these bytes are known to be correct. Another process may
       place the same bytes now: the second rename replaces the first. The rename makes the ctime now, so that a gc of another
       process keeps it until there is a reference. */
    return publish_name(path, place, err);
}

static int record_md5(struct store *store, const struct digest_value *value, struct err *err)
{
    static const uint8_t NONE[MD5_BYTES];
    const struct hex md5 = md5_hex_of(value->md5);
    struct hex sha256 = sha256_hex_of(value->sha256);
    uint8_t known[SHA256_BYTES];
    if (memcmp(value->md5, NONE, MD5_BYTES) == 0) {
        return 0;
    }
    if (store_find_md5(store, value->md5, known, ERR_IGNORED) == 0) {
        if (memcmp(known, value->sha256, SHA256_BYTES) == 0) {
            return 0;
        }
        return err_set(err, ERR_INTEGRITY,
                       "two different files have MD5 %s: sha256:%s and sha256:%s; one is forged",
                       md5.text, sha256_hex_of(known).text, sha256.text);
    }
    sha256.text[SHA256_HEX_SIZE - 1] = '\n';
    return store_write(store, arena_printf(store->arena, "%s/md5/%s", store->folder, md5.text),
                       (struct str){sha256.text, SHA256_HEX_SIZE}, err);
}

/* A file that has another name could be changed from outside after it was adopted. */
static int check_adoptable(const char *path, uint64_t size_bytes, struct err *err)
{
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0) {
        return err_errno(err, "open", path);
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
        place_blob(store, path, value->sha256, err) < 0) {
        return -1;
    }
    return record_md5(store, value, err);
}

/* ---- copies ---- */

/* The caller's hook wants the total, too. */
struct blob_adding {
    const struct store_hooks *hooks;
    uint64_t total_bytes;
};

static void show_bytes(void *ctx, uint64_t bytes_done)
{
    const struct blob_adding *adding = ctx;
    if (adding->hooks && adding->hooks->on_progress) {
        adding->hooks->on_progress(adding->hooks->progress_ctx, bytes_done, adding->total_bytes);
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
    CLEANUP(fd) int fd = -1;
    CLEANUP(temp) struct temp *temp = NULL;
    struct stat before, after;
    struct digest_value value = {0};
    ASSERT(store->lock_fd >= 0);
    if (fs_open(path, &fd, &before, err) < 0 || store_temp(store, &temp, err) < 0 ||
        fs_expect_room(temp->fd, (uint64_t)before.st_size, path, err) < 0) {
        return -1;
    }
    struct blob_adding adding = {hooks, (uint64_t)before.st_size};
    const struct digest_copy copy = {.from_fd = fd,
                                     .to_fd = temp->fd,
                                     .name = path,
                                     .kinds = DIGEST_MD5 | DIGEST_SHA256,
                                     .on_bytes = show_bytes,
                                     .ctx = &adding};
    if (digest_copy(&copy, &value, err) < 0) {
        return -1;
    }
    if (fstat(fd, &after) < 0 || !is_same_file_state(&before, &after) ||
        value.size_bytes != (uint64_t)after.st_size) {
        return err_set(err, ERR_IO, "%s: changed while it was copied", path);
    }
    if (store_adopt(store, temp->path, &value, err) < 0) {
        return -1;
    }
    *ret_value = value;
    return 0;
}

int store_add_text(struct store *store, struct str text, uint8_t *ret_sha256, struct err *err)
{
    CLEANUP(temp) struct temp *temp = NULL;
    struct digest_value value = {.size_bytes = text.len};
    ASSERT(store->lock_fd >= 0);
    sha256_of(text, value.sha256);
    if (store_temp(store, &temp, err) < 0 ||
        fs_write_all(temp->fd, text.ptr, text.len, temp->path, err) < 0 ||
        store_adopt(store, temp->path, &value, err) < 0) {
        return -1;
    }
    memcpy(ret_sha256, value.sha256, SHA256_BYTES);
    return 0;
}
