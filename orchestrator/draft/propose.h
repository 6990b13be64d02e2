/* SPDX-License-Identifier: Apache-2.0 */
/* What `measure` says of a log that no format reads: the numbers that recur in it, and a pattern, unit and window for them. */
#pragma once

#include "base/strbuf.h"
#include "codec/json.h"
#include "draft/suggest.h"
#include "judge/judgement.h"
#include "load/load.h"
#include "load/measure.h"

struct proposal {
    struct survey *survey; /* owned */
    struct suggestions list;
    bool is_table;            /* its figures are of several cases */
    struct str pattern, unit; /* ptr NULL: nothing in the log can be read */
    struct str text;          /* of the format made last */
    size_t skip;              /* samples that its window leaves out */
    size_t n_used;
    bool has_value;
    double value; /* of that window */
    struct survey_counts counts;
    enum parse_verdict verdict; /* on the log */
    struct str why;             /* ptr NULL: nothing is known beyond the verdict */
};
struct proposal_want {
    const char *root;
    struct str id;    /* of the format; empty: as the file is named */
    const char *file; /* where the format goes; NULL: nowhere */
    bool makes;       /* the format is wanted, if something can be read */
    struct str unit;  /* of what prints none; or empty */
    const char *log;  /* as the user names it */
    const char *path; /* where it is read */
};
/* Where the format is wanted and something can be read, it is in ret_set, and its text in ret->text; else the set stays empty. */
MUST_CHECK int propose_format(struct arena *arena, const struct proposal_want *want,
                              struct proposal *ret, struct format_set *ret_set, struct err *err);
void proposal_release(struct proposal *proposal);
/* file: the log, as commands name it. */
void proposal_add(struct strbuf *text, const char *file, const struct proposal *proposal);
void proposal_put(struct json_out *out, const struct proposal *proposal);
