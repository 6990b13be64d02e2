/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "evidence/replay.h"

#include "base/fs.h"
#include "evidence/derive.h"
#include "evidence/verify_archive.h"

int replay(struct arena *arena, const struct replay_opts *opts, struct replay_info *ret_info,
           struct err *err)
{
    CLEANUP(derived) struct derived derived = {0};
    struct verify_info verified = {0};
    struct str run_id;
    const char *inner = fs_join(arena, opts->path, "evidence");
    struct verify_opts verify = {
        .path = opts->path, .allows_unsigned = true, .wants_progress = true, .clock = opts->clock};
    if (fs_is_dir(opts->path)) {
        if (derive_folder(arena, fs_is_dir(inner) ? inner : opts->path, &derived, err) < 0) {
            return -1;
        }
        run_id = derived.frozen.run_id;
        ret_info->n_logs = derived.n_logs;
        ret_info->discrepancies = derived.discrepancies;
    } else {
        if (verify_archive(arena, &verify, &verified, err) < 0) {
            return -1;
        }
        run_id = verified.run_id;
        ret_info->n_logs = verified.from.n;
        ret_info->discrepancies = verified.from.discrepancies;
    }
    snprintf(ret_info->run_id, sizeof(ret_info->run_id), "%.*s", STR_ARG(run_id));
    ret_info->n_files = ret_info->n_logs + 1;
    return 0;
}
