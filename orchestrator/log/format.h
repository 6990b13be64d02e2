/* SPDX-License-Identifier: Apache-2.0 */
/* Log formats as data (manifests/formats/ID.json): patterns with named groups, scope, unit, prefixes to strip, how a run
   begins and ends, facts, and the rules known for such logs. log/parser.h reads logs by them. */
#pragma once

#include "codec/json.h"
#include "codec/pattern.h"
#include "log/literals.h"
#include "log/records.h"
#include "log/series.h"

/* A longer line (after splitting at LF and CR, NULs not counted) is ERR_PARSE with its byte offset. */
#define FORMAT_LINE_MAX    (1u << 20)
#define FORMAT_SAMPLES_MAX (1u << 24)
#define FORMATS_MAX        128
#define FORMAT_SERIES_MAX  16
#define FORMAT_FACTS_MAX   96
#define FORMAT_RULES_MAX   64
#define FORMAT_RANKS_MAX   65536 /* different ranks in one log */

struct rule; /* judge/rule.h */
struct vocabulary;

/* The role of a format's lines in a log that several formats read. */
enum format_role {
    FORMAT_FIRST, /* a protocol that says more than the program's own lines: always the log's format */
    FORMAT_OWN,     /* the program's own lines: two such formats are ambiguous */
    FORMAT_SIDECAR, /* lines of a protocol that programs print in addition to their own */
    FORMAT_GENERIC, /* any program's: used if no other format reads anything */
    FORMAT_NAMED, /* only if asked for by name: another reading of lines that a format above reads */
};

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
    /* Not negative: step and total count within an epoch, and the first epoch is this. */
    int64_t epoch_from;
    double factor;
    struct probe line;
    struct probe after;   /* opens the table */
    struct pattern *like; /* lines with its literal that look like it, read or not; NULL: none do */
    struct pattern *until; /* closes it; NULL: never closes */
    int value, step, total, epoch, epochs, rank, gpus, time, inverse; /* groups, -1 absent */
    /* Likewise; the value then is in thousands, millions, thousandths, millionths. */
    int kilo, mega, milli, micro;
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
    /* It was made from the lines of a log, and its file still says so: what it gives is not known to be right. */
    bool is_proposed;
    struct str *prefixes;
    size_t n_prefixes;
    bool strips_mpirun, strips_srun; /* by the prefixes */
    struct series_spec *series;
    size_t n_series;
    struct probe run_start, begin, resumed, end, fatal, done;
    struct str begin_why;  /* why a log does not show whether its beginning is there, or NULL */
    bool is_begin_unknown; /* so the document says; only its check (format.c) needs it */
    int done_step;         /* group of done: steps completed by the run */
    uint64_t crash_mask;   /* literals with which any program breaks off */
    uint64_t failed_mask;  /* literals with which any program says that it failed */
    uint64_t broken_mask;  /* of what more words are needed for that */
    uint64_t launch_mask;  /* of launchers and NCCL (log/launcher.h) */
    bool needs_end;
    struct str total_from;  /* name of the fact that states how many steps a run makes, or NULL */
    struct str epochs_from; /* likewise, how many epochs */
    enum format_role role;
    enum record_kind records;            /* lines are made from the records of a table */
    const struct vocabulary *vocabulary; /* as long-lived as the format */
    struct fact_spec *facts;
    size_t n_facts;
    /* Literals of facts that other lines than samples state, and that samples do. */
    uint64_t fact_mask[2];
    struct absent_fact *absent;
    size_t n_absent;
    const struct rule *rules; /* as long-lived as the format */
    size_t n_rules;
    struct str literals[LITERALS_MAX]; /* different ones; their index is their bit */
    size_t n_literals;
    struct literals **search; /* one, owned; NULL in it before first use */
};

struct format_set {
    struct format **items; /* sorted by id */
    size_t n;
};

/* All but its rules (format_read of judge/rule.h). Patterns are checked here and compiled to machine code on first use. It lives
   in the arena, its compiled patterns until format_release. */
MUST_CHECK int format_decode(const struct json *root, struct arena *arena,
                             struct format **ret_format, struct err *err);
void format_release(struct format *format);

bool format_has_series(const struct format *format, struct str name);
/* Whether a pattern reads this fact; and why no log of the format states it, or NULL if the format gives no reason. */
bool format_reads(const struct format *format, const char *fact);
struct str format_absent(const struct format *format, const char *fact);
const struct format *format_find(const struct format_set *set, struct str id);
