/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of images on nodes share. Only fleet/node_image*.c include it. */
#ifndef FLEET_NODE_IMAGE_IMPL_H
#define FLEET_NODE_IMAGE_IMPL_H

#include "fleet/node_image.h"

struct provide {
    struct arena *arena;
    struct fleet *fleet;
    const struct store *store;
    enum runtime_kind kind;
    const struct image_spec *spec;
    int64_t deadline_ns;
    int n_tries;
    char config[OCI_DIGEST_SIZE], manifest[OCI_DIGEST_SIZE]; /* "" where not known */
    const char **files; /* the image's, on each node; NULL: the engine keeps images itself */
    struct node_image_report report;
};

/* The answer of a script to what it was asked: its id into the report. way is what the script did if it did anything. */
MUST_CHECK int node_image_take(struct provide *provide, size_t node_idx, int exit_status,
                               struct str output, enum node_image_way way, struct err *err);
/* All digests that are wanted are those. */
bool node_image_is_pinned(const struct image_pins *want, const struct image_pins *have);
/* Loads the image on those nodes that have no id yet. As node_images_provide. */
MUST_CHECK int node_image_load(struct provide *provide, struct err *err);

#endif
