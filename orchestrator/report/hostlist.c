/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/hostlist.h"

#include "base/map.h"
#include "base/strbuf.h"
#include "base/vec.h"

#define TERM_PIECES_MAX (2 * HOSTLIST_BRACKETS_MAX + 1)
#define NUMBERS_MAX     16 /* numbers in a name; with more it is not folded */
#define SHOWN_MAX       80

struct term_number {
    int64_t value;
    int width; /* digits, at least */
};

struct term_piece { /* literal text, or the numbers of a bracket */
    struct str text;
    struct term_number *numbers;
    size_t n_numbers; /* 0: it is text */
};

/* "rack[1-2]node[01-04]": a node set without operators. */
struct term {
    struct term_piece pieces[TERM_PIECES_MAX];
    size_t n_pieces;
    size_t n_names; /* product of the brackets' numbers, 1 to HOSTLIST_NAMES_MAX */
};

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool hostlist_is_name(struct str text)
{
    for (size_t idx = 0; idx < text.len; idx++) {
        char c = text.ptr[idx];
        if (!is_alnum(c) && c != '.' && c != ':' && c != '-' && c != '_') {
            return false;
        }
    }
    return text.len > 0 && text.len <= HOSTLIST_NAME_MAX && is_alnum(text.ptr[0]) &&
           is_alnum(text.ptr[text.len - 1]);
}

/* ---- the set in the making ---- */

struct entry { /* a name seen so far, in the set or not */
    struct str name;
    bool is_in;
    uint64_t round; /* of the term that named it last */
};

/* ---- a term ---- */

/* ERR_USAGE: 'node set "TEXT", byte N: ...' */
PRINTF_LIKE(4, 5)
static int fail(struct str whole, const char *at, struct err *err, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return err_set(err, ERR_USAGE, "node set \"%.*s%s\", byte %zu: %s",
                   (int)(whole.len < SHOWN_MAX ? whole.len : SHOWN_MAX), whole.ptr,
                   whole.len > SHOWN_MAX ? "..." : "", (size_t)(at - whole.ptr) + 1, text);
}

/* ---- the numbers of a bracket ---- */

struct range {
    int64_t first, last, step;
    int width;
};

struct range_reader {
    struct str whole;
    enum hostlist_syntax syntax;
    struct err *err;
};

static int read_number(const struct range_reader *reader, struct str text, int64_t *ret_value)
{
    struct err ignored = {0};
    if (text.len == 0) {
        return fail(reader->whole, text.ptr, reader->err, "expected a number");
    }
    if (text.len > HOSTLIST_DIGITS_MAX || text.ptr[0] == '-' ||
        str_to_i64(text, 0, INT64_MAX, ret_value, &ignored) < 0) {
        return fail(reader->whole, text.ptr, reader->err,
                    "expected a number of at most %d digits, found \"%.*s\"", HOSTLIST_DIGITS_MAX,
                    (int)(text.len < 40 ? text.len : 40), text.ptr);
    }
    return 0;
}

static bool is_padded(struct str digits)
{
    return digits.len > 1 && digits.ptr[0] == '0';
}

/* "3", "01-04" or "0-10/2" */
static int read_range(const struct range_reader *reader, struct str text, struct range *ret_range)
{
    struct str steps = text;
    struct str both;
    struct str first;
    struct str last;
    bool has_step;
    struct range range = {.step = 1};
    (void)str_next(&steps, '/', &both);
    has_step = steps.ptr != NULL;
    last = both;
    (void)str_next(&last, '-', &first);
    first = str_trim(first);
    last = last.ptr ? str_trim(last) : first;
    if (read_number(reader, first, &range.first) < 0 ||
        read_number(reader, last, &range.last) < 0 ||
        (has_step && read_number(reader, str_trim(steps), &range.step) < 0)) {
        return -1;
    }
    if (has_step && reader->syntax == HOSTLIST_SLURM) {
        return fail(reader->whole, text.ptr, reader->err, "Slurm's lists have no /STEP");
    }
    if (range.step < 1 || range.last < range.first) {
        return fail(reader->whole, text.ptr, reader->err,
                    "expected FIRST-LAST/STEP, upwards, found \"%.*s\"",
                    (int)(text.len < 40 ? text.len : 40), text.ptr);
    }
    if ((is_padded(first) || is_padded(last)) && first.len != last.len &&
        (reader->syntax != HOSTLIST_SLURM || is_padded(last))) {
        return fail(reader->whole, text.ptr, reader->err,
                    "both ends of \"%.*s\" need the same number of digits",
                    (int)(text.len < 40 ? text.len : 40), text.ptr);
    }
    range.width = is_padded(first) ? (int)first.len : 1;
    *ret_range = range;
    return 0;
}

/* Appends to `numbers`, which holds HOSTLIST_NAMES_MAX. */
static int add_range(const struct range_reader *reader, const struct range *range, const char *at,
                     struct term_piece *piece)
{
    int64_t n = (range->last - range->first) / range->step + 1;
    if (n > (int64_t)(HOSTLIST_NAMES_MAX - piece->n_numbers)) {
        return fail(reader->whole, at, reader->err, "more than %d names", HOSTLIST_NAMES_MAX);
    }
    for (int64_t idx = 0; idx < n; idx++) {
        piece->numbers[piece->n_numbers++] =
            (struct term_number){range->first + idx * range->step, range->width};
    }
    return 0;
}

static int read_bracket(struct arena *arena, const struct range_reader *reader, struct str inside,
                        struct term_piece *ret_piece)
{
    CLEANUP(free) struct term_number *room = xcalloc(HOSTLIST_NAMES_MAX, sizeof(*room));
    struct term_piece piece = {.numbers = room};
    struct str rest = inside;
    struct str part;
    if (str_trim(inside).len == 0) {
        return fail(reader->whole, inside.ptr, reader->err, "expected a number");
    }
    while (str_next(&rest, ',', &part)) {
        struct range range = {0};
        if (read_range(reader, str_trim(part), &range) < 0 ||
            add_range(reader, &range, part.ptr, &piece) < 0) {
            return -1;
        }
    }
    piece.numbers = arena_array(arena, struct term_number, piece.n_numbers);
    memcpy(piece.numbers, room, piece.n_numbers * sizeof(*room));
    *ret_piece = piece;
    return 0;
}

/* ---- a term ---- */

/* text is part of `whole`; positions in messages count from the start of `whole`. */
static int term_parse(struct arena *arena, struct str text, struct str whole,
                      enum hostlist_syntax syntax, struct term *ret_term, struct err *err)
{
    const struct range_reader reader = {whole, syntax, err};
    struct term term = {.n_names = 1};
    size_t at = 0;
    while (at < text.len) {
        struct term_piece piece = {0};
        size_t from = at;
        if (term.n_pieces == TERM_PIECES_MAX) {
            return fail(whole, text.ptr + at, err, "more than %d brackets in a name",
                        HOSTLIST_BRACKETS_MAX);
        }
        if (text.ptr[at] == '[') {
            while (at < text.len && text.ptr[at] != ']') {
                at++;
            }
            if (at == text.len) {
                return fail(whole, text.ptr + from, err, "expected ] after this [");
            }
            if (read_bracket(arena, &reader, str_sub(text, from + 1, at - from - 1), &piece) < 0) {
                return -1;
            }
            at++;
            if (term.n_names > HOSTLIST_NAMES_MAX / piece.n_numbers) {
                return fail(whole, text.ptr + from, err, "more than %d names", HOSTLIST_NAMES_MAX);
            }
            term.n_names *= piece.n_numbers;
        } else {
            while (at < text.len && text.ptr[at] != '[') {
                at++;
            }
            piece.text = str_sub(text, from, at - from);
        }
        term.pieces[term.n_pieces++] = piece;
    }
    *ret_term = term;
    return 0;
}

/* The idx-th of its names, in buf (NUL-terminated). False if it is longer than HOSTLIST_NAME_MAX. */
static bool term_name(const struct term *term, size_t idx, char buf[HOSTLIST_NAME_MAX + 1],
                      struct str *ret_name)
{
    size_t which[TERM_PIECES_MAX];
    size_t len = 0;
    for (size_t at = term->n_pieces; at-- > 0;) {
        size_t n = term->pieces[at].n_numbers;
        which[at] = n ? idx % n : 0;
        idx = n ? idx / n : idx;
    }
    for (size_t at = 0; at < term->n_pieces; at++) {
        const struct term_piece *piece = &term->pieces[at];
        size_t room = HOSTLIST_NAME_MAX + 1 - len;
        int more = piece->n_numbers
                       ? snprintf(buf + len, room, "%0*lld", piece->numbers[which[at]].width,
                                  (long long)piece->numbers[which[at]].value)
                       : snprintf(buf + len, room, "%.*s", STR_ARG(piece->text));
        if (more < 0 || (size_t)more >= room) {
            return false;
        }
        len += (size_t)more;
    }
    *ret_name = (struct str){buf, len};
    return true;
}

struct expansion {
    struct arena *arena;
    struct str whole;
    enum hostlist_syntax syntax;
    const struct hostlist_scope *scope; /* may be NULL */
    struct map scope_names;
    VEC(struct entry) entries;
    struct map by_name; /* to the index of its entry, and 1 more */
    size_t n_in;
    uint64_t round; /* number of the term */
    size_t n_work;
};

static int count_work(struct expansion *e, size_t n, const char *at, struct err *err)
{
    e->n_work += n;
    return e->n_work <= HOSTLIST_WORK_MAX
               ? 0
               : fail(e->whole, at, err, "more than %d names in all", HOSTLIST_WORK_MAX);
}

static struct entry *find_entry(struct expansion *e, struct str name)
{
    uintptr_t found = (uintptr_t)map_get(&e->by_name, name);
    if (!found) {
        VEC_PUSH(&e->entries, (struct entry){.name = {str_z(e->arena, name), name.len}});
        found = e->entries.n;
        /* An index stands in for a pointer: entries move when the vector grows. */
        (void)map_add(&e->by_name, e->entries.items[found - 1].name, (void *)found);
    }
    return &e->entries.items[found - 1];
}

/* Applies the operator to one name of the term. */
static int apply(struct expansion *e, char op, struct str name, const char *at, struct err *err)
{
    struct entry *entry = find_entry(e, name);
    bool was_named = entry->round == e->round;
    bool is_in = entry->is_in;
    entry->round = e->round;
    if (op == ',' || (op == '^' && !was_named && !is_in)) {
        entry->is_in = true;
    } else if (op == '!' || (op == '^' && !was_named)) {
        entry->is_in = false;
    }
    e->n_in += (size_t)(entry->is_in && !is_in);
    e->n_in -= (size_t)(!entry->is_in && is_in);
    return e->n_in <= HOSTLIST_NAMES_MAX
               ? 0
               : fail(e->whole, at, err, "more than %d names", HOSTLIST_NAMES_MAX);
}

/* After a term: drops what an intersection did not name. */
static int end_term(struct expansion *e, char op, const char *at, struct err *err)
{
    if (op != '&') {
        return 0;
    }
    for (size_t idx = 0; idx < e->entries.n; idx++) {
        struct entry *entry = &e->entries.items[idx];
        if (entry->is_in && entry->round != e->round) {
            entry->is_in = false;
            e->n_in--;
        }
    }
    return count_work(e, e->entries.n, at, err);
}

/* ---- terms ---- */

static bool has_wildcard(struct str text)
{
    return str_find(text, STR_LIT("*")) >= 0 || str_find(text, STR_LIT("?")) >= 0;
}

/* "*" is any bytes, "?" one. If the rest does not match, the last star takes one byte more; only the last one needs
   to. */
static bool glob_matches(struct str glob, struct str name)
{
    size_t g = 0;
    size_t n = 0;
    size_t star = SIZE_MAX;
    size_t star_n = 0;
    while (n < name.len) {
        if (g < glob.len && glob.ptr[g] == '*') {
            star = g++;
            star_n = n;
        } else if (g < glob.len && (glob.ptr[g] == '?' || glob.ptr[g] == name.ptr[n])) {
            g++;
            n++;
        } else if (star != SIZE_MAX) {
            g = star + 1;
            n = ++star_n;
        } else {
            return false;
        }
    }
    while (g < glob.len && glob.ptr[g] == '*') {
        g++;
    }
    return g == glob.len;
}

/* The names of the scope that a group (its "@" cut off) or a wildcard stands for. */
static int apply_scope(struct expansion *e, char op, struct str pattern, bool is_group,
                       const char *at, struct err *err)
{
    const struct hostlist_scope *scope = e->scope;
    bool is_all = str_eq_z(pattern, "*");
    size_t n_found = 0;
    if (pattern.len == 0) {
        return fail(e->whole, at, err, "expected the name of a group after @");
    }
    if (!scope) {
        return fail(e->whole, at, err, "%s need an inventory before a colon: INVENTORY:%s%.*s",
                    is_group ? "groups" : "wildcards", is_group ? "@" : "",
                    (int)(pattern.len < 60 ? pattern.len : 60), pattern.ptr);
    }
    if (count_work(e, scope->n_names, at, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < scope->n_names; idx++) {
        bool is_meant = is_all || (is_group ? scope->is_in_group(scope->ctx, idx, pattern)
                                            : glob_matches(pattern, scope->names[idx]));
        if (is_meant && apply(e, op, scope->names[idx], at, err) < 0) {
            return -1;
        }
        n_found += is_meant;
    }
    return n_found ? 0
                   : fail(e->whole, at, err, "%s \"%.*s\" %s", is_group ? "group" : "no node",
                          (int)(pattern.len < 60 ? pattern.len : 60), pattern.ptr,
                          is_group ? "has no node" : "matches");
}

static int apply_name(struct expansion *e, char op, struct str name, const char *at,
                      struct err *err)
{
    if (!hostlist_is_name(name)) {
        bool has_user = str_find(name, STR_LIT("@")) > 0;
        return fail(e->whole, at, err, "expected a host name, found \"%.*s\"%s",
                    (int)(name.len < 60 ? name.len : 60), name.ptr,
                    has_user ? ": put a user into an inventory or into ~/.ssh/config" : "");
    }
    if (e->scope && !map_get(&e->scope_names, name)) {
        return fail(e->whole, at, err, "the inventory has no node \"%.*s\"",
                    (int)(name.len < 60 ? name.len : 60), name.ptr);
    }
    return apply(e, op, name, at, err);
}

static int apply_term(struct expansion *e, char op, struct str text, struct err *err)
{
    bool is_group = text.ptr[0] == '@';
    char buf[HOSTLIST_NAME_MAX + 1];
    struct term term = {0};
    struct str name;
    e->round++;
    if (e->syntax == HOSTLIST_SLURM && (is_group || has_wildcard(text))) {
        return fail(e->whole, text.ptr, err, "expected a host name, found \"%.*s\"",
                    (int)(text.len < 60 ? text.len : 60), text.ptr);
    }
    if (term_parse(e->arena, is_group ? str_sub(text, 1, text.len) : text, e->whole, e->syntax,
                   &term, err) < 0 ||
        count_work(e, term.n_names, text.ptr, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < term.n_names; idx++) {
        if (!term_name(&term, idx, buf, &name)) {
            return fail(e->whole, text.ptr, err, "a name longer than %d bytes", HOSTLIST_NAME_MAX);
        }
        if (is_group || has_wildcard(name) ? apply_scope(e, op, name, is_group, text.ptr, err) < 0
                                           : apply_name(e, op, name, text.ptr, err) < 0) {
            return -1;
        }
    }
    return end_term(e, op, text.ptr, err);
}

/* ---- operators ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_operator(char c)
{
    return c == ',' || c == '!' || c == '&' || c == '^';
}

/* Length of the term that begins the text: up to an operator or blank outside of brackets. */
static size_t term_length(struct str text)
{
    bool is_inside = false;
    for (size_t idx = 0; idx < text.len; idx++) {
        char c = text.ptr[idx];
        if (!is_inside && (is_blank(c) || is_operator(c))) {
            return idx;
        }
        is_inside = c == '[' || (is_inside && c != ']');
    }
    return text.len;
}

static size_t skip_blanks(struct str text, size_t at)
{
    while (at < text.len && is_blank(text.ptr[at])) {
        at++;
    }
    return at;
}

/* The operator before a term, ',' if there is only a blank; *at moves on to the term. */
static int read_operator(const struct expansion *e, size_t *at, char *ret_operator, struct err *err)
{
    struct str text = e->whole;
    char op = ',';
    size_t pos = skip_blanks(text, *at);
    if (pos < text.len && is_operator(text.ptr[pos])) {
        op = text.ptr[pos];
        if (e->round == 0) {
            return fail(text, text.ptr + pos, err, "expected a name before \"%c\"", op);
        }
        pos = skip_blanks(text, pos + 1);
        if (op == ',' && pos < text.len && is_operator(text.ptr[pos]) && text.ptr[pos] != ',') {
            op = text.ptr[pos];
            pos = skip_blanks(text, pos + 1);
        }
        if (pos == text.len || is_operator(text.ptr[pos])) {
            return fail(text, text.ptr + pos, err, "expected a name after \"%c\"", op);
        }
    }
    if (e->syntax == HOSTLIST_SLURM && op != ',') {
        return fail(text, text.ptr + pos, err, "Slurm's lists have only \",\"");
    }
    *at = pos;
    *ret_operator = op;
    return 0;
}

static int expand_all(struct expansion *e, struct err *err)
{
    size_t at = skip_blanks(e->whole, 0);
    while (at < e->whole.len) {
        char op = ',';
        size_t len;
        if (read_operator(e, &at, &op, err) < 0) {
            return -1;
        }
        len = term_length(str_sub(e->whole, at, e->whole.len));
        if (apply_term(e, op, str_sub(e->whole, at, len), err) < 0) {
            return -1;
        }
        at = skip_blanks(e->whole, at + len);
    }
    return 0;
}

static void take_names(const struct expansion *e, struct hostlist *ret_list)
{
    struct hostlist list = {.names = arena_array(e->arena, struct str, e->n_in + 1)};
    for (size_t idx = 0; idx < e->entries.n; idx++) {
        if (e->entries.items[idx].is_in) {
            list.names[list.n++] = e->entries.items[idx].name;
        }
    }
    ASSERT(list.n == e->n_in);
    *ret_list = list;
}

int hostlist_expand(struct arena *arena, struct str text, enum hostlist_syntax syntax,
                    const struct hostlist_scope *scope, struct hostlist *ret_list, struct err *err)
{
    struct expansion e = {.arena = arena, .whole = text, .syntax = syntax, .scope = scope};
    int result;
    if (text.len > HOSTLIST_TEXT_MAX) {
        return err_set(err, ERR_USAGE, "a node set of more than %d bytes", HOSTLIST_TEXT_MAX);
    }
    for (size_t idx = 0; scope && idx < scope->n_names; idx++) {
        (void)map_add(&e.scope_names, scope->names[idx], &e);
    }
    result = expand_all(&e, err);
    if (result == 0) {
        take_names(&e, ret_list);
    }
    map_release(&e.scope_names);
    map_release(&e.by_name);
    VEC_RELEASE(&e.entries);
    return result;
}

/* ---- names as a list ---- */

struct number {
    int64_t value;
    int width; /* digits as written */
};

struct fold_axis { /* the numbers of a box at one place of the name, sorted; in the arena */
    struct number *items;
    size_t n;
};

struct box {
    struct str pattern; /* of its names, each number as "%" */
    size_t n_axes;
    struct fold_axis axes[NUMBERS_MAX];
};

/* ---- order ---- */

/* By width and then value: 7 before 01 before 12, and 9 before 10. */
static int compare_numbers(const struct number *a, const struct number *b)
{
    if (a->width != b->width) {
        return a->width < b->width ? -1 : 1;
    }
    return (a->value > b->value) - (a->value < b->value);
}

static int compare_axes(const struct fold_axis *a, const struct fold_axis *b)
{
    for (size_t idx = 0; idx < a->n && idx < b->n; idx++) {
        int order = compare_numbers(&a->items[idx], &b->items[idx]);
        if (order != 0) {
            return order;
        }
    }
    return (a->n > b->n) - (a->n < b->n);
}

/* All axes but `without` (SIZE_MAX: all). Equal there and in the pattern: 0. */
static int compare_boxes_without(const struct box *a, const struct box *b, size_t without)
{
    int order = str_cmp(a->pattern, b->pattern);
    for (size_t idx = 0; order == 0 && idx < a->n_axes; idx++) {
        order = idx == without ? 0 : compare_axes(&a->axes[idx], &b->axes[idx]);
    }
    return order;
}

static int compare_for_merge(const void *a, const void *b, void *without)
{
    const size_t *axis = without;
    int order = compare_boxes_without(a, b, *axis);
    return order ? order
                 : compare_axes(&((const struct box *)a)->axes[*axis],
                                &((const struct box *)b)->axes[*axis]);
}

static size_t box_size(const struct box *box)
{
    size_t size = 1;
    for (size_t idx = 0; idx < box->n_axes; idx++) {
        size *= box->axes[idx].n; /* at most the number of names */
    }
    return size;
}

/* As they are printed: by pattern, the largest first, then by number. */
static int compare_for_print(const void *a, const void *b)
{
    const struct box *box_a = a;
    const struct box *box_b = b;
    int order = str_cmp(box_a->pattern, box_b->pattern);
    size_t size_a = box_size(box_a);
    size_t size_b = box_size(box_b);
    if (order == 0 && size_a != size_b) {
        order = size_a > size_b ? -1 : 1;
    }
    return order ? order : compare_boxes_without(a, b, SIZE_MAX);
}

/* ---- boxes ---- */

/* A box of the one name. */
static struct box read_name(struct arena *arena, struct str name)
{
    struct box box = {0};
    char *pattern = arena_array(arena, char, name.len + 1);
    size_t len = 0;
    for (size_t at = 0; at < name.len;) {
        struct number number = {0};
        size_t end = at;
        while (end < name.len && is_digit(name.ptr[end])) {
            end++;
        }
        if (end == at || end - at > HOSTLIST_DIGITS_MAX || box.n_axes == NUMBERS_MAX) {
            end += end == at;
            memcpy(pattern + len, name.ptr + at, end - at);
            len += end - at;
            at = end;
            continue;
        }
        number.width = (int)(end - at);
        for (; at < end; at++) {
            number.value = number.value * 10 + (name.ptr[at] - '0');
        }
        pattern[len++] = '%'; /* never a byte of a name */
        box.axes[box.n_axes].items = arena_array(arena, struct number, 1);
        box.axes[box.n_axes].items[0] = number;
        box.axes[box.n_axes++].n = 1;
    }
    box.pattern = (struct str){pattern, len};
    return box;
}

/* Both are sorted and have no number in common. */
static struct fold_axis join_axes(struct arena *arena, const struct fold_axis *a,
                                  const struct fold_axis *b)
{
    struct fold_axis axis = {.items = arena_array(arena, struct number, a->n + b->n)};
    size_t at_a = 0;
    size_t at_b = 0;
    while (at_a < a->n || at_b < b->n) {
        bool is_a =
            at_b == b->n || (at_a < a->n && compare_numbers(&a->items[at_a], &b->items[at_b]) < 0);
        axis.items[axis.n++] = is_a ? a->items[at_a++] : b->items[at_b++];
    }
    return axis;
}

/* Boxes of equal names that differ in this axis alone, and follow each other, become one. A run of m is joined in pairs, so that
   each number is copied log m times. */
static void join_run(struct arena *arena, struct box *boxes, size_t n, size_t axis)
{
    for (size_t step = 1; step < n; step *= 2) {
        for (size_t idx = 0; idx + step < n; idx += 2 * step) {
            boxes[idx].axes[axis] =
                join_axes(arena, &boxes[idx].axes[axis], &boxes[idx + step].axes[axis]);
        }
    }
}

/* How many are left. */
static size_t merge_along(struct arena *arena, struct box *boxes, size_t n, size_t axis)
{
    size_t n_left = 0;
    qsort_r(boxes, n, sizeof(*boxes), compare_for_merge, &axis);
    for (size_t from = 0; from < n;) {
        size_t end = from + 1;
        while (end < n && axis < boxes[from].n_axes &&
               compare_boxes_without(&boxes[from], &boxes[end], axis) == 0) {
            end++;
        }
        join_run(arena, boxes + from, end - from, axis);
        boxes[n_left++] = boxes[from];
        from = end;
    }
    return n_left;
}

static size_t drop_equal(struct box *boxes, size_t n)
{
    size_t n_left = 0;
    qsort(boxes, n, sizeof(*boxes), compare_for_print);
    for (size_t idx = 0; idx < n; idx++) {
        if (n_left == 0 || compare_boxes_without(&boxes[n_left - 1], &boxes[idx], SIZE_MAX) != 0) {
            boxes[n_left++] = boxes[idx];
        }
    }
    return n_left;
}

static size_t merge_all(struct arena *arena, struct box *boxes, size_t n)
{
    size_t n_axes = 0;
    size_t n_before;
    for (size_t idx = 0; idx < n; idx++) {
        n_axes = boxes[idx].n_axes > n_axes ? boxes[idx].n_axes : n_axes;
    }
    do {
        n_before = n;
        for (size_t axis = n_axes; axis-- > 0;) {
            n = merge_along(arena, boxes, n, axis);
        }
    } while (n < n_before);
    qsort(boxes, n, sizeof(*boxes), compare_for_print);
    return n;
}

/* ---- text ---- */

static bool is_padded_number(const struct number *number)
{
    int64_t least = 1;
    for (int idx = 1; idx < number->width; idx++) {
        least *= 10;
    }
    return number->width > 1 && number->value < least;
}

/* Whether `next` is the number that FIRST-LAST counts to after `last`. */
static bool goes_on(const struct number *first, const struct number *last,
                    const struct number *next)
{
    return next->value == last->value + 1 &&
           (next->width == last->width || (!is_padded_number(first) && !is_padded_number(next)));
}

static void print_number(struct strbuf *out, const struct number *number)
{
    strbuf_printf(out, "%0*lld", number->width, (long long)number->value);
}

static void print_axis(struct strbuf *out, const struct fold_axis *axis)
{
    if (axis->n == 1) {
        print_number(out, &axis->items[0]);
        return;
    }
    strbuf_add_char(out, '[');
    for (size_t from = 0; from < axis->n;) {
        size_t end = from + 1;
        while (end < axis->n &&
               goes_on(&axis->items[from], &axis->items[end - 1], &axis->items[end])) {
            end++;
        }
        if (from) {
            strbuf_add_char(out, ',');
        }
        print_number(out, &axis->items[from]);
        if (end - from > 1) {
            strbuf_add_char(out, '-');
            print_number(out, &axis->items[end - 1]);
        }
        from = end;
    }
    strbuf_add_char(out, ']');
}

static void print_box(struct strbuf *out, const struct box *box)
{
    size_t axis = 0;
    for (size_t idx = 0; idx < box->pattern.len; idx++) {
        if (box->pattern.ptr[idx] == '%') {
            print_axis(out, &box->axes[axis++]);
        } else {
            strbuf_add_char(out, box->pattern.ptr[idx]);
        }
    }
}

struct str hostlist_fold(struct arena *arena, const struct str *names, size_t n_names)
{
    CLEANUP(arena) struct arena scratch = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf out;
    CLEANUP(free) struct box *boxes = xcalloc(n_names + 1, sizeof(*boxes));
    size_t n = n_names;
    strbuf_init(&out, (HOSTLIST_NAME_MAX + 3) * (n_names + 1));
    for (size_t idx = 0; idx < n; idx++) {
        ASSERT(hostlist_is_name(names[idx]));
        boxes[idx] = read_name(&scratch, names[idx]);
    }
    n = merge_all(&scratch, boxes, drop_equal(boxes, n));
    for (size_t idx = 0; idx < n; idx++) {
        if (idx) {
            strbuf_add_char(&out, ',');
        }
        print_box(&out, &boxes[idx]);
    }
    ASSERT(!out.is_full);
    return str_dup(arena, strbuf_str(&out));
}
