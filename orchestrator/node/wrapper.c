/* SPDX-License-Identifier: Apache-2.0 */
/* The process that a job runs under: it claims the job, records its identity, starts the program and, if that lasts, the
   monitor, and once the program has ended writes its status, synced, under its final name. A failure before the program runs
   gives the claim back, so that the job can be started once the trouble is over. */
#include "base/base.h"

#include "node/job.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/engine_env.h"
#include "base/fs.h"
#include "codec/node_wire.h"

#define FDS_MAX    256
#define SAID_FD    3
#define STATUS_BAD 70

/* What a job gets from the login's environment. */
static const char *const FROM_LOGIN[] = {"HOME", "USER",   "LOGNAME",         "SHELL",
                                         "PATH", "TMPDIR", "XDG_RUNTIME_DIR", ENGINE_ENV};

void wrapper_reset_signals(void)
{
    sigset_t none;
    for (int signal_no = 1; signal_no < SIGRTMIN; signal_no++) {
        (void)signal(signal_no, SIG_DFL);
    }
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

pid_t wrapper_fork_tied(void)
{
    pid_t self = getpid();
    pid_t pid = fork();
    if (pid == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != self)) {
        _exit(1);
    }
    return pid;
}

static void path_in(const struct wrapper_job *job, const char *name, char *ret_path)
{
    snprintf(ret_path, JOB_PATH_BYTES, "%s/%s", job->dir, name);
}

/* ---- the program ---- */

static bool has_name_of(const char *entry, const char *other)
{
    size_t len = strcspn(other, "=");
    return strncmp(entry, other, len) == 0 && entry[len] == '=';
}

/* A name given twice has its last value, as with env. */
static void add_env(char **env, size_t *n, char *entry)
{
    for (size_t idx = 0; idx < *n; idx++) {
        if (has_name_of(env[idx], entry)) {
            env[idx] = entry;
            return;
        }
    }
    env[(*n)++] = entry;
}

static char **make_env(struct arena *arena, const struct wrapper_job *job)
{
    size_t n_ours = 0, n = 0;
    char folder[PATH_MAX];
    while (environ[n_ours]) {
        n_ours++;
    }
    char **env = arena_array(arena, char *, job->n_env + n_ours + ARRAY_LEN(FROM_LOGIN) + 2);
    for (size_t idx = 0; idx < n_ours && job->is_in_batch; idx++) {
        env[n++] = environ[idx];
    }
    for (size_t idx = 0; idx < ARRAY_LEN(FROM_LOGIN) && !job->is_in_batch; idx++) {
        const char *value = getenv(FROM_LOGIN[idx]);
        if (value && value[0]) {
            env[n++] = arena_printf(arena, "%s=%s", FROM_LOGIN[idx], value);
        }
    }
    for (size_t idx = 0; idx < job->n_env; idx++) {
        add_env(env, &n, arena_strndup(arena, job->env[idx].ptr, job->env[idx].len));
    }
    if (realpath(job->dir, folder)) {
        add_env(env, &n, arena_printf(arena, "%s=%s", JOB_FOLDER_ENV, folder));
    }
    return env;
}

/* The word with this program's path where NODE_SELF stands. */
static char *make_word(struct arena *arena, struct str word)
{
    char self[PATH_MAX];
    char *made = arena_strndup(arena, word.ptr, word.len);
    const char *at = strstr(made, NODE_SELF);
    ssize_t len = at ? readlink("/proc/self/exe", self, sizeof(self)) : 0;
    return len > 0 ? arena_printf(arena, "%.*s%.*s%s", (int)(at - made), made, (int)len, self,
                                  at + strlen(NODE_SELF))
                   : made;
}

NORETURN void wrapper_become(const struct wrapper_job *job, int log_fd)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    char **argv = arena_array(&arena, char *, job->n_argv + 1);
    for (size_t idx = 0; idx < job->n_argv; idx++) {
        argv[idx] = make_word(&arena, job->argv[idx]);
    }
    wrapper_reset_signals();
    (void)dup2(log_fd, STDOUT_FILENO);
    (void)dup2(log_fd, STDERR_FILENO);
    environ = make_env(&arena, job);
    execvp(argv[0], argv);
    int failed = errno;
    dprintf(STDERR_FILENO, "reperf-node: %s: %s\n", argv[0], err_errno_text(failed));
    _exit(failed == ENOENT ? 127 : 126);
}

/* Its process; -1: there is none. */
static pid_t start_watch(const struct wrapper_job *job)
{
    char log[JOB_PATH_BYTES];
    path_in(job, "monitor", log);
    if (fs_mkdir_p(log, ERR_IGNORED) < 0) {
        return -1;
    }
    path_in(job, "monitor/log", log);
    pid_t pid = fork();
    if (pid == 0) {
        int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        wrapper_reset_signals();
        (void)signal(SIGINT, SIG_IGN); /* as for a command that a shell starts with & */
        (void)signal(SIGQUIT, SIG_IGN);
        if (fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0) {
            job_watch(job->dir);
        }
        _exit(127);
    }
    return pid;
}

/* What the program left running, also in sessions of its own, is ended and put down: it would run beside the next job. Not of a
   container, whose engine has helpers that live on: its cleanup ends it. */
static void end_leftovers(const struct wrapper_job *job, pid_t watch)
{
    char path[JOB_PATH_BYTES], names[LEFT_NAMES_MAX];
    path_in(job, "cleanup", path);
    if (access(path, F_OK) == 0) {
        return;
    }
    job_end_children(watch, names);
    path_in(job, "left", path);
    if (names[0] && job_put(path, str_of(names), false, ERR_IGNORED) < 0) {
        (void)unlink(path);
    }
}

int wrapper_exit_status(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int run_program(const struct wrapper_job *job, int log_fd)
{
    const struct timespec delay = {.tv_sec = NODE_WATCH_DELAY_S};
    sigset_t child;
    int status = 0;
    pid_t watch = -1;
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &child, NULL);
    pid_t pid = fork();
    if (pid == 0) {
        wrapper_become(job, log_fd);
    }
    if (pid < 0) {
        dprintf(log_fd, "reperf-node: fork: %s\n", err_errno_text(errno));
        return 126;
    }
    if (job->is_watched) { /* a job that is over by then is too short to sample */
        (void)sigtimedwait(&child, NULL, &delay);
        if (waitpid(pid, &status, WNOHANG) == pid) {
            end_leftovers(job, watch);
            return wrapper_exit_status(status);
        }
        watch = start_watch(job);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        continue;
    }
    end_leftovers(job, watch);
    return wrapper_exit_status(status);
}

/* ---- before and after it ---- */

/* Lets go of the channel, and ignores signals to its session, so that it can record how the program ended. */
static void stand_alone(int said_fd)
{
    int null_fd = open("/dev/null", O_RDWR);
    setsid();
    for (int fd = 0; fd <= 2; fd++) {
        (void)dup2(null_fd, fd);
    }
    if (said_fd != SAID_FD) {
        (void)dup3(said_fd, SAID_FD, O_CLOEXEC);
    }
    if (close_range(SAID_FD + 1, UINT_MAX, 0) < 0) { /* before Linux 5.9 */
        for (int fd = SAID_FD + 1; fd < FDS_MAX; fd++) {
            close(fd);
        }
    }
    wrapper_reset_signals();
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
}

int wrapper_write_pid(const struct wrapper_job *job, struct err *err)
{
    char boot[128], text[256], path[JOB_PATH_BYTES];
    struct proc_stat self;
    if (!job_proc_stat(getpid(), &self) || !job_read_boot_id(boot, sizeof(boot))) {
        return err_set(err, ERR_NODE, "/proc cannot be read");
    }
    snprintf(text, sizeof(text), "%d %" PRIu64 " %s\n", (int)getpid(), self.start_ticks, boot);
    path_in(job, "pid", path);
    return job_put(path, str_of(text), false, err); /* after a reboot it means nothing anyway */
}

static int begin(const struct wrapper_job *job, const char *log, int *ret_log_fd, struct err *err)
{
    CLEANUP(fd) int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        return err_set(err, err_code_of_errno(errno), "%s: %s", log, err_errno_text(errno));
    }
    if (wrapper_write_pid(job, err) < 0) {
        return -1;
    }
    *ret_log_fd = take_fd(&fd);
    return 0;
}

int wrapper_finish(const struct wrapper_job *job, int log_fd, int exit_status)
{
    char path[JOB_PATH_BYTES], text[32];
    path_in(job, "cleanup", path);
    if (access(path, F_OK) == 0) {
        job_run_script(path, 0);
    }
    snprintf(text, sizeof(text), "exit %d\n", exit_status);
    path_in(job, "status", path);
    return job_put_after(path, str_of(text), log_fd, ERR_IGNORED);
}

static NORETURN void run_wrapper(const struct wrapper_job *job, int said_fd)
{
    char claim[JOB_PATH_BYTES], log[JOB_PATH_BYTES], path[JOB_PATH_BYTES];
    int log_fd = -1;
    stand_alone(said_fd);
    path_in(job, "claim", claim);
    path_in(job, "log", log);
    if (mkdir(claim, 0777) < 0) {
        _exit(0);
    }
    path_in(job, "job", path);
    (void)unlink(path); /* left by a failed start of an older version: it may name secrets */
    if (begin(job, log, &log_fd, ERR_IGNORED) < 0) {
        (void)unlink(log);
        (void)rmdir(claim);
        _exit(STATUS_BAD);
    }
    close(SAID_FD);
    _exit(wrapper_finish(job, log_fd, run_program(job, log_fd)) < 0 ? STATUS_BAD : 0);
}

int wrapper_start(const struct wrapper_job *job, int *ret_said, struct err *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return err_set(err, ERR_NODE, "pipe: %s", err_errno_text(errno));
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        run_wrapper(job, ends[1]);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return err_set(err, ERR_NODE, "fork: %s", err_errno_text(errno));
    }
    *ret_said = ends[0];
    return 0;
}
