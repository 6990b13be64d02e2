/* SPDX-License-Identifier: Apache-2.0 */
/* Options of every command that fetches: rows for its option table, over one struct at the start of its arguments. */
#pragma once

#include "cmd/cmd.h"
#include "net/net_session.h"

struct net_args {         /* must be the first member of the command's arguments */
    struct net_opts opts; /* what net_args_opts completes */
    int64_t connections, retries;
    const char *rate;
    struct opt_list plain_hosts, layouts;
};

#define NET_ARGS_ASK_OPTS                                                                          \
    OPT(struct net_args, connections, "connections", "connections for each file (default 8)",      \
        .value = "N", .min = 1, .max = FETCH_CONNECTIONS_MAX),                                     \
        OPT(struct net_args, rate, "rate",                                                         \
            "at most so many a second for one file; k, M or G may follow", .value = "BYTES"),      \
        OPT(struct net_args, retries, "retries", "of a piece from one mirror; default 5",          \
            .value = "N", .min = 1, .max = 100),                                                   \
        OPT(struct net_args, opts.netrc_path, "netrc",                                             \
            "logins by host; must not be readable by others", .value = "FILE"),                    \
        OPT(struct net_args, opts.cookie_path, "cookies",                                          \
            "a browser's cookies in Netscape's format; not readable by others", .value = "FILE"),  \
        OPT(struct net_args, opts.proxy, "proxy", "proxy instead of http_proxy and https_proxy",   \
            .value = "URL"),                                                                       \
        OPT(struct net_args, opts.ca_path, "ca", "certificates to trust instead of the system's",  \
            .value = "FILE"),                                                                      \
        OPT(struct net_args, opts.mirror, "mirror",                                                \
            "look here first for dataset files, last for images", .value = "URL|DIR"),             \
        OPT(struct net_args, opts.auth_path, "auth-file",                                          \
            "logins of registries as in docker's config.json; not readable by others",             \
            .value = "FILE"),                                                                      \
        OPT(struct net_args, plain_hosts, "insecure-registry",                                     \
            "may be contacted over plain HTTP; may be repeated", .value = "HOST"),                 \
        OPT(struct net_args, layouts, "layout",                                                    \
            "a local OCI layout or docker-save tar with the image; repeatable", .value = "PATH")
#define NET_ARGS_OPTS                                                                              \
    NET_ARGS_ASK_OPTS, OPT(struct net_args, opts.is_offline, "offline",                            \
                           "only what is in the store or in --mirror DIR")

/* Strings are borrowed from args. ERR_USAGE for what cannot be. */
MUST_CHECK int net_args_opts(const struct cmd_ctx *ctx, const struct net_args *args,
                             struct net_opts *ret_opts, struct err *err);
