/* SPDX-License-Identifier: Apache-2.0 */
/* Log formats as data (manifests/formats/ID.json): patterns with named groups, scope, unit, prefixes to strip, how a run
   begins and ends, facts, and the rules known for such logs. Parsing is fed with chunks of any size and holds one line at a
   time, so a log of any length needs the same memory besides its samples. */
#ifndef LOG_FORMAT_H
#define LOG_FORMAT_H

#include "codec/json.h"
#include "log/series.h"

/* A longer line (after splitting at LF and CR, NULs not counted) is ERR_PARSE with its byte offset. */
#define FORMAT_LINE_MAX    (1u << 20)
#define FORMAT_SAMPLES_MAX (1u << 24)
#define FORMATS_MAX        128
#define FORMAT_SERIES_MAX  16
#define FORMAT_FACTS_MAX   96
#define FORMAT_RULES_MAX   64
#define FORMAT_RANKS_MAX   65536 /* different ranks in one log */

struct format; /* compiled; opaque */
struct rule;   /* judge/rule.h */
struct vocabulary;

/* The role of a format's lines in a log that several formats read. */
enum format_role {
    FORMAT_FIRST, /* a protocol that says more than the program's own lines: always the log's format */
    FORMAT_OWN,     /* the program's own lines: two such formats are ambiguous */
    FORMAT_SIDECAR, /* lines of a protocol that programs print in addition to their own */
    FORMAT_GENERIC, /* any program's: used if no other format reads anything */
    FORMAT_NAMED, /* only if asked for by name: another reading of lines that a format above reads */
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

struct str format_id(const struct format *format);
struct str format_title(const struct format *format);
struct str format_framework(const struct format *format);
bool format_has_series(const struct format *format, struct str name);
enum format_role format_role(const struct format *format);
/* It was made from the lines of a log, and its file still says so: what it gives is not known to be right. */
bool format_is_proposed(const struct format *format);
const struct vocabulary *format_vocabulary(const struct format *format);
/* As long-lived as the format. */
void format_set_rules(struct format *format, const struct rule *rules, size_t n);
size_t format_rules(const struct format *format, const struct rule **ret_rules);
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

#endif
