/* SPDX-License-Identifier: Apache-2.0 */
/* A job's session, and the scripts that its folder has. */
#include "base/base.h"

#include "node/job.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define KILL_WAIT_NS    (2 * NS_PER_S) /* one that the kernel holds dies later */
#define KILL_LOOK_MS    1
#define CLEANUP_LIMIT   (30 * NS_PER_S)
#define SCRIPT_GRACE_NS (2 * NS_PER_S) /* between TERM and KILL */
#define SCRIPT_LOOK_MS  5

/* Reads no file of the many that are of other sessions. */
static bool is_in(pid_t pid, pid_t session)
{
    struct proc_stat stat;
    pid_t found = getsid(pid);
    return (found == session || (found < 0 && errno != ESRCH)) && job_proc_stat(pid, &stat) &&
           stat.session == session && stat.state != 'Z';
}

/* Whether any of its processes was reached; with signal 0, whether there is one. */
static bool signal_session(pid_t session, int signal_no)
{
    DIR *proc = opendir("/proc");
    bool has_hit = false;
    struct dirent *entry;
    while (proc && (entry = readdir(proc))) {
        struct err ignored = {0};
        int64_t pid;
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
            str_to_i64(str_of(entry->d_name), 1, INT32_MAX, &pid, &ignored) < 0 ||
            !is_in((pid_t)pid, session)) {
            continue;
        }
        has_hit = signal_no == 0 || kill((pid_t)pid, signal_no) == 0 || has_hit;
    }
    if (proc) {
        closedir(proc);
    }
    return has_hit;
}

bool job_has_session(pid_t session)
{
    return session && signal_session(session, 0);
}

void job_run_script(const char *path, int64_t limit_ns)
{
    int64_t until_ns = limit_ns ? clock_now_ns() + limit_ns : INT64_MAX;
    bool has_term = false;
    pid_t pid = fork();
    if (pid == 0) {
        int null_fd = open("/dev/null", O_RDWR);
        setpgid(0, 0);
        wrapper_reset_signals();
        for (int fd = 0; fd <= 2; fd++) {
            (void)dup2(null_fd, fd);
        }
        execl("/bin/sh", "/bin/sh", path, (char *)NULL);
        _exit(127);
    }
    while (pid > 0) {
        pid_t done = waitpid(pid, NULL, limit_ns ? WNOHANG : 0);
        if (done == pid || (done < 0 && errno != EINTR)) {
            return;
        }
        if (done == 0 && clock_now_ns() >= until_ns) {
            (void)kill(-pid, has_term ? SIGKILL : SIGTERM);
            has_term = true;
            until_ns = clock_now_ns() + SCRIPT_GRACE_NS;
        }
        if (limit_ns) {
            (void)poll(NULL, 0, SCRIPT_LOOK_MS);
        }
    }
}

void job_signal(const char *dir, int signal_no)
{
    char cleanup[JOB_PATH_BYTES];
    struct job_pid wrapper;
    struct proc_stat stat;
    snprintf(cleanup, sizeof(cleanup), "%s/cleanup", dir);
    /* The number may belong to another process by now: then nothing of the job is left. */
    if (job_read_pid(dir, &wrapper) && wrapper.pid && wrapper.is_of_boot &&
        (!job_proc_stat(wrapper.pid, &stat) || stat.start_ticks == wrapper.start_ticks)) {
        /* Others once; who is killed is waited for, and so is what was forked meanwhile. */
        int64_t until_ns = clock_now_ns() + (signal_no == SIGKILL ? KILL_WAIT_NS : 0);
        while (signal_session(wrapper.pid, signal_no) && clock_now_ns() < until_ns) {
            (void)poll(NULL, 0, KILL_LOOK_MS);
        }
    }
    if (signal_no == SIGKILL && access(cleanup, F_OK) == 0) {
        job_run_script(cleanup, CLEANUP_LIMIT);
    }
}
