/* SPDX-License-Identifier: Apache-2.0 */
/* Rules: how a series becomes a number. Rules are data (manifests/formats/ID.json, "rules"); statistics and windows are
   named only here. Pure functions. */
#pragma once

#include "log/format.h"
#include "log/series.h"

enum statistic {
    STAT_MEAN,
    STAT_MEDIAN,
    STAT_TRIMMED_MEAN, /* drops max(trim_count, floor(trim_share n)) at each end */
    STAT_OLYMPIC_MEAN, /* drops the smallest and the largest */
    STAT_HARMONIC_MEAN,
    STAT_TIME_WEIGHTED_MEAN, /* all items over all time: each interval counts by its steps and its rate */
    STAT_MIN,
    STAT_MAX,
    STAT_FIRST,
    STAT_LAST, /* last-k with window.last > 1 is a mean over window.last */
    STAT_TIMESTAMPS, /* global batch x (steps between) / (time between), first and last sample of the window */
    STAT_TOOL,    /* the one value of a summary series; more than one (of a rank) is an error */
    STAT_ELAPSED, /* time between the first and the last line of a clock */
    STAT_ENGINE,  /* as log/engine.h makes a number of the whole series */
    STAT_COUNT,
};

enum scale {
    SCALE_NONE, /* the value unchanged */
    SCALE_GPUS, /* x GPUs of the case */
    SCALE_NODES,
    SCALE_GLOBAL_BATCH_OVER, /* batch_per_gpu x GPUs / value: seconds per step become items per second */
    SCALE_GLOBAL_BATCH, /* batch_per_gpu x GPUs x value: steps per second become items per second */
    SCALE_FACT_OVER,    /* items per step as the log states them / value */
    SCALE_FACT,         /* items per step x value */
    SCALE_COUNT,
};

enum rounding { ROUND_NEAREST, ROUND_TRUNCATE, ROUND_COUNT };
enum run_choice { RUN_ONLY, RUN_FIRST, RUN_LAST, RUN_CHOICE_COUNT }; /* RUN_ONLY: of one run */
/* Across the logs of one cell. */
enum repeats { REPEATS_SINGLE, REPEATS_MEAN, REPEATS_MEDIAN, REPEATS_OLYMPIC, REPEATS_COUNT };

struct window {
    int64_t skip;      /* samples dropped at the start */
    int64_t drop_last; /* samples dropped at the end */
    int64_t last;      /* > 0: then only this many at the end */
    bool has_steps;    /* then only step_from <= step <= step_to, before skip and the rest */
    int64_t step_from, step_to;
    bool skips_warmup; /* drops the warm-up steps that the log states, which it must */
};

/* Which of several logs count as successful runs; an olympic mean treats the others as slowest. */
struct rule_success {
    struct str fact, value; /* the log must state it once; NULL: every log counts */
};
/* How many logs a cell must have, by a fact that they state. */
struct rule_required {
    struct str fact, source; /* source: where the counts are stated, or NULL */
    struct rule_count {
        struct str value;
        int64_t n;
    } * items;
    size_t n;
};

/* The target of a run's last evaluation, by the model that the log states. */
struct rule_target {
    struct str model;
    double value;
    bool is_most; /* at most, else at least */
};

struct rule {
    struct str id; /* "FORMAT/NAME" */
    struct str series;
    enum run_choice run;
    bool match_gpus; /* only samples whose gpus is the case's */
    struct window window;
    int64_t trim_count;
    double trim_share;
    enum statistic statistic;
    enum scale scale;
    struct str fact; /* of SCALE_FACT_OVER and SCALE_FACT: items per step, in `unit` */
    struct str unit; /* of STAT_ELAPSED: s, min or h; NULL: s */
    struct rule_success success;
    struct rule_required required;
    struct rule_target *targets;
    size_t n_targets;
    bool is_default; /* used for its series if no rule is named */
    enum rounding rounding;
    enum repeats repeats;
    struct str origin; /* "stated", "inferred" or "own" */
    struct str source; /* where it is stated, or how it was found */
};

/* What a rule needs to know about the case. 0 or less: not known; a rule that needs it says so. */
struct rule_case {
    int64_t gpus, nodes, batch_per_gpu;
    struct rule_memo *memo; /* borrowed; NULL: nothing is kept for the next rule */
};

/* What rule_apply keeps of one log for other windows and statistics of the same samples. Zero at first. */
struct rule_memo {
    const struct series *series; /* borrowed; NULL: nothing is kept */
    enum run_choice run;
    int64_t gpus;                /* of the samples; -1: of any number */
    const struct sample **items; /* what windows are cut from; owned, as the rest */
    double *values;              /* theirs, in file order, */
    struct rule_kept *ordered;   /* and ascending */
    size_t n;
};
void rule_memo_release(struct rule_memo *memo);

struct rule_value {
    double value;       /* not rounded */
    size_t n_used;      /* samples used */
    size_t n_window;    /* samples in the window before trimming */
    double statistic;   /* before scaling */
    double operand;     /* what the scale used: GPUs, nodes, items per step; 1: none */
    double top, bottom; /* of a time-weighted mean, which is top / bottom; else 0 */
};

/* What a rule does with one sample of its series. */
enum sample_use {
    USE_COUNTED,
    USE_TRIMMED,   /* in the window, dropped as one of the smallest or largest */
    USE_BETWEEN,   /* in the window, of which only the first, the last or both count */
    USE_OTHER_RUN, /* out of the window from here on */
    USE_OTHER_GPUS,
    USE_OUTSIDE_STEPS,
    USE_WARMUP,
    USE_SKIPPED,    /* at the start */
    USE_DROPPED,    /* at the end */
    USE_BEFORE_LAST /* before the last ones, the only ones that count */
};
static inline bool use_is_in_window(enum sample_use use)
{
    return use <= USE_BETWEEN;
}
extern const char *const SAMPLE_USE_NAMES[USE_BEFORE_LAST + 1];

/* A format with its rules. */
MUST_CHECK int format_read(const struct json *root, struct arena *arena, struct format **ret_format,
                           struct err *err);
/* NULL if absent; accepts "FORMAT/NAME" and "NAME". */
const struct rule *format_rule(const struct format *format, struct str id);
/* The rule by which this series is shown if none is named; NULL: its mean. */
const struct rule *format_rule_of(const struct format *format, struct str series);
/* Reads one element of a format's "rules" array. */
MUST_CHECK int rule_decode(const struct json *at, struct arena *arena, struct str format_id,
                           struct rule *ret_rule, struct err *err);
/* The unit of the rule's value, from that of its series: timed steps give items per second. */
struct str rule_unit(const struct rule *rule, struct str series_unit);

/* ERR_PARSE with the reason if the rule does not apply (series absent, window empty, two runs, batch not known). If several ranks
   print a series of scope rank, the window applies to each one's samples. The caller judges the log: one that is incomplete still
   has a series. */
MUST_CHECK int rule_apply(const struct rule *rule, const struct measurement *m,
                          const struct rule_case *of, struct rule_value *ret_value,
                          struct err *err);

/* The run whose samples the rule takes; -1: none, none chosen of several, or a table that may describe another run than its
   own. */
int32_t rule_run(const struct rule *rule, const struct measurement *m);
int32_t rule_run_of(const struct rule *rule, const struct series *series); /* last or first */

/* What rule_apply does with each sample of the rule's series: ret_uses has one entry for each. */
MUST_CHECK int rule_uses(const struct rule *rule, const struct measurement *m,
                         const struct rule_case *of, enum sample_use *ret_uses, struct err *err);

/* One of several logs from which a rule makes one number. */
struct rule_repeat {
    double value;         /* INFINITY: it did not succeed and counts as the slowest */
    struct str why;       /* why it did not succeed */
    struct rule_value by; /* what the rule gives; zero if it did not succeed */
};
/* ERR_PARSE if a successful log gives no number. The text lives in the arena. */
MUST_CHECK int rule_repeat(const struct rule *rule, const struct measurement *m,
                           const struct rule_case *of, struct arena *arena,
                           struct rule_repeat *ret_repeat, struct err *err);
/* Which two of n an olympic mean leaves out: the first of the fastest, the last of the slowest. n >= 2. */
void rule_dropped(const double *values, size_t n, size_t *ret_fastest, size_t *ret_slowest);
/* NULL if the rule has none. */
const struct rule_target *rule_target_for(const struct rule *rule, struct str model);
/* How many logs the rule asks for if they state the same as this one; 0: any number. */
int64_t rule_required_for(const struct rule *rule, const struct measurement *m);

/* One number from the repeats' numbers. n >= 1; REPEATS_SINGLE with n > 1 is an error. */
MUST_CHECK int rule_combine(enum repeats how, const double *values, size_t n, double *ret_value,
                            struct err *err);
/* The value at `decimals` places under the rule's rounding. */
double rule_round(enum rounding rounding, double value, int decimals);
bool rule_is_by_fact(const struct rule *rule);
extern const char *const STATISTIC_NAMES[STAT_COUNT]; /* each by its enum */
extern const char *const ROUNDING_NAMES[ROUND_COUNT], *const REPEATS_NAMES[REPEATS_COUNT];
extern const char *const SCALE_NAMES[SCALE_COUNT], *const RUN_CHOICE_NAMES[RUN_CHOICE_COUNT];

/* "mean of ips, skip 2, trim 5+5, x GPUs": for people. */
void rule_describe(const struct rule *rule, struct strbuf *out);
