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

/* --- folders ------------------------------------------------------------------------------------------------------ */

static const char *folder_of(struct sources *sources, const char *folder,
                             const struct source_part *part)
{
    return strcmp(part->path, ".") == 0 ? folder : fs_join(sources->git.arena, folder, part->path);
}

/* The index has no times of the files: git compares the content of each. A missing file is reported twice, first as such. */
static int name_dirty(struct sources *sources, const struct git_call *index, struct strbuf *names,
                      size_t *ret_n, struct err *err)
{
    CLEANUP(strbuf) struct strbuf out = STRBUF(GIT_OUTPUT_MAX);
    struct git_call call = *index;
    struct str line, path, last = STR_EMPTY;
    size_t n = 0;
    call.args = GIT_ARGS("ls-files", "-t", "-z", "--deleted", "--modified", "--others");
    if (git_must(&sources->git, &call, &out, ERR_INTEGRITY, err) < 0) {
        return -1;
    }
    struct str rest = strbuf_str(&out);
    while (str_next(&rest, '\0', &line) && line.len > 2) { /* "TAG PATH" */
        path = str_sub(line, 2, line.len);
        if (!str_eq(path, last) && n++ < DIRTY_SHOWN) {
            strbuf_printf(names, "%s%.*s %s", n > 1 ? ", " : "", STR_ARG(str_sub(path, 0, 100)),
                          line.ptr[0] == 'R'   ? "is missing"
                          : line.ptr[0] == '?' ? "was added"
                                               : "was changed");
        }
        last = path;
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
