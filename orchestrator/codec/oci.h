/* SPDX-License-Identifier: Apache-2.0 */
/* What a registry and an image layout hold: manifests, lists of manifests by platform, and an image's config. OCI's media types
   and Docker's (schema 2) are read in the same way; Docker's schema 1 is refused, because its digests do not cover what it
   unpacks to. Pure: bytes in, values in an arena out. Unknown keys are allowed, as both specifications demand; what is read is
   checked, and all sizes are bounded before anything is allocated. Source: OCI image-spec v1.1 (manifest.md, image-index.md,
   descriptor.md, config.md), read 2026-11; Docker's image manifest version 2, schema 2. */
#pragma once

#include "codec/json.h"
#include "codec/oci_ref.h"

#define OCI_MANIFEST_BYTES_MAX (4u << 20) /* distribution-spec: at least 4 MiB must be accepted */
#define OCI_CONFIG_BYTES_MAX   (8u << 20)
#define OCI_LAYERS_MAX         512 /* docker itself stops at 127 */
#define OCI_PLATFORMS_MAX      512
#define OCI_LAYER_BYTES_MAX    (1ULL << 40)

#define OCI_TYPE_MANIFEST    "application/vnd.oci.image.manifest.v1+json"
#define OCI_TYPE_INDEX       "application/vnd.oci.image.index.v1+json"
#define OCI_TYPE_CONFIG      "application/vnd.oci.image.config.v1+json"
#define OCI_TYPE_LAYER       "application/vnd.oci.image.layer.v1.tar"
#define DOCKER_TYPE_MANIFEST "application/vnd.docker.distribution.manifest.v2+json"
#define DOCKER_TYPE_INDEX    "application/vnd.docker.distribution.manifest.list.v2+json"

#define OCI_REF_NAME "org.opencontainers.image.ref.name"

/* The platform of the reports' images and of the GPU machines. */
#define OCI_OS           "linux"
#define OCI_ARCHITECTURE "amd64"
#define OCI_PLATFORM     OCI_OS "/" OCI_ARCHITECTURE

struct oci_platform {
    struct str os, architecture;
    struct str variant; /* NULL: none */
};

enum oci_packing { OCI_TAR, OCI_TAR_GZIP, OCI_TAR_ZSTD };

struct oci_descriptor {
    struct str media_type;
    uint8_t sha256[SHA256_BYTES];
    uint64_t size_bytes;
    enum oci_packing packing;     /* of a layer */
    struct oci_platform platform; /* in a list; os empty: none */
    struct str ref_name;          /* annotation OCI_REF_NAME, or NULL */
};

struct oci_manifest {
    bool is_index;
    int64_t schema; /* 2 */
    struct str media_type;
    struct oci_descriptor config;  /* of a manifest */
    struct oci_descriptor *layers; /* likewise: lowest first */
    size_t n_layers;
    struct oci_descriptor *manifests; /* of a list */
    size_t n_manifests;
};

/* name is for messages, as in json_parse. ERR_PARSE. */
MUST_CHECK int oci_manifest_parse(struct arena *arena, struct str text, const char *name,
                                  struct oci_manifest *ret_manifest, struct err *err);
/* The digest of each layer as an unpacked tar. n_layers is the manifest's: there must be as many. ERR_PARSE. */
MUST_CHECK int oci_config_parse(struct arena *arena, struct str text, size_t n_layers,
                                const char *name, uint8_t (**ret_diff_ids)[SHA256_BYTES],
                                struct err *err);

/* The entry of a list for OCI_PLATFORM: one without variant first, then by the variants' order (v1 to v4). ERR_NOT_FOUND
   names the platforms that exist. Entries that are not images (attestations) have the platform unknown/unknown. */
MUST_CHECK int oci_choose_platform(const struct oci_manifest *list, const char *name,
                                   const struct oci_descriptor **ret_entry, struct err *err);

/* Bytes of all layers and config, bounded when parsed. */
uint64_t oci_manifest_bytes(const struct oci_manifest *manifest);
