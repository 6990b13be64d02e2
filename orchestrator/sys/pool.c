/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "sys/pool.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fs.h"
#include "base/stop.h"

#define TICK_MS 100

struct pool {
    pthread_mutex_t lock; /* guards the queue, is_done of every job, is_ending */
    pthread_cond_t has_job;
    pthread_cond_t has_done;
    struct pool_job *first, *last;
    pthread_t threads[POOL_THREADS_MAX];
    size_t n_threads;
    int done_fd; /* owned */
    size_t n_attached;
    bool is_ending;
    atomic_bool is_cancelled;
};

/* The next job; NULL when the pool ends. */
static struct pool_job *take_job(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    while (!pool->first && !pool->is_ending) {
        pthread_cond_wait(&pool->has_job, &pool->lock);
    }
    struct pool_job *job = pool->is_ending ? NULL : pool->first;
    if (job) {
        pool->first = job->next;
        pool->last = pool->first ? pool->last : NULL;
    }
    pthread_mutex_unlock(&pool->lock);
    return job;
}

static void *work(void *arg)
{
    struct pool *pool = arg;
    struct pool_job *job;
    while ((job = take_job(pool))) {
        const uint64_t one = 1;
        job->result = job->fn(job->arg, &pool->is_cancelled, &job->err);
        pthread_mutex_lock(&pool->lock);
        job->is_done = true;
        pthread_cond_broadcast(&pool->has_done);
        pthread_mutex_unlock(&pool->lock);
        /* Fails only when the counter is full, and then the descriptor is readable anyway. */
        if (write(pool->done_fd, &one, sizeof(one)) < 0) {
            continue;
        }
    }
    return NULL;
}

/* Without signals: they stay with the thread that owns the loop. */
static int start_thread(pthread_t *thread, void *(*fn)(void *), void *arg, struct err *err)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int errnum = pthread_create(thread, NULL, fn, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return errnum ? err_set(err, ERR_INTERNAL, "start a thread: %s", err_errno_text(errnum)) : 0;
}

static int start_threads(struct pool *pool, size_t n_threads, struct err *err)
{
    while (pool->n_threads < n_threads) {
        if (start_thread(&pool->threads[pool->n_threads], work, pool, err) < 0) {
            return -1;
        }
        pool->n_threads++;
    }
    return 0;
}

int pool_new(size_t n_threads, struct pool **ret_pool, struct err *err)
{
    struct pool *pool = xcalloc(1, sizeof(*pool));
    ASSERT(n_threads >= POOL_THREADS_MIN && n_threads <= POOL_THREADS_MAX);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->has_job, NULL);
    pthread_cond_init(&pool->has_done, NULL);
    pool->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (pool->done_fd < 0) {
        int saved = errno;
        pool_free(pool);
        return err_set(err, ERR_INTERNAL, "eventfd: %s", err_errno_text(saved));
    }
    if (start_threads(pool, n_threads, err) < 0) {
        pool_free(pool);
        return -1;
    }
    *ret_pool = pool;
    return 0;
}

void pool_free(struct pool *pool)
{
    if (!pool) {
        return;
    }
    atomic_store(&pool->is_cancelled, true);
    pthread_mutex_lock(&pool->lock);
    pool->is_ending = true;
    pthread_cond_broadcast(&pool->has_job);
    pthread_mutex_unlock(&pool->lock);
    for (size_t idx = 0; idx < pool->n_threads; idx++) {
        pthread_join(pool->threads[idx], NULL);
    }
    fd_close(&pool->done_fd);
    pthread_cond_destroy(&pool->has_job);
    pthread_cond_destroy(&pool->has_done);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

void pool_submit(struct pool *pool, struct pool_job *job)
{
    ASSERT(job->fn != NULL);
    job->next = NULL;
    job->is_done = false;
    job->err = (struct err){0};
    pthread_mutex_lock(&pool->lock);
    if (pool->last) {
        pool->last->next = job;
    } else {
        pool->first = job;
    }
    pool->last = job;
    pthread_cond_signal(&pool->has_job);
    pthread_mutex_unlock(&pool->lock);
}

bool pool_is_done(struct pool *pool, const struct pool_job *job)
{
    bool is_done;
    pthread_mutex_lock(&pool->lock);
    is_done = job->is_done;
    pthread_mutex_unlock(&pool->lock);
    return is_done;
}

int pool_wait(struct pool *pool, struct pool_job *job, struct err *err)
{
    pthread_mutex_lock(&pool->lock);
    while (!job->is_done) {
        pthread_cond_wait(&pool->has_done, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    if (job->result < 0) {
        *err = job->err;
    }
    return job->result;
}

struct many_run {
    const struct pool_many *many;
    atomic_size_t next;
    atomic_bool is_stopped;
};

static int run_many(void *arg, const atomic_bool *is_cancelled UNUSED, struct err *err)
{
    struct many_run *run = arg;
    size_t idx;
    while (!atomic_load(&run->is_stopped) &&
           (idx = atomic_fetch_add(&run->next, 1)) < run->many->n) {
        if (run->many->each(run->many->ctx, idx, &run->is_stopped, err) < 0) {
            atomic_store(&run->is_stopped, true);
            return -1;
        }
    }
    return 0;
}

/* Between two looks at a job. */
static void tick(struct many_run *run)
{
    const struct pool_many *many = run->many;
    struct pollfd ready = {.fd = many->pool->done_fd, .events = POLLIN};
    size_t n_begun = atomic_load(&run->next);
    uint64_t n_done;
    if (poll(&ready, 1, TICK_MS) > 0 && read(ready.fd, &n_done, sizeof(n_done)) < 0) {
        /* Read empty by another wait: nothing is lost, the jobs are asked. */
    }
    if (stop_is_asked()) {
        atomic_store(&run->is_stopped, true);
    }
    if (many->on_tick) {
        many->on_tick(many->ctx, n_begun < many->n ? n_begun : many->n);
    }
}

int pool_many(const struct pool_many *many, struct err *err)
{
    struct many_run run = {.many = many};
    struct pool_job jobs[POOL_THREADS_MAX];
    size_t n_jobs = many->n_threads < POOL_THREADS_MAX ? many->n_threads : POOL_THREADS_MAX;
    int result = 0;
    ASSERT(n_jobs > 0);
    for (size_t idx = 0; idx < n_jobs; idx++) {
        jobs[idx] = (struct pool_job){.fn = run_many, .arg = &run};
        pool_submit(many->pool, &jobs[idx]);
    }
    for (size_t idx = 0; idx < n_jobs; idx++) {
        struct err failed = {0};
        while (!pool_is_done(many->pool, &jobs[idx])) {
            tick(&run);
        }
        if (pool_wait(many->pool, &jobs[idx], &failed) < 0 && result == 0) {
            *err = failed;
            result = -1;
        }
    }
    return result == 0 && atomic_load(&run.is_stopped)
               ? err_set(err, ERR_INTERRUPTED, "interrupted")
               : result;
}

static void on_done(void *ctx UNUSED, int fd, short events UNUSED)
{
    uint64_t n_done;
    /* Fails only if it is empty already. */
    if (read(fd, &n_done, sizeof(n_done)) < 0) {
        return;
    }
}

int pool_attach(struct pool *pool, struct loop *loop, struct err *err)
{
    if (pool->n_attached == 0 && loop_watch(loop, pool->done_fd, POLLIN, on_done, pool, err) < 0) {
        return -1;
    }
    pool->n_attached++;
    return 0;
}

void pool_detach(struct pool *pool, struct loop *loop)
{
    ASSERT(pool->n_attached > 0);
    pool->n_attached--;
    if (pool->n_attached == 0) {
        loop_unwatch(loop, pool->done_fd);
    }
}

/* ---- a thread of its own ---- */

#define LEAVE_MS 50

enum task_state { TASK_RUNS, TASK_DONE, TASK_LEFT };

struct task {
    struct task_spec spec;
    struct loop *loop; /* borrowed by the thread that owns it */
    atomic_int state;  /* who finds that the other has done with it, frees it */
    atomic_bool is_left;
    int done_fd; /* owned; readable once it is done */
    int result;
    struct err err;
};

static void task_free(struct task *task)
{
    task->spec.release(task->spec.arg);
    fd_close(&task->done_fd);
    free(task);
}

/* False: the other was first. */
static bool task_becomes(struct task *task, int state)
{
    int runs = TASK_RUNS;
    return atomic_compare_exchange_strong(&task->state, &runs, state);
}

static void *run_task(void *arg)
{
    struct task *task = arg;
    const uint64_t one = 1;
    task->result = task->spec.fn(task->spec.arg, &task->is_left, &task->err);
    if (write(task->done_fd, &one, sizeof(one)) < 0) {
        /* Cannot be: the counter is 0. */
    }
    if (!task_becomes(task, TASK_DONE)) {
        task_free(task);
    }
    return NULL;
}

static void wake(void *ctx UNUSED, int fd UNUSED, short events UNUSED)
{
}

int task_start(struct loop *loop, const struct task_spec *spec, struct task **ret_task,
               struct err *err)
{
    struct task *task = xcalloc(1, sizeof(*task));
    pthread_t thread;
    *task = (struct task){.spec = *spec, .loop = loop};
    task->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int result = task->done_fd < 0
                     ? err_set(err, ERR_INTERNAL, "eventfd: %s", err_errno_text(errno))
                     : loop_watch(loop, task->done_fd, POLLIN, wake, task, err);
    if (result == 0 && start_thread(&thread, run_task, task, err) == 0) {
        pthread_detach(thread);
        *ret_task = task;
        return 0;
    }
    loop_unwatch(loop, task->done_fd);
    task_free(task);
    return -1;
}

int task_result(struct task *task, struct err *err)
{
    if (atomic_load(&task->state) != TASK_DONE) {
        return 0;
    }
    loop_unwatch(task->loop, task->done_fd);
    if (task->result < 0) {
        return err_pass(err, &task->err);
    }
    return 1;
}

/* Whatever ends at once is waited for: a process should not exit under a thread that works. */
void task_leave(struct task *task)
{
    if (!task) {
        return;
    }
    struct pollfd done = {.fd = task->done_fd, .events = POLLIN};
    atomic_store(&task->is_left, true);
    loop_unwatch(task->loop, task->done_fd);
    if (poll(&done, 1, LEAVE_MS) > 0) {
        while (atomic_load(&task->state) == TASK_RUNS) {
            (void)poll(NULL, 0, 1);
        }
    }
    if (!task_becomes(task, TASK_LEFT)) {
        task_free(task);
    }
}

/* ---- lanes ---- */

struct lane_job {
    struct pool_job job;
    lane_fn each;
    void *arg;
    size_t lane;
};

static int run_lane(void *arg, const atomic_bool *is_cancelled UNUSED, struct err *err)
{
    const struct lane_job *job = arg;
    return job->each(job->arg, job->lane, err);
}

static int run_lanes(void *ctx UNUSED, size_t n, lane_fn each, void *arg, struct err *err)
{
    CLEANUP(pool) struct pool *pool = NULL;
    CLEANUP(free) struct lane_job *jobs = xcalloc(n, sizeof(*jobs));
    struct err *first = err;
    struct err ignored = {0};
    int result = 0;
    if (pool_new(n, &pool, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < n; idx++) {
        jobs[idx] = (struct lane_job){{.fn = run_lane, .arg = &jobs[idx]}, each, arg, idx};
        pool_submit(pool, &jobs[idx].job);
    }
    for (size_t idx = 0; idx < n; idx++) {
        if (pool_wait(pool, &jobs[idx].job, first) < 0) {
            result = -1;
            ignored = (struct err){0};
            first = &ignored;
        }
    }
    return result;
}

/* One for all libraries: none of them has so much to do that two would get in each other's way. */
static pthread_mutex_t turns = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

struct library_turn library_turn_take(void)
{
    pthread_mutex_lock(&turns);
    return (struct library_turn){true};
}

void library_turn_give(struct library_turn *turn)
{
    if (turn->is_taken) {
        pthread_mutex_unlock(&turns);
    }
}

struct lanes pool_lanes(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t n = cores < POOL_THREADS_MIN   ? POOL_THREADS_MIN
               : cores > POOL_THREADS_MAX ? POOL_THREADS_MAX
                                          : (size_t)cores;
    return (struct lanes){n, run_lanes, NULL};
}
