/* SPDX-License-Identifier: Apache-2.0 */
/* For each alternative of the pattern a matching text is made item by item, with a group's first alternative. The part from one unbounded
   item to another is repeated to the length of a line. If the length doubles, linear growth is by 2 and quadratic by 4: more than 2.8,
   their geometric mean, both times is steep. */
#include "base/base.h"

#include "lint/growth.h"

#define TEXT_MAX   512
#define CUTS_MAX   24
#define DEPTH_MAX  32
#define STEEP      2.8
#define STEPS_MIN  16 /* per byte: a pattern that costs less is cheap, however it grows */
#define LINE_BYTES ((size_t)4 * GROWTH_BYTES)

struct sample_text {
    char text[TEXT_MAX];
    size_t len;
    size_t cuts[CUTS_MAX]; /* where an item without bound begins, and ends */
    size_t n_cuts;
    struct str rest; /* of the source */
    size_t wanted;   /* of the alternatives */
    size_t n_bars;   /* between them, so far */
    size_t depth;
    bool is_skipped
        [DEPTH_MAX]; /* by depth: the rest of this group is another alternative, or not part of the text */
};

static void add_cut(struct sample_text *s, size_t at)
{
    if (s->n_cuts < CUTS_MAX && (s->n_cuts == 0 || s->cuts[s->n_cuts - 1] != at)) {
        s->cuts[s->n_cuts++] = at;
    }
}

static char take(struct sample_text *s)
{
    char c = s->rest.len ? s->rest.ptr[0] : '\0';
    s->rest = str_sub(s->rest, 1, SIZE_MAX);
    return c;
}

/* One byte that \c stands for; NUL if none. */
static char of_escape(char c)
{
    switch (c) {
    case 'd':
        return '1';
    case 'D':
    case 'w':
    case 'S':
        return 'a';
    case 's':
    case 'W':
    case 'h':
        return ' ';
    case 'b':
    case 'B':
    case 'A':
    case 'z':
    case 'Z':
    case 'K':
        return '\0';
    case 't':
        return '\t';
    default:
        return c;
    }
}

static char of_class(struct sample_text *s)
{
    bool is_not = str_starts(s->rest, STR_LIT("^"));
    char first = '\0';
    char c = is_not ? take(s) : '\0';
    for (c = take(s); s->rest.len && (c != ']' || !first); c = take(s)) {
        c = c == '\\' ? of_escape(take(s)) : c;
        first = first ? first : c;
    }
    return !is_not ? first : first == 'a' ? 'b' : 'a';
}

/* "*", "+", "?", "{2,}" after an item. */
static void take_quantifier(struct sample_text *s, size_t began)
{
    char c = s->rest.len ? s->rest.ptr[0] : '\0';
    int64_t close = c == '{' ? str_find(s->rest, STR_LIT("}")) : -1;
    bool is_open = c == '*' || c == '+';
    if (close > 0) {
        is_open = s->rest.ptr[close - 1] == ',';
        s->rest = str_sub(s->rest, (size_t)close, SIZE_MAX);
    }
    if (close > 0 || is_open || c == '?') {
        (void)take(s);
        if (s->rest.len && (s->rest.ptr[0] == '?' || s->rest.ptr[0] == '+')) {
            (void)take(s);
        }
    }
    if (is_open && !s->is_skipped[s->depth]) {
        add_cut(s, began);
        add_cut(s, s->len);
    }
}

static void add_byte(struct sample_text *s, char c)
{
    size_t began = s->len;
    if (c && s->len < TEXT_MAX && !s->is_skipped[s->depth]) {
        s->text[s->len++] = c;
    }
    take_quantifier(s, began);
}

static void open_group(struct sample_text *s)
{
    bool is_skipped = s->is_skipped[s->depth];
    s->depth += s->depth + 1 < DEPTH_MAX;
    if (str_starts(s->rest, STR_LIT("?"))) {
        (void)take(s);
        if (str_starts(s->rest, STR_LIT("=")) || str_starts(s->rest, STR_LIT("!")) ||
            str_starts(s->rest, STR_LIT("<=")) || str_starts(s->rest, STR_LIT("<!"))) {
            is_skipped = true;
        } else {
            int64_t end = str_find(s->rest, str_of(str_starts(s->rest, STR_LIT("<")) ? ">" : ":"));
            int64_t close = str_find(s->rest, STR_LIT(")"));
            end = close >= 0 && (end < 0 || close < end) ? close - 1 : end; /* "(?i)" */
            s->rest = str_sub(s->rest, (size_t)(end + 1), SIZE_MAX);
        }
    } else if (str_starts(s->rest, STR_LIT("*"))) { /* a verb */
        is_skipped = true;
    }
    s->is_skipped[s->depth] = is_skipped;
}

static void make_text(struct sample_text *s)
{
    while (s->rest.len > 0) {
        char c = take(s);
        switch (c) {
        case '(':
            open_group(s);
            break;
        case ')':
            s->depth -= s->depth > 0;
            take_quantifier(s, s->len);
            break;
        case '|':
            s->n_bars += s->depth == 0;
            s->is_skipped[s->depth] = s->depth > 0 || s->n_bars != s->wanted;
            break;
        case '^':
        case '$':
            break;
        case '[':
            add_byte(s, of_class(s));
            break;
        case '\\':
            add_byte(s, of_escape(take(s)));
            break;
        case '.':
            add_byte(s, 'x');
            break;
        default:
            add_byte(s, c);
        }
    }
}

/* text[0, from), then text[from, to) repeatedly, and near the end the byte that a match needs. */
static struct str make_line(const struct sample_text *s, size_t from, size_t to, int needs,
                            size_t len, char *line)
{
    size_t at = from;
    memcpy(line, s->text, from);
    for (; at < len; at += to - from) {
        memcpy(line + at, s->text + from, to - from < len - at ? to - from : len - at);
    }
    if (needs >= 0) {
        /* Between bytes that occur in no pattern. */
        line[len - 3] = line[len - 1] = '\1';
        line[len - 2] = (char)needs;
    }
    return (struct str){line, len};
}

static bool is_steep(struct pattern *pattern, const struct sample_text *s, size_t from, size_t to,
                     struct growth *growth)
{
    char line[LINE_BYTES];
    int needs = pattern_needs(pattern);
    for (size_t idx = 3; idx-- > 0;) {
        size_t len = (size_t)GROWTH_BYTES << idx;
        struct str subject = make_line(s, from, to, needs, len, line);
        growth->steps[idx] = pattern_steps(pattern, subject, (uint64_t)len * len);
        if (growth->steps[2] < STEPS_MIN * LINE_BYTES) {
            return false;
        }
    }
    snprintf(growth->again, sizeof(growth->again), "%.*s", (int)(to - from), s->text + from);
    return (double)growth->steps[1] > STEEP * (double)growth->steps[0] &&
           (double)growth->steps[2] > STEEP * (double)growth->steps[1];
}

static bool try_cuts(struct pattern *pattern, const struct sample_text *s, struct growth *growth)
{
    for (size_t first = 0; first <= s->n_cuts; first++) {
        size_t from = first == 0 ? 0 : s->cuts[first - 1];
        if (first > 0 && from == 0) { /* tried already */
            continue;
        }
        for (size_t last = first; last <= s->n_cuts; last++) {
            size_t to = last == s->n_cuts ? s->len : s->cuts[last];
            bool is_tried = last == s->n_cuts && last > first && s->cuts[last - 1] == to;
            if (!is_tried && to <= s->len && from < to && is_steep(pattern, s, from, to, growth)) {
                return true;
            }
        }
    }
    return false;
}

bool growth_is_steep(struct pattern *pattern, struct growth *ret_growth)
{
    size_t n = 1;
    for (size_t wanted = 0; wanted < n; wanted++) {
        struct sample_text s = {.rest = pattern_source(pattern), .wanted = wanted};
        s.is_skipped[0] = wanted > 0;
        make_text(&s);
        s.len = s.len < GROWTH_BYTES / 2 ? s.len : GROWTH_BYTES / 2;
        n = s.n_bars + 1;
        if (try_cuts(pattern, &s, ret_growth)) {
            return true;
        }
    }
    return false;
}
