/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/held.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "backend_cuda/layout.h"
#include "base/arena.h"
#include "core/half.h"
#include "tests/cuda/elements.h"

/* Relative norm of the difference. FP32: sums of up to some thousand terms in float, 6e-8 each. FP16: a result's rounding is 2^-11
   at most, 2.8e-4 in the mean square; the rest is for what is stored in half precision in between. */
#define TOLERANCE_F32 1e-5
#define TOLERANCE_F16 2e-3
/* One element, in the same unit and measured by the mean square of all: among a million normal errors the largest is 5
   deviations. */
#define ELEMENT_FACTOR 32.0
#define LOSS_SCALE     8.0
#define RUNS           2

/* --- cases --------------------------------------------------------------------------------------- */
void held_name(struct held_call *call, const char *format, ...)
{
    va_list list;
    int n = snprintf(call->name, sizeof(call->name), "%s ", kernel_name(call->args.id));
    va_start(list, format);
    (void)vsnprintf(call->name + n, sizeof(call->name) - (size_t)n, format, list);
    va_end(list);
    rng_init(&call->rng, (uint64_t)call->args.id + 1);
}

void held_normal(struct held_call *call, struct held_tensor *tensor, double mean, double deviation)
{
    for (int64_t i = 0; i < tensor->count; i++) {
        tensor->values[i] = mean + deviation * rng_normal(&call->rng);
    }
}

static struct held_tensor *make(struct held_call *call, struct held_tensor *tensor,
                                enum held_type type, enum role role, struct shape shape)
{
    ASSERT(!tensor->is_there && call->name[0] != '\0');
    int64_t count = shape_count(&shape);
    *tensor = (struct held_tensor){.is_there = true,
                                   .type = type,
                                   .role = role,
                                   .shape = shape,
                                   .count = count,
                                   .values = xcalloc((size_t)count, sizeof(double))};
    if (type != HELD_I32 && type != HELD_I64) {
        held_normal(call, tensor, 0.0, 1.0);
    }
    return tensor;
}

struct held_tensor *held_in(struct held_call *call, int idx, enum held_type type, enum role role,
                            struct shape shape)
{
    call->args.has_in |= 1U << idx;
    return make(call, &call->in[idx], type, role, shape);
}

struct held_tensor *held_out(struct held_call *call, int idx, enum held_type type, enum role role,
                             struct shape shape)
{
    return make(call, &call->out[idx], type, role, shape);
}

struct held_tensor *held_grad(struct held_call *call, int idx, enum held_type type, enum role role,
                              struct shape shape, int may_lie_in)
{
    struct held_tensor *tensor = held_out(call, idx, type, role, shape);
    tensor->may_lie_in = may_lie_in;
    call->can_add |= 1U << idx;
    return tensor;
}

void held_relu(struct held_tensor *tensor)
{
    for (int64_t i = 0; i < tensor->count; i++) {
        tensor->values[i] = tensor->values[i] > 0.0 ? tensor->values[i] : 0.0;
    }
}

void held_above(struct held_tensor *tensor, double least)
{
    for (int64_t i = 0; i < tensor->count; i++) {
        tensor->values[i] = least + fabs(tensor->values[i]);
    }
}

void held_integers(struct held_call *call, struct held_tensor *tensor, int64_t n, int one_in,
                   int64_t other)
{
    for (int64_t i = 0; i < tensor->count; i++) {
        bool is_other = one_in > 0 && rng_f64(&call->rng) * one_in < 1.0;
        tensor->values[i] = is_other ? (double)other : floor(rng_f64(&call->rng) * (double)n);
    }
}

void held_release(struct held_call *call)
{
    for (int i = 0; i < KERNEL_IN_MAX; i++) {
        free(call->in[i].values);
    }
    for (int i = 0; i < KERNEL_OUT_MAX; i++) {
        free(call->out[i].values);
    }
    *call = (struct held_call){0};
}

/* --- types --------------------------------------------------------------------------------------- */
static enum dtype dtype_of(const struct held_tensor *tensor, enum dtype elem, enum dtype stat)
{
    switch (tensor->type) {
    case HELD_ELEM:
        return elem;
    case HELD_FLOAT:
        return elem == DT_F64 ? DT_F64 : DT_F32;
    case HELD_STAT:
        return stat;
    case HELD_I32:
        return DT_I32;
    case HELD_I64:
        break;
    }
    return DT_I64;
}

static struct tensor_desc desc_of(const struct held_tensor *tensor,
                                  const struct held_device *device)
{
    return (struct tensor_desc){tensor->shape, dtype_of(tensor, device->dtype, device->stat),
                                tensor->role};
}

static void round_tensor(struct held_tensor *tensor, const struct held_device *device)
{
    enum dtype dtype = dtype_of(tensor, device->dtype, device->stat);
    for (int64_t i = 0; i < tensor->count; i++) {
        if (dtype == DT_F16) {
            tensor->values[i] = (double)half_to_float(half_from_float((float)tensor->values[i]));
        } else if (dtype == DT_F32) {
            tensor->values[i] = (double)(float)tensor->values[i];
        }
    }
}

/* --- the oracle ---------------------------------------------------------------------------------- */
/* expected[i]: value of out[i] without += and without a loss scale. */
static void expect(const struct held_call *call, double *expected[KERNEL_OUT_MAX])
{
    struct cpu cpu;
    struct backend backend;
    struct err err = {0};
    struct kernel_args args = call->args;
    args.dtype = DT_F64;
    ASSERT(cpu_init(&cpu, CPU_PLAIN, 1, &backend, &err) == 0);
    ASSERT(backend.prepare(backend.self, &args, &err) == 0);
    ASSERT(backend.run[args.id] != NULL);
    args.workspace = xcalloc((size_t)args.workspace_bytes + 1, 1);
    for (int i = 0; i < KERNEL_IN_MAX; i++) {
        const struct held_tensor *t = &call->in[i];
        args.in[i] =
            t->is_there ? to_elements(t->values, t->count, dtype_of(t, DT_F64, DT_F64)) : NULL;
    }
    for (int i = 0; i < KERNEL_OUT_MAX; i++) {
        const struct held_tensor *t = &call->out[i];
        args.out[i] =
            t->is_there ? to_elements(t->values, t->count, dtype_of(t, DT_F64, DT_F64)) : NULL;
    }
    backend.run[args.id](backend.self, &args);
    for (int i = 0; i < KERNEL_OUT_MAX; i++) {
        const struct held_tensor *t = &call->out[i];
        expected[i] =
            t->is_there ? to_doubles(args.out[i], t->count, dtype_of(t, DT_F64, DT_F64)) : NULL;
        free(args.out[i]);
    }
    for (int i = 0; i < KERNEL_IN_MAX; i++) {
        free((void *)(uintptr_t)args.in[i]); /* ours; only the kernels may not write it */
    }
    free(args.workspace);
    cpu_release(&cpu);
}

/* --- the device ---------------------------------------------------------------------------------- */
/* One way to run a case. */
struct way {
    const char *name;
    unsigned accumulate;
    int in_place; /* this output lies in its input, counted from 1 */
    bool has_scale;
};

/* One tensor on the device, and its bytes as they came back. */
struct place {
    void *device;
    int64_t bytes;
    unsigned char *before, *after;
};

struct bench {
    const struct held_device *device;
    struct held_call *call;
    struct way way;
    struct kernel_args args;
    struct place in[KERNEL_IN_MAX], out[KERNEL_OUT_MAX];
    void *scale;
    char *why;
};

static int bad(const struct bench *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static int bad(const struct bench *b, const char *format, ...)
{
    va_list list;
    int n = snprintf(b->why, HELD_WHY_MAX, "%s, %s: ", dtype_name(b->device->dtype), b->way.name);
    va_start(list, format);
    (void)vsnprintf(b->why + n, HELD_WHY_MAX - (size_t)n, format, list);
    va_end(list);
    return -1;
}

/* Whether element i of the stored tensor is padding. */
static bool is_added(const struct layout *layout, int64_t i)
{
    return i % layout->inner_pad >= layout->inner ||
           i / layout->inner_pad / layout->plane >= layout->outer;
}

/* Bytes of 0xff are NaN in every floating type. */
static void poison_padding(const struct bench *b, const struct place *place,
                           const struct tensor_desc *desc)
{
    const struct layout layout = layout_of(desc, b->device->channel_pad);
    int64_t size = dtype_bytes(desc->dtype);
    unsigned char *bytes = xcalloc((size_t)place->bytes, 1);
    b->device->read(bytes, place->device, place->bytes);
    for (int64_t i = 0; i < layout_count(&layout); i++) {
        if (is_added(&layout, i)) {
            memset(bytes + i * size, 0xff, (size_t)size);
        }
    }
    b->device->write(place->device, bytes, place->bytes);
    free(bytes);
}

static void put(struct bench *b, struct place *place, const struct held_tensor *tensor,
                bool has_values)
{
    struct backend *backend = b->device->backend;
    struct tensor_desc desc = desc_of(tensor, b->device);
    place->bytes = backend->tensor_bytes(backend->self, &desc);
    place->device = backend->alloc(backend->self, place->bytes);
    ASSERT(place->device != NULL);
    place->before = xcalloc((size_t)place->bytes, 1);
    place->after = xcalloc((size_t)place->bytes, 1);
    b->device->fill(place->device, 0xff, place->bytes);
    if (has_values) {
        void *elements = to_elements(tensor->values, tensor->count, desc.dtype);
        backend->upload(backend->self, &desc, elements, place->device);
        struct err err = {0};
        if (b->device->check(&err) < 0) { /* what cannot be read back shows below */
            (void)fprintf(stderr, "upload: %s\n", err.msg);
        }
        free(elements);
        if (tensor->is_poisoned && b->device->channel_pad > 0) {
            poison_padding(b, place, &desc);
        }
    }
    b->device->read(place->before, place->device, place->bytes);
}

static void set_up(struct bench *b)
{
    struct backend *backend = b->device->backend;
    b->args = b->call->args;
    b->args.dtype = b->device->dtype;
    b->args.accumulate = b->way.accumulate;
    for (int i = 0; i < KERNEL_IN_MAX; i++) {
        if (b->call->in[i].is_there) {
            put(b, &b->in[i], &b->call->in[i], true);
        }
    }
    for (int i = 0; i < KERNEL_OUT_MAX; i++) {
        const struct held_tensor *t = &b->call->out[i];
        if (t->is_there && b->way.in_place != i + 1) {
            put(b, &b->out[i], t, t->is_kept || (b->way.accumulate >> i & 1) != 0);
        }
    }
    if (b->way.has_scale) {
        float scale = (float)LOSS_SCALE;
        b->scale = backend->alloc(backend->self, (int64_t)sizeof(scale));
        ASSERT(b->scale != NULL);
        b->device->write(b->scale, &scale, (int64_t)sizeof(scale));
    }
}

static void tear_down(struct bench *b)
{
    struct backend *backend = b->device->backend;
    struct place *all[] = {b->in, b->out};
    const int counts[] = {KERNEL_IN_MAX, KERNEL_OUT_MAX};
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < counts[side]; i++) {
            struct place *place = &all[side][i];
            free(place->before);
            free(place->after);
            if (place->device != NULL) {
                backend->free(backend->self, place->device);
            }
            *place = (struct place){0};
        }
    }
    if (b->scale != NULL) {
        backend->free(backend->self, b->scale);
    }
    b->scale = NULL;
}

/* The place of output i. */
static struct place *place_of(struct bench *b, int i)
{
    return b->way.in_place == i + 1 ? &b->in[b->call->out[i].may_lie_in - 1] : &b->out[i];
}

static int launch(struct bench *b)
{
    struct backend *backend = b->device->backend;
    struct err err = {0};
    for (int i = 0; i < KERNEL_IN_MAX; i++) {
        b->args.in[i] = b->in[i].device;
    }
    for (int i = 0; i < KERNEL_OUT_MAX; i++) {
        b->args.out[i] = b->call->out[i].is_there ? place_of(b, i)->device : NULL;
    }
    b->args.loss_scale = b->scale;
    if (b->args.workspace_bytes > 0) {
        b->args.workspace = backend->alloc(backend->self, b->args.workspace_bytes);
        ASSERT(b->args.workspace != NULL);
        b->device->fill(b->args.workspace, 0xff, b->args.workspace_bytes);
    }
    backend->run[b->args.id](backend->self, &b->args);
    int status = b->device->check(&err);
    if (b->args.workspace != NULL) {
        backend->free(backend->self, b->args.workspace);
        b->args.workspace = NULL;
    }
    return status < 0 ? bad(b, "%s", err.msg) : 0;
}

/* --- judging --------------------------------------------------------------------------------------- */
/* Padding is 0 in tensors of floating types. */
static int check_padding(const struct bench *b, int idx, const struct place *place)
{
    const struct held_tensor *tensor = &b->call->out[idx];
    struct tensor_desc desc = desc_of(tensor, b->device);
    if (b->device->channel_pad == 0 || tensor->type == HELD_I32 || tensor->type == HELD_I64) {
        return 0;
    }
    struct layout layout = layout_of(&desc, b->device->channel_pad);
    int64_t size = dtype_bytes(desc.dtype);
    for (int64_t i = 0; i < layout_count(&layout); i++) {
        for (int64_t k = 0; k < size && is_added(&layout, i); k++) {
            if (place->after[i * size + k] != 0) {
                return bad(b, "out[%d]: element %" PRId64 " is there by rounding up and is not 0",
                           idx, i);
            }
        }
    }
    return 0;
}

static int compare(const struct bench *b, int idx, const double *expected, const double *actual)
{
    const struct held_tensor *tensor = &b->call->out[idx];
    bool adds = (b->way.accumulate >> idx & 1) != 0;
    double factor = b->way.has_scale && (b->call->is_scaled >> idx & 1) != 0 ? LOSS_SCALE : 1.0;
    bool is_exact = tensor->type == HELD_I32 || tensor->type == HELD_I64;
    double tolerance = b->device->dtype == DT_F16 ? TOLERANCE_F16 : TOLERANCE_F32;
    tolerance = is_exact ? 0.0 : tensor->tolerance > tolerance ? tensor->tolerance : tolerance;
    double off = 0.0;
    double norm = 0.0;
    double worst = 0.0;
    int64_t worst_at = 0;
    for (int64_t i = 0; i < tensor->count; i++) {
        double want = factor * expected[i] + (adds ? tensor->values[i] : 0.0);
        if (isnan(want) && isnan(actual[i])) {
            continue;
        }
        double difference = fabs(actual[i] - want);
        off += difference * difference;
        norm += want * want;
        if (!(difference <= worst)) {
            worst = difference;
            worst_at = i;
        }
    }
    double mean_square = sqrt(norm / (double)tensor->count);
    if (!(sqrt(off) <= tolerance * sqrt(norm))) {
        return bad(b,
                   "out[%d] is off by %.3g of its norm of %.3g, allowed are %.1g; worst at %" PRId64
                   ": %.9g",
                   idx, sqrt(off / (norm > 0.0 ? norm : 1.0)), sqrt(norm), tolerance, worst_at,
                   actual[worst_at]);
    }
    double most = ELEMENT_FACTOR * tolerance * (mean_square + fabs(actual[worst_at]));
    if (!(worst <= most)) {
        return bad(b, "out[%d]: element %" PRId64 " is off by %.3g, allowed are %.3g", idx,
                   worst_at, worst, most);
    }
    return 0;
}

static int judge(struct bench *b, double *const expected[KERNEL_OUT_MAX])
{
    struct backend *backend = b->device->backend;
    for (int i = 0; i < KERNEL_OUT_MAX; i++) {
        const struct held_tensor *tensor = &b->call->out[i];
        if (!tensor->is_there) {
            continue;
        }
        struct place *place = place_of(b, i);
        struct tensor_desc desc = desc_of(tensor, b->device);
        void *elements = xcalloc((size_t)tensor->count, sizeof(double));
        b->device->read(place->after, place->device, place->bytes);
        backend->download(backend->self, &desc, place->device, elements);
        double *actual = to_doubles(elements, tensor->count, desc.dtype);
        int status = compare(b, i, expected[i], actual);
        free(actual);
        free(elements);
        if (status < 0 || check_padding(b, i, place) < 0) {
            return -1;
        }
    }
    for (int i = 0; i < KERNEL_IN_MAX; i++) {
        struct place *place = &b->in[i];
        bool is_output = b->way.in_place > 0 && place == place_of(b, b->way.in_place - 1);
        if (place->device == NULL || is_output) {
            continue;
        }
        b->device->read(place->after, place->device, place->bytes);
        if (memcmp(place->before, place->after, (size_t)place->bytes) != 0) {
            return bad(b, "in[%d] was written", i);
        }
    }
    return 0;
}

/* Twice; the second time must give the same bits, unless the device may add in any order. */
static int run_way(struct bench *b, double *const expected[KERNEL_OUT_MAX])
{
    unsigned char *first[KERNEL_OUT_MAX] = {NULL};
    int status = 0;
    for (int run = 0; run < RUNS && status == 0; run++) {
        if (b->device->reseed != NULL) {
            b->device->reseed((uint64_t)run + 1);
        }
        void *prepared = b->args.prepared;
        int64_t workspace_bytes = b->args.workspace_bytes;
        set_up(b);
        b->args.prepared = prepared;
        b->args.workspace_bytes = workspace_bytes;
        status = launch(b) < 0 ? -1 : judge(b, expected);
        for (int i = 0; i < KERNEL_OUT_MAX && status == 0; i++) {
            struct place *place = b->call->out[i].is_there ? place_of(b, i) : NULL;
            if (place != NULL && run == 0) {
                first[i] = place->after;
                place->after = NULL;
            } else if (place != NULL && !b->device->is_any_order &&
                       memcmp(first[i], place->after, (size_t)place->bytes) != 0) {
                status = bad(b, "out[%d]: another run gave other bits", i);
            }
        }
        tear_down(b);
    }
    for (int i = 0; i < KERNEL_OUT_MAX; i++) {
        free(first[i]);
    }
    return status;
}

static enum held_verdict prepare_and_run(struct bench *b, double *const expected[KERNEL_OUT_MAX])
{
    struct backend *backend = b->device->backend;
    struct err err = {0};
    b->args = b->call->args;
    b->args.dtype = b->device->dtype;
    b->args.accumulate = b->way.accumulate;
    if (backend->prepare(backend->self, &b->args, &err) < 0) {
        (void)bad(b, "%s", err.msg);
        return b->call->is_optional ? HELD_UNSUPPORTED : HELD_BAD;
    }
    int status = run_way(b, expected);
    backend->unprepare(backend->self, &b->args);
    return status < 0 ? HELD_BAD : HELD_OK;
}

enum held_verdict held_run(const struct held_device *device, struct held_call *call, char *why)
{
    struct way ways[5 + KERNEL_OUT_MAX] = {{.name = "plain"}};
    double *expected[KERNEL_OUT_MAX];
    int n_ways = 1;
    enum held_verdict verdict = HELD_OK;
    for (int i = 0; i < KERNEL_IN_MAX; i++) {
        round_tensor(&call->in[i], device);
    }
    for (int i = 0; i < KERNEL_OUT_MAX; i++) {
        round_tensor(&call->out[i], device);
        if (call->out[i].may_lie_in > 0) {
            ways[n_ways++] = (struct way){.name = "in place", .in_place = i + 1};
        }
    }
    if (call->can_add != 0) {
        ways[n_ways++] = (struct way){.name = "+=", .accumulate = call->can_add};
    }
    if ((call->can_add & (call->can_add - 1)) != 0) {
        ways[n_ways++] =
            (struct way){.name = "+= of one", .accumulate = call->can_add & -call->can_add};
        ways[n_ways++] = (struct way){.name = "+= of the others",
                                      .accumulate = call->can_add & (call->can_add - 1)};
    }
    if (call->is_scaled != 0 && device->has_loss_scale) {
        ways[n_ways++] = (struct way){.name = "loss scale", .has_scale = true};
    }
    expect(call, expected);
    why[0] = '\0';
    for (int i = 0; i < n_ways && verdict == HELD_OK; i++) {
        struct bench b = {.device = device, .call = call, .way = ways[i], .why = why};
        verdict = prepare_and_run(&b, expected);
    }
    for (int i = 0; i < KERNEL_OUT_MAX; i++) {
        free(expected[i]);
    }
    return verdict;
}
