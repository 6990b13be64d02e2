/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "prep/tree_source.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"

int tree_source_list(struct arena *arena, const char *path, struct tree_source *source,
                     struct err *err)
{
    struct tree_list *list = arena_new(arena, struct tree_list);
    if (tree_list_read(arena, path, list, err) < 0) {
        err->code = err->code == ERR_PARSE ? ERR_INTEGRITY : err->code;
        return -1;
    }
    if (!list->n) {
        return err_set(err, ERR_INTEGRITY, "%s: it is empty", path);
    }
    tree_list_sha256(list, source->list_sha256);
    source->list = list;
    return 0;
}

void file_bytes_release(struct file_bytes *bytes)
{
    free(bytes->ptr);
    digest_release(&bytes->digest);
    *bytes = (struct file_bytes){0};
}

static int open_file(const struct tree_source *source, const char *path, int *ret_fd,
                     uint64_t *ret_size, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct stat info;
    CLEANUP(fd)
    int fd = open(fs_join(&arena, source->folder, path), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &info) < 0) {
        return err_set(err, errno == ENOENT ? ERR_INTEGRITY : err_code_of_errno(errno),
                       "open %s: %s", path, err_errno_text(errno));
    }
    if (!S_ISREG(info.st_mode)) {
        return err_set(err, ERR_INTEGRITY, "%s: not a regular file", path);
    }
    *ret_size = (uint64_t)info.st_size;
    *ret_fd = take_fd(&fd);
    return 0;
}

static void make_room(struct file_bytes *bytes, size_t n)
{
    if (bytes->size < n) {
        free(bytes->ptr);
        bytes->ptr = xmalloc(n);
        bytes->size = n;
    }
}

/* Exactly n bytes. */
static int read_into(int fd, const char *path, size_t n, struct file_bytes *bytes, struct err *err)
{
    if (fs_fill(fd, bytes->ptr, n, path, &bytes->len, err) < 0) {
        return -1;
    }
    return bytes->len == n
               ? 0
               : err_set(err, ERR_INTEGRITY, "%s: it became shorter while it was read", path);
}

static int hold_against(const struct tree_source *source, const char *path,
                        const struct digest_value *value, struct err *err)
{
    const struct tree_file *file = tree_list_find(source->list, path);
    if (!file) {
        return err_set(err, ERR_INTEGRITY, "%s: not in the tree's list", path);
    }
    if (memcmp(file->sha256, value->sha256, SHA256_BYTES) != 0) {
        return err_set(err, ERR_INTEGRITY, "%s: SHA-256 %s, the tree's list says %s", path,
                       sha256_hex_of(value->sha256).text, sha256_hex_of(file->sha256).text);
    }
    return 0;
}

int tree_source_read(const struct tree_source *source, const char *path, size_t max_bytes,
                     struct file_bytes *bytes, struct err *err)
{
    CLEANUP(fd) int fd = -1;
    uint64_t size = 0;
    if (open_file(source, path, &fd, &size, err) < 0) {
        return -1;
    }
    if (size > max_bytes) {
        return err_set(err, ERR_INTEGRITY, "%s: %" PRIu64 " bytes, expected at most %zu", path,
                       size, max_bytes);
    }
    make_room(bytes, (size_t)size + 1);
    if (read_into(fd, path, (size_t)size, bytes, err) < 0) {
        return -1;
    }
    if (!source->list) {
        return 0;
    }
    digest_start(&bytes->digest, DIGEST_SHA256);
    digest_update(&bytes->digest, bytes->ptr, bytes->len);
    struct digest_value value = digest_finish(&bytes->digest);
    return hold_against(source, path, &value, err);
}

int tree_source_head(const struct tree_source *source, const char *path, size_t n,
                     struct file_bytes *bytes, bool *ret_is_all, struct err *err)
{
    CLEANUP(fd) int fd = -1;
    uint64_t size = 0;
    if (open_file(source, path, &fd, &size, err) < 0) {
        return -1;
    }
    *ret_is_all = size <= n;
    n = *ret_is_all ? (size_t)size : n;
    make_room(bytes, n + 1);
    return read_into(fd, path, n, bytes, err);
}

int tree_source_check(const struct tree_source *source, const char *path, struct err *err)
{
    CLEANUP(fd) int fd = -1;
    uint64_t size = 0;
    struct digest_value value;
    if (!source->list) {
        return 0;
    }
    if (open_file(source, path, &fd, &size, err) < 0 ||
        digest_fd(fd, path, DIGEST_SHA256, &value, err) < 0) {
        return -1;
    }
    return hold_against(source, path, &value, err);
}
