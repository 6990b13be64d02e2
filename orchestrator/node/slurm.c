/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that Slurm runs, submitted on a machine that has sbatch. A job's folder is on a file system that this machine and the
   compute nodes share: request (the job, as a START frame; removed by the process that runs it), batch (Slurm's script: one
   exec of this program, batch.c), slurm (the job's number), stop ("STATUS SECONDS": what to end with, once it was told to
   end, and since when), claim/ (its creator runs the job, so a job submitted twice runs once; claim/job: its number), log,
   pid, status, cleanup. A controller that does not answer may just be restarting: it is asked again for a minute, or until the
   channel has more input. Source: Slurm 22.05, sbatch(1), squeue(1), scancel(1), sacct(1). */
#include "base/base.h"

#include "node/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
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
#define SILENCE_NS      (60 * NS_PER_S) /* how long Slurm's controller may not answer */
#define LAG_NS                                                                                     \
    (15 *                                                                                          \
     NS_PER_S) /* for a status to come through a network file system, or an end through Slurm */
#define ESCALATE_S     15   /* from killing the ranks to killing the job */
#define GAP_MS         1000 /* between two questions */
#define LOOK_MS        100  /* between two looks for a status */
#define SAID_MAX       (64u << 10)
#define LIST_MAX       (1u << 20)
#define NUMBER_MAX     24
#define STOP_MAX       64
#define OPTIONS_MAX    32
#define LINE_MAX_BYTES 300
#define PROGRAM_MAX    (64u << 20)

struct batch {
    struct asked_job *job;
    const char *name; /* unique, and short enough for squeue; the id itself is the job's comment */
    struct strbuf said;       /* output of the last tool */
    const char *number;       /* the first of that name; NULL: there is none */
    struct str other_numbers; /* "NUMBER ..." */
};

static struct batch batch_of(struct asked_job *job)
{
    struct str rest = str_of(job->id), run = STR_EMPTY;
    (void)str_next(&rest, '/', &run);
    return (struct batch){.job = job,
                          .name = arena_printf(&job->arena, "reperf-%.*s-%08x", STR_ARG(run),
                                               crc32c(0, job->id, strlen(job->id))),
                          .said = STRBUF(LIST_MAX)};
}

/* ---- waiting ---- */

/* False: the channel has input. */
static bool rest(const struct batch *batch, int span_ms)
{
    struct pollfd input = {.fd = batch->job->server->input_fd, .events = POLLIN};
    return poll(&input, 1, span_ms) == 0;
}

static void await_status(struct batch *batch, int64_t wait_ms)
{
    int status;
    for (; wait_ms > 0 && !job_read_status(batch->job->dir, &status); wait_ms -= LOOK_MS) {
        if (!rest(batch, LOOK_MS)) {
            return;
        }
    }
}

/* ---- Slurm's programs ---- */

static struct str first_line(struct str text)
{
    struct str line = STR_EMPTY;
    text = str_trim(text);
    return str_next(&text, '\n', &line) ? str_sub(str_trim(line), 0, LINE_MAX_BYTES) : STR_EMPTY;
}

static int run(struct batch *batch, const char *const *argv, int64_t limit_ns, struct err *err)
{
    strbuf_clear(&batch->said);
    int status = tool_run(argv, limit_ns, true, &batch->said);
    return status == 0             ? 0
           : status == TOOL_ABSENT ? err_set(err, ERR_NODE, "%s is not installed", argv[0])
           : status == TOOL_LATE || status == TOOL_STUCK
               ? err_set(err, ERR_NODE, "%s does not answer", argv[0])
               : err_set(err, ERR_NODE, "%.*s", STR_ARG(first_line(strbuf_str(&batch->said))));
}

/* What squeue says. A job that it does not know any more is no failure. */
static int ask(struct batch *batch, const char *const *argv, struct err *err)
{
    int64_t until_ns = clock_now_ns() + SILENCE_NS;
    if (!tool_is_there("squeue")) {
        return err_set(err, ERR_NODE,
                       "squeue is not installed: is this the machine that has Slurm?");
    }
    for (;;) {
        struct err why = {0};
        if (run(batch, argv, ASK_LIMIT_NS, &why) == 0) {
            return 0;
        }
        if (str_find(strbuf_str(&batch->said), STR_LIT("nvalid job id")) >= 0) {
            strbuf_clear(&batch->said);
            return 0;
        }
        if (clock_now_ns() >= until_ns || !rest(batch, GAP_MS)) {
            return err_set(err, ERR_NODE, "Slurm does not answer: %s", why.msg);
        }
    }
}

static bool is_number(struct str text)
{
    int64_t number;
    return text.len < NUMBER_MAX && str_to_i64(text, 1, INT64_MAX, &number, ERR_IGNORED) == 0;
}

/* The jobs of its name, also those that have ended. squeue prints them in no order. */
static int ask_by_name(struct batch *batch, struct err *err)
{
    struct arena *arena = &batch->job->arena;
    const char *name = arena_printf(arena, "--name=%s", batch->name);
    const char *const argv[] = {"squeue", "--noheader", "--states=all", "--format=%A", name, NULL};
    struct str line;
    int64_t first = 0, number;
    if (ask(batch, argv, err) < 0) {
        return -1;
    }
    batch->other_numbers = str_dup(arena, strbuf_str(&batch->said));
    for (struct str rest = batch->other_numbers; str_next(&rest, '\n', &line);) {
        if (is_number(str_trim(line)) &&
            str_to_i64(str_trim(line), 1, INT64_MAX, &number, ERR_IGNORED) == 0) {
            first = !first || number < first ? number : first;
        }
    }
    batch->number = first ? arena_printf(arena, "%" PRId64, first) : NULL;
    return 0;
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

/* The number of the job that runs, even if it was submitted twice; Slurm is asked where its folder does not say. */
static int find_number(struct batch *batch, struct err *err)
{
    static const char *const FILES[] = {"claim/job", "slurm"};
    char text[NUMBER_MAX];
    for (size_t idx = 0; idx < ARRAY_LEN(FILES); idx++) {
        if (job_read_small(serve_path(batch->job, FILES[idx]), text, sizeof(text)) &&
            is_number(str_trim(str_of(text)))) {
            batch->number = str_z(&batch->job->arena, str_trim(str_of(text)));
            return 0;
        }
    }
    return ask_by_name(batch, err);
}

/* ---- start ---- */

/* Where the compute nodes find this program: it is run by path, so the shared folder must allow execution. */
static const char *shared_program(struct batch *batch, struct err *err)
{
    struct arena *arena = &batch->job->arena;
    const char *folder = arena_printf(arena, "%s/bin", batch->job->server->work_folder);
    struct err why = {0};
    char ours[SHA256_HEX_SIZE], theirs[SHA256_HEX_SIZE];
    if (fs_mkdir_p(folder, err) < 0 || serve_sha256("/proc/self/exe", ours, err) < 0) {
        return NULL;
    }
    const char *path = arena_printf(arena, "%s/reperf-node-%s", folder, ours);
    if (serve_sha256(path, theirs, ERR_IGNORED) < 0 || strcmp(ours, theirs) != 0) {
        const char *part = arena_printf(arena, "%s/.reperf-node-%d", folder, (int)getpid());
        struct str program;
        if (fs_read(arena, "/proc/self/exe", PROGRAM_MAX, &program, err) < 0 ||
            job_put(part, program, true, err) < 0) {
            return NULL;
        }
        if (chmod(part, 0700) < 0 || rename(part, path) < 0) {
            (void)!err_set(err, err_code_of_errno(errno), "%s: %s", path, err_errno_text(errno));
            return NULL;
        }
    }
    if (run(batch, (const char *const[]){path, "--version", NULL}, RUNS_LIMIT_NS, &why) < 0) {
        (void)!err_set(
            err, ERR_NODE,
            "%s does not allow execution (%s): name a shared_folder that is not mounted noexec",
            folder, why.msg);
        return NULL;
    }
    return path;
}

/* `batch` is the last: it makes the folder that of a batch job. */
static int write_files(struct batch *batch, const struct node_request *request, struct err *err)
{
    CLEANUP(strbuf) struct strbuf frame = STRBUF(NODE_FRAME_MAX);
    CLEANUP(strbuf) struct strbuf script = STRBUF(SAID_MAX);
    const char *program = shared_program(batch, err);
    const char *log = serve_path(batch->job, "log");
    if (!program) {
        return -1;
    }
    node_request_write(&frame, request);
    mode_t before = umask(077); /* its environment may hold secrets */
    int rc = job_put(serve_path(batch->job, "request"), strbuf_str(&frame), false, err);
    umask(before);
    /* Exists from the start: a job that never runs has an empty log. */
    CLEANUP(fd) int log_fd = rc < 0 ? -1 : open(log, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (rc < 0 || log_fd < 0) {
        return rc < 0
                   ? -1
                   : err_set(err, err_code_of_errno(errno), "%s: %s", log, err_errno_text(errno));
    }
    strbuf_add_z(&script, "#!/bin/sh\nexec ");
    shq_append(&script, str_of(program));
    strbuf_add_z(&script, " batch ");
    shq_append(&script, str_of(batch->job->dir));
    strbuf_add_char(&script, '\n');
    return serve_put_cleanup(batch->job, request, err) < 0
               ? -1
               : job_put(serve_path(batch->job, "batch"), strbuf_str(&script), false, err);
}

/* In a file name Slurm replaces what follows a percent sign. */
static const char *log_option(struct batch *batch, const char *option)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(SAID_MAX);
    for (const char *at = batch->job->dir; *at; at++) {
        strbuf_add_z(&text, *at == '%' ? "%%" : (char[]){*at, '\0'});
    }
    return arena_printf(&batch->job->arena, "%s%s/log", option, text.ptr);
}

/* Sets the job's number, unless sbatch does not say it. */
static int sbatch(struct batch *batch, struct str options, struct err *err)
{
    struct arena *arena = &batch->job->arena;
    const char *argv[OPTIONS_MAX] = {
        "sbatch", "--parsable", arena_printf(arena, "--job-name=%s", batch->name),
        arena_printf(arena, "--comment=%s", batch->job->id),
        arena_printf(arena, "--chdir=%s", batch->job->dir), log_option(batch, "--output="),
        log_option(batch, "--error="),
        "--open-mode=append",          /* a job submitted twice does not truncate the log */
        "--no-requeue", "--exclusive", /* sharing a node would spoil the measurement */
        /* The caller's environment is not part of the run. */
        "--export=HOME,USER,PATH,SLURM_CONF"};
    enum { N_OURS = 11 };
    size_t n = N_OURS;
    struct str line;
    while (n < OPTIONS_MAX - 2 && str_next(&options, '\n', &line) && line.len) {
        argv[n++] = str_z(arena, line);
    }
    argv[n] = serve_path(batch->job, "batch");
    if (run(batch, argv, SUBMIT_LIMIT_NS, err) < 0) {
        return err_wrap(err, "sbatch");
    }
    struct str rest = strbuf_str(&batch->said); /* NUMBER or NUMBER;CLUSTER, between warnings */
    while (!batch->number && str_next(&rest, '\n', &line)) {
        struct str word;
        (void)str_next(&line, ';', &word);
        batch->number = is_number(str_trim(word)) ? str_z(arena, str_trim(word)) : NULL;
    }
    return 0;
}

/* Slurm is asked for the name first: an earlier submitter may have died before it could record the number. It is asked
   afterwards, too: a request whose connection was lost may still be running when this one is repeated. The first number is
   the job; another that waits is cancelled. */
static int submit(struct batch *batch, struct str options, struct err *err)
{
    struct str other;
    if (ask_by_name(batch, err) < 0) {
        return -1;
    }
    if (!batch->number) {
        if (sbatch(batch, options, err) < 0) {
            return -1;
        }
        const char *ours = batch->number;
        if (ask_by_name(batch, err) < 0) {
            return -1;
        }
        batch->number = batch->number ? batch->number : ours;
    }
    if (!batch->number) {
        return err_set(err, ERR_NODE, "sbatch accepted the job, but printed no number");
    }
    while (str_next(&batch->other_numbers, '\n', &other)) {
        const char *number = str_z(&batch->job->arena, str_trim(other));
        if (number[0] && strcmp(number, batch->number) != 0) {
            (void)run(batch, (const char *const[]){"scancel", "--state=PENDING", number, NULL},
                      ASK_LIMIT_NS, ERR_IGNORED);
        }
    }
    return job_put(serve_path(batch->job, "slurm"),
                   str_printf(&batch->job->arena, "%s\n", batch->number), false, err);
}

int slurm_start(struct asked_job *job, const struct node_request *request, struct str options,
                struct strbuf *text)
{
    struct batch batch = batch_of(job);
    struct err err = {0};
    int rc = fs_mkdir_p(job->dir, &err);
    if (rc == 0 && !fs_exists(serve_path(job, "status")) && !fs_exists(serve_path(job, "slurm"))) {
        rc = fs_exists(serve_path(job, "claim")) ? 0 : write_files(&batch, request, &err);
        rc = rc == 0 ? submit(&batch, options, &err) : rc;
    }
    strbuf_release(&batch.said);
    return rc < 0 ? serve_failed(text, "", &err) : 0;
}

/* ---- poll ---- */

/* What its state says. Source: squeue(1), "JOB STATE CODES", Slurm 22.05. Others are the end, and nothing is known of its
   cause. */
static const struct slurm_state {
    const char *name;
    bool is_waiting, is_active;
    enum err_code cause;
} STATES[] = {
    {"PENDING", true, false, ERR_NONE},        {"CONFIGURING", true, false, ERR_NONE},
    {"REQUEUED", true, false, ERR_NONE},       {"REQUEUE_HOLD", true, false, ERR_NONE},
    {"RESIZING", true, false, ERR_NONE},       {"RESV_DEL_HOLD", true, false, ERR_NONE},
    {"SPECIAL_EXIT", true, false, ERR_NONE},   {"STAGE_OUT", true, false, ERR_NONE},
    {"RUNNING", false, true, ERR_NONE},        {"COMPLETING", false, true, ERR_NONE},
    {"SUSPENDED", false, true, ERR_NONE},      {"STOPPED", false, true, ERR_NONE},
    {"SIGNALING", false, true, ERR_NONE},      {"TIMEOUT", false, false, ERR_TIMEOUT},
    {"DEADLINE", false, false, ERR_TIMEOUT},   {"OUT_OF_MEMORY", false, false, ERR_WORKLOAD},
    {"NODE_FAIL", false, false, ERR_NODE},     {"BOOT_FAIL", false, false, ERR_NODE},
    {"PREEMPTED", false, false, ERR_NODE},     {"LAUNCH_FAILED", false, false, ERR_NODE},
    {"RECONFIG_FAIL", false, false, ERR_NODE},
};

/* "STATE REASON". squeue knows ended jobs for some minutes; accounting, if there is any, for longer. */
static int ask_state(struct batch *batch, struct str *ret_state, struct str *ret_reason,
                     struct err *err)
{
    const char *job = arena_printf(&batch->job->arena, "--jobs=%s", batch->number);
    const char *const now[] = {"squeue", "--noheader", "--states=all", job, "--format=%T|%r", NULL};
    const char *const past[] = {
        "sacct", "--noheader", "--allocations", "--parsable2", job, "--format=State,Reason", NULL};
    if (ask(batch, now, err) < 0) {
        return -1;
    }
    struct str line = first_line(strbuf_str(&batch->said));
    if (!line.len && run(batch, past, ASK_LIMIT_NS, ERR_IGNORED) == 0) {
        line = first_line(strbuf_str(&batch->said));
    }
    struct str words = STR_EMPTY;
    (void)str_next(&line, '|', &words); /* "CANCELLED by 0" */
    (void)str_next(&words, ' ', ret_state);
    *ret_state = ret_state->len ? *ret_state : STR_LIT("UNKNOWN");
    *ret_reason = words.len ? words : str_eq_z(line, "None") ? STR_EMPTY : str_trim(line);
    return 0;
}

/* *ret_may_change: its status, or Slurm's word of its end, may still be on the way. Ranks may see a lost node before Slurm
   says so, srun's own status of a job that Slurm ended may be 1, and COMPLETED says nothing: only the status is the program's
   own word. */
static int look(struct batch *batch, struct job_report *report, bool *ret_may_change,
                struct err *err)
{
    const struct slurm_state *row;
    const char *dir = batch->job->dir;
    struct str state, reason;
    bool is_claimed = fs_is_dir(serve_path(batch->job, "claim"));
    bool has_status = job_read_status(dir, &report->exit_status);
    *report = (struct job_report){.state = has_status ? JOB_ENDED : JOB_ABSENT,
                                  .exit_status = report->exit_status};
    *ret_may_change = false;
    if (has_status && report->exit_status == 0) {
        return 0;
    }
    if (find_number(batch, err) < 0 ||
        (batch->number && ask_state(batch, &state, &reason, err) < 0)) {
        return -1;
    }
    if (!batch->number) {
        return 0;
    }
    has_status = job_read_status(dir, &report->exit_status); /* since then */
    row = Z_NAMED(STATES, ARRAY_LEN(STATES), name, state);
    bool is_over = !row || !(row->is_waiting || row->is_active);
    report->state = has_status ? JOB_ENDED : is_over ? JOB_LOST : JOB_RUNNING;
    report->is_waiting = !has_status && row && row->is_waiting;
    report->cause = row ? row->cause : ERR_NONE;
    *ret_may_change = has_status ? row && row->is_active : is_over && is_claimed;
    if (!has_status || report->cause) {
        snprintf(report->why, sizeof(report->why), "Slurm job %s: %.*s%s%.*s%s", batch->number,
                 STR_ARG(state), reason.len ? " (" : "", STR_ARG(reason), reason.len ? ")" : "");
    }
    return 0;
}

int slurm_poll(struct asked_job *job, int64_t wait_ms, struct strbuf *text)
{
    struct batch batch = batch_of(job);
    struct job_report report = {0};
    struct err err = {0};
    bool may_change = false;
    int64_t until_ns = clock_now_ns() + LAG_NS;
    await_status(&batch, wait_ms);
    int rc = look(&batch, &report, &may_change, &err);
    while (rc == 0 && may_change && clock_now_ns() < until_ns) {
        if (!rest(&batch, GAP_MS)) {
            report = (struct job_report){.state = JOB_RUNNING};
            break;
        }
        rc = look(&batch, &report, &may_change, &err);
    }
    strbuf_release(&batch.said);
    if (rc < 0) {
        return serve_failed(text, "", &err);
    }
    node_report_write(text, &report);
    return 0;
}

/* ---- signal ---- */

/* Notes the status that it is to end with. *ret_is_whole: the ranks were killed a while ago, and the job is still there. */
static int put_stop(struct batch *batch, int signal_no, bool *ret_is_whole, struct err *err)
{
    const char *path = serve_path(batch->job, "stop");
    char text[STOP_MAX];
    struct str since = str_of(job_read_small(path, text, sizeof(text)) ? text : ""), word;
    int64_t status = 0, from_s = 0;
    (void)str_next(&since, ' ', &word);
    if (str_to_i64(word, 1, 255, &status, ERR_IGNORED) == 0 && status == 128 + signal_no) {
        *ret_is_whole = signal_no == SIGKILL &&
                        str_to_i64(since, 0, INT64_MAX, &from_s, ERR_IGNORED) == 0 &&
                        time(NULL) - from_s >= ESCALATE_S;
        return 0;
    }
    return job_put(
        path, str_printf(&batch->job->arena, "%d %lld\n", 128 + signal_no, (long long)time(NULL)),
        false, err);
}

/* A signal reaches only the ranks: the batch job then ends their containers and records the outcome. */
static int cancel(struct batch *batch, int signal_no, struct err *err)
{
    struct str state, reason;
    bool is_whole = false;
    if (find_number(batch, err) < 0) {
        return -1;
    }
    if (!batch->number) {
        return 0;
    }
    if ((signal_no == SIGINT || signal_no == SIGKILL || signal_no == SIGTERM) &&
        put_stop(batch, signal_no, &is_whole, err) < 0) {
        return -1;
    }
    if (ask_state(batch, &state, &reason, err) < 0) {
        return -1;
    }
    const struct slurm_state *row = Z_NAMED(STATES, ARRAY_LEN(STATES), name, state);
    if (is_whole || (row && row->is_waiting)) {
        return slurm_scancel(batch->number, err);
    }
    if (row && row->is_active) {
        /* KILL of a job ends its batch step as well, and is held back for KillWait: it goes to the step that srun made. */
        const char *const argv[] = {
            "scancel", arena_printf(&batch->job->arena, "--signal=%d", signal_no),
            arena_printf(&batch->job->arena, signal_no == SIGKILL ? "%s.0" : "%s", batch->number),
            NULL};
        (void)run(batch, argv, ASK_LIMIT_NS, ERR_IGNORED);
    }
    return 0;
}

/* A job that has written its status has no processes left. */
int slurm_signal(struct asked_job *job, int signal_no, struct strbuf *text)
{
    struct batch batch = batch_of(job);
    struct err err = {0};
    int status = 0, rc = 0;
    if (!job_read_status(job->dir, &status)) {
        rc = cancel(&batch, signal_no, &err);
        await_status(&batch, signal_no == SIGKILL ? GAP_MS : 0); /* it is repeated at every tick */
    }
    strbuf_release(&batch.said);
    return rc < 0 ? serve_failed(text, "", &err) : 0;
}

/* ---- what is in the queue ---- */

int serve_batches(struct server *server UNUSED, const struct node_request *request UNUSED,
                  struct strbuf *text)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf said = STRBUF(NODE_TEXT_MAX / 2);
    const char *user = arena_printf(&arena, "--user=%u", (unsigned)getuid());
    const char *const argv[] = {"squeue", "--noheader", user, "--format=%A %T %j", NULL};
    struct str line;
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
