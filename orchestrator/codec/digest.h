/* SPDX-License-Identifier: Apache-2.0 */
/* MD5 and SHA-256, several at once in one pass over the bytes, and strict hex. A struct digest is reused for many inputs:
   digest_start, digest_update..., digest_finish, digest_start again. One thread at a time may use it. */
#pragma once

#include "base/sha256_pair.h"
#include "base/str.h"

enum { DIGEST_MD5 = 1, DIGEST_SHA256 = 2 };
#define DIGEST_KINDS 2

#define MD5_BYTES    16
#define MD5_HEX_SIZE (2 * MD5_BYTES + 1) /* with the NUL */

struct digest {
    void *kind[DIGEST_KINDS]; /* owned: the algorithms */
    void *ctx[DIGEST_KINDS];  /* owned */
    uint64_t size_bytes;      /* fed since digest_start */
    unsigned kinds;
};

#define DIGEST_EMPTY ((struct digest){0})

/* Digests that were not asked for stay zero. */
struct digest_value {
    uint64_t size_bytes;
    uint8_t md5[MD5_BYTES];
    uint8_t sha256[SHA256_BYTES];
};

void digest_release(struct digest *digest);
CLEANUP_BY(digest, struct digest, digest_release);
/* kinds: DIGEST_MD5 | DIGEST_SHA256. Forgets what was fed before. */
/* Hashing cannot fail: without memory, or on a machine whose OpenSSL lacks the algorithm, the process ends. */
void digest_start(struct digest *digest, unsigned kinds);
void digest_update(struct digest *digest, const void *ptr, size_t len);
struct digest_value digest_finish(struct digest *digest);

void sha256_of(struct str bytes, uint8_t *ret_sha256);

struct digest_copy {
    int from_fd;
    int to_fd;         /* -1: nowhere */
    const char *name;  /* for messages */
    unsigned kinds;    /* 0: no digest, the size alone */
    bool is_unstopped; /* to the end, whatever asks for a stop: what has come is kept */
    void (*on_bytes)(void *ctx, uint64_t bytes_done);
    void *ctx;
};
/* From a descriptor's current offset to the end of its file, and to the other descriptor. The functions may be NULL. */
MUST_CHECK int digest_copy(const struct digest_copy *copy, struct digest_value *ret_value,
                           struct err *err);
/* The same of one descriptor alone, which no stop ends. */
MUST_CHECK int digest_fd(int fd, const char *name, unsigned kinds, struct digest_value *ret_value,
                         struct err *err);
/* A regular file; a symlink is followed. */
MUST_CHECK int digest_file(const char *path, unsigned kinds, struct digest_value *ret_value,
                           struct err *err);

/* SHA-256 in lower-case hex, in the arena: of a file, and of a text. */
struct arena;
MUST_CHECK int digest_file_hex(struct arena *arena, const char *path, struct str *ret_hex,
                               struct err *err);
struct str digest_text_hex(struct arena *arena, struct str text);

/* Lower case, NUL-terminated: ret_text has 2 * n + 1 bytes. */
void hex_encode(const uint8_t *bytes, size_t n, char *ret_text);
/* The same as a value, of at most SHA256_BYTES; hex_of(bytes, n).text lives until the full expression ends. */
struct hex {
    char text[SHA256_HEX_SIZE];
};
struct hex hex_of(const uint8_t *bytes, size_t n);
static inline struct hex sha256_hex_of(const uint8_t *sha256)
{
    return hex_of(sha256, SHA256_BYTES);
}
struct str hex_dup(struct arena *arena, const uint8_t *bytes, size_t n);
static inline struct hex md5_hex_of(const uint8_t *md5)
{
    return hex_of(md5, MD5_BYTES);
}
/* Exactly 2 * n lower-case hex digits, or ERR_PARSE. */
MUST_CHECK int hex_decode(struct str text, size_t n, uint8_t *ret_bytes, struct err *err);

#define SHA1_BYTES 20

MUST_CHECK int hmac_sha1(struct str key, struct str text, uint8_t *ret_mac, struct err *err);
