/* SPDX-License-Identifier: Apache-2.0 */
/* A tar of regular files, in the order in which they are given: its bytes are a function of the names and contents alone, and of
   the version of zlib where gzip packs it. pax where ustar cannot hold a name; owner 0, mode 0644 (0755 of a program), the time
   of every archive of ours. One thread uses it. */
#pragma once

#include "base/strbuf.h"
#include "codec/digest.h"

/* 1980-01-01T00:00:00Z, which every tar and zip can hold; GNU tar warns about 1970. */
#define TAR_MAKE_MTIME 315532800
#define TAR_MAKE_MODE  0644

typedef int (*tar_make_fn)(void *ctx, const void *ptr, size_t len, struct err *err);

struct tar_maker {
    void *archive;   /* libarchive's */
    locale_t locale; /* of names */
    tar_make_fn write;
    void *ctx;            /* of write; borrowed */
    int fd;               /* borrowed */
    struct digest digest; /* of what was written to fd */
    struct err err;       /* of writing */
    uint64_t left_bytes;  /* of the member */
    bool is_executable;   /* members from now on; the caller's */
};
#define TAR_MAKER_EMPTY ((struct tar_maker){.fd = -1})

/* Writes to fd. */
MUST_CHECK int tar_make_open(struct tar_maker *maker, int fd, bool is_gzip, struct err *err);
/* Into a buffer, whose cap bounds it: an archive inside another. */
MUST_CHECK int tar_make_open_inner(struct tar_maker *maker, struct strbuf *buf, struct err *err);
/* Through a function of the caller's; ustar alone: ERR_INTERNAL for a name or a size (8 GiB) that it cannot hold. */
MUST_CHECK int tar_make_open_to(struct tar_maker *maker, tar_make_fn write, void *ctx,
                                struct err *err);
/* A member in portions, which add up to size_bytes; ERR_INTEGRITY where they do not. */
MUST_CHECK int tar_make_begin(struct tar_maker *maker, const char *name, uint64_t size_bytes,
                              struct err *err);
MUST_CHECK int tar_make_data(struct tar_maker *maker, const void *ptr, size_t len, struct err *err);
MUST_CHECK int tar_make_end(struct tar_maker *maker, struct err *err);
/* The file at `path` as the member `name`; ret_sha256 (or NULL) is of its bytes. ERR_IO, ERR_NOT_FOUND; ERR_INTEGRITY where its
   size changes meanwhile. */
MUST_CHECK int tar_make_file(struct tar_maker *maker, const char *name, const char *path,
                             uint8_t *ret_sha256, struct err *err);
MUST_CHECK int tar_make_bytes(struct tar_maker *maker, struct str name, const void *ptr, size_t len,
                              struct err *err);
/* MD5 and SHA-256 of what was written to fd. */
MUST_CHECK int tar_make_close(struct tar_maker *maker, struct digest_value *ret_value,
                              struct err *err);
void tar_maker_cleanup(struct tar_maker *maker);
