/* SPDX-License-Identifier: Apache-2.0 */
/* A decoded format, made by format.c and read by the parser. Private to those files. */
#ifndef LOG_FORMAT_IMPL_H
#define LOG_FORMAT_IMPL_H

#include "codec/pattern.h"
#include "log/format.h"
#include "log/literals.h"
#include "log/records.h"

#define NO_LITERAL UINT8_MAX

struct probe {               /* a literal, and a pattern for the lines that hold it */
    struct str literal;      /* empty: every line, or every line of a table while it is open */
    uint8_t bit;             /* of its literal in a line's mask; NO_LITERAL */
    struct pattern *pattern; /* owned by the format; NULL: absent */
};

struct series_spec {
    struct str name;
    struct str unit;
    enum scope scope;
    enum quantity quantity;
    bool is_primary;
    bool repeats;      /* the tool may print a step again (loss scaling repeats an iteration) */
    bool stands_in;    /* shown if a log has nothing of the primary series */
    bool is_grouped;   /* digits in groups, "1,234.5" */
    bool is_bare;      /* its lines need not have a word for a loss; they have its literal */
    bool is_on_grid;   /* printed by the step, not by the clock: intervals reveal a gap */
    int64_t step_from; /* what the first step is called, 0 or 1: a run from 0 ends at total - 1 */
    int64_t first_by;  /* the first line has at most this step; -1: the interval of the lines */
    int64_t
        epoch_from; /* >= 0: step and total count within an epoch, and the first epoch is this */
    double factor;
    struct probe line;
    struct probe after; /* opens the table */
    struct pattern
        *like; /* of the lines that hold its literal, those that look like it; NULL: all */
    struct pattern *until; /* closes it; NULL: never closes */
    int value, step, total, epoch, epochs, rank, gpus, time, inverse; /* groups, -1 absent */
    int kilo, mega, milli,
        micro; /* likewise: the value then is in thousands, millions, thousandths, millionths */
};

struct fact_spec {
    struct str name;
    struct probe line;
    int value;         /* group; -1 if says is set */
    struct str says;   /* what a line that matches states, or NULL */
    bool is_last;      /* the last line of a run that matches counts, not the first */
    bool is_list;      /* the value is a list with commas, and the fact is its number of items */
    bool is_grouped;   /* digits in groups, "1,281,167" */
    bool is_in_sample; /* read from every line of a sample, and from no other */
    bool is_absent;    /* no log of the format states it: it is one of struct format's absent */
    struct str why;
};

struct absent_fact { /* a fact that no log of the format states */
    struct str name;
    struct str why;
};

struct format {
    struct str id, title, framework, source;
    bool is_proposed; /* by a program, from the lines of a log */
    struct str *prefixes;
    size_t n_prefixes;
    bool strips_mpirun, strips_srun; /* by the prefixes */
    struct series_spec *series;
    size_t n_series;
    struct probe run_start, begin, resumed, end, fatal, done;
    bool is_begin_unknown;
    struct str begin_why; /* why a log does not show whether its beginning is there, or NULL */
    int done_step;        /* group of done: steps completed by the run */
    uint64_t crash_mask;  /* literals with which any program breaks off */
    uint64_t failed_mask; /* literals with which any program says that it failed */
    uint64_t killed_mask; /* one that counts as a word of its own alone */
    uint64_t launch_mask; /* of launchers and NCCL (log/launched.h) */
    bool needs_end;
    bool has_loss;          /* a series is the loss; else a loss is seen by its word */
    struct str total_from;  /* name of the fact that states how many steps a run makes, or NULL */
    struct str epochs_from; /* likewise, how many epochs */
    enum format_role role;
    enum record_kind records;            /* lines are made from the records of a table */
    const struct vocabulary *vocabulary; /* as long-lived as the format */
    struct fact_spec *facts;
    size_t n_facts;
    uint64_t fact_mask
        [2]; /* literals of facts that other lines than samples state, and that samples do */
    struct absent_fact *absent;
    size_t n_absent;
    const struct rule *rules;
    size_t n_rules;
    struct str literals[LITERALS_MAX]; /* different ones; their index is their bit */
    size_t n_literals;
    struct literals **search; /* one, owned; NULL in it before first use */
};

#endif
