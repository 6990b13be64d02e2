/* SPDX-License-Identifier: Apache-2.0 */
/* Which files a node has already, and whether the rest fits. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fs.h"
#include "node/relay_impl.h"
#include "sys/tree.h"

/* ---- digests ---- */

struct beating { /* during a long reading */
    struct relay *relay;
    struct err err;
};

static void beat(void *ctx, uint64_t bytes UNUSED)
{
    struct beating *beating = ctx;
    if (beating->err.code == ERR_NONE && relay_beat(beating->relay, &beating->err) < 0) {
        return;
    }
}

/* Which of an item's files below folder are correct: is_right marks those to check. */
static int pick(struct relay *relay, const struct relay_item *item, const char *folder,
                uint8_t *is_right, struct err *err)
{
    struct tree_file *files CLEANUP(free) = xcalloc(item->n + 1, sizeof(*files));
    struct beating beating = {.relay = relay};
    struct tree_opts opts = {.folder = folder,
                             .pool = relay->pool,
                             .n_threads = relay->n_threads,
                             .cache = relay->cache,
                             .kinds = DIGEST_SHA256,
                             .on_bytes = beat,
                             .progress_ctx = &beating};
    for (size_t idx = 0; idx < item->n; idx++) {
        const struct relay_file *file = &relay->order.files[item->first + idx];
        files[idx].path = file->path;
        memcpy(files[idx].sha256, file->sha256, SHA256_BYTES);
    }
    if (tree_pick(&opts, files, item->n, is_right, err) < 0) {
        return -1;
    }
    if (beating.err.code != ERR_NONE) {
        *err = beating.err;
        return -1;
    }
    return 0;
}

/* A file of another size is another file and need not be read. Of the mode only the executable bit counts. */
static bool has_size(int folder_fd, const struct relay_file *file, bool must_run)
{
    struct stat info;
    return fstatat(folder_fd, file->path, &info, 0) == 0 && S_ISREG(info.st_mode) &&
           (uint64_t)info.st_size == file->size_bytes &&
           (!must_run || !file->is_executable || (info.st_mode & S_IXUSR));
}

static int look_at_own(struct relay *relay, const struct relay_item *item, struct err *err)
{
    uint8_t *is_right = relay->is_right + item->first;
    bool has_any = false;
    CLEANUP(fd) int fd = open(item->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT) {
        return err_errno(err, "open folder", item->root);
    }
    for (size_t idx = 0; fd >= 0 && idx < item->n; idx++) {
        if (relay_beat(relay, err) < 0) {
            return -1;
        }
        is_right[idx] = has_size(fd, &relay->order.files[item->first + idx], true);
        has_any = has_any || is_right[idx];
    }
    return has_any ? pick(relay, item, item->root, is_right, err) : 0;
}

/* ---- shared folders ---- */

static bool sees_mark(const struct relay_item *item, int folder_fd)
{
    char text[RELAY_MARK_HEX + 1];
    CLEANUP(fd) int fd = openat(folder_fd, item->mark_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text));
    return len == RELAY_MARK_HEX && memcmp(text, item->mark_hex, RELAY_MARK_HEX) == 0;
}

/* Each node checks the sizes of all files; the bytes are read once by all nodes together, each its part. */
static int look_at_shared(struct relay *relay, const struct relay_item *item, bool *ret_is_shared,
                          struct err *err)
{
    uint8_t *is_right CLEANUP(free) = xcalloc(item->n + 1, 1);
    CLEANUP(fd) int fd = open(item->mark_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *ret_is_shared = false;
    if (fd < 0 || !sees_mark(item, fd)) {
        return 0;
    }
    for (size_t idx = 0; idx < item->n; idx++) {
        if (relay_beat(relay, err) < 0) {
            return -1;
        }
        if (!has_size(fd, &relay->order.files[item->first + idx], false)) {
            return 0;
        }
        is_right[idx] = idx % relay->order.n_parts == relay->order.part;
    }
    if (pick(relay, item, item->mark_folder, is_right, err) < 0) {
        return -1;
    }
    for (size_t idx = relay->order.part; idx < item->n; idx += relay->order.n_parts) {
        if (!is_right[idx]) {
            return 0;
        }
    }
    *ret_is_shared = true;
    return 0;
}

int relay_look(struct relay *relay, struct err *err)
{
    for (size_t idx = 0; idx < relay->order.n_items; idx++) {
        const struct relay_item *item = &relay->order.items[idx];
        bool is_shared = false;
        if (item->mark_name && look_at_shared(relay, item, &is_shared, err) < 0) {
            return -1;
        }
        if (is_shared) {
            memset(relay->is_right + item->first, 1, item->n);
            if (relay_say(relay, (struct relay_line){.word = RELAY_SHARED, .a = idx}, err) < 0) {
                return -1;
            }
        } else if (look_at_own(relay, item, err) < 0) {
            return -1;
        }
        for (size_t file = item->first; file < item->first + item->n; file++) {
            relay->n_right += relay->is_right[file];
            relay->there_bytes += relay->is_right[file] ? relay->order.files[file].size_bytes : 0;
        }
    }
    return 0;
}

/* ---- disk space ---- */

/* What an item lacks; *ret_root NULL: nothing. */
static int find_need(struct relay *relay, size_t item, const struct relay_root **ret_root,
                     uint64_t *ret_bytes, struct err *err)
{
    const struct relay_item *spec = &relay->order.items[item];
    uint64_t have_bytes = 0;
    *ret_root = NULL;
    *ret_bytes = 0;
    for (size_t idx = spec->first; idx < spec->first + spec->n; idx++) {
        if (!relay->is_right[idx]) {
            if (relay_root(relay, item, ret_root, err) < 0 ||
                relay_partial_bytes(relay, idx, &have_bytes, err) < 0) {
                return -1;
            }
            *ret_bytes += relay->order.files[idx].size_bytes - have_bytes;
        }
    }
    return 0;
}

/* Items that follow each other on one disk need their bytes together. */
int relay_check_disk(struct relay *relay, struct err *err)
{
    uint64_t needed_bytes = 0;
    dev_t device = 0;
    for (size_t idx = 0; idx < relay->order.n_items; idx++) {
        const char *path = relay->order.items[idx].root;
        const struct relay_root *root;
        uint64_t own_bytes;
        struct statvfs room;
        struct stat info;
        if (find_need(relay, idx, &root, &own_bytes, err) < 0) {
            return -1;
        }
        if (!root) {
            continue;
        }
        if (fstat(root->fd, &info) < 0 || fstatvfs(root->fd, &room) < 0) {
            return err_set(err, ERR_IO, "%s: %s", path, err_errno_text(errno));
        }
        needed_bytes = own_bytes + (info.st_dev == device ? needed_bytes : 0);
        device = info.st_dev;
        if (needed_bytes > (uint64_t)room.f_bavail * room.f_frsize) {
            return err_set(err, ERR_DISK, "%s: %.3f GB needed, %.3f GB free", path,
                           (double)needed_bytes / 1e9,
                           (double)room.f_bavail * (double)room.f_frsize / 1e9);
        }
    }
    return 0;
}

/* ---- what is missing ---- */

static int say_partial(struct relay *relay, size_t idx, struct err *err)
{
    struct relay_line line = {.word = RELAY_PARTIAL, .a = idx};
    return relay_partial_bytes(relay, idx, &line.b, err) < 0 ? -1
           : line.b                                          ? relay_say(relay, line, err)
                                                             : 0;
}

int relay_say_missing(struct relay *relay, struct err *err)
{
    const struct relay_order *order = &relay->order;
    struct relay_line missing = {.word = RELAY_MISSING};
    for (size_t idx = 0; idx < order->n_files; idx++) {
        if (relay->is_right[idx]) {
            continue;
        }
        bool is_first = idx == 0 || relay->is_right[idx - 1];
        bool is_last = idx + 1 == order->n_files || relay->is_right[idx + 1];
        missing.a = is_first ? idx : missing.a;
        missing.b = idx;
        if ((is_last && relay_say(relay, missing, err) < 0) || say_partial(relay, idx, err) < 0) {
            return -1;
        }
    }
    return 0;
}
