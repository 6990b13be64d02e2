/* SPDX-License-Identifier: Apache-2.0 */
/* events.jsonl of a run: one event a line, for people and machines who want to know what happened when. Not evidence: that is
   the journal, the logs and the result. Every event name is in one table (EVENTS), with its level and what it means. */
#pragma once

#include "base/clock.h"
#include "codec/json.h"

enum event {
    EV_RUN_PLANNED,
    EV_RUN_RESUMED,
    EV_JOB_STARTED,
    EV_JOB_ATTACHED,
    EV_JOB_DEADLINE,
    EV_JOB_LOST,
    EV_NODE_LOST,
    EV_IMAGE_PROVIDED,
    EV_LOG_NOT_CHECKED,
    EV_REPEAT_FINISHED,
    EV_REPEAT_PARSED,
    EV_REPEAT_SET_ASIDE,
    EV_CASE_JUDGED,
    EV_RUN_INTERRUPTED,
    EV_RUN_CANCELLED,
    EV_RUN_FAILED,
    EV_RUN_SEALED,
    EV_COUNT,
};

struct event_row {
    const char *name;
    const char *level; /* "info", "warning", "error" */
    const char *help;
};
extern const struct event_row EVENTS[EV_COUNT];

struct events {
    int fd;
    struct clock_src clock;
};
#define EVENTS_EMPTY ((struct events){.fd = -1})

struct event_fields {   /* what is NULL or 0 is left out of "fields" */
    struct str node;    /* "local" */
    struct str case_id; /* "step" */
    int64_t repeat, attempt;
    struct str text; /* "detail" */
    const char *value_name;
    double value;
};

/* Appends. First ends a line that a crash cut off. */
MUST_CHECK int events_open(struct events *events, const char *path, struct clock_src clock,
                           struct err *err);
/* An event that cannot be written is logged at debug level and dropped: it must not end a measurement. */
void events_write(struct events *events, enum event event, const struct event_fields *fields);
void events_release(struct events *events);
