/* SPDX-License-Identifier: Apache-2.0 */
/* `reperf-node batch DIR`: the content of a Slurm batch job (slurm.c). It claims the job, runs its program, passes on signals
   that ask it to end, cleans up, and records the outcome in DIR. Its output and the program's is the log, which Slurm has
   opened. `reperf-node srun N NAME ADDRESS ... WORDS...`: runs srun WORDS, which starts the ranks, with the address of the
   first rank's node in the environment. N nodes of the inventory, in its order; Slurm has an order of its own, in which the
   first node has the first rank. */
#include "base/base.h"

#include "node/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "node/job.h"
#include "node/tool.h"

#define STATUS_BAD   74
#define STOP_MAX     64
#define STATUS_PLACE 70
#define NODE_IPS     "NODE_IPS" /* addresses of all the job's nodes, in order */
#define HOSTS_MAX    (1u << 20)
#define HOSTS_LIMIT  (60 * NS_PER_S)

static int say(const char *what, const char *why)
{
    dprintf(STDERR_FILENO, "reperf-node: %s: %s\n", what, why);
    return STATUS_BAD;
}

/* The status that the job was told to end with; 0: it was not told to end. A controller that died may start a job that was
   removed from its queue, and srun may report 0 for ranks that were killed with their job. */
static int read_stop(const char *dir)
{
    char path[JOB_PATH_BYTES], text[STOP_MAX];
    struct str rest, word = STR_EMPTY;
    int64_t status = 0;
    snprintf(path, sizeof(path), "%s/stop", dir);
    rest = str_of(job_read_small(path, text, sizeof(text)) ? text : "");
    (void)str_next(&rest, ' ', &word);
    return str_to_i64(word, 1, 255, &status, ERR_IGNORED) == 0 ? (int)status : 0;
}

/* 1: it is ours; 0: another process runs it. */
static int claim(struct arena *arena, const char *dir, struct err *err)
{
    const char *path = arena_printf(arena, "%s/claim", dir);
    const char *number = getenv("SLURM_JOB_ID");
    if (mkdir(path, 0777) < 0) {
        return errno == EEXIST
                   ? 0
                   : err_set(err, err_code_of_errno(errno), "%s: %s", path, err_errno_text(errno));
    }
    number = arena_printf(arena, "%s\n", number ? number : "0");
    return job_put(arena_printf(arena, "%s/job", path), str_of(number), false, err) < 0 ? -1 : 1;
}

static int read_job(struct arena *arena, const char *dir, struct wrapper_job *ret_job,
                    struct err *err)
{
    const char *path = arena_printf(arena, "%s/request", dir);
    struct node_request request;
    struct str bytes;
    size_t len = 0;
    if (fs_read(arena, path, NODE_FRAME_MAX, &bytes, err) < 0) {
        return -1;
    }
    int rc = node_request_read(arena, bytes, &request, &len, err);
    if (rc < 0) {
        return err_wrap(err, "%s", path);
    }
    if (rc == 0 || request.op != NODE_START || !serve_take_job(&request, dir, ret_job)) {
        return err_set(err, ERR_PARSE, "%s: not a job", path);
    }
    ret_job->is_in_batch = true;
    (void)unlink(path); /* its environment may hold secrets */
    return 0;
}

/* Waits for the child's status through signals; those that ask it to end are passed on. */
static int run_program(const struct wrapper_job *job, bool *ret_was_asked)
{
    sigset_t signals;
    int status = 0;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    pid_t pid = fork();
    if (pid == 0) {
        int null_fd = open("/dev/null", O_RDONLY);
        (void)dup2(null_fd, STDIN_FILENO);
        wrapper_become(job, STDOUT_FILENO);
    }
    if (pid < 0) {
        (void)say("fork", err_errno_text(errno));
        return 126;
    }
    for (;;) {
        siginfo_t info;
        int signal_no = sigwaitinfo(&signals, &info);
        if (signal_no == SIGCHLD && waitpid(pid, &status, WNOHANG) == pid) {
            return wrapper_exit_status(status);
        }
        if (signal_no > 0 && signal_no != SIGCHLD) {
            *ret_was_asked = true;
            (void)kill(pid, SIGTERM);
        }
    }
}

int batch_main(const char *dir)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct wrapper_job job = {.dir = dir};
    struct err err = {0};
    bool was_asked = false;
    int is_ours = claim(&arena, dir, &err);
    if (is_ours <= 0) {
        return is_ours < 0 ? say("this job cannot be claimed", err.msg) : 0;
    }
    int exit_status = read_stop(dir);
    if (exit_status != 0) { /* nothing to clean up after */
        (void)unlink(arena_printf(&arena, "%s/cleanup", dir));
    } else {
        if (read_job(&arena, dir, &job, &err) < 0 || wrapper_write_pid(&job, &err) < 0) {
            return say("this job cannot be run", err.msg);
        }
        exit_status = run_program(&job, &was_asked);
        /* A job that was told to end has failed, unless its own status says how it ended. */
        exit_status = exit_status ? exit_status : read_stop(dir);
        exit_status = exit_status || !was_asked ? exit_status : 128 + SIGTERM;
    }
    return wrapper_finish(&job, STDOUT_FILENO, exit_status) < 0
               ? say("its status could not be written", dir)
               : exit_status;
}

/* ---- srun ---- */

/* Finds the addresses of the allocation's nodes, in its order. */
static int find_addresses(const char *list, size_t n_nodes, char **pairs, struct strbuf *out)
{
    CLEANUP(strbuf) struct strbuf hosts = STRBUF(HOSTS_MAX);
    const char *const argv[] = {"scontrol", "show", "hostnames", list, NULL};
    struct str host;
    if (tool_run(argv, HOSTS_LIMIT, true, &hosts) != 0) {
        return say("scontrol show hostnames", hosts.len ? hosts.ptr : list);
    }
    struct str rest = strbuf_str(&hosts);
    while (str_next(&rest, '\n', &host)) {
        const char *found = NULL;
        for (size_t idx = 0; idx < n_nodes && !found; idx++) {
            found = str_eq_z(host, pairs[2 * idx]) ? pairs[2 * idx + 1] : NULL;
        }
        if (host.len && !found) {
            dprintf(STDERR_FILENO,
                    "reperf: %.*s of the allocation (%s) is not a node of the inventory\n",
                    STR_ARG(host), list);
            return STATUS_PLACE;
        }
        strbuf_printf(out, "%s%s", host.len && out->len ? "," : "", host.len ? found : "");
    }
    return out->len ? 0 : say("scontrol names no host of", list);
}

int srun_main(int argc, char **argv)
{
    CLEANUP(strbuf) struct strbuf addresses = STRBUF(HOSTS_MAX);
    const char *list = getenv("SLURM_JOB_NODELIST");
    const char *ours = getenv(NODE_IPS);
    int64_t n_nodes;
    int null_fd = open("/dev/null", O_RDONLY);
    if (argc < 1 || str_to_i64(str_of(argv[0]), 1, argc, &n_nodes, ERR_IGNORED) < 0 ||
        2 * n_nodes + 1 >= argc) {
        return STATUS_PLACE;
    }
    if (!list) {
        return say("srun", "SLURM_JOB_NODELIST is not set: this is not a Slurm job");
    }
    int status = find_addresses(list, (size_t)n_nodes, argv + 1, &addresses);
    if (status != 0) {
        return status;
    }
    if (ours && ours[0]) {
        (void)setenv(NODE_IPS, addresses.ptr, 1);
    }
    addresses.ptr[strcspn(addresses.ptr, ",")] = '\0';
    (void)setenv("MASTER_ADDR", addresses.ptr, 1);
    (void)dup2(null_fd, STDIN_FILENO);
    argv += 2 * n_nodes; /* the slot before its words holds srun's name */
    argv[0] = (char[]){"srun"};
    execvp(argv[0], argv);
    status = errno == ENOENT ? 127 : 126;
    (void)say("srun", err_errno_text(errno));
    return status;
}
