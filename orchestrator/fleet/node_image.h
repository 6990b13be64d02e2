/* SPDX-License-Identifier: Apache-2.0 */
/* An image on every node, by its pin. If the inventory names a registry, each node's engine pulls REGISTRY/NAME@sha256:... from
   that site's mirror; else the image comes from this machine's store as one tar that is passed on from node to node (fleet/stage)
   and loaded. Nodes never pull from outside. An existing image with the pinned id stays as it is; afterwards every node's engine
   has been asked for the image and answered with the pinned id. One thread; it runs the loop. */
#pragma once

#include "fleet/fleet.h"
#include "fleet/runtime.h"
#include "store/image_store.h"

#define NODE_IMAGE_DEADLINE_NS (3600 * NS_PER_S)

struct node_image_opts {
    const struct store *store; /* NULL where the inventory names a registry */
    enum runtime_kind kind;
    int64_t deadline_ns; /* a node; 0: NODE_IMAGE_DEADLINE_NS */
};

enum node_image_way {
    NODE_IMAGE_THERE,  /* it was there */
    NODE_IMAGE_PULLED, /* its engine got it from the inventory's registry */
    NODE_IMAGE_LOADED, /* from a tar */
};
extern const char *const NODE_IMAGE_WAY_NAMES[NODE_IMAGE_LOADED + 1];

struct node_image_node {
    enum node_image_way way;
    struct str id;
};

struct node_image_report {
    struct runtime_image image;    /* what runtime_commands needs; the same on all nodes */
    struct node_image_node *nodes; /* in the fleet's order; in the arena */
    uint64_t tar_bytes;            /* 0: none was made */
    uint64_t head_bytes;           /* sent by this machine */
};

/* Returns the number of nodes that failed (fleet node->err says why), or -1. Errors of a node: ERR_NET (the registry cannot
   be reached), ERR_TIMEOUT (past the deadline), ERR_INTEGRITY (a corrupt layer or manifest, or another id than the pin),
   ERR_AUTH, ERR_DISK, ERR_CONTAINER (no engine, or the registry does not have it). -1: ERR_CONTAINER for an image without a
   pin, or an engine that takes none from us, ERR_NOT_FOUND where there is no registry and the store does not have it. */
MUST_CHECK int node_images_provide(struct arena *arena, struct fleet *fleet,
                                   const struct image_spec *spec,
                                   const struct node_image_opts *opts,
                                   struct node_image_report *ret_report, struct err *err);
