/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "bench/rival.h"

#include "base/fs.h"
#include "bench/event.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define READ_BYTES 65536

void rival_init(struct rival *rival, const char *name)
{
    *rival = (struct rival){.pid = 0, .in_fd = -1, .out_fd = -1, .log_fd = -1};
    snprintf(rival->name, sizeof(rival->name), "%s", name);
    strbuf_init(&rival->pending, RIVAL_LINE_MAX);
    rival->step_ns = xcalloc(RIVAL_STEPS_MAX, sizeof(*rival->step_ns));
    rival->losses = xcalloc(RIVAL_STEPS_MAX, sizeof(*rival->losses));
    rival->turn_ns = xcalloc(RIVAL_STEPS_MAX, sizeof(*rival->turn_ns));
}

void rival_arg(struct rival *rival, const char *arg)
{
    size_t n = 0;
    while (rival->argv[n]) {
        n++;
    }
    ASSERT(n + 1 < RIVAL_ARGS_MAX);
    rival->argv[n] = arg;
}

static void close_all(struct rival *rival)
{
    fd_close(&rival->in_fd);
    fd_close(&rival->out_fd);
    fd_close(&rival->log_fd);
}

static void end_group(struct rival *rival)
{
    if (rival->pid > 0) {
        kill(-rival->pid, SIGKILL);
        while (waitpid(rival->pid, NULL, 0) < 0 && errno == EINTR) {
        }
        rival->pid = 0;
    }
}

void rival_release(struct rival *rival)
{
    end_group(rival);
    close_all(rival);
    strbuf_release(&rival->pending);
    free(rival->step_ns);
    free(rival->losses);
    free(rival->turn_ns);
    *rival = (struct rival){.in_fd = -1, .out_fd = -1, .log_fd = -1};
}

static void PRINTF_LIKE(3, 4)
    give_up(struct rival *rival, enum rival_state state, const char *fmt, ...)
{
    va_list args;
    end_group(rival);
    close_all(rival);
    rival->state = state;
    va_start(args, fmt);
    vsnprintf(rival->why, sizeof(rival->why), fmt, args);
    va_end(args);
}

void rival_fail(struct rival *rival, const char *why)
{
    give_up(rival, RIVAL_FAILED, "%s", why);
}

/* ---- starting ---- */

static NORETURN void be_child(const struct rival *rival, int in_fd, int out_fd, int err_fd)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (dup2(in_fd, STDIN_FILENO) >= 0 && dup2(out_fd, STDOUT_FILENO) >= 0 &&
        dup2(err_fd, STDERR_FILENO) >= 0) {
        execvp(rival->argv[0], (char *const *)(uintptr_t)rival->argv);
        dprintf(STDERR_FILENO, "%s: %s\n", rival->argv[0], err_errno_text(errno));
    }
    _exit(127);
}

static int spawn(struct rival *rival, const struct rival_world *world, const char *log_folder,
                 struct err *err)
{
    int to[2] = {-1, -1};
    int from[2] = {-1, -1};
    const char *log = arena_printf(world->arena, "%s/%s.log", log_folder, rival->name);
    rival->err_path = arena_printf(world->arena, "%s/%s.err", log_folder, rival->name);
    CLEANUP(fd) int err_fd = open(rival->err_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    rival->log_fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (err_fd < 0 || rival->log_fd < 0) {
        return err_set(err, err_code_of_errno(errno), "%s: %s", log, err_errno_text(errno));
    }
    if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0) {
        return err_set(err, ERR_IO, "pipe: %s", err_errno_text(errno));
    }
    rival->pid = fork();
    if (rival->pid == 0) {
        be_child(rival, to[0], from[1], err_fd);
    }
    close(to[0]);
    close(from[1]);
    rival->in_fd = to[1];
    rival->out_fd = from[0];
    if (rival->pid < 0) {
        rival->pid = 0;
        return err_set(err, ERR_IO, "fork: %s", err_errno_text(errno));
    }
    setpgid(rival->pid, rival->pid); /* whichever of the two comes first */
    return 0;
}

/* ---- its lines ---- */

/* The last line of its standard error, for people. */
static void last_words(const struct rival *rival, char ret_text[RIVAL_WHY_MAX])
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct err unsaid = {0};
    struct str text = STR_EMPTY;
    struct str line;
    struct str last = STR_EMPTY;
    ret_text[0] = '\0';
    if (fs_read(&arena, rival->err_path, 64u << 20, &text, &unsaid) < 0) {
        return;
    }
    while (text.ptr && str_next(&text, '\n', &line)) {
        last = str_trim(line).len > 0 ? str_trim(line) : last;
    }
    last = str_sub(last, 0, RIVAL_WHY_MAX - 64);
    snprintf(ret_text, RIVAL_WHY_MAX, "%.*s", STR_ARG(last));
}

/* The first turn is warm-up, so there is a number from the second on. */
static void run_late(struct rival *rival)
{
    if (rival->n_turns > 1) {
        give_up(rival, RIVAL_LATE, "was not done in time: %d turns were finished, %d of them count",
                rival->n_turns, rival->n_turns - 1);
    } else if (rival->n_turns == 1) {
        give_up(rival, RIVAL_FAILED,
                "was not done in time: only the warm-up turn was finished, so there is no number");
    } else {
        give_up(rival, RIVAL_FAILED, "was not done in time");
    }
}

/* It has closed its output: waits for its exit status. */
static int wait_end(struct rival *rival, int *ret_status, struct err *err)
{
    int status = 0;
    while (waitpid(rival->pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return err_set(err, ERR_IO, "waitpid: %s", err_errno_text(errno));
        }
    }
    rival->pid = 0;
    *ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return 0;
}

static int judge_end(struct rival *rival, const char *when, struct err *err)
{
    char said[RIVAL_WHY_MAX];
    int status = 0;
    if (wait_end(rival, &status, err) < 0) {
        return -1;
    }
    last_words(rival, said);
    if (status == RIVAL_NOT_HERE) {
        give_up(rival, RIVAL_SKIPPED, "%s", said);
        return 0;
    }
    give_up(rival, RIVAL_FAILED, "ended %s with %s %d%s%s", when, status < 0 ? "signal" : "status",
            status < 0 ? -status : status, said[0] ? ": " : "", said);
    return 0;
}

/* True if a whole line has arrived; *ret_line lies in the arena. */
static bool cut_line(struct rival *rival, struct arena *arena, struct str *ret_line)
{
    struct str all = strbuf_str(&rival->pending);
    const char *end = memchr(all.ptr, '\n', all.len);
    if (!end) {
        return false;
    }
    size_t len = (size_t)(end - all.ptr);
    *ret_line = str_dup(arena, (struct str){all.ptr, len});
    memmove(rival->pending.ptr, end + 1, all.len - len - 1);
    rival->pending.len = all.len - len - 1;
    return true;
}

/* More of its output. 1: there was some, 0: it has closed it or is given up. */
static int read_more(struct rival *rival, const struct rival_world *world, struct err *err)
{
    static char bytes[READ_BYTES]; /* one thread */
    struct pollfd poll_fd = {.fd = rival->out_fd, .events = POLLIN};
    int64_t left_ns = world->deadline_ns - world->clock.mono_ns(world->clock.ctx);
    int n = left_ns <= 0 ? 0 : poll(&poll_fd, 1, (int)(left_ns / 1000000) + 1);
    if (*world->stop != 0) {
        return err_set(err, ERR_INTERRUPTED, "signal %d", (int)*world->stop);
    }
    if (n == 0) {
        run_late(rival);
        return 0;
    }
    ssize_t got = n < 0 ? -1 : read(rival->out_fd, bytes, sizeof(bytes));
    if (got < 0) {
        return errno == EINTR ? 1 : err_set(err, ERR_IO, "read: %s", err_errno_text(errno));
    }
    if (fs_write_all(rival->log_fd, bytes, (size_t)got, "log", err) < 0) {
        return -1;
    }
    strbuf_add(&rival->pending, bytes, (size_t)got);
    if (rival->pending.is_full) {
        give_up(rival, RIVAL_FAILED, "prints a line that does not end");
        return 0;
    }
    return got > 0;
}

/* 1: an event; 0: none will come, and the state says why unless it has just ended; -1. */
static int next_event(struct rival *rival, const struct rival_world *world, struct str *ret_line,
                      struct event *ret_event, struct err *err)
{
    while (!cut_line(rival, world->arena, ret_line)) {
        int more = read_more(rival, world, err);
        if (more <= 0) {
            return more;
        }
    }
    struct err wrong = {0};
    if (event_read(world->arena, *ret_line, ret_event, &wrong) < 0) {
        give_up(rival, RIVAL_FAILED, "printed a line that is no metric line: %.*s",
                (int)(ret_line->len > 120 ? 120 : ret_line->len), ret_line->ptr);
        return 0;
    }
    return 1;
}

static bool is_alive(const struct rival *rival)
{
    return rival->state == RIVAL_IDLE || rival->state == RIVAL_READY;
}

static void fail_event(struct rival *rival, const struct event *event, const char *wanted)
{
    if (event->kind == EVENT_FATAL) {
        give_up(rival, RIVAL_FAILED, "fatal: %.*s", STR_ARG(str_sub(event->what, 0, 200)));
    } else {
        give_up(rival, RIVAL_FAILED, "printed another line where %s was expected", wanted);
    }
}

/* ---- what a bench does with it ---- */

int rival_start(struct rival *rival, const struct rival_world *world, const char *log_folder,
                struct err *err)
{
    struct event event;
    struct str line;
    int64_t begin_ns = world->clock.mono_ns(world->clock.ctx);
    if (spawn(rival, world, log_folder, err) < 0) {
        return -1;
    }
    int got = next_event(rival, world, &line, &event, err);
    if (got < 0) {
        return -1;
    }
    if (got == 0) {
        return is_alive(rival) ? judge_end(rival, "before its first step", err) : 0;
    }
    if (event.kind != EVENT_START) {
        fail_event(rival, &event, "run_start");
        return 0;
    }
    rival->prepare_ns = world->clock.mono_ns(world->clock.ctx) - begin_ns;
    rival->start = line;
    rival->state = RIVAL_READY;
    return 0;
}

static void keep_step(struct rival *rival, const struct event *event)
{
    bool is_next = event->kind == EVENT_STEP && event->step == rival->n_steps + 1 &&
                   rival->n_steps < RIVAL_STEPS_MAX;
    if (!is_next) {
        fail_event(rival, event, "the next step");
    } else if (event->step_time_ns <= 0 || !event->has_loss || !isfinite(event->loss)) {
        give_up(rival, RIVAL_FAILED, "printed a step without a time or a finite loss");
    } else {
        rival->step_ns[rival->n_steps] = event->step_time_ns;
        rival->losses[rival->n_steps++] = event->loss;
    }
}

int rival_turn(struct rival *rival, const struct rival_world *world, int n_steps, struct err *err)
{
    struct event event;
    struct str line;
    if (rival->state != RIVAL_READY) {
        return 0;
    }
    int64_t begin_ns = world->clock.mono_ns(world->clock.ctx);
    if (write(rival->in_fd, "\n", 1) != 1) {
        return judge_end(rival, "before its turn", err);
    }
    for (int i = 0; i < n_steps && rival->state == RIVAL_READY; i++) {
        int got = next_event(rival, world, &line, &event, err);
        if (got < 0) {
            return -1;
        }
        if (got == 0) {
            return is_alive(rival) ? judge_end(rival, "in its turn", err) : 0;
        }
        keep_step(rival, &event);
    }
    rival->turn_ns[rival->n_turns++] = world->clock.mono_ns(world->clock.ctx) - begin_ns;
    return 0;
}

int rival_finish(struct rival *rival, const struct rival_world *world, struct err *err)
{
    struct event event;
    struct str line;
    int status = 0;
    if (rival->state != RIVAL_READY) {
        return 0;
    }
    fd_close(&rival->in_fd);
    int got = next_event(rival, world, &line, &event, err);
    if (got < 0) {
        return -1;
    }
    if (got == 0) {
        return is_alive(rival) ? judge_end(rival, "before run_stop", err) : 0;
    }
    if (event.kind != EVENT_STOP) {
        fail_event(rival, &event, "run_stop");
        return 0;
    }
    rival->stop = line;
    do {
        got = read_more(rival, world, err);
    } while (got > 0);
    if (got < 0 || !is_alive(rival)) {
        return got;
    }
    if (wait_end(rival, &status, err) < 0) {
        return -1;
    }
    if (status != 0) {
        give_up(rival, RIVAL_FAILED, "did not end with 0 after its last step");
        return 0;
    }
    close_all(rival);
    rival->state = RIVAL_DONE;
    return 0;
}

int rival_run(struct rival *rival, const struct rival_world *world, const char *log_folder,
              int *ret_status, struct err *err)
{
    int got;
    if (spawn(rival, world, log_folder, err) < 0) {
        return -1;
    }
    fd_close(&rival->in_fd);
    do {
        got = read_more(rival, world, err);
    } while (got > 0);
    if (got < 0 || !is_alive(rival)) {
        *ret_status = -1;
        return got;
    }
    return wait_end(rival, ret_status, err);
}

int rival_try(struct rival *rival, const struct rival_world *world, const char *log_folder,
              struct err *err)
{
    char said[RIVAL_WHY_MAX];
    int status = 0;
    if (rival_run(rival, world, log_folder, &status, err) < 0) {
        return -1;
    }
    if (!is_alive(rival)) {
        return 0;
    }
    if (status == 0) {
        close_all(rival);
        rival->state = RIVAL_DONE;
        return 0;
    }
    last_words(rival, said);
    if (status == RIVAL_NOT_HERE) {
        give_up(rival, RIVAL_SKIPPED, "%s", said);
    } else {
        give_up(rival, RIVAL_FAILED, "ended with %s %d: %s", status < 0 ? "signal" : "status",
                status < 0 ? -status : status, said);
    }
    return 0;
}

const char *rival_state_name(enum rival_state state)
{
    static const char *const names[] = {"idle", "ready", "measured", "late", "skipped", "failed"};
    return names[state];
}
