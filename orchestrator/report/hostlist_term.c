/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/hostlist_term.h"

#define SHOWN_MAX 80

int hostlist_fail(struct str whole, const char *at, struct err *err, const char *fmt, ...)
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
        return hostlist_fail(reader->whole, text.ptr, reader->err, "expected a number");
    }
    if (text.len > HOSTLIST_DIGITS_MAX || text.ptr[0] == '-' ||
        str_to_i64(text, 0, INT64_MAX, ret_value, &ignored) < 0) {
        return hostlist_fail(reader->whole, text.ptr, reader->err,
                             "expected a number of at most %d digits, found \"%.*s\"",
                             HOSTLIST_DIGITS_MAX, (int)(text.len < 40 ? text.len : 40), text.ptr);
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
        return hostlist_fail(reader->whole, text.ptr, reader->err, "Slurm's lists have no /STEP");
    }
    if (range.step < 1 || range.last < range.first) {
        return hostlist_fail(reader->whole, text.ptr, reader->err,
                             "expected FIRST-LAST/STEP, upwards, found \"%.*s\"",
                             (int)(text.len < 40 ? text.len : 40), text.ptr);
    }
    if ((is_padded(first) || is_padded(last)) && first.len != last.len &&
        (reader->syntax != HOSTLIST_SLURM || is_padded(last))) {
        return hostlist_fail(reader->whole, text.ptr, reader->err,
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
        return hostlist_fail(reader->whole, at, reader->err, "more than %d names",
                             HOSTLIST_NAMES_MAX);
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
        return hostlist_fail(reader->whole, inside.ptr, reader->err, "expected a number");
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

int term_parse(struct arena *arena, struct str text, struct str whole, enum hostlist_syntax syntax,
               struct term *ret_term, struct err *err)
{
    const struct range_reader reader = {whole, syntax, err};
    struct term term = {.n_names = 1};
    size_t at = 0;
    while (at < text.len) {
        struct term_piece piece = {0};
        size_t from = at;
        if (term.n_pieces == TERM_PIECES_MAX) {
            return hostlist_fail(whole, text.ptr + at, err, "more than %d brackets in a name",
                                 HOSTLIST_BRACKETS_MAX);
        }
        if (text.ptr[at] == '[') {
            while (at < text.len && text.ptr[at] != ']') {
                at++;
            }
            if (at == text.len) {
                return hostlist_fail(whole, text.ptr + from, err, "expected ] after this [");
            }
            if (read_bracket(arena, &reader, str_sub(text, from + 1, at - from - 1), &piece) < 0) {
                return -1;
            }
            at++;
            if (term.n_names > HOSTLIST_NAMES_MAX / piece.n_numbers) {
                return hostlist_fail(whole, text.ptr + from, err, "more than %d names",
                                     HOSTLIST_NAMES_MAX);
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

bool term_name(const struct term *term, size_t idx, char buf[HOSTLIST_NAME_MAX + 1],
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
