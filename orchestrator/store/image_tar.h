/* SPDX-License-Identifier: Apache-2.0 */
/* Exports an image from the store: as an OCI layout in a folder, or as one tar of it. Both also hold docker's manifest.json, so that
   `docker load`, `podman load` and skopeo (oci:, oci-archive:, docker-archive:) take them. Equal images give equal bytes. Each blob's
   digest is checked while it is written. */
#ifndef STORE_IMAGE_TAR_H
#define STORE_IMAGE_TAR_H

#include <stdatomic.h>

#include "codec/ustar.h"
#include "store/image_store.h"
#include "sys/loop.h"

/* "localhost/reperf/ID:HEX12": a name of our own, so that no tag of the user's is moved. HEX12 is from the config's digest. */
char *image_engine_name(struct arena *arena, const struct image_info *info);

/* The tar, to a file or pipe; name is for messages. is_cancelled may be NULL. */
struct tar_to {
    int fd;
    const char *name;
    const atomic_bool *is_cancelled;
    atomic_uint_least64_t *at_bytes; /* written so far; or NULL */
};
MUST_CHECK int image_write_tar(const struct store *store, const struct image_info *info,
                               const struct tar_to *to, struct err *err);
/* codec/ustar.h's header, also for files of 8 GiB and more. */
MUST_CHECK int image_tar_header(const char *name, uint64_t size_bytes,
                                uint8_t ret_block[USTAR_BLOCK], struct err *err);
/* path ends in .tar: a file that is replaced whole; else a folder that must not be there. */
MUST_CHECK int image_export(struct arena *arena, const struct store *store,
                            const struct image_info *info, const char *path, struct err *err);

enum image_engine { IMAGE_DOCKER, IMAGE_PODMAN };
const char *image_engine_program(enum image_engine engine);

struct image_loaded {
    struct str id;   /* as the engine reports it, "sha256:..." */
    struct str name; /* in the engine */
    bool was_there;
};

struct image_load_opts {
    enum image_engine engine;
    const char *engine_host; /* of docker; NULL: as its own command finds it */
    bool wants_progress;
    bool (*should_stop)(void);
};
/* Streams the tar to ENGINE load, then asks the engine for the image by its digest. ERR_CONTAINER: the engine is missing, does not
   answer, or refuses; ERR_INTEGRITY: it has another image than was sent. */
MUST_CHECK int image_load(struct arena *arena, const struct store *store,
                          const struct image_info *info, const struct image_load_opts *opts,
                          struct image_loaded *ret_loaded, struct err *err);

#endif
