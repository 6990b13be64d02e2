/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a log as records of named values, where no format names them: which numbers recur, each with the words before it,
   the word after it or its column's header, and what stands on the same line. One pass in bounded memory; log/arithmetic.h checks
   the log by it, draft/suggest.h makes a format from it. */
#pragma once

#include "log/format.h"
#include "report/vocabulary.h"

/* Words that say whose line it is, near its beginning: "[val] iter 5", "Test: [1/12]". */
#define SURVEY_WHOSE_BYTES 200
extern const char SURVEY_TRAIN[], SURVEY_EVAL[];
/* "Continuing training from global step 900", and "best", "p99": a statistic that is not the mean. */
extern const char SURVEY_RESUMES[], SURVEY_OTHER_STATISTICS[];

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
    int64_t n_same;      /* the step, and its epoch, of the line before */
    int64_t n_full;      /* step and total are equal */
    int64_t first, last, first_epoch, total;
    bool is_after;    /* it comes after the number */
    bool has_total;   /* "10/100" */
    bool is_changing; /* not the same words on every line */
};

/* One place of a number, with its line. */
struct survey_point {
    double value;
    double elapsed_s;                 /* of a bar: "[00:32<"; NAN: none */
    double time_s;                    /* the moment that the line begins with; NAN: none */
    int64_t line, step, total, epoch; /* -1: none */
    int32_t rank;                     /* likewise */
    struct str text;                  /* the line, cut; of the first points of a number */
    uint32_t shape;                   /* a hash of the line without its digits */
    bool is_full;                     /* of a bar: it reached its end */
};
#define SURVEY_TEXTS_MAX  64         /* points of a number that keep it */
#define SURVEY_POINTS_MAX (1u << 18) /* of all numbers; later ones are counted in n, and left out */

struct survey_number {
    struct str key;  /* words before it, or the header of its column */
    struct str gap;  /* between the key and it */
    struct str unit; /* word after it, of the vocabulary or one over it ("s/it"); or empty */
    struct str head; /* of a table: its first line; ptr NULL: no table */
    size_t column;
    bool is_clock;   /* not a number: the time stamps of lines with a step */
    bool is_span;    /* "00:35": minutes and seconds, or hours, minutes, seconds */
    bool is_bar;     /* progress bars: a figure of all steps so far */
    bool is_open;    /* of bars without a length: "400it [00:04, 94.50it/s]" */
    bool is_grouped; /* "1,234.5" */
    bool has_spread; /* "1,234.5 +/- 6.7 images/s" */
    char si;         /* 'G' of "436G", which value, min and max leave out; 0: none */
    bool is_scaled;  /* "436K", "1.05M" on some or all lines: value, min and max are in ones */
    struct str lead; /* of a bar: its first word, or empty */
    int64_t n, first_line;
    int64_t n_up;                           /* more than the one before it */
    int64_t n_moments;                      /* lines that begin with a date and a time */
    int64_t n_epoch_only;                   /* lines that count epochs and no steps */
    int64_t n_before_scores, n_before_eval; /* of bars: the line below says an accuracy */
    bool is_of_ranks;                       /* several ranks print it, each for the same steps */
    bool is_pair; /* a line has it several times without a name: one of each device */
    bool is_cell; /* below a head that names its unit */
    bool is_eval; /* of lines of an evaluation */
    double first, last, min, max;
    struct survey_point *points; /* owned by the survey */
    size_t n_points;
    struct str example; /* its first line, cut, plain ASCII */
    struct survey_steps steps;
};

struct survey;
struct survey *survey_new(const struct vocabulary *vocabulary);
MUST_CHECK int survey_feed(struct survey *survey, const char *ptr, size_t len, struct err *err);
MUST_CHECK int survey_finish(struct survey *survey, struct err *err);
void survey_free(struct survey *survey);
CLEANUP_POINTER(survey, struct survey, survey_free);

/* In the order in which they were seen; of the survey. */
size_t survey_numbers(const struct survey *survey, const struct survey_number **ret_numbers);
/* Lines seen, numbers left out, lines that were too long or had too many numbers, numbers with a decimal comma, which are not
   read, and units that may be of either number beside them. */
struct survey_counts {
    int64_t n_lines, n_left_out, n_cut, n_commas, n_torn;
};
struct survey_counts survey_counts(const struct survey *survey);
