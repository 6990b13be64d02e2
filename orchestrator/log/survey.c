/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "log/numbers.h"

#include "base/map.h"
#include "log/logtime.h"
#include "log/parser.h"

#include <math.h>

#define IDENTITY_BYTES 256
#define EXAMPLE_BYTES  160
#define NUMBER_BYTES   64
#define HEAD_BYTES     512
#define HEAD_WORDS_MAX 32
#define HEAD_WORDS_MIN 3
#define POINTS_FIRST   8

struct head {        /* of a table, if the previous line was one */
    struct str text; /* in buf */
    struct str words[HEAD_WORDS_MAX];
    size_t n;
    char buf[HEAD_BYTES];
};

/* A line that names a unit of a rate in one of its columns, or over all of them: rows of numbers follow. */
struct unit_head {
    char buf[HEAD_BYTES];
    struct str name;          /* of the column, in buf */
    struct str unit;          /* of the vocabulary */
    size_t column, n_columns; /* 1: of all columns */
    bool has_rows;
};

/* What the count of a number needs from line to line, and no reader of the survey. */
struct tally {
    int64_t first_rank, last_rank; /* of its lines; -1: none */
    int64_t rank_step;             /* of its last line; likewise */
    int64_t last_step_rank;        /* the rank of its last line with a step */
    int64_t last_epoch;            /* of that line */
    double seen_epoch;             /* survey.epoch at that line */
    int64_t seen_epoch_lines;      /* survey.epoch_lines at that line */
    int64_t last_seen;             /* the last line that has it, counted without empty ones */
    size_t points_max;
};

struct survey {
    struct arena arena;
    struct survey_reader reader;
    struct parser *parser;
    struct survey_number *items; /* SURVEY_NUMBERS_MAX */
    struct tally *tallies;       /* of each item */
    size_t n;
    struct map by_identity;
    int64_t n_lines; /* that are not empty */
    struct head head;
    struct unit_head unit_head; /* unit empty: none */
    double epoch;               /* the last that any line counts; below 0: none yet */
    int64_t epoch_lines;        /* that have a word for one */
    size_t n_points;
    bool is_in_eval; /* of the lines before */
    struct survey_counts counts;
};

/* What a line has besides a number. */
struct scene {
    struct str text;
    int64_t number;
    int64_t rank; /* -1: none */
    bool is_eval;
    const struct token *tokens;
    size_t n;
    const struct token *step, *epoch; /* NULL: none */
    bool is_bar, is_open;
    uint32_t shape;
    double elapsed_s, time_s; /* NAN: none */
};

static void take_log_line(void *ctx, const struct line *line);

struct survey *survey_new(const struct vocabulary *vocabulary)
{
    struct survey *s = xcalloc(1, sizeof(*s));
    s->reader.vocabulary = vocabulary;
    s->epoch = -1;
    s->items = arena_array(&s->arena, struct survey_number, SURVEY_NUMBERS_MAX);
    s->tallies = arena_array(&s->arena, struct tally, SURVEY_NUMBERS_MAX);
    s->parser = parser_new_lines(&s->arena, take_log_line, s);
    return s;
}

void survey_free(struct survey *survey)
{
    if (!survey) {
        return;
    }
    parser_free_lines(survey->parser);
    for (size_t idx = 0; idx < survey->n; idx++) {
        free(survey->items[idx].points);
    }
    map_release(&survey->by_identity);
    patterns_release(&survey->reader.patterns);
    arena_release(&survey->arena);
    free(survey);
}

int survey_feed(struct survey *survey, const char *ptr, size_t len, struct err *err)
{
    return parser_feed(survey->parser, ptr, len, err);
}

int survey_finish(struct survey *survey, struct err *err)
{
    return parser_finish_lines(survey->parser, &survey->counts.n_lines, err);
}

size_t survey_numbers(const struct survey *survey, const struct survey_number **ret_numbers)
{
    *ret_numbers = survey->items;
    return survey->n;
}

struct survey_counts survey_counts(const struct survey *survey)
{
    return survey->counts;
}

static struct str plain_ascii(struct arena *arena, struct str text)
{
    char *copy = str_z(arena, str_sub(text, 0, EXAMPLE_BYTES));
    for (char *c = copy; *c; c++) {
        *c = *c == '\t' ? ' ' : *c < ' ' || *c == 0x7f ? '.' : *c;
    }
    return str_of(copy);
}

/* FNV-1a of the letters: signs and blanks come and go with numbers. */
static uint32_t hash_shape(struct str text)
{
    uint32_t hash = 0x811c9dc5u;
    for (size_t at = 0; at < text.len; at++) {
        char c = (char)(text.ptr[at] | 0x20);
        hash = c >= 'a' && c <= 'z' ? (hash ^ (unsigned char)c) * 0x01000193u : hash;
    }
    return hash;
}

/* ---- numbers of one place ---- */

/* The number with this identity, or a new one; NULL if there are too many. */
static struct survey_number *number_of(struct survey *s, struct str identity,
                                       const struct scene *scene)
{
    struct survey_number *number = map_get(&s->by_identity, identity);
    if (number) {
        return number;
    }
    if (s->n == SURVEY_NUMBERS_MAX) {
        s->counts.n_left_out++;
        return NULL;
    }
    number = &s->items[s->n++];
    number->first_line = scene->number;
    number->example = plain_ascii(&s->arena, scene->text);
    (void)map_add(&s->by_identity, str_dup(&s->arena, identity), number);
    return number;
}

static struct tally *tally_of(struct survey *s, const struct survey_number *number)
{
    return &s->tallies[number - s->items];
}

static bool words_differ(struct str kept, const struct token *token, struct str words)
{
    return !str_eq(kept, token ? words : STR_EMPTY);
}

/* A word for an epoch, whose count is not known to be the one before or less. */
static bool has_later_epoch(const struct survey *s, const struct tally *tally)
{
    bool is_known = s->epoch >= 0 && tally->seen_epoch >= 0;
    return s->epoch_lines > tally->seen_epoch_lines && !(is_known && s->epoch <= tally->seen_epoch);
}

/* Ranks that print in turn are not always in step. */
static bool is_back(const struct survey_steps *at, const struct tally *tally,
                    const struct scene *scene)
{
    int64_t step = scene->step->step;
    return scene->rank == tally->last_step_rank ? step < at->last : step < at->last / 2;
}

static void note_step(struct survey_steps *at, struct tally *tally, const struct scene *scene,
                      bool is_first)
{
    int64_t epoch = scene->epoch ? scene->epoch->step : -1;
    int64_t step = scene->step->step;
    if (!is_first && step < at->last) {
        at->n_back++;
        at->n_back_same += epoch <= tally->last_epoch;
    }
    at->n_same += !is_first && step == at->last && epoch == tally->last_epoch;
    at->first = is_first ? step : at->first;
    at->first_epoch = is_first ? epoch : at->first_epoch;
    at->n++;
    at->n_epochs += epoch >= 0;
    at->last = step;
    tally->last_epoch = epoch;
    if (scene->step->kind == TOKEN_FRACTION) {
        at->total = scene->step->total > at->total ? scene->step->total : at->total;
        at->n_full += step == scene->step->total;
    }
}

static void note_steps(struct survey *s, struct survey_number *number, const struct scene *scene,
                       size_t at)
{
    struct survey_steps *steps = &number->steps;
    struct tally *tally = tally_of(s, number);
    if (!scene->step) {
        return;
    }
    bool is_first_step = steps->n == 0;
    if (is_first_step) {
        steps->key = str_dup(&s->arena, scene->step->key);
        steps->gap = str_dup(&s->arena, scene->step->gap);
        steps->epoch_key = scene->epoch ? str_dup(&s->arena, scene->epoch->key) : STR_EMPTY;
        steps->epoch_gap = scene->epoch ? str_dup(&s->arena, scene->epoch->gap) : STR_EMPTY;
        steps->is_after = scene->step->at > at;
        steps->has_total = scene->step->kind == TOKEN_FRACTION;
    }
    steps->n_back_bare +=
        !is_first_step && is_back(steps, tally, scene) && !has_later_epoch(s, tally);
    tally->seen_epoch = s->epoch;
    tally->seen_epoch_lines = s->epoch_lines;
    tally->last_step_rank = scene->rank;
    steps->is_changing = steps->is_changing || !str_eq(steps->key, scene->step->key) ||
                         words_differ(steps->epoch_key, scene->epoch,
                                      scene->epoch ? scene->epoch->key : STR_EMPTY) ||
                         steps->is_after != (scene->step->at > at) ||
                         steps->has_total != (scene->step->kind == TOKEN_FRACTION);
    note_step(steps, tally, scene, is_first_step);
}

static void add_point(struct survey *s, struct survey_number *number, const struct scene *scene,
                      double value)
{
    const struct token *step = scene->step;
    if (s->n_points == SURVEY_POINTS_MAX) {
        return;
    }
    size_t *max = &tally_of(s, number)->points_max;
    if (number->n_points == *max) {
        *max = 2 * *max + POINTS_FIRST;
        number->points = xrealloc(number->points, *max * sizeof(number->points[0]));
    }
    s->n_points++;
    bool has_total = step && step->kind == TOKEN_FRACTION;
    number->points[number->n_points++] = (struct survey_point){
        .value = value,
        .elapsed_s = scene->elapsed_s,
        .time_s = scene->time_s,
        .line = scene->number,
        .step = step ? step->step : -1,
        .total = has_total ? step->total : -1,
        .epoch = scene->epoch ? scene->epoch->step : (int64_t)s->epoch,
        .rank = (int32_t)scene->rank,
        .shape = scene->shape,
        .text =
            number->n_points < SURVEY_TEXTS_MAX ? plain_ascii(&s->arena, scene->text) : STR_EMPTY,
        .is_full = has_total && step->step == step->total};
}

static void note_value(struct survey_number *number, double value)
{
    bool is_first = number->n == 0;
    number->n++;
    number->first = is_first ? value : number->first;
    number->min = is_first || value < number->min ? value : number->min;
    number->max = is_first || value > number->max ? value : number->max;
    number->n_up += !is_first && value > number->last;
    number->last = value;
}

static bool value_of(struct str text, double *ret_value)
{
    char buf[NUMBER_BYTES];
    size_t sign = text.len > 0 && text.ptr[0] == '+';
    struct str plain = lognumber_ungroup(str_sub(text, sign, text.len), buf, sizeof(buf));
    return lognumber_parse(plain, ret_value) == NUMBER_OK;
}

/* Ranks print the same step one after another; where no line has a step, the first rank comes back. */
static void note_rank(struct survey_number *number, struct tally *tally, const struct scene *scene)
{
    int64_t step = scene->step ? scene->step->step : -1;
    bool is_first = number->n == 1;
    bool is_other =
        !is_first && scene->rank >= 0 && tally->last_rank >= 0 && scene->rank != tally->last_rank;
    tally->first_rank = is_first ? scene->rank : tally->first_rank;
    number->is_of_ranks =
        number->is_of_ranks ||
        (is_other && (step < 0 ? scene->rank == tally->first_rank : step == tally->rank_step));
    tally->last_rank = scene->rank;
    tally->rank_step = step;
}

/* ---- a line ---- */

/* "Num Epochs = 3", "Total optimization steps = 1,000", "Continuing training from global step 900": of the whole run. */
static bool is_of_run(const struct scene *scene, const struct token *t)
{
    return t->kind == TOKEN_NUMBER && (numbers_has_word(t->key, "total num number") ||
                                       numbers_has_word(scene->text, SURVEY_RESUMES));
}

static void find_steps(struct scene *scene)
{
    char buf[32];
    const struct token *bare = NULL;
    for (size_t idx = 0; idx < scene->n; idx++) {
        const struct token *t = &scene->tokens[idx];
        bool is_count = t->kind == TOKEN_FRACTION || (t->kind == TOKEN_NUMBER && t->is_whole);
        struct str word = numbers_last_word(t->key, buf, sizeof(buf));
        if (!is_count || t->unit.len || is_of_run(scene, t)) {
            continue;
        }
        if (!scene->epoch && numbers_is_epoch_word(word)) {
            scene->epoch = t;
        } else if (!scene->step && numbers_is_step_word(word)) {
            scene->step = t;
        } else if ((!bare || scene->is_bar) && t->kind == TOKEN_FRACTION) {
            bare = t;
        }
    }
    scene->step = scene->step ? scene->step : bare;
}

/* Of a prefix that patterns read; 0 for another. */
static double scale_of(char si)
{
    return si == '\0' ? 1 : si == 'k' || si == 'K' ? 1e3 : si == 'M' ? 1e6 : 0;
}

static bool begins_with_moment(const struct scene *scene)
{
    double ignored;
    return scene->tokens[0].kind == TOKEN_MOMENT && logtime_parse(scene->tokens[0].text, &ignored);
}

/* A figure with a name or a unit, which is neither the line's step nor its epoch. */
static bool is_figure(const struct scene *scene, const struct token *t, double *ret_value)
{
    bool is_span = t->kind == TOKEN_SPAN;
    return (t->kind == TOKEN_NUMBER || is_span) && (t->key.len > 0 || t->unit.len > 0) &&
           t != scene->step && t != scene->epoch &&
           (is_span ? logspan_parse(t->text, ret_value) : value_of(t->text, ret_value));
}

static struct str lead_of(const struct scene *scene)
{
    return scene->is_bar ? scene->tokens[0].key : STR_EMPTY;
}

/* A tool chooses the prefix line by line. */
static char si_of(const struct token *t)
{
    return scale_of(t->si) > 0 ? '\0' : t->si;
}

static struct survey_number *number_at(struct survey *s, const struct scene *scene,
                                       const struct token *t)
{
    char identity[IDENTITY_BYTES];
    /* Bars of another length belong to another loop. */
    bool has_total = scene->is_bar && scene->step && scene->step->kind == TOKEN_FRACTION;
    int len =
        snprintf(identity, sizeof(identity), "%d%d%d%d\x01%.*s\x01%.*s\x01%.*s\x01%" PRId64,
                 t->kind == TOKEN_SPAN, scene->is_bar, scene->is_eval, si_of(t), STR_ARG(t->key),
                 STR_ARG(t->unit), STR_ARG(lead_of(scene)), has_total ? scene->step->total : 0);
    return len < (int)sizeof(identity) ? number_of(s, (struct str){identity, (size_t)len}, scene)
                                       : NULL;
}

static void begin_number(struct survey *s, struct survey_number *number, const struct scene *scene,
                         const struct token *t)
{
    number->key = str_dup(&s->arena, t->key);
    number->gap = str_dup(&s->arena, t->gap);
    number->unit = str_dup(&s->arena, t->unit);
    number->is_bar = scene->is_bar;
    number->is_open = scene->is_open;
    number->lead = str_dup(&s->arena, lead_of(scene));
    number->is_span = t->kind == TOKEN_SPAN;
    number->si = si_of(t);
    number->is_eval = scene->is_eval;
}

static void take_numbers(struct survey *s, const struct scene *scene)
{
    for (size_t idx = 0; idx < scene->n; idx++) {
        const struct token *t = &scene->tokens[idx];
        double scale = scale_of(t->si);
        double value;
        struct survey_number *number = is_figure(scene, t, &value) ? number_at(s, scene, t) : NULL;
        if (!number) {
            continue;
        }
        if (number->n == 0) {
            begin_number(s, number, scene, t);
        }
        struct tally *tally = tally_of(s, number);
        number->is_pair = number->is_pair || (tally->last_seen == s->n_lines && !t->key.len);
        tally->last_seen = s->n_lines;
        number->is_grouped = number->is_grouped || memchr(t->text.ptr, ',', t->text.len);
        number->is_scaled = number->is_scaled || scale > 1;
        number->has_spread = number->has_spread || t->has_spread;
        note_value(number, scale > 0 ? scale * value : value);
        add_point(s, number, scene, number->last);
        note_rank(number, tally, scene);
        number->n_moments += begins_with_moment(scene);
        number->n_epoch_only += scene->epoch && !scene->step;
        note_steps(s, number, scene, t->at);
    }
}

/* The time stamp of a line that has a step. */
static void take_clock(struct survey *s, const struct scene *scene)
{
    struct survey_number *number;
    double moment;
    if (!scene->step || scene->is_bar || !begins_with_moment(scene) ||
        !logtime_parse(scene->tokens[0].text, &moment) ||
        !(number = number_of(s, STR_LIT("\x02"), scene))) {
        return;
    }
    number->is_clock = true;
    note_value(number, moment);
    add_point(s, number, scene, moment);
    note_steps(s, number, scene, scene->tokens[0].at);
}

/* ---- tables ---- */

static size_t split_words(struct str text, struct str *ret_words, size_t max)
{
    size_t n = 0;
    for (size_t at = 0; at < text.len;) {
        while (at < text.len && strchr(" \t|", text.ptr[at])) {
            at++;
        }
        size_t from = at;
        while (at < text.len && !strchr(" \t|", text.ptr[at])) {
            at++;
        }
        if (at > from) {
            if (n == max) {
                return max + 1;
            }
            ret_words[n++] = str_sub(text, from, at - from);
        }
    }
    return n;
}

/* A line with only names, which begins a table. */
static void keep_head(struct survey *s, struct str text)
{
    struct head *head = &s->head;
    struct str words[HEAD_WORDS_MAX];
    size_t n = split_words(text, words, HEAD_WORDS_MAX);
    if (patterns_find(&s->reader.patterns, "[^\t -~]", text, NULL, 0) || n < HEAD_WORDS_MIN ||
        n > HEAD_WORDS_MAX || text.len > sizeof(head->buf)) {
        return;
    }
    memcpy(head->buf, text.ptr, text.len);
    head->text = (struct str){head->buf, text.len};
    head->n = split_words(head->text, head->words, HEAD_WORDS_MAX);
}

static bool cell_value(struct str word, bool *ret_is_span, double *ret_value)
{
    *ret_is_span = str_find(word, STR_LIT(":")) > 0;
    return *ret_is_span ? logspan_parse(word, ret_value) : value_of(word, ret_value);
}

/* The number of a table's column, with this cell; column -1: of the one that names its unit. */
static struct survey_number *cell_at(struct survey *s, const struct scene *scene, int column,
                                     struct str name, double value)
{
    char identity[IDENTITY_BYTES];
    int len = snprintf(identity, sizeof(identity), "\x03%d\x01%.*s", column, STR_ARG(name));
    struct survey_number *number = len < (int)sizeof(identity)
                                       ? number_of(s, (struct str){identity, (size_t)len}, scene)
                                       : NULL;
    if (number) {
        number->key = number->n ? number->key : str_dup(&s->arena, name);
        note_value(number, value);
        add_point(s, number, scene, value);
    }
    return number;
}

/* A row has as many words as the header, most of them numbers. */
static bool take_row(struct survey *s, const struct scene *scene)
{
    struct str words[HEAD_WORDS_MAX];
    size_t n = split_words(scene->text, words, HEAD_WORDS_MAX);
    size_t n_values = 0;
    double value;
    bool is_span;
    if (s->head.n == 0 || n != s->head.n) {
        return false;
    }
    for (size_t idx = 0; idx < n; idx++) {
        n_values += cell_value(words[idx], &is_span, &value);
    }
    if (2 * n_values <= n || !cell_value(words[0], &is_span, &value)) {
        return false;
    }
    for (size_t idx = 0; idx < n; idx++) {
        struct survey_number *number;
        if (!cell_value(words[idx], &is_span, &value) ||
            !(number = cell_at(s, scene, (int)idx, s->head.words[idx], value))) {
            continue;
        }
        if (number->n == 1) {
            number->head = str_dup(&s->arena, s->head.text);
            number->column = idx;
            number->is_span = is_span;
        }
    }
    return true;
}

/* The columns of a head: two blanks, a tab or "|" between. */
static size_t split_columns(struct survey_reader *r, struct str text, struct str *ret, size_t max)
{
    size_t n = 0;
    for (struct str g[2];
         n < max && patterns_find(&r->patterns, "^(.*?)(?:\t|\\||  |\\z)", text, g, 2);
         text = str_sub(text, g[0].len, SIZE_MAX)) {
        struct str part = str_trim(g[1]);
        if (part.len) {
            ret[n++] = part;
        }
    }
    return n;
}

/* "Bandwidth (MB/s)", "Best Rate MB/s": the unit of a rate that is its last word. */
static const struct word *unit_of_column(struct survey_reader *r, struct str column)
{
    struct str g[2];
    const struct word *unit =
        patterns_find(&r->patterns, "(?:^| )\\(?([^ ]+?)\\)?\\z", column, g, 2)
            ? words_find(&r->vocabulary->units, g[1])
            : NULL;
    return unit && word_is_rate(unit) ? unit : NULL;
}

/* Only names: no number, and no column of steps, whose rows are in order. */
static bool names_cases(struct str text, const struct str *columns, size_t n)
{
    char buf[32];
    if (str_cspan(text, 0, DIGITS) < text.len) {
        return false;
    }
    for (size_t idx = 0; idx < n; idx++) {
        struct str word = numbers_last_word(columns[idx], buf, sizeof(buf));
        if (numbers_is_step_word(word) || numbers_is_epoch_word(word)) {
            return false;
        }
    }
    return true;
}

static void keep_unit_head(struct survey *s, struct str text)
{
    struct str columns[HEAD_WORDS_MAX];
    struct unit_head *head = &s->unit_head;
    size_t len = text.len < sizeof(head->buf) ? text.len : sizeof(head->buf);
    size_t from = text.len > 1 && text.ptr[0] == '#' ? 1 : 0;
    struct unit_head found = {.unit = STR_EMPTY};
    memcpy(found.buf, text.ptr, len);
    size_t n = split_columns(&s->reader, str_sub(text, from, len - from), columns, HEAD_WORDS_MAX);
    bool is_head = names_cases(text, columns, n);
    for (size_t idx = 0; is_head && idx < n && !found.unit.len; idx++) {
        const struct word *unit = unit_of_column(&s->reader, columns[idx]);
        if (unit) {
            found.unit = unit->name;
            found.column = idx;
            found.name = (struct str){found.buf + (columns[idx].ptr - text.ptr), columns[idx].len};
        }
    }
    if (found.unit.len) {
        size_t at = (size_t)(found.name.ptr - found.buf);
        found.n_columns = n;
        *head = found;
        head->name = (struct str){head->buf + at, found.name.len};
    } else if (head->has_rows && text.ptr[0] != '#' && text.ptr[0] != '-') {
        *head = (struct unit_head){.unit = STR_EMPTY};
    }
}

/* A row has a number where the head has its unit; below a head of all columns, several. */
static bool take_unit_row(struct survey *s, const struct scene *scene)
{
    struct unit_head *head = &s->unit_head;
    struct str words[HEAD_WORDS_MAX];
    size_t n = head->unit.len ? split_words(scene->text, words, HEAD_WORDS_MAX) : 0;
    bool is_span;
    double value;
    bool is_row = false;
    if (n < 2 || n > HEAD_WORDS_MAX || (head->n_columns > 1 && n != head->n_columns)) {
        return false;
    }
    size_t from = head->n_columns > 1 ? head->column : 1;
    size_t to = head->n_columns > 1 ? head->column + 1 : n;
    for (size_t idx = from; idx < to; idx++) {
        if (memchr(words[idx].ptr, '.', words[idx].len) &&
            cell_value(words[idx], &is_span, &value) && !is_span) {
            struct survey_number *number = cell_at(s, scene, -1, head->name, value);
            if (number) {
                number->unit = head->unit;
                number->is_cell = true;
            }
            is_row = true;
        }
    }
    head->has_rows = head->has_rows || is_row;
    return is_row;
}

/* "Epoch 3/10", and "Train: 3 [10/41" of timm. */
static bool counts_epochs(const struct token *t, double *ret_value)
{
    char buf[32];
    struct str word = numbers_last_word(t->key, buf, sizeof(buf));
    *ret_value = (double)t->step;
    return t->unit.len == 0 &&
           (numbers_is_epoch_word(word) ? t->kind == TOKEN_FRACTION || t->kind == TOKEN_NUMBER
                                        : str_eq_z(word, "train") && t->is_whole) &&
           (t->kind == TOKEN_FRACTION || value_of(t->text, ret_value));
}

/* What a line says of epochs. */
static void note_around(struct survey *s, const struct scene *scene)
{
    static const char EPOCHS[] = "epoch epochs";
    size_t idx = 0;
    double value = -1;
    while (idx < scene->n && !counts_epochs(&scene->tokens[idx], &value)) {
        idx++;
    }
    s->epoch_lines += idx < scene->n || numbers_has_word(scene->text, EPOCHS);
    s->epoch = idx < scene->n ? value : s->epoch;
}

/* The moment of the line, and the time that a bar has run: its first span. */
static void find_times(struct scene *scene)
{
    if (begins_with_moment(scene)) {
        (void)logtime_parse(scene->tokens[0].text, &scene->time_s);
    }
    for (size_t idx = 0; scene->is_bar && idx < scene->n; idx++) {
        if (scene->tokens[idx].kind == TOKEN_SPAN) {
            (void)logspan_parse(scene->tokens[idx].text, &scene->elapsed_s);
            return;
        }
    }
}

/* What a line without words of its own belongs to: the evaluation that a line above it has begun, until a step is counted. */
static void follow_phase(struct survey *s, struct scene *scene)
{
    static const char BEGINS[] = "evaluating evaluation validating validation validate";
    bool is_said = scene->n == 0 ? numbers_has_word(scene->text, BEGINS) && scene->is_eval
                                 : scene->is_eval || numbers_is_of_training(scene->text);
    s->is_in_eval = is_said ? scene->is_eval : s->is_in_eval && !scene->step;
    scene->is_eval = s->is_in_eval;
}

/* A bar above a line of accuracies or of an evaluation's figures ("eval_loss") is the evaluation's. */
static void mark_bars(struct survey *s, const struct scene *scene)
{
    static const char SCORES[] = "accuracy acc top1 map miou f1";
    bool has_eval = str_find(scene->text, STR_LIT("eval_")) >= 0;
    if (scene->is_bar || (!has_eval && !numbers_has_word(scene->text, SCORES))) {
        return;
    }
    for (size_t idx = 0; idx < s->n; idx++) {
        struct survey_number *n = &s->items[idx];
        bool is_above = n->is_bar && s->tallies[idx].last_seen + 1 == s->n_lines;
        n->n_before_scores += is_above;
        n->n_before_eval += is_above && has_eval;
    }
}

static void take_line(struct survey *s, struct scene *scene, struct token *tokens)
{
    scene->n = numbers_tokens(&s->reader, scene->text, tokens);
    s->counts.n_cut += scene->n == SURVEY_TOKENS_MAX;
    for (size_t idx = 0; idx < scene->n; idx++) {
        size_t at = tokens[idx].at;
        s->counts.n_torn += tokens[idx].is_torn;
        const char *comma = memchr(scene->text.ptr + at, ',', tokens[idx].end - at);
        s->counts.n_commas += tokens[idx].kind == TOKEN_OTHER && comma &&
                              comma == memrchr(scene->text.ptr + at, ',', tokens[idx].end - at);
    }
    note_around(s, scene);
    find_steps(scene);
    follow_phase(s, scene);
    if (scene->n == 0) {
        keep_head(s, scene->text);
        return;
    }
    find_times(scene);
    take_numbers(s, scene);
    take_clock(s, scene);
}

static void take_log_line(void *ctx, const struct line *line)
{
    struct survey *s = ctx;
    struct token tokens[SURVEY_TOKENS_MAX];
    struct str text = str_trim(str_sub(line->text, 0, SURVEY_LINE_BYTES));
    struct scene scene = {.text = text,
                          .number = line->number,
                          .tokens = tokens,
                          .elapsed_s = (double)NAN,
                          .time_s = (double)NAN,
                          .rank = -1};
    bool is_closed = text.len > 0 && text.ptr[text.len - 1] == '}'; /* a document is whole */
    s->counts.n_cut += line->text.len > SURVEY_LINE_BYTES;
    if ((line->is_cut && !is_closed) || text.len == 0) {
        return;
    }
    s->n_lines++;
    if (!take_unit_row(s, &scene) && !take_row(s, &scene)) {
        keep_unit_head(s, text);
        scene.is_open = numbers_is_open_bar(&s->reader, text);
        scene.is_bar = scene.is_open || numbers_is_bar(&s->reader, text);
        scene.is_eval = numbers_is_of_eval(text);
        scene.rank = line->rank >= 0 ? line->rank : numbers_rank(&s->reader, text);
        scene.shape = hash_shape(text);
        mark_bars(s, &scene);
        take_line(s, &scene, tokens);
    }
}
