/* SPDX-License-Identifier: Apache-2.0 */
/* reperf-node on the login node talks to Slurm and keeps the job's folder (node/slurm.c); the batch job runs it, too. */
#include "base/base.h"

#include "fleet/remote_slurm.h"

#include "fleet/remote_node_impl.h"

#define POLL_NS       (1 * NS_PER_S)  /* squeue is not asked more often */
#define SILENCE_NS    (60 * NS_PER_S) /* how long Slurm's controller may not answer */
#define ESCALATE_NS   (15 * NS_PER_S) /* from killing the ranks to killing the job */
#define SIGNAL_GAP_NS (1 * NS_PER_S)
#define SLURM_SPAN_NS (150 * NS_PER_S) /* Slurm's programs have less each */
#define SAID_MAX      4096
#define OPTIONS_MAX   8 /* of our own */
#define LAG_NS                                                                                     \
    (15 * NS_PER_S) /* for a status to be seen through a network file system, or an end by Slurm */

/* The containers of all nodes. */
#define CLEANUP_BY_SRUN "srun --overlap --mpi=none --ntasks-per-node=1 --export=ALL "

struct slurm {
    struct remote remote; /* first: a struct remote * is this */
    struct loop *loop;    /* borrowed */
    struct remote *via;   /* owned */
    bool is_busy;         /* a request of ours is under way */
    struct strbuf said;
    int64_t silent_ns; /* since when the controller has not answered; 0: it does */
    /* What is known of the job that was asked for last. */
    char id[JOB_ID_MAX];
    struct job_report report;
    int64_t report_ns; /* 0: nothing yet */
    int64_t gone_ns;   /* since when Slurm says that it is over and there is no status */
    int64_t killed_ns; /* first KILL */
    int64_t signal_ns; /* last one */
};

/* ---- requests to the login node ---- */

/* Its answer in slurm->said. */
static enum step ask(struct slurm *slurm, enum node_op op, const struct str *fields,
                     size_t n_fields, struct err *err)
{
    const struct remote_ask ask = {.what = "Slurm",
                                   .op = op,
                                   .fields = fields,
                                   .n_fields = n_fields,
                                   .output = &slurm->said,
                                   .deadline_ns = SLURM_SPAN_NS};
    if (!slurm->is_busy) {
        strbuf_clear(&slurm->said);
        slurm->is_busy = true;
    }
    enum step step = slurm->via->ops->ask(slurm->via, &ask, err);
    slurm->is_busy = step == STEP_AGAIN;
    return step;
}

static void forget_answers(struct slurm *slurm, const char *id)
{
    if (strcmp(slurm->id, id) != 0) {
        snprintf(slurm->id, sizeof(slurm->id), "%s", id);
        slurm->report = (struct job_report){.state = JOB_ABSENT};
        slurm->report_ns = slurm->gone_ns = slurm->killed_ns = slurm->signal_ns = 0;
    }
}

static struct str first_line(struct str text)
{
    struct str line = STR_EMPTY;
    text = str_trim(text);
    return str_next(&text, '\n', &line) ? str_trim(line) : STR_EMPTY;
}

/* "silent WHY": the controller may just be restarting, and is asked again for a while. *ret_is_silent: with STEP_AGAIN, or what it
   failed with. */
static enum step hear(struct slurm *slurm, bool *ret_is_silent, struct err *err)
{
    struct str said = first_line(strbuf_str(&slurm->said));
    int64_t now_ns = loop_now_ns(slurm->loop);
    *ret_is_silent = str_starts(said, STR_LIT("silent "));
    if (!*ret_is_silent) {
        slurm->silent_ns = 0;
        return STEP_DONE;
    }
    slurm->silent_ns = slurm->silent_ns ? slurm->silent_ns : now_ns;
    return now_ns - slurm->silent_ns < SILENCE_NS
               ? STEP_AGAIN
               : step_fail(err_set(err, ERR_NODE, "Slurm does not answer: %.*s",
                                   STR_ARG(str_sub(said, strlen("silent "), said.len))));
}

/* ---- start ---- */

static const char *number(struct arena *arena, const char *before, int64_t value)
{
    return arena_printf(arena, "%s%lld", before, (long long)value);
}

struct options {
    struct str *items;
    size_t n;
};

static void add(struct options *options, const char *word)
{
    options->items[options->n++] = str_of(word);
}

static void add_options(struct arena *arena, const struct remote_batch *batch, struct options *list)
{
    if (batch) {
        add(list, number(arena, "--nodes=", batch->n_nodes));
        add(list, number(arena, "--ntasks-per-node=", batch->tasks_per_node));
        if (batch->gpus_per_node) {
            add(list, number(arena, "--gpus-per-node=", batch->gpus_per_node));
        }
        if (batch->limit_s) {
            add(list, number(arena, "--time=", (batch->limit_s + 59) / 60));
        }
        if (batch->nodelist) {
            add(list, arena_printf(arena, "--nodelist=%s", batch->nodelist));
        }
    }
}

/* What the node is asked: the id, the options of sbatch, the job. */
static struct str *submit_fields(struct arena *arena, const struct remote_job *job, size_t *ret_n)
{
    enum { BEFORE = 2 };
    struct str words[OPTIONS_MAX];
    struct options options = {.items = words};
    add_options(arena, job->batch, &options);
    ASSERT(options.n <= OPTIONS_MAX);
    struct str *fields = remote_job_fields(arena, job, CLEANUP_BY_SRUN, BEFORE + options.n, ret_n);
    fields[0] = str_of(job->id);
    fields[1] = str_of(number(arena, "", (int64_t)options.n));
    memcpy(fields + BEFORE, words, options.n * sizeof(*words));
    return fields;
}

static enum step slurm_start(struct remote *remote, const struct remote_job *job, struct err *err)
{
    struct slurm *slurm = (struct slurm *)remote;
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    bool is_silent;
    size_t n;
    if (strlen(job->id) >= JOB_ID_MAX) {
        return step_fail(err_set(err, ERR_INTERNAL, "job id longer than %d bytes", JOB_ID_MAX - 1));
    }
    forget_answers(slurm, job->id);
    const struct str *fields = submit_fields(&arena, job, &n);
    enum step step = ask(slurm, NODE_SUBMIT, fields, n, err);
    slurm->report_ns = 0;
    return step == STEP_DONE ? hear(slurm, &is_silent, err) : step;
}

/* ---- what the login node answers about a job. Source of the states: squeue(1), "JOB STATE CODES", Slurm 22.05. ---- */

/* States that are not the end. */
static bool is_queued(struct str state)
{
    static const char *const NAMES[] = {"PENDING",  "CONFIGURING",   "REQUEUED",  "REQUEUE_HOLD",
                                        "RESIZING", "RESV_DEL_HOLD", "STAGE_OUT", NULL};
    return str_eq_any(state, NAMES);
}

static bool is_active(struct str state)
{
    static const char *const NAMES[] = {"RUNNING", "COMPLETING", "SUSPENDED",
                                        "STOPPED", "SIGNALING",  NULL};
    return str_eq_any(state, NAMES);
}

static enum err_code cause_of(struct str state)
{
    static const char *const NODE[] = {"NODE_FAIL",     "BOOT_FAIL",     "PREEMPTED",
                                       "LAUNCH_FAILED", "RECONFIG_FAIL", NULL};
    if (str_eq_z(state, "TIMEOUT") || str_eq_z(state, "DEADLINE")) {
        return ERR_TIMEOUT;
    }
    if (str_eq_z(state, "OUT_OF_MEMORY")) {
        return ERR_WORKLOAD;
    }
    return str_eq_any(state, NODE) ? ERR_NODE : ERR_NONE;
}

static void say_why(struct job_report *report, struct str id, struct str state, struct str reason)
{
    bool has_reason = reason.len && !str_eq_z(reason, "None");
    snprintf(report->why, sizeof(report->why), "Slurm job %.*s: %.*s%s%.*s%s", STR_ARG(id),
             STR_ARG(state), has_reason ? " (" : "", has_reason ? (int)reason.len : 0,
             has_reason ? reason.ptr : "", has_reason ? ")" : "");
}

/* Since when. The first time: now. */
static bool has_lasted(int64_t now_ns, int64_t *since_ns)
{
    *since_ns = *since_ns ? *since_ns : now_ns;
    return now_ns - *since_ns >= LAG_NS;
}

/* "ended STATUS [JOB STATE REASON]", with the latter where it did not end well: ranks may see a lost node before Slurm says so, and
   srun's own status of a job that Slurm ended may be 1. */
static int read_ended(struct str words, int64_t now_ns, int64_t *gone_ns, struct job_report *report,
                      struct err *err)
{
    struct str status = STR_EMPTY;
    struct str id = STR_EMPTY;
    struct str state = STR_EMPTY;
    int64_t value = 0;
    (void)str_next(&words, ' ', &status);
    if (str_to_i64(status, 0, 255, &value, err) < 0) {
        return err_wrap(err, "status of a job");
    }
    *report = (struct job_report){.state = JOB_ENDED, .exit_status = (int)value};
    if (str_next(&words, ' ', &id) && str_next(&words, ' ', &state)) {
        report->cause = cause_of(state);
        if (is_active(state) && !has_lasted(now_ns, gone_ns)) {
            *report = (struct job_report){.state = JOB_RUNNING};
        }
        if (report->cause || report->state == JOB_RUNNING) {
            say_why(report, id, state, str_trim(words));
        }
    }
    return 0;
}

/* "slurm CLAIMED JOB STATE REASON": without a status. */
static void read_state(struct str words, int64_t now_ns, int64_t *gone_ns,
                       struct job_report *report)
{
    struct str claimed = STR_EMPTY;
    struct str id = STR_EMPTY;
    struct str state = STR_EMPTY;
    (void)(str_next(&words, ' ', &claimed) && str_next(&words, ' ', &id) &&
           str_next(&words, ' ', &state));
    *report = (struct job_report){.state = JOB_RUNNING, .is_waiting = is_queued(state)};
    say_why(report, id, state, str_trim(words));
    if (report->is_waiting || is_active(state)) {
        *gone_ns = 0;
        return;
    }
    /* COMPLETED says nothing here: only the status is the program's own word. */
    if (has_lasted(now_ns, gone_ns) || str_eq_z(claimed, "0")) {
        report->state = JOB_LOST;
        report->cause = cause_of(state);
    }
}

int slurm_read_report(struct str line, int64_t now_ns, int64_t *gone_ns,
                      struct job_report *ret_report, struct err *err)
{
    struct str kind = STR_EMPTY;
    (void)str_next(&line, ' ', &kind);
    if (str_eq_z(kind, "absent")) {
        *ret_report = (struct job_report){.state = JOB_ABSENT};
        return 0;
    }
    if (str_eq_z(kind, "ended")) {
        return read_ended(line, now_ns, gone_ns, ret_report, err);
    }
    if (str_eq_z(kind, "slurm")) {
        read_state(line, now_ns, gone_ns, ret_report);
        return 0;
    }
    return err_set(err, ERR_NODE, "the login node's shell said \"%.*s\"", STR_ARG(kind));
}

/* ---- poll ---- */

static enum step slurm_poll(struct remote *remote, const char *id, struct job_report *ret_report,
                            struct err *err)
{
    struct slurm *slurm = (struct slurm *)remote;
    struct job_report report = {.state = JOB_ABSENT};
    bool is_silent;
    int64_t now_ns = loop_now_ns(slurm->loop);
    forget_answers(slurm, id);
    if (!slurm->is_busy && slurm->report_ns && now_ns - slurm->report_ns < POLL_NS) {
        *ret_report = slurm->report;
        return STEP_DONE;
    }
    const struct str field = str_of(id);
    enum step step = ask(slurm, NODE_QUEUE, &field, 1, err);
    if (step == STEP_DONE) {
        step = hear(slurm, &is_silent, err);
    }
    if (step != STEP_DONE) {
        return step;
    }
    if (slurm_read_report(first_line(strbuf_str(&slurm->said)), loop_now_ns(slurm->loop),
                          &slurm->gone_ns, &report, err) < 0) {
        return STEP_FAIL;
    }
    slurm->report = *ret_report = report;
    slurm->report_ns = loop_now_ns(slurm->loop);
    return STEP_DONE;
}

/* ---- signal ---- */

static enum step slurm_signal(struct remote *remote, const char *id, int signal_no, struct err *err)
{
    struct slurm *slurm = (struct slurm *)remote;
    int64_t now_ns = loop_now_ns(slurm->loop);
    char number[16];
    bool is_kill = signal_no == SIGKILL;
    forget_answers(slurm, id);
    /* A job that has written its status has no processes left; and the caller repeats KILL at every tick. */
    if (!slurm->is_busy &&
        ((slurm->report_ns && slurm->report.state == JOB_ENDED) ||
         (is_kill && slurm->killed_ns && now_ns - slurm->signal_ns < SIGNAL_GAP_NS))) {
        return STEP_DONE;
    }
    /* First only the ranks: the batch job then ends their containers and records the outcome. */
    bool is_whole = is_kill && slurm->killed_ns && now_ns - slurm->killed_ns >= ESCALATE_NS;
    snprintf(number, sizeof(number), "%d", signal_no);
    const struct str fields[] = {str_of(id), str_of(number),
                                 is_whole ? STR_LIT("1") : STR_LIT("0")};
    enum step step = ask(slurm, NODE_CANCEL, fields, ARRAY_LEN(fields), err);
    if (step != STEP_DONE) {
        return step;
    }
    slurm->signal_ns = loop_now_ns(slurm->loop);
    if (is_kill && !slurm->killed_ns) {
        slurm->killed_ns = slurm->signal_ns;
    }
    slurm->report_ns = 0;
    return STEP_DONE;
}

/* ---- the rest ---- */

static enum step slurm_read_log(struct remote *remote, const char *id, struct log_part *part,
                                struct err *err)
{
    struct remote *via = ((struct slurm *)remote)->via;
    return via->ops->read_log(via, id, part, err);
}

static enum step slurm_log_digest(struct remote *remote, const char *id, char *ret_hex,
                                  struct err *err)
{
    struct remote *via = ((struct slurm *)remote)->via;
    return via->ops->log_digest(via, id, ret_hex, err);
}

static enum step slurm_forget(struct remote *remote, const char *id, struct err *err)
{
    struct slurm *slurm = (struct slurm *)remote;
    slurm->report_ns = 0;
    return slurm->via->ops->forget(slurm->via, id, err);
}

static void slurm_abort(struct remote *remote)
{
    struct slurm *slurm = (struct slurm *)remote;
    slurm->via->ops->abort(slurm->via);
    slurm->is_busy = false;
}

static void slurm_free(struct remote *remote)
{
    struct slurm *slurm = (struct slurm *)remote;
    remote_free(slurm->via);
    strbuf_release(&slurm->said);
    free(slurm);
}

static const struct remote_ops SLURM_OPS = {
    .start = slurm_start,
    .poll = slurm_poll,
    .read_log = slurm_read_log,
    .log_digest = slurm_log_digest,
    .signal = slurm_signal,
    .forget = slurm_forget,
    .abort = slurm_abort,
    .free = slurm_free,
};

struct remote *remote_slurm_new(struct loop *loop, struct remote *via)
{
    struct slurm *slurm = xcalloc(1, sizeof(*slurm));
    slurm->remote.ops = &SLURM_OPS;
    slurm->loop = loop;
    slurm->via = via;
    strbuf_init(&slurm->said, SAID_MAX);
    return &slurm->remote;
}
