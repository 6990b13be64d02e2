/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a log's recurring numbers is its speed. Each number first gets a kind by the words around it alone: a rate, a time of
   steps, a clock, a column of a table, or none (classify). Then what the other numbers show corrects it: a log with episodes
   counts frames of a game, a column with a counter beside it is a series, a number with a twin has a total or an evaluation, a
   bar that flips between s/it and it/s is one series (join_flipped). What is left is scored, the best comes first, and one that
   is as good as the best makes both rivals, which only the user can settle. A wrong number is worse than none: what the words
   leave open gets a kind that asks, and never a guess. */
#include "base/base.h"

#include "draft/suggest.h"

#include "log/numbers.h"
#include "log/records.h"

#include <math.h>

#define GROWS_MIN   4
#define COUNTER_MIN 3
#define NAME_BYTES  256
#define SAMPLES_FEW 3
#define OF_ONE_LESS 10  /* below the job's own rate */
#define BESIDE_LESS 65  /* below any rate or time of steps, above bare time stamps */
#define ALIKE_FAR   2.0 /* lines without an order that are of one thing */
#define LINES_MIN   3
#define CASES_MAX   64
#define CASES_FAR   1.25

/* Bars of what comes before the first step. Sources: the bars of huggingface_hub, datasets and transformers. */
static bool is_preparing(const struct survey_number *n)
{
    static const char WORDS[] =
        "loading fetching downloading download extracting map filter tokenizer num_proc tokenizing "
        "split saving resolving casting creating checksums converting convert filtering scanning "
        "caching chunks grouping packing flattening preparing prepare preprocessing preprocess "
        "building encoding indexing reading parsing copying copy moving unpacking unzipping "
        "decompressing collecting installing uploading upload hashing verifying shuffling cleaning "
        "sorting counting resizing writing transforming importing exporting statistics vocab "
        "vocabulary features shards files tokenize tokenization syncing receiving";
    int64_t end = str_find(n->example, STR_LIT("%"));
    struct str before =
        str_sub(n->example, 0, end > 0 ? (size_t)end : 0); /* "train: Scanning /d" */
    return numbers_has_word(n->lead, WORDS) || numbers_has_word(before, WORDS);
}

/* Examples a second, in a bar, are those of a data set's map; a bar without a length and without a word or a loss of a training
   may be of anything. */
static bool is_bar_of_data(const struct survey_number *n)
{
    return n->is_bar &&
           (str_starts(n->unit, STR_LIT("example")) ||
            (n->is_open && !numbers_has_word(n->example, "train training loss train_loss epoch")));
}

/* Bytes on a line that says what is transferred. Sources: pip, curl, wget, apt, git. */
static bool is_transfer(const struct survey_number *n)
{
    static const char WORDS[] =
        "eta fetched receiving saved downloaded downloading uploaded uploading objects wget";
    return numbers_has_word(n->example, WORDS);
}

static bool is_preparation(const struct survey_number *n, bool is_of_bytes)
{
    return is_of_bytes ? n->is_bar || is_transfer(n) || is_preparing(n)
                       : n->is_bar && (is_preparing(n) || is_bar_of_data(n));
}

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

static bool is_of_writers(const struct survey_number *n)
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

static bool has_cases(const struct survey_number *n)
{
    return !n->is_bar && !n->head.ptr && !has_order(n) && !is_of_writers(n) &&
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

static bool is_key(const struct survey_number *n)
{
    char buf[NAME_BYTES];
    return numbers_name_has(numbers_snake(n->key, buf, sizeof(buf)), KEYS);
}

/* "Link 3: 25 GB/s", "Size = 1000 bytes": the figure's key or another word of its line counts cases. */
static bool has_key_word(const struct survey_number *n)
{
    char buf[NAME_BYTES];
    return numbers_has_word(numbers_words(n->example, buf, sizeof(buf)), KEYS);
}

static bool is_table(const struct survey_number *n)
{
    char buf[NAME_BYTES];
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
        struct str word = numbers_last_word(first, buf, sizeof(buf));
        return !numbers_is_step_word(word) && !numbers_is_epoch_word(word) && !are_alike(n);
    }
    return are_all_different(n) ||
           (!has_order(n) && !is_of_writers(n) && (!are_alike(n) || has_key_word(n)));
}

static bool is_enough(const struct survey_number *n)
{
    static const char SUMS[] = "total average avg mean overall throughput performance speed rate "
                               "result final ips trained tps per generated";
    struct str text = n->example;
    bool is_listed =
        text.len > 0 && (strchr("#*>$", text.ptr[0]) || str_starts(text, STR_LIT("- ")));
    size_t least = is_of_writers(n) || n->is_bar || has_order(n) ? 1 : LINES_MIN;
    char buf[NAME_BYTES];
    struct str key = numbers_words(n->key, buf, sizeof(buf));
    return !is_listed && (n->n_points >= least || n->head.ptr || numbers_has_word(text, SUMS) ||
                          numbers_has_word(key, SUMS));
}

/* Short names of rates. Sources: fairseq's wps and ups, video's fps, Megatron's tgs, requests' qps. */
static struct str short_rate(struct str word)
{
    static const char *const UNITS[] = {"images/s",  "words/s",  "steps/s", "samples/s",
                                        "samples/s", "tokens/s", "tokens/s"};
    int at = word_at(word, "fps wps ups sps qps tps tgs");
    return at < 0 ? STR_EMPTY : str_of(UNITS[at]);
}

bool suggest_factor(const struct word *unit, double *ret)
{
    static const double FACTORS[] = {1, 1e-3, 1e-6, 60, 3600};
    int at = unit ? word_at(unit->name, "s ms us min h") : -1;
    *ret = at < 0 ? 1 : FACTORS[at];
    return at >= 0;
}

/* The time in "s/it", "sec_per_step", "time (ms)/step": a unit of time, then its object. */
static const struct word *time_over_step(const struct vocabulary *v, struct str text)
{
    char buf[NAME_BYTES];
    int64_t slash = str_find(text, STR_LIT("/"));
    struct str per = slash > 0 ? STR_LIT("/") : STR_LIT("_per_");
    int64_t mid = slash > 0 ? slash : str_find(text, per);
    struct str left = mid > 0 ? str_sub(text, 0, (size_t)mid) : STR_EMPTY;
    struct str over = mid > 0 ? str_sub(text, (size_t)mid + per.len, text.len) : STR_EMPTY;
    size_t from = left.len;
    while (from > 0 && left.ptr[from - 1] != '_' && left.ptr[from - 1] != '(') {
        from--;
    }
    const struct word *unit = words_find(&v->units, str_sub(left, from, left.len));
    return unit && str_eq_z(unit->dimension, "time") &&
                   numbers_is_step_word(numbers_last_word(over, buf, sizeof(buf)))
               ? unit
               : NULL;
}

static const char EPOCHS[] = "epoch epochs";
static const char STEPS[] = "step iter iteration batch";
static const char TIME_WORDS[] = "time timing took duration cost dt latency";

static bool is_step_time_name(struct str name)
{
    char buf[NAME_BYTES];
    bool is_over_step = str_starts(name, STR_LIT("time/")) &&
                        numbers_is_step_word(numbers_last_word(name, buf, sizeof(buf)));
    return is_over_step || is_word_of(name, "time dt sec step iter iteration duration took") ||
           (numbers_name_has(name, TIME_WORDS) && !numbers_name_has(name, EPOCHS) &&
            (numbers_name_has(name, STEPS) || numbers_name_has(name, SURVEY_TRAIN)));
}

static bool is_rate_name(struct str name)
{
    static const char WORDS[] = "throughput ips speed rate";
    static const char NOT[] = "learning drop dropout lr hit error clock memory baud";
    return numbers_name_has(name, WORDS) && !numbers_name_has(name, NOT);
}

/* ---- the meaning of a number ---- */

static void set_time(struct suggestion *s, enum suggestion_kind kind, double factor)
{
    s->kind = kind;
    s->factor = factor;
    s->unit = kind == SUGGEST_TIME ? STR_LIT("s") : STR_EMPTY;
}

/* The time since the start, whatever its name: nearly every value exceeds the one before it. */
static bool only_grows(const struct survey_number *n)
{
    return n->n >= GROWS_MIN && n->n_up * 20 >= (n->n - 1) * 19 && n->last > 2 * n->min;
}

/* From line to line, whatever it begins with. */
static bool only_grows_with(const struct survey_number *n)
{
    return n->n >= SAMPLES_FEW && n->n_up + 1 == n->n;
}

static bool factor_of_seconds(struct str unit, double *ret)
{
    static const char SECONDS[] = "s sec secs second seconds";
    *ret = 1;
    return is_word_of(unit, SECONDS);
}

/* A time without a word for steps: a training's, with its unit; one that stands there once is the run's, one of a line that
   counts epochs alone is the epoch's; one of lines that count nothing is of something unknown. */
static bool is_of_more(const struct survey_number *n, struct str name)
{
    bool is_of_step = numbers_name_has(name, STEPS) || str_find(name, STR_LIT("/")) >= 0;
    bool is_of_training = numbers_name_has(name, SURVEY_TRAIN) && n->unit.len > 0;
    bool is_of_none = n->unit.len > 0 && n->steps.n == 0 && !n->head.ptr;
    return !is_of_step && (is_of_training || n->n == 1 || n->n_epoch_only == n->n || is_of_none);
}

/* "11.4 GFLOPs" of a model's summary: how many, not how many a second. */
static bool is_count_of_operations(struct str printed)
{
    return str_ends(printed, STR_LIT("FLOPs"));
}

/* A time that grows with the steps of its lines: since the beginning. */
static bool is_elapsed(const struct survey_number *n)
{
    const struct survey_steps *steps = &n->steps;
    double factor;
    static const char SINCE[] = "elapsed elapsed_time wall walltime since";
    return !n->is_bar && !n->head.ptr && only_grows_with(n) &&
           numbers_has_word(n->example, SINCE) && steps->n == n->n && !steps->is_changing &&
           steps->last > steps->first && steps->n_back == 0 &&
           (n->is_span || (n->unit.len && factor_of_seconds(n->unit, &factor)));
}

static void set_unit(struct suggestion *s, const struct word *unit, struct str name)
{
    static const char MEANS[] = "avg average mean";
    bool is_mean = numbers_name_has(name, MEANS) && numbers_name_has(name, STEPS);
    double factor = 1;
    if (word_is_rate(unit) && is_count_of_operations(s->number->unit)) {
        s->kind = SUGGEST_NONE;
    } else if (word_is_rate(unit)) {
        s->kind = SUGGEST_RATE;
        s->unit = unit->name;
        s->is_beside = !str_ends(unit->dimension, STR_LIT("rate"));
    } else if (suggest_factor(unit, &factor) && (is_step_time_name(name) || is_mean)) {
        bool is_span = only_grows(s->number) || is_of_more(s->number, name);
        set_time(s, is_span ? SUGGEST_SPAN : SUGGEST_TIME, factor);
    } else if (suggest_factor(unit, &factor) &&
               (numbers_name_has(name, EPOCHS) || numbers_name_has(name, TIME_WORDS) ||
                is_elapsed(s->number))) {
        set_time(s, SUGGEST_SPAN, factor);
    }
}

/* The rate itself in "tokens_per_sec_per_gpu", "img/sec/core", "device/tokens_per_sec" and "throughput/samples_per_sec". */
#define ONE "(?:gpu|device|core|chip|rank|gcd)"
static struct str rate_in(struct survey_reader *r, struct str name, bool *ret_is_of_one)
{
    struct patterns *p = &r->patterns;
    struct str g[3];
    *ret_is_of_one |= patterns_find(p, "^per_" ONE "_", name, NULL, 0); /* "per_gpu_throughput" */
    name.len -= str_ends(name, STR_LIT(")"));
    if (patterns_find(p, "^(.*)(?:_per_|/)" ONE "\\z", name, g, 2)) {
        *ret_is_of_one = true;
        return g[1];
    }
    if (!patterns_find(p, "^((?:(?!_per_).)+)/([^/]*_per_[^/]*)\\z", name, g, 3)) {
        return name;
    }
    *ret_is_of_one |= patterns_find(p, "(?:^|/)" ONE "(?:/|\\z)", g[1], NULL, 0);
    return g[2];
}

/* "train_step_timing in s": the unit, or NULL. */
static const struct word *time_in(struct survey_reader *r, struct str name)
{
    struct str g[3];
    const struct word *unit = patterns_find(&r->patterns, "^(.+?)_in_(.*)\\z", name, g, 3)
                                  ? words_find(&r->vocabulary->units, g[2])
                                  : NULL;
    return unit && str_eq_z(unit->dimension, "time") && is_step_time_name(g[1]) ? unit : NULL;
}

/* "= 8192 GB/s PEAK" of a device's line. */
static bool is_nominal(const struct survey_number *n)
{
    static const char PEAK[] = "peak theoretical nominal";
    int64_t at = n->unit.len ? str_find(n->example, n->unit) : -1;
    struct str after =
        at >= 0 ? str_sub(n->example, (size_t)at + n->unit.len, n->example.len) : STR_EMPTY;
    struct str word;
    after = str_trim(after);
    return str_next(&after, ' ', &word) && numbers_has_word(word, PEAK);
}

/* An evaluation's figures are never the training's; of a language model "eval" is what it generates. */
static bool is_of_eval(const struct survey_number *n, struct str name)
{
    static const char EVALS[] = "eval val valid validation evaluation";
    bool is_of_tokens = str_starts(n->unit, STR_LIT("tok"));
    return (!is_of_tokens && (n->is_eval || numbers_name_has(name, EVALS))) ||
           (n->n_before_scores == n->n && n->n > 1) ||
           (n->is_bar && n->n_before_eval >= (n->steps.n_full ? n->steps.n_full : n->n));
}

/* The first kind that holds: what the words exclude, then what the number's form says (a prefix, a moment or a span, of which it
   has one at most), then a unit, printed or in its name, then its name alone. */
static void classify_words(struct survey_reader *r, struct suggestion *s)
{
    const struct vocabulary *v = r->vocabulary;
    const struct survey_number *n = s->number;
    char buf[NAME_BYTES];
    char last_buf[NAME_BYTES];
    char unit_buf[NAME_BYTES];
    struct str name = numbers_snake(n->key, buf, sizeof(buf));
    struct str last = numbers_last_word(name, last_buf, sizeof(last_buf));
    struct str printed = numbers_snake(n->unit, unit_buf, sizeof(unit_buf));
    const struct word *unit = numbers_unit(v, numbers_unit_of_one(n->unit, &s->is_of_one));
    const struct word *time = time_over_step(v, printed);
    struct str rate = rate_in(r, name, &s->is_of_one);
    struct str metric;
    double factor = 1;
    time = time ? time : time_over_step(v, name);
    time = time ? time : time_in(r, name);
    if ((numbers_name_has(name, SURVEY_OTHER_STATISTICS) && !n->is_cell) || is_nominal(n) ||
        is_of_eval(n, name)) {
        s->kind = SUGGEST_NONE;
    } else if (n->si) {
        s->kind = SUGGEST_SCALED;
    } else if (n->is_clock) {
        bool are_steps =
            n->steps.n == n->n && !n->steps.is_changing && n->steps.last > n->steps.first;
        s->kind = are_steps ? SUGGEST_CLOCK : SUGGEST_NONE;
    } else if (n->is_span) {
        s->kind = SUGGEST_SPAN;
    } else if (time && suggest_factor(time, &factor)) {
        set_time(s, SUGGEST_TIME, factor);
    } else if (unit && unit->name.len) {
        set_unit(s, unit, name);
    } else if (short_rate(last).len) {
        s->kind = SUGGEST_RATE;
        s->unit = short_rate(last);
    } else if (!str_eq_z(name, "throughput") && !str_eq_z(name, "ips") &&
               records_figure(v, rate, &metric, &unit)) {
        bool is_time = suggest_factor(unit, &factor);
        if (!is_time) {
            set_unit(s, unit, name);
        } else if (str_eq_z(metric, "step_time")) {
            set_time(s, SUGGEST_TIME, factor);
        }
    } else if (is_rate_name(name)) {
        s->kind = SUGGEST_RATE_NO_UNIT;
    } else if (is_step_time_name(name)) {
        set_time(s, is_of_more(n, name) && n->n > 1 ? SUGGEST_SPAN : SUGGEST_TIME_NO_UNIT, 1);
    }
}

static bool is_of_items(const struct suggestion *s)
{
    return s->kind == SUGGEST_RATE && !str_eq_z(s->unit, "steps/s");
}

/* Of a rate: whether it is of one device. */
static void note_whose(struct suggestion *s)
{
    if (is_of_items(s)) {
        s->is_of_one = s->is_of_one || s->number->is_of_ranks ||
                       (s->number->steps.n == 0 && is_of_writers(s->number));
    }
}

static void classify(struct survey_reader *r, struct suggestion *s)
{
    classify_words(r, s);
    bool is_figure = s->kind == SUGGEST_RATE || s->kind == SUGGEST_TIME;
    if (is_figure && is_preparation(s->number, str_ends(s->unit, STR_LIT("B/s")))) {
        s->kind = SUGGEST_PREPARING;
    } else if (is_figure && is_table(s->number)) {
        s->kind = SUGGEST_TABLE;
    } else if (is_figure && !is_enough(s->number)) {
        s->kind = SUGGEST_NONE;
    } else if (s->kind == SUGGEST_SPAN && is_elapsed(s->number)) {
        s->kind = SUGGEST_ELAPSED;
    } else if (s->kind == SUGGEST_RATE && s->number->steps.n == 0 &&
               str_starts(s->number->unit, STR_LIT("item"))) {
        s->kind = SUGGEST_RATE_NO_UNIT; /* of files, rows, requests */
        s->unit = STR_EMPTY;
    }
    note_whose(s);
}

const struct kind_row SUGGEST_KINDS[] = {
    [SUGGEST_RATE] = {100, "a rate", "rate", "rate"},
    [SUGGEST_TABLE] = {85, "of several cases: a table", NULL, NULL},
    [SUGGEST_TIME] = {70, "time of a step", "step_time", "step_time"},
    [SUGGEST_RATE_NO_UNIT] = {60, "a rate of unknown items: --unit", NULL, NULL},
    [SUGGEST_TIME_NO_UNIT] = {40, "a step's time by its name, in an unknown unit: --unit", NULL,
                              NULL},
    [SUGGEST_ELAPSED] = {35, "the time since the beginning, at each step", "clock", "clock"},
    [SUGGEST_CLOCK] = {30, "moments of the steps", "clock", "clock"},
    [SUGGEST_SCALED] = {3, "in billions or more: not read", NULL, NULL},
    [SUGGEST_SPAN] = {2, "a span of time; its content is unknown", NULL, NULL},
    [SUGGEST_PREPARING] = {2, "of what comes before the steps", NULL, NULL},
    [SUGGEST_NONE] = {1, "", NULL, NULL}};

/* What its kind is worth, less what speaks against this number as the training's own figure. */
static int score_of(const struct suggestion *s)
{
    static const char SIDE_FIGURES[] =
        "data load eval val test valid loader validation evaluation reader backward forward "
        "optimizer optim io inference eta total elapsed remaining sanity predict";
    static const char PROMPT[] =
        "prompt prefill input total request"; /* what is generated comes first */
    static const char SMOOTH[] = "avg mean average running global";
    static const char SUMS[] = "mean avg average throughput overall";
    const struct survey_number *n = s->number;
    char buf[NAME_BYTES];
    char lead_buf[NAME_BYTES];
    struct str name = numbers_snake(n->key, buf, sizeof(buf));
    struct str lead = numbers_snake(n->lead, lead_buf, sizeof(lead_buf));
    bool is_summary = n->n == 1 && numbers_name_has(name, SUMS);
    bool is_lone = !n->is_bar && !is_summary;
    bool is_rate = s->kind == SUGGEST_RATE || s->kind == SUGGEST_TABLE;
    bool is_of_steps = is_rate && !s->is_beside && str_eq_z(s->unit, "steps/s");
    bool is_figure = s->kind < SUGGEST_SCALED; /* of others nothing more is asked */
    const struct {
        bool holds;
        int less;
    } against[] = {
        {is_rate && s->is_beside, BESIDE_LESS},
        {s->kind == SUGGEST_TABLE && s->is_beside, 10},
        {is_of_steps, n->is_bar ? 42 : 20}, /* samples say more */
        {s->is_of_one, OF_ONE_LESS},
        {is_figure && (n->is_eval || numbers_name_has(name, SIDE_FIGURES) ||
                       numbers_name_has(lead, SIDE_FIGURES)),
         50},
        {is_figure && numbers_name_has(name, SMOOTH) && !is_summary, 5},
        {is_figure && numbers_name_has(name, PROMPT), 10},
        {is_figure && n->n < SAMPLES_FEW && is_lone, 15},
        {is_figure && n->n == 1 && is_lone, 10},
        {is_figure && only_grows_with(n) && n->n > SAMPLES_FEW && n->last > 2 * n->first, 30},
        {is_figure && n->n > 1 && n->steps.n == n->n && n->steps.first == n->steps.last,
         20}, /* it stands */
    };
    int score = SUGGEST_KINDS[s->kind].score;
    for (size_t idx = 0; idx < ARRAY_LEN(against); idx++) {
        score -= against[idx].holds ? against[idx].less : 0;
    }
    return score;
}

static int compare(const void *a, const void *b)
{
    const struct suggestion *x = a;
    const struct suggestion *y = b;
    const struct survey_number *nx = x->number;
    const struct survey_number *ny = y->number;
    if (x->score != y->score) {
        return y->score - x->score;
    }
    if (nx->steps.total != ny->steps.total && nx->is_bar && ny->is_bar) {
        return nx->steps.total < ny->steps.total ? 1 : -1;
    }
    if (x->kind == SUGGEST_TIME || x->kind == SUGGEST_TIME_NO_UNIT) {
        /* A whole step takes longer than its parts. */
        double longer = y->factor * ny->last - x->factor * nx->last;
        if (longer < 0 || longer > 0) {
            return longer > 0 ? 1 : -1;
        }
    }
    if (nx->n != ny->n) {
        return nx->n < ny->n ? 1 : -1;
    }
    return nx->first_line < ny->first_line ? -1 : nx->first_line > ny->first_line;
}

/* A unit given by the user replaces one that is not printed. */
static int take_unit(struct suggestions *list, const struct vocabulary *v, struct str unit,
                     struct err *err)
{
    const struct word *word = words_find(&v->units, unit);
    double factor = 1;
    bool is_time = suggest_factor(word, &factor);
    bool is_taken = false;
    bool is_rate = word && word_is_rate(word);
    if (!is_time && !is_rate) {
        return err_set(err, ERR_USAGE,
                       "--unit %.40s: expected a unit of a rate (images/s, steps/s, GB/s, ...) "
                       "or of time (s, ms)",
                       unit.ptr);
    }
    for (size_t idx = 0; idx < list->n; idx++) {
        struct suggestion *s = &list->items[idx];
        is_taken = is_taken || (is_rate && s->kind == SUGGEST_RATE_NO_UNIT) ||
                   (is_time && s->kind == SUGGEST_TIME_NO_UNIT);
        if (is_rate && s->kind == SUGGEST_RATE_NO_UNIT) {
            s->kind = SUGGEST_RATE;
            s->unit = word->name;
            note_whose(s);
        } else if (is_time && s->kind == SUGGEST_TIME_NO_UNIT) {
            set_time(s, SUGGEST_TIME, factor);
        }
        s->score = score_of(s);
    }
    qsort(list->items, list->n, sizeof(list->items[0]), compare);
    return is_taken ? 0
                    : err_set(err, ERR_USAGE,
                              "--unit %.40s: no number without a printed unit has a name that fits "
                              "it; name one with --pattern",
                              unit.ptr);
}

static bool has_words_of(const struct survey_number *n, const struct survey_number *other)
{
    return str_eq(other->key, n->key) && str_eq(other->unit, n->unit);
}

/* Whether an evaluation's lines have the same words: the pattern then leaves them out. */
static bool has_eval_twin(const struct survey_number *n, const struct survey_number *all,
                          size_t n_all)
{
    for (size_t idx = 0; !n->is_eval && idx < n_all; idx++) {
        if (all[idx].is_eval && has_words_of(n, &all[idx])) {
            return true;
        }
    }
    return false;
}

/* Whether another loop's bar, of another length, has the same words. */
static bool has_bar_twin(const struct survey_number *n, const struct survey_number *all,
                         size_t n_all)
{
    for (size_t idx = 0; n->is_bar && idx < n_all; idx++) {
        if (all[idx].is_bar && has_words_of(n, &all[idx]) && str_eq(all[idx].lead, n->lead) &&
            all[idx].steps.total != n->steps.total) {
            return true;
        }
    }
    return false;
}

/* "s/it" for "it/s": tqdm prints which of both is over 1. The number that has the bar's end stands for both. */
static void join_flipped(const struct survey_number *numbers, struct suggestions *list)
{
    char buf[NAME_BYTES];
    for (size_t idx = 0; idx < list->n; idx++) {
        struct suggestion *s = &list->items[idx];
        for (size_t at = 0; s->number->is_bar && at < list->n; at++) {
            const struct survey_number *other = &numbers[at];
            if (other->is_bar && other->steps.total == s->number->steps.total &&
                str_eq(other->lead, s->number->lead) && str_eq(other->key, s->number->key) &&
                str_eq(other->unit, suggest_flip(s->number->unit, buf, sizeof(buf)))) {
                s->is_flipped = true;
                s->kind = other->steps.last > s->number->steps.last ? SUGGEST_NONE : s->kind;
            }
        }
    }
}

/* Whether frames are those of a game that is played: not images. Sources: the tables of Stable-Baselines3 and of RLlib. */
static bool has_episodes(const struct survey_number *all, size_t n_all)
{
    static const char WORDS[] = "timesteps episode episodes rew reward";
    char buf[NAME_BYTES];
    for (size_t idx = 0; idx < n_all; idx++) {
        if (numbers_name_has(numbers_snake(all[idx].key, buf, sizeof(buf)), WORDS)) {
            return true;
        }
    }
    return false;
}

/* Another number of the same lines, whole and without a unit, that counts them ("Processed 1000 documents", 2000, ...) or, if
   is_case, tells cases apart: one that goes up and down, or grows more each time, as sizes do. */
static bool has_counter(const struct survey_number *n, const struct survey_number *all,
                        size_t n_all, bool is_case)
{
    for (size_t idx = 0; n->unit.len && idx < n_all; idx++) {
        const struct survey_number *other = &all[idx];
        bool is_whole = other != n && other->n_points == n->n_points &&
                        n->n_points >= COUNTER_MIN && other->key.len > 0 && other->unit.len == 0;
        size_t n_up = 0;
        size_t n_faster = 0;
        for (size_t at = 0; is_whole && at < n->n_points; at++) {
            const struct survey_point *p = &other->points[at];
            is_whole = p->line == n->points[at].line && floor(p->value) >= p->value;
            n_up += at > 0 && p->value > p[-1].value;
            n_faster += at > 1 && p->value - p[-1].value > p[-1].value - p[-2].value;
        }
        bool are_sizes = n_up + 1 < n->n_points || n_faster + 2 == n->n_points;
        bool is_alike = other->max <= other->min;
        if (is_whole && (is_case ? are_sizes && !is_alike
                                 : n_up + 1 == n->n_points && !are_sizes && !is_key(other))) {
            return true;
        }
    }
    return false;
}

/* The words that make this number's key another number's, which the pattern then leaves out. */
static struct str longer_key(const struct survey_number *n, const struct survey_number *all,
                             size_t n_all)
{
    for (size_t idx = 0; n->key.len > 0 && idx < n_all; idx++) {
        struct str key = all[idx].key;
        size_t more = key.len > n->key.len ? key.len - n->key.len : 0;
        if (more > 0 && str_ends(key, n->key) && key.ptr[more - 1] == ' ' && !all[idx].head.ptr) {
            return str_sub(key, 0, more);
        }
    }
    return STR_EMPTY;
}

/* Two summaries that could be meant alike ("baseline throughput", "optimized throughput") are undecided: neither stands for the
   log, which is what SUGGEST_TABLE says of the cases of a table. */
static void mark_rivals(struct suggestions *list)
{
    struct suggestion *first = list->items;
    struct suggestion *second = first + 1;
    bool are_rivals =
        list->n > 1 && first->score == second->score && first->kind == SUGGEST_RATE &&
        second->kind == SUGGEST_RATE && first->number->n == 1 && second->number->n == 1 &&
        str_eq(first->unit, second->unit) &&
        (first->number->last < second->number->last || first->number->last > second->number->last);
    if (are_rivals) {
        first->kind = second->kind = SUGGEST_TABLE;
    }
}

int suggest_rank(struct arena *arena, const struct survey *survey, const struct vocabulary *v,
                 struct str unit, struct suggestions *ret, struct err *err)
{
    const struct survey_number *numbers;
    struct suggestions list = {.n = survey_numbers(survey, &numbers)};
    struct survey_reader reader = {.vocabulary = v};
    bool is_of_a_game = has_episodes(numbers, list.n);
    list.items = arena_array(arena, struct suggestion, list.n + 1);
    for (size_t idx = 0; idx < list.n; idx++) {
        struct suggestion *s = &list.items[idx];
        *s = (struct suggestion){.number = &numbers[idx], .kind = SUGGEST_NONE, .factor = 1};
        classify(&reader, s);
        if (is_of_a_game && s->kind == SUGGEST_RATE && str_eq_z(s->unit, "images/s")) {
            s->kind = SUGGEST_RATE_NO_UNIT;
            s->unit = STR_EMPTY;
        }
        if (s->kind == SUGGEST_TABLE && has_counter(&numbers[idx], numbers, list.n, false)) {
            s->kind = is_enough(&numbers[idx]) ? SUGGEST_RATE : SUGGEST_NONE;
        } else if (s->kind == SUGGEST_RATE && has_cases(&numbers[idx]) &&
                   has_counter(&numbers[idx], numbers, list.n, true)) {
            s->kind = SUGGEST_TABLE;
        }
        s->total = has_bar_twin(&numbers[idx], numbers, list.n) ? numbers[idx].steps.total : 0;
        s->not_after = longer_key(&numbers[idx], numbers, list.n);
        s->has_eval = has_eval_twin(&numbers[idx], numbers, list.n);
    }
    patterns_release(&reader.patterns);
    join_flipped(numbers, &list);
    for (size_t idx = 0; idx < list.n; idx++) {
        list.items[idx].score = score_of(&list.items[idx]);
    }
    qsort(list.items, list.n, sizeof(list.items[0]), compare);
    mark_rivals(&list);
    if (unit.len && take_unit(&list, v, unit, err) < 0) {
        return -1;
    }
    *ret = list;
    return 0;
}

const struct suggestion *suggest_best(const struct suggestions *list)
{
    const struct suggestion *first = list->n ? &list->items[0] : NULL;
    bool is_ready = first && SUGGEST_KINDS[first->kind].series;
    return is_ready ? first : NULL;
}

const char *suggest_says(const struct suggestion *s)
{
    return s->kind != SUGGEST_RATE || !s->is_of_one ? SUGGEST_KINDS[s->kind].says
           : s->number->is_of_ranks                 ? "a rate that each rank prints"
                                                    : "a rate of one device";
}
