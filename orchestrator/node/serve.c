/* SPDX-License-Identifier: Apache-2.0 */
/* Requests, each done and answered (node/README.md). */
#include "base/base.h"

#include "node/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "codec/digest.h"
#include "node/job.h"

#define ID_MAX        512
#define START_WAIT_NS (15 * NS_PER_S) /* for a wrapper to announce itself */
#define START_LOOK_MS 10
#define WAIT_MAX_MS   60000
#define LOOK_MS       20 /* if nothing signals a job's end */
#define CHUNK_BYTES   65536

int serve_failed(struct strbuf *text, const char *what, const struct err *err)
{
    strbuf_clear(text);
    strbuf_printf(text, "%s%s%s\n", what, what[0] && err ? ": " : "", err ? err->msg : "");
    return err && err->code == ERR_DISK        ? NODE_FULL
           : err && err->code == ERR_CONTAINER ? NODE_ENGINE
                                               : NODE_FAILED;
}

const char *serve_path(struct asked_job *job, const char *name)
{
    return arena_printf(&job->arena, "%s/%s", job->dir, name);
}

static bool is_batch(struct asked_job *job)
{
    return fs_exists(serve_path(job, "batch"));
}

/* ---- arguments ---- */

bool serve_is_plain_id(struct str id)
{
    struct str rest = id;
    struct str part;
    if (!id.len || id.len >= ID_MAX || id.ptr[id.len - 1] == '/') {
        return false;
    }
    while (str_next(&rest, '/', &part)) {
        if (!part.len || str_eq_z(part, ".") || str_eq_z(part, "..")) {
            return false;
        }
    }
    return true;
}

bool serve_number(const struct node_request *request, size_t field, int64_t max,
                  int64_t *ret_number)
{
    return field < request->n_fields &&
           str_to_i64(request->fields[field], 0, max, ret_number, ERR_IGNORED) == 0;
}

int serve_bad(struct strbuf *text)
{
    return serve_failed(text, "a malformed request for its operation", NULL);
}

/* ---- looking and waiting ---- */

static int pidfd_of(pid_t pid)
{
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, pid, 0);
#else
    (void)pid;
    return -1;
#endif
}

static void reap_children(void)
{
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
}

/* Waits until the job has ended, the time is up, or the channel has input. The kernel signals the end of a process; if it cannot
   (before Linux 5.3), or no process is known yet, this polls. */
static void wait_for_end(struct asked_job *job, int64_t wait_ms, struct job_look *look)
{
    int64_t until_ns = clock_now_ns() + wait_ms * NS_PER_MS;
    CLEANUP(fd) int pid_fd = -1;
    job_look(job->dir, look);
    while (look->state == JOB_RUNNING) {
        int64_t left_ms = (until_ns - clock_now_ns() + NS_PER_MS - 1) / NS_PER_MS;
        if (pid_fd < 0 && look->wrapper.pid) {
            pid_fd = pidfd_of(look->wrapper.pid);
            job_look(job->dir, look); /* so the pidfd is that process's */
            continue;
        }
        struct pollfd fds[2] = {{.fd = job->server->input_fd, .events = POLLIN},
                                {.fd = pid_fd, .events = POLLIN}};
        bool is_told = pid_fd >= 0;
        if (left_ms <= 0) {
            return;
        }
        (void)poll(fds, 2, is_told || left_ms < LOOK_MS ? (int)left_ms : LOOK_MS);
        reap_children();
        job_look(job->dir, look);
        if (fds[0].revents) {
            return;
        }
    }
}

static int serve_poll(struct asked_job *job, const struct node_request *request,
                      struct strbuf *text)
{
    struct err err = {0};
    struct job_look look;
    struct job_report report = {0};
    int64_t wait_ms;
    if (!serve_number(request, 1, WAIT_MAX_MS, &wait_ms)) {
        return serve_bad(text);
    }
    if (is_batch(job)) {
        return slurm_poll(job, wait_ms, text);
    }
    wait_for_end(job, wait_ms, &look);
    /* Lost, and the disk is full: then that is why there is no status. */
    if (look.state == JOB_LOST && job_probe(job->dir, &err) < 0) {
        return serve_failed(text, "", &err);
    }
    report.state = look.state;
    if (look.state == JOB_ENDED) {
        report.exit_status = look.exit_status;
        (void)job_read_small(serve_path(job, "left"), report.left, sizeof(report.left));
    }
    node_report_write(text, &report);
    return 0;
}

/* ---- the log ---- */

static int serve_read(struct asked_job *job, const struct node_request *request,
                      struct strbuf *text)
{
    const char *path = serve_path(job, "log");
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    int64_t offset, most;
    if (!serve_number(request, 1, INT64_MAX, &offset) ||
        !serve_number(request, 2, NODE_TEXT_MAX - CHUNK_BYTES, &most)) {
        return serve_bad(text);
    }
    char chunk[CHUNK_BYTES];
    while (fd >= 0 && most > 0) {
        ssize_t len =
            pread(fd, chunk, most < CHUNK_BYTES ? (size_t)most : CHUNK_BYTES, (off_t)offset);
        if (len < 0) {
            struct err err = {0};
            (void)!err_set(&err, ERR_IO, "%s: %s", path, err_errno_text(errno));
            return serve_failed(text, "", &err);
        }
        if (len == 0) {
            break;
        }
        strbuf_add(text, chunk, (size_t)len);
        offset += len;
        most -= len;
    }
    return 0;
}

int serve_sha256(const char *path, char *ret_hex, struct err *err)
{
    struct digest_value value;
    if (digest_file(path, DIGEST_SHA256, &value, err) < 0) {
        return err_wrap(err, "its digest could not be computed");
    }
    hex_encode(value.sha256, SHA256_BYTES, ret_hex);
    return 0;
}

/* Nothing of it runs any more, so its log is final. */
static int serve_reap(struct asked_job *job, const struct node_request *request UNUSED,
                      struct strbuf *text)
{
    char hex[SHA256_HEX_SIZE];
    struct err err = {0};
    if (is_batch(job)) {
        (void)slurm_signal(job, SIGKILL, text);
        strbuf_clear(text);
    } else {
        job_signal(job->dir, SIGKILL);
    }
    reap_children();
    if (serve_sha256(fs_exists(serve_path(job, "log")) ? serve_path(job, "log") : "/dev/null", hex,
                     &err) < 0) {
        return serve_failed(text, "", &err);
    }
    strbuf_printf(text, "%s\n", hex);
    return 0;
}

/* ---- start ---- */

bool serve_take_job(const struct node_request *request, const char *dir,
                    struct wrapper_job *ret_job)
{
    enum { AT_WATCHED = 3, AT_N_ARGV = 4, AT_ARGV = 5 };
    int64_t n_argv, is_watched;
    if (!serve_number(request, AT_WATCHED, 1, &is_watched) ||
        !serve_number(request, AT_N_ARGV, NODE_FIELDS_MAX, &n_argv) || n_argv < 1 ||
        (size_t)n_argv > request->n_fields - AT_ARGV) {
        return false;
    }
    *ret_job = (struct wrapper_job){.dir = dir,
                                    .argv = request->fields + AT_ARGV,
                                    .n_argv = (size_t)n_argv,
                                    .env = request->fields + AT_ARGV + n_argv,
                                    .n_env = request->n_fields - AT_ARGV - (size_t)n_argv,
                                    .is_watched = is_watched != 0};
    return true;
}

int serve_put_cleanup(struct asked_job *job, const struct node_request *request, struct err *err)
{
    enum { AT_CLEANUP = 2 };
    struct str script = request->fields[AT_CLEANUP];
    struct str line = str_printf(&job->arena, "%.*s\n", STR_ARG(script));
    return script.len ? job_put(serve_path(job, "cleanup"), line, false, err) : 0;
}

static int claim_and_run(struct asked_job *job, const struct node_request *request,
                         const struct wrapper_job *wrapper, int *ret_said, struct err *err)
{
    if (fs_mkdir_p(job->dir, err) < 0) {
        return -1;
    }
    if (fs_exists(serve_path(job, "claim"))) {
        return 0;
    }
    return serve_put_cleanup(job, request, err) < 0 ? -1 : wrapper_start(wrapper, ret_said, err);
}

/* Waits until its pid is written, whoever claimed it. */
static int await_wrapper(struct asked_job *job, int said_fd, struct err *err)
{
    int64_t until_ns = clock_now_ns() + START_WAIT_NS;
    const char *status = serve_path(job, "status");
    const char *claim = serve_path(job, "claim");
    struct job_pid wrapper;
    bool is_told = said_fd >= 0;
    while (!(job_read_pid(job->dir, &wrapper) && wrapper.pid) && !fs_exists(status)) {
        struct pollfd said = {.fd = is_told ? said_fd : -1, .events = POLLIN};
        if (clock_now_ns() >= until_ns) {
            return err_set(err, ERR_NODE, "%s: the job was claimed, but its wrapper did not start",
                           job->dir);
        }
        if (!is_told && !fs_exists(claim) && job_probe(job->dir, err) < 0) {
            return -1;
        }
        (void)poll(&said, 1, is_told ? (int)(START_WAIT_NS / NS_PER_MS) : START_LOOK_MS);
        is_told = false;
    }
    return 0;
}

static int serve_start(struct asked_job *job, const struct node_request *request,
                       struct strbuf *text)
{
    enum { AT_BATCH = 1 };
    struct err err = {0};
    struct wrapper_job wrapper;
    CLEANUP(fd) int said_fd = -1;
    if (!serve_take_job(request, job->dir, &wrapper)) {
        return serve_bad(text);
    }
    if (request->fields[AT_BATCH].len) {
        return slurm_start(job, request, request->fields[AT_BATCH], text);
    }
    return claim_and_run(job, request, &wrapper, &said_fd, &err) < 0 ||
                   await_wrapper(job, said_fd, &err) < 0
               ? serve_failed(text, "", &err)
               : 0;
}

/* ---- the rest ---- */

static int serve_signal(struct asked_job *job, const struct node_request *request,
                        struct strbuf *text)
{
    int64_t signal_no;
    if (!serve_number(request, 1, 64, &signal_no) || signal_no < 1) {
        return serve_bad(text);
    }
    if (is_batch(job)) {
        return slurm_signal(job, (int)signal_no, text);
    }
    job_signal(job->dir, (int)signal_no);
    return 0;
}

/* The claim goes last: what a kill leaves of the folder is a job still, which `nodes clean` finds. */
static int remove_job(struct asked_job *job, struct err *err)
{
    struct fs_names names = {0};
    if (fs_is_dir(job->dir) && fs_list(&job->arena, job->dir, &names, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        if (strcmp(names.items[idx], "claim") != 0 &&
            fs_remove_tree(fs_join(&job->arena, job->dir, names.items[idx]), err) < 0) {
            return -1;
        }
    }
    return fs_remove_tree(job->dir, err);
}

int serve_forget_job(const char *root, const char *id, struct err *err)
{
    struct asked_job job = {.id = id};
    struct job_look look;
    struct str folder = str_of(id);
    job.dir = arena_printf(&job.arena, "%s/%s", root, id);
    job_look(job.dir, &look);
    int result = look.state == JOB_RUNNING ? err_set(err, ERR_NODE, "%s: it still runs", job.dir)
                                           : remove_job(&job, err);
    do { /* also the folders above it, as long as they are empty */
        while (folder.len && folder.ptr[folder.len - 1] != '/') {
            folder.len--;
        }
        folder.len -= folder.len > 0;
    } while (result == 0 && folder.len &&
             rmdir(arena_printf(&job.arena, "%s/%.*s", root, STR_ARG(folder))) == 0);
    arena_release(&job.arena);
    return result;
}

static int serve_forget(struct asked_job *job, const struct node_request *request UNUSED,
                        struct strbuf *text)
{
    struct err err = {0};
    const char *root = arena_printf(&job->arena, "%s/jobs", job->server->work_folder);
    return serve_forget_job(root, job->id, &err) < 0 ? serve_failed(text, "", &err) : 0;
}

/* Creates the folder if it is missing; answers with its path without symlinks. */
static int serve_folder(struct server *server, const struct node_request *request UNUSED,
                        struct strbuf *text)
{
    struct err err = {0};
    char *path CLEANUP(free) = NULL;
    if (owner_check(server->work_folder, &err) < 0 || fs_mkdir_p(server->work_folder, &err) < 0 ||
        job_probe(server->work_folder, &err) < 0) {
        return serve_failed(text, "", &err);
    }
    path = realpath(server->work_folder, NULL);
    if (!path) {
        return serve_failed(text, err_errno_text(errno), NULL);
    }
    strbuf_printf(text, "%s\n", path);
    return 0;
}

static int serve_job(struct server *server, const struct node_request *request, struct strbuf *text)
{
    typedef int (*job_fn)(struct asked_job * job, const struct node_request *request,
                          struct strbuf *text);
    static const job_fn OF_JOB[NODE_OP_END] = {
        [NODE_START] = serve_start,   [NODE_POLL] = serve_poll, [NODE_READ] = serve_read,
        [NODE_SIGNAL] = serve_signal, [NODE_REAP] = serve_reap, [NODE_FORGET] = serve_forget};
    struct asked_job job = {.server = server};
    if (request->n_fields < 1 || !serve_is_plain_id(request->fields[0])) {
        return serve_failed(text, "a job's id is not a plain relative path", NULL);
    }
    job.id = request->fields[0].ptr;
    job.dir = arena_printf(&job.arena, "%s/jobs/%s", server->work_folder, job.id);
    int status = OF_JOB[request->op](&job, request, text);
    arena_release(&job.arena);
    return status;
}

int serve_request(struct server *server, const struct node_request *request, struct strbuf *text)
{
    typedef int (*serve_fn)(struct server * server, const struct node_request *request,
                            struct strbuf *text);
    static const serve_fn OF_NODE[NODE_OP_END] = {
        [NODE_FOLDER] = serve_folder,  [NODE_LEASE] = serve_lease,
        [NODE_SCAN] = serve_scan,      [NODE_REMOVE] = serve_remove,
        [NODE_CLOCK] = serve_clock,    [NODE_FACTS] = serve_facts,
        [NODE_LISTEN] = serve_listen,  [NODE_CONNECT] = serve_connect,
        [NODE_BATCHES] = serve_batches};
    serve_fn fn = OF_NODE[request->op];
    reap_children();
    return (fn ? fn : serve_job)(server, request, text);
}
