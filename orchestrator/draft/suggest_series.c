/* SPDX-License-Identifier: Apache-2.0 */
/* Which numbers are of a series, and which are of a table. */
#include "base/base.h"

#include "draft/suggest.h"

#include "log/numbers.h"

#include <math.h>

#define ALIKE_FAR   2.0 /* lines without an order that are of one thing */
#define LINES_MIN   3
#define CASES_MAX   64
#define CASES_FAR   1.25
#define RUNNING_MIN 4
#define RUNNING_FAR 2.0 /* from the first to the last */
#define WORD_BYTES  32
#define WORDS_BYTES 256

/* Words for something that a case is told from another by, beside the figure. */
static const char KEYS[] =
    "size bytes link kernel threads nodes channel len length message clients "
    "seqlen bs";

/* Steps or moments that go on, from one line of a writer to the next. */
static bool has_order(const struct survey_number *n)
{
    size_t on = 0;
    for (size_t idx = 1; idx < n->n_points; idx++) {
        const struct survey_point *p = &n->points[idx - 1];
        const struct survey_point *q = &n->points[idx];
        on += q->step > p->step || q->epoch > p->epoch || q->time_s > p->time_s;
    }
    return on > 0;
}

bool suggest_is_of_writers(const struct survey_number *n)
{
    bool differs = false;
    for (size_t idx = 0; idx < n->n_points; idx++) {
        if (n->points[idx].rank < 0) {
            return false;
        }
        differs = differs || n->points[idx].rank != n->points[0].rank;
    }
    return differs;
}

/* Lines without an order are of one thing if they have the same words and about the same value. */
static bool are_alike(const struct survey_number *n)
{
    size_t near = 0;
    for (size_t idx = 1; idx < n->n_points; idx++) {
        if (n->points[idx].shape != n->points[0].shape) {
            return false;
        }
    }
    for (size_t idx = 0; idx < n->n_points; idx++) {
        double value = n->points[idx].value;
        near += value <= ALIKE_FAR * n->points[n->n_points / 2].value &&
                n->points[n->n_points / 2].value <= ALIKE_FAR * value;
    }
    return 4 * near >= 3 * n->n_points;
}

bool suggest_has_cases(const struct survey_number *n)
{
    return !n->is_bar && !n->head.ptr && !has_order(n) && !suggest_is_of_writers(n) &&
           n->max > CASES_FAR * n->min;
}

/* Each line in words of its own: phases, tests. */
static bool are_all_different(const struct survey_number *n)
{
    size_t few = n->n_points < CASES_MAX ? n->n_points : CASES_MAX;
    for (size_t idx = 0; idx < few; idx++) {
        for (size_t other = 0; other < idx; other++) {
            if (n->points[idx].shape == n->points[other].shape) {
                return false;
            }
        }
    }
    return true;
}

bool suggest_is_key(const struct survey_number *n)
{
    char buf[WORDS_BYTES];
    return survey_name_has(survey_snake(n->key, buf, sizeof(buf)), KEYS);
}

/* "Link 3: 25 GB/s", "Size = 1000 bytes": the figure's key or another word of its line counts cases. */
static bool has_key_word(const struct survey_number *n)
{
    char buf[WORDS_BYTES];
    return survey_has_word(survey_words(n->example, buf, sizeof(buf)), KEYS);
}

bool suggest_is_table(const struct survey_number *n)
{
    char buf[WORD_BYTES];
    if (n->is_pair || n->is_cell) {
        return true;
    }
    if (n->n_points < 2 || n->is_bar || n->is_clock) {
        return false;
    }
    if (n->head.ptr) {
        struct str head = n->head;
        struct str first;
        (void)str_next(&head, ' ', &first);
        struct str word = survey_last_word(first, buf, sizeof(buf));
        return !survey_is_step_word(word) && !survey_is_epoch_word(word) && !are_alike(n);
    }
    return are_all_different(n) ||
           (!has_order(n) && !suggest_is_of_writers(n) && (!are_alike(n) || has_key_word(n)));
}

bool suggest_is_enough(const struct survey_number *n)
{
    static const char SUMS[] = "total average avg mean overall throughput performance speed rate "
                               "result final ips trained tps per generated";
    struct str text = n->example;
    bool is_listed =
        text.len > 0 && (strchr("#*>$", text.ptr[0]) || str_starts(text, STR_LIT("- ")));
    size_t least = suggest_is_of_writers(n) || n->is_bar || has_order(n) ? 1 : LINES_MIN;
    char buf[WORDS_BYTES];
    struct str key = survey_words(n->key, buf, sizeof(buf));
    return !is_listed && (n->n_points >= least || n->head.ptr || survey_has_word(text, SUMS) ||
                          survey_has_word(key, SUMS));
}

bool suggest_is_running(const struct survey_number *n)
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
