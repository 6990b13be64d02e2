/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/hostlist.h"

#include "base/map.h"
#include "base/strbuf.h"
#include "base/vec.h"

#define SHOWN_MAX 80
#define FOUND_MAX 60

#define BLANKS " \t\n\r"

struct expansion {
    struct arena *arena;
    struct str whole; /* positions in messages count from its start */
    struct err *err;
    VEC(struct str) names;
    struct map seen;  /* these names */
    size_t n_spelled; /* names that occur again count again */
    struct str term;  /* what stands between two commas: "rack[1-2]node[01-04]" */
    char name[HOSTLIST_NAME_MAX + HOSTLIST_DIGITS_MAX + 1]; /* of it, as far as it is spelled */
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
    if (text.len == 0) {
        return fail(e, text.ptr, "expected a number");
    }
    if (text.len > HOSTLIST_DIGITS_MAX || text.ptr[0] == '-' ||
        str_to_i64(text, 0, INT64_MAX, ret_value, ERR_IGNORED) < 0) {
        return fail(e, text.ptr, "expected a number of at most %d digits, found \"%.*s\"",
                    HOSTLIST_DIGITS_MAX, STR_ARG(str_sub(text, 0, FOUND_MAX)));
    }
    return 0;
}

static bool is_padded(struct str digits)
{
    return digits.len > 1 && digits.ptr[0] == '0';
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

static int add_name(struct expansion *e, struct str name)
{
    if (++e->n_spelled > HOSTLIST_NAMES_MAX) {
        return fail(e, e->term.ptr, "more than %d names", HOSTLIST_NAMES_MAX);
    }
    if (!hostlist_is_name(name)) {
        bool has_user = str_find(name, STR_LIT("@")) > 0;
        return fail(e, e->term.ptr, "expected a host name, found \"%.*s\"%s",
                    STR_ARG(str_sub(name, 0, FOUND_MAX)),
                    has_user ? ": put a user into an inventory or into ~/.ssh/config" : "");
    }
    if (map_get(&e->seen, name)) {
        return 0;
    }
    name = (struct str){str_z(e->arena, name), name.len};
    VEC_PUSH(&e->names, name);
    (void)map_add(&e->seen, name, e);
    return 0;
}

static int spell(struct expansion *e, size_t len, struct str rest, size_t n_brackets);

/* With each number of "3" or "01-04", and then the rest. */
static int spell_range(struct expansion *e, size_t len, struct str text, struct str rest,
                       size_t n_brackets)
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
    if (is_padded(last) && first.len != last.len) {
        return fail(e, text.ptr, "both ends of \"%.*s\" need the same number of digits",
                    STR_ARG(str_sub(text, 0, FOUND_MAX)));
    }
    if (to - from >= HOSTLIST_NAMES_MAX) {
        return fail(e, text.ptr, "more than %d names", HOSTLIST_NAMES_MAX);
    }
    for (; from <= to; from++) {
        int n = snprintf(e->name + len, sizeof(e->name) - len, "%0*lld",
                         is_padded(first) ? (int)first.len : 1, (long long)from);
        if (spell(e, len + (size_t)n, rest, n_brackets) < 0) {
            return -1;
        }
    }
    return 0;
}

/* All names that begin with the first bytes of e->name and go on as the rest of the term says. */
static int spell(struct expansion *e, size_t len, struct str rest, size_t n_brackets)
{
    size_t n = str_cspan(rest, 0, "[");
    struct str part;
    if (len + n > HOSTLIST_NAME_MAX) {
        return fail(e, rest.ptr, "a name longer than %d bytes", HOSTLIST_NAME_MAX);
    }
    memcpy(e->name + len, rest.ptr, n);
    if (n == rest.len) {
        return add_name(e, (struct str){e->name, len + n});
    }
    rest = str_sub(rest, n, SIZE_MAX);
    int64_t end = str_find(rest, STR_LIT("]"));
    if (n_brackets == HOSTLIST_BRACKETS_MAX) {
        return fail(e, rest.ptr, "more than %d brackets in a name", HOSTLIST_BRACKETS_MAX);
    }
    if (end < 0) {
        return fail(e, rest.ptr, "expected ] after this [");
    }
    struct str inside = str_sub(rest, 1, (size_t)end - 1);
    rest = str_sub(rest, (size_t)end + 1, SIZE_MAX);
    if (str_trim(inside).len == 0) {
        return fail(e, inside.ptr, "expected a number");
    }
    while (str_next(&inside, ',', &part)) {
        if (spell_range(e, len + n, str_trim(part), rest, n_brackets + 1) < 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- a set ---- */

/* Length of the term that begins the text: up to a comma or blank outside of brackets. */
static size_t term_length(struct str text)
{
    bool is_inside = false;
    for (size_t idx = 0; idx < text.len; idx++) {
        char c = text.ptr[idx];
        if (!is_inside && (c && strchr(BLANKS ",", c))) {
            return idx;
        }
        is_inside = c == '[' || (is_inside && c != ']');
    }
    return text.len;
}

/* Terms with one comma, or only blanks, between two of them. */
static int expand_all(struct expansion *e)
{
    struct str text = e->whole;
    size_t at = str_span(text, 0, BLANKS);
    bool is_more = true;
    while (is_more) {
        size_t len = term_length(str_sub(text, at, text.len));
        e->term = str_sub(text, at, len);
        if (len == 0) {
            return fail(e, text.ptr + at, "expected a host name");
        }
        if (check_bytes(e, e->term) < 0 || spell(e, 0, e->term, 0) < 0) {
            return -1;
        }
        at = str_span(text, at + len, BLANKS);
        is_more = at < text.len;
        if (is_more && text.ptr[at] == ',') {
            at = str_span(text, at + 1, BLANKS);
        }
    }
    return 0;
}

int hostlist_expand(struct arena *arena, struct str text, struct hostlist *ret_list,
                    struct err *err)
{
    struct expansion e = {.arena = arena, .whole = text, .err = err};
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
    int64_t value;
    int width; /* digits */
    bool is_padded;
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
        folded.value = folded.value * 10 + (name.ptr[at] - '0');
    }
    folded.width = (int)(end - from);
    folded.is_padded = is_padded(str_sub(name, from, end - from));
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
    order = order ? order : a->width - b->width;
    return order ? order : (a->value > b->value) - (a->value < b->value);
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
static bool goes_on(const struct folded *first, const struct folded *last,
                    const struct folded *next)
{
    return next->value == last->value + 1 &&
           (next->width == last->width || (!first->is_padded && !next->is_padded));
}

static void print_number(struct strbuf *out, const struct folded *name)
{
    strbuf_printf(out, "%0*lld", name->width, (long long)name->value);
}

/* Of names that differ in the number alone. */
static void print_numbers(struct strbuf *out, const struct folded *names, size_t n)
{
    for (size_t from = 0; from < n;) {
        size_t end = from + 1;
        while (end < n && goes_on(&names[from], &names[end - 1], &names[end])) {
            end++;
        }
        strbuf_add_z(out, from ? "," : "");
        print_number(out, &names[from]);
        if (end - from > 1) {
            strbuf_add_char(out, '-');
            print_number(out, &names[end - 1]);
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
    CLEANUP(strbuf) struct strbuf out = STRBUF((HOSTLIST_NAME_MAX + 3) * (n_names + 1));
    CLEANUP(free) struct folded *folded = xcalloc(n_names + 1, sizeof(*folded));
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
