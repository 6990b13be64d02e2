/* SPDX-License-Identifier: Apache-2.0 */
/* One operation on a job of Slurm, as the runner does it: slurm_job VERB NODES RANKS_PER_NODE FOLDER [NAME=VALUE...] -- ARGV...
   VERB: start, poll ("STATE STATUS WAITING CAUSE WHY"), wait (until it is over; then as poll), log, digest, forget, or a signal's number.
   LAUNCH_LOGIN=PORT: through a login node on that port of 127.0.0.1, by $REPERF_SSH_CONFIG. */
#include "tests/servers/launch_fixture.h"

#include "fleet/remote.h"
#include "tests/servers/built_node.h"

#define TICK_NS (20 * NS_PER_MS)

struct ask {
    struct loop loop;
    struct remote *remote;
    const struct remote_job *job;
};

static void fail(const struct err *err)
{
    fprintf(stderr, "slurm_job: %s\n", err->msg);
    exit(err_exit_status(err->code));
}

/* True while the step has to be called again. */
static bool goes_on(struct ask *ask, enum step step, struct err *err)
{
    if (step == STEP_FAIL || (step == STEP_AGAIN && loop_once(&ask->loop, TICK_NS, err) < 0)) {
        fail(err);
    }
    return step == STEP_AGAIN;
}

static struct job_report poll_job(struct ask *ask)
{
    struct job_report report;
    struct err err = {0};
    while (goes_on(ask, ask->remote->ops->poll(ask->remote, ask->job->id, &report, &err), &err)) {
    }
    return report;
}

static void print_report(const struct job_report *report)
{
    printf("%s %d %s %s %s\n", NODE_JOB_STATES[report->state], report->exit_status,
           report->is_waiting ? "waiting" : "-",
           report->cause ? err_code_name(report->cause) : "none", report->why);
}

static void print_log(struct ask *ask)
{
    char chunk[1000]; /* small, so that there are several */
    struct log_part part = {.dst = chunk, .size = sizeof(chunk), .len = 1};
    while (part.len > 0) {
        struct err err = {0};
        while (goes_on(ask, ask->remote->ops->read_log(ask->remote, ask->job->id, &part, &err),
                       &err)) {
        }
        fwrite(chunk, 1, part.len, stdout);
        part.offset += part.len;
    }
}

static void do_verb(struct ask *ask, const char *verb)
{
    const struct remote_ops *ops = ask->remote->ops;
    struct err err = {0};
    char hex[65];
    if (strcmp(verb, "start") == 0) {
        while (goes_on(ask, ops->start(ask->remote, ask->job, &err), &err)) {
        }
    } else if (strcmp(verb, "poll") == 0 || strcmp(verb, "wait") == 0) {
        struct job_report report = poll_job(ask);
        while (*verb == 'w' && report.state == JOB_RUNNING) {
            if (loop_once(&ask->loop, 10 * TICK_NS, &err) < 0) {
                fail(&err);
            }
            report = poll_job(ask);
        }
        print_report(&report);
    } else if (strcmp(verb, "log") == 0) {
        print_log(ask);
    } else if (strcmp(verb, "digest") == 0) {
        while (goes_on(ask, ops->reap(ask->remote, ask->job->id, hex, &err), &err)) {
        }
        puts(hex);
    } else if (strcmp(verb, "forget") == 0) {
        while (goes_on(ask, ops->forget(ask->remote, ask->job->id, &err), &err)) {
        }
    } else {
        int signal_no = (int)number(verb);
        while (goes_on(ask, ops->signal(ask->remote, ask->job->id, signal_no, &err), &err)) {
        }
    }
}

static struct remote *open_login(struct loop *loop, const char *folder)
{
    const char *port = getenv("LAUNCH_LOGIN");
    struct err err = {0};
    if (!port) {
        return remote_local_new(loop, folder);
    }
    const struct remote_ssh_opts opts = {
        .host = "127.0.0.1", .port = number(port), .work_folder = folder};
    struct remote *remote = remote_ssh_new(loop, &opts, &err);
    if (!remote) {
        fail(&err);
    }
    return remote;
}

int main(int argc, char **argv)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct ask ask = {.loop = LOOP_EMPTY};
    if (argc < 6) {
        return 2;
    }
    char *verb = argv[1];
    use_built_node();
    char slurm[] = "1"; /* LAUNCHER_SLURM */
    argv[1] = slurm;
    struct made made = launch_fixture(&arena, argc, argv);
    loop_init(&ask.loop, clock_system());
    ask.remote = open_login(&ask.loop, argv[4]);
    ask.job = &made.jobs[0].job;
    do_verb(&ask, verb);
    remote_free(ask.remote);
    loop_release(&ask.loop);
    return 0;
}
