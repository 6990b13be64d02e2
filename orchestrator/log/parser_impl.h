/* SPDX-License-Identifier: Apache-2.0 */
/* State of one parse, and what its four files have of each other: parser.c (bytes to lines), parser_line.c (lines to samples),
   completeness.c (the verdict on a run) and guess.c, whose parser only makes lines. */
#pragma once

#include "base/vec.h"
#include "log/launcher.h"
#include "log/parser.h"

/* A place in cleaned text: from here to the end of the line the text is a rank's. */
struct tag {
    size_t at;
    int32_t rank;
};

/* Complete lines, free of NUL, ESC sequences and launcher tags. */
struct region {
    struct str text;
    const struct tag *tags; /* ascending */
    size_t n_tags;
    bool is_cut; /* the last line of the file, which has no line break at its end */
    bool has_cr; /* lines may end in CR */
};

struct rank_state {
    int64_t step;
    int64_t epoch;
    bool has_step;
    bool has_summary;
    int64_t line;   /* of its last sample */
    int64_t line_n; /* processes that have printed one summary there */
};

struct series_state {
    struct sample *items; /* grows by realloc: large blocks move without being copied */
    int64_t *lines;       /* likewise, of each; where they are kept */
    int64_t last_line;
    size_t n;
    size_t n_max;
    struct rank_state *ranks; /* of this run; index rank + 1 */
    size_t n_ranks;
    int64_t ordinal; /* lines of this run */
    bool is_open;    /* between after and until */
};

struct late_fact {
    char *text; /* owned */
    size_t len, max;
    int64_t line; /* 0: none */
};

/* What lines have stated since the last sample: it belongs to this run or the next, which later lines decide. */
struct gap {
    struct late_fact *facts; /* owned; by fact_spec */
    bool has_facts;
    bool has_begin, is_resumed; /* as of the run */
};

/* What parser.c makes lines of. */
struct bytes_state {
    /* The unfinished line, owned, without NULs. */
    char *carry;
    size_t carry_len, carry_max;
    char *scratch[2]; /* owned: cleaned text */
    size_t scratch_max[2];
    VEC(struct tag) tags;
    struct strbuf record;
    uint64_t n_bytes;
    uint64_t line_at; /* byte offset at which the carried line began */
    int64_t n_lines;  /* LFs before the region */
    size_t counted;   /* of the region: LFs up to here are counted in n_lines */
};

#define TOTAL_MAX (1ll << 50) /* steps that a run may state */

/* None of 166 real logs in 32 formats takes more than 1.7 million steps, or more than 88 per byte. */
#define STEPS_OF_LOG  20000000u
#define STEPS_OF_BYTE 128u

/* What the lines of one run have said. */
struct run_state {
    bool has_begin;       /* the line that begins a run */
    bool is_resumed;      /* it resumes from a step of another run */
    bool has_end;         /* the line that ends it */
    bool has_samples;     /* of any series; the next three are about them */
    bool has_date;        /* fact log_date */
    bool has_stepless;    /* a sample whose line has no step */
    bool has_unmeasured;  /* its first line has a rate of 0 */
    int64_t fatal_line;   /* the line that says it failed; 0: none */
    int64_t total_steps;  /* that it is to make; -1: not stated */
    int64_t done_step;    /* that it says it has made, apart from the samples; -1: not stated */
    int64_t log_interval; /* by a fact; 0: not stated */
    int64_t epoch_steps;  /* of an epoch, if the run's steps are counted over all epochs; else 0 */
    int64_t total_epochs; /* by a fact; -1: not stated */
    int64_t epochs_left;  /* after that of its last line */
    /* 1: it states its number of epochs, -1: it counts epochs without stating it, 0: it counts none. */
    int of_epochs;
    struct causes causes;
};
#define RUN_NEW ((struct run_state){.total_steps = -1, .done_step = -1, .total_epochs = -1})

struct parser {
    const struct format *format;   /* borrowed */
    struct arena *arena;           /* borrowed */
    const struct literals *search; /* borrowed from the format; NULL: of a guesser */
    struct records *records;       /* owned; NULL: lines are read as they are */
    struct guesser *guesser;       /* borrowed; if not NULL, it handles the regions */
    line_visit *on_line;           /* if not NULL, it gets all lines */
    void *on_line_ctx;             /* borrowed */
    struct str named;              /* with skips_scores: this one is still read */
    bool skips_scores;
    bool keeps_lines;
    struct series_state *series; /* owned; n_series of the format */
    VEC(struct fact) facts;      /* values in the arena */
    /* Owned; by fact_spec, in this run: 0: none yet, else its index in facts plus one. */
    size_t *fact_of;
    struct gap gap;
    size_t n_open;
    int32_t run;
    struct run_state now;   /* of this run */
    int64_t first_bad_line; /* 0: none */
    char bad_value[40];
    bool is_truncated;
    enum parse_verdict first_run, last_run; /* known when they end */
    struct causes causes;                   /* of the runs before */
    int32_t most_rank;                      /* of launchers' tags; -1: none */
    struct launcher_seen launch;
    struct bytes_state bytes;
    struct patterns patterns;   /* owned */
    struct match_budget budget; /* grows with the bytes */
};

MUST_CHECK int parser_region(struct parser *parser, const struct region *region, struct err *err);
/* Handles what is left after the last line break as one line that may be truncated. */
MUST_CHECK int parser_finish_bytes(struct parser *parser, struct err *err);
MUST_CHECK int guesser_region(struct guesser *guesser, const struct region *region,
                              struct err *err);
/* The line around text[hit], without its literals and its number. *line is the line before it, or has the end 0. */
void parser_line_around(const struct parser *parser, const struct region *region, size_t hit,
                        struct line *line);
/* Of the line from text[from] to text[end]; neither decreases within a region. */
int64_t parser_line_number(struct parser *parser, const struct region *region, size_t from,
                           size_t end);
/* A parser that has no literals, for a guesser; and again from the first byte. */
struct parser *parser_of_lines(const struct format *format, struct arena *arena);
void parser_restart(struct parser *parser);
/* completeness.c: when a run ends, and when the log does. */
void parser_end_run(struct parser *parser);
void parser_judge(struct parser *parser, struct measurement *m);
bool parser_is_done(const struct parser *parser); /* it has made all steps that it was to make */
size_t parser_primary(const struct parser *parser);
/* A series of what has been read so far. */
struct series parser_series(const struct parser *parser, size_t idx);
/* Whether a letter stands in place of a loss's number: "loss: nan", "Loss nan", "\"loss\":inf"; *ret_is_word: the word "nan" or
   "inf" by itself, of a loss that is no evaluation's. */
bool parser_lacks_loss(struct patterns *patterns, struct str line, bool *ret_is_word);
MUST_CHECK int parser_line(struct parser *parser, const struct line *line, struct err *err);
