/* SPDX-License-Identifier: Apache-2.0 */
/* `reperf explain` of a cell, for people and as JSON, and of a rule: items of the JSON document
   (manifests/schema/explain-output.json). Writers append. */
#pragma once

#include "judge/trace.h"

struct explain_cell {
    const struct report *report;
    const struct cell_audit *cell;
    struct trace how;
    /* Each log's lines, one for each sample that counts; NULL where the log itself was not read. */
    struct str **texts;
};
struct explain_opts {
    bool is_verbose; /* every sample and every fact */
    bool is_page;    /* of a page, which names the cell: of the samples those that count first */
};
void explain_cell_text(struct arena *arena, const struct explain_cell *of,
                       const struct explain_opts *opts, struct strbuf *out);
void explain_cell_json(struct arena *arena, const struct explain_cell *of, struct json_out *out);

/* Which cells of which reports; a cell is named by both. */
struct explain_user {
    const struct report *report;
    const struct cell *cell;
};
struct explain_users {
    struct explain_user *items;
    size_t n;
};
void explain_put_rule(const struct rule *rule, const struct explain_users *users,
                      struct json_out *out);
