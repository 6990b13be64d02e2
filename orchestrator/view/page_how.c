/* SPDX-License-Identifier: Apache-2.0 */
/* How a cell's number follows from its log: addresses of logs and commits, the samples, the window, the arithmetic. */
#include "base/base.h"

#include "judge/how.h"
#include "view/page_parts.h"

#define SAMPLES_SHOWN 8

void add_link(struct page *page, struct str url, struct str text)
{
    if (url.len) {
        HTML(page->out, "<a href=\"{}\" rel=\"noreferrer\"><code>{}</code></a>", url, text);
    } else {
        HTML(page->out, "<code>{}</code>", text);
    }
}

void add_log_link(struct page *page, const struct report *report, struct str path)
{
    struct str below = address_log_path(report, path);
    add_link(page, address_file(&page->arena, &report->logs_source, below, 0), below);
}

static void add_samples(struct page *page, const struct how_log *log)
{
    const struct series *series = log->series;
    size_t n_used = log->n_of[USE_COUNTED] + log->n_of[USE_TRIMMED] + log->n_of[USE_BETWEEN];
    size_t n_shown = 0;
    HTML(page->out,
         "<p>Window: {} of {} samples of <code>{}</code>: ", textf(&page->arena, "%zu", n_used),
         textf(&page->arena, "%zu", series->n), series->name);
    for (size_t idx = 0; idx < series->n && n_shown < SAMPLES_SHOWN; idx++) {
        if (use_is_in_window(log->uses[idx])) {
            HTML(page->out, "{}{}", n_shown ? STR_LIT(", ") : STR_EMPTY,
                 textf(&page->arena, "%.6g", series->samples[idx].value));
            n_shown++;
        }
    }
    HTML(page->out, "{}{}", series->unit.len ? STR_LIT(" ") : STR_EMPTY, series->unit);
    if (n_used > n_shown) {
        HTML(page->out, ", and {} more (drawn under \xe2\x80\x9cStep series\xe2\x80\x9d)",
             textf(&page->arena, "%zu", n_used - n_shown));
    }
    strbuf_add_z(page->out, ".</p>\n");
}

static void add_steps(struct page *page, const struct how_steps *steps)
{
    for (size_t idx = 0; idx < steps->n; idx++) {
        HTML(page->out, "<p>{} = <b>{}</b></p>\n", steps->items[idx].words,
             textf(&page->arena, "%.9g", steps->items[idx].value));
    }
}

void add_how(struct page *page, const struct report *report, const struct cell_audit *ca)
{
    struct how how;
    if (ca->n_logs == 0) {
        return;
    }
    how_of(&page->arena, ca, &how);
    strbuf_add_z(page->out, "<details class=\"how\"><summary>log, samples, arithmetic</summary>\n");
    for (size_t log = 0; log < ca->n_logs; log++) {
        strbuf_add_z(page->out, "<p>");
        add_log_link(page, report, ca->logs[log].path);
        strbuf_add_z(page->out, "</p>\n");
        if (how.logs[log].uses) {
            add_samples(page, &how.logs[log]);
        }
        add_steps(page, &how.logs[log].steps);
        if (how.logs[log].why.len) {
            HTML(page->out, "<p>{}</p>\n", how.logs[log].why);
        }
    }
    add_steps(page, &how.steps);
    if (how.steps.n) {
        HTML(page->out, "<p>Published {}: {}.</p>\n", ca->cell->printed,
             percent_text(page, ca->rel_diff));
    }
    strbuf_add_z(page->out, "</details>");
}
