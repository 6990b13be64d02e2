/* SPDX-License-Identifier: Apache-2.0 */
/* Reports from manifests/reports below the data folder. */
#include "base/base.h"

#include "load/load.h"

#include "base/fs.h"
#include "base/nearest.h"

#define REPORTS_FOLDER "manifests/reports"
#define SUFFIX         ".json"

static const char *below_of(struct arena *arena, struct str id)
{
    return arena_printf(arena, REPORTS_FOLDER "/%.*s" SUFFIX, STR_ARG(id));
}

int load_vocabulary(struct arena *arena, const char *root, const struct vocabulary **ret,
                    struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    const char *path = fs_join(arena, root, VOCABULARY_FILE);
    struct json at;
    if (!fs_exists(path)) {
        *ret = vocabulary_builtin(arena);
        return 0;
    }
    if (json_read_file(path, &doc, err) < 0) {
        return -1;
    }
    at = json_root(&doc);
    return vocabulary_decode(&at, arena, ret, err);
}

/* One that lies in manifests/reports is named after its id, and messages name it below the data folder. */
int load_report_decode(struct arena *arena, const struct report_file *file,
                       struct report *ret_report, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    const struct vocabulary *vocabulary;
    struct json root;
    if (json_parse(file->text, file->path, &doc, err) < 0) {
        return -1;
    }
    if (load_vocabulary(arena, file->root, &vocabulary, err) < 0) {
        return -1;
    }
    doc.context = vocabulary;
    root = json_root(&doc);
    if (report_decode(&root, arena, ret_report, err) < 0) {
        return -1;
    }
    if (file->id.ptr && !str_eq(ret_report->id, file->id)) {
        return err_set(err, ERR_MANIFEST,
                       "%s:$.id: expected \"%.*s\" as the file is named, found \"%s\"",
                       below_of(arena, file->id), STR_ARG(file->id), ret_report->id.ptr);
    }
    ret_report->path = str_of(file->id.ptr ? below_of(arena, file->id) : file->path);
    return 0;
}

static int read_stored(struct arena *arena, const char *root, const char *name,
                       struct report_file *ret_file, struct err *err)
{
    struct str id = str_sub(str_of(name), 0, strlen(name) - strlen(SUFFIX));
    *ret_file = (struct report_file){
        .path = fs_join(arena, root, below_of(arena, id)), .root = root, .id = id};
    return json_read_text(arena, ret_file->path, &ret_file->text, err);
}

static int list_files(struct arena *arena, const char *root, struct fs_names *ret, struct err *err)
{
    size_t n = 0;
    if (fs_list(arena, fs_join(arena, root, REPORTS_FOLDER), ret, err) < 0) {
        err->code = ERR_MANIFEST;
        return -1;
    }
    for (size_t idx = 0; idx < ret->n; idx++) {
        if (str_ends(str_of(ret->items[idx]), STR_LIT(SUFFIX)) && ret->items[idx][0] != '.') {
            ret->items[n++] = ret->items[idx];
        }
    }
    ret->n = n;
    return n <= REPORTS_MAX ? 0
                            : err_set(err, ERR_MANIFEST, "%s: %zu reports, expected at most %d",
                                      REPORTS_FOLDER, n, REPORTS_MAX);
}

int load_report_file(struct arena *arena, const char *root, const char *name,
                     struct report_file *ret_file, struct err *err)
{
    struct fs_names files = {0};
    struct nearest nearest = nearest_to(name);
    char text[NEAREST_TEXT_MAX];
    size_t len = strlen(name);
    if (strchr(name, '/') || str_ends(str_of(name), STR_LIT(SUFFIX))) {
        *ret_file = (struct report_file){.path = name, .root = root};
        if (!fs_exists(name)) {
            return err_set(err, ERR_NOT_FOUND, "%s: no such report", name);
        }
        return json_read_text(arena, name, &ret_file->text, err);
    }
    if (list_files(arena, root, &files, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < files.n; idx++) {
        if (strncmp(files.items[idx], name, len) == 0 &&
            strcmp(files.items[idx] + len, SUFFIX) == 0) {
            return read_stored(arena, root, files.items[idx], ret_file, err);
        }
        nearest_offer(&nearest, arena_strndup(arena, files.items[idx],
                                              strlen(files.items[idx]) - strlen(SUFFIX)));
    }
    return err_set(err, ERR_NOT_FOUND,
                   "no report \"%.100s\" in %s%s; reperf list reports names them", name,
                   fs_join(arena, root, REPORTS_FOLDER), nearest_text(&nearest, text));
}

int load_report(struct arena *arena, const char *root, const char *name, struct report *ret_report,
                struct err *err)
{
    struct report_file file;
    return load_report_file(arena, root, name, &file, err) < 0
               ? -1
               : load_report_decode(arena, &file, ret_report, err);
}

/* File names are not in the order of ids: "a-b.json" comes before "a.json". */
static int compare_ids(const void *a, const void *b)
{
    return str_cmp(((const struct report *)a)->id, ((const struct report *)b)->id);
}

int load_all_reports(struct arena *arena, const char *root, struct report_set *ret_set,
                     struct err *err)
{
    struct fs_names files = {0};
    struct report_set set = {0};
    if (list_files(arena, root, &files, err) < 0) {
        return -1;
    }
    if (files.n == 0) {
        return err_set(err, ERR_MANIFEST, "%s: expected reports, found none",
                       fs_join(arena, root, REPORTS_FOLDER));
    }
    set.items = arena_array(arena, struct report, files.n + 1);
    for (; set.n < files.n; set.n++) {
        struct report_file file;
        if (read_stored(arena, root, files.items[set.n], &file, err) < 0 ||
            load_report_decode(arena, &file, &set.items[set.n], err) < 0) {
            return -1;
        }
    }
    qsort(set.items, set.n, sizeof(set.items[0]), compare_ids);
    *ret_set = set;
    return 0;
}
