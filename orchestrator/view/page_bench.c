/* SPDX-License-Identifier: Apache-2.0 */
/* The page of `nodes bench`. */
#include "base/base.h"

#include <math.h>

#include "view/bench_out.h"
#include "view/page_parts.h"

static void add_cell(struct page *page, const struct bench_figure *figure)
{
    struct arena *arena = &page->arena;
    struct str says = bench_says(arena, figure);
    if (!figure->n) {
        HTML(page->out, "<td class=\"n\" title=\"{}\">not measured</td>", figure->why);
        return;
    }
    HTML(page->out, "<td class=\"n\" title=\"{}\">{}{}{}<small>\xc2\xb1 {}, n {}</small></td>",
         says.len ? says : figure->why, says.len ? STR_LIT("\xe2\x89\xa0 ") : STR_EMPTY,
         textf(arena, "%.4g", figure->median),
         figure->verdict == BENCH_NOT_COMPARED ? STR_LIT(" (not compared)") : STR_EMPTY,
         textf(arena, "%.2g", figure->mad), textf(arena, "%zu", figure->n));
}

static void add_nodes(struct page *page, const struct bench_view *view)
{
    add_scroll_begin(page, STR_LIT("Nodes"));
    strbuf_add_z(page->out, "<caption>Median of the repeats, and their median absolute "
                            "deviation; \xe2\x89\xa0 marks an outlier</caption><thead><tr>"
                            "<th scope=\"col\">Node</th><th scope=\"col\">Group</th>");
    for (size_t at = 0; at < BENCH_MEASURES; at++) {
        if (view->opts->wants[BENCH_MEASURE[at].what]) {
            HTML(page->out, "<th scope=\"col\" class=\"n\">{}<small>{}</small></th>",
                 str_of(BENCH_MEASURE[at].head), str_of(BENCH_MEASURE[at].unit));
        }
    }
    strbuf_add_z(page->out, "</tr></thead>\n<tbody>\n");
    for (size_t idx = 0; idx < view->result->n_nodes; idx++) {
        const struct bench_node *node = &view->result->nodes[idx];
        HTML(page->out, "<tr class=\"{}\"><th scope=\"row\">{}</th><td>{}</td>",
             bench_node_is_outlier(node) ? STR_LIT("row-differs") : STR_LIT("run"),
             node->spec->name, node->group);
        for (size_t at = 0; at < BENCH_MEASURES; at++) {
            if (view->opts->wants[BENCH_MEASURE[at].what]) {
                add_cell(page, &node->figures[at]);
            }
        }
        strbuf_add_z(page->out, "</tr>\n");
    }
    strbuf_add_z(page->out, "</tbody>");
    add_scroll_end(page);
}

static void add_outliers(struct page *page, const struct bench_view *view)
{
    strbuf_add_z(page->out, "<ul class=\"surprises\">\n");
    for (size_t idx = 0; idx < view->result->n_nodes; idx++) {
        const struct bench_node *node = &view->result->nodes[idx];
        for (size_t at = 0; at < BENCH_MEASURES; at++) {
            struct str says = bench_says(&page->arena, &node->figures[at]);
            if (says.len) {
                HTML(page->out, "<li>{}: {}</li>\n", node->spec->name, says);
            }
        }
        if (node->err.code != ERR_NONE) {
            HTML(page->out, "<li>{}: {}</li>\n", node->spec->name, str_of(node->err.msg));
        }
        for (size_t at = 0; at < node->n_notes; at++) {
            HTML(page->out, "<li>{}: {}</li>\n", node->spec->name, node->notes[at]);
        }
    }
    for (size_t idx = 0; idx < view->result->n_links; idx++) {
        const struct bench_link *link = &view->result->links[idx];
        struct str says = bench_says(&page->arena, &link->figure);
        if (says.len) {
            HTML(page->out, "<li>{}: {}</li>\n", bench_link_name(&page->arena, view, link), says);
        }
    }
    strbuf_add_z(page->out, "</ul>\n");
}

static void add_links(struct page *page, const struct bench_view *view)
{
    if (!view->result->n_links) {
        return;
    }
    strbuf_add_z(page->out, "<section class=\"card\"><h2 class=\"first\">Links</h2>\n");
    add_scroll_begin(page, STR_LIT("Links"));
    strbuf_add_z(page->out, "<caption>Between two nodes, by size of message</caption><thead><tr>"
                            "<th scope=\"col\">Link</th><th scope=\"col\">Measure</th>"
                            "<th scope=\"col\" class=\"n\">Bytes</th>"
                            "<th scope=\"col\" class=\"n\">Value</th></tr></thead>\n<tbody>\n");
    for (size_t idx = 0; idx < view->result->n_links; idx++) {
        const struct bench_link *link = &view->result->links[idx];
        const struct bench_measure *measure = link->figure.measure;
        HTML(page->out,
             "<tr class=\"{}\"><th scope=\"row\">{}</th><td>{}, {}</td><td class=\"n\">{}</td>",
             link->figure.verdict == BENCH_OUTLIER ? STR_LIT("row-differs") : STR_LIT("run"),
             bench_link_name(&page->arena, view, link), str_of(measure->head),
             str_of(measure->unit), textf(&page->arena, "%lld", (long long)link->size_bytes));
        add_cell(page, &link->figure);
        strbuf_add_z(page->out, "</tr>\n");
    }
    strbuf_add_z(page->out, "</tbody>");
    add_scroll_end(page);
    strbuf_add_z(page->out, "</section>\n");
}

static void add_how_measured(struct page *page, const struct bench_view *view)
{
    const struct bench_limits *limits = view->opts->limits;
    strbuf_add_z(page->out,
                 "<section class=\"card\"><h2 class=\"first\">How it was measured and judged"
                 "</h2>\n");
    HTML(page->out,
         "<p>A node is an outlier where its figure is worse than the median of its group by more "
         "than the share, the amount and {} robust standard deviations ({}). A group has at least "
         "{} nodes: {}.</p>\n",
         textf(&page->arena, "%g", limits->deviations), limits->deviations_origin,
         textf(&page->arena, "%lld", (long long)limits->nodes_min), limits->nodes_min_origin);
    add_scroll_begin(page, STR_LIT("Measures"));
    strbuf_add_z(page->out, "<thead><tr><th scope=\"col\">Measure</th><th scope=\"col\">Formula"
                            "</th><th scope=\"col\" class=\"n\">Share</th><th scope=\"col\" "
                            "class=\"n\">Amount</th><th scope=\"col\">Origin of the limit</th>"
                            "</tr></thead>\n<tbody>\n");
    for (size_t at = 0; at < BENCH_MEASURES; at++) {
        const struct bench_measure *measure = &BENCH_MEASURE[at];
        const struct bench_limit *limit = &limits->of[at];
        if (view->opts->wants[measure->what]) {
            HTML(page->out,
                 "<tr><th scope=\"row\">{}, {}</th><td>{}</td><td class=\"n\">{}</td><td "
                 "class=\"n\">{}</td><td>{}</td></tr>\n",
                 str_of(measure->head), str_of(measure->unit), str_of(measure->formula),
                 isnan(limit->share) ? STR_LIT("not compared")
                                     : textf(&page->arena, "%g %%", 100 * limit->share),
                 textf(&page->arena, "%g", limit->amount), limit->origin);
        }
    }
    strbuf_add_z(page->out, "</tbody>");
    add_scroll_end(page);
    strbuf_add_z(page->out, "</section>\n");
}

void bench_out_page(const struct bench_view *view, struct strbuf *out)
{
    struct page page = {.out = out};
    struct str title = textf(&page.arena, "Node benchmark: %.*s", STR_ARG(view->inventory->id));
    page_begin(&page, textf(&page.arena, "%.*s \xc2\xb7 reperf", STR_ARG(title)));
    HTML(out,
         "<header><h1>{}</h1>\n<p class=\"headline\">{}.</p><p class=\"meta\">{}</p></header>\n"
         "<main id=\"main\">\n<section class=\"card\"><h2 class=\"first\">Nodes</h2>\n",
         title, bench_in_words(&page.arena, view), str_of(view->time));
    add_outliers(&page, view);
    add_nodes(&page, view);
    strbuf_add_z(out, "</section>\n");
    add_links(&page, view);
    add_how_measured(&page, view);
    page_end(&page);
    arena_release(&page.arena);
}
