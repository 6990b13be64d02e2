/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/lock_file.h"

#include "base/fs.h"
#include "load/places.h"
#include "store/store.h"

#define LOCK_TEXT_MAX (4u << 20)

const char *lock_folder(struct arena *arena, const char *root, const char *named,
                        enum lock_kind kind, const char *id)
{
    static const char *const FILES[][2] = {
        [LOCK_DATASET] = {"datasets", "dataset.json"}, [LOCK_IMAGE] = {"images", "image.json"}};
    bool is_described = kind != LOCK_SOURCE && !strpbrk(id, "/:@");
    if (named || !is_described) {
        return named ? named : fs_join(arena, root, "manifests/locks");
    }
    return places_beside(arena, root, FILES[kind][0], fs_join(arena, id, FILES[kind][1]), "locks");
}

int lock_path(struct arena *arena, const char *folder, enum lock_kind kind, const char *id,
              char **ret_path, struct err *err)
{
    char *name = NULL;
    if (store_escape(arena, id, &name, err) < 0) {
        return -1;
    }
    *ret_path = arena_printf(arena, "%s/%s/%s.json", folder, LOCK_KIND_NAMES[kind], name);
    return 0;
}

int lock_read(struct arena *arena, const char *folder, enum lock_kind kind, const char *id,
              struct lock *ret_lock, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct lock lock = {0};
    char *path = NULL;
    if (lock_path(arena, folder, kind, id, &path, err) < 0 ||
        (fs_exists(path) &&
         (json_read_file(path, &doc, err) < 0 || lock_decode(&doc.root, arena, &lock, err) < 0))) {
        return -1;
    }
    if (lock.id.ptr && (lock.kind != kind || !str_eq_z(lock.id, id))) {
        return err_set(err, ERR_MANIFEST, "%s: expected the lock of %s %s, found that of %s %s",
                       path, LOCK_KIND_NAMES[kind], id, LOCK_KIND_NAMES[lock.kind], lock.id.ptr);
    }
    *ret_lock = lock;
    return 0;
}

/* Merges what is new into what is known: items that the known lock has not yet, and what it left open. */
static void add_to(struct arena *arena, const struct lock *known, const struct lock *found,
                   struct lock *ret_both, bool *ret_is_more)
{
    struct lock both = *known;
    *ret_is_more = false;
    both.items = arena_array(arena, struct lock_item, known->n_items + found->n_items + 1);
    memcpy(both.items, known->items, known->n_items * sizeof(both.items[0]));
    for (size_t idx = 0; idx < found->n_items; idx++) {
        if (!lock_find(known, found->items[idx].name)) {
            both.items[both.n_items++] = found->items[idx];
            *ret_is_more = true;
        }
    }
    if (!both.has_list && found->has_list) {
        both.has_list = true;
        memcpy(both.list_sha256, found->list_sha256, SHA256_BYTES);
        both.n_files = found->n_files;
        both.file_bytes = found->file_bytes;
        *ret_is_more = true;
    }
    *ret_both = both;
}

int lock_settle(struct arena *arena, const char *folder, const struct lock *found, bool *ret_is_new,
                struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(LOCK_TEXT_MAX);
    struct lock known;
    struct lock both = *found;
    bool is_more = true;
    char *path = NULL;
    if (lock_read(arena, folder, found->kind, found->id.ptr, &known, err) < 0 ||
        lock_check(&known, found, err) < 0) {
        return -1;
    }
    if (known.id.ptr) {
        add_to(arena, &known, found, &both, &is_more);
    }
    if (is_more) {
        lock_encode(&both, &text);
        if (text.is_full) {
            return err_set(err, ERR_INTERNAL, "the lock of %s would be larger than %u bytes",
                           found->id.ptr, LOCK_TEXT_MAX);
        }
        if (lock_path(arena, folder, found->kind, found->id.ptr, &path, err) < 0 ||
            fs_mkdir_p(arena_printf(arena, "%s/%s", folder, LOCK_KIND_NAMES[found->kind]), err) <
                0 ||
            fs_write_atomic(path, strbuf_str(&text), err) < 0) {
            return -1;
        }
    }
    *ret_is_new = is_more;
    return 0;
}
