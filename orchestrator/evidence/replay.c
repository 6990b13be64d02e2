/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "evidence/replay.h"

#include "base/fs.h"
#include "evidence/derive.h"
#include "evidence/verify_archive.h"

static void fill_info(struct str run_id, size_t n_logs, struct replay_info *ret_info)
{
    snprintf(ret_info->run_id, sizeof(ret_info->run_id), "%.*s", STR_ARG(run_id));
    ret_info->n_files = n_logs + 1;
    ret_info->n_logs = n_logs;
}

static int replay_folder(struct arena *arena, const char *folder, struct replay_info *ret_info,
                         struct err *err)
{
    CLEANUP(derived) struct derived derived = {0};
    if (derive_folder(arena, folder, &derived, err) < 0) {
        return -1;
    }
    fill_info(derived.frozen.run_id, derived.n_logs, ret_info);
    return 0;
}

int replay(const struct replay_opts *opts, struct replay_info *ret_info, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct verify_info verified = {0};
    const char *inner = fs_join(&arena, opts->path, "evidence");
    if (fs_is_dir(opts->path)) {
        return replay_folder(&arena, fs_is_dir(inner) ? inner : opts->path, ret_info, err);
    }
    struct verify_opts verify = {
        .path = opts->path, .allows_unsigned = true, .wants_progress = true, .clock = opts->clock};
    if (verify_archive(&arena, &verify, &verified, err) < 0) {
        return -1;
    }
    fill_info(verified.run_id, verified.from.n, ret_info);
    return 0;
}
