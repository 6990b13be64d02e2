/* SPDX-License-Identifier: Apache-2.0 */
/* A number of the log plays a part by the words of its name: the rate, the count or the time of some objects. */
#include "base/base.h"

#include "log/arithmetic.h"

#include "log/numbers.h"

#include <math.h>

#define NEAR       0.03 /* printed numbers are rounded: within this they confirm each other, */
#define FAR        0.1  /* and farther apart they contradict */
#define BAR_STEPS  20   /* steps and seconds of a bar that is checked */
#define BAR_FAR    1.5
#define NAME_BYTES 96
#define WAYS_MAX   4

enum part { PART_NONE, PART_RATE, PART_COUNT, PART_TIME, PART_EPOCHS, PART_BATCH, PART_RESUMED };
enum object {
    OF_NOTHING,
    OF_OUTPUT,
    OF_INPUT,
    OF_TOKENS,
    OF_REQUESTS,
    OF_SAMPLES,
    OF_STEPS,
    OBJECTS
};

static const char *const OBJECT_NAMES[OBJECTS] = {
    [OF_NOTHING] = "items", [OF_OUTPUT] = "output tokens", [OF_INPUT] = "input tokens",
    [OF_TOKENS] = "tokens", [OF_REQUESTS] = "requests",    [OF_SAMPLES] = "samples",
    [OF_STEPS] = "steps"};

/* In this order: the first whose word is in the name decides. */
static const struct {
    enum object object;
    const char *words;
} OBJECT_WORDS[] = {
    {OF_OUTPUT, "output generated generation decode gen"},
    {OF_INPUT, "input prompt prefill"},
    {OF_TOKENS, "tokens token tok"},
    {OF_REQUESTS, "requests request req"},
    {OF_SAMPLES, "samples sample examples images sequences"},
    {OF_STEPS, "steps step iterations"},
};

static const char RATES[] = "throughput rate speed per sec";
static const char TIMES[] = "duration runtime elapsed time";
/* Other statistics, and parts of the whole. */
static const char OTHERS[] =
    "mean avg eval val test failed concurrent goodput instantaneous micro device gpu trainable";

struct role_of_name {
    enum part part;
    enum object object;
};

/* The words before the number on its first line: all, if no other number or quoted name is among them. */
static struct str words_before(const struct survey_number *n)
{
    int64_t at = n->key.len ? str_find(n->example, n->key) : -1;
    size_t from = at > 0 ? (size_t)at : 0;
    size_t to = from + n->key.len;
    while (at > 0 && from > 0 && !is_digit(n->example.ptr[from - 1]) &&
           !strchr("'\"{[=:", n->example.ptr[from - 1])) {
        from--;
    }
    return at >= 0 ? str_sub(n->example, from, to - from) : n->key;
}

static enum object object_of(struct str words)
{
    for (size_t idx = 0; idx < ARRAY_LEN(OBJECT_WORDS); idx++) {
        if (numbers_has_word(words, OBJECT_WORDS[idx].words)) {
            return OBJECT_WORDS[idx].object;
        }
    }
    return OF_NOTHING;
}

static struct role_of_name role_of_number(const struct survey_number *n)
{
    static const char EPOCHS[] = "epochs epoch";
    static const char BATCH[] = "batch";
    char buf[NAME_BYTES];
    struct str name = numbers_words(words_before(n), buf, sizeof(buf));
    bool is_whole = numbers_has_word(name, "total num number global processed");
    struct role_of_name m = {PART_NONE, OF_NOTHING};
    char unit[NAME_BYTES]; /* "Throughput: 200.0 samples/s" */
    m.object = object_of(name);
    m.object =
        m.object == OF_NOTHING ? object_of(numbers_words(n->unit, unit, sizeof(unit))) : m.object;
    bool is_per_s = str_find(n->unit, STR_LIT("/s")) >= 0 || str_find(n->key, STR_LIT("/s")) >= 0;
    if (numbers_has_word(n->example, SURVEY_RESUMES) && m.object == OF_STEPS) {
        m.part = PART_RESUMED;
    } else if (numbers_has_word(name, OTHERS) || numbers_has_word(name, SURVEY_OTHER_STATISTICS)) {
        return m;
    } else if (numbers_has_word(name, BATCH) && !numbers_has_word(name, RATES)) {
        m.part = is_whole ? PART_BATCH : PART_NONE;
    } else if (numbers_has_word(name, RATES) || is_per_s) {
        m.part = PART_RATE;
    } else if (numbers_has_word(name, TIMES) && !str_eq_z(n->unit, "ms") &&
               str_find(n->key, STR_LIT("(ms)")) < 0) {
        m.part = PART_TIME;
    } else if (numbers_has_word(name, EPOCHS)) {
        m.part = is_whole ? PART_EPOCHS : PART_NONE;
    } else if (m.object != OF_NOTHING && floor(n->last) >= n->last) {
        m.part = is_whole || m.object == OF_REQUESTS ? PART_COUNT : PART_NONE;
    }
    return m;
}

/* The one number of that meaning, stated once or always alike; NULL: none, or several. Of times the one nearest before or after
   `line`. */
static const struct survey_number *find(const struct survey *survey, enum part part,
                                        enum object object, int64_t line)
{
    const struct survey_number *all;
    const struct survey_number *found = NULL;
    size_t n = survey_numbers(survey, &all);
    for (size_t idx = 0; idx < n; idx++) {
        struct role_of_name m = role_of_number(&all[idx]);
        bool is_meant = m.part == part && (part == PART_TIME || m.object == object);
        bool is_one = all[idx].n == 1 && !all[idx].is_bar && !all[idx].is_span && all[idx].last > 0;
        if (is_meant && is_one &&
            (!found || llabs(all[idx].first_line - line) < llabs(found->first_line - line))) {
            found = &all[idx];
        }
    }
    return found;
}

static double last_of(const struct survey_number *n, double otherwise)
{
    return n ? n->last : otherwise;
}

/* One way to count what the figure's time holds. */
struct way {
    double count;
    const struct survey_number *by;
};

static size_t find_ways(const struct survey *survey, enum object object, int64_t line,
                        struct way *ways)
{
    const struct survey_number *count = find(survey, PART_COUNT, object, line);
    const struct survey_number *steps = find(survey, PART_COUNT, OF_STEPS, line);
    const struct survey_number *resumed = find(survey, PART_RESUMED, OF_STEPS, line);
    const struct survey_number *batch = find(survey, PART_BATCH, OF_NOTHING, line);
    const struct survey_number *epochs = find(survey, PART_EPOCHS, OF_NOTHING, line);
    double own = last_of(steps, 0) - last_of(resumed, 0);
    size_t n = 0;
    if (object == OF_STEPS && steps) {
        ways[n++] = (struct way){own, steps};
    }
    if (object == OF_SAMPLES && steps && batch) {
        ways[n++] = (struct way){own * batch->last, steps};
    }
    if (object != OF_STEPS && count && !resumed) {
        ways[n++] =
            (struct way){count->last * (object == OF_SAMPLES ? last_of(epochs, 1) : 1), count};
    }
    const struct survey_number *in = find(survey, PART_COUNT, OF_INPUT, line);
    const struct survey_number *out = find(survey, PART_COUNT, OF_OUTPUT, line);
    if (object == OF_TOKENS && in && out) {
        ways[n++] = (struct way){in->last + out->last, out};
    }
    return n;
}

/* The number that stands as `value` on the line, or one that its unit makes of it. */
static const struct survey_number *figure_at(const struct survey *survey, double value,
                                             int64_t line)
{
    const struct survey_number *all;
    size_t n = survey_numbers(survey, &all);
    for (size_t idx = 0; idx < n; idx++) {
        for (size_t at = 0; at < all[idx].n_points; at++) {
            const struct survey_point *p = &all[idx].points[at];
            if (p->line == line && fabs(p->value - value) <= 1e-9 * fabs(value) &&
                role_of_number(&all[idx]).part == PART_RATE) {
                return &all[idx];
            }
        }
    }
    return NULL;
}

static const struct survey_number *bar_at(const struct survey *survey, double value, int64_t line,
                                          const struct survey_point **ret_point)
{
    const struct survey_number *all;
    size_t n = survey_numbers(survey, &all);
    for (size_t idx = 0; idx < n; idx++) {
        const struct survey_point *p =
            all[idx].n_points ? &all[idx].points[all[idx].n_points - 1] : NULL;
        if (p && all[idx].is_bar && all[idx].unit.len && p->line == line &&
            fabs(p->value - value) <= 1e-9 * fabs(value)) {
            *ret_point = p;
            return &all[idx];
        }
    }
    return NULL;
}

/* A bar that was drawn last: its steps over its time are its rate, which may be smoothed. */
static struct arithmetic check_bar(struct arena *arena, const struct survey_number *n,
                                   const struct survey_point *p)
{
    bool is_time = str_starts(n->unit, STR_LIT("s/")) || str_starts(n->unit, STR_LIT("ms/"));
    struct arithmetic found = {ARITHMETIC_SILENT, STR_EMPTY};
    double follows = is_time ? p->elapsed_s / (double)p->step : (double)p->step / p->elapsed_s;
    if (p->step < BAR_STEPS || !(p->elapsed_s >= BAR_STEPS) ||
        str_starts(n->unit, STR_LIT("ms/"))) {
        return found;
    }
    if (follows > BAR_FAR * p->value || p->value > BAR_FAR * follows) {
        found.state = ARITHMETIC_CONTRADICTS;
        found.said = str_printf(arena,
                                "%" PRId64 " steps in %.6g s (line %" PRId64
                                ") are %.4g, and the same line says %.6g",
                                p->step, p->elapsed_s, p->line, follows, p->value);
    }
    return found;
}

/* The bar that ran as long as the figure's time, if it is first drawn when a fifth of its steps are
   made and a tenth of the time has not passed: the steps before were made in another run. */
static const struct survey_point *find_resumed(const struct survey *survey, double time_s)
{
    const struct survey_number *all;
    size_t n = survey_numbers(survey, &all);
    for (size_t idx = 0; idx < n; idx++) {
        const struct survey_point *first = all[idx].points;
        const struct survey_point *last = first + all[idx].n_points - (all[idx].n_points > 0);
        if (all[idx].is_bar && all[idx].n_points > 1 && first->step >= BAR_STEPS &&
            5 * first->step > last->step && 10 * first->elapsed_s < last->elapsed_s &&
            fabs(last->elapsed_s - time_s) <= FAR * time_s) {
            return first;
        }
    }
    return NULL;
}

struct arithmetic arithmetic_check(struct arena *arena, const struct survey *survey, double value,
                                   int64_t line)
{
    const struct survey_point *bar = NULL;
    const struct survey_number *of_bar = bar_at(survey, value, line, &bar);
    if (of_bar) {
        return check_bar(arena, of_bar, bar);
    }
    const struct survey_number *figure = figure_at(survey, value, line);
    enum object object = figure ? role_of_number(figure).object : OF_NOTHING;
    const struct survey_number *time = figure ? find(survey, PART_TIME, OF_NOTHING, line) : NULL;
    struct arithmetic found = {ARITHMETIC_SILENT, STR_EMPTY};
    const struct survey_point *resumed = time ? find_resumed(survey, time->last) : NULL;
    if (resumed) {
        found.state = ARITHMETIC_CONTRADICTS;
        found.said =
            str_printf(arena, "line %" PRId64 ": the bar begins at step %" PRId64 " of its run",
                       resumed->line, resumed->step);
        return found;
    }
    struct way ways[WAYS_MAX];
    size_t n = time && object != OF_NOTHING ? find_ways(survey, object, line, ways) : 0;
    for (size_t idx = 0; idx < n && found.state != ARITHMETIC_CONFIRMS; idx++) {
        double follows = ways[idx].count / time->last;
        bool holds = fabs(follows - value) <= NEAR * value;
        bool is_far = fabs(follows - value) > FAR * (follows < value ? follows : value);
        found.state = holds    ? ARITHMETIC_CONFIRMS
                      : is_far ? ARITHMETIC_CONTRADICTS
                               : ARITHMETIC_SILENT;
        found.said = str_printf(arena,
                                "%.12g %s (line %" PRId64 ") in %.12g s (line %" PRId64
                                ") are %.6g a second, and line %" PRId64 " says %.6g",
                                ways[idx].count, OBJECT_NAMES[object], ways[idx].by->first_line,
                                time->last, time->first_line, follows, line, value);
    }
    return found;
}

bool arithmetic_is_likely(struct str text)
{
    static const char *const WORDS[] = {"uration (s)", "_runtime", "lapsed",    "otal time",
                                        "otal_time",   "uration:", "uration_s", NULL};
    for (const char *const *word = WORDS; *word; word++) {
        if (str_find(text, str_of(*word)) >= 0) {
            return true;
        }
    }
    return false;
}
