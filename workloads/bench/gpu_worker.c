/* SPDX-License-Identifier: Apache-2.0 */
/* One GPU of several. Each measure's result is checked after it was timed: a wrong one gives no number. */
#include "base/base.h"

#include "bench/gpus.h"

#ifdef REPERF_HAVE_CUDA

#include "backend_cuda/cuda.h"
#include "backend_cuda/memory.h"
#include "base/arena.h"
#include "base/clock.h"
#include "dist/job.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define COPY_BYTES                                                                                 \
    (INT64_C(1) << 30) /* of each of the two buffers: many times the largest L2 cache */
#define REDUCE_BYTES    (INT64_C(1) << 28)
#define EDGE_MAX        8192 /* of the matrices: enough for all multiprocessors */
#define EDGE_STEP       64
#define PATTERN_MAX     (1 << 20) /* floats */
#define LOOK_MAX        4096      /* elements of each place that is checked */
#define N_LOOKS         3
#define MARKS           2
#define NO_NETWORK      "0000000000000000000000000000000000000000000000000000000000000000"
#define TUNE_S          20
#define MEET_NS         (60 * NS_PER_S)
#define SILENCE_NS      (30 * NS_PER_S)
#define PASSES_FIRST    1
#define PASSES_MAX      (1 << 20)
#define AIM_SHARE       4 /* a quarter of the target is enough to time a pass */
#define PARTS_OF_MEMORY 4 /* of what is free, of which a measure takes three at most */

struct worker {
    const struct gpu_place *place;
    int fd;
    struct cuda cuda;
    struct backend backend;
    struct job job;
    bool is_joined;
    enum gpu_measure measure;
    void *from, *other, *to, *workspace; /* on the GPU; owned */
    int64_t bytes;                       /* of from, and of to */
    int64_t edge;
    struct kernel_args product;
    bool is_planned;
};

/* Small whole numbers without a pattern: their products and sums are exact in half precision too. */
static float small_number(int64_t idx)
{
    uint32_t x = (uint32_t)idx * 2654435761U;
    x ^= x >> 15;
    x *= 2246822519U;
    return (float)(int)((x >> 16) % 3) - 1.0F;
}

static int64_t pattern_length(const struct worker *w)
{
    int64_t n = w->bytes / (int64_t)sizeof(float);
    return n < PATTERN_MAX ? n : PATTERN_MAX;
}

static int said(const struct worker *w, struct err *err)
{
    return err_set(err, w->cuda.err.code, "%s", w->cuda.err.msg);
}

static void *take(struct worker *w, int64_t bytes, struct err *err)
{
    void *place = w->backend.alloc(w->backend.self, bytes);
    if (!place) {
        (void)!err_set(err, ERR_WORKLOAD, "%" PRId64 " MiB do not fit", bytes >> 20);
    }
    return place;
}

static void give_back(struct worker *w, void **place)
{
    w->backend.free(w->backend.self, *place);
    *place = NULL;
}

/* Memory that a measure may take in all. */
static int64_t memory_of(const struct worker *w)
{
    int64_t free_bytes = w->backend.async.memory_available(w->backend.self);
    int64_t most = free_bytes / PARTS_OF_MEMORY * (PARTS_OF_MEMORY - 1);
    int64_t asked = w->place->memory_bytes;
    return asked > 0 && asked < most ? asked : most;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Elements at idx of a buffer on the GPU, as numbers. */
static int look_at(struct worker *w, const void *place, enum dtype dtype, int64_t idx, int64_t n,
                   float *ret_numbers, struct err *err)
{
    const struct tensor_desc desc = {.shape = SHAPE(n), .dtype = dtype};
    const char *at = (const char *)place + idx * dtype_bytes(dtype);
    w->backend.download(w->backend.self, &desc, at, ret_numbers);
    return w->cuda.err.code == ERR_NONE ? 0 : said(w, err);
}

/* ---- a copy on the GPU, and what it shares with sums ---- */

static void copy(struct worker *w, void *to, const void *from, int64_t bytes)
{
    cuda_ok(&w->cuda,
            cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDeviceToDevice, w->cuda.streams[0]),
            "copy on the device");
}

/* Two buffers of so many bytes. Element i of the first is `first` plus `step` times its number in the repeated pattern. */
static int take_both(struct worker *w, int64_t bytes, float first, float step, struct err *err)
{
    w->bytes = bytes;
    w->from = take(w, w->bytes, err);
    w->to = w->from ? take(w, w->bytes, err) : NULL;
    if (!w->to) {
        return -1;
    }
    int64_t n = pattern_length(w);
    const struct tensor_desc desc = {.shape = SHAPE(n), .dtype = DT_F32};
    CLEANUP(free) float *pattern = xcalloc((size_t)n, sizeof(*pattern));
    for (int64_t i = 0; i < n; i++) {
        pattern[i] = first + step * (float)i;
    }
    w->backend.upload(w->backend.self, &desc, pattern, w->from);
    for (int64_t done = n * (int64_t)sizeof(float); done < w->bytes; done *= 2) {
        copy(w, (char *)w->from + done, w->from, least(done, w->bytes - done));
    }
    return 0;
}

/* Checks the result at the beginning, in the middle and at the end. */
static int check_pattern(struct worker *w, float first, float step, const char *what,
                         struct err *err)
{
    CLEANUP(free) float *found = xcalloc(LOOK_MAX, sizeof(*found));
    int64_t n_all = w->bytes / (int64_t)sizeof(float);
    int64_t n = least(LOOK_MAX, n_all);
    int64_t length = pattern_length(w);
    for (int64_t at = 0; at < N_LOOKS; at++) {
        int64_t begin = (n_all - n) / (N_LOOKS - 1) * at;
        if (look_at(w, w->to, DT_F32, begin, n, found, err) < 0) {
            return -1;
        }
        for (int64_t i = 0; i < n; i++) {
            float expected = first + step * (float)((begin + i) % length);
            if (found[i] != expected) {
                return err_set(err, ERR_WORKLOAD, "element %" PRId64 " of the %s is %g, not %g",
                               begin + i, what, (double)found[i], (double)expected);
            }
        }
    }
    return 0;
}

static int prepare_copy(struct worker *w, int64_t *ret_work, struct err *err)
{
    int64_t bytes = least(COPY_BYTES, memory_of(w) / 2) / EDGE_STEP * EDGE_STEP;
    *ret_work = 2 * bytes;
    return take_both(w, bytes, 0.0F, 1.0F, err);
}

static int check_copy(struct worker *w, struct err *err)
{
    return check_pattern(w, 0.0F, 1.0F, "copy", err);
}

/* ---- matrix products ---- */

static enum dtype type_of(const struct worker *w)
{
    return w->measure == GPU_PRODUCT_HALF ? DT_F16 : DT_F32;
}

static int fill_matrix(struct worker *w, void **ret_place, int64_t first, struct err *err)
{
    int64_t n = w->edge * w->edge;
    const struct tensor_desc desc = {.shape = SHAPE(w->edge, w->edge), .dtype = type_of(w)};
    CLEANUP(free) float *numbers = xcalloc((size_t)n, sizeof(*numbers));
    for (int64_t i = 0; i < n; i++) {
        numbers[i] = small_number(first + i);
    }
    *ret_place = take(w, n * dtype_bytes(desc.dtype), err);
    if (!*ret_place) {
        return -1;
    }
    w->backend.upload(w->backend.self, &desc, numbers, *ret_place);
    return 0;
}

static int prepare_product(struct worker *w, int64_t *ret_work, struct err *err)
{
    int64_t one = memory_of(w) / 3 / dtype_bytes(type_of(w)); /* elements of each of the three */
    int64_t edge = EDGE_STEP;
    while (edge < EDGE_MAX && (edge + EDGE_STEP) * (edge + EDGE_STEP) <= one) {
        edge += EDGE_STEP;
    }
    w->edge = edge;
    if (fill_matrix(w, &w->from, 0, err) < 0 || fill_matrix(w, &w->other, edge * edge, err) < 0) {
        return -1;
    }
    w->to = take(w, edge * edge * dtype_bytes(type_of(w)), err);
    w->product =
        (struct kernel_args){.id = K_LINEAR_FWD,
                             .dtype = type_of(w),
                             .geom.linear = {.n = edge, .c = edge, .k = edge, .n_parts = 1},
                             .has_in = 3};
    if (!w->to || w->backend.prepare(w->backend.self, &w->product, err) < 0) {
        return -1;
    }
    w->is_planned = true;
    w->workspace = w->product.workspace_bytes > 0 ? take(w, w->product.workspace_bytes, err) : NULL;
    if (w->product.workspace_bytes > 0 && !w->workspace) {
        return -1;
    }
    w->product.in[0] = w->from;
    w->product.in[1] = w->other;
    w->product.out[0] = w->to;
    w->product.workspace = w->workspace;
    *ret_work = 2 * edge * edge * edge;
    return 0;
}

/* Rows from the first to the last. Sums of whole numbers below 2048 are exact in all types used. */
static int check_product(struct worker *w, struct err *err)
{
    int64_t edge = w->edge;
    CLEANUP(free) float *found = xcalloc((size_t)edge, sizeof(*found));
    for (int64_t at = 0; at < N_LOOKS; at++) {
        int64_t row = (edge - 1) / (N_LOOKS - 1) * at;
        if (look_at(w, w->to, type_of(w), row * edge, edge, found, err) < 0) {
            return -1;
        }
        for (int64_t k = 0; k < edge; k++) {
            float sum = 0.0F;
            for (int64_t c = 0; c < edge; c++) {
                sum += small_number(row * edge + c) * small_number(edge * edge + k * edge + c);
            }
            if (found[k] != sum) {
                return err_set(err, ERR_WORKLOAD,
                               "the product of %" PRId64 " x %" PRId64 " is wrong in row %" PRId64
                               ", column %" PRId64,
                               edge, edge, row, k);
            }
        }
    }
    return 0;
}

/* ---- sums over all GPUs ---- */

static int join(struct worker *w, struct err *err)
{
    const struct gpu_place *place = w->place;
    struct ranks ranks = {.launcher = "reperf-bench",
                          .rank = place->gpu,
                          .n_ranks = place->n_gpus,
                          .local_rank = place->gpu,
                          .n_local_ranks = place->n_gpus,
                          .master_addr = "127.0.0.1",
                          .master_port = place->port};
    char token[32];
    (void)snprintf(token, sizeof(token), "gpus-%ld", (long)getppid());
    const struct job_opts opts = {.ranks = &ranks,
                                  .token = token,
                                  .facts = "gpus",
                                  .network = NO_NETWORK,
                                  .listener = place->listener,
                                  .rendezvous_ns = MEET_NS,
                                  .timeout_ns = SILENCE_NS,
                                  .stop = place->stop};
    char gpu[CUDA_NAME_MAX] = "";
    if (w->is_joined) {
        return 0;
    }
    if (job_open(&w->job, &opts, err) < 0) {
        return -1;
    }
    w->is_joined = true;
    w->backend.async.identify(w->backend.self, gpu, sizeof(gpu));
    const struct job_device device = {gpu, w->backend.self, w->backend.async.drop_programs};
    if (job_use_cuda(&w->job, &device, &opts, err) < 0) {
        job_fail(&w->job, err->msg);
        return -1;
    }
    return w->backend.async.join_ranks(w->backend.self, &w->job.comm, err);
}

/* Each GPU's numbers are its own, 1 and up. */
static int prepare_sum(struct worker *w, int64_t *ret_work, struct err *err)
{
    int64_t n_gpus = w->place->n_gpus;
    int64_t unit = n_gpus * EDGE_STEP;
    if (join(w, err) < 0) {
        return -1;
    }
    int64_t bytes = least(REDUCE_BYTES, memory_of(w) / 2) / unit * unit;
    *ret_work = 2 * (n_gpus - 1) * (bytes / n_gpus);
    return take_both(w, bytes, (float)(w->place->gpu + 1), 0.0F, err);
}

static int check_sum(struct worker *w, struct err *err)
{
    int total = w->place->n_gpus * (w->place->n_gpus + 1) / 2; /* of 1 to n_gpus */
    return check_pattern(w, (float)total, 0.0F, "sum", err);
}

/* ---- orders ---- */

static void one_pass(struct worker *w)
{
    const struct comm_run run = {w->from, w->to, w->bytes / (int64_t)sizeof(float), DT_F32};
    switch (w->measure) {
    case GPU_COPY:
        copy(w, w->to, w->from, w->bytes);
        break;
    case GPU_PRODUCT_HALF:
    case GPU_PRODUCT_FLOAT:
        w->backend.run[w->product.id](w->backend.self, &w->product);
        break;
    case GPU_ALL_REDUCE:
        w->backend.async.sum_ranks(w->backend.self, &run, 1);
        break;
    case GPU_MEASURES:
    default:
        ASSERT(!"measure");
    }
}

static int time_passes(struct worker *w, int64_t count, int64_t *ret_ns, struct err *err)
{
    const struct backend_async *async = &w->backend.async;
    char nothing[MARK_BYTES_MAX];
    async->mark(w->backend.self, 0, NULL, 0);
    for (int64_t i = 0; i < count; i++) {
        one_pass(w);
    }
    if (w->measure == GPU_ALL_REDUCE) {
        async->end_sums(w->backend.self);
    }
    async->mark(w->backend.self, 1, NULL, 0);
    return async->collect(w->backend.self, 1, 0, nothing, ret_ns, err);
}

/* The first pass is warm-up. All GPUs must make the same number of sums, so none may decide alone. */
static int prepare(struct worker *w, struct gpu_reply *reply, struct err *err)
{
    static int (*const PREPARE[])(struct worker * w, int64_t * ret_work, struct err * err) = {
        prepare_copy, prepare_product, prepare_product, prepare_sum};
    int64_t ns = 0;
    int64_t count = PASSES_FIRST;
    if (PREPARE[w->measure](w, &reply->work, err) < 0 ||
        time_passes(w, PASSES_FIRST, &ns, err) < 0 || time_passes(w, count, &ns, err) < 0) {
        return -1;
    }
    while (w->measure != GPU_ALL_REDUCE && ns < w->place->sample_ns / AIM_SHARE &&
           count < PASSES_MAX) {
        count *= 2;
        if (time_passes(w, count, &ns, err) < 0) {
            return -1;
        }
    }
    reply->ns = ns / count;
    return 0;
}

static int check(struct worker *w, struct err *err)
{
    static int (*const CHECK[])(struct worker * w, struct err * err) = {check_copy, check_product,
                                                                        check_product, check_sum};
    return w->to ? CHECK[w->measure](w, err) : 0; /* else it never ran, and that was reported */
}

static void clear(struct worker *w)
{
    if (w->is_planned) {
        w->backend.unprepare(w->backend.self, &w->product);
        w->is_planned = false;
    }
    give_back(w, &w->from);
    give_back(w, &w->other);
    give_back(w, &w->to);
    give_back(w, &w->workspace);
}

static void obey(struct worker *w, const struct gpu_order *order, struct gpu_reply *reply)
{
    struct err err = {0};
    int rc = 0;
    w->measure = order->measure;
    switch (order->verb) {
    case GPU_PREPARE:
        rc = prepare(w, reply, &err);
        break;
    case GPU_RUN:
        rc = time_passes(w, order->count, &reply->ns, &err);
        break;
    case GPU_END:
        rc = check(w, &err);
        clear(w);
        break;
    default:
        ASSERT(!"verb");
    }
    if (rc == 0 && w->cuda.err.code != ERR_NONE) {
        rc = said(w, &err);
    }
    reply->is_failure = rc < 0;
    (void)snprintf(reply->text, sizeof(reply->text), "%.*s", GPU_TEXT_MAX - 1, err.msg);
}

static bool tell(const struct worker *w, const struct gpu_reply *reply)
{
    return send(w->fd, reply, sizeof(*reply), MSG_NOSIGNAL) == (ssize_t)sizeof(*reply);
}

static bool hear(const struct worker *w, struct gpu_order *ret_order)
{
    ssize_t n;
    do {
        n = recv(w->fd, ret_order, sizeof(*ret_order), 0);
    } while (n < 0 && errno == EINTR && *w->place->stop == 0);
    return n == (ssize_t)sizeof(*ret_order);
}

static int open_gpu(struct worker *w, struct gpu_reply *reply, struct err *err)
{
    const struct cuda_opts opts = {.device = w->place->gpu,
                                   .n_streams = 1,
                                   .n_marks = MARKS,
                                   .plan = {.is_tuned = true,
                                            .has_tune_limit = true,
                                            .tune_limit_s = TUNE_S,
                                            .cache_folder = NULL}};
    if (cuda_init(&w->cuda, &opts, &w->backend, err) < 0) {
        return -1;
    }
    const struct cuda_facts facts = cuda_facts(&w->cuda);
    (void)snprintf(reply->text, sizeof(reply->text), "%.100s; driver %.80s; %.80s", facts.gpu,
                   facts.driver, facts.libraries);
    return 0;
}

int gpu_worker(const struct gpu_place *place, int fd)
{
    struct worker *w = xcalloc(1, sizeof(*w));
    struct gpu_reply reply = {0};
    struct gpu_order order;
    struct err err = {0};
    *w = (struct worker){.place = place, .fd = fd};
    bool is_open = open_gpu(w, &reply, &err) == 0;
    if (!is_open) {
        reply.is_failure = true;
        (void)snprintf(reply.text, sizeof(reply.text), "%.*s", GPU_TEXT_MAX - 1, err.msg);
    }
    bool is_heard = tell(w, &reply);
    while (is_open && is_heard && hear(w, &order)) {
        reply = (struct gpu_reply){0};
        obey(w, &order, &reply);
        is_heard = tell(w, &reply);
    }
    if (w->is_joined) {
        if (comm_has_failed(&w->job.comm)) {
            job_abort(&w->job);
        }
        job_close(&w->job);
    }
    if (is_open) {
        clear(w);
        cuda_release(&w->cuda);
    }
    free(w);
    return 0;
}

int gpu_count(int *ret_n, struct err *err)
{
    cudaError_t status = cudaGetDeviceCount(ret_n);
    if (status == cudaErrorNoDevice) {
        *ret_n = 0;
        return 0;
    }
    return status == cudaSuccess
               ? 0
               : err_set(err, ERR_WORKLOAD, "GPUs: %s", cudaGetErrorString(status));
}

#else

int gpu_count(int *ret_n UNUSED, struct err *err)
{
    return err_set(err, ERR_USAGE, "gpus: this build is without CUDA");
}

int gpu_worker(const struct gpu_place *place UNUSED, int fd UNUSED)
{
    return 0;
}

#endif
