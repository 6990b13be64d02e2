/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces cuDNN (backend_cuda/dnn.h): plain loops over images (N, H, W, C') and filters (K', R, S, C'). They include the padding
   lanes: if those are not 0, neither are a result's. */
#include "base/base.h"

#include "backend_cuda/dnn.h"

#include <stdlib.h>

#include "emu.h"
#include "emu_library.h"

struct dnn {
    int channel_pad;
};

/* A call's numbers with channels rounded up. */
struct sizes {
    struct conv_geom g;
    int64_t x, y, w; /* elements */
};

static int64_t pad_of(const struct kernel_args *args)
{
    return args->dtype == DT_F16 ? 8 : 4; /* struct cuda's channel_pad */
}

static struct sizes sizes_of(const struct kernel_args *args)
{
    struct conv_geom g = args->geom.conv;
    int64_t pad = pad_of(args);
    g.c = (g.c + pad - 1) / pad * pad;
    g.k = (g.k + pad - 1) / pad * pad;
    return (struct sizes){
        .g = g, .x = g.n * g.h * g.w * g.c, .y = g.n * g.p * g.q * g.k, .w = g.k * g.r * g.s * g.c};
}

int dnn_open(struct cuda *cuda, const struct plan_opts *opts UNUSED, struct err *err)
{
    if (emu_fault("cudnn")) {
        return err_set(err, ERR_USAGE, "libcudnn.so.9 is not available: planted");
    }
    cuda->dnn = calloc(1, sizeof(*cuda->dnn));
    return cuda->dnn != NULL ? 0 : err_set(err, ERR_INTERNAL, "out of memory");
}

void dnn_close(struct cuda *cuda)
{
    free(cuda->dnn);
    cuda->dnn = NULL;
}

const char *dnn_version(const struct cuda *cuda UNUSED)
{
    return "cudnn emulated";
}

/* The fused ones as cuDNN 9.19 has them for an H100: half precision, 1x1 or 3x3, stride to 2, dilation to 8. */
bool dnn_supports(struct cuda *cuda UNUSED, const struct kernel_args *args)
{
    const struct conv_geom *g = &args->geom.conv;
    switch ((int)args->id) {
    case K_CONV_FWD:
    case K_CONV_BWD_DATA:
    case K_CONV_BWD_WEIGHT:
        return g->groups == 1;
    case K_CONV_STATS_FWD:
    case K_CONV_BWD_DATA_BN:
    case K_NORM_CONV_BWD_WEIGHT:
        return g->groups == 1 && args->dtype == DT_F16 && g->r == g->s &&
               (g->r == 1 || g->r == 3) && g->stride_h <= 2 && g->dil_h <= 8;
    default:
        return false;
    }
}

int dnn_prepare(struct cuda *cuda, struct kernel_args *args, struct err *err)
{
    if (!dnn_supports(cuda, args)) {
        return err_set(err, ERR_WORKLOAD, "%s: no plan (emulated cuDNN)", kernel_name(args->id));
    }
    library_prepare(args, "emulated cudnn");
    return 0;
}

void dnn_unprepare(struct cuda *cuda UNUSED, struct kernel_args *args)
{
    library_unprepare(args);
}

/* Index in x of filter element (r, s) of output pixel (n, p, q); -1: outside the image. */
static int64_t pixel(const struct conv_geom *g, int64_t n, int64_t p, int64_t q, int64_t r,
                     int64_t s)
{
    int64_t h = p * g->stride_h - g->pad_h + r * g->dil_h;
    int64_t w = q * g->stride_w - g->pad_w + s * g->dil_w;
    bool is_inside = h >= 0 && h < g->h && w >= 0 && w < g->w;
    return is_inside ? ((n * g->h + h) * g->w + w) * g->c : -1;
}

/* Calls fn for each output pixel `at` and filter element of it that is inside. */
typedef void (*window_fn)(const struct conv_geom *g, const float *a, const float *b, double *sum,
                          int64_t at, int64_t rs, int64_t x);

static void each_window(const struct conv_geom *g, window_fn fn, const float *a, const float *b,
                        double *sum)
{
    for (int64_t at = 0; at < g->n * g->p * g->q; at++) {
        for (int64_t rs = 0; rs < g->r * g->s; rs++) {
            int64_t x =
                pixel(g, at / (g->p * g->q), at / g->q % g->p, at % g->q, rs / g->s, rs % g->s);
            if (x >= 0) {
                fn(g, a, b, sum, at, rs, x);
            }
        }
    }
}

/* y += x * w */
static void window_fwd(const struct conv_geom *g, const float *x, const float *w, double *y,
                       int64_t at, int64_t rs, int64_t from)
{
    for (int64_t k = 0; k < g->k; k++) {
        y[at * g->k + k] += library_dot(x + from, w + (k * g->r * g->s + rs) * g->c, g->c);
    }
}

/* dx += dy * w */
static void window_data(const struct conv_geom *g, const float *dy, const float *w, double *dx,
                        int64_t at, int64_t rs, int64_t to)
{
    for (int64_t k = 0; k < g->k; k++) {
        double grad = (double)dy[at * g->k + k];
        const float *row = w + (k * g->r * g->s + rs) * g->c;
        for (int64_t c = 0; c < g->c; c++) {
            dx[to + c] += grad * (double)row[c];
        }
    }
}

/* dw += dy * x */
static void window_weight(const struct conv_geom *g, const float *dy, const float *x, double *dw,
                          int64_t at, int64_t rs, int64_t from)
{
    for (int64_t k = 0; k < g->k; k++) {
        double grad = (double)dy[at * g->k + k];
        double *row = dw + (k * g->r * g->s + rs) * g->c;
        for (int64_t c = 0; c < g->c; c++) {
            row[c] += grad * (double)x[from + c];
        }
    }
}

/* x = max(x * scale + shift, 0) in every lane of every pixel, a half as x is (backend_cuda/dnn_graph.c declares it so). */
static void normalise(const struct kernel_args *args, float *x, int64_t count, int64_t c,
                      const void *scale_ptr, const void *shift_ptr)
{
    float *scale = library_read(args, scale_ptr, c);
    float *shift = library_read(args, shift_ptr, c);
    for (int64_t i = 0; i < count; i++) {
        float value = x[i] * scale[i % c] + shift[i % c];
        x[i] = value < 0.0f ? 0.0f : (float)library_round(args, (double)value);
    }
    free(scale);
    free(shift);
}

static void forward(const struct kernel_args *args)
{
    struct sizes all = sizes_of(args);
    const struct conv_geom *g = &all.g;
    bool has_stats = args->id == K_CONV_STATS_FWD;
    float *x = library_read(args, args->in[0], all.x);
    float *w = library_read(args, args->in[1], all.w);
    float *bias = library_read(args, args->has_bias ? args->in[2] : NULL, g->k);
    double *y = library_zeros(all.y);
    if (has_stats && args->in[2] != NULL) {
        normalise(args, x, all.x, g->c, args->in[2], args->in[3]);
    }
    each_window(g, window_fwd, x, w, y);
    for (int64_t i = 0; i < all.y; i++) {
        y[i] += bias != NULL ? (double)bias[i % g->k] : 0.0;
    }
    for (int64_t k = 0; has_stats && k < g->k; k++) { /* of what is not yet rounded, as cuDNN */
        double sum = 0.0;
        double squares = 0.0;
        for (int64_t i = k; i < all.y; i += g->k) {
            sum += y[i];
            squares += y[i] * y[i];
        }
        ((float *)args->out[1])[k] = (float)sum;
        ((float *)args->out[2])[k] = (float)squares;
    }
    library_write(args, 0, y, all.y);
    free(x);
    free(w);
    free(bias);
    free(y);
}

static void backward_data(const struct kernel_args *args)
{
    struct sizes all = sizes_of(args);
    float *dy = library_read(args, args->in[0], all.y);
    float *w = library_read(args, args->in[1], all.w);
    double *dx = library_zeros(all.x);
    each_window(&all.g, window_data, dy, w, dx);
    library_write(args, 0, dx, all.x);
    free(dy);
    free(w);
    free(dx);
}

static void backward_weight(const struct kernel_args *args)
{
    struct sizes all = sizes_of(args);
    const struct conv_geom *g = &all.g;
    float *dy = library_read(args, args->in[0], all.y);
    float *x = library_read(args, args->in[1], all.x);
    double *dw = library_zeros(all.w);
    if (args->id == K_NORM_CONV_BWD_WEIGHT) {
        normalise(args, x, all.x, g->c, args->in[2], args->in[3]);
    }
    each_window(g, window_weight, dy, x, dw);
    library_write(args, 0, dw, all.w);
    if (args->has_bias) {
        double *dbias = library_zeros(g->k);
        for (int64_t i = 0; i < all.y; i++) {
            dbias[i % g->k] += (double)dy[i];
        }
        library_write(args, 1, dbias, g->k);
        free(dbias);
    }
    free(dy);
    free(x);
    free(dw);
}

/* dz = (data gradient + da) where gamma * hat + beta + a > 0, and its sums */
static void backward_data_bn(const struct kernel_args *args)
{
    struct sizes all = sizes_of(args);
    const struct conv_geom *g = &all.g;
    const float *const *of = (const float *const *)&args->in[3]; /* gamma, beta, mean, rstd */
    float *dy = library_read(args, args->in[0], all.y);
    float *w = library_read(args, args->in[1], all.w);
    float *x = library_read(args, args->in[2], all.x);
    float *da = library_read(args, args->in[7], all.x);
    float *a = library_read(args, args->in[8], all.x);
    double *dz = library_zeros(all.x);
    double *sums = library_zeros(2 * g->c);
    each_window(g, window_data, dy, w, dz);
    for (int64_t i = 0; i < all.x; i++) {
        int64_t c = i % g->c;
        double hat = ((double)x[i] - (double)of[2][c]) * (double)of[3][c];
        double y = (double)of[0][c] * hat + (double)of[1][c] + (a != NULL ? (double)a[i] : 0.0);
        dz[i] = y > 0.0 ? dz[i] + (da != NULL ? (double)da[i] : 0.0) : 0.0;
        sums[c] += dz[i];
        sums[g->c + c] += dz[i] * hat;
    }
    library_write(args, 0, dz, all.x);
    for (int64_t c = 0; c < g->c; c++) {
        ((float *)args->out[1])[c] = (float)sums[c];
        ((float *)args->out[2])[c] = (float)sums[g->c + c];
    }
    free(dy);
    free(w);
    free(x);
    free(da);
    free(a);
    free(dz);
    free(sums);
}

void dnn_run(void *self, const struct kernel_args *args)
{
    void (*fn)(const struct kernel_args *args) = NULL;
    switch ((int)args->id) {
    case K_CONV_FWD:
    case K_CONV_STATS_FWD:
        fn = forward;
        break;
    case K_CONV_BWD_DATA:
        fn = backward_data;
        break;
    case K_CONV_BWD_WEIGHT:
    case K_NORM_CONV_BWD_WEIGHT:
        fn = backward_weight;
        break;
    default:
        fn = backward_data_bn;
        break;
    }
    library_enqueue(self, args, "cudnn", fn);
}
