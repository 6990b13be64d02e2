/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a cache of digests. An odd first byte: first line and checksum are made right, as a forger would. Then no lookup reads
   outside the bytes, and a digest is returned only from a line of that key. */
#include "base/base.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "sys/digest_cache.h"

#define MAGIC_BYTES (sizeof(DIGEST_CACHE_MAGIC) - 1)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool take_u64(const char *text, uint64_t *ret_value)
{
    uint8_t bytes[8];
    struct err ignored = {0};
    if (hex_decode((struct str){text, 16}, 8, bytes, &ignored) < 0) {
        return false;
    }
    *ret_value = 0;
    for (size_t idx = 0; idx < 8; idx++) {
        *ret_value = *ret_value << 8 | bytes[idx];
    }
    return true;
}

/* Columns of 16 digits: device, inode, (kind), size, mtime_bits, ctime_bits; the digest comes after the day. */
static void look(const struct digest_cache *cache, struct str text)
{
    for (size_t at = MAGIC_BYTES; at + DIGEST_CACHE_LINE_BYTES <= text.len; at++) {
        const char *line = text.ptr + at;
        struct digest_key key;
        struct digest_value value;
        uint64_t mtime_bits, ctime_bits;
        char hex[SHA256_HEX_SIZE];
        if (!take_u64(line, &key.device) || !take_u64(line + 17, &key.inode) ||
            !take_u64(line + 36, &key.size_bytes) || !take_u64(line + 53, &mtime_bits) ||
            !take_u64(line + 70, &ctime_bits)) {
            continue;
        }
        key.mtime_ns = (int64_t)mtime_bits;
        key.ctime_ns = (int64_t)ctime_bits;
        if (digest_cache_find(cache, &key, DIGEST_SHA256, &value)) {
            hex_encode(value.sha256, SHA256_BYTES, hex);
            ASSERT(str_find(text, str_of(hex)) >= 0);
            ASSERT(value.size_bytes == key.size_bytes);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(digest_cache) struct digest_cache *cache = NULL;
    CLEANUP(fd) int fd = memfd_create("fuzz", MFD_CLOEXEC);
    CLEANUP(strbuf) struct strbuf text;
    struct err err = {0};
    char path[32];
    strbuf_init(&text, 1u << 17);
    ASSERT(fd >= 0);
    if (size < 1 || size > 65536) {
        return 0;
    }
    log_set_level(LOG_ERROR);
    if (data[0] & 1) {
        strbuf_add_z(&text, DIGEST_CACHE_MAGIC);
    }
    strbuf_add(&text, data + 1, size - 1);
    if (data[0] & 1) {
        strbuf_printf(&text, "%08" PRIx32 "\n", crc32c(0, text.ptr, text.len));
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (fs_write_all(fd, text.ptr, text.len, path, &err) < 0) {
        return 0;
    }
    cache = digest_cache_open(path, clock_system());
    look(cache, strbuf_str(&text));
    return 0;
}
