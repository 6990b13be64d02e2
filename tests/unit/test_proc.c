/* SPDX-License-Identifier: Apache-2.0 */
/* sys/loop, sys/proc and fleet/remote with real processes. No test depends on the machine's speed. */
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/secret.h"
#include "remote_here.h"
#include "sys/child.h"
#include "sys/proc.h"

#define LONG_NS (120 * NS_PER_S) /* far beyond what anything here takes */

static const char *const NO_ENV[] = {"PATH=/usr/bin:/bin", NULL};

static void note_timer(void *ctx)
{
    (*(int *)ctx)++;
}

TEST(timers_fire_once_and_can_be_dropped)
{
    LOOP(loop);
    int kept = 0;
    int dropped = 0;
    uint64_t id = 0;
    int64_t now_ns = loop_now_ns(&loop);
    PASSES(loop_timer_add(&loop, now_ns, note_timer, &kept, &id, ERR));
    PASSES(loop_timer_add(&loop, now_ns, note_timer, &dropped, &id, ERR));
    loop_timer_drop(&loop, id);
    for (int round = 0; round < 3; round++) {
        PASSES(loop_once(&loop, 0, ERR));
    }
    assert_int_equal(kept, 1);
    assert_int_equal(dropped, 0);
}

static int caught;
static void note_signal(void *ctx UNUSED, int signal_no)
{
    caught = signal_no;
}

TEST(signals_come_from_the_loop)
{
    LOOP(loop);
    PASSES(loop_catch_signals(&loop, note_signal, NULL, ERR));
    assert_int_equal(raise(SIGTERM), 0);
    assert_int_equal(caught, 0);
    PASSES(loop_once(&loop, NS_PER_S, ERR));
    assert_int_equal(caught, SIGTERM);
}

TEST(children_are_captured)
{
    static const struct {
        const char *argv[7];
        int64_t deadline_ns;
        enum err_code code;
        int status;
        const char *out; /* NULL: a megabyte and more, not compared */
    } ROWS[] = {
        {{"printf", "%s|", "a b", "$(id)", "'\"", ""}, LONG_NS, ERR_NONE, 0, "a b|$(id)|'\"||"},
        {{"sh", "-c", "echo out; echo err >&2; exit 7"}, LONG_NS, ERR_NONE, 7, "out\nerr\n"},
        {{"sh", "-c", "kill -9 $$"}, LONG_NS, ERR_NONE, 128 + SIGKILL, ""},
        {{"head", "-c", "3000000", "/dev/zero"}, LONG_NS, ERR_NONE, 0, NULL},
        {{"/no/such/program"}, LONG_NS, ERR_NOT_FOUND, 0, ""},
        {{"sleep", "600"}, 50 * NS_PER_MS, ERR_TIMEOUT, 0, ""},
    };
    for (EACH(row, ROWS)) {
        CLEANUP(strbuf) struct strbuf out = STRBUF(4 << 20);
        int status = -1;
        if (row->code) {
            FAILS(child_capture(clock_system(), row->argv, row->deadline_ns, &out, &status, ERR),
                  row->code);
            continue;
        }
        PASSES(child_capture(clock_system(), row->argv, row->deadline_ns, &out, &status, ERR));
        assert_int_equal(status, row->status);
        assert_int_equal(out.len, row->out ? strlen(row->out) : 3000000);
        assert_memory_equal(out.ptr, row->out ? row->out : out.ptr, out.len);
    }
}

static void add_text(void *ctx, const char *ptr, size_t len)
{
    strbuf_add(ctx, ptr, len);
}

TEST(a_child_reads_what_it_is_given)
{
    LOOP(loop);
    CLEANUP(proc) struct proc proc = PROC_EMPTY;
    CLEANUP(strbuf) struct strbuf out = STRBUF(1 << 16);
    const char *const argv[] = {"cat", NULL};
    struct proc_spec spec = {
        .argv = argv, .env = NO_ENV, .has_input = true, .on_output = add_text, .output_ctx = &out};
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    spec.input_fd = fds[0];
    assert_int_equal(write(fds[1], "input", 5), 5);
    close(fds[1]); /* before the child starts: it would hold its own pipe open */
    PASSES(proc_start(&proc, &loop, &spec, ERR));
    close(fds[0]);
    while (proc_step(&proc, ERR) == STEP_AGAIN) {
        PASSES(loop_once(&loop, TICK_NS, ERR));
    }
    assert_int_equal(proc.exit_status, 0);
    assert_string_equal(out.ptr, "input");
}

static bool is_alive(pid_t pid)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    return len > 0 && !strstr(text, ") Z ");
}

TEST(a_deadline_ends_a_whole_group_that_ignores_term)
{
    LOOP(loop);
    CLEANUP(proc) struct proc proc = PROC_EMPTY;
    CLEANUP(strbuf) struct strbuf out = STRBUF(1 << 16);
    const char *const argv[] = {"sh", "-c",
                                "trap '' TERM; sleep 600 & echo $!; sleep 600; sleep 600", NULL};
    struct proc_spec spec = {.argv = argv,
                             .env = NO_ENV,
                             .on_output = add_text,
                             .output_ctx = &out,
                             .grace_ns = 50 * NS_PER_MS};
    int64_t child = 0;
    PASSES(proc_start(&proc, &loop, &spec, ERR));
    while (!memchr(out.ptr, '\n', out.len)) {
        PASSES(loop_once(&loop, TICK_NS, ERR));
        assert_int_equal(proc_step(&proc, ERR), STEP_AGAIN);
    }
    proc_stop(&proc);
    while (proc_step(&proc, ERR) == STEP_AGAIN) {
        PASSES(loop_once(&loop, TICK_NS, ERR));
    }
    assert_int_equal(proc.signal_no, SIGKILL);
    PASSES(str_to_i64(str_trim(strbuf_str(&out)), 2, INT32_MAX, &child, ERR));
    /* Gone, or dead and waiting to be reaped. */
    for (int tries = 0; is_alive((pid_t)child) && tries < 6000; tries++) {
        PASSES(loop_once(&loop, TICK_NS, ERR));
    }
    assert_false(is_alive((pid_t)child));
}

TEST(only_what_is_listed_is_recorded)
{
    assert_true(secret_may_keep(STR_LIT("OMP_NUM_THREADS"), STR_EMPTY));
    assert_true(secret_may_keep(STR_LIT("NCCL_DEBUG"), STR_EMPTY));
    assert_false(secret_may_keep(STR_LIT("HOME"), STR_EMPTY));
    assert_false(secret_may_keep(STR_LIT("AWS_SECRET_ACCESS_KEY"), STR_EMPTY));
}

TEST(a_large_environment_is_passed_on_whole)
{
    size_t n_before = 0;
    size_t n = 0;
    const char **env = proc_env_allowed(ARENA, &n_before);
    for (int idx = 0; idx < 1000; idx++) {
        assert_int_equal(setenv(arena_printf(ARENA, "OMP_X%d", idx), "1", 1), 0);
    }
    env = proc_env_allowed(ARENA, &n);
    assert_int_equal(n, n_before + 1000);
    assert_null(env[n]);
    for (int idx = 0; idx < 1000; idx++) {
        assert_int_equal(unsetenv(arena_printf(ARENA, "OMP_X%d", idx)), 0);
    }
}

/* ---- detached jobs ---- */

static struct job_report wait_job(struct remote *remote, const char *id, enum job_state not_this)
{
    struct job_report report = {.state = not_this};
    for (int tries = 0; tries < 6000; tries++) {
        const struct timespec tick = {0, TICK_NS};
        DONE(remote->ops->poll(remote, id, &report, ERR));
        if (report.state != not_this) {
            break;
        }
        nanosleep(&tick, NULL);
    }
    return report;
}

static void start_job(struct remote *remote, const char *id, const char *script)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    struct remote_job job = {.id = id, .argv = argv, .env = NO_ENV};
    DONE(remote->ops->start(remote, &job, ERR));
}

TEST_IN_SCRATCH(a_job_leaves_log_and_status_for_whoever_comes)
{
    REMOTE_BELOW(*state);
    char text[64];
    assert_int_equal(wait_job(remote, "none", JOB_RUNNING).state, JOB_ABSENT);
    start_job(remote, "case/repeat-1", "echo one; echo two >&2; exit 3");
    struct job_report report = wait_job(remote, "case/repeat-1", JOB_RUNNING);
    assert_int_equal(report.state, JOB_ENDED);
    assert_int_equal(report.exit_status, 3);
    start_job(remote, "case/repeat-1", "echo again"); /* starts nothing */
    remote_free(remote);
    remote = remote_local_new(&loop, *state);
    assert_int_equal(wait_job(remote, "case/repeat-1", JOB_RUNNING).exit_status, 3);
    struct log_part part = {.offset = 4, .dst = text, .size = sizeof(text)};
    DONE(remote->ops->read_log(remote, "case/repeat-1", &part, ERR));
    assert_int_equal(part.len, 4);
    assert_memory_equal(text, "two\n", 4);
    DONE(remote->ops->forget(remote, "case/repeat-1", ERR));
    assert_int_equal(wait_job(remote, "case/repeat-1", JOB_RUNNING).state, JOB_ABSENT);
}

TEST_IN_SCRATCH(a_job_outlives_its_starter_and_is_lost_when_killed)
{
    REMOTE_BELOW(*state);
    start_job(remote, "long", "echo begun; trap '' TERM; sleep 600");
    remote_free(remote);
    remote = remote_local_new(&loop, *state);
    struct job_report report = {0};
    DONE(remote->ops->poll(remote, "long", &report, ERR));
    assert_int_equal(report.state, JOB_RUNNING);
    DONE(remote->ops->signal(remote, "long", SIGKILL, ERR));
    assert_int_equal(wait_job(remote, "long", JOB_RUNNING).state, JOB_LOST);
}

/* As over SSH: between TERM and KILL a program has time to save its data, and sets its own status. */
TEST_IN_SCRATCH(a_job_that_is_told_to_end_has_its_grace)
{
    REMOTE_BELOW(*state);
    const char *saved = fs_join(ARENA, *state, "checkpoint");
    const char *ready = fs_join(ARENA, *state, "ready");
    const char *script = arena_printf(ARENA,
                                      "trap 'sleep 1; echo saved >\"%s\"; exit 3' TERM\n"
                                      "touch \"%s\"; while :; do sleep 0.05; done",
                                      saved, ready);
    struct job_report report = {0};
    start_job(remote, "saves", script);
    while (!fs_exists(ready)) {
        const struct timespec tick = {0, TICK_NS};
        nanosleep(&tick, NULL);
    }
    DONE(remote->ops->signal(remote, "saves", SIGTERM, ERR));
    report = wait_job(remote, "saves", JOB_RUNNING);
    assert_true(fs_exists(saved));
    assert_int_equal(report.state, JOB_ENDED);
    assert_int_equal(report.exit_status, 3);
}

TEST_IN_SCRATCH(a_process_number_of_another_boot_is_nobody)
{
    REMOTE_BELOW(*state);
    struct job_report report = {0};
    const char *folder = fs_join(ARENA, *state, "jobs/old");
    char text[128];
    snprintf(text, sizeof(text), "%d 1 00000000-0000-0000-0000-000000000000\n", (int)getpid());
    PASSES(fs_mkdir_p(folder, ERR));
    PASSES(fs_write_atomic(fs_join(ARENA, folder, "pid"), str_of(text), ERR));
    DONE(remote->ops->poll(remote, "old", &report, ERR));
    assert_int_equal(report.state, JOB_LOST);
    /* Above all, no process is killed for it. */
    DONE(remote->ops->signal(remote, "old", SIGKILL, ERR));
}

static pid_t only_child(void)
{
    char path[64], text[64] = "";
    int64_t pid;
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
    PASSES(str_to_i64(str_trim(str_of(text)), 2, INT32_MAX, &pid, ERR));
    return (pid_t)pid;
}

/* Killed during an operation, it is started again; its client does not notice. */
TEST_IN_SCRATCH(a_reperf_node_that_dies_is_begun_again)
{
    REMOTE_BELOW(*state);
    struct job_report report = {0};
    start_job(remote, "long", "sleep 600");
    for (int round = 0; round < 2; round++) {
        assert_int_equal(kill(only_child(), SIGKILL), 0);
        DONE(remote->ops->poll(remote, "long", &report, ERR));
        assert_int_equal(report.state, JOB_RUNNING);
    }
    /* A running job is not forgotten. */
    ENDS(remote->ops->forget(remote, "long", ERR), ERR_NODE);
    DONE(remote->ops->signal(remote, "long", SIGKILL, ERR));
    DONE(remote->ops->forget(remote, "long", ERR));
}

/* A job that cannot be started, and a log that is not a file, are errors, not an ended job or an empty log. */
TEST_IN_SCRATCH(what_lies_in_the_way_of_a_job_is_an_error)
{
    REMOTE_BELOW(*state);
    const char *jobs = fs_join(&scratch_arena, *state, "jobs");
    const char *const argv[] = {"true", NULL};
    const struct remote_job job = {.id = "x", .argv = argv, .env = NO_ENV};
    char text[8];
    struct log_part part = {.dst = text, .size = sizeof(text)};
    scratch_write(jobs, STR_LIT("x"));
    ENDS(remote->ops->start(remote, &job, ERR), ERR_NODE);
    SAYS("jobs/x");
    assert_int_equal(unlink(jobs), 0);
    PASSES(fs_mkdir_p(fs_join(&scratch_arena, jobs, "x/log"), ERR));
    ENDS(remote->ops->read_log(remote, "x", &part, ERR), ERR_NODE);
    SAYS("log");
}

TEST_IN_SCRATCH(what_is_no_reperf_node_is_an_error)
{
    static const char *const WHO[] = {"/no/such", "/bin/true", "/bin/cat", "/bin/echo"};
    char *was = xstrdup(getenv("REPERF_NODE"));
    for (EACH(row, WHO)) {
        struct job_report report;
        assert_int_equal(setenv("REPERF_NODE", *row, 1), 0);
        REMOTE_BELOW(*state);
        ENDS(remote->ops->poll(remote, "x", &report, ERR), ERR_NODE);
    }
    assert_int_equal(setenv("REPERF_NODE", was, 1), 0);
    free(was);
}

TEST_IN_SCRATCH(a_script_gets_arguments_and_input_and_gives_output)
{
    REMOTE_BELOW(*state);
    CLEANUP(strbuf) struct strbuf out = STRBUF(64);
    CLEANUP(strbuf) struct strbuf feed = STRBUF(64);
    const char *const args[] = {"a b", "$(x)", NULL};
    int status = -1;
    strbuf_add_z(&feed, "in");
    struct remote_exec exec = {.script = "printf '%s|%s|' \"$1\" \"$2\"; head -c 2; exit 3",
                               .args = args,
                               .feed = &feed,
                               .output = &out};
    DONE(remote->ops->exec(remote, &exec, &status, ERR));
    assert_int_equal(status, 3);
    assert_string_equal(out.ptr, "a b|$(x)|in");
    /* Too much output, and too much time, are failures that are reported as such. */
    strbuf_clear(&out);
    exec = (struct remote_exec){.script = "seq 1000", .output = &out};
    ENDS(remote->ops->exec(remote, &exec, &status, ERR), ERR_NODE);
    strbuf_clear(&out);
    exec = (struct remote_exec){
        .script = "exec sleep 600", .output = &out, .deadline_ns = 50 * NS_PER_MS};
    ENDS(remote->ops->exec(remote, &exec, &status, ERR), ERR_TIMEOUT);
}

TEST_IN_SCRATCH(a_jobs_cleanup_runs_at_its_end_and_after_a_kill)
{
    REMOTE_BELOW(*state);
    for (int kills = 0; kills < 2; kills++) {
        const char *mark = arena_printf(ARENA, "%s/it's over %d", (const char *)*state, kills);
        const char *id = arena_printf(ARENA, "cleaned-%d", kills);
        const char *const argv[] = {"/bin/sh", "-c", kills ? "sleep 600" : "true", NULL};
        const char *const cleanup[] = {"/usr/bin/touch", mark, NULL};
        struct remote_job job = {.id = id, .argv = argv, .env = NO_ENV, .cleanup = cleanup};
        DONE(remote->ops->start(remote, &job, ERR));
        if (kills) {
            DONE(remote->ops->signal(remote, id, SIGKILL, ERR));
        }
        assert_int_equal(wait_job(remote, id, JOB_RUNNING).state, kills ? JOB_LOST : JOB_ENDED);
        assert_true(fs_exists(mark));
    }
}

UNIT_MAIN(node_group_start, scratch_group_end)
