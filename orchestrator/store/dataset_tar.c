/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/dataset_tar.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fs.h"
#include "codec/tar_make.h"

static int fill(int fd, const struct dataset_tar_opts *opts, struct digest_value *ret_value,
                struct err *err)
{
    CLEANUP(tar_maker) struct tar_maker maker = {.fd = -1};
    CLEANUP(arena) struct arena scratch = ARENA_EMPTY;
    if (tar_make_open(&maker, fd, false, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < opts->list->n; idx++) {
        const char *path = opts->list->files[idx].path;
        if (tar_make_file(&maker, path, fs_join(&scratch, opts->folder, path), NULL, err) < 0) {
            return -1;
        }
    }
    return tar_make_close(&maker, ret_value, err);
}

/* It is made next to the store's blobs and becomes one of them: the data is copied once. */
int dataset_tar(struct store *store, const struct dataset_tar_opts *opts,
                struct digest_value *ret_value, struct err *err)
{
    const char *temp = store_partial(store, opts->name);
    (void)unlink(temp);
    CLEANUP(fd) int fd = open(temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return err_set(err, ERR_IO, "create %s: %s", temp, err_errno_text(errno));
    }
    int result = fill(fd, opts, ret_value, err);
    if (result == 0 && opts->wanted && memcmp(ret_value->sha256, opts->wanted, SHA256_BYTES) != 0) {
        result = err_set(err, ERR_INTEGRITY, "%s: what %s has makes another archive", opts->name,
                         opts->folder);
    }
    result = result < 0 ? -1 : store_adopt(store, temp, ret_value, err);
    if (result < 0) {
        (void)unlink(temp);
    }
    return result;
}
