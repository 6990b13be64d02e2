/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "view/bench_out.h"
#include "view/html.h"

enum outcome { OUTCOME_PASSED, OUTCOME_FAILED, OUTCOME_ERROR, OUTCOME_SKIPPED, OUTCOMES };

static enum outcome outcome_of(const struct bench_figure *figure)
{
    switch (figure->verdict) {
    case BENCH_WITHIN:
        return OUTCOME_PASSED;
    case BENCH_OUTLIER:
        return OUTCOME_FAILED;
    case BENCH_NOT_COMPARED:
        return OUTCOME_SKIPPED;
    case BENCH_NOT_MEASURED:
    default:
        return figure->is_excused ? OUTCOME_SKIPPED : OUTCOME_ERROR;
    }
}

static void put_case(struct strbuf *out, struct arena *arena, struct str suite,
                     const struct bench_figure *figure)
{
    static const char *const ELEMENTS[] = {
        [OUTCOME_FAILED] = "failure", [OUTCOME_ERROR] = "error", [OUTCOME_SKIPPED] = "skipped"};
    enum outcome outcome = outcome_of(figure);
    HTML(out, "    <testcase classname=\"{}\" name=\"{}\" time=\"0\"", suite,
         str_of(figure->measure->id));
    if (outcome == OUTCOME_PASSED) {
        strbuf_add_z(out, "/>\n");
        return;
    }
    strbuf_printf(out, ">\n      <%s message=\"", ELEMENTS[outcome]);
    html_text(out, outcome == OUTCOME_FAILED ? bench_says(arena, figure) : figure->why);
    strbuf_printf(out, "\"%s/>\n    </testcase>\n",
                  outcome == OUTCOME_SKIPPED ? "" : " type=\"nodes bench\"");
}

struct suite {
    struct str name;
    const struct bench_figure **figures;
    size_t n;
};

static void count(const struct suite *suite, size_t ret_n[OUTCOMES])
{
    for (size_t idx = 0; idx < suite->n; idx++) {
        ret_n[outcome_of(suite->figures[idx])]++;
    }
}

static void put_suite(struct strbuf *out, struct arena *arena, const struct suite *suite)
{
    size_t n[OUTCOMES] = {0};
    count(suite, n);
    HTML(out, "  <testsuite name=\"{}\"", suite->name);
    strbuf_printf(out,
                  " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"0\">\n",
                  suite->n, n[OUTCOME_FAILED], n[OUTCOME_ERROR], n[OUTCOME_SKIPPED]);
    for (size_t idx = 0; idx < suite->n; idx++) {
        put_case(out, arena, suite->name, suite->figures[idx]);
    }
    strbuf_add_z(out, "  </testsuite>\n");
}

static struct suite suite_of_node(struct arena *arena, const struct bench_view *view, size_t node)
{
    struct suite suite = {view->inventory->nodes[node].name,
                          arena_array(arena, const struct bench_figure *, BENCH_MEASURES), 0};
    for (size_t idx = 0; idx < BENCH_MEASURES; idx++) {
        if (view->opts->wants[BENCH_MEASURE[idx].what]) {
            suite.figures[suite.n++] = &view->result->nodes[node].figures[idx];
        }
    }
    return suite;
}

/* The sizes that are judged. */
static struct suite suite_of_link(struct arena *arena, const struct bench_view *view, size_t link)
{
    const struct bench_link *of = &view->result->links[link];
    struct suite suite = {bench_link_name(arena, view, of),
                          arena_array(arena, const struct bench_figure *, 1), 0};
    if (of->size_bytes == of->figure.measure->size_bytes && of->figure.measure->what == BENCH_NET) {
        suite.figures[suite.n++] = &of->figure;
    }
    return suite;
}

void bench_out_junit(const struct bench_view *view, struct strbuf *out)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    size_t n[OUTCOMES] = {0}, n_suites = 0;
    struct suite *suites =
        arena_array(&arena, struct suite, view->result->n_nodes + view->result->n_links + 1);
    for (size_t idx = 0; idx < view->result->n_nodes; idx++) {
        suites[n_suites++] = suite_of_node(&arena, view, idx);
    }
    for (size_t idx = 0; idx < view->result->n_links; idx++) {
        suites[n_suites] = suite_of_link(&arena, view, idx);
        n_suites += suites[n_suites].n > 0;
    }
    for (size_t idx = 0; idx < n_suites; idx++) {
        count(&suites[idx], n);
    }
    strbuf_add_z(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    strbuf_printf(out,
                  "<testsuites name=\"reperf nodes bench\" tests=\"%zu\" failures=\"%zu\" "
                  "errors=\"%zu\" skipped=\"%zu\" time=\"0\">\n",
                  n[OUTCOME_PASSED] + n[OUTCOME_FAILED] + n[OUTCOME_ERROR] + n[OUTCOME_SKIPPED],
                  n[OUTCOME_FAILED], n[OUTCOME_ERROR], n[OUTCOME_SKIPPED]);
    for (size_t idx = 0; idx < n_suites; idx++) {
        put_suite(out, &arena, &suites[idx]);
    }
    strbuf_add_z(out, "</testsuites>\n");
}
