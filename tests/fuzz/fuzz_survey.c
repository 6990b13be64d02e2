/* SPDX-License-Identifier: Apache-2.0 */
/* A log that no format reads: the survey does not depend on how its bytes arrive, and a suggested format is valid, with a pattern
   within manifests/schema/format.json. */
#include "tests/fuzz/fuzz.h"

#include "draft/suggest.h"
#include "judge/rule.h"

#define INPUT_BYTES_MAX (1u << 16)
#define FORMAT_BYTES    (1u << 20)
#define PATTERN_MAX     2048

static struct survey *look(const struct vocabulary *v, struct str text, size_t piece)
{
    struct survey *survey = survey_new(v);
    struct err err = {0};
    int status = 0;
    for (size_t at = 0; status == 0 && at < text.len; at += piece) {
        status =
            survey_feed(survey, text.ptr + at, text.len - at < piece ? text.len - at : piece, &err);
    }
    status = status == 0 ? survey_finish(survey, &err) : status;
    ASSERT(status == 0);
    return survey;
}

static void same(const struct survey *a, const struct survey *b)
{
    const struct survey_number *x;
    const struct survey_number *y;
    size_t n = survey_numbers(a, &x);
    size_t m = survey_numbers(b, &y);
    ASSERT(n == m);
    for (size_t idx = 0; idx < n; idx++) {
        ASSERT(x[idx].n == y[idx].n && x[idx].first_line == y[idx].first_line);
        ASSERT(str_eq(x[idx].key, y[idx].key) && str_eq(x[idx].unit, y[idx].unit));
        ASSERT(x[idx].n_moments == y[idx].n_moments);
        ASSERT(x[idx].steps.n_same == y[idx].steps.n_same);
    }
}

static void suggest(const struct vocabulary *v, const struct survey *survey)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf text = {0};
    CLEANUP(strbuf) struct strbuf pattern = {0};
    CLEANUP(json_doc) struct json_doc doc = {0};
    const struct suggested_format as = {STR_LIT("f"), STR_LIT("s"), 0};
    struct suggestions list = {0};
    struct format *format = NULL;
    struct err err = {0};
    int status = suggest_rank(&arena, survey, v, STR_EMPTY, &list, &err);
    ASSERT(status == 0);
    strbuf_init(&pattern, FORMAT_BYTES);
    strbuf_init(&text, FORMAT_BYTES);
    if (!suggest_best(&list)) {
        return;
    }
    if (!suggest_pattern(&list.items[0], &pattern)) {
        return;
    }
    ASSERT(pattern.len <= PATTERN_MAX);
    suggest_format(&list, &as, &text);
    status = json_parse(strbuf_str(&text), "f", &doc, &err);
    ASSERT(status == 0);
    doc.root.context = v;
    status = format_read(&doc.root, &arena, &format, &err);
    ASSERT(status == 0);
    format_release(format);
}

FUZZ(arena, text)
{
    const struct vocabulary *v = vocabulary_builtin(arena);
    if (text.len > INPUT_BYTES_MAX) {
        return;
    }
    CLEANUP(survey) struct survey *whole = look(v, text, text.len + 1);
    CLEANUP(survey) struct survey *parts = look(v, text, 7);
    same(whole, parts);
    suggest(v, whole);
}
