/* SPDX-License-Identifier: Apache-2.0 */
/* Formats that a report's cells name: patterns whose steps grow with the square of a line's length, found by trying
   them. */
#include "base/base.h"

#include "judge/audit.h"
#include "lint/growth.h"
#include "lint/lint.h"

struct format_trial {
    struct arena *arena;
    const struct format *format;
    struct findings *findings;
};

static void try_pattern(void *ctx, struct pattern *pattern, const char *part)
{
    const struct format_trial *t = ctx;
    struct growth growth;
    if (growth_is_steep(pattern, &growth)) {
        finding_add(
            t->findings, t->arena, "pattern-quadratic",
            str_of(arena_printf(t->arena, "%.*s:$.%s", STR_ARG(format_path(t->format)), part)),
            "on lines of %d, %d and %d bytes that repeat \"%s\" it takes %" PRIu64 ", %" PRIu64
            " and %" PRIu64 " steps",
            GROWTH_BYTES, 2 * GROWTH_BYTES, 4 * GROWTH_BYTES, growth.again, growth.steps[0],
            growth.steps[1], growth.steps[2]);
    }
}

void lint_format(struct arena *arena, const struct format *format, struct findings *findings)
{
    struct format_trial t = {arena, format, findings};
    if (!format_was_tried(format)) {
        format_each_pattern(format, try_pattern, &t);
    }
}

static void take_trial(struct arena *arena, const struct format_trials *trials, size_t idx,
                       struct findings *findings)
{
    struct findings **found = &trials->found[idx];
    if (!*found) {
        *found = arena_new(arena, struct findings);
        lint_format(arena, trials->formats->items[idx], *found);
    }
    for (size_t at = 0; at < (*found)->n; at++) {
        const struct finding *f = &(*found)->items[at];
        finding_add(findings, arena, f->id, f->where, "%.*s", STR_ARG(f->message));
    }
}

void lint_formats(struct arena *arena, const struct report *report,
                  const struct format_trials *trials, struct findings *findings)
{
    const struct format_set *formats = trials->formats;
    bool is_named[FORMATS_MAX] = {false};
    struct binding binding;
    bind_report(arena, report, formats, &binding);
    for (size_t idx = 0; idx < binding.n_cells; idx++) {
        for (size_t f = 0; f < formats->n; f++) {
            is_named[f] = is_named[f] || formats->items[f] == binding.cells[idx].format;
        }
    }
    for (size_t f = 0; f < formats->n; f++) {
        if (is_named[f]) {
            take_trial(arena, trials, f, findings);
        }
    }
}
