/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl's multi-socket interface on the one loop, and what its results mean to us. */
#include "base/base.h"

#include "net/http_impl.h"

#include <curl/curl.h>
#include <poll.h>

#define KEPT_CONNECTIONS 32L

static void transfer_ended(CURL *easy, CURLcode result)
{
    struct http_transfer *transfer = NULL;
    if (curl_easy_getinfo(easy, CURLINFO_PRIVATE, &transfer) != CURLE_OK || !transfer) {
        return;
    }
    transfer->is_done = true;
    transfer->result = (int)result;
}

static void take_ended(struct http_lane *lane)
{
    const CURLMsg *message;
    int n_left;
    while ((message = curl_multi_info_read(lane->multi, &n_left))) {
        if (message->msg == CURLMSG_DONE) {
            transfer_ended(message->easy_handle, message->data.result);
        }
    }
}

static void act(struct http_lane *lane, curl_socket_t fd, int ready)
{
    int n_running;
    CURLMcode code = curl_multi_socket_action(lane->multi, fd, ready, &n_running);
    if (code != CURLM_OK && lane->err.code == ERR_NONE) {
        (void)!err_set(&lane->err, ERR_INTERNAL, "libcurl: %s", curl_multi_strerror(code));
    }
    take_ended(lane);
}

static void on_ready(void *ctx, int fd, short events)
{
    int ready = (events & (POLLIN | POLLHUP) ? CURL_CSELECT_IN : 0) |
                (events & POLLOUT ? CURL_CSELECT_OUT : 0) |
                (events & (POLLERR | POLLNVAL) ? CURL_CSELECT_ERR : 0);
    act(ctx, fd, ready);
}

static void on_due(void *ctx)
{
    struct http_lane *lane = ctx;
    lane->timer = 0;
    act(lane, CURL_SOCKET_TIMEOUT, 0);
}

static int on_socket(CURL *easy UNUSED, curl_socket_t fd, int what, void *ctx, void *socket UNUSED)
{
    struct http_lane *lane = ctx;
    short events =
        (short)((what & CURL_POLL_IN ? POLLIN : 0) | (what & CURL_POLL_OUT ? POLLOUT : 0));
    loop_unwatch(lane->loop, fd);
    if (what == CURL_POLL_REMOVE) {
        return 0;
    }
    if (lane->err.code != ERR_NONE) {
        return -1;
    }
    return loop_watch(lane->loop, fd, events, on_ready, lane, &lane->err);
}

static int on_timeout(CURLM *multi UNUSED, long timeout_ms, void *ctx)
{
    struct http_lane *lane = ctx;
    struct loop *loop = lane->loop;
    loop_timer_drop(loop, lane->timer);
    lane->timer = 0;
    if (timeout_ms < 0) {
        return 0;
    }
    if (lane->err.code != ERR_NONE) {
        return -1;
    }
    return loop_timer_add(loop, loop_now_ns(loop) + timeout_ms * NS_PER_MS, on_due, lane,
                          &lane->timer, &lane->err);
}

int lane_init(struct http_lane *lane, struct loop *loop, struct err *err)
{
    bool is_bad = false;
    lane->loop = loop;
    lane->multi = curl_multi_init();
    if (!lane->multi) {
        return err_set(err, ERR_INTERNAL, "libcurl: curl_multi_init failed");
    }
    is_bad |= curl_multi_setopt(lane->multi, CURLMOPT_SOCKETFUNCTION, on_socket) != CURLM_OK;
    is_bad |= curl_multi_setopt(lane->multi, CURLMOPT_SOCKETDATA, lane) != CURLM_OK;
    is_bad |= curl_multi_setopt(lane->multi, CURLMOPT_TIMERFUNCTION, on_timeout) != CURLM_OK;
    is_bad |= curl_multi_setopt(lane->multi, CURLMOPT_TIMERDATA, lane) != CURLM_OK;
    is_bad |= curl_multi_setopt(lane->multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING) != CURLM_OK;
    is_bad |= curl_multi_setopt(lane->multi, CURLMOPT_MAXCONNECTS, KEPT_CONNECTIONS) != CURLM_OK;
    return is_bad ? err_set(err, ERR_INTERNAL, "libcurl: curl_multi_setopt failed") : 0;
}

void lane_release(struct http_lane *lane)
{
    curl_multi_cleanup(lane->multi);
    loop_timer_drop(lane->loop, lane->timer);
}

/* --- how it ended ----------------------------------------------------------------------------------- */

static enum err_code code_of(const struct http_transfer *transfer, CURLcode result, long status)
{
    switch ((int)result) {
    case CURLE_OPERATION_TIMEDOUT:
        return ERR_TIMEOUT;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CERTPROBLEM:
        return ERR_INTEGRITY;
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_URL_MALFORMAT:
        return transfer->is_redirected ? ERR_FETCH : ERR_USAGE;
    case CURLE_TOO_MANY_REDIRECTS:
        return ERR_FETCH;
    case CURLE_UNSUPPORTED_PROTOCOL: /* the scheme of a redirect; or the answer is not HTTP */
        return status / 100 == 3 ? ERR_FETCH : ERR_NET;
    case CURLE_LOGIN_DENIED:
    case CURLE_AUTH_ERROR:
        return ERR_AUTH;
    case CURLE_OUT_OF_MEMORY: /* also what libcurl reports for a header line over its limit */
        return transfer->header_bytes > 0 && !transfer->has_head ? ERR_FETCH : ERR_INTERNAL;
    default:
        return ERR_NET;
    }
}

int transfer_failed(struct http_transfer *transfer, struct err *err)
{
    CURLcode result = (CURLcode)transfer->result;
    long status = 0;
    long proxy_status = 0;
    long n_redirects = 0;
    const char *text = transfer->error_text[0] ? transfer->error_text : curl_easy_strerror(result);
    bool is_long_line =
        result == CURLE_OUT_OF_MEMORY && code_of(transfer, result, status) == ERR_FETCH;
    (void)curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_easy_getinfo(transfer->easy, CURLINFO_HTTP_CONNECTCODE, &proxy_status);
    (void)curl_easy_getinfo(transfer->easy, CURLINFO_REDIRECT_COUNT, &n_redirects);
    transfer->is_redirected = n_redirects > 0 || status / 100 == 3;
    for (char *c = transfer->error_text; *c; c++) {
        *c = *c < ' ' || *c == 0x7f ? '?' : *c;
    }
    if (proxy_status == 407) {
        return err_set(err, ERR_AUTH, HTTP_PROXY_LOGIN, transfer->shown);
    }
    if (proxy_status == 403) {
        return err_set(err, ERR_AUTH, "%s: the proxy does not allow it (403)", transfer->shown);
    }
    return err_set(err, code_of(transfer, result, status), "%s: %s%s", transfer->shown,
                   transfer->is_redirected ? "redirected: " : "",
                   is_long_line ? "a header line is longer than libcurl accepts" : text);
}
