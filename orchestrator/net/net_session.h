/* SPDX-License-Identifier: Apache-2.0 */
/* What every command that fetches needs: pool and HTTP client with the command's options, opened on first use. */
#pragma once

#include "net/fetch.h"

struct net_opts {
    const char *netrc_path;  /* NULL: none */
    const char *cookie_path; /* likewise */
    const char *proxy;       /* likewise: the environment's */
    const char *ca_path;
    const char *mirror;    /* URL or folder that is asked first; NULL: none */
    const char *auth_path; /* logins of image registries, docker's config.json; NULL: none */
    const char *const *plain_hosts; /* registries that may be spoken to in plain HTTP */
    size_t n_plain_hosts;
    const char *const *layouts; /* folders and tars that may hold images */
    size_t n_layouts;
    size_t n_connections;      /* 0: fetch's default */
    uint64_t rate_bytes_per_s; /* 0: no limit */
    int n_retries;             /* 0: fetch's default */
    bool is_offline;           /* no network access: ERR_FETCH says what would have been needed */
    bool wants_progress;
    struct clock_src clock;
};

struct net {
    const struct net_opts *opts; /* borrowed */
    struct pool *pool;
    struct http *http;
    bool is_open;
};

void net_init(struct net *net, const struct net_opts *opts);
/* Does nothing if it is open already. */
MUST_CHECK int net_open(struct net *net, struct err *err);
void net_close(struct net *net);
CLEANUP_BY(net, struct net, net_close);
struct fetch_run net_fetch_run(const struct net *net);

/* A password or cookie was named. */
bool net_has_login(const struct net_opts *opts);
/* MIRROR/NAME as a URL, file:// for a folder; NULL if no mirror was named. */
MUST_CHECK int net_mirror_url(struct arena *arena, const struct net_opts *opts, const char *name,
                              char **ret_url, struct err *err);
/* True for file:// and, unless offline, all others. */
bool net_allows_url(const struct net_opts *opts, const char *url);
