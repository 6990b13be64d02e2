/* SPDX-License-Identifier: Apache-2.0 */
/* Gives up a transfer that delivers nothing, or next to nothing. */
#include "base/base.h"

#include "net/http_impl.h"

#define LEAST_BYTES_PER_S 1000 /* also configured for git */

/* Half the rate limit, if there is one that low. */
static uint64_t least_rate(const struct http_transfer *transfer)
{
    uint64_t half = transfer->rate_bytes_per_s / 2;
    return half && half < LEAST_BYTES_PER_S ? half : LEAST_BYTES_PER_S;
}

/* Measured over successive windows of stall_timeout_ns. */
static bool is_too_slow(struct http_transfer *transfer, int64_t now_ns)
{
    int64_t span_ns = now_ns - transfer->window_ns;
    bool is_over = span_ns >= transfer->stall_timeout_ns;
    double least = (double)least_rate(transfer) * (double)span_ns / (double)NS_PER_S;
    if (is_over && transfer->window_bytes && (double)transfer->window_bytes < least) {
        return true;
    }
    if (is_over) {
        transfer->window_ns = now_ns;
        transfer->window_bytes = 0;
    }
    return false;
}

static void on_stall_due(void *ctx)
{
    struct http_transfer *transfer = ctx;
    struct loop *loop = transfer->lane->loop;
    int64_t now_ns = loop_now_ns(loop);
    int64_t due_ns = transfer->alive_ns + transfer->stall_timeout_ns;
    transfer->stall_timer = 0;
    if (transfer->is_done) {
        return;
    }
    if (is_too_slow(transfer, now_ns)) {
        (void)!err_set(&transfer->err, ERR_TIMEOUT,
                       "%s: %" PRIu64 " bytes in %.1f s, slower than %" PRIu64 " bytes/s",
                       transfer->shown, transfer->window_bytes,
                       (double)(now_ns - transfer->window_ns) / (double)NS_PER_S,
                       least_rate(transfer));
        transfer->is_done = true;
        return;
    }
    if (due_ns <= now_ns) {
        (void)!err_set(&transfer->err, ERR_TIMEOUT, "%s: no byte for %.1f s", transfer->shown,
                       (double)transfer->stall_timeout_ns / (double)NS_PER_S);
        transfer->is_done = true;
        return;
    }
    if (loop_timer_add(loop, due_ns, on_stall_due, transfer, &transfer->stall_timer,
                       &transfer->err) < 0) {
        transfer->is_done = true;
    }
}

int transfer_watch(struct http_transfer *transfer, struct err *err)
{
    struct loop *loop = transfer->lane->loop;
    return loop_timer_add(loop, loop_now_ns(loop) + transfer->stall_timeout_ns, on_stall_due,
                          transfer, &transfer->stall_timer, err);
}
