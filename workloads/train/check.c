/* SPDX-License-Identifier: Apache-2.0 */
/* --check: one forward and backward pass on given tensors, or with --steps that many training steps, with every result written out, so that the
   engine can be compared with another framework. Every tensor of the file must belong to the network, and every one the network needs must be there;
   only running statistics may be left out (they then start at 0 and 1). */
#include "base/base.h"

#include "train/train.h"

#include "core/safetensors.h"
#include "core/sha256.h"
#include "models/tokens.h"
#include "train/device.h"
#include "train/team.h"

#include <math.h>
#include <unistd.h>

/* PyTorch stores a step count next to its running statistics; training does not depend on it. */
#define COUNTER_SUFFIX ".num_batches_tracked"

static int refuse_form(const struct st_tensor *tensor, const char *expected, struct err *err)
{
    char text[SHAPE_TEXT_MAX];
    shape_text(&tensor->shape, text);
    return err_set(err, ERR_PARSE, "tensor %s: %s %s, expected %s", tensor->name,
                   st_dtype_text(tensor->dtype), text, expected);
}

static int find_tensor(const struct st_file *file, const char *name,
                       const struct st_tensor **ret_tensor, struct err *err)
{
    *ret_tensor = st_find(file, name);
    return *ret_tensor ? 0 : err_set(err, ERR_PARSE, "tensor %s is missing", name);
}

/* Type and size from the tensor `input`; *ret_batch is that of all ranks. */
static int read_images(const struct st_file *file, struct train_opts *opts, int64_t *ret_batch,
                       struct err *err)
{
    const struct st_tensor *input;
    if (find_tensor(file, "input", &input, err) < 0) {
        return -1;
    }
    if (input->dtype == DT_I64 || input->shape.n_dims != 4 || input->bytes == 0) {
        return refuse_form(input, "F32 or F64 of shape [N, 3, H, W]", err);
    }
    opts->dtype = input->dtype;
    opts->size.height = input->shape.dim[2];
    opts->size.width = input->shape.dim[3];
    *ret_batch = input->shape.dim[0];
    return 0;
}

static const struct st_tensor *first_real(const struct st_file *file)
{
    for (int i = 0; i < file->n_tensors; i++) {
        if (file->tensors[i].dtype != DT_I64) {
            return &file->tensors[i];
        }
    }
    return NULL;
}

/* Type from the first parameter, size from the tokens and the prediction positions. */
static int read_tokens(const struct st_file *file, struct train_opts *opts, int64_t *ret_batch,
                       struct err *err)
{
    const struct st_tensor *ids;
    const struct st_tensor *places;
    const struct st_tensor *real = first_real(file);
    if (find_tensor(file, token_part_name(TOKENS_IDS), &ids, err) < 0 ||
        find_tensor(file, token_part_name(TOKENS_POSITIONS), &places, err) < 0) {
        return -1;
    }
    if (!real) {
        return err_set(err, ERR_PARSE, "no tensor of F32 or F64");
    }
    if (ids->shape.n_dims != 2 || ids->bytes == 0) {
        return refuse_form(ids, "I64 of shape [N, S]", err);
    }
    if (places->shape.n_dims != 2 || places->bytes == 0) {
        return refuse_form(places, "I64 of shape [N, P]", err);
    }
    opts->dtype = real->dtype;
    opts->size.sequence = ids->shape.dim[1];
    opts->size.predictions = places->shape.dim[1];
    *ret_batch = ids->shape.dim[0];
    return 0;
}

/* A file has no half precision: its elements are float there (core/kernel.h, upload). */
static enum dtype dtype_in_file(enum dtype dtype)
{
    return dtype == DT_F16 ? DT_F32 : dtype;
}

/* The type of the file's tensors is in opts->dtype, which becomes that of the computation. */
static int choose_precision(struct train_opts *opts, bool is_amp, struct err *err)
{
    bool is_cpu = strcmp(opts->device, "cpu") == 0;
    if (!is_cpu && opts->dtype != DT_F32) {
        return err_set(err, ERR_USAGE, "--device %s checks F32, not %s", opts->device,
                       st_dtype_text(opts->dtype));
    }
    opts->precision = is_amp ? "amp" : opts->dtype == DT_F64 ? "fp64" : "fp32";
    opts->dtype = is_amp ? DT_F16 : opts->dtype;
    return 0;
}

static int read_geometry(const struct st_file *file, struct train_opts *opts, struct err *err)
{
    bool is_tokens = opts->model->kind == MODEL_TOKENS;
    bool is_amp = opts->dtype == DT_F16;
    int64_t batch = 0;
    opts->size = (struct sample_size){0};
    if (is_tokens ? read_tokens(file, opts, &batch, err) : read_images(file, opts, &batch, err)) {
        return -1;
    }
    if (choose_precision(opts, is_amp, err) < 0) {
        return -1;
    }
    if (batch % opts->ranks.n_ranks != 0) {
        return err_set(err, ERR_USAGE, "tensor %s: a batch of %" PRId64 " for %d ranks",
                       is_tokens ? token_part_name(TOKENS_IDS) : "input", batch,
                       opts->ranks.n_ranks);
    }
    opts->batch = batch / opts->ranks.n_ranks;
    opts->label_smoothing = 0.0;
    if (opts->flavour == CPU_ONEDNN && opts->dtype == DT_F64) {
        return err_set(err, ERR_USAGE, "--backend onednn: oneDNN does not compute in f64");
    }
    return 0;
}

/* The file holds the batch of all ranks. */
static int check_form(const struct value *value, const struct st_tensor *tensor, int n_ranks,
                      struct err *err)
{
    struct shape whole = value->shape;
    if (value->kind == VALUE_INPUT) {
        whole.dim[0] *= n_ranks;
    }
    enum dtype dtype = dtype_in_file(value->dtype);
    if (tensor->dtype != dtype || !shape_eq(&tensor->shape, &whole)) {
        char found[SHAPE_TEXT_MAX];
        char expected[SHAPE_TEXT_MAX];
        shape_text(&tensor->shape, found);
        shape_text(&whole, expected);
        return err_set(err, ERR_PARSE, "tensor %s: %s %s, expected %s %s", tensor->name,
                       st_dtype_text(tensor->dtype), found, st_dtype_text(dtype), expected);
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
    return value->name &&
           (value->kind == VALUE_PARAM || value->kind == VALUE_STATE || value->kind == VALUE_INPUT);
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

/* An index out of range would be read from a table that has no such row. */
static int check_tokens(const struct st_file *file, const struct train_opts *opts, struct err *err)
{
    const struct token_form form = {opts->size.sequence, opts->size.predictions,
                                    opts->model->n_classes};
    for (enum token_part part = TOKENS_IDS; part < TOKEN_PARTS; part++) {
        const struct st_tensor *tensor = st_find(file, token_part_name(part));
        if (tokens_within(&form, part, tensor->data, tensor->bytes / (int64_t)sizeof(int64_t),
                          err) < 0) {
            err->code = ERR_PARSE;
            return err_wrap(err, "tensor");
        }
    }
    return 0;
}

static int check_tensor(const struct graph *graph, const struct st_tensor *tensor, struct err *err)
{
    int id = graph_find(graph, tensor->name);
    if (id != NO_VALUE && is_given(&graph->values[id])) {
        return check_form(&graph->values[id], tensor, graph->ranks.n_ranks, err);
    }
    return is_batch_counter(graph, tensor)
               ? 0
               : err_set(err, ERR_PARSE, "tensor %s is not part of this network", tensor->name);
}

/* Both ways: each tensor is known and fits, each value that is needed is there. */
static int check_names(const struct graph *graph, const struct st_file *file,
                       const struct train_opts *opts, struct err *err)
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
    return opts->model->kind == MODEL_TOKENS
               ? check_tokens(file, opts, err)
               : check_labels(st_find(file, "labels"), opts->model, err);
}

static void write_inputs(struct net *net, const struct st_file *file)
{
    const struct graph *graph = net->graph;
    net_init_values(net, 0); /* running statistics that are not given */
    for (int i = 0; i < graph->n_values; i++) {
        const struct value *value = &graph->values[i];
        const struct st_tensor *tensor = is_given(value) ? st_find(file, value->name) : NULL;
        if (!tensor) {
            continue;
        }
        bool is_batch = value->kind == VALUE_INPUT;
        int64_t own = is_batch ? tensor->bytes / graph->ranks.n_ranks * graph->ranks.rank : 0;
        net_write(net, i, (const char *)tensor->data + own);
    }
}

/* Gathers what each rank has for its own samples; rows is (n_ranks, bytes). */
static void gather_rows(const struct net *net, int id, char *rows, int64_t bytes)
{
    net_read(net, id, rows + net->graph->ranks.rank * bytes);
    comm_all_gather(net->comm, rows, bytes);
}

/* With several ranks all must call it, and rank 0 gets the results. */
struct results {
    struct arena *arena; /* borrowed */
    struct st_tensor *tensors;
    int n;
};

static void collect_results(const struct net *net, bool is_trained, struct results *results)
{
    const struct graph *graph = net->graph;
    results->n = 0;
    for (int i = 0; i < graph->n_values; i++) {
        const struct value *value = &graph->values[i];
        bool is_of_samples = value->kind == VALUE_ACT && value->shape.n_dims > 0;
        bool is_result = value->kind == VALUE_GRAD_PARAM ||
                         (value->kind == VALUE_STATE && !graph->is_inference) ||
                         (value->kind == VALUE_PARAM && is_trained) ||
                         (value->kind == VALUE_ACT && value->name);
        if (!is_result) {
            continue;
        }
        struct shape shape = value->shape;
        enum dtype dtype = dtype_in_file(value->dtype);
        int64_t bytes = shape_count(&shape) * dtype_bytes(dtype);
        int n_rows = is_of_samples ? graph->ranks.n_ranks : 1;
        char *data = arena_alloc(results->arena, (size_t)(bytes * n_rows), alignof(max_align_t));
        if (n_rows > 1) {
            gather_rows(net, i, data, bytes);
            shape.dim[0] *= n_rows;
        } else {
            net_read(net, i, data);
        }
        results->tensors[results->n++] = (struct st_tensor){.name = value->name,
                                                            .dtype = dtype,
                                                            .shape = shape,
                                                            .data = data,
                                                            .bytes = bytes * n_rows};
    }
}

/* Ranks of one job must have read the same batch; parameters come from rank 0. */
static void digest_batch(const struct graph *graph, const struct st_file *file, char ret_word[80])
{
    struct sha256 sha;
    char hex[SHA256_HEX_LEN + 1];
    sha256_init(&sha);
    for (int i = 0; i < graph->n_values; i++) {
        bool is_input = graph->values[i].kind == VALUE_INPUT && graph->values[i].name;
        const struct st_tensor *tensor = is_input ? st_find(file, graph->values[i].name) : NULL;
        if (tensor) {
            sha256_add(&sha, tensor->data, (size_t)tensor->bytes);
        }
    }
    sha256_hex(&sha, hex);
    snprintf(ret_word, 80, "tensors=%.64s", hex);
}

static int step_ended(const struct net *net, const struct train_opts *opts, const stop_flag *stop,
                      struct err *err)
{
    if (*stop != 0) {
        return err_set(err, ERR_INTERRUPTED, "signal %d; %s was not written", (int)*stop,
                       opts->out_path);
    }
    *err = net->comm->err;
    return -1;
}

static int loss_ended(const struct train_opts *opts, struct err *err)
{
    return err_set(err, ERR_WORKLOAD, "%s: the loss is not finite; %s was not written",
                   opts->check_path, opts->out_path);
}

static bool is_gradient(const struct net *net, const struct st_tensor *tensor)
{
    int id = graph_find(net->graph, tensor->name);
    return id != NO_VALUE && net->graph->values[id].kind == VALUE_GRAD_PARAM;
}

/* Divides float gradients by the scale; false where one of them overflowed. */
static bool unscale(const struct net *net, const struct results *results, float scale)
{
    for (int i = 0; i < results->n; i++) {
        const struct st_tensor *tensor = &results->tensors[i];
        float *data = (float *)(uintptr_t)tensor->data; /* collect_results allocated it */
        int64_t count = is_gradient(net, tensor) ? tensor->bytes / (int64_t)sizeof(*data) : 0;
        for (int64_t j = 0; j < count; j++) {
            if (!isfinite(data[j])) {
                return false;
            }
            data[j] /= scale;
        }
    }
    return true;
}

/* One forward and backward pass in half precision: the loss scale starts at the recipe's and is halved until no gradient
   overflows. Running statistics start anew each time. */
static int compute_scaled(struct net *net, const struct train_opts *opts,
                          const struct st_file *file, const stop_flag *stop,
                          struct results *results, struct err *err)
{
    struct opt_state state = opt_state_start(&opts->rule);
    for (; state.loss_scale >= OPT_SCALE_MIN; state.loss_scale /= 2.0F) {
        write_inputs(net, file);
        net_write_opt_state(net, &state);
        if (net_gradients(net, stop)) {
            return step_ended(net, opts, stop, err);
        }
        collect_results(net, false, results);
        if (!isfinite(net_loss(net))) {
            return loss_ended(opts, err);
        }
        if (unscale(net, results, state.loss_scale)) {
            return 0;
        }
    }
    return err_set(err, ERR_WORKLOAD, "%s: gradients overflow with every loss scale",
                   opts->check_path);
}

/* One pass, which must succeed. */
static int pass(struct net *net, const struct train_opts *opts, const stop_flag *stop,
                struct err *err)
{
    if (net_gradients(net, stop)) {
        return step_ended(net, opts, stop, err);
    }
    return opts->is_inference || isfinite(net_loss(net)) ? 0 : loss_ended(opts, err);
}

/* That many passes, an update after each, all on the same batch. */
static int steps(struct net *net, const struct train_opts *opts, const stop_flag *stop,
                 struct err *err)
{
    for (int64_t step = 1; step <= opts->steps; step++) {
        struct opt_state state;
        if (pass(net, opts, stop, err) < 0) {
            return -1;
        }
        net_update(net, schedule_lr(&opts->schedule, step));
        net_read_opt_state(net, &state);
        if (state.found_inf != 0) {
            return err_set(err, ERR_WORKLOAD,
                           "%s: a gradient of step %" PRId64 " is not finite; %s was not written",
                           opts->check_path, step, opts->out_path);
        }
    }
    return 0;
}

/* From the network in memory to the file. */
static int compute(struct net *net, const struct train_opts *opts, const struct st_file *file,
                   const stop_flag *stop, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct results results = {
        .arena = &arena,
        .tensors = arena_array(&arena, struct st_tensor, (size_t)net->graph->n_values)};
    if (opts->dtype == DT_F16) {
        if (compute_scaled(net, opts, file, stop, &results, err) < 0) {
            return -1;
        }
    } else {
        write_inputs(net, file);
        net_broadcast(net);
        if (opts->is_inference) {
            net_take_running(net, NULL);
        }
        int status = opts->steps > 0 ? steps(net, opts, stop, err) : pass(net, opts, stop, err);
        if (status < 0) {
            return -1;
        }
        collect_results(net, opts->steps > 0, &results);
    }
    if (net->comm && comm_has_failed(net->comm)) {
        *err = net->comm->err;
        return -1;
    }
    return opts->ranks.rank == 0 ? st_write(opts->out_path, results.tensors, results.n, err) : 0;
}

int train_check(const struct train_opts *given, const stop_flag *stop, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(device) struct device device = {0};
    CLEANUP(job) struct job job = {0};
    CLEANUP(net) struct net net = {0};
    struct backend backend;
    struct graph *plain = NULL;
    struct st_file file;
    struct train_opts opts = *given;
    const struct mlog log = {.fd = STDOUT_FILENO, .rank = opts.ranks.rank};
    char batch[80];
    if (st_read(&arena, opts.check_path, &file, err) < 0) {
        return -1;
    }
    if (read_geometry(&file, &opts, err) < 0) {
        return err_wrap(err, "%s", opts.check_path);
    }
    if (device_open(&device, &opts, &backend, err) < 0 ||
        train_graph(&opts, &arena, &plain, err) < 0) {
        return -1;
    }
    if (check_names(plain, &file, &opts, err) < 0) {
        return err_wrap(err, "%s", opts.check_path);
    }
    digest_batch(plain, &file, batch);
    if (team_open(&job, &(struct team_opts){&opts, &backend, plain, batch, stop, &log}, err) < 0) {
        return -1;
    }
    if (team_plan(&job, &opts, &arena, &backend, &net, err) < 0 ||
        train_alloc(&opts, &net, 0, err) < 0 || compute(&net, &opts, &file, stop, err) < 0) {
        return team_fail(&job, &log, opts.device, "check", err);
    }
    return 0;
}
