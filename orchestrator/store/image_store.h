/* SPDX-License-Identifier: Apache-2.0 */
/* Container images: fetched from wherever they still are, verified, kept in the store, loaded into an engine.

   The order of places: the origin by digest, its mirrors, image.json's other place, local layouts. An image that none
   of them has is "gone", which differs from "not allowed" and "unreachable". The digests decide, whatever the place: a
   tag is only followed where no digest is known yet, and a tag that now means another digest than the lock's is
   ERR_INTEGRITY. */
#pragma once

#include "codec/json_table.h"
#include "report/image.h"
#include "store/registry.h"

#define IMAGE_KIND "image" /* refs/image/NAME.json */

/* The image that is wanted. */
struct image_spec {
    const char *name;   /* in the store: image.json's id, or the reference itself */
    struct oci_ref ref; /* its origin; a tag, a digest, or both */
    struct image_pins pins;
    bool has_fallback;
    struct oci_ref fallback;
    struct str replacement; /* or NULL */
    bool is_local;          /* our own: built, not pulled */
    bool is_locked;
    int64_t bytes;   /* config and layers, from the lock; -1: not known */
    struct str cuda; /* as image.json states them */
    struct str *instead;
    size_t n_instead;
};

struct image_places {
    const struct registry *registry; /* NULL: offline */
    /* [https://]HOST[:PORT][/PREFIX], or a folder with NAME/ or NAME.tar; NULL: none. */
    const char *mirror;
    /* OCI layouts, as folders or tar files, or tars that `docker save` wrote. */
    const char *const *layouts;
    size_t n_layouts;
    struct clock_src clock;
};

/* An image that was found, at a place or in the store; there its reference says the same in words. */
struct image_info {
    const char *name;
    struct image_pins pins; /* all three are known */
    struct str list, text;  /* what was read: the list, NULL if there is none, and the manifest */
    struct oci_manifest manifest;
    struct str title; /* its name, as the reference has it */
    struct str reference, platform, digest, manifest_digest, config, from, date;
    int64_t bytes; /* all blobs */
    struct str *blobs;
    size_t n_blobs;
};
/* Members "reference", "platform", "digest", "manifest", "config", "layers", "bytes", "from", "date". */
#define IMAGE_INFO_ROWS_N 9
extern const struct json_field IMAGE_INFO_ROWS[IMAGE_INFO_ROWS_N];

struct image_fetched {
    struct image_info info;
    bool was_there;         /* nothing was fetched */
    uint64_t fetched_bytes; /* over the network */
    uint64_t kept_bytes;    /* what an earlier, broken fetch or the store had */
};

/* What the tag means now, for a lock; ERR_INTEGRITY where spec's pins say otherwise. */
MUST_CHECK int image_resolve(struct arena *arena, const struct registry *registry,
                             const struct image_spec *spec, struct image_info *ret_info,
                             struct err *err);
/* ERR_FETCH: gone; ERR_AUTH: not allowed; ERR_NET, ERR_TIMEOUT: unreachable; ERR_INTEGRITY: drift, or corrupt everywhere. */
MUST_CHECK int image_fetch(struct arena *arena, struct store *store, const struct image_spec *spec,
                           const struct image_places *places, struct image_fetched *ret_fetched,
                           struct err *err);

/* ERR_NOT_FOUND where the store has none of that name; ERR_INTEGRITY where its reference is not one of it. */
MUST_CHECK int image_open(struct arena *arena, const struct store *store, const char *name,
                          struct image_info *ret_info, struct err *err);

/* ---- what is known before it is fetched ---- */

/* What is known of an image before it is fetched: its description and its lock. */

/* Items of an image's lock: what the tag named, the platform's manifest, the image's id, and the bytes of config and layers. */
#define IMAGE_LOCK_DIGEST   "digest"
#define IMAGE_LOCK_MANIFEST "manifest"
#define IMAGE_LOCK_CONFIG   "config"
#define IMAGE_LOCK_LAYERS   "layers"

/* From images/NAME/image.json, or from the reference that NAME is, and from the lock where there is one (is_locked). */
MUST_CHECK int image_spec_load(struct arena *arena, const char *root, const char *locks,
                               const char *name, struct image_spec *ret_spec, struct err *err);
/* The image itself where the driver runs its CUDA, or either is not known; else the first of those that may stand instead
   which it runs; else the image itself. */
MUST_CHECK int image_spec_for_driver(struct arena *arena, const char *root, const char *name,
                                     struct str driver, struct image_spec *ret_spec,
                                     struct err *err);

/* ---- verifying ---- */

/* Verifies that the image in the store is what its pins say, to the last byte of its unpacked layers. Every blob is read
   once: its own digest and the digest of what it unpacks to come from the same pass. All faults are named, not only the
   first. */

struct image_check {
    struct image_info info;
    size_t n_blobs;          /* those that were read */
    uint64_t packed_bytes;   /* their size */
    uint64_t unpacked_bytes; /* the layers' size once unpacked */
    struct str *faults;      /* in the arena, each names the blob */
    size_t n_faults;
    bool wants_progress;
};

/* Members "blobs", "packed_bytes", "unpacked_bytes", "faults". */
#define IMAGE_CHECK_ROWS_N 4
extern const struct json_field IMAGE_CHECK_ROWS[IMAGE_CHECK_ROWS_N];
/* info is the store's. pins are those of the lock or image.json. ERR_INTEGRITY where a fault was found. */
MUST_CHECK int image_verify(struct arena *arena, const struct store *store,
                            const struct image_pins *pins, struct image_check *check,
                            struct err *err);

/* ---- out of the store ---- */

/* An image out of the store: as an OCI layout in a folder, which `reperf data fetch --layout` and skopeo take, or by skopeo,
   which checks each blob's digest while it reads, as docker's archive, which `docker load` and `podman load` take (podman
   alone, where zstd has packed a layer: that is then an OCI layout in a tar). And into an engine of this machine. */

/* "localhost/reperf/ID:HEX12": a name of our own, so that no tag of the user's is moved. HEX12 is from the config's digest. */
char *image_engine_name(struct arena *arena, const struct image_info *info);

/* path ends in .tar: docker's archive, a file that is replaced whole; else a folder that must not be there. ERR_INTEGRITY:
   the store is corrupt. */
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
};
/* Gives docker's archive to ENGINE load, then asks the engine for the image by its digest; the name that it reported is never
   trusted. ERR_CONTAINER: the engine is missing, does not answer, or refuses; ERR_INTEGRITY: it has another image than was
   sent. */
MUST_CHECK int image_load(struct arena *arena, const struct store *store,
                          const struct image_info *info, const struct image_load_opts *opts,
                          struct image_loaded *ret_loaded, struct err *err);
