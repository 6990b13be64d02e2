/* SPDX-License-Identifier: Apache-2.0 */
/* Container images: fetched from wherever they still are, verified, kept in the store, loaded into an engine.

   The order of places: the origin by digest, its mirrors, image.json's other place, local layouts. An image that none
   of them has is "gone", which differs from "not allowed" and "unreachable". The digests decide, whatever the place: a
   tag is only followed where no digest is known yet, and a tag that now means another digest than the lock's is
   ERR_INTEGRITY. */
#ifndef STORE_IMAGE_STORE_H
#define STORE_IMAGE_STORE_H

#include "report/image.h"
#include "store/registry.h"

#define IMAGE_KIND      "image" /* refs/image/NAME.json */
#define IMAGE_INDEX_MAX STORE_TEXT_MAX

struct image_spec {     /* what is wanted */
    const char *name;   /* in the store: image.json's id, or the reference itself */
    struct oci_ref ref; /* its origin; a tag, a digest, or both */
    struct image_pins pins;
    bool has_fallback;
    struct oci_ref fallback;
    struct str replacement; /* or NULL */
    struct oci_platform platform;
    bool is_local; /* our own: built, not pulled */
    bool is_locked;
    int64_t bytes;   /* of config and layers, from the lock; -1: not known */
    struct str cuda; /* as image.json states them */
    struct str *instead;
    size_t n_instead;
};

struct image_places {
    struct registry *registry; /* NULL: offline */
    const char *
        mirror; /* [https://]HOST[:PORT][/PREFIX], or a folder with NAME/ or NAME.tar; NULL: none */
    const char *const
        *layouts; /* OCI layouts, as folders or tar files, or tars that `docker save` wrote */
    size_t n_layouts;
    struct clock_src clock;
};

struct image_docs {          /* the manifests of one image, as bytes */
    struct registry_doc top; /* what a tag names: a list, or the manifest itself */
    struct registry_doc doc; /* the platform's manifest */
    struct oci_manifest manifest;
    bool is_list;
};

struct image_info { /* what the store has */
    const char *name;
    struct str reference, from, date, platform;
    struct image_pins pins; /* all three are known */
    bool is_list;
    struct oci_manifest manifest;
    struct oci_descriptor descriptor; /* of the manifest */
    uint64_t bytes;                   /* of all blobs */
};

struct image_fetched {
    struct image_info info;
    bool was_there; /* nothing was fetched */
    struct registry_got got;
};

/* What the tag means now, for a lock; ERR_INTEGRITY where spec's pins say otherwise. */
MUST_CHECK int image_resolve(struct arena *arena, struct registry *registry,
                             const struct image_spec *spec, struct image_docs *ret_docs,
                             struct err *err);
/* ERR_FETCH: gone; ERR_AUTH: not allowed; ERR_NET, ERR_TIMEOUT: unreachable; ERR_INTEGRITY: drift, or corrupt everywhere. */
MUST_CHECK int image_fetch(struct arena *arena, struct store *store, const struct image_spec *spec,
                           const struct image_places *places, struct image_fetched *ret_fetched,
                           struct err *err);

/* ERR_NOT_FOUND where the store has none of that name. */
MUST_CHECK int image_open(struct arena *arena, const struct store *store, const char *name,
                          struct image_info *ret_info, struct err *err);
/* A reference's text from elsewhere has the form of one, and is that of name. */
MUST_CHECK int image_ref_check(struct str text, const char *name, struct err *err);
MUST_CHECK int image_names(const struct store *store, struct fs_names *ret_names, struct err *err);
/* Makes the entry of index.json again from a reference of another store. */
MUST_CHECK int image_list_again(struct store *store, const char *name, struct err *err);
/* Removes the reference and the entry of index.json; the next gc drops the blobs. */
MUST_CHECK int image_remove(struct store *store, const char *name, struct err *err);

#endif
