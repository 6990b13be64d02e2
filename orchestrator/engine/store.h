/* SPDX-License-Identifier: Apache-2.0 */
/* What was fetched, by its SHA-256, for this machine's user. Two processes may use it at once: a blob appears whole (synced,
   renamed), references are files that are replaced whole, gc takes a lock that every writer holds shared.

   STORE/oci-layout, index.json     the folder is an OCI image layout: any tool for those reads the images in it
         blobs/sha256/HEX           files of datasets, layers, manifests: read-only files
         md5/HEX                    the SHA-256 of the blob with that MD5
         refs/KIND/NAME.json        what is kept, and why; gc drops a blob that no reference names
         partial/KEY/               one fetch that is not over (io/fetch.h)
         incoming/                  a person may put a file here, by the name that `fetch` says
         trees/NAME/                an unpacked dataset; NAME is the dataset's id, or ID.synthetic
         packed/NAME/SPLIT/         its shards (workloads/data/shard.h)
         sources/NAME.git           bare repositories
         tmp/                       on the same file system, for renames
         cache/digests              engine/digest_cache.h */
#ifndef ENGINE_STORE_H
#define ENGINE_STORE_H

#include "base/fs.h"
#include "base/strbuf.h"
#include "codec/digest.h"

struct store {
    const char *folder; /* in the arena; absolute */
    struct arena *arena;
    int lock_fd; /* shared: held until store_close */
};

#define STORE_EMPTY ((struct store){.lock_fd = -1})

/* Makes what is missing. */
MUST_CHECK int store_open(struct arena *arena, const char *folder, struct store *ret_store,
                          struct err *err);
void store_close(struct store *store);
static inline void store_cleanup(struct store *store)
{
    store_close(store);
}

/* Path of a blob, whether it is there or not; of something else below the store. */
char *store_blob_path(const struct store *store, const uint8_t *sha256);
char *store_path(const struct store *store, const char *below);
bool store_has(const struct store *store, const uint8_t *sha256, uint64_t *ret_size_bytes);
/* ERR_NOT_FOUND where there is none. */
MUST_CHECK int store_find_md5(const struct store *store, const uint8_t *md5, uint8_t *ret_sha256,
                              struct err *err);

/* partial/KEY for fetch_spec.folder: KEY from the digest that is expected, else from the name and first URL. */
char *store_partial(const struct store *store, const char *key);
/* A file on the store's file system becomes a blob: synced, renamed, read-only. The caller vouches for the digests (both kinds;
   an MD5 of zeros is not recorded). One that is there already: the file is removed. */
MUST_CHECK int store_adopt(struct store *store, const char *path, const struct digest_value *value,
                           struct err *err);
/* Copies a file from anywhere into the store (a link on the same file system is never made: it could be changed from outside). */
MUST_CHECK int store_add_file(struct store *store, const char *path, struct digest_value *ret_value,
                              struct err *err);
MUST_CHECK int store_add_text(struct store *store, struct str text, uint8_t *ret_sha256,
                              struct err *err);

/* refs/KIND/NAME.json. The text is one JSON object with at least "blobs": ["sha256:HEX", ...]; NAME is escaped by the store. */
MUST_CHECK int store_ref_put(struct store *store, const char *kind, const char *name,
                             struct str text, struct err *err);
MUST_CHECK int store_ref_get(const struct store *store, const char *kind, const char *name,
                             struct str *ret_text, struct err *err); /* ERR_NOT_FOUND */
MUST_CHECK int store_ref_drop(struct store *store, const char *kind, const char *name,
                              struct err *err);
MUST_CHECK int store_ref_list(const struct store *store, const char *kind,
                              struct fs_names *ret_names, struct err *err);

#endif
