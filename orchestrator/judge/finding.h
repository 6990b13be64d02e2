/* SPDX-License-Identifier: Apache-2.0 */
/* What lint and audit rules find: a stable id, a level, a sentence with the figures, and a place. */
#pragma once

#include "report/report.h"

enum finding_level { LEVEL_NOTE, LEVEL_WARNING, LEVEL_ERROR };

/* Where something is found: in a log, or in the report's manifest. What is NULL or 0 is not said. */
struct spot {
    const struct report *report;
    const struct stack *stack;
    const struct report_case *of_case;
    const struct cell *cell; /* of the case */
    const char *below;       /* of the cell, case, stack or report: ".conditions.seed" */
    struct str log;
    int64_t line;
    struct str page; /* of the authors, other than the one of the row */
};

struct finding {
    const char *id; /* static: from the table of rules */
    enum finding_level level;
    struct str message;
    struct spot at;
    struct str where; /* in words: "LOG:LINE", a cell, a case, "PAGE: FRAMEWORK", PAGE */
};

struct findings {
    struct finding *items;
    size_t n, n_max;
    struct arena *arena; /* where they, and what they say, live */
};

/* One row per rule: for `reperf list --rules`, SARIF's rules array and the docs. */
struct finding_rule {
    const char *id;
    enum finding_level level;
    const char *title;
};
/* Why it matters, and what to do. */
struct str finding_help(const struct finding_rule *rule);
extern const struct finding_rule FINDING_RULES[];
extern const size_t N_FINDING_RULES;

extern const char *const FINDING_LEVEL_NAMES[3];

/* The id must be in the table, from which its level is taken. */
void finding_add(struct findings *list, const char *id, struct spot at, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
/* Whether one with this id says just this, or something that begins with it. */
bool findings_say(const struct findings *list, const char *id, struct str message, bool is_whole);
/* In the manifest: "$.cases[3].id"; lasting: with ids for the indices, which come and go as a report grows. */
const char *spot_path(struct arena *arena, const struct spot *at, bool is_lasting);
