/* SPDX-License-Identifier: Apache-2.0 */
/* The cache's file, in this machine's byte order (another's is dropped):

   header | table: 2^bits + 1 uint32, the first record of each bucket | records, sorted by the hash of (device, inode, kind)

   The upper bits of the hash are the bucket. Only sys/digest_cache*.c include this. */
#ifndef SYS_DIGEST_CACHE_FILE_H
#define SYS_DIGEST_CACHE_FILE_H

#include "sys/digest_cache.h"

#define DC_MAGIC      "reperf-dc-v1\n\0\0" /* 16 bytes with the NUL */
#define DC_BITS_MIN   4
#define DC_BITS_MAX   24
#define DC_PER_BUCKET 8 /* records, about */

struct dc_header {
    char magic[16];
    uint32_t record_bytes; /* also says the byte order */
    uint32_t bits;
    uint64_t n;
    uint64_t file_bytes;
    uint32_t table_crc;
    uint32_t header_crc; /* of all before it */
};

struct dc_record {
    struct digest_key key;
    uint8_t digest[SHA256_BYTES]; /* an MD5 has the first half */
    uint16_t kind;                /* DIGEST_MD5 or DIGEST_SHA256 */
    uint16_t day;                 /* since 1970, when it was read */
    uint32_t crc;                 /* CRC-32C of all before it */
};

struct dc_map { /* a file that is mapped; zeros: none */
    void *base;
    size_t bytes;
    const uint32_t *table;
    const struct dc_record *records;
    size_t n;
    unsigned bits;
};

uint64_t dc_hash(uint64_t device, uint64_t inode, unsigned kind);
/* By hash, then by (device, inode, kind): 0 for the same file and kind. */
int dc_order(const struct dc_record *a, const struct dc_record *b);
uint32_t dc_record_crc(const struct dc_record *record);

/* 0: mapped, or absent (zeros); 1: damaged, with why; -1: error. */
MUST_CHECK int dc_map_open(const char *path, struct dc_map *ret_map, const char **ret_why,
                           struct err *err);
void dc_map_close(struct dc_map *map);
/* The checks of dc_map_open over bytes in memory: NULL, or why not. */
const char *dc_map_check(const void *base, size_t bytes, struct dc_map *ret_map);

/* Both sorted by dc_order without doubles; of a pair, the fresh one; old ones from before min_day are left out. 1: an old
   record is damaged (nothing was written). The file is synced and renamed to path by way of path.new. */
MUST_CHECK int dc_write(const char *path, const struct dc_map *old, const struct dc_record *fresh,
                        size_t n_fresh, uint16_t min_day, struct err *err);

#endif
