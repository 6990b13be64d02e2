/* SPDX-License-Identifier: Apache-2.0 */
/* The facts of a kept series: what a log states, and in which of its runs. */
#include "base/base.h"

#include "load/series_parts.h"

#define PLAIN_PARTS 3 /* name, value, line */
#define ALL_PARTS   5 /* and the first and the last run */

bool series_facts_have_runs(const struct measurement *m)
{
    bool have = m->n_runs > 1;
    for (size_t idx = 0; idx < m->n_facts; idx++) {
        have = have || m->facts[idx].first_run != 0 || m->facts[idx].last_run != 0;
    }
    return have;
}

void series_fact_runs_unsaid(const struct measurement *m, struct fact *fact)
{
    bool is_one = m->n_runs <= 1;
    fact->first_run = is_one ? 0 : 1;
    fact->last_run = 0;
}

void series_write_facts(struct json_out *out, const struct measurement *m)
{
    bool have_runs = series_facts_have_runs(m);
    jw_array(out, "facts");
    for (size_t idx = 0; idx < m->n_facts; idx++) {
        jw_array(out, NULL);
        jw_str(out, NULL, m->facts[idx].name);
        jw_str(out, NULL, m->facts[idx].value);
        jw_i64(out, NULL, m->facts[idx].line);
        if (have_runs) {
            jw_i64(out, NULL, m->facts[idx].first_run);
            jw_i64(out, NULL, m->facts[idx].last_run);
        }
        jw_end_array(out);
    }
    jw_end_array(out);
}

/* [name, value, line] or [name, value, line, first run, last run]. */
static int read_fact(const struct json *at, struct arena *arena, const struct measurement *m,
                     struct fact *fact, struct err *err)
{
    struct json part;
    int64_t runs[2] = {0};
    size_t n = 0;
    if (json_expect_array(at, ALL_PARTS, &n, err) < 0) {
        return -1;
    }
    if (n != PLAIN_PARTS && n != ALL_PARTS) {
        return json_fail(at, err, "expected name, value, line, and both runs or none");
    }
    bool has_name = json_first(at, &part);
    if (!has_name || json_str(&part, arena, &fact->name, err) < 0 || !json_next(&part) ||
        json_str(&part, arena, &fact->value, err) < 0 || !json_next(&part) ||
        json_i64(&part, 0, INT32_MAX, &fact->line, err) < 0) {
        return -1;
    }
    series_fact_runs_unsaid(m, fact);
    for (size_t idx = 0; idx + PLAIN_PARTS < n; idx++) {
        if (!json_next(&part) || json_i64(&part, 0, RUNS_MAX, &runs[idx], err) < 0) {
            return -1;
        }
        *(idx ? &fact->last_run : &fact->first_run) = (int32_t)runs[idx];
    }
    return 0;
}

int series_read_facts(const struct json *list, struct arena *arena, struct measurement *m,
                      struct err *err)
{
    struct json item;
    size_t idx = 0;
    if (json_expect_array(list, FACTS_MAX, &m->n_facts, err) < 0) {
        return -1;
    }
    m->facts = arena_array(arena, struct fact, m->n_facts + 1);
    for (bool more = json_first(list, &item); more; more = json_next(&item)) {
        if (read_fact(&item, arena, m, &m->facts[idx++], err) < 0) {
            return -1;
        }
    }
    return 0;
}
