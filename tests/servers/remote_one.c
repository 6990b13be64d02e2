/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on one node over SSH, for the tests of fleet/remote_ssh: KEY=VALUE options, then the host, then one verb and its arguments.
   What a script or a log gives goes to stdout; "status N", "state ..." and an error as "CODE: message" to stderr; the exit status is
   the error's. `many N SCRIPT` runs a script on N remotes at once (HOST is then a prefix: HOST0, HOST1, ...). */
#include "base/base.h"

#include <fcntl.h>
#include <sys/resource.h>

#include "base/fs.h"
#include "fleet/remote.h"
#include "tests/servers/built_node.h"

#define TICK_NS (20 * NS_PER_MS)
#define ENV_MAX 64

struct options {
    struct remote_ssh_opts ssh;
    const char *env[ENV_MAX + 1];
    size_t n_env;
    const char *cleanup;
    const char *input;
    const char *text;
    int64_t deadline_ns;
    int64_t limit_ns;  /* limit of the verb: then abort */
    bool is_collected; /* a script's output comes in one piece, which has a cap */
    bool is_quiet;
};

struct op {
    struct loop *loop;
    struct remote *remote;
    const struct options *options;
    char **args;
    size_t n_args;
    int64_t until_ns;
};

/* One turn of the loop after a STEP_AGAIN; false (the error is set) where the verb's time is up. */
static bool wait_more(struct op *op, struct err *err)
{
    if (op->until_ns && loop_now_ns(op->loop) >= op->until_ns) {
        op->remote->ops->abort(op->remote);
        return err_set(err, ERR_TIMEOUT, "given up by the test") == 0;
    }
    return loop_once(op->loop, TICK_NS, err) == 0;
}

#define UNTIL_DONE(op, call)                                                                       \
    do {                                                                                           \
        enum step step;                                                                            \
        while ((step = (call)) == STEP_AGAIN) {                                                    \
            if (!wait_more(op, err)) {                                                             \
                return -1;                                                                         \
            }                                                                                      \
        }                                                                                          \
        if (step == STEP_FAIL) {                                                                   \
            return -1;                                                                             \
        }                                                                                          \
    } while (0)

static void print(void *ctx UNUSED, const char *ptr, size_t len)
{
    fwrite(ptr, 1, len, stdout);
}

static int do_exec(struct op *op, struct err *err)
{
    CLEANUP(strbuf) struct strbuf output;
    struct remote_exec exec = {.script = op->args[0],
                               .args = (const char *const *)op->args + 1,
                               .deadline_ns = op->options->deadline_ns};
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf input;
    int status = -1;
    strbuf_init(&output, 64u << 20);
    strbuf_init(&input, 64u << 20);
    if (op->options->is_collected) {
        exec.output = &output;
    } else {
        exec.on_output = print;
    }
    if (op->options->input) {
        struct str bytes;
        if (fs_read(&arena, op->options->input, 64u << 20, &bytes, err) < 0) {
            return -1;
        }
        strbuf_add(&input, bytes.ptr, bytes.len);
        exec.feed = &input;
    }
    UNTIL_DONE(op, op->remote->ops->exec(op->remote, &exec, &status, err));
    fwrite(output.ptr, 1, output.len, stdout);
    fflush(stdout);
    fprintf(stderr, "status %d\n", status);
    return 0;
}

static int do_start(struct op *op, struct err *err)
{
    const char *const cleanup[] = {"/bin/sh", "-c", op->options->cleanup, NULL};
    struct remote_job job = {.id = op->args[0],
                             .argv = (const char *const *)op->args + 1,
                             .env = op->options->env,
                             .cleanup = op->options->cleanup ? cleanup : NULL};
    UNTIL_DONE(op, op->remote->ops->start(op->remote, &job, err));
    fprintf(stderr, "started\n");
    return 0;
}

static int do_poll(struct op *op, struct err *err)
{
    struct job_report report = {0};
    UNTIL_DONE(op, op->remote->ops->poll(op->remote, op->args[0], &report, err));
    fprintf(stderr, "state %s %d\n", NODE_JOB_STATES[report.state], report.exit_status);
    return 0;
}

static int do_wait(struct op *op, struct err *err)
{
    struct job_report report = {.state = JOB_RUNNING};
    int64_t n = 0;
    while (report.state == JOB_RUNNING) {
        UNTIL_DONE(op, op->remote->ops->poll(op->remote, op->args[0], &report, err));
        n++;
    }
    fprintf(stderr, "state %d %d after %lld looks\n", (int)report.state, report.exit_status,
            (long long)n);
    return 0;
}

static int do_log(struct op *op, struct err *err)
{
    static char bytes[100000];
    struct log_part part = {.dst = bytes, .size = sizeof(bytes)};
    do {
        UNTIL_DONE(op, op->remote->ops->read_log(op->remote, op->args[0], &part, err));
        fwrite(bytes, 1, part.len, stdout);
        part.offset += part.len;
    } while (part.len);
    return 0;
}

static int do_reap(struct op *op, struct err *err)
{
    char hex[65];
    UNTIL_DONE(op, op->remote->ops->reap(op->remote, op->args[0], hex, err));
    printf("%s\n", hex);
    return 0;
}

static int do_signal(struct op *op, struct err *err)
{
    int64_t number;
    if (str_to_i64(str_of(op->args[1]), 1, 64, &number, err) < 0) {
        return -1;
    }
    UNTIL_DONE(op, op->remote->ops->signal(op->remote, op->args[0], (int)number, err));
    return 0;
}

static int do_forget(struct op *op, struct err *err)
{
    UNTIL_DONE(op, op->remote->ops->forget(op->remote, op->args[0], err));
    return 0;
}

static int do_folder(struct op *op, struct err *err)
{
    const char *path = NULL;
    UNTIL_DONE(op, op->remote->ops->work_folder(op->remote, &path, err));
    printf("%s\n", path);
    return 0;
}

/* A poll of a running job, aborted; then a script, at once. Polls that have ended by then are begun again. */
static int do_abort(struct op *op, struct err *err)
{
    struct job_report report = {.state = JOB_RUNNING};
    int64_t until_ns = loop_now_ns(op->loop) + 400 * NS_PER_MS;
    enum step step;
    while ((step = op->remote->ops->poll(op->remote, op->args[0], &report, err)) == STEP_DONE
               ? report.state == JOB_RUNNING
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

/* Several jobs on one connection, one after the other: each argument a job's id, which prints it; each is waited for and forgotten. */
static int do_jobs(struct op *op, struct err *err)
{
    for (size_t idx = 0; idx < op->n_args; idx++) {
        const char *const argv[] = {"/bin/echo", op->args[idx], NULL};
        const struct remote_job job = {.id = op->args[idx], .argv = argv};
        struct op one = *op;
        UNTIL_DONE(op, op->remote->ops->start(op->remote, &job, err));
        one.args = op->args + idx;
        if (do_wait(&one, err) < 0 || do_log(&one, err) < 0 || do_forget(&one, err) < 0) {
            return -1;
        }
        fflush(stdout);
        if (op->options->text) { /* a script between two of them */
            char *script[] = {(char *)(uintptr_t)op->options->text, NULL};
            one.args = script;
            if (do_exec(&one, err) < 0) {
                return -1;
            }
        }
    }
    return 0;
}

/* A plan of N steps, one script each, in turn on this one node. */
static int do_steps(struct op *op, struct err *err)
{
    int64_t n;
    if (str_to_i64(str_of(op->args[0]), 1, 1000000, &n, err) < 0) {
        return -1;
    }
    op->args++;
    for (int64_t idx = 0; idx < n; idx++) {
        if (do_exec(op, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static const struct {
    const char *name;
    size_t n_args; /* at least */
    int (*run)(struct op *op, struct err *err);
} VERBS[] = {{"exec", 1, do_exec},     {"start", 2, do_start},   {"poll", 1, do_poll},
             {"wait", 1, do_wait},     {"log", 1, do_log},       {"signal", 2, do_signal},
             {"forget", 1, do_forget}, {"folder", 0, do_folder}, {"steps", 2, do_steps},
             {"abort", 2, do_abort},   {"jobs", 1, do_jobs},     {"reap", 1, do_reap}};

/* ---- many at once ---- */

static void count_bytes(void *ctx, const char *ptr UNUSED, size_t len)
{
    *(uint64_t *)ctx += len;
}

struct member {
    struct remote *remote;
    uint64_t bytes;
    int64_t n_left; /* scripts */
    bool is_over;
    struct err err;
};

static size_t step_members(struct member *members, size_t n, const struct options *options,
                           const char *script, char **args)
{
    size_t n_busy = 0;
    for (size_t idx = 0; idx < n; idx++) {
        struct member *member = &members[idx];
        struct remote_exec exec = {.script = script,
                                   .args = (const char *const *)args,
                                   .on_output = count_bytes,
                                   .output_ctx = &member->bytes,
                                   .deadline_ns = options->deadline_ns};
        enum step step = STEP_DONE;
        int status = -1;
        while (!member->is_over && step == STEP_DONE) {
            step = member->remote->ops->exec(member->remote, &exec, &status, &member->err);
            if (step == STEP_DONE && status != 0) {
                step = step_fail(err_set(&member->err, ERR_WORKLOAD, "status %d", status));
            }
            if (step == STEP_DONE) {
                member->n_left--;
            }
            member->is_over = step == STEP_FAIL || member->n_left == 0;
        }
        n_busy += !member->is_over;
    }
    return n_busy;
}

static void print_usage(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("cpu_ms %.3f\nrss_kib %ld\n",
           (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3,
           usage.ru_maxrss);
}

/* N STEPS SCRIPT ARG... */
static int do_many(struct loop *loop, const struct options *options, const char *host, char **args,
                   struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct member *members;
    int64_t n, n_steps;
    uint64_t bytes = 0;
    int result = 0;
    if (str_to_i64(str_of(args[0]), 1, 4096, &n, err) < 0 ||
        str_to_i64(str_of(args[1]), 1, 1000000, &n_steps, err) < 0) {
        return -1;
    }
    members = arena_array(&arena, struct member, (size_t)n);
    for (int64_t idx = 0; idx < n && result == 0; idx++) {
        struct remote_ssh_opts ssh = options->ssh;
        ssh.host = arena_printf(&arena, "%s%lld", host, (long long)idx);
        members[idx].n_left = n_steps;
        members[idx].remote = remote_ssh_new(loop, &ssh, err);
        result = members[idx].remote ? 0 : -1;
    }
    while (result == 0 && step_members(members, (size_t)n, options, args[2], args + 3)) {
        result = loop_once(loop, TICK_NS, err);
    }
    for (int64_t idx = 0; idx < n; idx++) {
        if (members[idx].err.code && result == 0) {
            result = err_set(err, members[idx].err.code, "%s", members[idx].err.msg);
        }
        bytes += members[idx].bytes;
        remote_free(members[idx].remote);
    }
    printf("bytes %" PRIu64 "\n", bytes);
    print_usage();
    return result;
}

/* ---- arguments ---- */

static int take_ms(const char *value, int64_t *ret_ns, struct err *err)
{
    int64_t number;
    if (str_to_i64(str_of(value), 0, 100000000, &number, err) < 0) {
        return -1;
    }
    *ret_ns = number * NS_PER_MS;
    return 0;
}

/* 1: taken, 0: not an option, -1. */
static int take_option(struct options *options, const char *argument, struct err *err)
{
    static const struct {
        const char *key;
        size_t offset;
        bool is_span;
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
        if (strncmp(argument, KEYS[idx].key, len) != 0) {
            continue;
        }
        if (KEYS[idx].is_span) {
            return take_ms(argument + len, field, err) < 0 ? -1 : 1;
        }
        *(const char **)field = argument + len;
        return 1;
    }
    if (strncmp(argument, "env=", 4) == 0 && options->n_env < ENV_MAX) {
        options->env[options->n_env++] = argument + 4;
        return 1;
    }
    if (strncmp(argument, "port=", 5) == 0) {
        return str_to_i64(str_of(argument + 5), 1, 65535, &options->ssh.port, err) < 0 ? -1 : 1;
    }
    if (strcmp(argument, "collected=1") == 0) {
        options->is_collected = true;
        return 1;
    }
    return 0;
}

static int run_verb(const struct options *options, char **args, size_t n_args, struct err *err)
{
    CLEANUP(loop) struct loop loop = LOOP_EMPTY;
    struct op op = {.loop = &loop, .options = options, .args = args + 2, .n_args = n_args - 2};
    struct remote_ssh_opts ssh = options->ssh;
    int result = -1;
    bool is_known = false;
    loop_init(&loop, clock_system());
    if (strcmp(args[1], "many") == 0 && op.n_args >= 3) {
        return do_many(&loop, options, args[0], args + 2, err);
    }
    ssh.host = args[0];
    op.remote = remote_ssh_new(&loop, &ssh, err);
    if (!op.remote) {
        return -1;
    }
    op.until_ns = options->limit_ns ? loop_now_ns(&loop) + options->limit_ns : 0;
    for (size_t idx = 0; idx < ARRAY_LEN(VERBS); idx++) {
        if (strcmp(VERBS[idx].name, args[1]) == 0 && op.n_args >= VERBS[idx].n_args) {
            is_known = true;
            result = VERBS[idx].run(&op, err);
        }
    }
    if (!is_known) {
        result = err_set(err, ERR_USAGE, "%s: no such verb, or too few arguments", args[1]);
    }
    remote_free(op.remote);
    return result;
}

int main(int argc, char **argv)
{
    struct options options = {0};
    struct err err = {0};
    int at = 1;
    int taken = 1;
    use_built_node();
    while (at < argc && taken > 0) {
        taken = take_option(&options, argv[at], &err);
        at += taken > 0;
    }
    if (taken >= 0 && argc - at < 2) {
        taken = err_set(&err, ERR_USAGE, "expected [KEY=VALUE...] HOST VERB [ARG...]");
    }
    if (taken < 0 || run_verb(&options, argv + at, (size_t)(argc - at), &err) < 0) {
        fprintf(stderr, "%s: %s\n", err_code_name(err.code), err.msg);
    }
    return err_exit_status(err.code);
}
