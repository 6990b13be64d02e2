/* SPDX-License-Identifier: Apache-2.0 */
/* Three readers of a log's bytes: a parser by its format, a parser that hands on every line, and a guesser, which finds the
   formats that read it. All are fed with chunks of any size and hold one line at a time, so a log of any length needs the same
   memory besides its samples. */
#pragma once

#include "log/format.h"

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
