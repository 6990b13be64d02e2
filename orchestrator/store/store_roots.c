/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept: the blobs that references name, and those that the image layout's index leads to (another tool may have put an
   image there). What cannot be read is an error: then nobody knows what it names. */
#include "base/base.h"

#include "codec/json_table.h"
#include "codec/oci_ref.h"
#include "store/store_gc.h"

#define DESCRIPTORS_MAX 100000

struct digest_set {
    struct {
        uint8_t bytes[SHA256_BYTES];
    } * items;
    size_t n;
    size_t n_max;
};

struct marking {
    struct arena *arena;
    const struct store *store;
    struct digest_set found; /* with doubles until the end */
    struct digest_set todo;  /* manifests and indexes still to read */
    size_t n_descriptors;
};

static void push(struct digest_set *set, const uint8_t *sha256)
{
    if (set->n == set->n_max) {
        set->items = vec_grow(set->items, &set->n_max, sizeof(*set->items));
    }
    memcpy(set->items[set->n++].bytes, sha256, SHA256_BYTES);
}

/* ---- references ---- */

static int each_of_kind(const struct store *store, const char *kind, store_ref_fn fn, void *ctx,
                        struct err *err)
{
    struct fs_names names;
    if (store_ref_list(store, kind, &names, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        CLEANUP(arena) struct arena arena = ARENA_EMPTY;
        struct store here = *store;
        struct store_ref ref = {.kind = kind, .name = names.items[idx]};
        uint8_t(*blobs)[SHA256_BYTES];
        here.arena = &arena;
        if (store_ref_get(&here, kind, ref.name, &ref.text, err) < 0 ||
            store_ref_blobs(&arena, ref.text, ref.name, &blobs, &ref.n_blobs, err) < 0) {
            return err_wrap(err, "reference %s", kind);
        }
        ref.blobs = (const uint8_t(*)[SHA256_BYTES])blobs;
        if (fn(ctx, &ref, err) < 0) {
            return -1;
        }
    }
    return 0;
}

int store_each_ref(const struct store *store, store_ref_fn fn, void *ctx, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct store here = *store;
    struct fs_names kinds;
    here.arena = &arena;
    if (store_ref_kinds(&here, &kinds, err) < 0) {
        return -1;
    }
    for (size_t kind = 0; kind < kinds.n; kind++) {
        if (each_of_kind(&here, kinds.items[kind], fn, ctx, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int mark_ref(void *ctx, const struct store_ref *ref, struct err *err UNUSED)
{
    struct marking *marking = ctx;
    for (size_t idx = 0; idx < ref->n_blobs; idx++) {
        push(&marking->found, ref->blobs[idx]);
    }
    return 0;
}

/* ---- the image layout ---- */

struct mark_entry { /* a descriptor, as far as it matters here */
    struct str type, digest;
};
struct mark_list {
    struct mark_entry config;
    struct mark_entry *layers, *manifests;
    size_t n_layers, n_manifests;
};
static const struct json_field ENTRY_ROWS[] = {
    ROW("digest", struct mark_entry, digest, JSON_REQUIRED),
    ROW("mediaType", struct mark_entry, type, 0),
    ROW_OTHERS,
};
static const struct json_field LIST_ROWS[] = {
    ROW_OBJECT("config", struct mark_list, config, ENTRY_ROWS, 0),
    ROW_LIST("layers", struct mark_list, layers, n_layers, ENTRY_ROWS, 0, .max = DESCRIPTORS_MAX),
    ROW_LIST("manifests", struct mark_list, manifests, n_manifests, ENTRY_ROWS, 0,
             .max = DESCRIPTORS_MAX),
    ROW_OTHERS,
};

/* Manifests and indexes lead on; a media type that is missing is taken for one that may. Another algorithm's blobs lie elsewhere,
   where nothing is dropped. */
static int mark_entries(struct marking *marking, const struct mark_entry *entries, size_t n,
                        const char *path, struct err *err)
{
    marking->n_descriptors += n;
    if (marking->n_descriptors > DESCRIPTORS_MAX) {
        return err_set(err, ERR_MANIFEST, "%s: more than %d descriptors", path, DESCRIPTORS_MAX);
    }
    for (size_t idx = 0; idx < n; idx++) {
        const struct mark_entry *entry = &entries[idx];
        uint8_t sha256[SHA256_BYTES];
        if (!str_starts(entry->digest, STR_LIT("sha256:"))) {
            continue;
        }
        if (oci_digest_parse(entry->digest, sha256, err) < 0) {
            return err_wrap(err, "%s", path);
        }
        push(&marking->found, sha256);
        if (entry->type.len == 0 || str_find(entry->type, STR_LIT("manifest")) >= 0 ||
            str_find(entry->type, STR_LIT("image.index")) >= 0) {
            push(&marking->todo, sha256);
        }
    }
    return 0;
}

static int mark_document(struct marking *marking, const char *path, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct mark_list list = {0};
    if (json_read_file(path, &doc, err) < 0) {
        return -1;
    }
    struct json root = json_root(&doc);
    if (json_decode(&root, &arena, LIST_ROWS, ARRAY_LEN(LIST_ROWS), &list, err) < 0 ||
        mark_entries(marking, &list.config, list.config.digest.ptr != NULL, path, err) < 0 ||
        mark_entries(marking, list.layers, list.n_layers, path, err) < 0) {
        return -1;
    }
    return mark_entries(marking, list.manifests, list.n_manifests, path, err);
}

static int mark_layout(struct marking *marking, struct err *err)
{
    if (mark_document(marking, store_path(marking->store, "index.json"), err) < 0) {
        return -1;
    }
    while (marking->todo.n) {
        const uint8_t *sha256 = marking->todo.items[--marking->todo.n].bytes;
        const char *path = store_blob_path(marking->store, sha256);
        if (store_has(marking->store, sha256, NULL) && mark_document(marking, path, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- both ---- */

static int by_digest(const void *a, const void *b)
{
    return memcmp(a, b, SHA256_BYTES);
}

int store_roots(struct arena *arena, const struct store *store, struct store_roots *ret_roots,
                struct err *err)
{
    struct marking marking = {.arena = arena, .store = store};
    struct store_roots roots = {0};
    int result = store_each_ref(store, mark_ref, &marking, err);
    if (result == 0) {
        result = mark_layout(&marking, err);
    }
    VEC_RELEASE(&marking.todo);
    if (result == 0 && marking.found.n) {
        qsort(marking.found.items, marking.found.n, SHA256_BYTES, by_digest);
        roots.sha256 = arena_alloc_array(arena, SHA256_BYTES, marking.found.n, 1);
        for (size_t idx = 0; idx < marking.found.n; idx++) {
            if (roots.n == 0 ||
                by_digest(roots.sha256[roots.n - 1], marking.found.items[idx].bytes) != 0) {
                memcpy(roots.sha256[roots.n++], marking.found.items[idx].bytes, SHA256_BYTES);
            }
        }
    }
    VEC_RELEASE(&marking.found);
    if (result == 0) {
        *ret_roots = roots;
    }
    return result;
}

bool store_roots_have(const struct store_roots *roots, const uint8_t *sha256)
{
    return roots->n && bsearch(sha256, roots->sha256, roots->n, SHA256_BYTES, by_digest);
}
