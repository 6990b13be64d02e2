/* SPDX-License-Identifier: Apache-2.0 */
/* Log formats of the places that load/places.h names. */
#include "base/base.h"

#include "load/load.h"

#include "base/nearest.h"
#include "load/places.h"
#include "report/vocabulary.h"

#define KIND   "formats"
#define SUFFIX ".json"

static int read_format(struct arena *arena, const struct vocabulary *vocabulary,
                       const struct placed *file, struct format **ret_format, struct err *err)
{
    CLEANUP(arena) struct arena own = ARENA_EMPTY;
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct str id = str_of(file->stem);
    struct str text;
    if (json_read_text(&own, file->path, &text, err) < 0 ||
        json_parse(text, file->path, &doc, err) < 0) {
        return -1;
    }
    doc.root.context = vocabulary;
    if (format_read(&doc.root, arena, ret_format, err) < 0) {
        return -1;
    }
    if (!str_eq((*ret_format)->id, id)) {
        id = (*ret_format)->id;
        int status =
            json_fail(&doc.root, err, "expected id \"%s\" as the file is named, found \"%.*s\"",
                      file->stem, STR_ARG(id));
        format_release(*ret_format);
        return status;
    }
    return 0;
}

/* File names are not in the order of ids: "a-b.json" comes before "a.json". */
static int compare_ids(const void *a, const void *b)
{
    return str_cmp((*(struct format *const *)a)->id, (*(struct format *const *)b)->id);
}

int load_formats(struct arena *arena, const char *root, struct format_set *ret_set, struct err *err)
{
    const struct vocabulary *vocabulary;
    struct placed_list files;
    struct format_set set = {0};
    if (load_vocabulary(arena, root, &vocabulary, err) < 0 ||
        places_list(arena, root, KIND, FORMATS_MAX, &files, err) < 0) {
        return -1;
    }
    set.items = arena_array(arena, struct format *, FORMATS_MAX);
    for (size_t idx = 0; idx < files.n; idx++) {
        if (read_format(arena, vocabulary, &files.items[idx], &set.items[idx], err) < 0) {
            format_set_release(&set);
            return -1;
        }
        set.n++;
    }
    qsort(set.items, set.n, sizeof(set.items[0]), compare_ids);
    *ret_set = set;
    return 0;
}

int load_format(struct arena *arena, const char *root, const char *id, struct format_set *ret_set,
                struct err *err)
{
    struct format_set set = {arena_array(arena, struct format *, 1), 0};
    const struct vocabulary *vocabulary;
    struct places places;
    if (load_vocabulary(arena, root, &vocabulary, err) < 0 ||
        places_find(arena, root, &places, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; set.n == 0 && !strchr(id, '/') && id[0] != '.' && idx < places.n; idx++) {
        struct placed file = {.stem = id};
        file.path = arena_printf(arena, "%s/" KIND "/%s" SUFFIX, places.items[idx], id);
        if (!fs_exists(file.path)) {
            continue;
        }
        if (read_format(arena, vocabulary, &file, &set.items[0], err) < 0) {
            return -1;
        }
        set.n = 1;
    }
    *ret_set = set;
    return 0;
}

int load_rule(struct arena *arena, const char *root, struct str id, struct format_set *ret_set,
              const struct rule **ret_rule, struct err *err)
{
    if (load_format(arena, root, str_z(arena, rule_id_format(id)), ret_set, err) < 0) {
        return -1;
    }
    *ret_rule = ret_set->n ? format_rule(ret_set->items[0], id) : NULL;
    return *ret_rule ? 0
                     : err_set(err, ERR_MANIFEST, "no rule %.*s in manifests/formats", STR_ARG(id));
}

int load_format_text(struct arena *arena, const char *root, struct str text, const char *name,
                     struct format_set *ret_set, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    const struct vocabulary *vocabulary;
    struct format_set set = {arena_array(arena, struct format *, 1), 1};
    if (load_vocabulary(arena, root, &vocabulary, err) < 0 ||
        json_parse(text, name, &doc, err) < 0) {
        return -1;
    }
    doc.root.context = vocabulary;
    if (format_read(&doc.root, arena, &set.items[0], err) < 0) {
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
        return err_set(err, ERR_NOT_FOUND, "%s: no such file", path);
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

bool load_is_format_file(const char *named)
{
    return strchr(named, '/') || str_ends(str_of(named), STR_LIT(SUFFIX));
}

int load_format_named(struct arena *arena, const char *root, const char *named,
                      struct format_set *ret_set, struct err *err)
{
    struct nearest nearest = nearest_to(named);
    struct placed_list files;
    char text[NEAREST_TEXT_MAX];
    if (load_is_format_file(named)) {
        return load_format_file(arena, root, named, ret_set, err);
    }
    if (load_format(arena, root, named, ret_set, err) < 0 ||
        (ret_set->n == 0 && places_list(arena, root, KIND, FORMATS_MAX, &files, err) < 0)) {
        return -1;
    }
    for (size_t idx = 0; ret_set->n == 0 && idx < files.n; idx++) {
        nearest_offer(&nearest, files.items[idx].stem);
    }
    return ret_set->n
               ? 0
               : err_set(err, ERR_USAGE, "no format \"%.60s\"%s; `reperf list formats` names them",
                         named, nearest_text(&nearest, text));
}
