/* SPDX-License-Identifier: Apache-2.0 */
/* sys where the system, or a limit of ours, refuses: an error that names it, nothing left behind, and it works afterwards. */
#include "unit.h"

#include <dirent.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "looped.h"
#include "sys/pool.h"
#include "sys/proc.h"
#include "sys/relay_net.h"

static const char *const NO_ENV[] = {"PATH=/usr/bin:/bin", NULL};

static size_t n_open(void)
{
    DIR *folder = opendir("/proc/self/fd");
    size_t n = 0;
    assert_non_null(folder);
    while (readdir(folder)) {
        n++;
    }
    closedir(folder);
    return n;
}

/* Allows only the first n descriptors. Returns the previous limit. */
static struct rlimit allow_fds(rlim_t n)
{
    struct rlimit was;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){n, was.rlim_max}), 0);
    return was;
}

static void give_back_fds(struct rlimit was)
{
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
}

/* What a call that is over returned and reported. */
static void failed(int result, const struct err *err, enum err_code code, const char *words)
{
    *ERR = *err;
    unit_fails(result, code, words, __FILE__, __LINE__);
    SAYS(words);
}

static void note_signal(void *ctx UNUSED, int signal_no UNUSED)
{
}

static void add_text(void *ctx, const char *ptr, size_t len)
{
    strbuf_add(ctx, ptr, len);
}

static void ignore_output(void *ctx UNUSED, const char *ptr UNUSED, size_t len UNUSED)
{
}

TEST(without_descriptors_nothing_starts_and_nothing_stays)
{
    LOOP(loop);
    CLEANUP(proc) struct proc proc = PROC_EMPTY;
    const char *const argv[] = {"true", NULL};
    struct proc_spec spec = {.argv = argv, .env = NO_ENV, .on_output = ignore_output};
    struct pool *pool = NULL;
    struct err err[4] = {{0}};
    sigset_t blocked;
    uint16_t port = 0;
    int fd = -1;
    size_t n = n_open();
    struct rlimit was = allow_fds(0);
    int results[] = {pool_new(2, &pool, &err[0]),
                     loop_catch_signals(&loop, note_signal, NULL, &err[1]),
                     proc_start(&proc, &loop, &spec, &err[2]), relay_listen(&fd, &port, &err[3])};
    give_back_fds(was);
    failed(results[0], &err[0], ERR_INTERNAL, "eventfd: Too many open files");
    failed(results[1], &err[1], ERR_INTERNAL, "signalfd: Too many open files");
    failed(results[2], &err[2], ERR_INTERNAL, "pipe: Too many open files");
    failed(results[3], &err[3], ERR_NET, "listen: Too many open files");
    assert_null(pool);
    assert_int_equal(proc.pid, 0);
    assert_int_equal(fd, -1);
    assert_int_equal(n_open(), n);
    /* What was to be caught ends the process as before. */
    assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &blocked), 0);
    assert_false(sigismember(&blocked, SIGTERM));
    assert_int_equal(loop_catch_signals(&loop, note_signal, NULL, &err[1]), 0);
}

/* poll(2) refuses more descriptors than the process may have. */
TEST(a_poll_that_fails_is_an_error)
{
    LOOP(loop);
    PASSES(loop_watch(&loop, STDERR_FILENO, POLLIN, NULL, NULL, ERR));
    struct rlimit was = allow_fds(0);
    struct err err = {0};
    int result = loop_once(&loop, 0, &err);
    give_back_fds(was);
    failed(result, &err, ERR_INTERNAL, "poll: Invalid argument");
}

static void note_ready(void *ctx UNUSED, int fd UNUSED, short events UNUSED)
{
}

static void note_timer(void *ctx UNUSED)
{
}

/* A full loop refuses the next; what needs a slot releases everything it has. */
TEST(a_full_loop_refuses_by_name)
{
    LOOP(loop);
    const char *const argv[] = {"sleep", "600", NULL};
    struct proc_spec spec = {.argv = argv, .env = NO_ENV, .on_output = ignore_output};
    struct pool *pool = NULL;
    size_t n;
    PASSES(pool_new(1, &pool, ERR));
    n = n_open();
    /* One slot is left for the child's end, none for its output; then none at all. The numbers stand for
       descriptors. */
    for (int idx = 0; idx < LOOP_FDS_MAX - 1; idx++) {
        PASSES(loop_watch(&loop, 100000 + idx, POLLIN, note_ready, NULL, ERR));
    }
    for (int n_left = 1; n_left >= 0; n_left--) {
        CLEANUP(proc) struct proc proc = PROC_EMPTY;
        FAILS_WITH(proc_start(&proc, &loop, &spec, ERR), ERR_INTERNAL,
                   "more than 4096 descriptors");
        assert_int_equal(proc.pid, 0);
        assert_int_equal(n_open(), n);
        assert_int_equal(waitpid(-1, NULL, 0), -1); /* killed and reaped */
        assert_int_equal(loop_watch(&loop, 99999, POLLIN, note_ready, NULL, &(struct err){0}),
                         n_left ? 0 : -1);
    }
    FAILS_WITH(pool_attach(pool, &loop, ERR), ERR_INTERNAL, "more than 4096 descriptors");
    loop_unwatch(&loop, 99999);
    PASSES(pool_attach(pool, &loop, ERR));
    pool_detach(pool, &loop);
    pool_free(pool);
}

TEST(a_full_list_of_timers_refuses_by_name)
{
    LOOP(loop);
    const char *const argv[] = {"sleep", "600", NULL};
    struct proc_spec spec = {.argv = argv, .env = NO_ENV, .deadline_ns = 600 * NS_PER_S};
    CLEANUP(proc) struct proc proc = PROC_EMPTY;
    uint64_t id = 0;
    int64_t far_ns = loop_now_ns(&loop) + 600 * NS_PER_S;
    for (int idx = 0; idx < LOOP_TIMERS_MAX; idx++) {
        PASSES(loop_timer_add(&loop, far_ns, note_timer, NULL, &id, ERR));
    }
    /* A child without its deadline might run for ever: it does not run. */
    FAILS_WITH(proc_start(&proc, &loop, &spec, ERR), ERR_INTERNAL, "more than 4096 timers");
    assert_int_equal(waitpid(-1, NULL, 0), -1);
    loop_timer_drop(&loop, id);
    PASSES(loop_timer_add(&loop, far_ns, note_timer, NULL, &id, ERR));
}

#define HOLDER "setsid sh -c 'echo $$; exec sleep 60' & "
/* A child has ended, but a process it started in a session of its own still holds its output: that is waited for, unless a stop was
   requested. */
TEST(a_stop_does_not_wait_for_a_grandchild)
{
    for (int is_stopped = 0; is_stopped < 2; is_stopped++) {
        LOOP(loop);
        CLEANUP(proc) struct proc proc = PROC_EMPTY;
        CLEANUP(strbuf) struct strbuf out = STRBUF(1 << 16);
        const char *const argv[] = {"sh", "-c",
                                    is_stopped ? "trap 'exit 3' TERM; " HOLDER
                                                 "while :; do sleep 0.01; done"
                                               : HOLDER "exit 3",
                                    NULL};
        struct proc_spec spec = {
            .argv = argv, .env = NO_ENV, .on_output = add_text, .output_ctx = &out};
        struct err err = {0};
        int64_t left = 0;
        PASSES(proc_start(&proc, &loop, &spec, ERR));
        while (!memchr(out.ptr, '\n', out.len) || !(proc.has_ended || is_stopped)) {
            PASSES(loop_once(&loop, 10 * NS_PER_MS, ERR));
            assert_int_equal(proc_step(&proc, &err), STEP_AGAIN);
        }
        PASSES(str_to_i64(str_trim(strbuf_str(&out)), 2, INT32_MAX, &left, ERR));
        if (is_stopped) {
            proc_stop(&proc);
        } else {
            assert_int_equal(proc_step(&proc, &err), STEP_AGAIN);
            assert_int_equal(kill((pid_t)left, SIGKILL), 0);
        }
        while (proc_step(&proc, &err) == STEP_AGAIN) {
            PASSES(loop_once(&loop, 10 * NS_PER_MS, ERR));
        }
        assert_int_equal(proc.exit_status, 3);
        assert_int_equal(is_stopped ? kill((pid_t)left, SIGKILL) : 0, 0);
    }
}

TEST(a_folder_or_file_that_cannot_be_starts_nothing)
{
    LOOP(loop);
    CLEANUP(proc) struct proc proc = PROC_EMPTY;
    const char *const argv[] = {"true", NULL};
    struct proc_spec spec = {.argv = argv, .env = NO_ENV, .folder = "/no/such/folder"};
    FAILS_WITH(proc_start(&proc, &loop, &spec, ERR), ERR_NOT_FOUND, "start true: No such file");
    assert_int_equal(proc.pid, 0);
    spec = (struct proc_spec){.argv = argv, .env = NO_ENV, .error_path = "/proc/no/such"};
    FAILS_WITH(proc_start(&proc, &loop, &spec, ERR), ERR_NOT_FOUND, "start true: No such file");
}
