/* SPDX-License-Identifier: Apache-2.0 */
/* Fake nodes: their jobs do at once what they were told to do. */
#pragma once

#include "unit.h"

#include <signal.h>
#include <stdio.h>

#include "codec/digest.h"
#include "fleet/remote.h"

#define JOB_MAX 512

enum fake_way {
    FAKE_WELL,    /* its jobs end with 0 after some polls */
    FAKE_FAILS,   /* with 3 */
    FAKE_KILLED,  /* by somebody else's signal, seen a poll later */
    FAKE_LOSES,   /* without a status */
    FAKE_HANGS,   /* never, until they are killed */
    FAKE_DROPS,   /* after two polls the node cannot be reached any more */
    FAKE_ANOTHER, /* its log on the node differs from what arrived */
    FAKE_NEW_KEY, /* its host key changed */
    FAKE_BLAMED,  /* its jobs leave no status, and the node is known to be the cause */
};

struct fake {
    struct remote remote; /* first */
    enum fake_way way;
    char job[JOB_MAX]; /* that runs, or ran last */
    bool is_started, is_killed;
    int n_polls, n_started;
    int *n_at_once, *most_at_once; /* of all nodes */
    bool (*is_lost)(void *ctx);    /* whether the journal has a lost attempt by now */
    void *ctx;
    bool was_journaled;         /* that the attempt is lost, when the first TERM came */
    int64_t told_ns, killed_ns; /* when TERM came, and KILL */
    bool is_asked, is_answered;
    int n_asked;
    const char *holder; /* another run's, as the node says it; NULL: the lease is ours */
    struct loop *loop;
};

static const char LOG_TEXT[] = "pretended\n";

static enum step fake_start(struct remote *remote, const struct remote_job *job, struct err *err)
{
    struct fake *fake = (struct fake *)remote;
    if (fake->way == FAKE_NEW_KEY) {
        return step_fail(err_set(err, ERR_INTEGRITY, "host key changed"));
    }
    snprintf(fake->job, sizeof(fake->job), "%s", job->id);
    fake->is_started = true;
    fake->is_killed = false;
    fake->n_polls = 0;
    fake->n_started++;
    (*fake->n_at_once)++;
    if (*fake->n_at_once > *fake->most_at_once) {
        *fake->most_at_once = *fake->n_at_once;
    }
    return STEP_DONE;
}

static enum step fake_end(struct fake *fake, struct job_report *ret_report, enum job_state state,
                          int status)
{
    *ret_report = (struct job_report){.state = state, .exit_status = status};
    fake->is_started = false;
    (*fake->n_at_once)--;
    return STEP_DONE;
}

static enum step fake_poll(struct remote *remote, const char *id, struct job_report *ret_report,
                           struct err *err)
{
    struct fake *fake = (struct fake *)remote;
    *ret_report = (struct job_report){.state = JOB_ABSENT};
    if (!fake->is_started || strcmp(fake->job, id) != 0) {
        return STEP_DONE;
    }
    fake->n_polls++;
    if (fake->way == FAKE_DROPS && fake->n_polls > 2) {
        (*fake->n_at_once)--;
        fake->is_started = false;
        return step_fail(err_set(err, ERR_NODE, "no answer for 30 s"));
    }
    if (fake->is_killed) {
        return fake_end(fake, ret_report, JOB_LOST, 0);
    }
    if (fake->n_polls > 3 && fake->way == FAKE_BLAMED) {
        (void)fake_end(fake, ret_report, JOB_LOST, 0);
        ret_report->cause = ERR_NODE;
        return STEP_DONE;
    }
    if (fake->n_polls > 4 && fake->way == FAKE_KILLED) {
        return fake_end(fake, ret_report, JOB_ENDED, 128 + SIGKILL);
    }
    if (fake->n_polls > 3 && fake->way != FAKE_HANGS && fake->way != FAKE_KILLED) {
        return fake_end(fake, ret_report, fake->way == FAKE_LOSES ? JOB_LOST : JOB_ENDED,
                        fake->way == FAKE_FAILS ? 3 : 0);
    }
    ret_report->state = JOB_RUNNING;
    return STEP_DONE;
}

static enum step fake_read_log(struct remote *remote, const char *id, struct log_part *part,
                               struct err *err UNUSED)
{
    part->len = 0;
    if (strcmp(((struct fake *)remote)->job, id) == 0 && part->offset < strlen(LOG_TEXT)) {
        part->len = strlen(LOG_TEXT) - part->offset;
        assert_true(part->len <= part->size);
        memcpy(part->dst, LOG_TEXT + part->offset, part->len);
    }
    return STEP_DONE;
}

static enum step fake_reap(struct remote *remote, const char *id UNUSED, char *ret_hex,
                           struct err *err UNUSED)
{
    uint8_t sha256[SHA256_BYTES];
    bool is_other = ((struct fake *)remote)->way == FAKE_ANOTHER;
    sha256_of(is_other ? STR_LIT("cut") : str_of(LOG_TEXT), sha256);
    hex_encode(sha256, SHA256_BYTES, ret_hex);
    return STEP_DONE;
}

static enum step fake_signal(struct remote *remote, const char *id, int signal_no,
                             struct err *err UNUSED)
{
    struct fake *fake = (struct fake *)remote;
    *(signal_no == SIGKILL ? &fake->killed_ns : &fake->told_ns) = loop_now_ns(fake->loop);
    fake->was_journaled = fake->was_journaled || (signal_no == SIGTERM && fake->is_lost(fake->ctx));
    fake->is_killed = fake->is_killed || (signal_no == SIGKILL && strcmp(fake->job, id) == 0);
    return STEP_DONE;
}

static void on_answer(void *ctx)
{
    ((struct fake *)ctx)->is_answered = true;
}

/* An answer takes time, in which others are asked. */
static enum step fake_ask(struct remote *remote, const struct remote_ask *ask, struct err *err)
{
    struct fake *fake = (struct fake *)remote;
    uint64_t timer = 0;
    if (!fake->is_asked) {
        fake->is_asked = true;
        fake->is_answered = false;
        return loop_timer_add(fake->loop, loop_now_ns(fake->loop) + 15 * NS_PER_S, on_answer, fake,
                              &timer, err) < 0
                   ? STEP_FAIL
                   : STEP_AGAIN;
    }
    fake->n_asked += fake->is_answered;
    fake->is_asked = !fake->is_answered;
    if (fake->is_answered && fake->holder) {
        strbuf_add_z(ask->output, fake->holder);
    }
    return fake->is_answered ? STEP_DONE : STEP_AGAIN;
}

static enum step fake_work_folder(struct remote *remote UNUSED, const char **ret_path,
                                  struct err *err UNUSED)
{
    *ret_path = "/work";
    return STEP_DONE;
}

static enum step fake_forget(struct remote *remote UNUSED, const char *id UNUSED,
                             struct err *err UNUSED)
{
    return STEP_DONE;
}

static void fake_abort(struct remote *remote UNUSED)
{
}

static void fake_free(struct remote *remote)
{
    free(remote);
}

static UNUSED const struct remote_ops FAKE_OPS = {.ask = fake_ask,
                                                  .work_folder = fake_work_folder,
                                                  .start = fake_start,
                                                  .poll = fake_poll,
                                                  .read_log = fake_read_log,
                                                  .reap = fake_reap,
                                                  .signal = fake_signal,
                                                  .forget = fake_forget,
                                                  .abort = fake_abort,
                                                  .free = fake_free};
