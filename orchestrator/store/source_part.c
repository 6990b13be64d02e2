/* SPDX-License-Identifier: Apache-2.0 */
/* A part of a commit: some of its files and folders. All its trees exist, so that it is known what is left out; of its blobs,
   only those of the part. */
#include "base/base.h"

#include "store/source_impl.h"

#include "base/fs.h"
#include "base/temp.h"
#include "report/source.h"

#define LISTING_MAX (4 * (size_t)GIT_OUTPUT_MAX)
#define ENTRY_SUB   "160000 "
#define GITMODULES  ".gitmodules"

/* "MODE TYPE HEX\tPATH" */
static bool split_entry(struct str entry, struct str *ret_hex, struct str *ret_path)
{
    int64_t tab = str_find(entry, STR_LIT("\t"));
    if (tab < SOURCE_COMMIT_HEX) {
        return false;
    }
    *ret_hex = str_sub(entry, (size_t)tab - SOURCE_COMMIT_HEX, SOURCE_COMMIT_HEX);
    *ret_path = str_sub(entry, (size_t)tab + 1, entry.len);
    return true;
}

static int64_t path_of(const struct source_pin *pin, struct str path)
{
    for (size_t idx = 0; idx < pin->n; idx++) {
        if (source_lies_in(path, pin->items[idx])) {
            return (int64_t)idx;
        }
    }
    return -1;
}

static int check_selection(const struct source_part *part, const struct source_pin *pin,
                           const bool *is_found, bool has_submodule, struct err *err)
{
    for (size_t idx = 0; idx < pin->n; idx++) {
        if (!is_found[idx]) {
            return err_set(err, ERR_MANIFEST, "%.200s at %.12s has no %.*s", part->url,
                           part->commit, STR_ARG(str_sub(pin->items[idx], 0, 200)));
        }
    }
    return part->paths && has_submodule && path_of(pin, STR_LIT(GITMODULES)) < 0
               ? err_set(err, ERR_MANIFEST,
                         "%.200s: the paths have a submodule: where it is says " GITMODULES
                         ", which must be one of them",
                         part->url)
               : 0;
}

static int select_files(struct sources *sources, struct source_part *part, struct err *err)
{
    CLEANUP(strbuf) struct strbuf all = STRBUF(LISTING_MAX);
    CLEANUP(strbuf) struct strbuf kept = STRBUF(LISTING_MAX);
    struct arena *arena = sources->git.arena;
    struct source_pin pin = {0};
    struct str entry, hex, path;
    bool is_found[SOURCE_PATHS_MAX] = {0};
    bool has_submodule = false;
    if ((part->paths &&
         source_parse_pin(arena, arena_printf(arena, "%s:%s", part->commit, part->paths), &pin,
                          err) < 0) ||
        git_must(&sources->git,
                 &(struct git_call){
                     .git_dir = part->repo,
                     .args = GIT_ARGS("ls-tree", "-r", "-z", "--full-tree", part->commit)},
                 &all, ERR_INTEGRITY, err) < 0) {
        return -1;
    }
    part->n_files = part->n_all = 0;
    struct str rest = strbuf_str(&all);
    while (str_next(&rest, '\0', &entry)) {
        if (!split_entry(entry, &hex, &path)) {
            continue; /* what comes after the last NUL */
        }
        int64_t at = path_of(&pin, path);
        part->n_all++;
        if (part->paths && at < 0) {
            continue;
        }
        is_found[part->paths ? at : 0] = true;
        has_submodule |= str_starts(entry, STR_LIT(ENTRY_SUB));
        part->n_files++;
        strbuf_add(&kept, entry.ptr, entry.len + 1);
    }
    part->entries = str_dup(arena, strbuf_str(&kept));
    return check_selection(part, &pin, is_found, has_submodule, err);
}

int source_put_index(struct sources *sources, const struct source_part *part, const char *tmp,
                     const char **ret_index, struct err *err)
{
    const char *list = part->paths ? fs_join(sources->git.arena, tmp, "entries") : NULL;
    const struct git_call call = {.git_dir = part->repo,
                                  .index_path = fs_join(sources->git.arena, tmp, "new-index"),
                                  .input_path = list,
                                  .args = list ? GIT_ARGS("update-index", "-z", "--index-info")
                                               : GIT_ARGS("read-tree", part->commit)};
    *ret_index = call.index_path;
    if (list && fs_write_atomic(list, part->entries, err) < 0) {
        return -1;
    }
    return git_must(&sources->git, &call, NULL, ERR_INTEGRITY, err);
}

/* write-tree looks for each blob. Its trees go where nobody keeps them. */
int source_find_selection(struct sources *sources, struct source_part *part, struct err *err)
{
    struct git_call call = {.git_dir = part->repo, .args = GIT_ARGS("write-tree")};
    CLEANUP(temp) struct temp *tmp = NULL;
    if (select_files(sources, part, err) < 0 || source_make_tmp(sources, &tmp, err) < 0) {
        return -1;
    }
    call.new_objects = tmp->path;
    int result = source_put_index(sources, part, tmp->path, &call.index_path, err);
    result = result < 0 ? result : git_hex(&sources->git, &call, &part->selection, err);
    return result < 0 ? err_wrap(err, "part of %.100s at %.12s", part->url, part->commit) : 0;
}

int source_list_blobs(const struct source_part *part, const char *path, struct err *err)
{
    CLEANUP(strbuf) struct strbuf ids = STRBUF(LISTING_MAX);
    struct str rest = part->entries, entry, hex, name;
    while (str_next(&rest, '\0', &entry)) {
        if (split_entry(entry, &hex, &name) && !str_starts(entry, STR_LIT(ENTRY_SUB))) {
            strbuf_printf(&ids, "%.*s\n", STR_ARG(hex));
        }
    }
    return fs_write_atomic(path, strbuf_str(&ids), err);
}

/* --- submodules --------------------------------------------------------------------------------------------------- */

/* The value of a key in "KEY\nVALUE\0"...; or, with value, the key that ends so and has it. */
static struct str find_config(struct str config, struct str key, struct str value)
{
    struct str entry, found = STR_EMPTY;
    while (str_next(&config, '\0', &entry)) {
        struct str name;
        if (str_next(&entry, '\n', &name) &&
            (value.ptr ? str_ends(name, key) && str_eq(entry, value) : str_eq(name, key))) {
            found = value.ptr ? name : entry;
        }
    }
    return found;
}

/* The path stands as submodule.NAME.path, and the address as submodule.NAME.url. */
static const char *find_url(struct arena *arena, struct str config, struct str path)
{
    struct str key = find_config(config, STR_LIT(".path"), path);
    if (!key.len) {
        return NULL;
    }
    key = str_printf(arena, "%.*surl", STR_ARG(str_sub(key, 0, key.len - strlen("path"))));
    struct str url = find_config(config, key, STR_EMPTY);
    return url.len ? str_z(arena, url) : NULL;
}

int source_gitlinks(struct sources *sources, const struct source_part *part,
                    struct source_tree *tree, struct err *err)
{
    CLEANUP(strbuf) struct strbuf config = STRBUF(GIT_OUTPUT_MAX);
    struct arena *arena = sources->git.arena;
    struct source_part selected = *part;
    struct git_result ignored; /* the file may not be there */
    struct str entry, hex, path;
    const struct git_call call = {
        .git_dir = part->repo,
        .args = GIT_ARGS("config", "--blob", arena_printf(arena, "%s:" GITMODULES, part->commit),
                         "-z", "--get-regexp", "^submodule\\..*\\.(path|url)$")};
    if ((!part->entries.ptr && select_files(sources, &selected, err) < 0) ||
        git_run(&sources->git, &call, &config, &ignored, err) < 0) {
        return -1;
    }
    struct str rest = selected.entries;
    while (str_next(&rest, '\0', &entry)) {
        if (!str_starts(entry, STR_LIT(ENTRY_SUB)) || !split_entry(entry, &hex, &path)) {
            continue;
        }
        if (tree->n == SOURCE_PARTS_MAX || part->depth == SOURCE_DEPTH_MAX) {
            return err_set(err, ERR_INTEGRITY,
                           "%.200s has more than %d submodules, or more than %d inside each other",
                           tree->parts[0].url, SOURCE_PARTS_MAX, SOURCE_DEPTH_MAX);
        }
        tree->parts[tree->n++] = (struct source_part){
            .path = strcmp(part->path, ".") == 0 ? str_z(arena, path)
                                                 : fs_join(arena, part->path, str_z(arena, path)),
            .commit = str_z(arena, hex),
            .url = find_url(arena, strbuf_str(&config), path),
            .depth = part->depth + 1};
    }
    return 0;
}
