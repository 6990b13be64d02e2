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

static NORETURN void run_child(const char *const *argv, bool with_errors, int out_fd)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    int null_fd = open("/dev/null", O_RDWR);
    setpgid(0, 0);
    wrapper_reset_signals();
    (void)dup2(null_fd, STDIN_FILENO);
    (void)dup2(out_fd, STDOUT_FILENO);
    (void)dup2(with_errors ? out_fd : null_fd, STDERR_FILENO);
    (void)setenv("PATH", folders(&arena), 1);
    execvp(argv[0], (char *const *)(uintptr_t)argv); /* it does not write to them */
    _exit(errno == ENOENT ? TOOL_ABSENT : TOOL_BROKEN);
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

int tool_run(const char *const *argv, int64_t limit_ns, bool with_errors, struct strbuf *out)
{
    const int64_t until_ns = clock_now_ns() + limit_ns;
    CLEANUP(fd) int out_fd = -1;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return TOOL_BROKEN;
    }
    pid_t pid = fork();
    if (pid == 0) {
        run_child(argv, with_errors, ends[1]);
    }
    close(ends[1]);
    out_fd = ends[0];
    (void)fcntl(out_fd, F_SETFL, O_NONBLOCK);
    return pid < 0 ? TOOL_BROKEN : wait_for(pid, out_fd, until_ns, out);
}
