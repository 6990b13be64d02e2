/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/source_impl.h"

#include <unistd.h>

#include "base/fs.h"
#include "base/publish.h"
#include "base/temp.h"
#include "report/source.h"
#include "sys/proc.h"

#define DIRTY_SHOWN 3

int source_make_tmp(struct sources *sources, struct temp **ret_folder, struct err *err)
{
    return temp_folder(fs_join(sources->git.arena, sources->git.tmp_folder, ""), ret_folder, err);
}

/* --- submodules --------------------------------------------------------------------------------------------------------------- */

/* One answer of `git config` about .gitmodules; empty where the file, or the key, is not there. */
static int ask_gitmodules(struct sources *sources, const struct source_part *part,
                          const char *const *question, struct str *ret_answer, struct err *err)
{
    CLEANUP(strbuf) struct strbuf out = STRBUF(GIT_OUTPUT_MAX);
    struct git_result result;
    const char *args[GIT_ARGS_MAX] = {
        "config", "--blob", arena_printf(sources->git.arena, "%s:.gitmodules", part->commit), "-z"};
    for (size_t n = 4; *question; n++) {
        args[n] = *question++;
    }
    if (git_run(&sources->git, &(struct git_call){.git_dir = part->repo, .args = args}, &out,
                &result, err) < 0) {
        return -1;
    }
    struct str all = strbuf_str(&out), answer = STR_EMPTY;
    bool has = result.exit_status == 0 && str_next(&all, '\0', &answer);
    *ret_answer = has ? str_dup(sources->git.arena, answer) : STR_EMPTY;
    return 0;
}

/* The path stands as submodule.NAME.path, and the address as submodule.NAME.url. */
static int find_url(struct sources *sources, const struct source_part *part, struct gitlink *link,
                    struct err *err)
{
    struct str key, url;
    if (ask_gitmodules(sources, part,
                       GIT_ARGS("--fixed-value", "--name-only", "--get-regexp",
                                "^submodule\\..*\\.path$", link->path),
                       &key, err) < 0) {
        return -1;
    }
    if (key.len == 0) {
        return 0;
    }
    key = str_sub(key, 0, key.len - strlen("path"));
    if (ask_gitmodules(sources, part,
                       GIT_ARGS("--get", arena_printf(sources->git.arena, "%.*surl", STR_ARG(key))),
                       &url, err) < 0) {
        return -1;
    }
    link->url = url.len ? str_z(sources->git.arena, url) : NULL;
    return 0;
}

int source_gitlinks(struct sources *sources, const struct source_part *part,
                    struct gitlinks *ret_links, struct err *err)
{
    struct gitlinks links = {arena_array(sources->git.arena, struct gitlink, SOURCE_PARTS_MAX), 0};
    struct str entry;
    struct source_part selected = *part;
    if (!part->entries.ptr && source_select(sources, &selected, err) < 0) {
        return -1;
    }
    /* "MODE TYPE HEX\tPATH\0" */
    struct str rest = selected.entries;
    while (str_next(&rest, '\0', &entry)) {
        struct str head = STR_LIT("160000 commit ");
        if (!str_starts(entry, head)) {
            continue;
        }
        if (links.n == SOURCE_PARTS_MAX || entry.len < head.len + SOURCE_COMMIT_HEX + 2) {
            return err_set(err, ERR_INTEGRITY, "%.200s has more than %d submodules", part->url,
                           SOURCE_PARTS_MAX);
        }
        struct gitlink *link = &links.items[links.n++];
        *link = (struct gitlink){
            .path = str_z(sources->git.arena,
                          str_sub(entry, head.len + SOURCE_COMMIT_HEX + 1, entry.len)),
            .commit = str_z(sources->git.arena, str_sub(entry, head.len, SOURCE_COMMIT_HEX)),
        };
        if (find_url(sources, part, link, err) < 0) {
            return -1;
        }
    }
    *ret_links = links;
    return 0;
}

/* --- folders ------------------------------------------------------------------------------------------------------------------ */

static const char *folder_of(struct sources *sources, const char *folder,
                             const struct source_part *part)
{
    return strcmp(part->path, ".") == 0 ? folder : fs_join(sources->git.arena, folder, part->path);
}

static void name_path(struct strbuf *names, size_t n_named, struct str path, const char *what)
{
    if (n_named <= DIRTY_SHOWN) {
        strbuf_printf(names, "%s%.*s %s", n_named > 1 ? ", " : "", STR_ARG(str_sub(path, 0, 100)),
                      what);
    }
}

/* The index has no times of the files: git compares the content of each when it refreshes it, and says by its status that some
   differ, which diff-files then names. */
static int name_dirty(struct sources *sources, const struct git_call *index, struct strbuf *names,
                      size_t *ret_n, struct err *err)
{
    CLEANUP(strbuf) struct strbuf changed = STRBUF(GIT_OUTPUT_MAX);
    CLEANUP(strbuf) struct strbuf added = STRBUF(GIT_OUTPUT_MAX);
    struct git_call refresh = *index, diff = *index, others = *index;
    struct git_result result;
    struct str status, path;
    size_t n = 0;
    refresh.args = GIT_ARGS("update-index", "-q", "--really-refresh");
    diff.args =
        GIT_ARGS("diff-files", "-z", "--name-status", "--no-renames", "--ignore-submodules=all");
    others.args = GIT_ARGS("ls-files", "-z", "--others");
    if (git_run(&sources->git, &refresh, NULL, &result, err) < 0 ||
        git_must(&sources->git, &diff, &changed, ERR_INTEGRITY, err) < 0 ||
        git_must(&sources->git, &others, &added, ERR_INTEGRITY, err) < 0) {
        return -1;
    }
    struct str rest = strbuf_str(&changed);
    while (str_next(&rest, '\0', &status) && status.len > 0 && str_next(&rest, '\0', &path)) {
        name_path(names, ++n, path, status.ptr[0] == 'D' ? "is missing" : "was changed");
    }
    rest = strbuf_str(&added);
    while (str_next(&rest, '\0', &path) && path.len > 0) {
        name_path(names, ++n, path, "was added");
    }
    if (n > DIRTY_SHOWN) {
        strbuf_printf(names, " and %zu more", n - DIRTY_SHOWN);
    }
    *ret_n = n;
    return 0;
}

static int check_part(struct sources *sources, const struct source_part *part, const char *folder,
                      struct err *err)
{
    CLEANUP(strbuf) struct strbuf names = STRBUF(4096);
    struct git_call call = {.git_dir = part->repo, .work_tree = folder};
    CLEANUP(temp) struct temp *tmp = NULL;
    size_t n = 0;
    if (source_make_tmp(sources, &tmp, err) < 0 ||
        source_put_index(sources, part, tmp->path, &call.index_path, err) < 0 ||
        name_dirty(sources, &call, &names, &n, err) < 0) {
        return -1;
    }
    return n ? err_set(err, ERR_INTEGRITY, "%.100s is not what commit %.12s has: %s", folder,
                       part->commit, names.ptr)
             : 0;
}

int source_check_folder(struct sources *sources, const struct source_tree *tree, const char *folder,
                        struct err *err)
{
    for (size_t idx = 0; idx < tree->n; idx++) {
        const struct source_part *part = &tree->parts[idx];
        const char *below = folder_of(sources, folder, part);
        if (!part->url) {
            continue;
        }
        if (!fs_is_dir(below)) {
            return err_set(err, ERR_INTEGRITY, "%s is missing", below);
        }
        if (check_part(sources, part, below, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int checkout_part(struct sources *sources, const struct source_part *part,
                         const char *folder, struct err *err)
{
    struct git_call call = {.git_dir = part->repo, .work_tree = folder};
    CLEANUP(temp) struct temp *tmp = NULL;
    if (fs_mkdir_p(folder, err) < 0 || source_make_tmp(sources, &tmp, err) < 0 ||
        source_put_index(sources, part, tmp->path, &call.index_path, err) < 0) {
        return -1;
    }
    call.args = GIT_ARGS("checkout-index", "--all", "--quiet");
    return git_must(&sources->git, &call, NULL, ERR_IO, err);
}

static int checkout_all(struct sources *sources, const struct source_tree *tree, const char *folder,
                        struct err *err)
{
    for (size_t idx = 0; idx < tree->n; idx++) {
        const struct source_part *part = &tree->parts[idx];
        if (part->url && checkout_part(sources, part, folder_of(sources, folder, part), err) < 0) {
            return -1;
        }
    }
    return source_check_folder(sources, tree, folder, err);
}

int source_checkout(struct sources *sources, const struct source_tree *tree, const char *folder,
                    struct err *err)
{
    CLEANUP(temp) struct temp *made = NULL;
    CLEANUP(free) char *whole = NULL;
    if (fs_exists(folder)) {
        return err_set(err, ERR_USAGE, "%s exists already", folder);
    }
    if (temp_folder(folder, &made, err) < 0) {
        return -1;
    }
    whole = realpath(made->path, NULL); /* git starts elsewhere */
    return checkout_all(sources, tree, whole ? whole : made->path, err) < 0
               ? -1
               : publish_tree(made->path, folder, err);
}
