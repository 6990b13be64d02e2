/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "net/net_session.h"

#include "base/fs.h"
#include "base/stop.h"

void net_init(struct net *net, const struct net_opts *opts)
{
    *net = (struct net){.opts = opts};
}

int net_open(struct net *net, struct err *err)
{
    const struct net_opts *opts = net->opts;
    const struct http_settings settings = {
        .netrc_path = opts->netrc_path,
        .cookie_path = opts->cookie_path,
        .proxy = opts->proxy,
        .ca_path = opts->ca_path,
        .allows_file = true,
    };
    if (net->is_open) {
        return 0;
    }
    net->is_open = true;
    if (pool_new(pool_lanes().n, &net->pool, err) < 0 || http_new(&settings, &net->http, err) < 0) {
        net_close(net);
        return -1;
    }
    return 0;
}

void net_close(struct net *net)
{
    if (net->is_open) {
        http_free(net->http);
        pool_free(net->pool);
        net->http = NULL;
        net->pool = NULL;
        net->is_open = false;
    }
}

struct fetch_run net_fetch_run(const struct net *net)
{
    return (struct fetch_run){.http = net->http,
                              .pool = net->pool,
                              .clock = net->opts->clock,
                              .wants_progress = net->opts->wants_progress,
                              .should_stop = stop_is_asked};
}

bool net_has_login(const struct net_opts *opts)
{
    return opts->netrc_path || opts->cookie_path;
}

static bool is_url(const char *text)
{
    return strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0 ||
           strncmp(text, "file://", 7) == 0;
}

static void add_escaped(struct strbuf *url, const char *path)
{
    static const char PLAIN[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-_.~/";
    for (const char *c = path; *c; c++) {
        if (strchr(PLAIN, *c)) {
            strbuf_add_char(url, *c);
        } else {
            strbuf_printf(url, "%%%02X", (unsigned)(unsigned char)*c);
        }
    }
}

int net_mirror_url(struct arena *arena, const struct net_opts *opts, const char *name,
                   char **ret_url, struct err *err)
{
    CLEANUP(strbuf) struct strbuf url = STRBUF(HTTP_URL_MAX);
    size_t len = opts->mirror ? strlen(opts->mirror) : 0;
    if (!opts->mirror) {
        *ret_url = NULL;
        return 0;
    }
    if (is_url(opts->mirror)) {
        strbuf_add_z(&url, opts->mirror);
    } else {
        char *whole = realpath(opts->mirror, NULL);
        if (!whole || !fs_is_dir(whole)) {
            free(whole);
            return err_set(
                err, ERR_USAGE,
                "--mirror %.200s: expected http://..., https://..., or an existing folder",
                opts->mirror);
        }
        strbuf_add_z(&url, "file://");
        add_escaped(&url, whole);
        len = strlen(whole);
        free(whole);
    }
    if (len && url.ptr[url.len - 1] != '/') {
        strbuf_add_char(&url, '/');
    }
    add_escaped(&url, name);
    if (url.is_full) {
        return err_set(err, ERR_USAGE, "--mirror: longer than %d bytes", HTTP_URL_MAX);
    }
    *ret_url = arena_strndup(arena, url.ptr, url.len);
    return 0;
}

bool net_allows_url(const struct net_opts *opts, const char *url)
{
    return strncmp(url, "file://", 7) == 0 || !opts->is_offline;
}
