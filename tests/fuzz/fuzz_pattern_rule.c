/* SPDX-License-Identifier: Apache-2.0 */
/* A pattern (first line) against text (the rest), and the whole input as a rule applied to a made series. For any input: an
   answer or an error, spans within the text, finite values. */
#include "tests/fuzz/fuzz.h"

#include <math.h>

#include "codec/pattern.h"
#include "judge/rule.h"

#define INPUT_BYTES_MAX 65536
#define SAMPLES         40
#define STEPS_MAX       1000000u

static void try_pattern(struct str source, struct str subject)
{
    struct pattern *pattern = NULL;
    struct match_budget budget = {STEPS_MAX};
    struct err err = {0};
    bool found = false;
    if (pattern_new(source, &pattern, &err) < 0) {
        ASSERT(err.code == ERR_MANIFEST);
        return;
    }
    if (pattern_match(pattern, subject, &budget, &found, &err) < 0) {
        ASSERT(err.code == ERR_PARSE);
    } else if (found) {
        for (int group = 0; group < PATTERN_GROUPS_MAX; group++) {
            struct str text = pattern_text(pattern, subject, group);
            ASSERT(!text.ptr ||
                   (text.ptr >= subject.ptr && text.ptr + text.len <= subject.ptr + subject.len));
        }
    }
    err = (struct err){0};
    if (pattern_match_partial(pattern, subject, 3, &budget, &found, &err) < 0) {
        ASSERT(err.code == ERR_PARSE);
    }
    pattern_free(pattern);
}

static void fill(struct sample *samples)
{
    for (int idx = 0; idx < SAMPLES; idx++) {
        samples[idx] = (struct sample){.step = idx,
                                       .value = idx % 13 == 12 ? (double)NAN : 1.0 + idx,
                                       .time_s = 10.0 * idx,
                                       .rank = idx % 3 - 1,
                                       .run = (int16_t)(idx / 30),
                                       .gpus = (int16_t)(idx % 2 ? 8 : -1)};
    }
}

static void try_rule(struct str text)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct sample samples[SAMPLES];
    struct series series = {.name = STR_LIT("s"), .samples = samples, .n = SAMPLES};
    struct measurement m = {.series = &series, .n_series = 1, .n_runs = 2, .warmup_steps = 5};
    const struct rule_case of = {.gpus = 8, .nodes = 1, .batch_per_gpu = 4};
    struct rule rule;
    struct rule_value value;
    struct err err = {0};
    struct json root;
    if (json_parse(text, "fuzz", &doc, &err) < 0) {
        return;
    }
    root = doc.root;
    if (rule_decode(&root, &arena, STR_LIT("f"), &rule, &err) < 0) {
        ASSERT(err.code == ERR_MANIFEST);
        return;
    }
    fill(samples);
    if (rule_apply(&rule, &m, &of, &value, &err) < 0) {
        ASSERT(err.code == ERR_PARSE);
    } else {
        ASSERT(isfinite(value.value));
        ASSERT(value.n_used >= 1 && value.n_used <= value.n_window && value.n_window <= SAMPLES);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct str rest = text;
    struct str source;
    if (size == 0 || size > INPUT_BYTES_MAX) {
        return 0;
    }
    if (str_next(&rest, '\n', &source)) {
        try_pattern(source, rest.ptr ? rest : STR_LIT(""));
    }
    try_rule(text);
    return 0;
}
