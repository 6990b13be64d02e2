/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/net_args.h"

#include "base/fs.h"

static int rate_of(const char *text, uint64_t *ret_rate, struct err *err)
{
    static const struct {
        const char *unit;
        int64_t scale;
    } UNITS[] = {{"k", 1000}, {"M", 1000000}, {"G", 1000000000}, {"", 1}};
    struct str digits = str_of(text);
    int64_t value = 0;
    size_t idx = 0;
    while (!str_ends(digits, str_of(UNITS[idx].unit))) {
        idx++;
    }
    digits.len -= strlen(UNITS[idx].unit);
    if (str_to_i64(digits, 1, 1LL << 31, &value, ERR_IGNORED) < 0) {
        return err_set(err, ERR_USAGE,
                       "--rate %.60s: expected bytes a second as 500k, 50M or 1G, at least 1",
                       text);
    }
    *ret_rate = (uint64_t)(value * UNITS[idx].scale);
    return 0;
}

static int check_file(const char *option, const char *path, struct err *err)
{
    return !path || fs_exists(path)
               ? 0
               : err_set(err, ERR_USAGE, "%s %.200s: no such file", option, path);
}

/* Checked before anything is done, even if the mirror would not be asked. */
static int check_mirror(const struct net_opts *opts, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    char *url = NULL;
    return net_mirror_url(&arena, opts, "x", &url, err);
}

int net_args_opts(const struct cmd_ctx *ctx, const struct net_args *args, struct net_opts *ret_opts,
                  struct err *err)
{
    struct net_opts opts = args->opts;
    opts.plain_hosts = args->plain_hosts.items;
    opts.n_plain_hosts = args->plain_hosts.n;
    opts.layouts = args->layouts.items;
    opts.n_layouts = args->layouts.n;
    opts.n_connections = (size_t)args->connections;
    opts.n_retries = (int)args->retries;
    opts.wants_progress = true;
    opts.clock = ctx->clock;
    if ((args->rate && rate_of(args->rate, &opts.rate_bytes_per_s, err) < 0) ||
        check_file("--netrc", opts.netrc_path, err) < 0 ||
        check_file("--cookies", opts.cookie_path, err) < 0 ||
        check_file("--ca", opts.ca_path, err) < 0 || check_mirror(&opts, err) < 0) {
        return -1;
    }
    *ret_opts = opts;
    return 0;
}
