/* SPDX-License-Identifier: Apache-2.0 */
/* The node that is this machine. A job's folder: claim/ (who made it runs the job), pid ("PID START_TICKS BOOT_ID"), log,
   status ("exit N"). */
#include "base/base.h"

#include "io/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "io/proc.h"

#define START_WAIT_NS  (20 * NS_PER_S) /* for the wrapper to say that it is there */
#define SMALL_FILE_MAX 256

/* $1 is the job's folder, the rest its argv. The status appears by rename, so that a half-written one is never read; it is
   synced before, so that a status that is there means a log that is there. */
static const char WRAPPER[] = "dir=$1; shift\n"
                              "mkdir \"$dir/claim\" 2>/dev/null || exit 0\n"
                              "read -r stat </proc/$$/stat\n"
                              "start=$(set -- ${stat##*) }; echo \"${20}\")\n"
                              "read -r boot </proc/sys/kernel/random/boot_id\n"
                              "echo \"$$ $start $boot\" >\"$dir/pid.part\" || exit 70\n"
                              "mv \"$dir/pid.part\" \"$dir/pid\" || exit 70\n"
                              "\"$@\" >\"$dir/log\" 2>&1 </dev/null\n"
                              "rc=$?\n"
                              "sync \"$dir/log\" || exit 70\n"
                              "echo \"exit $rc\" >\"$dir/status.part\" || exit 70\n"
                              "sync \"$dir/status.part\" || exit 70\n"
                              "mv \"$dir/status.part\" \"$dir/status\"\n";

struct local {
    struct remote remote; /* first: a struct remote * is this */
    struct clock_src clock;
    struct loop loop;
    char *jobs_folder;        /* owned */
    char spawned[JOB_ID_MAX]; /* the job that was spawned last, by us */
    struct proc wrapper;      /* of it, until it is reaped */
    int64_t spawned_ns;
};

static char *job_path(struct arena *arena, const struct local *local, const char *id,
                      const char *name)
{
    return arena_printf(arena, "%s/%s%s%s", local->jobs_folder, id, name[0] ? "/" : "", name);
}

/* ---- what the folder says ---- */

/* Also files of /proc, whose size says nothing. */
static bool read_small(struct arena *arena, const char *path, struct str *ret_text)
{
    char *text = arena_array(arena, char, SMALL_FILE_MAX);
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, SMALL_FILE_MAX);
    if (len < 0) {
        return false;
    }
    *ret_text = (struct str){text, (size_t)len};
    return true;
}

struct wrapper_id {
    pid_t pid;
    uint64_t start_ticks;
    struct str boot_id;
};

static bool read_pid(struct arena *arena, const struct local *local, const char *id,
                     struct wrapper_id *ret_id)
{
    struct str text;
    struct str parts[3];
    struct err ignored = {0};
    int64_t pid = 0;
    int64_t ticks = 0;
    if (!read_small(arena, job_path(arena, local, id, "pid"), &text)) {
        return false;
    }
    text = str_trim(text);
    for (size_t idx = 0; idx < ARRAY_LEN(parts); idx++) {
        if (!str_next(&text, ' ', &parts[idx])) {
            return false;
        }
    }
    if (str_to_i64(parts[0], 2, INT32_MAX, &pid, &ignored) < 0 ||
        str_to_i64(parts[1], 0, INT64_MAX, &ticks, &ignored) < 0) {
        return false;
    }
    *ret_id = (struct wrapper_id){(pid_t)pid, (uint64_t)ticks, parts[2]};
    return true;
}

/* A process number alone proves nothing: it may have been given to another since, or the machine was booted again. */
static bool is_alive(struct arena *arena, const struct wrapper_id *id)
{
    struct proc_info info;
    struct str boot;
    return read_small(arena, "/proc/sys/kernel/random/boot_id", &boot) &&
           str_eq(str_trim(boot), id->boot_id) && proc_info(id->pid, &info) &&
           info.start_ticks == id->start_ticks && info.state != 'Z';
}

static bool read_status(struct arena *arena, const struct local *local, const char *id,
                        int *ret_exit_status)
{
    struct str text;
    struct err ignored = {0};
    int64_t status = 0;
    if (!read_small(arena, job_path(arena, local, id, "status"), &text) ||
        !str_starts(text, STR_LIT("exit "))) {
        return false;
    }
    if (str_to_i64(str_trim(str_sub(text, 5, text.len)), 0, 255, &status, &ignored) < 0) {
        return false;
    }
    *ret_exit_status = (int)status;
    return true;
}

static bool claim_is_old(const struct local *local, const char *claim)
{
    struct stat info;
    int64_t now_ns = local->clock.wall_ns(local->clock.ctx);
    return stat(claim, &info) == 0 &&
           now_ns - (int64_t)info.st_mtim.tv_sec * NS_PER_S > START_WAIT_NS;
}

static enum step local_poll(struct remote *remote, const char *id, struct job_report *ret_report,
                            struct err *err UNUSED)
{
    struct local *local = (struct local *)remote;
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct job_report report = {.state = JOB_ABSENT};
    struct wrapper_id wrapper;
    const char *claim = job_path(&arena, local, id, "claim");
    if (local->wrapper.pid && strcmp(local->spawned, id) == 0) {
        struct err ignored = {0};
        (void)proc_step(&local->wrapper, &ignored); /* reaps it */
    }
    if (read_pid(&arena, local, id, &wrapper)) {
        report.state = is_alive(&arena, &wrapper) ? JOB_RUNNING : JOB_LOST;
    } else if (fs_exists(claim)) {
        report.state = claim_is_old(local, claim) ? JOB_LOST : JOB_RUNNING;
    }
    /* Looked at last: a wrapper that was alive a moment ago may have written it since. */
    if (read_status(&arena, local, id, &report.exit_status)) {
        report.state = JOB_ENDED;
    }
    *ret_report = report;
    return STEP_DONE;
}

/* ---- start ---- */

static int spawn_wrapper(struct local *local, const struct remote_job *job, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *folder = job_path(&arena, local, job->id, "");
    size_t n = 0;
    const char **argv;
    struct proc_spec spec = {.env = job->env, .is_session = true};
    while (job->argv[n]) {
        n++;
    }
    argv = arena_array(&arena, const char *, n + 6);
    argv[0] = "/bin/sh";
    argv[1] = "-c";
    argv[2] = WRAPPER;
    argv[3] = "reperf-job";
    argv[4] = folder;
    memcpy(argv + 5, job->argv, n * sizeof(*argv));
    spec.argv = argv;
    if (fs_mkdir_p(folder, err) < 0) {
        return -1;
    }
    if (local->wrapper.pid) {
        struct err ignored = {0};
        /* The one before has ended, or it is not ours to wait for: a job outlives who started it. */
        (void)proc_step(&local->wrapper, &ignored);
        proc_detach(&local->wrapper);
    }
    if (proc_start(&local->wrapper, &local->loop, &spec, err) < 0) {
        return -1;
    }
    snprintf(local->spawned, sizeof(local->spawned), "%s", job->id);
    local->spawned_ns = local->clock.mono_ns(local->clock.ctx);
    return 0;
}

static enum step local_start(struct remote *remote, const struct remote_job *job, struct err *err)
{
    struct local *local = (struct local *)remote;
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct wrapper_id wrapper;
    if (strlen(job->id) >= JOB_ID_MAX) {
        return step_fail(err_set(err, ERR_INTERNAL, "job id longer than %d bytes", JOB_ID_MAX - 1));
    }
    if (read_pid(&arena, local, job->id, &wrapper)) {
        return STEP_DONE;
    }
    if (strcmp(local->spawned, job->id) != 0) {
        return spawn_wrapper(local, job, err) < 0 ? STEP_FAIL : STEP_AGAIN;
    }
    (void)proc_step(&local->wrapper, err);
    if (read_pid(&arena, local, job->id, &wrapper)) {
        return STEP_DONE;
    }
    if (local->wrapper.has_ended && local->wrapper.exit_status != 0) {
        return step_fail(err_set(err, ERR_DISK,
                                 "%s: the job could not be started: its folder takes no files",
                                 job_path(&arena, local, job->id, "")));
    }
    if (local->clock.mono_ns(local->clock.ctx) - local->spawned_ns > START_WAIT_NS) {
        return step_fail(err_set(err, ERR_NODE, "%s: the job's wrapper did not start within %d s",
                                 job_path(&arena, local, job->id, ""),
                                 (int)(START_WAIT_NS / NS_PER_S)));
    }
    return STEP_AGAIN;
}

/* ---- the rest ---- */

static enum step local_read_log(struct remote *remote, const char *id, uint64_t offset, char *dst,
                                size_t size, size_t *ret_len, struct err *err)
{
    struct local *local = (struct local *)remote;
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *path = job_path(&arena, local, id, "log");
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got;
    *ret_len = 0;
    if (fd < 0 && errno == ENOENT) {
        return STEP_DONE;
    }
    got = fd < 0 ? -1 : pread(fd, dst, size, (off_t)offset);
    if (got < 0) {
        return step_fail(
            err_set(err, err_code_of_errno(errno), "read %s: %s", path, err_errno_text(errno)));
    }
    *ret_len = (size_t)got;
    return STEP_DONE;
}

static enum step local_signal(struct remote *remote, const char *id, int signal_no,
                              struct err *err UNUSED)
{
    struct local *local = (struct local *)remote;
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct wrapper_id wrapper;
    struct proc_info info;
    struct str boot;
    if (!read_pid(&arena, local, id, &wrapper) ||
        !read_small(&arena, "/proc/sys/kernel/random/boot_id", &boot) ||
        !str_eq(str_trim(boot), wrapper.boot_id)) {
        return STEP_DONE;
    }
    /* The number may belong to another by now: then nothing of the job is left under it. */
    if (proc_info(wrapper.pid, &info) && info.start_ticks != wrapper.start_ticks) {
        return STEP_DONE;
    }
    (void)proc_signal_session(wrapper.pid, signal_no);
    return STEP_DONE;
}

static enum step local_forget(struct remote *remote, const char *id, struct err *err)
{
    struct local *local = (struct local *)remote;
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    return fs_remove_tree(job_path(&arena, local, id, ""), err) < 0 ? STEP_FAIL : STEP_DONE;
}

static void local_free(struct remote *remote)
{
    struct local *local = (struct local *)remote;
    struct err ignored = {0};
    if (local->wrapper.pid) {
        (void)proc_step(&local->wrapper, &ignored);
    }
    proc_detach(&local->wrapper); /* a job is meant to go on */
    loop_release(&local->loop);
    free(local->jobs_folder);
    free(local);
}

static const struct remote_ops LOCAL_OPS = {local_start,  local_poll,   local_read_log,
                                            local_signal, local_forget, local_free};

struct remote *remote_local_new(const char *jobs_folder, struct clock_src clock)
{
    struct local *local = xcalloc(1, sizeof(*local));
    local->remote.ops = &LOCAL_OPS;
    local->clock = clock;
    local->jobs_folder = xstrdup(jobs_folder);
    local->wrapper = PROC_EMPTY;
    loop_init(&local->loop, clock);
    return &local->remote;
}

void remote_free(struct remote *remote)
{
    if (remote) {
        remote->ops->free(remote);
    }
}
