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

/* out[0] (m, n) = in[0] in[1], or += where beta is 1; the first is (m, k), or (k, m) with "T", the second likewise. */
struct sgemm {
    char a_form, b_form;
    int64_t m, n, k;
    float beta;
};
static void multiply(const struct sgemm *p, const struct kernel_args *args)
{
    int64_t a_stride = p->a_form == 'N' ? p->k : p->m;
    int64_t b_stride = p->b_form == 'N' ? p->n : p->k;
    dnnl_status_t status = dnnl_sgemm(p->a_form, p->b_form, p->m, p->n, p->k, 1.0F, args->in[0],
                                      a_stride, args->in[1], b_stride, p->beta, args->out[0], p->n);
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
    multiply(&(struct sgemm){'N', 'T', g->n, g->k, g->c, bias ? 1.0F : 0.0F}, args);
}

void onednn_linear(const struct cpu *cpu, const struct kernel_args *args)
{
    const struct linear_geom *g = &args->geom.linear;
    float beta = (args->accumulate & 1U) != 0 ? 1.0F : 0.0F;
    if (args->id == K_LINEAR_FWD) {
        forward(cpu, args);
    } else if (args->id == K_LINEAR_BWD_DATA) {
        multiply(&(struct sgemm){'N', 'N', g->n, g->c, g->k, beta}, args);
    } else {
        multiply(&(struct sgemm){'T', 'N', g->k, g->c, g->n, beta}, args);
    }
}

#else

void onednn_linear(const struct cpu *cpu UNUSED, const struct kernel_args *args UNUSED)
{
    ASSERT(false);
}

#endif
