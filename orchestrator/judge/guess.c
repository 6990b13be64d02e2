/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the formats that fit a log in one pass: all their literals are searched together, and a format is done as soon as
   one line matches it. */
#include "base/base.h"

#include "judge/parser_impl.h"

struct clue {                  /* a pattern that proves a format */
    const struct probe *probe; /* borrowed */
    size_t owner;              /* of the set */
    uint16_t next;             /* with the same literal, as in struct group */
};

/* As many formats as LITERALS_MAX different literals allow. */
struct group {
    struct format format; /* only what the parser needs of it */
    struct parser *parser;
    struct literals *search;
    struct clue *clues;
    size_t n_clues;
    uint16_t first[LITERALS_MAX]; /* clue of each of format.literals: its index and one; 0: none */
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
    /* A table whose lines have no literal is recognised by its header. */
    return spec->line.literal.len ? &spec->line : &spec->after;
}

/* The literals of the formats that have not been found yet. */
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
            g->first[bit] = 0;
        }
        g->clues[idx].next = g->first[bit];
        g->first[bit] = (uint16_t)(idx + 1);
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

static bool has_literal(const struct group *g, struct str literal)
{
    for (size_t idx = 0; idx < g->n_clues; idx++) {
        if (str_eq(g->clues[idx].probe->literal, literal)) {
            return true;
        }
    }
    return false;
}

/* Adds the format's clues, if there is room for their literals. */
static bool add_format(struct group *g, const struct format *format, size_t owner,
                       size_t *n_literals)
{
    size_t n_before = g->n_clues;
    size_t n = *n_literals;
    for (size_t idx = 0; can_guess(format) && idx < format->n_series; idx++) {
        if (is_clue(&format->series[idx])) {
            const struct probe *probe = clue_of(&format->series[idx]);
            n += !has_literal(g, probe->literal);
            g->clues[g->n_clues++] = (struct clue){.probe = probe, .owner = owner};
        }
    }
    if (n > LITERALS_MAX) {
        g->n_clues = n_before;
        return false;
    }
    *n_literals = n;
    return true;
}

/* Formats from `from` on, as many as fit. Returns the first that does not. */
static size_t fill_group(struct guesser *guesser, struct group *g, size_t from)
{
    const struct format_set *set = guesser->set;
    size_t n_clues_max = 0;
    size_t n_literals = 0;
    size_t to = from;
    for (size_t idx = from; idx < set->n; idx++) {
        n_clues_max += set->items[idx]->n_series;
    }
    g->guesser = guesser;
    g->format.strips_mpirun = true;
    g->format.search = &g->search;
    g->clues = arena_array(&guesser->arena, struct clue, n_clues_max + 1);
    for (; to < set->n && add_format(g, set->items[to], to, &n_literals); to++) {
        g->format.strips_srun = g->format.strips_srun || set->items[to]->strips_srun;
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

/* Tries the clues that share a literal. */
static int look_for(struct group *g, size_t bit, struct str text, bool *found, struct err *err)
{
    for (size_t at = g->first[bit]; at > 0; at = g->clues[at - 1].next) {
        const struct clue *clue = &g->clues[at - 1];
        bool *fits = &g->guesser->fits[clue->owner];
        if (*fits) {
            continue;
        }
        if (pattern_match(clue->probe->pattern, text, &g->parser->budget, fits, err) < 0) {
            return -1;
        }
        *found = *found || *fits;
    }
    return 0;
}

int guesser_line(struct guesser *guesser, const struct line *line, struct err *err)
{
    struct group *g = &guesser->groups[guesser->current];
    bool has_found = false;
    for (uint64_t rest = line->mask; rest; rest &= rest - 1) {
        if (look_for(g, (size_t)__builtin_ctzll(rest), line->text, &has_found, err) < 0) {
            return -1;
        }
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
