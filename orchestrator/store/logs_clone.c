/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/logs_clone.h"

#include "base/fs.h"
#include "base/temp.h"
#include "store/source_store.h"

#include <unistd.h>

#define GIT_LIMIT_NS (60 * NS_PER_S)
#define OUTPUT_MAX   16384

void logs_clone_cleanup(struct logs_clone *clone)
{
    temp_free(clone->temp);
    *clone = (struct logs_clone){.folder = NULL};
}

const char *git_dir_of(const struct git *git, const char *folder)
{
    CLEANUP(strbuf) struct strbuf out = STRBUF(OUTPUT_MAX);
    char *whole CLEANUP(free) = realpath(folder, NULL); /* git is run elsewhere */
    const struct git_call call = {
        .args = GIT_ARGS("-C", whole, "rev-parse", "--absolute-git-dir", "--show-prefix"),
        .deadline_ns = GIT_LIMIT_NS};
    struct str dir, below;
    if (!whole || git_must(git, &call, &out, ERR_NOT_FOUND, ERR_IGNORED) < 0) {
        return NULL;
    }
    struct str rest = strbuf_str(&out);
    return str_next(&rest, '\n', &dir) && str_next(&rest, '\n', &below) && !below.len
               ? str_z(git->arena, dir)
               : NULL;
}

struct clone_reader {
    struct git git;
    const char *git_dir, *folder;
};

static int read_blob(const struct clone_reader *in, const char *commit, const char *path,
                     const char *target, struct err *err)
{
    const char *name = arena_printf(in->git.arena, "%s:%s", commit, path);
    const struct git_call call = {.git_dir = in->git_dir,
                                  .args = GIT_ARGS("cat-file", "blob", name),
                                  .output_path = target,
                                  .deadline_ns = GIT_LIMIT_NS};
    struct git_result result;
    if (git_run(&in->git, &call, NULL, &result, err) < 0) {
        return -1;
    }
    if (result.exit_status != 0) {
        (void)unlink(target); /* the audit says that it is not there */
    }
    return 0;
}

/* git does not hash what it reads, but what it receives: there the commit, its folders and logs have the names that they hash
   to. names: the commit, and of what in it. */
static int receive(const struct clone_reader *in, const struct report *report, struct str names,
                   const char *made, struct err *err)
{
    struct arena *arena = in->git.arena;
    const char *list = fs_join(arena, made, "names"), *ids = fs_join(arena, made, "ids");
    const char *pack = fs_join(arena, made, "received");
    const struct git_call find = {.git_dir = in->git_dir,
                                  .args = GIT_ARGS("--literal-pathspecs", "rev-list", "--objects",
                                                   "--no-walk", "--missing=allow-any", "--stdin"),
                                  .input_path = list,
                                  .output_path = ids};
    const struct git_call calls[] = {
        {.git_dir = in->git_dir,
         .args = GIT_ARGS("pack-objects", "--quiet", "--stdout"),
         .input_path = ids,
         .output_path = pack},
        {.args = GIT_ARGS("init", "--quiet", "--bare", "--template=", made)},
        {.git_dir = made, .args = GIT_ARGS("index-pack", "--stdin"), .input_path = pack}};
    struct git_result result;
    if (fs_write_atomic(list, names, err) < 0 || git_run(&in->git, &find, NULL, &result, err) < 0) {
        return -1;
    }
    int rc = result.exit_status == 0
                 ? 0
                 : err_set(err, ERR_NOT_FOUND,
                           "%s: the repository has no commit %.*s, of the logs of %s; git fetch %s "
                           "gets it",
                           in->git_dir, STR_ARG(report->logs_source.commit), report->id.ptr,
                           report->logs_source.repository.ptr ? report->logs_source.repository.ptr
                                                              : "its repository");
    for (size_t idx = 0; rc == 0 && idx < ARRAY_LEN(calls); idx++) {
        rc = git_must(&in->git, &calls[idx], NULL, ERR_INTEGRITY, err);
    }
    return rc;
}

static int read_report(const struct clone_reader *in, const struct report *report, struct err *err)
{
    CLEANUP(strbuf) struct strbuf names = STRBUF(GIT_OUTPUT_MAX);
    CLEANUP(temp) struct temp *made = NULL;
    struct clone_reader received = *in;
    struct arena *arena = in->git.arena;
    const char *commit = str_z(arena, report->logs_source.commit);
    const char *below = fs_join(arena, in->folder, str_z(arena, report->logs_source.path));
    if (!report->logs_source.commit.len) {
        return 0;
    }
    strbuf_printf(&names, "%s\n--\n", commit);
    for (size_t c = 0; c < report->n_cases; c++) {
        for (size_t log = 0; log < report->cases[c].n_logs; log++) {
            strbuf_printf(&names, "%.*s\n", STR_ARG(report->cases[c].logs[log]));
        }
    }
    if (temp_folder(fs_join(arena, in->folder, ""), &made, err) < 0 ||
        receive(in, report, strbuf_str(&names), made->path, err) < 0) {
        return -1;
    }
    received.git_dir = made->path;
    for (size_t c = 0; c < report->n_cases; c++) {
        for (size_t log = 0; report->cases[c].n_cells && log < report->cases[c].n_logs; log++) {
            const char *path = str_z(arena, report->cases[c].logs[log]);
            const char *target = fs_join(arena, below, path);
            if (!fs_exists(target) && (fs_scratch_above(target, err) < 0 ||
                                       read_blob(&received, commit, path, target, err) < 0)) {
                return -1;
            }
        }
    }
    return 0;
}

/* The repository that `fetch logs:REPORT` made; left alone for a report without logs. */
static int find_stored(struct clone_reader *in, const struct cmd_ctx *ctx,
                       const struct report *report, struct err *err)
{
    struct arena *arena = in->git.arena;
    const struct net_opts net = {.is_offline = true, .clock = ctx->clock};
    const struct source_ref *logs = &report->logs_source;
    struct store store;
    struct sources sources;
    struct source_tree tree;
    struct err missing = {0};
    if (!logs->commit.len) {
        return 0;
    }
    if (store_open(arena, ctx->store, &store, err) < 0 ||
        sources_init(&sources, arena, &store, &net, err) < 0) {
        return -1;
    }
    if (source_verify(&sources, str_z(arena, logs->repository), str_z(arena, logs->commit), false,
                      &tree, &missing) < 0) {
        return err_set(err, missing.code, "%.300s; reperf data fetch logs:%s gets it", missing.msg,
                       report->id.ptr);
    }
    in->git_dir = tree.parts[0].repo;
    return 0;
}

int logs_clone_read(struct arena *arena, const struct cmd_ctx *ctx, const char *folder,
                    const struct report_set *reports, struct logs_clone *ret, struct err *err)
{
    bool is_store = strcmp(folder, "store") == 0;
    struct clone_reader in = {.git_dir = NULL};
    if (temp_scratch(&ret->temp, err) < 0) {
        return -1;
    }
    in.folder = ret->temp->path;
    in.git = (struct git){.arena = arena, .clock = ctx->clock, .tmp_folder = in.folder};
    in.git_dir = is_store ? NULL : git_dir_of(&in.git, folder);
    if (!in.git_dir && !is_store) {
        return 0;
    }
    ret->folder = in.folder;
    for (size_t idx = 0; idx < reports->n; idx++) {
        if ((is_store && find_stored(&in, ctx, &reports->items[idx], err) < 0) ||
            read_report(&in, &reports->items[idx], err) < 0) {
            return -1;
        }
    }
    return 0;
}
