/* SPDX-License-Identifier: Apache-2.0 */
/* The canonical tar form of an evidence archive: POSIX ustar, regular files only, each header a function of name and
   size alone, names in a fixed order, two zero blocks at the end and nothing after them. The reader is fed bytes as they
   arrive and refuses everything that the writer would not have written, byte for byte. */
#pragma once

#include "codec/unpack_names.h"

#define USTAR_BLOCK 512
/* Ustar: 155 bytes of prefix, a slash, 100 of name, less what splitting loses. */
#define USTAR_NAME_MAX  255
#define USTAR_FILE_MAX  077777777777LL /* eleven octal digits */
#define USTAR_FILES_MAX 50000
#define USTAR_TOTAL_MAX (1LL << 36) /* of all files together: a bound for decompression bombs */
/* 1980-01-01T00:00:00Z, which every tar and zip can hold; GNU tar warns about 1970. */
#define USTAR_MTIME 315532800

/* Members that cover the others are made last and also come last, in this order. */
#define USTAR_SUMS       "SHA256SUMS"
#define USTAR_PROVENANCE "provenance.dsse.json"
#define USTAR_STATEMENT  "statement.dsse.json"
/* 0 for every other name. */
int ustar_closing_rank(struct str name);
/* <0, 0, >0: bytewise, closing members last. */
int ustar_order(struct str a, struct str b);

/* The canonical header; name and size are checked. */
MUST_CHECK int ustar_header(struct str name, uint64_t size_bytes, uint8_t ret_block[USTAR_BLOCK],
                            struct err *err);

/* Zero bytes after a file of that size. */
static inline size_t ustar_padding(uint64_t size_bytes)
{
    return (size_t)(-size_bytes % USTAR_BLOCK);
}

/* The names seen so far, and what they add up to. */
struct ustar_names {
    struct unpack_names names;
    struct str last;
    size_t n_files;
    uint64_t total_bytes;
};
void ustar_names_release(struct ustar_names *names);
/* Refuses names that are out of order, duplicate, both file and folder, different only in case, or over a *_MAX. */
MUST_CHECK int ustar_names_add(struct ustar_names *names, struct str name, uint64_t size_bytes,
                               struct err *err);

/* What reads the members. Each may fail; the reader then stops with that error. name lives as long as the reader. */
struct ustar_sink {
    void *ctx;
    int (*begin)(void *ctx, struct str name, uint64_t size_bytes, struct err *err);
    int (*data)(void *ctx, const void *ptr, size_t len, struct err *err);
    int (*end)(void *ctx, struct err *err);
};

enum ustar_state { USTAR_HEADER, USTAR_DATA, USTAR_PAD, USTAR_LAST, USTAR_DONE };

struct ustar_reader {
    struct ustar_sink sink;
    struct ustar_names names;
    enum ustar_state state;
    uint64_t offset_bytes; /* in the tar stream */
    uint64_t left_bytes;   /* of data or padding */
    struct str name;
    char path[USTAR_NAME_MAX + 2]; /* of the member */
    size_t pad_bytes;
    size_t n_block;
    uint8_t block[USTAR_BLOCK];
};

void ustar_reader_init(struct ustar_reader *reader, struct ustar_sink sink);
void ustar_reader_release(struct ustar_reader *reader);
CLEANUP_BY(ustar_reader, struct ustar_reader, ustar_reader_release);
MUST_CHECK int ustar_feed(struct ustar_reader *reader, const void *ptr, size_t len,
                          struct err *err);
/* The stream has ended: an error unless the archive is complete. */
MUST_CHECK int ustar_finish(const struct ustar_reader *reader, struct err *err);
