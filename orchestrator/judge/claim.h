/* SPDX-License-Identifier: Apache-2.0 */
/* What two columns of a row say of each other: the ratio that a run measured, and whether it bears the published one out. An
   absolute rate needs the report's own machine; a ratio of columns that took turns on the same nodes travels better. Pure. */
#pragma once

#include "judge/audit.h"

struct ratio {
    double value;     /* of one column's rate over the other's; NAN: there is none to show */
    double low, high; /* its 95 % interval from the repeats; NAN: they give none */
    size_t n_pairs;
    const char *why; /* there is no value: why; else NULL */
};
/* values[idx] over references[idx], which ran one after the other: what drifts between repeats does not widen the interval. A
   ratio whose interval holds 1 has no value: the repeats do not tell the columns apart. All are over 0. */
struct ratio ratio_of_turns(const double *values, const double *references, size_t n);

enum claim_verdict {
    CLAIM_NONE,  /* nothing is claimed */
    CLAIM_HOLDS, /* the whole interval is as far from 1 as published, on the same side, or further */
    CLAIM_WEAKER,   /* the whole interval falls short of the published ratio */
    CLAIM_REVERSED, /* and lies on the other side of 1: the other column is the faster */
    CLAIM_UNDECIDED /* the interval reaches across one of these bounds, or there is none */
};
extern const char *const CLAIM_VERDICT_NAMES[5];
/* tolerance: how much less than the published ratio still counts as it, as a share of it. CLAIM_NONE: published as equal within
   it. */
enum claim_verdict claim_judge(double published, const struct ratio *measured, double tolerance);

/* Why the published ratio of two cells claims nothing of their frameworks, in words: another batch or network, or a log that
   belongs to another row. NULL: it is a claim. The audits may be NULL. In the arena. */
const char *claim_objection(struct arena *arena, const struct report_case *of,
                            const struct report_case *reference, const struct cell_audit *audited,
                            const struct cell_audit *audited_reference);

/* How many times as many, where the second of two counts of a network (parameters, multiply-adds) is of another one; 1: it is of
   the same, or one is not stated. Counts within 1 % are of the same: frameworks count running statistics differently. */
double claim_network_times(struct str count, struct str other);
