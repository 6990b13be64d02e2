/* SPDX-License-Identifier: Apache-2.0 */
/* Progress of anything over a second, on stderr: a bar with rate and time left on a terminal, a plain line every few
   seconds elsewhere, nothing when the work ends within the first second. One at a time; one thread. */
#pragma once

#include "base/clock.h"

struct progress {
    struct clock_src clock;
    const char *what; /* borrowed: "audit", "seal" */
    const char *unit; /* borrowed: "cells", "bytes" (shown as MB) */
    uint64_t total;   /* 0: not known */
    uint64_t done;
    int64_t start_ns;
    int64_t shown_ns; /* 0: nothing shown yet */
    bool is_terminal;
};

void progress_start(struct progress *p, struct clock_src clock, const char *what, const char *unit,
                    uint64_t total);
void progress_set(struct progress *p, uint64_t done);
/* Both, of a struct progress: for whoever reports how far it is. */
void progress_show(void *progress, uint64_t done, uint64_t total);
/* Ends the line if one was shown. */
void progress_end(struct progress *p);
