/* SPDX-License-Identifier: Apache-2.0 */
/* Names from outside as path components, and references. */
#include "base/base.h"

#include <unistd.h>

#include "base/publish.h"
#include "codec/json.h"
#include "codec/oci_ref.h"
#include "store/store_impl.h"

#define KIND_MAX   32
#define SUFFIX     ".json"
#define CUT_KEY_AT 100 /* where too long a key of a partial ends; its digest follows */

/* ---- names ---- */

static bool is_plain(char c, bool is_first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || (c == '.' && !is_first);
}

static void escape_into(struct strbuf *buf, const char *name)
{
    for (const char *c = name; *c; c++) {
        if (is_plain(*c, c == name)) {
            strbuf_add_char(buf, *c);
        } else {
            strbuf_printf(buf, "%%%02X", (unsigned)(unsigned char)*c);
        }
    }
}

int store_escape(struct arena *arena, const char *name, char **ret_component, struct err *err)
{
    CLEANUP(strbuf) struct strbuf buf = STRBUF(STORE_NAME_MAX);
    escape_into(&buf, name);
    if (buf.is_full || buf.len == 0) {
        return err_set(err, ERR_USAGE,
                       "name \"%.100s\": expected 1 to %d bytes, others than A-Z, a-z, 0-9, "
                       "\".\", \"_\" and \"-\" counting three times",
                       name, STORE_NAME_MAX);
    }
    *ret_component = arena_strndup(arena, buf.ptr, buf.len);
    return 0;
}

static int upper_nibble(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

char *store_unescape(struct arena *arena, const char *component)
{
    CLEANUP(arena) struct arena scratch = ARENA_EMPTY;
    size_t len = strlen(component);
    char *name = arena_alloc(arena, len + 1, 1);
    char *again = NULL;
    size_t n = 0;
    for (const char *c = component; *c; c++) {
        if (*c != '%') {
            name[n++] = *c;
            continue;
        }
        int high = upper_nibble(c[1]);
        int low = high < 0 ? -1 : upper_nibble(c[2]);
        if (low < 0) {
            return NULL;
        }
        name[n++] = (char)(high * 16 + low);
        c += 2;
    }
    /* Each name has one component: what escaping would not have written is not ours. */
    if (store_escape(&scratch, name, &again, ERR_IGNORED) < 0 || strcmp(again, component) != 0) {
        return NULL;
    }
    return name;
}

char *store_partial(const struct store *store, const char *key)
{
    CLEANUP(strbuf) struct strbuf buf = STRBUF(3 * strlen(key) + 1);
    uint8_t sha256[SHA256_BYTES];
    escape_into(&buf, key);
    if (buf.len > 0 && buf.len <= STORE_NAME_MAX) {
        return arena_printf(store->arena, "%s/partial/%s", store->folder, buf.ptr);
    }
    /* '~' is in no escaped name. */
    sha256_of(str_of(key), sha256);
    return arena_printf(store->arena, "%s/partial/%.*s~%s", store->folder, CUT_KEY_AT, buf.ptr,
                        sha256_hex_of(sha256).text);
}

/* ---- what a reference names ---- */

int store_ref_parse(struct arena *arena, struct store_ref *ref, struct err *err)
{
    CLEANUP(arena) struct arena scratch = ARENA_EMPTY;
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct json list;
    struct str *items;
    size_t n;
    if (json_parse(ref->text, ref->name, &doc, err) < 0 ||
        json_member(&doc.root, "blobs", &list, err) < 0 ||
        json_str_list(&list, &scratch, STORE_BLOBS_MAX, &items, &n, err) < 0) {
        return -1;
    }
    uint8_t(*sha256)[SHA256_BYTES] = arena_alloc_array(arena, SHA256_BYTES, n ? n : 1, 1);
    for (size_t idx = 0; idx < n; idx++) {
        if (oci_digest_parse(items[idx], sha256[idx], err) < 0) {
            return err_wrap(err, "%s: blobs[%zu]", ref->name, idx);
        }
    }
    ref->blobs = (const uint8_t(*)[SHA256_BYTES])sha256;
    ref->n_blobs = n;
    return 0;
}

/* ---- references ---- */

static bool is_kind(const char *name)
{
    size_t len = strlen(name);
    return len > 0 && len <= KIND_MAX && strspn(name, "abcdefghijklmnopqrstuvwxyz-") == len;
}

static int ref_path(const struct store *store, const char *kind, const char *name, char **ret_path,
                    struct err *err)
{
    char *component;
    ASSERT(is_kind(kind));
    if (store_escape(store->arena, name, &component, err) < 0) {
        return err_wrap(err, "%s", kind);
    }
    *ret_path = arena_printf(store->arena, "%s/refs/%s/%s" SUFFIX, store->folder, kind, component);
    return 0;
}

int store_ref_put(struct store *store, const char *kind, const char *name, struct str text,
                  struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct store_ref ref = {.kind = kind, .name = name, .text = text};
    const char *folder;
    char *path;
    ASSERT(store->lock_fd >= 0);
    if (text.len > STORE_TEXT_MAX) {
        return err_set(err, ERR_USAGE, "reference %s %s: longer than %u bytes", kind, name,
                       STORE_TEXT_MAX);
    }
    if (ref_path(store, kind, name, &path, err) < 0 || store_ref_parse(&arena, &ref, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < ref.n_blobs; idx++) {
        if (!store_has(store, ref.blobs[idx], NULL)) {
            return err_set(err, ERR_NOT_FOUND, "reference %s %s: sha256:%s is not in the store",
                           kind, name, sha256_hex_of(ref.blobs[idx]).text);
        }
    }
    folder = fs_join(&arena, store->folder, arena_printf(&arena, "refs/%s", kind));
    return fs_mkdir_p(folder, err) < 0 ? -1 : store_write(store, path, text, err);
}

int store_ref_get(const struct store *store, const char *kind, const char *name,
                  struct str *ret_text, struct err *err)
{
    char *path;
    if (ref_path(store, kind, name, &path, err) < 0) {
        return -1;
    }
    return fs_read(store->arena, path, STORE_TEXT_MAX, ret_text, err);
}

int store_ref_drop(struct store *store, const char *kind, const char *name, struct err *err)
{
    char *path;
    ASSERT(store->lock_fd >= 0);
    if (ref_path(store, kind, name, &path, err) < 0) {
        return -1;
    }
    if (unlink(path) < 0) {
        return err_errno(err, "remove", path);
    }
    return publish_parent(path, err);
}

int store_ref_list(const struct store *store, const char *kind, struct fs_names *ret_names,
                   struct err *err)
{
    struct fs_names names = {0};
    ASSERT(is_kind(kind));
    const char *folder = store_path(store, arena_printf(store->arena, "refs/%s", kind));
    if (fs_is_dir(folder) && fs_list(store->arena, folder, &names, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        struct str file = str_of(names.items[idx]);
        char *name = NULL;
        if (str_ends(file, STR_LIT(SUFFIX))) {
            name = store_unescape(
                store->arena,
                str_z(store->arena, str_sub(file, 0, file.len - (sizeof(SUFFIX) - 1))));
        }
        if (!name) {
            return err_set(err, ERR_INTEGRITY, "%s/%s: not a reference of this store", folder,
                           names.items[idx]);
        }
        names.items[idx] = name;
    }
    /* The order of the escaped names differs from that of the names: '%' sorts before letters. */
    VEC_SORT(&names, str_cmp_z);
    *ret_names = names;
    return 0;
}

int store_ref_kinds(const struct store *store, struct fs_names *ret_kinds, struct err *err)
{
    const char *folder = store_path(store, "refs");
    struct fs_names names;
    if (fs_list(store->arena, folder, &names, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        if (!is_kind(names.items[idx])) {
            return err_set(err, ERR_INTEGRITY, "%s/%s: not a kind of reference", folder,
                           names.items[idx]);
        }
    }
    *ret_kinds = names;
    return 0;
}

int store_ref_read(struct arena *arena, const struct store *store, struct store_ref *ref,
                   struct err *err)
{
    struct store here = *store;
    here.arena = arena;
    return store_ref_get(&here, ref->kind, ref->name, &ref->text, err) < 0
               ? -1
               : store_ref_parse(arena, ref, err);
}

static int each_of_kind(const struct store *store, const char *kind, store_ref_fn fn, void *ctx,
                        struct err *err)
{
    struct fs_names names;
    if (store_ref_list(store, kind, &names, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        CLEANUP(arena) struct arena arena = ARENA_EMPTY;
        struct store_ref ref = {.kind = kind, .name = names.items[idx]};
        if (store_ref_read(&arena, store, &ref, err) < 0) {
            return err_wrap(err, "reference %s", kind);
        }
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
