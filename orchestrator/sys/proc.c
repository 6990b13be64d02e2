/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "sys/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/engine_env.h"
#include "base/fs.h"
#include "base/secret.h"

#define TICK_NS (20 * NS_PER_MS)

/* What a child may inherit. Tokens and keys of the caller's shell are not among it. */
static const char *const ENV_NAMES[] = {"PATH",
                                        "HOME",
                                        "TMPDIR",
                                        "LANG",
                                        "SLURM_CONF",
                                        "LC_ALL",
                                        "USER",
                                        "LOGNAME",
                                        "LD_LIBRARY_PATH",
                                        "TZ",
                                        "ASAN_OPTIONS",
                                        "UBSAN_OPTIONS",
                                        "TSAN_OPTIONS",
                                        "XDG_RUNTIME_DIR",
                                        ENGINE_ENV,
                                        NULL};
static bool may_inherit(struct str name)
{
    return str_eq_any(name, ENV_NAMES) || secret_is_condition(name);
}

const char **proc_env_allowed(struct arena *arena, size_t *ret_n)
{
    size_t n = 0;
    for (char **at = environ; *at; at++) {
        n++;
    }
    const char **env = arena_array(arena, const char *, n + 1);
    n = 0;
    for (char **at = environ; *at; at++) {
        const char *equals = strchr(*at, '=');
        if (equals && may_inherit((struct str){*at, (size_t)(equals - *at)})) {
            env[n++] = *at;
        }
    }
    env[n] = NULL;
    *ret_n = n;
    return env;
}

/* ---- start ---- */

struct spawn {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
};

static void spawn_cleanup(struct spawn *spawn)
{
    posix_spawn_file_actions_destroy(&spawn->actions);
    posix_spawnattr_destroy(&spawn->attr);
}

static int set_attributes(struct spawn *spawn)
{
    /* Our process may block or ignore signals (signalfd, SIGPIPE); a child starts with the default handling. */
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP;
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    sigdelset(&all, SIGKILL);
    sigdelset(&all, SIGSTOP);
    int rc = posix_spawnattr_setsigmask(&spawn->attr, &none);
    rc = rc ? rc : posix_spawnattr_setsigdefault(&spawn->attr, &all);
    rc = rc ? rc : posix_spawnattr_setpgroup(&spawn->attr, 0);
    return rc ? rc : posix_spawnattr_setflags(&spawn->attr, flags);
}

static int set_files(struct spawn *spawn, const struct proc_spec *spec, int pipe_fd)
{
    posix_spawn_file_actions_t *actions = &spawn->actions;
    int rc =
        spec->has_input
            ? posix_spawn_file_actions_adddup2(actions, spec->input_fd, STDIN_FILENO)
            : posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!rc && (spec->is_socket || pipe_fd >= 0)) {
        rc = posix_spawn_file_actions_adddup2(actions, spec->is_socket ? spec->input_fd : pipe_fd,
                                              STDOUT_FILENO);
    } else if (!rc) {
        rc = posix_spawn_file_actions_addopen(actions, STDOUT_FILENO,
                                              spec->output_path ? spec->output_path : "/dev/null",
                                              O_WRONLY | O_CREAT | O_APPEND, 0644);
    }
    if (!rc && spec->error_path) {
        rc = posix_spawn_file_actions_addopen(actions, STDERR_FILENO, spec->error_path,
                                              O_WRONLY | O_CREAT | O_APPEND, 0644);
    } else if (!rc) {
        rc = posix_spawn_file_actions_adddup2(actions, spec->is_socket ? pipe_fd : STDOUT_FILENO,
                                              STDERR_FILENO);
    }
    if (!rc && spec->folder) {
        rc = posix_spawn_file_actions_addchdir_np(actions, spec->folder);
    }
    return rc;
}

static int spawn_child(const struct proc_spec *spec, int pipe_fd, pid_t *ret_pid, struct err *err)
{
    CLEANUP(spawn) struct spawn spawn;
    int rc = 0;
    posix_spawn_file_actions_init(&spawn.actions);
    posix_spawnattr_init(&spawn.attr);
    rc = set_attributes(&spawn);
    rc = rc ? rc : set_files(&spawn, spec, pipe_fd);
    /* posix_spawn takes char *const[] and changes neither array nor texts. */
    rc = rc ? rc
            : posix_spawnp(ret_pid, spec->argv[0], &spawn.actions, &spawn.attr,
                           (char *const *)(uintptr_t)spec->argv,
                           (char *const *)(uintptr_t)spec->env);
    if (rc) {
        return err_set(err, rc == ENOENT ? ERR_NOT_FOUND : ERR_NODE, "start %s: %s", spec->argv[0],
                       err_errno_text(rc));
    }
    return 0;
}

static void note_ready(void *ctx UNUSED, int fd UNUSED, short events UNUSED)
{
    /* proc_step looks for itself: only the wake-up of poll was needed. */
}

static void on_deadline(void *ctx)
{
    struct proc *proc = ctx;
    proc->deadline_timer = 0;
    proc->is_timed_out = true;
    proc_stop(proc);
}

static int watch(struct proc *proc, const struct proc_spec *spec, struct err *err)
{
    struct loop *loop = proc->loop;
    /* -1 on old kernels: proc_step is then called by tick. */
    proc->pid_fd = pidfd_open(proc->pid, 0);
    if ((proc->pid_fd >= 0 && loop_watch(loop, proc->pid_fd, POLLIN, note_ready, proc, err) < 0) ||
        (proc->out_fd >= 0 && loop_watch(loop, proc->out_fd, POLLIN, note_ready, proc, err) < 0)) {
        return -1;
    }
    return !spec->deadline_ns ? 0
                              : loop_timer_add(loop, loop_now_ns(loop) + spec->deadline_ns,
                                               on_deadline, proc, &proc->deadline_timer, err);
}

int proc_start(struct proc *proc, struct loop *loop, const struct proc_spec *spec, struct err *err)
{
    int pipe_fds[2] = {-1, -1};
    *proc = PROC_EMPTY;
    proc->loop = loop;
    proc->on_output = spec->on_output;
    proc->output_ctx = spec->output_ctx;
    proc->grace_ns = spec->grace_ns ? spec->grace_ns : PROC_GRACE_NS;
    if (spec->on_output && !spec->output_path) {
        if (pipe2(pipe_fds, O_CLOEXEC) < 0) {
            return err_set(err, ERR_INTERNAL, "pipe: %s", err_errno_text(errno));
        }
        proc->out_fd = pipe_fds[0];
        (void)fcntl(proc->out_fd, F_SETFL, O_NONBLOCK);
    }
    int rc = spawn_child(spec, pipe_fds[1], &proc->pid, err);
    fd_close(&pipe_fds[1]);
    if (rc < 0) {
        proc->pid = 0;
        fd_close(&proc->out_fd);
        return -1;
    }
    if (watch(proc, spec, err) < 0) {
        proc_release(proc);
        return -1;
    }
    return 0;
}

/* ---- end ---- */

void proc_stop(struct proc *proc)
{
    if (proc->pid > 0 && !proc->has_ended && !proc->kill_at_ns) {
        (void)kill(-proc->pid, SIGTERM);
        proc->kill_at_ns = loop_now_ns(proc->loop) + proc->grace_ns;
    }
}

static void reap(struct proc *proc)
{
    int status = 0;
    pid_t got = waitpid(proc->pid, &status, WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR)) {
        return;
    }
    proc->has_ended = true;
    proc->signal_no = got > 0 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    proc->exit_status = got > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (proc->kill_at_ns) {
        (void)kill(-proc->pid, SIGKILL); /* what the leader left of its group */
    }
}

/* False once the pipe is at its end. */
static bool read_output(struct proc *proc)
{
    char chunk[65536];
    while (proc->out_fd >= 0) {
        ssize_t got = read(proc->out_fd, chunk, sizeof(chunk));
        if (got > 0) {
            proc->on_output(proc->output_ctx, chunk, (size_t)got);
        } else if (got < 0 && errno == EINTR) {
            continue;
        } else if (got < 0 && errno == EAGAIN) {
            return true;
        } else {
            loop_unwatch(proc->loop, proc->out_fd);
            fd_close(&proc->out_fd);
        }
    }
    return false;
}

enum step proc_step(struct proc *proc, struct err *err UNUSED)
{
    if (!proc->has_ended) {
        reap(proc);
    }
    if (!proc->has_ended && proc->kill_at_ns && loop_now_ns(proc->loop) >= proc->kill_at_ns) {
        (void)kill(-proc->pid, SIGKILL);
    }
    bool is_open = read_output(proc);
    if (!proc->has_ended) {
        return STEP_AGAIN;
    }
    /* A grandchild that keeps the pipe open must not delay us once a stop was requested. */
    if (is_open && !proc->kill_at_ns) {
        return STEP_AGAIN;
    }
    return STEP_DONE;
}

void proc_release(struct proc *proc)
{
    if (proc->pid > 0 && !proc->has_ended) {
        (void)kill(-proc->pid, SIGKILL);
        while (waitpid(proc->pid, NULL, 0) < 0 && errno == EINTR) {
            continue;
        }
    }
    if (proc->loop) {
        loop_unwatch(proc->loop, proc->out_fd);
        loop_unwatch(proc->loop, proc->pid_fd);
        loop_timer_drop(proc->loop, proc->deadline_timer);
    }
    fd_close(&proc->out_fd);
    fd_close(&proc->pid_fd);
    *proc = PROC_EMPTY;
}
