/* SPDX-License-Identifier: Apache-2.0 */
/* Archives of others, read one entry after another with libarchive, of which codec/unpack.c is the only home: tar, tar.gz,
   tar.zst, zip, and a tar inside a tar. Which entries may be written where is decided here, from names and types alone, before
   a byte is written; engine/unpack_tree.h writes them. An archive that would leave its folder, or make anything but regular
   files, folders and harmless symlinks, is refused as a whole: ERR_INTEGRITY with the entry's name. */
#ifndef CODEC_UNPACK_H
#define CODEC_UNPACK_H

#include "base/str.h"

#define UNPACK_PATH_MAX  4096
#define UNPACK_DEPTH_MAX 64
#define UNPACK_FILES_MAX 4000000

struct unpack_limits {
    uint64_t files;      /* at most; 0: UNPACK_FILES_MAX */
    uint64_t bytes;      /* of all files; 0: no limit but the disk's */
    uint64_t file_bytes; /* of one file; 0: as bytes */
    uint64_t ratio;      /* unpacked bytes over archive bytes read; 0: 1000 */
};

enum unpack_type { UNPACK_FILE, UNPACK_FOLDER, UNPACK_SYMLINK, UNPACK_HARDLINK };

struct unpack_entry {
    struct str path; /* relative, without "." and "..", checked; valid until the next entry */
    enum unpack_type type;
    struct str
        target; /* of a link; checked to stay inside. A hard link's is an earlier entry's path */
    uint64_t size_bytes;
    bool is_size_known; /* zip may not say */
    bool is_executable;
};

/* The archive's bytes: *ret_len 0 at the end. Also for digests of the archive itself: what is read here is what is hashed. */
typedef int (*unpack_read_fn)(void *ctx, const void **ret_ptr, size_t *ret_len, struct err *err);

struct unpack_opts {
    struct unpack_limits limits;
    bool
        is_nested; /* an entry NAME.tar is itself unpacked, into NAME/ beside it, without a temporary */
    const char *
        format; /* "tar", "tar.gz", "tar.zst", "zip": another kind of content is an error; NULL: any of them */
};

struct unpack;
MUST_CHECK int unpack_new(const struct unpack_opts *opts, unpack_read_fn read, void *ctx,
                          const char *name, struct unpack **ret_unpack, struct err *err);
/* False in *ret_has at the end, after the archive's bytes have been read to their very end. */
MUST_CHECK int unpack_next(struct unpack *unpack, struct unpack_entry *ret_entry, bool *ret_has,
                           struct err *err);
/* Data of a file, in order, holes filled with zeros; *ret_len 0 at its end. The bytes are valid until the next call. */
MUST_CHECK int unpack_data(struct unpack *unpack, const void **ret_ptr, size_t *ret_len,
                           struct err *err);
void unpack_free(struct unpack *unpack);
static inline void unpack_cleanup(struct unpack **unpack)
{
    unpack_free(*unpack);
}

#endif
