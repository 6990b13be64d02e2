/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the images share. Only store/image*.c include it. */
#ifndef STORE_IMAGE_IMPL_H
#define STORE_IMAGE_IMPL_H

#include "store/image_store.h"

/* Manifests and reference; config and layers are in the store already. */
MUST_CHECK int image_keep(struct store *store, const struct image_spec *spec,
                          const struct image_docs *docs, const char *from, struct clock_src clock,
                          struct err *err);
/* Where documents are read: the top one (a list, or the manifest itself; a registry is asked with NULL), then the platform's. What read
   gives has the entry's digest and size. */
struct image_docs_from {
    int (*read)(void *ctx, const struct oci_descriptor *entry, struct registry_doc *ret_doc,
                struct err *err);
    void *ctx;
    const char *name; /* for messages */
    const struct oci_platform *platform;
};
/* ERR_FETCH: not for that platform. */
MUST_CHECK int image_docs_read(struct arena *arena, const struct image_docs_from *from,
                               const struct oci_descriptor *top, struct image_docs *ret_docs,
                               struct err *err);
/* Its manifests against the pins. where is for the message. ERR_INTEGRITY. */
MUST_CHECK int image_check_pins(const struct image_pins *pins, const struct image_docs *docs,
                                const char *where, struct err *err);

/* From a folder or a tar file; blobs go into the store. ERR_NOT_FOUND: another image is in it. */
MUST_CHECK int image_from_layout(struct arena *arena, struct store *store,
                                 const struct image_spec *spec, const char *path,
                                 struct image_docs *ret_docs, struct err *err);

#endif
