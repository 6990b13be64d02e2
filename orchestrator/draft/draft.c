/* SPDX-License-Identifier: Apache-2.0 */
/* The rates of a document's tables, and the text around them. */
#include "base/base.h"

#include "draft/draft.h"

#include "base/map.h"
#include "codec/pattern.h"
#include "log/logtime.h"
#include "log/records.h"
#include "report/shell_script.h"

#define HEAD_ROWS_MAX   3
#define HEAD_MAX        300 /* bytes */
#define TIME_UNIT_MAX   12
#define TABLE_BYTES_MAX (1 << 20)
#define COUNT_MAX       100000
#define BATCH_MAX       10000000
#define NAME_BYTES      64
#define DIGITS_MAX      20
#define SLUG_BYTES_MAX  64 /* of a report's names */

enum draft_column {
    COLUMN_VALUE,
    COLUMN_GPUS,
    COLUMN_PER_NODE,
    COLUMN_NODES,
    COLUMN_BATCH,
    COLUMN_PRECISION,
    COLUMN_MODEL,
    COLUMN_FRAMEWORK,
    COLUMN_LABEL
};

struct draft_reader {
    struct arena *arena; /* borrowed */
    const struct vocabulary *vocabulary;
    struct str unit;   /* for speeds that name none; or empty */
    struct map tables; /* those that were read, by their text */
    struct patterns patterns;
};

#define FREE_BEFORE "(?i)(?<![a-z0-9])"
#define NUMBER_OF   "(?i)^(?:#|no\\.?|number of|num|n|total)?[ _-]*"
#define COUNTED     "(?:[ _](?:num|count|number))?(?:\\(s\\))?$"
#define RATIO       "speed-?up|\xe5\x8a\xa0\xe9\x80\x9f|ratio|scaling|scale|efficiency|%"
static const char SHAPE_GRID[] = FREE_BEFORE
    "(?|n(\\d{1,4})[cg](\\d{1,3})|(\\d{1,4})n[_ x]?(\\d{1,3})[gc](?:pus?)?)(?![a-z0-9])";
/* "gpus=8"; "8 cards"; "8 x A100". */
static const char SHAPE_GPUS[] = FREE_BEFORE
    "(?|(?:n?gpus?|cards?|num_gpus|world[ _]size)\\s?[=:_]?\\s?(\\d{1,5})(?!\\d|\\.\\d)|"
    "(?<!\\.)(\\d{1,5})(?:[ _-]?(?:x )?(?:gpus?(?![a-z])|cards?(?![a-z])|\xe5\x8d\xa1)|"
    " ?(?:x|\xc3\x97) ?(?:nvidia |tesla )?[avhptlb]\\d{1,3}(?!\\d)))";
static const char SHAPE_BATCH[] =
    FREE_BEFORE "(?|(?<!global[ _-])(?<!total[ _-])(?:bsz?|batch[ _-]?size|batch)\\s?[=:_]?\\s?"
                "(\\d{1,7})(?!\\d|\\.\\d)|(?<!\\.)(\\d{1,7})bsz?(?![a-z0-9]))";
static const char SHAPE_PRECISION[] =
    FREE_BEFORE "(fp32|tf32|fp16|bf16|fp8|int8|amp|float32|float16|bfloat16|mixed "
                "precision)(?![a-z0-9])";
static const char SHAPE_FRAMEWORK[] =
    "(?i)(paddle|pytorch|torch|tensorflow|mxnet|jax|oneflow|mindspore|keras)";
static const char SHAPE_HARDWARE[] = FREE_BEFORE
    "([ahbp]\\d00|v100|h20|a10g?|a[34]0|t4|l4|l40s?|k[48]0|p4|[pm]40|gh200|gb[23]00|"
    "[rg]tx[ _-]?(?:titan|a?\\d{4})|[rgq]?tx[ _-]?\\d{4}|(?:10|20|30|40|50)[5-9]0(?: ?ti)?|"
    "titan[ _-]?(?:v|xp?|rtx)|radeon[ _-]?(?:pro[ _-]?vii|vii|rx[ _-]?\\d{3,4})|mi\\d{2,3}x?|"
    "tpu[ _-]?v\\d|ascend[ _-]?910[ab]?)(?![a-z0-9])";
static const char SHAPE_RATE[] = "(?i)through?t?put|speed(?![ _-]?up)|training "
                                 "performance|\xe5\x90\x9e\xe5\x90\x90|ips(?![a-z])|fps";
static const char SHAPE_PER_SECOND[] =
    "(?i)(images?|imgs?|samples?|sequences?|sentences?|tokens?|words?) "
    "?(?:per|/) ?sec";
static const char SHAPE_PER_GPU[] =
    "(?i)(?:s|sec|second)\\s?(?:/|per)\\s?(?:gpu|device|card|chip|core)(?![a-z])";
static const char SHAPE_ANY_PER_SECOND[] =
    "(?i)(?<![a-z])[a-z]{1,16} ?/ ?s(?:ec(?:ond)?)?(?![a-z])";
static const char SHAPE_TRAINING[] = "(?i)train";
static const char SHAPE_INFERENCE[] = "(?i)infer(?:ence|ring)?(?![a-z])";
static const char SHAPE_SCALED[] = FREE_BEFORE
    "(?:[kmg]|kilo|(?:thousand|million)s?(?: of)?|(?:x ?)?10\\^[36]|1e[36])[ -]?(?:images?|imgs?|"
    "samples?|seqs?|sequences?|sentences?|tokens?|toks?|words?) ?(?:/|per) ?s";
static const char SHAPE_FPS[] = "(?i)(?<![a-z])fps(?![a-z])";
static const char SHAPE_RATIO[] = "(?i)" RATIO;
static const char SHAPE_OTHER[] =
    "(?i)accuracy|top-?[15]|\\bacc\\b|\\bm?ap\\b|miou|param|flops|loss|latency|"
    "mem|size|epoch|\\blr\\b|" RATIO
    "|time|hours?|mins?\\b|version|date|seq|^#$|\\bid\\b|_num\\b|watt|power|price|"
    "cost|\\bssd\\b|layers?|hidden|heads?|vocab|classes|\\bsteps?\\b|"
    "\\b(?:number|no\\.|count) of\\b";
static const char SHAPE_GENERAL[] =
    "(?i)result|performance|benchmark|train|inference|table|readme|speed|"
    "through|overview|summary|comparison|^\\d";
/* "8B Q4_K_M", "3D-UNet": a name. */
static const char SHAPE_SIZED[] = "(?i)^\\d+(?:\\.\\d+)?(?:[bm](?![a-z])|d[ -])";
static const char SHAPE_STATISTIC[] =
    "(?i)^(?:mean|median|average|avg|min(?:imum)?|max(?:imum)?|std|stdev|"
    "p\\d{1,2}|\\d{1,2}(?:th|%)? ?(?:percentile)?)$";
static const char SHAPE_SETTING[] =
    "(?i)chunk|window|length|interval|time-?out|budget|period|limit";
static const char SHAPE_TIME[] = "(?i)time|latency|duration|forward|backward";
static const char SHAPE_TIME_UNIT[] =
    "(?i)(?<![a-z0-9/])(ms|msec|milliseconds?|us|microseconds?|s|secs?|"
    "seconds?|min|mins|minutes?|h|hrs?|hours?)(?![a-z])";
static const char SHAPE_WHOLE_TIME[] = "(?i)train|record|total|wall|converge|time[ _-]to|epochs?";
static const char SHAPE_LATENCY[] = "(?i)latency|infer|eval|forward|predict|delay";
static const char SHAPE_ACCURACY[] =
    "(?i)^(?:(?:val(?:idation)?|test|eval|best|final)[ _-]*)?(?:top-?1|acc(?:uracy)?|miou)"
    "(?:[ _-]*(?:top-?1|acc(?:uracy)?))?[ _]*\\(?%?\\)?$";
static const char SHAPE_COLUMN_GPUS[] =
    NUMBER_OF "(?:of )?(?:n?gpus?|cards?|devices?|accelerators?|world[ _]size|ranks?|gpu "
              "num|\xe5\x8d\xa1\xe6\x95\xb0)" COUNTED;
static const char SHAPE_COLUMN_PER_NODE[] =
    "(?i)(?:gpus?|cards?|devices?)(?:[ _]num)?[ _]?(?:per|/)[ "
    "_]?(?:node|machine|server|host)";
static const char SHAPE_COLUMN_NODES[] = NUMBER_OF "(?:nodes?|machines?|servers?|hosts?)" COUNTED;
static const char SHAPE_COLUMN_BATCH[] =
    "(?i)^(?!.*(?:global|total|max))(?:.*batch[ _-]?size.*|bsz?|batch|mbs|micro[ _-]?batch)$";
static const char SHAPE_COLUMN_PRECISION[] =
    "(?i)^(?:precision|dtype|data ?type|\xe7\xb2\xbe\xe5\xba\xa6)$";
static const char SHAPE_COLUMN_MODEL[] =
    "(?i)^(?:models?|networks?|methods?|backbones?|arch(?:itecture)?s?|"
    "benchmarks?|workloads?|model[ _]names?|names?|\xe6\xa8\xa1\xe5\x9e\x8b"
    "(?:\xe5\x90\x8d\xe7\xa7\xb0)?)$";
static const char SHAPE_COLUMN_FRAMEWORK[] =
    "(?i)^(?:frameworks?|\xe6\xa1\x86\xe6\x9e\xb6|library|backend)$";

struct draft_reader *draft_reader_new(struct arena *arena, const struct vocabulary *vocabulary,
                                      struct str unit)
{
    struct draft_reader *r = xcalloc(1, sizeof(*r));
    r->arena = arena;
    r->vocabulary = vocabulary;
    r->unit = unit;
    return r;
}

void draft_reader_free(struct draft_reader *reader)
{
    if (reader) {
        patterns_release(&reader->patterns);
        map_release(&reader->tables);
    }
    free(reader);
}

static bool finds(struct draft_reader *r, const char *shape, struct str text)
{
    return patterns_find(&r->patterns, shape, text, NULL, 0);
}

static struct str lower(struct arena *arena, struct str text)
{
    char *copy = arena_strndup(arena, text.ptr ? text.ptr : "", text.len);
    for (char *c = copy; *c; c++) {
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    }
    return str_of(copy);
}

/* What its only group is, in small letters; ptr NULL: the text has none. */
static struct str found(struct draft_reader *r, const char *shape, struct str text)
{
    struct str g[2];
    return patterns_find(&r->patterns, shape, text, g, 2) ? lower(r->arena, g[1]) : STR_EMPTY;
}

static void find_count(struct draft_reader *r, const char *shape, struct str text, int64_t *into)
{
    struct str digits = *into ? STR_EMPTY : found(r, shape, text);
    (void)(digits.ptr && str_to_i64(digits, 1, BATCH_MAX, into, ERR_IGNORED));
}

/* Small letters and digits, and of what stands between two of them one dash, or nothing. */
static struct str plain_name(struct arena *arena, struct str text, bool has_dashes)
{
    struct str low = lower(arena, text);
    char *out = arena_strndup(arena, low.ptr, low.len);
    size_t len = 0;
    for (size_t idx = 0; idx < low.len; idx++) {
        if (is_digit(low.ptr[idx]) || (low.ptr[idx] >= 'a' && low.ptr[idx] <= 'z')) {
            out[len++] = low.ptr[idx];
        } else if (has_dashes && len && out[len - 1] != '-') {
            out[len++] = '-';
        }
    }
    len -= len && out[len - 1] == '-';
    return len ? (struct str){out, len} : STR_EMPTY;
}

struct str draft_slug(struct arena *arena, struct str text)
{
    return plain_name(arena, str_sub(text, 0, SLUG_BYTES_MAX), true);
}

struct str draft_bare(struct arena *arena, struct str text)
{
    return plain_name(arena, text, false);
}

/* "rtx 3090", "RTX-3090" and "3090" are one card. */
static struct str hardware_name(struct arena *arena, struct str text)
{
    struct str name = draft_bare(arena, text);
    return str_starts(name, STR_LIT("rtx")) || str_starts(name, STR_LIT("gtx"))
               ? str_sub(name, 3, name.len)
               : name;
}

void draft_read_attrs(struct draft_reader *r, struct str text, struct draft_attrs *into)
{
    struct str g[3];
    int64_t nodes, each;
    if (!into->gpus && patterns_find(&r->patterns, SHAPE_GRID, text, g, 3) &&
        str_to_i64(g[1], 1, BATCH_MAX, &nodes, ERR_IGNORED) == 0 &&
        str_to_i64(g[2], 1, COUNT_MAX, &each, ERR_IGNORED) == 0) {
        into->nodes = nodes;
        into->gpus = nodes * each;
    }
    find_count(r, SHAPE_GPUS, text, &into->gpus);
    find_count(r, SHAPE_BATCH, text, &into->batch);
    struct str name = into->precision.ptr ? STR_EMPTY : found(r, SHAPE_PRECISION, text);
    if (name.ptr) {
        const struct word *word = words_find(
            &r->vocabulary->precisions, str_starts(name, STR_LIT("mixed")) ? STR_LIT("amp") : name);
        into->precision = word ? word->name : STR_EMPTY;
    }
    name = into->framework.ptr ? STR_EMPTY : found(r, SHAPE_FRAMEWORK, text);
    if (name.ptr) {
        into->framework = str_eq_z(name, "torch") ? STR_LIT("pytorch") : name;
    }
    name = into->hardware.ptr ? STR_EMPTY : found(r, SHAPE_HARDWARE, text);
    if (name.ptr) {
        into->hardware = hardware_name(r->arena, name);
    }
    if (into->purpose == PURPOSE_UNSAID) {
        bool trains = finds(r, SHAPE_TRAINING, text);
        bool infers = finds(r, SHAPE_INFERENCE, text);
        into->purpose = trains == infers ? PURPOSE_UNSAID
                        : trains         ? PURPOSE_TRAINING
                                         : PURPOSE_INFERENCE;
    }
}

bool draft_says_row(const struct draft_attrs *attrs)
{
    return attrs->gpus || attrs->batch || attrs->precision.ptr || attrs->framework.ptr ||
           attrs->hardware.ptr;
}

/* ---- numbers and their units ---- */

/* From a column's name, "train_samples_per_sec", or from "FPS". */
static struct str name_unit(struct draft_reader *r, struct str name)
{
    const struct word *unit;
    struct str metric;
    bool is_named = str_find(name, STR_LIT("per")) >= 0 || str_find(name, STR_LIT("/")) >= 0;
    if (is_named && records_figure(r->vocabulary, name, &metric, &unit) &&
        str_eq_z(unit->dimension, "rate")) {
        return unit->name;
    }
    return finds(r, SHAPE_FPS, name) ? words_find(&r->vocabulary->units, STR_LIT("frames/s"))->name
                                     : STR_EMPTY;
}

/* "img/s" anywhere in it. */
static struct str slashed_unit(struct draft_reader *r, struct str text)
{
    struct str found;
    while (patterns_find(&r->patterns, "[A-Za-z]+/[A-Za-z]+", text, &found, 1)) {
        const struct word *word = words_find(&r->vocabulary->units, found);
        word = word ? word : words_find(&r->vocabulary->units, lower(r->arena, found));
        if (word && str_eq_z(word->dimension, "rate")) {
            return word->name;
        }
        size_t slash = (size_t)(found.ptr - text.ptr + str_find(found, STR_LIT("/")));
        text = str_sub(text, slash + 1, SIZE_MAX);
    }
    return STR_EMPTY;
}

/* The first unit of a rate of items in a text; empty if there is none. */
static struct str unit_in(struct draft_reader *r, struct str text)
{
    struct str unit = slashed_unit(r, text);
    struct str item = unit.len ? STR_EMPTY : found(r, SHAPE_PER_SECOND, text);
    if (item.ptr) {
        const struct word *word =
            words_find(&r->vocabulary->units, str_printf(r->arena, "%.*s/s", STR_ARG(item)));
        unit = word ? word->name : STR_EMPTY;
    }
    return unit.len ? unit : name_unit(r, text);
}

/* "1,234.5 img/s", "nan", "-12.5": a number and what stands behind it. */
struct printed {
    struct str digits, rest;
    bool is_usable; /* a rate, a time or an accuracy can be so */
};

/* False: the text begins with none. A sign (the last is U+2212), "nan", "Inf" or digits; of two units ("1h9min") the first. */
static bool printed_in(struct draft_reader *r, struct str text, struct printed *ret)
{
    static const char PRINTED[] =
        "(?s)^((?:[-+]|\xe2\x88\x92)?(?:(?i:nan|inf(?:inity)?)(?![A-Za-z])|[.,]*\\d[\\d.,]*+))"
        "(\\s*[dhm][A-Za-z]*(?=\\s*\\d)|.*)";
    char buf[NAME_BYTES];
    struct str g[3];
    double value = 0;
    if (!patterns_find(&r->patterns, PRINTED, text, g, 3)) {
        return false;
    }
    struct str digits = lognumber_ungroup(g[1], buf, sizeof(buf));
    digits.len -= digits.len > 1 && digits.ptr[digits.len - 1] == '.'; /* "1463." of a table */
    ret->digits = str_dup(r->arena, digits);
    ret->rest = str_trim(g[2]);
    ret->is_usable =
        g[0].len == text.len && digits.len <= DIGITS_MAX && str_is_made_of(digits, "0-9.") &&
        digits.ptr[0] != '.' && digits.ptr[digits.len - 1] != '.' &&
        lognumber_parse(digits, &value) == NUMBER_OK && value > 0 && value <= DRAFT_PRINTED_MAX;
    return true;
}

/* "25.4k tokens/s", "1.2 M": the digits are a thousandth or a millionth of the number. */
static bool is_scaled(struct draft_reader *r, struct str rest)
{
    return finds(r, "^[kKMG](?![A-Za-z0-9])", rest) || finds(r, SHAPE_SCALED, rest);
}

/* What follows a rate may be a unit, a bracket or a part of the row ("bs=96"), nothing else. */
static bool is_harmless(struct draft_reader *r, struct str rest)
{
    struct draft_attrs attrs = {0};
    if (!rest.len || rest.ptr[0] == '(') {
        return true;
    }
    if (finds(r, "^(?:\xc2\xb1|\\+/-)[^%]*\\z|^/s(?:ec)?\\z", rest)) {
        return true; /* the item is of the text around it, or given by --unit */
    }
    if (is_scaled(r, rest) || unit_in(r, rest).len) {
        return !finds(r, SHAPE_RATIO, rest);
    }
    draft_read_attrs(r, rest, &attrs);
    return (attrs.batch || attrs.precision.ptr) && !finds(r, "(?i)(?:[^a-z]*[a-z]){16}", rest);
}

/* The unit of time in a text, as in the vocabulary; empty if there is none. */
static struct str time_unit_in(struct draft_reader *r, struct str text)
{
    struct str name = found(r, SHAPE_TIME_UNIT, text);
    name = str_starts(name, STR_LIT("hr")) ? STR_LIT("h")
           : str_eq_z(name, "mins")        ? STR_LIT("min")
                                           : name;
    const struct word *word = name.ptr ? words_find(&r->vocabulary->units, name) : NULL;
    return word && str_eq_z(word->dimension, "time") ? word->name : STR_EMPTY;
}

/* A count, also in the form that CSV writers use: "8.0". */
static bool count_in(struct str text, int64_t *ret)
{
    int64_t value;
    if (str_ends(text, STR_LIT(".0"))) {
        text.len -= 2;
    }
    if (str_to_i64(text, 1, BATCH_MAX, &value, ERR_IGNORED) < 0) {
        return false;
    }
    *ret = value;
    return true;
}

static enum draft_column column_of(struct draft_reader *r, struct str head)
{
    static const struct {
        const char *shape;
        enum draft_column column;
    } BY_NAME[] = {
        {SHAPE_COLUMN_PER_NODE, COLUMN_PER_NODE},   {SHAPE_COLUMN_GPUS, COLUMN_GPUS},
        {SHAPE_COLUMN_NODES, COLUMN_NODES},         {SHAPE_COLUMN_BATCH, COLUMN_BATCH},
        {SHAPE_COLUMN_MODEL, COLUMN_MODEL},         {SHAPE_COLUMN_PRECISION, COLUMN_PRECISION},
        {SHAPE_COLUMN_FRAMEWORK, COLUMN_FRAMEWORK},
    };
    for (size_t idx = 0; idx < ARRAY_LEN(BY_NAME); idx++) {
        if (finds(r, BY_NAME[idx].shape, head)) {
            return BY_NAME[idx].column;
        }
    }
    if (unit_in(r, head).len > 0) {
        return COLUMN_VALUE;
    }
    return finds(r, SHAPE_RATIO, head) ||
                   (finds(r, SHAPE_OTHER, head) && !finds(r, SHAPE_RATE, head))
               ? COLUMN_LABEL
               : COLUMN_VALUE;
}

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

/* "56.17 ms", "1.491s ± 0.178", "0.98x", "nan", "-3 img/s": a figure, not a name that begins with a number ("8 GPUs", "1x"). */
static bool is_figure(struct draft_reader *r, struct str text)
{
    struct printed p;
    return printed_in(r, text, &p) &&
           (is_harmless(r, p.rest) || time_unit_in(r, found(r, "^([A-Za-z]+)", p.rest)).len ||
            (memchr(p.digits.ptr, '.', p.digits.len) &&
             finds(r, "^(?:[A-Za-z]?(?![A-Za-z])|GB\\z)", p.rest)));
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
                head = str_printf(r->arena, "%.*s%s%.*s", STR_ARG(head), head.len ? " " : "",
                                  STR_ARG(more));
            }
        }
        page->heads[c] = head;
        page->columns[c] = column_of(r, head);
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
        (void)(attrs->gpus || count_in(text, &attrs->gpus));
        break;
    case COLUMN_PER_NODE:
        (void)(attrs->gpus_per_node || count_in(text, &attrs->gpus_per_node));
        break;
    case COLUMN_NODES:
        (void)(attrs->nodes || count_in(text, &attrs->nodes));
        break;
    case COLUMN_BATCH:
        (void)(attrs->batch || count_in(text, &attrs->batch));
        break;
    case COLUMN_MODEL:
        name = draft_slug(r->arena, text);
        attrs->model = !attrs->model.ptr || !name.len
                           ? (name.len ? name : attrs->model)
                           : draft_slug(r->arena, str_printf(r->arena, "%.*s-%.*s",
                                                             STR_ARG(attrs->model), STR_ARG(name)));
        break;
    case COLUMN_PRECISION:
        word = words_find(&r->vocabulary->precisions, lower(r->arena, text));
        attrs->precision = word && !attrs->precision.ptr ? word->name : attrs->precision;
        break;
    case COLUMN_VALUE:
    case COLUMN_FRAMEWORK:
    case COLUMN_LABEL:
        break;
    }
    draft_read_attrs(r, text, attrs);
    if (column != COLUMN_MODEL && !attrs->machine.ptr && finds(r, SHAPE_HARDWARE, text)) {
        attrs->machine = text;
    }
}

/* A row's own words: its labels, and the columns that describe it. */
static void read_row(struct draft_reader *r, const struct draft_page *page,
                     const struct doc_row *row, struct draft_attrs *attrs, struct str *ret_link)
{
    for (size_t c = 0; c < row->n && c < page->n_columns; c++) {
        const struct doc_cell *cell = &row->cells[c];
        struct printed p;
        bool is_value = page->columns[c] == COLUMN_VALUE && c > 0 &&
                        printed_in(r, cell->text, &p) && is_harmless(r, p.rest);
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

/* The nearest folder that is not named for a framework or for what it contains; if there is none, the heading, unless it is a
   general one. */
static struct str model_of(struct draft_reader *r, const struct draft_page *page)
{
    struct str path = page->document;
    struct str name = folder_name(path);
    while (name.len && (is_word_of(lower(r->arena, name),
                                   "docs doc otherreports benchmark benchmarks results result "
                                   "logs log examples en csv records data reports") ||
                        finds(r, SHAPE_FRAMEWORK, name))) {
        path = str_sub(path, 0, (size_t)(name.ptr - path.ptr));
        name = folder_name(path);
    }
    if (!name.len && !finds(r, SHAPE_GENERAL, page->table->heading)) {
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

/* A unit outside the column counts if the column's header says speed, a row, or a name: not if it says "date". */
static struct str unit_of(struct draft_reader *r, const struct draft_page *page, size_t column,
                          struct str rest)
{
    const struct str places[] = {page->heads[column], rest,           page->table->heading,
                                 page->above,         page->heads[0], page->table->outer};
    struct str unit = STR_EMPTY;
    for (size_t idx = 0; idx < ARRAY_LEN(places) && !unit.len; idx++) {
        unit = unit_in(r, places[idx]);
    }
    return unit;
}

static bool speaks_of_rates(struct draft_reader *r, const struct draft_page *page, struct str head)
{
    return finds(r, SHAPE_RATE, head) || finds(r, SHAPE_RATE, page->above) ||
           finds(r, SHAPE_RATE, page->table->heading) || finds(r, SHAPE_RATE, page->table->outer) ||
           (finds(r, SHAPE_RATE, page->document) && str_find(head, STR_LIT("_")) < 0);
}

static enum draft_reading rate_of(struct draft_reader *r, const struct draft_page *page,
                                  size_t column, struct str rest, struct draft_number *number)
{
    struct str head = page->heads[column];
    if (page->columns[column] != COLUMN_VALUE || (column == 0 && !head.len) ||
        !is_harmless(r, rest)) {
        return READ_NOTHING;
    }
    struct str unit = unit_of(r, page, column, rest);
    if (!unit.len && !speaks_of_rates(r, page, head)) {
        return READ_NOTHING;
    }
    number->metric = STR_LIT("throughput");
    number->unit = unit.len ? unit : r->unit;
    return finds(r, SHAPE_PER_GPU, head) || finds(r, SHAPE_PER_GPU, rest) ? LEFT_PER_GPU
           : !unit.len && finds(r, SHAPE_ANY_PER_SECOND, head)            ? LEFT_UNKNOWN_UNIT
           : !number->unit.len                                            ? LEFT_NO_UNIT
           : is_scaled(r, rest) || finds(r, SHAPE_SCALED, head)           ? LEFT_SCALED
                                                                          : READ_NUMBER;
}

/* A time whose unit is in the column's header or the cell, or an accuracy. */
static enum draft_reading other_of(struct draft_reader *r, const struct draft_page *page,
                                   size_t column, const struct printed *p,
                                   struct draft_number *number)
{
    struct str head = page->heads[column];
    struct str rest = p->rest;
    double value = 0;
    if (!head.len || column == 0) {
        return READ_NOTHING;
    }
    if (finds(r, SHAPE_ACCURACY, head)) {
        bool is_percent = !p->is_usable || (lognumber_parse(p->digits, &value) == NUMBER_OK &&
                                            value > 1 && value <= 100);
        number->metric = STR_LIT("accuracy");
        number->unit = STR_LIT("%");
        return is_percent && (!rest.len || str_eq_z(rest, "%")) ? READ_NUMBER : READ_NOTHING;
    }
    struct str unit = time_unit_in(r, rest);
    bool is_of_time = finds(r, SHAPE_TIME, head);
    bool is_in_cell = unit.len && rest.len <= TIME_UNIT_MAX &&
                      (rest.ptr[0] != '(' || is_of_time); /* "7 (s)" of a kind */
    unit = is_in_cell ? unit : time_unit_in(r, head);
    if (!unit.len || (rest.len && !is_in_cell && rest.ptr[0] != '(') ||
        finds(r, SHAPE_RATIO, head) || finds(r, SHAPE_SETTING, head) ||
        !(is_in_cell || is_of_time)) {
        return READ_NOTHING;
    }
    number->unit = unit;
    number->metric = finds(r, SHAPE_LATENCY, head) ? STR_LIT("latency")
                     : str_eq_z(unit, "min") || str_eq_z(unit, "h") ||
                             (str_eq_z(unit, "s") && finds(r, SHAPE_WHOLE_TIME, head))
                         ? STR_LIT("time_to_train")
                         : STR_LIT("step_time");
    return READ_NUMBER;
}

/* What the number's row says: the column's header and the cell, the row, and the text around, nearest first. */
static void read_place(struct draft_reader *r, const struct draft_page *page, size_t column,
                       const struct doc_row *row, struct draft_number *number)
{
    struct str head = page->heads[column];
    struct str link = row->cells[column].link;
    struct str of_row = STR_EMPTY;
    struct draft_attrs *attrs = &number->attrs;
    draft_read_attrs(r, head, attrs);
    draft_read_attrs(r, row->cells[column].text, attrs);
    bool is_row = draft_says_row(attrs);
    read_row(r, page, row, attrs, &of_row);
    number->link_path = draft_link_path(r->arena, page->document, link.ptr ? link : of_row);
    /* "resnet50" above a column of rates. */
    if (!attrs->model.ptr && !is_row && !unit_in(r, head).len &&
        (!finds(r, SHAPE_GENERAL, head) || finds(r, SHAPE_SIZED, head)) &&
        !finds(r, SHAPE_TIME, head) && !finds(r, SHAPE_STATISTIC, head) &&
        !str_eq_z(number->metric, "accuracy")) {
        attrs->model = draft_slug(r->arena, head);
        attrs->is_model_a_guess = attrs->model.ptr != NULL;
    }
    read_around(r, page, attrs);
}

static void add_number(struct draft_reader *r, const struct draft_page *page, size_t row,
                       size_t column, struct draft *into)
{
    const struct doc_row *of = &page->table->rows[row];
    struct str text = of->cells[column].text;
    struct draft_number number = {.document = page->document,
                                  .title = page->title,
                                  .heading = page->table->heading,
                                  .line = page->table->line,
                                  .row = row,
                                  .column = column};
    struct printed p;
    if (!printed_in(r, text, &p)) {
        return;
    }
    enum draft_reading reading = rate_of(r, page, column, p.rest, &number);
    reading = reading == READ_NOTHING ? other_of(r, page, column, &p, &number) : reading;
    reading = reading != READ_NOTHING && !p.is_usable ? LEFT_UNUSABLE : reading;
    struct draft_left *left = &into->left[reading];
    if (left->n++ == 0) {
        *left = (struct draft_left){1, reading == LEFT_UNKNOWN_UNIT ? page->heads[column] : text,
                                    page->document, page->table->line};
    }
    if (reading != READ_NUMBER) {
        return;
    }
    if (into->n == DRAFT_NUMBERS_MAX) {
        into->n_left_out++;
        return;
    }
    number.printed = p.digits;
    read_place(r, page, column, of, &number);
    into->items[into->n++] = number;
}

static void add_table(struct draft_reader *r, struct draft_page *page, struct draft *into)
{
    const struct doc_table *table = page->table;
    read_heads(r, page);
    page->above = line_before(table->before);
    for (size_t row = page->n_heads; row < table->n_rows; row++) {
        const struct doc_row *of = &table->rows[row];
        struct str section = section_of(of);
        struct printed p;
        if (section.len && !(printed_in(r, section, &p) && is_harmless(r, p.rest))) {
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
    }
    for (size_t t = 0; t < tables->n; t++) {
        struct draft_page page = {
            .document = document, .title = tables->title, .table = &tables->items[t]};
        if (tables->items[t].n_rows > 1 && is_new_table(r, page.table)) {
            add_table(r, &page, into);
        }
    }
}
