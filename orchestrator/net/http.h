/* SPDX-License-Identifier: Apache-2.0 */
/* GET over HTTP(S): many transfers at once, each on a connection of its own (libcurl's multi interface, of which net/http.c
   is the only home). A transfer gives its head once, then its body in pieces as they arrive. Retries, ranges over several
   connections and digests are in net/fetch.h. Secrets come from files only and stay out of argv, messages and logs: a message
   shows a URL without user info, query and fragment (http_url_shown). */
#pragma once

#include "base/strbuf.h"
#include "sys/loop.h"

#define HTTP_REDIRECTS_MAX 10
#define HTTP_URL_MAX       8192

struct http;
struct http_transfer;

/* Settings for all transfers of a command; the strings outlive them. NULL and 0: the default in the comment. */
struct http_settings {
    const char *netrc_path;  /* logins by host; none. ERR_AUTH if others may read it */
    const char *cookie_path; /* Netscape cookie file, only read; none. Likewise */
    const char *proxy;       /* URL; NULL: http_proxy, https_proxy, no_proxy; "": none */
    const char *ca_path;     /* file with certificates; SSL_CERT_FILE, then the system's */
    /* A transfer with less than 1000 bytes a second, on an average of 5 s, for so long ends with ERR_TIMEOUT; whole seconds;
       0: 30 s. */
    int64_t stall_timeout_ns;
    bool allows_file; /* file:// URLs too */
};

MUST_CHECK int http_new(const struct http_settings *settings, struct http **ret_http,
                        struct err *err);
/* A file with logins must exist (NULL is fine), and ERR_AUTH if others may read it. */
MUST_CHECK int http_check_secret(const char *path, struct err *err);
/* Waits at most so long for something to happen to any transfer, and has it happen. */
MUST_CHECK int http_wait(struct http *http, int64_t max_wait_ns, struct err *err);
/* After its transfers. */
void http_free(struct http *http);
CLEANUP_POINTER(http, struct http, http_free);

/* The head of the last answer, redirects followed. */
struct http_head {
    int status;            /* 200, 206, ...; file://: 200, or 206 for a range, 416, 404 */
    int64_t content_bytes; /* the length of the body that follows; -1: not said */
    /* The size of the whole file, from Content-Range, or Content-Length of a 200; -1: not said. */
    int64_t total_bytes;
    uint64_t first_byte;    /* set for a 206 with a Content-Range */
    bool has_content_range; /* one that could be parsed */
    /* The body has a visible end (Content-Length, chunks, HTTP/2): if truncated, ERR_NET. Else it ends with the connection. */
    bool is_delimited;
    bool is_encoded;        /* Content-Encoding other than identity: its length is not the file's */
    int64_t retry_after_ns; /* Retry-After; -1: none */
    struct str etag; /* strings: ptr NULL where not sent; valid until the transfer is freed */
    struct str last_modified;
};

/* 0 to go on; -1 with *err filled ends the transfer with that error. They are called from http_wait (and http_step) and must
   not free a transfer. */
typedef int (*http_head_fn)(void *ctx, const struct http_head *head, struct err *err);
typedef int (*http_body_fn)(void *ctx, const uint8_t *ptr, size_t len, struct err *err);

struct http_request {
    const char *url;
    bool has_range;
    uint64_t first_byte, last_byte; /* inclusive */
    http_head_fn on_head;           /* may be NULL */
    http_body_fn on_body;           /* may be NULL: body is dropped */
    void *ctx;
};

/* The request's strings are copied. ERR_USAGE: an invalid URL, or a scheme that is not allowed. */
MUST_CHECK int http_start(struct http *http, const struct http_request *request,
                          struct http_transfer **ret_transfer, struct err *err);
/* Call after each http_wait. A status of 400 and over is not a failure: see head. STEP_FAIL: ERR_NET (refused, reset, cut short,
   DNS), ERR_TIMEOUT, ERR_AUTH (login refused by a proxy), ERR_INTEGRITY (TLS certificate), ERR_FETCH (a redirect in a circle, to
   another scheme, or from https to http), or a callback's. Only ERR_NET and ERR_TIMEOUT are worth another try. */
enum step http_step(struct http_transfer *transfer, struct err *err);
/* Stops it if it runs. NULL is fine. */
void http_transfer_free(struct http_transfer *transfer);
CLEANUP_POINTER(http_transfer, struct http_transfer, http_transfer_free);
/* From now on; 0: no limit. */
void http_set_rate(struct http_transfer *transfer, uint64_t rate_bytes_per_s);

/* scheme://host[:port]/path, for messages and events: no user info, query, fragment or control byte. An unreadable URL is not
   shown at all. */
char *http_url_shown(struct arena *arena, const char *url);
