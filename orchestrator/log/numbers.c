/* SPDX-License-Identifier: Apache-2.0 */
/* A line's numbers, each with the words around it. */
#include "base/base.h"

#include "log/numbers.h"

#include "log/logtime.h"

#define KEY_BYTES  40
#define KEY_WORDS  3
#define UNIT_BYTES 24
#define WORD_BYTES 32
#define RANK_MAX   (1ll << 22) /* a process id's, too */
#define WHOLE_MAX  (1ll << 50)
#define GLOG_TEXT  6 /* "I1126 " */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_word(char c)
{
    return is_letter(c) || is_digit(c) || c == '_';
}

static char char_at(struct str text, size_t at)
{
    return at < text.len ? text.ptr[at] : '\0';
}

struct str numbers_last_word(struct str key, char *buf, size_t size)
{
    size_t from = key.len;
    size_t len = 0;
    while (from > 0 && (is_word(key.ptr[from - 1]))) {
        from--;
    }
    for (; from < key.len && len + 1 < size; from++) {
        char c = key.ptr[from];
        buf[len++] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    return (struct str){buf, len};
}

bool numbers_is_step_word(struct str word)
{
    return is_word_of(
        word,
        "step steps iter iters iteration iterations global_step it update updates num_updates "
        "batch batches batch_id batch_idx mb step_num train_step nupdates current_steps");
}

bool numbers_is_epoch_word(struct str word)
{
    static const char WORDS[] = "epoch epochs ep";
    return is_word_of(word, WORDS);
}

/* ---- bars ---- */

static bool has(struct survey_reader *r, const char *pattern, struct str text)
{
    return patterns_find(&r->patterns, pattern, text, NULL, 0);
}

/* Where what matches at `at` ends; `at` where nothing does. */
static size_t end_of(struct survey_reader *r, const char *pattern, struct str text, size_t at)
{
    struct str found;
    return patterns_find(&r->patterns, pattern, str_sub(text, at, SIZE_MAX), &found, 1)
               ? at + found.len
               : at;
}

/* "400it [00:04, 94.50it/s]". */
bool numbers_is_open_bar(struct survey_reader *r, struct str text)
{
    return has(r, "^(?:(?! \\[).)+ \\[[\\d:]*:[\\d:]*, .*(?:/s|s/)", text);
}

/* Also "[00:32<00:05, " of a bar that is drawn in other characters, or whose line was broken. */
bool numbers_is_bar(struct survey_reader *r, struct str text)
{
    return has(r,
               "%\\||\\[==|\\[>\\.\\.|\\xe2\\x94\\x81\\xe2\\x94\\x81|\\xe2\\x96\\x88|"
               "^[^<]*\\[[\\d:]*:[\\d:]*<",
               text);
}

/* ---- whose line it is ---- */

/* The next run of letters, digits and "_", in lower case in buf; empty at the end. */
static struct str next_word(struct str text, size_t *at, char *buf, size_t size)
{
    size_t from = *at;
    while (from < text.len && !is_word(text.ptr[from])) {
        from++;
    }
    size_t end = from;
    while (end < text.len && is_word(text.ptr[end])) {
        end++;
    }
    *at = end;
    return numbers_last_word(str_sub(text, from, end - from), buf, size);
}

/* Lower case, with "_" before a capital that follows a lower-case letter: "SamplesPerSec" is "samples_per_sec". */
struct str numbers_snake(struct str name, char *buf, size_t size)
{
    size_t len = 0;
    for (size_t idx = 0; idx < name.len && len + 2 < size; idx++) {
        char c = name.ptr[idx];
        bool is_by_slash = c == ' ' && ((idx > 0 && name.ptr[idx - 1] == '/') ||
                                        (idx + 1 < name.len && name.ptr[idx + 1] == '/'));
        if (is_by_slash) {
            continue;
        }
        bool is_capital = c >= 'A' && c <= 'Z';
        bool after_small = idx > 0 && name.ptr[idx - 1] >= 'a' && name.ptr[idx - 1] <= 'z';
        if (is_capital && after_small) {
            buf[len++] = '_';
        }
        buf[len++] = is_capital ? (char)(c - 'A' + 'a') : c == ' ' ? '_' : c;
    }
    return (struct str){buf, len};
}

struct str numbers_words(struct str name, char *buf, size_t size)
{
    struct str words = numbers_snake(name, buf, size);
    for (size_t idx = 0; idx < words.len; idx++) {
        buf[idx] = buf[idx] == '_' ? ' ' : buf[idx];
    }
    return words;
}

bool numbers_name_has(struct str name, const char *words)
{
    for (struct str part; str_next(&name, '_', &part);) {
        if (is_word_of(part, words)) {
            return true;
        }
    }
    return false;
}

bool numbers_has_word(struct str text, const char *words)
{
    char buf[WORD_BYTES];
    struct str word;
    for (size_t at = 0; (word = next_word(text, &at, buf, sizeof(buf))).len > 0;) {
        if (is_word_of(word, words)) {
            return true;
        }
    }
    return false;
}

const char SURVEY_TRAIN[] = "train training trainer";
const char SURVEY_EVAL[] =
    "eval evaluate evaluating evaluation val valid validate validating validation test testing";

const char SURVEY_RESUMES[] = "continuing resuming resumed";
const char SURVEY_OTHER_STATISTICS[] =
    "best peak max maximum min minimum p50 p90 p95 p99 med median std stddev stdev";

static bool begins_with(struct str text, const char *words, const char *others)
{
    char buf[WORD_BYTES];
    struct str word;
    bool is_cut = text.len > SURVEY_WHOSE_BYTES;
    text = str_sub(text, 0, SURVEY_WHOSE_BYTES);
    for (size_t at = 0; (word = next_word(text, &at, buf, sizeof(buf))).len > 0;) {
        if (is_cut && at == text.len) {
            return false; /* half a word */
        }
        if (is_word_of(word, words) || is_word_of(word, others)) {
            return is_word_of(word, words);
        }
    }
    return false;
}

bool numbers_is_of_eval(struct str text)
{
    return begins_with(text, SURVEY_EVAL, SURVEY_TRAIN);
}

bool numbers_is_of_training(struct str text)
{
    return begins_with(text, SURVEY_TRAIN, SURVEY_EVAL);
}

int64_t numbers_rank(struct survey_reader *r, struct str text)
{
    static const char RANK[] =
        "(?|^\\[(\\d{1,3})\\]|(?<!\\w)(?i:(?:local_|global_)?rank|gpu|device|worker|default|pid|"
        "proc|xla|dp)[ =:#]{0,3}(\\d+)(?![\\w.%]))";
    struct str g[2];
    int64_t rank = -1;
    return patterns_find(&r->patterns, RANK, text, g, 2) && logwhole_parse(g[1], RANK_MAX, &rank)
               ? rank
               : -1;
}

/* ---- units ---- */

/* Spellings of programs that no report uses. */
static const struct {
    const char *printed, *unit;
} SPELLINGS[] = {{"tks/s", "tokens/s"},       {"gflop/s", "GFLOP/s"},   {"gflops/s", "GFLOP/s"},
                 {"tflop/s", "TFLOP/s"},      {"fps", "images/s"},      {"docs/s", "items/s"},
                 {"rows/s", "items/s"},       {"req/s", "items/s"},     {"infer/sec", "items/s"},
                 {"inferences/s", "items/s"}, {"queries/s", "items/s"}, {"prompts/s", "items/s"}};

/* As the vocabulary has it, or as programs spell it in capitals or small letters. */
static const struct word *find_unit(const struct vocabulary *v, struct str text)
{
    char buf[UNIT_BYTES];
    const struct word *unit = words_find(&v->units, text);
    bool is_rate = !unit && text.len <= sizeof(buf) && text.len > 2;
    for (size_t idx = 0; is_rate && idx < text.len; idx++) {
        buf[idx] = text.ptr[idx] >= 'A' && text.ptr[idx] <= 'Z' ? (char)(text.ptr[idx] | 0x20)
                                                                : text.ptr[idx];
    }
    struct str small = {buf, is_rate ? text.len : 0};
    for (size_t idx = 0; small.len && idx < ARRAY_LEN(SPELLINGS); idx++) {
        small = str_eq_z(small, SPELLINGS[idx].printed) ? str_of(SPELLINGS[idx].unit) : small;
    }
    return small.len ? words_find(&v->units, small) : unit;
}

/* "s/it", "ms/step", "sec/batch": a time of the vocabulary over a step. */
static bool is_inverse(const struct vocabulary *v, struct str word)
{
    char buf[WORD_BYTES];
    int64_t slash = str_find(word, STR_LIT("/"));
    const struct word *unit = slash > 0 ? find_unit(v, str_sub(word, 0, (size_t)slash)) : NULL;
    struct str over = slash > 0 ? str_sub(word, (size_t)slash + 1, word.len) : STR_EMPTY;
    return unit && str_eq_z(unit->dimension, "time") &&
           numbers_is_step_word(numbers_last_word(over, buf, sizeof(buf)));
}

static const char *const ENDS_OF_ONE[] = {"/gpu",      "/GPU",      "/device",   "/core",
                                          "/chip",     " per GPU",  " per gpu",  " per device",
                                          " per core", " per chip", " per rank", NULL};

struct str numbers_unit_of_one(struct str unit, bool *ret_is_of_one)
{
    for (const char *const *end = ENDS_OF_ONE; *end; end++) {
        if (str_ends(unit, str_of(*end))) {
            *ret_is_of_one = true;
            return str_sub(unit, 0, unit.len - strlen(*end));
        }
    }
    return unit;
}

static const char *const SECONDS[] = {" per second", " per sec", "_per_second", "_per_sec", NULL};

const struct word *numbers_unit(const struct vocabulary *v, struct str text)
{
    char buf[UNIT_BYTES + 3];
    for (const char *const *end = SECONDS; *end; end++) {
        if (str_ends(text, str_of(*end)) && text.len - strlen(*end) < UNIT_BYTES) {
            int len =
                snprintf(buf, sizeof(buf), "%.*s/s", (int)(text.len - strlen(*end)), text.ptr);
            return find_unit(v, (struct str){buf, (size_t)len});
        }
    }
    return find_unit(v, text);
}

/* " +/- 0.008" between a mean and its unit, or " (640.1)", the mean beside the last: its end, or `at`. */
static size_t spread_from(struct survey_reader *r, struct str text, size_t at)
{
    return end_of(r, "^ (?:(?:\\+/-|\\xc2\\xb1) [\\d.]+|\\([\\d.]+\\))", text, at);
}

/* "sec / batch", "s / it": the whole, if it is a time over a step; else empty. */
static struct str unit_apart(struct survey_reader *r, struct str text, size_t from)
{
    char buf[WORD_BYTES];
    struct str g[3];
    if (!patterns_find(&r->patterns, "^([A-Za-z]+) / ([A-Za-z]+)", str_sub(text, from, SIZE_MAX), g,
                       3)) {
        return STR_EMPTY;
    }
    const struct word *unit = find_unit(r->vocabulary, g[1]);
    return unit && str_eq_z(unit->dimension, "time") &&
                   numbers_is_step_word(numbers_last_word(g[2], buf, sizeof(buf)))
               ? g[0]
               : STR_EMPTY;
}

/* The unit after a number, with or without a blank between; *ret_end: its end. */
static struct str unit_after(struct survey_reader *r, struct str text, size_t at, size_t *ret_end)
{
    const struct vocabulary *v = r->vocabulary;
    at = spread_from(r, text, at);
    size_t from = at + (char_at(text, at) == ' ');
    bool is_of_one;
    struct str apart = unit_apart(r, text, from);
    if (apart.len > 0) {
        *ret_end = from + apart.len;
        return apart;
    }
    struct str word = str_sub(text, from, end_of(r, "^[A-Za-z/%_]{1,24}", text, from) - from);
    word = str_rtrim(word, 0, "/");
    for (const char *const *end = SECONDS; word.len > 0 && *end; end++) {
        struct str whole = str_sub(text, from, word.len + strlen(*end));
        if (str_ends(whole, str_of(*end)) && !is_word(char_at(text, from + whole.len)) &&
            numbers_unit(v, whole)) {
            *ret_end = from + whole.len;
            return whole;
        }
    }
    if (word.len == 0 || is_word(char_at(text, from + word.len)) ||
        (!numbers_unit(v, numbers_unit_of_one(word, &is_of_one)) && !is_inverse(v, word))) {
        return STR_EMPTY;
    }
    for (const char *const *end = ENDS_OF_ONE; *end; end++) { /* "img/s per GPU" */
        struct str after = str_sub(text, from + word.len, strlen(*end));
        bool is_there = **end == ' ' && str_eq_z(after, *end);
        if (is_there && !is_word(char_at(text, from + word.len + after.len))) {
            word.len += after.len;
            break;
        }
    }
    *ret_end = from + word.len;
    return word;
}

/* ---- numbers ---- */

/* A date with or without a time; the end, or `at` if there is none. */
static const char MOMENT[] =
    "^\\d{4}(?:-\\d\\d-|/\\d\\d/)\\d\\d(?:[ T]\\d\\d:\\d\\d:\\d\\d(?:[.,]\\d+)?)?";
/* "00:35", "1:02:03.5". */
static const char SPAN[] =
    "^(?:\\d?:\\d\\d(?!\\d):\\d\\d(?!\\d)|\\d{0,4}:\\d\\d(?!\\d))(?:\\.\\d+)?";
/* "12", "1,234.5", ".5", "1e-3", "-2": "1234,567" and "0,125" have a decimal comma. */
static const char NUMBER[] =
    "^[-+]?(?:(?!0)\\d{1,3}(?:,\\d{3}(?!\\d))+|\\d*)(?:\\.\\d+)?(?:[eE][-+]?\\d+)?";

static bool begins_number(struct str text, size_t at)
{
    char c = text.ptr[at];
    char before = at > 0 ? text.ptr[at - 1] : ' ';
    bool is_grouped = before == '\'' && at > 1 && is_digit(text.ptr[at - 2]); /* "12'345" */
    bool is_free = !is_word(before) && before != '.' && !is_grouped;
    if (is_digit(c)) { /* not the 95 of "mAP50-95" */
        return is_free && (before != '-' || at < 2 || !is_word(text.ptr[at - 2]));
    }
    if (c == '.') {
        return is_free && is_digit(char_at(text, at + 1));
    }
    return (c == '-' || c == '+') && is_free && is_digit(char_at(text, at + 1)) && before != ')' &&
           before != ']';
}

/* "/100", " / 100" after a whole number: its end, or `at`. */
static size_t total_from(struct survey_reader *r, struct str text, size_t at, int64_t *ret_total)
{
    struct str g[2];
    return patterns_find(&r->patterns, "^ */ *(\\d+)(?![\\w/])", str_sub(text, at, SIZE_MAX), g,
                         2) &&
                   logwhole_parse(g[1], WHOLE_MAX, ret_total)
               ? at + g[0].len
               : at;
}

static bool is_mark(char c)
{
    return c == '.' || c == ',';
}

/* "436K", "1.05M": not the "k" of a word or of "kB". */
static bool is_prefix_of_si(struct str text, size_t at)
{
    char c = char_at(text, at);
    char next = char_at(text, at + 1);
    return c != '\0' && strchr("kKMGT", c) && !is_word(next) && next != '/';
}

static void take_number(struct survey_reader *r, struct str text, size_t at, struct token *t)
{
    size_t end = end_of(r, NUMBER, text, at);
    t->kind = TOKEN_NUMBER;
    t->text = str_sub(text, at, end - at);
    t->is_whole = logwhole_parse(t->text, WHOLE_MAX, &t->step);
    t->end = end;
    if (is_mark(char_at(text, end)) && is_digit(char_at(text, end + 1))) { /* 127.0.0.1, 2,5 */
        t->kind = TOKEN_OTHER;
        while (is_digit(char_at(text, t->end)) || is_mark(char_at(text, t->end))) {
            t->end++;
        }
        return;
    }
    if (t->is_whole && (t->end = total_from(r, text, end, &t->total)) != end) {
        t->kind = TOKEN_FRACTION;
        return;
    }
    if (is_prefix_of_si(text, end)) {
        t->si = text.ptr[end];
        end = t->end = end + 1;
    }
    t->unit = unit_after(r, text, end, &t->end);
    t->has_spread = t->unit.len > 0 && spread_from(r, text, end) != end;
}

/* "I1126 10:00:00.5" of Google's loggers: the time at `at` is no span. */
static bool is_after_glog(struct survey_reader *r, struct str text, size_t at)
{
    return at >= GLOG_TEXT && (at == GLOG_TEXT || !is_word(text.ptr[at - GLOG_TEXT - 1])) &&
           has(r, "^[IWEFD]\\d{4} \\z", str_sub(text, at - GLOG_TEXT, GLOG_TEXT));
}

static void take_token(struct survey_reader *r, struct str text, size_t at, struct token *t)
{
    size_t end = end_of(r, MOMENT, text, at);
    *t = (struct token){.kind = TOKEN_MOMENT, .at = at, .end = end};
    if (end == at) {
        end = end_of(r, SPAN, text, at);
        t->kind = is_after_glog(r, text, at) ? TOKEN_OTHER : TOKEN_SPAN;
    }
    if (end == at) {
        take_number(r, text, at, t);
        return;
    }
    t->end = end;
    t->text = str_sub(text, at, end - at);
}

/* ---- keys ---- */

static bool is_key_char(char c)
{
    return is_word(c) || (c != '\0' && strchr("/.%()-", c));
}

/* The beginning of the words that end at `to`, not before `floor`: at most three, one blank between them. */
static size_t key_from(struct str text, size_t floor, size_t to)
{
    size_t from = to;
    size_t n_words = 1;
    while (from > floor && to - from < KEY_BYTES) {
        char c = text.ptr[from - 1];
        bool is_blank = c == ' ' && from - 1 > floor &&
                        (is_word(text.ptr[from - 2]) || text.ptr[from - 2] == '/');
        if (is_blank && n_words < KEY_WORDS) {
            n_words++;
        } else if (!is_key_char(c) || (c == '-' && from < to && !is_word(text.ptr[from]))) {
            break;
        }
        from--;
    }
    if (from == floor && floor > 0 && is_word(text.ptr[floor - 1])) {
        while (from < to && is_word(text.ptr[from])) { /* "400it rate: 1.2": the 400's */
            from++;
        }
    }
    while (from < to && !is_letter(text.ptr[from]) && text.ptr[from] != '_') {
        from++;
    }
    return from;
}

static void find_key(struct survey_reader *r, struct str text, size_t floor, struct token *t)
{
    size_t to = t->at;
    while (to > floor && text.ptr[to - 1] != '\0' && strchr(" \t:=|([{<>\"',", text.ptr[to - 1]) &&
           !(text.ptr[to - 1] == ',' && text.ptr[t->at - 1] == ' ')) {
        to--;
    }
    size_t from = key_from(text, floor, to);
    if (has(r, "^[A-Za-z ]{1,32}\\z", str_sub(text, 0, from)) &&
        memchr(text.ptr + to, ':', t->at - to)) {
        from = 0; /* "Peak output token throughput (tok/s): 160" */
    }
    t->key = str_sub(text, from, to - from);
    t->gap = str_sub(text, to, t->at - to);
}

/* "Latency of step 3: 1.85 ms": the words before the count are also those of what stands behind it. */
static void take_over_key(struct str text, const struct token *before, struct token *t)
{
    struct str gap = str_sub(text, before->end, t->at - before->end);
    if (t->key.len == 0 && before->is_whole && before->key.len > 0 && before->unit.len == 0 &&
        (str_eq_z(gap, ": ") || str_eq_z(gap, " : "))) {
        size_t from = (size_t)(before->gap.ptr - text.ptr);
        t->key = before->key;
        t->gap = str_sub(text, from, t->at - from);
    }
}

/* Whether a blank-separated unit behind the number cannot be its own, so that it is the next one's name: by its name the number
   is no rate, or the number before it has a name as well, and this one's is not of what a rate may be of. before: NULL if it is
   the first. */
static bool has_other_name(struct survey_reader *r, const struct token *before,
                           const struct token *t)
{
    static const char QUANTITIES[] = "loss lr acc accuracy ppl perplexity error norm grad_norm mem "
                                     "memory time dt eta seconds tokens samples images lm_loss";
    static const char RATES[] = "speed rate throughput bandwidth perf performance fps ips tps rank "
                                "gpu device worker node total mean avg average ema cur current";
    char buf[WORD_BYTES];
    struct str word = numbers_last_word(t->key, buf, sizeof(buf));
    if (numbers_is_step_word(word) || numbers_is_epoch_word(word) || is_word_of(word, QUANTITIES) ||
        numbers_unit(r->vocabulary, t->key)) {
        return true;
    }
    return before && before->key.len && !before->unit.len &&
           str_span(word, 0, "abcdefghijklmnopqrstuvwxyz_") == word.len &&
           !numbers_name_has(word, RATES) && !numbers_name_has(word, SURVEY_OTHER_STATISTICS) &&
           !numbers_name_has(word, SURVEY_TRAIN) && !numbers_name_has(word, SURVEY_EVAL);
}

static bool is_of_rate(struct str unit)
{
    return str_find(unit, STR_LIT("/")) > 0 || str_find(unit, STR_LIT("per")) > 0;
}

/* Whether numbers and units follow in turns from a number at `at` on, and a number without a unit is the last: "636 tok/s
   65400". */
static bool ends_in_number(struct survey_reader *r, struct str text, size_t at)
{
    struct str unit = STR_LIT("/");
    while (unit.len > 0 && is_digit(char_at(text, at))) {
        size_t end = end_of(r, NUMBER, text, at);
        unit = unit_after(r, text, end, &end);
        at = str_span(text, end, " ");
    }
    return unit.len == 0;
}

/* "dt=250.5 tok/sec=65,400", "loss 2.5 tok/s 65400": words after a number that are the next one's. */
static void give_unit_away(struct survey_reader *r, struct str text, const struct token *before,
                           struct token *t)
{
    size_t next = t->end;
    char mark = ' ';
    if (t->unit.len == 0 || t->unit.ptr == text.ptr + t->at + t->text.len) {
        return;
    }
    for (; char_at(text, next) == ' ' || char_at(text, next) == '=' || char_at(text, next) == ':';
         next++) {
        mark = text.ptr[next] == ' ' ? mark : text.ptr[next];
    }
    if (mark == '=' || (mark == ':' && is_digit(char_at(text, next)))) {
        t->unit = STR_EMPTY;
        t->end = t->at + t->text.len;
    } else if (mark == ' ' && t->key.len && str_trim(t->gap).len == 0 && is_of_rate(t->unit) &&
               ends_in_number(r, text, next)) {
        bool is_next_ones = t->has_spread || has_other_name(r, before, t);
        t->is_torn = !is_next_ones; /* whose they are cannot be told */
        t->unit = STR_EMPTY;
        t->end = is_next_ones ? t->at + t->text.len : t->end;
    }
}

/* "rate 12 345.5": thousands apart, unless the first counts steps. */
static bool is_grouped_apart(struct str text, const struct token *before, const struct token *t)
{
    char buf[WORD_BYTES];
    struct str word = numbers_last_word(before->key, buf, sizeof(buf));
    return before->kind == TOKEN_NUMBER && before->is_whole && before->text.len <= 3 &&
           before->unit.len == 0 && before->key.len > 0 && t->at == before->end + 1 &&
           text.ptr[before->end] == ' ' && str_span(text, t->at, DIGITS) == t->at + 3 &&
           !numbers_is_step_word(word) && !numbers_is_epoch_word(word);
}

size_t numbers_tokens(struct survey_reader *r, struct str text, struct token *ret_tokens)
{
    size_t n = 0;
    size_t floor = 0;
    for (size_t at = 0; at < text.len && n < SURVEY_TOKENS_MAX;) {
        if (!begins_number(text, at)) {
            at++;
            continue;
        }
        take_token(r, text, at, &ret_tokens[n]);
        find_key(r, text, floor, &ret_tokens[n]);
        give_unit_away(r, text, n ? &ret_tokens[n - 1] : NULL, &ret_tokens[n]);
        if (n > 0) {
            take_over_key(text, &ret_tokens[n - 1], &ret_tokens[n]);
            ret_tokens[n].kind = is_grouped_apart(text, &ret_tokens[n - 1], &ret_tokens[n])
                                     ? TOKEN_OTHER
                                     : ret_tokens[n].kind;
        }
        at = ret_tokens[n].end > at ? ret_tokens[n].end : at + 1;
        floor = at;
        n++;
    }
    return n;
}
