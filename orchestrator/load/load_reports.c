/* SPDX-License-Identifier: Apache-2.0 */
/* Reports from manifests/reports below the data folder. */
#include "base/base.h"

#include "load/load.h"

#include "base/fs.h"

#define REPORTS_FOLDER "manifests/reports"
#define SUFFIX         ".json"

static int read_report(struct arena *arena, const char *path, struct report *ret_report,
                       struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct json root;
    if (json_read_file(path, &doc, err) < 0) {
        return -1;
    }
    root = json_root(&doc);
    return report_decode(&root, arena, ret_report, err);
}

/* A report that lies in manifests/reports: its file is named after its id, and messages name it below the data folder. */
static int read_stored(struct arena *arena, const char *root, const char *file,
                       struct report *ret_report, struct err *err)
{
    const char *below = fs_join(arena, REPORTS_FOLDER, file);
    struct str stem = str_sub(str_of(file), 0, strlen(file) - strlen(SUFFIX));
    if (read_report(arena, fs_join(arena, root, below), ret_report, err) < 0) {
        return -1;
    }
    if (!str_eq(ret_report->id, stem)) {
        return err_set(err, ERR_MANIFEST,
                       "%s:$.id: expected \"%.*s\" as the file is named, found \"%s\"", below,
                       STR_ARG(stem), ret_report->id.ptr);
    }
    ret_report->path = str_of(below);
    return 0;
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

int load_report(struct arena *arena, const char *root, const char *name, struct report *ret_report,
                struct err *err)
{
    struct fs_names files = {0};
    if (strchr(name, '/') || str_ends(str_of(name), STR_LIT(SUFFIX))) {
        return read_report(arena, name, ret_report, err);
    }
    if (list_files(arena, root, &files, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < files.n; idx++) {
        size_t len = strlen(name);
        if (strncmp(files.items[idx], name, len) == 0 &&
            strcmp(files.items[idx] + len, SUFFIX) == 0) {
            return read_stored(arena, root, files.items[idx], ret_report, err);
        }
    }
    return err_set(err, ERR_MANIFEST, "no report \"%.100s\" in %s; reperf list reports names them",
                   name, fs_join(arena, root, REPORTS_FOLDER));
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
        if (read_stored(arena, root, files.items[set.n], &set.items[set.n], err) < 0) {
            return -1;
        }
    }
    qsort(set.items, set.n, sizeof(set.items[0]), compare_ids);
    *ret_set = set;
    return 0;
}
