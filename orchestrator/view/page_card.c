/* SPDX-License-Identifier: Apache-2.0 */
/* One report in one picture, for a README. */
#include "base/base.h"

#include "view/page_parts.h"

#include <math.h>

#define WIDTH       880.0
#define MARGIN      28.0
#define HEAD_HEIGHT 150.0
#define ROW_HEIGHT  34.0
#define NOTE_HEIGHT 16.0 /* of what is not alike in a row, below it */
#define NOTE_BYTES  130  /* as many fit */
#define FOOT_HEIGHT 40.0
#define ROWS_MAX    16
#define RATIO_LEFT  600.0
#define RATIO_RIGHT (WIDTH - MARGIN - 12)

static const char STYLE[] =
    "<style>text{font:14px system-ui,\"Segoe UI\",\"DejaVu Sans\",sans-serif;fill:#1b1f24}"
    ".b{fill:#fff;stroke:#d5dae0}.t{font-size:19px;font-weight:600}.s{fill:#57606a;font-size:12."
    "5px}"
    ".n{text-anchor:end}.h{font-weight:600}.exact{fill:#116329}.match{fill:#0b5c77}"
    ".differs{fill:#b42318}.no_log{fill:#57606a}.line{stroke:#e0e4e9}.one{stroke:#8b949e;"
    "stroke-dasharray:3 "
    "3}.bar{stroke:#57606a;stroke-width:2}.r{font-weight:600}.r,.o{paint-order:stroke;stroke:#fff;"
    "stroke-width:5px}.was{fill:#fff;stroke:#c44e00;"
    "stroke-width:2.2}.is{fill:#0067b1}"
    "@media(prefers-color-scheme:dark){text{fill:#e6e9ee}.b{fill:#171b21;stroke:#353c46}"
    ".s{fill:#a2acb8}.exact{fill:#5fd184}.match{fill:#63c8e6}.differs{fill:#ff8b7f}"
    ".no_log{fill:#a2acb8}.line{stroke:#2b323c}.one{stroke:#6e7781}.bar{stroke:#a2acb8}"
    ".r,.o{stroke:#171b21}"
    ".was{fill:#171b21;stroke:#ff9a57}.is{fill:#5eb1ff}}</style>\n";

static void add_counts(struct page *page, const struct verdict_counts *counts)
{
    double x = MARGIN;
    double text_x = MARGIN;
    for (size_t idx = 0; idx <= AUDIT_NO_LOG; idx++) {
        const char *name = audit_verdict_name((enum audit_verdict)idx);
        size_t n = counts->of[idx];
        double width = counts->n ? (WIDTH - 2 * MARGIN) * (double)n / (double)counts->n : 0;
        strbuf_printf(page->out,
                      "<rect class=\"%s\" x=\"%.1f\" y=\"72\" width=\"%.1f\" height=\"10\"/>\n",
                      name, x, width);
        strbuf_printf(page->out, "<text class=\"%s h\" x=\"%.1f\" y=\"104\">%s %zu %s</text>\n",
                      name, text_x, VERDICT_LOOKS[idx].icon, n,
                      idx == AUDIT_DIFFERS ? "differ" : VERDICT_LOOKS[idx].word);
        x += width;
        text_x += 110;
    }
}

static double ratio_x(double ratio, double low, double high)
{
    return RATIO_LEFT +
           (log(ratio) - log(low)) / (log(high) - log(low)) * (RATIO_RIGHT - RATIO_LEFT);
}

/* "4.25 = 4.25": printed, verdict, computed. */
static void add_value(struct page *page, const struct cell_audit *ca, double x, double y)
{
    const char *icon = ca->is_proposed ? "?" : VERDICT_LOOKS[ca->verdict].icon;
    HTML(page->out, "<text class=\"n\" x=\"{}\" y=\"{}\">{}</text>",
         textf(&page->arena, "%.1f", x + 62), textf(&page->arena, "%.1f", y), ca->cell->printed);
    HTML(page->out, "<text class=\"{} h\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
         str_of(audit_verdict_name(ca->verdict)), textf(&page->arena, "%.1f", x + 77),
         textf(&page->arena, "%.1f", y), str_of(icon));
    HTML(page->out, "<text class=\"n\" x=\"{}\" y=\"{}\">{}</text>\n",
         textf(&page->arena, "%.1f", x + 150), textf(&page->arena, "%.1f", y),
         ca->verdict == AUDIT_NO_LOG ? STR_LIT("no log") : rounded_text(page, ca));
}

static void add_dumbbell(struct page *page, const struct like_row *row, double low, double high,
                         double y)
{
    bool has_like = isfinite(row->ratio) && row->ratio > 0;
    double was = ratio_x(row->published_ratio, low, high);
    double is = has_like ? ratio_x(row->ratio, low, high) : was;
    bool is_left = is <= was;
    strbuf_printf(page->out,
                  "<line class=\"bar\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>"
                  "<circle class=\"was\" cx=\"%.1f\" cy=\"%.1f\" r=\"5.5\"/>",
                  was, is, y - 5, y - 5, was, y - 5);
    strbuf_printf(page->out, "<text class=\"s%s\" x=\"%.1f\" y=\"%.1f\">%.2f\xc3\x97</text>",
                  is_left ? "" : " n", was + (is_left ? 10 : -10), y, row->published_ratio);
    if (has_like) {
        strbuf_printf(page->out,
                      "<circle class=\"is\" cx=\"%.1f\" cy=\"%.1f\" r=\"5.5\"/>"
                      "<text class=\"r%s\" x=\"%.1f\" y=\"%.1f\">%.2f\xc3\x97</text>",
                      is, y - 5, is_left ? " n" : "", is + (is_left ? -10 : 10), y, row->ratio);
    }
    strbuf_add_char(page->out, '\n');
}

static void find_range(const struct report_audit *audit, size_t n_rows, double *low, double *high)
{
    *low = 0.9;
    *high = 1.1;
    for (size_t idx = 0; idx < n_rows; idx++) {
        const double values[] = {audit->rows[idx].ratio, audit->rows[idx].published_ratio};
        for (size_t at = 0; at < ARRAY_LEN(values); at++) {
            if (isfinite(values[at]) && values[at] > 0) {
                *low = fmin(*low, values[at]);
                *high = fmax(*high, values[at]);
            }
        }
    }
    *low /= 1.25;
    *high *= 1.3;
}

/* The first `n_rows` of them. */
static double rows_height(const struct report_audit *audit, size_t n_rows)
{
    double height = 0;
    for (size_t idx = 0; idx < n_rows; idx++) {
        height += ROW_HEIGHT + (audit->rows[idx].note.len ? NOTE_HEIGHT : 0);
    }
    return height;
}

/* As many of its reasons as fit. */
static struct str note_text(struct page *page, struct str note)
{
    size_t len = NOTE_BYTES;
    while (len > 0 && note.len > NOTE_BYTES && note.ptr[len] != ';') {
        len--;
    }
    return note.len > NOTE_BYTES ? textf(&page->arena, "%.*s; \xe2\x80\xa6", (int)len, note.ptr)
                                 : note;
}

static void add_rows(struct page *page, const struct report_audit *audit, size_t n_rows)
{
    double low;
    double high;
    find_range(audit, n_rows, &low, &high);
    HTML(page->out,
         "<text class=\"s\" x=\"230\" y=\"140\">{}</text><text class=\"s\" x=\"400\" "
         "y=\"140\">{}</text>",
         audit->rows[0].a->of_case->stack->label, audit->rows[0].b->of_case->stack->label);
    strbuf_printf(page->out,
                  "<text class=\"s\" x=\"%.1f\" y=\"140\">ratio: printed \xe2\x97\x8b, by one rule "
                  "\xe2\x97\x8f</text>\n<line class=\"one\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" "
                  "y2=\"%.1f\"/>\n",
                  RATIO_LEFT, ratio_x(1, low, high), ratio_x(1, low, high), HEAD_HEIGHT,
                  HEAD_HEIGHT + rows_height(audit, n_rows));
    for (size_t idx = 0; idx < n_rows; idx++) {
        const struct like_row *row = &audit->rows[idx];
        const struct report_case *c = row->a->of_case;
        double y = HEAD_HEIGHT + rows_height(audit, idx) + 22;
        strbuf_printf(page->out,
                      "<line class=\"line\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>",
                      MARGIN, WIDTH - MARGIN, y - 22, y - 22);
        HTML(page->out, "<text x=\"28\" y=\"{}\">{} {}, {} GPU{}</text>",
             textf(&page->arena, "%.1f", y), c->model, c->precision,
             textf(&page->arena, "%" PRId64, c->gpus), c->gpus == 1 ? STR_EMPTY : STR_LIT("s"));
        add_value(page, row->a, 230, y);
        add_value(page, row->b, 400, y);
        add_dumbbell(page, row, low, high, y);
        if (row->note.len) {
            HTML(page->out, "<text class=\"s o\" x=\"28\" y=\"{}\">{}</text>\n",
                 textf(&page->arena, "%.1f", y + NOTE_HEIGHT), note_text(page, row->note));
        }
    }
}

void page_card(struct strbuf *out, const struct report_audit *audit,
               const struct format_set *formats)
{
    struct page page = {.out = out, .formats = formats};
    struct verdict_counts counts = count_verdicts(audit);
    size_t n_rows = audit->n_rows < ROWS_MAX ? audit->n_rows : ROWS_MAX;
    double height = (n_rows ? HEAD_HEIGHT + rows_height(audit, n_rows) : 120) + FOOT_HEIGHT;
    strbuf_printf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
                  "width=\"%.0f\" height=\"%.0f\" role=\"img\" aria-labelledby=\"t\">\n",
                  WIDTH, height, WIDTH, height);
    HTML(out, "<title id=\"t\">{}: of {} published numbers, {}</title>\n", audit->report->title,
         textf(&page.arena, "%zu", counts.n), follow_text(&page, &counts, "the logs"));
    strbuf_add_z(out, STYLE);
    strbuf_printf(
        out, "<rect class=\"b\" x=\"0.5\" y=\"0.5\" width=\"%.0f\" height=\"%.0f\" rx=\"9\"/>\n",
        WIDTH - 1, height - 1);
    HTML(out, "<text class=\"t\" x=\"28\" y=\"38\">{}</text>\n", audit->report->title);
    HTML(out,
         "<text class=\"s\" x=\"28\" y=\"58\">{} published numbers, printed against computed from "
         "the published logs{}</text>\n",
         textf(&page.arena, "%zu", counts.n), audit_inferred_words(&page.arena, audit));
    add_counts(&page, &counts);
    if (n_rows) {
        add_rows(&page, audit, n_rows);
    }
    HTML(out, "<text class=\"s\" x=\"28\" y=\"{}\">reperf report {} --svg FILE{}</text>\n</svg>\n",
         textf(&page.arena, "%.0f", height - 14), audit->report->id,
         n_rows < audit->n_rows ? textf(&page.arena, " (%zu of %zu rows)", n_rows, audit->n_rows)
                                : STR_EMPTY);
    arena_release(&page.arena);
}
