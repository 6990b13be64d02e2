/* SPDX-License-Identifier: Apache-2.0 */
/* An image out of the store, by skopeo, which checks each blob's digest while it reads: as an OCI layout in a folder, which
   `reperf data fetch --layout` and skopeo take, or as docker's archive, which `docker load` and `podman load` take (podman alone, where zstd has packed a layer: that is
   then an OCI layout in a tar). And into an engine of this machine. */
#ifndef STORE_IMAGE_EXPORT_H
#define STORE_IMAGE_EXPORT_H

#include "store/image_store.h"

/* "localhost/reperf/ID:HEX12": a name of our own, so that no tag of the user's is moved. HEX12 is from the config's digest. */
char *image_engine_name(struct arena *arena, const struct image_info *info);

/* path ends in .tar: docker's archive, a file that is replaced whole; else a folder that must not be there. ERR_INTEGRITY: the store is corrupt. */
MUST_CHECK int image_export(struct arena *arena, const struct store *store,
                            const struct image_info *info, const char *path, struct err *err);

enum image_engine { IMAGE_DOCKER, IMAGE_PODMAN };
extern const char *const IMAGE_ENGINE_PROGRAMS[IMAGE_PODMAN + 1];

struct image_loaded {
    struct str id;   /* as the engine reports it, "sha256:..." */
    struct str name; /* in the engine */
    bool was_there;
};

struct image_load_opts {
    enum image_engine engine;
    const char *engine_host; /* of docker; NULL: as its own command finds it */
};
/* Gives docker's archive to ENGINE load, then asks the engine for the image by its digest; the name that it reported is never
   trusted. ERR_CONTAINER: the engine is missing, does not answer, or refuses; ERR_INTEGRITY: it has another image than was sent. */
MUST_CHECK int image_load(struct arena *arena, const struct store *store,
                          const struct image_info *info, const struct image_load_opts *opts,
                          struct image_loaded *ret_loaded, struct err *err);

#endif
