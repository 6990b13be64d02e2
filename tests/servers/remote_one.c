/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on one node over SSH, or on a job of Slurm, for scripts: remote_one [KEY=VALUE...] HOST VERB [ARG...].
   VERB: start ID ARGV..., poll, wait (until it is over), log, reap, forget or a signal's number, each with ID; folder; exec SCRIPT [ARG...];
   steps N SCRIPT [ARG...], N scripts in turn; jobs ID..., jobs one after the other on one connection; abort ID SCRIPT, a look that is given up and a
   script; many N STEPS SCRIPT on N remotes at once (HOST is then a prefix: HOST0, HOST1, ...).
   HOST `slurm`: the job is that of launch_fixture.h, whose words are the arguments; with port= through a login node on that port of 127.0.0.1.
   What a script or a log gives goes to stdout, a job's state as "STATE STATUS WAITING CAUSE WHY"; "status N" and an error as "CODE: message" to stderr;
   the exit status is the error's. */
#include "tests/servers/launch_fixture.h"

#include <sys/resource.h>

#include "base/fs.h"
#include "fleet/remote.h"
#include "tests/servers/built_node.h"

#define TICK_NS   (20 * NS_PER_MS)
#define ENV_MAX   64
#define BYTES_MAX (64u << 20)

struct options {
    struct remote_ssh_opts ssh;
    const char *env[ENV_MAX + 1];
    size_t n_env;
    const char *cleanup, *input, *text;
    int64_t deadline_ns;
    int64_t limit_ns;  /* limit of the verb: then abort */
    bool is_collected; /* a script's output comes in one piece, which has a cap */
};

enum verb { START, POLL, WAIT, LOG, REAP, FORGET, SIGNAL, FOLDER, EXEC };

struct op {
    struct loop *loop;
    struct remote *remote;
    const struct options *options;
    struct remote_job job; /* its id is the operand of most verbs */
    char **args;           /* of a script, with it */
    int64_t until_ns;
    /* What the last one gave. */
    struct job_report report;
    struct log_part part;
    const char *path;
    char hex[65];
    int signal_no, status;
    struct remote_exec exec;
};

static enum step step_of(struct op *op, enum verb verb, struct err *err)
{
    const struct remote_ops *ops = op->remote->ops;
    switch (verb) {
    case START:
        return ops->start(op->remote, &op->job, err);
    case POLL:
    case WAIT:
        return ops->poll(op->remote, op->job.id, &op->report, err);
    case LOG:
        return ops->read_log(op->remote, op->job.id, &op->part, err);
    case REAP:
        return ops->reap(op->remote, op->job.id, op->hex, err);
    case FORGET:
        return ops->forget(op->remote, op->job.id, err);
    case SIGNAL:
        return ops->signal(op->remote, op->job.id, op->signal_no, err);
    case FOLDER:
        return ops->work_folder(op->remote, &op->path, err);
    case EXEC:
    default:
        return ops->exec(op->remote, &op->exec, &op->status, err);
    }
}

/* One turn of the loop after a STEP_AGAIN; false (the error is set) where the verb's time is up. */
static bool wait_more(struct op *op, struct err *err)
{
    if (op->until_ns && loop_now_ns(op->loop) >= op->until_ns) {
        op->remote->ops->abort(op->remote);
        return err_set(err, ERR_TIMEOUT, "given up by the test") == 0;
    }
    return loop_once(op->loop, TICK_NS, err) == 0;
}

static int do_step(struct op *op, enum verb verb, struct err *err)
{
    enum step step;
    while ((step = step_of(op, verb, err)) == STEP_AGAIN) {
        if (!wait_more(op, err)) {
            return -1;
        }
    }
    return step == STEP_FAIL ? -1 : 0;
}

static void print(void *ctx UNUSED, const char *ptr, size_t len)
{
    fwrite(ptr, 1, len, stdout);
}

static int do_exec(struct op *op, struct err *err)
{
    CLEANUP(strbuf) struct strbuf output, input;
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    op->exec = (struct remote_exec){.script = op->args[0],
                                    .args = (const char *const *)op->args + 1,
                                    .deadline_ns = op->options->deadline_ns};
    strbuf_init(&output, BYTES_MAX);
    strbuf_init(&input, BYTES_MAX);
    op->exec.output = op->options->is_collected ? &output : NULL;
    op->exec.on_output = op->options->is_collected ? NULL : print;
    if (op->options->input) {
        struct str bytes;
        if (fs_read(&arena, op->options->input, BYTES_MAX, &bytes, err) < 0) {
            return -1;
        }
        strbuf_add(&input, bytes.ptr, bytes.len);
        op->exec.feed = &input;
    }
    if (do_step(op, EXEC, err) < 0) {
        return -1;
    }
    fwrite(output.ptr, 1, output.len, stdout);
    fflush(stdout);
    fprintf(stderr, "status %d\n", op->status);
    return 0;
}

static int do_wait(struct op *op, struct err *err)
{
    do {
        if (do_step(op, POLL, err) < 0 || loop_once(op->loop, TICK_NS, err) < 0) {
            return -1;
        }
    } while (op->report.state == JOB_RUNNING);
    return 0;
}

static int do_log(struct op *op, struct err *err)
{
    static char bytes[10000]; /* small, so that there are several parts */
    op->part = (struct log_part){.dst = bytes, .size = sizeof(bytes)};
    do {
        if (do_step(op, LOG, err) < 0) {
            return -1;
        }
        print(NULL, bytes, op->part.len);
        op->part.offset += op->part.len;
    } while (op->part.len);
    fflush(stdout);
    return 0;
}

static int do_verb(struct op *op, enum verb verb, struct err *err)
{
    const struct job_report *report = &op->report;
    if ((verb == WAIT   ? do_wait(op, err)
         : verb == LOG  ? do_log(op, err)
         : verb == EXEC ? do_exec(op, err)
                        : do_step(op, verb, err)) < 0) {
        return -1;
    }
    if (verb == START) {
        fprintf(stderr, "started\n");
    } else if (verb == POLL || verb == WAIT) {
        printf("%s %d %s %s %s\n", NODE_JOB_STATES[report->state], report->exit_status,
               report->is_waiting ? "waiting" : "-",
               report->cause ? err_code_name(report->cause) : "none", report->why);
    } else if (verb == REAP || verb == FOLDER) {
        puts(verb == FOLDER ? op->path : op->hex);
    }
    return 0;
}

/* A poll of a running job, aborted; then a script, at once. Polls that have ended by then are begun again. */
static int do_abort(struct op *op, struct err *err)
{
    int64_t until_ns = loop_now_ns(op->loop) + 400 * NS_PER_MS;
    enum step step;
    while ((step = step_of(op, POLL, err)) == STEP_DONE
               ? op->report.state == JOB_RUNNING
               : step == STEP_AGAIN && loop_now_ns(op->loop) < until_ns) {
        if (step == STEP_AGAIN && !wait_more(op, err)) {
            return -1;
        }
    }
    if (step != STEP_AGAIN) {
        return step == STEP_FAIL ? -1 : err_set(err, ERR_INTERNAL, "the job has ended by itself");
    }
    op->remote->ops->abort(op->remote);
    op->args++;
    return do_exec(op, err);
}

/* Each argument a job's id, which prints it; each is waited for and forgotten, and a script is run between two of them (text=). */
static int do_jobs(struct op *op, char **ids, struct err *err)
{
    for (; *ids; ids++) {
        const char *const argv[] = {"/bin/echo", *ids, NULL};
        char *script[] = {(char *)(uintptr_t)op->options->text, NULL};
        op->job = (struct remote_job){.id = *ids, .argv = argv};
        op->args = script;
        if (do_step(op, START, err) < 0 || do_wait(op, err) < 0 || do_log(op, err) < 0 ||
            do_step(op, FORGET, err) < 0 || (script[0] && do_exec(op, err) < 0)) {
            return -1;
        }
    }
    return 0;
}

static int do_steps(struct op *op, struct err *err)
{
    int64_t n = number(*op->args++);
    while (n-- > 0) {
        if (do_exec(op, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- many at once ---- */

static void count_bytes(void *ctx, const char *ptr UNUSED, size_t len)
{
    *(uint64_t *)ctx += len;
}

struct member {
    struct remote *remote;
    int64_t n_left; /* scripts */
    bool is_over;
    struct err err;
};

static bool step_members(struct member *members, size_t n, const struct remote_exec *exec)
{
    bool is_busy = false;
    for (struct member *member = members; member < members + n; member++) {
        enum step step = STEP_DONE;
        int status = -1;
        while (!member->is_over && step == STEP_DONE) {
            step = member->remote->ops->exec(member->remote, exec, &status, &member->err);
            if (step == STEP_DONE && status != 0) {
                step = step_fail(err_set(&member->err, ERR_WORKLOAD, "status %d", status));
            }
            member->n_left -= step == STEP_DONE;
            member->is_over = step == STEP_FAIL || member->n_left == 0;
        }
        is_busy |= !member->is_over;
    }
    return is_busy;
}

/* N STEPS SCRIPT ARG...: what the client itself takes for it is said, too. */
static int do_many(struct loop *loop, const struct options *options, const char *host, char **args,
                   struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    size_t n = (size_t)number(args[0]);
    struct member *members = arena_array(&arena, struct member, n);
    struct rusage usage;
    uint64_t bytes = 0;
    int result = 0;
    const struct remote_exec exec = {.script = args[2],
                                     .args = (const char *const *)args + 3,
                                     .on_output = count_bytes,
                                     .output_ctx = &bytes,
                                     .deadline_ns = options->deadline_ns};
    for (size_t idx = 0; idx < n && result == 0; idx++) {
        struct remote_ssh_opts ssh = options->ssh;
        ssh.host = arena_printf(&arena, "%s%zu", host, idx);
        members[idx].n_left = number(args[1]);
        members[idx].remote = remote_ssh_new(loop, &ssh, err);
        result = members[idx].remote ? 0 : -1;
    }
    while (result == 0 && step_members(members, n, &exec)) {
        result = loop_once(loop, TICK_NS, err);
    }
    for (size_t idx = 0; idx < n; idx++) {
        if (members[idx].err.code && result == 0) {
            result = err_set(err, members[idx].err.code, "%s", members[idx].err.msg);
        }
        remote_free(members[idx].remote);
    }
    getrusage(RUSAGE_SELF, &usage);
    printf("bytes %" PRIu64 "\ncpu_ms %.3f\nrss_kib %ld\n", bytes,
           (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3,
           usage.ru_maxrss);
    return result;
}

/* ---- arguments ---- */

static bool take_option(struct options *options, const char *argument)
{
    static const struct {
        const char *key;
        size_t offset;
        bool is_span; /* in ms */
    } KEYS[] = {{"user=", offsetof(struct options, ssh.user), false},
                {"work=", offsetof(struct options, ssh.work_folder), false},
                {"config=", offsetof(struct options, ssh.config_path), false},
                {"cleanup=", offsetof(struct options, cleanup), false},
                {"input=", offsetof(struct options, input), false},
                {"text=", offsetof(struct options, text), false},
                {"connect_ms=", offsetof(struct options, ssh.connect_timeout_ns), true},
                {"outage_ms=", offsetof(struct options, ssh.outage_ns), true},
                {"deadline_ms=", offsetof(struct options, deadline_ns), true},
                {"limit_ms=", offsetof(struct options, limit_ns), true}};
    for (size_t idx = 0; idx < ARRAY_LEN(KEYS); idx++) {
        size_t len = strlen(KEYS[idx].key);
        void *field = (char *)options + KEYS[idx].offset;
        if (strncmp(argument, KEYS[idx].key, len) == 0) {
            if (KEYS[idx].is_span) {
                *(int64_t *)field = number(argument + len) * NS_PER_MS;
            } else {
                *(const char **)field = argument + len;
            }
            return true;
        }
    }
    if (strncmp(argument, "env=", 4) == 0 && options->n_env < ENV_MAX) {
        options->env[options->n_env++] = argument + 4;
    } else if (strncmp(argument, "port=", 5) == 0) {
        options->ssh.port = number(argument + 5);
    } else {
        options->is_collected |= strcmp(argument, "collected=1") == 0;
        return strcmp(argument, "collected=1") == 0;
    }
    return true;
}

/* The remote, and the job that the arguments are of. */
static int open_remote(struct arena *arena, struct op *op, const char *host, int n_args,
                       struct err *err)
{
    struct remote_ssh_opts ssh = op->options->ssh;
    bool is_slurm = strcmp(host, "slurm") == 0;
    ssh.host = is_slurm ? "127.0.0.1" : host;
    op->remote = is_slurm && !ssh.port ? remote_local_new(op->loop, ssh.work_folder)
                                       : remote_ssh_new(op->loop, &ssh, err);
    if (!op->remote) {
        return -1;
    }
    if (is_slurm) {
        op->job = launch_fixture(arena, n_args + 1, op->args - 1).jobs[0].job;
        return 0;
    }
    const char **cleanup = arena_array(arena, const char *, 4);
    memcpy(cleanup, (const char *const[]){"/bin/sh", "-c", op->options->cleanup, NULL},
           4 * sizeof(*cleanup));
    op->job = (struct remote_job){.id = op->args[0],
                                  .argv = (const char *const *)op->args + (n_args > 0),
                                  .env = op->options->env,
                                  .cleanup = op->options->cleanup ? cleanup : NULL};
    return 0;
}

static int run_verb(struct op *op, const char *name, struct err *err)
{
    static const char *const VERBS[] = {"start",  "poll", "wait",   "log", "reap",
                                        "forget", NULL,   "folder", "exec"};
    if (strcmp(name, "steps") == 0) {
        return do_steps(op, err);
    }
    if (strcmp(name, "abort") == 0) {
        return do_abort(op, err);
    }
    if (strcmp(name, "jobs") == 0) {
        return do_jobs(op, op->args, err);
    }
    for (size_t idx = 0; idx < ARRAY_LEN(VERBS); idx++) {
        if (VERBS[idx] && strcmp(VERBS[idx], name) == 0) {
            return do_verb(op, (enum verb)idx, err);
        }
    }
    op->signal_no = (int)number(name);
    return do_verb(op, SIGNAL, err);
}

int main(int argc, char **argv)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(loop) struct loop loop = LOOP_EMPTY;
    struct options options = {0};
    struct op op = {.loop = &loop, .options = &options};
    struct err err = {0};
    int result = 0;
    use_built_node();
    for (argv++; *argv && take_option(&options, *argv); argv++) {
        argc--;
    }
    if (argc < 3) {
        fprintf(stderr, "usage: remote_one [KEY=VALUE...] HOST VERB [ARG...]\n");
        return 2;
    }
    op.args = argv + 2;
    loop_init(&loop, clock_system());
    if (strcmp(argv[1], "many") == 0) {
        result = do_many(&loop, &options, argv[0], op.args, &err);
    } else {
        op.until_ns = options.limit_ns ? loop_now_ns(&loop) + options.limit_ns : 0;
        result = open_remote(&arena, &op, argv[0], argc - 3, &err);
        result = result < 0 ? result : run_verb(&op, argv[1], &err);
        remote_free(op.remote);
    }
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", err_code_name(err.code), err.msg);
    }
    return err_exit_status(err.code);
}
