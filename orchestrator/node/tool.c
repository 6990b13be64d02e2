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

struct tool {
    pid_t pid;
    int out_fd; /* -1: its output has ended */
    int64_t until_ns;
    int n_ends; /* signals sent to end it */
    int status;
    bool is_over, is_stuck;
};

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

/* False: nothing more at present. */
static bool take_output(const struct tool *tool, struct strbuf *out, bool *ret_is_end)
{
    char chunk[CHUNK_BYTES];
    ssize_t len = read(tool->out_fd, chunk, sizeof(chunk));
    *ret_is_end = len == 0 || (len < 0 && errno != EAGAIN && errno != EINTR);
    if (len > 0) {
        strbuf_add(out, chunk, (size_t)len);
    }
    return len > 0;
}

static void look(struct tool *tool)
{
    int status = 0;
    pid_t done = waitpid(tool->pid, &status, WNOHANG);
    if (done == tool->pid) {
        tool->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        tool->is_over = true;
    } else if (done < 0 && errno != EINTR) {
        tool->status = TOOL_BROKEN;
        tool->is_over = true;
    } else if (clock_now_ns() >= tool->until_ns && tool->n_ends == ENDS_MAX) {
        tool->is_over = tool->is_stuck = true; /* it hangs in the kernel */
    } else if (clock_now_ns() >= tool->until_ns) {
        int signal_no = tool->n_ends++ ? SIGKILL : SIGTERM;
        (void)kill(-tool->pid, signal_no);
        (void)kill(tool->pid, signal_no); /* it may have left its group */
        tool->until_ns = clock_now_ns() + GRACE_NS;
    }
}

static void tool_begin(struct tool *tool, tool_fn fn, void *ctx, int64_t limit_ns)
{
    int ends[2];
    *tool = (struct tool){.until_ns = clock_now_ns() + limit_ns, .out_fd = -1};
    if (pipe2(ends, O_CLOEXEC) < 0) {
        tool->is_over = true;
        tool->status = TOOL_BROKEN;
        return;
    }
    tool->pid = fork();
    if (tool->pid == 0) {
        run_child(fn, ctx, ends[1]);
    }
    close(ends[1]);
    tool->out_fd = ends[0];
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    if (tool->pid < 0) {
        fd_close(&tool->out_fd);
        tool->is_over = true;
        tool->status = TOOL_BROKEN;
    }
}

/* Processes that it left behind may keep its output open; they are not waited for. */
static bool tool_step(struct tool *tool, struct strbuf *out, int *ret_status)
{
    bool is_end = tool->out_fd < 0;
    while (!is_end && take_output(tool, out, &is_end)) {
        continue;
    }
    if (!tool->is_over) {
        look(tool);
        while (tool->is_over && !is_end && take_output(tool, out, &is_end)) {
            continue;
        }
    }
    if (is_end || tool->is_over) {
        fd_close(&tool->out_fd);
    }
    *ret_status = tool->is_stuck ? TOOL_STUCK : tool->n_ends ? TOOL_LATE : tool->status;
    return tool->is_over;
}

int tool_call(tool_fn fn, void *ctx, int64_t limit_ns, struct strbuf *out)
{
    struct tool tool;
    int status;
    tool_begin(&tool, fn, ctx, limit_ns);
    while (!tool_step(&tool, out, &status)) {
        struct pollfd said = {.fd = tool.out_fd, .events = POLLIN};
        (void)poll(&said, 1, tool.out_fd < 0 ? 1 : LOOK_MS);
    }
    return status;
}

int tool_run(const char *const *argv, int64_t limit_ns, bool with_errors, struct strbuf *out)
{
    struct tool_program program = {argv, with_errors};
    return tool_call(tool_program, &program, limit_ns, out);
}
