/* SPDX-License-Identifier: Apache-2.0 */
/* A part of a commit: some of its files and folders. All its trees exist, so that it is known what is left out; of its blobs, only
   those of the part. */
#include "base/base.h"

#include "store/source_impl.h"

#include "base/fs.h"
#include "base/temp.h"
#include "report/source.h"

#define LISTING_MAX  (4 * (size_t)GIT_OUTPUT_MAX)
#define ENTRY_SUB    "160000 "
#define GITMODULES   ".gitmodules"
#define FETCH_MAX_NS (6LL * 3600 * NS_PER_S)

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

int source_select(struct sources *sources, struct source_part *part, struct err *err)
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
    if (source_select(sources, part, err) < 0 || source_make_tmp(sources, &tmp, err) < 0) {
        return -1;
    }
    call.new_objects = tmp->path;
    int result = source_put_index(sources, part, tmp->path, &call.index_path, err);
    result = result < 0 ? result : git_hex(&sources->git, &call, &part->selection, err);
    return result < 0 ? err_wrap(err, "part of %.100s at %.12s", part->url, part->commit) : 0;
}

const char *source_upload_pack(struct arena *arena, const char *url)
{
    /* For a local repository we decide what it provides; otherwise its server does. */
    return strncmp(url, "file:", 5) == 0
               ? arena_printf(arena, "--upload-pack=git -c safe.directory=* -c "
                                     "uploadpack.allowFilter=true -c "
                                     "uploadpack.allowAnySHA1InWant=true upload-pack")
               : "--quiet";
}

static int list_blobs(const struct source_part *part, const char *path, struct err *err)
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

int source_fetch_blobs(struct sources *sources, const char *url, struct source_part *part,
                       struct git_result *ret_result, struct err *err)
{
    struct err absent = {0};
    CLEANUP(temp) struct temp *tmp = NULL;
    struct git_call call = {.git_dir = part->repo,
                            .part_of = url,
                            .args = GIT_ARGS("fetch", "--quiet", "--no-tags",
                                             "--no-write-fetch-head", "--filter=blob:none",
                                             source_upload_pack(sources->git.arena, url), "--stdin",
                                             "--", "part"),
                            .deadline_ns = FETCH_MAX_NS};
    *ret_result = (struct git_result){0};
    if (source_find_selection(sources, part, &absent) == 0) {
        return 0; /* from a server without filters */
    }
    if (!part->entries.ptr || absent.code != ERR_INTEGRITY) {
        *err = absent;
        return -1;
    }
    if (source_make_tmp(sources, &tmp, err) < 0) {
        return -1;
    }
    call.input_path = fs_join(sources->git.arena, tmp->path, "ids");
    int result = list_blobs(part, call.input_path, err);
    result = result < 0 ? result : git_run(&sources->git, &call, NULL, ret_result, err);
    return result < 0 || ret_result->exit_status != 0 ? result
                                                      : source_find_selection(sources, part, err);
}
