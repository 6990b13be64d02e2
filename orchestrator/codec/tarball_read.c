/* SPDX-License-Identifier: Apache-2.0 */
/* Whole archives: through a sink, or into a new folder. */
#include "base/base.h"

#include "codec/tarball.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"

int tarball_read(const char *path, struct ustar_sink sink, struct err *err)
{
    CLEANUP(tarball_source) struct tarball_source source = TARBALL_SOURCE_EMPTY;
    CLEANUP(ustar_reader) struct ustar_reader reader;
    CLEANUP(free) void *buf = xmalloc(TARBALL_CHUNK_BYTES);
    size_t len = 0;
    ustar_reader_init(&reader, sink);
    if (tarball_open(path, &source, err) < 0) {
        return -1;
    }
    do {
        if (tarball_next(&source, buf, TARBALL_CHUNK_BYTES, &len, err) < 0) {
            return -1;
        }
        if (ustar_feed(&reader, buf, len, err) < 0) {
            return err_wrap(err, "%s", path);
        }
    } while (len);
    return ustar_finish(&reader, err) < 0 ? err_wrap(err, "%s", path) : 0;
}

static int unpack_begin(void *ctx, struct str name, uint64_t size_bytes UNUSED, struct err *err)
{
    struct tarball_unpacker *u = ctx;
    char *slash;
    arena_release(&u->arena);
    u->path = arena_printf(&u->arena, "%s/%.*s", u->folder, STR_ARG(name));
    slash = strrchr(u->path, '/');
    *slash = '\0';
    if (fs_mkdir_p(u->path, err) < 0) {
        return -1;
    }
    *slash = '/';
    /* The folder is new and ours, names are checked and unique: O_EXCL says so once more. */
    u->fd = open(u->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (u->fd < 0) {
        return err_set(err, err_code_of_errno(errno), "create %s: %s", u->path,
                       err_errno_text(errno));
    }
    return 0;
}

static int unpack_data(void *ctx, const void *ptr, size_t len, struct err *err)
{
    struct tarball_unpacker *u = ctx;
    return fs_write_all(u->fd, ptr, len, u->path, err);
}

static int unpack_end(void *ctx, struct err *err)
{
    struct tarball_unpacker *u = ctx;
    /* Network file systems report a full disk here. */
    if (close(take_fd(&u->fd)) < 0) {
        return err_set(err, err_code_of_errno(errno), "close %s: %s", u->path,
                       err_errno_text(errno));
    }
    return 0;
}

void tarball_unpacker_release(struct tarball_unpacker *unpacker)
{
    fd_close(&unpacker->fd);
    arena_release(&unpacker->arena);
}

struct ustar_sink tarball_unpack_sink(struct tarball_unpacker *unpacker)
{
    return (struct ustar_sink){unpacker, unpack_begin, unpack_data, unpack_end};
}

int tarball_unpack(const char *path, const char *new_folder, struct err *err)
{
    struct tarball_unpacker unpacker = TARBALL_UNPACKER_EMPTY;
    struct err ignored = {0};
    int result;
    if (mkdir(new_folder, 0755) < 0) {
        return err_set(err, errno == EEXIST ? ERR_USAGE : err_code_of_errno(errno), "mkdir %s: %s",
                       new_folder, err_errno_text(errno));
    }
    unpacker.folder = new_folder;
    result = tarball_read(path, tarball_unpack_sink(&unpacker), err);
    tarball_unpacker_release(&unpacker);
    /* What cannot be removed after a failure is less important than the failure. */
    if (result < 0 && fs_remove_tree(new_folder, &ignored) < 0) {
        return -1;
    }
    return result;
}
