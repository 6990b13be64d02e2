/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the formats that fit a log in one pass: what their lines hold is searched for together, and a format is done as soon as
   one line matches it. */
#include "base/base.h"

#include "log/parser_impl.h"

struct clue {                  /* a pattern that proves a format */
    const struct probe *probe; /* borrowed */
    size_t owner;              /* of the set */
    uint16_t next;             /* with the same text, as in struct group */
};

/* As many formats as LITERALS_MAX different texts allow. */
struct group {
    struct str texts[LITERALS_MAX]; /* literals: each is in every line that its clues match */
    size_t n_texts;
    uint16_t first[LITERALS_MAX]; /* clue of each text: its index and one; 0: none */
    uint64_t live;                /* texts of formats that have not been found yet */
    struct literals *search;
    struct match_budget budget;
};

struct guesser {
    const struct format_set *set; /* borrowed */
    struct arena arena;
    bool fits[FORMATS_MAX];
    struct clue *clues;
    size_t n_clues;
    struct group *groups;
    size_t n_groups;
    struct format format; /* only what the parser needs of it */
    struct literals *search;
    struct parser *parser; /* makes lines of the bytes */
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

static bool can_guess(const struct format *format)
{
    return format->records == RECORD_NONE && format->role != FORMAT_NAMED;
}

static void add_clue(struct guesser *guesser, const struct probe *probe, size_t owner)
{
    struct group *g = &guesser->groups[guesser->n_groups - 1];
    struct str text = probe->literal;
    struct clue *clue = &guesser->clues[guesser->n_clues++];
    size_t bit = 0;
    while (bit < g->n_texts && !str_eq(g->texts[bit], text)) {
        bit++;
    }
    if (bit == LITERALS_MAX) {
        g = &guesser->groups[guesser->n_groups++];
        bit = 0;
    }
    if (bit == g->n_texts) {
        g->texts[g->n_texts++] = text;
    }
    *clue = (struct clue){probe, owner, g->first[bit]};
    g->first[bit] = (uint16_t)guesser->n_clues;
}

static void add_formats(struct guesser *guesser)
{
    const struct format_set *set = guesser->set;
    size_t n_max = 0;
    for (size_t idx = 0; idx < set->n; idx++) {
        n_max += set->items[idx]->n_series;
    }
    guesser->clues = arena_array(&guesser->arena, struct clue, n_max + 1);
    guesser->groups = arena_array(&guesser->arena, struct group, n_max / LITERALS_MAX + 2);
    guesser->n_groups = 1;
    for (size_t idx = 0; idx < set->n; idx++) {
        const struct format *format = set->items[idx];
        for (size_t at = 0; can_guess(format) && at < format->n_series; at++) {
            if (is_clue(&format->series[at])) {
                add_clue(guesser, clue_of(&format->series[at]), idx);
            }
        }
    }
}

/* Before the first byte of a log. */
static void begin(struct guesser *guesser)
{
    memset(guesser->fits, 0, sizeof(guesser->fits));
    for (size_t idx = 0; idx < guesser->n_groups; idx++) {
        struct group *g = &guesser->groups[idx];
        g->live = g->n_texts ? UINT64_MAX >> (LITERALS_MAX - g->n_texts) : 0;
        g->budget.left = STEPS_OF_LOG;
    }
}

struct guesser *guesser_new(const struct format_set *set)
{
    struct guesser *guesser = xcalloc(1, sizeof(*guesser));
    guesser->set = set;
    guesser->format.strips_mpirun = true;
    for (size_t idx = 0; idx < set->n; idx++) {
        guesser->format.strips_srun = guesser->format.strips_srun ||
                                      (can_guess(set->items[idx]) && set->items[idx]->strips_srun);
    }
    add_formats(guesser);
    for (size_t idx = 0; idx < guesser->n_groups; idx++) {
        struct group *g = &guesser->groups[idx];
        g->search = g->n_texts ? literals_new(g->texts, g->n_texts) : NULL;
    }
    guesser->parser = parser_of_lines(&guesser->format, &guesser->arena);
    guesser->parser->guesser = guesser;
    begin(guesser);
    return guesser;
}

void guesser_free(struct guesser *guesser)
{
    if (!guesser) {
        return;
    }
    for (size_t idx = 0; idx < guesser->n_groups; idx++) {
        literals_free(guesser->groups[idx].search);
    }
    parser_free(guesser->parser);
    arena_release(&guesser->arena);
    free(guesser);
}

void guesser_restart(struct guesser *guesser)
{
    parser_restart(guesser->parser);
    begin(guesser);
}

/* Whether some format that this text could prove has not been found yet. */
static bool is_live(const struct guesser *guesser, const struct group *g, size_t bit)
{
    for (size_t at = g->first[bit]; at > 0; at = guesser->clues[at - 1].next) {
        if (!guesser->fits[guesser->clues[at - 1].owner]) {
            return true;
        }
    }
    return false;
}

/* Tries the clues that share a text. */
static int try_clues(struct guesser *guesser, struct group *g, size_t bit, struct str line,
                     struct err *err)
{
    bool has_found = false;
    for (size_t at = g->first[bit]; at > 0; at = guesser->clues[at - 1].next) {
        const struct clue *clue = &guesser->clues[at - 1];
        bool *fits = &guesser->fits[clue->owner];
        if (!*fits) {
            if (pattern_match(clue->probe->pattern, line, &g->budget, fits, err) < 0) {
                return -1;
            }
            has_found = has_found || *fits;
        }
    }
    for (size_t idx = 0; has_found && idx < g->n_texts; idx++) {
        g->live &= ~((uint64_t)!is_live(guesser, g, idx) << idx);
    }
    return 0;
}

/* The lines of a region that hold a text of the group. */
static int search(struct guesser *guesser, struct group *g, const struct region *region,
                  struct err *err)
{
    struct str text = region->text;
    struct line line = {.end = 0};
    uint64_t mask;
    size_t at = literals_next(g->search, text, 0, g->live, &mask);
    while (at != SIZE_MAX) {
        uint64_t all = 0;
        parser_line_around(guesser->parser, region, at, &line);
        while (at < line.end) {
            all |= mask;
            at = literals_next(g->search, text, at + 1, g->live, &mask);
        }
        for (; all; all &= all - 1) {
            if (try_clues(guesser, g, (size_t)__builtin_ctzll(all), line.text, err) < 0) {
                return err_wrap(err, "line %" PRId64,
                                parser_line_number(guesser->parser, region, line.from, line.end));
            }
        }
    }
    return 0;
}

int guesser_region(struct guesser *guesser, const struct region *region, struct err *err)
{
    for (size_t idx = 0; idx < guesser->n_groups; idx++) {
        struct group *g = &guesser->groups[idx];
        g->budget.left += STEPS_OF_BYTE * region->text.len;
        if (g->live && search(guesser, g, region, err) < 0) {
            return -1;
        }
    }
    return 0;
}

int guesser_feed(struct guesser *guesser, const char *ptr, size_t len, struct err *err)
{
    return parser_feed(guesser->parser, ptr, len, err);
}

int guesser_finish(struct guesser *guesser, struct err *err)
{
    return parser_finish_bytes(guesser->parser, err);
}

size_t guesser_found(const struct guesser *guesser, const struct format **ret_formats)
{
    size_t n = 0;
    for (size_t idx = 0; idx < guesser->set->n; idx++) {
        if (guesser->fits[idx]) {
            ret_formats[n++] = guesser->set->items[idx];
        }
    }
    return n;
}

bool guess_is_log_name(struct str path)
{
    static const char *const FOLDERS[] = {"logs/", "log/", "/logs/", "/log/"};
    for (size_t len; (len = ends_with_any(path, ".gz .zst .xz .bz2")) > 0;) {
        path.len -= len;
    }
    if (ends_with_any(path, ".log .out _log .log.txt log.json .jsonl trainer_state.json")) {
        return true;
    }
    if (ends_with_any(path, ".py .sh .md .yaml .yml .png .jpg .c .h .cc .cpp .cu .js .ipynb")) {
        return false;
    }
    for (size_t idx = 0; idx < ARRAY_LEN(FOLDERS); idx++) {
        int64_t at = str_find(path, str_of(FOLDERS[idx]));
        if (at == 0 || (at > 0 && FOLDERS[idx][0] == '/')) {
            return true;
        }
    }
    return str_find(path, STR_LIT("events.out.tfevents.")) >= 0;
}
