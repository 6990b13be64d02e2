/* SPDX-License-Identifier: Apache-2.0 */
/* Options of every command that fetches: rows for its option table, over one struct at the start of its arguments. */
#ifndef CMD_NET_ARGS_H
#define CMD_NET_ARGS_H

#include "cmd/cmd.h"
#include "net/net_session.h"

struct net_args { /* must be the first member of the command's arguments */
    int64_t connections;
    const char *rate;
    const char *netrc;
    const char *cookies;
    const char *proxy;
    const char *ca;
    const char *mirror;
    int64_t retries;
    const char *auth_file;
    struct opt_list plain_hosts;
    struct opt_list layouts;
    bool is_offline;
};
/* CLEANUP(net_args) of a command whose arguments begin with them. */
static inline void net_args_cleanup(struct net_args *args)
{
    VEC_RELEASE(&args->plain_hosts);
    VEC_RELEASE(&args->layouts);
}

#define NET_ARGS_ASK_OPTS                                                                          \
    {.name = "connections",                                                                        \
     .kind = OPT_I64,                                                                              \
     .value = "N",                                                                                 \
     .help = "connections for each file (default 8)",                                              \
     .offset = offsetof(struct net_args, connections),                                             \
     .min = 1,                                                                                     \
     .max = FETCH_CONNECTIONS_MAX},                                                                \
        {.name = "rate",                                                                           \
         .kind = OPT_TEXT,                                                                         \
         .value = "BYTES",                                                                         \
         .help = "a second at most, of one file; k, M or G may follow",                            \
         .offset = offsetof(struct net_args, rate)},                                               \
        {.name = "retries",                                                                        \
         .kind = OPT_I64,                                                                          \
         .value = "N",                                                                             \
         .help = "of a piece from one mirror; default 5",                                          \
         .offset = offsetof(struct net_args, retries),                                             \
         .min = 1,                                                                                 \
         .max = 100},                                                                              \
        {.name = "netrc",                                                                          \
         .kind = OPT_TEXT,                                                                         \
         .value = "FILE",                                                                          \
         .help = "logins by host; must not be readable by others",                                 \
         .offset = offsetof(struct net_args, netrc)},                                              \
        {.name = "cookies",                                                                        \
         .kind = OPT_TEXT,                                                                         \
         .value = "FILE",                                                                          \
         .help = "a browser's cookies in Netscape's format; likewise",                             \
         .offset = offsetof(struct net_args, cookies)},                                            \
        {.name = "proxy",                                                                          \
         .kind = OPT_TEXT,                                                                         \
         .value = "URL",                                                                           \
         .help = "proxy instead of http_proxy and https_proxy",                                    \
         .offset = offsetof(struct net_args, proxy)},                                              \
        {.name = "ca",                                                                             \
         .kind = OPT_TEXT,                                                                         \
         .value = "FILE",                                                                          \
         .help = "certificates to trust instead of the system's",                                  \
         .offset = offsetof(struct net_args, ca)},                                                 \
        {.name = "mirror",                                                                         \
         .kind = OPT_TEXT,                                                                         \
         .value = "URL|DIR",                                                                       \
         .help = "another place; files of datasets are asked for there first, images last",        \
         .offset = offsetof(struct net_args, mirror)},                                             \
        {.name = "auth-file",                                                                      \
         .kind = OPT_TEXT,                                                                         \
         .value = "FILE",                                                                          \
         .help = "logins of registries as in docker's config.json; not readable by others",        \
         .offset = offsetof(struct net_args, auth_file)},                                          \
        {.name = "insecure-registry",                                                              \
         .kind = OPT_LIST,                                                                         \
         .value = "HOST",                                                                          \
         .help = "may be contacted over plain HTTP; may be repeated",                              \
         .offset = offsetof(struct net_args, plain_hosts)},                                        \
    {                                                                                              \
        .name = "layout", .kind = OPT_LIST, .value = "PATH",                                       \
        .help = "OCI layout or docker save's tar that may hold an image; likewise",                \
        .offset = offsetof(struct net_args, layouts)                                               \
    }
#define NET_ARGS_OPTS                                                                              \
    NET_ARGS_ASK_OPTS,                                                                             \
    {                                                                                              \
        .name = "offline", .kind = OPT_FLAG,                                                       \
        .help = "only what is in the store or in --mirror DIR",                                    \
        .offset = offsetof(struct net_args, is_offline)                                            \
    }

/* Strings are borrowed from args. ERR_USAGE for what cannot be. */
MUST_CHECK int net_args_opts(const struct cmd_ctx *ctx, const struct net_args *args,
                             struct net_opts *ret_opts, struct err *err);

#endif
