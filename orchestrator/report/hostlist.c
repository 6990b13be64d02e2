/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/hostlist.h"

#include "base/charset.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "base/vec.h"

#define SHOWN_MAX 80
#define FOUND_MAX 60

struct number {
    int64_t value;
    int width; /* digits: at least as many in a set, as many as written in a name */
    bool is_padded;
};

struct bracket {          /* of a bracket */
    struct number *items; /* HOSTLIST_NAMES_MAX */
    size_t n;
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

bool hostlist_is_name(struct str text)
{
    return str_is_made_of(text, "a-zA-Z0-9.:_-") && text.len <= HOSTLIST_NAME_MAX &&
           !strchr(".:_-", text.ptr[0]) && !strchr(".:_-", text.ptr[text.len - 1]);
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

/* The numbers of "3" or "01-04". */
static int add_range(const struct expansion *e, struct str text, struct bracket *numbers)
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
    if (to - from >= (int64_t)(HOSTLIST_NAMES_MAX - numbers->n)) {
        return fail(e, text.ptr, "more than %d names", HOSTLIST_NAMES_MAX);
    }
    for (; from <= to; from++) {
        numbers->items[numbers->n++] =
            (struct number){from, is_padded(first) ? (int)first.len : 1, false};
    }
    return 0;
}

static int read_bracket(const struct expansion *e, struct str inside, struct bracket *numbers)
{
    struct str rest = inside;
    struct str part;
    numbers->n = 0;
    if (str_trim(inside).len == 0) {
        return fail(e, inside.ptr, "expected a number");
    }
    while (str_next(&rest, ',', &part)) {
        if (add_range(e, str_trim(part), numbers) < 0) {
            return -1;
        }
    }
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

struct heads { /* the names of a term, as far as it was read */
    struct arena arena;
    struct str *items;
    size_t n;
};

/* Each of them with the text, or with each of the numbers. */
static int extend(const struct expansion *e, struct heads *heads, struct str text,
                  const struct bracket *numbers)
{
    size_t n_tails = numbers->n ? numbers->n : 1;
    if (heads->n > HOSTLIST_NAMES_MAX / n_tails) {
        return fail(e, text.ptr, "more than %d names", HOSTLIST_NAMES_MAX);
    }
    struct str *names = arena_array(&heads->arena, struct str, heads->n * n_tails);
    for (size_t idx = 0; idx < heads->n * n_tails; idx++) {
        struct str head = heads->items[idx / n_tails];
        const struct number *number = &numbers->items[idx % n_tails];
        names[idx] = str_of(
            numbers->n ? arena_printf(&heads->arena, "%.*s%0*lld", STR_ARG(head), number->width,
                                      (long long)number->value)
                       : arena_printf(&heads->arena, "%.*s%.*s", STR_ARG(head), STR_ARG(text)));
        if (names[idx].len > HOSTLIST_NAME_MAX) {
            return fail(e, text.ptr, "a name longer than %d bytes", HOSTLIST_NAME_MAX);
        }
    }
    heads->items = names;
    heads->n *= n_tails;
    return 0;
}

/* "rack[1-2]node[01-04]": what stands between two commas. */
static int read_term(const struct expansion *e, struct str rest, struct heads *heads)
{
    CLEANUP(free) struct number *room = xcalloc(HOSTLIST_NAMES_MAX, sizeof(*room));
    size_t n_brackets = 0;
    while (rest.len) {
        struct bracket numbers = {.items = room};
        int64_t end = str_find(rest, rest.ptr[0] == '[' ? STR_LIT("]") : STR_LIT("["));
        size_t len = end < 0 ? rest.len : (size_t)end;
        if (rest.ptr[0] == '[') {
            if (n_brackets++ == HOSTLIST_BRACKETS_MAX) {
                return fail(e, rest.ptr, "more than %d brackets in a name", HOSTLIST_BRACKETS_MAX);
            }
            if (end < 0) {
                return fail(e, rest.ptr, "expected ] after this [");
            }
            if (read_bracket(e, str_sub(rest, 1, len - 1), &numbers) < 0) {
                return -1;
            }
            len++;
        }
        if (extend(e, heads, str_sub(rest, 0, len), &numbers) < 0) {
            return -1;
        }
        rest = str_sub(rest, len, SIZE_MAX);
    }
    return 0;
}

static int add_term(struct expansion *e, struct str text)
{
    struct heads heads = {.items = &STR_LIT(""), .n = 1};
    int result = check_bytes(e, text) < 0 || read_term(e, text, &heads) < 0 ? -1 : 0;
    e->n_work += heads.n;
    if (result == 0 && e->n_work > HOSTLIST_WORK_MAX) {
        result = fail(e, text.ptr, "more than %d names in all", HOSTLIST_WORK_MAX);
    }
    for (size_t idx = 0; result == 0 && idx < heads.n; idx++) {
        result = add_name(e, heads.items[idx], text.ptr);
    }
    arena_release(&heads.arena);
    return result;
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
    if (text.len > HOSTLIST_TEXT_MAX) {
        return err_set(err, ERR_USAGE, "a node set of more than %d bytes", HOSTLIST_TEXT_MAX);
    }
    int result = expand_all(&e);
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

/* A name by its last number: those that differ in it alone are printed as one. */
struct folded {
    struct str before, after; /* of the number; after NULL: it has none */
    struct number number;
};

static struct folded read_name(struct str name)
{
    size_t end = name.len;
    while (end > 0 && !is_digit(name.ptr[end - 1])) {
        end--;
    }
    size_t from = end;
    while (from > 0 && is_digit(name.ptr[from - 1])) {
        from--;
    }
    struct folded folded = {.before = name};
    if (from == end || end - from > HOSTLIST_DIGITS_MAX) {
        return folded;
    }
    for (size_t at = from; at < end; at++) {
        folded.number.value = folded.number.value * 10 + (name.ptr[at] - '0');
    }
    folded.number.width = (int)(end - from);
    folded.number.is_padded = is_padded(str_sub(name, from, end - from));
    folded.before = str_sub(name, 0, from);
    folded.after = (struct str){name.ptr + end, name.len - end};
    return folded;
}

/* By the text around the number; then by its width and value: 7 before 01 before 12, and 9 before 10. */
static int compare_texts(const struct folded *a, const struct folded *b)
{
    int order = str_cmp(a->before, b->before);
    order = order ? order : (a->after.ptr != NULL) - (b->after.ptr != NULL);
    return order || !a->after.ptr ? order : str_cmp(a->after, b->after);
}

static int compare_folded(const void *x, const void *y)
{
    const struct folded *a = x;
    const struct folded *b = y;
    int order = compare_texts(a, b);
    order = order ? order : a->number.width - b->number.width;
    return order ? order
                 : (a->number.value > b->number.value) - (a->number.value < b->number.value);
}

static size_t drop_equal(struct folded *names, size_t n)
{
    size_t n_left = 0;
    qsort(names, n, sizeof(*names), compare_folded);
    for (size_t idx = 0; idx < n; idx++) {
        if (n_left == 0 || compare_folded(&names[n_left - 1], &names[idx]) != 0) {
            names[n_left++] = names[idx];
        }
    }
    return n_left;
}

/* ---- text ---- */

/* Whether `next` is the number that FIRST-LAST counts to after `last`. */
static bool goes_on(const struct number *first, const struct number *last,
                    const struct number *next)
{
    return next->value == last->value + 1 &&
           (next->width == last->width || (!first->is_padded && !next->is_padded));
}

static void print_number(struct strbuf *out, const struct number *number)
{
    strbuf_printf(out, "%0*lld", number->width, (long long)number->value);
}

/* Of names that differ in the number alone. */
static void print_numbers(struct strbuf *out, const struct folded *names, size_t n)
{
    for (size_t from = 0; from < n;) {
        size_t end = from + 1;
        while (end < n &&
               goes_on(&names[from].number, &names[end - 1].number, &names[end].number)) {
            end++;
        }
        strbuf_add_z(out, from ? "," : "");
        print_number(out, &names[from].number);
        if (end - from > 1) {
            strbuf_add_char(out, '-');
            print_number(out, &names[end - 1].number);
        }
        from = end;
    }
}

static void print_run(struct strbuf *out, const struct folded *names, size_t n)
{
    strbuf_add_str(out, names->before);
    if (names->after.ptr) {
        strbuf_add_z(out, n > 1 ? "[" : "");
        print_numbers(out, names, n);
        strbuf_add_z(out, n > 1 ? "]" : "");
        strbuf_add_str(out, names->after);
    }
}

struct str hostlist_fold(struct arena *arena, const struct str *names, size_t n_names)
{
    CLEANUP(strbuf) struct strbuf out;
    CLEANUP(free) struct folded *folded = xcalloc(n_names + 1, sizeof(*folded));
    strbuf_init(&out, (HOSTLIST_NAME_MAX + 3) * (n_names + 1));
    for (size_t idx = 0; idx < n_names; idx++) {
        ASSERT(hostlist_is_name(names[idx]));
        folded[idx] = read_name(names[idx]);
    }
    size_t n = drop_equal(folded, n_names);
    for (size_t from = 0; from < n;) {
        size_t end = from + 1;
        while (end < n && compare_texts(&folded[from], &folded[end]) == 0) {
            end++;
        }
        strbuf_add_z(&out, from ? "," : "");
        print_run(&out, folded + from, end - from);
        from = end;
    }
    ASSERT(!out.is_full);
    return str_dup(arena, strbuf_str(&out));
}
