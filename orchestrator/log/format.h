/* SPDX-License-Identifier: Apache-2.0 */
/* Log formats as data (manifests/formats/ID.json): patterns with named groups, scope, unit, prefixes to strip, how a run
   begins and ends, facts, and the rules known for such logs. Parsing is fed with chunks of any size and holds one line at a
   time, so a log of any length needs the same memory besides its samples. */
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
    bool
        is_proposed; /* made from the lines of a log, and its file still says so: what it gives is not known to be right */
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
    uint64_t launch_mask; /* of launchers and NCCL (log/launcher.h) */
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

/* All but its rules (format_read of judge/rule.h). Patterns are checked here and compiled to machine code on first use. It lives in the
   arena, its compiled patterns until format_release. */
MUST_CHECK int format_decode(const struct json *root, struct arena *arena,
                             struct format **ret_format, struct err *err);
void format_release(struct format *format);

bool format_has_series(const struct format *format, struct str name);
/* Whether a pattern reads this fact; and why no log of the format states it, or NULL if the format gives no reason. */
bool format_reads(const struct format *format, const char *fact);
struct str format_absent(const struct format *format, const char *fact);
const struct format *format_find(const struct format_set *set, struct str id);

/* Parsing one log. */
struct parser;
MUST_CHECK int parser_new(const struct format *format, struct arena *arena,
                          struct parser **ret_parser, struct err *err);
MUST_CHECK int parser_feed(struct parser *parser, const char *ptr, size_t len, struct err *err);
/* The result lives in the arena given to parser_new. */
MUST_CHECK int parser_finish(struct parser *parser, struct measurement *ret_measurement,
                             struct err *err);
void parser_free(struct parser *parser);

/* A line of a log, without the tags of launchers. */
struct line {
    struct str text;
    size_t from, end; /* in the text that is searched; the latter is its line break */
    uint64_t mask;    /* literals that it holds */
    int32_t rank;     /* -1: no tag says it */
    int64_t number;   /* from 1, counted by LF */
    bool is_cut;      /* the last one, without a line break */
};
typedef void line_visit(void *ctx, const struct line *line);
/* A parser of no format, by which every line goes to `visit`; fed like others. It lives in the arena until parser_free_lines. */
struct parser *parser_new_lines(struct arena *arena, line_visit *visit, void *ctx);
MUST_CHECK int parser_finish_lines(struct parser *parser, int64_t *ret_n_lines, struct err *err);
void parser_free_lines(struct parser *parser);

/* Before the first byte: leaves out the series of quantity score, except for the named one (ptr NULL: none). */
void parser_skip_scores(struct parser *parser, struct str named);
/* Before the first byte: series record the line of each sample. */
void parser_keep_lines(struct parser *parser);

/* Which formats read something in a log: fed like a parser. All of them are tried in one pass. The set outlives the guesser. */
struct guesser;
struct guesser *guesser_new(const struct format_set *set);
MUST_CHECK int guesser_feed(struct guesser *guesser, const char *ptr, size_t len, struct err *err);
/* Those that have read something so far, in the order of the set. Returns how many. */
size_t guesser_found(const struct guesser *guesser, const struct format **ret_formats);
MUST_CHECK int guesser_finish(struct guesser *guesser, struct err *err);
/* Before the next log, whatever became of the last. */
void guesser_restart(struct guesser *guesser);
void guesser_free(struct guesser *guesser);
/* Whether a file is a log by its path: "train.log", "logs/a.txt", compressed or not. */
bool guess_is_log_name(struct str path);
CLEANUP_POINTER(guesser, struct guesser, guesser_free);
