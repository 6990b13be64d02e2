/* SPDX-License-Identifier: Apache-2.0 */
/* Floating-point rate: chains of x = x m + c in registers as wide as the processor has, two operations per lane. Ten chains: a
   fused multiply-add takes four cycles and two may start in each on x86-64, so eight are needed. Source of both: Intel 64 and IA-32
   Architectures Optimization Reference Manual, 2023, appendix D (Skylake server: latency 4, throughput 0.5). */
#include "base/base.h"

#include "node/gauge.h"

#define N_CHAINS        10
#define CALIBRATE_FROM  1000
#define CALIBRATE_NS    (2 * NS_PER_MS)
#define CALIBRATE_TRIES 5

static volatile double the_factor = 0.999999,
                       the_summand = 1e-6; /* not constants, so that nothing is folded */
static volatile double the_sink;

#define FLOPS_LANES(type, bytes) ((bytes) / (int64_t)sizeof(type))
#define FLOPS_KERNEL(name, type, bytes, attributes)                                                \
    attributes static void name(int64_t n)                                                         \
    {                                                                                              \
        typedef type vec __attribute__((vector_size(bytes)));                                      \
        vec m = (vec){0} + (type)the_factor, c = (vec){0} + (type)the_summand;                     \
        vec a0 = m, a1 = m + 1, a2 = m + 2, a3 = m + 3, a4 = m + 4;                                \
        vec a5 = m + 5, a6 = m + 6, a7 = m + 7, a8 = m + 8, a9 = m + 9;                            \
        for (int64_t idx = 0; idx < n; idx++) {                                                    \
            a0 = a0 * m + c;                                                                       \
            a1 = a1 * m + c;                                                                       \
            a2 = a2 * m + c;                                                                       \
            a3 = a3 * m + c;                                                                       \
            a4 = a4 * m + c;                                                                       \
            a5 = a5 * m + c;                                                                       \
            a6 = a6 * m + c;                                                                       \
            a7 = a7 * m + c;                                                                       \
            a8 = a8 * m + c;                                                                       \
            a9 = a9 * m + c;                                                                       \
        }                                                                                          \
        a0 += a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9;                                          \
        the_sink = (double)a0[0] + (double)a0[sizeof(vec) / sizeof(type) - 1];                     \
    }

#define NOTHING
FLOPS_KERNEL(fp32_16, float, 16, NOTHING)
FLOPS_KERNEL(fp64_16, double, 16, NOTHING)
#if defined(__x86_64__)
#define AVX2   __attribute__((target("avx2,fma")))
#define AVX512 __attribute__((target("avx512f")))
FLOPS_KERNEL(fp32_32, float, 32, AVX2)
FLOPS_KERNEL(fp64_32, double, 32, AVX2)
FLOPS_KERNEL(fp32_64, float, 64, AVX512)
FLOPS_KERNEL(fp64_64, double, 64, AVX512)
#endif

struct isa {
    const char *name;
    int64_t bytes; /* of a register */
    void (*fp32)(int64_t n);
    void (*fp64)(int64_t n);
};

static struct isa isa_here(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        return (struct isa){"AVX-512", 64, fp32_64, fp64_64};
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return (struct isa){"AVX2 and FMA", 32, fp32_32, fp64_32};
    }
    return (struct isa){"SSE2, no FMA: a product and a sum", 16, fp32_16, fp64_16};
#elif defined(__aarch64__)
    return (struct isa){"NEON", 16, fp32_16, fp64_16};
#else
    return (struct isa){"vectors of 16 bytes", 16, fp32_16, fp64_16};
#endif
}

struct fma_chain { /* what a worker does */
    void (*kernel)(int64_t n);
    int64_t n;
};

static void *prepare(void *ctx, size_t worker UNUSED)
{
    return ctx;
}

static void run_chain(void *own)
{
    const struct fma_chain *chain = own;
    chain->kernel(chain->n);
}

static int64_t time_of(void (*kernel)(int64_t n), int64_t n)
{
    int64_t begin_ns = clock_now_ns();
    kernel(n);
    return clock_now_ns() - begin_ns;
}

/* How many turns take sample_ns here, by the fastest of several tries: an interrupted one would make all samples short. */
static int64_t turns_of(void (*kernel)(int64_t n), int64_t sample_ns)
{
    int64_t n = CALIBRATE_FROM;
    int64_t best_ns;
    double turns;
    for (;;) {
        best_ns = time_of(kernel, n);
        for (int idx = 1; idx < CALIBRATE_TRIES && best_ns >= CALIBRATE_NS; idx++) {
            int64_t took_ns = time_of(kernel, n);
            best_ns = took_ns < best_ns ? took_ns : best_ns;
        }
        if (best_ns >= CALIBRATE_NS) {
            break;
        }
        n *= 2;
    }
    turns = (double)n * (double)sample_ns / (double)best_ns;
    return turns < 1 ? 1 : (int64_t)turns;
}

static void measure(struct gauge *gauge, const char *name, const struct team *team, int64_t lanes)
{
    const struct fma_chain *chain = team->ctx;
    int64_t ns[GAUGE_REPEATS_MAX + 1];
    struct err err = {0};
    if (team_run(team, ns, &err) < 0) {
        gauge_lacks(gauge, name, err.msg);
        return;
    }
    gauge_add(gauge, &(struct gauge_series){.measure = name,
                                            .work = INT64_C(2) * N_CHAINS * lanes * chain->n *
                                                    (int64_t)team->n,
                                            .ns = ns + 1,
                                            .n = team->n_repeats - 1});
}

void gauge_flops(struct gauge *gauge, int64_t sample_ns, size_t n_repeats)
{
    struct isa isa = isa_here();
    int *cpus = xcalloc(GAUGE_CPUS_MAX, sizeof(*cpus));
    size_t n = team_cpus(cpus, GAUGE_CPUS_MAX);
    static const char *const NAMES[2][2] = {{"flops.fp32.core", "flops.fp32.all"},
                                            {"flops.fp64.core", "flops.fp64.all"}};
    for (int type = 0; type < 2; type++) {
        struct fma_chain chain = {.kernel = type == 0 ? isa.fp32 : isa.fp64};
        int64_t lanes = type == 0 ? FLOPS_LANES(float, isa.bytes) : FLOPS_LANES(double, isa.bytes);
        if (n == 0) {
            gauge_lacks(gauge, NAMES[type][0], "the processors are not known");
            gauge_lacks(gauge, NAMES[type][1], "the processors are not known");
            continue;
        }
        chain.n = turns_of(chain.kernel, sample_ns);
        for (int all = 0; all < 2; all++) {
            struct team team = {.cpus = cpus,
                                .n = all ? n : 1,
                                .n_repeats = n_repeats + 1,
                                .prepare = prepare,
                                .work = run_chain,
                                .ctx = &chain};
            measure(gauge, NAMES[type][all], &team, lanes);
        }
    }
    gauge_note(gauge, "flops: by %s", isa.name);
    free(cpus);
}
