/* SPDX-License-Identifier: Apache-2.0 */
/* The members of an archive as files. */
#include "base/base.h"

#include "codec/tarball.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"

static int member_begin(void *ctx, struct str name, uint64_t size_bytes UNUSED, struct err *err)
{
    struct tarball_unpacker *u = ctx;
    arena_release(&u->arena);
    u->path = arena_printf(&u->arena, "%s/%.*s", u->folder, STR_ARG(name));
    if (fs_mkdir_above(u->path, err) < 0) {
        return -1;
    }
    /* The folder is new and ours, names are checked and unique: O_EXCL makes sure once more. */
    u->fd = open(u->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (u->fd < 0) {
        return err_errno(err, "create", u->path);
    }
    return 0;
}

static int member_data(void *ctx, const void *ptr, size_t len, struct err *err)
{
    struct tarball_unpacker *u = ctx;
    return fs_write_all(u->fd, ptr, len, u->path, err);
}

static int member_end(void *ctx, struct err *err)
{
    struct tarball_unpacker *u = ctx;
    /* Network file systems report a full disk here. */
    if (close(take_fd(&u->fd)) < 0) {
        return err_errno(err, "close", u->path);
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
    return (struct ustar_sink){unpacker, member_begin, member_data, member_end};
}
