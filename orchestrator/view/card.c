/* SPDX-License-Identifier: Apache-2.0 */
/* One report in one picture, for a README. */
#include "base/base.h"

#include "view/audit_out.h"

#include <math.h>

#include "base/embed.h"
#include "view/page.h"

#define WIDTH       880.0
#define MARGIN      28.0
#define HEAD_HEIGHT 150.0
#define ROW_HEIGHT  34.0
#define NOTE_HEIGHT 16.0 /* of what is not alike in a row, below it */
#define NOTE_BYTES  130  /* as many fit */
#define FOOT_HEIGHT 40.0
#define ROWS_MAX    16

static const struct {
    const char *icon, *word;
} VERDICT_LOOKS[] = {[AUDIT_EXACT] = {"=", "exact"},
                     [AUDIT_MATCH] = {"\xe2\x89\x88", "match"},
                     [AUDIT_DIFFERS] = {"\xe2\x89\xa0", "differ"},
                     [AUDIT_NO_LOG] = {"\xe2\x80\x93", "no log"}};

EMBED(card_css, "orchestrator/view/card.css");

static void add_counts(struct page *page, const struct verdict_counts *counts)
{
    double x = MARGIN;
    double text_x = MARGIN;
    for (size_t idx = 0; idx <= AUDIT_NO_LOG; idx++) {
        const char *name = AUDIT_VERDICT_NAMES[(enum audit_verdict)idx];
        size_t n = counts->of[idx];
        double width = counts->n ? (WIDTH - 2 * MARGIN) * (double)n / (double)counts->n : 0;
        strbuf_printf(page->out,
                      "<rect class=\"%s\" x=\"%.1f\" y=\"72\" width=\"%.1f\" height=\"10\"/>\n"
                      "<text class=\"%s h\" x=\"%.1f\" y=\"104\">%s %zu %s</text>\n",
                      name, x, width, name, text_x, VERDICT_LOOKS[idx].icon, n,
                      VERDICT_LOOKS[idx].word);
        x += width;
        text_x += 110;
    }
}

static void add_text(struct page *page, const char *css, double x, double y, struct str text)
{
    strbuf_printf(page->out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", css, x, y);
    html_text(page->out, text);
    strbuf_add_z(page->out, "</text>\n");
}

/* "4.25 = 4.25": printed, verdict, computed. */
static void add_value(struct page *page, const struct cell_audit *ca, double x, double y)
{
    add_text(page, "n", x + 62, y, ca->cell->printed);
    add_text(page, arena_printf(&page->arena, "%s h", AUDIT_VERDICT_NAMES[ca->verdict]), x + 71, y,
             str_of(ca->is_proposed ? "?" : VERDICT_LOOKS[ca->verdict].icon));
    add_text(page, "n", x + 150, y,
             ca->verdict == AUDIT_NO_LOG  ? STR_LIT("no log")
             : ca->verdict == AUDIT_EXACT ? ca->cell->printed
                                          : cell_number_words(&page->arena, ca));
}

/* Ratios on a logarithmic scale between two places of the picture; 1 is always on it. */
struct ratio_scale {
    double low, high, from, to;
};

static double ratio_x(const struct ratio_scale *scale, double ratio)
{
    double share = (log(ratio) - log(scale->low)) / (log(scale->high) - log(scale->low));
    return scale->from + share * (scale->to - scale->from);
}

/* The ratio as it was printed and by one rule for both, either of which may be missing. */
static void add_ratio(struct page *page, const struct like_row *row,
                      const struct ratio_scale *scale, double y)
{
    double was = ratio_x(scale, row->published_ratio);
    double is = ratio_x(scale, row->ratio);
    bool is_left = !(is > was);
    if (isfinite(was) && isfinite(is)) {
        strbuf_printf(page->out,
                      "<line class=\"bar\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>", was,
                      is, y - 5, y - 5);
    }
    if (isfinite(was)) {
        strbuf_printf(page->out, "<circle class=\"was\" cx=\"%.1f\" cy=\"%.1f\" r=\"5\"/>", was,
                      y - 5);
    }
    if (isfinite(is)) {
        strbuf_printf(page->out, "<circle class=\"is\" cx=\"%.1f\" cy=\"%.1f\" r=\"5\"/>", is,
                      y - 5);
    }
    add_text(page, is_left ? "s" : "s n", was + (is_left ? 10 : -10), y,
             text_of(page, "%.2f\xc3\x97", row->published_ratio));
    if (isfinite(is)) {
        add_text(page, is_left ? "r n" : "r", is + (is_left ? -10 : 10), y,
                 text_of(page, "%.2f\xc3\x97", row->ratio));
    }
}

/* As many of its reasons as fit. */
static struct str note_text(struct page *page, struct str note)
{
    size_t len = NOTE_BYTES;
    while (len > 0 && note.len > NOTE_BYTES && note.ptr[len] != ';') {
        len--;
    }
    return note.len > NOTE_BYTES ? text_of(page, "%.*s; \xe2\x80\xa6", (int)len, note.ptr) : note;
}

/* Returns where they end. */
static double add_rows(struct page *page, const struct report_audit *audit, size_t n_rows)
{
    struct ratio_scale scale = {.low = 0.8, .high = 1.25, .from = 660, .to = WIDTH - 90};
    double y = HEAD_HEIGHT;
    for (size_t idx = 0; idx < n_rows; idx++) {
        const double ratios[] = {audit->rows[idx].ratio, audit->rows[idx].published_ratio};
        for (size_t at = 0; at < ARRAY_LEN(ratios); at++) {
            if (isfinite(ratios[at]) && ratios[at] > 0) {
                scale.low = fmin(scale.low, ratios[at]);
                scale.high = fmax(scale.high, ratios[at]);
            }
        }
    }
    add_text(page, "s", 230, 140, audit->rows[0].a->of_case->stack->label);
    add_text(page, "s", 400, 140, audit->rows[0].b->of_case->stack->label);
    add_text(page, "s", 600, 140, STR_LIT("ratio: printed \xe2\x97\x8b, by one rule \xe2\x97\x8f"));
    for (size_t idx = 0; idx < n_rows; idx++) {
        const struct like_row *row = &audit->rows[idx];
        const struct report_case *c = row->a->of_case;
        double height = ROW_HEIGHT + (row->note.len ? NOTE_HEIGHT : 0);
        strbuf_printf(page->out,
                      "<path class=\"line\" d=\"M%.1f %.1fH%.1f\"/>"
                      "<path class=\"one\" d=\"M%.1f %.1fv%.1f\"/>",
                      MARGIN, y, WIDTH - MARGIN, ratio_x(&scale, 1), y, height);
        add_text(page, "", MARGIN, y + 22,
                 text_of(page, "%.*s %.*s, %" PRId64 " GPU%s", STR_ARG(c->model),
                         STR_ARG(c->precision), c->gpus, c->gpus == 1 ? "" : "s"));
        add_value(page, row->a, 230, y + 22);
        add_value(page, row->b, 400, y + 22);
        add_ratio(page, row, &scale, y + 22);
        if (row->note.len) {
            add_text(page, "s o", MARGIN, y + 22 + NOTE_HEIGHT, note_text(page, row->note));
        }
        y += height;
    }
    return y;
}

void audit_out_card(const struct report_audit *audit, struct strbuf *out)
{
    CLEANUP(strbuf) struct strbuf body = STRBUF(HTML_BYTES_MAX);
    struct page page = {.out = &body};
    struct verdict_counts counts = {0};
    const struct source_ref *source = &audit->report->source;
    size_t n_rows = audit->n_rows < ROWS_MAX ? audit->n_rows : ROWS_MAX;
    count_verdicts(audit, &counts);
    add_text(&page, "t", MARGIN, 38, audit->report->title);
    add_text(&page, "s", MARGIN, 58,
             text_of(&page,
                     "%zu published number%s%s%.*s, printed against computed from the published "
                     "logs%.*s",
                     counts.n, plural_s(counts.n), n_rows ? " in " : "",
                     STR_ARG(n_rows ? audit->rows[0].a->cell->unit : STR_EMPTY),
                     STR_ARG(audit_inferred_words(&page.arena, audit))));
    add_counts(&page, &counts);
    double height = FOOT_HEIGHT + (n_rows ? add_rows(&page, audit, n_rows) : 120);
    add_text(&page, "s", MARGIN, height - 14,
             text_of(&page, "%.*s%s%.*s%sreperf report %.*s --svg FILE%s",
                     STR_ARG(source->repository), source->date.ptr ? ", " : "",
                     STR_ARG(source->date), source->repository.ptr ? "; " : "",
                     STR_ARG(audit->report->id),
                     n_rows < audit->n_rows
                         ? arena_printf(&page.arena, " (%zu of %zu rows)", n_rows, audit->n_rows)
                         : ""));
    strbuf_printf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
                  "width=\"%.0f\" height=\"%.0f\" role=\"img\" aria-labelledby=\"t\">\n",
                  WIDTH, height, WIDTH, height);
    HTML(out, "<title id=\"t\">{}: of {} published numbers, {}</title>\n", audit->report->title,
         text_of(&page, "%zu", counts.n), audit_follow_words(&page.arena, &counts));
    html_style(out, embedded_body(EMBEDDED(card_css)));
    strbuf_printf(out,
                  "<rect class=\"b\" x=\"0.5\" y=\"0.5\" width=\"%.0f\" height=\"%.0f\" "
                  "rx=\"9\"/>\n",
                  WIDTH - 1, height - 1);
    strbuf_add_str(out, strbuf_str(&body));
    strbuf_add_z(out, "</svg>\n");
    arena_release(&page.arena);
}
