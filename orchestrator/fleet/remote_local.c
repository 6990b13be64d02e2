/* SPDX-License-Identifier: Apache-2.0 */
/* The node that is this machine. A job's folder: claim/ (who made it runs the job), pid ("PID START_TICKS BOOT_ID"), log,
   status ("exit N"), cleanup (a script). */
#include "base/base.h"

#include "fleet/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/strbuf.h"
#include "codec/digest.h"

#define START_WAIT_NS  (20 * NS_PER_S) /* for the wrapper to say that it is there */
#define SMALL_FILE_MAX 256
#define CLEANUP_MAX    65536
#define CLEANUP_NS     (30 * NS_PER_S) /* for a job's cleanup script, after a KILL */

/* $1 is the job's folder, the rest its argv. The status appears by rename, so that a half-written one is never read; it is
   synced before, so that a status that is there means a log that is there. The wrapper outlives a SIGTERM to the session: until
   it has ended the job has not, and may use its grace. */
static const char WRAPPER[] =
    "dir=$1; shift\n"
    "trap : TERM INT HUP\n"
    "mkdir \"$dir/claim\" 2>/dev/null || exit 0\n"
    "read -r stat </proc/$$/stat\n"
    "start=$(set -- ${stat##*) }; echo \"${20}\")\n"
    "read -r boot </proc/sys/kernel/random/boot_id\n"
    "echo \"$$ $start $boot\" >\"$dir/pid.part\" || exit 70\n"
    "mv \"$dir/pid.part\" \"$dir/pid\" || exit 70\n"
    "\"$@\" >\"$dir/log\" 2>&1 </dev/null\n"
    "rc=$?\n"
    "[ ! -f \"$dir/cleanup\" ] || /bin/sh \"$dir/cleanup\" >/dev/null 2>&1 </dev/null\n"
    "sync \"$dir/log\" || exit 70\n"
    "echo \"exit $rc\" >\"$dir/status.part\" || exit 70\n"
    "sync \"$dir/status.part\" || exit 70\n"
    "mv \"$dir/status.part\" \"$dir/status\"\n";

struct local {
    struct remote remote; /* first: a struct remote * is this */
    struct clock_src clock;
    struct loop *loop;        /* borrowed */
    char *work_folder;        /* owned */
    char *program;            /* reperf-node; owned; NULL: not asked for */
    char spawned[JOB_ID_MAX]; /* the job that was spawned last, by us */
    struct proc wrapper;      /* of it, until it is reaped */
    int64_t spawned_ns;
    struct proc exec; /* of the exec or the cleanup under way */
    bool is_busy;     /* exec is one */
    int input_fd;     /* of exec, ours; -1: none */
};

static char *job_path(struct arena *arena, const struct local *local, const char *id,
                      const char *name)
{
    return arena_printf(arena, "%s/jobs/%s%s%s", local->work_folder, id, name[0] ? "/" : "", name);
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

static int write_cleanup(struct local *local, const struct remote_job *job, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf text;
    strbuf_init(&text, CLEANUP_MAX);
    if (!job->cleanup) {
        return 0;
    }
    for (size_t idx = 0; job->cleanup[idx]; idx++) {
        shq_append(&text, str_of(job->cleanup[idx]));
        strbuf_add_char(&text, ' ');
    }
    strbuf_add_char(&text, '\n');
    return fs_write_atomic(job_path(&arena, local, job->id, "cleanup"), strbuf_str(&text), err);
}

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
    if (fs_mkdir_p(folder, err) < 0 || write_cleanup(local, job, err) < 0) {
        return -1;
    }
    if (local->wrapper.pid) {
        struct err ignored = {0};
        /* The one before has ended, or it is not ours to wait for: a job outlives who started it. */
        (void)proc_step(&local->wrapper, &ignored);
        proc_detach(&local->wrapper);
    }
    if (proc_start(&local->wrapper, local->loop, &spec, err) < 0) {
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

/* ---- exec ---- */

static void end_exec(struct local *local)
{
    proc_release(&local->exec);
    local->exec = PROC_EMPTY;
    fd_cleanup(&local->input_fd);
    local->input_fd = -1;
    local->is_busy = false;
}

static void collect_output(void *ctx, const char *ptr, size_t len)
{
    strbuf_add(ctx, ptr, len);
}

/* Text as a descriptor to read from. */
static int input_of(struct str text, struct err *err)
{
    int fd = memfd_create("input", MFD_CLOEXEC);
    if (fd < 0 || fs_write_all(fd, text.ptr, text.len, "input", err) < 0 ||
        lseek(fd, 0, SEEK_SET) < 0) {
        if (fd >= 0) {
            close(fd);
        }
        return err->code ? -1
                         : err_set(err, ERR_IO, "input of a script: %s", err_errno_text(errno));
    }
    return fd;
}

static int exec_begin(struct local *local, const struct remote_exec *exec, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    size_t n_args = 0;
    size_t n_env;
    while (exec->args && exec->args[n_args]) {
        n_args++;
    }
    const char **argv = arena_array(&arena, const char *, n_args + 5);
    argv[0] = "/bin/sh";
    argv[1] = "-c";
    argv[2] = exec->script;
    argv[3] = "reperf";
    for (size_t idx = 0; idx < n_args; idx++) {
        argv[4 + idx] = exec->args[idx];
    }
    struct proc_spec spec = {.argv = argv,
                             .env = proc_env_allowed(&arena, &n_env),
                             .on_output = exec->on_output ? exec->on_output : collect_output,
                             .output_ctx = exec->on_output ? exec->output_ctx : exec->output,
                             .deadline_ns =
                                 exec->deadline_ns ? exec->deadline_ns : REMOTE_EXEC_DEADLINE_NS};
    ASSERT(exec->on_output || exec->output);
    if (exec->has_input_fd) {
        if (lseek(exec->input_fd, 0, SEEK_SET) < 0) {
            return err_set(err, ERR_IO, "input of a script: %s", err_errno_text(errno));
        }
        spec.input_fd = exec->input_fd;
        spec.has_input = true;
    } else if (exec->input.len) {
        local->input_fd = input_of(exec->input, err);
        if (local->input_fd < 0) {
            return -1;
        }
        spec.input_fd = local->input_fd;
        spec.has_input = true;
    }
    return proc_start(&local->exec, local->loop, &spec, err);
}

static enum step local_exec(struct remote *remote, const struct remote_exec *exec,
                            int *ret_exit_status, struct err *err)
{
    struct local *local = (struct local *)remote;
    enum step step;
    if (!local->is_busy) {
        if (exec_begin(local, exec, err) < 0) {
            end_exec(local);
            return STEP_FAIL;
        }
        local->is_busy = true;
    }
    step = proc_step(&local->exec, err);
    if (step == STEP_AGAIN) {
        return step;
    }
    struct proc done = local->exec;
    end_exec(local);
    if (step == STEP_FAIL) {
        return step;
    }
    if (done.is_timed_out) {
        return step_fail(err_set(err, ERR_TIMEOUT, "a script did not end in time"));
    }
    if (!exec->on_output && exec->output->is_full) {
        return step_fail(err_set(err, ERR_NODE, "a script printed more than %zu bytes",
                                 exec->output->cap_bytes));
    }
    *ret_exit_status = done.signal_no ? 128 + done.signal_no : done.exit_status;
    return STEP_DONE;
}

static void local_abort(struct remote *remote)
{
    struct local *local = (struct local *)remote;
    if (local->is_busy) {
        end_exec(local);
    }
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

/* What a job left outside its session, its container say, is ended by its own script. */
static enum step run_cleanup(struct local *local, const char *id, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *path = job_path(&arena, local, id, "cleanup");
    const char *const argv[] = {"/bin/sh", path, NULL};
    struct proc_spec spec = {.argv = argv, .deadline_ns = CLEANUP_NS};
    size_t n_env;
    enum step step;
    if (!local->is_busy) {
        if (!fs_exists(path)) {
            return STEP_DONE;
        }
        spec.env = proc_env_allowed(&arena, &n_env);
        if (proc_start(&local->exec, local->loop, &spec, err) < 0) {
            return STEP_FAIL;
        }
        local->is_busy = true;
    }
    step = proc_step(&local->exec, err);
    if (step != STEP_AGAIN) {
        end_exec(local);
    }
    return step;
}

static enum step local_signal(struct remote *remote, const char *id, int signal_no, struct err *err)
{
    struct local *local = (struct local *)remote;
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct wrapper_id wrapper;
    struct proc_info info;
    struct str boot;
    bool is_ours = read_pid(&arena, local, id, &wrapper) &&
                   read_small(&arena, "/proc/sys/kernel/random/boot_id", &boot) &&
                   str_eq(str_trim(boot), wrapper.boot_id);
    /* The number may belong to another by now: then nothing of the job is left under it. */
    if (is_ours && !local->is_busy &&
        (!proc_info(wrapper.pid, &info) || info.start_ticks == wrapper.start_ticks)) {
        (void)proc_signal_session(wrapper.pid, signal_no);
    }
    return signal_no == SIGKILL ? run_cleanup(local, id, err) : STEP_DONE;
}

static enum step local_log_digest(struct remote *remote, const char *id, char *ret_hex,
                                  struct err *err)
{
    struct local *local = (struct local *)remote;
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct digest_value value;
    if (digest_file(job_path(&arena, local, id, "log"), DIGEST_SHA256, &value, err) < 0) {
        return STEP_FAIL;
    }
    hex_encode(value.sha256, SHA256_BYTES, ret_hex);
    return STEP_DONE;
}

static enum step local_work_folder(struct remote *remote, const char **ret_path,
                                   struct err *err UNUSED)
{
    *ret_path = ((struct local *)remote)->work_folder;
    return STEP_DONE;
}

static enum step local_program(struct remote *remote, const char **ret_path, struct err *err)
{
    struct local *local = (struct local *)remote;
    local->program = local->program ? local->program : remote_node_file();
    if (access(local->program, X_OK) < 0) {
        return step_fail(
            err_set(err, ERR_NODE, "reperf-node: %s: %s", local->program, err_errno_text(errno)));
    }
    *ret_path = local->program;
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
    local_abort(remote);
    free(local->work_folder);
    free(local->program);
    free(local);
}

static const struct remote_ops LOCAL_OPS = {
    .exec = local_exec,
    .start = local_start,
    .poll = local_poll,
    .read_log = local_read_log,
    .log_digest = local_log_digest,
    .signal = local_signal,
    .forget = local_forget,
    .work_folder = local_work_folder,
    .program = local_program,
    .abort = local_abort,
    .free = local_free,
};

struct remote *remote_local_new(struct loop *loop, const char *work_folder)
{
    struct local *local = xcalloc(1, sizeof(*local));
    local->remote.ops = &LOCAL_OPS;
    local->clock = loop->clock;
    local->loop = loop;
    local->work_folder = xstrdup(work_folder);
    local->wrapper = PROC_EMPTY;
    local->exec = PROC_EMPTY;
    local->input_fd = -1;
    return &local->remote;
}

void remote_free(struct remote *remote)
{
    if (remote) {
        remote->ops->free(remote);
    }
}
