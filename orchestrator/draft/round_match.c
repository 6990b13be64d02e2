/* SPDX-License-Identifier: Apache-2.0 */
/* Rows to submissions: by submitter, benchmark, accelerators and the system's name, and by content, which decides if names do not. */
#include "base/base.h"

#include <math.h>

#include "draft/round.h"

/* Two computations of one mean in doubles; names never differ by so little. */
#define SAME_REL 1e-6

/* Letters and digits alone, in lower case: "NVIDIA_CoreWeave" is "NVIDIA+CoreWeave". */
static bool next_bare(struct str text, size_t *at, char *ret)
{
    for (; *at < text.len; (*at)++) {
        char c = text.ptr[*at];
        c = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
            *ret = c;
            (*at)++;
            return true;
        }
    }
    return false;
}

/* ret_is_prefix: one ends where the other goes on. */
static bool same_name(struct str a, struct str b, bool *ret_is_prefix)
{
    size_t at_a = 0;
    size_t at_b = 0;
    char x = 0;
    char y = 0;
    bool has_x = next_bare(a, &at_a, &x);
    bool has_y = next_bare(b, &at_b, &y);
    *ret_is_prefix = has_x && has_y;
    while (has_x && has_y && x == y) {
        has_x = next_bare(a, &at_a, &x);
        has_y = next_bare(b, &at_b, &y);
    }
    *ret_is_prefix = *ret_is_prefix && (!has_x || !has_y);
    return !has_x && !has_y;
}

static bool same_submitter(const struct submission *s, const struct round_row *row)
{
    bool is_prefix;
    return same_name(s->submitter, row->submitter, &is_prefix) || is_prefix ||
           same_name(s->machine->submitter, row->submitter, &is_prefix);
}

static bool same_system(const struct submission *s, const struct round_row *row)
{
    bool is_prefix;
    return same_name(s->machine->name, row->machine, &is_prefix) ||
           same_name(s->system_folder, row->machine, &is_prefix);
}

static bool same_count(const struct submission *s, const struct round_row *row)
{
    return s->machine->nodes > 0 && s->machine->per_node >= 0 &&
           s->machine->nodes * s->machine->per_node == row->accelerators;
}

static double off_by(const struct submission *s, const struct round_row *row)
{
    double diff = fabs(s->minutes / row->published - 1);
    return isfinite(diff) ? diff : (double)INFINITY;
}

/* What a search of the submissions asks for besides submitter and benchmark; the narrowest first. */
struct match_search {
    bool by_system, by_count;
    const char *words;
};
static const struct match_search SEARCHES[] = {
    {true, true, "submitter, benchmark, accelerator count and system name"},
    {false, true, "submitter, benchmark and accelerator count; the system has another name there"},
    {true, false, "submitter, benchmark and system name; the accelerator count is another there"},
    {false, false, "submitter and benchmark; system and accelerator count are others there"},
};

struct match_found {
    size_t n;       /* that the search gives and no row has taken */
    size_t nearest; /* by content */
    double off;
};

static struct match_found search(const struct round *round, const struct round_row *row,
                                 const struct match_search *by, const bool *is_taken)
{
    struct match_found found = {.off = (double)INFINITY};
    for (size_t idx = 0; idx < round->n; idx++) {
        const struct submission *s = &round->items[idx];
        double off;
        if (is_taken[idx] || !str_eq(s->benchmark, row->benchmark) || !same_submitter(s, row) ||
            (by->by_system && !same_system(s, row)) || (by->by_count && !same_count(s, row))) {
            continue;
        }
        off = off_by(s, row);
        if (found.n++ == 0 || off < found.off) {
            found.nearest = idx;
            found.off = off;
        }
    }
    return found;
}

static struct str folders(size_t n, struct arena *arena)
{
    return n == 1 ? STR_LIT("the one folder")
                  : str_of(arena_printf(arena, "the one of %zu folders whose score it is,", n));
}

/* By content, over ever wider searches. */
static bool match_content(struct arena *arena, const struct round *round,
                          const struct round_row *row, bool *is_taken, struct round_match *ret)
{
    for (size_t idx = 0; idx < ARRAY_LEN(SEARCHES); idx++) {
        struct match_found found = search(round, row, &SEARCHES[idx], is_taken);
        if (found.n > 0 && found.off <= SAME_REL) {
            struct str which = folders(found.n, arena);
            is_taken[found.nearest] = true;
            ret->submission = &round->items[found.nearest];
            ret->how =
                str_of(arena_printf(arena, "%.*s, %.*s by %s", STR_ARG(ret->submission->folder),
                                    STR_ARG(which), SEARCHES[idx].words));
            return true;
        }
    }
    return false;
}

static struct str say_why(struct arena *arena, const struct submission *s)
{
    return s->n_absent > 0
               ? str_of(arena_printf(arena, "%zu of its %zu logs are absent from the stored copy",
                                     s->n_absent, s->n_logs))
           : isfinite(s->minutes)
               ? str_of(arena_printf(arena, "its logs give %.17g minutes", s->minutes))
               : s->why;
}

/* If no score is the row's: the nearest folder by name, with what was tried. */
static void match_name(struct arena *arena, const struct round *round, const struct round_row *row,
                       const bool *is_taken, struct round_match *ret)
{
    size_t n_tried = search(round, row, &SEARCHES[ARRAY_LEN(SEARCHES) - 1], is_taken).n;
    struct match_found found = search(round, row, &SEARCHES[0], is_taken);
    if (found.n > 0) {
        struct str why;
        ret->submission = &round->items[found.nearest];
        why = say_why(arena, ret->submission);
        ret->how = str_of(arena_printf(arena,
                                       "%.*s by %s; %.*s, and no score of the %zu folders left of "
                                       "this submitter and benchmark is the row's",
                                       STR_ARG(ret->submission->folder), SEARCHES[0].words,
                                       STR_ARG(why), n_tried));
        return;
    }
    ret->how = str_of(arena_printf(arena,
                                   "no folder by %s; no score of the %zu folders left of this "
                                   "submitter and benchmark is the row's",
                                   SEARCHES[0].words, n_tried));
}

void round_match(struct arena *arena, const struct round *round, const struct round_row *rows,
                 size_t n, struct round_match *ret_matches)
{
    CLEANUP(free) bool *is_taken = xcalloc(round->n, sizeof(*is_taken));
    for (size_t idx = 0; idx < n; idx++) {
        ret_matches[idx] = (struct round_match){0};
        (void)match_content(arena, round, &rows[idx], is_taken, &ret_matches[idx]);
    }
    for (size_t idx = 0; idx < n;
         idx++) { /* scores first: they leave fewer folders to guess among */
        if (!ret_matches[idx].submission) {
            match_name(arena, round, &rows[idx], is_taken, &ret_matches[idx]);
        }
        if (ret_matches[idx].submission) {
            is_taken[ret_matches[idx].submission - round->items] = true;
        }
    }
}
