/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "judge/judgement.h"

#include "log/engine.h"

const char *const LOG_STATE_NAMES[5] = {"whole", "incomplete", "unreadable", "no_rule", "absent"};

/* Of several runs the rule takes one. If no run has the primary figure, the rule may read another: then the run is judged, not
   the figure that is absent. */
static bool takes_run(const struct measurement *m, const struct rule *rule, enum demand demand)
{
    const struct series *series = rule ? measurement_series(m, rule->series) : NULL;
    if (!rule || demand == DEMAND_WHOLE || demand == DEMAND_RAN || m->verdict == PARSE_NAN) {
        return false;
    }
    if (demand == DEMAND_ANY) {
        return m->n_runs > 1 || m->verdict == PARSE_NO_METRIC;
    }
    return m->verdict == PARSE_NO_METRIC ? series && series->n > 0
                                         : m->verdict == PARSE_AMBIGUOUS &&
                                               m->causes.n[CAUSE_RUNS] > 0 && rule->run != RUN_ONLY;
}

static void take_run(struct arena *arena, const struct measurement *m, const struct rule *rule,
                     struct judgement *j)
{
    bool is_first = rule->run == RUN_FIRST;
    j->verdict = is_first ? m->first_run : m->last_run;
    j->why = j->verdict == PARSE_OK ? STR_EMPTY
             : m->verdict == PARSE_NO_METRIC
                 ? STR_LIT("the run did not end as it should")
                 : str_printf(arena, "the %s run is %s", is_first ? "first" : "last",
                              PARSE_VERDICT_NAMES[j->verdict]);
}

/* Another series of the format has samples. */
static bool is_empty(const struct measurement *m, const struct rule *rule)
{
    const struct series *series =
        rule ? measurement_series(m, rule->series) : measurement_primary(m);
    return !series || series->n == 0;
}

/* The samples of a rate or time that the rule's window holds; quantity score: there is nothing to doubt. */
static struct series doubted(const struct measurement *m, const struct rule *rule,
                             struct sample **own)
{
    const struct series *all = rule ? measurement_series(m, rule->series) : measurement_primary(m);
    bool is_of_time = all && (all->quantity == QTY_RATE || all->quantity == QTY_STEP_TIME);
    struct series s = is_of_time && m->n_runs == 1 ? *all : (struct series){.quantity = QTY_SCORE};
    CLEANUP(free) enum sample_use *uses = xcalloc(rule ? s.n + 1 : 1, sizeof(uses[0]));
    struct rule_case of = {0};
    if (!rule || s.n == 0 || rule_uses(rule, m, &of, uses, ERR_IGNORED) < 0) {
        return s;
    }
    s.samples = *own = xcalloc(s.n, sizeof(s.samples[0]));
    s.n = 0;
    for (size_t idx = 0; idx < all->n; idx++) {
        if (use_is_in_window(uses[idx])) {
            s.samples[s.n++] = all->samples[idx];
        }
    }
    return s;
}

/* What the log's own numbers hold against the figure. True: they refute it, and nobody who asks gets a number. */
static bool doubt(struct arena *arena, const struct measurement *m, const struct rule *rule,
                  struct judgement *j)
{
    struct measurement seen = *m;
    CLEANUP(free) struct sample *own = NULL;
    const struct series s = doubted(m, rule, &own);
    if (s.quantity != QTY_SCORE) {
        engine_doubt(arena, &seen, &s);
    }
    j->causes = seen.causes;
    j->verdict = seen.verdict;
    j->why = seen.why;
    return seen.causes.n[CAUSE_ARITHMETIC] > 0;
}

struct judgement judgement_of(struct arena *arena, const struct measurement *m,
                              const struct rule *rule, enum demand demand)
{
    struct judgement j = {0};
    bool is_refuted = doubt(arena, m, rule, &j);
    if (takes_run(m, rule, demand)) {
        take_run(arena, m, rule, &j);
    } else if (demand == DEMAND_PART && j.verdict == PARSE_OK && is_empty(m, rule)) {
        j.verdict = PARSE_NO_METRIC;
        j.why = STR_LIT("no line holds what the rule takes");
    }
    j.gives = !is_refuted && (demand == DEMAND_ANY || j.verdict == PARSE_OK ||
                              (demand == DEMAND_PART && judgement_is_part(j.verdict)) ||
                              (demand == DEMAND_RAN && j.verdict == PARSE_TWO_LEVELS));
    j.state = m->verdict == PARSE_NAN || is_refuted                    ? LOG_UNREADABLE
              : j.verdict == PARSE_OK || j.verdict == PARSE_TWO_LEVELS ? LOG_WHOLE
                                                                       : LOG_INCOMPLETE;
    return j;
}

enum parse_verdict judgement_unread(size_t n_formats)
{
    return n_formats ? PARSE_AMBIGUOUS : PARSE_NO_METRIC;
}

enum parse_verdict judgement_undecided(void)
{
    return PARSE_AMBIGUOUS;
}

enum parse_verdict judgement_proposed(enum parse_verdict verdict)
{
    return verdict == PARSE_OK ? PARSE_PROPOSED : verdict;
}

bool judgement_is_ok(enum parse_verdict verdict)
{
    return verdict == PARSE_OK || verdict == PARSE_PROPOSED;
}

bool judgement_is_part(enum parse_verdict verdict)
{
    return verdict == PARSE_INCOMPLETE || verdict == PARSE_TRUNCATED;
}

bool judgement_objects(enum parse_verdict known, enum parse_verdict made)
{
    return made == PARSE_OK && known != PARSE_OK && known != PARSE_NO_METRIC;
}

bool judgement_lacks_run(const struct measurement *m)
{
    return judgement_is_part(m->verdict) || m->verdict == PARSE_NAN ||
           (m->verdict == PARSE_AMBIGUOUS && m->n_runs == 1);
}
