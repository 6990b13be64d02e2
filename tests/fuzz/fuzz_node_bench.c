/* SPDX-License-Identifier: Apache-2.0 */
/* A node's answer to a benchmark: the first byte selects the request. Accepted figures are finite, possible and did not take longer than
   the elapsed time; each gets a verdict. */
#include "base/base.h"

#include <math.h>

#include "judge/node_bench.h"

#define TOOK_NS INT64_C(60000000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void judge(struct arena *arena, const struct bench_series *series)
{
    struct bench_limits limits = {.deviations = 6, .nodes_min = 3};
    struct bench_figure figures[3];
    struct bench_figure *list[3];
    for (size_t idx = 0; idx < ARRAY_LEN(figures); idx++) {
        figures[idx] =
            (struct bench_figure){.measure = series->measure, .spread_given = (double)NAN};
        figures[idx].values = arena_array(arena, double, series->n);
        figures[idx].n = bench_values(series, figures[idx].values);
        list[idx] = &figures[idx];
        ASSERT(figures[idx].n >= 1 && figures[idx].n <= series->n);
        for (size_t at = 0; at < figures[idx].n; at++) {
            ASSERT(isfinite(figures[idx].values[at]) && figures[idx].values[at] >= 0);
        }
        bench_figure_sum(arena, &figures[idx]);
    }
    bench_compare(arena, &limits, list, ARRAY_LEN(figures));
    for (size_t idx = 0; idx < ARRAY_LEN(figures); idx++) {
        ASSERT(figures[idx].verdict == BENCH_WITHIN); /* each is the median itself */
        ASSERT(bench_says(arena, &figures[idx]).len == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct bench_answer answer;
    struct err err = {0};
    double sum_ns = 0;
    if (size < 1 || size > NODE_BENCH_TEXT_MAX) {
        return 0;
    }
    enum bench_what what = (enum bench_what)(data[0] % BENCH_WHATS);
    struct str text = {(const char *)data + 1, size - 1};
    if (bench_answer_read(&arena, text, what, TOOK_NS, &answer, &err) < 0) {
        ASSERT(err.code == ERR_NODE);
        return 0;
    }
    ASSERT(answer.n_series <= NODE_BENCH_SERIES_MAX && answer.n_lacks <= NODE_BENCH_SERIES_MAX);
    for (size_t idx = 0; idx < answer.n_series; idx++) {
        const struct bench_series *series = &answer.series[idx];
        ASSERT(series->measure->what == what && series->n >= 1 && series->work >= 1);
        for (size_t at = 0; at < series->n; at++) {
            sum_ns += series->ns[at];
        }
        judge(&arena, series);
    }
    ASSERT(sum_ns <= (double)TOOK_NS);
    return 0;
}
