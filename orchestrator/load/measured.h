/* SPDX-License-Identifier: Apache-2.0 */
/* One log of any origin, measured. The steps: its lines (load/log_forms.h), the format that reads them, the measurement, what the
   log holds against its own number, the judgement, the number. Each step fills its part of struct measured; where one says why
   there is no number, those after it are left out. */
#pragma once

#include "judge/identity.h"
#include "judge/judgement.h"
#include "judge/number.h"
#include "load/log_forms.h"
#include "log/arithmetic.h"

struct measured {
    const char *file;            /* as it is named */
    const char *path;            /* where its lines are read */
    const struct format *format; /* NULL: none was found, or several */
    bool fits_several;
    struct measurement m;
    const struct series *series; /* primary, or the rule's; NULL where there is no format */
    const struct rule *rule;     /* NULL: the engine's */
    struct log_counts counts;    /* that the log states */
    struct rule_case of;         /* they, or else those that were given */
    const struct survey *survey; /* of its lines, where a format was proposed; borrowed */
    struct arithmetic arithmetic;
    enum parse_verdict verdict;
    struct str why;
    bool has_value;
    bool is_proposed; /* its format is, and the user has not named it */
    struct made_number number;
    /* The same log by protocols whose lines stand among those of its own format. */
    struct measured *beside;
    size_t n_beside;
};

struct measure_ask {
    const struct format_set *set;
    struct guesser *guesser;    /* of these; NULL: the set is the one format that was named */
    const char *rule;           /* NULL: the format's own, or the engine */
    int64_t gpus, nodes, batch; /* of the job, if the log does not state them; 0: not known */
    /* What is proposed for a log that no format reads (f->format stays NULL where nothing is); NULL: nothing. */
    int (*propose)(const struct measure_ask *ask, struct arena *arena, struct measured *f,
                   struct err *err);
    void *ctx;
    bool makes_format; /* no format is looked for: one is proposed, and a known one may object */
};

/* f has its file; what is found lives in the arena, and in forms. ERR_USAGE where the rule cannot be used. */
MUST_CHECK int measured_log(struct arena *arena, const struct measure_ask *ask,
                            struct log_forms *forms, struct measured *f, struct err *err);
