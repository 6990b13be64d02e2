/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of an image before it is fetched: its description and its lock. */
#ifndef STORE_IMAGE_SPEC_H
#define STORE_IMAGE_SPEC_H

#include "store/image_store.h"

/* Items of an image's lock: what the tag named, the platform's manifest, the image's id, and the bytes of config and layers. */
#define IMAGE_LOCK_DIGEST   "digest"
#define IMAGE_LOCK_MANIFEST "manifest"
#define IMAGE_LOCK_CONFIG   "config"
#define IMAGE_LOCK_LAYERS   "layers"

/* From images/NAME/image.json, or from the reference that NAME is, and from the lock where there is one (is_locked). */
MUST_CHECK int image_spec_load(struct arena *arena, const char *root, const char *locks,
                               const char *name, struct image_spec *ret_spec, struct err *err);
/* The image itself where the driver runs its CUDA, or either is not known; else the first of those that may stand instead which it
   runs; else the image itself. */
MUST_CHECK int image_spec_for_driver(struct arena *arena, const char *root, const char *name,
                                     struct str driver, struct image_spec *ret_spec,
                                     struct err *err);

#endif
