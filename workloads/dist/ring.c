/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "dist/ring.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/fs.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#define BLOCK_BYTES                                                                                \
    (256 << 10) /* stays in a processor's own cache between arriving and being added */
#define HEADER_BYTES 32
#define TICK_MS      500

enum ring_op { RING_SUM = 1, RING_GATHER, RING_BROADCAST };

/* What one step of an operation sends and receives at the same time. */
struct exchange {
    const uint8_t *out;
    int64_t n_out, out_done;
    uint8_t *in;
    int64_t n_in, in_done;
    bool is_sum;      /* in += what arrives, else in = */
    enum dtype dtype; /* of a sum */
    int64_t in_block; /* bytes that have arrived and are not yet added */
};

static void add_block(struct exchange *x, const uint8_t *block, int64_t bytes)
{
    uint8_t *to = x->in + x->in_done;
    if (x->dtype == DT_F64) {
        double *sum = (double *)(void *)to; /* whole elements of an aligned array */
        const double *term = (const double *)(const void *)block;
        for (int64_t i = 0; i < bytes / (int64_t)sizeof(*sum); i++) {
            sum[i] += term[i];
        }
    } else {
        float *sum = (float *)(void *)to;
        const float *term = (const float *)(const void *)block;
        for (int64_t i = 0; i < bytes / (int64_t)sizeof(*sum); i++) {
            sum[i] += term[i];
        }
    }
    x->in_done += bytes;
}

/* ---- failures ---- */

static int before(const struct ring *ring)
{
    return (ring->rank + ring->n_ranks - 1) % ring->n_ranks;
}

static int after(const struct ring *ring)
{
    return (ring->rank + 1) % ring->n_ranks;
}

static int blame(struct ring *ring, int rank, const char *why, struct err *err)
{
    char text[WIRE_TEXT_MAX];
    snprintf(text, sizeof(text), "rank %d died (seen by rank %d: %s)", rank, ring->rank, why);
    return ring->watch ? watch_report(ring->watch, rank, text, err)
                       : err_set(err, ERR_INTERNAL, "%s", text);
}

/* ---- one step ---- */

/* 1 if something moved, 0 if not, -1. */
static int push(struct ring *ring, struct exchange *x, struct err *err)
{
    if (x->out_done == x->n_out) {
        return 0;
    }
    ssize_t n =
        send(ring->next, x->out + x->out_done, (size_t)(x->n_out - x->out_done), MSG_NOSIGNAL);
    if (n > 0) {
        x->out_done += n;
        return 1;
    }
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        return blame(ring, after(ring), err_errno_text(errno), err);
    }
    return 0;
}

static int pull(struct ring *ring, struct exchange *x, struct err *err)
{
    int64_t left = x->n_in - x->in_done - x->in_block;
    if (left == 0) {
        return 0;
    }
    uint8_t *to = x->is_sum ? ring->block + x->in_block : x->in + x->in_done;
    int64_t room = x->is_sum ? BLOCK_BYTES - x->in_block : left;
    ssize_t n = recv(ring->prev, to, (size_t)(left < room ? left : room), 0);
    if (n == 0) {
        return blame(ring, before(ring), "its connection closed", err);
    }
    if (n < 0) {
        return errno == EAGAIN || errno == EINTR
                   ? 0
                   : blame(ring, before(ring), err_errno_text(errno), err);
    }
    if (!x->is_sum) {
        x->in_done += n;
        return 1;
    }
    x->in_block += n;
    int64_t whole = x->in_block / dtype_bytes(x->dtype) * dtype_bytes(x->dtype);
    if (x->in_block == BLOCK_BYTES || x->in_done + x->in_block == x->n_in) {
        add_block(x, ring->block, whole);
        x->in_block -= whole;
        memmove(ring->block, ring->block + whole, (size_t)x->in_block);
    }
    return 1;
}

/* Until a connection is ready, there is a verdict, or a tick. */
static int wait_some(struct ring *ring, const struct exchange *x, int64_t since_ns, struct err *err)
{
    struct pollfd fds[3] = {
        {.fd = x->out_done < x->n_out ? ring->next : -1, .events = POLLOUT},
        {.fd = x->in_done + x->in_block < x->n_in ? ring->prev : -1, .events = POLLIN},
        {.fd = ring->watch ? watch_fd(ring->watch) : -1, .events = POLLIN},
    };
    if (ring->stop && *ring->stop != 0) {
        return err_set(err, ERR_INTERRUPTED, "signal %d", (int)*ring->stop);
    }
    (void)poll(fds, ARRAY_LEN(fds), TICK_MS);
    if (ring->watch) {
        return watch_check(ring->watch, err);
    }
    return clock_now_ns() - since_ns < ring->timeout_ns
               ? 0
               : blame(ring, fds[1].fd >= 0 ? before(ring) : after(ring), "time-out", err);
}

static int exchange(struct ring *ring, struct exchange *x, struct err *err)
{
    int64_t since_ns = clock_now_ns();
    while (x->out_done < x->n_out || x->in_done < x->n_in) {
        int pushed = push(ring, x, err);
        int pulled = pushed < 0 ? -1 : pull(ring, x, err);
        if (pulled < 0) {
            return -1;
        }
        if (pushed == 0 && pulled == 0) {
            if (wait_some(ring, x, since_ns, err) < 0) {
                return -1;
            }
        } else if (!ring->watch) {
            since_ns = clock_now_ns();
        }
    }
    return 0;
}

/* ---- operations ---- */

struct header {
    uint32_t op, dtype;
    uint64_t number, bytes, root;
};
_Static_assert(sizeof(struct header) == HEADER_BYTES, "no gaps; all ranks have one byte order");

static int begin(struct ring *ring, const struct header *wanted, struct err *err)
{
    struct header mine = *wanted;
    struct header theirs = {0};
    ring->number++;
    mine.number = ring->number;
    if (ring->watch) {
        watch_count(ring->watch);
    }
    struct exchange x = {.out = (const uint8_t *)&mine,
                         .n_out = HEADER_BYTES,
                         .in = (uint8_t *)&theirs,
                         .n_in = HEADER_BYTES};
    if (exchange(ring, &x, err) < 0) {
        return -1;
    }
    if (memcmp(&mine, &theirs, sizeof(mine)) != 0) {
        char text[WIRE_TEXT_MAX];
        snprintf(text, sizeof(text),
                 "rank %d is at operation %" PRIu64 " (kind %" PRIu32 ", %" PRIu64
                 " bytes), rank %d at %" PRIu64 " (kind %" PRIu32 ", %" PRIu64 " bytes)",
                 before(ring), theirs.number, theirs.op, theirs.bytes, ring->rank, mine.number,
                 mine.op, mine.bytes);
        return ring->watch ? watch_report(ring->watch, before(ring), text, err)
                           : err_set(err, ERR_INTERNAL, "%s", text);
    }
    return 0;
}

/* Part `idx` of `count` elements cut into n_ranks; idx may be below 0. */
struct chunk {
    int64_t offset, bytes;
};

static struct chunk chunk_at(const struct ring *ring, int64_t count, enum dtype dtype, int idx)
{
    int64_t n = ring->n_ranks;
    int64_t at = (idx % n + n) % n;
    /* Without count * at, which might overflow. */
    int64_t each = count / n;
    int64_t more = count % n;
    int64_t first = at * each + (at < more ? at : more);
    int64_t size = each + (at < more ? 1 : 0);
    return (struct chunk){first * dtype_bytes(dtype), size * dtype_bytes(dtype)};
}

static int all_reduce(void *self, void *data, int64_t count, enum dtype dtype, struct err *err)
{
    struct ring *ring = self;
    uint8_t *bytes = data;
    int n_steps = ring->n_ranks - 1;
    const struct header header = {
        .op = RING_SUM, .dtype = (uint32_t)dtype, .bytes = (uint64_t)(count * dtype_bytes(dtype))};
    if (begin(ring, &header, err) < 0) {
        return -1;
    }
    for (int step = 0; step < 2 * n_steps; step++) {
        bool is_sum = step < n_steps;
        struct chunk out = chunk_at(ring, count, dtype, ring->rank - step);
        struct chunk in = chunk_at(ring, count, dtype, ring->rank - step - 1);
        struct exchange x = {.out = bytes + out.offset,
                             .n_out = out.bytes,
                             .in = bytes + in.offset,
                             .n_in = in.bytes,
                             .is_sum = is_sum,
                             .dtype = dtype};
        if (exchange(ring, &x, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int all_gather(void *self, void *data, int64_t bytes, struct err *err)
{
    struct ring *ring = self;
    uint8_t *rows = data;
    const struct header header = {.op = RING_GATHER, .bytes = (uint64_t)bytes};
    if (begin(ring, &header, err) < 0) {
        return -1;
    }
    for (int step = 0; step < ring->n_ranks - 1; step++) {
        int64_t out = (ring->rank - step + ring->n_ranks) % ring->n_ranks;
        int64_t in = (ring->rank - step - 1 + ring->n_ranks) % ring->n_ranks;
        struct exchange x = {
            .out = rows + out * bytes, .n_out = bytes, .in = rows + in * bytes, .n_in = bytes};
        if (exchange(ring, &x, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Passed on block by block: the last rank has it soon after the second. */
static int broadcast(void *self, void *data, int64_t bytes, int root, struct err *err)
{
    struct ring *ring = self;
    uint8_t *at = data;
    int distance = (ring->rank - root + ring->n_ranks) % ring->n_ranks;
    const struct header header = {
        .op = RING_BROADCAST, .bytes = (uint64_t)bytes, .root = (uint64_t)root};
    if (begin(ring, &header, err) < 0) {
        return -1;
    }
    for (int64_t done = 0; done < bytes; done += BLOCK_BYTES) {
        int64_t size = bytes - done < BLOCK_BYTES ? bytes - done : BLOCK_BYTES;
        struct exchange get = {.in = at + done, .n_in = distance > 0 ? size : 0};
        struct exchange give = {.out = at + done, .n_out = distance < ring->n_ranks - 1 ? size : 0};
        if (exchange(ring, &get, err) < 0 || exchange(ring, &give, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int check(void *self, struct err *err)
{
    struct ring *ring = self;
    return ring->watch ? watch_check(ring->watch, err) : 0;
}

void ring_init(struct ring *ring, int rank, int n_ranks, int next, int prev)
{
    *ring = (struct ring){.rank = rank, .n_ranks = n_ranks, .next = next, .prev = prev};
    ring->block = xmalloc(BLOCK_BYTES);
    ring->timeout_ns = 30 * NS_PER_S;
}

void ring_release(struct ring *ring)
{
    if (ring->block) {
        fd_close(&ring->next);
        fd_close(&ring->prev);
        free(ring->block);
        *ring = (struct ring){0};
    }
}

struct comm ring_comm(struct ring *ring)
{
    return (struct comm){.name = "tcp_ring",
                         .self = ring,
                         .rank = ring->rank,
                         .n_ranks = ring->n_ranks,
                         .all_reduce = all_reduce,
                         .all_gather = all_gather,
                         .broadcast = broadcast,
                         .check = check};
}
