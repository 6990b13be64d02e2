/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "judge/bench_judge.h"

#include <math.h>

/* ---- a node's figure: from its links ---- */

/* The uncertainty of that link's median by its repeats; the spread over the peers would include a sick peer. */
static double spread_at(const struct bench_all *all, double median)
{
    for (size_t idx = 0; idx < all->n_links; idx++) {
        const struct bench_figure *figure = &all->links[idx].figure;
        if (figure->n && figure->median >= median && figure->median <= median) {
            return figure->mad / sqrt((double)figure->n);
        }
    }
    return 0;
}

bool bench_sum_links(struct arena *arena, const struct bench_all *all, size_t node,
                     const struct bench_measure *measure)
{
    bool is_receive = strcmp(measure->id, "net.receive") == 0;
    bool is_both = strcmp(measure->id, "net.latency") == 0;
    const char *id = is_receive ? "net.send" : measure->id;
    struct bench_figure *figure = &all->figures[node][measure - BENCH_MEASURE];
    double *values = arena_array(arena, double, 2 * all->n_nodes + 2);
    size_t n = 0;
    for (size_t idx = 0; idx < all->n_links && n < 2 * all->n_nodes; idx++) {
        const struct bench_link *link = &all->links[idx];
        bool is_of_node =
            (!is_receive && link->from == node) || ((is_receive || is_both) && link->to == node);
        if (is_of_node && link->figure.n && link->size_bytes == measure->size_bytes &&
            strcmp(link->figure.measure->id, id) == 0) {
            values[n++] = link->figure.median;
        }
    }
    if (n == 0) {
        return false;
    }
    figure->values = values;
    figure->n = n;
    figure->spread_given = spread_at(all, bench_peers_median(arena, measure, values, n));
    bench_figure_sum(arena, figure);
    figure->median = bench_peers_median(arena, measure, values, n);
    return true;
}

/* ---- judging ---- */

/* A sick node is named itself, instead of each of its links. */
static bool has_sick_end(const struct bench_all *all, const struct bench_link *link,
                         enum bench_what what)
{
    for (size_t at = 0; at < BENCH_MEASURES; at++) {
        if (BENCH_MEASURE[at].what == what &&
            (all->figures[link->from][at].verdict == BENCH_OUTLIER ||
             all->figures[link->to][at].verdict == BENCH_OUTLIER)) {
            return true;
        }
    }
    return false;
}

static void judge_links(struct arena *arena, const struct bench_limits *limits,
                        const struct bench_all *all, const struct bench_measure *measure)
{
    struct bench_figure **figures = arena_array(arena, struct bench_figure *, all->n_links + 1);
    size_t n = 0;
    for (size_t idx = 0; idx < all->n_links; idx++) {
        struct bench_link *link = &all->links[idx];
        if (link->figure.measure != measure || link->size_bytes != measure->size_bytes ||
            link->figure.n == 0) {
            continue;
        }
        link->figure.verdict = BENCH_NOT_COMPARED;
        link->figure.group_median = link->figure.group_spread = (double)NAN;
        if (has_sick_end(all, link, measure->what)) {
            link->figure.why = STR_LIT("an end is an outlier");
        } else if (!str_eq(all->groups[link->from], all->groups[link->to])) {
            link->figure.why = STR_LIT("between two groups");
        } else {
            link->figure.why = STR_EMPTY;
            figures[n++] = &link->figure;
        }
    }
    bench_compare(arena, limits, figures, n);
}

static void judge_nodes(struct arena *arena, const struct bench_limits *limits,
                        const struct bench_all *all, const struct bench_measure *measure)
{
    struct bench_figure **figures = arena_array(arena, struct bench_figure *, all->n_nodes + 1);
    bool *is_done = arena_array(arena, bool, all->n_nodes + 1);
    for (size_t first = 0; first < all->n_nodes; first++) {
        size_t n = 0;
        for (size_t idx = first; idx < all->n_nodes && !is_done[first]; idx++) {
            if (!is_done[idx] && str_eq(all->groups[idx], all->groups[first])) {
                is_done[idx] = idx > first;
                figures[n++] = &all->figures[idx][measure - BENCH_MEASURE];
            }
        }
        bench_compare(arena, limits, figures, n);
    }
}

void bench_judge(struct arena *arena, const struct bench_limits *limits,
                 const struct bench_all *all)
{
    for (size_t idx = 0; idx < BENCH_MEASURES; idx++) {
        judge_nodes(arena, limits, all, &BENCH_MEASURE[idx]);
    }
    judge_links(arena, limits, all, bench_measure_of(STR_LIT("net.latency")));
    judge_links(arena, limits, all, bench_measure_of(STR_LIT("net.send")));
}

struct str bench_link_words(struct arena *arena, struct str from, struct str to)
{
    return str_of(arena_printf(arena, "%.*s to %.*s", STR_ARG(from), STR_ARG(to)));
}
