/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <unistd.h>

#include "sys/pool.h"

struct square {
    int64_t value;
};

static int square(void *arg, const atomic_bool *is_cancelled UNUSED, struct err *err)
{
    struct square *s = arg;
    if (s->value < 0) {
        return err_set(err, ERR_PARSE, "%" PRId64 " is negative", s->value);
    }
    s->value *= s->value;
    return 0;
}

static int until_cancelled(void *arg UNUSED, const atomic_bool *is_cancelled, struct err *err)
{
    while (!atomic_load(is_cancelled)) {
        usleep(100);
    }
    return err_set(err, ERR_INTERRUPTED, "cancelled");
}

TEST(every_job_gives_its_own_result)
{
    enum { N = 500 };
    static struct square args[N];
    static struct pool_job jobs[N];
    for (size_t n_threads = POOL_THREADS_MIN; n_threads <= POOL_THREADS_MAX; n_threads *= 2) {
        CLEANUP(pool) struct pool *pool = NULL;
        struct err err = {0};
        PASSES(pool_new(n_threads, &pool, ERR));
        for (int64_t idx = 0; idx < N; idx++) {
            args[idx].value = idx % 7 == 3 ? -idx : idx;
            jobs[idx] = (struct pool_job){.fn = square, .arg = &args[idx]};
            pool_submit(pool, &jobs[idx]);
        }
        for (int64_t idx = 0; idx < N; idx++) {
            err = (struct err){0};
            assert_int_equal(pool_wait(pool, &jobs[idx], &err), idx % 7 == 3 ? -1 : 0);
            assert_int_equal(err.code, idx % 7 == 3 ? ERR_PARSE : ERR_NONE);
            assert_int_equal(args[idx].value, idx % 7 == 3 ? -idx : idx * idx);
            assert_true(pool_is_done(pool, &jobs[idx]));
        }
    }
}

static atomic_bool was_released;

static void release(void *arg)
{
    free(arg);
    atomic_store(&was_released, true);
}

TEST(a_task_that_is_left_behind_ends_by_itself)
{
    struct loop loop;
    struct task *done = NULL;
    struct task *hangs = NULL;
    struct square *arg = xcalloc(1, sizeof(*arg));
    loop_init(&loop, clock_system());
    arg->value = 12;
    PASSES(task_start(&loop, &(struct task_spec){square, arg, release}, &done, ERR));
    PASSES(task_start(&loop, &(struct task_spec){until_cancelled, xcalloc(1, 1), release}, &hangs,
                      ERR));
    while (task_result(done, ERR) == 0) {
        PASSES(loop_once(&loop, 10 * NS_PER_S, ERR));
    }
    assert_int_equal(task_result(done, ERR), 1);
    assert_int_equal(arg->value, 144);
    assert_int_equal(task_result(hangs, ERR), 0);
    task_leave(done, &loop);
    while (!atomic_load(&was_released)) {
        usleep(100);
    }
    atomic_store(&was_released, false);
    task_leave(hangs, &loop);
    while (!atomic_load(&was_released)) {
        usleep(100);
    }
    loop_release(&loop);
}

TEST(the_end_of_a_job_ends_the_loops_wait)
{
    CLEANUP(pool) struct pool *pool = NULL;
    struct loop loop;
    struct square arg = {12};
    struct pool_job job = {.fn = square, .arg = &arg};
    loop_init(&loop, clock_system());
    PASSES(pool_new(1, &pool, ERR));
    PASSES(pool_attach(pool, &loop, ERR));
    pool_submit(pool, &job);
    while (!pool_is_done(pool, &job)) {
        PASSES(loop_once(&loop, 60000000000, ERR));
    }
    PASSES(pool_wait(pool, &job, ERR));
    assert_int_equal(arg.value, 144);
    pool_detach(pool, &loop);
    loop_release(&loop);
}

TEST(freeing_cancels_what_runs_and_drops_what_waits)
{
    struct pool *pool = NULL;
    struct square arg = {3};
    struct pool_job endless = {.fn = until_cancelled};
    struct pool_job never = {.fn = square, .arg = &arg};
    PASSES(pool_new(1, &pool, ERR));
    pool_submit(pool, &endless);
    pool_submit(pool, &never);
    usleep(20000);
    assert_false(pool_is_done(pool, &endless));
    pool_free(pool);
    assert_false(never.is_done);
    assert_int_equal(arg.value, 3);
}
