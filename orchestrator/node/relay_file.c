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
#include "base/publish.h"
#include "node/relay_impl.h"

#define PREFIX_CHUNK  (1u << 20)
#define SYNC_EACH_MAX 64
#define LOCK_TRIES    100

struct relay_incoming {
    const struct relay_file *file;
    size_t idx;
    const struct relay_root *root;
    char partial[SHA256_HEX_SIZE]; /* its name in root->partials */
    int fd;
    uint64_t have_bytes;   /* in it, and in the digest */
    uint64_t stream_bytes; /* offset of the stream in the file */
    struct digest digest;
    bool is_synced; /* to the disk before it gets its name */
};

/* ---- roots ---- */

/* 1: open and locked; 0: another staging has it, or has just removed it; -1 with errno set. */
static int try_lock(struct relay_root *root)
{
    struct stat info;
    if (beneath_mkdir(root->fd, root->partials, 0700) < 0) {
        return -1;
    }
    root->partials_fd = beneath_open(root->fd, root->partials, O_RDONLY | O_DIRECTORY, 0);
    if (root->partials_fd < 0) {
        return errno == ENOENT ? 0 : -1;
    }
    if (flock(root->partials_fd, LOCK_EX | LOCK_NB) == 0 && fstat(root->partials_fd, &info) == 0 &&
        info.st_nlink > 0) {
        return 1;
    }
    fd_close(&root->partials_fd);
    return 0;
}

/* Two stagings into one folder have a folder of partials each: the second one's cannot be continued by others. */
static int lock_partials(struct relay_root *root)
{
    int result = 0;
    for (int i = 0; i < LOCK_TRIES && result == 0; i++) {
        if (i == 0) {
            snprintf(root->partials, sizeof(root->partials), RELAY_FOLDER);
        } else {
            snprintf(root->partials, sizeof(root->partials), ".reperf.%ld.%d", (long)getpid(), i);
        }
        result = try_lock(root);
    }
    return result > 0 ? 0 : -1;
}

int relay_root(struct relay *relay, size_t item, const struct relay_root **ret_root,
               struct err *err)
{
    const char *path = relay->order.items[item].root;
    size_t at = 0;
    while (strcmp(relay->order.items[at].root, path) != 0) {
        at++; /* items of one folder share it */
    }
    struct relay_root *root = &relay->roots[at];
    if (root->fd < 0) {
        if (fs_mkdir_p(path, err) < 0) {
            return -1;
        }
        root->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (root->fd < 0 || (root->partials_fd < 0 && lock_partials(root) < 0)) {
        return err_errno(err, "open folder", path);
    }
    *ret_root = root;
    return 0;
}

void relay_root_close(struct relay_root *root)
{
    if (root->partials_fd >= 0) {
        (void)unlinkat(root->fd, root->partials, AT_REMOVEDIR); /* if it is empty */
    }
    fd_close(&root->partials_fd);
    fd_close(&root->fd);
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

/* A partial that is complete or longer was not checked against its digest, or failed: it begins anew. */
static uint64_t usable_bytes(const struct relay_file *file, const struct stat *info)
{
    uint64_t size_bytes = (uint64_t)info->st_size;
    return S_ISREG(info->st_mode) && size_bytes < file->size_bytes ? size_bytes : 0;
}

int relay_partial_bytes(struct relay *relay, size_t idx, uint64_t *ret_bytes, struct err *err)
{
    const struct relay_file *file = &relay->order.files[idx];
    const struct relay_root *root;
    struct stat info;
    if (relay_root(relay, file->item, &root, err) < 0) {
        return -1;
    }
    *ret_bytes =
        fstatat(root->partials_fd, sha256_hex_of(file->sha256).text, &info, AT_SYMLINK_NOFOLLOW) < 0
            ? 0
            : usable_bytes(file, &info);
    return 0;
}

/* Few files are synced one by one, so that none waits for others' writes to the same disk; many are synced together at
   the end. */
static bool syncs_each(const struct relay *relay)
{
    return relay->order.n_files <= SYNC_EACH_MAX;
}

/* What a broken stream left. */
static int hash_prefix(struct relay_incoming *incoming, uint64_t size_bytes, struct err *err)
{
    uint8_t *chunk CLEANUP(free) = xmalloc(PREFIX_CHUNK);
    while (incoming->have_bytes < size_bytes) {
        uint64_t left = size_bytes - incoming->have_bytes;
        ssize_t n = pread(incoming->fd, chunk, left < PREFIX_CHUNK ? (size_t)left : PREFIX_CHUNK,
                          (off_t)incoming->have_bytes);
        if (n <= 0) {
            return err_set(err, ERR_IO, "read %s: %s", incoming->file->path,
                           n < 0 ? err_errno_text(errno) : "it became shorter");
        }
        digest_update(&incoming->digest, chunk, (size_t)n);
        incoming->have_bytes += (uint64_t)n;
    }
    return 0;
}

static int begin(struct relay *relay, struct relay_incoming *incoming, struct err *err)
{
    const struct relay_file *file = incoming->file;
    struct stat info;
    if (relay_root(relay, file->item, &incoming->root, err) < 0) {
        return -1;
    }
    hex_encode(file->sha256, SHA256_BYTES, incoming->partial);
    incoming->fd = openat(incoming->root->partials_fd, incoming->partial,
                          O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (incoming->fd < 0 || fstat(incoming->fd, &info) < 0 ||
        (usable_bytes(file, &info) == 0 && ftruncate(incoming->fd, 0) < 0)) {
        return failed(relay, file, "write", err);
    }
    uint64_t size_bytes = usable_bytes(file, &info);
    if (incoming->stream_bytes > size_bytes) {
        return err_set(err, ERR_INTEGRITY, "stream: a hole in %s", file->path);
    }
    digest_start(&incoming->digest, DIGEST_SHA256);
    return hash_prefix(incoming, size_bytes, err);
}

int relay_incoming_open(struct relay *relay, size_t idx, uint64_t offset,
                        struct relay_incoming **ret_incoming, struct err *err)
{
    struct relay_incoming *incoming = xcalloc(1, sizeof(*incoming));
    *incoming = (struct relay_incoming){.file = &relay->order.files[idx],
                                        .idx = idx,
                                        .fd = -1,
                                        .stream_bytes = offset,
                                        .is_synced = syncs_each(relay)};
    if (begin(relay, incoming, err) < 0) {
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

size_t relay_incoming_file(const struct relay_incoming *incoming, uint64_t *ret_bytes)
{
    *ret_bytes = incoming->stream_bytes;
    return incoming->idx;
}

int relay_incoming_take(struct relay_incoming *incoming, const uint8_t *bytes, size_t len,
                        struct err *err)
{
    uint64_t skip = incoming->have_bytes - incoming->stream_bytes;
    incoming->stream_bytes += len;
    skip = skip < len ? skip : len;
    bytes += skip;
    len -= (size_t)skip;
    digest_update(&incoming->digest, bytes, len);
    while (len > 0) {
        ssize_t n = pwrite(incoming->fd, bytes, len, (off_t)incoming->have_bytes);
        if (n < 0 && errno != EINTR) {
            return err_errno(err, "write", incoming->file->path);
        }
        if (n > 0) {
            /* Starts writing to disk at once, so that the end of a large file does not mean a long wait. */
            (void)sync_file_range(incoming->fd, (off64_t)incoming->have_bytes, n,
                                  SYNC_FILE_RANGE_WRITE);
            incoming->have_bytes += (uint64_t)n;
            bytes += n;
            len -= (size_t)n;
        }
    }
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
            return err_errno(err, "make folder", parent);
        }
    }
    return 0;
}

/* The parent's descriptor, so that no symlink on the way is followed. */
static int name_it(struct relay_incoming *incoming, struct err *err)
{
    int folder_fd = incoming->root->fd;
    const char *path = incoming->file->path;
    const char *slash = strrchr(path, '/');
    char parent[RELAY_PATH_MAX] = ".";
    CLEANUP(fd) int parent_fd = -1;
    if (make_parents(incoming->root->fd, path, err) < 0) {
        return -1;
    }
    if (slash) {
        memcpy(parent, path, (size_t)(slash - path));
        parent[slash - path] = '\0';
        parent_fd = beneath_open(incoming->root->fd, parent, O_RDONLY | O_DIRECTORY, 0);
        folder_fd = parent_fd;
    }
    if (folder_fd < 0 || fchmod(incoming->fd, incoming->file->is_executable ? 0755 : 0644) < 0 ||
        renameat(incoming->root->partials_fd, incoming->partial, folder_fd,
                 slash ? slash + 1 : path) < 0) {
        return err_errno(err, "name", path);
    }
    return incoming->is_synced ? publish_data(folder_fd, path, err) : 0;
}

static int finish(struct relay *relay, struct relay_incoming *incoming, struct err *err)
{
    const struct relay_file *file = incoming->file;
    if (memcmp(digest_finish(&incoming->digest).sha256, file->sha256, SHA256_BYTES) != 0) {
        return unlinkat(incoming->root->partials_fd, incoming->partial, 0) < 0
                   ? failed(relay, file, "drop", err)
                   : relay_say(relay, (struct relay_line){.word = RELAY_BAD, .a = incoming->idx},
                               err);
    }
    if (incoming->is_synced && publish_data(incoming->fd, file->path, err) < 0) {
        return -1;
    }
    if (name_it(incoming, err) < 0) {
        return -1;
    }
    relay->is_right[incoming->idx] = 1;
    relay->n_right++;
    return 0;
}

int relay_incoming_finish(struct relay *relay, struct relay_incoming *incoming, struct err *err)
{
    int result = finish(relay, incoming, err);
    relay_incoming_free(incoming);
    return result;
}

int relay_sync(struct relay *relay, struct err *err)
{
    for (size_t idx = 0; idx < relay->order.n_items && !syncs_each(relay); idx++) {
        if (relay->roots[idx].fd >= 0 &&
            publish_all(relay->roots[idx].fd, relay->order.items[idx].root, err) < 0) {
            return -1;
        }
    }
    return 0;
}
