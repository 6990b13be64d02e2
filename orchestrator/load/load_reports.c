/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of the places that load/places.h names. */
#include "base/base.h"

#include "load/load.h"

#include "base/nearest.h"
#include "load/places.h"

#define KIND           "reports"
#define REPORTS_FOLDER "manifests/reports"
#define SUFFIX         ".json"

/* How messages name it: the program's own relative to the data folder, others by their path. */
static const char *said_of(struct arena *arena, const struct report_file *file)
{
    return file->id.ptr && !file->place
               ? arena_printf(arena, REPORTS_FOLDER "/%.*s" SUFFIX, STR_ARG(file->id))
               : file->path;
}

int load_vocabulary(struct arena *arena, const char *root, const struct vocabulary **ret,
                    struct err *err)
{
    CLEANUP(arena) struct arena own = ARENA_EMPTY;
    CLEANUP(json_doc) struct json_doc doc = {0};
    const char *path = fs_join(arena, root, VOCABULARY_FILE);
    struct str text = vocabulary_builtin_text();
    if (fs_exists(path) && json_read_text(&own, path, &text, err) < 0) {
        return -1;
    }
    if (str_eq(text, vocabulary_builtin_text())) {
        *ret = vocabulary_builtin(arena);
        return 0;
    }
    return json_parse(text, path, &doc, err) < 0 ? -1
                                                 : vocabulary_decode(&doc.root, arena, ret, err);
}

/* One that lies in a place is named after its id. */
int load_report_decode(struct arena *arena, const struct report_file *file,
                       struct report *ret_report, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    const struct vocabulary *vocabulary = file->vocabulary;
    if (json_parse(file->text, file->path, &doc, err) < 0 ||
        (!vocabulary && load_vocabulary(arena, file->root, &vocabulary, err) < 0)) {
        return -1;
    }
    doc.root.context = vocabulary;
    if (report_decode(&doc.root, arena, ret_report, err) < 0) {
        return report_fail_there(&file->spelled, err);
    }
    if (file->id.ptr && !str_eq(ret_report->id, file->id)) {
        return err_set(err, ERR_MANIFEST,
                       "%s:$.id: expected \"%.*s\" as the file is named, found \"%s\"",
                       said_of(arena, file), STR_ARG(file->id), ret_report->id.ptr);
    }
    ret_report->path = str_of(said_of(arena, file));
    ret_report->place = str_of(file->place);
    return 0;
}

static int read_text(struct arena *arena, struct report_file *file, struct err *err)
{
    struct str text;
    if (json_read_text(arena, file->path, &text, err) < 0 ||
        report_spell_out(arena, text, file->path, &file->spelled, err) < 0) {
        return -1;
    }
    file->text = file->spelled.text;
    return 0;
}

/* The program's own are named relative to the data folder, others by their path. */
static int read_stored(struct arena *arena, const char *root, const struct placed *at,
                       struct report_file *ret_file, struct err *err)
{
    *ret_file = (struct report_file){.path = at->path,
                                     .root = root,
                                     .id = str_of(at->stem),
                                     .place = at->is_own ? at->place : NULL};
    return read_text(arena, ret_file, err);
}

/* Of "PLACE/reports/ID.json", the place; of another path, NULL. */
static const char *place_of(struct arena *arena, const char *path)
{
    struct str folder = str_of(path);
    folder = str_rcut(folder, 0, "/");
    return str_ends(folder, STR_LIT("/" KIND "/"))
               ? str_z(arena, str_sub(folder, 0, folder.len - strlen("/" KIND "/")))
               : NULL;
}

int load_report_file(struct arena *arena, const char *root, const char *name,
                     struct report_file *ret_file, struct err *err)
{
    struct placed_list files;
    struct places places;
    struct nearest nearest = nearest_to(name);
    char text[NEAREST_TEXT_MAX];
    if (strchr(name, '/') || str_ends(str_of(name), STR_LIT(SUFFIX))) {
        *ret_file =
            (struct report_file){.path = name, .root = root, .place = place_of(arena, name)};
        if (!fs_exists(name)) {
            return err_set(err, ERR_NOT_FOUND, "%s: no such report", name);
        }
        return read_text(arena, ret_file, err);
    }
    if (places_find(arena, root, &places, err) < 0 ||
        places_list(arena, root, KIND, REPORTS_MAX, &files, err) < 0) {
        return -1;
    }
    const struct placed *found = placed_find(&files, str_of(name));
    if (found) {
        return read_stored(arena, root, found, ret_file, err);
    }
    for (size_t idx = 0; idx < files.n; idx++) {
        nearest_offer(&nearest, files.items[idx].stem);
    }
    return err_set(err, ERR_NOT_FOUND,
                   "no report \"%.100s\" in %.300s%s; reperf list reports names them", name,
                   places_said(arena, &places, KIND), nearest_text(&nearest, text));
}

int load_report(struct arena *arena, const char *root, const char *name, struct report *ret_report,
                struct err *err)
{
    struct report_file file;
    return load_report_file(arena, root, name, &file, err) < 0
               ? -1
               : load_report_decode(arena, &file, ret_report, err);
}

int load_all_reports(struct arena *arena, const char *root, struct report_set *ret_set,
                     struct err *err)
{
    struct placed_list files;
    struct report_set set = {0};
    const struct vocabulary *vocabulary;
    if (places_list(arena, root, KIND, REPORTS_MAX, &files, err) < 0) {
        return -1;
    }
    if (files.n == 0) {
        return err_set(err, ERR_MANIFEST, "%s: expected reports, found none",
                       fs_join(arena, root, REPORTS_FOLDER));
    }
    if (load_vocabulary(arena, root, &vocabulary, err) < 0) {
        return -1;
    }
    set.items = arena_array(arena, struct report, files.n + 1);
    for (; set.n < files.n; set.n++) {
        struct report_file file;
        if (read_stored(arena, root, &files.items[set.n], &file, err) < 0) {
            return -1;
        }
        file.vocabulary = vocabulary;
        if (load_report_decode(arena, &file, &set.items[set.n], err) < 0) {
            return -1;
        }
    }
    qsort(set.items, set.n, sizeof(set.items[0]), str_cmp_first);
    *ret_set = set;
    return 0;
}

int load_reports_of(struct arena *arena, const char *root, const struct opt_list *names,
                    bool is_all, struct report_set *ret_set, struct err *err)
{
    struct report_set set = {0};
    if (is_all == (names->n > 0)) {
        return err_set(err, ERR_USAGE, "%s",
                       is_all ? "either reports or --all" : "name a report, or --all");
    }
    if (is_all) {
        return load_all_reports(arena, root, ret_set, err);
    }
    set.items = arena_array(arena, struct report, names->n);
    for (; set.n < names->n; set.n++) {
        if (load_report(arena, root, names->items[set.n], &set.items[set.n], err) < 0) {
            return -1;
        }
    }
    *ret_set = set;
    return 0;
}
