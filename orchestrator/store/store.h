/* SPDX-License-Identifier: Apache-2.0 */
/* What was fetched, by its SHA-256, for this machine's user. Two processes may use it at once: a blob appears whole (synced,
   renamed), references are files that are replaced whole, gc takes a lock that every writer holds shared.

   STORE/.lock                      flock: shared by all that have the store open, exclusive for gc
         blobs/sha256/HEX           files of datasets, layers, manifests: read-only files
         md5/HEX                    the SHA-256 of the blob with that MD5
         refs/KIND/NAME.json        what is kept, and why; gc drops a blob that no reference names
         partial/KEY/               one fetch that is not over (net/fetch.h)
         incoming/                  the user may put a file here, under the name that `fetch` prints
         trees/NAME/                an unpacked dataset; NAME is the dataset's id, or ID.synthetic
         packed/NAME/SPLIT/         its shards (workloads/data/shard.h)
         sources/NAME.git           bare repositories
         tmp/                       on the same file system, for renames
         quarantine/                what `store verify` found corrupt; gc drops it
         cache/digests              sys/digest_cache.h */
#pragma once

#include "base/fs.h"
#include "base/strbuf.h"
#include "codec/digest.h"

struct store {
    const char *folder; /* in the arena; absolute */
    struct arena *arena;
    int lock_fd; /* shared: held until store_close */
};

/* How much `data verify` reads: QUICK no headers, DEEP every byte whatever the cache of digests says (reperf(1), data verify). */
enum verify_depth { DEPTH_QUICK, DEPTH_NORMAL, DEPTH_DEEP };

#define STORE_NAME_MAX  200
#define STORE_TEXT_MAX  (16u << 20) /* a reference's most */
#define STORE_BLOBS_MAX 4000000

#define STORE_EMPTY ((struct store){.lock_fd = -1})

/* Creates what is missing. A folder with other content is refused. */
MUST_CHECK int store_open(struct arena *arena, const char *folder, struct store *ret_store,
                          struct err *err);
void store_close(struct store *store);
CLEANUP_BY(store, struct store, store_close);

/* Path of a blob, whether it is there or not; of something else below the store. */
char *store_blob_path(const struct store *store, const uint8_t *sha256);
char *store_path(const struct store *store, const char *below);
/* A name from outside as one harmless path component that store_unescape gives back: bytes other than [A-Za-z0-9._-], and a
   dot at the start, become %XX. ERR_USAGE where it is empty or would be longer than STORE_NAME_MAX. */
MUST_CHECK int store_escape(struct arena *arena, const char *name, char **ret_component,
                            struct err *err);
/* NULL where it is not what store_escape writes. */
char *store_unescape(struct arena *arena, const char *component);
bool store_has(const struct store *store, const uint8_t *sha256, uint64_t *ret_size_bytes);
/* ERR_NOT_FOUND where there is none. */
MUST_CHECK int store_find_md5(const struct store *store, const uint8_t *md5, uint8_t *ret_sha256,
                              struct err *err);

/* The path of partial/KEY, never the same for two keys; nothing is made. */
char *store_partial(const struct store *store, const char *key);
/* A file on the store's file system becomes a blob: synced, renamed, read-only. The caller vouches for the digests (both kinds;
   an MD5 of zeros is not recorded). One that is there already is replaced. ERR_INTEGRITY where the size is not what value says,
   or where the MD5 belongs to another blob already: then one of the two is a forgery. */
MUST_CHECK int store_adopt(struct store *store, const char *path, const struct digest_value *value,
                           struct err *err);
/* Copies a file from anywhere into the store (a link on the same file system is never made: it could be changed from outside);
   both digests are computed on the way. hooks may be NULL, and so may each of its members. */
struct store_hooks {
    void (*on_progress)(void *ctx, uint64_t bytes_done, uint64_t bytes_total);
    void *progress_ctx;
};
MUST_CHECK int store_add_file(struct store *store, const char *path,
                              const struct store_hooks *hooks, struct digest_value *ret_value,
                              struct err *err);
MUST_CHECK int store_add_text(struct store *store, struct str text, uint8_t *ret_sha256,
                              struct err *err);

/* refs/KIND/NAME.json. The text is one JSON object with at least "blobs": ["sha256:HEX", ...], which must all be there;
   NAME is escaped by the store. kind is a word of ours: a-z and '-'. */
MUST_CHECK int store_ref_put(struct store *store, const char *kind, const char *name,
                             struct str text, struct err *err);
/* ERR_NOT_FOUND where there is none. */
MUST_CHECK int store_ref_get(const struct store *store, const char *kind, const char *name,
                             struct str *ret_text, struct err *err);
MUST_CHECK int store_ref_drop(struct store *store, const char *kind, const char *name,
                              struct err *err);
/* The names are unescaped and sorted. */
MUST_CHECK int store_ref_list(const struct store *store, const char *kind,
                              struct fs_names *ret_names, struct err *err);
MUST_CHECK int store_ref_kinds(const struct store *store, struct fs_names *ret_kinds,
                               struct err *err);

/* A reference with what it names; its text and blobs are in the arena. */
struct store_ref {
    const char *kind, *name;
    struct str text;
    const uint8_t (*blobs)[SHA256_BYTES];
    size_t n_blobs;
};
/* blobs of its text. */
MUST_CHECK int store_ref_parse(struct arena *arena, struct store_ref *ref, struct err *err);
/* Text and blobs of that kind and name: ERR_NOT_FOUND. */
MUST_CHECK int store_ref_read(struct arena *arena, const struct store *store, struct store_ref *ref,
                              struct err *err);
/* Each one, by kind and name; a result other than 0 ends it. One that cannot be read is an error. */
typedef int (*store_ref_fn)(void *ctx, const struct store_ref *ref, struct err *err);
MUST_CHECK int store_each_ref(const struct store *store, store_ref_fn fn, void *ctx,
                              struct err *err);
