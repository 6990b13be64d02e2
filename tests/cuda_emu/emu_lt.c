/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces cuBLASLt (backend_cuda/lt.h): plain loops. Where rows are rounded up, so is K: the loops include the zeros, as the library
   does. */
#include "base/base.h"

#include "backend_cuda/lt.h"

#include <stdlib.h>

#include "emu.h"
#include "emu_library.h"

struct lt {
    int n_prepared;
};

int lt_open(struct cuda *cuda, const struct plan_opts *opts UNUSED, struct err *err)
{
    if (emu_fault("cublaslt")) {
        return err_set(err, ERR_USAGE, "libcublasLt.so is not available: planted");
    }
    cuda->lt = calloc(1, sizeof(*cuda->lt));
    return cuda->lt != NULL ? 0 : err_set(err, ERR_INTERNAL, "out of memory");
}

void lt_close(struct cuda *cuda)
{
    free(cuda->lt);
    cuda->lt = NULL;
}

const char *lt_version(const struct cuda *cuda UNUSED)
{
    return "cublaslt emulated";
}

int lt_prepare(struct cuda *cuda UNUSED, struct kernel_args *args, struct err *err UNUSED)
{
    library_prepare(args, "emulated cublaslt");
    return 0;
}

void lt_unprepare(struct cuda *cuda UNUSED, struct kernel_args *args)
{
    library_unprepare(args);
}

struct plan_info lt_plan_info(const struct kernel_args *args)
{
    return library_info(args);
}

/* y = x * w^T + bias */
static void forward(const struct kernel_args *args)
{
    const struct linear_geom *g = &args->geom.linear;
    float *x = library_read(args, args->in[0], g->n * g->c);
    float *w = library_read(args, args->in[1], g->k * g->c);
    float *bias = library_read(args, args->has_bias ? args->in[2] : NULL, g->k);
    double *y = library_zeros(g->n * g->k);
    for (int64_t n = 0; n < g->n; n++) {
        for (int64_t k = 0; k < g->k; k++) {
            y[n * g->k + k] = library_dot(x + n * g->c, w + k * g->c, g->c) +
                              (bias != NULL ? (double)bias[k] : 0.0);
        }
    }
    library_write(args, 0, y, g->n * g->k);
    free(x);
    free(w);
    free(bias);
    free(y);
}

/* dx = dy * w */
static void backward_data(const struct kernel_args *args)
{
    const struct linear_geom *g = &args->geom.linear;
    float *dy = library_read(args, args->in[0], g->n * g->k);
    float *w = library_read(args, args->in[1], g->k * g->c);
    double *dx = library_zeros(g->n * g->c);
    for (int64_t n = 0; n < g->n; n++) {
        for (int64_t k = 0; k < g->k; k++) {
            double grad = (double)dy[n * g->k + k];
            for (int64_t c = 0; c < g->c; c++) {
                dx[n * g->c + c] += grad * (double)w[k * g->c + c];
            }
        }
    }
    library_write(args, 0, dx, g->n * g->c);
    free(dy);
    free(w);
    free(dx);
}

/* dw = dy^T * x, dbias = the sum of dy over the rows */
static void backward_weight(const struct kernel_args *args)
{
    const struct linear_geom *g = &args->geom.linear;
    float *dy = library_read(args, args->in[0], g->n * g->k);
    float *x = library_read(args, args->in[1], g->n * g->c);
    double *dw = library_zeros(g->k * g->c);
    double *dbias = library_zeros(g->k);
    for (int64_t n = 0; n < g->n; n++) {
        for (int64_t k = 0; k < g->k; k++) {
            double grad = (double)dy[n * g->k + k];
            dbias[k] += grad;
            for (int64_t c = 0; c < g->c; c++) {
                dw[k * g->c + c] += grad * (double)x[n * g->c + c];
            }
        }
    }
    library_write(args, 0, dw, g->k * g->c);
    if (args->has_bias) {
        library_write(args, 1, dbias, g->k);
    }
    free(dy);
    free(x);
    free(dw);
    free(dbias);
}

void lt_run(void *self, const struct kernel_args *args)
{
    struct kernel_args stored = *args;
    struct linear_geom *g = &stored.geom.linear;
    g->k = g->is_rounded ? cuda_channels(self, g->k) : g->k;
    library_enqueue(self, &stored, "cublaslt",
                    args->id == K_LINEAR_FWD        ? forward
                    : args->id == K_LINEAR_BWD_DATA ? backward_data
                                                    : backward_weight);
}
