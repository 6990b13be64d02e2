/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/rounded.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/half.h"

#define HALF_DIGITS  11
#define HALF_MIN_EXP (-13) /* as FLT_MIN_EXP: the smallest normal half is 2^-14 */

/* --- types --------------------------------------------------------------------------------------- */
/* From one value of the type to the next, at x. */
static double step_at(double x, enum dtype dtype)
{
    bool is_half = dtype == DT_F16;
    int digits = is_half ? HALF_DIGITS : FLT_MANT_DIG;
    int least = is_half ? HALF_MIN_EXP : FLT_MIN_EXP;
    int exponent = least;
    if (x != 0.0 && isfinite(x)) {
        (void)frexp(x, &exponent);
    }
    return ldexp(1.0, (exponent > least ? exponent : least) - digits);
}

static double rounded(double x, enum dtype dtype)
{
    switch ((int)dtype) {
    case DT_F16:
        return (double)half_to_float(half_from_float((float)x));
    case DT_F32:
        return (double)(float)x;
    default:
        return x;
    }
}

/* --- one output ---------------------------------------------------------------------------------- */
struct output {
    const char *name; /* of the call and its output */
    enum kernel_id id;
    enum dtype dtype; /* on the device */
    int64_t count, inner;
    double *got, *exact, *want; /* owned; want is exact, rounded */
    double *twice, *product; /* owned; NULL, or what else is right, and of which sum (add_twice) */
    double norm;             /* of want */
    bool is_gradient;
};
/* Each as a share of what is allowed. */
struct judged {
    double off, other;
};
#define OTHER_FEW 4.0 /* of an output of few elements one says nothing */

static bool rounds_inside(enum kernel_id id)
{
    return id == K_ATTENTION_FWD || id == K_ATTENTION_BWD;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double distance(const struct output *out, int64_t i, double got)
{
    double once = fabs(got - out->want[i]);
    double twice = out->twice ? fabs(got - out->twice[i]) : once;
    return twice < once ? twice : once;
}

static struct judged judge(const struct output *out, const double *got)
{
    double count = (double)out->count;
    double least = step_at(0.0, out->dtype);
    double mean = out->norm / sqrt(count);
    double squares = 0.0;
    double element = 0.0;
    double n_other = 0.0;
    for (int64_t i = 0; i < out->count; i++) {
        double apart = distance(out, i, got[i]);
        n_other += !(apart == 0.0);
        squares += apart * apart;
        element =
            larger(apart / (ROUNDED_ELEMENT_MAX * (fabs(out->want[i]) + mean) + least), element);
    }
    if (out->dtype == DT_I32) {
        return (struct judged){.off = n_other / (ROUNDED_INTEGER_MAX * count)};
    }
    if (!isfinite(squares)) { /* NaN is no larger than anything */
        return (struct judged){(double)INFINITY, 0.0};
    }
    double norm = sqrt(squares) / (ROUNDED_NORM_MAX * out->norm + least * sqrt(count));
    bool is_counted = out->dtype == DT_F16 && !rounds_inside(out->id);
    double otherwise = n_other / (ROUNDED_OTHER_MAX * count + OTHER_FEW);
    return (struct judged){larger(norm, element), is_counted ? otherwise : 0.0};
}

static bool is_held(struct judged judged)
{
    return judged.off <= 1.0 && judged.other <= 1.0;
}

static void note(struct rounded_worst *worst, double value, const char *name)
{
    if (value > worst->value) {
        worst->value = value;
        (void)snprintf(worst->name, sizeof(worst->name), "%s", name);
    }
}

/* The product behind an element of add_twice, rounded, may be off by a step of its own. */
static bool is_added_twice(const struct output *out, int64_t i)
{
    return out->twice && fabs(out->got[i] - out->twice[i]) <= step_at(out->product[i], DT_F16);
}

/* The value with which the CPU continues, into want. An element that nearly cancels is as exact as the terms it is made of,
   which are of the size of the others. */
static void settle(struct output *out, bool is_whole)
{
    double mean = out->norm / sqrt((double)out->count);
    for (int64_t i = 0; i < out->count && (is_whole || out->dtype == DT_F16); i++) {
        double apart = fabs(out->got[i] - out->exact[i]);
        double size = larger(fabs(out->exact[i]), mean);
        if (is_whole || is_added_twice(out, i) || apart <= step_at(size, DT_F16)) {
            out->want[i] = out->got[i];
        }
    }
}

/* --- planted faults ------------------------------------------------------------------------------ */
enum fault { FAULT_TENTH, FAULT_PLACE, FAULT_EDGE, FAULT_SCALE, FAULT_CUT, FAULT_NAN, FAULT_COUNT };
static const char *const FAULT_NAME[FAULT_COUNT] = {
    "a tenth too large", "one place on",         "the last of each row missing",
    "no loss scale",     "cut off, not rounded", "one NaN"};
#define FAULT_CALLS 4 /* of each kernel, at its first ones */
#define FAULT_LEAST                                                                                \
    0.1 /* relative to an element's size and the mean: a smaller fault hardly counts */

static double cut_off(double want, double exact)
{
    bool is_beyond = fabs(want) > fabs(exact);
    return is_beyond ? want - copysign(step_at(exact, DT_F16), want) : want;
}

static double plant(const struct output *out, enum fault fault, int64_t i, double grad_scale)
{
    switch (fault) {
    case FAULT_TENTH:
        return out->got[i] * 1.1;
    case FAULT_PLACE:
        return out->got[(i + 1) % out->count];
    case FAULT_EDGE:
        return i % out->inner == out->inner - 1 ? 0.0 : out->got[i];
    case FAULT_SCALE:
        return out->is_gradient ? out->got[i] / grad_scale : out->got[i];
    case FAULT_CUT:
        return cut_off(out->want[i], out->exact[i]);
    case FAULT_NAN:
        return i == out->count / 2 ? (double)NAN : out->got[i];
    case FAULT_COUNT:
        break;
    }
    return 0.0;
}

/* The output with a fault in it; false where it would be none: equal elements, edges of 0, results that need no rounding. */
static bool planted(const struct output *out, enum fault fault, double grad_scale, double *ret_bad)
{
    double mean = out->norm / sqrt((double)out->count);
    double most = 0.0;
    int64_t n_cut = 0;
    for (int64_t i = 0; i < out->count; i++) {
        ret_bad[i] = plant(out, fault, i, grad_scale);
        double apart = fabs(ret_bad[i] - out->want[i]);
        most = larger(apart / (fabs(out->want[i]) + mean), most);
        n_cut += apart > 0.0;
    }
    if (fault == FAULT_CUT) {
        bool can_be = out->dtype == DT_F16 && !rounds_inside(out->id);
        /* With so few that a quarter may be rounded otherwise, it is chance which are truncated. */
        return can_be && (double)n_cut > (double)out->count / 4.0 && out->count > 8 * OTHER_FEW;
    }
    return fault == FAULT_NAN || most > (fault == FAULT_TENTH ? 0.0 : FAULT_LEAST);
}

static void plant_all(const struct output *out, double grad_scale, struct rounded_report *report)
{
    CLEANUP(free) double *bad = xcalloc((size_t)out->count, sizeof(*bad));
    for (enum fault fault = 0; fault < FAULT_COUNT && out->dtype != DT_I32; fault++) {
        if (!planted(out, fault, grad_scale, bad)) {
            continue;
        }
        report->n_planted++;
        if (is_held(judge(out, bad))) {
            report->n_missed++;
            (void)snprintf(report->missed, sizeof(report->missed), "%s, %s", out->name,
                           FAULT_NAME[fault]);
        }
    }
}

/* --- calls --------------------------------------------------------------------------------------- */
/* Elements of any type as doubles. */
static double *read_any(const struct trial *trial, int value)
{
    if (trial->graph->values[value].dtype != DT_I32) {
        return trial_read(trial, value);
    }
    int64_t count = shape_count(&trial->graph->values[value].shape);
    int32_t *whole = xcalloc((size_t)count, sizeof(*whole));
    double *out = xcalloc((size_t)count, sizeof(*out));
    net_read(&trial->net, value, whole);
    for (int64_t i = 0; i < count; i++) {
        out[i] = (double)whole[i];
    }
    free(whole);
    return out;
}

/* relu(x * scale + shift) is what a fused convolution begins with. On the device it is a half like every operand of a tensor core, and is
   declared as one (backend_cuda/dnn_graph.c); the CPU's kernel would keep it in double. So it is computed and rounded here, and passed to
   the kernel as x, with a scale of 1 and a shift of 0, which leave it unchanged. To be freed; NULL where nothing is normalised first. */
static double *begin_normalised(const struct trial *host, const struct call *call,
                                struct kernel_args *args)
{
    bool is_weight = args->id == K_NORM_CONV_BWD_WEIGHT;
    int at = is_weight ? 1 : 0;
    if (!is_weight && (args->id != K_CONV_STATS_FWD || call->in[2] == NO_VALUE)) {
        return NULL;
    }
    const struct conv_geom *g = &args->geom.conv;
    int64_t plane = g->h * g->w;
    int64_t count = g->n * g->c * plane;
    double *x = trial_read(host, call->in[at]);
    double *scale = trial_read(host, call->in[2]);
    double *shift = trial_read(host, call->in[3]);
    double *made = xcalloc((size_t)(count + 2 * g->c), sizeof(*made)); /* x, ones, zeros */
    for (int64_t i = 0; i < count; i++) {
        int64_t c = i / plane % g->c;
        double value = x[i] * scale[c] + shift[c];
        made[i] = value < 0.0 ? 0.0 : rounded(value, DT_F16);
    }
    for (int64_t c = 0; c < g->c; c++) {
        made[count + c] = 1.0;
    }
    args->in[at] = made;
    args->in[2] = made + count;
    args->in[3] = made + count + g->c;
    free(x);
    free(scale);
    free(shift);
    return made;
}

/* A fused convolution's sums by channel. cuDNN 9.14 on an H200 adds what it has before it rounds to halves, others may add the halves: both are
   right, and where a mean nearly cancels the two take the next batch norm to other halves. So the CPU continues with the device's sums, too. */
static bool is_sum(enum kernel_id id, int idx)
{
    return idx > 0 && (id == K_CONV_STATS_FWD || id == K_CONV_BWD_DATA_BN);
}

/* The CPU's kernels have no loss scale: the gradients of a loss get it here. */
static bool begins_gradients(enum kernel_id id, int out)
{
    return id == K_LOSS_BWD || id == K_UPSAMPLE_LOSS_BWD || (id == K_ROW_LOSS && out == 1);
}

static void run_host(struct trial *host, const struct call *call, double grad_scale)
{
    double *before[KERNEL_OUT_MAX] = {NULL};
    for (int i = 0; i < KERNEL_OUT_MAX; i++) {
        if (call->out[i] != NO_VALUE && begins_gradients(call->args.id, i)) {
            before[i] = trial_read(host, call->out[i]);
        }
    }
    struct kernel_args args = call->args;
    double *made = begin_normalised(host, call, &args);
    host->net.backend->run[args.id](host->net.backend->self, &args);
    free(made);
    for (int i = 0; i < KERNEL_OUT_MAX; i++) {
        if (before[i] == NULL) {
            continue;
        }
        double *after = trial_read(host, call->out[i]);
        bool is_added = (call->args.accumulate >> i & 1) != 0;
        int64_t count = shape_count(&host->graph->values[call->out[i]].shape);
        for (int64_t k = 0; k < count; k++) {
            double from = is_added ? before[i][k] : 0.0;
            after[k] = from + (after[k] - from) * grad_scale;
        }
        net_write(&host->net, call->out[i], after);
        free(after);
        free(before[i]);
    }
}

/* Where a product is added to what is there, cuDNN and cuBLASLt round it to a half first and the sum again (seen on an H200 with cuDNN 9.14 and
   cuBLASLt 13.1). A library that rounds the sum alone is right, too. */
static bool adds_product(const struct call *call)
{
    enum kernel_id id = call->args.id;
    return (call->args.accumulate & 1U) != 0 &&
           (id == K_CONV_BWD_DATA || id == K_CONV_BWD_WEIGHT || id == K_NORM_CONV_BWD_WEIGHT ||
            id == K_LINEAR_BWD_DATA || id == K_LINEAR_BWD_WEIGHT);
}

/* prior: what the call adds to, which becomes the result; NULL where it adds no product. */
static void add_twice(struct output *out, double *prior)
{
    out->twice = prior;
    out->product = prior ? xcalloc((size_t)out->count, sizeof(*out->product)) : NULL;
    for (int64_t i = 0; prior && i < out->count; i++) {
        out->product[i] = rounded(out->exact[i] - prior[i], DT_F16);
        prior[i] = rounded(prior[i] + out->product[i], DT_F16);
    }
}

/* The parameter or state, or else the first value that the call reads. */
static void name_output(const struct graph *graph, const struct call *call, int idx, char *name)
{
    const char *of = graph->values[call->out[idx]].name;
    for (int i = 0; i < KERNEL_IN_MAX && of == NULL; i++) {
        of = call->in[i] != NO_VALUE ? graph->values[call->in[i]].name : NULL;
    }
    const struct op *op = &graph->ops[call->op];
    for (int i = 0; i < OP_IN_MAX && of == NULL; i++) {
        of = op->in[i] != NO_VALUE ? graph->values[op->in[i]].name : NULL;
    }
    (void)snprintf(name, ROUNDED_NAME_MAX, "out[%d] of %s %s", idx, kernel_name(call->args.id),
                   of ? of : "");
}

struct rounded_trials {
    struct trial *device, *host;
    double grad_scale;
    int n_calls[K_COUNT], n_planted[K_COUNT]; /* until now */
};

static struct output output_of(const struct trial *device, const struct trial *host,
                               const struct call *call, int idx)
{
    int value = call->out[idx];
    const struct value *v = &device->graph->values[value];
    struct output out = {.id = call->args.id,
                         .dtype = v->dtype,
                         .count = shape_count(&v->shape),
                         .inner = v->shape.n_dims > 0 ? v->shape.dim[v->shape.n_dims - 1] : 1,
                         .got = read_any(device, value),
                         .exact = read_any(host, value),
                         .is_gradient = v->kind == VALUE_GRAD_PARAM || v->kind == VALUE_GRAD_ACT};
    double squares = 0.0;
    out.want = xcalloc((size_t)out.count, sizeof(*out.want));
    for (int64_t i = 0; i < out.count; i++) {
        out.want[i] = rounded(out.exact[i], v->dtype);
        squares += out.want[i] * out.want[i];
    }
    out.norm = sqrt(squares);
    return out;
}

/* prior: see add_twice. */
static void hold_output(struct rounded_trials *t, const struct call *call, int idx, double *prior,
                        struct rounded_report *report)
{
    char name[ROUNDED_NAME_MAX];
    struct output out = output_of(t->device, t->host, call, idx);
    name_output(t->device->graph, call, idx, name);
    out.name = name;
    add_twice(&out, prior);
    struct judged judged = judge(&out, out.got);
    note(&report->off, judged.off, name);
    note(&report->other, judged.other, name);
    if (!is_held(judged) && report->n_bad++ == 0) {
        (void)snprintf(report->first, sizeof(report->first), "%s", name);
    }
    report->n_outputs++;
    if (t->n_calls[out.id] < FAULT_CALLS) {
        int before = report->n_planted;
        plant_all(&out, t->grad_scale, report);
        t->n_planted[out.id] += report->n_planted - before;
    }
    if (out.dtype != DT_I32) {
        settle(&out, is_held(judged) && (rounds_inside(out.id) || is_sum(out.id, idx)));
        net_write(&t->host->net, call->out[idx], out.want);
    }
    free(out.got);
    free(out.exact);
    free(out.want);
    free(out.twice);
    free(out.product);
}

/* A kernel in which no fault could be planted has not been shown to be checked. */
static void miss_unplanted(const struct rounded_trials *t, struct rounded_report *report)
{
    for (int id = 0; id < K_COUNT; id++) {
        if (t->n_calls[id] > 0 && t->n_planted[id] == 0) {
            report->n_missed++;
            (void)snprintf(report->missed, sizeof(report->missed), "any in %s",
                           kernel_name((enum kernel_id)id));
        }
    }
}

int rounded_step(struct trial *device, struct trial *host, double grad_scale,
                 struct rounded_report *ret_report, struct err *err)
{
    const struct backend *backend = device->net.backend;
    struct rounded_report report = {.n_calls = device->graph->n_calls};
    struct rounded_trials trials = {.device = device, .host = host, .grad_scale = grad_scale};
    ASSERT(host->graph->n_calls == report.n_calls);
    for (int i = 0; i < report.n_calls; i++) {
        const struct call *here = &device->net.calls[i];
        const struct call *there = &host->net.calls[i];
        ASSERT(here->args.id == there->args.id);
        ASSERT(memcmp(here->out, there->out, sizeof(here->out)) == 0);
        backend->run[here->args.id](backend->self, &here->args);
        if (backend->async.check(backend->self, err) < 0) {
            return err_wrap(err, "%s", kernel_name(here->args.id));
        }
        bool is_half = device->graph->values[here->out[0]].dtype == DT_F16;
        double *prior = adds_product(there) && is_half ? trial_read(host, there->out[0]) : NULL;
        run_host(host, there, grad_scale);
        for (int k = 0; k < KERNEL_OUT_MAX; k++) {
            if (here->out[k] != NO_VALUE) {
                hold_output(&trials, here, k, k == 0 ? prior : NULL, &report);
            }
        }
        trials.n_calls[here->args.id]++;
    }
    miss_unplanted(&trials, &report);
    *ret_report = report;
    return 0;
}
