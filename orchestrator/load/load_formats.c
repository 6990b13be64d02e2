/* SPDX-License-Identifier: Apache-2.0 */
/* Log formats of the places that load/places.h names. */
#include "base/base.h"

#include "load/load.h"

#include "load/places.h"

#define KIND   "formats"
#define SUFFIX ".json"

struct from { /* with which words formats are read */
    const struct vocabulary *vocabulary;
};

static int read_format(struct arena *arena, const struct from *from, const struct placed *file,
                       struct format **ret_format, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct json at;
    if (json_read_file(file->path, &doc, err) < 0) {
        return -1;
    }
    doc.context = from->vocabulary;
    at = json_root(&doc);
    if (format_decode(&at, arena, ret_format, err) < 0) {
        return -1;
    }
    if (!str_eq_z(format_id(*ret_format), file->stem)) {
        struct str id = format_id(*ret_format);
        int status = json_fail(&at, err, "expected id \"%s\" as the file is named, found \"%.*s\"",
                               file->stem, STR_ARG(id));
        format_release(*ret_format);
        return status;
    }
    return 0;
}

/* File names are not in the order of ids: "a-b.json" comes before "a.json". */
static int compare_ids(const void *a, const void *b)
{
    return str_cmp(format_id(*(struct format *const *)a), format_id(*(struct format *const *)b));
}

int load_formats(struct arena *arena, const char *root, struct format_set *ret_set, struct err *err)
{
    struct placed_list files;
    struct format_set set = {0};
    struct from from = {0};
    if (load_vocabulary(arena, root, &from.vocabulary, err) < 0 ||
        places_list(arena, root, KIND, FORMATS_MAX, &files, err) < 0) {
        return -1;
    }
    set.items = arena_array(arena, struct format *, FORMATS_MAX);
    for (; set.n < files.n; set.n++) {
        if (read_format(arena, &from, &files.items[set.n], &set.items[set.n], err) < 0) {
            format_set_release(&set);
            return -1;
        }
    }
    qsort(set.items, set.n, sizeof(set.items[0]), compare_ids);
    *ret_set = set;
    return 0;
}

int load_format(struct arena *arena, const char *root, const char *id, struct format_set *ret_set,
                struct err *err)
{
    struct format_set set = {arena_array(arena, struct format *, 1), 0};
    struct from from = {0};
    struct places places;
    if (load_vocabulary(arena, root, &from.vocabulary, err) < 0 ||
        places_find(arena, root, &places, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; set.n == 0 && !strchr(id, '/') && id[0] != '.' && idx < places.n; idx++) {
        struct placed file = {.stem = id};
        file.path = arena_printf(arena, "%s/" KIND "/%s" SUFFIX, places.items[idx], id);
        if (!fs_exists(file.path)) {
            continue;
        }
        if (read_format(arena, &from, &file, &set.items[0], err) < 0) {
            return -1;
        }
        set.n = 1;
    }
    *ret_set = set;
    return 0;
}

int load_format_text(struct arena *arena, const char *root, struct str text, const char *name,
                     struct format_set *ret_set, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    const struct vocabulary *vocabulary;
    struct format_set set = {arena_array(arena, struct format *, 1), 1};
    struct json at;
    if (load_vocabulary(arena, root, &vocabulary, err) < 0 ||
        json_parse(text, name, &doc, err) < 0) {
        return -1;
    }
    doc.context = vocabulary;
    at = json_root(&doc);
    if (format_decode(&at, arena, &set.items[0], err) < 0) {
        return -1;
    }
    *ret_set = set;
    return 0;
}

int load_format_file(struct arena *arena, const char *root, const char *path,
                     struct format_set *ret_set, struct err *err)
{
    struct str text;
    if (!fs_exists(path)) {
        return err_set(err, ERR_NOT_FOUND, "%s: no such format", path);
    }
    return json_read_text(arena, path, &text, err) < 0
               ? -1
               : load_format_text(arena, root, text, path, ret_set, err);
}

void format_set_release(struct format_set *set)
{
    for (size_t idx = 0; idx < set->n; idx++) {
        format_release(set->items[idx]);
    }
    set->n = 0;
}
