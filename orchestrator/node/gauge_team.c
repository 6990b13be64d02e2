/* SPDX-License-Identifier: Apache-2.0 */
/* Processes, not threads: they share one page of counters, and each has its own memory on its own NUMA node. */
#include "base/base.h"

#include "node/gauge.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/job.h"

#define WORKER_FAILED 71

struct team_span {
    int64_t begin_ns, end_ns;
};

struct team_shared {
    _Atomic size_t arrived[GAUGE_REPEATS_MAX];
    struct team_span spans[]; /* (repeats, workers) */
};

size_t team_cpus(int *ret_cpus, size_t max)
{
    cpu_set_t *set = CPU_ALLOC(GAUGE_CPUS_MAX);
    size_t n = 0;
    if (set && sched_getaffinity(0, CPU_ALLOC_SIZE(GAUGE_CPUS_MAX), set) == 0) {
        for (int cpu = 0; cpu < GAUGE_CPUS_MAX && n < max; cpu++) {
            if (CPU_ISSET_S((size_t)cpu, CPU_ALLOC_SIZE(GAUGE_CPUS_MAX), set)) {
                ret_cpus[n++] = cpu;
            }
        }
    }
    CPU_FREE(set);
    return n;
}

static void bind_to(int cpu)
{
    cpu_set_t *set = CPU_ALLOC(GAUGE_CPUS_MAX);
    if (set) {
        CPU_ZERO_S(CPU_ALLOC_SIZE(GAUGE_CPUS_MAX), set);
        CPU_SET_S((size_t)cpu, CPU_ALLOC_SIZE(GAUGE_CPUS_MAX), set);
        (void)sched_setaffinity(0, CPU_ALLOC_SIZE(GAUGE_CPUS_MAX), set);
    }
    CPU_FREE(set);
}

static NORETURN void run_worker(const struct team *team, struct team_shared *shared, size_t worker)
{
    void *own;
    bind_to(team->cpus[worker]);
    own = team->prepare(team->ctx, worker);
    if (!own) {
        _exit(WORKER_FAILED);
    }
    for (size_t repeat = 0; repeat < team->n_repeats; repeat++) {
        struct team_span *span = &shared->spans[repeat * team->n + worker];
        atomic_fetch_add(&shared->arrived[repeat], 1);
        while (atomic_load(&shared->arrived[repeat]) < team->n) {
            (void)sched_yield();
        }
        span->begin_ns = clock_now_ns();
        team->work(own);
        span->end_ns = clock_now_ns();
    }
    _exit(0);
}

/* A worker that died would keep the others waiting. */
static int wait_for_all(const pid_t *pids, size_t n, struct err *err)
{
    size_t n_left = n;
    int rc = 0;
    while (n_left > 0) {
        int status = 0;
        pid_t pid = waitpid(-1, &status, 0);
        if (pid < 0 && errno == EINTR) {
            continue;
        }
        if (pid < 0) {
            return rc < 0 ? rc : err_set(err, ERR_NODE, "waitpid: %s", err_errno_text(errno));
        }
        n_left--;
        if (status == 0 || rc < 0) {
            continue;
        }
        rc = WIFSIGNALED(status)
                 ? err_set(err, ERR_NODE, "a worker was ended by signal %d", WTERMSIG(status))
                 : err_set(err, ERR_NODE, "a worker got no memory");
        for (size_t idx = 0; idx < n; idx++) {
            (void)kill(pids[idx], SIGKILL); /* all are our children until they are reaped */
        }
    }
    return rc;
}

static int run_all(const struct team *team, struct team_shared *shared, struct err *err)
{
    pid_t *pids = xcalloc(team->n, sizeof(*pids));
    int rc = 0;
    size_t n = 0;
    for (; n < team->n && rc == 0; n++) {
        pids[n] = wrapper_fork_tied();
        if (pids[n] == 0) {
            run_worker(team, shared, n);
        }
        if (pids[n] < 0) {
            rc = err_set(err, ERR_NODE, "fork: %s", err_errno_text(errno));
            for (size_t idx = 0; idx < n; idx++) {
                (void)kill(pids[idx], SIGKILL);
            }
            break;
        }
    }
    if (rc == 0) {
        rc = wait_for_all(pids, n, err);
    } else {
        struct err ignored = {0};
        (void)!wait_for_all(pids, n, &ignored);
    }
    free(pids);
    return rc;
}

int team_run(const struct team *team, int64_t *ret_ns, struct err *err)
{
    size_t size = sizeof(struct team_shared) + team->n * team->n_repeats * sizeof(struct team_span);
    struct team_shared *shared;
    int rc;
    ASSERT(team->n > 0 && team->n_repeats > 0 && team->n_repeats <= GAUGE_REPEATS_MAX);
    shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        return err_set(err, ERR_NODE, "mmap: %s", err_errno_text(errno));
    }
    rc = run_all(team, shared, err);
    for (size_t repeat = 0; rc == 0 && repeat < team->n_repeats; repeat++) {
        const struct team_span *spans = &shared->spans[repeat * team->n];
        struct team_span all = spans[0];
        for (size_t worker = 1; worker < team->n; worker++) {
            all.begin_ns =
                spans[worker].begin_ns < all.begin_ns ? spans[worker].begin_ns : all.begin_ns;
            all.end_ns = spans[worker].end_ns > all.end_ns ? spans[worker].end_ns : all.end_ns;
        }
        ret_ns[repeat] = all.end_ns - all.begin_ns;
    }
    (void)munmap(shared, size);
    return rc;
}
