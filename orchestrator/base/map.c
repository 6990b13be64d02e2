/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

static uint64_t hash_from(uint64_t seed, const void *ptr, size_t len)
{
    /* Source: FNV-1a, 64-bit offset basis and prime, draft-eastlake-fnv-17 section 5. */
    uint64_t hash = 0xcbf29ce484222325ULL ^ seed;
    const unsigned char *bytes = ptr;
    for (size_t idx = 0; idx < len; idx++) {
        hash = (hash ^ bytes[idx]) * 0x100000001b3ULL;
    }
    return hash;
}

uint64_t hash_bytes(const void *ptr, size_t len)
{
    return hash_from(0, ptr, len);
}

void map_release(struct map *map)
{
    free(map->entries);
    free(map->slots);
    *map = (struct map){0};
}

static uint32_t *slot_of(const struct map *map, struct str key)
{
    size_t mask = map->n_slots - 1;
    size_t idx = (size_t)hash_from(map->seed, key.ptr, key.len) & mask;
    while (map->slots[idx] && !str_eq(map->entries[map->slots[idx] - 1].key, key)) {
        idx = (idx + 1) & mask;
    }
    return &map->slots[idx];
}

void *map_get(const struct map *map, struct str key)
{
    if (map->n == 0) {
        return NULL;
    }
    uint32_t *slot = slot_of(map, key);
    return *slot ? map->entries[*slot - 1].value : NULL;
}

static void rehash(struct map *map)
{
    map->n_slots = map->n_slots ? map->n_slots * 2 : 16;
    free(map->slots);
    map->slots = xcalloc(map->n_slots, sizeof(*map->slots));
    for (size_t idx = 0; idx < map->n; idx++) {
        *slot_of(map, map->entries[idx].key) = (uint32_t)idx + 1;
    }
}

bool map_add(struct map *map, struct str key, void *value)
{
    ASSERT(value);
    ASSERT(map->n < UINT32_MAX / 4);
    if (map->n_slots == 0 || map->n * 2 >= map->n_slots) {
        rehash(map);
    }
    uint32_t *slot = slot_of(map, key);
    if (*slot) {
        return false;
    }
    if (map->n == map->n_max) {
        map->n_max = map->n_max ? map->n_max * 2 : 8;
        map->entries = xrealloc(map->entries, map->n_max * sizeof(*map->entries));
    }
    map->entries[map->n] = (struct map_entry){key, value};
    map->n++;
    *slot = (uint32_t)map->n;
    return true;
}
