/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept: the blobs that references name, and those that the image layout's index leads to (another tool may have put an
   image there). What cannot be read is an error: then nobody knows what it names. */
#include "base/base.h"

#include "codec/json.h"
#include "codec/oci_ref.h"
#include "store/store_gc.h"
#include "store/store_impl.h"

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

/* Manifests and indexes lead on; a media type that is missing is taken for one that may. */
static int leads_on(const struct json *descriptor, struct arena *arena, bool *ret_leads,
                    struct err *err)
{
    struct json type;
    struct str text = STR_EMPTY;
    if (json_find(descriptor, "mediaType", &type) && json_str(&type, arena, &text, err) < 0) {
        return -1;
    }
    *ret_leads = text.len == 0 || str_find(text, STR_LIT("manifest")) >= 0 ||
                 str_find(text, STR_LIT("image.index")) >= 0;
    return 0;
}

static int mark_descriptor(struct marking *marking, const struct json *descriptor, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    uint8_t sha256[SHA256_BYTES];
    struct json digest;
    struct str text;
    bool leads;
    if (json_member(descriptor, "digest", &digest, err) < 0 ||
        json_str(&digest, &arena, &text, err) < 0 ||
        leads_on(descriptor, &arena, &leads, err) < 0) {
        return -1;
    }
    if (++marking->n_descriptors > DESCRIPTORS_MAX) {
        return json_fail(descriptor, err, "more than %d descriptors", DESCRIPTORS_MAX);
    }
    if (!str_starts(text, STR_LIT("sha256:"))) {
        return 0; /* another algorithm's blobs lie elsewhere, where nothing is dropped */
    }
    if (oci_digest_parse(text, sha256, err) < 0) {
        return -1;
    }
    push(&marking->found, sha256);
    if (leads) {
        push(&marking->todo, sha256);
    }
    return 0;
}

static int mark_list(struct marking *marking, const struct json *root, const char *key,
                     struct err *err)
{
    struct json list, item;
    size_t n;
    if (!json_find(root, key, &list)) {
        return 0;
    }
    if (json_expect_array(&list, DESCRIPTORS_MAX, &n, err) < 0) {
        return -1;
    }
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (mark_descriptor(marking, &item, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int mark_document(struct marking *marking, const char *path, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct json root, config;
    if (json_read_file(path, &doc, err) < 0) {
        return -1;
    }
    root = json_root(&doc);
    if (json_find(&root, "config", &config) && mark_descriptor(marking, &config, err) < 0) {
        return -1;
    }
    if (mark_list(marking, &root, "layers", err) < 0 ||
        mark_list(marking, &root, "manifests", err) < 0) {
        return -1;
    }
    return 0;
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
