/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "prep/tarfile.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/publish.h"
#include "codec/ustar.h"

static const uint8_t ZEROS[2 * USTAR_BLOCK];

static int to_file(void *ctx, const void *ptr, size_t len, struct err *err)
{
    struct tarfile *tar = ctx;
    digest_update(&tar->digest, ptr, len);
    return fs_write_all(tar->fd, ptr, len, tar->path, err);
}

static int put(struct tarfile *tar, const void *ptr, size_t len, struct err *err)
{
    return tar->is_gzip ? gzip_writer_data(&tar->gzip, ptr, len, err) : to_file(tar, ptr, len, err);
}

int tarfile_open(struct tarfile *tar, const char *path, bool is_gzip, struct err *err)
{
    *tar = TARFILE_EMPTY;
    tar->path = arena_printf(&tar->arena, "%s", path);
    tar->temp = arena_printf(&tar->arena, "%s.part", path);
    tar->is_gzip = is_gzip;
    if (fs_check_target(path, err) < 0) {
        return -1;
    }
    tar->fd = open(tar->temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (tar->fd < 0) {
        return err_set(err, err_code_of_errno(errno), "create %s: %s", tar->temp,
                       err_errno_text(errno));
    }
    digest_start(&tar->digest, DIGEST_MD5 | DIGEST_SHA256);
    return is_gzip ? gzip_writer_init(&tar->gzip, to_file, tar, err) : 0;
}

int tarfile_add(struct tarfile *tar, struct str name, const void *ptr, size_t len, struct err *err)
{
    uint8_t header[USTAR_BLOCK];
    if (ustar_header(name, len, header, err) < 0 || put(tar, header, sizeof(header), err) < 0 ||
        put(tar, ptr, len, err) < 0) {
        return -1;
    }
    return put(tar, ZEROS, ustar_padding(len), err);
}

int tarfile_close(struct tarfile *tar, struct digest_value *ret_value, struct err *err)
{
    if (put(tar, ZEROS, sizeof(ZEROS), err) < 0 ||
        (tar->is_gzip && gzip_writer_end(&tar->gzip, err) < 0)) {
        return -1;
    }
    *ret_value = digest_finish(&tar->digest);
    if (publish_file(tar->fd, tar->temp, tar->path, err) < 0) {
        return -1;
    }
    fd_close(&tar->fd);
    return 0;
}

void tarfile_release(struct tarfile *tar)
{
    if (tar->fd >= 0) {
        fd_close(&tar->fd);
        (void)unlink(tar->temp);
    }
    gzip_writer_release(&tar->gzip);
    digest_release(&tar->digest);
    arena_release(&tar->arena);
    *tar = TARFILE_EMPTY;
}

int tarfile_append(struct strbuf *buf, struct str name, const void *ptr, size_t len,
                   struct err *err)
{
    uint8_t header[USTAR_BLOCK];
    if (ustar_header(name, len, header, err) < 0) {
        return -1;
    }
    strbuf_add(buf, header, sizeof(header));
    strbuf_add(buf, ptr, len);
    strbuf_add(buf, ZEROS, ustar_padding(len));
    return buf->is_full ? err_set(err, ERR_INTERNAL, "%.*s: the inner archive has over %zu bytes",
                                  STR_ARG(name), buf->cap_bytes)
                        : 0;
}

void tarfile_append_end(struct strbuf *buf)
{
    strbuf_add(buf, ZEROS, sizeof(ZEROS));
}
