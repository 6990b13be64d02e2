/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/vocabulary.h"

#include "codec/json_table.h"

#define WORDS_MAX      128
#define ALIASES_MAX    64
#define DIMENSIONS_MAX 32

/* The bytes of the data file, for archives and documents that carry none of their own. */
__asm__(".section .rodata\n"
        ".global vocabulary_json\n"
        ".global vocabulary_json_end\n"
        "vocabulary_json:\n"
        ".incbin \"manifests/vocabulary.json\"\n"
        "vocabulary_json_end:\n"
        ".byte 0\n"
        ".previous\n");
extern const char vocabulary_json[];
extern const char vocabulary_json_end[];

struct str vocabulary_builtin_text(void)
{
    return (struct str){vocabulary_json, (size_t)(vocabulary_json_end - vocabulary_json)};
}

const struct vocabulary *vocabulary_builtin(struct arena *arena)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    const struct vocabulary *vocabulary = NULL;
    struct err err = {0};
    struct json root;
    int status = json_parse(vocabulary_builtin_text(), "manifests/vocabulary.json", &doc, &err);
    ASSERT(status == 0); /* a test makes sure of it */
    root = json_root(&doc);
    status = vocabulary_decode(&root, arena, &vocabulary, &err);
    ASSERT(status == 0);
    return vocabulary;
}

const struct vocabulary *vocabulary_of(const struct json *at)
{
    const struct vocabulary *vocabulary = json_context(at);
    ASSERT(vocabulary);
    return vocabulary;
}

static bool is_one_of(struct str name, const struct str *items, size_t n)
{
    for (size_t idx = 0; idx < n; idx++) {
        if (str_eq(items[idx], name)) {
            return true;
        }
    }
    return false;
}

const struct word *words_find(const struct words *words, struct str name)
{
    for (size_t idx = 0; idx < words->n; idx++) {
        const struct word *word = &words->items[idx];
        if (str_eq(word->name, name) || is_one_of(name, word->aliases, word->n_aliases)) {
            return word;
        }
    }
    return NULL;
}

bool unit_is(const struct vocabulary *vocabulary, struct str unit, const char *dimension)
{
    const struct word *word = words_find(&vocabulary->units, unit);
    return word && str_eq_z(word->dimension, dimension);
}

bool word_is_rate(const struct word *unit)
{
    static const char *const DIMENSIONS[] = {"rate",       "step_rate", "bandwidth",
                                             "operations", "compute",   NULL};
    return str_eq_any(unit->dimension, DIMENSIONS);
}

bool vocabulary_has_condition(const struct vocabulary *vocabulary, struct str name)
{
    return is_one_of(name, vocabulary->conditions, vocabulary->n_conditions);
}

int check_precision(const struct json *at, const char *key, struct str value, struct err *err)
{
    const struct words *words = &vocabulary_of(at)->precisions;
    const struct word *word = value.ptr ? words_find(words, value) : NULL;
    return !value.ptr || (word && str_eq(word->name, value))
               ? 0
               : json_fail(at, err, "%s: \"%.*s\" is not one of the words for it (%s, %s, ...)",
                           key, (int)(value.len < 100 ? value.len : 100), value.ptr,
                           words->items[0].name.ptr, words->items[1].name.ptr);
}

/* ---- in schemas ---- */

static void put_words(struct json_out *out, const struct words *words, bool with_aliases)
{
    for (size_t idx = 0; idx < words->n; idx++) {
        jw_str(out, NULL, words->items[idx].name);
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
        const struct words one = {&v->units.items[idx], 1};
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
           str_of(arena_printf(&arena, "{\"properties\":{\"metric\":{\"const\":\"%.*s\"}}}",
                               STR_ARG(metric->name))));
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

/* Which members the words of one list have. */
struct shape {
    const char *key;
    const struct json_field *fields;
    size_t n_fields;
};

static const struct json_field UNIT_FIELDS[] = {
    ROW("name", struct word, name, JSON_REQUIRED),
    ROW("dimension", struct word, dimension, JSON_REQUIRED),
    ROW("kind", struct word, kind, JSON_REQUIRED),
    ROW_ANY("aliases", JSON_REQUIRED),
};
static const struct json_field METRIC_FIELDS[] = {
    ROW("name", struct word, name, JSON_REQUIRED),
    ROW("dimension", struct word, dimension, JSON_REQUIRED),
    ROW("max", struct word, max, JSON_REQUIRED),
    ROW_ANY("aliases", JSON_REQUIRED),
};
static const struct json_field PRECISION_FIELDS[] = {
    ROW("name", struct word, name, JSON_REQUIRED),
    ROW("class", struct word, kind, JSON_REQUIRED),
    ROW_ANY("aliases", JSON_REQUIRED),
};

static int decode_word(const struct json *at, struct arena *arena, const struct shape *shape,
                       struct words *words, struct err *err)
{
    struct word word = {0};
    struct json aliases;
    if (json_decode(at, arena, shape->fields, shape->n_fields, &word, err) < 0 ||
        json_member(at, "aliases", &aliases, err) < 0 ||
        json_str_list(&aliases, arena, ALIASES_MAX, &word.aliases, &word.n_aliases, err) < 0) {
        return -1;
    }
    if (words_find(words, word.name)) {
        return json_fail(at, err, "\"%.40s\" occurs twice", word.name.ptr);
    }
    for (size_t idx = 0; idx < word.n_aliases; idx++) {
        if (words_find(words, word.aliases[idx]) || str_eq(word.aliases[idx], word.name)) {
            return json_fail(at, err, "\"%.40s\" occurs twice", word.aliases[idx].ptr);
        }
    }
    words->items[words->n++] = word;
    return 0;
}

static int decode_words(const struct json *root, struct arena *arena, const struct shape *shape,
                        struct words *words, struct err *err)
{
    struct json list;
    struct json item;
    size_t n = 0;
    if (json_member(root, shape->key, &list, err) < 0 ||
        json_expect_array(&list, WORDS_MAX, &n, err) < 0) {
        return -1;
    }
    words->items = arena_array(arena, struct word, n + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (decode_word(&item, arena, shape, words, err) < 0) {
            return -1;
        }
    }
    return n > 1 ? 0 : json_fail(&list, err, "expected at least two words, found %zu", n);
}

static int check_dimensions(const struct json *root, struct arena *arena,
                            const struct vocabulary *v, struct err *err)
{
    const struct words *lists[] = {&v->units, &v->metrics};
    struct json list;
    struct str *names;
    size_t n;
    if (json_member(root, "dimensions", &list, err) < 0 ||
        json_str_list(&list, arena, DIMENSIONS_MAX, &names, &n, err) < 0) {
        return -1;
    }
    for (size_t which = 0; which < ARRAY_LEN(lists); which++) {
        for (size_t idx = 0; idx < lists[which]->n; idx++) {
            const struct word *word = &lists[which]->items[idx];
            if (!is_one_of(word->dimension, names, n)) {
                return json_fail(&list, err, "\"%.40s\" has dimension \"%.40s\", which is unknown",
                                 word->name.ptr, word->dimension.ptr);
            }
        }
    }
    return 0;
}

int vocabulary_decode(const struct json *root, struct arena *arena, const struct vocabulary **ret,
                      struct err *err)
{
    static const struct json_field FIELDS[] = {
        ROW_NUMBER("schema_version", 1),      ROW_ANY("dimensions", JSON_REQUIRED),
        ROW_ANY("units", JSON_REQUIRED),      ROW_ANY("metrics", JSON_REQUIRED),
        ROW_ANY("precisions", JSON_REQUIRED), ROW_ANY("conditions", JSON_REQUIRED),
    };
    const struct shape units = {"units", UNIT_FIELDS, ARRAY_LEN(UNIT_FIELDS)};
    const struct shape metrics = {"metrics", METRIC_FIELDS, ARRAY_LEN(METRIC_FIELDS)};
    const struct shape precisions = {"precisions", PRECISION_FIELDS, ARRAY_LEN(PRECISION_FIELDS)};
    struct vocabulary *v = arena_new(arena, struct vocabulary);
    struct json list;
    int64_t version = 0;
    if (json_decode(root, arena, FIELDS, ARRAY_LEN(FIELDS), &version, err) < 0 ||
        decode_words(root, arena, &units, &v->units, err) < 0 ||
        decode_words(root, arena, &metrics, &v->metrics, err) < 0 ||
        decode_words(root, arena, &precisions, &v->precisions, err) < 0 ||
        check_dimensions(root, arena, v, err) < 0 ||
        json_member(root, "conditions", &list, err) < 0 ||
        json_str_list(&list, arena, CONDITION_NAMES_MAX, &v->conditions, &v->n_conditions, err) <
            0) {
        return -1;
    }
    *ret = v;
    return 0;
}
