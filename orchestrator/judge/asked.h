/* SPDX-License-Identifier: Apache-2.0 */
/* What a log is asked for, held against the format that reads it. Pure. */
#ifndef JUDGE_ASKED_H
#define JUDGE_ASKED_H

#include "log/format.h"
#include "report/beside.h"

struct asked_of_log {
    struct str rule; /* id, of the case's number; NULL: none */
    const struct beside *beside;
};

/* The first thing that the format (NULL: it does not exist) lacks: its key ("rule", "target.series", "also[1]") and what is wrong, in
   the arena. False: it has all. */
bool asked_is_missing(struct arena *arena, const struct asked_of_log *asked,
                      const struct format *format, const char **ret_key, const char **ret_why);

#endif
