/* SPDX-License-Identifier: Apache-2.0 */
/* file://: libcurl would read such a file to its end in one call and block the loop; here it is read in pieces. */
#include "base/base.h"

#include "net/http_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"

#define PIECE_BYTES (1u << 20)

static void on_timer(void *ctx)
{
    struct http_transfer *transfer = ctx;
    transfer->file.timer = 0;
}

/* The loop comes back at once, while there is something to read. */
static int file_wake(struct http_transfer *transfer, struct loop *loop, struct err *err)
{
    if (transfer->file.timer) {
        return 0;
    }
    return loop_timer_add(loop, loop_now_ns(loop), on_timer, transfer, &transfer->file.timer, err);
}

static void set_head(struct http_transfer *transfer, const struct stat *info,
                     const struct http_request *request)
{
    struct http_head *head = &transfer->head;
    uint64_t size_bytes = (uint64_t)info->st_size;
    head->status = 200;
    head->total_bytes = info->st_size;
    head->is_delimited = true;
    head->etag = str_of(arena_printf(&transfer->arena, "\"%jx-%jx-%jx.%09ld\"",
                                     (uintmax_t)info->st_ino, (uintmax_t)info->st_size,
                                     (uintmax_t)info->st_mtim.tv_sec, info->st_mtim.tv_nsec));
    transfer->file.left_bytes = size_bytes;
    if (request->has_range && request->first_byte >= size_bytes) {
        head->status = 416;
        transfer->file.left_bytes = 0;
    } else if (request->has_range) {
        uint64_t last = request->last_byte < size_bytes ? request->last_byte : size_bytes - 1;
        head->status = 206;
        head->has_content_range = true;
        head->first_byte = request->first_byte;
        transfer->file.left_bytes = last - request->first_byte + 1;
    }
    head->content_bytes = (int64_t)transfer->file.left_bytes;
}

int file_start(struct http_transfer *transfer, struct loop *loop, const char *path,
               const struct http_request *request, struct err *err)
{
    struct stat info;
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    transfer->head.retry_after_ns = -1;
    transfer->head.total_bytes = -1;
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        transfer->head.status = 404;
    } else if (fd < 0 && (errno == EACCES || errno == EPERM)) {
        transfer->head.status = 403;
    } else if (fd < 0 || fstat(fd, &info) < 0) {
        return err_set(err, ERR_IO, "open %s: %s", path, err_errno_text(errno));
    } else if (!S_ISREG(info.st_mode)) {
        return err_set(err, ERR_IO, "open %s: expected a regular file", path);
    } else if (request->has_range && request->first_byte > 0 &&
               lseek(fd, (off_t)request->first_byte, SEEK_SET) < 0) {
        return err_set(err, ERR_IO, "seek in %s: %s", path, err_errno_text(errno));
    } else {
        set_head(transfer, &info, request);
        transfer->file.buf = xmalloc(PIECE_BYTES);
    }
    transfer->file.fd = take_fd(&fd);
    return file_wake(transfer, loop, err);
}

static int read_piece(struct http_transfer *transfer)
{
    struct file_read *file = &transfer->file;
    size_t want = file->left_bytes < PIECE_BYTES ? (size_t)file->left_bytes : PIECE_BYTES;
    ssize_t got = read(file->fd, file->buf, want);
    if (got < 0) {
        return errno == EINTR ? 0
                              : err_set(&transfer->err, ERR_IO, "read %s: %s", transfer->shown,
                                        err_errno_text(errno));
    }
    if (got == 0) {
        return err_set(&transfer->err, ERR_NET, "%s: the file became shorter while it was read",
                       transfer->shown);
    }
    file->left_bytes -= (uint64_t)got;
    return transfer_give_body(transfer, file->buf, (size_t)got);
}

void file_step(struct http_transfer *transfer, struct loop *loop)
{
    bool has_failed = false;
    if (transfer->is_done) {
        return;
    }
    if (!transfer->has_head) {
        has_failed = transfer_give_head(transfer) < 0;
    } else if (transfer->file.left_bytes) {
        has_failed = read_piece(transfer) < 0;
    }
    transfer->is_done = has_failed || transfer->file.left_bytes == 0;
    if (!transfer->is_done && file_wake(transfer, loop, &transfer->err) < 0) {
        transfer->is_done = true;
    }
}

void file_release(struct http_transfer *transfer, struct loop *loop)
{
    loop_timer_drop(loop, transfer->file.timer);
    fd_close(&transfer->file.fd);
    free(transfer->file.buf);
    transfer->file.buf = NULL;
}
