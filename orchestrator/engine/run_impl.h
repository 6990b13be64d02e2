/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of engine/run share. */
#ifndef ENGINE_RUN_IMPL_H
#define ENGINE_RUN_IMPL_H

#include "base/progress.h"
#include "engine/events.h"
#include "engine/journal.h"
#include "engine/run.h"
#include "io/remote.h"

enum unit_state { UNIT_TODO, UNIT_STARTED, UNIT_FINISHED, UNIT_PARSED };

struct unit { /* one repeat of one step */
    const struct plan_step *step;
    int64_t repeat;
    int64_t attempt; /* of the last that was started; 0: none */
    enum unit_state state;
    int64_t started_wall_ns; /* of that attempt */
    bool counts;             /* once parsed */
    double value;
    int64_t log_bytes;
};

struct runner {
    struct arena *arena;
    const struct run_opts *opts;
    struct rundir dir;
    struct frozen frozen;
    struct journal journal;
    struct events events;
    struct loop loop;
    struct remote *remote; /* owned */
    struct progress progress;
    const char *const *child_env; /* inherited part; in the arena */
    size_t n_child_env;
    struct unit *units;
    size_t n_units;
    size_t n_judged; /* cases with a verdict in the journal */
    int stop_signal; /* 0: none yet */
    int n_signals;
    bool was_sealed;
};

/* One repeat, to the end: its log is collected and parsed. Returns 0 with stop_signal set where it was stopped. */
MUST_CHECK int run_unit(struct runner *r, struct unit *unit, struct err *err);

/* metrics.prom, as far as the run is. Not being able to write it is said, and ends nothing. */
void run_write_metrics(struct runner *r, const char *state);

/* OpenMetrics text; pure. state: "running", "sealed", ... */
void metrics_encode(struct strbuf *out, const struct frozen *frozen, const struct unit *units,
                    size_t n_units, const char *state);

#endif
