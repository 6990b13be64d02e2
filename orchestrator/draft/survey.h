/* SPDX-License-Identifier: Apache-2.0 */
/* Which numbers recur in a log that no format reads: each with the words before it, the word after it or its column's header, and the step on
   the same line. One pass in bounded memory; draft/suggest.h makes a format from it. */
#ifndef DRAFT_SURVEY_H
#define DRAFT_SURVEY_H

#include "load/measure.h"
#include "report/vocabulary.h"

/* Words that say whose line it is, near its beginning: "[val] iter 5", "Test: [1/12]". */
#define SURVEY_WHOSE_BYTES 200
extern const char *const SURVEY_TRAIN[], *const SURVEY_EVAL[]; /* NULL after the last */

#define SURVEY_WRITERS_MAX 256  /* processes of one log that can be noticed */
#define SURVEY_NUMBERS_MAX 512  /* different ones; more are counted and left out */
#define SURVEY_LINE_BYTES  2048 /* of a line that are looked at */
#define SURVEY_TOKENS_MAX  64   /* numbers of a line that are looked at */

/* The step on the lines of a number. */
struct survey_steps {
    struct str key, gap;             /* as of a number; key may be empty if a total is next to it */
    struct str epoch_key, epoch_gap; /* likewise */
    int64_t n, n_epochs;             /* lines that have one */
    int64_t n_back;                  /* a step that is less than the one before it */
    int64_t n_back_same;             /* of these, those whose epoch is not later */
    int64_t n_back_bare; /* of these, those with no later epoch on this line or between both */
    int64_t n_between;   /* of n_back_same, those that do not go back to the first step */
    int64_t n_same;      /* the step, and its epoch, of the line before */
    int64_t n_full;      /* step and total are equal */
    int64_t first, last, first_epoch, last_epoch, total;
    double seen_epoch; /* of any line so far; below 0: none */
    int64_t seen_epoch_lines;
    bool is_after;    /* it comes after the number */
    bool has_total;   /* "10/100" */
    bool is_changing; /* not the same words on every line */
};

/* Of the bars that reached their end, every second and every third: loops that take turns differ there. */
#define SURVEY_TURNS_MAX 3
struct survey_turns {
    int64_t n;
    double min[SURVEY_TURNS_MAX], max[SURVEY_TURNS_MAX];
};

struct survey_number {
    struct str key;  /* words before it, or the header of its column */
    struct str gap;  /* between the key and it */
    struct str unit; /* word after it, of the vocabulary or one over it ("s/it"); or empty */
    struct str head; /* of a table: its first line; ptr NULL: no table */
    size_t column;
    bool is_clock; /* not a number: the time stamps of lines with a step */
    bool is_span;  /* "00:35": minutes and seconds, or hours, minutes, seconds */
    bool is_bar;   /* progress bars: a figure of all steps so far */
    bool is_open;  /* of bars without a length: "400it [00:04, 94.50it/s]" */
    bool has_open; /* a bar that did not reach its end */
    bool was_full; /* the last one did */
    double last_full;
    struct survey_turns turns[SURVEY_TURNS_MAX + 1]; /* by 2 and by 3 */
    bool is_grouped;                                 /* "1,234.5" */
    char si;         /* 'G' of "436G", which value, min and max leave out; 0: none */
    bool is_scaled;  /* "436K", "1.05M" on some or all lines: value, min and max are in ones */
    struct str lead; /* of a bar: its first word, or empty */
    int64_t n, first_line;
    int64_t n_up;                             /* more than the one before it */
    int64_t n_moments;                        /* lines that begin with a date and a time */
    int64_t n_epoch_only;                     /* lines that count epochs and no steps */
    int64_t first_rank, last_rank, rank_step; /* of its lines; -1: none */
    int64_t last_step_rank;
    bool is_of_ranks;              /* several ranks print it, each for the same steps */
    bool is_doubled;               /* a line has it twice, as where lines were torn */
    int64_t first_seen, last_seen; /* lines that have it, counted without empty ones */
    const uint16_t
        *before;  /* [N]: lines before its first that are there N times, alike but for digits */
    bool is_eval; /* of lines of an evaluation */
    double first, last, min, max;
    struct str example; /* its first line, cut, plain ASCII */
    struct survey_steps steps;
};

struct survey;
struct survey *survey_new(const struct vocabulary *vocabulary);
MUST_CHECK int survey_feed(struct survey *survey, const char *ptr, size_t len, struct err *err);
MUST_CHECK int survey_finish(struct survey *survey, struct err *err);
/* The log's first MEASURE_BYTES_MAX bytes (load/measure.h), to their end. */
MUST_CHECK int survey_log(struct survey *survey, const char *path, const struct log_head *head,
                          struct err *err);
void survey_free(struct survey *survey);
static inline void survey_cleanup(struct survey **survey)
{
    survey_free(*survey);
}

/* In the order in which they were seen; of the survey. */
size_t survey_numbers(const struct survey *survey, const struct survey_number **ret_numbers);
/* Lines seen, numbers left out, lines that were too long or had too many numbers, and numbers with a decimal comma, which are not read. */
struct survey_counts {
    int64_t n_lines, n_left_out, n_cut, n_commas;
    int64_t n_configs; /* records whose settings are not those of the one before */
};
struct survey_counts survey_counts(const struct survey *survey);

#endif
