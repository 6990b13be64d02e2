/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "judge/draft.h"

#include "codec/pattern.h"
#include "judge/logtime.h"
#include "judge/records.h"

#define COUNT_MAX       100000
#define BATCH_MAX       10000000
#define NAME_BYTES      64
#define SHAPE_STEPS_MAX 1000000u

enum shape {
    SHAPE_GRID,
    SHAPE_GPUS,
    SHAPE_GPUS_AFTER,
    SHAPE_TIMES,
    SHAPE_BATCH,
    SHAPE_PRECISION,
    SHAPE_FRAMEWORK,
    SHAPE_RATE,
    SHAPE_PER_SECOND,
    SHAPE_FPS,
    SHAPE_OTHER,
    SHAPES
};

#define FREE_BEFORE "(?i)(?<![a-z0-9])"
static const char *const SHAPE_TEXT[SHAPES] = {
    [SHAPE_GRID] = FREE_BEFORE "n(?<a>\\d{1,4})[cg](?<b>\\d{1,3})(?![a-z0-9])",
    [SHAPE_GPUS] = FREE_BEFORE
    "(?:n?gpus?|cards?|num_gpus|world[ _]size)\\s?[=:_]?\\s?(?<a>\\d{1,5})(?!\\d|\\.\\d)",
    [SHAPE_GPUS_AFTER] = "(?i)(?<![a-z0-9.])(?<a>\\d{1,5})[ _-]?(?:x "
                         ")?(?:gpus?(?![a-z])|cards?(?![a-z])|\xe5\x8d\xa1)",
    [SHAPE_TIMES] = "(?i)(?<![a-z0-9.])(?<a>\\d{1,4}) ?(?:x|\xc3\x97) ?(?:nvidia |tesla "
                    ")?[avhptl]\\d{1,3}(?!\\d)",
    [SHAPE_BATCH] =
        FREE_BEFORE "(?:bs|batch[ _-]?size|batch)\\s?[=:_]?\\s?(?<a>\\d{1,7})(?!\\d|\\.\\d)",
    [SHAPE_PRECISION] = FREE_BEFORE
    "(?<a>fp32|tf32|fp16|bf16|amp|float32|float16|bfloat16|mixed precision)(?![a-z0-9])",
    [SHAPE_FRAMEWORK] =
        "(?i)(?<a>paddle|pytorch|torch|tensorflow|mxnet|jax|oneflow|mindspore|keras)",
    [SHAPE_RATE] = "(?i)throughput|speed(?![ _-]?up)|training "
                   "performance|\xe5\x90\x9e\xe5\x90\x90|ips(?![a-z])|fps",
    [SHAPE_PER_SECOND] =
        "(?i)(?<a>images?|imgs?|samples?|sequences?|sentences?|tokens?|words?) per sec",
    [SHAPE_FPS] = "(?i)(?<![a-z])fps(?![a-z])",
    [SHAPE_OTHER] =
        "(?i)accuracy|top-?[15]|\\bacc\\b|\\bm?ap\\b|miou|param|flops|loss|latency|memory|size|"
        "epoch|\\blr\\b|"
        "speed-?up|\xe5\x8a\xa0\xe9\x80\x9f|ratio|scaling|%|time|hours?|mins?\\b|version",
};

struct draft_reader {
    struct arena *arena; /* borrowed */
    const struct vocabulary *vocabulary;
    struct pattern *shapes[SHAPES];
    int a[SHAPES], b[SHAPES];
};

struct draft_reader *draft_reader_new(struct arena *arena, const struct vocabulary *vocabulary)
{
    struct draft_reader *r = xcalloc(1, sizeof(*r));
    r->arena = arena;
    r->vocabulary = vocabulary;
    for (size_t idx = 0; idx < SHAPES; idx++) {
        struct err err = {0};
        int status = pattern_new(str_of(SHAPE_TEXT[idx]), &r->shapes[idx], &err);
        ASSERT(status == 0);
        r->a[idx] = pattern_group(r->shapes[idx], "a");
        r->b[idx] = pattern_group(r->shapes[idx], "b");
    }
    return r;
}

void draft_reader_free(struct draft_reader *reader)
{
    for (size_t idx = 0; reader && idx < SHAPES; idx++) {
        pattern_free(reader->shapes[idx]);
    }
    free(reader);
}

/* ---- what a text says of a row ---- */

static bool finds(struct draft_reader *r, enum shape shape, struct str text)
{
    struct err ignored = {0};
    struct match_budget budget = {SHAPE_STEPS_MAX};
    bool is_hit = false;
    return text.len && pattern_match(r->shapes[shape], text, &budget, &is_hit, &ignored) == 0 &&
           is_hit;
}

static bool finds_count(struct draft_reader *r, enum shape shape, struct str text, int64_t *ret)
{
    struct err ignored = {0};
    return finds(r, shape, text) && str_to_i64(pattern_text(r->shapes[shape], text, r->a[shape]), 1,
                                               BATCH_MAX, ret, &ignored) == 0;
}

static struct str lower(struct arena *arena, struct str text)
{
    char *copy = arena_strndup(arena, text.ptr, text.len);
    for (char *c = copy; *c; c++) {
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    }
    return str_of(copy);
}

static void take_grid(struct draft_reader *r, struct str text, struct draft_attrs *into)
{
    int64_t each;
    struct err ignored = {0};
    if (!into->gpus && finds_count(r, SHAPE_GRID, text, &into->nodes) &&
        str_to_i64(pattern_text(r->shapes[SHAPE_GRID], text, r->b[SHAPE_GRID]), 1, COUNT_MAX, &each,
                   &ignored) == 0) {
        into->gpus = into->nodes * each;
    }
}

void draft_read_attrs(struct draft_reader *r, struct str text, struct draft_attrs *into)
{
    struct str found;
    take_grid(r, text, into);
    if (!into->gpus && !finds_count(r, SHAPE_GPUS, text, &into->gpus) &&
        !finds_count(r, SHAPE_GPUS_AFTER, text, &into->gpus)) {
        (void)finds_count(r, SHAPE_TIMES, text, &into->gpus);
    }
    if (!into->batch) {
        (void)finds_count(r, SHAPE_BATCH, text, &into->batch);
    }
    if (!into->precision.ptr && finds(r, SHAPE_PRECISION, text)) {
        const struct word *word;
        found =
            lower(r->arena, pattern_text(r->shapes[SHAPE_PRECISION], text, r->a[SHAPE_PRECISION]));
        word = words_find(&r->vocabulary->precisions,
                          str_starts(found, STR_LIT("mixed")) ? STR_LIT("amp") : found);
        into->precision = word ? word->name : STR_EMPTY;
    }
    if (!into->framework.ptr && finds(r, SHAPE_FRAMEWORK, text)) {
        found =
            lower(r->arena, pattern_text(r->shapes[SHAPE_FRAMEWORK], text, r->a[SHAPE_FRAMEWORK]));
        into->framework = str_eq_z(found, "torch") ? STR_LIT("pytorch") : found;
    }
}

/* ---- tables ---- */

/* Of a column's name, "train_samples_per_sec", or of "FPS". */
static struct str head_unit(struct draft_reader *r, struct str head)
{
    const struct word *unit;
    struct str metric;
    bool is_named = str_find(head, STR_LIT("per")) >= 0 || str_find(head, STR_LIT("/")) >= 0;
    if (is_named && records_figure(r->vocabulary, head, &metric, &unit) &&
        str_eq_z(unit->dimension, "rate")) {
        return unit->name;
    }
    return finds(r, SHAPE_FPS, head) ? words_find(&r->vocabulary->units, STR_LIT("frames/s"))->name
                                     : STR_EMPTY;
}

/* The first unit of a rate of items in a text; empty where there is none. */
static struct str rate_unit(struct draft_reader *r, struct str text)
{
    for (size_t at = 0; at < text.len;) {
        size_t end = at;
        const struct word *word;
        while (end < text.len && ((text.ptr[end] | 0x20) >= 'a' && (text.ptr[end] | 0x20) <= 'z')) {
            end++;
        }
        if (end > at && end < text.len && text.ptr[end] == '/') {
            size_t over = end + 1;
            while (over < text.len && (text.ptr[over] | 0x20) >= 'a' &&
                   (text.ptr[over] | 0x20) <= 'z') {
                over++;
            }
            word = words_find(&r->vocabulary->units, lower(r->arena, str_sub(text, at, over - at)));
            if (word && str_eq_z(word->dimension, "rate")) {
                return word->name;
            }
        }
        at = end + 1;
    }
    if (finds(r, SHAPE_PER_SECOND, text)) {
        struct str item = lower(
            r->arena, pattern_text(r->shapes[SHAPE_PER_SECOND], text, r->a[SHAPE_PER_SECOND]));
        const struct word *word = words_find(
            &r->vocabulary->units, str_of(arena_printf(r->arena, "%.*s/s", STR_ARG(item))));
        return word ? word->name : STR_EMPTY;
    }
    return STR_EMPTY;
}

/* "1,234.5 img/s", "**117.2**": the digits alone. What follows may be a unit or a bracket, and no second number. */
static bool printed_of(struct arena *arena, struct str text, struct str *ret)
{
    char buf[NAME_BYTES];
    size_t len = 0;
    struct str digits;
    while (len < text.len && ((text.ptr[len] >= '0' && text.ptr[len] <= '9') ||
                              text.ptr[len] == ',' || text.ptr[len] == '.')) {
        len++;
    }
    digits = lognumber_ungroup(str_sub(text, 0, len), buf, sizeof(buf));
    for (size_t idx = len; idx < text.len && text.ptr[idx] != '('; idx++) {
        if ((text.ptr[idx] >= '0' && text.ptr[idx] <= '9') || text.ptr[idx] == '%' ||
            (idx == len && text.ptr[idx] == 'x')) {
            return false;
        }
    }
    if (digits.len == 0 || digits.len > 20 || memchr(digits.ptr, ',', digits.len) ||
        digits.ptr[0] == '.' || digits.ptr[digits.len - 1] == '.') {
        return false;
    }
    *ret = str_dup(arena, digits);
    return lognumber_parse(*ret, &(double){0}) == NUMBER_OK;
}

enum column {
    COLUMN_VALUE,
    COLUMN_GPUS,
    COLUMN_BATCH,
    COLUMN_PRECISION,
    COLUMN_MODEL,
    COLUMN_FRAMEWORK,
    COLUMN_LABEL
};

static enum column column_of(struct draft_reader *r, struct str head)
{
    static const char *const GPUS[] = {"gpus",
                                       "gpu",
                                       "#gpus",
                                       "gpu num",
                                       "number of gpus",
                                       "num gpus",
                                       "cards",
                                       "\xe5\x8d\xa1\xe6\x95\xb0",
                                       NULL};
    static const char *const BATCHES[] = {"batch",
                                          "bs",
                                          "batch size",
                                          "batch_size",
                                          "batchsize",
                                          "batch size / gpu",
                                          "batch size per gpu",
                                          "batch_size_per_gpu",
                                          NULL};
    static const char *const MODELS[] = {"model", "models", "network", "\xe6\xa8\xa1\xe5\x9e\x8b",
                                         NULL};
    static const char *const PRECISIONS[] = {"precision", "dtype", "\xe7\xb2\xbe\xe5\xba\xa6",
                                             NULL};
    struct str name = lower(r->arena, head);
    bool is_rate =
        rate_unit(r, head).len > 0 || head_unit(r, head).len > 0 || finds(r, SHAPE_RATE, head);
    return str_eq_any(name, GPUS)                                                ? COLUMN_GPUS
           : str_eq_any(name, BATCHES) || str_ends(name, STR_LIT("_batch_size")) ? COLUMN_BATCH
           : str_eq_any(name, MODELS)                                            ? COLUMN_MODEL
           : str_eq_any(name, PRECISIONS)                                        ? COLUMN_PRECISION
           : str_eq_z(name, "framework")                                         ? COLUMN_FRAMEWORK
           : !is_rate && finds(r, SHAPE_OTHER, head)                             ? COLUMN_LABEL
                                                                                 : COLUMN_VALUE;
}

static struct str slug(struct arena *arena, struct str text)
{
    struct str low = lower(arena, str_sub(text, 0, NAME_BYTES));
    char *out = arena_strndup(arena, low.ptr, low.len);
    size_t len = 0;
    for (size_t idx = 0; idx < low.len; idx++) {
        char c = low.ptr[idx];
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
            out[len++] = c;
        } else if (len && out[len - 1] != '-') {
            out[len++] = '-';
        }
    }
    while (len && out[len - 1] == '-') {
        len--;
    }
    return len ? (struct str){out, len} : STR_EMPTY;
}

/* A row's own words: the columns that say what it is of, and its label. */
static void read_row(struct draft_reader *r, const struct doc_table *table,
                     const struct doc_row *row, struct draft_attrs *attrs, struct str *ret_link)
{
    const struct doc_row *head = &table->rows[0];
    struct err ignored = {0};
    for (size_t c = 0; c < row->n && c < head->n; c++) {
        struct str text = row->cells[c].text;
        int64_t *count = NULL;
        switch (column_of(r, head->cells[c].text)) {
        case COLUMN_GPUS:
            count = &attrs->gpus;
            break;
        case COLUMN_BATCH:
            count = &attrs->batch;
            break;
        case COLUMN_MODEL:
            attrs->model = slug(r->arena, text);
            break;
        case COLUMN_VALUE:
        case COLUMN_PRECISION:
        case COLUMN_FRAMEWORK:
        case COLUMN_LABEL:
            break;
        }
        if (count) {
            (void)!str_to_i64(text, 1, BATCH_MAX, count, &ignored);
            ignored = (struct err){0};
        }
        draft_read_attrs(r, text, attrs);
        *ret_link = ret_link->ptr ? *ret_link : row->cells[c].link;
    }
}

static struct str folder_name(struct str path)
{
    size_t end = path.len;
    size_t from;
    while (end > 0 && path.ptr[end - 1] != '/') {
        end--;
    }
    end -= end > 0;
    from = end;
    while (from > 0 && path.ptr[from - 1] != '/') {
        from--;
    }
    return str_sub(path, from, end - from);
}

/* The last line with words above the table: "- FP32". */
static struct str line_before(struct str text)
{
    struct str rest = str_trim(text);
    size_t from = rest.len;
    while (from > 0 && rest.ptr[from - 1] != '\n') {
        from--;
    }
    return str_sub(rest, from, rest.len);
}

/* The nearest folder that is named for something else than a framework or what lies in it. */
static struct str model_of(struct draft_reader *r, struct str document)
{
    static const char *const GENERAL[] = {"docs",       "doc",     "otherreports", "benchmark",
                                          "benchmarks", "results", "logs",         "examples",
                                          "en",         NULL};
    struct str path = document;
    struct str name = folder_name(path);
    while (name.len &&
           (str_eq_any(lower(r->arena, name), GENERAL) || finds(r, SHAPE_FRAMEWORK, name))) {
        path = str_sub(path, 0, (size_t)(name.ptr - path.ptr));
        name = folder_name(path);
    }
    return slug(r->arena, name);
}

struct page { /* a document: where it lies, and what it is called */
    struct str document, title;
};

/* What stands around the table: nearest first. */
static void read_around(struct draft_reader *r, const struct page *page,
                        const struct doc_table *table, struct draft_attrs *attrs)
{
    draft_read_attrs(r, line_before(table->before), attrs);
    draft_read_attrs(r, table->heading, attrs);
    draft_read_attrs(r, page->document, attrs);
    draft_read_attrs(r, page->title, attrs);
    attrs->model = attrs->model.ptr ? attrs->model : model_of(r, page->document);
}

static void add_number(struct draft_reader *r, const struct page *page,
                       const struct doc_table *table, size_t row, size_t column, struct draft *into)
{
    const struct doc_cell *cell = &table->rows[row].cells[column];
    struct str head = table->rows[0].cells[column].text;
    struct draft_number number = {.document = page->document,
                                  .heading = table->heading,
                                  .line = table->line,
                                  .row = row,
                                  .column = column,
                                  .link = cell->link};
    struct str link = STR_EMPTY;
    bool speaks = finds(r, SHAPE_RATE, head) || finds(r, SHAPE_RATE, table->heading);
    if (column_of(r, head) != COLUMN_VALUE || !printed_of(r->arena, cell->text, &number.printed)) {
        return;
    }
    number.unit = rate_unit(r, head);
    number.unit = number.unit.len ? number.unit : head_unit(r, head);
    number.unit = number.unit.len ? number.unit : rate_unit(r, cell->text);
    number.unit = number.unit.len ? number.unit : rate_unit(r, table->heading);
    number.unit = number.unit.len ? number.unit : rate_unit(r, table->before);
    number.unit = number.unit.len ? number.unit : rate_unit(r, table->rows[0].cells[0].text);
    if (!number.unit.len) {
        into->n_without_unit += speaks;
        return;
    }
    if (into->n == DRAFT_NUMBERS_MAX) {
        into->n_left_out++;
        return;
    }
    draft_read_attrs(r, head, &number.attrs);
    read_row(r, table, &table->rows[row], &number.attrs, &link);
    number.link = number.link.ptr ? number.link : link;
    read_around(r, page, table, &number.attrs);
    into->items[into->n++] = number;
}

void draft_add_tables(struct draft_reader *r, struct str document, const struct doc_tables *tables,
                      struct draft *into)
{
    const struct page page = {document, tables->title};
    into->items =
        into->items ? into->items : arena_array(r->arena, struct draft_number, DRAFT_NUMBERS_MAX);
    for (size_t t = 0; t < tables->n; t++) {
        const struct doc_table *table = &tables->items[t];
        for (size_t row = 1; row < table->n_rows; row++) {
            for (size_t c = 0; c < table->rows[row].n && c < table->rows[0].n; c++) {
                add_number(r, &page, table, row, c, into);
            }
        }
    }
}
