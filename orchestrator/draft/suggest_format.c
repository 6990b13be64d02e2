/* SPDX-License-Identifier: Apache-2.0 */
/* A suggestion as a pattern, and as the text of a format. */
#include "base/base.h"

#include "draft/suggest.h"

#include "base/str.h"
#include "codec/pattern.h"
#include "log/numbers.h"

#include <math.h>

/* With a sign, so that what is not over 0 is noticed; "9,003" without the comma after it. */
#define NUMBER "-?(?:\\d++(?:,\\d++){0,9}+(?:\\.\\d*)?|\\.\\d+)(?:[eE][-+]?\\d+)?|-?(?:nan|NaN|inf)"
#define MOMENT "\\d{4}[-/]\\d\\d[-/]\\d\\d[ T]\\d\\d:\\d\\d:\\d\\d(?:[.,]\\d+)?"
/* "train_loss: 2.5", "'loss': nan", "lm loss=NaN", and not "val_loss". */
#define LOSS                                                                                       \
    ".*?(?<!val[_/.])(?<!eval[_/.])(?<!test[_/.])(?<!dev[_/.])(?<!valid[_/.])(?<!validation[_/.])" \
    "[lL]oss['\"]?\\s*[:=]?\\s*(?<value>[-+]?(?i:nan|inf)|" NUMBER ")"
#define WORDS_BYTES   96
#define UNIT_BYTES    64
#define STEPS_MANY    8 /* lines with a step, so that a few without are of something else */
#define RUNNING_MIN   4
#define RUNNING_FAR   2.0  /* from the first to the last */
#define PATTERN_BYTES 2048 /* of manifests/schema/format.json */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Blanks match any number of blanks, other text itself. Blanks at the beginning or end are optional. */
static void add_text_of(struct strbuf *out, struct str text, const char *blanks, bool counts)
{
    for (size_t idx = 0; idx < text.len; idx++) {
        char c = text.ptr[idx];
        if (is_blank(c)) {
            while (idx + 1 < text.len && is_blank(text.ptr[idx + 1])) {
                idx++;
            }
            strbuf_add_z(out, blanks);
        } else if (is_digit(c) && counts) {
            while (idx + 1 < text.len && is_digit(text.ptr[idx + 1])) {
                idx++;
            }
            strbuf_add_z(out, "\\d+");
        } else {
            if (c != '\0' && strchr("\\^$.[]|()?*+{}#", c)) {
                strbuf_add_char(out, '\\');
            }
            strbuf_add_char(out, c);
        }
    }
}

static void add_text(struct strbuf *out, struct str text, const char *blanks)
{
    add_text_of(out, text, blanks, false);
}

/* The words before a number, and the gap between, which may count: "step 3: ". */
static void add_key(struct strbuf *out, struct str key, struct str gap)
{
    bool is_open = gap.len > 0 && is_blank(gap.ptr[0]) && str_trim(gap).len == 0;
    if (key.len == 0) {
        strbuf_add_z(out, "(?<![-\\w.])");
        return;
    }
    strbuf_add_z(out, "(?<!\\w)");
    add_text(out, key, "\\s+");
    if (is_open) {
        strbuf_add_z(out, "\\s+");
        return;
    }
    strbuf_add_z(out, "\\s*");
    add_text_of(out, str_trim(gap), "\\s*", true);
    strbuf_add_z(out, "\\s*");
}

/* Other figures beside a bar ("loss=2.9, step_timing in s=5.2") are of the step at which they stand. */
static bool is_beside(const struct survey_number *n)
{
    return n->is_bar && n->key.len > 0 && n->unit.len == 0;
}

static bool has_steps(const struct survey_number *n)
{
    const struct survey_steps *s = &n->steps;
    bool is_nearly = s->n >= STEPS_MANY && s->n * 4 >= n->n * 3; /* others are of another line */
    bool is_open_bar = n->is_bar && s->n_full == 0 && s->has_total;
    bool stands = n->n > 1 && s->first == s->last && s->n_back == 0; /* once an epoch */
    return (s->n == n->n || is_nearly) && !s->is_changing && !stands &&
           (!n->is_bar || is_open_bar || is_beside(n));
}

/* Steps that restart with each epoch, if the epoch shows it and the length of an epoch is known. */
static bool has_epochs(const struct survey_number *n)
{
    const struct survey_steps *s = &n->steps;
    return has_steps(n) && s->n_back > 0 && s->n_back_same == 0 && s->n_epochs == n->n &&
           s->has_total && s->epoch_key.len && s->first_epoch <= 1;
}

static bool is_full_bar(const struct suggestion *s)
{
    return s->number->is_bar && !is_beside(s->number) && s->number->steps.n_full > 0;
}

/* Steps that begin again where no later epoch is named, on each line or between them: a second run, as far as the log says. */
static bool has_runs(const struct survey_number *n)
{
    return has_steps(n) &&
           ((n->steps.n_back_same > 0 && n->steps.n_epochs == n->n) || n->steps.n_back_bare > 0);
}

/* "0/99" to "99/99": what stands there as the total is the last step. */
static bool is_total_last(const struct survey_steps *s)
{
    return s->first == 0 && s->n_full > 0;
}

/* Items elsewhere on the line, in any order. */
static void add_steps(struct strbuf *out, const struct survey_number *n)
{
    const struct survey_steps *s = &n->steps;
    if (has_epochs(n)) {
        strbuf_add_z(out, "(?=.*?");
        add_key(out, s->epoch_key, s->epoch_gap);
        strbuf_add_z(out, "(?<epoch>\\d+))");
    }
    if (has_steps(n) && (s->n_back == 0 || has_epochs(n) || has_runs(n))) {
        bool is_total = !is_total_last(s) && !has_runs(n);
        strbuf_add_z(out, "(?=.*?");
        add_key(out, s->key, s->gap);
        strbuf_add_z(out, !s->has_total ? "(?<step>\\d+))"
                          : is_total    ? "(?<step>\\d+)\\s*/\\s*(?<total>\\d+))"
                                        : "(?<step>\\d+)\\s*/\\s*\\d+)");
    }
}

static void add_column(struct strbuf *out, const struct survey_number *n)
{
    strbuf_add_z(out, "^[\\s|]*");
    if (n->column > 0) {
        strbuf_printf(out, "(?:[^\\s|]+[\\s|]+){%zu}", n->column);
    }
    strbuf_add_z(out, "(?<value>" NUMBER ")(?![^\\s|])");
}

static void add_words(struct strbuf *out, const char *words)
{
    strbuf_add_z(out, "\\b(?i:");
    for (; *words; words++) {
        strbuf_add_char(out, *words == ' ' ? '|' : *words);
    }
    strbuf_add_z(out, ")\\b");
}

/* No line of an evaluation, as numbers_is_of_eval has it. */
static void add_not_eval(struct strbuf *out)
{
    strbuf_add_z(out, "(?!(?:(?!");
    add_words(out, SURVEY_TRAIN);
    strbuf_printf(out, ").){0,%d}?", SURVEY_WHOSE_BYTES);
    add_words(out, SURVEY_EVAL);
    strbuf_add_z(out, ")");
}

struct str suggest_flip(struct str unit, char *buf, size_t size)
{
    int64_t slash = str_find(unit, STR_LIT("/"));
    struct str over = str_sub(unit, 0, slash > 0 ? (size_t)slash : 0);
    struct str per = str_sub(unit, over.len + 1, unit.len);
    int len = snprintf(buf, size, "%.*s/%.*s", STR_ARG(per), STR_ARG(over));
    return (struct str){buf, over.len && len < (int)size ? (size_t)len : 0};
}

/* "it/s", and "s/it" where the bar has that too. */
static void add_unit(struct strbuf *out, const struct suggestion *s)
{
    char buf[UNIT_BYTES];
    strbuf_add_z(out, "\\s?");
    strbuf_add_z(out, s->is_flipped ? "(?:" : "");
    add_text(out, s->number->unit, "\\s+");
    if (s->is_flipped) {
        strbuf_add_z(out, "|(?<inverse>");
        add_text(out, suggest_flip(s->number->unit, buf, sizeof(buf)), "\\s+");
        strbuf_add_z(out, "))");
    }
}

bool suggest_pattern(const struct suggestion *suggestion, struct strbuf *out)
{
    const struct survey_number *n = suggestion->number;
    char full[32] = "\\d+";
    if (is_full_bar(suggestion)) {
        (void)snprintf(full, sizeof(full), "%" PRId64, suggestion->total);
    }
    if (n->head.ptr) {
        add_column(out, n);
        return !out->is_full;
    }
    strbuf_add_z(out, "^");
    if (suggestion->has_eval) {
        add_not_eval(out);
    }
    if (n->is_bar && !n->lead.len) {
        strbuf_add_z(out, "(?=[^A-Za-z]*\\d)"); /* other bars begin with a word */
    }
    if (n->is_bar && n->lead.len) {
        strbuf_add_z(out, "(?=.*?(?<!\\w)");
        add_text(out, n->lead, "\\s+");
        strbuf_add_z(out, "(?!\\w))");
    }
    if (suggestion->total > 0) {
        strbuf_printf(out, "(?=.*?(?<![\\d/])%s/%" PRId64 "\\s*(?:\\[|\\xe2\\x94\\x81))", full,
                      suggestion->total);
    } else if (is_full_bar(suggestion)) { /* values of unfinished bars are smoothed */
        strbuf_add_z(out, "(?=.*?(?<![\\d/])(\\d+)/\\1\\s*(?:\\[|\\xe2\\x94\\x81))");
    }
    add_steps(out, n);
    if (n->is_clock) {
        strbuf_add_z(out, "\\W*(?<time>" MOMENT ")");
        return !out->is_full;
    }
    if (suggestion->kind == SUGGEST_ELAPSED) {
        strbuf_add_z(out, ".*?");
        add_key(out, n->key, n->gap);
        strbuf_add_z(out, "(?<time>[\\d:]+(?:\\.\\d+)?)");
        if (n->unit.len) {
            strbuf_add_z(out, "\\s?");
            add_text(out, n->unit, "\\s+");
        }
        return !out->is_full;
    }
    /* Of several ranks on several nodes the clocks differ. */
    strbuf_add_z(out, n->n_moments == n->n && !n->is_of_ranks ? "(?:\\W*(?<time>" MOMENT "))?.*?"
                                                              : ".*?");
    if (suggestion->not_after.len > 0) {
        strbuf_add_z(out, "(?<!");
        add_text(out, suggestion->not_after, " ");
        strbuf_add_z(out, ")");
    }
    add_key(out, n->key, n->gap);
    strbuf_add_z(out, "(?<value>" NUMBER ")");
    if (n->is_scaled) {
        strbuf_add_z(out, "(?:(?<kilo>[kK])|(?<mega>M))?");
    }
    if (n->has_spread) {
        strbuf_add_z(out, "(?: (?:\\+/- |\xc2\xb1 |\\()[\\d.]+\\)?)?");
    }
    if (n->unit.len) {
        add_unit(out, suggestion);
    }
    strbuf_add_z(out, "(?![\\w/])");
    return !out->is_full && out->len <= PATTERN_BYTES;
}

/* ---- as a format ---- */

/* The longest piece of text that is on every line; empty if none is long enough. */
static struct str literal_of(const struct suggestion *suggestion)
{
    const struct survey_number *n = suggestion->number;
    const struct str texts[] = {suggestion->is_flipped ? STR_EMPTY : n->unit,
                                n->is_clock ? STR_EMPTY : n->key,
                                n->is_clock && has_steps(n) ? n->steps.key : STR_EMPTY};
    struct str best = STR_EMPTY;
    for (size_t idx = 0; idx < ARRAY_LEN(texts); idx++) {
        struct str rest = texts[idx];
        struct str word;
        while (str_next(&rest, ' ', &word)) {
            best = word.len > best.len ? word : best;
        }
    }
    return best.len >= 4 ? best : STR_EMPTY;
}

/* Whether each figure is of all steps so far. */
static bool is_running_mean(const struct survey_number *n)
{
    size_t up = 0;
    size_t down = 0;
    for (size_t idx = 1; idx < n->n_points; idx++) {
        up += n->points[idx].value > n->points[idx - 1].value;
        down += n->points[idx].value < n->points[idx - 1].value;
    }
    size_t n_pairs = n->n_points > 0 ? n->n_points - 1 : 0;
    double far = n->first < n->last ? n->last / n->first : n->first / n->last;
    return n->n_points >= RUNNING_MIN && (up == n_pairs || down == n_pairs) && far >= RUNNING_FAR;
}

static const char *quantity_of(const struct suggestion *s)
{
    bool is_running = (s->number->is_bar && !is_full_bar(s)) || is_running_mean(s->number);
    return s->kind == SUGGEST_RATE && is_running ? "running_mean" : SUGGEST_KINDS[s->kind].quantity;
}

/* As far as its words say it: nothing is the job's by default. */
static const char *scope_of(const struct suggestion *s)
{
    char buf[WORDS_BYTES];
    bool is_step = s->kind != SUGGEST_RATE || str_eq_z(s->unit, "steps/s");
    return s->is_of_one ? "rank"
           : is_step || numbers_has_word(numbers_words(s->number->key, buf, sizeof(buf)),
                                         "global total aggregate overall job cluster")
               ? "job"
               : NULL;
}

static void put_after(struct json_out *out, const struct survey_number *n)
{
    CLEANUP(strbuf) struct strbuf pattern = STRBUF(PATTERN_LEN_MAX);
    struct str rest = n->head;
    struct str word;
    struct str longest = STR_EMPTY;
    add_text(&pattern, str_trim(n->head), "\\s+");
    while (str_next(&rest, ' ', &word)) {
        longest = word.len > longest.len ? word : longest;
    }
    jw_object(out, "after");
    jw_str(out, "literal", longest);
    jw_str(out, "pattern", strbuf_str(&pattern));
    jw_end_object(out);
}

static void put_series(struct json_out *out, const struct suggestion *s)
{
    CLEANUP(strbuf) struct strbuf pattern = STRBUF(PATTERN_LEN_MAX);
    const struct survey_number *n = s->number;
    bool is_stepped = has_steps(n);
    struct str literal = literal_of(s);
    (void)suggest_pattern(s, &pattern);
    jw_object(out, NULL);
    jw_z(out, "name", SUGGEST_KINDS[s->kind].series);
    if (literal.len && !n->head.ptr) {
        jw_str(out, "literal", literal);
    }
    jw_str(out, "pattern", strbuf_str(&pattern));
    jw_str(out, "unit", quantity_of(s)[0] == 'c' ? STR_LIT("") : s->unit);
    jw_z(out, "scope", scope_of(s));
    jw_z(out, "quantity", quantity_of(s));
    if (s->factor < 1 || s->factor > 1) {
        jw_f64(out, "factor", s->factor);
    }
    if (n->is_grouped) {
        jw_bool(out, "grouped", true);
    }
    jw_bool(out, "repeats", !is_stepped || (n->steps.n_same > 0 && !has_runs(n)));
    jw_bool(out, "grid", is_stepped && !n->is_bar && s->kind != SUGGEST_ELAPSED);
    if (is_stepped && n->steps.n_back == 0 && n->steps.has_total && n->steps.first == 0) {
        jw_i64(out, "step_from", 0);
    }
    if (is_stepped && has_epochs(n)) {
        jw_i64(out, "step_from", n->steps.first == 0 ? 0 : 1);
        jw_i64(out, "epoch_from", n->steps.first_epoch);
    }
    if (n->head.ptr) {
        put_after(out, n);
    }
    jw_end_object(out);
}

/* A training whose loss is no number has no speed either, whatever its lines measure. */
static void put_loss(struct json_out *out)
{
    CLEANUP(strbuf) struct strbuf pattern = STRBUF(PATTERN_LEN_MAX);
    strbuf_add_char(&pattern, '^');
    add_not_eval(&pattern);
    strbuf_add_z(&pattern, LOSS);
    jw_object(out, NULL);
    jw_z(out, "name", "loss");
    jw_str(out, "pattern", strbuf_str(&pattern));
    jw_z(out, "unit", "");
    jw_z(out, "scope", "rank");
    jw_end_object(out);
}

/* What a log may state of its row, by the words that programs use; "batch" alone is of a GPU or of all. */
static const struct {
    const char *fact, *words;
} STATED[] = {
    {"gpus", "gpus GPUs num_gpus n_gpus ngpus world_size"},
    {"nodes", "nodes Nodes num_nodes n_nodes nnodes"},
    {"batch_per_gpu", "batch_per_gpu batch_size_per_gpu per_gpu_batch_size per_device_batch_size "
                      "per_device_train_batch_size"},
    {"global_batch", "global_batch global_batch_size total_batch_size"},
};

/* The last word of the key: "gpus" of "vit_s16 bf16 gpus". */
static struct str last_word(struct str key)
{
    size_t from = key.len;
    while (from > 0 && str_is_made_of(str_sub(key, from - 1, 1), "a-zA-Z0-9_")) {
        from--;
    }
    return str_sub(key, from, key.len);
}

static void put_fact(struct json_out *out, const char *fact, struct str word, bool is_in_sample,
                     const char *value)
{
    CLEANUP(strbuf) struct strbuf pattern = STRBUF(PATTERN_LEN_MAX);
    strbuf_printf(&pattern, "(?<![\\w.-])%.*s['\"]?\\s*[=:]?\\s*['\"]?(?<value>%s)(?![\\w.])",
                  STR_ARG(word), value);
    jw_object(out, NULL);
    jw_z(out, "name", fact);
    jw_str(out, "literal", word);
    jw_str(out, "pattern", strbuf_str(&pattern));
    if (is_in_sample) {
        jw_bool(out, "in_sample", true);
    }
    jw_end_object(out);
}

/* The first number of each fact that stays the same; a model by its word on the lines of the figure. */
static void put_facts(struct json_out *out, const struct suggestions *list,
                      const struct suggestion *best)
{
    jw_array(out, "facts");
    for (size_t fact = 0; fact < ARRAY_LEN(STATED); fact++) {
        for (size_t idx = 0; idx < list->n; idx++) {
            const struct survey_number *n = list->items[idx].number;
            struct str word = last_word(n->key);
            bool is_count = n->min >= 1 && n->min >= n->max && n->min <= floor(n->min);
            if (is_count && !n->unit.len && !n->head.ptr && is_word_of(word, STATED[fact].words)) {
                put_fact(out, STATED[fact].fact, word, n->n >= best->number->n, "\\d+");
                break;
            }
        }
    }
    if (str_find(best->number->example, STR_LIT("model=")) >= 0) {
        put_fact(out, "model", STR_LIT("model"), true, "[A-Za-z][\\w.-]*\\w");
    }
    jw_end_array(out);
}

struct rule_text {
    const char *name, *statistic, *scale, *source;
    bool is_default;
    size_t skip;
};

static void put_rule(struct json_out *out, struct str series, const struct rule_text *rule)
{
    jw_object(out, NULL);
    jw_z(out, "name", rule->name);
    jw_str(out, "series", series);
    if (rule->skip) {
        jw_i64(out, "skip", (int64_t)rule->skip);
    }
    jw_z(out, "statistic", rule->statistic);
    if (rule->scale) {
        jw_z(out, "scale", rule->scale);
    }
    if (rule->is_default) {
        jw_bool(out, "default", true);
    }
    jw_z(out, "origin", "own");
    jw_z(out, "source", rule->source);
    jw_end_object(out);
}

static void put_rules(struct json_out *out, const struct suggestion *s, size_t skip)
{
    struct str name = str_of(SUGGEST_KINDS[s->kind].series);
    const char *scale = s->kind == SUGGEST_TIME        ? "global_batch_over"
                        : s->is_of_one                 ? "gpus"
                        : str_eq_z(s->unit, "steps/s") ? "global_batch"
                                                       : NULL;
    jw_array(out, "rules");
    if (s->kind == SUGGEST_CLOCK || s->kind == SUGGEST_ELAPSED) {
        const struct rule_text clock = {
            "timestamps", "timestamps",
            NULL,         "steps between the first and last moment, by the batch",
            true,         0};
        put_rule(out, name, &clock);
        jw_end_array(out);
        return;
    }
    const struct rule_text rules[] = {
        {"window", "mean", NULL, "without the slow start", false, skip},
        {"mean", "mean", NULL, "plain mean", false, 0},
        {"median", "median", NULL, "plain median", false, 0},
        {"last", "last", NULL, "the last figure", false, 0},
        {s->is_of_one ? "job" : "samples", "mean", scale,
         s->is_of_one ? "with --gpus: all devices, as if each were like this one"
                      : "with --batch and --gpus: samples of the job",
         false, skip}};
    for (size_t idx = 0; idx < ARRAY_LEN(rules); idx++) {
        if (idx + 1 < ARRAY_LEN(rules) || scale) {
            put_rule(out, name, &rules[idx]);
        }
    }
    jw_end_array(out);
}

static void put_head(struct json_out *out, struct str id, struct str source, bool is_proposed)
{
    jw_object(out, NULL);
    jw_i64(out, "schema_version", 1);
    jw_str(out, "id", id);
    jw_z(out, "title", "made from one log");
    jw_str(out, "source", source);
    if (is_proposed) {
        jw_bool(out, "proposed", true);
    }
    jw_array(out, "prefixes");
    jw_str(out, NULL, STR_LIT("mpirun"));
    jw_end_array(out);
}

void suggest_format(const struct suggestions *list, const struct suggested_format *as,
                    struct strbuf *out)
{
    struct json_out json;
    const struct suggestion *best = suggest_best(list);
    ASSERT(best);
    jw_begin(&json, out, false);
    put_head(&json, as->id, as->source, true);
    jw_array(&json, "series");
    put_series(&json, best);
    put_loss(&json);
    jw_end_array(&json);
    put_facts(&json, list, best);
    put_rules(&json, best, as->skip);
    jw_end_object(&json);
}

int suggest_given(const struct given_format *given, struct strbuf *out, struct err *err)
{
    struct json_out json;
    const struct word *unit = words_find(&given->vocabulary->units, given->unit);
    double factor;
    bool is_time = suggest_factor(unit, &factor);
    if (!unit) {
        return err_set(err, ERR_USAGE,
                       "--unit %.40s: no such unit; manifests/vocabulary.json has them",
                       given->unit.ptr);
    }
    if (str_find(given->pattern, STR_LIT("(?<value>")) < 0) {
        return err_set(err, ERR_USAGE,
                       "--pattern: expected a group (?<value>...) around the number");
    }
    jw_begin(&json, out, false);
    put_head(&json, given->id, STR_LIT("a pattern of the command line"), false);
    jw_array(&json, "series");
    jw_object(&json, NULL);
    jw_z(&json, "name", "value");
    jw_str(&json, "pattern", given->pattern);
    jw_str(&json, "unit", is_time ? STR_LIT("s") : unit->name);
    jw_z(&json, "scope", "job");
    jw_f64(&json, "factor", factor);
    jw_bool(&json, "repeats", true);
    jw_bool(&json, "grid", false);
    jw_end_object(&json);
    jw_end_array(&json);
    jw_end_object(&json);
    return 0;
}
