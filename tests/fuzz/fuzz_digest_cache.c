/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a cache of digests. An odd first byte: magic and checksum are made right, as a forger would. Then no lookup reads
   outside the bytes, and a digest is returned only from a record of that key. */
#include "tests/fuzz/fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "sys/digest_cache.h"

#define MAGIC_BYTES (sizeof(DIGEST_CACHE_MAGIC) - 1)

static void look(const struct digest_cache *cache, struct str text)
{
    struct digest_record record;
    for (size_t at = MAGIC_BYTES; at + sizeof(record) <= text.len; at++) {
        struct digest_value value;
        memcpy(&record, text.ptr + at, sizeof(record));
        const struct digest_key key = {record.id.device, record.id.inode, record.size_bytes,
                                       record.mtime_ns, record.ctime_ns};
        if (digest_cache_find(cache, &key, DIGEST_SHA256, &value)) {
            struct str digest = {(const char *)value.sha256, SHA256_BYTES};
            ASSERT(str_find(text, digest) >= 0);
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
        const uint32_t crc = crc32c(0, text.ptr, text.len);
        strbuf_add(&text, &crc, sizeof(crc));
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (fs_write_all(fd, text.ptr, text.len, path, &err) < 0) {
        return 0;
    }
    cache = digest_cache_open(path, clock_system());
    look(cache, strbuf_str(&text));
    return 0;
}
