/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by net/http.c and net/http_lane.c (libcurl) only. */
#ifndef NET_HTTP_IMPL_H
#define NET_HTTP_IMPL_H

#include "net/http.h"

/* One multi handle with its own connections. */
struct http_lane {
    struct loop *loop; /* borrowed */
    void *multi;       /* CURLM */
    uint64_t timer;
    struct err err; /* of the loop: no more descriptors or timers */
};

/* A connection for each transfer. */
MUST_CHECK int lane_init(struct http_lane *lane, struct loop *loop, struct err *err);
void lane_release(struct http_lane *lane);

struct file_read { /* a file:// transfer */
    int fd;        /* -1: it is none */
    uint64_t left_bytes;
    uint8_t *buf; /* owned */
    uint64_t timer;
};

struct http_transfer {
    struct http *http; /* borrowed */
    struct http_transfer *next, **place;
    struct arena arena; /* strings of the request and of the head */
    const char *shown;  /* the URL, for messages */
    void *easy;         /* CURL; NULL: file:// */
    void *headers;      /* struct curl_slist */
    struct http_lane *lane;
    char *error_text;
    struct file_read file;
    struct http_head head;
    bool has_head;
    bool is_done;
    bool is_redirected;
    bool drops_body; /* of an error status */
    int result;      /* CURLcode, once is_done */
    struct err err;  /* of a callback or of the file */
    int64_t stall_timeout_ns;
    int64_t alive_ns;  /* when the last byte came, or the start */
    int64_t window_ns; /* since when window_bytes came */
    uint64_t window_bytes;
    uint64_t rate_bytes_per_s; /* to which it is limited; 0: none */
    uint64_t header_bytes;
    uint64_t stall_timer;
    http_head_fn on_head;
    http_body_fn on_body;
    void *ctx;
};

/* Fills *err from libcurl's result. */
int transfer_failed(struct http_transfer *transfer, struct err *err);
/* Give head and body to the callbacks; -1: transfer->err is set. */
int transfer_give_head(struct http_transfer *transfer);
int transfer_give_body(struct http_transfer *transfer, const uint8_t *ptr, size_t len);

#endif
