/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "log/records.h"

#include "codec/pattern.h"
#include "log/logtime.h"
#include "log/numbers.h"

#include <math.h>

#define FIELDS_MAX 128
#define NAME_BYTES 96

enum role {
    ROLE_TIME,
    ROLE_RANK,
    ROLE_EPOCH,
    ROLE_STEP,
    ROLE_LOSS,
    ROLE_FIGURE,
    ROLE_SETTING,
    ROLE_NONE
};

/* Names of settings. */
static const char SETTINGS[] =
    "batch_size global_batch_size micro_batch_size local_batch_size per_device_batch_size bs model "
    "model_name arch architecture network precision dtype amp fp16 bf16 gpus n_gpus num_gpus "
    "world_size nodes num_nodes seq_len seq_length sequence_length framework backend dataset "
    "optimizer config run run_id run_name experiment trial split mode phase stage";
#define SETTINGS_MAX 40

struct column {
    enum role role;
    int setting;            /* of a setting: its index; else -1 */
    size_t twin;            /* of an earlier column with this name: its index + 1 */
    char label[NAME_BYTES]; /* of a figure: "throughput[images/s]" */
};

struct records {
    enum record_kind kind;
    const struct vocabulary *vocabulary; /* borrowed */
    struct column columns[FIELDS_MAX];   /* of a CSV */
    size_t n_columns;                    /* 0: no header yet */
    uint64_t cells[FIELDS_MAX];          /* without an order: a hash of each column's last key */
    uint64_t settings[SETTINGS_MAX];     /* a hash of each one's last text; 0: none yet */
    char delimiter;
    struct patterns patterns; /* owned */
};

struct field {
    struct column column;
    struct str value;
};

struct records *records_new(enum record_kind kind, const struct vocabulary *vocabulary)
{
    struct records *records = xcalloc(1, sizeof(*records));
    records->kind = kind;
    records->vocabulary = vocabulary;
    return records;
}

void records_free(struct records *records)
{
    if (records) {
        patterns_release(&records->patterns);
    }
    free(records);
}

/* ---- the meaning of a column ---- */

/* Lower case, "_per_" as "/", brackets and blanks as "_": "Throughput (images/s)" is "throughput_images/s". */
static struct str plain_name(struct str name, char *buf, size_t size)
{
    size_t len = 0;
    for (size_t idx = 0; idx < name.len && len + 1 < size; idx++) {
        char c = name.ptr[idx];
        c = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
        if (str_starts(str_sub(name, idx, 5), STR_LIT("_per_"))) {
            c = '/';
            idx += 4;
        }
        c = c == ' ' || c == '(' || c == '[' || c == '.' || c == '-' ? '_' : c;
        if (c == ')' || c == ']' || (c == '_' && (len == 0 || buf[len - 1] == '_'))) {
            continue;
        }
        buf[len++] = c;
    }
    while (len > 0 && buf[len - 1] == '_') {
        len--;
    }
    return (struct str){buf, len};
}

static struct str drop_prefix(struct str name)
{
    static const char *const PREFIXES[] = {"train_", "train/", "training_", "perf/", "avg_", NULL};
    for (const char *const *prefix = PREFIXES; *prefix; prefix++) {
        if (str_starts(name, str_of(*prefix))) {
            return str_sub(name, strlen(*prefix), name.len);
        }
    }
    return name;
}

/* The metric before the unit, or what the unit's dimension implies: a rate is a throughput, a time is nothing in particular. */
static bool label_figure(const struct vocabulary *v, struct str head, const struct word *unit,
                         char *label)
{
    const struct word *metric = head.len ? words_find(&v->metrics, head) : NULL;
    const char *name = metric && str_eq(metric->dimension, unit->dimension) ? metric->name.ptr
                       : str_eq_z(unit->dimension, "rate")                  ? "throughput"
                       : str_eq_z(unit->dimension, "step_rate")             ? "step_rate"
                                                                            : NULL;
    return name && snprintf(label, NAME_BYTES, "%s[%s]", name, unit->name.ptr) < NAME_BYTES;
}

/* "images/s", "throughput_images/s", "step_time_ms": the longest suffix that is a unit. Without one a throughput might be of
   anything. */
static bool find_figure(const struct vocabulary *v, struct str name, char *label)
{
    for (size_t at = 0; at < name.len; at++) {
        if (at > 0 && name.ptr[at - 1] != '_') {
            continue;
        }
        const struct word *unit = words_find(&v->units, str_sub(name, at, name.len));
        if (unit && label_figure(v, str_sub(name, 0, at ? at - 1 : 0), unit, label)) {
            return true;
        }
    }
    return false;
}

bool records_figure(const struct vocabulary *v, struct str name, struct str *ret_metric,
                    const struct word **ret_unit)
{
    char label[NAME_BYTES];
    char buf[NAME_BYTES];
    struct str rest = drop_prefix(plain_name(name, buf, sizeof(buf)));
    struct str metric;
    if (!find_figure(v, rest, label)) {
        return false;
    }
    rest = str_of(label);
    (void)str_next(&rest, '[', &metric);
    *ret_unit = words_find(&v->units, str_sub(rest, 0, rest.len - 1));
    *ret_metric = words_find(&v->metrics, metric)->name;
    return true;
}

/* By its name alone. */
static enum role role_of(struct str plain)
{
    static const struct {
        enum role role;
        const char *names;
    } ROLES[] = {{ROLE_STEP, "step global_step iteration iter update steps _step"},
                 {ROLE_EPOCH, "epoch"},
                 {ROLE_RANK, "rank local_rank global_rank"},
                 {ROLE_TIME, "timestamp time ts date datetime wall_time"},
                 {ROLE_LOSS, "loss loss_step"}};
    for (size_t idx = 0; idx < ARRAY_LEN(ROLES); idx++) {
        if (is_word_of(plain, ROLES[idx].names)) {
            return ROLES[idx].role;
        }
    }
    return ROLE_NONE;
}

/* Neither an evaluation nor one device of several is the job, what feeds it or what was hoped for is
   none of its figures, and thousands are of another unit. */
static struct column column_of(struct records *r, struct str name)
{
    static const char ONE[] = "(?:^|_)(?:gpu|rank|device|worker|node|host|card)_?\\d";
    static const char OTHERS[] = "k m g local data dataloader loader target expected theoretical "
                                 "ideal baseline reference";
    char buf[NAME_BYTES];
    struct str plain = plain_name(name, buf, sizeof(buf));
    struct column column = {.role = ROLE_NONE};
    if (str_starts(plain, STR_LIT("eval")) || str_starts(plain, STR_LIT("val")) ||
        str_starts(plain, STR_LIT("test")) || numbers_name_has(plain, SURVEY_OTHER_STATISTICS) ||
        patterns_find(&r->patterns, ONE, plain, NULL, 0)) {
        return column;
    }
    plain = drop_prefix(plain);
    column.setting = word_at(plain, SETTINGS);
    column.role = role_of(plain);
    if (column.role == ROLE_NONE) {
        column.role =
            !numbers_name_has(plain, OTHERS) && find_figure(r->vocabulary, plain, column.label)
                ? ROLE_FIGURE
            : column.setting >= 0 ? ROLE_SETTING
                                  : ROLE_NONE;
    }
    return column;
}

/* ---- records to fields ---- */

/* The next field of a row; enclosing quotes are removed, a doubled one inside stays as it is. */
static bool next_cell(struct str *rest, char delimiter, struct str *ret)
{
    size_t at = 0;
    bool is_quoted = rest->len > 0 && rest->ptr[0] == '"';
    if (!rest->ptr) {
        return false;
    }
    for (at = is_quoted; at < rest->len; at++) {
        if (is_quoted ? rest->ptr[at] == '"' : rest->ptr[at] == delimiter) {
            break;
        }
    }
    *ret = str_trim(str_sub(*rest, is_quoted, at - is_quoted));
    while (at < rest->len && rest->ptr[at] != delimiter) {
        at++;
    }
    *rest = at < rest->len ? str_sub(*rest, at + 1, rest->len) : (struct str){NULL, 0};
    return true;
}

/* A name, not a number and no part of a log line that happens to contain commas. */
static bool is_name(struct str cell)
{
    double ignored;
    if (lognumber_parse(cell, &ignored) == NUMBER_OK) {
        return false;
    }
    for (size_t idx = 0; idx < cell.len; idx++) {
        bool is_decimal = cell.ptr[idx] == '.' && idx > 0 && is_digit(cell.ptr[idx - 1]) &&
                          idx + 1 < cell.len && is_digit(cell.ptr[idx + 1]);
        if (strchr(":{}=\"", cell.ptr[idx]) || is_decimal) {
            return false;
        }
    }
    return cell.len < NAME_BYTES;
}

/* The index + 1 of the first that is the last one's equal, or 0. */
static size_t twin_of(const struct str *names, size_t last)
{
    for (size_t idx = 0; idx < last; idx++) {
        if (str_eq(names[idx], names[last])) {
            return idx + 1;
        }
    }
    return 0;
}

/* Two values under one name are none: all between them is taken for one, which no pattern reads as a number. */
static void join_twins(struct field *fields, size_t twin, struct str value)
{
    if (twin) {
        struct str *first = &fields[twin - 1].value;
        *first = (struct str){first->ptr, (size_t)(value.ptr + value.len - first->ptr)};
    }
}

/* A header names at least one figure, and has at least two columns. */
static bool take_header(struct records *r, struct str text)
{
    static const char DELIMITERS[] = ",;\t";
    for (const char *d = DELIMITERS; *d && r->n_columns == 0; d++) {
        struct str rest = text;
        struct str cells[FIELDS_MAX];
        size_t n = 0;
        bool has_figure = false;
        bool is_header = true;
        while (n < FIELDS_MAX && next_cell(&rest, *d, &cells[n])) {
            r->columns[n] = column_of(r, cells[n]);
            r->columns[n].twin = twin_of(cells, n);
            is_header = is_header && is_name(cells[n]);
            has_figure = has_figure || r->columns[n].role == ROLE_FIGURE;
            n++;
        }
        if (has_figure && is_header && n > 1 && !rest.ptr) {
            r->n_columns = n;
            r->delimiter = *d;
        }
    }
    return r->n_columns > 0;
}

static size_t read_row(struct records *r, struct str text, struct field *fields)
{
    struct str rest = text;
    struct str cell;
    size_t n = 0;
    if (r->n_columns == 0) {
        (void)(text.len && take_header(r, text));
        return 0;
    }
    while (n < r->n_columns && next_cell(&rest, r->delimiter, &cell)) {
        fields[n] = (struct field){r->columns[n], cell};
        join_twins(fields, r->columns[n].twin, cell);
        n++;
    }
    /* More cells than columns: a figure like 1,234.5 without quotes is no number, rather than no
       row. */
    bool is_row = n == r->n_columns && !rest.ptr;
    for (size_t idx = 0; rest.ptr && idx < n; idx++) {
        struct str *value = &fields[idx].value;
        if (fields[idx].column.role == ROLE_FIGURE && value->len && is_digit(value->ptr[0])) {
            value->len = (size_t)(text.ptr + text.len - value->ptr);
            is_row = true;
        }
    }
    return is_row ? n : 0;
}

/* A string without its quotes, or the text up to the next comma or bracket outside nested values. */
static size_t read_object(struct records *r, struct str text, struct field *fields)
{
    static const char MEMBER[] =
        "^[{,][ \\t]*\"((?:[^\"\\\\]|\\\\.)*+)\"[ \\t]*:[ \\t]*(?|\"((?:[^\"\\\\]|\\\\.)*+)\"|"
        "((?:[^][{},\"]++|(?<nested>[[{](?:[^][{}]++|(?&nested))*+[]}]))*+))[ \\t]*(?=[,}])";
    struct str keys[FIELDS_MAX];
    struct str g[3];
    size_t n = 0;
    text = str_trim(text);
    while (n < FIELDS_MAX && text.len && text.ptr[0] == (n ? ',' : '{') &&
           patterns_find(&r->patterns, MEMBER, text, g, 3)) {
        keys[n] = g[1];
        fields[n] = (struct field){column_of(r, g[1]), str_trim(g[2])};
        fields[n].column.twin = twin_of(keys, n);
        join_twins(fields, fields[n].column.twin, fields[n].value);
        text = str_sub(text, g[0].len, SIZE_MAX);
        n++;
    }
    return str_eq_z(text, "}") ? n : 0;
}

/* ---- fields to a line ---- */

/* White space in a value would end it, and the rest could pass for a figure: a date and its time are joined by T, words by
   "_". */
static void put(struct strbuf *out, const char *name, struct str value)
{
    if (out->len) {
        strbuf_add_char(out, ' ');
    }
    strbuf_printf(out, "%s=", name);
    for (size_t idx = 0; idx < value.len; idx++) {
        char c = value.ptr[idx];
        bool is_of_date = idx > 0 && is_digit(value.ptr[idx - 1]);
        strbuf_add_char(out, c < '\0' || c > ' ' ? c : is_of_date ? 'T' : '_');
    }
}

/* FNV-1a; never 0. */
static uint64_t hash_of(struct str text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t idx = 0; idx < text.len; idx++) {
        hash = (hash ^ (unsigned char)text.ptr[idx]) * 0x100000001b3u;
    }
    return hash ? hash : 1;
}

/* Text or a whole number; measurements have a point. */
static bool is_key(struct str value)
{
    double number;
    return value.len > 0 &&
           (lognumber_parse(value, &number) == NUMBER_NONE || floor(number) >= number);
}

/* Records of a series have a step, an epoch, a time or a loss. */
static bool has_order(const struct field *fields, size_t n)
{
    for (size_t idx = 0; idx < n; idx++) {
        enum role role = fields[idx].column.role;
        if (role == ROLE_STEP || role == ROLE_EPOCH || role == ROLE_TIME || role == ROLE_LOSS) {
            return true;
        }
    }
    return false;
}

/* Keeps the record's settings; true if one differs from what an earlier record states. */
static bool has_other_settings(struct records *records, const struct field *fields, size_t n)
{
    bool is_other = false;
    bool is_table = !has_order(fields, n);
    for (size_t idx = 0; idx < n; idx++) {
        const struct field *f = &fields[idx];
        bool is_setting = f->column.role == ROLE_SETTING && f->value.len > 0;
        bool is_cell = f->column.role == ROLE_NONE && is_table && is_key(f->value);
        uint64_t *kept = is_setting ? &records->settings[f->column.setting] : &records->cells[idx];
        uint64_t hash = hash_of(f->value);
        if (!is_setting && !is_cell) {
            continue;
        }
        is_other = is_other || (*kept != 0 && *kept != hash);
        *kept = hash;
    }
    return is_other;
}

bool records_line(struct records *records, struct str text, struct strbuf *ret_line)
{
    static const char *const NAMES[] = {[ROLE_TIME] = "time",
                                        [ROLE_RANK] = "rank",
                                        [ROLE_EPOCH] = "epoch",
                                        [ROLE_STEP] = "step",
                                        [ROLE_LOSS] = "loss"};
    struct field fields[FIELDS_MAX];
    size_t n = records->kind == RECORD_CSV ? read_row(records, text, fields)
                                           : read_object(records, text, fields);
    bool has_figure = false;
    strbuf_clear(ret_line);
    for (enum role role = ROLE_TIME; role <= ROLE_FIGURE; role++) {
        bool is_there = false;
        for (size_t idx = 0; idx < n; idx++) {
            const struct field *f = &fields[idx];
            bool is_empty = f->value.len == 0 || str_eq_z(f->value, "null");
            if (f->column.role == role && !is_empty && f->column.twin == 0 &&
                (!is_there || role == ROLE_FIGURE)) {
                put(ret_line, role == ROLE_FIGURE ? f->column.label : NAMES[role], f->value);
                is_there = true;
                has_figure = has_figure || role == ROLE_FIGURE;
            }
        }
    }
    if (has_figure && has_other_settings(records, fields, n)) {
        put(ret_line, "config", STR_LIT("other"));
    }
    return ret_line->len > 0;
}
