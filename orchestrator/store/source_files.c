/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/source_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/publish.h"
#include "report/source.h"
#include "sys/proc.h"

#define DIRTY_SHOWN 3

int source_make_tmp(struct sources *sources, const char *what, char **ret_folder, struct err *err)
{
    char *folder =
        arena_printf(sources->git.arena, "%s/source-%s-XXXXXX", sources->git.tmp_folder, what);
    if (!mkdtemp(folder)) {
        return err_set(err, err_code_of_errno(errno), "make %s: %s", folder, err_errno_text(errno));
    }
    *ret_folder = folder;
    return 0;
}

void source_remove_tmp(const char *folder)
{
    struct err err = {0};
    if (folder && fs_remove_tree(folder, &err) < 0) {
        log_line(LOG_DEBUG, "%s", err.msg);
    }
}

/* --- submodules --------------------------------------------------------------------------------------------------------------- */

/* submodule.NAME.path and submodule.NAME.url of .gitmodules: "KEY\nVALUE\0". */
static int read_gitmodules(struct sources *sources, const struct source_part *part,
                           struct gitlinks *links, struct err *err)
{
    CLEANUP(strbuf) struct strbuf out = {0};
    struct git_result result;
    struct str rest, entry;
    const struct git_call call = {
        .git_dir = part->repo,
        .args = GIT_ARGS("config", "--blob",
                         arena_printf(sources->git.arena, "%s:.gitmodules", part->commit), "-z",
                         "--get-regexp", "^submodule\\..*\\.(path|url)$")};
    strbuf_init(&out, GIT_OUTPUT_MAX);
    if (git_run(&sources->git, &call, &out, &result, err) < 0) {
        return -1;
    }
    rest = strbuf_str(&out);
    /* The url stands where the path of the same name is this one's. */
    for (size_t idx = 0; result.exit_status == 0 && idx < links->n; idx++) {
        struct str all = rest, stem = STR_EMPTY;
        for (int round = 0; round < 2; round++) {
            all = rest;
            while (str_next(&all, '\0', &entry)) {
                int64_t at = str_find(entry, STR_LIT("\n"));
                struct str key = str_sub(entry, 0, at < 0 ? 0 : (size_t)at);
                struct str value = str_sub(entry, at < 0 ? 0 : (size_t)at + 1, entry.len);
                if (round == 0 && str_ends(key, STR_LIT(".path")) &&
                    str_eq_z(value, links->items[idx].path)) {
                    stem = str_sub(key, 0, key.len - 5);
                } else if (round == 1 && stem.len > 0 && str_ends(key, STR_LIT(".url")) &&
                           str_eq(str_sub(key, 0, key.len - 4), stem)) {
                    links->items[idx].url = str_z(sources->git.arena, value);
                }
            }
        }
    }
    return 0;
}

int source_gitlinks(struct sources *sources, const struct source_part *part,
                    struct gitlinks *ret_links, struct err *err)
{
    struct gitlinks links = {arena_array(sources->git.arena, struct gitlink, SOURCE_PARTS_MAX), 0};
    struct str rest, entry;
    struct source_part selected = *part;
    if (!part->entries.ptr && source_select(sources, &selected, err) < 0) {
        return -1;
    }
    /* "MODE TYPE HEX\tPATH\0" */
    rest = selected.entries;
    while (str_next(&rest, '\0', &entry)) {
        struct str head = STR_LIT("160000 commit ");
        if (!str_starts(entry, head)) {
            continue;
        }
        if (links.n == SOURCE_PARTS_MAX || entry.len < head.len + SOURCE_COMMIT_HEX + 2) {
            return err_set(err, ERR_INTEGRITY, "%.200s has more than %d submodules", part->url,
                           SOURCE_PARTS_MAX);
        }
        links.items[links.n++] = (struct gitlink){
            .path = str_z(sources->git.arena,
                          str_sub(entry, head.len + SOURCE_COMMIT_HEX + 1, entry.len)),
            .commit = str_z(sources->git.arena, str_sub(entry, head.len, SOURCE_COMMIT_HEX)),
        };
    }
    if (links.n > 0 && read_gitmodules(sources, part, &links, err) < 0) {
        return -1;
    }
    *ret_links = links;
    return 0;
}

/* --- folders ------------------------------------------------------------------------------------------------------------------ */

/* `git add` of all that is there but the submodules, whose commits are entered by hand; into an index and objects of its own. */
static int hash_into(struct sources *sources, const struct source_part *part, const char *folder,
                     const char *tmp, const char **ret_tree, struct err *err)
{
    struct arena *arena = sources->git.arena;
    struct gitlinks links;
    struct git_call call = {.git_dir = part->repo,
                            .work_tree = folder,
                            .index_path = fs_join(arena, tmp, "index"),
                            .new_objects = tmp};
    const char **args;
    size_t n = 0;
    if (source_gitlinks(sources, part, &links, err) < 0) {
        return -1;
    }
    if (links.n > GIT_ARGS_MAX - 8) {
        return err_set(err, ERR_INTEGRITY, "%.200s: %zu submodules in one repository", part->url,
                       links.n);
    }
    args = arena_array(arena, const char *, GIT_ARGS_MAX);
    args[n++] = "add";
    args[n++] = "--all";
    args[n++] = "--force";
    args[n++] = "--";
    args[n++] = ".";
    for (size_t idx = 0; idx < links.n; idx++) {
        args[n++] = arena_printf(arena, ":(exclude,literal)%s", links.items[idx].path);
    }
    call.args = args;
    if (git_must(&sources->git, &call, NULL, ERR_INTEGRITY, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < links.n; idx++) {
        call.args = GIT_ARGS("update-index", "--add", "--cacheinfo", "160000",
                             links.items[idx].commit, links.items[idx].path);
        if (git_must(&sources->git, &call, NULL, ERR_INTEGRITY, err) < 0) {
            return -1;
        }
    }
    call.args = GIT_ARGS("write-tree");
    return git_hex(&sources->git, &call, ret_tree, err);
}

static const char *folder_of(struct sources *sources, const char *folder,
                             const struct source_part *part)
{
    return strcmp(part->path, ".") == 0 ? folder : fs_join(sources->git.arena, folder, part->path);
}

/* The tree of a part is in no repository. */
static int make_selection(struct sources *sources, const struct source_part *part, const char *tmp,
                          struct err *err)
{
    struct git_call call = {
        .git_dir = part->repo, .new_objects = tmp, .args = GIT_ARGS("write-tree")};
    if (!part->paths) {
        return 0;
    }
    return source_put_index(sources, part, tmp, &call.index_path, err) < 0
               ? -1
               : git_must(&sources->git, &call, NULL, ERR_INTEGRITY, err);
}

/* The first paths that differ, for the message. */
static void name_dirty(struct sources *sources, const struct source_part *part, const char *tree,
                       const char *tmp, struct strbuf *names)
{
    CLEANUP(strbuf) struct strbuf out = {0};
    struct git_result result;
    struct err ignored = {0};
    struct str rest, status, path;
    size_t n = 0;
    const char *wanted = part->paths ? part->selection : part->tree;
    strbuf_init(&out, GIT_OUTPUT_MAX);
    if (make_selection(sources, part, tmp, &ignored) < 0 ||
        git_run(&sources->git,
                &(struct git_call){.git_dir = part->repo,
                                   .new_objects = tmp,
                                   .args = GIT_ARGS("diff-tree", "-r", "-z", "--name-status",
                                                    "--no-renames", wanted, tree)},
                &out, &result, &ignored) < 0) {
        return;
    }
    rest = strbuf_str(&out);
    while (str_next(&rest, '\0', &status) && status.len > 0 && str_next(&rest, '\0', &path)) {
        if (n++ < DIRTY_SHOWN) {
            strbuf_printf(names, "%s%.*s %s", n > 1 ? ", " : "", STR_ARG(str_sub(path, 0, 100)),
                          status.ptr[0] == 'A'   ? "was added"
                          : status.ptr[0] == 'D' ? "is missing"
                                                 : "was changed");
        }
    }
    if (n > DIRTY_SHOWN) {
        strbuf_printf(names, " and %zu more", n - DIRTY_SHOWN);
    }
}

static int check_part(struct sources *sources, const struct source_part *part, const char *folder,
                      struct err *err)
{
    CLEANUP(strbuf) struct strbuf names = {0};
    const char *tree;
    const char *wanted = part->paths ? part->selection : part->tree;
    char *tmp = NULL;
    int result;
    strbuf_init(&names, 4096);
    if (source_make_tmp(sources, "check", &tmp, err) < 0) {
        return -1;
    }
    result = hash_into(sources, part, folder, tmp, &tree, err);
    if (result == 0 && strcmp(tree, wanted) != 0) {
        name_dirty(sources, part, tree, tmp, &names);
        result = err_set(err, ERR_INTEGRITY, "%.100s: its tree is %s, commit %.12s has %s: %s",
                         folder, tree, part->commit, wanted, names.ptr);
    }
    source_remove_tmp(tmp);
    return result;
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
    char *tmp = NULL;
    int result;
    if (fs_mkdir_p(folder, err) < 0 || source_make_tmp(sources, "index", &tmp, err) < 0) {
        return -1;
    }
    result = source_put_index(sources, part, tmp, &call.index_path, err);
    if (result == 0) {
        call.args = GIT_ARGS("checkout-index", "--all", "--quiet");
        result = git_must(&sources->git, &call, NULL, ERR_IO, err);
    }
    source_remove_tmp(tmp);
    return result;
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
    char *made = arena_printf(sources->git.arena, "%s.checkout-XXXXXX", folder);
    char *whole;
    int result;
    if (fs_exists(folder)) {
        return err_set(err, ERR_USAGE, "%s exists already", folder);
    }
    if (!mkdtemp(made) || chmod(made, 0755) < 0) {
        return err_set(err, err_code_of_errno(errno), "make %s: %s", made, err_errno_text(errno));
    }
    whole = realpath(made, NULL); /* git starts elsewhere */
    result = checkout_all(sources, tree, whole ? whole : made, err);
    free(whole);
    result = result < 0 ? result : publish_tree(made, folder, err);
    source_remove_tmp(made);
    return result;
}
