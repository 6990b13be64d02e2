/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a cache of digests. An odd first byte: the checksums of header and table are made right, as a forger would. Then no
   lookup reads outside the bytes, and a digest is returned only from a record with a right checksum. */
#include "base/base.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/fs.h"
#include "base/log.h"
#include "sys/digest_cache_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void forge(uint8_t *bytes, size_t size)
{
    struct dc_header header;
    size_t table_bytes;
    if (size < sizeof(header)) {
        return;
    }
    memcpy(&header, bytes, sizeof(header));
    if (header.bits > DC_BITS_MAX) {
        return;
    }
    table_bytes = ((size_t)1 << header.bits) * sizeof(uint32_t) + 2 * sizeof(uint32_t);
    if (table_bytes > size - sizeof(header)) {
        return;
    }
    header.file_bytes = size;
    header.n = (size - sizeof(header) - table_bytes) / sizeof(struct dc_record);
    header.table_crc = crc32c(0, bytes + sizeof(header), table_bytes);
    header.header_crc = crc32c(0, &header, offsetof(struct dc_header, header_crc));
    memcpy(bytes, &header, sizeof(header));
}

static bool has_record(const uint8_t *bytes, size_t size, const struct digest_key *key,
                       const struct digest_value *value)
{
    for (size_t at = 0; at + sizeof(struct dc_record) <= size; at += 4) {
        struct dc_record record;
        memcpy(&record, bytes + at, sizeof(record));
        if (memcmp(&record.key, key, sizeof(*key)) == 0 &&
            memcmp(record.digest, value->sha256, SHA256_BYTES) == 0 &&
            record.crc == dc_record_crc(&record)) {
            return true;
        }
    }
    return false;
}

static void look(const struct digest_cache *cache, const uint8_t *bytes, size_t size)
{
    for (size_t at = 0; at + sizeof(struct dc_record) <= size; at += 8) {
        struct digest_key key;
        struct digest_value value;
        memcpy(&key, bytes + at, sizeof(key));
        if (digest_cache_find(cache, &key, DIGEST_SHA256, &value)) {
            ASSERT(has_record(bytes, size, &key, &value));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(digest_cache) struct digest_cache *cache = NULL;
    CLEANUP(fd) int fd = memfd_create("fuzz", MFD_CLOEXEC);
    CLEANUP(free) uint8_t *bytes = xmalloc(size);
    struct err err = {0};
    char path[32];
    ASSERT(fd >= 0);
    if (size < 1 || size > 65536) {
        return 0;
    }
    log_set_level(LOG_ERROR);
    memcpy(bytes, data + 1, size - 1);
    if (data[0] & 1) {
        forge(bytes, size - 1);
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (fs_write_all(fd, bytes, size - 1, path, &err) < 0) {
        return 0;
    }
    ASSERT(digest_cache_open(path, clock_system(), &cache, &err) == 0);
    look(cache, bytes, size - 1);
    return 0;
}
