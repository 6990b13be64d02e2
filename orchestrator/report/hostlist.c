/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/hostlist.h"

#include "base/map.h"
#include "base/strbuf.h"
#include "base/vec.h"

#define TERM_PIECES_MAX (2 * HOSTLIST_BRACKETS_MAX + 1)
#define NUMBERS_MAX     16 /* numbers in a name; with more it is not folded */
#define SHOWN_MAX       80
#define FOUND_MAX       60

struct number {
    int64_t value;
    int width; /* digits: at least as many in a set, as many as written in a name */
};

struct term_piece { /* literal text, or the numbers of a bracket */
    struct str text;
    struct number *numbers;
    size_t n_numbers; /* 0: it is text */
};

/* "rack[1-2]node[01-04]": what stands between two commas. */
struct term {
    struct term_piece pieces[TERM_PIECES_MAX];
    size_t n_pieces;
    size_t n_names; /* product of the brackets' numbers, 1 to HOSTLIST_NAMES_MAX */
};

struct expansion {
    struct arena *arena;
    struct str whole; /* positions in messages count from its start */
    enum hostlist_syntax syntax;
    struct err *err;
    VEC(struct str) names;
    struct map seen; /* these names */
    size_t n_work;
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

/* ERR_USAGE: 'node set "TEXT", byte N: ...' */
PRINTF_LIKE(3, 4)
static int fail(const struct expansion *e, const char *at, const char *fmt, ...)
{
    struct str whole = e->whole;
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return err_set(e->err, ERR_USAGE, "node set \"%.*s%s\", byte %zu: %s",
                   (int)(whole.len < SHOWN_MAX ? whole.len : SHOWN_MAX), whole.ptr,
                   whole.len > SHOWN_MAX ? "..." : "", (size_t)(at - whole.ptr) + 1, text);
}

/* ---- the numbers of a bracket ---- */

static int read_number(const struct expansion *e, struct str text, int64_t *ret_value)
{
    struct err ignored = {0};
    if (text.len == 0) {
        return fail(e, text.ptr, "expected a number");
    }
    if (text.len > HOSTLIST_DIGITS_MAX || text.ptr[0] == '-' ||
        str_to_i64(text, 0, INT64_MAX, ret_value, &ignored) < 0) {
        return fail(e, text.ptr, "expected a number of at most %d digits, found \"%.*s\"",
                    HOSTLIST_DIGITS_MAX, STR_ARG(str_sub(text, 0, FOUND_MAX)));
    }
    return 0;
}

static bool is_padded(struct str digits)
{
    return digits.len > 1 && digits.ptr[0] == '0';
}

/* Appends the numbers of "3" or "01-04" to the piece's, which have room for HOSTLIST_NAMES_MAX. */
static int add_range(const struct expansion *e, struct str text, struct term_piece *piece)
{
    struct str last = text;
    struct str first;
    int64_t from = 0;
    int64_t to = 0;
    (void)str_next(&last, '-', &first);
    first = str_trim(first);
    last = last.ptr ? str_trim(last) : first;
    if (read_number(e, first, &from) < 0 || read_number(e, last, &to) < 0) {
        return -1;
    }
    if (to < from) {
        return fail(e, text.ptr, "expected FIRST-LAST, upwards, found \"%.*s\"",
                    STR_ARG(str_sub(text, 0, FOUND_MAX)));
    }
    if ((is_padded(first) || is_padded(last)) && first.len != last.len &&
        (e->syntax != HOSTLIST_SLURM || is_padded(last))) {
        return fail(e, text.ptr, "both ends of \"%.*s\" need the same number of digits",
                    STR_ARG(str_sub(text, 0, FOUND_MAX)));
    }
    if (to - from >= (int64_t)(HOSTLIST_NAMES_MAX - piece->n_numbers)) {
        return fail(e, text.ptr, "more than %d names", HOSTLIST_NAMES_MAX);
    }
    for (; from <= to; from++) {
        piece->numbers[piece->n_numbers++] =
            (struct number){from, is_padded(first) ? (int)first.len : 1};
    }
    return 0;
}

static int read_bracket(const struct expansion *e, struct str inside, struct term_piece *ret_piece)
{
    CLEANUP(free) struct number *room = xcalloc(HOSTLIST_NAMES_MAX, sizeof(*room));
    struct term_piece piece = {.numbers = room};
    struct str rest = inside;
    struct str part;
    if (str_trim(inside).len == 0) {
        return fail(e, inside.ptr, "expected a number");
    }
    while (str_next(&rest, ',', &part)) {
        if (add_range(e, str_trim(part), &piece) < 0) {
            return -1;
        }
    }
    ASSERT(piece.n_numbers > 0);
    piece.numbers = arena_array(e->arena, struct number, piece.n_numbers);
    memcpy(piece.numbers, room, piece.n_numbers * sizeof(*room));
    *ret_piece = piece;
    return 0;
}

/* ---- a term ---- */

/* Users of ClusterShell expect its operators, groups, wildcards and steps, so the message names the byte. */
static int check_bytes(const struct expansion *e, struct str text)
{
    for (size_t idx = 0; idx < text.len; idx++) {
        char c = text.ptr[idx];
        if ((c == '@' && idx == 0) || (c && strchr("!&^*?/", c))) {
            return fail(e, text.ptr + idx,
                        "\"%c\" is not understood: expected names and ranges, as in "
                        "gpu[01-04,7],login",
                        c);
        }
    }
    return 0;
}

static int term_parse(const struct expansion *e, struct str text, struct term *ret_term)
{
    struct term term = {.n_names = 1};
    size_t at = 0;
    while (at < text.len) {
        struct term_piece piece = {0};
        size_t from = at;
        if (term.n_pieces == TERM_PIECES_MAX) {
            return fail(e, text.ptr + at, "more than %d brackets in a name", HOSTLIST_BRACKETS_MAX);
        }
        if (text.ptr[at] == '[') {
            while (at < text.len && text.ptr[at] != ']') {
                at++;
            }
            if (at == text.len) {
                return fail(e, text.ptr + from, "expected ] after this [");
            }
            if (read_bracket(e, str_sub(text, from + 1, at - from - 1), &piece) < 0) {
                return -1;
            }
            at++;
            if (term.n_names > HOSTLIST_NAMES_MAX / piece.n_numbers) {
                return fail(e, text.ptr + from, "more than %d names", HOSTLIST_NAMES_MAX);
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

static int add_name(struct expansion *e, struct str name, const char *at)
{
    if (!hostlist_is_name(name)) {
        bool has_user = str_find(name, STR_LIT("@")) > 0;
        return fail(e, at, "expected a host name, found \"%.*s\"%s",
                    STR_ARG(str_sub(name, 0, FOUND_MAX)),
                    has_user ? ": put a user into an inventory or into ~/.ssh/config" : "");
    }
    if (map_get(&e->seen, name)) {
        return 0;
    }
    if (e->names.n == HOSTLIST_NAMES_MAX) {
        return fail(e, at, "more than %d names", HOSTLIST_NAMES_MAX);
    }
    name = (struct str){str_z(e->arena, name), name.len};
    VEC_PUSH(&e->names, name);
    (void)map_add(&e->seen, name, e);
    return 0;
}

static int add_term(struct expansion *e, struct str text)
{
    char buf[HOSTLIST_NAME_MAX + 1];
    struct term term = {0};
    struct str name;
    if (check_bytes(e, text) < 0 || term_parse(e, text, &term) < 0) {
        return -1;
    }
    e->n_work += term.n_names;
    if (e->n_work > HOSTLIST_WORK_MAX) {
        return fail(e, text.ptr, "more than %d names in all", HOSTLIST_WORK_MAX);
    }
    for (size_t idx = 0; idx < term.n_names; idx++) {
        if (!term_name(&term, idx, buf, &name)) {
            return fail(e, text.ptr, "a name longer than %d bytes", HOSTLIST_NAME_MAX);
        }
        if (add_name(e, name, text.ptr) < 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- a set ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Length of the term that begins the text: up to a comma or blank outside of brackets. */
static size_t term_length(struct str text)
{
    bool is_inside = false;
    for (size_t idx = 0; idx < text.len; idx++) {
        char c = text.ptr[idx];
        if (!is_inside && (is_blank(c) || c == ',')) {
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

/* Terms with one comma, or only blanks, between two of them. */
static int expand_all(struct expansion *e)
{
    struct str text = e->whole;
    size_t at = skip_blanks(text, 0);
    bool is_more = true;
    while (is_more) {
        size_t len = term_length(str_sub(text, at, text.len));
        if (len == 0) {
            return fail(e, text.ptr + at, "expected a host name");
        }
        if (add_term(e, str_sub(text, at, len)) < 0) {
            return -1;
        }
        at = skip_blanks(text, at + len);
        is_more = at < text.len;
        if (is_more && text.ptr[at] == ',') {
            at = skip_blanks(text, at + 1);
        }
    }
    return 0;
}

int hostlist_expand(struct arena *arena, struct str text, enum hostlist_syntax syntax,
                    struct hostlist *ret_list, struct err *err)
{
    struct expansion e = {.arena = arena, .whole = text, .syntax = syntax, .err = err};
    int result;
    if (text.len > HOSTLIST_TEXT_MAX) {
        return err_set(err, ERR_USAGE, "a node set of more than %d bytes", HOSTLIST_TEXT_MAX);
    }
    result = expand_all(&e);
    if (result == 0) {
        ASSERT(e.names.n > 0);
        ret_list->names = arena_array(arena, struct str, e.names.n);
        memcpy(ret_list->names, e.names.items, e.names.n * sizeof(*ret_list->names));
        ret_list->n = e.names.n;
    }
    map_release(&e.seen);
    VEC_RELEASE(&e.names);
    return result;
}

/* ---- names as a list ---- */

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
