/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "backend_cuda/tune.h"

#include "base/arena.h"
#include "base/log.h"
#include "base/rng.h"
#include "core/half.h"

#define ROUNDS        6 /* that count, after one that does not */
#define PATTERN_BYTES (1 << 20)
#define FLUSH_FACTOR  2 /* times the L2 cache */
#define SLOW_FACTOR                                                                                \
    1.5 /* a way this much slower than the best after two rounds is not timed any more */

struct bed {
    cudaStream_t stream;
    bool has_stream; /* of its own */
    cudaEvent_t start, stop;
    void *flush;
    size_t flush_bytes;
    void *buffers[TUNE_BUFFERS_MAX];
    int n_buffers;
    bool is_short; /* of memory */
};

static bool ok(cudaError_t status, const char *what, struct err *err)
{
    return status == cudaSuccess || err_set(err, ERR_WORKLOAD, "timing plans: %s: %s", what,
                                            cudaGetErrorString(status)) == 0;
}

static bool take(struct bed *bed, size_t bytes, void **ret_ptr, struct err *err)
{
    cudaError_t status = cudaMalloc(ret_ptr, bytes);
    bed->is_short |= status == cudaErrorMemoryAllocation;
    return ok(status, "memory", err);
}

static void bed_release(struct bed *bed)
{
    for (int i = 0; i < bed->n_buffers; i++) {
        (void)cudaFree(bed->buffers[i]);
    }
    (void)cudaFree(bed->flush);
    if (bed->start) {
        (void)cudaEventDestroy(bed->start);
    }
    if (bed->stop) {
        (void)cudaEventDestroy(bed->stop);
    }
    if (bed->has_stream) {
        (void)cudaStreamDestroy(bed->stream);
    }
}

/* Realistic numbers: power, and with it the clock, depends on the bits. */
static void make_pattern(enum dtype dtype, void *pattern)
{
    struct rng rng;
    rng_init(&rng, 1);
    for (int64_t i = 0; i < PATTERN_BYTES / dtype_bytes(dtype); i++) {
        float value = (float)(rng_f64(&rng) * 2.0 - 1.0);
        if (dtype == DT_F16) {
            ((uint16_t *)pattern)[i] = half_from_float(value);
        } else {
            ((float *)pattern)[i] = value;
        }
    }
}

static bool fill(struct bed *bed, void *buffer, int64_t bytes, const void *pattern, struct err *err)
{
    int64_t first = bytes < PATTERN_BYTES ? bytes : PATTERN_BYTES;
    if (!ok(cudaMemcpyAsync(buffer, pattern, (size_t)first, cudaMemcpyHostToDevice, bed->stream),
            "copy", err)) {
        return false;
    }
    for (int64_t done = first; done < bytes; done *= 2) {
        int64_t more = bytes - done < done ? bytes - done : done;
        if (!ok(cudaMemcpyAsync((char *)buffer + done, buffer, (size_t)more,
                                cudaMemcpyDeviceToDevice, bed->stream),
                "copy", err)) {
            return false;
        }
    }
    return true;
}

/* Of a buffer: the patterns are in half precision and in float. */
static enum dtype dtype_of(const struct tune *tune, int buffer)
{
    enum dtype dtype = tune->dtypes ? tune->dtypes[buffer] : tune->dtype;
    return dtype == DT_F16 ? DT_F16 : DT_F32;
}

static bool use_stream(struct bed *bed, const struct tune *tune, struct err *err)
{
    bed->stream = tune->stream;
    if (bed->stream) {
        return true;
    }
    bed->has_stream =
        ok(cudaStreamCreateWithFlags(&bed->stream, cudaStreamNonBlocking), "stream", err);
    return bed->has_stream;
}

static bool bed_make(struct bed *bed, const struct tune *tune, char *const patterns[DT_COUNT],
                     struct err *err)
{
    int device = 0;
    int l2_bytes = 0;
    if (!ok(cudaGetDevice(&device), "device", err) ||
        !ok(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, device), "L2 cache", err) ||
        !use_stream(bed, tune, err) || !ok(cudaEventCreate(&bed->start), "event", err) ||
        !ok(cudaEventCreate(&bed->stop), "event", err)) {
        return false;
    }
    bed->flush_bytes = (size_t)l2_bytes * FLUSH_FACTOR;
    if (!take(bed, bed->flush_bytes, &bed->flush, err)) {
        return false;
    }
    for (int i = 0; i < tune->n_buffers; i++) {
        int64_t bytes = tune->buffer_bytes[i] > 0 ? tune->buffer_bytes[i] : 16;
        if (!take(bed, (size_t)bytes, &bed->buffers[i], err)) {
            return false;
        }
        bed->n_buffers++;
        if (!fill(bed, bed->buffers[i], bytes, patterns[dtype_of(tune, i)], err)) {
            return false;
        }
    }
    return ok(cudaStreamSynchronize(bed->stream), "filling buffers", err);
}

/* Nanoseconds of one run, or -1 if the way fails. */
static bool time_one(const struct bed *bed, const struct tune *tune, int way, int64_t *ret_ns,
                     struct err *err)
{
    float ms = 0.0f;
    *ret_ns = -1;
    if (!ok(cudaMemsetAsync(bed->flush, 0, bed->flush_bytes, bed->stream), "flush", err) ||
        !ok(cudaEventRecord(bed->start, bed->stream), "event", err)) {
        return false;
    }
    bool is_run = tune->run(tune->ctx, way, bed->buffers, bed->stream);
    if (!ok(cudaEventRecord(bed->stop, bed->stream), "event", err) ||
        !ok(cudaEventSynchronize(bed->stop), "a plan that was tried", err) ||
        !ok(cudaEventElapsedTime(&ms, bed->start, bed->stop), "event", err)) {
        return false;
    }
    if (is_run) {
        *ret_ns = (int64_t)((double)ms * 1e6) + 1;
    }
    return true;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int64_t tune_median(int64_t *values, int n)
{
    ASSERT(n >= 1);
    qsort(values, (size_t)n, sizeof(*values), by_value);
    return values[(n - 1) / 2];
}

/* After a round: drops ways that cannot catch up any more. */
static void drop_slow(int64_t (*samples)[ROUNDS], int n_ways, int n_samples, bool *is_in)
{
    int64_t best = INT64_MAX;
    for (int i = 0; i < n_ways; i++) {
        for (int k = 0; k < n_samples && is_in[i]; k++) {
            best = samples[i][k] < best ? samples[i][k] : best;
        }
    }
    for (int i = 0; i < n_ways; i++) {
        bool is_near = false;
        for (int k = 0; k < n_samples && is_in[i]; k++) {
            is_near |= (double)samples[i][k] <= (double)best * SLOW_FACTOR;
        }
        is_in[i] &= is_near;
    }
}

static bool time_all(const struct bed *bed, const struct tune *tune, int64_t *ret_ns,
                     struct err *err)
{
    int64_t samples[TUNE_WAYS_MAX][ROUNDS];
    bool is_in[TUNE_WAYS_MAX];
    int n_samples[TUNE_WAYS_MAX] = {0};
    for (int i = 0; i < tune->n_ways; i++) {
        is_in[i] = true;
    }
    for (int round = -1; round < ROUNDS; round++) {
        for (int i = 0; i < tune->n_ways; i++) {
            int64_t ns = 0;
            if (!is_in[i]) {
                continue;
            }
            if (!time_one(bed, tune, i, &ns, err)) {
                return false;
            }
            is_in[i] = ns >= 0;
            if (round >= 0 && ns >= 0) {
                samples[i][n_samples[i]++] = ns;
            }
        }
        if (round == 1) {
            drop_slow(samples, tune->n_ways, round + 1, is_in);
        }
    }
    for (int i = 0; i < tune->n_ways; i++) {
        ret_ns[i] = n_samples[i] > 0 ? tune_median(samples[i], n_samples[i]) : -1;
    }
    return true;
}

int tune_choose(const struct tune *tune, int64_t *ret_ns, int *ret_best, struct err *err)
{
    struct bed bed = {0};
    static const enum dtype TYPES[] = {DT_F16, DT_F32};
    char *patterns[DT_COUNT] = {0};
    ASSERT(tune->n_ways >= 1 && tune->n_ways <= TUNE_WAYS_MAX);
    for (size_t i = 0; i < ARRAY_LEN(TYPES); i++) {
        patterns[TYPES[i]] = xmalloc(PATTERN_BYTES);
        make_pattern(TYPES[i], patterns[TYPES[i]]);
    }
    struct err why = {0};
    bool is_done = bed_make(&bed, tune, patterns, &why) && time_all(&bed, tune, ret_ns, &why);
    for (size_t i = 0; i < ARRAY_LEN(TYPES); i++) {
        free(patterns[TYPES[i]]);
    }
    bed_release(&bed);
    if (bed.is_short) {
        (void)cudaGetLastError(); /* it is handled here */
        log_line(LOG_WARN, "%s; nothing is timed, and the first plan is taken", why.msg);
        memset(ret_ns, 0, (size_t)tune->n_ways * sizeof(*ret_ns));
        *ret_best = 0;
        return 0;
    }
    if (!is_done) {
        *err = why;
        return -1;
    }
    int best = -1;
    for (int i = 0; i < tune->n_ways; i++) {
        if (ret_ns[i] >= 0 && (best < 0 || ret_ns[i] < ret_ns[best])) {
            best = i;
        }
    }
    if (best < 0) {
        return err_set(err, ERR_WORKLOAD, "timing plans: none of %d works", tune->n_ways);
    }
    *ret_best = best;
    return 0;
}
