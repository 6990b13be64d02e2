/* SPDX-License-Identifier: Apache-2.0 */
/* Units with their dimension, metrics, precisions and condition names, as data: manifests/vocabulary.json. It is read from the
   data folder along with the manifests, or with the inputs that a run froze; the program contains the one that it was built with.
   It lives in the arena that it was decoded into, and a document carries it to its decoders (codec/json.h, context). */
#pragma once

#include "base/map.h"
#include "codec/json_table.h"

#define CONDITION_NAMES_MAX 96 /* of the closed list */

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
    struct map by_name; /* and by alias; the arena's */
};

struct vocabulary {
    struct words units, metrics, precisions;
    struct str *conditions; /* sorted */
    size_t n_conditions;
};

extern const struct json_document VOCABULARY_DOCUMENT;
MUST_CHECK int vocabulary_decode(const struct json *root, struct arena *arena,
                                 const struct vocabulary **ret, struct err *err);
/* The built-in one: its text, and decoded. */
struct str vocabulary_builtin_text(void);
const struct vocabulary *vocabulary_builtin(struct arena *arena);
/* The vocabulary that the document is decoded with. */
const struct vocabulary *vocabulary_of(const struct json *at);

/* By name or alias; NULL if there is none. */
const struct word *words_find(const struct words *words, struct str name);
bool unit_is(const struct vocabulary *vocabulary, struct str unit, const char *dimension);
/* How many `to` one `from` is where both are units of time (1000 for s and ms); 0 where they are not. */
double unit_time_ratio(const struct vocabulary *vocabulary, struct str from, struct str to);
/* A unit of something per second: samples, steps, bytes, operations. */
bool word_is_rate(const struct word *unit);
bool vocabulary_has_condition(const struct vocabulary *vocabulary, struct str name);
/* That it is one of the canonical names. */
MUST_CHECK int words_check(const struct json *at, const char *key, const struct words *words,
                           struct str value, struct err *err);
/* Canonical precisions, for ids and commands of a report. NULL passes. */
MUST_CHECK int check_precision(const struct json *at, const char *key, struct str value,
                               struct err *err);

/* For json_schema: the words of "units", "metrics", "precisions" or "conditions", or the rules of "cells"; context is a
   vocabulary. */
void vocabulary_put(struct json_out *out, const char *list, const void *context);
