/* SPDX-License-Identifier: Apache-2.0 */
/* Metric lines (core/mlog.h), read back. */
#pragma once

#include "base/arena.h"
#include "base/str.h"

enum event_kind { EVENT_OTHER, EVENT_START, EVENT_STEP, EVENT_STOP, EVENT_FATAL };

struct event {
    enum event_kind kind;
    int64_t step, step_time_ns; /* of a step; 0: absent */
    int64_t peak_memory_bytes;  /* of a stop; 0: absent */
    double loss;
    bool has_loss;
    struct str what;                         /* of a fatal line */
    struct str gpu, driver, cuda, libraries; /* of a start; ptr NULL: absent */
};

/* A line that is no JSON object with an event in it is an error. */
MUST_CHECK int event_read(struct arena *arena, struct str line, struct event *ret_event,
                          struct err *err);
