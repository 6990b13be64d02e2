/* SPDX-License-Identifier: Apache-2.0 */
/* The optimiser on a CPU: every type is widened to double block by block, computed, and rounded once. Sums run over each
   block, then over the blocks in order, so that a result does not depend on the number of threads. */
#include "base/base.h"

#include "backend_cpu/cpu.h"

#include "base/fs.h"
#include "core/half.h"

#include <math.h>

#define BLOCK 256 /* elements: its buffers fit the first cache */

struct block {
    int segment;
    int64_t first;
    int count;
    /* What an update leaves here for the next step. */
    bool has_inf;
    double grad_squares;
};

struct update {
    struct block *blocks;
    int64_t n_blocks;
};

/* ---- elements ---- */

static void load(const void *base, int64_t offset, enum dtype dtype, const struct block *block,
                 double *ret_values)
{
    const char *from = (const char *)base + offset + block->first * dtype_bytes(dtype);
    if (dtype == DT_F64) {
        memcpy(ret_values, from, (size_t)block->count * sizeof(double));
    } else if (dtype == DT_F32) {
        const float *values = (const void *)from;
        for (int i = 0; i < block->count; i++) {
            ret_values[i] = (double)values[i];
        }
    } else {
        const uint16_t *values = (const void *)from;
        for (int i = 0; i < block->count; i++) {
            ret_values[i] = (double)half_to_float(values[i]);
        }
    }
}

/* Rounds the values to the type, in the memory and in the buffer. */
static void store(void *base, int64_t offset, enum dtype dtype, const struct block *block,
                  double *values)
{
    char *to = (char *)base + offset + block->first * dtype_bytes(dtype);
    if (dtype == DT_F64) {
        memcpy(to, values, (size_t)block->count * sizeof(double));
    } else if (dtype == DT_F32) {
        float *narrow = (void *)to;
        for (int i = 0; i < block->count; i++) {
            narrow[i] = (float)values[i];
            values[i] = (double)narrow[i];
        }
    } else {
        uint16_t *narrow = (void *)to;
        for (int i = 0; i < block->count; i++) {
            narrow[i] = half_from_float((float)values[i]);
            values[i] = (double)half_to_float(narrow[i]);
        }
    }
}

static enum dtype wide_type(const struct opt_segment *segment)
{
    return (enum dtype)segment->wide_type;
}

/* `factor` is what the stored gradient is multiplied by. */
static void load_grad(const struct opt_args *args, const struct block *block, double factor,
                      double *ret_grad)
{
    const struct opt_segment *segment = &args->segments[block->segment];
    if (args->sum) {
        load(args->sum, segment->wide, wide_type(segment), block, ret_grad);
    } else {
        load(args->grad, segment->grad, (enum dtype)segment->param_type, block, ret_grad);
    }
    for (int i = 0; i < block->count; i++) {
        ret_grad[i] *= factor;
    }
}

static void load_param(const struct opt_args *args, const struct block *block, double *ret_param)
{
    const struct opt_segment *segment = &args->segments[block->segment];
    if (segment->has_master) {
        load(args->master, segment->wide, wide_type(segment), block, ret_param);
    } else {
        load(args->param, segment->param, (enum dtype)segment->param_type, block, ret_param);
    }
}

static void store_param(const struct opt_args *args, const struct block *block, double *param)
{
    const struct opt_segment *segment = &args->segments[block->segment];
    if (segment->has_master) {
        store(args->master, segment->wide, wide_type(segment), block, param);
    }
    store(args->param, segment->param, (enum dtype)segment->param_type, block, param);
}

/* ---- shared by all updates ---- */

static void scan(const struct opt_args *args, struct block *block, double factor)
{
    double grad[BLOCK];
    double squares = 0.0;
    double nothing = 0.0; /* NaN where a gradient is not finite */
    load_grad(args, block, factor, grad);
#pragma omp simd reduction(+ : squares, nothing)
    for (int i = 0; i < block->count; i++) {
        nothing += grad[i] * 0.0;
        squares += grad[i] * grad[i];
    }
    block->has_inf = isnan(nothing);
    block->grad_squares = squares;
}

/* The numbers of one update, the same for all elements. */
struct step {
    struct opt_rule rule;
    double lr;
    double factor;         /* of the stored gradients */
    double whole1, whole2; /* 1 / (1 - beta^t) */
};

static double decay_of(const struct opt_args *args, const struct block *block)
{
    return args->segments[block->segment].has_decay ? args->rule.weight_decay : 0.0;
}

static void sgd(const struct opt_args *args, const struct step *step, const struct block *block)
{
    const struct opt_segment *segment = &args->segments[block->segment];
    double grad[BLOCK];
    double param[BLOCK];
    double velocity[BLOCK];
    double decay = decay_of(args, block);
    load_grad(args, block, step->factor, grad);
    load_param(args, block, param);
    load(args->moment1, segment->wide, wide_type(segment), block, velocity);
    for (int i = 0; i < block->count; i++) {
        velocity[i] = step->rule.momentum * velocity[i] + (grad[i] + decay * param[i]);
    }
    store(args->moment1, segment->wide, wide_type(segment), block, velocity);
    for (int i = 0; i < block->count; i++) {
        param[i] -= step->lr * velocity[i];
    }
    store_param(args, block, param);
}

/* m and v of the block, then the step they ask for: m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps). */
static void moments(const struct opt_args *args, const struct step *step, const struct block *block,
                    double *ret_step)
{
    const struct opt_segment *segment = &args->segments[block->segment];
    const struct opt_rule *rule = &step->rule;
    double grad[BLOCK];
    double first[BLOCK];
    double second[BLOCK];
    load_grad(args, block, step->factor, grad);
    load(args->moment1, segment->wide, wide_type(segment), block, first);
    load(args->moment2, segment->wide, wide_type(segment), block, second);
    for (int i = 0; i < block->count; i++) {
        first[i] = rule->beta1 * first[i] + (1.0 - rule->beta1) * grad[i];
        second[i] = rule->beta2 * second[i] + (1.0 - rule->beta2) * grad[i] * grad[i];
    }
    store(args->moment1, segment->wide, wide_type(segment), block, first);
    store(args->moment2, segment->wide, wide_type(segment), block, second);
    if (wide_type(segment) == DT_F32) {
        for (int i = 0; i < block->count; i++) {
            float root = sqrtf((float)(second[i] * step->whole2)) + (float)rule->eps;
            ret_step[i] = (double)((float)(first[i] * step->whole1) / root);
        }
        return;
    }
    for (int i = 0; i < block->count; i++) {
        ret_step[i] = first[i] * step->whole1 / (sqrt(second[i] * step->whole2) + rule->eps);
    }
}

static void adamw(const struct opt_args *args, const struct step *step, const struct block *block)
{
    double param[BLOCK];
    double way[BLOCK];
    double keep = 1.0 - step->lr * decay_of(args, block);
    moments(args, step, block, way);
    load_param(args, block, param);
    for (int i = 0; i < block->count; i++) {
        param[i] = param[i] * keep - step->lr * way[i];
    }
    store_param(args, block, param);
}

/* ---- as in struct backend ---- */

void CPU_NAME(cpu_update)(void *self, const struct opt_args *args)
{
    const struct cpu *cpu = self;
    const struct update *update = args->prepared;
    struct step step = {
        .rule = args->rule,
        .lr = args->state->lr,
        .factor = 1.0 / ((double)args->state->loss_scale * (double)args->rule.n_micro),
    };
    bool has_inf = false;
    double squares = 0.0;
#pragma omp parallel for num_threads(cpu->n_threads)
    for (int64_t i = 0; i < update->n_blocks; i++) {
        scan(args, &update->blocks[i], step.factor);
    }
    for (int64_t i = 0; i < update->n_blocks; i++) {
        has_inf = has_inf || update->blocks[i].has_inf;
        squares += update->blocks[i].grad_squares;
    }
    opt_state_advance(args->state, &args->rule, has_inf, sqrt(squares));
    if (has_inf) {
        return;
    }
    step.whole1 = 1.0 / (1.0 - pow(args->rule.beta1, (double)args->state->n_updates));
    step.whole2 = 1.0 / (1.0 - pow(args->rule.beta2, (double)args->state->n_updates));
    bool is_sgd = args->rule.method == OPT_SGD;
#pragma omp parallel for num_threads(cpu->n_threads)
    for (int64_t i = 0; i < update->n_blocks; i++) {
        (is_sgd ? sgd : adamw)(args, &step, &update->blocks[i]);
    }
}

void CPU_NAME(cpu_add_gradients)(void *self, const struct opt_args *args, bool is_first)
{
    const struct cpu *cpu = self;
    const struct update *update = args->prepared;
#pragma omp parallel for num_threads(cpu->n_threads)
    for (int64_t i = 0; i < update->n_blocks; i++) {
        const struct block *block = &update->blocks[i];
        const struct opt_segment *segment = &args->segments[block->segment];
        double grad[BLOCK];
        double sum[BLOCK] = {0};
        load(args->grad, segment->grad, (enum dtype)segment->param_type, block, grad);
        if (!is_first) {
            load(args->sum, segment->wide, wide_type(segment), block, sum);
        }
        for (int j = 0; j < block->count; j++) {
            sum[j] += grad[j];
        }
        store(args->sum, segment->wide, wide_type(segment), block, sum);
    }
}

#ifndef REPERF_AVX2
void cpu_set_hyper(void *self UNUSED, const struct opt_args *args, const struct opt_hyper *hyper)
{
    args->state->lr = hyper->lr;
}

int cpu_prepare_update(void *self UNUSED, struct opt_args *args, struct err *err UNUSED)
{
    struct update *update = xcalloc(1, sizeof(*update));
    for (int i = 0; i < args->n_segments; i++) {
        update->n_blocks += (args->segments[i].count + BLOCK - 1) / BLOCK;
    }
    update->blocks = xcalloc((size_t)update->n_blocks + 1, sizeof(*update->blocks));
    int64_t n = 0;
    for (int i = 0; i < args->n_segments; i++) {
        int64_t count = args->segments[i].count;
        for (int64_t first = 0; first < count; first += BLOCK) {
            update->blocks[n++] = (struct block){
                .segment = i,
                .first = first,
                .count = (int)(count - first < BLOCK ? count - first : BLOCK),
            };
        }
    }
    args->prepared = update;
    args->workspace_bytes = 0;
    return 0;
}

void cpu_unprepare_update(void *self UNUSED, struct opt_args *args)
{
    struct update *update = args->prepared;
    if (update) {
        free(update->blocks);
        free(update);
        args->prepared = NULL;
    }
}
#endif
