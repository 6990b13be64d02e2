/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/unpack_names.h"

#include "base/strbuf.h"

#define SHOWN_MAX 160
#define SHOWN(s)  (int)((s).len < SHOWN_MAX ? (s).len : SHOWN_MAX), (s).ptr

struct unpack_node {
    struct str path;
    struct str target; /* of a symlink */
    enum unpack_type type;
};

void unpack_names_release(struct unpack_names *names)
{
    map_release(&names->nodes);
    arena_release(&names->arena);
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

/* In lower case, of the same length, into the arena. */
static struct str fold(struct arena *arena, struct str name)
{
    char *folded = arena_strndup(arena, name.ptr, name.len);
    for (size_t at = 0; at < name.len; at++) {
        uint8_t c = (uint8_t)name.ptr[at];
        folded[at] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
        if (c >= 0xc2 && c <= 0xdf && at + 1 < name.len) {
            unsigned point = fold_2((c & 0x1fu) << 6 | ((uint8_t)name.ptr[at + 1] & 0x3fu));
            folded[at] = (char)(0xc0 | point >> 6);
            folded[at + 1] = (char)(0x80 | (point & 0x3f));
            at++;
        }
    }
    return (struct str){folded, name.len};
}

/* The node of that path, letter for letter; NULL: none. */
static const struct unpack_node *find_node(const struct unpack_names *names, struct str path)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const struct unpack_node *node = map_get(&names->nodes, fold(&arena, path));
    return node && str_eq(node->path, path) ? node : NULL;
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

int unpack_names_clean(struct str raw, struct str *ret_path, struct err *err)
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

static const char *const TYPE_NAMES[] = {
    [UNPACK_FILE] = "file",
    [UNPACK_FOLDER] = "folder",
    [UNPACK_SYMLINK] = "symlink",
    [UNPACK_HARDLINK] = "file",
};

/* The node whose path differs from this one in case at most; NULL: none, or with the error. */
static int find_alike(const struct unpack_names *names, struct str path, struct str folded,
                      const struct unpack_node **ret_node, struct err *err)
{
    const struct unpack_node *node = *ret_node = map_get(&names->nodes, folded);
    if (node && !str_eq(node->path, path)) {
        size_t from = str_rcut(path, 0, "/").len;
        return err_set(
            err, ERR_INTEGRITY, "\"%.*s\" and \"%.*s\" of one folder differ only in case",
            SHOWN(str_sub(path, from, SIZE_MAX)), SHOWN(str_sub(node->path, from, SIZE_MAX)));
    }
    return 0;
}

static int add_node(struct unpack_names *names, struct unpack_node made, struct str folded,
                    struct err *err)
{
    struct unpack_node *node = arena_new(&names->arena, struct unpack_node);
    if (names->nodes.n >= names->n_max) {
        return err_set(err, ERR_INTEGRITY, "more than %" PRIu64 " entries", names->n_max);
    }
    *node = made;
    ASSERT(map_add(&names->nodes, folded, node));
    return 0;
}

/* One step down, into an existing or a new folder. */
static int step_into(struct unpack_names *names, struct str path, struct str folded,
                     struct err *err)
{
    const struct unpack_node *node;
    if (find_alike(names, path, folded, &node, err) < 0) {
        return -1;
    }
    if (!node) {
        names->new_ends[names->n_new++] = (uint32_t)path.len;
        return add_node(names, (struct unpack_node){.path = path, .type = UNPACK_FOLDER}, folded,
                        err);
    }
    return node->type == UNPACK_FOLDER
               ? 0
               : err_set(err, ERR_INTEGRITY, "it lies below \"%.*s\", which is a %s",
                         SHOWN(str_sub(path, str_rcut(path, 0, "/").len, SIZE_MAX)),
                         TYPE_NAMES[node->type]);
}

static int check_hardlink(const struct unpack_names *names, struct str target, struct err *err)
{
    const struct unpack_node *node = find_node(names, target);
    return node && node->type != UNPACK_FOLDER && node->type != UNPACK_SYMLINK
               ? 0
               : err_set(err, ERR_INTEGRITY,
                         "a hard link to \"%.*s\", which is not an earlier file", SHOWN(target));
}

/* What can be checked of a symlink's text before all names are known. */
static int check_symlink(struct str link, struct str target, struct err *err)
{
    struct str rest = target, part;
    size_t depth = 0; /* folders above the link */
    for (size_t at = 0; at < link.len; at++) {
        depth += link.ptr[at] == '/';
    }
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
        if (!str_eq_z(part, "..")) {
            depth += part.len > 0 && !str_eq_z(part, ".");
        } else if (depth-- == 0) {
            return err_set(err, ERR_INTEGRITY, "a symlink that leads outside: \"%.*s\"",
                           SHOWN(target));
        }
    }
    return 0;
}

int unpack_names_add(struct unpack_names *names, struct str path, enum unpack_type type,
                     struct str target, bool *ret_is_new, struct err *err)
{
    const struct unpack_node *node;
    names->n_new = 0;
    ASSERT(path.len > 0);
    if ((type == UNPACK_HARDLINK && check_hardlink(names, target, err) < 0) ||
        (type == UNPACK_SYMLINK && check_symlink(path, target, err) < 0)) {
        return -1;
    }
    const struct str own = str_dup(&names->arena, path), folded = fold(&names->arena, path);
    for (size_t end = 0; end < path.len; end++) {
        if (path.ptr[end] == '/' &&
            step_into(names, str_sub(own, 0, end), str_sub(folded, 0, end), err) < 0) {
            return -1;
        }
    }
    if (find_alike(names, own, folded, &node, err) < 0) {
        return -1;
    }
    *ret_is_new = !node;
    if (!node) {
        target = type == UNPACK_SYMLINK ? str_dup(&names->arena, target) : STR_EMPTY;
        return add_node(names, (struct unpack_node){own, target, type}, folded, err);
    }
    if (type == UNPACK_FOLDER && node->type == UNPACK_FOLDER) {
        return 0;
    }
    return type == UNPACK_FOLDER || node->type == UNPACK_FOLDER
               ? err_set(err, ERR_INTEGRITY, "a %s in place of a %s", TYPE_NAMES[type],
                         TYPE_NAMES[node->type])
               : err_set(err, ERR_INTEGRITY, "it occurs twice");
}

/* Where the symlink leads, from real folder to real folder; returns a text for people if it is not allowed to. */
static const char *judge_link(const struct unpack_names *names, const struct unpack_node *link)
{
    CLEANUP(strbuf) struct strbuf path = STRBUF((size_t)2 * UNPACK_PATH_MAX);
    struct str rest = link->target, part;
    enum unpack_type type = UNPACK_FOLDER;
    strbuf_add_str(&path, str_rcut(link->path, 0, "/"));
    while (str_next(&rest, '/', &part)) {
        if (part.len == 0 || str_eq_z(part, ".")) {
            continue;
        }
        if (type != UNPACK_FOLDER) {
            return type == UNPACK_SYMLINK ? "leads through another symlink"
                                          : "leads through a file";
        }
        if (str_eq_z(part, "..")) {
            if (path.len == 0) {
                return "leads outside";
            }
            path.len = str_rcut(str_sub(strbuf_str(&path), 0, path.len - 1), 0, "/").len;
            continue;
        }
        strbuf_add_str(&path, part);
        const struct unpack_node *node = find_node(names, strbuf_str(&path));
        if (!node) {
            return "leads to nothing in the archive";
        }
        type = node->type;
        strbuf_add_char(&path, '/');
    }
    return type == UNPACK_SYMLINK  ? "leads to another symlink"
           : type == UNPACK_FOLDER ? "leads to a folder: its files would occur twice"
                                   : NULL;
}

int unpack_names_check_links(const struct unpack_names *names, struct err *err)
{
    for (size_t idx = 0; idx < names->nodes.n; idx++) {
        const struct unpack_node *node = names->nodes.entries[idx].value;
        const char *fault = node->type == UNPACK_SYMLINK ? judge_link(names, node) : NULL;
        if (fault) {
            return err_set(err, ERR_INTEGRITY, "symlink \"%.*s\" to \"%.*s\" %s", SHOWN(node->path),
                           SHOWN(node->target), fault);
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
