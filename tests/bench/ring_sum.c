/* SPDX-License-Identifier: Apache-2.0 */
/* One rank of an all-reduce, ours or (built with -DWITH_MPI) Open MPI's: median seconds of one operation, by rank 0. For
   bench_ring.sh. Arguments: MEGABYTES ROUNDS; ours takes its ranks from the environment. */
#include "base/base.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/str.h"

#include <unistd.h>
#ifdef WITH_MPI
#include <mpi.h>
#else
#include "dist/job.h"
#endif

#define ROUNDS_MAX 100

static int by_value(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;
    return (*x > *y) - (*x < *y);
}

static double now_s(void)
{
    struct clock_src clock = clock_system();
    return (double)clock.mono_ns(clock.ctx) / (double)NS_PER_S;
}

/* Every element is 1 before, and the number of ranks after. */
static bool is_right(float *x, int64_t count, int n_ranks)
{
    bool is = true;
    for (int64_t i = 0; i < count; i++) {
        is = is && x[i] == (float)n_ranks;
        x[i] = 1.0F;
    }
    return is;
}

#ifndef WITH_MPI
static const char *from_environment(void *ctx UNUSED, const char *name)
{
    return getenv(name);
}
#endif

int main(int argc, char **argv)
{
    struct err err = {0};
    int64_t megabytes = 0;
    int64_t rounds = 0;
    double took[ROUNDS_MAX];
    if (argc != 3 || str_to_i64(str_of(argv[1]), 1, 4096, &megabytes, &err) < 0 ||
        str_to_i64(str_of(argv[2]), 1, ROUNDS_MAX, &rounds, &err) < 0) {
        fprintf(stderr, "usage: ring_sum MEGABYTES ROUNDS\n");
        return 2;
    }
    int64_t count = megabytes * 250000;
    float *x = xcalloc((size_t)count, sizeof(*x));
    int rank = 0;
    int n_ranks = 1;
#ifdef WITH_MPI
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
#else
    static struct job job;
    struct ranks ranks;
    static const char hex[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    if (ranks_read(from_environment, NULL, false, &ranks, &err) < 0 ||
        job_open(&job,
                 &(struct job_opts){.ranks = &ranks,
                                    .facts = "bench",
                                    .network = hex,
                                    .rendezvous_ns = 60 * NS_PER_S,
                                    .timeout_ns = 60 * NS_PER_S},
                 &err) < 0) {
        fprintf(stderr, "ring_sum: %s\n", err.msg);
        return 1;
    }
    rank = ranks.rank;
    n_ranks = ranks.n_ranks;
#endif
    bool is = is_right(x, count, n_ranks) || true;      /* fills x */
    for (int64_t round = -1; round < rounds; round++) { /* the first one warms up */
        double start = now_s();
#ifdef WITH_MPI
        MPI_Allreduce(MPI_IN_PLACE, x, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
#else
        comm_all_reduce(&job.comm, x, count, DT_F32);
#endif
        took[round < 0 ? 0 : round] = now_s() - start;
        is = is_right(x, count, n_ranks) && is;
#ifdef WITH_MPI
        MPI_Barrier(MPI_COMM_WORLD);
#else
        comm_barrier(&job.comm);
#endif
    }
    qsort(took, (size_t)rounds, sizeof(took[0]), by_value);
    if (rank == 0) {
        printf("%.6f\n", took[rounds / 2]);
    }
#ifdef WITH_MPI
    MPI_Finalize();
#else
    job_close(&job);
#endif
    free(x);
    return is ? 0 : 1;
}
