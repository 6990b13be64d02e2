/* SPDX-License-Identifier: Apache-2.0 */
/* What lint and audit rules find: a stable id, a level, a sentence with the figures, and a place. */
#ifndef JUDGE_FINDING_H
#define JUDGE_FINDING_H

#include "base/str.h"
#include "base/vec.h"

enum finding_level { LEVEL_NOTE, LEVEL_WARNING, LEVEL_ERROR };

struct finding {
    const char *id; /* static: from the table of rules */
    enum finding_level level;
    struct str message;
    struct str
        where; /* "manifests/reports/ID.json:$.stacks.paddle.image.digest" or a log's path[:line] */
};

struct findings {
    struct finding *items;
    size_t n;
    size_t n_max;
};

/* One row per rule: for `reperf list --rules`, SARIF's rules array and the docs. */
struct finding_rule {
    const char *id;
    enum finding_level level;
    const char *title;
    const char *help; /* why it matters, what to do */
};
extern const struct finding_rule FINDING_RULES[];
extern const size_t N_FINDING_RULES;

extern const char *const FINDING_LEVEL_NAMES[3];
const char *finding_level_name(enum finding_level level); /* "note", "warning", "error" */

/* Message in the arena; id must be in the table (its level is taken from there). */
void finding_add(struct findings *list, struct arena *arena, const char *id, struct str where,
                 const char *fmt, ...) PRINTF_LIKE(5, 6);

#endif
