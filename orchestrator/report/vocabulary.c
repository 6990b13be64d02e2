/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/vocabulary.h"

#include "base/embed.h"
#include "codec/json_table.h"

#define WORDS_MAX      128
#define ALIASES_MAX    64
#define DIMENSIONS_MAX 32

/* The data file, for archives and documents that carry none of their own. */
EMBED(vocabulary_json, "manifests/vocabulary.json");

struct str vocabulary_builtin_text(void)
{
    return EMBEDDED(vocabulary_json);
}

const struct vocabulary *vocabulary_builtin(struct arena *arena)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    const struct vocabulary *vocabulary = NULL;
    struct err err = {0};
    int status = json_parse(vocabulary_builtin_text(), "manifests/vocabulary.json", &doc, &err);
    ASSERT(status == 0); /* a test makes sure of it */
    status = vocabulary_decode(&doc.root, arena, &vocabulary, &err);
    ASSERT(status == 0);
    return vocabulary;
}

const struct vocabulary *vocabulary_of(const struct json *at)
{
    const struct vocabulary *vocabulary = json_context(at);
    ASSERT(vocabulary);
    return vocabulary;
}

const struct word *words_find(const struct words *words, struct str name)
{
    return map_get(&words->by_name, name);
}

bool unit_is(const struct vocabulary *vocabulary, struct str unit, const char *dimension)
{
    const struct word *word = words_find(&vocabulary->units, unit);
    return word && str_eq_z(word->dimension, dimension);
}

/* Seconds in one of it; 0: no unit of time. */
static double seconds_of(const struct word *unit)
{
    static const struct {
        const char *kind;
        double seconds;
    } TIMES[] = {{"seconds", 1},
                 {"milliseconds", 1e-3},
                 {"microseconds", 1e-6},
                 {"minutes", 60},
                 {"hours", 3600}};
    for (size_t idx = 0; unit && idx < ARRAY_LEN(TIMES); idx++) {
        if (str_eq_z(unit->kind, TIMES[idx].kind)) {
            return TIMES[idx].seconds;
        }
    }
    return 0;
}

double unit_time_ratio(const struct vocabulary *vocabulary, struct str from, struct str to)
{
    double of = seconds_of(words_find(&vocabulary->units, to));
    return of > 0 ? seconds_of(words_find(&vocabulary->units, from)) / of : 0;
}

bool word_is_rate(const struct word *unit)
{
    static const char *const DIMENSIONS[] = {"rate",       "step_rate", "bandwidth",
                                             "operations", "compute",   NULL};
    return str_eq_any(unit->dimension, DIMENSIONS);
}

bool vocabulary_has_condition(const struct vocabulary *vocabulary, struct str name)
{
    return str_is_in(name, vocabulary->conditions, vocabulary->n_conditions);
}

int words_check(const struct json *at, const char *key, const struct words *words, struct str value,
                struct err *err)
{
    const struct word *word = words_find(words, value);
    return word && str_eq(word->name, value)
               ? 0
               : json_fail(at, err, "%s: \"%.*s\" is not one of the words for it (%s, %s, ...)",
                           key, (int)(value.len < 100 ? value.len : 100), value.ptr,
                           words->items[0].name.ptr, words->items[1].name.ptr);
}

int check_precision(const struct json *at, const char *key, struct str value, struct err *err)
{
    return value.ptr ? words_check(at, key, &vocabulary_of(at)->precisions, value, err) : 0;
}

/* ---- in schemas ---- */

static void put_words(struct json_out *out, const struct words *words, bool with_aliases)
{
    for (size_t idx = 0; idx < words->n; idx++) {
        if (words->items[idx].name.len) { /* of a score without a unit */
            jw_str(out, NULL, words->items[idx].name);
        }
        for (size_t at = 0; with_aliases && at < words->items[idx].n_aliases; at++) {
            jw_str(out, NULL, words->items[idx].aliases[at]);
        }
    }
}

static void put_units_of(struct json_out *out, const struct vocabulary *v,
                         const struct word *metric)
{
    jw_array(out, "enum");
    for (size_t idx = 0; idx < v->units.n; idx++) {
        const struct words one = {.items = &v->units.items[idx], .n = 1};
        if (str_eq(one.items->dimension, metric->dimension)) {
            put_words(out, &one, true);
        }
    }
    jw_end_array(out);
}

/* A cell of a metric has a unit of its dimension, and an id that names it. */
static void put_cell_rule(struct json_out *out, const struct vocabulary *v,
                          const struct word *metric)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    jw_object(out, NULL);
    jw_raw(out, "if",
           str_printf(&arena, "{\"properties\":{\"metric\":{\"const\":\"%.*s\"}}}",
                      STR_ARG(metric->name)));
    jw_object(out, "then");
    jw_object(out, "properties");
    jw_object(out, "unit");
    put_units_of(out, v, metric);
    jw_end_object(out);
    jw_object(out, "cell");
    jw_z(out, "pattern", arena_printf(&arena, "#%.*s(\\.[1-9][0-9]*)?$", STR_ARG(metric->name)));
    jw_end_object(out);
    jw_end_object(out);
    jw_end_object(out);
    jw_end_object(out);
}

void vocabulary_put(struct json_out *out, const char *list, const void *context)
{
    const struct vocabulary *v = context;
    bool was_compact = out->is_compact;
    out->is_compact = true;
    if (strcmp(list, "conditions") == 0) {
        for (size_t idx = 0; idx < v->n_conditions; idx++) {
            jw_str(out, NULL, v->conditions[idx]);
        }
    } else if (strcmp(list, "cells") == 0) {
        for (size_t idx = 0; idx < v->metrics.n; idx++) {
            put_cell_rule(out, v, &v->metrics.items[idx]);
        }
    } else {
        bool is_units = strcmp(list, "units") == 0;
        put_words(out,
                  is_units                       ? &v->units
                  : strcmp(list, "metrics") == 0 ? &v->metrics
                                                 : &v->precisions,
                  is_units);
    }
    out->is_compact = was_compact;
}

/* ---- decoding ---- */

#define ALIASES                                                                                    \
    ROW_STRS("aliases", struct word, aliases, n_aliases, JSON_REQUIRED | JSON_UNIQUE,              \
             .max = ALIASES_MAX, .form = &ALIAS)
static const struct json_form KEY = {.pattern = "^[a-z][a-z0-9_]*$", .max = 64};
static const struct json_form UNIT_NAME = {.max = 32};
static const struct json_form ALIAS = {.is_filled = true, .max = 64};
static const struct json_field UNIT_ROWS[] = {
    ROW("name", struct word, name, JSON_REQUIRED, .form = &UNIT_NAME),
    ROW("dimension", struct word, dimension, JSON_REQUIRED, .form = &KEY),
    ROW("kind", struct word, kind, JSON_REQUIRED, .form = &KEY),
    ALIASES,
};
static const struct json_field METRIC_ROWS[] = {
    ROW("name", struct word, name, JSON_REQUIRED, .form = &KEY),
    ROW("dimension", struct word, dimension, JSON_REQUIRED, .form = &KEY),
    ROW("max", struct word, max, JSON_REQUIRED, .schema = "\"exclusiveMinimum\": 0"),
    ALIASES,
};
static const struct json_field PRECISION_ROWS[] = {
    ROW("name", struct word, name, JSON_REQUIRED, .form = &KEY),
    ROW("class", struct word, kind, JSON_REQUIRED, .form = &KEY),
    ALIASES,
};
struct vocabulary_text { /* as it stands in the file */
    struct vocabulary v;
    struct str *dimensions;
    size_t n_dimensions;
};
#define V struct vocabulary_text
static const struct json_field ROWS[] = {
    ROW_NUMBER("schema_version", 1),
    ROW_STRS("dimensions", V, dimensions, n_dimensions, JSON_REQUIRED | JSON_UNIQUE,
             .max = DIMENSIONS_MAX, .form = &KEY),
    ROW_LIST("units", V, v.units.items, v.units.n, UNIT_ROWS, JSON_REQUIRED, .min = 2,
             .max = WORDS_MAX),
    ROW_LIST("metrics", V, v.metrics.items, v.metrics.n, METRIC_ROWS, JSON_REQUIRED, .min = 2,
             .max = WORDS_MAX),
    ROW_LIST("precisions", V, v.precisions.items, v.precisions.n, PRECISION_ROWS, JSON_REQUIRED,
             .min = 2, .max = WORDS_MAX),
    ROW_STRS("conditions", V, v.conditions, v.n_conditions, JSON_REQUIRED | JSON_UNIQUE,
             .max = CONDITION_NAMES_MAX, .form = &KEY),
};
const struct json_document VOCABULARY_DOCUMENT = {
    JSON_DOCUMENT("vocabulary.json", "units, metrics, precisions and conditions", ROWS),
    .about = "manifests/vocabulary.json; the meaning of each key is in manifests/README.md"};

/* No name or alias stands for two words. */
static int index_words(const struct json *root, struct arena *arena, const char *key,
                       struct words *words, struct err *err)
{
    int result = 0;
    for (size_t idx = 0; result == 0 && idx < words->n; idx++) {
        struct word *word = &words->items[idx];
        for (size_t at = 0; result == 0 && at <= word->n_aliases; at++) {
            struct str name = at ? word->aliases[at - 1] : word->name;
            if (!map_add(&words->by_name, name, word)) {
                result =
                    json_fail(root, err, "%s[%zu]: \"%.40s\" occurs twice", key, idx, name.ptr);
            }
        }
    }
    arena_adopt(arena, words->by_name.entries);
    arena_adopt(arena, words->by_name.slots);
    return result;
}

static int check_dimensions(const struct json *root, const struct vocabulary_text *text,
                            const struct words *words, struct err *err)
{
    for (size_t idx = 0; idx < words->n; idx++) {
        const struct word *word = &words->items[idx];
        if (!str_is_in(word->dimension, text->dimensions, text->n_dimensions)) {
            return json_fail(root, err,
                             "dimensions: \"%.40s\" has dimension \"%.40s\", which is unknown",
                             word->name.ptr, word->dimension.ptr);
        }
    }
    return 0;
}

int vocabulary_decode(const struct json *root, struct arena *arena, const struct vocabulary **ret,
                      struct err *err)
{
    struct vocabulary_text *text = arena_new(arena, struct vocabulary_text);
    if (json_decode(root, arena, ROWS, ARRAY_LEN(ROWS), text, err) < 0 ||
        index_words(root, arena, "units", &text->v.units, err) < 0 ||
        index_words(root, arena, "metrics", &text->v.metrics, err) < 0 ||
        index_words(root, arena, "precisions", &text->v.precisions, err) < 0 ||
        check_dimensions(root, text, &text->v.units, err) < 0 ||
        check_dimensions(root, text, &text->v.metrics, err) < 0) {
        return -1;
    }
    *ret = &text->v;
    return 0;
}
