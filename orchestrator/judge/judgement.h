/* SPDX-License-Identifier: Apache-2.0 */
/* May this log give a number? One answer for everyone who asks: they differ in what they demand of the log. Pure. */
#pragma once

#include "judge/rule.h"

enum demand {
    DEMAND_WHOLE, /* one whole run and nothing else: a run's log, an MLPerf result */
    DEMAND_RAN, /* likewise, but its speed may have changed: a log of a run that claims no number */
    DEMAND_PART, /* also a run that lacks its end or lines, and of several the one that the rule names: measure */
    DEMAND_ANY, /* whatever the rule can read; the state of the log is said beside the verdict: audit */
};

/* The state of a cell's logs: the worst of several, in this order. */
enum log_state { LOG_WHOLE, LOG_INCOMPLETE, LOG_UNREADABLE, LOG_NO_RULE, LOG_ABSENT };
extern const char *const LOG_STATE_NAMES[5];

struct judgement {
    enum parse_verdict verdict; /* on the run whose samples the rule takes */
    struct str why;             /* NULL or empty where that is ok */
    struct causes causes;       /* with what the engine holds against the rule's samples */
    bool gives;                 /* a number may be made of the log */
    enum log_state state;
};
/* rule NULL: the mean of the primary series. The text is the measurement's or in the arena. */
struct judgement judgement_of(struct arena *arena, const struct measurement *m,
                              const struct rule *rule, enum demand demand);

/* Of a log that is not read, since no format fits, or several do. */
enum parse_verdict judgement_unread(size_t n_formats);
/* Of a table whose rows the question does not tell apart. */
enum parse_verdict judgement_undecided(void);
/* Ok, by a format that is only proposed; any other verdict stays. */
enum parse_verdict judgement_proposed(enum parse_verdict verdict);
/* Proposed or not. */
bool judgement_is_ok(enum parse_verdict verdict);
/* Its number is that of a part, and is marked as such. */
bool judgement_is_part(enum parse_verdict verdict);
/* What a known format finds in a log stands against the ok of one that was made from the log's own lines. */
bool judgement_objects(enum parse_verdict known, enum parse_verdict made);
/* No run of the log is whole. Several runs in one file are another matter. */
bool judgement_lacks_run(const struct measurement *m);
