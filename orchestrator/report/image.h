/* SPDX-License-Identifier: Apache-2.0 */
/* images/ID/image.json: the container image of a report's stack, by name and tag as in the report, and by digest if one was
   published. The meaning of each key is in images/README.md. Strings live in the arena; NULL: not given. */
#pragma once

#include "codec/json.h"
#include "codec/oci_ref.h"

/* What is known of an image besides its name: from image.json, then from its lock. */
struct image_pins {
    /* The digest is of the list, or of the manifest if there is no list: what a tag resolves to. */
    bool has_digest;
    bool has_manifest; /* of the platform's manifest */
    bool has_config;   /* = the image's id in an engine */
    uint8_t digest[SHA256_BYTES];
    uint8_t manifest[SHA256_BYTES];
    uint8_t config[SHA256_BYTES];
};

struct image {
    struct str id;
    struct oci_ref ref; /* name, tag, digest */
    bool is_local;      /* our own, built and not pulled: neither tag nor digest */
    bool has_fallback;
    struct oci_ref fallback;
    struct str cuda; /* "12.9", or NULL */
    /* Ids of images of the same programs for other drivers, the newest CUDA first. */
    struct str *instead;
    size_t n_instead;
    struct str base;        /* what its Dockerfile starts from */
    struct str replacement; /* what to use if it is gone, in a sentence */
    struct str status;
    bool has_dockerfile;
};

extern const struct json_document IMAGE_DOCUMENT;
MUST_CHECK int image_decode(const struct json *root, struct arena *arena, struct image *ret_image,
                            struct err *err);
