/* SPDX-License-Identifier: Apache-2.0 */
/* Every word that a status, a verdict or a column of a document can be, then the findings, then the events. tests/integration/test_explain.sh
   holds the first against the schemas. */
#include "base/base.h"

#include "base/embed.h"
#include "cmd/explain_names.h"
#include "judge/finding.h"
#include "run/events.h"

#define EACH_MAX 1024

EMBED(explain_txt, "orchestrator/cmd/explain.txt"); /* lines of kind, name and text, between tabs */

struct explained *explain_words(struct arena *arena, size_t *ret_n)
{
    struct explained *words = arena_array(arena, struct explained, EACH_MAX);
    struct str rest = EMBEDDED(explain_txt), line, kind, name;
    size_t n = 0;
    while (str_next(&rest, '\n', &line) && line.len) {
        ASSERT(n < EACH_MAX && str_next(&line, '\t', &kind) && str_next(&line, '\t', &name));
        words[n++] = (struct explained){str_z(arena, kind), str_z(arena, name), NULL, NULL,
                                        str_z(arena, line)};
    }
    ASSERT(n + N_FINDING_RULES + EV_COUNT <= EACH_MAX);
    for (size_t idx = 0; idx < N_FINDING_RULES; idx++) {
        const struct finding_rule *rule = &FINDING_RULES[idx];
        words[n++] = (struct explained){"finding", rule->id, finding_level_name(rule->level),
                                        rule->title, rule->help};
    }
    for (size_t idx = 0; idx < EV_COUNT; idx++) {
        const struct event_row *row = &EVENTS[idx];
        words[n++] = (struct explained){"event", row->name, row->level, NULL, row->help};
    }
    *ret_n = n;
    return words;
}
