/* SPDX-License-Identifier: Apache-2.0 */
/* Linear layers by oneDNN's matrix product, which takes row-major matrices as they are: nothing to plan. dbias is left to the plain kernel. */
#include "base/base.h"

#include "backend_cpu/cpu.h"

#include "core/mlog.h"

bool onednn_is_linear(enum kernel_id id)
{
    return id == K_LINEAR_FWD || id == K_LINEAR_BWD_DATA || id == K_LINEAR_BWD_WEIGHT;
}

#ifdef REPERF_HAVE_DNNL

#include <oneapi/dnnl/dnnl.h>

/* c (m, n) = a b, or += where beta is 1; a is (m, k), or (k, m) with "T", b likewise. */
static void product(char a_form, char b_form, int64_t m, int64_t n, int64_t k, const float *a,
                    const float *b, float beta, float *c)
{
    int64_t a_stride = a_form == 'N' ? k : m;
    int64_t b_stride = b_form == 'N' ? n : k;
    dnnl_status_t status =
        dnnl_sgemm(a_form, b_form, m, n, k, 1.0F, a, a_stride, b, b_stride, beta, c, n);
    if (status != dnnl_success) {
        char what[64];
        snprintf(what, sizeof(what), "oneDNN: status %d", (int)status);
        fatal_stop(0, "cpu", FATAL_WHERE, what); /* a process of this backend is rank 0 of 1 */
    }
}

static void forward(const struct cpu *cpu, const struct kernel_args *args)
{
    const struct linear_geom *g = &args->geom.linear;
    const float *bias = args->has_bias ? args->in[2] : NULL;
    float *y = args->out[0];
    if (bias) {
#pragma omp parallel for num_threads(cpu->n_threads)
        for (int64_t n = 0; n < g->n; n++) {
            memcpy(y + n * g->k, bias, (size_t)g->k * sizeof(*y));
        }
    }
    product('N', 'T', g->n, g->k, g->c, args->in[0], args->in[1], bias ? 1.0F : 0.0F, y);
}

void onednn_linear(const struct cpu *cpu, const struct kernel_args *args)
{
    const struct linear_geom *g = &args->geom.linear;
    float beta = (args->accumulate & 1U) != 0 ? 1.0F : 0.0F;
    if (args->id == K_LINEAR_FWD) {
        forward(cpu, args);
    } else if (args->id == K_LINEAR_BWD_DATA) {
        product('N', 'N', g->n, g->c, g->k, args->in[0], args->in[1], beta, args->out[0]);
    } else {
        product('T', 'N', g->k, g->c, g->n, args->in[0], args->in[1], beta, args->out[0]);
    }
}

#else

void onednn_linear(const struct cpu *cpu UNUSED, const struct kernel_args *args UNUSED)
{
    ASSERT(false);
}

#endif
