/* SPDX-License-Identifier: Apache-2.0 */
/* Many files below one folder and the digest of each: listed, hashed on all cores, compared. The list's text is what sha256sum
   writes ("HEX64  path", sorted by the path's bytes), so that `sha256sum -c` checks a tree without us. Made for 1.3 million
   files in less than 300 MB. */
#pragma once

#include "base/strbuf.h"
#include "codec/digest.h"
#include "codec/json_table.h"
#include "sys/pool.h"

#define TREE_LIST_BYTES_MAX (1u << 30)
#define TREE_FILES_MAX      4000000
#define TREE_PATH_MAX       4096u /* with the NUL */

struct tree_file {
    const char *path; /* relative; in the arena */
    uint8_t sha256[SHA256_BYTES];
};

struct tree_list {
    struct tree_file *files; /* sorted by path, bytewise; no two alike */
    size_t n;
    uint8_t (*md5)[MD5_BYTES]; /* parallel to files; NULL: not known */
    bool lacks_sha256;         /* a list of MD5 alone: files[].sha256 are zeros */
};

/* ---- lists ---- */

/* Strict, for our own lists of SHA-256: sorted, relative paths without "." and "..", lower-case hex. */
MUST_CHECK int tree_list_read(struct arena *arena, const char *path, struct tree_list *ret_list,
                              struct err *err);
/* Lists that others published, as md5sum or sha256sum write them: any order, "./" before a path, "*" for binary mode, CR LF,
   upper-case hex; MD5 or SHA-256 throughout. Two lines for one path must agree. */
MUST_CHECK int tree_sums_read(struct arena *arena, const char *path, struct tree_list *ret_list,
                              struct err *err);
/* A list that lacks SHA-256 is written as md5sum does. ret_sha256 is the text's own, and may be NULL. */
MUST_CHECK int tree_list_write(const struct tree_list *list, const char *path, uint8_t *ret_sha256,
                               struct err *err);
/* The same text to an open descriptor; name is for messages. */
MUST_CHECK int tree_list_print(const struct tree_list *list, int fd, const char *name,
                               struct err *err);
/* NULL: the list does not have it. */
const struct tree_file *tree_list_find(const struct tree_list *list, const char *path);
/* Into the order of the paths' bytes. */
void tree_list_sort(struct tree_list *list);
/* SHA-256 of the list's text: the tree's own digest. */
void tree_list_sha256(const struct tree_list *list, uint8_t *ret_sha256);

/* ---- trees ---- */

struct digest_cache; /* sys/digest_cache.h */

struct tree_hash_stats {
    uint64_t n_cached, n_bytes_read;
};

struct tree_opts {
    const char *folder;
    struct pool *pool;
    size_t n_threads; /* of the pool to use */
    struct digest_cache
        *cache;   /* NULL: every byte is read (deep); else files unchanged since are not (quick) */
    bool is_deep; /* the cache is not asked, only filled */
    unsigned kinds; /* DIGEST_SHA256, DIGEST_MD5 or both */
    void (*on_progress)(void *ctx, uint64_t files_done, uint64_t files_total);
    void (*on_bytes)(void *ctx, uint64_t bytes_read); /* for trees of few large files; or NULL */
    void *progress_ctx;
    struct tree_hash_stats *ret_stats; /* of tree_hash; or NULL */
};

/* Lists and hashes all that is there. A symlink to a file inside of the tree counts as that file; one that leads outside or to
   a folder, a device, a pipe or a file that cannot be read is an error naming the path. */
MUST_CHECK int tree_hash(struct arena *arena, const struct tree_opts *opts,
                         struct tree_list *ret_list, struct err *err);
/* The files of a small folder and the SHA-256 of their list, in hex: the version of an overlay. */
MUST_CHECK int tree_hash_folder(struct arena *arena, const char *folder, struct tree_list *ret_list,
                                struct str *ret_version, struct err *err);

enum tree_fault { TREE_MISSING, TREE_EXTRA, TREE_CORRUPT, TREE_UNREADABLE };
struct tree_difference {
    enum tree_fault fault;
    const char *path;
    const uint8_t *expected; /* SHA-256, of the list; NULL: it has none, or not this file */
    const struct digest_value *found; /* where the digest differs; else NULL */
};
struct tree_differences {
    struct tree_difference *items; /* by path; in the arena */
    size_t n;
};
/* Expected against found. Both sorted, with a kind of digest in common. */
void tree_compare(struct arena *arena, const struct tree_list *expected,
                  const struct tree_list *found, struct tree_differences *ret_differences);

/* Hashes what is below the folder against the list, without a second list in memory; opts->kinds is not read: the list says
   what it has. A file that cannot be read is TREE_UNREADABLE and the rest is still checked. n_cached: files that the cache
   vouched for. */
struct tree_verify_result {
    struct tree_differences differences;
    uint64_t n_checked, n_cached, n_bytes_read;
};
MUST_CHECK int tree_verify(struct arena *arena, const struct tree_opts *opts,
                           const struct tree_list *expected, struct tree_verify_result *ret_result,
                           struct err *err);
/* Checks those of n files (sorted or not) that is_right marks; afterwards it marks those that exist with the right digest.
   Nothing else in the folder is looked at. */
MUST_CHECK int tree_pick(const struct tree_opts *opts, const struct tree_file *files, size_t n,
                         uint8_t *is_right, struct err *err);
/* "missing", "extra", "corrupt", "unreadable" */
extern const char *const TREE_FAULT_NAMES[TREE_UNREADABLE + 1];
/* A difference in a document: its fault and its path. */
extern const struct json_field TREE_DIFFERENCE_ROWS[2];
