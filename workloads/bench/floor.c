/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "bench/floor.h"

#define MASTER_BYTES 4 /* of a parameter's float copy, and of each moment */

/* The readers of a value: how many ops in the forward pass, and which if only one. */
struct readers {
    int *n;    /* by value */
    int *only; /* op index, or -1 */
};

struct counter {
    const struct graph *graph;
    struct readers readers;
    bool fuses_norms;
    struct floor_count *count;
};

static void find_readers(struct arena *arena, const struct graph *graph, struct readers *ret)
{
    ret->n = arena_array(arena, int, (size_t)graph->n_values);
    ret->only = arena_array(arena, int, (size_t)graph->n_values);
    for (int i = 0; i < graph->n_values; i++) {
        ret->only[i] = -1;
    }
    for (int i = 0; i < graph->n_ops; i++) {
        for (int j = 0; j < OP_IN_MAX; j++) {
            int id = graph->ops[i].in[j];
            if (id != NO_VALUE) {
                ret->only[id] = ret->n[id]++ == 0 ? i : -1;
            }
        }
    }
}

static double bytes_of(const struct counter *c, int id)
{
    if (id == NO_VALUE) {
        return 0.0;
    }
    const struct value *value = &c->graph->values[id];
    return (double)(shape_count(&value->shape) * dtype_bytes(value->dtype));
}

static const struct op *maker_of(const struct counter *c, int id)
{
    for (int i = 0; i < c->graph->n_ops; i++) {
        if (c->graph->ops[i].out[0] == id) {
            return &c->graph->ops[i];
        }
    }
    return NULL;
}

static enum op_kind only_reader(const struct counter *c, int id)
{
    int op = c->readers.only[id];
    return op < 0 ? OP_KIND_COUNT : c->graph->ops[op].kind;
}

/* A value that is never stored: its only reader recomputes it. */
static bool is_passing(const struct counter *c, const struct op *op)
{
    enum op_kind reader = only_reader(c, op->out[0]);
    switch (op->kind) {
    case OP_BN:
        return reader == OP_ADD || (reader == OP_CONV && c->fuses_norms);
    case OP_ADD:
        return reader == OP_ADD || reader == OP_LAYER_NORM;
    case OP_UPSAMPLE:
        return reader == OP_ADD || reader == OP_LOSS;
    case OP_DROPOUT:
    case OP_RELU:
        return true;
    case OP_CONV:
    case OP_MAXPOOL:
    case OP_AVGPOOL:
    case OP_CONCAT:
    case OP_LINEAR:
    case OP_LOSS:
    case OP_EMBED:
    case OP_LAYER_NORM:
    case OP_GELU:
    case OP_TANH:
    case OP_ATTENTION:
    case OP_GATHER:
    case OP_ROW_LOSS:
    case OP_KIND_COUNT:
        break;
    }
    return false;
}

/* Bytes moved by reading a value: its own, or those it is made from if it is not stored. */
static double read_bytes(const struct counter *c, int id)
{
    double total = 0.0;
    int todo[64] = {id};
    int n = 1;
    while (n > 0) {
        int value = todo[--n];
        const struct op *op = value == NO_VALUE ? NULL : maker_of(c, value);
        if (!op || !is_passing(c, op)) {
            total += bytes_of(c, value);
            continue;
        }
        todo[n++] = op->in[0];
        if (op->kind == OP_ADD && n < (int)ARRAY_LEN(todo)) {
            todo[n++] = op->in[1];
        }
        ASSERT(n < (int)ARRAY_LEN(todo));
    }
    return total;
}

static double stored_bytes(const struct counter *c, const struct op *op)
{
    return is_passing(c, op) ? 0.0 : bytes_of(c, op->out[0]);
}

static double weight_bytes(const struct counter *c, const struct op *op)
{
    double total = 0.0;
    for (int i = 1; i < OP_IN_MAX; i++) {
        bool is_param = op->in[i] != NO_VALUE && c->graph->values[op->in[i]].kind == VALUE_PARAM;
        total += is_param ? bytes_of(c, op->in[i]) : 0.0;
    }
    return total;
}

static void add(struct counter *c, const struct op *op, enum floor_pass pass, double flops,
                double bytes)
{
    struct floor_part *part = &c->count->parts[c->count->n_parts++];
    *part = (struct floor_part){
        .op = op ? (int)(op - c->graph->ops) : -1, .pass = pass, .flops = flops, .bytes = bytes};
    c->count->flops += flops;
    c->count->bytes += bytes;
}

/* ---- forward ---- */

/* A batch norm's input is read for its statistics, unless its writer computes them. */
static double statistics_bytes(const struct counter *c, const struct op *op)
{
    return op->kind == OP_BN && !c->fuses_norms ? bytes_of(c, op->in[0]) : 0.0;
}

static double forward_bytes(const struct counter *c, const struct op *op)
{
    double out = stored_bytes(c, op);
    switch (op->kind) {
    case OP_CONV:
    case OP_LINEAR:
        return read_bytes(c, op->in[0]) + weight_bytes(c, op) + out;
    case OP_GELU:
    case OP_TANH: /* computed by the writer of its input, which is kept for backward */
        return out;
    case OP_CONCAT:
        return 0.0;
    case OP_ADD:
        return is_passing(c, op) ? 0.0 : read_bytes(c, op->in[0]) + read_bytes(c, op->in[1]) + out;
    case OP_BN:
    case OP_DROPOUT:
    case OP_RELU:
    case OP_UPSAMPLE:
        return statistics_bytes(c, op) + (is_passing(c, op) ? 0.0 : read_bytes(c, op->in[0]) + out);
    case OP_LOSS:
    case OP_ROW_LOSS:
        return read_bytes(c, op->in[0]) + bytes_of(c, op->in[1]);
    case OP_EMBED: /* a row of each table for each token; those of positions and segments stay in the caches */
        return bytes_of(c, op->in[0]) + 2.0 * out;
    case OP_GATHER:
        return 2.0 * out;
    case OP_MAXPOOL:
    case OP_AVGPOOL:
    case OP_LAYER_NORM:
    case OP_ATTENTION:
    case OP_KIND_COUNT:
        break;
    }
    return read_bytes(c, op->in[0]) + out;
}

/* ---- backward ---- */

static bool needs_grad(const struct counter *c, int id)
{
    return id != NO_VALUE && c->graph->values[id].needs_grad;
}

/* Each reader of a value contributes a share of its gradient: each but the first reads what is already there. */
static double gather_bytes(const struct counter *c, int id)
{
    int n = c->readers.n[id];
    return n > 1 && needs_grad(c, id) ? (double)(n - 1) * bytes_of(c, id) : 0.0;
}

static double product_data_bytes(const struct counter *c, const struct op *op)
{
    const struct op *maker = maker_of(c, op->in[0]);
    double mask = maker && maker->kind == OP_GELU ? bytes_of(c, maker->in[0]) : 0.0;
    return bytes_of(c, op->out[0]) + weight_bytes(c, op) + bytes_of(c, op->in[0]) + mask;
}

/* The sums need its input once in addition to its gradient, the result needs both again. */
static double norm_back_bytes(const struct counter *c, const struct op *op)
{
    double x = bytes_of(c, op->in[0]);
    bool is_alone = !c->fuses_norms || !is_passing(c, op); /* no other call has its gradient then */
    return 4.0 * x + (is_alone ? x : 0.0);
}

static double backward_bytes(const struct counter *c, const struct op *op)
{
    double in = bytes_of(c, op->in[0]);
    double out = bytes_of(c, op->out[0]);
    switch (op->kind) {
    case OP_CONV:
    case OP_LINEAR:
        return needs_grad(c, op->in[0]) ? product_data_bytes(c, op) : 0.0;
    case OP_BN:
        return norm_back_bytes(c, op);
    case OP_ADD: /* the ReLU's mask; the gradient is the same for both */
        return op->geom.elem.has_relu ? out : 0.0;
    case OP_MAXPOOL: /* one byte says which element of the window it was */
        return out + out / (double)dtype_bytes(c->graph->types.dtype) + in;
    case OP_UPSAMPLE:
        return only_reader(c, op->out[0]) == OP_LOSS ? 0.0 : out + in;
    case OP_LOSS:
    case OP_ROW_LOSS:
        return 2.0 * read_bytes(c, op->in[0]) + bytes_of(c, op->in[1]);
    case OP_LAYER_NORM:
        return out + 2.0 * in;
    case OP_ATTENTION: /* the context and its gradient; queries, keys and values and theirs */
        return 2.0 * out + 2.0 * in;
    case OP_EMBED:
    case OP_GATHER:
        return 2.0 * out;
    case OP_AVGPOOL:
        return out + in;
    case OP_RELU:
    case OP_DROPOUT:
    case OP_CONCAT:
    case OP_GELU:
    case OP_TANH:
    case OP_KIND_COUNT:
        break;
    }
    return 0.0;
}

static void count_op(struct counter *c, const struct op *op)
{
    double flops = 2.0 * (double)op->macs;
    bool is_product = op->kind == OP_CONV || op->kind == OP_LINEAR;
    add(c, op, FLOOR_FORWARD, flops, forward_bytes(c, op));
    double back_flops = needs_grad(c, op->in[0]) ? (is_product ? flops : 2.0 * flops) : 0.0;
    add(c, op, FLOOR_BACKWARD, back_flops, backward_bytes(c, op) + gather_bytes(c, op->out[0]));
    if (is_product) {
        add(c, op, FLOOR_WEIGHT, flops,
            bytes_of(c, op->out[0]) + read_bytes(c, op->in[0]) + weight_bytes(c, op));
    }
}

/* ---- update ---- */

static double update_bytes(const struct graph *graph, int n_moments)
{
    double total = 0.0;
    for (int i = 0; i < graph->n_params; i++) {
        const struct value *value = &graph->values[graph->params[i]];
        double count = (double)shape_count(&value->shape);
        double stored = (double)dtype_bytes(value->dtype);
        double wide = stored > MASTER_BYTES ? stored : MASTER_BYTES;
        bool has_copy = stored < wide; /* the stored one is then only written */
        total +=
            count * (stored + 2.0 * wide * (double)(1 + n_moments) + (has_copy ? stored : 0.0));
    }
    return total;
}

void floor_of_graph(struct arena *arena, const struct graph *graph, int n_moments, bool fuses_norms,
                    struct floor_count *ret_count)
{
    struct counter c = {.graph = graph, .fuses_norms = fuses_norms, .count = ret_count};
    ASSERT(graph->is_finished);
    find_readers(arena, graph, &c.readers);
    *ret_count = (struct floor_count){
        .parts = arena_array(arena, struct floor_part, (size_t)graph->n_ops * 3 + 1)};
    for (int i = 0; i < graph->n_ops; i++) {
        count_op(&c, &graph->ops[i]);
    }
    add(&c, NULL, FLOOR_UPDATE, 0.0, update_bytes(graph, n_moments));
}

double floor_seconds(const struct floor_count *count, double flops_per_s, double bytes_per_s)
{
    double total = 0.0;
    for (int i = 0; i < count->n_parts; i++) {
        double compute = count->parts[i].flops / flops_per_s;
        double move = count->parts[i].bytes / bytes_per_s;
        total += compute > move ? compute : move;
    }
    return total;
}
