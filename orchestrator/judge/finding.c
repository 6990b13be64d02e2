/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "judge/finding.h"

#define MESSAGE_BYTES 1024

const char *const FINDING_LEVEL_NAMES[3] = {"note", "warning", "error"};

const char *finding_level_name(enum finding_level level)
{
    ASSERT((size_t)level < ARRAY_LEN(FINDING_LEVEL_NAMES));
    return FINDING_LEVEL_NAMES[level];
}

static const struct finding_rule *find_rule(const char *id)
{
    for (size_t idx = 0; idx < N_FINDING_RULES; idx++) {
        if (strcmp(FINDING_RULES[idx].id, id) == 0) {
            return &FINDING_RULES[idx];
        }
    }
    return NULL;
}

void finding_add(struct findings *list, struct arena *arena, const char *id, struct str where,
                 const char *fmt, ...)
{
    const struct finding_rule *rule = find_rule(id);
    struct finding *f;
    char text[MESSAGE_BYTES];
    va_list args;
    ASSERT(rule);
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (list->n == list->n_max) {
        size_t n_max = list->n_max ? 2 * list->n_max : 16;
        struct finding *items = arena_array(arena, struct finding, n_max);
        if (list->n) {
            memcpy(items, list->items, list->n * sizeof(items[0]));
        }
        list->items = items;
        list->n_max = n_max;
    }
    f = &list->items[list->n++];
    f->id = rule->id;
    f->level = rule->level;
    f->message = str_dup(arena, str_of(text));
    f->where = str_dup(arena, where);
}
