/* SPDX-License-Identifier: Apache-2.0 */
/* --check: one forward and backward on given tensors, every result written out, so that anyone can hold the engine
   against another framework. Every tensor of the file must be one the network knows, and every one the network needs
   must be there; only running statistics may be left out (they then start at 0 and 1). */
#include "base/base.h"

#include "train/train.h"

#include "core/safetensors.h"

#include <math.h>

/* PyTorch counts steps beside its running statistics; training does not depend on it. */
#define COUNTER_SUFFIX ".num_batches_tracked"

static const char *st_dtype_text(enum dtype dtype)
{
    return dtype == DT_F64 ? "F64" : dtype == DT_F32 ? "F32" : "I64";
}

/* Type, batch and image size come from the tensor `input`. */
static int read_geometry(const struct st_file *file, struct train_opts *opts, struct err *err)
{
    const struct st_tensor *input = st_find(file, "input");
    if (!input) {
        return err_set(err, ERR_PARSE, "tensor input is missing");
    }
    if (input->dtype == DT_I64 || input->shape.n_dims != 4 || input->bytes == 0) {
        char text[SHAPE_TEXT_MAX];
        shape_text(&input->shape, text);
        return err_set(err, ERR_PARSE,
                       "tensor input: %s %s, expected F32 or F64 of shape [N, 3, H, W]",
                       st_dtype_text(input->dtype), text);
    }
    opts->dtype = input->dtype;
    opts->precision = input->dtype == DT_F64 ? "fp64" : "fp32";
    opts->batch = input->shape.dim[0];
    opts->height = input->shape.dim[2];
    opts->width = input->shape.dim[3];
    opts->label_smoothing = 0.0;
    if (opts->flavour == CPU_ONEDNN && opts->dtype == DT_F64) {
        return err_set(err, ERR_USAGE, "--backend onednn: oneDNN does not compute in f64");
    }
    return 0;
}

static int check_form(const struct value *value, const struct st_tensor *tensor, struct err *err)
{
    if (tensor->dtype != value->dtype || !shape_eq(&tensor->shape, &value->shape)) {
        char found[SHAPE_TEXT_MAX];
        char expected[SHAPE_TEXT_MAX];
        shape_text(&tensor->shape, found);
        shape_text(&value->shape, expected);
        return err_set(err, ERR_PARSE, "tensor %s: %s %s, expected %s %s", tensor->name,
                       st_dtype_text(tensor->dtype), found, st_dtype_text(value->dtype), expected);
    }
    return 0;
}

static bool is_batch_counter(const struct graph *graph, const struct st_tensor *tensor)
{
    size_t len = strlen(tensor->name);
    size_t suffix = strlen(COUNTER_SUFFIX);
    if (len <= suffix || strcmp(tensor->name + len - suffix, COUNTER_SUFFIX) != 0 ||
        tensor->dtype != DT_I64 || tensor->shape.n_dims != 0) {
        return false;
    }
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *sibling =
        arena_printf(&arena, "%.*s.running_mean", (int)(len - suffix), tensor->name);
    return graph_find(graph, sibling) != NO_VALUE;
}

static bool is_given(const struct value *value)
{
    return value->kind == VALUE_PARAM || value->kind == VALUE_STATE || value->kind == VALUE_INPUT;
}

static int check_labels(const struct st_tensor *labels, const struct model *model, struct err *err)
{
    char also[48] = "";
    if (model->ignore_label != LOSS_IGNORE_NONE) {
        snprintf(also, sizeof(also), " or %" PRId64, model->ignore_label);
    }
    for (int64_t i = 0; i < labels->bytes / (int64_t)sizeof(int64_t); i++) {
        int64_t label;
        memcpy(&label, (const char *)labels->data + i * (int64_t)sizeof(label), sizeof(label));
        bool is_class = label >= 0 && label < model->n_classes;
        if (!is_class && label != model->ignore_label) {
            return err_set(err, ERR_PARSE,
                           "tensor labels: element %" PRId64 " is %" PRId64
                           ", expected 0 to %" PRId64 "%s",
                           i, label, model->n_classes - 1, also);
        }
    }
    return 0;
}

static int check_tensor(const struct graph *graph, const struct st_tensor *tensor, struct err *err)
{
    int id = graph_find(graph, tensor->name);
    if (id != NO_VALUE && is_given(&graph->values[id])) {
        return check_form(&graph->values[id], tensor, err);
    }
    return is_batch_counter(graph, tensor)
               ? 0
               : err_set(err, ERR_PARSE, "tensor %s is none of this network's", tensor->name);
}

/* Both ways: each tensor is known and fits, each value that is needed is there. */
static int check_names(const struct graph *graph, const struct st_file *file,
                       const struct model *model, struct err *err)
{
    for (int i = 0; i < file->n_tensors; i++) {
        if (check_tensor(graph, &file->tensors[i], err) < 0) {
            return -1;
        }
    }
    for (int i = 0; i < graph->n_values; i++) {
        const struct value *value = &graph->values[i];
        bool may_be_absent = !is_given(value) || value->kind == VALUE_STATE;
        if (!may_be_absent && !st_find(file, value->name)) {
            return err_set(err, ERR_PARSE, "tensor %s is missing", value->name);
        }
    }
    return check_labels(st_find(file, "labels"), model, err);
}

static void write_inputs(struct net *net, const struct st_file *file)
{
    net_init_values(net, 0); /* running statistics that are not given */
    for (int i = 0; i < net->graph->n_values; i++) {
        const struct value *value = &net->graph->values[i];
        const struct st_tensor *tensor = is_given(value) ? st_find(file, value->name) : NULL;
        if (tensor) {
            net_write(net, i, tensor->data);
        }
    }
}

static int write_results(const struct net *net, struct arena *arena, const char *path,
                         struct err *err)
{
    const struct graph *graph = net->graph;
    struct st_tensor *tensors = arena_array(arena, struct st_tensor, (size_t)graph->n_values);
    int n = 0;
    for (int i = 0; i < graph->n_values; i++) {
        const struct value *value = &graph->values[i];
        bool is_result = value->kind == VALUE_GRAD_PARAM || value->kind == VALUE_STATE ||
                         (value->kind == VALUE_ACT && value->name);
        if (!is_result) {
            continue;
        }
        int64_t bytes = shape_count(&value->shape) * dtype_bytes(value->dtype);
        void *data = arena_alloc(arena, (size_t)bytes, alignof(max_align_t));
        net_read(net, i, data);
        tensors[n++] = (struct st_tensor){.name = value->name,
                                          .dtype = value->dtype,
                                          .shape = value->shape,
                                          .data = data,
                                          .bytes = bytes};
    }
    return st_write(path, tensors, n, err);
}

int train_check(const struct train_opts *given, const stop_flag *stop, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(cpu) struct cpu cpu = {0};
    CLEANUP(net) struct net net = {0};
    struct backend backend;
    struct st_file file;
    struct train_opts opts = *given;
    if (st_read(&arena, opts.check_path, &file, err) < 0) {
        return -1;
    }
    if (read_geometry(&file, &opts, err) < 0) {
        return err_wrap(err, "%s", opts.check_path);
    }
    if (cpu_init(&cpu, opts.flavour, (int)opts.n_threads, &backend, err) < 0 ||
        train_plan(&opts, &arena, &backend, &net, err) < 0) {
        return -1;
    }
    if (check_names(net.graph, &file, opts.model, err) < 0) {
        return err_wrap(err, "%s", opts.check_path);
    }
    if (train_alloc(&net, 0, err) < 0) {
        return -1;
    }
    write_inputs(&net, &file);
    if (net_gradients(&net, stop)) {
        return err_set(err, ERR_INTERRUPTED, "signal %d; %s was not written", (int)*stop,
                       opts.out_path);
    }
    if (!isfinite(net_loss(&net))) {
        return err_set(err, ERR_WORKLOAD, "%s: the loss is not finite; %s was not written",
                       opts.check_path, opts.out_path);
    }
    return write_results(&net, &arena, opts.out_path, err);
}
