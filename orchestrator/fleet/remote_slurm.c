/* SPDX-License-Identifier: Apache-2.0 */
/* A job's folder, on a file system that the login node and the compute nodes share: batch (the script), slurm (the job's number),
   claim/ (whoever made it runs the job: a job submitted twice runs once; claim/job: its number), log, status ("exit N").
   Source: Slurm 22.05, sbatch(1), squeue(1), scancel(1). */
#include "base/base.h"

#include "fleet/remote_slurm.h"

#include "base/crc32c.h"
#include "fleet/remote_slurm_impl.h"

#define POLL_NS       (1 * NS_PER_S)  /* squeue is not asked more often */
#define SILENCE_NS    (60 * NS_PER_S) /* how long Slurm's controller may not answer */
#define ESCALATE_NS   (15 * NS_PER_S) /* from killing the ranks to killing the job */
#define SIGNAL_GAP_NS (1 * NS_PER_S)
#define BATCH_MAX     (4u << 20)
#define SAID_MAX      4096
#define OPTIONS_MAX   16 /* of our own */
#define EX_UNWRITTEN  73
#define EX_REFUSED    74
#define EX_SILENT     75

/* The jobs of that name, the first of them in id. */
#define ASK_BY_NAME                                                                                \
    "all=$(squeue --noheader --states=all --name=\"$name\" --format=%A 2>&1) || {\n"               \
    "    echo \"$all\"\n"                                                                          \
    "    exit 75\n"                                                                                \
    "}\n"                                                                                          \
    "all=$(echo \"$all\" | sed -n '/^[0-9][0-9]*$/p' | sort -n)\n"                                 \
    "id=$(echo \"$all\" | head -n 1)\n"

/* Of a job that was submitted twice all the same, the one that runs. */
#define READ_ID                                                                                    \
    "for file in \"$dir/claim/job\" \"$dir/slurm\"; do\n"                                          \
    "    [ -n \"$id\" ] || [ ! -s \"$file\" ] || read -r id <\"$file\"\n"                          \
    "done\n"

/* $1: folder, $2: job's name, $3: bytes of the batch script, which is stdin; the rest: options of sbatch. Slurm is asked for the name
   before: who submitted it may have died before it could write the number down. It is asked after, too: a script whose connection was
   lost may still be at it when this one is run again. The first number is the job; another that waits leaves the queue. */
static const char START[] =
    "dir=$1 name=$2 size=$3\n"
    "shift 3\n"
    "[ ! -e \"$dir/status\" ] || exit 0\n"
    "mkdir -p \"$dir\" || exit 73\n"
    "[ ! -s \"$dir/slurm\" ] || exit 0\n"
    "part=$dir/batch.$$\n" ASK_BY_NAME "if [ -z \"$id\" ]; then\n"
    "    cat >\"$part\" || exit 73\n"
    "    if [ \"$(wc -c <\"$part\")\" -ne \"$size\" ]; then\n"
    "        rm -f \"$part\"\n"
    "        echo 'the batch script came incomplete'\n"
    "        exit 74\n"
    "    fi\n"
    "    mv \"$part\" \"$dir/batch\" || exit 73\n"
    "    ours=$(sbatch --parsable --job-name=\"$name\" \"$@\" \"$dir/batch\" "
    "2>\"$dir/sbatch.err\") "
    "|| {\n"
    "        cat \"$dir/sbatch.err\"\n"
    "        exit 74\n"
    "    }\n" ASK_BY_NAME "    id=${id:-${ours%%;*}}\n"
    "fi\n"
    "for other in $all; do\n"
    "    [ \"$other\" = \"$id\" ] || scancel --state=PENDING \"$other\" >/dev/null 2>&1\n"
    "done\n"
    "echo \"$id\" >\"$part\" && mv \"$part\" \"$dir/slurm\" || exit 73\n";

/* $1: folder, $2: name. "absent", "ended STATUS [JOB STATE REASON]", "slurm CLAIMED JOB STATE REASON". */
static const char POLL[] =
    "dir=$1 name=$2 status='' id='' state='' claim=0\n"
    "[ ! -d \"$dir/claim\" ] || claim=1\n" READ_ID
    "if [ -z \"$id\" ] && [ ! -e \"$dir/status\" ]; then\n"
    "    [ -d \"$dir\" ] || { echo absent; exit 0; }\n" ASK_BY_NAME
    "    [ -n \"$id\" ] || { echo absent; exit 0; }\n"
    "fi\n"
    "[ ! -e \"$dir/status\" ] || read -r word status <\"$dir/status\"\n"
    "if [ -n \"$status\" ] && { [ \"$status\" = 0 ] || [ -z \"$id\" ]; }; then\n"
    "    echo \"ended $status\"\n"
    "    exit 0\n"
    "fi\n"
    "state=$(squeue --noheader --states=all --jobs=\"$id\" --format='%T %r' 2>&1) || {\n"
    "    case $state in *\"Invalid job id\"*) state='' ;; *) echo \"$state\"; exit 75 ;; esac\n"
    "}\n"
    "[ -n \"$state\" ] || state=$(sacct --noheader --allocations --parsable2 --jobs=\"$id\" "
    "--format=State,Reason 2>/dev/null | tr '|' ' ' | head -n 1)\n"
    "[ -z \"$status\" ] || { echo \"ended $status $id ${state:-UNKNOWN}\"; exit 0; }\n"
    "[ ! -e \"$dir/status\" ] || { read -r word status <\"$dir/status\"; echo \"ended $status $id "
    "${state:-UNKNOWN}\"; exit 0; }\n"
    "echo \"slurm $claim $id ${state:-UNKNOWN}\"\n";

/* $1: folder, $2: name, $3: signal to the ranks; ALL: the end of the whole job. */
static const char SIGNAL[] =
    "dir=$1 name=$2 signal=$3 id=''\n"
    "[ ! -e \"$dir/status\" ] || exit 0\n"
    "[ -d \"$dir\" ] || exit 0\n" READ_ID
    "[ -n \"$id\" ] || id=$(squeue --noheader --name=\"$name\" --format=%A 2>/dev/null | head -n "
    "1)\n"
    "[ -n \"$id\" ] || exit 0\n"
    "case $signal in\n"
    "ALL) echo 137 >\"$dir/stop\" ;;\n"
    "2 | 9 | 15) echo $((128 + signal)) >\"$dir/stop\" ;;\n"
    "esac\n"
    "state=$(squeue --noheader --jobs=\"$id\" --format=%T 2>/dev/null)\n"
    "case $state in\n"
    "'') exit 0 ;;\n"
    "PENDING | REQUEUED | REQUEUE_HOLD | SPECIAL_EXIT | RESV_DEL_HOLD) scancel \"$id\" ;;\n"
    "*)\n"
    "    if [ \"$signal\" = ALL ]; then\n"
    "        scancel --full --signal=KILL \"$id\"\n"
    "        scancel \"$id\"\n"
    "    else\n"
    "        scancel --signal=\"$signal\" \"$id\"\n"
    "    fi\n"
    "    ;;\n"
    "esac 2>&1\n"
    "exit 0\n";

/* After `dir=...`, run() and cleanup(). srun may say 0 for ranks that were killed with their job: what was told to end has not ended
   well, unless it says itself how it ended. A controller that died may begin a job that was taken out of its queue. */
static const char BATCH[] =
    "mkdir \"$dir/claim\" 2>/dev/null || exit 0\n"
    "echo \"$SLURM_JOB_ID\" >\"$dir/claim/job\"\n"
    "if [ -s \"$dir/stop\" ]; then\n"
    "    read -r rc <\"$dir/stop\"\n"
    "    echo \"exit $rc\" >\"$dir/status.part\" && mv \"$dir/status.part\" \"$dir/status\"\n"
    "    exit $rc\n"
    "fi\n"
    "child='' caught=0 ever=0\n"
    "trap 'caught=1 ever=1; [ -z \"$child\" ] || kill -TERM \"$child\"' TERM INT HUP\n"
    "run </dev/null &\n"
    "child=$!\n"
    "while :; do\n"
    "    caught=0\n"
    "    wait \"$child\"\n"
    "    rc=$?\n"
    "    [ $caught = 1 ] || break\n"
    "done\n"
    "[ $rc != 0 ] || [ ! -s \"$dir/stop\" ] || read -r rc <\"$dir/stop\"\n"
    "[ $rc != 0 ] || [ $ever = 0 ] || rc=143\n"
    "cleanup >/dev/null 2>&1 </dev/null\n"
    "sync \"$dir/log\"\n"
    "echo \"exit $rc\" >\"$dir/status.part\" && sync \"$dir/status.part\" && mv "
    "\"$dir/status.part\" \"$dir/status\"\n"
    "exit $rc\n";

struct slurm {
    struct remote remote; /* first: a struct remote * is this */
    struct loop *loop;    /* borrowed */
    struct remote *via;   /* owned */
    struct arena arena;   /* of the options */
    const char *folder;   /* NULL: via's work folder, not asked for yet */
    const char *const *extra;
    bool is_busy; /* an exec of ours is under way */
    struct strbuf said;
    struct strbuf input; /* of that exec */
    int64_t silent_ns;   /* since when the controller does not answer; 0: it does */
    /* What is known of the job that was asked for last. */
    char id[JOB_ID_MAX];
    struct job_report report;
    int64_t report_ns; /* 0: nothing yet */
    int64_t gone_ns;   /* since when Slurm says that it is over and there is no status */
    int64_t killed_ns; /* first KILL */
    int64_t signal_ns; /* last one */
};

/* ---- scripts on the login node ---- */

/* One script, waited for. Output in slurm->said. All of ours may be repeated, so that a connection lost in their midst is had again. */
static enum step ask(struct slurm *slurm, const char *script, const char *const *args,
                     int *ret_exit_status, struct err *err)
{
    struct remote_exec exec = {
        .script = script, .args = args, .output = &slurm->said, .is_repeatable = true};
    if (!slurm->is_busy) {
        strbuf_clear(&slurm->said);
        slurm->is_busy = true;
    }
    exec.input = strbuf_str(&slurm->input);
    enum step step = slurm->via->ops->exec(slurm->via, &exec, ret_exit_status, err);
    if (step != STEP_AGAIN) {
        slurm->is_busy = false;
        strbuf_clear(&slurm->input);
    }
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

/* The controller may be restarted: asked again for a while. */
static enum step silent(struct slurm *slurm, struct err *err)
{
    int64_t now_ns = loop_now_ns(slurm->loop);
    if (!slurm->silent_ns) {
        slurm->silent_ns = now_ns;
    }
    if (now_ns - slurm->silent_ns < SILENCE_NS) {
        return STEP_AGAIN;
    }
    struct str said = first_line(strbuf_str(&slurm->said));
    return step_fail(err_set(err, ERR_NODE, "Slurm does not answer: %.*s", STR_ARG(said)));
}

static enum step job_folder(struct slurm *slurm, struct arena *arena, const char *id,
                            const char **ret_folder, struct err *err)
{
    if (!slurm->folder) {
        const char *base;
        enum step step = slurm->via->ops->work_folder(slurm->via, &base, err);
        if (step != STEP_DONE) {
            return step;
        }
        slurm->folder = arena_printf(&slurm->arena, "%s", base);
    }
    *ret_folder = arena_printf(arena, "%s/jobs/%s", slurm->folder, id);
    return STEP_DONE;
}

/* Unique, and short enough for squeue: the id itself is the comment. */
static const char *job_name(struct arena *arena, const char *id)
{
    struct str rest = str_of(id);
    struct str run = STR_EMPTY;
    (void)str_next(&rest, '/', &run);
    return arena_printf(arena, "reperf-%.*s-%08x", STR_ARG(run), crc32c(0, id, strlen(id)));
}

/* ---- start ---- */

static void add_words(struct strbuf *out, const char *const *words)
{
    for (size_t idx = 0; words && words[idx]; idx++) {
        strbuf_add_char(out, ' ');
        shq_append(out, str_of(words[idx]));
    }
}

static void write_batch(struct strbuf *out, const struct remote_job *job, const char *folder)
{
    strbuf_add_z(out, "#!/bin/sh\ndir=");
    shq_append(out, str_of(folder));
    strbuf_add_char(out, '\n');
    for (size_t idx = 0; job->env && job->env[idx]; idx++) {
        struct str value = str_of(job->env[idx]);
        struct str name = STR_EMPTY;
        (void)str_next(&value, '=', &name);
        strbuf_printf(out, "export %.*s=", STR_ARG(name));
        shq_append(out, value);
        strbuf_add_char(out, '\n');
    }
    /* exec: the child is the program itself, and gets the signals that are passed on. */
    strbuf_add_z(out, "run() {\n    exec");
    add_words(out, job->argv);
    strbuf_add_z(out, "\n}\ncleanup() {\n    :");
    if (job->cleanup) {
        strbuf_add_z(out, "\n    srun --overlap --mpi=none --ntasks-per-node=1 --export=ALL");
        add_words(out, job->cleanup);
    }
    strbuf_add_z(out, "\n}\n");
    strbuf_add_z(out, BATCH);
}

static const char *number(struct arena *arena, const char *before, int64_t value)
{
    return arena_printf(arena, "%s%lld", before, (long long)value);
}

/* In a file name Slurm replaces what follows a percent sign. */
static const char *log_option(struct arena *arena, const char *option, const char *folder)
{
    CLEANUP(strbuf) struct strbuf text;
    strbuf_init(&text, SAID_MAX);
    for (const char *at = folder; *at; at++) {
        strbuf_add_z(&text, *at == '%' ? "%%" : (char[]){*at, '\0'});
    }
    return arena_printf(arena, "%s%s/log", option, text.ptr);
}

static const char **sbatch_options(const struct slurm *slurm, struct arena *arena,
                                   const struct remote_job *job, const char *folder)
{
    const struct remote_batch *batch = job->batch;
    size_t n_extra = 0;
    while (slurm->extra && slurm->extra[n_extra]) {
        n_extra++;
    }
    const char **args = arena_array(arena, const char *, OPTIONS_MAX + n_extra + 1);
    size_t n = 0;
    args[n++] = folder;
    args[n++] = job_name(arena, job->id);
    args[n++] = number(arena, "", (int64_t)slurm->input.len);
    args[n++] = arena_printf(arena, "--comment=%s", job->id);
    args[n++] = arena_printf(arena, "--chdir=%s", folder);
    args[n++] = log_option(arena, "--output=", folder);
    args[n++] = log_option(arena, "--error=", folder);
    args[n++] = "--no-requeue";
    args[n++] = "--exclusive"; /* what shares a node with others is no measurement */
    /* What the caller's shell has set is no part of the run. */
    args[n++] = "--export=HOME,USER,PATH,SLURM_CONF";
    if (batch) {
        args[n++] = number(arena, "--nodes=", batch->n_nodes);
        args[n++] = number(arena, "--ntasks-per-node=", batch->tasks_per_node);
        if (batch->gpus_per_node) {
            args[n++] = number(arena, "--gpus-per-node=", batch->gpus_per_node);
        }
        if (batch->limit_s) {
            args[n++] = number(arena, "--time=", (batch->limit_s + 59) / 60);
        }
        if (batch->nodelist) {
            args[n++] = arena_printf(arena, "--nodelist=%s", batch->nodelist);
        }
    }
    ASSERT(n <= OPTIONS_MAX);
    for (size_t idx = 0; idx < n_extra; idx++) {
        args[n++] = slurm->extra[idx];
    }
    return args;
}

static enum step slurm_start(struct remote *remote, const struct remote_job *job, struct err *err)
{
    struct slurm *slurm = (struct slurm *)remote;
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *folder;
    int status = -1;
    if (strlen(job->id) >= JOB_ID_MAX) {
        return step_fail(err_set(err, ERR_INTERNAL, "job id longer than %d bytes", JOB_ID_MAX - 1));
    }
    enum step step = job_folder(slurm, &arena, job->id, &folder, err);
    if (step != STEP_DONE) {
        return step;
    }
    forget_answers(slurm, job->id);
    if (!slurm->is_busy) {
        strbuf_clear(&slurm->input);
        write_batch(&slurm->input, job, folder);
        if (slurm->input.is_full) {
            return step_fail(
                err_set(err, ERR_INTERNAL, "a batch script of more than %u bytes", BATCH_MAX));
        }
    }
    step = ask(slurm, START, sbatch_options(slurm, &arena, job, folder), &status, err);
    if (step != STEP_DONE) {
        return step;
    }
    slurm->report_ns = 0;
    if (status == EX_SILENT) {
        return silent(slurm, err);
    }
    slurm->silent_ns = 0;
    struct str said = first_line(strbuf_str(&slurm->said));
    if (status == EX_UNWRITTEN) {
        return step_fail(err_set(err, ERR_DISK, "%s takes no files: %.*s", folder, STR_ARG(said)));
    }
    return status ? step_fail(err_set(err, ERR_NODE, "sbatch: %.*s", STR_ARG(said))) : STEP_DONE;
}

/* ---- poll ---- */

static enum step slurm_poll(struct remote *remote, const char *id, struct job_report *ret_report,
                            struct err *err)
{
    struct slurm *slurm = (struct slurm *)remote;
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *folder;
    struct job_report report = {.state = JOB_ABSENT};
    int status = -1;
    int64_t now_ns = loop_now_ns(slurm->loop);
    forget_answers(slurm, id);
    if (!slurm->is_busy && slurm->report_ns && now_ns - slurm->report_ns < POLL_NS) {
        *ret_report = slurm->report;
        return STEP_DONE;
    }
    enum step step = job_folder(slurm, &arena, id, &folder, err);
    if (step != STEP_DONE) {
        return step;
    }
    step = ask(slurm, POLL, (const char *[]){folder, job_name(&arena, id), NULL}, &status, err);
    if (step != STEP_DONE) {
        return step;
    }
    if (status) {
        return silent(slurm, err);
    }
    slurm->silent_ns = 0;
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
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *folder;
    int status = -1;
    int64_t now_ns = loop_now_ns(slurm->loop);
    bool is_kill = signal_no == SIGKILL;
    forget_answers(slurm, id);
    /* Of a job that has written its status nothing is left; and a KILL is said again at every tick of the caller's. */
    if (!slurm->is_busy &&
        ((slurm->report_ns && slurm->report.state == JOB_ENDED) ||
         (is_kill && slurm->killed_ns && now_ns - slurm->signal_ns < SIGNAL_GAP_NS))) {
        return STEP_DONE;
    }
    enum step step = job_folder(slurm, &arena, id, &folder, err);
    if (step != STEP_DONE) {
        return step;
    }
    /* First the ranks alone: the batch script then ends their containers and says how it went. */
    bool is_all = is_kill && slurm->killed_ns && now_ns - slurm->killed_ns >= ESCALATE_NS;
    const char *name = is_all ? "ALL" : number(&arena, "", signal_no);
    step = ask(slurm, SIGNAL, (const char *[]){folder, job_name(&arena, id), name, NULL}, &status,
               err);
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

static enum step slurm_read_log(struct remote *remote, const char *id, uint64_t offset, char *dst,
                                size_t size, size_t *ret_len, struct err *err)
{
    static const char SCRIPT[] =
        "[ ! -e \"$1/log\" ] || tail -c \"+$2\" \"$1/log\" 2>/dev/null | head -c \"$3\"";
    struct slurm *slurm = (struct slurm *)remote;
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *folder;
    int status = -1;
    enum step step = job_folder(slurm, &arena, id, &folder, err);
    if (step != STEP_DONE) {
        return step;
    }
    size = size < REMOTE_OUTPUT_DEFAULT / 2 ? size : REMOTE_OUTPUT_DEFAULT / 2;
    const char *const args[] = {folder, number(&arena, "", (int64_t)offset + 1),
                                number(&arena, "", (int64_t)size), NULL};
    step = ask(slurm, SCRIPT, args, &status, err);
    if (step != STEP_DONE) {
        return step;
    }
    if (status || slurm->said.len > size) {
        return step_fail(
            err_set(err, ERR_NODE, "%s/log cannot be read (status %d)", folder, status));
    }
    memcpy(dst, slurm->said.ptr, slurm->said.len);
    *ret_len = slurm->said.len;
    return STEP_DONE;
}

static enum step slurm_log_digest(struct remote *remote, const char *id, char *ret_hex,
                                  struct err *err)
{
    /* A log that is not there (any more) is an empty one. */
    static const char SCRIPT[] =
        "f=$1/log; [ -e \"$f\" ] || f=/dev/null; sha256sum <\"$f\" 2>/dev/null";
    struct slurm *slurm = (struct slurm *)remote;
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *folder;
    int status = -1;
    enum step step = job_folder(slurm, &arena, id, &folder, err);
    if (step != STEP_DONE) {
        return step;
    }
    step = ask(slurm, SCRIPT, (const char *[]){folder, NULL}, &status, err);
    if (step != STEP_DONE) {
        return step;
    }
    struct str line = first_line(strbuf_str(&slurm->said));
    bool has_digest = !status && line.len >= 64;
    snprintf(ret_hex, 65, "%.*s", has_digest ? 64 : 0, has_digest ? line.ptr : "");
    return STEP_DONE;
}

static enum step slurm_forget(struct remote *remote, const char *id, struct err *err)
{
    struct slurm *slurm = (struct slurm *)remote;
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *folder;
    int status = -1;
    enum step step = job_folder(slurm, &arena, id, &folder, err);
    if (step != STEP_DONE) {
        return step;
    }
    step = ask(slurm, "rm -rf \"$1\"", (const char *[]){folder, NULL}, &status, err);
    if (step == STEP_DONE && status) {
        struct str said = first_line(strbuf_str(&slurm->said));
        return step_fail(err_set(err, ERR_NODE, "remove %s: %.*s", folder, STR_ARG(said)));
    }
    slurm->report_ns = 0;
    return step;
}

static enum step slurm_exec(struct remote *remote, const struct remote_exec *exec,
                            int *ret_exit_status, struct err *err)
{
    struct slurm *slurm = (struct slurm *)remote;
    return slurm->via->ops->exec(slurm->via, exec, ret_exit_status, err);
}

static enum step slurm_work_folder(struct remote *remote, const char **ret_path, struct err *err)
{
    struct slurm *slurm = (struct slurm *)remote;
    return slurm->via->ops->work_folder(slurm->via, ret_path, err);
}

static enum step slurm_program(struct remote *remote, const char **ret_path, struct err *err)
{
    struct slurm *slurm = (struct slurm *)remote;
    return slurm->via->ops->program(slurm->via, ret_path, err);
}

static void slurm_abort(struct remote *remote)
{
    struct slurm *slurm = (struct slurm *)remote;
    slurm->via->ops->abort(slurm->via);
    slurm->is_busy = false;
    strbuf_clear(&slurm->input);
}

static void slurm_free(struct remote *remote)
{
    struct slurm *slurm = (struct slurm *)remote;
    remote_free(slurm->via);
    strbuf_release(&slurm->said);
    strbuf_release(&slurm->input);
    arena_release(&slurm->arena);
    free(slurm);
}

static const struct remote_ops SLURM_OPS = {
    .exec = slurm_exec,
    .start = slurm_start,
    .poll = slurm_poll,
    .read_log = slurm_read_log,
    .log_digest = slurm_log_digest,
    .signal = slurm_signal,
    .forget = slurm_forget,
    .work_folder = slurm_work_folder,
    .program = slurm_program,
    .abort = slurm_abort,
    .free = slurm_free,
};

struct remote *remote_slurm_new(struct loop *loop, struct remote *via,
                                const struct remote_slurm_opts *opts)
{
    struct slurm *slurm = xcalloc(1, sizeof(*slurm));
    size_t n = 0;
    while (opts->extra && opts->extra[n]) {
        n++;
    }
    const char **extra = arena_array(&slurm->arena, const char *, n + 1);
    for (size_t idx = 0; idx < n; idx++) {
        extra[idx] = arena_printf(&slurm->arena, "%s", opts->extra[idx]);
    }
    slurm->remote.ops = &SLURM_OPS;
    slurm->loop = loop;
    slurm->via = via;
    slurm->extra = extra;
    slurm->folder = opts->folder ? arena_printf(&slurm->arena, "%s", opts->folder) : NULL;
    strbuf_init(&slurm->said, REMOTE_OUTPUT_DEFAULT);
    strbuf_init(&slurm->input, BATCH_MAX);
    return &slurm->remote;
}
