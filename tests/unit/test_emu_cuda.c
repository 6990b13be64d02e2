/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA backend's own machinery on the emulated device: opening, memory, copies, streams, programs, marks. */
#include "wl_fixture.h"

#include "backend_cuda/cuda.h"
#include "backend_cuda/kernels.h"
#include "emu.h"

static const struct cuda_opts OPTS = {.n_streams = 3, .n_marks = 4};

struct bed {
    struct cuda cuda;
    struct backend backend;
};

static void open_bed(struct bed *bed, const struct cuda_opts *opts)
{
    PASSES(cuda_init(&bed->cuda, opts, &bed->backend, ERR));
}

static void close_bed(struct bed *bed)
{
    PASSES(bed->backend.async.check(bed->backend.self, ERR));
    cuda_release(&bed->cuda);
    assert_int_equal(emu_stats().allocated_bytes, 0);
}

static void refused_with(const char *message)
{
    struct cuda cuda;
    struct backend backend;
    FAILS(cuda_init(&cuda, &OPTS, &backend, ERR), ERR_ANY);
    if (!strstr(ERR->msg, message)) {
        fail_msg("\"%s\" does not say \"%s\"", ERR->msg, message);
    }
    assert_int_equal(emu_stats().allocated_bytes, 0);
    emu_unplant();
}

TEST(test_what_is_missing_is_said)
{
    emu_plant("no_device", 1);
    refused_with("no GPU that this process may see");
    emu_plant("old_driver", 1);
    refused_with("driver knows CUDA up to");
    emu_plant("no_driver", 1);
    refused_with("no NVIDIA driver");
    emu_plant("cudaMallocHost", 2);
    refused_with("pinned memory");
    emu_device(6, 1, (size_t)1 << 30);
    refused_with("compute capability 6.1");
    emu_device(10, 0, (size_t)1 << 30);
    refused_with("has no kernels");
    emu_device(9, 0, (size_t)1 << 33);
}

TEST(test_facts)
{
    struct bed bed;
    open_bed(&bed, &OPTS);
    const struct cuda_facts facts = cuda_facts(&bed.cuda);
    assert_true(facts.gpu[0] != '\0');
    assert_non_null(strstr(facts.driver, "CUDA 13.0"));
    assert_int_equal(facts.memory_bytes, INT64_C(1) << 33);
    assert_string_equal(bed.backend.name, "cuda-fp32");
    close_bed(&bed);
}

/* More than one piece of the copy, padded, in both types. */
static void round_trip(const struct cuda_opts *opts, const struct tensor_desc *desc, int64_t bytes)
{
    struct bed bed;
    open_bed(&bed, opts);
    const struct backend *backend = &bed.backend;
    int64_t count = shape_count(&desc->shape);
    CLEANUP(free) float *host = xcalloc((size_t)count, sizeof(*host));
    CLEANUP(free) float *back = xcalloc((size_t)count, sizeof(*back));
    for (int64_t i = 0; i < count; i++) {
        host[i] = (float)(i % 2039) * 0.5F;
    }
    assert_int_equal(backend->tensor_bytes(backend->self, desc), bytes);
    int64_t before = backend->async.memory_available(backend->self);
    void *device = backend->alloc(backend->self, bytes);
    assert_non_null(device);
    assert_true(before - backend->async.memory_available(backend->self) >= bytes);
    backend->download(backend->self, desc, device, back); /* zeroed */
    for (int64_t i = 0; i < count; i++) {
        assert_true(back[i] == 0.0F);
    }
    backend->upload(backend->self, desc, host, device);
    backend->download(backend->self, desc, device, back);
    assert_memory_equal(back, host, (size_t)count * sizeof(*host));
    assert_int_equal(backend->async.memory_peak(backend->self), bytes);
    backend->free(backend->self, device);
    backend->free(backend->self, NULL);
    close_bed(&bed);
}

TEST(test_copies)
{
    struct cuda_opts amp = OPTS;
    amp.is_amp = true;
    const struct tensor_desc image = {SHAPE(2, 3, 700, 511), DT_F32, ROLE_IMAGE};
    const struct tensor_desc half = {SHAPE(2, 19, 300, 211), DT_F16, ROLE_IMAGE};
    const struct tensor_desc filter = {SHAPE(18, 7, 3, 3), DT_F16, ROLE_FILTER};
    const struct tensor_desc scalar = {SHAPE_SCALAR, DT_F32, ROLE_PLAIN};
    round_trip(&OPTS, &image, INT64_C(2) * 700 * 511 * 4 * 4);
    round_trip(&amp, &half, INT64_C(2) * 300 * 211 * 24 * 2);
    round_trip(&amp, &filter, 24 * 9 * 8 * 2);
    round_trip(&OPTS, &scalar, 4);
}

TEST(test_no_memory_is_said_by_null)
{
    struct bed bed;
    open_bed(&bed, &OPTS);
    assert_null(bed.backend.alloc(bed.backend.self, INT64_C(1) << 40));
    void *little = bed.backend.alloc(bed.backend.self, 100);
    assert_non_null(little);
    bed.backend.free(bed.backend.self, little);
    close_bed(&bed);
}

/* y = relu(x) on stream 1, z = relu(y) on stream 2; y and z are wrong unless each waits for the other's work. */
#define N 5000
struct chain {
    struct bed bed;
    float *x, *y, *z;
};
static const struct tensor_desc ROW = {.shape = {.n_dims = 1, .dim = {N}}, .dtype = DT_F32};

static void *take_row(struct chain *c)
{
    void *row = c->bed.backend.alloc(c->bed.backend.self, N * (int64_t)sizeof(float));
    assert_non_null(row);
    return row;
}

static void relu(struct chain *c, const float *x, float *y, int stream)
{
    struct kernel_args args = {.id = K_RELU_FWD, .dtype = DT_F32, .stream = stream};
    args.geom.elem.count = N;
    args.in[0] = x;
    args.out[0] = y;
    c->bed.backend.run[K_RELU_FWD](c->bed.backend.self, &args);
}

static void enqueue_chain(struct chain *c)
{
    const struct backend_async *async = &c->bed.backend.async;
    void *self = c->bed.backend.self;
    async->fork(self);
    relu(c, c->x, c->y, 1);
    async->record(self, 7, 1);
    async->wait(self, 7, 2);
    relu(c, c->y, c->z, 2);
    async->join(self);
}

static void must_hold(struct chain *c, const float *given)
{
    float found[N];
    c->bed.backend.download(c->bed.backend.self, &ROW, c->z, found);
    for (int i = 0; i < N; i++) {
        assert_true(found[i] == (given[i] > 0.0F ? given[i] : 0.0F));
    }
}

static void fill(float *row, int seed)
{
    for (int i = 0; i < N; i++) {
        row[i] = (float)((i * 37 + seed * 11) % 101 - 50);
    }
}

TEST(test_streams_and_programs)
{
    float given[N];
    for (int seed = 1; seed <= 10; seed++) {
        struct chain c;
        emu_seed((uint64_t)seed);
        open_bed(&c.bed, &OPTS);
        const struct backend *backend = &c.bed.backend;
        c.x = take_row(&c);
        c.y = take_row(&c);
        c.z = take_row(&c);
        fill(given, seed);
        backend->upload(backend->self, &ROW, given, c.x);
        enqueue_chain(&c);
        must_hold(&c, given);
        PASSES(backend->async.capture_begin(backend->self, ERR));
        enqueue_chain(&c);
        PASSES(backend->async.capture_end(backend->self, 1, ERR));
        for (int again = 0; again < 3; again++) {
            fill(given, 100 * seed + again);
            backend->upload(backend->self, &ROW, given, c.x);
            backend->async.replay(backend->self, 1);
            must_hold(&c, given);
        }
        backend->free(backend->self, c.x);
        backend->free(backend->self, c.y);
        backend->free(backend->self, c.z);
        close_bed(&c.bed);
    }
}

/* Each mark has what was there when the device came to it, though the host was far ahead. */
TEST(test_marks)
{
    struct chain c;
    float given[N];
    open_bed(&c.bed, &OPTS);
    const struct backend *backend = &c.bed.backend;
    c.x = take_row(&c);
    c.z = take_row(&c);
    backend->async.mark(backend->self, 0, NULL, 0);
    for (int slot = 1; slot < 4; slot++) {
        for (int i = 0; i < N; i++) {
            given[i] = (float)(slot * 1000 + i);
        }
        backend->upload(backend->self, &ROW, given, c.x);
        relu(&c, c.x, c.z, 0);
        const struct backend_span spans[] = {{c.z + 5, 8}, {c.x, 4}};
        backend->async.mark(backend->self, slot, spans, 2);
    }
    for (int slot = 1; slot < 4; slot++) {
        float copy[3];
        int64_t ns = -1;
        PASSES(backend->async.collect(backend->self, slot, slot - 1, copy, &ns, ERR));
        assert_true(copy[0] == (float)(slot * 1000 + 5) && copy[1] == (float)(slot * 1000 + 6) &&
                    copy[2] == (float)(slot * 1000));
        assert_true(ns >= 0);
    }
    backend->free(backend->self, c.x);
    backend->free(backend->self, c.z);
    close_bed(&c.bed);
}

/* The first failure sticks, and check and collect return it. */
TEST(test_a_failure_sticks)
{
    struct chain c;
    struct err err = {0};
    open_bed(&c.bed, &OPTS);
    const struct backend *backend = &c.bed.backend;
    c.x = take_row(&c);
    c.z = take_row(&c);
    emu_plant("launch", 1);
    relu(&c, c.x, c.z, 0);
    relu(&c, c.x, c.z, 0);
    assert_int_equal(backend->async.check(backend->self, &err), -1);
    assert_int_equal(err.code, ERR_WORKLOAD);
    assert_true(err.msg[0] != 0);
    struct err again = {0};
    int64_t ns = 0;
    backend->async.mark(backend->self, 0, NULL, 0);
    assert_int_equal(backend->async.collect(backend->self, 0, 0, NULL, &ns, &again), -1);
    assert_string_equal(again.msg, err.msg);
    cuda_release(&c.bed.cuda);
}

/* Layer norm's backward pass has as many blocks as the driver says run at once: one where it does not say, and no more than few rows fill. */
TEST(the_grid_follows_the_stated_occupancy)
{
    static const struct {
        const char *stated;
        int64_t rows, n_blocks;
    } ROWS[] = {{"2", 96 * 128, 2 * 132},
                {"3", 96 * 128, 3 * 132},
                {"1", 96 * 128, 132},
                {"0", 96 * 128, 132},
                {"3", 33, 3}};
    const struct cuda large = {.n_multiprocessors = 132};
    for (EACH(row, ROWS)) {
        for (int is_half = 0; is_half < 2; is_half++) {
            const struct kernel_args args = {
                .id = K_LAYER_NORM_BWD,
                .dtype = is_half ? DT_F16 : DT_F32,
                .geom.layer_norm = {.rows = row->rows, .c = 768, .eps = 1e-12}};
            assert_int_equal(setenv("REPERF_EMU_OCCUPANCY", row->stated, 1), 0);
            assert_int_equal(cuda_layer_norm_workspace(&large, &args),
                             row->n_blocks * 2 * 768 * (int64_t)sizeof(float));
            assert_int_equal(unsetenv("REPERF_EMU_OCCUPANCY"), 0);
        }
    }
}
