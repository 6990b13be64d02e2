/* SPDX-License-Identifier: Apache-2.0 */
/* Untrusted archives, read one entry after another with libarchive, whose home for reading is codec/unpack*.c: tar, tar.gz,
   tar.zst, zip, and a tar inside a tar. Names and sizes are those that libarchive gives; a zip has the entries that its directory
   lists. Which entries may be written where is decided here, from names and types alone, before a byte is written;
   store/unpack_tree.h writes them. An archive that would leave its folder, or make anything but regular files, folders and
   harmless links, is refused as a whole: ERR_INTEGRITY with the entry's name. So is one that is truncated, a tar with bytes after
   its end, and a zip or a tar.zst that fails its own checksums (gzip's is not compared: the digest of the archive is what
   counts). One thread at a time. */
#pragma once

#include "base/str.h"

#define UNPACK_PATH_MAX  4096
#define UNPACK_NAME_MAX  255
#define UNPACK_DEPTH_MAX 64
#define UNPACK_FILES_MAX 4000000

/* Unpacked bytes that are always allowed: for so few the ratio means nothing. */
#define UNPACK_RATIO_FREE_BYTES (64ULL << 20)

#define UNPACK_RATIO_MAX 1000

struct unpack_limits {
    uint64_t files; /* entries and the folders above them, at most; 0: UNPACK_FILES_MAX */
    uint64_t bytes; /* of all files; 0: no limit but the disk's */
    uint64_t ratio; /* unpacked bytes over archive bytes read; 0: UNPACK_RATIO_MAX */
};

enum unpack_type { UNPACK_FILE, UNPACK_FOLDER, UNPACK_SYMLINK, UNPACK_HARDLINK };

/* A folder comes once, before everything in it, whether or not the archive has an entry for it. */
struct unpack_entry {
    struct str path; /* relative, without "." and "..", checked; valid until the next entry */
    enum unpack_type type;
    /* Of a symlink: its text, relative, staying inside, through real folders to a file of the archive (the last is known
       only once unpack_next has reported the end). Of a hard link: the path of an earlier file. */
    struct str target;
    uint64_t size_bytes;
    bool is_size_known; /* zip may not say */
    bool is_executable; /* tar; a zip's files never are */
};

/* The archive's bytes, each once: *ret_len 0 at the end. Hash what is read here. The bytes stay until the next call. */
typedef int (*unpack_read_fn)(void *ctx, const void **ret_ptr, size_t *ret_len, struct err *err);

struct unpack_opts {
    struct unpack_limits limits;
    int fd; /* the archive as a file, which a zip needs: its directory is at its end; borrowed; 0: none */
    /* Size of the archive; 0: not known; then a huge size is noticed later. */
    uint64_t archive_bytes;
    /* Gets the tar that a tar.gz or tar.zst holds as it is unpacked, with the ctx of read; NULL: nobody does. */
    int (*on_tar)(void *ctx, const void *ptr, size_t len, struct err *err);
    /* An entry NAME.tar is itself unpacked, into NAME/ next to it, without a temporary; a tar in that is a file. */
    bool is_nested;
};

/* The format that a file's name ends with: "tar", "tar.gz", "tar.zst", "zip"; NULL: none of them. */
const char *unpack_kind(const char *name);

struct unpack;
MUST_CHECK int unpack_new(const struct unpack_opts *opts, unpack_read_fn read, void *ctx,
                          const char *name, struct unpack **ret_unpack, struct err *err);
/* The format, by the first bytes: one of the same words. */
const char *unpack_format(const struct unpack *unpack);
/* False in *ret_has at the end, after all bytes of the archive have been read. */
MUST_CHECK int unpack_next(struct unpack *unpack, struct unpack_entry *ret_entry, bool *ret_has,
                           struct err *err);
/* Data of a file, in order, holes filled with zeros; *ret_len 0 at its end. The bytes are valid until the next call. For an
   uncompressed tar they point, if possible, into what the read function gave. Data that is not read is checked all the same. */
MUST_CHECK int unpack_data(struct unpack *unpack, const void **ret_ptr, size_t *ret_len,
                           struct err *err);
void unpack_free(struct unpack *unpack);
CLEANUP_POINTER(unpack, struct unpack, unpack_free);
