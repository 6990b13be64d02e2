/* SPDX-License-Identifier: Apache-2.0 */
/* Digests of files that were read before, by (device, inode, size, mtime, ctime): a file that was not changed still has
   the same. It trusts the kernel's ctime, which no program can set back; it does not notice bit rot, for which every
   byte must be read (deep). A digest older than DIGEST_CACHE_DAYS is forgotten, so that even quick checks read all once
   a year.

   The racy case: a file that is written in the same tick of the clock in which it was hashed keeps its times. So a
   digest is only recorded for a file whose times were older than digest_cache_slack_ns when reading began.

   One file, read and replaced whole, the latter under a lock: its mark, records sorted by id, and the CRC-32C of it all. A
   damaged file is dropped with a line in the log. Two processes may use it at once: the one that saves keeps what the other
   has saved. */
#pragma once

#include "base/clock.h"
#include "codec/digest.h"

#define DIGEST_CACHE_DAYS        365
#define DIGEST_CACHE_RECORDS_MAX 8000000
#define DIGEST_CACHE_MAGIC       "reperf-digests 3" /* 16 bytes */
#define DIGEST_CACHE_CRC_BYTES   4

struct digest_cache;
struct stat;

struct digest_key {
    uint64_t device, inode, size_bytes;
    int64_t mtime_ns, ctime_ns;
};
void digest_key_of(const struct stat *info, struct digest_key *ret_key);

struct digest_record {
    struct digest_id {
        uint64_t device, inode, kind; /* DIGEST_MD5 or DIGEST_SHA256 */
    } id;
    uint64_t size_bytes;
    int64_t mtime_ns, ctime_ns;
    int64_t day; /* when it was read, in days since 1970 */
    uint8_t digest[SHA256_BYTES];
};

/* An absent file is an empty cache, and so is one that cannot be used (logged). path is copied. */
struct digest_cache *digest_cache_open(const char *path, struct clock_src clock);
/* Forgets what was added and not saved. NULL is fine. */
void digest_cache_free(struct digest_cache *cache);
CLEANUP_POINTER(digest_cache, struct digest_cache, digest_cache_free);

/* Finds all of `kinds`, or false. Any thread, concurrently with all but save. */
bool digest_cache_find(const struct digest_cache *cache, const struct digest_key *key,
                       unsigned kinds, struct digest_value *ret_value);
/* True when a file with these times, read from now on, could not change without new times. fd_slack_ns is of its file system. */
bool digest_cache_is_settled(const struct digest_cache *cache, const struct digest_key *key,
                             int64_t slack_ns);
/* 2 s where this kernel's clock stamps the files, 2 min where another machine's may. fd: any on that file system. */
int64_t digest_cache_slack_ns(int fd);

/* The caller has asked digest_cache_is_settled before it read the file. Found from the next save on. Any thread, concurrently
   with all but save. */
void digest_cache_add(struct digest_cache *cache, const struct digest_key *key, unsigned kinds,
                      const struct digest_value *value);
/* Adds what is pending to what is on the disk now. Nothing pending: nothing is written; NULL is fine. False: it was logged
   why not, and costs time, nothing else. */
bool digest_cache_save(struct digest_cache *cache);
