/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "train/train.h"

#include "base/fs.h"
#include "core/json_writer.h"
#include "train/device.h"
#include "train/eval.h"

#define DOCUMENT_BYTES_MAX (16 << 20)

/* The layer's name: that of its first own parameter without the last part, "" if it has none. */
static struct str layer_name(const struct graph *graph, const struct op *op)
{
    for (int i = op->is_tied ? 2 : 1; i < OP_IN_MAX; i++) {
        const struct value *value = op->in[i] == NO_VALUE ? NULL : &graph->values[op->in[i]];
        const char *dot = value && value->kind == VALUE_PARAM ? strrchr(value->name, '.') : NULL;
        if (dot) {
            return (struct str){value->name, (size_t)(dot - value->name)};
        }
    }
    return STR_EMPTY;
}

static int64_t op_parameters(const struct graph *graph, const struct op *op)
{
    int64_t total = 0;
    for (int i = 0; i < OP_IN_MAX; i++) {
        bool is_other = op->is_tied && i == 1;
        if (op->in[i] != NO_VALUE && !is_other && graph->values[op->in[i]].kind == VALUE_PARAM) {
            total += shape_count(&graph->values[op->in[i]].shape);
        }
    }
    return total;
}

static void put_op(struct json_out *out, const struct graph *graph, const struct op *op,
                   int64_t batch)
{
    const struct shape *shape = &graph->values[op->out[0]].shape;
    json_out_open(out, '{');
    json_out_put_text(out, "op", op_kind_name(op->kind));
    json_out_key(out, "name");
    json_out_text(out, layer_name(graph, op));
    json_out_key(out, "output");
    json_out_open(out, '[');
    for (int i = 0; i < shape->n_dims; i++) {
        json_out_i64(out, shape->dim[i]);
    }
    json_out_close(out, ']');
    json_out_put_i64(out, "parameters", op_parameters(graph, op));
    json_out_put_i64(out, "macs_per_sample", op->macs / batch);
    json_out_close(out, '}');
}

/* eval NULL: the run does not evaluate. */
static void put_document(struct json_out *out, const struct train_opts *opts, const struct net *net,
                         const struct eval *eval)
{
    const struct graph *graph = net->graph;
    struct net_bytes bytes = net_sizes(net);
    int64_t evaluation_bytes = eval ? eval_bytes(eval) : 0;
    json_out_open(out, '{');
    json_out_put_i64(out, "schema_version", 1);
    json_out_put_text(out, "model", opts->model->name);
    json_out_put_text(out, "device", opts->device);
    json_out_put_text(out, "backend", net->backend->name);
    json_out_put_text(out, "dtype", dtype_name(opts->dtype));
    json_out_put_i64(out, "batch", opts->batch);
    mlog_put_size(out, &opts->size);
    json_out_put_i64(out, "parameters", graph_n_trainable(graph));
    json_out_put_i64(out, "running_statistics", graph_n_running(graph));
    json_out_put_i64(out, "macs_per_sample", graph_macs(graph) / opts->batch);
    json_out_put_i64(out, "parameter_bytes", bytes.parameter_bytes);
    json_out_put_i64(out, "gradient_bytes", bytes.gradient_bytes);
    json_out_put_i64(out, "optimizer_bytes", bytes.optimizer_bytes);
    json_out_put_i64(out, "running_statistics_bytes", bytes.state_bytes);
    json_out_put_i64(out, "activation_bytes", bytes.activation_bytes);
    json_out_put_i64(out, "workspace_bytes", bytes.workspace_bytes);
    json_out_put_i64(out, "staging_bytes", bytes.staging_bytes);
    if (eval) {
        json_out_put_i64(out, "evaluation_bytes", evaluation_bytes);
    }
    json_out_put_i64(out, "total_bytes", bytes.total_bytes + evaluation_bytes);
    json_out_put_i64(out, "kernel_calls", graph->n_calls);
    json_out_key(out, "ops");
    json_out_open(out, '[');
    for (int i = 0; i < graph->n_ops; i++) {
        put_op(out, graph, &graph->ops[i], opts->batch);
    }
    json_out_close(out, ']');
    json_out_close(out, '}');
}

int train_describe(const struct train_opts *given, struct clock_src clock, int fd, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(device) struct device device = {0};
    CLEANUP(net) struct net net = {0};
    CLEANUP(feed) struct feed feed = {.clock = clock};
    CLEANUP(eval) struct eval eval = {0};
    CLEANUP(strbuf) struct strbuf text;
    struct backend backend;
    struct train_opts own = *given; /* the streams that there is room for */
    const struct train_opts *opts = &own;
    strbuf_init(&text, DOCUMENT_BYTES_MAX);
    if (device_open(&device, opts, &backend, err) < 0 ||
        train_plan_to_fit(&own, &arena, &backend, &train_planner_alone, &net, err) < 0 ||
        feed_open(&feed, opts, net.graph, clock, err) < 0 ||
        (opts->eval_every > 0 && eval_open(&eval, &arena, opts, &net, &feed, err) < 0)) {
        return -1;
    }
    struct json_out out = {.buf = &text};
    put_document(&out, opts, &net, opts->eval_every > 0 ? &eval : NULL);
    strbuf_add_char(&text, '\n');
    ASSERT(!text.is_full);
    return fs_write_all(fd, text.ptr, text.len, "standard output", err);
}
