/* SPDX-License-Identifier: Apache-2.0 */
/* What is built on the three functions of codec/digest.h, whether OpenSSL implements them (digest.c) or reperf-node
   (node/digest_plain.c). */
#include "base/base.h"

#include "codec/digest.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/stop.h"

#define READ_BYTES (1u << 20)

void sha256_of(struct str bytes, uint8_t *ret_sha256)
{
    CLEANUP(digest) struct digest digest = DIGEST_EMPTY;
    digest_start(&digest, DIGEST_SHA256);
    digest_update(&digest, bytes.ptr, bytes.len);
    memcpy(ret_sha256, digest_finish(&digest).sha256, SHA256_BYTES);
}

int digest_copy(const struct digest_copy *copy, struct digest_value *ret_value, struct err *err)
{
    CLEANUP(digest) struct digest digest = DIGEST_EMPTY;
    CLEANUP(free) void *buf = xmalloc(READ_BYTES);
    uint64_t n_bytes = 0;
    ssize_t got = 1;
    if (copy->kinds) {
        digest_start(&digest, copy->kinds);
    }
    while (got != 0) {
        got = read(copy->from_fd, buf, READ_BYTES);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return err_errno(err, "read", copy->name);
        }
        if (!copy->is_unstopped && stop_is_asked()) {
            return err_set(err, ERR_INTERRUPTED, "%s: interrupted", copy->name);
        }
        if (copy->kinds) {
            digest_update(&digest, buf, (size_t)got);
        }
        if (copy->to_fd >= 0 && fs_write_all(copy->to_fd, buf, (size_t)got, copy->name, err) < 0) {
            return -1;
        }
        n_bytes += (uint64_t)got;
        if (copy->on_bytes && got > 0) {
            copy->on_bytes(copy->ctx, n_bytes);
        }
    }
    *ret_value =
        copy->kinds ? digest_finish(&digest) : (struct digest_value){.size_bytes = n_bytes};
    return 0;
}

int digest_fd(int fd, const char *name, unsigned kinds, struct digest_value *ret_value,
              struct err *err)
{
    const struct digest_copy copy = {
        .from_fd = fd, .to_fd = -1, .name = name, .kinds = kinds, .is_unstopped = true};
    return digest_copy(&copy, ret_value, err);
}

int digest_file(const char *path, unsigned kinds, struct digest_value *ret_value, struct err *err)
{
    CLEANUP(fd) int fd = -1;
    struct stat info;
    return fs_open(path, &fd, &info, err) < 0 ? -1 : digest_fd(fd, path, kinds, ret_value, err);
}

void hex_encode(const uint8_t *bytes, size_t n, char *ret_text)
{
    static const char HEX_DIGITS[] = "0123456789abcdef";
    for (size_t idx = 0; idx < n; idx++) {
        ret_text[2 * idx] = HEX_DIGITS[bytes[idx] >> 4];
        ret_text[2 * idx + 1] = HEX_DIGITS[bytes[idx] & 15];
    }
    ret_text[2 * n] = '\0';
}

struct hex hex_of(const uint8_t *bytes, size_t n)
{
    struct hex hex;
    ASSERT(n <= SHA256_BYTES);
    hex_encode(bytes, n, hex.text);
    return hex;
}

#define NO_NIBBLE 16u

static unsigned nibble(char c)
{
    if (c >= '0' && c <= '9') {
        return (unsigned)(c - '0');
    }
    return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : NO_NIBBLE;
}

int hex_decode(struct str text, size_t n, uint8_t *ret_bytes, struct err *err)
{
    if (text.len != 2 * n) {
        return err_set(err, ERR_PARSE, "expected %zu hex digits, found %zu bytes", 2 * n, text.len);
    }
    for (size_t idx = 0; idx < text.len; idx++) {
        if (nibble(text.ptr[idx]) == NO_NIBBLE) {
            return err_set(err, ERR_PARSE, "expected a lower-case hex digit at byte %zu", idx);
        }
    }
    for (size_t idx = 0; idx < n; idx++) {
        ret_bytes[idx] = (uint8_t)(nibble(text.ptr[2 * idx]) << 4 | nibble(text.ptr[2 * idx + 1]));
    }
    return 0;
}
