/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "view/bench_out.h"

#include <math.h>

#include "base/table.h"
#include "view/html.h"

#define COLUMNS_MAX 10
#define HEADS_MAX   512

/* ---- shared with the page ---- */

struct str bench_link_name(struct arena *arena, const struct bench_view *view,
                           const struct bench_link *link)
{
    return bench_link_words(arena, view->inventory->nodes[link->from].name,
                            view->inventory->nodes[link->to].name);
}

bool bench_node_is_outlier(const struct bench_node *node)
{
    for (size_t at = 0; at < BENCH_MEASURES; at++) {
        if (node->figures[at].verdict == BENCH_OUTLIER) {
            return true;
        }
    }
    return false;
}

static size_t n_sick_links(const struct bench_result *result)
{
    size_t n = 0;
    for (size_t idx = 0; idx < result->n_links; idx++) {
        n += result->links[idx].figure.verdict == BENCH_OUTLIER;
    }
    return n;
}

struct str bench_in_words(struct arena *arena, const struct bench_view *view)
{
    const struct bench_result *result = view->result;
    size_t n_failed = 0, n_outliers = 0, n_alone = 0, n_idle = 0, n_links = n_sick_links(result);
    for (size_t idx = 0; idx < result->n_nodes; idx++) {
        const struct bench_node *node = &result->nodes[idx];
        bool is_alone = false, is_idle = true;
        for (size_t at = 0; at < BENCH_MEASURES; at++) {
            is_idle = is_idle && !node->figures[at].n;
            is_alone = is_alone || (node->figures[at].verdict == BENCH_NOT_COMPARED &&
                                    !isnan(view->opts->limits->of[at].share));
        }
        if (node->err.code != ERR_NONE) {
            n_failed++;
        } else if (bench_node_is_outlier(node)) {
            n_outliers++;
        } else {
            n_alone += is_alone;
            n_idle += is_idle;
        }
    }
    return textf(arena,
                 "%zu node%s: %zu within, %zu outlier%s, %zu not compared, %s%zu not measured as "
                 "asked; links that are outliers: %zu",
                 result->n_nodes, result->n_nodes == 1 ? "" : "s",
                 result->n_nodes - n_failed - n_outliers - n_alone - n_idle, n_outliers,
                 n_outliers == 1 ? "" : "s", n_alone,
                 n_idle ? arena_printf(arena, "%zu without anything to measure, ", n_idle) : "",
                 n_failed, n_links);
}

/* ---- tables ---- */

/* "8.41 +-1%"; "!" marks an outlier. */
static void add_cell(struct table *table, const struct bench_figure *figure)
{
    const char *mark = figure->verdict == BENCH_OUTLIER ? "!" : "";
    if (!figure->n) {
        table_add(table, STR_LIT("-"));
    } else if (figure->n == 1 && isnan(figure->spread_given)) {
        table_addf(table, "%s%.4g", mark, figure->median);
    } else if (figure->measure->kind == BENCH_DRIFT || figure->measure->kind == BENCH_JITTER ||
               !(figure->median > 0)) {
        table_addf(table, "%s%.4g \xc2\xb1%.2g", mark, figure->median, figure->mad);
    } else {
        table_addf(table, "%s%.4g \xc2\xb1%.0f%%", mark, figure->median,
                   100 * figure->mad / figure->median);
    }
}

static void put_table(const struct bench_view *view, const size_t *measures, size_t n,
                      struct strbuf *out)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(table) struct table table;
    struct table_column columns[COLUMNS_MAX] = {{"node", false}};
    ASSERT(n < COLUMNS_MAX);
    for (size_t idx = 0; idx < n; idx++) {
        const struct bench_measure *measure = &BENCH_MEASURE[measures[idx]];
        columns[idx + 1] = (struct table_column){
            arena_printf(&arena, "%s %s", measure->head, measure->unit), true};
    }
    table_init(&table, columns, n + 1);
    for (size_t node = 0; node < view->result->n_nodes; node++) {
        table_add(&table, view->inventory->nodes[node].name);
        for (size_t idx = 0; idx < n; idx++) {
            add_cell(&table, &view->result->nodes[node].figures[measures[idx]]);
        }
    }
    table_render(&table, out);
    strbuf_add_char(out, '\n');
}

/* On most nodes there are none: no empty table. */
static bool has_gpus(const struct bench_view *view)
{
    for (size_t node = 0; node < view->result->n_nodes; node++) {
        if (view->result->nodes[node].gpus > 0) {
            return true;
        }
    }
    return false;
}

static void put_tables(const struct bench_view *view, struct strbuf *out)
{
    enum { TABLES = 3 };
    size_t measures[TABLES][BENCH_MEASURES];
    size_t n[TABLES] = {0};
    for (size_t idx = 0; idx < BENCH_MEASURES; idx++) {
        enum bench_what what = BENCH_MEASURE[idx].what;
        bool is_second = what == BENCH_CLOCK || what == BENCH_NET || what == BENCH_RING;
        int table = what == BENCH_GPU ? TABLES - 1 : is_second;
        if (view->opts->wants[what] && (what != BENCH_GPU || has_gpus(view))) {
            measures[table][n[table]++] = idx;
        }
    }
    for (int idx = 0; idx < TABLES; idx++) {
        if (n[idx]) {
            put_table(view, measures[idx], n[idx], out);
        }
    }
}

/* ---- what is to be said ---- */

static void put_outliers(const struct bench_view *view, struct arena *arena, struct strbuf *out)
{
    for (size_t idx = 0; idx < view->result->n_nodes; idx++) {
        const struct bench_node *node = &view->result->nodes[idx];
        for (size_t at = 0; at < BENCH_MEASURES; at++) {
            struct str says = bench_says(arena, &node->figures[at]);
            if (says.len) {
                strbuf_printf(out, "%.*s: %.*s\n", STR_ARG(node->spec->name), STR_ARG(says));
            }
        }
    }
    for (size_t idx = 0; idx < view->result->n_links; idx++) {
        const struct bench_link *link = &view->result->links[idx];
        struct str says = bench_says(arena, &link->figure);
        if (says.len) {
            strbuf_printf(out, "%.*s: %.*s\n", STR_ARG(bench_link_name(arena, view, link)),
                          STR_ARG(says));
        }
    }
}

/* Notes on nodes: the same note with the same reason is one line for all its nodes. */
struct saying {
    struct str names, why;
    struct strbuf heads;
};

struct sayings {
    struct saying *items;
    size_t n;
};

static void say(struct sayings *sayings, struct str names, struct str why, const char *head)
{
    struct saying *saying = sayings->items;
    struct saying *end = saying + sayings->n;
    while (saying < end && !(str_eq(saying->names, names) && str_eq(saying->why, why))) {
        saying++;
    }
    if (saying == end) {
        *saying = (struct saying){.names = names, .why = why};
        strbuf_init(&saying->heads, HEADS_MAX);
        sayings->n++;
    }
    strbuf_printf(&saying->heads, "%s%s", saying->heads.len ? ", " : "", head);
}

static void say_measure(const struct bench_view *view, struct arena *arena,
                        enum bench_verdict verdict, size_t at, struct sayings *sayings)
{
    size_t n_nodes = view->result->n_nodes;
    size_t *nodes = arena_array(arena, size_t, n_nodes + 1);
    bool *is_said = arena_array(arena, bool, n_nodes + 1);
    for (size_t first = 0; first < n_nodes; first++) {
        struct str why = view->result->nodes[first].figures[at].why;
        size_t n = 0;
        for (size_t idx = first; idx < n_nodes; idx++) {
            const struct bench_figure *figure = &view->result->nodes[idx].figures[at];
            if (!is_said[idx] && figure->verdict == verdict && str_eq(figure->why, why)) {
                is_said[idx] = true;
                nodes[n++] = idx;
            }
        }
        if (n) {
            say(sayings, inventory_fold(arena, view->inventory, nodes, n), why,
                BENCH_MEASURE[at].head);
        }
    }
}

static void put_why(const struct bench_view *view, struct arena *arena, enum bench_verdict verdict,
                    const char *words, struct strbuf *out)
{
    struct sayings sayings = {0};
    sayings.items = arena_array(arena, struct saying, BENCH_MEASURES * view->result->n_nodes + 1);
    for (size_t at = 0; at < BENCH_MEASURES; at++) {
        if (view->opts->wants[BENCH_MEASURE[at].what]) {
            say_measure(view, arena, verdict, at, &sayings);
        }
    }
    for (size_t idx = 0; idx < sayings.n; idx++) {
        struct saying *saying = &sayings.items[idx];
        strbuf_printf(out, "%s: %.*s: %s: %.*s\n", words, STR_ARG(saying->names), saying->heads.ptr,
                      STR_ARG(saying->why));
        strbuf_release(&saying->heads);
    }
}

static bool has_note(const struct bench_node *node, struct str note)
{
    for (size_t at = 0; at < node->n_notes; at++) {
        if (str_eq(node->notes[at], note)) {
            return true;
        }
    }
    return false;
}

static void put_notes(const struct bench_view *view, struct arena *arena, struct strbuf *out)
{
    const struct bench_result *result = view->result;
    size_t *nodes = arena_array(arena, size_t, result->n_nodes + 1);
    for (size_t first = 0; first < result->n_nodes; first++) {
        for (size_t at = 0; at < result->nodes[first].n_notes; at++) {
            struct str note = result->nodes[first].notes[at];
            size_t n = 0;
            bool is_said = false;
            for (size_t idx = 0; idx < result->n_nodes; idx++) {
                bool has = has_note(&result->nodes[idx], note);
                is_said = is_said || (has && idx < first);
                nodes[n] = idx;
                n += has;
            }
            if (!is_said) {
                struct str names = inventory_fold(arena, view->inventory, nodes, n);
                strbuf_printf(out, "note: %.*s: %.*s\n", STR_ARG(names), STR_ARG(note));
            }
        }
    }
}

static void put_lost_links(const struct bench_view *view, struct arena *arena, struct strbuf *out)
{
    for (size_t idx = 0; idx < view->result->n_links; idx++) {
        const struct bench_link *link = &view->result->links[idx];
        if (link->figure.n == 0) {
            strbuf_printf(out, "not measured: %.*s: %s: %.*s\n",
                          STR_ARG(bench_link_name(arena, view, link)), link->figure.measure->head,
                          STR_ARG(link->figure.why));
        }
    }
}

void bench_out_text(const struct bench_view *view, struct strbuf *out)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    put_tables(view, out);
    put_outliers(view, &arena, out);
    put_why(view, &arena, BENCH_NOT_MEASURED, "not measured", out);
    put_why(view, &arena, BENCH_NOT_COMPARED, "not compared", out);
    put_lost_links(view, &arena, out);
    put_notes(view, &arena, out);
    strbuf_add_str(out, bench_in_words(&arena, view));
    strbuf_add_char(out, '\n');
}
