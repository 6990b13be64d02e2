/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "prep/listing.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"

#define HEX_LEN    64
#define LINE_START (HEX_LEN + 2)

static struct str line_at(const struct listing *listing, size_t idx)
{
    const char *end =
        idx + 1 < listing->n ? listing->lines[idx + 1] : listing->text.ptr + listing->text.len;
    return (struct str){listing->lines[idx], (size_t)(end - listing->lines[idx]) - 1};
}

static struct str path_at(const struct listing *listing, size_t idx)
{
    return str_sub(line_at(listing, idx), LINE_START, SIZE_MAX);
}

static int check_line(const struct listing *listing, size_t idx, const char *name, struct err *err)
{
    struct str line = line_at(listing, idx);
    struct err ignored = {0}; /* said with the line instead */
    uint8_t digest[SHA256_BYTES];
    if (line.len <= LINE_START || line.ptr[HEX_LEN] != ' ' || line.ptr[HEX_LEN + 1] != ' ' ||
        hex_decode(str_sub(line, 0, HEX_LEN), SHA256_BYTES, digest, &ignored) < 0) {
        return err_set(err, ERR_INTEGRITY, "%s: line %zu: expected a SHA-256, two blanks, a path",
                       name, idx + 1);
    }
    if (idx && str_cmp(path_at(listing, idx - 1), path_at(listing, idx)) >= 0) {
        return err_set(err, ERR_INTEGRITY, "%s: line %zu: not sorted by path", name, idx + 1);
    }
    return 0;
}

int listing_read(struct arena *arena, const char *path, struct listing *ret_listing,
                 struct err *err)
{
    CLEANUP(listing) struct listing listing = LISTING_EMPTY;
    size_t n_lines = 0;
    if (fs_read(arena, path, LISTING_BYTES_MAX, &listing.text, err) < 0) {
        return -1;
    }
    sha256_of(listing.text, listing.sha256);
    for (size_t idx = 0; idx < listing.text.len; idx++) {
        n_lines += listing.text.ptr[idx] == '\n';
    }
    if (!n_lines || listing.text.ptr[listing.text.len - 1] != '\n') {
        return err_set(err, ERR_INTEGRITY, "%s: empty, or its last line is truncated", path);
    }
    listing.lines = xcalloc(n_lines, sizeof(*listing.lines));
    const char *end = listing.text.ptr + listing.text.len;
    for (const char *at = listing.text.ptr; listing.n < n_lines;) {
        listing.lines[listing.n++] = at;
        at = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;
    }
    for (size_t idx = 0; idx < listing.n; idx++) {
        if (check_line(&listing, idx, path, err) < 0) {
            return -1;
        }
    }
    *ret_listing = listing;
    listing = LISTING_EMPTY;
    return 0;
}

void listing_release(struct listing *listing)
{
    free(listing->lines);
    *listing = LISTING_EMPTY;
}

const char *listing_find(const struct listing *listing, struct str path)
{
    size_t low = 0, high = listing->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = str_cmp(path_at(listing, middle), path);
        if (order == 0) {
            return listing->lines[middle];
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return NULL;
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

/* Exactly n bytes, or up to n where the file may be longer. */
static int read_into(int fd, const char *path, size_t n, struct file_bytes *bytes, struct err *err)
{
    bytes->len = 0;
    while (bytes->len < n) {
        ssize_t got = read(fd, bytes->ptr + bytes->len, n - bytes->len);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return err_set(err, ERR_IO, "read %s: %s", path, err_errno_text(errno));
        }
        if (got == 0) {
            return err_set(err, ERR_INTEGRITY, "%s: it became shorter while it was read", path);
        }
        bytes->len += (size_t)got;
    }
    return 0;
}

static int hold_against(const struct tree_source *source, const char *path,
                        const struct digest_value *value, struct err *err)
{
    const char *line = listing_find(source->listing, str_of(path));
    const struct hex found = sha256_hex_of(value->sha256);
    if (!line) {
        return err_set(err, ERR_INTEGRITY, "%s: not in the tree's list", path);
    }
    if (memcmp(line, found.text, HEX_LEN) != 0) {
        return err_set(err, ERR_INTEGRITY, "%s: SHA-256 %s, the tree's list says %.*s", path,
                       found.text, HEX_LEN, line);
    }
    return 0;
}

int tree_source_read(const struct tree_source *source, const char *path, size_t max_bytes,
                     struct file_bytes *bytes, struct err *err)
{
    CLEANUP(fd) int fd = -1;
    uint64_t size = 0;
    struct digest_value value;
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
    if (!source->listing) {
        return 0;
    }
    digest_start(&bytes->digest, DIGEST_SHA256);
    digest_update(&bytes->digest, bytes->ptr, bytes->len);
    value = digest_finish(&bytes->digest);
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
    if (!source->listing) {
        return 0;
    }
    if (open_file(source, path, &fd, &size, err) < 0 ||
        digest_fd(fd, path, DIGEST_SHA256, &value, err) < 0) {
        return -1;
    }
    return hold_against(source, path, &value, err);
}
