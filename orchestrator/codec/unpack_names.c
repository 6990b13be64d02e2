/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/unpack_names.h"

#include "base/vec.h"
#include "codec/json_scan.h"

#define SHOWN_MAX 160
#define SHOWN(s)  (int)((s).len < SHOWN_MAX ? (s).len : SHOWN_MAX), (s).ptr

struct unpack_node {
    const char *name; /* in the arena */
    uint32_t parent;
    uint32_t hash;
    uint16_t name_len;
    uint8_t type;
};

void unpack_names_init(struct unpack_names *names, const uint64_t key[2], uint64_t n_max)
{
    *names = (struct unpack_names){.key = {key[0], key[1]}, .n_max = n_max};
    names->n_nodes_max = 64;
    names->nodes = xcalloc(names->n_nodes_max, sizeof(*names->nodes));
    names->nodes[0].type = UNPACK_FOLDER;
    names->n_nodes = 1;
    names->n_slots = 256;
    names->slots = xcalloc(names->n_slots, sizeof(*names->slots));
}

void unpack_names_release(struct unpack_names *names)
{
    arena_release(&names->arena);
    free(names->nodes);
    free(names->slots);
    free(names->links);
    *names = (struct unpack_names){0};
}

/* One code point of two bytes, U+0080 to U+07FF, in lower case: Latin, Greek and Cyrillic, as file systems without case fold
   them. Source: Unicode 15 CaseFolding.txt, the regular ranges. */
static unsigned fold_2(unsigned c)
{
    if ((c >= 0xc0 && c <= 0xde && c != 0xd7) || (c >= 0x391 && c <= 0x3a9) ||
        (c >= 0x410 && c <= 0x42f)) {
        return c + 32;
    }
    if (c >= 0x400 && c <= 0x40f) {
        return c + 80;
    }
    if ((c >= 0x100 && c <= 0x12f) || (c >= 0x132 && c <= 0x137) || (c >= 0x14a && c <= 0x177) ||
        (c >= 0x460 && c <= 0x481) || (c >= 0x48a && c <= 0x4bf)) {
        return c | 1;
    }
    if ((c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e)) {
        return c + (c & 1);
    }
    return c;
}

/* In lower case, of the same length. */
static size_t fold(struct str name, uint8_t *ret_folded)
{
    for (size_t at = 0; at < name.len; at++) {
        uint8_t c = (uint8_t)name.ptr[at];
        ret_folded[at] = (uint8_t)(c >= 'A' && c <= 'Z' ? c + 32 : c);
        if (c >= 0xc2 && c <= 0xdf && at + 1 < name.len) {
            unsigned point = fold_2((c & 0x1fu) << 6 | ((uint8_t)name.ptr[at + 1] & 0x3fu));
            ret_folded[at] = (uint8_t)(0xc0 | point >> 6);
            ret_folded[at + 1] = (uint8_t)(0x80 | (point & 0x3f));
            at++;
        }
    }
    return name.len;
}

__extension__ typedef unsigned __int128 u128; /* an extension of gcc and clang on 64-bit machines */

static uint64_t mix(uint64_t a, uint64_t b)
{
    u128 product = (u128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Keyed, so that names cannot be chosen to collide. */
static uint32_t hash_name(const struct unpack_names *names, uint32_t parent, const uint8_t *ptr,
                          size_t len)
{
    uint64_t h = mix(names->key[0] ^ parent, names->key[1] ^ (len | 0x9e3779b97f4a7c00ULL));
    while (len > 0) {
        uint64_t word = 0;
        size_t n = len < sizeof(word) ? len : sizeof(word);
        memcpy(&word, ptr, n);
        h = mix(h ^ word ^ names->key[0], names->key[1] | 1);
        ptr += n;
        len -= n;
    }
    return (uint32_t)(h ^ h >> 32);
}

static void grow_slots(struct unpack_names *names)
{
    size_t n_slots = names->n_slots * 2;
    uint32_t *slots = xcalloc(n_slots, sizeof(*slots));
    for (uint32_t idx = 1; idx < names->n_nodes; idx++) {
        size_t at = names->nodes[idx].hash & (n_slots - 1);
        while (slots[at]) {
            at = (at + 1) & (n_slots - 1);
        }
        slots[at] = idx;
    }
    free(names->slots);
    names->slots = slots;
    names->n_slots = n_slots;
}

/* The node of that name, whatever its case; 0: none. *ret_hash for add_node. */
static uint32_t find_node(const struct unpack_names *names, uint32_t parent, struct str name,
                          uint32_t *ret_hash)
{
    uint8_t folded[UNPACK_NAME_MAX], other[UNPACK_NAME_MAX];
    size_t len = fold(name, folded);
    size_t at;
    *ret_hash = hash_name(names, parent, folded, len);
    for (at = *ret_hash & (names->n_slots - 1); names->slots[at];
         at = (at + 1) & (names->n_slots - 1)) {
        const struct unpack_node *node = &names->nodes[names->slots[at]];
        if (node->hash == *ret_hash && node->parent == parent && node->name_len == len) {
            fold((struct str){node->name, node->name_len}, other);
            if (memcmp(other, folded, len) == 0) {
                return names->slots[at];
            }
        }
    }
    return 0;
}

static uint32_t add_node(struct unpack_names *names, uint32_t parent, struct str name,
                         enum unpack_type type, uint32_t hash)
{
    uint32_t idx = (uint32_t)names->n_nodes;
    size_t at;
    if (names->n_nodes == names->n_nodes_max) {
        names->nodes = vec_grow(names->nodes, &names->n_nodes_max, sizeof(*names->nodes));
    }
    if (names->n_nodes * 2 > names->n_slots) {
        grow_slots(names);
    }
    names->nodes[idx] = (struct unpack_node){
        .name = arena_strndup(&names->arena, name.ptr, name.len),
        .parent = parent,
        .hash = hash,
        .name_len = (uint16_t)name.len,
        .type = (uint8_t)type,
    };
    names->n_nodes++;
    for (at = hash & (names->n_slots - 1); names->slots[at]; at = (at + 1) & (names->n_slots - 1)) {
    }
    names->slots[at] = idx;
    return idx;
}

static bool is_same_name(const struct unpack_node *node, struct str name)
{
    return node->name_len == name.len && memcmp(node->name, name.ptr, name.len) == 0;
}

/* Each byte below 0x20, 0x7f, U+0080 to U+009f, a backslash (a separator elsewhere, and escaped by sha256sum), not UTF-8. */
static int check_text(struct str text, const char *what, struct err *err)
{
    for (size_t at = 0; at < text.len;) {
        size_t n = utf8_len((struct str){text.ptr + at, text.len - at});
        uint8_t c = (uint8_t)text.ptr[at];
        if (n == 0) {
            return err_set(err, ERR_INTEGRITY, "%s is not UTF-8 at byte %zu", what, at);
        }
        if (c < 0x20 || c == 0x7f || (c == 0xc2 && (uint8_t)text.ptr[at + 1] < 0xa0)) {
            return err_set(err, ERR_INTEGRITY, "%s has a control character at byte %zu", what, at);
        }
        if (c == '\\') {
            return err_set(err, ERR_INTEGRITY, "%s has a backslash at byte %zu", what, at);
        }
        at += n;
    }
    return 0;
}

static int check_component(struct str part, struct err *err)
{
    if (part.len == 0) {
        return err_set(err, ERR_INTEGRITY, "its name has an empty part");
    }
    if (str_eq_z(part, ".") || str_eq_z(part, "..")) {
        return err_set(err, ERR_INTEGRITY, "its name has the part \"%.*s\"", STR_ARG(part));
    }
    if (part.len > UNPACK_NAME_MAX) {
        return err_set(err, ERR_INTEGRITY,
                       "a part of its name has %zu bytes, at most %d are accepted", part.len,
                       UNPACK_NAME_MAX);
    }
    return 0;
}

int unpack_path_clean(struct str raw, struct str *ret_path, struct err *err)
{
    struct str path = raw, part;
    size_t depth = 0;
    if (raw.len == 0) {
        return err_set(err, ERR_INTEGRITY, "its name is empty");
    }
    if (raw.len >= UNPACK_PATH_MAX) {
        return err_set(err, ERR_INTEGRITY, "its name has %zu bytes, at most %d are accepted",
                       raw.len, UNPACK_PATH_MAX - 1);
    }
    if (raw.ptr[0] == '/') {
        return err_set(err, ERR_INTEGRITY, "its name is an absolute path");
    }
    if (check_text(raw, "its name", err) < 0) {
        return -1;
    }
    if (str_starts(path, STR_LIT("./"))) {
        path = str_sub(path, 2, path.len);
    } else if (str_eq_z(path, ".")) {
        path.len = 0;
    }
    if (path.len > 0 && path.ptr[path.len - 1] == '/') {
        path.len--;
        if (path.len == 0) {
            return err_set(err, ERR_INTEGRITY, "its name has an empty part");
        }
    }
    struct str rest = path;
    while (path.len > 0 && str_next(&rest, '/', &part)) {
        if (check_component(part, err) < 0) {
            return -1;
        }
        if (++depth > UNPACK_DEPTH_MAX) {
            return err_set(err, ERR_INTEGRITY, "its name is more than %d folders deep",
                           UNPACK_DEPTH_MAX);
        }
    }
    *ret_path = path;
    return 0;
}

static const char *type_name(uint8_t type)
{
    static const char *const NAMES[] = {
        [UNPACK_FILE] = "file",
        [UNPACK_FOLDER] = "folder",
        [UNPACK_SYMLINK] = "symlink",
        [UNPACK_HARDLINK] = "file",
    };
    return NAMES[type];
}

/* One step down, into an existing or a new folder. */
static int step_into(struct unpack_names *names, uint32_t *at, struct str part, size_t end,
                     struct err *err)
{
    uint32_t hash, next = find_node(names, *at, part, &hash);
    const struct unpack_node *node = &names->nodes[next];
    if (next == 0) {
        if (names->n_nodes > names->n_max) {
            return err_set(err, ERR_INTEGRITY, "more than %" PRIu64 " entries", names->n_max);
        }
        *at = add_node(names, *at, part, UNPACK_FOLDER, hash);
        names->new_ends[names->n_new++] = (uint32_t)end;
        return 0;
    }
    if (!is_same_name(node, part)) {
        return err_set(err, ERR_INTEGRITY,
                       "\"%.*s\" and \"%.*s\" of one folder differ only in case", SHOWN(part),
                       (int)node->name_len, node->name);
    }
    if (node->type != UNPACK_FOLDER) {
        return err_set(err, ERR_INTEGRITY, "it lies below \"%.*s\", which is a %s", SHOWN(part),
                       type_name(node->type));
    }
    *at = next;
    return 0;
}

/* The node of an existing path, letter for letter; 0: none. */
static uint32_t find_path(const struct unpack_names *names, struct str path)
{
    uint32_t at = 0, hash;
    struct str part;
    while (str_next(&path, '/', &part)) {
        at = find_node(names, at, part, &hash);
        if (at == 0 || !is_same_name(&names->nodes[at], part)) {
            return 0;
        }
    }
    return at;
}

static int check_hardlink(const struct unpack_names *names, struct str target, struct err *err)
{
    uint32_t node = find_path(names, target);
    if (node == 0 || names->nodes[node].type == UNPACK_FOLDER ||
        names->nodes[node].type == UNPACK_SYMLINK) {
        return err_set(err, ERR_INTEGRITY, "a hard link to \"%.*s\", which is not an earlier file",
                       SHOWN(target));
    }
    return 0;
}

/* What can be checked of a symlink's text before all names are known. depth: folders above the link. */
static int check_symlink(struct str target, size_t depth, struct err *err)
{
    struct str rest = target, part;
    if (target.len == 0 || target.len >= UNPACK_PATH_MAX) {
        return err_set(err, ERR_INTEGRITY, "a symlink to %zu bytes of text", target.len);
    }
    if (check_text(target, "the symlink's target", err) < 0) {
        return -1;
    }
    if (target.ptr[0] == '/') {
        return err_set(err, ERR_INTEGRITY, "a symlink to the absolute path \"%.*s\"",
                       SHOWN(target));
    }
    while (str_next(&rest, '/', &part)) {
        if (part.len > UNPACK_NAME_MAX) {
            return err_set(err, ERR_INTEGRITY, "the symlink's target has a part of %zu bytes",
                           part.len);
        }
        if (str_eq_z(part, "..")) {
            if (depth == 0) {
                return err_set(err, ERR_INTEGRITY, "a symlink that leads outside: \"%.*s\"",
                               SHOWN(target));
            }
            depth--;
        } else if (part.len > 0 && !str_eq_z(part, ".")) {
            depth++;
        }
    }
    return 0;
}

static size_t count_parts(struct str path)
{
    size_t n = 1;
    for (size_t at = 0; at < path.len; at++) {
        n += path.ptr[at] == '/';
    }
    return n;
}

static int add_last(struct unpack_names *names, uint32_t parent, struct str part,
                    enum unpack_type type, uint32_t *ret_node, struct err *err)
{
    uint32_t hash, found = find_node(names, parent, part, &hash);
    const struct unpack_node *node = &names->nodes[found];
    *ret_node = 0;
    if (found == 0) {
        if (names->n_nodes > names->n_max) {
            return err_set(err, ERR_INTEGRITY, "more than %" PRIu64 " entries", names->n_max);
        }
        *ret_node = add_node(names, parent, part, type, hash);
        return 0;
    }
    if (!is_same_name(node, part)) {
        return err_set(err, ERR_INTEGRITY,
                       "\"%.*s\" and \"%.*s\" of one folder differ only in case", SHOWN(part),
                       (int)node->name_len, node->name);
    }
    if (type == UNPACK_FOLDER && node->type == UNPACK_FOLDER) {
        return 0;
    }
    if (type == UNPACK_FOLDER || node->type == UNPACK_FOLDER) {
        return err_set(err, ERR_INTEGRITY, "a %s in place of a %s", type_name((uint8_t)type),
                       type_name(node->type));
    }
    return err_set(err, ERR_INTEGRITY, "it occurs twice");
}

int unpack_names_add(struct unpack_names *names, struct str path, enum unpack_type type,
                     struct str target, bool *ret_is_new, struct err *err)
{
    struct str rest = path, part = STR_EMPTY, next;
    uint32_t at = 0, node;
    names->n_new = 0;
    ASSERT(path.len > 0);
    if ((type == UNPACK_HARDLINK && check_hardlink(names, target, err) < 0) ||
        (type == UNPACK_SYMLINK && check_symlink(target, count_parts(path) - 1, err) < 0)) {
        return -1;
    }
    str_next(&rest, '/', &part);
    while (str_next(&rest, '/', &next)) {
        if (step_into(names, &at, part, (size_t)(part.ptr + part.len - path.ptr), err) < 0) {
            return -1;
        }
        part = next;
    }
    if (add_last(names, at, part, type, &node, err) < 0) {
        return -1;
    }
    if (type == UNPACK_SYMLINK) {
        if (names->n_links == names->n_links_max) {
            names->links = vec_grow(names->links, &names->n_links_max, sizeof(*names->links));
        }
        names->links[names->n_links++] = (struct unpack_link){node, str_dup(&names->arena, target)};
    }
    *ret_is_new = node != 0;
    return 0;
}

/* Where the symlink leads, from real folder to real folder; returns a text for people if it is not allowed to. */
static const char *judge_link(const struct unpack_names *names, const struct unpack_link *link)
{
    uint32_t at = names->nodes[link->node].parent, hash;
    struct str rest = link->target, part;
    while (str_next(&rest, '/', &part)) {
        if (part.len == 0 || str_eq_z(part, ".")) {
            continue;
        }
        if (names->nodes[at].type != UNPACK_FOLDER) {
            return names->nodes[at].type == UNPACK_SYMLINK ? "leads through another symlink"
                                                           : "leads through a file";
        }
        if (str_eq_z(part, "..")) {
            if (at == 0) {
                return "leads outside";
            }
            at = names->nodes[at].parent;
            continue;
        }
        at = find_node(names, at, part, &hash);
        if (at == 0 || !is_same_name(&names->nodes[at], part)) {
            return "leads to nothing in the archive";
        }
    }
    if (names->nodes[at].type == UNPACK_SYMLINK) {
        return "leads to another symlink";
    }
    if (names->nodes[at].type == UNPACK_FOLDER) {
        return "leads to a folder: its files would occur twice";
    }
    return NULL;
}

int unpack_names_check_links(const struct unpack_names *names, struct err *err)
{
    for (size_t idx = 0; idx < names->n_links; idx++) {
        const struct unpack_link *link = &names->links[idx];
        const char *fault = judge_link(names, link);
        if (fault) {
            return err_set(err, ERR_INTEGRITY, "symlink \"%.*s\" to \"%.*s\" %s",
                           (int)names->nodes[link->node].name_len, names->nodes[link->node].name,
                           SHOWN(link->target), fault);
        }
    }
    return 0;
}

const char *unpack_kind(const char *name)
{
    static const struct {
        const char *end, *kind;
    } KINDS[] = {{".tar", "tar"},
                 {".tar.gz", "tar.gz"},
                 {".tgz", "tar.gz"},
                 {".tar.zst", "tar.zst"},
                 {".zip", "zip"}};
    for (size_t idx = 0; idx < ARRAY_LEN(KINDS); idx++) {
        if (str_ends(str_of(name), str_of(KINDS[idx].end))) {
            return KINDS[idx].kind;
        }
    }
    return NULL;
}
