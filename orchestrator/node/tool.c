/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "node/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "node/job.h"

#define MORE_FOLDERS "/usr/local/bin:/usr/local/sbin:/usr/sbin:/sbin"
#define FOLDERS_LOST "/usr/bin:/bin" /* if PATH is not set */
#define GRACE_NS     (2 * NS_PER_S) /* between TERM and KILL, and from then until it is abandoned */
#define ENDS_MAX     2
#define CHUNK_BYTES  16384
#define LOOK_MS      20

struct tool_program {
    const char *const *argv;
    bool with_errors;
};

static const char *folders(struct arena *arena)
{
    const char *path = getenv("PATH");
    return arena_printf(arena, "%s:" MORE_FOLDERS, path && path[0] ? path : FOLDERS_LOST);
}

bool tool_is_there(const char *name)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct str rest = str_of(folders(&arena));
    struct str folder;
    while (str_next(&rest, ':', &folder)) {
        char path[JOB_PATH_BYTES];
        int len = snprintf(path, sizeof(path), "%.*s/%s", STR_ARG(folder), name);
        if (folder.len && len > 0 && (size_t)len < sizeof(path) && access(path, X_OK) == 0 &&
            !fs_is_dir(path)) {
            return true;
        }
    }
    return false;
}

/* A tool_fn that executes the program in ctx. */
static int tool_program(void *ctx)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const struct tool_program *program = ctx;
    char **argv;
    size_t n = 0;
    while (program->argv[n]) {
        n++;
    }
    argv = arena_array(&arena, char *, n + 1);
    for (size_t idx = 0; idx < n; idx++) {
        argv[idx] = arena_strndup(&arena, program->argv[idx], strlen(program->argv[idx]));
    }
    (void)setenv("PATH", folders(&arena), 1);
    if (program->with_errors) {
        (void)dup2(STDOUT_FILENO, STDERR_FILENO);
    }
    execvp(argv[0], argv);
    return errno == ENOENT ? TOOL_ABSENT : TOOL_BROKEN;
}

static NORETURN void run_child(tool_fn fn, void *ctx, int out_fd)
{
    int null_fd = open("/dev/null", O_RDWR);
    setpgid(0, 0);
    wrapper_reset_signals();
    (void)dup2(null_fd, STDIN_FILENO);
    (void)dup2(out_fd, STDOUT_FILENO);
    (void)dup2(null_fd, STDERR_FILENO);
    _exit(fn(ctx));
}

static void take_output(int out_fd, struct strbuf *out)
{
    char chunk[CHUNK_BYTES];
    ssize_t len;
    while ((len = read(out_fd, chunk, sizeof(chunk))) > 0) {
        strbuf_add(out, chunk, (size_t)len);
    }
}

/* Processes that it left behind may keep its output open; they are not waited for. One that hangs in the kernel is abandoned. */
static int wait_for(pid_t pid, int out_fd, int64_t until_ns, struct strbuf *out)
{
    struct pollfd said = {.fd = out_fd, .events = POLLIN};
    int n_ends = 0, status = 0;
    for (;;) {
        pid_t done = waitpid(pid, &status, WNOHANG);
        bool is_late = clock_now_ns() >= until_ns;
        take_output(out_fd, out);
        if (done == pid) {
            return n_ends ? TOOL_LATE : wrapper_exit_status(status);
        }
        if (done < 0 && errno != EINTR) {
            return n_ends ? TOOL_LATE : TOOL_BROKEN;
        }
        if (is_late && n_ends == ENDS_MAX) {
            return TOOL_STUCK;
        }
        if (is_late) {
            int signal_no = n_ends++ ? SIGKILL : SIGTERM;
            (void)kill(-pid, signal_no);
            (void)kill(pid, signal_no); /* it may have left its group */
            until_ns = clock_now_ns() + GRACE_NS;
        }
        (void)poll(&said, 1, said.fd < 0 ? 1 : LOOK_MS);
        said.fd = said.revents & POLLHUP ? -1 : said.fd; /* its output has ended */
    }
}

int tool_call(tool_fn fn, void *ctx, int64_t limit_ns, struct strbuf *out)
{
    const int64_t until_ns = clock_now_ns() + limit_ns;
    CLEANUP(fd) int out_fd = -1;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return TOOL_BROKEN;
    }
    pid_t pid = fork();
    if (pid == 0) {
        run_child(fn, ctx, ends[1]);
    }
    close(ends[1]);
    out_fd = ends[0];
    (void)fcntl(out_fd, F_SETFL, O_NONBLOCK);
    return pid < 0 ? TOOL_BROKEN : wait_for(pid, out_fd, until_ns, out);
}

int tool_run(const char *const *argv, int64_t limit_ns, bool with_errors, struct strbuf *out)
{
    struct tool_program program = {argv, with_errors};
    return tool_call(tool_program, &program, limit_ns, out);
}
