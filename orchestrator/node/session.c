/* SPDX-License-Identifier: Apache-2.0 */
/* A job's session, and the scripts that its folder has. */
#include "base/base.h"

#include "node/job.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "node/tool.h"

#define KILL_WAIT_NS    (2 * NS_PER_S) /* one that the kernel holds dies later */
#define KILL_LOOK_MS    1
#define CLEANUP_LIMIT   (30 * NS_PER_S)
#define SCRIPT_LIMIT    (30LL * 86400 * NS_PER_S) /* where none is given */
#define LEFT_GRACE_NS   (1 * NS_PER_S) /* what ends by itself, as the end of a pipe, is not left */
#define LEFT_LOOK_MS    10
#define LEFT_ROUNDS_MAX 100
#define LEFT_PIDS_MAX   (LEFT_NAMES_MAX / 2)
#define ENVIRON_MAX     (256u << 10)

/* Reads no file of the many that are of other sessions. */
static bool is_in_session(pid_t pid, const void *of)
{
    struct proc_stat stat;
    const pid_t session = *(const pid_t *)of;
    pid_t found = getsid(pid);
    return (found == session || (found < 0 && errno != ESRCH)) && job_proc_stat(pid, &stat) &&
           stat.session == session && stat.state != 'Z';
}

/* A child of this process but one. */
static bool is_child(pid_t pid, const void *of)
{
    struct proc_stat stat;
    return pid != *(const pid_t *)of && job_proc_stat(pid, &stat) && stat.parent == getpid() &&
           stat.state != 'Z';
}

/* The environment that the process was started with names this job's folder: it may have left the session. */
static bool is_marked(pid_t pid, const void *of)
{
    static const struct str NAME = {JOB_FOLDER_ENV "=", sizeof(JOB_FOLDER_ENV)};
    CLEANUP(free) char *text = xmalloc(ENVIRON_MAX);
    struct str entry;
    struct proc_stat stat;
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, ENVIRON_MAX);
    struct str rest = (struct str){text, len < 0 ? 0 : (size_t)len};
    while (rest.len && str_next(&rest, '\0', &entry)) {
        if (str_starts(entry, NAME)) {
            return pid != getpid() && str_eq_z(str_sub(entry, NAME.len, entry.len), of) &&
                   job_proc_stat(pid, &stat) && stat.state != 'Z';
        }
    }
    return false;
}

/* The next process of /proc; 0: there is none. */
static pid_t next_process(DIR *proc)
{
    struct dirent *entry;
    while (proc && (entry = readdir(proc))) {
        int64_t pid;
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
            str_to_i64(str_of(entry->d_name), 1, INT32_MAX, &pid, ERR_IGNORED) == 0) {
            return (pid_t)pid;
        }
    }
    return 0;
}

/* What was reached: each process once, though it may take a while to die. */
struct left {
    pid_t pids[LEFT_PIDS_MAX];
    size_t n;
    char *names; /* LEFT_NAMES_MAX bytes */
};

static bool is_first_look(struct left *left, pid_t pid)
{
    for (size_t idx = 0; idx < left->n; idx++) {
        if (left->pids[idx] == pid) {
            return false;
        }
    }
    if (left->n < LEFT_PIDS_MAX) {
        left->pids[left->n++] = pid;
    }
    return true;
}

static void add_name(struct left *left, pid_t pid)
{
    char path[64], name[32];
    char *names = left->names;
    size_t len = strlen(names);
    if (!is_first_look(left, pid)) {
        return;
    }
    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    if (!job_read_small(path, name, sizeof(name))) {
        return;
    }
    for (char *at = name; *at; at++) {
        *at = *at <= ' ' || *at == ',' || *at == 127 ? '_' : *at;
    }
    snprintf(names + len, LEFT_NAMES_MAX - len, "%s%s", len ? "," : "", name);
}

/* Whether any process that is meant was reached; with signal 0, whether there is one. left: NULL, or they are added there. */
static bool signal_all(bool (*is_meant)(pid_t pid, const void *of), const void *of, int signal_no,
                       struct left *left)
{
    DIR *proc = opendir("/proc");
    bool has_hit = false;
    for (pid_t pid; (pid = next_process(proc)) != 0;) {
        if (!is_meant(pid, of)) {
            continue;
        }
        if (left) {
            add_name(left, pid);
        }
        has_hit = signal_no == 0 || kill(pid, signal_no) == 0 || has_hit;
    }
    if (proc) {
        closedir(proc);
    }
    return has_hit;
}

static bool signal_session(pid_t session, int signal_no)
{
    return signal_all(is_in_session, &session, signal_no, NULL);
}

static bool signal_marked(const char *dir, int signal_no)
{
    char folder[PATH_MAX];
    return realpath(dir, folder) && signal_all(is_marked, folder, signal_no, NULL);
}

void job_end_children(pid_t but, char *ret_names)
{
    int64_t grace_ns = clock_now_ns() + LEFT_GRACE_NS;
    struct left left = {.names = ret_names};
    ret_names[0] = '\0';
    while (signal_all(is_child, &but, 0, NULL) && clock_now_ns() < grace_ns) {
        (void)poll(NULL, 0, LEFT_LOOK_MS);
    }
    /* Those of a child come here as it dies. */
    for (int round = 0; round < LEFT_ROUNDS_MAX && signal_all(is_child, &but, SIGKILL, &left);
         round++) {
        (void)poll(NULL, 0, LEFT_LOOK_MS);
    }
}

bool job_has_process(const char *dir, pid_t session)
{
    return (session && signal_session(session, 0)) || signal_marked(dir, 0);
}

void job_run_script(const char *path, int64_t limit_ns)
{
    const char *const argv[] = {"/bin/sh", path, NULL};
    CLEANUP(strbuf) struct strbuf unread = STRBUF(1);
    (void)tool_run(argv, limit_ns ? limit_ns : SCRIPT_LIMIT, false, &unread);
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
    if (signal_no == SIGKILL) {
        (void)signal_marked(dir, SIGKILL);
    }
    if (signal_no == SIGKILL && access(cleanup, F_OK) == 0) {
        job_run_script(cleanup, CLEANUP_LIMIT);
    }
}
