/* SPDX-License-Identifier: Apache-2.0 */
/* Units with their dimension, metrics, precisions and condition names, as data: manifests/vocabulary.json. One is read from the data
   folder with the manifests, or with what a run froze; the program holds the one that it was built with. It lives in the arena that
   it was decoded into, and a document carries it to whoever decodes the document (codec/json.h, context). */
#ifndef REPORT_VOCABULARY_H
#define REPORT_VOCABULARY_H

#include "codec/json.h"

#define CONDITION_NAMES_MAX 64 /* of the closed list */

struct word {             /* of a list of units, metrics or precisions */
    struct str name;      /* the canonical one */
    struct str dimension; /* of a unit or metric */
    struct str kind;      /* of a unit, what it counts; of a precision, those that are the same */
    double max;           /* of a metric */
    struct str *aliases;
    size_t n_aliases;
};

struct words {
    struct word *items;
    size_t n;
};

struct vocabulary {
    struct words units, metrics, precisions;
    struct str *conditions; /* sorted */
    size_t n_conditions;
};

MUST_CHECK int vocabulary_decode(const struct json *root, struct arena *arena,
                                 const struct vocabulary **ret, struct err *err);
/* Its text and what it says, as the program was built. */
struct str vocabulary_builtin_text(void);
const struct vocabulary *vocabulary_builtin(struct arena *arena);
/* What the document at hand is decoded with. */
const struct vocabulary *vocabulary_of(const struct json *at);

/* By name or alias; NULL where there is none. */
const struct word *words_find(const struct words *words, struct str name);
bool unit_is(const struct vocabulary *vocabulary, struct str unit, const char *dimension);
/* A unit of something a second: samples, steps, bytes, operations. */
bool word_is_rate(const struct word *unit);
bool vocabulary_has_condition(const struct vocabulary *vocabulary, struct str name);
/* Canonical precisions, for ids and commands of a report. NULL is none. */
MUST_CHECK int check_precision(const struct json *at, const char *key, struct str value,
                               struct err *err);

#endif
