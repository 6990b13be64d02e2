/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "evidence/replay.h"

#include "base/fs.h"
#include "base/log.h"
#include "evidence/frozen.h"
#include "evidence/result.h"
#include "evidence/verify_archive.h"

#define DERIVED_MAX (1u << 30)

struct comparison {
    const char *folder;
    size_t n_equal;
};

static int compare(void *ctx, const char *name, struct str text, struct err *err)
{
    struct comparison *comparison = ctx;
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct str kept;
    size_t at = 0;
    if (fs_read(&arena, fs_join(&arena, comparison->folder, name), DERIVED_MAX, &kept, err) < 0) {
        return -1;
    }
    if (str_eq(kept, text)) {
        comparison->n_equal++;
        return 0;
    }
    while (at < kept.len && at < text.len && kept.ptr[at] == text.ptr[at]) {
        at++;
    }
    return err_set(err, ERR_INTEGRITY,
                   "%s: differs from what follows from the raw logs, at byte %zu (kept %zu bytes, "
                   "derived %zu)",
                   name, at, kept.len, text.len);
}

/* Nothing may stand in series/ that was not derived: all others were found equal. */
static int check_no_more(struct arena *arena, const char *folder, size_t n_series, struct err *err)
{
    const char *series = fs_join(arena, folder, "series");
    struct fs_names names = {0};
    if (fs_exists(series) && fs_walk(arena, series, &names, err) < 0) {
        return -1;
    }
    return names.n == n_series
               ? 0
               : err_set(err, ERR_INTEGRITY,
                         "series/: %zu files, of which %zu follow from the raw logs", names.n,
                         n_series);
}

static int replay_folder(const char *folder, struct replay_info *ret_info, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(frozen) struct frozen frozen = {0};
    struct comparison comparison = {.folder = folder};
    struct run_result result;
    if (frozen_load(&arena, folder, &frozen, err) < 0 ||
        result_derive(&arena, &frozen, compare, &comparison, &result, err) < 0) {
        if (err->code == ERR_NOT_FOUND || err->code == ERR_MANIFEST) {
            err->code =
                ERR_INTEGRITY; /* a part of the evidence is missing, or is not what a run writes */
        }
        return -1;
    }
    if (check_no_more(&arena, folder, comparison.n_equal - 1, err) < 0) {
        return -1;
    }
    snprintf(ret_info->run_id, sizeof(ret_info->run_id), "%.*s", STR_ARG(frozen.run_id));
    ret_info->n_files = comparison.n_equal;
    ret_info->n_logs = comparison.n_equal - 1;
    return 0;
}

int replay(const struct replay_opts *opts, struct replay_info *ret_info, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct verify_info verified = {0};
    const char *inner = fs_join(&arena, opts->path, "evidence");
    struct err ignored = {0};
    int rc;
    if (fs_is_dir(opts->path)) {
        return replay_folder(fs_is_dir(inner) ? inner : opts->path, ret_info, err);
    }
    struct verify_opts verify = {.path = opts->path,
                                 .allows_unsigned = true,
                                 .unpack_to = opts->temp,
                                 .wants_progress = true,
                                 .clock = opts->clock};
    if (verify_archive(&arena, &verify, &verified, err) < 0) {
        return -1;
    }
    rc = replay_folder(opts->temp, ret_info, err);
    if (fs_remove_tree(opts->temp, &ignored) < 0) {
        log_line(LOG_WARN, "%s", ignored.msg);
    }
    return rc;
}
