/* SPDX-License-Identifier: Apache-2.0 */
/* A map from text to a pointer: open addressing, insertion order kept for iteration. Keys and values are borrowed. */
#pragma once

#include "base/str.h"

struct map_entry {
    struct str key;
    void *value;
};

struct map {
    struct map_entry *entries; /* in order of insertion */
    size_t n;
    size_t n_max;
    uint32_t *slots; /* entry index + 1, or 0 */
    size_t n_slots;
    uint64_t seed; /* of the hash, where keys are hostile and many; set before the first key */
};

void map_release(struct map *map);
CLEANUP_BY(map, struct map, map_release);

/* NULL where absent. */
void *map_get(const struct map *map, struct str key);
/* False, and nothing changed, if the key exists already. value is not NULL. */
bool map_add(struct map *map, struct str key, void *value);

uint64_t hash_bytes(const void *ptr, size_t len); /* FNV-1a 64; not for hostile keys at scale */
