/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the images share. Only store/image*.c and registry.c include it. */
#pragma once

#include "store/image_store.h"

/* Where the documents and blobs of an image are read. */
struct image_place {
    const char *name;                /* for messages */
    const struct registry *registry; /* goes with ref; NULL: a folder */
    struct oci_ref ref;
    const char *blob_folder; /* each file under its digest in hex; manifest.json: the only image */
};
/* Reads the manifest of that digest, or where it is NULL the one of the registry's ref or the folder's manifest.json; a list
   is followed to the platform. Fills pins, texts and manifest of *ret_info. ERR_FETCH: not an image, or not one for that
   platform. */
MUST_CHECK int image_read(struct arena *arena, const struct image_place *place,
                          const uint8_t *sha256, struct image_info *ret_info, struct err *err);
/* ERR_INTEGRITY where what was found is not the pinned image. The config decides, because it has the digests of the unpacked
   layers; then the manifest; then what the tag named, a list or the manifest itself. where is for the message. */
MUST_CHECK int image_check_pins(const struct image_pins *pins, const struct image_pins *found,
                                const char *where, struct err *err);
/* Puts its manifests and its reference into the store, which has config and layers already. Fills date and the like. */
MUST_CHECK int image_keep(struct arena *arena, struct store *store, struct image_info *info,
                          struct clock_src clock, struct err *err);
/* Looks at its size alone; image_verify reads the bytes. */
bool image_has_blob(const struct store *store, const struct oci_descriptor *blob);

/* From a folder or a tar file; blobs go into the store. ERR_NOT_FOUND: another image is in it. */
MUST_CHECK int image_from_layout(struct arena *arena, struct store *store,
                                 const struct image_spec *spec, const char *path,
                                 struct image_info *ret_info, struct err *err);
