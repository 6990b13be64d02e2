/* SPDX-License-Identifier: Apache-2.0 */
/* The two halves of unpack: unpack.c judges entries, unpack_layer.c moves bytes. Not for others. */
#ifndef CODEC_UNPACK_IMPL_H
#define CODEC_UNPACK_IMPL_H

#include "base/strbuf.h"
#include "codec/unpack.h"
#include "codec/unpack_filter.h"
#include "codec/unpack_names.h"
#include "codec/unpack_source.h"

struct archive; /* libarchive's */
struct __locale_struct;

enum unpack_kind { KIND_TAR, KIND_TAR_GZ, KIND_TAR_ZST, KIND_ZIP, KIND_COUNT };
extern const char *const UNPACK_KIND_NAMES[KIND_COUNT];

/* One archive that is being read: the outer, or the tar inside it. */
struct layer {
    struct archive *a; /* owned; NULL: none */
    struct unpack *unpack;
    struct unpack_source source; /* what libarchive reads */
    /* Of the current entry. */
    struct str path; /* as shown to people; in the arena `text` */
    uint64_t size_bytes, done_bytes;
    uint64_t hole_bytes; /* zeros to be given before `ptr` */
    const void *ptr;
    size_t len;
    bool is_size_known, is_sparse, has_data, is_drained;
};

struct unpack {
    struct unpack_opts opts;
    char *name; /* owned */
    unpack_read_fn read;
    void *ctx;
    enum unpack_kind kind;
    struct unpack_source file;    /* the archive's own bytes */
    bool is_peeked;               /* its first portion has not been passed on yet */
    struct unpack_filter *filter; /* of a packed tar */
    struct layer outer, inner;
    struct unpack_names names;
    struct __locale_struct *locale, *old_locale; /* locale_t */
    struct strbuf path, target, inner_path;      /* of the entry */
    struct str prefix;                           /* NAME of the tar inside, in inner_path */
    struct unpack_entry entry;
    size_t n_shown; /* of names.new_ends that were returned */
    bool has_entry, is_over, has_failed;
    uint64_t total_bytes;
    struct err err; /* of a read, while libarchive is in between */
};

/* An error of ours takes precedence over libarchive's message about it. */
MUST_CHECK int unpack_fail(struct unpack *unpack, struct archive *a, struct err *err);
/* Detects the format by the first bytes and opens the outer layer. */
MUST_CHECK int unpack_open(struct unpack *unpack, struct err *err);
MUST_CHECK int unpack_open_inner(struct unpack *unpack, struct err *err);
void unpack_close(struct unpack *unpack);
/* Data of the entry that is being read. */
MUST_CHECK int unpack_pull(struct unpack *unpack, const void **ret_ptr, size_t *ret_len,
                           struct err *err);

#endif
