/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "core/safetensors.h"

#include "base/fs.h"
#include "base/strbuf.h"
#include "core/json_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/publish.h"

/* Beginning of a sealed file's header, so that the digest is at a fixed place. */
#define SEAL_HEAD  "{\"__metadata__\":{\"sha256\":\""
#define SEAL_ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
#define SEAL_AT    (ST_PREFIX_BYTES + (int)sizeof(SEAL_HEAD) - 1)
#define SEAL_LIKE  12 /* bytes of SEAL_HEAD by which a damaged file is still recognised */

/* A file being written. */
struct writer {
    int fd;
    const char *path;
    struct sha256 sha;
};

static int put(struct writer *writer, const void *ptr, size_t len, struct err *err)
{
    sha256_add(&writer->sha, ptr, len);
    return fs_write_all(writer->fd, ptr, len, writer->path, err);
}

static void write_tensor_entry(struct json_out *out, const struct st_tensor *tensor, int64_t *at)
{
    ASSERT(tensor->bytes == shape_count(&tensor->shape) * dtype_bytes(tensor->dtype));
    json_out_key(out, tensor->name);
    json_out_open(out, '{');
    json_out_put_text(out, "dtype", st_dtype_text(tensor->dtype));
    json_out_key(out, "shape");
    json_out_open(out, '[');
    for (int i = 0; i < tensor->shape.n_dims; i++) {
        json_out_i64(out, tensor->shape.dim[i]);
    }
    json_out_close(out, ']');
    json_out_key(out, "data_offsets");
    json_out_open(out, '[');
    json_out_i64(out, *at);
    *at += tensor->bytes;
    json_out_i64(out, *at);
    json_out_close(out, ']');
    json_out_close(out, '}');
}

static void write_header(struct strbuf *buf, const struct st_content *content, bool is_sealed)
{
    struct json_out out = {.buf = buf};
    int64_t at = 0;
    json_out_open(&out, '{');
    if (is_sealed) {
        json_out_key(&out, "__metadata__");
        json_out_open(&out, '{');
        json_out_put_text(&out, "sha256", SEAL_ZEROS);
        for (int i = 0; i < content->n_meta; i++) {
            json_out_put_text(&out, content->meta[i].key, content->meta[i].value);
        }
        json_out_close(&out, '}');
    }
    for (int i = 0; i < content->n_tensors; i++) {
        write_tensor_entry(&out, &content->tensors[i], &at);
    }
    json_out_close(&out, '}');
    while (buf->len % ST_PREFIX_BYTES != 0 && !buf->is_full) {
        strbuf_add_char(buf, ' ');
    }
}

static int put_digest(struct writer *writer, char ret_hex[SHA256_HEX_LEN + 1], struct err *err)
{
    sha256_hex(&writer->sha, ret_hex);
    ssize_t n = pwrite(writer->fd, ret_hex, SHA256_HEX_LEN, SEAL_AT);
    if (n != SHA256_HEX_LEN) {
        int errnum = n < 0 ? errno : ENOSPC;
        return err_set(err, err_code_of_errno(errnum), "%s: %s", writer->path,
                       err_errno_text(errnum));
    }
    return 0;
}

/* ret_hex NULL: without texts and digest. */
static int write_all(struct writer *writer, const struct st_content *content, char *ret_hex,
                     struct err *err)
{
    CLEANUP(strbuf) struct strbuf header;
    strbuf_init(&header, ST_HEADER_BYTES_MAX);
    write_header(&header, content, ret_hex != NULL);
    if (header.is_full) {
        return err_set(err, ERR_USAGE, "%s: header of more than %d bytes", writer->path,
                       ST_HEADER_BYTES_MAX);
    }
    char prefix[ST_PREFIX_BYTES];
    for (int i = 0; i < ST_PREFIX_BYTES; i++) {
        prefix[i] = (char)(header.len >> (8 * i) & 0xFFU);
    }
    if (put(writer, prefix, sizeof(prefix), err) < 0 ||
        put(writer, header.ptr, header.len, err) < 0) {
        return -1;
    }
    for (int i = 0; i < content->n_tensors; i++) {
        const struct st_tensor *tensor = &content->tensors[i];
        const void *data = tensor->data ? tensor->data : content->fetch(content->ctx, i);
        if (put(writer, data, (size_t)tensor->bytes, err) < 0) {
            return -1;
        }
    }
    return ret_hex ? put_digest(writer, ret_hex, err) : 0;
}

static int write_file(const char *path, const struct st_content *content, char *ret_hex,
                      struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct writer writer = {.path = path};
    sha256_init(&writer.sha);
    if (fs_check_target(path, err) < 0) {
        return -1;
    }
    char *temporary = arena_printf(&arena, "%s.tmp.%ld", path, (long)getpid());
    CLEANUP(fd) int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0) {
        return err_set(err, err_code_of_errno(errno), "%s: %s", temporary, err_errno_text(errno));
    }
    writer.fd = fd;
    if (write_all(&writer, content, ret_hex, err) < 0 ||
        publish_file(fd, temporary, path, err) < 0) {
        unlink(temporary);
        return -1;
    }
    return 0;
}

int st_write(const char *path, const struct st_tensor *tensors, int n_tensors, struct err *err)
{
    const struct st_content content = {.tensors = tensors, .n_tensors = n_tensors};
    return write_file(path, &content, NULL, err);
}

int st_write_sealed(const char *path, const struct st_content *content,
                    char ret_hex[SHA256_HEX_LEN + 1], struct err *err)
{
    return write_file(path, content, ret_hex, err);
}

/* ---- the seal ---- */

/* Whole, truncated, or with some bytes of its beginning changed: still a file that was sealed. */
static bool was_sealed(struct str content)
{
    size_t n_like = 0;
    size_t n = 0;
    for (; n < sizeof(SEAL_HEAD) - 1 && ST_PREFIX_BYTES + n < content.len; n++) {
        n_like += content.ptr[ST_PREFIX_BYTES + n] == SEAL_HEAD[n];
    }
    return n_like >= SEAL_LIKE;
}

int st_check_seal(struct str content, char ret_hex[SHA256_HEX_LEN + 1], struct err *err)
{
    struct sha256 sha;
    bool has_head = content.len >= (size_t)SEAL_AT + SHA256_HEX_LEN &&
                    memcmp(content.ptr + ST_PREFIX_BYTES, SEAL_HEAD, sizeof(SEAL_HEAD) - 1) == 0;
    if (!has_head) {
        return was_sealed(content) || content.len < ST_PREFIX_BYTES + SEAL_LIKE
                   ? err_set(err, ERR_INTEGRITY,
                             "damaged: %zu bytes, which do not begin as a checkpoint does",
                             content.len)
                   : err_set(err, ERR_PARSE,
                             "not a checkpoint: it does not begin with its SHA-256");
    }
    sha256_init(&sha);
    sha256_add(&sha, content.ptr, (size_t)SEAL_AT);
    sha256_add(&sha, SEAL_ZEROS, SHA256_HEX_LEN);
    size_t rest = (size_t)SEAL_AT + SHA256_HEX_LEN;
    sha256_add(&sha, content.ptr + rest, content.len - rest);
    sha256_hex(&sha, ret_hex);
    if (memcmp(ret_hex, content.ptr + SEAL_AT, SHA256_HEX_LEN) != 0) {
        return err_set(err, ERR_INTEGRITY,
                       "damaged or truncated: its %zu bytes do not have the SHA-256 that it names",
                       content.len);
    }
    return 0;
}
