/* SPDX-License-Identifier: Apache-2.0 */
/* The rates of a document's tables, and the text around them. */
#include "base/base.h"

#include "draft/draft_impl.h"

#include "log/logtime.h"
#include "log/numbers.h"
#include "report/shell_text.h"

#define HEAD_ROWS_MAX   3
#define HEAD_MAX        300 /* bytes */
#define TIME_UNIT_MAX   12
#define TABLE_BYTES_MAX (1 << 20)

struct draft_page { /* a table and its place */
    struct str document, title;
    const struct doc_table *table;
    struct str heads[DOC_COLS_MAX]; /* of all its header rows */
    enum draft_column columns[DOC_COLS_MAX];
    size_t n_columns, n_heads;
    struct str above;   /* the last line with words above it */
    struct str section; /* the last row that has one text alone */
    struct str carried[DOC_COLS_MAX];
};

/* ---- headers ---- */

static bool has_text(struct str text)
{
    return text.len > 0 && !str_eq_z(text, "-");
}

/* A row with one text and nothing else describes the rows below it. */
static struct str section_of(const struct doc_row *row)
{
    struct str one = STR_EMPTY;
    for (size_t c = 0; c < row->n; c++) {
        struct str text = row->cells[c].text;
        if (has_text(text) && one.len && !str_eq(one, text)) {
            return STR_EMPTY;
        }
        one = has_text(text) ? text : one;
    }
    return row->n > 1 ? one : STR_EMPTY;
}

/* A number alone or with its unit, whether it can be one of a report or not ("nan", "-3 img/s"). */
static bool is_number(struct draft_reader *r, struct str text)
{
    struct str printed, as_if;
    return draft_printed(r, text, &printed) ||
           (draft_is_unusable(r, text, &as_if) && draft_printed(r, as_if, &printed));
}

/* "56.17 ms", "1.491s ± 0.178", "0.98x": a figure, not a name that begins with a number ("8 GPUs", "1x"). */
static bool is_figure(struct draft_reader *r, struct str text)
{
    struct str printed, rest;
    size_t n = 0;
    if (is_number(r, text)) {
        return true;
    }
    if (!draft_printed_with(r, text, &printed, &rest)) {
        return false;
    }
    while (n < rest.len && (rest.ptr[n] | 0x20) >= 'a' && (rest.ptr[n] | 0x20) <= 'z') {
        n++;
    }
    return draft_time_unit(r, str_sub(rest, 0, n)).len > 0 ||
           (memchr(printed.ptr, '.', printed.len) && (n < 2 || str_eq_z(rest, "GB")));
}

/* A row without a figure is another header row. */
static bool is_head(struct draft_reader *r, const struct doc_row *row)
{
    for (size_t c = 0; c < row->n; c++) {
        if (is_figure(r, row->cells[c].text)) {
            return false;
        }
    }
    return !section_of(row).len;
}

static void read_heads(struct draft_reader *r, struct draft_page *page)
{
    const struct doc_table *table = page->table;
    page->n_columns = table->rows[0].n;
    page->n_heads = 1;
    while (page->n_heads < HEAD_ROWS_MAX && page->n_heads + 1 < table->n_rows &&
           table->rows[page->n_heads].n == page->n_columns &&
           is_head(r, &table->rows[page->n_heads])) {
        page->n_heads++;
    }
    for (size_t c = 0; c < page->n_columns; c++) {
        struct str head = table->rows[0].cells[c].text;
        for (size_t row = 1; row < page->n_heads; row++) {
            struct str more = table->rows[row].cells[c].text;
            if (has_text(more) && !str_eq(more, head) && head.len + more.len < HEAD_MAX) {
                head = str_of(arena_printf(r->arena, "%.*s%s%.*s", STR_ARG(head),
                                           head.len ? " " : "", STR_ARG(more)));
            }
        }
        page->heads[c] = head;
        page->columns[c] = draft_column_of(r, head);
    }
}

/* ---- rows ---- */

static bool is_log_link(struct str link)
{
    return str_find(link, STR_LIT("log")) >= 0 || str_ends(link, STR_LIT(".txt")) ||
           str_ends(link, STR_LIT(".out"));
}

static void read_label(struct draft_reader *r, enum draft_column column, struct str text,
                       struct draft_attrs *attrs)
{
    const struct word *word;
    struct str name;
    switch (column) {
    case COLUMN_GPUS:
        (void)(attrs->gpus || draft_count(text, &attrs->gpus));
        break;
    case COLUMN_PER_NODE:
        (void)(attrs->gpus_per_node || draft_count(text, &attrs->gpus_per_node));
        break;
    case COLUMN_NODES:
        (void)(attrs->nodes || draft_count(text, &attrs->nodes));
        break;
    case COLUMN_BATCH:
        (void)(attrs->batch || draft_count(text, &attrs->batch));
        break;
    case COLUMN_MODEL:
        name = draft_slug(r->arena, text);
        attrs->model =
            !attrs->model.ptr || !name.len
                ? (name.len ? name : attrs->model)
                : draft_slug(r->arena, str_of(arena_printf(r->arena, "%.*s-%.*s",
                                                           STR_ARG(attrs->model), STR_ARG(name))));
        break;
    case COLUMN_PRECISION:
        word = words_find(&r->vocabulary->precisions, draft_lower(r->arena, text));
        attrs->precision = word && !attrs->precision.ptr ? word->name : attrs->precision;
        break;
    case COLUMN_VALUE:
    case COLUMN_FRAMEWORK:
    case COLUMN_LABEL:
        break;
    }
    draft_read_attrs(r, text, attrs);
    if (column != COLUMN_MODEL && !attrs->machine.ptr && draft_finds(r, SHAPE_HARDWARE, text)) {
        attrs->machine = text;
    }
}

/* A row's own words: its labels, and the columns that describe it. */
static void read_row(struct draft_reader *r, const struct draft_page *page,
                     const struct doc_row *row, struct draft_attrs *attrs, struct str *ret_link)
{
    for (size_t c = 0; c < row->n && c < page->n_columns; c++) {
        const struct doc_cell *cell = &row->cells[c];
        struct str number;
        bool is_value =
            page->columns[c] == COLUMN_VALUE && draft_printed(r, cell->text, &number) && c > 0;
        if (!is_value) {
            read_label(r, page->columns[c], cell->text.len ? cell->text : page->carried[c], attrs);
        }
        /* A link on another number belongs to that number. */
        if (!is_value && cell->link.ptr &&
            (!ret_link->ptr || (!is_log_link(*ret_link) && is_log_link(cell->link)))) {
            *ret_link = cell->link;
        }
    }
    if (!attrs->gpus && attrs->nodes && attrs->gpus_per_node) {
        attrs->gpus = attrs->nodes * attrs->gpus_per_node;
    }
}

static struct str folder_name(struct str path)
{
    path.len -= path_base(path).len;
    path.len -= path.len > 0;
    return path_base(path);
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

/* The nearest folder that is not named for a framework or for what it contains; if there is none, the heading, unless it is a general
   one. */
static struct str model_of(struct draft_reader *r, const struct draft_page *page)
{
    struct str path = page->document;
    struct str name = folder_name(path);
    while (name.len && (is_word_of(draft_lower(r->arena, name),
                                   "docs doc otherreports benchmark benchmarks results result "
                                   "logs log examples en csv records data reports") ||
                        draft_finds(r, SHAPE_FRAMEWORK, name))) {
        path = str_sub(path, 0, (size_t)(name.ptr - path.ptr));
        name = folder_name(path);
    }
    if (!name.len && !draft_finds(r, SHAPE_GENERAL, page->table->heading)) {
        name = page->table->heading;
    }
    return draft_slug(r->arena, name);
}

/* Reads the text around the number, nearest first. */
static void read_around(struct draft_reader *r, const struct draft_page *page,
                        struct draft_attrs *attrs)
{
    const struct str around[] = {page->section,      page->above,    page->table->heading,
                                 page->table->outer, page->document, page->title};
    for (size_t idx = 0; idx < ARRAY_LEN(around); idx++) {
        draft_read_attrs(r, around[idx], attrs);
    }
    if (!attrs->model.ptr) {
        attrs->model = model_of(r, page);
        attrs->is_model_a_guess = attrs->model.ptr != NULL;
    }
}

/* ---- numbers ---- */

static void leave_out(struct draft *into, enum draft_left_out why, const struct draft_page *page,
                      struct str text)
{
    if (into->left[why].n++ == 0) {
        into->left[why].first = text;
        into->left[why].document = page->document;
        into->left[why].line = page->table->line;
    }
}

/* A unit outside the column counts if the column's header says speed, a row, or a name: not if it says "date". */
static struct str unit_around(struct draft_reader *r, const struct draft_page *page)
{
    struct str unit = draft_unit(r, page->table->heading);
    unit = unit.len ? unit : draft_unit(r, page->above);
    unit = unit.len ? unit : draft_unit(r, page->heads[0]);
    return unit.len ? unit : draft_unit(r, page->table->outer);
}

/* False: not a speed, or one that is left out. */
static bool find_unit(struct draft_reader *r, const struct draft_page *page, size_t column,
                      struct str text, struct draft *into, struct str *ret)
{
    struct str head = page->heads[column];
    bool speaks = draft_finds(r, SHAPE_RATE, head) || draft_finds(r, SHAPE_RATE, page->above) ||
                  draft_finds(r, SHAPE_RATE, page->table->heading) ||
                  draft_finds(r, SHAPE_RATE, page->table->outer) ||
                  (draft_finds(r, SHAPE_RATE, page->document) &&
                   !memchr(head.ptr ? head.ptr : "", '_', head.len));
    struct str unit = draft_unit(r, head);
    unit = unit.len ? unit : draft_unit(r, text);
    unit = unit.len ? unit : unit_around(r, page);
    if (!unit.len && !speaks) {
        return false;
    }
    if (draft_finds(r, SHAPE_PER_GPU, head) || draft_finds(r, SHAPE_PER_GPU, text)) {
        leave_out(into, LEFT_PER_GPU, page, text);
        return false;
    }
    if (!unit.len && draft_finds(r, SHAPE_ANY_PER_SECOND, head)) {
        leave_out(into, LEFT_UNKNOWN_UNIT, page, head);
        return false;
    }
    unit = unit.len ? unit : r->unit;
    if (!unit.len) {
        leave_out(into, LEFT_NO_UNIT, page, text);
    }
    *ret = unit;
    return unit.len > 0;
}

/* A time whose unit is in the column's header or the cell, or an accuracy. */
static bool find_other(struct draft_reader *r, const struct draft_page *page, size_t column,
                       struct draft_number *number, struct str text)
{
    struct str head = page->heads[column];
    struct str rest;
    struct str unit;
    if (!head.len || column == 0 || !draft_printed_with(r, text, &number->printed, &rest)) {
        return false;
    }
    if (draft_finds(r, SHAPE_ACCURACY, head)) {
        double value;
        number->metric = STR_LIT("accuracy");
        number->unit = STR_LIT("%");
        return (!rest.len || str_eq_z(rest, "%")) &&
               lognumber_parse(number->printed, &value) == NUMBER_OK && value > 1 && value <= 100;
    }
    unit = draft_time_unit(r, rest);
    bool is_in_cell =
        unit.len && rest.len <= TIME_UNIT_MAX &&
        (rest.ptr[0] != '(' || draft_finds(r, SHAPE_TIME, head)); /* "7 (s)" of a kind */
    unit = is_in_cell ? unit : draft_time_unit(r, head);
    if (!unit.len || (rest.len && !is_in_cell && rest.ptr[0] != '(') ||
        draft_finds(r, SHAPE_RATIO, head) || draft_finds(r, SHAPE_SETTING, head) ||
        !(is_in_cell || draft_finds(r, SHAPE_TIME, head))) {
        return false;
    }
    number->unit = unit;
    number->metric = draft_finds(r, SHAPE_LATENCY, head) ? STR_LIT("latency")
                     : str_eq_z(unit, "min") || str_eq_z(unit, "h") ||
                             (str_eq_z(unit, "s") && draft_finds(r, SHAPE_WHOLE_TIME, head))
                         ? STR_LIT("time_to_train")
                         : STR_LIT("step_time");
    return true;
}

static bool find_rate(struct draft_reader *r, const struct draft_page *page, size_t column,
                      struct draft_number *number, struct str text, struct draft *into)
{
    bool is_value = page->columns[column] == COLUMN_VALUE && !(column == 0 && !page->heads[0].len);
    number->metric = STR_LIT("throughput");
    if (is_value && draft_is_scaled(r, page->heads[column], text)) {
        if (find_unit(r, page, column, text, into, &number->unit)) {
            leave_out(into, LEFT_SCALED, page, text);
        }
        return false;
    }
    return is_value && draft_printed(r, text, &number->printed) &&
           find_unit(r, page, column, text, into, &number->unit);
}

/* A number that would be taken if it could be one of a report is counted. */
static void note_unusable(struct draft_reader *r, const struct draft_page *page, size_t column,
                          struct str text, struct draft *into)
{
    struct draft_number number = {0};
    struct draft counts = {0};
    struct str as_if;
    bool is_one = draft_is_unusable(r, text, &as_if) &&
                  (find_rate(r, page, column, &number, as_if, &counts) ||
                   find_other(r, page, column, &number, as_if));
    for (int why = 0; why < DRAFT_LEFTS; why++) {
        is_one = is_one || counts.left[why].n > 0;
    }
    if (is_one) {
        leave_out(into, LEFT_UNUSABLE, page, text);
    }
}

static void keep(struct draft *into, const struct draft_number *number, bool is_rate)
{
    struct draft_number *list = is_rate ? into->items : into->others;
    size_t *n = is_rate ? &into->n : &into->n_others;
    if (*n == DRAFT_NUMBERS_MAX) {
        into->n_left_out++;
        return;
    }
    list[(*n)++] = *number;
}

static void add_number(struct draft_reader *r, const struct draft_page *page, size_t row,
                       size_t column, struct draft *into)
{
    const struct doc_row *of = &page->table->rows[row];
    const struct doc_cell *cell = &of->cells[column];
    struct str head = page->heads[column];
    struct str link = STR_EMPTY;
    struct draft_attrs said = {0};
    struct draft_number number = {.document = page->document,
                                  .title = page->title,
                                  .heading = page->table->heading,
                                  .line = page->table->line,
                                  .row = row,
                                  .column = column,
                                  .link = cell->link};
    bool is_rate = find_rate(r, page, column, &number, cell->text, into);
    if (!is_rate && !find_other(r, page, column, &number, cell->text)) {
        note_unusable(r, page, column, cell->text, into);
        return;
    }
    draft_read_attrs(r, head, &said);
    draft_read_attrs(r, cell->text, &said);
    number.attrs = said;
    read_row(r, page, of, &number.attrs, &link);
    number.link = number.link.ptr ? number.link : link;
    /* "resnet50" above a column of rates. */
    if (!number.attrs.model.ptr && !draft_says_row(&said) && !draft_unit(r, head).len &&
        (!draft_finds(r, SHAPE_GENERAL, head) || draft_finds(r, SHAPE_SIZED, head)) &&
        !draft_finds(r, SHAPE_TIME, head) && !draft_finds(r, SHAPE_STATISTIC, head) &&
        !str_eq_z(number.metric, "accuracy")) {
        number.attrs.model = draft_slug(r->arena, head);
        number.attrs.is_model_a_guess = number.attrs.model.ptr != NULL;
    }
    read_around(r, page, &number.attrs);
    keep(into, &number, is_rate);
}

static void add_table(struct draft_reader *r, struct draft_page *page, struct draft *into)
{
    const struct doc_table *table = page->table;
    read_heads(r, page);
    page->above = line_before(table->before);
    for (size_t row = page->n_heads; row < table->n_rows; row++) {
        const struct doc_row *of = &table->rows[row];
        struct str section = section_of(of);
        if (section.len && !is_number(r, section)) {
            page->section = section;
            memset(page->carried, 0, sizeof(page->carried));
            continue;
        }
        for (size_t c = 0; c < of->n && c < page->n_columns; c++) {
            add_number(r, page, row, c, into);
            page->carried[c] = of->cells[c].text.len ? of->cells[c].text : page->carried[c];
        }
    }
}

/* The same cells in another document are the same table. */
static bool is_new_table(struct draft_reader *r, const struct doc_table *table)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(TABLE_BYTES_MAX);
    for (size_t row = 0; row < table->n_rows; row++) {
        for (size_t c = 0; c < table->rows[row].n; c++) {
            strbuf_printf(&text, "%.*s\t", STR_ARG(table->rows[row].cells[c].text));
        }
        strbuf_add_char(&text, '\n');
    }
    return text.is_full || map_add(&r->tables, str_dup(r->arena, strbuf_str(&text)), r);
}

void draft_add_tables(struct draft_reader *r, struct str document, const struct doc_tables *tables,
                      struct draft *into)
{
    if (!into->items) {
        into->items = arena_array(r->arena, struct draft_number, DRAFT_NUMBERS_MAX);
        into->others = arena_array(r->arena, struct draft_number, DRAFT_NUMBERS_MAX);
    }
    for (size_t t = 0; t < tables->n; t++) {
        struct draft_page page = {
            .document = document, .title = tables->title, .table = &tables->items[t]};
        if (tables->items[t].n_rows > 1 && is_new_table(r, page.table)) {
            add_table(r, &page, into);
        }
    }
}
