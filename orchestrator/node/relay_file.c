/* SPDX-License-Identifier: Apache-2.0 */
/* Files that arrive on a node. The order is trusted to name the roots; below them no symlink is followed. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/fs.h"
#include "node/relay_impl.h"

#define RESERVE_MIN_BYTES (16u << 20) /* smaller files need no preallocation */
#define PREFIX_CHUNK      (1u << 20)
#define SYNC_EACH_MAX     64
#define PARTIAL_TRIES     100

int relay_root(struct relay *relay, size_t item, int *ret_fd, struct err *err)
{
    const char *root = relay->order.items[item].root;
    if (relay->root_fds[item] < 0) {
        if (fs_mkdir_p(root, err) < 0) {
            return -1;
        }
        relay->root_fds[item] = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (relay->root_fds[item] < 0) {
        return err_set(err, err_code_of_errno(errno), "open folder %s: %s", root,
                       err_errno_text(errno));
    }
    *ret_fd = relay->root_fds[item];
    return 0;
}

static void partial_name(const struct relay_file *file, const char *suffix, char *ret_name,
                         size_t size)
{
    char hex[SHA256_HEX_SIZE];
    hex_encode(file->sha256, SHA256_BYTES, hex);
    snprintf(ret_name, size, RELAY_FOLDER "/%s%s", hex, suffix);
}

uint64_t relay_partial_bytes(struct relay *relay, size_t idx)
{
    const struct relay_file *file = &relay->order.files[idx];
    struct stat info;
    struct err ignored = {0};
    char name[96];
    CLEANUP(fd) int fd = -1;
    int root_fd;
    if (!fs_is_dir(relay->order.items[file->item].root) ||
        relay_root(relay, file->item, &root_fd, &ignored) < 0) {
        return 0;
    }
    partial_name(file, "", name, sizeof(name));
    fd = beneath_open(root_fd, name, O_RDONLY | O_NONBLOCK, 0);
    /* A partial that is complete or longer was not checked against its digest, or failed: it is sent again. So is one that another
       staging is writing, which could not be continued (try_partial). */
    if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) ||
        (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)) {
        return 0;
    }
    return (uint64_t)info.st_size < file->size_bytes ? (uint64_t)info.st_size : 0;
}

/* ---- opening ---- */

static int failed(const struct relay *relay, const struct relay_file *file, const char *what,
                  struct err *err)
{
    return err_set(err,
                   err_code_of_errno(errno) == ERR_NOT_FOUND ? ERR_IO : err_code_of_errno(errno),
                   "%s %s/%s: %s", what, relay->order.items[file->item].root, file->path,
                   err_errno_text(errno));
}

/* Whether it still has that name: another staging of the same folder may have finished or dropped it before it was locked
   here. */
static bool is_still_named(int root_fd, const char *name, int fd)
{
    struct stat mine;
    struct stat named;
    CLEANUP(fd) int there = beneath_open(root_fd, name, O_RDONLY | O_NONBLOCK, 0);
    return there >= 0 && fstat(fd, &mine) == 0 && fstat(there, &named) == 0 &&
           mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
}

/* One attempt; false with errno set: ENOENT or EAGAIN if another staging interfered. */
static bool try_partial(struct relay_incoming *incoming)
{
    char own[48];
    if (beneath_mkdir(incoming->root_fd, RELAY_FOLDER, 0700) < 0) {
        return false;
    }
    partial_name(incoming->file, "", incoming->partial, sizeof(incoming->partial));
    incoming->fd = beneath_open(incoming->root_fd, incoming->partial, O_RDWR | O_CREAT, 0600);
    if (incoming->fd >= 0 && flock(incoming->fd, LOCK_EX | LOCK_NB) < 0) {
        fd_close(&incoming->fd);
        snprintf(own, sizeof(own), ".%ld.%zu", (long)getpid(), incoming->idx);
        partial_name(incoming->file, own, incoming->partial, sizeof(incoming->partial));
        incoming->fd =
            beneath_open(incoming->root_fd, incoming->partial, O_RDWR | O_CREAT | O_TRUNC, 0600);
        return incoming->fd >= 0;
    }
    if (incoming->fd >= 0 && !is_still_named(incoming->root_fd, incoming->partial, incoming->fd)) {
        fd_close(&incoming->fd);
        errno = EAGAIN;
    }
    return incoming->fd >= 0;
}

/* Locked, so that two stagings of one file do not write to the same partial. They share the folder of partials, too, which
   each removes when it is empty: so it is created again if it disappears. */
static int open_partial(const struct relay *relay, struct relay_incoming *incoming, struct err *err)
{
    for (int i = 0; i < PARTIAL_TRIES; i++) {
        if (try_partial(incoming)) {
            return 0;
        }
        if (errno != ENOENT && errno != EAGAIN) {
            break;
        }
    }
    return failed(relay, incoming->file, "write", err);
}

/* Few files are synced one by one, so that none waits for others' writes to the same disk; many are synced together at
   the end. */
static bool syncs_each(const struct relay *relay)
{
    return relay->order.n_files <= SYNC_EACH_MAX;
}

int relay_incoming_open(struct relay *relay, size_t idx, uint64_t offset,
                        struct relay_incoming **ret_incoming, struct err *err)
{
    const struct relay_file *file = &relay->order.files[idx];
    struct relay_incoming *incoming = xcalloc(1, sizeof(*incoming));
    struct stat info;
    *incoming =
        (struct relay_incoming){.file = file, .idx = idx, .fd = -1, .is_synced = syncs_each(relay)};
    if (relay_root(relay, file->item, &incoming->root_fd, err) < 0 ||
        open_partial(relay, incoming, err) < 0) {
        relay_incoming_free(incoming);
        return -1;
    }
    if (fstat(incoming->fd, &info) < 0 ||
        ((uint64_t)info.st_size >= file->size_bytes && ftruncate(incoming->fd, 0) < 0)) {
        (void)failed(relay, file, "look at", err);
        relay_incoming_free(incoming);
        return -1;
    }
    incoming->resume_bytes = (uint64_t)info.st_size < file->size_bytes ? (uint64_t)info.st_size : 0;
    if (offset > incoming->resume_bytes) {
        relay_incoming_free(incoming);
        return err_set(err, ERR_INTEGRITY, "stream: a hole in %s", file->path);
    }
    incoming->written_bytes = incoming->resume_bytes;
    /* Preallocates if the file system can, so that a full disk is noticed early. */
    if (file->size_bytes - incoming->resume_bytes >= RESERVE_MIN_BYTES &&
        fallocate(incoming->fd, FALLOC_FL_KEEP_SIZE, (off_t)incoming->resume_bytes,
                  (off_t)(file->size_bytes - incoming->resume_bytes)) < 0 &&
        errno == ENOSPC) {
        (void)failed(relay, file, "write", err);
        relay_incoming_free(incoming);
        return -1;
    }
    *ret_incoming = incoming;
    return 0;
}

void relay_incoming_free(struct relay_incoming *incoming)
{
    if (incoming) {
        fd_close(&incoming->fd);
        digest_release(&incoming->digest);
        free(incoming);
    }
}

/* ---- bytes ---- */

/* Cuts off the part that exists already; false: all of it. */
static bool clip(uint64_t have_bytes, uint64_t offset, const uint8_t **bytes, size_t *len)
{
    uint64_t skip = have_bytes > offset ? have_bytes - offset : 0;
    if (skip >= *len) {
        return false;
    }
    *bytes += skip;
    *len -= (size_t)skip;
    return true;
}

int relay_incoming_write(struct relay_incoming *incoming, uint64_t offset, const uint8_t *bytes,
                         size_t len, struct err *err)
{
    bool is_last = offset + len == incoming->file->size_bytes;
    if (!clip(incoming->resume_bytes, offset, &bytes, &len)) {
        return 0;
    }
    while (len > 0) {
        ssize_t n = pwrite(incoming->fd, bytes, len, (off_t)incoming->written_bytes);
        if (n < 0 && errno != EINTR) {
            return err_set(err, err_code_of_errno(errno), "write %s: %s", incoming->file->path,
                           err_errno_text(errno));
        }
        if (n > 0) {
            /* Starts writing to disk at once, so that the end of a large file does not mean a long wait. */
            (void)sync_file_range(incoming->fd, (off64_t)incoming->written_bytes, n,
                                  SYNC_FILE_RANGE_WRITE);
            incoming->written_bytes += (uint64_t)n;
            bytes += n;
            len -= (size_t)n;
        }
    }
    if (is_last && incoming->is_synced && fdatasync(incoming->fd) < 0) {
        return err_set(err, err_code_of_errno(errno), "sync %s: %s", incoming->file->path,
                       err_errno_text(errno));
    }
    return 0;
}

static int hash_prefix(struct relay_incoming *incoming, struct err *err)
{
    uint8_t *chunk CLEANUP(free) = xmalloc(PREFIX_CHUNK);
    uint64_t at = 0;
    if (digest_start(&incoming->digest, DIGEST_SHA256, err) < 0) {
        return -1;
    }
    while (at < incoming->resume_bytes) {
        uint64_t left = incoming->resume_bytes - at;
        ssize_t n = pread(incoming->fd, chunk, left < PREFIX_CHUNK ? (size_t)left : PREFIX_CHUNK,
                          (off_t)at);
        if (n <= 0) {
            return err_set(err, ERR_IO, "read %s: %s", incoming->file->path,
                           n < 0 ? err_errno_text(errno) : "it became shorter");
        }
        if (digest_update(&incoming->digest, chunk, (size_t)n, err) < 0) {
            return -1;
        }
        at += (uint64_t)n;
    }
    return 0;
}

int relay_incoming_hash(struct relay_incoming *incoming, uint64_t offset, const uint8_t *bytes,
                        size_t len, struct err *err)
{
    bool is_last = offset + len == incoming->file->size_bytes;
    if (!incoming->is_begun && hash_prefix(incoming, err) < 0) {
        return -1;
    }
    incoming->is_begun = true;
    if (clip(incoming->resume_bytes, offset, &bytes, &len) &&
        digest_update(&incoming->digest, bytes, len, err) < 0) {
        return -1;
    }
    if (is_last && digest_finish(&incoming->digest, &incoming->value, err) < 0) {
        return -1;
    }
    incoming->is_hashed = is_last;
    return 0;
}

/* ---- the end of a file ---- */

static int make_parents(int root_fd, const char *path, struct err *err)
{
    char parent[RELAY_PATH_MAX];
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        size_t len = (size_t)(slash - path);
        CLEANUP(fd) int there = -1;
        ASSERT(len < sizeof(parent));
        memcpy(parent, path, len);
        parent[len] = '\0';
        there = beneath_open(root_fd, parent, O_PATH | O_DIRECTORY, 0);
        if (there < 0 && beneath_mkdir(root_fd, parent, 0755) < 0) {
            return err_set(err, err_code_of_errno(errno), "make folder %s: %s", parent,
                           err_errno_text(errno));
        }
    }
    return 0;
}

/* The parent's descriptor, so that no symlink on the way is followed. */
static int name_it(struct relay_incoming *incoming, struct err *err)
{
    int folder_fd = incoming->root_fd;
    const char *path = incoming->file->path;
    const char *slash = strrchr(path, '/');
    char parent[RELAY_PATH_MAX] = ".";
    CLEANUP(fd) int parent_fd = -1;
    if (make_parents(incoming->root_fd, path, err) < 0) {
        return -1;
    }
    if (slash) {
        memcpy(parent, path, (size_t)(slash - path));
        parent[slash - path] = '\0';
        parent_fd = beneath_open(incoming->root_fd, parent, O_RDONLY | O_DIRECTORY, 0);
        folder_fd = parent_fd;
    }
    if (folder_fd < 0 || fchmod(incoming->fd, incoming->file->is_executable ? 0755 : 0644) < 0 ||
        renameat(incoming->root_fd, incoming->partial, folder_fd, slash ? slash + 1 : path) < 0 ||
        (incoming->is_synced && fsync(folder_fd) < 0)) {
        return err_set(err, err_code_of_errno(errno), "name %s: %s", path, err_errno_text(errno));
    }
    return 0;
}

/* Removes the partial of the same file that a dead relay left. */
static void drop_other_partial(const struct relay_incoming *incoming)
{
    char name[96];
    CLEANUP(fd) int fd = -1;
    partial_name(incoming->file, "", name, sizeof(name));
    if (strcmp(name, incoming->partial) == 0) {
        return;
    }
    fd = beneath_open(incoming->root_fd, name, O_RDWR, 0);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
        (void)unlinkat(incoming->root_fd, name, 0);
    }
}

int relay_incoming_finish(struct relay *relay, struct relay_incoming *incoming, struct err *err)
{
    struct relay_line line = {.word = RELAY_DONE, .a = incoming->idx};
    int result = 0;
    ASSERT(incoming->is_hashed);
    if (incoming->value.size_bytes != incoming->file->size_bytes ||
        memcmp(incoming->value.sha256, incoming->file->sha256, SHA256_BYTES) != 0) {
        line.word = RELAY_BAD;
        if (unlinkat(incoming->root_fd, incoming->partial, 0) < 0) {
            result = failed(relay, incoming->file, "drop", err);
        }
    } else {
        result = name_it(incoming, err);
        drop_other_partial(incoming);
        relay->is_right[incoming->idx] = result == 0;
        relay->n_right += result == 0;
    }
    relay_incoming_free(incoming);
    return result < 0 ? -1 : relay_say(relay, &line, err);
}

int relay_make_empty(struct relay *relay, size_t idx, struct err *err)
{
    struct relay_incoming *incoming = NULL;
    if (relay_incoming_open(relay, idx, 0, &incoming, err) < 0) {
        return -1;
    }
    if (relay_incoming_hash(incoming, 0, NULL, 0, err) < 0) {
        relay_incoming_free(incoming);
        return -1;
    }
    return relay_incoming_finish(relay, incoming, err);
}

int relay_sync(struct relay *relay, struct err *err)
{
    for (size_t idx = 0; idx < relay->order.n_items && !syncs_each(relay); idx++) {
        if (relay->root_fds[idx] >= 0 && syncfs(relay->root_fds[idx]) < 0) {
            return err_set(err, err_code_of_errno(errno), "sync %s: %s",
                           relay->order.items[idx].root, err_errno_text(errno));
        }
    }
    return 0;
}
