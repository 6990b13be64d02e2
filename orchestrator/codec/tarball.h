/* SPDX-License-Identifier: Apache-2.0 */
/* The file RUN.tar.zst: one zstd frame that holds a tar of the members that codec/ustar.h allows, then one skippable frame, the
   closing, which every zstd tool skips. The closing holds the SHA-256 of all bytes before it, the public key and an Ed25519
   signature over that digest, or dashes if there is no key. So every byte of the file is covered, including zstd's own coding,
   and whether the closing is valid does not depend on the version of libzstd that reads it. The same libzstd always writes the
   same bytes. */
#pragma once

#include "codec/sign.h"
#include "codec/tar_make.h"
#include "codec/ustar.h"

/* Part of the format, so that equal runs give equal bytes. Level 1 with a 1 MiB window made the published logs smaller than
   `zstd -3` did (81 against 85 MB for 1 GB) in two thirds of its time; measured with libzstd 1.5.4. The number of workers
   does not change the bytes as long as there is at least one (zstd.h, ZSTD_c_nbWorkers); one more than the two cores that
   we plan for keeps both busy while a third waits for its job to be filled. */
#define TARBALL_LEVEL      1
#define TARBALL_WINDOW_LOG 20
#define TARBALL_WORKERS    3

#define TARBALL_CHUNK_BYTES ((size_t)1 << 20)

/* The closing's text, with every line of fixed length:
     reperf-closing 1
     sha256 HEX64
     key HEX64        (the raw public key, or 64 dashes)
     signature HEX128 (over the first two lines, or 128 dashes) */
#define TARBALL_CLOSING_TEXT_BYTES (17 + 72 + 69 + 139)
#define TARBALL_CLOSING_BYTES      (8 + TARBALL_CLOSING_TEXT_BYTES)

struct tarball_closing {
    uint8_t sha256[SHA256_BYTES];
    bool is_signed;
    uint8_t public_raw[SIGN_PUBLIC_BYTES];
    uint8_t signature[SIGN_BYTES];
};

struct tarball_writer {
    const char *name; /* borrowed: for messages */
    int fd;           /* borrowed */
    struct tar_maker tar;
    void *zstd;   /* owned */
    uint8_t *out; /* owned */
    size_t out_bytes;
    struct digest container;
    struct ustar_names names;
    uint64_t written_bytes;
    uint64_t flushed_bytes; /* given to the disk early, so that the last fsync is short */
    /* The digest of all bytes before the closing, after tarball_finish. */
    uint8_t container_sha256[SHA256_BYTES];
};

#define TARBALL_WRITER_EMPTY ((struct tarball_writer){.fd = -1, .tar = TAR_MAKER_EMPTY})

/* The writer stays where it is. */
MUST_CHECK int tarball_writer_init(struct tarball_writer *w, int fd, const char *name,
                                   struct err *err);
void tarball_writer_release(struct tarball_writer *w);
CLEANUP_BY(tarball_writer, struct tarball_writer, tarball_writer_release);
/* Members in ustar_order; exactly size_bytes of data between begin and end. */
MUST_CHECK int tarball_begin(struct tarball_writer *w, struct str name, uint64_t size_bytes,
                             struct err *err);
MUST_CHECK int tarball_data(struct tarball_writer *w, const void *ptr, size_t len, struct err *err);
MUST_CHECK int tarball_end(struct tarball_writer *w, struct err *err);
/* End of the tar, end of the frame, closing. key may be NULL: unsigned. The caller syncs and renames the file. */
MUST_CHECK int tarball_finish(struct tarball_writer *w, const struct sign_key *key,
                              struct err *err);

struct tarball_source {
    const char *name;         /* borrowed */
    int fd;                   /* owned */
    uint8_t *in;              /* owned */
    uint64_t container_bytes; /* before the closing */
    uint64_t read_bytes;
    struct digest container;
    struct tarball_closing closing;
    struct unpack *unpack;        /* owned */
    struct strbuf seen;           /* of the tar: what was unpacked, from seen_from on */
    uint64_t seen_from, data_end; /* the last member's bytes end there, and */
    uint64_t tar_at;              /* the next header begins */
};

#define TARBALL_SOURCE_EMPTY ((struct tarball_source){.fd = -1})

/* Reads the closing; a signature in it is checked against the key in it (whose it is, the caller must know). The source stays
   where it is. */
MUST_CHECK int tarball_open(const char *path, struct tarball_source *ret_source, struct err *err);
void tarball_source_release(struct tarball_source *source);
CLEANUP_BY(tarball_source, struct tarball_source, tarball_source_release);
/* The next member, whose bytes unpack_data gives; false in *ret_has at the end, when every byte of the file has been read and the
   digest of the closing was confirmed. A tar that could be read in another way is ERR_INTEGRITY. */
MUST_CHECK int tarball_next(struct tarball_source *source, struct unpack_entry *ret_member,
                            bool *ret_has, struct err *err);

/* The SHA-256 of all bytes before the closing, as tarball_finish gave it to the writer. Nothing is unpacked. */
MUST_CHECK int tarball_container(const char *path, uint8_t ret_sha256[SHA256_BYTES],
                                 struct err *err);
