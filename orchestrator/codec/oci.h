/* SPDX-License-Identifier: Apache-2.0 */
/* What a registry and an image layout hold: manifests, lists of manifests by platform, and an image's config. OCI's media types
   and Docker's (schema 2) are read in the same way; Docker's schema 1 is refused, because its digests do not cover what it
   unpacks to. Pure: bytes in, values in an arena out. Unknown keys are allowed, as both specifications demand; what is read is
   checked, and all sizes are bounded before anything is allocated. Source: OCI image-spec v1.1 (manifest.md, image-index.md,
   descriptor.md, config.md), read 2026-11; Docker's image manifest version 2, schema 2. */
#ifndef CODEC_OCI_H
#define CODEC_OCI_H

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

struct oci_config {
    struct oci_platform platform;
    uint8_t (*diff_ids)[SHA256_BYTES]; /* of each layer as an unpacked tar */
    size_t n_diff_ids;
};

/* content_type is the server's, STR_EMPTY if there is none (a layout): it must agree with the document. name is for
   messages, as in json_parse. ERR_PARSE. */
MUST_CHECK int oci_manifest_parse(struct arena *arena, struct str text, struct str content_type,
                                  const char *name, struct oci_manifest *ret_manifest,
                                  struct err *err);
/* n_layers is the manifest's: there must be as many diff_ids. */
MUST_CHECK int oci_config_parse(struct arena *arena, struct str text, size_t n_layers,
                                const char *name, struct oci_config *ret_config, struct err *err);

/* The entry of a list for a platform: one without variant first, then by the variants' order (amd64: v1 to v4). ERR_NOT_FOUND
   names the platforms that exist. Entries that are not images (attestations) have the platform unknown/unknown. */
MUST_CHECK int oci_choose_platform(const struct oci_manifest *list, const struct oci_platform *want,
                                   const char *name, const struct oci_descriptor **ret_entry,
                                   struct err *err);
/* linux/amd64: the platform of the reports' images and of the GPU machines. */
struct oci_platform oci_platform_default(void);
/* "linux/arm64/v8" */
char *oci_platform_text(struct arena *arena, const struct oci_platform *platform);

/* Bytes of all layers, config and the manifest itself, checked against overflow when parsed. */
uint64_t oci_manifest_bytes(const struct oci_manifest *manifest);

#endif
