/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "draft/propose.h"

#include "base/fs.h"
#include "base/str.h"
#include "base/table.h"
#include "draft/draft.h"
#include "log/engine.h"
#include "report/shell_script.h"

#define FORMAT_BYTES  (256u << 10)
#define PATTERN_BYTES 4096
#define SHOWN_MAX     20
#define CASES_SHOWN   12 /* of a column */
#define SHAPE_BYTES   160

static struct str id_of(struct arena *arena, const char *file)
{
    struct str stem = path_base(str_of(file));
    stem.len -= ends_with_any(stem, ".json");
    struct str id = draft_slug(arena, stem);
    return id.len ? id : STR_LIT("suggested");
}

/* Its text into p->text, and read again into ret_set. */
static int make_format(struct arena *arena, const struct proposal_want *want, struct proposal *p,
                       struct str source, struct format_set *ret_set, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(FORMAT_BYTES);
    const struct suggested_format as = {
        want->id.len ? want->id : id_of(arena, want->file ? want->file : "suggested"), source,
        p->skip};
    suggest_format(&p->list, &as, &text);
    strbuf_add_z(&text, "\n");
    ASSERT(!text.is_full);
    p->text = str_dup(arena, strbuf_str(&text));
    return load_format_text(arena, want->root, p->text, "the suggested format", ret_set, err);
}

/* Reads the log by what is proposed: which lines to leave out, and what the rest gives. */
static int try_format(struct arena *arena, const struct format *format,
                      const struct proposal_want *want, struct proposal *p, struct err *err)
{
    const struct reading how = {format, want->path, .is_of_rates = true};
    struct measurement m;
    if (measure_file(arena, &how, &m, NULL, err) < 0) {
        return -1;
    }
    const struct series *series = measurement_primary(&m);
    struct figure figure = engine_figure(series);
    p->skip = figure.n_skipped;
    p->n_used = series->n - p->skip;
    p->has_value = figure.has_value;
    p->value = figure.value;
    return 0;
}

static int write_format(struct arena *arena, const struct proposal_want *want, struct proposal *p,
                        struct format_set *ret_set, struct err *err)
{
    struct str source = str_printf(arena, "the lines of %s", want->log);
    if (!want->makes) {
        return 0;
    }
    return make_format(arena, want, p, source, ret_set, err) < 0 ||
                   (want->file && fs_write_atomic(want->file, p->text, err) < 0)
               ? -1
               : 0;
}

int propose_format(struct arena *arena, const struct proposal_want *want, struct proposal *ret,
                   struct format_set *ret_set, struct err *err)
{
    CLEANUP(strbuf) struct strbuf pattern = STRBUF(PATTERN_BYTES);
    CLEANUP(format_set) struct format_set set = {0};
    const struct vocabulary *vocabulary;
    ret->verdict = judgement_unread(0);
    if (load_vocabulary(arena, want->root, &vocabulary, err) < 0) {
        return -1;
    }
    ret->survey = survey_new(vocabulary);
    if (measure_survey(ret->survey, want->path, err) < 0 ||
        suggest_rank(arena, ret->survey, vocabulary, want->unit, &ret->list, err) < 0) {
        return -1;
    }
    ret->counts = survey_counts(ret->survey);
    const struct suggestion *best = suggest_best(&ret->list);
    if (ret->list.n && ret->list.items[0].kind == SUGGEST_TABLE) {
        ret->is_table = true;
        ret->verdict = judgement_undecided();
        ret->why = STR_LIT("its figures are of several cases, a table: no one number follows");
    }
    if (!best || !suggest_pattern(best, &pattern)) {
        return 0;
    }
    if (make_format(arena, want, ret, STR_LIT("-"), &set, err) < 0 ||
        try_format(arena, set.items[0], want, ret, err) < 0) {
        return -1;
    }
    if (ret->n_used == 0) {
        return 0;
    }
    ret->pattern = str_dup(arena, strbuf_str(&pattern));
    ret->unit = best->unit;
    ret->why = STR_LIT("no known format reads it; one is proposed");
    return write_format(arena, want, ret, ret_set, err);
}

void proposal_release(struct proposal *p)
{
    survey_free(p->survey);
    p->survey = NULL;
}

/* ---- how it is shown ---- */

/* As the vocabulary has it, or as it is printed. */
static struct str case_unit(const struct suggestion *s)
{
    return s->unit.len ? s->unit : s->number->unit;
}

/* "images/sec: N", "N it/s", "column box". */
static void add_shape(struct table *table, const struct survey_number *n)
{
    char shape[SHAPE_BYTES];
    if (n->is_clock) {
        table_add(table, STR_LIT("date and time"));
        return;
    }
    if (n->head.ptr) {
        snprintf(shape, sizeof(shape), "column %.*s", STR_ARG(n->key));
    } else {
        snprintf(shape, sizeof(shape), "%.*s%.*s%sN%.*s%s%.*s", STR_ARG(n->key),
                 STR_ARG(str_trim(n->gap)), n->key.len ? " " : "", n->si != 0, &n->si,
                 n->unit.len ? " " : "", STR_ARG(n->unit));
    }
    table_add(table, str_of(shape));
}

static void add_numbers(struct strbuf *text, const struct suggestions *list)
{
    struct table table;
    size_t n = 0;
    table = table_of(">lines|>first|number|>from|>to|what it says");
    for (size_t idx = 0; idx < list->n && n < SHOWN_MAX; idx++, n++) {
        const struct suggestion *s = &list->items[idx];
        TABLE_ADD(&table, table_text(&table, "%" PRId64, s->number->n),
                  table_text(&table, "%" PRId64, s->number->first_line));
        add_shape(&table, s->number);
        if (s->number->is_clock) {
            TABLE_ADD(&table, STR_LIT("-"), STR_LIT("-"));
        } else {
            TABLE_ADD(&table, table_text(&table, "%.6g", s->number->min),
                      table_text(&table, "%.6g", s->number->max));
        }
        if (s->unit.len) {
            table_addf(&table, "%s, %.*s", suggest_says(s), STR_ARG(s->unit));
        } else {
            table_add(&table, str_of(suggest_says(s)));
        }
    }
    table_render(&table, text);
    table_release(&table);
    if (list->n > n) {
        strbuf_printf(text, "and %zu more; --json has all\n", list->n - n);
    }
}

/* Lines of the table, each figure with its line: the first of each column. */
static void add_cases(struct strbuf *text, const struct suggestions *list)
{
    struct table table;
    size_t n = 0;
    table = table_of(">value|unit|>line|of");
    for (size_t idx = 0; idx < list->n; idx++) {
        const struct survey_number *number = list->items[idx].number;
        size_t few = number->n_points < CASES_SHOWN ? number->n_points : CASES_SHOWN;
        for (size_t at = 0; list->items[idx].kind == SUGGEST_TABLE && at < few; at++, n++) {
            TABLE_ADD(&table, table_text(&table, "%.10g", number->points[at].value),
                      case_unit(&list->items[idx]),
                      table_text(&table, "%" PRId64, number->points[at].line),
                      number->points[at].text);
        }
    }
    strbuf_add_z(text, "\nA table: no one number follows from all of them.\n");
    table_render(&table, text);
    table_release(&table);
}

static void add_missing(struct strbuf *text, const char *file, const struct suggestions *list)
{
    const struct suggestion *first = list->n ? &list->items[0] : NULL;
    if (first && (first->kind == SUGGEST_RATE_NO_UNIT || first->kind == SUGGEST_TIME_NO_UNIT)) {
        bool is_rate = first->kind == SUGGEST_RATE_NO_UNIT;
        strbuf_printf(text,
                      "\nThe log does not say in what \"%.*s\" is. Say it, and a format reads it:\n"
                      "  reperf measure %s --unit %s --suggest FILE.json\n",
                      STR_ARG(first->number->key), file, is_rate ? "images/s" : "s");
        return;
    }
    if (first && first->kind == SUGGEST_SPAN) {
        strbuf_printf(text,
                      "\nThe log prints spans of time alone (\"%.*s\"), and not how many samples "
                      "or steps they hold:\nno rate follows from it.\n",
                      STR_ARG(first->number->key));
        return;
    }
    if (first && first->kind == SUGGEST_SCALED) {
        strbuf_printf(text,
                      "\nThe log shortens its figures (\"%.*s\" in %c), and no pattern reads that "
                      "suffix:\nno rate follows from it.\n",
                      STR_ARG(first->number->key), first->number->si);
        return;
    }
    const char *why =
        suggest_best(list)
            ? "No pattern made from the words around the first one reads the log. Give one:"
            : "None of them is a rate or the time of a step by the words around it. Name it:";
    strbuf_printf(text,
                  "\n%s\n"
                  "  reperf measure %s --pattern 'WORDS (?<value>[\\d.]+)' --unit images/s\n",
                  why, file);
}

void proposal_add(struct strbuf *text, const char *file, const struct proposal *p)
{
    if (p->counts.n_left_out || p->counts.n_cut) {
        strbuf_printf(text,
                      "\nnot looked at: %" PRId64 " numbers after the first %d kinds, the "
                      "rest of %" PRId64 " long lines\n",
                      p->counts.n_left_out, SURVEY_NUMBERS_MAX, p->counts.n_cut);
    }
    if (p->counts.n_commas && !p->pattern.ptr) {
        strbuf_printf(text, "\nnot read: %" PRId64 " number%s with a decimal comma (250,75)\n",
                      p->counts.n_commas, plural_s((size_t)p->counts.n_commas));
    }
    if (p->counts.n_torn && !p->pattern.ptr) {
        strbuf_printf(text,
                      "\nnot decided: %" PRId64 " units stand between two numbers, and may be of "
                      "the one before or name the one\nbehind; --pattern says it\n",
                      p->counts.n_torn);
    }
    if (p->list.n == 0) {
        strbuf_add_z(text, "\nNo line has a number with a word next to it.\n");
        return;
    }
    strbuf_printf(text, "\nNumbers that recur (in at most the first %u MiB):\n",
                  MEASURE_BYTES_MAX >> 20);
    add_numbers(text, &p->list);
    if (p->is_table) {
        add_cases(text, &p->list);
        return;
    }
    if (!p->pattern.ptr) {
        add_missing(text, file, &p->list);
        return;
    }
    strbuf_printf(text, "\nproposed: %s%s%.*s\n  line     %.*s\n  pattern  ",
                  suggest_says(&p->list.items[0]), p->unit.len ? ", " : "", STR_ARG(p->unit),
                  STR_ARG(p->list.items[0].number->example));
    strbuf_add_str(text, p->pattern);
    if (p->skip) {
        strbuf_printf(text, "\n  window   without the first %zu of %zu", p->skip,
                      p->skip + p->n_used);
    } else {
        strbuf_printf(text, "\n  window   all %zu", p->n_used);
    }
    if (p->has_value) {
        strbuf_printf(text, "; they give %.6g %.*s", p->value, STR_ARG(p->unit));
    }
    strbuf_printf(text,
                  "\n\n  reperf measure %s --suggest FILE.json   writes it as a format\n"
                  "  reperf measure %s --format FILE.json    reads this and other logs by it\n",
                  file, file);
    if (p->list.items[0].is_of_one) {
        strbuf_printf(
            text, "  reperf measure %s --format FILE.json --rule job --gpus N   of all devices\n",
            file);
    } else if (p->list.items[0].kind == SUGGEST_TIME || str_eq_z(p->unit, "steps/s")) {
        strbuf_printf(text,
                      "  reperf measure %s --format FILE.json --rule samples --batch N --gpus N"
                      "   samples/s of the job\n",
                      file);
    }
}

static void put_cases(struct json_out *out, const struct suggestions *list)
{
    jw_array(out, "table");
    for (size_t idx = 0; idx < list->n; idx++) {
        const struct survey_number *n = list->items[idx].number;
        for (size_t at = 0; list->items[idx].kind == SUGGEST_TABLE && at < n->n_points; at++) {
            if (!n->points[at].text.len) {
                break;
            }
            jw_object(out, NULL);
            jw_i64(out, "line", n->points[at].line);
            jw_str(out, "text", n->points[at].text);
            jw_f64(out, "value", n->points[at].value);
            jw_str(out, "unit", case_unit(&list->items[idx]));
            jw_end_object(out);
        }
    }
    jw_end_array(out);
}

void proposal_put(struct json_out *out, const struct proposal *p)
{
    jw_array(out, "recurring");
    for (size_t idx = 0; idx < p->list.n; idx++) {
        const struct suggestion *s = &p->list.items[idx];
        const struct survey_number *n = s->number;
        jw_object(out, NULL);
        jw_str(out, "key", n->key.ptr ? n->key : STR_LIT(""));
        jw_str(out, "printed_unit", n->unit.ptr ? n->unit : STR_LIT(""));
        jw_i64(out, "lines", n->n);
        jw_i64(out, "first_line", n->first_line);
        jw_f64(out, "min", n->min);
        jw_f64(out, "max", n->max);
        jw_str(out, "example", n->example);
        jw_z(out, "says", suggest_says(s));
        jw_str(out, "unit", s->unit.ptr ? s->unit : STR_LIT(""));
        jw_end_object(out);
    }
    jw_end_array(out);
    if (p->is_table) {
        put_cases(out, &p->list);
    }
    if (!p->pattern.ptr) {
        jw_null(out, "proposed");
        return;
    }
    jw_object(out, "proposed");
    jw_str(out, "pattern", p->pattern);
    jw_str(out, "unit", p->unit.ptr ? p->unit : STR_LIT(""));
    jw_i64(out, "skip", (int64_t)p->skip);
    jw_i64(out, "samples", (int64_t)(p->skip + p->n_used));
    jw_end_object(out);
}
