/* SPDX-License-Identifier: Apache-2.0 */
/* Verifies that the image in the store is what its pins say, to the last byte of its unpacked layers. Every blob is read once: its
   own digest and the digest of what it unpacks to come from the same pass. All faults are named, not only the first. */
#ifndef STORE_IMAGE_VERIFY_H
#define STORE_IMAGE_VERIFY_H

#include "store/image_store.h"

#define IMAGE_FAULTS_MAX 64

struct image_check {
    struct image_info info;
    size_t n_blobs;          /* that were read */
    uint64_t packed_bytes;   /* of them */
    uint64_t unpacked_bytes; /* of the layers */
    struct str *faults;      /* in the arena, each names the blob */
    size_t n_faults;
};

struct image_verify_opts {
    const char *name;
    const struct image_pins
        *pins; /* of the lock or image.json; NULL: the store's own reference alone */
    bool wants_progress;
};

/* ERR_INTEGRITY where a fault was found; *ret_check is
   filled then, too. */
MUST_CHECK int image_verify(struct arena *arena, const struct store *store,
                            const struct image_verify_opts *opts, struct image_check *ret_check,
                            struct err *err);

#endif
