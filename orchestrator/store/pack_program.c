/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/pack_program.h"

#include "base/fs.h"
#include "base/said.h"
#include "sys/child.h"
#include "sys/proc.h"

int pack_program_find(struct arena *arena, const char *self, const char **ret_path, struct err *err)
{
    const char *named = getenv("REPERF_PACK");
    struct str folder = str_of(self);
    const char *path = named;
    folder = str_rcut(folder, 0, "/");
    if (!named || !named[0]) {
        path = arena_printf(arena, "%.*s%s", STR_ARG(folder), PACK_PROGRAM);
    }
    if (!fs_exists(path)) {
        return err_set(err, ERR_WORKLOAD,
                       "%s: the program that makes synthetic datasets and shards is not here",
                       path);
    }
    *ret_path = path;
    return 0;
}

/* Its exit statuses are ours. */
static enum err_code code_of_status(int status)
{
    static const enum err_code CODES[] = {ERR_USAGE,    ERR_MANIFEST, ERR_FETCH, ERR_INTEGRITY,
                                          ERR_WORKLOAD, ERR_PARSE,    ERR_DISK};
    for (size_t idx = 0; idx < ARRAY_LEN(CODES); idx++) {
        if (err_exit_status(CODES[idx]) == status) {
            return CODES[idx];
        }
    }
    return ERR_WORKLOAD;
}

int pack_program_run(struct arena *arena, const struct store *store, const struct net_opts *net,
                     const char *const *argv, struct strbuf *out, struct err *err)
{
    size_t n_env = 0;
    const struct child_call call = {.argv = argv,
                                    .env = proc_env_allowed(arena, &n_env),
                                    .tmp_folder = store_path(store, "tmp"),
                                    .shows_error = true,
                                    .out = out};
    struct child_result result;
    if (child_run(arena, net->clock, &call, &result, err) < 0) {
        return -1;
    }
    return result.exit_status == 0
               ? 0
               : err_set(err, code_of_status(result.exit_status), "%s %s failed with status %d: %s",
                         PACK_PROGRAM, argv[1], result.exit_status,
                         said_shown(arena, said_last(result.error)));
}
