/* SPDX-License-Identifier: Apache-2.0 */
/* Each call of a step alone: how long, how many bytes and operations, and what share that is of the GPU's peaks. */
#include "base/base.h"

#include "bench/bench.h"

#include "backend_cpu/cpu.h"
#include "base/fs.h"
#include "base/rng.h"
#include "base/table.h"
#include "core/optim.h"
#include "core/plan_cache.h"
#include "graph/fuse_choose.h"
#include "graph/net.h"
#include "graph/traffic.h"
#include "models/tokens.h"

#ifdef REPERF_HAVE_CUDA
#include "backend_cuda/cuda.h"
#endif

#include <unistd.h>

#define DOCUMENT_BYTES_MAX (16 << 20)

struct kernels {
    const struct bench_opts *opts;
    struct clock_src clock;
    struct arena arena;
    struct backend backend;
    struct cpu cpu;
#ifdef REPERF_HAVE_CUDA
    struct cuda cuda;
#endif
    bool is_cuda, is_open;
    const char *gpu; /* NULL: none */
    struct graph *graph;
    struct net net;
    double *ns;   /* (n_calls + 1, n_turns - 1): of one call; the last row is the update's */
    int64_t n_ns; /* columns */
};

/* ---- the device ---- */

static int open_device(struct kernels *k, struct err *err)
{
    k->is_cuda = strcmp(k->opts->device, "cuda") == 0;
    if (!k->is_cuda) {
        if (cpu_init(&k->cpu, CPU_PLAIN, 0, &k->backend, err) < 0) {
            return -1;
        }
        k->is_open = true;
        return 0;
    }
#ifdef REPERF_HAVE_CUDA
    const struct cuda_opts opts = {
        .is_amp = strcmp(k->opts->precision, "amp") == 0,
        .has_tf32 = k->opts->has_tf32,
        .n_streams = 1,
        .n_marks = 2,
        .plan = {.is_tuned = true,
                 .has_tune_limit = true,
                 .tune_limit_s = k->opts->tune_s,
                 .allows_compiled = k->opts->allows_compiled,
                 .allows_nondeterministic = k->opts->allows_nondeterministic,
                 .cache_folder = plan_cache_folder(&k->arena)}};
    if (cuda_init(&k->cuda, &opts, &k->backend, err) < 0) {
        return -1;
    }
    k->is_open = true;
    k->gpu = arena_printf(&k->arena, "%s", cuda_facts(&k->cuda).gpu);
    return 0;
#else
    return err_set(err, ERR_USAGE, "--device cuda: this build is without CUDA");
#endif
}

static void close_device(struct kernels *k)
{
    if (!k->is_open) {
        return;
    }
    if (!k->is_cuda) {
        cpu_release(&k->cpu);
        return;
    }
#ifdef REPERF_HAVE_CUDA
    cuda_release(&k->cuda);
#endif
}

/* ---- the step ---- */

static int build_graph(struct kernels *k, const struct graph_types *types, struct graph **ret_graph,
                       struct err *err)
{
    const struct bench_opts *o = k->opts;
    *ret_graph = graph_new_typed(&k->arena, types);
    o->model->build(*ret_graph, &(struct model_opts){.batch = o->batch,
                                                     .height = o->height,
                                                     .width = o->width,
                                                     .sequence = o->sequence,
                                                     .predictions = o->predictions,
                                                     .has_dropout = true});
    return graph_finish(*ret_graph, err);
}

/* Fused as in training: what the device supports and does faster. */
static int fuse(struct kernels *k, const struct graph_types *types, struct err *err)
{
    const struct fuse_support support = fuse_support_hopper();
    const struct fuse_asked asked = {.support = &support, .backend = &k->backend};
    struct graph *used_up = NULL;
    struct fuse_list list;
    struct fuse_tally tally;
    if (build_graph(k, types, &used_up, err) < 0 ||
        fuse_choose(&k->arena, used_up, &asked, &list, &tally, err) < 0) {
        return -1;
    }
    return graph_fuse_listed(k->graph, &list, NULL, err);
}

static int build(struct kernels *k, struct err *err)
{
    static const struct opt_rule rules[] = {
        {.method = OPT_SGD, .momentum = 0.9, .weight_decay = 1e-4},
        {.method = OPT_ADAMW, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-6, .weight_decay = 0.01}};
    const struct bench_opts *o = k->opts;
    bool is_amp = strcmp(o->precision, "amp") == 0;
    const struct graph_types types = {is_amp ? DT_F16 : DT_F32, DT_F32,
                                      k->is_cuda ? DT_F32 : DT_F64};
    struct opt_rule rule = rules[o->model->kind == MODEL_TOKENS];
    rule.loss_scale = 1.0F;
    rule.n_micro = 1;
    if (build_graph(k, &types, &k->graph, err) < 0 || (o->is_fused && fuse(k, &types, err) < 0) ||
        net_plan(&k->net, &k->arena, k->graph, &k->backend, err) < 0 ||
        net_plan_optimizer(&k->net, &k->arena, &rule, NET_DECAY_ALL, err) < 0) {
        return -1;
    }
    return net_alloc(&k->net, err);
}

/* Upper bound of an integer input: labels are classes, segments two, positions within the sequence, masks all 1. */
static int64_t below_of(const struct kernels *k, const char *name)
{
    static const enum token_part pairs[] = {TOKENS_SEGMENTS, TOKENS_NEXT};
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        if (strcmp(name, token_part_name(pairs[i])) == 0) {
            return 2;
        }
    }
    return strcmp(name, token_part_name(TOKENS_POSITIONS)) == 0 ? k->opts->sequence
                                                                : k->opts->model->n_classes;
}

static void fill_inputs(struct kernels *k)
{
    struct rng rng;
    rng_init(&rng, (uint64_t)k->opts->seed);
    net_init_values(&k->net, (uint64_t)k->opts->seed);
    for (int i = 0; i < k->graph->n_values; i++) {
        const struct value *value = &k->graph->values[i];
        int64_t count = shape_count(&value->shape);
        if (value->kind != VALUE_INPUT) {
            continue;
        }
        if (value->dtype == DT_I64) {
            int64_t *whole = xcalloc((size_t)count, sizeof(*whole));
            bool is_mask = strcmp(value->name, token_part_name(TOKENS_MASK)) == 0;
            for (int64_t j = 0; j < count; j++) {
                whole[j] =
                    is_mask ? 1 : (int64_t)rng_below(&rng, (uint64_t)below_of(k, value->name));
            }
            net_write(&k->net, i, whole);
            free(whole);
        } else {
            double *real = xcalloc((size_t)count, sizeof(*real));
            for (int64_t j = 0; j < count; j++) {
                real[j] = rng_normal(&rng);
            }
            net_write_f64(&k->net, i, real);
            free(real);
        }
    }
}

/* ---- time ---- */

struct span {
    struct kernels *k;
    int64_t begin_ns;
};

static struct span span_begin(struct kernels *k)
{
    if (k->is_cuda) {
        k->backend.async.mark(k->backend.self, 0, NULL, 0);
    }
    return (struct span){k, k->is_cuda ? 0 : k->clock.mono_ns(k->clock.ctx)};
}

static int span_end(const struct span *span, int64_t *ret_ns, struct err *err)
{
    struct kernels *k = span->k;
    char nothing[8];
    if (!k->is_cuda) {
        *ret_ns = k->clock.mono_ns(k->clock.ctx) - span->begin_ns;
        return 0;
    }
    k->backend.async.mark(k->backend.self, 1, NULL, 0);
    return k->backend.async.collect(k->backend.self, 1, 0, nothing, ret_ns, err);
}

static void run_call(struct kernels *k, int idx)
{
    if (idx == k->graph->n_calls) {
        net_apply_update(&k->net);
    } else {
        const struct kernel_args *args = &k->net.calls[idx].args;
        k->backend.run[args->id](k->backend.self, args);
    }
}

/* One step in its order, so that a call reads what the previous one has just left in the caches, including positions in a window. Each
   call runs once and then as many times as are timed together; an output that is added to only grows. */
static int time_step(struct kernels *k, int64_t turn, const volatile sig_atomic_t *stop,
                     struct err *err)
{
    for (int i = 0; i <= k->graph->n_calls; i++) {
        int64_t ns = 0;
        run_call(k, i);
        const struct span span = span_begin(k);
        for (int64_t n = 0; n < k->opts->turn_steps; n++) {
            run_call(k, i);
        }
        if (span_end(&span, &ns, err) < 0) {
            return -1;
        }
        if (turn > 0) { /* the first is warm-up */
            k->ns[i * k->n_ns + turn - 1] = (double)ns / (double)k->opts->turn_steps;
        }
        if (*stop != 0) {
            return err_set(err, ERR_INTERRUPTED, "signal %d", (int)*stop);
        }
    }
    return 0;
}

/* ---- what it comes to ---- */

struct sum {
    const char *name;
    int n_calls;
    double ns, bytes, flops;
};

static int64_t stored_bytes(void *self, const struct tensor_desc *desc)
{
    const struct backend *backend = self;
    return backend->tensor_bytes(backend->self, desc);
}

/* Matrix products only: element-wise work is negligible next to its memory traffic. */
static double flops_of(const struct graph *graph, const struct call *call)
{
    const struct op *op = &graph->ops[call->op];
    double once = 2.0 * (double)op->macs;
    bool is_attention = call->args.id == K_ATTENTION_BWD;
    return is_attention ? 2.0 * once : once;
}

static const bool IS_PRODUCT[K_COUNT] = {
    [K_CONV_FWD] = true,       [K_CONV_BWD_DATA] = true,    [K_CONV_BWD_WEIGHT] = true,
    [K_CONV_STATS_FWD] = true, [K_CONV_BWD_DATA_BN] = true, [K_NORM_CONV_BWD_WEIGHT] = true,
    [K_LINEAR_FWD] = true,     [K_LINEAR_BWD_DATA] = true,  [K_LINEAR_BWD_WEIGHT] = true,
    [K_ATTENTION_FWD] = true,  [K_ATTENTION_BWD] = true};

static double median_ns(const struct kernels *k, int idx)
{
    return bench_median(&k->ns[idx * k->n_ns], k->n_ns);
}

static struct sum sum_of(struct kernels *k, int idx)
{
    if (idx == k->graph->n_calls) {
        struct floor_count count;
        floor_of_graph(&k->arena, k->graph, bench_moments(k->opts), true, &count);
        return (struct sum){"update", 1, median_ns(k, idx), count.parts[count.n_parts - 1].bytes,
                            0.0};
    }
    const struct call *call = &k->graph->calls[idx];
    const struct traffic traffic = traffic_of_call(k->graph, call, stored_bytes, &k->backend);
    return (struct sum){kernel_name(call->args.id), 1, median_ns(k, idx),
                        (double)(traffic.floor_bytes + traffic.reread_bytes),
                        IS_PRODUCT[call->args.id] ? flops_of(k->graph, call) : 0.0};
}

static void put_sum(struct json_out *out, const struct kernels *k, const struct sum *sum)
{
    const struct peak *peak = k->gpu ? peak_find(str_of(k->gpu)) : NULL;
    double seconds = sum->ns / (double)NS_PER_S;
    json_out_put_i64(out, "calls", sum->n_calls);
    json_out_put_f64(out, "ns", sum->ns);
    json_out_put_f64(out, "bytes", sum->bytes);
    json_out_put_f64(out, "flops", sum->flops);
    if (peak && seconds > 0.0) {
        json_out_put_f64(out, "share_of_bytes", sum->bytes / seconds / peak->bytes_per_s);
        json_out_put_f64(out, "share_of_flops",
                         sum->flops / seconds / bench_peak_flops(k->opts, peak));
    }
}

static void text_of_value(const struct graph *graph, int value, char ret_text[SHAPE_TEXT_MAX])
{
    ret_text[0] = '\0';
    if (value != NO_VALUE) {
        shape_text(&graph->values[value].shape, ret_text);
    }
}

static void put_calls(struct json_out *out, struct kernels *k, const struct sum *sums)
{
    json_out_key(out, "calls");
    json_out_open(out, '[');
    for (int i = 0; i < k->graph->n_calls; i++) {
        const struct call *call = &k->graph->calls[i];
        char in[SHAPE_TEXT_MAX];
        char to[SHAPE_TEXT_MAX];
        text_of_value(k->graph, call->in[0], in);
        text_of_value(k->graph, call->out[0], to);
        json_out_open(out, '{');
        json_out_put_text(out, "kernel", sums[i].name);
        json_out_put_text(out, "in", in);
        json_out_put_text(out, "out", to);
        json_out_put_i64(out, "adds", (int64_t)call->args.accumulate);
        put_sum(out, k, &sums[i]);
        json_out_close(out, '}');
    }
    json_out_close(out, ']');
}

static int write_document(struct kernels *k, const struct sum *sums, const struct sum *kinds,
                          int n_kinds, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text;
    strbuf_init(&text, DOCUMENT_BYTES_MAX);
    struct json_out out = {.buf = &text};
    json_out_open(&out, '{');
    json_out_put_i64(&out, "schema_version", 1);
    json_out_put_text(&out, "model", k->opts->model->name);
    json_out_put_text(&out, "precision", k->opts->precision);
    json_out_put_text(&out, "device", k->opts->device);
    json_out_put_text(&out, "gpu", k->gpu ? k->gpu : "");
    json_out_put_i64(&out, "batch", k->opts->batch);
    json_out_put_i64(&out, "turns", k->n_ns);
    json_out_put_i64(&out, "repeats", k->opts->turn_steps);
    json_out_key(&out, "fused");
    json_out_bool(&out, k->opts->is_fused);
    json_out_key(&out, "kernels");
    json_out_open(&out, '[');
    for (int i = 0; i < n_kinds; i++) {
        json_out_open(&out, '{');
        json_out_put_text(&out, "kernel", kinds[i].name);
        put_sum(&out, k, &kinds[i]);
        json_out_close(&out, '}');
    }
    json_out_close(&out, ']');
    put_calls(&out, k, sums);
    json_out_close(&out, '}');
    strbuf_add_char(&text, '\n');
    ASSERT(!text.is_full);
    const char *path =
        arena_printf(&k->arena, "%s/kernels-%s-%s%s.json", k->opts->out, k->opts->model->name,
                     k->opts->precision, k->opts->is_fused ? "-fused" : "");
    return fs_mkdir_p(k->opts->out, err) < 0 ? -1 : fs_write_atomic(path, strbuf_str(&text), err);
}

static int by_time(const void *a, const void *b)
{
    const struct sum *x = a;
    const struct sum *y = b;
    return (x->ns < y->ns) - (x->ns > y->ns);
}

static int print_table(const struct kernels *k, const struct sum *kinds, int n_kinds,
                       struct err *err)
{
    const struct peak *peak = k->gpu ? peak_find(str_of(k->gpu)) : NULL;
    CLEANUP(strbuf) struct strbuf text;
    CLEANUP(table) struct table table;
    strbuf_init(&text, 1 << 20);
    table = table_of("kernel|>calls|>ms a step|>MiB|>GB/s|>share|>TFLOP/s|>share");
    for (int i = 0; i < n_kinds; i++) {
        const struct sum *s = &kinds[i];
        double seconds = s->ns / (double)NS_PER_S;
        TABLE_ADD(&table, str_of(s->name), table_text(&table, "%d", s->n_calls),
                  table_text(&table, "%.4f", s->ns / (double)NS_PER_MS),
                  table_text(&table, "%.1f", s->bytes / (double)(1 << 20)),
                  table_text(&table, "%.1f", s->bytes / seconds / 1e9),
                  table_text(&table, peak ? "%.2f" : "-",
                             peak ? s->bytes / seconds / peak->bytes_per_s : 0.0),
                  table_text(&table, s->flops > 0.0 ? "%.2f" : "-", s->flops / seconds / 1e12),
                  table_text(&table, peak && s->flops > 0.0 ? "%.2f" : "-",
                             peak ? s->flops / seconds / bench_peak_flops(k->opts, peak) : 0.0));
    }
    strbuf_printf(&text, "%s, %s, batch %" PRId64 ", %s%s%s\n", k->opts->model->name,
                  k->opts->precision, k->opts->batch, k->gpu ? k->gpu : k->opts->device,
                  k->opts->is_fused ? ", fused" : "",
                  k->is_cuda ? "" : ": a trial of the bench, these times mean nothing");
    table_render(&table, &text);
    return fs_write_all(STDOUT_FILENO, text.ptr, text.len, "standard output", err);
}

static int tell(struct kernels *k, struct err *err)
{
    int n = k->graph->n_calls + 1;
    struct sum *sums = arena_array(&k->arena, struct sum, (size_t)n);
    struct sum *kinds = arena_array(&k->arena, struct sum, (size_t)n);
    int n_kinds = 0;
    for (int i = 0; i < n; i++) {
        int at = 0;
        sums[i] = sum_of(k, i);
        while (at < n_kinds && strcmp(kinds[at].name, sums[i].name) != 0) {
            at++;
        }
        n_kinds += at == n_kinds;
        kinds[at].name = sums[i].name;
        kinds[at].n_calls++;
        kinds[at].ns += sums[i].ns;
        kinds[at].bytes += sums[i].bytes;
        kinds[at].flops += sums[i].flops;
    }
    qsort(kinds, (size_t)n_kinds, sizeof(*kinds), by_time);
    if (k->opts->out && write_document(k, sums, kinds, n_kinds, err) < 0) {
        return -1;
    }
    return print_table(k, kinds, n_kinds, err);
}

static int measure(struct kernels *k, const volatile sig_atomic_t *stop, struct err *err)
{
    if (open_device(k, err) < 0 || build(k, err) < 0) {
        return -1;
    }
    fill_inputs(k);
    net_set_lr(&k->net, 1e-6);
    k->n_ns = k->opts->n_turns - 1;
    k->ns = arena_array(&k->arena, double, (size_t)((k->graph->n_calls + 1) * k->n_ns));
    for (int64_t turn = 0; turn < k->opts->n_turns; turn++) {
        if (time_step(k, turn, stop, err) < 0) {
            return -1;
        }
    }
    return tell(k, err);
}

int bench_kernels(const struct bench_opts *opts, struct clock_src clock,
                  const volatile sig_atomic_t *stop, struct err *err)
{
    struct kernels *k = xcalloc(1, sizeof(*k));
    k->opts = opts;
    k->clock = clock;
    int result = measure(k, stop, err);
    if (k->net.graph) {
        net_release(&k->net);
    }
    close_device(k);
    arena_release(&k->arena);
    free(k);
    return result;
}
