/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the formats that fit a log in one pass: the literals of all of them are looked for together, and a format is done
   as soon as one line is its own. */
#include "base/base.h"

#include "judge/parser_impl.h"

struct clue {                  /* a pattern that proves a format */
    const struct probe *probe; /* borrowed */
    size_t owner;              /* of the set */
};

/* As many formats as LITERALS_MAX literals allow. */
struct group {
    struct format format; /* only what the parser needs of it */
    struct parser *parser;
    struct literals *search;
    struct clue *clues;
    uint8_t *bits; /* of each clue's literal among format.literals */
    size_t n_clues;
    struct guesser *guesser;
};

struct guesser {
    const struct format_set *set; /* borrowed */
    struct arena arena;
    bool fits[FORMATS_MAX];
    struct group *groups;
    size_t n_groups;
    size_t current; /* group that is being fed */
};

static bool is_clue(const struct series_spec *spec)
{
    bool is_known = spec->line.literal.len || spec->after.pattern; /* else any log's */
    return is_known && spec->quantity != QTY_SCORE &&
           (spec->quantity != QTY_PROGRESS || spec->after.pattern);
}

static const struct probe *clue_of(const struct series_spec *spec)
{
    /* A table whose lines say nothing is known by its head. */
    return spec->line.literal.len ? &spec->line : &spec->after;
}

/* The literals of the formats that have not shown yet. */
static void aim(struct group *g)
{
    const struct guesser *guesser = g->guesser;
    g->format.n_literals = 0;
    for (size_t idx = 0; idx < g->n_clues; idx++) {
        size_t bit = 0;
        if (guesser->fits[g->clues[idx].owner]) {
            continue;
        }
        while (bit < g->format.n_literals &&
               !str_eq(g->format.literals[bit], g->clues[idx].probe->literal)) {
            bit++;
        }
        if (bit == g->format.n_literals) {
            g->format.literals[g->format.n_literals++] = g->clues[idx].probe->literal;
        }
        g->bits[idx] = (uint8_t)bit;
    }
    literals_free(g->search);
    g->search =
        g->format.n_literals ? literals_new(g->format.literals, g->format.n_literals) : NULL;
    if (g->parser) {
        g->parser->search = g->search;
        g->parser->n_aims++;
    }
}

static bool can_guess(const struct format *format)
{
    return format->records == RECORD_NONE && format->role != FORMAT_NAMED;
}

static size_t count_clues(const struct format *format)
{
    size_t n = 0;
    for (size_t idx = 0; can_guess(format) && idx < format->n_series; idx++) {
        n += is_clue(&format->series[idx]);
    }
    return n;
}

/* Formats from `from` on, as many as fit. Returns the first that does not. */
static size_t fill_group(struct guesser *guesser, struct group *g, size_t from)
{
    size_t to = from;
    g->guesser = guesser;
    g->format.strips_mpirun = true;
    g->format.search = &g->search;
    g->clues = arena_array(&guesser->arena, struct clue, LITERALS_MAX);
    g->bits = arena_array(&guesser->arena, uint8_t, LITERALS_MAX);
    while (to < guesser->set->n &&
           g->n_clues + count_clues(guesser->set->items[to]) <= LITERALS_MAX) {
        const struct format *format = guesser->set->items[to];
        for (size_t idx = 0; can_guess(format) && idx < format->n_series; idx++) {
            if (is_clue(&format->series[idx])) {
                g->clues[g->n_clues++] = (struct clue){clue_of(&format->series[idx]), to};
            }
        }
        g->format.strips_srun = g->format.strips_srun || format->strips_srun;
        to++;
    }
    return to;
}

int guesser_new(const struct format_set *set, struct guesser **ret_guesser, struct err *err)
{
    struct guesser *guesser = xcalloc(1, sizeof(*guesser));
    guesser->set = set;
    guesser->groups = arena_array(&guesser->arena, struct group, set->n + 1);
    for (size_t from = 0; from < set->n; guesser->n_groups++) {
        struct group *g = &guesser->groups[guesser->n_groups];
        from = fill_group(guesser, g, from);
        aim(g);
        if (parser_new(&g->format, &guesser->arena, &g->parser, err) < 0) {
            guesser->n_groups++;
            guesser_free(guesser);
            return -1;
        }
        g->parser->guesser = guesser;
    }
    *ret_guesser = guesser;
    return 0;
}

void guesser_free(struct guesser *guesser)
{
    if (!guesser) {
        return;
    }
    for (size_t idx = 0; idx < guesser->n_groups; idx++) {
        parser_free(guesser->groups[idx].parser);
        literals_free(guesser->groups[idx].search);
    }
    arena_release(&guesser->arena);
    free(guesser);
}

int guesser_line(struct guesser *guesser, const struct line *line, struct err *err)
{
    struct group *g = &guesser->groups[guesser->current];
    bool has_found = false;
    for (size_t idx = 0; idx < g->n_clues; idx++) {
        const struct clue *clue = &g->clues[idx];
        bool is_hit = false;
        if (guesser->fits[clue->owner] || !(line->mask >> g->bits[idx] & 1)) {
            continue;
        }
        if (pattern_match(clue->probe->pattern, line->text, &g->parser->budget, &is_hit, err) < 0) {
            return -1;
        }
        guesser->fits[clue->owner] = is_hit;
        has_found = has_found || is_hit;
    }
    if (has_found) {
        aim(g);
    }
    return 0;
}

int guesser_feed(struct guesser *guesser, const char *ptr, size_t len, struct err *err)
{
    for (guesser->current = 0; guesser->current < guesser->n_groups; guesser->current++) {
        struct parser *parser = guesser->groups[guesser->current].parser;
        if (parser->search && parser_feed(parser, ptr, len, err) < 0) {
            return -1;
        }
    }
    return 0;
}

size_t guesser_fits(const struct guesser *guesser, bool *ret_fits)
{
    size_t n = 0;
    for (size_t idx = 0; idx < guesser->set->n; idx++) {
        ret_fits[idx] = guesser->fits[idx];
        n += guesser->fits[idx];
    }
    return n;
}

int guesser_finish(struct guesser *guesser, struct err *err)
{
    for (guesser->current = 0; guesser->current < guesser->n_groups; guesser->current++) {
        struct parser *parser = guesser->groups[guesser->current].parser;
        if (parser->search && parser_finish_bytes(parser, err) < 0) {
            return -1;
        }
    }
    return 0;
}
