/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that Slurm runs, submitted on a machine that has sbatch. A job's folder is on a file system that this machine and the compute
   nodes share: request (the job, as a START frame; removed by the process that runs it), batch (Slurm's script: one exec of this
   program, batch.c), slurm (the job's number), stop (the status to end with, once it was told to end), claim/ (its creator runs the
   job, so a job submitted twice runs once; claim/job: its number), log, pid, status, cleanup. Source: Slurm 22.05, sbatch(1),
   squeue(1), scancel(1), sacct(1). */
#include "base/base.h"

#include "node/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/fs.h"
#include "codec/digest.h"
#include "node/job.h"
#include "node/tool.h"

#define ASK_LIMIT_NS    (20 * NS_PER_S)
#define SUBMIT_LIMIT_NS (30 * NS_PER_S)
#define RUNS_LIMIT_NS   (5 * NS_PER_S)
#define SAID_MAX        (64u << 10)
#define LIST_MAX        (1u << 20)
#define NUMBER_MAX      24
#define OPTIONS_OURS    16
#define LINE_MAX_BYTES  300
#define PROGRAM_MAX     (64u << 20)

struct batch {
    struct arena arena;
    const char *id, *dir; /* WORK/jobs/ID */
    const char *name; /* unique, and short enough for squeue; the id itself is the job's comment */
    struct strbuf said; /* output of the last tool */
    const char *why;    /* it failed */
};

struct queue {     /* the jobs of a name */
    int64_t first; /* 0: none */
    int64_t *all;
    size_t n;
};

static const char *path_in(struct batch *batch, const char *name)
{
    return arena_printf(&batch->arena, "%s/%s", batch->dir, name);
}

static bool open_batch(struct batch *batch, const struct server *server,
                       const struct node_request *request)
{
    struct str run = STR_EMPTY;
    *batch = (struct batch){.arena = ARENA_EMPTY};
    strbuf_init(&batch->said, LIST_MAX);
    if (request->n_fields < 1 || !serve_is_plain_id(request->fields[0])) {
        return false;
    }
    struct str rest = request->fields[0];
    batch->id = request->fields[0].ptr;
    batch->dir = arena_printf(&batch->arena, "%s/jobs/%s", server->work_folder, batch->id);
    (void)str_next(&rest, '/', &run);
    batch->name = arena_printf(&batch->arena, "reperf-%.*s-%08x", STR_ARG(run),
                               crc32c(0, batch->id, strlen(batch->id)));
    return true;
}

static void close_batch(struct batch *batch)
{
    strbuf_release(&batch->said);
    arena_release(&batch->arena);
}

/* ---- Slurm's programs ---- */

static struct str first_line(struct str text)
{
    struct str line = STR_EMPTY;
    text = str_trim(text);
    return str_next(&text, '\n', &line) ? str_sub(str_trim(line), 0, LINE_MAX_BYTES) : STR_EMPTY;
}

static bool run(struct batch *batch, const char *const *argv, int64_t limit_ns)
{
    strbuf_clear(&batch->said);
    int status = tool_run(argv, limit_ns, true, &batch->said);
    if (status == 0) {
        return true;
    }
    batch->why =
        status == TOOL_ABSENT ? arena_printf(&batch->arena, "%s is not installed", argv[0])
        : status == TOOL_LATE || status == TOOL_STUCK
            ? arena_printf(&batch->arena, "%s does not answer", argv[0])
            : arena_printf(&batch->arena, "%.*s", STR_ARG(first_line(strbuf_str(&batch->said))));
    return false;
}

/* The controller may just be restarting: the caller retries for a while. If the program is missing, that is useless. */
static int silent(struct batch *batch, struct strbuf *text)
{
    if (!tool_is_there("squeue")) {
        return serve_failed(text, "squeue is not installed: is this the machine that has Slurm?",
                            NULL);
    }
    strbuf_printf(text, "silent %s\n", batch->why);
    return 0;
}

static bool is_number(struct str text, int64_t *ret_number)
{
    return text.len < NUMBER_MAX && str_to_i64(text, 1, INT64_MAX, ret_number, ERR_IGNORED) == 0;
}

/* False: Slurm does not answer. */
static bool ask_by_name(struct batch *batch, bool with_ended, struct queue *ret_queue)
{
    const char *name = arena_printf(&batch->arena, "--name=%s", batch->name);
    const char *const all[] = {"squeue", "--noheader", name, "--format=%A", "--states=all", NULL};
    const char *const now[] = {"squeue", "--noheader", name, "--format=%A", NULL};
    struct queue queue = {0};
    struct str line;
    if (!run(batch, with_ended ? all : now, ASK_LIMIT_NS)) {
        return false;
    }
    struct str rest = strbuf_str(&batch->said);
    queue.all = arena_array(&batch->arena, int64_t, batch->said.len / 2 + 1);
    while (str_next(&rest, '\n', &line)) {
        int64_t number;
        if (is_number(str_trim(line), &number)) {
            queue.all[queue.n++] = number;
            queue.first = !queue.first || number < queue.first ? number : queue.first;
        }
    }
    *ret_queue = queue;
    return true;
}

int slurm_scancel(const char *number, struct err *err)
{
    CLEANUP(strbuf) struct strbuf said = STRBUF(SAID_MAX);
    const char *const argv[] = {"scancel", number, NULL};
    int status = tool_run(argv, ASK_LIMIT_NS, true, &said);
    /* It is not a failure if the job has ended meanwhile. */
    return status == 0 || str_find(strbuf_str(&said), STR_LIT("nvalid job id")) >= 0
               ? 0
               : err_set(err, ERR_NODE, "scancel %s: %.*s", number,
                         STR_ARG(first_line(strbuf_str(&said))));
}

/* The number of the job that runs, even if it was submitted twice. */
static const char *read_number(struct batch *batch)
{
    static const char *const FILES[] = {"claim/job", "slurm"};
    for (size_t idx = 0; idx < ARRAY_LEN(FILES); idx++) {
        char text[NUMBER_MAX];
        int64_t number;
        if (job_read_small(path_in(batch, FILES[idx]), text, sizeof(text)) &&
            is_number(str_trim(str_of(text)), &number)) {
            return arena_printf(&batch->arena, "%" PRId64, number);
        }
    }
    return NULL;
}

/* ---- submit ---- */

/* Where the compute nodes find this program: it is run by path, so the shared folder must allow execution. */
static const char *shared_program(struct batch *batch, const struct server *server, struct err *err)
{
    const char *folder = arena_printf(&batch->arena, "%s/bin", server->work_folder);
    char ours[SHA256_HEX_SIZE], theirs[SHA256_HEX_SIZE];
    if (fs_mkdir_p(folder, err) < 0 || serve_sha256("/proc/self/exe", ours, err) < 0) {
        return NULL;
    }
    const char *path = arena_printf(&batch->arena, "%s/reperf-node-%s", folder, ours);
    if (serve_sha256(path, theirs, ERR_IGNORED) < 0 || strcmp(ours, theirs) != 0) {
        const char *part = arena_printf(&batch->arena, "%s/.reperf-node-%d", folder, (int)getpid());
        struct str program;
        if (fs_read(&batch->arena, "/proc/self/exe", PROGRAM_MAX, &program, err) < 0 ||
            job_put(part, program, true, err) < 0) {
            return NULL;
        }
        if (chmod(part, 0700) < 0 || rename(part, path) < 0) {
            (void)!err_set(err, err_code_of_errno(errno), "%s: %s", path, err_errno_text(errno));
            return NULL;
        }
    }
    if (!run(batch, (const char *const[]){path, "--version", NULL}, RUNS_LIMIT_NS)) {
        (void)!err_set(
            err, ERR_NODE,
            "%s does not allow execution (%s): name a shared_folder that is not mounted noexec",
            folder, batch->why);
        return NULL;
    }
    return path;
}

/* ID, then START's fields after it. */
static int write_request(struct batch *batch, const struct node_request *request, size_t from,
                         struct err *err)
{
    CLEANUP(strbuf) struct strbuf frame = STRBUF(NODE_FRAME_MAX);
    enum { AT_CLEANUP = 2 };
    struct node_request start = {.op = NODE_START, .n_fields = request->n_fields - from + 1};
    struct str *fields = arena_array(&batch->arena, struct str, start.n_fields);
    fields[0] = request->fields[0];
    memcpy(fields + 1, request->fields + from, (start.n_fields - 1) * sizeof(*fields));
    start.fields = fields;
    node_request_write(&frame, &start);
    if (frame.is_full) {
        return err_set(err, ERR_USAGE, "a job of more than %u bytes", NODE_BODY_MAX);
    }
    mode_t before = umask(077); /* its environment may hold secrets */
    int rc = job_put(path_in(batch, "request"), strbuf_str(&frame), false, err);
    umask(before);
    if (rc == 0 && fields[AT_CLEANUP].len) {
        const char *line = arena_printf(&batch->arena, "%.*s\n", STR_ARG(fields[AT_CLEANUP]));
        rc = job_put(path_in(batch, "cleanup"), str_of(line), false, err);
    }
    return rc;
}

static int write_files(struct batch *batch, const struct server *server,
                       const struct node_request *request, size_t from, struct err *err)
{
    CLEANUP(strbuf) struct strbuf script = STRBUF(SAID_MAX);
    const char *program = shared_program(batch, server, err);
    const char *log = path_in(batch, "log");
    CLEANUP(fd) int log_fd = -1;
    if (!program || write_request(batch, request, from, err) < 0) {
        return -1;
    }
    strbuf_add_z(&script, "#!/bin/sh\nexec ");
    shq_append(&script, str_of(program));
    strbuf_add_z(&script, " batch ");
    shq_append(&script, str_of(batch->dir));
    strbuf_add_char(&script, '\n');
    if (job_put(path_in(batch, "batch"), strbuf_str(&script), false, err) < 0) {
        return -1;
    }
    /* Exists from the start: a job that never runs has an empty log. */
    log_fd = open(log, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    return log_fd >= 0
               ? 0
               : err_set(err, err_code_of_errno(errno), "%s: %s", log, err_errno_text(errno));
}

/* In a file name Slurm replaces what follows a percent sign. */
static const char *log_option(struct batch *batch, const char *option)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(SAID_MAX);
    for (const char *at = batch->dir; *at; at++) {
        strbuf_add_z(&text, *at == '%' ? "%%" : (char[]){*at, '\0'});
    }
    return arena_printf(&batch->arena, "%s%s/log", option, text.ptr);
}

/* -1: sbatch refuses it; else its number, or 0 where it does not answer. */
static int64_t sbatch(struct batch *batch, const struct str *options, size_t n_options)
{
    const char **argv = arena_array(&batch->arena, const char *, n_options + OPTIONS_OURS);
    size_t n = 0;
    struct str rest, line;
    int64_t number = 0;
    argv[n++] = "sbatch";
    argv[n++] = "--parsable";
    argv[n++] = arena_printf(&batch->arena, "--job-name=%s", batch->name);
    argv[n++] = arena_printf(&batch->arena, "--comment=%s", batch->id);
    argv[n++] = arena_printf(&batch->arena, "--chdir=%s", batch->dir);
    argv[n++] = log_option(batch, "--output=");
    argv[n++] = log_option(batch, "--error=");
    argv[n++] = "--open-mode=append"; /* a job submitted twice does not truncate the log */
    argv[n++] = "--no-requeue";
    argv[n++] = "--exclusive"; /* sharing a node would spoil the measurement */
    /* The caller's environment is not part of the run. */
    argv[n++] = "--export=HOME,USER,PATH,SLURM_CONF";
    for (size_t idx = 0; idx < n_options; idx++) {
        argv[n++] = options[idx].ptr;
    }
    argv[n++] = path_in(batch, "batch");
    argv[n] = NULL;
    if (!run(batch, argv, SUBMIT_LIMIT_NS)) {
        return -1;
    }
    rest = strbuf_str(&batch->said); /* NUMBER or NUMBER;CLUSTER, between warnings */
    while (number == 0 && str_next(&rest, '\n', &line)) {
        struct str word;
        (void)str_next(&line, ';', &word);
        number = is_number(str_trim(word), &number) ? number : 0;
    }
    return number;
}

/* Slurm is asked for the name first: an earlier submitter may have died before it could record the number. It is asked afterwards,
   too: a request whose connection was lost may still be running when this one is repeated. The first number is the job; another that
   waits is cancelled. */
static int submit(struct batch *batch, const struct str *options, size_t n_options,
                  struct strbuf *text)
{
    struct queue queue = {0};
    struct err err = {0};
    if (!ask_by_name(batch, true, &queue)) {
        return silent(batch, text);
    }
    if (!queue.first) {
        int64_t ours = sbatch(batch, options, n_options);
        if (ours < 0) {
            return serve_failed(text, arena_printf(&batch->arena, "sbatch: %s", batch->why), NULL);
        }
        if (!ask_by_name(batch, true, &queue)) {
            return silent(batch, text);
        }
        queue.first = queue.first ? queue.first : ours;
    }
    if (!queue.first) {
        return serve_failed(text, "sbatch accepted the job, but printed no number", NULL);
    }
    for (size_t idx = 0; idx < queue.n; idx++) {
        const char *other = arena_printf(&batch->arena, "%" PRId64, queue.all[idx]);
        if (queue.all[idx] != queue.first) {
            (void)run(batch, (const char *const[]){"scancel", "--state=PENDING", other, NULL},
                      ASK_LIMIT_NS);
        }
    }
    const char *number = arena_printf(&batch->arena, "%" PRId64 "\n", queue.first);
    return job_put(path_in(batch, "slurm"), str_of(number), false, &err) < 0
               ? serve_failed(text, "", &err)
               : 0;
}

int serve_submit(struct server *server, const struct node_request *request, struct strbuf *text)
{
    enum { N_OPTIONS = 1, OPTIONS = 2 };
    struct batch batch;
    struct wrapper_job job;
    struct err err = {0};
    int64_t n_options, most;
    int status = 0;
    bool is_good = open_batch(&batch, server, request) &&
                   serve_number(request, N_OPTIONS, NODE_FIELDS_MAX, &n_options) &&
                   (size_t)n_options < request->n_fields - OPTIONS;
    if (is_good) {
        /* Its fields from the last option on are START's, whose first is the id. */
        struct node_request start = {.op = NODE_START,
                                     .fields = request->fields + OPTIONS + n_options - 1,
                                     .n_fields =
                                         request->n_fields - OPTIONS - (size_t)n_options + 1};
        is_good = serve_take_job(&start, batch.dir, &job, &most);
    }
    if (!is_good) {
        status = serve_bad(text);
    } else if (fs_mkdir_p(batch.dir, &err) < 0) {
        status = serve_failed(text, "", &err);
    } else if (!fs_exists(path_in(&batch, "status")) && !fs_exists(path_in(&batch, "slurm"))) {
        bool is_claimed = fs_exists(path_in(&batch, "claim"));
        status = !is_claimed &&
                         write_files(&batch, server, request, OPTIONS + (size_t)n_options, &err) < 0
                     ? serve_failed(text, "", &err)
                     : submit(&batch, request->fields + OPTIONS, (size_t)n_options, text);
    }
    close_batch(&batch);
    return status;
}

/* ---- queue ---- */

/* squeue knows ended jobs for some minutes; accounting, if there is any, for longer. False: Slurm does not answer. */
static bool ask_state(struct batch *batch, const char *number, const char **ret_state)
{
    const char *job = arena_printf(&batch->arena, "--jobs=%s", number);
    bool is_known = run(
        batch,
        (const char *const[]){"squeue", "--noheader", "--states=all", job, "--format=%T %r", NULL},
        ASK_LIMIT_NS);
    if (!is_known && str_find(strbuf_str(&batch->said), STR_LIT("Invalid job id")) < 0) {
        return false;
    }
    struct str state = is_known ? first_line(strbuf_str(&batch->said)) : STR_EMPTY;
    if (!state.len && run(batch,
                          (const char *const[]){"sacct", "--noheader", "--allocations",
                                                "--parsable2", job, "--format=State,Reason", NULL},
                          ASK_LIMIT_NS)) {
        state = first_line(strbuf_str(&batch->said));
    }
    char *words = str_z(&batch->arena, state.len ? state : STR_LIT("UNKNOWN"));
    for (char *at = words; *at; at++) {
        *at = *at == '|' ? ' ' : *at;
    }
    *ret_state = words;
    return true;
}

/* The program's own status is enough if it succeeded; else Slurm may know why. */
static int queue(struct batch *batch, struct strbuf *text)
{
    bool is_claimed = fs_is_dir(path_in(batch, "claim"));
    const char *number = read_number(batch);
    const char *state;
    int status = 0;
    bool has_status = job_read_status(batch->dir, &status);
    if (!number && !has_status) {
        struct queue queue = {0};
        if (fs_is_dir(batch->dir) && !ask_by_name(batch, true, &queue)) {
            return silent(batch, text);
        }
        if (!queue.first) {
            strbuf_add_z(text, "absent\n");
            return 0;
        }
        number = arena_printf(&batch->arena, "%" PRId64, queue.first);
    }
    if (has_status && (status == 0 || !number)) {
        strbuf_printf(text, "ended %d\n", status);
        return 0;
    }
    if (!ask_state(batch, number, &state)) {
        return silent(batch, text);
    }
    if (has_status || job_read_status(batch->dir, &status)) {
        strbuf_printf(text, "ended %d %s %s\n", status, number, state);
    } else {
        strbuf_printf(text, "slurm %d %s %s\n", is_claimed, number, state);
    }
    return 0;
}

int serve_queue(struct server *server, const struct node_request *request, struct strbuf *text)
{
    struct batch batch;
    int status = open_batch(&batch, server, request) ? queue(&batch, text) : serve_bad(text);
    close_batch(&batch);
    return status;
}

/* ---- cancel ---- */

static bool is_waiting(struct str state)
{
    static const char *const WAITING[] = {"PENDING",      "REQUEUED",      "REQUEUE_HOLD",
                                          "SPECIAL_EXIT", "RESV_DEL_HOLD", NULL};
    return str_eq_any(state, WAITING);
}

/* A signal reaches only the ranks: the batch job then ends their containers and records the outcome. */
static int cancel(struct batch *batch, int signal_no, bool is_whole, struct strbuf *text)
{
    const char *number = read_number(batch);
    struct queue queue = {0};
    struct err err = {0};
    if (!number && ask_by_name(batch, false, &queue) && queue.first) {
        number = arena_printf(&batch->arena, "%" PRId64, queue.first);
    }
    if (!number) {
        return 0;
    }
    if (is_whole || signal_no == SIGINT || signal_no == SIGKILL || signal_no == SIGTERM) {
        const char *stop =
            arena_printf(&batch->arena, "%d\n", 128 + (is_whole ? SIGKILL : signal_no));
        if (job_put(path_in(batch, "stop"), str_of(stop), false, &err) < 0) {
            return serve_failed(text, "", &err);
        }
    }
    const char *job = arena_printf(&batch->arena, "--jobs=%s", number);
    if (!run(batch, (const char *const[]){"squeue", "--noheader", job, "--format=%T", NULL},
             ASK_LIMIT_NS) ||
        !first_line(strbuf_str(&batch->said)).len) {
        return 0;
    }
    if (is_waiting(first_line(strbuf_str(&batch->said)))) {
        return slurm_scancel(number, &err) < 0 ? serve_failed(text, "", &err) : 0;
    }
    const char *word = arena_printf(&batch->arena, "--signal=%d", is_whole ? SIGKILL : signal_no);
    const char *const whole[] = {"scancel", "--full", word, number, NULL};
    const char *const ranks[] = {"scancel", word, number, NULL};
    (void)run(batch, is_whole ? whole : ranks, ASK_LIMIT_NS);
    return is_whole && slurm_scancel(number, &err) < 0 ? serve_failed(text, "", &err) : 0;
}

int serve_cancel(struct server *server, const struct node_request *request, struct strbuf *text)
{
    struct batch batch;
    int64_t signal_no = 0, is_whole = 0;
    bool is_good = open_batch(&batch, server, request) &&
                   serve_number(request, 1, 64, &signal_no) && signal_no >= 1 &&
                   serve_number(request, 2, 1, &is_whole);
    int status = !is_good ? serve_bad(text)
                 : fs_is_dir(batch.dir) && !fs_exists(path_in(&batch, "status"))
                     ? cancel(&batch, (int)signal_no, is_whole != 0, text)
                     : 0;
    close_batch(&batch);
    return status;
}

/* ---- what is in the queue ---- */

int serve_batches(struct server *server UNUSED, const struct node_request *request UNUSED,
                  struct strbuf *text)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf said;
    const char *user = arena_printf(&arena, "--user=%u", (unsigned)getuid());
    const char *const argv[] = {"squeue", "--noheader", user, "--format=%A %T %j", NULL};
    struct str line;
    strbuf_init(&said, NODE_TEXT_MAX / 2);
    int status = tool_run(argv, ASK_LIMIT_NS, true, &said);
    if (status != 0) {
        struct str why = status == TOOL_ABSENT ? STR_LIT("squeue is not installed")
                                               : first_line(strbuf_str(&said));
        return serve_failed(text, arena_printf(&arena, "Slurm does not answer: %.*s", STR_ARG(why)),
                            NULL);
    }
    struct str rest = strbuf_str(&said);
    while (str_next(&rest, '\n', &line)) {
        struct str number, state;
        if (str_next(&line, ' ', &number) && str_next(&line, ' ', &state) &&
            str_starts(line, STR_LIT("reperf-"))) {
            strbuf_printf(text, "batch\t%.*s\t%.*s\t%.*s\n", STR_ARG(state), STR_ARG(number),
                          STR_ARG(line));
        }
    }
    return 0;
}
