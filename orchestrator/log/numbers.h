/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a line, each with the words around it. */
#pragma once

#include "base/str.h"
#include "codec/pattern.h"
#include "log/survey.h"

enum token_kind { TOKEN_NUMBER, TOKEN_FRACTION, TOKEN_SPAN, TOKEN_MOMENT, TOKEN_OTHER };

struct token {
    enum token_kind kind;
    size_t at, end; /* in the line; with its unit */
    struct str text;
    struct str key, gap, unit;
    int64_t step, total; /* of a fraction; step also of a whole number */
    bool is_whole, has_spread;
    bool is_torn; /* the unit behind it may be the name of the next number: neither has it */
    char si;      /* 'K' of "436K", "1.2K tok/s"; 0: none */
};

struct survey_reader {
    const struct vocabulary *vocabulary; /* borrowed */
    struct patterns patterns;            /* owned */
};
/* At most SURVEY_TOKENS_MAX of the line's numbers. */
size_t numbers_tokens(struct survey_reader *r, struct str text, struct token *ret_tokens);
/* "it", "step", "batch": words for a step. */
bool numbers_is_step_word(struct str word);
bool numbers_is_epoch_word(struct str word);
/* Lower case, with "_" before a capital that follows a lower-case letter: "SamplesPerSec" is "samples_per_sec"; and with blanks
   for "_". */
struct str numbers_snake(struct str name, char *buf, size_t size);
struct str numbers_words(struct str name, char *buf, size_t size);
/* Whether one of the words is a word of the text; words in lower case. */
bool numbers_has_word(struct str text, const char *words);
/* Whether one of the words is between "_" of a name in snake case. */
bool numbers_name_has(struct str name, const char *words);
/* The last of a key's words, in lower case, in buf. */
struct str numbers_last_word(struct str key, char *buf, size_t size);

/* Whether a word for an evaluation stands on the line before any word for training. */
bool numbers_is_of_eval(struct str text);
/* Likewise one for training before any for an evaluation. */
bool numbers_is_of_training(struct str text);
/* A progress bar; an open one has no length: "400it [00:04, 94.50it/s]". */
bool numbers_is_bar(struct survey_reader *r, struct str text);
bool numbers_is_open_bar(struct survey_reader *r, struct str text);

/* The rank that a line names ("rank 3", "[rank3]:", "GPU3:", "[3] " at its beginning), or -1. */
int64_t numbers_rank(struct survey_reader *r, struct str text);

/* The unit with this name, also of "images per second"; or NULL. */
const struct word *numbers_unit(const struct vocabulary *v, struct str text);
/* "img/s" of "img/s/gpu", which sets *ret_is_of_one; else the unit. */
struct str numbers_unit_of_one(struct str unit, bool *ret_is_of_one);
